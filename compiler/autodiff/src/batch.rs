//! A graph for many values at once: every node gets a leading dim.
//!
//! A node none of whose operands differ from value to value stays as it is. What has no form
//! with a leading dim is written out, once for each value. No operator of the language comes to that, but positions that devices
//! choose for themselves do: each device then reads only what it has.
//!
//! The values may be those of the devices along an axis of a mesh. What devices do together is then
//! done along the leading dim.

mod positions;
mod stated;
mod together;

pub use stated::as_graph;

use crate::writer::Writer;
use std::sync::Arc;
use tessera_base::{DType, Sharding, Span};
use tessera_ir::graph::derivatives::Along;
use tessera_ir::graph::{Graph, Node, NodeId, NodeType, Policy};
use tessera_ops::prim::{Fft, Prim, Steps};
use tessera_ops::surface::{Build, Id, expand};

/// A value of the body in the graph outside.
#[derive(Clone, Copy)]
enum Value {
    /// The same for all.
    Plain(Id),
    /// With the leading dim.
    Each(Id),
}

/// Adds the body's outputs, each with `size` as its leading dim, to the end of `g`. An input is a
/// node of `g`; with `true` its leading dim goes over the values, otherwise all share it. Cost: that of
/// `size` bodies.
pub fn batched(g: &mut Graph, body: &Graph, inputs: &[(NodeId, bool)], size: u64, span: Span) -> Vec<NodeId> {
    along(g, body, inputs, size, None, span)
}

/// The same where the values may be those of the devices along an axis of a mesh.
fn along(
    g: &mut Graph,
    body: &Graph,
    inputs: &[(NodeId, bool)],
    size: u64,
    axis: Option<&Arc<Along>>,
    span: Span,
) -> Vec<NodeId> {
    let mut b = run(g, body, inputs, size, axis, span);
    body.outputs.iter().map(|&o| NodeId(b.each(o).0)).collect()
}

/// Adds what the devices along an axis compute to the end of `g`: the body's outputs, with the number
/// of the device as the leading dim where it says `each`, and where not as the first device has
/// them; outputs of which it says nothing come as they are. Inputs are as those of [`batched`]. Cost: that of a
/// body for each device.
pub fn on_devices(
    g: &mut Graph,
    body: &Graph,
    inputs: &[(NodeId, bool)],
    each: &[bool],
    axis: &Arc<Along>,
    span: Span,
) -> Vec<NodeId> {
    let size = axis.mesh.size(&axis.name).unwrap_or(1);
    let mut b = run(g, body, inputs, size, Some(axis), span);
    let value = |(i, &o): (usize, &NodeId)| match (each.get(i), b.value(o)) {
        (Some(false), Value::Plain(x)) | (None, Value::Plain(x) | Value::Each(x)) => NodeId(x.0),
        (Some(false), Value::Each(x)) => NodeId(b.first(x).0),
        _ => NodeId(b.each(o).0),
    };
    body.outputs.iter().enumerate().map(value).collect()
}

/// Adds the nodes of the body.
fn run<'a, 'g>(
    g: &'g mut Graph,
    body: &'a Graph,
    inputs: &[(NodeId, bool)],
    size: u64,
    axis: Option<&'a Arc<Along>>,
    span: Span,
) -> Batch<'a, 'g> {
    let w = Writer { graph: g, span, policy: Policy::default(), again: None, kernel: None };
    let mut b = Batch { w, body, size, axis, values: Vec::with_capacity(body.nodes.len()), several: vec![] };
    let mut began = vec![];
    for id in body.ids() {
        began.push(b.w.graph.nodes.len());
        let value = b.node(body.node(id), inputs);
        b.values.push(value);
    }
    began.push(b.w.graph.nodes.len());
    let began: Vec<NodeId> = began.into_iter().map(|n| NodeId(n as u32)).collect();
    b.state(&began);
    b
}

struct Batch<'a, 'g> {
    w: Writer<'g>,
    body: &'a Graph,
    size: u64,
    /// Where the values are those of devices.
    axis: Option<&'a Arc<Along>>,
    /// By node of the body.
    values: Vec<Value>,
    /// Results of loops: the node of the body, and each result.
    several: Vec<(NodeId, Vec<Value>)>,
}

