//! IDX, the format of MNIST: the type of the elements, the sizes, then the elements, all
//! big-endian.

use super::files;
use crate::fault::{Fault, shown};
use crate::tensor::{Tensor, bytes_of};
use std::path::Path;
use tessera_base::DType;

/// Reads a tensor; gzip is unpacked.
pub fn read(path: &Path) -> Result<Tensor, Fault> {
    parse(&files::read_all(path)?)
        .map_err(|why| Fault::new(707, format!("`{}` is not a readable IDX file: {why}", shown(path))))?
}

/// The tensor in the bytes, or why there is none.
fn parse(bytes: &[u8]) -> Result<Result<Tensor, Fault>, String> {
    let Some((&[0, 0, code, rank], rest)) = bytes.split_first_chunk() else {
        return Err("it does not begin with two zero bytes, an element type and a number of dims".into());
    };
    let dtype = match code {
        0x08 => DType::U8,
        0x09 => DType::I8,
        0x0b => DType::I16,
        0x0c => DType::I32,
        0x0d => DType::F32,
        0x0e => DType::F64,
        _ => return Err(format!("its element type {code:#04x} is none of 0x08, 0x09, 0x0b to 0x0e")),
    };
    let dims = 4 * usize::from(rank);
    let Some((sizes, data)) = rest.split_at_checked(dims) else {
        return Err(format!("it ends before its {rank} sizes"));
    };
    let shape: Vec<u64> = sizes.as_chunks().0.iter().map(|b| u64::from(u32::from_be_bytes(*b))).collect();
    let wanted = bytes_of(dtype, &shape);
    if wanted != Some(data.len() as u64) {
        let wanted = wanted.map_or("more than 64 bits count".into(), |n| n.to_string());
        return Err(format!("sizes {shape:?} of {dtype} need {wanted} bytes of data, it has {}", data.len()));
    }
    let mut little = data.to_vec();
    little.chunks_exact_mut(dtype.bytes()).for_each(<[u8]>::reverse);
    Ok(Tensor::from_bytes(dtype, &shape, &little).map_err(Fault::from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_turned_round_and_damage_is_told() -> Result<(), Fault> {
        let bytes = [0, 0, 0x0b, 2, 0, 0, 0, 1, 0, 0, 0, 2, 1, 2, 255, 254];
        let t = parse(&bytes).map_err(|e| Fault::new(707, e))??;
        assert_eq!((t.dtype, &t.shape[..], t.bytes()), (DType::I16, &[1, 2][..], &[2, 1, 254, 255][..]));
        for cut in 0..bytes.len() {
            assert!(parse(&bytes[..cut]).is_err(), "cut at {cut}");
        }
        assert!(parse(&[0, 0, 7, 0, 1]).is_err() && parse(&[0, 0, 8, 1, 255, 255, 255, 255]).is_err());
        Ok(())
    }
}
