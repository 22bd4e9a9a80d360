//! Maps, conversions and arrays made from nothing.

use super::layout::split;
use super::{ArrayRef, TypeRef, elems};
use crate::convert::{self, store};
use crate::map::{MapOp, kind_of};
use crate::prim::Scalar;
use crate::scalar_eval::eval;
use tessera_base::DType;

/// Elements that are widened, computed and narrowed at a time, so that they stay in the cache.
const BLOCK: usize = 8192;

pub fn full(value: Scalar, result: TypeRef) -> Vec<u8> {
    store(result.dtype, value).repeat(elems(result.shape).unwrap_or(0))
}

pub fn iota(axis: usize, result: TypeRef) -> Vec<u8> {
    let s = split(result.shape, axis);
    // Another dim may be empty while this one is huge.
    if s.outer == 0 || s.inner == 0 {
        return Vec::new();
    }
    let size = result.dtype.bytes();
    let numbers: Vec<u8> = (0..s.n as i64).flat_map(i64::to_le_bytes).collect();
    let numbers = convert::cast(DType::I64, result.dtype, &numbers);
    let mut one = Vec::with_capacity(numbers.len() * s.inner);
    for number in numbers.chunks_exact(size) {
        for _ in 0..s.inner {
            one.extend_from_slice(number);
        }
    }
    one.repeat(s.outer)
}

/// Operands have one shape; [`super::shape_check`] has seen that the function takes their type.
pub fn map(op: MapOp, operands: &[ArrayRef], dtype: DType) -> Vec<u8> {
    if op == MapOp::r#where {
        return choose(operands, dtype.bytes());
    }
    let Some(kind) = operands.last().and_then(|a| kind_of(a.dtype)) else { return Vec::new() };
    let program = op.program(&op.operand_kinds(kind));
    let n = operands.last().and_then(|a| elems(a.shape)).unwrap_or(0);
    let mut out = Vec::with_capacity(n * dtype.bytes());
    let mut at = 0;
    while at < n {
        let len = BLOCK.min(n - at);
        let lanes: Vec<_> = operands
            .iter()
            .map(|a| {
                let size = a.dtype.bytes();
                convert::widen(a.dtype, &a.bytes[at * size..(at + len) * size])
            })
            .collect();
        let lane = eval(program, &lanes, len);
        out.extend(if op.keeps() { convert::keep(dtype, &lane) } else { convert::narrow(dtype, &lane) });
        at += len;
    }
    out
}

/// `where` moves elements; nothing is rounded.
fn choose(operands: &[ArrayRef], size: usize) -> Vec<u8> {
    let [c, a, b] = operands else { return Vec::new() };
    let pairs = a.bytes.chunks_exact(size).zip(b.bytes.chunks_exact(size));
    c.bytes.iter().zip(pairs).flat_map(|(&c, (a, b))| if c != 0 { a } else { b }).copied().collect()
}

pub fn cast(a: ArrayRef, dtype: DType) -> Vec<u8> {
    a.bytes.chunks(BLOCK * a.dtype.bytes()).flat_map(|block| convert::cast(a.dtype, dtype, block)).collect()
}
