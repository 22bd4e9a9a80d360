//! Matrix products: blocks by cache, panels packed once, a register tile in the middle.
//!
//! ```text
//! pack (own kernel)   B[k block][column panel] -> [k][NR]
//!                     (or panel by panel where they are used once)
//! grid (batch, n tile, m tile)
//!   for each k block
//!     pack A[m tile][k block]
//!     for each column panel, each row panel
//!       mma MR×NR over the block; after the last block: epilogue
//! ```
//! Where the right operand is uneven along its columns but even in rows of them (windows over an
//! image, whose columns are the positions of all rows), a point packs whole rows: `[k][columns]`. Where
//! such windows are the left operand, they can be read in the image ([`conv_windows`]).
//!
//! Every element of the result is a chain in ascending k within a leaf, and a tree over leaves, whatever the blocks are:
//! blocks hold whole leaves, and what is left of one waits at its level of the tree ([`leaves`]).

mod panels;
mod leaves;
mod prefetch;
mod pack;
mod conv_rows;
mod attention;
mod block;
mod causal_mask;
mod conv_windows;

pub use attention::lower as lower_attention;

use crate::nest::Nest;
use crate::{LowerError, Lowered};
use conv_windows::{Image, Left};
use panels::{Columns, RowPanel, parts, stride};
use tessera_base::DType;
use tessera_ir::index::{Index, Var, delinear};
use tessera_ir::schedule::conv_windows::Windows;
use tessera_ir::schedule::{Directive, Schedule, ValueId, ValueOp};
use tessera_ir::tile::{Access, Def, LANE, Mma, Op, POINT, Panel};
use tessera_ops::map::kind_of;
use tessera_ops::prim::{Order, Scalar};
use tessera_ops::scalar::Kind;

/// Elements of a panel that passes through the nearest cache.
const PASSES: i64 = 16 << 10;

/// The product with its blocks.
struct Product<'s> {
    s: &'s Schedule,
    dot: ValueId,
    left: ValueId,
    right: ValueId,
    k: Var,
    /// Steps of a row, where they differ.
    within: Option<&'s Index>,
    /// The first step of a row, where it is not 0.
    beyond: Option<&'s Index>,
    /// Steps of a leaf.
    leaf: u64,
    /// Row and column axis; `None` for an extent of 1.
    m: Option<Var>,
    n: Option<Var>,
    /// Columns of a row in which the right operand is even, where it is not along all columns.
    row: Option<u64>,
    /// The image that the left operand's windows are over, if they are read there.
    image: Option<Image>,
    /// The other parallel axes.
    batch: Vec<Var>,
    accum: DType,
    /// Each step rounds to f16; the sums are f32 that hold it.
    half: bool,
    order: Order,
    /// By the processor's unit for matrices.
    matrix_unit: bool,
    /// What the factors are: the accumulator's type, or bf16 or i16 that is taken in pairs.
    factor: DType,
    kind: Kind,
    lanes: u32,
    rows: u32,
    vectors: u32,
    /// Elements of a block along m, n and k.
    mc: u64,
    nc: u64,
    kc: u64,
    pack_left: bool,
    pack_right: bool,
    grain: u64,
    /// How steps are written, as [`Directive::Steps`] says.
    unroll: u32,
    distance: u32,
    /// Whether what the results read beside the product is asked for while the product is computed.
    prefetch: bool,
    /// How many of the results are computed from the product.
    results: usize,
}

pub fn lower(s: &Schedule) -> Result<Lowered, LowerError> {
    let atoms = |v: &tessera_ir::schedule::Value| matches!(v.op, ValueOp::Dot { order: Order::Atoms, .. });
    if let Some(at) = s.values.iter().position(atoms) {
        return block::lower(s, ValueId(at as u32));
    }
    match Product::find_windows(s) {
        Some((s, windows)) => lower_as(&s, Some(windows)),
        None => lower_as(s, None),
    }
}

