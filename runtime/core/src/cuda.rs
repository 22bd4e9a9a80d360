//! NVIDIA's GPUs, through the driver's own interface. The driver is loaded when a program asks for it; without it the tool
//! builds and runs as ever.
//!
//! [`Gpu`] is one GPU that was found, with the code that was loaded onto it; [`CudaDevice`] is a [`Device`](crate::device::Device)
//! on it with an order of work of its own, so that several virtual devices may be one GPU.

mod launch;
mod memory;

pub use launch::{CudaDevice, CudaKernel};

use crate::device::Taken;
use crate::fault::Fault;
use crate::gpu::{STOPPED, Unusable};
use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys::{self, CUdevice_attribute as Attribute, CUfunction_attribute as Attributes};
use std::error::Error;
use std::ffi::{CStr, CString, OsStr, c_void};
use std::sync::{Arc, OnceLock};

/// The oldest driver whose interface is enough: CUDA 12.0.
const DRIVER_MIN: i32 = 12_000;

/// Bytes that a block may share without asking for more.
const SHARED_UNASKED: u64 = 48 << 10;

/// The oldest architecture that kernels are made for.
const CAPABILITY_MIN: (u32, u32) = (8, 0);

/// What a GPU is, as its driver says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Facts {
    pub name: String,
    /// Compute capability, major and minor.
    pub capability: (u32, u32),
    pub multiprocessors: u32,
    /// Threads that a multiprocessor holds at most.
    pub threads: u32,
    /// Bytes.
    pub memory: u64,
    /// Bytes of the cache that all multiprocessors share.
    pub cache: u64,
    /// Bytes that a block may share, where it asks for them.
    pub shared: u64,
    /// The driver's version of CUDA: 12080 is 12.8.
    pub driver: i32,
}

static FIRST: OnceLock<Result<Arc<Gpu>, Unusable>> = OnceLock::new();

/// Waits for what was started on the GPU, where the process has looked for one. Who reads what it leaves is told what went wrong.
pub fn wait() {
    if let Some(Ok(gpu)) = FIRST.get()
        && gpu.enter().is_ok()
    {
        let _ = result::ctx::synchronize();
    }
}

/// A GPU that was found.
pub struct Gpu {
    facts: Facts,
    context: sys::CUcontext,
}

// SAFETY: a context may be used by any thread that has made it current, which every entry here does.
unsafe impl Send for Gpu {}
// SAFETY: as above; the driver's interface is for many threads.
unsafe impl Sync for Gpu {}

impl Gpu {
    /// The first GPU of this machine; found once.
    ///
    /// # Errors
    /// Why there is none that can be used.
    pub fn first() -> Result<Arc<Gpu>, Unusable> {
        FIRST.get_or_init(|| Gpu::open(0)).clone()
    }

    fn open(ordinal: i32) -> Result<Arc<Gpu>, Unusable> {
        load()?;
        let said = |what: &str| {
            let what = what.to_owned();
            move |e: DriverError| {
                Unusable::new(format!("{what}: {}", said(e)), "`nvidia-smi` shows whether the driver works")
            }
        };
        result::init().map_err(|e| match e.0 {
            sys::CUresult::CUDA_ERROR_NO_DEVICE => hidden(),
            _ => said("the driver does not start")(e),
        })?;
        let mut driver = 0;
        // SAFETY: writes one number.
        unsafe { sys::cuDriverGetVersion(&mut driver) }
            .result()
            .map_err(said("the driver does not tell its version"))?;
        if driver < DRIVER_MIN {
            return Err(Unusable::new(
                format!("the driver is of CUDA {}, and 12.0 is the oldest that will do", version(driver)),
                "install a newer driver (525 or later)",
            ));
        }
        let count = result::device::get_count().map_err(said("GPUs cannot be counted"))?;
        if ordinal >= count {
            return Err(hidden());
        }
        let device = result::device::get(ordinal).map_err(said("the GPU cannot be opened"))?;
        let facts = facts(device, driver).map_err(said("the GPU does not tell what it is"))?;
        if facts.capability < CAPABILITY_MIN {
            let ((major, minor), (a, b)) = (facts.capability, CAPABILITY_MIN);
            return Err(Unusable::new(
                format!(
                    "{} has compute capability {major}.{minor}, and {a}.{b} is the oldest that will do",
                    facts.name
                ),
                "a GPU of the Ampere generation or newer is needed",
            ));
        }
        // SAFETY: a device that was just found. Its primary context is kept for the life of the process.
        let context = unsafe { result::primary_ctx::retain(device) }.map_err(said("the GPU cannot be opened"))?;
        let gpu = Gpu { facts, context };
        gpu.enter().map_err(|f| Unusable::new(f.message, "another program may hold the GPU for itself"))?;
        memory::keep_what_is_freed(device);
        Ok(Arc::new(gpu))
    }

    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Makes this thread's calls go to this GPU.
    fn enter(&self) -> Result<(), Fault> {
        // SAFETY: a context that is kept for the life of the process.
        unsafe { result::ctx::set_current(self.context) }.map_err(|e| stopped(self, "cannot be used", e))
    }

