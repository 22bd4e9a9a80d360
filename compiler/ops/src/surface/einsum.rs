//! `einsum`, and the products that are special cases of it: `tensordot` and `outer`.

mod contract;
mod equation;

use self::contract::contract;
use self::equation::{Equation, Label};
use super::expand;
use super::matmul::{product_dtype, product_result};
use super::row::{Call, Lowered, Row, accumulator, opt, req};
use super::rule::{self, Inferred};
use super::*;

pub const EINSUM: Row =
    Row::new("einsum", &[req("equation", ParamKind::Str), req("operands", ParamKind::Tensors)], infer_einsum, lower_einsum).product_of(&[1]).halves().doc(
        "Sum of products over named dims.\n\n\
         Each operand's dims are named by letters; letters that the output leaves out are summed over, a letter twice in \
         one operand takes its diagonal, and `...` stands for leading dims, which broadcast. Without `->` the output is \
         the letters that occur once, in alphabetical order. Operands meet in one dtype and accumulate as in `matmul`, \
         pairwise from left to right; the result is rounded once.\n\n\
         E0201: a contracted letter has two sizes. E0202: another letter has.\n\n\
         ```tessera\nop.einsum(\"bqhd,bkhd->bhqk\", q, k)\n```",
    );

/// The size of each label over all operands.
fn label_sizes(cx: &mut InferCx, eq: &Equation, ts: &[TensorType]) -> Result<BTreeMap<Label, Size>, OpError> {
    let mut sizes: BTreeMap<Label, (usize, Size)> = BTreeMap::new();
    let one = Size::constant(1);
    for (i, (labels, t)) in eq.inputs.iter().zip(ts).enumerate() {
        for (&label, size) in labels.iter().zip(&t.shape) {
            let Some((j, have)) = sizes.get(&label).cloned() else {
                sizes.insert(label, (i, size.clone()));
                continue;
            };
            // Only the dims of an ellipsis broadcast.
            if label.is_ellipsis() && (have == one || *size == one) {
                if have == one {
                    sizes.insert(label, (i, size.clone()));
                }
                continue;
            }
            let code = if eq.output.contains(&label) { Code::E0202 } else { Code::E0201 };
            let text = || format!("`{label}` is {have} in operand {j} and {size} in operand {i}");
            rule::require(cx, &have, size, code, text, |e| blame(e, ts))?;
            if size.as_const().is_some() {
                sizes.insert(label, (i, size.clone()));
            }
        }
    }
    Ok(sizes.into_iter().map(|(label, (_, size))| (label, size)).collect())
}

fn blame(error: OpError, ts: &[TensorType]) -> OpError {
    error.arg(1, ts.iter().map(TensorType::to_string).collect::<Vec<_>>().join(", "))
}

fn parse(args: &[SymArg]) -> Result<(Equation, Vec<TensorType>), OpError> {
    let ts = match args.get(1) {
        Some(SymArg::Tensor(t)) => vec![t.clone()],
        _ => rule::tensors(args, 1)?.to_vec(),
    };
    let ranks: Vec<usize> = ts.iter().map(TensorType::rank).collect();
    let eq = equation::parse(rule::text(args, 0)?, &ranks)
        .map_err(|(code, text)| blame(OpError::new(code, text).arg(0, "this equation"), &ts))?;
    Ok((eq, ts))
}

fn operand_type(name: &str, ts: &[TensorType]) -> Result<Option<DType>, OpError> {
    product_dtype(name, &ts.iter().map(|t| (1, t)).collect::<Vec<_>>())
}

fn infer_einsum(cx: &mut InferCx, args: &[SymArg], _: &Hints) -> Inferred {
    let (eq, ts) = parse(args)?;
    let dtype = operand_type("einsum", &ts)?.map(|d| result_of(&eq, d));
    let sizes = label_sizes(cx, &eq, &ts)?;
    rule::one(eq.output.iter().map(|l| sizes.get(l).cloned().unwrap_or_default()).collect(), dtype)
}

