//! Schedule IR: what one kernel computes, free of any order (the body), and how it shall be
//! computed (the directives). Directives change speed, never results.
//!
//! The body is a set of values over named axes. A load reads a buffer at an index expression of
//! the axes; a reduction or product makes one of its axes vanish. The index space of a store is
//! the axes it mentions.

pub mod attention;
pub mod text;
pub mod verify;
pub mod conv_windows;

use crate::index::{Index, Var};
use tessera_abi::plan::Bounds;
use tessera_base::DType;
use tessera_ops::map::MapOp;
use tessera_ops::prim::{FftKind, Order, Reduction, Scalar};

/// A value of the body, printed as `%3`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct ValueId(pub u32);

/// An axis; its [`Var`] is its position.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Axis {
    pub name: String,
    /// Values `0..extent`.
    pub extent: u64,
    /// Vanishes in a reduction or product. Several may share one: a row that is reduced more than
    /// once (norms, softmax), and that a store which mentions it walks again at the end.
    pub reduced: bool,
}

/// A tensor operand; operands are numbered inputs first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Operand {
    pub name: String,
    pub dtype: DType,
    /// Row-major.
    pub elems: u64,
    pub output: bool,
}

/// `lo <= index < hi`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Guard {
    pub index: Index,
    pub lo: i64,
    pub hi: i64,
}

#[derive(Clone, PartialEq, Debug)]
pub enum ValueOp {
    /// An element of a buffer by its row-major position; zero where a guard fails.
    Load {
        operand: u32,
        at: Index,
        guards: Vec<Guard>,
    },
    /// An element at `at` plus each position of `by` times its stride. `at` is in range for
    /// every position that the [`ValueOp::Position`]s let through.
    Gather {
        operand: u32,
        at: Index,
        by: Vec<(ValueId, i64)>,
        guards: Vec<Guard>,
    },
    /// A position that comes from data, counted from the start, i64. One that is out of bounds
    /// stops the kernel with an error.
    Position {
        arg: ValueId,
        bounds: Bounds,
    },
    /// The `n`-th host scalar.
    Scalar(u32),
    Const(Scalar),
    /// The index itself, i64.
    Index(Index),
    /// All guards hold, bool.
    Within(Vec<Guard>),
    /// The bits of an f16 number, i16.
    HalfBits(ValueId),
    /// The f16 number in two bytes.
    Half {
        low: ValueId,
        high: ValueId,
    },
    /// Random word `at` of a key: 32 bits as i64, see [`tessera_ops::reference::random_bits_program`].
    Random {
        key: [ValueId; 2],
        at: Index,
    },
    Map {
        op: MapOp,
        args: Vec<ValueId>,
    },
    Cast(ValueId),
    /// What a product takes of a tf32 number: the f32 nearest to it with 10 fraction bits.
    RoundTf32(ValueId),
    /// In the accumulator type of the argument, in the canonical order along `axis`.
    Reduce {
        kind: Reduction,
        arg: ValueId,
        axis: Var,
    },
    /// Where along `axis` the first largest or smallest element stands, i64; NaN is more
    /// extreme than any number.
    ArgReduce {
        largest: bool,
        arg: ValueId,
        axis: Var,
    },
    /// The chain of all elements up to this one along the parallel axis `axis`, in ascending
    /// order from `start`, in the type of the value.
    Cumulate {
        kind: Reduction,
        start: Scalar,
        arg: ValueId,
        axis: Var,
    },
    /// A part of the Fourier transform of `args` along `axis`, at position `to` of the result: of `points` numbers (of the
    /// real side for the real kinds), by the plan of [`tessera_ops::fft`] with the factors in operand `table`, not scaled.
    /// The real kinds have one argument or one part. An inverse transform is a forward one whose parts trade places on the
    /// way in and out.
    Transform {
        kind: FftKind,
        points: u64,
        args: Vec<ValueId>,
        axis: Var,
        to: Var,
        table: u32,
        imag: bool,
    },
    /// `Σ a·b` along `axis`, in the type of the value: fused-multiply-add chains of `leaf` steps in ascending order, under a
    /// balanced tree ([`tessera_ops::prim::fold`]). `within`: only the steps below this index, over axes of the result;
    /// `beyond`: only those from it on. `order`: another one than the chain, for factors of bf16.
    Dot {
        a: ValueId,
        b: ValueId,
        axis: Var,
        within: Option<Index>,
        beyond: Option<Index>,
        order: Order,
        leaf: u64,
    },
}

