//! The incomplete gamma functions and their derivatives, in F64; F32 is rounded once from there.
//!
//! Four ways, of which each is evaluated and one counts: the power series where x is below a, Legendre's continued
//! fraction above, the alternating series of the upper function where a and x are small, and Temme's uniform expansion
//! (SIAM J. Math. Anal. 10, 1979) where a ≥ 12 and x/a lies between 0.4 and 2. So the steps of each are few and fixed.

use super::dual::Dual;
use super::erf::mills;
use super::exp::{exp, expm1};
use super::gamma::{digamma_1p, log_gamma_1p, stirling};
use super::log::log;
use crate::scalar::{Cmp, Kind, Val, Writer};
use std::f64::consts::PI;

/// `c_k(η)`, the coefficients of `a^−k`, as series in η, as far as they count for a ≥ 12 and |η| ≤ 0.8.
const TEMME: [&[f64]; 14] = [
    &[
        -0.3333333333333333,
        0.08333333333333333,
        -0.014814814814814815,
        0.0011574074074074073,
        0.0003527336860670194,
        -0.0001787551440329218,
        3.919263178522438e-05,
        -2.185448510679992e-06,
        -1.85406221071516e-06,
        8.296711340953087e-07,
        -1.7665952736826078e-07,
        6.707853543401498e-09,
        1.0261809784240309e-08,
        -4.382036018453353e-09,
        9.14769958223679e-10,
        -2.5514193994946248e-11,
        -5.830772132550426e-11,
        2.4361948020667415e-11,
        -5.0276692801141755e-12,
        1.1004392031956135e-13,
        3.371763262400985e-13,
        -1.392388722418162e-13,
        2.8534893807047445e-14,
        -5.139111834242572e-16,
        -1.9752288294349442e-15,
    ],
    &[
        -0.001851851851851852,
        -0.003472222222222222,
        0.0026455026455026454,
        -0.0009902263374485596,
        0.00020576131687242798,
        -4.018775720164609e-07,
        -1.8098550334489977e-05,
        7.64916091608111e-06,
        -1.6120900894563446e-06,
        4.647127802807434e-09,
        1.378633446915721e-07,
        -5.752545603517705e-08,
        1.1951628599778148e-08,
        -1.7543241719747647e-11,
        -1.0091543710600413e-09,
        4.162792991842583e-10,
        -8.56390702649298e-11,
        6.067215101604758e-14,
        7.1624989648114856e-12,
        -2.933186643771437e-12,
        5.996696365683689e-13,
        -2.1671786527323313e-16,
        -4.978339972369262e-14,
        2.0291628823713425e-14,
    ],
    &[
        0.004133597883597883,
        -0.0026813271604938273,
        0.0007716049382716049,
        2.0093878600823047e-06,
        -0.0001073665322636516,
        5.2923448829120125e-05,
        -1.2760635188618728e-05,
        3.423578734096138e-08,
        1.3721957309062934e-06,
        -6.298992138380055e-07,
        1.4280614206064242e-07,
        -2.0477098421990866e-10,
        -1.409252991086752e-08,
        6.228974084922022e-09,
        -1.3670488396617114e-09,
        9.428356159014678e-13,
        1.2872252400089318e-10,
        -5.5645956134363323e-11,
        1.197593554636698e-11,
        -4.1689782251838634e-15,
        -1.0940640427884595e-12,
        4.662239946390136e-13,
        -9.905105763906907e-14,
    ],
    &[
        0.0006494341563786008,
        0.00022947209362139917,
        -0.0004691894943952557,
        0.00026772063206283885,
        -7.561801671883977e-05,
        -2.396505113867297e-07,
        1.1082654115347302e-05,
        -5.6749528269915965e-06,
        1.4230900732435883e-06,
        -2.7861080291528143e-11,
        -1.6958404091930278e-07,
        8.099464905388083e-08,
        -1.9111168485973655e-08,
        2.3928620439808118e-12,
        2.0620131815488797e-09,
        -9.460496661855133e-10,
        2.1541049775774907e-10,
        -1.388823336813903e-14,
        -2.1894761681963938e-11,
        9.790998951171684e-12,
        -2.178219188018096e-12,
    ],
    &[
        -0.0008618882909167117,
        0.0007840392217200666,
        -0.0002990724803031902,
        -1.4638452578843418e-06,
        6.641498215465122e-05,
        -3.968365047179435e-05,
        1.1375726970678419e-05,
        2.507497226237533e-10,
        -1.6954149536558305e-06,
        8.907507532205309e-07,
        -2.292934834000805e-07,
        2.956794137544049e-11,
        2.8865829742708783e-08,
        -1.4189739437803219e-08,
        3.4463580499464896e-09,
        -2.3024517174528067e-13,
        -3.9409233028046403e-10,
        1.86023389685045e-10,
        -4.356323005056618e-11,
    ],
    &[
        -0.00033679855336635813,
        -6.972813758365857e-05,
        0.0002772753244959392,
        -0.00019932570516188847,
        6.797780477937208e-05,
        1.419062920643967e-07,
        -1.3594048189768693e-05,
        8.018470256334202e-06,
        -2.291481176508095e-06,
        -3.252473551298454e-10,
        3.4652846491085265e-07,
        -1.8447187191171344e-07,
        4.8240967037894184e-08,
        -1.7989466721743514e-14,
        -6.306194500013523e-09,
        3.162417628774568e-09,
        -7.840924253697429e-10,
        5.192679165254041e-15,
        9.358944242306784e-11,
    ],
    &[
        0.0005313079364639922,
        -0.0005921664373536939,
        0.0002708782096718045,
        7.902353232660328e-07,
        -8.153969367561969e-05,
        5.61168275310625e-05,
        -1.8329116582843375e-05,
        -3.0796134506033047e-09,
        3.465155368803609e-06,
        -2.0291327396058603e-06,
        5.788792863149004e-07,
        2.338630673826657e-13,
        -8.828600746330484e-08,
        4.7435958880408125e-08,
        -1.2545415020710383e-08,
        8.649648858010293e-14,
        1.6846058979264062e-09,
        -8.575492823577594e-10,
    ],
    &[
        0.00034436760689237765,
        5.171790908260592e-05,
        -0.00033493161081142234,
        0.0002812695154763237,
        -0.00010976582244684731,
        -1.2741009095484485e-07,
        2.7744451511563645e-05,
        -1.8263488805711332e-05,
        5.7876949497350525e-06,
        4.93875893393627e-10,
        -1.0595367014026043e-06,
        6.166714376110408e-07,
        -1.7562973359060463e-07,
        -1.297447328701544e-12,
        2.695423606288966e-08,
        -1.4578352908731272e-08,
    ],
    &[
        -0.0006526239185953094,
        0.0008394987206720873,
        -0.000438297098541721,
        -6.969091458420552e-07,
        0.00016644846642067547,
        -0.00012783517679769218,
        4.629953263691304e-05,
        4.557909867922708e-09,
        -1.0595271125805195e-05,
        6.783342904865167e-06,
        -2.1075476666258803e-06,
        -1.7213731432817144e-11,
        3.773587741611098e-07,
        -2.1867506700122867e-07,
        6.220228804018927e-08,
    ],
    &[
        -0.0005967612901927463,
        -7.204895416020011e-05,
        0.0006782308837667328,
        -0.0006401475260262758,
        0.00027750107634328704,
        1.819700838046515e-07,
        -8.479507117068503e-05,
        6.105192082501531e-05,
        -2.1073920183404862e-05,
        -8.858589014125599e-10,
        4.5284535953805374e-06,
        -2.8427815022504407e-06,
        8.708234177864641e-07,
    ],
    &[
        0.0013324454494800656,
        -0.0019144384985654776,
        0.0011089369134596636,
        9.9324041226423e-07,
        -0.0005087450129309319,
        0.00042735056665392886,
        -0.00016858853767910798,
        -8.1301893922785e-09,
        4.5284402370562144e-05,
        -3.127053674781734e-05,
        1.044986828530338e-05,
    ],
    &[
        0.001579727660730835,
        0.00016251626278391583,
        -0.0020633421035543276,
        0.00213896861856891,
        -0.0010108559391263003,
        -3.99127055299192e-07,
        0.0003623502508476469,
        -0.00028143901463712157,
        0.00010449513336495887,
        2.12114184918303e-09,
        -2.5779417251947842e-05,
    ],
    &[
        -0.004072512119514016,
        0.00640336283380807,
        -0.004041016108167662,
        -2.1837328028662328e-06,
        0.002174044180125464,
        -0.001970044051841889,
        0.0008359546974796246,
        1.9445447567109655e-08,
        -0.000257793871204217,
    ],
    &[
        -0.0059475779383993,
        -0.0005401647678926045,
        0.00879104135507679,
        -0.009857631558785612,
        0.005013469503102154,
        1.2807521786221875e-06,
        -0.0020626019342754685,
        0.0017109128573523059,
    ],
];
/// `(2 atanh(s)/s − 2) / s²` in s²/0.06 − 1 on s² ≤ 0.12 (2⁻⁶¹).
const ATANH_WIDE: [f64; 12] = [
    0.6917457206584757,
    0.02621120624632891,
    0.0011880066782817213,
    5.875878255188792e-05,
    3.0607268892257277e-06,
    1.6499738816193778e-07,
    9.114370848359844e-09,
    5.127423668064946e-10,
    2.92551251131574e-11,
    1.6882105359049662e-12,
    9.935987562933927e-14,
    5.837459365843515e-15,
];
/// Where Temme's expansion holds.
const TEMME_FROM: f64 = 12.0;

