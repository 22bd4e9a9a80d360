//! Arithmetic of host scalars that is more than one instruction.

use crate::fault::Fault;
use crate::number::float_repr;
use tessera_abi::layout::int_fault;

/// The largest integer not above `a / b`, as a float.
pub fn float_floordiv(a: f64, b: f64) -> Result<f64, Fault> {
    if b == 0.0 {
        return Err(Fault::new(702, format!("{} // {} divides by zero", float_repr(a), float_repr(b))));
    }
    let rem = a % b;
    let mut quotient = (a - rem) / b;
    if rem != 0.0 && (rem < 0.0) != (b < 0.0) {
        quotient -= 1.0;
    }
    if quotient == 0.0 {
        return Ok(0.0f64.copysign(a / b));
    }
    let floor = quotient.floor();
    Ok(if quotient - floor > 0.5 { floor + 1.0 } else { floor })
}

/// The remainder that goes with [`float_floordiv`]: it has the divisor's sign.
pub fn float_mod(a: f64, b: f64) -> Result<f64, Fault> {
    if b == 0.0 {
        return Err(Fault::new(702, format!("{} % {} divides by zero", float_repr(a), float_repr(b))));
    }
    let rem = a % b;
    if rem == 0.0 {
        return Ok(0.0f64.copysign(b));
    }
    Ok(if (rem < 0.0) != (b < 0.0) { rem + b } else { rem })
}

pub fn int_pow(base: i64, exponent: i64) -> Result<i64, Fault> {
    if exponent < 0 {
        return Err(Fault::new(711, format!("{base} ** {exponent}: the exponent of an int power is negative"))
            .note("a float base gives a float: `float(x) ** n`"));
    }
    match base {
        0 => return Ok(i64::from(exponent == 0)),
        1 => return Ok(1),
        -1 => return Ok(if exponent % 2 == 0 { 1 } else { -1 }),
        _ => {}
    }
    u32::try_from(exponent)
        .ok()
        .and_then(|e| base.checked_pow(e))
        .ok_or_else(|| overflow(format!("{base} ** {exponent}")))
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

// SAFETY: the C library that the standard library links has this function.
unsafe extern "C" {
    safe fn erf(x: f64) -> f64;
}

/// The functions of `math` by the numbers of the row `math` in `abi::rt`. Outside of the domain
/// of a function they fail as Python's do; beyond the range of floats they give infinity.
pub fn function(number: i64, x: f64) -> Result<f64, Fault> {
    let (name, y) = match number {
        0 => ("sqrt", x.sqrt()),
        1 => ("exp", x.exp()),
        2 => ("log", if x == 0.0 { f64::NAN } else { x.ln() }),
        3 => ("sin", x.sin()),
        4 => ("cos", x.cos()),
        5 => ("tan", x.tan()),
        6 => ("floor", x.floor()),
        7 => ("ceil", x.ceil()),
        8 => ("tanh", x.tanh()),
        9 => ("log2", if x == 0.0 { f64::NAN } else { x.log2() }),
        10 => ("log10", if x == 0.0 { f64::NAN } else { x.log10() }),
        11 => ("trunc", x.trunc()),
        12 => ("expm1", x.exp_m1()),
        13 => ("log1p", if x == -1.0 { f64::NAN } else { x.ln_1p() }),
        14 => ("asin", x.asin()),
        15 => ("acos", x.acos()),
        16 => ("atan", x.atan()),
        17 => ("sinh", x.sinh()),
        18 => ("cosh", x.cosh()),
        _ => ("erf", erf(x)),
    };
    if y.is_nan() && !x.is_nan() { Err(outside(name, &[x])) } else { Ok(y) }
}

/// By the numbers of the row `math2`: 0 atan2 1 pow 2 hypot.
pub fn function2(number: i64, x: f64, y: f64) -> Result<f64, Fault> {
    let (name, z) = match number {
        0 => ("atan2", x.atan2(y)),
        1 => ("pow", if x == 0.0 && y < 0.0 { f64::NAN } else { x.powf(y) }),
        _ => ("hypot", x.hypot(y)),
    };
    if z.is_nan() && !x.is_nan() && !y.is_nan() { Err(outside(name, &[x, y])) } else { Ok(z) }
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
    fn float_division_floors_and_the_remainder_fits() {
        let values = [-7.5, -3.0, -2.0, -1.0, -0.3, 0.3, 1.0, 2.0, 2.5, 7.5, 1e17, -1e17];
        for a in values {
            for b in values {
                let (Ok(q), Ok(r)) = (float_floordiv(a, b), float_mod(a, b)) else { panic!("{a} {b}") };
                assert_eq!(q, q.floor());
                assert!(r == 0.0 || (r < 0.0) == (b < 0.0), "{a} % {b} = {r}");
                assert!(r.abs() <= b.abs());
                assert!((q * b + r - a).abs() <= 1e-9 * a.abs().max(b.abs()), "{a} {b}");
            }
        }
        assert_eq!(float_floordiv(-7.5, 2.0), Ok(-4.0));
        assert_eq!(float_floordiv(1.0, 0.1), Ok(9.0));
        assert_eq!(float_mod(1.0, 0.1), Ok(0.09999999999999995));
        assert!(float_mod(1.0, 0.0).is_err());
    }

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
