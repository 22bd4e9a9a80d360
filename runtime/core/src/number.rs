//! Numbers to text and back, as Python does it.

use crate::fault::Fault;
use tessera_base::DType;

/// `repr(x)`: the fewest digits that give the same number back.
pub fn float_repr(x: f64) -> String {
    crate::digits::repr(x, DType::F64)
}

/// The parts of what Rust prints with `{:e}`.
fn split_exponent(text: &str) -> (&str, i32) {
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    (mantissa, exponent.parse().unwrap_or(0))
}

fn with_exponent(mantissa: &str, exponent: i32, e: char) -> String {
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}{e}{sign}{:02}", exponent.unsigned_abs())
}

/// Digits after the point beyond which a double has only zeros.
const DIGITS_MAX: usize = 1100;

/// `%.{digits}f` of a finite number that is not negative. Exact, ties to even.
pub fn fixed(x: f64, digits: usize) -> String {
    let mut text = format!("{x:.*}", digits.min(DIGITS_MAX));
    text.extend(std::iter::repeat_n('0', digits.saturating_sub(DIGITS_MAX)));
    text
}

/// `%.{digits}e` of a finite number that is not negative.
pub fn scientific(x: f64, digits: usize, point: bool) -> String {
    let text = format!("{x:.*e}", digits.min(DIGITS_MAX));
    let (mantissa, exponent) = split_exponent(&text);
    let mut mantissa = mantissa.to_string();
    mantissa.extend(std::iter::repeat_n('0', digits.saturating_sub(DIGITS_MAX)));
    if point && digits == 0 {
        mantissa.push('.');
    }
    with_exponent(&mantissa, exponent, 'e')
}

/// `%.{digits}g`. `keep` keeps trailing zeros (the `#` flag); `add_zero` writes at least one
/// digit after the point, as a format without a type does.
pub fn general(x: f64, digits: usize, keep: bool, add_zero: bool) -> String {
    let digits = digits.max(1);
    let text = format!("{x:.*e}", (digits - 1).min(DIGITS_MAX));
    let exponent = split_exponent(&text).1;
    let limit = digits as i64 - i64::from(add_zero);
    if i64::from(exponent) < -4 || i64::from(exponent) >= limit {
        let text = scientific(x, digits - 1, keep);
        let (mantissa, exponent) = split_exponent(&text);
        let mantissa = if keep { mantissa } else { strip_zeros(mantissa) };
        return with_exponent(mantissa, exponent, 'e');
    }
    let text = fixed(x, (digits as i64 - 1 - i64::from(exponent)).max(0) as usize);
    if keep {
        return if text.contains('.') { text } else { text + "." };
    }
    let text = strip_zeros(&text);
    if add_zero && !text.contains('.') { format!("{text}.0") } else { text.to_string() }
}

fn strip_zeros(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

/// `round(x, digits)`: the float nearest to the exactly rounded decimal, ties to even.
pub fn round_digits(x: f64, digits: i64) -> f64 {
    if !x.is_finite() || digits > 323 {
        return x;
    }
    if digits < -308 {
        return 0.0f64.copysign(x);
    }
    if digits >= 0 {
        return format!("{x:.*}", digits as usize).parse().unwrap_or(x);
    }
    // Left of the point: cut the exact decimal expansion and look at what is cut off.
    let text = format!("{:.*}", DIGITS_MAX, x.abs());
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let cut = digits.unsigned_abs() as usize;
    let whole = format!("{whole:0>width$}", width = cut + 1);
    let (kept, rest) = whole.split_at(whole.len() - cut);
    let mut magnitude: f64 = format!("{kept}e{cut}").parse().unwrap_or(0.0);
    let half = format!("5{}", "0".repeat(cut - 1));
    let beyond = fraction.bytes().any(|b| b != b'0');
    let odd = kept.bytes().last().is_some_and(|b| b % 2 == 1);
    if rest > half.as_str() || rest == half && (beyond || odd) {
        magnitude = decimal_next(kept, cut);
    }
    magnitude.copysign(x)
}

/// `(digits + 1) * 10^zeros`.
fn decimal_next(digits: &str, zeros: usize) -> f64 {
    let mut bytes: Vec<u8> = digits.bytes().collect();
    for b in bytes.iter_mut().rev() {
        if *b < b'9' {
            *b += 1;
            break;
        }
        *b = b'0';
    }
    if bytes.iter().all(|&b| b == b'0') {
        bytes.insert(0, b'1');
    }
    format!("{}e{zeros}", String::from_utf8_lossy(&bytes)).parse().unwrap_or(0.0)
}

/// White space as Python's `strip` sees it.
pub fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\x1c'..='\x1f').contains(&c)
}

/// Removes `_` between digits; `None` if one stands elsewhere.
fn without_underscores(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    for (i, &b) in bytes.iter().enumerate() {
        if b == b'_' {
            let before = i > 0 && bytes[i - 1].is_ascii_digit();
            let after = bytes.get(i + 1).is_some_and(u8::is_ascii_digit);
            if !(before && after) {
                return None;
            }
        }
    }
    Some(text.replace('_', ""))
}

