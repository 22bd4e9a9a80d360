//! The functions of the driver API as a runtime calls them. Every test has a device of its own, for faults stay.

use std::ffi::{CStr, CString, c_char, c_void};
use std::sync::Once;
// Only by this the library is linked.
use tessera_ptx as _;

#[rustfmt::skip]
unsafe extern "C" {
    fn cuInit(flags: u32) -> u32;
    fn cuDriverGetVersion(version: *mut i32) -> u32;
    fn cuDeviceGetCount(count: *mut i32) -> u32;
    fn cuDeviceGetAttribute(value: *mut i32, attribute: u32, device: i32) -> u32;
    fn cuDeviceGetName(name: *mut c_char, length: i32, device: i32) -> u32;
    fn cuDevicePrimaryCtxRetain(context: *mut usize, device: i32) -> u32;
    fn cuDevicePrimaryCtxReset_v2(device: i32) -> u32;
    fn cuCtxSetCurrent(context: usize) -> u32;
    fn cuCtxGetCurrent(context: *mut usize) -> u32;
    fn cuCtxSynchronize() -> u32;
    fn cuMemAlloc_v2(to: *mut u64, bytes: usize) -> u32;
    fn cuMemFree_v2(address: u64) -> u32;
    fn cuMemGetInfo_v2(left: *mut usize, total: *mut usize) -> u32;
    fn cuMemAllocHost_v2(to: *mut *mut c_void, bytes: usize) -> u32;
    fn cuMemFreeHost(address: *mut c_void) -> u32;
    fn cuPointerGetAttribute(data: *mut c_void, attribute: u32, address: u64) -> u32;
    fn cuMemcpyHtoD_v2(to: u64, from: *const c_void, bytes: usize) -> u32;
    fn cuMemcpyDtoH_v2(to: *mut c_void, from: u64, bytes: usize) -> u32;
    fn cuMemcpyDtoDAsync_v2(to: u64, from: u64, bytes: usize, stream: usize) -> u32;
    fn cuMemsetD32Async(to: u64, value: u32, count: usize, stream: usize) -> u32;
    fn cuMemsetD8_v2(to: u64, value: u8, count: usize) -> u32;
    fn cuModuleLoadData(to: *mut usize, image: *const c_void) -> u32;
    fn cuModuleLoadDataEx(to: *mut usize, image: *const c_void, count: u32, options: *mut u32, values: *mut *mut c_void) -> u32;
    fn cuModuleGetFunction(to: *mut usize, module: usize, name: *const c_char) -> u32;
    fn cuModuleGetGlobal_v2(to: *mut u64, bytes: *mut usize, module: usize, name: *const c_char) -> u32;
    fn cuModuleUnload(module: usize) -> u32;
    fn cuLinkCreate_v2(count: u32, options: *mut u32, values: *mut *mut c_void, to: *mut usize) -> u32;
    fn cuLinkAddData_v2(link: usize, kind: u32, data: *mut c_void, size: usize, name: *const c_char, count: u32, options: *mut u32, values: *mut *mut c_void) -> u32;
    fn cuLinkComplete(link: usize, to: *mut *mut c_void, size: *mut usize) -> u32;
    fn cuLinkDestroy(link: usize) -> u32;
    fn cuFuncSetAttribute(function: usize, attribute: u32, value: i32) -> u32;
    fn cuFuncGetAttribute(value: *mut i32, attribute: u32, function: usize) -> u32;
    fn cuLaunchKernel(function: usize, gx: u32, gy: u32, gz: u32, bx: u32, by: u32, bz: u32, shared: u32, stream: usize, params: *mut *mut c_void, extra: *mut *mut c_void) -> u32;
    fn cuStreamCreate(to: *mut usize, flags: u32) -> u32;
    fn cuStreamSynchronize(stream: usize) -> u32;
    fn cuStreamDestroy_v2(stream: usize) -> u32;
    fn cuStreamWaitEvent(stream: usize, event: usize, flags: u32) -> u32;
    fn cuStreamBeginCapture_v2(stream: usize, mode: u32) -> u32;
    fn cuStreamIsCapturing(stream: usize, status: *mut u32) -> u32;
    fn cuStreamEndCapture(stream: usize, graph: *mut usize) -> u32;
    fn cuGraphInstantiateWithFlags(to: *mut usize, graph: usize, flags: u64) -> u32;
    fn cuGraphLaunch(graph: usize, stream: usize) -> u32;
    fn cuGraphExecDestroy(graph: usize) -> u32;
    fn cuGraphDestroy(graph: usize) -> u32;
    fn cuEventCreate(to: *mut usize, flags: u32) -> u32;
    fn cuEventRecord(event: usize, stream: usize) -> u32;
    fn cuEventElapsedTime(milliseconds: *mut f32, from: usize, to: usize) -> u32;
    fn cuGetErrorName(error: u32, text: *mut *const c_char) -> u32;
    fn cuGetProcAddress_v2(symbol: *const c_char, to: *mut *mut c_void, version: i32, flags: u64, status: *mut u32) -> u32;
}

