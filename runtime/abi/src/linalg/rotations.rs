//! Plane rotations that are collected and applied together: to rows in panels of columns, each of which stays in a cache
//! while all of them go over it. A rotation treats columns alike, so panels and threads change no bit.

use super::number::Real;
use super::vectors::{hypotenuse, vectorised};
use super::workers::Workers;

/// Columns of a panel.
const WIDTH: usize = 32;

/// Rows `i` and `k` become `c · i + s · k` and `c · k - s · i`.
#[derive(Clone, Copy, Debug)]
pub struct Rotation<T> {
    pub i: usize,
    pub k: usize,
    pub c: T,
    pub s: T,
}

/// The cosine and the sine that take `(x, y)` to `(r, 0)`, and `r`.
pub fn turning<T: Real>(x: T, y: T) -> [T; 3] {
    if y == T::ZERO {
        return [T::ONE, T::ZERO, x];
    }
    let r = hypotenuse(x, y);
    [x / r, y / r, r]
}

/// Rows that rotations act on, in panels.
pub struct Rows<T> {
    panels: Vec<T>,
    count: usize,
    width: usize,
    waiting: Vec<Rotation<T>>,
}

impl<T: Real> Rows<T> {
    /// `count` rows: the columns of `columns`, whose rows have `count` elements.
    pub fn of_columns(columns: &[T], count: usize) -> Rows<T> {
        let width = columns.len() / count.max(1);
        let mut panels = vec![T::ZERO; count * width.next_multiple_of(WIDTH)];
        for (at, row) in columns.chunks_exact(count.max(1)).enumerate() {
            let panel = &mut panels[at / WIDTH * WIDTH * count..];
            panel[at % WIDTH..].iter_mut().step_by(WIDTH).zip(row).for_each(|(to, x)| *to = *x);
        }
        Rows { panels, count, width, waiting: vec![] }
    }

    /// Adds a rotation to those that wait.
    pub fn turn<W: Workers>(&mut self, workers: &W, rotation: Rotation<T>) {
        self.waiting.push(rotation);
        if self.waiting.len() >= 8 * self.count {
            self.settle(workers);
        }
    }

    /// Applies what waits.
    pub fn settle<W: Workers>(&mut self, workers: &W) {
        let waiting = std::mem::take(&mut self.waiting);
        if waiting.is_empty() {
            return;
        }
        let size = self.count * WIDTH;
        let work = |_: usize, panel: &mut [T]| apply(panel, &waiting);
        if waiting.len() * self.count * WIDTH < 1 << 18 {
            self.panels.chunks_mut(size.max(1)).enumerate().for_each(|(i, p)| work(i, p));
        } else {
            workers.each_chunk(&mut self.panels, size, &work);
        }
    }

    /// Changes the sign of a row; nothing may wait.
    pub fn negate(&mut self, row: usize) {
        for panel in self.panels.chunks_exact_mut((self.count * WIDTH).max(1)) {
            panel[row * WIDTH..][..WIDTH].iter_mut().for_each(|x| *x = -*x);
        }
    }

    /// Writes row `order[i]` as row `i`, rows of `width` elements.
    pub fn write_rows(&self, order: &[usize], to: &mut [T]) {
        for (row, &from) in to.chunks_exact_mut(self.width.max(1)).zip(order) {
            for (p, part) in row.chunks_mut(WIDTH).enumerate() {
                part.copy_from_slice(&self.panels[(p * self.count + from) * WIDTH..][..part.len()]);
            }
        }
    }

    /// Writes row `order[i]` as column `i`, rows of as many elements as there are rows here.
    pub fn write_columns(&self, order: &[usize], to: &mut [T]) {
        for (at, row) in to.chunks_exact_mut(self.count.max(1)).enumerate() {
            let panel = &self.panels[at / WIDTH * WIDTH * self.count..];
            row.iter_mut().zip(order).for_each(|(to, from)| *to = panel[from * WIDTH + at % WIDTH]);
        }
    }
}

vectorised! {
    fn apply<T: Real>(panel: &mut [T], rotations: &[Rotation<T>]) {
        let rows = panel.as_chunks_mut::<WIDTH>().0;
        for &Rotation { i, k, c, s } in rotations {
            let (mut x, mut y) = (rows[i], rows[k]);
            for j in 0..WIDTH {
                let (a, b) = (x[j], y[j]);
                x[j] = s.mul_add(b, c * a);
                y[j] = (-s).mul_add(a, c * b);
            }
            rows[i] = x;
            rows[k] = y;
        }
    }
}
