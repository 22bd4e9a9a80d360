//! How the dims of a node's operands and of its result may belong together: what the rows of primitives say, and what the
//! division of a graph over a mesh reads.

use crate::graph::{Graph, Node};
use std::ops::Range;
use tessera_ops::prim::{Prim, Reduction};

/// What becomes of one dim of an operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Link {
    /// Position `i` is needed for position `i` of that dim of the result only.
    Pass(usize),
    /// The same for equal blocks: the sizes differ, the majority of the elements goes along
    /// (a dim that is divided or joined).
    Blocks(usize),
    /// A block of that dim of the result needs a range of positions, which its device gets where it
    /// does not have them.
    Reach(usize, Reach),
    /// It is needed in full, and becomes that dim of the result: another dim is split meanwhile.
    Along(usize),
    /// Few of its positions are chosen by their values; everyone gets those.
    Few,
    /// It vanishes in a reduction.
    Reduce(Reduction),
    /// Positions from data choose from it.
    Indexed,
    /// Any position may be needed for any.
    Whole,
}

/// What one position of the result needs along a dim.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reach {
    /// Position `i` needs `count` positions from `start + i * step` on; those outside the operand
    /// are not read.
    Steps { start: i64, step: i64, count: u64 },
    /// Position `start + j * step` needs position `j`, the others none.
    Written { start: i64, step: i64 },
}

impl Reach {
    /// The positions, of `n`, that a block of the result needs: the range from the first to the last.
    pub fn range(self, block: &Range<u64>, n: u64) -> Range<u64> {
        if block.start >= block.end || n == 0 {
            return 0..0;
        }
        let (first, last) = (i128::from(block.start), i128::from(block.end) - 1);
        let (low, high) = match self {
            Reach::Steps { start, step, count } => {
                let (start, step, count) = (i128::from(start), i128::from(step), i128::from(count));
                // The `i` that need a position inside: `start + i * step` from `1 - count` to `n - 1`.
                let (from, to) = (1 - count - start, i128::from(n) - 1 - start);
                let by = step.abs().max(1);
                let (from, to) = if step < 0 { (-to, -from) } else { (from, to) };
                let (first, last) = match step {
                    0 => (first, last),
                    _ => (first.max(-(-from).div_euclid(by)), last.min(to.div_euclid(by))),
                };
                if first > last {
                    return 0..0;
                }
                let at = |i: i128| start + i * step;
                (at(first).min(at(last)), at(first).max(at(last)) + count)
            }
            Reach::Written { start, step } => {
                // The `j` with first <= start + j * step <= last.
                let (start, step) = (i128::from(start), i128::from(step));
                let (a, b) = if step < 0 { (start - last, start - first) } else { (first - start, last - start) };
                let by = step.abs().max(1);
                (-(-a).div_euclid(by), b.div_euclid(by) + 1)
            }
        };
        let clamp = |x: i128| x.clamp(0, i128::from(n)) as u64;
        if low < high && clamp(low) < clamp(high) { clamp(low)..clamp(high) } else { 0..0 }
    }
}

/// The axis of which a node takes the first few positions in the order of its values.
pub fn first_of_sorted(g: &Graph, node: &Node) -> Option<usize> {
    let (Prim::Slice { start, step }, [order]) = (&node.prim, &node.operands[..]) else { return None };
    let Prim::ArgSort { axis, .. } = g.node(*order).prim else { return None };
    let whole = &g.ty(*order).shape;
    let others = (0..whole.len()).all(|d| d == axis || whole[d] == node.ty.shape[d]);
    (others && start.iter().all(|s| *s == 0) && step.iter().all(|s| *s == 1)).then_some(axis)
}

/// Walks both shapes from the major side in groups of equal numbers of elements; the first dims
/// of a group's sides go along in blocks.
pub fn reshaped(from: &[u64], to: &[u64]) -> Vec<Link> {
    let mut out = vec![Link::Whole; from.len()];
    let (mut i, mut j) = (0, 0);
    while i < from.len() && j < to.len() {
        // Sizes of 1 stand between the groups.
        if from[i] == 1 && to[j] != 1 {
            i += 1;
            continue;
        }
        if to[j] == 1 && from[i] != 1 {
            j += 1;
            continue;
        }
        let (first, first_to) = (i, j);
        let (mut a, mut b) = (from[i], to[j]);
        (i, j) = (i + 1, j + 1);
        while a != b {
            if a < b && i < from.len() {
                a = a.saturating_mul(from[i]);
                i += 1;
            } else if a > b && j < to.len() {
                b = b.saturating_mul(to[j]);
                j += 1;
            } else {
                return out;
            }
        }
        let alone = i == first + 1 && j == first_to + 1;
        out[first] = if alone { Link::Pass(first_to) } else { Link::Blocks(first_to) };
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reshapes_go_along_from_the_major_side() {
        use Link::{Blocks, Pass, Whole};
        assert_eq!(reshaped(&[4, 6], &[4, 6]), [Pass(0), Pass(1)]);
        assert_eq!(reshaped(&[2, 3, 12], &[2, 3, 4, 3]), [Pass(0), Pass(1), Blocks(2)]);
        assert_eq!(reshaped(&[2, 3, 4], &[6, 4]), [Blocks(0), Whole, Pass(1)]);
        assert_eq!(reshaped(&[4, 1, 5], &[4, 5]), [Pass(0), Whole, Pass(1)]);
        assert_eq!(reshaped(&[4, 5], &[4, 1, 5]), [Pass(0), Pass(2)]);
        assert_eq!(reshaped(&[6], &[2, 3]), [Blocks(0)]);
        assert_eq!(reshaped(&[], &[1, 1]), []);
    }

    #[test]
    fn ranges_hold_what_is_needed_and_no_more() {
        for start in -3..9i64 {
            for step in [-3, -1, 1, 2, 5i64] {
                for (a, b) in [(0, 0), (0, 4), (2, 3), (3, 9)] {
                    let n = 7;
                    let inside = |p: i64| (0..n as i64).contains(&p).then_some(p as u64);
                    let check = |reach: Reach, all: Vec<u64>| {
                        let want = match (all.iter().min(), all.iter().max()) {
                            (Some(&low), Some(&high)) => low..high + 1,
                            _ => 0..0,
                        };
                        assert_eq!(reach.range(&(a..b), n), want, "{reach:?} {a}..{b}");
                    };
                    let read = (a..b).flat_map(|i| (0..2).map(move |k| start + i as i64 * step + k));
                    check(Reach::Steps { start, step, count: 2 }, read.filter_map(inside).collect());
                    let written = (0..n).filter(|&j| (a as i64..b as i64).contains(&(start + j as i64 * step)));
                    check(Reach::Written { start, step }, written.collect());
                }
            }
        }
    }
}
