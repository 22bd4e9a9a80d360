//! The primitives of Graph IR: few, orthogonal, with concrete shapes.
//!
//! Broadcasting, weak scalars, defaults and composite operators are gone at this level:
//! operands of a map have one shape, and every dtype is explicit.

pub mod fold;

use crate::map::MapOp;
use std::any::Any;
use std::fmt;
use std::sync::Arc;
use tessera_abi::check::Check;
pub use tessera_abi::linalg::{Factor, Triangle};
use tessera_base::{Blocks, DType};

/// One scalar with its element type. Floats are kept as f64 (exact for every float type),
/// integers and bool as i64.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Scalar {
    F(f64),
    I(i64),
}

impl Scalar {
    /// Zero, as the elements of a dtype are kept.
    pub fn zero(dtype: DType) -> Scalar {
        if dtype.is_float() { Scalar::F(0.0) } else { Scalar::I(0) }
    }
}

/// In which order an element of a product is summed, and where that rounds: what a processor's instruction for products
/// does, as the graph states it. Which one a machine takes depends on the machine and the dtype, never on sizes or schedules.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Order {
    /// One chain of fused multiply-adds in ascending `k`.
    #[default]
    Chain,
    /// Two steps at a time: of bf16 as `vdpbf16ps` takes them ([`crate::reference::pair_step`]), of ints of 16 bits in sums of
    /// 32 bits as `vpmaddwd` does, which is exact as long as sums are: whether ints are taken so is for schedules to say.
    Pairs,
    /// Units of 16 pairs, as `tdpbf16ps` takes them ([`crate::reference::Unit`]); the last one may have fewer.
    Units,
    /// Atoms of [`Order::ATOM`] steps of bf16 or f16, each a sum of products and what came before, as the matrix units of a GPU take
    /// them ([`crate::reference::atom`]); the last one may have fewer. What a unit rounds inside an atom is its own.
    Atoms,
}

impl Order {
    pub const ALL: [Order; 4] = [Order::Chain, Order::Pairs, Order::Units, Order::Atoms];

    /// Steps of an atom.
    pub const ATOM: u64 = 16;

    pub fn name(self) -> &'static str {
        match self {
            Order::Chain => "chain",
            Order::Pairs => "pairs",
            Order::Units => "units",
            Order::Atoms => "atoms",
        }
    }

    pub fn parse(name: &str) -> Option<Order> {
        Order::ALL.into_iter().find(|o| o.name() == name)
    }

    /// Whether a step takes two positions of factors of 16 bits.
    pub fn is_paired(self) -> bool {
        matches!(self, Order::Pairs | Order::Units)
    }

    /// Whether it is for factors of 16 bits, all of whose steps rows take.
    pub fn is_of_short_factors(self) -> bool {
        self != Order::Chain
    }

    /// Whether leaves of so many steps, or one of `depth`, can be made in it.
    pub fn fits(self, leaf: u64, depth: u64) -> bool {
        match self {
            Order::Chain => true,
            Order::Pairs | Order::Units => leaf.is_multiple_of(2) && depth.is_multiple_of(2),
            Order::Atoms => leaf.is_multiple_of(Order::ATOM) || depth <= leaf,
        }
    }

    /// Positions of `k` that belong together: a sum may be divided between them only.
    pub fn unit(self) -> u64 {
        match self {
            Order::Chain => 1,
            Order::Pairs => 2,
            Order::Units => 32,
            Order::Atoms => Order::ATOM,
        }
    }
}

/// Which steps of `k` row `i` of a product takes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Steps {
    #[default]
    All,
    /// Those with `k <= i`.
    To,
    /// Those with `k >= i`.
    From,
}

impl Steps {
    /// The steps of a row, of `depth` in all.
    pub fn of(self, row: usize, depth: usize) -> std::ops::Range<usize> {
        match self {
            Steps::All => 0..depth,
            Steps::To => 0..depth.min(row.saturating_add(1)),
            Steps::From => row.min(depth)..depth,
        }
    }

    /// The steps of all of `rows` together, without a look at each.
    pub fn total(self, rows: u64, depth: u64) -> u64 {
        let (n, k) = (rows as u128, depth as u128);
        // The rows before the one that reaches the last step, and those from it on.
        let (short, rest) = (n.min(k), n.saturating_sub(k).saturating_mul(k));
        let total = match self {
            Steps::All => n.saturating_mul(k),
            Steps::To => (short * (short + 1) / 2).saturating_add(rest),
            Steps::From => {
                n.saturating_mul(k).saturating_sub((short * short.saturating_sub(1) / 2).saturating_add(rest))
            }
        };
        u64::try_from(total).unwrap_or(u64::MAX)
    }
}

