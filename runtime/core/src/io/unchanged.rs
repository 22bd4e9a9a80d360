//! Whether a file is still the one that it was.

use crate::fault::{Fault, shown};
use crate::io::sandbox;
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

    /// What is there now, where it is a regular file that can be looked at.
    pub fn at(path: &Path) -> Option<State> {
        let meta = std::fs::metadata(sandbox::written(path).as_deref().unwrap_or(path)).ok()?;
        meta.is_file().then(|| State::of(&meta))
    }
}

/// Files of which the program has read parts. Only its own thread writes here: one that reads ahead may be behind what the
/// program has written meanwhile.
static KNOWN: Mutex<BTreeMap<PathBuf, State>> = Mutex::new(BTreeMap::new());

fn known() -> MutexGuard<'static, BTreeMap<PathBuf, State>> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One path for all spellings of it and all links to it. A file that is not there yet has that of its folder.
fn key(path: &Path) -> PathBuf {
    let in_folder = || {
        let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Some(folder.canonicalize().ok()?.join(path.file_name()?))
    };
    path.canonicalize().ok().or_else(in_folder).unwrap_or_else(|| path.to_owned())
}

/// The program has written a file itself: what was known of it is no longer true.
pub fn forget(path: &Path) {
    known().remove(&key(path));
}

/// From here on parts of a file are parts of what it is now.
pub fn renew(path: &Path, state: State) {
    known().insert(key(path), state);
}

/// Whether a part of a file was read in the state of the first one, which it may be itself.
///
/// # Errors
/// E0707 where it was not.
pub fn same(path: &Path, state: State) -> Result<(), Fault> {
    if *known().entry(key(path)).or_insert(state) == state {
        return Ok(());
    }
    Err(changed(path).note("`io.count_rows(path)` begins anew with the file as it is then"))
}

/// The same before a part is read: a file that is another one by now need not be read to know that.
///
/// # Errors
/// E0707 where it is.
pub fn still_there(path: &Path) -> Result<(), Fault> {
    match State::at(path) {
        Some(state) if known().contains_key(&key(path)) => same(path, state),
        _ => Ok(()),
    }
}

/// A file that is written while it is read.
pub fn changed(path: &Path) -> Fault {
    Fault::new(707, format!("`{}` has changed while it was read", shown(path)))
        .note("what was read before and what comes now do not belong together")
}
