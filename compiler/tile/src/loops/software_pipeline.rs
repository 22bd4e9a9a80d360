//! Rows of a grid point one after the other, a row written while the next one is reduced:
//! computing and writing then go on at the same time, where a row's results would otherwise leave
//! in one burst. With [`Directive::Overlap`](tessera_ir::schedule::Directive) all reductions go
//! together, each of the row behind that of the one before it, so that memory, chains of sums and
//! arithmetic have something to do at any time.

use super::{Plan, Red};
use crate::LowerError;
use crate::nest::{Nest, identity};
use tessera_ir::index::{Index, Var};
use tessera_ir::tile::{Def, Val};
use tessera_ops::prim::LANES;

/// Rows of a grid point below which the code for the first and the last is not worth it.
const ROWS_MIN: u64 = 4;

/// What goes together: the row that is written, and reductions with their rows. A row is written
/// first and later reductions come before earlier ones: what a row keeps is read before the next
/// row overwrites it.
struct Walk {
    write: Option<Index>,
    reduce: Vec<(usize, Index)>,
}

/// When things happen: turn `t` does reduction `s` of row `t − lags[s]` and writes row `t − written`.
struct Turns {
    lags: Vec<i64>,
    written: i64,
}

impl Turns {
    fn new(count: usize, overlap: bool) -> Turns {
        match overlap {
            true => Turns { lags: (0..count as i64).collect(), written: count as i64 },
            false => Turns { lags: vec![0; count], written: 1 },
        }
    }

    /// The walks of the turn that begins row `now`, where `open` tells which rows, by their lag, exist.
    fn walks(&self, now: &Index, open: &dyn Fn(i64) -> bool) -> Vec<Walk> {
        let row = |lag: i64| now.offset(-lag);
        let write = Some(self.written).filter(|lag| open(*lag)).map(row);
        let stages = self.lags.iter().enumerate().filter(|(_, lag)| open(**lag));
        let mut reduce: Vec<(usize, Index)> = stages.map(|(s, lag)| (s, row(*lag))).collect();
        if self.written > 1 {
            reduce.reverse();
            return vec![Walk { write, reduce }];
        }
        // One by one; the last one takes the row that is written along.
        let last = reduce.pop();
        let alone = reduce.into_iter().map(|r| Walk { write: None, reduce: vec![r] });
        alone.chain([Walk { write, reduce: last.into_iter().collect() }]).collect()
    }
}

impl<'s> Plan<'s> {
    /// The axis of the rows and how many of them a grid point has, where rows are written so:
    /// where the results of a row are walked as its reductions are.
    pub(super) fn rows_behind(&self) -> Option<(Var, u64)> {
        let (&rows, last) = (self.outer.last()?, self.reductions.last()?);
        let extent = self.s.extent(rows);
        let size = self.tile(rows).unwrap_or(extent);
        let alike = self.reductions.iter().all(|r| r.axis == last.axis && !r.compensated);
        let same_walk = self.inner == [last.axis] && self.s.stores.iter().all(|st| st.at.stride(last.axis) == Some(1));
        let turns = self.turns();
        let whole = size >= ROWS_MIN && size > turns.written as u64 && extent.is_multiple_of(size);
        // What a row keeps is overwritten no sooner than it is read.
        let lag = |stage: &usize| turns.lags.get(*stage).copied().unwrap_or(turns.written);
        let in_time = |f: &usize, l: &usize| lag(l) - lag(f) < 1 || lag(l) - lag(f) == 1 && self.together(*f, *l);
        let kept = self.kept.iter().all(|k| k.stages.first().zip(k.stages.last()).is_none_or(|(f, l)| in_time(f, l)));
        (self.stream && alike && same_walk && whole && kept).then_some((rows, size))
    }

    fn turns(&self) -> Turns {
        Turns::new(self.reductions.len(), self.overlap && self.reductions.len() > 1)
    }

    /// Whether both stages go along one walk.
    fn together(&self, first: usize, last: usize) -> bool {
        let count = self.reductions.len();
        self.turns().written > 1 || first + 1 == count && last == count
    }

    /// The rows of a grid point, `size` from `first` on. `sums` are buffers for leaf sums.
    pub(super) fn behind(
        &self,
        n: &mut Nest<'s>,
        rows: Var,
        first: &Index,
        size: u64,
        sums: &[u32],
    ) -> Result<(), LowerError> {
        let (turns, size) = (self.turns(), size as i64);
        // Results of rows that are not written yet, the oldest row first.
        let mut open: Vec<Vec<Val>> = vec![];
        for t in 0..turns.written {
            open.push(vec![]);
            self.turn(n, rows, &turns.walks(&first.offset(t), &|lag| lag <= t), first, &mut open, sums)?;
        }
        // From here on every turn writes a row and does every reduction.
        let steady = size - turns.written;
        let var = n.var(steady - 1);
        let flat: Vec<Val> = open.iter().flatten().copied().collect();
        let lengths: Vec<usize> = open.iter().map(Vec::len).collect();
        let last = n.carry_loop(var, vec![Index::default()], vec![Index::constant(steady)], &flat, |n, before| {
            let oldest = first.plus(&Index::var(var));
            let mut open = split(before, &lengths);
            open.push(vec![]);
            let walks = turns.walks(&oldest.offset(turns.written), &|_| true);
            self.turn(n, rows, &walks, &oldest, &mut open, sums)?;
            Ok(open[1..].iter().flatten().copied().collect())
        })?;
        open = split(&last, &lengths);
        for t in size..size + turns.written {
            let oldest = first.offset(t - turns.written);
            self.turn(n, rows, &turns.walks(&first.offset(t), &|lag| t - lag < size), &oldest, &mut open, sums)?;
            open.remove(0);
        }
        Ok(())
    }

