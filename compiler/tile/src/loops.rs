//! Elementwise kernels and reductions.
//!
//! A kernel's grid covers the outer axes: those that reductions keep, or all of them. Inside a
//! point reductions run first, each in the canonical order, then the remaining axes are walked
//! once for every store. Along the reduced axis the vector's lanes are the canonical lanes;
//! across it, each lane of a parallel axis keeps all of its canonical lanes.

mod across;
mod row;
mod software_pipeline;
mod prefetch;
mod along;
mod compensated;
mod argreduce;
mod cumulate;
mod transform;
mod attention_rows;

pub use argreduce::lower as lower_extreme;
pub use attention_rows::Stages;
pub use cumulate::lower as lower_running;
pub use transform::lower as lower_transform;

use crate::nest::Nest;
use crate::{LowerError, Lowered, Step};
use std::collections::HashSet;
use tessera_base::DType;
use tessera_ir::index::{Index, Var};
use tessera_ir::schedule::{Directive, Schedule, ValueId, ValueOp};
use tessera_ir::tile::{LANE, POINT};
use tessera_ops::map::kind_of;
use tessera_ops::prim::{LANES, LEAF, Reduction};
use tessera_ops::scalar::Kind;

/// Leaves that are worth a thread's wake-up.
const LEAVES_PER_WAKE: u64 = 16;

/// A reduction of the body.
#[derive(Clone, Copy)]
struct Red {
    value: ValueId,
    kind: Reduction,
    arg: ValueId,
    axis: Var,
    accum: DType,
    of: Kind,
    /// The sum carries a second number for what its additions round away.
    compensated: bool,
}

/// Directives and axes of one lowering.
#[derive(Clone)]
struct Plan<'s> {
    s: &'s Schedule,
    reductions: Vec<Red>,
    /// Axes of the grid and its loops, outermost first.
    outer: Vec<Var>,
    /// Axes walked inside, after the reductions.
    inner: Vec<Var>,
    vector: Option<Var>,
    lanes: u32,
    tiles: Vec<(Var, u64)>,
    grain: u64,
    stream: bool,
    overlap: bool,
    split: bool,
    /// Values of a row that are computed once.
    kept: Vec<row::Kept>,
    /// Lanes are columns that an axis is walked for, though nothing is summed.
    columns: bool,
    /// Where rows in a strip start.
    base: Index,
    /// Positions of the row from here on do not count.
    limit: Option<Index>,
    /// What will be read soon is asked for.
    prefetch: bool,
}

/// Position of a loop over an axis: chunks `lo..hi` of `lanes` each, with a ragged last one.
struct Span {
    lo: Vec<Index>,
    hi: Vec<Index>,
    extent: u64,
    lanes: u32,
}

impl Span {
    /// Block `block` of `size` elements.
    fn block(block: &Index, size: u64, extent: u64, lanes: u32) -> Span {
        let per = (size / lanes as u64) as i64;
        let lo = block.times(per);
        Span { hi: vec![lo.offset(per)], lo: vec![lo], extent, lanes }
    }
}

pub fn lower(s: &Schedule) -> Result<Lowered, LowerError> {
    let mut p = plan(s)?;
    let scalars: Vec<u32> = (0..s.scalars.len() as u32).collect();
    if p.split { p.lower_split(scalars) } else { Ok(Lowered { steps: vec![p.lower_whole(scalars)?], temps: vec![] }) }
}

/// The reductions of a body in order.
fn reductions(s: &Schedule) -> Result<Vec<Red>, LowerError> {
    let mut out = vec![];
    for (i, v) in s.values.iter().enumerate() {
        let ValueOp::Reduce { kind, arg, axis } = v.op else { continue };
        let of = kind_of(v.dtype).ok_or_else(|| LowerError(format!("a reduction in {}", v.dtype)))?;
        let compensated = s.compensated && kind == Reduction::Sum && of.is_float();
        out.push(Red { value: ValueId(i as u32), kind, arg, axis, accum: v.dtype, of, compensated });
    }
    Ok(out)
}

