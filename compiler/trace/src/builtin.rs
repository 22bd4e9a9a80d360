//! Functions of the host library that have a meaning while tracing.

use super::scalar::{Kind, Known};
use super::value::{Key, Scalar, Value};
use super::{NODES_MAX, R, Tracer};
use indexmap::IndexMap;
use tessera_base::{CmpOp, Code, Span, bug};
use tessera_core::builtins::{How, Traced, Tracing};
use tessera_core::ir::{Builtin, NO_SUM, TExpr};
use tessera_core::ty::Ty;
use tessera_ops::numbers::NumberOp;

/// A dict's key as a value.
pub(super) fn key_value(key: &Key) -> Value {
    match key {
        Key::Int(n) => Value::int(*n),
        Key::Bool(b) => Value::Scalar(Scalar::Known(Known::Bool(*b))),
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
                    let op = match (a.kind(), greatest) {
                        (Kind::Float, false) => NumberOp::float_min,
                        (Kind::Float, true) => NumberOp::float_max,
                        (_, false) => NumberOp::int_min,
                        (_, true) => NumberOp::int_max,
                    };
                    Value::Scalar(self.apply(op.into(), &[a.clone(), b.clone()], span)?)
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
                    let name = if what == Tracing::ListGreatest { "max" } else { "min" };
                    return Err(self.error(Code::E0711, span, format!("`{name}` of an empty list")));
                };
                self.extreme(what == Tracing::ListGreatest, first, rest, span)?
            }
            (Tracing::Sum, []) => {
                let float = matches!(items.first(), Some(Value::Scalar(s)) if s.kind() == Kind::Float);
                let (zero, add) = match float {
                    true => (Known::Float(0.0), NumberOp::float_add),
                    false => (Known::Int(0), NumberOp::int_add),
                };
                let mut sum = Scalar::Known(zero);
                for item in items {
                    let Value::Scalar(s) = item else { return Err(self.broken(span, "a number", item)) };
                    sum = self.apply(add.into(), &[sum, s.clone()], span)?;
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
            (Tracing::Index, [x]) => Value::int(self.position_of(items, x, span)? as i64),
            (Tracing::Count, [x]) => {
                let mut count = 0;
                for item in items {
                    let equal = self.compare(CmpOp::Eq, item, x, span)?;
                    count += i64::from(self.known_bool(&equal, span)?);
                }
                Value::int(count)
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
        let How::Number(op) = function.def().how else { bug!("`{}` is no operation on numbers", function.name()) };
        let mut operands = vec![];
        for v in values {
            match v {
                Value::Scalar(s) => operands.push(s.clone()),
                other => return Err(self.broken(span, "a number", other)),
            }
        }
        Ok(Value::Scalar(self.apply(op.into(), &operands, span)?))
    }
}
