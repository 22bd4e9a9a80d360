//! What the parameters of a struct stand for: sizes, element types or types, as its fields use them.

use super::annots::AnnotScope;
use super::structs::Generics;
use super::types::plain_ints;
use std::sync::Arc;
use tessera_base::{Code, DType, Diagnostic, Span};
use tessera_core::ir::{TExpr, TKind};
use tessera_core::ty::Ty;
use tessera_grammar::ast::{Expr, ExprKind, StructDef};
use tessera_types::annot::{AnnotNames, GenericArg, NameMeaning};

/// The meanings of a struct's parameters at the arguments of an annotation.
///
/// # Errors
/// E0215 where an argument is of another kind than its parameter.
pub fn given(def: &StructDef, args: Vec<(GenericArg, Span)>) -> Result<Generics, Diagnostic> {
    let mut out = Generics::new();
    for (name, (arg, span)) in def.generics.iter().zip(args) {
        let kind = kind_of(def, &name.text);
        let (meaning, what) = match arg {
            GenericArg::Size(n) if kind == GenericKind::Size => (NameMeaning::Size(n), None),
            GenericArg::DType(d) if kind == GenericKind::DType => (NameMeaning::DType(d), None),
            GenericArg::AnyDType if kind == GenericKind::DType => (NameMeaning::AnyDType, None),
            GenericArg::Type(t) if kind == GenericKind::Type || t == Ty::Error => (NameMeaning::Type(t), None),
            GenericArg::Size(n) => (NameMeaning::Unbound, Some(format!("`{n}` is a size"))),
            GenericArg::DType(d) => (NameMeaning::Unbound, Some(format!("`{d}` is an element type"))),
            GenericArg::AnyDType => (NameMeaning::Unbound, Some("this is an element type".into())),
            GenericArg::Type(t) => (NameMeaning::Unbound, Some(format!("`{t}` is a type"))),
        };
        if let Some(what) = what {
            let wanted = match kind {
                GenericKind::Size => "a size",
                GenericKind::Type => "a type",
                GenericKind::DType => "an element type",
            };
            let text = format!("the parameter `{}` of `{}` is {wanted}, and {what}", name.text, def.name.text);
            return Err(Diagnostic::new(Code::E0215, span, text).with_label(def.head, "declared here"));
        }
        out.insert(name.text.clone(), meaning);
    }
    Ok(out)
}

impl AnnotScope<'_, '_> {
    /// Names in an annotation of a signature that stand for any type or any element type: they are
    /// bound to nothing else and are given for such a parameter of a struct (`Adam[P]`).
    pub fn open_parameters(&mut self, e: &Expr) {
        if let ExprKind::Index { base, index } = &e.kind
            && let Some(def) = self.struct_at(base)
        {
            for (g, arg) in def.generics.iter().zip(index) {
                let ExprKind::Name(name) = &arg.value.kind else { continue };
                let meaning = match kind_of(&def, &g.text) {
                    GenericKind::Size => continue,
                    GenericKind::Type => NameMeaning::Type(Ty::Unknown),
                    GenericKind::DType => NameMeaning::AnyDType,
                };
                let free = name.starts_with(char::is_uppercase)
                    && DType::parse(name).is_none()
                    && self.name(name, arg.value.span) == NameMeaning::Unbound;
                if free {
                    self.own.insert(name.clone(), meaning);
                }
            }
        }
        tessera_resolve::syntax::parts_of(e).into_iter().for_each(|part| self.open_parameters(part));
    }

    fn struct_at(&mut self, base: &Expr) -> Option<Arc<StructDef>> {
        let name = crate::members::dotted(base)?;
        match self.name(&name, base.span) {
            NameMeaning::Struct { .. } => {
                let id = self.find_struct(&name, base.span)?;
                self.cx.struct_def(id)
            }
            _ => None,
        }
    }
}

/// What a struct's parameter stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GenericKind {
    Size,
    Type,
    DType,
}

/// How a struct's fields use a parameter.
pub fn kind_of(def: &StructDef, name: &str) -> GenericKind {
    let mut use_ = Uses::default();
    def.fields.iter().for_each(|f| uses(&f.ty, name, &mut use_));
    if use_.as_type {
        GenericKind::Type
    } else if use_.last && !use_.dim {
        GenericKind::DType
    } else {
        GenericKind::Size
    }
}

