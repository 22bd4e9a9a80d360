//! `attention`: scaled dot-product attention.

mod by_blocks;

use super::expand;
use super::matmul::product_dtype;
use super::row::{Call, Lowered, Row, accumulator, req, wide_of};
use super::rule::{self, Inferred, require};
use super::triangle::relation;
use super::*;
use crate::map::MapOp;
use crate::prim::{Reduction, Steps};
use by_blocks::{Whole, along_rows, flip};

const fn keyword(name: &'static str, kind: ParamKind, default: Default) -> Param {
    Param { name, kind, default, keyword_only: true }
}

pub const ATTENTION: Row = Row::new(
    "attention",
    &[
        req("q", ParamKind::Tensor),
        req("k", ParamKind::Tensor),
        req("v", ParamKind::Tensor),
        keyword("causal", ParamKind::Bool, Default::Bool(false)),
        keyword("mask", ParamKind::Tensor, Default::None),
        keyword("scale", ParamKind::Float, Default::None),
        keyword("softcap", ParamKind::Float, Default::None),
    ],
    infer,
    lower,
)
.known_as(&["flash_attn", "flash_attention", "sdpa", "scaled_dot_product_attention"])
.signature("b h s d, b h t d, b h t e -> b h s e")
.product_of(&[0, 1, 2])
.doc(
    "Scaled dot-product attention: `softmax(scale * q @ k.T + mask) @ v` over the last two dims.\n\n\
     `q` is `[…, S, D]`, `k` `[…, T, D]`, `v` `[…, T, E]`; the result is `[…, S, E]`. The leading dims are equal, except that \
     the heads (axis -3) of `k` and `v` may divide those of `q`: each then serves a group of neighbouring heads. `mask` \
     broadcasts to `[…, S, T]`: bool keeps where it is true, floats are added. `causal=True` keeps key `j` for query `i` \
     where `j <= i`, counted from the start of both. `scale` is `1 / sqrt(D)` by default and multiplies `q`. With `softcap=c` a \
     score `s` becomes `c * tanh(s / c)`, before the mask, so that none is larger than `c` (Gemma 2).\n\n\
     A query that keeps no key gives zeros. Keys after a causal query's position never count, not even where `v` is \
     infinite there. f32 inside for narrower types (`accum_dtype=f64` for more), one rounding at the end; the sum divides \
     last. One kernel besides the packing of keys and values, with memory for a few rows of scores at a time; a mask that is made of \
     positions, such as that of a sliding window, is computed in it. (Vaswani et al., 2017.)\n\n\
     The derivative computes scores again: all of them, or from 2,048 queries and 1,024 keys on those of 256 queries at a time, so that \
     memory grows with the positions, not with their square; keys after a causal query then have weight 0, and what is \
     infinite there gives nan. The cotangent of a float mask takes all of them.\n\n\
     E0201: `q` and `k` have different features. E0202: heads, keys or batches differ. E0711: `softcap` is not above 0.\n\n\
     ```tessera\nop.attention(q, k, v, causal=True)    # [B, H, S, D], [B, G, T, D], [B, G, T, E] -> [B, H, S, E]\n```",
);

