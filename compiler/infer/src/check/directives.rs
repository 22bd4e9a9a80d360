//! `schedule.…` as a statement, and what the decorators of kernels say.

use super::args::{Slot, Value};
use super::block_directives::Consumers;
use super::budgets;
use super::cx::Cx;
use super::names::Meaning;
use crate::members::members;
use std::sync::Arc;
use tessera_base::limits::Unused;
use tessera_base::{Code, Diagnostic, Limits, Span};
use tessera_core::budget::Budget;
use tessera_core::builtins::call_text;
use tessera_core::ir::{TExpr, TKind, TStmt};
use tessera_core::ty::Ty;
use tessera_grammar::ast::{Arg, Expr, ExprKind};
use tessera_ir::hints::{Autotune, KernelHints, Objective};
use tessera_types::tensor::tile::{self, Asked};

/// Greatest factor of `schedule.unroll`.
const UNROLL_MAX: i64 = 64;
/// Greatest number of samples of a search.
const SAMPLES_MAX: u32 = 100_000;

/// The kernel whose body is being checked.
#[derive(Clone, Debug, Default)]
pub struct KernelState {
    /// Decorated with `@op.kernel`; otherwise only tuned.
    pub kernel: bool,
    pub hints: KernelHints,
    /// What makes it an explicit tile program.
    pub tiles: Option<super::tiles::Tiles>,
    /// The directives so far, by name, with where they stand.
    given: Vec<(&'static str, Span)>,
}

impl Cx<'_> {
    /// What the decorators make of a function; `None` for one that is no kernel and not tuned.
    /// They are checked where the function is defined.
    pub fn kernel_state(&mut self, decorators: &[Expr], name: &Arc<str>, head: Span) -> Option<KernelState> {
        let mut state = KernelState {
            hints: KernelHints { kernel: name.clone(), span: head, ..KernelHints::default() },
            ..KernelState::default()
        };
        for d in decorators {
            match tessera_resolve::kernel_signature::decorator(d) {
                Some("kernel") => state.kernel = true,
                Some("autotune") => state.hints.autotune = autotune(d).ok(),
                _ => {}
            }
        }
        (state.kernel || state.hints.autotune.is_some()).then_some(state)
    }

    /// What the decorators of a function allow it, if one of them says so. They are checked where the function is defined.
    pub fn budget_of(&mut self, decorators: &[Expr]) -> Option<Arc<Budget>> {
        let is_budget = |cx: &mut Self, e: &Expr| {
            let ExprKind::Call { func, .. } = &e.kind else { return false };
            matches!(cx.meaning(func), Some(Meaning::Builtin(n)) if &*n == "dist.budget")
        };
        let found = decorators.iter().find(|e| is_budget(self, e))?;
        budgets::budget(found).ok().map(Arc::new)
    }

    /// Whether the body being checked is that of a kernel.
    pub fn in_kernel(&self) -> bool {
        self.kernel.as_ref().is_some_and(|k| k.kernel)
    }

    /// Checks what a decorator of a kernel is given.
    pub fn kernel_decorator(&mut self, e: &Expr, tuned: bool) -> bool {
        let problem = match (&e.kind, tuned) {
            (_, true) => autotune(e).err().map(|d| *d),
            (ExprKind::Call { args, .. }, false) if !args.is_empty() => Some(
                Diagnostic::new(Code::E0504, args[0].value.span, "`@op.kernel` takes no arguments")
                    .help("say how it is laid out with `schedule.…` in its body"),
            ),
            _ => None,
        };
        match problem {
            Some(d) => {
                self.report(d);
                false
            }
            None => true,
        }
    }

