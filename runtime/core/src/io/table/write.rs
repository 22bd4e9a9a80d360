//! Tables that are written: as comma-separated text, as JSON lines and as Parquet, by the ending of the name.

use super::super::files::{write_atomically, write_fault};
use super::asked::{Ending, ending};
use super::cells::Written;
use super::parquet_write;
use crate::fault::{Fault, shown};
use crate::host_value::HostValue;
use crate::tensor_print::{Element, element};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

/// Writes columns with their names, all of one length. What is there under the path is replaced when all of it is written.
///
/// # Errors
/// E0706 where the file cannot be written, E0707 where there are no columns, or a float of JSON lines is infinite, E0708 where they differ in length.
pub fn write(path: &Path, names: &[Arc<str>], columns: &[HostValue], delimiter: u8) -> Result<(), Fault> {
    let mut written = vec![];
    for column in columns {
        match column {
            HostValue::Tensor(t) => {
                // Where it is not here, this says so or brings it.
                t.host()?;
                written.push(Written::Numbers(t));
            }
            HostValue::List(texts) => written.push(Written::Texts(texts)),
            _ => return Err(Fault::new(707, format!("`{}` is to hold columns, and one is none", shown(path)))),
        }
    }
    let Some(first) = written.first().map(Written::len) else {
        return Err(Fault::new(707, format!("`{}` is to hold a table, and this one has no columns", shown(path))));
    };
    if let Some(other) = written.iter().position(|c| c.len() != first) {
        let (a, b, rows) = (&names[0], &names[other], written[other].len());
        return Err(Fault::new(
            708,
            format!("the columns of a table have one length: `{a}` has {first} rows, `{b}` has {rows}"),
        ));
    }
    let packed = path.extension().is_some_and(|e| e.eq_ignore_ascii_case("gz"));
    write_atomically(path, |out| match ending(path) {
        Ending::Parquet => parquet_write::write(out, names, &written, first).map_err(|e| write_fault(path, &e)),
        text => {
            let mut zipped;
            let to: &mut dyn Write = if packed {
                zipped = GzEncoder::new(out, Compression::default());
                &mut zipped
            } else {
                out
            };
            let done = if text == Ending::Lines {
                lines(to, path, names, &written, first)
            } else {
                delimited(to, names, &written, first, delimiter).map_err(|e| write_fault(path, &e))
            };
            // The end of packed data is written with the last of it.
            done.and_then(|()| to.flush().map_err(|e| write_fault(path, &e)))
        }
    })
}

/// A heading, and a line for each row.
fn delimited(
    out: &mut dyn Write,
    names: &[Arc<str>],
    columns: &[Written<'_>],
    rows: usize,
    delimiter: u8,
) -> std::io::Result<()> {
    let mut writer = csv::WriterBuilder::new().delimiter(delimiter).from_writer(out);
    writer.write_record(names.iter().map(|n| n.as_bytes()))?;
    for row in 0..rows {
        for column in columns {
            match column {
                Written::Texts(_) => writer.write_field(column.text(row))?,
                Written::Numbers(t) => writer.write_field(match element(t, row) {
                    Element::Float(x) => crate::digits::repr(x, t.dtype),
                    Element::Int(n) => n.to_string(),
                    Element::Bool(b) => b.to_string(),
                    Element::Complex(..) => "nan".into(),
                })?,
            }
        }
        writer.write_record(None::<&[u8]>)?;
    }
    writer.flush()
}

/// An object for each row. A missing float, NaN, is null; JSON has no text for one that is infinite.
fn lines(
    out: &mut dyn Write,
    path: &Path,
    names: &[Arc<str>],
    columns: &[Written<'_>],
    rows: usize,
) -> Result<(), Fault> {
    let broken = |e| write_fault(path, &e);
    let keys: Vec<String> = names.iter().map(|n| Value::from(&**n).to_string()).collect();
    for row in 0..rows {
        for (i, (key, column)) in keys.iter().zip(columns).enumerate() {
            let value = match column {
                Written::Texts(_) => Value::from(column.text(row)),
                Written::Numbers(t) => match element(t, row) {
                    Element::Float(x) if x.is_finite() => {
                        let text = crate::digits::repr(x, t.dtype);
                        write!(out, "{}{key}:{text}", if i == 0 { "{" } else { "," }).map_err(broken)?;
                        continue;
                    }
                    Element::Float(x) if x.is_infinite() => {
                        let place = format!("row {row}, column `{}` of `{}`", names[i], shown(path));
                        return Err(Fault::new(707, format!("{place} is {x}, which JSON has no text for"))
                            .note("CSV and Parquet keep it; in JSON lines NaN is a missing value, `null`"));
                    }
                    Element::Float(_) | Element::Complex(..) => Value::Null,
                    Element::Int(n) => Value::from(n),
                    Element::Bool(b) => Value::from(b),
                },
            };
            write!(out, "{}{key}:{value}", if i == 0 { "{" } else { "," }).map_err(broken)?;
        }
        out.write_all(b"}\n").map_err(broken)?;
    }
    Ok(())
}