fn infer(cx: &mut InferCx, args: &[SymArg], _: &Hints) -> Inferred {
    let tensors = [rule::tensor(args, 0)?, rule::tensor(args, 1)?, rule::tensor(args, 2)?];
    let [q, k, v] = tensors;
    let names = ["q", "k", "v"];
    for (i, t) in tensors.into_iter().enumerate() {
        rule::at_least_rank(t, 2, i, "attention")?;
        rule::as_float("attention", t, i)?;
        if t.rank() != q.rank() {
            return Err(OpError::new(Code::E0207, "queries, keys and values of one rank are needed")
                .arg(0, q.to_string())
                .arg(i, t.to_string()));
        }
    }
    let rank = q.rank();
    let both = |i: usize, j: usize| move |e: OpError| e.arg(i, tensors[i].to_string()).arg(j, tensors[j].to_string());
    let (d, e) = (&q.shape[rank - 1], &k.shape[rank - 1]);
    let text = || format!("queries have {d} features and keys {e}");
    require(cx, d, e, Code::E0201, text, both(0, 1))?;
    let (t, u) = (&k.shape[rank - 2], &v.shape[rank - 2]);
    let text = || format!("there are {t} keys and {u} values");
    require(cx, t, u, Code::E0202, text, both(1, 2))?;
    for axis in 0..rank - 2 {
        let (m, n) = (&k.shape[axis], &v.shape[axis]);
        let text = || format!("axis {axis} of the keys has size {m}, and of the values {n}");
        require(cx, m, n, Code::E0202, text, both(1, 2))?;
        let (m, n) = (&q.shape[axis], &k.shape[axis]);
        if axis + 3 == rank {
            heads(cx, m, n, both(0, 1))?;
        } else {
            let text = || format!("axis {axis} of the queries has size {m}, and of the keys {n}");
            require(cx, m, n, Code::E0202, text, both(0, 1))?;
        }
    }
    flags(cx, args, q, t)?;
    let dtype = product_dtype("attention", &[0, 1, 2].map(|i: usize| (i, tensors[i])))
        .map_err(|e| e.note(format!("{} are multiplied with one another", names.join(", "))))?;
    let mut shape = q.shape.clone();
    shape[rank - 1] = v.shape[rank - 1].clone();
    rule::one(shape, dtype.map(|d| if d.is_float() { d } else { DType::F32 }))
}

/// The heads of the keys must divide those of the queries.
fn heads(cx: &mut InferCx, queries: &Size, keys: &Size, blame: impl FnOnce(OpError) -> OpError) -> Result<(), OpError> {
    if queries.normal(cx.facts).exact_div(keys).is_some() {
        return Ok(());
    }
    let text = || format!("{keys} heads of keys do not divide {queries} heads of queries");
    // Where nothing else is known they are equal, or a multiple when the data says so.
    let whole = match (queries.as_const(), keys.as_const()) {
        (Some(_), Some(0)) => Size::constant(0),
        (Some(q), Some(k)) => Size::constant(q - q.rem_euclid(k)),
        _ if queries.vars().iter().chain(&keys.vars()).any(|v| v.rigid) => keys.clone(),
        _ => queries.floor_div(keys).unwrap_or_default().mul(keys),
    };
    require(cx, queries, &whole, Code::E0202, text, blame)
}

/// `causal`, `mask`, `scale` and `softcap`.
fn flags(cx: &mut InferCx, args: &[SymArg], q: &TensorType, keys: &Size) -> Result<(), OpError> {
    rule::late_flag(args, 3)?;
    if !rule::absent(args, 5) {
        rule::float(args, 5)?;
    }
    if !rule::absent(args, 6) {
        rule::float(args, 6)?;
        match &args[6] {
            SymArg::Tensor(t) => {
                return Err(OpError::new(Code::E0204, "`softcap` is a number of the program, not a tensor")
                    .arg(6, t.to_string()));
            }
            SymArg::Float(Some(cap)) if !(*cap > 0.0 && cap.is_finite()) => {
                return Err(OpError::new(
                    Code::E0711,
                    format!("scores are kept below a number above 0, and {cap} is none"),
                )
                .arg(6, "above 0")
                .help("leave it out where scores are not to be limited"));
            }
            _ => {}
        }
    }
    let Some(mask) = rule::optional_tensor(args, 4)? else { return Ok(()) };
    let mut scores = q.shape.clone();
    scores.pop();
    scores.push(keys.clone());
    rule::broadcast_to(cx, mask, &scores, 0).map_err(|mut e| {
        e.args = vec![(0, q.to_string()), (4, format!("{mask}; the scores are {}", rule::tuple(&scores)))];
        e
    })?;
    match mask.dtype {
        Some(d) if d != DType::Bool && !d.is_float() => {
            Err(OpError::new(Code::E0205, format!("a mask is bool (true keeps) or a float that is added, not {d}"))
                .arg(4, mask.to_string())
                .help("`mask != 0` makes a bool mask"))
        }
        _ => Ok(()),
    }
}

