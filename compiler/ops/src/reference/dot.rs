//! Matrix products.

use super::reduce::{Number, Summation, compensated};
use super::{ArrayRef, elems};
use crate::convert::{cast, narrow, round_f16, tf32_program};
use crate::map::kind_of;
use crate::prim::fold::fold;
use crate::prim::{Order, Scalar, Steps};
use crate::scalar::Kind;
use crate::scalar_eval::{Lane, eval};
use std::ops::Range;
use tessera_abi::chains;
use tessera_base::DType;

/// The attributes of [`crate::prim::Prim::Dot`], and how it sums.
#[derive(Clone, Copy)]
pub struct Form {
    pub accum: DType,
    pub steps: Steps,
    pub order: Order,
    pub leaf: u64,
    pub summation: Summation,
}

/// A product and sum of accumulators.
trait Accumulate: Copy + Default {
    /// `a · b + self`, rounded once (complex: four such steps).
    fn step(self, a: Self, b: Self) -> Self;

    /// The sum of an earlier part and a later one.
    fn plus(self, later: Self) -> Self;

    /// The steps of a row: the sums go on with each of `a` times its line of `b`.
    fn row(a: &[Self], b: &[Self], sums: &mut [Self]) {
        for (&x, line) in a.iter().zip(b.chunks_exact(sums.len())) {
            for (sum, &y) in sums.iter_mut().zip(line) {
                *sum = sum.step(x, y);
            }
        }
    }
}

/// Numbers whose product is a sum of two.
trait Exact: Sized {
    /// `a · b` rounded, and what that rounds away; of what is infinite nothing.
    fn two_product(a: Self, b: Self) -> (Self, Self);
}

macro_rules! exact {
    ($t:ty) => {
        impl Exact for $t {
            fn two_product(a: $t, b: $t) -> ($t, $t) {
                let p = a * b;
                let e = a.mul_add(b, -p);
                (p, if e.is_finite() { e } else { 0.0 })
            }
        }
    };
}

exact!(f32);
exact!(f64);

impl Accumulate for f32 {
    #[inline]
    fn step(self, a: f32, b: f32) -> f32 {
        a.mul_add(b, self)
    }

    fn plus(self, later: f32) -> f32 {
        self + later
    }

    fn row(a: &[f32], b: &[f32], sums: &mut [f32]) {
        chains::f32_row(a, b, sums);
    }
}

impl Accumulate for f64 {
    #[inline]
    fn step(self, a: f64, b: f64) -> f64 {
        a.mul_add(b, self)
    }

    fn plus(self, later: f64) -> f64 {
        self + later
    }

    fn row(a: &[f64], b: &[f64], sums: &mut [f64]) {
        chains::f64_row(a, b, sums);
    }
}

/// A number of f16, which every step rounds to.
#[derive(Clone, Copy, Default)]
struct Half(f32);

impl Accumulate for Half {
    #[inline]
    fn step(self, a: Half, b: Half) -> Half {
        Half(round_f16(a.0.mul_add(b.0, self.0)))
    }

    fn plus(self, later: Half) -> Half {
        Half(round_f16(self.0 + later.0))
    }
}

impl Accumulate for i64 {
    #[inline]
    fn step(self, a: i64, b: i64) -> i64 {
        self.wrapping_add(a.wrapping_mul(b))
    }

    fn plus(self, later: i64) -> i64 {
        self.wrapping_add(later)
    }
}

/// Real part first: `re += a.re b.re`, then `re −= a.im b.im`; `im += a.re b.im`, then
/// `im += a.im b.re`.
impl Accumulate for [f32; 2] {
    #[inline]
    fn step(self, a: [f32; 2], b: [f32; 2]) -> [f32; 2] {
        let re = a[0].mul_add(b[0], self[0]);
        let im = a[0].mul_add(b[1], self[1]);
        [(-a[1]).mul_add(b[1], re), a[1].mul_add(b[0], im)]
    }

    fn plus(self, later: [f32; 2]) -> [f32; 2] {
        [self[0] + later[0], self[1] + later[1]]
    }
}

/// `batch` products of `m × k` by `k × n`: rows of the left factor with the lines of the right one that belong to them, made
/// into sums by `chain` leaf by leaf.
fn by_leaves<T: Accumulate>(
    (a, b): (&[T], &[T]),
    [batch, m, k, n]: [usize; 4],
    (steps, leaf): (Steps, u64),
    chain: impl Fn(&[T], &[T], &mut [T]),
) -> Vec<T> {
    if n == 0 {
        return vec![];
    }
    let mut out = Vec::with_capacity(batch * m * n);
    let zeros = vec![T::default(); n];
    let leaf = usize::try_from(leaf).unwrap_or(usize::MAX);
    for row in 0..batch * m {
        let right = &b[row / m * k * n..][..k * n];
        let left = &a[row * k..][..k];
        let part = |r: Range<usize>, sums: &mut Vec<T>| chain(&left[r.clone()], &right[r.start * n..r.end * n], sums);
        out.extend(fold(k, leaf, steps.of(row % m, k), &zeros, part, |a, b| a.plus(*b)));
    }
    out
}

