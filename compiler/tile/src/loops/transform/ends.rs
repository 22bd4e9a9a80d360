//! Half spectra: joined before the stages, split after them.

use super::{Lines, Place};
use crate::LowerError;
use crate::nest::Nest;
use tessera_ir::index::Index;
use tessera_ir::tile::Val;
use tessera_ops::fft::codelet::{self, Pair};
use tessera_ops::prim::FftKind;

impl<'s> Lines<'s> {
    /// Where the factors of value `k` of a half spectrum are.
    fn half(&self, k: &Index) -> Index {
        k.times(2).offset(self.plan.half_table() as i64)
    }

    /// Value `k` as it leaves; of reals it is made of a point and the one that mirrors it. The ends of a half spectrum,
    /// which are made of the first point, are known by number.
    pub fn result(&self, n: &mut Nest<'s>, from: u32, k: &Index) -> Result<Pair<Val>, LowerError> {
        if self.kind != FftKind::RealForward {
            return self.load_point(n, Place::Scratch(from), k);
        }
        let points = self.plan.n as i64;
        let [own, mirror] = match k.as_constant() {
            Some(k) => [Index::constant(k % points), Index::constant((points - k) % points)],
            None => [k.clone(), Index::constant(points).minus(k)],
        };
        let z = self.load_point(n, Place::Scratch(from), &own)?;
        let m = self.load_point(n, Place::Scratch(from), &mirror)?;
        let w = self.factor(n, self.half(k));
        Ok(codelet::split_half(n, z, m, w))
    }

    /// Results that lie as the lanes do.
    pub fn columns_out(&self, n: &mut Nest<'s>, from: u32) -> Result<(), LowerError> {
        let (points, count) = (self.plan.n as u64, self.wanted);
        for (lo, hi) in [(0, 1), (1, count.min(points)), (points, count)] {
            n.each(lo, hi, &mut |n, k| {
                let z = self.result(n, from, k)?;
                self.store_results(n, k.clone(), &z)
            })?;
        }
        Ok(())
    }

    /// The points of the half-length transform from a half spectrum, of which the values from `given` on are 0 and the
    /// ends are real.
    pub fn join(&self, n: &mut Nest<'s>, from: Place, to: u32) -> Result<(), LowerError> {
        let (points, given) = (self.plan.n as u64, self.given);
        self.join_one(n, from, to, &Index::constant(0), [true, points < given])?;
        // Where the value itself or its mirror image begins or ceases to be given.
        let mut cuts = [1, points, given.clamp(1, points), (points + 1).saturating_sub(given).clamp(1, points)];
        cuts.sort_unstable();
        for range in cuts.windows(2) {
            let (lo, hi) = (range[0], range[1]);
            let known = [lo < given, points - lo < given];
            n.each(lo, hi, &mut |n, k| self.join_one(n, from, to, k, known))?;
        }
        Ok(())
    }

    fn join_one(
        &self,
        n: &mut Nest<'s>,
        from: Place,
        to: u32,
        k: &Index,
        [own, mirror]: [bool; 2],
    ) -> Result<(), LowerError> {
        let zero = n.constant(0.0);
        let points = Index::constant(self.plan.n as i64);
        let mut x = if own { self.load_point(n, from, k)? } else { [zero; 2] };
        let mut m = if mirror { self.load_point(n, from, &points.minus(k))? } else { [zero; 2] };
        if k.as_constant() == Some(0) {
            (x[1], m[1]) = (zero, zero);
        }
        let w = self.factor(n, self.half(k));
        let z = codelet::join_half(n, x, m, w);
        self.store_point(n, to, k, z);
        Ok(())
    }
}
