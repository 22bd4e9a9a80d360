//! Loads and stores of vectors of which some lanes are touched.
//!
//! LLVM 22 gets masks of `i1` wrong where it divides a vector for AVX2 and one half of the mask is constantly off: it then
//! reads what no lane asks for. Vectors are divided here, into what registers hold, and a part that is constantly off or on
//! needs no mask at all.

use crate::emit::Emitter;
use crate::instr::{T, V};

/// Which lanes are touched: those of the vector of bits, if one bit holds; all, where neither is there.
#[derive(Clone, Copy, Default)]
pub struct Mask {
    pub held: Option<V>,
    pub lanes: Option<V>,
}

impl Mask {
    pub fn touches_all(&self) -> bool {
        self.held.is_none() && self.lanes.is_none()
    }
}

/// The lanes of a part.
enum Touched {
    None,
    All,
    Some(V),
}

/// Elements in memory: their type, and bytes of one, which are its alignment too.
#[derive(Clone, Copy)]
pub struct Elements {
    pub ty: T,
    pub bytes: u32,
}

impl Emitter<'_> {
    /// Bytes of a vector register of the target.
    fn register_bytes(&self) -> u32 {
        match (self.target.wide(), self.target.has("avx")) {
            (true, _) => 64,
            (false, true) => 32,
            (false, false) => 16,
        }
    }

    /// Lanes of a part, of elements or addresses of so many bytes.
    fn part(&self, lanes: u32, bytes: u32) -> u32 {
        lanes.min((self.register_bytes() / bytes).max(1))
    }

    /// Lanes `first..first + part` of a vector of `lanes`.
    fn lanes_from(&self, v: V, first: u32, part: u32, lanes: u32) -> V {
        match (part == lanes, part) {
            (true, _) => v,
            (false, 1) => self.b.extract(v, first),
            _ => self.b.shuffle(v, &(first..first + part).collect::<Vec<_>>()),
        }
    }

    fn touched(&self, mask: Mask, first: u32, part: u32, lanes: u32) -> Touched {
        let own = mask.lanes.map(|m| self.lanes_from(m, first, part, lanes));
        if own.is_some_and(|m| m == self.b.first_lanes(0, part)) {
            return Touched::None;
        }
        match (own.filter(|m| *m != self.b.first_lanes(part, part)), mask.held) {
            (None, None) => Touched::All,
            (None, Some(held)) => Touched::Some(self.b.splat(held, part)),
            (Some(m), None) => Touched::Some(m),
            (Some(m), Some(held)) => Touched::Some(self.b.and(self.b.splat(held, part), m)),
        }
    }

    /// One vector of several of the same type.
    fn joined(&self, mut parts: Vec<V>, mut lanes: u32) -> V {
        while let [_, _, ..] = parts[..] {
            let both: Vec<u32> = (0..2 * lanes).collect();
            parts = parts.chunks(2).map(|p| self.b.shuffle_two(p[0], p[1], &both)).collect();
            lanes *= 2;
        }
        parts[0]
    }

    /// `lanes` elements, more than one, from `p` on; zero where a lane is not touched.
    pub fn masked_load(&self, of: Elements, lanes: u32, p: V, mask: Mask) -> V {
        if mask.touches_all() {
            return self.b.load(self.b.vec(of.ty, lanes), p, of.bytes);
        }
        let part = self.part(lanes, of.bytes).max(2);
        let ty = self.b.vec(of.ty, part);
        let one = |first: u32| {
            let p = self.b.offset(p, self.b.i64(i64::from(first * of.bytes)));
            match self.touched(mask, first, part, lanes) {
                Touched::None => self.b.zero(ty),
                Touched::All => self.b.load(ty, p, of.bytes),
                Touched::Some(m) => {
                    let v = self.b.intrinsic("llvm.masked.load", &[ty, self.b.ptr()], &[p, m, self.b.zero(ty)]);
                    self.b.align_argument(v, 1, of.bytes);
                    v
                }
            }
        };
        self.joined((0..lanes).step_by(part as usize).map(one).collect(), part)
    }

    /// The same from an address for each lane.
    pub fn masked_gather(&self, of: Elements, lanes: u32, from: V, mask: Mask) -> V {
        let part = self.part(lanes, 8).max(2);
        let ty = self.b.vec(of.ty, part);
        let one = |first: u32| {
            let m = match self.touched(mask, first, part, lanes) {
                Touched::None => return self.b.zero(ty),
                Touched::All => self.b.first_lanes(part, part),
                Touched::Some(m) => m,
            };
            let types = [ty, self.b.vec(self.b.ptr(), part)];
            let from = self.lanes_from(from, first, part, lanes);
            let v = self.b.intrinsic("llvm.masked.gather", &types, &[from, m, self.b.zero(ty)]);
            self.b.align_argument(v, 1, of.bytes);
            v
        };
        self.joined((0..lanes).step_by(part as usize).map(one).collect(), part)
    }

    /// Stores those of `lanes` elements, more than one, that are touched.
    pub fn masked_store(&self, of: Elements, lanes: u32, value: V, p: V, mask: Mask) {
        if mask.touches_all() {
            return self.b.store(value, p, of.bytes, false);
        }
        let part = self.part(lanes, of.bytes).max(2);
        for first in (0..lanes).step_by(part as usize) {
            let p = self.b.offset(p, self.b.i64(i64::from(first * of.bytes)));
            let value = self.lanes_from(value, first, part, lanes);
            match self.touched(mask, first, part, lanes) {
                Touched::None => {}
                Touched::All => self.b.store(value, p, of.bytes, false),
                Touched::Some(m) => {
                    let types = [self.b.vec(of.ty, part), self.b.ptr()];
                    let v = self.b.intrinsic("llvm.masked.store", &types, &[value, p, m]);
                    self.b.align_argument(v, 2, of.bytes);
                }
            }
        }
    }
}
