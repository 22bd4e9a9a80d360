//! `tessera test`: runs `test_*` functions and the `>>>` examples of docstrings.
//!
//! Each case runs on its own: the file's text, then the call or the example's lines. What the
//! file itself prints does not count.

use crate::backend::Backend;
use crate::cli::{Color, Global};
use crate::files;
use crate::program::{self, CheckedFile, Ready, Setup, out};
use crate::regions::Reports;
use crate::render::Style;
use crate::target::Choice;
use std::cell::RefCell;
use std::io::Write;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use tessera_base::{Code, Diagnostic, Edit, Fix};
use tessera_core::ir::Program;
use tessera_grammar::ast::{ExprKind, Stmt, StmtKind};
use tessera_host::Session;
use tessera_resolve::source::{Loaded, SourceMap, Taken};
use tessera_runtime::pool::Pool;

/// One thing to run.
struct Case {
    name: String,
    /// What to run after the file.
    code: Vec<Statement>,
    /// What it prints; `None` for a test function, which only must not fail.
    expected: Option<String>,
}

/// Lines of an example, each with the byte of the file at which it begins, if it is there.
type Statement = Vec<(String, Option<usize>)>;

/// Marks where the output of a case begins.
const MARK: &str = "\u{1}tessera test\u{1}";

/// Runs the command; returns the exit code.
pub fn test(setup: &Setup, paths: &[PathBuf], only: Option<&str>) -> u8 {
    let (mut passed, mut failed) = (0, 0);
    for path in paths {
        let loaded = match files::read_source(path) {
            Ok(l) => l,
            Err(d) => {
                setup.show(&[d], &SourceMap::default());
                failed += 1;
                continue;
            }
        };
        let checked = program::check(&loaded);
        setup.show(&checked.diagnostics, &checked.sources);
        if checked.program.is_none() || checked.diagnostics.iter().any(|d| d.is_error()) {
            failed += 1;
            continue;
        }
        for case in cases(&loaded).into_iter().filter(|c| only.is_none_or(|o| c.name.contains(o))) {
            match run(setup, &loaded, &checked.diagnostics, &case) {
                Ok(()) => {
                    passed += 1;
                    out(&format!("ok      {}\n", case.name));
                }
                Err(why) => {
                    failed += 1;
                    out(&format!("FAILED  {}\n{}\n", case.name, indented(&why)));
                }
            }
        }
    }
    out(&format!("{passed} passed, {failed} failed\n"));
    u8::from(failed > 0)
}

fn indented(text: &str) -> String {
    text.trim_end().lines().map(|l| format!("        {l}\n")).collect::<String>().trim_end().to_owned()
}

