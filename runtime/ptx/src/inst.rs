//! Decoded instructions. Operands are indices into a thread's flat register file; constants and special registers
//! have slots of that file too, so that no operand needs a decision at run time.

use crate::types::Ty;

/// Index into the register file of a thread.
pub type Reg = u32;
/// No register: a result that nobody wants, a guard that is absent.
pub const NONE: Reg = u32::MAX;

pub type Unary = fn(u64) -> u64;
pub type Binary = fn(u64, u64) -> u64;
pub type Ternary = fn(u64, u64, u64) -> u64;
pub type Quaternary = fn(u64, u64, u64, u64) -> u64;

/// Where an address points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    Generic,
    Global,
    Shared,
    Local,
    Param,
}

/// A load or a store of one or several neighbouring values.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    pub space: Space,
    /// Bytes of one value.
    pub size: u8,
    pub count: u8,
    /// Loads of signed types fill up to this many bits, 0 for zeros.
    pub sign_to: u8,
    /// Relaxed, acquire, release, volatile: such accesses never race with each other.
    pub strong: bool,
    /// Acquire: what others did before is seen from here on.
    pub acquire: bool,
    /// The register, or with `count` > 1 the start of a list.
    pub value: u32,
    pub base: Reg,
    pub offset: i64,
}

/// A read-modify-write.
#[derive(Clone, Copy, Debug)]
pub struct Atomic {
    pub space: Space,
    pub size: u8,
    pub kind: AtomicKind,
    pub acquire: bool,
    pub result: Reg,
    pub base: Reg,
    pub offset: i64,
    pub a: Reg,
}

