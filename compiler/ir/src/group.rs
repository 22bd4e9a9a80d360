//! Which nodes of a graph form one kernel, and where their values live: what fusion hands to
//! the scheduler.

use crate::graph::NodeId;
use tessera_abi::plan::BufRef;

/// What a node can be part of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Input, literal: exists in memory.
    Source,
    /// No work of its own: recomputed wherever it is read.
    View,
    /// One result element from one element of each operand.
    Element,
    Reduce,
    /// Reads its first operand, which lies in memory, where other operands say.
    Position,
    /// Writes its second operand over its first, which lies in memory, where other operands or its attributes say: the
    /// root of its group, which walks the elements that are written.
    Update,
    /// Walks along one dim in order (positions of extremes, running sums): the root of its
    /// group, into which elementwise producers come.
    Ordered,
    Dot,
    /// Takes whole lines along one dim and gives whole lines, the only one of its group: elementwise producers come into
    /// it, and elementwise readers of its shape.
    Transform,
    /// Runs alone through its reference kernel.
    Alone,
    /// Result of a node with several.
    Part,
}

/// How a group is carried out.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum GroupKind {
    /// Elementwise chains with the views between them, possibly with reductions. `Map`, `Cast`,
    /// `Full`, `Iota`, `Broadcast`, `Reshape`, `Transpose`, `Slice`, `Pad`, `Concat`,
    /// `UpdateSlice`, and `Reduce`; or what writes over a part of a tensor, with what computes that part. Where members other than the roots read a
    /// reduction back over its axes (softmax), all reductions of the group reduce the same
    /// trailing part of the roots' index space. Or one `Fft` with elementwise steps and views before it and elementwise steps
    /// after it.
    Loop,
    /// One `Dot` with what its operands (prologue) and its result (epilogue) go through:
    /// members as in `Loop` but without `Reduce`.
    Dot,
    /// Two `Dot`s, of which the second contracts the columns of the first, with elementwise steps
    /// and reductions of rows between them (attention), and what the operands and the result go
    /// through as in `Dot`.
    Attention,
    /// One node that runs its reference kernel on the calling thread: `Sort`, `Scatter`,
    /// `Scan` and whatever the code generator does not take. The `Exchange`s of one batch.
    Native,
    /// One node whose value is the bytes of its operand in the same order (`Reshape`), or that
    /// is an input: no work, or a copy where it needs its own buffer.
    Copy,
}

/// Nodes computed together. Values between members exist in registers only.
///
/// Cheap nodes (`Full`, `Iota`, views) may be members of several groups. A member that is
/// neither a root nor read by a member does not occur. Rank-0 host scalars (`Input::scalar`)
/// are neither members nor inputs: kernels receive them by value, see [`Group::scalars`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Group {
    pub kind: GroupKind,
    /// What the kernel computes, ascending, hence in topological order.
    pub members: Vec<NodeId>,
    /// Tensors from outside that members read, in operand order: graph inputs, `Literal`s and
    /// roots of other groups.
    pub inputs: Vec<NodeId>,
    /// Graph inputs that are host scalars and that members read, in operand order.
    pub scalars: Vec<NodeId>,
    /// Members whose values leave the kernel, the last of them first. Operands after the inputs. Those
    /// after the first have its shape, or in a strip one element for each row, or are exchanges like it.
    pub roots: Vec<NodeId>,
}

/// All groups of a graph, in the order in which they run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Partition {
    pub groups: Vec<Group>,
}

/// Where the values of nodes live. What writes over a part of a tensor has its memory where nothing else needs the
/// tensor, and a copy of it elsewhere. Another output may share the memory of an input of the same
/// group only if every access to that input has the index of the element that is written.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct MemoryPlan {
    /// By node; `None` for a value that never reaches memory.
    pub place: Vec<Option<BufRef>>,
    pub arena_bytes: u64,
}