fn lower(call: &mut Call) -> Lowered {
    let types = [call.ty(0)?, call.ty(1)?, call.ty(2)?];
    let operands = product_dtype("attention", &[(0, &types[0]), (1, &types[1]), (2, &types[2])])?;
    let operands = operands.filter(|d| d.is_float()).unwrap_or(DType::F32);
    let wide = accumulator(wide_of(operands), call.hints);
    let causal = rule::flag(&call.sym, 3)?;
    let (out, _) = call.result();
    if out.contains(&0) || types[1].shape.iter().any(Size::is_zero) {
        return Ok(vec![expand::full(call.b, &out, wide, Scalar::F(0.0))]);
    }
    let cap = match call.args.get(6) {
        None | Some(Arg::None) => None,
        _ => Some(call.operand(6, &[], wide)?),
    };
    let q = queries(call, wide)?;
    let (k, v) = (call.id(1)?, call.id(2)?);
    let mask = call.optional_id(4);
    let b = &mut *call.b;
    let heads = b.shape(q);
    let [k, v] = [k, v].map(|x| {
        let x = expand::cast(b, x, operands);
        let x = expand::cast(b, x, wide);
        repeat_heads(b, x, &heads)
    });
    let rank = heads.len();
    let turned: Vec<usize> = (0..rank - 2).chain([rank - 1, rank - 2]).collect();
    let k = expand::transpose(b, k, &turned);
    let mask = mask.map(|mask| {
        let of = if b.dtype(mask) == DType::Bool { DType::Bool } else { wide };
        expand::cast(b, mask, of)
    });
    let (scores, _) = scores(b, q, k, Limits { mask, causal, cap });
    let (out, base, sum) = weigh(b, scores, v, causal);
    let inputs = [q, k, v].into_iter().chain(mask).collect();
    let pull: Pull = Arc::new(move |b, p| pull(b, p, causal));
    let saved = [base, sum].into_iter().chain(cap).collect();
    b.derive(Derivative { inputs, output: out, saved, pull });
    Ok(vec![out])
}

/// What is done to scores before they are weighed.
#[derive(Clone, Copy)]
struct Limits {
    /// Bools or floats that broadcast to the scores.
    mask: Option<Id>,
    causal: bool,
    /// What no score is larger than, of rank 0.
    cap: Option<Id>,
}

/// `cap · tanh(scores / cap)`, and the hyperbolic tangent.
fn capped(b: &mut dyn Build, scores: Id, cap: Id) -> (Id, Id) {
    let shape = b.shape(scores);
    let cap = expand::broadcast_to(b, cap, &shape);
    let part = expand::map(b, MapOp::div, &[scores, cap]);
    let tanh = expand::unary(b, MapOp::tanh, part);
    (expand::map(b, MapOp::mul, &[cap, tanh]), tanh)
}

/// What a cotangent of capped scores is of the scores themselves: `x ∘ (1 − tanh²)`.
fn uncapped(b: &mut dyn Build, x: Id, tanh: Id) -> Id {
    let one = expand::like(b, tanh, 1.0);
    let square = expand::map(b, MapOp::mul, &[tanh, tanh]);
    let rest = expand::map(b, MapOp::sub, &[one, square]);
    expand::map(b, MapOp::mul, &[x, rest])
}

/// `q kᵀ` within its limits, of `q` and transposed keys, and the hyperbolic tangent that caps it.
fn scores(b: &mut dyn Build, q: Id, k: Id, limits: Limits) -> (Id, Option<Id>) {
    let wide = b.dtype(q);
    let mut scores = expand::dot(b, q, k, wide, wide);
    let mut tanh = None;
    if let Some(cap) = limits.cap {
        let (of, by) = capped(b, scores, cap);
        (scores, tanh) = (of, Some(by));
    }
    let shape = b.shape(scores);
    let lowest = expand::full(b, &shape, wide, Scalar::F(f64::NEG_INFINITY));
    if let Some(mask) = limits.mask {
        let of = b.dtype(mask);
        let mask = expand::broadcast_to(b, mask, &shape);
        scores = match of {
            DType::Bool => expand::select(b, mask, scores, lowest),
            _ => expand::map(b, MapOp::add, &[scores, mask]),
        };
    }
    if limits.causal {
        let keep = relation(b, &shape, MapOp::ge, 0);
        scores = expand::select(b, keep, scores, lowest);
    }
    (scores, tanh)
}

