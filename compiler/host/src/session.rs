//! Programs that run in one context: a program on its own, or the inputs of a prompt one after
//! the other. The context is the one that the code was compiled against, which is what makes
//! running it safe.

use crate::link::{HostError, Link};
use crate::unit::{Compiled, compile};
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tessera_abi::rt::RtFn;
use tessera_ir::host::{FnId, GlobalId, HostProgram, HostType, TypeId};
use tessera_runtime::context::{Context, RegionExec, Stop, Viewed};
use tessera_runtime::host_value::HostValue;
use tessera_runtime::value::TypeInfo;

/// Bytes of the system's stack that are left to the runtime functions.
const STACK_RESERVE: usize = 512 << 10;

/// A context with the programs that were loaded into it.
pub struct Session {
    // Code may be called by closures in globals: the context goes first.
    context: Box<Context>,
    programs: Vec<Compiled>,
    symbols: Vec<(RtFn, *const u8)>,
    spans: u32,
    regions: u32,
    region_types: Vec<(Vec<u32>, Vec<u32>)>,
    stack_bytes: usize,
    keep_globals: bool,
}

/// A loaded program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Loaded {
    position: usize,
    /// Number of its first region in the session.
    pub region_base: u32,
    /// Number of its first span in the session.
    pub span_base: u32,
}

impl Session {
    /// A session that writes its output to `sink` (each line at once with `by_line`), on a stack
    /// of so many bytes.
    pub fn new(sink: Box<dyn Write>, by_line: bool, args: Vec<String>, stack_bytes: usize) -> Session {
        let mut context = Context::new(sink, by_line);
        context.args = args;
        let mut symbols = tessera_runtime::rt::symbols();
        symbols.extend(tessera_runtime::rt_tensor::symbols());
        Session {
            context,
            programs: vec![],
            symbols,
            spans: 0,
            regions: 0,
            region_types: vec![],
            stack_bytes,
            keep_globals: false,
        }
    }

    /// Programs loaded from here on leave globals whole when they fail: see [`Link`].
    pub fn keep_globals(&mut self) {
        self.keep_globals = true;
    }

    /// Where the program's file lies (`sys.dir`).
    pub fn set_dir(&mut self, dir: &str) {
        self.context.dir = if dir.is_empty() { ".".into() } else { dir.to_owned() };
    }

    /// The flag that stops the running program; it may be set from another thread.
    pub fn interrupt_flag(&self) -> Arc<AtomicBool> {
        self.context.interrupt_flag()
    }

    /// Who shows the figures of programs, given as SVG, instead of their text.
    pub fn set_viewer(&mut self, viewer: Box<dyn Fn(Viewed)>) {
        self.context.set_viewer(viewer);
    }

    /// Compiles a program and declares its types, strings and globals.
    pub fn load(&mut self, program: &HostProgram) -> Result<Loaded, HostError> {
        let infos: Vec<TypeInfo> = program.types.iter().map(info).collect();
        let types = self.context.add_types(&infos);
        let strings: Vec<u64> = program.strings.iter().map(|s| self.context.intern(s)).collect();
        let number = |t: &TypeId| types.get(t.0 as usize).copied().unwrap_or_default();
        let globals: Vec<(Arc<str>, u32)> = program.globals.iter().map(|g| (g.name.clone(), number(&g.ty))).collect();
        let link = Link {
            symbols: &self.symbols,
            strings: &strings,
            types: &types,
            span_base: self.spans,
            region_base: self.regions,
            keep_globals: self.keep_globals,
        };
        let compiled = compile(program, &link)?;
        self.context.set_globals(&globals);
        for r in &program.regions {
            self.region_types.push((r.params.iter().map(number).collect(), r.results.iter().map(number).collect()));
        }
        let loaded = Loaded { position: self.programs.len(), region_base: self.regions, span_base: self.spans };
        self.spans += program.spans.len() as u32;
        self.regions += program.regions.len() as u32;
        for (at, f) in program.fns.iter().enumerate() {
            self.context.name_function(compiled.address(FnId(at as u32)) as usize, &f.name);
        }
        self.programs.push(compiled);
        Ok(loaded)
    }