fn lower_as(s: &Schedule, windows: Option<Windows>) -> Result<Lowered, LowerError> {
    let p = Product::new(s, windows)?;
    let scalars: Vec<u32> = (0..s.scalars.len() as u32).collect();
    let mut out = Lowered::default();
    if p.pack_right && !p.packs_inside() {
        let (step, bytes) = p.pack_right_kernel(&format!("{}_pack", s.name), 0, scalars.clone())?;
        out.steps.push(step);
        out.temps.push(bytes);
    }
    let mut n = Nest::new(s, s.name.clone(), p.lanes);
    p.compute(&mut n)?;
    out.steps.push(n.finish(scalars));
    Ok(out)
}

impl<'s> Product<'s> {
    fn new(s: &'s Schedule, windows: Option<Windows>) -> Result<Product<'s>, LowerError> {
        let at =
            s.values.iter().position(|v| matches!(v.op, ValueOp::Dot { .. })).ok_or(LowerError("no product".into()))?;
        let dot = ValueId(at as u32);
        let ValueOp::Dot { a, b, axis, ref within, ref beyond, order, leaf } = s.value(dot).op else {
            return Err(LowerError("no product".into()));
        };
        let half = s.value(dot).dtype == DType::F16;
        let accum = if half { DType::F32 } else { s.value(dot).dtype };
        let kind = kind_of(accum).ok_or(LowerError(format!("a product in {accum}")))?;
        let bounds = || within.iter().chain(beyond);
        let swap = s.directives.contains(&Directive::Swap) && bounds().next().is_none();
        let (left, right) = if swap { (b, a) } else { (a, b) };
        let parallel: Vec<Var> =
            (0..s.axes.len() as u32).map(Var).filter(|v| !s.axes[v.0 as usize].reduced && s.extent(*v) != 1).collect();
        let sides = s.sides(dot);
        let (m, n) = if swap { (sides.1, sides.0) } else { sides };
        let extent = |v: Option<Var>| v.map_or(1, |v| s.extent(v));
        let batch = parallel.iter().copied().filter(|v| Some(*v) != m && Some(*v) != n).collect();
        let mut p = Product {
            s,
            dot,
            left,
            right,
            k: axis,
            within: within.as_ref(),
            beyond: beyond.as_ref(),
            leaf,
            m,
            n,
            row: n.and_then(|n| s.row_along(right, n)),
            image: None,
            batch,
            accum,
            half,
            order,
            matrix_unit: false,
            factor: if half { DType::F32 } else { s.value(left).dtype },
            kind,
            lanes: 16,
            rows: 8,
            vectors: 2,
            mc: extent(m),
            nc: extent(n),
            kc: s.extent(axis),
            pack_left: false,
            pack_right: false,
            grain: 1,
            unroll: 4,
            distance: 0,
            prefetch: false,
            results: s.stores.len(),
        };
        for d in &s.directives {
            match d {
                Directive::Vectorize { lanes, .. } => p.lanes = *lanes,
                Directive::Registers { rows, vectors } => (p.rows, p.vectors) = (*rows, *vectors),
                Directive::Tile { axis, size } if Some(*axis) == m => p.mc = *size,
                Directive::Tile { axis, size } if Some(*axis) == n => p.nc = *size,
                Directive::Block { axis, size } if *axis == p.k => p.kc = *size,
                Directive::Pack { operand: 0 } => p.pack_left = true,
                Directive::Pack { operand: 1 } => p.pack_right = true,
                Directive::Grain(g) => p.grain = *g,
                Directive::Steps { unroll, distance } => (p.unroll, p.distance) = (*unroll, *distance),
                Directive::Prefetch => p.prefetch = true,
                Directive::MatrixUnit => p.matrix_unit = order == Order::Units && p.row.is_none(),
                _ => {}
            }
        }
        if bounds().any(|w| w.stride(axis) != Some(0) || m.is_some_and(|m| w.stride(m) != Some(1))) {
            return Err(LowerError("a product whose rows take uneven numbers of steps".into()));
        }
        p.bound_registers();
        p.mc = p.mc.max(1).next_multiple_of(p.rows as u64);
        p.nc = match p.row {
            Some(row) => (p.nc / row).max(1) * row,
            None => p.nc.max(1).next_multiple_of(p.panel() as u64),
        };
        p.kc = p.block_steps(p.kc);
        p.pack_left |= p.direct(left, m).is_none();
        p.pack_right |= p.matrix_unit || p.direct(right, n).is_none_or(|at| n.is_some_and(|n| at.stride(n) != Some(1)));
        if let Some(w) = windows.filter(|_| p.row.is_none()) {
            p.mc = Image::windows(&w, p.mc);
            p.kc = p.block_steps(Image::steps(&w, p.kc, p.lanes as u64));
            p.pack_left = false;
            let direct = p.reads_in_place(&w);
            p.image = Some(Image::new(w, direct, p.mc, p.lanes));
        }
        Ok(p)
    }

    /// Bounds the register tile by the instructions that there are for the order.
    fn bound_registers(&mut self) {
        if self.pairs() && ![4, 8, 16].contains(&self.lanes) {
            self.lanes = 16;
        }
        if self.matrix_unit {
            // Two by two of its registers, each 16 rows of 16 numbers.
            (self.lanes, self.rows, self.vectors) = (16, self.rows.min(32), self.vectors.min(2));
        } else if self.order == Order::Units {
            // Vectors hold three sums of each element.
            self.vectors = self.vectors.min(8);
            self.rows = self.rows.min(8 / self.vectors);
        }
    }

    /// Row panels of a tile.
    fn row_panels(&self) -> u64 {
        match &self.image {
            Some(image) => self.mc / image.w.row * image.w.row.div_ceil(self.rows as u64),
            None => self.mc / self.rows as u64,
        }
    }

    /// Whether every panel of B is used by one grid point only, which then packs it itself; rows
    /// of columns are packed where they are used in any case.
    fn packs_inside(&self) -> bool {
        if self.row.is_some() {
            return true;
        }
        let repeated: u64 =
            self.batch.iter().filter(|v| !self.right_batch().contains(v)).map(|v| self.s.extent(*v)).product();
        self.pack_right && self.mc >= self.extent(self.m) && repeated == 1
    }

    /// Whether factors are taken in pairs of steps.
    fn pairs(&self) -> bool {
        self.order.is_paired()
    }

    /// Positions of k that a step takes.
    fn span(&self) -> u64 {
        if self.pairs() { 2 } else { 1 }
    }

    /// What packed panels hold that are read step by step: numbers, or pairs of them.
    fn packed(&self) -> DType {
        if self.pairs() { DType::I32 } else { self.accum }
    }

    /// The number of steps of a block: the least of these.
    fn steps(&self, block: &Index) -> Vec<Index> {
        let all = Index::constant((self.depth() / self.span()) as i64);
        match (self.blocks(), (self.kc / self.span()) as i64) {
            (1, _) => vec![all],
            (_, whole) => vec![Index::constant(whole), all.minus(&block.times(whole))],
        }
    }

    fn extent(&self, axis: Option<Var>) -> u64 {
        axis.map_or(1, |v| self.s.extent(v))
    }

    fn depth(&self) -> u64 {
        self.s.extent(self.k)
    }

    /// Columns of a panel.
    fn panel(&self) -> u32 {
        self.vectors * self.lanes
    }

    fn blocks(&self) -> u64 {
        self.depth().div_ceil(self.kc.max(1)).max(1)
    }

    /// The index of an operand that needs no packing: a plain load of the accumulator's type
    /// with even strides.
    fn direct(&self, v: ValueId, axis: Option<Var>) -> Option<&'s Index> {
        match &self.s.value(v).op {
            ValueOp::Load { at, guards, .. } if guards.is_empty() && self.s.value(v).dtype == self.factor => {
                // Rows of pairs without a gap are read pair by pair.
                let even = (!self.pairs() || v != self.left || at.stride(self.k) == Some(1))
                    && at.stride(self.k).is_some()
                    && axis.is_none_or(|a| at.stride(a).is_some());
                even.then_some(at)
            }
            _ => None,
        }
    }

