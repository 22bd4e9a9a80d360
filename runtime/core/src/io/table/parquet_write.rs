//! Parquet files that are written: columns without lists, packed with Snappy, in groups of rows that are read by themselves.

use super::cells::Written;
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FloatType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;
use std::io::{self, Write};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use tessera_base::DType;

/// Rows of a group: what a reader has in memory at a time.
const GROUP: usize = 1 << 18;

/// What the crate has written and the file has not got yet. It writes to what can be handed to other threads.
#[derive(Clone, Default)]
struct Pending(Arc<Mutex<Vec<u8>>>);

impl Pending {
    fn flow(&self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(&std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

impl Write for Pending {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes columns with their names, a group of rows at a time.
pub fn write(out: &mut dyn Write, names: &[Arc<str>], columns: &[Written<'_>], rows: usize) -> io::Result<()> {
    let fields = names.iter().zip(columns).map(|(name, column)| field(name, column).map(Arc::new));
    let fields = fields.collect::<Result<_, _>>().map_err(told)?;
    let schema = Type::group_type_builder("schema").with_fields(fields).build().map_err(told)?;
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let pending = Pending::default();
    let mut writer =
        SerializedFileWriter::new(pending.clone(), Arc::new(schema), Arc::new(properties)).map_err(told)?;
    let mut from = 0;
    while from < rows {
        let to = rows.min(from + GROUP);
        let mut group = writer.next_row_group().map_err(told)?;
        for column in columns {
            let mut into =
                group.next_column().map_err(told)?.ok_or_else(|| io::Error::other("a column has no place"))?;
            put(&mut into, column, from..to).map_err(told)?;
            into.close().map_err(told)?;
        }
        group.close().map_err(told)?;
        pending.flow(out)?;
        from = to;
    }
    writer.close().map_err(told)?;
    pending.flow(out)
}

fn told(e: ParquetError) -> io::Error {
    io::Error::other(e.to_string())
}

/// A column of the schema: of the type that it is, or of the next wider one with a note of it.
fn field(name: &str, column: &Written<'_>) -> Result<Type, ParquetError> {
    let (physical, logical) = match column {
        Written::Texts(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        Written::Numbers(t) => match t.dtype {
            DType::F64 => (Physical::DOUBLE, None),
            DType::F32 => (Physical::FLOAT, None),
            DType::I64 => (Physical::INT64, None),
            DType::I32 => (Physical::INT32, None),
            DType::I16 => (Physical::INT32, Some(LogicalType::integer(16, true))),
            DType::I8 => (Physical::INT32, Some(LogicalType::integer(8, true))),
            DType::U8 => (Physical::INT32, Some(LogicalType::integer(8, false))),
            DType::Bool => (Physical::BOOLEAN, None),
            other => return Err(ParquetError::General(format!("there is no column of {other}"))),
        },
    };
    Type::primitive_type_builder(name, physical)
        .with_logical_type(logical)
        .with_repetition(Repetition::REQUIRED)
        .build()
}

fn put(into: &mut SerializedColumnWriter<'_>, column: &Written<'_>, rows: Range<usize>) -> Result<(), ParquetError> {
    let t = match column {
        Written::Texts(_) => {
            let texts: Vec<ByteArray> = rows.map(|row| ByteArray::from(column.text(row))).collect();
            return batch::<ByteArrayType>(into, &texts);
        }
        Written::Numbers(t) => t,
    };
    let size = t.dtype.bytes();
    let bytes = t.bytes().get(rows.start * size..rows.end * size).unwrap_or_default();
    match t.dtype {
        DType::F64 => batch::<DoubleType>(into, &numbers(bytes, f64::from_le_bytes)),
        DType::F32 => batch::<FloatType>(into, &numbers(bytes, f32::from_le_bytes)),
        DType::I64 => batch::<Int64Type>(into, &numbers(bytes, i64::from_le_bytes)),
        DType::I32 => batch::<Int32Type>(into, &numbers(bytes, i32::from_le_bytes)),
        DType::I16 => batch::<Int32Type>(into, &numbers(bytes, |b| i32::from(i16::from_le_bytes(b)))),
        DType::I8 => batch::<Int32Type>(into, &numbers(bytes, |b| i32::from(i8::from_le_bytes(b)))),
        DType::U8 => batch::<Int32Type>(into, &numbers(bytes, |[b]: [u8; 1]| i32::from(b))),
        DType::Bool => batch::<BoolType>(into, &numbers(bytes, |[b]: [u8; 1]| b != 0)),
        other => Err(ParquetError::General(format!("there is no column of {other}"))),
    }
}

fn numbers<const N: usize, T>(bytes: &[u8], number: impl Fn([u8; N]) -> T) -> Vec<T> {
    bytes.as_chunks::<N>().0.iter().map(|b| number(*b)).collect()
}

fn batch<T: DataType>(into: &mut SerializedColumnWriter<'_>, values: &[T::T]) -> Result<(), ParquetError> {
    into.typed::<T>().write_batch(values, None, None).map(|_| ())
}