/// One step of a product of bf16 pairs, as the instruction `vdpbf16ps` takes it: the odd elements, then the even
/// ones, each a fused multiply-add; numbers below the normal ones count as zero, also between and after.
/// Source: Intel SDM, VDPBF16PS; that a result is small is decided before its exponent is bounded.
pub fn pair_step(sum: f32, a: [f32; 2], b: [f32; 2]) -> f32 {
    flushed(flushed(sum, a[1], b[1]), a[0], b[0])
}

/// Zero for a number below the normal ones.
fn normal(x: f32) -> f32 {
    if x.is_subnormal() { 0.0f32.copysign(x) } else { x }
}

/// `a · b + c` rounded once, without numbers below the normal ones.
fn flushed(c: f32, a: f32, b: f32) -> f32 {
    let (a, b, c) = (normal(a), normal(b), normal(c));
    let r = normal(a.mul_add(b, c));
    // Rounding to the subnormal grid may have lifted it to the smallest normal number.
    let exact = || (a as f64 * b as f64 + c as f64).abs() < f32::MIN_POSITIVE as f64 * (1.0 - 2f64.powi(-25));
    if r.abs() == f32::MIN_POSITIVE && exact() { 0.0f32.copysign(r) } else { r }
}

/// A unit of a product as the instruction `tdpbf16ps` sums it: the even positions in one chain, the odd ones in another, both
/// from 0; their sum is added to what was there. Numbers below the normal ones count as zero throughout, with their sign.
/// Source: Intel SDM, TDPBF16PS; which sums are formed was found by comparing results.
#[derive(Clone, Copy, Default)]
pub struct Unit {
    even: f32,
    odd: f32,
}

impl Unit {
    /// Pairs of a unit.
    pub const PAIRS: usize = 16;

    pub fn step(&mut self, a: [f32; 2], b: [f32; 2]) {
        self.even = flushed(self.even, a[0], b[0]);
        self.odd = flushed(self.odd, a[1], b[1]);
    }

    /// The sum that goes on behind the unit.
    pub fn onto(self, sum: f32) -> f32 {
        normal(normal(sum) + normal(self.even + self.odd))
    }
}

/// The steps of a row in [`Unit`]s; there is an even number.
fn in_units(a: &[f32], b: &[f32], sums: &mut [f32]) {
    let n = sums.len();
    for (unit, lines) in a.chunks(2 * Unit::PAIRS).zip(b.chunks(2 * Unit::PAIRS * n)) {
        for (j, sum) in sums.iter_mut().enumerate() {
            let mut sums = Unit::default();
            for (q, x) in unit.as_chunks::<2>().0.iter().enumerate() {
                sums.step(*x, [lines[2 * q * n + j], lines[(2 * q + 1) * n + j]]);
            }
            *sum = sums.onto(*sum);
        }
    }
}

/// What an atom leaves: the products of bf16 and the sum before it, exact up to f64, and rounded once. A model of what matrix
/// units do, which the PTX manual leaves open; on one GPU it is the same each time.
pub fn atom(sum: f32, a: &[f32], b: impl Fn(usize) -> f32) -> f32 {
    let steps = Order::ATOM as usize;
    let product = |q: usize| a.get(q).map_or(0.0, |x| *x as f64 * b(q) as f64);
    (0..steps).fold(sum as f64, |sum, q| sum + product(q)) as f32
}

fn in_atoms(a: &[f32], b: &[f32], sums: &mut [f32]) {
    let (n, steps) = (sums.len(), Order::ATOM as usize);
    for (x, lines) in a.chunks(steps).zip(b.chunks(steps * n)) {
        for (j, sum) in sums.iter_mut().enumerate() {
            *sum = atom(*sum, x, |q| lines[q * n + j]);
        }
    }
}

/// The steps of a row by [`pair_step`]; there is an even number.
fn paired(a: &[f32], b: &[f32], sums: &mut [f32]) {
    let n = sums.len();
    for (x, lines) in a.as_chunks::<2>().0.iter().zip(b.chunks_exact(2 * n)) {
        let (even, odd) = lines.split_at(n);
        for (j, sum) in sums.iter_mut().enumerate() {
            *sum = pair_step(*sum, *x, [even[j], odd[j]]);
        }
    }
}

