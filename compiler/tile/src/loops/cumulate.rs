//! Running sums and products: chains in ascending order along one axis, several side by side.
//!
//! Lanes are columns where these are contiguous. Otherwise they are rows, whose elements come
//! as squares that are turned over in registers, so that one addition serves all rows; rows
//! that fill no vector go one by one.

use super::across::Columns;
use super::{Plan, Span};
use crate::nest::Nest;
use crate::{LowerError, Lowered, Step};
use tessera_base::DType;
use tessera_ir::index::{Index, Var};
use tessera_ir::schedule::{Schedule, ValueId, ValueOp};
use tessera_ir::tile::{Access, Def, LANE, Val};
use tessera_ops::map::kind_of;
use tessera_ops::prim::{Reduction, Scalar};
use tessera_ops::scalar::Kind;

/// Steps of a column that are read together.
const STEPS: u64 = 8;

/// The chain of a schedule.
#[derive(Clone, Copy)]
struct Chain {
    value: ValueId,
    kind: Reduction,
    start: Scalar,
    arg: ValueId,
    axis: Var,
    extent: u64,
    accum: DType,
    of: Kind,
}

pub fn lower(s: &Schedule) -> Result<Lowered, LowerError> {
    let one = |i: usize, v: &tessera_ir::schedule::Value| match v.op {
        ValueOp::Cumulate { kind, start, arg, axis } => Some(Chain {
            value: ValueId(i as u32),
            kind,
            start,
            arg,
            axis,
            extent: s.extent(axis),
            accum: v.dtype,
            of: kind_of(v.dtype)?,
        }),
        _ => None,
    };
    let mut chains = s.values.iter().enumerate().filter_map(|(i, v)| one(i, v));
    let (Some(c), None) = (chains.next(), chains.next()) else {
        return Err(LowerError("not one running sum".into()));
    };
    if s.values.iter().any(|v| matches!(v.op, ValueOp::Reduce { .. })) {
        return Err(LowerError("a running sum beside a reduction".into()));
    }
    let mut p = Plan::new(s, &|v| *v != c.axis);
    // The chain walks its axis itself.
    p.inner.clear();
    let contiguous = |v: Var| s.stores.iter().any(|st| st.at.stride(v) == Some(1));
    let steps = match p.vector.filter(|v| p.outer.contains(v) && s.extent(*v) > 0) {
        Some(v) if contiguous(v) => {
            p.columns = true;
            vec![p.chain_columns(&c)?]
        }
        // Along an axis of one element there are no squares to turn over.
        Some(v) if p.lanes.is_power_of_two() && p.lanes <= 16 && c.extent > 1 => p.chain_rows(&c, v)?,
        _ => vec![p.chain_single(&c, None)?],
    };
    Ok(Lowered { steps, temps: vec![] })
}

impl Chain {
    fn step(&self, n: &mut Nest, acc: Val, value: Val, lanes: u32) -> Val {
        n.define(Def::Fold { kind: self.kind, acc, value, valid: lanes }, self.of, lanes)
    }

    fn start(&self, n: &mut Nest, lanes: u32) -> Val {
        n.define(Def::Const(self.start), self.of, lanes)
    }
}

