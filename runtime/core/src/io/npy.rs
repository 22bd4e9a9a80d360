//! NumPy's `.npy` (format 1.0 to 3.0; NEP 1).

use super::files;
use crate::fault::{Fault, shown};
use crate::tensor::{Tensor, bytes_of};
use npyz::{Endianness, NpyFile, NpyHeader, Order, TypeChar, TypeStr};
use std::io::Read;
use std::path::Path;
use tessera_base::DType;

/// Reads a tensor. Big-endian and column-major files are converted.
pub fn read(path: &Path) -> Result<Tensor, Fault> {
    let (reader, len) = files::open(path)?;
    read_from(reader, len, &shown(path))
}

/// Reads a tensor from a stream of `len` bytes; `name` is for messages.
pub fn read_from(mut reader: impl Read, len: u64, name: &str) -> Result<Tensor, Fault> {
    let bad = |why: String| Fault::new(707, format!("`{name}` is not a readable .npy file: {why}"));
    let header = NpyHeader::from_reader(&mut reader).map_err(|e| bad(e.to_string()))?;
    let file = NpyFile::with_header(header, reader);
    let (dtype, swap) = match file.dtype() {
        npyz::DType::Plain(t) => {
            let dtype = dtype_of(&t).ok_or_else(|| {
                bad(format!("its elements are `{t}`, which has no counterpart here"))
                    .note("f8 f4 f2 i8 i4 i2 i1 u1 b1 and c8 can be read; convert it with NumPy's `astype`")
            })?;
            (dtype, t.endianness() == Endianness::Big)
        }
        other => return Err(bad(format!("it holds records ({}), not numbers", other.descr()))),
    };
    let shape = file.shape().to_vec();
    let bytes = bytes_of(dtype, &shape).ok_or_else(|| bad(format!("its shape {shape:?} is beyond 64 bits")))?;
    if bytes > len {
        return Err(bad(format!(
            "the header promises {bytes} bytes of data for shape {shape:?}, the file has {len} bytes in all"
        )));
    }
    let column_major = file.order() == Order::Fortran && shape.len() > 1;
    let mut t = Tensor::new(dtype, &shape, false)?;
    let mut reader = file.into_inner();
    let data = t.host_mut()?;
    reader.read_exact(data).map_err(|e| bad(format!("the data ends early ({e})")))?;
    if swap {
        let part = if dtype == DType::C64 { 4 } else { dtype.bytes() };
        data.chunks_exact_mut(part).for_each(<[u8]>::reverse);
    }
    if column_major { from_column_major(&t) } else { Ok(t) }
}

fn dtype_of(t: &TypeStr) -> Option<DType> {
    Some(match (t.type_char(), t.size_field()) {
        (TypeChar::Float, 8) => DType::F64,
        (TypeChar::Float, 4) => DType::F32,
        (TypeChar::Float, 2) => DType::F16,
        (TypeChar::Int, 8) => DType::I64,
        (TypeChar::Int, 4) => DType::I32,
        (TypeChar::Int, 2) => DType::I16,
        (TypeChar::Int, 1) => DType::I8,
        (TypeChar::Uint, 1) => DType::U8,
        (TypeChar::Bool, 1) => DType::Bool,
        (TypeChar::Complex, 8) => DType::C64,
        _ => return None,
    })
}

/// The same values in row-major order.
fn from_column_major(t: &Tensor) -> Result<Tensor, Fault> {
    let mut out = Tensor::new(t.dtype, &t.shape, false)?;
    let size = t.dtype.bytes();
    let mut strides = vec![1usize; t.rank()];
    for i in 1..t.rank() {
        strides[i] = strides[i - 1] * t.shape[i - 1] as usize;
    }
    let mut index = vec![0u64; t.rank()];
    let source = t.host()?;
    for element in out.host_mut()?.chunks_exact_mut(size) {
        let at: usize = index.iter().zip(&strides).map(|(&i, s)| i as usize * s).sum();
        element.copy_from_slice(&source[at * size..(at + 1) * size]);
        for (i, n) in index.iter_mut().zip(&t.shape).rev() {
            *i += 1;
            if *i < *n {
                break;
            }
            *i = 0;
        }
    }
    Ok(out)
}

/// Writes a tensor. bf16, fp8 and tf32 have no NumPy type and are refused.
pub fn write(path: &Path, t: &Tensor) -> Result<(), Fault> {
    let (header, data) = (header(t)?, t.host()?);
    files::write_atomically(path, |out| {
        out.write_all(&header).and_then(|()| out.write_all(data)).map_err(|e| files::write_fault(path, &e))
    })
}

/// The header of format 1.0, padded to 64 bytes.
pub fn header(t: &Tensor) -> Result<Vec<u8>, Fault> {
    let descr = match t.dtype {
        DType::F64 => "<f8",
        DType::F32 => "<f4",
        DType::F16 => "<f2",
        DType::I64 => "<i8",
        DType::I32 => "<i4",
        DType::I16 => "<i2",
        DType::I8 => "|i1",
        DType::U8 => "|u1",
        DType::Bool => "|b1",
        DType::C64 => "<c8",
        other => {
            return Err(Fault::new(707, format!("a {other} tensor cannot be written as .npy: NumPy has no such type"))
                .note("convert it with `.to(f32)`, or use `io.write_safetensors`"));
        }
    };
    let sizes: Vec<String> = t.shape.iter().map(u64::to_string).collect();
    let tuple = if sizes.len() == 1 { format!("({},)", sizes[0]) } else { format!("({})", sizes.join(", ")) };
    let mut dict = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {tuple}, }}");
    let total = (10 + dict.len() + 1).next_multiple_of(64);
    dict.push_str(&" ".repeat(total - 10 - dict.len() - 1));
    dict.push('\n');
    let len = u16::try_from(dict.len()).map_err(|_| Fault::new(707, "the tensor has too many dims for .npy"))?;
    let mut out = b"\x93NUMPY\x01\x00".to_vec();
    out.extend_from_slice(&len.to_le_bytes());
    out.extend_from_slice(dict.as_bytes());
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_damage_is_told() -> Result<(), Fault> {
        let t = Tensor::from_bytes(DType::I16, &[2, 3], &[1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0])?;
        let mut bytes = header(&t)?;
        assert_eq!(bytes.len() % 64, 0);
        bytes.extend_from_slice(t.bytes());
        let back = read_from(&bytes[..], bytes.len() as u64, "t")?;
        assert_eq!((back.dtype, back.shape.as_slice(), back.bytes()), (DType::I16, &[2, 3][..], t.bytes()));
        for cut in 0..bytes.len() {
            let e = read_from(&bytes[..cut], cut as u64, "t").err();
            assert_eq!(e.map(|e| e.code), Some(707), "cut at {cut}");
        }
        Ok(())
    }
}
