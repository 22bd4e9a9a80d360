//! Memory: allocation, copies, fills.

use super::code::Code;
use super::context::handle;
use super::put;
use super::state::{Allocation, Owner, current, device, healthy, memory_bytes, state, synchronised};
use super::work::{Node, submit};
use crate::module::Storage;
use std::ffi::{c_int, c_void};
use std::sync::Arc;

/// Allocates poisoned memory; `device` is None for memory of the host.
fn allocate(bytes: usize, device: Option<i32>) -> Result<u64, Code> {
    if bytes == 0 {
        return Err(Code::INVALID_VALUE);
    }
    let mut state = state();
    if let Some(device) = device {
        let used = state.used.get(&device).copied().unwrap_or(0);
        if (bytes as u64).checked_add(used).is_none_or(|sum| sum > memory_bytes()) {
            return Err(Code::OUT_OF_MEMORY);
        }
    }
    let mut storage = Storage::new(bytes, 256).ok_or(Code::OUT_OF_MEMORY)?;
    if device.is_some() {
        storage.bytes_mut().fill(0xFF);
    }
    let address = storage.address();
    if let Some(device) = device {
        *state.used.entry(device).or_default() += bytes as u64;
    }
    let storage = Owner::Standin(Arc::new(storage));
    state.allocations.insert(address, Allocation { storage, bytes: bytes as u64, device });
    Ok(address)
}

/// Gives an allocation back.
fn free(address: u64, of_device: bool) -> Result<(), Code> {
    let mut state = state();
    match state.allocations.get(&address) {
        Some(found) if found.device.is_some() == of_device && matches!(found.storage, Owner::Standin(_)) => {}
        _ => return Err(Code::INVALID_VALUE),
    }
    let found = state.allocations.remove(&address);
    if let Some(Allocation { device: Some(device), bytes, .. }) = found {
        *state.used.entry(device).or_default() -= bytes;
    }
    Ok(())
}

/// Copies and fills that do not name a stream are not allowed while one of their device captures.
fn no_capture() -> Result<(), Code> {
    let device = synchronised()?;
    state().captures_nothing(device)
}

/// Which side of a copy belongs to a device.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    ToDevice,
    ToHost,
    OnDevice,
}

fn copy(to: u64, from: u64, bytes: usize, stream: Option<usize>, way: Way) -> Result<(), Code> {
    match stream {
        None => no_capture()?,
        // What the host gets is there when the call returns, as with memory that is not pinned.
        Some(stream) if way == Way::ToHost && state().capture_of(stream).is_none() => synchronised().map(|_| ())?,
        Some(_) => {}
    }
    let node = Node::Copy { to, from, bytes, device_to: way != Way::ToHost, device_from: way != Way::ToDevice };
    submit(stream.unwrap_or(0), node)
}

fn fill(to: u64, value: u32, size: usize, count: usize, stream: Option<usize>) -> Result<(), Code> {
    if stream.is_none() {
        no_capture()?;
    }
    if !to.is_multiple_of(size as u64) {
        return Err(Code::INVALID_VALUE);
    }
    submit(stream.unwrap_or(0), Node::Fill { to, value, size, count })
}

/// Copies between addresses of any kind: one space holds all.
fn copy_any(to: u64, from: u64, bytes: usize, stream: Option<usize>) -> Result<(), Code> {
    if stream.is_none() {
        no_capture()?;
    }
    submit(stream.unwrap_or(0), Node::Copy { to, from, bytes, device_to: false, device_from: false })
}

/// An attribute of an address, as it is to be written: number of bytes and value.
fn pointer_attribute(attribute: u32, address: u64) -> Result<(usize, u64), Code> {
    let state = state();
    let (start, found) = state.allocation(address).ok_or(Code::INVALID_VALUE)?;
    Ok(match attribute {
        1 => (8, handle(found.device.unwrap_or(0)) as u64),
        // 1 for the host's memory, 2 for a device's.
        2 => (4, 1 + u64::from(found.device.is_some())),
        3 => (8, address),
        4 if found.device.is_none() => (8, address),
        7 => (8, start),
        8 => (1, 0),
        9 => (4, found.device.unwrap_or(0) as u64),
        11 => (8, start),
        12 => (8, found.bytes),
        13 => (1, 1),
        _ => return Err(Code::INVALID_VALUE),
    })
}