const TEXT: &str = ".version 8.0
.target sm_80
.address_size 64
.global .align 4 .u32 factor = 3;
.visible .entry scale(.param .u64 p, .param .u32 n)
{
.reg .pred %p<2>; .reg .b32 %r<8>; .reg .b64 %d<4>;
mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.s32 %r4, %r1, %r2, %r3;
ld.param.u32 %r5, [n]; setp.ge.u32 %p1, %r4, %r5; @%p1 ret;
ld.param.u64 %d1, [p]; mul.wide.u32 %d2, %r4, 4; add.s64 %d1, %d1, %d2;
ld.global.u32 %r6, [%d1]; ld.global.u32 %r7, [factor]; mul.lo.u32 %r6, %r6, %r7; st.global.u32 [%d1], %r6;
ret;
}
";

/// Makes a device of four current.
fn device(ordinal: i32) {
    static START: Once = Once::new();
    START.call_once(|| {
        // SAFETY: no other thread reads the environment before this is done.
        unsafe {
            std::env::set_var("TESSERA_STANDIN_DEVICES", "4");
            std::env::set_var("TESSERA_STANDIN_MEMORY", "1000000");
            assert_eq!(cuInit(0), 0);
        }
    });
    let mut context = 0;
    // SAFETY: the result has a place.
    unsafe {
        assert_eq!(cuDevicePrimaryCtxRetain(&mut context, ordinal), 0);
        assert_eq!(cuCtxSetCurrent(context), 0);
    }
}

fn get<T: Default>(call: impl FnOnce(*mut T) -> u32) -> T {
    let mut value = T::default();
    assert_eq!(call(&mut value), 0);
    value
}

fn function(text: &str) -> (usize, usize) {
    let text = CString::new(text).unwrap();
    // SAFETY: texts end with a zero, results have a place.
    unsafe {
        let module = get(|to| cuModuleLoadData(to, text.as_ptr().cast()));
        (module, get(|to| cuModuleGetFunction(to, module, c"scale".as_ptr())))
    }
}

fn launch(function: usize, mut address: u64, mut n: u32, stream: usize) -> u32 {
    let mut params: [*mut c_void; 2] = [(&raw mut address).cast(), (&raw mut n).cast()];
    // SAFETY: the kernel has these two parameters.
    unsafe {
        cuLaunchKernel(function, n.div_ceil(64), 1, 1, 64, 1, 1, 0, stream, params.as_mut_ptr(), std::ptr::null_mut())
    }
}

fn read(address: u64, count: usize) -> Vec<u32> {
    let mut values = vec![0u32; count];
    // SAFETY: the vector has so many bytes.
    assert_eq!(unsafe { cuMemcpyDtoH_v2(values.as_mut_ptr().cast(), address, 4 * count) }, 0);
    values
}

