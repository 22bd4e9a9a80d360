//! The disk cache of compiled kernels: one file per object, named by the hash of everything
//! that went into it. A file that cannot be used is rebuilt; a directory that cannot be used
//! is done without. What has not been used for the longest time goes when the bound is reached.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;
use tessera_runtime::io::replace::{self, Durability};

/// First bytes of every entry: format name and version.
const MAGIC: &[u8; 8] = b"TSRKRN02";
/// Of which the format name is so many.
const NAME: usize = 6;

/// Bytes that entries take together, unless `$TESSERA_CACHE_SIZE` says otherwise.
const BYTES_MAX: u64 = 1 << 30;

/// What one look-up found.
#[derive(PartialEq, Eq, Debug)]
pub enum Found {
    Hit(Vec<u8>),
    Miss,
    /// The entry exists and its content is not what was written under this key.
    Corrupt(PathBuf),
}

/// An entry as the directory shows it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Entry {
    /// When it was written or found last.
    pub used: SystemTime,
    pub name: String,
    pub bytes: u64,
}

pub struct DiskCache {
    dir: Option<PathBuf>,
    limit: u64,
    /// Bytes that may be written before the next look at what is there.
    room: AtomicU64,
    trimming: Mutex<()>,
    warned: AtomicBool,
}

impl DiskCache {
    /// `$TESSERA_CACHE`, else `$XDG_CACHE_HOME/tessera`, else `~/.cache/tessera`.
    pub fn default_dir() -> Option<PathBuf> {
        let from = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        from("TESSERA_CACHE")
            .or_else(|| from("XDG_CACHE_HOME").map(|d| d.join("tessera")))
            .or_else(|| from("HOME").map(|d| d.join(".cache").join("tessera")))
    }

    /// What entries may take together: `$TESSERA_CACHE_SIZE`, else 1 GiB. Or why that is no size.
    pub fn default_limit() -> Result<u64, String> {
        match std::env::var("TESSERA_CACHE_SIZE") {
            Ok(text) if !text.is_empty() => crate::cli::size(&text).map_err(|why| format!("TESSERA_CACHE_SIZE: {why}")),
            _ => Ok(BYTES_MAX),
        }
    }

    pub fn new(dir: Option<PathBuf>) -> DiskCache {
        DiskCache {
            dir,
            limit: BYTES_MAX,
            room: AtomicU64::new(0),
            trimming: Mutex::new(()),
            warned: AtomicBool::new(false),
        }
    }

    /// The same with another bound.
    pub fn bounded(self, limit: u64) -> DiskCache {
        DiskCache { limit, ..self }
    }

    pub fn dir(&self) -> Option<&Path> {
        self.dir.as_deref()
    }

