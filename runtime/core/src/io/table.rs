//! Tables: columns by name, numbers with their element types and texts, cells that are missing. As comma-separated text, as JSON
//! lines and as Parquet.

mod asked;
mod cells;
pub(super) mod records;
mod delimited;
mod lines;
mod part;
mod parquet;
mod parquet_write;
mod write;

pub(super) use asked::MARK;
pub use asked::{Asked, Ending, Rows, ending};
pub use cells::Columns;
pub(super) use cells::{Cells, Kind, Stretch, number};
pub(super) use delimited::line_at;
pub(super) use records::{Form, Reading, Record, Sink};
pub use write::write;

use super::files;
use super::unchanged::{self, State, changed};
use crate::buffer::Buffer;
use crate::fault::{Fault, shown};
use crate::memory::memory_limit;
use crate::pool::Pool;
use asked::too_many;
use cells::{Column, described, no_column};
use delimited::{Heading, Lines, line_ends};
use lines::{Keys, Names, Objects};
use part::{Failed, Index};
use records::OpenQuote;
use std::fs::{File, Metadata};
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// Bytes that a thread reads at a time.
const READ_BYTES: usize = 1 << 22;

fn form(path: &Path, delimiter: u8) -> Form {
    if ending(path) == Ending::Lines { Form::Line } else { Form::Delimited(delimiter) }
}

/// A file that is open, and what it was then.
struct Opened {
    file: File,
    meta: Metadata,
}

impl Opened {
    fn new(path: &Path) -> Result<Opened, Fault> {
        let file = files::open(path)?.0.into_inner();
        let meta = file.metadata().map_err(|e| files::read_fault(path, &e))?;
        Ok(Opened { file, meta })
    }

    /// Whether it begins with these bytes. What flows by is left as it is.
    fn begins_with(&self, magic: &[u8]) -> bool {
        let mut first = vec![0; magic.len()];
        self.meta.is_file() && self.file.read_exact_at(&mut first, 0).is_ok() && first == magic
    }

    /// Whether parts of it can be read by themselves.
    fn has_parts(&self) -> bool {
        self.meta.is_file() && self.meta.len() > 0 && !self.begins_with(&[0x1f, 0x8b])
    }

    /// Whether nothing was written to it since it was opened.
    fn unchanged(&self, path: &Path) -> Result<(), Fault> {
        let now = self.file.metadata().map_err(|e| files::read_fault(path, &e))?;
        if State::of(&now) == State::of(&self.meta) { Ok(()) } else { Err(changed(path)) }
    }

    /// Bytes of it.
    fn part(&self, path: &Path, from: u64, to: u64, pool: &Pool) -> Result<Buffer, Fault> {
        let len = to.saturating_sub(from);
        if len > memory_limit() {
            return Err(files::too_large(path, "holds", len));
        }
        // The memory of tensors comes in large pages, and is used again.
        let mut bytes = Buffer::new(len, false)?;
        let failed = Mutex::new(None);
        pool.each_chunk(bytes.bytes_mut(), READ_BYTES, &|i, chunk| {
            if let Err(e) = self.file.read_exact_at(chunk, from + (i * READ_BYTES) as u64) {
                failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(e);
            }
        });
        match failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
            None => Ok(bytes),
            Some(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => Err(changed(path)),
            Some(e) => Err(files::read_fault(path, &e)),
        }
    }

    fn index(&self, path: &Path, form: Form) -> Result<Index, Fault> {
        Index::of(Flow { file: &self.file, at: 0 }, form).map_err(|failed| self.no_index(path, failed))
    }

    fn no_index(&self, path: &Path, failed: Failed) -> Fault {
        match failed {
            Failed::Read(e) => files::read_fault(path, &e),
            Failed::Memory(fault) => fault,
            Failed::Open(at) => open_quote(&shown(path), self.lines_before(at) + 1),
        }
    }

    /// How many lines end before a byte.
    fn lines_before(&self, to: u64) -> usize {
        let (mut lines, mut last) = (0, 0);
        let mut block = vec![0; 1 << 16];
        let mut flow = Flow { file: &self.file, at: 0 }.take(to);
        while let Ok(n @ 1..) = flow.read(&mut block) {
            lines += line_ends(&block[..n], 0..n);
            // A line end of two signs that is cut was counted for its first one.
            lines -= usize::from(last == b'\r' && block[0] == b'\n');
            last = block[n - 1];
        }
        lines
    }
}

