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

    /// `y += by · x`.
    fn add<T: Real>(by: T, x: &[T], y: &mut [T]) {
        for (y, x) in y.iter_mut().zip(x) {
            *y = by.mul_add(*x, *y);
        }
    }

    /// `z += a · x + b · y`, `a · x` first.
    fn add_two<T: Real>(a: T, x: &[T], b: T, y: &[T], z: &mut [T]) {
        for (z, (x, y)) in z.iter_mut().zip(x.iter().zip(y)) {
            *z = b.mul_add(*y, a.mul_add(*x, *z));
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

/// The Euclidean length, of numbers of any size.
pub fn length<T: Real>(x: &[T]) -> T {
    let most = largest(x);
    if !(most > T::ZERO) {
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
pub fn hypotenuse<T: Real>(x: T, y: T) -> T {
    let (x, y) = (x.abs(), y.abs());
    let (most, least) = if x > y { (x, y) } else { (y, x) };
    if !(most > T::ZERO) {
        return most;
    }
    let ratio = least / most;
    most * ratio.mul_add(ratio, T::ONE).sqrt()
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
