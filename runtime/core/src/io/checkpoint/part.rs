//! Files of parts: safetensors with the blocks that one process writes. They lie in the folder `FILE.parts` beside the
//! file of the checkpoint, and their names say what they hold: `0-of-4-` and a hash.

use super::sums;
use crate::fault::{Fault, shown};
use crate::io::safetensors::{self, Content};
use crate::io::{files, replace};
use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

const SUFFIX: &str = ".safetensors";
/// Of the name's hash.
const DIGITS: usize = 32;

/// The folder of the parts of a checkpoint: beside the file itself, by whatever links it is named.
pub fn folder(path: &Path) -> PathBuf {
    let mut name = replace::behind_links(path).into_os_string();
    name.push(".parts");
    name.into()
}

/// The name of the file of process `rank` of `size`.
pub fn name(rank: usize, size: usize, hash: &str) -> String {
    format!("{rank}-of-{size}-{hash}{SUFFIX}")
}

/// The hash in a name; `None` for what is no name of a part.
fn hash_in(name: &str) -> Option<&str> {
    let mut words = name.strip_suffix(SUFFIX)?.splitn(4, '-');
    let number = |text: Option<&str>| text.is_some_and(|t| !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit()));
    let (rank, of, size, hash) = (words.next(), words.next(), words.next(), words.next()?);
    let hex = hash.len() == DIGITS && hash.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    (number(rank) && of == Some("of") && number(size) && hex).then_some(hash)
}

/// Makes the folder of parts, where there is none. The one around it has to be there, as for any file.
pub fn prepare(path: &Path) -> Result<(), Fault> {
    let folder = folder(path);
    let made = match std::fs::create_dir(&folder) {
        // Another process was faster, or there was a checkpoint before.
        Err(_) if folder.is_dir() => Ok(()),
        Err(e) if e.kind() == ErrorKind::AlreadyExists => Err(ErrorKind::NotADirectory.into()),
        made => made,
    };
    made.and_then(|()| replace::try_new(&folder)).map_err(|e| files::write_fault(&folder, &e))
}

/// Says that the parts of a checkpoint are being written, as long as the file is open. Without it, who writes the same one
/// removes them before they are named.
///
/// # Errors
/// E0706 where another program says so.
pub fn claim(path: &Path) -> Result<Option<File>, Fault> {
    let folder = folder(path);
    // One that may be written and not read cannot be opened, and some file systems know no locks.
    let Ok(file) = File::open(&folder) else { return Ok(None) };
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => {
            Err(Fault::new(706, format!("`{}` cannot be written: another program is saving it", shown(path)))
                .note("programs that run at the same time need names of their own for what they save"))
        }
        _ => Ok(Some(file)),
    }
}

/// Writes what a process has of a checkpoint; the hash for its name.
pub fn write(path: &Path, rank: usize, size: usize, mut content: Content) -> Result<String, Fault> {
    let hash = sums::add(&mut content)?;
    safetensors::write_here(&folder(path).join(name(rank, size, &hash)), &content)?;
    Ok(hash)
}

/// Reads a file of parts. Its name has to be that of its content.
pub fn read(path: &Path, name: &str) -> Result<Content, Fault> {
    let bad = |why: String| Fault::new(707, why).note(format!("`{}` cannot be used without it", shown(path)));
    let Some(hash) = hash_in(name) else { return Err(bad(format!("`{}` is no part of a checkpoint", shown(name)))) };
    let file = folder(path).join(name);
    if !file.exists() {
        let text = format!("`{}`, a part of the checkpoint, is not there", shown(&file));
        return Err(bad(text).note(
            "a checkpoint of several processes is a file and the folder of its parts: all of them have to be moved",
        ));
    }
    let content = safetensors::read(&file)?;
    match sums::hash(&content) {
        Some(found) if found == hash => Ok(content),
        _ => Err(bad(format!(
            "`{}` does not hold what its name says: it was changed, or is of another run",
            shown(&file)
        ))),
    }
}

/// Removes the files of parts that a checkpoint does not name, and the folder where none is left.
pub fn clear(path: &Path, named: &[String]) {
    let folder = folder(path);
    let Ok(entries) = std::fs::read_dir(&folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let stale = name.to_str().is_some_and(|n| hash_in(n).is_some() && !named.iter().any(|m| m == n));
        if stale {
            // What cannot be removed is in nobody's way.
            let _ = std::fs::remove_file(entry.path());
        }
    }
    let _ = replace::clear(&folder);
    if named.is_empty() {
        let _ = std::fs::remove_dir(&folder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_parts_are_told_from_other_files() {
        let hash = "0123456789abcdef0123456789abcdef";
        assert_eq!(hash_in(&name(3, 16, hash)), Some(hash));
        for other in ["", "model.safetensors", "0-of-2-../../x.safetensors", "0-of-2-.safetensors", "a-of-2-", "0-of"] {
            assert_eq!(hash_in(other), None, "{other}");
        }
        for cut in 0..name(0, 2, hash).len() {
            assert_eq!(hash_in(&name(0, 2, hash)[..cut]), None);
        }
    }
}
