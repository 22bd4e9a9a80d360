//! Comparisons: of host values, of tensors, and those that types decide.

use super::bits::CHAINED;
use super::cx::{Cx, behind, boolean, error_at, wrap};
use super::scalars::{as_float, as_int};
use super::types::{erase, same_slot};
use tessera_base::{Code, Diagnostic, Span};
use tessera_core::ir::*;
use tessera_core::ty::Ty;
use tessera_grammar::ast::{CmpOp, Expr};

impl Cx<'_> {
    /// `a < b <= c`: each operand is computed once, and only as far as needed.
    pub fn comparison(&mut self, first: &Expr, rest: &[(CmpOp, Expr)], span: Span) -> TExpr {
        let before = self.diagnostics.len();
        let mut left = self.expr(first);
        let value = match rest {
            [(op, right)] => {
                let right = self.right_of([&mut left], |cx| cx.expr(right));
                self.compare(*op, left, right, span)
            }
            _ => self.scoped(|cx| cx.chain(left, rest, span)),
        };
        if value.ty.is_error() {
            self.say_precedence(first, rest, before);
        }
        value
    }

    fn chain(&mut self, mut left: TExpr, rest: &[(CmpOp, Expr)], span: Span) -> TExpr {
        let [(op, right), more @ ..] = rest else { return left };
        let right = self.right_of([&mut left], |cx| cx.expr(right));
        if more.is_empty() {
            return self.compare(*op, left, right, span);
        }
        let left = self.save("left", left);
        let right = self.save("middle", right);
        let here = left.span.to(right.span);
        let test = self.compare(*op, left, right.clone(), here);
        if test.ty.is_tensor() {
            let d = Diagnostic::new(Code::E0205, here, CHAINED).help("combine them with `&`: `(a < x) & (x < b)`");
            return self.fail(d);
        }
        let (stmts, value) = self.block_where(&test, true, |cx| cx.chain(right, more, span));
        let value = wrap(stmts, value);
        if test.ty.is_error() || value.ty.is_error() {
            return error_at(span);
        }
        TExpr { kind: TKind::Logic { and: true, left: Box::new(test), right: Box::new(value) }, ty: Ty::Bool, span }
    }

    pub fn compare(&mut self, op: CmpOp, l: TExpr, r: TExpr, span: Span) -> TExpr {
        if l.ty.is_error() || r.ty.is_error() {
            return error_at(span);
        }
        match op {
            CmpOp::Is | CmpOp::IsNot => return self.identity(op == CmpOp::Is, l, r, span),
            CmpOp::In | CmpOp::NotIn => return self.membership(op, l, r, span),
            _ => {}
        }
        if l.ty.is_tensor() || r.ty.is_tensor() {
            let op_span = Span { start: l.span.end, end: r.span.start.max(l.span.end), ..span };
            let op_span =
                if l.span.item == r.span.item && op_span.start < op_span.end { trimmed(op_span) } else { span };
            let result = tessera_types::tensor::compare(&mut self.sizes, op, op_span, l, r, span);
            return self.take(result);
        }
        let equality = matches!(op, CmpOp::Eq | CmpOp::Ne);
        if equality && let (Ty::DType(Some(a)), Ty::DType(Some(b))) = (&l.ty, &r.ty) {
            let holds = boolean((a == b) == (op == CmpOp::Eq), span);
            return behind(vec![l, r], holds);
        }
        if let (TKind::Int(a), TKind::Int(b)) = (&l.kind, &r.kind)
            && let Some(holds) = int_holds(op, *a, *b)
        {
            return boolean(holds, span);
        }
        let (l, r) = match (&l.ty, &r.ty) {
            (a, b) if a.is_scalar() && b.is_scalar() && a != b => match (&l.ty, &r.ty) {
                (Ty::Float, _) | (_, Ty::Float) => (as_float(l), as_float(r)),
                (Ty::Bool, Ty::Bool) => (l, r),
                _ => (as_int(l), as_int(r)),
            },
            (Ty::Bool, Ty::Bool) if !equality => (as_int(l), as_int(r)),
            _ => (l, r),
        };
        let same = same_slot(&erase(&l.ty), &erase(&r.ty));
        let ordered = matches!(l.ty, Ty::Int(_) | Ty::Float | Ty::Str | Ty::List(_) | Ty::Tuple(_));
        let comparable = !matches!(l.ty, Ty::FnRef(_) | Ty::Fn(..));
        if same && comparable && (equality || ordered) {
            return TExpr { kind: TKind::Compare { op, left: Box::new(l), right: Box::new(r) }, ty: Ty::Bool, span };
        }
        let text = match same {
            true if !comparable => "functions are not compared".to_owned(),
            true => format!("`{}` has no order for `{}`", l.ty, op.symbol()),
            false if equality => format!("`{}` and `{}` are never equal", l.ty, r.ty),
            false => format!("`{}` and `{}` cannot be compared", l.ty, r.ty),
        };
        let d = Diagnostic::new(Code::E0205, span, text)
            .with_label(l.span, l.ty.to_string())
            .with_label(r.span, r.ty.to_string());
        let d = match (&l.ty, &r.ty) {
            (_, Ty::None) | (Ty::None, _) => d.help("`is None` asks for None"),
            (Ty::Str, t) | (t, Ty::Str) if t.is_scalar() => {
                let (s, x) = if l.ty == Ty::Str { (l.span, r.span) } else { (r.span, l.span) };
                d.help_about("convert one: `int({s})`, `float({s})` or `str({x})`", &[("s", s), ("x", x)])
            }
            _ => d,
        };
        self.fail(d)
    }

    /// `is None`, which the types decide.
    fn identity(&mut self, is: bool, l: TExpr, r: TExpr, span: Span) -> TExpr {
        if l.ty != Ty::None && r.ty != Ty::None {
            let d = Diagnostic::new(Code::E0205, span, "`is` only asks whether a value is None")
                .note("values have no identity: equal values are the same")
                .help(format!("compare with `{}`", if is { "==" } else { "!=" }));
            return self.fail(d);
        }
        let holds = boolean((l.ty == r.ty) == is, span);
        behind(vec![l, r], holds)
    }

    fn membership(&mut self, op: CmpOp, l: TExpr, r: TExpr, span: Span) -> TExpr {
        let (l, r) = match &r.ty {
            Ty::Str if l.ty == Ty::Str => (l, r),
            Ty::List(t) | Ty::Dict(t, _) => {
                let t = (**t).clone();
                let l = match (&t, &l.ty) {
                    (Ty::Float, Ty::Int(_) | Ty::Bool) => as_float(l),
                    (Ty::Int(_), Ty::Bool) => as_int(l),
                    _ => l,
                };
                if t.is_tensor() || !same_slot(&erase(&t), &erase(&l.ty)) {
                    return self.never_in(&l, &r, span);
                }
                (l, r)
            }
            Ty::Tuple(ts) if !ts.is_empty() && ts.iter().all(|t| erase(t) == erase(&ts[0])) => {
                let ty = Ty::List(Box::new(erase(&ts[0])));
                let r = self.tuple_to_list(r, ty);
                return self.membership(op, l, r, span);
            }
            Ty::Tuple(ts) if ts.is_empty() => return behind(vec![l, r], boolean(op == CmpOp::NotIn, span)),
            _ => return self.never_in(&l, &r, span),
        };
        TExpr { kind: TKind::Compare { op, left: Box::new(l), right: Box::new(r) }, ty: Ty::Bool, span }
    }

    fn never_in(&mut self, l: &TExpr, r: &TExpr, span: Span) -> TExpr {
        let d = Diagnostic::new(Code::E0205, span, format!("`{}` cannot be in `{}`", l.ty, r.ty))
            .with_label(l.span, l.ty.to_string())
            .with_label(r.span, r.ty.to_string());
        let names = [("x", r.span), ("value", l.span)];
        let help = "compare the elements: `op.any({x} == {value})`";
        let d = if r.ty.is_tensor() { d.help_about(help, &names) } else { d };
        self.fail(d)
    }

    /// A tuple of equal types as a list.
    pub fn tuple_to_list(&mut self, value: TExpr, ty: Ty) -> TExpr {
        let span = value.span;
        if let TKind::Tuple(items) = value.kind {
            return TExpr { kind: TKind::List(items), ty, span };
        }
        let Ty::Tuple(types) = value.ty.clone() else { return value };
        self.scoped(|cx| {
            let value = cx.save("tuple", value);
            let items = types
                .into_iter()
                .enumerate()
                .map(|(i, ty)| TExpr { kind: TKind::Field(Box::new(value.clone()), i as u32), ty, span })
                .collect();
            TExpr { kind: TKind::List(items), ty, span }
        })
    }
}

/// A comparison of ints that stand in the program or that types decide (`x.ndim == 2`).
/// Whether a comparison of ints holds.
pub fn int_holds(op: CmpOp, a: i64, b: i64) -> Option<bool> {
    Some(match op {
        CmpOp::Eq => a == b,
        CmpOp::Ne => a != b,
        CmpOp::Lt => a < b,
        CmpOp::Le => a <= b,
        CmpOp::Gt => a > b,
        CmpOp::Ge => a >= b,
        CmpOp::Is | CmpOp::IsNot | CmpOp::In | CmpOp::NotIn => return None,
    })
}

/// The place between two operands without the spaces that usually stand there.
fn trimmed(span: Span) -> Span {
    if span.end - span.start > 2 { Span { start: span.start + 1, end: span.end - 1, ..span } } else { span }
}
