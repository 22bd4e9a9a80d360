//! The rules of Tile IR. Code generation relies on them.
//!
//! Bounds are proven where loop bounds alone decide them; what depends on how two loop variables
//! relate is left to the checked interpreter, which sees every access.

use super::{Access, Block, Def, FIRST_LOOP, Fold, For, Kernel, LANE, Mma, Op, POINT, Panel, Space, Ty, Val};
use crate::index::{Index, Term, Var};
use std::collections::BTreeMap;
use tessera_base::DType;
use tessera_ops::map::{MapOp, kind_of};
use tessera_ops::prim::Order;
use tessera_ops::prim::fold::levels;
use tessera_ops::scalar::Kind;

/// Vectors of the result of one product tile.
const ACCUMULATORS_MAX: u64 = 4096;
/// Steps of a product in a row, and steps before which it asks for lines.
const UNROLL_MAX: u32 = 64;
/// Levels of the tree over the leaves of a product, at most: one for each bit of a position.
const LEVELS_MAX: i64 = 62;
const DISTANCE_MAX: u32 = 4096;

/// Checks scopes, types, operand order, lanes and bounds.
pub fn verify(k: &Kernel) -> Result<(), String> {
    let first_scratch = k.bufs.iter().position(|b| b.space == Space::Scratch).unwrap_or(k.bufs.len());
    if k.bufs[first_scratch..].iter().any(|b| b.space != Space::Scratch) {
        return Err("an operand follows a scratch buffer".into());
    }
    if k.unroll > 64 {
        return Err(format!("{} copies of a loop's body", k.unroll));
    }
    let mut c = Checker { k, defined: vec![false; k.values.len()], ranges: BTreeMap::new() };
    c.ranges.insert(POINT, (0, k.grid.saturating_sub(1).min(i64::MAX as u64) as i64));
    if k.grid == 0 {
        return Ok(());
    }
    k.body.iter().try_for_each(|op| c.op(op))
}

struct Checker<'k> {
    k: &'k Kernel,
    defined: Vec<bool>,
    /// Variables in scope with their inclusive bounds.
    ranges: BTreeMap<Var, (i64, i64)>,
}

