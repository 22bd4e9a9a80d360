//! Texts that are records one after the other: comma-separated lines (RFC 4180) and lines of JSON. They are parsed on all
//! threads, in parts of a size that the number of threads does not change, and taken in their order.

use crate::fault::Fault;
use crate::pool::Pool;
use memchr::{memchr, memchr_iter, memchr3};
use std::ops::Range;

/// Bytes of a part: many for each thread, and few enough that what is made of one stays in a cache.
const PART: usize = 1 << 20;
/// Parts that are parsed before they are taken: what bounds the memory beside the columns.
const WAVE: usize = 64;

/// Rows that room is made for at once, at most.
const ROWS: usize = 1 << 16;

/// What a record is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// Cells between a delimiter, in quotes where they hold one; lines that are empty are none.
    Delimited(u8),
    /// A line, as one cell.
    Line,
}

/// The cells of one record. The same one is used for many.
#[derive(Default)]
pub struct Record {
    /// Where they are, in the text or in `unquoted`.
    cells: Vec<Range<usize>>,
    /// The cells of a record that has a quote, without the quotes.
    unquoted: Vec<u8>,
    quoted: bool,
}

/// A quote that is never closed, and the byte at which it opens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpenQuote(pub usize);

impl Record {
    /// How many cells there are.
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// A cell of a record of this text; empty where there is none.
    pub fn cell<'a>(&'a self, text: &'a [u8], i: usize) -> &'a [u8] {
        let from = if self.quoted { &self.unquoted[..] } else { text };
        self.cells.get(i).and_then(|range| from.get(range.clone())).unwrap_or_default()
    }

    /// Reads the record that begins at a byte; where the next one begins, or a line without anything before it.
    pub fn read(&mut self, text: &[u8], at: usize, form: Form) -> Result<usize, OpenQuote> {
        self.cells.clear();
        self.quoted = false;
        let rest = text.get(at..).unwrap_or_default();
        let delimiter = match form {
            Form::Line => {
                let end = at + memchr(b'\n', rest).unwrap_or(rest.len());
                self.cells.push(at..end);
                return Ok((end + 1).min(text.len()));
            }
            Form::Delimited(delimiter) => delimiter,
        };
        // Most lines have no quote: one search finds their end and says so.
        let stop = memchr3(b'"', b'\n', b'\r', rest);
        if stop.is_some_and(|i| rest[i] == b'"') {
            return self.unquote(text, at, delimiter);
        }
        let line = &rest[..stop.unwrap_or(rest.len())];
        let mut from = at;
        for i in memchr_iter(delimiter, line) {
            self.cells.push(from..at + i);
            from = at + i + 1;
        }
        let end = at + line.len();
        self.cells.push(from..end);
        Ok(behind(text, end))
    }

    /// A record with quotes: those at the beginning of a cell are put around it, two in it stand for one, and elsewhere they
    /// are what they are.
    fn unquote(&mut self, text: &[u8], at: usize, delimiter: u8) -> Result<usize, OpenQuote> {
        self.quoted = true;
        self.unquoted.clear();
        let (mut i, mut from) = (at, 0);
        loop {
            if text.get(i) == Some(&b'"') {
                let open = i;
                i += 1;
                loop {
                    let rest = text.get(i..).unwrap_or_default();
                    let Some(close) = memchr(b'"', rest) else { return Err(OpenQuote(open)) };
                    self.unquoted.extend(&rest[..close]);
                    i += close + 1;
                    if text.get(i) != Some(&b'"') {
                        break;
                    }
                    self.unquoted.push(b'"');
                    i += 1;
                }
            }
            let rest = text.get(i..).unwrap_or_default();
            let plain = memchr3(delimiter, b'\n', b'\r', rest).unwrap_or(rest.len());
            self.unquoted.extend(&rest[..plain]);
            i += plain;
            self.cells.push(from..self.unquoted.len());
            from = self.unquoted.len();
            if text.get(i) != Some(&delimiter) {
                return Ok(behind(text, i));
            }
            i += 1;
        }
    }
}

/// What comes behind the end of a line.
fn behind(text: &[u8], end: usize) -> usize {
    let two = text.get(end) == Some(&b'\r') && text.get(end + 1) == Some(&b'\n');
    (end + if two { 2 } else { 1 }).min(text.len())
}

