//! Elementary functions as instructions: range reductions and polynomials of our own.
//!
//! No table, no libm, no approximate instruction: only IEEE 754 operations of [`crate::scalar`],
//! so that every machine and every vector width gives the same bits. Polynomials are minimax
//! fits (Remez) whose coefficients were rounded one after the other and the rest refitted; the
//! figure beside each is the largest relative error of the fit as a power of two. Range
//! reductions are those of Cody and Waite with fused multiply-adds.
//!
//! Functions here take the operand in F32 or F64 and write code for its kind.

mod dual;
pub mod divide;
pub mod exp;
pub mod erf;
pub mod hypot;
pub mod log;
pub mod pow;
pub mod trig;
pub mod inverse;
pub mod bessel;
pub mod normal;
pub mod gamma;
pub mod gammainc;
pub mod betainc;

use crate::scalar::{Kind, Val, Writer};

/// `a` for F32, `b` for F64.
fn by_kind<T>(w: &Writer, x: Val, a: T, b: T) -> T {
    if w.kind(x) == Kind::F32 { a } else { b }
}

/// `a + b` rounded, and the error (Knuth).
fn exact_sum(w: &mut Writer, a: Val, b: Val) -> (Val, Val) {
    let sum = w.add(a, b);
    let part = w.sub(sum, a);
    let other = w.sub(sum, part);
    let (lost_a, lost_b) = (w.sub(a, other), w.sub(b, part));
    (sum, w.add(lost_a, lost_b))
}

/// What `f` writes for operands in F64; F32 operands are widened, and the result is rounded once.
pub fn in_f64(w: &mut Writer, x: &[Val], f: impl FnOnce(&mut Writer, &[Val]) -> Val) -> Val {
    let kind = w.kind(x[0]);
    let wide: Vec<Val> = x.iter().map(|&x| w.convert(x, Kind::F64)).collect();
    let y = f(w, &wide);
    w.convert(y, kind)
}
