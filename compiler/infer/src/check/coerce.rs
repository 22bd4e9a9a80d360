//! Values where a type is declared.

use super::cx::Cx;
use super::size_checks::SizeClaim;
use super::types::erase;
use tessera_base::{Diagnostic, ItemId, Span};
use tessera_core::ir::*;
use tessera_core::ty::Ty;
use tessera_types::unify::{Mismatch, Role, mismatch_diagnostic};

impl Cx<'_> {
    /// `value` as a value of the declared type; reports where it is none. What only a run can tell
    /// is compared here.
    ///
    /// `name`: what is bound; `declared`: where the type is written.
    pub fn expect(&mut self, value: TExpr, expected: &Ty, name: &str, declared: Span, role: Role) -> TExpr {
        self.expect_beside(value, expected, name, declared, role, vec![])
    }

    /// As [`Cx::expect`] where other values have the sizes that the expected type names, and tell them: the old value of
    /// what is changed, and what that is a part of. Each with what it is, in words.
    pub fn expect_beside(
        &mut self,
        value: TExpr,
        expected: &Ty,
        name: &str,
        declared: Span,
        role: Role,
        beside: Vec<(String, TExpr)>,
    ) -> TExpr {
        let (span, found) = (value.span, value.ty.clone());
        match self.converted(value, expected, name, declared) {
            Ok((value, false)) => proved(value, expected),
            Ok((value, true)) => {
                let at = if declared.is_none() { span } else { declared };
                self.compared(value, (expected, &found), name, role.text(), at, beside)
            }
            Err(m) => self.mismatch(&m, &role, span, declared),
        }
    }

    /// As [`Cx::expect`] of an argument of a function that compares the sizes of its parameters itself. `compares`:
    /// whether it compares any; until then all arguments have the sizes that they came with.
    pub fn expect_argument(
        &mut self,
        value: TExpr,
        (expected, compares): (&Ty, bool),
        name: &str,
        declared: Span,
        role: Role,
    ) -> TExpr {
        let (span, found) = (value.span, value.ty.clone());
        match self.converted(value, expected, name, declared) {
            // Element types in a container are nobody else's to compare.
            Ok((value, true)) if holds_any(&found) => {
                let at = if declared.is_none() { span } else { declared };
                self.compared(value, (expected, &found), name, role.text(), at, vec![])
            }
            Ok((value, _)) if compares => value,
            Ok((value, _)) => proved(value, expected),
            Err(m) => self.mismatch(&m, &role, span, declared),
        }
    }

    /// What a function gives that is a value of a function type, compared with the result that this says. Where it
    /// cannot be that, the place that makes it a value says so.
    pub fn given_as_erased(&mut self, value: TExpr) -> TExpr {
        let Some(state) = &self.func else { return value };
        let role = Role::Returned { function: state.f.sig.name.to_string() };
        let Some(ret) = self.data.as_ref().and_then(|d| d.erased.clone()) else { return value };
        if let (Ty::FnRef(_), Ty::Fn(params, result)) = (&value.ty, &ret) {
            return self.erase_function(value, params, result);
        }
        if erase(&value.ty) != erase(&ret) || !super::size_checks::has_sizes(&ret) {
            return value;
        }
        let (span, found) = (value.span, value.ty.clone());
        match self.converted(value.clone(), &ret, "result", Span::NONE) {
            Ok((value, true)) => self.compared(value, (&ret, &found), "result", role.text(), span, vec![]),
            Ok((value, false)) => proved(value, &ret),
            Err(_) => value,
        }
    }

    /// As [`Cx::expect`] of a value whose sizes are compared together with others, and whether they have to be: until
    /// then it has its own.
    pub fn expect_open(
        &mut self,
        value: TExpr,
        expected: &Ty,
        name: &str,
        declared: Span,
        role: Role,
    ) -> (TExpr, bool) {
        let span = value.span;
        match self.converted(value, expected, name, declared) {
            Ok((value, true)) => (value, true),
            Ok((value, false)) => (proved(value, expected), false),
            Err(m) => (self.mismatch(&m, &role, span, declared), false),
        }
    }

    fn mismatch(&mut self, m: &Mismatch, role: &Role, span: Span, declared: Span) -> TExpr {
        let at = (!declared.is_none()).then_some(declared);
        let d = mismatch_diagnostic(m, role, span, at);
        let d = self.with_namesakes(d, m);
        let d = match role {
            Role::Returned { .. } => super::constants::with_constants(d, &self.constants),
            _ => d,
        };
        self.fail(d)
    }

    /// A mismatch of two structs of one name, with where each is defined.
    pub fn with_namesakes(&mut self, d: Diagnostic, m: &Mismatch) -> Diagnostic {
        let (Ty::Struct(e), Ty::Struct(f)) = m.parts() else { return d };
        if e.name != f.name || e.item == f.item {
            return d;
        }
        let (e, f) = (self.struct_def(ItemId(e.item)), self.struct_def(ItemId(f.item)));
        let (Some(e), Some(f)) = (e, f) else { return d };
        d.with_label(e.name.span, format!("the `{}` that is declared", e.name.text))
            .with_label(f.name.span, format!("the `{}` of the value", f.name.text))
            .note("they are two structs of one name: a value keeps the one that it was made with")
    }

    /// As [`Cx::expect`], without a report.
    pub fn try_expect(
        &mut self,
        value: TExpr,
        expected: &Ty,
        name: &str,
        declared: Span,
    ) -> Result<TExpr, Box<Mismatch>> {
        let (span, found) = (value.span, value.ty.clone());
        let (value, open) = self.converted(value, expected, name, declared)?;
        let at = if declared.is_none() { span } else { declared };
        Ok(match open {
            true => self.compared(value, (expected, &found), name, format!("`{name}`"), at, vec![]),
            false => proved(value, expected),
        })
    }

    /// The value as one of the type with its own sizes, and whether any are left to compare.
    fn converted(
        &mut self,
        value: TExpr,
        expected: &Ty,
        name: &str,
        declared: Span,
    ) -> Result<(TExpr, bool), Box<Mismatch>> {
        if value.ty.is_error() || *expected == Ty::Error {
            return Ok((value, false));
        }
        // The rules read the elements of a tuple one by one.
        let value = match (&value.kind, expected) {
            (TKind::Tuple(_) | TKind::Local(_) | TKind::Global(_), _) => value,
            (_, Ty::Tuple(_)) => self.save(name, value),
            _ => value,
        };
        let outer = std::mem::take(&mut self.sizes.unproved);
        let converted = tessera_types::coerce::coerce(&mut self.sizes, value, expected, name, declared);
        let open = std::mem::replace(&mut self.sizes.unproved, outer);
        let mut value = converted?;
        if let TKind::IntToFloat(x) = &value.kind {
            self.block_number(x);
        }
        self.finish(&mut value, expected);
        Ok((value, open))
    }

    /// The value, with its sizes compared with those of the expected type.
    pub fn compared(
        &mut self,
        value: TExpr,
        (expected, found): (&Ty, &Ty),
        name: &str,
        what: String,
        at: Span,
        beside: Vec<(String, TExpr)>,
    ) -> TExpr {
        let value = self.save(name, value);
        let refined = tessera_types::unify::refine(expected, &value.ty);
        let mut parts = vec![];
        for (what, other) in beside {
            let name = what.trim_start_matches("the ").trim_matches('`');
            let value = self.save(name, other);
            let (declared, found) = (value.ty.clone(), value.ty.clone());
            parts.push(SizeClaim { what, declared, found, value, at, ints: false, before: true });
        }
        let declared = expected.clone();
        parts.push(SizeClaim {
            what,
            declared,
            found: found.clone(),
            value: value.clone(),
            at,
            ints: false,
            before: false,
        });
        let stmts = self.check_sizes(parts);
        self.out.extend(stmts);
        TExpr { ty: refined, ..value }
    }

    /// Fills in run-time checks, and makes values of function types of particular functions.
    pub fn finish(&mut self, value: &mut TExpr, expected: &Ty) {
        match (&mut value.kind, expected) {
            (TKind::Check { dims, .. }, _) => match expected {
                Ty::Tensor(t) => {
                    *dims = t.shape.iter().map(|s| self.size_value(s, value.span)).collect();
                }
                Ty::TensorPattern(p) => *dims = p.tail.iter().map(|s| self.size_value(s, value.span)).collect(),
                _ => {}
            },
            (TKind::List(items), Ty::List(t)) => items.iter_mut().for_each(|i| self.finish(i, t)),
            (TKind::Tuple(items), Ty::Tuple(ts)) => items.iter_mut().zip(ts).for_each(|(i, t)| self.finish(i, t)),
            (TKind::Dict(pairs), Ty::Dict(_, t)) => pairs.iter_mut().for_each(|(_, v)| self.finish(v, t)),
            _ => {}
        }
        match (&value.ty, expected) {
            (Ty::FnRef(_), Ty::Fn(params, ret)) => {
                let (params, ret) = (params.clone(), (**ret).clone());
                let inner = std::mem::replace(value, super::cx::error_at(value.span));
                *value = self.erase_function(inner, &params, &ret);
            }
            (Ty::List(_), Ty::List(e)) if matches!(**e, Ty::Fn(..)) && matches!(value.kind, TKind::List(_)) => {
                value.ty = expected.clone();
            }
            _ => {}
        }
    }

    /// What a diagnostic of the rules says, or the value.
    pub fn checked(&mut self, result: Result<TExpr, Diagnostic>) -> TExpr {
        self.take(result)
    }
}

/// A value whose sizes are proved to be those of the type.
fn proved(value: TExpr, expected: &Ty) -> TExpr {
    match value.ty {
        Ty::Int(_) | Ty::DType(_) | Ty::Error | Ty::Never | Ty::FnRef(_) => value,
        _ => TExpr { ty: tessera_types::unify::refine(expected, &value.ty), ..value },
    }
}

/// Whether a tensor of unknown rank and dtype is in it.
pub fn holds_any(ty: &Ty) -> bool {
    match ty {
        Ty::AnyTensor => true,
        Ty::List(t) | Ty::Dict(_, t) => holds_any(t),
        Ty::Tuple(ts) => ts.iter().any(holds_any),
        Ty::Struct(s) => s.fields.iter().any(|(_, t)| holds_any(t)),
        _ => false,
    }
}
