//! What the language has and this compiler not yet: refused by name, with the reason.

use super::budgets;
use super::cx::Cx;
use super::names::Meaning;
use crate::known_elsewhere;
use crate::members::dotted;
use tessera_base::{Code, Diagnostic, Span};
use tessera_grammar::ast::{Expr, ExprKind};

/// A decorator as it is understood.
pub enum Decorator {
    Kernel,
    Autotune,
    Numerics,
    CustomVjp,
    Local,
    Budget,
    Broken,
}

impl Cx<'_> {
    /// Why a member of a built-in module cannot be used here, if it cannot.
    pub fn unsupported(&mut self, name: &str, span: Span) -> Option<Diagnostic> {
        let not_yet =
            |code, why: &str| Some(Diagnostic::new(code, span, format!("`{name}` is not supported yet")).note(why));
        let module = name.split('.').next().unwrap_or("");
        match (module, name) {
            ("schedule", _) => {
                Some(Diagnostic::new(Code::E0504, span, format!("`{name}` is a statement of its own")).note(
                    "a directive has no value; it says how what follows in its block, or the whole kernel, is laid out",
                ))
            }
            ("tile", _) => Some(
                Diagnostic::new(Code::E0502, span, format!("`{name}` stands outside a kernel"))
                    .note("explicit tile programs are written inside a function with `@op.kernel`"),
            ),
            (_, "autodiff.custom_vjp") => Some(
                Diagnostic::new(Code::E0204, span, format!("`{name}` is a decorator"))
                    .help("write `@autodiff.custom_vjp(backward)` above a function"),
            ),
            ("autodiff", _) => Some(
                Diagnostic::new(Code::E0204, span, format!("`{name}` is not a value"))
                    .help(format!("call it: `{name}(f)`")),
            ),
            (_, "dist.budget") => Some(
                Diagnostic::new(Code::E0204, span, format!("`{name}` is a decorator"))
                    .help("write `@dist.budget(memory=\"2GiB\")` above a function"),
            ),
            (_, "dist.local") => Some(
                Diagnostic::new(Code::E0204, span, format!("`{name}` is a decorator"))
                    .help(format!("write `@{name}` above a function")),
            ),
            (_, "dist.pipeline") => Some(
                Diagnostic::new(Code::E0204, span, format!("`{name}` is not a value"))
                    .help(format!("call it: `{name}([first, second], microbatches=4, mesh=mesh)(x)`")),
            ),
            (_, "graph.profile") => Some(
                Diagnostic::new(Code::E0204, span, format!("`{name}` is not a value"))
                    .help(format!("call it: `{name}(f, x)`")),
            ),
            ("graph", _) => {
                not_yet(Code::E0690, "a command shows it: `tessera profile --trace FILE.json`, `tessera explain`")
            }
            (_, "numerics.policy" | "numerics.precision") => Some(
                Diagnostic::new(Code::E0204, span, format!("`{name}` is not a value"))
                    .note("it is a statement for the rest of its scope, stands after `with`, or is a decorator")
                    .help(format!("`with {name}(…):`")),
            ),
            (_, "numerics.LossScale" | "numerics.scaled" | "numerics.unscaled" | "numerics.updated") => Some(
                Diagnostic::new(Code::E0102, span, format!("`{name}` has to be written out"))
                    .help(format!("write `{name}`, or import it: `from tessera.numerics import …`")),
            ),
            (_, "op.kernel" | "op.autotune") => Some(
                Diagnostic::new(Code::E0204, span, format!("`{name}` is a decorator"))
                    .help(format!("write `@{name}` above a function")),
            ),
            _ => None,
        }
    }

    /// What a decorator is; errors are reported.
    pub fn decorator(&mut self, e: &Expr) -> Decorator {
        if let Some(setting) = self.numerics_call(e) {
            return if setting.is_some() { Decorator::Numerics } else { Decorator::Broken };
        }
        let name = match &e.kind {
            ExprKind::Call { func, .. } => func,
            _ => e,
        };
        match self.meaning(name) {
            Some(Meaning::Builtin(n)) => match &*n {
                "op.kernel" if self.kernel_decorator(e, false) => return Decorator::Kernel,
                "op.autotune" if self.kernel_decorator(e, true) => return Decorator::Autotune,
                "op.kernel" | "op.autotune" => return Decorator::Broken,
                "autodiff.custom_vjp" => return Decorator::CustomVjp,
                "dist.local" => return Decorator::Local,
                "dist.budget" => {
                    return match budgets::budget(e) {
                        Ok(_) => Decorator::Budget,
                        Err(d) => {
                            self.report(*d);
                            Decorator::Broken
                        }
                    };
                }
                _ => {}
            },
            Some(Meaning::Broken) => return Decorator::Broken,
            _ => {}
        }
        let d = Diagnostic::new(Code::E0690, e.span, "this decorator is not one that the language has");
        let last = dotted(name).unwrap_or_default();
        if let Some(help) = known_elsewhere::decorator(last.rsplit('.').next().unwrap_or("")) {
            self.report(d.help(help));
            return Decorator::Broken;
        }
        let d = d.note(
            "decorators are `@op.kernel`, `@op.autotune(cache=…)`, `@numerics.policy(…)`, `@numerics.precision(…)`, \
             `@autodiff.custom_vjp(…)`, `@dist.local` and `@dist.budget(…)`",
        );
        self.report(d);
        Decorator::Broken
    }
}
