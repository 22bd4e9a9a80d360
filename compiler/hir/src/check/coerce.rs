//! Values where a type is declared.

use super::cx::Cx;
use crate::rules;
use crate::rules::unify::{Role, mismatch_diagnostic};
use crate::thir::*;
use crate::ty::Ty;
use tessera_base::{Diagnostic, Span};

impl Cx<'_> {
    /// `value` as a value of the declared type; reports where it is none.
    ///
    /// `name`: what is bound; `declared`: where the type is written.
    pub fn expect(&mut self, value: TExpr, expected: &Ty, name: &str, declared: Span, role: Role) -> TExpr {
        let span = value.span;
        match self.try_expect(value, expected, name, declared) {
            Ok(value) => value,
            Err(m) => {
                let at = (!declared.is_none()).then_some(declared);
                self.fail(mismatch_diagnostic(&m, &role, span, at))
            }
        }
    }

    /// As [`Cx::expect`], without a report.
    pub fn try_expect(
        &mut self,
        value: TExpr,
        expected: &Ty,
        name: &str,
        declared: Span,
    ) -> Result<TExpr, Box<rules::unify::Mismatch>> {
        if value.ty.is_error() || *expected == Ty::Error {
            return Ok(value);
        }
        // The rules read the elements of a tuple one by one.
        let value = match (&value.kind, expected) {
            (TKind::Tuple(_) | TKind::Local(_) | TKind::Global(_), _) => value,
            (_, Ty::Tuple(_)) => self.save(name, value),
            _ => value,
        };
        let mut value = rules::coerce::coerce(&mut self.sizes, value, expected, name, declared)?;
        self.finish(&mut value, expected);
        Ok(value)
    }

    /// Fills in run-time checks, and makes values of function types of particular functions.
    pub fn finish(&mut self, value: &mut TExpr, expected: &Ty) {
        match (&mut value.kind, expected) {
            (TKind::Check { value: inner, dims, .. }, _) => match expected {
                Ty::Tensor(t) => {
                    *dims = t.shape.iter().map(|s| self.size_value(s, value.span)).collect();
                }
                Ty::TensorPattern(p) => *dims = p.tail.iter().map(|s| self.size_value(s, value.span)).collect(),
                // Inside a container sizes are checked where they are used.
                _ => {
                    let inner = std::mem::replace(&mut **inner, super::cx::error_at(value.span));
                    *value = TExpr { ty: value.ty.clone(), ..inner };
                }
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
