//! Running a plan: memory for its results, its arena, its steps in order.

use crate::buffer::Buffer;
use crate::counters;
use crate::device::{Address, Device};
use crate::fault::Fault;
use crate::mesh::{self, Unfinished};
use crate::profile::{self, Holder};
use crate::storage::Storage;
use crate::tensor::{OutOfMemory, Tensor};
use std::sync::Arc;
use tessera_abi::plan::{
    Access, BufRef, Copied, Given, HostOperand, Loop, Output, Plan, Rows, ScalarRef, Step, StepOrigin, Stop, TurnInput,
    TurnOutput,
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
    /// Somebody asked the program to end.
    Interrupted,
    /// A step refused its data (an index out of range, for instance).
    Step(Stop),
}

impl From<OutOfMemory> for PlanError {
    fn from(e: OutOfMemory) -> PlanError {
        Fault::from(e).into()
    }
}

/// What a device says.
impl From<Fault> for PlanError {
    fn from(fault: Fault) -> PlanError {
        PlanError::Step(Stop { code: fault.code, message: fault.message, notes: fault.notes, origin: None })
    }
}

/// Memory that lives from call to call: the arena.
#[derive(Default)]
pub struct Workspace {
    arena: Option<Storage>,
}

impl Workspace {
    fn arena(&mut self, device: &dyn Device, bytes: u64) -> Result<Address, Fault> {
        match &mut self.arena {
            // What the call before left there is nothing to this one.
            Some(arena) if arena.len() as u64 >= bytes => arena.spoil(device)?,
            arena => {
                *arena = None;
                *arena = Some(Storage::new(device, bytes)?);
            }
        }
        self.arena.as_ref().map_or(Ok(std::ptr::null_mut()), |arena| arena.on(device))
    }

    /// Arenas above this many bytes are given back after the call.
    const KEEP_BYTES: usize = 256 << 20;

    fn trim(&mut self) {
        if self.arena.as_ref().is_some_and(|a| a.len() > Self::KEEP_BYTES) {
            self.arena = None;
        }
    }
}

/// Element type by its position in [`DType::ALL`].
pub fn dtype_at(position: u8) -> DType {
    match DType::ALL.get(usize::from(position)) {
        Some(dtype) => *dtype,
        None => bug!("a plan has the dtype {position}, of {}", DType::ALL.len()),
    }
}

/// Runs the plan on a device, in whose memory the results are. `args` are given up: an input that nobody else holds may be
/// overwritten by an output that is planned in its place.
pub fn execute(
    plan: &Plan,
    mut args: Vec<Argument>,
    device: &dyn Device,
    work: &mut Workspace,
) -> Result<Vec<Tensor>, PlanError> {
    let outputs = allocate(plan, &mut args, device)?;
    let arena = if plan.arena_bytes == 0 { std::ptr::null_mut() } else { work.arena(device, plan.arena_bytes)? };
    let value = |a: &Argument| match a {
        Argument::Tensor(t) => t.on(device).map(Value::Memory),
        Argument::Scalar(w) => Ok(Value::Word(*w)),
    };
    let inputs = args.iter().map(value).collect::<Result<_, _>>()?;
    let consts = constants(plan, device)?;
    let place = |(t, out): (&Tensor, &Output)| if out.zeros { Ok(std::ptr::null_mut()) } else { t.on(device) };
    let places = outputs.iter().zip(&plan.outputs).map(place).collect::<Result<_, _>>()?;
    let memory = Memory { plan, inputs, outputs: places, consts, arena };
    // Where the plan stops early, nobody reads its memory any more once that is dropped.
    let unfinished = Unfinished;
    run(&memory, device)?;
    device.settle().map_err(PlanError::Step)?;
    std::mem::forget(unfinished);
    work.trim();
    Ok(outputs)
}

