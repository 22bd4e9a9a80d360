//! What is drawn has the distribution that it is said to have: the distance to the exact distribution function
//! (Kolmogorov and Smirnov), with fixed keys.

use super::{Array, In, array, int, ints, run};
use tessera_ops::map::MapOp;
use tessera_ops::prim::Scalar;
use tessera_ops::scalar::Kind;
use tessera_ops::scalar_eval::{Lane, eval};
use tessera_ops::surface::Arg;

const DRAWS: usize = 10_000;
/// Of 1,000 correct samples one is farther away.
const FAR: f64 = 1.95;

/// A special function in f64, by its own program, which tabulated values are held against.
fn special(op: MapOp, x: &[f64]) -> f64 {
    let lanes: Vec<Lane> = x.iter().map(|&x| Lane::F64(vec![x])).collect();
    match eval(op.program(&vec![Kind::F64; x.len()]), &lanes, 1) {
        Lane::F64(y) => y[0],
        other => panic!("{other:?}"),
    }
}

fn number(v: f64) -> In {
    In::S(Arg::Scalar(Scalar::F(v)))
}

fn key(n: i64) -> In {
    In::I(run("random.key", vec![int(n)]))
}

/// `√n` times the largest distance between the distribution function of the draws and the exact one.
fn distance(draws: &[f64], exact: impl Fn(f64) -> f64, discrete: bool) -> f64 {
    let mut sorted = draws.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len() as f64;
    let mut worst: f64 = 0.0;
    let mut i = 0;
    while i < sorted.len() {
        let equal = sorted[i..].iter().take_while(|v| **v == sorted[i]).count();
        let at = exact(sorted[i]);
        worst = worst.max(((i + equal) as f64 / n - at).abs());
        if !discrete {
            worst = worst.max((i as f64 / n - at).abs());
        }
        i += equal;
    }
    worst * n.sqrt()
}

fn check(name: &str, parameters: &[f64], exact: &dyn Fn(f64) -> f64) {
    let discrete = ["random.poisson", "random.binomial", "random.geometric"].contains(&name);
    let standard = parameters.is_empty();
    let mut args = vec![key(name.len() as i64 + 1000 * parameters.len() as i64)];
    args.extend(parameters.iter().map(|&v| number(v)));
    args.push(ints(&[DRAWS as i64]));
    let draws = run(name, args);
    assert_eq!(draws.shape, [DRAWS as u64], "{name}");
    let far = distance(&draws.values, exact, discrete);
    assert!(far < FAR, "{name}{parameters:?}: {far}");
    if standard {
        return;
    }
    // Parameters that only the run knows take the other ways of an expansion.
    let given = parameters.iter().map(|&v| In::F(array(&[], &[v])));
    let mut args = vec![key(name.len() as i64)];
    args.extend(given);
    args.push(ints(&[DRAWS as i64]));
    let far = distance(&run(name, args).values, exact, discrete);
    assert!(far < FAR, "{name}{parameters:?} of tensors: {far}");
}

/// The distribution functions of those with parameters.
fn exact_of(name: &str, p: &[f64], x: f64) -> f64 {
    let of = |op: MapOp, x: &[f64]| special(op, x);
    match name {
        "random.gamma" => of(MapOp::gammainc, &[p[0], x]),
        "random.chisquare" => of(MapOp::gammainc, &[p[0] / 2.0, x / 2.0]),
        "random.truncated_normal" => {
            let (low, high) = (of(MapOp::ndtr, &[p[0]]), of(MapOp::ndtr, &[p[1]]));
            let (up, down) = (of(MapOp::ndtr, &[-p[0]]), of(MapOp::ndtr, &[-p[1]]));
            if p[0] > 0.0 {
                (up - of(MapOp::ndtr, &[-x])) / (up - down)
            } else {
                (of(MapOp::ndtr, &[x]) - low) / (high - low)
            }
        }
        "random.t" if p[0] == 1.0 => 0.5 + x.atan() / std::f64::consts::PI,
        "random.t" => {
            assert_eq!(p[0], 4.0);
            let s = 1.0 + x * x / 4.0;
            0.5 + 0.375 * x / s.sqrt() * (1.0 - x * x / (12.0 * s))
        }
        "random.beta" if p == [0.5, 0.5] => x.sqrt().asin() * 2.0 / std::f64::consts::PI,
        "random.beta" => {
            assert_eq!(p, [2.0, 3.0]);
            x * x * (6.0 - 8.0 * x + 3.0 * x * x)
        }
        "random.poisson" => of(MapOp::gammaincc, &[x.floor() + 1.0, p[0]]),
        "random.geometric" => 1.0 - (1.0 - p[0]).powf(x),
        _ => panic!("{name}"),
    }
}

fn both(name: &str, parameters: &[f64]) {
    check(name, parameters, &|x| exact_of(name, parameters, x));
}

/// The distribution function of the binomial distribution, by adding up probabilities of what is not farther than 12
/// deviations below the mean.
fn binomial(n: f64, p: f64) -> impl Fn(f64) -> f64 {
    let (mean, spread) = (n * p, (n * p * (1.0 - p)).sqrt());
    let first = (mean - 12.0 * spread - 30.0).max(0.0).floor();
    let lgamma = |x: f64| special(MapOp::lgamma, &[x]);
    let ways = lgamma(n + 1.0) - lgamma(first + 1.0) - lgamma(n - first + 1.0);
    let mut term = (ways + first * p.ln() + (n - first) * (1.0 - p).ln()).exp();
    let mut sums = vec![term];
    let mut k = first;
    while k < n && k < mean + 12.0 * spread + 30.0 {
        term *= (n - k) / (k + 1.0) * p / (1.0 - p);
        k += 1.0;
        sums.push(sums[sums.len() - 1] + term);
    }
    move |x| if x < first { 0.0 } else { sums[((x - first) as usize).min(sums.len() - 1)] }
}