    /// Machine code of the text of a kernel. Any thread may ask, many at once.
    ///
    /// # Errors
    /// What the driver's compiler says of the text.
    pub fn assemble(&self, ptx: &str) -> Result<Vec<u8>, String> {
        self.enter().map_err(|f| f.message)?;
        let text = CString::new(ptx).map_err(|_| "the text of the kernel has a byte 0".to_owned())?;
        let mut log = Log::new();
        let (mut names, mut values) = log.options();
        let mut link = std::ptr::null_mut();
        // SAFETY: the buffer of messages has the size that is stated, and outlives the link.
        unsafe { sys::cuLinkCreate_v2(names.len() as u32, names.as_mut_ptr(), values.as_mut_ptr(), &mut link) }
            .result()
            .map_err(said)?;
        let (mut code, mut bytes) = (std::ptr::null_mut(), 0);
        // SAFETY: a link that was just made; the text ends with a byte 0, which counts. What comes out is the link's, and copied
        // before that is destroyed.
        let made = unsafe {
            let (data, len) = (text.as_ptr().cast_mut().cast(), text.as_bytes_with_nul().len());
            let kind = sys::CUjitInputType::CU_JIT_INPUT_PTX;
            let none = std::ptr::null_mut();
            let added = sys::cuLinkAddData_v2(link, kind, data, len, c"kernel".as_ptr(), 0, none, none.cast());
            let done = added.result().and_then(|()| sys::cuLinkComplete(link, &mut code, &mut bytes).result());
            let made = done.map(|()| std::slice::from_raw_parts(code.cast::<u8>(), bytes).to_vec());
            let _ = sys::cuLinkDestroy(link);
            made
        };
        made.map_err(|e| format!("{} {}", said(e), log.text()))
    }

    /// Entry `name` of the machine code of a kernel, loaded onto the GPU. Its blocks share `shared` bytes besides what the code
    /// states.
    ///
    /// # Errors
    /// What the driver says of the code; more shared memory than there is.
    pub fn function(self: &Arc<Gpu>, code: &[u8], name: &str, shared: u64) -> Result<Function, String> {
        if shared > self.facts.shared {
            return Err(format!("its blocks share {shared} bytes, and the GPU has {} for one", self.facts.shared));
        }
        self.enter().map_err(|f| f.message)?;
        let entry = CString::new(name).map_err(|_| "the name of the kernel has a byte 0".to_owned())?;
        // Text ends with a byte 0; machine code says its own length.
        let image: Vec<u8> = code.iter().copied().chain([0]).collect();
        let mut log = Log::new();
        let (mut names, mut values) = log.options();
        let mut module = std::ptr::null_mut();
        // SAFETY: the image is whole, and the buffer of messages has the size that is stated.
        let loaded = unsafe {
            let (n, image) = (names.len() as u32, image.as_ptr().cast());
            sys::cuModuleLoadDataEx(&mut module, image, n, names.as_mut_ptr(), values.as_mut_ptr())
        };
        loaded.result().map_err(|e| format!("{} {}", said(e), log.text()))?;
        // SAFETY: the module was just loaded; both stay until the function is dropped.
        let function = unsafe { result::module::get_function(module, entry) }.map_err(said)?;
        let function = Function { gpu: self.clone(), module, function };
        if shared > SHARED_UNASKED {
            let what = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            // SAFETY: a function that was just loaded.
            unsafe { result::function::set_function_attribute(function.function, what, shared as i32) }
                .map_err(said)?;
        }
        Ok(function)
    }
}

/// Where the driver's compiler says what is wrong.
struct Log {
    bytes: Vec<u8>,
}

impl Log {
    fn new() -> Log {
        Log { bytes: vec![0; 8192] }
    }

