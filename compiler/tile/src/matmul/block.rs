//! Products on units for matrices: a point is a block of the result, by several warps.
//!
//! ```text
//! (a factor that does not lie as bf16 with neighbours along lines or steps: a kernel of its own makes it)
//! grid (batch, n tile, m tile)
//!   block rows×cols over all steps
//!   rows dealt to the warps: epilogue
//! ```

use super::panels::parts;
use crate::nest::Nest;
use crate::{LowerError, Lowered, Step};
use tessera_base::DType;
use tessera_ir::index::{Index, Var, delinear};
use tessera_ir::schedule::{Directive, Schedule, ValueId, ValueOp};
use tessera_ir::tile::{Access, Block, Def, Factor, LANE, Op, POINT};
use tessera_ops::prim::Order;
use tessera_ops::prim::fold::levels;
use tessera_ops::scalar::Kind;

/// Lanes of what is not the product: the threads of a warp.
const LANES: u32 = 32;
/// The least lines of a warp.
const LINES: u64 = Order::ATOM;
/// Sums of a thread, at most.
const SUMS_MAX: u64 = 128;

/// The product with its block.
struct Atoms<'s> {
    s: &'s Schedule,
    dot: ValueId,
    factors: [ValueId; 2],
    /// Row and column axis; `None` for an extent of 1.
    sides: [Option<Var>; 2],
    batch: Vec<Var>,
    k: Var,
    leaf: u64,
    /// Rows and columns of a block, and warps along them.
    lines: [u64; 2],
    warps: [u32; 2],
    chunk: u32,
    stages: u32,
}

/// A factor as the block reads it: an operand as it lies, or what a kernel before made.
enum Source {
    Operand { operand: u32, at: Index },
    Temp(u32),
}

pub fn lower(s: &Schedule, dot: ValueId) -> Result<Lowered, LowerError> {
    let p = Atoms::new(s, dot)?;
    let scalars: Vec<u32> = (0..s.scalars.len() as u32).collect();
    let mut out = Lowered::default();
    let mut sources = vec![];
    for side in 0..2 {
        sources.push(match p.lies(side) {
            Some(source) => source,
            None => {
                let (temp, name) = (out.temps.len() as u32, format!("{}_factor{side}", s.name));
                let (step, bytes) = p.make(side, name, temp, scalars.clone())?;
                out.steps.push(step);
                out.temps.push(bytes);
                Source::Temp(temp)
            }
        });
    }
    out.steps.push(p.compute(&sources, scalars)?);
    Ok(out)
}

