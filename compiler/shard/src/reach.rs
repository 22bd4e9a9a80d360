//! Which positions of an operand a block of the result needs, where they are not the same ones:
//! parts of a dim, padded, joined, in windows.

use std::ops::Range;
use tessera_ops::prim::Prim;

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

/// The primitive that makes a box of the result from those boxes of its operands.
pub fn of_box(prim: &Prim, result: &[Range<u64>], operands: &[Vec<Range<u64>>]) -> Prim {
    let length = |r: &Range<u64>| r.end - r.start;
    match (prim, operands) {
        (Prim::Slice { start, step }, [x, ..]) => {
            let local = |d: usize| match length(&result[d]) {
                0 => 0,
                _ => start[d] + result[d].start as i64 * step[d] - x[d].start as i64,
            };
            Prim::Slice { start: (0..start.len()).map(local).collect(), step: step.clone() }
        }
        (Prim::Pad { low, .. }, [x, ..]) => {
            let before = |d: usize| length(&(result[d].start.min(low[d])..result[d].end.min(low[d])));
            let low: Vec<u64> = (0..low.len()).map(before).collect();
            let high = (0..low.len()).map(|d| length(&result[d]) - low[d] - length(&x[d])).collect();
            Prim::Pad { low, high }
        }
        (Prim::UpdateSlice { start, step }, [_, x, ..]) => {
            let local = |d: usize| match length(&x[d]) {
                0 => 0,
                _ => start[d] + x[d].start as i64 * step[d] - result[d].start as i64,
            };
            Prim::UpdateSlice { start: (0..start.len()).map(local).collect(), step: step.clone() }
        }
        _ => prim.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