#[test]
fn devices_memory_and_launches() {
    device(0);
    // SAFETY: results have places, host ranges are as large as said.
    unsafe {
        assert_eq!((get(|v| cuDriverGetVersion(v)), get(|v| cuDeviceGetCount(v))), (12080, 4));
        let attribute = |n| get(|v| cuDeviceGetAttribute(v, n, 0));
        assert_eq!([75, 76, 10, 1, 8, 97].map(attribute), [9, 0, 32, 1024, 49152, 232448]);
        let mut name = [0 as c_char; 8];
        assert_eq!(cuDeviceGetName(name.as_mut_ptr(), 8, 0), 0);
        assert_eq!(CStr::from_ptr(name.as_ptr()), c"Tessera");
        let address = get(|to| cuMemAlloc_v2(to, 400));
        assert_eq!(read(address, 100), [u32::MAX; 100], "fresh memory is poisoned");
        let values: Vec<u32> = (0..100).collect();
        assert_eq!(cuMemcpyHtoD_v2(address, values.as_ptr().cast(), 400), 0);
        assert_eq!(cuMemcpyHtoD_v2(address + 4, values.as_ptr().cast(), 400), 1, "beyond the allocation");
        let (module, f) = function(TEXT);
        assert_eq!(launch(f, address, 100, 0), 0);
        assert_eq!(read(address, 100), values.iter().map(|v| 3 * v).collect::<Vec<_>>());
        let mut bytes = 0;
        let factor = get(|to| cuModuleGetGlobal_v2(to, &mut bytes, module, c"factor".as_ptr()));
        assert_eq!((bytes, read(factor, 1)), (4, vec![3]));
        assert_eq!(cuMemcpyHtoD_v2(factor, [5u32].as_ptr().cast(), 4), 0);
        assert_eq!(launch(f, address, 100, 0), 0);
        assert_eq!(read(address, 2), [0, 15]);
        assert_eq!(get(|v| cuFuncGetAttribute(v, 0, f)), 1024);
        assert_eq!(cuFuncSetAttribute(f, 8, 300_000), 1);
        assert_eq!(cuMemsetD8_v2(address, 1, 8), 0);
        assert_eq!(read(address, 3), [0x0101_0101, 0x0101_0101, 30]);
        let mut far = 0;
        assert_eq!(cuMemAlloc_v2(&mut far, 1_000_000), 2, "out of memory");
        let mut total = 0;
        assert_eq!((get(|left| cuMemGetInfo_v2(left, &mut total)), total), (999_600, 1_000_000));
        assert_eq!(cuModuleUnload(module), 0);
        assert_eq!(launch(f, address, 100, 0), 400, "the function went with its module");
        assert_eq!((cuMemFree_v2(address), cuMemFree_v2(address)), (0, 1));
        let mut host = std::ptr::null_mut();
        assert_eq!(cuMemAllocHost_v2(&mut host, 64), 0);
        let mut kind = 0u32;
        assert_eq!(cuPointerGetAttribute((&raw mut kind).cast(), 2, host as u64), 0);
        assert_eq!((kind, cuMemFreeHost(host)), (1, 0));
    }
}

#[test]
fn faults_stay() {
    device(1);
    // SAFETY: results have places.
    unsafe {
        let address = get(|to| cuMemAlloc_v2(to, 400));
        let (_, f) = function(TEXT);
        assert_eq!(launch(f, address, 101, 0), 0, "the launch itself is fine");
        assert_eq!([cuCtxSynchronize(), cuCtxSynchronize(), launch(f, address, 1, 0)], [700; 3]);
        let mut other = 0;
        assert_eq!(cuMemAlloc_v2(&mut other, 4), 700);
        assert_eq!(cuDevicePrimaryCtxReset_v2(1), 0);
        assert_eq!((launch(f, address + 2, 1, 0), cuCtxSynchronize()), (0, 716));
        assert_eq!(cuDevicePrimaryCtxReset_v2(1), 0);
        let (_, trap) = function(&TEXT.replace("ld.param.u32 %r5, [n];", "trap;"));
        assert_eq!((launch(trap, address, 1, 0), cuCtxSynchronize()), (0, 719));
        assert_eq!(cuDevicePrimaryCtxReset_v2(1), 0);
        // The memory of another device is not this one's.
        device(2);
        let (_, f) = function(TEXT);
        assert_eq!((launch(f, address, 1, 0), cuCtxSynchronize()), (0, 700));
        assert_eq!(cuDevicePrimaryCtxReset_v2(2), 0);
    }
}

