//! Tile IR: the kernel language. A grid of independent points, loops with carried values,
//! loads and stores of vectors through views that own their masks, elementwise functions,
//! ordered folds and register-tile products.
//!
//! Values are vectors of one compute kind. A narrow float is widened where it is loaded and
//! stays an f32 that is rounded after every operation, as the scalar programs say.

pub mod text;
pub mod verify;

pub use crate::schedule::Guard;

use crate::index::{Index, Var};
use tessera_abi::plan::Bounds;
use tessera_base::DType;
use tessera_ops::convert;
use tessera_ops::map::{Gives, MapOp, kind_of};
use tessera_ops::prim::{Order, Reduction, Scalar};
use tessera_ops::scalar::{Kind, Program};

/// The grid point, `0..grid`.
pub const POINT: Var = Var(0);
/// The lane of a vector access. An access whose position does not mention it is a scalar.
pub const LANE: Var = Var(1);
/// The first loop variable.
pub const FIRST_LOOP: u32 = 2;

/// A value, printed as `%5`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Val(pub u32);

/// `lanes` elements of one kind; 1 is a scalar and is repeated where a vector is needed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Ty {
    pub kind: Kind,
    pub lanes: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Space {
    /// Operand that is read.
    In,
    /// Operand that is written (and may be read back where this point wrote).
    Out,
    /// Operand between the kernels of one group.
    Temp,
    /// Private to a call: packed panels, partial sums.
    Scratch,
}

/// Memory. Operands come first, in the order of the call; scratch buffers follow one another
/// at multiples of 64 bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Buf {
    pub name: String,
    pub dtype: DType,
    pub elems: u64,
    pub space: Space,
}

/// Elements `at` for every lane below `lanes`. Lanes from `valid` on and lanes where a guard
/// fails are not touched; a load gives zero there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Access {
    pub buf: u32,
    pub at: Index,
    pub valid: u32,
    pub guards: Vec<Guard>,
}

#[derive(Clone, PartialEq, Debug)]
pub enum Def {
    Const(Scalar),
    /// The `n`-th host scalar.
    Scalar(u32),
    /// i64; one per lane where it mentions [`LANE`].
    Index(Index),
    Load(Access),
    /// As a load, at `from` plus each position of `by` times its stride.
    Gather {
        from: Access,
        by: Vec<(Val, i64)>,
    },
    /// Lanes below `valid` counted from the start, i64; one that breaks check `check` stops the
    /// kernel. The other lanes are 0.
    Position {
        arg: Val,
        check: u32,
        valid: u32,
    },
    /// All guards hold.
    Within(Vec<Guard>),
    /// The bits of an f32 that f16 holds, as f16: i16.
    HalfBits(Val),
    /// The f16 number in two bytes, as an f32.
    Half {
        low: Val,
        high: Val,
    },
    /// Random word `at` of a key, 32 bits as i64: [`tessera_ops::reference::random_bits_program`]. Words come four at a
    /// time, so neighbours cost a fourth of words that are apart.
    Random {
        key: [Val; 2],
        at: Index,
    },
    /// The scalar program of `op` for operands of `dtype`, rounded to `dtype`.
    Map {
        op: MapOp,
        dtype: DType,
        args: Vec<Val>,
    },
    /// The conversion program between element types.
    Cast {
        from: DType,
        to: DType,
        arg: Val,
    },
    /// The f32 nearest to an f32 with the 10 fraction bits of tf32: what a product takes of it.
    RoundTf32(Val),
    /// `acc ∘ value` in lanes below `valid`, `acc` in the others.
    Fold {
        kind: Reduction,
        acc: Val,
        value: Val,
        valid: u32,
    },
    /// Two bf16 numbers in the bits of an i32, the even one low. The arguments are f32 that
    /// bf16 holds.
    Pair {
        even: Val,
        odd: Val,
    },
    /// A vector's lanes combined by halves: `l ∘ (l + n/2)`, then quarters, and so on.
    Lanes {
        kind: Reduction,
        arg: Val,
    },
    /// `count` consecutive elements (vectors of the result's lanes) from `at` on, combined in a
    /// balanced binary tree by position. Overwrites them.
    Tree {
        kind: Reduction,
        buf: u32,
        at: Index,
        count: u64,
    },
}

