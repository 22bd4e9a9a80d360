//! Contexts. Every device has its primary one; others are not there.

use super::code::Code;
use super::put;
use super::state::{CONTEXTS, INITIALISED, current, device, devices, healthy, state, synchronised};
use std::ffi::c_int;
use std::sync::atomic::Ordering;

/// The handle of a device's context.
pub fn handle(device: i32) -> usize {
    0x7E55_C000 + 16 * device as usize
}

/// The device of a context; None for the null context.
fn device_of(context: usize) -> Result<Option<i32>, Code> {
    match context {
        0 => Ok(None),
        _ => (0..devices()).find(|d| handle(*d) == context).map(Some).ok_or(Code::INVALID_CONTEXT),
    }
}

super::api! {
    fn cuInit(flags: u32) {
        match (flags, devices()) {
            (0, 0) => Err(Code::NO_DEVICE),
            (0, _) => {
                INITIALISED.store(true, Ordering::Relaxed);
                Ok(())
            }
            _ => Err(Code::INVALID_VALUE),
        }
    }

    fn cuDevicePrimaryCtxRetain(context: *mut usize, ordinal: c_int) {
        let device = device(ordinal)?;
        *state().retained.entry(device).or_default() += 1;
        put(context, handle(device))
    }

    fn cuDevicePrimaryCtxRelease_v2(ordinal: c_int) {
        let device = device(ordinal)?;
        let mut state = state();
        let count = state.retained.get_mut(&device).filter(|n| **n > 0).ok_or(Code::INVALID_CONTEXT)?;
        *count -= 1;
        if *count == 0 {
            state.forget(device);
        }
        Ok(())
    }

    fn cuDevicePrimaryCtxReset_v2(ordinal: c_int) {
        let device = device(ordinal)?;
        state().forget(device);
        Ok(())
    }

    fn cuDevicePrimaryCtxGetState(ordinal: c_int, flags: *mut u32, active: *mut c_int) {
        let device = device(ordinal)?;
        put(flags, 0)?;
        put(active, c_int::from(state().retained.get(&device).is_some_and(|n| *n > 0)))
    }

    fn cuDevicePrimaryCtxSetFlags_v2(ordinal: c_int, _flags: u32) {
        device(ordinal).map(|_| ())
    }

    fn cuCtxGetCurrent(context: *mut usize) {
        put(context, current().map_or(0, handle))
    }

    fn cuCtxSetCurrent(context: usize) {
        let device = device_of(context)?;
        CONTEXTS.with_borrow_mut(|stack| {
            stack.pop();
            stack.push(device);
        });
        Ok(())
    }

    fn cuCtxPushCurrent_v2(context: usize) {
        let device = device_of(context)?;
        CONTEXTS.with_borrow_mut(|stack| stack.push(device));
        Ok(())
    }

    fn cuCtxPopCurrent_v2(context: *mut usize) {
        let device = CONTEXTS.with_borrow_mut(Vec::pop).flatten().ok_or(Code::INVALID_CONTEXT)?;
        if context.is_null() { Ok(()) } else { put(context, handle(device)) }
    }

    fn cuCtxGetDevice(to: *mut c_int) {
        put(to, current()?)
    }

    fn cuCtxSynchronize() {
        let device = synchronised()?;
        state().captures_nothing(device)
    }

    fn cuCtxGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int) {
        healthy()?;
        put(least, 0)?;
        put(greatest, -5)
    }

    fn cuCtxGetApiVersion(_context: usize, version: *mut u32) {
        put(version, 12080)
    }

    fn cuCtxGetFlags(flags: *mut u32) {
        put(flags, 0)
    }

    fn cuCtxSetFlags(_flags: u32) {
        healthy().map(|_| ())
    }

    fn cuCtxGetLimit(value: *mut usize, _limit: u32) {
        put(value, 1024)
    }

    fn cuCtxSetLimit(_limit: u32, _value: usize) {
        healthy().map(|_| ())
    }

    fn cuCtxSetCacheConfig(_config: u32) {
        healthy().map(|_| ())
    }

    fn cuCtxGetCacheConfig(config: *mut u32) {
        put(config, 0)
    }

    fn cuCtxCreate_v2(_context: *mut usize, _flags: u32, _device: c_int) {
        Err(Code::NOT_SUPPORTED)
    }

    fn cuCtxDestroy_v2(_context: usize) {
        Err(Code::INVALID_CONTEXT)
    }

    fn cuProfilerStart() {
        Ok(())
    }

    fn cuProfilerStop() {
        Ok(())
    }
}
