//! New values of variables that nothing reads (W0110): what an assignment, or a change of a part, leaves behind in a function
//! where no path reads it again. Mostly the parameter of a function was meant to change for its caller, as it does in Python.

use crate::members::CHANGE;
use std::collections::{BTreeMap, BTreeSet};
use tessera_base::{Code, Diagnostic, Span};
use tessera_grammar::ast::*;
use tessera_resolve::names::{BindingId, Kind, Names, Reference};
use tessera_resolve::syntax::{each_stmt, parts_of};

/// The variables whose values are read from some place on.
type Read = BTreeSet<BindingId>;

/// W0110 in the functions of an item, in the order of the text.
pub fn lost_values(stmts: &[Stmt], names: &Names) -> Vec<Diagnostic> {
    let mut out = vec![];
    let mut bound = BTreeMap::new();
    for id in (0..names.bindings.len() as u32).map(BindingId) {
        bound.extend(names.binding(id).places.iter().map(|place| (*place, id)));
    }
    each_function(stmts, &mut |def| {
        // The programs of a kernel write the parameters that hold its results.
        if !def.decorators.iter().any(names_a_kernel) {
            out.extend(Function::new(names, &bound, def).lost(def));
        }
    });
    out
}

fn each_function(stmts: &[Stmt], f: &mut dyn FnMut(&FnDef)) {
    let mut inside = vec![];
    each_stmt(stmts, &mut |stmt| {
        if let StmtKind::Def(def) = &stmt.kind {
            f(def);
            inside.push(def.clone());
        }
    });
    inside.iter().for_each(|def| each_function(&def.body, f));
}

fn names_a_kernel(e: &Expr) -> bool {
    let of_kernels = |name: &str| matches!(name, "kernel" | "autotune");
    match &e.kind {
        ExprKind::Name(name) => of_kernels(name),
        ExprKind::Attr { name, .. } => of_kernels(&name.text),
        ExprKind::Call { func, .. } => names_a_kernel(func),
        _ => false,
    }
}

/// One function, gone through from its end to its start.
struct Function<'a> {
    names: &'a Names,
    /// What each place binds.
    bound: &'a BTreeMap<Span, BindingId>,
    /// Targets of its loops.
    targets: BTreeSet<BindingId>,
    /// What each turn of a loop reads before it assigns it, by the loop.
    turns: BTreeMap<Span, Read>,
    /// What is read behind the loop around a statement, and at the start of its turns.
    around: Vec<(Read, Read)>,
    /// Where a value is lost, by the variable.
    lost: BTreeMap<BindingId, BTreeSet<Span>>,
}

