//! Logarithms.

use super::by_kind;
use crate::scalar::{Cmp, IntOp, Kind, Val, Writer};

/// `(ln(1 + f) − f + f²/2) / f³` for √½ ≤ 1 + f ≤ √2, F32 (2⁻²⁷·² of the logarithm).
const LOG1P_F32: [f64; 8] =
    [0.33333316, -0.2500081, 0.20002311, -0.16624565, 0.1418063, -0.13127935, 0.12884495, -0.07864874];
/// `(2 atanh(s)/s − 2) / s²` in s² ≤ 0.0295, F64 (2⁻⁵⁹·⁵).
const ATANH_F64: [f64; 7] = [
    0.6666666666666735,
    0.3999999999940858,
    0.2857142874397125,
    0.22222198390902398,
    0.1818357471332936,
    0.15313763426352303,
    0.14799021532277148,
];
/// The same in F64 for results that are rounded to F32 (2⁻⁴⁴·⁹).
const ATANH_SHORT: [f64; 5] =
    [0.666666666758996, 0.3999999558429923, 0.28572113524157705, 0.22175991318291993, 0.19587193361990307];

/// ln 2 in two parts, the first short enough that its product with an exponent is exact.
pub(super) const LN2_F64: (f64, f64) = (0.693147180559663, 2.8235290563031577e-13);
const LN2_F32: (f64, f64) = (0.6931471824645996, -1.904654299957768e-09);

/// A logarithm's base: `1 / ln base` and `log_base 2`, each in two parts.
struct Base {
    inverse: (f64, f64),
    two: (f64, f64),
}

const TWO_F64: Base = Base { inverse: (std::f64::consts::LOG2_E, 2.0355273740931033e-17), two: (1.0, 0.0) };
const TEN_F64: Base = Base {
    inverse: (std::f64::consts::LOG10_E, 1.098319650216765e-17),
    two: (0.30102999566361177, 3.694239077158931e-13),
};

/// The bits of √½: subtracted before the exponent is cut off, so that the fraction lies
/// between √½ and √2 and the logarithm of a number near 1 has exponent 0.
fn root_half(w: &Writer, x: Val) -> i64 {
    by_kind(w, x, 0x3f35_04f3, 0x3fe6_a09e_667f_3bcd)
}

/// `(e, f)` with `x = 2^e (1 + f)`, √½ ≤ 1 + f < √2, both floats, for positive normal `x`; and
/// the exponent as an integer.
fn split(w: &mut Writer, x: Val) -> (Val, Val, Val) {
    let kind = w.kind(x);
    let (_, fraction) = super::exp::format(w, x);
    let root = root_half(w, x);
    let bits = w.to_bits(x);
    let offset = w.int_c(IntOp::Sub, bits, root);
    let exponent = w.int_c(IntOp::Shr, offset, fraction);
    let low = w.int_c(IntOp::And, offset, (1 << fraction) - 1);
    let bits = w.int_c(IntOp::Add, low, root);
    let m = w.bits(bits, kind);
    let f = w.add_c(m, -1.0);
    let e = if kind == Kind::F32 {
        w.convert(exponent, kind)
    } else {
        // Placed in the low bits of 1.5 · 2⁵², since not every machine converts 64-bit integers.
        const SHIFT: f64 = 6755399441055744.0;
        let sum = w.int_c(IntOp::Add, exponent, SHIFT.to_bits() as i64);
        let sum = w.bits(sum, kind);
        w.add_c(sum, -SHIFT)
    };
    (e, f, exponent)
}

/// [`split`] for subnormal numbers too.
pub(super) fn split_any(w: &mut Writer, x: Val) -> (Val, Val) {
    let (smallest, up, exponent) =
        by_kind(w, x, (2f64.powi(-126), 2f64.powi(24), 24.0), (2f64.powi(-1022), 2f64.powi(54), 54.0));
    let subnormal = w.cmp_c(Cmp::Lt, x, smallest);
    let scaled = w.mul_c(x, up);
    let x = w.select(subnormal, scaled, x);
    let (e, f, _) = split(w, x);
    let lower = w.add_c(e, -exponent);
    (w.select(subnormal, lower, e), f)
}

