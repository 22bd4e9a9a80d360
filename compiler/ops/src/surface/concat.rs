//! `concat` and `stack`: several tensors as one.

use super::expand;
use super::row::{Call, Lowered, Row, opt, req};
use super::rule::{self, Inferred};
use super::*;

const PARAMS: &[Param] = &[req("tensors", ParamKind::Tensors), opt("axis", ParamKind::Axis, Default::Int(0))];

pub const CONCAT: Row =
    Row::new("concat", PARAMS, infer_concat, lower_concat).known_as(&["concatenate", "cat", "hstack", "vstack"]).doc(
        "The tensors of a list one after the other along an axis.\n\n\
         All other sizes must be equal; dtypes widen to a common one where that is exact.\n\n\
         ```tessera\nop.concat([a, b], axis=1)    # Tensor[N, 3, f32] and Tensor[N, 4, f32] -> Tensor[N, 7, f32]\n```",
    );

pub const STACK: Row = Row::new("stack", PARAMS, infer_stack, lower_stack)
    .known_as(&["pack"])
    .doc("The tensors of a list, all of one shape, along a new axis.\n\n```tessera\nop.stack([a, b], axis=0)    # 2 × Tensor[N, f32] -> Tensor[2, N, f32]\n```");

/// All types in full, since the list is one argument.
fn list_types(error: OpError, ts: &[TensorType]) -> OpError {
    let shown: Vec<String> = ts.iter().take(8).map(TensorType::to_string).collect();
    let dots = if ts.len() > shown.len() { ", …" } else { "" };
    error.arg(0, format!("{}{dots}", shown.join(", ")))
}

/// Rank and dtype that the tensors share.
fn common(ts: &[TensorType]) -> Result<Option<DType>, OpError> {
    if let Some((i, t)) = ts.iter().enumerate().find(|(_, t)| t.rank() != ts[0].rank()) {
        let text = format!(
            "tensors of one rank are needed: element 0 has rank {}, element {i} has rank {}",
            ts[0].rank(),
            t.rank()
        );
        return Err(list_types(OpError::new(Code::E0207, text), ts));
    }
    let list: Vec<(usize, &TensorType)> = ts.iter().map(|t| (0, t)).collect();
    rule::join_tensors(&list).map_err(|mut e| {
        e.args.clear();
        list_types(e, ts)
    })
}

fn infer_concat(cx: &mut InferCx, args: &[SymArg], _: &Hints) -> Inferred {
    let ts = rule::tensors(args, 0)?;
    let dtype = common(ts)?;
    if ts[0].rank() == 0 {
        let error = OpError::new(Code::E0207, "tensors of rank 0 have no axis to concatenate along");
        return Err(list_types(error, ts).help("join them along a new axis: `op.stack([…])`"));
    }
    let axis = rule::axis(args, 1, &ts[0])?;
    let mut shape = ts[0].shape.clone();
    for (i, t) in ts.iter().enumerate().skip(1) {
        for (d, size) in t.shape.iter().enumerate() {
            if d == axis {
                shape[d] = shape[d].add(size);
                continue;
            }
            let text = || {
                format!(
                    "the sizes of axis {d} differ: {} in element 0, {size} in element {i}; only axis {axis} may differ",
                    ts[0].shape[d]
                )
            };
            rule::require(cx, &ts[0].shape[d], size, Code::E0202, text, |e| {
                let error = list_types(e, ts);
                // The one axis along which they would fit.
                let others = |k: usize| (0..t.rank()).all(|j| j == k || ts[0].shape[j] == t.shape[j]);
                match (0..t.rank()).find(|&k| k != axis && others(k)) {
                    Some(k) => error.help(format!("along axis {k} they fit: `axis={k}`")),
                    None => error,
                }
            })?;
        }
    }
    rule::one(shape, dtype)
}

fn infer_stack(cx: &mut InferCx, args: &[SymArg], _: &Hints) -> Inferred {
    let ts = rule::tensors(args, 0)?;
    let dtype = common(ts)?;
    for (i, t) in ts.iter().enumerate().skip(1) {
        for (d, (a, b)) in ts[0].shape.iter().zip(&t.shape).enumerate() {
            let text = || {
                format!("tensors of one shape are needed: axis {d} has size {a} in element 0 and {b} in element {i}")
            };
            rule::require(cx, a, b, Code::E0202, text, |e| list_types(e, ts))?;
        }
    }
    let axis = rule::normal_axis(rule::int_const(args, 1, "an axis")?, ts[0].rank() + 1, 1, &ts[0])?;
    let mut shape = ts[0].shape.clone();
    shape.insert(axis, Size::constant(ts.len() as i64));
    rule::one(shape, dtype)
}

/// The operands in their common dtype.
fn operands(call: &mut Call) -> Result<Vec<Id>, OpError> {
    let dtype = common(rule::tensors(&call.sym, 0)?)?.unwrap_or(DType::F32);
    Ok(call.ids(0).into_iter().map(|x| expand::cast(call.b, x, dtype)).collect())
}

fn lower_concat(call: &mut Call) -> Lowered {
    let axis = rule::axis(&call.sym, 1, &rule::tensors(&call.sym, 0)?[0])?;
    let xs = operands(call)?;
    Ok(vec![expand::concat(call.b, &xs, axis)])
}

fn lower_stack(call: &mut Call) -> Lowered {
    let first = rule::tensors(&call.sym, 0)?[0].clone();
    let axis = rule::normal_axis(rule::int_const(&call.sym, 1, "an axis")?, first.rank() + 1, 1, &first)?;
    let xs: Vec<Id> = operands(call)?.into_iter().map(|x| expand::unsqueeze(call.b, x, &[axis])).collect();
    Ok(vec![expand::concat(call.b, &xs, axis)])
}

#[cfg(test)]
mod tests {
    use super::super::testing::{error_text, n, tensor};
    use super::*;

    #[test]
    fn other_sizes_must_agree() {
        let args = [SymArg::Tensors(vec![tensor("2 3 f32"), tensor("2 4 f32")]), SymArg::Int(n(0))];
        assert_eq!(
            error_text("concat", &args),
            "E0202 the sizes of axis 1 differ: 3 in element 0, 4 in element 1; only axis 0 may differ \
             | 0: Tensor[2, 3, f32], Tensor[2, 4, f32] | help: along axis 1 they fit: `axis=1`"
        );
        let args = [SymArg::Tensors(vec![tensor("N f32"), tensor("M f16")]), SymArg::Int(n(0))];
        assert_eq!(error_text("concat", &args), "");
    }
}