#[derive(Default)]
struct Uses {
    as_type: bool,
    dim: bool,
    /// As the last part of `Tensor[…]`, where an element type stands.
    last: bool,
}

fn uses(ty: &Expr, name: &str, out: &mut Uses) {
    match &ty.kind {
        ExprKind::Name(n) if &**n == name => out.as_type = true,
        ExprKind::Index { base, index } if matches!(&base.kind, ExprKind::Name(n) if &**n == "Tensor") => {
            for (i, part) in index.iter().enumerate() {
                match &part.value.kind {
                    // `T`, `DT` are element types by custom; `D`, `N` sizes of a tensor of any.
                    ExprKind::Name(n) if &**n == name && i > 0 && i + 1 == index.len() && name.ends_with('T') => {
                        out.last = true
                    }
                    _ => out.dim |= mentions(&part.value, name),
                }
            }
        }
        ExprKind::Index { base, index } => {
            let container = matches!(&base.kind, ExprKind::Name(n) if matches!(&**n, "list" | "dict" | "tuple"));
            for part in index {
                match &part.value.kind {
                    // A parameter handed on to another struct is a size more often than not.
                    ExprKind::Name(n) if &**n == name && !container => out.dim = true,
                    _ => uses(&part.value, name, out),
                }
            }
        }
        ExprKind::FnType { params, ret } => {
            params.iter().for_each(|p| uses(p, name, out));
            uses(ret, name, out);
        }
        _ => {}
    }
}

fn mentions(e: &Expr, name: &str) -> bool {
    matches!(&e.kind, ExprKind::Name(n) if &**n == name)
        || tessera_resolve::syntax::parts_of(e).into_iter().any(|p| mentions(p, name))
}

/// Whether a type is that of elements of which each has a size of its own.
pub fn is_ragged(ty: &Ty) -> bool {
    match ty {
        Ty::Tensor(t) => t.shape.iter().any(|s| s.vars().iter().any(|v| v.each)),
        Ty::Tuple(ts) => ts.iter().any(is_ragged),
        Ty::Struct(s) => s.fields.iter().any(|(_, t)| is_ragged(t)),
        _ => false,
    }
}

/// What a value says of the sizes of a signature. Of a list that is written out its first element does, and the others
/// are compared with it one by one.
pub fn said_by(value: &TExpr) -> Ty {
    match (&value.kind, &value.ty) {
        (TKind::List(items), Ty::List(t)) if is_ragged(t) => match items.first() {
            Some(first) => Ty::List(Box::new(said_by(first))),
            None => value.ty.clone(),
        },
        _ => value.ty.clone(),
    }
}

/// The type that a type parameter has in a value of the declared type.
pub fn type_in(declared: &Expr, found: &Ty, name: &str) -> Option<Ty> {
    match (&declared.kind, found) {
        (ExprKind::Name(n), ty) if &**n == name => Some(plain_ints(ty)),
        (ExprKind::Index { base, index }, found) => {
            let ExprKind::Name(base) = &base.kind else { return None };
            match (&**base, found) {
                ("list", Ty::List(t)) => type_in(&index.first()?.value, t, name),
                ("dict", Ty::Dict(k, v)) => {
                    type_in(&index.first()?.value, k, name).or_else(|| type_in(&index.get(1)?.value, v, name))
                }
                ("tuple", Ty::Tuple(ts)) => index.iter().zip(ts).find_map(|(a, t)| type_in(&a.value, t, name)),
                _ => None,
            }
        }
        _ => None,
    }
}

/// The element type that a parameter for one has in a value of the declared type.
pub fn dtype_in(declared: &Expr, found: &Ty, name: &str) -> Option<DType> {
    match (&declared.kind, found) {
        (ExprKind::Index { index, .. }, Ty::Tensor(t)) => {
            matches!(&index.last()?.value.kind, ExprKind::Name(n) if &**n == name).then_some(t.dtype).flatten()
        }
        _ => None,
    }
}
