//! `reshape` and `flatten`: other dims for the same elements.

use super::expand;
use super::row::{Call, Lowered, Row, opt, req};
use super::rule::{self, Inferred};
use super::*;

pub const RESHAPE: Row = Row::new("reshape", &[req("x", ParamKind::Tensor), req("shape", ParamKind::Shape)], infer, lower)
    .method()
    .open_shape(1)
    .known_as(&["view"])
    .doc(
        "The same elements in row-major order under another shape.\n\n\
         One size may be -1: it takes what the others leave, which the types say, so that `x.reshape(N, -1)` of `Tensor[N, 3, 4]` is \
         `[N, 12]` for no rows too. A -1 that only the run knows is a negative size (E0711). The number of elements must be the same, for all sizes of a \
         signature; `assert D % H == 0` lets `x.reshape(B, H, -1)` divide `D` exactly.\n\n\
         ```tessera\nx.reshape(B, T, H, D // H)\n```",
    );

pub const FLATTEN: Row = Row::new(
    "flatten",
    &[
        req("x", ParamKind::Tensor),
        opt("start_dim", ParamKind::Axis, Default::Int(0)),
        opt("end_dim", ParamKind::Axis, Default::Int(-1)),
    ],
    infer_flatten,
    |call| {
        let (x, out) = (call.id(0)?, call.result().0);
        Ok(vec![expand::reshape(call.b, x, &out)])
    },
)
.method()
.known_as(&["ravel"])
.doc("The dims `start_dim` to `end_dim` (all by default) joined into one.\n\n```tessera\nx.flatten(1)    # Tensor[N, C, H, W, f32] -> Tensor[N, C*H*W, f32]\n```");

fn infer(cx: &mut InferCx, args: &[SymArg], _: &Hints) -> Inferred {
    let x = rule::tensor(args, 0)?;
    let sizes = rule::ints(args, 1)?;
    rule::one(new_shape(cx, x, sizes)?, x.dtype)
}

/// The sizes with -1 filled in, after the check that the number of elements is kept.
fn new_shape(cx: &mut InferCx, x: &TensorType, mut sizes: Vec<Size>) -> Result<Vec<Size>, OpError> {
    let asked = rule::tuple(&sizes);
    let (minus, zero) = (Some(-1), Size::constant(0));
    let elems = x.elems();
    let open: Vec<usize> = (0..sizes.len()).filter(|&i| sizes[i].as_const() == minus).collect();
    if let Some(s) = sizes.iter().find(|s| s.as_const().is_some_and(|n| n < -1)) {
        return Err(rule::negative(s, 1).help("only -1 stands for an open size"));
    }
    let fail = |e: OpError| e.arg(0, x.to_string()).arg(1, asked.clone());
    match open[..] {
        [] => {
            let new = rule::product(&sizes);
            if let Err(verdict) = cx.require_equal(&elems, &new) {
                let text = format!("{x} has {elems} elements, and the shape {asked} has {new}");
                return Err(fail(rule::mismatch(cx.facts, Code::E0208, text, &verdict, &elems, &new)));
            }
        }
        [at] => {
            let rest: Vec<Size> = sizes.iter().enumerate().filter(|(i, _)| *i != at).map(|(_, s)| s.clone()).collect();
            let rest = rule::product(&rest);
            if rest == zero {
                return Err(fail(
                    OpError::new(Code::E0208, "the size -1 is not determined beside a size of 0")
                        .help("write the size in place of -1"),
                ));
            }
            let whole = elems.normal(cx.facts).exact_div(&rest.normal(cx.facts)).or_else(|| elems.exact_div(&rest));
            sizes[at] = match whole {
                Some(size) => size,
                None => {
                    let quotient = elems.floor_div(&rest).unwrap_or_default();
                    let covered = quotient.mul(&rest);
                    if let Err(verdict) = cx.require_equal(&elems, &covered) {
                        let text = format!("{x} has {elems} elements, and {rest} does not divide that");
                        let error = OpError::new(Code::E0208, text);
                        let error = match counterexample(&verdict, &rest) {
                            Some(text) => error.witness(text),
                            None => error,
                        };
                        return Err(fail(match cx.facts.advice_equal(&elems, &covered) {
                            Some(help) => error.help(help),
                            None => error,
                        }));
                    }
                    quotient
                }
            };
        }
        _ => return Err(fail(OpError::new(Code::E0208, "only one size of a shape may be -1"))),
    }
    Ok(sizes)
}

