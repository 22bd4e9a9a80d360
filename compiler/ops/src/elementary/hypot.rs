//! The hypotenuse.

use crate::scalar::{Cmp, Kind, Val, Writer};

/// `√(a² + b²)` without overflow or underflow on the way; infinite if either is, even with NaN.
pub fn hypot(w: &mut Writer, a: Val, b: Val) -> Val {
    let kind = w.kind(a);
    let (a, b) = (w.abs(a), w.abs(b));
    let infinite_a = w.cmp_c(Cmp::Eq, a, f64::INFINITY);
    let infinite_b = w.cmp_c(Cmp::Eq, b, f64::INFINITY);
    let infinite = w.either(infinite_a, infinite_b);
    let y = if kind == Kind::F32 {
        let (a, b) = (w.convert(a, Kind::F64), w.convert(b, Kind::F64));
        let bb = w.mul(b, b);
        let sum = w.fma(a, a, bb);
        let root = w.sqrt(sum);
        w.convert(root, kind)
    } else {
        hypot_f64(w, a, b)
    };
    let endless = w.f(f64::INFINITY, y);
    w.select(infinite, endless, y)
}

fn hypot_f64(w: &mut Writer, a: Val, b: Val) -> Val {
    // One power of two brings the squares of the larger operand into range.
    let more = w.cmp(Cmp::Gt, a, b);
    let larger = w.select(more, a, b);
    let huge = w.cmp_c(Cmp::Gt, larger, 2f64.powi(500));
    let small = w.cmp_c(Cmp::Lt, larger, 2f64.powi(-450));
    let pick = |w: &mut Writer, down: f64, up: f64| {
        let (down, up, one) = (w.f(down, a), w.f(up, a), w.f(1.0, a));
        let factor = w.select(small, up, one);
        w.select(huge, down, factor)
    };
    let factor = pick(w, 2f64.powi(-600), 2f64.powi(600));
    let back = pick(w, 2f64.powi(600), 2f64.powi(-600));
    let (a, b) = (w.mul(a, factor), w.mul(b, factor));
    let y = root_of_squares(w, a, b);
    w.mul(y, back)
}

/// `√(a² + b²)` for squares in range: the rounding errors of the squares and of their sum are
/// folded into the root by one Newton step.
fn root_of_squares(w: &mut Writer, a: Val, b: Val) -> Val {
    let bb = w.mul(b, b);
    let bb_minus = w.neg(bb);
    let bb_low = w.fma(b, b, bb_minus);
    let aa = w.mul(a, a);
    let aa_minus = w.neg(aa);
    let aa_low = w.fma(a, a, aa_minus);
    let sum = w.add(aa, bb);
    let part = w.sub(sum, aa);
    let other = w.sub(sum, part);
    let other = w.sub(aa, other);
    let part = w.sub(bb, part);
    let lost = w.add(other, part);
    let lows = w.add(aa_low, bb_low);
    let lost = w.add(lost, lows);
    let root = w.sqrt(sum);
    let minus = w.neg(root);
    let rest = w.fma(minus, root, sum);
    let rest = w.add(rest, lost);
    let twice = w.add(root, root);
    let step = w.div(rest, twice);
    let better = w.add(root, step);
    let zero = w.cmp_c(Cmp::Eq, root, 0.0);
    w.select(zero, root, better)
}
