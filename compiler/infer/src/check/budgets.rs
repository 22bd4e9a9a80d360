//! `@dist.budget(…)`: what a call of a function may need. Whether it does is found out where the sizes of its calls are known, behind
//! the checker.

use tessera_base::{Code, Diagnostic, Span, amounts};
use tessera_core::budget::{Bound, Budget, What};
use tessera_grammar::ast::{Arg, Expr, ExprKind};

type Read<T> = Result<T, Box<Diagnostic>>;

fn wrong(span: Span, message: impl Into<String>) -> Diagnostic {
    Diagnostic::new(Code::E0802, span, message)
}

/// What a decorator allows.
///
/// # Errors
/// Why it says nothing that can be checked.
pub fn budget(e: &Expr) -> Read<Budget> {
    let help = "write `@dist.budget(memory=\"2GiB\")`, with `step=\"15ms\"` or an axis of the mesh, `tp=\"64MiB\"`";
    let ExprKind::Call { args, .. } = &e.kind else {
        return Err(Box::new(wrong(e.span, "a budget says how much of something").help(help)));
    };
    if args.is_empty() {
        return Err(Box::new(wrong(e.span, "this budget bounds nothing").help(help)));
    }
    let mut bounds: Vec<Bound> = vec![];
    for arg in args {
        let bound = bound(arg, help)?;
        if let Some(first) = bounds.iter().find(|b| b.what == bound.what) {
            let text = format!("`{}` is bounded twice", bound.what.name());
            return Err(Box::new(wrong(bound.span, text).with_label(first.span, "first here")));
        }
        bounds.push(bound);
    }
    Ok(Budget { bounds, span: e.span })
}

fn bound(arg: &Arg, help: &str) -> Read<Bound> {
    let Arg { name: Some(name), star: false, value } = arg else {
        return Err(Box::new(wrong(arg.value.span, "a bound needs a name").help(help)));
    };
    let what = match &*name.text {
        "memory" => What::Memory,
        "step" => What::Step,
        axis => What::Axis(axis.into()),
    };
    let (of, units, like) = match what {
        What::Step => ("a time", "ns, us, ms and s", "15ms"),
        _ => ("a number of bytes", "B, KiB, MiB, GiB, TiB, KB, MB, GB and TB", "64MiB"),
    };
    let span = value.span;
    let ExprKind::Str(text) = &value.kind else {
        let d = wrong(span, format!("`{}` is bounded by a string that is written out here", name.text));
        return Err(Box::new(d.help(format!("`{}=\"{like}\"`", name.text))));
    };
    let most = match what {
        What::Step => amounts::nanoseconds(text),
        _ => amounts::bytes(text),
    };
    match most {
        Some(most) if most > 0 || matches!(what, What::Axis(_)) => Ok(Bound { what, most, span }),
        Some(_) => Err(Box::new(wrong(span, format!("`{text}` leaves nothing: no call needs so little")))),
        None if text.trim_start().starts_with('-') => Err(Box::new(
            wrong(span, format!("`{text}` is less than nothing")).help(format!("`{}=\"{like}\"`", name.text)),
        )),
        None => {
            let d = wrong(span, format!("`{text}` is not {of}")).note(format!("units are {units}"));
            Err(Box::new(d.help(format!("`{}=\"{like}\"`", name.text))))
        }
    }
}

/// E0802 for two budgets of one function.
pub fn twice(name: &str, first: &Expr, second: &Expr) -> Diagnostic {
    wrong(second.span, format!("`{name}` has two budgets"))
        .with_label(first.span, "the other one")
        .help("write all bounds in one")
}

/// E0802 for a budget of what one device does.
pub fn per_device(name: &str, budget: &Expr) -> Diagnostic {
    wrong(budget.span, format!("`{name}` says what one device does, and has no budget of its own"))
        .help("give the budget to the function that calls it")
}
