//! Butterflies: short transforms as straight lines of additions, products and fused
//! multiply-adds, written once for numbers and for generated code.

use super::unit;

/// A complex value in two parts.
pub type Pair<V> = [V; 2];

/// What a butterfly is written in: f32 numbers, or values of a kernel.
pub trait Arith {
    type V: Copy;
    fn constant(&mut self, x: f32) -> Self::V;
    fn neg(&mut self, a: Self::V) -> Self::V;
    fn add(&mut self, a: Self::V, b: Self::V) -> Self::V;
    fn sub(&mut self, a: Self::V, b: Self::V) -> Self::V;
    fn mul(&mut self, a: Self::V, b: Self::V) -> Self::V;
    /// `a·b + c`, rounded once.
    fn fma(&mut self, a: Self::V, b: Self::V, c: Self::V) -> Self::V;
}

/// Plain numbers.
pub struct Numbers;

impl Arith for Numbers {
    type V = f32;

    fn constant(&mut self, x: f32) -> f32 {
        x
    }

    fn neg(&mut self, a: f32) -> f32 {
        -a
    }

    fn add(&mut self, a: f32, b: f32) -> f32 {
        a + b
    }

    fn sub(&mut self, a: f32, b: f32) -> f32 {
        a - b
    }

    fn mul(&mut self, a: f32, b: f32) -> f32 {
        a * b
    }

    fn fma(&mut self, a: f32, b: f32, c: f32) -> f32 {
        a.mul_add(b, c)
    }
}

pub fn add<A: Arith>(a: &mut A, x: Pair<A::V>, y: Pair<A::V>) -> Pair<A::V> {
    [a.add(x[0], y[0]), a.add(x[1], y[1])]
}

pub fn sub<A: Arith>(a: &mut A, x: Pair<A::V>, y: Pair<A::V>) -> Pair<A::V> {
    [a.sub(x[0], y[0]), a.sub(x[1], y[1])]
}

/// `x·y`.
pub fn mul<A: Arith>(a: &mut A, x: Pair<A::V>, y: Pair<A::V>) -> Pair<A::V> {
    let cross = a.mul(x[1], y[1]);
    let cross = a.neg(cross);
    let re = a.fma(x[0], y[0], cross);
    let cross = a.mul(x[1], y[0]);
    [re, a.fma(x[0], y[1], cross)]
}

/// Both parts times a real number.
pub fn scale<A: Arith>(a: &mut A, x: Pair<A::V>, by: A::V) -> Pair<A::V> {
    [a.mul(x[0], by), a.mul(x[1], by)]
}

/// `x·(-i)`.
fn turn<A: Arith>(a: &mut A, x: Pair<A::V>) -> Pair<A::V> {
    [x[1], a.neg(x[0])]
}

/// `x·exp(-2πi·k/n)`, with fewer operations in the eight directions of axes and diagonals.
fn rotate<A: Arith>(a: &mut A, x: Pair<A::V>, k: usize, n: usize) -> Pair<A::V> {
    let k = k % n;
    if k == 0 {
        return x;
    }
    if !(8 * k).is_multiple_of(n) {
        let [re, im] = unit(k as u64, n as u64);
        let w = [a.constant(re), a.constant(im)];
        return mul(a, x, w);
    }
    match 8 * k / n {
        2 => turn(a, x),
        4 => [a.neg(x[0]), a.neg(x[1])],
        6 => [a.neg(x[1]), x[0]],
        odd => {
            let c = a.constant(std::f32::consts::FRAC_1_SQRT_2);
            // x·(1 - i) and quarter turns of it.
            let y = [a.add(x[0], x[1]), a.sub(x[1], x[0])];
            let y = match odd {
                1 => y,
                3 => turn(a, y),
                5 => [a.neg(y[0]), a.neg(y[1])],
                _ => [a.neg(y[1]), y[0]],
            };
            scale(a, y, c)
        }
    }
}

/// The transform of as many points as `x` has; quadratic in its prime factors.
pub fn dft<A: Arith>(a: &mut A, x: &[Pair<A::V>]) -> Vec<Pair<A::V>> {
    match x.len() {
        0 | 1 => x.to_vec(),
        2 => vec![add(a, x[0], x[1]), sub(a, x[0], x[1])],
        4 => four(a, x),
        n => match first_factor(n) {
            f if f == n => odd_prime(a, x),
            f => composite(a, x, f),
        },
    }
}