/// Where the constants of a plan are on a device.
fn constants(plan: &Plan, device: &dyn Device) -> Result<Vec<Address>, Fault> {
    if device.shares_host_memory() {
        return Ok(plan.consts.iter().map(|c| c.as_ptr().cast_mut()).collect());
    }
    let there = plan.resident.get_or_init(|| {
        let one = |c: &Arc<[u8]>| Tensor::from_bytes(DType::U8, &[c.len() as u64], c);
        Arc::new(plan.consts.iter().map(one).collect::<Result<Vec<_>, _>>())
    });
    match there.downcast_ref::<Result<Vec<Tensor>, OutOfMemory>>() {
        Some(Ok(all)) => all.iter().map(|t| t.on(device)).collect(),
        Some(Err(e)) => Err(e.clone().into()),
        None => bug!("the constants of `{}` are no tensors", plan.name),
    }
}

/// An input where the plan runs.
#[derive(Clone, Copy)]
enum Value {
    Memory(Address),
    Word(u64),
}

/// What a plan works on.
struct Memory<'a> {
    plan: &'a Plan,
    inputs: Vec<Value>,
    outputs: Vec<Address>,
    consts: Vec<Address>,
    arena: Address,
}

impl Memory<'_> {
    fn address(&self, r: BufRef) -> Address {
        match r {
            BufRef::Input(i) => match self.inputs.get(i as usize) {
                Some(Value::Memory(p)) => *p,
                _ => bug!("a plan takes argument {i} as a tensor, which it is not"),
            },
            BufRef::Output(i) => self.outputs[i as usize],
            BufRef::Arena(offset) => self.arena.wrapping_add(offset as usize),
            BufRef::Const(i) => self.consts[i as usize],
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
    fn row(&self, rows: Rows, turn: u64) -> Address {
        let behind = (rows.first as i64).wrapping_add((turn as i64).wrapping_mul(rows.step));
        self.address(rows.of).wrapping_offset(behind as isize)
    }
}

/// Runs the steps in order.
fn run(memory: &Memory, device: &dyn Device) -> Result<(), PlanError> {
    for (at, step) in memory.plan.steps.iter().enumerate() {
        if device.is_interrupted() {
            return Err(PlanError::Interrupted);
        }
        mesh::move_on();
        let started = profile::before();
        let of_kernel = |step: &Step| match step {
            Step::Kernel { kernel, launch, .. } => device.taken(kernel, launch),
            _ => None,
        };
        let after = |name: &str, origin| {
            if started.is_some() {
                // What was started belongs to this step.
                device.sync().map_err(PlanError::Step)?;
            }
            profile::after(started, name, origin, memory.plan.about.get(at), || of_kernel(step));
            Ok::<(), PlanError>(())
        };
        match step {
            Step::Kernel { kernel, bufs, scalars, launch, origin } => {
                let bufs: Vec<Address> = bufs.iter().map(|&b| memory.address(b)).collect();
                let words: Vec<u64> = scalars.iter().map(|&s| memory.word(s)).collect();
                // Devices of a mesh run at the same time: what is counted then is nobody's.
                let counted = counters::read().filter(|_| !mesh::is_device());
                // SAFETY: the plan gives every buffer the size its kernel was compiled for.
                unsafe { device.launch(kernel, launch, &bufs, &words, *origin) }.map_err(PlanError::Step)?;
                if counted.is_some() {
                    profile::counted(counters::since(counted));
                }
                after(&kernel.name, *origin)?;
            }
            Step::Host { name, run, operands, scalars, origin } => {
                let words: Vec<u64> = scalars.iter().map(|&s| memory.word(s)).collect();
                on_host(memory, device, operands, |addresses| run(addresses, &words)).map_err(|e| match e {
                    _ if device.is_interrupted() => PlanError::Interrupted,
                    PlanError::Step(stop) => PlanError::Step(Stop { origin: stop.origin.or(Some(*origin)), ..stop }),
                    e => e,
                })?;
                after(name, *origin)?;
            }
            Step::Loop(l) => {
                turns(l, memory, device)?;
                after(&l.name, l.origin)?;
            }
            Step::Copy { dst, src, bytes } => {
                let (dst, src) = (memory.address(*dst), memory.address(*src));
                // SAFETY: both hold `bytes`, and the plan keeps what is in use apart.
                unsafe { device.copy(src, dst, *bytes) }?;
                after("copy", StepOrigin::default())?;
            }
        }
        profile::holds(|| held(memory.plan, at));
    }
    Ok(())
}

/// What a plan holds at a step.
fn held(plan: &Plan, step: usize) -> Vec<(Holder, u64)> {
    let sum = |types: &mut dyn Iterator<Item = u64>| types.fold(0, u64::saturating_add);
    let inputs = sum(&mut plan.inputs.iter().map(|t| t.bytes));
    let new = plan.outputs.iter().filter(|o| o.same_as_input.is_none() && o.in_place_of.is_none() && !o.zeros);
    let results = sum(&mut new.map(|o| o.ty.bytes));
    let constants = sum(&mut plan.consts.iter().map(|c| c.len() as u64));
    let mut out = vec![(Holder::Inputs, inputs), (Holder::Results, results), (Holder::Constants, constants)];
    let here = plan.held.iter().filter(|h| (h.from as usize..=h.to as usize).contains(&step));
    out.extend(here.map(|h| (Holder::Value(h.origin), h.bytes)));
    out.retain(|(_, bytes)| *bytes > 0);
    out
}

/// Runs a step of the host on the operands' addresses there: copies of them, where the device has memory of its own.
fn on_host(
    memory: &Memory,
    device: &dyn Device,
    operands: &[HostOperand],
    run: impl FnOnce(&[*mut u8]) -> Result<(), Stop>,
) -> Result<(), PlanError> {
    let places: Vec<Address> = operands.iter().map(|o| memory.address(o.buf)).collect();
    if device.shares_host_memory() {
        return run(&places).map_err(PlanError::Step);
    }
    device.settle().map_err(PlanError::Step)?;
    let mut staged = vec![];
    for (o, &place) in operands.iter().zip(&places) {
        let mut buffer = Buffer::new(o.bytes, false)?;
        if o.access == Access::Read {
            // SAFETY: the plan gives every operand the bytes that it states.
            unsafe { device.download(place, buffer.bytes_mut()) }?;
        }
        staged.push(buffer);
    }
    let addresses: Vec<*mut u8> = staged.iter().map(Buffer::as_ptr).collect();
    run(&addresses).map_err(PlanError::Step)?;
    for ((o, &place), buffer) in operands.iter().zip(&places).zip(&staged) {
        if o.access == Access::Write {
            // SAFETY: as above, and the outputs of a step are nobody else's.
            unsafe { device.upload(buffer.bytes(), place) }?;
        }
    }
    Ok(())
}

/// Runs the turns of a loop on the memory of the plan around it.
fn turns(l: &Loop, around: &Memory, device: &dyn Device) -> Result<(), PlanError> {
    let word = |i: &TurnInput| match *i {
        TurnInput::Given(Given::Word(s)) | TurnInput::Carry { first: Given::Word(s), .. } => Some(around.word(s)),
        _ => None,
    };
    // Little-endian, so that a number of fewer bytes begins where its word does.
    let words: Vec<u8> = l.inputs.iter().flat_map(|i| word(i).unwrap_or_default().to_le_bytes()).collect();
    let words = Tensor::from_bytes(DType::U8, &[words.len() as u64], &words)?;
    let first_word = match l.inputs.iter().any(|i| word(i).is_some()) {
        true => words.on(device)?,
        false => std::ptr::null_mut(),
    };
    let mut turn = Memory {
        plan: &l.body,
        inputs: vec![Value::Word(0); l.inputs.len()],
        outputs: vec![std::ptr::null_mut(); l.outputs.len()],
        consts: constants(&l.body, device)?,
        arena: around.arena.wrapping_add(l.arena as usize),
    };
    // The input of the body, `left` being where the turn before left its outputs.
    let input = |i: usize, t: u64, left: &[Address]| {
        let (given, t) = match l.inputs[i] {
            TurnInput::Carry { output, .. } if t > 0 => return left[output as usize],
            TurnInput::Carry { first, .. } => (first, 0),
            TurnInput::Given(given) => (given, t),
        };
        match given {
            Given::Memory(rows) => around.row(rows, t),
            Given::Word(_) => first_word.wrapping_add(i * size_of::<u64>()),
        }
    };
    let put = |c: &Copied, t: u64, left: &[Address]| {
        let (from, to) = (input(c.carry as usize, t, left), around.row(c.to, 0));
        // Where a loop ends by itself, what it leaves may be there.
        if from == to {
            return Ok(());
        }
        // SAFETY: the plan gives what is copied its bytes at both ends.
        unsafe { device.copy(from, to, c.bytes) }
    };
    // What says before a turn whether there is one.
    let goes_on = |t: u64, left: &[Address]| -> Result<bool, PlanError> {
        if !l.until {
            return Ok(true);
        }
        let (flag, mut there) = (input(0, t, left), [1]);
        // SAFETY: a bool is one byte, where the turn before left it or where it was given.
        match device.shares_host_memory() {
            true => there[0] = unsafe { *flag },
            false => {
                device.settle().map_err(PlanError::Step)?;
                unsafe { device.download(flag, &mut there) }?;
            }
        }
        Ok(there != [0])
    };
    if l.trips > 0 {
        l.first.iter().try_for_each(|c| put(c, 0, &turn.outputs))?;
    }
    let mut t = 0;
    while t < l.trips && goes_on(t, &turn.outputs)? {
        // A body may have no steps that look.
        if device.is_interrupted() {
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
                TurnOutput::Alternate(both) => match l.until {
                    true => around.address(both[(t % 2) as usize]),
                    false => around.address(both[((l.trips - 1 - t) % 2) as usize]),
                },
                TurnOutput::Whole(buf) => around.address(buf),
                TurnOutput::Input(i) => match turn.inputs[i as usize] {
                    Value::Memory(p) => p,
                    Value::Word(_) => bug!("a loop takes input {i} as a number"),
                },
            };
        }
        // SAFETY: the arena around has room for that of the body from there on, and nobody reads what a turn leaves in it.
        unsafe { device.spoil(turn.arena, l.body.arena_bytes) };
        run(&turn, device)?;
        t += 1;
    }
    l.last.iter().try_for_each(|c| put(c, t, &turn.outputs))?;
    Ok(())
}

