//! `numerics.policy`: as a statement, around a block, on a function.

use super::cx::Cx;
use super::names::Meaning;
use tessera_base::near::nearest;
use tessera_base::{Code, Diagnostic, Span};
use tessera_grammar::ast::{Expr, ExprKind};
use tessera_ir::graph::Policy;

const POLICIES: &[(&str, Policy)] =
    &[("deterministic", Policy::Deterministic), ("fast", Policy::Fast), ("kahan_sum", Policy::KahanSum)];

impl Cx<'_> {
    /// The policy of `numerics.policy("…")`. `None`: the expression is something else.
    /// `Some(None)`: reported.
    pub fn policy_call(&mut self, e: &Expr) -> Option<Option<Policy>> {
        let ExprKind::Call { func, args } = &e.kind else { return None };
        if !matches!(func.kind, ExprKind::Name(_) | ExprKind::Attr { .. }) || !self.is_policy_name(func) {
            return None;
        }
        let [arg] = args.as_slice() else {
            self.error(Code::E0104, e.span, "`numerics.policy` takes the name of one policy");
            return Some(None);
        };
        let ExprKind::Str(name) = &arg.value.kind else {
            let d = Diagnostic::new(Code::E0501, arg.value.span, "the policy must be written as a string here")
                .help("`\"deterministic\"`, `\"fast\"` or `\"kahan_sum\"`");
            self.report(d);
            return Some(None);
        };
        Some(self.policy_named(name, arg.value.span))
    }

    fn is_policy_name(&mut self, func: &Expr) -> bool {
        match &func.kind {
            ExprKind::Attr { base, name } => {
                &*name.text == "policy"
                    && self.is_module_path(base)
                    && matches!(self.meaning(func), Some(Meaning::Builtin(n)) if &*n == "numerics.policy")
            }
            ExprKind::Name(name) => {
                self.env.get(name).is_none()
                    && matches!(
                        crate::db::scope(self.db, self.names_of()).names.get(name),
                        Some(crate::db::Entity::Builtin(n)) if &**n == "numerics.policy"
                    )
            }
            _ => false,
        }
    }

    fn policy_named(&mut self, name: &str, span: Span) -> Option<Policy> {
        if let Some((_, policy)) = POLICIES.iter().find(|(n, _)| *n == name) {
            return Some(*policy);
        }
        let d = Diagnostic::new(Code::E0101, span, format!("there is no policy `{name}`"));
        let near = nearest(name, POLICIES.iter().map(|(n, _)| *n))
            .or_else(|| POLICIES.iter().map(|(n, _)| *n).find(|n| n.starts_with(name) && name.len() >= 3));
        let d = match near {
            Some(near) => d.fix(format!("did you mean \"{near}\"?"), span, format!("\"{near}\"")),
            None => d.note("policies are \"deterministic\" (the default), \"fast\" and \"kahan_sum\""),
        };
        self.report(d);
        None
    }

    /// The policy that a decorator sets.
    pub fn decorated_policy(&mut self, decorators: &[Expr]) -> Option<Policy> {
        decorators.iter().find_map(|d| self.policy_call(d).flatten())
    }
}
