//! Random words: Philox on vectors of blocks. A block gives four words, so lanes that are neighbours share one.

use crate::instr::{Builder, V};
use tessera_ops::reference::{PHILOX_MULTIPLIERS, PHILOX_ROUNDS, PHILOX_WEYL};

/// Words of a block.
pub const WORDS: i64 = 4;

/// `lanes` words as i64, behind `skipped` words of block `block`, of one key.
pub fn neighbours(b: &Builder, key: [V; 2], block: V, skipped: u32, lanes: u32) -> V {
    let blocks = (skipped + lanes).div_ceil(WORDS as u32).next_power_of_two().max(2);
    let [c0, c1, c2, c3] = philox(b, b.add(b.splat(block, blocks), b.iota(blocks)), key, blocks);
    // Two words side by side, so that what is left is to interleave pairs.
    let half = |even: V, odd: V| b.or(low_word(b, even, blocks), b.shl(odd, b.const_int(b.int(64), 32, blocks)));
    let order: Vec<u32> = (0..blocks).flat_map(|i| [i, blocks + i]).collect();
    let pairs = b.shuffle_two(half(c0, c1), half(c2, c3), &order);
    let words = b.bitcast(pairs, b.vec(b.int(32), WORDS as u32 * blocks));
    let wanted: Vec<u32> = (skipped..skipped + lanes).collect();
    b.zext(b.shuffle(words, &wanted), b.vec(b.int(64), lanes))
}

/// The four words of each block, in the low halves of i64; the high halves hold anything.
fn philox(b: &Builder, block: V, mut key: [V; 2], blocks: u32) -> [V; 4] {
    let int = |n: i64| b.const_int(b.int(64), n, blocks);
    let high = |v: V| b.lshr(v, int(32));
    let mut counter = [block, high(block), int(0), int(0)];
    for _ in 0..PHILOX_ROUNDS {
        let product = |i: usize| b.mul(low_word(b, counter[2 * i], blocks), int(i64::from(PHILOX_MULTIPLIERS[i])));
        let (p, q) = (product(0), product(1));
        let mix = |product: V, word: V, key: V| b.xor(b.xor(high(product), word), b.splat(key, blocks));
        counter = [mix(q, counter[1], key[0]), q, mix(p, counter[3], key[1]), p];
        // A key is the same in all lanes, so it is stepped on as numbers.
        key = [0, 1].map(|i| b.add(key[i], b.i64(i64::from(PHILOX_WEYL[i]))));
    }
    counter
}

fn low_word(b: &Builder, v: V, lanes: u32) -> V {
    b.and(v, b.const_int(b.int(64), 0xffff_ffff, lanes))
}
