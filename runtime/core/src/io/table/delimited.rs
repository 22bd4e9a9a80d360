//! The columns of comma-separated text.

use super::cells::{Cells, Column, Kind, Stretch, number, place, put_missing};
use super::records::{Record, Sink};
use crate::fault::{Fault, shown};
use std::ops::Range;

/// The texts that stand for a missing number, beside an empty cell.
const MISSING: [&str; 7] = ["NA", "N/A", "NaN", "nan", "null", "NULL", "None"];

/// Which cells of a line are read, and as what.
pub struct Heading<'a> {
    /// The names in the first line.
    names: Vec<String>,
    /// Where each column that is asked for stands.
    places: Vec<(usize, Kind)>,
    missing: Option<i64>,
    /// The name of the file.
    file: &'a str,
}

impl<'a> Heading<'a> {
    /// By the first line of a file.
    ///
    /// # Errors
    /// E0707 where a column is missing in it.
    pub fn new(
        first: &Record,
        text: &[u8],
        wanted: &[Column],
        missing: Option<i64>,
        file: &'a str,
    ) -> Result<Heading<'a>, Fault> {
        let name = |i| String::from_utf8_lossy(first.cell(text, i)).trim().to_owned();
        let names: Vec<String> = (0..first.len()).map(name).collect();
        let places = wanted.iter().map(|c| Ok((place(&names, &c.name, file)?, c.kind)));
        Ok(Heading { places: places.collect::<Result<_, Fault>>()?, names, missing, file })
    }

    /// What takes lines of the file.
    pub fn lines(&self) -> Lines<'_> {
        Lines { heading: self, rows: Stretch::of(self.places.iter().map(|(_, kind)| *kind)) }
    }
}

/// The columns of some lines.
pub struct Lines<'a> {
    heading: &'a Heading<'a>,
    pub rows: Stretch,
}

impl Sink for Lines<'_> {
    fn expect(&mut self, rows: usize) {
        self.rows.expect(rows);
    }

    fn take(&mut self, record: &Record, text: &[u8], line: &dyn Fn() -> usize) -> Result<(), Fault> {
        let Heading { names, places, missing, file } = self.heading;
        if record.len() != names.len() {
            let text =
                format!("line {} of `{file}` has {} cells, the heading has {}", line(), record.len(), names.len());
            return Err(Fault::new(707, text));
        }
        for ((at, _), cells) in places.iter().zip(&mut self.rows.cells) {
            let cell = record.cell(text, *at);
            let place = || format!("line {}, column `{}` of `{file}`", line(), shown(&names[*at]));
            let text =
                std::str::from_utf8(cell).map_err(|_| Fault::new(707, format!("{} is not UTF-8 text", place())))?;
            match cells {
                Cells::Texts(texts) => texts.push(text),
                Cells::Numbers(dtype, data) => {
                    let text = text.trim();
                    if number(text, *dtype, data).is_none() {
                        if !text.is_empty() && !MISSING.contains(&text) {
                            let text = format!("{}: `{}` is not a number of type {dtype}", place(), shown(text));
                            return Err(Fault::new(707, text));
                        }
                        put_missing(*dtype, *missing, data, place)?;
                    }
                }
            }
        }
        self.rows.count += 1;
        Ok(())
    }
}

/// The line of what comes at a byte. Empty lines before it are behind it.
pub fn line_at(text: &[u8], start: usize) -> usize {
    let rest = text.get(start..).unwrap_or_default();
    let start = start + rest.iter().take_while(|b| matches!(b, b'\r' | b'\n')).count();
    1 + line_ends(text, 0..start)
}

/// How many lines end in a range.
pub fn line_ends(text: &[u8], range: Range<usize>) -> usize {
    let ends = |i: &usize| text[*i] == b'\n' || (text[*i] == b'\r' && text.get(i + 1) != Some(&b'\n'));
    (range.start..range.end.min(text.len())).filter(ends).count()
}
