//! The disk cache of compiled kernels: one file per object, named by the hash of everything
//! that went into it. A file that cannot be used is rebuilt; a directory that cannot be used
//! is done without.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// First bytes of every entry: format name and version.
const MAGIC: &[u8; 8] = b"TSRKRN01";

/// What one look-up found.
#[derive(PartialEq, Eq, Debug)]
pub enum Found {
    Hit(Vec<u8>),
    Miss,
    /// The entry exists and its content is not what was written.
    Corrupt(PathBuf),
}

pub struct DiskCache {
    dir: Option<PathBuf>,
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

    pub fn new(dir: Option<PathBuf>) -> DiskCache {
        DiskCache { dir, warned: AtomicBool::new(false) }
    }

    pub fn dir(&self) -> Option<&Path> {
        self.dir.as_deref()
    }

    fn path(&self, key: &str) -> Option<PathBuf> {
        Some(self.dir.as_ref()?.join("kernels").join(format!("{key}.o")))
    }

    pub fn get(&self, key: &str) -> Found {
        let Some(path) = self.path(key) else { return Found::Miss };
        let Ok(bytes) = std::fs::read(&path) else { return Found::Miss };
        match unseal(&bytes) {
            Some(content) => Found::Hit(content.to_vec()),
            None => Found::Corrupt(path),
        }
    }

    /// Stores an entry atomically. Returns what went wrong the first time something does.
    pub fn put(&self, key: &str, content: &[u8]) -> Option<String> {
        let path = self.path(key)?;
        let written = (|| {
            let dir = path.parent().unwrap_or(Path::new("."));
            std::fs::create_dir_all(dir)?;
            let mut file = tempfile::Builder::new().prefix(".new").tempfile_in(dir)?;
            file.write_all(MAGIC)?;
            file.write_all(blake3::hash(content).as_bytes())?;
            file.write_all(content)?;
            file.persist(&path).map_err(|e| e.error)?;
            Ok::<(), std::io::Error>(())
        })();
        match written {
            Ok(()) => None,
            Err(_) if self.warned.swap(true, Ordering::Relaxed) => None,
            Err(e) => Some(format!("{}: {e}", path.display())),
        }
    }

    /// Every entry with its size, by name.
    pub fn list(&self) -> std::io::Result<Vec<(String, u64)>> {
        let Some(dir) = &self.dir else { return Ok(vec![]) };
        let entries = match std::fs::read_dir(dir.join("kernels")) {
            Ok(e) => e,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(vec![]),
            Err(e) => return Err(e),
        };
        let mut out = vec![];
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.ends_with(".o") {
                out.push((name, entry.metadata()?.len()));
            }
        }
        out.sort();
        Ok(out)
    }

    /// Removes every entry; returns how many.
    pub fn clear(&self) -> std::io::Result<usize> {
        let entries = self.list()?;
        if let Some(dir) = &self.dir {
            for (name, _) in &entries {
                std::fs::remove_file(dir.join("kernels").join(name))?;
            }
        }
        Ok(entries.len())
    }
}

fn unseal(bytes: &[u8]) -> Option<&[u8]> {
    let rest = bytes.strip_prefix(MAGIC)?;
    let (hash, content) = rest.split_at_checked(32)?;
    (blake3::hash(content).as_bytes() == hash).then_some(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_survive_and_damage_is_noticed() -> std::io::Result<()> {
        let dir = tempfile::tempdir()?;
        let cache = DiskCache::new(Some(dir.path().to_owned()));
        assert_eq!(cache.get("k"), Found::Miss);
        assert_eq!(cache.put("k", b"code"), None);
        assert_eq!(cache.get("k"), Found::Hit(b"code".to_vec()));
        let path = dir.path().join("kernels/k.o");
        std::fs::write(&path, b"TSRKRN01 and nonsense")?;
        assert_eq!(cache.get("k"), Found::Corrupt(path));
        assert_eq!(cache.clear()?, 1);
        Ok(())
    }

    #[test]
    fn a_directory_that_cannot_be_written_is_told_once() {
        let cache = DiskCache::new(Some("/proc/tessera-cannot-be".into()));
        assert!(cache.put("k", b"code").is_some());
        assert!(cache.put("k", b"code").is_none());
    }
}
