//! Products whose columns are rows of an image: the right operand is even in each row only.
//!
//! A grid point owns whole rows. It copies them, for all k of a block, one after the other into
//! scratch `[k][columns]`, and its register tiles run over the joined columns: a row need not be a
//! multiple of the vector.

use super::panels::{Columns, parts};
use super::{Compute, Product};
use crate::LowerError;
use crate::nest::Nest;
use tessera_ir::index::Index;
use tessera_ir::tile::LANE;

/// What stands inside the loops over k.
type Step<'b, 's> = &'b mut dyn FnMut(&mut Nest<'s>, &Index, &Index) -> Result<(), LowerError>;

impl<'s> Product<'s> {
    /// Elements from one k to the next in the block of B that a grid point packs itself.
    pub(super) fn column_pitch(&self) -> i64 {
        let lanes = self.lanes as u64;
        match self.row {
            // An odd number of vectors: powers of two would share cache sets.
            Some(row) => {
                let reach = self.nc - row + row.next_multiple_of(lanes);
                ((reach.div_ceil(lanes) | 1) * lanes) as i64
            }
            None => self.panel() as i64,
        }
    }

    /// Loops over the positions of one k block as the right operand's indices are nested, so that
    /// they need no divisions: `body` gets k and its distance from the start.
    fn over_nest(&self, n: &mut Nest<'s>, block: &Index, body: Step<'_, 's>) -> Result<(), LowerError> {
        let nest = self.s.nest_along(self.right, self.k);
        let inner: u64 = nest.iter().skip(1).product();
        if self.pairs() || nest.len() < 2 || inner == 0 || !self.kc.is_multiple_of(inner) {
            return self.over_block(n, block, |n, k, from_start| body(n, &k, &from_start));
        }
        let (outer, per) = (self.depth() / inner, (self.kc / inner) as i64);
        let (first, c) = (block.times(per), n.var(outer as i64 - 1));
        let hi = vec![first.offset(per), Index::constant(outer as i64)];
        n.plain_loop(c, vec![first.clone()], hi, |n| {
            let k = Index::var(c).times(inner as i64);
            let from_start = Index::var(c).minus(&first).times(inner as i64);
            self.over_rest(n, &nest[1..], &k, &from_start, body)
        })
    }

    fn over_rest(
        &self,
        n: &mut Nest<'s>,
        nest: &[u64],
        k: &Index,
        from_start: &Index,
        body: Step<'_, 's>,
    ) -> Result<(), LowerError> {
        let Some((&size, rest)) = nest.split_first() else { return body(n, k, from_start) };
        let step = rest.iter().product::<u64>() as i64;
        let i = n.var(size as i64 - 1);
        n.plain_loop(i, vec![Index::default()], vec![Index::constant(size as i64)], |n| {
            let on = Index::var(i).times(step);
            self.over_rest(n, rest, &k.plus(&on), &from_start.plus(&on), body)
        })
    }

    /// Copies `rows` rows of columns, from row `first` on, of one k block.
    fn pack_rows(
        &self,
        n: &mut Nest<'s>,
        buf: u32,
        first: &Index,
        (rows, row): (u64, u64),
        block: &Index,
    ) -> Result<(), LowerError> {
        let lanes = self.lanes as i64;
        self.over_nest(n, block, &mut |n, k, from_start| {
            let r = n.var(rows as i64 - 1);
            n.plain_loop(r, vec![Index::default()], vec![Index::constant(rows as i64)], |n| {
                let base = from_start.times(self.column_pitch()).plus(&Index::var(r).times(row as i64));
                let start = first.plus(&Index::var(r)).times(row as i64);
                for (lo, hi, valid) in [
                    (0, row / lanes as u64, self.lanes),
                    (row / lanes as u64, row.div_ceil(lanes as u64), (row % lanes as u64) as u32),
                ] {
                    if lo == hi {
                        continue;
                    }
                    let q = n.var(hi as i64 - 1);
                    n.plain_loop(q, vec![Index::constant(lo as i64)], vec![Index::constant(hi as i64)], |n| {
                        n.valid = valid;
                        let inside = Index::var(q).times(lanes).plus(&Index::var(LANE));
                        if let Some(axis) = self.n {
                            n.bind_axis(axis, start.plus(&inside));
                        }
                        let value = self.step_value(n, self.right, k)?;
                        // Whole vectors are stored: the next row overwrites what is too much.
                        n.valid = n.lanes;
                        n.store(buf, base.plus(&inside), value, false);
                        Ok(())
                    })?;
                }
                Ok(())
            })
        })
    }
}

impl<'s> Compute<'_, 's> {
    /// One block along k of a tile of whole rows. All tiles but the last have the same number.
    pub(super) fn rows_block(&self, n: &mut Nest<'s>, block: &Index, row: u64, buf: u32) -> Result<(), LowerError> {
        let p = self.p;
        let (rows, per) = (p.extent(p.n) / row, p.nc / row);
        let whole = rows / per;
        for (lo, hi, count) in [(0, whole, per), (whole, rows.div_ceil(per), rows % per)] {
            if lo == hi {
                continue;
            }
            // A loop over the tiles of this kind that are this point's: one, or none.
            let tile = n.var(hi as i64 - 1);
            let bounds = |at: Index, limit: u64| vec![at, Index::constant(limit as i64)];
            n.plain_loop(tile, bounds(self.tile_n.clone(), lo), bounds(self.tile_n.offset(1), hi), |n| {
                let tile = Index::var(tile);
                p.pack_rows(n, buf, &tile.times(per as i64), (count, row), block)?;
                self.rows_tiles(n, block, &tile, count * row)
            })?;
        }
        Ok(())
    }

    /// The register tiles of `width` packed columns: a panel of A stays while B passes.
    fn rows_tiles(&self, n: &mut Nest<'s>, block: &Index, tile: &Index, width: u64) -> Result<(), LowerError> {
        let p = self.p;
        for row in parts(p.extent(p.m), Some((&self.tile_m, p.mc)), p.rows) {
            let ir = n.var(p.extent(p.m).div_ceil(p.rows as u64) as i64 - 1);
            n.plain_loop(ir, row.lo, row.hi, |n| {
                for part in parts(width, None, p.panel()) {
                    let jr = n.var(width.div_ceil(p.panel() as u64) as i64 - 1);
                    let inside = Index::var(jr);
                    let first = tile.times(p.nc as i64).plus(&inside.times(p.panel() as i64));
                    let columns = Columns { panel: Index::default(), inside, first, count: part.size };
                    n.plain_loop(jr, part.lo, part.hi, |n| {
                        self.tile(n, block, &self.row_panel(&Index::var(ir), row.size), &columns, None)
                    })?;
                }
                Ok(())
            })?;
        }
        Ok(())
    }
}
