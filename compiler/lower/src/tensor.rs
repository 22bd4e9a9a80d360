//! Tensors in host code: basic indexing, and checks of data against annotations.

use super::body::Body;
use std::sync::Arc;
use tessera_abi::rt::RtFn;
use tessera_base::Span;
use tessera_core::ir::*;
use tessera_core::ty::Ty;
use tessera_ir::host::{HExpr, HExprKind, HStmt, HostType, TypeId};
use tessera_ops::numbers::NumberOp;
use tessera_runtime::slice::ABSENT;

/// Words of an index part in a list for the runtime: start, stop, step and the kind.
const SLICE: i64 = 0;
const ELEMENT: i64 = 1;
const NEW_AXIS: i64 = 2;

impl Body<'_, '_> {
    /// A basic index as a list of ints, four for each part.
    pub(super) fn index_list(&mut self, parts: &[IndexPart], span: Span) -> HExpr {
        let mut words = vec![];
        for part in parts {
            match part {
                IndexPart::Int(e) | IndexPart::Tensor(e) => {
                    words.push(self.expr(e));
                    self.consts(&[ABSENT, ABSENT, ELEMENT], span, &mut words);
                }
                IndexPart::Slice { low, high, step } => {
                    for bound in [low, high, step] {
                        words.push(self.bound(bound.as_ref(), span));
                    }
                    self.consts(&[SLICE], span, &mut words);
                }
                IndexPart::Whole(n) => {
                    for _ in 0..*n {
                        self.consts(&[ABSENT, ABSENT, ABSENT, SLICE], span, &mut words);
                    }
                }
                IndexPart::NewAxis => self.consts(&[ABSENT, ABSENT, ABSENT, NEW_AXIS], span, &mut words),
            }
        }
        self.ints(words, span)
    }

    fn consts(&mut self, ns: &[i64], span: Span, words: &mut Vec<HExpr>) {
        words.extend(ns.iter().map(|&n| self.int(n, span)));
    }

    fn ints(&mut self, words: Vec<HExpr>, span: Span) -> HExpr {
        let int = self.int_ty();
        let ty = self.cx.types.intern(HostType::List(int));
        self.make(HExprKind::List(words), ty, span)
    }

    /// The value after comparing its rank, dtype and the dims that must be something.
    pub(super) fn check(
        &mut self,
        value: &TExpr,
        name: &Arc<str>,
        annotation: Span,
        dims: &[Option<TExpr>],
        ty: &Ty,
    ) -> HExpr {
        let v = self.expr(value);
        let Ty::Tensor(t) = ty else { return v };
        let outside = value.ty == Ty::AnyTensor;
        let none = self.none_ty();
        self.once(v, value.span, |b, v| {
            let sizes: Vec<HExpr> = (0..t.rank())
                .map(|i| match dims.get(i) {
                    Some(Some(e)) => b.expr(e),
                    _ => b.int(t.shape[i].as_const().unwrap_or(ABSENT), annotation),
                })
                .collect();
            let sizes = b.ints(sizes, annotation);
            let dtype = b.int(t.dtype.map_or(-1, |d| d as i64), annotation);
            let name = b.str(name, annotation);
            // Content from outside the program has no type before.
            let declared = b.str(&if outside { t.to_string() } else { String::new() }, annotation);
            let check = b.rt(RtFn::tensor_check, vec![v.clone(), dtype, sizes, name, declared], none, annotation);
            let ty = v.ty;
            b.make(HExprKind::Block { stmts: vec![HStmt::Expr(check)], value: Box::new(v) }, ty, annotation)
        })
    }

    /// `op.array` of a list that exists at run time.
    pub(super) fn host_array(&mut self, args: &[OpArg], ty: TypeId, span: Span) -> HExpr {
        let dtype = match args.get(1) {
            Some(OpArg::Value(TExpr { kind: TKind::DType(d), .. })) => *d as i64,
            _ => -1,
        };
        let Some(OpArg::Value(list)) = args.first() else { return self.make(HExprKind::None, ty, span) };
        let list = self.expr(list);
        let (id, dtype) = (self.type_of(list.ty, span), self.int(dtype, span));
        self.rt(RtFn::tensor_from_list, vec![list, id, dtype], ty, span)
    }

    /// The number of elements, from the sizes.
    pub(super) fn tensor_size(&mut self, e: &TExpr, span: Span) -> HExpr {
        let (value, int) = (self.expr(e), self.int_ty());
        let rank = match &e.ty {
            Ty::Tensor(t) => t.rank(),
            _ => 0,
        };
        self.once(value, span, |b, value| {
            let one = b.int(1, span);
            (0..rank).fold(one, |product, i| {
                let i = b.int(i as i64, span);
                let size = b.rt(RtFn::tensor_dim, vec![value.clone(), i], int, span);
                b.make(HExprKind::Number(NumberOp::int_mul, vec![product, size]), int, span)
            })
        })
    }

    /// A value that is assigned into a tensor: Python scalars become tensors of rank 0.
    pub(super) fn as_tensor(&mut self, e: &TExpr) -> HExpr {
        let value = self.expr(e);
        let func = match &e.ty {
            Ty::Int(_) => RtFn::tensor_from_int,
            Ty::Float => RtFn::tensor_from_float,
            Ty::Bool => RtFn::tensor_from_bool,
            _ => return value,
        };
        let ty = self.cx.types.intern(HostType::Tensor);
        self.rt(func, vec![value], ty, e.span)
    }
}
