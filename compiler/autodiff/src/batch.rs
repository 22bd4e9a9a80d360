//! A graph for many values at once: every node gets a leading dim.
//!
//! Also called: the batching transformation, vmap.
//!
//! A node none of whose operands differ from value to value stays as it is. What has no form
//! with a leading dim is written out, once for each value. No operator of the language comes to that, but positions that devices
//! choose for themselves do: each device then reads only what it has.
//!
//! The values may be those of the devices along an axis of a mesh. What devices do together is then
//! done along the leading dim.

mod derivatives;
mod guarded;
mod until;
mod collectives;

pub use derivatives::{as_graph, of_whole};

use std::sync::Arc;
use tessera_base::{Span, bug};
use tessera_ir::graph::derivatives::Along;
use tessera_ir::graph::{Graph, Node, NodeId, NodeType, Policy};
use tessera_ir::lift::{Lift, Value};
use tessera_ir::prim::row;
use tessera_ir::writer::Writer;
use tessera_ops::prim::Prim;
use tessera_ops::surface::{Build, Id, expand};

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
    body.outputs.iter().map(|&o| NodeId(b.l.each(o).0)).collect()
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
    let value = |(i, &o): (usize, &NodeId)| match (each.get(i), b.l.value(o)) {
        (Some(false), Value::Plain(x)) | (None, Value::Plain(x) | Value::Each(x)) => NodeId(x.0),
        (Some(false), Value::Each(x)) => NodeId(b.first(x).0),
        _ => NodeId(b.l.each(o).0),
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
    let w = Writer { span, ..Writer::new(g, Policy::default()) };
    let l = Lift { w, body, size, axis, values: Vec::with_capacity(body.nodes.len()) };
    let mut b = Batch { l, several: vec![] };
    let mut began = vec![];
    for id in body.ids() {
        began.push(b.l.w.graph.nodes.len());
        let value = b.node(body.node(id), inputs);
        b.l.values.push(value);
    }
    began.push(b.l.w.graph.nodes.len());
    let began: Vec<NodeId> = began.into_iter().map(|n| NodeId(n as u32)).collect();
    b.state(&began);
    b
}

struct Batch<'a, 'g> {
    l: Lift<'a, 'g>,
    /// Results of loops: the node of the body, and each result.
    several: Vec<(NodeId, Vec<Value>)>,
}

impl Batch<'_, '_> {
    fn node(&mut self, node: &Node, inputs: &[(NodeId, bool)]) -> Value {
        self.l.w.span = node.origin.span;
        self.l.w.calls = node.origin.calls.clone();
        self.l.w.policy = node.policy;
        self.l.w.kernel = node.origin.kernel;
        if let Prim::Input(n) = node.prim {
            return match inputs.get(n as usize) {
                Some(&(x, true)) => Value::Each(Id(x.0)),
                Some(&(x, false)) => Value::Plain(Id(x.0)),
                None => bug!("a graph that is batched has no input {n}, of {}", inputs.len()),
            };
        }
        if let Prim::Get { index } = node.prim {
            let of = node.operands.first();
            let known = self.several.iter().find(|(id, _)| Some(id) == of).and_then(|(_, v)| v.get(index));
            let Some(known) = known else { bug!("result {index} of {of:?} was not batched") };
            return *known;
        }
        if let Prim::Collective(c) = &node.prim
            && self.l.axis.is_some_and(|a| a.name == *c.axis)
        {
            return self.together(node, &c.kind);
        }
        let id = NodeId(self.l.values.len() as u32);
        let plain = self.l.shared(&node.operands);
        if let Prim::Scan { .. } = node.prim {
            return self.scan(id, node);
        }
        if let (Some([x]), Prim::Layout) = (plain.as_deref(), &node.prim) {
            return Value::Plain(self.l.with_sharding(*x, node.ty.sharding.clone()));
        }
        if let Some(plain) = plain {
            return Value::Plain(self.l.w.push(node.prim.clone(), &plain, node.ty.shape.clone(), node.ty.dtype));
        }
        let prim = row(&node.prim);
        let lifted = prim.batch(&mut self.l, node).or_else(|| self.l.in_form(node, prim.lifted(1)));
        Value::Each(lifted.unwrap_or_else(|| self.written_out(node)))
    }

