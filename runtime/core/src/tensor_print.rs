//! `print` of tensors: NumPy's `str`, digit for digit (padding, summarising, line width 75).

use crate::digits::{Digits, positional, repr, rounded, shortest};
use crate::tensor::Tensor;
use half::{bf16, f16};
use tessera_base::DType;

const LINE_WIDTH: usize = 75;
const EDGE_ITEMS: u64 = 3;
/// Of tensors with more elements only the ends are printed.
pub const SUMMARY_ABOVE: u64 = 1000;
const PRECISION: usize = 8;

/// One element, read from memory.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Element {
    Float(f64),
    Int(i64),
    Bool(bool),
    Complex(f64, f64),
}

/// Element `i` of a row-major tensor.
pub fn element(t: &Tensor, i: usize) -> Element {
    let size = t.dtype.bytes();
    let b = &t.bytes()[i * size..(i + 1) * size];
    let two = || [b[0], b[1]];
    let four = || [b[0], b[1], b[2], b[3]];
    let eight = || [b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]];
    match t.dtype {
        DType::F64 => Element::Float(f64::from_le_bytes(eight())),
        DType::F32 | DType::Tf32 => Element::Float(f32::from_le_bytes(four()).into()),
        DType::Bf16 => Element::Float(bf16::from_le_bytes(two()).into()),
        DType::F16 => Element::Float(f16::from_le_bytes(two()).into()),
        DType::F8E4M3 => Element::Float(fp8_value(b[0], 4, 3)),
        DType::F8E5M2 => Element::Float(fp8_value(b[0], 5, 2)),
        DType::I64 => Element::Int(i64::from_le_bytes(eight())),
        DType::I32 => Element::Int(i32::from_le_bytes(four()).into()),
        DType::I16 => Element::Int(i16::from_le_bytes(two()).into()),
        DType::I8 => Element::Int((b[0] as i8).into()),
        DType::U8 => Element::Int(b[0].into()),
        DType::Bool => Element::Bool(b[0] != 0),
        DType::C64 => {
            let re = f32::from_le_bytes(four());
            let im = f32::from_le_bytes([b[4], b[5], b[6], b[7]]);
            Element::Complex(re.into(), im.into())
        }
    }
}

/// The value of 8 bits with the given field widths (OCP 8-bit floating point, 2023; e4m3 has
/// no infinities, its only NaN has all bits set).
pub fn fp8_value(bits: u8, exponent_bits: i32, mantissa_bits: i32) -> f64 {
    let sign = if bits & 0x80 != 0 { -1.0 } else { 1.0 };
    let bias = (1 << (exponent_bits - 1)) - 1;
    let exponent = i32::from((bits & 0x7f) >> mantissa_bits);
    let mantissa = i32::from(bits) & ((1 << mantissa_bits) - 1);
    let top = (1 << exponent_bits) - 1;
    if exponent == top && (exponent_bits == 5 || mantissa == (1 << mantissa_bits) - 1) {
        return if exponent_bits == 5 && mantissa == 0 { sign * f64::INFINITY } else { f64::NAN };
    }
    let fraction = f64::from(mantissa) / f64::from(1 << mantissa_bits);
    if exponent == 0 {
        sign * fraction * 2f64.powi(1 - bias)
    } else {
        sign * (1.0 + fraction) * 2f64.powi(exponent - bias)
    }
}

/// How one column of floats is written.
struct FloatFormat {
    dtype: DType,
    exponent: bool,
    left: usize,
    right: usize,
    exponent_digits: usize,
    plus: bool,
}

impl FloatFormat {
    /// NumPy's choice between positional and scientific notation, and the widths.
    fn new(values: &[f64], dtype: DType, plus: bool) -> FloatFormat {
        let finite: Vec<f64> = values.iter().copied().filter(|x| x.is_finite()).collect();
        let sizes = finite.iter().map(|x| x.abs()).filter(|x| *x != 0.0);
        let (low, high) = sizes.fold((f64::INFINITY, 0f64), |(l, h), x| (l.min(x), h.max(x)));
        // As many digits as the type is sure of, 8 at most (NumPy 2.3 and later).
        let large = if dtype == DType::F64 { 1e8 } else { 1e6 };
        let exponent = high > 0.0 && (high >= large || low < 1e-4 || high / low > 1000.0);
        let mut f = FloatFormat { dtype, exponent, left: 0, right: 0, exponent_digits: 2, plus };
        for &x in &finite {
            let (int, frac, exp) = f.parts(x);
            f.left = f.left.max(int.len());
            f.right = f.right.max(frac.len());
            f.exponent_digits = f.exponent_digits.max(exp);
        }
        if finite.len() < values.len() {
            let right = if exponent { f.exponent_digits + 2 + f.right } else { f.right };
            let negative = plus || values.contains(&f64::NEG_INFINITY);
            f.left =
                f.left.max(3usize.saturating_sub(right + 1)).max((3 + usize::from(negative)).saturating_sub(right + 1));
        }
        f
    }

