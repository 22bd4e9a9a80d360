//! Elementwise kernels and reductions.
//!
//! A kernel's grid covers the outer axes: those that reductions keep, or all of them. Inside a
//! point reductions run first, each in the canonical order, then the remaining axes are walked
//! once for every store. Along the reduced axis the vector's lanes are the canonical lanes;
//! across it, each lane of a parallel axis keeps all of its canonical lanes.

use crate::nest::{Nest, identity};
use crate::{LowerError, Lowered, Step};
use std::collections::HashSet;
use tessera_base::DType;
use tessera_ir::index::{Index, Var};
use tessera_ir::schedule::{Directive, Schedule, ValueId, ValueOp};
use tessera_ir::tile::{Def, LANE, POINT, Val};
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
}

/// Directives and axes of one lowering.
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
    split: bool,
}

/// Position of a loop over an axis: chunks `lo..hi` of `lanes` each, with a ragged last one.
struct Span {
    lo: Vec<Index>,
    hi: Vec<Index>,
    extent: u64,
    lanes: u32,
}

pub fn lower(s: &Schedule) -> Result<Lowered, LowerError> {
    let p = plan(s)?;
    let scalars: Vec<u32> = (0..s.scalars.len() as u32).collect();
    if p.split { p.lower_split(scalars) } else { Ok(Lowered { steps: vec![p.lower_whole(scalars)?], temps: vec![] }) }
}

fn plan(s: &Schedule) -> Result<Plan<'_>, LowerError> {
    let domains = s.domains();
    let mut reductions = vec![];
    for (i, v) in s.values.iter().enumerate() {
        let ValueOp::Reduce { kind, arg, axis } = v.op else { continue };
        let of = kind_of(v.dtype).ok_or_else(|| LowerError(format!("a reduction in {}", v.dtype)))?;
        reductions.push(Red { value: ValueId(i as u32), kind, arg, axis, accum: v.dtype, of });
    }
    let parallel: Vec<Var> = (0..s.axes.len() as u32).map(Var).filter(|v| !s.axes[v.0 as usize].reduced && s.extent(*v) != 1).collect();
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
    let mut p = Plan {
        s,
        outer: parallel.iter().copied().filter(is_outer).collect(),
        inner: parallel.iter().copied().filter(|v| !is_outer(v)).collect(),
        reductions,
        vector: None,
        lanes: LANES as u32,
        tiles: vec![],
        grain: 1,
        stream: false,
        split: false,
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
            Directive::SplitReduction => p.split = true,
            _ => {}
        }
    }
    p.split &= p.reductions.len() == 1 && p.inner.is_empty();
    if p.vector.is_some_and(|v| s.axes[v.0 as usize].reduced) {
        p.lanes = LANES as u32;
    }
    Ok(p)
}

impl<'s> Plan<'s> {
    /// Whether the vector axis is one that reductions keep.
    fn across(&self) -> bool {
        self.vector.is_some_and(|v| self.outer.contains(&v))
    }

    fn tile(&self, axis: Var) -> Option<u64> {
        let lanes = if self.vector == Some(axis) { self.lanes as u64 } else { 1 };
        self.tiles.iter().find(|(a, _)| *a == axis).map(|(_, size)| size.next_multiple_of(lanes))
    }

    fn roots(&self) -> Vec<ValueId> {
        self.s.stores.iter().map(|st| st.value).collect()
    }

    fn lower_whole(&self, scalars: Vec<u32>) -> Result<Step, LowerError> {
        let mut n = Nest::new(self.s, self.s.name.clone(), self.lanes);
        n.declare(&self.roots(), true);
        let sums: Vec<u32> = self.reductions.iter().map(|r| self.leaf_sums(&mut n, r)).collect();
        self.outer_loops(&mut n, &[], &mut |p, n, _| {
            for (r, buf) in p.reductions.iter().zip(&sums) {
                let v = p.reduce(n, r, *buf)?;
                n.bind(r.value, v);
            }
            p.stores(n)
        })?;
        n.kernel.grain = self.grain;
        Ok(n.finish(scalars))
    }

