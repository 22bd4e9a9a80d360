//! Files that are read before the program asks for them: it says which file follows which, and when it has read one, the next is
//! read in the same way on a thread. What it gets when it asks is what it would read then: a file that has been written
//! meanwhile, or could not be read, is read anew. Values may also be kept for the next epoch, within so many bytes.

use crate::fault::Fault;
use crate::host_value::{HostKey, HostValue};
use crate::io::table;
use crate::io::unchanged::State;
use crate::memory::has_room;
use crate::pending_save;
use crate::tensor::Tensor;
use std::any::Any;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};

/// Files whose followers are known, and files that are read ahead: those of a few streams at once.
const STREAMS: usize = 4;

/// A part of a file that is read: the whole, or a table from a row on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Section {
    pub path: PathBuf,
    pub first: u64,
}

/// What a file is read as.
pub trait Content: Clone + Send + Sync + 'static {
    /// About how many bytes it takes.
    fn bytes(&self) -> u64;
}

impl Content for Tensor {
    fn bytes(&self) -> u64 {
        Tensor::bytes(self).len() as u64
    }
}

impl Content for table::Table {
    fn bytes(&self) -> u64 {
        self.columns.bytes()
    }
}

impl Content for HostValue {
    fn bytes(&self) -> u64 {
        let parts: u64 = match self {
            HostValue::Str(text) => text.len() as u64,
            HostValue::Tensor(t) => Content::bytes(t),
            HostValue::List(items) | HostValue::Record(items) => items.iter().map(Content::bytes).sum(),
            HostValue::Dict(entries) => entries.iter().map(|(_, v)| size_of::<HostKey>() as u64 + v.bytes()).sum(),
            _ => 0,
        };
        parts + size_of::<HostValue>() as u64
    }
}

/// How a part is read: the function and its other arguments, in words.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Call {
    how: String,
    part: Section,
}

type Value = Box<dyn Any + Send + Sync>;

/// What a thread reads.
struct Reading {
    call: Call,
    /// The file when it was begun.
    state: State,
    value: JoinHandle<Option<Value>>,
}

/// A value that was read before.
struct Kept {
    call: Call,
    state: State,
    value: Value,
    bytes: u64,
}

struct Follower {
    of: Section,
    next: Section,
    /// Bytes of values that may be kept.
    keep: u64,
    /// The rows of the file, where they were counted.
    rows: Option<u64>,
}

struct Ahead {
    followers: Vec<Follower>,
    reading: Vec<Reading>,
    kept: Vec<Kept>,
}

static AHEAD: Mutex<Ahead> = Mutex::new(Ahead { followers: vec![], reading: vec![], kept: vec![] });

fn ahead() -> MutexGuard<'static, Ahead> {
    AHEAD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The program says that one part is read after another, how many bytes of such values may be kept, and how many rows the first
/// file has, where it has counted them.
pub fn follows(of: Section, next: Section, keep: u64, rows: Option<u64>) {
    let mut all = ahead();
    all.followers.retain(|f| f.of != of);
    if all.followers.len() >= STREAMS {
        all.followers.remove(0);
    }
    all.followers.push(Follower { of, next, keep, rows });
}

/// How many rows the program says that a file has.
pub fn counted(part: &Section) -> Option<u64> {
    ahead().followers.iter().find(|f| f.of == *part)?.rows
}

/// What `read` gives of a part: read now, or before. `how` tells this reader and its arguments from others. Where the program has
/// said what follows, that is begun.
///
/// # Errors
/// Those of `read`.
pub fn read<T: Content>(
    how: &str,
    part: Section,
    read: impl Fn(&Section) -> Result<T, Fault> + Send + 'static,
) -> Result<T, Fault> {
    let call = Call { how: how.to_owned(), part };
    let next = ahead().followers.iter().find(|f| f.of == call.part).map(|f| (f.next.clone(), f.keep));
    let Some((next, keep)) = next else { return found(&call).map_or_else(|| read(&call.part), Ok) };
    // What was begun before this was asked for is on the disk.
    pending_save::finish()?;
    let before = State::at(&call.part.path);
    let value = match found(&call) {
        Some(value) => value,
        None => read(&call.part)?,
    };
    if let Some(state) = before {
        put_by(&call, state, &value, keep);
    }
    begin(Call { how: call.how, part: next }, value.bytes(), read);
    Ok(value)
}