/// Products with compensated sums: of the products rounded, and of what that rounds away, which a fused
/// multiply-add finds exactly (Ogita, Rump and Oishi, SIAM J. Sci. Comput. 26, 2005). Steps that a row does not take count as 0.
fn compensated_products<T: Number + Exact>(
    a: &[T],
    b: &[T],
    [_, m, k, n]: [usize; 4],
    count: usize,
    steps: Steps,
) -> Vec<T> {
    let zero = T::from(Scalar::F(0.0));
    let (mut high, mut low) = (vec![zero; k], vec![zero; k]);
    let element = |i: usize| {
        let (row, column) = (i / n, i % n);
        let right = &b[row / m * k * n..][..k * n];
        let taken = steps.of(row % m, k);
        for t in 0..k {
            (high[t], low[t]) = (zero, zero);
            if taken.contains(&t) {
                (high[t], low[t]) = T::two_product(a[row * k + t], right[t * n + column]);
            }
        }
        T::add(compensated(&high, zero), compensated(&low, zero))
    };
    (0..count).map(element).collect()
}

/// Operands are widened exactly to the accumulator's kind; tf32 ones are rounded to 10 fraction
/// bits first. Integers wrap around in the accumulator and again in
/// the result's type.
pub fn dot(a: ArrayRef, b: ArrayRef, form: Form, dtype: DType) -> Vec<u8> {
    let Form { accum, steps, order, leaf, summation } = form;
    let rank = a.shape.len();
    let size = |d: u64| d as usize;
    let (m, k, n) = (size(a.shape[rank - 2]), size(a.shape[rank - 1]), size(b.shape[rank - 1]));
    let sizes = [elems(&a.shape[..rank - 2]).unwrap_or(0), m, k, n];
    let count = sizes[0] * m * n;
    let cut = (steps, leaf);
    if accum == DType::C64 {
        let sums = by_leaves((&complex(a), &complex(b)), sizes, cut, Accumulate::row);
        let bytes: Vec<u8> = sums.iter().flatten().flat_map(|x: &f32| x.to_le_bytes()).collect();
        return cast(DType::C64, dtype, &bytes);
    }
    let wide = if accum.is_float() { accum.compute() } else { DType::I64 };
    let lane = match (factor(a, wide), factor(b, wide)) {
        (Lane::F32(a), Lane::F32(b)) if accum == DType::F16 => {
            let half = |v: &[f32]| v.iter().map(|&x| Half(x)).collect::<Vec<_>>();
            let sums = by_leaves((&half(&a), &half(&b)), sizes, cut, Accumulate::row);
            Lane::F32(sums.into_iter().map(|x: Half| x.0).collect())
        }
        (Lane::F32(a), Lane::F32(b)) if summation == Summation::Compensated => {
            Lane::F32(compensated_products(&a, &b, sizes, count, steps))
        }
        (Lane::F64(a), Lane::F64(b)) if summation == Summation::Compensated => {
            Lane::F64(compensated_products(&a, &b, sizes, count, steps))
        }
        (Lane::F32(a), Lane::F32(b)) => {
            let chain = match order {
                Order::Chain => Accumulate::row,
                Order::Pairs => paired,
                Order::Units => in_units,
                Order::Atoms => in_atoms,
            };
            Lane::F32(by_leaves((&a, &b), sizes, cut, chain))
        }
        (Lane::F64(a), Lane::F64(b)) => Lane::F64(by_leaves((&a, &b), sizes, cut, Accumulate::row)),
        (Lane::I64(a), Lane::I64(b)) => {
            // The low bits of a sum are those of the sum in any width.
            let sums = Lane::I64(by_leaves((&a, &b), sizes, cut, Accumulate::row));
            if accum == DType::I32 { Lane::from_bytes(Kind::I32, &narrow(accum, &sums)) } else { sums }
        }
        _ => return Vec::new(),
    };
    narrow(dtype, &lane)
}

fn factor(a: ArrayRef, wide: DType) -> Lane {
    let kind = kind_of(wide).unwrap_or(Kind::F32);
    if a.dtype == DType::Tf32 {
        let x = Lane::from_bytes(Kind::F32, a.bytes);
        let n = x.len();
        let short = eval(&tf32_program(), &[x], n);
        return if kind == Kind::F32 {
            short
        } else {
            Lane::from_bytes(kind, &cast(DType::F32, wide, &short.to_bytes()))
        };
    }
    Lane::from_bytes(kind, &cast(a.dtype, wide, a.bytes))
}

fn complex(a: ArrayRef) -> Vec<[f32; 2]> {
    let bytes = cast(a.dtype, DType::C64, a.bytes);
    let Lane::F32(parts) = Lane::from_bytes(Kind::F32, &bytes) else { return Vec::new() };
    parts.as_chunks::<2>().0.to_vec()
}
