//! Functions of the host library as runtime functions.

use super::body::Body;
use tessera_abi::rt::RtFn::*;
use tessera_base::{CmpOp, Code, Diagnostic, Span};
use tessera_core::builtins::{How, Made};
use tessera_core::ir::*;
use tessera_core::ty::Ty;
use tessera_ir::host::{HExpr, HExprKind, HStmt, HostType, TypeId};
use tessera_ops::numbers::NumberOp;
use tessera_ops::scalar::Kind;

impl Body<'_, '_> {
    pub(super) fn builtin(&mut self, function: Builtin, args: &[TExpr], ty: &Ty, span: Span) -> HExpr {
        let result = self.cx.erase(ty);
        match function.def().how {
            How::Direct(func) => {
                let args = self.builtin_args(function, args);
                self.rt(func, args, result, span)
            }
            How::Typed(func) => {
                let mut args = self.exprs(args);
                args.push(self.type_of(result, span));
                self.rt(func, args, result, span)
            }
            How::Valued(func, which) => {
                let mut args = self.exprs(args);
                let ty = args.get(which).map_or(result, |value| value.ty);
                args.push(self.type_of(ty, span));
                self.rt(func, args, result, span)
            }
            How::Numbered(func, which) => {
                let mut args = self.exprs(args);
                args.push(self.int(which, span));
                self.rt(func, args, result, span)
            }
            How::Number(op) => {
                let args = self.exprs(args);
                self.make(HExprKind::Number(op, args), result, span)
            }
            How::Made(made) => self.made(made, function, args, ty, result, span),
        }
    }

    /// What takes more than a function of the runtime.
    fn made(&mut self, made: Made, function: Builtin, args: &[TExpr], ty: &Ty, result: TypeId, span: Span) -> HExpr {
        match made {
            Made::Print => self.print(args, span),
            Made::NoSum => {
                let message = self.str(NO_SUM, span);
                let stop = HStmt::Fail { code: Code::E0711, message, span: self.cx.span(span) };
                let value = Box::new(self.make(HExprKind::None, result, span));
                self.make(HExprKind::Block { stmts: vec![stop], value }, result, span)
            }
            Made::Items => {
                // The runtime makes the list itself; it wants to know the tuples in it.
                let item = match self.cx.types.get(result) {
                    HostType::List(item) => *item,
                    _ => result,
                };
                let mut args = self.exprs(args);
                args.push(self.type_of(item, span));
                self.rt(dict_items, args, result, span)
            }
            Made::Size => self.tensor_size(&args[0], span),
            Made::Len => self.len(&args[0], result, span),
            Made::Least => self.least(false, args, result, span),
            Made::Greatest => self.least(true, args, result, span),
            Made::Sum => {
                let func = if matches!(ty, Ty::Float) { list_sum_float } else { list_sum_int };
                let args = self.exprs(args);
                self.rt(func, args, result, span)
            }
            Made::Tile => {
                let message = format!("`{}` stands outside a kernel", function.name());
                self.cx.diagnostics.push(Diagnostic::new(Code::E0502, span, message));
                self.make(HExprKind::None, result, span)
            }
        }
    }

    /// Elements take the type of the container that they are looked up in.
    fn builtin_args(&mut self, function: Builtin, args: &[TExpr]) -> Vec<HExpr> {
        let element = match args.first().map(|a| &a.ty) {
            Some(Ty::List(t)) if matches!(function, Builtin::list_index | Builtin::list_count) => Some((**t).clone()),
            Some(Ty::Dict(_, v)) if function == Builtin::dict_get => Some((**v).clone()),
            _ => None,
        };
        args.iter()
            .enumerate()
            .map(|(i, e)| match &element {
                Some(want) if i + 1 == args.len() => self.expr_as(e, want),
                _ => self.expr(e),
            })
            .collect()
    }

    fn len(&mut self, e: &TExpr, result: TypeId, span: Span) -> HExpr {
        let value = self.base(e);
        let func = match &e.ty {
            Ty::Str => str_len,
            Ty::Dict(..) => dict_len,
            Ty::Tensor(_) | Ty::AnyTensor => {
                let zero = self.int(0, span);
                return self.rt(tensor_dim, vec![value, zero], result, span);
            }
            Ty::Tuple(ts) => {
                let n = self.int(ts.len() as i64, span);
                return self.once(value, span, |_, _| n);
            }
            _ => list_len,
        };
        self.rt(func, vec![value], result, span)
    }

    /// `min(a, b, …)`: the first of equal values.
    fn least(&mut self, largest: bool, args: &[TExpr], ty: TypeId, span: Span) -> HExpr {
        let op = match (args[0].ty.number(), largest) {
            (Some(Kind::I64), false) => Some(NumberOp::int_min),
            (Some(Kind::I64), true) => Some(NumberOp::int_max),
            (Some(Kind::F64), false) => Some(NumberOp::float_min),
            (Some(Kind::F64), true) => Some(NumberOp::float_max),
            _ => None,
        };
        let first = self.expr(&args[0]);
        args[1..].iter().fold(first, |best, next| {
            let next = self.expr(next);
            match op {
                Some(op) => self.make(HExprKind::Number(op, vec![best, next]), ty, span),
                None => self.once(best, span, |b, best| {
                    b.once(next, span, |b, next| b.better_text(largest, best, next, ty, span))
                }),
            }
        })
    }

    fn better_text(&mut self, largest: bool, best: HExpr, next: HExpr, ty: TypeId, span: Span) -> HExpr {
        let int = self.int_ty();
        let order = self.rt(str_compare, vec![next.clone(), best.clone()], int, span);
        let zero = self.int(0, span);
        let test = Box::new(self.compared(if largest { CmpOp::Gt } else { CmpOp::Lt }, Kind::I64, order, zero, span));
        self.make(HExprKind::Cond { test, then: Box::new(next), otherwise: Box::new(best) }, ty, span)
    }
}