    /// A kernel that sums leaves into a temporary, and one that combines them.
    fn lower_split(&self, scalars: Vec<u32>) -> Result<Lowered, LowerError> {
        let r = self.reductions[0];
        let leaves = self.leaves(&r);
        let width = if self.across() { self.lanes as u64 } else { 1 };
        let chunks: u64 = self.outer.iter().map(|v| if self.vector == Some(*v) { self.s.extent(*v).div_ceil(width) } else { self.s.extent(*v) }).product();
        let elems = chunks * leaves * width;
        let at = |chunk: &Index, leaf: &Index| {
            let e = chunk.times(leaves as i64).plus(leaf).times(width as i64);
            if width > 1 { e.plus(&Index::var(LANE)) } else { e }
        };
        let mut first = Nest::new(self.s, format!("{}_leaves", self.s.name), self.lanes);
        first.declare(&[r.arg], false);
        let temp = first.temp(0, r.accum, elems);
        self.outer_loops(&mut first, &[leaves], &mut |p, n, (chunk, extra)| {
            let leaf = extra[0].clone();
            let acc = p.leaf(n, &r, &leaf)?;
            let valid = std::mem::replace(&mut n.valid, n.lanes);
            n.store(temp, at(chunk, &leaf), acc, false);
            n.valid = valid;
            Ok(())
        })?;
        first.kernel.grain = LEAVES_PER_WAKE;
        let mut second = Nest::new(self.s, format!("{}_tree", self.s.name), self.lanes);
        second.declare(&self.roots(), true);
        let temp = second.temp(0, r.accum, elems);
        self.outer_loops(&mut second, &[], &mut |p, n, (chunk, _)| {
            let start = chunk.times((leaves * width) as i64);
            let v = n.define(Def::Tree { kind: r.kind, buf: temp, at: start, count: leaves }, r.of, width as u32);
            n.bind(r.value, v);
            p.stores(n)
        })?;
        second.kernel.grain = 64;
        let temps = vec![elems * r.accum.bytes() as u64];
        Ok(Lowered { steps: vec![first.finish(scalars.clone()), second.finish(scalars)], temps })
    }

    fn leaves(&self, r: &Red) -> u64 {
        self.s.extent(r.axis).div_ceil(LEAF as u64)
    }

    /// Scratch for the sums of leaves; unused where there is one leaf.
    fn leaf_sums(&self, n: &mut Nest, r: &Red) -> u32 {
        let leaves = self.leaves(r);
        if leaves <= 1 {
            return 0;
        }
        let width = if self.across() { self.lanes as u64 } else { 1 };
        n.scratch(&format!("leaf_sums{}", r.value.0), r.accum, leaves * width)
    }

    // --- grid and outer loops

    /// Opens the grid and the loops over the outer axes, then calls `body` with the row-major
    /// position among vector chunks of the outer axes and with the positions of the `extra`
    /// grid axes.
    fn outer_loops(&self, n: &mut Nest<'s>, extra: &[u64], body: Body<'_, 's>) -> Result<(), LowerError> {
        // Grid coordinates, outermost first: blocks of tiled axes, then the extra axes.
        let mut sizes = vec![];
        for &axis in &self.outer {
            if let Some(size) = self.tile(axis) {
                sizes.push(self.s.extent(axis).div_ceil(size));
            }
        }
        sizes.extend(extra);
        n.kernel.grid = sizes.iter().product();
        let coordinates = tessera_ir::index::delinear(&Index::var(POINT), &sizes, &|v| n.range(v));
        let blocks = coordinates.len() - extra.len();
        self.open(n, 0, &coordinates[..blocks], &Index::default(), &coordinates[blocks..], body)
    }