impl Batch<'_, '_> {
    fn value(&self, id: NodeId) -> Value {
        self.values[id.0 as usize]
    }

    /// With the leading dim.
    fn each(&mut self, id: NodeId) -> Id {
        match self.value(id) {
            Value::Each(x) => x,
            Value::Plain(x) => self.repeated(x),
        }
    }

    fn repeated(&mut self, x: Id) -> Id {
        let shape = self.w.shape(x);
        let dims = (1..=shape.len()).collect();
        let whole = [&[self.size][..], &shape].concat();
        expand::broadcast_dims(&mut self.w, x, &whole, dims)
    }

    fn node(&mut self, node: &Node, inputs: &[(NodeId, bool)]) -> Value {
        self.w.span = node.origin.span;
        self.w.policy = node.policy;
        self.w.kernel = node.origin.kernel;
        if let Prim::Input(n) = node.prim {
            return match inputs.get(n as usize) {
                Some(&(x, true)) => Value::Each(Id(x.0)),
                Some(&(x, false)) => Value::Plain(Id(x.0)),
                None => Value::Plain(Id(0)),
            };
        }
        if let Prim::Get { index } = node.prim {
            let of = node.operands.first();
            let known = self.several.iter().find(|(id, _)| Some(id) == of).and_then(|(_, v)| v.get(index));
            return known.copied().unwrap_or(Value::Plain(Id(0)));
        }
        if let Prim::Collective(c) = &node.prim
            && self.axis.is_some_and(|a| a.name == *c.axis)
        {
            return self.together(node, &c.kind);
        }
        let id = NodeId(self.values.len() as u32);
        let plain: Option<Vec<Id>> = node
            .operands
            .iter()
            .map(|&o| match self.value(o) {
                Value::Plain(x) => Some(x),
                Value::Each(_) => None,
            })
            .collect();
        if let Prim::Scan { .. } = node.prim {
            return self.scan(id, node);
        }
        if let (Some([x]), Prim::Layout) = (plain.as_deref(), &node.prim) {
            return Value::Plain(self.lying(*x, node.ty.sharding.clone()));
        }
        if let Some(plain) = plain {
            return Value::Plain(self.w.push(node.prim.clone(), &plain, node.ty.shape.clone(), node.ty.dtype));
        }
        match self.lifted(node) {
            Some(x) => Value::Each(x),
            None => Value::Each(self.written_out(node)),
        }
    }

