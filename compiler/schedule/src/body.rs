//! The body of a kernel: every member as a value at the index where a root needs it.
//!
//! A complex value is two f32 values: its parts. Complex tensors are f32 memory with the parts of an
//! element next to each other, and every node is asked for one part at an index.
//!
//! Views (broadcast, transpose, slice, windows, reshape) disappear into index expressions; padding,
//! concatenation and slice assignment become selections whose loads are guarded.

mod positions;
mod ordered;

use crate::Refusal;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use tessera_base::DType;
use tessera_ir::graph::{Graph, Node, NodeId, Policy};
use tessera_ir::group::{Group, GroupKind};
use tessera_ir::index::{Index, Var, delinear, linear, row_major};
use tessera_ir::schedule::{Axis, Guard, Operand, Schedule, Store, ValueId, ValueOp};
use tessera_ops::map::MapOp;
use tessera_ops::prim::{Prim, Reduction, Scalar, Steps};

/// Values of one kernel; views that shift indices may need a member at many places.
const VALUES_MAX: usize = 4096;
/// Elements of one tensor: positions fit i64 with room for index arithmetic.
const ELEMS_MAX: u64 = 1 << 56;

struct Body<'g> {
    graph: &'g Graph,
    members: BTreeSet<NodeId>,
    inputs: BTreeMap<NodeId, u32>,
    scalars: BTreeMap<NodeId, u32>,
    s: Schedule,
    /// The row that several reductions share.
    row: Option<Row>,
    /// The product that contracts that row.
    outer: Option<NodeId>,
    /// A part of a node at an index under guards is computed once.
    known: HashMap<(NodeId, Vec<Index>, Vec<Guard>, Part), ValueId>,
}

/// Which part of a value: of a real one there is only the first.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Part {
    Real,
    Imag,
}

/// The element type of a part.
fn part_type(dtype: DType) -> DType {
    if dtype.is_complex() { DType::F32 } else { dtype }
}

/// Where a part of element `at` lies.
fn part_at(dtype: DType, at: Index, part: Part) -> Index {
    if dtype.is_complex() { at.times(2).offset((part == Part::Imag) as i64) } else { at }
}

/// Trailing dims that all reductions of a group reduce, and one axis for their positions.
struct Row {
    /// Dims before them.
    lead: usize,
    shape: Vec<u64>,
    axis: Var,
}

impl Row {
    /// Lead dims and whole shape of what the reductions reduce, where it is the same for all.
    fn shape(graph: &Graph, group: &Group) -> Option<(usize, Vec<u64>)> {
        let mut found: Option<(usize, Vec<u64>)> = None;
        for &m in &group.members {
            let Prim::Reduce { axes, .. } = &graph.node(m).prim else { continue };
            let shape = &graph.ty(*graph.node(m).operands.first()?).shape;
            let lead = shape.len().checked_sub(axes.len())?;
            let here = (lead, shape.clone());
            if axes.iter().any(|a| *a < lead) || found.as_ref().is_some_and(|f| *f != here) {
                return None;
            }
            found = Some(here);
        }
        found
    }
}

pub fn build(graph: &Graph, group: &Group, name: &str) -> Result<Schedule, Refusal> {
    let mut b = Body {
        graph,
        members: group.members.iter().copied().collect(),
        inputs: group.inputs.iter().enumerate().map(|(i, n)| (*n, i as u32)).collect(),
        scalars: group.scalars.iter().enumerate().map(|(i, n)| (*n, i as u32)).collect(),
        s: Schedule { name: name.to_string(), ..Schedule::default() },
        row: None,
        outer: None,
        known: HashMap::new(),
    };
    if group.kind == GroupKind::Strip {
        b.outer = group.members.iter().copied().rfind(|m| matches!(graph.node(*m).prim, Prim::Dot { .. }));
    }
    for (i, &n) in group.inputs.iter().enumerate() {
        b.operand(n, format!("in{i}"), false)?;
    }
    for (i, &n) in group.roots.iter().enumerate() {
        b.operand(n, format!("out{i}"), true)?;
    }
    b.s.scalars = group.scalars.iter().map(|n| graph.ty(*n).dtype).collect();
    let first = group.roots.first().ok_or(Refusal { node: NodeId(0), reason: "a group without a root".into() })?;
    let shape = &graph.ty(*first).shape;
    let at = b.root_axes(shape, Row::shape(graph, group));
    for (i, &root) in group.roots.iter().enumerate() {
        let here = &graph.ty(root).shape;
        // Of a row of a strip there is one element, with or without a dim for it.
        let one = |rows: &[u64]| here == rows || here.split_last().is_some_and(|(n, lead)| (*n, lead) == (1, rows));
        let per_row = group.kind == GroupKind::Strip && shape.split_last().is_some_and(|(_, rows)| one(rows));
        if here != shape && !per_row {
            return Err(Refusal { node: root, reason: "has another shape than the kernel's other results".into() });
        }
        let mut at = at.clone();
        at.truncate(here.len());
        if let (true, Some(last)) = (per_row && here.len() == shape.len(), at.last_mut()) {
            *last = Index::default();
        }
        let dtype = graph.ty(root).dtype;
        for &part in if dtype.is_complex() { &[Part::Real, Part::Imag][..] } else { &[Part::Real] } {
            let value = b.value(root, &at, &[], part)?;
            let place = part_at(dtype, linear(&at, &row_major(here)), part);
            b.s.stores.push(Store { operand: (group.inputs.len() + i) as u32, at: place, value });
        }
    }
    b.free_row();
    Ok(b.s)
}

