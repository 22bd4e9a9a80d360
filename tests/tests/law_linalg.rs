//! Factors of matrices: the same bits for any threads, small residuals for matrices of every kind, and exact results where integers
//! give them.

use tessera_abi::linalg::batch::{self, Factor};
use tessera_abi::linalg::number::Real;
use tessera_abi::linalg::triangular::Triangle;
use tessera_abi::linalg::workers::{Alone, Workers};
use tessera_runtime::pool::Pool;
use tessera_tests::program::run_source;

/// Numbers from -1 to 1 without a pattern.
fn number(seed: u64, i: u64) -> f64 {
    let mut x = (seed << 32 | i).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    2.0 * ((x ^ x >> 31) >> 11) as f64 / (1u64 << 53) as f64 - 1.0
}

/// A matrix of a kind, `m` by `n`, row by row.
fn of_kind(kind: &str, m: usize, n: usize) -> Vec<f64> {
    let element = |i: usize, j: usize| match kind {
        "random" => number(1, (i * n + j) as u64),
        "dominant" => number(2, (i * n + j) as u64) + if i == j { n as f64 } else { 0.0 },
        "hilbert" => 1.0 / (i + j + 1) as f64,
        "graded" => number(3, (i * n + j) as u64) * 0.5f64.powi((i + j) as i32),
        "large" => number(4, (i * n + j) as u64) * 1e18,
        "small" => number(5, (i * n + j) as u64) * 1e-18,
        "rank one" => number(6, i as u64) * number(7, j as u64),
        "equal" => 1.0,
        "identity" => f64::from(u8::from(i == j)),
        "bidiagonal" => f64::from(u8::from(j == i || j == i + 1)),
        _ => 0.0,
    };
    (0..m * n).map(|at| element(at / n.max(1), at % n.max(1))).collect()
}

const KINDS: &[&str] = &[
    "random",
    "dominant",
    "hilbert",
    "graded",
    "large",
    "small",
    "rank one",
    "equal",
    "identity",
    "bidiagonal",
    "zero",
];

fn factors<T: Real>(workers: &impl Workers, factor: Factor, m: usize, n: usize, a: &[T]) -> Vec<T> {
    let count = a.len() / (m * n).max(1);
    let mut out = vec![T::ZERO; count * factor.elems(m as u64, n as u64) as usize];
    batch::factor(workers, factor, [m, n], a, &mut out).unwrap_or_else(|f| panic!("{factor:?} {m} {n}: {f:?}"));
    out
}

fn the_same_bits_for<T: Real>() {
    let pools = [2, 5].map(Pool::new);
    for factor in Factor::ALL {
        for (count, m, n) in [(1, 200, 200), (1, 300, 130), (1, 130, 300), (40, 9, 9), (7, 33, 20), (3, 64, 64)] {
            if factor.is_square() && m != n {
                continue;
            }
            let a: Vec<T> = (0..count).flat_map(|_| of_kind("dominant", m, n)).map(T::from_f64).collect();
            let alone = factors(&Alone, factor, m, n, &a);
            for pool in &pools {
                assert!(factors(pool, factor, m, n, &a) == alone, "{factor:?} {count} {m} {n}");
            }
        }
    }
    let triangle = Triangle { lower: true, transposed: true, unit: false };
    for (n, width) in [(300, 200), (200, 1), (9, 700)] {
        let a: Vec<T> = of_kind("dominant", n, n).into_iter().map(T::from_f64).collect();
        let b: Vec<T> = of_kind("random", n, width).into_iter().map(T::from_f64).collect();
        let solved = |workers: &dyn Fn(&mut [T])| {
            let mut x = vec![T::ZERO; n * width];
            workers(&mut x);
            x
        };
        let alone = solved(&|x| batch::solve(&Alone, triangle, [n, width], &a, &b, x).expect("a solution"));
        for pool in &pools {
            let shared = solved(&|x| batch::solve(pool, triangle, [n, width], &a, &b, x).expect("a solution"));
            assert!(shared == alone, "{n} {width}");
        }
    }
}

#[test]
fn threads_change_no_bit() {
    the_same_bits_for::<f32>();
    the_same_bits_for::<f64>();
}

/// `x · y` of `m` by `k` and `k` by `n`.
fn product(x: &[f64], y: &[f64], m: usize, k: usize, n: usize) -> Vec<f64> {
    let mut out = vec![0.0; m * n];
    for i in 0..m {
        for p in 0..k {
            for j in 0..n {
                out[i * n + j] += x[i * k + p] * y[p * n + j];
            }
        }
    }
    out
}

fn turned(x: &[f64], m: usize, n: usize) -> Vec<f64> {
    (0..m * n).map(|at| x[at % m * n + at / m]).collect()
}

fn norm(x: &[f64]) -> f64 {
    x.iter().map(|x| x * x).sum::<f64>().sqrt()
}

fn apart(x: &[f64], y: &[f64]) -> f64 {
    norm(&x.iter().zip(y).map(|(x, y)| x - y).collect::<Vec<f64>>())
}

