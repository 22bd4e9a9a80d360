//! Complex numbers from their parts and back.

use super::ArrayRef;

/// The real or the imaginary parts.
pub fn part(x: ArrayRef, imag: bool) -> Vec<u8> {
    x.bytes.chunks_exact(8).flat_map(|z| if imag { &z[4..] } else { &z[..4] }).copied().collect()
}

pub fn complex(re: ArrayRef, im: ArrayRef) -> Vec<u8> {
    re.bytes.chunks_exact(4).zip(im.bytes.chunks_exact(4)).flat_map(|(a, b)| [a, b].concat()).collect()
}