/// Values of the variables where the division leaves a remainder.
fn counterexample(verdict: &Verdict, divisor: &Size) -> Option<String> {
    let (Verdict::Differ(w) | Verdict::Depends(w)) = verdict else { return None };
    let by = divisor.eval(&|v| w.values.iter().find(|(name, _)| *name == v.name).map(|(_, n)| *n))?;
    let values: Vec<String> = w.values.iter().map(|(name, n)| format!("{name}={n}")).collect();
    (!values.is_empty()).then(|| format!("{} gives {} to divide by {by}", values.join(", "), w.left))
}

fn lower(call: &mut Call) -> Lowered {
    let (x, out) = (call.id(0)?, call.result().0);
    Ok(vec![expand::reshape(call.b, x, &out)])
}

fn infer_flatten(_: &mut InferCx, args: &[SymArg], _: &Hints) -> Inferred {
    let x = rule::tensor(args, 0)?;
    if x.rank() == 0 {
        return rule::one(vec![Size::constant(1)], x.dtype);
    }
    let (start, end) = (rule::axis(args, 1, x)?, rule::axis(args, 2, x)?);
    if start > end {
        return Err(OpError::new(
            Code::E0207,
            format!("`flatten` from axis {start} to axis {end}, which comes before"),
        )
        .arg(0, x.to_string())
        .arg(1, "this is the later one"));
    }
    let mut shape = x.shape[..start].to_vec();
    shape.push(rule::product(&x.shape[start..=end]));
    shape.extend_from_slice(&x.shape[end + 1..]);
    rule::one(shape, x.dtype)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{error_text, n, tensor, tensor_arg};
    use super::*;

    #[test]
    fn element_counts_must_agree() {
        let args = [tensor_arg("2 6 f32"), SymArg::Ints(vec![n(5), n(3)])];
        assert_eq!(
            error_text("reshape", &args),
            "E0208 Tensor[2, 6, f32] has 12 elements, and the shape (5, 3) has 15 | 0: Tensor[2, 6, f32] | 1: (5, 3)"
        );
        let args = [
            tensor_arg("B D f32"),
            SymArg::Ints(vec![tensor("B f32").shape[0].clone(), tensor("H f32").shape[0].clone(), n(-1)]),
        ];
        assert_eq!(
            error_text("reshape", &args),
            "E0208 Tensor[B, D, f32] has B*D elements, and B*H does not divide that | 0: Tensor[B, D, f32] | 1: (B, H, -1) \
             | for example B=1, D=1, H=2 gives 1 to divide by 2 | help: if H divides D, say so before: `assert D % H == 0`"
        );
    }

    #[test]
    fn divisible_sizes_split() {
        let (b, d, h) =
            (tensor("B f32").shape[0].clone(), tensor("D f32").shape[0].clone(), tensor("H f32").shape[0].clone());
        let mut facts = Facts::default();
        facts.assume_divides(&h, &d);
        let x = TensorType::new(vec![b.clone(), d.clone()], DType::F32);
        let mut fresh = |_: &str| Size::default();
        let mut cx = InferCx { facts: &facts, fresh: &mut fresh, checks: vec![], reaches: vec![], notes: vec![] };
        let shape = new_shape(&mut cx, &x, vec![b.clone(), h.clone(), n(-1)]).unwrap();
        assert_eq!(shape[2].to_string(), "D//H");
        let q = d.floor_div(&h).unwrap();
        assert!(new_shape(&mut cx, &x, vec![b, h, q]).is_ok());
    }
}