#[derive(Clone, Copy, Debug)]
pub enum AtomicKind {
    /// New value of (old, a).
    Apply(Binary),
    /// Stores the register where the memory holds `a`.
    Swap(Reg),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShuffleMode {
    Up,
    Down,
    Butterfly,
    Index,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VoteMode {
    Ballot,
    Any,
    All,
    Uniform,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    Popc,
    And,
    Or,
}

/// Elements of the operands of a matrix product.
#[derive(Clone, Copy, Debug)]
pub struct MmaShape {
    pub m: u8,
    pub n: u8,
    pub k: u8,
    pub a: Ty,
    pub b: Ty,
    /// Of the accumulator and of the result.
    pub c: Ty,
    pub d: Ty,
    pub saturate: bool,
}

/// What waits for other lanes of a warp.
#[derive(Clone, Copy, Debug)]
pub enum Collective {
    Shuffle {
        mode: ShuffleMode,
        result: Reg,
        pred: Reg,
        a: Reg,
        b: Reg,
        c: Reg,
    },
    Vote {
        mode: VoteMode,
        result: Reg,
        pred: Reg,
        negate: bool,
    },
    MatchAny {
        result: Reg,
        a: Reg,
        bits: u8,
    },
    MatchAll {
        result: Reg,
        pred: Reg,
        a: Reg,
        bits: u8,
    },
    Redux {
        apply: Binary,
        result: Reg,
        a: Reg,
    },
    Elect {
        result: Reg,
        pred: Reg,
    },
    WarpSync,
    /// `list` holds the registers of the matrices.
    LdMatrix {
        list: u32,
        count: u8,
        transposed: bool,
        space: Space,
        base: Reg,
        offset: i64,
    },
    StMatrix {
        list: u32,
        count: u8,
        transposed: bool,
        space: Space,
        base: Reg,
        offset: i64,
    },
    /// `list` holds d, a, b, c one after the other; `shape` is an index into the kernel's shapes.
    Mma {
        list: u32,
        shape: u32,
    },
    /// `list` holds the accumulator; all four warps of a group take part.
    Wgmma {
        list: u32,
        n: u16,
        a: Reg,
        b: Reg,
        scale: Reg,
        brain: bool,
    },
}

/// What is done with an mbarrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mbar {
    Init,
    Inval,
    Arrive,
    ExpectTx,
    ArriveExpectTx,
    /// Waits for the phase of a state.
    TestState,
    /// Waits for a parity.
    TestParity,
}

#[derive(Clone, Copy, Debug)]
pub enum Op {
    Move(Reg, Reg),
    Un(Unary, Reg, Reg),
    Bin(Binary, Reg, Reg, Reg),
    Tri(Ternary, Reg, Reg, Reg, Reg),
    Quad(Quaternary, Reg, [Reg; 4]),
    Select(Reg, Reg, Reg, Reg),
    /// Sum with carries: (result, a, b, flags), see `CARRY_*`.
    Carry(Reg, Reg, Reg, u8),
    Convert(crate::ops::cvt::Spec, Reg, Reg, Reg),
    /// A register that every read changes.
    Clock(Reg),
    Load(Access),
    Store(Access),
    Atomic(Atomic),
    /// To the generic address space: adds the window's base.
    ToGeneric(Space, Reg, Reg),
    FromGeneric(Space, Reg, Reg),
    IsSpace(Space, Reg, Reg),
    Branch(u32),
    /// Index into the kernel's branch tables.
    BranchTable(Reg, u32),
    /// Jumps over the next instructions where the guard does NOT hold.
    Skip(u32),
    Exit,
    Trap,
    Nop,
    Fence,
    ActiveMask(Reg),
    Collective(Collective, Reg),
    /// Barrier, count (NONE for all threads).
    BarSync {
        id: Reg,
        count: Reg,
        aligned: bool,
    },
    BarArrive {
        id: Reg,
        count: Reg,
    },
    BarReduce {
        id: Reg,
        count: Reg,
        reduction: Reduction,
        result: Reg,
        pred: Reg,
        negate: bool,
    },
    /// To, from, bytes, source bytes (NONE for all).
    CopyAsync {
        to: Reg,
        to_offset: i64,
        from: Reg,
        from_offset: i64,
        bytes: u8,
        source: Reg,
    },
    CopyCommit,
    /// Waits until at most so many groups are open.
    CopyWait(u32),
    CopyWaitAll,
    /// Arrival on an mbarrier when the copies so far are there.
    CopyArrive {
        base: Reg,
        offset: i64,
        counted: bool,
    },
    Mbarrier {
        what: Mbar,
        base: Reg,
        offset: i64,
        a: Reg,
        result: Reg,
    },
    /// A tile of two dimensions: destination, map, coordinates, mbarrier.
    TensorLoad {
        to: Reg,
        map: Reg,
        x: Reg,
        y: Reg,
        bar: Reg,
    },
}

/// Uses the carry.
pub const CARRY_IN: u8 = 1;
/// Sets the carry.
pub const CARRY_OUT: u8 = 2;
pub const CARRY_SUB: u8 = 4;
pub const CARRY_64: u8 = 8;

#[derive(Clone, Copy, Debug)]
pub struct Inst {
    /// Register and negation (lowest bit); `NONE` where the instruction has no guard.
    pub guard: u32,
    pub op: Op,
}

/// A register whose value the launch decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Special {
    Tid(u8),
    Ntid(u8),
    Ctaid(u8),
    Nctaid(u8),
    Lane,
    Warp,
    Warps,
    Sm,
    Sms,
    LaneMask(u8),
    DynamicShared,
    TotalShared,
    Zero,
    One,
}

/// One statement of the text, for messages.
#[derive(Clone, Debug)]
pub struct Site {
    pub line: u32,
    pub text: String,
}

/// A parameter: where it lies in the parameter space.
#[derive(Clone, Debug)]
pub struct Param {
    pub name: String,
    pub offset: u32,
    pub size: u32,
}

/// A decoded kernel.
#[derive(Clone, Debug)]
pub struct Kernel {
    pub name: String,
    pub params: Vec<Param>,
    pub param_bytes: u32,
    pub code: Vec<Inst>,
    /// The statement of each instruction.
    pub site: Vec<u32>,
    pub sites: Vec<Site>,
    /// First value of every register.
    pub template: Vec<u64>,
    pub specials: Vec<(Special, Reg)>,
    /// Lists of operands.
    pub pool: Vec<Reg>,
    pub tables: Vec<Vec<u32>>,
    pub shapes: Vec<MmaShape>,
    /// The register of the carry.
    pub carry: Reg,
    pub static_shared: u32,
    /// Where `.extern .shared` arrays start.
    pub dynamic_shared: u32,
    pub local_bytes: u32,
    pub max_threads: Option<[u32; 3]>,
    pub required_threads: Option<[u32; 3]>,
}
