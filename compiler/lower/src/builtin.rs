//! Functions of the host library as runtime functions.

use super::body::Body;
use tessera_abi::rt::RtFn::*;
use tessera_base::{Code, Diagnostic, Span};
use tessera_core::builtins::{How, Made};
use tessera_core::ir::*;
use tessera_core::ty::Ty;
use tessera_ir::host::{Arith, HExpr, HExprKind, HStmt, HostType, Rel, TypeId};

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
            How::Numbered(func, number) => {
                let mut args = self.exprs(args);
                args.push(self.int(number, span));
                self.rt(func, args, result, span)
            }
            How::Math(number) | How::Math2(number) => {
                let float = self.float_ty();
                let func = if matches!(function.def().how, How::Math(_)) { math } else { math2 };
                let (number, mut x) = (self.int(number, span), self.exprs(args));
                x.insert(0, number);
                let value = self.rt(func, x, float, span);
                let to_int = result != float;
                if to_int { self.make(HExprKind::FloatToInt(Box::new(value)), result, span) } else { value }
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
            Made::Save => {
                let mut args = self.exprs(args);
                let ty = args.last().map_or(result, |value| value.ty);
                args.push(self.type_of(ty, span));
                self.rt(io_save, args, result, span)
            }
            Made::IsNan | Made::IsInf | Made::IsFinite => self.is_kind(made, &args[0], result, span),
            Made::Size => self.tensor_size(&args[0], span),
            Made::Len => self.len(&args[0], result, span),
            Made::Abs => self.abs(&args[0], result, span),
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

    fn abs(&mut self, e: &TExpr, ty: TypeId, span: Span) -> HExpr {
        let (value, float) = (self.expr(e), matches!(e.ty, Ty::Float));
        let bool = self.bool_ty();
        self.once(value, span, |b, x| {
            let zero = match float {
                true => b.make(HExprKind::Float(0.0), ty, span),
                false => b.int(0, span),
            };
            let boxed = Box::new(x.clone());
            let test = b.make(HExprKind::Rel(Rel::Lt, boxed.clone(), Box::new(zero.clone())), bool, span);
            let neg = if float { HExprKind::FloatNeg(boxed) } else { HExprKind::IntNeg(boxed) };
            let then = Box::new(b.make(neg, ty, span));
            // Adding 0.0 turns -0.0 into 0.0.
            let same = match float {
                true => {
                    let kind = HExprKind::FloatOp {
                        op: Arith::Add,
                        left: Box::new(x),
                        right: Box::new(zero),
                        int_operands: false,
                    };
                    b.make(kind, ty, span)
                }
                false => x,
            };
            b.make(HExprKind::Cond { test: Box::new(test), then, otherwise: Box::new(same) }, ty, span)
        })
    }

    /// `min(a, b, …)`: the first of equal values.
    fn least(&mut self, largest: bool, args: &[TExpr], ty: TypeId, span: Span) -> HExpr {
        let text = matches!(args[0].ty, Ty::Str);
        let first = self.expr(&args[0]);
        args[1..].iter().fold(first, |best, next| {
            let next = self.expr(next);
            self.once(best, span, |b, best| b.once(next, span, |b, next| b.better(largest, text, best, next, ty, span)))
        })
    }

    fn better(&mut self, largest: bool, text: bool, best: HExpr, next: HExpr, ty: TypeId, span: Span) -> HExpr {
        let (bool, int) = (self.bool_ty(), self.int_ty());
        let rel = if largest { Rel::Gt } else { Rel::Lt };
        let kind = if text {
            let order = self.rt(str_compare, vec![next.clone(), best.clone()], int, span);
            HExprKind::Rel(rel, Box::new(order), Box::new(self.int(0, span)))
        } else {
            HExprKind::Rel(rel, Box::new(next.clone()), Box::new(best.clone()))
        };
        let test = Box::new(self.make(kind, bool, span));
        self.make(HExprKind::Cond { test, then: Box::new(next), otherwise: Box::new(best) }, ty, span)
    }

    /// `math.isnan`, `math.isinf`, `math.isfinite`.
    fn is_kind(&mut self, made: Made, x: &TExpr, bool: TypeId, span: Span) -> HExpr {
        let float = self.float_ty();
        let value = self.expr(x);
        self.once(value, span, |b, x| match made {
            Made::IsNan => b.make(HExprKind::Rel(Rel::Ne, Box::new(x.clone()), Box::new(x)), bool, span),
            _ => {
                // x - x is 0 for finite numbers and NaN otherwise.
                let kind = HExprKind::FloatOp {
                    op: Arith::Sub,
                    left: Box::new(x.clone()),
                    right: Box::new(x.clone()),
                    int_operands: false,
                };
                let difference = b.make(kind, float, span);
                let zero = b.make(HExprKind::Float(0.0), float, span);
                let finite =
                    Box::new(b.make(HExprKind::Rel(Rel::Eq, Box::new(difference), Box::new(zero)), bool, span));
                if made == Made::IsFinite {
                    return *finite;
                }
                let number = Box::new(b.make(HExprKind::Rel(Rel::Eq, Box::new(x.clone()), Box::new(x)), bool, span));
                let infinite = Box::new(b.make(HExprKind::Not(finite), bool, span));
                b.make(HExprKind::And(number, infinite), bool, span)
            }
        })
    }
}
