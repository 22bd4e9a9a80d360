//! Loads and stores: element types in memory, masks, contiguous, strided and scattered lanes.

use crate::LlvmError;
use crate::emit::Emitter;
use crate::instr::{IntPred, T, V};
use crate::masked::{Elements, Mask};
use tessera_base::{DType, bug};
use tessera_ir::index::{Index, Var};
use tessera_ir::tile::{Access, FIRST_LOOP, Guard, LANE, POINT};
use tessera_ops::convert;
use tessera_ops::scalar::Kind;

/// Elements between neighbouring lanes up to which whole vectors are read: beyond, lanes are
/// gathered one by one.
const STRIDE_MAX: i64 = 4;
/// Lanes of a vector, at most.
const LANES_MAX: u32 = 128;

/// How the lanes of an access lie in memory.
enum Lanes {
    /// All at one place.
    Same,
    Contiguous,
    /// Every second element: parts of complex numbers. The element between is in the buffer too.
    Second,
    /// A few elements apart.
    Strided(u32),
    /// Anywhere: a vector of positions.
    Spread,
}

/// A position that comes from data, with its lanes and the stride that it is multiplied by.
pub type By = (V, u32, i64);

/// Bytes beside a buffer that count as near: as good as surely there, or few vectors in any case.
const NEAR: i64 = 16 << 10;
/// Elements beyond a buffer at which nobody asks for a line.
const FAR: i64 = 16 << 10;

