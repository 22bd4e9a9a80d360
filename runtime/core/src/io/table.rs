//! Tables with a heading: columns by name, numbers with their element types and texts, cells that are missing.

use super::csv::number;
use super::files::too_large;
use crate::fault::{Fault, shown};
use crate::host_value::HostValue;
use crate::memory::memory_limit;
use crate::tensor::Tensor;
use std::io::Read;
use std::path::Path;
use tessera_base::DType;
use tessera_base::near::nearest;

/// What a column is read as.
enum Cells {
    /// A tensor of rank 1.
    Numbers(DType, Vec<u8>),
    Texts(Vec<HostValue>),
}

/// A column that is asked for.
struct Column {
    name: String,
    cells: Cells,
    /// Where it stands in the file.
    place: usize,
}

/// The columns of a description: `age f64` on a line, or `name str`.
fn described(text: &str) -> Vec<Column> {
    let column = |line: &str| {
        let (name, kind) = line.split_once(' ')?;
        let cells = match DType::parse(kind) {
            Some(dtype) => Cells::Numbers(dtype, vec![]),
            None => Cells::Texts(vec![]),
        };
        Some(Column { name: name.to_owned(), cells, place: 0 })
    };
    text.lines().filter_map(column).collect()
}

/// A name as a program can spell it: small letters, digits, and `_` for everything else.
fn spelled(name: &str) -> String {
    name.trim().chars().map(|c| if c.is_alphanumeric() { c.to_lowercase().collect() } else { "_".to_owned() }).collect()
}

/// The texts that stand for a missing number, beside an empty cell.
const MISSING: [&str; 7] = ["NA", "N/A", "NaN", "nan", "null", "NULL", "None"];

/// Reads the columns of a description from the bytes of a file, as the fields of a struct in that order. A missing float is
/// NaN, a missing int or bool `missing` where one is given.
///
/// # Errors
/// E0707 where the file lacks a column, a line is longer or shorter than the heading, or a cell is not of its column's type:
/// with line and column, or a quote is never closed. E0710 where the columns take more memory than can be had. E0711 where `missing` is no value of a column's type.
pub fn read(path: &Path, bytes: &[u8], columns: &str, delimiter: u8, missing: Option<i64>) -> Result<HostValue, Fault> {
    let name = shown(path);
    let unreadable = |e: csv::Error| Fault::new(707, format!("`{name}` is not a readable table: {e}"));
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mut rows = csv::ReaderBuilder::new().has_headers(false).flexible(true).delimiter(delimiter).from_reader(text);
    let mut row = csv::ByteRecord::new();
    if !rows.read_byte_record(&mut row).map_err(unreadable)? {
        return Err(Fault::new(707, format!("`{name}` is empty: a table begins with a line of names")));
    }
    let heading: Vec<String> = row.iter().map(|cell| String::from_utf8_lossy(cell).trim().to_owned()).collect();
    let mut wanted = described(columns);
    for column in &mut wanted {
        column.place = place(&heading, &column.name, &name)?;
    }
    let mut count = 0u64;
    let mut taken = bytes.len() as u64;
    let mut start = 0;
    while rows.read_byte_record(&mut row).map_err(unreadable)? {
        start = row.position().map_or(0, csv::Position::byte) as usize;
        let line = || line_at(text, start);
        let added = add(&row, &mut wanted, &heading, missing, &name, line);
        // A cell that goes on to the end is why the rest is wrong.
        taken += added.map_err(|fault| open_quote(text, start, delimiter, &name).err().unwrap_or(fault))?;
        if taken > memory_limit() {
            return Err(too_large(path, "holds columns of more than", memory_limit()));
        }
        count += 1;
    }
    open_quote(text, start, delimiter, &name)?;
    let field = |column: Column| match column.cells {
        Cells::Texts(texts) => Ok(HostValue::List(texts)),
        Cells::Numbers(dtype, data) => Ok(HostValue::Tensor(Tensor::from_bytes(dtype, &[count], &data)?)),
    };
    Ok(HostValue::Record(wanted.into_iter().map(field).collect::<Result<_, Fault>>()?))
}

/// Appends the cells of a line to their columns; about how many bytes they take.
fn add(
    row: &csv::ByteRecord,
    wanted: &mut [Column],
    heading: &[String],
    missing: Option<i64>,
    name: &str,
    line: impl Fn() -> usize,
) -> Result<u64, Fault> {
    if row.len() != heading.len() {
        let text = format!("line {} of `{name}` has {} cells, the heading has {}", line(), row.len(), heading.len());
        return Err(Fault::new(707, text));
    }
    let mut taken = 0;
    for column in wanted {
        let cell = row.get(column.place).unwrap_or_default();
        let place = || format!("line {}, column `{}` of `{name}`", line(), shown(&heading[column.place]));
        let text = std::str::from_utf8(cell).map_err(|_| Fault::new(707, format!("{} is not UTF-8 text", place())))?;
        taken += match &mut column.cells {
            Cells::Texts(texts) => {
                texts.push(HostValue::Str(text.into()));
                size_of::<HostValue>() + text.len()
            }
            Cells::Numbers(dtype, data) => {
                put(text.trim(), *dtype, missing, data, place)?;
                dtype.bytes()
            }
        } as u64;
    }
    Ok(taken)
}

