//! Source to diagnostics and typed programs.

mod accepted;
mod errors;
mod forms;
mod incremental;
mod limits;
mod sizes;
mod typed;

use crate::db::Database;
use crate::session::{Checked, check_program};
use std::collections::BTreeMap;
use tessera_core::ir::{FnInst, Program};
use tessera_resolve::source::{Loaded, Loader};

/// Files in memory.
#[derive(Default)]
struct Memory(BTreeMap<String, String>);

impl Loader for Memory {
    fn model(&self, program: &str, path: &str) -> Result<Loaded, tessera_resolve::source::Refused> {
        tessera_resolve::source::NoFiles.model(program, path)
    }

    fn sibling(&self, _: &str, module: &str) -> Option<Loaded> {
        let path = format!("{}.tsr", module.replace('.', "/"));
        self.0.get(&path).map(|text| Loaded { path: path.as_str().into(), text: text.as_str().into() })
    }

    fn std(&self, module: &str) -> Option<Loaded> {
        let path = format!("std/{module}.tsr");
        self.0.get(&path).map(|text| Loaded { path: path.as_str().into(), text: text.as_str().into() })
    }
}

fn check_with(files: &[(&str, &str)], text: &str) -> Checked {
    let loader = Memory(files.iter().map(|(p, t)| (p.to_string(), t.to_string())).collect());
    let mut db = Database::default();
    let id = db.add_file("main.tsr");
    db.set_text(id, text);
    db.load_imports(id, &loader);
    check_program(&db, id)
}

fn check(text: &str) -> Checked {
    check_with(&[], text)
}

/// `E0204@3 E0101@5`: codes and lines.
fn found(checked: &Checked) -> String {
    let list: Vec<String> = checked
        .diagnostics
        .iter()
        .map(|d| format!("{}@{}", d.code, checked.sources.line_col(d.span).map_or(0, |(_, line, _)| line)))
        .collect();
    list.join(" ")
}

#[track_caller]
fn expect(text: &str, diagnostics: &str) {
    let checked = check(text);
    let all: Vec<String> = checked.diagnostics.iter().map(|d| format!("{} {}", d.code, d.message)).collect();
    assert_eq!(found(&checked), diagnostics, "\n{text}\n{}", all.join("\n"));
    assert_eq!(checked.program.is_some(), !checked.diagnostics.iter().any(|d| d.is_error()));
}

#[track_caller]
fn ok(text: &str) -> Program {
    let checked = check(text);
    let all: Vec<String> = checked.diagnostics.iter().map(|d| format!("{} {}", d.code, d.message)).collect();
    checked.program.unwrap_or_else(|| panic!("{text}\n{} {}", found(&check(text)), all.join("\n")))
}

/// The instances of a function.
fn insts<'p>(program: &'p Program, name: &str) -> Vec<&'p FnInst> {
    program.insts.iter().filter(|f| &*f.name == name).collect()
}

/// The type of a module variable.
fn global(program: &Program, name: &str) -> String {
    let found: Vec<String> = program.globals.iter().filter(|g| &*g.name == name).map(|g| g.ty.to_string()).collect();
    found.join(" | ")
}