/// A primitive with its attributes. Shapes below are row-major; `axis` counts from 0.
#[derive(Clone, PartialEq, Debug)]
pub enum Prim {
    /// The `n`-th argument of the graph.
    Input(u32),
    /// Every element is `value`.
    Full {
        value: Scalar,
    },
    /// Elements 0, 1, 2, … along `axis`.
    Iota {
        axis: usize,
    },
    /// Raw little-endian elements, row-major, known at compile time.
    Literal(Arc<[u8]>),
    /// Elementwise; all operands have the result's shape.
    Map(MapOp),
    /// Operand 0, where the operation of host code has a value for the elements of operands 0 and 1 (i64 or f64, of
    /// one shape); elsewhere an error. So ints that a graph computes are checked as host code checks them.
    Check(Check),
    /// Conversion to the node's dtype: round to nearest even, fp8 saturates, float to
    /// integer truncates and saturates, to bool is `!= 0`.
    Cast,
    /// Dim `i` of the operand becomes dim `dims[i]` of the result; a size 1 is repeated.
    Broadcast {
        dims: Vec<usize>,
    },
    Reshape,
    /// Dim `i` of the result is dim `perm[i]` of the operand.
    Transpose {
        perm: Vec<usize>,
    },
    /// Elements `start + i * step` per dim, `i` below the result's size; `step` may be negative.
    Slice {
        start: Vec<i64>,
        step: Vec<i64>,
    },
    /// Sliding windows over the last `n = stride.len()` dims: `[…, d…] -> […, o…, k…]`, where
    /// element `(…, o…, k…)` is the operand's at `o * stride + k * dilation` in each of those
    /// dims. `o` and `k` are the result's sizes; all windows lie inside the operand. Windows may overlap.
    Windows {
        stride: Vec<u64>,
        dilation: Vec<u64>,
    },
    /// `low[i]` copies of operand 1 (rank 0) before dim `i` of operand 0 and `high[i]` after it.
    Pad {
        low: Vec<u64>,
        high: Vec<u64>,
    },
    Concat {
        axis: usize,
    },
    /// `axes` vanish. Accumulates in the operand's accumulator type in the canonical order, over
    /// the elements row-major by ascending axis, and rounds once to the node's dtype.
    Reduce {
        kind: Reduction,
        axes: Vec<usize>,
    },
    /// Index (i64) of the first largest or smallest element along `axis`; NaN counts as largest/smallest.
    ArgReduce {
        largest: bool,
        axis: usize,
    },
    /// Running sum or product along `axis`, in ascending order.
    Cumulate {
        kind: Reduction,
        axis: usize,
    },
    /// `[batch…, m, k] @ [batch…, k, n] -> [batch…, m, n]` in `accum`, rounded once to the node's dtype. `k` is cut into
    /// leaves of `leaf` positions, the last one may have fewer. Each element is one chain of fused multiply-adds in ascending
    /// `k` within a leaf, and a balanced tree over leaves ([`fold`]). What lies beyond the steps of a row does not count, be
    /// it infinite.
    /// `order`: of bf16 factors with even `k` it may be another one than the chain.
    Dot {
        accum: DType,
        steps: Steps,
        order: Order,
        leaf: u64,
    },
    /// The blocks `u8[…, B, bytes]` of the f32 numbers `[…, elems·B]`.
    Quantize {
        format: Blocks,
    },
    /// The f32 numbers `[…, elems·B]` of blocks `u8[…, B, bytes]`.
    Dequantize {
        format: Blocks,
    },
    /// `f32[m, k] @ blocks[n, B, bytes] -> f32[m, n]`: the product with the turned numbers of the
    /// blocks, in the bits of [`Prim::Dot`]; the blocks stay as they are in memory.
    BlockDot {
        format: Blocks,
    },
    /// Operand 0 at start positions given by the following rank-0 i64 operands, one per
    /// dim; a position out of range is a run-time error.
    DynamicSlice {
        sizes: Vec<u64>,
    },
    /// Operand 0 with operand 1 written at the start positions of operands 2….
    DynamicUpdate,
    /// Operand 0 with operand 1 written at `start + i * step` per dim.
    UpdateSlice {
        start: Vec<i64>,
        step: Vec<i64>,
    },
    /// `take`: operand 0 along `axis` at the positions of operand 1 (i64, any rank), which
    /// replace the axis. Negative positions count from the end; out of range is an error.
    Take {
        axis: usize,
    },
    /// Pointwise indexing: operands 1… (i64, one shape) index the first dims of operand 0.
    Gather,
    /// Operand 0 with operand 2 written (or added) where operands 1 … index its first dims;
    /// operands: base, values, indices…. Repeated indices: added in ascending order in the
    /// accumulator type and rounded once, last write wins. Negative positions count from the end.
    Scatter {
        add: bool,
    },
    /// `gather` along one axis, index and result of one shape (PyTorch's `gather`).
    TakeAlong {
        axis: usize,
    },
    /// PyTorch's `scatter_add`: operands base, index, source; ascending order of source.
    ScatterAddAlong {
        axis: usize,
    },
    /// Stable ascending (or descending) sort along `axis`; NaN last.
    Sort {
        axis: usize,
        descending: bool,
    },
    /// The positions (i64) that [`Prim::Sort`] takes its elements from.
    ArgSort {
        axis: usize,
        descending: bool,
    },
    /// `u32` bits as i64 in [0, 2³²): Philox 4x32-10 with operand 0, keys `i64 [batch…, 2]` of which the low 32 bits
    /// count. The result is `[batch…, …]`: element `i` of a key's own is word `i % 4` of the block with counter `i / 4`.
    RandomBits,
    /// The real part of a c64 operand (`imag`: the imaginary one), as f32.
    Part {
        imag: bool,
    },
    /// The c64 of two f32 operands: real and imaginary part.
    Complex,
    /// A discrete Fourier transform along one axis. Operands: the elements; the f32 table that
    /// [`crate::fft::table`] gives; with a twist also the two of [`crate::fft::twist_tables`].
    Fft(Fft),
    /// What matrices of floats `[batch…, m, n]` are taken apart into, all parts in one vector: `[batch…, elems]`
    /// ([`Factor::parts`]). A matrix that has no such factors is a run-time error.
    Factor(Factor),
    /// The solution `x` of `op(a) x = b` for triangles `a [batch…, n, n]` and right sides `b [batch…, n, k]`. A zero on the
    /// diagonal is a run-time error.
    TriangularSolve(Triangle),
    /// Runs body `body` for every position of the leading axis. Operands: `carry` initial
    /// values, then sequences, then constants. The body's inputs are carries, one element of
    /// each sequence, constants; its outputs carries, then one element per stacked result.
    /// Result `i` of the loop is selected by [`Prim::Get`].
    Scan {
        body: u32,
        carry: usize,
        sequences: usize,
        trips: u64,
        /// Turns take rows, and give them, from the last to the first.
        reversed: bool,
        /// The loop ends by itself: carry 0 (bool, rank 0) says before each turn whether there is one, carry 1 (i64, rank 0) counts
        /// them, as its body sees to. It has `trips` turns at most, and no sequences; rows that no turn gave hold nothing that may
        /// be read.
        until: bool,
    },
    /// Result `index` of a node with several results.
    Get {
        index: usize,
    },
    /// The same value in the layout that the node's type states.
    Layout,
    /// Position `i` along `axis` is the operand's position `from[i]`. Where an axis of a mesh splits
    /// that dim into single positions, devices send them to each other and nothing is gathered.
    Rows {
        axis: usize,
        from: Vec<u64>,
    },
    /// What devices do together. Only in the graph of what one device of many does
    /// (`@dist.local`), before it is written for all of them.
    Collective(Arc<Collective>),
    /// A device's part of a tensor in another layout, from its part of operand 0 and those of
    /// other devices. Only in graphs of one device of a mesh.
    Exchange(Arc<Exchange>),
    /// A primitive that is not in this list: all that is known of it its row says (`tessera_ir::prim::own`).
    Own(Own),
}

