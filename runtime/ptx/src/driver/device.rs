//! Devices and what they are like.

use super::code::Code;
use super::put;
use super::state::{capability, device, devices, memory_bytes};
use std::ffi::{c_char, c_int};

/// The value of an attribute; those that are not named here are 0.
fn attribute(number: u32) -> i32 {
    let (major, minor) = capability();
    match number {
        // Threads of a block and its sizes.
        1..=3 => 1024,
        4 => 64,
        5 => 0x7FFF_FFFF,
        6 | 7 => 65535,
        // Shared memory of a block, constant memory, lanes, pitch.
        8 => 49_152,
        9 => 65_536,
        10 => 32,
        11 => 0x7FFF_FFFF,
        // Registers of a block, clock, alignment of textures, overlap, multiprocessors.
        12 | 82 => 65_536,
        13 => 1_755_000,
        14 => 512,
        15 => 1,
        16 => 4,
        // Mapped memory, concurrent kernels.
        19 | 31 => 1,
        34 => 0,
        // Memory: clock, bus, cache.
        36 => 2_619_000,
        37 => 5120,
        38 => 52_428_800,
        39 => 2048,
        // Copy engines, one address space.
        40 => 3,
        41 => 1,
        75 => major as i32,
        76 => minor as i32,
        78..=80 => 1,
        // Shared memory of a multiprocessor, managed memory.
        81 => 233_472,
        83 => 0,
        87 => 2,
        90 | 91 => 1,
        // Cooperative launches are not there: blocks run one after the other.
        95 => 0,
        97 => crate::exec::MOST_SHARED as i32,
        99 => 1,
        106 => 32,
        111 => 1024,
        115 => 1,
        _ => 0,
    }
}

fn uuid(ordinal: i32) -> [u8; 16] {
    let mut bytes = *b"tessera standin\0";
    bytes[15] = ordinal as u8;
    bytes
}

super::api! {
    fn cuDriverGetVersion(version: *mut c_int) {
        put(version, 12080)
    }

    fn cuDeviceGetCount(count: *mut c_int) {
        put(count, devices())
    }

    fn cuDeviceGet(to: *mut c_int, ordinal: c_int) {
        put(to, device(ordinal)?)
    }

    fn cuDeviceGetName(name: *mut c_char, length: c_int, ordinal: c_int) {
        device(ordinal)?;
        let length = usize::try_from(length).map_err(|_| Code::INVALID_VALUE)?;
        if name.is_null() || length == 0 {
            return Err(Code::INVALID_VALUE);
        }
        let text = b"Tessera PTX interpreter (no GPU)";
        let count = text.len().min(length - 1);
        std::ptr::copy_nonoverlapping(text.as_ptr().cast(), name, count);
        put(name.add(count), 0)
    }

    fn cuDeviceGetUuid(to: *mut [u8; 16], ordinal: c_int) {
        put(to, uuid(device(ordinal)?))
    }

    fn cuDeviceGetUuid_v2(to: *mut [u8; 16], ordinal: c_int) {
        put(to, uuid(device(ordinal)?))
    }

    fn cuDeviceTotalMem_v2(bytes: *mut usize, ordinal: c_int) {
        device(ordinal)?;
        put(bytes, memory_bytes() as usize)
    }

    fn cuDeviceGetAttribute(value: *mut c_int, number: u32, ordinal: c_int) {
        device(ordinal)?;
        put(value, if number == 33 { ordinal + 1 } else { attribute(number) })
    }

    fn cuDeviceComputeCapability(major: *mut c_int, minor: *mut c_int, ordinal: c_int) {
        device(ordinal)?;
        put(major, capability().0 as c_int)?;
        put(minor, capability().1 as c_int)
    }

    fn cuDeviceGetPCIBusId(text: *mut c_char, length: c_int, ordinal: c_int) {
        device(ordinal)?;
        let id = format!("0000:{:02X}:00.0\0", ordinal + 1);
        if text.is_null() || (length as usize) < id.len() {
            return Err(Code::INVALID_VALUE);
        }
        std::ptr::copy_nonoverlapping(id.as_ptr().cast(), text, id.len());
        Ok(())
    }

    fn cuDeviceCanAccessPeer(can: *mut c_int, a: c_int, b: c_int) {
        device(a)?;
        device(b)?;
        put(can, 0)
    }
}
