//! Budgets of functions (`@dist.budget`): whether the calls of a program keep them, found out before anything runs.
//!
//! [`calls`] finds the calls and their sizes ([`handed`] those that a derivative or a loop makes), [`needs`] plans each of them as it would run, [`fixes`] plans what would need less,
//! in programs that [`changed`] checks again, and [`told`] says it.

pub mod clock;
mod handed;
mod written;
mod calls;
mod needs;
mod changed;
mod fixes;
mod told;

use crate::ask::Asked;
use crate::backend::{Backend, BackendError};
use crate::program::Setup;
use crate::roof;
use calls::{Call, Function};
use clock::Clock;
use needs::{Needs, needs};
use std::sync::Arc;
use tessera_base::{Code, Diagnostic, Span};
use tessera_core::budget::{Bound, What};
use tessera_core::ir::{Effect, Program, TKind};
use tessera_ir::graph::Graph;
use tessera_plan::topology::Topology;
use tessera_resolve::source::SourceMap;

/// What is wrong with the budgets of a program, on this machine.
pub fn kept(setup: &Setup, program: &Arc<Program>, sources: &SourceMap) -> Vec<Diagnostic> {
    check(setup, program, sources, On::Here)
}

/// What times of a program are predicted for.
#[derive(Clone, Copy)]
pub enum On<'a> {
    /// This machine, which is measured where it never was.
    Here,
    /// This machine where it was measured; else times are left out.
    Known,
    Planned(&'a Topology),
}

/// The same on some machine.
pub fn check(setup: &Setup, program: &Arc<Program>, sources: &SourceMap, on: On) -> Vec<Diagnostic> {
    let mut functions = calls::functions(program);
    let timed = |f: &Function| f.budget.bounds.iter().any(|b| b.what == What::Step);
    let clock = match on {
        On::Planned(topology) => Some(Clock::Planned(topology)),
        On::Here | On::Known if !functions.iter().any(timed) => None,
        On::Here => here(setup),
        On::Known => roof::known(&setup.global).map(Clock::Here),
    };
    if matches!((on, &clock), (On::Known, None)) {
        functions.iter_mut().for_each(Function::without_times);
        functions.retain(|f| !f.budget.bounds.is_empty());
    }
    if functions.is_empty() {
        return vec![];
    }
    let checker = Checker { setup, program, sources, clock, backend: setup.backend(setup.pool()) };
    functions.iter().flat_map(|f| checker.function(f)).collect()
}

/// Whether a text may have a budget: what no program with one lacks.
pub fn may_have(text: &str) -> bool {
    text.contains("budget")
}

/// The clock of this machine, which is measured where it never was.
fn here(setup: &Setup) -> Option<Clock<'static>> {
    let tool = std::env::current_exe().ok()?;
    roof::roof(&tool, &setup.global).map(Clock::Here)
}

/// What budgets are held against.
struct Checker<'a> {
    setup: &'a Setup,
    program: &'a Arc<Program>,
    sources: &'a SourceMap,
    clock: Option<Clock<'a>>,
    backend: Backend,
}

/// A call with what it needs.
struct Planned<'f> {
    call: &'f Call,
    asked: Asked,
    graph: Graph,
    needs: Needs,
}

