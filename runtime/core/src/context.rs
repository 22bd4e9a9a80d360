//! The state of a running program: what compiled code passes to every runtime function.

use crate::fault::Fault;
use crate::host_value::{self, HostValue};
use crate::measure::{Measured, Measuring};
use crate::pending_save;
use crate::pool::Pool;
use crate::progress::{Loops, Progress};
use crate::value::{TypeId, TypeInfo, TypeTable, make_immortal, new_str, release, retain_word};
use crate::world;
use indexmap::IndexMap;
use std::io::{ErrorKind, Write};
use std::mem::offset_of;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tessera_abi::layout;

/// The code of a program that the user stopped.
pub const INTERRUPTED: u16 = 713;

/// A failure of the running program. Spans are the numbers that compiled code passes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunError {
    /// The number of the code: 706 is E0706.
    pub code: u16,
    pub message: String,
    pub span: u32,
    pub notes: Vec<String>,
    /// Other places that matter, with what is to be said there.
    pub labels: Vec<(u32, String)>,
}

impl RunError {
    pub fn new(code: u16, message: impl Into<String>, span: u32) -> RunError {
        RunError { code, message: message.into(), span, notes: vec![], labels: vec![] }
    }
}

/// Why a program ended before its last statement.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Stop {
    Error(RunError),
    /// `sys.exit`, or standard output was closed (code 0).
    Exit(i32),
}

/// Runs tensor regions.
pub trait RegionExec {
    /// Computes a region. A tensor whose buffer no one else holds dies after the call, so its
    /// memory may be used again. Returns one value a result.
    fn call(&mut self, region: u32, args: Vec<HostValue>, span: u32) -> Result<Vec<HostValue>, RunError>;

    /// The threads of the program, where there are any.
    fn pool(&self) -> Option<Arc<Pool>> {
        None
    }

    /// What was measured of a function, a line for each row: `std.profile` reads it.
    fn measured(&mut self, _: &Measured) -> Vec<String> {
        vec![]
    }
}

/// The values of the globals at one moment. Each holds a reference, so what the program changes
/// afterwards it changes in a copy.
#[must_use = "the values stay alive until they are restored or given up"]
pub struct Kept(Vec<u64>);

/// Bytes of output that are kept before they are written.
const OUTPUT_BYTES: usize = 1 << 16;
/// Calls that a run-time error names.
const CALLS_TOLD: usize = 6;

/// Standard output, gathered.
struct Output {
    sink: Box<dyn Write>,
    pending: String,
    /// Writes every line at once, and what stands there for a while.
    by_line: bool,
    written: Instant,
}

/// How long a reader waits for what is printed without a line end.
const LATE: Duration = Duration::from_millis(20);

impl Output {
    fn flush(&mut self) -> Result<(), std::io::Error> {
        let text = std::mem::take(&mut self.pending);
        self.written = Instant::now();
        self.sink.write_all(text.as_bytes())?;
        self.sink.flush()
    }
}

/// What is shown of a running program beside what it prints.
#[derive(Clone, PartialEq, Debug)]
pub enum Viewed {
    /// A figure as SVG.
    Picture(String),
    Progress(Progress),
}

/// The state of a running program. Compiled code knows the first four fields by offset.
#[repr(C)]
pub struct Context {
    status: u64,
    stack_limit: u64,
    interrupt: *const AtomicBool,
    globals: *mut u64,
    global_words: Vec<u64>,
    global_types: Vec<(Arc<str>, TypeId)>,
    interrupt_owner: Arc<AtomicBool>,
    pub types: TypeTable,
    /// The program's arguments, without the file.
    pub args: Vec<String>,
    /// The directory of the program's file.
    pub dir: String,
    stop: Option<Stop>,
    output: Output,
    regions: Option<Box<dyn RegionExec>>,
    viewer: Option<Box<dyn Fn(Viewed)>>,
    loops: Loops,
    /// Functions that are profiled, the innermost one last.
    measuring: Vec<Measuring>,
    /// Whether a bar stands on the last line of the terminal.
    bar: bool,
    /// Types of the parameters and results of each region.
    region_types: Vec<(Vec<TypeId>, Vec<TypeId>)>,
    interned: IndexMap<Arc<str>, u64>,
    /// Functions by what closures over them hold as their code.
    functions: IndexMap<usize, Arc<str>>,
}

