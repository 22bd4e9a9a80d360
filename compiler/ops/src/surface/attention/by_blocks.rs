//! The derivative of attention by blocks of queries: scores are computed again for some rows at a time, so that memory grows
//! with the number of positions and not with its square (Dao and others, FlashAttention, 2022; Rabe and Staats, Self-attention
//! does not need O(n²) memory, 2021).
//!
//! A block gives the cotangent of its queries, and adds to those of keys and values. Blocks that see the same keys are one
//! loop. Causal rows are cut into a few such loops, each over the keys that its last row sees: keys behind a row have weight 0
//! there. A turn of a loop takes a block of each of [`PARTS`] parts of the rows, which follow each other: where devices have
//! parts of the rows they exchange nothing before the sums of all parts are added.

use super::super::expand;
use super::super::parts_of_rows::{COLUMNS_MIN, PARTS, ROWS_MIN, TURN, starts};
use super::super::triangle::relation;
use super::super::{Build, Id, Loop};
use super::{capped, uncapped};
use crate::map::MapOp;
use crate::prim::{Prim, Reduction, Scalar};
use tessera_base::DType;

/// Loops that causal rows are cut into, at most: of all scores they compute an eighth more than there are below the diagonal.
const LOOPS: u64 = 4;

/// What all blocks read. Dims before the last two are a batch.
#[derive(Clone, Copy)]
pub struct Whole {
    /// Queries with their scale, `[…, s, e]`.
    pub q: Id,
    /// Keys, `[…, t, e]`.
    pub k: Id,
    pub v: Id,
    /// The cotangent of the result, `[…, s, f]`.
    pub c: Id,
    /// Of each row what was subtracted from its scores, the inverse of their sum, and `rowsum(c∘y)`: `[…, s, 1]`.
    pub rows: [Id; 3],
    /// Bools that broadcast to the scores.
    pub mask: Option<Id>,
    pub causal: bool,
    /// What no score is larger than, of rank 0.
    pub cap: Option<Id>,
}

/// The rows of a block or of a loop over blocks.
struct Part {
    first: u64,
    rows: u64,
    blocks: u64,
}

/// Whether there are so many queries `[…, s, e]` and turned keys `[…, e, t]` that blocks are worth it.
pub fn pays(q: &[u64], k: &[u64]) -> bool {
    q.iter().rev().nth(1).is_some_and(|rows| *rows >= ROWS_MIN) && k.last().is_some_and(|keys| *keys >= COLUMNS_MIN)
}

/// Cotangents of queries, keys and values. `None` where no loop can be built here.
pub fn pull(b: &mut dyn Build, w: &Whole) -> Option<[Id; 3]> {
    let rank = b.shape(w.q).len();
    let (rows, keys) = (b.shape(w.q)[rank - 2], b.shape(w.k)[rank - 2]);
    let mut queries = vec![];
    let mut sums = [expand::like(b, w.k, 0.0), expand::like(b, w.v, 0.0)];
    for part in parts(rows, w.causal) {
        let end = part.first + part.rows * part.blocks;
        // Keys behind the last row are seen by none.
        let seen = if w.causal { keys.min(end) } else { keys };
        let near = |b: &mut dyn Build, x: Id| expand::slice(b, x, rank - 2, 0, seen);
        let some = Whole {
            q: expand::slice(b, w.q, rank - 2, part.first, end - part.first),
            c: expand::slice(b, w.c, rank - 2, part.first, end - part.first),
            rows: w.rows.map(|x| expand::slice(b, x, rank - 2, part.first, end - part.first)),
            k: near(b, w.k),
            v: near(b, w.v),
            mask: w.mask.map(|m| part_of_mask(b, m, (part.first, end), seen)),
            causal: w.causal,
            cap: w.cap,
        };
        let before = sums.map(|x| near(b, x));
        let [q, more @ ..] = match part.blocks {
            1 => block(b, &some, Start::At(part.first)),
            _ => turns(b, &some, &part)?,
        };
        let after = [0, 1].map(|i| expand::map(b, MapOp::add, &[before[i], more[i]]));
        queries.push(q);
        sums = [0, 1].map(|i| {
            let rest = expand::slice(b, sums[i], rank - 2, seen, keys - seen);
            if keys > seen { expand::concat(b, &[after[i], rest], rank - 2) } else { after[i] }
        });
    }
    Some([expand::concat(b, &queries, rank - 2), sums[0], sums[1]])
}

