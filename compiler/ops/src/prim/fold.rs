//! Leaves of a product and the tree over them: the order of sums that can be shared out.
//!
//! The contracted range is cut at global positions. Within a leaf an element is a chain; over leaves a balanced tree: of
//! each level neighbours are added in pairs, and the last of an odd number goes up as it is. So whoever has the leaves of a
//! subtree can fold them, and what a tile, a thread or a device takes decides no bit.
//!
//! Leaves come in ascending order, and a binary counter folds them ([`tree`]): one number waits per level, and there is one
//! addition per leaf. (Higham, The accuracy of floating point summation, SIAM J. Sci. Comput. 14, 1993, for the error: it
//! grows with the leaf and the logarithm of the number of leaves.)
//!
//! The sum of more than one leaf is never -0: leaves that a row does not reach count as 0, or not at all.

use super::{Order, Prim, Steps};
use std::ops::Range;
use tessera_abi::leaves::{self, tree};
use tessera_base::DType;

/// Steps of a leaf, where nothing asks for others: as few as cost a product no more than some percent of its time.
pub const DOT_LEAF: u64 = leaves::DOT_LEAF as u64;

/// Where leaves and units end together only after more steps than this, there is one block.
const BLOCK_MAX: u64 = 1 << 14;
/// Positions that vectors of all processors divide.
const VECTOR: u64 = 16;

impl Prim {
    /// A product in chains of [`DOT_LEAF`] steps.
    pub fn dot(accum: DType, steps: Steps) -> Prim {
        Prim::Dot { accum, steps, order: Order::Chain, leaf: DOT_LEAF }
    }

    /// A product over several dims of which the inner ones have `run` positions together: leaves end where the outermost one
    /// goes on, or divide a run evenly, so that this dim can be shared out.
    pub fn dot_over(accum: DType, steps: Steps, run: u64) -> Prim {
        Prim::Dot { accum, steps, order: Order::Chain, leaf: leaf_of(run) }
    }
}

/// Steps of a leaf of runs of `run` steps: several runs in whole vectors where some fit, else the longest part of a run
/// that is not much shorter than [`DOT_LEAF`] and divides it, else [`DOT_LEAF`]. Of odd ones twice as many, since factors of
/// 16 bits are taken in pairs.
pub fn leaf_of(run: u64) -> u64 {
    if run < 2 {
        return DOT_LEAF;
    }
    let pair = if run.is_multiple_of(2) { 1 } else { 2 };
    if run <= DOT_LEAF {
        let whole = (1..=VECTOR).find(|n| (n * run).is_multiple_of(VECTOR)).unwrap_or(1);
        let runs = DOT_LEAF / run;
        let unit = if runs >= whole { whole } else { pair };
        return run * (runs - runs % unit).max(pair);
    }
    let parts = (DOT_LEAF / 4 + 1..=DOT_LEAF).filter(|n| run.is_multiple_of(*n));
    parts.max_by_key(|n| (n.is_multiple_of(VECTOR), *n)).map_or(DOT_LEAF, |part| part * pair)
}

/// Steps of a block of about `steps` of `depth` positions: whole leaves and `unit`s, a power of two of them where that fits,
/// or all.
pub fn block(steps: u64, depth: u64, leaf: u64, unit: u64) -> u64 {
    let most = depth.min(BLOCK_MAX);
    if steps >= depth || leaf >= most {
        return depth;
    }
    let least = (1..=unit).map(|n| n * leaf).find(|n| n.is_multiple_of(unit));
    let Some(least) = least.filter(|n| *n < most) else { return depth };
    let block = least << (steps / least).max(1).ilog2();
    if block >= depth { depth } else { block }
}

/// The number of sums that are kept while so many leaves are folded.
pub fn levels(leaves: u64) -> u32 {
    leaves.saturating_sub(1).checked_ilog2().map_or(0, |n| n + 1)
}

/// Folds the leaves that have some of the positions `taken` of `0..k`: `chain` makes the sum of positions of one leaf from
/// zeros, `add` puts a later sum onto an earlier one. The sums of one leaf alone are those of its chain.
pub fn fold<T: Clone>(
    k: usize,
    leaf: usize,
    taken: Range<usize>,
    zeros: &[T],
    mut chain: impl FnMut(Range<usize>, &mut Vec<T>),
    add: impl Fn(&T, &T) -> T,
) -> Vec<T> {
    let mut part = |range| {
        let mut sums = zeros.to_vec();
        chain(range, &mut sums);
        sums
    };
    if k <= leaf.max(1) {
        return part(taken);
    }
    let onto = |earlier: &[T], later: &[T]| -> Vec<T> { earlier.iter().zip(later).map(|(a, b)| add(a, b)).collect() };
    let numbers = if taken.is_empty() { 0..0 } else { taken.start / leaf..taken.end.div_ceil(leaf) };
    let leaf_of = |n: usize| part(taken.start.max(n * leaf)..taken.end.min((n + 1) * leaf));
    let all = tree(numbers, leaf_of, |earlier: &Vec<T>, later| onto(earlier, later));
    all.map_or(zeros.to_vec(), |sums| onto(zeros, &sums))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_row_lacks_changes_no_place() {
        let chain = |r: Range<usize>, to: &mut Vec<String>| to[0] = format!("{}-{}.", r.start, r.end);
        let add = |a: &String, b: &String| if a.is_empty() { b.clone() } else { format!("({a}{b})") };
        let of = |taken| fold(20, 3, taken, &[String::new()], chain, add).remove(0);
        assert_eq!(of(7..19), "((7-9.9-12.)((12-15.15-18.)18-19.))");
        assert_eq!(of(4..4), "");
    }

    #[test]
    fn leaves_end_where_runs_do() {
        let found = [0, 1, 9, 49, 197, 100, 128, 512, 1000, 1001, 1024, 768, 100003].map(leaf_of);
        assert_eq!(found, [256, 256, 144, 196, 394, 200, 256, 256, 250, 286, 256, 256, 256]);
        assert_eq!([1, 2, 3, 4, 5, 9].map(levels), [0, 1, 2, 2, 3, 4]);
        let found = [(2048, 4096, 512), (1500, 3000, 512), (700, 3000, 500), (100, 3000, 512), (2048, 2048, 512)];
        assert_eq!(found.map(|(steps, depth, leaf)| block(steps, depth, leaf, 16)), [2048, 1024, 2000, 512, 2048]);
        assert_eq!(block(600, 9000, 505, 16), 8080);
        assert_eq!(block(600, 9000, 1, 16), 512);
        assert_eq!(block(2048, 4096, (1 << 60) + 1, 16), 4096);
    }
}
