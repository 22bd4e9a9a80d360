//! The columns of Parquet files. Only the columns and the groups of rows that are asked for are read, each by itself, on all
//! threads.

use super::asked::{Rows, no_room, too_many};
use super::cells::{self, Cells, Column, Columns, Kind, place, put_int, put_missing, spelled};
use crate::fault::{Fault, shown};
use crate::io::tokens::quietly;
use crate::memory::memory_limit;
use crate::pool::Pool;
use bytes::Bytes;
use half::f16;
use parquet::basic::{ConvertedType, LogicalType, Type};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, FileReader, Length};
use parquet::file::serialized_reader::SerializedFileReader;
use parquet::schema::types::ColumnDescriptor;
use std::fs::File;
use std::io::{BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tessera_base::DType;

/// The first and the last bytes of a file.
pub const MAGIC: &[u8] = b"PAR1";

/// Numbers that are decoded at a time.
const BATCH: usize = 1 << 13;
/// Texts that are, at most: their pages are in memory together.
const TEXTS: usize = 1 << 8;
/// Bytes that the texts are to be, by those before them.
const TEXT_BYTES: u64 = 1 << 20;

/// A file that several threads read, each where it wants.
struct Shared {
    file: Arc<File>,
    len: u64,
}

/// What follows in a file from a place on.
struct Onwards {
    file: Arc<File>,
    at: u64,
}

impl Read for Onwards {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        let n = self.file.read_at(buf, self.at)?;
        self.at += n as u64;
        Ok(n)
    }
}

impl Length for Shared {
    fn len(&self) -> u64 {
        self.len
    }
}

impl ChunkReader for Shared {
    type T = BufReader<Onwards>;

