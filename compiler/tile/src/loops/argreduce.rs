//! Positions of extremes.
//!
//! Each lane keeps its best value and the round in which it met it; the lanes (and the blocks,
//! where the axis is divided) are merged by value, then by position. The answer does not depend
//! on the order, so blocks and lanes are free.

use super::Plan;
use crate::nest::{Nest, identity};
use crate::{LowerError, Lowered, Step};
use tessera_base::DType;
use tessera_ir::index::{Index, Var};
use tessera_ir::schedule::{Guard, Schedule, ValueId, ValueOp};
use tessera_ir::tile::{Access, Def, LANE, Val};
use tessera_ops::map::{MapOp, kind_of};
use tessera_ops::prim::{LANES, Reduction, Scalar};
use tessera_ops::scalar::Kind;

/// Elements of a block, where few rows are divided.
const BLOCK: u64 = 1 << 16;

/// The search of a schedule.
#[derive(Clone, Copy)]
struct Search {
    value: ValueId,
    largest: bool,
    arg: ValueId,
    axis: Var,
    extent: u64,
    kind: Kind,
}

/// A best value and its position or round.
type Best = [Val; 2];

pub fn lower(s: &Schedule) -> Result<Lowered, LowerError> {
    let one = |i: usize, op: &ValueOp| match *op {
        ValueOp::ArgReduce { largest, arg, axis } => {
            let kind = kind_of(s.value(arg).dtype)?;
            Some(Search { value: ValueId(i as u32), largest, arg, axis, extent: s.extent(axis), kind })
        }
        _ => None,
    };
    let mut searches = s.values.iter().enumerate().filter_map(|(i, v)| one(i, &v.op));
    let (Some(f), None) = (searches.next(), searches.next()) else {
        return Err(LowerError("not one search".into()));
    };
    if s.values.iter().any(|v| matches!(v.op, ValueOp::Reduce { .. })) {
        return Err(LowerError("a search beside a reduction".into()));
    }
    let kept = s.domains().swap_remove(f.value.0 as usize);
    let mut p = Plan::new(s, &|v| kept.contains(v));
    if !p.inner.is_empty() {
        return Err(LowerError("a position that is read over other axes".into()));
    }
    p.columns = p.vector.is_some_and(|v| p.outer.contains(&v));
    if p.split && !p.columns && f.extent > BLOCK {
        return p.search_blocks(&f);
    }
    let mut n = Nest::new(s, s.name.clone(), p.lanes);
    n.declare(&p.roots(), true);
    if p.columns {
        p.search_across(&mut n, &f)?
    } else {
        p.search_along(&mut n, &f)?
    }
    n.kernel.grain = p.grain;
    Ok(Lowered { steps: vec![n.finish(p.scalars())], temps: vec![] })
}

/// The type whose values have the kind: what functions of the kind are called with.
fn dtype_of(kind: Kind) -> DType {
    match kind {
        Kind::F32 => DType::F32,
        Kind::F64 => DType::F64,
        Kind::I64 => DType::I64,
        Kind::I32 => DType::I32,
        Kind::I16 => DType::I16,
        Kind::I8 => DType::I8,
        Kind::U8 => DType::U8,
        Kind::Bool => DType::Bool,
    }
}

impl Search {
    /// The kind that rounds are counted in: narrow ones leave room for lanes.
    fn counter(&self, rounds: u64) -> DType {
        if rounds < i32::MAX as u64 && !matches!(self.kind, Kind::F64 | Kind::I64) { DType::I32 } else { DType::I64 }
    }

    fn map(&self, n: &mut Nest, op: MapOp, kind: Kind, args: &[Val]) -> Val {
        let lanes = args.iter().map(|a| n.kernel.ty(*a).lanes).max().unwrap_or(1);
        let out = op.result_kind(kind);
        n.define(Def::Map { op, dtype: dtype_of(kind), args: args.to_vec() }, out, lanes)
    }

