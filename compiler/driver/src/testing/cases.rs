//! What there is to test in a program: `test_*` functions and the `>>>` examples of docstrings.

use super::drawn;
use std::ops::Range;
use tessera_grammar::ast::{ExprKind, FnDef, Stmt, StmtKind};

/// One thing to run.
pub struct Case {
    pub name: String,
    /// Where it begins in its file, counted from 1.
    pub line: usize,
    pub what: What,
}

pub enum What {
    /// What to run after the file, and what each statement is to print.
    Example(Vec<Statement>),
    /// A call of a test function, which only must not fail.
    Test,
    /// Calls of a test function with drawn arguments.
    Drawn(Vec<drawn::Call>),
    /// A test function whose arguments cannot be drawn, and why.
    Refused(String),
}

/// A statement of an example.
#[derive(Default)]
pub struct Statement {
    /// Its lines, each with the byte of the file at which it begins, if it is there.
    pub lines: Vec<(String, Option<usize>)>,
    /// The lines that it is to print.
    pub expected: String,
    /// Where it begins in its file, counted from 1.
    pub line: usize,
}

impl Statement {
    pub fn text(&self) -> String {
        self.lines.iter().map(|(line, _)| line.as_str()).collect::<Vec<_>>().join("\n")
    }
}

/// The line of a byte, counted from 1.
pub fn line_of(text: &str, byte: usize) -> usize {
    text.as_bytes().iter().take(byte).filter(|b| **b == b'\n').count() + 1
}

/// The tests and examples of a program, in order.
pub fn of_program(text: &str) -> Vec<Case> {
    let pieces = tessera_grammar::split(text);
    let item = |range: &Range<u32>| {
        let text = text.get(range.start as usize..range.end as usize).unwrap_or("");
        (text, tessera_grammar::parse_item(text, tessera_base::ItemId(0)).stmts)
    };
    let parsed: Vec<_> = pieces.items.iter().map(|i| (i.range.start as usize, item(&i.range))).collect();
    // Names of the file are no sizes to be drawn.
    let constants: Vec<String> = parsed.iter().flat_map(|(_, (_, stmts))| stmts).flat_map(assigned).collect();
    let mut found = vec![];
    for (begin, (own, stmts)) in &parsed {
        for stmt in stmts {
            let start = stmt.span.start as usize;
            let raw = Raw { text: own.get(start..).unwrap_or(""), at: begin + start };
            of_statement(stmt, text, own, raw, &constants, &mut found);
        }
    }
    found
}

/// The names that a statement at the top of a file assigns.
fn assigned(stmt: &Stmt) -> Vec<String> {
    let targets = match &stmt.kind {
        StmtKind::Assign { targets, .. } => targets.as_slice(),
        StmtKind::AnnAssign { target, .. } => std::slice::from_ref(target),
        _ => &[],
    };
    let name = |e: &tessera_grammar::ast::Expr| match &e.kind {
        ExprKind::Name(n) => vec![n.to_string()],
        ExprKind::Tuple(parts) => {
            let names =
                parts.iter().filter_map(|p| if let ExprKind::Name(n) = &p.kind { Some(n.to_string()) } else { None });
            names.collect()
        }
        _ => vec![],
    };
    targets.iter().flat_map(name).collect()
}

/// What is left of the text of a statement, and where it is in the file.
struct Raw<'a> {
    text: &'a str,
    at: usize,
}

impl Raw<'_> {
    /// Where the next line is that holds this one; a docstring with escapes may have none.
    fn find(&mut self, line: &str) -> Option<usize> {
        let found = self.text.find(line)?;
        let place = self.at + found;
        (self.text, self.at) = (&self.text[found + line.len()..], place + line.len());
        Some(place)
    }
}

fn of_statement(stmt: &Stmt, file: &str, item: &str, mut raw: Raw, constants: &[String], found: &mut Vec<Case>) {
    let line = line_of(file, raw.at);
    let (name, doc) = match &stmt.kind {
        StmtKind::Def(f) => {
            if f.name.text.starts_with("test_") {
                found.push(test(f, line_of(file, raw.at + within(stmt, f)), item, constants));
            }
            (f.name.text.to_string(), f.doc.clone())
        }
        StmtKind::Struct(s) => (s.name.text.to_string(), s.doc.clone()),
        StmtKind::Expr(e) => match &e.kind {
            ExprKind::Str(text) => ("the file's docstring".to_owned(), Some(text.clone())),
            _ => return,
        },
        _ => return,
    };
    let statements =
        doc.map(|d| example(&d, line, |l| raw.find(l).map(|at| (at, line_of(file, at))))).unwrap_or_default();
    let Some(first) = statements.first() else { return };
    found.push(Case { name: format!("example of {name}"), line: first.line, what: What::Example(statements) });
}

/// The bytes between the start of a statement and the name of the function that it defines: decorators stand there.
fn within(stmt: &Stmt, f: &FnDef) -> usize {
    f.name.span.start.saturating_sub(stmt.span.start) as usize
}

fn test(f: &FnDef, line: usize, item: &str, constants: &[String]) -> Case {
    let required = f.params.iter().any(|p| p.default.is_none());
    let what = match required {
        false => What::Test,
        true => drawn::calls(f, item, constants).map_or_else(What::Refused, What::Drawn),
    };
    Case { name: f.name.text.to_string(), line, what }
}

/// The statements of all `>>>` lines (with their `...` lines), and the lines that they print. `find` gives the byte and the
/// line at which the next line of this text stands in the file.
pub fn example(doc: &str, line: usize, mut find: impl FnMut(&str) -> Option<(usize, usize)>) -> Vec<Statement> {
    let mut out: Vec<Statement> = vec![];
    // Whether printed lines may follow, and whether more lines of the statement may.
    let (mut printing, mut open) = (false, false);
    for text in doc.lines() {
        let text = text.trim();
        let mut part = |mark: &str| {
            let code = text.strip_prefix(mark)?;
            let found = find(text);
            let at = found.map(|(at, _)| at + mark.len());
            let (code, at) = code.strip_prefix(' ').map_or((code, at), |c| (c, at.map(|at| at + 1)));
            Some(((code.to_owned(), at), found.map_or(line, |(_, line)| line)))
        };
        if let Some((first, line)) = part(">>>") {
            out.push(Statement { lines: vec![first], expected: String::new(), line });
            (printing, open) = (true, true);
        } else if let (true, Some((more, _))) = (open, part("...")) {
            out.last_mut().into_iter().for_each(|s| s.lines.push(more.clone()));
        } else if text.is_empty() {
            (printing, open) = (false, false);
        } else if let (true, Some(last)) = (printing, out.last_mut()) {
            open = false;
            last.expected.push_str(text);
            last.expected.push('\n');
        }
    }
    out
}
