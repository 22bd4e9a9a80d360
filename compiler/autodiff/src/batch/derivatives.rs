//! What a graph states about its derivatives, for many values at once.

use super::{Batch, along};
use crate::reverse::pullback;
use std::sync::Arc;
use tessera_base::Span;
use tessera_ir::graph::derivatives::{Kind, Many, Part, Rule};
use tessera_ir::graph::{Graph, Input, Node, NodeId, NodeType, Origin, Policy};
use tessera_ir::lift::Value;
use tessera_ir::writer::{Writer, smooth, zeros_like};
use tessera_ops::prim::{Prim, Reduction};
use tessera_ops::surface::{Id, Pulled, expand};

impl Batch<'_, '_> {
    /// Says about the nodes with the leading dim what the body says about its own. `began` is how many
    /// nodes there were before each node of the body, and at the end.
    pub(super) fn state(&mut self, began: &[NodeId]) {
        let body = self.l.body;
        for id in body.ids() {
            if body.derivatives.is_held(id) && self.made(id, began) {
                let held = self.id(id);
                self.l.w.graph.derivatives.hold(held);
            }
            let Some(part) = body.derivatives.of(id) else { continue };
            // A part of several outputs is stated once, at the last of them.
            if part.outputs.iter().max() == Some(&id) && part.outputs.iter().all(|&o| self.made(o, began)) {
                self.state_part(part, began);
            }
        }
    }

    /// Whether a node of the body has nodes of its own, and is not an operand once more.
    fn made(&self, id: NodeId, began: &[NodeId]) -> bool {
        began.get(id.0 as usize).is_some_and(|&start| self.id(id) >= start)
    }

    pub(super) fn id(&self, id: NodeId) -> NodeId {
        match self.l.value(id) {
            Value::Plain(x) | Value::Each(x) => NodeId(x.0),
        }
    }

    pub(super) fn kinds(&self, ids: &[NodeId]) -> Vec<Kind> {
        let kind =
            |&id: &NodeId| Kind { ty: self.l.body.ty(id).clone(), each: matches!(self.l.value(id), Value::Each(_)) };
        ids.iter().map(kind).collect()
    }

    fn state_part(&mut self, part: &Part, began: &[NodeId]) {
        let all = |ids: &[NodeId]| ids.iter().map(|&id| self.id(id)).collect::<Vec<_>>();
        let each = part.outputs.iter().any(|&o| matches!(self.l.value(o), Value::Each(_)));
        let rule = match &part.rule {
            Rule::Again(from, end) => match (began.get(from.0 as usize), began.get(end.0 as usize)) {
                (Some(&from), Some(&end)) => Rule::Again(from, end),
                _ => return,
            },
            rule if !each => rule.clone(),
            rule => Rule::Many(Arc::new(Many {
                rule: rule.clone(),
                size: self.l.size,
                axis: self.l.axis.cloned(),
                inputs: self.kinds(&part.inputs),
                outputs: self.kinds(&part.outputs),
                saved: self.kinds(&part.saved),
            })),
        };
        let (inputs, outputs, saved) = (all(&part.inputs), all(&part.outputs), all(&part.saved));
        let constants = all(&part.constants);
        self.l.w.graph.derivatives.add(Part { inputs, outputs, saved, constants, rule });
    }
}

/// The rule as a graph in the form of [`Rule::Graph`]; `None` where it is none.
pub fn as_graph(many: &Many) -> Option<Graph> {
    let one = match &many.rule {
        Rule::Graph(graph) => Graph::clone(graph),
        Rule::Many(inner) => as_graph(inner)?,
        Rule::Steps(_) => steps(many)?,
        Rule::Whole(graph) => of_whole(graph)?,
        Rule::Again(..) => return None,
    };
    let groups = [&many.inputs, &many.outputs, &many.outputs, &many.saved];
    let (mut wide, mut given) = (Graph::default(), vec![]);
    for kind in groups.into_iter().flatten() {
        let shape = match kind.each {
            true => [&[many.size][..], &kind.ty.shape].concat(),
            false => kind.ty.shape.clone(),
        };
        given.push((add_input(&mut wide, NodeType { shape, ..kind.ty.clone() }), kind.each));
    }
    let mut outputs = along(&mut wide, &one, &given, many.size, many.axis.as_ref(), Span::NONE);
    let smooth_inputs = many.inputs.iter().filter(|k| smooth(k.ty.dtype));
    for (output, kind) in outputs.iter_mut().zip(smooth_inputs) {
        if !kind.each {
            // All values share it: their cotangents sum up.
            let mut w = Writer::new(&mut wide, Policy::default());
            *output = NodeId(expand::reduce(&mut w, Id(output.0), Reduction::Sum, &[0], false).0);
        }
    }
    wide.outputs = outputs;
    Some(wide)
}

/// The derivative of a graph, in the form of [`Rule::Graph`]; `None` where it has none.
pub fn of_whole(graph: &Graph) -> Option<Graph> {
    let mut g = graph.clone();
    let (inputs, outputs) = (g.inputs.len() as u32, std::mem::take(&mut g.outputs));
    let wrt: Vec<NodeId> = (0..inputs)
        .filter_map(|n| g.ids().find(|id| g.node(*id).prim == Prim::Input(n)))
        .filter(|id| smooth(g.ty(*id).dtype))
        .collect();
    let types: Vec<NodeType> = outputs.iter().map(|&o| g.ty(o).unsharded()).collect();
    for ty in &types {
        add_input(&mut g, ty.clone());
    }
    let cotangents: Vec<NodeId> = types.into_iter().map(|ty| add_input(&mut g, ty)).collect();
    let seeds: Vec<(NodeId, NodeId)> = outputs.into_iter().zip(cotangents).collect();
    let made = pullback(&mut g, &seeds, &wrt).ok()?;
    let mut w = Writer::new(&mut g, Policy::default());
    let outputs = made.into_iter().zip(&wrt).map(|(c, &x)| c.unwrap_or_else(|| zeros_like(&mut w, x))).collect();
    g.outputs = outputs;
    Some(g)
}

/// The steps that an operator gives, in a graph of their own.
fn steps(many: &Many) -> Option<Graph> {
    let Rule::Steps(pull) = &many.rule else { return None };
    let mut g = Graph::default();
    let mut add = |kinds: &[Kind]| kinds.iter().map(|k| Id(add_input(&mut g, k.ty.clone()).0)).collect::<Vec<_>>();
    let (inputs, output, cotangent, saved) =
        (add(&many.inputs), add(&many.outputs), add(&many.outputs), add(&many.saved));
    let pulled = Pulled { inputs: inputs.clone(), output: *output.first()?, saved, cotangent: *cotangent.first()? };
    let mut w = Writer::new(&mut g, Policy::default());
    let made = pull(&mut w, &pulled);
    let mut outputs = vec![];
    for (i, (input, kind)) in inputs.iter().zip(&many.inputs).enumerate() {
        if smooth(kind.ty.dtype) {
            outputs.push(match made.get(i).copied().flatten() {
                Some(c) => NodeId(expand::cast(&mut w, c, kind.ty.dtype).0),
                None => zeros_like(&mut w, NodeId(input.0)),
            });
        }
    }
    g.outputs = outputs;
    Some(g)
}

fn add_input(g: &mut Graph, ty: NodeType) -> NodeId {
    let n = g.inputs.len() as u32;
    g.inputs.push(Input { name: "value".into(), ty: ty.clone(), scalar: false });
    let (prim, origin) = (Prim::Input(n), Origin::default());
    g.push(Node { prim, operands: vec![], ty, results: vec![], origin, policy: Policy::default() })
}