    /// One turn. `open` has the results of the rows from `oldest` on; the turn's are added.
    fn turn(
        &self,
        n: &mut Nest<'s>,
        rows: Var,
        walks: &[Walk],
        oldest: &Index,
        open: &mut [Vec<Val>],
        sums: &[u32],
    ) -> Result<(), LowerError> {
        for walk in walks {
            for (i, results) in open.iter().enumerate() {
                n.bind_axis(rows, oldest.offset(i as i64));
                self.reductions.iter().zip(results).for_each(|(r, v)| n.bind(r.value, *v));
            }
            if let (true, Some(row)) = (walk.reduce.is_empty(), &walk.write) {
                n.bind_axis(rows, row.clone());
                self.stores(n)?;
            }
            let results = self.walk_rows(n, rows, walk, sums)?;
            for ((_, row), v) in walk.reduce.iter().zip(results) {
                let at = (0..open.len()).find(|i| oldest.offset(*i as i64) == *row);
                let results = at.and_then(|i| open.get_mut(i)).ok_or_else(|| LowerError("a row out of turn".into()))?;
                results.push(v);
            }
        }
        Ok(())
    }

    /// The reductions of a walk, with its row written along the way.
    fn walk_rows(&self, n: &mut Nest<'s>, rows: Var, walk: &Walk, sums: &[u32]) -> Result<Vec<Val>, LowerError> {
        let reds: Vec<&Red> = walk.reduce.iter().map(|(s, _)| &self.reductions[*s]).collect();
        let lanes = |n: &mut Nest<'s>, acc: Vec<Val>| -> Vec<Val> {
            let pairs = reds.iter().zip(acc);
            pairs.map(|(r, arg)| n.define(Def::Lanes { kind: r.kind, arg }, r.of, 1)).collect()
        };
        let Some(r) = reds.first() else { return Ok(vec![]) };
        let leaves = self.leaves(r);
        if leaves <= 1 {
            let acc = self.leaf_together(n, rows, walk, &Index::default())?;
            return Ok(lanes(n, acc));
        }
        let var = n.var(leaves as i64 - 1);
        n.plain_loop(var, vec![Index::default()], vec![Index::constant(leaves as i64)], |n| {
            let acc = self.leaf_together(n, rows, walk, &Index::var(var))?;
            for ((stage, _), sum) in walk.reduce.iter().zip(lanes(n, acc)) {
                n.store(sums[*stage], Index::var(var), sum, false);
            }
            Ok(())
        })?;
        let tree = |buf, r: &Red| (Def::Tree { kind: r.kind, buf, at: Index::default(), count: leaves }, r.of);
        let trees = walk.reduce.iter().zip(&reds).map(|((stage, _), r)| tree(sums[*stage], r));
        Ok(trees.map(|(def, of)| n.define(def, of, 1)).collect())
    }

    /// One leaf of each: the accumulators, whose lanes are still to be combined.
    fn leaf_together(&self, n: &mut Nest<'s>, rows: Var, walk: &Walk, leaf: &Index) -> Result<Vec<Val>, LowerError> {
        let reds: Vec<&Red> = walk.reduce.iter().map(|(s, _)| &self.reductions[*s]).collect();
        let start = |r: &&Red| n.define(Def::Const(identity(r.kind, r.of)), r.of, LANES as u32);
        let acc: Vec<Val> = reds.iter().map(start).collect();
        let Some(first) = reds.first() else { return Ok(acc) };
        self.over_leaf(n, first, leaf, acc, &mut |n, acc, valid| {
            if let Some(row) = &walk.write {
                n.bind_axis(rows, row.clone());
                self.store_here(n)?;
            }
            let mut next = vec![];
            for (((stage, row), r), acc) in walk.reduce.iter().zip(&reds).zip(acc) {
                n.bind_axis(rows, row.clone());
                match self.overlap {
                    _ if !self.prefetch => {}
                    false => self.prefetch_for(n, r, *stage),
                    true if *stage == 0 => self.prefetch_row(n, r, rows, 0, 1),
                    true => {}
                }
                let value = self.stage_value(n, r, *stage)?;
                next.push(n.define(Def::Fold { kind: r.kind, acc: *acc, value, valid }, r.of, LANES as u32));
            }
            Ok(next)
        })
    }
}

/// The same values in lists of these lengths.
fn split(values: &[Val], lengths: &[usize]) -> Vec<Vec<Val>> {
    let mut rest = values.iter().copied();
    lengths.iter().map(|n| rest.by_ref().take(*n).collect()).collect()
}