impl Emitter<'_> {
    /// The type of an element in memory.
    pub fn storage(&self, dtype: DType) -> T {
        match dtype {
            DType::F64 => self.b.kind(Kind::F64, 1),
            DType::F32 | DType::Tf32 => self.b.kind(Kind::F32, 1),
            DType::F16 => self.b.half(),
            DType::I64 | DType::C64 => self.b.int(64),
            DType::I32 => self.b.int(32),
            DType::I16 | DType::Bf16 => self.b.int(16),
            DType::I8 | DType::U8 | DType::Bool | DType::F8E4M3 | DType::F8E5M2 => self.b.int(8),
        }
    }

    fn lanes_of(&self, access: &Access, by: &[By], lanes: u32) -> Lanes {
        match access.at.stride(LANE) {
            _ if by.iter().any(|(_, n, _)| *n > 1) => Lanes::Spread,
            _ if lanes == 1 => Lanes::Same,
            Some(0) if !access.guards.iter().any(|g| g.index.uses(LANE)) => Lanes::Same,
            Some(1) => Lanes::Contiguous,
            Some(2) if by.is_empty() && access.guards.is_empty() && self.in_pairs(access) => Lanes::Second,
            Some(n @ 2..=STRIDE_MAX) if lanes >= 4 => Lanes::Strided(n as u32),
            _ => Lanes::Spread,
        }
    }

    /// Whether the buffer is made of pairs, of which all lanes take the first or all the second.
    fn in_pairs(&self, access: &Access) -> bool {
        let buf = &self.kernel.bufs[access.buf as usize];
        buf.elems.is_multiple_of(2) && access.at.terms.iter().all(|(_, c)| c % 2 == 0)
    }

    /// Address and mask of the pairs that an access of [`Lanes::Second`] takes its elements from.
    fn pairs(&self, access: &Access, lanes: u32) -> Result<(V, Mask), LlvmError> {
        let first = access.at.without(LANE).offset(-access.at.constant.rem_euclid(2));
        let own = (access.valid < lanes).then(|| self.b.first_lanes(2 * access.valid, 2 * lanes));
        let mask = Mask { held: None, lanes: own };
        Ok((self.address(access.buf, self.index(&first, 1)?, 1), mask))
    }

    fn load_pairs(&self, access: &Access, lanes: u32) -> Result<V, LlvmError> {
        let dtype = self.kernel.bufs[access.buf as usize].dtype;
        let (p, mask) = self.pairs(access, lanes)?;
        let both = self.masked_load(self.elements(dtype), 2 * lanes, p, mask);
        let odd = access.at.constant.rem_euclid(2) as u32;
        Ok(self.b.shuffle(both, &(0..lanes).map(|l| 2 * l + odd).collect::<Vec<_>>()))
    }

    /// Whether two stores one after the other write the two halves of pairs.
    pub fn stores_pairs(&self, first: &Access, second: &Access, lanes: u32) -> bool {
        if self.b.group.is_some() {
            return false;
        }
        let even = first.at.constant.rem_euclid(2) == 0 && first.at.offset(1) == second.at;
        let alike = (first.buf, first.valid) == (second.buf, second.valid) && second.guards.is_empty();
        even && alike && lanes > 1 && matches!(self.lanes_of(first, &[], lanes), Lanes::Second)
    }

    /// Stores `values` into every first and every second element of pairs.
    pub fn store_pairs(&self, to: &Access, values: [V; 2], lanes: u32) -> Result<(), LlvmError> {
        let dtype = self.kernel.bufs[to.buf as usize].dtype;
        let [a, b] = [self.encode(values[0], dtype, lanes)?, self.encode(values[1], dtype, lanes)?];
        let order: Vec<u32> = (0..lanes).flat_map(|l| [l, lanes + l]).collect();
        let both = self.b.shuffle_two(a, b, &order);
        let (p, mask) = self.pairs(to, lanes)?;
        self.masked_store(self.elements(dtype), 2 * lanes, both, p, mask);
        Ok(())
    }

    /// Whether all guards hold: one bit, or one per lane where a guard depends on the lane.
    pub fn guards(&self, guards: &[Guard], lanes: u32) -> Result<Option<V>, LlvmError> {
        let mut all: Option<(V, u32)> = None;
        for g in guards {
            let wide = if g.index.uses(LANE) { lanes } else { 1 };
            let held = match g.index.stride(LANE) {
                Some(stride) if wide > 1 && self.b.group.is_none() && self.is_small(g) => {
                    self.small_guard(g, stride, lanes)?
                }
                _ => {
                    let at = self.index(&g.index, wide)?;
                    let i64 = self.b.int(64);
                    let shifted = self.b.sub(at, self.b.const_int(i64, g.lo, wide));
                    self.b.icmp(IntPred::LLVMIntULT, shifted, self.b.const_int(i64, (g.hi - g.lo).max(0), wide))
                }
            };
            all = Some(match all {
                None => (held, wide),
                Some((other, n)) => {
                    let width = n.max(wide);
                    (self.b.and(self.widen(other, n, width), self.widen(held, wide, width)), width)
                }
            });
        }
        Ok(all.map(|(v, n)| self.widen(v, n, lanes)))
    }

    fn widen(&self, v: V, from: u32, to: u32) -> V {
        if from == to { v } else { self.b.splat(v, to) }
    }

    /// Whether all values of a guard fit 32 bits: lanes then take half the registers.
    fn is_small(&self, g: &Guard) -> bool {
        const MOST: i64 = 1 << 30;
        let (lo, hi) = self.range_of(&g.index);
        [lo, hi, g.lo, g.hi].iter().all(|v| (-MOST..MOST).contains(v))
    }

    /// Bounds of an index.
    fn range_of(&self, e: &Index) -> (i64, i64) {
        e.range(&|v: Var| match v {
            POINT => (0, self.kernel.grid.min(i64::MAX as u64) as i64),
            LANE => (0, i64::from(LANES_MAX)),
            v => match self.kernel.vars.get((v.0 - FIRST_LOOP) as usize) {
                Some(last) => (0, *last),
                None => bug!("the variable {} is that of no loop", v.0),
            },
        })
    }

    /// A guard of lanes that are `stride` apart, in 32 bits.
    fn small_guard(&self, g: &Guard, stride: i64, lanes: u32) -> Result<V, LlvmError> {
        let i32 = self.b.int(32);
        let first = self.index(&g.index.without(LANE).offset(-g.lo), 1)?;
        let steps: Vec<V> = (0..i64::from(lanes)).map(|l| self.b.const_int(i32, l * stride, 1)).collect();
        let at = self.b.add(self.b.splat(self.b.trunc(first, i32), lanes), self.b.const_vector(&steps));
        Ok(self.b.icmp(IntPred::LLVMIntULT, at, self.b.const_int(i32, (g.hi - g.lo).max(0), lanes)))
    }

    /// The mask of a vector access. What all lanes share stays apart, so that the masks of lanes can leave the inner loop.
    fn mask(&self, access: &Access, lanes: u32) -> Result<Mask, LlvmError> {
        let tail = (access.valid < lanes).then(|| self.b.first_lanes(access.valid, lanes));
        let (of_lanes, shared): (Vec<Guard>, Vec<Guard>) =
            access.guards.iter().cloned().partition(|g| g.index.uses(LANE));
        let own = match (tail, self.guards(&of_lanes, lanes)?) {
            (Some(t), Some(g)) => Some(self.b.and(t, g)),
            (t, g) => t.or(g),
        };
        Ok(Mask { held: self.guards(&shared, 1)?, lanes: own })
    }

    /// The elements of a buffer.
    pub fn elements(&self, dtype: DType) -> Elements {
        Elements { ty: self.storage(dtype), bytes: dtype.bytes() as u32 }
    }

    /// Asks for the line of an element, into the second-level cache.
    pub fn prefetch(&self, buf: u32, at: &Index) -> Result<(), LlvmError> {
        // Many threads wait at once: what one asks for early takes room from the others.
        if self.b.group.is_some() {
            return Ok(());
        }
        let (lo, hi) = self.range_of(at);
        let last = self.kernel.bufs[buf as usize].elems as i64 - 1;
        let beyond = lo < -FAR || hi > last + FAR;
        let at = self.index(at, 1)?;
        self.ask(self.address(buf, if beyond { self.between(at, Some(0), last) } else { at }, 1), 2);
        Ok(())
    }

    /// Asks for the line at `p`, into the nearest cache (3) or the second (2).
    pub fn ask(&self, p: V, level: i64) {
        let word = |n: i64| self.b.const_int(self.b.int(32), n, 1);
        self.b.intrinsic("llvm.prefetch", &[self.b.ptr()], &[p, word(0), word(level), word(1)]);
    }

    pub fn address(&self, buf: u32, elements: V, lanes: u32) -> V {
        let bytes = self.kernel.bufs[buf as usize].dtype.bytes() as i64;
        let scaled = self.b.mul(elements, self.b.const_int(self.b.int(64), bytes, lanes));
        self.b.offset(self.bases[buf as usize], scaled)
    }

    /// An index plus positions times their strides.
    pub fn element_offset(&self, at: &Index, by: &[By], lanes: u32) -> Result<V, LlvmError> {
        let i64 = self.b.int(64);
        let mut sum = self.index(at, lanes)?;
        for (position, n, stride) in by {
            let wide = self.widen(*position, *n, lanes);
            sum = self.b.add(sum, self.b.mul(wide, self.b.const_int(i64, *stride, lanes)));
        }
        Ok(sum)
    }

    /// Positions counted from the start. Returns from the kernel with the number of check `check`
    /// and the position in scratch where one of the first `valid` lanes breaks it; the other
    /// lanes become 0.
    pub fn checked_position(&mut self, v: V, check: u32, valid: u32, lanes: u32) -> Result<V, LlvmError> {
        let bounds = self.kernel.checks.get(check as usize).ok_or_else(|| LlvmError::internal("no such check"))?;
        let b = &self.b;
        let int = |n: u64| b.const_int(b.int(64), n.min(i64::MAX as u64) as i64, lanes);
        let zero = int(0);
        // Positions that are allowed, counted from the start, and how many of them there are.
        let (at, count) = match bounds.block {
            None => {
                let negative = b.icmp(IntPred::LLVMIntSLT, v, zero);
                (b.select(negative, b.add(v, int(bounds.size)), v), bounds.size)
            }
            Some(block) => (v, (bounds.size + 1).saturating_sub(block)),
        };
        let mut bad = b.icmp(IntPred::LLVMIntUGE, at, int(count));
        let mut out = at;
        if valid < lanes {
            let inside = b.first_lanes(valid, lanes);
            bad = b.and(bad, inside);
            out = b.select(inside, at, zero);
        }
        if b.group.is_some() {
            let own = b.own(lanes);
            for e in 0..own {
                self.stop_group(self.b.own_of(bad, e, own), check, self.b.own_of(v, e, own));
            }
            // Warps that wait for each other go on together.
            return Ok(if self.kernel.warps > 0 { self.b.select(bad, zero, out) } else { out });
        }
        let any = if lanes == 1 { bad } else { b.intrinsic("llvm.vector.reduce.or", &[b.type_of(bad)], &[bad]) };
        let (stop, go_on) = (b.block(), b.block());
        b.branch(any, stop, go_on);
        b.position(stop);
        // The first lane that breaks the check.
        let mut first = if lanes == 1 { v } else { b.extract(v, lanes - 1) };
        for l in (0..lanes.saturating_sub(1)).rev() {
            first = b.select(b.extract(bad, l), b.extract(v, l), first);
        }
        b.store(first, b.param(4), 8, false);
        self.leave(b.i64(i64::from(check) + 1));
        b.position(go_on);
        Ok(out)
    }

    /// Loads `lanes` elements as values of their compute kind, further on by the positions `by`.
    pub fn load(&self, access: &Access, by: &[By], lanes: u32) -> Result<V, LlvmError> {
        let buf = &self.kernel.bufs[access.buf as usize];
        let (dtype, align) = (buf.dtype, buf.dtype.bytes() as u32);
        let element = self.storage(dtype);
        let ty = self.b.vec(element, lanes);
        if buf.elems == 0 {
            return self.decode(self.b.zero(ty), dtype, lanes);
        }
        if self.b.group.is_some() {
            return self.decode(self.load_of_thread(access, by, lanes)?, dtype, lanes);
        }
        // One element under a guard is a choice, as all lanes at one place are.
        let lie = if lanes == 1 { Lanes::Same } else { self.lanes_of(access, by, lanes) };
        let raw = match lie {
            Lanes::Same => {
                let held = self.guards(&access.guards, 1)?;
                let at = self.element_offset(&access.at, by, 1)?;
                // Where a guard fails the first element is read instead and dropped.
                let at = held.map_or(at, |h| self.b.select(h, at, self.b.i64(0)));
                let v = self.b.load(element, self.address(access.buf, at, 1), align);
                let v = held.map_or(v, |h| self.b.select(h, v, self.b.zero(element)));
                self.b.splat(v, lanes)
            }
            Lanes::Contiguous => {
                let mask = self.mask(access, lanes)?;
                let p = self.first_address(access, by, mask, lanes)?;
                self.masked_load(self.elements(dtype), lanes, p, mask)
            }
            Lanes::Second => self.load_pairs(access, lanes)?,
            Lanes::Strided(step) => {
                let mask = self.mask(access, lanes)?;
                self.load_strided(self.first_address(access, by, mask, lanes * step)?, step, access, mask, lanes)?
            }
            Lanes::Spread => {
                let at = self.element_offset(&access.at, by, lanes)?;
                let from = self.address(access.buf, at, lanes);
                self.masked_gather(self.elements(dtype), lanes, from, self.mask(access, lanes)?)
            }
        };
        self.decode(raw, dtype, lanes)
    }

    /// Where lane 0 of a vector of `span` elements reads. Where no lane reads anything that may be far from the buffer: the
    /// nearest place beside it is taken then. A masked load of memory that is not there reads nothing, but takes a processor
    /// more than a hundred cycles to find out.
    fn first_address(&self, access: &Access, by: &[By], mask: Mask, span: u32) -> Result<V, LlvmError> {
        let buf = &self.kernel.bufs[access.buf as usize];
        let first = access.at.without(LANE);
        let mut at = self.element_offset(&first, by, 1)?;
        let (lo, hi) = self.range_of(&first);
        let (least, most) = (1 - i64::from(span), buf.elems as i64 - 1);
        let near = NEAR / buf.dtype.bytes() as i64;
        let below = lo < least - near;
        if !access.guards.is_empty() && by.is_empty() && (below || hi > most + near) {
            at = match mask {
                Mask { held: Some(held), lanes: None } => self.b.select(held, at, self.b.i64(0)),
                _ => self.between(at, below.then_some(least), most),
            };
        }
        Ok(self.address(access.buf, at, 1))
    }

    /// `at`, or the bound that it is beyond.
    fn between(&self, at: V, least: Option<i64>, most: i64) -> V {
        let most = self.b.i64(most);
        let at = self.b.select(self.b.icmp(IntPred::LLVMIntSLT, at, most), at, most);
        let Some(least) = least.map(|n| self.b.i64(n)) else { return at };
        self.b.select(self.b.icmp(IntPred::LLVMIntSGT, at, least), at, least)
    }

    /// Elements `step` apart: the vectors that hold them, of which only these are read, then put together.
    fn load_strided(&self, p: V, step: u32, access: &Access, mask: Mask, lanes: u32) -> Result<V, LlvmError> {
        let of = self.elements(self.kernel.bufs[access.buf as usize].dtype);
        let none = self.b.first_lanes(0, lanes);
        let wanted = mask.lanes.unwrap_or_else(|| self.b.first_lanes(lanes, lanes));
        let vector = |i: u32| {
            let place = |w: u32| if (i * lanes + w).is_multiple_of(step) { (i * lanes + w) / step } else { lanes };
            let read = self.b.shuffle_two(wanted, none, &(0..lanes).map(place).collect::<Vec<_>>());
            let p = self.b.offset(p, self.b.i64(i64::from(i * lanes * of.bytes)));
            self.masked_load(of, lanes, p, Mask { lanes: Some(read), ..mask })
        };
        let from = |l: u32| (l * step / lanes, l * step % lanes);
        let first = |l: u32| match from(l) {
            (0, at) => at,
            (1, at) => lanes + at,
            _ => 0,
        };
        let mut out = self.b.shuffle_two(vector(0), vector(1), &(0..lanes).map(first).collect::<Vec<_>>());
        for i in 2..step {
            let next = |l: u32| if from(l).0 == i { lanes + from(l).1 } else { l };
            out = self.b.shuffle_two(out, vector(i), &(0..lanes).map(next).collect::<Vec<_>>());
        }
        Ok(out)
    }

    /// Stores `lanes` elements, further on by the positions `by`.
    pub fn store(&self, to: &Access, by: &[By], value: V, lanes: u32, stream: bool) -> Result<(), LlvmError> {
        let buf = &self.kernel.bufs[to.buf as usize];
        let (dtype, align) = (buf.dtype, buf.dtype.bytes() as u32);
        let ty = self.b.vec(self.storage(dtype), lanes);
        let value = self.encode(value, dtype, lanes)?;
        if self.b.group.is_some() {
            return self.store_of_thread(to, by, value, lanes);
        }
        if lanes == 1 && !to.guards.is_empty() {
            return Err(LlvmError::internal("a guarded store of one element"));
        }
        match self.lanes_of(to, by, lanes) {
            Lanes::Same if lanes == 1 => {
                let p = self.address(to.buf, self.element_offset(&to.at, by, 1)?, 1);
                let value = if lanes == 1 { value } else { self.b.extract(value, 0) };
                self.b.store(value, p, align, false);
            }
            Lanes::Contiguous => {
                let p = self.address(to.buf, self.element_offset(&to.at.without(LANE), by, 1)?, 1);
                // LLVM 22 turns a masked store of a truncated vector with one lane set into a
                // scalar store of the value before truncation: it writes too much.
                if to.valid == 1 && to.guards.is_empty() {
                    self.b.store(self.b.extract(value, 0), p, align, false);
                    return Ok(());
                }
                let mask = self.mask(to, lanes)?;
                if mask.touches_all()
                    && stream
                    && self.streaming
                    && in_steps_of(&to.at.without(LANE), (64 / align).min(lanes))
                {
                    self.b.store(value, p, (align * lanes).min(64), true);
                } else {
                    self.masked_store(self.elements(dtype), lanes, value, p, mask);
                }
            }
            // Lanes that go to one element go there in order.
            Lanes::Same | Lanes::Second | Lanes::Strided(_) | Lanes::Spread => {
                let at = self.element_offset(&to.at, by, lanes)?;
                let Mask { held, lanes: own } = self.mask(to, lanes)?;
                let own = own.unwrap_or_else(|| self.b.first_lanes(lanes, lanes));
                let mask = held.map_or(own, |held| self.b.and(self.b.splat(held, lanes), own));
                let p = self.address(to.buf, at, lanes);
                let types = [ty, self.b.vec(self.b.ptr(), lanes)];
                let v = self.b.intrinsic("llvm.masked.scatter", &types, &[value, p, mask]);
                self.b.align_argument(v, 2, align);
            }
        }
        Ok(())
    }

    /// Bits in memory to a value of the compute kind; exact.
    pub fn decode(&self, raw: V, dtype: DType, lanes: u32) -> Result<V, LlvmError> {
        let b = &self.b;
        Ok(match dtype {
            DType::Bool => b.icmp(IntPred::LLVMIntNE, raw, b.const_int(b.int(8), 0, lanes)),
            DType::F16 => b.fpext(raw, b.kind(Kind::F32, lanes)),
            DType::Bf16 => {
                let wide = b.zext(raw, b.kind(Kind::I32, lanes));
                let bits = b.shl(wide, b.const_int(b.int(32), 16, lanes));
                b.bitcast(bits, b.kind(Kind::F32, lanes))
            }
            DType::F8E4M3 | DType::F8E5M2 => match convert::widen_program(dtype) {
                Some(p) => self.program(p, &[raw], lanes)?,
                None => raw,
            },
            _ => raw,
        })
    }

    /// A value, already rounded to `dtype`, as the bits in memory.
    pub fn encode(&self, value: V, dtype: DType, lanes: u32) -> Result<V, LlvmError> {
        let b = &self.b;
        Ok(match dtype {
            DType::Bool => b.zext(value, b.vec(b.int(8), lanes)),
            DType::F16 => b.fptrunc(value, b.vec(b.half(), lanes)),
            DType::Bf16 => {
                let bits = b.bitcast(value, b.kind(Kind::I32, lanes));
                b.trunc(b.lshr(bits, b.const_int(b.int(32), 16, lanes)), b.kind(Kind::I16, lanes))
            }
            DType::F8E4M3 | DType::F8E5M2 => match convert::store_program(dtype) {
                Some(p) => self.program(p, &[value], lanes)?,
                None => value,
            },
            _ => value,
        })
    }
}

/// Whether an index is a multiple of `n` wherever its variables stand.
fn in_steps_of(at: &Index, n: u32) -> bool {
    at.constant % i64::from(n) == 0 && at.terms.iter().all(|(_, c)| c % i64::from(n) == 0)
}
