//! `moe_dispatch` and `moe_combine`: tokens to the experts that their gates choose, and back.

use super::embedding::take;
use super::expand;
use super::gather::take_along;
use super::row::{Call, Lowered, Row, opt, req, wide_of};
use super::rule::{self, Inferred};
use super::*;
use crate::map::MapOp;
use crate::prim::{Prim, Reduction};

const GATES: Param = req("gates", ParamKind::Tensor);
const K: Param = opt("k", ParamKind::Int, Default::Int(2));

pub const MOE_DISPATCH: Row = Row::new(
    "moe_dispatch",
    &[req("x", ParamKind::Tensor), GATES, K, opt("capacity", ParamKind::Int, Default::None)],
    infer_dispatch,
    lower_dispatch,
)
.signature("n d, n e -> e c d")
.doc(
    "Each token at the experts that its `k` largest gates choose: the rows of `x` in a block of rows for each expert.\n\n\
     `x` is `[N, D]`, `gates` `[N, E]`; the result is `[E, C, D]`, where `C` is `capacity`, by default `N`. Expert `e` has \
     its tokens in ascending order in the first rows of its block, and zeros after them. Tokens that find the block full are \
     left out there: the last ones, so that the result does not depend on threads. Among equal gates the first counts as \
     larger. `moe_combine` brings the results back. (Shazeer et al., 2017.)\n\n\
     E0202: there are fewer than `k` experts, or `x` and `gates` have different numbers of tokens.\n\n\
     ```tessera\nblocks = op.moe_dispatch(x, gates, k=2)    # [N, D], [N, E] -> [E, N, D]\n\
     y = op.moe_combine(op.gelu(blocks @ up) @ down, gates, k=2)    # up: [E, D, H], down: [E, H, D]\n```",
);

pub const MOE_COMBINE: Row = Row::new("moe_combine", &[req("x", ParamKind::Tensor), GATES, K], infer_combine, lower_combine)
    .signature("e c d, n e -> n d")
    .doc(
        "What the experts give for each token, times its gates: the way back from `moe_dispatch`.\n\n\
         `x` is `[E, C, D]`, `gates` the `[N, E]` of the dispatch and `k` the same; the result is `[N, D]`. Row `n` is the \
         sum over the `k` largest gates of gate times row, in f32 for narrower types, largest gate first. An expert that had \
         no room for the token adds nothing.\n\n\
         E0202: `x` and `gates` have different numbers of experts, or fewer than `k`.\n\n\
         ```tessera\ny = op.moe_combine(blocks, gates, k=2)    # [E, C, D], [N, E] -> [N, D]\n```",
    );

/// Checks the rank of an operand.
fn of_rank(t: &TensorType, rank: usize, i: usize, form: &str) -> Result<(), OpError> {
    if t.rank() == rank {
        return Ok(());
    }
    Err(OpError::new(Code::E0207, format!("a tensor {form} is needed here, and this one has rank {}", t.rank()))
        .arg(i, t.to_string()))
}

/// Checks `gates` and `k`; `experts` is the number of experts that `gates` has.
fn gating<'a>(cx: &mut InferCx, args: &'a [SymArg]) -> Result<&'a TensorType, OpError> {
    let gates = rule::tensor(args, 1)?;
    of_rank(gates, 2, 1, "[N, E] of gates")?;
    rule::as_float("moe_dispatch", gates, 1)?;
    let (k, experts) = (rule::int(args, 2)?, &gates.shape[1]);
    if k.as_const().is_some_and(|n| n < 1) {
        return Err(OpError::new(Code::E0711, format!("a token goes to at least one expert, and `k` is {k}"))
            .arg(2, format!("k is {k}")));
    }
    let text = || format!("each token goes to {k} experts, and there are {experts}");
    let blame = |e: OpError| e.arg(1, gates.to_string()).arg(2, format!("k is {k}"));
    rule::require_reach(cx, experts, k, Code::E0202, text, blame)?;
    Ok(gates)
}

fn infer_dispatch(cx: &mut InferCx, args: &[SymArg], _: &Hints) -> Inferred {
    let x = rule::tensor(args, 0)?;
    of_rank(x, 2, 0, "[N, D] of tokens")?;
    let gates = gating(cx, args)?;
    let (n, m) = (&x.shape[0], &gates.shape[0]);
    let text = || format!("there are {n} tokens and gates for {m}");
    let blame = |e: OpError| e.arg(0, x.to_string()).arg(1, gates.to_string());
    rule::require(cx, n, m, Code::E0202, text, blame)?;
    let capacity = if rule::absent(args, 3) { n } else { rule::int(args, 3)? };
    if capacity.as_const().is_some_and(|c| c < 0) {
        return Err(rule::negative(capacity, 3));
    }
    rule::one(vec![gates.shape[1].clone(), capacity.clone(), x.shape[1].clone()], x.dtype)
}

fn infer_combine(cx: &mut InferCx, args: &[SymArg], _: &Hints) -> Inferred {
    let x = rule::tensor(args, 0)?;
    of_rank(x, 3, 0, "[E, C, D] of the experts' results")?;
    let gates = gating(cx, args)?;
    let (e, m) = (&x.shape[0], &gates.shape[1]);
    let text = || format!("there are results of {e} experts and gates for {m}");
    let blame = |e: OpError| e.arg(0, x.to_string()).arg(1, gates.to_string());
    rule::require(cx, e, m, Code::E0202, text, blame)?;
    let dtype = rule::as_float("moe_combine", x, 0)?;
    rule::one(vec![gates.shape[0].clone(), x.shape[2].clone()], dtype)
}

