//! Lists, tuples and dicts of functions that are written out where the type of the functions is declared: each is made a
//! value of that type, so that they need not agree among themselves.

use super::cx::{Cx, error_at};
use std::sync::Arc;
use tessera_core::ir::*;
use tessera_core::ty::Ty;
use tessera_grammar::ast::{Arg, Expr, ExprKind, Param, ParamKind};

/// What a parameter takes, as far as it is known before the arguments are looked at.
pub struct Wanted {
    name: Arc<str>,
    /// Whether an argument without a name may be its.
    plain: bool,
    ty: Ty,
}

impl Wanted {
    pub fn plain(name: &str, ty: Ty) -> Wanted {
        Wanted { name: name.into(), plain: true, ty }
    }

    /// The type that is wanted of an argument, the one at `place` among those without a name.
    pub fn find<'a>(wanted: &'a [Wanted], arg: &Arg, place: Option<usize>) -> Option<&'a Ty> {
        let found = match &arg.name {
            Some(name) => wanted.iter().find(|w| w.name == name.text),
            None => wanted.iter().filter(|w| w.plain).nth(place?),
        };
        found.map(|w| &w.ty)
    }
}

/// What the parameters of a function take.
pub fn of_params(params: &[Param]) -> Vec<Wanted> {
    let wanted = |p: &Param| Wanted {
        name: p.name.text.clone(),
        plain: p.kind == ParamKind::Plain,
        ty: p.ty.as_ref().filter(|_| p.kind != ParamKind::Rest).map_or(Ty::Unknown, outline),
    };
    params.iter().map(wanted).collect()
}

/// Where an annotation has function types in lists, dicts and tuples; all else is left out.
pub fn outline(annotation: &Expr) -> Ty {
    match &annotation.kind {
        ExprKind::FnType { .. } => Ty::Fn(vec![], Box::new(Ty::Unknown)),
        ExprKind::Index { base, index } => {
            let ExprKind::Name(base) = &base.kind else { return Ty::Unknown };
            let mut parts = index.iter().map(|a| outline(&a.value));
            match (&**base, index.len()) {
                ("list", 1) => Ty::List(Box::new(parts.next().unwrap_or(Ty::Unknown))),
                ("dict", 2) => Ty::Dict(Box::new(Ty::Unknown), Box::new(parts.next_back().unwrap_or(Ty::Unknown))),
                ("tuple", _) => Ty::Tuple(parts.collect()),
                _ => Ty::Unknown,
            }
        }
        _ => Ty::Unknown,
    }
}

/// Whether an expression is the form of a value with parts.
pub fn is_written_out(e: &Expr) -> bool {
    matches!(e.kind, ExprKind::List(_) | ExprKind::Dict(_) | ExprKind::Tuple(_))
}

/// Whether elements of lists or dicts in it are functions.
pub fn has_functions(ty: &Ty) -> bool {
    match ty {
        Ty::List(t) | Ty::Dict(_, t) => matches!(**t, Ty::Fn(..)) || has_functions(t),
        Ty::Tuple(ts) => ts.iter().any(has_functions),
        _ => false,
    }
}

impl Cx<'_> {
    /// An expression where a type is declared.
    pub fn expr_for(&mut self, e: &Expr, declared: &Ty) -> TExpr {
        match self.functions_of(e, declared) {
            Some(value) => value,
            None => self.expr(e),
        }
    }

    /// A list, tuple or dict with functions in it that is written out where their type is declared. The lists and dicts
    /// do not say what their elements are: whoever declares it converts them.
    pub fn functions_of(&mut self, e: &Expr, declared: &Ty) -> Option<TExpr> {
        if !has_functions(declared) {
            return None;
        }
        let span = e.span;
        let value = match (&e.kind, declared) {
            (ExprKind::List(items), Ty::List(t)) if !items.is_empty() => {
                let items = self.operands_as(items.iter().map(|i| (i, Some(&**t))));
                TExpr { kind: TKind::List(items), ty: Ty::List(Box::new(Ty::Unknown)), span }
            }
            (ExprKind::ListComp { element, clauses }, Ty::List(t)) => self.comprehension_of(element, t, clauses, span),
            (ExprKind::Dict(pairs), Ty::Dict(_, t)) if !pairs.is_empty() => {
                let parts = pairs.iter().flat_map(|(k, v)| [(k, None), (v, Some(&**t))]);
                let mut all = self.operands_as(parts).into_iter();
                let pairs = std::iter::from_fn(|| all.next().zip(all.next())).collect();
                TExpr { kind: TKind::Dict(pairs), ty: Ty::Dict(Box::new(Ty::Unknown), Box::new(Ty::Unknown)), span }
            }
            (ExprKind::Tuple(items), Ty::Tuple(ts)) if items.len() == ts.len() => {
                let items = self.operands_as(items.iter().zip(ts.iter().map(Some)));
                let ty = Ty::Tuple(items.iter().map(|i| i.ty.clone()).collect());
                TExpr { kind: TKind::Tuple(items), ty, span }
            }
            _ => return None,
        };
        let broken = match &value.kind {
            TKind::List(items) | TKind::Tuple(items) => items.iter().any(|i| i.ty.is_error()),
            TKind::Dict(pairs) => pairs.iter().any(|(k, v)| k.ty.is_error() || v.ty.is_error()),
            _ => false,
        };
        Some(if broken { error_at(span) } else { value })
    }
}
