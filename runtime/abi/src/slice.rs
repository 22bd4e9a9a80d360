//! Python's slices of positions: one definition for host code, for graphs, for types and for whatever is known before
//! a program runs.

/// Positions `start, start + step, …`, as many as `count`: all of them lie in the sequence. Where there are fewer than
/// two, the step is 1 or -1, and where there is none, the start is 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slice {
    pub start: i64,
    pub step: i64,
    pub count: u64,
}

impl Slice {
    /// `low:high:step` of a sequence of `len` elements: negative bounds count from the end, and those beyond an end are
    /// clamped. `None` where the step is 0.
    pub fn of(len: u64, low: Option<i64>, high: Option<i64>, step: Option<i64>) -> Option<Slice> {
        let (len, step) = (len as i64, step.unwrap_or(1));
        let (first, last) = if step > 0 { (0, len) } else { (-1, len - 1) };
        let place = |bound: i64| if bound < 0 { bound.saturating_add(len) } else { bound }.clamp(first, last);
        let (from, to) = if step > 0 { (first, last) } else { (last, first) };
        let (start, stop) = (low.map_or(from, place), high.map_or(to, place));
        let count = count(start, stop, step)?;
        // One position has no distance to the next, and none has no place.
        Some(Slice {
            start: if count > 0 { start } else { 0 },
            step: if count > 1 { step } else { step.signum() },
            count,
        })
    }

    pub fn positions(self) -> impl Iterator<Item = usize> {
        (0..self.count as i64).map(move |i| (self.start + i * self.step) as usize)
    }
}

/// Numbers in `start, start + step, …` before `stop`; `None` where the step is 0.
pub fn count(start: i64, stop: i64, step: i64) -> Option<u64> {
    let (from, to) = if step > 0 { (start, stop) } else { (stop, start) };
    match step {
        0 => None,
        _ if from >= to => Some(0),
        _ => Some(to.abs_diff(from).div_ceil(step.unsigned_abs())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a slice means, said directly: walk and keep what is inside.
    fn slow(low: Option<i64>, high: Option<i64>, step: i64, len: i64) -> Vec<usize> {
        let wrap = |v: i64| if v < 0 { v + len } else { v };
        let first = low.map_or(if step < 0 { len - 1 } else { 0 }, wrap);
        let last = high.map_or(if step < 0 { -100 } else { 100 }, wrap);
        let mut at = if step < 0 { first.min(len - 1) } else { first.max(0) };
        let mut out = vec![];
        while (-200..200).contains(&at) && if step < 0 { at > last } else { at < last } {
            if (0..len).contains(&at) {
                out.push(at as usize);
            }
            at += step;
        }
        out
    }

    const BOUNDS: [Option<i64>; 9] = [None, Some(-9), Some(-7), Some(-3), Some(-1), Some(0), Some(1), Some(3), Some(9)];

    #[test]
    fn slices_clamp() {
        for len in 0..5 {
            for (low, high) in BOUNDS.iter().flat_map(|l| BOUNDS.iter().map(move |h| (*l, *h))) {
                for step in [-3, -2, -1, 1, 2, 3] {
                    let got = Slice::of(len, low, high, Some(step)).map(|s| s.positions().collect());
                    assert_eq!(got, Some(slow(low, high, step, len as i64)), "{low:?}:{high:?}:{step} of {len}");
                }
            }
        }
        assert_eq!(Slice::of(3, Some(0), Some(1), Some(0)), None);
    }

    /// However large a bound or a step is, it means what one just beyond the ends does.
    #[test]
    fn large_bounds_are_like_those_beyond_the_ends() {
        let near = |n: Option<i64>| n.map(|n| n.clamp(-9, 9));
        let large = [None, Some(i64::MIN), Some(i64::MIN + 1), Some(-1), Some(2), Some(i64::MAX - 1), Some(i64::MAX)];
        let positions = |s: Option<Slice>| s.map(|s| s.positions().collect::<Vec<_>>());
        for (low, high) in large.iter().flat_map(|l| large.iter().map(move |h| (*l, *h))) {
            for (step, len) in large.iter().flat_map(|s| (0..5).map(move |len| (*s, len))) {
                let got = positions(Slice::of(len, low, high, step));
                let like = positions(Slice::of(len, near(low), near(high), near(step)));
                assert_eq!(got, like, "{low:?}:{high:?}:{step:?}");
            }
        }
    }

    #[test]
    fn counts_do_not_overflow() {
        assert_eq!(count(i64::MIN, i64::MAX, i64::MAX), Some(3));
        assert_eq!(count(i64::MAX, i64::MIN, i64::MIN), Some(2));
        assert_eq!(count(i64::MIN, i64::MAX, 1), Some(u64::MAX));
        assert_eq!(count(0, 10, 3), Some(4));
        assert_eq!(count(10, 0, -3), Some(4));
        assert_eq!(count(5, 5, 1), Some(0));
        assert_eq!(count(0, 5, 0), None);
    }
}