    fn digits(&self, x: f64) -> Digits {
        let d = shortest(x, self.dtype);
        if self.exponent {
            if d.digits.len() <= PRECISION + 1 {
                return d;
            }
            // Rounded from the exact value, not from the shortest digits.
            let text = format!("{:.*e}", PRECISION, x.abs());
            let (mantissa, e) = text.split_once('e').unwrap_or((&text, "0"));
            let mut digits: Vec<u8> = mantissa.bytes().filter(u8::is_ascii_digit).map(|b| b - b'0').collect();
            while digits.last() == Some(&0) {
                digits.pop();
            }
            return Digits { digits, point: e.parse::<i32>().unwrap_or(0) + 1 };
        }
        if d.fraction_len() > PRECISION { rounded(x, PRECISION) } else { d }
    }

    fn sign(&self, x: f64) -> &'static str {
        if x.is_sign_negative() {
            "-"
        } else if self.plus {
            "+"
        } else {
            ""
        }
    }

    /// Integer part with sign, fraction, digits of the exponent.
    fn parts(&self, x: f64) -> (String, String, usize) {
        let d = self.digits(x);
        if !self.exponent {
            let (int, frac) = positional(&d);
            return (format!("{}{int}", self.sign(x)), frac, 2);
        }
        let mut digits = d.digits.iter().map(|b| char::from(b'0' + b));
        let head = digits.next().unwrap_or('0');
        let e = if d.digits.is_empty() { 0 } else { d.point - 1 };
        (format!("{}{head}", self.sign(x)), digits.collect(), e.abs().to_string().len())
    }

    fn write(&self, x: f64) -> String {
        if !x.is_finite() {
            let text = if x.is_nan() {
                if self.plus { "+nan" } else { "nan" }
            } else if x < 0.0 {
                "-inf"
            } else if self.plus {
                "+inf"
            } else {
                "inf"
            };
            let right = if self.exponent { self.exponent_digits + 2 + self.right } else { self.right };
            return format!("{text:>width$}", width = self.left + right + 1);
        }
        let left = self.left;
        if self.exponent {
            return self.write_exponent(x);
        }
        let (int, frac, _) = self.parts(x);
        format!("{int:>left$}.{frac:<right$}", right = self.right)
    }

    /// All of a column have the same number of digits: more than identify the value are those of
    /// its exact expansion, in narrow types zeros.
    fn write_exponent(&self, x: f64) -> String {
        let (left, right, digits) = (self.left, self.right, self.exponent_digits);
        let exact = matches!(self.dtype, DType::F64 | DType::F32 | DType::Tf32 | DType::C64);
        let (int, frac, e) = if exact {
            let text = format!("{:.right$e}", x.abs());
            let (mantissa, e) = text.split_once('e').unwrap_or((&text, "0"));
            let (int, frac) = mantissa.split_once('.').unwrap_or((mantissa, ""));
            (format!("{}{int}", self.sign(x)), frac.to_owned(), e.parse::<i32>().unwrap_or(0))
        } else {
            let d = self.digits(x);
            let (int, frac, _) = self.parts(x);
            (int, frac, if d.digits.is_empty() { 0 } else { d.point - 1 })
        };
        format!("{int:>left$}.{frac:0<right$}e{}{:0digits$}", if e < 0 { '-' } else { '+' }, e.abs())
    }
}

/// How the elements of one tensor are written.
enum Format {
    Float(FloatFormat),
    Int(usize),
    Bool,
    Complex(FloatFormat, FloatFormat),
}

impl Format {
    fn new(items: &[Element], dtype: DType) -> Format {
        let floats = |f: fn(&Element) -> Option<f64>| items.iter().filter_map(f).collect::<Vec<f64>>();
        match dtype {
            DType::Bool => Format::Bool,
            DType::C64 => {
                let re = floats(|e| if let Element::Complex(re, _) = e { Some(*re) } else { None });
                let im = floats(|e| if let Element::Complex(_, im) = e { Some(*im) } else { None });
                Format::Complex(FloatFormat::new(&re, dtype, false), FloatFormat::new(&im, dtype, true))
            }
            d if d.is_int() => {
                let width = items.iter().map(|e| if let Element::Int(n) = e { n.to_string().len() } else { 0 }).max();
                Format::Int(width.unwrap_or(0))
            }
            _ => {
                let values = floats(|e| if let Element::Float(x) = e { Some(*x) } else { None });
                Format::Float(FloatFormat::new(&values, dtype, false))
            }
        }
    }

    fn write(&self, e: Element) -> String {
        match (self, e) {
            (Format::Float(f), Element::Float(x)) => f.write(x),
            (Format::Int(width), Element::Int(n)) => format!("{n:>width$}"),
            (Format::Bool, Element::Bool(b)) => (if b { " True" } else { "False" }).into(),
            (Format::Complex(re, im), Element::Complex(a, b)) => {
                let imaginary = im.write(b);
                let trimmed = imaginary.trim_end();
                format!("{}{trimmed}j{}", re.write(a), " ".repeat(imaginary.len() - trimmed.len()))
            }
            _ => String::new(),
        }
    }
}

