//! Large F64 angles in quarter turns (Payne and Hanek, SIGNUM Newsletter 18, 1983).
//!
//! A number of at least 2^(52 + 64 j) is a multiple of 2^(64 j), so that of `2^(64 j) · 2/π` whole turns drop out. What is
//! left of it has five parts, and its product with `y = a · 2^(−64 j) < 2^116` is summed in parts that fused multiply-adds
//! find exactly: the rest of the turn has 104 bits, also next to a multiple of π/2, to which no F64 number is closer
//! than 2⁻⁶¹.

use super::super::exact_sum;
use super::{PI_2, SHIFT};
use crate::scalar::{Cmp, FloatFn, IntOp, Kind, Val, Writer};

/// `2^(64 j) · 2/π` modulo 4 in five parts, the first a multiple of 2⁻⁴⁸, so that its
/// products modulo 4 add up exactly.
#[allow(clippy::approx_constant, reason = "2/π cut off after 48 bits, which the other parts continue")]
const TURNS: [[f64; 5]; 16] = [
    [0.636619772367581, 2.93709554037182e-16, 1.018166438749971e-32, -5.231564872517199e-49, 3.486171780167525e-65],
    [1.984975327262152, -4.752677758167039e-16, 1.3012258124024898e-32, -8.8913579198222e-50, 2.1609464111766477e-66],
    [
        0.8569730280980963,
        -1.5507347234988054e-15,
        -6.244422970508283e-32,
        -3.928151606173785e-48,
        -1.6223925440043668e-64,
    ],
    [
        1.993429402790511,
        -8.134923182324948e-16,
        1.4988305361526966e-32,
        -1.342212628403154e-48,
        -4.6413591748520875e-65,
    ],
    [
        1.7153996364816564,
        -6.262338437424338e-16,
        -8.941947344756026e-33,
        4.7351423446781815e-49,
        -1.9392377198557686e-65,
    ],
    [
        0.024554187906524305,
        -1.524984964478034e-15,
        5.732594105520941e-32,
        3.5460411711076654e-48,
        -1.5049345119192246e-64,
    ],
    [
        0.9926440186547225,
        -1.2317128525420143e-15,
        -6.254117508357786e-32,
        4.587461237865535e-48,
        2.1103576572042334e-64,
    ],
    [
        -1.091763141289693,
        9.508947743415205e-16,
        1.8391318014828517e-32,
        1.0352288668475901e-48,
        -4.3122458048192684e-66,
    ],
    [
        0.9125433058255759,
        1.7521371116980839e-15,
        -3.327498715569919e-32,
        2.5604371496035368e-48,
        -7.596946508940936e-65,
    ],
    [1.2248815431988298, 8.042943153312563e-16, -1.3178845532633915e-33, 8.024134531623681e-50, -4.326725117376295e-66],
    [0.6113948551337423, 5.583166788586805e-16, 1.0773638893758395e-33, 6.960073770410215e-50, -1.8117453546825105e-66],
    [
        -0.8751130104373956,
        -1.4424261312305632e-15,
        -9.65995883678114e-32,
        -5.7787012694750965e-49,
        -5.689230429519203e-66,
    ],
    [
        -0.0656880411897518,
        1.5143825111444367e-15,
        -1.0200119159100574e-32,
        4.232982209733066e-49,
        2.640663522801213e-65,
    ],
    [
        -0.5733872169732486,
        1.3483732715678284e-16,
        -6.179393194508596e-33,
        -5.372733898199806e-50,
        -3.137868789905974e-67,
    ],
    [
        -0.6903343557802373,
        -3.028470683065528e-16,
        -5.018340436092126e-33,
        -3.145241241588026e-49,
        -2.9257012333661906e-66,
    ],
    [
        1.4576374757852122,
        -2.0148605052641974e-16,
        -8.748750648273467e-33,
        -5.998961569215423e-49,
        2.6330266571067805e-66,
    ],
];

/// What an angle is beyond `quadrant` quarter turns: `rest + low`, at most π/4.
pub(super) struct Reduced {
    pub rest: Val,
    pub low: Val,
    /// In the low bits of an I64.
    pub quadrant: Val,
}

/// For 2⁵⁰ ≤ a; NaN of an infinity.
pub(super) fn reduce(w: &mut Writer, a: Val) -> Reduced {
    // The part of 2/π, by the four bits of its number.
    let bits = w.to_bits(a);
    let exponent = w.int_c(IntOp::Shr, bits, 52);
    let above = w.int_c(IntOp::Sub, exponent, 1023 + 52);
    let number = w.int_c(IntOp::Shr, above, 6);
    let zero = w.i(0, Kind::I64);
    let number = w.int(IntOp::Max, number, zero);
    let digits = [1, 2, 4, 8].map(|bit| {
        let set = w.int_c(IntOp::And, number, bit);
        w.cmp(Cmp::Ne, set, zero)
    });
    let parts: [Val; 5] = std::array::from_fn(|i| {
        let mut of: Vec<Val> = TURNS.iter().map(|parts| w.f(parts[i], a)).collect();
        for digit in digits {
            of = of.chunks_exact(2).map(|pair| w.select(digit, pair[1], pair[0])).collect();
        }
        of[0]
    });
    let down = w.int_c(IntOp::Shl, number, 6);
    let bias = w.i(1023, Kind::I64);
    let biased = w.int(IntOp::Sub, bias, down);
    let scale = w.int_c(IntOp::Shl, biased, 52);
    let scale = w.bits(scale, Kind::F64);
    let y = w.mul(a, scale);
    let products = parts.map(|part| {
        let high = w.mul(y, part);
        let minus = w.neg(high);
        (high, w.fma(y, part, minus))
    });
    let [(h0, l0), (h1, l1), (h2, l2), (h3, l3), (h4, _)] = products;
    let [h0, l0, h1, l1, h2] = [h0, l0, h1, l1, h2].map(|v| modulo_4(w, v));
    // The first sum is exact.
    let s = w.add(h0, l0);
    let (s, e1) = exact_sum(w, s, h1);
    let (s, e2) = exact_sum(w, s, l1);
    let (s, e3) = exact_sum(w, s, h2);
    let n = w.float_fn(FloatFn::Round, s);
    let s = w.sub(s, n);
    let mut u = e1;
    let mut v = w.add(l3, h4);
    for term in [e2, e3, l2, h3] {
        let (sum, error) = exact_sum(w, u, term);
        (u, v) = (sum, w.add(v, error));
    }
    let (r, r_low) = exact_sum(w, s, u);
    let r_low = w.add(r_low, v);
    let (r, r_low) = exact_sum(w, r, r_low);
    // From quarter turns to radians.
    let x = w.mul_c(r, PI_2[0]);
    let minus = w.neg(x);
    let low = w.fma_c(r, PI_2[0], minus);
    let low = w.fma_c(r, PI_2[1], low);
    let low = w.fma_c(r_low, PI_2[0], low);
    let rest = w.add(x, low);
    let lost = w.sub(x, rest);
    let low = w.add(lost, low);
    let quadrant = w.add_c(n, SHIFT);
    Reduced { rest, low, quadrant: w.to_bits(quadrant) }
}

/// `v − 4 n` for the nearest `n`, exactly.
fn modulo_4(w: &mut Writer, v: Val) -> Val {
    let quarter = w.mul_c(v, 0.25);
    let n = w.float_fn(FloatFn::Round, quarter);
    w.fma_c(n, -4.0, v)
}