    /// Whether `x` goes before `y` whatever their positions.
    fn better(&self, n: &mut Nest, x: Val, y: Val) -> Val {
        if !self.kind.is_float() {
            return self.map(n, if self.largest { MapOp::gt } else { MapOp::lt }, self.kind, &[x, y]);
        }
        // Not `x <= y` holds for a NaN too, which then must meet a number.
        let not_better = self.map(n, if self.largest { MapOp::le } else { MapOp::ge }, self.kind, &[x, y]);
        let better = self.map(n, MapOp::logical_not, Kind::Bool, &[not_better]);
        let number = self.map(n, MapOp::eq, self.kind, &[y, y]);
        self.map(n, MapOp::logical_and, Kind::Bool, &[better, number])
    }

    fn choose(&self, n: &mut Nest, c: Val, new: Best, old: Best) -> Best {
        let counts = n.kernel.ty(old[1]).kind;
        [
            self.map(n, MapOp::r#where, self.kind, &[c, new[0], old[0]]),
            self.map(n, MapOp::r#where, counts, &[c, new[1], old[1]]),
        ]
    }

    /// The better of two, the earlier one of equals.
    fn merge(&self, n: &mut Nest, new: Best, old: Best) -> Best {
        let (ahead, behind) = (self.better(n, new[0], old[0]), self.better(n, old[0], new[0]));
        let earlier = self.map(n, MapOp::lt, Kind::I64, &[new[1], old[1]]);
        let not_behind = self.map(n, MapOp::logical_not, Kind::Bool, &[behind]);
        let tie = self.map(n, MapOp::logical_and, Kind::Bool, &[not_behind, earlier]);
        let c = self.map(n, MapOp::logical_or, Kind::Bool, &[ahead, tie]);
        self.choose(n, c, new, old)
    }

    /// The value that every other one is better than or equal to.
    fn worst(&self) -> Scalar {
        identity(if self.largest { Reduction::Max } else { Reduction::Min }, self.kind)
    }

    fn start(&self, n: &mut Nest, counter: DType, lanes: u32) -> Best {
        let kind = kind_of(counter).unwrap_or(Kind::I64);
        [n.define(Def::Const(self.worst()), self.kind, lanes), n.define(Def::Const(Scalar::I(0)), kind, lanes)]
    }

    /// A loop variable as a counter.
    fn round(&self, n: &mut Nest, var: Var, counter: DType) -> Val {
        let v = n.define(Def::Index(Index::var(var)), Kind::I64, 1);
        convert(n, v, DType::I64, counter)
    }

    fn buffer(&self) -> DType {
        dtype_of(self.kind)
    }
}

fn convert(n: &mut Nest, v: Val, from: DType, to: DType) -> Val {
    if from == to {
        return v;
    }
    let lanes = n.kernel.ty(v).lanes;
    n.define(Def::Cast { from, to, arg: v }, kind_of(to).unwrap_or(Kind::I64), lanes)
}

/// A scalar in every lane.
fn spread(n: &mut Nest, v: Val, dtype: DType, lanes: u32) -> Val {
    n.define(Def::Cast { from: dtype, to: dtype, arg: v }, kind_of(dtype).unwrap_or(Kind::I64), lanes)
}

fn load(n: &mut Nest, buf: u32, at: Index, kind: Kind, lanes: u32) -> Val {
    n.define(Def::Load(Access { buf, at, valid: lanes, guards: vec![] }), kind, lanes)
}

impl<'s> Plan<'s> {
    fn scalars(&self) -> Vec<u32> {
        (0..self.s.scalars.len() as u32).collect()
    }

    fn search_along(&self, n: &mut Nest<'s>, f: &Search) -> Result<(), LowerError> {
        let chunks = f.extent.div_ceil(LANES as u64);
        let bufs = self.lane_buffers(n, f, chunks);
        self.outer_loops(n, &self.outer, &[], &mut |p, n, _, _| {
            let [_, at] = p.search_row(n, f, bufs, &Index::default(), chunks)?;
            n.bind(f.value, at);
            p.stores(n)
        })
    }

    fn lane_buffers(&self, n: &mut Nest, f: &Search, chunks: u64) -> [u32; 2] {
        let lanes = LANES as u64;
        [n.scratch("best", f.buffer(), lanes), n.scratch("rounds", f.counter(chunks), lanes)]
    }

    /// The best of the chunks from `first` on, `count` at most, at the present places.
    fn search_row(
        &self,
        n: &mut Nest<'s>,
        f: &Search,
        bufs: [u32; 2],
        first: &Index,
        count: u64,
    ) -> Result<Best, LowerError> {
        let (lanes, whole, all) =
            (LANES as u32, (f.extent / LANES as u64) as i64, f.extent.div_ceil(LANES as u64) as i64);
        let counter = f.counter(all as u64);
        // A lane that stays at the worst value has met it first in the first round.
        let worst = n.define(Def::Const(f.worst()), f.kind, lanes);
        let from = n.define(Def::Index(first.clone()), Kind::I64, 1);
        let from = convert(n, from, DType::I64, counter);
        let mut best: Best = [worst, spread(n, from, counter, lanes)];
        let before = (n.lanes, n.valid);
        let end = first.offset(count as i64);
        for (lo, hi, valid) in [(0, whole, lanes), (whole, all, (f.extent % LANES as u64) as u32)] {
            if lo == hi {
                continue;
            }
            let var = n.var(all - 1);
            let bounds = (vec![first.clone(), Index::constant(lo)], vec![end.clone(), Index::constant(hi)]);
            let next = n.carry_loop(var, bounds.0, bounds.1, &best, |n, best| {
                (n.lanes, n.valid) = (lanes, valid);
                let place = Index::var(var).times(LANES as i64).plus(&Index::var(LANE));
                let old = n.bind_axis(f.axis, place.clone());
                let value = n.eval(f.arg)?;
                let mut better = f.better(n, value, best[0]);
                if valid < lanes {
                    let inside = Guard { index: place, lo: 0, hi: f.extent as i64 };
                    let inside = n.define(Def::Within(vec![inside]), Kind::Bool, lanes);
                    better = f.map(n, MapOp::logical_and, Kind::Bool, &[better, inside]);
                }
                let round = f.round(n, var, counter);
                let next = f.choose(n, better, [value, round], [best[0], best[1]]);
                n.bind_axis(f.axis, old);
                Ok(next.to_vec())
            })?;
            best = [next[0], next[1]];
            (n.lanes, n.valid) = before;
        }
        self.merge_lanes(n, f, bufs, counter, best)
    }

    /// The best lane, with its position along the axis.
    fn merge_lanes(
        &self,
        n: &mut Nest<'s>,
        f: &Search,
        bufs: [u32; 2],
        counter: DType,
        best: Best,
    ) -> Result<Best, LowerError> {
        let before = (n.lanes, n.valid);
        (n.lanes, n.valid) = (LANES as u32, LANES as u32);
        bufs.iter().zip(best).for_each(|(buf, v)| n.store(*buf, Index::var(LANE), v, false));
        (n.lanes, n.valid) = before;
        let counts = kind_of(counter).unwrap_or(Kind::I64);
        let lane = |n: &mut Nest<'s>, at: &Index| -> Best {
            let value = load(n, bufs[0], at.clone(), f.kind, 1);
            let round = load(n, bufs[1], at.clone(), counts, 1);
            let round = convert(n, round, counter, DType::I64);
            let lanes = n.define(Def::Const(Scalar::I(LANES as i64)), Kind::I64, 1);
            let start = f.map(n, MapOp::mul, Kind::I64, &[round, lanes]);
            let l = n.define(Def::Index(at.clone()), Kind::I64, 1);
            [value, f.map(n, MapOp::add, Kind::I64, &[start, l])]
        };
        let init = lane(n, &Index::default());
        let var = n.var(LANES as i64 - 1);
        let merged =
            n.carry_loop(var, vec![Index::constant(1)], vec![Index::constant(LANES as i64)], &init, |n, best| {
                let new = lane(n, &Index::var(var));
                Ok(f.merge(n, new, [best[0], best[1]]).to_vec())
            })?;
        Ok([merged[0], merged[1]])
    }

    /// A kernel that searches blocks into temporaries, and one that merges them.
    fn search_blocks(&self, f: &Search) -> Result<Lowered, LowerError> {
        let (blocks, per) = (f.extent.div_ceil(BLOCK), BLOCK / LANES as u64);
        let rows: u64 = self.outer.iter().map(|v| self.s.extent(*v)).product();
        let elems = rows * blocks;
        let mut first = Nest::new(self.s, format!("{}_blocks", self.s.name), self.lanes);
        first.declare(&[f.arg], false);
        let temps = [first.temp(0, f.buffer(), elems), first.temp(1, DType::I64, elems)];
        let bufs = self.lane_buffers(&mut first, f, f.extent.div_ceil(LANES as u64));
        self.outer_loops(&mut first, &self.outer, &[blocks], &mut |p, n, row, block| {
            let best = p.search_row(n, f, bufs, &block[0].times(per as i64), per)?;
            let at = row.times(blocks as i64).plus(&block[0]);
            temps.iter().zip(best).for_each(|(buf, v)| n.store(*buf, at.clone(), v, false));
            Ok(())
        })?;
        let mut second = Nest::new(self.s, format!("{}_merge", self.s.name), self.lanes);
        second.declare(&self.roots(), true);
        let temps = [second.temp(0, f.buffer(), elems), second.temp(1, DType::I64, elems)];
        self.outer_loops(&mut second, &self.outer, &[], &mut |p, n, row, _| {
            let block = |n: &mut Nest<'s>, at: &Index| -> Best {
                let at = row.times(blocks as i64).plus(at);
                [load(n, temps[0], at.clone(), f.kind, 1), load(n, temps[1], at, Kind::I64, 1)]
            };
            let init = block(n, &Index::default());
            let var = n.var(blocks as i64 - 1);
            let (lo, hi) = (vec![Index::constant(1)], vec![Index::constant(blocks as i64)]);
            let merged = n.carry_loop(var, lo, hi, &init, |n, best| {
                let new = block(n, &Index::var(var));
                Ok(f.merge(n, new, [best[0], best[1]]).to_vec())
            })?;
            n.bind(f.value, merged[1]);
            p.stores(n)
        })?;
        second.kernel.grain = 64;
        let bytes = vec![elems * f.buffer().bytes() as u64, elems * 8];
        let steps: Vec<Step> = vec![first.finish(self.scalars()), second.finish(self.scalars())];
        Ok(Lowered { steps, temps: bytes })
    }

