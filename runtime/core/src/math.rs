//! Arithmetic of host scalars that is more than one instruction.

use crate::fault::Fault;
use crate::number::float_repr;
use std::sync::OnceLock;
use tessera_abi::check::{self, Check, Function};
use tessera_abi::layout::int_fault;

/// Evaluates a function of floats; the second operand counts for those of two.
pub type Evaluator = fn(Function, f64, f64) -> f64;

/// The operators' scalar programs, which the runtime does not know itself.
static EVALUATOR: OnceLock<Evaluator> = OnceLock::new();

/// Says how functions of floats are computed, so that host code has the bits of operators. To be called before a
/// program runs; the first call counts.
pub fn define(evaluator: Evaluator) {
    let _ = EVALUATOR.set(evaluator);
}

/// The value of a function of floats.
///
/// # Panics
/// Before [`define`]: whoever runs programs calls it first.
fn value(function: Function, x: f64, y: f64) -> f64 {
    let Some(evaluator) = EVALUATOR.get() else {
        panic!("functions of floats are asked for before `math::define` said how they are computed");
    };
    evaluator(function, x, y)
}

/// `a ** b` of floats.
pub fn float_pow(a: f64, b: f64) -> f64 {
    value(Function::Pow, a, b)
}

/// The largest integer not above `a / b`, as a float.
pub fn float_floordiv(a: f64, b: f64) -> Result<f64, Fault> {
    if b == 0.0 {
        return Err(refused(Check::FloatFloorDiv, [a, b].map(f64::to_bits)));
    }
    Ok(value(Function::FloorDiv, a, b))
}

/// The remainder that goes with [`float_floordiv`]: it has the divisor's sign.
pub fn float_mod(a: f64, b: f64) -> Result<f64, Fault> {
    if b == 0.0 {
        return Err(refused(Check::FloatMod, [a, b].map(f64::to_bits)));
    }
    Ok(value(Function::Mod, a, b))
}

pub fn int_pow(base: i64, exponent: i64) -> Result<i64, Fault> {
    check::int_pow(base, exponent).ok_or_else(|| refused(Check::Pow, [base as u64, exponent as u64]))
}

/// What host code says of operands that a check refuses.
pub fn refused(check: Check, operands: [u64; 2]) -> Fault {
    let [a, b] = operands.map(|w| w as i64);
    let [x, y] = operands.map(f64::from_bits);
    match check {
        Check::Add => int_fault(int_fault::ADD, a, b),
        Check::Sub => int_fault(int_fault::SUB, a, b),
        Check::Mul => int_fault(int_fault::MUL, a, b),
        Check::FloorDiv if b == 0 => int_fault(int_fault::DIV_ZERO, a, b),
        Check::FloorDiv => int_fault(int_fault::FLOOR_DIV, a, b),
        Check::Mod => int_fault(int_fault::MOD_ZERO, a, b),
        Check::Pow if b < 0 => Fault::new(711, format!("{a} ** {b}: the exponent of an int power is negative"))
            .note("a float base gives a float: `float(x) ** n`"),
        Check::Pow => overflow(format!("{a} ** {b}")),
        Check::Shl if b >= 0 => int_fault(int_fault::SHL, a, b),
        Check::Shl | Check::Shr => int_fault(int_fault::SHIFT_NEGATIVE, a, b),
        Check::Neg => int_fault(int_fault::NEG, a, 0),
        Check::Position => Fault::new(703, format!("index {a} is out of range for {b} elements")),
        Check::Range => Fault::new(711, check::range_refused(a, b).unwrap_or_default()),
        Check::Value => {
            let (name, least) = check::narrow(b);
            Fault::new(711, format!("{a} is not a value of {name}, whose values are {least} to {b}"))
        }
        Check::IntTrueDiv => int_fault(int_fault::TRUE_DIV_ZERO, x as i64, y as i64),
        Check::FloatFloorDiv => Fault::new(702, format!("{} // {} divides by zero", float_repr(x), float_repr(y))),
        Check::FloatMod => Fault::new(702, format!("{} % {} divides by zero", float_repr(x), float_repr(y))),
        Check::MathPow => outside("pow", &[x, y]),
        Check::ToInt | Check::Round => to_int_fault(x),
        Check::Sqrt | Check::Log | Check::Log2 | Check::Log10 | Check::Log1p => outside(check.name(), &[x]),
        Check::Sin | Check::Cos | Check::Tan | Check::Asin | Check::Acos => outside(check.name(), &[x]),
    }
}

