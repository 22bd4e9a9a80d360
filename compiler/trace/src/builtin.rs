//! Functions of the host library that have a meaning while tracing.

use super::scalar::{Kind, Known, ScalarOp};
use super::value::{Key, Scalar, Value};
use super::{NODES_MAX, R, Tracer};
use indexmap::IndexMap;
use tessera_base::{BinOp, CmpOp, Code, Span, bug};
use tessera_core::builtins::{Gives, How, Made, Rule, Traced, Tracing};
use tessera_core::ir::{Builtin, NO_SUM, TExpr};
use tessera_core::ty::Ty;

/// A dict's key as a value.
pub(super) fn key_value(key: &Key) -> Value {
    match key {
        Key::Int(n) => Value::int(*n),
        Key::Str(s) => Value::Str(s.clone()),
    }
}

impl Tracer<'_> {
    pub(super) fn builtin(&mut self, function: Builtin, args: &[TExpr], ty: &Ty, span: Span) -> R<Value> {
        match function.def().traced {
            Traced::As(Tracing::ProgramId | Tracing::Load | Tracing::Store) => self.tile_builtin(function, args, span),
            Traced::As(tracing) => {
                let values = self.evals(args)?;
                self.traced(function, tracing, &values, span)
            }
            Traced::Known => {
                let values = self.evals(args)?;
                self.by_runtime(function, args, &values, ty, span)
            }
            Traced::Never(why) => {
                let d =
                    self.error(Code::E0301, span, format!("`{}` cannot be part of a graph function", function.name()));
                Err(Box::new(d.note(why)))
            }
        }
    }

    fn traced(&mut self, function: Builtin, tracing: Tracing, values: &[Value], span: Span) -> R<Value> {
        match (tracing, values) {
            (Tracing::Number, _) => self.number(function, values, span),
            (Tracing::Abs, [Value::Scalar(x)]) => self.scalar_op(ScalarOp::Abs, &[x], span),
            (Tracing::Round, [Value::Scalar(x)]) => self.scalar_op(ScalarOp::Round, &[x], span),
            (Tracing::Least, [first, rest @ ..]) => self.extreme(false, first, rest, span),
            (Tracing::Greatest, [first, rest @ ..]) => self.extreme(true, first, rest, span),
            (Tracing::Len, [v]) => self.len(v, span),
            (Tracing::Range, [start, stop, step]) => self.range([start, stop, step], span),
            (Tracing::Size, [Value::Tensor(t)]) => {
                let n = self.ty(*t).elems().and_then(|n| i64::try_from(n).ok());
                n.map(Value::int).ok_or_else(|| self.error(Code::E0701, span, "the tensor has more than 2^63 elements"))
            }
            (Tracing::Differ, [Value::Str(text), sizes]) => Err(self.sizes_differ(text, sizes, span)?),
            (Tracing::NoSum, _) => Err(self.error(Code::E0711, span, NO_SUM)),
            (
                Tracing::ListLeast
                | Tracing::ListGreatest
                | Tracing::Sum
                | Tracing::Any
                | Tracing::All
                | Tracing::Sorted
                | Tracing::SortedBy
                | Tracing::Reversed
                | Tracing::Index
                | Tracing::Count,
                [Value::List(items), rest @ ..],
            ) => self.on_list(tracing, items, rest, span),
            (Tracing::Keys | Tracing::Values | Tracing::Items | Tracing::Get, [Value::Dict(entries), rest @ ..]) => {
                self.on_dict(tracing, entries, rest, span)
            }
            (_, values) => Err(self.broken(span, "a value of another type", values.first().unwrap_or(&Value::None))),
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

    /// `min(a, b, …)` or of a list: the first of equal values.
    fn extreme(&mut self, greatest: bool, first: &Value, rest: &[Value], span: Span) -> R<Value> {
        let mut best = first.clone();
        for next in rest {
            best = match (&best, next) {
                (Value::Scalar(a), Value::Scalar(b)) => {
                    let op = if greatest { ScalarOp::Max } else { ScalarOp::Min };
                    self.scalar_op(op, &[a, b], span)?
                }
                (Value::Str(a), Value::Str(b)) => {
                    let better = if greatest { b > a } else { b < a };
                    Value::Str(if better { b.clone() } else { a.clone() })
                }
                (other, _) => return Err(self.broken(span, "a number", other)),
            };
        }
        Ok(best)
    }

    fn on_list(&mut self, what: Tracing, items: &[Value], rest: &[Value], span: Span) -> R<Value> {
        Ok(match (what, rest) {
            (Tracing::ListLeast | Tracing::ListGreatest, []) => {
                let Some((first, rest)) = items.split_first() else {
                    return Err(self.error(Code::E0711, span, "the list is empty"));
                };
                self.extreme(what == Tracing::ListGreatest, first, rest, span)?
            }
            (Tracing::Sum, []) => {
                let float = matches!(items.first(), Some(Value::Scalar(s)) if s.kind() == Kind::Float);
                let zero = if float { Known::Float(0.0) } else { Known::Int(0) };
                let mut sum = Scalar::Known(zero);
                for item in items {
                    let Value::Scalar(s) = item else { return Err(self.broken(span, "a number", item)) };
                    let add = ScalarOp::Arith { op: BinOp::Add, int_operands: false };
                    sum = self.apply(add, &[sum, s.clone()], span)?;
                }
                Value::Scalar(sum)
            }
            (Tracing::Any | Tracing::All, []) => {
                let any = what == Tracing::Any;
                let mut result = !any;
                for item in items {
                    let truth = self.truth_of(item, span)?;
                    if self.known_bool(&truth, span)? == any {
                        result = any;
                        break;
                    }
                }
                Value::bool(result)
            }
            (Tracing::Reversed, []) => Value::list(items.iter().rev().cloned().collect()),
            (Tracing::Sorted, [descending]) => {
                let keys = items.to_vec();
                Value::list(self.sorted(items.to_vec(), &keys, descending, span)?)
            }
            (Tracing::SortedBy, [Value::List(keys), descending]) => {
                Value::list(self.sorted(items.to_vec(), keys, descending, span)?)
            }
            (Tracing::Index | Tracing::Count, [x]) => {
                let mut found = vec![];
                for (i, item) in items.iter().enumerate() {
                    let equal = self.compare(CmpOp::Eq, item, x, span)?;
                    if self.known_bool(&equal, span)? {
                        found.push(i as i64);
                    }
                }
                match (what, found.first()) {
                    (Tracing::Count, _) => Value::int(found.len() as i64),
                    (_, Some(&i)) => Value::int(i),
                    _ => return Err(self.error(Code::E0703, span, "the list has no such element")),
                }
            }
            (_, rest) => return Err(self.broken(span, "another argument", rest.first().unwrap_or(&Value::None))),
        })
    }

    fn on_dict(&mut self, what: Tracing, entries: &IndexMap<Key, Value>, rest: &[Value], span: Span) -> R<Value> {
        Ok(match (what, rest) {
            (Tracing::Keys, []) => Value::list(entries.keys().map(key_value).collect()),
            (Tracing::Values, []) => Value::list(entries.values().cloned().collect()),
            (Tracing::Items, []) => {
                Value::list(entries.iter().map(|(k, v)| Value::record(vec![key_value(k), v.clone()])).collect())
            }
            (Tracing::Get, [key, default]) => {
                let key = self.key(key, span)?;
                entries.get(&key).unwrap_or(default).clone()
            }
            (_, rest) => return Err(self.broken(span, "another argument", rest.first().unwrap_or(&Value::None))),
        })
    }

    /// A function of numbers.
    fn number(&mut self, function: Builtin, values: &[Value], span: Span) -> R<Value> {
        let mut x: Vec<&Scalar> = vec![];
        for v in values {
            match v {
                Value::Scalar(s) => x.push(s),
                other => return Err(self.broken(span, "a number", other)),
            }
        }
        let op = match function.def().how {
            How::Math(n) => ScalarOp::Math(n),
            How::Math2(n) => ScalarOp::Math2(n),
            How::Made(Made::IsNan) => ScalarOp::IsNan,
            How::Made(Made::IsInf) => ScalarOp::IsInf,
            How::Made(Made::IsFinite) => ScalarOp::IsFinite,
            _ => bug!("`{}` is no function of numbers", function.name()),
        };
        let value = self.scalar_op(op, &x, span)?;
        match (function.def().rule, &value) {
            (Rule::Params(_, Gives::Int), Value::Scalar(s)) => self.scalar_op(ScalarOp::FloatToInt, &[s], span),
            _ => Ok(value),
        }
    }
}
