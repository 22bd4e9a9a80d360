//! What the values of a graph are while it is translated.

use crate::names::comment;
use tessera_base::DType;
use tessera_runtime::io::onnx::{self, Attribute, Held};

/// Ints are looked at while a graph is translated up to this count.
const INTS_MAX: u64 = 4096;

#[derive(Clone, Debug)]
pub enum Value<'m> {
    /// Computed when the model runs.
    Tensor(Tensor),
    /// A constant of the file.
    Constant(&'m onnx::Tensor<'m>),
    /// Ints that shapes are made of.
    Ints(Ints),
    /// The same in rows of so many, which paddings are turned over with.
    Matrix(Ints, usize),
    /// A sequence.
    List(Vec<Value<'m>>),
    /// An optional value that holds none.
    Nothing,
    /// Reported already.
    Broken,
}

/// A tensor by its expression: a name, or a field of the weights.
#[derive(Clone, Debug)]
pub struct Tensor {
    pub text: String,
    pub rank: usize,
    pub dtype: DType,
    /// Sizes that the file tells, -1 for others; empty where none is told.
    pub known: Vec<i64>,
    /// What its elements are in the file, where that is no dtype here.
    pub held: Held,
}

impl Tensor {
    pub fn new(text: impl Into<String>, rank: usize, dtype: DType) -> Tensor {
        Tensor { text: text.into(), rank, dtype, known: vec![], held: Held::Own }
    }
}

/// A vector of ints or bools, or one of them alone.
#[derive(Clone, Debug)]
pub struct Ints {
    pub elems: Vec<Int>,
    /// Of rank 0.
    pub scalar: bool,
    pub dtype: DType,
}

/// An int that is known, or an expression over sizes; or a float, which some files compute sizes with.
#[derive(Clone, Debug, PartialEq)]
pub enum Int {
    Known(i64),
    /// Not negative.
    Size(String),
    Other(String),
    /// A float that is known.
    Real(f64),
    Float(String),
}

impl Int {
    pub fn known(&self) -> Option<i64> {
        match self {
            Int::Known(n) => Some(*n),
            _ => None,
        }
    }

    /// As part of an expression.
    pub fn text(&self) -> String {
        match self {
            Int::Known(n) if *n < 0 => format!("({n})"),
            Int::Known(n) => n.to_string(),
            Int::Size(t) | Int::Other(t) | Int::Float(t) => t.clone(),
            // The number that was written down, where f32 rounded it.
            Int::Real(x) => literal(*x, if f64::from(*x as f32) == *x { DType::F32 } else { DType::F64 }),
        }
    }

    /// The same where floats of the host are computed with: a known one is the number that its dtype holds.
    fn exact(&self) -> String {
        if let Int::Real(x) = self { literal(*x, DType::F64) } else { self.text() }
    }

    /// As a float, where it is known.
    pub fn real(&self) -> Option<f64> {
        match self {
            Int::Known(n) => Some(*n as f64),
            Int::Real(x) => Some(*x),
            _ => None,
        }
    }

    pub fn is_float(&self) -> bool {
        matches!(self, Int::Real(_) | Int::Float(_))
    }

    /// Two of which one is a float: computed, or an expression.
    fn floats(&self, sign: &str, other: &Int, f: fn(f64, f64) -> f64) -> Option<Int> {
        if !self.is_float() && !other.is_float() {
            return None;
        }
        Some(match (self.real(), other.real()) {
            (Some(a), Some(b)) => Int::Real(f(a, b)),
            _ => Int::Float(format!("({} {sign} {})", self.exact(), other.exact())),
        })
    }

    /// A function of a float, by its name in the language.
    pub fn mapped(&self, name: &str, f: fn(f64) -> f64) -> Int {
        match self.real() {
            Some(x) => Int::Real(f(x)),
            None => Int::Float(format!("{name}({})", self.text())),
        }
    }

    /// As a float of this dtype.
    pub fn as_float(&self, dtype: DType) -> Int {
        match self.real() {
            Some(x) => Int::Real(rounded(x, dtype)),
            None => Int::Float(self.text()),
        }
    }

    /// Without its fraction.
    pub fn truncated(&self) -> Int {
        match self {
            Int::Real(x) => Int::Known(*x as i64),
            Int::Float(t) => Int::Other(format!("int({t})")),
            int => int.clone(),
        }
    }

