//! What can stand left of `=`: names, places in values, and tuples of those.

use super::Tree;
use crate::ast::*;
use tessera_base::{Code, Diagnostic, Span};

/// Where and why an expression cannot be assigned to.
fn assignable(target: &Expr) -> Result<(), (Span, &'static str)> {
    let what = match &target.kind {
        ExprKind::Name(_) | ExprKind::Error => return Ok(()),
        ExprKind::Index { base, .. } | ExprKind::Attr { base, .. } => return assignable_base(base),
        ExprKind::Tuple(parts) | ExprKind::List(parts) if !parts.is_empty() => {
            return parts.iter().try_for_each(assignable);
        }
        ExprKind::Tuple(_) | ExprKind::List(_) => "an empty list of targets",
        ExprKind::Call { .. } => "the result of a call",
        ExprKind::Compare { .. } => "a comparison",
        ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Str(_) | ExprKind::FStr(_) => "a literal",
        ExprKind::Bool(_) | ExprKind::None | ExprKind::Ellipsis => "a constant",
        ExprKind::Dict(_) | ExprKind::ListComp { .. } => "a new value",
        ExprKind::Cond { .. } => "a conditional expression",
        ExprKind::Lambda { .. } => "a `lambda`",
        ExprKind::FnType { .. } => "a type",
        ExprKind::Unary { .. } | ExprKind::Binary { .. } | ExprKind::Logic { .. } | ExprKind::Slice { .. } => {
            "the result of an operator"
        }
    };
    Err((target.span, what))
}

/// `f(x)[0] = 1` would change a value that nothing holds.
fn assignable_base(base: &Expr) -> Result<(), (Span, &'static str)> {
    match &base.kind {
        ExprKind::Tuple(_) | ExprKind::List(_) => Err((base.span, "part of a value that nothing holds")),
        ExprKind::Call { .. } => Err((base.span, "part of the result of a call, which nothing holds")),
        _ => assignable(base),
    }
}

fn refused(span: Span, what: &str) -> Diagnostic {
    Diagnostic::new(Code::E0010, span, format!("{what} cannot be assigned to"))
        .here("not a name, an element or a field")
}

impl Tree<'_> {
    /// A target, reported if it is none.
    pub fn target(&self, target: Expr) -> Expr {
        let Err((span, what)) = assignable(&target) else { return target };
        let diagnostic = match &target.kind {
            ExprKind::Compare { rest, .. } if rest.iter().all(|(op, _)| matches!(op, CmpOp::Eq)) => refused(span, what)
                .help("to compare with `==` and assign the result, write the name first: `same = a == b`"),
            ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Str(_) => {
                refused(span, what).help("the name goes left of `=`, the value right")
            }
            ExprKind::Lambda { .. } => {
                refused(span, what).help("a `lambda` is one expression and cannot assign; write a `def`")
            }
            _ => refused(span, what),
        };
        self.refuse(target, span, diagnostic)
    }

    /// The target of `x: T = …`.
    pub(super) fn annotated(&self, target: Expr) -> Expr {
        match &target.kind {
            ExprKind::Name(_) | ExprKind::Error => target,
            ExprKind::Tuple(_) | ExprKind::List(_) => {
                let diagnostic = Diagnostic::new(Code::E0010, target.span, "only a single name can have a type")
                    .help("annotate each name on a line of its own, before or instead of this line");
                let span = target.span;
                self.refuse(target, span, diagnostic)
            }
            ExprKind::Index { .. } | ExprKind::Attr { .. } => {
                let diagnostic =
                    Diagnostic::new(Code::E0010, target.span, "an element or field cannot be given a type here")
                        .help("its type is fixed where the value is made; leave the annotation out");
                let span = target.span;
                self.refuse(target, span, diagnostic)
            }
            _ => self.target(target),
        }
    }

    /// The target of `x += …`.
    pub(super) fn updated(&self, target: Expr, op: BinOp) -> Expr {
        if let ExprKind::Tuple(_) | ExprKind::List(_) = target.kind {
            let span = target.span;
            let diagnostic =
                Diagnostic::new(Code::E0010, span, format!("`{}=` updates one target, not several", op.symbol()))
                    .help("update each on a line of its own");
            return self.refuse(target, span, diagnostic);
        }
        self.target(target)
    }

    fn refuse(&self, target: Expr, span: Span, diagnostic: Diagnostic) -> Expr {
        self.say(self.layout.token_at(span.start), diagnostic);
        Expr { kind: ExprKind::Error, ..target }
    }
}
