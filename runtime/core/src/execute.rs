//! Running a plan: memory for its results, its arena, its steps in order.

use crate::mesh::{self, Unfinished};
use crate::native;
use crate::pool::Pool;
use crate::profile;
use crate::tensor::{Buffer, OutOfMemory, Tensor, poison};
use std::cell::RefCell;
use std::sync::{Arc, Mutex};
use tessera_abi::plan::{BufRef, Plan, ScalarRef, Step, StepOrigin, Stop};
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
    let address = |r: BufRef| -> *mut u8 {
        match r {
            BufRef::Input(i) => match args.get(i as usize) {
                Some(Argument::Tensor(t)) => t.as_ptr(),
                _ => bug!("a plan takes argument {i} as a tensor, which it is not"),
            },
            BufRef::Output(i) => outputs[i as usize].as_ptr(),
            BufRef::Arena(offset) => arena.wrapping_add(offset as usize),
            BufRef::Const(i) => plan.consts[i as usize].as_ptr().cast_mut(),
        }
    };
    let word = |r: ScalarRef| match r {
        ScalarRef::Word(w) => w,
        ScalarRef::Input(i) => match args.get(i as usize) {
            Some(Argument::Scalar(w)) => *w,
            _ => bug!("a plan takes argument {i} as a number, which it is not"),
        },
    };
    // Where the plan stops early, nobody reads its memory any more once that is dropped.
    let unfinished = Unfinished;
    for step in &plan.steps {
        if pool.is_interrupted() {
            return Err(PlanError::Interrupted);
        }
        mesh::move_on();
        let started = profile::before();
        match step {
            Step::Kernel { kernel, bufs, scalars, grid, grain, scratch_bytes, checks, origin } => {
                let addresses = Addresses(bufs.iter().map(|&b| address(b)).collect());
                let words: Vec<u64> = scalars.iter().map(|&s| word(s)).collect();
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
                let addresses: Vec<*mut u8> = bufs.iter().map(|&b| address(b)).collect();
                let words: Vec<u64> = scalars.iter().map(|&s| word(s)).collect();
                run(&addresses, &words).map_err(|stop| match pool.is_interrupted() {
                    true => PlanError::Interrupted,
                    false => PlanError::Step(Stop { origin: stop.origin.or(Some(*origin)), ..stop }),
                })?;
                profile::after(started, name, *origin);
            }
            Step::Copy { dst, src, bytes } => {
                let (dst, src) = (address(*dst), address(*src));
                if dst != src {
                    // SAFETY: both hold `bytes`, and the plan keeps what is in use apart.
                    unsafe { native::copy(pool, src, dst, *bytes as usize) }
                }
                profile::after(started, "copy", StepOrigin::default());
            }
        }
    }
    std::mem::forget(unfinished);
    work.trim();
    Ok(outputs)
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
