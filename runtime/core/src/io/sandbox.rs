//! The files of a run that is to leave none: what the program writes goes aside, into files without names
//! that end with the process, and is read from there.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What was written so far, by path.
static ASIDE: Mutex<Option<BTreeMap<PathBuf, File>>> = Mutex::new(None);

fn aside() -> MutexGuard<'static, Option<BTreeMap<PathBuf, File>>> {
    ASIDE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From here on the program's files go aside.
pub fn start() {
    aside().get_or_insert_default();
}

/// Whether they do.
pub fn is_on() -> bool {
    aside().is_some()
}

fn key(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// Where to read what the program wrote to a path.
pub fn written(path: &Path) -> Option<PathBuf> {
    let file = aside().as_ref()?.get(&key(path))?.as_raw_fd();
    Some(format!("/proc/self/fd/{file}").into())
}

/// Keeps what `write` gives as the file of a path.
pub fn write<E>(
    path: &Path,
    told: impl Fn(io::Error) -> E,
    write: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> Result<(), E> {
    let file = tempfile::tempfile().map_err(&told)?;
    let mut out = BufWriter::new(&file);
    write(&mut out)?;
    out.flush().map_err(told)?;
    drop(out);
    aside().as_mut().and_then(|all| all.insert(key(path), file));
    Ok(())
}

/// The same with more bytes at the end.
pub fn append(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let key = key(path);
    let kept = aside().as_mut().and_then(|all| all.remove(&key));
    let mut file = match kept {
        Some(file) => file,
        None => {
            let mut copy = tempfile::tempfile()?;
            match File::open(path) {
                // What a device gives has no end.
                Ok(mut old) if old.metadata()?.is_file() => drop(io::copy(&mut old, &mut copy)?),
                _ => {}
            }
            copy
        }
    };
    file.seek(SeekFrom::End(0))?;
    file.write_all(bytes)?;
    aside().as_mut().and_then(|all| all.insert(key, file));
    Ok(())
}
