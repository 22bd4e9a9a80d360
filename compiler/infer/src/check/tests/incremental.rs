use super::*;
use crate::db::Database;
use std::sync::{Arc, Mutex};

fn big(n: usize) -> String {
    let mut text = String::new();
    for i in 0..n {
        text.push_str(&format!("def f{i}(x: Tensor[N, f32], k: int) -> Tensor[N, f32]:\n    y = x * 2.0\n    for i in range(k):\n        y = y + x * {i}.0\n    return y\n\n"));
    }
    text.push_str("x = op.ones((4,))\n");
    for i in 0..n {
        text.push_str(&format!("x = f{i}(x, {})\n", i % 7));
    }
    text
}

#[test]
fn an_edit_moves_only_what_it_touches() {
    let mut db = Database::default();
    let id = db.add_file("main.tsr");
    let text = big(20);
    db.set_text(id, &text);
    assert_eq!(found(&check_program(&db, id)), "");
    // A mistake in one function, in a longer line, moves the rest of the file.
    let edited = text.replace("y = y + x * 3.0", "y = y + x * 3.0 + \"a\"");
    db.set_text(id, &edited);
    let checked = check_program(&db, id);
    assert_eq!(found(&checked), "E0205@22");
    db.set_text(id, &format!("# a comment above\n{text}"));
    assert_eq!(found(&check_program(&db, id)), "");
    let wrong = text.replace("x = f19(x, 5)", "x = f19(x, \"5\")");
    db.set_text(id, &wrong);
    assert_eq!(found(&check_program(&db, id)).split('@').next(), Some("E0204"));
}

#[test]
fn a_new_result_type_reaches_the_callers() {
    let mut db = Database::default();
    let id = db.add_file("main.tsr");
    db.set_text(id, "def f():\n    return 1\nx = f() + 1\n");
    assert_eq!(found(&check_program(&db, id)), "");
    db.set_text(id, "def f():\n    return \"a\"\nx = f() + 1\n");
    assert_eq!(found(&check_program(&db, id)), "E0205@3");
    db.set_text(id, "def f():\n    return 2.5\nx = f() + 1\n");
    let checked = check_program(&db, id);
    assert!(global(checked.program.as_ref().unwrap_or(&Program::default()), "x").contains("float"));
}

/// A database, and how often each query has run since this was asked last.
fn watched() -> (Database, impl Fn() -> String) {
    let ran: Arc<Mutex<BTreeMap<String, usize>>> = Arc::default();
    let told = ran.clone();
    let db = Database::watched(move |event| {
        if let salsa::EventKind::WillExecute { database_key } = event.kind {
            let text = format!("{database_key:?}");
            let name = text.split('(').next().unwrap_or_default().to_owned();
            *told.lock().unwrap_or_else(|e| e.into_inner()).entry(name).or_default() += 1;
        }
    });
    let take = move || {
        let ran = std::mem::take(&mut *ran.lock().unwrap_or_else(|e| e.into_inner()));
        ran.into_iter().map(|(name, n)| format!("{name} {n}")).collect::<Vec<_>>().join(", ")
    };
    (db, take)
}

const MAIN: &str = "\
import lib
from std import nn

def f(x: Tensor[N, f32]) -> Tensor[N, f32]:
    return x * 2.0

def g(x):
    return f(x) + 1.0

def alone(x: Tensor[N, f32]) -> Tensor[N, f32]:
    return x - 3.0

# Runs.
y = g(op.ones((4,)))
z = lib.h(y)
w = nn.double(y)
";
const LIB: &str = "def h(x):\n    return x - 1.0\n\ndef other(x):\n    return x\n";
const STD: &str = "def double(x):\n    return x * 2.0\n";