impl Checker<'_> {
    fn define(&mut self, v: Val) -> Result<(), String> {
        match self.defined.get_mut(v.0 as usize) {
            Some(d) if !*d => *d = true,
            Some(_) => return Err(format!("%{} is defined twice", v.0)),
            None => return Err(format!("%{} has no type", v.0)),
        }
        Ok(())
    }

    fn ty(&self, v: Val) -> Result<Ty, String> {
        match self.defined.get(v.0 as usize) {
            Some(true) => Ok(self.k.ty(v)),
            _ => Err(format!("%{} is used where it is not defined", v.0)),
        }
    }

    fn for_op(&mut self, f: &For) -> Result<(), String> {
        if f.var.0 < FIRST_LOOP
            || (f.var.0 - FIRST_LOOP) as usize >= self.k.vars.len()
            || self.ranges.contains_key(&f.var)
        {
            return Err(format!("loop variable {} is not free", f.var.0));
        }
        if f.step == 0 || f.lo.is_empty() || f.hi.is_empty() {
            return Err("a loop without bounds or step".into());
        }
        for e in f.lo.iter().chain(&f.hi) {
            self.index(e)?;
            if e.uses(LANE) {
                return Err("a loop bound that depends on the lane".into());
            }
        }
        for c in &f.carried {
            let (init, inner) = (self.ty(c.init)?, self.k.values.get(c.inner.0 as usize).copied());
            if inner.is_none_or(|i| i.kind != init.kind || (init.lanes != i.lanes && init.lanes != 1))
                || inner != self.k.values.get(c.out.0 as usize).copied()
            {
                return Err(format!("%{} changes its type in a loop", c.inner.0));
            }
        }
        // Constant bounds say more than the variable's own range.
        let last = self.k.vars[(f.var.0 - FIRST_LOOP) as usize];
        let constant = |es: &[Index]| es.iter().filter_map(|e| e.as_constant()).collect::<Vec<_>>();
        let lo = constant(&f.lo).into_iter().max().unwrap_or(0).max(0);
        let hi = constant(&f.hi).into_iter().min().unwrap_or(i64::MAX).saturating_sub(1).min(last);
        if hi >= lo {
            let outer = self.defined.clone();
            self.ranges.insert(f.var, (lo, hi));
            for c in &f.carried {
                self.define(c.inner)?;
            }
            self.body(f)?;
            self.ranges.remove(&f.var);
            self.defined = outer;
        }
        f.carried.iter().try_for_each(|c| self.define(c.out))
    }

    fn body(&mut self, f: &For) -> Result<(), String> {
        f.body.iter().try_for_each(|op| self.op(op))?;
        for c in &f.carried {
            let (next, inner) = (self.ty(c.next)?, self.k.ty(c.inner));
            if next.kind != inner.kind || (next.lanes != inner.lanes && next.lanes != 1) {
                return Err(format!("%{} does not fit what the loop carries", c.next.0));
            }
        }
        Ok(())
    }

    /// One operation, whose values stay defined for the rest of the block.
    fn op(&mut self, op: &Op) -> Result<(), String> {
        match op {
            Op::Def { out, def } => {
                self.def(*out, def).map_err(|e| format!("%{}: {e}", out.0))?;
                self.define(*out)
            }
            Op::Store { to, by, value, lanes, .. } => {
                self.store(to, by, *value, *lanes).map_err(|e| format!("a store of %{}: {e}", value.0))
            }
            Op::For(f) => self.for_op(f),
            Op::Prefetch { buf, at } => self.buf(*buf).and_then(|_| self.index(at)),
            Op::Transpose { from, to } => self.transpose(from, to),
            Op::Mma(m) => self.mma(m).map_err(|e| format!("a product tile: {e}")),
            Op::Block(b) => self.block(b).map_err(|e| format!("a block of a product: {e}")),
        }
    }

    fn transpose(&mut self, from: &[Val], to: &[Val]) -> Result<(), String> {
        let n = from.len() as u32;
        for v in from {
            let ty = self.ty(*v)?;
            let same = to.iter().all(|t| self.k.values.get(t.0 as usize) == Some(&ty));
            if ty.lanes != n || to.len() != from.len() || !n.is_power_of_two() || !same {
                return Err("a transposition of vectors that form no square of lanes".into());
            }
        }
        to.iter().try_for_each(|v| self.define(*v))
    }

    fn def(&self, out: Val, def: &Def) -> Result<(), String> {
        let ty = *self.k.values.get(out.0 as usize).ok_or("no type")?;
        let fits = |v: Val, kind: Kind| {
            let t = self.ty(v)?;
            if t.kind == kind && (t.lanes == ty.lanes || t.lanes == 1) {
                Ok(())
            } else {
                Err(format!("operand %{} does not fit", v.0))
            }
        };
        let is = |kind: Option<Kind>| {
            if kind == Some(ty.kind) { Ok(()) } else { Err("the kind of the result is wrong".to_string()) }
        };
        match def {
            Def::Const(_) => Ok(()),
            Def::Scalar(n) => is(self.k.scalars.get(*n as usize).and_then(|d| kind_of(*d))),
            Def::Index(e) => is(Some(Kind::I64)).and_then(|()| self.index(e)),
            Def::Load(a) => {
                is(kind_of(self.buf(a.buf)?.dtype))?;
                self.access(a, ty.lanes)
            }
            Def::Gather { from, by } => {
                is(kind_of(self.buf(from.buf)?.dtype))?;
                self.at_positions(from, by, ty.lanes)
            }
            Def::Position { arg, check, valid } => {
                if self.k.checks.get(*check as usize).is_none() {
                    return Err(format!("check {check} does not exist"));
                }
                if *valid > ty.lanes {
                    return Err("more valid lanes than lanes".into());
                }
                fits(*arg, Kind::I64).and_then(|()| is(Some(Kind::I64)))
            }
            Def::Within(g) => is(Some(Kind::Bool)).and_then(|()| g.iter().try_for_each(|g| self.index(&g.index))),
            Def::HalfBits(arg) => fits(*arg, Kind::F32).and_then(|()| is(Some(Kind::I16))),
            Def::Half { low, high } => {
                [low, high].into_iter().try_for_each(|b| fits(*b, Kind::U8))?;
                is(Some(Kind::F32))
            }
            Def::Random { key, at } => {
                key.iter().try_for_each(|k| fits(*k, Kind::I64))?;
                is(Some(Kind::I64)).and_then(|()| self.index(at))
            }
            Def::Map { op, dtype, args } => {
                let kind = kind_of(*dtype)
                    .filter(|k| op.def().takes.accepts(*k))
                    .ok_or("a function of a type it does not take")?;
                if args.len() != op.def().arity {
                    return Err("the wrong number of operands".into());
                }
                for (i, a) in args.iter().enumerate() {
                    fits(*a, if i == 0 && *op == MapOp::r#where { Kind::Bool } else { kind })?;
                }
                is(Some(op.result_kind(kind)))
            }
            Def::Cast { from, to, arg } => {
                fits(*arg, kind_of(*from).ok_or("a cast from a type without values")?).and_then(|()| is(kind_of(*to)))
            }
            Def::RoundTf32(arg) => fits(*arg, Kind::F32).and_then(|()| is(Some(Kind::F32))),
            Def::Fold { acc, value, valid, .. } => {
                if *valid > ty.lanes {
                    return Err("more valid lanes than lanes".into());
                }
                fits(*acc, ty.kind).and_then(|()| fits(*value, ty.kind))
            }
            Def::Pair { even, odd } => {
                let factor = if self.ty(*even)?.kind == Kind::I16 { Kind::I16 } else { Kind::F32 };
                fits(*even, factor)?;
                fits(*odd, factor)?;
                is(Some(Kind::I32))
            }
            Def::Lanes { arg, .. } => {
                let t = self.ty(*arg)?;
                if t.lanes.is_power_of_two() && t.kind == ty.kind && ty.lanes == 1 {
                    Ok(())
                } else {
                    Err("lanes that do not fold to one".into())
                }
            }
            Def::Tree { buf, at, count, .. } => {
                let b = self.buf(*buf)?;
                if !matches!(b.space, Space::Scratch | Space::Temp) || *count == 0 {
                    return Err("a tree over memory that is not its own, or over nothing".into());
                }
                is(kind_of(b.dtype)).and_then(|()| self.index(at))
            }
        }
    }

    /// An access further on by positions, of which the kernel itself checks that they are in range.
    fn at_positions(&self, access: &Access, by: &[(Val, i64)], lanes: u32) -> Result<(), String> {
        for (p, _) in by {
            let t = self.ty(*p)?;
            if t.kind != Kind::I64 || (t.lanes != lanes && t.lanes != 1) {
                return Err(format!("position %{} does not fit", p.0));
            }
        }
        self.index(&access.at)?;
        access.guards.iter().try_for_each(|g| self.index(&g.index))?;
        match access.valid {
            n if n > lanes || n == 0 => Err(format!("{n} valid lanes of {lanes}")),
            _ => Ok(()),
        }
    }

    fn store(&self, to: &Access, by: &[(Val, i64)], value: Val, lanes: u32) -> Result<(), String> {
        let (b, t) = (self.buf(to.buf)?, self.ty(value)?);
        if b.space == Space::In {
            return Err(format!("`{}` is only read", b.name));
        }
        if kind_of(b.dtype) != Some(t.kind) || (t.lanes != lanes && t.lanes != 1) {
            return Err(format!("the value does not fit `{}`", b.name));
        }
        if !by.is_empty() {
            return self.at_positions(to, by, lanes);
        }
        if lanes > 1 && !to.at.uses(LANE) {
            return Err("all lanes go to one place".into());
        }
        self.access(to, lanes)
    }

    fn block(&self, b: &Block) -> Result<(), String> {
        for f in [&b.a, &b.b] {
            let buf = self.buf(f.buf)?;
            let halves = matches!(buf.dtype, DType::Bf16 | DType::F16) && buf.dtype == self.buf(b.a.buf)?.dtype;
            if !halves || buf.space == Space::Scratch {
                return Err(format!("`{}` is no operand of 16 bits as the other is", buf.name));
            }
            if f.line != 1 && f.step != 1 {
                return Err(format!("`{}` has no neighbours along lines or steps", buf.name));
            }
            self.index(&f.at)?;
            f.count.iter().try_for_each(|e| self.index(e))?;
        }
        let scratch = |n: u32, elems: u64| {
            let buf = self.buf(n)?;
            let fits = buf.dtype == DType::F32 && buf.space == Space::Scratch && buf.elems >= elems;
            if fits { Ok(()) } else { Err(format!("`{}` is no scratch for {elems} sums", buf.name)) }
        };
        scratch(b.c, b.c_elems())?;
        let leaves = b.depth.div_ceil(b.leaf.max(1));
        if let Some(waiting) = b.waiting {
            let all = u64::from(b.rows) * u64::from(b.cols);
            scratch(waiting, u64::from(levels(leaves)) * all)?;
        }
        let whole = |n: u32, warps: u32| warps > 0 && n.is_power_of_two() && n.is_multiple_of(16 * warps);
        let even = b.leaf.is_multiple_of(u64::from(b.chunk.max(1))) || leaves <= 1;
        let staged = matches!(b.chunk, 16 | 32 | 64) && (2..=8).contains(&b.stages);
        let warps = u64::from(b.warps[0]) * u64::from(b.warps[1]);
        let sums = u64::from(b.rows) * u64::from(b.cols) <= warps * 32 * 128;
        match b.leaf > 0 && even && staged && (leaves < 2) == b.waiting.is_none() && sums && warps <= 32 {
            true if !whole(b.rows, b.warps[0]) || !whole(b.cols, b.warps[1]) => {
                Err(format!("{} rows and {} columns of {:?} warps", b.rows, b.cols, b.warps))
            }
            true if u64::from(self.k.warps) != warps => {
                Err(format!("{warps} warps, and the point has {}", self.k.warps))
            }
            true => Ok(()),
            false => Err("leaves, chunks or stages that do not go together".into()),
        }
    }

    fn mma(&self, m: &Mma) -> Result<(), String> {
        for p in [&m.a, &m.b, &m.c] {
            let Panel { buf, at, .. } = p;
            let b = self.buf(*buf)?;
            let plain = kind_of(b.dtype) == Some(m.kind) && b.dtype.compute() == b.dtype;
            let paired = match m.kind {
                Kind::F32 => matches!(b.dtype, DType::Bf16 | DType::I32),
                Kind::I32 => matches!(b.dtype, DType::I16 | DType::I32) && m.order == Order::Pairs,
                _ => false,
            };
            let factor = !std::ptr::eq(p, &m.c);
            if !(if m.order.is_paired() && factor { paired } else { plain }) {
                return Err(format!("`{}` does not hold the kind of the product", b.name));
            }
            self.index(at)?;
        }
        if m.rows == 0 || m.cols == 0 || m.lanes == 0 || m.depth.is_empty() || self.buf(m.c.buf)?.space == Space::In {
            return Err("an empty tile, or a result that is only read".into());
        }
        // Each accumulator is written out.
        if u64::from(m.rows) * u64::from(m.cols.div_ceil(m.lanes)) > ACCUMULATORS_MAX {
            return Err(format!("a register tile of {} rows and {} columns", m.rows, m.cols));
        }
        if m.matrix_unit {
            let dtype = |p: &Panel| self.buf(p.buf).map(|b| b.dtype);
            let lie = dtype(&m.a)? == DType::Bf16 && m.a.step == 1 && dtype(&m.b)? == DType::I32;
            if m.order != Order::Units || m.rows > 32 || m.cols > 32 || m.ramp.is_some() || m.lead.is_some() || !lie {
                return Err("no unit for matrices computes this tile".into());
            }
        }
        if !(1..=UNROLL_MAX).contains(&m.unroll) || m.distance > DISTANCE_MAX {
            return Err(format!("{} steps in a row, lines asked for {} steps ahead", m.unroll, m.distance));
        }
        if m.half && (m.order.is_paired() || m.kind != Kind::F32) {
            return Err("sums in f16 are f32 chains".into());
        }
        self.hops(m)?;
        for p in &m.ahead {
            self.buf(p.buf).and_then(|_| self.index(&p.at))?;
        }
        if !m.ahead.is_empty() && (m.known_depth().is_none() || !m.hops.is_empty()) {
            return Err("what is asked for ahead needs a depth that is known".into());
        }
        if let Some(f) = &m.fold {
            self.fold(m, f)?;
        }
        m.depth.iter().chain(&m.ramp).chain(&m.lead).try_for_each(|e| self.index(e))
    }

    /// Leaves of nested steps hold whole runs, and the levels lie in a buffer of the product's kind.
    fn fold(&self, m: &Mma, f: &Fold) -> Result<(), String> {
        let b = self.buf(f.slots.buf)?;
        if kind_of(b.dtype) != Some(m.kind) || b.dtype.compute() != b.dtype || b.space == Space::In {
            return Err(format!("`{}` does not hold the sums of leaves", b.name));
        }
        let runs = m.hops.last().map_or(1, |(every, _)| *every);
        if f.leaf < 1 || f.leaf % runs != 0 || f.leaves.is_empty() {
            return Err(format!("leaves of {} steps", f.leaf));
        }
        if !(1..=LEVELS_MAX).contains(&f.levels) || !(0..=f.levels).contains(&f.inner) {
            return Err(format!("{} of {} levels", f.inner, f.levels));
        }
        let most = f.leaves.iter().filter_map(Index::as_constant).min();
        if most.is_none_or(|n| n > 1 << f.levels) {
            return Err(format!("more leaves than {} levels hold", f.levels));
        }
        f.indices().try_for_each(|e| self.index(e))
    }

    /// Nested steps: each run holds whole ones of the run before, and the depth whole ones of the last.
    fn hops(&self, m: &Mma) -> Result<(), String> {
        let Some((last, _)) = m.hops.last() else { return Ok(()) };
        let runs: Vec<i64> = [1].into_iter().chain(m.hops.iter().map(|(n, _)| *n)).collect();
        let nested = runs.windows(2).all(|w| w[1] > 0 && w[1] % w[0] == 0);
        let whole = |e: &Index| e.constant % last == 0 && e.terms.iter().all(|(_, c)| c % last == 0);
        if !nested || !m.depth.iter().all(whole) || m.order.is_paired() || m.ramp.is_some() || m.lead.is_some() {
            return Err("steps that are not nested".into());
        }
        Ok(())
    }

    fn buf(&self, n: u32) -> Result<&super::Buf, String> {
        self.k.bufs.get(n as usize).ok_or_else(|| format!("buffer {n} does not exist"))
    }

    fn index(&self, e: &Index) -> Result<(), String> {
        let mut bad = None;
        e.each_var(&mut |v| bad = bad.or((v != LANE && !self.ranges.contains_key(&v)).then_some(v.0)));
        bad.map_or(Ok(()), |v| Err(format!("variable {v} is not in scope")))
    }

    fn access(&self, a: &Access, lanes: u32) -> Result<(), String> {
        let b = self.buf(a.buf)?;
        self.index(&a.at)?;
        a.guards.iter().try_for_each(|g| self.index(&g.index))?;
        if a.valid > lanes || a.valid == 0 {
            return Err(format!("{} valid lanes of {lanes}", a.valid));
        }
        // With every coefficient positive the largest position is reached.
        let monotone = a.at.terms.iter().all(|(t, c)| *c > 0 && matches!(t, Term::Var(_)));
        if monotone && a.guards.is_empty() && matches!(b.space, Space::In | Space::Out) {
            let range = |v: Var| {
                if v == LANE { (0, a.valid as i64 - 1) } else { self.ranges.get(&v).copied().unwrap_or((0, 0)) }
            };
            let (_, hi) = a.at.range(&range);
            let alone = a.at.terms.iter().filter(|(t, _)| !matches!(t, Term::Var(LANE))).count() <= 1;
            if alone && hi >= b.elems as i64 {
                return Err(format!("position {hi} of the {} elements of `{}`", b.elems, b.name));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tile::text;

    /// A kernel that adds 1 to 20 elements.
    const ADD_ONE: &str = r#"
"tessera.tile.kernel"() {name="add_one", scalars=[], grid=1, grain=1, last=[1]} ({
  %x = "tessera.tile.buffer"() {elems=20, space="in"} : f32
  %y = "tessera.tile.buffer"() {elems=20, space="out"} : f32
}, {
  %0 = "tessera.tile.const"() {value=1.0} : f32
  "tessera.tile.for"() {var="v2", lo=["0"], hi=["1"], step=1, carried=[]} ({
    %1 = "tessera.tile.load"(%x) {at="lane + v2*16", valid=16} : f32x16
    %2 = "tessera.tile.map"(%1, %0) {op="add", dtype="f32"} : f32x16
    "tessera.tile.store"(%y, %2) {at="lane + v2*16", valid=16, lanes=16, stream=false}
    "tessera.tile.yield"()
  })
})"#;

    fn check(text: &str) -> Result<(), String> {
        text::parse(text).map_err(|e| e.message).and_then(|k| verify(&k))
    }

    #[test]
    fn a_sound_kernel_passes() {
        assert_eq!(check(ADD_ONE), Ok(()));
    }

    #[test]
    fn broken_kernels_are_refused() {
        for (from, to) in [
            ("hi=[\"1\"]", "hi=[\"2\"]"),
            ("at=\"lane + v2*16\", valid=16}", "at=\"lane + v3*16\", valid=16}"),
            ("(%1, %0) {op=\"add\"", "(%1, %2) {op=\"add\""),
            ("dtype=\"f32\"} : f32x16", "dtype=\"i32\"} : f32x16"),
            ("store\"(%y", "store\"(%x"),
            ("valid=16} : f32x16", "valid=17} : f32x16"),
            ("step=1", "step=0"),
        ] {
            let bad = ADD_ONE.replace(from, to);
            assert_ne!(bad, ADD_ONE, "{from}");
            assert!(check(&bad).is_err(), "{from} -> {to}");
        }
    }

    #[test]
    fn any_text_is_read_without_harm() {
        for i in 0..ADD_ONE.len() {
            let _ = check(&ADD_ONE[..i]);
            let _ = check(&(ADD_ONE[..i].to_owned() + &ADD_ONE[(i + 7).min(ADD_ONE.len())..]));
        }
    }
}