/// With `P` the weights, computed again so that they are not kept, from the largest score and the sum of
/// each row, which are: `V̄ = Pᵀc`, `S̄ = P∘(cVᵀ − rowsum(c∘y))`, `Q̄ = S̄K`, `K̄ = S̄ᵀQ` (Dao and others,
/// FlashAttention, 2022, appendix B).
fn pull(b: &mut dyn Build, p: &Pulled, causal: bool) -> Vec<Option<Id>> {
    let (q, k, v, mask) = (p.inputs[0], p.inputs[1], p.inputs[2], p.inputs.get(3).copied());
    let (base, sum, cap) = (p.saved[0], p.saved[1], p.saved.get(2).copied());
    let dtype = b.dtype(q);
    let inverse = |b: &mut dyn Build| {
        let none = expand::like(b, sum, 0.0);
        let empty = expand::map(b, MapOp::eq, &[sum, none]);
        let one = expand::like(b, sum, 1.0);
        // A query without keys has weights of zero.
        let below = expand::select(b, empty, one, sum);
        expand::unary(b, MapOp::reciprocal, below)
    };
    if by_blocks::pays(&b.shape(q), &b.shape(k)) && mask.is_none_or(|m| b.dtype(m) == DType::Bool) {
        let along = along_rows(b, p.cotangent, p.output);
        let rows = [base, inverse(b), along];
        let keys = flip(b, k);
        let whole = Whole { q, k: keys, v, c: p.cotangent, rows, mask, causal, cap };
        if let Some([queries, keys, values]) = by_blocks::pull(b, &whole) {
            return [Some(queries), Some(flip(b, keys)), Some(values)].into_iter().chain(mask.map(|_| None)).collect();
        }
    }
    b.again(true);
    let (scores, tanh) = scores(b, q, k, Limits { mask, causal: false, cap });
    let shape = b.shape(scores);
    let last = shape.len() - 1;
    let shifted = expand::binary(b, MapOp::sub, scores, base);
    let weights = expand::unary(b, MapOp::exp, shifted);
    let inverse = inverse(b);
    let mut weights = expand::binary(b, MapOp::mul, weights, inverse);
    // What is zero beyond the diagonal need not be computed there.
    let cut = |b: &mut dyn Build, x: Id| {
        let (keep, zero) = (relation(b, &shape, MapOp::ge, 0), expand::like(b, x, 0.0));
        expand::select(b, keep, x, zero)
    };
    if causal {
        weights = cut(b, weights);
    }
    b.again(false);
    let turned = flip(b, weights);
    let (to, from) = if causal { (Steps::To, Steps::From) } else { (Steps::All, Steps::All) };
    let product = |b: &mut dyn Build, steps: Steps, x: Id, y: Id| {
        let mut shape = b.shape(x);
        shape[last] = b.shape(y)[last];
        b.push(Prim::dot(dtype, steps), &[x, y], shape, dtype)
    };
    let values = product(b, from, turned, p.cotangent);
    let along = along_rows(b, p.cotangent, p.output);
    let v = flip(b, v);
    let seen = expand::dot(b, p.cotangent, v, dtype, dtype);
    let rest = expand::binary(b, MapOp::sub, seen, along);
    let mut scores = expand::map(b, MapOp::mul, &[weights, rest]);
    if causal {
        scores = cut(b, scores);
    }
    let added = scores;
    if let Some(tanh) = tanh {
        scores = uncapped(b, scores, tanh);
    }
    let keys = flip(b, k);
    let queries = product(b, to, scores, keys);
    let turned = flip(b, scores);
    let keys = product(b, from, turned, q);
    let keys = flip(b, keys);
    let mut out = vec![Some(queries), Some(keys), Some(values)];
    if let Some(mask) = mask {
        let shape = b.shape(mask);
        out.push((b.dtype(mask) != DType::Bool).then(|| unbroadcast(b, added, &shape)));
    }
    out
}

/// Sums over the dims along which a tensor of the shape given is repeated.
fn unbroadcast(b: &mut dyn Build, x: Id, shape: &[u64]) -> Id {
    let from = b.shape(x);
    let lead = from.len() - shape.len();
    let axes: Vec<usize> = (0..from.len()).filter(|&d| d < lead || shape[d - lead] != from[d]).collect();
    let sum = expand::reduce(b, x, Reduction::Sum, &axes, false);
    expand::reshape(b, sum, shape)
}