#[test]
fn texts_are_refused() {
    device(0);
    let load = |text: &str| {
        let text = CString::new(text).unwrap();
        let (mut module, mut log) = (0, [0x7Fu8; 200]);
        let mut values: [*mut c_void; 2] = [log.as_mut_ptr().cast(), 200 as *mut c_void];
        // SAFETY: two options with a value each.
        let code = unsafe {
            cuModuleLoadDataEx(&mut module, text.as_ptr().cast(), 2, [5, 6].as_mut_ptr(), values.as_mut_ptr())
        };
        let log = CStr::from_bytes_until_nul(&log).map(|t| t.to_string_lossy().into_owned()).unwrap_or_default();
        (code, log)
    };
    let (code, log) = load(&TEXT.replace("mad.lo.s32", "mad.lo.s33"));
    assert_eq!(code, 218);
    assert!(log.starts_with("line 8 `mad.lo.s33"), "{log}");
    assert_eq!(load(&TEXT.replace("sm_80", "sm_100")).0, 209);
    assert_eq!(load(&TEXT.replace("sm_80", "sm_90a")).0, 0);
    assert_eq!(load(&TEXT.replace("8.0", "9.9")).0, 222);
    assert_eq!(load("nonsense").0, 218);
    // SAFETY: results have places, texts end with a zero.
    unsafe {
        let link = get(|to| cuLinkCreate_v2(0, std::ptr::null_mut(), std::ptr::null_mut(), to));
        let (null, name) = (std::ptr::null_mut(), std::ptr::null());
        let add = |text: &str| {
            cuLinkAddData_v2(link, 1, text.as_ptr() as *mut c_void, text.len(), name, 0, null, null.cast())
        };
        assert_eq!((add("nonsense"), add(TEXT)), (218, 0));
        let (mut cubin, mut size) = (std::ptr::null_mut(), 0);
        assert_eq!((cuLinkComplete(link, &mut cubin, &mut size), size), (0, TEXT.len() + 1));
        let module = get(|to| cuModuleLoadData(to, cubin));
        assert_eq!((cuLinkDestroy(link), cuModuleUnload(module)), (0, 0));
        let name = get_name(700);
        assert_eq!(name, "CUDA_ERROR_ILLEGAL_ADDRESS");
        let (mut found, mut status) = (std::ptr::null_mut(), 7);
        assert_eq!(cuGetProcAddress_v2(c"cuMemAlloc".as_ptr(), &mut found, 12080, 0, &mut status), 0);
        assert_eq!((found as usize, status), (cuMemAlloc_v2 as *const () as usize, 0));
        assert_eq!(cuGetProcAddress_v2(c"cuNothing".as_ptr(), &mut found, 12080, 0, &mut status), 500);
    }
}

fn get_name(error: u32) -> String {
    let mut text = std::ptr::null();
    // SAFETY: the result has a place, and is a text with a zero at its end.
    unsafe {
        assert_eq!(cuGetErrorName(error, &mut text), 0);
        CStr::from_ptr(text).to_string_lossy().into_owned()
    }
}

#[test]
fn graphs() {
    device(3);
    // SAFETY: results have places.
    unsafe {
        let address = get(|to| cuMemAlloc_v2(to, 256));
        let (_, f) = function(TEXT);
        let (stream, side) = (get(|to| cuStreamCreate(to, 1)), get(|to| cuStreamCreate(to, 1)));
        let event = get(|to| cuEventCreate(to, 0));
        assert_eq!(cuMemsetD32Async(address, 1, 64, stream), 0);
        assert_eq!(cuStreamBeginCapture_v2(stream, 2), 0);
        assert_eq!(launch(f, address, 32, stream), 0);
        assert_eq!((cuEventRecord(event, stream), cuStreamWaitEvent(side, event, 0)), (0, 0));
        assert_eq!(get(|status| cuStreamIsCapturing(side, status)), 1);
        assert_eq!(cuMemcpyDtoDAsync_v2(address + 128, address, 128, side), 0);
        assert_eq!(cuStreamSynchronize(stream), 900, "nobody waits for what does not run");
        assert_eq!(cuCtxSynchronize(), 900);
        device(0);
        assert_eq!(cuCtxSynchronize(), 0, "what another device captures does not matter");
        device(3);
        let graph = get(|to| cuStreamEndCapture(stream, to));
        assert_eq!(read(address, 64), [1; 64], "nothing ran so far");
        let executable = get(|to| cuGraphInstantiateWithFlags(to, graph, 0));
        assert_eq!(cuGraphDestroy(graph), 0);
        assert_eq!((cuGraphLaunch(executable, stream), cuGraphLaunch(executable, stream)), (0, 0));
        assert_eq!(cuStreamSynchronize(stream), 0);
        assert_eq!(read(address, 64), [9; 64]);
        assert_eq!((cuGraphExecDestroy(executable), cuGraphLaunch(executable, stream)), (0, 400));
        let later = get(|to| cuEventCreate(to, 0));
        assert_eq!((cuEventRecord(event, stream), cuEventRecord(later, stream)), (0, 0));
        assert!(get(|to| cuEventElapsedTime(to, event, later)) >= 0.0);
        assert_eq!((cuStreamDestroy_v2(side), cuStreamDestroy_v2(side)), (0, 400));
        let current = get(|to| cuCtxGetCurrent(to));
        assert_ne!(current, 0);
    }
}
