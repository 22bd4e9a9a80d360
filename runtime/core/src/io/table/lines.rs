//! The columns of JSON lines: an object a line, whose keys are the names of the columns.

use super::cells::{Cells, Column, Stretch, put_int, put_missing, spelled};
use super::part::{Failed, Index};
use super::records::{Form, Record, Sink};
use crate::fault::{Fault, shown};
use crate::io::json::int_of;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::io::Read;
use tessera_base::DType;

/// Which keys are read, and as what.
pub struct Keys<'a> {
    pub wanted: &'a [Column],
    pub missing: Option<i64>,
    /// The name of the file.
    pub file: &'a str,
    /// The names of the columns as a program would spell them.
    spelled: Vec<String>,
}

impl<'a> Keys<'a> {
    pub fn new(wanted: &'a [Column], missing: Option<i64>, file: &'a str) -> Keys<'a> {
        Keys { wanted, missing, file, spelled: wanted.iter().map(|c| spelled(&c.name)).collect() }
    }

    /// What takes lines of the file.
    pub fn objects(&self) -> Objects<'_> {
        Objects { keys: self, rows: Stretch::of(self.wanted.iter().map(|c| c.kind)), names: Names::of(self.wanted) }
    }
}

/// Keys that are remembered. Where each line has others, as where they are numbers of customers, no more are.
const MET: usize = 1024;

/// The keys that lines have, and which columns are among them.
#[derive(Clone, Debug)]
pub struct Names {
    found: Vec<bool>,
    /// In the order in which they came.
    met: Vec<String>,
    /// The columns of those that are no name of one.
    columns: BTreeMap<String, Option<usize>>,
}

impl Names {
    pub fn of(wanted: &[Column]) -> Names {
        Names { found: vec![false; wanted.len()], met: vec![], columns: BTreeMap::new() }
    }

    /// The column of a key, and whether that is its very name.
    fn column(&mut self, key: &str, keys: &Keys<'_>) -> Option<(usize, bool)> {
        if let Some(at) = keys.wanted.iter().position(|c| c.name == key) {
            if !self.found[at] {
                self.found[at] = true;
                self.met.push(key.to_owned());
            }
            return Some((at, true));
        }
        if let Some(at) = self.columns.get(key) {
            return at.map(|at| (at, false));
        }
        let spelled = spelled(key);
        let at = keys.spelled.iter().position(|c| *c == spelled);
        if let Some(at) = at {
            self.found[at] = true;
        }
        if self.columns.len() < MET {
            self.columns.insert(key.to_owned(), at);
            self.met.push(key.to_owned());
        }
        at.map(|at| (at, false))
    }

    /// Adds those of lines that follow.
    pub fn join(&mut self, more: Names) {
        for (found, more) in self.found.iter_mut().zip(more.found) {
            *found |= more;
        }
        for key in more.met {
            if self.columns.len() < MET && self.columns.insert(key.clone(), None).is_none() {
                self.met.push(key);
            }
        }
    }

    /// A column of which no line has a key.
    pub fn absent(&self) -> Option<usize> {
        self.found.iter().position(|found| !found)
    }

    pub fn met(&self) -> &[String] {
        &self.met
    }
}

/// The keys of all lines of a text, gone through with little of it in memory. What is no object has none.
///
/// # Errors
/// Where the text cannot be read.
pub fn names(text: impl Read, wanted: &[Column]) -> Result<Names, Failed> {
    let keys = Keys::new(wanted, None, "");
    let mut names = Names::of(wanted);
    Index::with(text, Form::Line, &mut |line| {
        if serde_json::from_slice::<IgnoredAny>(line).is_ok() {
            let row = Row { keys: &keys, names: &mut names };
            let _ = row.deserialize(&mut serde_json::Deserializer::from_slice(line));
        }
    })?;
    Ok(names)
}

/// The columns of some lines.
pub struct Objects<'a> {
    keys: &'a Keys<'a>,
    pub rows: Stretch,
    pub names: Names,
}

