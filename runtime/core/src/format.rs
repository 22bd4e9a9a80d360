//! Format specifications: `[[fill]align][sign][z][#][0][width][,|_][.precision][type]`.
//! Source: the Python language reference, "Format Specification Mini-Language".

use crate::fault::Fault;
use crate::number::{fixed, float_repr, general, quoted, scientific};

/// A specification taken apart.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Spec {
    fill: Option<char>,
    align: Option<char>,
    sign: Option<char>,
    no_negative_zero: bool,
    alternate: bool,
    zero: bool,
    width: usize,
    group: Option<char>,
    precision: Option<usize>,
    ty: Option<char>,
}

/// What a width or a precision may be at most.
const SIZE_MAX: usize = 1 << 24;

fn fault(message: impl Into<String>) -> Fault {
    Fault::new(711, message)
}

impl Spec {
    pub fn parse(text: &str) -> Result<Spec, Fault> {
        let chars: Vec<char> = text.chars().collect();
        let is_align = |c: Option<&char>| c.is_some_and(|c| "<>=^".contains(*c));
        let mut spec = Spec::default();
        let mut at = 0;
        if is_align(chars.get(1)) {
            (spec.fill, spec.align, at) = (chars.first().copied(), chars.get(1).copied(), 2);
        } else if is_align(chars.first()) {
            (spec.align, at) = (chars.first().copied(), 1);
        }
        let mut take = |wanted: &str| {
            let found = chars.get(at).copied().filter(|c| wanted.contains(*c));
            at += usize::from(found.is_some());
            found
        };
        spec.sign = take("+- ");
        spec.no_negative_zero = take("z").is_some();
        spec.alternate = take("#").is_some();
        spec.zero = take("0").is_some();
        spec.width = number(&mut take)?.unwrap_or(0);
        spec.group = take(",_");
        if take(",_").is_some() {
            return Err(fault(format!("the format {} has two separators", quoted(text))));
        }
        if take(".").is_some() {
            let digits = number(&mut take)?;
            spec.precision = Some(
                digits.ok_or_else(|| fault(format!("the format {} has no digits after the point", quoted(text))))?,
            );
        }
        match &chars[at..] {
            [] => {}
            [ty] => spec.ty = Some(*ty),
            _ => return Err(fault(format!("{} is not a format", quoted(text)))),
        }
        Ok(spec)
    }

    /// `format(x, spec)` of an int.
    pub fn int(&self, x: i64) -> Result<String, Fault> {
        let (digits, prefix, group_size) = match self.ty.unwrap_or('d') {
            'd' | 'n' => (x.unsigned_abs().to_string(), "", 3),
            'b' => (format!("{:b}", x.unsigned_abs()), "0b", 4),
            'o' => (format!("{:o}", x.unsigned_abs()), "0o", 4),
            'x' => (format!("{:x}", x.unsigned_abs()), "0x", 4),
            'X' => (format!("{:X}", x.unsigned_abs()), "0X", 4),
            'c' => return self.character(x),
            'e' | 'E' | 'f' | 'F' | 'g' | 'G' | '%' => return self.float(x as f64),
            ty => return Err(self.unknown(ty, "an int")),
        };
        if self.precision.is_some() || self.no_negative_zero {
            return Err(fault("the format of an int cannot have a precision or `z`"));
        }
        if self.group.is_some() && self.ty == Some('n') {
            return Err(fault("`n` cannot be combined with a separator"));
        }
        if self.group == Some(',') && group_size == 4 {
            return Err(fault(format!("`,` cannot be combined with `{}`; `_` can", self.ty.unwrap_or('d'))));
        }
        let prefix = if self.alternate { prefix } else { "" };
        Ok(self.number(x < 0, prefix, &digits, "", group_size))
    }

    fn character(&self, x: i64) -> Result<String, Fault> {
        let c = u32::try_from(x).ok().and_then(char::from_u32);
        let c = c.ok_or_else(|| fault(format!("{x} is not the number of a character")))?;
        if self.sign.is_some()
            || self.precision.is_some()
            || self.group.is_some()
            || self.alternate
            || self.no_negative_zero
        {
            return Err(fault("the format `c` cannot have a sign, `#`, `z`, a separator or a precision"));
        }
        Ok(self.pad(&c.to_string(), self.align.unwrap_or('>')))
    }

    /// `format(x, spec)` of a bool: its name without a specification, else as an int.
    pub fn bool(&self, x: bool) -> Result<String, Fault> {
        if *self == Spec::default() {
            return Ok(if x { "True".into() } else { "False".into() });
        }
        self.int(i64::from(x))
    }

