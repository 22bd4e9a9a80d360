//! What searches found, in `.tessera/cache/NAME.json` below the folder that the program was started in: a lockfile of one record
//! a line, sorted, each with a sum of its own. It may be kept with the program, merged line by line and carried to other machines,
//! which take the records that are theirs.
//!
//! A process that searches holds the lease of the file, a lock that the system takes back when the process ends in whatever way;
//! others wait until the record that they want is there, or take over.

use serde::{Deserialize, Serialize};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};
use tessera_ir::schedule::{self, Directive, Schedule};
use tessera_runtime::io::replace::{Durability, replace};
use tessera_runtime::io::sandbox;

/// The first line of a file and the last one; another first line is that of another version.
const FIRST: &str = "{\"version\": 2, \"records\": [";
const LAST: &str = "{}]}";
/// Vectors of a register tile at most.
const REGISTERS_MAX: u32 = 64;
/// Between two looks at a lease that another process has.
const LOOK: Duration = Duration::from_millis(20);
/// A lease that is held for longer is not waited for: its process may be stopped.
const PATIENCE: Duration = Duration::from_secs(600);
/// From when on it is told that a lease is waited for.
const QUIETLY: Duration = Duration::from_secs(3);
/// Records of other sizes that a search begins with.
const NEAR: usize = 2;

/// What a record is found by.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Sought {
    /// The name of the kernel.
    pub operator: String,
    /// Elements and element types of the operands.
    pub operands: Vec<String>,
    pub objective: String,
    pub policy: String,
    pub architecture: String,
    /// What the cost model knows of the machine.
    pub machine: String,
    pub threads: usize,
    /// The version of the compiler.
    pub compiler: String,
    /// The hash of the kernel: its body, its sizes, the schedule that a search begins with.
    pub body: String,
}

/// The schedule of one kernel on one machine.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Record {
    #[serde(flatten)]
    pub of: Sought,
    /// Schedule IR, one directive each.
    pub directives: Vec<String>,
    pub samples: u32,
    /// What the schedule of the cost model costs, and the best one: nanoseconds, or what the objective counts.
    pub start: u64,
    pub best: u64,
    /// What bounds the kernel (`compute` or `memory`), and the nanoseconds that this takes on this machine at least.
    pub limit: String,
    pub roof: u64,
}

/// A line of a file.
#[derive(Serialize, Deserialize)]
struct Line {
    #[serde(flatten)]
    record: Record,
    sum: String,
}

impl Record {
    fn sum(&self) -> String {
        let text = serde_json::to_string(self).expect("a record has a form");
        blake3::hash(text.as_bytes()).to_hex()[..16].to_owned()
    }

    fn line(&self) -> String {
        serde_json::to_string(&Line { record: self.clone(), sum: self.sum() }).expect("a record has a form")
    }
}

impl Sought {
    /// What keeps a record from being the one that is sought.
    pub fn differs(&self, other: &Sought) -> Vec<&'static str> {
        let sized = self.operands != other.operands;
        [
            ("operator", self.operator != other.operator),
            ("size or dtype", sized),
            ("objective", self.objective != other.objective),
            ("policy", self.policy != other.policy),
            ("architecture", self.architecture != other.architecture),
            ("vectors or caches of the machine", self.machine != other.machine),
            ("number of threads", self.threads != other.threads),
            ("version of the compiler", self.compiler != other.compiler),
            // The body has the sizes.
            ("body, or start of the cost model", self.body != other.body && !sized),
        ]
        .into_iter()
        .filter_map(|(what, differs)| differs.then_some(what))
        .collect()
    }

    /// Whether both are of one machine as this process uses it.
    pub fn same_machine(&self, other: &Sought) -> bool {
        (&self.architecture, &self.machine, self.threads) == (&other.architecture, &other.machine, other.threads)
    }

    /// How far the sizes of a kernel of the same form are from these; `None` of another form.
    fn apart(&self, other: &Sought) -> Option<f64> {
        let sized = |s: &Sought| Sought { operands: vec![], body: String::new(), ..s.clone() };
        if sized(self) != sized(other) || self.operands.len() != other.operands.len() {
            return None;
        }
        let read = |text: &str| {
            let (elems, dtype) = text.split_once(' ')?;
            Some((elems.parse::<f64>().ok()?.max(1.0), dtype.to_owned()))
        };
        self.operands.iter().zip(&other.operands).try_fold(0.0, |sum, (a, b)| {
            let ((a, of_a), (b, of_b)) = (read(a)?, read(b)?);
            (of_a == of_b).then(|| sum + (a / b).ln().abs())
        })
    }
}