    /// The same primitive with one more dim; `None` where it has no such form.
    fn lifted(&mut self, node: &Node) -> Option<Id> {
        let up = |axes: &[usize]| axes.iter().map(|a| a + 1).collect::<Vec<_>>();
        let front = |axes: &[usize]| [0].into_iter().chain(axes.iter().map(|a| a + 1)).collect::<Vec<_>>();
        let before = |n: &[i64], first: i64| [&[first], n].concat();
        let first_only = node.operands[1..].iter().all(|&o| matches!(self.value(o), Value::Plain(_)));
        let prim = match &node.prim {
            Prim::Map(_) | Prim::Check(_) | Prim::Cast | Prim::Part { .. } | Prim::Complex | Prim::Reshape => {
                node.prim.clone()
            }
            Prim::Layout => {
                let x = self.each(node.operands[0]);
                let rank = node.ty.shape.len();
                let on = |axis: &Arc<Along>| node.ty.sharding.with(0, std::slice::from_ref(&axis.name), rank);
                return Some(self.axis.map_or(x, |axis| self.lying(x, on(axis))));
            }
            Prim::Collective(c) => Prim::Collective(Arc::new(together::lifted(c))),
            Prim::Rows { axis, from } => Prim::Rows { axis: axis + 1, from: from.clone() },
            Prim::Windows { .. } | Prim::RandomBits => node.prim.clone(),
            Prim::Quantize { .. } | Prim::Dequantize { .. } => node.prim.clone(),
            Prim::Dot { accum, steps, pairs } => return Some(self.dot(node, *accum, *steps, *pairs)),
            Prim::Broadcast { dims } => Prim::Broadcast { dims: front(dims) },
            Prim::Transpose { perm } => Prim::Transpose { perm: front(perm) },
            Prim::Slice { start, step } => Prim::Slice { start: before(start, 0), step: before(step, 1) },
            Prim::Concat { axis } => Prim::Concat { axis: axis + 1 },
            Prim::Reduce { kind, axes } => Prim::Reduce { kind: *kind, axes: up(axes) },
            Prim::ArgReduce { largest, axis } => Prim::ArgReduce { largest: *largest, axis: axis + 1 },
            Prim::Cumulate { kind, axis } => Prim::Cumulate { kind: *kind, axis: axis + 1 },
            Prim::UpdateSlice { start, step } => Prim::UpdateSlice { start: before(start, 0), step: before(step, 1) },
            Prim::TakeAlong { axis } => Prim::TakeAlong { axis: axis + 1 },
            Prim::ScatterAddAlong { axis } => Prim::ScatterAddAlong { axis: axis + 1 },
            Prim::Sort { axis, descending } => Prim::Sort { axis: axis + 1, descending: *descending },
            Prim::ArgSort { axis, descending } => Prim::ArgSort { axis: axis + 1, descending: *descending },
            Prim::Pad { low, high } if first_only => {
                let (low, high) = ([&[0][..], low].concat(), [&[0][..], high].concat());
                return Some(self.around_first(node, Prim::Pad { low, high }));
            }
            Prim::Take { axis } if first_only => {
                return Some(self.around_first(node, Prim::Take { axis: axis + 1 }));
            }
            Prim::Fft(f) if first_only => {
                let f = Fft { axis: f.axis + 1, to: f.to + 1, ..*f };
                return Some(self.around_first(node, Prim::Fft(f)));
            }
            Prim::Take { axis } => return Some(self.take(node, *axis)),
            Prim::DynamicSlice { .. } | Prim::DynamicUpdate => return self.dynamic(node),
            Prim::Gather => return Some(self.gather(node)),
            Prim::Scatter { add } => return Some(self.scatter(node, *add)),
            _ => return None,
        };
        let operands: Vec<Id> = node.operands.iter().map(|&o| self.each(o)).collect();
        Some(self.push(node, prim, &operands))
    }

    /// A value in a layout.
    fn lying(&mut self, x: Id, sharding: Sharding) -> Id {
        let ty = NodeType { sharding, ..self.w.graph.ty(NodeId(x.0)).clone() };
        Id(self.w.node(Prim::Layout, vec![NodeId(x.0)], ty, vec![]).0)
    }

    fn push(&mut self, node: &Node, prim: Prim, operands: &[Id]) -> Id {
        let shape = [&[self.size][..], &node.ty.shape].concat();
        self.w.push(prim, operands, shape, node.ty.dtype)
    }

    /// Only the first operand has the leading dim.
    fn around_first(&mut self, node: &Node, prim: Prim) -> Id {
        let mut operands = vec![self.each(node.operands[0])];
        for &o in &node.operands[1..] {
            if let Value::Plain(x) = self.value(o) {
                operands.push(x);
            }
        }
        self.push(node, prim, &operands)
    }

    /// Where all share the right factor, the values' rows are rows of one product.
    fn dot(&mut self, node: &Node, accum: DType, steps: Steps, pairs: bool) -> Id {
        let prim = Prim::Dot { accum, steps, pairs };
        let (a, b) = (node.operands[0], node.operands[1]);
        if let (Value::Each(x), Value::Plain(y), 2, Steps::All) =
            (self.value(a), self.value(b), node.ty.shape.len(), steps)
        {
            let (m, n) = (node.ty.shape[0], node.ty.shape[1]);
            let k = self.w.shape(y)[0];
            let rows = expand::reshape(&mut self.w, x, &[self.size * m, k]);
            let product = self.w.push(prim, &[rows, y], vec![self.size * m, n], node.ty.dtype);
            return expand::reshape(&mut self.w, product, &[self.size, m, n]);
        }
        let (x, y) = (self.each(a), self.each(b));
        self.push(node, prim, &[x, y])
    }