/// Whole blocks in at most [`LOOPS`] loops if rows are causal, else in one; then the rest.
fn parts(rows: u64, causal: bool) -> Vec<Part> {
    let blocks = rows / TURN;
    let each = if causal { blocks.div_ceil(LOOPS) } else { blocks };
    let mut out: Vec<Part> = (0..blocks)
        .step_by(each.max(1) as usize)
        .map(|at| Part { first: at * TURN, rows: TURN, blocks: each.min(blocks - at) })
        .collect();
    if !rows.is_multiple_of(TURN) {
        out.push(Part { first: blocks * TURN, rows: rows % TURN, blocks: 1 });
    }
    out
}

/// Rows `from..to` and the first `seen` columns of a mask, where it has several.
fn part_of_mask(b: &mut dyn Build, mask: Id, (from, to): (u64, u64), seen: u64) -> Id {
    let mut x = mask;
    let shape = b.shape(mask);
    let rank = shape.len();
    if rank >= 2 && shape[rank - 2] > 1 {
        x = expand::slice(b, x, rank - 2, from, to - from);
    }
    if rank >= 1 && shape[rank - 1] > 1 {
        x = expand::slice(b, x, rank - 1, 0, seen);
    }
    x
}

/// A loop over the blocks of a part, whose rows are those of `w`: the cotangents of its queries, and what it adds to those of
/// keys and values.
fn turns(b: &mut dyn Build, w: &Whole, part: &Part) -> Option<[Id; 3]> {
    // A mask of one row is the same in every turn.
    let by_rows = w.mask.filter(|m| b.shape(*m).iter().rev().nth(1).is_some_and(|rows| *rows > 1));
    let mut sequences = vec![starts(b, part.blocks, part.first)];
    for x in [w.q, w.c].into_iter().chain(w.rows).chain(by_rows) {
        sequences.push(in_blocks(b, x, part));
    }
    let mut constants = vec![w.k, w.v];
    constants.extend(w.mask.filter(|_| by_rows.is_none()));
    constants.extend(w.cap);
    let (has_mask, causal, has_cap) = (w.mask.is_some(), w.causal, w.cap.is_some());
    let mut body = |b: &mut dyn Build, x: &[Id]| {
        let (sums, rest) = ([x[0], x[1]], &x[2..]);
        let constants = &rest[6 + usize::from(by_rows.is_some())..];
        let mask = if by_rows.is_some() { rest.get(6) } else { constants.get(2) };
        let some = Whole {
            q: rest[1],
            c: rest[2],
            rows: [rest[3], rest[4], rest[5]],
            k: constants[0],
            v: constants[1],
            mask: mask.copied().filter(|_| has_mask),
            causal,
            cap: constants.last().copied().filter(|_| has_cap),
        };
        let [q, more @ ..] = block(b, &some, Start::Given(rest[0]));
        let [k, v] = [0, 1].map(|i| expand::map(b, MapOp::add, &[sums[i], more[i]]));
        vec![k, v, q]
    };
    let none = [w.k, w.v].map(|x| {
        let (shape, dtype) = (b.shape(x), b.dtype(x));
        let lead = shape.len() - 2;
        expand::full(b, &[&shape[..lead], &[PARTS], &shape[lead..]].concat(), dtype, Scalar::F(0.0))
    });
    let looped = Loop { trips: part.blocks, carry: &none, sequences: &sequences, constants: &constants };
    let [k, v, q] = b.scan(looped, &mut body)?[..] else { return None };
    let [k, v] = [k, v].map(|x| {
        let parts = b.shape(x).len() - 3;
        expand::reduce(b, x, Reduction::Sum, &[parts], false)
    });
    Some([out_of_blocks(b, q), k, v])
}

/// Rows `[…, p·n·r, e]` as `[n, …, p·r, e]`.
fn in_blocks(b: &mut dyn Build, x: Id, part: &Part) -> Id {
    let shape = b.shape(x);
    let (lead, last) = (shape.len() - 2, shape.len() - 1);
    let cut = [&shape[..lead], &[PARTS, part.blocks, part.rows / PARTS, shape[last]]].concat();
    let cut = expand::reshape(b, x, &cut);
    let perm: Vec<usize> = [lead + 1].into_iter().chain(0..=lead).chain([lead + 2, lead + 3]).collect();
    let turned = expand::transpose(b, cut, &perm);
    expand::reshape(b, turned, &[&[part.blocks], &shape[..lead], &[part.rows, shape[last]]].concat())
}

