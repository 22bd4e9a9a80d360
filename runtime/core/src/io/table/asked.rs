//! What is asked for of a table, and what the name of its file says.

use crate::fault::{Fault, shown};
use crate::io::files;
use crate::memory::memory_limit;
use std::path::Path;

/// What some programs write before UTF-8 text.
pub const MARK: &[u8] = b"\xef\xbb\xbf";

/// Which rows of a table are read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rows {
    pub first: u64,
    /// As many as there are, if that is fewer.
    pub count: u64,
}

impl Rows {
    pub const ALL: Rows = Rows { first: 0, count: u64::MAX };

    /// Behind the last one.
    pub fn end(self) -> u64 {
        self.first.saturating_add(self.count)
    }
}

/// How a table is read.
pub struct Asked<'a> {
    /// A line for each column: its name and what it is read as.
    pub columns: &'a str,
    pub delimiter: u8,
    /// What stands for a missing int or bool.
    pub missing: Option<i64>,
    pub rows: Rows,
}

/// What a name says about the file; `.gz` behind it says nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    Lines,
    Parquet,
    Other,
}

/// What the name of a file says about it.
pub fn ending(path: &Path) -> Ending {
    let name = path.to_string_lossy().to_lowercase();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    let ends = |all: &[&str]| all.iter().any(|e| name.ends_with(e));
    match () {
        () if ends(&[".jsonl", ".ndjson"]) => Ending::Lines,
        () if ends(&[".parquet", ".pq"]) => Ending::Parquet,
        () => Ending::Other,
    }
}

/// Columns for which there is no room.
pub fn too_many(path: &Path) -> Fault {
    files::too_large(path, "holds columns of more than", memory_limit())
}

/// The same where it is known before they are read.
pub fn no_room(fault: Fault, path: &Path) -> Fault {
    fault.note(format!("it is for columns of `{}`", shown(path)))
}