/// The line of what comes at a byte. Empty lines before it are behind it.
fn line_at(text: &[u8], start: usize) -> usize {
    let rest = text.get(start..).unwrap_or_default();
    let start = start + rest.iter().take_while(|b| matches!(b, b'\r' | b'\n')).count();
    let ends = |(i, b): (usize, &u8)| *b == b'\n' || (*b == b'\r' && text.get(i + 1) != Some(&b'\n'));
    1 + text.iter().take(start).enumerate().filter(|&at| ends(at)).count()
}

/// Whether all quotes are closed in the line that begins at a byte.
///
/// # Errors
/// E0707 where one goes on to the end of the file: what would come behind it would be part of its cell.
fn open_quote(text: &[u8], start: usize, delimiter: u8, name: &str) -> Result<(), Fault> {
    let rest = text.get(start..).unwrap_or_default().chain(&b"\n0"[..]);
    let mut rows = csv::ReaderBuilder::new().has_headers(false).flexible(true).delimiter(delimiter).from_reader(rest);
    let (mut last, mut behind) = (csv::ByteRecord::new(), csv::ByteRecord::new());
    let mut more = |row| rows.read_byte_record(row).unwrap_or(true);
    if !more(&mut last) || more(&mut behind) {
        return Ok(());
    }
    let before = last.iter().take(last.len().saturating_sub(1));
    let ends = before.flatten().filter(|b| **b == b'\n').count();
    let line = line_at(text, start) + ends;
    let text = format!("`{name}` is not a readable table: the quote that opens on line {line} is never closed");
    Err(Fault::new(707, text).note("a quote inside a quoted cell is written twice: `\"\"`"))
}

/// Which column of the heading is meant: the one of this name, or the one that would be spelled so.
fn place(heading: &[String], wanted: &str, name: &str) -> Result<usize, Fault> {
    let by =
        |fits: &dyn Fn(&String) -> bool| -> Vec<usize> { (0..heading.len()).filter(|&i| fits(&heading[i])).collect() };
    let mut found = by(&|have| have == wanted);
    if found.is_empty() {
        found = by(&|have| spelled(have) == spelled(wanted));
    }
    match found[..] {
        [one] => Ok(one),
        [] => {
            let fault = Fault::new(707, format!("`{name}` has no column `{wanted}`"));
            let near = nearest(wanted, heading.iter().map(String::as_str));
            let fault = near.into_iter().fold(fault, |f, near| f.note(format!("did you mean `{}`?", shown(near))));
            let all: Vec<String> = heading.iter().take(30).map(|h| format!("`{}`", shown(h))).collect();
            let more = if heading.len() > all.len() {
                format!(" and {} more", heading.len() - all.len())
            } else {
                String::new()
            };
            Err(fault.note(format!("it has {}{more}", all.join(", "))))
        }
        [first, second, ..] => {
            let text =
                format!("`{name}` has more than one column `{wanted}`: the columns {} and {}", first + 1, second + 1);
            Err(Fault::new(707, text))
        }
    }
}

/// Appends the number of a cell.
fn put(
    text: &str,
    dtype: DType,
    missing: Option<i64>,
    data: &mut Vec<u8>,
    place: impl Fn() -> String,
) -> Result<(), Fault> {
    if !text.is_empty() && !MISSING.contains(&text) {
        return number(text.as_bytes(), dtype, data)
            .ok_or_else(|| Fault::new(707, format!("{}: `{}` is not a number of type {dtype}", place(), shown(text))));
    }
    match (dtype, missing) {
        (DType::F64, _) => data.extend(f64::NAN.to_le_bytes()),
        (DType::F32, _) => data.extend(f32::NAN.to_le_bytes()),
        (_, None) => {
            let text = format!("{} has no value, and {dtype} has none that says so", place());
            return Err(Fault::new(707, text)
                .note("read the column as `f64`, where a missing number is NaN, or name one for it: `missing=-1`"));
        }
        (_, Some(n)) => number(n.to_string().as_bytes(), dtype, data).ok_or_else(|| {
            Fault::new(711, format!("{} has no value, and the `missing={n}` that stands for it is no {dtype}", place()))
        })?,
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(bytes: &[u8], columns: &str, missing: Option<i64>) -> Result<HostValue, String> {
        read(Path::new("t.csv"), bytes, columns, b',', missing).map_err(|f| f.message)
    }

    #[test]
    fn columns_are_found_by_name_and_mistakes_are_placed() {
        let text = b"\xef\xbb\xbfName,Age in years,n\n\"Ann, B\",12.5,3\nBob,,NA\n";
        let HostValue::Record(fields) = told(text, "age_in_years f64\nName str\nn i64", Some(-1)).unwrap() else {
            panic!()
        };
        let (HostValue::Tensor(age), HostValue::List(names), HostValue::Tensor(n)) =
            (&fields[0], &fields[1], &fields[2])
        else {
            panic!()
        };
        assert_eq!((&age.shape[..], names.len()), (&[2][..], 2));
        assert_eq!(n.bytes(), [3i64.to_le_bytes(), (-1i64).to_le_bytes()].concat());
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
        assert_eq!(wrong("\"a\n1\n"), "`t.csv` has no column `a`");
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
