//! Results of the driver API.

use super::{find, put};
use std::ffi::{CStr, c_char, c_int, c_void};

/// An error's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code(pub u32);

/// 0 for success, or the error's number.
pub fn number(result: Result<(), Code>) -> u32 {
    result.map_or_else(|code| code.0, |()| 0)
}

macro_rules! codes {
    ($($name:ident = $number:literal, $full:literal, $text:literal;)*) => {
        // Not every code that has a name is returned here.
        #[allow(dead_code)]
        impl Code {
            $(pub const $name: Code = Code($number);)*
        }

        const NAMES: &[(u32, &CStr, &CStr)] = &[(0, c"CUDA_SUCCESS", c"no error"), $(($number, $full, $text)),*];
    };
}

#[rustfmt::skip]
codes! {
    INVALID_VALUE = 1, c"CUDA_ERROR_INVALID_VALUE", c"invalid argument";
    OUT_OF_MEMORY = 2, c"CUDA_ERROR_OUT_OF_MEMORY", c"out of memory";
    NOT_INITIALIZED = 3, c"CUDA_ERROR_NOT_INITIALIZED", c"initialization error";
    NO_DEVICE = 100, c"CUDA_ERROR_NO_DEVICE", c"no CUDA-capable device is detected";
    INVALID_DEVICE = 101, c"CUDA_ERROR_INVALID_DEVICE", c"invalid device ordinal";
    INVALID_IMAGE = 200, c"CUDA_ERROR_INVALID_IMAGE", c"device kernel image is invalid";
    INVALID_CONTEXT = 201, c"CUDA_ERROR_INVALID_CONTEXT", c"invalid device context";
    NO_BINARY = 209, c"CUDA_ERROR_NO_BINARY_FOR_GPU", c"no kernel image is available for execution on the device";
    INVALID_PTX = 218, c"CUDA_ERROR_INVALID_PTX", c"a PTX JIT compilation failed";
    UNSUPPORTED_PTX = 222, c"CUDA_ERROR_UNSUPPORTED_PTX_VERSION", c"the provided PTX was compiled with an unsupported toolchain.";
    INVALID_HANDLE = 400, c"CUDA_ERROR_INVALID_HANDLE", c"invalid resource handle";
    NOT_FOUND = 500, c"CUDA_ERROR_NOT_FOUND", c"named symbol not found";
    NOT_READY = 600, c"CUDA_ERROR_NOT_READY", c"device not ready";
    ILLEGAL_ADDRESS = 700, c"CUDA_ERROR_ILLEGAL_ADDRESS", c"an illegal memory access was encountered";
    OUT_OF_RESOURCES = 701, c"CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", c"too many resources requested for launch";
    MISALIGNED = 716, c"CUDA_ERROR_MISALIGNED_ADDRESS", c"misaligned address";
    LAUNCH_FAILED = 719, c"CUDA_ERROR_LAUNCH_FAILED", c"unspecified launch failure";
    NOT_SUPPORTED = 801, c"CUDA_ERROR_NOT_SUPPORTED", c"operation not supported";
    CAPTURE_UNSUPPORTED = 900, c"CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", c"operation not permitted when stream is capturing";
    CAPTURE_UNMATCHED = 903, c"CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", c"the capture was not initiated in this stream";
}

fn described(error: u32) -> Option<&'static (u32, &'static CStr, &'static CStr)> {
    NAMES.iter().find(|(number, ..)| *number == error)
}

super::api! {
    fn cuGetErrorName(error: u32, text: *mut *const c_char) {
        let found = described(error);
        put(text, found.map_or(std::ptr::null(), |(_, name, _)| name.as_ptr()))?;
        found.map(|_| ()).ok_or(Code::INVALID_VALUE)
    }

    fn cuGetErrorString(error: u32, text: *mut *const c_char) {
        let found = described(error);
        put(text, found.map_or(std::ptr::null(), |(.., text)| text.as_ptr()))?;
        found.map(|_| ()).ok_or(Code::INVALID_VALUE)
    }

    fn cuGetProcAddress_v2(symbol: *const c_char, function: *mut *mut c_void, _version: c_int, _flags: u64, status: *mut u32) {
        if symbol.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        let found = CStr::from_ptr(symbol).to_str().ok().and_then(find);
        put(function, found.unwrap_or(std::ptr::null_mut()))?;
        if !status.is_null() {
            // 1: the symbol is not there.
            put(status, u32::from(found.is_none()))?;
        }
        found.map(|_| ()).ok_or(Code::NOT_FOUND)
    }
}
