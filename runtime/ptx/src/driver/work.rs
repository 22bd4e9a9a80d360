//! Work for a stream: launches, copies, fills and calls. It runs at once, or is kept where the stream is capturing.

use super::code::Code;
use super::state::{Loaded, healthy, state};
use crate::{Kind, Launch, launch};
use std::ffi::{c_int, c_uint, c_void};
use std::sync::Arc;

/// A function of the host.
pub type HostFn = unsafe extern "C" fn(*mut c_void);

/// One piece of work.
#[derive(Clone)]
pub enum Node {
    Launch {
        loaded: Arc<Loaded>,
        kernel: String,
        grid: [u32; 3],
        block: [u32; 3],
        shared: u32,
        params: Vec<Vec<u8>>,
    },
    Copy {
        to: u64,
        from: u64,
        bytes: usize,
        device_to: bool,
        device_from: bool,
    },
    /// A value of `size` bytes, `count` times.
    Fill {
        to: u64,
        value: u32,
        size: usize,
        count: usize,
    },
    Call {
        function: HostFn,
        data: u64,
    },
}

/// Runs the work, or keeps it for the capture that the stream takes part in.
pub fn submit(stream: usize, node: Node) -> Result<(), Code> {
    let device = healthy()?;
    {
        let mut state = state();
        state.stream(stream)?;
        check(&state, &node)?;
        if let Some(root) = state.capture_of(stream) {
            if let Some(capture) = state.captures.get_mut(&root) {
                capture.nodes.push(node);
            }
            return Ok(());
        }
        if state.is_faulty(device) {
            return Ok(());
        }
    }
    perform(device, &node)
}

/// Ranges of a device's memory must be allocated.
fn check(state: &super::state::State, node: &Node) -> Result<(), Code> {
    let covered = |wanted: bool, at: u64, bytes: usize| match () {
        _ if wanted && bytes > 0 && !state.covers(at, bytes as u64) => Err(Code::INVALID_VALUE),
        _ if !wanted && bytes > 0 && at == 0 => Err(Code::INVALID_VALUE),
        _ => Ok(()),
    };
    match *node {
        Node::Copy { to, from, bytes, device_to, device_from } => {
            covered(device_to, to, bytes)?;
            covered(device_from, from, bytes)
        }
        Node::Fill { to, size, count, .. } => covered(true, to, size.saturating_mul(count)),
        _ => Ok(()),
    }
}

/// Runs the work now.
pub fn perform(device: i32, node: &Node) -> Result<(), Code> {
    check(&state(), node)?;
    match node {
        Node::Copy { to, from, bytes, .. } => {
            // SAFETY: ranges of devices lie in allocations, as was checked; of the host's the caller promises that.
            unsafe { std::ptr::copy(*from as *const u8, *to as *mut u8, *bytes) };
            Ok(())
        }
        Node::Fill { to, value, size, count } => {
            let pattern = &value.to_le_bytes()[..*size];
            // SAFETY: the range lies in an allocation, as was checked.
            let range = unsafe { std::slice::from_raw_parts_mut(*to as *mut u8, size * count) };
            range.chunks_exact_mut(*size).for_each(|chunk| chunk.copy_from_slice(pattern));
            Ok(())
        }
        Node::Call { function, data } => {
            // SAFETY: the caller handed both over for this call.
            unsafe { function(*data as *mut c_void) };
            Ok(())
        }
        Node::Launch { loaded, kernel, grid, block, shared, params } => {
            let params: Vec<&[u8]> = params.iter().map(Vec::as_slice).collect();
            let (memory, owners) = state().memory(device);
            let what = Launch { kernel, grid: *grid, block: *block, shared_bytes: *shared, params: &params };
            let result = launch(&loaded.module, &memory, &what, &super::state::options());
            drop(owners);
            let Err(error) = result else { return Ok(()) };
            let code = match error.kind {
                Kind::Launch => {
                    eprintln!("cuda stand-in: {error}");
                    return Err(Code::INVALID_VALUE);
                }
                Kind::Address => Code::ILLEGAL_ADDRESS,
                Kind::Misaligned => Code::MISALIGNED,
                Kind::Text | Kind::Fault => Code::LAUNCH_FAILED,
            };
            state().fail(device, code, &error.message);
            Ok(())
        }
    }
}

