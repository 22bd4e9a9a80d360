//! What searches found, in `.tessera/cache/NAME.json` below the folder that the program was
//! started in: sorted text, one record per kernel, written under a lock and then renamed.

use serde::{Deserialize, Serialize};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::PathBuf;
use tessera_ir::schedule::{self, Schedule};
use tessera_runtime::io::replace::{Durability, replace};
use tessera_runtime::io::sandbox;

/// Version of the form of the files; another one is a miss.
const VERSION: u32 = 1;

/// One kernel on one machine. Everything but the last four is what it is found by.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Record {
    /// The name of the kernel.
    pub operator: String,
    /// Sizes and element types of the operands.
    pub operands: Vec<String>,
    pub policy: String,
    pub architecture: String,
    pub threads: usize,
    pub compiler: String,
    /// Schedule IR, one directive each.
    pub directives: Vec<String>,
    pub samples: u32,
    /// Medians of the cost model's schedule and of the best.
    pub start_ns: u64,
    pub best_ns: u64,
}

#[derive(Default, Serialize, Deserialize)]
struct Text {
    version: u32,
    records: BTreeMap<String, Record>,
}

/// The files of one process, read when they are first asked for.
pub struct Records {
    dir: PathBuf,
    quiet: bool,
    read: RefCell<BTreeMap<String, BTreeMap<String, Record>>>,
    warned: Cell<bool>,
}

impl Records {
    pub fn new(dir: PathBuf, quiet: bool) -> Records {
        Records { dir, quiet, read: RefCell::default(), warned: Cell::new(false) }
    }

    fn path(&self, cache: &str) -> PathBuf {
        self.dir.join(format!("{cache}.json"))
    }

    fn warn(&self, message: &str) {
        if !self.quiet && !self.warned.replace(true) {
            eprintln!("warning[W0601]: {message}");
        }
    }

    /// The records of a file; none of one that is missing or damaged, which is told.
    fn load(&self, cache: &str) -> BTreeMap<String, Record> {
        let path = self.path(cache);
        let Ok(text) = std::fs::read_to_string(&path) else { return BTreeMap::new() };
        match serde_json::from_str::<Text>(&text) {
            Ok(t) if t.version == VERSION => t.records,
            Ok(_) => BTreeMap::new(),
            Err(e) => {
                self.warn(&format!("{} is damaged ({e}); its kernels are tuned again", path.display()));
                BTreeMap::new()
            }
        }
    }

    /// The record of a kernel.
    pub fn find(&self, cache: &str, key: &str) -> Option<Record> {
        let mut read = self.read.borrow_mut();
        let records = read.entry(cache.to_owned()).or_insert_with(|| self.load(cache));
        records.get(key).cloned()
    }

    /// Adds a record. Processes that do so at the same time keep each other's.
    pub fn add(&self, cache: &str, key: &str, record: Record) {
        let path = self.path(cache);
        let written = (|| {
            // A run that leaves no files keeps what it found to itself.
            if sandbox::is_on() {
                return Ok(());
            }
            std::fs::create_dir_all(&self.dir)?;
            let lock = std::fs::File::create(self.dir.join(format!("{cache}.lock")))?;
            lock.lock()?;
            let mut text = Text { version: VERSION, records: self.load(cache) };
            text.records.insert(key.to_owned(), record.clone());
            let text = serde_json::to_string_pretty(&text)? + "\n";
            replace(&path, Durability::Cached, |e| e, |out| out.write_all(text.as_bytes()))?;
            lock.unlock()
        })();
        if let Err(e) = written {
            self.warn(&format!("what tuning found cannot be kept: {}: {e}", path.display()));
        }
        self.read.borrow_mut().entry(cache.to_owned()).or_default().insert(key.to_owned(), record);
    }
}

/// Between body and directives in the text of a schedule.
const MIDDLE: &str = "\n}, {\n";

/// The directives of a schedule as text.
pub fn directives(s: &Schedule) -> Vec<String> {
    let text = schedule::text::print(s);
    let part = text.rsplit_once(MIDDLE).map_or("", |(_, d)| d.trim_end().trim_end_matches("})"));
    part.lines().map(|l| l.trim().to_owned()).filter(|l| !l.is_empty()).collect()
}

/// The schedule with these directives; `None` where they do not fit it.
pub fn with_directives(s: &Schedule, lines: &[String]) -> Option<Schedule> {
    let bare = Schedule { directives: vec![], ..s.clone() };
    let text = schedule::text::print(&bare);
    let (body, _) = text.rsplit_once("\n}, {")?;
    let read = schedule::text::parse(&format!("{body}\n}}, {{\n{}\n}})", lines.join("\n"))).ok()?;
    let new = Schedule { directives: read.directives, ..s.clone() };
    schedule::verify::verify(&new).is_ok().then_some(new)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        Record {
            operator: "dot".into(),
            operands: vec!["12 f32".into()],
            policy: "deterministic".into(),
            architecture: "x".into(),
            threads: 1,
            compiler: "0".into(),
            directives: vec!["\"tessera.schedule.swap\"()".into()],
            samples: 50,
            start_ns: 2,
            best_ns: 1,
        }
    }

    #[test]
    fn records_survive_and_two_writers_keep_both() -> std::io::Result<()> {
        let dir = tempfile::tempdir()?;
        let (a, b) = (Records::new(dir.path().into(), true), Records::new(dir.path().into(), true));
        assert_eq!(b.find("c", "two"), None);
        a.add("c", "one", record());
        b.add("c", "two", record());
        let again = Records::new(dir.path().into(), true);
        assert_eq!((again.find("c", "one"), again.find("c", "two")), (Some(record()), Some(record())));
        assert_eq!(again.find("d", "one"), None);
        Ok(())
    }

    #[test]
    fn a_damaged_file_is_a_miss() -> std::io::Result<()> {
        let dir = tempfile::tempdir()?;
        for text in ["{", "[]", "{\"version\": 9, \"records\": {}}", "\u{0}"] {
            std::fs::write(dir.path().join("c.json"), text)?;
            let records = Records::new(dir.path().into(), true);
            assert_eq!(records.find("c", "one"), None);
            records.add("c", "one", record());
            assert_eq!(Records::new(dir.path().into(), true).find("c", "one"), Some(record()));
        }
        Ok(())
    }
}
