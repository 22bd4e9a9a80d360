//! The types of a body as a table beside its text: what each expression is and what each name is bound to, whether or not
//! the body is right.
//!
//! A body is checked and written as Core in one walk: what a variable is changes from statement to statement, a size may be
//! read from a value that was computed just before, and a condition that types decide leaves a branch out. So the table
//! is no step on the way to Core. Whoever asks for it (an editor, `explain FILE:LINE:COLUMN`) has the body checked with notes
//! taken; checking alone pays nothing for it.

use super::env::Slot;
use super::types::{fill, has_unknown};
use super::zonk::known;
use std::collections::BTreeMap;
use tessera_base::{ItemId, Span};
use tessera_core::ir::{GlobalId, TExpr, TKind, Variable};
use tessera_core::ty::Ty;

/// What stands at a place, as it was known there.
#[derive(Clone, Debug)]
pub struct Note {
    span: Span,
    ty: Ty,
    /// The variable that it is: what an empty list holds is known when the body ends.
    slot: Option<Slot>,
}

impl Note {
    pub fn bound(span: Span, ty: &Ty, slot: Slot) -> Note {
        Note { span, ty: ty.clone(), slot: Some(slot) }
    }

    pub fn place(span: Span, ty: &Ty) -> Note {
        Note { span, ty: ty.clone(), slot: None }
    }

    pub fn expr(span: Span, value: &TExpr) -> Note {
        let slot = match value.kind {
            TKind::Local(id) => Some(Slot::Local(id)),
            TKind::Global(id) => Some(Slot::Global(id)),
            _ => None,
        };
        Note { span, ty: value.ty.clone(), slot }
    }

    /// With what the variables of the body turned out to be.
    pub fn close(&mut self, locals: &[Variable], globals: &[(GlobalId, Variable)]) {
        if !has_unknown(&self.ty) {
            return;
        }
        let of = match self.slot {
            Some(Slot::Local(id)) => locals.get(id.0 as usize),
            Some(Slot::Global(id)) => globals.iter().find(|(g, _)| *g == id).map(|(_, v)| v),
            None => None,
        };
        self.ty = known(&of.map_or_else(|| self.ty.clone(), |v| fill(&self.ty, &v.ty)));
    }
}

/// By where they stand. What is checked again (the body of a loop) is what it was last.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Types(BTreeMap<(u32, u32), Ty>);

impl Types {
    /// Of the notes of a body, by the items in which they stand.
    pub fn of(notes: Option<Vec<Note>>) -> BTreeMap<ItemId, Types> {
        let mut out: BTreeMap<ItemId, Types> = BTreeMap::new();
        for n in notes.into_iter().flatten().filter(|n| !matches!(n.ty, Ty::Error | Ty::Never)) {
            out.entry(n.span.item).or_default().0.insert((n.span.start, n.span.end), n.ty);
        }
        out
    }

    /// All of them, by where they stand.
    pub fn all(&self) -> impl Iterator<Item = ((u32, u32), &Ty)> {
        self.0.iter().map(|(place, ty)| (*place, ty))
    }
}
