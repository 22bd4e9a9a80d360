//! The CUDA driver API on the interpreter: a stand-in for `libcuda.so.1`.
//!
//! Work runs at the call, in order, on the CPU. As on a device a kernel's fault shows at the next synchronisation and
//! stays; what happened is said once on the standard error output. The environment decides what device it is:
//! `TESSERA_STANDIN_ARCH` (`9.0`), `TESSERA_STANDIN_DEVICES` (`1`), `TESSERA_STANDIN_MEMORY` (bytes),
//! `TESSERA_STANDIN_RACES` (`0` for no check), `TESSERA_STANDIN_SEED`, `TESSERA_STANDIN_WORKERS` and
//! `TESSERA_STANDIN_LIMIT` (instructions of a block).
// The names and the contracts of the functions are those of the driver API.
#![allow(non_snake_case, clippy::missing_safety_doc)]

mod code;
mod context;
mod device;
mod graph;
mod memory;
mod module;
mod state;
mod stream;
mod work;

use code::Code;
use std::ffi::c_void;

/// Defines functions of the driver API, and a table of them for `cuGetProcAddress`.
macro_rules! api {
    ($($(#[$meta:meta])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $body:block)*) => {
        $(
            $(#[$meta])*
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($($arg: $ty),*) -> u32 {
                let call = || -> Result<(), $crate::driver::code::Code> {
                    // SAFETY: the API demands of its callers that pointers are null or point to what the function's
                    // description says; null is refused by `put` and its like.
                    #[allow(unused_unsafe)]
                    unsafe { $body }
                };
                $crate::driver::code::number(call())
            }
        )*

        /// The functions of this file by their names.
        pub fn table() -> Vec<(&'static str, *mut std::ffi::c_void)> {
            vec![$((stringify!($name), $name as *const () as *mut std::ffi::c_void)),*]
        }
    };
}
use api;

/// Writes a result where the caller wants it.
///
/// # Safety
///
/// The pointer is null or may be written to.
unsafe fn put<T>(to: *mut T, value: T) -> Result<(), Code> {
    if to.is_null() {
        return Err(Code::INVALID_VALUE);
    }
    // SAFETY: not null, and so valid.
    unsafe { to.write(value) };
    Ok(())
}

/// The address of a function of the API; versions of a function have one name here.
fn find(name: &str) -> Option<*mut c_void> {
    let tables = [
        code::table(),
        context::table(),
        device::table(),
        graph::table(),
        memory::table(),
        module::table(),
        stream::table(),
        work::table(),
    ];
    let all = || tables.iter().flatten();
    ["_v3", "_v2", ""].iter().find_map(|suffix| {
        all().find(|(known, _)| known.strip_prefix(name).is_some_and(|rest| rest == *suffix)).map(|(_, at)| *at)
    })
}