/// How far columns are from orthonormal ones.
fn skew(x: &[f64], m: usize, k: usize) -> f64 {
    apart(&product(&turned(x, m, k), x, k, m, k), &of_kind("identity", k, k))
}

fn residuals_of<T: Real>() {
    let mut wrong = vec![];
    for kind in KINDS {
        for (m, n) in [(1, 1), (2, 2), (5, 3), (3, 5), (17, 17), (40, 33), (33, 90), (100, 100)] {
            let k = m.min(n);
            let a: Vec<T> = of_kind(kind, m, n).into_iter().map(T::from_f64).collect();
            let wide: Vec<f64> = a.iter().map(|x| x.to_f64()).collect();
            let get =
                |factor: Factor| -> Vec<f64> { factors(&Alone, factor, m, n, &a).iter().map(|x| x.to_f64()).collect() };
            let bound = 4.0 * T::EPSILON.to_f64() * (m + n) as f64;
            let mut held = |what: &str, error: f64, size: f64| {
                if error.is_nan() || error > bound * size {
                    wrong.push(format!("{kind} {m} {n}: {what} is off by {error:.3e}, of {size:.3e}"));
                }
            };
            let size = norm(&wide);
            let both = get(Factor::Qr);
            let (q, r) = both.split_at(m * k);
            held("q r", apart(&product(q, r, m, k, n), &wide), size);
            held("q", skew(q, m, k), 1.0);
            let all = get(Factor::Svd);
            let (u, rest) = all.split_at(m * k);
            let (s, vh) = rest.split_at(k);
            let scaled: Vec<f64> = u.iter().enumerate().map(|(at, u)| u * s[at % k]).collect();
            held("u s vh", apart(&product(&scaled, vh, m, k, n), &wide), size);
            held("u", skew(u, m, k), 1.0);
            held("vh", skew(&turned(vh, k, n), n, k), 1.0);
            held("singular values alone", apart(&get(Factor::Svdvals), s), 0.0);
            let all = get(Factor::Lu);
            let (lu, rows) = all.split_at(m * n);
            let at = |i: usize, j: usize| lu[i * n + j];
            let l: Vec<f64> = (0..m * k)
                .map(|p| match (p / k).cmp(&(p % k)) {
                    std::cmp::Ordering::Less => 0.0,
                    std::cmp::Ordering::Equal => 1.0,
                    std::cmp::Ordering::Greater => at(p / k, p % k),
                })
                .collect();
            let upper: Vec<f64> = (0..k * n).map(|p| if p % n < p / n { 0.0 } else { at(p / n, p % n) }).collect();
            let ordered: Vec<f64> = rows.iter().flat_map(|&r| wide[r as usize * n..][..n].to_vec()).collect();
            held("l u", apart(&product(&l, &upper, m, k, n), &ordered), size.max(norm(&upper)));
            if m != n {
                continue;
            }
            let symmetric: Vec<f64> = (0..n * n).map(|p| wide[(p / n).max(p % n) * n + (p / n).min(p % n)]).collect();
            let all = get(Factor::Eigh);
            let (w, v) = all.split_at(n);
            let scaled: Vec<f64> = v.iter().enumerate().map(|(at, v)| v * w[at % n]).collect();
            held("v w vt", apart(&product(&scaled, &turned(v, n, n), n, n, n), &symmetric), norm(&symmetric));
            held("v", skew(v, n, n), 1.0);
            held("eigenvalues alone", apart(&get(Factor::Eigvalsh), w), 0.0);
            let square: Vec<f64> = product(&wide, &turned(&wide, n, n), n, n, n);
            let more = norm(&square).max(1e-30);
            let positive: Vec<T> = square
                .iter()
                .enumerate()
                .map(|(p, x)| T::from_f64(x / more + if p % (n + 1) == 0 { 0.01 } else { 0.0 }))
                .collect();
            let l: Vec<f64> = factors(&Alone, Factor::Cholesky, n, n, &positive).iter().map(|x| x.to_f64()).collect();
            let positive: Vec<f64> = positive.iter().map(|x| x.to_f64()).collect();
            let again = product(&l, &turned(&l, n, n), n, n, n);
            held("l lt", apart(&again, &positive), norm(&positive));
        }
    }
    assert!(wrong.is_empty(), "{} residuals\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn residuals_are_roundings() {
    residuals_of::<f32>();
    residuals_of::<f64>();
}

/// `a v = v w` in f64, of vectors of length 1; and of f32 the same numbers, rounded.
#[test]
fn eigenvectors_are_stretched_by_their_eigenvalues() {
    let mut wrong = vec![];
    for kind in KINDS {
        for n in [1, 2, 3, 5, 17, 40, 80] {
            let a = of_kind(kind, n, n);
            let all = factors(&Alone, Factor::Eig, n, n, &a);
            assert!(factors(&Alone, Factor::Eigvals, n, n, &a) == all[..2 * n], "{kind} {n}: eigenvalues alone");
            let (w, v) = ([&all[..n], &all[n..2 * n]], [&all[2 * n..][..n * n], &all[2 * n + n * n..]]);
            let [re, im] = v.map(|v| product(&a, v, n, n, n));
            let stretched = |at: usize| {
                let (j, i) = (at % n, at);
                [v[0][i] * w[0][j] - v[1][i] * w[1][j], v[0][i] * w[1][j] + v[1][i] * w[0][j]]
            };
            let off = (0..n * n).flat_map(|at| [re[at] - stretched(at)[0], im[at] - stretched(at)[1]]);
            let error = norm(&off.collect::<Vec<f64>>());
            let bound = 1e-14 * (n as f64 + 4.0) * norm(&a);
            let lengths =
                (0..n).map(|j| (0..n).map(|i| v[0][i * n + j].powi(2) + v[1][i * n + j].powi(2)).sum::<f64>());
            let skewed = lengths.fold(0.0, |m: f64, l| m.max((l - 1.0).abs()));
            if error.is_nan() || error > bound || skewed > 1e-13 {
                wrong.push(format!("{kind} {n}: off by {error:.3e} of {bound:.3e}, lengths by {skewed:.3e}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} equations\n{}", wrong.len(), wrong.join("\n"));
}

/// The determinant of ints, exactly: elimination without fractions (Bareiss, 1968).
fn determinant(mut a: Vec<Vec<i128>>) -> i128 {
    let n = a.len();
    let (mut sign, mut last) = (1, 1);
    for k in 0..n {
        let Some(pivot) = (k..n).find(|&i| a[i][k] != 0) else { return 0 };
        if pivot != k {
            a.swap(k, pivot);
            sign = -sign;
        }
        for i in k + 1..n {
            for j in k + 1..n {
                a[i][j] = (a[i][j] * a[k][k] - a[i][k] * a[k][j]) / last;
            }
            a[i][k] = 0;
        }
        last = a[k][k];
    }
    sign * last
}

#[test]
fn determinants_and_solutions_of_ints_are_those_of_exact_arithmetic() {
    for (seed, n) in (0..24).map(|seed| (seed, 1 + seed as usize % 8)) {
        let a: Vec<Vec<i128>> = (0..n)
            .map(|i| (0..n).map(|j| (number(seed + 10, (i * n + j) as u64) * 10.0).round() as i128).collect())
            .collect();
        let exact = determinant(a.clone());
        let rows: Vec<String> = a
            .iter()
            .map(|r| format!("[{}]", r.iter().map(|x| format!("{x}.0")).collect::<Vec<_>>().join(", ")))
            .collect();
        let ones = vec!["1.0"; n].join(", ");
        let program = format!(
            "import std.linalg as linalg\na = op.array([{}], dtype=f64)\nprint(float(linalg.det(a)))\n\
             sign, log = linalg.slogdet(a)\nprint(float(sign) * math.exp(float(log)))\n\
             if abs({exact}.0) > 0.5:\n    b = op.array([{ones}], dtype=f64)\n    x = linalg.solve(a, b)\n    \
             print(float(op.max(op.abs(a @ x - b))), float(op.max(op.abs(linalg.inv(a) @ a - op.eye({n}, dtype=f64)))))\n",
            rows.join(", ")
        );
        let ran = run_source(&program, &["run"]).expect("a run");
        assert_eq!(ran.code, 0, "{program}\n{}", ran.err);
        let numbers: Vec<f64> = ran.out.split_whitespace().map(|x| x.parse().expect("a number")).collect();
        let bound = 1e-11 * (exact as f64).abs() + 1e-7;
        assert!((numbers[0] - exact as f64).abs() < bound, "{n}: {} instead of {exact}", numbers[0]);
        assert!((numbers[1] - exact as f64).abs() < bound * 10.0, "{n}: {} instead of {exact}", numbers[1]);
        assert!(numbers[2..].iter().all(|x| *x < 1e-9), "{program}\n{numbers:?}");
    }
}

/// Programs give the same text with any threads, from the interpreter too.
#[test]
fn programs_give_the_same_bits() {
    let program = "import std.linalg as linalg\n\
        a = random.normal(random.key(3), (3, 150, 150))\n\
        s = a @ a.swapaxes(-1, -2) + op.eye(150)\n\
        def hash(x):\n    return int(op.sum((x * 1000003.0).to(i64) % 1000003))\n\
        print(hash(op.cholesky(s)), hash(op.solve(a, a[..., :3])), hash(op.qr(a)[0]), hash(op.svd(a)[0]), hash(op.eigh(s)[1]))\n\
        print(hash(autodiff.grad(lambda x: op.sum(linalg.inv(x)[..., 0]))(s)), hash(linalg.matrix_exp(a / 20.0)))\n";
    let first = run_source(program, &["run", "--threads", "1"]).expect("a run");
    assert_eq!(first.code, 0, "{}", first.err);
    for args in
        [&["run", "--threads", "2"][..], &["run", "--threads", "5"], &["run", "--interpret"], &["run", "--checked"]]
    {
        let ran = run_source(program, args).expect("a run");
        assert_eq!((ran.code, &ran.out), (0, &first.out), "{args:?}: {}", ran.err);
    }
}
