//! The variables at one point of a body, with what each branch changes kept on a trail, so
//! that a branch costs what it changes and not what is in scope.

use super::typed::Note;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use tessera_base::Span;
use tessera_core::ir::{GlobalId, LocalId, TExpr};
use tessera_core::ty::Ty;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Slot {
    Local(LocalId),
    Global(GlobalId),
}

/// What a name holds here.
#[derive(Clone, PartialEq, Debug)]
pub struct Binding {
    pub slot: Slot,
    /// The type at this point, with sizes and symbolic values.
    pub ty: Ty,
    /// Where it was bound.
    pub span: Span,
    /// Not usable: why.
    pub bad: Option<Bad>,
}

#[derive(Clone, PartialEq, Debug)]
pub enum Bad {
    /// Not assigned on every path.
    Maybe,
    /// Types disagree: the other one, and where it was bound.
    Conflict(Ty, Span),
}

pub type Changes = BTreeMap<usize, Option<Binding>>;

#[derive(Default)]
pub struct Env {
    index: HashMap<Arc<str>, usize>,
    names: Vec<Arc<str>>,
    vars: Vec<Option<Binding>>,
    trail: Vec<(usize, Option<Binding>)>,
    /// What was bound and what expressions are, where someone asks for it: see [`super::typed`].
    pub notes: Option<Vec<Note>>,
}

impl Env {
    pub fn var(&mut self, name: &Arc<str>) -> usize {
        if let Some(i) = self.index.get(name) {
            return *i;
        }
        self.index.insert(name.clone(), self.vars.len());
        self.names.push(name.clone());
        self.vars.push(None);
        self.vars.len() - 1
    }

    pub fn name(&self, var: usize) -> &Arc<str> {
        &self.names[var]
    }

    pub fn get(&self, name: &str) -> Option<&Binding> {
        self.vars[*self.index.get(name)?].as_ref()
    }

    pub fn at(&self, var: usize) -> Option<&Binding> {
        self.vars[var].as_ref()
    }

    pub fn set(&mut self, var: usize, binding: Option<Binding>) {
        let old = std::mem::replace(&mut self.vars[var], binding);
        self.trail.push((var, old));
    }

    /// What an expression is.
    pub fn note(&mut self, span: Span, value: &TExpr) {
        if let Some(notes) = &mut self.notes {
            notes.push(Note::expr(span, value));
        }
    }

    /// What a place is that is assigned to.
    pub fn note_place(&mut self, span: Span, ty: &Ty) {
        if let Some(notes) = &mut self.notes {
            notes.push(Note::place(span, ty));
        }
    }

    pub fn bind(&mut self, name: &Arc<str>, binding: Binding) {
        if let Some(notes) = &mut self.notes {
            notes.push(Note::bound(binding.span, &binding.ty, binding.slot));
        }
        self.rebind(name, binding);
    }

    /// More is known of a variable, or less, than where it was bound.
    pub fn rebind(&mut self, name: &Arc<str>, binding: Binding) {
        let var = self.var(name);
        self.set(var, Some(binding));
    }

    pub fn mark(&self) -> usize {
        self.trail.len()
    }

    /// The variables that differ from those at the mark, as they are now.
    pub fn changes(&self, mark: usize) -> Changes {
        self.trail[mark..].iter().map(|(var, _)| (*var, self.vars[*var].clone())).collect()
    }

    /// Back to the mark; gives what had changed.
    pub fn rollback(&mut self, mark: usize) -> Changes {
        let changes = self.changes(mark);
        while self.trail.len() > mark {
            if let Some((var, old)) = self.trail.pop() {
                self.vars[var] = old;
            }
        }
        changes
    }

    pub fn apply(&mut self, changes: Changes) {
        for (var, binding) in changes {
            self.set(var, binding);
        }
    }

    /// Names that hold a value, in the order in which they were first bound.
    pub fn bound(&self) -> impl Iterator<Item = (&Arc<str>, &Binding)> {
        self.names.iter().zip(&self.vars).filter_map(|(n, b)| Some((n, b.as_ref()?)))
    }
}
