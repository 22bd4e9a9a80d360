//! Boxes of elements from array to array.

use super::Box;

/// Boxes of at least so many bytes are written past the caches, which they would fill: memory then is not read before it is
/// written.
const STREAM_MIN: usize = 4 << 20;

/// Copies a box of one array into a box of the same size of another.
pub(super) fn copy(
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
    let streams = a.elems() * element >= STREAM_MIN;
    let copy_run = if streams { stream } else { <[u8]>::copy_from_slice };
    let mut at = vec![0u64; outer];
    loop {
        let (x, y) = ((first_a + place(&sa, &at)) as usize, (first_b + place(&sb, &at)) as usize);
        if let (Some(x), Some(y)) = (from.get(x..x + run), to.get_mut(y..y + run)) {
            copy_run(y, x);
        }
        let Some(d) = (0..outer).rev().find(|&d| at[d] + 1 < a.size[d]) else { break };
        at[d] += 1;
        at[d + 1..].fill(0);
    }
    if streams {
        settle();
    }
}

/// Ends streaming: what was streamed is in memory before anything that is written from here on.
fn settle() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 has it.
    unsafe {
        std::arch::x86_64::_mm_sfence()
    };
}

/// Copies bytes past the caches. Both have the same length.
#[cfg(target_arch = "x86_64")]
fn stream(to: &mut [u8], from: &[u8]) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_stream_si128};
    const LINE: usize = 64;
    const WORD: usize = 16;
    // Streamed words must be aligned.
    let start = to.as_ptr().align_offset(LINE).min(to.len());
    let (head, body) = to.split_at_mut(start);
    let (from_head, from_body) = from.split_at(start);
    head.copy_from_slice(from_head);
    let (lines, rest) = body.split_at_mut(body.len() / LINE * LINE);
    let (from_lines, from_rest) = from_body.split_at(lines.len());
    for (line, from) in lines.chunks_exact_mut(LINE).zip(from_lines.chunks_exact(LINE)) {
        let (to, from) = (line.as_mut_ptr(), from.as_ptr());
        for word in (0..LINE).step_by(WORD) {
            // SAFETY: both have 64 bytes, and the line is aligned to as many.
            unsafe { _mm_stream_si128(to.add(word).cast::<__m128i>(), _mm_loadu_si128(from.add(word).cast())) };
        }
    }
    rest.copy_from_slice(from_rest);
}

#[cfg(not(target_arch = "x86_64"))]
fn stream(to: &mut [u8], from: &[u8]) {
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
