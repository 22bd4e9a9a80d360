//! Places: variables and the paths inside them that can be changed.

use super::cx::{Cx, error_at};
use super::env::Slot;
use super::scalars::as_int;
use super::tensors::computed_of;
use super::types::{erase, has_unknown, same_slot};
use std::sync::Arc;
use tessera_base::{Code, Diagnostic, Span};
use tessera_core::ir::*;
use tessera_core::layouts::{sliced_like, with_shardings_of};
use tessera_core::ty::{StructTy, Ty};
use tessera_grammar::ast::{Arg, Expr, ExprKind, Name};
use tessera_types::tensor::GivenIndex;
use tessera_types::unify::Role;

impl Cx<'_> {
    /// The place that an expression names, and its type; reports where it is none.
    pub fn lvalue(&mut self, e: &Expr) -> Option<(TLvalue, Ty)> {
        let found = self.changing(|cx| cx.lvalue_in(e));
        if let Some((_, ty)) = &found {
            self.env.note_place(e.span, ty);
        }
        found
    }

    fn lvalue_in(&mut self, e: &Expr) -> Option<(TLvalue, Ty)> {
        match &e.kind {
            ExprKind::Name(name) => {
                let (root, ty) = self.changeable(name, e.span)?;
                Some((TLvalue { root, steps: vec![] }, ty))
            }
            ExprKind::Attr { base, name } => {
                if self.is_module_path(base) {
                    self.error(Code::E0302, e.span, "a variable of another module cannot be changed from here");
                    return None;
                }
                let (mut place, ty) = self.lvalue(base)?;
                let (i, field) = self.field_lvalue(&ty, name, e.span)?;
                place.steps.push(TStep::Field(i));
                Some((place, field))
            }
            ExprKind::Index { base, index } => {
                let (mut place, ty) = self.lvalue(base)?;
                let (step, element) = self.index_lvalue(base, &ty, index, e.span)?;
                place.steps.push(step);
                Some((place, element))
            }
            ExprKind::Error => None,
            _ => {
                let d = Diagnostic::new(Code::E0302, e.span, "this value has no name, so a change of it would be lost")
                    .help("give it a name first");
                self.report(d);
                None
            }
        }
    }

    fn field_lvalue(&mut self, ty: &Ty, name: &Name, span: Span) -> Option<(u32, Ty)> {
        match ty {
            Ty::Struct(s) => {
                if let Some(i) = s.fields.iter().position(|(n, _)| *n == name.text) {
                    return Some((i as u32, s.fields[i].1.clone()));
                }
                let value = TExpr { kind: TKind::None, ty: ty.clone(), span };
                self.field(value, name, span);
            }
            Ty::Error | Ty::Never => {}
            ty => self.error(Code::E0302, name.span, format!("`{}` of `{ty}` cannot be assigned", name.text)),
        }
        None
    }

    fn index_lvalue(&mut self, base: &Expr, ty: &Ty, index: &[Arg], span: Span) -> Option<(TStep, Ty)> {
        let d = match ty {
            Ty::List(t) => {
                let key = self.one_index(index, span)?;
                let key = as_int(key);
                return match &key.ty {
                    Ty::Int(_) => {
                        let ty = self.element(t);
                        Some((TStep::Index(key), ty))
                    }
                    Ty::Error | Ty::Never => None,
                    other => {
                        self.error(
                            Code::E0211,
                            key.span,
                            format!("the index of a `{ty}` is an `int`, and this is `{other}`"),
                        );
                        None
                    }
                };
            }
            Ty::Dict(k, v) => {
                let key = self.one_index(index, span)?;
                if key.ty.is_error() {
                    return None;
                }
                if !same_slot(&erase(k), &erase(&key.ty)) {
                    self.error(
                        Code::E0204,
                        key.span,
                        format!("the keys of this dict are `{k}`, and this is `{}`", key.ty),
                    );
                    return None;
                }
                if **k == Ty::Unknown {
                    let key_ty = if let Ty::Int(_) = key.ty { Ty::int() } else { key.ty.clone() };
                    self.retype_lvalue(base, Ty::Dict(Box::new(key_ty), v.clone()));
                }
                let ty = self.element(v);
                return Some((TStep::Key(key), ty));
            }
            Ty::Error | Ty::Never => return None,
            Ty::Tensor(_) | Ty::AnyTensor => {
                Diagnostic::new(Code::E0302, span, "an indexed tensor is a new value, so a change of it would be lost")
                    .help("index in one step: `x[i, j] = v`")
            }
            Ty::Str => Diagnostic::new(Code::E0302, span, "a string cannot be changed")
                .help("build a new one: `s[:i] + c + s[i + 1:]`"),
            Ty::Tuple(_) => {
                Diagnostic::new(Code::E0302, span, "a tuple cannot be changed").help("use a list or a struct")
            }
            ty => Diagnostic::new(Code::E0211, span, format!("`{ty}` cannot be indexed")),
        };
        self.report(d);
        None
    }

    fn one_index(&mut self, index: &[Arg], span: Span) -> Option<TExpr> {
        match index {
            [Arg { name: None, star: false, value }] if matches!(value.kind, ExprKind::Slice { .. }) => {
                let d = Diagnostic::new(Code::E0302, value.span, "assigning to a slice of a list is not supported")
                    .help("assign the elements, or build a new list");
                self.report(d);
                None
            }
            [Arg { name: None, star: false, value }] => Some(self.key(value)),
            _ => {
                self.error(Code::E0211, span, format!("one index is needed here, and {} are given", index.len()));
                None
            }
        }
    }

    /// The type of a place without a report.
    pub fn lvalue_ty(&self, e: &Expr) -> Option<(Slot, Ty)> {
        match &e.kind {
            ExprKind::Name(name) => self.env.get(name).map(|b| (b.slot, b.ty.clone())),
            ExprKind::Attr { base, name } => match self.lvalue_ty(base)? {
                (slot, Ty::Struct(s)) => s.fields.iter().find(|(n, _)| *n == name.text).map(|(_, t)| (slot, t.clone())),
                _ => None,
            },
            ExprKind::Index { base, .. } => match self.lvalue_ty(base)? {
                (slot, Ty::List(t) | Ty::Dict(_, t)) => Some((slot, *t)),
                _ => None,
            },
            _ => None,
        }
    }

    /// Makes a new type of a place known (a list that gets its first element).
    pub fn retype_lvalue(&mut self, e: &Expr, ty: Ty) {
        match &e.kind {
            ExprKind::Name(name) if self.env.get(name).is_some() => self.retype(name, ty),
            ExprKind::Name(name) => {
                if let super::names::Meaning::Value(value) = self.name(name, e.span)
                    && has_unknown(&value.ty)
                {
                    let d = Diagnostic::new(
                        Code::E0216,
                        e.span,
                        format!("the element type of the module's `{name}` is not known here"),
                    )
                    .help(format!("annotate it where it is made: `{name}: {ty} = []`"));
                    self.report(d);
                }
            }
            ExprKind::Attr { base, name } => {
                if let Some((_, Ty::Struct(s))) = self.lvalue_ty(base)
                    && let Some(i) = s.fields.iter().position(|(n, _)| *n == name.text)
                {
                    self.retype_lvalue(base, Cx::with_field(&s, i, ty));
                }
            }
            ExprKind::Index { base, .. } => match self.lvalue_ty(base) {
                Some((_, Ty::List(_))) => self.retype_lvalue(base, Ty::List(Box::new(ty))),
                Some((_, Ty::Dict(k, _))) => self.retype_lvalue(base, Ty::Dict(k, Box::new(ty))),
                _ => {}
            },
            _ => {}
        }
    }

    /// Assigns a value to a place that is a whole slot.
    pub fn set_lvalue(&mut self, place: TLvalue, value: TExpr, span: Span) {
        if place.steps.is_empty() {
            let slot = match place.root {
                TRoot::Local(id) => Slot::Local(id),
                TRoot::Global(id) => Slot::Global(id),
            };
            return self.set_slot(slot, value);
        }
        self.out.push(TStmt::Mutate { place, change: TChange::Set(value), span });
    }

    /// `base.name = value`
    pub fn set_field(&mut self, target: &Expr, base: &Expr, name: &Name, value: TExpr) {
        let mut value = value;
        let Some((place, ty)) = self.right_of([&mut value], |cx| cx.lvalue(target)) else { return };
        if value.ty.is_error() {
            return;
        }
        let beside = if super::size_checks::has_sizes(&ty) { self.beside(base, &place) } else { vec![] };
        let of = match self.lvalue_ty(base).map(|(_, ty)| ty).or(beside.last().map(|(_, held)| held.ty.clone())) {
            Some(Ty::Struct(s)) => s.name.to_string(),
            _ => "the struct".into(),
        };
        // Each look at an element gives its sizes names: these are the ones of this look.
        let held = match beside.last().map(|(_, h)| &h.ty) {
            Some(Ty::Struct(s)) => s.fields.iter().find(|(field, _)| *field == name.text).map(|(_, t)| t.clone()),
            _ => None,
        };
        let declared = self.declared_field(&held.unwrap_or(ty.clone()));
        let role = Role::Field { of, field: name.text.to_string() };
        let value = self.sliced_for(value, &ty);
        let value = self.expect_beside(value, &declared, &name.text, Span::NONE, role.clone(), beside);
        // Of one element of a container, whose type is that of all.
        let one_of = place.steps.iter().any(|s| !matches!(s, TStep::Field(_)));
        let value =
            if one_of && !value.ty.is_error() { self.expect_sharding(value, &ty, &role, Span::NONE) } else { value };
        if value.ty.is_error() {
            return;
        }
        let now = after_store(&ty, &value.ty, one_of);
        if now != ty && self.lvalue_ty(target).is_some() {
            self.retype_lvalue(target, now);
        }
        self.out.push(TStmt::Mutate { place, change: TChange::Set(value), span: target.span });
    }

    /// What a field takes: any int where its value is known.
    fn declared_field(&self, ty: &Ty) -> Ty {
        match ty {
            Ty::Int(_) => Ty::int(),
            Ty::DType(_) => Ty::DType(None),
            other => other.clone(),
        }
    }

    /// `base[index] = value`
    pub fn set_index(&mut self, target: &Expr, base: &Expr, index: &[Arg], value: TExpr) {
        let mut value = value;
        let Some((mut place, ty)) = self.right_of([&mut value], |cx| cx.lvalue(base)) else { return };
        let span = target.span;
        if ty.is_tensor() {
            let mut given = self.right_of([&mut value], |cx| cx.index_parts(index));
            self.keep_written([&mut value].into_iter().chain(computed_of(&mut given)));
            if value.ty.is_error() {
                return;
            }
            if given.iter().any(|g| matches!(g, GivenIndex::OfMask(..))) {
                let mut old = self.read_lvalue(base);
                self.hold_masks(&mut old, &given);
            }
            let ty = self.written_into(base, &ty, &given, &value.ty);
            match tessera_types::tensor::assign_index(&mut self.sizes, &ty, base.span, given, &value, span) {
                Ok(written) => {
                    self.hold_equal(&written.checks, span);
                    let change = TChange::TensorSet { of: ty, index: written.parts, value };
                    self.out.push(TStmt::Mutate { place, change, span });
                }
                Err(d) => self.report(d),
            }
            return;
        }
        let step = self.right_of([&mut value], |cx| cx.index_lvalue(base, &ty, index, span));
        let Some((step, _)) = step else { return };
        if value.ty.is_error() {
            return;
        }
        let (Ty::List(element) | Ty::Dict(_, element)) = &ty else { return };
        let element = (**element).clone();
        let Some(value) = self.stored(base, &place, (&ty, &element), value) else { return };
        place.steps.push(step);
        self.out.push(TStmt::Mutate { place, change: TChange::Set(value), span });
    }

    /// A value in the form that elements of the type have: a float of an int, and a value of a function type of a
    /// function, also inside of what is written out.
    pub fn as_element(&mut self, value: TExpr, element: &Ty) -> TExpr {
        match (element, &value.ty) {
            (Ty::Int(_), Ty::Bool) => as_int(value),
            (Ty::Fn(params, ret), Ty::FnRef(_)) => self.erase_function(value, params, ret),
            (Ty::List(_) | Ty::Dict(..) | Ty::Tuple(_), t)
                if has_unknown(t) && super::container_literals::has_functions(element) =>
            {
                self.expect(value, element, "element", Span::NONE, Role::Other("the element".into()))
            }
            _ => super::scalars::with_floats(value.clone(), element).unwrap_or(value),
        }
    }

    /// A value as an element of the container at `base`. The sizes of elements are kept where they are declared;
    /// else elements may become wider.
    pub fn stored(
        &mut self,
        base: &Expr,
        place: &TLvalue,
        (container, element): (&Ty, &Ty),
        value: TExpr,
    ) -> Option<TExpr> {
        let value = self.as_element(value, element);
        if value.ty.is_error() {
            return None;
        }
        let plain = match &value.ty {
            Ty::Int(_) => Ty::int(),
            other => other.clone(),
        };
        if super::size_checks::has_sizes(element) && self.is_promised(base) {
            let role = Role::Other("the element".into());
            let beside = self.beside(base, place);
            let declared = match beside.last().map(|(_, h)| &h.ty) {
                Some(Ty::List(t) | Ty::Dict(_, t)) => (**t).clone(),
                _ => element.clone(),
            };
            let value = self.sliced_for(value, &declared);
            let value = self.expect_beside(value, &declared, "element", Span::NONE, role.clone(), beside);
            if value.ty.is_error() {
                return None;
            }
            let value = self.expect_sharding(value, &declared, &role, Span::NONE);
            return (!value.ty.is_error()).then_some(value);
        }
        let Some(wider) = self.widen_element(element, &plain) else {
            let list = if matches!(container, Ty::Dict(..)) { "dict" } else { "list" };
            let text = format!("the elements of this {list} are `{element}`, and this is `{}`", value.ty);
            let d = Diagnostic::new(Code::E0204, value.span, text).with_label(base.span, container.to_string());
            self.report(match (element, &value.ty) {
                (Ty::Int(_), Ty::Float) => {
                    d.help("start the list with floats: `[0.0]`, or annotate it: `xs: list[float] = []`")
                }
                (_, t) if super::scalars::floats_of(t, element) != *t => {
                    d.note("ints inside a value become floats only where it is written out")
                }
                _ => d,
            });
            return None;
        };
        // It lies as the others do.
        let value = match sliced_like(&value.ty, &wider) {
            Some(ty) => TExpr { span: value.span, kind: TKind::Layout(Box::new(value)), ty },
            None => value,
        };
        if wider != *element {
            let whole = match self.lvalue_ty(base).map_or(container.clone(), |(_, t)| t) {
                Ty::Dict(k, _) => Ty::Dict(k, Box::new(wider)),
                _ => Ty::List(Box::new(wider)),
            };
            self.retype_lvalue(base, whole);
        }
        Some(value)
    }

    /// What has the sizes that the type of a part of `base` names: the variable that it is in, and itself, which comes
    /// last.
    pub fn beside(&mut self, base: &Expr, place: &TLvalue) -> Vec<(String, TExpr)> {
        let mut out = vec![];
        if !place.steps.is_empty() {
            let slot = match place.root {
                TRoot::Local(id) => super::env::Slot::Local(id),
                TRoot::Global(id) => super::env::Slot::Global(id),
            };
            let root = self.env.bound().find(|(_, b)| b.slot == slot).map(|(n, b)| (n.clone(), b.ty.clone()));
            out.extend(root.map(|(name, ty)| (format!("`{name}`"), super::cx::read(slot, ty, base.span))));
        }
        out.push(("the old value".into(), self.changing(|cx| cx.expr(base))));
        out
    }

    /// Whether the type of a container is declared, and not only what its elements have in common: by an
    /// annotation, as a field, or where another function sees it.
    pub fn is_promised(&self, base: &Expr) -> bool {
        match &base.kind {
            ExprKind::Name(name) => self.env.get(name).is_none() || self.declared.contains(name),
            ExprKind::Attr { .. } => true,
            ExprKind::Index { base, .. } => self.is_promised(base),
            _ => false,
        }
    }

    /// A place as an expression that reads it.
    pub fn read_lvalue(&mut self, e: &Expr) -> TExpr {
        match self.lvalue(e) {
            Some(_) => self.changing(|cx| cx.expr(e)),
            None => error_at(e.span),
        }
    }
}