/// A loop that ends by itself is taken to have so many turns at most, where they are counted before it runs.
const TURNS_EXPECTED: u64 = 16;

impl Prim {
    /// The turns of a loop where they are counted before it runs; none of what is no loop.
    pub fn turns(&self) -> Option<u64> {
        match *self {
            Prim::Scan { trips, until: true, .. } => Some(trips.min(TURNS_EXPECTED)),
            Prim::Scan { trips, .. } => Some(trips),
            _ => None,
        }
    }
}

/// The row of a primitive that is not in the list.
#[derive(Clone)]
pub struct Own(Arc<dyn OwnRow>);

/// A row, as far as this crate looks at it.
pub trait OwnRow: Any + fmt::Debug + Send + Sync {
    /// Whether it is the same primitive with the same attributes.
    fn is_same(&self, other: &dyn OwnRow) -> bool;
}

impl Own {
    pub fn new(row: impl OwnRow) -> Own {
        Own(Arc::new(row))
    }

    pub fn row(&self) -> &dyn OwnRow {
        &*self.0
    }
}

impl PartialEq for Own {
    fn eq(&self, other: &Own) -> bool {
        self.row().is_same(other.row())
    }
}

impl fmt::Debug for Own {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What the devices along an axis of a mesh do with a block that each of them has.
#[derive(Clone, PartialEq, Debug)]
pub struct Collective {
    pub axis: Arc<str>,
    /// How many devices there are along it.
    pub devices: u64,
    pub kind: CollectiveKind,
}

/// Of blocks of one shape; dims count from 0.
#[derive(Clone, PartialEq, Debug)]
pub enum CollectiveKind {
    /// The device's number along the axis; no operand.
    Rank,
    /// The sum of the blocks, in the order of the devices.
    Sum,
    /// Their largest and smallest elements.
    Max,
    Min,
    /// The blocks one after the other along a dim.
    Gather {
        dim: usize,
    },
    /// The sum, of which each device keeps its part along a dim.
    Scatter {
        dim: usize,
    },
    /// Each block is cut along `to`; the parts that a device gets lie one after the other along `from`.
    Turn {
        from: usize,
        to: usize,
    },
    /// The device's block becomes that of device `from[rank]`.
    Rows {
        from: Vec<u64>,
    },
}

/// What one device sends and receives when a tensor changes its layout.
#[derive(Clone, PartialEq, Debug)]
pub struct Exchange {
    /// The collective that this is, for people: `all_gather tp`.
    pub name: Arc<str>,
    /// Tells the exchanges of a program apart, in the same order on all devices.
    pub tag: u32,
    /// The tag of the first of those that go together, in one message from a device to another; its own if it goes alone. None of
    /// them needs what another brings, and they come in the order of this number on all devices.
    pub batch: u32,
    /// Of operand 0; what the device keeps is a part sent to itself.
    pub sends: Vec<Transfer>,
    /// Of the result.
    pub receives: Vec<Transfer>,
}

/// A box of elements and the device on the other side.
#[derive(Clone, PartialEq, Debug)]
pub struct Transfer {
    pub peer: u64,
    pub start: Vec<u64>,
    pub size: Vec<u64>,
}

/// What a Fourier transform takes and gives.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FftKind {
    /// c64 to c64: `X[k] = Σ x[j]·exp(-2πi·jk/n)`.
    Forward,
    /// c64 to c64 with the other sign, without a factor.
    Inverse,
    /// f32 to c64: the first `m <= n/2 + 1` results of the forward transform, `n` even.
    RealForward,
    /// c64 to f32: the inverse of a spectrum of which the first `m <= n/2 + 1` values are given,
    /// the others up to n/2 are 0 and the rest are conjugates; `n` even.
    RealInverse,
}

