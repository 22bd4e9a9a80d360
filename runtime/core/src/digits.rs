//! Decimal digits of floats: the fewest that read back as the same value of their own type.

use half::{bf16, f16};
use tessera_base::DType;

/// A positive finite number as `0.d1 d2 d3… × 10^point`, without trailing zeros.
/// Zero has no digits and `point` 0.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Digits {
    pub digits: Vec<u8>,
    pub point: i32,
}

impl Digits {
    fn from_exponent_form(text: &str) -> Digits {
        let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
        let mut digits: Vec<u8> = mantissa.bytes().filter(u8::is_ascii_digit).map(|b| b - b'0').collect();
        while digits.last() == Some(&0) {
            digits.pop();
        }
        let point = if digits.is_empty() { 0 } else { exponent.parse::<i32>().unwrap_or(0) + 1 };
        Digits { digits, point }
    }

    /// How many digits stand after the decimal point.
    pub fn fraction_len(&self) -> usize {
        (self.digits.len() as i32 - self.point).max(0) as usize
    }
}

/// The fewest digits that identify `value` among the values of `dtype`. The sign is ignored.
pub fn shortest(value: f64, dtype: DType) -> Digits {
    let value = value.abs();
    let same: fn(f64, f64) -> bool = match dtype {
        DType::F64 => {
            return nearest(Digits::from_exponent_form(&format!("{value:e}")), value, |t| t.parse() == Ok(value));
        }
        DType::F32 | DType::Tf32 | DType::C64 => {
            let value = value as f32;
            return nearest(Digits::from_exponent_form(&format!("{value:e}")), value.into(), |t| {
                t.parse() == Ok(value)
            });
        }
        DType::Bf16 => |a, b| bf16::from_f64(a).to_bits() == bf16::from_f64(b).to_bits(),
        DType::F16 => |a, b| f16::from_f64(a).to_bits() == f16::from_f64(b).to_bits(),
        // Steps are one part in 8 (e4m3) or 4 (e5m2) of a binade, less below the normal range.
        DType::F8E4M3 => |a, b| (a - b).abs() < 0.5 * (fp8_step(b, 3, -6)),
        DType::F8E5M2 => |a, b| (a - b).abs() < 0.5 * (fp8_step(b, 2, -14)),
        _ => return Digits::from_exponent_form(&format!("{value:e}")),
    };
    (0..17)
        .map(|precision| format!("{value:.precision$e}"))
        .find(|text| text.parse::<f64>().is_ok_and(|back| same(back, value)))
        .map_or_else(|| Digits::from_exponent_form(&format!("{value:e}")), |text| Digits::from_exponent_form(&text))
}

/// Of two shortest forms that are equally near, the one with the even last digit, as Python and
/// NumPy choose.
fn nearest(found: Digits, value: f64, reads_back: impl Fn(&str) -> bool) -> Digits {
    if found.digits.last().is_none_or(|d| d % 2 == 0) {
        return found;
    }
    let text = format!("{value:.*e}", found.digits.len() - 1);
    if reads_back(&text) { Digits::from_exponent_form(&text) } else { found }
}

/// The distance between neighbours around `value` with `mantissa` bits and least exponent `low`.
fn fp8_step(value: f64, mantissa: i32, low: i32) -> f64 {
    // That of a normal f64, which all these numbers are.
    let exponent = ((value.to_bits() >> 52) as i32 & 0x7ff) - 1023;
    let exponent = if value > 0.0 { exponent.max(low) } else { low };
    2f64.powi(exponent - mantissa)
}

/// `value` rounded to `places` digits after the point (exact value, ties to even), trailing zeros cut.
pub fn rounded(value: f64, places: usize) -> Digits {
    let text = format!("{:.places$}", value.abs());
    let (int, frac) = text.split_once('.').unwrap_or((&text, ""));
    let all: Vec<u8> = int.bytes().chain(frac.bytes()).map(|b| b - b'0').collect();
    let lead = all.iter().take_while(|d| **d == 0).count();
    let mut digits = all[lead..].to_vec();
    while digits.last() == Some(&0) {
        digits.pop();
    }
    let point = if digits.is_empty() { 0 } else { int.len() as i32 - lead as i32 };
    Digits { digits, point }
}

/// Positional notation: the integer part, and the fraction without trailing zeros (may be empty).
pub fn positional(d: &Digits) -> (String, String) {
    let digit = |i: i32| {
        let known = usize::try_from(i).ok().and_then(|i| d.digits.get(i));
        char::from(b'0' + known.copied().unwrap_or(0))
    };
    let int: String = if d.point > 0 { (0..d.point).map(digit).collect() } else { "0".into() };
    let frac: String =
        (d.point.min(0)..0).map(|_| '0').chain((d.point.max(0)..d.digits.len() as i32).map(digit)).collect();
    (int, if d.digits.is_empty() { String::new() } else { frac })
}

/// One number as Python's `repr` writes it, with the digits of its own type.
pub fn repr(value: f64, dtype: DType) -> String {
    if value.is_nan() {
        return "nan".into();
    }
    let sign = if value.is_sign_negative() { "-" } else { "" };
    if value.is_infinite() {
        return format!("{sign}inf");
    }
    let d = shortest(value, dtype);
    if d.digits.is_empty() {
        return format!("{sign}0.0");
    }
    if (-3..=16).contains(&d.point) {
        let (int, frac) = positional(&d);
        return format!("{sign}{int}.{}", if frac.is_empty() { "0" } else { &frac });
    }
    let mantissa: String = d.digits.iter().map(|b| char::from(b'0' + b)).collect();
    let (head, tail) = mantissa.split_at(1);
    let dot = if tail.is_empty() { "" } else { "." };
    let e = d.point - 1;
    format!("{sign}{head}{dot}{tail}e{}{:02}", if e < 0 { '-' } else { '+' }, e.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_print_like_python() {
        for (value, text) in [
            (0.1 + 0.2, "0.30000000000000004"),
            (1e16, "1e+16"),
            (1e15, "1000000000000000.0"),
            (1e-5, "1e-05"),
            (0.0001, "0.0001"),
            (123456789.123, "123456789.123"),
            (-0.0, "-0.0"),
            (2.5e-8, "2.5e-08"),
            (711313990834373.2, "711313990834373.2"),
        ] {
            assert_eq!(repr(value, DType::F64), text);
        }
        assert_eq!(repr(0.1f32 as f64, DType::F32), "0.1");
        assert_eq!(repr(half::bf16::from_f32(0.1).to_f64(), DType::Bf16), "0.1");
        assert_eq!(repr(6.0, DType::F32), "6.0");
    }

    #[test]
    fn ties_round_to_even() {
        assert_eq!(positional(&rounded(0.001953125, 8)), ("0".into(), "00195312".into()));
        assert_eq!(positional(&rounded(2.5, 0)), ("2".into(), String::new()));
    }
}