/// Whether an expression has the form of a place: a variable, its fields and elements.
pub fn is_lvalue(e: &Expr) -> bool {
    match &e.kind {
        ExprKind::Name(_) => true,
        ExprKind::Attr { base, .. } | ExprKind::Index { base, .. } => is_lvalue(base),
        _ => false,
    }
}

/// The type of a slot after a store: ints and dtypes inside have the values of what is stored, unless it is `one_of`
/// many slots of one type.
fn after_store(old: &Ty, new: &Ty, one_of: bool) -> Ty {
    match (old, new) {
        (Ty::Int(old), Ty::Int(new)) if one_of && old != new => Ty::int(),
        (Ty::DType(old), Ty::DType(new)) if one_of && old != new => Ty::DType(None),
        (Ty::Int(_) | Ty::DType(_), new) => new.clone(),
        (old, new) if has_unknown(old) => new.clone(),
        (Ty::Tuple(old), Ty::Tuple(new)) if old.len() == new.len() => {
            Ty::Tuple(old.iter().zip(new).map(|(old, new)| after_store(old, new, one_of)).collect())
        }
        (Ty::Struct(old), Ty::Struct(new)) if old.item == new.item => {
            let field = |((name, old), (_, new)): (&(Arc<str>, Ty), &(Arc<str>, Ty))| {
                (name.clone(), after_store(old, new, one_of))
            };
            let fields = old.fields.iter().zip(&new.fields).map(field).collect();
            Ty::Struct(Arc::new(StructTy { fields, ..StructTy::clone(old) }))
        }
        (old, new) => with_shardings_of(old, new),
    }
}
