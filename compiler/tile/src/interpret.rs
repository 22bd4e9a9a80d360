//! The checked interpreter of Tile IR: what a kernel means, with every access looked at.
//!
//! It finds positions out of range, scratch and results that are read before they are written,
//! and grid points that write the same element. Results have the bits of compiled code.

use crate::memory::{Memory, Words};
use std::fmt;
use std::ops::Range;
use tessera_base::{DType, bug};
use tessera_ir::index::{Index, Var};
use tessera_ir::tile::{
    Access, Block, Def, Factor, Fold, For, Guard, Kernel, LANE, Mma, Op, POINT, Panel, Space, Val, cast_programs,
    map_programs,
};
use tessera_ops::convert::{storage_kind, store_program, tf32_program, widen_program};
use tessera_ops::map::kind_of;
use tessera_ops::prim::fold;
use tessera_ops::prim::{Order, Reduction, Scalar};
use tessera_ops::reference::{Unit, atom, combine, pair_step, random_bits_program};
use tessera_ops::scalar::{Inst, Kind, Program, Writer};
use tessera_ops::scalar_eval::{Lane, eval};

/// Why a kernel stopped.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// Grid point.
    pub point: u64,
    pub message: String,
    /// A position from data is out of range; otherwise the kernel broke a rule of its language.
    pub refused: bool,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self.refused {
            true => f.write_str(&self.message),
            false => write!(f, "at grid point {}: {}", self.point, self.message),
        }
    }
}

/// Runs all grid points of `k`. `tensors`: bytes of each buffer that is not scratch, in order;
/// results are written into them, and they are gone where it fails. `scalars`: one word per host scalar.
///
/// Cost: hundreds of nanoseconds per operation. Errors: the first [`Fault`].
pub fn interpret(k: &Kernel, tensors: &mut [Vec<u8>], scalars: &[u64]) -> Result<(), Fault> {
    let fail = |message: &str| Fault { point: 0, message: message.to_string(), refused: false };
    let mut memory = vec![];
    for (i, buf) in k.bufs.iter().enumerate() {
        let bytes = match tensors.get_mut(i) {
            _ if buf.space == Space::Scratch => vec![0; buf.elems as usize * buf.dtype.bytes()],
            Some(t) => std::mem::take(t),
            None => return Err(fail("an operand is missing")),
        };
        if bytes.len() != buf.elems as usize * buf.dtype.bytes() {
            return Err(fail("an operand has the wrong size"));
        }
        memory.push(Memory::new(buf, bytes));
    }
    let mut m = Machine {
        k,
        memory,
        scalars,
        vars: vec![0; k.vars.len() + 2],
        values: vec![None; k.values.len()],
        point: 0,
        refused: None,
    };
    for point in 0..k.grid {
        m.point = point;
        m.vars[POINT.0 as usize] = point as i64;
        m.memory.iter_mut().for_each(Memory::begin);
        m.ops(&k.body).map_err(|message| match m.refused.take() {
            Some(message) => Fault { point, message, refused: true },
            None => Fault { point, message, refused: false },
        })?;
    }
    for (t, m) in tensors.iter_mut().zip(m.memory) {
        *t = m.bytes;
    }
    Ok(())
}

struct Machine<'k> {
    k: &'k Kernel,
    memory: Vec<Memory>,
    scalars: &'k [u64],
    vars: Vec<i64>,
    values: Vec<Option<Words>>,
    point: u64,
    /// What is wrong with a position from data.
    refused: Option<String>,
}

fn run(programs: &[&Program], args: &[Lane], n: usize) -> Words {
    let Some((first, rest)) = programs.split_first() else {
        return args.first().map_or(Words { kind: Kind::Bool, words: vec![] }, Words::from_lane);
    };
    let lane = rest.iter().fold(eval(first, args, n), |lane, p| eval(p, &[lane], n));
    Words::from_lane(&lane)
}

