//! Per-device code: what one device does is traced into a graph of its own, which is then written for
//! all devices at once, with a leading dim for each axis of the mesh. The axis splits that dim, so each
//! device computes its own part of it.

use super::derive::Function;
use super::graph::Level;
use super::scan::Leaf;
use super::value::{Tensor, Value};
use super::{R, Tracer};
use std::sync::Arc;
use tessera_autodiff::on_devices;
use tessera_base::{Code, Mesh, Sharding, Span};
use tessera_core::ir::{LocalCall, TExpr};
use tessera_core::ty::Ty;
use tessera_ir::graph::derivatives::Along;
use tessera_ir::graph::{Graph, Input, Node, NodeId, NodeType, Origin, Policy};
use tessera_ops::prim::{Collective, CollectiveKind, Prim, Reduction};
use tessera_ops::surface::{Build, Id, expand};

impl Tracer<'_> {
    /// The function on every device, with its blocks of the arguments.
    pub(super) fn on_devices(&mut self, call: &LocalCall, of: &Function, args: Vec<Value>, span: Span) -> R<Value> {
        let (mut outside, mut types, mut inner) = (vec![], vec![], vec![]);
        self.levels.push(Level::default());
        let here = self.levels.len() - 1;
        for (arg, ty) in args.iter().zip(&call.args) {
            let mut layouts = layouts(arg, ty).into_iter();
            let made = self.rebuilt(arg, &mut |t, leaf| match (leaf, layouts.next().flatten()) {
                (Leaf::Tensor(x), Some(layout)) if layout.dims.iter().any(|d| !d.is_empty()) => {
                    let ty = block_type(&t.ty(x), &layout);
                    outside.push((x, layout));
                    types.push(ty.clone());
                    let id = t.level().input("block", ty, false, span);
                    Value::Tensor(t.tensor(id))
                }
                (leaf, _) => leaf.value(),
            });
            inner.push(made);
        }
        let even = outside.iter().try_for_each(|(x, layout)| self.even_blocks(*x, layout, call, span));
        let made = even.and_then(|()| self.apply_function(of, inner, span)).and_then(|value| {
            let leaves = self.leaves_of(&value, span)?;
            let outputs: Vec<NodeId> = leaves.iter().map(|l| self.leaf_id(l, span)).collect();
            Ok((value, outputs))
        });
        let level = self.levels.drain(here..).next();
        let (value, outputs) = made?;
        let Some(level) = level else { return Err(self.error(Code::E0999, span, "a function without a graph")) };
        // What may fail on a device may fail here, though nothing reads it.
        let outputs = [outputs, level.checks].concat();
        let graph = Graph { outputs, ..level.graph };
        let mut inputs = vec![];
        for (x, layout) in outside {
            inputs.push((self.blocks(x, &layout, &call.mesh, span), axes_of(&layout, &call.mesh)));
        }
        inputs.extend(level.outer.iter().map(|(outer, _)| (*outer, vec![])));
        let results: Vec<Sharding> = layouts(&value, &call.ret)
            .into_iter()
            .map(|l| l.unwrap_or_else(|| Sharding::replicated(&call.mesh)))
            .collect();
        let mut made = self.for_axes(graph, inputs, &results, &call.mesh, span);
        let checks = made.split_off(results.len().min(made.len()));
        self.level().checks.extend(checks);
        self.budget(span)?;
        let mut made = made.into_iter().zip(results);
        Ok(self.rebuilt(&value, &mut |t, leaf| match (made.next(), &leaf) {
            (Some((id, layout)), Leaf::Tensor(_)) => Value::Tensor(t.whole(id, &layout, &call.mesh, span)),
            _ => leaf.value(),
        }))
    }

    /// E0408 where the devices do not divide a dim.
    fn even_blocks(&self, x: Tensor, layout: &Sharding, call: &LocalCall, span: Span) -> R<()> {
        let shape = self.ty(x).shape;
        let uneven = (0..shape.len()).find(|&d| !shape[d].is_multiple_of(layout.parts(d).max(1)));
        let Some(d) = uneven else { return Ok(()) };
        let (n, parts, axes) = (shape[d], layout.parts(d), layout.axes(d).join(", "));
        let text = format!("the {parts} devices of `{axes}` do not divide {n} rows into blocks of one size");
        let d = self.error(Code::E0408, span, text);
        Err(Box::new(d.note(format!("every device runs `{}` with a block of the same shape", call.name))))
    }

    /// A whole tensor as `[axes…, block…]`, the axes in the order of the mesh.
    fn blocks(&mut self, x: Tensor, layout: &Sharding, mesh: &Arc<Mesh>, span: Span) -> NodeId {
        let x = self.node(x);
        let whole = self.level().graph.ty(x).shape.clone();
        let x = self.with_sharding(x, layout.clone(), span);
        // Each dim as [its axes…, block].
        let (mut shape, mut at, mut own) = (vec![], vec![], vec![]);
        for (d, &n) in whole.iter().enumerate() {
            for axis in layout.axes(d) {
                at.push((axis.clone(), shape.len()));
                shape.push(mesh.size(axis).unwrap_or(1));
            }
            own.push(shape.len());
            shape.push(n / layout.parts(d).max(1));
        }
        let front = axes_of(layout, mesh);
        let place = |axis: &String| at.iter().find(|(a, _)| a == axis).map(|a| a.1);
        let perm: Vec<usize> = front.iter().filter_map(place).chain(own).collect();
        let mut b = self.adder("local", span);
        let cut = expand::reshape(&mut b, Id(x.0), &shape);
        let turned = expand::transpose(&mut b, cut, &perm);
        self.with_sharding(NodeId(turned.0), fronts(&front, mesh, perm.len()), span)
    }

    /// The whole tensor of `[axes…, block…]`, in a layout.
    fn whole(&mut self, x: NodeId, layout: &Sharding, mesh: &Arc<Mesh>, span: Span) -> Tensor {
        let mut front = axes_of(layout, mesh);
        let partial: Vec<usize> = (0..front.len()).filter(|&i| layout.dim_of(&front[i]).is_none()).collect();
        let mut b = self.adder("local", span);
        let sum = expand::reduce(&mut b, Id(x.0), Reduction::Sum, &partial, false);
        front.retain(|axis| layout.dim_of(axis).is_some());
        let shape = b.shape(sum);
        let (mut perm, mut joined) = (vec![], vec![]);
        for (d, &n) in shape[front.len()..].iter().enumerate() {
            perm.extend(layout.axes(d).iter().filter_map(|axis| front.iter().position(|f| f == axis)));
            perm.push(front.len() + d);
            joined.push(n * layout.parts(d).max(1));
        }
        let turned = expand::transpose(&mut b, sum, &perm);
        let whole = expand::reshape(&mut b, turned, &joined);
        let whole = self.with_sharding(NodeId(whole.0), layout.clone(), span);
        self.tensor(whole)
    }

    /// What all devices compute: one axis of the mesh after the other, the last one first. Inputs and
    /// results have a leading dim for each of their axes.
    fn for_axes(
        &mut self,
        mut graph: Graph,
        inputs: Vec<(NodeId, Vec<String>)>,
        results: &[Sharding],
        mesh: &Arc<Mesh>,
        span: Span,
    ) -> Vec<NodeId> {
        let results: Vec<Vec<String>> = results.iter().map(|l| axes_of(l, mesh)).collect();
        let named = |axis: &String| inputs.iter().map(|i| &i.1).chain(&results).any(|axes| axes.contains(axis));
        let mut axes: Vec<&String> =
            mesh.axes.iter().map(|a| &a.0).filter(|a| named(a) || speaks_of(&graph, a)).collect();
        let along = |name: &String| Arc::new(Along { name: name.clone(), mesh: mesh.clone() });
        // The first axis is written into the graph around; a function that names none, like one that does.
        let any = mesh.axes.first().map(|a| &a.0);
        let first = if axes.is_empty() { any } else { Some(axes.remove(0)) };
        while let Some(axis) = axes.pop() {
            let mut wide = Graph { name: graph.name.clone(), ..Graph::default() };
            let mut given = vec![];
            for (input, (_, own)) in graph.inputs.iter().zip(&inputs) {
                let each = own.contains(axis);
                let front = each.then(|| mesh.size(axis).unwrap_or(1));
                let shape = front.into_iter().chain(input.ty.shape.iter().copied()).collect();
                given.push((
                    add_input(&mut wide, Input { ty: NodeType { shape, ..input.ty.clone() }, ..input.clone() }),
                    each,
                ));
            }
            let each: Vec<bool> = results.iter().map(|own| own.contains(axis)).collect();
            wide.outputs = on_devices(&mut wide, &graph, &given, &each, &along(axis), span);
            graph = wide;
        }
        let Some(axis) = first else { return vec![] };
        let given: Vec<(NodeId, bool)> = inputs.iter().map(|(id, own)| (*id, own.contains(axis))).collect();
        let each: Vec<bool> = results.iter().map(|own| own.contains(axis)).collect();
        on_devices(&mut self.level().graph, &graph, &given, &each, &along(axis), span)
    }

    /// A node in a layout.
    fn with_sharding(&mut self, x: NodeId, sharding: Sharding, span: Span) -> NodeId {
        let from = self.level().graph.ty(x).clone();
        let sharding = sharding.normal(from.shape.len());
        let policy = self.policy;
        let ty = NodeType { sharding, ..from };
        let origin = Origin { kernel: None, ..self.origin(span) };
        self.level().graph.push(Node { prim: Prim::Layout, operands: vec![x], ty, results: vec![], origin, policy })
    }

    /// What devices do together.
    pub(super) fn collective(&mut self, what: &Arc<Collective>, x: Option<&TExpr>, span: Span) -> R<Value> {
        let operands: Vec<Id> = match x {
            Some(x) => {
                let x = self.tensor_of(x)?;
                vec![Id(self.node(x).0)]
            }
            None => vec![],
        };
        let ty = operands.first().map(|x| self.level().graph.ty(NodeId(x.0)).clone());
        let (mut shape, dtype) = ty.map_or((vec![], tessera_base::DType::I64), |t| (t.shape, t.dtype));
        let mut cut = None;
        match what.kind {
            CollectiveKind::Rank
            | CollectiveKind::Sum
            | CollectiveKind::Max
            | CollectiveKind::Min
            | CollectiveKind::Rows { .. } => {}
            CollectiveKind::Gather { dim } => shape[dim] *= what.devices,
            CollectiveKind::Scatter { dim } => cut = Some(dim),
            CollectiveKind::Turn { from, to } => {
                cut = Some(to);
                shape[from] *= what.devices;
            }
        }
        if let Some(dim) = cut {
            if !shape[dim].is_multiple_of(what.devices.max(1)) {
                let (n, parts, axis) = (shape[dim], what.devices, &what.axis);
                let text = format!("the {parts} devices of `{axis}` do not divide {n} rows into parts of one size");
                return Err(self.error(Code::E0408, span, text));
            }
            shape[dim] /= what.devices.max(1);
        }
        let made = self.adder("collective", span).push(Prim::Collective(what.clone()), &operands, shape, dtype);
        Ok(Value::Tensor(self.tensor_id(made)))
    }
}