/// The factor to split off: 4, 2 (of 8: the other is 4), or the least prime.
fn first_factor(n: usize) -> usize {
    if n == 8 {
        return 2;
    }
    if n.is_multiple_of(4) {
        return 4;
    }
    (2..n).find(|d| n.is_multiple_of(*d)).unwrap_or(n)
}

fn four<A: Arith>(a: &mut A, x: &[Pair<A::V>]) -> Vec<Pair<A::V>> {
    let (even, odd) = (add(a, x[0], x[2]), add(a, x[1], x[3]));
    let (low, high) = (sub(a, x[0], x[2]), sub(a, x[1], x[3]));
    vec![
        add(a, even, odd),
        [a.add(low[0], high[1]), a.sub(low[1], high[0])],
        sub(a, even, odd),
        [a.sub(low[0], high[1]), a.add(low[1], high[0])],
    ]
}

/// `n = f·g`: `f` transforms of `g` points, turned, then `g` transforms of `f`.
fn composite<A: Arith>(a: &mut A, x: &[Pair<A::V>], f: usize) -> Vec<Pair<A::V>> {
    let (n, g) = (x.len(), x.len() / f);
    let mut rows = vec![];
    for i in 0..f {
        let row: Vec<_> = x.iter().copied().skip(i).step_by(f).collect();
        let row = dft(a, &row);
        rows.push(row.into_iter().enumerate().map(|(k, v)| rotate(a, v, i * k, n)).collect::<Vec<_>>());
    }
    let mut out = x.to_vec();
    for k in 0..g {
        let column: Vec<_> = rows.iter().map(|r| r[k]).collect();
        for (j, v) in dft(a, &column).into_iter().enumerate() {
            out[k + g * j] = v;
        }
    }
    out
}

/// Sums and differences of opposite points, then a cosine and a sine chain for each pair of
/// results.
fn odd_prime<A: Arith>(a: &mut A, x: &[Pair<A::V>]) -> Vec<Pair<A::V>> {
    let n = x.len();
    let half = n / 2;
    let sums: Vec<_> = (1..=half).map(|k| add(a, x[k], x[n - k])).collect();
    let differences: Vec<_> = (1..=half).map(|k| sub(a, x[k], x[n - k])).collect();
    let mut out = x.to_vec();
    out[0] = sums.iter().fold(x[0], |total, s| add(a, total, *s));
    for j in 1..=half {
        let mut even = x[0];
        let mut odd: Option<Pair<A::V>> = None;
        for k in 1..=half {
            let [c, s] = unit((j * k) as u64, n as u64);
            let (c, s) = (a.constant(c), a.constant(s));
            even = [a.fma(sums[k - 1][0], c, even[0]), a.fma(sums[k - 1][1], c, even[1])];
            let d = differences[k - 1];
            odd = Some(match odd {
                None => scale(a, d, s),
                Some(o) => [a.fma(d[0], s, o[0]), a.fma(d[1], s, o[1])],
            });
        }
        // even + i·odd and even - i·odd, where odd carries the sign of -sin.
        let odd = odd.unwrap_or(even);
        out[j] = [a.sub(even[0], odd[1]), a.add(even[1], odd[0])];
        out[n - j] = [a.add(even[0], odd[1]), a.sub(even[1], odd[0])];
    }
    out
}

/// Twice value `k` of the spectrum of `2n` real numbers from values `k` and `n - k` (both mod n) of the
/// transform of their `n` pairs; `w = exp(-πi·k/n)`.
pub fn split_half<A: Arith>(a: &mut A, z: Pair<A::V>, mirror: Pair<A::V>, w: Pair<A::V>) -> Pair<A::V> {
    let even = [a.add(z[0], mirror[0]), a.sub(z[1], mirror[1])];
    let odd = [a.add(z[1], mirror[1]), a.sub(mirror[0], z[0])];
    let turned = mul(a, odd, w);
    add(a, even, turned)
}

/// Input `k` of the transform that gives `2n` real numbers in pairs, from values `k` and `n - k`
/// of their spectrum; `w = exp(-πi·k/n)`.
pub fn join_half<A: Arith>(a: &mut A, x: Pair<A::V>, mirror: Pair<A::V>, w: Pair<A::V>) -> Pair<A::V> {
    let even = [a.add(x[0], mirror[0]), a.sub(x[1], mirror[1])];
    let difference = [a.sub(x[0], mirror[0]), a.add(x[1], mirror[1])];
    let back = [w[0], a.neg(w[1])];
    let odd = mul(a, difference, back);
    [a.sub(even[0], odd[1]), a.add(even[1], odd[0])]
}