/// A value that a loop carries: `inner` is `init` in the first round and `next` afterwards;
/// `out` is its last value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Carry {
    pub inner: Val,
    pub init: Val,
    pub next: Val,
    pub out: Val,
}

/// `for var in max(lo)..min(hi) step step`.
#[derive(Clone, PartialEq, Debug)]
pub struct For {
    pub var: Var,
    pub lo: Vec<Index>,
    pub hi: Vec<Index>,
    pub step: u32,
    /// The turns are dealt to the warps of the point; none of them reads what another writes.
    pub dealt: bool,
    pub carried: Vec<Carry>,
    pub body: Vec<Op>,
}

/// An operand of a register-tile product. The left one: element (i, k) at `at + i*row + k*step`.
/// The right one: element (k, j) at `at + k*step + j`. The result: `at + i*row + j`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Panel {
    pub buf: u32,
    pub at: Index,
    pub row: i64,
    pub step: i64,
}

/// `c[i, j] = fma chain over k in 0..depth of a[i, k]·b[k, j]`, for `rows` × `cols` elements in
/// vectors of `lanes`, from zero. With a [`Fold`] that is one chain for each leaf, and the tree over them. With a `ramp` row
/// `i` makes at most `ramp + i` steps, with a `lead` none of the first `lead + i`. All three hold elements of `kind`.
///
/// `order`: of factors of bf16, or of i16 with sums of i32, a step takes two positions of k at once
/// ([`tessera_ops::prim::Order`]), without a ramp. The factors lie as such, where a [`Panel`]'s `step` leads from one position to the next,
/// or as pairs that [`Def::Pair`] has made, where it leads from one pair to the next.
///
/// `hops`: steps of the left factor that are nested. With `(every, extra)` it goes `extra` elements
/// further whenever `every` steps are done. Each `every` is a multiple of the one before, and the
/// depth of the last; neither pairs nor a ramp or lead go with it.
///
/// `ahead`: blocks of `rows` × `cols` elements that will be read next, asked for row by row while the
/// chain is computed; no effect besides. They may lie beyond the buffer. The depth is known then.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mma {
    pub kind: Kind,
    pub rows: u32,
    pub cols: u32,
    pub lanes: u32,
    pub order: Order,
    /// By the processor's unit for matrices: up to 32 rows and 32 columns in units of steps, the left factor row by row, the
    /// right one in pairs.
    pub matrix_unit: bool,
    /// Each step rounds its sum to f16.
    pub half: bool,
    /// Number of steps: the least of these.
    pub depth: Vec<Index>,
    pub ramp: Option<Index>,
    pub lead: Option<Index>,
    pub hops: Vec<(i64, i64)>,
    pub ahead: Vec<Panel>,
    /// Steps that are written out in a row; of nested ones, at most so many.
    pub unroll: u32,
    /// Steps before which lines of the right factor are asked for; 0 asks for none.
    pub distance: u32,
    pub fold: Option<Fold>,
    pub a: Panel,
    pub b: Panel,
    pub c: Panel,
}

/// A factor of a [`Block`], bf16: element `k` of line `i` (a row of the left one, a column of the right one) lies at
/// `at + i*line + k*step`, and one of the two strides is 1. Lines from the least of `count` on count as zeros.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Factor {
    pub buf: u32,
    pub at: Index,
    pub line: i64,
    pub step: i64,
    pub count: Vec<Index>,
}

/// `c[i, j] = Σ a[i, k]·b[k, j]` over `depth` steps, for `rows` × `cols` elements, by all warps of a point on units for
/// matrices: atoms ([`tessera_ops::prim::Order::Atoms`]) from zero within leaves of `leaf` steps, and the tree over them. `c`
/// is scratch of f32, row by row, which holds what is staged of the factors before; `waiting` has room for the levels of the tree.
///
/// `warps` divide the rows and the columns; `chunk` steps are staged at once, `stages` of them ahead.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Block {
    pub rows: u32,
    pub cols: u32,
    pub warps: [u32; 2],
    pub depth: u64,
    pub leaf: u64,
    pub chunk: u32,
    pub stages: u32,
    pub a: Factor,
    pub b: Factor,
    pub c: u32,
    pub waiting: Option<u32>,
}

