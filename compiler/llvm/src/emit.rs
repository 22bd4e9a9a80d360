//! Tile IR to LLVM IR: one function per kernel, loops as they stand, values as vectors.

use crate::bf16_units::MATRIX_UNIT;
use crate::extremes::{self, Extreme};
use crate::instr::{Builder, IntPred, RealPred, V};
use crate::matrix_registers;
use crate::memory::By;
use crate::program;
use crate::random_words;
use crate::{HostTarget, LlvmError};
use std::collections::HashMap;
use tessera_base::DType;
use tessera_ir::index::{Index, Term, Var};
use tessera_ir::tile::{Carry, Def, For, Kernel, LANE, Op, POINT, Space, Val, cast_programs, map_programs};
use tessera_ops::convert::tf32_program;
use tessera_ops::map::{MapOp, kind_of};
use tessera_ops::prim::{Reduction, Scalar};
use tessera_ops::reference::random_bits_program;
use tessera_ops::scalar::{IntOp, Kind, Program};

/// The state of one kernel's emission.
pub struct Emitter<'k> {
    pub b: Builder,
    pub kernel: &'k Kernel,
    /// Base address of every buffer.
    pub bases: Vec<V>,
    scalars: Vec<V>,
    pub vars: Vec<Option<V>>,
    pub values: Vec<Option<V>>,
    /// Whether streaming stores may be used (their buffers are aligned).
    pub streaming: bool,
    /// How often each value is read.
    pub uses: Vec<u32>,
    /// Accumulators that are held as ordered integers.
    pub extremes: HashMap<Val, Extreme>,
    /// The sizes of the registers of the unit for matrices wherever no tile asks for others.
    pub unit: Option<matrix_registers::Sizes>,
    pub target: &'k HostTarget,
    /// Of threads, by buffer: whether lanes see in it what others write.
    pub exchanged: Vec<bool>,
    /// Of threads: where a group records what stopped it, and the number of the launch.
    pub faults: V,
    pub launch: V,
}

impl<'k> Emitter<'k> {
    /// Of an empty function.
    pub fn of(b: Builder, kernel: &'k Kernel, target: &'k HostTarget) -> Emitter<'k> {
        let none = b.i64(0);
        Emitter {
            b,
            kernel,
            bases: vec![],
            scalars: vec![],
            vars: vec![None; kernel.vars.len() + 2],
            values: vec![None; kernel.values.len()],
            streaming: false,
            uses: extremes::uses(kernel),
            extremes: HashMap::new(),
            unit: matrix_registers::sizes(&kernel.body).filter(|_| target.has(MATRIX_UNIT)),
            target,
            exchanged: vec![],
            faults: none,
            launch: none,
        }
    }
}

/// Writes the function of `kernel` into a fresh module.
pub fn kernel(kernel: &Kernel, target: &HostTarget) -> Result<Builder, LlvmError> {
    let mut e = Emitter::of(Builder::new(&kernel.name), kernel, target);
    let entry = e.b.block();
    e.b.position(entry);
    e.operands();
    e.begin_units();
    if streams(&kernel.body) {
        let (fast, plain) = (e.b.block(), e.b.block());
        e.b.branch(e.aligned(), fast, plain);
        e.b.position(fast);
        e.streaming = true;
        e.grid()?;
        #[cfg(target_arch = "x86_64")]
        e.b.intrinsic("llvm.x86.sse.sfence", &[], &[]);
        e.leave(e.b.i64(0));
        e.b.position(plain);
        e.streaming = false;
    }
    e.grid()?;
    e.leave(e.b.i64(0));
    Ok(e.b)
}

fn streams(ops: &[Op]) -> bool {
    ops.iter().any(|op| match op {
        Op::Store { stream, .. } => *stream,
        Op::For(f) => streams(&f.body),
        _ => false,
    })
}

