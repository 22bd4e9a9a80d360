//! Two products with reductions of rows between them: attention.
//!
//! ```text
//! pack (own kernels)  K and V, where they are not read as they lie
//! grid (batch, block of rows)
//!   for each column panel, row panel: mma, rows of Q times K -> strip [rows][keys]
//!   for each row: its reductions and elementwise steps, over the strip in place
//!   for each block of keys, column panel, row panel: mma, strip times V
//!   epilogue
//! ```
//! Where the second product takes pairs of bf16, its weights lie as bf16 beside the strip. A product of bf16 in units
//! may be followed by one in a chain (rows that take some steps): each has its own register tile.
//!
//! A strip of whole rows fits the second-level cache, so every value is the one that the
//! operations give one after the other, and memory grows with the keys alone. Where the second
//! product takes the first `i + 1` keys of row `i` only, and the others are shown to add nothing
//! to the reductions, blocks of keys beyond the rows are left out.

use super::causal_mask::Above;
use super::panels::{Columns, parts};
use super::{Compute, Product};
use crate::loops::Stages;
use crate::nest::Nest;
use crate::{LowerError, Lowered};
use tessera_ir::index::{Index, Var, delinear};
use tessera_ir::schedule::attention::Attention as Parts;
use tessera_ir::schedule::{Directive, Schedule, ValueId, ValueOp};
use tessera_ir::tile::{Mma, Op, POINT, Panel};
use tessera_ops::map::kind_of;
use tessera_ops::prim::{LANES, Order, Reduction};

/// Rows and vectors of the register tile of a product by vectors, where the other one is by the unit for matrices: rows that
/// divide those of the unit.
const BESIDE_UNIT: (u32, u32) = (8, 3);

/// The two products.
struct Attention<'s> {
    s: &'s Schedule,
    /// Queries and keys.
    first: Product<'s>,
    /// Weights and values.
    second: Product<'s>,
    /// Positions of a row.
    keys: Var,
    rows_axis: Var,
    /// Rows beyond whose last step nothing counts, where that is shown.
    limit: Option<&'s Index>,
}

pub fn lower(s: &Schedule) -> Result<Lowered, LowerError> {
    let mut strip = Attention::new(s)?;
    let scalars: Vec<u32> = (0..s.scalars.len() as u32).collect();
    let mut out = Lowered::default();
    if strip.first.pack_right {
        let (step, bytes) = strip.first.pack_right_kernel(&format!("{}_pack", s.name), 0, scalars.clone())?;
        out.steps.push(step);
        out.temps.push(bytes);
    }
    if strip.second.pack_right {
        let (name, temp) = (format!("{}_pack_values", s.name), strip.values_temp());
        let (step, bytes) = strip.second.pack_right_kernel(&name, temp, scalars.clone())?;
        out.steps.push(step);
        out.temps.push(bytes);
    }
    let mut n = Nest::new(s, s.name.clone(), strip.first.lanes);
    strip.compute(&mut n)?;
    out.steps.push(n.finish(scalars));
    Ok(out)
}

/// Column panel `jr` of all columns.
fn panel(p: &Product, jr: Var, count: u32) -> Columns {
    let at = Index::var(jr);
    Columns { inside: at.clone(), first: at.times(p.panel() as i64), panel: at, count }
}

