//! Hugging Face's safetensors: a JSON header and raw little-endian data.

use super::files;
use super::replace::{Durability, replace};
use crate::fault::{Fault, shown};
use crate::tensor::{Buffer, Mapping, Tensor, bytes_of};
use indexmap::IndexMap;
use safetensors::{Dtype, SafeTensors, tensor::TensorView};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;
use tessera_base::DType;

/// Files from this size on stay mapped and are read where they are used; smaller ones are copied,
/// so that nothing done to the file later can be seen.
const MAPPED_BYTES_MIN: u64 = 64 << 20;

/// What the header may take, as the format's own reader limits it.
const HEADER_BYTES_MAX: u64 = 100_000_000;

/// Under what the header has the texts: no tensor can have that name.
pub const TEXTS_NAME: &str = "__metadata__";

/// The content of a file.
#[derive(Default)]
pub struct Content {
    /// By name, sorted.
    pub tensors: IndexMap<String, Tensor>,
    /// The texts that the header carries beside the tensors.
    pub texts: BTreeMap<String, String>,
}

/// Reads a file. Tensors of a large file are views of it until they are changed.
pub fn read(path: &Path) -> Result<Content, Fault> {
    // Before it is opened: nobody may ever write to a pipe.
    if std::fs::metadata(path).is_ok_and(|m| !m.is_file() && !m.is_dir()) {
        let text = format!("`{}` is not a safetensors file: a pipe or a device has no length", shown(path));
        return Err(Fault::new(707, text).note("its content can be written to a file first"));
    }
    let (mut reader, len) = files::open(path)?;
    let mut start = vec![];
    reader.by_ref().take(9).read_to_end(&mut start).map_err(|e| files::read_fault(path, &e))?;
    if let Some(fault) = misfit(path, &start, len) {
        return Err(fault);
    }
    // SAFETY: the mapping is private, so what is written to it stays in this process. A file
    // that is cut off while it is mapped is the one hazard of every mapping.
    let map = unsafe { memmap2::MmapOptions::new().map_copy(reader.get_ref()) };
    let map = Arc::new(Mapping::new(map.map_err(|e| files::read_fault(path, &e))?));
    let bad =
        |why: String| Fault::new(707, format!("`{}` is not a readable safetensors file: {}", shown(path), shown(why)));
    let explain = |e: safetensors::SafeTensorError| {
        bad(match promised_bytes(map.bytes()) {
            Some(promised) if promised != len => {
                format!("its header describes {promised} bytes in all, the file has {len}")
            }
            _ => e.to_string(),
        })
    };
    let (_, header) = SafeTensors::read_metadata(map.bytes()).map_err(explain)?;
    let file = SafeTensors::deserialize(map.bytes()).map_err(|e| bad(e.to_string()))?;
    let mut views: Vec<(&str, TensorView)> = file.iter().collect();
    views.sort_by(|a, b| a.0.cmp(b.0));
    let mut content = Content::default();
    for (name, view) in views {
        let dtype = from_file(view.dtype()).ok_or_else(|| {
            bad(format!("tensor `{name}` has elements of type {:?}, which has no counterpart here", view.dtype()))
        })?;
        let shape: Vec<u64> = view.shape().iter().map(|&n| n as u64).collect();
        content.tensors.insert(name.to_owned(), tensor(&map, dtype, &shape, view.data(), len)?);
    }
    content.texts.extend(header.metadata().iter().flatten().map(|(k, v)| (k.clone(), v.clone())));
    Ok(content)
}

/// How long the file should be by its header; `None` where that cannot be read.
fn promised_bytes(bytes: &[u8]) -> Option<u64> {
    let header = u64::from_le_bytes(bytes.first_chunk().copied()?);
    let end = usize::try_from(header).ok()?.checked_add(8)?;
    let entries: serde_json::Map<String, Value> = serde_json::from_slice(bytes.get(8..end)?).ok()?;
    let ends = entries.values().filter_map(|entry| entry.get("data_offsets")?.get(1)?.as_u64());
    header.checked_add(8)?.checked_add(ends.max().unwrap_or(0))
}