/// The tests and examples of a file, in order.
fn cases(loaded: &Loaded) -> Vec<Case> {
    let mut found = vec![];
    for item in &tessera_grammar::split(&loaded.text).items {
        let text = loaded.text.get(item.range.start as usize..item.range.end as usize).unwrap_or("");
        let parsed = tessera_grammar::parse_item(text, tessera_base::ItemId(0));
        for stmt in &parsed.stmts {
            let start = stmt.span.start as usize;
            let raw = Raw { text: text.get(start..).unwrap_or(""), at: item.range.start as usize + start };
            of_statement(stmt, raw, &mut found);
        }
    }
    found
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

fn of_statement(stmt: &Stmt, mut raw: Raw, found: &mut Vec<Case>) {
    let (name, doc) = match &stmt.kind {
        StmtKind::Def(f) => {
            let required = f.params.iter().any(|p| p.default.is_none());
            if f.name.text.starts_with("test_") && !required {
                let name = f.name.text.to_string();
                found.push(Case { code: vec![vec![(format!("{name}()"), None)]], name, expected: None });
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
    let Some((code, expected)) = doc.and_then(|d| example(&d, &mut raw)) else { return };
    found.push(Case { name: format!("example of {name}"), code, expected: Some(expected) });
}

/// The code of all `>>>` lines (with their `...` lines), and the lines that they print.
fn example(doc: &str, raw: &mut Raw) -> Option<(Vec<Statement>, String)> {
    let (mut code, mut expected): (Vec<Statement>, _) = (vec![], String::new());
    // Whether printed lines may follow, and whether more lines of the statement may.
    let (mut printing, mut open) = (false, false);
    for line in doc.lines() {
        let line = line.trim();
        let mut part = |mark: &str| {
            let text = line.strip_prefix(mark)?;
            let at = raw.find(line).map(|at| at + mark.len());
            let text = text.strip_prefix(' ').map_or((text, at), |t| (t, at.map(|at| at + 1)));
            Some((text.0.to_owned(), text.1))
        };
        if let Some(first) = part(">>>") {
            code.push(vec![first]);
            (printing, open) = (true, true);
        } else if let (true, Some(more)) = (open, part("...")) {
            code.last_mut().into_iter().for_each(|s| s.push(more.clone()));
        } else if line.is_empty() {
            (printing, open) = (false, false);
        } else if printing {
            open = false;
            expected.push_str(line);
            expected.push('\n');
        }
    }
    (!code.is_empty()).then_some((code, expected))
}

/// Shows a value as a session does: `None` is not shown.
const SHOWN: &str = "\ndef shown_by_an_example(value):\n    if value is not None:\n        print(repr(value))\n";

/// What stands before and behind a statement: an expression shows its value, a call of `print` what it
/// prints.
fn echoed(statement: &str) -> [&'static str; 2] {
    let (expr, wrong) = tessera_grammar::parse_expr(statement.trim_end(), tessera_base::ItemId(0));
    let prints = match &expr.kind {
        ExprKind::Call { func, .. } => matches!(&func.kind, ExprKind::Name(n) if **n == *"print"),
        _ => false,
    };
    if wrong.is_empty() && !prints { ["shown_by_an_example(", ")"] } else { ["", ""] }
}

/// The parts of a line of several statements, each with where it begins and what stands before and behind it.
fn in_a_row(line: &str) -> Option<Vec<(&str, usize, [&'static str; 2])>> {
    let parsed = tessera_grammar::parse_item(line, tessera_base::ItemId(0));
    if parsed.stmts.len() < 2 || !parsed.diagnostics.is_empty() {
        return None;
    }
    let mut out = vec![];
    let mut done = 0;
    for stmt in &parsed.stmts {
        let (start, end) = (stmt.span.start as usize, stmt.span.end as usize);
        let (between, part) = (line.get(done..start)?, line.get(start..end)?);
        out.push((between, done, ["", ""]));
        let shown = matches!(stmt.kind, StmtKind::Expr(_));
        out.push((part, start, if shown { echoed(part) } else { ["", ""] }));
        done = end;
    }
    out.push((line.get(done..)?, done, ["", ""]));
    Some(out)
}

/// The text of a file with the code of a case behind it, and which parts of that stand in the file.
fn with_code(file: &str, case: &Case) -> (String, Vec<Taken>) {
    let mark = format!("{MARK:?}").replace("\\u{1}", "\\x01");
    let mut text = format!("{file}\n{SHOWN}\nprint({mark})\n");
    let mut taken = vec![];
    for statement in &case.code {
        let whole: Vec<&str> = statement.iter().map(|(line, _)| line.as_str()).collect();
        let mut push = |text: &mut String, [before, behind]: [&str; 2], part: &str, place: Option<usize>| {
            let begin = text.len();
            text.push_str(before);
            let start = text.len();
            text.push_str(part);
            text.push_str(behind);
            if let Some(from) = place.map(|at| at..at + part.len()) {
                taken.push(Taken { whole: begin..text.len(), start, from });
            }
        };
        if let [(line, place)] = statement.as_slice()
            && let Some(parts) = in_a_row(line)
        {
            for (part, at, around) in parts {
                push(&mut text, around, part, place.map(|place| place + at));
            }
            text.push('\n');
            continue;
        }
        let [before, behind] = echoed(&whole.join("\n"));
        for (i, (line, place)) in statement.iter().enumerate() {
            let before = if i == 0 { before } else { "" };
            let behind = if i + 1 == statement.len() { behind } else { "" };
            push(&mut text, [before, behind], line, *place);
            text.push('\n');
        }
    }
    (text, taken)
}

/// Output that is gathered in memory.
#[derive(Clone, Default)]
struct Buffer(Arc<Mutex<Vec<u8>>>);

impl Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap_or_else(|e| e.into_inner()).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Runs a case; `told` was said of the file before.
fn run(setup: &Setup, file: &Loaded, told: &[Diagnostic], case: &Case) -> Result<(), String> {
    let own = file.text.trim_end();
    let (text, taken) = with_code(own, case);
    let loaded = Loaded { path: file.path.clone(), text: text.into() };
    let as_in_file = |checked: &mut CheckedFile| {
        checked.sources.show(&file.path, file.text.clone(), own.len(), taken);
        checked.diagnostics.retain(|d| !told.contains(d));
    };
    let ready = program::prepare_as(setup, &loaded, as_in_file);
    let Some(ready) = ready else { return Err("the example does not check".into()) };
    let output = Buffer::default();
    let mut session = Session::new(Box::new(output.clone()), false, vec![], setup.stack_bytes);
    let code = execute(setup, &mut session, &ready)?;
    if code != 0 {
        return Err(format!("ended with exit code {code}"));
    }
    drop(session);
    let Some(expected) = &case.expected else { return Ok(()) };
    let bytes = output.0.lock().unwrap_or_else(|e| e.into_inner()).clone();
    let printed = String::from_utf8_lossy(&bytes).into_owned();
    let printed = printed.split_once(&format!("{MARK}\n")).map_or("", |(_, p)| p);
    let same = |s: &str| s.lines().map(|l| l.trim().to_owned()).filter(|l| !l.is_empty()).collect::<Vec<_>>();
    if same(printed) == same(expected) {
        return Ok(());
    }
    Err(format!("expected\n{}\nprinted\n{}", indented(expected), indented(printed)))
}

fn execute(setup: &Setup, session: &mut Session, ready: &Ready) -> Result<u8, String> {
    let pool = setup.pool();
    let backend = Rc::new(setup.backend(pool.clone()));
    execute_with(setup, session, ready, backend, pool)
}

fn execute_with(
    setup: &Setup,
    session: &mut Session,
    ready: &Ready,
    backend: Rc<Backend>,
    pool: Arc<Pool>,
) -> Result<u8, String> {
    let reports = Reports::default();
    let program = program::start(session, ready, backend, pool, reports.clone()).map_err(|d| d.message)?;
    let stop = session.run(&program);
    Ok(program::finish(setup, stop, ready, &reports))
}

/// What became of a text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It has these errors.
    Refused(Vec<Code>),
    /// It stopped while it ran.
    Stopped(String),
    Printed(String),
}

/// What the first error of a text says to write.
pub struct Advice {
    pub code: Code,
    pub title: String,
    /// The text with that written.
    pub text: String,
}

/// The fixes of the first error of a text that come with edits.
pub fn advice(text: &str) -> Vec<Advice> {
    let checked = program::check(&Loaded { path: "main.tsr".into(), text: text.into() });
    let Some(d) = checked.diagnostics.iter().find(|d| d.is_error()) else { return vec![] };
    let written = |f: &Fix| {
        let located = |e: &Edit| checked.sources.locate(e.span).map(|(_, range)| (range, e.text.clone()));
        let mut edits: Vec<_> = f.edits.iter().filter_map(located).collect();
        edits.sort_by_key(|(range, _)| std::cmp::Reverse(range.start));
        let mut out = text.to_owned();
        edits.into_iter().for_each(|(range, by)| out.replace_range(range, &by));
        Advice { code: d.code, title: f.title.clone(), text: out }
    };
    d.fixes.iter().filter(|f| !f.edits.is_empty()).map(written).collect()
}

/// Runs many texts in one process, with the kernels of earlier ones, and says nothing.
pub struct Runner {
    setup: Setup,
    pool: Arc<Pool>,
    backend: Rc<Backend>,
}

impl Runner {
    /// For a thread whose stack has `stack_bytes` to spare.
    pub fn new(stack_bytes: usize) -> Runner {
        Runner::with(stack_bytes, false)
    }

    /// As [`Runner::new`], with every value held against its type.
    pub fn checked(stack_bytes: usize) -> Runner {
        Runner::with(stack_bytes, true)
    }

    fn with(stack_bytes: usize, checked: bool) -> Runner {
        let global = Global {
            target: Choice::default(),
            threads: Some(1),
            devices: None,
            mesh: None,
            policy: "deterministic".into(),
            json: false,
            color: Color::Never,
            quiet: true,
            verbose: false,
            checked,
            check_nan: false,
            no_cache: true,
            memory: None,
        };
        let style = Style { color: false, json: false, quiet: true };
        let setup = Setup { global, style, stack_bytes, profile: false, held: Some(RefCell::default()) };
        let pool = setup.pool();
        let backend = Rc::new(setup.backend(pool.clone()));
        Runner { setup, pool, backend }
    }

    /// Checks a text and runs it, if it has no errors.
    pub fn run(&self, text: &str) -> Outcome {
        self.run_changed(text, |_| {})
    }

    /// As [`Runner::run`], of what becomes of the checked program by `change`.
    pub fn run_changed(&self, text: &str, change: impl FnOnce(&mut Program)) -> Outcome {
        let loaded = Loaded { path: "main.tsr".into(), text: text.into() };
        let found = program::check(&loaded).diagnostics;
        let errors: Vec<Code> = found.iter().filter(|d| d.is_error()).map(|d| d.code).collect();
        if !errors.is_empty() {
            return Outcome::Refused(errors);
        }
        let changed = |checked: &mut CheckedFile| {
            if let Some(program) = &mut checked.program {
                change(program);
            }
        };
        let Some(ready) = program::prepare_as(&self.setup, &loaded, changed) else { return Outcome::Refused(vec![]) };
        self.said();
        let output = Buffer::default();
        let mut session = Session::new(Box::new(output.clone()), false, vec![], self.setup.stack_bytes);
        match execute_with(&self.setup, &mut session, &ready, self.backend.clone(), self.pool.clone()) {
            Err(why) => return Outcome::Stopped(why),
            Ok(0) => {}
            Ok(code) => return Outcome::Stopped(format!("exit code {code}\n{}", self.said())),
        }
        drop(session);
        let bytes = output.0.lock().unwrap_or_else(|e| e.into_inner()).clone();
        Outcome::Printed(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// What was to be told since it was asked last.
    fn said(&self) -> String {
        let held = self.setup.held.as_ref().map(RefCell::take).unwrap_or_default();
        String::from_utf8_lossy(&held).into_owned()
    }
}