impl<'s> Attention<'s> {
    fn new(s: &'s Schedule) -> Result<Attention<'s>, LowerError> {
        let found = Parts::find(s).map_err(|why| LowerError(why.into()))?;
        let Parts { first, second, keys, rows, columns, batch } = found;
        let (
            &ValueOp::Dot { a: q, b: k, axis: depth, order, leaf, .. },
            &ValueOp::Dot { a: p, b: v, ref within, beyond: None, order: other, leaf: of_keys, .. },
        ) = (&s.value(first).op, &s.value(second).op)
        else {
            return Err(LowerError("no products".into()));
        };
        let accum = s.value(first).dtype;
        let kind = kind_of(accum).ok_or(LowerError(format!("a product in {accum}")))?;
        let product = |dot, (left, right), k, n, within, (order, leaf)| Product {
            s,
            dot,
            left,
            right,
            k,
            within,
            beyond: None,
            leaf,
            m: Some(rows),
            n,
            row: None,
            image: None,
            batch: batch.clone(),
            accum,
            half: false,
            order,
            matrix_unit: order == Order::Units && s.directives.contains(&Directive::MatrixUnit),
            factor: s.value(left).dtype,
            kind,
            lanes: 16,
            rows: 8,
            vectors: 2,
            mc: s.extent(rows),
            nc: 1,
            kc: s.extent(k),
            pack_left: false,
            pack_right: true,
            grain: 1,
            unroll: 4,
            distance: 0,
            prefetch: false,
            results: 1,
        };
        let mut out = Attention {
            s,
            first: product(first, (q, k), depth, Some(keys), None, (order, leaf)),
            second: product(second, (p, v), keys, columns, within.as_ref(), (other, of_keys)),
            keys,
            rows_axis: rows,
            limit: None,
        };
        out.direct(s);
        Ok(out)
    }

    /// Applies the directives.
    fn direct(&mut self, s: &'s Schedule) {
        let (keys, rows_axis) = (self.keys, self.rows_axis);
        let (mut pack_left, mut pack_rights) = (false, false);
        let unit = self.first.matrix_unit || self.second.matrix_unit;
        for p in [&mut self.first, &mut self.second] {
            for d in &s.directives {
                match d {
                    Directive::Vectorize { lanes, .. } => p.lanes = *lanes,
                    Directive::Registers { rows, vectors } => (p.rows, p.vectors) = (*rows, *vectors),
                    Directive::Tile { axis, size } if *axis == rows_axis => p.mc = *size,
                    Directive::Block { axis, size } if *axis == keys && p.k == keys => p.kc = *size,
                    Directive::Steps { unroll, distance } => (p.unroll, p.distance) = (*unroll, *distance),
                    Directive::Pack { operand: 0 } => pack_left = true,
                    Directive::Pack { operand: 1 } => pack_rights = true,
                    Directive::Grain(g) => p.grain = *g,
                    _ => {}
                }
            }
            if unit && !p.matrix_unit {
                // The directive is that of the other product.
                (p.rows, p.vectors) = (p.rows.min(BESIDE_UNIT.0), BESIDE_UNIT.1);
            }
            p.bound_registers();
        }
        self.agree();
        for p in [&mut self.first, &mut self.second] {
            p.mc = p.mc.clamp(1, s.extent(rows_axis).max(1));
            p.kc = p.block_steps(p.kc);
            p.nc = p.extent(p.n).next_multiple_of(p.panel() as u64);
        }
        let (first, second) = (&mut self.first, &mut self.second);
        let mc = first.mc.next_multiple_of(first.rows.max(second.rows) as u64);
        (first.mc, second.mc) = (mc, mc);
        first.pack_left = pack_left || first.direct(first.left, first.m).is_none();
        // What few rows read lies as it is where its columns run in memory.
        for p in [first, second] {
            let at = p.direct(p.right, p.n);
            let runs = at.is_some_and(|at| p.n.is_none_or(|n| at.stride(n) == Some(1)));
            p.pack_right = pack_rights || p.matrix_unit || !runs;
        }
    }

    /// Products of different orders share vectors and blocks of rows: of the same length, and in whole register tiles of both.
    fn agree(&mut self) {
        let (first, second) = (&mut self.first, &mut self.second);
        let paired = [&*first, &*second].into_iter().filter(|p| p.pairs()).map(|p| p.lanes).max();
        if let Some(lanes) = paired {
            (first.lanes, second.lanes) = (lanes, lanes);
        }
        let most = first.rows.max(second.rows);
        for p in [first, second] {
            p.rows = (1..=p.rows).rev().find(|n| most.is_multiple_of(*n)).unwrap_or(1);
        }
    }

    /// Number of the temporary that holds packed values.
    fn values_temp(&self) -> u32 {
        u32::from(self.first.pack_right)
    }

    /// Elements from one row of the strip to the next: off the powers of two.
    fn pitch(&self) -> i64 {
        let unit = (self.first.panel() as u64).max(LANES as u64);
        // Rows of bf16 begin where lines of the cache do.
        let apart = self.second.order.unit().max(LANES as u64);
        (self.s.extent(self.keys).next_multiple_of(unit.max(apart)) + apart) as i64
    }

    fn compute(&mut self, n: &mut Nest<'s>) -> Result<(), LowerError> {
        let s = self.s;
        let (held, left) = (self.first.dot, self.second.left);
        let mut stages = Stages::new(s, self.keys, held, left)?;
        self.limit = self.second.within.filter(|w| self.is_cut_off(&stages, w));
        self.declare(n);
        let packed_keys = self.first.pack_right.then(|| n.temp(0, self.first.packed(), self.first.right_elems()));
        let values = self.values_temp();
        let packed_values =
            self.second.pack_right.then(|| n.temp(values, self.second.packed(), self.second.right_elems()));
        let (mc, pitch) = (self.first.mc, self.pitch());
        let packed_left = self.first.pack_left.then(|| self.first.left_scratch(n, self.first.pitch()));
        let strip = n.scratch("strip", self.first.accum, mc * pitch as u64);
        let weights = stages.room(n, strip, mc, mc * pitch as u64);
        let second = &self.second;
        let direct = second.stores_directly();
        let tiles = (mc / second.rows as u64) * (second.nc / second.panel() as u64);
        let elems = tiles * (second.rows * second.panel()) as u64;
        let partial = (!direct).then(|| n.scratch("c", second.accum, elems));
        let tile_m = self.grid(n);
        let slots = [self.first.slots(n, 1), second.slots(n, tiles)];
        let base = |tile_n: Index, packed_left, packed_right, partial| Compute {
            p: second,
            tile_m: tile_m.clone(),
            tile_n,
            first: Index::default(),
            above: None,
            packed_left,
            packed_right,
            column: None,
            image: None,
            partial,
            slots: slots[1],
            reach: None,
        };
        let first =
            Compute { p: &self.first, slots: slots[0], ..base(Index::default(), packed_left, packed_keys, None) };
        self.scores(n, &first, strip)?;
        self.rows(n, &mut stages, &tile_m)?;
        let last = Compute { reach: self.reach(n, &tile_m), ..base(Index::default(), None, packed_values, partial) };
        self.weigh(n, &last, weights)?;
        if direct { Ok(()) } else { self.finish(n, &last, &stages) }
    }

    /// Every tensor that the kernel reads besides what is packed, and the results.
    fn declare(&self, n: &mut Nest<'s>) {
        let mut todo: Vec<ValueId> = self.s.stores.iter().map(|st| st.value).collect();
        let mut used = vec![];
        while let Some(v) = todo.pop() {
            match &self.s.value(v).op {
                ValueOp::Load { operand, .. } => used.push(*operand),
                ValueOp::Dot { a, .. } if self.product_of(v).pack_right => todo.push(*a),
                _ => todo.extend(self.s.args(v)),
            }
        }
        used.extend(self.s.stores.iter().map(|st| st.operand));
        used.sort();
        used.dedup();
        for operand in used {
            n.tensor(operand);
        }
    }

    fn product_of(&self, dot: ValueId) -> &Product<'s> {
        if dot == self.first.dot { &self.first } else { &self.second }
    }

