//! Where the rows of a text are, so that a part of a file is read without what is before it.

use super::asked::{MARK, Rows};
use super::lines::Names;
use super::records::{Form, OpenQuote, Record, begin};
use crate::fault::{Fault, reserve};
use crate::io::unchanged::State;
use std::collections::BTreeMap;
use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Rows between places that are kept.
const EVERY: u64 = 4096;
/// Bytes that are read at a time; more where a record is longer.
const BLOCK: usize = 1 << 20;

/// The places of the rows of a text.
#[derive(Debug)]
pub struct Index {
    /// The first line of a table.
    pub heading: Range<u64>,
    /// Where each [`EVERY`]th row begins.
    places: Vec<u64>,
    pub rows: u64,
    bytes: u64,
    /// The keys of JSON lines, by the columns that were looked for.
    names: Mutex<BTreeMap<String, Names>>,
}

/// Why there is no index.
pub enum Failed {
    Read(std::io::Error),
    /// At a byte.
    Open(u64),
    Memory(Fault),
}

impl Index {
    /// Goes through a text once, with little of it in memory.
    pub fn of(text: impl Read, form: Form) -> Result<Index, Failed> {
        Index::with(text, form, &mut |_| {})
    }

    /// The same, with a look at the first cell of each row.
    pub fn with(mut text: impl Read, form: Form, look: &mut dyn FnMut(&[u8])) -> Result<Index, Failed> {
        let mut index = Index { heading: 0..0, places: vec![], rows: 0, bytes: 0, names: Mutex::default() };
        let (mut buffer, mut record): (Vec<u8>, _) = (vec![], Record::default());
        let (mut at, mut ended) = (0, false);
        let mut before_heading = matches!(form, Form::Delimited(_));
        while !ended {
            buffer.drain(..at);
            index.bytes += at as u64;
            let more = BLOCK.max(buffer.len());
            reserve(&mut buffer, more).map_err(Failed::Memory)?;
            let read = text.by_ref().take(more as u64).read_to_end(&mut buffer).map_err(Failed::Read)?;
            ended = read < more;
            at = if index.bytes == 0 && buffer.starts_with(MARK) { MARK.len() } else { 0 };
            loop {
                let Some(start) = begin(&buffer, at, buffer.len(), form) else {
                    // Blank lines are left behind.
                    at = buffer.len();
                    break;
                };
                at = start;
                let next = match record.read(&buffer, start, form) {
                    // What ends with the block may go on behind it.
                    Ok(next) if next < buffer.len() || ended => next,
                    Err(OpenQuote(open)) if ended => return Err(Failed::Open(index.bytes + open as u64)),
                    _ => break,
                };
                let place = index.bytes + start as u64;
                if before_heading {
                    index.heading = place..index.bytes + next as u64;
                    before_heading = false;
                } else {
                    if index.rows.is_multiple_of(EVERY) {
                        index.places.push(place);
                    }
                    index.rows += 1;
                    look(record.cell(&buffer, 0));
                }
                at = next;
            }
        }
        index.bytes += buffer.len() as u64;
        Ok(index)
    }

    /// The keys of all lines for columns, which `make` finds the first time.
    pub fn names(&self, columns: &str, make: impl FnOnce() -> Result<Names, Fault>) -> Result<Names, Fault> {
        if let Some(names) = self.names.lock().unwrap_or_else(PoisonError::into_inner).get(columns) {
            return Ok(names.clone());
        }
        let made = make()?;
        self.names.lock().unwrap_or_else(PoisonError::into_inner).insert(columns.to_owned(), made.clone());
        Ok(made)
    }

    /// The bytes that hold some rows, and how many rows before the first one they hold as well.
    pub fn around(&self, rows: Rows) -> (Range<u64>, u64) {
        let first = rows.first.min(self.rows);
        let last = rows.end().min(self.rows).max(first);
        if first == last {
            return (self.bytes..self.bytes, 0);
        }
        let place = |n: u64| self.places.get(n as usize).copied().unwrap_or(self.bytes);
        (place(first / EVERY)..place(last.div_ceil(EVERY)), first % EVERY)
    }
}

/// Where so many records behind a byte begin; the end of the text where there are fewer.
pub fn behind(text: &[u8], from: usize, count: u64, form: Form) -> usize {
    let (mut record, mut at) = (Record::default(), from);
    for _ in 0..count {
        let Some(start) = begin(text, at, text.len(), form) else { return text.len() };
        match record.read(text, start, form) {
            Ok(next) => at = next,
            Err(_) => return text.len(),
        }
    }
    at
}

/// The places that were found, for files as they were then.
static INDEXES: Mutex<BTreeMap<PathBuf, (State, Form, Arc<Index>)>> = Mutex::new(BTreeMap::new());

fn indexes() -> MutexGuard<'static, BTreeMap<PathBuf, (State, Form, Arc<Index>)>> {
    INDEXES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The index of a file in a state that is known, or what `make` gives.
pub fn index(
    path: &Path,
    state: State,
    form: Form,
    make: impl FnOnce() -> Result<Index, Fault>,
) -> Result<Arc<Index>, Fault> {
    if let Some((of, as_form, index)) = indexes().get(path)
        && (*of, *as_form) == (state, form)
    {
        return Ok(index.clone());
    }
    let made = Arc::new(make()?);
    indexes().insert(path.to_owned(), (state, form, made.clone()));
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives a few bytes at a time.
    struct Slowly<'a>(&'a [u8]);

    impl Read for Slowly<'_> {
        fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
            let n = self.0.len().min(buf.len()).min(7);
            buf[..n].copy_from_slice(&self.0[..n]);
            self.0 = &self.0[n..];
            Ok(n)
        }
    }

    #[test]
    fn rows_are_found_where_they_are() {
        let form = Form::Delimited(b',');
        let mut text = b"\xef\xbb\xbfa,b\r\n".to_vec();
        let mut starts = vec![];
        for i in 0..10_000 {
            if i % 3 == 0 {
                text.extend(b"\r\n");
            }
            starts.push(text.len());
            text.extend(format!("{i},\"x\r\n\"\"{}\"\r\n", "y".repeat(i % 50)).bytes());
        }
        let index = Index::of(&mut Slowly(&text), form).ok().unwrap_or_else(|| panic!("no index"));
        assert_eq!((index.rows, index.heading.clone()), (10_000, 3..8));
        for (first, count) in [(0, 1), (4095, 2), (4096, 4096), (9_999, 1), (9_999, 5), (10_000, 3), (123, u64::MAX)] {
            let (bytes, before) = index.around(Rows { first, count });
            let part = &text[bytes.start as usize..bytes.end as usize];
            let from = behind(part, 0, before, form);
            let start = starts.get(first as usize).copied().unwrap_or(text.len());
            let skipped = begin(part, from, part.len(), form).unwrap_or(from);
            assert_eq!(bytes.start as usize + skipped, start, "{first}");
        }
    }
}
