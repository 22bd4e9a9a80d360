//! Kernels and plans: what graph code compiles to and what the runtime executes.

use std::any::Any;
use std::sync::{Arc, OnceLock};

/// A compiled kernel. It runs the grid points `lo..hi`; points are independent of one another.
///
/// `bufs`: one base address per buffer operand, each aligned to 64 bytes or as the tensor is.
/// `scalars`: one word per scalar operand (f64 bits, i64 or bool).
/// `scratch`: `scratch_bytes` of memory private to this call, aligned to 64 bytes.
/// Returns 0, or the number of the check (from 1 on) that a position breaks, which then is the
/// first word of `scratch`.
pub type KernelFn =
    unsafe extern "C" fn(bufs: *const *mut u8, scalars: *const u64, lo: u64, hi: u64, scratch: *mut u8) -> i64;

/// A kernel that a device can launch.
#[derive(Clone)]
pub struct Kernel {
    pub name: Arc<str>,
    pub code: Code,
}

/// What a kernel is to its device.
#[derive(Clone)]
pub enum Code {
    /// A function of this process, for processors that share its memory.
    Host {
        entry: KernelFn,
        /// Keeps the code mapped.
        owner: Arc<dyn Any + Send + Sync>,
    },
    /// What the device made of it when it was loaded: nobody else looks inside.
    Loaded(Arc<dyn Any + Send + Sync>),
}

/// How often and with what a kernel is launched.
#[derive(Clone, Debug)]
pub struct Launch {
    /// Points of the grid.
    pub grid: u64,
    /// Least points that are worth a thread's wake-up; `grid <= grain` runs on the caller.
    pub grain: u64,
    /// Private to a range of points, aligned to 64 bytes.
    pub scratch_bytes: u64,
    /// What positions that come from data must keep to; a failure code names one.
    pub checks: Arc<[Bounds]>,
}

/// Where a buffer operand of a step lives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BufRef {
    /// Tensor input by position among the inputs.
    Input(u32),
    Output(u32),
    /// Bytes from the start of the arena.
    Arena(u64),
    Const(u32),
}

/// Where a scalar operand of a step comes from.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum ScalarRef {
    /// Input by position among all inputs.
    Input(u32),
    Word(u64),
}

/// What a position that comes from data must keep to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Bounds {
    /// The indexed dim, for the message.
    pub axis: u32,
    /// Its size.
    pub size: u64,
    /// `None`: one position, counted from the end where it is negative. Otherwise the start of
    /// a block of so many, counted from the start.
    pub block: Option<u64>,
}

impl Bounds {
    /// The position counted from the start; `None` where it is out of range.
    pub fn resolve(&self, position: i64) -> Option<i64> {
        let size = i64::try_from(self.size).ok()?;
        match self.block {
            None => {
                let at = if position < 0 { position.checked_add(size)? } else { position };
                (0..size).contains(&at).then_some(at)
            }
            Some(block) => {
                let end = position.checked_add(i64::try_from(block).ok()?)?;
                (position >= 0 && end <= size).then_some(position)
            }
        }
    }

    /// What is wrong with `position`, lower case, without a full stop.
    pub fn message(&self, position: i64) -> String {
        let Bounds { axis, size, block } = self;
        match block {
            None => format!("index {position} is out of range for axis {axis} of size {size}"),
            Some(block) => {
                let end = i128::from(position) + i128::from(*block);
                format!("positions {position}..{end} are out of range for axis {axis} of size {size}")
            }
        }
    }
}

/// Why a step that is Rust code stopped.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stop {
    /// The number of the code: 703 is E0703.
    pub code: u16,
    /// Lower case, without a full stop.
    pub message: String,
    pub notes: Vec<String>,
    /// The step inside it that stopped, where it has steps of its own.
    pub origin: Option<StepOrigin>,
}

/// A position that is out of range.
impl From<String> for Stop {
    fn from(message: String) -> Stop {
        Stop { code: 703, message, notes: vec![], origin: None }
    }
}

/// What a step on the host does with its operands, by address, and its scalars.
pub type HostFn = dyn Fn(&[*mut u8], &[u64]) -> Result<(), Stop> + Send + Sync;

/// An operand of a step on the host: the bytes that are transferred where the device has memory of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostOperand {
    pub buf: BufRef,
    pub bytes: u64,
    pub access: Access,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    Read,
    /// As a whole.
    Write,
}

/// One step, in order.
#[derive(Clone)]
pub enum Step {
    Kernel {
        kernel: Kernel,
        bufs: Vec<BufRef>,
        scalars: Vec<ScalarRef>,
        launch: Launch,
        /// What a failure code stands for, and the span id it is reported at.
        origin: StepOrigin,
    },
    /// Runs on the calling thread, in memory of the host: a reference kernel, what devices exchange. Where the memory of the
    /// device is not the host's, what it reads is brought there and what it writes is taken back.
    Host {
        name: Arc<str>,
        run: Arc<HostFn>,
        operands: Vec<HostOperand>,
        scalars: Vec<ScalarRef>,
        origin: StepOrigin,
    },
    Loop(Arc<Loop>),
    /// `dst = src`, bytes.
    Copy {
        dst: BufRef,
        src: BufRef,
        bytes: u64,
    },
}