/// Where the next record begins, if one does before a byte: lines without anything are none.
pub fn begin(text: &[u8], at: usize, stop: usize, form: Form) -> Option<usize> {
    let rest = text.get(at..stop)?;
    let blank = |b: &u8| match form {
        Form::Delimited(_) => matches!(b, b'\n' | b'\r'),
        Form::Line => matches!(b, b'\n' | b'\r' | b' ' | b'\t'),
    };
    rest.iter().position(|b| !blank(b)).map(|i| at + i)
}

/// What takes records.
pub trait Sink: Send + Sync {
    /// About how many records will come, before the first one.
    fn expect(&mut self, rows: usize);

    /// Takes a record of a text that begins at a byte.
    ///
    /// # Errors
    /// What is wrong with it; `line` says on which line it stands.
    fn take(&mut self, record: &Record, text: &[u8], line: &dyn Fn() -> usize) -> Result<(), Fault>;
}

/// What became of the records that begin in a part.
struct Parsed<S> {
    sink: S,
    rows: u64,
    /// Where the record behind the last one begins.
    end: usize,
    stop: Stop,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stop {
    End,
    /// At a record that is wrong, by its beginning.
    Wrong(usize),
    Open(OpenQuote),
    /// A record went on and on: the part most likely begins inside of a quote.
    Lost,
}

fn parse<S: Sink>(text: &[u8], from: usize, stop: usize, form: Form, mut sink: S, may_be_lost: bool) -> Parsed<S> {
    let (mut record, mut at, mut rows) = (Record::default(), from, 0);
    // What is tried looks so far ahead and no further, so that no file makes all parts read all that follows.
    let seen = if may_be_lost { &text[..text.len().min(stop.saturating_add(PART))] } else { text };
    let end = |sink, rows, end, stop| Parsed { sink, rows, end, stop };
    while let Some(begin) = begin(text, at, stop, form) {
        let next = match record.read(seen, begin, form) {
            Ok(next) if next == seen.len() && seen.len() < text.len() => return end(sink, rows, begin, Stop::Lost),
            Ok(next) => next,
            Err(_) if seen.len() < text.len() => return end(sink, rows, begin, Stop::Lost),
            Err(open) => return end(sink, rows, begin, Stop::Open(open)),
        };
        if rows == 0 {
            sink.expect(((stop - begin) / (next - begin).max(1)).min(ROWS));
        }
        if sink.take(&record, seen, &|| 0).is_err() {
            return end(sink, rows, begin, Stop::Wrong(begin));
        }
        rows += 1;
        at = next;
    }
    end(sink, rows, at.max(stop), Stop::End)
}

/// How a text with records is read.
pub struct Reading<'a> {
    pub text: &'a [u8],
    pub form: Form,
    pub pool: &'a Pool,
    /// The line of a byte.
    pub line: &'a (dyn Fn(usize) -> usize + Sync),
    /// What is said of a quote that is never closed, by the line on which it opens.
    pub open: &'a (dyn Fn(usize) -> Fault + Sync),
}