fn overflow(what: String) -> Fault {
    Fault::new(701, format!("{what} does not fit 64 bits"))
}

/// The message of a fault that compiled code found (`abi::layout::int_fault`).
pub fn int_fault(number: i64, a: i64, b: i64) -> Fault {
    let zero = |op: &str| Fault::new(702, format!("{a} {op} {b} divides by zero"));
    match number {
        int_fault::ADD => overflow(format!("{a} + {b}")),
        int_fault::SUB => overflow(format!("{a} - {b}")),
        int_fault::MUL => overflow(format!("{a} * {b}")),
        int_fault::NEG => overflow(format!("-({a})")),
        int_fault::FLOOR_DIV => overflow(format!("{a} // {b}")),
        int_fault::SHL => overflow(format!("{a} << {b}")),
        int_fault::DIV_ZERO => zero("//"),
        int_fault::MOD_ZERO => zero("%"),
        int_fault::TRUE_DIV_ZERO => zero("/"),
        int_fault::SHIFT_NEGATIVE => Fault::new(711, format!("a shift by {b} bits: the number is negative")),
        int_fault::STEP_ZERO => Fault::new(711, "the step of `range` is 0"),
        _ => Fault::new(711, format!("{a} and {b} are outside the domain of the operation")),
    }
}

/// `int(x)` or `round(x)` of a float that has no int.
pub fn to_int_fault(x: f64) -> Fault {
    if x.is_finite() { overflow(float_repr(x)) } else { Fault::new(711, format!("{} is not an int", float_repr(x))) }
}

/// `round(x)`, ties to even.
pub fn round_int(x: f64) -> Result<i64, Fault> {
    let rounded = x.round_ties_even();
    const LIMIT: f64 = 9223372036854775808.0;
    if (-LIMIT..LIMIT).contains(&rounded) { Ok(rounded as i64) } else { Err(to_int_fault(x)) }
}

/// What a function of `math` asks of its operand, by its number in the row `math` of `abi::rt`.
pub fn check_of(number: i64) -> Option<Check> {
    Some(match number {
        0 => Check::Sqrt,
        2 => Check::Log,
        3 => Check::Sin,
        4 => Check::Cos,
        5 => Check::Tan,
        9 => Check::Log2,
        10 => Check::Log10,
        13 => Check::Log1p,
        14 => Check::Asin,
        15 => Check::Acos,
        _ => return None,
    })
}

/// The functions of `math` by the numbers of the row `math` in `abi::rt`. Outside of the domain
/// of a function they fail as Python's do; beyond the range of floats they give infinity.
pub fn function(number: i64, x: f64) -> Result<f64, Fault> {
    let operands = [x.to_bits(); 2];
    if let Some(check) = check_of(number).filter(|c| !c.holds(operands[0], operands[1])) {
        return Err(refused(check, operands));
    }
    Ok(Function::of_one(number).map_or(f64::NAN, |f| value(f, x, x)))
}

/// What a function of two operands asks of them, by its number in the row `math2`.
pub fn check_of_two(number: i64) -> Option<Check> {
    (number == 1).then_some(Check::MathPow)
}

/// By the numbers of the row `math2`: 0 atan2 1 pow 2 hypot.
pub fn function2(number: i64, x: f64, y: f64) -> Result<f64, Fault> {
    let operands = [x, y].map(f64::to_bits);
    if let Some(check) = check_of_two(number).filter(|c| !c.holds(operands[0], operands[1])) {
        return Err(refused(check, operands));
    }
    Ok(Function::of_two(number).map_or(f64::NAN, |f| value(f, x, y)))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers() {
        assert_eq!(int_pow(-3, 3), Ok(-27));
        assert_eq!(int_pow(0, 0), Ok(1));
        assert_eq!(int_pow(-1, i64::MAX), Ok(-1));
        assert_eq!(int_pow(2, 62), Ok(1 << 62));
        assert_eq!(int_pow(-2, 63), Ok(i64::MIN));
        assert_eq!(int_pow(2, 63).map_err(|f| f.code), Err(701));
        assert_eq!(int_pow(2, -1).map_err(|f| f.code), Err(711));
        assert_eq!(round_int(2.5), Ok(2));
        assert_eq!(round_int(-0.5), Ok(0));
        assert!(round_int(9.3e18).is_err() && round_int(f64::NAN).is_err());
    }
}
