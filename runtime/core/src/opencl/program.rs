//! Kernels on a device: SPIR-V, which its driver makes machine code of.

use super::Accelerator;
use super::api::{Info, code, present, said, text};
use crate::gpu::LaunchShape;
use opencl_dynamic_sys::constants::*;
use opencl_dynamic_sys::types::{cl_kernel, cl_program};
use std::ffi::{CString, c_void};
use std::sync::{Arc, Mutex, PoisonError};

/// How SPIR-V begins, in the order of this processor's bytes.
const MAGIC: [u8; 4] = 0x0723_0203_u32.to_le_bytes();

/// A kernel as the device launches it.
pub struct OpenClKernel {
    pub function: Function,
    pub shape: LaunchShape,
}

/// A kernel of a program. Who sets its arguments keeps it until it is launched.
pub struct Function {
    pub(super) kernel: Mutex<Handle>,
    on: Arc<Accelerator>,
    program: cl_program,
}

pub(super) struct Handle(pub cl_kernel);

// SAFETY: handles, which OpenCL allows any thread to use, but for the arguments of a kernel: behind a lock.
unsafe impl Send for Function {}
// SAFETY: as above.
unsafe impl Sync for Function {}

impl Drop for Function {
    fn drop(&mut self) {
        let kernel = self.kernel.get_mut().unwrap_or_else(|e| e.into_inner()).0;
        let _ = self.on.api.clReleaseKernel(kernel);
        let _ = self.on.api.clReleaseProgram(self.program);
    }
}

impl Accelerator {
    /// Machine code of SPIR-V, as it can be kept: the driver's own form, or SPIR-V where it has none. Any thread may ask.
    ///
    /// # Errors
    /// What the driver's compiler says of it.
    pub fn assemble(self: &Arc<Accelerator>, spirv: &[u8]) -> Result<Vec<u8>, String> {
        let program = self.built(spirv)?;
        let code = self.binary(program);
        let _ = self.api.clReleaseProgram(program);
        Ok(code.filter(|c| !c.is_empty()).unwrap_or_else(|| spirv.to_vec()))
    }

    /// Entry `name` of what [`Accelerator::assemble`] has made.
    ///
    /// # Errors
    /// What the driver says of the code.
    pub fn function(self: &Arc<Accelerator>, made: &[u8], name: &str) -> Result<Function, String> {
        let program = self.built(made)?;
        let mut status = CL_SUCCESS;
        let entry = CString::new(name).map_err(|_| "the name of the kernel has a byte 0".to_owned())?;
        match present(self.api.clCreateKernel(program, entry.as_ptr(), &mut status)) {
            Some(kernel) if status == CL_SUCCESS => {
                Ok(Function { kernel: Mutex::new(Handle(kernel)), on: self.clone(), program })
            }
            _ => {
                let _ = self.api.clReleaseProgram(program);
                Err(said(status))
            }
        }
    }

    fn built(&self, code_of: &[u8]) -> Result<cl_program, String> {
        let (api, mut status) = (self.api, CL_SUCCESS);
        let (at, bytes) = (code_of.as_ptr(), code_of.len());
        let made = match code_of.starts_with(&MAGIC) {
            true => api.clCreateProgramWithIL(self.context, at.cast(), bytes, &mut status),
            false => {
                let devices = [self.device];
                let (ends, starts) = ([bytes], [at]);
                let each = std::ptr::null_mut();
                api.clCreateProgramWithBinary(
                    self.context,
                    1,
                    devices.as_ptr(),
                    ends.as_ptr(),
                    starts.as_ptr(),
                    each,
                    &mut status,
                )
            }
        };
        let Some(program) = present(made).filter(|_| status == CL_SUCCESS) else {
            return Err(said(if made.is_none() { code(None) } else { status }));
        };
        let options = match (self.facts.is_gpu, self.facts.exact) {
            // A compiler for processors (Intel's of 2026) goes down where it moves values across barriers.
            (false, _) => c"-cl-opt-disable",
            (true, true) => c"-cl-fp32-correctly-rounded-divide-sqrt",
            (true, false) => c"",
        };
        let devices = [self.device];
        let nothing = std::ptr::null_mut();
        let done = {
            let _one = self.building.lock().unwrap_or_else(PoisonError::into_inner);
            code(api.clBuildProgram(program, 1, devices.as_ptr(), options.as_ptr(), None, nothing))
        };
        if done == CL_SUCCESS {
            return Ok(program);
        }
        let Info { device, .. } = self.info();
        let log = text(|n, at, len| api.clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, n, at, len));
        let _ = api.clReleaseProgram(program);
        Err(format!("{} {}", said(done), log.trim()))
    }

    /// The driver's form of a program for the one device that it was built for.
    fn binary(&self, program: cl_program) -> Option<Vec<u8>> {
        let ask = |what, n, at: *mut c_void| {
            code(self.api.clGetProgramInfo(program, what, n, at, std::ptr::null_mut())) == CL_SUCCESS
        };
        let mut bytes = 0usize;
        if !ask(CL_PROGRAM_BINARY_SIZES, size_of::<usize>(), (&raw mut bytes).cast()) {
            return None;
        }
        let mut out = vec![0u8; bytes];
        let mut places = [out.as_mut_ptr()];
        ask(CL_PROGRAM_BINARIES, size_of_val(&places), places.as_mut_ptr().cast()).then_some(out)
    }
}
