//! Running a plan: memory for its results, its arena, its steps in order.

use crate::mesh::{self, Unfinished};
use crate::native;
use crate::pool::Pool;
use crate::profile;
use crate::tensor::{Buffer, OutOfMemory, Tensor, poison};
use std::cell::RefCell;
use std::sync::{Arc, Mutex};
use tessera_abi::plan::{
    BufRef, Copied, Given, Loop, Plan, Rows, ScalarRef, Step, StepOrigin, Stop, TurnInput, TurnOutput,
};
use tessera_base::{DType, bug};

/// What a caller passes for one input.
#[derive(Clone)]
pub enum Argument {
    Tensor(Tensor),
    /// f64 bits, i64 or bool.
    Scalar(u64),
}

/// Why a plan stopped.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PlanError {
    Memory(OutOfMemory),
    /// Somebody asked the program to end.
    Interrupted,
    /// A step refused its data (an index out of range, for instance).
    Step(Stop),
}

impl From<OutOfMemory> for PlanError {
    fn from(e: OutOfMemory) -> PlanError {
        PlanError::Memory(e)
    }
}

/// Memory that lives from call to call: the arena.
#[derive(Default)]
pub struct Workspace {
    arena: Option<Buffer>,
}

impl Workspace {
    fn arena(&mut self, bytes: u64) -> Result<*mut u8, OutOfMemory> {
        let enough = self.arena.as_ref().is_some_and(|a| a.len() as u64 >= bytes);
        if !enough {
            self.arena = None;
            self.arena = Some(Buffer::new(bytes, false)?);
        } else if let Some(arena) = &mut self.arena {
            // What the call before left there is nothing to this one.
            poison::spoil(arena.bytes_mut());
        }
        Ok(self.arena.as_ref().map_or(std::ptr::null_mut(), Buffer::as_ptr))
    }

    /// Arenas above this many bytes are given back after the call.
    const KEEP_BYTES: usize = 256 << 20;

    fn trim(&mut self) {
        if self.arena.as_ref().is_some_and(|a| a.len() > Self::KEEP_BYTES) {
            self.arena = None;
        }
    }
}

thread_local! {
    /// Scratch of kernels on this thread, grown on demand.
    static SCRATCH: RefCell<Option<Buffer>> = const { RefCell::new(None) };
}

/// Base addresses that may cross threads: the plan keeps writers of one step disjoint.
struct Addresses(Vec<*mut u8>);
// SAFETY: kernels of one step write disjoint ranges (grid points are independent).
unsafe impl Sync for Addresses {}

/// Element type by its position in [`DType::ALL`].
pub fn dtype_at(position: u8) -> DType {
    match DType::ALL.get(usize::from(position)) {
        Some(dtype) => *dtype,
        None => bug!("a plan has the dtype {position}, of {}", DType::ALL.len()),
    }
}

/// Runs the plan. `args` are given up: an input that nobody else holds may be overwritten by
/// an output that is planned in its place.
pub fn execute(plan: &Plan, args: Vec<Argument>, pool: &Pool, work: &mut Workspace) -> Result<Vec<Tensor>, PlanError> {
    let outputs = allocate(plan, &args)?;
    let arena = if plan.arena_bytes == 0 { std::ptr::null_mut() } else { work.arena(plan.arena_bytes)? };
    let value = |a: &Argument| match a {
        Argument::Tensor(t) => Value::Memory(t.as_ptr()),
        Argument::Scalar(w) => Value::Word(*w),
    };
    let inputs = args.iter().map(value).collect();
    let memory = Memory { plan, inputs, outputs: outputs.iter().map(Tensor::as_ptr).collect(), arena };
    // Where the plan stops early, nobody reads its memory any more once that is dropped.
    let unfinished = Unfinished;
    run(&memory, pool)?;
    std::mem::forget(unfinished);
    work.trim();
    Ok(outputs)
}

/// An input where the plan runs.
#[derive(Clone, Copy)]
enum Value {
    Memory(*mut u8),
    Word(u64),
}

/// What a plan works on.
struct Memory<'a> {
    plan: &'a Plan,
    inputs: Vec<Value>,
    outputs: Vec<*mut u8>,
    arena: *mut u8,
}