impl Machine<'_> {
    fn ops(&mut self, ops: &[Op]) -> Result<(), String> {
        for op in ops {
            match op {
                Op::Def { out, def } => {
                    let v = self.def(*out, def).map_err(|e| {
                        self.refused = matches!(def, Def::Position { .. }).then(|| e.clone());
                        format!("%{}: {e}", out.0)
                    })?;
                    self.values[out.0 as usize] = Some(v);
                }
                Op::Store { to, by, value, lanes, .. } => {
                    self.store(to, by, *value, *lanes).map_err(|e| format!("a store of %{}: {e}", value.0))?
                }
                Op::For(f) => self.for_op(f)?,
                Op::Prefetch { .. } => {}
                Op::Transpose { from, to } => {
                    let n = from.len() as u32;
                    let rows = from.iter().map(|v| self.value(*v, n)).collect::<Result<Vec<_>, _>>()?;
                    for (i, v) in to.iter().enumerate() {
                        self.values[v.0 as usize] =
                            Some(Words { kind: rows[i].kind, words: rows.iter().map(|r| r.words[i]).collect() });
                    }
                }
                Op::Mma(m) => self.mma(m).map_err(|e| format!("a product tile: {e}"))?,
                Op::Block(b) => self.block(b).map_err(|e| format!("a block of a product: {e}"))?,
            }
        }
        Ok(())
    }

    fn index(&self, e: &Index, lane: i64) -> i64 {
        e.eval(&|v: Var| match self.vars.get(v.0 as usize) {
            _ if v == LANE => lane,
            Some(value) => *value,
            None => bug!("an index has the variable {}, which no loop gives", v.0),
        })
    }

    fn value(&self, v: Val, lanes: u32) -> Result<Words, String> {
        let value =
            self.values.get(v.0 as usize).and_then(|v| v.as_ref()).ok_or_else(|| format!("%{} is not defined", v.0))?;
        Ok(value.wide(lanes))
    }

    fn held(&self, guards: &[Guard], lane: i64) -> bool {
        guards.iter().all(|g| (g.lo..g.hi).contains(&self.index(&g.index, lane)))
    }

    fn for_op(&mut self, f: &For) -> Result<(), String> {
        let lo = f.lo.iter().map(|e| self.index(e, 0)).max().unwrap_or(0);
        let hi = f.hi.iter().map(|e| self.index(e, 0)).min().unwrap_or(0);
        let lanes = |v: Val| self.k.ty(v).lanes;
        let mut carried =
            f.carried.iter().map(|c| self.value(c.init, lanes(c.inner))).collect::<Result<Vec<_>, _>>()?;
        let mut i = lo;
        while i < hi {
            self.vars[f.var.0 as usize] = i;
            for (c, v) in f.carried.iter().zip(&carried) {
                self.values[c.inner.0 as usize] = Some(v.clone());
            }
            self.ops(&f.body)?;
            carried =
                f.carried.iter().map(|c| self.value(c.next, self.k.ty(c.inner).lanes)).collect::<Result<_, _>>()?;
            i += f.step as i64;
        }
        for (c, v) in f.carried.iter().zip(carried) {
            self.values[c.out.0 as usize] = Some(v);
        }
        Ok(())
    }

    fn def(&mut self, out: Val, def: &Def) -> Result<Words, String> {
        let ty = self.k.ty(out);
        let (kind, lanes) = (ty.kind, ty.lanes);
        let n = lanes as usize;
        Ok(match def {
            Def::Const(c) => constant(*c, kind).wide(lanes),
            Def::Scalar(i) => {
                let word = *self.scalars.get(*i as usize).ok_or("no such scalar")?;
                Words { kind, words: vec![if kind == Kind::Bool { (word != 0) as u64 } else { word }; n] }
            }
            Def::Index(e) => Words { kind, words: (0..lanes).map(|l| self.index(e, l as i64) as u64).collect() },
            Def::Load(a) => self.load(a, &[], lanes)?,
            Def::Gather { from, by } => self.load(from, &self.positions(by, lanes)?, lanes)?,
            Def::Position { arg, check, valid } => {
                let bounds = self.k.checks.get(*check as usize).ok_or("no such check")?;
                let mut words = self.value(*arg, lanes)?.words;
                for (l, w) in words.iter_mut().enumerate() {
                    let at = if l < *valid as usize { bounds.resolve(*w as i64) } else { Some(0) };
                    *w = at.ok_or_else(|| bounds.message(*w as i64))? as u64;
                }
                Words { kind, words }
            }
            Def::Within(guards) => {
                Words { kind, words: (0..lanes).map(|l| self.held(guards, l as i64) as u64).collect() }
            }
            Def::HalfBits(arg) => {
                let program = store_program(DType::F16).ok_or("no f16")?;
                run(&[program], &[self.value(*arg, lanes)?.lane()], n)
            }
            Def::Half { low, high } => {
                let (low, high) = (self.value(*low, lanes)?, self.value(*high, lanes)?);
                let bits = low.words.iter().zip(&high.words).map(|(l, h)| l & 0xff | (h & 0xff) << 8).collect();
                let program = widen_program(DType::F16).ok_or("no f16")?;
                run(&[program], &[Words { kind: Kind::I16, words: bits }.lane()], n)
            }
            Def::Random { key, at } => {
                let at = Words { kind, words: (0..lanes).map(|l| self.index(at, i64::from(l)) as u64).collect() };
                let [low, high] = [self.value(key[0], lanes)?, self.value(key[1], lanes)?];
                run(&[&random_bits_program()], &[at.lane(), low.lane(), high.lane()], n)
            }
            Def::Map { op, dtype, args } => {
                let args =
                    args.iter().map(|a| self.value(*a, lanes).map(|w| w.lane())).collect::<Result<Vec<_>, _>>()?;
                run(&map_programs(*op, *dtype), &args, n)
            }
            Def::Cast { from, to, arg } => run(&cast_programs(*from, *to), &[self.value(*arg, lanes)?.lane()], n),
            Def::RoundTf32(arg) => run(&[&tf32_program()], &[self.value(*arg, lanes)?.lane()], n),
            Def::Fold { kind: monoid, acc, value, valid } => {
                let acc = self.value(*acc, lanes)?;
                let mut folded = fold(*monoid, &acc, &self.value(*value, lanes)?);
                folded.words[*valid as usize..].copy_from_slice(&acc.words[*valid as usize..]);
                folded
            }
            Def::Pair { even, odd } => {
                let ints = self.k.ty(*even).kind == Kind::I16;
                let (even, odd) = (self.value(*even, lanes)?, self.value(*odd, lanes)?);
                let pair = |(e, o): (&u64, &u64)| match ints {
                    true => e & 0xffff | (o & 0xffff) << 16,
                    false => e >> 16 | o & 0xffff_0000,
                };
                Words { kind, words: even.words.iter().zip(&odd.words).map(pair).collect() }
            }
            Def::Lanes { kind: monoid, arg } => {
                let mut v = self.value(*arg, self.k.ty(*arg).lanes)?;
                while v.words.len() > 1 {
                    let high = Words { kind, words: v.words.split_off(v.words.len() / 2) };
                    v = fold(*monoid, &v, &high);
                }
                v
            }
            Def::Tree { kind: monoid, buf, at, count } => self.tree(*monoid, *buf, self.index(at, 0), *count, lanes)?,
        })
    }

    fn tree(&mut self, monoid: Reduction, buf: u32, at: i64, count: u64, lanes: u32) -> Result<Words, String> {
        let dtype = self.k.bufs[buf as usize].dtype;
        let kind = kind_of(dtype).ok_or("no kind")?;
        let mut level: Vec<Words> = vec![];
        for i in 0..count as i64 {
            let words =
                (0..lanes as i64).map(|l| self.memory[buf as usize].read(at + i * lanes as i64 + l, self.point));
            level.push(Words { kind, words: words.collect::<Result<_, _>>()? });
        }
        while level.len() > 1 {
            level = level.chunks(2).map(|p| if let [a, b] = p { fold(monoid, a, b) } else { p[0].clone() }).collect();
        }
        level.pop().ok_or_else(|| "an empty tree".into())
    }

    // --- memory

    fn positions(&self, by: &[(Val, i64)], lanes: u32) -> Result<Vec<(Words, i64)>, String> {
        by.iter().map(|(p, stride)| Ok((self.value(*p, lanes)?, *stride))).collect()
    }

    /// The element of lane `l`: the index plus positions times their strides.
    fn element(&self, at: &Index, by: &[(Words, i64)], l: i64) -> i64 {
        let further = |(p, stride): &(Words, i64)| (p.words[l as usize] as i64).wrapping_mul(*stride);
        by.iter().fold(self.index(at, l), |sum, p| sum.wrapping_add(further(p)))
    }

    fn load(&self, a: &Access, by: &[(Words, i64)], lanes: u32) -> Result<Words, String> {
        let dtype = self.k.bufs[a.buf as usize].dtype;
        let stored = storage_kind(dtype).ok_or("complex memory")?;
        let mut words = vec![];
        for l in 0..lanes as i64 {
            let touched = l < a.valid as i64 && self.held(&a.guards, l);
            let at = self.element(&a.at, by, l);
            words.push(if touched { self.memory[a.buf as usize].read(at, self.point)? } else { 0 });
        }
        let raw = Words { kind: stored, words };
        match widen_program(dtype) {
            Some(p) if kind_of(dtype) != Some(stored) => Ok(run(&[p], &[raw.lane()], lanes as usize)),
            _ => Ok(Words::from_lane(&raw.lane())),
        }
    }

    fn store(&mut self, to: &Access, by: &[(Val, i64)], value: Val, lanes: u32) -> Result<(), String> {
        let dtype = self.k.bufs[to.buf as usize].dtype;
        let value = self.value(value, lanes)?;
        let by = self.positions(by, lanes)?;
        let bits = match store_program(dtype) {
            Some(p) if storage_kind(dtype) != kind_of(dtype) => run(&[p], &[value.lane()], lanes as usize),
            _ => value,
        };
        for l in 0..lanes as i64 {
            if l < to.valid as i64 && self.held(&to.guards, l) {
                let at = self.element(&to.at, &by, l);
                self.memory[to.buf as usize].write(at, bits.words[l as usize], self.point)?;
            }
        }
        Ok(())
    }

    /// Row `i` of a product of ints in pairs.
    fn pairs_of_ints(&mut self, m: &Mma, i: i64, steps: Range<i64>, sums: &mut [u64]) -> Result<(), String> {
        let step = |sum: u64, a: [i32; 2], b: [i32; 2]| {
            let both = a[0].wrapping_mul(b[0]).wrapping_add(a[1].wrapping_mul(b[1]));
            u64::from((sum as u32).wrapping_add(both as u32))
        };
        for q in steps {
            let a = self.words(&m.a, i * m.a.row, q)?.map(|w| i32::from(w as i16));
            for (j, sum) in sums.iter_mut().enumerate() {
                *sum = step(*sum, a, self.words(&m.b, j as i64, q)?.map(|w| i32::from(w as i16)));
            }
        }
        Ok(())
    }

    /// Row `i` of a product of bf16 in pairs.
    fn pairs(&mut self, m: &Mma, i: i64, steps: Range<i64>, sums: &mut [u64]) -> Result<(), String> {
        for q in steps {
            let a = self.pair(&m.a, i * m.a.row, q)?;
            for (j, sum) in sums.iter_mut().enumerate() {
                let b = self.pair(&m.b, j as i64, q)?;
                *sum = pair_step(f32::from_bits(*sum as u32), a, b).to_bits() as u64;
            }
        }
        Ok(())
    }

    /// Row `i` of a product in units of pairs.
    fn units(&mut self, m: &Mma, i: i64, steps: Range<i64>, sums: &mut [u64]) -> Result<(), String> {
        for first in steps.clone().step_by(Unit::PAIRS) {
            for (j, sum) in sums.iter_mut().enumerate() {
                let mut unit = Unit::default();
                for q in first..steps.end.min(first + Unit::PAIRS as i64) {
                    unit.step(self.pair(&m.a, i * m.a.row, q)?, self.pair(&m.b, j as i64, q)?);
                }
                *sum = unit.onto(f32::from_bits(*sum as u32)).to_bits() as u64;
            }
        }
        Ok(())
    }

    /// The even and the odd bf16 of step `q`.
    fn pair(&mut self, p: &Panel, offset: i64, q: i64) -> Result<[f32; 2], String> {
        Ok(self.words(p, offset, q)?.map(|w| f32::from_bits(u32::from(w) << 16)))
    }

    /// The bits of the even and the odd factor of step `q`.
    fn words(&mut self, p: &Panel, offset: i64, q: i64) -> Result<[u16; 2], String> {
        let at = self.index(&p.at, 0) + offset;
        let point = self.point;
        let memory = &mut self.memory[p.buf as usize];
        if self.k.bufs[p.buf as usize].dtype != DType::I32 {
            let word = |n: i64| memory.read(at + n * p.step, point);
            return Ok([word(2 * q)? as u16, word(2 * q + 1)? as u16]);
        }
        let pair = memory.read(at + q * p.step, point)?;
        Ok([pair as u16, (pair >> 16) as u16])
    }

    /// Steps `range` of row `i`, from zero.
    fn chain(&mut self, m: &Mma, i: i64, range: Range<i64>, step: &[Program]) -> Result<Words, String> {
        let at = |s: &Self, p: &Panel, i: i64, k: i64, j: i64| s.index(&p.at, 0) + i * p.row + k * p.step + j;
        let mut row = Words { kind: m.kind, words: vec![0; m.cols as usize] };
        if m.order.is_paired() {
            match m.order {
                Order::Units => self.units(m, i, range, &mut row.words)?,
                _ if m.kind == Kind::I32 => self.pairs_of_ints(m, i, range, &mut row.words)?,
                _ => self.pairs(m, i, range, &mut row.words)?,
            }
            return Ok(row);
        }
        let steps = m.ramp.as_ref().map_or(range.end, |e| range.end.min(self.index(e, 0) + i));
        let first = m.lead.as_ref().map_or(range.start, |e| (self.index(e, 0) + i).max(range.start));
        let step: Vec<&Program> = step.iter().collect();
        for k in first..steps {
            let hops: i64 = m.hops.iter().map(|(every, extra)| k / every * extra).sum();
            let a = self.memory[m.a.buf as usize].read(at(self, &m.a, i, k, hops), self.point)?;
            let left = Words { kind: m.kind, words: vec![a; m.cols as usize] };
            let b = (0..m.cols as i64).map(|j| self.memory[m.b.buf as usize].read(at(self, &m.b, 0, k, j), self.point));
            let right = Words { kind: m.kind, words: b.collect::<Result<_, _>>()? };
            row = run(&step, &[left.lane(), right.lane(), row.lane()], m.cols as usize);
        }
        Ok(row)
    }

    /// The leaves of row `i`; what they make with the last one.
    fn leaves(
        &mut self,
        m: &Mma,
        f: &Fold,
        i: i64,
        depth: i64,
        (step, add): (&[Program], &[Program]),
    ) -> Result<Option<Words>, String> {
        let cols = m.cols as usize;
        let add: Vec<&Program> = add.iter().collect();
        let (first, begin) = (self.index(&f.first, 0), self.index(&f.begin, 0));
        let leaves = f.leaves.iter().map(|e| self.index(e, 0)).min().unwrap_or(0);
        let places = [&f.slots.at, &f.lasting].map(|e| self.index(e, 0));
        let slot = |level: i64| match level < f.inner {
            true => places[0].saturating_add(level.saturating_mul(f.apart)).saturating_add(i * f.slots.row),
            false => {
                places[1].saturating_add((level - f.inner).saturating_mul(f.apart)).saturating_add(i * f.slots.row)
            }
        };
        let buf = f.slots.buf as usize;
        for leaf in first..leaves.min(first + depth.saturating_add(f.leaf - 1).div_euclid(f.leaf)) {
            let from = (leaf - first) * f.leaf;
            let mut now = self.chain(m, i, from..depth.min(from + f.leaf), step)?;
            let last = leaf + 1 == leaves;
            let up = if last { f.levels } else { i64::from(leaf.trailing_ones()) };
            for level in (0..up).filter(|l| leaf >> l & 1 == 1 && (leaf >> l) << l > begin) {
                let words = (0..m.cols as i64).map(|j| self.memory[buf].read(slot(level) + j, self.point));
                let earlier = Words { kind: m.kind, words: words.collect::<Result<_, _>>()? };
                now = run(&add, &[earlier.lane(), now.lane()], cols);
            }
            if last {
                let zeros = Words { kind: m.kind, words: vec![0; cols] };
                return Ok(Some(run(&add, &[zeros.lane(), now.lane()], cols)));
            }
            if up >= f.levels {
                return Err(format!("level {up} of {}", f.levels));
            }
            for (j, word) in now.words.iter().enumerate() {
                self.memory[buf].write(slot(up) + j as i64, *word, self.point)?;
            }
        }
        Ok(None)
    }

    /// A line of a factor: all of its steps, zeros where it is beyond the last.
    fn line(&mut self, f: &Factor, i: i64, depth: i64) -> Result<Vec<f32>, String> {
        if f.count.iter().any(|e| i >= self.index(e, 0)) {
            return Ok(vec![0.0; depth as usize]);
        }
        let at = self.index(&f.at, 0) + i * f.line;
        let point = self.point;
        let dtype = self.k.bufs[f.buf as usize].dtype;
        let memory = &mut self.memory[f.buf as usize];
        let words = (0..depth).map(|k| memory.read(at + k * f.step, point)).collect::<Result<Vec<_>, _>>()?;
        let program = widen_program(dtype).ok_or("no factor of 16 bits")?;
        let wide = run(&[program], &[Words { kind: Kind::I16, words }.lane()], depth as usize);
        Ok(wide.words.iter().map(|w| f32::from_bits(*w as u32)).collect())
    }

    fn block(&mut self, b: &Block) -> Result<(), String> {
        let depth = b.depth as i64;
        let columns = (0..i64::from(b.cols)).map(|j| self.line(&b.b, j, depth)).collect::<Result<Vec<_>, _>>()?;
        for i in 0..i64::from(b.rows) {
            let row = self.line(&b.a, i, depth)?;
            for (j, column) in (0..).zip(&columns) {
                let chain = |steps: Range<usize>, sums: &mut Vec<f32>| {
                    for at in steps.clone().step_by(Order::ATOM as usize) {
                        let end = steps.end.min(at + Order::ATOM as usize);
                        sums[0] = atom(sums[0], &row[at..end], |q| column[at + q]);
                    }
                };
                let (k, leaf) = (b.depth as usize, b.leaf as usize);
                let sum = fold::fold(k, leaf, 0..k, &[0.0], chain, |earlier, later| earlier + later);
                let to = i * i64::from(b.cols) + j;
                self.memory[b.c as usize].write(to, u64::from(sum[0].to_bits()), self.point)?;
            }
        }
        Ok(())
    }

    fn mma(&mut self, m: &Mma) -> Result<(), String> {
        let at = |s: &Self, p: &Panel, i: i64, k: i64, j: i64| s.index(&p.at, 0) + i * p.row + k * p.step + j;
        let depth = m.depth.iter().map(|e| self.index(e, 0)).min().unwrap_or(0);
        let rounding = if m.half { cast_programs(DType::F32, DType::F16) } else { vec![] };
        let with = |program: Program| -> Vec<Program> {
            [program].into_iter().chain(rounding.iter().map(|p| (*p).clone())).collect()
        };
        let (step, add) = (with(step_program(m.kind)), with(add_program(m.kind)));
        let mut results: Vec<Option<Words>> = vec![];
        for i in 0..m.rows as i64 {
            results.push(match &m.fold {
                None => Some(self.chain(m, i, 0..depth, &step)?),
                Some(f) => self.leaves(m, f, i, depth, (&step, &add))?,
            });
        }
        let results: Vec<Words> = results.into_iter().flatten().collect();
        for (i, row) in results.iter().enumerate() {
            for (j, w) in row.words.iter().enumerate() {
                let to = at(self, &m.c, i as i64, 0, j as i64);
                self.memory[m.c.buf as usize].write(to, *w, self.point)?;
            }
        }
        Ok(())
    }
}

