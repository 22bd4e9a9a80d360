//! Comparisons, conversions, and containers of host values.

use super::known::{Arg, For};
use super::scalar::{Kind, Known, ScalarOp, diagnostic};
use super::value::{Scalar, Value};
use super::{R, Tracer};
use std::cmp::Ordering;
use std::sync::Arc;
use tessera_abi::rt::RtFn;
use tessera_abi::slice::Slice;
use tessera_base::{CmpOp, Code, DType, Span, bug};
use tessera_core::ir::*;
use tessera_core::ty::Ty;
use tessera_ops::numbers::NumberOp;
use tessera_runtime::number::{parse_float, parse_int, str_repr};
use tessera_runtime::slice::position;

/// A comparison of scalars of the kind of this one.
fn compared(op: CmpOp, of: &Scalar) -> ScalarOp {
    NumberOp::compare(op, of.kind().in_programs()).into()
}

impl Tracer<'_> {
    pub(super) fn compare(&mut self, op: CmpOp, l: &Value, r: &Value, span: Span) -> R<Scalar> {
        let bool = |b| Ok(Scalar::Known(Known::Bool(b)));
        match op {
            CmpOp::In => return self.contains(r, l, span),
            CmpOp::NotIn => {
                let found = self.contains(r, l, span)?;
                return self.apply(NumberOp::bool_not.into(), &[found], span);
            }
            CmpOp::Eq | CmpOp::Is | CmpOp::Ne | CmpOp::IsNot => {
                if let (Value::Scalar(a), Value::Scalar(b)) = (l, r) {
                    return self.apply(compared(op, a), &[a.clone(), b.clone()], span);
                }
                let equal = self.equal(l, r, span)?;
                return bool(equal == matches!(op, CmpOp::Eq | CmpOp::Is));
            }
            _ => {}
        }
        if let (Value::Scalar(a), Value::Scalar(b)) = (l, r) {
            return self.apply(compared(op, a), &[a.clone(), b.clone()], span);
        }
        let order = self.order(l, r, span)?;
        bool(match op {
            CmpOp::Lt => order == Some(Ordering::Less),
            CmpOp::Le => matches!(order, Some(Ordering::Less | Ordering::Equal)),
            CmpOp::Gt => order == Some(Ordering::Greater),
            _ => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
        })
    }

    /// Whether two values are equal; scalars in them must be known.
    fn equal(&mut self, l: &Value, r: &Value, span: Span) -> R<bool> {
        Ok(match (l, r) {
            (Value::Scalar(a), Value::Scalar(b)) => {
                let (a, b) = (self.known(a, "this comparison", span)?, self.known(b, "this comparison", span)?);
                a.kind() == b.kind()
                    && ScalarOp::from(NumberOp::compare(CmpOp::Eq, a.kind().in_programs())).apply(&[a, b])
                        == Ok(Known::Bool(true))
            }
            (Value::Str(a), Value::Str(b)) => a == b,
            (Value::DType(a), Value::DType(b)) => a == b,
            (Value::None, Value::None) => true,
            (Value::List(a), Value::List(b)) | (Value::Record(a), Value::Record(b)) => {
                if a.len() != b.len() {
                    return Ok(false);
                }
                for (a, b) in a.iter().zip(b.iter()) {
                    if !self.equal(a, b, span)? {
                        return Ok(false);
                    }
                }
                true
            }
            (Value::Tensor(_), Value::Tensor(_)) => {
                let message = "a graph function cannot compare containers of tensors";
                return Err(self.error(Code::E0301, span, message));
            }
            _ => false,
        })
    }

    pub(super) fn order(&mut self, l: &Value, r: &Value, span: Span) -> R<Option<Ordering>> {
        Ok(match (l, r) {
            (Value::Scalar(a), Value::Scalar(b)) => {
                match (self.known(a, "this comparison", span)?, self.known(b, "this comparison", span)?) {
                    (Known::Int(a), Known::Int(b)) => Some(a.cmp(&b)),
                    (Known::Bool(a), Known::Bool(b)) => Some(a.cmp(&b)),
                    (Known::Float(a), Known::Float(b)) => a.partial_cmp(&b),
                    _ => None,
                }
            }
            (Value::Str(a), Value::Str(b)) => Some(a.cmp(b)),
            (Value::List(a), Value::List(b)) | (Value::Record(a), Value::Record(b)) => {
                for (a, b) in a.iter().zip(b.iter()) {
                    match self.order(a, b, span)? {
                        Some(Ordering::Equal) => {}
                        other => return Ok(other),
                    }
                }
                Some(a.len().cmp(&b.len()))
            }
            _ => return Err(self.broken(span, "a value with an order", l)),
        })
    }

    fn contains(&mut self, container: &Value, element: &Value, span: Span) -> R<Scalar> {
        let found = match (container, element) {
            (Value::Str(text), Value::Str(part)) => text.contains(&**part),
            (Value::Dict(entries), key) => {
                let key = self.key(key, span)?;
                entries.contains_key(&key)
            }
            (Value::List(items) | Value::Record(items), element) => {
                let mut found = false;
                for item in items.iter() {
                    found = found || self.equal(item, element, span)?;
                }
                found
            }
            (other, _) => return Err(self.broken(span, "a container", other)),
        };
        Ok(Scalar::Known(Known::Bool(found)))
    }

    /// Where an element stands first.
    pub(super) fn position_of(&mut self, items: &[Value], x: &Value, span: Span) -> R<usize> {
        for (i, item) in items.iter().enumerate() {
            if self.equal(item, x, span)? {
                return Ok(i);
            }
        }
        let shown = self.show(x, true, span)?;
        Err(self.error(Code::E0711, span, format!("{shown} is not in the list")))
    }

    /// A key that a dict does not have.
    pub(super) fn no_key(&self, key: &super::value::Key, span: Span) -> Box<tessera_base::Diagnostic> {
        self.error(Code::E0704, span, format!("the key {} is not in the dict", show_key(key)))
    }

    pub(super) fn concat(&mut self, a: Value, b: Value, span: Span) -> R<Value> {
        match (a, b) {
            (Value::Str(a), Value::Str(b)) => Ok(Value::str(format!("{a}{b}"))),
            (Value::List(mut a), Value::List(b)) => {
                Arc::make_mut(&mut a).extend(b.iter().cloned());
                Ok(Value::List(a))
            }
            (a, _) => Err(self.broken(span, "a list or a string", &a)),
        }
    }

    pub(super) fn repeat(&mut self, a: Value, n: i64, span: Span) -> R<Value> {
        let n = usize::try_from(n).unwrap_or(0);
        let len = match &a {
            Value::Str(s) => s.len(),
            Value::List(items) => items.len(),
            other => return Err(self.broken(span, "a list or a string", other)),
        };
        if len.saturating_mul(n) > super::NODES_MAX {
            return Err(self.error(Code::E0901, span, format!("{n} copies of {len} elements are too many")));
        }
        Ok(match a {
            Value::Str(s) => Value::str(s.repeat(n)),
            Value::List(items) => Value::list(items.iter().cycle().take(len * n).cloned().collect()),
            other => other,
        })
    }

    /// `base[at]` of a list, a string or a dict.
    pub(super) fn element(&mut self, base: Value, at: Value, span: Span) -> R<Value> {
        match &base {
            Value::Dict(entries) => {
                let key = self.key(&at, span)?;
                match entries.get(&key) {
                    Some(v) => Ok(v.clone()),
                    None => Err(self.no_key(&key, span)),
                }
            }
            Value::List(items) | Value::Record(items) => {
                let at = self.int_value(&at, "the index of a list", span)?;
                let at =
                    position(at, items.len(), "list").map_err(|f| Box::new(self.in_calls(*diagnostic(f, span))))?;
                Ok(items[at].clone())
            }
            Value::Str(text) => {
                let at = self.int_value(&at, "the index of a string", span)?;
                let chars: Vec<char> = text.chars().collect();
                let at =
                    position(at, chars.len(), "string").map_err(|f| Box::new(self.in_calls(*diagnostic(f, span))))?;
                Ok(Value::str(chars[at].to_string()))
            }
            other => Err(self.broken(span, "a list, a string or a dict", other)),
        }
    }

    /// `base[low:high:step]` of a list or a string.
    pub(super) fn slice(&mut self, base: Value, [low, high, step]: [Option<i64>; 3], span: Span) -> R<Value> {
        let pick = |len: usize| {
            let zero = || self.error(Code::E0711, span, "the step of a slice cannot be 0");
            Slice::of(len as u64, low, high, step).map(Slice::positions).ok_or_else(zero)
        };
        match &base {
            Value::List(items) => Ok(Value::list(pick(items.len())?.map(|i| items[i].clone()).collect())),
            Value::Str(text) => {
                let chars: Vec<char> = text.chars().collect();
                Ok(Value::str(pick(chars.len())?.map(|i| chars[i]).collect::<String>()))
            }
            other => Err(self.broken(span, "a list or a string", other)),
        }
    }

    /// `int(x)`, `float(x)`, `str(x)`, `repr(x)`.
    pub(super) fn convert(&mut self, to: Convert, value: Value, ty: &Ty, span: Span) -> R<Value> {
        let kind = match to {
            Convert::Int => Kind::Int,
            Convert::Float => Kind::Float,
            Convert::Str | Convert::Repr => return self.text(&value, ty, to == Convert::Repr, span),
        };
        match &value {
            Value::Tensor(t) => Ok(Value::Scalar(self.element_as(*t, kind, span)?)),
            Value::Scalar(s) => {
                let ops: &[NumberOp] = match (s.kind(), kind) {
                    (Kind::Float, Kind::Int) => &[NumberOp::float_to_int],
                    (Kind::Bool, Kind::Int) => &[NumberOp::bool_to_int],
                    (Kind::Int, Kind::Float) => &[NumberOp::int_to_float],
                    (Kind::Bool, Kind::Float) => &[NumberOp::bool_to_int, NumberOp::int_to_float],
                    _ => &[],
                };
                let mut made = s.clone();
                for op in ops {
                    made = self.apply((*op).into(), &[made], span)?;
                }
                Ok(Value::Scalar(made))
            }
            Value::Str(text) => {
                let known = match kind {
                    Kind::Float => parse_float(text).map(Known::Float),
                    _ => parse_int(text).map(Known::Int),
                };
                let known = known.map_err(|f| Box::new(self.in_calls(*diagnostic(f, span))))?;
                Ok(Value::Scalar(Scalar::Known(known)))
            }
            other => Err(self.broken(span, "a number", other)),
        }
    }

    /// How a message shows a value whose scalars are known.
    fn show(&mut self, value: &Value, repr: bool, span: Span) -> R<String> {
        Ok(match value {
            Value::Str(s) if !repr => s.to_string(),
            Value::Str(s) => show_str(s),
            Value::Scalar(s) => self.known(s, "this text", span)?.to_string(),
            Value::None => "None".into(),
            Value::DType(d) => d.name().into(),
            Value::List(items) => format!("[{}]", self.show_all(items, span)?.join(", ")),
            Value::Record(items) => match &self.show_all(items, span)?[..] {
                [one] => format!("({one},)"),
                many => format!("({})", many.join(", ")),
            },
            other => {
                return Err(self.error(
                    Code::E0301,
                    span,
                    format!("a graph function cannot make text of {}", other.describe()),
                ));
            }
        })
    }

    fn show_all(&mut self, items: &[Value], span: Span) -> R<Vec<String>> {
        items.iter().map(|v| self.show(v, true, span)).collect()
    }

    /// `str(x)` or `repr(x)` of a value of a type.
    pub(super) fn text(&mut self, value: &Value, ty: &Ty, repr: bool, span: Span) -> R<Value> {
        if !repr && let Value::Str(_) = value {
            return Ok(value.clone());
        }
        let func = if repr { RtFn::to_repr } else { RtFn::to_str };
        self.runtime(For::Text, func, &[Arg::Value(value, ty), Arg::Type(ty)], &Ty::Str, span)
    }

    /// An f-string of values that are known.
    pub(super) fn format(&mut self, parts: &[FormatPart]) -> R<Value> {
        let mut out = String::new();
        for part in parts {
            let piece = match part {
                FormatPart::Text(text) => Value::Str(text.clone()),
                FormatPart::Value { value, repr, spec } => {
                    let v = self.eval(value)?;
                    self.formatted(v, &value.ty, *repr, spec.as_ref(), value.span)?
                }
            };
            match piece {
                Value::Str(text) => out.push_str(&text),
                other => bug!("the text of a value is {}", other.describe()),
            }
        }
        Ok(Value::str(out))
    }

    fn formatted(&mut self, value: Value, ty: &Ty, repr: bool, spec: Option<&TExpr>, span: Span) -> R<Value> {
        let Some(spec) = spec else { return self.text(&value, ty, repr, span) };
        let (value, ty) = if repr { (self.text(&value, ty, true, span)?, &Ty::Str) } else { (value, ty) };
        let spec = self.eval(spec)?;
        let args = [Arg::Value(&value, ty), Arg::Type(ty), Arg::Value(&spec, &Ty::Str)];
        self.runtime(For::Text, RtFn::format_value, &args, &Ty::Str, span)
    }

    /// The value if its type is what the annotation says.
    pub(super) fn check(
        &mut self,
        value: &TExpr,
        name: &Arc<str>,
        annotation: Span,
        dims: &[Option<TExpr>],
        ty: &Ty,
    ) -> R<Value> {
        let v = self.eval(value)?;
        let (Value::Tensor(t), Ty::Tensor(want)) = (&v, ty) else { return Ok(v) };
        let have = self.ty(*t);
        let mut wrong = want.dtype.is_some_and(|d: DType| d != have.dtype) || want.rank() != have.shape.len();
        for (i, &size) in have.shape.iter().enumerate() {
            let expected = match dims.get(i) {
                Some(Some(e)) => Some(self.int(e, "a size")?),
                _ => want.shape.get(i).and_then(|s| s.as_const()),
            };
            wrong |= expected.is_some_and(|n| n != size as i64);
        }
        if !wrong {
            return Ok(v);
        }
        let shape: Vec<String> = have.shape.iter().map(u64::to_string).chain([have.dtype.name().into()]).collect();
        let message = format!("`{name}` is declared {want} and is Tensor[{}]", shape.join(", "));
        let code = if value.ty == Ty::AnyTensor { Code::E0707 } else { Code::E0708 };
        Err(Box::new(self.error(code, annotation, message).with_label(value.span, "this value")))
    }
}

fn show_key(key: &super::value::Key) -> String {
    match key {
        super::value::Key::Int(_) | super::value::Key::Bool(_) => key.to_string(),
        super::value::Key::Str(s) => show_str(s),
    }
}

/// A string as Python quotes it.
fn show_str(s: &str) -> String {
    let mut out = String::new();
    str_repr(s, &mut out);
    out
}
