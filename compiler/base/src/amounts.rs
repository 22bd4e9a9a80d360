//! Amounts as people write them: `2GiB` of memory, `1.2s` of time.

/// Bytes of each unit; those that end others come last.
const BYTES: [(&str, u64); 9] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("B", 1),
];

/// Nanoseconds of each unit; those that end others come last.
const NANOSECONDS: [(&str, u64); 5] =
    [("ns", 1), ("us", 1_000), ("µs", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];

/// `2GiB`, `1.5GB`, `4096`: bytes. `None` for what is no amount, and for what no machine has.
pub fn bytes(text: &str) -> Option<u64> {
    amount(text.trim(), &BYTES, Some(1))
}

/// `1.2s`, `15 ms`: nanoseconds. A number alone is no time.
pub fn nanoseconds(text: &str) -> Option<u64> {
    amount(text.trim(), &NANOSECONDS, None)
}

fn amount(text: &str, units: &[(&str, u64)], alone: Option<u64>) -> Option<u64> {
    let unit = units.iter().find_map(|(name, size)| Some((text.strip_suffix(name)?, *size)));
    let (number, size) = unit.or(alone.map(|size| (text, size)))?;
    let number: f64 = number.trim().parse().ok()?;
    let total = number * size as f64;
    (0.0..1e18).contains(&total).then_some(total as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_numbers_with_a_unit() {
        assert_eq!(
            ["4096", "1.5KiB", "2GiB", "500 MB", "7B", "0"].map(bytes),
            [Some(4096), Some(1536), Some(2 << 30), Some(500_000_000), Some(7), Some(0)]
        );
        assert!(["", "GiB", "2G", "-1MB", "1e30TB", "NaN", "1s"].iter().all(|t| bytes(t).is_none()));
        assert_eq!(
            ["1.2s", "15 ms", "3us", "3µs", "7ns"].map(nanoseconds),
            [Some(1_200_000_000), Some(15_000_000), Some(3_000), Some(3_000), Some(7)]
        );
        assert!(["", "s", "2", "1h", "-1s", "1GiB"].iter().all(|t| nanoseconds(t).is_none()));
    }
}
