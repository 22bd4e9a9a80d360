//! The columns of JSON lines: an object a line, whose keys are the names of the columns.

use super::cells::{Cells, Column, Stretch, put_int, put_missing};
use super::records::{Record, Sink};
use crate::fault::{Fault, shown};
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;
use std::fmt;
use tessera_base::DType;

/// Which keys are read, and as what.
pub struct Keys<'a> {
    pub wanted: &'a [Column],
    pub missing: Option<i64>,
    /// The name of the file.
    pub file: &'a str,
}

impl Keys<'_> {
    /// What takes lines of the file.
    pub fn objects(&self) -> Objects<'_> {
        Objects { keys: self, rows: Stretch::of(self.wanted.iter().map(|c| c.kind)) }
    }
}

/// The columns of some lines.
pub struct Objects<'a> {
    keys: &'a Keys<'a>,
    pub rows: Stretch,
}

impl Sink for Objects<'_> {
    fn expect(&mut self, rows: usize) {
        self.rows.expect(rows);
    }

    fn take(&mut self, record: &Record, text: &[u8], line: &dyn Fn() -> usize) -> Result<(), Fault> {
        let Keys { wanted, missing, file } = self.keys;
        let unreadable = |e: serde_json::Error| {
            // The parser's line is always the first one.
            let why = e.to_string().replace(" at line 1 column", " at column");
            Fault::new(707, format!("line {} of `{file}` is not readable JSON: {why}", line()))
        };
        let mut json = serde_json::Deserializer::from_slice(record.cell(text, 0));
        let found = Row(wanted).deserialize(&mut json).and_then(|row| json.end().map(|()| row)).map_err(unreadable)?;
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
        (Cells::Numbers(dtype, data), Value::Number(n)) => n.as_i64().is_some_and(|n| put_int(n, *dtype, data)),
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
struct Row<'a>(&'a [Column]);

impl<'de> DeserializeSeed<'de> for Row<'_> {
    type Value = Vec<Option<Value>>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Row<'_> {
    type Value = Vec<Option<Value>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with the columns as its keys")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Self::Value, A::Error> {
        let mut out = vec![None; self.0.len()];
        while let Some(key) = object.next_key::<std::borrow::Cow<'_, str>>()? {
            match self.0.iter().zip(&mut out).find(|(column, _)| column.name == *key) {
                Some((_, Some(_))) => {
                    return Err(serde::de::Error::custom(format!("`{}` is there twice", shown(&*key))));
                }
                Some((_, value)) => *value = Some(object.next_value()?),
                None => {
                    object.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(out)
    }
}