const _: () = {
    assert!(offset_of!(Context, status) == layout::context::STATUS as usize);
    assert!(offset_of!(Context, stack_limit) == layout::context::STACK_LIMIT as usize);
    assert!(offset_of!(Context, interrupt) == layout::context::INTERRUPT as usize);
    assert!(offset_of!(Context, globals) == layout::context::GLOBALS as usize);
};

impl Context {
    /// A context that writes to `sink`; `by_line` for a terminal.
    pub fn new(sink: Box<dyn Write>, by_line: bool) -> Box<Context> {
        let interrupt_owner = Arc::new(AtomicBool::new(false));
        Box::new(Context {
            status: 0,
            stack_limit: 0,
            interrupt: Arc::as_ptr(&interrupt_owner),
            globals: std::ptr::null_mut(),
            global_words: vec![],
            global_types: vec![],
            interrupt_owner,
            types: TypeTable::default(),
            args: vec![],
            dir: ".".into(),
            stop: None,
            output: Output { sink, pending: String::new(), by_line, written: Instant::now() },
            regions: None,
            viewer: None,
            loops: Loops::default(),
            measuring: vec![],
            bar: false,
            region_types: vec![],
            interned: IndexMap::new(),
            functions: IndexMap::new(),
        })
    }

    /// How the function is called that closures over `code` call.
    pub fn name_function(&mut self, code: usize, name: &Arc<str>) {
        self.functions.insert(code, name.clone());
    }

    /// The name of the function that closures over `code` call, if it was told.
    pub fn function_at(&self, code: usize) -> Option<&str> {
        self.functions.get(&code).map(|name| &**name)
    }

    /// Who runs the tensor regions, and the types of their parameters and results (positions
    /// from [`Context::add_types`]).
    pub fn set_regions(&mut self, regions: Box<dyn RegionExec>, types: Vec<(Vec<TypeId>, Vec<TypeId>)>) {
        self.regions = Some(regions);
        self.region_types = types;
    }

    /// Who shows the figures of the program instead of their text, and how far its loops are.
    pub fn set_viewer(&mut self, viewer: Box<dyn Fn(Viewed)>) {
        self.viewer = Some(viewer);
    }

    /// The threads that work for the program; only the caller's where no one has others.
    pub fn pool(&self) -> Arc<Pool> {
        self.regions.as_ref().and_then(|r| r.pool()).unwrap_or_else(|| Arc::new(Pool::new(1)))
    }

    /// Whether someone shows pictures and progress.
    pub fn has_viewer(&self) -> bool {
        self.viewer.is_some()
    }

    /// Shows something behind what was printed before it.
    pub fn view(&mut self, viewed: Viewed, span: u32) {
        self.flush_at(span);
        if let Some(viewer) = &self.viewer {
            viewer(viewed);
        }
    }

    /// A function is profiled from here on, after so many runs.
    pub fn measure(&mut self, warmup: i64) {
        self.measuring.push(Measuring::begin(warmup));
    }

    /// A run of the function that is profiled ended.
    pub fn measured_turn(&mut self) {
        self.measuring.last_mut().into_iter().for_each(Measuring::turn);
    }

    /// The lines of what was measured; nothing more is.
    pub fn measured(&mut self) -> Vec<String> {
        let measured = self.measuring.pop().map(Measuring::end).unwrap_or_default();
        self.regions.as_mut().map(|exec| exec.measured(&measured)).unwrap_or_default()
    }