impl Memory<'_> {
    fn address(&self, r: BufRef) -> *mut u8 {
        match r {
            BufRef::Input(i) => match self.inputs.get(i as usize) {
                Some(Value::Memory(p)) => *p,
                _ => bug!("a plan takes argument {i} as a tensor, which it is not"),
            },
            BufRef::Output(i) => self.outputs[i as usize],
            BufRef::Arena(offset) => self.arena.wrapping_add(offset as usize),
            BufRef::Const(i) => self.plan.consts[i as usize].as_ptr().cast_mut(),
        }
    }

    fn word(&self, r: ScalarRef) -> u64 {
        match r {
            ScalarRef::Word(w) => w,
            ScalarRef::Input(i) => match self.inputs.get(i as usize) {
                Some(Value::Word(w)) => *w,
                _ => bug!("a plan takes argument {i} as a number, which it is not"),
            },
        }
    }

    /// The row of a turn.
    fn row(&self, rows: Rows, turn: u64) -> *mut u8 {
        let behind = (rows.first as i64).wrapping_add((turn as i64).wrapping_mul(rows.step));
        self.address(rows.of).wrapping_offset(behind as isize)
    }
}

/// Runs the steps in order.
fn run(memory: &Memory, pool: &Pool) -> Result<(), PlanError> {
    for step in &memory.plan.steps {
        if pool.is_interrupted() {
            return Err(PlanError::Interrupted);
        }
        mesh::move_on();
        let started = profile::before();
        match step {
            Step::Kernel { kernel, bufs, scalars, grid, grain, scratch_bytes, checks, origin } => {
                let addresses = Addresses(bufs.iter().map(|&b| memory.address(b)).collect());
                let words: Vec<u64> = scalars.iter().map(|&s| memory.word(s)).collect();
                let addresses = &addresses;
                // The first grid point that fails is the one that is told about.
                let failed = Mutex::new((u64::MAX, None));
                let bytes = if checks.is_empty() { *scratch_bytes } else { (*scratch_bytes).max(8) };
                let code = pool.run(*grid, *grain, &|lo, hi| {
                    with_scratch(bytes, |scratch| {
                        // SAFETY: the plan gives every buffer the size its kernel was compiled for.
                        let code = unsafe { (kernel.entry)(addresses.0.as_ptr(), words.as_ptr(), lo, hi, scratch) };
                        if let Some(bounds) =
                            code.checked_sub(1).and_then(|i| usize::try_from(i).ok()).and_then(|i| checks.get(i))
                        {
                            // SAFETY: kernels with checks have a word of scratch, which holds the position.
                            let position = unsafe { scratch.cast::<i64>().read() };
                            let mut failed = failed.lock().unwrap_or_else(|e| e.into_inner());
                            if lo < failed.0 {
                                *failed = (lo, Some(bounds.message(position)));
                            }
                        }
                        code
                    })
                });
                if code != 0 {
                    let message = match failed.into_inner().unwrap_or_else(|e| e.into_inner()).1 {
                        Some(message) => message,
                        None => format!("no memory for the scratch of `{}` ({scratch_bytes} bytes)", kernel.name),
                    };
                    return Err(PlanError::Step(Stop { origin: Some(*origin), ..message.into() }));
                }
                profile::after(started, &kernel.name, *origin);
            }
            Step::Native { name, run, bufs, scalars, origin } => {
                let addresses: Vec<*mut u8> = bufs.iter().map(|&b| memory.address(b)).collect();
                let words: Vec<u64> = scalars.iter().map(|&s| memory.word(s)).collect();
                run(&addresses, &words).map_err(|stop| match pool.is_interrupted() {
                    true => PlanError::Interrupted,
                    false => PlanError::Step(Stop { origin: stop.origin.or(Some(*origin)), ..stop }),
                })?;
                profile::after(started, name, *origin);
            }
            Step::Loop(l) => {
                turns(l, memory, pool)?;
                profile::after(started, &l.name, l.origin);
            }
            Step::Copy { dst, src, bytes } => {
                let (dst, src) = (memory.address(*dst), memory.address(*src));
                if dst != src {
                    // SAFETY: both hold `bytes`, and the plan keeps what is in use apart.
                    unsafe { native::copy(pool, src, dst, *bytes as usize) }
                }
                profile::after(started, "copy", StepOrigin::default());
            }
        }
    }
    Ok(())
}

/// Copies bytes that are not there already.
///
/// # Safety
/// `bytes` are readable at `src` and writable at `dst`.
unsafe fn copy(dst: *mut u8, src: *const u8, bytes: u64) {
    if dst.cast_const() != src {
        // SAFETY: the caller's promise; `copy` allows overlap.
        unsafe { std::ptr::copy(src, dst, bytes as usize) }
    }
}