/// The other way.
fn out_of_blocks(b: &mut dyn Build, x: Id) -> Id {
    let shape = b.shape(x);
    let lead = shape.len() - 3;
    let (turns, rows, last) = (shape[0], shape[lead + 1], shape[lead + 2]);
    let cut = expand::reshape(b, x, &[&shape[..=lead], &[PARTS, rows / PARTS, last]].concat());
    let perm: Vec<usize> = (1..=lead + 1).chain([0, lead + 2, lead + 3]).collect();
    let turned = expand::transpose(b, cut, &perm);
    expand::reshape(b, turned, &[&shape[1..=lead], &[turns * rows, last]].concat())
}

/// Which rows of all the rows of a block are.
enum Start {
    /// Those from this one on.
    At(u64),
    /// As many for each part, from these on.
    Given(Id),
}

/// One block: the cotangent of its queries, and what it adds to those of keys and values, of each part for itself.
fn block(b: &mut dyn Build, w: &Whole, start: Start) -> [Id; 3] {
    let dtype = b.dtype(w.q);
    let [base, inverse, along] = w.rows;
    let keys = flip(b, w.k);
    let mut scores = expand::dot(b, w.q, keys, dtype, dtype);
    let tanh = w.cap.map(|cap| {
        let (of, tanh) = capped(b, scores, cap);
        scores = of;
        tanh
    });
    let shape = b.shape(scores);
    let shifted = expand::binary(b, MapOp::sub, scores, base);
    let weights = expand::unary(b, MapOp::exp, shifted);
    let mut weights = expand::binary(b, MapOp::mul, weights, inverse);
    let zero = expand::like(b, weights, 0.0);
    let mask = w.mask.map(|m| expand::broadcast_to(b, m, &shape));
    let diagonal = w.causal.then(|| below(b, &shape, &start));
    for keep in mask.into_iter().chain(diagonal) {
        weights = expand::select(b, keep, weights, zero);
    }
    let sum = |b: &mut dyn Build, x: Id, y: Id| {
        let [x, y] = match start {
            Start::At(_) => [x, y],
            Start::Given(_) => [x, y].map(|x| of_parts(b, x)),
        };
        let turned = flip(b, x);
        expand::dot(b, turned, y, dtype, dtype)
    };
    let v = sum(b, weights, w.c);
    let values = flip(b, w.v);
    let seen = expand::dot(b, w.c, values, dtype, dtype);
    let rest = expand::binary(b, MapOp::sub, seen, along);
    let mut scores = expand::map(b, MapOp::mul, &[weights, rest]);
    for keep in mask.into_iter().chain(diagonal) {
        scores = expand::select(b, keep, scores, zero);
    }
    if let Some(tanh) = tanh {
        scores = uncapped(b, scores, tanh);
    }
    let q = expand::dot(b, scores, w.k, dtype, dtype);
    [q, sum(b, scores, w.q), v]
}

/// Rows `[…, p·r, e]` as `[…, p, r, e]`.
fn of_parts(b: &mut dyn Build, x: Id) -> Id {
    let shape = b.shape(x);
    let lead = shape.len() - 2;
    expand::reshape(b, x, &[&shape[..lead], &[PARTS, shape[lead] / PARTS, shape[lead + 1]]].concat())
}

/// Whether a key is not behind its row.
fn below(b: &mut dyn Build, shape: &[u64], start: &Start) -> Id {
    let (lead, rows) = (shape.len() - 2, shape[shape.len() - 2]);
    let at = match start {
        Start::At(first) => return relation(b, shape, MapOp::ge, *first as i64),
        Start::Given(at) => *at,
    };
    let of = [PARTS, rows / PARTS];
    let at = b.push(Prim::Broadcast { dims: vec![0] }, &[at], of.to_vec(), DType::I64);
    let row = expand::iota(b, &of, 1);
    let row = expand::map(b, MapOp::add, &[row, at]);
    let row = expand::reshape(b, row, &[rows]);
    let row = b.push(Prim::Broadcast { dims: vec![lead] }, &[row], shape.to_vec(), DType::I64);
    let column = expand::iota(b, shape, lead + 1);
    expand::map(b, MapOp::ge, &[row, column])
}

/// The last two dims exchanged.
pub fn flip(b: &mut dyn Build, x: Id) -> Id {
    let rank = b.shape(x).len();
    let perm: Vec<usize> = (0..rank - 2).chain([rank - 1, rank - 2]).collect();
    expand::transpose(b, x, &perm)
}

/// Sums of rows `x∘y`, which stay as dims of size 1.
pub fn along_rows(b: &mut dyn Build, x: Id, y: Id) -> Id {
    let last = b.shape(x).len() - 1;
    let products = expand::map(b, MapOp::mul, &[x, y]);
    expand::reduce(b, products, Reduction::Sum, &[last], true)
}
