//! Products that are added to what is there, element by element one chain of fused multiply-adds in
//! ascending position of what is summed over. Blocks, tiles and threads change no bit: a chain stays in
//! memory between blocks.

use super::matrix::View;
use super::number::{Real, Tile};
use super::workers::Workers;

/// Steps of a chain that a tile takes at once.
const DEPTH: usize = 256;
/// Rows of the result that a thread takes at once, at most.
const ROWS: usize = 96;
/// Multiplications that are worth a thread's wake-up.
const WAKE: usize = 1 << 18;
/// Elements that are worth one to be laid out.
const PACKED_MIN: usize = 1 << 15;

/// What is summed: `m` by `k` and `k` by `n`.
#[derive(Clone, Copy)]
pub struct Sizes {
    pub m: usize,
    pub n: usize,
    pub k: usize,
}

/// Where the result lies: rows of `width` elements, of which it takes `n` from `column` on.
pub struct Target<'a, T> {
    pub data: &'a mut [T],
    pub width: usize,
    pub column: usize,
    /// Only what is on and below the diagonal counts: the rest may become anything.
    pub lower: bool,
}

/// Factors that are laid out for tiles; its memory serves for one product after another.
pub struct Products<'w, T, W> {
    workers: &'w W,
    tile: Tile<T>,
    sizes: Sizes,
    a: Vec<T>,
    b: Vec<T>,
}

impl<'w, T: Real, W: Workers> Products<'w, T, W> {
    pub fn new(workers: &'w W) -> Products<'w, T, W> {
        Products { workers, tile: T::tile(), sizes: Sizes { m: 0, n: 0, k: 0 }, a: vec![], b: vec![] }
    }

    pub fn workers(&self) -> &'w W {
        self.workers
    }

    /// Takes the factors; `minus` turns the sign of each product.
    pub fn take(&mut self, sizes: Sizes, a: View<T>, b: View<T>, minus: bool) {
        self.sizes = sizes;
        let Sizes { m, n, k } = sizes;
        pack(self.workers, &mut self.a, [m, k], self.tile.rows, a, minus);
        // The other factor from the side: its columns are what is kept together.
        let b = View { rows: b.columns, columns: b.rows, ..b };
        pack(self.workers, &mut self.b, [n, k], self.tile.columns, b, false);
    }

    /// Adds the product of the factors.
    pub fn add(&self, c: Target<T>) {
        let Sizes { m, n, k } = self.sizes;
        if m == 0 || n == 0 || k == 0 {
            return;
        }
        let Target { data, width, column, lower } = c;
        let shared = m * n * k >= WAKE && self.workers.threads() > 1;
        let rows = if shared { m.div_ceil(4 * self.workers.threads()).clamp(1, ROWS) } else { ROWS };
        let rows = rows.next_multiple_of(self.tile.rows);
        let len = ((m - 1) * width + column + n).min(data.len());
        let work = |at: usize, chunk: &mut [T]| self.rows(at * rows, chunk, width, column, lower);
        if shared {
            self.workers.each_chunk(&mut data[..len], rows * width, &work);
        } else {
            data[..len].chunks_mut(rows * width).enumerate().for_each(|(at, chunk)| work(at, chunk));
        }
    }