    /// Bytes that entries may take together.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    fn folder(&self) -> Option<PathBuf> {
        Some(self.dir.as_ref()?.join("kernels"))
    }

    fn path(&self, key: &str) -> Option<PathBuf> {
        Some(self.folder()?.join(format!("{key}.o")))
    }

    pub fn get(&self, key: &str) -> Found {
        let Some(path) = self.path(key) else { return Found::Miss };
        let mut bytes = vec![];
        let read = std::fs::File::open(&path).and_then(|mut file| {
            file.read_to_end(&mut bytes)?;
            // One that may be read and not changed keeps its time.
            let _ = file.set_modified(SystemTime::now());
            Ok(())
        });
        if read.is_err() || is_of_other_version(&bytes) {
            return Found::Miss;
        }
        match unseal(key, &bytes) {
            Some(content) => Found::Hit(content.to_vec()),
            None => Found::Corrupt(path),
        }
    }

    /// Stores an entry atomically. Returns what went wrong the first time something does.
    pub fn put(&self, key: &str, content: &[u8]) -> Option<String> {
        let path = self.path(key)?;
        let written = (|| {
            std::fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
            replace::replace(
                &path,
                Durability::Cached,
                |e| e,
                |out| {
                    out.write_all(MAGIC)?;
                    out.write_all(seal(key, content).as_bytes())?;
                    out.write_all(content)
                },
            )
        })();
        match written {
            Ok(()) => {
                self.make_room(content.len() as u64);
                None
            }
            Err(_) if self.warned.swap(true, Ordering::Relaxed) => None,
            Err(e) => Some(format!("{}: {e}", path.display())),
        }
    }

    /// Notes that so many bytes were written, and looks after the bound from time to time: other
    /// processes write too.
    fn make_room(&self, bytes: u64) {
        let enough = |room: u64| room.checked_sub(bytes);
        if self.room.fetch_update(Ordering::Relaxed, Ordering::Relaxed, enough).is_ok() {
            return;
        }
        // One after the other: what is written while another thread looks would not be seen by it.
        let _one = self.trimming.lock().unwrap_or_else(PoisonError::into_inner);
        if self.room.fetch_update(Ordering::Relaxed, Ordering::Relaxed, enough).is_ok() {
            return;
        }
        // What cannot be listed now is looked at again.
        let total = self.trim().unwrap_or(self.limit);
        let room = (self.limit.saturating_sub(total) / 8).max(self.limit / 256);
        self.room.store(room, Ordering::Relaxed);
    }

    /// Where entries take more than they may: removes those that have not been used for the longest
    /// time, until an eighth is free. Returns what the others take.
    fn trim(&self) -> std::io::Result<u64> {
        let mut entries = self.list()?;
        let mut total: u64 = entries.iter().map(|e| e.bytes).sum();
        if total <= self.limit {
            return Ok(total);
        }
        entries.sort();
        for entry in entries {
            if total <= self.limit - self.limit / 8 {
                break;
            }
            self.remove(&entry.name)?;
            total -= entry.bytes;
        }
        Ok(total)
    }

    /// Removes an entry, or finds that another process has.
    fn remove(&self, name: &str) -> std::io::Result<()> {
        let Some(folder) = self.folder() else { return Ok(()) };
        match std::fs::remove_file(folder.join(name)) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(e),
            _ => Ok(()),
        }
    }

    /// Every entry, by name.
    pub fn list(&self) -> std::io::Result<Vec<Entry>> {
        let Some(folder) = self.folder() else { return Ok(vec![]) };
        let entries = match std::fs::read_dir(folder) {
            Ok(e) => e,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(vec![]),
            Err(e) => return Err(e),
        };
        let mut out = vec![];
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            // Another process may have removed it since.
            let Some(meta) = entry.metadata().ok().filter(|_| name.ends_with(".o")) else { continue };
            out.push(Entry { used: meta.modified()?, name, bytes: meta.len() });
        }
        out.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(out)
    }

    /// Removes every entry, and what killed processes left; returns how many entries.
    pub fn clear(&self) -> std::io::Result<usize> {
        let entries = self.list()?;
        for entry in &entries {
            self.remove(&entry.name)?;
        }
        if let Some(folder) = self.folder().filter(|f| f.exists()) {
            replace::clear(&folder)?;
        }
        Ok(entries.len())
    }
}

/// What an entry is checked by: its content and its key, so that one under another's name is not
/// taken for it.
fn seal(key: &str, content: &[u8]) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&(key.len() as u64).to_le_bytes()).update(key.as_bytes()).update(content);
    hasher.finalize()
}

/// Whether it is an entry as an earlier or later tool writes it.
fn is_of_other_version(bytes: &[u8]) -> bool {
    bytes.get(..MAGIC.len()).is_some_and(|m| m[..NAME] == MAGIC[..NAME] && m != MAGIC)
}