/// A view of the mapping, or a copy where the file is small or its data not aligned.
fn tensor(map: &Arc<Mapping>, dtype: DType, shape: &[u64], data: &[u8], len: u64) -> Result<Tensor, Fault> {
    if bytes_of(dtype, shape) != Some(data.len() as u64) {
        return Err(Fault::new(707, format!("{} bytes of data do not make a tensor of shape {shape:?}", data.len())));
    }
    let part = dtype.bytes().min(8);
    if len < MAPPED_BYTES_MIN || data.is_empty() || !(data.as_ptr() as usize).is_multiple_of(part) {
        return Ok(Tensor::from_bytes(dtype, shape, data)?);
    }
    let start = data.as_ptr() as usize - map.bytes().as_ptr() as usize;
    match Buffer::mapped(map, start..start + data.len()) {
        Some(buffer) => Ok(Tensor::of(dtype, shape, buffer.into())),
        None => Ok(Tensor::from_bytes(dtype, shape, data)?),
    }
}

/// Why a file that starts like this cannot be of the format, if it cannot.
fn misfit(path: &Path, start: &[u8], len: u64) -> Option<Fault> {
    let refuse = |why: String| Fault::new(707, format!("`{}` is not a safetensors file: {why}", shown(path)));
    let Some(word) = start.first_chunk() else {
        return Some(refuse(if len == 0 { "it is empty".into() } else { format!("it has {len} bytes") }));
    };
    let header = u64::from_le_bytes(*word);
    let fits = header <= HEADER_BYTES_MAX && header <= len.saturating_sub(8);
    // The length of a header may look like the first bytes of anything; what follows it does not.
    if fits && start.get(8) == Some(&b'{') {
        return None;
    }
    let looks = match start {
        [b'P', b'K', 3, 4, ..] => "a zip archive: a `.npz`, or a PyTorch file, which holds a pickle",
        [0x80, 2..=5, ..] => "a pickle",
        [b'G', b'G', b'U', b'F', ..] => "a GGUF file",
        [0x93, b'N', b'U', b'M', ..] => "a `.npy` file",
        [0x1f, 0x8b, ..] => "gzip data",
        [b'v', b'e', b'r', b's', b'i', b'o', b'n', b' ', ..] => "a Git LFS pointer, which stands for the file",
        _ => "",
    };
    if !looks.is_empty() {
        let fault = refuse(format!("it looks like {looks}"));
        let pickle = looks.contains("pickle");
        return Some(match pickle {
            true => fault.note("pickles are not read, since they run code; save the tensors as safetensors"),
            false => fault,
        });
    }
    let promise = || format!("its first bytes promise a header of {header} bytes, the file has {len} in all");
    (!fits).then(|| refuse(promise()))
}

/// Writes the content atomically; of several processes the first one does.
pub fn write(path: &Path, content: &Content) -> Result<(), Fault> {
    let header = header(content)?;
    files::write_atomically(path, |out| put(path, content, &header, out))
}

/// The same in this process, whatever others do: for what each writes for itself.
pub fn write_here(path: &Path, content: &Content) -> Result<(), Fault> {
    let header = header(content)?;
    replace(path, Durability::OnDisk, |e| files::write_fault(path, &e), |out| put(path, content, &header, out))
}

/// The tensors in the order of the file: large elements come first.
fn in_order(content: &Content) -> Vec<(&String, &Tensor)> {
    let mut tensors: Vec<(&String, &Tensor)> = content.tensors.iter().collect();
    tensors.sort_by(|a, b| b.1.dtype.bytes().cmp(&a.1.dtype.bytes()).then(a.0.cmp(b.0)));
    tensors
}

/// The header, such that the data begins at a multiple of 64 bytes: then every tensor is aligned where the file is mapped.
fn header(content: &Content) -> Result<String, Fault> {
    let mut header = serde_json::Map::new();
    if !content.texts.is_empty() {
        header.insert(TEXTS_NAME.into(), json!(content.texts));
    }
    let mut at = 0;
    for (name, t) in in_order(content) {
        let end = at + t.byte_len();
        let entry = json!({"dtype": name_in_file(t.dtype), "shape": t.shape, "data_offsets": [at, end]});
        if name == TEXTS_NAME || header.insert(name.clone(), entry).is_some() {
            return Err(Fault::new(707, format!("a tensor cannot be called `{name}` in a safetensors file")));
        }
        at = end;
    }
    let mut header = Value::Object(header).to_string();
    let padded = (8 + header.len()).next_multiple_of(64) - 8;
    header.push_str(&" ".repeat(padded - header.len()));
    Ok(header)
}

