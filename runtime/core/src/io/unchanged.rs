//! Whether a file is still the one that it was.

use crate::fault::{Fault, shown};
use std::collections::BTreeMap;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What tells one state of a file from another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct State([i64; 5]);

impl State {
    pub fn of(meta: &Metadata) -> State {
        State([meta.dev() as i64, meta.ino() as i64, meta.len() as i64, meta.mtime(), meta.mtime_nsec()])
    }
}

/// Files of which parts were read.
static KNOWN: Mutex<BTreeMap<PathBuf, State>> = Mutex::new(BTreeMap::new());

fn known() -> MutexGuard<'static, BTreeMap<PathBuf, State>> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The program has written a file itself: what was known of it is no longer true.
pub fn forget(path: &Path) {
    known().remove(path);
}

/// From here on parts of a file are parts of what it is now.
pub fn renew(path: &Path, meta: &Metadata) {
    known().insert(path.to_owned(), State::of(meta));
}

/// Whether a file is still what it was when its first part was read.
///
/// # Errors
/// E0707 where it is not.
pub fn unchanged(path: &Path, meta: &Metadata) -> Result<(), Fault> {
    let state = State::of(meta);
    if *known().entry(path.to_owned()).or_insert(state) == state {
        return Ok(());
    }
    Err(changed(path).note("`io.count_rows(path)` begins anew with the file as it is then"))
}

/// A file that is written while it is read.
pub fn changed(path: &Path) -> Fault {
    Fault::new(707, format!("`{}` has changed while it was read", shown(path)))
        .note("what was read before and what comes now do not belong together")
}
