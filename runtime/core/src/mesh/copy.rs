//! Boxes of elements from array to array.

use super::Box;

/// Boxes of at least so many bytes are written past the caches, which they would fill: memory then is not read before it is
/// written.
const STREAM_MIN: usize = 4 << 20;

/// So many bytes ahead memory is asked for where it is streamed: what the processor fetches by itself ends with a row.
const AHEAD: usize = 4096;

/// Copies a box of one array into a box of the same size of another.
pub fn copy(
    from: &[u8],
    (from_shape, a): (&[u64], &Box),
    to: &mut [u8],
    (to_shape, b): (&[u64], &Box),
    element: usize,
) {
    if a.size.contains(&0) || a.size != b.size {
        return;
    }
    // Trailing dims that are whole on both sides belong to one row.
    let rank = a.size.len();
    let mut outer = rank;
    while outer > 0 && a.size[outer - 1] == from_shape[outer - 1] && a.size[outer - 1] == to_shape[outer - 1] {
        outer -= 1;
    }
    let outer = outer.saturating_sub(1);
    let run = a.size[outer..].iter().product::<u64>() as usize * element;
    let strides = |shape: &[u64]| -> Vec<u64> {
        (0..rank).map(|d| shape[d + 1..].iter().product::<u64>() * element as u64).collect()
    };
    let (sa, sb) = (strides(from_shape), strides(to_shape));
    let place = |strides: &[u64], start: &[u64]| strides.iter().zip(start).map(|(s, i)| s * i).sum::<u64>();
    let (first_a, first_b) = (place(&sa, &a.start), place(&sb, &b.start));
    let row = |at: &[u64]| (first_a + place(&sa, at)) as usize;
    let streams = a.elems() * element >= STREAM_MIN;
    // The rows that are asked for while one is copied.
    let mut ahead = vec![0u64; outer];
    let mut is_ahead = (0..(AHEAD / run.max(1)).max(1)).all(|_| advance(&mut ahead, &a.size));
    let mut at = vec![0u64; outer];
    loop {
        let (x, y) = (row(&at), (first_b + place(&sb, &at)) as usize);
        if let (Some(x), Some(y)) = (from.get(x..x + run), to.get_mut(y..y + run)) {
            let soon = if is_ahead { from.get(row(&ahead)..) } else { None };
            if streams { stream(y, x, soon.unwrap_or_default()) } else { y.copy_from_slice(x) }
        }
        if !advance(&mut at, &a.size) {
            break;
        }
        is_ahead = is_ahead && advance(&mut ahead, &a.size);
    }
    if streams {
        settle();
    }
}

/// Goes to the next of the rows of a box; whether there is one.
fn advance(at: &mut [u64], size: &[u64]) -> bool {
    let Some(d) = (0..at.len()).rev().find(|&d| at[d] + 1 < size[d]) else { return false };
    at[d] += 1;
    at[d + 1..].fill(0);
    true
}

/// Ends streaming: what was streamed is in memory before anything that is written from here on.
fn settle() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 has it.
    unsafe {
        std::arch::x86_64::_mm_sfence()
    };
}

/// Copies bytes past the caches; both have the same length. `soon` starts with the row that is [`AHEAD`] of them, or with the
/// next one if that is farther.
#[cfg(target_arch = "x86_64")]
fn stream(to: &mut [u8], from: &[u8], soon: &[u8]) {
    use std::arch::x86_64::{__m128i, _MM_HINT_T0, _mm_loadu_si128, _mm_prefetch, _mm_stream_si128};
    const LINE: usize = 64;
    const WORD: usize = 16;
    // Streamed words must be aligned.
    let start = to.as_ptr().align_offset(LINE).min(to.len());
    let (head, body) = to.split_at_mut(start);
    let (from_head, from_body) = from.split_at(start);
    head.copy_from_slice(from_head);
    let (lines, rest) = body.split_at_mut(body.len() / LINE * LINE);
    let (from_lines, from_rest) = from_body.split_at(lines.len());
    for (i, (line, own)) in lines.chunks_exact_mut(LINE).zip(from_lines.chunks_exact(LINE)).enumerate() {
        let at = i * LINE + AHEAD.min(from.len());
        if let Some(byte) = from.get(at).or_else(|| soon.get(at - from.len())) {
            // SAFETY: asking for memory ahead has no effect on what a program means.
            unsafe { _mm_prefetch(std::ptr::from_ref(byte).cast(), _MM_HINT_T0) };
        }
        let (to, from) = (line.as_mut_ptr(), own.as_ptr());
        for word in (0..LINE).step_by(WORD) {
            // SAFETY: both have 64 bytes, and the line is aligned to as many.
            unsafe { _mm_stream_si128(to.add(word).cast::<__m128i>(), _mm_loadu_si128(from.add(word).cast())) };
        }
    }
    rest.copy_from_slice(from_rest);
}

#[cfg(not(target_arch = "x86_64"))]
fn stream(to: &mut [u8], from: &[u8], _soon: &[u8]) {
    to.copy_from_slice(from);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_are_copied() {
        let from: Vec<u8> = (0..24).collect();
        let part = |start: &[u64], size: &[u64]| Box { start: start.to_vec(), size: size.to_vec() };
        let mut to = vec![0u8; 12];
        copy(&from, (&[4, 6], &part(&[1, 2], &[2, 3])), &mut to, (&[3, 4], &part(&[0, 1], &[2, 3])), 1);
        assert_eq!(to, [0, 8, 9, 10, 0, 14, 15, 16, 0, 0, 0, 0]);
        let mut to = vec![0u8; 12];
        copy(&from, (&[4, 6], &part(&[2, 0], &[2, 6])), &mut to, (&[2, 6], &part(&[0, 0], &[2, 6])), 1);
        assert_eq!(to, (12..24).collect::<Vec<u8>>());
        let mut to = vec![0u8; 2];
        copy(&[7, 8], (&[], &part(&[], &[])), &mut to, (&[], &part(&[], &[])), 2);
        assert_eq!(to, [7, 8]);
    }

    #[test]
    fn large_boxes_are_copied() {
        // Rows of odd length, so that none is aligned as the one before it.
        let (rows, columns, wide) = (1031u64, STREAM_MIN as u64 / 1024 + 5, STREAM_MIN as u64 / 1024 + 41);
        let from: Vec<u8> = (0..rows * columns).map(|i| (i * i % 251) as u8).collect();
        let part = |start: &[u64]| Box { start: start.to_vec(), size: vec![rows, columns] };
        let mut to = vec![0u8; (rows * wide) as usize];
        copy(&from, (&[rows, columns], &part(&[0, 0])), &mut to, (&[rows, wide], &part(&[0, 17])), 1);
        for (i, row) in to.chunks(wide as usize).enumerate() {
            let own = &from[i * columns as usize..][..columns as usize];
            assert!(row[..17].iter().chain(&row[17 + columns as usize..]).all(|b| *b == 0));
            assert!(row[17..][..columns as usize] == *own);
        }
    }
}
