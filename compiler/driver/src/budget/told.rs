//! What is said about budgets.

use super::calls::{CALLS_MAX, Call, Function, Open};
use super::fixes::{Tried, amount, amounts, written};
use super::needs::{Needs, Part};
use super::{Checker, Planned, broken};
use crate::backend::BackendError;
use tessera_base::{Code, Diagnostic, Span, nearest};
use tessera_core::budget::{Bound, What};

/// Parts that are shown.
const PARTS: usize = 5;

/// E0802 for a function that is no graph function.
pub fn of_host(f: &Function, why: &str, span: Span) -> Diagnostic {
    Diagnostic::new(Code::E0802, f.budget.span, format!("`{}` is not a graph function: it {why}", f.name))
        .with_label(span, "here")
        .note("host code runs statement by statement: no plan of a whole call is made")
        .help("move the tensor code into a function of its own, and give that the budget")
}

/// What is not known, in words.
fn listed(open: &Open) -> String {
    match &open.what[..] {
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
        [] => "something".into(),
    }
}

/// W0801 for a use by a derivative, a loop or `vmap` of which something is not known.
pub fn unheld(f: &Function, open: &Open) -> Diagnostic {
    let at = if open.span.is_none() { f.head } else { open.span };
    Diagnostic::new(Code::W0801, at, format!("the budget of `{}` is not held against this use", f.name))
        .with_label(f.budget.span, "the budget")
        .note(format!("it needs {}, which only the run gives", listed(open)))
}

/// W0801 for such a use that has no plan.
pub fn unplanned(f: &Function, call: &Call, why: &Diagnostic) -> Diagnostic {
    let at = if call.span.is_none() { f.head } else { call.span };
    Diagnostic::new(Code::W0801, at, format!("the budget of `{}` is not held against this use", f.name))
        .with_label(f.budget.span, "the budget")
        .note(why.message.clone())
}

/// E0803 for a call of which something is not known.
pub fn open(f: &Function, open: &Open) -> Diagnostic {
    let what = listed(open);
    let at = if open.span.is_none() { f.head } else { open.span };
    let d =
        Diagnostic::new(Code::E0803, at, format!("the budget of `{}` needs {what}, which only the run gives", f.name));
    let mut d = d
        .with_label(f.budget.span, "the budget")
        .note("a call is planned before anything runs, at what is known of it then");
    let is = |part: &str| open.what.iter().any(|w| w.starts_with(part));
    if is("the size ") || open.what.is_empty() {
        d = d.help(
            "write sizes as numbers in the signature, or compare them before the call: `assert x.shape[0] == 64`",
        );
    }
    if is("the length of ") {
        d = d.help("write the list out where the function is called: `f([a, b])`");
    }
    if is("the value of ") {
        d = d.help("write the value out where the function is called: `f(x, True)`");
    }
    if is("`") {
        d = d.help("hand over as an argument what the function takes from around it");
    }
    d
}

/// W0801 for a function that nothing calls.
pub fn uncalled(f: &Function) -> Diagnostic {
    let text = format!("the budget of `{}` is held against no call", f.name);
    Diagnostic::new(Code::W0801, f.budget.span, text)
        .note("nothing calls the function, and its signature does not say all sizes")
}

/// W0801 for a function of which more calls lead to it than are followed.
pub fn unfollowed(f: &Function) -> Diagnostic {
    let text = format!("the budget of `{}` is not held against all calls", f.name);
    Diagnostic::new(Code::W0801, f.budget.span, text)
        .note(format!("more than {CALLS_MAX} different calls lead to it, and no more are followed"))
        .help("give the budget to a function that is called with fewer sizes and values")
}

/// E0802 where nothing tells how long something takes.
pub fn no_clock(bound: &Bound) -> Diagnostic {
    Diagnostic::new(Code::E0802, bound.span, "how long a call takes cannot be predicted on this machine")
        .note("what it reaches is measured once, with kernels of LLVM")
        .help("`tessera plan --topology NAME` predicts times of a machine that is described")
}

/// E0802 for an axis that the mesh of a call does not have.
pub fn no_such_axis(f: &Function, bound: &Bound, needs: &Needs, call: &Call) -> Option<Diagnostic> {
    let What::Axis(axis) = &bound.what else { return None };
    let text = match &needs.mesh {
        Some(mesh) if mesh.size(axis).is_some() => return None,
        Some(mesh) => format!("`{}` runs on {mesh}, which has no axis `{axis}`", f.name),
        None => format!("`{}` runs on one device, and nothing goes over an axis `{axis}`", f.name),
    };
    let d = Diagnostic::new(Code::E0802, bound.span, text);
    let d = if call.span.is_none() { d } else { d.with_label(call.span, "called here") };
    let mut names: Vec<&str> = needs.mesh.iter().flat_map(|m| m.names()).collect();
    names.extend(["memory", "step"]);
    Some(match nearest(axis, names.iter().copied()) {
        Some(near) => d.help(format!("did you mean `{near}`?")),
        None => d.help(format!("what is bounded here is {}", names.join(", "))),
    })
}

