//! Assignments.

use super::container_literals::is_written_out;
use super::cx::{Cx, builtin, error_at, int, read, string};
use super::env::{Binding, Slot};
use super::iterate::int_test;
use super::scalars::as_int;
use std::collections::BTreeMap;
use std::sync::Arc;
use tessera_base::{Code, Diagnostic, Size, SizeVar, Span};
use tessera_core::ir::*;
use tessera_core::ty::Ty;
use tessera_grammar::ast::{BinOp, CmpOp, Expr, ExprKind};
use tessera_types::tensor::GivenIndex;
use tessera_types::unify::Role;

impl Cx<'_> {
    pub fn assign_stmt(&mut self, targets: &[Expr], written: &Expr) {
        let place = targets.first().filter(|t| matches!(t.kind, ExprKind::Attr { .. } | ExprKind::Index { .. }));
        let wanted = place.filter(|_| is_written_out(written)).and_then(|t| self.lvalue_ty(t));
        let value = match wanted.and_then(|(_, ty)| self.functions_of(written, &ty)) {
            Some(value) => value,
            None => self.value_for(targets.first(), written),
        };
        let value = match crate::mistaken::no_pair(targets, written, &value) {
            Some(d) => {
                let value = if d.is_error() { error_at(value.span) } else { value };
                self.report(d);
                value
            }
            None => value,
        };
        match targets {
            [target] => self.assign_to(target, value),
            _ => {
                let value = self.save("value", value);
                for target in targets {
                    self.assign_to(target, value.clone());
                }
            }
        }
    }

    /// The value of an assignment; sizes that only data knows are called after the target.
    fn value_for(&mut self, target: Option<&Expr>, value: &Expr) -> TExpr {
        let name = target.and_then(|t| match &t.kind {
            ExprKind::Name(n) => Some(n.clone()),
            _ => None,
        });
        let saved = std::mem::replace(&mut self.sizes.binding, name);
        let value = self.expr(value);
        self.sizes.binding = saved;
        value
    }

    pub fn assign_to(&mut self, target: &Expr, value: TExpr) {
        match &target.kind {
            ExprKind::Name(name) => {
                self.warn_hidden(name, target.span);
                self.bind(name, value, target.span);
            }
            ExprKind::Tuple(targets) | ExprKind::List(targets) => {
                let parts = self.unpack(targets.len(), value, target.span);
                for (target, part) in targets.iter().zip(parts) {
                    self.assign_to(target, part);
                }
            }
            ExprKind::Attr { base, name } => self.set_field(target, base, name, value),
            ExprKind::Index { base, index } => self.set_index(target, base, index, value),
            ExprKind::Error => {}
            _ => self.error(Code::E0010, target.span, "this cannot be assigned to"),
        }
    }

    /// As [`Cx::assign_to`] for the target of a comprehension: its names are its own.
    pub fn bind_local_target(&mut self, target: &Expr, value: TExpr) {
        match &target.kind {
            ExprKind::Name(name) => {
                let ty = if value.ty == Ty::Never { Ty::Error } else { value.ty.clone() };
                let local = self.temp(name, ty.clone(), target.span);
                self.set_slot(Slot::Local(local), value);
                self.env.bind(name, Binding { slot: Slot::Local(local), ty, span: target.span, bad: None });
            }
            ExprKind::Tuple(targets) | ExprKind::List(targets) => {
                let parts = self.unpack(targets.len(), value, target.span);
                for (target, part) in targets.iter().zip(parts) {
                    self.bind_local_target(target, part);
                }
            }
            ExprKind::Error => {}
            _ => self.error(Code::E0010, target.span, "only names stand here"),
        }
    }

    /// The parts of a value for `n` targets; all are computed before any is assigned.
    fn unpack(&mut self, n: usize, value: TExpr, at: Span) -> Vec<TExpr> {
        let span = value.span;
        let broken = || (0..n).map(|_| error_at(span)).collect();
        match value.ty.clone() {
            Ty::Error | Ty::Never => broken(),
            Ty::Tuple(types) if types.len() == n => {
                if let TKind::Tuple(items) = value.kind {
                    return items.into_iter().map(|i| self.save("part", i)).collect();
                }
                let value = self.save("parts", value);
                let part = |(i, ty)| TExpr { kind: TKind::Field(Box::new(value.clone()), i as u32), ty, span };
                types.into_iter().enumerate().map(part).collect()
            }
            Ty::Tuple(types) => {
                let d = Diagnostic::new(Code::E0204, at, format!("{n} names for {} values", types.len()))
                    .with_label(span, value.ty.to_string());
                self.report(d);
                broken()
            }
            Ty::List(t) => {
                let value = self.save("parts", value);
                let len = builtin(Builtin::len, vec![value.clone()], Ty::int(), span);
                let test = int_test(CmpOp::Eq, len, int(n as i64, span), span);
                let message = string(format!("the list has not {n} elements"), span);
                self.out.push(TStmt::Assert { test, message: Some(message), span });
                (0..n)
                    .map(|i| {
                        let ty = self.element(&t);
                        let kind = TKind::Index(Box::new(value.clone()), Box::new(int(i as i64, span)));
                        TExpr { kind, ty, span }
                    })
                    .collect()
            }
            Ty::Tensor(t) if t.rank() > 0 => {
                let size = t.shape[0].clone();
                if size.as_const().is_some_and(|k| k != n as i64) {
                    let d = Diagnostic::new(Code::E0204, at, format!("{n} names for {size} rows"))
                        .with_label(span, value.ty.to_string());
                    self.report(d);
                    return broken();
                }
                let value = self.save("rows", value);
                if size.as_const().is_none() {
                    let rows = super::symbolic::dim(&value, 0, &size);
                    let test = int_test(CmpOp::Eq, rows, int(n as i64, span), span);
                    let message = string(format!("the tensor has not {n} rows"), span);
                    self.host("unpacks a tensor whose size only data knows", span);
                    self.out.push(TStmt::Assert { test, message: Some(message), span });
                }
                (0..n)
                    .map(|i| {
                        let index = vec![GivenIndex::Value(int(i as i64, span))];
                        let result = tessera_types::tensor::index(&mut self.sizes, value.clone(), index, span);
                        self.take(result)
                    })
                    .collect()
            }
            ty => {
                let d = Diagnostic::new(Code::E0204, at, format!("`{ty}` does not unpack into {n} names"))
                    .with_label(span, ty.to_string());
                self.report(d);
                broken()
            }
        }
    }

    /// `target: ty = value`
    pub fn annotated(&mut self, target: &Expr, ty: &Expr, value: Option<&Expr>, span: Span) {
        let (declared, made) = self.annotation(ty);
        let Some(value) = value else { return };
        let value = match self.functions_of(value, &declared) {
            Some(value) => value,
            None => self.value_for(Some(target), value),
        };
        let ExprKind::Name(name) = &target.kind else {
            let role = Role::Other("the value".into());
            let value = self.expect(value, &declared, "value", ty.span, role);
            return self.assign_to(target, value);
        };
        self.warn_hidden(name, target.span);
        let found = value.ty.is_error();
        let role = Role::Bound { name: name.to_string() };
        self.sizes.told_by(&declared, &value.ty, &mut made.iter().map(|(_, var)| var.clone()).collect());
        let mut value = self.expect(value, &declared, name, ty.span, role);
        if value.ty.is_error() && !found || (found && declared != Ty::Error) {
            // What was declared is what the rest of the program is checked against.
            let slot = self.slot(name, &declared, target.span);
            self.env.bind(name, Binding { slot, ty: declared, span: target.span, bad: None });
            return;
        }
        // An annotation makes no promise about the value of an int.
        if declared == Ty::int() && !matches!(value.ty, Ty::Int(_)) {
            value.ty = Ty::int();
        }
        let checked = match &value.kind {
            TKind::Check { value, .. } => Some(value.ty == Ty::AnyTensor),
            _ => None,
        };
        self.bind(name, value, target.span);
        self.declared.insert(name.clone());
        if !made.is_empty() {
            self.bind_sizes(name, &declared, made, checked, ty.span, span);
        }
    }

    /// The sizes that an annotation named become ints of those names. `checked`: the value is
    /// compared with the annotation at run time; whether its whole type is known only then.
    fn bind_sizes(
        &mut self,
        name: &Arc<str>,
        declared: &Ty,
        made: Vec<(Arc<str>, SizeVar)>,
        checked: Option<bool>,
        annotation: Span,
        span: Span,
    ) {
        let Some(binding) = self.env.get(name).cloned() else { return };
        let value = read(binding.slot, binding.ty.clone(), span);
        self.size_sources_of(declared, &value, false);
        for (size_name, var) in &made {
            let own = Size::var(var.clone());
            let Some(source) = self.size_value(&own, span) else {
                self.untold(name, size_name, declared, annotation);
                continue;
            };
            // Of `Tensor[N + 6]` in a file of 5 there is none.
            if checked.is_some() && var.natural && matches!(source.kind, TKind::Arith { .. }) {
                self.at_least_zero(&own, &format!("the value of `{name}`"), annotation);
            }
            let source = TExpr { ty: Ty::Int(Some(Size::var(var.clone()))), ..source };
            if self.env.get(size_name).is_none() {
                self.bind(size_name, source, span);
                if let Some(b) = self.env.get(size_name) {
                    let local = read(b.slot, b.ty.clone(), span);
                    self.size_sources.insert(var.clone(), (local, false));
                }
            }
        }
        // A size that occurs twice, or inside another one, is compared now that it is known.
        let Ty::Tensor(t) = declared else { return };
        let mut seen: BTreeMap<&Size, ()> = BTreeMap::new();
        let plain = t.shape.iter().all(|s| {
            (s.as_const().is_some() || s.as_var().is_some()) && (s.as_const().is_some() || seen.insert(s, ()).is_none())
        });
        if let Some(outside) = checked
            && !plain
        {
            let mut value = read(binding.slot, binding.ty.clone(), span);
            let dims = t.shape.iter().map(|s| self.size_value(s, span)).collect();
            let ty = value.ty.clone();
            if outside {
                value.ty = Ty::AnyTensor;
            }
            let kind = TKind::Check { value: Box::new(value), name: name.clone(), annotation, dims };
            self.set_slot(binding.slot, TExpr { kind, ty, span });
        }
    }

    /// `N` of `Tensor[N*N]`.
    fn untold(&mut self, name: &str, size: &str, declared: &Ty, annotation: Span) {
        let mut there = false;
        tessera_core::sizes::each_dim(declared, &mut |d| there |= d.vars().iter().any(|v| &*v.name == size));
        if there {
            let text = format!("the size variable `{size}` cannot be told from the value of `{name}`");
            self.report(Diagnostic::new(Code::E0216, annotation, text).help("name the whole size: `Tensor[M, f32]`"));
        }
    }

    /// `target op= value`
    pub fn augmented(&mut self, op: BinOp, op_span: Span, target: &Expr, value: &Expr, span: Span) {
        match &target.kind {
            ExprKind::Name(name) => {
                let mut old = self.expr(target);
                let value = self.right_of([&mut old], |cx| cx.expr(value));
                let new = self.binary(op, op_span, old, value, span);
                self.bind(name, new, target.span);
            }
            ExprKind::Attr { base, name } => {
                let mut old = self.read_lvalue(target);
                let value = self.right_of([&mut old], |cx| cx.expr(value));
                let new = self.binary(op, op_span, old, value, span);
                self.set_field(target, base, name, new);
            }
            ExprKind::Index { base, index } => {
                let base_value = self.read_lvalue(base);
                if base_value.ty.is_error() {
                    self.expr(value);
                    return;
                }
                if base_value.ty.is_tensor() {
                    return self.augment_tensor(op, op_span, target, base, value, base_value, span);
                }
                // The index is computed once.
                let old = match index.as_slice() {
                    [arg] if arg.name.is_none() && !arg.star && !matches!(arg.value.kind, ExprKind::Slice { .. }) => {
                        let key = self.expr(&arg.value);
                        let key = self.save("key", key);
                        let old = self.element_at(base_value, key.clone(), target.span);
                        Some((key, old))
                    }
                    _ => None,
                };
                let Some((key, mut old)) = old else {
                    self.error(Code::E0211, target.span, "one index is needed here");
                    return;
                };
                let value = self.right_of([&mut old], |cx| cx.expr(value));
                let new = self.binary(op, op_span, old, value, span);
                self.set_element(base, key, new, target.span);
            }
            ExprKind::Error => {}
            _ => self.error(Code::E0010, target.span, "this cannot be assigned to"),
        }
    }

    fn set_element(&mut self, base: &Expr, key: TExpr, value: TExpr, span: Span) {
        let Some((mut place, ty)) = self.lvalue(base) else { return };
        if value.ty.is_error() || key.ty.is_error() {
            return;
        }
        let (step, element) = match &ty {
            Ty::List(t) => (TStep::Index(as_int(key)), (**t).clone()),
            Ty::Dict(_, t) => (TStep::Key(key), (**t).clone()),
            Ty::Tuple(_) => {
                self.error(Code::E0302, span, "a tuple cannot be changed");
                return;
            }
            Ty::Str => {
                self.error(Code::E0302, span, "a string cannot be changed");
                return;
            }
            _ => return,
        };
        let Some(value) = self.stored(base, &place, (&ty, &element), value) else { return };
        place.steps.push(step);
        self.out.push(TStmt::Mutate { place, change: TChange::Set(value), span });
    }

    #[allow(clippy::too_many_arguments, reason = "one call site")]
    fn augment_tensor(
        &mut self,
        op: BinOp,
        op_span: Span,
        target: &Expr,
        base: &Expr,
        value: &Expr,
        base_value: TExpr,
        span: Span,
    ) {
        let ExprKind::Index { index, .. } = &target.kind else { return };
        let parts: Vec<GivenIndex> = self.index_parts(index).into_iter().map(|p| self.saved_part(p)).collect();
        let base_ty = base_value.ty.clone();
        let mut base_value = base_value;
        self.hold_masks(&mut base_value, &parts);
        let result = tessera_types::tensor::index(&mut self.sizes, base_value, parts.clone(), target.span);
        let mut old = self.take(result);
        let value = self.right_of([&mut old], |cx| cx.expr(value));
        let new = self.binary(op, op_span, old, value, span);
        let Some((place, _)) = self.lvalue(base) else { return };
        if new.ty.is_error() {
            return;
        }
        let base_ty = self.written_into(base, &base_ty, &parts, &new.ty);
        match tessera_types::tensor::assign_index(&mut self.sizes, &base_ty, base.span, parts, &new, target.span) {
            Ok(written) => {
                self.hold_equal(&written.checks, target.span);
                let change = TChange::TensorSet { of: base_ty, index: written.parts, value: new };
                self.out.push(TStmt::Mutate { place, change, span: target.span });
            }
            Err(d) => self.report(d),
        }
    }

    fn saved_part(&mut self, part: GivenIndex) -> GivenIndex {
        match part {
            GivenIndex::Value(e) => GivenIndex::Value(self.save("index", e)),
            GivenIndex::Slice { low, high, step, span } => {
                let mut keep = |e: Option<TExpr>| e.map(|e| self.save("bound", e));
                GivenIndex::Slice { low: keep(low), high: keep(high), step: keep(step), span }
            }
            other => other,
        }
    }
}