    /// Once for each value, stacked.
    fn written_out(&mut self, node: &Node) -> Id {
        let mut rows = vec![];
        for i in 0..self.l.size {
            let mut operands = vec![];
            for &o in &node.operands {
                operands.push(match self.l.value(o) {
                    Value::Plain(x) => x,
                    Value::Each(x) => {
                        let row = expand::slice(&mut self.l.w, x, 0, i, 1);
                        let shape = self.l.body.ty(o).shape.clone();
                        expand::reshape(&mut self.l.w, row, &shape)
                    }
                });
            }
            let one = self.l.w.push(node.prim.clone(), &operands, node.ty.shape.clone(), node.ty.dtype);
            rows.push(expand::unsqueeze(&mut self.l.w, one, &[0]));
        }
        if rows.is_empty() {
            let shape = [&[0][..], &node.ty.shape].concat();
            return expand::full(&mut self.l.w, &shape, node.ty.dtype, tessera_ops::prim::Scalar::zero(node.ty.dtype));
        }
        expand::concat(&mut self.l.w, &rows, 0)
    }

    /// A loop over turns of all values.
    fn scan(&mut self, id: NodeId, node: &Node) -> Value {
        let Prim::Scan { body, carry, sequences, trips, reversed, until } = node.prim else {
            return Value::Plain(Id(0));
        };
        if until {
            return self.until(id, node);
        }
        let Some(inner) = self.l.body.bodies.get(body as usize) else { return Value::Plain(Id(0)) };
        let mut wide = Graph { name: inner.name.clone(), inputs: inner.inputs.clone(), ..Graph::default() };
        let (mut operands, mut mapped) = (vec![], vec![]);
        for (i, &o) in node.operands.iter().enumerate() {
            // The state may differ from the first turn on.
            let each = i < carry || matches!(self.l.value(o), Value::Each(_));
            let value = match (each, self.l.value(o)) {
                (false, Value::Plain(x) | Value::Each(x)) => x,
                (true, _) => self.l.each(o),
            };
            let is_sequence = (carry..carry + sequences).contains(&i);
            // A sequence has its turns in front.
            let value = match is_sequence && each {
                true => {
                    let perm: Vec<usize> = [1, 0].into_iter().chain(2..self.l.w.shape(value).len()).collect();
                    expand::transpose(&mut self.l.w, value, &perm)
                }
                false => value,
            };
            operands.push(NodeId(value.0));
            let ty = inner.inputs[i].ty.clone();
            let shape = if each { [&[self.l.size][..], &ty.shape].concat() } else { ty.shape.clone() };
            let ty = NodeType { shape, ..ty };
            wide.inputs[i].ty = ty.clone();
            let mut w = Writer::new(&mut wide, node.policy);
            mapped.push((w.node(Prim::Input(i as u32), vec![], ty, vec![]), each));
        }
        wide.outputs = along(&mut wide, inner, &mapped, self.l.size, self.l.axis, self.l.w.span);
        let results: Vec<NodeType> = wide
            .outputs
            .iter()
            .enumerate()
            .map(|(i, &o)| {
                let ty = wide.ty(o);
                if i < carry { ty.unsharded() } else { ty.stacked(trips) }
            })
            .collect();
        let Some(first) = results.first().cloned() else { bug!("a loop without results is batched") };
        self.l.w.graph.bodies.push(wide);
        let body = self.l.w.graph.bodies.len() as u32 - 1;
        let made = self.l.w.node(
            Prim::Scan { body, carry, sequences, trips, reversed, until },
            operands,
            first,
            results.clone(),
        );
        let mut values = vec![];
        for (i, ty) in results.iter().enumerate() {
            let Some(x) = self.l.w.get(made, i) else { bug!("a loop has no result {i}, of {}", results.len()) };
            let perm: Vec<usize> = [1, 0].into_iter().chain(2..ty.shape.len()).collect();
            let x = Id(x.0);
            values.push(Value::Each(if i < carry { x } else { expand::transpose(&mut self.l.w, x, &perm) }));
        }
        let value = values[0];
        self.several.push((id, values));
        value
    }
}