/// The bytes of the file. Tensors in parts are put together one after the other.
fn put(path: &Path, content: &Content, header: &str, out: &mut dyn Write) -> Result<(), Fault> {
    let mut put = |bytes: &[u8]| out.write_all(bytes).map_err(|e| files::write_fault(path, &e));
    put(&(header.len() as u64).to_le_bytes())?;
    put(header.as_bytes())?;
    in_order(content).iter().try_for_each(|(_, t)| put(t.whole()?.host()?))
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

/// How the format names an element type.
fn name_in_file(d: DType) -> &'static str {
    match d {
        DType::F64 => "F64",
        DType::F32 | DType::Tf32 => "F32",
        DType::Bf16 => "BF16",
        DType::F16 => "F16",
        DType::F8E4M3 => "F8_E4M3",
        DType::F8E5M2 => "F8_E5M2",
        DType::I64 => "I64",
        DType::I32 => "I32",
        DType::I16 => "I16",
        DType::I8 => "I8",
        DType::U8 => "U8",
        DType::Bool => "BOOL",
        DType::C64 => "C64",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Result<Content, Fault> {
        let mut c = Content::default();
        c.tensors.insert("w".into(), Tensor::from_bytes(DType::Bf16, &[2], &[0x80, 0x3f, 0, 0x40])?);
        c.tensors.insert("a".into(), Tensor::from_bytes(DType::U8, &[3], &[1, 2, 3])?);
        c.tensors.insert("none".into(), Tensor::from_bytes(DType::F32, &[0, 4], &[])?);
        c.texts.insert("name".into(), "a \"small\" one".into());
        Ok(c)
    }

    #[test]
    fn content_survives_and_files_that_are_cut_or_changed_are_refused() -> Result<(), Fault> {
        let dir = tempfile::tempdir().map_err(|e| Fault::new(706, e.to_string()))?;
        let path = dir.path().join("m.safetensors");
        let content = sample()?;
        write(&path, &content)?;
        let back = read(&path)?;
        assert_eq!(back.texts, content.texts);
        assert_eq!(back.tensors.keys().collect::<Vec<_>>(), ["a", "none", "w"]);
        for (name, t) in &back.tensors {
            assert_eq!((t.dtype, &t.shape, t.bytes()), {
                let t = &content.tensors[name];
                (t.dtype, &t.shape, t.bytes())
            });
        }
        let bytes = files::read_all(&path)?;
        let put = |b: &[u8]| {
            files::write_atomically(&path, |out| out.write_all(b).map_err(|e| files::write_fault(&path, &e)))
        };
        for cut in 0..bytes.len() {
            put(&bytes[..cut])?;
            assert_eq!(read(&path).err().map(|e| e.code), Some(707), "cut at {cut}");
        }
        // A changed byte may go unnoticed in names and numbers; it must not do harm.
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 0x15;
            put(&changed)?;
            let _ = read(&path);
        }
        Ok(())
    }

    #[test]
    fn other_formats_are_told_by_name() -> Result<(), Fault> {
        let dir = tempfile::tempdir().map_err(|e| Fault::new(706, e.to_string()))?;
        let path = dir.path().join("m.pt");
        for (bytes, word) in
            [(&b"PK\x03\x04aaaaaaa"[..], "pickle"), (b"GGUF\x03\0\0\0\0", "GGUF"), (b"12345678", "header")]
        {
            files::write_atomically(&path, |out| out.write_all(bytes).map_err(|e| files::write_fault(&path, &e)))?;
            let told = read(&path).err().map(|e| format!("{} {:?}", e.message, e.notes)).unwrap_or_default();
            assert!(told.contains(word), "{told}");
        }
        Ok(())
    }

    #[test]
    fn a_header_of_any_length_is_read() -> Result<(), Fault> {
        let dir = tempfile::tempdir().map_err(|e| Fault::new(706, e.to_string()))?;
        let path = dir.path().join("m.safetensors");
        let put = |bytes: &[u8]| {
            files::write_atomically(&path, |out| out.write_all(bytes).map_err(|e| files::write_fault(&path, &e)))
        };
        // 640, 896, 1152 and 1408 begin as pickles do.
        for len in (64..1500u64).step_by(32) {
            let header = r#"{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}"#;
            let header = format!("{header:<0$}", len as usize);
            put(&[&len.to_le_bytes(), header.as_bytes(), &[7]].concat())?;
            assert_eq!(read(&path)?.tensors["a"].bytes(), [7], "{len}");
        }
        // 640 in the first eight bytes too.
        put(&[&640u64.to_le_bytes()[..], &[b'a'; 800]].concat())?;
        let told = read(&path).err().map(|e| e.message).unwrap_or_default();
        assert!(told.contains("a pickle"), "{told}");
        Ok(())
    }
}