/// The value of a call, if it was read before and the file is what it was then.
fn found<T: Content>(call: &Call) -> Option<T> {
    let mut all = ahead();
    if all.reading.is_empty() && all.kept.is_empty() {
        return None;
    }
    let now = State::at(&call.part.path)?;
    if let Some(at) = all.kept.iter().position(|k| k.call == *call) {
        if all.kept[at].state == now {
            return all.kept[at].value.downcast_ref::<T>().cloned();
        }
        all.kept.remove(at);
    }
    let at = all.reading.iter().position(|r| r.call == *call)?;
    let reading = all.reading.remove(at);
    drop(all);
    let value = reading.value.join().ok().flatten()?;
    // It may have been written while the thread read it.
    let same = reading.state == now && State::at(&call.part.path) == Some(now);
    value.downcast::<T>().ok().filter(|_| same).map(|value| *value)
}

/// Keeps a value while there is room for it.
fn put_by<T: Content>(call: &Call, state: State, value: &T, keep: u64) {
    let mut all = ahead();
    let bytes = value.bytes();
    let taken: u64 = all.kept.iter().map(|k| k.bytes).sum();
    if taken.saturating_add(bytes) <= keep && has_room(bytes) && all.kept.iter().all(|k| k.call != *call) {
        all.kept.push(Kept { call: call.clone(), state, value: Box::new(value.clone()), bytes });
    }
}

/// Reads on a thread what follows, where there is room for about as much as was read before it.
fn begin<T: Content>(call: Call, like: u64, read: impl Fn(&Section) -> Result<T, Fault> + Send + 'static) {
    let mut all = ahead();
    let there = all.reading.iter().any(|r| r.call == call) || all.kept.iter().any(|k| k.call == call);
    if there || !has_room(like.saturating_mul(2)) {
        return;
    }
    let Some(state) = State::at(&call.part.path) else { return };
    let part = call.part.clone();
    let work = move || {
        pending_save::leave_to_others();
        read(&part).ok().map(|value| Box::new(value) as Value)
    };
    if all.reading.len() >= STREAMS {
        all.reading.remove(0);
    }
    // Without a thread the file is read when it is asked for.
    if let Ok(value) = Builder::new().name("ahead".into()).spawn(work) {
        all.reading.push(Reading { call, state, value });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn part(path: &Path) -> Section {
        Section { path: path.to_owned(), first: 0 }
    }

    #[test]
    fn what_follows_is_read_once_and_anew_where_it_was_written() -> std::io::Result<()> {
        let dir = tempfile::tempdir()?;
        let [a, b] = ["a", "b"].map(|name| dir.path().join(name));
        std::fs::write(&a, "one")?;
        std::fs::write(&b, "two")?;
        let count = Arc::new(AtomicUsize::new(0));
        let text = |path: &Path| {
            let count = count.clone();
            let got = read("text", part(path), move |p: &Section| {
                count.fetch_add(1, Ordering::SeqCst);
                std::fs::read_to_string(&p.path)
                    .map(|text| HostValue::Str(text.into()))
                    .map_err(|e| Fault::new(706, e.to_string()))
            });
            match got {
                Ok(HostValue::Str(text)) => text.to_string(),
                Ok(_) => "?".into(),
                Err(fault) => fault.message,
            }
        };
        follows(part(&a), part(&b), 0, None);
        assert_eq!((text(&a), text(&b)), ("one".into(), "two".into()));
        assert_eq!(count.load(Ordering::SeqCst), 2);
        // Written behind the back of the thread.
        assert_eq!(text(&a), "one");
        std::fs::write(&b, "three")?;
        assert_eq!(text(&b), "three");
        // Gone: the error is that of reading it now.
        assert_eq!(text(&a), "one");
        std::fs::remove_file(&b)?;
        assert!(text(&b).contains("No such file"));
        // Kept for the next time.
        let before = count.load(Ordering::SeqCst);
        std::fs::write(&b, "four")?;
        follows(part(&a), part(&b), 1 << 20, None);
        follows(part(&b), part(&a), 1 << 20, None);
        for _ in 0..3 {
            assert_eq!((text(&a), text(&b)), ("one".into(), "four".into()));
        }
        assert_eq!(count.load(Ordering::SeqCst) - before, 2);
        Ok(())
    }
}
