//! Tables of numbers as text (RFC 4180), gzip too.

use super::files;
use crate::fault::{Fault, shown};
use crate::tensor::Tensor;
use crate::tensor_print::{Element, element};
use std::path::Path;
use tessera_base::DType;

/// Reads a rectangular table of numbers as `[rows, columns]` of f64, f32 or i64.
/// `skip` lines at the top are passed over.
pub fn read(path: &Path, delimiter: u8, skip: usize, dtype: DType) -> Result<Tensor, Fault> {
    let bytes = files::read_all(path)?;
    let (mut text, mut left_out) = (&bytes[..], 0);
    while left_out < skip && !text.is_empty() {
        text = text.iter().position(|&b| b == b'\n').map_or(&[][..], |i| &text[i + 1..]);
        left_out += 1;
    }
    parse(text, delimiter, left_out, dtype, &shown(path))
}

fn parse(text: &[u8], delimiter: u8, skip: usize, dtype: DType, name: &str) -> Result<Tensor, Fault> {
    let mut rows = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .delimiter(delimiter)
        .trim(csv::Trim::All)
        .from_reader(text);
    let mut data: Vec<u8> = Vec::with_capacity(text.len());
    let (mut count, mut width) = (0u64, None);
    let mut row = csv::ByteRecord::new();
    loop {
        let more = rows.read_byte_record(&mut row);
        let more = more.map_err(|e| Fault::new(707, format!("`{name}` is not a readable table: {e}")))?;
        if !more {
            break;
        }
        let line = row.position().map_or(count + 1, csv::Position::line) + skip as u64;
        let expected = *width.get_or_insert(row.len());
        if row.len() != expected {
            return Err(Fault::new(
                707,
                format!("line {line} of `{name}` has {} values, the lines before have {expected}", row.len()),
            ));
        }
        for (column, field) in row.iter().enumerate() {
            number(field, dtype, &mut data).ok_or_else(|| {
                let shown = String::from_utf8_lossy(field);
                let f = Fault::new(
                    707,
                    format!(
                        "line {line}, column {} of `{name}`: `{shown}` is not a number of type {dtype}",
                        column + 1
                    ),
                );
                if count == 0 { f.note("if the first line is a heading, pass `skip=1`") } else { f }
            })?;
        }
        count += 1;
    }
    Ok(Tensor::from_bytes(dtype, &[count, width.unwrap_or(0) as u64], &data)?)
}

/// Appends one value; `None` if the text is no number of the type.
pub(super) fn number(field: &[u8], dtype: DType, out: &mut Vec<u8>) -> Option<()> {
    let text = std::str::from_utf8(field).ok()?;
    match dtype {
        DType::F64 => out.extend_from_slice(&text.parse::<f64>().ok()?.to_le_bytes()),
        DType::F32 => out.extend_from_slice(&text.parse::<f32>().ok()?.to_le_bytes()),
        DType::I64 => out.extend_from_slice(&text.parse::<i64>().ok()?.to_le_bytes()),
        DType::I32 => out.extend_from_slice(&text.parse::<i32>().ok()?.to_le_bytes()),
        DType::I16 => out.extend_from_slice(&text.parse::<i16>().ok()?.to_le_bytes()),
        DType::I8 => out.extend_from_slice(&text.parse::<i8>().ok()?.to_le_bytes()),
        DType::U8 => out.push(text.parse::<u8>().ok()?),
        DType::Bool => out.push(match text {
            "0" | "False" | "false" => 0,
            "1" | "True" | "true" => 1,
            _ => return None,
        }),
        _ => return None,
    }
    Some(())
}

/// Writes a vector (one value a line) or a matrix (one row a line); numbers in the fewest
/// digits that read back the same. `header` is written first as a line unless it is empty.
pub fn write(path: &Path, t: &Tensor, delimiter: u8, header: &str) -> Result<(), Fault> {
    if t.rank() > 2 {
        return Err(Fault::new(707, format!("a tensor of rank {} is no table; reshape it to two dims", t.rank())));
    }
    let width = if t.rank() == 2 { t.shape[1] as usize } else { 1 };
    files::write_atomically(path, |out| {
        if !header.is_empty() {
            writeln!(out, "{header}").map_err(|e| files::write_fault(path, &e))?;
        }
        let mut writer = csv::WriterBuilder::new().delimiter(delimiter).from_writer(out);
        let fault = |e: csv::Error| files::write_fault(path, &e.into());
        for r in 0..t.elems().checked_div(width).unwrap_or(0) {
            let row = (0..width).map(|c| match element(t, r * width + c) {
                Element::Float(x) => crate::digits::repr(x, t.dtype),
                Element::Int(n) => n.to_string(),
                Element::Bool(b) => (if b { "1" } else { "0" }).into(),
                Element::Complex(..) => "nan".into(),
            });
            writer.write_record(row).map_err(fault)?;
        }
        writer.flush().map_err(|e| files::write_fault(path, &e))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_read_and_mistakes_are_placed() -> Result<(), Fault> {
        let t = parse(b"1,2\n3, 4\n", b',', 0, DType::I64, "t")?;
        assert_eq!(t.shape, [2, 2]);
        let e = parse(b"1,2\n3\n", b',', 0, DType::F32, "t").err().map(|e| e.message);
        assert_eq!(e.as_deref(), Some("line 2 of `t` has 1 values, the lines before have 2"));
        let e = parse(b"1,2\n3,x\n", b',', 1, DType::F32, "t").err().map(|e| e.message);
        assert_eq!(e.as_deref(), Some("line 3, column 2 of `t`: `x` is not a number of type f32"));
        Ok(())
    }
}
