//! GPUs and processors of any vendor, through OpenCL. Its library is loaded when a program asks for it; without it the tool
//! builds and runs as ever.
//!
//! [`Accelerator`] is one device that was found, with the code that was loaded onto it; [`OpenClDevice`] is a
//! [`Device`](crate::device::Device) on it with an order of work of its own, so that several virtual devices may be one GPU.

mod api;
mod launch;
mod memory;
mod program;

pub use launch::OpenClDevice;
pub use program::OpenClKernel;

use crate::fault::Fault;
use crate::gpu::{STOPPED, Unusable};
use api::{Api, Info, code, present, said};
use memory::Pieces;
use opencl_dynamic_sys::constants::cl_ext::CL_DEVICE_DOUBLE_FP_CONFIG;
use opencl_dynamic_sys::constants::*;
use opencl_dynamic_sys::types::cl_platform::cl_int;
use opencl_dynamic_sys::types::{cl_context, cl_device_id};
use std::ffi::OsStr;
use std::sync::{Arc, Mutex, OnceLock};

/// The version of SPIR-V that kernels are.
const SPIRV: &str = "SPIR-V_1.2";

/// What a device is, as its driver says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Facts {
    pub name: String,
    /// Whose OpenCL it is, and the driver's version.
    pub platform: String,
    pub driver: String,
    pub is_gpu: bool,
    pub units: u32,
    /// Bytes.
    pub memory: u64,
    /// Bytes of the cache of its memory; 0 where there is none.
    pub cache: u64,
    /// Bytes that one buffer has at most.
    pub largest: u64,
    /// Bytes of parameters of a kernel.
    pub params: u32,
    /// Whether divisions and roots of 32 bits are rounded to nearest, where that is asked for.
    pub exact: bool,
}

static FIRST: OnceLock<Result<Arc<Accelerator>, Unusable>> = OnceLock::new();

/// Waits for what was started, where the process has looked for a device. Who reads what it leaves is told what went wrong.
pub fn wait() {
    if let Some(Ok(device)) = FIRST.get() {
        memory::wait_for_all(device);
    }
}

/// A device that was found.
pub struct Accelerator {
    api: &'static Api,
    facts: Facts,
    device: cl_device_id,
    context: cl_context,
    pieces: Pieces,
    /// One program is built at a time: a compiler for processors (Intel's of 2026) now and then goes down in its reader of
    /// SPIR-V where threads build at once.
    building: Mutex<()>,
}

// SAFETY: OpenCL's calls are for many threads, but those that set arguments, which a lock keeps apart.
unsafe impl Send for Accelerator {}
// SAFETY: as above.
unsafe impl Sync for Accelerator {}

impl Accelerator {
    /// The device that is taken: the first GPU whose driver takes SPIR-V, or else the first other device. Found once.
    ///
    /// # Errors
    /// Why there is none that can be used.
    pub fn first() -> Result<Arc<Accelerator>, Unusable> {
        FIRST.get_or_init(Accelerator::open).clone()
    }

    fn open() -> Result<Arc<Accelerator>, Unusable> {
        let api = api::load()?;
        let wanted = std::env::var("TESSERA_OPENCL_DEVICE").ok().filter(|w| !w.is_empty());
        let mut refused = vec![];
        let mut best: Option<(cl_device_id, Facts)> = None;
        for (platform, device) in devices(api) {
            let info = Info { api, platform, device };
            let name = info.text(CL_DEVICE_NAME);
            match facts(&info) {
                _ if wanted.as_ref().is_some_and(|w| !name.to_lowercase().contains(&w.to_lowercase())) => {
                    refused.push(format!("{name} is not what `TESSERA_OPENCL_DEVICE` names"));
                }
                Err(why) => refused.push(format!("{name} {why}")),
                Ok(facts) => {
                    if best.as_ref().is_none_or(|(_, b)| facts.is_gpu && !b.is_gpu) {
                        best = Some((device, facts));
                    }
                }
            }
        }
        let Some((device, facts)) = best else {
            let why = match refused.is_empty() {
                true => "OpenCL finds no device".to_owned(),
                false => format!("OpenCL finds no device that will do: {}", refused.join("; ")),
            };
            return Err(Unusable::new(
                why,
                "install the OpenCL driver of the GPU's vendor; `clinfo` shows what is there",
            ));
        };
        let mut status = CL_SUCCESS;
        let devices = [device];
        let context = present(api.clCreateContext(
            std::ptr::null(),
            1,
            devices.as_ptr(),
            None,
            std::ptr::null_mut(),
            &mut status,
        ));
        match context {
            Some(context) if status == CL_SUCCESS => Ok(Arc::new(Accelerator {
                api,
                facts,
                device,
                context,
                pieces: Pieces::default(),
                building: Mutex::default(),
            })),
            _ => Err(Unusable::new(
                format!("{} cannot be opened: {}", facts.name, said(status)),
                "another program may hold the device for itself",
            )),
        }
    }

    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    fn info(&self) -> Info {
        Info { api: self.api, platform: std::ptr::null_mut(), device: self.device }
    }