    /// Takes `schedule.…(…)`; `false` for every other statement. In a kernel it holds for all of it, elsewhere for what
    /// follows in its block.
    pub fn directive_stmt(&mut self, e: &Expr) -> bool {
        let ExprKind::Call { func, args } = &e.kind else { return false };
        let Some(name) = self.directive_named(func) else { return false };
        let values = self.directive_args(args);
        let shown = format!("schedule.{name}");
        let Some(values) = self.match_params(&shown, &Slot::built_in(&shown), values, e.span, None) else {
            return true;
        };
        if values.iter().flatten().any(|v| v.ty.is_error()) {
            return true;
        }
        if self.in_kernel() && self.nested > 0 {
            let d = Diagnostic::new(Code::E0504, e.span, format!("`{shown}` stands under a condition or in a loop"))
                .note("a directive says how the whole kernel is laid out")
                .help("move it to the start of the kernel");
            self.report(d);
            return true;
        }
        let before = match &self.kernel {
            Some(k) if k.kernel => k.hints.clone(),
            _ => self.asked.clone(),
        };
        match asked(name, &values, before) {
            Ok(mut hints) => {
                if let ("vectorize", Some(wanted)) = (name, hints.vectorize) {
                    hints.vectorize = Some(self.lanes(wanted, e.span));
                }
                self.without_effect(name, &hints, e.span);
                match self.in_kernel() {
                    true => self.record(name, hints, e.span),
                    false => self.follow(name, hints, e.span),
                }
            }
            Err(d) => self.report(*d),
        }
        true
    }

    /// The directive that a callee names; anything else, and unknown ones, take the usual way.
    fn directive_named(&mut self, func: &Expr) -> Option<&'static str> {
        let text = match &func.kind {
            ExprKind::Attr { base, name } if self.is_module_path(base) => name.text.clone(),
            ExprKind::Name(name) if self.env.get(name).is_none() => name.clone(),
            _ => return None,
        };
        if !members("schedule").iter().any(|m| **m == *text) {
            return None;
        }
        match &func.kind {
            ExprKind::Name(name) => {
                let entity = &self.in_scope(self.names_of(), name).entity;
                if !matches!(entity, Some(crate::db::Entity::Builtin(n)) if n.starts_with("schedule.")) {
                    return None;
                }
            }
            _ => match self.meaning(func) {
                Some(Meaning::Builtin(n)) if n.starts_with("schedule.") => {}
                _ => return None,
            },
        }
        let full = format!("schedule.{text}");
        call_text(&full)?.name.strip_prefix("schedule.")
    }

    fn directive_args(&mut self, args: &[Arg]) -> Vec<Value> {
        let untyped = self.untyped;
        let values = self.args(args);
        self.untyped = untyped;
        values
    }

    /// A directive of the whole kernel.
    fn record(&mut self, name: &'static str, hints: KernelHints, span: Span) {
        let Some(k) = &mut self.kernel else { return };
        let again = k.given.iter().find(|(n, _)| *n == name && name != "parallel").copied();
        k.given.retain(|(n, _)| *n != name || name == "parallel");
        k.given.push((name, span));
        k.hints = hints;
        if let Some((_, before)) = again {
            self.report(replaced(name, before, span));
        }
    }

    /// Vector lengths that the target's kernels are written with.
    fn lanes(&mut self, wanted: u32, span: Span) -> u32 {
        let &Limits { target, lanes_max, .. } = self.db.limits();
        let lanes = wanted.clamp(2, lanes_max).next_power_of_two();
        if lanes != wanted {
            let d = Diagnostic::new(
                Code::W0501,
                span,
                format!("the target `{target}` has no vectors of {wanted} elements"),
            )
            .note(format!("lengths are powers of two from 2 to {lanes_max}"))
            .note(format!("vectors of {lanes} elements are used"));
            self.report(d);
        }
        lanes
    }

    /// W0501 for what the target cannot honour.
    fn without_effect(&mut self, name: &str, hints: &KernelHints, span: Span) {
        let directive = match name {
            "async_copy" if hints.async_copy => Unused::AsyncCopy,
            "pipeline_stages" if hints.stages.is_some_and(|n| n > 1) => Unused::PipelineStages,
            "warps" => Unused::Warps,
            "swizzle" => Unused::Swizzle,
            "use_shared_memory" if hints.padding > 0 => Unused::Padding,
            _ => return,
        };
        let limits = self.db.limits();
        let Some(why) = limits.ignores(directive) else { return };
        let what = if directive == Unused::Padding { "padding=".into() } else { format!("schedule.{name}") };
        let text = format!("`{what}` has no effect on the target `{}`", limits.target);
        let d = Diagnostic::new(Code::W0501, span, text).note(why);
        self.report(d);
    }

    /// What the directives of a whole kernel are checked for once its body is known.
    pub fn close_kernel(&mut self, body: &[TStmt]) {
        let Some(kernel) = self.kernel.clone() else { return };
        let found = Consumers::of(body);
        for (name, span) in &kernel.given {
            let missing = "the kernel computes nothing that it could apply to";
            self.consumed(name, &kernel.hints, *span, &found, missing);
        }
    }
}