/// Replaces the result where the argument `u`, of which `y` is the logarithm plus anything, is
/// not positive and finite: −∞ at `zero`, NaN below, `x` itself if infinite or NaN.
fn special(w: &mut Writer, x: Val, zero: f64, y: Val) -> Val {
    let finite = w.cmp_c(Cmp::Lt, x, f64::INFINITY);
    let y = w.select(finite, y, x);
    let at_zero = w.cmp_c(Cmp::Eq, x, zero);
    let pole = w.f(f64::NEG_INFINITY, x);
    let nan = w.f(f64::NAN, x);
    let outside = w.select(at_zero, pole, nan);
    let inside = w.cmp_c(Cmp::Gt, x, zero);
    w.select(inside, y, outside)
}

/// `f² (f P(f) − ½)`, which is ln(1 + f) − f, as the two factors.
fn rest_f32(w: &mut Writer, f: Val) -> (Val, Val) {
    let p = w.horner(f, &LOG1P_F32);
    let minus_half = w.f(-0.5, f);
    let u = w.fma(f, p, minus_half);
    (w.mul(f, f), u)
}

/// `(f²/2, s (f²/2 + R))` with `ln(1 + f) = f − (first − second)` (fdlibm's arrangement).
fn rest_f64(w: &mut Writer, f: Val) -> (Val, Val) {
    let below = w.add_c(f, 2.0);
    let s = w.div(f, below);
    let z = w.mul(s, s);
    let p = w.horner(z, &ATANH_F64);
    let ff = w.mul(f, f);
    let half = w.mul_c(ff, 0.5);
    let sum = w.fma(z, p, half);
    (half, w.mul(s, sum))
}

/// `e ln 2 + ln(1 + f)`.
fn natural(w: &mut Writer, e: Val, f: Val) -> Val {
    if w.kind(f) == Kind::F32 {
        let (ff, u) = rest_f32(w, f);
        let y = w.fma(ff, u, f);
        let y = w.fma_c(e, LN2_F32.1, y);
        return w.fma_c(e, LN2_F32.0, y);
    }
    let (half, tail) = rest_f64(w, f);
    let tail = w.fma_c(e, LN2_F64.1, tail);
    let y = w.sub(half, tail);
    let y = w.sub(y, f);
    let whole = w.mul_c(e, LN2_F64.0);
    w.sub(whole, y)
}

/// `log_base` of `2^e (1 + f)` in F64.
fn with_base(w: &mut Writer, e: Val, f: Val, base: &Base) -> Val {
    let Base { inverse, two } = base;
    let (half, tail) = rest_f64(w, f);
    // ln(1 + f) = high + low.
    let high = w.sub(f, half);
    let low = w.sub(f, high);
    let low = w.sub(low, half);
    let low = w.add(low, tail);
    // Its product with 1 / ln base = p + q.
    let p = w.mul_c(high, inverse.0);
    let minus = w.neg(p);
    let q = w.fma_c(high, inverse.0, minus);
    let q = w.fma_c(high, inverse.1, q);
    let q = w.fma_c(low, inverse.0, q);
    let q = if two.1 == 0.0 { q } else { w.fma_c(e, two.1, q) };
    // |e log 2| is 0 or larger than p.
    let whole = w.mul_c(e, two.0);
    let sum = w.add(whole, p);
    let lost = w.sub(whole, sum);
    let lost = w.add(lost, p);
    let q = w.add(q, lost);
    w.add(sum, q)
}

/// The natural logarithm.
pub fn log(w: &mut Writer, x: Val) -> Val {
    let (e, f) = split_any(w, x);
    let y = natural(w, e, f);
    special(w, x, 0.0, y)
}

