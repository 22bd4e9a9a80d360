//! Assertions that prove what a diagnostic says is not proved, or what the program compares when it runs: what to write, and
//! where. Each is tried before it is offered.

use crate::analysis::{Analysis, Place};
use crate::path::{every_stmt, touches};
use crate::symbol::Symbol;
use std::sync::Arc;
use tessera_base::{Code, Diagnostic, FileId, Span};
use tessera_grammar::ast::{Stmt, StmtKind};
use tessera_infer::check_only;
use tessera_infer::db::{Database, Item};
use tessera_resolve::names::Kind;

/// A line that is put before a statement.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Proof {
    /// The byte where the statement begins, behind the spaces before it.
    pub at: usize,
    /// `assert N == M`
    pub assertion: String,
    /// The assertion, the end of its line, and the spaces before what follows.
    pub text: String,
}

/// What is to be gone once a line is there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Goal {
    Error(Code, String),
    /// What the program compares when it runs.
    Comparison(Arc<str>),
}

/// What checking a program has given: diagnostics, and what it compares when it runs.
pub type Told<'a> = (&'a [Diagnostic], &'a [(Span, Arc<str>)]);

impl Goal {
    fn count(&self, (diagnostics, kept): Told) -> usize {
        match self {
            Goal::Error(code, message) => {
                diagnostics.iter().filter(|d| d.code == *code && d.message == *message).count()
            }
            Goal::Comparison(what) => kept.iter().filter(|(_, w)| w == what).count(),
        }
    }
}

/// Whether a line reaches its goal, and makes nothing else wrong. It is written into the file for that, and taken away again.
pub fn proves(db: &mut Database, file: FileId, proof: &Proof, goal: &Goal, before: Told) -> bool {
    let Some(text) = db.source_map().file(file).map(|f| f.text.clone()) else { return false };
    let (Some(start), Some(rest)) = (text.get(..proof.at), text.get(proof.at..)) else { return false };
    db.set_text(file, &format!("{start}{}{rest}", proof.text));
    let after = check_only(db, file);
    db.set_text(file, &text);
    let same = |d: &Diagnostic| before.0.iter().any(|b| b.code == d.code && b.message == d.message);
    let worse = after.diagnostics.iter().any(|d| d.is_error() && !same(d));
    !worse && goal.count((&after.diagnostics, &after.kept)) < goal.count(before)
}

/// The assertions that a diagnostic advises ("if N and M are equal, say so before: `assert N == M`"), or else the one that says
/// what it misses ("nothing says that N equals M").
pub fn advised(d: &Diagnostic) -> Vec<String> {
    let help = |title: &str| {
        let (_, rest) = title.split_once("say so before: `")?;
        rest.strip_suffix('`').filter(|a| a.starts_with("assert ")).map(str::to_owned)
    };
    let missed = |note: &str| {
        let (_, rest) = note.split_once("nothing says that ")?;
        let equal = rest.split_once(" equals ").map(|(a, b)| format!("assert {a} == {b}"));
        equal.or_else(|| rest.split_once(" is at least ").map(|(a, b)| format!("assert {a} >= {b}")))
    };
    let helps: Vec<String> = d.fixes.iter().filter_map(|f| help(&f.title)).collect();
    if helps.is_empty() { d.notes.iter().filter_map(|n| missed(n)).collect() } else { helps }
}

/// The line that says so before what stands at a place. None where the assertion names what has no name there, or where no
/// line can be put.
pub fn proof(cx: &Analysis, place: &Place, assertion: &str) -> Option<Proof> {
    let (item, at) = cx.item_at(place.file, place.start)?;
    let text = cx.text(place.file);
    let mut stmts: Vec<&Stmt> = vec![];
    every_stmt(&item.syntax(cx.db).stmts, &mut |stmt| {
        if touches(stmt.span, at) {
            stmts.push(stmt);
        }
    });
    let start = place.start - at as usize;
    // The innermost statement that begins its line, in a body: a `def` is a head around its place.
    let stmt = stmts.into_iter().rev().find(|stmt| {
        let begin = start + stmt.span.start as usize;
        let before = &text[line_start(&text, begin)..begin];
        let is_branch = text[begin..].starts_with("elif");
        before.trim().is_empty() && !is_branch && !matches!(stmt.kind, StmtKind::Def(_))
    })?;
    let begin = start + stmt.span.start as usize;
    if !names(assertion).all(|name| is_size(cx, item, stmt.span.start, name)) {
        return None;
    }
    let spaces = &text[line_start(&text, begin)..begin];
    Some(Proof { at: begin, assertion: assertion.to_owned(), text: format!("{assertion}\n{spaces}") })
}

fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |i| i + 1)
}

/// The names in an assertion.
fn names(assertion: &str) -> impl Iterator<Item = &str> {
    let words = assertion.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|w| !w.is_empty());
    let words = words.filter(|w| !w.starts_with(|c: char| c.is_ascii_digit()));
    words.filter(|w| !matches!(*w, "assert" | "and" | "or" | "not" | "min" | "max"))
}

/// Whether a name stands for a size, or for an int, at a position of an item.
fn is_size(cx: &Analysis, item: Item, at: u32, name: &str) -> bool {
    match cx.name_seen(item, at, name) {
        Some(Symbol::Local { item, binding }) => {
            cx.item(item).is_some_and(|i| i.names(cx.db).binding(binding).kind != Kind::Function)
        }
        Some(Symbol::Variable(..)) => true,
        _ => false,
    }
}
