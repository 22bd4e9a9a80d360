//! `tessera fmt`.

use crate::files::{self, NoTexts, OneText};
use crate::render::{Style, render};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Formats files in place (or standard input to standard output). Returns whether all is well:
/// every file could be read and parsed and, with `check`, is in canonical form already.
pub fn format(paths: &[PathBuf], check: bool, style: Style) -> bool {
    let mut ok = true;
    for path in paths {
        ok &= one(path, check, style);
    }
    ok
}

fn one(path: &Path, check: bool, style: Style) -> bool {
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
    if check {
        if !same {
            eprintln!("{} is not in canonical form", path.display());
        }
        return same;
    }
    if path == Path::new("-") {
        return std::io::stdout().write_all(formatted.as_bytes()).is_ok();
    }
    if same {
        return true;
    }
    match tessera_runtime::io::files::write_atomically(path, |out| {
        out.write_all(formatted.as_bytes()).map_err(|e| tessera_runtime::io::files::write_fault(path, &e))
    }) {
        Ok(()) => true,
        Err(fault) => {
            eprintln!("{}", fault.message);
            false
        }
    }
}
