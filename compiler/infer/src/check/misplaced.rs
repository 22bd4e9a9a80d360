//! Results of per-device code that do not lie as their annotation says.

use tessera_base::{Code, Diagnostic, Monoid, Own, Sharding, Span, TensorType};
use tessera_types::tensor::{reduces, whole};

/// The axes that a layout names.
pub fn axes(s: &Sharding) -> impl Iterator<Item = &String> {
    s.dims.iter().flatten().chain(s.partial.iter().map(|p| &p.1))
}

/// What is wrong with a result of a type, if something is, and what is said of its annotation.
pub fn misplaced(t: &TensorType, said: &Sharding, name: &str, at: Span) -> Option<(Diagnostic, String)> {
    another_part(t, said, at)
        .or_else(|| another_dim(t, said, at))
        .or_else(|| same_on_all(t, said, at))
        .or_else(|| differs(t, said, name, at))
}

/// E0405 and E0411 for a part that is said to be something else.
fn another_part(t: &TensorType, said: &Sharding, at: Span) -> Option<(Diagnostic, String)> {
    let found = t.sharding.owns().find_map(|(own, axis)| {
        let summed = said.partial.contains(&(Monoid::Sum, axis.clone()));
        part_returned(own, axis, (summed, said.dim_of(axis).is_some()), at)
    });
    Some((found?, "annotated here".to_owned()))
}

/// E0405 and E0411 for a result that is a part where its annotation says something else: `summed` is `sum@axis`, `split`
/// a dim of blocks.
fn part_returned(own: Own, axis: &str, (summed, split): (bool, bool), at: Span) -> Option<Diagnostic> {
    let all_reduce = format!("`dist.collective.all_reduce(x{}`", reduces(own, axis));
    Some(match own {
        Own::Sum if summed => return None,
        Own::Times => {
            let text = format!("this is the sum of the means of all devices of `{axis}`, and not the mean");
            Diagnostic::new(Code::E0411, at, text)
                .note(format!("it is `dist.size(\"{axis}\")` times the mean"))
                .help(format!("divide it: `x / dist.size(\"{axis}\")`"))
                .help(format!(
                    "or have the mean at once: `dist.collective.all_reduce(x, axis=\"{axis}\", op=\"mean\")`"
                ))
        }
        Own::Mean | Own::Max | Own::Min if summed => {
            let text = format!("this is each device's part of {}, and no summand", whole(own));
            let d = Diagnostic::new(Code::E0411, at, text);
            let d = match own {
                Own::Mean => d.help(format!("divide it: `x / dist.size(\"{axis}\")` is a summand of the mean")),
                _ => d,
            };
            d.help(format!("or put the parts together here, and leave `sum@{axis}` out: {all_reduce}"))
        }
        Own::Sum | Own::Mean | Own::Max | Own::Min if split => {
            let text = format!("this is each device's part of {}, and no block", whole(own));
            let d = Diagnostic::new(Code::E0405, at, text)
                .note(format!("the annotation says that the devices of `{axis}` have blocks one after the other"));
            let d = match own {
                Own::Sum => d.help(format!(
                    "put the parts together into blocks: `dist.collective.reduce_scatter(x, axis=\"{axis}\", dim=0)`"
                )),
                _ => d.help(format!("put the parts together: {all_reduce}")),
            };
            d.help(format!("or have the parts themselves, one after the other: `dist.each(x, axis=\"{axis}\")`"))
        }
        _ => return None,
    })
}

/// E0409 for a block along another dim than the annotation has.
fn another_dim(t: &TensorType, said: &Sharding, at: Span) -> Option<(Diagnostic, String)> {
    let (dim, stated, axis) = t.sharding.owns().find_map(|(own, axis)| match (own, said.dim_of(axis)?) {
        (Own::Block(dim), stated) if dim != stated => Some((dim, stated, axis)),
        _ => None,
    })?;
    let text = format!("this is a block along dim {dim}, and the annotation has `{axis}` at dim {stated}");
    let turn = format!("`dist.collective.all_to_all(x, axis=\"{axis}\", from_dim={dim}, to_dim={stated})`");
    let d = Diagnostic::new(Code::E0409, at, text)
        .help(format!("bring the blocks to that dim: {turn}"))
        .help(format!("or have what each device has, one after the other: `dist.each(x, axis=\"{axis}\")`"));
    Some((d, format!("blocks along dim {stated}")))
}

/// E0409 for a result that all devices have, where each is said to have a summand or a block.
fn same_on_all(t: &TensorType, said: &Sharding, at: Span) -> Option<(Diagnostic, String)> {
    // Zeros are a summand of every sum, and a block of zeros.
    let shared = |axis: &&String| t.sharding.own(axis).is_none();
    let mut summed = said.partial.iter().filter(|p| p.0 == Monoid::Sum).map(|p| &p.1);
    if let Some(axis) = summed.find(shared) {
        let d = Diagnostic::new(
            Code::E0409,
            at,
            format!("this is the same on all devices of `{axis}`, and no summand of each"),
        );
        let d = d.help(format!("leave `sum@{axis}` out where the result is the sum already"));
        return Some((d, format!("`sum@{axis}` adds it up once for each device")));
    }
    let (axis, dim) = said.dims.iter().enumerate().find_map(|(d, axes)| Some((axes.iter().find(shared)?, d)))?;
    let text = format!("this is the same on all devices of `{axis}`, and no block of each");
    let d = Diagnostic::new(Code::E0409, at, text)
        .help(format!("leave `@{axis}` out where it is the result already"))
        .help(format!("or have one copy for each device, one after the other: `dist.each(x, axis=\"{axis}\")`"));
    Some((d, format!("`@{axis}` repeats it along dim {dim}, once for each device")))
}

/// E0409 for a result that differs between devices where it is said to be the same.
fn differs(t: &TensorType, said: &Sharding, name: &str, at: Span) -> Option<(Diagnostic, String)> {
    let axis = t.sharding.each().find(|axis| axes(said).all(|a| a != *axis))?;
    let text =
        format!("this differs between the devices of `{axis}`, and the result of `{name}` says that it is the same");
    let own = t.sharding.own(axis).unwrap_or(Own::Any);
    let d = Diagnostic::new(Code::E0409, at, text)
        .help(format!("annotate it: a dim as `B@{axis}` for blocks one after the other, or `sum@{axis}` for summands"))
        .help(format!("or have the same on all: `dist.collective.all_reduce(x{}`", reduces(own, axis)));
    Some((d, format!("no `{axis}` here")))
}
