//! Loops that are operators: `op.scan` and `op.fori`.

use super::args::{Slot, Value};
use super::cx::{Cx, error_at};
use crate::thir::*;
use crate::ty::Ty;
use std::sync::Arc;
use tessera_base::{Code, DType, Diagnostic, Size, Span, TensorType};

impl Cx<'_> {
    /// `op.scan(f, init, xs)` gives the last carry and the stacked results.
    pub fn scan(&mut self, values: Vec<Value>, span: Span) -> TExpr {
        let slots = [Slot::plain("f", false), Slot::plain("init", false), Slot::plain("xs", false)];
        let Some(given) = self.match_params("op.scan", &slots, values, span, None) else { return error_at(span) };
        let mut given = given.into_iter().flatten();
        let (Some(f), Some(init), Some(xs)) = (given.next(), given.next(), given.next()) else { return error_at(span) };
        if let Some(d) = on_one_device("op.scan", [&f, &init, &xs]) {
            return self.fail(d);
        }
        let init = self.carry(init);
        let Some((row, n)) = self.leading(&xs) else { return error_at(span) };
        let carry_ty = init.ty.clone();
        let f_args =
            vec![TExpr { kind: TKind::None, ty: carry_ty.clone(), span }, TExpr { kind: TKind::None, ty: row, span }];
        let Some((inst, callee, ret)) = self.instantiate(&f, f_args, span) else { return error_at(span) };
        let Ty::Tuple(parts) = &ret else {
            let d = Diagnostic::new(
                Code::E0204,
                f.span,
                format!("the function of `op.scan` gives `(carry, y)`, and this one gives `{ret}`"),
            );
            return self.fail(d);
        };
        let [carry, y] = parts.as_slice() else {
            let d = Diagnostic::new(
                Code::E0204,
                f.span,
                format!("the function of `op.scan` gives `(carry, y)`, and this one gives `{ret}`"),
            );
            return self.fail(d);
        };
        if !self.same_carry(&carry_ty, carry, f.span, "op.scan") {
            return error_at(span);
        }
        let Some(ys) = stacked(y, &n) else {
            let d = Diagnostic::new(
                Code::E0204,
                f.span,
                format!("the results of `op.scan` are tensors, and these are `{y}`"),
            );
            return self.fail(d);
        };
        let ty = Ty::Tuple(vec![carry_ty, ys]);
        TExpr { kind: TKind::Scan { inst, callee, init: Box::new(init), xs: Box::new(xs) }, ty, span }
    }

    /// A Python scalar carried by a loop is a tensor of rank 0.
    fn carry(&mut self, init: TExpr) -> TExpr {
        let dtype = match &init.ty {
            Ty::Int(_) => DType::I64,
            Ty::Float => DType::F32,
            Ty::Bool => DType::Bool,
            _ => return init,
        };
        crate::rules::coerce::scalar_to_tensor(&mut self.sizes, init, dtype)
    }

    /// The type of one row of every tensor in a value, and the number of rows.
    fn leading(&mut self, xs: &TExpr) -> Option<(Ty, Size)> {
        let mut n = None;
        let row = rows_of(&xs.ty, &mut n);
        match (row, n) {
            (Some(row), Some(n)) => Some((row, n)),
            _ => {
                if !xs.ty.is_error() {
                    let d = Diagnostic::new(
                        Code::E0204,
                        xs.span,
                        format!("`op.scan` runs over the rows of tensors, and this is `{}`", xs.ty),
                    );
                    self.report(d);
                }
                None
            }
        }
    }

    fn same_carry(&mut self, expected: &Ty, found: &Ty, span: Span, what: &str) -> bool {
        match crate::rules::unify::assignable(&mut self.sizes, expected, found, span) {
            Ok(crate::rules::unify::Coerce::None | crate::rules::unify::Coerce::Check) => true,
            _ => {
                let d = Diagnostic::new(
                    Code::E0209,
                    span,
                    format!("the function of `{what}` must give back the type of the carry"),
                )
                .note(format!("the carry is {expected}, and it gives {found}"));
                self.report(d);
                false
            }
        }
    }

    /// `op.fori(lo, hi, f, init)`: `f(i, carry)` gives the next carry.
    pub fn fori(&mut self, values: Vec<Value>, span: Span) -> TExpr {
        let slots = [
            Slot::plain("lower", false),
            Slot::plain("upper", false),
            Slot::plain("f", false),
            Slot::plain("init", false),
        ];
        let Some(given) = self.match_params("op.fori", &slots, values, span, None) else { return error_at(span) };
        let mut given = given.into_iter().flatten();
        let (Some(low), Some(high), Some(f), Some(init)) = (given.next(), given.next(), given.next(), given.next())
        else {
            return error_at(span);
        };
        if let Some(d) = on_one_device("op.fori", [&f, &init]) {
            return self.fail(d);
        }
        for bound in [&low, &high] {
            if !matches!(bound.ty, Ty::Int(_)) {
                self.error(
                    Code::E0204,
                    bound.span,
                    format!("the bounds of `op.fori` are `int`, and this is `{}`", bound.ty),
                );
                return error_at(span);
            }
        }
        let init = self.carry(init);
        let carry_ty = init.ty.clone();
        let counter = Ty::int();
        let f_args = vec![
            TExpr { kind: TKind::None, ty: counter, span },
            TExpr { kind: TKind::None, ty: carry_ty.clone(), span },
        ];
        let Some((inst, callee, ret)) = self.instantiate(&f, f_args, span) else { return error_at(span) };
        if !self.same_carry(&carry_ty, &ret, f.span, "op.fori") {
            return error_at(span);
        }
        let kind = TKind::Fori { inst, callee, low: Box::new(low), high: Box::new(high), init: Box::new(init) };
        TExpr { kind, ty: carry_ty, span }
    }
}