/// Where the tokens go, all of shape [N, k].
struct Route {
    experts: Id,
    /// The row among the rows of all experts; any row in range where there is no room.
    row: Id,
    /// Whether the expert has room.
    fits: Id,
}

/// An i64 constant of the shape of `x`.
fn constant(b: &mut dyn Build, x: Id, n: u64) -> Id {
    let shape = b.shape(x);
    expand::full(b, &shape, DType::I64, Scalar::I(n as i64))
}

fn route(b: &mut dyn Build, gates: Id, k: u64, capacity: u64) -> Route {
    let all = b.shape(gates);
    let (tokens, count) = (all[0], all[1]);
    let order = b.push(Prim::ArgSort { axis: 1, descending: true }, &[gates], all.clone(), DType::I64);
    let experts = expand::slice(b, order, 1, 0, k);
    let wide = [tokens, k, count];
    let named = expand::iota(b, &wide, 2);
    let spread = expand::broadcast_dims(b, experts, &wide, vec![0, 1]);
    let chosen = expand::map(b, MapOp::eq, &[spread, named]);
    let chosen = expand::cast(b, chosen, DType::I64);
    let chosen = expand::reduce(b, chosen, Reduction::Sum, &[1], false);
    // How many tokens each expert has up to and with this one.
    let taken = b.push(Prim::Cumulate { kind: Reduction::Sum, axis: 0 }, &[chosen], all, DType::I64);
    let place = take_along(b, taken, experts, 1);
    let (room, one) = (constant(b, place, capacity), constant(b, place, 1));
    let fits = expand::map(b, MapOp::le, &[place, room]);
    let first = expand::map(b, MapOp::mul, &[experts, room]);
    let row = expand::map(b, MapOp::add, &[first, place]);
    let row = expand::map(b, MapOp::sub, &[row, one]);
    Route { experts, row, fits }
}

/// `rows` where `keep` holds for their leading dims, and zeros elsewhere.
fn kept(b: &mut dyn Build, keep: Id, rows: Id) -> Id {
    let shape = b.shape(rows);
    let leading = (0..b.shape(keep).len()).collect();
    let keep = expand::broadcast_dims(b, keep, &shape, leading);
    let zero = expand::like(b, rows, 0.0);
    expand::select(b, keep, rows, zero)
}

fn lower_dispatch(call: &mut Call) -> Lowered {
    let (x, gates) = (call.id(0)?, call.id(1)?);
    let k = rule::int_const(&call.sym, 2, "`k`")? as u64;
    let (out, dtype) = call.result();
    let b = &mut *call.b;
    let (slots, tokens) = (out[0] * out[1], b.shape(x)[0]);
    if out.contains(&0) || tokens == 0 {
        return Ok(vec![expand::full(b, &out, dtype, Scalar::I(0))]);
    }
    let Route { row, fits, .. } = route(b, gates, k, out[1]);
    // The token of each row of the blocks; `tokens` where there is none. Who finds no room writes
    // behind the last row.
    let behind = constant(b, row, slots);
    let row = expand::select(b, fits, row, behind);
    let row = expand::reshape(b, row, &[tokens * k]);
    let names = expand::iota(b, &[tokens, k], 0);
    let names = expand::reshape(b, names, &[tokens * k]);
    let none = expand::full(b, &[slots + 1], DType::I64, Scalar::I(tokens as i64));
    let token = b.push(Prim::Scatter { add: false }, &[none, names, row], vec![slots + 1], DType::I64);
    let token = expand::slice(b, token, 0, 0, slots);
    let (limit, last) = (constant(b, token, tokens), constant(b, token, tokens - 1));
    let there = expand::map(b, MapOp::lt, &[token, limit]);
    let token = expand::map(b, MapOp::minimum, &[token, last]);
    let rows = take(b, x, token, 0);
    let rows = kept(b, there, rows);
    Ok(vec![expand::reshape(b, rows, &out)])
}

fn lower_combine(call: &mut Call) -> Lowered {
    let (x, gates) = (call.id(0)?, call.id(1)?);
    let k = rule::int_const(&call.sym, 2, "`k`")? as u64;
    let (out, dtype) = call.result();
    let b = &mut *call.b;
    let shape = b.shape(x);
    let wide = wide_of(dtype);
    if out.contains(&0) || shape.contains(&0) {
        return Ok(vec![expand::full(b, &out, wide, Scalar::I(0))]);
    }
    let Route { experts, row, fits } = route(b, gates, k, shape[1]);
    let slots = shape[0] * shape[1];
    let rows = expand::reshape(b, x, &[slots, shape[2]]);
    let zero = constant(b, row, 0);
    let row = expand::select(b, fits, row, zero);
    let rows = take(b, rows, row, 0);
    let rows = expand::cast(b, rows, wide);
    let rows = kept(b, fits, rows);
    let gates = expand::cast(b, gates, wide);
    let weight = take_along(b, gates, experts, 1);
    let full = b.shape(rows);
    let weight = expand::broadcast_dims(b, weight, &full, vec![0, 1]);
    let weighted = expand::map(b, MapOp::mul, &[rows, weight]);
    Ok(vec![expand::reduce(b, weighted, Reduction::Sum, &[1], false)])
}
