//! Functions of the host library.

use crate::machine::{Machine, R};
use crate::value::{Value, key_value};
use tessera_abi::rt::RtFn;
use tessera_base::{Code, Span, bug};
use tessera_core::builtins::{How, Made};
use tessera_core::ir::*;
use tessera_core::ty::Ty;
use tessera_ops::numbers::NumberOp;
use tessera_runtime::ffi::Given;
use tessera_trace::scalar::Known;

impl Machine<'_> {
    pub fn builtin(&mut self, function: Builtin, args: &[TExpr], ty: &Ty, span: Span) -> R<Value> {
        if function == Builtin::dist_show {
            return self.unknown(span, "where the parts of a tensor lie");
        }
        let values = self.exprs(args)?;
        if let How::Number(op) = function.def().how {
            let Some(known) = values.iter().map(Value::scalar).collect::<Option<Vec<_>>>() else {
                return self.broken(span, "a number");
            };
            return self.applied(op, &known, span);
        }
        let mut given: Vec<Given> = values.iter().zip(args).map(|(v, e)| self.given(v, &e.ty)).collect();
        let func = match function.def().how {
            How::Direct(func) => func,
            How::Typed(func) => {
                given.push(self.given_type(ty));
                func
            }
            How::Valued(func, which) => {
                given.push(self.given_type(&args[which].ty));
                func
            }
            How::Numbered(func, number) => {
                given.push(Given::Number(number));
                func
            }
            How::Number(op) => bug!("`{}` is no function of the runtime", op.def().name),
            How::Made(made) => return self.made(made, args, &values, ty, span),
        };
        self.rt(func, given, ty, span)
    }

    /// What takes more than a function of the runtime.
    fn made(&mut self, made: Made, args: &[TExpr], values: &[Value], ty: &Ty, span: Span) -> R<Value> {
        match (made, values) {
            (Made::Print, _) => self.print(args, values, span),
            (Made::NoSum, _) => self.error(Code::E0711, span, NO_SUM),
            (Made::Len, [v]) => self.len(v, span),
            (Made::Size, [Value::Tensor(t)]) => {
                let mut size = Known::Int(1);
                for &n in &t.shape {
                    size = self.known(NumberOp::int_mul, &[size, Known::Int(n as i64)], span)?;
                }
                Ok(size.into())
            }
            (Made::Least, [first, rest @ ..]) => self.extreme(false, first, rest, span),
            (Made::Greatest, [first, rest @ ..]) => self.extreme(true, first, rest, span),
            (Made::Sum, [list]) => {
                let func = if matches!(ty, Ty::Float) { RtFn::list_sum_float } else { RtFn::list_sum_int };
                let given = vec![self.given(list, &args[0].ty)];
                self.rt(func, given, ty, span)
            }
            (Made::Items, [Value::Dict(entries)]) => {
                let item = |(k, v): (_, &Value)| Value::record(vec![key_value(k), v.clone()]);
                Ok(Value::list(entries.iter().map(item).collect()))
            }
            (Made::Tile, _) => self.broken(span, "a tile program around this"),
            (Made::Len | Made::Size | Made::Least | Made::Greatest | Made::Sum | Made::Items, _) => {
                self.broken(span, "a value of another type")
            }
        }
    }

    fn known(&mut self, op: NumberOp, operands: &[Known], span: Span) -> R<Known> {
        match self.applied(op, operands, span)?.scalar() {
            Some(k) => Ok(k),
            None => self.broken(span, "a number"),
        }
    }

    fn len(&mut self, value: &Value, span: Span) -> R<Value> {
        let n = match value {
            Value::Str(s) => s.chars().count(),
            Value::List(items) | Value::Record(items) => items.len(),
            Value::Dict(entries) => entries.len(),
            Value::Tensor(t) if !t.shape.is_empty() => t.shape[0] as usize,
            Value::Tensor(_) => {
                let args = vec![self.given(value, &Ty::AnyTensor), Given::Number(0)];
                return self.rt(RtFn::tensor_dim, args, &Ty::int(), span);
            }
            _ => return self.broken(span, "a value with a length"),
        };
        Ok(Value::Int(n as i64))
    }

    /// `min(a, b, …)`: the first of equal values.
    fn extreme(&mut self, largest: bool, first: &Value, rest: &[Value], span: Span) -> R<Value> {
        let mut best = first.clone();
        for next in rest {
            best = match (&best, next) {
                (Value::Str(a), Value::Str(b)) => {
                    if if largest { b > a } else { b < a } {
                        next.clone()
                    } else {
                        best
                    }
                }
                (a, b) => match (a.scalar(), b.scalar()) {
                    (Some(a), Some(b)) => {
                        let op = match (a, largest) {
                            (Known::Float(_), false) => NumberOp::float_min,
                            (Known::Float(_), true) => NumberOp::float_max,
                            (_, false) => NumberOp::int_min,
                            (_, true) => NumberOp::int_max,
                        };
                        self.applied(op, &[a, b], span)?
                    }
                    _ => return self.broken(span, "a number"),
                },
            };
        }
        Ok(best)
    }

    /// The separator, the end, and then the values.
    fn print(&mut self, args: &[TExpr], values: &[Value], span: Span) -> R<Value> {
        let ([_, _, args @ ..], [sep, end, values @ ..]) = (args, values) else {
            return self.broken(span, "a separator and an end");
        };
        let piece = |m: &mut Self, v: &Value, default: &str| match v {
            Value::Str(s) => m.text(s),
            _ => m.text(default),
        };
        for (i, (value, e)) in values.iter().zip(args).enumerate() {
            if i > 0 {
                let sep = piece(self, sep, " ");
                self.rt(RtFn::print_text, vec![sep], &Ty::None, span)?;
            }
            let given = vec![self.given(value, &e.ty), self.given_type(&e.ty)];
            self.rt(RtFn::print_value, given, &Ty::None, span)?;
        }
        let end = piece(self, end, "\n");
        self.rt(RtFn::print_text, vec![end], &Ty::None, span)
    }
}