/// The layouts of a value's leaves, from the type of the whole; none of what is no tensor on a mesh.
fn layouts(value: &Value, ty: &Ty) -> Vec<Option<Sharding>> {
    match (value, ty) {
        (Value::Tensor(_), Ty::Tensor(t)) => vec![t.sharding.mesh.is_some().then(|| t.sharding.clone())],
        (Value::Tensor(_) | Value::Scalar(_), _) => vec![None],
        (Value::Record(items), Ty::Tuple(tys)) => items.iter().zip(tys).flat_map(|(v, t)| layouts(v, t)).collect(),
        (Value::Record(items), Ty::Struct(s)) => {
            items.iter().zip(&s.fields).flat_map(|(v, (_, t))| layouts(v, t)).collect()
        }
        (Value::Record(items) | Value::List(items), Ty::List(t)) => items.iter().flat_map(|v| layouts(v, t)).collect(),
        (Value::Dict(entries), Ty::Dict(_, t)) => entries.values().flat_map(|v| layouts(v, t)).collect(),
        (Value::Record(items) | Value::List(items), _) => items.iter().flat_map(|v| layouts(v, ty)).collect(),
        _ => vec![],
    }
}

/// The axes that tell a value's blocks apart, in the order of the mesh.
fn axes_of(layout: &Sharding, mesh: &Mesh) -> Vec<String> {
    let names = |axis: &&String| layout.dim_of(axis).is_some() || layout.partial_over(axis).is_some();
    mesh.axes.iter().map(|a| &a.0).filter(names).cloned().collect()
}

/// Each of the first dims split over its axis.
fn fronts(axes: &[String], mesh: &Arc<Mesh>, rank: usize) -> Sharding {
    let dims = (0..rank).map(|d| axes.get(d).cloned().into_iter().collect()).collect();
    Sharding { dims, partial: vec![], mesh: Some(mesh.clone()) }
}

fn block_type(whole: &NodeType, layout: &Sharding) -> NodeType {
    let shape = whole.shape.iter().enumerate().map(|(d, n)| n / layout.parts(d).max(1)).collect();
    NodeType::new(shape, whole.dtype)
}

fn add_input(g: &mut Graph, input: Input) -> NodeId {
    let (prim, ty) = (Prim::Input(g.inputs.len() as u32), input.ty.clone());
    g.inputs.push(input);
    g.push(Node { prim, operands: vec![], ty, results: vec![], origin: Origin::default(), policy: Policy::default() })
}

/// Whether devices do something together along an axis.
fn speaks_of(g: &Graph, axis: &str) -> bool {
    let here = g.nodes.iter().any(|n| matches!(&n.prim, Prim::Collective(c) if *c.axis == *axis));
    here || g.bodies.iter().any(|b| speaks_of(b, axis))
}