/// The only pool of a device.
fn pool(device: i32) -> usize {
    0x7E55_D000 + 16 * device as usize
}

super::api! {
    fn cuMemAlloc_v2(to: *mut u64, bytes: usize) {
        let device = healthy()?;
        put(to, allocate(bytes, Some(device))?)
    }

    fn cuMemAllocAsync(to: *mut u64, bytes: usize, stream: usize) {
        let device = healthy()?;
        state().stream(stream)?;
        put(to, allocate(bytes, Some(device))?)
    }

    fn cuMemAllocFromPoolAsync(to: *mut u64, bytes: usize, _pool: usize, stream: usize) {
        let device = healthy()?;
        state().stream(stream)?;
        put(to, allocate(bytes, Some(device))?)
    }

    fn cuMemAllocManaged(_to: *mut u64, _bytes: usize, _flags: u32) {
        Err(Code::NOT_SUPPORTED)
    }

    fn cuMemFree_v2(address: u64) {
        healthy()?;
        if address == 0 { Ok(()) } else { free(address, true) }
    }

    fn cuMemFreeAsync(address: u64, stream: usize) {
        healthy()?;
        state().stream(stream)?;
        if address == 0 { Ok(()) } else { free(address, true) }
    }

    fn cuMemGetInfo_v2(left: *mut usize, total: *mut usize) {
        let device = healthy()?;
        let used = state().used.get(&device).copied().unwrap_or(0);
        put(left, memory_bytes().saturating_sub(used) as usize)?;
        put(total, memory_bytes() as usize)
    }

    fn cuMemGetAddressRange_v2(base: *mut u64, size: *mut usize, address: u64) {
        let state = state();
        let (start, found) = state.allocation(address).ok_or(Code::NOT_FOUND)?;
        if !base.is_null() {
            put(base, start)?;
        }
        if size.is_null() { Ok(()) } else { put(size, found.bytes as usize) }
    }

    fn cuMemAllocHost_v2(to: *mut *mut c_void, bytes: usize) {
        healthy()?;
        put(to, allocate(bytes, None)? as *mut c_void)
    }

    fn cuMemHostAlloc(to: *mut *mut c_void, bytes: usize, _flags: u32) {
        healthy()?;
        put(to, allocate(bytes, None)? as *mut c_void)
    }

    fn cuMemFreeHost(address: *mut c_void) {
        current()?;
        free(address as u64, false)
    }

    fn cuMemHostRegister_v2(address: *mut c_void, bytes: usize, _flags: u32) {
        healthy()?;
        if address.is_null() || bytes == 0 {
            return Err(Code::INVALID_VALUE);
        }
        let found = Allocation { storage: Owner::Caller, bytes: bytes as u64, device: None };
        state().allocations.insert(address as u64, found);
        Ok(())
    }

    fn cuMemHostUnregister(address: *mut c_void) {
        let mut state = state();
        match state.allocations.get(&(address as u64)) {
            Some(Allocation { storage: Owner::Caller, .. }) => {
                state.allocations.remove(&(address as u64));
                Ok(())
            }
            _ => Err(Code::INVALID_VALUE),
        }
    }

    fn cuMemHostGetDevicePointer_v2(to: *mut u64, address: *mut c_void, _flags: u32) {
        state().allocation(address as u64).ok_or(Code::INVALID_VALUE)?;
        put(to, address as u64)
    }

    fn cuMemHostGetFlags(flags: *mut u32, _address: *mut c_void) {
        put(flags, 0)
    }

    fn cuPointerGetAttribute(data: *mut c_void, attribute: u32, address: u64) {
        match pointer_attribute(attribute, address)? {
            (1, value) => put(data.cast::<u8>(), value as u8),
            (4, value) => put(data.cast::<u32>(), value as u32),
            (_, value) => put(data.cast::<u64>(), value),
        }
    }

    fn cuMemcpyHtoD_v2(to: u64, from: *const c_void, bytes: usize) {
        copy(to, from as u64, bytes, None, Way::ToDevice)
    }

    fn cuMemcpyHtoDAsync_v2(to: u64, from: *const c_void, bytes: usize, stream: usize) {
        copy(to, from as u64, bytes, Some(stream), Way::ToDevice)
    }

    fn cuMemcpyDtoH_v2(to: *mut c_void, from: u64, bytes: usize) {
        copy(to as u64, from, bytes, None, Way::ToHost)
    }

    fn cuMemcpyDtoHAsync_v2(to: *mut c_void, from: u64, bytes: usize, stream: usize) {
        copy(to as u64, from, bytes, Some(stream), Way::ToHost)
    }

    fn cuMemcpyDtoD_v2(to: u64, from: u64, bytes: usize) {
        copy(to, from, bytes, None, Way::OnDevice)
    }

    fn cuMemcpyDtoDAsync_v2(to: u64, from: u64, bytes: usize, stream: usize) {
        copy(to, from, bytes, Some(stream), Way::OnDevice)
    }

    fn cuMemcpy(to: u64, from: u64, bytes: usize) {
        copy_any(to, from, bytes, None)
    }

    fn cuMemcpyAsync(to: u64, from: u64, bytes: usize, stream: usize) {
        copy_any(to, from, bytes, Some(stream))
    }

    fn cuMemcpyPeerAsync(to: u64, _to_context: usize, from: u64, _from_context: usize, bytes: usize, stream: usize) {
        copy(to, from, bytes, Some(stream), Way::OnDevice)
    }

    fn cuMemsetD8_v2(to: u64, value: u8, count: usize) {
        fill(to, value.into(), 1, count, None)
    }

    fn cuMemsetD16_v2(to: u64, value: u16, count: usize) {
        fill(to, value.into(), 2, count, None)
    }

    fn cuMemsetD32_v2(to: u64, value: u32, count: usize) {
        fill(to, value, 4, count, None)
    }

    fn cuMemsetD8Async(to: u64, value: u8, count: usize, stream: usize) {
        fill(to, value.into(), 1, count, Some(stream))
    }

    fn cuMemsetD16Async(to: u64, value: u16, count: usize, stream: usize) {
        fill(to, value.into(), 2, count, Some(stream))
    }

    fn cuMemsetD32Async(to: u64, value: u32, count: usize, stream: usize) {
        fill(to, value, 4, count, Some(stream))
    }

    fn cuDeviceGetDefaultMemPool(to: *mut usize, ordinal: c_int) {
        put(to, pool(device(ordinal)?))
    }

    fn cuDeviceGetMemPool(to: *mut usize, ordinal: c_int) {
        put(to, pool(device(ordinal)?))
    }

    fn cuDeviceSetMemPool(ordinal: c_int, _pool: usize) {
        device(ordinal).map(|_| ())
    }

    fn cuMemPoolSetAttribute(_pool: usize, _attribute: u32, _value: *mut c_void) {
        Ok(())
    }

    fn cuMemPoolGetAttribute(_pool: usize, attribute: u32, value: *mut c_void) {
        let used = state().used.values().sum::<u64>();
        match attribute {
            1..=3 => put(value.cast::<c_int>(), 1),
            4 => put(value.cast::<u64>(), 0),
            5..=8 => put(value.cast::<u64>(), used),
            _ => Err(Code::INVALID_VALUE),
        }
    }

    fn cuMemPoolTrimTo(_pool: usize, _keep: usize) {
        Ok(())
    }

    fn cuMemPrefetchAsync(_address: u64, _bytes: usize, _device: c_int, stream: usize) {
        state().stream(stream)
    }
}
