//! Arithmetic, comparisons, truth and conversions of host values.

use super::body::Body;
use super::types::is_plain;
use tessera_abi::rt::RtFn;
use tessera_base::{CmpOp, Span, bug};
use tessera_core::ir::*;
use tessera_core::ty::Ty;
use tessera_ir::host::{HExpr, HExprKind, TypeId};
use tessera_ops::numbers::NumberOp;
use tessera_ops::scalar::Kind;

fn is_equality(op: CmpOp) -> bool {
    matches!(op, CmpOp::Eq | CmpOp::Is | CmpOp::Ne | CmpOp::IsNot)
}

impl Body<'_, '_> {
    pub(super) fn scalar(&mut self, e: &TExpr, ty: TypeId) -> HExpr {
        let span = e.span;
        let kind = match &e.kind {
            TKind::Arith { left, right, .. } => {
                let args = vec![self.expr(left), self.expr(right)];
                return self.number_form(e, args, ty);
            }
            TKind::Neg(a) | TKind::Invert(a) | TKind::IntToFloat(a) => {
                let args = vec![self.expr(a)];
                return self.number_form(e, args, ty);
            }
            TKind::Concat(a, b) => {
                let func = if matches!(e.ty, Ty::Str) { RtFn::str_concat } else { RtFn::list_concat };
                HExprKind::Rt { func, args: vec![self.expr_as(a, &e.ty), self.expr_as(b, &e.ty)] }
            }
            TKind::Repeat(a, n) => {
                let func = if matches!(e.ty, Ty::Str) { RtFn::str_repeat } else { RtFn::list_repeat };
                HExprKind::Rt { func, args: vec![self.expr_as(a, &e.ty), self.expr(n)] }
            }
            TKind::Not(a) => HExprKind::Number(NumberOp::bool_not, vec![self.truth(a)]),
            TKind::Logic { and, left, right } => {
                let (left, right) = (Box::new(self.expr(left)), Box::new(self.expr(right)));
                if *and { HExprKind::And(left, right) } else { HExprKind::Or(left, right) }
            }
            TKind::Compare { op, left, right } => return self.compare(*op, left, right, span),
            TKind::Cond { test, then, otherwise } => {
                let test = Box::new(self.truth(test));
                let (then, otherwise) = (self.expr_as(then, &e.ty), self.expr_as(otherwise, &e.ty));
                HExprKind::Cond { test, then: Box::new(then), otherwise: Box::new(otherwise) }
            }
            // The same word.
            TKind::BoolToInt(a) => return HExpr { ty, ..self.expr(a) },
            TKind::Truth(a) => return self.truth(a),
            TKind::Convert { to, value } => return self.convert(*to, value, span),
            // Every other kind is handled by `expr`.
            _ => HExprKind::None,
        };
        self.make(kind, ty, span)
    }

    /// A form that is an operation on numbers, with its operands.
    fn number_form(&mut self, e: &TExpr, args: Vec<HExpr>, ty: TypeId) -> HExpr {
        match e.number_op() {
            Some(op) => self.make(HExprKind::Number(op, args), ty, e.span),
            None => bug!("no row of numbers is {:?}", e.kind),
        }
    }

    /// A comparison of words with those of numbers of a kind.
    pub fn compared(&mut self, op: CmpOp, of: Kind, a: HExpr, b: HExpr, span: Span) -> HExpr {
        let bool = self.bool_ty();
        self.make(HExprKind::Number(NumberOp::compare(op, of), vec![a, b]), bool, span)
    }

    /// What is not.
    fn not(&mut self, value: HExpr, span: Span) -> HExpr {
        let bool = self.bool_ty();
        self.make(HExprKind::Number(NumberOp::bool_not, vec![value]), bool, span)
    }

    /// The value as a bool.
    pub fn truth(&mut self, e: &TExpr) -> HExpr {
        let span = e.span;
        let (bool, int) = (self.bool_ty(), self.int_ty());
        let value = self.expr(e);
        let len = |func| HExprKind::Rt { func, args: vec![value.clone()] };
        let count = match &e.ty {
            Ty::Bool | Ty::Never | Ty::Error => return value,
            Ty::Tensor(_) | Ty::AnyTensor => return self.rt(RtFn::tensor_to_bool, vec![value], bool, span),
            Ty::Int(_) => value,
            Ty::Float => {
                let float = self.float_ty();
                let zero = self.make(HExprKind::Float(0.0), float, span);
                return self.compared(CmpOp::Ne, Kind::F64, value, zero, span);
            }
            Ty::Str => self.make(len(RtFn::str_len), int, span),
            Ty::List(_) => self.make(len(RtFn::list_len), int, span),
            Ty::Dict(..) => self.make(len(RtFn::dict_len), int, span),
            Ty::None => return self.after(value, false, span),
            Ty::Tuple(ts) => return self.after(value, !ts.is_empty(), span),
            _ => return self.after(value, true, span),
        };
        let zero = self.int(0, span);
        self.compared(CmpOp::Ne, Kind::I64, count, zero, span)
    }

