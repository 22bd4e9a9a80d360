//! The sizes at which a program calls a function, where its calls say them.

use crate::ask::Asked;
use crate::cli::{OfFunction, Sizes, Values};
use std::collections::BTreeMap;
use tessera_base::Span;
use tessera_core::ir::{InstId, TExpr, TKind};
use tessera_core::sizes::each_size;
use tessera_core::ty::Ty;
use tessera_core::walk::each_expr_in;
use tessera_infer::asked::Literal;

/// What a call of the program says of the sizes of a function.
pub struct OfCall {
    pub of: OfFunction,
    /// The call; none where the signature itself has numbers for all sizes.
    pub call: Option<Span>,
}

/// Numbers of the sizes of a signature, by name.
type Numbers = BTreeMap<String, i64>;

/// The sizes of the first call that says all of them.
///
/// # Errors
/// The sizes that no call says.
pub fn sizes_of_calls(asked: &Asked) -> Result<OfCall, Vec<String>> {
    let open = open_sizes(asked);
    if open.is_empty() {
        return Ok(OfCall { of: OfFunction { function: None, sizes: None, values: None }, call: None });
    }
    let insts = &asked.program.insts;
    let own = |inst: InstId| inst == asked.function.inst || insts[inst.0 as usize].span == asked.inst().span;
    let mut found: Option<(Numbers, Span)> = None;
    for body in insts.iter().map(|f| &f.body) {
        each_expr_in(body, &mut |e| {
            if let TKind::Call { inst, args, .. } = &e.kind
                && found.is_none()
                && own(*inst)
            {
                let numbers = numbers(asked, args);
                found = open.iter().all(|name| numbers.contains_key(name)).then_some((numbers, e.span));
            }
        });
    }
    let Some((numbers, call)) = found else { return Err(open) };
    let is_param = |name: &String| asked.params().any(|(p, _)| *p.name == **name);
    let (values, sizes): (Vec<_>, Vec<_>) = numbers.into_iter().partition(|(name, _)| is_param(name));
    let values = values.into_iter().map(|(name, n)| (name, n.to_string())).collect();
    let of = OfFunction { function: None, sizes: Some(Sizes(sizes)), values: Some(Values(values)) };
    Ok(OfCall { of, call: Some(call) })
}

/// Sizes of the signature that have no number there. Ints with a default have that.
fn open_sizes(asked: &Asked) -> Vec<String> {
    let mut out: Vec<String> = vec![];
    for (p, ty) in asked.params() {
        if matches!((ty, &p.default), (Ty::Int(Some(_)), Some(Literal::Int(_)))) {
            continue;
        }
        each_size(ty, &mut |size| out.extend(size.vars().iter().map(|v| v.name.to_string())));
    }
    out.sort();
    out.dedup();
    out
}

/// What the types of arguments make of the sizes that stand alone in a parameter.
fn numbers(asked: &Asked, args: &[TExpr]) -> Numbers {
    let mut out = Numbers::new();
    for ((_, declared), arg) in asked.params().zip(args) {
        let (mut names, mut found) = (vec![], vec![]);
        each_size(declared, &mut |size| names.push(size.as_var().map(|v| v.name.to_string())));
        each_size(&arg.ty, &mut |size| found.push(size.as_const()));
        if names.len() == found.len() {
            out.extend(names.into_iter().zip(found).filter_map(|(name, n)| Some((name?, n?))));
        }
    }
    out
}
