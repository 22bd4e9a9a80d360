//! Combining elements with values at positions that come from data, in the order of the positions.
//!
//! Threads own parts of the result and go through all positions each, so that no element is
//! written by two threads and every element takes its terms in ascending order.

use crate::pool::Pool;
use std::ops::Range;
use std::sync::Mutex;

/// Moved bytes that are worth a thread's wake-up.
const WAKE_BYTES: usize = 1 << 15;
/// Columns that a thread takes at once where rows are long.
const COLUMNS: usize = 64;

/// `out[places[i] * row + j] ∘= values[i * row + j]`, `i` ascending. `places` are below the rows
/// of `out`.
pub fn scatter_rows<T: Copy + Send + Sync>(
    pool: &Pool,
    out: &mut [T],
    values: &[T],
    places: &[usize],
    row: usize,
    f: impl Fn(T, T) -> T + Copy + Sync,
) {
    let whole = |pool: &Pool, work: usize| pool.threads() > 1 && work * size_of::<T>() >= 2 * WAKE_BYTES;
    if row == 0 || !whole(pool, places.len() * row) {
        return for_rows(&Shared::new(out), values, places, row, 0..row, 0..usize::MAX, f);
    }
    let target = Shared::new(out);
    if row >= 2 * COLUMNS {
        let blocks = row.div_ceil(COLUMNS);
        let grain = (WAKE_BYTES / (places.len().max(1) * COLUMNS * size_of::<T>())).max(1);
        pool.run(blocks as u64, grain as u64, &|lo, hi| {
            let columns = lo as usize * COLUMNS..(hi as usize * COLUMNS).min(row);
            for_rows(&target, values, places, row, columns, 0..usize::MAX, f);
            0
        });
        return;
    }
    // Short rows: a thread owns a range of them and skips the others.
    let rows = target.len / row;
    let parts = pool.threads().min(rows.max(1));
    let per = rows.div_ceil(parts);
    pool.run(parts as u64, 1, &|lo, hi| {
        for_rows(&target, values, places, row, 0..row, lo as usize * per..hi as usize * per, f);
        0
    });
}

fn for_rows<T: Copy + Send + Sync>(
    out: &Shared<T>,
    values: &[T],
    places: &[usize],
    row: usize,
    columns: Range<usize>,
    owned: Range<usize>,
    f: impl Fn(T, T) -> T + Copy + Sync,
) {
    if row == 0 {
        return;
    }
    for (at, from) in places.iter().zip(values.chunks_exact(row)) {
        if owned.contains(at) {
            for (j, v) in columns.clone().zip(&from[columns.clone()]) {
                out.update(at * row + j, *v, f);
            }
        }
    }
}

/// Lines of `count` values each: `outer` blocks of `count` rows of `inner` values, which go to
/// blocks of `n` rows of `out`; `place` gives the row within the block for the position that
/// stands at an index of `positions`, in the order of the values.
///
/// # Errors
/// The first position (in the order of memory) that `place` refuses; `out` then holds anything.
pub fn scatter_along<T: Copy + Send + Sync>(
    pool: &Pool,
    out: &mut [T],
    values: &[T],
    positions: &[[u8; 8]],
    [outer, count, n, inner]: [usize; 4],
    place: impl Fn(i64) -> Option<i64> + Sync,
    f: impl Fn(T, T) -> T + Copy + Sync,
) -> Result<(), i64> {
    let target = Shared::new(out);
    let columns = if inner >= 2 * COLUMNS { COLUMNS } else { inner.max(1) };
    let blocks = inner.div_ceil(columns);
    let grain = (WAKE_BYTES / (count.max(1) * columns * size_of::<T>())).max(1);
    let refused = Mutex::new((usize::MAX, 0));
    pool.run((outer * blocks) as u64, grain as u64, &|lo, hi| {
        for point in lo as usize..hi as usize {
            let (o, first) = (point / blocks, point % blocks * columns);
            for i in 0..count {
                let row = (o * count + i) * inner;
                let range = row + first..row + (first + columns).min(inner);
                let lines = positions[range.clone()].iter().zip(&values[range.clone()]);
                for (from, (position, value)) in range.zip(lines) {
                    let position = i64::from_le_bytes(*position);
                    match place(position) {
                        Some(at) => target.update((o * n + at as usize) * inner + (from - row), *value, f),
                        None => {
                            let mut refused = refused.lock().unwrap_or_else(|e| e.into_inner());
                            *refused = (*refused).min((from, position));
                            return 0;
                        }
                    }
                }
            }
        }
        0
    });
    match refused.into_inner().unwrap_or_else(|e| e.into_inner()) {
        (usize::MAX, _) => Ok(()),
        (_, position) => Err(position),
    }
}

/// A slice whose elements several threads update, each its own.
struct Shared<T> {
    start: *mut T,
    len: usize,
}
// SAFETY: the callers above give every element to one thread.
unsafe impl<T: Send> Sync for Shared<T> {}

impl<T: Copy + Send + Sync> Shared<T> {
    fn new(out: &mut [T]) -> Shared<T> {
        Shared { start: out.as_mut_ptr(), len: out.len() }
    }

    #[inline]
    fn update(&self, at: usize, value: T, f: impl Fn(T, T) -> T) {
        if at < self.len {
            // SAFETY: in range; no other thread touches this element while it is written.
            unsafe {
                let p = self.start.add(at);
                p.write(f(p.read(), value));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_and_writes_are_those_of_one_thread() {
        for row in [1, 3, 500] {
            let rows = 50;
            let places: Vec<usize> = (0..4000).map(|i| i * 7919 % rows).collect();
            let values: Vec<f32> = (0..places.len() * row).map(|i| (i % 1000) as f32 * 0.1).collect();
            let run = |threads: usize, f: fn(f32, f32) -> f32| {
                let mut out = vec![1.0f32; rows * row];
                scatter_rows(&Pool::new(threads), &mut out, &values, &places, row, f);
                out
            };
            for f in [|a, b| a + b, |_, b| b] as [fn(f32, f32) -> f32; 2] {
                let one = run(1, f);
                assert!(one.iter().any(|x| *x != 1.0));
                assert_eq!(one, run(2, f));
                assert_eq!(one, run(5, f));
            }
        }
    }
}