/// The logarithm to a base. That of an F32 number is rounded once, from F64: four roundings of what follows the first
/// term of the series are too many near 1.4.
fn log_of(w: &mut Writer, x: Val, base: &Base) -> Val {
    if w.kind(x) == Kind::F32 {
        let wide = w.convert(x, Kind::F64);
        let y = log_for_f32(w, wide, base);
        return w.convert(y, Kind::F32);
    }
    let (e, f) = split_any(w, x);
    let y = with_base(w, e, f, base);
    special(w, x, 0.0, y)
}

/// The logarithm to base 2; exact for powers of two.
pub fn log2(w: &mut Writer, x: Val) -> Val {
    log_of(w, x, &TWO_F64)
}

/// The logarithm to base 10.
pub fn log10(w: &mut Writer, x: Val) -> Val {
    log_of(w, x, &TEN_F64)
}

/// `ln(1 + x)` for −1 < x < ∞. `1 + f = 2^−e (1 + x)` is formed from `x` with one rounding, so
/// nothing of a small `x` is lost.
pub(super) fn log1p_parts(w: &mut Writer, x: Val) -> Val {
    let kind = w.kind(x);
    let (bias, fraction) = super::exp::format(w, x);
    let u = w.add_c(x, 1.0);
    let (e, plain, exponent) = split(w, u);
    let biased = w.i(bias, kind.of_bits());
    let biased = w.int(IntOp::Sub, biased, exponent);
    let bits = w.int_c(IntOp::Shl, biased, fraction);
    let inverse = w.bits(bits, kind);
    let less = w.add_c(inverse, -1.0);
    let exact = w.fma(x, inverse, less);
    // For large numbers 1 is lost anyway, and the inverse power may not be a normal number.
    let large = w.cmp_c(Cmp::Gt, x, 2f64.powi(60));
    let f = w.select(large, plain, exact);
    natural(w, e, f)
}

/// `ln(1 + x)`, accurate near 0.
pub fn log1p(w: &mut Writer, x: Val) -> Val {
    let y = log1p_parts(w, x);
    let y = special(w, x, -1.0, y);
    let tiny = by_kind(w, x, 2f64.powi(-25), 2f64.powi(-54));
    w.keep_tiny(x, tiny, y)
}

/// `ln(e^a + e^b)`: the larger of the two, and the logarithm of one plus e to minus their distance.
pub fn log_add_exp(w: &mut Writer, a: Val, b: Val) -> Val {
    let top = w.float(crate::scalar::FloatOp::Max, a, b);
    let distance = w.sub(a, b);
    let distance = w.abs(distance);
    // Two equal infinities have no distance.
    let equal = w.cmp(Cmp::Eq, a, b);
    let zero = w.f(0.0, a);
    let distance = w.select(equal, zero, distance);
    let minus = w.neg(distance);
    let z = super::exp::exp(w, minus);
    let rest = log1p_parts(w, z);
    w.add(top, rest)
}

/// `ln(p / (1 − p))` in F64, accurate at ½ too; −∞ at 0, ∞ at 1, NaN outside.
pub fn logit(w: &mut Writer, p: Val) -> Val {
    let one = w.f(1.0, p);
    let rest = w.sub(one, p);
    let odds = w.div(p, rest);
    let far = log(w, odds);
    // 2p − 1 is exact from ¼ on.
    let minus_one = w.f(-1.0, p);
    let above = w.fma_c(p, 2.0, minus_one);
    let above = w.div(above, rest);
    let near = log1p(w, above);
    let low = w.cmp_c(Cmp::Lt, p, 0.25);
    w.select(low, far, near)
}

/// `log2 x` in F64 for results that are rounded to F32, relative error 2⁻⁴⁴; `x` is positive
/// and finite, or what [`special`] replaces.
pub(super) fn log2_for_f32(w: &mut Writer, x: Val) -> Val {
    log_for_f32(w, x, &TWO_F64)
}

