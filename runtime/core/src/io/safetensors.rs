//! Hugging Face's safetensors: a JSON header and raw little-endian data.

use super::files;
use crate::fault::Fault;
use crate::tensor::Tensor;
use safetensors::{Dtype, SafeTensors, tensor::TensorView};
use std::path::Path;
use tessera_base::DType;

/// Reads every tensor, by name. The file is memory-mapped while it is read.
pub fn read(path: &Path) -> Result<Vec<(String, Tensor)>, Fault> {
    let bad = |why: String| Fault::new(707, format!("`{}` is not a readable safetensors file: {why}", path.display()));
    let (reader, len) = files::open(path)?;
    if len == 0 {
        return Err(bad("it is empty".into()));
    }
    // SAFETY: the mapping is read once, here, and copied; a file that shrinks meanwhile is the
    // one hazard of every memory mapping.
    let map = unsafe { memmap2::Mmap::map(reader.get_ref()) }.map_err(|e| files::read_fault(path, &e))?;
    let file = SafeTensors::deserialize(&map).map_err(|e| bad(e.to_string()))?;
    let mut views: Vec<(&str, TensorView)> = file.iter().collect();
    views.sort_by(|a, b| a.0.cmp(b.0));
    let mut out = vec![];
    for (name, view) in views {
        let dtype = from_file(view.dtype()).ok_or_else(|| {
            bad(format!("tensor `{name}` has elements of type {:?}, which has no counterpart here", view.dtype()))
        })?;
        let shape: Vec<u64> = view.shape().iter().map(|&n| n as u64).collect();
        out.push((name.to_owned(), Tensor::from_bytes(dtype, &shape, view.data())?));
    }
    Ok(out)
}

/// Writes the tensors, sorted by name.
pub fn write(path: &Path, tensors: &[(String, Tensor)]) -> Result<(), Fault> {
    let mut views = vec![];
    for (name, t) in tensors {
        let shape: Vec<usize> = t.shape.iter().map(|&n| n as usize).collect();
        let view = TensorView::new(to_file(t.dtype), shape, t.bytes());
        views.push((name.as_str(), view.map_err(|e| Fault::new(707, format!("tensor `{name}`: {e}")))?));
    }
    views.sort_by(|a, b| a.0.cmp(b.0));
    let bytes = safetensors::serialize(views, None).map_err(|e| Fault::new(707, e.to_string()))?;
    files::write_atomically(path, |out| out.write_all(&bytes).map_err(|e| files::write_fault(path, &e)))
}

fn from_file(d: Dtype) -> Option<DType> {
    Some(match d {
        Dtype::F64 => DType::F64,
        Dtype::F32 => DType::F32,
        Dtype::BF16 => DType::Bf16,
        Dtype::F16 => DType::F16,
        Dtype::F8_E4M3 => DType::F8E4M3,
        Dtype::F8_E5M2 => DType::F8E5M2,
        Dtype::I64 => DType::I64,
        Dtype::I32 => DType::I32,
        Dtype::I16 => DType::I16,
        Dtype::I8 => DType::I8,
        Dtype::U8 => DType::U8,
        Dtype::BOOL => DType::Bool,
        Dtype::C64 => DType::C64,
        _ => return None,
    })
}

fn to_file(d: DType) -> Dtype {
    match d {
        DType::F64 => Dtype::F64,
        DType::F32 | DType::Tf32 => Dtype::F32,
        DType::Bf16 => Dtype::BF16,
        DType::F16 => Dtype::F16,
        DType::F8E4M3 => Dtype::F8_E4M3,
        DType::F8E5M2 => Dtype::F8_E5M2,
        DType::I64 => Dtype::I64,
        DType::I32 => Dtype::I32,
        DType::I16 => Dtype::I16,
        DType::I8 => Dtype::I8,
        DType::U8 => Dtype::U8,
        DType::Bool => Dtype::BOOL,
        DType::C64 => Dtype::C64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tensors_survive_a_round_trip_and_a_cut_file_is_refused() -> Result<(), Fault> {
        let dir = tempfile::tempdir().map_err(|e| Fault::new(706, e.to_string()))?;
        let path = dir.path().join("m.safetensors");
        let t = Tensor::from_bytes(DType::Bf16, &[2], &[0x80, 0x3f, 0, 0x40])?;
        write(&path, &[("w".into(), t.clone())])?;
        let back = read(&path)?;
        assert_eq!((back[0].0.as_str(), back[0].1.bytes()), ("w", t.bytes()));
        let bytes = files::read_all(&path)?;
        files::write_atomically(&path, |out| {
            out.write_all(&bytes[..bytes.len() - 1]).map_err(|e| files::write_fault(&path, &e))
        })?;
        assert_eq!(read(&path).err().map(|e| e.code), Some(707));
        Ok(())
    }
}