impl Block {
    /// Bytes that are staged of the factors.
    pub fn staged_bytes(&self) -> u64 {
        u64::from(self.stages) * u64::from(self.rows + self.cols) * u64::from(self.chunk) * 2
    }

    /// Numbers of `c`: so many sums, or what is staged.
    pub fn c_elems(&self) -> u64 {
        (u64::from(self.rows) * u64::from(self.cols)).max(self.staged_bytes() / 4)
    }
}

#[derive(Clone, PartialEq, Debug)]
pub enum Op {
    Def {
        out: Val,
        def: Def,
    },
    /// Further on by each position of `by` times its stride; lanes that go to one element do so in ascending order.
    /// `stream` writes past the cache.
    Store {
        to: Access,
        by: Vec<(Val, i64)>,
        value: Val,
        lanes: u32,
        stream: bool,
    },
    For(For),
    /// The element will be read soon; no effect besides. It may lie beyond the buffer.
    Prefetch {
        buf: u32,
        at: Index,
    },
    /// A square of lanes turned over: lane `j` of `to[i]` is lane `i` of `from[j]`.
    Transpose {
        from: Vec<Val>,
        to: Vec<Val>,
    },
    Mma(Mma),
    Block(Block),
}

/// One kernel.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Kernel {
    /// Also the symbol of its entry point.
    pub name: String,
    pub bufs: Vec<Buf>,
    /// Host scalars: f64, i64 or bool.
    pub scalars: Vec<DType>,
    /// Inclusive upper bounds of the loop variables from [`FIRST_LOOP`] on (lower bounds are 0).
    pub vars: Vec<i64>,
    pub values: Vec<Ty>,
    /// Grid points.
    pub grid: u64,
    /// Grid points that are worth a thread's wake-up.
    pub grain: u64,
    /// Warps of a point, which is a block of threads then; 0 where a point is a group of lanes, or a core's.
    pub warps: u32,
    /// Copies of the body of innermost loops; 0 and 1 leave them as they are.
    pub unroll: u32,
    /// What positions that come from data must keep to.
    pub checks: Vec<Bounds>,
    pub body: Vec<Op>,
}

impl Op {
    /// Calls `f` with every value that the operation itself reads, not those in a loop's body.
    pub fn each_read(&self, f: &mut dyn FnMut(Val)) {
        match self {
            Op::Def { def, .. } => match def {
                Def::Const(_) | Def::Scalar(_) | Def::Index(_) | Def::Load(_) | Def::Within(_) | Def::Tree { .. } => {}
                Def::Gather { by, .. } => by.iter().for_each(|(v, _)| f(*v)),
                Def::Random { key, .. } => key.iter().for_each(|v| f(*v)),
                Def::Map { args, .. } => args.iter().for_each(|v| f(*v)),
                Def::HalfBits(arg)
                | Def::Position { arg, .. }
                | Def::Cast { arg, .. }
                | Def::Lanes { arg, .. }
                | Def::RoundTf32(arg) => f(*arg),
                Def::Fold { acc: a, value: b, .. } | Def::Pair { even: a, odd: b } | Def::Half { low: a, high: b } => {
                    [*a, *b].into_iter().for_each(f)
                }
            },
            Op::Store { value, by, .. } => {
                f(*value);
                by.iter().for_each(|(v, _)| f(*v));
            }
            Op::For(l) => l.carried.iter().flat_map(|c| [c.init, c.next]).for_each(f),
            Op::Transpose { from, .. } => from.iter().for_each(|v| f(*v)),
            Op::Prefetch { .. } | Op::Mma(_) | Op::Block(_) => {}
        }
    }
}