    /// What there is to show of a turn of a loop now.
    pub fn turn(&mut self, current: i64, total: i64, text: &str) -> Option<Progress> {
        self.loops.turn(current, total, text, Instant::now())
    }

    /// Writes over the last line of the terminal, behind what was printed before it. A bar that stays there makes room for what
    /// is printed next.
    pub fn draw_bar(&mut self, line: &str, stays: bool) {
        self.flush();
        let mut err = std::io::stderr();
        // A terminal that is gone needs no bar.
        let _ = write!(err, "\r{line}\x1b[K{}", if stays { "" } else { "\n" }).and_then(|()| err.flush());
        self.bar = stays;
    }

    fn clear_bar(&mut self) {
        if std::mem::take(&mut self.bar) {
            let mut err = std::io::stderr();
            let _ = err.write_all(b"\r\x1b[K").and_then(|()| err.flush());
        }
    }

    /// The flag that stops the program at the next loop or call of a tensor region; it can be
    /// set from a signal handler or another thread.
    pub fn interrupt_flag(&self) -> Arc<AtomicBool> {
        self.interrupt_owner.clone()
    }

    /// Whether the user wants the program to stop.
    pub fn is_interrupted(&self) -> bool {
        self.interrupt_owner.load(Ordering::Relaxed)
    }

    /// Lets calls use `bytes` of stack from here on; deeper recursion fails with E0709.
    pub fn use_stack(&mut self, bytes: usize) {
        let here = 0u8;
        self.stack_limit = (&raw const here as u64).saturating_sub(bytes as u64);
    }

    /// The word of a constant string, which lives as long as the context.
    pub fn intern(&mut self, text: &Arc<str>) -> u64 {
        if let Some(&word) = self.interned.get(text) {
            return word;
        }
        let word = new_str(&**text);
        // SAFETY: just made.
        unsafe { make_immortal(word) };
        self.interned.insert(text.clone(), word);
        word
    }

    /// The positions of a program's types in the table of the process. A type may only refer to
    /// types before it or after it in the same slice, and not to itself.
    pub fn add_types(&mut self, types: &[TypeInfo]) -> Vec<TypeId> {
        let mut ids = vec![None; types.len()];
        for at in 0..types.len() {
            self.add_type(types, at, &mut ids);
        }
        ids.into_iter().map(|id| id.unwrap_or(TypeTable::NONE)).collect()
    }

    fn add_type(&mut self, types: &[TypeInfo], at: usize, ids: &mut [Option<TypeId>]) -> TypeId {
        let Some(info) = types.get(at) else { return TypeTable::NONE };
        if let Some(id) = ids[at] {
            return id;
        }
        ids[at] = Some(TypeTable::NONE);
        let mut map = |t: &TypeId| self.add_type(types, *t as usize, ids);
        let info = match info {
            TypeInfo::List(e) => TypeInfo::List(map(e)),
            TypeInfo::Dict(k, v) => TypeInfo::Dict(map(k), map(v)),
            TypeInfo::Tuple(items) => TypeInfo::Tuple(items.iter().map(map).collect()),
            TypeInfo::Struct { name, fields } => TypeInfo::Struct {
                name: name.clone(),
                fields: fields.iter().map(|(n, t)| (n.clone(), map(t))).collect(),
            },
            TypeInfo::Function { shown, captures } => {
                TypeInfo::Function { shown: shown.clone(), captures: captures.iter().map(map).collect() }
            }
            TypeInfo::Fn { params, ret } => {
                TypeInfo::Fn { params: params.iter().map(&mut map).collect(), ret: map(ret) }
            }
            scalar => scalar.clone(),
        };
        let id = self.types.add(info);
        ids[at] = Some(id);
        id
    }