impl<'s> Atoms<'s> {
    fn new(s: &'s Schedule, dot: ValueId) -> Result<Atoms<'s>, LowerError> {
        let ValueOp::Dot { a, b, axis: k, leaf, .. } = s.value(dot).op else {
            return Err(LowerError("no product".into()));
        };
        let (m, n) = s.sides(dot);
        let parallel = (0..s.axes.len() as u32).map(Var).filter(|v| !s.axes[v.0 as usize].reduced && s.extent(*v) != 1);
        let batch = parallel.filter(|v| Some(*v) != m && Some(*v) != n).collect();
        let mut p = Atoms {
            s,
            dot,
            factors: [a, b],
            sides: [m, n],
            batch,
            k,
            leaf,
            lines: [LINES; 2],
            warps: [1; 2],
            chunk: LINES as u32,
            stages: 3,
        };
        for d in &s.directives {
            match d {
                Directive::Tile { axis, size } if Some(*axis) == m => p.lines[0] = *size,
                Directive::Tile { axis, size } if Some(*axis) == n => p.lines[1] = *size,
                Directive::Block { axis, size } if *axis == k && *size >= 2 * LINES => p.chunk = 2 * LINES as u32,
                Directive::Warps { rows, cols } => p.warps = [*rows, *cols],
                Directive::Stages(n) => p.stages = *n,
                _ => {}
            }
        }
        p.bound();
        Ok(p)
    }

    /// Blocks that the instructions can make, whatever was asked for.
    fn bound(&mut self) {
        let chunk = u64::from(self.chunk);
        let (depth, leaf) = (self.s.extent(self.k), self.leaf);
        if !depth.is_multiple_of(chunk) || !(leaf.is_multiple_of(chunk) || depth <= leaf) {
            self.chunk = LINES as u32;
        }
        let warps = |n: u32| n.next_power_of_two().min(8);
        self.warps = self.warps.map(warps);
        for side in 0..2 {
            let least = LINES * u64::from(self.warps[side]);
            self.lines[side] = self.lines[side].next_power_of_two().clamp(least, 256.max(least));
        }
        let all = SUMS_MAX * u64::from(LANES * self.warps[0] * self.warps[1]);
        while self.lines[0] * self.lines[1] > all {
            let side = usize::from(self.lines[1] > self.lines[0]);
            self.lines[side] /= 2;
        }
    }

    /// Of both factors: bf16 or f16.
    fn dtype(&self) -> DType {
        self.s.value(self.factors[0]).dtype
    }

    fn extent(&self, side: usize) -> u64 {
        self.sides[side].map_or(1, |v| self.s.extent(v))
    }

    fn depth(&self) -> u64 {
        self.s.extent(self.k)
    }

    /// The strides of lines and steps of an operand that lies as a block reads it.
    fn strides(&self, at: &Index, side: usize) -> Option<(i64, i64)> {
        let step = at.stride(self.k)?;
        let line = self.sides[side].map_or(Some(i64::from(step != 1)), |v| at.stride(v))?;
        (line == 1 || step == 1).then_some((line, step))
    }

    fn lies(&self, side: usize) -> Option<Source> {
        let v = self.s.value(self.factors[side]);
        match &v.op {
            ValueOp::Load { operand, at, guards } if guards.is_empty() && v.dtype == self.dtype() => {
                self.strides(at, side)?;
                Some(Source::Operand { operand: *operand, at: at.clone() })
            }
            _ => None,
        }
    }

    /// The batch axes that a factor depends on.
    fn batch_of(&self, side: usize) -> Vec<Var> {
        let domain = &self.s.domains()[self.factors[side].0 as usize];
        self.batch.iter().copied().filter(|v| domain.contains(v)).collect()
    }

    /// A kernel that writes a factor line by line.
    fn make(&self, side: usize, name: String, temp: u32, scalars: Vec<u32>) -> Result<(Step, u64), LowerError> {
        let mut n = Nest::new(self.s, name, LANES);
        n.declare(&[self.factors[side]], false);
        let batch = self.batch_of(side);
        let mut sizes: Vec<u64> = batch.iter().map(|v| self.s.extent(*v)).collect();
        sizes.push(self.extent(side));
        n.kernel.grid = sizes.iter().product();
        let elems = n.kernel.grid * self.depth();
        let buf = n.temp(temp, self.dtype(), elems);
        let at = delinear(&Index::var(POINT), &sizes, &|v| n.range(v));
        for (axis, i) in batch.into_iter().chain(self.sides[side]).zip(&at) {
            n.bind_axis(axis, i.clone());
        }
        let first = Index::var(POINT).times(self.depth() as i64);
        for part in parts(self.depth(), None, LANES) {
            let q = n.var(self.depth().div_ceil(u64::from(LANES)) as i64 - 1);
            n.plain_loop(q, part.lo, part.hi, |n| {
                n.valid = part.size;
                let k = Index::var(q).times(i64::from(LANES)).plus(&Index::var(LANE));
                n.bind_axis(self.k, k.clone());
                let value = n.eval(self.factors[side])?;
                n.store(buf, first.plus(&k), value, false);
                n.valid = LANES;
                Ok(())
            })?;
        }
        Ok((n.finish(scalars), elems * self.dtype().bytes() as u64))
    }

    fn compute(&self, sources: &[Source], scalars: Vec<u32>) -> Result<Step, LowerError> {
        let mut n = Nest::new(self.s, self.s.name.clone(), LANES);
        let mut bufs = vec![];
        for source in sources {
            if let Source::Operand { operand, .. } = source {
                n.tensor(*operand);
            }
        }
        self.declare(&mut n);
        for (side, source) in sources.iter().enumerate() {
            bufs.push(match source {
                Source::Operand { operand, .. } => n.tensor(*operand),
                Source::Temp(t) => {
                    let lines: u64 = self.batch_of(side).iter().map(|v| self.s.extent(*v)).product();
                    n.temp(*t, self.dtype(), lines * self.extent(side) * self.depth())
                }
            });
        }
        let [rows, cols] = self.lines;
        let mut sizes: Vec<u64> = self.batch.iter().map(|v| self.s.extent(*v)).collect();
        sizes.extend([self.extent(1).div_ceil(cols), self.extent(0).div_ceil(rows)]);
        n.kernel.grid = sizes.iter().product();
        n.kernel.warps = self.warps[0] * self.warps[1];
        let at = delinear(&Index::var(POINT), &sizes, &|v| n.range(v));
        for (axis, i) in self.batch.iter().zip(&at) {
            n.bind_axis(*axis, i.clone());
        }
        let tiles = [at[at.len() - 1].clone(), at[at.len() - 2].clone()];
        for ((axis, tile), lines) in self.sides.iter().zip(&tiles).zip(self.lines) {
            if let Some(axis) = axis {
                n.bind_axis(*axis, tile.times(lines as i64));
            }
        }
        n.bind_axis(self.k, Index::default());
        let factor = |n: &Nest<'s>, side: usize| self.factor(n, side, &sources[side], bufs[side], &tiles[side]);
        let (a, b) = (factor(&n, 0)?, factor(&n, 1)?);
        let all = u64::from(levels(self.depth().div_ceil(self.leaf)));
        let mut block = Block {
            rows: rows as u32,
            cols: cols as u32,
            warps: self.warps,
            depth: self.depth(),
            leaf: self.leaf,
            chunk: self.chunk,
            stages: self.stages,
            a,
            b,
            c: 0,
            waiting: None,
        };
        block.c = n.scratch("c", DType::F32, block.c_elems());
        block.waiting = (all > 0).then(|| n.scratch("waiting", DType::F32, all * rows * cols));
        let c = block.c;
        n.push(Op::Block(block));
        self.epilogue(&mut n, c, &tiles)?;
        Ok(n.finish(scalars))
    }

    fn factor(&self, n: &Nest<'s>, side: usize, source: &Source, buf: u32, tile: &Index) -> Result<Factor, LowerError> {
        let lines = self.lines[side] as i64;
        let count = Index::constant(self.extent(side) as i64).minus(&tile.times(lines));
        let count = vec![count, Index::constant(lines)];
        Ok(match source {
            Source::Operand { at, .. } => {
                let (line, step) = self.strides(at, side).ok_or(LowerError("a factor that lies unevenly".into()))?;
                Factor { buf, at: n.resolve(at), line, step, count }
            }
            Source::Temp(_) => {
                let depth = self.depth() as i64;
                let mut at = tile.times(lines * depth);
                let mut stride = self.extent(side) as i64 * depth;
                for axis in self.batch_of(side).into_iter().rev() {
                    at = at.plus(&n.axis_index(axis).times(stride));
                    stride *= self.s.extent(axis) as i64;
                }
                Factor { buf, at, line: depth, step: 1, count }
            }
        })
    }

    /// Declares what the results read and write.
    fn declare(&self, n: &mut Nest<'s>) {
        let mut todo: Vec<ValueId> = self.s.stores.iter().map(|st| st.value).collect();
        todo.extend(self.s.stores.iter().flat_map(|st| &st.by).map(|(v, _)| *v));
        let mut used = vec![];
        while let Some(v) = todo.pop() {
            if let ValueOp::Load { operand, .. } | ValueOp::Gather { operand, .. } = &self.s.value(v).op {
                used.push(*operand);
            }
            if v != self.dot {
                todo.extend(self.s.args(v));
            }
        }
        used.extend(self.s.stores.iter().map(|st| st.operand));
        used.sort();
        used.dedup();
        used.into_iter().for_each(|operand| {
            n.tensor(operand);
        });
    }

    /// What follows the product, row by row.
    fn epilogue(&self, n: &mut Nest<'s>, c: u32, tiles: &[Index; 2]) -> Result<(), LowerError> {
        let [rows, cols] = self.lines.map(|n| n as i64);
        let row = n.var(self.extent(0) as i64 - 1);
        let first = tiles[0].times(rows);
        let hi = vec![first.offset(rows), Index::constant(self.extent(0) as i64)];
        n.dealt_loop(row, vec![first.clone()], hi, |n| {
            if let Some(m) = self.sides[0] {
                n.bind_axis(m, Index::var(row));
            }
            let from = Index::var(row).minus(&first).times(cols);
            let Some(axis) = self.sides[1] else { return self.vector(n, c, from, 1) };
            if cols < i64::from(LANES) {
                return self.narrow(n, c, &from, axis, &tiles[1]);
            }
            for part in parts(self.extent(1), Some((&tiles[1], cols as u64)), LANES) {
                let j = n.var(self.extent(1).div_ceil(u64::from(LANES)) as i64 - 1);
                let wide = i64::from(LANES);
                n.plain_loop(j, part.lo, part.hi, |n| {
                    n.valid = part.size;
                    let column = Index::var(j).times(wide);
                    n.bind_axis(axis, column.plus(&Index::var(LANE)));
                    let at = from.plus(&column.minus(&tiles[1].times(cols))).plus(&Index::var(LANE));
                    self.vector(n, c, at, LANES)?;
                    n.valid = LANES;
                    Ok(())
                })?;
            }
            Ok(())
        })
    }

    /// The columns of a block that has fewer than a warp has threads.
    fn narrow(&self, n: &mut Nest<'s>, c: u32, from: &Index, axis: Var, tile: &Index) -> Result<(), LowerError> {
        let (cols, all) = (self.lines[1] as i64, self.extent(1) as i64);
        for (lo, hi, size) in [(0, all / cols, cols), (all / cols, (all + cols - 1) / cols, all % cols)] {
            if lo == hi {
                continue;
            }
            let only = n.var((all + cols - 1) / cols - 1);
            let bounds = (vec![tile.clone(), Index::constant(lo)], vec![tile.offset(1), Index::constant(hi)]);
            n.plain_loop(only, bounds.0, bounds.1, |n| {
                n.valid = size as u32;
                n.bind_axis(axis, Index::var(only).times(cols).plus(&Index::var(LANE)));
                self.vector(n, c, from.plus(&Index::var(LANE)), LANES)?;
                n.valid = LANES;
                Ok(())
            })?;
        }
        Ok(())
    }

    /// All results of sums that lie here.
    fn vector(&self, n: &mut Nest<'s>, c: u32, at: Index, lanes: u32) -> Result<(), LowerError> {
        let valid = if lanes > 1 { n.valid } else { 1 };
        let sum = n.define(Def::Load(Access { buf: c, at, valid, guards: vec![] }), Kind::F32, lanes);
        n.bind(self.dot, sum);
        // All values first: the memory of a result may be that of an operand.
        let values = self.s.stores.iter().map(|st| n.eval(st.value)).collect::<Result<Vec<_>, _>>()?;
        self.s.stores.iter().zip(values).try_for_each(|(st, value)| n.store_result(st, value, false))
    }
}