/// The dtype of the result: one operand is rearranged, or summed as by `sum`.
fn result_of(eq: &Equation, dtype: DType) -> DType {
    match &eq.inputs[..] {
        [x] if x.iter().all(|l| eq.output.contains(l)) => dtype,
        [_] if dtype.is_int() => DType::I64,
        _ => product_result(dtype),
    }
}

fn lower_einsum(call: &mut Call) -> Lowered {
    let (eq, ts) = parse(&call.sym)?;
    let dtype = operand_type("einsum", &ts)?.unwrap_or(DType::F32);
    let ids = call.ids(1);
    lower(call, &eq, &ids, dtype)
}

fn lower(call: &mut Call, eq: &Equation, ids: &[Id], dtype: DType) -> Lowered {
    let (_, result) = call.result();
    let accum = accumulator(dtype, call.hints);
    let terms =
        ids.iter().zip(&eq.inputs).map(|(&x, labels)| (expand::cast(call.b, x, dtype), labels.clone())).collect();
    Ok(vec![contract(call.b, terms, &eq.output, accum, result)])
}

pub const TENSORDOT: Row = Row::new(
    "tensordot",
    &[req("x", ParamKind::Tensor), req("y", ParamKind::Tensor), opt("axes", ParamKind::Pairs, Default::Int(2))],
    infer_tensordot,
    lower_tensordot,
)
.product_of(&[0, 1])
.halves()
.doc(
    "Sum of products over several axes of two tensors.\n\n\
     `axes=n` contracts the last `n` axes of `x` with the first `n` of `y`; a pair of tuples names them. The result has \
     the other axes of `x`, then those of `y`.\n\n```tessera\nop.tensordot(x, y, axes=((0, 1), (1, 0)))\n```",
);

/// The contracted axes of both operands.
fn pairs(args: &[SymArg]) -> Result<Vec<(usize, usize)>, OpError> {
    let (x, y) = (rule::tensor(args, 0)?, rule::tensor(args, 1)?);
    let given = rule::ints_const(args, 2, "an axis")?;
    if let [count] = given[..] {
        let most = x.rank().min(y.rank());
        let n = usize::try_from(count).ok().filter(|n| *n <= most);
        let n = n.ok_or_else(|| {
            OpError::new(
                Code::E0207,
                format!("{count} axes of tensors of rank {} and {} cannot be contracted", x.rank(), y.rank()),
            )
            .arg(0, x.to_string())
            .arg(1, y.to_string())
        })?;
        return Ok((0..n).map(|i| (x.rank() - n + i, i)).collect());
    }
    if given.len() % 2 != 0 {
        return Err(OpError::new(Code::E0207, "as many axes of the first tensor as of the second are contracted")
            .arg(2, rule::tuple(&given)));
    }
    let (a, b) = given.split_at(given.len() / 2);
    let mut out: Vec<(usize, usize)> = vec![];
    for (&i, &j) in a.iter().zip(b) {
        let pair = (rule::normal_axis(i, x.rank(), 2, x)?, rule::normal_axis(j, y.rank(), 2, y)?);
        if out.iter().any(|p| p.0 == pair.0 || p.1 == pair.1) {
            return Err(OpError::new(Code::E0207, "an axis is named twice").arg(2, rule::tuple(&given)));
        }
        out.push(pair);
    }
    Ok(out)
}

/// The contraction as an equation.
fn as_equation(x: usize, y: usize, pairs: &[(usize, usize)]) -> Equation {
    let left: Vec<Label> = (0..x).map(|i| Label::numbered(i as u32)).collect();
    let right: Vec<Label> = (0..y)
        .map(|j| pairs.iter().find(|p| p.1 == j).map_or(Label::numbered((x + j) as u32), |p| left[p.0]))
        .collect();
    let output =
        left.iter().filter(|l| !right.contains(l)).chain(right.iter().filter(|l| !left.contains(l))).copied().collect();
    Equation { inputs: vec![left, right], output }
}

