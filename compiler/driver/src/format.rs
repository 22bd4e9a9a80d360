//! `tessera fmt`.

use crate::files::{self, NoTexts, OneText};
use crate::render::{Style, render};
use serde_json::json;
use std::io::Write;
use std::path::{Path, PathBuf};

/// What is done with programs in canonical form.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Then {
    Print,
    /// Into the file; what comes from standard input is printed.
    Write,
    /// Nothing: whether the file is in it already is what counts.
    Check,
}

/// Formats files. Returns whether all is well: every file could be read and parsed and, to be checked, is
/// in canonical form already.
pub fn format(paths: &[PathBuf], then: Then, style: Style) -> bool {
    let mut ok = true;
    for path in paths {
        ok &= one(path, then, style);
    }
    ok
}

fn one(path: &Path, then: Then, style: Style) -> bool {
    let mut err = std::io::stderr();
    let loaded = match files::read_source(path) {
        Ok(l) => l,
        Err(d) => {
            render(&mut err, &[d], &NoTexts, style);
            return false;
        }
    };
    let formatted = match tessera_grammar::print::format(&loaded.text) {
        Ok(text) => text,
        Err(diagnostics) => {
            render(&mut err, &diagnostics, &OneText { path: loaded.path, text: loaded.text }, style);
            return false;
        }
    };
    let same = formatted == *loaded.text;
    if style.json {
        // What comes from standard input has nowhere else to go.
        let shown = then == Then::Print || then == Then::Write && path == Path::new("-");
        let text = shown.then_some(&formatted);
        if then == Then::Write && !shown && !same && !replace(path, &formatted) {
            return false;
        }
        let said = json!({"schema": 1, "file": path.display().to_string(), "canonical": same, "text": text});
        let written = writeln!(std::io::stdout(), "{said}").is_ok();
        return written && (same || then != Then::Check);
    }
    if then == Then::Check {
        if !same {
            eprintln!("{} is not in canonical form", path.display());
        }
        return same;
    }
    if then == Then::Print || path == Path::new("-") {
        return std::io::stdout().write_all(formatted.as_bytes()).is_ok();
    }
    same || replace(path, &formatted)
}

/// Writes a file anew; says what went wrong.
fn replace(path: &Path, text: &str) -> bool {
    match tessera_runtime::io::files::write_atomically(path, |out| {
        out.write_all(text.as_bytes()).map_err(|e| tessera_runtime::io::files::write_fault(path, &e))
    }) {
        Ok(()) => true,
        Err(fault) => {
            eprintln!("{}", fault.message);
            false
        }
    }
}