    /// Each lane is a column; the columns of a grid point are walked row by row.
    fn search_across(&self, n: &mut Nest<'s>, f: &Search) -> Result<(), LowerError> {
        let size = self.column_block(self.columns_axis()?);
        let counter = f.counter(f.extent);
        let counts = kind_of(counter).unwrap_or(Kind::I64);
        let (best, rounds) = (n.scratch("best", f.buffer(), size), n.scratch("rounds", counter, size));
        self.blocks(n, &[], &mut |n, columns, _, _| {
            self.walk(n, columns.axis, &columns.span, &mut |n, chunk| {
                let start = f.start(n, counter, self.lanes);
                self.store_all(n, best, self.column(columns, chunk), start[0]);
                self.store_all(n, rounds, self.column(columns, chunk), start[1]);
                Ok(())
            })?;
            let var = n.var(f.extent as i64 - 1);
            n.plain_loop(var, vec![Index::default()], vec![Index::constant(f.extent as i64)], |n| {
                let old = n.bind_axis(f.axis, Index::var(var));
                self.walk(n, columns.axis, &columns.span, &mut |n, chunk| {
                    let at = self.column(columns, chunk);
                    let value = n.eval(f.arg)?;
                    let kept = [
                        load(n, best, at.clone(), f.kind, self.lanes),
                        load(n, rounds, at.clone(), counts, self.lanes),
                    ];
                    let better = f.better(n, value, kept[0]);
                    let round = f.round(n, var, counter);
                    let next = f.choose(n, better, [value, round], kept);
                    self.store_all(n, best, at.clone(), next[0]);
                    self.store_all(n, rounds, at, next[1]);
                    Ok(())
                })?;
                n.bind_axis(f.axis, old);
                Ok(())
            })?;
            self.walk(n, columns.axis, &columns.span, &mut |n, chunk| {
                let round = load(n, rounds, self.column(columns, chunk), counts, self.lanes);
                let at = convert(n, round, counter, DType::I64);
                n.bind(f.value, at);
                self.stores(n)
            })
        })
    }
}