    pub fn natural(&self) -> bool {
        matches!(self, Int::Size(_)) || self.known().is_some_and(|n| n >= 0)
    }

    /// An expression of two, which is not negative where both are not and `keeps`.
    fn joined(&self, sign: &str, other: &Int, keeps: bool) -> Int {
        let text = format!("({} {sign} {})", self.text(), other.text());
        if keeps && self.natural() && other.natural() { Int::Size(text) } else { Int::Other(text) }
    }

    pub fn add(&self, other: &Int) -> Option<Int> {
        if let Some(float) = self.floats("+", other, |a, b| a + b) {
            return Some(float);
        }
        Some(match (self, other) {
            (Int::Known(a), Int::Known(b)) => Int::Known(a.checked_add(*b)?),
            (Int::Known(0), x) | (x, Int::Known(0)) => x.clone(),
            (a, b) => a.joined("+", b, true),
        })
    }

    pub fn sub(&self, other: &Int) -> Option<Int> {
        if let Some(float) = self.floats("-", other, |a, b| a - b) {
            return Some(float);
        }
        Some(match (self, other) {
            (Int::Known(a), Int::Known(b)) => Int::Known(a.checked_sub(*b)?),
            (x, Int::Known(0)) => x.clone(),
            (a, b) if a == b => Int::Known(0),
            (a, b) => a.joined("-", b, false),
        })
    }

    pub fn mul(&self, other: &Int) -> Option<Int> {
        if let Some(float) = self.floats("*", other, |a, b| a * b) {
            return Some(float);
        }
        Some(match (self, other) {
            (Int::Known(a), Int::Known(b)) => Int::Known(a.checked_mul(*b)?),
            (Int::Known(0), _) | (_, Int::Known(0)) => Int::Known(0),
            (Int::Known(1), x) | (x, Int::Known(1)) => x.clone(),
            (a, b) => a.joined("*", b, true),
        })
    }

    /// The quotient without its fraction.
    pub fn div(&self, other: &Int) -> Option<Int> {
        if let Some(float) = self.floats("/", other, |a, b| a / b) {
            return Some(float);
        }
        match (self, other) {
            (Int::Known(a), Int::Known(b)) => a.checked_div(*b).map(Int::Known),
            (x, Int::Known(1)) => Some(x.clone()),
            (a, b) if a.natural() && b.natural() => Some(a.joined("//", b, true)),
            (a, Int::Known(b)) if *b > 0 => {
                let a = a.text();
                Some(Int::Other(format!("({a} // {b} if {a} >= 0 else -(-{a} // {b}))")))
            }
            _ => None,
        }
    }

    /// The remainder with the sign of the divisor.
    pub fn rem(&self, other: &Int) -> Option<Int> {
        if self.is_float() || other.is_float() {
            return None;
        }
        match (self, other) {
            (_, Int::Known(0)) => None,
            (Int::Known(a), Int::Known(b)) if *b != 0 => {
                let r = a.checked_rem(*b)?;
                Some(Int::Known(if r != 0 && (r < 0) != (*b < 0) { r + b } else { r }))
            }
            (a, b) => Some(a.joined("%", b, true)),
        }
    }

    pub fn max(&self, other: &Int) -> Option<Int> {
        if self.is_float() || other.is_float() {
            return Some(match (self.real(), other.real()) {
                (Some(a), Some(b)) => Int::Real(a.max(b)),
                _ => Int::Float(format!("max({}, {})", self.exact(), other.exact())),
            });
        }
        Some(match (self, other) {
            (Int::Known(a), Int::Known(b)) => Int::Known(*a.max(b)),
            (a, b) if a == b => a.clone(),
            (a, b) => {
                let text = format!("max({}, {})", a.text(), b.text());
                if a.natural() || b.natural() { Int::Size(text) } else { Int::Other(text) }
            }
        })
    }

    pub fn min(&self, other: &Int) -> Option<Int> {
        if self.is_float() || other.is_float() {
            return Some(match (self.real(), other.real()) {
                (Some(a), Some(b)) => Int::Real(a.min(b)),
                _ => Int::Float(format!("min({}, {})", self.exact(), other.exact())),
            });
        }
        Some(match (self, other) {
            (Int::Known(a), Int::Known(b)) => Int::Known(*a.min(b)),
            (a, b) if a == b => a.clone(),
            (a, b) => {
                let text = format!("min({}, {})", a.text(), b.text());
                if a.natural() && b.natural() { Int::Size(text) } else { Int::Other(text) }
            }
        })
    }