    /// Declares the globals of a program by position. Those that exist keep their values; under
    /// another type only values that fit it, which empty lists do whose element was unknown.
    pub fn set_globals(&mut self, globals: &[(Arc<str>, TypeId)]) {
        for (at, global) in globals.iter().enumerate() {
            if at == self.global_words.len() {
                self.global_words.push(0);
                self.global_types.push(global.clone());
            } else if self.global_types[at].1 != global.1 {
                let value = self.global_value(at as u32).filter(|v| host_value::fits(&self.types, v, global.1));
                let new = value.map_or(0, |v| host_value::write(&self.types, v, global.1));
                let (old, ty) = (std::mem::replace(&mut self.global_words[at], new), self.global_types[at].1);
                self.release(old, ty);
            }
            self.global_types[at] = global.clone();
        }
        self.globals = self.global_words.as_mut_ptr();
    }

    /// Name, type and word of a global.
    pub fn global(&self, id: u32) -> Option<(&str, TypeId, u64)> {
        let (name, ty) = self.global_types.get(id as usize)?;
        Some((name, *ty, self.global_words[id as usize]))
    }

    /// The value of a global; `None` if it was never assigned.
    pub fn global_value(&self, id: u32) -> Option<HostValue> {
        let (_, ty, word) = self.global(id)?;
        if word == 0 && self.types.counted(ty) {
            return None;
        }
        // SAFETY: globals hold live values of their types.
        Some(unsafe { host_value::read(&self.types, word, ty, false) })
    }

    /// Keeps the values of all globals, for [`Context::restore`] or [`Context::give_up`].
    pub fn keep(&self) -> Kept {
        for (&word, (_, ty)) in self.global_words.iter().zip(&self.global_types) {
            if word != 0 && self.types.counted(*ty) {
                // SAFETY: globals of counted types hold live references.
                unsafe { retain_word(word) }
            }
        }
        Kept(self.global_words.clone())
    }

    /// Drops kept values.
    pub fn give_up(&mut self, kept: Kept) {
        for (at, word) in kept.0.into_iter().enumerate() {
            self.release(word, self.global_types[at].1);
        }
    }

    /// Gives every global the value that was kept, but for those of which `stays` says, by
    /// number, old and new value, that the new one is to stay. No globals may have been declared
    /// in between.
    pub fn restore(&mut self, kept: Kept, stays: &dyn Fn(u32, &HostValue, &HostValue) -> bool) {
        for (at, old) in kept.0.into_iter().enumerate() {
            let (ty, new) = (self.global_types[at].1, self.global_words[at]);
            let counted = self.types.counted(ty);
            let both = !counted || (old != 0 && new != 0);
            let new_stays = old == new
                || both && {
                    // SAFETY: both are live values of the global's type.
                    let (a, b) = unsafe {
                        (host_value::read(&self.types, old, ty, false), host_value::read(&self.types, new, ty, false))
                    };
                    stays(at as u32, &a, &b)
                };
            if new_stays {
                self.release(old, ty);
            } else {
                self.global_words[at] = old;
                self.release(new, ty);
            }
        }
    }

    /// One owner less of a word of a type.
    pub fn release(&mut self, word: u64, ty: TypeId) {
        if self.types.counted(ty) {
            // SAFETY: words of counted types are null or owned references.
            unsafe { release(&self.types, word) }
        }
    }

    /// Whether a failure or an exit is on its way.
    pub fn is_stopped(&self) -> bool {
        self.status != 0
    }

    /// Ends the program; the first reason counts.
    pub fn stop(&mut self, stop: Stop) {
        self.clear_bar();
        // What is measured does not come to its end.
        self.measuring.clear();
        self.status = 1;
        self.stop.get_or_insert(stop);
    }

    /// Ends the program with a failure at a span.
    pub fn fail(&mut self, fault: Fault, span: u32) {
        let Fault { code, message, notes, span: from } = fault;
        let span = from.unwrap_or(span);
        self.stop(Stop::Error(RunError { code, message, span, notes, labels: vec![] }));
    }

