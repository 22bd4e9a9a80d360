//! Compensated sums (numerics policy `kahan_sum`): Neumaier's pairs of a sum and of what its
//! additions rounded away, in the canonical order.
//!
//! Two pairs merge by an exact addition of their sums, and an element is a pair without a
//! remainder. A zero changes no pair: sums start from +0 and so are never −0. Pairs take a
//! buffer each for their first and their second numbers.

use super::across::{Bufs, Columns};
use super::{Plan, Red};
use crate::LowerError;
use crate::nest::Nest;
use tessera_ir::index::{Index, Var};
use tessera_ir::schedule::Guard;
use tessera_ir::tile::{Access, Def, LANE, Val};
use tessera_ops::map::MapOp;
use tessera_ops::prim::{LANES, Scalar};
use tessera_ops::scalar::Kind;

/// Sum and remainder.
type Pair = [Val; 2];

/// Scratch of one sum along the vector: canonical lanes, and leaves where there are several.
pub struct PairScratch {
    lanes: [u32; 2],
    leaves: [u32; 2],
}

impl Red {
    fn map(&self, n: &mut Nest, op: MapOp, args: &[Val]) -> Val {
        let lanes = args.iter().map(|a| n.kernel.ty(*a).lanes).max().unwrap_or(1);
        n.define(Def::Map { op, dtype: self.accum, args: args.to_vec() }, op.result_kind(self.of), lanes)
    }

    fn zero(&self, n: &mut Nest, lanes: u32) -> Pair {
        let zero = n.define(Def::Const(Scalar::F(0.0)), self.of, lanes);
        [zero, zero]
    }