impl FftKind {
    pub fn name(self) -> &'static str {
        match self {
            FftKind::Forward => "fft",
            FftKind::Inverse => "ifft",
            FftKind::RealForward => "rfft",
            FftKind::RealInverse => "irfft",
        }
    }

    pub fn parse(text: &str) -> Option<FftKind> {
        use FftKind::*;
        [Forward, Inverse, RealForward, RealInverse].into_iter().find(|k| k.name() == text)
    }

    /// Whether one side of the transform is real.
    pub fn real(self) -> bool {
        matches!(self, FftKind::RealForward | FftKind::RealInverse)
    }
}

/// A Fourier transform of a length that has a plan ([`crate::fft::plan`]).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Fft {
    pub kind: FftKind,
    /// The axis of the operand.
    pub axis: usize,
    /// Where the transformed axis is among the dims of the result; the others keep their order.
    pub to: usize,
    /// Length of the transform; for the real kinds of its real side.
    pub points: u64,
    /// Factor of every result, a value of f32; 1 costs nothing.
    pub scale: f64,
}

/// The monoid of a reduction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Reduction {
    Sum,
    Prod,
    /// Of f16, every addition rounded to f16; computed by the reference kernel alone.
    HalfSum,
    /// Of f16, every multiplication rounded to f16; computed by the reference kernel alone.
    HalfProd,
    Max,
    Min,
    /// Of bool.
    Any,
    All,
}

impl Reduction {
    pub fn name(self) -> &'static str {
        match self {
            Reduction::Sum => "sum",
            Reduction::Prod => "prod",
            Reduction::HalfSum => "half_sum",
            Reduction::HalfProd => "half_prod",
            Reduction::Max => "max",
            Reduction::Min => "min",
            Reduction::Any => "any",
            Reduction::All => "all",
        }
    }

    pub fn parse(text: &str) -> Option<Reduction> {
        use Reduction::*;
        [Sum, Prod, HalfSum, HalfProd, Max, Min, Any, All].into_iter().find(|r| r.name() == text)
    }

    /// Whether its elements and all that is between are f16.
    pub fn is_half(self) -> bool {
        matches!(self, Reduction::HalfSum | Reduction::HalfProd)
    }
}

/// How many elements one leaf of a canonical sum holds; leaves combine in a balanced binary
/// tree by index. Inside a leaf element `i` belongs to virtual lane `i % LANES`, each lane is
/// a chain in ascending order from the identity, and lanes combine by halves (`l + 8`, `l + 4`, …).
/// The order depends on the reduced length alone, never on threads, tiles or vector width.
pub const LEAF: usize = 512;
/// Virtual lanes of a canonical sum.
pub const LANES: usize = 16;
