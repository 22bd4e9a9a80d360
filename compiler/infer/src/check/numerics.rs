//! `numerics.policy` and `numerics.precision`: as a statement, around a block, on a function.

use super::cx::Cx;
use super::names::Meaning;
use tessera_base::near::nearest;
use tessera_base::{Code, DType, Diagnostic, Span};
use tessera_grammar::ast::{Arg, Expr, ExprKind};
use tessera_ir::graph::Policy;
use tessera_ops::surface::Precision;

const POLICIES: &[(&str, Policy)] =
    &[("deterministic", Policy::Deterministic), ("fast", Policy::Fast), ("kahan_sum", Policy::KahanSum)];

const MODES: &[(&str, Precision)] = &[
    ("safe", Precision::Safe),
    ("standard", Precision::Standard { f16: false }),
    ("aggressive", Precision::Aggressive),
    ("deterministic", Precision::Own),
];

/// What is in force: the order of sums, and the element types of products.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Numerics {
    pub policy: Policy,
    pub precision: Precision,
}

/// What one call sets of it.
#[derive(Clone, Copy)]
pub enum Setting {
    Policy(Policy),
    Precision(Precision),
    /// `precision("deterministic")`: the program's own dtypes, and the policy of that name.
    Deterministic,
}

impl Numerics {
    pub fn with(self, setting: Setting) -> Numerics {
        match setting {
            Setting::Policy(policy) => Numerics { policy, ..self },
            Setting::Precision(precision) => Numerics { precision, ..self },
            Setting::Deterministic => Numerics::default(),
        }
    }
}

