//! The runtime functions of tensors, regions and files, by their rows in `abi::rt`.

use crate::context::Context;
use crate::rt::rows;
use tessera_abi::rt::RtFn;

/// The functions of this part of the table with their addresses.
pub fn symbols() -> Vec<(RtFn, *const u8)> {
    rows! {
        takes_6 region_call;
    }
}

extern "C" fn region_call(cx: &mut Context, region: i64, args: *const u64, arg_count: i64, results: *mut u64, result_count: i64, span: i64) {
    // SAFETY: compiled code passes the addresses of so many words on its stack.
    let (args, results) = unsafe { (words(args, arg_count), words_mut(results, result_count)) };
    cx.call_region(region as u32, args, results, span as u32);
}

/// # Safety
/// `count` words are readable at `address`; no address is needed for none.
unsafe fn words<'a>(address: *const u64, count: i64) -> &'a [u64] {
    if count <= 0 {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(address, count as usize) }
}

/// # Safety
/// `count` words are writable at `address`, and nothing else refers to them.
unsafe fn words_mut<'a>(address: *mut u64, count: i64) -> &'a mut [u64] {
    if count <= 0 {
        return &mut [];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts_mut(address, count as usize) }
}