    /// Adds the place of a call to the error that ends the program; of many only the innermost ones.
    pub fn called_from(&mut self, span: u32) {
        if let Some(Stop::Error(e)) = &mut self.stop
            && e.labels.len() < CALLS_TOLD
            && e.labels.iter().all(|(s, _)| *s != span)
        {
            e.labels.push((span, "called here".into()));
        }
    }

    /// Why the program ended early. Clears the state so that the context can run on (REPL).
    pub fn take_stop(&mut self) -> Option<Stop> {
        self.status = 0;
        self.interrupt_owner.store(false, Ordering::Relaxed);
        self.stop.take()
    }

    /// Waits for a checkpoint that is still being written, unless the user wants the program to stop: then the one before
    /// it stays.
    pub fn finish_saving(&mut self) {
        match &self.stop {
            Some(Stop::Error(e)) if e.code == INTERRUPTED => {}
            Some(Stop::Error(_)) => pending_save::leave(),
            _ => {
                let _ = pending_save::finish().map_err(|fault| self.fail(fault, 0));
            }
        }
    }

    /// Appends to the output.
    pub fn print(&mut self, text: &str, span: u32) {
        // What stands in for a value that could not be had is not shown.
        if let Some(fault) = world::over() {
            return self.fail(fault, span);
        }
        self.output.pending.push_str(text);
        let line = self.output.by_line && (text.ends_with('\n') || self.output.written.elapsed() > LATE);
        if line || self.output.pending.len() >= OUTPUT_BYTES {
            self.flush_at(span);
        }
    }

    /// Writes what was printed so far. To be called at the end of a run.
    pub fn flush(&mut self) {
        self.flush_at(0);
    }

    fn flush_at(&mut self, span: u32) {
        if !self.output.pending.is_empty() {
            self.clear_bar();
        }
        match self.output.flush() {
            Ok(()) => {}
            Err(e) if e.kind() == ErrorKind::BrokenPipe => self.stop(Stop::Exit(0)),
            Err(e) => self.fail(Fault::new(706, format!("standard output cannot be written: {e}")), span),
        }
    }

    /// Runs a region through the executor. The arguments are given up, except that the caller
    /// still releases them.
    ///
    /// # Safety
    /// `args` are live words of the types of the region's parameters.
    pub unsafe fn call_region(&mut self, region: u32, args: &[u64], results: &mut [u64], span: u32) {
        if self.is_interrupted() {
            return self.fail(interrupted(), span);
        }
        let known = self.regions.is_some().then(|| self.region_types.get(region as usize)).flatten();
        let (Some((params, _)), Some(mut exec)) = (known, self.regions.take()) else {
            return self.fail(Fault::new(999, "tensor code was called before there was anything to run it"), span);
        };
        // SAFETY: the caller's promise.
        let passed =
            args.iter().zip(params).map(|(&w, &t)| unsafe { host_value::read(&self.types, w, t, true) }).collect();
        world::at(span);
        let outcome = exec.call(region, passed, span);
        self.regions = Some(exec);
        match outcome {
            Ok(values) => {
                let types = &self.region_types[region as usize].1;
                for ((slot, value), &ty) in results.iter_mut().zip(values).zip(types) {
                    *slot = host_value::write(&self.types, value, ty);
                }
            }
            Err(error) => self.stop(Stop::Error(error)),
        }
    }
}

/// The failure of an interrupted program.
pub fn interrupted() -> Fault {
    Fault::new(INTERRUPTED, "interrupted")
}

impl Drop for Context {
    fn drop(&mut self) {
        self.clear_bar();
        let _ = self.output.flush();
        for at in 0..self.global_words.len() {
            let (word, ty) = (std::mem::take(&mut self.global_words[at]), self.global_types[at].1);
            self.release(word, ty);
        }
        for (_, word) in std::mem::take(&mut self.interned) {
            // SAFETY: constants are strings that `Box` allocated, and no value is left.
            drop(unsafe { Box::from_raw(word as *mut crate::value::StrObj) });
        }
    }
}