fn log_for_f32(w: &mut Writer, x: Val, base: &Base) -> Val {
    let (e, f, _) = split(w, x);
    let below = w.add_c(f, 2.0);
    let s = w.div(f, below);
    let z = w.mul(s, s);
    let p = w.horner(z, &ATANH_SHORT);
    let two = w.f(2.0, x);
    let p = w.fma(z, p, two);
    let log = w.mul(s, p);
    let whole = w.mul_c(e, base.two.0 + base.two.1);
    let y = w.fma_c(log, base.inverse.0, whole);
    special(w, x, 0.0, y)
}

/// `ln x` in F64 as a sum of two values with relative error 2⁻⁶⁴, for positive finite `x`.
pub(super) fn log_pair(w: &mut Writer, x: Val) -> (Val, Val) {
    /// `((2 atanh(s)/s − 2)/s² − 2/3) / s²` in s² (2⁻⁷³ of the logarithm).
    const Q: [f64; 8] = [
        0.39999999999999974,
        0.28571428571447044,
        0.2222222221707022,
        0.18181818927077587,
        0.15384553029167766,
        0.13336464043179547,
        0.11671865888803455,
        0.1201340895246641,
    ];
    const TWO_THIRDS: (f64, f64) = (0.6666666666666666, 3.700743415417188e-17);
    let (e, f) = split_any(w, x);
    // s = f / (2 + f) in two parts.
    let below = w.add_c(f, 2.0);
    let below_less = w.add_c(below, -2.0);
    let below_error = w.sub(f, below_less);
    let s = w.div(f, below);
    let minus_s = w.neg(s);
    let remainder = w.fma(minus_s, below, f);
    let remainder = w.fma(minus_s, below_error, remainder);
    let s_low = w.div(remainder, below);
    // z = s².
    let z = w.mul(s, s);
    let minus_z = w.neg(z);
    let z_low = w.fma(s, s, minus_z);
    let twice = w.add(s, s);
    let z_low = w.fma(twice, s_low, z_low);
    // v = 2/3 + z Q(z).
    let q = w.horner(z, &Q);
    let third = w.f(TWO_THIRDS.0, x);
    let v = w.fma(z, q, third);
    let v_low = w.sub(third, v);
    let v_low = w.fma(z, q, v_low);
    let v_low = w.add_c(v_low, TWO_THIRDS.1);
    let v_low = w.fma(z_low, q, v_low);
    // t = z v.
    let t = w.mul(z, v);
    let minus_t = w.neg(t);
    let t_low = w.fma(z, v, minus_t);
    let t_low = w.fma(z_low, v, t_low);
    let t_low = w.fma(z, v_low, t_low);
    // g = s t; ln(1 + f) = 2 s + g.
    let g = w.mul(s, t);
    let minus_g = w.neg(g);
    let g_low = w.fma(s, t, minus_g);
    let g_low = w.fma(s, t_low, g_low);
    let g_low = w.fma(s_low, t, g_low);
    let twice_low = w.add(s_low, s_low);
    // The sum e ln 2 + 2 s + g, largest first; each is 0 or larger than the next.
    let whole = w.mul_c(e, LN2_F64.0);
    let (a, a_low) = two_sum(w, whole, twice);
    let (b, b_low) = two_sum(w, a, g);
    let low = w.add(a_low, b_low);
    let rest = w.add(twice_low, g_low);
    let rest = w.fma_c(e, LN2_F64.1, rest);
    let low = w.add(low, rest);
    two_sum(w, b, low)
}

/// `a + b` rounded, and the error, for |a| ≥ |b| or a = 0.
fn two_sum(w: &mut Writer, a: Val, b: Val) -> (Val, Val) {
    let sum = w.add(a, b);
    let lost = w.sub(a, sum);
    (sum, w.add(lost, b))
}
