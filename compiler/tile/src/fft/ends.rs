//! The ways into scratch and out of it: rows turned over, half spectra joined and split.

use super::{FftKind, StageBuffer, Transform};
use tessera_ir::index::Index;
use tessera_ir::tile::{LANE, Val};
use tessera_ops::fft::codelet::{self, Arith, Pair};

impl Transform<'_> {
    /// Position in memory of lane 0 of row `r` of this vector, in rows of `floats`.
    fn row_at(&self, r: u32, floats: u64) -> Index {
        let row = self.outer.times(self.layout.across as i64).plus(&self.column).offset(i64::from(r));
        row.times(floats as i64)
    }

    /// Squares of `lanes` floats of as many rows, turned over, to scratch.
    pub fn rows_in(&mut self, to: u32, floats: u64) {
        let width = u64::from(self.share.lanes);
        let whole = floats / width;
        self.each(0, whole, &mut |t, tile| t.square_in(to, floats, tile, width as u32));
        if !floats.is_multiple_of(width) {
            self.square_in(to, floats, &Index::constant(whole as i64), (floats % width) as u32);
        }
    }

    fn square_in(&mut self, to: u32, floats: u64, tile: &Index, count: u32) {
        let lanes = self.share.lanes;
        let along = tile.times(i64::from(lanes)).plus(&Index::var(LANE));
        let rows = (0..lanes)
            .map(|r| match r < self.share.valid {
                true => self.c.load(self.input, self.row_at(r, floats).plus(&along), count),
                false => self.c.zeros(),
            })
            .collect();
        let columns = self.c.transpose(rows);
        for (i, v) in columns.into_iter().enumerate().take(count as usize) {
            let at = tile.times(i64::from(lanes)).offset(i as i64).times(i64::from(lanes)).plus(&Index::var(LANE));
            self.c.store(to, at, v, lanes);
        }
    }

    /// Result `k` as it leaves: of the forward transform of reals split from the two halves.
    fn result(&mut self, from: u32, k: &Index, mirror: &Index) -> Pair<Val> {
        if self.f.kind != FftKind::RealForward {
            return self.load_point(StageBuffer::Scratch(from), k);
        }
        let (z, m) =
            (self.load_point(StageBuffer::Scratch(from), k), self.load_point(StageBuffer::Scratch(from), mirror));
        let w = self.factor(k.times(2).offset(self.plan.half_table() as i64));
        let by = self.c.constant(0.5 * self.f.scale as f32);
        codelet::split_half(&mut self.c, z, m, w, by)
    }

    /// The point that mirrors `k`, and `k` itself, both below n. The ends of a half spectrum are
    /// known by number.
    fn mirrored(&self, k: &Index) -> [Index; 2] {
        let n = self.plan.n as i64;
        match k.as_constant() {
            Some(k) => [Index::constant(k % n), Index::constant((n - k) % n)],
            None => [k.clone(), Index::constant(n).minus(k)],
        }
    }

    /// Results to memory that lies in columns. The first and the last value of a half spectrum are
    /// made of the same point.
    pub fn columns_out(&mut self, from: u32) {
        let (n, count) = (self.plan.n as u64, self.layout.n_to);
        for (lo, hi) in [(0, 1), (1, count.min(n)), (n, count)] {
            self.each(lo, hi, &mut |t, k| {
                let [own, mirror] = t.mirrored(k);
                let z = t.result_at(from, k, &own, &mirror);
                t.store_column(k, z);
            });
        }
    }

    /// As [`Transform::result`] for value `k`, which is made of point `own`.
    fn result_at(&mut self, from: u32, k: &Index, own: &Index, mirror: &Index) -> Pair<Val> {
        if own == k {
            return self.result(from, k, mirror);
        }
        let (z, m) =
            (self.load_point(StageBuffer::Scratch(from), own), self.load_point(StageBuffer::Scratch(from), mirror));
        let w = self.factor(k.times(2).offset(self.plan.half_table() as i64));
        let by = self.c.constant(0.5 * self.f.scale as f32);
        codelet::split_half(&mut self.c, z, m, w, by)
    }

    /// Results turned over to rows, a square at a time.
    pub fn rows_out(&mut self, from: u32) {
        let real = self.f.kind == FftKind::RealInverse;
        let floats = self.layout.n_to * if real { 1 } else { 2 };
        let width = u64::from(self.share.lanes);
        let (whole, rest) = (floats / width, (floats % width) as u32);
        if self.f.kind != FftKind::RealForward {
            self.each(0, whole, &mut |t, tile| t.square_out(from, floats, tile, width as u32));
        } else {
            // Squares with one of the ends of the spectrum are written for themselves.
            let last = (self.plan.n as u64 * 2).div_euclid(width).min(whole);
            self.each(0, 1.min(whole), &mut |t, tile| t.square_out(from, floats, tile, width as u32));
            self.each(1, last, &mut |t, tile| t.square_out(from, floats, tile, width as u32));
            for tile in last.max(1)..whole {
                self.square_out(from, floats, &Index::constant(tile as i64), width as u32);
            }
        }
        if rest > 0 {
            self.square_out(from, floats, &Index::constant(whole as i64), rest);
        }
    }

    fn square_out(&mut self, from: u32, floats: u64, tile: &Index, count: u32) {
        let lanes = self.share.lanes;
        let mut columns: Vec<Val> = vec![];
        for i in 0..count.div_ceil(2) {
            let k = tile.times(i64::from(lanes / 2)).offset(i64::from(i));
            let [own, mirror] = self.mirrored(&k);
            columns.extend(self.result_at(from, &k, &own, &mirror));
        }
        let zeros = self.c.zeros();
        columns.resize(lanes as usize, zeros);
        let rows = self.c.transpose(columns);
        let along = tile.times(i64::from(lanes)).plus(&Index::var(LANE));
        for (r, v) in rows.into_iter().enumerate().take(self.share.valid as usize) {
            let at = self.row_at(r as u32, floats).plus(&along);
            self.c.store(self.output, at, v, count);
        }
    }

    /// The points of the half-length transform from a half spectrum, of which the values from
    /// `n_from` on are 0 and the ends are real.
    pub fn join(&mut self, from: StageBuffer, to: u32) {
        let (n, given) = (self.plan.n as u64, self.layout.n_from);
        self.join_one(from, to, &Index::constant(0), true, n < given);
        // Where the value itself or its mirror image begins or ceases to be given.
        let mut cuts = [1, n, given.clamp(1, n), (n + 1).saturating_sub(given).clamp(1, n)];
        cuts.sort_unstable();
        for range in cuts.windows(2) {
            let (lo, hi) = (range[0], range[1]);
            self.each(lo, hi, &mut |t, k| {
                let k = k.clone();
                t.join_one(from, to, &k, lo < given, n - lo < given);
            });
        }
    }

    fn join_one(&mut self, from: StageBuffer, to: u32, k: &Index, own: bool, mirror: bool) {
        let zero = self.c.constant(0.0);
        let n = Index::constant(self.plan.n as i64);
        let mut x = if own { self.load_point(from, k) } else { [zero; 2] };
        let mut m = if mirror { self.load_point(from, &n.minus(k)) } else { [zero; 2] };
        if k.as_constant() == Some(0) {
            (x[1], m[1]) = (zero, zero);
        }
        let w = self.factor(k.times(2).offset(self.plan.half_table() as i64));
        let z = codelet::join_half(&mut self.c, x, m, w);
        self.store_scratch(to, k, z);
    }
}
