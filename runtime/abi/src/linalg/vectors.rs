//! Sums along vectors and what is added to them, with the vectors that the processor has. Sums have
//! [`LANES`] chains: element `i` goes to chain `i % LANES`, and chains are combined by halves.

use super::number::{LANES, Real};

/// Functions whose loops are compiled for the vectors of the processor; which of them runs changes no bit.
macro_rules! vectorised {
    ($($(#[$doc:meta])* fn $name:ident<T: Real>($($arg:ident: $ty:ty),*) $(-> $ret:ty)? $body:block)*) => {
        $($(#[$doc])*
        pub fn $name<T: $crate::linalg::number::Real>($($arg: $ty),*) $(-> $ret)? {
            #[inline(always)]
            fn steps<T: $crate::linalg::number::Real>($($arg: $ty),*) $(-> $ret)? $body
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f")]
                fn wide<T: $crate::linalg::number::Real>($($arg: $ty),*) $(-> $ret)? {
                    steps($($arg),*)
                }
                #[target_feature(enable = "avx2,fma")]
                fn narrow<T: $crate::linalg::number::Real>($($arg: $ty),*) $(-> $ret)? {
                    steps($($arg),*)
                }
                if std::arch::is_x86_feature_detected!("avx512f") {
                    // SAFETY: the processor has it, as just seen.
                    return unsafe { wide($($arg),*) };
                }
                if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
                    // SAFETY: the processor has both, as just seen.
                    return unsafe { narrow($($arg),*) };
                }
            }
            steps($($arg),*)
        })*
    };
}
pub(crate) use vectorised;

/// [`dot`] inside of a function that is compiled for the vectors of the processor.
#[inline(always)]
pub fn dot_inline<T: Real>(x: &[T], y: &[T]) -> T {
    let mut lanes = [T::ZERO; LANES];
    let ((x, x_rest), (y, y_rest)) = (x.as_chunks::<LANES>(), y.as_chunks::<LANES>());
    for (x, y) in x.iter().zip(y) {
        for i in 0..LANES {
            lanes[i] = x[i].mul_add(y[i], lanes[i]);
        }
    }
    for (lane, (x, y)) in lanes.iter_mut().zip(x_rest.iter().zip(y_rest)) {
        *lane = x.mul_add(*y, *lane);
    }
    combined(lanes)
}

/// [`add_rows`] inside of a function that is compiled for the vectors of the processor.
#[inline(always)]
pub fn add_rows_inline<T: Real>(x: &[T], a: &[T], width: usize, from: usize, y: &mut [T]) {
    let count = y.len();
    let mut rows = a.chunks(width.max(1)).map(|row| &row[from..][..count]);
    let (fours, rest) = x.as_chunks::<4>();
    for x in fours {
        let (Some(p), Some(q), Some(r), Some(s)) = (rows.next(), rows.next(), rows.next(), rows.next()) else { return };
        for ((((y, p), q), r), s) in y.iter_mut().zip(p).zip(q).zip(r).zip(s) {
            let two = x[1].mul_add(*q, x[0].mul_add(*p, *y));
            *y = x[3].mul_add(*s, x[2].mul_add(*r, two));
        }
    }
    for (x, row) in rest.iter().zip(rows) {
        for (y, a) in y.iter_mut().zip(row) {
            *y = x.mul_add(*a, *y);
        }
    }
}

/// The chains combined by halves.
#[inline(always)]
fn combined<T: Real>(mut lanes: [T; LANES]) -> T {
    let mut half = LANES / 2;
    while half > 0 {
        for i in 0..half {
            lanes[i] = lanes[i] + lanes[i + half];
        }
        half /= 2;
    }
    lanes[0]
}

vectorised! {
    /// `Σ x[i] · y[i]`.
    fn dot<T: Real>(x: &[T], y: &[T]) -> T {
        dot_inline(x, y)
    }

    /// `y[j] += Σ x[i] · a[i][j]`, one chain in ascending `i` for each; the rows of `a` have `width` elements, of which those
    /// from `from` on count.
    fn add_rows<T: Real>(x: &[T], a: &[T], width: usize, from: usize, y: &mut [T]) {
        add_rows_inline(x, a, width, from, y);
    }

    /// `a[i][j] -= x[i] · y[j]`; the rows of `a` have `width` elements, of which those from `from` on count.
    fn subtract_outer<T: Real>(x: &[T], y: &[T], a: &mut [T], width: usize, from: usize) {
        for (x, row) in x.iter().zip(a.chunks_mut(width.max(1))) {
            let by = -*x;
            for (a, y) in row[from..][..y.len()].iter_mut().zip(y) {
                *a = by.mul_add(*y, *a);
            }
        }
    }

    /// `a[i][j] -= x[i] · y[j]`, then `y[i] · x[j]`, of as many rows and columns; places as above.
    fn subtract_symmetric<T: Real>(x: &[T], y: &[T], a: &mut [T], width: usize, from: usize) {
        for ((p, q), row) in x.iter().zip(y).zip(a.chunks_mut(width.max(1))) {
            let (p, q) = (-*p, -*q);
            for ((a, x), y) in row[from..][..y.len()].iter_mut().zip(x).zip(y) {
                *a = q.mul_add(*x, p.mul_add(*y, *a));
            }
        }
    }

    /// Every row less `tau` times its product with `v`, times `v`; places as above.
    fn reflect_rows<T: Real>(tau: T, v: &[T], a: &mut [T], width: usize, from: usize) {
        for row in a.chunks_mut(width.max(1)) {
            let row = &mut row[from..][..v.len()];
            let by = -(tau * dot_inline(row, v));
            for (a, v) in row.iter_mut().zip(v) {
                *a = by.mul_add(*v, *a);
            }
        }
    }

    /// `x /= by`.
    fn divide<T: Real>(x: &mut [T], by: T) {
        for x in x {
            *x = *x / by;
        }
    }

    /// The largest magnitude, 0 of none; NaN does not count.
    fn largest<T: Real>(x: &[T]) -> T {
        let mut lanes = [T::ZERO; LANES];
        let (x, rest) = x.as_chunks::<LANES>();
        for x in x {
            for i in 0..LANES {
                let size = x[i].abs();
                lanes[i] = if size > lanes[i] { size } else { lanes[i] };
            }
        }
        let mut most = T::ZERO;
        for size in lanes.into_iter().chain(rest.iter().map(|x| x.abs())) {
            most = if size > most { size } else { most };
        }
        most
    }
}

/// The larger of two numbers, the first one where it is NaN.
#[inline(always)]
pub fn larger<T: Real>(x: T, y: T) -> T {
    if y > x { y } else { x }
}

/// The Euclidean length, of numbers of any size.
pub fn length<T: Real>(x: &[T]) -> T {
    let most = largest(x);
    if most == T::ZERO {
        return T::ZERO;
    }
    if most > T::SAFE[0] && most < T::SAFE[1] {
        return dot(x, x).sqrt();
    }
    let by = most.to_unit();
    let near: Vec<T> = x.iter().map(|x| *x * by).collect();
    dot(&near, &near).sqrt() / by
}

/// The length of `(x, y)`.
#[inline]
pub fn hypotenuse<T: Real>(x: T, y: T) -> T {
    let (x, y) = (x.abs(), y.abs());
    let safe = |x: T| x > T::SAFE[0] && x < T::SAFE[1];
    if safe(x) && safe(y) {
        return (x * x + y * y).sqrt();
    }
    let (most, least) = if x > y { (x, y) } else { (y, x) };
    if most.partial_cmp(&T::ZERO) != Some(std::cmp::Ordering::Greater) {
        return most;
    }
    let ratio = least / most;
    most * (ratio * ratio + T::ONE).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_have_sixteen_chains() {
        let x: Vec<f64> = (0..37).map(|i| 1.0 / (i as f64 + 3.0)).collect();
        let mut lanes = [0.0f64; LANES];
        x.iter().enumerate().for_each(|(i, x)| lanes[i % LANES] = x.mul_add(*x, lanes[i % LANES]));
        let mut half = 8;
        while half > 0 {
            (0..half).for_each(|i| lanes[i] += lanes[i + half]);
            half /= 2;
        }
        assert_eq!(dot(&x, &x), lanes[0]);
    }

    #[test]
    fn lengths_of_large_and_small_numbers() {
        assert_eq!(length(&[3e30f32, 4e30]), 5e30);
        assert!((length(&[3e-40f32, 4e-40]) - 5e-40).abs() < 2e-45);
        assert!((length(&[3e200f64, 4e200]) / 5e200 - 1.0).abs() < 1e-15);
        assert_eq!(length::<f32>(&[]), 0.0);
        assert_eq!(length(&[0.0f32, 0.0]), 0.0);
    }
}
