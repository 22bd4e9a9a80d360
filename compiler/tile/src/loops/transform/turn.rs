//! Numbers that lie along their lines: squares of as many lines as lanes, turned over.

use super::{Lines, SQUARE_MAX};
use crate::LowerError;
use crate::nest::Nest;
use std::collections::BTreeSet;

use tessera_ir::index::{Index, Var};
use tessera_ir::schedule::{ValueId, ValueOp};
use tessera_ir::tile::{Access, Def, LANE, Val};
use tessera_ops::map::kind_of;
use tessera_ops::prim::FftKind;
use tessera_ops::scalar::Kind;

/// Loads that are turned over together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Turned {
    One(ValueId),
    /// The parts of complex numbers, which lie side by side.
    Pair([ValueId; 2]),
}

/// Stores that are turned over together, by number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Out {
    One(usize),
    Pair([usize; 2]),
}

/// How results leave in rows.
pub struct Leaving {
    stores: Vec<Out>,
    /// Loads that are turned over to meet them.
    loads: Vec<Turned>,
}

impl<'s> Lines<'s> {
    /// Whether memory is read or written along the line rather than along the lanes.
    fn lies_along(&self, at: &Index, line: Var) -> bool {
        let near = |v: Var| matches!(at.stride(v), Some(0..=2));
        self.vector.is_some_and(|v| at.uses(v) && !near(v)) && at.uses(line) && near(line)
    }

    /// Decides what is turned over.
    pub fn find_turned(&mut self) {
        if !self.lanes.is_power_of_two() || !(2..=SQUARE_MAX).contains(&self.lanes) {
            return;
        }
        let before = self.behind(self.args.iter().copied());
        self.turned_in = self.turned(&before, self.axis);
        let stores = &self.s.stores;
        if stores.iter().any(|st| self.lies_along(&st.at, self.to)) {
            let mut out = vec![];
            let mut i = 0;
            while i < stores.len() {
                let pair = stores.get(i + 1).is_some_and(|next| {
                    let same = next.operand == stores[i].operand && next.at == stores[i].at.offset(1);
                    same && stores[i].at.stride(self.to) == Some(2)
                });
                out.push(if pair { Out::Pair([i, i + 1]) } else { Out::One(i) });
                i += if pair { 2 } else { 1 };
            }
            let after = self.behind(stores.iter().map(|st| st.value));
            self.leaving = Some(Leaving { stores: out, loads: self.turned(&after, self.to) });
        }
    }

    /// The loads among some values that lie along the line.
    fn turned(&self, values: &BTreeSet<ValueId>, line: Var) -> Vec<Turned> {
        let mut out = vec![];
        let mut taken = BTreeSet::new();
        for &v in values {
            let ValueOp::Load { operand, at, guards } = &self.s.value(v).op else { continue };
            if !self.lies_along(at, line) || taken.contains(&v) {
                continue;
            }
            let second = ValueOp::Load { operand: *operand, at: at.offset(1), guards: vec![] };
            let other = values.iter().find(|w| self.s.value(**w).op == second && !taken.contains(*w));
            match other.filter(|_| guards.is_empty() && at.stride(line) == Some(2)) {
                Some(&w) => {
                    taken.extend([v, w]);
                    out.push(Turned::Pair([v, w]));
                }
                None => out.push(Turned::One(v)),
            }
        }
        // A second part may have come before its first.
        out.retain(|t| !matches!(t, Turned::One(v) if taken.contains(v)));
        out
    }

    /// Element positions of a square: pairs bring half as many as there are lanes.
    fn width(&self, paired: bool) -> u64 {
        u64::from(if paired { self.lanes / 2 } else { self.lanes })
    }

    /// The lines of this vector at the present places: the first one's place along the vector axis.
    fn first_line(&self, n: &Nest<'s>) -> Option<(Var, Index)> {
        let axis = self.vector?;
        let place = n.axis_index(axis).substitute(&|v| (v == LANE).then(Index::default), &|v| n.range(v));
        Some((axis, place))
    }