impl Sink for Objects<'_> {
    fn expect(&mut self, rows: usize) {
        self.rows.expect(rows);
    }

    fn take(&mut self, record: &Record, text: &[u8], line: &dyn Fn() -> usize) -> Result<(), Fault> {
        let Keys { wanted, missing, file, .. } = self.keys;
        let unreadable = |e: serde_json::Error| {
            // The parser's line is always the first one.
            let why = e.to_string().replace(" at line 1 column", " at column");
            Fault::new(707, format!("line {} of `{file}` is not readable JSON: {why}", line()))
        };
        let mut json = serde_json::Deserializer::from_slice(record.cell(text, 0));
        let row = Row { keys: self.keys, names: &mut self.names };
        let found = row.deserialize(&mut json).and_then(|row| json.end().map(|()| row)).map_err(unreadable)?;
        for ((column, cells), found) in wanted.iter().zip(&mut self.rows.cells).zip(found) {
            let place = || format!("line {}, `{}` of `{file}`", line(), shown(&column.name));
            put(cells, found, *missing, place)?;
        }
        self.rows.count += 1;
        Ok(())
    }
}

/// Appends a value, of which there may be none, to its column.
fn put(cells: &mut Cells, found: Option<Value>, missing: Option<i64>, place: impl Fn() -> String) -> Result<(), Fault> {
    let found = found.unwrap_or(Value::Null);
    let right = match (&mut *cells, &found) {
        (Cells::Texts(texts), Value::String(s)) => {
            texts.push(s);
            true
        }
        (Cells::Texts(texts), Value::Null) => {
            texts.push("");
            true
        }
        (Cells::Numbers(dtype, data), Value::Null) => return put_missing(*dtype, missing, data, place),
        (Cells::Numbers(DType::Bool, data), Value::Bool(b)) => {
            data.push(u8::from(*b));
            true
        }
        (Cells::Numbers(DType::F64, data), Value::Number(n)) => {
            n.as_f64().map(|x| data.extend(x.to_le_bytes())).is_some()
        }
        (Cells::Numbers(DType::F32, data), Value::Number(n)) => {
            n.as_f64().map(|x| data.extend((x as f32).to_le_bytes())).is_some()
        }
        (Cells::Numbers(DType::Bool, _), _) => false,
        (Cells::Numbers(dtype, data), Value::Number(n)) => int_of(n).is_some_and(|n| put_int(n, *dtype, data)),
        _ => false,
    };
    if right {
        return Ok(());
    }
    let wanted = match cells {
        Cells::Numbers(dtype, _) => format!("a number of type {dtype}"),
        Cells::Texts(_) => "a text".into(),
    };
    let text = found.to_string();
    let found = if text.chars().count() > 40 { "a long value".to_owned() } else { format!("`{}`", shown(text)) };
    Err(Fault::new(707, format!("{}: {found} is not {wanted}", place())))
}

/// The values of an object for the columns, by their keys.
struct Row<'a, 'k> {
    keys: &'a Keys<'k>,
    names: &'a mut Names,
}

impl<'de> DeserializeSeed<'de> for Row<'_, '_> {
    type Value = Vec<Option<Value>>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Row<'_, '_> {
    type Value = Vec<Option<Value>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with the columns as its keys")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Self::Value, A::Error> {
        let mut out: Vec<Option<(Value, bool)>> = vec![None; self.keys.wanted.len()];
        while let Some(key) = object.next_key::<Cow<'_, str>>()? {
            let column = self.names.column(&key, self.keys);
            match column.map(|(at, exact)| (at, exact, out[at].as_ref().map(|(_, exact)| *exact))) {
                Some((_, true, Some(true))) => {
                    return Err(serde::de::Error::custom(format!("`{}` is there twice", shown(&*key))));
                }
                Some((at, false, Some(false))) => {
                    let name = shown(&self.keys.wanted[at].name);
                    return Err(serde::de::Error::custom(format!("more than one key is the column `{name}`")));
                }
                // The very name counts before what is spelled so.
                None | Some((_, false, Some(true))) => {
                    object.next_value::<IgnoredAny>()?;
                }
                Some((at, exact, _)) => out[at] = Some((object.next_value()?, exact)),
            }
        }
        Ok(out.into_iter().map(|value| value.map(|(value, _)| value)).collect())
    }
}
