//! Files that are written as a whole. The new content goes into a file without a name, which a killed
//! process does not leave behind, reaches the disk, and takes the place of the old one at once. Where
//! a file system has no such files, it gets a passing name until then, which the next write in that folder
//! clears away. What is no regular file (a device, a FIFO) is written through.

use std::collections::BTreeSet;
use std::fs::{File, Metadata, OpenOptions, Permissions};
use std::io::{self, BufWriter, Seek, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use tempfile::TempPath;

/// Passing names are this and [`RANDOM`] letters and digits.
const PREFIX: &str = ".tessera-";
const RANDOM: usize = 6;

/// Links that are followed from one path, as the system does.
const LINKS_MAX: usize = 40;

/// The mode of a new file, less what the umask takes.
const MODE: u32 = 0o666;

/// Passing names of files being written: removed when the process is interrupted.
static PENDING: Mutex<Vec<PathBuf>> = Mutex::new(vec![]);

/// Folders that this process has cleared of what killed ones left.
static CLEARED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// What a write promises beyond that nobody ever sees a part of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Durability {
    /// When it is done, the content is on the disk.
    OnDisk,
    /// For what can be made again: a failure of power may leave the file damaged, so readers check it.
    Cached,
}

/// Where a path leads.
enum Destination {
    /// To something that bytes flow into; there is nothing to replace.
    Stream(PathBuf),
    /// To what this process has open under a number.
    Open(i32),
    /// To a regular file, or to none yet, behind all links.
    Regular(PathBuf, Option<Metadata>),
}

/// Writes what `write` gives to `path`, through links. A regular file is replaced at once when all of
/// the new one is there, and keeps its mode and its owner. `told` makes an error of the system
/// one of the caller.
pub fn replace<E>(
    path: &Path,
    lasting: Durability,
    told: impl Fn(io::Error) -> E,
    write: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> Result<(), E> {
    let stream = match destination(path).map_err(&told)? {
        Destination::Stream(path) => open(&path),
        Destination::Open(number) => same(number),
        Destination::Regular(path, old) => {
            // What may not be written is not replaced either.
            old.as_ref().map_or(Ok(()), |_| open(&path).map(drop)).map_err(&told)?;
            let dir = folder(&path);
            clear_once(dir);
            let mut fresh = Fresh::in_folder(dir).map_err(&told)?;
            buffered(&fresh.file, &told, write)?;
            return fresh.take_place(&path, old.as_ref(), lasting).map_err(told);
        }
    };
    buffered(&stream.map_err(&told)?, &told, write)
}

/// Whether a file can be written at a path, as far as that is known before.
pub fn try_at(path: &Path) -> io::Result<()> {
    match destination(path)? {
        Destination::Regular(path, Some(_)) => open(&path).and_then(|_| try_new(folder(&path))),
        Destination::Regular(path, None) => try_new(folder(&path)),
        Destination::Stream(_) | Destination::Open(_) => Ok(()),
    }
}

/// Whether a new file can be made in a folder.
pub fn try_new(dir: &Path) -> io::Result<()> {
    Fresh::in_folder(dir).map(drop)
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).open(path)
}

