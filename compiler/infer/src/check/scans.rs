//! Loops that are operators: `op.scan` and `op.fori`.

use super::args::{Slot, Value};
use super::cx::{Cx, error_at};
use super::types::plain_ints;
use std::sync::Arc;
use tessera_base::{Code, DType, Diagnostic, Monoid, Own, Sharding, Size, Span, TensorType};
use tessera_core::ir::*;
use tessera_core::layouts;
use tessera_core::ty::Ty;
use tessera_types::tensor::with_ways;

impl Cx<'_> {
    /// `op.scan(f, init, xs)` gives the last carry and the stacked results.
    pub fn scan(&mut self, values: Vec<Value>, span: Span) -> TExpr {
        let slots = Slot::built_in("op.scan");
        let Some(given) = self.match_params("op.scan", &slots, values, span, None) else { return error_at(span) };
        let mut given = given.into_iter().flatten();
        let (Some(f), Some(init), Some(xs)) = (given.next(), given.next(), given.next()) else { return error_at(span) };
        let mut init = self.carry(init);
        let Some((row, n)) = self.leading("op.scan", &xs, 0) else { return error_at(span) };
        let turn = |carry: &Ty| {
            let value = |ty: &Ty| TExpr { kind: TKind::None, ty: ty.clone(), span };
            vec![value(carry), value(&row)]
        };
        let next = |ret: &Ty| match ret {
            Ty::Tuple(parts) => <&[Ty; 2]>::try_from(parts.as_slice()).ok().map(|[carry, _]| carry.clone()),
            _ => None,
        };
        let Some(Looped { inst, callee, ret, carry: carry_ty }) =
            self.turns("op.scan", &f, &mut init, &turn, &next, span)
        else {
            return error_at(span);
        };
        let y = if let Ty::Tuple(parts) = &ret { parts.last() } else { None };
        let Some(y) = y else { return error_at(span) };
        if y.holds_error() {
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
    pub(super) fn carry(&mut self, init: TExpr) -> TExpr {
        let dtype = match &init.ty {
            Ty::Int(_) => DType::I64,
            Ty::Float => DType::F32,
            Ty::Bool => DType::Bool,
            _ => return init,
        };
        tessera_types::coerce::scalar_to_tensor(&mut self.sizes, init, dtype)
    }

    /// The function of a loop at the type that its carry keeps from turn to turn. How the tensors of
    /// the carry lie is what the function makes of them: what is everywhere in full when it comes in
    /// is cut as it is given back. E0404 where more than cutting is needed. Numbers in `init` that come back as tensors come in
    /// as such.
    pub(super) fn turns(
        &mut self,
        name: &str,
        f: &TExpr,
        init: &mut TExpr,
        args: &dyn Fn(&Ty) -> Vec<TExpr>,
        next: &dyn Fn(&Ty) -> Option<Ty>,
        span: Span,
    ) -> Option<Looped> {
        // A turn may give back another int.
        let mut carry = plain_ints(&init.ty);
        loop {
            let requests = self.requests.len();
            // There may be no turns.
            let (inst, callee, ret, back) = self.perhaps(|cx| {
                let (inst, callee, ret) = cx.instantiate(f, args(&carry), span)?;
                let Some(back) = next(&ret) else {
                    let text = format!("the function of `{name}` gives `(carry, y)`, and this one gives `{ret}`");
                    cx.report(Diagnostic::new(Code::E0204, f.span, text));
                    return None;
                };
                if has_numbers(&carry, &back) {
                    return Some((inst, callee, ret, back));
                }
                let same = cx.same_carry(&layouts::unsharded(&carry), &layouts::unsharded(&back), f.span, name);
                same.then_some((inst, callee, ret, back))
            })?;
            if has_numbers(&carry, &back) {
                *init = self.numbers_as(init.clone(), &back);
                carry = plain_ints(&init.ty);
                self.requests.truncate(requests);
                continue;
            }
            match layouts::settled(&carry, &back) {
                Ok(ty) if ty == carry => return Some(Looped { inst, callee, ret, carry }),
                // Each time, an axis splits what it did not split before.
                Ok(ty) => carry = ty,
                Err(pair) => {
                    self.report(unsettled(name, f.span, &pair.0, &pair.1));
                    return None;
                }
            }
            self.requests.truncate(requests);
        }
    }

    /// A value whose numbers are tensors where `like` has tensors of rank 0.
    fn numbers_as(&mut self, value: TExpr, like: &Ty) -> TExpr {
        match like {
            Ty::Tensor(t) if !value.ty.is_tensor() => match t.dtype {
                Some(dtype) => tessera_types::coerce::scalar_to_tensor(&mut self.sizes, value, dtype),
                None => value,
            },
            Ty::Tuple(likes) if has_numbers(&value.ty, like) => {
                let span = value.span;
                let parts = match value.kind {
                    TKind::Tuple(parts) => parts,
                    _ => {
                        let Ty::Tuple(types) = value.ty.clone() else { return value };
                        let whole = self.save("init", value);
                        let part = |(i, ty)| TExpr { kind: TKind::Field(Box::new(whole.clone()), i as u32), ty, span };
                        types.into_iter().enumerate().map(part).collect()
                    }
                };
                let parts: Vec<TExpr> =
                    parts.into_iter().zip(likes).map(|(p, like)| self.numbers_as(p, like)).collect();
                let ty = Ty::Tuple(parts.iter().map(|p| p.ty.clone()).collect());
                TExpr { kind: TKind::Tuple(parts), ty, span }
            }
            _ => value,
        }
    }

    /// The type of one row of every tensor in a value, and the number of rows along a dim.
    pub(super) fn leading(&mut self, name: &str, xs: &TExpr, axis: i64) -> Option<(Ty, Size)> {
        let at = |t: &TensorType| normal_axis(axis, t.rank());
        let split = |t: &TensorType| at(t).and_then(|at| t.sharding.axes(at).first().cloned());
        if let Some((t, mesh)) = layouts::tensors(&xs.ty).into_iter().find_map(|t| split(&t).map(|mesh| (t, mesh))) {
            let dim = at(&t).unwrap_or(0);
            let text = format!("`{name}` takes dim {dim} row by row, and `{mesh}` splits it");
            let d = Diagnostic::new(Code::E0406, xs.span, text).here(format!("this is `{}`", xs.ty));
            let d = match xs.ty {
                Ty::Tensor(_) => with_ways(d, &t, dim, xs.span, &|_| true),
                _ => d.help(format!("split another dim of {t} with `dist.shard(x, spec)`, or none")),
            };
            let d = if name == "op.map" { d.help("or all rows at once: `autodiff.vmap(f)(x)`") } else { d };
            self.report(d);
            return None;
        }
        let block = |t: &TensorType| {
            let dim = at(t)?;
            t.sharding.owns().find(|(own, _)| matches!(own, Own::Block(d) if *d == dim)).map(|(_, a)| a.clone())
        };
        if let Some((t, mesh)) = layouts::tensors(&xs.ty).into_iter().find_map(|t| block(&t).map(|mesh| (t, mesh))) {
            let dim = at(&t).unwrap_or(0);
            let text = format!("`{name}` goes from row to row, and each device of `{mesh}` has a block of the rows");
            let d = Diagnostic::new(Code::E0405, xs.span, text)
                .here(t.to_string())
                .note("what one block leaves over would have to come in with the next one, which is another device's");
            let wrap = |d: Diagnostic, text: String| d.help_about(&text, &[("x", xs.span)]);
            let all = format!("have all rows: `dist.collective.all_gather({{x}}, axis=\"{mesh}\", dim={dim})`");
            let d = wrap(d, all);
            let d = wrap(d, format!("or have each device go over its own alone: `dist.each({{x}}, axis=\"{mesh}\")`"));
            self.report(d.help("rows one by one, without a carry, are `autodiff.vmap(f)(x)`"));
            return None;
        }
        let sizes = |t: &TensorType| at(t).map(|at| t.shape[at].clone());
        let sizes: Vec<Size> = layouts::tensors(&xs.ty).iter().filter_map(sizes).collect();
        let known: Vec<i64> = sizes.iter().filter_map(Size::as_const).collect();
        if let Some([want, have]) = known.array_windows().find(|[a, b]| a != b) {
            let text =
                format!("`{name}` goes over the rows of all its tensors at once, and they have {want} and {have}");
            self.report(Diagnostic::new(Code::E0202, xs.span, text));
            return None;
        }
        let mut n = None;
        match (part_of(&xs.ty, axis, &mut n), n) {
            (Some(row), Some(n)) => Some((row, n)),
            _ => {
                if !xs.ty.holds_error() {
                    let dim = if axis == 0 { String::new() } else { format!(" along dim {axis}") };
                    let text = format!("`{name}` runs over the rows of tensors{dim}, and this is `{}`", xs.ty);
                    self.report(Diagnostic::new(Code::E0204, xs.span, text));
                }
                None
            }
        }
    }

    pub(super) fn same_carry(&mut self, expected: &Ty, found: &Ty, span: Span, what: &str) -> bool {
        match tessera_types::unify::assignable(&mut self.sizes, expected, found, span) {
            Ok(how) if how == tessera_types::unify::Coerce::None || how.is_check() => true,
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
        let slots = Slot::built_in("op.fori");
        let Some(given) = self.match_params("op.fori", &slots, values, span, None) else { return error_at(span) };
        let mut given = given.into_iter().flatten();
        let (Some(low), Some(high), Some(f), Some(init)) = (given.next(), given.next(), given.next(), given.next())
        else {
            return error_at(span);
        };
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
        let mut init = self.carry(init);
        let turn = |carry: &Ty| {
            let value = |ty: Ty| TExpr { kind: TKind::None, ty, span };
            vec![value(Ty::int()), value(carry.clone())]
        };
        let next = |ret: &Ty| Some(ret.clone());
        let Some(Looped { inst, callee, carry: carry_ty, .. }) =
            self.turns("op.fori", &f, &mut init, &turn, &next, span)
        else {
            return error_at(span);
        };
        let kind = TKind::Fori { inst, callee, low: Box::new(low), high: Box::new(high), init: Box::new(init) };
        TExpr { kind, ty: carry_ty, span }
    }
}

/// Whether a carry has a number where a turn gives a tensor of rank 0.
fn has_numbers(carry: &Ty, back: &Ty) -> bool {
    match (carry, back) {
        (Ty::Int(_) | Ty::Float | Ty::Bool, Ty::Tensor(t)) => t.rank() == 0 && t.dtype.is_some(),
        (Ty::Tuple(a), Ty::Tuple(b)) => a.len() == b.len() && a.iter().zip(b).any(|(a, b)| has_numbers(a, b)),
        _ => false,
    }
}

/// The type of one part of every tensor in a value along an axis, and the size of that.
pub fn part_of(ty: &Ty, axis: i64, n: &mut Option<Size>) -> Option<Ty> {
    match ty {
        Ty::Tensor(t) => {
            let at = normal_axis(axis, t.rank())?;
            let mut shape = t.shape.clone();
            let size = shape.remove(at);
            n.get_or_insert(size);
            Some(Ty::Tensor(TensorType { shape, dtype: t.dtype, sharding: t.sharding.without(at) }))
        }
        Ty::Tuple(ts) => Some(Ty::Tuple(ts.iter().map(|t| part_of(t, axis, n)).collect::<Option<_>>()?)),
        Ty::Struct(s) => {
            let fields =
                s.fields.iter().map(|(f, t)| Some((f.clone(), part_of(t, axis, n)?))).collect::<Option<_>>()?;
            Some(Ty::Struct(Arc::new(tessera_core::ty::StructTy { fields, ..(**s).clone() })))
        }
        _ => None,
    }
}

/// A dim counted from the front, of so many.
pub(super) fn normal_axis(axis: i64, rank: usize) -> Option<usize> {
    let at = if axis < 0 { axis.checked_add(rank as i64)? } else { axis };
    usize::try_from(at).ok().filter(|at| *at < rank)
}

/// The type of the results of all turns.
pub(super) fn stacked(ty: &Ty, n: &Size) -> Option<Ty> {
    stacked_at(ty, 0, n, &Sharding::default())
}

/// The type of many values of a type, which lie along an axis; the dim that is new lies as dim 0
/// of `rows` does.
pub fn stacked_at(ty: &Ty, axis: i64, n: &Size, rows: &Sharding) -> Option<Ty> {
    let whole = |shape: &[Size], dtype, sharding: &Sharding| {
        let (mut shape, rank) = (shape.to_vec(), shape.len());
        let at = normal_axis(axis, rank + 1)?;
        shape.insert(at, n.clone());
        let mesh = sharding.mesh.clone().or_else(|| rows.mesh.clone());
        let sharding = Sharding { mesh, ..sharding.clone() }.with(at, rows.axes(0), rank);
        Some(Ty::Tensor(TensorType { shape, dtype, sharding }))
    };
    let each = |t: &Ty| stacked_at(t, axis, n, rows);
    match ty {
        Ty::Tensor(t) => whole(&t.shape, t.dtype, &t.sharding),
        Ty::Float => whole(&[], Some(DType::F32), &Sharding::default()),
        Ty::Int(_) => whole(&[], Some(DType::I64), &Sharding::default()),
        Ty::Bool => whole(&[], Some(DType::Bool), &Sharding::default()),
        Ty::Tuple(ts) => Some(Ty::Tuple(ts.iter().map(each).collect::<Option<_>>()?)),
        Ty::None => Some(Ty::None),
        Ty::Struct(s) => {
            let fields = s.fields.iter().map(|(f, t)| Some((f.clone(), each(t)?))).collect::<Option<_>>()?;
            Some(Ty::Struct(Arc::new(tessera_core::ty::StructTy { fields, ..(**s).clone() })))
        }
        _ => None,
    }
}

/// A loop's function at the type of its carry.
pub(super) struct Looped {
    pub inst: InstId,
    pub callee: Option<Box<TExpr>>,
    ret: Ty,
    pub carry: Ty,
}

/// E0404: a carry that is given back in a layout that it cannot come in with.
fn unsettled(name: &str, at: Span, before: &TensorType, after: &TensorType) -> Diagnostic {
    let text = format!("the carry of `{name}` comes in one layout and is given back in another");
    let d = Diagnostic::new(Code::E0404, at, text)
        .note(format!("it comes in as {before}, and the function gives {after}"))
        .note("a carry lies in one way from turn to turn; what is everywhere in full is cut for free");
    let part = after.sharding.partial.iter().find(|p| !before.sharding.partial.contains(p));
    match part {
        Some((Monoid::At(_), axis)) => match before.sharding.partial.iter().find(|p| p.1 == *axis) {
            Some((Monoid::At(index), _)) => d.help(format!(
                "bring it back at the end of the function: `dist.at(x, axis=\"{axis}\", index={index})`"
            )),
            _ => d.help(format!(
                "bring it to all at the end of the function: `dist.collective.broadcast(x, axis=\"{axis}\")`"
            )),
        },
        Some((_, axis)) => {
            d.help(format!("complete it at the end of the function: `dist.collective.all_reduce(x, axis=\"{axis}\")`"))
        }
        None => d
            .help("lay it out at the end of the function as it came in: `dist.like(next, carry)`")
            .help("or lay the first one out as the function gives it back: `dist.shard(init, spec)`"),
    }
}