#[derive(Clone, PartialEq, Debug)]
pub struct Value {
    pub op: ValueOp,
    pub dtype: DType,
}

/// `operand[at] = value` for all values of the axes in `at`. `at` is one to one.
///
/// `by`: further on by each of these positions times its stride. `at` is then in range for every position that the
/// [`ValueOp::Position`]s let through, and axes that it lacks are walked in ascending order ([`Schedule::ordered`]): of
/// several values that go to one element the last one stays. What is not written keeps what the memory held before.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Store {
    pub operand: u32,
    pub at: Index,
    pub by: Vec<(ValueId, i64)>,
    pub value: ValueId,
}

/// How to compute. What a kernel has no use for is ignored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Directive {
    /// Loop order of the parallel axes, outermost first.
    Order(Vec<Var>),
    /// One grid point computes `size` positions of the parallel axis `axis` (MC, NC of a
    /// product); an axis without this lies inside the point.
    Tile { axis: Var, size: u64 },
    /// `axis` runs along vector lanes, `lanes` at a time.
    Vectorize { axis: Var, lanes: u32 },
    /// Register tile of a product: `rows` by `vectors` vectors.
    Registers { rows: u32, vectors: u32 },
    /// How the steps of a register tile are written: `unroll` of them in a row (of nested steps, at most so many), and lines
    /// of the right factor asked for `distance` steps before they are read, where a panel of it is too large for the nearest
    /// cache; 0 asks for none. Without this 4 and 0.
    Steps { unroll: u32, distance: u32 },
    /// Length of a block along the contracted axis (KC).
    Block { axis: Var, size: u64 },
    /// Copies operand 0 or 1 of the product into panels first.
    Pack { operand: u32 },
    /// Sums leaves in a grid of their own and combines them in a second kernel.
    SplitReduction,
    /// Asks for what is read next while this is worked on: the next row, or elements further on.
    Prefetch,
    /// A product by the processor's unit for matrices, in [`Order::Units`]. Without it vectors compute the same bits.
    MatrixUnit,
    /// A product by units for matrices in [`Order::Atoms`]: so many warps share the rows of a point's block and its columns.
    Warps { rows: u32, cols: u32 },
    /// Blocks along the contracted axis that are staged ahead.
    Stages(u32),
    /// Writes past the cache (outputs larger than it).
    Stream,
    /// Rows that are reduced several times: each reduction of a row goes together with the next
    /// one of the row before it, and not on its own.
    Overlap,
    /// Exchanges the roles of the two operands of a product.
    Swap,
    /// The left operand of a product (after an exchange) is windows over an image: a grid point
    /// keeps the part of the image under them, with its padding, and reads the windows there.
    Windows,
    /// Grid points that are worth a thread's wake-up.
    Grain(u64),
    /// Copies of the body of innermost loops.
    Unroll(u32),
}

#[derive(Clone, PartialEq, Debug, Default)]
pub struct Schedule {
    pub name: String,
    pub operands: Vec<Operand>,
    /// Host scalars in operand order.
    pub scalars: Vec<DType>,
    pub axes: Vec<Axis>,
    pub values: Vec<Value>,
    pub stores: Vec<Store>,
    /// Sums of floats are compensated: Neumaier's pairs in the canonical order.
    pub compensated: bool,
    pub directives: Vec<Directive>,
}

/// What a lane is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// A part of a vector register; points are for a few threads, each with caches of its own.
    Cpu,
    /// A thread of a group; thousands of points run at once.
    Gpu,
}

/// What the cost model knows of a machine. But for the order of bf16 products it decides speed, never results.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Machine {
    pub class: Class,
    /// Bytes of a vector register.
    pub vector_bytes: u32,
    pub vector_registers: u32,
    /// The longest vector of a kernel, a power of two.
    pub lanes_max: u32,
    /// How products of bf16 numbers are summed: the one thing of a machine that results depend on.
    pub bf16: Order,
    /// Whether code of the runtime multiplies by numbers in blocks in registers; the bits are those of kernels.
    pub block_products: bool,
    pub l1_bytes: u64,
    pub l2_bytes: u64,
    /// Last-level cache.
    pub l3_bytes: u64,
}

impl Schedule {
    pub fn value(&self, v: ValueId) -> &Value {
        &self.values[v.0 as usize]
    }

