//! Arithmetic that not every back end has: as instructions that all of them have, with the same results.

use crate::dialect::Dialect;
use crate::instr::{Builder, RealPred, V};
use crate::program::{bits, unsigned};
use tessera_ops::scalar::Kind;

impl Builder {
    /// Whether minima and conversions are written out.
    pub fn is_portable(&self) -> bool {
        self.group.is_some_and(|g| g.dialect != Dialect::Nvptx)
    }

    /// Whether division and roots of this kind are not rounded to nearest there. Of 64 bits they are, and to 32 bits from
    /// there that is the same (Figueroa, When is double rounding innocuous?, 1995).
    fn is_rough(&self, kind: Kind) -> bool {
        kind == Kind::F32 && self.group.is_some_and(|g| g.dialect == Dialect::Spirv { exact: false })
    }

    /// `x / y`, rounded to nearest.
    pub fn divided(&self, kind: Kind, x: V, y: V, lanes: u32) -> V {
        if !self.is_rough(kind) {
            return self.fdiv(x, y);
        }
        let wide = self.kind(Kind::F64, lanes);
        self.fptrunc(self.fdiv(self.fpext(x, wide), self.fpext(y, wide)), self.kind(kind, lanes))
    }

    /// The square root, rounded to nearest.
    pub fn root(&self, kind: Kind, x: V, lanes: u32) -> V {
        if !self.is_rough(kind) {
            return self.intrinsic("llvm.sqrt", &[self.kind(kind, lanes)], &[x]);
        }
        let wide = self.kind(Kind::F64, lanes);
        self.fptrunc(self.intrinsic("llvm.sqrt", &[wide], &[self.fpext(x, wide)]), self.kind(kind, lanes))
    }

    /// The smaller of two floats (`smallest`) or the larger: NaN where one is, and -0 below 0.
    pub fn extreme(&self, smallest: bool, kind: Kind, x: V, y: V, lanes: u32) -> V {
        let ty = self.kind(kind, lanes);
        if !self.is_portable() {
            let name = if smallest { "llvm.minimum" } else { "llvm.maximum" };
            return self.intrinsic(name, &[ty], &[x, y]);
        }
        let int = self.kind(if kind == Kind::F32 { Kind::I32 } else { Kind::I64 }, lanes);
        let [a, b] = [x, y].map(|v| self.bitcast(v, int));
        // Equal numbers have equal bits, zeros but for the sign.
        let equal = self.bitcast(if smallest { self.or(a, b) } else { self.and(a, b) }, ty);
        let order = if smallest { RealPred::LLVMRealOLT } else { RealPred::LLVMRealOGT };
        let apart = self.select(self.fcmp(order, x, y), x, y);
        let known = self.select(self.fcmp(RealPred::LLVMRealOEQ, x, y), equal, apart);
        self.select(self.fcmp(RealPred::LLVMRealUNO, x, y), self.fadd(x, y), known)
    }

    /// A float as an integer, towards zero: at the ends of what there is beyond them, and 0 for NaN.
    pub fn saturated(&self, x: V, from: Kind, to: Kind, lanes: u32) -> V {
        let ty = self.kind(to, lanes);
        if !self.is_portable() {
            let name = if to == Kind::U8 { "llvm.fptoui.sat" } else { "llvm.fptosi.sat" };
            return self.intrinsic(name, &[ty, self.type_of(x)], &[x]);
        }
        let n = bits(to);
        let (lowest, highest) = match unsigned(to) {
            true => (0, (1i128 << n) - 1),
            false => (-(1i128 << (n - 1)), (1i128 << (n - 1)) - 1),
        };
        // Both are powers of two or zero: exact.
        let [low, high] = [lowest, highest + 1].map(|end| self.const_float(from, end as f64, lanes));
        let [least, most] = [lowest, highest].map(|end| self.const_int(self.kind(to, 1), end as i64, lanes));
        let above = self.fcmp(RealPred::LLVMRealOGE, x, high);
        let below = self.fcmp(RealPred::LLVMRealOLE, x, low);
        let inside = self.and(self.fcmp(RealPred::LLVMRealOLT, x, high), self.fcmp(RealPred::LLVMRealOGT, x, low));
        let safe = self.select(inside, x, self.const_float(from, 0.0, lanes));
        // All values of 8 bits are among those of 32.
        let wide = if n < 32 { self.kind(Kind::I32, lanes) } else { ty };
        let whole = self.fptosi(safe, wide);
        let whole = if n < 32 { self.trunc(whole, ty) } else { whole };
        self.select(above, most, self.select(below, least, whole))
    }
}
