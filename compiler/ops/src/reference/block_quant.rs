//! Numbers in blocks, and products with them.

use super::ArrayRef;
use super::dot;
use super::reduce::Summation;
use tessera_base::{Blocks, DType};

fn numbers(format: Blocks, bytes: &[u8]) -> Vec<f32> {
    let mut out = vec![0.0; bytes.len() / format.bytes() * format.elems()];
    for (block, numbers) in bytes.chunks_exact(format.bytes()).zip(out.chunks_exact_mut(format.elems())) {
        format.decode(block, numbers);
    }
    out
}

pub fn quantize(format: Blocks, x: ArrayRef) -> Vec<u8> {
    let numbers: Vec<f32> = x.bytes.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
    let mut out = vec![0; numbers.len() / format.elems() * format.bytes()];
    for (numbers, block) in numbers.chunks_exact(format.elems()).zip(out.chunks_exact_mut(format.bytes())) {
        format.encode(numbers, block);
    }
    out
}

pub fn dequantize(format: Blocks, x: ArrayRef) -> Vec<u8> {
    numbers(format, x.bytes).into_iter().flat_map(f32::to_le_bytes).collect()
}

/// The product that [`dot::dot`] gives with the numbers turned.
pub fn dot(format: Blocks, x: ArrayRef, blocks: ArrayRef) -> Vec<u8> {
    let (k, n) = (x.shape[1] as usize, blocks.shape[0] as usize);
    let rows = numbers(format, blocks.bytes);
    let mut turned = vec![0u8; rows.len() * 4];
    for (i, value) in rows.into_iter().enumerate() {
        let at = (i % k.max(1) * n + i / k.max(1)) * 4;
        turned[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }
    let right = ArrayRef { dtype: DType::F32, shape: &[k as u64, n as u64], bytes: &turned };
    let form = dot::Form {
        accum: DType::F32,
        steps: crate::prim::Steps::All,
        order: crate::prim::Order::Chain,
        leaf: crate::prim::fold::DOT_LEAF,
        summation: Summation::Canonical,
    };
    dot::dot(x, right, form, DType::F32)
}