/// A loop over a plan. A turn reads where the values lie and writes where they belong: nothing is copied for it.
#[derive(Clone)]
pub struct Loop {
    pub name: Arc<str>,
    /// One turn. Its buffers are its own: what they are in the plan around say `inputs`, `outputs` and `arena`.
    pub body: Plan,
    /// At most, where the loop ends by itself.
    pub trips: u64,
    /// Whether it ends at the first turn before which its first carry, a bool, is false.
    pub until: bool,
    /// By input of the body.
    pub inputs: Vec<TurnInput>,
    /// By output of the body. In no turn shares one memory with an input, unless it is that input or is made in its place.
    pub outputs: Vec<TurnOutput>,
    /// Carries whose first value is also the first row of a result: it is copied there before the first turn.
    pub first: Vec<Copied>,
    /// Carries whose last value is wanted where the last turn may not have left it.
    pub last: Vec<Copied>,
    /// Where the arena of the body begins in the arena of the plan around.
    pub arena: u64,
    pub origin: StepOrigin,
}

/// A value from outside.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Given {
    Memory(Rows),
    Word(ScalarRef),
}

/// Rows in memory: that of turn `t` begins `first + t * step` bytes behind the start of a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rows {
    pub of: BufRef,
    pub first: u64,
    pub step: i64,
}

/// Where a turn finds an input of the body.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum TurnInput {
    /// What is given: the same in every turn where its rows have no step.
    Given(Given),
    /// What is given, in the first turn; after that, where the turn before left this output.
    Carry { first: Given, output: u32 },
}

/// Where a turn leaves an output of the body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TurnOutput {
    /// A row of its own for each turn; the last turn leaves it elsewhere, where that is stated.
    Rows { rows: Rows, last: Option<BufRef> },
    /// In two buffers by turns, of which the last turn takes the first; of a loop that ends by itself the first turn does.
    Alternate([BufRef; 2]),
    /// In the same memory in every turn.
    Whole(BufRef),
    /// It is this input, unchanged.
    Input(u32),
}

/// The bytes of a carry, and where they are wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Copied {
    /// The input of the body.
    pub carry: u32,
    pub to: Rows,
    pub bytes: u64,
}

impl Loop {
    /// The buffers of the plan around that it reads or writes.
    pub fn bufs(&self) -> Vec<BufRef> {
        let given = |g: &Given| match g {
            Given::Memory(rows) => Some(rows.of),
            Given::Word(_) => None,
        };
        let inputs = self.inputs.iter().filter_map(|i| match i {
            TurnInput::Given(g) | TurnInput::Carry { first: g, .. } => given(g),
        });
        let outputs = self.outputs.iter().flat_map(|o| match *o {
            TurnOutput::Rows { rows, last } => [Some(rows.of), last],
            TurnOutput::Alternate([a, b]) => [Some(a), Some(b)],
            TurnOutput::Whole(buf) => [Some(buf), None],
            TurnOutput::Input(_) => [None, None],
        });
        let copied = self.first.iter().chain(&self.last).map(|c| c.to.of);
        inputs.chain(outputs.flatten()).chain(copied).chain([BufRef::Arena(self.arena)]).collect()
    }
}

/// Position in source of what a step computes (item, start, end), for run-time errors and profiles.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct StepOrigin {
    pub item: u32,
    pub start: u32,
    pub end: u32,
}

/// Shape and element type (by the position of the dtype in its table) of an input or output.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BufType {
    pub dtype: u8,
    pub shape: Vec<u64>,
    pub bytes: u64,
}

/// An output: fresh memory, or the memory of an input that the caller gives up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Output {
    pub ty: BufType,
    /// The output is this input, unchanged (no copy).
    pub same_as_input: Option<u32>,
    /// The output may be computed in the memory of this input when no one else holds it.
    pub in_place_of: Option<u32>,
    /// All its elements are zero: no step writes it, and it takes memory when somebody first looks at it.
    pub zeros: bool,
}

/// The compiled form of one specialised graph.
#[derive(Clone, Default)]
pub struct Plan {
    pub name: String,
    pub inputs: Vec<BufType>,
    pub outputs: Vec<Output>,
    pub consts: Vec<Arc<[u8]>>,
    /// What who runs it made of the constants, for a device with memory of its own.
    pub resident: OnceLock<Arc<dyn Any + Send + Sync>>,
    pub steps: Vec<Step>,
    /// By step; empty where nobody wants to know.
    pub about: Vec<Arc<About>>,
    /// Where a profile wants it: what is in the arena when.
    pub held: Vec<Held>,
    pub arena_bytes: u64,
    /// Kernels launched, bytes read and written by them, floating-point operations.
    pub counts: Counts,
}

/// What a step is to people.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct About {
    /// What it computes: `MatMul[128x128x64]`, `AllReduce[dp]`.
    pub title: Arc<str>,
    /// Of the last step of a group.
    pub cost: Option<Cost>,
    /// Where a profile wants it: the operations that are computed together, and why its operands come from memory.
    pub fused: Vec<Arc<str>>,
    pub apart: Vec<Arc<str>>,
}

/// A value in the arena of a plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Held {
    /// The step that makes it, and the last one that reads it.
    pub from: u32,
    pub to: u32,
    pub bytes: u64,
    pub origin: StepOrigin,
}

/// What the steps of a group cost by counting, whatever the machine.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Cost {
    /// The names of its kernels, which run one after the other.
    pub names: Vec<Arc<str>>,
    pub counts: Counts,
    /// It moves values between devices: the bytes are those of the values, however they travel.
    pub between_devices: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    pub kernels: u64,
    pub bytes_read: u64,
    pub bytes_written: u64,
    pub flops: u64,
}
