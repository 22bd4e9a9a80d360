//! What devices have of a tensor that blocks are written into.

use tessera_base::Own;
use tessera_core::ty::Ty;
use tessera_types::tensor::GivenIndex;

/// By dim of a tensor of this rank: whether the index takes all of it, in place.
pub fn whole_dims(given: &[GivenIndex], rank: usize) -> Vec<bool> {
    let takes = |g: &GivenIndex| match g {
        GivenIndex::Value(e) => Some(e.ty == Ty::None).filter(|none| !none),
        GivenIndex::Slice { low: None, high: None, step: None, .. } => Some(true),
        GivenIndex::Slice { .. } => Some(false),
        GivenIndex::Ellipsis(_) | GivenIndex::NewAxis(_) | GivenIndex::OfMask(..) => None,
    };
    // What an int takes away moves the dims behind it.
    if given.iter().any(|g| matches!(g, GivenIndex::Value(_) | GivenIndex::NewAxis(_))) {
        return vec![false; rank];
    }
    let at = given.iter().position(|g| matches!(g, GivenIndex::Ellipsis(_))).unwrap_or(given.len());
    let before: Vec<bool> = given[..at].iter().filter_map(takes).collect();
    let after: Vec<bool> = given[at..].iter().filter_map(takes).collect();
    let between = rank.saturating_sub(before.len() + after.len());
    before.into_iter().chain(std::iter::repeat_n(true, between)).chain(after).collect()
}

/// What a device has of a tensor, along one axis, with a value written into it: `whole` are the dims that the value covers,
/// the first `skip` of them without one of its own.
pub fn own_with(base: Option<Own>, value: Option<Own>, skip: usize, whole: &[bool]) -> Option<Own> {
    let covered = |dim: usize| whole.get(dim) == Some(&true);
    match (base, value) {
        (Some(Own::Zero), None) => None,
        (None | Some(Own::Zero), Some(Own::Block(dim))) if covered(dim + skip) => Some(Own::Block(dim + skip)),
        (None | Some(Own::Zero), Some(Own::Block(_))) => Some(Own::Mixed),
        (None | Some(Own::Zero), Some(own)) if own.is_alone() => Some(own),
        (Some(Own::Zero), Some(own @ (Own::Sum | Own::Mean))) => Some(own),
        (Some(Own::Block(dim)), value) => match value {
            None | Some(Own::Zero) if covered(dim) => base,
            Some(Own::Block(of)) if covered(dim) && of + skip == dim => base,
            Some(own) if own.is_part() => base,
            _ => Some(Own::Mixed),
        },
        _ => base,
    }
}
