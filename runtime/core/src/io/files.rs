//! Opening, reading and atomically replacing files.

use super::replace::{self, Durability, replace};
use super::{sandbox, unchanged};
use crate::dry_run;
use crate::fault::{Fault, allowed_memory, human_bytes, shown};
use crate::pending_save;
use crate::tensor::memory_limit;
use crate::world;
use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::{BufReader, Read, Write};
use std::path::{Path, PathBuf};

fn fault(verb: &str, path: &Path, e: &std::io::Error) -> Fault {
    let why = match e.kind() {
        std::io::ErrorKind::NotFound => "there is no such file or directory".to_owned(),
        std::io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        std::io::ErrorKind::StorageFull => "the disk is full".to_owned(),
        std::io::ErrorKind::IsADirectory => "it is a directory".to_owned(),
        std::io::ErrorKind::NotADirectory => "a file is where a directory has to be".to_owned(),
        std::io::ErrorKind::FileTooLarge => "a file may not become so large here (`ulimit -f`)".to_owned(),
        _ => e.to_string(),
    };
    let mut f = Fault::new(706, format!("`{}` cannot be {verb}: {why}", shown(path)));
    if e.kind() == std::io::ErrorKind::NotFound && path.is_relative() {
        if let Ok(dir) = std::env::current_dir() {
            f = f.note(format!("relative paths start at {}", shown(&dir)));
        }
        if let Some(near) = near_file(path) {
            f = f.note(format!("did you mean `{}`?", shown(&near)));
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
    pending_save::finish()?;
    let file = File::open(sandbox::written(path).as_deref().unwrap_or(path)).map_err(|e| fault("read", path, &e))?;
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
    let before = reader.get_ref().metadata();
    let limit = memory_limit();
    if len > limit {
        return Err(too_large(path, "holds", len));
    }
    let mut bytes = Vec::with_capacity(len as usize);
    // A pipe or a device has no length, and may have no end.
    let whole = fill(&mut reader, limit, &mut bytes).map_err(|e| fault("read", path, &e))?;
    if let (Ok(before), Ok(after)) = (before, reader.get_ref().metadata()) {
        let written = before.len() != after.len() || before.modified().ok() != after.modified().ok();
        if before.is_file() && written {
            return Err(unchanged::changed(path));
        }
    }
    if whole { Ok(bytes) } else { Err(too_large(path, "holds more than", limit)) }
}

/// The whole file, unpacked when it is gzip (by its first bytes, not by its name).
pub fn read_all(path: &Path) -> Result<Vec<u8>, Fault> {
    let bytes = read_raw(path)?;
    if bytes.starts_with(&[0x1f, 0x8b]) { unpacked(&bytes, memory_limit(), path) } else { Ok(bytes) }
}

/// What gzip data stands for, of at most `limit` bytes.
fn unpacked(bytes: &[u8], limit: u64, path: &Path) -> Result<Vec<u8>, Fault> {
    let damaged = |e| Fault::new(707, format!("`{}` is damaged gzip data: {e}", shown(path)));
    let mut reader = MultiGzDecoder::new(bytes);
    let mut out = vec![];
    if fill(&mut reader, limit, &mut out).map_err(damaged)? {
        return Ok(out);
    }
    drop(out);
    let rest = std::io::copy(&mut reader, &mut std::io::sink()).map_err(damaged)?;
    Err(too_large(path, "unpacks to", limit + 1 + rest))
}

/// Reads up to the end, and one byte above `limit` at most; whether it came to the end.
fn fill(reader: &mut impl Read, limit: u64, out: &mut Vec<u8>) -> std::io::Result<bool> {
    Ok(reader.take(limit.saturating_add(1)).read_to_end(out)? as u64 <= limit)
}

/// An error of a file that takes more memory than can be had.
pub fn too_large(path: &Path, verb: &str, bytes: u64) -> Fault {
    let size = human_bytes(bytes);
    Fault::new(710, format!("`{}` {verb} {size} ({bytes} bytes), which is more memory than can be had", shown(path)))
        .note(allowed_memory())
}

/// A text file; anything but UTF-8 is refused.
pub fn read_text(path: &Path) -> Result<String, Fault> {
    let bytes = read_all(path)?;
    String::from_utf8(bytes).map_err(|e| {
        let at = e.utf8_error().valid_up_to();
        Fault::new(707, format!("`{}` is not UTF-8 text: byte {at} is not part of a character", shown(path)))
    })
}

/// Writes a file as a whole: the old content stays until the new one is complete and on the disk. Links are
/// followed; devices and FIFOs are written through. Of several processes the first one writes it.
pub fn write_atomically(path: &Path, write: impl FnOnce(&mut dyn Write) -> Result<(), Fault>) -> Result<(), Fault> {
    if dry_run::is_on() {
        return Ok(());
    }
    pending_save::finish()?;
    unchanged::forget(path);
    if sandbox::is_on() {
        return sandbox::write(path, |e| write_fault(path, &e), write);
    }
    let replace = || replace(path, Durability::OnDisk, |e| write_fault(path, &e), write);
    match world::world() {
        None => replace(),
        Some(w) => w.once(&path.to_string_lossy(), replace),
    }
}

/// Adds to the end of a file, which is made where there is none. Of several processes the first one does.
pub fn append(path: &Path, text: &str) -> Result<(), Fault> {
    pending_save::finish()?;
    unchanged::forget(path);
    let append = || {
        let append = if sandbox::is_on() { sandbox::append } else { replace::append };
        append(path, text.as_bytes()).map_err(|e| write_fault(path, &e))
    };
    match world::world() {
        None => append(),
        Some(w) => w.once(&path.to_string_lossy(), append),
    }
}

/// Whether there is a file.
pub fn exists(path: &Path) -> bool {
    sandbox::written(path).is_some() || path.exists()
}

/// An error while writing, told with the path.
pub fn write_fault(path: &Path, e: &std::io::Error) -> Fault {
    fault("written", path, e)
}

/// An error while reading, told with the path.
pub fn read_fault(path: &Path, e: &std::io::Error) -> Fault {
    fault("read", path, e)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_data_is_unpacked_whole_or_refused_with_its_size() -> std::io::Result<()> {
        let text = "1,2\n3,4\n".repeat(1000);
        let mut packed = flate2::write::GzEncoder::new(vec![], flate2::Compression::default());
        packed.write_all(text.as_bytes())?;
        let packed = packed.finish()?;
        let path = Path::new("t.csv.gz");
        assert_eq!(unpacked(&packed, 8000, path), Ok(text.into_bytes()));
        for limit in [0, 1, 7999] {
            let told = unpacked(&packed, limit, path).err().map(|f| (f.code, f.message));
            let message = "`t.csv.gz` unpacks to 7.8 KiB (8000 bytes), which is more memory than can be had";
            assert_eq!(told, Some((710, message.to_owned())), "{limit}");
        }
        let told = unpacked(&packed[..packed.len() - 1], 8000, path).err().map(|f| f.code);
        assert_eq!(told, Some(707));
        Ok(())
    }
}