/// What a file says, and when it was read.
#[derive(Default)]
struct Known {
    records: BTreeMap<Sought, Record>,
    stamp: Option<(SystemTime, u64)>,
    /// Nothing can be said of it, and it is not to be written.
    foreign: bool,
}

/// Who searches.
pub enum Turn {
    /// Nobody: another process did.
    Found(Box<Record>),
    /// This process, as long as it holds the lease; where nothing is kept there is none.
    Ours(Option<File>),
    /// Nobody: nothing can be kept, or somebody asked the program to end.
    Nobody,
}

/// The files of one process, read when they are first asked for and when another process has written them.
pub struct Records {
    dir: PathBuf,
    quiet: bool,
    /// Kept although the files of the program go aside.
    lasting: Cell<bool>,
    read: RefCell<BTreeMap<String, Known>>,
    warned: RefCell<BTreeSet<&'static str>>,
    /// Files whose lease is waited for no more, and of which it was told that they are waited for.
    impatient: RefCell<BTreeSet<String>>,
    told: RefCell<BTreeSet<String>>,
}

impl Records {
    pub fn new(dir: PathBuf, quiet: bool) -> Records {
        let (read, warned, lasting) = (RefCell::default(), RefCell::default(), Cell::new(false));
        Records { dir, quiet, lasting, read, warned, impatient: RefCell::default(), told: RefCell::default() }
    }

    /// What is found is kept whatever becomes of the files that the program writes.
    pub fn keep(&self) {
        self.lasting.set(true);
    }

    pub fn path(&self, cache: &str) -> PathBuf {
        self.dir.join(format!("{cache}.json"))
    }

    /// Tells something once of each kind.
    pub fn warn(&self, kind: &'static str, message: &str) {
        if !self.quiet && self.warned.borrow_mut().insert(kind) {
            eprintln!("warning[W0603]: {message}");
        }
    }

