//! Opening, reading and atomically replacing files.

use crate::fault::Fault;
use crate::outline;
use crate::world;
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Files being written: removed when the process is interrupted.
static PENDING: Mutex<Vec<PathBuf>> = Mutex::new(vec![]);

/// Removes every half-written file. For the interrupt handler, just before the process ends.
pub fn remove_pending() {
    if let Ok(pending) = PENDING.lock() {
        for path in pending.iter() {
            let _ = std::fs::remove_file(path);
        }
    }
}

fn fault(verb: &str, path: &Path, e: &std::io::Error) -> Fault {
    let why = match e.kind() {
        std::io::ErrorKind::NotFound => "there is no such file or directory".to_owned(),
        std::io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        std::io::ErrorKind::StorageFull => "the disk is full".to_owned(),
        std::io::ErrorKind::IsADirectory => "it is a directory".to_owned(),
        _ => e.to_string(),
    };
    let mut f = Fault::new(706, format!("`{}` cannot be {verb}: {why}", path.display()));
    if e.kind() == std::io::ErrorKind::NotFound && path.is_relative() {
        if let Ok(dir) = std::env::current_dir() {
            f = f.note(format!("relative paths start at {}", dir.display()));
        }
        if let Some(near) = near_file(path) {
            f = f.note(format!("did you mean `{}`?", near.display()));
        }
    }
    f
}

/// A file beside the missing one whose name is close.
fn near_file(path: &Path) -> Option<PathBuf> {
    let dir = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut names: Vec<String> = std::fs::read_dir(dir)
        .ok()?
        .flatten()
        .take(10_000)
        .map(|e| e.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    let name = path.file_name()?.to_string_lossy().into_owned();
    let near = tessera_base::near::nearest(&name, names.iter().map(String::as_str))?;
    Some(path.with_file_name(near))
}

/// Opens a file and tells its length.
pub fn open(path: &Path) -> Result<(BufReader<File>, u64), Fault> {
    let file = File::open(path).map_err(|e| fault("read", path, &e))?;
    let meta = file.metadata().map_err(|e| fault("read", path, &e))?;
    if meta.is_dir() {
        return Err(fault("read", path, &std::io::ErrorKind::IsADirectory.into()));
    }
    Ok((BufReader::with_capacity(1 << 20, file), meta.len()))
}

/// Whether these are the first bytes of a file.
pub fn begins_with(path: &Path, magic: &[u8]) -> Result<bool, Fault> {
    let (reader, _) = open(path)?;
    let mut first = vec![];
    reader.take(magic.len() as u64).read_to_end(&mut first).map_err(|e| fault("read", path, &e))?;
    Ok(first == magic)
}

/// The whole file as it is.
pub fn read_raw(path: &Path) -> Result<Vec<u8>, Fault> {
    let (mut reader, len) = open(path)?;
    if len > crate::tensor::memory_limit() {
        return Err(crate::tensor::OutOfMemory { bytes: len }.into());
    }
    let mut bytes = Vec::with_capacity(len as usize);
    reader.read_to_end(&mut bytes).map_err(|e| fault("read", path, &e))?;
    Ok(bytes)
}

/// The whole file, unpacked when it is gzip (by its first bytes, not by its name).
pub fn read_all(path: &Path) -> Result<Vec<u8>, Fault> {
    let bytes = read_raw(path)?;
    if bytes.starts_with(&[0x1f, 0x8b]) {
        let mut out = vec![];
        let limit = crate::tensor::memory_limit();
        flate2::read::MultiGzDecoder::new(&bytes[..])
            .take(limit)
            .read_to_end(&mut out)
            .map_err(|e| Fault::new(707, format!("`{}` is damaged gzip data: {e}", path.display())))?;
        return Ok(out);
    }
    Ok(bytes)
}

/// A text file; anything but UTF-8 is refused.
pub fn read_text(path: &Path) -> Result<String, Fault> {
    let bytes = read_all(path)?;
    String::from_utf8(bytes).map_err(|e| {
        let at = e.utf8_error().valid_up_to();
        Fault::new(707, format!("`{}` is not UTF-8 text: byte {at} is not part of a character", path.display()))
    })
}

/// Writes a file as a whole: the old content stays until the new one is complete. Of several
/// processes the first one writes it.
pub fn write_atomically(path: &Path, write: impl FnOnce(&mut dyn Write) -> Result<(), Fault>) -> Result<(), Fault> {
    if outline::is_on() {
        return Ok(());
    }
    match world::world() {
        None => replace(path, write),
        Some(w) => w.once(&path.to_string_lossy(), || replace(path, write)),
    }
}

fn replace(path: &Path, write: impl FnOnce(&mut dyn Write) -> Result<(), Fault>) -> Result<(), Fault> {
    let dir = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let temp = tempfile::Builder::new().prefix(".tessera-").tempfile_in(dir).map_err(|e| fault("written", path, &e))?;
    let temp_path = temp.path().to_owned();
    if let Ok(mut pending) = PENDING.lock() {
        pending.push(temp_path.clone());
    }
    let result = (|| {
        let mut out = BufWriter::with_capacity(1 << 20, temp.as_file());
        write(&mut out)?;
        out.flush().map_err(|e| fault("written", path, &e))?;
        drop(out);
        // A temporary file is private; the result has the usual permissions.
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = std::fs::metadata(path).map_or(0o644, |m| m.permissions().mode());
            let _ = temp.as_file().set_permissions(std::fs::Permissions::from_mode(mode));
        }
        temp.persist(path).map_err(|e| fault("written", path, &e.error))?;
        Ok(())
    })();
    if let Ok(mut pending) = PENDING.lock() {
        pending.retain(|p| *p != temp_path);
    }
    result
}

/// An error while writing, told with the path.
pub fn write_fault(path: &Path, e: &std::io::Error) -> Fault {
    fault("written", path, e)
}

/// An error while reading, told with the path.
pub fn read_fault(path: &Path, e: &std::io::Error) -> Fault {
    fault("read", path, e)
}
