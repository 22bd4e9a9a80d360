//! Rows that are written while the next one is reduced: computing and writing then go on at the
//! same time, where a row's results would otherwise leave in one burst.

use super::{Plan, Red};
use crate::LowerError;
use crate::nest::Nest;
use tessera_ir::index::{Index, Var};
use tessera_ir::tile::Val;

/// Rows of a grid point below which the code for the first and the last is not worth it.
const ROWS_MIN: u64 = 4;

impl<'s> Plan<'s> {
    /// The axis of the rows and how many of them a grid point has, where rows are written so:
    /// where the results of a row are walked as its last reduction is.
    pub(super) fn rows_behind(&self) -> Option<(Var, u64)> {
        let (&rows, last) = (self.outer.last()?, self.reductions.last()?);
        let extent = self.s.extent(rows);
        let size = self.tile(rows).unwrap_or(extent);
        let alike = self.reductions.iter().all(|r| r.axis == last.axis && !r.compensated);
        let same_walk = self.inner == [last.axis] && self.s.stores.iter().all(|st| st.at.stride(last.axis) == Some(1));
        let whole = size >= ROWS_MIN && extent.is_multiple_of(size);
        // What a row keeps for being written is overwritten no sooner than it is read.
        let count = self.reductions.len();
        let kept = self.kept.iter().all(|k| k.stages.last() != Some(&count) || k.stages.first() == Some(&(count - 1)));
        (self.stream && alike && same_walk && whole && kept).then_some((rows, size))
    }

    /// The rows of a grid point, `size` from `first` on. `reduce` does one reduction.
    pub(super) fn behind(
        &self,
        n: &mut Nest<'s>,
        rows: Var,
        first: &Index,
        size: u64,
        reduce: &dyn Fn(&mut Nest<'s>, usize, &Red) -> Result<Val, LowerError>,
    ) -> Result<(), LowerError> {
        let all = |n: &mut Nest<'s>| -> Result<Vec<Val>, LowerError> {
            let mut out = vec![];
            for (i, r) in self.reductions.iter().enumerate() {
                let v = reduce(n, i, r)?;
                n.bind(r.value, v);
                out.push(v);
            }
            Ok(out)
        };
        let bind = |n: &mut Nest<'s>, results: &[Val]| {
            self.reductions.iter().zip(results).for_each(|(r, v)| n.bind(r.value, *v));
        };
        n.place(rows, first.clone());
        let results = all(n)?;
        let last = size as i64 - 1;
        let var = n.var(last - 1);
        let (lo, hi) = (vec![Index::default()], vec![Index::constant(last)]);
        let results = n.carry_loop(var, lo, hi, &results, |n, before| {
            let row = first.plus(&Index::var(var));
            n.place(rows, row.clone());
            bind(n, before);
            n.place(rows, row.offset(1));
            n.behind = Some((rows, row));
            let results = all(n);
            n.behind = None;
            results
        })?;
        n.place(rows, first.offset(last));
        bind(n, &results);
        self.stores(n)
    }

    /// Stores the present place of the row before, where there is one.
    pub(super) fn store_behind(&self, n: &mut Nest<'s>) -> Result<(), LowerError> {
        let Some((rows, row)) = n.behind.clone() else { return Ok(()) };
        let now = n.place(rows, row);
        self.store_here(n)?;
        n.place(rows, now);
        Ok(())
    }
}
