//! The values of number and string tokens.

use std::ops::Range;
use tessera_base::Code;

/// What is wrong with a literal, in bytes of its token.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Flaw {
    pub code: Code,
    pub range: Range<usize>,
    pub message: String,
    pub help: String,
    /// A replacement of `range`.
    pub fix: Option<String>,
}

#[derive(Clone, PartialEq, Debug)]
pub enum Number {
    /// Decimal digits without `_` and leading zeros.
    Int(String),
    Float(f64),
}

/// Digits beyond which an integer literal is refused: reading it would take quadratic time.
const INT_DIGITS_MAX: usize = 4000;

fn flaw(code: Code, range: Range<usize>, message: impl Into<String>, help: impl Into<String>) -> Flaw {
    Flaw { code, range, message: message.into(), help: help.into(), fix: None }
}

/// Reads a number token. Python's literals: `_` between digits, `0x 0o 0b`, exponents.
pub fn number(text: &str) -> Result<Number, Flaw> {
    let bad = |message: String, help: &str| Err(flaw(Code::E0007, 0..text.len(), message, help));
    let bytes = text.as_bytes();
    let radix = match bytes.get(1).map(u8::to_ascii_lowercase) {
        Some(b'x') if bytes[0] == b'0' => 16,
        Some(b'o') if bytes[0] == b'0' => 8,
        Some(b'b') if bytes[0] == b'0' => 2,
        _ => 10,
    };
    let digits = if radix == 10 { text } else { &text[2..] };
    if radix != 10 && digits.starts_with('_') {
        // Python allows `0x_ff`.
    } else if digits.starts_with('_') || digits.ends_with('_') || digits.contains("__") {
        return bad(
            format!("`{text}` has a `_` that is not between two digits"),
            "a single `_` may stand between two digits, as in `1_000`",
        );
    }
    if radix != 10 {
        return prefixed(text, digits, radix);
    }
    let plain: String = text.chars().filter(|c| *c != '_').collect();
    if plain.bytes().all(|b| b.is_ascii_digit()) {
        return decimal(text, &plain);
    }
    if let Some(value) = float(text, &plain) {
        return Ok(Number::Float(value));
    }
    // Digits followed by something: say what was meant.
    let split = plain.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(plain.len());
    let (head, tail) = plain.split_at(split);
    if matches!(tail, "j" | "J") {
        return bad(
            format!("complex numbers such as `{text}` are not supported"),
            "keep the real and the imaginary part apart",
        );
    }
    if matches!(tail, "L" | "l" | "u" | "U" | "f" | "F" | "d") {
        let mut flaw =
            flaw(Code::E0007, 0..text.len(), format!("a number has no suffix `{tail}`"), format!("write `{head}`"));
        flaw.fix = Some(head.to_string());
        return Err(flaw);
    }
    if tail.eq_ignore_ascii_case("e") {
        return bad(format!("the exponent of `{text}` has no digits"), "write digits after `e`, as in `1e-5`");
    }
    if tail.starts_with(|c: char| c.is_alphabetic()) && text.is_char_boundary(split) && !text[..split].contains('_') {
        let mut flaw = flaw(
            Code::E0007,
            0..text.len(),
            format!("`{text}` is neither a number nor a name"),
            format!("a product needs its operator: `{head} * {tail}`"),
        );
        flaw.fix = Some(format!("{head} * {tail}"));
        return Err(flaw);
    }
    bad(format!("`{text}` is not a number"), "numbers are written as `42`, `1_000`, `0xff`, `3.5` or `1e-5`")
}

fn decimal(text: &str, plain: &str) -> Result<Number, Flaw> {
    if plain.len() > INT_DIGITS_MAX {
        return Err(flaw(
            Code::E0007,
            0..text.len(),
            format!("an integer of {} digits is too long", plain.len()),
            "an `int` has 64 bits",
        ));
    }
    let value = plain.trim_start_matches('0');
    if value.is_empty() {
        return Ok(Number::Int("0".into()));
    }
    if value.len() < plain.len() {
        let mut flaw = flaw(
            Code::E0007,
            0..text.len(),
            format!("`{text}` begins with a zero"),
            format!("write `{value}`, or `0o{value}` for an octal number"),
        );
        flaw.fix = Some(value.to_string());
        return Err(flaw);
    }
    Ok(Number::Int(value.to_string()))
}