/// `a + b`.
fn add_program(kind: Kind) -> Program {
    let mut w = Writer::default();
    let args: Vec<_> = (0..2).map(|i| w.arg(i, kind)).collect();
    let r = if kind.is_float() {
        w.float(tessera_ops::scalar::FloatOp::Add, args[0], args[1])
    } else {
        w.int(tessera_ops::scalar::IntOp::Add, args[0], args[1])
    };
    w.finish(r)
}

/// `a·b + c`, fused for floats.
fn step_program(kind: Kind) -> Program {
    let mut w = Writer::default();
    let args: Vec<_> = (0..3).map(|i| w.arg(i, kind)).collect();
    let r = if kind.is_float() {
        w.push(Inst::Fma(args[0], args[1], args[2]), kind)
    } else {
        let p = w.int(tessera_ops::scalar::IntOp::Mul, args[0], args[1]);
        w.int(tessera_ops::scalar::IntOp::Add, p, args[2])
    };
    w.finish(r)
}

fn fold(monoid: Reduction, a: &Words, b: &Words) -> Words {
    let op = combine(monoid);
    run(&[op.program(&op.operand_kinds(a.kind))], &[a.lane(), b.lane()], a.words.len())
}

fn constant(c: Scalar, kind: Kind) -> Words {
    let word = match (c, kind) {
        (Scalar::F(x), Kind::F32) => (x as f32).to_bits() as u64,
        (Scalar::F(x), _) => x.to_bits(),
        (Scalar::I(i), _) => i as u64,
    };
    Words { kind, words: vec![word] }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tessera_ir::tile::text::parse;

    fn run_text(body: &str, grid: u64) -> Result<(), Fault> {
        let text = format!(
            r#""tessera.tile.kernel"() {{name="k", scalars=[], grid={grid}, grain=1, last=[3]}} ({{
  %x = "tessera.tile.buffer"() {{elems=4, space="in"}} : f32
  %y = "tessera.tile.buffer"() {{elems=4, space="out"}} : f32
  %s = "tessera.tile.buffer"() {{elems=4, space="scratch"}} : f32
}}, {{
{body}
}})"#
        );
        let k = parse(&text).unwrap_or_else(|e| panic!("{e:?}"));
        interpret(&k, &mut [vec![0; 16], vec![0; 16]], &[])
    }

    fn fault(body: &str, grid: u64) -> String {
        run_text(body, grid).err().map_or(String::new(), |f| f.to_string())
    }

    #[test]
    fn faults_are_found() {
        let load = |buf: &str, at: &str| format!(r#"%0 = "tessera.tile.load"(%{buf}) {{at="{at}", valid=1}} : f32"#);
        let store = |buf: &str, at: &str| {
            format!(r#""tessera.tile.store"(%{buf}, %0) {{at="{at}", valid=1, lanes=1, stream=false}}"#)
        };
        assert_eq!(fault(&format!("{}\n{}", load("x", "p"), store("y", "p")), 4), "");
        assert!(fault(&load("x", "p + 1"), 4).contains("position 4 of 4"));
        assert!(fault(&load("s", "p"), 1).contains("read before it is written"));
        assert!(fault(&format!("{}\n{}", load("x", "p"), store("y", "0")), 2).contains("written by points 0 and 1"));
    }
}
