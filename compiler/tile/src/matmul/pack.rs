//! Packing of the operands of a product, with whatever is computed on the way.

use super::Product;
use super::panels::parts;
use crate::nest::Nest;
use crate::{LowerError, Step};
use tessera_ir::index::{Index, Var, delinear};
use tessera_ir::schedule::{ValueId, ValueOp};
use tessera_ir::tile::{Def, LANE, POINT, Panel, Val};
use tessera_ops::map::kind_of;
use tessera_ops::scalar::Kind;

/// Packed elements that are worth a thread's wake-up.
const ELEMS_PER_WAKE: u64 = 64 << 10;

impl<'s> Product<'s> {
    /// Elements from one row of the packed left block to the next, where rows are kept: off the
    /// powers of two, which would share cache sets.
    pub(super) fn pitch(&self) -> u64 {
        let lanes = self.order.unit().max(self.lanes as u64);
        self.kc.next_multiple_of(lanes) + lanes
    }

    /// Whether neighbours along `axis` lie together in more loads behind `v` than those along k.
    fn runs_along(&self, v: ValueId, axis: Option<Var>) -> bool {
        let (mut along, mut deep) = (0, 0);
        let mut todo = vec![v];
        while let Some(v) = todo.pop() {
            if let ValueOp::Load { at, .. } = &self.s.value(v).op {
                along += (axis.and_then(|a| at.stride(a)) == Some(1)) as u32;
                deep += (at.stride(self.k) == Some(1)) as u32;
            }
            todo.extend(self.s.args(v));
        }
        along > deep
    }

    /// Whether the left factor is packed step by step, not row by row.
    fn left_by_steps(&self) -> bool {
        !self.matrix_unit && self.runs_along(self.left, self.m)
    }

    /// Whether a load behind `v` is contiguous along k, in whole vectors at least: numbers in blocks are.
    fn runs_deep(&self, v: ValueId) -> bool {
        let lanes = self.lanes as i64;
        // No axis has this number.
        let lane = Var(self.s.axes.len() as u32);
        let vector = Index::var(self.k).times(lanes).plus(&Index::var(lane));
        let ranges = |x: Var| if x == lane { (0, lanes - 1) } else { self.s.range(x) };
        let deep =
            |at: &Index| at.substitute(&|x| (x == self.k).then(|| vector.clone()), &ranges).stride(lane) == Some(1);
        let here = matches!(&self.s.value(v).op, ValueOp::Load { at, .. } if deep(at));
        here || self.s.args(v).into_iter().any(|a| self.runs_deep(a))
    }

    /// The panel of packed A that starts `panel` row panels into the tile.
    pub(super) fn left_panel(&self, buf: u32, panel: &Index) -> Panel {
        let (pitch, span) = (self.pitch() as i64, self.span() as i64);
        if self.left_by_steps() {
            let at = panel.times(self.rows as i64 * (pitch / span));
            Panel { buf, at, row: 1, step: self.rows as i64 }
        } else {
            let at = panel.times(self.rows as i64 * pitch);
            Panel { buf, at, row: pitch, step: 1 }
        }
    }

    /// Memory for the packed left factor: as [`Product::pack_left_block`] fills it.
    pub(super) fn left_scratch(&self, n: &mut Nest<'s>, pitch: u64) -> u32 {
        match self.left_by_steps() {
            true => n.scratch("a", self.packed(), self.mc * pitch / self.span()),
            false => n.scratch("a", self.factor, self.mc * pitch),
        }
    }

    /// `v` at position `k`, or the pair of it and the value behind it.
    pub(super) fn step_value(&self, n: &mut Nest<'s>, v: ValueId, k: &Index) -> Result<Val, LowerError> {
        n.bind_axis(self.k, k.clone());
        let even = n.eval(v)?;
        if !self.pairs() {
            return Ok(even);
        }
        n.bind_axis(self.k, k.offset(1));
        let odd = n.eval(v)?;
        let lanes = n.kernel.ty(even).lanes.max(n.kernel.ty(odd).lanes);
        Ok(n.define(Def::Pair { even, odd }, Kind::I32, lanes))
    }

    /// Copies rows of tile `tile` and one k block of A: row by row, or, where the rows of the
    /// matrix run along m, as `[k][row]` panels.
    pub(super) fn pack_left_block(
        &self,
        n: &mut Nest<'s>,
        buf: u32,
        tile: &Index,
        block: &Index,
    ) -> Result<(), LowerError> {
        if self.left_by_steps() {
            self.pack_left_panels(n, buf, tile, block)
        } else if self.left_is_turned() {
            self.pack_left_turned(n, buf, tile, block)
        } else {
            self.pack_left_rows(n, buf, tile, block)
        }
    }