    /// The address that closures over a function hold.
    pub fn address(&self, program: &Loaded, function: FnId) -> usize {
        self.programs[program.position].address(function) as usize
    }

    /// Who runs the regions of all loaded programs. To be called after each [`Session::load`].
    pub fn set_regions(&mut self, regions: Box<dyn RegionExec>) {
        self.context.set_regions(regions, self.region_types.clone());
    }

    /// Runs a module body and writes out what it printed. Returns why it ended early, if it did.
    pub fn run(&mut self, program: &Loaded) -> Option<Stop> {
        self.context.use_stack(self.stack_bytes.saturating_sub(STACK_RESERVE));
        let context: *mut Context = &mut *self.context;
        // SAFETY: the program was compiled against this context, whose globals are declared; it
        // is borrowed mutably for the whole run.
        unsafe { self.programs[program.position].run(context.cast()) };
        self.context.finish_saving();
        self.context.flush();
        self.context.take_stop()
    }

    /// The value of a global; `None` if it was never assigned.
    pub fn global(&self, id: GlobalId) -> Option<HostValue> {
        self.context.global_value(id.0)
    }

    /// The value of a global as `repr` writes it; `None` if it was never assigned.
    pub fn global_text(&self, id: GlobalId) -> Option<String> {
        let (_, ty, word) = self.context.global(id.0)?;
        if word == 0 && self.context.types.counted(ty) {
            return None;
        }
        let mut out = String::new();
        tessera_runtime::show::repr(&self.context, word, ty, &mut out);
        Some(out)
    }

    /// Runs a module body as [`Session::run`] does. After a failure every global has the value
    /// that it had before, but for those of which `stays` says, by old and new value, that the
    /// new one is to stay. Cost: a global that the program changes in place is copied once.
    pub fn try_run(
        &mut self,
        program: &Loaded,
        stays: &dyn Fn(GlobalId, &HostValue, &HostValue) -> bool,
    ) -> Option<Stop> {
        let kept = self.context.keep();
        let stop = self.run(program);
        match stop {
            Some(Stop::Error(_)) => self.context.restore(kept, &|id, old, new| stays(GlobalId(id), old, new)),
            _ => self.context.give_up(kept),
        }
        stop
    }

    /// Calls a function without parameters.
    pub fn call(&mut self, program: &Loaded, function: FnId) -> Option<Stop> {
        self.context.use_stack(self.stack_bytes.saturating_sub(STACK_RESERVE));
        let context: *mut Context = &mut *self.context;
        // SAFETY: as for `run`; the result's word is dropped, which leaks at most one object.
        let _ = unsafe { self.programs[program.position].call(function, context.cast()) };
        self.context.flush();
        self.context.take_stop()
    }
}

/// The runtime's mirror of a type.
fn info(ty: &HostType) -> TypeInfo {
    match ty {
        HostType::Int => TypeInfo::Int,
        HostType::Float => TypeInfo::Float,
        HostType::Bool => TypeInfo::Bool,
        HostType::Str => TypeInfo::Str,
        HostType::None => TypeInfo::None,
        HostType::Known(text) => TypeInfo::Known(text.clone()),
        HostType::DType => TypeInfo::DType,
        HostType::Tensor => TypeInfo::Tensor,
        HostType::List(t) => TypeInfo::List(t.0),
        HostType::Dict(k, v) => TypeInfo::Dict(k.0, v.0),
        HostType::Tuple(items) => TypeInfo::Tuple(items.iter().map(|t| t.0).collect()),
        HostType::Struct { name, fields } => {
            TypeInfo::Struct { name: name.clone(), fields: fields.iter().map(|(n, t)| (n.clone(), t.0)).collect() }
        }
        HostType::Function { shown, captures } => {
            TypeInfo::Function { shown: shown.clone(), captures: captures.iter().map(|t| t.0).collect() }
        }
        HostType::Fn { params, ret } => TypeInfo::Fn { params: params.iter().map(|t| t.0).collect(), ret: ret.0 },
    }
}
