//! The programs of the repository, opened for the checker as an editor opens them.

use crate::program::root;
use std::path::PathBuf;
use tessera::files::Disk;
use tessera_base::{Diagnostic, FileId};
use tessera_infer::db::Database;

/// The examples and the standard library, in order.
pub fn programs() -> Vec<PathBuf> {
    let mut out: Vec<PathBuf> = ["examples", "std"]
        .iter()
        .flat_map(|dir| std::fs::read_dir(root().join(dir)).expect("a folder"))
        .map(|e| e.expect("an entry").path())
        .filter(|p| p.extension().is_some_and(|e| e == "tsr"))
        .collect();
    out.sort();
    out
}

/// A text as the file at `path`, with what it imports from the disk.
pub fn open(path: &str, text: &str) -> (Database, FileId) {
    let mut db = Database::default();
    let id = db.add_file(path);
    db.set_text(id, text);
    db.load_imports(id, &Disk);
    (db, id)
}

/// The errors among diagnostics, with their codes.
pub fn errors(found: &[Diagnostic]) -> Vec<String> {
    found.iter().filter(|d| d.is_error()).map(|d| format!("{} {}", d.code, d.message)).collect()
}