    /// Grid: batch, blocks of rows. Returns the block.
    fn grid(&self, n: &mut Nest<'s>) -> Index {
        let p = &self.first;
        let mut sizes: Vec<u64> = p.batch.iter().map(|v| self.s.extent(*v)).collect();
        sizes.push(p.extent(p.m).div_ceil(p.mc));
        n.kernel.grid = sizes.iter().product();
        n.kernel.grain = p.grain;
        let at = delinear(&Index::var(POINT), &sizes, &|v| n.range(v));
        for (axis, i) in p.batch.iter().zip(&at) {
            n.bind_axis(*axis, i.clone());
        }
        at[at.len() - 1].clone()
    }

    /// Keys that count for any row of the block.
    fn reach(&self, n: &mut Nest<'s>, tile_m: &Index) -> Option<Index> {
        let limit = self.limit?;
        let last = tile_m.times(self.first.mc as i64).offset(self.first.mc as i64 - 1);
        let old = n.bind_axis(self.rows_axis, last);
        let reach = n.resolve(limit);
        n.bind_axis(self.rows_axis, old);
        Some(reach)
    }

    /// The first product, into the strip.
    fn scores(&self, n: &mut Nest<'s>, c: &Compute<'_, 's>, strip: u32) -> Result<(), LowerError> {
        let p = c.p;
        if let Some(buf) = c.packed_left {
            p.pack_left_block(n, buf, &c.tile_m, &Index::default())?;
        }
        // Rows are read in whole chunks of lanes.
        let panels = self.reach(n, &c.tile_m).map(|r| {
            let ranges = |v| n.range(v);
            let chunks = r.offset(LANES as i64 - 1).div(LANES as i64, &ranges).times(LANES as i64);
            chunks.offset(p.panel() as i64 - 1).div(p.panel() as i64, &ranges)
        });
        for column in parts(p.extent(p.n), None, p.panel()) {
            let jr = n.var(p.extent(p.n).div_ceil(p.panel() as u64) as i64 - 1);
            let hi = column.hi.iter().cloned().chain(panels.clone()).collect();
            n.plain_loop(jr, column.lo.clone(), hi, |n| {
                self.over_rows(n, c, |n, ir, rows| {
                    let first = ir.times(p.rows as i64).minus(&c.tile_m.times(p.mc as i64));
                    let at = first.times(self.pitch()).plus(&Index::var(jr).times(p.panel() as i64));
                    let into = Panel { buf: strip, at, row: self.pitch(), step: 0 };
                    self.tile(n, c, &Index::default(), (ir, rows), &panel(p, jr, column.size), None, into)
                })
            })?;
        }
        Ok(())
    }