impl<'a> Function<'a> {
    fn new(names: &'a Names, bound: &'a BTreeMap<Span, BindingId>, def: &FnDef) -> Function<'a> {
        let mut targets = BTreeSet::new();
        each_stmt(&def.body, &mut |stmt| {
            if let StmtKind::For { target, .. } = &stmt.kind {
                let inside = |place: &Span| target.span.start <= place.start && place.end <= target.span.end;
                targets.extend(bound.iter().filter(|(place, _)| inside(place)).map(|(_, id)| *id));
            }
        });
        Function { names, bound, targets, turns: BTreeMap::new(), around: vec![], lost: BTreeMap::new() }
    }

    fn lost(mut self, def: &FnDef) -> Vec<Diagnostic> {
        // A turn of a loop is followed by the next one: until no loop reads more than was known of it.
        loop {
            let known = self.turns.clone();
            self.lost.clear();
            self.statements(&def.body, &mut Read::new());
            if self.turns == known {
                break;
            }
        }
        let never: Vec<BindingId> = self.names.unused();
        let lost = self.lost.iter().filter(|(id, _)| !never.contains(id));
        lost.filter_map(|(id, places)| self.said(*id, places)).collect()
    }

    fn said(&self, id: BindingId, places: &BTreeSet<Span>) -> Option<Diagnostic> {
        let binding = self.names.binding(id);
        let name = &binding.name;
        let first = places.first().filter(|_| !name.starts_with('_'))?;
        let mut d = Diagnostic::new(Code::W0110, *first, format!("the new value of `{name}` is never read"));
        for place in places.iter().skip(1) {
            d = d.with_label(*place, "nor is this one");
        }
        Some(match binding.kind {
            Kind::Parameter => d
                .note("a parameter is a value of its own: what the caller passed stays as it was")
                .help(format!("return it, and bind the result where the function is called: `return {name}`")),
            _ if self.targets.contains(&id) => d
                .note("the target of a loop is a value of its own: what the loop goes over stays as it was")
                .help("collect the new values in a list, or assign to the element by its position: `xs[i] = …`"),
            _ => d.help("leave it out, or read it; a name that begins with `_` is meant not to be read"),
        })
    }

    /// What is read before statements, made of what is read behind them.
    fn statements(&mut self, stmts: &[Stmt], read: &mut Read) {
        stmts.iter().rev().for_each(|stmt| self.statement(stmt, read));
    }

    fn statement(&mut self, stmt: &Stmt, read: &mut Read) {
        match &stmt.kind {
            StmtKind::Assign { targets, value } => self.assignment(&targets.iter().collect::<Vec<_>>(), value, read),
            StmtKind::AnnAssign { target, ty, value } => {
                value.iter().for_each(|v| self.assignment(&[target], v, read));
                self.read_in(ty.span, &BTreeSet::new(), read);
            }
            StmtKind::AugAssign { target, value, .. } => {
                let lost = self.changed(target, read);
                self.reads_of(value, lost, read);
            }
            StmtKind::Expr(e) => self.alone(e, read),
            StmtKind::If { test, then, otherwise } => {
                let mut other = read.clone();
                self.statements(then, read);
                self.statements(otherwise, &mut other);
                read.extend(other);
                self.all_of(test.span, read);
            }
            StmtKind::For { target, iter, body } => {
                self.loop_turns(stmt.span, body, read, |cx, read| cx.bound_in(target, read));
                self.all_of(iter.span, read);
            }
            StmtKind::While { test, body } => {
                self.loop_turns(stmt.span, body, read, |cx, read| cx.all_of(test.span, read))
            }
            StmtKind::With { items, body } => {
                self.statements(body, read);
                for (value, target) in items {
                    target.iter().for_each(|t| self.bound_in(t, read));
                    self.all_of(value.span, read);
                }
            }
            StmtKind::Return(value) => {
                read.clear();
                value.iter().for_each(|v| self.all_of(v.span, read));
            }
            StmtKind::Break | StmtKind::Continue => {
                if let Some((behind, turn)) = self.around.last() {
                    *read = if matches!(stmt.kind, StmtKind::Break) { behind.clone() } else { turn.clone() };
                }
            }
            // A function inside keeps the values that its names have where it is made.
            _ => self.all_of(stmt.span, read),
        }
    }

    /// A loop: behind a turn comes the next one, or what is behind the loop. `start` is what each turn begins with.
    fn loop_turns(&mut self, span: Span, body: &[Stmt], read: &mut Read, start: impl Fn(&mut Self, &mut Read)) {
        let mut turn: Read = self.turns.get(&span).cloned().unwrap_or_default();
        turn.extend(read.iter().copied());
        self.around.push((read.clone(), turn.clone()));
        let mut inside = turn.clone();
        self.statements(body, &mut inside);
        self.around.pop();
        start(self, &mut inside);
        turn.extend(inside);
        read.extend(turn.iter().copied());
        self.turns.insert(span, turn);
    }

    fn assignment(&mut self, targets: &[&Expr], value: &Expr, read: &mut Read) {
        let mut lost = None;
        for target in targets {
            match &target.kind {
                ExprKind::Name(_) => {
                    let Some(id) = self.bound.get(&target.span).copied() else { continue };
                    if !read.remove(&id) {
                        // A first value, and one that is written out, may say what the variable is.
                        let binding = self.names.binding(id);
                        let first = binding.places.first() == Some(&target.span) || is_constant(value);
                        let first = first && binding.kind == Kind::Variable;
                        if !first {
                            self.lost.entry(id).or_default().insert(target.span);
                        }
                        lost = Some(id);
                    }
                }
                ExprKind::Tuple(_) | ExprKind::List(_) => self.bound_in(target, read),
                _ => lost = self.changed(target, read),
            }
        }
        self.reads_of(value, lost, read);
    }

    /// Targets that take a value apart: they may be there for their place.
    fn bound_in(&mut self, target: &Expr, read: &mut Read) {
        match &target.kind {
            ExprKind::Name(_) => {
                if let Some(id) = self.bound.get(&target.span) {
                    read.remove(id);
                }
            }
            ExprKind::Tuple(ts) | ExprKind::List(ts) => ts.iter().for_each(|t| self.bound_in(t, read)),
            _ => self.all_of(target.span, read),
        }
    }

    /// A variable that gets another value from its old one; gives it, if nothing reads that.
    fn changed(&mut self, target: &Expr, read: &mut Read) -> Option<BindingId> {
        let Some(id) = self.variable_of(target) else {
            self.all_of(target.span, read);
            return None;
        };
        let lost = (!read.contains(&id)).then_some(id);
        if lost.is_some() {
            self.lost.entry(id).or_default().insert(target.span);
        }
        self.read_in(target.span, &lost.into_iter().collect(), read);
        lost
    }

    /// A statement that is an expression; `xs.append(x)` changes `xs`.
    fn alone(&mut self, e: &Expr, read: &mut Read) {
        if let ExprKind::Call { func, args } = &e.kind
            && let ExprKind::Attr { base, name } = &func.kind
            && CHANGE.contains(&&*name.text)
            && self.variable_of(base).is_some()
        {
            let lost = self.changed(base, read);
            args.iter().for_each(|a| self.reads_of(&a.value, lost, read));
            return;
        }
        self.all_of(e.span, read);
    }

    /// The variable of the function at the root of a place.
    fn variable_of(&self, place: &Expr) -> Option<BindingId> {
        let id = match &place.kind {
            ExprKind::Name(_) => match self.names.use_at(place.span)?.to {
                Reference::Local(id) => id,
                Reference::Outside => return None,
            },
            ExprKind::Attr { base, .. } | ExprKind::Index { base, .. } => return self.variable_of(base),
            _ => return None,
        };
        matches!(self.names.binding(id).kind, Kind::Parameter | Kind::Variable).then_some(id)
    }

    /// What a value reads. What makes only a value that is lost is not read, if nothing else comes of it.
    fn reads_of(&mut self, value: &Expr, lost: Option<BindingId>, read: &mut Read) {
        let only = lost.filter(|_| !may_do_more(value));
        self.read_in(value.span, &only.into_iter().collect(), read);
    }

    fn all_of(&mut self, span: Span, read: &mut Read) {
        self.read_in(span, &BTreeSet::new(), read);
    }

    fn read_in(&mut self, span: Span, but: &BTreeSet<BindingId>, read: &mut Read) {
        let from = self.names.uses.partition_point(|u| u.span.start < span.start);
        let uses = self.names.uses[from..].iter().take_while(|u| u.span.start < span.end);
        read.extend(uses.filter_map(|u| match u.to {
            Reference::Local(id) if !but.contains(&id) => Some(id),
            _ => None,
        }));
    }
}

/// Whether a value is written out.
fn is_constant(e: &Expr) -> bool {
    match &e.kind {
        ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Bool(_) | ExprKind::Str(_) | ExprKind::None => true,
        ExprKind::Dict(_) => parts_of(e).into_iter().all(is_constant),
        ExprKind::Unary { .. } | ExprKind::Tuple(_) | ExprKind::List(_) => parts_of(e).into_iter().all(is_constant),
        _ => false,
    }
}

/// Whether computing a value may do more than give it: what is called by a name alone may print.
fn may_do_more(e: &Expr) -> bool {
    let named = matches!(&e.kind, ExprKind::Call { func, .. } if matches!(func.kind, ExprKind::Name(_)));
    named || parts_of(e).into_iter().any(may_do_more)
}