/// The bytes of a file from a place on.
struct Flow<'a> {
    file: &'a File,
    at: u64,
}

impl Read for Flow<'_> {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        let n = self.file.read_at(buf, self.at)?;
        self.at += n as u64;
        Ok(n)
    }
}

/// Reads the rows of the columns that are asked for.
///
/// A Parquet file is known by what it begins with (and is damaged where only its name says so), JSON lines by the name, and anything else is comma-separated text with a line
/// of names. Of a file that has parts (no pipe, not packed) only what holds the rows is read.
///
/// # Errors
/// E0706 where the file cannot be read, E0707 where it lacks a column, a row is longer or shorter than the heading, a cell is not
/// of its column's type (with its place), a quote is never closed, or the file changes meanwhile. E0710 where the columns take
/// more memory than can be had. E0711 where `missing` is no value of a column's type.
pub fn read(path: &Path, asked: &Asked, pool: &Pool) -> Result<Table, Fault> {
    let opened = Opened::new(path)?;
    let state = opened.meta.is_file().then(|| State::of(&opened.meta));
    let (columns, total) = rows_of(path, opened, asked, pool)?;
    Ok(Table { columns, total, state })
}

/// What was read of a table, and of which one.
#[derive(Clone)]
pub struct Table {
    pub columns: Columns,
    /// How many rows the whole table has.
    total: u64,
    /// The file as it was; what flows by has no state.
    state: Option<State>,
}

impl Table {
    /// The columns, where they are of the table that the program means: the one whose parts it has read before, with as many
    /// rows as it has counted.
    ///
    /// # Errors
    /// E0707 where they are not.
    pub fn checked(self, path: &Path, rows: Rows, counted: Option<u64>) -> Result<Columns, Fault> {
        if let Some(state) = self.state.filter(|_| rows != Rows::ALL) {
            unchanged::same(path, state)?;
        }
        match counted {
            Some(n) if n != self.total => {
                let text = format!("`{}` had {n} rows when they were counted, and has {} now", shown(path), self.total);
                Err(Fault::new(707, text).note("what was read before and what comes now do not belong together"))
            }
            _ => Ok(self.columns),
        }
    }
}

/// The columns of the rows that are asked for, and how many rows there are.
fn rows_of(path: &Path, opened: Opened, asked: &Asked, pool: &Pool) -> Result<(Columns, u64), Fault> {
    let wanted = described(asked.columns);
    let in_part = asked.rows != Rows::ALL;
    if is_parquet(path, &opened)? {
        let file = opened.file.try_clone().map_err(|e| files::read_fault(path, &e))?;
        let source = parquet::Source::open(path, file, opened.meta.len());
        let read = source.and_then(|s| Ok((s.read(path, &wanted, asked.missing, asked.rows, pool)?, s.rows())));
        opened.unchanged(path)?;
        return read;
    }
    let form = form(path, asked.delimiter);
    if !in_part && opened.has_parts() {
        let bytes = opened.part(path, 0, opened.meta.len(), pool)?;
        let read = whole(path, bytes.bytes(), form, &wanted, asked, pool);
        opened.unchanged(path)?;
        let columns = read?;
        let rows = columns.rows();
        return Ok((columns, rows));
    }
    if !opened.has_parts() {
        drop(opened);
        let bytes = files::read_all(path)?;
        let columns = whole(path, &bytes, form, &wanted, asked, pool)?;
        let rows = if in_part { index_of(path, &bytes, form)?.rows } else { columns.rows() };
        return Ok((columns, rows));
    }
    let index = part::index(path, State::of(&opened.meta), form, || opened.index(path, form))?;
    let (around, before) = index.around(asked.rows);
    let part = opened.part(path, around.start, around.end, pool)?;
    let bytes = part.bytes();
    let from = part::behind(bytes, 0, before, form);
    let to = part::behind(bytes, from, asked.rows.count, form);
    let heading = opened.part(path, index.heading.start, index.heading.end, pool)?;
    let line = |at| opened.lines_before(around.start) + line_at(bytes, at);
    let all = || {
        let flow = Flow { file: &opened.file, at: 0 };
        index.names(asked.columns, || lines::names(flow, &wanted).map_err(|failed| opened.no_index(path, failed)))
    };
    let text = Text { path, form, pool, line: &line, all: Some(&all) };
    let read = text.read(heading.bytes(), &bytes[..to], from, &wanted, asked.missing);
    opened.unchanged(path)?;
    Ok((read?, index.rows))
}

