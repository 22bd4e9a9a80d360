//! Arithmetic, truth, comparisons, conversions and texts of host values.

use crate::machine::{Machine, R};
use crate::value::Value;
use tessera_abi::rt::RtFn;
use tessera_base::{CmpOp, Span};
use tessera_core::ir::*;
use tessera_core::ty::Ty;
use tessera_ops::numbers::NumberOp;
use tessera_runtime::ffi::Given;
use tessera_trace::scalar::{Known, ScalarOp};

/// What `<` and its like ask of an order, by the sign of the comparison.
fn holds(op: CmpOp, order: i64) -> bool {
    match op {
        CmpOp::Eq | CmpOp::Is | CmpOp::In => order == 0,
        CmpOp::Ne | CmpOp::IsNot | CmpOp::NotIn => order != 0,
        CmpOp::Lt => order < 0,
        CmpOp::Le => order <= 0,
        CmpOp::Gt => order > 0,
        CmpOp::Ge => order >= 0,
    }
}

fn is_equality(op: CmpOp) -> bool {
    matches!(op, CmpOp::Eq | CmpOp::Is | CmpOp::Ne | CmpOp::IsNot)
}

/// Whether the type has a part that nothing has told: the element of an empty list.
fn untold(ty: &Ty) -> bool {
    match ty {
        Ty::Unknown => true,
        Ty::List(t) => untold(t),
        Ty::Dict(k, v) => untold(k) || untold(v),
        Ty::Tuple(ts) => ts.iter().any(untold),
        Ty::Struct(s) => s.fields.iter().any(|(_, t)| untold(t)),
        _ => false,
    }
}

