//! Fourier transforms: the stages of [`tessera_ops::fft`] as loops around butterflies.
//!
//! The lanes of a vector are different lines, so that a butterfly is the scalar one in every lane. Between stages points
//! lie in scratch, a vector for each part of each point. What the lines are made of is computed where the first stage
//! reads it, what becomes of the results where the last one gives them. Numbers that lie along their line, as rows do, are
//! turned over in squares on their way into scratch and out of it ([`turn`]).

mod ends;
mod stages;
mod turn;

use super::Plan;
use crate::nest::Nest;
use crate::{LowerError, Lowered};
use std::collections::BTreeSet;
use tessera_base::DType;
use tessera_ir::index::{Index, Var};
use tessera_ir::schedule::{Schedule, Value, ValueId, ValueOp};
use tessera_ir::tile::{Access, Def, LANE, Val};
use tessera_ops::fft::codelet::{Arith, Pair};
use tessera_ops::fft::{self, Stage};
use tessera_ops::map::MapOp;
use tessera_ops::prim::FftKind;
use tessera_ops::scalar::Kind;
use turn::{Leaving, Turned};

/// Lanes of the largest square that is turned over.
const SQUARE_MAX: u32 = 16;

/// Where a pass reads or writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    /// The values of the schedule.
    Values,
    Scratch(u32),
}

/// The transform of a schedule, and how its lines go through memory.
struct Lines<'s> {
    s: &'s Schedule,
    kind: FftKind,
    plan: fft::Plan,
    args: Vec<ValueId>,
    /// The values that are its real and its imaginary part, where they are needed.
    parts: [Option<ValueId>; 2],
    axis: Var,
    to: Var,
    /// Elements of a line before and after.
    given: u64,
    wanted: u64,
    table: u32,
    vector: Option<Var>,
    lanes: u32,
    /// Loads of the arguments that are turned over on their way in.
    turned_in: Vec<Turned>,
    /// How results leave where they are turned over, with the loads that are turned over to meet them.
    leaving: Option<Leaving>,
    first: Place,
    joined: Option<u32>,
    /// Where each stage writes.
    route: Vec<Place>,
}

pub fn lower(s: &Schedule) -> Result<Lowered, LowerError> {
    let alone =
        |v: &Value| !matches!(v.op, ValueOp::Reduce { .. } | ValueOp::ArgReduce { .. } | ValueOp::Cumulate { .. });
    if !s.values.iter().all(alone) {
        return Err(LowerError("a transform beside a reduction".into()));
    }
    if s.stores.iter().any(|st| !st.by.is_empty()) {
        return Err(LowerError("results of a transform that data puts in their places".into()));
    }
    let mut lines = Lines::of(s)?;
    let to = lines.to;
    let mut p = Plan::new(s, &|v| *v != to);
    p.inner.clear();
    if p.vector.is_none_or(|v| !p.outer.contains(&v)) {
        (p.vector, p.lanes) = (None, 1);
    }
    (lines.vector, lines.lanes) = (p.vector, p.lanes);
    let mut n = Nest::new(s, s.name.clone(), p.lanes);
    n.declare(&p.roots(), true);
    lines.table = n.tensor(lines.table);
    n.kernel.grain = p.grain;
    lines.find_turned();
    lines.find_route(&mut n);
    let outer = p.outer.clone();
    p.outer_loops(&mut n, &outer, &[], &mut |_, n, _, _| lines.write(n))?;
    Ok(Lowered { steps: vec![n.finish((0..s.scalars.len() as u32).collect())], temps: vec![] })
}

