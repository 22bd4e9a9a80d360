//! Products of bf16 in units of 16 pairs ([`tessera_ops::reference::Unit`]): by the processor's unit for matrices (AMX), or by
//! vectors with the same bits, where a product has too few rows to have its right operand packed for it.

use crate::LlvmError;
use crate::emit::Emitter;
use crate::instr::{IntPred, V};
use crate::matrix_registers::{CONFIGURATION, PAIRS, SIDE, blocks, configuration, left, right, sums};
use crate::mma::Steps;
use tessera_ir::tile::Mma;
use tessera_ops::scalar::Kind;

/// The feature of a target that has the unit for matrices.
pub const MATRIX_UNIT: &str = "amx-bf16";
/// Steps of a unit that are written out.
const UNROLL: i64 = 4;
/// Bytes of a row of a register.
const ROW_BYTES: i64 = 64;

impl Emitter<'_> {
    /// Before everything else: the registers are given their sizes once, since that takes as long as some of the products.
    pub fn begin_units(&self) {
        if let Some(sizes) = &self.unit {
            self.configure(self.b.constant_bytes(sizes, CONFIGURATION as u32));
        }
    }

    /// What [`Emitter::begin_units`] took is given back.
    pub fn end_units(&self) {
        if self.unit.is_some() {
            self.b.intrinsic("llvm.x86.tilerelease", &[], &[]);
        }
    }

    fn configure(&self, sizes: V) {
        self.b.intrinsic("llvm.x86.ldtilecfg", &[], &[sizes]);
    }

    /// Whether a tile is computed by the unit for matrices: vectors give the same bits where there is none.
    pub(super) fn by_matrix_unit(&self, m: &Mma) -> bool {
        m.matrix_unit && self.target.has(MATRIX_UNIT)
    }

    /// A tile by the unit for matrices, from zero into `c`.
    pub(super) fn chain_by_matrix_unit(
        &mut self,
        m: &Mma,
        (a, b, c): (V, V, V),
        steps: Steps,
    ) -> Result<(), LlvmError> {
        let depth = steps.limit;
        let own = self.unit != Some(configuration(m, PAIRS as u32));
        let ragged = steps.known.is_none_or(|d| d % PAIRS != 0);
        // The sizes for a last unit of so many pairs; the first are those of a whole one.
        let counts = if ragged { PAIRS as u32 } else { 1 };
        let all = (0..counts).map(|n| configuration(m, if n == 0 { PAIRS as u32 } else { n }));
        let table = self.b.constant_bytes(&all.flatten().collect::<Vec<u8>>(), CONFIGURATION as u32);
        if own {
            self.configure(table);
        }
        self.zero_sums(m);
        let rounds = self.b.and(depth, self.b.i64(-PAIRS));
        let zero = self.b.i64(0);
        let ends = self.raw_loop(zero, rounds, PAIRS, &[a, b], |e, _, carried| {
            let (a, b) = (carried[0], carried[1]);
            e.multiply(m, a, b);
            Ok(vec![e.b.offset(a, e.b.i64(ROW_BYTES)), e.b.offset(b, e.b.i64(PAIRS * 4 * m.b.step))])
        })?;
        self.store_sums(m, c);
        let rest = self.b.sub(depth, rounds);
        if ragged {
            let (last, join) = (self.b.block(), self.b.block());
            self.b.branch(self.b.icmp(IntPred::LLVMIntNE, rest, zero), last, join);
            self.b.position(last);
            let sizes = self.b.offset(table, self.b.mul(rest, self.b.i64(CONFIGURATION as i64)));
            self.configure(sizes);
            self.load_sums(m, c);
            self.multiply(m, ends[0], ends[1]);
            self.store_sums(m, c);
            if !own {
                self.begin_units();
            }
            self.b.jump(join);
            self.b.position(join);
        }
        if own {
            self.begin_units();
        }
        Ok(())
    }

    fn register(&self, n: u32) -> V {
        self.b.const_int(self.b.int(8), i64::from(n), 1)
    }

    fn zero_sums(&self, m: &Mma) {
        for (i, _) in blocks(m.rows) {
            for (j, _) in blocks(m.cols) {
                self.b.intrinsic("llvm.x86.tilezero", &[], &[self.register(sums(i, j))]);
            }
        }
    }

    fn load_sums(&self, m: &Mma, c: V) {
        self.each_sum(m, c, "llvm.x86.tileloadd64");
    }

    fn store_sums(&self, m: &Mma, c: V) {
        self.each_sum(m, c, "llvm.x86.tilestored64");
    }

    fn each_sum(&self, m: &Mma, c: V, instruction: &str) {
        for (i, _) in blocks(m.rows) {
            for (j, _) in blocks(m.cols) {
                let at = self.at(c, i64::from(i * SIDE) * m.c.row + i64::from(j * SIDE), &m.c);
                let args = [self.register(sums(i, j)), at, self.b.i64(4 * m.c.row)];
                self.b.intrinsic(instruction, &[], &args);
            }
        }
    }

    /// One unit, or what is left of one.
    fn multiply(&self, m: &Mma, a: V, b: V) {
        let load = |register: u32, at: V, stride: i64| {
            let args = [self.register(register), at, self.b.i64(stride)];
            self.b.intrinsic("llvm.x86.tileloadd64", &[], &args);
        };
        for (j, _) in blocks(m.cols) {
            load(right(j), self.b.offset(b, self.b.i64(i64::from(j) * ROW_BYTES)), 4 * m.b.step);
        }
        for (i, _) in blocks(m.rows) {
            load(left(i), self.b.offset(a, self.b.i64(i64::from(i * SIDE) * 2 * m.a.row)), 2 * m.a.row);
            for (j, _) in blocks(m.cols) {
                let args = [sums(i, j), left(i), right(j)].map(|n| self.register(n));
                self.b.intrinsic("llvm.x86.tdpbf16ps", &[], &args);
            }
        }
    }

    /// The same by vectors: two chains for each element. Gives the accumulators.
    pub(super) fn chain_in_units(&mut self, m: &Mma, (a, b): (V, V), steps: Steps) -> Result<Vec<V>, LlvmError> {
        let depth = steps.limit;
        let sums = vec![self.b.zero(self.b.kind(m.kind, m.lanes)); (m.rows * m.cols.div_ceil(m.lanes)) as usize];
        let none = [&sums[..], &sums].concat();
        let rounds = self.b.and(depth, self.b.i64(-PAIRS));
        let (zero, whole) = (self.b.i64(0), self.b.i64(PAIRS));
        let carried: Vec<V> = [a, b].into_iter().chain(sums).collect();
        let out = self.raw_loop(zero, rounds, PAIRS, &carried, |e, _, carried| {
            let begin: Vec<V> = carried[..2].iter().chain(&none).copied().collect();
            let unit = e.raw_loop(zero, whole, UNROLL, &begin, |e, _, at| e.unit_steps(m, at, UNROLL))?;
            Ok(unit[..2].iter().copied().chain(e.onto(m, &carried[2..], &unit[2..])).collect())
        })?;
        let mut sums = out[2..].to_vec();
        if steps.known.is_none_or(|d| d % PAIRS != 0) {
            let begin: Vec<V> = out[..2].iter().chain(&none).copied().collect();
            let rest = self.raw_loop(rounds, depth, 1, &begin, |e, _, at| e.unit_steps(m, at, 1))?;
            let some = self.b.icmp(IntPred::LLVMIntNE, rounds, depth);
            let closed = self.onto(m, &sums, &rest[2..]);
            sums = sums.iter().zip(closed).map(|(old, new)| self.b.select(some, new, *old)).collect();
        }
        Ok(sums)
    }

    /// Some steps of both chains: `at` is both addresses, the even chains, the odd ones.
    fn unit_steps(&self, m: &Mma, at: &[V], steps: i64) -> Result<Vec<V>, LlvmError> {
        let (a, b, mut chains) = (at[0], at[1], at[2..].to_vec());
        for u in 0..steps {
            self.unit_step(m, a, b, u, &mut chains)?;
        }
        let next = [(a, &m.a), (b, &m.b)].map(|(at, p)| self.at(at, steps * self.stride(m, p), p));
        Ok(next.into_iter().chain(chains).collect())
    }

    /// The instruction takes two positions into one sum: where the other one has the factors −0 and 0, its product −0 changes
    /// no sum, not even one that is −0.
    fn unit_step(&self, m: &Mma, a: V, b: V, u: i64, chains: &mut [V]) -> Result<(), LlvmError> {
        let name = Self::pair_instruction(m.lanes)?;
        let vectors = m.cols.div_ceil(m.lanes) as usize;
        let half = chains.len() / 2;
        let numbers = self.b.vec(self.b.bfloat(), 2 * m.lanes);
        let word = |n: u32, lanes: u32| self.b.const_int(self.b.int(32), i64::from(n), lanes);
        let masks = [(0x0000_ffff, 0x8000_0000), (0xffff_0000, 0x0000_8000)];
        let factors: Vec<V> = (0..vectors as u32).map(|j| self.right_pairs(m, b, u, j)).collect();
        for (chain, (own, other)) in masks.into_iter().enumerate() {
            let right: Vec<V> =
                factors.iter().map(|r| self.b.bitcast(self.b.and(*r, word(own, m.lanes)), numbers)).collect();
            for i in 0..m.rows {
                let pair = self.b.or(self.b.and(self.left_pair(m, a, i, u), word(own, 1)), word(other, 1));
                let left = self.b.bitcast(self.b.splat(pair, m.lanes), numbers);
                for (j, r) in right.iter().enumerate() {
                    let sum = &mut chains[chain * half + i as usize * vectors + j];
                    *sum = self.b.intrinsic(name, &[], &[*sum, left, *r]);
                }
            }
        }
        Ok(())
    }

    /// Sums with the units behind them.
    fn onto(&self, m: &Mma, sums: &[V], chains: &[V]) -> Vec<V> {
        let (even, odd) = chains.split_at(chains.len() / 2);
        let each = sums.iter().zip(even.iter().zip(odd));
        each.map(|(s, (e, o))| self.normal(m, self.b.fadd(*s, self.normal(m, self.b.fadd(*e, *o))))).collect()
    }

    /// Zero with its sign for a number below the normal ones.
    fn normal(&self, m: &Mma, x: V) -> V {
        let (wide, float) = (self.b.kind(Kind::I32, m.lanes), self.b.kind(m.kind, m.lanes));
        let word = |n: u32| self.b.const_int(self.b.int(32), i64::from(n), m.lanes);
        let bits = self.b.bitcast(x, wide);
        let small = self.b.icmp(IntPred::LLVMIntULT, self.b.and(bits, word(0x7fff_ffff)), word(0x0080_0000));
        self.b.bitcast(self.b.select(small, self.b.and(bits, word(0x8000_0000)), bits), float)
    }
}
