//! Functions of the host library that have a meaning while tracing.

use super::scalar::{Kind, Known, ScalarOp};
use super::value::{Key, Scalar, Value};
use super::{NODES_MAX, R, Tracer};
use std::sync::Arc;
use tessera_base::{BinOp, CmpOp};
use tessera_base::{Code, Span};
use tessera_core::ir::{NO_SUM, SUM_OF_NONE, TExpr};

/// Functions of one float by their number in the row `math` of `abi::rt`.
const MATH: &[&str] = &[
    "sqrt", "exp", "log", "sin", "cos", "tan", "floor", "ceil", "tanh", "log2", "log10", "trunc", "expm1", "log1p",
    "asin", "acos", "atan", "sinh", "cosh", "erf",
];

/// A dict's key as a value.
pub(super) fn key_value(key: &Key) -> Value {
    match key {
        Key::Int(n) => Value::int(*n),
        Key::Str(s) => Value::Str(s.clone()),
    }
}

impl Tracer<'_> {
    pub(super) fn builtin(&mut self, name: &str, args: &[TExpr], span: Span) -> R<Value> {
        if let Some(value) = self.tile_builtin(name, args, span)? {
            return Ok(value);
        }
        let values = self.evals(args)?;
        if let ("sizes.differ", [Value::Str(text), sizes]) = (name, &values[..]) {
            return Err(self.sizes_differ(text, sizes, span)?);
        }
        if name == SUM_OF_NONE {
            return Err(self.error(Code::E0711, span, NO_SUM));
        }
        if let Some(short) = name.strip_prefix("math.") {
            return self.math(short, &values, span);
        }
        if let Some(value) = self.on_list(name, &values, span)? {
            return Ok(value);
        }
        if let Some(value) = self.on_dict(name, &values, span)? {
            return Ok(value);
        }
        match (name, &values[..]) {
            ("len", [v]) => self.len(v, span),
            ("range", [start, stop, step]) => self.range([start, stop, step], span),
            ("int.abs" | "float.abs" | "abs", [Value::Scalar(x)]) => self.scalar_op(ScalarOp::Abs, &[x], span),
            ("float.round", [Value::Scalar(x)]) => self.scalar_op(ScalarOp::Round, &[x], span),
            ("min" | "max", [first, rest @ ..]) => self.extreme(name, first, rest, span),
            ("tensor.size", [Value::Tensor(t)]) => {
                let n = self.ty(*t).elems().and_then(|n| i64::try_from(n).ok());
                n.map(Value::int).ok_or_else(|| self.error(Code::E0701, span, "the tensor has more than 2^63 elements"))
            }
            ("str.join", [Value::Str(sep), Value::List(parts)]) => {
                let texts = parts.iter().map(|p| self.show(p, false, span)).collect::<R<Vec<_>>>()?;
                Ok(Value::str(texts.join(sep)))
            }
            ("str.upper", [Value::Str(s)]) => Ok(Value::str(s.to_uppercase())),
            ("str.lower", [Value::Str(s)]) => Ok(Value::str(s.to_lowercase())),
            ("str.startswith", [Value::Str(s), Value::Str(t)]) => Ok(Value::bool(s.starts_with(&**t))),
            ("str.endswith", [Value::Str(s), Value::Str(t)]) => Ok(Value::bool(s.ends_with(&**t))),
            ("str.list", [Value::Str(s)]) => Ok(Value::list(s.chars().map(|c| Value::str(c.to_string())).collect())),
            _ => {
                let message = format!("`{name}` cannot be part of a graph function");
                Err(self.error(Code::E0301, span, message))
            }
        }
    }

    fn scalar_op(&mut self, op: ScalarOp, operands: &[&Scalar], span: Span) -> R<Value> {
        let operands: Vec<Scalar> = operands.iter().map(|&s| s.clone()).collect();
        Ok(Value::Scalar(self.apply(op, &operands, span)?))
    }

    fn len(&mut self, value: &Value, span: Span) -> R<Value> {
        let n = match value {
            Value::Str(s) => s.chars().count(),
            Value::List(items) | Value::Record(items) => items.len(),
            Value::Dict(entries) => entries.len(),
            Value::Tensor(t) => self.ty(*t).shape.first().copied().unwrap_or(0) as usize,
            other => return Err(self.broken(span, "a value with a length", other)),
        };
        Ok(Value::int(n as i64))
    }

    fn range(&mut self, bounds: [&Value; 3], span: Span) -> R<Value> {
        let mut known = [0; 3];
        for (k, b) in known.iter_mut().zip(bounds) {
            *k = self.int_value(b, "a bound of `range`", span)?;
        }
        let [start, stop, step] = known;
        if step == 0 {
            return Err(self.error(Code::E0711, span, "the step of `range` is 0"));
        }
        let distance =
            if step > 0 { i128::from(stop) - i128::from(start) } else { i128::from(start) - i128::from(stop) };
        let count = (distance.max(0) as u128).div_ceil(u128::from(step.unsigned_abs()));
        if count > NODES_MAX as u128 {
            return Err(self.error(
                Code::E0901,
                span,
                format!("a list of {count} elements is too long for a graph function"),
            ));
        }
        Ok(Value::list((0..count as i64).map(|i| Value::int(start + i * step)).collect()))
    }

    /// `min(a, b, …)` or of a list.
    fn extreme(&mut self, name: &str, first: &Value, rest: &[Value], span: Span) -> R<Value> {
        let mut best = first.clone();
        for next in rest {
            best = match (&best, next) {
                (Value::Scalar(a), Value::Scalar(b)) => {
                    let op = if name.ends_with("min") { ScalarOp::Min } else { ScalarOp::Max };
                    self.scalar_op(op, &[a, b], span)?
                }
                (Value::Str(a), Value::Str(b)) => {
                    let better = if name.ends_with("min") { b < a } else { b > a };
                    Value::Str(if better { b.clone() } else { a.clone() })
                }
                (other, _) => return Err(self.broken(span, "a number", other)),
            };
        }
        Ok(best)
    }

    fn on_list(&mut self, name: &str, values: &[Value], span: Span) -> R<Option<Value>> {
        let [Value::List(items), rest @ ..] = values else { return Ok(None) };
        Ok(Some(match (name, rest) {
            ("list.min" | "list.max" | "min" | "max", []) => {
                let Some((first, rest)) = items.split_first() else {
                    return Err(self.error(Code::E0711, span, "the list is empty"));
                };
                self.extreme(name, first, rest, span)?
            }
            ("list.sum", []) => {
                let float = matches!(items.first(), Some(Value::Scalar(s)) if s.kind() == Kind::Float);
                let zero = if float { Known::Float(0.0) } else { Known::Int(0) };
                let mut sum = Scalar::Known(zero);
                for item in items.iter() {
                    let Value::Scalar(s) = item else { return Err(self.broken(span, "a number", item)) };
                    let add = ScalarOp::Arith { op: BinOp::Add, int_operands: false };
                    sum = self.apply(add, &[sum, s.clone()], span)?;
                }
                Value::Scalar(sum)
            }
            ("list.any" | "list.all", []) => {
                let any = name == "list.any";
                let mut result = !any;
                for item in items.iter() {
                    let truth = self.truth_of(item, span)?;
                    if self.known_bool(&truth, span)? == any {
                        result = any;
                        break;
                    }
                }
                Value::bool(result)
            }
            ("list.reversed", []) => Value::list(items.iter().rev().cloned().collect()),
            ("list.sorted", order) => {
                let mut items = items.to_vec();
                self.sort(&mut items, order.first().cloned(), span)?;
                Value::list(items)
            }
            ("list.copy", []) => Value::List(items.clone()),
            ("list.index" | "list.count", [x]) => {
                let mut found = vec![];
                for (i, item) in items.iter().enumerate() {
                    let equal = self.compare(CmpOp::Eq, item, x, span)?;
                    if self.known_bool(&equal, span)? {
                        found.push(i as i64);
                    }
                }
                match (name, found.first()) {
                    ("list.count", _) => Value::int(found.len() as i64),
                    (_, Some(&i)) => Value::int(i),
                    _ => return Err(self.error(Code::E0703, span, "the list has no such element")),
                }
            }
            _ => return Ok(None),
        }))
    }

    fn on_dict(&mut self, name: &str, values: &[Value], span: Span) -> R<Option<Value>> {
        let [Value::Dict(entries), rest @ ..] = values else { return Ok(None) };
        Ok(Some(match (name, rest) {
            ("dict.keys", []) => Value::list(entries.keys().map(key_value).collect()),
            ("dict.values", []) => Value::list(entries.values().cloned().collect()),
            ("dict.items", []) => {
                Value::list(entries.iter().map(|(k, v)| Value::record(vec![key_value(k), v.clone()])).collect())
            }
            ("dict.get", [key, default]) => {
                let key = self.key(key, span)?;
                entries.get(&key).unwrap_or(default).clone()
            }
            ("dict.copy", []) => Value::Dict(Arc::clone(entries)),
            _ => return Ok(None),
        }))
    }

    fn math(&mut self, name: &str, values: &[Value], span: Span) -> R<Value> {
        let scalars: Vec<Scalar> = values
            .iter()
            .map(|v| match v {
                Value::Scalar(s) => Ok(s.clone()),
                other => Err(self.broken(span, "a number", other)),
            })
            .collect::<R<_>>()?;
        if let (Some(number), [x]) = (MATH.iter().position(|n| *n == name), &scalars[..]) {
            let value = self.scalar_op(ScalarOp::Math(number as i64), &[x], span)?;
            return match (name, &value) {
                ("floor" | "ceil" | "trunc", Value::Scalar(s)) => self.scalar_op(ScalarOp::FloatToInt, &[s], span),
                _ => Ok(value),
            };
        }
        match (name, &scalars[..]) {
            ("fabs", [x]) => self.scalar_op(ScalarOp::Abs, &[x], span),
            ("atan2", [x, y]) => self.scalar_op(ScalarOp::Math2(0), &[x, y], span),
            ("pow", [x, y]) => self.scalar_op(ScalarOp::Math2(1), &[x, y], span),
            ("hypot", [x, y]) => self.scalar_op(ScalarOp::Math2(2), &[x, y], span),
            _ => {
                let message = format!("`math.{name}` is not supported in a graph function");
                Err(self.error(Code::E0690, span, message))
            }
        }
    }
}