    pub fn extent(&self, axis: Var) -> u64 {
        self.axes.get(axis.0 as usize).map_or(1, |a| a.extent)
    }

    /// Inclusive bounds of an axis.
    pub fn range(&self, axis: Var) -> (i64, i64) {
        (0, self.extent(axis).saturating_sub(1).min(i64::MAX as u64) as i64)
    }

    /// Whether a store walks `axis`.
    pub fn walks(&self, axis: Var) -> bool {
        self.stores.iter().any(|st| st.at.uses(axis)) || self.ordered().contains(&axis)
    }

    /// Axes along which stores may come back to an element: they are walked in this order, each of them by one grid point.
    pub fn ordered(&self) -> Vec<Var> {
        let Some(st) = self.stores.iter().find(|st| !st.by.is_empty()) else { return vec![] };
        let axes = (0..self.axes.len() as u32).map(Var);
        axes.filter(|v| !self.axes[v.0 as usize].reduced && self.extent(*v) != 1 && !st.at.uses(*v)).collect()
    }

    /// The step of a store along `axis`; `None` where it is uneven or data says where it leads.
    pub fn store_stride(&self, st: &Store, axis: Var) -> Option<i64> {
        if self.ordered().contains(&axis) { None } else { st.at.stride(axis) }
    }

    /// The axes along which the operands of product `dot` make its rows and its columns: one that only this operand
    /// depends on, along which results are neighbours in memory, unless it is very short, else the longest. An operand that
    /// is the same for all its rows or columns (a constant, a row that is repeated) takes one that neither depends on; rows
    /// that differ in their steps are rows in any case.
    pub fn sides(&self, dot: ValueId) -> (Option<Var>, Option<Var>) {
        const SHORT: u64 = 4;
        let ValueOp::Dot { a, b, ref within, ref beyond, .. } = self.value(dot).op else { return (None, None) };
        let domains = self.domains();
        let (left, right) = (&domains[a.0 as usize], &domains[b.0 as usize]);
        let parallel = |v: &Var| self.axes.get(v.0 as usize).is_some_and(|a| !a.reduced && a.extent != 1);
        let contiguous = |v: &Var| self.stores.first().is_some_and(|st| st.at.stride(*v) == Some(1));
        let best = |axes: &mut dyn Iterator<Item = Var>| {
            axes.filter(parallel).max_by_key(|v| (contiguous(v) && self.extent(*v) >= SHORT, self.extent(*v)))
        };
        let bounds: Vec<&Index> = within.iter().chain(beyond).collect();
        let bounded = |v: &Var, rows: bool| bounds.is_empty() || bounds.iter().any(|b| b.uses(*v)) == rows;
        let m = best(&mut left.iter().copied().filter(|v| !right.contains(v) && bounded(v, true)));
        let n = best(&mut right.iter().copied().filter(|v| !left.contains(v)));
        let free = |taken: Option<Var>, rows: bool| {
            let all = (0..self.axes.len() as u32).map(Var).filter(|v| self.walks(*v) && Some(*v) != taken);
            best(&mut all.filter(|v| bounded(v, rows) && !left.contains(v) && !right.contains(v)))
        };
        let n = n.or_else(|| free(m, false));
        (m.or_else(|| free(n, true)), n)
    }

    /// Where loads behind `v` are uneven along `axis`: the length of the rows into which it has
    /// to be cut so that they are even. `None` where they are even, or uneven in rows too.
    pub fn row_along(&self, v: ValueId, axis: Var) -> Option<u64> {
        const ROW: Var = Var(u32::MAX);
        const PLACE: Var = Var(u32::MAX - 1);
        let indices = self.indices(v);
        let length = indices.iter().flat_map(|e| e.divisors(axis)).min()?;
        let rows = self.extent(axis) / length.unsigned_abs();
        if length <= 0 || !self.extent(axis).is_multiple_of(length as u64) {
            return None;
        }
        let range = |v: Var| match v {
            ROW => (0, rows as i64 - 1),
            PLACE => (0, length - 1),
            v => self.range(v),
        };
        let cut = Index::var(ROW).times(length).plus(&Index::var(PLACE));
        let even = |e: &&Index| e.substitute(&|v| (v == axis).then(|| cut.clone()), &range).stride(PLACE).is_some();
        indices.iter().all(even).then_some(length as u64)
    }