fn plan(s: &Schedule) -> Result<Plan<'_>, LowerError> {
    let domains = s.domains();
    let reductions = reductions(s)?;
    let kept = reductions.first().map(|r| &domains[r.value.0 as usize]);
    if reductions.iter().any(|r| Some(&domains[r.value.0 as usize]) != kept) {
        return Err(LowerError("reductions that keep different axes".into()));
    }
    for r in &reductions {
        let reads = &domains[r.arg.0 as usize];
        if reads.iter().any(|a| !kept.is_some_and(|k| k.contains(a)) && *a != r.axis) {
            return Err(LowerError("a reduction inside a reduction".into()));
        }
    }
    let is_outer = |v: &Var| kept.is_none_or(|k| k.contains(v));
    let mut p = Plan::new(s, &is_outer);
    p.reductions = reductions;
    // A sum of nothing has no leaves to be combined.
    p.split &= p.reductions.len() == 1 && p.inner.is_empty() && s.extent(p.reductions[0].axis) > 0;
    if !p.across() {
        let walk: Vec<(usize, ValueId)> = s.stores.iter().map(|st| (p.reductions.len(), st.value)).collect();
        p.kept = row::worth_keeping(s, &p.reductions, &walk);
    }
    Ok(p)
}

impl<'s> Plan<'s> {
    /// The axes and the directives, without reductions.
    fn new(s: &'s Schedule, is_outer: &dyn Fn(&Var) -> bool) -> Plan<'s> {
        let parallel: Vec<Var> =
            (0..s.axes.len() as u32).map(Var).filter(|v| !s.axes[v.0 as usize].reduced && s.extent(*v) != 1).collect();
        // A row is walked once more after its reductions.
        let rows = (0..s.axes.len() as u32).map(Var).filter(|v| s.axes[v.0 as usize].reduced && s.walks(*v));
        let mut p = Plan {
            s,
            outer: parallel.iter().copied().filter(is_outer).collect(),
            inner: parallel.iter().copied().filter(|v| !is_outer(v)).chain(rows).collect(),
            reductions: vec![],
            vector: None,
            lanes: LANES as u32,
            tiles: vec![],
            grain: 1,
            stream: false,
            overlap: false,
            split: false,
            kept: vec![],
            columns: false,
            base: Index::default(),
            limit: None,
            prefetch: false,
        };
        for d in &s.directives {
            match d {
                Directive::Vectorize { axis, lanes } => (p.vector, p.lanes) = (Some(*axis), *lanes),
                Directive::Order(order) => {
                    let known: HashSet<Var> = order.iter().copied().collect();
                    let rest: Vec<Var> = p.outer.iter().copied().filter(|v| !known.contains(v)).collect();
                    p.outer = rest.into_iter().chain(order.iter().copied().filter(|v| p.outer.contains(v))).collect();
                }
                Directive::Tile { axis, size } => p.tiles.push((*axis, (*size).max(1))),
                Directive::Grain(n) => p.grain = *n,
                Directive::Stream => p.stream = true,
                Directive::Overlap => p.overlap = true,
                Directive::Prefetch => p.prefetch = true,
                Directive::SplitReduction => p.split = true,
                _ => {}
            }
        }
        if p.vector.is_some_and(|v| s.axes[v.0 as usize].reduced) {
            p.lanes = LANES as u32;
        }
        p.keep_order();
        p
    }

    /// Axes along which stores come back to an element are walked in their order, inside one grid point. Lanes, which
    /// are stored in ascending order, may run along the last of them.
    fn keep_order(&mut self) {
        let ordered = self.s.ordered();
        let Some(last) = ordered.last() else { return };
        self.tiles.retain(|(axis, _)| !ordered.contains(axis));
        let mut next = ordered.iter();
        for axis in self.outer.iter_mut().filter(|a| ordered.contains(a)) {
            next.next().into_iter().for_each(|v| *axis = *v);
        }
        if self.vector.is_some_and(|v| ordered.contains(&v) && v != *last) {
            (self.vector, self.lanes) = (None, 1);
        }
    }

    /// Whether there are reductions and the vector axis is one that they keep.
    fn across(&self) -> bool {
        self.columns || !self.reductions.is_empty() && self.vector.is_some_and(|v| self.outer.contains(&v))
    }

    fn tile(&self, axis: Var) -> Option<u64> {
        let lanes = if self.vector == Some(axis) { self.lanes as u64 } else { 1 };
        self.tiles.iter().find(|(a, _)| *a == axis).map(|(_, size)| size.next_multiple_of(lanes))
    }

    fn roots(&self) -> Vec<ValueId> {
        self.s.stores.iter().map(|st| st.value).collect()
    }

    fn lower_whole(&mut self, scalars: Vec<u32>) -> Result<Step, LowerError> {
        let mut n = Nest::new(self.s, self.s.name.clone(), self.lanes);
        n.declare(&self.roots(), true);
        self.keep_room(&mut n);
        if self.across() {
            self.whole_across(&mut n)?;
        } else {
            self.whole_along(&mut n)?;
        }
        n.kernel.grain = self.grain;
        Ok(n.finish(scalars))
    }

    /// A kernel that reduces leaves into a temporary, and one that combines them.
    fn lower_split(&self, scalars: Vec<u32>) -> Result<Lowered, LowerError> {
        let r = self.reductions[0];
        let leaves = self.leaves(&r);
        let rows: u64 = self.rows().iter().map(|v| self.s.extent(*v)).product();
        let elems = match self.vector.filter(|_| self.across()) {
            Some(v) => rows * leaves * self.s.extent(v).next_multiple_of(self.lanes as u64),
            None => rows * leaves,
        };
        let mut first = Nest::new(self.s, format!("{}_leaves", self.s.name), self.lanes);
        first.declare(&[r.arg], false);
        // A compensated sum has two numbers for each leaf.
        let count = if r.compensated { 2 } else { 1 };
        let temps: Vec<u32> = (0..count).map(|i| first.temp(i, r.accum, elems)).collect();
        match (temps[..].as_array(), self.across()) {
            (Some(pair), true) => self.leaves_across_pairs(&mut first, &r, pair)?,
            (Some(pair), false) => self.leaves_along_pairs(&mut first, &r, pair)?,
            (None, true) => self.leaves_across(&mut first, &r, temps[0])?,
            (None, false) => self.leaves_along(&mut first, &r, temps[0])?,
        }
        first.kernel.grain = LEAVES_PER_WAKE;
        let mut second = Nest::new(self.s, format!("{}_tree", self.s.name), self.lanes);
        second.declare(&self.roots(), true);
        let temps: Vec<u32> = (0..count).map(|i| second.temp(i, r.accum, elems)).collect();
        match (temps[..].as_array(), self.across()) {
            (Some(pair), true) => self.tree_across_pairs(&mut second, &r, pair)?,
            (Some(pair), false) => self.tree_along_pairs(&mut second, &r, pair)?,
            (None, true) => self.tree_across(&mut second, &r, temps[0])?,
            (None, false) => self.tree_along(&mut second, &r, temps[0])?,
        }
        second.kernel.grain = 64;
        let temps = vec![elems * r.accum.bytes() as u64; count as usize];
        Ok(Lowered { steps: vec![first.finish(scalars.clone()), second.finish(scalars)], temps })
    }

    /// Outer axes that are not the vector axis of a reduction across.
    fn rows(&self) -> Vec<Var> {
        self.outer.iter().copied().filter(|v| !self.across() || Some(*v) != self.vector).collect()
    }

    fn leaves(&self, r: &Red) -> u64 {
        self.s.extent(r.axis).div_ceil(LEAF as u64)
    }

    // --- grid and outer loops

    /// Opens the grid and the loops over `axes`, then calls `body` with the row-major position
    /// among their chunks and with the positions of the `extra` grid axes.
    fn outer_loops(&self, n: &mut Nest<'s>, axes: &[Var], extra: &[u64], body: Body<'_, 's>) -> Result<(), LowerError> {
        let tiled = axes.iter().filter_map(|axis| self.tile(*axis).map(|size| self.s.extent(*axis).div_ceil(size)));
        let sizes: Vec<u64> = tiled.chain(extra.iter().copied()).collect();
        n.kernel.grid = sizes.iter().product();
        let coordinates = tessera_ir::index::delinear(&Index::var(POINT), &sizes, &|v| n.range(v));
        let (blocks, extra) = coordinates.split_at(coordinates.len() - extra.len());
        self.open(n, axes, blocks, &Index::default(), extra, body)
    }

    fn open(
        &self,
        n: &mut Nest<'s>,
        axes: &[Var],
        blocks: &[Index],
        chunk: &Index,
        extra: &[Index],
        body: Body<'_, 's>,
    ) -> Result<(), LowerError> {
        let Some((&axis, axes)) = axes.split_first() else { return body(self, n, chunk, extra) };
        let extent = self.s.extent(axis);
        let lanes = if self.vector == Some(axis) { self.lanes } else { 1 };
        let chunks = extent.div_ceil(lanes as u64) as i64;
        let next = |place: &Index| chunk.times(chunks).plus(place);
        let (span, rest) = match self.tile(axis) {
            Some(1) => {
                n.bind_axis(axis, blocks[0].clone());
                return self.open(n, axes, &blocks[1..], &next(&blocks[0]), extra, body);
            }
            Some(size) => (Span::block(&blocks[0], size, extent, lanes), &blocks[1..]),
            None => (Span { lo: vec![], hi: vec![], extent, lanes }, blocks),
        };
        self.walk(n, axis, &span, &mut |n, at| self.open(n, axes, rest, &next(at), extra, body))
    }

    /// Loops over an axis: whole chunks, then the ragged one. `body` gets the chunk.
    fn walk(
        &self,
        n: &mut Nest<'s>,
        axis: Var,
        span: &Span,
        body: &mut dyn FnMut(&mut Nest<'s>, &Index) -> Result<(), LowerError>,
    ) -> Result<(), LowerError> {
        let (whole, chunks) =
            ((span.extent / span.lanes as u64) as i64, span.extent.div_ceil(span.lanes as u64) as i64);
        let with =
            |bounds: &[Index], limit: i64| bounds.iter().cloned().chain([Index::constant(limit)]).collect::<Vec<_>>();
        for (lo, hi, valid) in [(0, whole, span.lanes), (whole, chunks, (span.extent % span.lanes as u64) as u32)] {
            if lo == hi {
                continue;
            }
            let var = n.var(chunks - 1);
            let place = if span.lanes == 1 {
                Index::var(var)
            } else {
                Index::var(var).times(span.lanes as i64).plus(&Index::var(LANE))
            };
            let before = n.valid;
            n.plain_loop(var, with(&span.lo, lo), with(&span.hi, hi), |n| {
                let old = n.bind_axis(axis, place);
                if span.lanes > 1 {
                    n.valid = valid;
                }
                body(n, &Index::var(var))?;
                n.valid = before;
                n.bind_axis(axis, old);
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Walks the inner axes and stores.
    fn stores(&self, n: &mut Nest<'s>) -> Result<(), LowerError> {
        self.inner_loops(n, 0)
    }

    /// Computes and stores the results at the present places.
    fn store_here(&self, n: &mut Nest<'s>) -> Result<(), LowerError> {
        if let (true, true, Some(axis)) = (self.prefetch, self.reductions.is_empty(), self.vector) {
            self.prefetch_ahead(n, axis);
        }
        self.recall(n, self.reductions.len());
        // All values first: the memory of a result may be that of an operand.
        let values = self.s.stores.iter().map(|st| n.eval(st.value)).collect::<Result<Vec<_>, _>>()?;
        self.s.stores.iter().zip(values).try_for_each(|(st, value)| n.store_result(st, value, self.stream))
    }

    fn inner_loops(&self, n: &mut Nest<'s>, depth: usize) -> Result<(), LowerError> {
        let Some(&axis) = self.inner.get(depth) else { return self.store_here(n) };
        let contiguous =
            self.inner.iter().copied().find(|a| self.s.stores.iter().any(|st| matches!(st.at.stride(*a), Some(1 | 2))));
        let lanes = if !self.across() && contiguous == Some(axis) { self.lanes } else { 1 };
        let span = Span { lo: vec![], hi: vec![], extent: self.s.extent(axis), lanes };
        self.walk(n, axis, &span, &mut |n, _| self.inner_loops(n, depth + 1))
    }

    /// Bounds of the chunks of `LANES` in a leaf: whole ones, and the ragged one.
    fn chunks(&self, r: &Red, leaf: &Index) -> [(Vec<Index>, Vec<Index>, u32); 2] {
        let extent = self.s.extent(r.axis);
        let per = (LEAF / LANES) as i64;
        let (whole, all) = ((extent / LANES as u64) as i64, extent.div_ceil(LANES as u64) as i64);
        let (lo, hi) = (leaf.times(per), leaf.times(per).offset(per));
        let upto = |last: i64| [hi.clone(), Index::constant(last)].into_iter().chain(self.limit.clone()).collect();
        let whole_part = (vec![lo.clone()], upto(whole), LANES as u32);
        [whole_part, (vec![lo, Index::constant(whole)], upto(all), (extent % LANES as u64) as u32)]
    }
}

/// What stands inside the outer loops.
type Body<'b, 's> = &'b mut dyn FnMut(&Plan<'s>, &mut Nest<'s>, &Index, &[Index]) -> Result<(), LowerError>;
