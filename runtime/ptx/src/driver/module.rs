//! Modules, functions and the linker.

use super::code::Code;
use super::put;
use super::state::{Loaded, Object, capability, healthy, state};
use crate::exec::tensor::TensorMap;
use crate::parse;
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::{Arc, Mutex};

/// The version of PTX that a driver of version 12.8 knows.
const NEWEST_PTX: (u32, u32) = (8, 7);

/// Whether code for a target runs on this device.
fn runs(target: &str) -> Option<bool> {
    let digits: String = target.strip_prefix("sm_")?.chars().take_while(char::is_ascii_digit).collect();
    let wanted: u32 = digits.parse().ok()?;
    let (major, minor) = capability();
    let have = 10 * major + minor;
    // `a` is for this very architecture, `f` for its family.
    Some(match &target[3 + digits.len()..] {
        "a" => wanted == have,
        "f" => wanted <= have && wanted / 10 == major,
        _ => wanted <= have,
    })
}

fn version(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Decodes a text for the current device; the error comes with what is said about it.
fn load(text: &CStr) -> Result<Loaded, (Code, String)> {
    let device = healthy().map_err(|code| (code, String::new()))?;
    let text = text.to_str().map_err(|_| (Code::INVALID_IMAGE, "the image is no PTX text".to_string()))?;
    if text.starts_with("\x7fELF") {
        return Err((Code::INVALID_IMAGE, "machine code cannot be interpreted".into()));
    }
    let module = parse(text).map_err(|error| (Code::INVALID_PTX, error.message))?;
    if version(module.version()).is_none_or(|v| v > NEWEST_PTX) {
        let what =
            format!("unsupported .version {}; the newest is {}.{}", module.version(), NEWEST_PTX.0, NEWEST_PTX.1);
        return Err((Code::UNSUPPORTED_PTX, what));
    }
    match runs(module.target()) {
        Some(true) => Ok(Loaded { module, device, most_shared: Mutex::new(BTreeMap::new()) }),
        Some(false) => {
            let (major, minor) = capability();
            let what = format!("the text is for {}, the device is sm_{major}{minor}", module.target());
            Err((Code::NO_BINARY, what))
        }
        None => Err((Code::INVALID_PTX, format!("unknown target {}", module.target()))),
    }
}

/// The buffer for errors among the options: start and size.
///
/// # Safety
///
/// Both arrays have `count` elements, or are null.
unsafe fn log_buffer(count: u32, options: *const u32, values: *const *mut c_void) -> Option<(*mut u8, usize)> {
    if options.is_null() || values.is_null() {
        return None;
    }
    // SAFETY: as the caller promises.
    let (options, values) = unsafe {
        (std::slice::from_raw_parts(options, count as usize), std::slice::from_raw_parts(values, count as usize))
    };
    // 5 is the buffer, 6 its size.
    let value = |key: u32| options.iter().position(|o| *o == key).map(|at| values[at]);
    let (buffer, size) = (value(5)? as *mut u8, value(6)? as usize);
    (!buffer.is_null() && size > 0).then_some((buffer, size))
}

/// Writes what went wrong into the buffer for errors, or onto the standard error output where there is none.
///
/// # Safety
///
/// The buffer may be written to.
unsafe fn report(log: Option<(*mut u8, usize)>, what: &str) {
    let Some((buffer, size)) = log else {
        if !what.is_empty() {
            eprintln!("cuda stand-in: {what}");
        }
        return;
    };
    let count = what.len().min(size - 1);
    // SAFETY: the buffer has `size` bytes.
    unsafe {
        std::ptr::copy_nonoverlapping(what.as_ptr(), buffer, count);
        buffer.add(count).write(0);
    }
}

/// # Safety
///
/// As for `log_buffer`, and `image` is null or a text with a zero at its end.
unsafe fn load_image(
    to: *mut usize,
    image: *const c_void,
    count: u32,
    options: *const u32,
    values: *const *mut c_void,
) -> Result<(), Code> {
    if image.is_null() {
        return Err(Code::INVALID_VALUE);
    }
    // SAFETY: as the caller promises.
    let (text, log) = unsafe { (CStr::from_ptr(image.cast()), log_buffer(count, options, values)) };
    match load(text) {
        // SAFETY: the API's caller wants the handle there.
        Ok(loaded) => unsafe { put(to, state().insert(Object::Module(Arc::new(loaded)))) },
        Err((code, what)) => {
            // SAFETY: the buffer is the caller's.
            unsafe { report(log, &what) };
            Err(code)
        }
    }
}

fn module(handle: usize) -> Result<Arc<Loaded>, Code> {
    match state().get(handle)? {
        Object::Module(loaded) => Ok(loaded.clone()),
        _ => Err(Code::INVALID_HANDLE),
    }
}

/// # Safety
///
/// `name` is null or a text with a zero at its end.
unsafe fn text<'a>(name: *const c_char) -> Result<&'a str, Code> {
    if name.is_null() {
        return Err(Code::INVALID_VALUE);
    }
    // SAFETY: as the caller promises.
    unsafe { CStr::from_ptr(name) }.to_str().map_err(|_| Code::INVALID_VALUE)
}

/// Blocks of a kernel that fit a multiprocessor.
fn occupancy(function: usize, threads: c_int, shared: usize) -> Result<c_int, Code> {
    let (loaded, kernel) = state().function(function)?;
    let [fixed, _, registers] = loaded.module.sizes(&kernel).ok_or(Code::INVALID_HANDLE)?;
    let threads = u32::try_from(threads).ok().filter(|n| *n > 0).ok_or(Code::INVALID_VALUE)?;
    let shared = u64::from(fixed) + shared as u64 + 1024;
    let by_shared = (233_472 / shared).min(32) as u32;
    let by_registers = 65_536 / (threads * registers.clamp(16, 255)).max(1);
    Ok((2048 / threads.next_multiple_of(32)).min(by_shared).min(by_registers).min(32) as c_int)
}

super::api! {
    fn cuModuleLoadData(to: *mut usize, image: *const c_void) {
        load_image(to, image, 0, std::ptr::null(), std::ptr::null())
    }

    fn cuModuleLoadDataEx(to: *mut usize, image: *const c_void, count: u32, options: *mut u32, values: *mut *mut c_void) {
        load_image(to, image, count, options, values)
    }

    fn cuModuleLoad(to: *mut usize, path: *const c_char) {
        let bytes = std::fs::read(text(path)?).map_err(|_| Code::NOT_FOUND)?;
        let image = CString::new(bytes).map_err(|_| Code::INVALID_IMAGE)?;
        load_image(to, image.as_ptr().cast(), 0, std::ptr::null(), std::ptr::null())
    }

    fn cuModuleUnload(handle: usize) {
        let loaded = module(handle)?;
        let mut state = state();
        state.remove_functions(&loaded);
        state.remove(handle).map(|_| ())
    }

    fn cuModuleGetFunction(to: *mut usize, handle: usize, name: *const c_char) {
        healthy()?;
        let (loaded, name) = (module(handle)?, text(name)?);
        if loaded.module.kernel(name).is_none() {
            return Err(Code::NOT_FOUND);
        }
        put(to, state().function_handle(&loaded, name))
    }

    fn cuModuleGetGlobal_v2(to: *mut u64, bytes: *mut usize, handle: usize, name: *const c_char) {
        let (address, size) = module(handle)?.module.variable(text(name)?).ok_or(Code::NOT_FOUND)?;
        if !to.is_null() {
            put(to, address)?;
        }
        if bytes.is_null() { Ok(()) } else { put(bytes, size as usize) }
    }

    fn cuLinkCreate_v2(_count: u32, _options: *mut u32, _values: *mut *mut c_void, to: *mut usize) {
        healthy()?;
        put(to, state().insert(Object::Link(Arc::new(CString::default()))))
    }

    fn cuLinkAddData_v2(
        handle: usize, kind: u32, data: *mut c_void, size: usize, _name: *const c_char, count: u32,
        options: *mut u32, values: *mut *mut c_void,
    ) {
        // 1: a PTX text.
        if kind != 1 || data.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        let bytes = std::slice::from_raw_parts(data as *const u8, size);
        let bytes = bytes.split(|b| *b == 0).next().unwrap_or_default();
        let image = CString::new(bytes).map_err(|_| Code::INVALID_IMAGE)?;
        if let Err((code, what)) = load(&image) {
            report(log_buffer(count, options, values), &what);
            return Err(code);
        }
        match state().get_mut(handle)? {
            // Several texts would have to be joined; nobody needs that.
            Object::Link(text) if text.is_empty() => *text = Arc::new(image),
            _ => return Err(Code::NOT_SUPPORTED),
        }
        Ok(())
    }

    fn cuLinkComplete(handle: usize, to: *mut *mut c_void, size: *mut usize) {
        let Object::Link(text) = state().get(handle)?.clone() else { return Err(Code::INVALID_HANDLE) };
        if text.is_empty() {
            return Err(Code::INVALID_VALUE);
        }
        // The text stays where it is until the linker is destroyed.
        put(to, text.as_ptr() as *mut c_void)?;
        if size.is_null() { Ok(()) } else { put(size, text.as_bytes_with_nul().len()) }
    }

    fn cuLinkDestroy(handle: usize) {
        match state().remove(handle)? {
            Object::Link(_) => Ok(()),
            _ => Err(Code::INVALID_HANDLE),
        }
    }

    fn cuFuncGetAttribute(value: *mut c_int, attribute: u32, function: usize) {
        let (loaded, kernel) = state().function(function)?;
        let [shared, local, registers] = loaded.module.sizes(&kernel).ok_or(Code::INVALID_HANDLE)?;
        let asked = loaded.most_shared.lock().unwrap_or_else(|e| e.into_inner()).get(&kernel).copied();
        put(value, match attribute {
            0 => loaded.module.most_threads(&kernel) as c_int,
            1 => shared as c_int,
            3 => local as c_int,
            4 => registers.clamp(16, 255) as c_int,
            5 => version(loaded.module.version()).map_or(0, |(a, b)| (10 * a + b) as c_int),
            6 => (10 * capability().0 + capability().1) as c_int,
            8 => asked.unwrap_or(49_152 - shared.min(49_152) as c_int),
            2 | 7 | 9..=15 => 0,
            _ => return Err(Code::INVALID_VALUE),
        })
    }

    fn cuFuncSetAttribute(function: usize, attribute: u32, value: c_int) {
        let (loaded, kernel) = state().function(function)?;
        let [shared, ..] = loaded.module.sizes(&kernel).ok_or(Code::INVALID_HANDLE)?;
        match attribute {
            8 if value < 0 || value as u32 + shared > crate::exec::MOST_SHARED => Err(Code::INVALID_VALUE),
            8 => {
                loaded.most_shared.lock().unwrap_or_else(|e| e.into_inner()).insert(kernel, value);
                Ok(())
            }
            9..=15 => Ok(()),
            _ => Err(Code::INVALID_VALUE),
        }
    }

    fn cuOccupancyMaxActiveBlocksPerMultiprocessor(to: *mut c_int, function: usize, threads: c_int, shared: usize) {
        put(to, occupancy(function, threads, shared)?)
    }

    fn cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        to: *mut c_int, function: usize, threads: c_int, shared: usize, _flags: u32,
    ) {
        put(to, occupancy(function, threads, shared)?)
    }

    fn cuTensorMapEncodeTiled(
        to: *mut [u8; TensorMap::BYTES], kind: u32, rank: u32, address: *mut c_void, dims: *const u64, strides: *const u64,
        tile: *const u32, _steps: *const u32, _interleave: u32, swizzle: u32, _l2: u32, _fill: u32,
    ) {
        if rank != 2 || dims.is_null() || strides.is_null() || tile.is_null() {
            return Err(Code::NOT_SUPPORTED);
        }
        // No exchange, or that of 128 bytes.
        if !matches!(swizzle, 0 | 3) {
            return Err(Code::NOT_SUPPORTED);
        }
        let element = match kind {
            0 => 1,
            1 | 6 | 9 => 2,
            2 | 3 | 7 | 10..=12 => 4,
            4 | 5 | 8 => 8,
            _ => return Err(Code::INVALID_VALUE),
        };
        let map = TensorMap {
            base: address as u64,
            stride: strides.read(),
            dims: [dims.read() as u32, dims.add(1).read() as u32],
            tile: [tile.read(), tile.add(1).read()],
            element,
            swizzle: swizzle == 3,
        };
        if map.tile.iter().any(|n| *n == 0 || *n > 256) {
            return Err(Code::INVALID_VALUE);
        }
        put(to, map.encode())
    }
}
