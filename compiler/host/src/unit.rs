//! A whole program: declarations, one function after the other, addresses.

use crate::frame::Gen;
use crate::link::{HostError, Link};
use cranelift::codegen::Context;
use cranelift::codegen::ir::types::{F64, I64};
use cranelift::codegen::ir::{AbiParam, Signature, Type, UserFuncName};
use cranelift::codegen::settings::{self, Configurable};
use cranelift::frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift::jit::{JITBuilder, JITModule};
use cranelift::module::{FuncId, Linkage, Module, default_libcall_names};
use std::collections::BTreeMap;
use tessera_abi::rt::{RtFn, Word};
use tessera_ir::host::{FnId, HostFn, HostProgram, HostType, TypeId};

/// What stays the same while the functions of a program are compiled.
pub(crate) struct Unit<'a> {
    pub program: &'a HostProgram,
    pub link: &'a Link<'a>,
    pub fns: Vec<FuncId>,
    pub imports: BTreeMap<RtFn, FuncId>,
}

impl Unit<'_> {
    pub fn info(&self, ty: TypeId) -> &HostType {
        &self.program.types[ty.0 as usize]
    }

    /// Whether words of a type are addresses of counted objects.
    pub fn counted(&self, ty: TypeId) -> bool {
        use HostType::*;
        !matches!(self.info(ty), Int | Float | Bool | None | Known(_) | DType)
    }

    pub fn machine_type(&self, ty: TypeId) -> Type {
        if matches!(self.info(ty), HostType::Float) { F64 } else { I64 }
    }

    /// A function with these parameters after the context and the closure.
    pub fn signature(&self, module: &JITModule, params: impl Iterator<Item = TypeId>, ret: TypeId) -> Signature {
        let mut sig = module.make_signature();
        sig.params.extend([AbiParam::new(I64), AbiParam::new(I64)]);
        sig.params.extend(params.map(|t| AbiParam::new(self.machine_type(t))));
        sig.returns.push(AbiParam::new(self.machine_type(ret)));
        sig
    }

    pub fn fn_signature(&self, module: &JITModule, f: &HostFn) -> Signature {
        self.signature(module, f.params.iter().map(|p| f.locals[p.0 as usize].ty), f.ret)
    }
}

/// Machine code in memory. It stays there until [`Compiled::free`].
pub struct Compiled {
    module: JITModule,
    addresses: Vec<*const u8>,
    entry: Option<FnId>,
}

impl Compiled {
    /// Runs the module body. Afterwards the context says whether it failed.
    ///
    /// # Safety
    /// `context` is a live `Context` of the runtime that the program was linked against, with its
    /// globals declared, and no one else uses it meanwhile.
    pub unsafe fn run(&self, context: *mut u8) {
        if let Some(entry) = self.entry {
            // SAFETY: the caller's promise; the module body has no parameters.
            unsafe { self.call(entry, context) };
        }
    }

    /// Calls a function without parameters and gives its result's word.
    ///
    /// # Safety
    /// As for [`Compiled::run`]; the function has no parameters, no captures and returns no float.
    pub unsafe fn call(&self, function: FnId, context: *mut u8) -> u64 {
        let address = self.address(function);
        // SAFETY: every function takes the context and its closure.
        let code: extern "C" fn(*mut u8, u64) -> u64 = unsafe { std::mem::transmute(address) };
        code(context, 0)
    }

    /// The code of a function: context, closure (0), parameters.
    pub fn address(&self, function: FnId) -> *const u8 {
        self.addresses[function.0 as usize]
    }

    /// Gives the memory of the code back.
    ///
    /// # Safety
    /// None of the code runs, and no closure over it is left in any value.
    pub unsafe fn free(self) {
        // SAFETY: the caller's promise.
        unsafe { self.module.free_memory() }
    }
}

fn module(link: &Link) -> Result<JITModule, HostError> {
    let fail = |e: String| HostError::Machine(e);
    let mut flags = settings::builder();
    let verifier = if cfg!(debug_assertions) { "true" } else { "false" };
    for (name, value) in [
        ("opt_level", "speed"),
        ("is_pic", "false"),
        ("use_colocated_libcalls", "false"),
        ("enable_verifier", verifier),
        ("preserve_frame_pointers", "true"),
    ] {
        flags.set(name, value).map_err(|e| fail(e.to_string()))?;
    }
    let builder = cranelift::native::builder().map_err(|e| fail(e.to_string()))?;
    let isa = builder.finish(settings::Flags::new(flags)).map_err(|e| fail(e.to_string()))?;
    let mut jit = JITBuilder::with_isa(isa, default_libcall_names());
    for (func, address) in link.symbols {
        jit.symbol(func.sig().name, *address);
    }
    Ok(JITModule::new(jit))
}

fn rt_signature(module: &JITModule, func: RtFn) -> Signature {
    let row = func.sig();
    let machine = |w: &Word| AbiParam::new(if *w == Word::Float { F64 } else { I64 });
    let mut sig = module.make_signature();
    sig.params.push(AbiParam::new(I64));
    sig.params.extend(row.params.iter().map(machine));
    if row.fails {
        sig.params.push(AbiParam::new(I64));
    }
    if row.ret != Word::Unit {
        sig.returns.push(machine(&row.ret));
    }
    sig
}

/// Compiles a program. Cost: about 50 µs for a small function, linear in the size.
pub fn compile(program: &HostProgram, link: &Link) -> Result<Compiled, HostError> {
    let mut module = module(link)?;
    let refuse = |name: &str, e: cranelift::module::ModuleError| HostError::Function {
        name: name.into(),
        reason: format!("{e:?}"),
    };
    let mut unit = Unit { program, link, fns: vec![], imports: BTreeMap::new() };
    for (func, _) in link.symbols {
        let sig = rt_signature(&module, *func);
        let name = func.sig().name;
        let id = module.declare_function(name, Linkage::Import, &sig).map_err(|e| refuse(name, e))?;
        unit.imports.insert(*func, id);
    }
    for f in &program.fns {
        let sig = unit.fn_signature(&module, f);
        let id = module.declare_anonymous_function(&sig).map_err(|e| refuse(&f.name, e))?;
        unit.fns.push(id);
    }
    let mut context = module.make_context();
    let mut builder = FunctionBuilderContext::new();
    for (f, &id) in program.fns.iter().zip(&unit.fns) {
        define(&mut module, &unit, f, id, &mut context, &mut builder).map_err(|e| refuse(&f.name, e))?;
    }
    module.finalize_definitions().map_err(|e| refuse("program", e))?;
    let addresses = unit.fns.iter().map(|id| module.get_finalized_function(*id)).collect();
    Ok(Compiled { module, addresses, entry: program.entry })
}

fn define(
    module: &mut JITModule,
    unit: &Unit,
    f: &HostFn,
    id: FuncId,
    context: &mut Context,
    builder: &mut FunctionBuilderContext,
) -> Result<(), cranelift::module::ModuleError> {
    context.func.signature = unit.fn_signature(module, f);
    context.func.name = UserFuncName::user(0, id.as_u32());
    let config = module.target_config();
    let mut generator = Gen::new(unit, module, f, FunctionBuilder::new(&mut context.func, builder));
    generator.function();
    generator.finish(config);
    let outcome = module.define_function(id, context);
    module.clear_context(context);
    outcome
}