    /// Steps before which lines of a panel of the right factor are asked for: where it passes through the nearest cache
    /// once per tile. What the processor finds ahead by itself ends with each page.
    fn distance(&self, depth: &[Index], b: &Panel, cols: u32) -> u32 {
        let steps = depth.iter().filter_map(|d| d.as_constant()).min().unwrap_or(0);
        if self.order != Order::Units && b.step <= 2 * i64::from(cols) && steps * b.step >= PASSES {
            self.distance
        } else {
            0
        }
    }

    /// Whether the accumulators can be the output itself.
    fn stores_directly(&self) -> bool {
        match &self.s.stores[..] {
            [st] => {
                let operand = &self.s.operands[st.operand as usize];
                let even = |a: Option<Var>| a.is_none_or(|a| st.at.stride(a).is_some());
                st.value == self.dot
                    && st.by.is_empty()
                    && operand.dtype == self.accum
                    && even(self.m)
                    && even(self.n)
                    && self.n.is_none_or(|n| st.at.stride(n) == Some(1))
            }
            _ => false,
        }
    }

    // --- the computing kernel

    fn compute(&self, n: &mut Nest<'s>) -> Result<(), LowerError> {
        let mut roots: Vec<ValueId> = self.s.stores.iter().map(|st| st.value).collect();
        if !self.pack_right || self.packs_inside() {
            roots.push(self.right);
        }
        self.declare(n, &roots);
        let packed_right = match (self.pack_right, self.packs_inside()) {
            (true, false) => Some(n.temp(0, self.packed(), self.right_elems())),
            _ => None,
        };
        let column = self
            .packs_inside()
            .then(|| n.scratch("b", self.packed(), self.kc / self.span() * self.column_pitch() as u64));
        let pitch = self.pitch();
        let packed_left = if self.pack_left { Some(self.left_scratch(n, pitch)) } else { None };
        let image = self.image_scratch(n);
        let (rows, panel) = (self.rows as u64, self.panel() as u64);
        let partial = if self.stores_directly() { None } else { Some(n.scratch("c", self.accum, rows * panel)) };
        let slots = self.slots(n, self.row_panels() * self.nc.div_ceil(panel));
        // Grid: batch, columns, rows; neighbours share columns, so that packed B stays cached.
        let mut sizes: Vec<u64> = self.batch.iter().map(|v| self.s.extent(*v)).collect();
        sizes.push(self.extent(self.n).div_ceil(self.nc));
        sizes.push(self.extent(self.m).div_ceil(self.mc));
        n.kernel.grid = sizes.iter().product();
        n.kernel.grain = self.grain;
        let at = delinear(&Index::var(POINT), &sizes, &|v| n.range(v));
        for (axis, i) in self.batch.iter().zip(&at) {
            n.bind_axis(*axis, i.clone());
        }
        let (tile_n, tile_m) = (at[at.len() - 2].clone(), at[at.len() - 1].clone());
        let first = self.first_block(n, &tile_m);
        let above = self.masks_above();
        let body = Compute {
            p: self,
            tile_m,
            tile_n,
            first,
            above,
            packed_left,
            packed_right,
            column,
            image,
            partial,
            slots,
            reach: None,
        };
        if self.blocks() == 1 {
            return body.block(n, &Index::default());
        }
        let var = n.var(self.blocks() as i64 - 1);
        n.plain_loop(var, vec![body.first.clone()], vec![Index::constant(self.blocks() as i64)], |n| {
            body.block(n, &Index::var(var))
        })
    }

