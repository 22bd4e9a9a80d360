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
    let mut all = vec![];
    for arg in args {
        all.extend(over(arg)?.map_or_else(|| Ok(vec![bound(arg, help)?]), |axes| axes.into_iter().collect())?);
    }
    for bound in all {
        if let Some(first) = bounds.iter().find(|b| b.what == bound.what) {
            let text = format!("`{}` is bounded twice", bound.what.name());
            return Err(Box::new(wrong(bound.span, text).with_label(first.span, "first here")));
        }
        bounds.push(bound);
    }
    Ok(Budget { bounds, span: e.span })
}

/// `over={"memory": "64MiB"}`: axes by their names, whatever these are. An axis `over` is bounded by a string.
fn over(arg: &Arg) -> Read<Option<Vec<Read<Bound>>>> {
    let (Some(name), ExprKind::Dict(entries)) = (&arg.name, &arg.value.kind) else { return Ok(None) };
    if &*name.text != "over" {
        return Ok(None);
    }
    if entries.is_empty() {
        return Err(Box::new(wrong(arg.value.span, "this budget bounds no axis").help(OVER)));
    }
    let axis = |(key, value): &(Expr, Expr)| match &key.kind {
        ExprKind::Str(axis) => amount(What::Axis((**axis).into()), value),
        _ => Err(Box::new(wrong(key.span, "an axis is named by a string that is written out here").help(OVER))),
    };
    Ok(Some(entries.iter().map(axis).collect()))
}

const OVER: &str = "`over={\"memory\": \"64MiB\"}` bounds an axis `memory`";

fn bound(arg: &Arg, help: &str) -> Read<Bound> {
    let Arg { name: Some(name), star: false, value } = arg else {
        return Err(Box::new(wrong(arg.value.span, "a bound needs a name").help(help)));
    };
    amount(What::of(&name.text), value)
}

/// So much of something.
fn amount(what: What, value: &Expr) -> Read<Bound> {
    let (of, units, like) = match what {
        What::Step => ("a time", "ns, us, ms and s", "15ms"),
        _ => ("a number of bytes", "B, KiB, MiB, GiB, TiB, KB, MB, GB and TB", "64MiB"),
    };
    let like = what.written(like);
    let span = value.span;
    let ExprKind::Str(text) = &value.kind else {
        let d = wrong(span, format!("`{}` is bounded by a string that is written out here", what.name()));
        return Err(Box::new(d.help(format!("`{like}`"))));
    };
    let most = match what {
        What::Step => amounts::nanoseconds(text),
        _ => amounts::bytes(text),
    };
    match most {
        Some(most) if most > 0 || matches!(what, What::Axis(_)) => Ok(Bound { what, most, span }),
        Some(_) => Err(Box::new(wrong(span, format!("`{text}` leaves nothing: no call needs so little")))),
        None if text.trim_start().starts_with('-') => {
            Err(Box::new(wrong(span, format!("`{text}` is less than nothing")).help(format!("`{like}`"))))
        }
        None => {
            let d = wrong(span, format!("`{text}` is not {of}")).note(format!("units are {units}"));
            Err(Box::new(d.help(format!("`{like}`"))))
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