/// E0803 for a call that has no graph.
pub fn untraced(f: &Function, call: &Call, found: &[Diagnostic]) -> Box<Diagnostic> {
    let at = if call.span.is_none() { f.head } else { call.span };
    let text = format!("the budget of `{}` cannot be held against this call", f.name);
    let d = Diagnostic::new(Code::E0803, at, text).with_label(f.budget.span, "the budget");
    Box::new(found.iter().take(1).fold(d, |d, found| d.note(found.message.clone())))
}

/// What the compiler itself says of a plan.
pub fn unplaced(f: &Function, e: BackendError) -> Box<Diagnostic> {
    Box::new(match e {
        BackendError::Memory(_) => {
            Diagnostic::new(Code::E0801, f.budget.span, format!("`{}` needs more than 2^64 bytes", f.name))
        }
        BackendError::Unavailable(why) => Diagnostic::new(Code::E0601, f.budget.span, why),
        BackendError::Interrupted => Diagnostic::new(Code::E0713, f.budget.span, "interrupted"),
        BackendError::Internal(why) => broken(f.budget.span, why),
    })
}

/// E0801.
pub fn over(f: &Function, bound: &Bound, p: &Planned, others: usize, tried: &Tried, checker: &Checker) -> Diagnostic {
    let what = &bound.what;
    let Some(need) = p.needs.of(what) else { return broken(bound.span, "a bound of nothing".into()) };
    let where_ = match (&p.needs.mesh, what) {
        (Some(_), What::Memory | What::Axis(_)) => " on a device",
        _ => "",
    };
    let of = match what {
        What::Memory => format!("of memory{where_}"),
        What::Step => "for a call".to_owned(),
        What::Axis(axis) => format!("over `{axis}`{where_}"),
    };
    let who = match &p.call.made {
        Some(made) => format!("`{}` of `{}`", made.what, f.name),
        None => format!("`{}`", f.name),
    };
    let text =
        format!("{who} needs {} {of}, and its budget allows {}", exact(what, need.amount), exact(what, bound.most));
    let mut d = Diagnostic::new(Code::E0801, bound.span, text).here("allowed");
    if !p.call.span.is_none() {
        let sizes: Vec<String> = p.call.known.sizes.iter().map(|(v, n)| format!("{}={n}", v.name)).collect();
        let at = if sizes.is_empty() { String::new() } else { format!(", at {}", sizes.join(" ")) };
        d = d.with_label(p.call.span, format!("called here{at}"));
    }
    for note in &need.notes {
        d = d.note(note.clone());
    }
    if *what == What::Memory && bound.most < p.needs.handed {
        let least = exact(what, p.needs.handed);
        d = d.note(format!("at these sizes arguments and results alone are {least}: no plan needs less"));
    }
    for part in need.parts.iter().take(PARTS) {
        d = d.note(line(f, what, part, checker));
    }
    let rest = need.parts.iter().skip(PARTS);
    let (count, sum) = rest.fold((0, 0), |(count, sum), p| (count + 1, sum + p.amount));
    if count > 0 {
        d = d.note(format!("{}: {count} more", amount(what, sum)));
    }
    match others {
        0 => {}
        1 => d = d.note("another call needs more than the budget too; this one needs most"),
        n => d = d.note(format!("{n} other calls need more than the budget too; this one needs most")),
    }
    for fix in &tried.fit {
        d = d.help(format!("{}: {}", fix.title, amounts(&f.budget.bounds, &fix.needs)));
    }
    if tried.fit.is_empty() {
        d = d.note(match &tried.least {
            Some(least) => {
                let needs = amounts(&f.budget.bounds, &least.needs);
                format!("nothing that was tried fits; the least was {needs}, with {}", least.title)
            }
            None => "nothing that was tried makes it less".into(),
        });
    }
    d.help(format!("allow what it needs: `{}`", what.written(&written(what, need.amount))))
}

/// `1.5 GiB (1610612736 bytes)`: in the unit and exactly.
fn exact(what: &What, n: u64) -> String {
    match what {
        What::Step => amount(what, n),
        _ if n < 1024 => format!("{n} bytes"),
        _ => format!("{} ({n} bytes)", amount(what, n)),
    }
}

/// One part, with where it comes from.
fn line(f: &Function, what: &What, part: &Part, checker: &Checker) -> String {
    let (place, own) = (checker.place(f, part.span), checker.bound_name(part.span));
    let amount = amount(what, part.amount);
    let times = if part.count > 1 { format!(", {} times", part.count) } else { String::new() };
    let name = own.map_or_else(|| part.what.clone(), |name| format!("`{name}` ({})", part.what));
    if part.argument {
        return format!("{amount}: {name}, an argument");
    }
    let until = checker.place(f, part.until).filter(|until| Some(until) != place.as_ref());
    let until = until.filter(|_| *what == What::Memory).map_or_else(String::new, |u| format!(", held until {u}"));
    format!("{amount}: {name}{}{times}{until}", place.map_or_else(String::new, |p| format!(", {p}")))
}