/// What a directive asks for, beside what was asked for before. `vectorize` as it is written.
fn asked(name: &str, values: &[Option<TExpr>], mut hints: KernelHints) -> Result<KernelHints, Box<Diagnostic>> {
    let first = values.first().and_then(Option::as_ref);
    match name {
        "tile" => hints.tile = first.map_or(Ok(vec![]), |e| tile::sizes(e, Asked::Directive)).map_err(Box::new)?,
        "vectorize" => hints.vectorize = Some(int(first, 1, i64::from(u32::MAX))? as u32),
        "use_shared_memory" => {
            hints.shared = Some(flag(first)?);
            hints.padding = match values.get(1).and_then(Option::as_ref) {
                Some(e) => int(Some(e), 0, 1 << 20)? as u32,
                None => 0,
            };
        }
        "async_copy" => hints.async_copy = flag(first)?,
        "pipeline_stages" => hints.stages = Some(int(first, 1, 64)? as u32),
        "unroll" => hints.unroll = Some(int(first, 1, UNROLL_MAX)? as u32),
        "parallel" => hints.parallel.push(int(first, 0, 64)? as u32),
        "warps" => hints.warps = Some(int(first, 1, 1024)? as u32),
        "swizzle" => hints.swizzle = Some(first.map_or(Ok(128), |e| int(Some(e), 1, 4096))? as u32),
        _ => {}
    }
    Ok(hints)
}

/// W0503 for a directive that another one replaces before anything followed it.
pub fn replaced(name: &str, before: Span, by: Span) -> Diagnostic {
    Diagnostic::new(Code::W0503, before, format!("this `schedule.{name}` is replaced further down"))
        .with_label(by, "by this one")
}

fn wrong(span: Span, what: &str, found: &Ty) -> Box<Diagnostic> {
    Box::new(Diagnostic::new(Code::E0504, span, format!("{what} is needed here")).here(format!("this is `{found}`")))
}

/// An int that is known before the program runs.
fn int(e: Option<&TExpr>, low: i64, high: i64) -> Result<i64, Box<Diagnostic>> {
    let Some(e) = e else { return Ok(low) };
    let Some(n) = e.ty.const_int() else {
        let d = wrong(e.span, "an int that is known before the program runs", &e.ty);
        return Err(Box::new(d.note("directives are settled when the kernel is checked")));
    };
    if n < low || n > high {
        let range =
            if high >= i64::from(u32::MAX) { format!("at least {low}") } else { format!("from {low} to {high}") };
        return Err(Box::new(
            Diagnostic::new(Code::E0504, e.span, format!("{n} is out of range")).note(format!("it may be {range}")),
        ));
    }
    Ok(n)
}

fn flag(e: Option<&TExpr>) -> Result<bool, Box<Diagnostic>> {
    match e.map(|e| (&e.kind, e)) {
        None => Ok(true),
        Some((TKind::Bool(b), _)) => Ok(*b),
        Some((_, e)) => Err(wrong(e.span, "`True` or `False`", &e.ty)),
    }
}