    /// E0722.
    fn stopped(&self, what: &str, e: cl_int) -> Fault {
        let fault = Fault::new(STOPPED, format!("the device {what}: {}", said(e)));
        fault.note(format!("it is {}, with OpenCL of {} ({})", self.facts.name, self.facts.platform, self.facts.driver))
    }

    /// An answer of OpenCL as a result.
    fn checked(&self, what: &str, status: Option<cl_int>) -> Result<(), Fault> {
        match code(status) {
            CL_SUCCESS => Ok(()),
            e => Err(self.stopped(what, e)),
        }
    }
}

/// Every device of every platform.
fn devices(api: &'static Api) -> Vec<(opencl_dynamic_sys::types::cl_platform_id, cl_device_id)> {
    let platforms = api::listed(|n, at, count| api.clGetPlatformIDs(n, at, count));
    let of = |platform| {
        api::listed(move |n, at, count| api.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, n, at, count))
            .into_iter()
            .map(move |device| (platform, device))
    };
    platforms.into_iter().flat_map(of).collect()
}

/// What a device is.
///
/// # Errors
/// What it lacks, in words behind its name.
fn facts(info: &Info) -> Result<Facts, String> {
    let versions = info.text(CL_DEVICE_IL_VERSION);
    if !versions.split_whitespace().any(|v| v == SPIRV) {
        return Err("takes no SPIR-V 1.2".into());
    }
    if info.number::<u64>(CL_DEVICE_DOUBLE_FP_CONFIG) == 0 {
        return Err("has no floats of 64 bits".into());
    }
    let single = info.number::<u64>(CL_DEVICE_SINGLE_FP_CONFIG);
    let least = CL_FP_DENORM | CL_FP_INF_NAN | CL_FP_ROUND_TO_NEAREST;
    if single & least != least {
        return Err("rounds floats of 32 bits in its own way".into());
    }
    if info.number::<u32>(CL_DEVICE_ENDIAN_LITTLE) == 0 || info.number::<u32>(CL_DEVICE_ADDRESS_BITS) != 64 {
        return Err("has addresses or bytes in another order than this processor".into());
    }
    let is_gpu = info.number::<u64>(CL_DEVICE_TYPE) & CL_DEVICE_TYPE_GPU != 0;
    Ok(Facts {
        name: info.text(CL_DEVICE_NAME),
        platform: info.platform_name(),
        driver: info.text(CL_DRIVER_VERSION),
        is_gpu,
        units: info.number::<u32>(CL_DEVICE_MAX_COMPUTE_UNITS).max(1),
        memory: info.number(CL_DEVICE_GLOBAL_MEM_SIZE),
        cache: info.number(CL_DEVICE_GLOBAL_MEM_CACHE_SIZE),
        largest: info.number(CL_DEVICE_MAX_MEM_ALLOC_SIZE),
        params: info.number::<usize>(CL_DEVICE_MAX_PARAMETER_SIZE).min(1 << 16) as u32,
        exact: is_gpu && single & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT != 0,
    })
}

/// OpenCL's library is this file, for a process that has not looked for a device yet.
///
/// # Errors
/// What the system's loader says.
pub fn take_library(path: &OsStr) -> Result<(), Unusable> {
    api::take(path).map(|_| ())
}