/// `0x…`, `0o…`, `0b…` as decimal digits, of any size.
fn prefixed(text: &str, digits: &str, radix: u32) -> Result<Number, Flaw> {
    let name = match radix {
        16 => "a hexadecimal",
        8 => "an octal",
        _ => "a binary",
    };
    let mut parts: Vec<u32> = vec![0];
    let mut count = 0;
    for (i, c) in digits.chars().enumerate() {
        if c == '_' {
            continue;
        }
        let Some(digit) = c.to_digit(radix) else {
            let at = 2 + i;
            return Err(flaw(
                Code::E0007,
                at..at + c.len_utf8(),
                format!("`{c}` is not {name} digit"),
                format!("{name} number has digits below {radix}"),
            ));
        };
        count += 1;
        if count > INT_DIGITS_MAX {
            return Err(flaw(
                Code::E0007,
                0..text.len(),
                "an integer with this many digits is too long",
                "an `int` has 64 bits",
            ));
        }
        let mut carry = u64::from(digit);
        for part in &mut parts {
            let value = u64::from(*part) * u64::from(radix) + carry;
            *part = (value % 1_000_000_000) as u32;
            carry = value / 1_000_000_000;
        }
        if carry > 0 {
            parts.push(carry as u32);
        }
    }
    if count == 0 {
        return Err(flaw(
            Code::E0007,
            0..text.len(),
            format!("`{text}` has no digits"),
            format!("{name} number needs digits after `{text}`"),
        ));
    }
    let mut out = parts.last().copied().unwrap_or(0).to_string();
    for part in parts.iter().rev().skip(1) {
        out.push_str(&format!("{part:09}"));
    }
    Ok(Number::Int(out))
}

/// A float, if the token has the shape of one.
fn float(text: &str, plain: &str) -> Option<f64> {
    for (i, c) in text.char_indices() {
        let digit = |b: Option<&u8>| b.is_some_and(u8::is_ascii_digit);
        let bytes = text.as_bytes();
        if c == '_' && !(i > 0 && digit(bytes.get(i - 1)) && digit(bytes.get(i + 1))) {
            return None;
        }
    }
    // `inf` and `nan` cannot reach this: the token begins with a digit or a dot.
    plain
        .bytes()
        .all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+' | b'-'))
        .then(|| plain.parse().ok())?
}

/// A string token cut into prefix and body.
pub struct Quoted<'t> {
    pub prefix: &'t str,
    pub quotes: &'t str,
    pub body: &'t str,
    /// Where `body` begins in the token.
    pub offset: usize,
}

/// Takes a string token (or one whose closing quote is missing) apart.
pub fn quoted(token: &str, closed: bool) -> Quoted<'_> {
    let open = token.find(['"', '\'']).unwrap_or(token.len());
    let rest = &token[open..];
    let width = if rest.starts_with("\"\"\"") || rest.starts_with("'''") { 3 } else { 1.min(rest.len()) };
    let end = if closed { token.len().saturating_sub(width).max(open + width) } else { token.len() };
    Quoted { prefix: &token[..open], quotes: &rest[..width], body: &token[open + width..end], offset: open + width }
}

/// The text that `body` stands for; escapes that are not known are reported and kept as they
/// are. `braces`: in an f-string `{{` and `}}` stand for one brace.
pub fn unescape(body: &str, raw: bool, braces: bool, flaws: &mut Vec<Flaw>) -> String {
    let mut out = String::with_capacity(body.len());
    let mut chars = body.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '\r' => {
                // Line ends in strings are `\n` on every system.
                if chars.peek().is_some_and(|(_, c)| *c == '\n') {
                    chars.next();
                }
                out.push('\n');
            }
            '{' | '}' if braces => {
                if chars.peek().is_some_and(|(_, next)| *next == c) {
                    chars.next();
                } else {
                    let mut single = flaw(
                        Code::E0006,
                        at..at + 1,
                        format!("a single `{c}` in an f-string"),
                        format!("write `{c}{c}` for one brace"),
                    );
                    single.fix = Some(format!("{c}{c}"));
                    flaws.push(single);
                }
                out.push(c);
            }
            '\\' if !raw => {
                let length = escape(&body[at..], at, &mut out, flaws);
                while chars.peek().is_some_and(|(next, _)| *next < at + length) {
                    chars.next();
                }
            }
            _ => out.push(c),
        }
    }
    out
}

/// Appends what the escape at the start of `rest` stands for; gives its length in bytes.
fn escape(rest: &str, at: usize, out: &mut String, flaws: &mut Vec<Flaw>) -> usize {
    let Some(c) = rest[1..].chars().next() else {
        out.push('\\');
        return 1;
    };
    let octal = rest[1..].bytes().take(3).take_while(|b| (b'0'..=b'7').contains(b)).count();
    let simple = match c {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        '\\' => '\\',
        '\'' => '\'',
        '"' => '"',
        'a' => '\x07',
        'b' => '\x08',
        'f' => '\x0C',
        'v' => '\x0B',
        '0' if octal == 1 => '\0',
        '\n' => return 2,
        '\r' => return if rest[2..].starts_with('\n') { 3 } else { 2 },
        'x' => return hex(rest, 2, at, out, flaws),
        'u' => return hex(rest, 4, at, out, flaws),
        'U' => return hex(rest, 8, at, out, flaws),
        _ => {
            let length = 1 + if octal > 0 { octal } else { c.len_utf8() };
            out.push_str(&rest[..length]);
            let escape = &rest[..length];
            let mut unknown = flaw(Code::E0006, at..at + length, format!("`{escape}` is not an escape"), String::new());
            if octal > 0 {
                let value = u32::from_str_radix(&rest[1..1 + octal], 8).unwrap_or(0);
                unknown.help = format!("octal escapes are not used; write `\\x{value:02x}`");
                unknown.fix = (value < 128).then(|| format!("\\x{value:02x}"));
            } else if c == 'N' {
                unknown.help = "name the character by its number, as in `\\u00e9`, or write it as it is".into();
            } else {
                unknown.help = format!("for a backslash write `\\\\{c}`, or make it a raw string: `r\"…\"`");
                unknown.fix = Some(format!("\\\\{c}"));
            }
            flaws.push(unknown);
            return length;
        }
    };
    out.push(simple);
    2
}