    /// The records of a file: none of one that is missing. Of one that is damaged those that are whole, which is told.
    fn load(&self, cache: &str) -> Known {
        let path = self.path(cache);
        let stamp = std::fs::metadata(&path).and_then(|m| Ok((m.modified()?, m.len()))).ok();
        // A device that stands there has no end.
        if std::fs::metadata(&path).is_ok_and(|m| !m.is_file()) {
            return Known::default();
        }
        let text = match std::fs::read(&path) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(e) => {
                if !matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) {
                    self.warn("read", &format!("{} cannot be read ({e}); its kernels are not tuned", path.display()));
                    return Known { foreign: true, ..Known::default() };
                }
                return Known::default();
            }
        };
        let mut out = Known { records: BTreeMap::new(), stamp, foreign: false };
        if is_of_another_version(&text) {
            self.warn("version", &format!("{} is of another version, and is left as it is", path.display()));
            out.foreign = true;
            return out;
        }
        let whole = text.starts_with(FIRST) && text.trim_end().ends_with(LAST);
        let lines = text.lines().map(str::trim).filter(|l| !matches!(*l, FIRST | LAST | ""));
        let mut damaged = usize::from(!whole);
        for line in lines {
            match serde_json::from_str::<Line>(line.trim_end_matches(',')) {
                // Of two that a merge has left the first in the order of the text, on every machine.
                Ok(l) if l.sum == l.record.sum() => match out.records.get(&l.record.of) {
                    Some(other) if other.line() <= l.record.line() => {}
                    _ => drop(out.records.insert(l.record.of.clone(), l.record)),
                },
                _ => damaged += 1,
            }
        }
        if damaged > 0 {
            let what =
                format!("{} is damaged; the {} records that are whole are used", path.display(), out.records.len());
            self.warn("damaged", &what);
        }
        out
    }

    /// Calls `f` with what a file says, read again where it changed and `fresh` is asked for.
    fn with<T>(&self, cache: &str, fresh: bool, f: impl FnOnce(&mut Known) -> T) -> T {
        let mut read = self.read.borrow_mut();
        if fresh && !self.is_aside() {
            let now = std::fs::metadata(self.path(cache)).and_then(|m| Ok((m.modified()?, m.len()))).ok();
            if read.get(cache).is_some_and(|k| k.stamp != now) {
                read.remove(cache);
            }
        }
        f(read.entry(cache.to_owned()).or_insert_with(|| self.load(cache)))
    }

    /// Whether there is a file.
    pub fn is_there(&self, cache: &str) -> bool {
        self.path(cache).is_file()
    }

    /// The record of a kernel.
    pub fn find(&self, cache: &str, sought: &Sought) -> Option<Record> {
        self.with(cache, false, |known| known.records.get(sought).cloned())
    }

    /// Whether a file has records, and all of them are of other machines.
    pub fn is_foreign(&self, cache: &str, sought: &Sought) -> bool {
        self.with(cache, false, |known| {
            !known.records.is_empty() && known.records.values().all(|r| !r.of.same_machine(sought))
        })
    }

    /// All records of a file.
    pub fn all(&self, cache: &str) -> Vec<Record> {
        self.with(cache, true, |known| known.records.values().cloned().collect())
    }

    /// The directives of records of the same kernel at other sizes, the nearest first, as they fit a schedule.
    pub fn near(&self, cache: &str, sought: &Sought, s: &Schedule) -> Vec<Vec<Directive>> {
        let mut near: Vec<(f64, Vec<Directive>)> = self.with(cache, false, |known| {
            let apart = |r: &Record| Some((sought.apart(&r.of)?, with_directives(s, &r.directives)?.directives));
            known.records.values().filter_map(apart).collect()
        });
        near.sort_by(|a, b| a.0.total_cmp(&b.0));
        near.into_iter().take(NEAR).map(|(_, d)| d).collect()
    }

    /// A run that leaves no files keeps what it found to itself.
    fn is_aside(&self) -> bool {
        sandbox::is_on() && !self.lasting.get()
    }

    /// Waits for the lease of a file, or for the record that another process finds meanwhile; one that does not fit is none.
    pub fn turn(&self, cache: &str, sought: &Sought, fits: &dyn Fn(&Record) -> bool, ended: &dyn Fn() -> bool) -> Turn {
        if self.is_aside() {
            return Turn::Ours(None);
        }
        // What a file may hold is tried with the lock, which is beside it.
        let lock = std::fs::create_dir_all(&self.dir).and_then(|()| {
            tessera_runtime::io::replace::try_at(&self.path(cache))?;
            let path = self.dir.join(format!("{cache}.lock"));
            File::options().create(true).append(true).open(path)
        });
        let lock = match lock {
            Ok(lock) => lock,
            Err(e) => {
                let path = self.path(cache);
                self.warn("write", &format!("nothing is tuned, since it cannot be kept: {}: {e}", path.display()));
                return Turn::Nobody;
            }
        };
        let mut since = Instant::now();
        let mut stamp = None;
        loop {
            let held = match lock.try_lock() {
                Ok(()) => true,
                Err(TryLockError::WouldBlock) => false,
                Err(TryLockError::Error(e)) => {
                    self.warn("write", &format!("nothing is tuned, since `{cache}.lock` cannot be locked: {e}"));
                    return Turn::Nobody;
                }
            };
            let (found, now, foreign) =
                self.with(cache, true, |known| (known.records.get(sought).cloned(), known.stamp, known.foreign));
            if let Some(found) = found.filter(fits) {
                return Turn::Found(Box::new(found));
            }
            if foreign || self.impatient.borrow().contains(cache) {
                return Turn::Nobody;
            }
            // Who finds something is at work.
            if now != stamp {
                (since, stamp) = (Instant::now(), now);
            }
            match held {
                true => return Turn::Ours(Some(lock)),
                false if ended() => return Turn::Nobody,
                false if since.elapsed() > PATIENCE => {
                    self.warn("lease", &format!("another process holds `{cache}.lock`; kernels are not tuned"));
                    self.impatient.borrow_mut().insert(cache.to_owned());
                    return Turn::Nobody;
                }
                false => {
                    if since.elapsed() > QUIETLY && !self.quiet && self.told.borrow_mut().insert(cache.to_owned()) {
                        eprintln!("waiting for another process that tunes `{cache}`");
                    }
                    std::thread::sleep(LOOK);
                }
            }
        }
    }

    /// Adds a record. The caller has the lease, if there is one.
    pub fn add(&self, cache: &str, record: Record) {
        if !self.is_aside() {
            let path = self.path(cache);
            let mut all = self.load(cache).records;
            all.insert(record.of.clone(), record.clone());
            if let Err(e) = written(&path, &all) {
                self.warn("write", &format!("what tuning found cannot be kept: {}: {e}", path.display()));
            }
        }
        self.with(cache, false, |known| known.records.insert(record.of.clone(), record));
    }

    /// Takes records out of a file; those that other processes add meanwhile stay.
    pub fn remove(&self, cache: &str, which: &[Record]) -> std::io::Result<()> {
        let lock = File::options().create(true).append(true).open(self.dir.join(format!("{cache}.lock")))?;
        lock.lock()?;
        let mut all = self.load(cache).records;
        which.iter().for_each(|r| drop(all.remove(&r.of)));
        written(&self.path(cache), &all)?;
        self.read.borrow_mut().remove(cache);
        Ok(())
    }
}

