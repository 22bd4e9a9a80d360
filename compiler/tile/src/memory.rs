//! The memory of an interpreted kernel: who wrote what.
//!
//! Also called: shadow memory.

use tessera_ir::tile::{Buf, Space};
use tessera_ops::scalar::Kind;
use tessera_ops::scalar_eval::Lane;

/// Elements of one kind as bit patterns.
#[derive(Clone, PartialEq, Debug)]
pub struct Words {
    pub kind: Kind,
    pub words: Vec<u64>,
}

fn width(kind: Kind) -> usize {
    (kind.bits() as usize).div_ceil(8)
}

impl Words {
    pub fn from_lane(lane: &Lane) -> Words {
        let (kind, bytes) = (lane.kind(), lane.to_bytes());
        Words { kind, words: bytes.chunks(width(kind)).map(word).collect() }
    }

    pub fn lane(&self) -> Lane {
        let n = width(self.kind);
        let bytes: Vec<u8> = self.words.iter().flat_map(|w| w.to_le_bytes().into_iter().take(n)).collect();
        Lane::from_bytes(self.kind, &bytes)
    }

    /// One element repeated, or the elements themselves.
    pub fn wide(&self, lanes: u32) -> Words {
        match self.words[..] {
            [one] if lanes > 1 => Words { kind: self.kind, words: vec![one; lanes as usize] },
            _ => self.clone(),
        }
    }
}

/// Little-endian bytes, at most 8, as a word.
pub fn word(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |w, b| w << 8 | *b as u64)
}

/// A buffer with the grid point that wrote each element.
pub struct Memory {
    pub bytes: Vec<u8>,
    space: Space,
    size: usize,
    writer: Vec<Option<u64>>,
}

impl Memory {
    pub fn new(buf: &Buf, bytes: Vec<u8>) -> Memory {
        Memory { writer: vec![None; buf.elems as usize], bytes, space: buf.space, size: buf.dtype.bytes() }
    }

    /// Scratch is as good as new at every point: no point may rely on another's.
    pub fn begin(&mut self) {
        if self.space == Space::Scratch {
            self.writer.fill(None);
        }
    }

    fn position(&self, at: i64) -> Result<usize, String> {
        usize::try_from(at)
            .ok()
            .filter(|i| *i < self.writer.len())
            .ok_or_else(|| format!("position {at} of {} elements", self.writer.len()))
    }

    pub fn read(&self, at: i64, point: u64) -> Result<u64, String> {
        let i = self.position(at)?;
        match (self.space, self.writer[i]) {
            (Space::Scratch | Space::Out, None) => return Err(format!("element {at} is read before it is written")),
            (_, Some(other)) if other != point => {
                return Err(format!("element {at} is read by point {point} and written by point {other}"));
            }
            _ => {}
        }
        Ok(word(&self.bytes[i * self.size..(i + 1) * self.size]))
    }

    pub fn write(&mut self, at: i64, value: u64, point: u64) -> Result<(), String> {
        let i = self.position(at)?;
        if let Some(other) = self.writer[i].filter(|p| *p != point) {
            return Err(format!("element {at} is written by points {other} and {point}"));
        }
        self.writer[i] = Some(point);
        let size = self.size;
        self.bytes[i * size..(i + 1) * size].copy_from_slice(&value.to_le_bytes()[..size]);
        Ok(())
    }
}