    fn get_read(&self, start: u64) -> parquet::errors::Result<Self::T> {
        Ok(BufReader::new(Onwards { file: self.file.clone(), at: start }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<Bytes> {
        // Nothing is made ready for what the file cannot hold.
        if start.checked_add(length as u64).is_none_or(|end| end > self.len) {
            return Err(ParquetError::EOF(format!("{length} bytes from byte {start} on are not there")));
        }
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, start)?;
        Ok(bytes.into())
    }
}

/// A Parquet file whose footer was read.
pub struct Source {
    reader: SerializedFileReader<Shared>,
    /// Where each group of rows begins, and where the last one ends.
    starts: Vec<u64>,
    /// The name of the file.
    file: String,
}

impl Source {
    /// Reads the footer of a file.
    ///
    /// # Errors
    /// E0707 where it is none or is damaged.
    pub fn open(path: &Path, file: File, len: u64) -> Result<Source, Fault> {
        let name = shown(path);
        let reader = careful(&name, || SerializedFileReader::new(Shared { file: Arc::new(file), len }))?;
        let mut starts = vec![0u64];
        for group in reader.metadata().row_groups() {
            let rows = u64::try_from(group.num_rows()).ok();
            let Some(end) = rows.and_then(|rows| starts[starts.len() - 1].checked_add(rows)) else {
                return Err(damaged(&name, "it claims a number of rows that no file has"));
            };
            starts.push(end);
        }
        let claimed = reader.metadata().file_metadata().num_rows();
        if u64::try_from(claimed).ok() != starts.last().copied() {
            return Err(damaged(&name, "its groups have other rows than it says"));
        }
        Ok(Source { reader, starts, file: name })
    }

    /// How many rows there are.
    pub fn rows(&self) -> u64 {
        self.starts[self.starts.len() - 1]
    }

    /// Reads rows of the columns that are asked for.
    ///
    /// # Errors
    /// E0707 where a column is missing, of another kind, or has a value that is none of its type, or the file is damaged. E0710 where
    /// the columns take more memory than can be had. E0711 where `missing` is no value of a column's type.
    pub fn read(
        &self,
        path: &Path,
        wanted: &[Column],
        missing: Option<i64>,
        rows: Rows,
        pool: &Pool,
    ) -> Result<Columns, Fault> {
        let all = self.reader.metadata().file_metadata().schema_descr().columns();
        let names: Vec<String> = all.iter().map(|c| c.path().string()).collect();
        let mut places = vec![];
        for column in wanted {
            let at = place(&names, &column.name, &self.file)
                .map_err(|fault| nested(all, column, &self.file).unwrap_or(fault))?;
            readable(&all[at], column.kind, &self.file)?;
            places.push(at);
        }
        let (first, last) = (rows.first.min(self.rows()), rows.end().min(self.rows()));
        let mut tasks = vec![];
        for (group, ends) in self.starts.windows(2).enumerate() {
            let (from, to) = (first.max(ends[0]), last.min(ends[1]));
            if from < to {
                tasks.extend(places.iter().zip(wanted).map(|(at, column)| Task {
                    group,
                    column: *at,
                    kind: column.kind,
                    skip: (from - ends[0]) as usize,
                    take: (to - from) as usize,
                    row: from,
                }));
            }
        }
        let taken = AtomicU64::new(0);
        let read = pool.map(tasks.len(), &|i| {
            std::sync::Mutex::new(careful_fault(&self.file, || self.column(path, &tasks[i], missing, &taken)))
        });
        let mut out = Columns::of(wanted);
        let mut rows = cells::Stretch { cells: vec![], count: 0 };
        for (task, cells) in tasks.iter().zip(read) {
            rows.cells.push(cells.into_inner().unwrap_or_else(|e| e.into_inner())?);
            rows.count = task.take as u64;
            if rows.cells.len() == wanted.len() {
                out.push(std::mem::replace(&mut rows, cells::Stretch { cells: vec![], count: 0 }));
            }
        }
        Ok(out)
    }

    fn column(&self, path: &Path, task: &Task, missing: Option<i64>, taken: &AtomicU64) -> Result<Cells, Fault> {
        let broken = |e: ParquetError| damaged(&self.file, &why(&e));
        let group = self.reader.get_row_group(task.group).map_err(broken)?;
        if group.metadata().column(task.column).num_values() != group.metadata().num_rows() {
            return Err(damaged(&self.file, "a column has other rows than its group"));
        }
        let descriptor = self.reader.metadata().file_metadata().schema_descr().column(task.column);
        let reader = group.get_column_reader(task.column).map_err(broken)?;
        let mut to = Filling {
            cells: Cells::of(task.kind),
            missing,
            name: descriptor.path().string(),
            file: &self.file,
            path,
            row: task.row,
        };
        let unsigned = matches!(descriptor.logical_type_ref(), Some(LogicalType::Integer(int)) if !int.is_signed)
            || matches!(
                descriptor.converted_type(),
                ConvertedType::UINT_8 | ConvertedType::UINT_16 | ConvertedType::UINT_32 | ConvertedType::UINT_64
            );
        let mut run = Run { task, most: descriptor.max_def_level(), file: &self.file, path, taken, told: 0 };
        match reader {
            ColumnReader::BoolColumnReader(r) => run.decode(r, &mut to, |to, b| to.int(i64::from(*b)))?,
            ColumnReader::Int32ColumnReader(r) if unsigned => {
                run.decode(r, &mut to, |to, n| to.int(i64::from(*n as u32)))?;
            }
            ColumnReader::Int32ColumnReader(r) => run.decode(r, &mut to, |to, n| to.int(i64::from(*n)))?,
            ColumnReader::Int64ColumnReader(r) if unsigned => run.decode(r, &mut to, |to, n| to.unsigned(*n as u64))?,
            ColumnReader::Int64ColumnReader(r) => run.decode(r, &mut to, |to, n| to.int(*n))?,
            ColumnReader::FloatColumnReader(r) => run.decode(r, &mut to, |to, x| to.float(f64::from(*x)))?,
            ColumnReader::DoubleColumnReader(r) => run.decode(r, &mut to, |to, x| to.float(*x))?,
            ColumnReader::ByteArrayColumnReader(r) => run.decode(r, &mut to, |to, text| to.text(text.data()))?,
            ColumnReader::FixedLenByteArrayColumnReader(r) => run.decode(r, &mut to, |to, x| {
                let bytes = x.data().first_chunk::<2>().copied().unwrap_or_default();
                to.float(f16::from_le_bytes(bytes).to_f64())
            })?,
            ColumnReader::Int96ColumnReader(_) => return Err(damaged(&self.file, "it has a column of INT96")),
        }
        Ok(to.cells)
    }
}

/// A column of a group of rows.
struct Task {
    group: usize,
    column: usize,
    kind: Kind,
    skip: usize,
    take: usize,
    /// The number of the first row in the file.
    row: u64,
}

/// Values on their way into a column.
struct Filling<'a> {
    cells: Cells,
    missing: Option<i64>,
    name: String,
    file: &'a str,
    path: &'a Path,
    row: u64,
}

impl Filling<'_> {
    fn place(&self) -> String {
        format!("row {}, column `{}` of `{}`", self.row, shown(&self.name), self.file)
    }

