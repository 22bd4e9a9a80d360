//! Products of bf16 pairs: `vdpbf16ps` takes two steps of k at a time.

use crate::LlvmError;
use crate::emit::Emitter;
use crate::instr::V;
use tessera_base::DType;
use tessera_ir::tile::{Mma, Panel};
use tessera_ops::scalar::Kind;

impl Emitter<'_> {
    /// Two f32 that bf16 holds, in one i32: the even one low.
    pub fn pair(&self, even: V, odd: V, lanes: u32) -> V {
        let ty = self.b.kind(Kind::I32, lanes);
        let of = |n: i64| self.b.const_int(self.b.int(32), n, lanes);
        let low = self.b.lshr(self.b.bitcast(even, ty), of(16));
        self.b.or(low, self.b.and(self.b.bitcast(odd, ty), of(-0x10000)))
    }

    /// Elements from one step to the next.
    pub fn stride(&self, m: &Mma, p: &Panel) -> i64 {
        if m.order.is_paired() && self.unpaired(p) { 2 * p.step } else { p.step }
    }

    /// Whether a factor lies as numbers of 16 bits, not as pairs.
    fn unpaired(&self, p: &Panel) -> bool {
        self.kernel.bufs[p.buf as usize].dtype != DType::I32
    }

    /// The instruction for so many lanes.
    pub fn pair_instruction(lanes: u32) -> Result<&'static str, LlvmError> {
        Ok(match lanes {
            16 => "llvm.x86.avx512bf16.dpbf16ps.512",
            8 => "llvm.x86.avx512bf16.dpbf16ps.256",
            4 => "llvm.x86.avx512bf16.dpbf16ps.128",
            n => return Err(LlvmError::internal(format!("bf16 pairs in {n} lanes"))),
        })
    }

    /// Step `u` after the base addresses.
    pub fn pair_steps(&self, m: &Mma, a: V, b: V, u: i64, acc: &mut [V]) -> Result<(), LlvmError> {
        let name = Self::pair_instruction(m.lanes)?;
        let vectors = m.cols.div_ceil(m.lanes);
        let numbers = self.b.vec(self.b.bfloat(), 2 * m.lanes);
        let right: Vec<V> = (0..vectors).map(|j| self.b.bitcast(self.right_pairs(m, b, u, j), numbers)).collect();
        for i in 0..m.rows {
            let left = self.b.bitcast(self.b.splat(self.left_pair(m, a, i, u), m.lanes), numbers);
            for (j, r) in right.iter().enumerate() {
                let c = &mut acc[i as usize * vectors as usize + j];
                *c = self.b.intrinsic(name, &[], &[*c, left, *r]);
            }
        }
        Ok(())
    }

    pub fn left_pair(&self, m: &Mma, a: V, i: u32, u: i64) -> V {
        let p = self.at(a, i as i64 * m.a.row + u * self.stride(m, &m.a), &m.a);
        let (i16, i32) = (self.b.int(16), self.b.int(32));
        if !self.unpaired(&m.a) || m.a.step == 1 {
            return self.b.load(i32, p, 2);
        }
        let odd = self.b.load(i16, self.at(p, m.a.step, &m.a), 2);
        let high = self.b.shl(self.b.zext(odd, i32), self.b.const_int(i32, 16, 1));
        self.b.or(self.b.zext(self.b.load(i16, p, 2), i32), high)
    }

    /// Vector `j` of the right factor.
    pub fn right_pairs(&self, m: &Mma, b: V, u: i64, j: u32) -> V {
        let valid = (m.cols - j * m.lanes).min(m.lanes);
        let p = self.at(b, u * self.stride(m, &m.b) + (j * m.lanes) as i64, &m.b);
        if !self.unpaired(&m.b) {
            return self.load_lanes(Kind::I32, m.lanes, p, valid);
        }
        let wide = self.b.kind(Kind::I32, m.lanes);
        let row = |p: V| self.b.zext(self.load_lanes(Kind::I16, m.lanes, p, valid), wide);
        let high = self.b.shl(row(self.at(p, m.b.step, &m.b)), self.b.const_int(self.b.int(32), 16, m.lanes));
        self.b.or(row(p), high)
    }
}