    /// Once for each value, stacked.
    fn written_out(&mut self, node: &Node) -> Id {
        let mut rows = vec![];
        for i in 0..self.size {
            let mut operands = vec![];
            for &o in &node.operands {
                operands.push(match self.value(o) {
                    Value::Plain(x) => x,
                    Value::Each(x) => {
                        let row = expand::slice(&mut self.w, x, 0, i, 1);
                        let shape = self.body.ty(o).shape.clone();
                        expand::reshape(&mut self.w, row, &shape)
                    }
                });
            }
            let one = self.w.push(node.prim.clone(), &operands, node.ty.shape.clone(), node.ty.dtype);
            rows.push(expand::unsqueeze(&mut self.w, one, &[0]));
        }
        if rows.is_empty() {
            let shape = [&[0][..], &node.ty.shape].concat();
            return expand::full(&mut self.w, &shape, node.ty.dtype, tessera_ops::prim::Scalar::I(0));
        }
        expand::concat(&mut self.w, &rows, 0)
    }

    /// A loop over turns of all values.
    fn scan(&mut self, id: NodeId, node: &Node) -> Value {
        let Prim::Scan { body, carry, sequences, trips } = node.prim else { return Value::Plain(Id(0)) };
        let Some(inner) = self.body.bodies.get(body as usize) else { return Value::Plain(Id(0)) };
        let mut wide = Graph { name: inner.name.clone(), inputs: inner.inputs.clone(), ..Graph::default() };
        let (mut operands, mut mapped) = (vec![], vec![]);
        for (i, &o) in node.operands.iter().enumerate() {
            // The state may differ from the first turn on.
            let each = i < carry || matches!(self.value(o), Value::Each(_));
            let value = match (each, self.value(o)) {
                (false, Value::Plain(x) | Value::Each(x)) => x,
                (true, _) => self.each(o),
            };
            let is_sequence = (carry..carry + sequences).contains(&i);
            // A sequence has its turns in front.
            let value = match is_sequence && each {
                true => {
                    let perm: Vec<usize> = [1, 0].into_iter().chain(2..self.w.shape(value).len()).collect();
                    expand::transpose(&mut self.w, value, &perm)
                }
                false => value,
            };
            operands.push(NodeId(value.0));
            let ty = inner.inputs[i].ty.clone();
            let shape = if each { [&[self.size][..], &ty.shape].concat() } else { ty.shape.clone() };
            let ty = NodeType { shape, ..ty };
            wide.inputs[i].ty = ty.clone();
            let mut w = Writer { graph: &mut wide, span: Span::NONE, policy: node.policy, again: None, kernel: None };
            mapped.push((w.node(Prim::Input(i as u32), vec![], ty, vec![]), each));
        }
        wide.outputs = along(&mut wide, inner, &mapped, self.size, self.axis, self.w.span);
        let results: Vec<NodeType> = wide
            .outputs
            .iter()
            .enumerate()
            .map(|(i, &o)| {
                let ty = wide.ty(o);
                if i < carry { ty.anywhere() } else { ty.stacked(trips) }
            })
            .collect();
        let Some(first) = results.first().cloned() else { return Value::Plain(Id(0)) };
        self.w.graph.bodies.push(wide);
        let body = self.w.graph.bodies.len() as u32 - 1;
        let made = self.w.node(Prim::Scan { body, carry, sequences, trips }, operands, first, results.clone());
        let mut values = vec![];
        for (i, ty) in results.iter().enumerate() {
            let Some(x) = self.w.get(made, i) else { continue };
            let perm: Vec<usize> = [1, 0].into_iter().chain(2..ty.shape.len()).collect();
            let x = Id(x.0);
            values.push(Value::Each(if i < carry { x } else { expand::transpose(&mut self.w, x, &perm) }));
        }
        let value = values.first().copied().unwrap_or(Value::Plain(Id(made.0)));
        self.several.push((id, values));
        value
    }
}
