//! OpenCL's library, its answers, and what they mean.

use crate::gpu::Unusable;
use dlopen2::wrapper::Container;
use opencl_dynamic_sys::OpenCl;
use opencl_dynamic_sys::constants::*;
use opencl_dynamic_sys::types::cl_platform::{cl_int, cl_uint};
use opencl_dynamic_sys::types::{cl_device_id, cl_platform_id};
use std::ffi::{OsStr, c_void};
use std::sync::OnceLock;

pub type Api = Container<OpenCl>;

/// The system's library, which knows every driver.
const SYSTEMS: &str = "libOpenCL.so.1";

/// A function that this OpenCL does not have.
const LACKS: cl_int = -2001;

static LOADED: OnceLock<Result<Api, Unusable>> = OnceLock::new();

/// The library, loaded once: the one that `TESSERA_OPENCL` names, or the system's.
pub fn load() -> Result<&'static Api, Unusable> {
    let named = std::env::var_os("TESSERA_OPENCL").filter(|p| !p.is_empty());
    match named {
        Some(path) => take(&path),
        None => take(OsStr::new(SYSTEMS)),
    }
}

/// The library is this file, unless one is loaded.
pub fn take(path: &OsStr) -> Result<&'static Api, Unusable> {
    let open = || {
        let name = path.to_string_lossy();
        let named = |why: String| {
            let help = "leave `TESSERA_OPENCL` away to use the system's OpenCL";
            Unusable::new(format!("`TESSERA_OPENCL` names {name}{why}"), help)
        };
        let missing = |said: String| match name == SYSTEMS {
            true => Unusable::new(
                format!("there is no OpenCL: `{SYSTEMS}` is not found"),
                "install the package ocl-icd-libopencl1 and the OpenCL driver of the GPU's vendor, or run on the \
                 processor: `--target cpu`",
            ),
            // The loader names the file itself.
            false => named(said.rsplit(&*name).next().unwrap_or(&said).to_owned()),
        };
        // SAFETY: OpenCL's library has no precondition; it stays for the life of the process.
        let api = unsafe { Api::load(path) }.map_err(|e| missing(e.to_string()))?;
        match api.clGetPlatformIDs(0, std::ptr::null_mut(), &mut 0) {
            Some(_) => Ok(api),
            None => Err(named(", which is no OpenCL".into())),
        }
    };
    LOADED.get_or_init(open).as_ref().map_err(Clone::clone)
}

/// The answer of a function that may be missing.
pub fn code(status: Option<cl_int>) -> cl_int {
    status.unwrap_or(LACKS)
}

/// A handle, if there is one.
pub fn present<T>(handle: Option<*mut T>) -> Option<*mut T> {
    handle.filter(|h| !h.is_null())
}

/// All handles of a list that is asked for in two calls.
pub fn listed<T>(ask: impl Fn(cl_uint, *mut *mut T, *mut cl_uint) -> Option<cl_int>) -> Vec<*mut T> {
    let mut count = 0;
    if code(ask(0, std::ptr::null_mut(), &mut count)) != CL_SUCCESS {
        return vec![];
    }
    let mut all = vec![std::ptr::null_mut(); count as usize];
    match code(ask(count, all.as_mut_ptr(), std::ptr::null_mut())) {
        CL_SUCCESS => all,
        _ => vec![],
    }
}

/// What a device says of itself.
pub struct Info {
    pub api: &'static Api,
    pub platform: cl_platform_id,
    pub device: cl_device_id,
}

impl Info {
    /// Text; empty where there is none.
    pub fn text(&self, what: cl_uint) -> String {
        text(|n, at, len| self.api.clGetDeviceInfo(self.device, what, n, at, len))
    }

    /// A number of the width of `T`; zero where it is not known.
    pub fn number<T: Copy + Default>(&self, what: cl_uint) -> T {
        let mut value = T::default();
        let at = (&raw mut value).cast::<c_void>();
        match code(self.api.clGetDeviceInfo(self.device, what, size_of::<T>(), at, std::ptr::null_mut())) {
            CL_SUCCESS => value,
            _ => T::default(),
        }
    }

    pub fn platform_name(&self) -> String {
        text(|n, at, len| self.api.clGetPlatformInfo(self.platform, CL_PLATFORM_NAME, n, at, len))
    }
}

/// Text that is asked for in two calls.
pub fn text(ask: impl Fn(usize, *mut c_void, *mut usize) -> Option<cl_int>) -> String {
    let mut bytes = 0;
    if code(ask(0, std::ptr::null_mut(), &mut bytes)) != CL_SUCCESS {
        return String::new();
    }
    let mut all = vec![0u8; bytes];
    if code(ask(bytes, all.as_mut_ptr().cast(), std::ptr::null_mut())) != CL_SUCCESS {
        return String::new();
    }
    String::from_utf8_lossy(&all).trim_matches(['\0', ' ', '\n']).to_owned()
}

/// An error, in words.
pub fn said(e: cl_int) -> String {
    let name = match e {
        CL_DEVICE_NOT_AVAILABLE => "the device is not available",
        CL_COMPILER_NOT_AVAILABLE => "its driver has no compiler",
        CL_MEM_OBJECT_ALLOCATION_FAILURE => "there is no memory left",
        CL_OUT_OF_RESOURCES => "its resources are used up, or a kernel failed",
        CL_OUT_OF_HOST_MEMORY => "the driver has no memory left",
        CL_BUILD_PROGRAM_FAILURE => "its compiler refuses the code",
        CL_INVALID_BUFFER_SIZE => "a buffer would be larger than it allows",
        CL_INVALID_WORK_GROUP_SIZE => "it takes no groups of this size",
        CL_INVALID_KERNEL_ARGS | CL_INVALID_ARG_SIZE => "it does not take the operands",
        LACKS => "this OpenCL lacks a function that is needed (2.1 is the oldest that will do)",
        _ => return format!("error {e} of OpenCL"),
    };
    format!("{name} (error {e} of OpenCL)")
}