/// How many steps are taken.
#[derive(Clone, Copy)]
pub struct Steps {
    series: i32,
    fraction: i32,
    alternating: i32,
    /// Powers of `1/a`, and coefficients of each.
    temme: (usize, usize),
}

impl Steps {
    /// As many as the result's kind needs: 2⁻⁵⁵ or 2⁻³³.
    pub fn of(kind: Kind) -> Steps {
        match kind {
            Kind::F32 => Steps { series: 28, fraction: 20, alternating: 17, temme: (8, 14) },
            _ => Steps { series: 44, fraction: 54, alternating: 25, temme: (14, 40) },
        }
    }
}

/// The lower and the upper function, with derivatives by `a` where it has one, and the density `x^(a − 1) e^−x / Γ(a)`.
pub struct Parts {
    lower: Dual,
    upper: Dual,
    density: Val,
}

/// `a ln(x) − x − lnΓ(1 + a)` for a < 12.
fn exponent_small(w: &mut Writer, a: Dual, x: Val) -> (Dual, Dual) {
    let ln = log(w, x);
    let product = a.mul(w, Dual::constant(ln));
    let value = log_gamma_1p(w, a.v);
    let gamma = Dual::of(w, a, value, |w| digamma_1p(w, a.v));
    let power = product.sub(w, gamma);
    (power.sub(w, Dual::constant(x)), power)
}