    /// The first block of k in which a row of the tile has steps: every tile has one.
    fn first_block(&self, n: &mut Nest<'s>, tile_m: &Index) -> Index {
        let (Some(m), Some(beyond), 2..) = (self.m, self.beyond, self.blocks()) else { return Index::default() };
        let old = n.bind_axis(m, tile_m.times(self.mc as i64));
        let ranges = |v| n.range(v);
        let first = n.resolve(beyond).div(self.kc as i64, &ranges);
        let (least, most) = first.range(&ranges);
        n.bind_axis(m, old);
        if least >= 0 && most < self.blocks() as i64 { first } else { Index::default() }
    }

    /// Declares the tensors that the kernel touches: those behind `roots`, without what lies
    /// behind the product itself unless an operand is read here.
    fn declare(&self, n: &mut Nest<'s>, roots: &[ValueId]) {
        let mut todo = roots.to_vec();
        todo.extend(self.s.stores.iter().flat_map(|st| &st.by).map(|(v, _)| *v));
        todo.push(self.left);
        let mut used = vec![];
        while let Some(v) = todo.pop() {
            if let ValueOp::Load { operand, .. } = &self.s.value(v).op {
                used.push(*operand);
            }
            if v != self.dot {
                todo.extend(self.s.args(v));
            }
        }
        used.extend(self.s.stores.iter().map(|st| st.operand));
        used.sort();
        used.dedup();
        for operand in used {
            n.tensor(operand);
        }
    }
}