    /// `a + b` rounded, and the error, which is 0 where something is infinite.
    fn two_sum(&self, n: &mut Nest, a: Val, b: Val) -> Pair {
        let s = self.map(n, MapOp::add, &[a, b]);
        let part = self.map(n, MapOp::sub, &[s, a]);
        let rest = self.map(n, MapOp::sub, &[s, part]);
        let (low_a, low_b) = (self.map(n, MapOp::sub, &[a, rest]), self.map(n, MapOp::sub, &[b, part]));
        let e = self.map(n, MapOp::add, &[low_a, low_b]);
        let finite = self.map(n, MapOp::isfinite, &[e]);
        let zero = n.define(Def::Const(Scalar::F(0.0)), self.of, 1);
        [s, self.map(n, MapOp::r#where, &[finite, e, zero])]
    }

    fn add(&self, n: &mut Nest, pair: Pair, x: Val) -> Pair {
        let [s, e] = self.two_sum(n, pair[0], x);
        [s, self.map(n, MapOp::add, &[pair[1], e])]
    }

    fn merge(&self, n: &mut Nest, a: Pair, b: Pair) -> Pair {
        let [s, e] = self.two_sum(n, a[0], b[0]);
        let both = self.map(n, MapOp::add, &[a[1], b[1]]);
        [s, self.map(n, MapOp::add, &[both, e])]
    }

    fn total(&self, n: &mut Nest, pair: Pair) -> Val {
        self.map(n, MapOp::add, &pair)
    }
}

fn bind_axis(at: &Index, lanes: u32) -> Index {
    if lanes > 1 { at.plus(&Index::var(LANE)) } else { at.clone() }
}

fn load_pair(n: &mut Nest, r: &Red, bufs: &[u32; 2], at: &Index, lanes: u32) -> Pair {
    bufs.map(|buf| {
        let access = Access { buf, at: bind_axis(at, lanes), valid: lanes, guards: vec![] };
        n.define(Def::Load(access), r.of, lanes)
    })
}

/// Stores all lanes.
fn store_pair(n: &mut Nest, bufs: &[u32; 2], at: &Index, pair: Pair, lanes: u32) {
    let before = (n.lanes, n.valid);
    (n.lanes, n.valid) = (lanes, lanes);
    bufs.iter().zip(pair).for_each(|(buf, v)| n.store(*buf, bind_axis(at, lanes), v, false));
    (n.lanes, n.valid) = before;
}

/// The balanced tree over `count` pairs (of vectors of `lanes`) from `at` on; overwrites them.
fn tree_pair(n: &mut Nest, r: &Red, bufs: &[u32; 2], at: &Index, count: u64, lanes: u32) -> Result<Pair, LowerError> {
    let pair_at = |k: &Index| at.plus(&k.times(i64::from(lanes)));
    let mut left = count as i64;
    while left > 1 {
        let var = n.var(left / 2 - 1);
        n.plain_loop(var, vec![Index::default()], vec![Index::constant(left / 2)], |n| {
            let two = Index::var(var).times(2);
            let a = load_pair(n, r, bufs, &pair_at(&two), lanes);
            let b = load_pair(n, r, bufs, &pair_at(&two.offset(1)), lanes);
            let merged = r.merge(n, a, b);
            store_pair(n, bufs, &pair_at(&Index::var(var)), merged, lanes);
            Ok(())
        })?;
        if left % 2 == 1 {
            let last = load_pair(n, r, bufs, &pair_at(&Index::constant(left - 1)), lanes);
            store_pair(n, bufs, &pair_at(&Index::constant(left / 2)), last, lanes);
        }
        left = (left + 1) / 2;
    }
    Ok(load_pair(n, r, bufs, at, lanes))
}

impl<'s> Plan<'s> {
    // --- along the vector

    fn pair_bufs(&self, n: &mut Nest, r: &Red, name: &str, elems: u64) -> [u32; 2] {
        ["high", "low"].map(|part| n.scratch(&format!("{name}_{part}{}", r.value.0), r.accum, elems))
    }

    /// `None` for a plain reduction.
    pub(super) fn pair_scratch(&self, n: &mut Nest, r: &Red) -> Option<PairScratch> {
        r.compensated.then(|| {
            let lanes = self.pair_bufs(n, r, "lanes", LANES as u64);
            let leaves = self.leaves(r);
            PairScratch { lanes, leaves: if leaves > 1 { self.pair_bufs(n, r, "leaf", leaves) } else { [0, 0] } }
        })
    }

    pub(super) fn reduce_pairs_along(&self, n: &mut Nest<'s>, r: &Red, bufs: &PairScratch) -> Result<Val, LowerError> {
        let leaves = self.leaves(r);
        let pair = if leaves <= 1 {
            self.leaf_pair(n, r, &Index::default(), &bufs.lanes)?
        } else {
            let var = n.var(leaves as i64 - 1);
            n.plain_loop(var, vec![Index::default()], vec![Index::constant(leaves as i64)], |n| {
                let pair = self.leaf_pair(n, r, &Index::var(var), &bufs.lanes)?;
                store_pair(n, &bufs.leaves, &Index::var(var), pair, 1);
                Ok(())
            })?;
            tree_pair(n, r, &bufs.leaves, &Index::default(), leaves, 1)?
        };
        Ok(r.total(n, pair))
    }

    /// One leaf: `LANES` chains from zero, merged by halves.
    fn leaf_pair(&self, n: &mut Nest<'s>, r: &Red, leaf: &Index, bufs: &[u32; 2]) -> Result<Pair, LowerError> {
        let lanes = LANES as u32;
        let mut acc = r.zero(n, lanes);
        let extent = self.s.extent(r.axis);
        let last = extent.div_ceil(LANES as u64) as i64 - 1;
        let before = (n.lanes, n.valid);
        for (lo, hi, valid) in self.chunks(r, leaf) {
            if valid == 0 || last < 0 {
                continue;
            }
            let var = n.var(last);
            let next = n.carry_loop(var, lo, hi, &acc, |n, acc| {
                (n.lanes, n.valid) = (lanes, valid);
                let at = Index::var(var).times(LANES as i64).plus(&Index::var(LANE));
                let old = n.bind_axis(r.axis, at.clone());
                let mut value = self.row_value(n, r)?;
                if valid < lanes {
                    let inside = vec![Guard { index: at, lo: 0, hi: extent as i64 }];
                    let inside = n.define(Def::Within(inside), Kind::Bool, lanes);
                    let zero = n.define(Def::Const(Scalar::F(0.0)), r.of, 1);
                    value = r.map(n, MapOp::r#where, &[inside, value, zero]);
                }
                let next = r.add(n, [acc[0], acc[1]], value);
                n.bind_axis(r.axis, old);
                Ok(next.to_vec())
            })?;
            acc = [next[0], next[1]];
            (n.lanes, n.valid) = before;
        }
        store_pair(n, bufs, &Index::default(), acc, lanes);
        let mut half = lanes / 2;
        loop {
            let a = load_pair(n, r, bufs, &Index::default(), half);
            let b = load_pair(n, r, bufs, &Index::constant(i64::from(half)), half);
            let merged = r.merge(n, a, b);
            if half == 1 {
                return Ok(merged);
            }
            store_pair(n, bufs, &Index::default(), merged, half);
            half /= 2;
        }
    }

    /// Pairs of the leaves of every row into `temps`: `[row][leaf]`.
    pub(super) fn leaves_along_pairs(&self, n: &mut Nest<'s>, r: &Red, temps: &[u32; 2]) -> Result<(), LowerError> {
        let leaves = self.leaves(r);
        let lanes = self.pair_bufs(n, r, "lanes", LANES as u64);
        self.outer_loops(n, &self.outer, &[leaves], &mut |p, n, row, leaf| {
            let pair = p.leaf_pair(n, r, &leaf[0], &lanes)?;
            store_pair(n, temps, &row.times(leaves as i64).plus(&leaf[0]), pair, 1);
            Ok(())
        })
    }

    pub(super) fn tree_along_pairs(&self, n: &mut Nest<'s>, r: &Red, temps: &[u32; 2]) -> Result<(), LowerError> {
        let leaves = self.leaves(r);
        self.outer_loops(n, &self.outer, &[], &mut |p, n, row, _| {
            let pair = tree_pair(n, r, temps, &row.times(leaves as i64), leaves, 1)?;
            let v = r.total(n, pair);
            n.bind(r.value, v);
            p.stores(n)
        })
    }

    // --- across it

    /// Scratch for the second numbers of the canonical lanes and of the leaves; `None` for a
    /// plain reduction.
    pub(super) fn pair_columns(&self, n: &mut Nest, r: &Red, size: u64) -> Option<[u32; 2]> {
        r.compensated.then(|| {
            let mut scratch = |name: &str, elems: u64| n.scratch(&format!("{name}{}", r.value.0), r.accum, elems);
            let leaves = self.leaves(r);
            let lanes = scratch("lanes_low", size * LANES as u64);
            [lanes, if leaves > 1 { scratch("leaf_low", leaves * size) } else { 0 }]
        })
    }

    pub(super) fn reduce_pairs_across(
        &self,
        n: &mut Nest<'s>,
        columns: &Columns,
        i: usize,
        bufs: &[Bufs],
        low: &[u32; 2],
    ) -> Result<(), LowerError> {
        let r = self.reductions[i];
        let [lanes_buf, sums, result] = bufs[i];
        let (leaves, lanes) = (self.leaves(&r), [lanes_buf, low[0]]);
        if leaves <= 1 {
            return self.leaf_pair_across(n, columns, i, &Index::default(), bufs, &lanes, &mut |n, chunk, pair| {
                let v = r.total(n, pair);
                self.store_all(n, result, self.column(columns, chunk), v);
            });
        }
        let sums = [sums, low[1]];
        let first = columns.first_chunk().clone();
        let at = |chunk: &Index, leaf: &Index| {
            chunk.minus(&first).times(leaves as i64).plus(leaf).times(i64::from(self.lanes))
        };
        let var = n.var(leaves as i64 - 1);
        n.plain_loop(var, vec![Index::default()], vec![Index::constant(leaves as i64)], |n| {
            self.leaf_pair_across(n, columns, i, &Index::var(var), bufs, &lanes, &mut |n, chunk, pair| {
                store_pair(n, &sums, &at(chunk, &Index::var(var)), pair, self.lanes);
            })
        })?;
        self.walk(n, columns.axis, &columns.span, &mut |n, chunk| {
            let pair = tree_pair(n, &r, &sums, &at(chunk, &Index::default()), leaves, self.lanes)?;
            let v = r.total(n, pair);
            self.store_all(n, result, self.column(columns, chunk), v);
            Ok(())
        })
    }

    /// One leaf of every column of the block; `out` receives each chunk's pair.
    fn leaf_pair_across(
        &self,
        n: &mut Nest<'s>,
        columns: &Columns,
        i: usize,
        leaf: &Index,
        bufs: &[Bufs],
        lanes: &[u32; 2],
        out: &mut dyn FnMut(&mut Nest<'s>, &Index, Pair),
    ) -> Result<(), LowerError> {
        let r = self.reductions[i];
        // Without the lane, which loads and stores of pairs add.
        let first = columns.first_chunk().clone();
        let at = |chunk: &Index, l: &Index| {
            l.times(columns.size as i64).plus(&chunk.minus(&first).times(i64::from(self.lanes)))
        };
        self.walk(n, columns.axis, &columns.span, &mut |n, chunk| {
            let zero = r.zero(n, self.lanes);
            (0..LANES as i64).for_each(|l| store_pair(n, lanes, &at(chunk, &Index::constant(l)), zero, self.lanes));
            Ok(())
        })?;
        let last = self.s.extent(r.axis).div_ceil(LANES as u64) as i64 - 1;
        for (lo, hi, count) in self.chunks(&r, leaf) {
            if count == 0 || last < 0 {
                continue;
            }
            let (q, l): (Var, Var) = (n.var(last), n.var(i64::from(count) - 1));
            n.plain_loop(q, lo, hi, |n| {
                n.plain_loop(l, vec![Index::default()], vec![Index::constant(i64::from(count))], |n| {
                    let old = n.bind_axis(r.axis, Index::var(q).times(LANES as i64).plus(&Index::var(l)));
                    self.walk(n, columns.axis, &columns.span, &mut |n, chunk| {
                        self.bind_results(n, columns, chunk, i, bufs);
                        let value = n.eval(r.arg)?;
                        let at = at(chunk, &Index::var(l));
                        let acc = load_pair(n, &r, lanes, &at, self.lanes);
                        let next = r.add(n, acc, value);
                        store_pair(n, lanes, &at, next, self.lanes);
                        Ok(())
                    })?;
                    n.bind_axis(r.axis, old);
                    Ok(())
                })
            })?;
        }
        self.walk(n, columns.axis, &columns.span, &mut |n, chunk| {
            let mut acc: Vec<Pair> = (0..LANES as i64)
                .map(|l| load_pair(n, &r, lanes, &at(chunk, &Index::constant(l)), self.lanes))
                .collect();
            let mut half = LANES / 2;
            while half > 0 {
                for l in 0..half {
                    acc[l] = r.merge(n, acc[l], acc[l + half]);
                }
                half /= 2;
            }
            out(n, chunk, acc[0]);
            Ok(())
        })
    }

    /// Pairs of the leaves of every column into `temps`: `[row][chunk][leaf][lane]`.
    pub(super) fn leaves_across_pairs(&self, n: &mut Nest<'s>, r: &Red, temps: &[u32; 2]) -> Result<(), LowerError> {
        let size = self.column_block(self.columns_axis()?);
        let lanes = self.pair_bufs(n, r, "lanes", size * LANES as u64);
        let leaves = self.leaves(r);
        self.blocks(n, &[leaves], &mut |n, columns, row, leaf| {
            self.leaf_pair_across(n, columns, 0, &leaf[0], &[[0, 0, 0]], &lanes, &mut |n, chunk, pair| {
                let at = self.temp_at(columns.axis, row, chunk, leaves).plus(&leaf[0].times(i64::from(self.lanes)));
                store_pair(n, temps, &at, pair, self.lanes);
            })
        })
    }

    pub(super) fn tree_across_pairs(&self, n: &mut Nest<'s>, r: &Red, temps: &[u32; 2]) -> Result<(), LowerError> {
        let leaves = self.leaves(r);
        self.blocks(n, &[], &mut |n, columns, row, _| {
            self.walk(n, columns.axis, &columns.span, &mut |n, chunk| {
                let at = self.temp_at(columns.axis, row, chunk, leaves);
                let pair = tree_pair(n, r, temps, &at, leaves, self.lanes)?;
                let v = r.total(n, pair);
                n.bind(r.value, v);
                self.stores(n)
            })
        })
    }
}