/// Memory for the outputs: new, or that of an argument.
fn allocate(plan: &Plan, args: &mut [Argument], device: &dyn Device) -> Result<Vec<Tensor>, Fault> {
    let mut outputs = Vec::with_capacity(plan.outputs.len());
    for out in &plan.outputs {
        let dtype = dtype_at(out.ty.dtype);
        if let Some(Argument::Tensor(t)) = out.same_as_input.and_then(|i| args.get(i as usize)) {
            outputs.push(t.clone());
            continue;
        }
        if out.zeros {
            let zeros = Storage::zeros(out.ty.bytes).map_err(Fault::from)?;
            outputs.push(Tensor::of(dtype, &out.ty.shape, zeros));
            continue;
        }
        let free = match out.in_place_of.and_then(|i| args.get_mut(i as usize)) {
            Some(Argument::Tensor(t)) if t.byte_len() as u64 == out.ty.bytes => match Arc::get_mut(&mut t.storage) {
                Some(storage) => {
                    storage.written_on(device)?;
                    Some(t.clone())
                }
                None => None,
            },
            _ => None,
        };
        outputs.push(match free {
            Some(t) => Tensor { dtype, shape: out.ty.shape.clone(), ..t },
            None => Tensor::new_on(device, dtype, &out.ty.shape)?,
        });
    }
    Ok(outputs)
}
