//! Arithmetic of host scalars: what stops it, and what is no row of the compiler's table of operations.

use crate::fault::Fault;
use crate::number::float_repr;
use std::sync::OnceLock;
use tessera_abi::check::{self, Check};

/// Applies an operation by its place in the compiler's table to two words; gives the check that does not hold.
pub type Evaluator = fn(i64, u64, u64) -> Result<u64, Check>;

/// The compiler's table of operations on numbers, which the runtime does not know itself.
static EVALUATOR: OnceLock<Evaluator> = OnceLock::new();

/// Says how operations on numbers are computed, so that host code has the bits of graphs. To be called before a
/// program runs; the first call counts.
pub fn define(evaluator: Evaluator) {
    let _ = EVALUATOR.set(evaluator);
}

/// An operation on numbers of host code, by its place in the table.
///
/// # Errors
/// Why it has no value for these operands.
///
/// # Panics
/// Before [`define`]: whoever runs programs calls it first.
pub fn apply(number: i64, a: u64, b: u64) -> Result<u64, Fault> {
    let Some(evaluator) = EVALUATOR.get() else {
        panic!("an operation on numbers is asked for before `math::define` said how they are computed");
    };
    evaluator(number, a, b).map_err(|check| refused(check, [a, b]))
}

/// What host code says of operands that a check refuses.
pub fn refused(check: Check, operands: [u64; 2]) -> Fault {
    let [a, b] = operands.map(|w| w as i64);
    let [x, y] = operands.map(f64::from_bits);
    match check {
        Check::Add => overflow(format!("{a} + {b}")),
        Check::Sub => overflow(format!("{a} - {b}")),
        Check::Mul => overflow(format!("{a} * {b}")),
        Check::FloorDiv if b == 0 => zero(a, "//", b),
        Check::FloorDiv => overflow(format!("{a} // {b}")),
        Check::Mod => zero(a, "%", b),
        Check::Pow if b < 0 => Fault::new(711, format!("{a} ** {b}: the exponent of an int power is negative"))
            .note("a float base gives a float: `float(x) ** n`"),
        Check::Pow => overflow(format!("{a} ** {b}")),
        Check::Shl if b >= 0 => overflow(format!("{a} << {b}")),
        Check::Shl | Check::Shr => Fault::new(711, format!("a shift by {b} bits: the number is negative")),
        Check::Neg => overflow(format!("-({a})")),
        Check::Position => Fault::new(703, format!("index {a} is out of range for {b} elements")),
        Check::Range => Fault::new(711, check::range_refused(a, b).unwrap_or_default()),
        Check::Steps => Fault::new(711, format!("the loop goes on after `max_steps` = {b} steps"))
            .note("allow more steps, or let the condition say how many there are at most"),
        Check::Holds => Fault::new(705, "assertion failed"),
        Check::Value => {
            let (name, least) = check::narrow(b);
            Fault::new(711, format!("{a} is not a value of {name}, whose values are {least} to {b}"))
        }
        Check::IntTrueDiv => zero(x as i64, "/", y as i64),
        Check::FloatFloorDiv => zero(float_repr(x), "//", float_repr(y)),
        Check::FloatMod => zero(float_repr(x), "%", float_repr(y)),
        Check::MathPow => outside("pow", &[x, y]),
        Check::ToInt | Check::Round => to_int_fault(x),
        Check::Sqrt | Check::Log | Check::Log2 | Check::Log10 | Check::Log1p => outside(check.name(), &[x]),
        Check::Sin | Check::Cos | Check::Tan | Check::Asin | Check::Acos => outside(check.name(), &[x]),
    }
}

fn overflow(what: String) -> Fault {
    Fault::new(701, format!("{what} does not fit 64 bits"))
}

fn zero(a: impl std::fmt::Display, op: &str, b: impl std::fmt::Display) -> Fault {
    Fault::new(702, format!("{a} {op} {b} divides by zero"))
}

/// A `range` that does not go on.
pub fn step_zero() -> Fault {
    Fault::new(711, "the step of `range` is 0")
}

/// `int(x)` or `round(x)` of a float that has no int.
fn to_int_fault(x: f64) -> Fault {
    if x.is_finite() { overflow(float_repr(x)) } else { Fault::new(711, format!("{} is not an int", float_repr(x))) }
}

fn outside(name: &str, x: &[f64]) -> Fault {
    let args: Vec<String> = x.iter().map(|x| float_repr(*x)).collect();
    Fault::new(711, format!("`{name}` has no value at {}", args.join(", ")))
}

/// The greatest common divisor; of two zeros 0.
///
/// # Errors
/// E0701 for 2^63, that of the least int and itself or 0.
pub fn gcd(a: i64, b: i64) -> Result<i64, Fault> {
    let (mut u, mut v) = (a.unsigned_abs(), b.unsigned_abs());
    while v != 0 {
        (u, v) = (v, u % v);
    }
    i64::try_from(u)
        .map_err(|_| Fault::new(701, format!("`math.gcd({a}, {b})` is 9223372036854775808, which is no int")))
}
