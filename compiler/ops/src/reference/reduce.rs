//! Reductions and running sums in the canonical order.

use super::layout::{View, copy, split, strides};
use super::{ArrayRef, elems};
use crate::convert::{cast, keep, narrow, round_f16};
use crate::map::{MapOp, kind_of};
use crate::prim::{LANES, LEAF, Reduction, Scalar};
use crate::scalar_eval::Lane;
use tessera_base::DType;

/// How sums of floats are carried.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Summation {
    /// Plain additions in the canonical order.
    #[default]
    Canonical,
    /// Neumaier's sum with its compensation in the same order (numerics policy `kahan_sum`).
    Compensated,
}

/// The function that combines two partial results.
pub fn combine(kind: Reduction) -> MapOp {
    match kind {
        Reduction::Sum | Reduction::HalfSum => MapOp::add,
        Reduction::Prod | Reduction::HalfProd => MapOp::mul,
        Reduction::Max => MapOp::maximum,
        Reduction::Min => MapOp::minimum,
        Reduction::Any => MapOp::logical_or,
        Reduction::All => MapOp::logical_and,
    }
}

/// The value of an empty reduction of elements of `dtype`, and where every chain starts.
pub fn identity(kind: Reduction, dtype: DType) -> Scalar {
    let float = dtype.is_float() || dtype.is_complex();
    let number = |x: i64| if float { Scalar::F(x as f64) } else { Scalar::I(x) };
    let (lowest, highest) = match dtype {
        DType::I64 => (i64::MIN, i64::MAX),
        DType::I32 => (i32::MIN.into(), i32::MAX.into()),
        DType::I16 => (i16::MIN.into(), i16::MAX.into()),
        DType::I8 => (i8::MIN.into(), i8::MAX.into()),
        DType::U8 => (0, u8::MAX.into()),
        _ => (0, 1),
    };
    match kind {
        Reduction::Sum | Reduction::HalfSum => number(0),
        Reduction::Prod | Reduction::HalfProd => number(1),
        Reduction::Max if float => Scalar::F(f64::NEG_INFINITY),
        Reduction::Min if float => Scalar::F(f64::INFINITY),
        Reduction::Max => Scalar::I(lowest),
        Reduction::Min => Scalar::I(highest),
        Reduction::Any => Scalar::I(0),
        Reduction::All => Scalar::I(1),
    }
}

/// What accumulators can do.
pub(super) trait Number: Copy {
    fn from(value: Scalar) -> Self;
    fn fold(kind: Reduction, a: Self, b: Self) -> Self;
    /// `a + b` rounded, and the error (Knuth). Integers and complex numbers have none.
    fn two_sum(a: Self, b: Self) -> (Self, Self);
    fn add(a: Self, b: Self) -> Self;
}

macro_rules! float_number {
    ($t:ty) => {
        impl Number for $t {
            fn from(value: Scalar) -> Self {
                match value {
                    Scalar::F(x) => x as $t,
                    Scalar::I(x) => x as $t,
                }
            }
            #[inline]
            fn fold(kind: Reduction, a: Self, b: Self) -> Self {
                match kind {
                    Reduction::Sum => a + b,
                    Reduction::Prod => a * b,
                    Reduction::HalfSum => round_f16((a + b) as f32) as $t,
                    Reduction::HalfProd => round_f16((a * b) as f32) as $t,
                    Reduction::Max | Reduction::Any => {
                        if a > b {
                            a
                        } else if a < b {
                            b
                        } else if a == b {
                            <$t>::from_bits(a.to_bits() & b.to_bits())
                        } else {
                            <$t>::NAN
                        }
                    }
                    Reduction::Min | Reduction::All => {
                        if a < b {
                            a
                        } else if a > b {
                            b
                        } else if a == b {
                            <$t>::from_bits(a.to_bits() | b.to_bits())
                        } else {
                            <$t>::NAN
                        }
                    }
                }
            }
            #[inline]
            fn two_sum(a: Self, b: Self) -> (Self, Self) {
                let s = a + b;
                let part = s - a;
                let error = (a - (s - part)) + (b - part);
                // Infinities have no error.
                (s, if error.is_finite() { error } else { 0.0 })
            }
            #[inline]
            fn add(a: Self, b: Self) -> Self {
                a + b
            }
        }
    };
}

float_number!(f32);
float_number!(f64);

impl Number for i64 {
    fn from(value: Scalar) -> i64 {
        match value {
            Scalar::F(x) => x as i64,
            Scalar::I(x) => x,
        }
    }
    #[inline]
    fn fold(kind: Reduction, a: i64, b: i64) -> i64 {
        match kind {
            Reduction::Sum | Reduction::HalfSum => a.wrapping_add(b),
            Reduction::Prod | Reduction::HalfProd => a.wrapping_mul(b),
            Reduction::Max | Reduction::Any => a.max(b),
            Reduction::Min | Reduction::All => a.min(b),
        }
    }
    fn two_sum(a: i64, b: i64) -> (i64, i64) {
        (a.wrapping_add(b), 0)
    }
    fn add(a: i64, b: i64) -> i64 {
        a.wrapping_add(b)
    }
}

