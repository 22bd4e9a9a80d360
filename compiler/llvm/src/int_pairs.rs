//! Products of ints of at most 16 bits with sums of 32 bits: two steps of k at a time.
//!
//! `vpmaddwd` multiplies the two numbers of each pair and adds them; with AVX512-VNNI the back end makes one instruction of it
//! and the addition (`vpdpwssd`). Everything wraps, so the order is nobody's concern.

use crate::emit::Emitter;
use crate::instr::V;
use tessera_ir::tile::Mma;
use tessera_ops::scalar::Kind;

/// Multiply-adds of pairs: lanes of the sums, the feature, LLVM's name.
const INSTRUCTIONS: [(u32, &str, &str); 3] = [
    (16, "avx512bw", "llvm.x86.avx512.pmaddw.d.512"),
    (8, "avx2", "llvm.x86.avx2.pmadd.wd"),
    (4, "sse2", "llvm.x86.sse2.pmadd.wd"),
];

impl Emitter<'_> {
    /// Two ints of 16 bits in one of 32: the even one low.
    pub fn pair_of_ints(&self, even: V, odd: V, lanes: u32) -> V {
        let ty = self.b.kind(Kind::I32, lanes);
        let high = self.b.shl(self.b.zext(odd, ty), self.b.const_int(self.b.int(32), 16, lanes));
        self.b.or(self.b.zext(even, ty), high)
    }

    /// Step `u` after the base addresses.
    pub fn int_pair_steps(&self, m: &Mma, a: V, b: V, u: i64, acc: &mut [V]) {
        let vectors = m.cols.div_ceil(m.lanes);
        let right: Vec<V> = (0..vectors).map(|j| self.right_pairs(m, b, u, j)).collect();
        for i in 0..m.rows {
            let left = self.b.splat(self.left_pair(m, a, i, u), m.lanes);
            for (j, r) in right.iter().enumerate() {
                let c = &mut acc[i as usize * vectors as usize + j];
                *c = self.b.add(*c, self.both_products(left, *r, m.lanes));
            }
        }
    }

    /// The sum of both products of each pair.
    fn both_products(&self, left: V, right: V, lanes: u32) -> V {
        let exact = INSTRUCTIONS.iter().find(|(n, feature, _)| *n == lanes && self.target.has(feature));
        if let Some((n, _, name)) = exact {
            let numbers = self.b.vec(self.b.int(16), 2 * n);
            return self.b.intrinsic(name, &[], &[self.b.bitcast(left, numbers), self.b.bitcast(right, numbers)]);
        }
        if !self.target.has("sse2") || lanes < 8 {
            return self.products_apart(left, right, lanes);
        }
        // Longer vectors than there are registers: by halves.
        let half = |v: V, first: u32| self.b.shuffle(v, &(first..first + lanes / 2).collect::<Vec<_>>());
        let [low, high] = [0, lanes / 2].map(|f| self.both_products(half(left, f), half(right, f), lanes / 2));
        self.b.shuffle_two(low, high, &(0..lanes).collect::<Vec<_>>())
    }

    /// The same without an instruction for it.
    fn products_apart(&self, left: V, right: V, lanes: u32) -> V {
        let half = self.b.const_int(self.b.int(32), 16, lanes);
        let low = |v: V| self.b.ashr(self.b.shl(v, half), half);
        let high = |v: V| self.b.ashr(v, half);
        let (even, odd) = (self.b.mul(low(left), low(right)), self.b.mul(high(left), high(right)));
        self.b.add(even, odd)
    }
}