/// Whether the first line names a version that is not ours; one that is cut off is that of a damaged file.
fn is_of_another_version(text: &str) -> bool {
    let begin = FIRST.split_once(',').map_or(FIRST, |f| f.0);
    let named = text.split_once(',').map(|t| t.0);
    named.is_some_and(|n| n != begin && n.starts_with("{\"version\": "))
}

fn written(path: &Path, records: &BTreeMap<Sought, Record>) -> std::io::Result<()> {
    let mut lines: Vec<String> = records.values().map(|r| r.line() + ",\n").collect();
    lines.sort();
    let text = format!("{FIRST}\n{}{LAST}\n", lines.concat());
    replace(path, Durability::Cached, |e| e, |out| out.write_all(text.as_bytes()))
}

/// The name of the file of a program's records.
pub fn named_after(program: &Path) -> String {
    let stem = program.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
    let fine = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' };
    let name: String = stem.chars().take(100).map(fine).collect();
    if name.is_empty() || name == "-" { "stdin".into() } else { name }
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
    // No search tries register tiles that no processor has room for, which take long to compile.
    let large = |d: &Directive| matches!(d, Directive::Registers { rows, vectors } if rows * vectors > REGISTERS_MAX);
    (!new.directives.iter().any(large) && schedule::verify::verify(&new).is_ok()).then_some(new)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(operator: &str, elems: u64) -> Record {
        Record {
            of: Sought {
                operator: operator.into(),
                operands: vec![format!("{elems} f32")],
                objective: "latency".into(),
                policy: "deterministic".into(),
                architecture: "x".into(),
                machine: "m".into(),
                threads: 1,
                compiler: "0".into(),
                body: format!("{elems}"),
            },
            directives: vec!["\"tessera.schedule.swap\"()".into()],
            samples: 50,
            start: 2,
            best: 1,
            limit: "memory".into(),
            roof: 1,
        }
    }

    fn at(dir: &tempfile::TempDir) -> Records {
        Records::new(dir.path().into(), true)
    }

    fn add(records: &Records, record: &Record) -> bool {
        // The lease lasts until the record is there.
        let turn = records.turn("c", &record.of, &|_| true, &|| false);
        records.add("c", record.clone());
        matches!(turn, Turn::Ours(Some(_)))
    }

    #[test]
    fn records_survive_and_two_writers_keep_both() -> std::io::Result<()> {
        let dir = tempfile::tempdir()?;
        let (a, b) = (at(&dir), at(&dir));
        let (one, two) = (record("one", 1), record("two", 1));
        assert_eq!(b.find("c", &two.of), None);
        assert!(add(&a, &one) && add(&b, &two));
        let again = at(&dir);
        assert_eq!((again.find("c", &one.of), again.find("c", &two.of)), (Some(one.clone()), Some(two)));
        assert_eq!(again.find("d", &one.of), None);
        assert!(matches!(b.turn("c", &one.of, &|_| true, &|| false), Turn::Found(r) if *r == one));
        assert!(matches!(b.turn("c", &one.of, &|_| false, &|| false), Turn::Ours(Some(_))));
        Ok(())
    }

    #[test]
    fn a_lease_is_waited_for_and_ends_with_its_holder() -> std::io::Result<()> {
        let dir = tempfile::tempdir()?;
        let (a, b, one) = (at(&dir), at(&dir), record("one", 1));
        let held = a.turn("c", &one.of, &|_| true, &|| false);
        assert!(matches!(held, Turn::Ours(Some(_))));
        let looks = Cell::new(0);
        let waited = b.turn("c", &one.of, &|_| true, &|| looks.replace(looks.get() + 1) == 3);
        assert!(matches!(waited, Turn::Nobody) && looks.get() == 4);
        drop(held);
        assert!(matches!(b.turn("c", &one.of, &|_| true, &|| false), Turn::Ours(Some(_))));
        Ok(())
    }

    #[test]
    fn what_is_damaged_is_left_out_and_the_rest_is_used() -> std::io::Result<()> {
        let dir = tempfile::tempdir()?;
        let (one, two) = (record("one", 1), record("two", 1));
        assert!(add(&at(&dir), &one) && add(&at(&dir), &two));
        let path = dir.path().join("c.json");
        let text = std::fs::read_to_string(&path)?;
        assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok() && text.lines().count() == 4, "{text}");
        for (at_byte, _) in text.char_indices() {
            let mut flipped = text.clone().into_bytes();
            flipped[at_byte] ^= 1;
            for bytes in [flipped, text.as_bytes()[..at_byte].to_vec()] {
                std::fs::write(&path, &bytes)?;
                let records = at(&dir);
                for r in [&one, &two] {
                    assert!(records.find("c", &r.of).is_none_or(|found| found == *r));
                }
            }
        }
        // What two branches added, with the marks of a conflict.
        let line = |r: &Record| r.line() + ",\n";
        let conflict = format!("{FIRST}\n<<<<<<< a\n{}=======\n{}>>>>>>> b\n{LAST}\n", line(&one), line(&two));
        std::fs::write(&path, conflict)?;
        assert_eq!(at(&dir).all("c"), [one.clone(), two.clone()]);
        // A merge that keeps the lines of both.
        std::fs::write(&path, format!("{FIRST}\n{}{}{}{LAST}\n", line(&two), line(&one), line(&two)))?;
        assert!(add(&at(&dir), &record("three", 1)));
        let names = |r: &Record| r.of.operator.clone();
        assert_eq!(at(&dir).all("c").iter().map(names).collect::<Vec<_>>(), ["one", "three", "two"]);
        Ok(())
    }

    #[test]
    fn sizes_that_are_near() {
        let of = |operator: &str, elems| record(operator, elems).of;
        let apart = of("dot", 100).apart(&of("dot", 200)).unwrap_or(9.0);
        assert!((apart - 2f64.ln()).abs() < 1e-9);
        assert_eq!(of("dot", 100).apart(&of("sum", 100)), None);
        assert_eq!(of("dot", 100).differs(&of("dot", 200)), ["size or dtype"]);
    }
}