/// A complex number: real and imaginary part. Only sums and products exist.
type Complex = [f32; 2];

impl Number for Complex {
    fn from(value: Scalar) -> Complex {
        [<f32 as Number>::from(value), 0.0]
    }
    #[inline]
    fn fold(kind: Reduction, a: Complex, b: Complex) -> Complex {
        match kind {
            Reduction::Prod => [a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]],
            _ => [a[0] + b[0], a[1] + b[1]],
        }
    }
    fn two_sum(a: Complex, b: Complex) -> (Complex, Complex) {
        let (re, im) = (f32::two_sum(a[0], b[0]), f32::two_sum(a[1], b[1]));
        ([re.0, im.0], [re.1, im.1])
    }
    fn add(a: Complex, b: Complex) -> Complex {
        [a[0] + b[0], a[1] + b[1]]
    }
}

/// The reduction of one row: leaves of [`LEAF`] elements, in each [`LANES`] chains that combine
/// by halves, then a balanced tree over the leaves.
fn row<T: Number>(xs: &[T], combine: impl Fn(T, T) -> T, identity: T) -> T {
    let mut partials: Vec<T> = xs.chunks(LEAF).map(|leaf| self::leaf(leaf, &combine, identity)).collect();
    if partials.is_empty() {
        return leaf(&[], &combine, identity);
    }
    tree(&mut partials, combine)
}

/// One leaf; lanes without elements keep the identity and take part all the same.
fn leaf<T: Copy>(xs: &[T], combine: &impl Fn(T, T) -> T, identity: T) -> T {
    let mut lanes = [identity; LANES];
    for chunk in xs.chunks(LANES) {
        for (lane, &x) in lanes.iter_mut().zip(chunk) {
            *lane = combine(*lane, x);
        }
    }
    let mut half = LANES / 2;
    while half > 0 {
        for l in 0..half {
            lanes[l] = combine(lanes[l], lanes[l + half]);
        }
        half /= 2;
    }
    lanes[0]
}

/// A balanced binary tree by position; at a level of odd length the last one passes up as it is.
fn tree<T: Copy>(partials: &mut [T], combine: impl Fn(T, T) -> T) -> T {
    let mut n = partials.len();
    while n > 1 {
        for i in 0..n / 2 {
            partials[i] = combine(partials[2 * i], partials[2 * i + 1]);
        }
        if n % 2 == 1 {
            partials[n / 2] = partials[n - 1];
        }
        n = n.div_ceil(2);
    }
    partials[0]
}

/// The compensated sum of a row: every value is a pair of sum and compensation, which merge by
/// an exact addition of the sums. An element is a pair with compensation 0, so that a chain of
/// merges is Neumaier's sum.
pub(super) fn compensated<T: Number>(xs: &[T], zero: T) -> T {
    let merge = |a: (T, T), b: (T, T)| {
        let (s, e) = T::two_sum(a.0, b.0);
        (s, T::add(T::add(a.1, b.1), e))
    };
    let mut partials: Vec<(T, T)> = xs
        .chunks(LEAF)
        .map(|chunk| {
            let pairs: Vec<(T, T)> = chunk.iter().map(|&x| (x, zero)).collect();
            leaf(&pairs, &merge, (zero, zero))
        })
        .collect();
    if partials.is_empty() {
        return zero;
    }
    let (s, c) = tree(&mut partials, merge);
    T::add(s, c)
}

fn rows<T: Number>(
    xs: &[T],
    n: usize,
    count: usize,
    kind: Reduction,
    identity: Scalar,
    summation: Summation,
) -> Vec<T> {
    let start = T::from(identity);
    (0..count)
        .map(|i| {
            let row_of = &xs[i * n..(i + 1) * n];
            // The kind is a constant in each loop.
            match kind {
                Reduction::Sum if summation == Summation::Compensated => compensated(row_of, start),
                Reduction::Sum => row(row_of, |a, b| T::fold(Reduction::Sum, a, b), start),
                Reduction::Prod => row(row_of, |a, b| T::fold(Reduction::Prod, a, b), start),
                Reduction::HalfSum => row(row_of, |a, b| T::fold(Reduction::HalfSum, a, b), start),
                Reduction::HalfProd => row(row_of, |a, b| T::fold(Reduction::HalfProd, a, b), start),
                Reduction::Max | Reduction::Any => row(row_of, |a, b| T::fold(Reduction::Max, a, b), start),
                Reduction::Min | Reduction::All => row(row_of, |a, b| T::fold(Reduction::Min, a, b), start),
            }
        })
        .collect()
}