impl Emitter<'_> {
    /// Reads base addresses and host scalars.
    fn operands(&mut self) {
        let (bufs, words, scratch) = (self.b.param(0), self.b.param(1), self.b.param(4));
        let (offsets, _) = self.kernel.scratch();
        for (i, buf) in self.kernel.bufs.iter().enumerate() {
            let base = if buf.space == Space::Scratch {
                self.b.offset(scratch, self.b.i64(offsets[i] as i64))
            } else {
                let slot = self.b.offset(bufs, self.b.i64(8 * i as i64));
                self.b.load(self.b.ptr(), slot, 8)
            };
            self.bases.push(base);
        }
        for (i, dtype) in self.kernel.scalars.iter().enumerate() {
            let slot = self.b.offset(words, self.b.i64(8 * i as i64));
            let word = self.b.load(self.b.int(64), slot, 8);
            self.scalar(*dtype, word);
        }
    }

    /// The next host scalar, from its word.
    pub fn scalar(&mut self, dtype: DType, word: V) {
        self.scalars.push(match dtype {
            DType::F64 => self.b.bitcast(word, self.b.kind(Kind::F64, 1)),
            DType::Bool => self.b.icmp(IntPred::LLVMIntNE, word, self.b.i64(0)),
            _ => word,
        });
    }

    /// Whether every written operand starts at a multiple of 64 bytes.
    fn aligned(&self) -> V {
        let mut bits = self.b.i64(0);
        for (base, buf) in self.bases.iter().zip(&self.kernel.bufs) {
            if buf.space == Space::Out {
                bits = self.b.or(bits, self.b.ptr_to_int(*base));
            }
        }
        let low = self.b.and(bits, self.b.i64(63));
        self.b.icmp(IntPred::LLVMIntEQ, low, self.b.i64(0))
    }

    /// Returns from the kernel.
    pub fn leave(&self, code: V) {
        self.end_units();
        self.b.ret(code);
    }

    fn grid(&mut self) -> Result<(), LlvmError> {
        let (lo, hi) = (self.b.param(2), self.b.param(3));
        self.for_loop(POINT, lo, hi, 1, &[], &self.kernel.body)
    }

    pub fn ops(&mut self, ops: &[Op]) -> Result<(), LlvmError> {
        let mut i = 0;
        while let Some(op) = ops.get(i) {
            i += 1;
            match op {
                Op::Def { out, def } => {
                    let v = self.def(def, *out)?;
                    self.values[out.0 as usize] = Some(v);
                }
                Op::Store { to, by, value, lanes, stream } => {
                    let v = self.wide(*value, *lanes)?;
                    if let Some(Op::Store { to: second, by: further, value, lanes: n, .. }) = ops.get(i)
                        && n == lanes
                        && by.is_empty()
                        && further.is_empty()
                        && self.stores_pairs(to, second, *lanes)
                    {
                        i += 1;
                        let other = self.wide(*value, *lanes)?;
                        self.store_pairs(to, [v, other], *lanes)?;
                        continue;
                    }
                    self.store(to, &self.positions(by)?, v, *lanes, *stream)?;
                }
                Op::For(f) => self.for_op(f)?,
                Op::Prefetch { buf, at } => self.prefetch(*buf, at)?,
                Op::Transpose { from, to } => {
                    let rows = from.iter().map(|v| self.wide(*v, from.len() as u32)).collect::<Result<Vec<_>, _>>()?;
                    let kind = from.first().map_or(Kind::F32, |v| self.kernel.ty(*v).kind);
                    let columns =
                        if self.b.group.is_some() { self.turned_over(rows, kind) } else { self.transpose(rows) };
                    for (v, column) in to.iter().zip(columns) {
                        self.values[v.0 as usize] = Some(column);
                    }
                }
                Op::Mma(m) => self.mma(m)?,
                Op::Block(b) => self.block(b)?,
            }
        }
        Ok(())
    }

    pub fn value(&self, v: Val) -> Result<V, LlvmError> {
        self.values
            .get(v.0 as usize)
            .copied()
            .flatten()
            .ok_or_else(|| LlvmError::internal(format!("%{} is not defined", v.0)))
    }

    /// A value repeated to `lanes` if it is a scalar.
    pub fn wide(&self, v: Val, lanes: u32) -> Result<V, LlvmError> {
        let value = self.value(v)?;
        Ok(if self.kernel.ty(v).lanes == lanes { value } else { self.b.splat(value, lanes) })
    }

    /// Positions with their lanes and strides.
    fn positions(&self, by: &[(Val, i64)]) -> Result<Vec<By>, LlvmError> {
        by.iter().map(|(p, stride)| Ok((self.value(*p)?, self.kernel.ty(*p).lanes, *stride))).collect()
    }

    fn def(&mut self, def: &Def, out: Val) -> Result<V, LlvmError> {
        let ty = self.kernel.ty(out);
        let (kind, lanes) = (ty.kind, ty.lanes);
        Ok(match def {
            Def::Const(Scalar::F(x)) => self.b.const_float(kind, *x, lanes),
            Def::Const(Scalar::I(x)) => self.b.const_int(self.b.kind(kind, 1), *x, lanes),
            Def::Scalar(n) => {
                let v = *self.scalars.get(*n as usize).ok_or_else(|| LlvmError::internal("no such scalar"))?;
                self.b.splat(v, lanes)
            }
            Def::Index(e) => self.index(e, lanes)?,
            Def::Load(access) => self.load(access, &[], lanes)?,
            Def::Gather { from, by } => self.load(from, &self.positions(by)?, lanes)?,
            Def::Position { arg, check, valid } => {
                let v = self.wide(*arg, lanes)?;
                self.checked_position(v, *check, *valid, lanes)?
            }
            Def::Within(guards) => {
                let all = self.guards(guards, lanes)?;
                all.unwrap_or_else(|| self.b.const_int(self.b.int(1), 1, lanes))
            }
            Def::HalfBits(arg) => {
                let half = self.encode(self.wide(*arg, lanes)?, DType::F16, lanes)?;
                self.b.bitcast(half, self.b.kind(Kind::I16, lanes))
            }
            Def::Half { low, high } => {
                let i16 = self.b.kind(Kind::I16, lanes);
                let [low, high] = [self.wide(*low, lanes)?, self.wide(*high, lanes)?].map(|v| self.b.zext(v, i16));
                let bits = self.b.or(low, self.b.shl(high, self.b.const_int(self.b.int(16), 8, lanes)));
                let half = self.b.bitcast(bits, self.b.vec(self.b.half(), lanes));
                self.b.fpext(half, self.b.kind(Kind::F32, lanes))
            }
            Def::Random { key, at } => self.random(*key, at, lanes)?,
            Def::Map { op, dtype, args } => {
                let args = args.iter().map(|a| self.wide(*a, lanes)).collect::<Result<Vec<_>, _>>()?;
                self.map(*op, *dtype, &args, lanes)?
            }
            Def::Cast { from, to, arg } => {
                let v = self.wide(*arg, lanes)?;
                self.cast(v, *from, *to, lanes)?
            }
            Def::RoundTf32(arg) => self.program(&tf32_program(), &[self.wide(*arg, lanes)?], lanes)?,
            Def::Fold { kind: monoid, acc, value, valid } => {
                let extreme = self.extremes.get(acc).copied();
                let (acc, value) = (self.wide(*acc, lanes)?, self.wide(*value, lanes)?);
                let folded = match extreme {
                    Some(x) => self.better(x, acc, value),
                    None => self.combine(*monoid, kind, acc, value, lanes),
                };
                if *valid < lanes { self.b.select(self.b.first_lanes(*valid, lanes), folded, acc) } else { folded }
            }
            Def::Pair { even, odd } if self.kernel.ty(*even).kind == Kind::I16 => {
                self.pair_of_ints(self.wide(*even, lanes)?, self.wide(*odd, lanes)?, lanes)
            }
            Def::Pair { even, odd } => self.pair(self.wide(*even, lanes)?, self.wide(*odd, lanes)?, lanes),
            Def::Lanes { kind: monoid, arg } => {
                let n = self.kernel.ty(*arg).lanes;
                self.lane_tree(*monoid, kind, self.value(*arg)?, n)
            }
            Def::Tree { kind: monoid, buf, at, count } => self.tree(*monoid, kind, lanes, *buf, at, *count)?,
        })
    }

    /// Word `at` of a key in each lane. Lanes that are neighbours share blocks, if the place of the first in its block is known.
    fn random(&self, key: [Val; 2], at: &Index, lanes: u32) -> Result<V, LlvmError> {
        let first = at.without(LANE);
        let whole = first.terms.iter().all(|(_, c)| c % random_words::WORDS == 0);
        let one = key.iter().all(|k| self.kernel.ty(*k).lanes == 1);
        if one && whole && lanes > 1 && at.stride(LANE) == Some(1) && self.b.group.is_none() {
            let skipped = first.constant.rem_euclid(random_words::WORDS);
            // Lanes before the first word are of blocks before the first: those behind count on from there.
            let block = self.b.ashr(self.index(&first.offset(-skipped), 1)?, self.b.i64(2));
            let key = [self.value(key[0])?, self.value(key[1])?];
            return Ok(random_words::neighbours(&self.b, key, block, skipped as u32, lanes));
        }
        let [low, high] = [self.wide(key[0], lanes)?, self.wide(key[1], lanes)?];
        self.program(&random_bits_program(), &[self.index(at, lanes)?, low, high], lanes)
    }

    pub fn program(&self, p: &Program, args: &[V], lanes: u32) -> Result<V, LlvmError> {
        program::emit(&self.b, p, args, lanes).ok_or_else(|| LlvmError::internal("a scalar program is not well formed"))
    }

    /// A program, then programs of one argument.
    fn chain(&self, programs: &[&Program], args: &[V], lanes: u32) -> Result<V, LlvmError> {
        let Some((first, rest)) = programs.split_first() else {
            return args.first().copied().ok_or_else(|| LlvmError::internal("an operation without operands"));
        };
        let mut v = self.program(first, args, lanes)?;
        for p in rest {
            v = self.program(p, &[v], lanes)?;
        }
        Ok(v)
    }

    fn map(&self, op: MapOp, dtype: DType, args: &[V], lanes: u32) -> Result<V, LlvmError> {
        let programs = map_programs(op, dtype);
        match programs.split_first() {
            None => Err(LlvmError::internal(format!("`{}` of {dtype}", op.name()))),
            Some((first, rest)) if dtype == DType::F16 && !rest.is_empty() => {
                Ok(self.round_f16(self.program(first, args, lanes)?, lanes))
            }
            Some(_) => self.chain(&programs, args, lanes),
        }
    }

    fn cast(&self, v: V, from: DType, to: DType, lanes: u32) -> Result<V, LlvmError> {
        let programs = cast_programs(from, to);
        if to == DType::F16 && !programs.is_empty() && kind_of(from) == Some(Kind::F32) {
            return Ok(self.round_f16(v, lanes));
        }
        self.chain(&programs, &[v], lanes)
    }

    /// What the conversion program to f16 does, as the processor's two instructions.
    pub fn round_f16(&self, v: V, lanes: u32) -> V {
        let f32 = self.b.kind(Kind::F32, lanes);
        let rounded = self.b.fpext(self.b.fptrunc(v, self.b.vec(self.b.half(), lanes)), f32);
        let nan = self.b.const_int(self.b.int(32), 0x7fc0_0000, lanes);
        self.b.select(self.b.fcmp(RealPred::LLVMRealUNO, v, v), self.b.bitcast(nan, f32), rounded)
    }

    /// `a ∘ b` of a reduction.
    pub fn combine(&self, monoid: Reduction, kind: Kind, a: V, b: V, lanes: u32) -> V {
        match (monoid, kind) {
            (Reduction::Sum | Reduction::HalfSum, Kind::F32 | Kind::F64) => self.b.fadd(a, b),
            (Reduction::Prod | Reduction::HalfProd, Kind::F32 | Kind::F64) => self.b.fmul(a, b),
            (Reduction::Max, Kind::F32 | Kind::F64) => self.b.extreme(false, kind, a, b, lanes),
            (Reduction::Min, Kind::F32 | Kind::F64) => self.b.extreme(true, kind, a, b, lanes),
            (Reduction::Sum | Reduction::HalfSum, _) => self.b.add(a, b),
            (Reduction::Prod | Reduction::HalfProd, _) => self.b.mul(a, b),
            (Reduction::Max, _) => program::int(&self.b, IntOp::Max, kind, a, b, lanes),
            (Reduction::Min, _) => program::int(&self.b, IntOp::Min, kind, a, b, lanes),
            (Reduction::Any, _) => self.b.or(a, b),
            (Reduction::All, _) => self.b.and(a, b),
        }
    }

    /// Lanes by halves: the upper half joins the lower one until one lane is left.
    fn lane_tree(&self, monoid: Reduction, kind: Kind, mut v: V, mut n: u32) -> V {
        if self.b.group.is_some() {
            return self.tree_of_lanes(monoid, kind, v, n);
        }
        while n > 1 {
            let half = n / 2;
            let pick = |from: u32| match half {
                1 => self.b.extract(v, from),
                _ => self.b.shuffle(v, &(from..from + half).collect::<Vec<_>>()),
            };
            v = self.combine(monoid, kind, pick(0), pick(half), half);
            n = half;
        }
        v
    }

    /// A square of lanes by butterflies: rows that are `s` apart exchange blocks of `s` lanes.
    fn transpose(&self, mut rows: Vec<V>) -> Vec<V> {
        let n = rows.len();
        let mut s = 1;
        while s < n {
            for i in (0..n).filter(|i| i & s == 0) {
                let (a, b) = (rows[i], rows[i + s]);
                let lanes = |from: usize| {
                    (0..n).map(|l| if l & s == 0 { l + from } else { n + l - s + from } as u32).collect::<Vec<_>>()
                };
                rows[i] = self.b.shuffle_two(a, b, &lanes(0));
                rows[i + s] = self.b.shuffle_two(a, b, &lanes(s));
            }
            s *= 2;
        }
        rows
    }

    /// The balanced tree over `count` elements in memory, level by level.
    fn tree(
        &mut self,
        monoid: Reduction,
        kind: Kind,
        lanes: u32,
        buf: u32,
        at: &Index,
        count: u64,
    ) -> Result<V, LlvmError> {
        if self.b.group.is_some() {
            return self.tree_of_threads(monoid, (kind, lanes), (buf, at), count);
        }
        let dtype = self.kernel.bufs[buf as usize].dtype;
        let bytes = (dtype.bytes() as u32 * lanes) as i64;
        let align = dtype.bytes() as u32;
        let start = self.b.mul(self.index(at, 1)?, self.b.i64(bytes / lanes as i64));
        let base = self.b.offset(self.bases[buf as usize], start);
        let ty = self.b.vec(self.storage(dtype), lanes);
        let mut n = count as i64;
        while n > 1 {
            let (zero, half) = (self.b.i64(0), self.b.i64(n / 2));
            self.raw_loop(zero, half, 1, &[], |e, i, _| {
                let element = |k: V| e.b.offset(base, e.b.mul(k, e.b.i64(bytes)));
                let two = e.b.mul(i, e.b.i64(2));
                let a = e.decode(e.b.load(ty, element(two), align), dtype, lanes)?;
                let b = e.decode(e.b.load(ty, element(e.b.add(two, e.b.i64(1))), align), dtype, lanes)?;
                let both = e.encode(e.combine(monoid, kind, a, b, lanes), dtype, lanes)?;
                e.b.store(both, element(i), align, false);
                Ok(vec![])
            })?;
            if n % 2 == 1 {
                let last = self.b.load(ty, self.b.offset(base, self.b.i64((n - 1) * bytes)), align);
                self.b.store(last, self.b.offset(base, self.b.i64(n / 2 * bytes)), align, false);
            }
            n = (n + 1) / 2;
        }
        self.decode(self.b.load(ty, base, align), dtype, lanes)
    }

    // --- indices

    /// An index as i64, one value or one per lane.
    pub fn index(&self, e: &Index, lanes: u32) -> Result<V, LlvmError> {
        let i64 = self.b.int(64);
        let mut sum: Option<V> = None;
        for (term, c) in &e.terms {
            let x = match term {
                Term::Var(LANE) => self.b.iota(lanes),
                Term::Var(v) => self.b.splat(self.var(*v)?, lanes),
                Term::Div(e, n) => self.b.udiv(self.index(e, lanes)?, self.b.const_int(i64, *n, lanes)),
                Term::Mod(e, n) => self.b.urem(self.index(e, lanes)?, self.b.const_int(i64, *n, lanes)),
            };
            let x = if *c == 1 { x } else { self.b.mul(x, self.b.const_int(i64, *c, lanes)) };
            sum = Some(sum.map_or(x, |s| self.b.add(s, x)));
        }
        let constant = self.b.const_int(i64, e.constant, lanes);
        Ok(match sum {
            Some(s) if e.constant == 0 => s,
            Some(s) => self.b.add(s, constant),
            None => constant,
        })
    }

    fn var(&self, v: Var) -> Result<V, LlvmError> {
        self.vars
            .get(v.0 as usize)
            .copied()
            .flatten()
            .ok_or_else(|| LlvmError::internal(format!("loop variable {} is not in scope", v.0)))
    }

    /// The least of several bounds (`smallest`), or the largest.
    pub fn bound(&self, bounds: &[Index], smallest: bool) -> Result<V, LlvmError> {
        let pred = if smallest { IntPred::LLVMIntSLT } else { IntPred::LLVMIntSGT };
        let mut best: Option<V> = None;
        for e in bounds {
            let x = self.index(e, 1)?;
            best = Some(best.map_or(x, |b| self.b.select(self.b.icmp(pred, x, b), x, b)));
        }
        best.ok_or_else(|| LlvmError::internal("a loop without bounds"))
    }

    // --- loops

    fn for_op(&mut self, f: &For) -> Result<(), LlvmError> {
        if f.dealt && self.kernel.warps > 0 {
            let (lo, hi) = (self.bound(&f.lo, false)?, self.bound(&f.hi, true)?);
            let lo = self.b.add(lo, self.group().warp);
            return self.for_loop(f.var, lo, hi, i64::from(self.kernel.warps), &f.carried, &f.body);
        }
        let constant = |bounds: &[Index], pick: fn(i64, i64) -> i64| {
            bounds
                .iter()
                .map(|e| e.as_constant())
                .try_fold(None, |best: Option<i64>, x| x.map(|x| Some(best.map_or(x, |b| pick(b, x)))))
        };
        let known = constant(&f.lo, i64::max).flatten().zip(constant(&f.hi, i64::min).flatten());
        if let Some((lo, hi)) = known {
            if lo >= hi {
                return self.skip(&f.carried);
            }
            if lo + f.step as i64 >= hi {
                return self.once(f, lo);
            }
        }
        let (lo, hi) = (self.bound(&f.lo, false)?, self.bound(&f.hi, true)?);
        let copies = self.copies(f);
        if copies > 1 {
            return self.unrolled(f, lo, hi, copies);
        }
        self.for_loop(f.var, lo, hi, f.step as i64, &f.carried, &f.body)
    }

    /// What a loop carries at its start, in the form in which it is carried.
    pub fn carried_in(&mut self, carried: &[Carry], body: &[Op]) -> Result<Vec<V>, LlvmError> {
        let form = |c: &Carry| {
            let v = self.wide(c.init, self.kernel.ty(c.inner).lanes)?;
            Ok(match self.extreme(c, body) {
                Some(x) => (self.ordered(x, v), Some((c.inner, x))),
                None => (v, None),
            })
        };
        let (values, extremes): (Vec<V>, Vec<_>) =
            carried.iter().map(form).collect::<Result<Vec<_>, LlvmError>>()?.into_iter().unzip();
        self.extremes.extend(extremes.into_iter().flatten());
        Ok(values)
    }

    /// The results of a loop from what it carried last.
    pub fn carried_out(&mut self, carried: &[Carry], last: Vec<V>) {
        for (c, v) in carried.iter().zip(last) {
            let extreme = self.extremes.remove(&c.inner);
            self.values[c.out.0 as usize] = Some(extreme.map_or(v, |x| self.float_of(x, v)));
        }
    }

    fn skip(&mut self, carried: &[Carry]) -> Result<(), LlvmError> {
        for c in carried {
            self.values[c.out.0 as usize] = Some(self.wide(c.init, self.kernel.ty(c.out).lanes)?);
        }
        Ok(())
    }

    fn once(&mut self, f: &For, at: i64) -> Result<(), LlvmError> {
        for c in &f.carried {
            self.values[c.inner.0 as usize] = Some(self.wide(c.init, self.kernel.ty(c.inner).lanes)?);
        }
        self.vars[f.var.0 as usize] = Some(self.b.i64(at));
        self.ops(&f.body)?;
        for c in &f.carried {
            self.values[c.out.0 as usize] = Some(self.wide(c.next, self.kernel.ty(c.out).lanes)?);
        }
        Ok(())
    }

    fn for_loop(&mut self, var: Var, lo: V, hi: V, step: i64, carried: &[Carry], body: &[Op]) -> Result<(), LlvmError> {
        let init = self.carried_in(carried, body)?;
        let out = self.raw_loop(lo, hi, step, &init, |e, i, inner| {
            e.vars[var.0 as usize] = Some(i);
            for (c, v) in carried.iter().zip(inner) {
                e.values[c.inner.0 as usize] = Some(*v);
            }
            e.ops(body)?;
            carried.iter().map(|c| e.wide(c.next, e.kernel.ty(c.inner).lanes)).collect()
        })?;
        self.vars[var.0 as usize] = None;
        self.carried_out(carried, out);
        Ok(())
    }

    /// `for i in lo..hi step step` with carried values; returns their last values.
    pub fn raw_loop(
        &mut self,
        lo: V,
        hi: V,
        step: i64,
        init: &[V],
        body: impl FnOnce(&mut Self, V, &[V]) -> Result<Vec<V>, LlvmError>,
    ) -> Result<Vec<V>, LlvmError> {
        let before = self.b.current();
        let (head, exit) = (self.b.block(), self.b.block());
        self.b.branch(self.b.icmp(IntPred::LLVMIntSLT, lo, hi), head, exit);
        self.b.position(head);
        let i = self.b.phi(self.b.int(64));
        self.b.incoming(i, lo, before);
        let inner: Vec<V> = init.iter().map(|v| self.b.phi(self.b.type_of(*v))).collect();
        for (phi, v) in inner.iter().zip(init) {
            self.b.incoming(*phi, *v, before);
        }
        let next = body(self, i, &inner)?;
        let latch = self.b.current();
        let i_next = self.b.add(i, self.b.i64(step));
        self.b.incoming(i, i_next, latch);
        for (phi, v) in inner.iter().zip(&next) {
            self.b.incoming(*phi, *v, latch);
        }
        self.b.branch(self.b.icmp(IntPred::LLVMIntSLT, i_next, hi), head, exit);
        self.b.position(exit);
        let out = init.iter().zip(&next).map(|(a, z)| {
            let phi = self.b.phi(self.b.type_of(*a));
            self.b.incoming(phi, *a, before);
            self.b.incoming(phi, *z, latch);
            phi
        });
        Ok(out.collect())
    }
}