fn unseal<'a>(key: &str, bytes: &'a [u8]) -> Option<&'a [u8]> {
    let rest = bytes.strip_prefix(MAGIC)?;
    let (hash, content) = rest.split_at_checked(32)?;
    (seal(key, content).as_bytes() == hash).then_some(content)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn cache(dir: &Path, limit: u64) -> DiskCache {
        DiskCache::new(Some(dir.to_owned())).bounded(limit)
    }

    #[test]
    fn entries_survive_and_damage_is_noticed() -> std::io::Result<()> {
        let dir = tempfile::tempdir()?;
        let cache = cache(dir.path(), BYTES_MAX);
        assert_eq!(cache.get("k"), Found::Miss);
        assert_eq!(cache.put("k", b"code"), None);
        assert_eq!(cache.get("k"), Found::Hit(b"code".to_vec()));
        let path = dir.path().join("kernels/k.o");
        std::fs::write(&path, b"TSRKRN02 and nonsense")?;
        assert_eq!(cache.get("k"), Found::Corrupt(path.clone()));
        std::fs::write(&path, b"TSRKRN01 of a time before")?;
        assert_eq!(cache.get("k"), Found::Miss);
        assert_eq!(cache.clear()?, 1);
        Ok(())
    }

    #[test]
    fn an_entry_under_anothers_name_is_not_taken_for_it() -> std::io::Result<()> {
        let dir = tempfile::tempdir()?;
        let cache = cache(dir.path(), BYTES_MAX);
        assert_eq!((cache.put("a", b"one"), cache.put("b", b"two")), (None, None));
        let path = |key: &str| dir.path().join(format!("kernels/{key}.o"));
        std::fs::copy(path("a"), path("b"))?;
        assert_eq!((cache.get("a"), cache.get("b")), (Found::Hit(b"one".to_vec()), Found::Corrupt(path("b"))));
        Ok(())
    }

    #[test]
    fn what_was_not_used_for_the_longest_time_goes_first() -> std::io::Result<()> {
        let dir = tempfile::tempdir()?;
        let code = [7; 1000];
        let keep = cache(dir.path(), BYTES_MAX);
        for (i, key) in ["a", "b", "c", "d", "e", "f", "g", "h"].into_iter().enumerate() {
            assert_eq!(keep.put(key, &code), None);
            let file = std::fs::File::options().write(true).open(dir.path().join(format!("kernels/{key}.o")))?;
            file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(i as u64))?;
        }
        // Found, and so used just now.
        assert_eq!(keep.get("a"), Found::Hit(code.to_vec()));
        let bounded = cache(dir.path(), 8 * 1040);
        assert_eq!(bounded.put("i", &code), None);
        let left: Vec<String> = bounded.list()?.into_iter().map(|e| e.name).collect();
        assert_eq!(left, ["a.o", "d.o", "e.o", "f.o", "g.o", "h.o", "i.o"]);
        Ok(())
    }

    #[test]
    fn processes_that_write_at_once_stay_near_the_bound() -> std::io::Result<()> {
        let dir = tempfile::tempdir()?;
        let limit = 100_000;
        std::thread::scope(|scope| {
            for t in 0..4 {
                let dir = dir.path();
                scope.spawn(move || {
                    let cache = cache(dir, limit);
                    for i in 0..100 {
                        let (key, content) = (format!("{t}-{i}"), [t; 5000]);
                        assert_eq!(cache.put(&key, &content), None);
                        // Others may have pushed it out again.
                        let found = cache.get(&key);
                        assert!(found == Found::Miss || found == Found::Hit(content.to_vec()), "{found:?}");
                    }
                });
            }
        });
        let total: u64 = cache(dir.path(), limit).list()?.iter().map(|e| e.bytes).sum();
        assert!((limit / 2..limit * 3 / 2).contains(&total), "{total}");
        Ok(())
    }

    #[test]
    fn a_directory_that_cannot_be_written_is_told_once() {
        let cache = cache(Path::new("/proc/tessera-cannot-be"), BYTES_MAX);
        assert!(cache.put("k", b"code").is_some());
        assert!(cache.put("k", b"code").is_none());
    }
}