/// `φ = μ − ln(1 + μ)` with `μ = (x − a)/a`, and `μ`.
fn phi(w: &mut Writer, a: Dual, x: Val) -> (Dual, Dual) {
    let d = Dual::constant(x).sub(w, a);
    let mu = d.div(w, a);
    let ratio = w.div(x, a.v);
    let v = phi_of(w, mu.v, ratio);
    // dφ/da = −μ/a.
    let d = a.d.map(|d| {
        let quotient = w.div(mu.v, a.v);
        let minus = w.neg(quotient);
        w.mul(minus, d)
    });
    (Dual { v, d }, mu)
}

/// `μ − ln(1 + μ)`, where `ratio` is `1 + μ`.
pub(super) fn phi_of(w: &mut Writer, mu: Val, ratio: Val) -> Val {
    // μ − 2s = μ s for s = μ/(2 + μ), so that nothing is lost near 0.
    let below = w.add_c(mu, 2.0);
    let s = w.div(mu, below);
    let z = w.mul(s, s);
    let minus_one = w.f(-1.0, z);
    let t = w.fma_c(z, 1.0 / 0.06, minus_one);
    let p = w.horner(t, &ATANH_WIDE);
    let back = w.neg(z);
    let near = w.fma(back, p, mu);
    let near = w.mul(s, near);
    let ln = log(w, ratio);
    let far = w.sub(mu, ln);
    let (above, under) = (w.cmp_c(Cmp::Gt, mu, -0.5), w.cmp_c(Cmp::Lt, mu, 1.0));
    let is_near = w.both(above, under);
    w.select(is_near, near, far)
}