    fn open(&self, n: &mut Nest<'s>, depth: usize, blocks: &[Index], chunk: &Index, extra: &[Index], body: Body<'_, 's>) -> Result<(), LowerError> {
        let Some(&axis) = self.outer.get(depth) else { return body(self, n, (chunk, extra)) };
        let extent = self.s.extent(axis);
        let lanes = if self.vector == Some(axis) { self.lanes } else { 1 };
        let chunks = extent.div_ceil(lanes as u64) as i64;
        let next = |place: Index| chunk.times(chunks).plus(&place);
        let (span, rest) = match self.tile(axis) {
            Some(1) => {
                n.place(axis, blocks[0].clone());
                return self.open(n, depth + 1, &blocks[1..], &next(blocks[0].clone()), extra, body);
            }
            Some(size) => {
                let per = (size / lanes as u64) as i64;
                let lo = blocks[0].times(per);
                (Span { lo: vec![lo.clone()], hi: vec![lo.offset(per)], extent, lanes }, &blocks[1..])
            }
            None => (Span { lo: vec![], hi: vec![], extent, lanes }, blocks),
        };
        self.walk(n, axis, &span, &mut |n, at| self.open(n, depth + 1, rest, &next(at.clone()), extra, body))
    }

    /// Loops over an axis: whole chunks, then the ragged one. `body` gets the chunk.
    fn walk(
        &self,
        n: &mut Nest<'s>,
        axis: Var,
        span: &Span,
        body: &mut dyn FnMut(&mut Nest<'s>, &Index) -> Result<(), LowerError>,
    ) -> Result<(), LowerError> {
        let (whole, chunks) = ((span.extent / span.lanes as u64) as i64, span.extent.div_ceil(span.lanes as u64) as i64);
        let with = |bounds: &[Index], limit: i64| bounds.iter().cloned().chain([Index::constant(limit)]).collect::<Vec<_>>();
        for (lo, hi, valid) in [(0, whole, span.lanes), (whole, chunks, (span.extent % span.lanes as u64) as u32)] {
            if lo == hi {
                continue;
            }
            let var = n.var(chunks - 1);
            let place = if span.lanes == 1 { Index::var(var) } else { Index::var(var).times(span.lanes as i64).plus(&Index::var(LANE)) };
            let before = n.valid;
            n.plain_loop(var, with(&span.lo, lo), with(&span.hi, hi), |n| {
                let old = n.place(axis, place);
                if span.lanes > 1 {
                    n.valid = valid;
                }
                body(n, &Index::var(var))?;
                n.valid = before;
                n.place(axis, old);
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Walks the inner axes and stores.
    fn stores(&self, n: &mut Nest<'s>) -> Result<(), LowerError> {
        self.inner_loops(n, 0)
    }

    fn inner_loops(&self, n: &mut Nest<'s>, depth: usize) -> Result<(), LowerError> {
        let Some(&axis) = self.inner.get(depth) else {
            for st in &self.s.stores {
                let value = n.eval(st.value)?;
                let (buf, at) = (n.tensor(st.operand), n.resolve(&st.at));
                n.store(buf, at, value, self.stream);
            }
            return Ok(());
        };
        let contiguous = self.inner.iter().copied().find(|a| self.s.stores.iter().any(|st| st.at.stride(*a) == Some(1)));
        let lanes = if !self.across() && contiguous == Some(axis) { self.lanes } else { 1 };
        let span = Span { lo: vec![], hi: vec![], extent: self.s.extent(axis), lanes };
        self.walk(n, axis, &span, &mut |n, _| self.inner_loops(n, depth + 1))
    }

    // --- reductions

    /// The whole reduction at the present places.
    fn reduce(&self, n: &mut Nest<'s>, r: &Red, sums: u32) -> Result<Val, LowerError> {
        let leaves = self.leaves(r);
        if leaves <= 1 {
            return self.leaf(n, r, &Index::default());
        }
        let var = n.var(leaves as i64 - 1);
        let width = if self.across() { self.lanes } else { 1 };
        n.plain_loop(var, vec![Index::default()], vec![Index::constant(leaves as i64)], |n| {
            let acc = self.leaf(n, r, &Index::var(var))?;
            let at = Index::var(var).times(width as i64);
            let valid = std::mem::replace(&mut n.valid, n.lanes);
            n.store(sums, if width > 1 { at.plus(&Index::var(LANE)) } else { at }, acc, false);
            n.valid = valid;
            Ok(())
        })?;
        Ok(n.define(Def::Tree { kind: r.kind, buf: sums, at: Index::default(), count: leaves }, r.of, width))
    }

    /// One leaf: `LANES` chains from the identity, combined by halves.
    fn leaf(&self, n: &mut Nest<'s>, r: &Red, leaf: &Index) -> Result<Val, LowerError> {
        if self.across() { self.leaf_across(n, r, leaf) } else { self.leaf_along(n, r, leaf) }
    }

    /// Bounds of the chunks of `LANES` in a leaf: whole ones, and the ragged one.
    fn chunks(&self, r: &Red, leaf: &Index) -> [(Vec<Index>, Vec<Index>, u32); 2] {
        let extent = self.s.extent(r.axis);
        let per = (LEAF / LANES) as i64;
        let (whole, all) = ((extent / LANES as u64) as i64, extent.div_ceil(LANES as u64) as i64);
        let (lo, hi) = (leaf.times(per), leaf.times(per).offset(per));
        let whole_part = (vec![lo.clone()], vec![hi.clone(), Index::constant(whole)], LANES as u32);
        [whole_part, (vec![lo, Index::constant(whole)], vec![hi, Index::constant(all)], (extent % LANES as u64) as u32)]
    }

    fn leaf_along(&self, n: &mut Nest<'s>, r: &Red, leaf: &Index) -> Result<Val, LowerError> {
        let mut acc = n.define(Def::Const(identity(r.kind, r.of)), r.of, LANES as u32);
        let last = self.s.extent(r.axis).div_ceil(LANES as u64) as i64 - 1;
        let before = (n.lanes, n.valid);
        for (lo, hi, valid) in self.chunks(r, leaf) {
            if valid == 0 || last < 0 {
                continue;
            }
            let var = n.var(last);
            acc = n.carry_loop(var, lo, hi, &[acc], |n, acc| {
                (n.lanes, n.valid) = (LANES as u32, valid);
                let old = n.place(r.axis, Index::var(var).times(LANES as i64).plus(&Index::var(LANE)));
                let value = n.eval(r.arg)?;
                let next = n.define(Def::Fold { kind: r.kind, acc: acc[0], value, valid }, r.of, LANES as u32);
                n.place(r.axis, old);
                Ok(vec![next])
            })?[0];
            (n.lanes, n.valid) = before;
        }
        Ok(n.define(Def::Lanes { kind: r.kind, arg: acc }, r.of, 1))
    }

    fn leaf_across(&self, n: &mut Nest<'s>, r: &Red, leaf: &Index) -> Result<Val, LowerError> {
        let lanes = n.lanes;
        let identity = n.define(Def::Const(identity(r.kind, r.of)), r.of, lanes);
        let mut acc = vec![identity; LANES];
        let last = self.s.extent(r.axis).div_ceil(LANES as u64) as i64 - 1;
        for (lo, hi, count) in self.chunks(r, leaf) {
            if count == 0 || last < 0 {
                continue;
            }
            let var = n.var(last);
            acc = n.carry_loop(var, lo, hi, &acc, |n, acc| {
                let mut next = acc.to_vec();
                for l in 0..count as usize {
                    let old = n.place(r.axis, Index::var(var).times(LANES as i64).offset(l as i64));
                    let value = n.eval(r.arg)?;
                    next[l] = n.define(Def::Fold { kind: r.kind, acc: acc[l], value, valid: lanes }, r.of, lanes);
                    n.place(r.axis, old);
                }
                Ok(next)
            })?;
        }
        let mut half = LANES / 2;
        while half > 0 {
            for l in 0..half {
                acc[l] = n.define(Def::Fold { kind: r.kind, acc: acc[l], value: acc[l + half], valid: lanes }, r.of, lanes);
            }
            half /= 2;
        }
        Ok(acc[0])
    }
}

/// What stands inside the outer loops.
type Body<'b, 's> = &'b mut dyn FnMut(&Plan<'s>, &mut Nest<'s>, (&Index, &[Index])) -> Result<(), LowerError>;
