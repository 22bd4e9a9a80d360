//! The files that a command line names: themselves, and those of folders.

use std::path::{Path, PathBuf};
use tessera_base::{Code, Diagnostic, Span};

/// A file to be tested.
pub struct Found {
    pub path: PathBuf,
    /// Whether it was named itself: one that was not and has nothing to test is left alone.
    pub named: bool,
}

/// The files in their order, those of a folder sorted by path; `Err` for a folder that cannot be read.
pub fn collect(paths: &[PathBuf]) -> Vec<Result<Found, Diagnostic>> {
    let mut out = vec![];
    for path in paths {
        match path.is_dir() {
            true => walk(path, &mut out),
            false => out.push(Ok(Found { path: path.clone(), named: true })),
        }
    }
    out
}

/// Whether a file holds Markdown.
pub fn is_markdown(path: &Path) -> bool {
    path.extension().is_some_and(|e| e == "md" || e == "markdown")
}

/// The programs and documents below a folder. Hidden ones are left out, and folders that links name, which may lead in a circle.
fn walk(dir: &Path, out: &mut Vec<Result<Found, Diagnostic>>) {
    let unreadable = |e: std::io::Error| {
        Diagnostic::new(Code::E0706, Span::NONE, format!("`{}` cannot be read: {e}", dir.display()))
    };
    let entries = match std::fs::read_dir(dir).and_then(Iterator::collect::<std::io::Result<Vec<_>>>) {
        Ok(entries) => entries,
        Err(e) => return out.push(Err(unreadable(e))),
    };
    let mut paths: Vec<(PathBuf, bool)> = vec![];
    for entry in entries {
        let hidden = entry.file_name().to_string_lossy().starts_with('.');
        let (path, kind) = (entry.path(), entry.file_type());
        let folder = kind.as_ref().is_ok_and(std::fs::FileType::is_dir);
        let file = || (path.extension().is_some_and(|e| e == "tsr") || is_markdown(&path)) && path.is_file();
        if !hidden && (folder || file()) {
            paths.push((path, folder));
        }
    }
    paths.sort();
    for (path, folder) in paths {
        match folder {
            true => walk(&path, out),
            false => out.push(Ok(Found { path, named: false })),
        }
    }
}