    /// All indices behind `v`.
    fn indices(&self, v: ValueId) -> Vec<&Index> {
        let mut out = vec![];
        let mut todo = vec![v];
        while let Some(v) = todo.pop() {
            match &self.value(v).op {
                ValueOp::Load { at, guards, .. } | ValueOp::Gather { at, guards, .. } => {
                    out.push(at);
                    out.extend(guards.iter().map(|g| &g.index));
                }
                ValueOp::Within(guards) => out.extend(guards.iter().map(|g| &g.index)),
                _ => {}
            }
            todo.extend(self.args(v));
        }
        out
    }

    /// The sizes of nested loops over `axis`, outermost first, in which the indices behind `v`
    /// have no divisions; one size where there is no such nest.
    pub fn nest_along(&self, v: ValueId, axis: Var) -> Vec<u64> {
        let mut steps: Vec<u64> =
            self.indices(v).iter().flat_map(|e| e.divisors(axis)).map(|n| n.unsigned_abs()).collect();
        steps.sort_unstable_by(|a, b| b.cmp(a));
        steps.dedup();
        let all: Vec<u64> = [self.extent(axis)].into_iter().chain(steps).chain([1]).collect();
        if all.windows(2).all(|w| w[1] > 0 && w[0].is_multiple_of(w[1])) {
            all.windows(2).map(|w| w[0] / w[1]).collect()
        } else {
            vec![self.extent(axis)]
        }
    }

    pub fn push(&mut self, op: ValueOp, dtype: DType) -> ValueId {
        self.values.push(Value { op, dtype });
        ValueId(self.values.len() as u32 - 1)
    }

    /// Whether nothing that is stored has elements: then there is nothing to do.
    pub fn stores_nothing(&self) -> bool {
        self.stores.iter().all(|st| self.operands[st.operand as usize].elems == 0)
    }

    /// The values that `v` is made of.
    pub fn args(&self, v: ValueId) -> Vec<ValueId> {
        match &self.value(v).op {
            ValueOp::Map { args, .. } | ValueOp::Transform { args, .. } => args.clone(),
            ValueOp::Cast(a)
            | ValueOp::HalfBits(a)
            | ValueOp::RoundTf32(a)
            | ValueOp::Reduce { arg: a, .. }
            | ValueOp::ArgReduce { arg: a, .. }
            | ValueOp::Cumulate { arg: a, .. }
            | ValueOp::Position { arg: a, .. } => vec![*a],
            ValueOp::Gather { by, .. } => by.iter().map(|(v, _)| *v).collect(),
            ValueOp::Random { key, .. } => key.to_vec(),
            ValueOp::Half { low, high } => vec![*low, *high],
            ValueOp::Dot { a, b, .. } => vec![*a, *b],
            _ => vec![],
        }
    }

    /// The axes that each value depends on, sorted.
    pub fn domains(&self) -> Vec<Vec<Var>> {
        let mut out: Vec<Vec<Var>> = vec![];
        for (i, value) in self.values.iter().enumerate() {
            let mut axes = vec![];
            let mut add = |index: &Index| index.each_var(&mut |v| axes.push(v));
            match &value.op {
                ValueOp::Load { at, guards, .. } => {
                    add(at);
                    guards.iter().for_each(|g| add(&g.index));
                }
                ValueOp::Gather { at, guards, .. } => {
                    add(at);
                    guards.iter().for_each(|g| add(&g.index));
                }
                ValueOp::Index(e) | ValueOp::Random { at: e, .. } => add(e),
                ValueOp::Within(guards) => guards.iter().for_each(|g| add(&g.index)),
                ValueOp::Dot { within, beyond, .. } => within.iter().chain(beyond).for_each(add),
                _ => {}
            }
            for a in self.args(ValueId(i as u32)) {
                axes.extend(out.get(a.0 as usize).into_iter().flatten());
            }
            match &value.op {
                ValueOp::Reduce { axis, .. } | ValueOp::ArgReduce { axis, .. } | ValueOp::Dot { axis, .. } => {
                    axes.retain(|a| a != axis)
                }
                ValueOp::Cumulate { axis, .. } => axes.push(*axis),
                ValueOp::Transform { axis, to, .. } => {
                    axes.retain(|a| a != axis);
                    axes.push(*to);
                }
                _ => {}
            }
            axes.sort();
            axes.dedup();
            out.push(axes);
        }
        out
    }
}