    /// A comparison of two that depends on sizes.
    pub fn compared(&self, sign: &str, other: &Int) -> Int {
        Int::Other(format!("({} {sign} {})", self.exact(), other.exact()))
    }

    /// Whether both are equal, where that does not depend on sizes.
    pub fn equals(&self, other: &Int) -> Option<bool> {
        match (self, other) {
            (Int::Known(a), Int::Known(b)) => Some(a == b),
            (a, b) if a == b => Some(true),
            (Int::Size(_), Int::Known(n)) | (Int::Known(n), Int::Size(_)) if *n < 0 => Some(false),
            _ => None,
        }
    }
}

impl Ints {
    /// The expression of a tensor of these ints.
    pub fn tensor(&self) -> Tensor {
        let d = self.dtype;
        let elems: Vec<String> = self.elems.iter().map(|e| bool_or_int(e, d)).collect();
        let text = match (self.scalar, elems.as_slice()) {
            (true, [one]) => format!("op.full((), {one}, dtype={d})"),
            (_, []) => format!("op.zeros((0,), dtype={d})"),
            _ if d == DType::Bool => format!("op.array([{}])", elems.join(", ")),
            _ => format!("op.array([{}], dtype={d})", elems.join(", ")),
        };
        Tensor::new(text, usize::from(!self.scalar), d)
    }
}

/// An int as part of an expression, or a bool.
pub fn bool_or_int(e: &Int, dtype: DType) -> String {
    match (e, dtype) {
        (Int::Known(n), DType::Bool) => (if *n == 0 { "False" } else { "True" }).to_owned(),
        (Int::Real(x), d) => literal(*x, d),
        (e, _) => e.text(),
    }
}

/// A float as a dtype holds it.
pub fn rounded(x: f64, dtype: DType) -> f64 {
    match dtype {
        DType::F32 => f64::from(x as f32),
        DType::F16 => half::f16::from_f64(x).to_f64(),
        DType::Bf16 => half::bf16::from_f64(x).to_f64(),
        _ => x,
    }
}

impl Value<'_> {
    /// Of its elements, where it is known.
    pub fn dtype(&self) -> Option<DType> {
        match self {
            Value::Tensor(t) => Some(t.dtype),
            Value::Constant(t) => t.dtype().ok(),
            Value::Ints(ints) | Value::Matrix(ints, _) => Some(ints.dtype),
            Value::List(_) | Value::Nothing | Value::Broken => None,
        }
    }

    /// What its elements are in the file, where that is no dtype here.
    pub fn held(&self) -> Held {
        match self {
            Value::Tensor(t) => t.held,
            Value::Constant(t) => t.held(),
            _ => Held::Own,
        }
    }

    /// Its dims, where it is one tensor.
    pub fn rank(&self) -> Option<usize> {
        match self {
            Value::Tensor(t) => Some(t.rank),
            Value::Constant(t) => Some(t.dims.len()),
            Value::Ints(ints) => Some(usize::from(!ints.scalar)),
            Value::Matrix(..) => Some(2),
            Value::List(_) | Value::Nothing | Value::Broken => None,
        }
    }

    /// The ints of a constant of rank 0 or 1, or of what is computed of sizes.
    pub fn ints(&self) -> Option<Ints> {
        match self {
            Value::Ints(ints) => Some(ints.clone()),
            Value::Constant(t) => {
                let dtype = t.dtype().ok().filter(|d| matches!(d, DType::I64 | DType::I32 | DType::Bool))?;
                let small = t.elems().is_some_and(|n| n <= INTS_MAX);
                if t.dims.len() > 1 || !small || t.held() != Held::Own {
                    return None;
                }
                let elems = t.ints().ok()?.into_iter().map(Int::Known).collect();
                Some(Ints { elems, scalar: t.dims.is_empty(), dtype })
            }
            _ => None,
        }
    }

    /// Floats that are computed while a file is translated: constants of one element, and what is made of them and of sizes.
    pub fn numbers(&self) -> Option<Ints> {
        if let Some(ints) = self.ints() {
            return Some(ints);
        }
        let (x, rank, dtype) = self.number().filter(|(_, rank, _)| *rank <= 1)?;
        Some(Ints { elems: vec![Int::Real(x)], scalar: rank == 0, dtype })
    }

    /// The same of constants of a few elements.
    pub fn few_numbers(&self) -> Option<Ints> {
        let Value::Constant(t) = self else { return self.numbers() };
        if t.dims.len() != 1 || t.elems().is_none_or(|n| n > 8) || !t.dtype().is_ok_and(DType::is_float) {
            return self.numbers();
        }
        let elems = t.floats().ok()?.into_iter().map(Int::Real).collect();
        Some(Ints { elems, scalar: false, dtype: t.dtype().ok()? })
    }

    /// The one int that is known, of any dtype.
    pub fn whole(&self) -> Option<i64> {
        match (self.ints(), self) {
            (Some(ints), _) => ints.elems.first().and_then(Int::known),
            (None, Value::Constant(t)) if t.elems() == Some(1) && t.held() == Held::Own && t.dtype().ok()?.is_int() => {
                t.ints().ok()?.first().copied()
            }
            _ => None,
        }
    }

    /// The one element of a constant of floats, with its rank.
    pub fn number(&self) -> Option<(f64, usize, DType)> {
        let Value::Constant(t) = self else { return None };
        let dtype = t.dtype().ok()?;
        let one = t.dims.iter().all(|n| *n == 1) && dtype.is_float();
        one.then(|| Some((t.first_float().ok()?, t.dims.len(), dtype)))?
    }
}

