//! The body of a kernel, under construction: what a primitive is given to say how its result is computed at an index.
//!
//! A complex value is two f32 values: its parts. Complex tensors are f32 memory with the parts of an
//! element next to each other, and every node is asked for one part at an index.

use crate::graph::{Graph, Node, NodeId};
use crate::group::Group;
use crate::index::{Index, Var, linear, row_major};
use crate::schedule::{Axis, Guard, Operand, Schedule, ValueId, ValueOp};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use tessera_abi::plan::Bounds;
use tessera_base::DType;
use tessera_ops::map::MapOp;
use tessera_ops::prim::Scalar;

/// Values of one kernel; views that shift indices may need a member at many places.
const VALUES_MAX: usize = 4096;
/// Elements of one tensor: positions fit i64 with room for index arithmetic.
const ELEMS_MAX: u64 = 1 << 56;

/// Why a group has no kernel; its nodes run their reference kernels instead.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    pub node: NodeId,
    pub reason: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{} {}", self.node, self.reason)
    }
}

/// Which part of a value: of a real one there is only the first.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Part {
    Real,
    Imag,
}

/// The element type of a part.
pub fn part_type(dtype: DType) -> DType {
    if dtype.is_complex() { DType::F32 } else { dtype }
}

/// Where a part of element `at` lies.
pub fn part_at(dtype: DType, at: Index, part: Part) -> Index {
    if dtype.is_complex() { at.times(2).offset((part == Part::Imag) as i64) } else { at }
}

/// Trailing dims that all reductions of a group reduce, and one axis for their positions.
pub struct Row {
    /// Dims before them.
    pub lead: usize,
    pub shape: Vec<u64>,
    pub axis: Var,
}

/// A place among the elements of a tensor that is written over: index, and positions times strides.
#[derive(Clone, PartialEq, Debug)]
pub struct Written {
    pub at: Index,
    pub by: Vec<(ValueId, i64)>,
}

/// How a member of a group becomes values: the body of its primitive.
pub type Member = fn(&mut Body, &Asked) -> Result<ValueId, Refusal>;

/// A part of a node that is asked for.
pub struct Asked<'a> {
    pub n: NodeId,
    pub node: &'a Node,
    /// The index into its result.
    pub at: &'a [Index],
    /// Where these do not hold the value is not read.
    pub guards: &'a [Guard],
    pub part: Part,
}

impl Asked<'_> {
    /// An operand.
    ///
    /// # Errors
    /// There are not so many.
    pub fn operand(&self, i: usize) -> Result<NodeId, Refusal> {
        self.node.operands.get(i).copied().ok_or_else(|| self.refuse("lacks an operand"))
    }

    /// The index along a dim of the result; 0 where there is none, as along a dim of one position.
    pub fn along(&self, dim: usize) -> Index {
        self.at.get(dim).cloned().unwrap_or_default()
    }

    /// Why there is no such value: what the node is, or does.
    pub fn refuse(&self, reason: &str) -> Refusal {
        refuse(self.n, reason)
    }

    /// Work that is done for all positions or for none.
    ///
    /// # Errors
    /// It is asked for under a guard.
    pub fn without_guards(&self, what: &str) -> Result<(), Refusal> {
        if self.guards.is_empty() { Ok(()) } else { Err(self.refuse(&format!("{what} under a guard"))) }
    }

    /// The element type of the part.
    pub fn dtype(&self) -> DType {
        part_type(self.node.ty.dtype)
    }
}

pub fn refuse(node: NodeId, reason: &str) -> Refusal {
    Refusal { node, reason: reason.to_string() }
}

/// The values of a kernel so far.
pub struct Body<'g> {
    pub graph: &'g Graph,
    pub s: Schedule,
    /// The row that several reductions share.
    pub row: Option<Row>,
    /// The product that contracts that row.
    pub outer: Option<NodeId>,
    /// Where the root writes what is asked for, if that is over a part of a tensor.
    pub written: Option<Written>,
    members: BTreeSet<NodeId>,
    inputs: BTreeMap<NodeId, u32>,
    scalars: BTreeMap<NodeId, u32>,
    member: Member,
    /// A part of a node at an index under guards is computed once.
    known: HashMap<(NodeId, Vec<Index>, Vec<Guard>, Part), ValueId>,
}