/// The reduced elements are ordered row-major over the reduced axes, ascending.
pub fn reduce(kind: Reduction, axes: &[usize], a: ArrayRef, dtype: DType, summation: Summation) -> Vec<u8> {
    let accum = a.dtype.accumulator();
    let start = identity(kind, a.dtype);
    let (order, shape) = reduced_last(axes, a.shape);
    let kept = a.shape.len() - axes.len();
    let count = elems(&shape[..kept]).unwrap_or(0);
    let n = elems(&shape[kept..]).unwrap_or(0);
    let dense = strides(a.shape);
    let view = View { start: 0, strides: order.iter().map(|&d| dense[d]).collect() };
    let size = a.dtype.bytes();
    let moved;
    let bytes = if view.strides == strides(&shape) {
        a.bytes
    } else {
        let mut out = vec![0; a.bytes.len()];
        copy(size, &shape, a.bytes, &view, &mut out, &View::dense(&shape));
        moved = out;
        &moved
    };
    // A few rows at a time are widened to the accumulator.
    let step = (65536 / n.max(1)).max(1);
    let mut out = Vec::with_capacity(count * dtype.bytes());
    let mut at = 0;
    while at < count {
        let some = step.min(count - at);
        let wide = cast(a.dtype, accum, &bytes[at * n * size..(at + some) * n * size]);
        out.extend(accumulate(accum, &wide, n, some, kind, start, summation, (a.dtype, dtype)));
        at += some;
    }
    out
}

fn accumulate(
    accum: DType,
    wide: &[u8],
    n: usize,
    count: usize,
    kind: Reduction,
    start: Scalar,
    summation: Summation,
    (of, dtype): (DType, DType),
) -> Vec<u8> {
    if accum == DType::C64 {
        let sums = rows(&complex(wide), n, count, kind, start, summation);
        return cast(DType::C64, dtype, &complex_bytes(&sums));
    }
    let own = kind_of(accum).map(|kind| Lane::from_bytes(kind, wide));
    let lane = match own {
        Some(Lane::F32(v)) => Lane::F32(rows(&v, n, count, kind, start, summation)),
        Some(Lane::F64(v)) => Lane::F64(rows(&v, n, count, kind, start, summation)),
        Some(Lane::I64(v)) => Lane::I64(rows(&v, n, count, kind, start, summation)),
        _ => return Vec::new(),
    };
    // An extreme is one of the elements.
    match kind {
        Reduction::Max | Reduction::Min if of == dtype => keep(dtype, &lane),
        _ => narrow(dtype, &lane),
    }
}

/// The axes that stay, then those that vanish, both ascending; and the shape in that order.
fn reduced_last(axes: &[usize], shape: &[u64]) -> (Vec<usize>, Vec<u64>) {
    let (gone, stay): (Vec<usize>, Vec<usize>) = (0..shape.len()).partition(|d| axes.contains(d));
    let order: Vec<usize> = stay.into_iter().chain(gone).collect();
    let shape = order.iter().map(|&d| shape[d]).collect();
    (order, shape)
}

fn complex(bytes: &[u8]) -> Vec<Complex> {
    let Lane::F32(parts) = Lane::from_bytes(crate::scalar::Kind::F32, bytes) else { return Vec::new() };
    parts.as_chunks::<2>().0.to_vec()
}

fn complex_bytes(values: &[Complex]) -> Vec<u8> {
    values.iter().flatten().flat_map(|x| x.to_le_bytes()).collect()
}

/// Each running value is rounded on its way out, not on its way on.
pub fn cumulate(kind: Reduction, axis: usize, a: ArrayRef, dtype: DType) -> Vec<u8> {
    let accum = a.dtype.accumulator();
    let start = identity(kind, a.dtype);
    let wide = cast(a.dtype, accum, a.bytes);
    if accum == DType::C64 {
        let mut values = complex(&wide);
        running(&mut values, a.shape, axis, kind, start);
        return cast(DType::C64, dtype, &complex_bytes(&values));
    }
    let mut lane = match kind_of(accum) {
        Some(kind) => Lane::from_bytes(kind, &wide),
        None => return Vec::new(),
    };
    match &mut lane {
        Lane::F32(v) => running(v, a.shape, axis, kind, start),
        Lane::F64(v) => running(v, a.shape, axis, kind, start),
        Lane::I64(v) => running(v, a.shape, axis, kind, start),
        _ => {}
    }
    narrow(dtype, &lane)
}

fn running<T: Number>(values: &mut [T], shape: &[u64], axis: usize, kind: Reduction, start: Scalar) {
    let s = split(shape, axis);
    for block in values.chunks_mut((s.n * s.inner).max(1)) {
        let mut sums = vec![T::from(start); s.inner];
        for step in block.chunks_mut(s.inner.max(1)) {
            for (sum, x) in sums.iter_mut().zip(step) {
                *sum = T::fold(kind, *sum, *x);
                *x = *sum;
            }
        }
    }
}