#[test]
fn continuous_ones() {
    check("random.exponential", &[], &|x| 1.0 - (-x).exp());
    check("random.gumbel", &[], &|x| (-(-x).exp()).exp());
    check("random.logistic", &[], &|x| 1.0 / (1.0 + (-x).exp()));
    check("random.laplace", &[], &|x| if x < 0.0 { 0.5 * x.exp() } else { 1.0 - 0.5 * (-x).exp() });
    check("random.cauchy", &[], &|x| 0.5 + x.atan() / std::f64::consts::PI);
    check("random.normal", &[], &|x| special(MapOp::ndtr, &[x]));
    for bounds in [[-1.0, 2.0], [3.0, 5.0], [-9.0, -7.5], [8.0, 30.0]] {
        both("random.truncated_normal", &bounds);
    }
}

#[test]
fn what_is_made_of_gamma_numbers() {
    for a in [0.3, 0.9, 1.0, 2.5, 60.0, 3e4] {
        both("random.gamma", &[a]);
    }
    both("random.chisquare", &[3.0]);
    both("random.t", &[4.0]);
    both("random.t", &[1.0]);
    both("random.beta", &[2.0, 3.0]);
    both("random.beta", &[0.5, 0.5]);
    let logs = run("random.loggamma", vec![key(3), number(0.01), ints(&[DRAWS as i64])]);
    let far = distance(&logs.values, |x| special(MapOp::gammainc, &[0.01, x.exp()]), false);
    assert!(far < FAR, "{far}");
    let points = run("random.dirichlet", vec![key(4), In::F(array(&[3], &[1.0, 2.0, 3.0])), ints(&[DRAWS as i64])]);
    assert_eq!(points.shape, [DRAWS as u64, 3]);
    assert!(points.values.chunks(3).all(|p| (p.iter().sum::<f64>() - 1.0).abs() < 1e-6));
    let first: Vec<f64> = points.values.iter().step_by(3).copied().collect();
    assert!(distance(&first, |x| 1.0 - (1.0 - x).powi(5), false) < FAR);
}

#[test]
fn counts() {
    for mean in [0.2, 3.5, 9.99, 10.0, 12.5, 40.0, 1e4] {
        both("random.poisson", &[mean]);
    }
    for (n, p) in [(10.0, 0.3), (1000.0, 0.004), (25.0, 0.4), (100.0, 0.35), (60.0, 0.8), (1e6, 0.3), (1e4, 0.9995)] {
        check("random.binomial", &[n, p], &binomial(n, p));
    }
    both("random.geometric", &[0.2]);
    let signs = run("random.rademacher", vec![key(2), ints(&[DRAWS as i64])]);
    assert!(signs.values.iter().all(|v| v.abs() == 1.0) && signs.values.iter().sum::<f64>().abs() < 500.0);
}

/// How often each of the first ints occurs.
fn shares(draws: &[f64], n: usize) -> Vec<f64> {
    (0..n).map(|i| draws.iter().filter(|d| **d == i as f64).count() as f64 / draws.len() as f64).collect()
}

fn near(got: &[f64], want: &[f64]) {
    assert!(got.iter().zip(want).all(|(g, w)| (g - w).abs() < 0.015), "{got:?} {want:?}");
}

#[test]
fn categories_and_weights() {
    let p = [0.1, 0.5, 0.0, 0.4];
    let logits = array(&[4], &p.map(f64::ln));
    let draws = run("random.categorical", vec![key(1), In::F(logits), int(-1), ints(&[DRAWS as i64])]);
    near(&shares(&draws.values, 4), &p);
    let weights = || In::F(array(&[4], &p.map(|v| v * 7.0)));
    let yes = |b: bool| In::S(Arg::Bool(b));
    let draws = run("random.choice", vec![key(2), int(4), ints(&[DRAWS as i64]), yes(true), weights()]);
    near(&shares(&draws.values, 4), &p);
    let (mut first, mut second) = (vec![], vec![]);
    for n in 0..3000 {
        let order = run("random.permutation", vec![key(n), int(4), weights()]).values;
        let drawn = run("random.choice", vec![key(n), int(4), ints(&[2]), yes(false), weights()]).values;
        assert_eq!(order[..2], drawn[..]);
        // What has no weight comes last.
        assert_eq!(order[3], 2.0);
        first.push(order[0]);
        second.push(order[1]);
    }
    let off = |got: &[f64], want: &[f64]| got.iter().zip(want).all(|(g, w)| (g - w).abs() < 0.03);
    assert!(off(&shares(&first, 4), &p));
    // The second of two draws without replacement.
    let want: Vec<f64> =
        (0..4).map(|j| (0..4).filter(|&i| i != j && p[i] < 1.0).map(|i| p[i] * p[j] / (1.0 - p[i])).sum()).collect();
    assert!(off(&shares(&second, 4), &want));
    let all: Array = run("random.choice", vec![key(5), int(50), ints(&[50]), yes(false)]);
    let mut all = all.values;
    all.sort_by(f64::total_cmp);
    assert_eq!(all, (0..50).map(f64::from).collect::<Vec<_>>());
}