    /// Loops over the row panels of the block.
    fn over_rows(
        &self,
        n: &mut Nest<'s>,
        c: &Compute<'_, 's>,
        mut body: impl FnMut(&mut Nest<'s>, &Index, u32) -> Result<(), LowerError>,
    ) -> Result<(), LowerError> {
        let p = c.p;
        for row in parts(p.extent(p.m), Some((&c.tile_m, p.mc)), p.rows) {
            let ir = n.var(p.extent(p.m).div_ceil(p.rows as u64) as i64 - 1);
            n.plain_loop(ir, row.lo.clone(), row.hi.clone(), |n| body(n, &Index::var(ir), row.size))?;
        }
        Ok(())
    }

    /// One register tile of either product; `a` replaces its left operand.
    fn tile(
        &self,
        n: &mut Nest<'s>,
        c: &Compute<'_, 's>,
        block: &Index,
        (ir, rows): (&Index, u32),
        columns: &Columns,
        a: Option<Panel>,
        into: Panel,
    ) -> Result<(), LowerError> {
        let p = c.p;
        let panel = c.row_panel(ir, rows);
        let start = c.bind_tile(n, block, &panel.first, &columns.first);
        let a = match a {
            Some(a) => a,
            None => c.left_operand(n, &panel)?,
        };
        let b = c.right_operand(n, block, columns)?;
        let depth = p.steps(block);
        let ramp = p.within.map(|w| n.resolve(w).minus(&start));
        let at = columns.inside.times((p.mc / p.rows as u64) as i64).plus(&panel.inside);
        let fold = c.fold(n, block, &at);
        n.push(Op::Mma(Mma {
            kind: p.kind,
            rows,
            cols: columns.count,
            lanes: p.lanes,
            order: p.order,
            half: p.half,
            matrix_unit: p.matrix_unit,
            distance: p.distance(&depth, &b, columns.count),
            depth,
            ramp,
            lead: None,
            hops: vec![],
            ahead: vec![],
            unroll: p.unroll,
            fold,
            a,
            b,
            c: into,
        }));
        Ok(())
    }

    /// The reductions of every row of the block, and what becomes of its elements.
    fn rows(&self, n: &mut Nest<'s>, stages: &mut Stages<'s>, tile_m: &Index) -> Result<(), LowerError> {
        let p = &self.first;
        let extent = p.extent(p.m) as i64;
        let start = tile_m.times(p.mc as i64);
        let row = n.var(extent - 1);
        let hi = vec![start.offset(p.mc as i64), Index::constant(extent)];
        n.plain_loop(row, vec![start.clone()], hi, |n| {
            n.bind_axis(self.rows_axis, Index::var(row));
            let inside = Index::var(row).minus(&start);
            let limit = self.limit.map(|w| {
                let steps = n.resolve(w);
                steps.offset(LANES as i64 - 1).div(LANES as i64, &|v| n.range(v))
            });
            stages.run(n, inside.times(self.pitch()), inside, limit)?;
            // What leaves the kernel of a row.
            for st in self.s.stores.iter().skip(self.second.results) {
                let value = n.eval(st.value)?;
                let (buf, at) = (n.tensor(st.operand), n.resolve(&st.at));
                n.store(buf, at, value, false);
            }
            Ok(())
        })
    }

    /// The second product, block by block along the keys.
    fn weigh(&self, n: &mut Nest<'s>, c: &Compute<'_, 's>, weights: u32) -> Result<(), LowerError> {
        let p = c.p;
        if p.blocks() == 1 {
            return self.weigh_block(n, c, weights, &Index::default());
        }
        let reach = c.reach.as_ref().map(|r| r.offset(p.kc as i64 - 1).div(p.kc as i64, &|v| n.range(v)));
        let block = n.var(p.blocks() as i64 - 1);
        let hi = [Index::constant(p.blocks() as i64)].into_iter().chain(reach).collect();
        n.plain_loop(block, vec![Index::default()], hi, |n| self.weigh_block(n, c, weights, &Index::var(block)))
    }

    fn weigh_block(&self, n: &mut Nest<'s>, c: &Compute<'_, 's>, buf: u32, block: &Index) -> Result<(), LowerError> {
        let p = c.p;
        for column in parts(p.extent(p.n), None, p.panel()) {
            let jr = n.var(p.extent(p.n).div_ceil(p.panel() as u64) as i64 - 1);
            n.plain_loop(jr, column.lo.clone(), column.hi.clone(), |n| {
                self.over_rows(n, c, |n, ir, rows| {
                    let first = ir.times(p.rows as i64).minus(&c.tile_m.times(p.mc as i64));
                    let at = first.times(self.pitch()).plus(&block.times(p.kc as i64));
                    let weights = Panel { buf, at, row: self.pitch(), step: 1 };
                    let columns = panel(p, jr, column.size);
                    c.bind_tile(n, block, &ir.times(p.rows as i64), &columns.first);
                    let into = self.sums(n, c, ir, &Index::var(jr));
                    self.tile(n, c, block, (ir, rows), &columns, Some(weights), into)
                })
            })?;
        }
        Ok(())
    }

    /// Where the accumulators of a register tile of the second product lie.
    fn sums(&self, n: &mut Nest<'s>, c: &Compute<'_, 's>, ir: &Index, jr: &Index) -> Panel {
        let p = c.p;
        match c.partial {
            None => c.output_panel(n),
            Some(buf) => {
                let panels = (p.mc / p.rows as u64) as i64;
                let tile = jr.times(panels).plus(&ir.minus(&c.tile_m.times(panels)));
                Panel { buf, at: tile.times((p.rows * p.panel()) as i64), row: p.panel() as i64, step: 0 }
            }
        }
    }

    /// What follows the second product.
    fn finish(&self, n: &mut Nest<'s>, c: &Compute<'_, 's>, stages: &Stages<'s>) -> Result<(), LowerError> {
        let p = c.p;
        for column in parts(p.extent(p.n), None, p.panel()) {
            let jr = n.var(p.extent(p.n).div_ceil(p.panel() as u64) as i64 - 1);
            n.plain_loop(jr, column.lo.clone(), column.hi.clone(), |n| {
                self.over_rows(n, c, |n, ir, rows| {
                    let into = self.sums(n, c, ir, &Index::var(jr));
                    let first = ir.times(p.rows as i64);
                    let i = n.var(rows as i64 - 1);
                    n.plain_loop(i, vec![Index::default()], vec![Index::constant(rows as i64)], |n| {
                        let row = first.plus(&Index::var(i));
                        n.bind_axis(self.rows_axis, row.clone());
                        stages.bind(n, &row.minus(&c.tile_m.times(p.mc as i64)));
                        let first_col = Index::var(jr).times(p.panel() as i64);
                        for v in 0..column.size.div_ceil(p.lanes) {
                            let valid = (column.size - v * p.lanes).min(p.lanes);
                            c.epilogue_vector(n, Some(&into), &Index::var(i), &first_col, v, valid)?;
                        }
                        Ok(())
                    })
                })
            })?;
        }
        Ok(())
    }

    // --- keys that count for nothing

    /// Whether positions from `within` on leave every reduction as it is, so that none of them
    /// has to be computed.
    fn is_cut_off(&self, stages: &Stages<'s>, within: &Index) -> bool {
        // The bound stays inside the row.
        let rows = |v: Var| self.s.range(v);
        let (_, most) = within.range(&rows);
        let above = Above { s: self.s, within, keys: self.keys };
        most <= self.s.extent(self.keys) as i64
            && stages.reductions().all(|(kind, arg)| {
                let beyond = above.value(arg);
                matches!((kind, beyond), (Reduction::Max, Some(x)) if x == f64::NEG_INFINITY)
                    || matches!((kind, beyond), (Reduction::Sum, Some(0.0)))
            })
    }
}