    /// `format(x, spec)` of a float.
    pub fn float(&self, x: f64) -> Result<String, Fault> {
        let ty = self.ty.unwrap_or(' ');
        if self.ty.is_some() && !"eEfFgGn%".contains(ty) {
            return Err(self.unknown(ty, "a float"));
        }
        if self.group.is_some() && ty == 'n' {
            return Err(fault("`n` cannot be combined with a separator"));
        }
        let percent = ty == '%';
        let value = if percent { x * 100.0 } else { x };
        let mut text = if value.is_finite() { self.finite(value.abs()) } else { float_repr(value.abs()) };
        if ty.is_ascii_uppercase() {
            text = text.to_ascii_uppercase();
        }
        if percent {
            text.push('%');
        }
        let mut negative = value.is_sign_negative() && !value.is_nan();
        if self.no_negative_zero && value.is_finite() && !text.bytes().any(|b| (b'1'..=b'9').contains(&b)) {
            negative = false;
        }
        let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (whole, rest) = text.split_at(split);
        Ok(self.number(negative, "", whole, rest, 3))
    }

    fn finite(&self, x: f64) -> String {
        let digits = self.precision.unwrap_or(6);
        match self.ty.map(|c| c.to_ascii_lowercase()) {
            Some('f' | '%') => {
                let text = fixed(x, digits);
                if self.alternate && digits == 0 { text + "." } else { text }
            }
            Some('e') => scientific(x, digits, self.alternate),
            Some(_) => general(x, digits, self.alternate, false),
            None => match self.precision {
                Some(digits) => general(x, digits, self.alternate, true),
                None => {
                    let text = float_repr(x);
                    let bare = self.alternate && !text.contains('.');
                    if bare { text.replacen('e', ".e", 1) } else { text }
                }
            },
        }
    }

    /// `format(text, spec)` of a string.
    pub fn str(&self, text: &str) -> Result<String, Fault> {
        if let Some(ty) = self.ty.filter(|t| *t != 's') {
            return Err(self.unknown(ty, "a str"));
        }
        if self.sign.is_some()
            || self.no_negative_zero
            || self.alternate
            || self.group.is_some()
            || self.align == Some('=')
        {
            return Err(fault("the format of a str cannot have a sign, `=`, `#`, `z` or a separator"));
        }
        let cut: String;
        let text = match self.precision {
            Some(n) => {
                cut = text.chars().take(n).collect();
                &cut
            }
            None => text,
        };
        Ok(self.pad(text, self.align.unwrap_or('<')))
    }

    fn unknown(&self, ty: char, what: &str) -> Fault {
        fault(format!("`{ty}` is not a format of {what}"))
    }

    /// Sign, prefix, grouped digits and the rest, padded to the width.
    fn number(&self, negative: bool, prefix: &str, whole: &str, rest: &str, group_size: usize) -> String {
        let sign = match self.sign {
            _ if negative => "-",
            Some('+') => "+",
            Some(' ') => " ",
            _ => "",
        };
        let align = self.align.unwrap_or(if self.zero { '=' } else { '>' });
        let head = format!("{sign}{prefix}");
        let fill = self.fill.unwrap_or(if self.zero { '0' } else { ' ' });
        let taken = head.len() + rest.chars().count();
        let digits = match self.group {
            Some(separator) if !whole.is_empty() => {
                let inner = if align == '=' && fill == '0' { self.width.saturating_sub(taken) } else { 0 };
                grouped(whole, separator, group_size, inner)
            }
            _ => whole.to_string(),
        };
        if align != '=' {
            return self.pad(&format!("{head}{digits}{rest}"), align);
        }
        let missing = self.width.saturating_sub(taken + digits.len());
        let padding: String = std::iter::repeat_n(fill, missing).collect();
        format!("{head}{padding}{digits}{rest}")
    }

    fn pad(&self, text: &str, align: char) -> String {
        let fill = self.fill.unwrap_or(if self.zero { '0' } else { ' ' });
        let missing = self.width.saturating_sub(text.chars().count());
        let left = match align {
            '<' => 0,
            '^' => missing / 2,
            _ => missing,
        };
        let mut out: String = std::iter::repeat_n(fill, left).collect();
        out.push_str(text);
        out.extend(std::iter::repeat_n(fill, missing - left));
        out
    }
}

fn number(take: &mut impl FnMut(&str) -> Option<char>) -> Result<Option<usize>, Fault> {
    let mut value = None;
    while let Some(c) = take("0123456789") {
        let next = value.unwrap_or(0) * 10 + c as usize - '0' as usize;
        if next > SIZE_MAX {
            return Err(fault(format!("a width or precision of a format is at most {SIZE_MAX}")));
        }
        value = Some(next);
    }
    Ok(value)
}