    /// The kind of the factors' values.
    fn factor_kind(&self) -> Result<Kind, LowerError> {
        kind_of(self.factor).ok_or(LowerError(format!("a product of {}", self.factor)))
    }

    /// Whether rows of the left factor, which are kept as rows, lie across memory, and a tile has whole squares of lanes.
    fn left_is_turned(&self) -> bool {
        let whole = self.mc.is_multiple_of(self.lanes as u64) || self.mc >= self.extent(self.m);
        self.matrix_unit && whole && self.runs_along(self.left, self.m)
    }

    /// Row by row, where the rows run along m: squares of `lanes` rows by `lanes` steps are read along m and turned over in
    /// registers.
    fn pack_left_turned(&self, n: &mut Nest<'s>, buf: u32, tile: &Index, block: &Index) -> Result<(), LowerError> {
        let (lanes, pitch) = (self.lanes, self.pitch() as i64);
        let tiles = (self.mc < self.extent(self.m)).then_some((tile, self.mc));
        for rows in parts(self.extent(self.m), tiles, lanes) {
            let square = n.var(self.extent(self.m).div_ceil(lanes as u64) as i64 - 1);
            n.plain_loop(square, rows.lo, rows.hi, |n| {
                let first = Index::var(square).times(lanes as i64);
                let base = first.minus(&tile.times(self.mc as i64)).times(pitch);
                for steps in parts(self.depth(), (self.blocks() > 1).then_some((block, self.kc)), lanes) {
                    let q = n.var(self.depth().div_ceil(lanes as u64) as i64 - 1);
                    n.plain_loop(q, steps.lo, steps.hi, |n| {
                        n.valid = rows.size;
                        if let Some(m) = self.m {
                            n.bind_axis(m, first.plus(&Index::var(LANE)));
                        }
                        let mut from = vec![];
                        for j in 0..lanes {
                            n.bind_axis(self.k, Index::var(q).times(lanes as i64).offset(j as i64));
                            // Steps beyond the last repeat one that exists; they are not stored.
                            from.push(if j < steps.size { n.eval(self.left)? } else { from[0] });
                        }
                        let to = n.transpose(from, self.factor_kind()?);
                        let inside = Index::var(q).times(lanes as i64).minus(&block.times(self.kc as i64));
                        n.valid = steps.size;
                        for (i, row) in to.into_iter().enumerate().take(rows.size as usize) {
                            let at = base.offset(i as i64 * pitch).plus(&inside).plus(&Index::var(LANE));
                            n.store(buf, at, row, false);
                        }
                        n.valid = lanes;
                        Ok(())
                    })?;
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    fn pack_left_rows(&self, n: &mut Nest<'s>, buf: u32, tile: &Index, block: &Index) -> Result<(), LowerError> {
        let extent = self.extent(self.m) as i64;
        let row = n.var(extent - 1);
        let first = tile.times(self.mc as i64);
        n.plain_loop(row, vec![first.clone()], vec![first.offset(self.mc as i64), Index::constant(extent)], |n| {
            if let Some(m) = self.m {
                n.bind_axis(m, Index::var(row));
            }
            let base = Index::var(row).minus(&first).times(self.pitch() as i64);
            let per = (self.kc / self.lanes as u64) as i64;
            for mut part in parts(self.depth(), (self.blocks() > 1).then_some((block, self.kc)), self.lanes) {
                let q = n.var(self.depth().div_ceil(self.lanes as u64) as i64 - 1);
                // Steps that the row does not take are not read.
                let lanes = self.lanes as i64;
                part.lo.extend(self.beyond.map(|e| n.resolve(e).div(lanes, &|v| n.range(v))));
                part.hi.extend(self.within.map(|e| n.resolve(e).offset(lanes - 1).div(lanes, &|v| n.range(v))));
                n.plain_loop(q, part.lo, part.hi, |n| {
                    n.valid = part.size;
                    n.bind_axis(self.k, Index::var(q).times(self.lanes as i64).plus(&Index::var(LANE)));
                    let value = n.eval(self.left)?;
                    let inside = if self.blocks() > 1 { Index::var(q).minus(&block.times(per)) } else { Index::var(q) };
                    n.store(buf, base.plus(&inside.times(self.lanes as i64)).plus(&Index::var(LANE)), value, false);
                    n.valid = n.lanes;
                    Ok(())
                })?;
            }
            Ok(())
        })
    }

    fn pack_left_panels(&self, n: &mut Nest<'s>, buf: u32, tile: &Index, block: &Index) -> Result<(), LowerError> {
        for part in parts(self.extent(self.m), Some((tile, self.mc)), self.rows) {
            let panel = n.var(self.extent(self.m).div_ceil(self.rows as u64) as i64 - 1);
            n.plain_loop(panel, part.lo, part.hi, |n| {
                let inside = Index::var(panel).minus(&tile.times((self.mc / self.rows as u64) as i64));
                let base = inside.times(self.rows as i64 * (self.pitch() / self.span()) as i64);
                let steps = self.panel_steps(n, &Index::var(panel));
                self.over_steps(n, block, steps, |n, k, from_start| {
                    for v in 0..part.size.div_ceil(self.lanes) {
                        let first = v * self.lanes;
                        n.valid = (part.size - first).min(self.lanes);
                        if let Some(m) = self.m {
                            n.bind_axis(
                                m,
                                Index::var(panel).times(self.rows as i64).offset(first as i64).plus(&Index::var(LANE)),
                            );
                        }
                        let value = self.step_value(n, self.left, &k)?;
                        let at = base.plus(&from_start.times(self.rows as i64)).offset(first as i64);
                        n.store(buf, at.plus(&Index::var(LANE)), value, false);
                        n.valid = n.lanes;
                    }
                    Ok(())
                })
            })?;
        }
        Ok(())
    }

    /// Loops over the steps of one k block: `body` gets the position of k and the number of the
    /// step in the block.
    pub(super) fn over_block(
        &self,
        n: &mut Nest<'s>,
        block: &Index,
        body: impl FnOnce(&mut Nest<'s>, Index, Index) -> Result<(), LowerError>,
    ) -> Result<(), LowerError> {
        self.over_steps(n, block, [None, None], body)
    }

    /// The first step that a row of a row panel takes, and the one after the last, where rows differ.
    fn panel_steps(&self, n: &mut Nest<'s>, panel: &Index) -> [Option<Index>; 2] {
        let Some(m) = self.m else { return [None, None] };
        [(self.beyond, 0), (self.within, self.rows as i64 - 1)].map(|(bound, row)| {
            let bound = bound?;
            let old = n.bind_axis(m, panel.times(self.rows as i64).offset(row));
            let step = n.resolve(bound);
            n.bind_axis(m, old);
            Some(step)
        })
    }

    /// The same for the steps from the first bound on and below the second; they take one position each.
    fn over_steps(
        &self,
        n: &mut Nest<'s>,
        block: &Index,
        bounds: [Option<Index>; 2],
        body: impl FnOnce(&mut Nest<'s>, Index, Index) -> Result<(), LowerError>,
    ) -> Result<(), LowerError> {
        let start = block.times(self.kc as i64);
        let span = self.span() as i64;
        let (steps, all) = (self.kc as i64 / span, self.depth() as i64 / span);
        let kk = n.var(steps - 1);
        let [from, below] = bounds.map(|b| b.map(|step| step.minus(&start)));
        let lo = [Index::default()].into_iter().chain(from).collect();
        let hi = [Index::constant(steps), Index::constant(all).minus(&block.times(steps))];
        n.plain_loop(kk, lo, hi.into_iter().chain(below).collect(), |n| {
            body(n, start.plus(&Index::var(kk).times(span)), Index::var(kk))
        })
    }

    // --- the right operand, in a kernel of its own

    /// Batch axes that the right operand depends on.
    pub(super) fn right_batch(&self) -> Vec<Var> {
        let domain = &self.s.domains()[self.right.0 as usize];
        self.batch.iter().copied().filter(|v| domain.contains(v)).collect()
    }

    fn column_panels(&self) -> u64 {
        self.extent(self.n).div_ceil(self.panel() as u64)
    }

    pub(super) fn right_elems(&self) -> u64 {
        let batch: u64 = self.right_batch().iter().map(|v| self.s.extent(*v)).product();
        batch * self.blocks() * self.column_panels() * (self.kc / self.span()) * self.panel() as u64
    }

    /// Where the packed panel of the present batch position, block and column panel starts.
    pub(super) fn right_at(&self, n: &Nest<'s>, block: &Index, jr: &Index) -> Index {
        let mut batch = Index::default();
        for v in self.right_batch() {
            batch = batch.times(self.s.extent(v) as i64).plus(n.axis_index(v));
        }
        let panel = batch.times(self.blocks() as i64).plus(block).times(self.column_panels() as i64).plus(jr);
        panel.times((self.kc / self.span() * self.panel() as u64) as i64)
    }

    /// Packs all of B, `[batch][k block][column panel][k][NR]`, into temporary `temp`.
    pub(super) fn pack_right_kernel(
        &self,
        name: &str,
        temp: u32,
        scalars: Vec<u32>,
    ) -> Result<(Step, u64), LowerError> {
        let mut n = Nest::new(self.s, name.to_owned(), self.lanes);
        n.declare(&[self.right], false);
        let buf = n.temp(temp, self.packed(), self.right_elems());
        let batch = self.right_batch();
        let mut sizes: Vec<u64> = batch.iter().map(|v| self.s.extent(*v)).collect();
        sizes.extend([self.blocks(), self.column_panels()]);
        n.kernel.grid = sizes.iter().product();
        n.kernel.grain = (ELEMS_PER_WAKE / (self.kc * self.panel() as u64).max(1)).max(1);
        let at = delinear(&Index::var(POINT), &sizes, &|v| n.range(v));
        for (axis, i) in batch.iter().zip(&at) {
            n.bind_axis(*axis, i.clone());
        }
        let (block, jr) = (at[at.len() - 2].clone(), at[at.len() - 1].clone());
        let base = self.right_at(&n, &block, &jr);
        for part in parts(self.extent(self.n), Some((&jr, self.panel() as u64)), self.panel()) {
            let panel = n.var(self.column_panels() as i64 - 1);
            n.plain_loop(panel, part.lo, part.hi, |n| {
                self.pack_columns(n, buf, &base, &block, &Index::var(panel), part.size)
            })?;
        }
        let bytes = self.right_elems() * self.packed().bytes() as u64;
        Ok((n.finish(scalars), bytes))
    }

    pub(super) fn pack_columns(
        &self,
        n: &mut Nest<'s>,
        buf: u32,
        base: &Index,
        block: &Index,
        jr: &Index,
        cols: u32,
    ) -> Result<(), LowerError> {
        let vectors = cols.div_ceil(self.lanes);
        let one = |s: &Self, n: &mut Nest<'s>, v: u32, k: &Index, from_start: &Index| {
            let first = v * s.lanes;
            n.valid = (cols - first).min(s.lanes);
            let mut at = base.plus(&from_start.times(s.panel() as i64)).offset(first as i64);
            if let Some(axis) = s.n {
                n.bind_axis(axis, jr.times(s.panel() as i64).offset(first as i64).plus(&Index::var(LANE)));
                at = at.plus(&Index::var(LANE));
            }
            let value = s.step_value(n, s.right, k)?;
            n.store(buf, at, value, false);
            n.valid = n.lanes;
            Ok(())
        };
        if self.n.is_none() || !self.runs_deep(self.right) || self.runs_along(self.right, self.n) {
            return self.over_block(n, block, |n, k, from_start| {
                (0..vectors).try_for_each(|v| one(self, n, v, &k, &from_start))
            });
        }
        for part in parts(cols as u64, None, self.lanes) {
            let v = n.var(vectors as i64 - 1);
            n.plain_loop(v, part.lo, part.hi, |n| {
                self.pack_turned(n, buf, base, block, jr, &Index::var(v), part.size)
            })?;
        }
        Ok(())
    }

    /// Columns lie apart and k runs in memory: squares of `lanes` columns by `lanes` steps are
    /// read along k and turned over in registers. `v`: which vector of the panel.
    fn pack_turned(
        &self,
        n: &mut Nest<'s>,
        buf: u32,
        base: &Index,
        block: &Index,
        jr: &Index,
        v: &Index,
        cols: u32,
    ) -> Result<(), LowerError> {
        let (lanes, panel) = (self.lanes, self.panel() as i64);
        let first = v.times(lanes as i64);
        for part in parts(self.depth(), (self.blocks() > 1).then_some((block, self.kc)), lanes) {
            let q = n.var(self.depth().div_ceil(lanes as u64) as i64 - 1);
            n.plain_loop(q, part.lo, part.hi, |n| {
                n.bind_axis(self.k, Index::var(q).times(lanes as i64).plus(&Index::var(LANE)));
                n.valid = part.size;
                let mut from = vec![];
                for j in 0..lanes {
                    if let Some(axis) = self.n {
                        n.bind_axis(axis, jr.times(panel).plus(&first).offset(j as i64));
                    }
                    // Columns beyond the matrix repeat one that exists; they are not stored.
                    from.push(if j < cols { n.eval(self.right)? } else { from[0] });
                }
                n.valid = lanes;
                let to = n.transpose(from, self.factor_kind()?);
                let inside = Index::var(q).minus(&block.times((self.kc / lanes as u64) as i64));
                let inside = if self.blocks() > 1 { inside } else { Index::var(q) };
                n.valid = cols;
                let span = self.span() as usize;
                for (i, step) in to.chunks(span).enumerate().take(part.size as usize / span) {
                    let value = match step {
                        &[even, odd] => n.define(Def::Pair { even, odd }, Kind::I32, lanes),
                        _ => step[0],
                    };
                    let at = inside.times((lanes as usize / span) as i64 * panel).plus(&first).offset(i as i64 * panel);
                    n.store(buf, base.plus(&at).plus(&Index::var(LANE)), value, false);
                }
                n.valid = lanes;
                Ok(())
            })?;
        }
        Ok(())
    }
}