impl<'g> Body<'g> {
    /// The body of a group without values.
    pub fn new(graph: &'g Graph, group: &Group, name: &str, member: Member) -> Body<'g> {
        Body {
            graph,
            s: Schedule { name: name.to_string(), ..Schedule::default() },
            row: None,
            outer: None,
            written: None,
            members: group.members.iter().copied().collect(),
            inputs: group.inputs.iter().enumerate().map(|(i, n)| (*n, i as u32)).collect(),
            scalars: group.scalars.iter().enumerate().map(|(i, n)| (*n, i as u32)).collect(),
            member,
            known: HashMap::new(),
        }
    }

    /// Adds an operand of the kernel.
    ///
    /// # Errors
    /// It is too large.
    pub fn operand(&mut self, n: NodeId, name: String, output: bool) -> Result<(), Refusal> {
        let ty = self.graph.ty(n);
        let elems = ty.elems().filter(|e| *e < ELEMS_MAX).ok_or_else(|| refuse(n, "is too large"))?;
        let elems = if ty.dtype.is_complex() { 2 * elems } else { elems };
        self.s.operands.push(Operand { name, dtype: part_type(ty.dtype), elems, output });
        Ok(())
    }

    /// Adds an axis.
    pub fn axis(&mut self, name: String, extent: u64, reduced: bool) -> Var {
        self.s.axes.push(Axis { name, extent, reduced });
        Var(self.s.axes.len() as u32 - 1)
    }

    pub fn push(&mut self, op: ValueOp, dtype: DType) -> ValueId {
        self.s.push(op, dtype)
    }

    pub fn cast(&mut self, v: ValueId, to: DType) -> ValueId {
        if self.s.value(v).dtype == to { v } else { self.push(ValueOp::Cast(v), to) }
    }

    /// A part of node `n` at index `at`; loads are valid only where `guards` hold.
    pub fn value(&mut self, n: NodeId, at: &[Index], guards: &[Guard], part: Part) -> Result<ValueId, Refusal> {
        let key = (n, at.to_vec(), guards.to_vec(), part);
        if let Some(v) = self.known.get(&key) {
            return Ok(*v);
        }
        if self.s.values.len() > VALUES_MAX {
            return Err(refuse(n, "is needed at too many places"));
        }
        let v = if let Some(&k) = self.scalars.get(&n) {
            self.push(ValueOp::Scalar(k), self.graph.ty(n).dtype)
        } else if let Some(&operand) = self.inputs.get(&n) {
            let ty = self.graph.ty(n);
            let at = part_at(ty.dtype, linear(at, &row_major(&ty.shape)), part);
            self.push(ValueOp::Load { operand, at, guards: guards.to_vec() }, part_type(ty.dtype))
        } else if self.members.contains(&n) {
            (self.member)(self, &Asked { n, node: self.graph.node(n), at, guards, part })?
        } else {
            return Err(refuse(n, "is neither a member nor an input of the group"));
        };
        self.known.insert(key, v);
        Ok(v)
    }

    /// The real value of each operand at the index that is asked for.
    ///
    /// # Errors
    /// One has none.
    pub fn operands(&mut self, q: &Asked) -> Result<Vec<ValueId>, Refusal> {
        q.node.operands.iter().map(|&o| self.value(o, q.at, q.guards, Part::Real)).collect()
    }

    /// The axis of this name, new where there is none.
    pub fn named_axis(&mut self, name: String, extent: u64, reduced: bool) -> Var {
        match self.s.axes.iter().position(|a| a.name == name) {
            Some(i) => Var(i as u32),
            None => self.axis(name, extent, reduced),
        }
    }

    /// The operand of the kernel that holds `n`.
    ///
    /// # Errors
    /// `n` is not in memory.
    pub fn input(&self, q: &Asked, n: NodeId) -> Result<u32, Refusal> {
        self.inputs.get(&n).copied().ok_or_else(|| q.refuse("reads what is not in memory"))
    }

    /// States another part of what is asked for, which came with it.
    pub fn known_part(&mut self, q: &Asked, part: Part, v: ValueId) {
        self.known.insert((q.n, q.at.to_vec(), q.guards.to_vec(), part), v);
    }

    /// The number of positions of an axis that is known by its name, new.
    pub fn reduced_axis(&mut self, extent: u64) -> Var {
        self.axis(format!("r{}", self.s.axes.len()), extent, true)
    }

    /// A constant, rounded to `dtype` by the conversion program where f32 would round twice.
    pub fn constant(&mut self, value: Scalar, dtype: DType) -> ValueId {
        let value = match value {
            Scalar::I(i) if dtype.is_float() => Scalar::F(i as f64),
            Scalar::F(x) if !dtype.is_float() => Scalar::I(x as i64),
            v => v,
        };
        if dtype.is_float() && dtype != DType::F64 && dtype != DType::F32 {
            let v = self.push(ValueOp::Const(value), DType::F64);
            return self.cast(v, dtype);
        }
        self.push(ValueOp::Const(value), dtype)
    }

    /// `inner` at `at - start` where that lies inside it, else `outer`.
    pub fn window(
        &mut self,
        (inner, part): (NodeId, Part),
        start: &[i64],
        at: &[Index],
        guards: &[Guard],
        outer: impl FnOnce(&mut Self, &[Guard]) -> Result<ValueId, Refusal>,
    ) -> Result<ValueId, Refusal> {
        let graph = self.graph;
        let shape = &graph.ty(inner).shape;
        let mut within = vec![];
        let mut place = Vec::with_capacity(at.len());
        for ((e, d), s) in at.iter().zip(shape).zip(start) {
            let shifted = e.offset(-s);
            let (lo, hi) = shifted.range(&|v| self.s.range(v));
            if lo < 0 || hi >= *d as i64 {
                within.push(Guard { index: shifted.clone(), lo: 0, hi: *d as i64 });
            }
            place.push(shifted);
        }
        if within.is_empty() {
            return self.value(inner, &place, guards, part);
        }
        let all: Vec<Guard> = guards.iter().chain(&within).cloned().collect();
        let a = self.value(inner, &place, &all, part)?;
        let b = outer(self, guards)?;
        // A load gives zero where its guards fail.
        let zero = match self.s.value(b).op {
            ValueOp::Const(Scalar::F(x)) => x.to_bits() == 0,
            ValueOp::Const(Scalar::I(x)) => x == 0,
            _ => false,
        };
        if zero && matches!(&self.s.value(a).op, ValueOp::Load { guards, .. } if *guards == all) {
            return Ok(a);
        }
        Ok(self.select(within, a, b))
    }

    pub fn select(&mut self, within: Vec<Guard>, a: ValueId, b: ValueId) -> ValueId {
        let dtype = self.s.value(a).dtype;
        let c = self.push(ValueOp::Within(within), DType::Bool);
        self.push(ValueOp::Map { op: MapOp::r#where, args: vec![c, a, b] }, dtype)
    }

    /// The position along `axis` of `a` that `index` names at `at`.
    pub fn position(
        &mut self,
        q: &Asked,
        index: (NodeId, &[Index]),
        (a, axis): (NodeId, usize),
        block: Option<u64>,
    ) -> Result<ValueId, Refusal> {
        q.without_guards("reads positions")?;
        let size = self.graph.ty(a).shape.get(axis).copied().ok_or_else(|| q.refuse("lacks a dim"))?;
        let arg = self.value(index.0, index.1, &[], Part::Real)?;
        let op = ValueOp::Position { arg, bounds: Bounds { axis: axis as u32, size, block } };
        // The parts of a complex number have one.
        let known = self.s.values.iter().position(|v| v.op == op);
        Ok(known.map_or_else(|| self.push(op, DType::I64), |i| ValueId(i as u32)))
    }

    /// States that the root writes element `place` of its result, further along some dims by the values given for them.
    pub fn write_at(&mut self, q: &Asked, place: &[Index], by: &[(usize, ValueId)]) {
        let strides = row_major(&q.node.ty.shape);
        let by = by.iter().map(|&(axis, v)| (v, strides[axis])).collect();
        self.written = Some(Written { at: linear(place, &strides), by });
    }

    /// The element of `a` at `place`, further along some dims by the values given for them.
    pub fn read_at(
        &mut self,
        q: &Asked,
        a: NodeId,
        place: &[Index],
        by: &[(usize, ValueId)],
    ) -> Result<ValueId, Refusal> {
        let ty = self.graph.ty(a);
        let operand = self.input(q, a)?;
        let strides = row_major(&ty.shape);
        let parts = if ty.dtype.is_complex() { 2 } else { 1 };
        let by = by.iter().map(|&(axis, v)| (v, strides[axis] * parts)).collect();
        let at = part_at(ty.dtype, linear(place, &strides), q.part);
        Ok(self.push(ValueOp::Gather { operand, at, by, guards: vec![] }, part_type(ty.dtype)))
    }
}
