//! Rows of matrix products as chains of fused multiply-adds, with the vectors that the processor has. Each step rounds once,
//! so the bits are the same with and without them.

macro_rules! chains {
    ($name:ident, $number:ty) => {
        /// Adds `a[i] · b[i * n + j]` to each of the `n` sums, for `i` in ascending order.
        pub fn $name(a: &[$number], b: &[$number], sums: &mut [$number]) {
            #[inline(always)]
            fn steps(a: &[$number], b: &[$number], sums: &mut [$number]) {
                /// Sums that stay in registers.
                const BLOCK: usize = 512 / std::mem::size_of::<$number>();
                let n = sums.len();
                if n == 0 {
                    return;
                }
                let (blocks, rest) = sums.as_chunks_mut::<BLOCK>();
                let end = blocks.len() * BLOCK;
                for (at, block) in blocks.iter_mut().enumerate() {
                    let mut now = *block;
                    for (x, line) in a.iter().zip(b.chunks_exact(n)) {
                        let Some(line) = line[at * BLOCK..].first_chunk::<BLOCK>() else { continue };
                        for (sum, y) in now.iter_mut().zip(line) {
                            *sum = x.mul_add(*y, *sum);
                        }
                    }
                    *block = now;
                }
                for (x, line) in a.iter().zip(b.chunks_exact(n)) {
                    for (sum, y) in rest.iter_mut().zip(&line[end..]) {
                        *sum = x.mul_add(*y, *sum);
                    }
                }
            }
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f")]
                fn wide(a: &[$number], b: &[$number], sums: &mut [$number]) {
                    steps(a, b, sums);
                }
                #[target_feature(enable = "avx2,fma")]
                fn narrow(a: &[$number], b: &[$number], sums: &mut [$number]) {
                    steps(a, b, sums);
                }
                if std::arch::is_x86_feature_detected!("avx512f") {
                    // SAFETY: the processor has it, as just seen.
                    return unsafe { wide(a, b, sums) };
                }
                if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
                    // SAFETY: the processor has both, as just seen.
                    return unsafe { narrow(a, b, sums) };
                }
            }
            steps(a, b, sums);
        }
    };
}

chains!(f32_row, f32);
chains!(f64_row, f64);

#[cfg(test)]
mod tests {
    #[test]
    fn a_row_is_its_chains() {
        for (k, n) in [(0, 3), (5, 1), (7, 128), (3, 300), (4, 0)] {
            let number = |i: usize| (i * 37 % 101) as f32 / 7.0 - 6.0;
            let (a, b): (Vec<f32>, Vec<f32>) = ((0..k).map(number).collect(), (0..k * n).map(number).collect());
            let mut sums: Vec<f32> = (0..n).map(number).collect();
            let expected: Vec<f32> =
                (0..n).map(|j| (0..k).fold(sums[j], |sum, i| a[i].mul_add(b[i * n + j], sum))).collect();
            super::f32_row(&a, &b, &mut sums);
            assert_eq!(sums, expected, "{k} {n}");
        }
    }
}