/// The state of one grid point.
struct Compute<'p, 's> {
    p: &'p Product<'s>,
    tile_m: Index,
    tile_n: Index,
    /// The first block along k.
    first: Index,
    /// The results above the diagonal, where they are constant.
    above: Option<Vec<ValueId>>,
    packed_left: Option<u32>,
    packed_right: Option<u32>,
    /// One panel of B, packed where it is used.
    column: Option<u32>,
    /// The part of the image under the point's windows, if it is copied.
    image: Option<u32>,
    /// The sums of a register tile, where the output itself cannot hold them.
    partial: Option<u32>,
    /// Sums of leaves that wait for others.
    slots: Option<u32>,
    /// Steps that any row of the tile takes, where that is known to be fewer than all.
    reach: Option<Index>,
}

impl<'s> Compute<'_, 's> {
    /// One block along k.
    fn block(&self, n: &mut Nest<'s>, block: &Index) -> Result<(), LowerError> {
        let p = self.p;
        if let Some(buf) = self.packed_left {
            p.pack_left_block(n, buf, &self.tile_m, block)?;
        }
        if let (Some(image), Some(buf)) = (&p.image, self.image) {
            p.copy_image(n, image, buf, &self.tile_m, block)?;
        }
        if let (Some(row), Some(buf)) = (p.row, self.column) {
            return self.rows_block(n, block, row, buf);
        }
        let columns = parts(p.extent(p.n), Some((&self.tile_n, p.nc)), p.panel());
        for column in columns {
            let jr = n.var(p.extent(p.n).div_ceil(p.panel() as u64) as i64 - 1);
            let inside = Index::var(jr).minus(&self.tile_n.times((p.nc / p.panel() as u64) as i64));
            let first = Index::var(jr).times(p.panel() as i64);
            let columns = Columns { panel: Index::var(jr), inside, first, count: column.size };
            n.plain_loop(jr, column.lo.clone(), column.hi.clone(), |n| {
                if let Some(buf) = self.column {
                    p.pack_columns(n, buf, &Index::default(), block, &Index::var(jr), column.size)?;
                }
                if let Some(image) = &p.image {
                    return self.over_windows(n, block, image, &columns);
                }
                for row in parts(p.extent(p.m), Some((&self.tile_m, p.mc)), p.rows) {
                    let ir = n.var(p.extent(p.m).div_ceil(p.rows as u64) as i64 - 1);
                    let (mut lo, mut hi) = (row.lo.clone(), row.hi.clone());
                    if self.above.is_some() {
                        // The first row panel that reaches the panel's first column.
                        let start = columns.first.div(p.rows as i64, &|v| n.range(v));
                        hi.push(start.clone());
                        n.plain_loop(ir, lo.clone(), hi, |n| {
                            self.without_tile(n, block, &self.row_panel(&Index::var(ir), row.size), &columns)
                        })?;
                        (lo, hi) = ([lo, vec![start]].concat(), row.hi.clone());
                    }
                    n.plain_loop(ir, lo, hi, |n| {
                        self.tile(n, block, &self.row_panel(&Index::var(ir), row.size), &columns, None)
                    })?;
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Row panel number `ir` of all.
    fn row_panel(&self, ir: &Index, count: u32) -> RowPanel {
        let inside = ir.minus(&self.tile_m.times((self.p.mc / self.p.rows as u64) as i64));
        RowPanel { first: ir.times(self.p.rows as i64), inside, count }
    }

    /// One register tile: a row panel and a column panel. `left`: the left factor, if it is not the
    /// operand or what was packed of it.
    fn tile(
        &self,
        n: &mut Nest<'s>,
        block: &Index,
        rows: &RowPanel,
        columns: &Columns,
        left: Option<Left>,
    ) -> Result<(), LowerError> {
        let p = self.p;
        let start = self.bind_tile(n, block, &rows.first, &columns.first);
        let (a, hops) = match left {
            Some(left) => left,
            None => (self.left_operand(n, rows)?, vec![]),
        };
        let b = self.right_operand(n, block, columns)?;
        let c = match self.partial {
            None => self.output_panel(n),
            Some(buf) => Panel { buf, at: Index::default(), row: p.panel() as i64, step: 0 },
        };
        let depth = p.steps(block);
        let [ramp, lead] = [p.within, p.beyond].map(|w| w.map(|w| n.resolve(w).minus(&start)));
        let tile = columns.inside.times(p.row_panels() as i64).plus(&rows.inside);
        let fold = self.fold(n, block, &tile);
        // What is computed in units asks for nothing ahead.
        let even = ramp.is_none() && lead.is_none() && hops.is_empty() && p.blocks() == 1 && p.order != Order::Units;
        let ahead = if even && self.partial.is_some() { p.ahead(n) } else { vec![] };
        n.push(Op::Mma(Mma {
            kind: p.kind,
            rows: rows.count,
            cols: columns.count,
            lanes: p.lanes,
            order: p.order,
            half: p.half,
            matrix_unit: p.matrix_unit,
            distance: if hops.is_empty() { p.distance(&depth, &b, columns.count) } else { 0 },
            depth,
            ramp,
            lead,
            hops,
            ahead,
            unroll: p.unroll,
            fold,
            a,
            b,
            c: c.clone(),
        }));
        if self.partial.is_some() {
            self.epilogue(n, block, Some(&c), rows, columns)?;
        }
        Ok(())
    }

    /// A register tile whose product does not count.
    fn without_tile(
        &self,
        n: &mut Nest<'s>,
        block: &Index,
        rows: &RowPanel,
        columns: &Columns,
    ) -> Result<(), LowerError> {
        self.bind_tile(n, block, &rows.first, &columns.first);
        self.epilogue(n, block, None, rows, columns)
    }

    /// Puts the axes at the start of a register tile; returns where its block starts.
    fn bind_tile(&self, n: &mut Nest<'s>, block: &Index, first_row: &Index, first_col: &Index) -> Index {
        let p = self.p;
        let start = block.times(p.kc as i64);
        let mut set = |axis: Option<Var>, at: Index| {
            if let Some(axis) = axis {
                n.bind_axis(axis, at);
            }
        };
        set(p.m, first_row.clone());
        set(p.n, first_col.clone());
        set(Some(p.k), start.clone());
        start
    }

    /// The left operand of the tile at the present places.
    fn left_operand(&self, n: &mut Nest<'s>, rows: &RowPanel) -> Result<Panel, LowerError> {
        let p = self.p;
        if let Some(buf) = self.packed_left {
            return Ok(p.left_panel(buf, &rows.inside));
        }
        let e = p.direct(p.left, p.m).ok_or(LowerError("an operand that needs packing".into()))?;
        Ok(Panel { buf: self.operand(n, p.left)?, at: n.resolve(e), row: stride(e, p.m), step: stride(e, Some(p.k)) })
    }

    /// The right operand of the tile at the present places.
    fn right_operand(&self, n: &mut Nest<'s>, block: &Index, columns: &Columns) -> Result<Panel, LowerError> {
        let p = self.p;
        Ok(match (self.packed_right, self.column) {
            (_, Some(buf)) => {
                let at = if p.row.is_some() { columns.inside.times(p.panel() as i64) } else { Index::default() };
                Panel { buf, at, row: 0, step: p.column_pitch() }
            }
            (Some(buf), _) => Panel { buf, at: p.right_at(n, block, &columns.panel), row: 0, step: p.panel() as i64 },
            (None, None) => {
                let e = p.direct(p.right, p.n).ok_or(LowerError("an operand that needs packing".into()))?;
                Panel { buf: self.operand(n, p.right)?, at: n.resolve(e), row: 0, step: stride(e, Some(p.k)) }
            }
        })
    }

    /// The output at the present places, as accumulators.
    fn output_panel(&self, n: &mut Nest<'s>) -> Panel {
        let st = &self.p.s.stores[0];
        Panel { buf: n.tensor(st.operand), at: n.resolve(&st.at), row: stride(&st.at, self.p.m), step: 0 }
    }

    fn operand(&self, n: &mut Nest<'s>, v: ValueId) -> Result<u32, LowerError> {
        match &self.p.s.value(v).op {
            ValueOp::Load { operand, .. } => Ok(n.tensor(*operand)),
            _ => Err(LowerError("an operand that needs packing".into())),
        }
    }

    /// After the last block: what follows the product, on a register tile in cache. Without one,
    /// its elements count for nothing.
    fn epilogue(
        &self,
        n: &mut Nest<'s>,
        block: &Index,
        c: Option<&Panel>,
        rows: &RowPanel,
        columns: &Columns,
    ) -> Result<(), LowerError> {
        let p = self.p;
        let i = n.var(rows.count as i64 - 1);
        // A loop over the blocks that are last: this one, or none.
        let last = n.var(p.blocks() as i64 - 1);
        let (lo, hi) = (vec![block.clone(), Index::constant(p.blocks() as i64 - 1)], vec![block.offset(1)]);
        n.plain_loop(last, lo, hi, |n| {
            if let (true, Some(c)) = (p.image.is_some(), c) {
                return self.turned(n, c, rows, columns);
            }
            n.plain_loop(i, vec![Index::default()], vec![Index::constant(rows.count as i64)], |n| {
                if let Some(m) = p.m {
                    n.bind_axis(m, rows.first.plus(&Index::var(i)));
                }
                for v in 0..columns.count.div_ceil(p.lanes) {
                    let valid = (columns.count - v * p.lanes).min(p.lanes);
                    self.epilogue_vector(n, c, &Index::var(i), &columns.first, v, valid)?;
                }
                Ok(())
            })
        })
    }

    fn epilogue_vector(
        &self,
        n: &mut Nest<'s>,
        c: Option<&Panel>,
        i: &Index,
        first_col: &Index,
        v: u32,
        valid: u32,
    ) -> Result<(), LowerError> {
        let p = self.p;
        let lanes = if p.n.is_some() { p.lanes } else { 1 };
        n.valid = valid;
        if let Some(axis) = p.n {
            n.bind_axis(axis, first_col.offset((v * p.lanes) as i64).plus(&Index::var(LANE)));
        }
        let sum = match c {
            Some(c) => {
                let at = c.at.plus(&i.times(c.row)).offset((v * p.lanes) as i64);
                let at = if lanes > 1 { at.plus(&Index::var(LANE)) } else { at };
                let valid = if lanes > 1 { valid } else { 1 };
                n.define(Def::Load(Access { buf: c.buf, at, valid, guards: vec![] }), p.kind, lanes)
            }
            None => n.define(Def::Const(Scalar::F(0.0)), p.kind, 1),
        };
        n.bind(p.dot, sum);
        self.store_all(n, c.is_some())?;
        n.valid = n.lanes;
        Ok(())
    }

    /// Every result at the present places; of rows that a strip holds the first one only. Without a
    /// product they are the constants above the diagonal.
    fn store_all(&self, n: &mut Nest<'s>, product: bool) -> Result<(), LowerError> {
        let above = self.above.as_deref().filter(|_| !product).unwrap_or_default();
        let stores = || self.p.s.stores.iter().take(self.p.results).enumerate();
        // All values first: the memory of a result may be that of an operand.
        let values = stores().map(|(i, st)| n.eval(above.get(i).copied().unwrap_or(st.value)));
        let values = values.collect::<Result<Vec<_>, _>>()?;
        stores().zip(values).try_for_each(|((_, st), value)| n.store_result(st, value, false))
    }
}
