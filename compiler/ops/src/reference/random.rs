//! Counter-based random bits: Philox 4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random
//! numbers: as easy as 1, 2, 3. SC 2011).

use super::{ArrayRef, TypeRef, elems};
use crate::convert::{cast, load};
use crate::prim::Scalar;
use crate::scalar::{Cmp, IntOp, Kind, Program, Val, Writer};
use tessera_base::DType;

/// What the even words of a counter are multiplied by.
pub const PHILOX_MULTIPLIERS: [u32; 2] = [0xd251_1f53, 0xcd9e_8d57];
/// Added to the key between rounds (the golden ratio and √3 − 1).
pub const PHILOX_WEYL: [u32; 2] = [0x9e37_79b9, 0xbb67_ae85];
/// How often a block is mixed.
pub const PHILOX_ROUNDS: u32 = 10;

/// One block of four words.
pub fn philox(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for _ in 0..PHILOX_ROUNDS {
        let product = |i: usize| u64::from(PHILOX_MULTIPLIERS[i]) * u64::from(counter[2 * i]);
        let (p, q) = (product(0), product(1));
        counter = [(q >> 32) as u32 ^ counter[1] ^ key[0], q as u32, (p >> 32) as u32 ^ counter[3] ^ key[1], p as u32];
        key = [key[0].wrapping_add(PHILOX_WEYL[0]), key[1].wrapping_add(PHILOX_WEYL[1])];
    }
    counter
}

/// Of each key, element `i` (row-major) is word `i % 4` of block `i / 4`. A block's counter is `[low 32 bits
/// of the block number, high 32 bits, 0, 0]`; its key is the low 32 bits of each key word.
pub fn random_bits(keys: ArrayRef, result: TypeRef) -> Vec<u8> {
    let word = |i: usize| match load(keys.dtype, keys.bytes, i) {
        Some(Scalar::I(x)) => x as u32,
        _ => 0,
    };
    let count = keys.shape.iter().rev().skip(1).product::<u64>() as usize;
    let all = elems(result.shape).unwrap_or(0);
    let n = all / count.max(1);
    let mut out = Vec::with_capacity(all * 8);
    for key in (0..count).map(|i| [word(2 * i), word(2 * i + 1)]) {
        for block in 0..n.div_ceil(4) as u64 {
            let words = philox([block as u32, (block >> 32) as u32, 0, 0], key);
            let rest = n - block as usize * 4;
            out.extend(words.iter().take(rest).flat_map(|&w| i64::from(w).to_le_bytes()));
        }
    }
    cast(DType::I64, result.dtype, &out)
}

/// The meaning of one element in kernels: arguments are the element's index and the two
/// key words, all I64; the result is I64 in [0, 2³²).
pub fn random_bits_program() -> Program {
    const MASK: i64 = 0xffff_ffff;
    let mut w = Writer::default();
    let w = &mut w;
    let index = w.arg(0, Kind::I64);
    let low = |w: &mut Writer, v: Val| w.int_c(IntOp::And, v, MASK);
    let high = |w: &mut Writer, v: Val| {
        let v = w.int_c(IntOp::Shr, v, 32);
        w.int_c(IntOp::And, v, MASK)
    };
    let mut key = [1, 2].map(|n| {
        let word = w.arg(n, Kind::I64);
        low(w, word)
    });
    let block = w.int_c(IntOp::Shr, index, 2);
    let zero = w.i(0, Kind::I64);
    let mut counter = [low(w, block), high(w, block), zero, zero];
    for _ in 0..PHILOX_ROUNDS {
        let [p, q] = [0, 1].map(|i| w.int_c(IntOp::Mul, counter[2 * i], i64::from(PHILOX_MULTIPLIERS[i])));
        let mut mix = |product: Val, word: Val, key: Val| {
            let v = high(w, product);
            let v = w.int(IntOp::Xor, v, word);
            w.int(IntOp::Xor, v, key)
        };
        let (first, third) = (mix(q, counter[1], key[0]), mix(p, counter[3], key[1]));
        counter = [first, low(w, q), third, low(w, p)];
        key = [0, 1].map(|i| {
            let next = w.int_c(IntOp::Add, key[i], i64::from(PHILOX_WEYL[i]));
            low(w, next)
        });
    }
    let word = w.int_c(IntOp::And, index, 3);
    let mut result = counter[0];
    for (i, &value) in counter.iter().enumerate().skip(1) {
        let this = w.cmp_c(Cmp::Eq, word, i as f64);
        result = w.select(this, value, result);
    }
    std::mem::take(w).finish(result)
}