    /// Rows from `first` on, of which `chunk` holds as many as there are.
    fn rows(&self, first: usize, chunk: &mut [T], width: usize, column: usize, lower: bool) {
        let Sizes { m, n, k } = self.sizes;
        let (mr, nr) = (self.tile.rows, self.tile.columns);
        let count = chunk.len().div_ceil(width).min(m - first);
        let mut sums = [T::ZERO; 256];
        for k0 in (0..k).step_by(DEPTH) {
            let deep = DEPTH.min(k - k0);
            for j in (0..n).step_by(nr) {
                let b = &self.b[j * k + k0 * nr..][..deep * nr];
                for i in (0..count).step_by(mr) {
                    let tall = mr.min(count - i);
                    if lower && j > first + i + tall - 1 {
                        continue;
                    }
                    let a = &self.a[(first + i) * k + k0 * mr..][..deep * mr];
                    let broad = nr.min(n - j);
                    let at = |r: usize| (i + r) * width + column + j;
                    for r in 0..tall {
                        sums[r * nr..][..broad].copy_from_slice(&chunk[at(r)..][..broad]);
                    }
                    (self.tile.add)(a, b, &mut sums[..mr * nr]);
                    for r in 0..tall {
                        chunk[at(r)..][..broad].copy_from_slice(&sums[r * nr..][..broad]);
                    }
                }
            }
        }
    }
}

/// Groups of `tile` rows, step by step, with zeros behind the last row.
fn pack<T: Real, W: Workers>(workers: &W, out: &mut Vec<T>, [m, k]: [usize; 2], tile: usize, a: View<T>, minus: bool) {
    let (groups, each) = (m.div_ceil(tile), (tile * k).max(1));
    out.clear();
    out.resize(groups * tile * k, T::ZERO);
    let sign = if minus { -T::ONE } else { T::ONE };
    let work = |g: usize, group: &mut [T]| packed(group, g * tile, tile.min(m - g * tile), tile, k, a, sign);
    if m * k < PACKED_MIN || workers.threads() == 1 {
        out.chunks_exact_mut(each).enumerate().for_each(|(g, group)| work(g, group));
        return;
    }
    let many = groups.div_ceil(4 * workers.threads());
    workers.each_chunk(out, many * each, &|chunk, part| {
        part.chunks_exact_mut(each).enumerate().for_each(|(g, group)| work(chunk * many + g, group));
    });
}

/// One group: `tall` rows from `first` on.
fn packed<T: Real>(group: &mut [T], first: usize, tall: usize, tile: usize, k: usize, a: View<T>, sign: T) {
    if a.rows == 1 {
        for (p, step) in group.chunks_exact_mut(tile).enumerate() {
            let line = &a.data[first + p * a.columns..][..tall];
            step.iter_mut().zip(line).for_each(|(to, x)| *to = sign * *x);
        }
    } else if a.columns == 1 {
        for r in 0..tall {
            let line = &a.data[(first + r) * a.rows..][..k];
            group[r..].iter_mut().step_by(tile).zip(line).for_each(|(to, x)| *to = sign * *x);
        }
    } else {
        for (p, step) in group.chunks_exact_mut(tile).enumerate() {
            for (r, to) in step[..tall].iter_mut().enumerate() {
                *to = sign * a.at(first + r, p);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::workers::Alone;
    use super::*;

    fn number(i: usize) -> f64 {
        (i * 7919 % 1009) as f64 / 503.0 - 1.0
    }

    #[test]
    fn elements_are_chains_whatever_the_tiles() {
        for (m, n, k) in [(1, 1, 1), (8, 16, 3), (9, 17, 300), (97, 33, 257), (5, 0, 2), (3, 4, 0)] {
            let a: Vec<f64> = (0..m * k).map(number).collect();
            let b: Vec<f64> = (0..k * n).map(|i| number(i + 5)).collect();
            let c: Vec<f64> = (0..m * n).map(|i| number(i + 11)).collect();
            let chain =
                |i: usize, j: usize| (0..k).fold(c[i * n + j], |sum, p| (-a[i * k + p]).mul_add(b[p * n + j], sum));
            let expected: Vec<f64> = (0..m * n).map(|at| chain(at / n.max(1), at % n.max(1))).collect();
            let mut products = Products::new(&Alone);
            products.take(Sizes { m, n, k }, View::rows(&a, k), View::rows(&b, n), true);
            let mut got = c.clone();
            products.add(Target { data: &mut got, width: n, column: 0, lower: false });
            assert_eq!(got, expected, "{m} {n} {k}");
        }
    }
}