fn exp_dual(w: &mut Writer, x: Dual) -> Dual {
    let v = exp(w, x.v);
    Dual::of(w, x, v, |_| v)
}

/// `x^a e^−x / Γ(a + 1)` times this sum is the lower function: `1 + x/(a + 1) (1 + x/(a + 2) (1 + …))`, as a quotient whose
/// terms are divided by `a + n`, so that they stay in range.
fn series(w: &mut Writer, a: Dual, x: Val, n: i32) -> Dual {
    let one = w.f(1.0, x);
    let last = a.plus(w, f64::from(n));
    let unit = Dual::constant(one).div(w, last);
    let u = unit.mul(w, Dual::constant(x));
    let (mut top, mut bottom) = (Dual::constant(one), Dual::constant(one));
    for k in (1..=n).rev() {
        let factor = a.plus(w, f64::from(k));
        let factor = factor.mul(w, unit);
        bottom = bottom.mul(w, factor);
        top = top.fma(w, u, bottom);
    }
    top.div(w, bottom)
}

/// `1 / (x + 1 − a − 1 (1 − a)/(x + 3 − a − 2 (2 − a)/(x + 5 − a − …)))`, as a quotient whose terms are divided by `x + 2n`.
fn fraction(w: &mut Writer, a: Dual, x: Val, n: i32) -> Dual {
    let one = w.f(1.0, x);
    let last = w.add_c(x, 2.0 * f64::from(n));
    let unit = w.div(one, last);
    let unit = Dual::constant(unit);
    let distance = Dual::constant(x).sub(w, a);
    let mut top = distance.plus(w, 2.0 * f64::from(n) + 1.0).mul(w, unit);
    let mut bottom = unit;
    for k in (1..=n).rev() {
        let k = f64::from(k);
        let partial = a.plus(w, -k).scale(w, k);
        let step = distance.plus(w, 2.0 * k - 1.0);
        let lost = partial.mul(w, bottom);
        let next = step.fma(w, top, lost).mul(w, unit);
        bottom = top.mul(w, unit);
        top = next;
    }
    bottom.div(w, top)
}

/// The upper function for a < 1 and x < 2: `−(e^g − 1) − a e^g Σ (−x)^n / (n! (a + n))` with `g = ln(x^a / Γ(1 + a))`.
fn alternating(w: &mut Writer, a: Dual, x: Val, power: Dual, n: i32) -> Dual {
    let minus = w.neg(x);
    let mut term = w.f(1.0, x);
    let mut sum: Option<Dual> = None;
    for k in 1..=n {
        term = w.mul(term, minus);
        term = w.mul_c(term, 1.0 / f64::from(k));
        let below = a.plus(w, f64::from(k));
        let part = Dual::constant(term).div(w, below);
        sum = Some(match sum {
            Some(s) => s.add(w, part),
            None => part,
        });
    }
    let sum = sum.unwrap_or(Dual::constant(term));
    let growth = exp_dual(w, power);
    let v = expm1(w, power.v);
    let first = Dual::of(w, power, v, |_| growth.v);
    let second = a.mul(w, growth).mul(w, sum);
    first.add(w, second).neg(w)
}