/// What `@op.autotune` says.
fn autotune(e: &Expr) -> Result<Autotune, Box<Diagnostic>> {
    let help = "write `@op.autotune(cache=\"name\")`";
    let wrong = |span: Span, text: &str| Box::new(Diagnostic::new(Code::E0504, span, text).help(help));
    let nameless = || wrong(e.span, "`@op.autotune` needs the name of a cache");
    let ExprKind::Call { args, .. } = &e.kind else { return Err(nameless()) };
    let mut out = Autotune::kept_as("");
    for (i, Arg { name, star, value }) in args.iter().enumerate() {
        let Some(name) = name.as_ref().filter(|_| !star) else {
            return Err(wrong(value.span, "`@op.autotune` takes its arguments by name"));
        };
        if args[..i].iter().any(|a| a.name.as_ref().is_some_and(|n| n.text == name.text)) {
            return Err(wrong(name.span, &format!("`{}` is given twice", name.text)));
        }
        match &*name.text {
            "cache" => out.cache = cache_name(value)?,
            "objective" => out.objective = objective(value)?,
            "samples" => out.samples = samples(value)?,
            other => {
                let text = format!("`@op.autotune` has no parameter `{other}`");
                let near = tessera_base::nearest(other, ["cache", "objective", "samples"]);
                let help = near.map_or_else(|| help.to_owned(), |n| format!("did you mean `{n}`?"));
                return Err(Box::new(Diagnostic::new(Code::E0105, name.span, text).help(help)));
            }
        }
    }
    if out.cache.is_empty() { Err(nameless()) } else { Ok(out) }
}

fn cache_name(value: &Expr) -> Result<Arc<str>, Box<Diagnostic>> {
    let wrong = |text: String| Diagnostic::new(Code::E0504, value.span, text);
    let ExprKind::Str(text) = &value.kind else {
        let d = wrong("the cache must be named by a string here".into());
        return Err(Box::new(d.help("write `@op.autotune(cache=\"name\")`")));
    };
    let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if text.is_empty() || text.starts_with('.') || text.len() > 100 || !text.chars().all(fine) {
        return Err(Box::new(
            wrong(format!("`{text}` is no name for a cache"))
                .note("it becomes the file `.tessera/cache/NAME.json`: letters, digits, `_`, `-` and `.`"),
        ));
    }
    Ok(text.clone())
}

fn objective(value: &Expr) -> Result<Objective, Box<Diagnostic>> {
    let names = || Objective::ALL.map(|o| format!("`{}`", o.name())).join(", ");
    let ExprKind::Str(text) = &value.kind else {
        let d = Diagnostic::new(Code::E0504, value.span, "the objective must be named by a string here");
        return Err(Box::new(d.note(format!("it is one of {}", names()))));
    };
    Objective::named(text).ok_or_else(|| {
        let near = tessera_base::nearest(text, Objective::ALL.into_iter().map(Objective::name));
        let d = Diagnostic::new(Code::E0504, value.span, format!("there is no objective `{text}`"));
        let d = d.note(format!("it is one of {}", names()));
        Box::new(near.into_iter().fold(d, |d, n| d.help(format!("did you mean `{n}`?"))))
    })
}

fn samples(value: &Expr) -> Result<u32, Box<Diagnostic>> {
    let found = match &value.kind {
        ExprKind::Int(n) => n.replace('_', "").parse().ok().filter(|n| (1..=SAMPLES_MAX).contains(n)),
        _ => None,
    };
    found.ok_or_else(|| {
        let d = Diagnostic::new(
            Code::E0504,
            value.span,
            "the number of samples must be a positive int that is written here",
        );
        Box::new(d.note(format!("it is how many schedules are measured at most: from 1 to {SAMPLES_MAX}")))
    })
}