/// The bytes of a kernel's parameters.
///
/// # Safety
///
/// `params` or `extra` are as the API demands.
unsafe fn parameters(
    loaded: &Loaded,
    kernel: &str,
    params: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> Result<Vec<Vec<u8>>, Code> {
    let sizes = loaded.module.parameter_bytes(kernel).ok_or(Code::INVALID_HANDLE)?;
    if sizes.is_empty() {
        return Ok(Vec::new());
    }
    if !params.is_null() {
        let copy = |(n, size): (usize, &usize)| {
            // SAFETY: the array has a pointer for each parameter, which points to its bytes.
            let bytes = unsafe { params.add(n).read() } as *const u8;
            if bytes.is_null() {
                return Err(Code::INVALID_VALUE);
            }
            // SAFETY: as above.
            Ok(unsafe { std::slice::from_raw_parts(bytes, *size) }.to_vec())
        };
        return sizes.iter().enumerate().map(copy).collect();
    }
    if extra.is_null() {
        return Err(Code::INVALID_VALUE);
    }
    // SAFETY: pairs of keys and values with a null at the end: 1 the buffer, 2 a pointer to its size.
    let buffer = unsafe {
        let (mut at, mut start, mut size) = (extra, std::ptr::null(), 0);
        while !at.read().is_null() {
            match at.read() as usize {
                1 => start = at.add(1).read() as *const u8,
                2 => size = (at.add(1).read() as *const usize).read(),
                _ => return Err(Code::INVALID_VALUE),
            }
            at = at.add(2);
        }
        if start.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        std::slice::from_raw_parts(start, size)
    };
    let offsets = loaded.module.parameter_offsets(kernel);
    let parts = offsets.iter().zip(&sizes).map(|(at, size)| buffer.get(*at..at + size).map(<[u8]>::to_vec));
    parts.collect::<Option<_>>().ok_or(Code::INVALID_VALUE)
}

/// Dynamic shared memory that a kernel may have without asking for more.
const SHARED_WITHOUT_ASKING: i32 = 49_152;

/// # Safety
///
/// `params` or `extra` are as the API demands.
unsafe fn start(
    function: usize,
    [grid, block]: [[u32; 3]; 2],
    shared: u32,
    stream: usize,
    params: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> Result<(), Code> {
    let device = healthy()?;
    let (loaded, kernel) = state().function(function)?;
    if loaded.device != device {
        return Err(Code::INVALID_HANDLE);
    }
    let sizes = loaded.module.sizes(&kernel).ok_or(Code::INVALID_HANDLE)?;
    let asked = loaded.most_shared.lock().unwrap_or_else(|e| e.into_inner()).get(&kernel).copied();
    let most = asked.unwrap_or(SHARED_WITHOUT_ASKING - sizes[0].min(SHARED_WITHOUT_ASKING as u32) as i32);
    if i64::from(shared) > i64::from(most) {
        eprintln!("cuda stand-in: kernel {kernel}: {shared} bytes of dynamic shared memory, allowed are {most}");
        return Err(Code::INVALID_VALUE);
    }
    // SAFETY: as the caller promises.
    let params = unsafe { parameters(&loaded, &kernel, params, extra) }?;
    submit(stream, Node::Launch { loaded, kernel, grid, block, shared, params })
}

/// As the API lays it out.
#[repr(C)]
pub struct Configuration {
    grid: [c_uint; 3],
    block: [c_uint; 3],
    shared: c_uint,
    stream: usize,
    attributes: *const Attribute,
    count: c_uint,
}

/// An attribute of a launch: what it is, and a value of 64 bytes.
#[repr(C)]
pub struct Attribute {
    id: c_uint,
    _pad: c_uint,
    value: [u32; 16],
}

/// The attribute that groups blocks to clusters.
const CLUSTER: c_uint = 4;

super::api! {
    fn cuLaunchKernel(
        function: usize, gx: c_uint, gy: c_uint, gz: c_uint, bx: c_uint, by: c_uint, bz: c_uint, shared: c_uint,
        stream: usize, params: *mut *mut c_void, extra: *mut *mut c_void,
    ) {
        start(function, [[gx, gy, gz], [bx, by, bz]], shared, stream, params, extra)
    }

    fn cuLaunchKernelEx(config: *const Configuration, function: usize, params: *mut *mut c_void, extra: *mut *mut c_void) {
        if config.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        let Configuration { grid, block, shared, stream, attributes, count } = *config;
        if count > 0 && !attributes.is_null() {
            let attributes = std::slice::from_raw_parts(attributes, count as usize);
            // Blocks stay alone.
            if attributes.iter().any(|a| a.id == CLUSTER && a.value[..3] != [1; 3]) {
                return Err(Code::NOT_SUPPORTED);
            }
        }
        start(function, [grid, block], shared, stream, params, extra)
    }

    fn cuLaunchHostFunc(stream: usize, function: Option<HostFn>, data: *mut c_void) {
        let function = function.ok_or(Code::INVALID_VALUE)?;
        submit(stream, Node::Call { function, data: data as u64 })
    }

    fn cuLaunchCooperativeKernel(
        _function: usize, _gx: c_uint, _gy: c_uint, _gz: c_uint, _bx: c_uint, _by: c_uint, _bz: c_uint,
        _shared: c_uint, _stream: usize, _params: *mut *mut c_void,
    ) {
        Err(Code::NOT_SUPPORTED)
    }

    fn cuFuncSetCacheConfig(function: usize, _config: c_int) {
        state().function(function).map(|_| ())
    }
}
