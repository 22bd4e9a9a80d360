//! The text of a program with that of a case behind it.

use super::cases::Statement;
use super::drawn::Call;
use tessera_grammar::ast::{ExprKind, StmtKind};
use tessera_resolve::source::Taken;

/// What stands in the output before that of each statement of a case.
const MARK: &str = "\u{1}tessera test\u{1}";

/// A line that prints the mark, with what is said of the statement behind it.
fn mark(what: &str) -> String {
    format!("print({})\n", format!("{:?}", format!("{MARK}{what}")).replace("\\u{1}", "\\x01"))
}

/// What was printed after each mark.
pub fn by_statement(output: &str) -> Vec<&str> {
    output.split(MARK).skip(1).collect()
}

/// The text of a file with a call of a test function behind it.
pub fn with_call(file: &str, name: &str) -> String {
    format!("{file}\n{}{name}()\n", mark(""))
}

/// The text of a file with calls of a test function behind it, each after its sizes.
pub fn with_calls(file: &str, calls: &[Call]) -> String {
    let calls = calls.iter().map(|c| format!("{}{}\n", mark(&c.sizes), c.text));
    format!("{file}\n{}", calls.collect::<String>())
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

/// The text of a file with the statements of an example behind it, each after a mark, and which parts of that stand in the
/// file.
pub fn with_example(file: &str, statements: &[Statement]) -> (String, Vec<Taken>) {
    let mut text = format!("{file}\n{SHOWN}\n");
    let mut taken = vec![];
    for Statement { lines: statement, .. } in statements {
        text.push_str(&mark(""));
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