/// The queries times the scale.
fn queries(call: &mut Call, wide: DType) -> Result<Id, OpError> {
    let q = call.id(0)?;
    let shape = call.b.shape(q);
    let scale = match call.args.get(5) {
        None | Some(Arg::None) => {
            let features = shape.last().copied().unwrap_or(1).max(1);
            expand::full(call.b, &shape, wide, Scalar::F(1.0 / (features as f64).sqrt()))
        }
        _ => call.operand(5, &shape, wide)?,
    };
    let q = expand::cast(call.b, q, wide);
    Ok(expand::map(call.b, MapOp::mul, &[q, scale]))
}

/// Heads of keys or values, each for its group of queries.
fn repeat_heads(b: &mut dyn Build, x: Id, queries: &[u64]) -> Id {
    let shape = b.shape(x);
    let Some(axis) = shape.len().checked_sub(3).filter(|&a| shape[a] != queries[a]) else { return x };
    let dtype = b.dtype(x);
    let mut groups = shape.clone();
    groups.insert(axis + 1, queries[axis] / shape[axis].max(1));
    let dims: Vec<usize> = (0..groups.len()).filter(|&d| d != axis + 1).collect();
    let x = b.push(Prim::Broadcast { dims }, &[x], groups, dtype);
    let mut out = shape;
    out[axis] = queries[axis];
    expand::reshape(b, x, &out)
}

/// Exponentials of the scores relative to the largest of the row, that number, and their sums.
fn exponentials(b: &mut dyn Build, scores: Id) -> (Id, Id, Id) {
    let last = b.shape(scores).len() - 1;
    let top = expand::reduce(b, scores, Reduction::Max, &[last], true);
    // Without a finite maximum there is nothing to subtract.
    let finite = expand::unary(b, MapOp::isfinite, top);
    let zero = expand::like(b, top, 0.0);
    let base = expand::select(b, finite, top, zero);
    let shifted = expand::binary(b, MapOp::sub, scores, base);
    let weights = expand::unary(b, MapOp::exp, shifted);
    (weights, base, expand::reduce(b, weights, Reduction::Sum, &[last], true))
}

/// `softmax(scores) @ v`, divided last; zeros where every score is -inf. Also what was subtracted from
/// each row, and the sum of its exponentials.
fn weigh(b: &mut dyn Build, scores: Id, v: Id, causal: bool) -> (Id, Id, Id) {
    let (shape, dtype) = (b.shape(scores), b.dtype(scores));
    let last = shape.len() - 1;
    let (weights, base, row_sum) = exponentials(b, scores);
    let sum = row_sum;
    let mut out = shape;
    out[last] = b.shape(v)[last];
    let steps = if causal { Steps::To } else { Steps::All };
    let product = b.push(Prim::dot(dtype, steps), &[weights, v], out.clone(), dtype);
    // A query without keys has a sum of 0.
    let none = expand::like(b, sum, 0.0);
    let empty = expand::map(b, MapOp::eq, &[sum, none]);
    let empty = expand::broadcast_to(b, empty, &out);
    let sum = expand::broadcast_to(b, sum, &out);
    let mean = expand::map(b, MapOp::div, &[product, sum]);
    let zero = expand::like(b, mean, 0.0);
    (expand::select(b, empty, zero, mean), base, row_sum)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{tensor_arg, type_text};

    fn text(q: &str, k: &str, v: &str) -> String {
        type_text("attention", &[tensor_arg(q), tensor_arg(k), tensor_arg(v)])
    }

    #[test]
    fn heads_are_shared_by_whole_groups() {
        assert_eq!(text("B 4*H S D f32", "B H T D f32", "B H T E f32"), "Tensor[B, 4*H, S, E, f32]");
        assert_eq!(text("2 8 5 4 bf16", "2 2 6 4 bf16", "2 2 6 3 bf16"), "Tensor[2, 8, 5, 3, bf16]");
        assert!(text("2 8 5 4 f32", "2 3 6 4 f32", "2 3 6 4 f32").contains("3 heads of keys do not divide 8"));
        assert!(text("2 G 5 4 f32", "2 H 6 4 f32", "2 H 6 4 f32").starts_with("E0212"));
    }

    #[test]
    fn sizes_that_differ_are_named() {
        assert!(text("S D f32", "T E f32", "T E f32").contains("queries have D features and keys E"));
        assert!(text("5 4 f32", "6 4 f32", "7 4 f32").contains("there are 6 keys and 7 values"));
        assert!(text("4 f32", "6 4 f32", "7 4 f32").starts_with("E0207"));
    }
}