/// Whether a file is one of Parquet.
///
/// # Errors
/// E0707 where only its name says so.
fn is_parquet(path: &Path, opened: &Opened) -> Result<bool, Fault> {
    match (opened.begins_with(parquet::MAGIC), asked::ending(path)) {
        (false, asked::Ending::Parquet) => Err(parquet::damaged(&shown(path), "it does not begin with `PAR1`")),
        (begins, _) => Ok(begins),
    }
}

/// How many rows a table has. A file that has parts is gone through once, with little of it in memory.
///
/// # Errors
/// E0706 where the file cannot be read, E0707 where it is damaged.
pub fn count_rows(path: &Path, delimiter: u8) -> Result<u64, Fault> {
    let opened = Opened::new(path)?;
    if opened.meta.is_file() {
        unchanged::renew(path, State::of(&opened.meta));
    }
    if is_parquet(path, &opened)? {
        return Ok(parquet::Source::open(path, opened.file, opened.meta.len())?.rows());
    }
    let form = form(path, delimiter);
    if opened.has_parts() {
        return Ok(part::index(path, State::of(&opened.meta), form, || opened.index(path, form))?.rows);
    }
    drop(opened);
    let bytes = files::read_all(path)?;
    Ok(index_of(path, &bytes, form)?.rows)
}

fn index_of(path: &Path, bytes: &[u8], form: Form) -> Result<Index, Fault> {
    Index::of(bytes, form).map_err(|failed| no_index_of(path, bytes, failed))
}

fn no_index_of(path: &Path, bytes: &[u8], failed: Failed) -> Fault {
    match failed {
        Failed::Read(e) => files::read_fault(path, &e),
        Failed::Memory(fault) => fault,
        Failed::Open(at) => open_quote(&shown(path), line_at(bytes, at as usize)),
    }
}

/// Reads a table of which all is in memory.
fn whole(
    path: &Path,
    bytes: &[u8],
    form: Form,
    wanted: &[Column],
    asked: &Asked,
    pool: &Pool,
) -> Result<Columns, Fault> {
    let name = shown(path);
    let start = if bytes.starts_with(MARK) { MARK.len() } else { 0 };
    let line = |at| line_at(bytes, at);
    let all = || lines::names(bytes, wanted).map_err(|failed| no_index_of(path, bytes, failed));
    let in_part = asked.rows != Rows::ALL;
    let text = Text { path, form, pool, line: &line, all: in_part.then_some(&all as &dyn Fn() -> _) };
    let heading_end = match form {
        Form::Line => start,
        Form::Delimited(_) => {
            let Some(first) = records::begin(bytes, start, bytes.len(), form) else {
                return Err(Fault::new(707, format!("`{name}` is empty: a table begins with a line of names")));
            };
            Record::default().read(bytes, first, form).map_err(|OpenQuote(at)| open_quote(&name, line(at)))?
        }
    };
    let heading = &bytes[start..heading_end];
    if !in_part {
        return text.read(heading, bytes, heading_end, wanted, asked.missing);
    }
    let from = part::behind(bytes, heading_end, asked.rows.first, form);
    let to = part::behind(bytes, from, asked.rows.count, form);
    text.read(heading, &bytes[..to], from, wanted, asked.missing)
}

/// A text with rows.
struct Text<'a> {
    path: &'a Path,
    form: Form,
    pool: &'a Pool,
    line: &'a (dyn Fn(usize) -> usize + Sync),
    /// The keys of all lines, where only some of them are read.
    all: Option<&'a dyn Fn() -> Result<Names, Fault>>,
}