/// How the leaves of a product meet ([`tessera_ops::prim::fold`]): a step block holds whole leaves, and what is left of
/// the ones before waits at its level. `c` is written with the last leaf.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fold {
    /// Steps of a leaf: of pairs, so many pairs.
    pub leaf: i64,
    /// The leaf that begins with the first step.
    pub first: Index,
    /// The first leaf that is computed: the levels hold nothing of those before.
    pub begin: Index,
    /// The number of leaves is the least of these; none of this block's lies beyond.
    pub leaves: Vec<Index>,
    /// Where level 0 of the tile lies, with the elements from row to row.
    pub slots: Panel,
    /// Elements from one level to the next.
    pub apart: i64,
    /// The first level that lasts from block to block. This one lies at `lasting`, the others behind it.
    pub inner: i64,
    pub lasting: Index,
    /// Levels in all.
    pub levels: i64,
}

impl Fold {
    /// What all of the numbers depend on.
    pub fn indices(&self) -> impl Iterator<Item = &Index> {
        [&self.first, &self.begin, &self.slots.at, &self.lasting].into_iter().chain(&self.leaves)
    }
}

impl Mma {
    /// The number of steps of every row, where it is known.
    pub fn known_depth(&self) -> Option<i64> {
        let steps = |n: i64, d: &Index| d.as_constant().map(|d| n.min(d));
        let known = || self.depth.iter().try_fold(i64::MAX, steps);
        if self.ramp.is_none() && self.lead.is_none() { known() } else { None }
    }
}

impl Kernel {
    pub fn ty(&self, v: Val) -> Ty {
        self.values[v.0 as usize]
    }

    pub fn push(&mut self, kind: Kind, lanes: u32) -> Val {
        self.values.push(Ty { kind, lanes });
        Val(self.values.len() as u32 - 1)
    }

    /// Offsets of the scratch buffers (by buffer; 0 for operands) and their total, in bytes.
    pub fn scratch(&self) -> (Vec<u64>, u64) {
        let mut total = 0u64;
        let offsets = self.bufs.iter().map(|b| {
            if b.space != Space::Scratch {
                return 0;
            }
            let at = total;
            total += (b.elems * b.dtype.bytes() as u64).next_multiple_of(64);
            at
        });
        (offsets.collect(), total)
    }
}

/// The spelling of a kind.
pub fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::F32 => "f32",
        Kind::F64 => "f64",
        Kind::I64 => "i64",
        Kind::I32 => "i32",
        Kind::I16 => "i16",
        Kind::I8 => "i8",
        Kind::U8 => "u8",
        Kind::Bool => "bool",
    }
}

/// The meaning of `op` on operands of `dtype`: its scalar program, then, for narrow floats,
/// programs of one argument that round the result. Empty for types without a compute kind.
pub fn map_programs(op: MapOp, dtype: DType) -> Vec<&'static Program> {
    let Some(kind) = kind_of(dtype).filter(|k| op.def().takes.accepts(*k)) else { return vec![] };
    let mut out = vec![op.program(&op.operand_kinds(kind))];
    // A choice needs no rounding.
    if op.def().gives == Gives::Same && op != MapOp::r#where {
        match op.keeps() && dtype == DType::F8E5M2 {
            true => out.extend(convert::store_program(dtype).into_iter().chain(convert::widen_program(dtype))),
            false => out.extend(round_programs(dtype)),
        }
    }
    out
}

/// The conversion from a value of `from` to one of `to`, as programs of one argument. Empty
/// where the value stays as it is.
pub fn cast_programs(from: DType, to: DType) -> Vec<&'static Program> {
    let (Some(a), Some(b)) = (kind_of(from), kind_of(to)) else { return vec![] };
    if from.widens_to(to) && a == b || from == to {
        return vec![];
    }
    match convert::storage_kind(to) == Some(b) {
        true if a == b => vec![],
        true => convert::narrow_program(a, to).into_iter().collect(),
        false => convert::narrow_program(a, to).into_iter().chain(convert::widen_program(to)).collect(),
    }
}

/// Rounding of an f32 to a narrow float and back.
fn round_programs(dtype: DType) -> Vec<&'static Program> {
    if dtype.compute() == dtype || convert::storage_kind(dtype) == kind_of(dtype) {
        return vec![];
    }
    convert::narrow_program(Kind::F32, dtype).into_iter().chain(convert::widen_program(dtype)).collect()
}