    /// A square of numbers of the lines, one vector for each position along them: `row` gives the vector of a line.
    fn square(
        &self,
        n: &mut Nest<'s>,
        like: ValueId,
        count: u32,
        row: &mut dyn FnMut(&mut Nest<'s>) -> Result<Val, LowerError>,
    ) -> Result<Vec<Val>, LowerError> {
        let Some((axis, first)) = self.first_line(n) else { return Ok(vec![]) };
        let dtype = self.s.value(like).dtype;
        let kind = kind_of(dtype).ok_or_else(|| LowerError(format!("{dtype} in a kernel")))?;
        let (lines, old) = (n.valid, n.axis_index(axis).clone());
        let mut rows = vec![];
        for r in 0..self.lanes {
            n.bind_axis(axis, first.offset(i64::from(r)));
            n.valid = count;
            // Lanes without a line repeat the last one; nobody reads them.
            let v = if r < lines { row(n)? } else { rows[rows.len() - 1] };
            let wide = n.kernel.ty(v).lanes == self.lanes;
            rows.push(if wide { v } else { n.define(Def::Cast { from: dtype, to: dtype, arg: v }, kind, self.lanes) });
        }
        n.valid = lines;
        n.bind_axis(axis, old);
        Ok(n.transpose(rows, kind))
    }

    /// The vectors of a load at positions `base..base + count` of the line, by position, each with the load.
    fn turn(
        &self,
        n: &mut Nest<'s>,
        load: Turned,
        line: Var,
        base: &Index,
        count: u64,
    ) -> Result<Vec<Vec<(ValueId, Val)>>, LowerError> {
        match load {
            Turned::One(v) => {
                let old = n.bind_axis(line, base.plus(&Index::var(LANE)));
                let columns = self.square(n, v, count as u32, &mut |n| n.eval(v))?;
                n.bind_axis(line, old);
                Ok(columns.into_iter().take(count as usize).map(|c| vec![(v, c)]).collect())
            }
            Turned::Pair([re, im]) => {
                let ValueOp::Load { operand, at, .. } = &self.s.value(re).op else { return Ok(vec![]) };
                let mut out = vec![];
                let half = u64::from(self.lanes / 2);
                let buf = n.tensor(*operand);
                for first in (0..count).step_by(half as usize) {
                    let floats = 2 * (count - first).min(half) as u32;
                    let old = n.bind_axis(line, base.offset(first as i64));
                    let columns = self.square(n, re, floats, &mut |n| {
                        let at = n.resolve(at).plus(&Index::var(LANE));
                        let access = Access { buf, at, valid: floats, guards: vec![] };
                        Ok(n.define(Def::Load(access), Kind::F32, self.lanes))
                    })?;
                    n.bind_axis(line, old);
                    let pairs = columns.chunks_exact(2).take(floats as usize / 2);
                    out.extend(pairs.map(|c| vec![(re, c[0]), (im, c[1])]));
                }
                Ok(out)
            }
        }
    }

    /// Squares along a line of `count` positions: whole ones in loops, those around the positions in `apart` and the last
    /// one, which may be narrower, by number.
    fn squares(
        &self,
        n: &mut Nest<'s>,
        (width, count): (u64, u64),
        apart: &[u64],
        body: &mut dyn FnMut(&mut Nest<'s>, &Index, u64) -> Result<(), LowerError>,
    ) -> Result<(), LowerError> {
        let whole = count / width;
        let mut cuts: Vec<u64> = apart.iter().flat_map(|k| [k / width, k / width + 1]).collect();
        cuts.extend([0, whole]);
        cuts.retain(|c| *c <= whole);
        cuts.sort_unstable();
        cuts.dedup();
        for range in cuts.windows(2) {
            n.each(range[0], range[1], &mut |n, tile| body(n, &tile.times(width as i64), width))?;
        }
        match count % width {
            0 => Ok(()),
            rest => body(n, &Index::constant((whole * width) as i64), rest),
        }
    }

    /// The arguments of all elements to scratch.
    pub fn fill(&self, n: &mut Nest<'s>, to: u32) -> Result<(), LowerError> {
        let parts = self.args.len() as i64;
        let store = |n: &mut Nest<'s>, j: &Index| -> Result<(), LowerError> {
            for (part, v) in self.arguments(n, j.clone())?.into_iter().enumerate() {
                self.store_scratch(n, to, &j.times(parts).offset(part as i64), v);
            }
            Ok(())
        };
        if self.turned_in.is_empty() {
            return n.each(0, self.given, &mut |n, j| store(n, j));
        }
        let width = self.width(self.turned_in.iter().all(|t| matches!(t, Turned::Pair(_))));
        self.squares(n, (width, self.given), &[], &mut |n, base, count| {
            self.meet(n, &self.turned_in, self.axis, base, count, &mut |n, j| store(n, j))
        })
    }

    /// `body` at each of `count` positions of the line, where the turned loads are known.
    fn meet(
        &self,
        n: &mut Nest<'s>,
        loads: &[Turned],
        line: Var,
        base: &Index,
        count: u64,
        body: &mut dyn FnMut(&mut Nest<'s>, &Index) -> Result<(), LowerError>,
    ) -> Result<(), LowerError> {
        let turned =
            loads.iter().map(|t| self.turn(n, *t, line, base, count)).collect::<Result<Vec<_>, LowerError>>()?;
        for i in 0..count {
            let j = base.offset(i as i64);
            let old = n.bind_axis(line, j.clone());
            turned.iter().flat_map(|t| &t[i as usize]).for_each(|(load, v)| n.bind(*load, *v));
            body(n, &j)?;
            n.bind_axis(line, old);
        }
        Ok(())
    }

    /// Results to memory that lies along the lines.
    pub fn squares_out(&self, n: &mut Nest<'s>, from: u32, leaving: &Leaving) -> Result<(), LowerError> {
        let paired = leaving.loads.iter().all(|t| matches!(t, Turned::Pair(_)))
            && leaving.stores.iter().all(|o| matches!(o, Out::Pair(_)));
        let width = self.width(paired);
        // The ends of a half spectrum are written for themselves.
        let ends = if self.kind == FftKind::RealForward { vec![0, self.plan.n as u64] } else { vec![] };
        self.squares(n, (width, self.wanted), &ends, &mut |n, base, count| {
            let mut columns: Vec<Vec<Val>> = vec![vec![]; self.s.stores.len()];
            self.meet(n, &leaving.loads, self.to, base, count, &mut |n, k| {
                if self.kind == FftKind::RealInverse {
                    let z = self.load_scratch(n, from, k);
                    self.bind_results(n, &[z]);
                } else {
                    let z = self.result(n, from, k)?;
                    self.bind_results(n, &z);
                }
                for (st, column) in self.s.stores.iter().zip(&mut columns) {
                    let value = n.eval(st.value)?;
                    column.push(value);
                }
                Ok(())
            })?;
            leaving.stores.iter().try_for_each(|out| match out {
                Out::One(i) => self.rows_out(n, *i, columns[*i].clone(), (base, 1)),
                Out::Pair([re, im]) => {
                    let both: Vec<Val> =
                        columns[*re].iter().zip(&columns[*im]).flat_map(|(re, im)| [*re, *im]).collect();
                    let half = self.lanes as usize;
                    both.chunks(half).enumerate().try_for_each(|(i, square)| {
                        let base = base.offset((i * half / 2) as i64);
                        self.rows_out(n, *re, square.to_vec(), (&base, 2))
                    })
                }
            })
        })
    }

    /// Stores vectors by position along the line as rows of the lines. `parts`: how many of them are one element.
    fn rows_out(
        &self,
        n: &mut Nest<'s>,
        store: usize,
        mut columns: Vec<Val>,
        (base, parts): (&Index, usize),
    ) -> Result<(), LowerError> {
        let Some((axis, first)) = self.first_line(n) else { return Ok(()) };
        let st = &self.s.stores[store];
        let dtype = self.s.value(st.value).dtype;
        let kind = kind_of(dtype).ok_or_else(|| LowerError(format!("{dtype} in a kernel")))?;
        let (lines, count) = (n.valid, columns.len() as u32);
        for v in &mut columns {
            if n.kernel.ty(*v).lanes != self.lanes {
                *v = n.define(Def::Cast { from: dtype, to: dtype, arg: *v }, kind, self.lanes);
            }
        }
        // What fills the square is not stored.
        let last = columns[columns.len() - 1];
        columns.resize(self.lanes as usize, last);
        let rows = n.transpose(columns, kind);
        let along = if parts == 1 { base.plus(&Index::var(LANE)) } else { base.clone() };
        let old = (n.bind_axis(self.to, along), n.axis_index(axis).clone());
        let buf = n.tensor(st.operand);
        n.valid = count;
        for (r, v) in rows.into_iter().enumerate().take(lines as usize) {
            n.bind_axis(axis, first.offset(r as i64));
            let at = n.resolve(&st.at);
            n.store(buf, if parts == 1 { at } else { at.plus(&Index::var(LANE)) }, v, false);
        }
        n.valid = lines;
        n.bind_axis(self.to, old.0);
        n.bind_axis(axis, old.1);
        Ok(())
    }
}
