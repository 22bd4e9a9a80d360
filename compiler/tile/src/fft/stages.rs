//! One stage: loads, a butterfly, factors, stores.

use super::{FftKind, StageBuffer, Transform};
use tessera_ir::index::Index;
use tessera_ir::tile::{LANE, Val};
use tessera_ops::fft::codelet::{self, Arith, Pair};
use tessera_ops::fft::{Stage, TWIST_BLOCK};

impl Transform<'_> {
    /// Whether real and imaginary parts trade places on the way through the stages.
    fn swapped(&self) -> bool {
        matches!(self.f.kind, FftKind::Inverse | FftKind::RealInverse)
    }

    fn lane(&self) -> Index {
        if self.share.lanes > 1 { Index::var(LANE) } else { Index::default() }
    }

    /// Position of part 0 of element `j` of the transforms of this vector in memory that lies in
    /// columns of `n` elements of `width` floats.
    pub fn column_at(&self, j: &Index, n: u64, width: i64) -> Index {
        let row = self.outer.times(n as i64).plus(j);
        row.times(self.layout.across as i64).plus(&self.column).plus(&self.lane()).times(width)
    }

    /// Position of a part of a point in scratch.
    pub fn scratch_at(&self, point: &Index, part: i64) -> Index {
        point.times(2).offset(part).times(i64::from(self.share.lanes)).plus(&self.lane())
    }

    pub fn load_point(&mut self, from: StageBuffer, j: &Index) -> Pair<Val> {
        let valid = self.share.valid;
        match from {
            StageBuffer::Scratch(buf) => {
                [0, 1].map(|part| self.c.load(buf, self.scratch_at(j, part), self.share.lanes))
            }
            StageBuffer::Operand if self.f.kind == FftKind::RealForward => {
                // Neighbouring reals are the parts of a point.
                [0, 1].map(|part| {
                    let at = self.column_at(&j.times(2).offset(part), self.layout.n_from, 1);
                    self.c.load(self.input, at, valid)
                })
            }
            StageBuffer::Operand => {
                let at = self.column_at(j, self.layout.n_from, 2);
                [0, 1].map(|part| self.c.load(self.input, at.offset(part), valid))
            }
        }
    }

    pub fn store_scratch(&mut self, buf: u32, point: &Index, value: Pair<Val>) {
        for (part, v) in value.into_iter().enumerate() {
            let at = self.scratch_at(point, part as i64);
            self.c.store(buf, at, v, self.share.lanes);
        }
    }

    /// Stores a result where results lie in columns.
    pub fn store_column(&mut self, k: &Index, value: Pair<Val>) {
        let valid = self.share.valid;
        let positions = if self.f.kind == FftKind::RealInverse {
            [0, 1].map(|part| self.column_at(&k.times(2).offset(part), self.layout.n_to, 1))
        } else {
            let at = self.column_at(k, self.layout.n_to, 2);
            [at.clone(), at.offset(1)]
        };
        for (at, v) in positions.into_iter().zip(value) {
            self.c.store(self.output, at, v, valid);
        }
    }

    /// A factor of the table, the same in all lanes.
    pub fn factor(&mut self, at: Index) -> Pair<Val> {
        [0, 1].map(|part| self.c.load_one(self.table, at.offset(part)))
    }

    /// Stage `s`; `ends`: whether it is the first and the last one.
    pub fn stage(&mut self, s: &Stage, from: StageBuffer, to: StageBuffer, ends: [bool; 2]) {
        let (before, after) = (s.before as u64, s.after as u64);
        self.each(0, after, &mut |t, p| {
            let p = p.clone();
            t.each(0, before, &mut |t, q| t.butterfly(s, from, to, ends, [&p, q]));
        });
    }

    /// `body` for each position in `lo..hi`; a single one needs no loop.
    pub fn each(&mut self, lo: u64, hi: u64, body: &mut dyn FnMut(&mut Self, &Index)) {
        let Some((var, index)) = self.c.open(lo, hi) else {
            if lo < hi {
                body(self, &Index::constant(lo as i64));
            }
            return;
        };
        body(self, &index);
        self.c.close(var, lo, hi);
    }

    fn butterfly(
        &mut self,
        s: &Stage,
        from: StageBuffer,
        to: StageBuffer,
        [first, last]: [bool; 2],
        [p, q]: [&Index; 2],
    ) {
        let (before, r) = (s.before as i64, s.radix as i64);
        let place = q.plus(&p.times(before));
        let mut points = vec![];
        for k in 0..r {
            let z = self.load_point(from, &place.offset(before * s.after as i64 * k));
            points.push(if first && self.swapped() { [z[1], z[0]] } else { z });
        }
        let place = q.plus(&p.times(before * r));
        for (j, mut z) in codelet::dft(&mut self.c, &points).into_iter().enumerate() {
            if s.after > 1 && j > 0 {
                let w = self.factor(p.times(2 * (r - 1)).offset(s.table as i64 + 2 * (j as i64 - 1)));
                z = codelet::mul(&mut self.c, z, w);
            }
            let k = place.offset(before * j as i64);
            if last {
                z = self.finish(z, &k);
            }
            match to {
                StageBuffer::Scratch(buf) => self.store_scratch(buf, &k, z),
                StageBuffer::Operand => self.store_column(&k, z),
            }
        }
    }

    /// What happens to result `k` after the last stage: twist, factor, parts back in order.
    fn finish(&mut self, mut z: Pair<Val>, k: &Index) -> Pair<Val> {
        if let Some([blocks, lanes]) = self.twists {
            let width = TWIST_BLOCK as i64;
            let (block, lane) = self.column.div_mod(width, &|v| self.c.range(v));
            let at = block.times(self.f.points as i64).plus(k).times(2);
            let a = [0, 1].map(|part| self.c.load_one(blocks, at.offset(part)));
            let lane = lane.plus(&self.lane());
            let b = [0, 1].map(|part| {
                let at = k.times(2).offset(part).times(width).plus(&lane);
                self.c.load(lanes, at, self.share.valid)
            });
            let w = codelet::mul(&mut self.c, a, b);
            z = codelet::mul(&mut self.c, z, w);
        }
        if self.f.scale != 1.0 && self.f.kind != FftKind::RealForward {
            let by = self.c.constant(self.f.scale as f32);
            z = codelet::scale(&mut self.c, z, by);
        }
        if self.swapped() { [z[1], z[0]] } else { z }
    }
}