impl<'s> Lines<'s> {
    fn of(s: &'s Schedule) -> Result<Lines<'s>, LowerError> {
        let mut parts = [None; 2];
        let mut found: Option<ValueOp> = None;
        for (i, v) in s.values.iter().enumerate() {
            let ValueOp::Transform { imag, .. } = &v.op else { continue };
            let mut op = v.op.clone();
            if let ValueOp::Transform { imag, .. } = &mut op {
                *imag = false;
            }
            if found.as_ref().is_some_and(|f| *f != op) {
                return Err(LowerError("two transforms in one kernel".into()));
            }
            parts[usize::from(*imag)] = Some(ValueId(i as u32));
            found = Some(op);
        }
        let Some(ValueOp::Transform { kind, points, args, axis, to, table, .. }) = found else {
            return Err(LowerError("no transform".into()));
        };
        let plan = fft::plan(kind, points).ok_or_else(|| LowerError("a transform without a plan".into()))?;
        let (given, wanted) = (s.extent(axis), s.extent(to));
        Ok(Lines {
            s,
            kind,
            plan,
            args,
            parts,
            axis,
            to,
            given,
            wanted,
            table,
            vector: None,
            lanes: 1,
            turned_in: vec![],
            leaving: None,
            first: Place::Values,
            joined: None,
            route: vec![],
        })
    }

    /// The scratch buffers, and which of them each pass goes through.
    fn find_route(&mut self, n: &mut Nest<'s>) {
        let points = self.plan.n as u64;
        let lanes = u64::from(self.lanes);
        let scratch = |n: &mut Nest<'s>, name: &str, floats: u64| n.scratch(name, DType::F32, floats * lanes);
        let mut spare = vec![];
        if !self.turned_in.is_empty() || self.kind == FftKind::RealInverse && !self.are_loads() {
            let floats = self.given * self.args.len() as u64;
            let rows = scratch(n, "rows", floats.next_multiple_of(2));
            self.first = Place::Scratch(rows);
            spare.extend((floats >= 2 * points).then_some(rows));
        }
        // A buffer is free when what was made of it is complete.
        let mut busy = vec![];
        if self.kind == FftKind::RealInverse {
            let joined = scratch(n, "joined", 2 * points);
            self.joined = Some(joined);
            busy.push(joined);
        } else {
            busy.append(&mut spare);
        }
        let stages = self.plan.stages.len();
        let direct = self.leaving.is_none() && self.kind != FftKind::RealForward;
        for i in 0..stages {
            if i + 1 == stages && direct {
                self.route.push(Place::Values);
                continue;
            }
            let next = spare.pop().unwrap_or_else(|| scratch(n, &format!("points{i}"), 2 * points));
            spare.append(&mut busy);
            busy.push(next);
            self.route.push(Place::Scratch(next));
        }
    }

    /// Whether reading an argument twice costs no more than a load.
    fn are_loads(&self) -> bool {
        let cheap = |v: &ValueId| matches!(self.s.value(*v).op, ValueOp::Load { .. } | ValueOp::Const(_));
        self.args.iter().all(cheap)
    }

    /// All passes of the lines at the present places: what brings the points to scratch, the stages, what takes the
    /// results out.
    fn write(&self, n: &mut Nest<'s>) -> Result<(), LowerError> {
        let mut from = self.first;
        if let Place::Scratch(rows) = from {
            self.fill(n, rows)?;
        }
        if let Some(joined) = self.joined {
            self.join(n, from, joined)?;
            from = Place::Scratch(joined);
        }
        for (i, (s, &to)) in self.plan.stages.iter().zip(&self.route).enumerate() {
            self.stage(n, s, from, to, [i == 0, i + 1 == self.route.len()])?;
            from = to;
        }
        match (from, &self.leaving) {
            (Place::Values, _) => Ok(()),
            (Place::Scratch(results), Some(leaving)) => self.squares_out(n, results, leaving),
            (Place::Scratch(results), None) => self.columns_out(n, results),
        }
    }

    // --- points

    fn lane(&self) -> Index {
        if self.lanes > 1 { Index::var(LANE) } else { Index::default() }
    }

    /// The value in every lane.
    fn wide(&self, n: &mut Nest<'s>, v: Val) -> Val {
        let ty = n.kernel.ty(v);
        if ty.lanes == self.lanes {
            return v;
        }
        n.define(Def::Cast { from: DType::F32, to: DType::F32, arg: v }, ty.kind, self.lanes)
    }

    /// Float `at` of a line in scratch.
    fn load_scratch(&self, n: &mut Nest<'s>, buf: u32, at: &Index) -> Val {
        let at = at.times(i64::from(self.lanes)).plus(&self.lane());
        n.define(Def::Load(Access { buf, at, valid: self.lanes, guards: vec![] }), Kind::F32, self.lanes)
    }

    fn store_scratch(&self, n: &mut Nest<'s>, buf: u32, at: &Index, v: Val) {
        let (v, valid) = (self.wide(n, v), n.valid);
        n.valid = n.lanes;
        n.store(buf, at.times(i64::from(self.lanes)).plus(&self.lane()), v, false);
        n.valid = valid;
    }

    /// The arguments at element `j` of the line.
    fn arguments(&self, n: &mut Nest<'s>, j: Index) -> Result<Vec<Val>, LowerError> {
        let old = n.bind_axis(self.axis, j);
        let values = self.args.iter().map(|a| n.eval(*a)).collect();
        n.bind_axis(self.axis, old);
        values
    }

    /// Point `j` of what the first stage reads; neighbouring reals are the parts of a point.
    fn load_point(&self, n: &mut Nest<'s>, from: Place, j: &Index) -> Result<Pair<Val>, LowerError> {
        match from {
            Place::Scratch(buf) => Ok([0, 1].map(|part| self.load_scratch(n, buf, &j.times(2).offset(part)))),
            Place::Values if self.kind == FftKind::RealForward => {
                let [re, im] = [0, 1].map(|part| self.arguments(n, j.times(2).offset(part)));
                Ok([re?[0], im?[0]])
            }
            Place::Values => self.arguments(n, j.clone()).map(|parts| [parts[0], parts[1]]),
        }
    }

    fn store_point(&self, n: &mut Nest<'s>, buf: u32, j: &Index, z: Pair<Val>) {
        for (part, v) in z.into_iter().enumerate() {
            self.store_scratch(n, buf, &j.times(2).offset(part as i64), v);
        }
    }

    /// States the results at position `k` of the line: those behind what is stored.
    fn bind_results(&self, n: &mut Nest<'s>, z: &[Val]) {
        for (v, value) in self.parts.iter().zip(z) {
            if let Some(v) = v {
                let value = self.wide(n, *value);
                n.bind(*v, value);
            }
        }
    }

    /// Stores what becomes of result `k`.
    fn store_results(&self, n: &mut Nest<'s>, k: Index, z: &[Val]) -> Result<(), LowerError> {
        let old = n.bind_axis(self.to, k);
        self.bind_results(n, z);
        // All values first: the memory of a result may be that of an operand.
        let values = self.s.stores.iter().map(|st| n.eval(st.value)).collect::<Result<Vec<_>, _>>()?;
        self.s.stores.iter().zip(values).try_for_each(|(st, value)| n.store_result(st, value, false))?;
        n.bind_axis(self.to, old);
        Ok(())
    }

    /// Stores point `k` of a complex line: an element, or two neighbouring reals.
    fn give(&self, n: &mut Nest<'s>, k: &Index, z: Pair<Val>) -> Result<(), LowerError> {
        if self.kind != FftKind::RealInverse {
            return self.store_results(n, k.clone(), &z);
        }
        self.store_results(n, k.times(2), &z[..1])?;
        self.store_results(n, k.times(2).offset(1), &z[1..])
    }

    /// A factor of the table, the same in all lanes.
    fn factor(&self, n: &mut Nest<'s>, at: Index) -> Pair<Val> {
        [0, 1].map(|part| {
            let access = Access { buf: self.table, at: at.offset(part), valid: 1, guards: vec![] };
            n.define(Def::Load(access), Kind::F32, 1)
        })
    }

    /// Values behind `roots`, the transform and what is before it left out.
    fn behind(&self, roots: impl Iterator<Item = ValueId>) -> BTreeSet<ValueId> {
        let mut out = BTreeSet::new();
        let mut todo: Vec<ValueId> = roots.collect();
        while let Some(v) = todo.pop() {
            if !matches!(self.s.value(v).op, ValueOp::Transform { .. }) && out.insert(v) {
                todo.extend(self.s.args(v));
            }
        }
        out
    }
}

impl Arith for Nest<'_> {
    type V = Val;

    fn constant(&mut self, x: f32) -> Val {
        Nest::constant(self, x)
    }

    fn neg(&mut self, a: Val) -> Val {
        map(self, MapOp::neg, &[a])
    }

    fn add(&mut self, a: Val, b: Val) -> Val {
        map(self, MapOp::add, &[a, b])
    }

    fn sub(&mut self, a: Val, b: Val) -> Val {
        map(self, MapOp::sub, &[a, b])
    }

    fn mul(&mut self, a: Val, b: Val) -> Val {
        map(self, MapOp::mul, &[a, b])
    }

    fn fma(&mut self, a: Val, b: Val, c: Val) -> Val {
        map(self, MapOp::fma, &[a, b, c])
    }
}

fn map(n: &mut Nest, op: MapOp, args: &[Val]) -> Val {
    let lanes = args.iter().map(|a| n.kernel.ty(*a).lanes).max().unwrap_or(1);
    n.define(Def::Map { op, dtype: DType::F32, args: args.to_vec() }, Kind::F32, lanes)
}