fn infer_tensordot(cx: &mut InferCx, args: &[SymArg], _: &Hints) -> Inferred {
    let (x, y) = (rule::tensor(args, 0)?, rule::tensor(args, 1)?);
    let dtype = product_dtype("tensordot", &[(0, x), (1, y)])?;
    let pairs = pairs(args)?;
    for &(i, j) in &pairs {
        let text = || {
            format!(
                "the contracted sizes differ: axis {i} of the first tensor has size {}, axis {j} of the second {}",
                x.shape[i], y.shape[j]
            )
        };
        rule::require(cx, &x.shape[i], &y.shape[j], Code::E0201, text, |e| {
            e.arg(0, x.to_string()).arg(1, y.to_string())
        })?;
    }
    let rest = |t: &TensorType, used: Vec<usize>| rule::reduced(&t.shape, &used, false);
    let left = rest(x, pairs.iter().map(|p| p.0).collect());
    let right = rest(y, pairs.iter().map(|p| p.1).collect());
    rule::one([left, right].concat(), dtype.map(product_result))
}

fn lower_tensordot(call: &mut Call) -> Lowered {
    let (x, y) = (call.ty(0)?, call.ty(1)?);
    let dtype = product_dtype("tensordot", &[(0, &x), (1, &y)])?.unwrap_or(DType::F32);
    let eq = as_equation(x.rank(), y.rank(), &pairs(&call.sym)?);
    let ids = [call.id(0)?, call.id(1)?];
    lower(call, &eq, &ids, dtype)
}

pub const OUTER: Row = Row::new("outer", &[req("x", ParamKind::Tensor), req("y", ParamKind::Tensor)], infer_outer, lower_outer)
    .signature("m, n -> m n")
    .halves()
    .doc("The products of every element of `x` with every element of `y`, both flattened.\n\n```tessera\nop.outer(a, b)    # Tensor[M, f32], Tensor[N, f32] -> Tensor[M, N, f32]\n```");

fn infer_outer(_: &mut InferCx, args: &[SymArg], _: &Hints) -> Inferred {
    let (x, y) = (rule::tensor(args, 0)?, rule::tensor(args, 1)?);
    rule::one(vec![x.elems(), y.elems()], product_dtype("outer", &[(0, x), (1, y)])?.map(product_result))
}

fn lower_outer(call: &mut Call) -> Lowered {
    let (x, y) = (call.ty(0)?, call.ty(1)?);
    let dtype = product_dtype("outer", &[(0, &x), (1, &y)])?.unwrap_or(DType::F32);
    let shape = call.result().0;
    let (x, y) = (call.id(0)?, call.id(1)?);
    let x = expand::reshape(call.b, x, &[shape[0]]);
    let y = expand::reshape(call.b, y, &[shape[1]]);
    lower(call, &as_equation(1, 1, &[]), &[x, y], dtype)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{tensor, type_text};
    use super::*;

    fn einsum(equation: &str, operands: &[&str]) -> String {
        type_text(
            "einsum",
            &[SymArg::Str(equation.into()), SymArg::Tensors(operands.iter().map(|t| tensor(t)).collect())],
        )
    }

    #[test]
    fn equations() {
        assert_eq!(einsum("bqhd,bkhd->bhqk", &["B T H D f32", "B S H D f32"]), "Tensor[B, H, T, S, f32]");
        assert_eq!(einsum("ij,jk", &["2 3 f32", "3 4 f32"]), "Tensor[2, 4, f32]");
        assert_eq!(einsum("ii", &["3 3 f32"]), "Tensor[f32]");
        assert_eq!(einsum("...ij,...jk->...ik", &["B 1 2 3 f32", "5 3 4 bf16"]), "Tensor[B, 5, 2, 4, f32]");
        assert_eq!(
            einsum("ij,jk->ik", &["2 3 f32", "4 5 f32"]),
            "E0201 `j` is 3 in operand 0 and 4 in operand 1 | 1: Tensor[2, 3, f32], Tensor[4, 5, f32]"
        );
        assert_eq!(
            einsum("ijk,jk->ik", &["2 3 f32", "4 5 f32"]),
            "E0207 `ijk` names 3 dims, and operand 0 has rank 2 | 0: this equation | 1: Tensor[2, 3, f32], Tensor[4, 5, f32]"
        );
    }
}
