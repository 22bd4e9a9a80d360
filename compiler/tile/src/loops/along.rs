//! Kernels without reductions, and reductions along the vector: the lanes of a vector are the
//! canonical lanes of the sum.
//!
//! Also called: row reductions.

use super::{Plan, Red};
use crate::LowerError;
use crate::nest::{Nest, identity};
use tessera_ir::index::Index;
use tessera_ir::tile::{Def, LANE, Val};
use tessera_ops::prim::LANES;

impl<'s> Plan<'s> {
    pub(super) fn whole_along(&self, n: &mut Nest<'s>) -> Result<(), LowerError> {
        let sums: Vec<u32> = self.reductions.iter().map(|r| self.leaf_sums(n, r)).collect();
        let pairs: Vec<_> = self.reductions.iter().map(|r| self.pair_scratch(n, r)).collect();
        let reduce = |n: &mut Nest<'s>, i: usize, r: &Red| match &pairs[i] {
            Some(pairs) => self.reduce_pairs_along(n, r, pairs),
            None if self.is_long_choice(r) => self.choose_along(n, r),
            None => self.reduce_along(n, r, sums[i]),
        };
        if let Some((rows, size)) = self.rows_behind() {
            let (others, blocks) = (&self.outer[..self.outer.len() - 1], self.s.extent(rows) / size);
            return self.outer_loops(n, others, &[blocks], &mut |p, n, _, block| {
                p.behind(n, rows, &block[0].times(size as i64), size, &sums)
            });
        }
        self.outer_loops(n, &self.outer, &[], &mut |p, n, _, _| {
            for (i, r) in p.reductions.iter().enumerate() {
                let v = reduce(n, i, r)?;
                n.bind(r.value, v);
            }
            p.stores(n)
        })
    }

    /// Leaf sums of every row into `temp`: `[row][leaf]`.
    pub(super) fn leaves_along(&self, n: &mut Nest<'s>, r: &Red, temp: u32) -> Result<(), LowerError> {
        let leaves = self.leaves(r);
        self.outer_loops(n, &self.outer, &[leaves], &mut |p, n, row, leaf| {
            let sum = p.leaf_along(n, r, &leaf[0])?;
            n.store(temp, row.times(leaves as i64).plus(&leaf[0]), sum, false);
            Ok(())
        })
    }

    pub(super) fn tree_along(&self, n: &mut Nest<'s>, r: &Red, temp: u32) -> Result<(), LowerError> {
        let leaves = self.leaves(r);
        self.outer_loops(n, &self.outer, &[], &mut |p, n, row, _| {
            let v =
                n.define(Def::Tree { kind: r.kind, buf: temp, at: row.times(leaves as i64), count: leaves }, r.of, 1);
            n.bind(r.value, v);
            p.stores(n)
        })
    }

    /// Scratch for the sums of leaves; none where there is one leaf.
    pub(super) fn leaf_sums(&self, n: &mut Nest, r: &Red) -> u32 {
        match self.leaves(r) {
            0 | 1 => 0,
            _ if r.compensated => 0,
            leaves => n.scratch(&format!("leaf_sums{}", r.value.0), r.accum, leaves),
        }
    }

    /// The whole reduction at the present places.
    pub(super) fn reduce_along(&self, n: &mut Nest<'s>, r: &Red, sums: u32) -> Result<Val, LowerError> {
        let leaves = self.leaves(r);
        if leaves <= 1 {
            return self.leaf_along(n, r, &Index::default());
        }
        let var = n.var(leaves as i64 - 1);
        n.plain_loop(var, vec![Index::default()], vec![Index::constant(leaves as i64)], |n| {
            let sum = self.leaf_along(n, r, &Index::var(var))?;
            n.store(sums, Index::var(var), sum, false);
            Ok(())
        })?;
        Ok(n.define(Def::Tree { kind: r.kind, buf: sums, at: Index::default(), count: leaves }, r.of, 1))
    }

    /// One leaf: `LANES` chains from the identity, combined by halves.
    fn leaf_along(&self, n: &mut Nest<'s>, r: &Red, leaf: &Index) -> Result<Val, LowerError> {
        let start = n.define(Def::Const(identity(r.kind, r.of)), r.of, LANES as u32);
        let acc = self.over_leaf(n, r, leaf, vec![start], &mut |n, acc, valid| {
            let value = self.row_value(n, r)?;
            Ok(vec![n.define(Def::Fold { kind: r.kind, acc: acc[0], value, valid }, r.of, LANES as u32)])
        })?;
        Ok(n.define(Def::Lanes { kind: r.kind, arg: acc[0] }, r.of, 1))
    }

    /// Walks a leaf of `r` in vectors, the ragged one last, and carries `acc`; `body` gets what is carried
    /// and how many lanes count.
    pub(super) fn over_leaf(
        &self,
        n: &mut Nest<'s>,
        r: &Red,
        leaf: &Index,
        mut acc: Vec<Val>,
        body: &mut dyn FnMut(&mut Nest<'s>, &[Val], u32) -> Result<Vec<Val>, LowerError>,
    ) -> Result<Vec<Val>, LowerError> {
        let last = self.s.extent(r.axis).div_ceil(LANES as u64) as i64 - 1;
        let before = (n.lanes, n.valid);
        for (lo, hi, valid) in self.chunks(r, leaf) {
            if valid == 0 || last < 0 {
                continue;
            }
            let var = n.var(last);
            acc = n.carry_loop(var, lo, hi, &acc, |n, acc| {
                (n.lanes, n.valid) = (LANES as u32, valid);
                let old = n.bind_axis(r.axis, Index::var(var).times(LANES as i64).plus(&Index::var(LANE)));
                let next = body(n, acc, valid)?;
                n.bind_axis(r.axis, old);
                Ok(next)
            })?;
            (n.lanes, n.valid) = before;
        }
        Ok(acc)
    }
}
