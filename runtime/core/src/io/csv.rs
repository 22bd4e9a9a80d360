//! Tables of numbers as text (RFC 4180), gzip too.

use super::files;
use super::table::{self, Cells, Columns, Form, Kind, Reading, Record, Sink, Stretch, line_at, number, records};
use crate::fault::{Fault, shown};
use crate::pool::Pool;
use crate::tensor::Tensor;
use crate::tensor_print::{Element, element};
use std::path::Path;
use tessera_base::DType;

/// Reads a rectangular table of numbers as `[rows, columns]` of f64, f32 or i64, on all threads.
/// `skip` lines at the top are passed over.
pub fn read(path: &Path, delimiter: u8, skip: usize, dtype: DType, pool: &Pool) -> Result<Tensor, Fault> {
    let bytes = files::read_all(path)?;
    parse(&bytes, delimiter, skip, dtype, &shown(path), pool)
}

fn parse(text: &[u8], delimiter: u8, skip: usize, dtype: DType, name: &str, pool: &Pool) -> Result<Tensor, Fault> {
    let form = Form::Delimited(delimiter);
    let line_end = |from: usize| text[from..].iter().position(|&b| b == b'\n').map_or(text.len(), |i| from + i + 1);
    let marked = if text.starts_with(table::MARK) { table::MARK.len() } else { 0 };
    // There are no more lines than bytes.
    let start = (0..skip.min(text.len())).fold(marked, |at, _| line_end(at));
    let line = |at| line_at(text, at);
    let open = |line| table::open_quote(name, line);
    let mut first = Record::default();
    if let Some(at) = records::begin(text, start, text.len(), form) {
        first.read(text, at, form).map_err(|quote| open(line(quote.0)))?;
    }
    let top = Top { width: first.len(), line: line(start), dtype, name };
    let mut all = Columns::of_kind(Kind::Number(dtype));
    let reading = Reading { text, form, pool, line: &line, open: &open };
    reading.each(
        start,
        &|| Numbers { top: &top, block: Stretch::of([Kind::Number(dtype)].into_iter()) },
        |rows, _| {
            all.push(rows.block);
            Ok(())
        },
    )?;
    all.matrix(top.width as u64, pool)
}

/// What the first row says of all.
struct Top<'a> {
    width: usize,
    line: usize,
    dtype: DType,
    /// The name of the file.
    name: &'a str,
}

/// The numbers of some rows.
struct Numbers<'a> {
    top: &'a Top<'a>,
    block: Stretch,
}

impl Sink for Numbers<'_> {
    fn expect(&mut self, rows: usize) {
        self.block.expect(rows.saturating_mul(self.top.width).min(1 << 17));
    }

    fn take(&mut self, record: &Record, text: &[u8], line: &dyn Fn() -> usize) -> Result<(), Fault> {
        let Top { width, line: first, dtype, name } = *self.top;
        if record.len() != width {
            let (line, found) = (line(), record.len());
            let text = format!("line {line} of `{name}` has {found} values, the lines before have {width}");
            return Err(Fault::new(707, text));
        }
        let Some(Cells::Numbers(_, data)) = self.block.cells.first_mut() else { return Ok(()) };
        for column in 0..width {
            let cell = record.cell(text, column).trim_ascii();
            if std::str::from_utf8(cell).ok().and_then(|text| number(text, dtype, data)).is_none() {
                let (line, shown) = (line(), shown(String::from_utf8_lossy(cell).as_ref()));
                let text = format!(
                    "line {line}, column {} of `{name}`: `{shown}` is not a number of type {dtype}",
                    column + 1
                );
                let fault = Fault::new(707, text);
                return Err(if line == first {
                    fault.note("if the first line is a heading, pass `skip=1`")
                } else {
                    fault
                });
            }
        }
        self.block.count += 1;
        Ok(())
    }
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
        let parse = |text: &[u8], skip, dtype| parse(text, b',', skip, dtype, "t", &Pool::new(2));
        let t = parse(b"1,2\n3, 4\n", 0, DType::I64)?;
        assert_eq!(t.shape, [2, 2]);
        let e = parse(b"1,2\n3\n", 0, DType::F32).err().map(|e| e.message);
        assert_eq!(e.as_deref(), Some("line 2 of `t` has 1 values, the lines before have 2"));
        let e = parse(b"1,2\n3,x\n", 1, DType::F32).err().map(|e| e.message);
        assert_eq!(e.as_deref(), Some("line 2, column 2 of `t`: `x` is not a number of type f32"));
        Ok(())
    }
}
