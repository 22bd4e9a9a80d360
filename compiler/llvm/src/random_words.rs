//! Random words: Philox on vectors of blocks. A block gives four words, so lanes that are neighbours share one.

use crate::LlvmError;
use crate::emit::Emitter;
use crate::instr::V;
use tessera_ir::index::Index;
use tessera_ir::tile::{LANE, Val};
use tessera_ops::reference::{PHILOX_MULTIPLIERS, PHILOX_ROUNDS, PHILOX_WEYL, random_bits_program};

/// Words of a block.
const WORDS: i64 = 4;

/// A word of a key, and whether it is one for all lanes.
pub struct KeyWord {
    word: V,
    same: bool,
}

impl Emitter<'_> {
    /// A word of the key of `lanes` random words.
    pub fn random_key(&self, v: Val, lanes: u32) -> Result<KeyWord, LlvmError> {
        let same = self.kernel.ty(v).lanes == 1;
        Ok(KeyWord { word: if same { self.value(v)? } else { self.wide(v, lanes)? }, same })
    }

    /// Word `at` of a key in each lane, as i64.
    pub fn random_words(&self, key: [KeyWord; 2], at: &Index, lanes: u32) -> Result<V, LlvmError> {
        let first = at.without(LANE);
        let whole = first.terms.iter().all(|(_, c)| c % WORDS == 0);
        if key.iter().all(|k| k.same) && lanes > 1 && at.stride(LANE) == Some(1) && whole {
            return self.neighbours(key.map(|k| k.word), &first, lanes);
        }
        let [low, high] = key.map(|k| if k.same { self.b.splat(k.word, lanes) } else { k.word });
        self.program(&random_bits_program(), &[self.index(at, lanes)?, low, high], lanes)
    }

    /// The words from `first` on, whose place in its block is known.
    fn neighbours(&self, key: [V; 2], first: &Index, lanes: u32) -> Result<V, LlvmError> {
        let b = &self.b;
        let skipped = first.constant.rem_euclid(WORDS) as u32;
        let blocks = (skipped + lanes).div_ceil(WORDS as u32).next_power_of_two().max(2);
        let block = b.lshr(self.index(&first.offset(-i64::from(skipped)), 1)?, b.i64(2));
        let counter = b.add(b.splat(block, blocks), b.iota(blocks));
        let [c0, c1, c2, c3] = self.philox(counter, key, blocks);
        // Two words side by side, so that what is left is to interleave pairs.
        let half = |even: V, odd: V| {
            let odd = b.shl(odd, b.const_int(b.int(64), 32, blocks));
            b.or(self.low_word(even, blocks), odd)
        };
        let order: Vec<u32> = (0..blocks).flat_map(|i| [i, blocks + i]).collect();
        let pairs = b.shuffle_two(half(c0, c1), half(c2, c3), &order);
        let words = b.bitcast(pairs, b.vec(b.int(32), WORDS as u32 * blocks));
        let wanted: Vec<u32> = (skipped..skipped + lanes).collect();
        Ok(b.zext(b.shuffle(words, &wanted), b.vec(b.int(64), lanes)))
    }

    /// The four words of each block, in the low halves of i64; the high halves hold anything.
    fn philox(&self, block: V, key: [V; 2], blocks: u32) -> [V; 4] {
        let b = &self.b;
        let int = |n: i64| b.const_int(b.int(64), n, blocks);
        let high = |v: V| b.lshr(v, int(32));
        // Keys are the same in all lanes, so they are stepped on as numbers.
        let mut key = key;
        let zero = int(0);
        let mut counter = [block, high(block), zero, zero];
        for _ in 0..PHILOX_ROUNDS {
            let [p, q] = [0, 1].map(|i| {
                let factor = int(i64::from(PHILOX_MULTIPLIERS[i]));
                b.mul(self.low_word(counter[2 * i], blocks), factor)
            });
            let mix = |product: V, word: V, key: V| b.xor(b.xor(high(product), word), b.splat(key, blocks));
            counter = [mix(q, counter[1], key[0]), q, mix(p, counter[3], key[1]), p];
            key = [0, 1].map(|i| b.add(key[i], b.i64(i64::from(PHILOX_WEYL[i]))));
        }
        counter
    }

    fn low_word(&self, v: V, lanes: u32) -> V {
        self.b.and(v, self.b.const_int(self.b.int(64), 0xffff_ffff, lanes))
    }
}