    /// A truth that is known from the type; the value is still evaluated.
    fn after(&mut self, value: HExpr, truth: bool, span: Span) -> HExpr {
        let truth = self.bool(truth, span);
        self.once(value, span, |_, _| truth)
    }

    fn compare(&mut self, op: CmpOp, left: &TExpr, right: &TExpr, span: Span) -> HExpr {
        let bool = self.bool_ty();
        let (l, r) = (self.expr_as(left, &right.ty), self.expr_as(right, &left.ty));
        if matches!(op, CmpOp::In | CmpOp::NotIn) {
            let func = match &right.ty {
                Ty::Str => RtFn::str_contains,
                Ty::Dict(..) => RtFn::dict_contains,
                _ => RtFn::list_contains,
            };
            // The element is evaluated before the container.
            let found = self.once(l, span, |b, l| b.rt(func, vec![r, l], bool, span));
            let not = op == CmpOp::NotIn;
            return if not { self.not(found, span) } else { found };
        }
        if matches!(left.ty, Ty::None) != matches!(right.ty, Ty::None) {
            // One side is None and the other never is.
            let differ = matches!(op, CmpOp::Ne | CmpOp::IsNot);
            let truth = self.bool(differ, span);
            return self.once(l, span, |b, _| b.once(r, span, |_, _| truth));
        }
        if is_plain(&left.ty) {
            // Words of what is no number are compared as ints.
            return self.compared(op, left.ty.number().unwrap_or(Kind::I64), l, r, span);
        }
        let int = self.int_ty();
        if is_equality(op) && !matches!(left.ty, Ty::Str) {
            let id = self.type_of(l.ty, span);
            let equal = self.rt(RtFn::value_eq, vec![l, r, id], bool, span);
            let not = matches!(op, CmpOp::Ne | CmpOp::IsNot);
            return if not { self.not(equal, span) } else { equal };
        }
        let order = if matches!(left.ty, Ty::Str) {
            self.rt(RtFn::str_compare, vec![l, r], int, span)
        } else {
            let id = self.type_of(l.ty, span);
            self.rt(RtFn::value_compare, vec![l, r, id], int, span)
        };
        let zero = self.int(0, span);
        self.compared(op, Kind::I64, order, zero, span)
    }

    fn convert(&mut self, to: Convert, value: &TExpr, span: Span) -> HExpr {
        if to == Convert::Str {
            return self.text(value);
        }
        let v = self.expr(value);
        if to == Convert::Repr {
            let (str, id) = (self.str_ty(), self.type_of(v.ty, span));
            return self.rt(RtFn::to_repr, vec![v, id], str, span);
        }
        let (int, float) = (self.int_ty(), self.float_ty());
        let (kind, ty) = match (to, &value.ty) {
            (Convert::Int, Ty::Float) => (HExprKind::Number(NumberOp::float_to_int, vec![v]), int),
            (Convert::Int, Ty::Str) => (HExprKind::Rt { func: RtFn::str_to_int, args: vec![v] }, int),
            (Convert::Int, Ty::Tensor(_) | Ty::AnyTensor) => {
                (HExprKind::Rt { func: RtFn::tensor_to_int, args: vec![v] }, int)
            }
            (Convert::Int, _) => return HExpr { ty: int, ..v },
            (_, Ty::Float) => return v,
            (_, Ty::Str) => (HExprKind::Rt { func: RtFn::str_to_float, args: vec![v] }, float),
            (_, Ty::Tensor(_) | Ty::AnyTensor) => (HExprKind::Rt { func: RtFn::tensor_to_float, args: vec![v] }, float),
            (_, _) => (HExprKind::Number(NumberOp::int_to_float, vec![v]), float),
        };
        self.make(kind, ty, span)
    }
}