/// Runs the turns of a loop on the memory of the plan around it.
fn turns(l: &Loop, around: &Memory, pool: &Pool) -> Result<(), PlanError> {
    let word = |i: &TurnInput| match *i {
        TurnInput::Given(Given::Word(s)) | TurnInput::Carry { first: Given::Word(s), .. } => around.word(s),
        _ => 0,
    };
    // Little-endian, so that a number of fewer bytes begins where its word does.
    let words: Vec<[u8; 8]> = l.inputs.iter().map(|i| word(i).to_le_bytes()).collect();
    let mut turn = Memory {
        plan: &l.body,
        inputs: vec![Value::Word(0); l.inputs.len()],
        outputs: vec![std::ptr::null_mut(); l.outputs.len()],
        arena: around.arena.wrapping_add(l.arena as usize),
    };
    // The input of the body, `left` being where the turn before left its outputs.
    let input = |i: usize, t: u64, left: &[*mut u8]| {
        let (given, t) = match l.inputs[i] {
            TurnInput::Carry { output, .. } if t > 0 => return left[output as usize],
            TurnInput::Carry { first, .. } => (first, 0),
            TurnInput::Given(given) => (given, t),
        };
        match given {
            Given::Memory(rows) => around.row(rows, t),
            Given::Word(_) => words[i].as_ptr().cast_mut(),
        }
    };
    let put = |c: &Copied, t: u64, left: &[*mut u8]| {
        // SAFETY: the plan gives what is copied its bytes at both ends.
        unsafe { copy(around.row(c.to, 0), input(c.carry as usize, t, left), c.bytes) }
    };
    if l.trips > 0 {
        l.first.iter().for_each(|c| put(c, 0, &turn.outputs));
    }
    for t in 0..l.trips {
        // A body may have no steps that look.
        if pool.is_interrupted() {
            return Err(PlanError::Interrupted);
        }
        for i in 0..turn.inputs.len() {
            turn.inputs[i] = Value::Memory(input(i, t, &turn.outputs));
        }
        let ends = t + 1 == l.trips;
        for (i, &output) in l.outputs.iter().enumerate() {
            turn.outputs[i] = match output {
                TurnOutput::Rows { last: Some(last), .. } if ends => around.address(last),
                TurnOutput::Rows { rows, .. } => around.row(rows, t),
                TurnOutput::Alternate(both) => around.address(both[((l.trips - 1 - t) % 2) as usize]),
                TurnOutput::Whole(buf) => around.address(buf),
                TurnOutput::Input(i) => match turn.inputs[i as usize] {
                    Value::Memory(p) => p,
                    Value::Word(_) => bug!("a loop takes input {i} as a number"),
                },
            };
        }
        // SAFETY: the arena around has room for that of the body from there on, and nobody reads what a turn leaves in it.
        poison::spoil(unsafe { bytes_mut(turn.arena, l.body.arena_bytes) });
        run(&turn, pool)?;
    }
    l.last.iter().for_each(|c| put(c, l.trips, &turn.outputs));
    Ok(())
}

/// # Safety
/// `n` bytes are writable at `p` unless `n` is 0, and nothing else refers to them.
unsafe fn bytes_mut<'a>(p: *mut u8, n: u64) -> &'a mut [u8] {
    if n == 0 {
        return &mut [];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts_mut(p, n as usize) }
}

fn allocate(plan: &Plan, args: &[Argument]) -> Result<Vec<Tensor>, PlanError> {
    let mut outputs = Vec::with_capacity(plan.outputs.len());
    for out in &plan.outputs {
        let dtype = dtype_at(out.ty.dtype);
        if let Some(Argument::Tensor(t)) = out.same_as_input.and_then(|i| args.get(i as usize)) {
            outputs.push(t.clone());
            continue;
        }
        let free = out.in_place_of.and_then(|i| args.get(i as usize)).and_then(|a| match a {
            Argument::Tensor(t) if t.byte_len() as u64 == out.ty.bytes && Arc::strong_count(&t.buffer) == 1 => {
                Some(t.clone())
            }
            _ => None,
        });
        outputs.push(match free {
            Some(t) => Tensor { dtype, shape: out.ty.shape.clone(), ..t },
            None => Tensor::new(dtype, &out.ty.shape, false)?,
        });
    }
    Ok(outputs)
}

fn with_scratch(bytes: u64, f: impl FnOnce(*mut u8) -> i64) -> i64 {
    if bytes == 0 {
        return f(std::ptr::null_mut());
    }
    SCRATCH.with_borrow_mut(|scratch| {
        if scratch.as_ref().is_none_or(|s| (s.len() as u64) < bytes) {
            *scratch = None;
            match Buffer::new(bytes, false) {
                Ok(b) => *scratch = Some(b),
                Err(_) => return i64::MIN,
            }
        } else if let Some(scratch) = scratch {
            poison::spoil(scratch.bytes_mut());
        }
        scratch.as_ref().map_or(i64::MIN, |s| f(s.as_ptr()))
    })
}