/// A float as a literal that reads back to it; in brackets where it is negative.
pub fn literal(x: f64, dtype: DType) -> String {
    let digits = match dtype {
        DType::F64 => format!("{:?}", x.abs()),
        _ => format!("{:?}", x.abs() as f32),
    };
    match () {
        () if x.is_nan() => "math.nan".into(),
        () if x == f64::INFINITY => "math.inf".into(),
        () if x == f64::NEG_INFINITY => "(-math.inf)".into(),
        () if x.is_sign_negative() => format!("(-{digits})"),
        () => digits,
    }
}

/// The positions that a slice with these bounds takes of `count`, as in Python.
pub fn positions(start: i64, end: i64, step: i64, count: usize) -> Vec<usize> {
    let n = count as i64;
    let (low, high) = if step > 0 { (0, n) } else { (-1, n - 1) };
    let place = |at: i64| if at < 0 { at.saturating_add(n) } else { at }.clamp(low, high);
    let (mut at, end) = (place(start), place(end));
    let mut out = vec![];
    while step != 0 && (if step > 0 { at < end } else { at > end }) {
        out.push(at as usize);
        at = at.saturating_add(step);
    }
    out
}

/// A tuple of ints.
pub fn tuple(ints: &[Int]) -> String {
    let texts: Vec<String> = ints.iter().map(Int::text).collect();
    format!("({}{})", texts.join(", "), if texts.len() == 1 { "," } else { "" })
}

/// The texts of an attribute; none of one of another kind.
pub fn texts(value: &Attribute) -> Vec<String> {
    match value {
        Attribute::Text(t) => vec![String::from_utf8_lossy(t).into_owned()],
        Attribute::Texts(all) => all.iter().map(|t| (*t).to_owned()).collect(),
        _ => vec![],
    }
}

/// An attribute in a few words.
pub fn shown(value: &Attribute) -> String {
    let list = |all: Vec<String>| match all.len() {
        0..=8 => format!("[{}]", all.join(", ")),
        count => format!("a list of {count}"),
    };
    match value {
        Attribute::Int(n) => n.to_string(),
        Attribute::Float(x) => x.to_string(),
        Attribute::Text(_) => format!("`{}`", comment(&texts(value).concat())),
        Attribute::Texts(_) => list(texts(value).iter().map(|t| format!("`{}`", comment(t))).collect()),
        Attribute::Ints(v) => list(v.iter().map(i64::to_string).collect()),
        Attribute::Floats(v) => list(v.iter().map(f32::to_string).collect()),
        Attribute::Tensor(_) => "a tensor".into(),
        Attribute::Graph(_) => "a graph".into(),
        Attribute::Of(name) => format!("the attribute `{}` of a function", comment(name)),
        Attribute::Other => "of a kind that has no counterpart".into(),
    }
}