/// Digits with a separator every `size`, with leading zeros up to a width.
fn grouped(digits: &str, separator: char, size: usize, width: usize) -> String {
    let mut reversed = Vec::with_capacity(digits.len() * 4 / 3 + 1);
    let mut source = digits.chars().rev();
    for count in 0.. {
        let digit = match source.next() {
            Some(d) => d,
            None if reversed.len() < width => '0',
            None => break,
        };
        if count > 0 && count % size == 0 {
            reversed.push(separator);
        }
        reversed.push(digit);
    }
    reversed.iter().rev().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ints() {
        let table = [
            (1234, "", "1234"),
            (1234, "010,", "00,001,234"),
            (1234, "08,", "0,001,234"),
            (-1234, "_d", "-1_234"),
            (255, "#x", "0xff"),
            (255, "#010b", "0b11111111"),
            (65535, "_b", "1111_1111_1111_1111"),
            (255, "X", "FF"),
            (8, "o", "10"),
            (65, "c", "A"),
            (5, "+", "+5"),
            (5, " ", " 5"),
            (5, "*^5", "**5**"),
            (-5, "=5", "-   5"),
            (5, "<05", "50000"),
            (-5, "05", "-0005"),
            (3, ".2f", "3.00"),
            (50, "%", "5000.000000%"),
            (1234567, ",.2f", "1,234,567.00"),
            (i64::MIN, ",", "-9,223,372,036,854,775,808"),
        ];
        for (x, spec, text) in table {
            assert_eq!(Spec::parse(spec).and_then(|s| s.int(x)).as_deref(), Ok(text), "{x} {spec}");
        }
        for bad in [".2", ",x", "q", "s", "5 5", "10.", ",_"] {
            assert!(Spec::parse(bad).and_then(|s| s.int(1)).is_err(), "{bad}");
        }
    }

    #[test]
    fn floats() {
        let table = [
            (3.24159, ".2f", "3.24"),
            (3.24159, "8.3f", "   3.242"),
            (3.24159, "<8.1f", "3.2     "),
            (3.24159, "+.1f", "+3.2"),
            (3.24159, "e", "3.241590e+00"),
            (3.24159, ".3g", "3.24"),
            (0.5, ".0%", "50%"),
            (1234567.891, ",.2f", "1,234,567.89"),
            (2.0, "", "2.0"),
            (1e-7, "", "1e-07"),
            (123.456, ".3", "1.23e+02"),
            (1e16, ".20", "10000000000000000.0"),
            (5.0, "g", "5"),
            (5.0, "#g", "5.00000"),
            (1e6, "g", "1e+06"),
            (123456.0, "g", "123456"),
            (0.0001, "g", "0.0001"),
            (0.00001234, "G", "1.234E-05"),
            (2.5, ".0f", "2"),
            (2.5, "#.0f", "2."),
            (2.5, ".0e", "2e+00"),
            (f64::INFINITY, "05", "00inf"),
            (f64::NAN, "F", "NAN"),
            (-0.0, "f", "-0.000000"),
            (-0.0, "zf", "0.000000"),
            (-0.001, "z.1f", "0.0"),
            (1234.5, "012,.1f", "00,001,234.5"),
            (-3.5, "=8", "-    3.5"),
            (100.0, ".3", "1e+02"),
            (0.0, "", "0.0"),
            (1e22, "f", "10000000000000000000000.000000"),
        ];
        for (x, spec, text) in table {
            assert_eq!(Spec::parse(spec).and_then(|s| s.float(x)).as_deref(), Ok(text), "{x} {spec}");
        }
        assert!(Spec::parse("d").and_then(|s| s.float(1.0)).is_err());
    }

    #[test]
    fn strings_and_bools() {
        let table = [
            (">5", "   ab"),
            ("<5", "ab   "),
            ("^5", " ab  "),
            ("*^6", "**ab**"),
            (".1", "a"),
            ("05", "ab000"),
            ("s", "ab"),
            ("é>3", "éab"),
        ];
        for (spec, text) in table {
            assert_eq!(Spec::parse(spec).and_then(|s| s.str("ab")).as_deref(), Ok(text), "{spec}");
        }
        for bad in ["d", "=5", "+", ","] {
            assert!(Spec::parse(bad).and_then(|s| s.str("ab")).is_err(), "{bad}");
        }
        assert_eq!(Spec::default().bool(true).as_deref(), Ok("True"));
        assert_eq!(Spec::parse("5").and_then(|s| s.bool(true)).as_deref(), Ok("    1"));
    }
}