impl Cx<'_> {
    pub fn numerics(&self) -> Numerics {
        Numerics { policy: self.policy, precision: self.sizes.precision }
    }

    pub fn set_numerics(&mut self, n: Numerics) {
        self.policy = n.policy;
        self.sizes.precision = n.precision;
    }

    /// The setting of `numerics.policy("…")` or `numerics.precision("…")`. `None`: the expression
    /// is something else. `Some(None)`: reported.
    pub fn numerics_call(&mut self, e: &Expr) -> Option<Option<Setting>> {
        let ExprKind::Call { func, args } = &e.kind else { return None };
        if self.is_member(func, "policy") {
            return Some(self.policy_call(e, args));
        }
        if self.is_member(func, "precision") {
            return Some(self.precision_call(e, args));
        }
        None
    }

    fn policy_call(&mut self, e: &Expr, args: &[Arg]) -> Option<Setting> {
        let [arg] = args else {
            self.error(Code::E0104, e.span, "`numerics.policy` takes the name of one policy");
            return None;
        };
        let policy = self.named("policy", &arg.value, POLICIES, "policies are")?;
        Some(Setting::Policy(policy))
    }

    fn precision_call(&mut self, e: &Expr, args: &[Arg]) -> Option<Setting> {
        let [first, rest @ ..] = args else {
            self.error(Code::E0104, e.span, "`numerics.precision` takes the name of one mode");
            return None;
        };
        let mode = self.named("precision mode", &first.value, MODES, "modes are")?;
        let dtype = match rest {
            [] => DType::Bf16,
            [dtype] if dtype.name.as_ref().is_none_or(|n| &*n.text == "dtype") => self.half(&dtype.value, mode)?,
            [other, ..] => {
                let d = Diagnostic::new(Code::E0105, other.value.span, "`numerics.precision` does not take this")
                    .help("`numerics.precision(\"standard\", dtype=f16)` is the one keyword");
                self.report(d);
                return None;
            }
        };
        Some(match mode {
            Precision::Own => Setting::Deterministic,
            Precision::Standard { .. } => Setting::Precision(Precision::Standard { f16: dtype == DType::F16 }),
            mode => Setting::Precision(mode),
        })
    }

    /// The 16-bit type of the mode `standard`.
    fn half(&mut self, e: &Expr, mode: Precision) -> Option<DType> {
        let dtype = match &e.kind {
            ExprKind::Str(text) => DType::parse(text),
            ExprKind::Name(_) | ExprKind::Attr { .. } => match self.meaning(e) {
                Some(Meaning::DType(d)) => Some(d),
                Some(Meaning::Broken) => return None,
                _ => None,
            },
            _ => None,
        };
        let standard = matches!(mode, Precision::Standard { .. });
        match dtype {
            Some(d @ (DType::Bf16 | DType::F16)) if standard => Some(d),
            _ => {
                let text = match standard {
                    true => "products of the mode \"standard\" take bf16 or f16",
                    false => "only the mode \"standard\" takes a dtype",
                };
                let d = Diagnostic::new(Code::E0214, e.span, text);
                self.report(if standard { d.help("`dtype=bf16` (the default) or `dtype=f16`") } else { d });
                None
            }
        }
    }

    fn is_member(&mut self, func: &Expr, member: &str) -> bool {
        let is = |n: &str| n.strip_prefix("numerics.") == Some(member);
        match &func.kind {
            ExprKind::Attr { base, name } => {
                &*name.text == member
                    && self.is_module_path(base)
                    && matches!(self.meaning(func), Some(Meaning::Builtin(n)) if is(&n))
            }
            ExprKind::Name(name) => {
                self.env.get(name).is_none()
                    && matches!(
                        &self.in_scope(self.names_of(), name).entity,
                        Some(crate::db::Entity::Builtin(n)) if is(n)
                    )
            }
            _ => false,
        }
    }

    /// The row of a table that a string names.
    fn named<T: Copy>(&mut self, what: &str, e: &Expr, table: &[(&'static str, T)], list: &str) -> Option<T> {
        let quoted: Vec<String> = table.iter().map(|(n, _)| format!("\"{n}\"")).collect();
        let ExprKind::Str(name) = &e.kind else {
            let d = Diagnostic::new(Code::E0501, e.span, format!("the {what} must be written as a string here"))
                .help(quoted.iter().map(|q| format!("`{q}`")).collect::<Vec<_>>().join(", "));
            self.report(d);
            return None;
        };
        if let Some((_, value)) = table.iter().find(|(n, _)| **n == **name) {
            return Some(*value);
        }
        let d = self.unnamed(what, name, e.span, table.iter().map(|(n, _)| *n).collect(), list, &quoted);
        self.report(d);
        None
    }

    fn unnamed(
        &self,
        what: &str,
        name: &str,
        span: Span,
        names: Vec<&'static str>,
        list: &str,
        quoted: &[String],
    ) -> Diagnostic {
        let d = Diagnostic::new(Code::E0101, span, format!("there is no {what} `{name}`"));
        let near = nearest(name, names.iter().copied())
            .or_else(|| names.iter().copied().find(|n| n.starts_with(name) && name.len() >= 3));
        match near {
            Some(near) => d.fix(format!("did you mean \"{near}\"?"), span, format!("\"{near}\"")),
            None => d.note(format!("{list} {}", quoted.join(", "))),
        }
    }

    /// Where an error is about the element types that a mode gives, says so.
    pub fn with_mode(&self, d: Diagnostic) -> Diagnostic {
        let (mode, gives) = match self.sizes.precision {
            Precision::Own => return d,
            Precision::Safe => ("safe", DType::F32),
            Precision::Standard { f16: true } => ("standard", DType::F16),
            Precision::Standard { f16: false } => ("standard", DType::Bf16),
            Precision::Aggressive => ("aggressive", DType::Bf16),
        };
        let of_types = matches!(d.code, Code::E0204 | Code::E0206 | Code::E0209);
        let texts = std::iter::once(&d.message).chain(d.labels.iter().map(|l| &l.text));
        let named = texts.chain([&d.label]).any(|t| t.contains(gives.name()));
        match of_types && named {
            true => d.note(format!("under `numerics.precision(\"{mode}\")` products give {gives}")),
            false => d,
        }
    }

    /// What the decorators of a function set, from the outermost.
    pub fn decorated_numerics(&mut self, decorators: &[Expr]) -> Numerics {
        decorators
            .iter()
            .filter_map(|d| self.numerics_call(d).flatten())
            .collect::<Vec<_>>()
            .into_iter()
            .fold(self.numerics(), Numerics::with)
    }
}