/// Temme's expansion: the smaller function of the two, `e^−aφ (Φ-ratio(√2aφ) ± Σ c_k(η) a^−k / √2πa)`.
fn uniform(w: &mut Writer, a: Dual, phi: Dual, mu: Dual, right: Val, steps: Steps) -> Dual {
    let twice = phi.scale(w, 2.0);
    let distance = w.sqrt(twice.v);
    let v = w.with_sign(distance, mu.v);
    // dη/da = (dφ/da)/η, and −1/a at 0.
    let d = phi.d.map(|d| {
        let quotient = w.div(d, v);
        let minus_one = w.f(-1.0, v);
        let limit = w.div(minus_one, a.v);
        let tiny = w.cmp_c(Cmp::Lt, distance, 1e-150);
        w.select(tiny, limit, quotient)
    });
    let eta = Dual { v, d };
    let one = w.f(1.0, a.v);
    let inverse = Dual::constant(one).div(w, a);
    let mut sum: Option<Dual> = None;
    for c in TEMME.iter().take(steps.temme.0).rev() {
        let c = eta.horner(w, &c[..c.len().min(steps.temme.1)]);
        sum = Some(match sum {
            Some(s) => s.fma(w, inverse, c),
            None => c,
        });
    }
    let sum = sum.unwrap_or(eta);
    let scaled = a.scale(w, 2.0 * PI);
    let circle = root(w, scaled);
    let correction = sum.div(w, circle);
    let back = correction.neg(w);
    let correction = Dual::select(w, right, correction, back);
    // y = √(2aφ) = |η| √a; the ratio's derivative is y r(y) − 1/√2π.
    let root_a = root(w, a);
    let y = eta.mul(w, root_a);
    let minus = y.neg(w);
    let y = Dual::select(w, right, y, minus);
    let y = Dual { v: w.at_most(y.v, 39.0), d: y.d };
    let ratio = mills(w, y.v);
    let ratio = Dual::of(w, y, ratio, |w| {
        let rest = w.f(-0.398_942_280_401_432_7, ratio);
        w.fma(y.v, ratio, rest)
    });
    let exponent = a.mul(w, phi).neg(w);
    let decay = exp_dual(w, exponent);
    let sum = ratio.add(w, correction);
    decay.mul(w, sum)
}

/// `√x`.
fn root(w: &mut Writer, x: Dual) -> Dual {
    let v = w.sqrt(x.v);
    Dual::of(w, x, v, |w| {
        let half = w.f(0.5, v);
        w.div(half, v)
    })
}

/// All that is known of both functions at (a, x) in F64, with derivatives by `a` if `derive`.
pub fn parts(w: &mut Writer, a: Val, x: Val, steps: Steps, derive: bool) -> Parts {
    // Beyond this the functions are 0 or 1 anyway, and products would overflow.
    let a = w.at_most(a, 1e290);
    let x = w.at_most(x, 1e300);
    let one = w.f(1.0, x);
    let a = Dual { v: a, d: derive.then_some(one) };
    let (exponent, power) = exponent_small(w, a, x);
    let (phi, mu) = phi(w, a, x);
    let correction = stirling(w, a.v);
    let correction = Dual::of(w, a, correction, |w| {
        // δ' = ψ(a) − ln a + 1/(2a), of which the first term of the series is enough to write it by ψ(1 + a).
        let psi = digamma_1p(w, a.v);
        let ln = log(w, a.v);
        let d = w.sub(psi, ln);
        let half = w.f(-0.5, a.v);
        let part = w.div(half, a.v);
        w.add(d, part)
    });
    let decay = a.mul(w, phi).add(w, correction).neg(w);
    let large = w.cmp_c(Cmp::Ge, a.v, TEMME_FROM);
    let exponent = Dual::select(w, large, decay, exponent);
    let front = exp_dual(w, exponent);
    let circle = a.scale(w, 2.0 * PI);
    let circle = root(w, circle);
    let scaled = front.div(w, circle);
    let front = Dual::select(w, large, scaled, front);
    let sum = series(w, a, x, steps.series);
    let from_series = front.mul(w, sum);
    let rest = fraction(w, a, x, steps.fraction);
    let from_fraction = front.mul(w, a).mul(w, rest);
    let from_alternating = alternating(w, a, x, power, steps.alternating);
    let right = w.cmp_c(Cmp::Ge, mu.v, 0.0);
    let from_temme = uniform(w, a, phi, mu, right, steps);
    let (above, under) = (w.cmp_c(Cmp::Gt, mu.v, -0.6), w.cmp_c(Cmp::Lt, mu.v, 1.0));
    let between = w.both(above, under);
    let temme = w.both(between, large);
    let (below_a, below_2) = (w.cmp(Cmp::Lt, x, a.v), w.cmp_c(Cmp::Lt, x, 2.0));
    let left = w.either(below_a, below_2);
    let minor_a = w.cmp_c(Cmp::Lt, a.v, 1.0);
    let minor = w.both(minor_a, below_2);
    // The one that is computed, the other is what is missing to 1.
    let one = Dual::constant(one);
    let small_lower = Dual::select(w, temme, from_temme, from_series);
    let small_upper = Dual::select(w, temme, from_temme, from_fraction);
    let not_right = w.not(right);
    let temme_left = w.both(temme, not_right);
    let not_temme = w.not(temme);
    let series_left = w.both(not_temme, left);
    let is_lower = w.either(temme_left, series_left);
    let missing = one.sub(w, small_upper);
    let lower = Dual::select(w, is_lower, small_lower, missing);
    let missing = one.sub(w, small_lower);
    let upper = Dual::select(w, is_lower, missing, small_upper);
    let upper = Dual::select(w, minor, from_alternating, upper);
    let quotient = w.div(a.v, x);
    let density = w.mul(front.v, quotient);
    Parts { lower, upper, density }
}

