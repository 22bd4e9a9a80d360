//! Positions and slices of sequences, as Python reads them.

use crate::fault::Fault;

/// A bound that a slice leaves out.
pub const ABSENT: i64 = i64::MIN;

/// The position that an index means; negative ones count from the end.
pub fn position(index: i64, len: usize, what: &str) -> Result<usize, Fault> {
    let at = if index < 0 { index.wrapping_add(len as i64) } else { index };
    if at >= 0 && (at as u64) < len as u64 {
        return Ok(at as usize);
    }
    let message = match len {
        0 => format!("index {index} is out of range: the {what} is empty"),
        _ => format!("index {index} is out of range for a {what} of length {len}"),
    };
    Err(Fault::new(703, message))
}

/// The positions of a slice: the first, the distance between two, and how many.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Range {
    pub start: i64,
    pub step: i64,
    pub count: usize,
}

impl Range {
    /// `start:stop:step` of a sequence; bounds beyond its ends are clamped.
    pub fn of_slice(start: i64, stop: i64, step: i64, len: usize) -> Result<Range, Fault> {
        let step = if step == ABSENT { 1 } else { step };
        if step == 0 {
            return Err(Fault::new(711, "the step of a slice is 0"));
        }
        let len = len as i64;
        let (least, most) = if step < 0 { (-1, len - 1) } else { (0, len) };
        let bound = |value: i64, absent: i64| match value {
            ABSENT => absent,
            v if v < 0 => (v + len).max(least),
            v => v.min(most),
        };
        let (from, to) = if step < 0 { (most, least) } else { (least, most) };
        let (start, stop) = (bound(start, from), bound(stop, to));
        Ok(Range { start, step, count: count(start, stop, step) })
    }

    pub fn positions(self) -> impl Iterator<Item = usize> {
        (0..self.count as i64).map(move |i| (self.start + i * self.step) as usize)
    }
}

/// Numbers in `start, start + step, …` before `stop`; the step is not 0.
pub fn count(start: i64, stop: i64, step: i64) -> usize {
    let distance = if step > 0 { stop.wrapping_sub(start) } else { start.wrapping_sub(stop) } as u64;
    let empty = if step > 0 { start >= stop } else { start <= stop };
    if empty { 0 } else { ((distance - 1) / step.unsigned_abs() + 1) as usize }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a slice means, said directly: walk and keep what is inside.
    fn slow(start: i64, stop: i64, step: i64, len: i64) -> Vec<usize> {
        let wrap = |v: i64| if v < 0 { v + len } else { v };
        let first = if start == ABSENT { if step < 0 { len - 1 } else { 0 } } else { wrap(start) };
        let last = if stop == ABSENT { if step < 0 { -100 } else { 100 } } else { wrap(stop) };
        let first = if step < 0 { first.min(len - 1) } else { first.max(0) };
        let mut at = first;
        let mut out = vec![];
        while if step < 0 { at > last } else { at < last } {
            if (0..len).contains(&at) {
                out.push(at as usize);
            }
            at += step;
            if !(-200..200).contains(&at) {
                break;
            }
        }
        out
    }

    #[test]
    fn slices_clamp() {
        for len in 0..5 {
            for start in [ABSENT, -7, -3, -1, 0, 1, 3, 9] {
                for stop in [ABSENT, -7, -3, -1, 0, 1, 3, 9] {
                    for step in [-3, -2, -1, 1, 2, 3] {
                        let range = Range::of_slice(start, stop, step, len as usize).map(|r| r.positions().collect());
                        // Bounds that wrap below 0 are clamped, which the walk sees as before the start.
                        assert_eq!(range, Ok(slow(start, stop, step, len)), "{start}:{stop}:{step} of {len}");
                    }
                }
            }
        }
        assert!(Range::of_slice(0, 1, 0, 3).is_err());
    }

    #[test]
    fn counts_do_not_overflow() {
        assert_eq!(count(i64::MIN, i64::MAX, i64::MAX), 3);
        assert_eq!(count(i64::MAX, i64::MIN, i64::MIN), 2);
        assert_eq!(count(0, 10, 3), 4);
        assert_eq!(count(10, 0, -3), 4);
        assert_eq!(count(5, 5, 1), 0);
    }

    #[test]
    fn positions_say_what_is_out_of_range() {
        assert_eq!(position(-1, 3, "list"), Ok(2));
        let message = position(3, 3, "list").map_err(|f| f.message);
        assert_eq!(message, Err("index 3 is out of range for a list of length 3".into()));
        assert!(position(i64::MIN, 3, "list").is_err());
        assert!(position(0, 0, "list").is_err());
    }
}