/// The type of one row of every tensor in a value.
fn rows_of(ty: &Ty, n: &mut Option<Size>) -> Option<Ty> {
    part_of(ty, 0, n)
}

/// The type of one part of every tensor in a value along an axis, and the size of that.
pub fn part_of(ty: &Ty, axis: i64, n: &mut Option<Size>) -> Option<Ty> {
    match ty {
        Ty::Tensor(t) => {
            let at = place(axis, t.rank())?;
            let mut shape = t.shape.clone();
            let size = shape.remove(at);
            n.get_or_insert(size);
            Some(Ty::Tensor(TensorType { shape, dtype: t.dtype, sharding: Default::default() }))
        }
        Ty::Tuple(ts) => Some(Ty::Tuple(ts.iter().map(|t| part_of(t, axis, n)).collect::<Option<_>>()?)),
        Ty::Struct(s) => {
            let fields =
                s.fields.iter().map(|(f, t)| Some((f.clone(), part_of(t, axis, n)?))).collect::<Option<_>>()?;
            Some(Ty::Struct(Arc::new(crate::ty::StructTy { fields, ..(**s).clone() })))
        }
        _ => None,
    }
}

/// A dim counted from the front, of so many.
fn place(axis: i64, rank: usize) -> Option<usize> {
    let at = if axis < 0 { axis.checked_add(rank as i64)? } else { axis };
    usize::try_from(at).ok().filter(|at| *at < rank)
}

/// The type of the results of all turns.
fn stacked(ty: &Ty, n: &Size) -> Option<Ty> {
    stacked_at(ty, 0, n)
}

/// The type of many values of a type, which lie along an axis.
pub fn stacked_at(ty: &Ty, axis: i64, n: &Size) -> Option<Ty> {
    let whole = |shape: &[Size], dtype| {
        let mut shape = shape.to_vec();
        shape.insert(place(axis, shape.len() + 1)?, n.clone());
        Some(Ty::Tensor(TensorType { shape, dtype, sharding: Default::default() }))
    };
    match ty {
        Ty::Tensor(t) => whole(&t.shape, t.dtype),
        Ty::Float => whole(&[], Some(DType::F32)),
        Ty::Int(_) => whole(&[], Some(DType::I64)),
        Ty::Tuple(ts) => Some(Ty::Tuple(ts.iter().map(|t| stacked_at(t, axis, n)).collect::<Option<_>>()?)),
        Ty::None => Some(Ty::None),
        Ty::Struct(s) => {
            let fields =
                s.fields.iter().map(|(f, t)| Some((f.clone(), stacked_at(t, axis, n)?))).collect::<Option<_>>()?;
            Some(Ty::Struct(Arc::new(crate::ty::StructTy { fields, ..(**s).clone() })))
        }
        _ => None,
    }
}

/// E0490 where what goes over rows has tensors on a mesh.
pub fn on_one_device<'e>(name: &str, values: impl IntoIterator<Item = &'e TExpr>) -> Option<Diagnostic> {
    let captured = |ty: &Ty| matches!(ty, Ty::FnRef(f) if f.captures.iter().any(|c| c.1.on_a_mesh()));
    let e = values.into_iter().find(|e| e.ty.on_a_mesh() || captured(&e.ty))?;
    Some(
        Diagnostic::new(Code::E0490, e.span, format!("`{name}` over tensors on a mesh is not supported yet"))
            .here(format!("this is `{}`", e.ty))
            .help("take the tensor off its mesh: `dist.gather(x)`"),
    )
}