/// Values at the ends: NaN outside of a ≥ 0 and x ≥ 0 and where both are 0 or ∞; `at_zero` where x is 0 or a infinite,
/// `far` where x is infinite or a is 0.
fn ends(w: &mut Writer, a: Val, x: Val, y: Val, at_zero: f64, far: f64) -> Val {
    let (zero_v, far_v, nan) = (w.f(at_zero, x), w.f(far, x), w.f(f64::NAN, x));
    let (x_zero, a_zero) = (w.cmp_c(Cmp::Eq, x, 0.0), w.cmp_c(Cmp::Eq, a, 0.0));
    let (x_endless, a_endless) = (w.cmp_c(Cmp::Eq, x, f64::INFINITY), w.cmp_c(Cmp::Eq, a, f64::INFINITY));
    let low = w.either(x_zero, a_endless);
    let high = w.either(x_endless, a_zero);
    let y = w.select(low, zero_v, y);
    let y = w.select(high, far_v, y);
    let both = w.both(low, high);
    let (a_inside, x_inside) = (w.cmp_c(Cmp::Ge, a, 0.0), w.cmp_c(Cmp::Ge, x, 0.0));
    let inside = w.both(a_inside, x_inside);
    let y = w.select(inside, y, nan);
    w.select(both, nan, y)
}

/// The regularised lower incomplete gamma function.
pub fn gammainc(w: &mut Writer, a: Val, x: Val, steps: Steps) -> Val {
    let y = parts(w, a, x, steps, false).lower.v;
    ends(w, a, x, y, 0.0, 1.0)
}

/// The regularised upper incomplete gamma function.
pub fn gammaincc(w: &mut Writer, a: Val, x: Val, steps: Steps) -> Val {
    let y = parts(w, a, x, steps, false).upper.v;
    ends(w, a, x, y, 1.0, 0.0)
}

/// The derivative of the lower function by `x`: the density of the gamma distribution.
pub fn gammainc_dx(w: &mut Writer, a: Val, x: Val, steps: Steps) -> Val {
    let y = parts(w, a, x, steps, false).density;
    // At 0 it is ∞, 1 or 0.
    let size = w.cmp_c(Cmp::Lt, a, 1.0);
    let (endless, one, zero) = (w.f(f64::INFINITY, x), w.f(1.0, x), w.f(0.0, x));
    let is_one = w.cmp_c(Cmp::Eq, a, 1.0);
    let start = w.select(is_one, one, zero);
    let start = w.select(size, endless, start);
    let x_zero = w.cmp_c(Cmp::Eq, x, 0.0);
    let a_inside = w.cmp_c(Cmp::Gt, a, 0.0);
    let at_start = w.both(x_zero, a_inside);
    let y = ends(w, a, x, y, 0.0, 0.0);
    w.select(at_start, start, y)
}

/// The derivative of the lower function by `a`.
pub fn gammainc_da(w: &mut Writer, a: Val, x: Val, steps: Steps) -> Val {
    let zero = w.f(0.0, x);
    let y = parts(w, a, x, steps, true).lower.d.unwrap_or(zero);
    // Never positive, and not 0 where it is too small for a number.
    let y = w.abs(y);
    let y = w.neg(y);
    let (x_zero, x_endless) = (w.cmp_c(Cmp::Eq, x, 0.0), w.cmp_c(Cmp::Eq, x, f64::INFINITY));
    let flat = w.either(x_zero, x_endless);
    let y = w.select(flat, zero, y);
    let (a_inside, x_inside) = (w.cmp_c(Cmp::Gt, a, 0.0), w.cmp_c(Cmp::Ge, x, 0.0));
    let inside = w.both(a_inside, x_inside);
    let nan = w.f(f64::NAN, x);
    w.select(inside, y, nan)
}