impl Reading<'_> {
    /// Gives the records from a byte on to sinks that `make` makes, and each sink with the number of its records to `done`,
    /// in the order of the text. The same records go into the same sink whatever the number of threads.
    ///
    /// # Errors
    /// The fault of the first record that is wrong, or what `done` gives.
    pub fn each<S: Sink>(
        &self,
        from: usize,
        make: &(dyn Fn() -> S + Sync),
        mut done: impl FnMut(S, u64) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let text = self.text;
        let mut at = from;
        let mut begin = from;
        while begin < text.len() {
            let mut cuts = vec![begin];
            while cuts.len() <= WAVE && cuts[cuts.len() - 1] < text.len() {
                cuts.push(cut(text, cuts[cuts.len() - 1]));
            }
            let parts = self.pool.map(cuts.len() - 1, &|i| {
                std::sync::Mutex::new(Some(parse(text, cuts[i], cuts[i + 1], self.form, make(), true)))
            });
            for (i, part) in parts.into_iter().enumerate() {
                let tried = part.into_inner().unwrap_or_else(|e| e.into_inner());
                // A part that begins where the one before ended was read as it is; one inside of a quote is read again.
                let right = tried.filter(|p| at == cuts[i] && p.stop != Stop::Lost);
                let part = match right {
                    Some(part) => part,
                    None => parse(text, at.min(text.len()), cuts[i + 1].max(at), self.form, make(), false),
                };
                match part.stop {
                    Stop::End | Stop::Lost => {}
                    Stop::Open(OpenQuote(open)) => return Err((self.open)((self.line)(open))),
                    Stop::Wrong(record) => return Err(self.wrong(record, make())),
                }
                at = part.end;
                done(part.sink, part.rows)?;
            }
            begin = cuts[cuts.len() - 1];
        }
        Ok(())
    }

    /// What is wrong with a record.
    fn wrong<S: Sink>(&self, at: usize, mut sink: S) -> Fault {
        let mut record = Record::default();
        let line = || (self.line)(at);
        match record.read(self.text, at, self.form) {
            Err(OpenQuote(open)) => (self.open)((self.line)(open)),
            Ok(_) => match sink.take(&record, self.text, &line) {
                Err(fault) => fault,
                Ok(()) => Fault::new(707, format!("line {} could not be read", line())),
            },
        }
    }
}

/// Where a part that begins here ends: behind the end of a line.
fn cut(text: &[u8], from: usize) -> usize {
    let at = from.saturating_add(PART);
    match text.get(at..).and_then(|rest| memchr(b'\n', rest)) {
        Some(i) => at + i + 1,
        None => text.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    /// All cells of all records.
    #[derive(Default)]
    struct All(Vec<Vec<Vec<u8>>>);

    impl Sink for All {
        fn expect(&mut self, _: usize) {}

        fn take(&mut self, record: &Record, text: &[u8], _: &dyn Fn() -> usize) -> Result<(), Fault> {
            self.0.push((0..record.len()).map(|i| record.cell(text, i).to_vec()).collect());
            Ok(())
        }
    }

    fn read(text: &[u8], threads: usize) -> Result<Vec<Vec<Vec<u8>>>, Fault> {
        let pool = Pool::new(threads);
        let open = |line| Fault::new(707, format!("open {line}"));
        let reading = Reading { text, form: Form::Delimited(b','), pool: &pool, line: &|at| at, open: &open };
        let all = Mutex::new(vec![]);
        reading.each(0, &All::default, |sink, rows| {
            assert_eq!(rows as usize, sink.0.len());
            all.lock().map(|mut all| all.extend(sink.0)).map_err(|_| Fault::new(707, ""))
        })?;
        Ok(all.into_inner().unwrap_or_default())
    }

    fn by_the_crate(text: &[u8]) -> Vec<Vec<Vec<u8>>> {
        let rows = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text).into_byte_records();
        rows.flatten().map(|row| row.iter().map(<[u8]>::to_vec).collect()).collect()
    }

    #[test]
    fn records_are_those_of_the_standard() {
        // All texts of seven signs that close their quotes.
        let signs = *b"a,\"\n\r";
        for number in 0..5usize.pow(7) {
            let text: Vec<u8> = (0..7).map(|i| signs[number / 5usize.pow(i) % 5]).collect();
            if let Ok(rows) = read(&text, 1) {
                assert_eq!(rows, by_the_crate(&text), "{:?}", String::from_utf8_lossy(&text));
            }
        }
    }

    #[test]
    fn parts_that_begin_inside_of_a_quote_are_read_again() {
        // Cells with line ends and quotes over the cuts, and one that is longer than a part.
        let mut text = vec![];
        for i in 0..60_000 {
            text.extend(format!("{i},\"a\n\"\"b\"\"\n\",c\n").bytes());
            if i == 30_000 {
                text.extend(format!("\"{}\",x\n", "long\n".repeat(PART / 2)).bytes());
            }
        }
        let wanted = by_the_crate(&text);
        for threads in [1, 3] {
            assert!(read(&text, threads).is_ok_and(|rows| rows == wanted), "{threads}");
        }
        text.extend(b"\"never closed\n");
        let at = text.len() - 14;
        assert_eq!(read(&text, 2).err().map(|f| f.message), Some(format!("open {at}")));
    }
}