impl Body<'_> {
    /// An axis for each dim of the roots; one for the row if they are rows.
    fn root_axes(&mut self, shape: &[u64], row: Option<(usize, Vec<u64>)>) -> Vec<Index> {
        let walked = self.outer.is_none() && row.as_ref().is_some_and(|(_, s)| s == shape);
        let lead = row.as_ref().filter(|_| walked).map_or(shape.len(), |r| r.0);
        // The one position of a dim of size 1 is 0, as broadcasts say it.
        let place = |axis: Var, size: u64| if size == 1 { Index::default() } else { Index::var(axis) };
        let mut at: Vec<Index> =
            (0..lead).map(|i| place(self.axis(format!("i{i}"), shape[i], false), shape[i])).collect();
        if let Some((lead, shape)) = row {
            let axis = self.axis(format!("r{}", self.s.axes.len()), shape[lead..].iter().product(), true);
            if walked {
                at.extend(delinear(&Index::var(axis), &shape[lead..], &|v| self.s.range(v)));
            }
            self.row = Some(Row { lead, shape, axis });
        }
        at
    }

    /// What was taken for a row may turn out not to be reduced: a slice hides the reduction.
    fn free_row(&mut self) {
        let Some(row) = &self.row else { return };
        let reduces = |v: &tessera_ir::schedule::Value| match v.op {
            ValueOp::Reduce { axis, .. } | ValueOp::Dot { axis, .. } => axis == row.axis,
            _ => false,
        };
        if !self.s.values.iter().any(reduces) && self.s.walks(row.axis) {
            self.s.axes[row.axis.0 as usize].reduced = false;
        }
    }

    fn operand(&mut self, n: NodeId, name: String, output: bool) -> Result<(), Refusal> {
        let ty = self.graph.ty(n);
        let elems = ty.elems().filter(|e| *e < ELEMS_MAX).ok_or_else(|| refuse(n, "is too large"))?;
        let elems = if ty.dtype.is_complex() { 2 * elems } else { elems };
        self.s.operands.push(Operand { name, dtype: part_type(ty.dtype), elems, output });
        Ok(())
    }

    fn axis(&mut self, name: String, extent: u64, reduced: bool) -> Var {
        self.s.axes.push(Axis { name, extent, reduced });
        Var(self.s.axes.len() as u32 - 1)
    }

    fn push(&mut self, op: ValueOp, dtype: DType) -> ValueId {
        self.s.push(op, dtype)
    }

    fn cast(&mut self, v: ValueId, to: DType) -> ValueId {
        if self.s.value(v).dtype == to { v } else { self.push(ValueOp::Cast(v), to) }
    }

    /// A part of node `n` at index `at`; loads are valid only where `guards` hold.
    fn value(&mut self, n: NodeId, at: &[Index], guards: &[Guard], part: Part) -> Result<ValueId, Refusal> {
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
            self.member(n, at, guards, part)?
        } else {
            return Err(refuse(n, "is neither a member nor an input of the group"));
        };
        self.known.insert(key, v);
        Ok(v)
    }

    fn member(&mut self, n: NodeId, at: &[Index], guards: &[Guard], part: Part) -> Result<ValueId, Refusal> {
        let graph = self.graph;
        let node = graph.node(n);
        let dtype = part_type(node.ty.dtype);
        let operand = |i: usize| node.operands.get(i).copied().ok_or_else(|| refuse(n, "lacks an operand"));
        // What has no imaginary part of its own.
        if part == Part::Imag && matches!(node.prim, Prim::Full { .. } | Prim::Iota { .. }) {
            return Ok(self.constant(Scalar::I(0), dtype));
        }
        match &node.prim {
            Prim::Full { value } => Ok(self.constant(*value, dtype)),
            Prim::Iota { axis } => {
                let index = at.get(*axis).cloned().unwrap_or_default();
                let v = self.push(ValueOp::Index(index), DType::I64);
                Ok(self.cast(v, dtype))
            }
            Prim::Map(op) => {
                let args = node
                    .operands
                    .iter()
                    .map(|o| self.value(*o, at, guards, Part::Real))
                    .collect::<Result<Vec<_>, _>>()?;
                Ok(self.push(ValueOp::Map { op: *op, args }, dtype))
            }
            Prim::Cast => self.conversion(operand(0)?, node.ty.dtype, at, guards, part),
            Prim::Part { imag } => self.value(operand(0)?, at, guards, if *imag { Part::Imag } else { Part::Real }),
            Prim::Complex => self.value(operand((part == Part::Imag) as usize)?, at, guards, Part::Real),
            Prim::Broadcast { .. }
            | Prim::Reshape
            | Prim::Transpose { .. }
            | Prim::Slice { .. }
            | Prim::Windows { .. } => {
                let inner = self.view(node, operand(0)?, at);
                self.value(operand(0)?, &inner, guards, part)
            }
            Prim::Pad { low, .. } => {
                let low: Vec<i64> = low.iter().map(|l| *l as i64).collect();
                self.window((operand(0)?, part), &low, at, guards, |s, g| s.value(operand(1)?, &[], g, part))
            }
            Prim::UpdateSlice { start, step } if step.iter().all(|s| *s == 1) => {
                self.window((operand(1)?, part), start, at, guards, |s, g| s.value(operand(0)?, at, g, part))
            }
            Prim::Concat { axis } => self.concat(node, *axis, at, guards, part),
            Prim::Reduce { kind, axes } => {
                if !guards.is_empty() {
                    return Err(refuse(n, "reduces under a guard"));
                }
                self.reduce(n, node, *kind, axes, at, part)
            }
            Prim::Dot { accum, steps, pairs } => {
                if !guards.is_empty() {
                    return Err(refuse(n, "contracts under a guard"));
                }
                self.dot(n, node, (*accum, *steps, *pairs), at)
            }
            Prim::Take { axis } => self.take(n, node, *axis, at, guards),
            Prim::TakeAlong { axis } => self.take_along(n, node, *axis, at, guards),
            Prim::Gather => self.gather(n, node, at, guards),
            Prim::DynamicSlice { sizes } => self.dynamic_slice(n, node, sizes, at, guards),
            Prim::ArgReduce { largest, axis } => self.arg_reduce(n, node, *largest, *axis, at, guards),
            Prim::Cumulate { kind, axis } => self.cumulate(n, node, *kind, *axis, at, guards),
            other => Err(refuse(n, &format!("is `{}`, which kernels do not cover", prim_word(other)))),
        }
    }

    /// `x` converted to `to`: a real number has no imaginary part, a complex one gives its real
    /// part, and counts as true where either part is not 0.
    fn conversion(
        &mut self,
        x: NodeId,
        to: DType,
        at: &[Index],
        guards: &[Guard],
        part: Part,
    ) -> Result<ValueId, Refusal> {
        let from = self.graph.ty(x).dtype;
        match (from.is_complex(), to.is_complex()) {
            (false, true) if part == Part::Imag => Ok(self.constant(Scalar::I(0), DType::F32)),
            (true, true) => self.value(x, at, guards, part),
            (true, false) if to == DType::Bool => {
                let parts = [Part::Real, Part::Imag].map(|p| self.value(x, at, guards, p));
                let mut args = vec![];
                for v in parts {
                    args.push(self.cast(v?, DType::Bool));
                }
                Ok(self.push(ValueOp::Map { op: MapOp::logical_or, args }, DType::Bool))
            }
            _ => {
                let v = self.value(x, at, guards, Part::Real)?;
                Ok(self.cast(v, part_type(to)))
            }
        }
    }

    /// A constant, rounded to `dtype` by the conversion program where f32 would round twice.
    fn constant(&mut self, value: Scalar, dtype: DType) -> ValueId {
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

    /// The operand's index for a node that only rearranges.
    fn view(&self, node: &Node, operand: NodeId, at: &[Index]) -> Vec<Index> {
        let shape = &self.graph.ty(operand).shape;
        let get = |i: usize| at.get(i).cloned().unwrap_or_default();
        match &node.prim {
            Prim::Broadcast { dims } => {
                shape.iter().zip(dims).map(|(d, to)| if *d == 1 { Index::default() } else { get(*to) }).collect()
            }
            Prim::Transpose { perm } => {
                let mut inner = vec![Index::default(); shape.len()];
                for (i, p) in perm.iter().enumerate() {
                    if let Some(slot) = inner.get_mut(*p) {
                        *slot = get(i);
                    }
                }
                inner
            }
            Prim::Slice { start, step } => (0..shape.len())
                .map(|i| get(i).times(step.get(i).copied().unwrap_or(1)).offset(start.get(i).copied().unwrap_or(0)))
                .collect(),
            Prim::Windows { stride, dilation } => {
                let lead = shape.len().saturating_sub(stride.len());
                let windowed = stride
                    .iter()
                    .zip(dilation)
                    .enumerate()
                    .map(|(i, (s, d))| get(lead + i).times(*s as i64).plus(&get(shape.len() + i).times(*d as i64)));
                (0..lead).map(get).chain(windowed).collect()
            }
            _ => {
                let flat = linear(at, &row_major(&node.ty.shape));
                delinear(&flat, shape, &|v| self.s.range(v))
            }
        }
    }

    /// `inner` at `at - start` where that lies inside it, else `outer`.
    fn window(
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

    fn select(&mut self, within: Vec<Guard>, a: ValueId, b: ValueId) -> ValueId {
        let dtype = self.s.value(a).dtype;
        let c = self.push(ValueOp::Within(within), DType::Bool);
        self.push(ValueOp::Map { op: MapOp::r#where, args: vec![c, a, b] }, dtype)
    }

    fn concat(
        &mut self,
        node: &Node,
        axis: usize,
        at: &[Index],
        guards: &[Guard],
        part: Part,
    ) -> Result<ValueId, Refusal> {
        let graph = self.graph;
        let along = at.get(axis).cloned().unwrap_or_default();
        let mut parts = vec![];
        let mut offset = 0i64;
        for &o in &node.operands {
            let size = graph.ty(o).shape.get(axis).copied().unwrap_or(0) as i64;
            let shifted = along.offset(-offset);
            let (lo, hi) = shifted.range(&|v| self.s.range(v));
            offset += size;
            if size == 0 || hi < 0 || lo >= size {
                continue;
            }
            let mut place = at.to_vec();
            place[axis] = shifted.clone();
            let mut all = guards.to_vec();
            let guard = (lo < 0 || hi >= size).then_some(Guard { index: shifted, lo: 0, hi: size });
            all.extend(guard.clone());
            parts.push((guard, self.value(o, &place, &all, part)?));
        }
        let Some((_, mut out)) = parts.pop() else {
            return Ok(self.constant(Scalar::I(0), part_type(node.ty.dtype)));
        };
        for (guard, v) in parts.into_iter().rev() {
            out = self.select(guard.into_iter().collect(), v, out);
        }
        Ok(out)
    }

    fn reduce(
        &mut self,
        n: NodeId,
        node: &Node,
        kind: Reduction,
        axes: &[usize],
        at: &[Index],
        part: Part,
    ) -> Result<ValueId, Refusal> {
        let graph = self.graph;
        let operand = *node.operands.first().ok_or_else(|| refuse(n, "lacks an operand"))?;
        let ty = graph.ty(operand);
        self.s.compensated |= node.policy == Policy::KahanSum && kind == Reduction::Sum && ty.dtype.is_float();
        let plain = kind == Reduction::Sum && node.ty.dtype.is_complex() && node.policy != Policy::KahanSum;
        if ty.dtype.is_complex() && !plain {
            return Err(refuse(n, "is no plain sum of complex numbers"));
        }
        let mut axes = axes.to_vec();
        axes.sort();
        let sizes: Vec<u64> = axes.iter().map(|a| ty.shape.get(*a).copied().unwrap_or(1)).collect();
        let extent = sizes.iter().try_fold(1u64, |p, d| p.checked_mul(*d)).ok_or_else(|| refuse(n, "is too large"))?;
        let row = self.row.as_ref().filter(|row| {
            let trailing = axes.iter().all(|a| *a >= row.lead) && ty.shape == row.shape;
            trailing && axes.len() + row.lead == ty.shape.len() && !at.iter().any(|e| e.uses(row.axis))
        });
        let r = match row {
            Some(row) => row.axis,
            None => self.axis(format!("r{}", self.s.axes.len()), extent, true),
        };
        let along = delinear(&Index::var(r), &sizes, &|v| self.s.range(v));
        let mut kept = at.iter();
        let place: Vec<Index> = (0..ty.shape.len())
            .map(|i| match axes.iter().position(|a| *a == i) {
                Some(j) => along[j].clone(),
                None => kept.next().cloned().unwrap_or_default(),
            })
            .collect();
        let accum = match kind {
            Reduction::Any | Reduction::All => DType::Bool,
            // Integers need no room to compare, and the identity is that of their own type.
            Reduction::Max | Reduction::Min if !ty.dtype.is_float() => ty.dtype,
            _ => part_type(ty.dtype).accumulator(),
        };
        let v = self.value(operand, &place, &[], part)?;
        let v = self.cast(v, accum);
        let sum = self.push(ValueOp::Reduce { kind, arg: v, axis: r }, accum);
        let mut result = self.cast(sum, part_type(node.ty.dtype));
        // An extreme is one of the elements: an infinity is not rounded.
        let e5m2 = ty.dtype == DType::F8E5M2 && node.ty.dtype == DType::F8E5M2;
        if e5m2 && matches!(kind, Reduction::Max | Reduction::Min) {
            for infinity in [f64::INFINITY, f64::NEG_INFINITY] {
                let wide = self.push(ValueOp::Const(Scalar::F(infinity)), accum);
                let kept = self.push(ValueOp::Const(Scalar::F(infinity)), DType::F8E5M2);
                let here = self.push(ValueOp::Map { op: MapOp::eq, args: vec![sum, wide] }, DType::Bool);
                result = self.push(ValueOp::Map { op: MapOp::r#where, args: vec![here, kept, result] }, DType::F8E5M2);
            }
        }
        Ok(result)
    }

    fn dot(
        &mut self,
        n: NodeId,
        node: &Node,
        (accum, steps, pairs): (DType, Steps, bool),
        at: &[Index],
    ) -> Result<ValueId, Refusal> {
        let graph = self.graph;
        let [a, b, ref start @ ..] = node.operands[..] else { return Err(refuse(n, "needs two operands")) };
        let [batch @ .., m, c] = at else { return Err(refuse(n, "has a rank below 2")) };
        if [a, b].iter().any(|o| matches!(graph.ty(*o).dtype, DType::Tf32 | DType::C64)) {
            return Err(refuse(n, "contracts tf32 or complex numbers"));
        }
        let products = self.s.values.iter().filter(|v| matches!(v.op, ValueOp::Dot { .. })).count();
        if products > (self.outer == Some(n)) as usize {
            return Err(refuse(n, "is a second product in one kernel"));
        }
        let depth = *graph.ty(a).shape.last().ok_or_else(|| refuse(n, "has a rank below 2"))?;
        let k = match &self.row {
            Some(row) if self.outer == Some(n) && graph.ty(a).shape == row.shape => row.axis,
            _ if self.outer == Some(n) => return Err(refuse(n, "contracts no row")),
            _ => self.axis("k".into(), depth, true),
        };
        // Row `i` takes its first `i + 1` steps, or all but the first `i`.
        let rows = node.ty.shape.iter().rev().nth(1).copied().unwrap_or(1);
        let within = (steps == Steps::To).then(|| m.offset(1));
        let beyond = (steps == Steps::From && rows > 1).then(|| m.clone());
        let place = |x: &Index, y: &Index| -> Vec<Index> { batch.iter().chain([x, y]).cloned().collect() };
        let factor = if pairs { DType::Bf16 } else { accum };
        let left = self.value(a, &place(m, &Index::var(k)), &[], Part::Real)?;
        let left = self.cast(left, factor);
        let right = self.value(b, &place(&Index::var(k), c), &[], Part::Real)?;
        let right = self.cast(right, factor);
        let start = start.first().map(|&s| self.value(s, at, &[], Part::Real)).transpose()?;
        let v = self.push(ValueOp::Dot { a: left, b: right, axis: k, within, beyond, start }, accum);
        Ok(self.cast(v, node.ty.dtype))
    }
}

fn refuse(node: NodeId, reason: &str) -> Refusal {
    Refusal { node, reason: reason.to_string() }
}

fn prim_word(p: &Prim) -> String {
    let text = format!("{p:?}");
    text.split(|c: char| !c.is_alphanumeric()).next().unwrap_or("").to_lowercase()
}
