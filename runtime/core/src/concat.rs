//! Tensors one after the other along an axis: copies at the speed of memory, however many they are.
//!
//! A kernel would ask for each element which tensor it comes from, once for each of them.

use crate::pool::Pool;

/// Bytes of the result that a thread takes at once.
const CHUNK: usize = 1 << 19;
/// Bytes of the result that are filled part by part before the next ones: they stay in the nearest cache.
const BLOCK: usize = 1 << 14;

/// A tensor, and the bytes that it has in each row of the result.
#[derive(Clone, Copy)]
pub struct Part<'a> {
    pub bytes: &'a [u8],
    pub row: usize,
}

/// Fills `out`, whose rows have those of all parts one after the other.
pub fn concat(pool: &Pool, parts: &[Part], out: &mut [u8]) {
    let row: usize = parts.iter().map(|p| p.row).sum();
    if row == 0 || out.is_empty() {
        return;
    }
    // Where each part begins in a row.
    let mut begins = Vec::with_capacity(parts.len());
    let mut at = 0;
    for part in parts {
        begins.push(at);
        at += part.row;
    }
    if row > CHUNK {
        // Long rows are divided themselves.
        pool.each_chunk(out, CHUNK, &|i, chunk| bytes(parts, &begins, row, i * CHUNK, chunk));
        return;
    }
    let rows = CHUNK / row;
    pool.each_chunk(out, rows * row, &|i, chunk| {
        let few = (BLOCK / row).max(1);
        for (j, block) in chunk.chunks_mut(few * row).enumerate() {
            whole(parts, &begins, row, i * rows + j * few, block);
        }
    });
}

/// Whole rows, from row `first` on.
fn whole(parts: &[Part], begins: &[usize], row: usize, first: usize, out: &mut [u8]) {
    let count = out.len() / row;
    for (part, &begin) in parts.iter().zip(begins) {
        let source = &part.bytes[first * part.row..(first + count) * part.row];
        // A copy of a size that is known here is an instruction.
        match part.row {
            0 => {}
            1 => elements::<1>(source, begin, row, out),
            2 => elements::<2>(source, begin, row, out),
            4 => elements::<4>(source, begin, row, out),
            8 => elements::<8>(source, begin, row, out),
            16 => elements::<16>(source, begin, row, out),
            n => {
                for (from, to) in source.chunks_exact(n).zip(out.chunks_exact_mut(row)) {
                    to[begin..begin + n].copy_from_slice(from);
                }
            }
        }
    }
}

fn elements<const N: usize>(source: &[u8], begin: usize, row: usize, out: &mut [u8]) {
    for (from, to) in source.as_chunks::<N>().0.iter().zip(out.chunks_exact_mut(row)) {
        to[begin..begin + N].copy_from_slice(from);
    }
}

/// The bytes of the result from `start` on.
fn bytes(parts: &[Part], begins: &[usize], row: usize, mut start: usize, mut out: &mut [u8]) {
    while !out.is_empty() {
        let (line, column) = (start / row, start % row);
        // The last one that begins there: those before it that do are empty.
        let i = begins.partition_point(|b| *b <= column) - 1;
        let (part, skipped) = (parts[i], column - begins[i]);
        let n = (part.row - skipped).min(out.len());
        let (to, rest) = out.split_at_mut(n);
        let from = line * part.row + skipped;
        to.copy_from_slice(&part.bytes[from..from + n]);
        (start, out) = (start + n, rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same, byte by byte.
    fn plain(parts: &[Part], rows: usize) -> Vec<u8> {
        (0..rows).flat_map(|r| parts.iter().flat_map(move |p| p.bytes[r * p.row..(r + 1) * p.row].to_vec())).collect()
    }

    #[test]
    fn every_byte_is_where_it_belongs() {
        let pool = Pool::new(3);
        let sizes: [(usize, &[usize]); 7] = [
            (1, &[5]),
            (7, &[0, 3, 0, 0, 4, 1, 0]),
            (1000, &[4, 4, 4, 4]),
            (50_000, &[1, 2, 4, 8, 16, 3]),
            (3, &[CHUNK - 1, 0, CHUNK + 1, 7]),
            (2, &[2 * CHUNK + 5, 1, 0]),
            (40_000, &[0, 12, 0]),
        ];
        for (rows, row) in sizes {
            let fill = |(i, n): (usize, &usize)| (0..n * rows).map(|k| (k * 7 + i * 31 + k / 251) as u8).collect();
            let data: Vec<Vec<u8>> = row.iter().enumerate().map(fill).collect();
            let parts: Vec<Part> = data.iter().zip(row).map(|(d, &row)| Part { bytes: d, row }).collect();
            let mut out = vec![0; rows * row.iter().sum::<usize>()];
            concat(&pool, &parts, &mut out);
            assert!(out == plain(&parts, rows), "{rows} rows of {row:?}");
        }
    }

    #[test]
    fn nothing_is_nothing() {
        let pool = Pool::new(2);
        concat(&pool, &[], &mut []);
        concat(&pool, &[Part { bytes: &[], row: 0 }, Part { bytes: &[], row: 4 }], &mut []);
    }
}
