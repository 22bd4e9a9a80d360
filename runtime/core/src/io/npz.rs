//! NumPy's `.npz`: a zip archive of `.npy` files.

use super::{files, npy};
use crate::fault::{Fault, shown};
use crate::tensor::Tensor;
use std::io::{Cursor, Write};
use std::path::Path;
use zip::write::SimpleFileOptions;

/// Reads every array, in the archive's order.
pub fn read(path: &Path) -> Result<Vec<(String, Tensor)>, Fault> {
    let bad = |why: String| Fault::new(707, format!("`{}` is not a readable .npz file: {why}", shown(path)));
    let (reader, _) = files::open(path)?;
    let mut archive = zip::ZipArchive::new(reader).map_err(|e| bad(e.to_string()))?;
    let mut out = vec![];
    for i in 0..archive.len() {
        let entry = archive.by_index(i).map_err(|e| bad(e.to_string()))?;
        let Some(name) = entry.name().strip_suffix(".npy").map(str::to_owned) else { continue };
        let size = entry.size();
        out.push((name.clone(), npy::read_from(entry, size, &format!("{}:{name}", shown(path)))?));
    }
    Ok(out)
}

/// Writes the arrays, not compressed (as NumPy's `savez`).
pub fn write(path: &Path, arrays: &[(String, Tensor)]) -> Result<(), Fault> {
    let mut bytes = Cursor::new(vec![]);
    let mut archive = zip::ZipWriter::new(&mut bytes);
    for (name, t) in arrays {
        let options = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored).large_file(true);
        let put = archive.start_file(format!("{name}.npy"), options).map_err(std::io::Error::from);
        let (header, data) = (npy::header(t)?, t.host()?);
        put.and_then(|()| archive.write_all(&header))
            .and_then(|()| archive.write_all(data))
            .map_err(|e| files::write_fault(path, &e))?;
    }
    archive.finish().map_err(|e| files::write_fault(path, &e.into()))?;
    let bytes = bytes.into_inner();
    files::write_atomically(path, |out| out.write_all(&bytes).map_err(|e| files::write_fault(path, &e)))
}