impl Machine<'_> {
    /// A form that is an operation on numbers.
    pub fn number_form(&mut self, e: &TExpr, operands: &[&TExpr]) -> R<Value> {
        let mut known = vec![];
        for operand in operands {
            match self.expr(operand)?.scalar() {
                Some(k) => known.push(k),
                None => return self.broken(operand.span, "a number"),
            }
        }
        match e.number_op() {
            Some(op) => self.applied(op, &known, e.span),
            None => self.broken(e.span, "an operation on numbers"),
        }
    }

    /// An operation on numbers.
    pub fn applied(&mut self, op: NumberOp, operands: &[Known], span: Span) -> R<Value> {
        ScalarOp::from(op).apply(operands).map(Value::from).map_err(|fault| self.fault(fault, span))
    }

    pub fn truth(&mut self, e: &TExpr) -> R<bool> {
        let value = self.expr(e)?;
        Ok(match &value {
            Value::Bool(_) | Value::Int(_) | Value::Float(_) => value.scalar().is_some_and(Known::truth),
            Value::Str(s) => !s.is_empty(),
            Value::None => false,
            Value::List(items) | Value::Record(items) => match e.ty {
                // A struct, or a function, is something.
                Ty::Struct(_) | Ty::FnRef(_) => true,
                _ => !items.is_empty(),
            },
            Value::Dict(entries) => !entries.is_empty(),
            Value::DType(_) | Value::Closure(..) => true,
            Value::Tensor(_) => {
                let args = vec![self.given(&value, &e.ty)];
                return match self.rt(RtFn::tensor_to_bool, args, &Ty::Bool, e.span)? {
                    Value::Bool(b) => Ok(b),
                    _ => self.broken(e.span, "a truth"),
                };
            }
        })
    }

    pub fn compare(&mut self, op: CmpOp, left: &TExpr, right: &TExpr, span: Span) -> R<bool> {
        let (l, r) = (self.expr(left)?, self.expr(right)?);
        if matches!(op, CmpOp::In | CmpOp::NotIn) {
            return Ok(self.contains((&l, &left.ty), (&r, &right.ty), span)? != (op == CmpOp::NotIn));
        }
        if matches!(left.ty, Ty::None) != matches!(right.ty, Ty::None) {
            return Ok(!holds(op, 0));
        }
        if let (Some(a), Some(b)) = (l.scalar(), r.scalar()) {
            return match self.applied(NumberOp::compare(op, a.kind().in_programs()), &[a, b], span)? {
                Value::Bool(b) => Ok(b),
                _ => self.broken(span, "a truth"),
            };
        }
        match (&l, &r) {
            (Value::None, Value::None) => return Ok(holds(op, 0)),
            (Value::DType(a), Value::DType(b)) => return Ok(holds(op, (*a as i64) - (*b as i64))),
            _ => {}
        }
        let ty = if untold(&left.ty) { &right.ty } else { &left.ty };
        let mut args = vec![self.given(&l, ty), self.given(&r, ty)];
        if matches!(ty, Ty::Str) {
            let order = self.rt(RtFn::str_compare, args, &Ty::int(), span)?;
            return self.ordered(op, &order, span);
        }
        args.push(self.given_type(ty));
        if is_equality(op) {
            let equal = self.rt(RtFn::value_eq, args, &Ty::Bool, span)?;
            return Ok(matches!(equal, Value::Bool(true)) == holds(op, 0));
        }
        let order = self.rt(RtFn::value_compare, args, &Ty::int(), span)?;
        self.ordered(op, &order, span)
    }

    fn ordered(&mut self, op: CmpOp, order: &Value, span: Span) -> R<bool> {
        match order {
            Value::Int(n) => Ok(holds(op, *n)),
            _ => self.broken(span, "an order"),
        }
    }

    fn contains(&mut self, (l, left): (&Value, &Ty), (r, right): (&Value, &Ty), span: Span) -> R<bool> {
        let (func, holder) = match right {
            Ty::Str => (RtFn::str_contains, right.clone()),
            Ty::Dict(..) => (RtFn::dict_contains, right.clone()),
            _ if untold(right) => (RtFn::list_contains, Ty::List(Box::new(left.clone()))),
            _ => (RtFn::list_contains, right.clone()),
        };
        let args = vec![self.given(r, &holder), self.given(l, left)];
        Ok(matches!(self.rt(func, args, &Ty::Bool, span)?, Value::Bool(true)))
    }

    pub fn convert(&mut self, to: Convert, e: &TExpr, span: Span) -> R<Value> {
        let value = self.expr(e)?;
        let known = value.scalar();
        let (func, ty) = match (to, &value) {
            (Convert::Str, _) => return self.shown(&value, &e.ty, false, span),
            (Convert::Repr, _) => return self.shown(&value, &e.ty, true, span),
            (Convert::Int, Value::Float(x)) => {
                return self.applied(NumberOp::float_to_int, &[Known::Float(*x)], span);
            }
            (Convert::Float, Value::Int(n)) => return self.applied(NumberOp::int_to_float, &[Known::Int(*n)], span),
            (Convert::Int | Convert::Float, Value::Bool(b)) => {
                let int = self.applied(NumberOp::bool_to_int, &[Known::Bool(*b)], span)?;
                return match (to, int.scalar()) {
                    (Convert::Float, Some(int)) => self.applied(NumberOp::int_to_float, &[int], span),
                    _ => Ok(int),
                };
            }
            _ if known.is_some() => return Ok(value),
            (Convert::Int, Value::Str(_)) => (RtFn::str_to_int, Ty::int()),
            (Convert::Float, Value::Str(_)) => (RtFn::str_to_float, Ty::Float),
            (Convert::Int, _) => (RtFn::tensor_to_int, Ty::int()),
            (Convert::Float, _) => (RtFn::tensor_to_float, Ty::Float),
        };
        let args = vec![self.given(&value, &e.ty)];
        self.rt(func, args, &ty, span)
    }

    /// `str(x)` or `repr(x)`.
    pub fn shown(&mut self, value: &Value, ty: &Ty, repr: bool, span: Span) -> R<Value> {
        if !repr && let Value::Str(_) = value {
            return Ok(value.clone());
        }
        let args = vec![self.given(value, ty), self.given_type(ty)];
        self.rt(if repr { RtFn::to_repr } else { RtFn::to_str }, args, &Ty::Str, span)
    }

    pub fn format(&mut self, parts: &[FormatPart]) -> R<Value> {
        let mut whole = String::new();
        for part in parts {
            let piece = match part {
                FormatPart::Text(text) => Value::Str(text.clone()),
                FormatPart::Value { value, repr, spec } => self.formatted(value, *repr, spec.as_ref())?,
            };
            if let Value::Str(text) = piece {
                whole.push_str(&text);
            }
        }
        Ok(Value::Str(whole.into()))
    }

    fn formatted(&mut self, e: &TExpr, repr: bool, spec: Option<&TExpr>) -> R<Value> {
        let (mut value, mut ty) = (self.expr(e)?, e.ty.clone());
        if repr {
            value = self.shown(&value, &ty, true, e.span)?;
            ty = Ty::Str;
        }
        let Some(spec) = spec else { return self.shown(&value, &ty, false, e.span) };
        let spec = self.expr(spec)?;
        let args: Vec<Given> = vec![self.given(&value, &ty), self.given_type(&ty), self.given(&spec, &Ty::Str)];
        self.rt(RtFn::format_value, args, &Ty::Str, e.span)
    }
}
