//! NumPy's broadcasting over symbolic sizes. A size that is not the constant 1 never counts as 1.

use super::{Operand, mismatch};
use crate::surface::{InferCx, OpError};
use tessera_base::{Code, Size, TensorType};

/// Dims that take part in broadcasting, with what an error says about the argument.
pub struct Part<'a> {
    /// Position of the parameter to blame.
    pub position: usize,
    pub dims: &'a [Size],
    /// What errors call by its full type.
    pub operand: Operand<'a>,
}

impl<'a> Part<'a> {
    pub fn of(position: usize, t: &'a TensorType) -> Part<'a> {
        Part { position, dims: &t.shape, operand: Operand::Tensor(t) }
    }
}

/// The shape that the parts broadcast to.
///
/// # Errors
/// E0203 where two sizes differ, or may differ for a rigid variable.
pub fn broadcast(cx: &mut InferCx, parts: &[Part]) -> Result<Vec<Size>, OpError> {
    let rank = parts.iter().map(|p| p.dims.len()).max().unwrap_or(0);
    let mut out = Vec::with_capacity(rank);
    for back in (1..=rank).rev() {
        let mut chosen: Option<(usize, &Size)> = None;
        for (p, part) in parts.iter().enumerate() {
            let Some(size) = part.dims.len().checked_sub(back).map(|d| &part.dims[d]) else { continue };
            let is_one = |s: &Size| s.as_const() == Some(1);
            chosen = match chosen {
                Some((q, kept)) if !is_one(kept) => {
                    if is_one(size) {
                        Some((q, kept))
                    } else {
                        if let Err(verdict) = cx.require_equal(kept, size) {
                            let what = format!("sizes {kept} and {size} do not broadcast (axis -{back})");
                            let error = mismatch(cx.facts, Code::E0203, what, &verdict, kept, size);
                            return Err(blame(error, &parts[q], part, back));
                        }
                        Some(if size.as_const().is_some() { (p, size) } else { (q, kept) })
                    }
                }
                _ => Some((p, size)),
            };
        }
        out.push(chosen.map(|(_, s)| s.clone()).unwrap_or_default());
    }
    Ok(out)
}

fn blame(error: OpError, a: &Part, b: &Part, back: usize) -> OpError {
    let mut error = error.arg(a.position, a.operand.label()).arg(b.position, b.operand.label());
    // A vector that fits the other operand from the left is the common slip.
    for (vector, other) in [(a, b), (b, a)] {
        let (n, m) = (vector.dims.len(), other.dims.len());
        if back == 1 && n < m && n > 0 && vector.dims == &other.dims[..n] {
            let colons = ":, ".repeat(n);
            let nones = vec!["None"; m - n].join(", ");
            error = error.help(format!("to line up the leading axes, add axes at the end: `[{colons}{nones}]`"));
            break;
        }
    }
    error
}

/// The shape that operands broadcast to; scalars have no dims.
pub fn broadcast_all(cx: &mut InferCx, operands: &[(usize, Operand)]) -> Result<Vec<Size>, OpError> {
    let parts: Vec<Part> = operands.iter().map(|(i, o)| Part { position: *i, dims: o.shape(), operand: *o }).collect();
    broadcast(cx, &parts)
}

/// Checks that `from` broadcasts to exactly `to`.
pub fn broadcast_to(cx: &mut InferCx, from: &TensorType, to: &[Size], i: usize) -> Result<(), OpError> {
    let target = super::tuple(to);
    if from.rank() > to.len() {
        return Err(OpError::new(
            Code::E0203,
            format!("a tensor of rank {} does not broadcast to {target}, which has rank {}", from.rank(), to.len()),
        )
        .arg(0, from.to_string())
        .arg(i, target));
    }
    for (d, (size, want)) in from.shape.iter().zip(&to[to.len() - from.rank()..]).enumerate() {
        if size.as_const() == Some(1) {
            continue;
        }
        if let Err(verdict) = cx.require_equal(size, want) {
            let what = format!("size {size} of axis {d} does not broadcast to {want}");
            return Err(mismatch(cx.facts, Code::E0203, what, &verdict, size, want)
                .arg(0, from.to_string())
                .arg(i, target));
        }
    }
    Ok(())
}