    fn options(&mut self) -> ([sys::CUjit_option; 2], [*mut c_void; 2]) {
        let names = [sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER, sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
        (names, [self.bytes.as_mut_ptr().cast::<c_void>(), self.bytes.len() as *mut c_void])
    }

    fn text(&self) -> String {
        let text = CStr::from_bytes_until_nul(&self.bytes).map(CStr::to_string_lossy).unwrap_or_default();
        text.trim().to_owned()
    }
}

/// A kernel on a GPU.
pub struct Function {
    gpu: Arc<Gpu>,
    module: sys::CUmodule,
    function: sys::CUfunction,
}

// SAFETY: handles that the driver allows any thread to use.
unsafe impl Send for Function {}
// SAFETY: as above.
unsafe impl Sync for Function {}

impl Function {
    /// What blocks of so many threads take, which share so many bytes besides those that the kernel states.
    fn taken(&self, threads: u32, shared: u64, points: u64) -> Option<Taken> {
        self.gpu.enter().ok()?;
        let attribute = |what: Attributes| {
            let mut value = 0;
            // SAFETY: a function that is loaded; writes one number.
            let asked = unsafe { sys::cuFuncGetAttribute(&mut value, what, self.function) };
            asked.result().ok().map(|()| value.max(0) as u32)
        };
        let mut blocks = 0;
        // SAFETY: as above.
        let asked = unsafe {
            let (threads, shared) = (threads as i32, shared as usize);
            sys::cuOccupancyMaxActiveBlocksPerMultiprocessor(&mut blocks, self.function, threads, shared)
        };
        asked.result().ok()?;
        Some(Taken {
            points,
            registers: attribute(Attributes::CU_FUNC_ATTRIBUTE_NUM_REGS)?,
            spilled: attribute(Attributes::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)?,
            shared: u64::from(attribute(Attributes::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?) + shared,
            warps: blocks.max(0) as u32 * threads.div_ceil(32),
            warps_max: self.gpu.facts.threads / 32,
        })
    }
}

impl Drop for Function {
    fn drop(&mut self) {
        if self.gpu.enter().is_ok() {
            // SAFETY: loaded by `Gpu::function`, unloaded once. What runs of it has ended: the driver waits for it.
            let _ = unsafe { result::module::unload(self.module) };
        }
    }
}

fn hidden() -> Unusable {
    Unusable::new("the driver finds no GPU", "`nvidia-smi` shows what it sees; `CUDA_VISIBLE_DEVICES` may hide GPUs")
}

/// The driver's library is this file, for a process that has not looked for a GPU yet.
///
/// # Errors
/// What the system's loader says.
pub fn take_driver(path: &OsStr) -> Result<(), Unusable> {
    // SAFETY: the user names a driver; it is found by its name from here on, so it stays.
    let library = unsafe { libloading::Library::new(path) }.map_err(|e| {
        let said = e.source().map_or_else(|| e.to_string(), ToString::to_string);
        let path = path.to_string_lossy();
        // The loader names the file itself.
        let said = said.strip_prefix(&*path).map_or(said.as_str(), |s| s.trim_start_matches([':', ' ']));
        let why = format!("`TESSERA_CUDA` names {path}: {said}");
        Unusable::new(why, "leave `TESSERA_CUDA` away to use the system's driver")
    })?;
    std::mem::forget(library);
    Ok(())
}

/// Loads the driver's library, once: the one that `TESSERA_CUDA` names, or the system's.
fn load() -> Result<(), Unusable> {
    static LOADED: OnceLock<Result<(), Unusable>> = OnceLock::new();
    LOADED
        .get_or_init(|| {
            let named = std::env::var_os("TESSERA_CUDA").filter(|p| !p.is_empty());
            if let Some(path) = &named {
                take_driver(path)?;
            }
            // SAFETY: looks for libraries by name.
            match (unsafe { sys::is_culib_present() }, named) {
                (true, _) => Ok(()),
                (false, Some(path)) => Err(Unusable::new(
                    format!("`TESSERA_CUDA` names {}, which is no driver", path.to_string_lossy()),
                    "leave `TESSERA_CUDA` away to use the system's driver",
                )),
                (false, None) => Err(Unusable::new(
                    "there is no driver: `libcuda.so.1` is not found",
                    "install NVIDIA's driver, or run on the processor: `--target cpu`",
                )),
            }
        })
        .clone()
}

fn facts(device: sys::CUdevice, driver: i32) -> Result<Facts, DriverError> {
    // SAFETY: a device that was found; the attribute is a number.
    let attribute = |a: Attribute| unsafe { result::device::get_attribute(device, a) }.map(|n| n.max(0) as u32);
    Ok(Facts {
        name: result::device::get_name(device)?,
        capability: (
            attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        ),
        multiprocessors: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?.max(1),
        threads: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR)?,
        // SAFETY: a device that was found.
        memory: unsafe { result::device::total_mem(device) }? as u64,
        cache: attribute(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?.into(),
        shared: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?.into(),
        driver,
    })
}

/// 12080 as 12.8.
pub fn version(driver: i32) -> String {
    format!("{}.{}", driver / 1000, driver % 1000 / 10)
}

/// What the driver says, in its words.
fn said(e: DriverError) -> String {
    let text = |r: Result<&CStr, DriverError>| r.map(|t| t.to_string_lossy().into_owned()).unwrap_or_default();
    match (text(e.error_name()), text(e.error_string())) {
        (name, _) if name.is_empty() => format!("error {}", e.0 as u32),
        (name, why) if why.is_empty() => name,
        (name, why) => format!("{why} ({name})"),
    }
}

/// E0722.
fn stopped(gpu: &Gpu, what: &str, e: DriverError) -> Fault {
    let fault = Fault::new(STOPPED, format!("the GPU {what}: {}", said(e)));
    fault.note(format!("it is {}, with a driver of CUDA {}", gpu.facts.name, version(gpu.facts.driver)))
}