/// `int(text)`: decimal, with sign, white space around and underscores between digits.
pub fn parse_int(text: &str) -> Result<i64, Fault> {
    let trimmed = text.trim_matches(is_space);
    let digits = trimmed.strip_prefix(['+', '-']).unwrap_or(trimmed);
    let plain = without_underscores(digits).filter(|d| !d.is_empty() && d.bytes().all(|b| b.is_ascii_digit()));
    let Some(plain) = plain else {
        return Err(Fault::new(712, format!("{} is not an int", quoted(text))));
    };
    let sign = if trimmed.starts_with('-') { "-" } else { "" };
    format!("{sign}{plain}").parse().map_err(|_| Fault::new(712, format!("{} does not fit 64 bits", quoted(text))))
}

/// `float(text)`.
pub fn parse_float(text: &str) -> Result<f64, Fault> {
    let fail = || Fault::new(712, format!("{} is not a float", quoted(text)));
    let trimmed = text.trim_matches(is_space);
    let plain = without_underscores(trimmed).ok_or_else(fail)?;
    plain.parse().map_err(|_| fail())
}

/// Text in an error message: quoted, and cut if it is long.
pub fn quoted(text: &str) -> String {
    const SHOWN: usize = 60;
    let mut out = String::new();
    if text.chars().count() > SHOWN {
        let cut: String = text.chars().take(SHOWN).collect();
        str_repr(&(cut + "…"), &mut out);
    } else {
        str_repr(text, &mut out);
    }
    out
}

/// `repr(text)`: single quotes unless the text has those and no double ones.
pub fn str_repr(text: &str, out: &mut String) {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.push(quote);
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == quote => out.extend(['\\', c]),
            ' '..='~' => out.push(c),
            c if c.is_ascii() || !printable(c) => escape(c, out),
            c => out.push(c),
        }
    }
    out.push(quote);
}

fn escape(c: char, out: &mut String) {
    let code = c as u32;
    out.push_str(&match code {
        0..=0xff => format!("\\x{code:02x}"),
        0x100..=0xffff => format!("\\u{code:04x}"),
        _ => format!("\\U{code:08x}"),
    });
}

fn printable(c: char) -> bool {
    if c != ' ' && c.is_whitespace() {
        return false;
    }
    // After a letter, combining marks are left alone and only unprintable ones are escaped.
    let mut pair = String::from("a");
    pair.push(c);
    pair.escape_debug().nth(1) != Some('\\')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_print_as_python_prints_them() {
        let table = [
            (0.1, "0.1"),
            (0.1 + 0.2, "0.30000000000000004"),
            (1.0, "1.0"),
            (-0.0, "-0.0"),
            (1e16, "1e+16"),
            (1e15, "1000000000000000.0"),
            (123456789012345680.0, "1.2345678901234568e+17"),
            (9999999999999998.0, "9999999999999998.0"),
            (1e-4, "0.0001"),
            (1e-5, "1e-05"),
            (2.5e-8, "2.5e-08"),
            (1e300 * 10.0, "1e+301"),
            (5e-324, "5e-324"),
            (f64::MAX, "1.7976931348623157e+308"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
            (f64::NAN, "nan"),
        ];
        for (x, text) in table {
            assert_eq!(float_repr(x), text);
        }
    }

    #[test]
    fn rounding_to_digits_is_exact() {
        assert_eq!(round_digits(2.675, 2), 2.67);
        assert_eq!(round_digits(0.5, 0), 0.0);
        assert_eq!(round_digits(2.5, 0), 2.0);
        assert_eq!(round_digits(1234.5, -2), 1200.0);
        assert_eq!(round_digits(1250.0, -2), 1200.0);
        assert_eq!(round_digits(1350.0, -2), 1400.0);
        assert_eq!(round_digits(1250.5, -2), 1300.0);
        assert_eq!(round_digits(99.0, -2), 100.0);
        assert_eq!(round_digits(50.0, -2), 0.0);
        assert_eq!(round_digits(-1.005, 2), -1.0);
    }

    #[test]
    fn numbers_read_as_python_reads_them() {
        assert_eq!(parse_int(" -1_000\n"), Ok(-1000));
        assert_eq!(parse_int("-9223372036854775808"), Ok(i64::MIN));
        for bad in ["", "1__0", "_1", "1_", "1.0", "0x1", "+-1", "9223372036854775808"] {
            assert!(parse_int(bad).is_err(), "{bad}");
        }
        assert_eq!(parse_float(" 1_0.5e2 ").ok(), Some(1050.0));
        assert_eq!(parse_float("-Infinity").ok(), Some(f64::NEG_INFINITY));
        assert!(parse_float("nan").is_ok_and(f64::is_nan));
        for bad in ["", "1e", "1_.0", "e5", "1 2", "0x1p3"] {
            assert!(parse_float(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn strings_quote_as_python_quotes_them() {
        let table = [
            ("a", "'a'"),
            ("d'e", "\"d'e\""),
            ("'\"", "'\\'\"'"),
            ("a\\\n\t\x07\x7f", "'a\\\\\\n\\t\\x07\\x7f'"),
            ("é\u{301}ñ", "'é\u{301}ñ'"),
            ("\u{a0}\u{200b}", "'\\xa0\\u200b'"),
        ];
        for (text, repr) in table {
            let mut out = String::new();
            str_repr(text, &mut out);
            assert_eq!(out, repr);
        }
    }
}