/// The text of one element on its own, as a rank-0 tensor prints.
pub fn scalar_text(t: &Tensor) -> String {
    match element(t, 0) {
        Element::Float(x) => repr(x, t.dtype),
        Element::Int(n) => n.to_string(),
        Element::Bool(b) => (if b { "True" } else { "False" }).into(),
        Element::Complex(re, im) => {
            let short = |x: f64| {
                let text = repr(x, DType::F32);
                text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
            };
            let sign = if im.is_sign_negative() && !im.is_nan() { "" } else { "+" };
            if re == 0.0 && re.is_sign_positive() {
                format!("{}j", short(im))
            } else {
                format!("({}{sign}{}j)", short(re), short(im))
            }
        }
    }
}

/// The whole tensor, as `print` shows it.
pub fn text(t: &Tensor) -> String {
    if t.has_no_elements() {
        return t.type_text();
    }
    if t.parts.is_some() {
        return t.whole().map_or_else(|_| "<no memory to show it>".into(), |t| text(&t));
    }
    if t.rank() == 0 {
        return scalar_text(t);
    }
    if t.shape.contains(&0) {
        return "[]".into();
    }
    let summary = t.elems() as u64 > SUMMARY_ABOVE;
    let mut shown = vec![];
    visit(t, summary, 0, 0, &mut |i| shown.push(element(t, i)));
    let format = Format::new(&shown, t.dtype);
    let mut writer = Writer { t, format, summary };
    writer.nested(0, 0, " ", LINE_WIDTH)
}

/// Positions along one axis that are shown; `None` stands for the dots.
fn positions(len: u64, summary: bool) -> Vec<Option<u64>> {
    if summary && 2 * EDGE_ITEMS < len {
        let tail = len - EDGE_ITEMS..len;
        return (0..EDGE_ITEMS).map(Some).chain([None]).chain(tail.map(Some)).collect();
    }
    (0..len).map(Some).collect()
}

fn visit(t: &Tensor, summary: bool, axis: usize, base: usize, f: &mut dyn FnMut(usize)) {
    if axis == t.rank() {
        return f(base);
    }
    let stride: usize = t.shape[axis + 1..].iter().product::<u64>() as usize;
    for i in positions(t.shape[axis], summary).into_iter().flatten() {
        visit(t, summary, axis + 1, base + i as usize * stride, f);
    }
}

struct Writer<'a> {
    t: &'a Tensor,
    format: Format,
    summary: bool,
}

impl Writer<'_> {
    fn nested(&mut self, axis: usize, base: usize, indent: &str, width: usize) -> String {
        let left = self.t.rank() - axis;
        if left == 0 {
            return self.format.write(element(self.t, base));
        }
        let stride: usize = self.t.shape[axis + 1..].iter().product::<u64>() as usize;
        let places = positions(self.t.shape[axis], self.summary);
        let deeper = format!("{indent} ");
        let mut s = String::new();
        if left == 1 {
            let mut line = indent.to_owned();
            for (n, place) in places.iter().enumerate() {
                let word = match place {
                    Some(i) => self.nested(axis + 1, base + *i as usize * stride, &deeper, width - 1),
                    None => "...".into(),
                };
                let full = line.chars().count() + word.chars().count() > width - 1;
                if full && line.len() > indent.len() {
                    s.push_str(line.trim_end());
                    s.push('\n');
                    line = indent.to_owned();
                }
                line.push_str(&word);
                if n + 1 < places.len() {
                    line.push(' ');
                }
            }
            s.push_str(&line);
        } else {
            for (n, place) in places.iter().enumerate() {
                s.push_str(indent);
                match place {
                    Some(i) => s.push_str(&self.nested(axis + 1, base + *i as usize * stride, &deeper, width - 1)),
                    None => s.push_str("..."),
                }
                if n + 1 < places.len() {
                    s.push_str(&"\n".repeat(left - 1));
                }
            }
        }
        format!("[{}]", s.get(indent.len()..).unwrap_or(""))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn f32s(shape: &[u64], values: &[f32]) -> Tensor {
        let bytes: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
        Tensor::from_bytes(DType::F32, shape, &bytes).unwrap_or_else(|_| panic!("memory"))
    }

    #[test]
    fn floats_print_as_numpy_prints_them() {
        let t = f32s(&[2, 3], &[-25.0, -12.5, 0.0, 12.5, 25.0, 37.5]);
        assert_eq!(text(&t), "[[-25.  -12.5   0. ]\n [ 12.5  25.   37.5]]");
        assert_eq!(text(&f32s(&[4], &[f32::INFINITY, f32::NAN, 1.0, f32::NEG_INFINITY])), "[ inf  nan   1. -inf]");
        assert_eq!(text(&f32s(&[2], &[0.001953125, 0.001953125])), "[0.00195312 0.00195312]");
        assert_eq!(text(&f32s(&[2], &[1e-10, 1.0])), "[1.e-10 1.e+00]");
        assert_eq!(text(&f32s(&[0, 3], &[])), "[]");
    }

    #[test]
    fn long_tensors_are_summarised() {
        let values: Vec<f32> = (0..1001).map(|i| i as f32).collect();
        assert_eq!(text(&f32s(&[1001], &values)), "[   0.    1.    2. ...  998.  999. 1000.]");
    }
}