impl Checker<'_> {
    /// What is wrong with the budget of one function, and what of it is not checked.
    fn function(&self, f: &Function) -> Vec<Diagnostic> {
        let unfollowed = f.unfollowed.then(|| told::unfollowed(f));
        let unheld = f.unheld.as_ref().map(|open| told::unheld(f, open));
        self.wrong(f).into_iter().chain(unheld).chain(unfollowed).collect()
    }

    fn wrong(&self, f: &Function) -> Vec<Diagnostic> {
        if let Effect::Host { why, span, .. } = &f.effect {
            return vec![told::of_host(f, why, *span)];
        }
        if let Some(open) = &f.open {
            return vec![told::open(f, open)];
        }
        if f.calls.is_empty() {
            return if f.unfollowed || f.unheld.is_some() { vec![] } else { vec![told::uncalled(f)] };
        }
        if let Some(bound) = f.budget.bounds.iter().find(|b| b.what == What::Step && self.clock.is_none()) {
            return vec![told::no_clock(bound)];
        }
        let (mut planned, mut unheld) = (vec![], None);
        for call in &f.calls {
            match self.plan(f, call) {
                Ok(p) => planned.push(p),
                Err(d) if call.by_other && d.code == Code::E0803 => {
                    unheld.get_or_insert_with(|| told::unplanned(f, call, &d));
                }
                Err(d) => return vec![*d],
            }
        }
        let wrong = |p: &Planned| f.budget.bounds.iter().find_map(|b| told::no_such_axis(f, b, &p.needs, p.call));
        if let Some(d) = planned.iter().find_map(wrong) {
            return vec![d];
        }
        f.budget.bounds.iter().filter_map(|b| self.bound(f, b, &planned)).chain(unheld).collect()
    }

    fn plan<'f>(&self, f: &Function, call: &'f Call) -> Result<Planned<'f>, Box<Diagnostic>> {
        let asked = Asked::instance(self.program.clone(), self.sources.clone(), call.inst, f.head);
        let traced = match &call.made {
            Some(made) => {
                let apply = |args| TKind::Derive { f: Box::new(made.f.clone()), args };
                asked.applied_known(self.setup, &apply, made.types.clone(), &made.ret, &call.known)
            }
            None => asked.call_known(self.setup, &call.known),
        };
        let (graph, open) = traced.map_err(|found| told::untraced(f, call, &found))?;
        if !open.is_empty() {
            return Err(Box::new(told::open(f, &calls::Open { span: call.span, what: open })));
        }
        let needs = self.needs(&graph).map_err(|e| told::unplaced(f, e))?;
        Ok(Planned { call, asked, graph, needs })
    }

    fn needs(&self, graph: &Graph) -> Result<Needs, BackendError> {
        needs(&self.backend, self.clock.as_ref(), graph, self.backend.memory())
    }

    /// `line 3`, with the file where it is not that of the function.
    fn place(&self, f: &Function, span: Span) -> Option<String> {
        let (file, line, _) = self.sources.line_col(span)?;
        let path = &self.sources.file(file)?.path;
        Some(match self.sources.line_col(f.head) {
            Some((own, ..)) if own != file => format!("line {line} of {path}"),
            _ => format!("line {line}"),
        })
    }

    /// The variable that a line binds to what stands there.
    fn bound_name(&self, span: Span) -> Option<String> {
        let (file, range) = self.sources.locate(span)?;
        let text = &self.sources.file(file)?.text;
        let begin = text.get(..range.start)?.rfind('\n').map_or(0, |at| at + 1);
        let end = text.get(range.end..)?.find('\n').map_or(text.len(), |at| range.end + at);
        let (name, _) = text.get(begin..range.start)?.trim().split_once('=')?;
        let name = name.split(':').next().unwrap_or(name).trim();
        let whole =
            text.get(begin..range.start)?.trim_end().ends_with('=') && text.get(range.end..end)?.trim().is_empty();
        let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
        (whole && is_name).then(|| name.to_owned())
    }

    /// E0801 for a bound that a call does not keep: of several calls the one that needs most.
    fn bound(&self, f: &Function, bound: &Bound, planned: &[Planned]) -> Option<Diagnostic> {
        let over = |p: &&Planned| p.needs.of(&bound.what).is_some_and(|n| n.amount > bound.most);
        let all: Vec<&Planned> = planned.iter().filter(over).collect();
        let most = |p: &&&Planned| p.needs.of(&bound.what).map_or(0, |n| n.amount);
        // The first of those that need most.
        let worst = all.iter().rev().max_by_key(most)?;
        let tried = fixes::tried(self, f, bound, worst);
        Some(told::over(f, bound, worst, all.len() - 1, &tried, self))
    }
}

/// An error of the compiler that stops a plan.
fn broken(span: Span, text: String) -> Diagnostic {
    Diagnostic::new(Code::E0603, span, text)
}
