//! Steps of a plan that are Rust code: reference kernels, what devices exchange.

use crate::pool::Pool;
use std::sync::Arc;
use tessera_abi::plan::{Access, BufRef, HostOperand, ScalarRef, Step, StepOrigin, Stop};

/// What a native step computes: reads the inputs, fills the outputs. Scalars are words.
pub type NativeFn = dyn Fn(&[&[u8]], &mut [&mut [u8]], &[u64]) -> Result<(), Stop> + Send + Sync;

/// An operand in memory with its length in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Operand {
    pub place: BufRef,
    pub bytes: usize,
}

/// A step that runs on the calling thread. No output may share memory with another operand.
pub fn step(
    name: &str,
    inputs: &[Operand],
    outputs: &[Operand],
    scalars: Vec<ScalarRef>,
    origin: StepOrigin,
    run: Arc<NativeFn>,
) -> Step {
    let in_bytes: Vec<usize> = inputs.iter().map(|o| o.bytes).collect();
    let out_bytes: Vec<usize> = outputs.iter().map(|o| o.bytes).collect();
    let code = move |addresses: &[*mut u8], words: &[u64]| {
        let (ins, outs) = addresses.split_at(in_bytes.len());
        // SAFETY: the plan gives every operand the bytes it was made for, filled for inputs;
        // outputs are disjoint from all others.
        let ins: Vec<&[u8]> = ins.iter().zip(&in_bytes).map(|(&p, &n)| unsafe { bytes(p, n) }).collect();
        // SAFETY: as above.
        let mut outs: Vec<&mut [u8]> = outs.iter().zip(&out_bytes).map(|(&p, &n)| unsafe { bytes_mut(p, n) }).collect();
        run(&ins, &mut outs, words)
    };
    let operand = |o: &Operand, access| HostOperand { buf: o.place, bytes: o.bytes as u64, access };
    let read = inputs.iter().map(|o| operand(o, Access::Read));
    let operands = read.chain(outputs.iter().map(|o| operand(o, Access::Write))).collect();
    Step::Host { name: name.into(), run: Arc::new(code), operands, scalars, origin }
}

/// Copies on threads where that is worth it.
pub fn copy_on_threads(pool: &Pool, from: &[u8], to: &mut [u8]) {
    /// Bytes that a thread takes at once.
    const CHUNK: usize = 1 << 20;
    pool.each_chunk(to, CHUNK, &|i, chunk| {
        if let Some(source) = from.get(i * CHUNK..i * CHUNK + chunk.len()) {
            chunk.copy_from_slice(source);
        }
    });
}

/// The same of memory.
///
/// # Safety
/// `n` bytes are readable at `from` and writable at `to`, and the two do not overlap.
pub unsafe fn copy(pool: &Pool, from: *const u8, to: *mut u8, n: usize) {
    // SAFETY: the caller's promise.
    unsafe { copy_on_threads(pool, bytes(from.cast_mut(), n), bytes_mut(to, n)) }
}

/// # Safety
/// `n` bytes are readable at `p` unless `n` is 0.
unsafe fn bytes<'a>(p: *mut u8, n: usize) -> &'a [u8] {
    if n == 0 || p.is_null() {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(p, n) }
}

/// # Safety
/// `n` bytes are writable at `p` unless `n` is 0, and nothing else refers to them.
unsafe fn bytes_mut<'a>(p: *mut u8, n: usize) -> &'a mut [u8] {
    if n == 0 || p.is_null() {
        return &mut [];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts_mut(p, n) }
}