/// The queries that run when files are what they are now.
fn queries(files: &[(&'static str, String)], db: &mut Database, take: &dyn Fn() -> String) -> String {
    let loader = Memory(files.iter().map(|(p, t)| (p.to_string(), t.clone())).collect());
    let main = files.iter().find(|(path, _)| *path == "main.tsr").map_or("", |(_, text)| text);
    let checked = crate::session::check_text(db, "main.tsr", main, &loader);
    assert_eq!(found(&checked), "");
    take()
}

/// What an edit inside of a function runs: it is read, its names are resolved, it is checked; nobody else is asked.
const A_BODY: &str = "checked_inst 1";

#[test]
fn an_edit_runs_these_queries() {
    let start = [("main.tsr", MAIN), ("lib.tsr", LIB), ("std/nn.tsr", STD)].map(|(p, t)| (p, t.to_owned()));
    let edits: &[(&str, &str, &str, &str, &str)] = &[
        ("nothing", "main.tsr", "", "", ""),
        ("a body", "main.tsr", "x * 2.0", "x * 3.0", A_BODY),
        ("a body that nothing calls", "main.tsr", "x - 3.0", "x - 4.0", A_BODY),
        ("a template's body", "main.tsr", "f(x) + 1.0", "f(x) + 2.0", A_BODY),
        (
            "above a function",
            "main.tsr",
            "def f(",
            "k = 1\n\ndef f(",
            "all_reads 1, checked_main 1, import_variables 1, item_reads 3, item_scope 3, name_in_scope 3, recursive_items 1, scope 1",
        ),
        ("a comment", "main.tsr", "# Runs.", "# Runs now.", ""),
        ("a signature", "main.tsr", "def g(x):", "def g(x, more=1):", "checked_inst 1, checked_main 1"),
        ("a result", "main.tsr", "return f(x) + 1.0", "return (f(x) + 1.0).sum()", "checked_inst 3, checked_main 1"),
        ("another file", "lib.tsr", "x - 1.0", "x - 2.0", A_BODY),
        ("what nothing reads in another file", "lib.tsr", "return x\n", "return x + 1\n", "uncalled 1"),
        ("the standard library", "std/nn.tsr", "x * 2.0", "x + x", "checked_inst 1"),
    ];
    let (mut expect, mut ran) = (vec![], vec![]);
    for (what, file, from, to, expected) in edits {
        let (mut db, take) = watched();
        queries(&start, &mut db, &take);
        let mut files = start.clone();
        for (path, text) in &mut files {
            if path == file {
                *text = text.replacen(from, to, 1);
            }
        }
        expect.push(format!("{what}: {expected}"));
        ran.push(format!("{what}: {}", queries(&files, &mut db, &take)));
    }
    assert_eq!(ran, expect);
}

#[test]
fn an_edit_in_a_large_file_runs_few_queries() {
    let text = big(4000);
    let (mut db, take) = watched();
    let check = |db: &mut Database, text: &str| {
        assert_eq!(found(&crate::session::check_text_only(db, "main.tsr", text, &Memory::default())), "");
        take()
    };
    check(&mut db, &text);
    assert_eq!(check(&mut db, &text.replace("y = y + x * 2000.0", "y = y - x * 2000.0")), A_BODY);
    // A new name: every function asks what its own names are, and is not checked again.
    check(&mut db, &text);
    let queries = check(&mut db, &format!("fresh = 3\n{text}"));
    assert!(!queries.contains("checked_inst"), "{queries}");
}

/// What an edit removed is collected: a file that is edited all day has as many items, instances and memos as it shows.
#[test]
fn a_file_that_is_edited_all_day_takes_no_more_memory() {
    let made: Arc<Mutex<usize>> = Arc::default();
    let told = made.clone();
    let mut db = Database::watched(move |event| {
        if let salsa::EventKind::DidInternValue { .. } = event.kind {
            *told.lock().unwrap_or_else(|e| e.into_inner()) += 1;
        }
    });
    let edits = if cfg!(debug_assertions) { 1000 } else { 10_000 };
    let (mut items, mut keys) = (0, 0);
    for i in 0..edits {
        // Another function, another variable and another type at each edit, and every third time nothing.
        let text = match i % 3 {
            0 => String::new(),
            _ => format!("def f{i}(x, y):\n    return (x, y)\n\nv{i} = f{i}({i}, op.ones(({i}, {i})))\nprint(v{i})\n"),
        };
        let checked = crate::session::check_text_only(&mut db, "main.tsr", &text, &Memory::default());
        assert_eq!(found(&checked), "");
        if i == 100 {
            (items, keys) = (db.items.len(), *made.lock().unwrap_or_else(|e| e.into_inner()));
        }
    }
    assert_eq!(db.items.len(), items);
    let keys_now = *made.lock().unwrap_or_else(|e| e.into_inner());
    // A place is taken again only by a key of the same part of salsa's table.
    assert!(keys_now < keys + 64, "keys of instances: {keys} after 100 edits, {keys_now} after {edits}");
}
