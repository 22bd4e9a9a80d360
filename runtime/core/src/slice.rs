//! Positions and slices of sequences, as Python reads them.

use crate::fault::Fault;
use tessera_abi::slice::Slice;

/// A bound that a slice leaves out. Programs pass one more for an int of this value, which means the same.
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

/// `start:stop:step` of a sequence of `len` elements, with [`ABSENT`] for what is left out.
///
/// # Errors
/// E0711 for a step of 0.
pub fn slice(start: i64, stop: i64, step: i64, len: usize) -> Result<Slice, Fault> {
    let [start, stop, step] = [start, stop, step].map(|n| (n != ABSENT).then_some(n));
    Slice::of(len as u64, start, stop, step).ok_or_else(|| Fault::new(711, "the step of a slice is 0"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_that_is_left_out_is_none() {
        let of = |start, stop, step| slice(start, stop, step, 3).map(|s| s.positions().collect::<Vec<_>>());
        assert_eq!(of(ABSENT, ABSENT, ABSENT), Ok(vec![0, 1, 2]));
        assert_eq!(of(ABSENT, ABSENT, ABSENT + 1), Ok(vec![2]));
        assert!(of(0, 1, 0).is_err());
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