    fn no_number(&self, value: &dyn std::fmt::Display, dtype: DType) -> Fault {
        Fault::new(707, format!("{}: `{value}` is not a number of type {dtype}", self.place()))
    }

    fn int(&mut self, n: i64) -> Result<(), Fault> {
        let Cells::Numbers(dtype, data) = &mut self.cells else { return Ok(()) };
        let dtype = *dtype;
        if put_int(n, dtype, data) { Ok(()) } else { Err(self.no_number(&n, dtype)) }
    }

    fn unsigned(&mut self, n: u64) -> Result<(), Fault> {
        let Cells::Numbers(dtype, data) = &mut self.cells else { return Ok(()) };
        match (*dtype, i64::try_from(n)) {
            (_, Ok(n)) => self.int(n),
            (DType::F64, Err(_)) => {
                data.extend((n as f64).to_le_bytes());
                Ok(())
            }
            (DType::F32, Err(_)) => {
                data.extend((n as f32).to_le_bytes());
                Ok(())
            }
            (dtype, Err(_)) => Err(self.no_number(&n, dtype)),
        }
    }

    fn float(&mut self, x: f64) -> Result<(), Fault> {
        match &mut self.cells {
            Cells::Numbers(DType::F32, data) => data.extend((x as f32).to_le_bytes()),
            Cells::Numbers(_, data) => data.extend(x.to_le_bytes()),
            Cells::Texts(_) => {}
        }
        Ok(())
    }

    fn text(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        let text = std::str::from_utf8(bytes);
        let text = text.map_err(|_| Fault::new(707, format!("{} is not UTF-8 text", self.place())))?;
        if let Cells::Texts(texts) = &mut self.cells {
            return texts.push_if_room(text).map_err(|fault| no_room(fault, self.path));
        }
        Ok(())
    }

    fn none(&mut self) -> Result<(), Fault> {
        let place = || format!("row {}, column `{}` of `{}`", self.row, shown(&self.name), self.file);
        match &mut self.cells {
            Cells::Texts(texts) => {
                texts.push("");
                Ok(())
            }
            Cells::Numbers(dtype, data) => put_missing(*dtype, self.missing, data, place),
        }
    }
}

/// The decoding of a column of a group.
struct Run<'a> {
    task: &'a Task,
    /// The level of values that are there.
    most: i16,
    file: &'a str,
    path: &'a Path,
    /// Bytes of all columns together.
    taken: &'a AtomicU64,
    /// Those of this one that are among them.
    told: u64,
}

impl Run<'_> {
    fn decode<T: DataType>(
        &mut self,
        mut reader: ColumnReaderImpl<T>,
        to: &mut Filling<'_>,
        put: impl Fn(&mut Filling<'_>, &T::T) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let file = self.file;
        let broken = |e: ParquetError| damaged(file, &why(&e));
        let short = || damaged(file, "a column has fewer values than rows");
        if reader.skip_records(self.task.skip).map_err(broken)? < self.task.skip {
            return Err(short());
        }
        let (mut values, mut levels) = (vec![], vec![]);
        let mut left = self.task.take;
        let numbers = matches!(to.cells, Cells::Numbers(..));
        // Of texts first a few, which tell how long they are.
        let mut batch = if numbers { BATCH } else { 1 };
        while left > 0 {
            values.clear();
            levels.clear();
            let wanted = (self.most > 0).then_some(&mut levels);
            to.cells.make_room(left.min(batch)).map_err(|fault| no_room(fault, self.path))?;
            let (rows, _, _) = reader.read_records(left.min(batch), wanted, None, &mut values).map_err(broken)?;
            if rows == 0 || (self.most > 0 && levels.len() != rows) {
                return Err(short());
            }
            if self.most == 0 {
                for value in &values {
                    put(to, value)?;
                    to.row += 1;
                }
            } else {
                let mut present = values.iter();
                for level in &levels {
                    match if *level == self.most { present.next() } else { None } {
                        Some(value) => put(to, value)?,
                        None => to.none()?,
                    }
                    to.row += 1;
                }
            }
            left = left.saturating_sub(rows);
            let bytes = to.cells.bytes();
            if !numbers {
                let each = ((bytes - self.told) / rows as u64).max(1);
                batch = ((TEXT_BYTES / each) as usize).clamp(1, TEXTS.min(2 * batch));
            }
            let all = self.taken.fetch_add(bytes - self.told, Ordering::Relaxed) + bytes - self.told;
            self.told = bytes;
            if all > memory_limit() {
                return Err(too_many(self.path));
            }
        }
        Ok(())
    }
}

