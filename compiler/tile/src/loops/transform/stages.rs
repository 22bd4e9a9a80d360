//! One stage: loads, a butterfly, factors, stores.

use super::{Lines, Place, Stage};
use crate::LowerError;
use crate::nest::Nest;
use tessera_ir::index::Index;
use tessera_ops::fft::codelet;
use tessera_ops::prim::FftKind;

impl<'s> Lines<'s> {
    /// Stage `s`; `ends`: whether it is the first and the last one.
    pub fn stage(
        &self,
        n: &mut Nest<'s>,
        s: &Stage,
        from: Place,
        to: Place,
        ends: [bool; 2],
    ) -> Result<(), LowerError> {
        n.each(0, s.after as u64, &mut |n, p| {
            n.each(0, s.before as u64, &mut |n, q| self.butterfly(n, s, from, to, ends, [p, q]))
        })
    }

    fn butterfly(
        &self,
        n: &mut Nest<'s>,
        s: &Stage,
        from: Place,
        to: Place,
        [first, last]: [bool; 2],
        [p, q]: [&Index; 2],
    ) -> Result<(), LowerError> {
        // Two neighbouring reals come out of a transform of the other direction.
        let swapped = self.kind == FftKind::RealInverse;
        let (before, r) = (s.before as i64, s.radix as i64);
        let place = q.plus(&p.times(before));
        let mut points = vec![];
        for k in 0..r {
            let z = self.load_point(n, from, &place.offset(before * s.after as i64 * k))?;
            points.push(if first && swapped { [z[1], z[0]] } else { z });
        }
        let place = q.plus(&p.times(before * r));
        for (j, mut z) in codelet::dft(n, &points).into_iter().enumerate() {
            if s.after > 1 && j > 0 {
                let w = self.factor(n, p.times(2 * (r - 1)).offset(s.table as i64 + 2 * (j as i64 - 1)));
                z = codelet::mul(n, z, w);
            }
            let k = place.offset(before * j as i64);
            if last && swapped {
                z = [z[1], z[0]];
            }
            match to {
                Place::Scratch(buf) => self.store_point(n, buf, &k, z),
                Place::Values => self.give(n, &k, z)?,
            }
        }
        Ok(())
    }
}