impl Text<'_> {
    /// The columns of the rows from a byte on.
    fn read(
        &self,
        heading: &[u8],
        text: &[u8],
        from: usize,
        wanted: &[Column],
        missing: Option<i64>,
    ) -> Result<Columns, Fault> {
        let name = shown(self.path);
        let open = |line| open_quote(&name, line);
        let reading = Reading { text, form: self.form, pool: self.pool, line: self.line, open: &open };
        let mut out = Columns::of(wanted);
        let mut add = |rows| {
            out.push(rows);
            if text.len() as u64 + out.bytes() > memory_limit() { Err(too_many(self.path)) } else { Ok(()) }
        };
        if self.form == Form::Line {
            let keys = Keys::new(wanted, missing, &name);
            let mut met = Names::of(wanted);
            let read = reading.each(from, &|| keys.objects(), |objects: Objects, _| {
                met.join(objects.names);
                add(objects.rows)
            });
            // A key that no line has is none of the file, which counts before a value that is missing; a file without lines has
            // all that are asked for.
            if read.is_err() || out.rows() > 0 && met.absent().is_some() {
                let all = match self.all {
                    Some(all) => all()?,
                    None if read.is_err() => lines::names(text, wanted).unwrap_or(met),
                    None => met,
                };
                if let Some(column) = all.absent().filter(|_| !all.met().is_empty() || read.is_ok()) {
                    return Err(no_column(all.met(), &wanted[column].name, &name));
                }
            }
            read?;
        } else {
            let mut first = Record::default();
            let start = records::begin(heading, 0, heading.len(), self.form).unwrap_or(0);
            first.read(heading, start, self.form).map_err(|_| open(1))?;
            let names = Heading::new(&first, heading, wanted, missing, &name)?;
            reading.each(from, &|| names.lines(), |lines: Lines, _| add(lines.rows))?;
        }
        Ok(out)
    }
}

/// A quote that goes on to the end of the file: what would come behind it would be part of its cell.
pub(super) fn open_quote(name: &str, line: usize) -> Fault {
    let text = format!("`{name}` is not a readable table: the quote that opens on line {line} is never closed");
    Fault::new(707, text).note("a quote inside a quoted cell is written twice: `\"\"`")
}

#[cfg(test)]
mod tests {
    use super::*;
    fn told(bytes: &[u8], columns: &str, missing: Option<i64>) -> Result<Columns, String> {
        let asked = Asked { columns, delimiter: b',', missing, rows: Rows::ALL };
        let read = whole(Path::new("t.csv"), bytes, Form::Delimited(b','), &described(columns), &asked, &Pool::new(2));
        read.map_err(|f| f.message)
    }

    #[test]
    fn columns_are_found_by_name_and_mistakes_are_placed() {
        let text = b"\xef\xbb\xbfName,Age in years,n\n\"Ann, B\",12.5,3\nBob,,NA\n";
        let table = told(text, "age_in_years f64\nName str\nn i64", Some(-1)).unwrap();
        let parts = table.parts();
        let [Cells::Numbers(_, age), Cells::Texts(names), Cells::Numbers(_, n)] = &parts[0].cells[..] else { panic!() };
        assert_eq!((table.rows(), age[..8].to_vec()), (2, 12.5f64.to_le_bytes().to_vec()));
        assert_eq!(names.iter().collect::<Vec<_>>(), ["Ann, B", "Bob"]);
        assert_eq!(*n, [3i64.to_le_bytes(), (-1i64).to_le_bytes()].concat());
        let error = |columns| told(text, columns, None).err().unwrap_or_default();
        assert_eq!(error("n i64"), "line 3, column `n` of `t.csv` has no value, and i64 has none that says so");
        assert_eq!(error("Name f32"), "line 2, column `Name` of `t.csv`: `Ann, B` is not a number of type f32");
        assert_eq!(error("ages f64"), "`t.csv` has no column `ages`");
    }

    #[test]
    fn a_quote_that_is_never_closed_is_placed() {
        let wrong = |text: &str| told(text.as_bytes(), "a str", None).err().unwrap_or_default();
        let open =
            |line| format!("`t.csv` is not a readable table: the quote that opens on line {line} is never closed");
        assert_eq!(wrong("a,b\r\n1,x\r\n\r\n\"2,y\r\n3,z\r\n"), open(4));
        assert_eq!(wrong("a,b\n1,\"x\n2,y\n"), open(2));
        assert_eq!(wrong("a,b\n\"p\nq\",\"x\"\"\n2,y"), open(3));
        assert_eq!(wrong("\"a\n1\n"), open(1));
        assert_eq!(wrong("a\n\""), open(2));
        for fine in ["a\n\"1\"", "a\n\"1\"\n", "a\n\"1\n2\"\r\n\r\n", "a\nx\"y\n", "a\n", "a"] {
            assert_eq!(wrong(fine), "", "{fine}");
        }
    }

    #[test]
    fn what_is_cut_off_anywhere_ends_nothing() {
        let text = "a,b\n\"x\n\"\"y\",1\nü,2\n".as_bytes();
        for cut in 0..text.len() {
            if let Err(message) = told(&text[..cut], "a str\nb f64", None) {
                assert!(message.contains("`t.csv`"), "{message}");
            }
        }
    }
}