/// Whether a column can be read as what is asked for.
///
/// # Errors
/// E0707 where it cannot.
fn readable(column: &ColumnDescriptor, wanted: Kind, file: &str) -> Result<(), Fault> {
    let logical = column.logical_type_ref();
    let decimal = matches!(logical, Some(LogicalType::Decimal(_))) || column.converted_type() == ConvertedType::DECIMAL;
    let holds = match column.physical_type() {
        _ if column.max_rep_level() > 0 => "lists",
        _ if decimal => "decimal numbers",
        Type::BOOLEAN => "bools",
        Type::INT32 | Type::INT64 => "ints",
        Type::INT96 => "times of 96 bits",
        Type::FLOAT | Type::DOUBLE => "floats",
        Type::BYTE_ARRAY => "texts",
        Type::FIXED_LEN_BYTE_ARRAY if matches!(logical, Some(LogicalType::Float16)) && column.type_length() == 2 => {
            "floats"
        }
        Type::FIXED_LEN_BYTE_ARRAY => "bytes of a fixed length",
    };
    let fits = match wanted {
        Kind::Text => holds == "texts",
        Kind::Number(DType::F64 | DType::F32) => holds == "floats" || holds == "ints",
        Kind::Number(DType::Bool) => holds == "bools" || holds == "ints",
        Kind::Number(_) => holds == "ints",
    };
    if fits {
        return Ok(());
    }
    let asked = match wanted {
        Kind::Text => "texts are".to_owned(),
        Kind::Number(dtype) => format!("{dtype} is"),
    };
    let name = shown(column.path().string());
    let fault = Fault::new(707, format!("the column `{name}` of `{file}` holds {holds}, and {asked} asked for"));
    Err(match holds {
        "floats" => fault.note("read it as `f64` or `f32`"),
        "ints" => fault.note("read it as `i64`, or as `f64`"),
        "texts" => fault.note("read it as `list[str]`"),
        "bools" => fault.note("read it as `bool`"),
        _ => fault.note("columns are numbers of at most 64 bits, bools and texts"),
    })
}

/// What is wrong with a column that is no single one in the file: a list, or a struct.
fn nested(all: &[Arc<ColumnDescriptor>], column: &Column, file: &str) -> Option<Fault> {
    let within = |c: &&Arc<ColumnDescriptor>| {
        let parts = c.path().parts();
        parts.len() > 1 && spelled(&parts[0]) == spelled(&column.name)
    };
    let first = all.iter().find(within)?;
    let name = shown(&first.path().parts()[0]);
    let holds = if first.max_rep_level() > 0 { "lists" } else { "structs" };
    let fault =
        Fault::new(707, format!("the column `{name}` of `{file}` holds {holds}, and numbers or texts are asked for"));
    Some(match holds {
        "lists" => fault.note("columns are numbers of at most 64 bits, bools and texts"),
        _ => {
            let part = first.path().string();
            fault.note(format!(
                "a part of it is a column: `{}`, which a program spells `{}`",
                shown(&part),
                spelled(&part)
            ))
        }
    })
}

/// E0707 for a file that is none of Parquet.
pub fn damaged(file: &str, why: &str) -> Fault {
    Fault::new(707, format!("`{file}` is not a readable Parquet file: {why}"))
}

/// The crate's words, on one line.
fn why(e: &ParquetError) -> String {
    shown(e.to_string())
}

/// Runs code of the crate, which may stop at data that it did not expect.
fn careful<T>(file: &str, f: impl FnOnce() -> parquet::errors::Result<T>) -> Result<T, Fault> {
    careful_fault(file, || f().map_err(|e| damaged(file, &why(&e))))
}

fn careful_fault<T>(file: &str, f: impl FnOnce() -> Result<T, Fault>) -> Result<T, Fault> {
    quietly(f).unwrap_or_else(|| Err(damaged(file, "it contradicts itself")))
}