impl<'s> Plan<'s> {
    fn nest(&self, name: String) -> Nest<'s> {
        let mut n = Nest::new(self.s, name, self.lanes);
        n.declare(&self.roots(), true);
        n.kernel.grain = self.grain;
        n
    }

    fn host_scalars(&self) -> Vec<u32> {
        (0..self.s.scalars.len() as u32).collect()
    }

    /// Lanes are columns; the columns of a grid point are walked row by row.
    fn chain_columns(&self, c: &Chain) -> Result<Step, LowerError> {
        let mut n = self.nest(self.s.name.clone());
        let acc = n.scratch("sums", c.accum, self.column_block(self.columns_axis()?));
        self.blocks(&mut n, &[], &mut |n, columns, _, _| {
            self.walk(n, columns.axis, &columns.span, &mut |n, chunk| {
                let start = c.start(n, self.lanes);
                self.store_all(n, acc, self.column(columns, chunk), start);
                Ok(())
            })?;
            let (whole, extent) = ((c.extent / STEPS) as i64, c.extent as i64);
            if whole > 0 {
                let var = n.var(whole - 1);
                n.plain_loop(var, vec![Index::default()], vec![Index::constant(whole)], |n| {
                    self.chain_steps(n, c, columns, acc, &Index::var(var).times(STEPS as i64), STEPS as i64)
                })?;
            }
            match extent - whole * STEPS as i64 {
                0 => Ok(()),
                rest => self.chain_steps(n, c, columns, acc, &Index::constant(whole * STEPS as i64), rest),
            }
        })?;
        Ok(n.finish(self.host_scalars()))
    }

    /// Some steps of every column. All are read before the first is written: a read behind a
    /// write at the same place of another page waits for it.
    fn chain_steps(
        &self,
        n: &mut Nest<'s>,
        c: &Chain,
        columns: &Columns,
        acc: u32,
        first: &Index,
        count: i64,
    ) -> Result<(), LowerError> {
        self.walk(n, columns.axis, &columns.span, &mut |n, chunk| {
            let old = n.bind_axis(c.axis, first.clone());
            let mut values = vec![];
            for i in 0..count {
                n.bind_axis(c.axis, first.offset(i));
                values.push(n.eval(c.arg)?);
            }
            let at = self.column(columns, chunk);
            let access = Access { buf: acc, at: at.clone(), valid: self.lanes, guards: vec![] };
            let mut sum = n.define(Def::Load(access), c.of, self.lanes);
            for (i, value) in values.into_iter().enumerate() {
                n.bind_axis(c.axis, first.offset(i as i64));
                sum = c.step(n, sum, value, self.lanes);
                n.bind(c.value, sum);
                self.stores(n)?;
            }
            self.store_all(n, acc, at, sum);
            n.bind_axis(c.axis, old);
            Ok(())
        })
    }

    /// Lanes are rows, as many as fill vectors; the others go one by one in a second kernel.
    fn chain_rows(&self, c: &Chain, rows: Var) -> Result<Vec<Step>, LowerError> {
        let count = self.s.extent(rows) / u64::from(self.lanes) * u64::from(self.lanes);
        let mut steps = vec![];
        if count > 0 {
            steps.push(self.chain_squares(c, rows, count)?);
        }
        if count < self.s.extent(rows) {
            steps.push(self.chain_single(c, Some((rows, count)))?);
        }
        Ok(steps)
    }

    fn chain_squares(&self, c: &Chain, rows: Var, count: u64) -> Result<Step, LowerError> {
        let lanes = self.lanes;
        let mut n = self.nest(self.s.name.clone());
        let others: Vec<Var> = self.outer.iter().copied().filter(|v| *v != rows).collect();
        let per = self.tile(rows).map_or(count, |t| t.min(count)) / u64::from(lanes);
        let groups = count / u64::from(lanes);
        self.outer_loops(&mut n, &others, &[groups.div_ceil(per)], &mut |p, n, _, grid| {
            let var = n.var(groups as i64 - 1);
            let lo = grid[0].times(per as i64);
            let hi = vec![lo.offset(per as i64), Index::constant(groups as i64)];
            n.plain_loop(var, vec![lo], hi, |n| {
                let mut acc = c.start(n, lanes);
                let (whole, all) = ((c.extent / u64::from(lanes)) as i64, c.extent.div_ceil(u64::from(lanes)) as i64);
                for (lo, hi, valid) in [(0, whole, lanes), (whole, all, (c.extent % u64::from(lanes)) as u32)] {
                    if lo == hi {
                        continue;
                    }
                    let chunk = n.var(all - 1);
                    let (lo, hi) = (vec![Index::constant(lo)], vec![Index::constant(hi)]);
                    acc = n.carry_loop(chunk, lo, hi, &[acc], |n, acc| {
                        n.valid = valid;
                        let next = p.chain_square(n, c, rows, var, chunk, acc[0]);
                        n.valid = lanes;
                        next.map(|v| vec![v])
                    })?[0];
                }
                Ok(())
            })
        })?;
        Ok(n.finish(self.host_scalars()))
    }

    /// A square of `lanes` rows and columns; returns the sums at its end.
    fn chain_square(
        &self,
        n: &mut Nest<'s>,
        c: &Chain,
        rows: Var,
        group: Var,
        chunk: Var,
        mut acc: Val,
    ) -> Result<Val, LowerError> {
        let lanes = i64::from(self.lanes);
        let along = Index::var(chunk).times(lanes).plus(&Index::var(LANE));
        let old = (n.bind_axis(c.axis, along), n.bind_axis(rows, Index::default()));
        let row = |i: i64| Index::var(group).times(lanes).offset(i);
        let mut square = vec![];
        for i in 0..lanes {
            n.bind_axis(rows, row(i));
            let v = n.eval(c.arg)?;
            // The same for all columns: a scalar, which becomes a vector.
            square.push(if n.kernel.ty(v).lanes == self.lanes {
                v
            } else {
                n.define(Def::Cast { from: c.accum, to: c.accum, arg: v }, c.of, self.lanes)
            });
        }
        let mut columns = n.transpose(square, c.of);
        for v in &mut columns {
            acc = c.step(n, acc, *v, self.lanes);
            *v = acc;
        }
        for (i, v) in n.transpose(columns, c.of).into_iter().enumerate() {
            n.bind_axis(rows, row(i as i64));
            n.bind(c.value, v);
            for st in &self.s.stores {
                let value = n.eval(st.value)?;
                let (buf, at) = (n.tensor(st.operand), n.resolve(&st.at));
                n.store(buf, at, value, false);
            }
        }
        n.bind_axis(c.axis, old.0);
        n.bind_axis(rows, old.1);
        Ok(acc)
    }

    /// Chains one by one; `from` names the axis and its position from which on they are done.
    fn chain_single(&self, c: &Chain, from: Option<(Var, u64)>) -> Result<Step, LowerError> {
        let name = if from.is_some() { format!("{}_rest", self.s.name) } else { self.s.name.clone() };
        let mut n = self.nest(name);
        (n.lanes, n.valid) = (1, 1);
        let others: Vec<Var> = self.outer.iter().copied().filter(|v| from.is_none_or(|(r, _)| r != *v)).collect();
        let single = Plan { vector: None, ..self.clone() };
        single.outer_loops(&mut n, &others, &[], &mut |p, n, _, _| match from {
            None => p.chain_row(n, c),
            Some((rows, lo)) => {
                let extent = p.s.extent(rows);
                let span = Span { lo: vec![Index::constant(lo as i64)], hi: vec![], extent, lanes: 1 };
                p.walk(n, rows, &span, &mut |n, _| p.chain_row(n, c))
            }
        })?;
        Ok(n.finish(self.host_scalars()))
    }

    fn chain_row(&self, n: &mut Nest<'s>, c: &Chain) -> Result<(), LowerError> {
        let start = c.start(n, 1);
        let var = n.var(c.extent as i64 - 1);
        n.carry_loop(var, vec![Index::default()], vec![Index::constant(c.extent as i64)], &[start], |n, acc| {
            let old = n.bind_axis(c.axis, Index::var(var));
            let value = n.eval(c.arg)?;
            let next = c.step(n, acc[0], value, 1);
            n.bind(c.value, next);
            for st in &self.s.stores {
                let value = n.eval(st.value)?;
                let (buf, at) = (n.tensor(st.operand), n.resolve(&st.at));
                n.store(buf, at, value, false);
            }
            n.bind_axis(c.axis, old);
            Ok(vec![next])
        })?;
        Ok(())
    }
}