fn hex(rest: &str, digits: usize, at: usize, out: &mut String, flaws: &mut Vec<Flaw>) -> usize {
    let found = rest[2..].bytes().take(digits).take_while(u8::is_ascii_hexdigit).count();
    let length = 2 + found;
    let escape = &rest[..length];
    if found < digits {
        let kind = &rest[1..2];
        flaws.push(flaw(
            Code::E0006,
            at..at + length,
            format!("`\\{kind}` needs {digits} hexadecimal digits"),
            format!("`{escape}` has {found}"),
        ));
        return length;
    }
    match u32::from_str_radix(&rest[2..length], 16).ok().and_then(char::from_u32) {
        Some(c) => out.push(c),
        None => flaws.push(flaw(
            Code::E0006,
            at..at + length,
            format!("`{escape}` is not a character"),
            "characters have numbers up to 10ffff, without d800 to dfff",
        )),
    }
    length
}

/// A docstring without the indentation that its lines share, as Python's `inspect.cleandoc`.
pub fn clean_doc(text: &str) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    let margin = lines
        .iter()
        .skip(1)
        .filter(|l| !l.trim().is_empty())
        .map(|l| l.len() - l.trim_start().len())
        .min()
        .unwrap_or(0);
    for (i, line) in lines.iter_mut().enumerate() {
        *line = if i == 0 { line.trim_start() } else { line.get(margin..).unwrap_or(line.trim_start()) };
    }
    while lines.last().is_some_and(|l| l.trim().is_empty()) {
        lines.pop();
    }
    let blank = lines.iter().take_while(|l| l.trim().is_empty()).count();
    lines[blank..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn int(text: &str) -> String {
        match number(text) {
            Ok(Number::Int(value)) => value,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn integers_of_every_base_and_size() {
        for (text, value) in [
            ("0", "0"),
            ("00", "0"),
            ("1_000", "1000"),
            ("0xFF", "255"),
            ("0b1010_1010", "170"),
            ("0o17", "15"),
            ("0xffffffffffffffffffffffff", "79228162514264337593543950335"),
            ("123456789012345678901234567890", "123456789012345678901234567890"),
        ] {
            assert_eq!(int(text), value);
        }
    }

    #[test]
    fn floats() {
        for (text, value) in
            [(".5", 0.5), ("3.", 3.0), ("1e-5", 1e-5), ("1_0.5E+2", 1050.0), ("1.e3", 1000.0), ("1e999", f64::INFINITY)]
        {
            assert_eq!(number(text), Ok(Number::Float(value)), "{text}");
        }
    }

    #[test]
    fn broken_numbers_say_what_was_meant() {
        for (text, part) in [
            ("2x", "neither a number nor a name"),
            ("3j", "complex"),
            ("10L", "suffix `L`"),
            ("1e", "no digits"),
            ("0x", "no digits"),
            ("0b12", "not a binary digit"),
            ("1__0", "not between two digits"),
            ("1_.5", "not a number"),
            ("007", "begins with a zero"),
            ("1.2.3", "not a number"),
        ] {
            let flaw = number(text).unwrap_err();
            assert!(flaw.message.contains(part), "{text}: {}", flaw.message);
        }
        assert_eq!(number("2x").unwrap_err().fix.as_deref(), Some("2 * x"));
    }

    #[test]
    fn escapes() {
        let mut flaws = vec![];
        assert_eq!(
            unescape("a\\n\\t\\\\\\'\\\"\\0\\x41\\u00e9\\U0001F600\\\n.", false, false, &mut flaws),
            "a\n\t\\'\"\0Aé😀."
        );
        assert_eq!(unescape("\\d", true, false, &mut flaws), "\\d");
        assert_eq!(unescape("{{x}}", false, true, &mut flaws), "{x}");
        assert_eq!(flaws, []);
        for (body, part) in
            [("\\q", "not an escape"), ("\\x1", "needs 2"), ("\\033", "not an escape"), ("\\ud800", "not a character")]
        {
            let mut flaws = vec![];
            unescape(body, false, false, &mut flaws);
            assert_eq!(flaws.len(), 1);
            assert!(flaws[0].message.contains(part), "{body}: {}", flaws[0].message);
        }
    }

    #[test]
    fn docstrings_lose_their_margin() {
        assert_eq!(clean_doc("One.\n\n    Two\n      three\n    "), "One.\n\nTwo\n  three");
    }
}
