//! The microkernel: a register tile of a matrix product as one fused-multiply-add chain per
//! element, in ascending k.
//!
//! Plain IR is enough: accumulators are phis, the row operand is broadcast from memory (the
//! back end folds that into the multiply-add), k is unrolled by 4. Registers needed: rows ×
//! vectors accumulators, one per vector of the right operand, one broadcast.

use crate::LlvmError;
use crate::emit::Emitter;
use crate::instr::{IntPred, V};
use tessera_ir::tile::{Mma, Panel};
use tessera_ops::scalar::Kind;

const UNROLL: i64 = 4;

impl Emitter<'_> {
    pub fn mma(&mut self, m: &Mma) -> Result<(), LlvmError> {
        let start = |e: &Self, p: &Panel| -> Result<V, LlvmError> {
            let at = e.b.mul(e.index(&p.at, 1)?, e.b.i64(e.element_bytes(p)));
            Ok(e.b.offset(e.bases[p.buf as usize], at))
        };
        let (a, b, c) = (start(self, &m.a)?, start(self, &m.b)?, start(self, &m.c)?);
        let depth = self.bound(&m.depth, true)?;
        let init = self.accumulators(m, c)?;
        let known = m.depth.iter().map(|d| d.as_constant()).try_fold(i64::MAX, |n, d| d.map(|d| n.min(d)));
        let rounds = self.b.and(depth, self.b.i64(-UNROLL));
        let zero = self.b.i64(0);
        let mut acc = init;
        if known.is_none_or(|d| d >= UNROLL) {
            // Addresses step with the loop.
            let carried: Vec<V> = [a, b].into_iter().chain(acc).collect();
            let out = self.raw_loop(zero, rounds, UNROLL, &carried, |e, _, carried| {
                let (a, b, mut acc) = (carried[0], carried[1], carried[2..].to_vec());
                for u in 0..UNROLL {
                    e.rank_one(m, a, b, u, &mut acc);
                }
                let step = e.b.i64(UNROLL);
                Ok([e.step(a, &m.a, step), e.step(b, &m.b, step)].into_iter().chain(acc).collect())
            })?;
            acc = out[2..].to_vec();
        }
        match known {
            Some(d) => {
                let k = self.b.i64(d - d % UNROLL);
                let (a, b) = (self.step(a, &m.a, k), self.step(b, &m.b, k));
                for u in 0..d % UNROLL {
                    self.rank_one(m, a, b, u, &mut acc);
                }
            }
            None => {
                acc = self.raw_loop(rounds, depth, 1, &acc, |e, k, acc| {
                    let mut acc = acc.to_vec();
                    let (a, b) = (e.step(a, &m.a, k), e.step(b, &m.b, k));
                    e.rank_one(m, a, b, 0, &mut acc);
                    Ok(acc)
                })?;
            }
        }
        self.write_back(m, c, &acc);
        Ok(())
    }

    fn element_bytes(&self, p: &Panel) -> i64 {
        self.kernel.bufs[p.buf as usize].dtype.bytes() as i64
    }

    fn step(&self, base: V, p: &Panel, k: V) -> V {
        self.b.offset(base, self.b.mul(k, self.b.i64(p.step * self.element_bytes(p))))
    }

    fn at(&self, base: V, elements: i64, p: &Panel) -> V {
        self.b.offset(base, self.b.i64(elements * self.element_bytes(p)))
    }

    /// Lanes of vector `j` that lie inside the tile.
    fn valid(&self, m: &Mma, j: u32) -> u32 {
        (m.cols - j * m.lanes).min(m.lanes)
    }

    fn vectors(&self, m: &Mma) -> u32 {
        m.cols.div_ceil(m.lanes)
    }

    fn load_vector(&self, m: &Mma, p: V, valid: u32) -> V {
        let ty = self.b.kind(m.kind, m.lanes);
        let align = m.kind.bits() / 8;
        if valid == m.lanes {
            return self.b.load(ty, p, align);
        }
        let mask = self.b.first_lanes(valid, m.lanes);
        let v = self.b.intrinsic("llvm.masked.load", &[ty, self.b.ptr()], &[p, mask, self.b.zero(ty)]);
        self.b.align_argument(v, 1, align);
        v
    }

    fn accumulators(&mut self, m: &Mma, c: V) -> Result<Vec<V>, LlvmError> {
        let n = m.rows * self.vectors(m);
        let ty = self.b.kind(m.kind, m.lanes);
        if m.fresh.as_constant() == Some(0) {
            return Ok(vec![self.b.zero(ty); n as usize]);
        }
        let goes_on = self.b.icmp(IntPred::LLVMIntNE, self.index(&m.fresh, 1)?, self.b.i64(0));
        let (before, load, join) = (self.b.current(), self.b.block(), self.b.block());
        self.b.branch(goes_on, load, join);
        self.b.position(load);
        let mut loaded = vec![];
        for i in 0..m.rows {
            for j in 0..self.vectors(m) {
                let p = self.at(c, i as i64 * m.c.row + (j * m.lanes) as i64, &m.c);
                loaded.push(self.load_vector(m, p, self.valid(m, j)));
            }
        }
        self.b.jump(join);
        self.b.position(join);
        Ok(loaded
            .into_iter()
            .map(|v| {
                let phi = self.b.phi(ty);
                self.b.incoming(phi, self.b.zero(ty), before);
                self.b.incoming(phi, v, load);
                phi
            })
            .collect())
    }

    /// One step of k, `u` steps after the base addresses.
    fn rank_one(&self, m: &Mma, a: V, b: V, u: i64, acc: &mut [V]) {
        let ty = self.b.kind(m.kind, m.lanes);
        let vectors = self.vectors(m);
        let right: Vec<V> = (0..vectors)
            .map(|j| self.load_vector(m, self.at(b, u * m.b.step + (j * m.lanes) as i64, &m.b), self.valid(m, j)))
            .collect();
        for i in 0..m.rows {
            let p = self.at(a, i as i64 * m.a.row + u * m.a.step, &m.a);
            let scalar = self.b.load(self.b.kind(m.kind, 1), p, m.kind.bits() / 8);
            let left = self.b.splat(scalar, m.lanes);
            for (j, r) in right.iter().enumerate() {
                let c = &mut acc[i as usize * vectors as usize + j];
                *c = match m.kind {
                    Kind::F32 | Kind::F64 => self.b.intrinsic("llvm.fma", &[ty], &[left, *r, *c]),
                    Kind::Bool => self.b.or(self.b.and(left, *r), *c),
                    _ => self.b.add(self.b.mul(left, *r), *c),
                };
            }
        }
    }

    fn write_back(&self, m: &Mma, c: V, acc: &[V]) {
        let align = m.kind.bits() / 8;
        let vectors = self.vectors(m);
        for i in 0..m.rows {
            for j in 0..vectors {
                let p = self.at(c, i as i64 * m.c.row + (j * m.lanes) as i64, &m.c);
                let v = acc[(i * vectors + j) as usize];
                if self.valid(m, j) == m.lanes {
                    self.b.store(v, p, align, false);
                } else {
                    let mask = self.b.first_lanes(self.valid(m, j), m.lanes);
                    let ty = self.b.kind(m.kind, m.lanes);
                    let call = self.b.intrinsic("llvm.masked.store", &[ty, self.b.ptr()], &[v, p, mask]);
                    self.b.align_argument(call, 2, align);
                }
            }
        }
    }
}