fn buffered<E>(
    file: &File,
    told: impl Fn(io::Error) -> E,
    write: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> Result<(), E> {
    let mut out = BufWriter::with_capacity(1 << 20, file);
    write(&mut out)?;
    out.flush().map_err(told)
}

/// Writes at the end of a file, or the first bytes of a new one.
pub fn append(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = match destination(path)? {
        Destination::Open(number) => same(number)?,
        Destination::Stream(path) | Destination::Regular(path, _) => {
            OpenOptions::new().append(true).create(true).open(path)?
        }
    };
    file.write_all(bytes)
}

/// Whether bytes that are written to the path flow on, in the order of all writes: a terminal, a pipe,
/// a device, or what the process has open.
pub fn is_stream(path: &Path) -> bool {
    matches!(destination(path), Ok(Destination::Stream(_) | Destination::Open(_)))
}

/// The file that a path leads to, behind all links; the path itself where it leads to none.
pub fn behind_links(path: &Path) -> PathBuf {
    match destination(path) {
        Ok(Destination::Regular(path, _)) => path,
        _ => path.to_owned(),
    }
}

/// Removes every half-written file. For the interrupt handler, just before the process ends.
pub fn remove_pending() {
    if let Ok(pending) = PENDING.lock() {
        for path in pending.iter() {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Removes the files of passing names in a folder that are this user's and whose writer is gone: a
/// writer holds a lock. Returns how many.
pub fn clear(dir: &Path) -> io::Result<usize> {
    // SAFETY: asks for a number, and cannot fail.
    let own = unsafe { libc::geteuid() };
    let mut removed = 0;
    for entry in std::fs::read_dir(dir)?.flatten() {
        let name = entry.file_name();
        let random = name.to_str().and_then(|n| n.strip_prefix(PREFIX));
        if !random.is_some_and(|r| r.len() == RANDOM && r.bytes().all(|b| b.is_ascii_alphanumeric())) {
            continue;
        }
        if !entry.metadata().is_ok_and(|m| m.is_file() && m.uid() == own) {
            continue;
        }
        let path = entry.path();
        let file = OpenOptions::new().read(true).write(true).open(&path);
        if file.is_ok_and(|f| f.try_lock().is_ok() && std::fs::remove_file(&path).is_ok()) {
            removed += 1;
        }
    }
    Ok(removed)
}

/// The same, once for each folder: a loop of writes does not look through it each time.
fn clear_once(dir: &Path) {
    let first = CLEARED.lock().is_ok_and(|mut cleared| cleared.insert(dir.to_owned()));
    if first {
        // A folder that may be written and not read is left as it is.
        let _ = clear(dir);
    }
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn destination(path: &Path) -> io::Result<Destination> {
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        match std::fs::symlink_metadata(&path) {
            Ok(m) if m.is_symlink() => {}
            Ok(m) if m.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Ok(m) if m.is_file() => return Ok(Destination::Regular(path, Some(m))),
            Ok(_) => return Ok(Destination::Stream(path)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Destination::Regular(path, None)),
            Err(e) => return Err(e),
        }
        if let Some(number) = descriptor(&path) {
            return Ok(Destination::Open(number));
        }
        path = folder(&path).join(std::fs::read_link(&path)?);
    }
    Err(io::Error::from_raw_os_error(libc::ELOOP))
}

/// The number of the open file that a link of the system stands for (`/dev/stdout` leads to one).
fn descriptor(link: &Path) -> Option<i32> {
    let own = std::fs::canonicalize("/proc/self/fd").ok()?;
    if std::fs::canonicalize(folder(link)).ok()? != own {
        return None;
    }
    link.file_name()?.to_str()?.parse().ok()
}

/// An open file of this process once more, at the same position: opened by its path, it would begin anew.
fn same(number: i32) -> io::Result<File> {
    // SAFETY: the call takes numbers alone, and fails for one that is not open.
    let copy = unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 0) };
    if copy < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: just made, and no one else has it.
    Ok(unsafe { File::from_raw_fd(copy) })
}

/// A file that has no place yet.
struct Fresh {
    file: File,
    /// `None` for one without a name.
    name: Option<Named>,
}

/// A passing name, which goes with it.
struct Named(TempPath);

impl Named {
    fn new(path: TempPath) -> Named {
        if let Ok(mut pending) = PENDING.lock() {
            pending.push(path.to_path_buf());
        }
        Named(path)
    }

    fn become_file(mut self, path: &Path) -> io::Result<()> {
        std::fs::rename(&self.0, path)?;
        self.0.disable_cleanup(true);
        Ok(())
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        if let Ok(mut pending) = PENDING.lock() {
            pending.retain(|p| **p != *self.0);
        }
    }
}

impl Fresh {
    fn in_folder(dir: &Path) -> io::Result<Fresh> {
        let nameless = OpenOptions::new().read(true).write(true).custom_flags(libc::O_TMPFILE).mode(MODE).open(dir);
        match nameless {
            Ok(file) if Path::new("/proc/self/fd").is_dir() => {
                let _ = file.try_lock();
                Ok(Fresh { file, name: None })
            }
            _ => Fresh::with_name(dir),
        }
    }

    /// A file with a passing name and a lock that tells others that it is in use.
    fn with_name(dir: &Path) -> io::Result<Fresh> {
        loop {
            let made = names().permissions(Permissions::from_mode(MODE)).tempfile_in(dir)?;
            let (file, path) = made.into_parts();
            let name = Some(Named::new(path));
            // Between making and locking it, another process may have taken it for a dead one's. A file
            // system without locks gives an error, to that process too.
            if file.lock().is_err() || file.metadata()?.nlink() > 0 {
                return Ok(Fresh { file, name });
            }
        }
    }

    /// Makes it the file at `path`.
    fn take_place(&mut self, path: &Path, old: Option<&Metadata>, lasting: Durability) -> io::Result<()> {
        if let Some(old) = old {
            // Only the superuser may give a file away; others keep what they wrote.
            let own = self.file.metadata()?;
            if (own.uid(), own.gid()) != (old.uid(), old.gid()) {
                let _ = fchown(&self.file, Some(old.uid()), Some(old.gid()));
            }
            let _ = self.file.set_permissions(Permissions::from_mode(old.mode() & 0o777));
        }
        if lasting == Durability::OnDisk {
            self.file.sync_all()?;
        }
        let dir = folder(path);
        let named = match self.name.take() {
            Some(named) => named,
            None => self.named(dir, lasting)?,
        };
        named.become_file(path)?;
        if lasting == Durability::OnDisk { sync_folder(dir) } else { Ok(()) }
    }

    /// Gives a passing name to a file without one: a name that is taken can only be replaced by another.
    fn named(&mut self, dir: &Path, lasting: Durability) -> io::Result<Named> {
        let link = |path: &Path| link(&self.file, path);
        if let Ok(linked) = names().make_in(dir, link) {
            return Ok(Named::new(linked.into_temp_path()));
        }
        // A system may refuse to give names.
        let mut copy = Fresh::with_name(dir)?;
        self.file.rewind()?;
        io::copy(&mut self.file, &mut copy.file)?;
        copy.file.set_permissions(self.file.metadata()?.permissions())?;
        if lasting == Durability::OnDisk {
            copy.file.sync_all()?;
        }
        self.file = copy.file;
        copy.name.ok_or_else(|| io::ErrorKind::Unsupported.into())
    }
}

fn names() -> tempfile::Builder<'static, 'static> {
    let mut names = tempfile::Builder::new();
    names.prefix(PREFIX).rand_bytes(RANDOM);
    names
}

fn link(file: &File, path: &Path) -> io::Result<()> {
    let terminated = |bytes: &[u8]| std::ffi::CString::new(bytes).map_err(io::Error::from);
    let from = terminated(format!("/proc/self/fd/{}", file.as_raw_fd()).as_bytes())?;
    let to = terminated(path.as_os_str().as_bytes())?;
    // SAFETY: two texts that end with a zero byte and outlive the call.
    let done =
        unsafe { libc::linkat(libc::AT_FDCWD, from.as_ptr(), libc::AT_FDCWD, to.as_ptr(), libc::AT_SYMLINK_FOLLOW) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Brings the names in a folder to the disk.
fn sync_folder(dir: &Path) -> io::Result<()> {
    // One that may be written and not read cannot be opened, and some file systems know no such thing.
    let Ok(folder) = File::open(dir) else { return Ok(()) };
    match folder.sync_all() {
        Err(e) if !matches!(e.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => Err(e),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
