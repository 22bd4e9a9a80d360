//! Loops that end by themselves, for many values at once.
//!
//! Where all values have as many turns, the loop is one of all values. Where they do not, it goes on while any of them does, and
//! those that have ended keep what they carry.

use super::guarded::guarded;
use super::{Batch, run};
use std::sync::Arc;
use tessera_base::{DType, bug};
use tessera_ir::graph::derivatives::{Kind, Many, Part, Rule};
use tessera_ir::graph::{Graph, Node, NodeId, NodeType};
use tessera_ir::lift::Value;
use tessera_ir::writer::{Writer, smooth};
use tessera_ops::map::MapOp;
use tessera_ops::prim::{Prim, Reduction};
use tessera_ops::surface::{Build, Id, expand};

/// Carries that such a loop has before others: whether it goes on, and its turns.
const LEADS: usize = 2;

/// A loop with inputs of its body in their form for all values.
struct Wide {
    body: Graph,
    operands: Vec<Id>,
    /// The inputs of the body, and whether they are of each value.
    inputs: Vec<(NodeId, bool)>,
}

impl Batch<'_, '_> {
    /// A loop that ends by itself.
    pub(super) fn until(&mut self, id: NodeId, node: &Node) -> Value {
        let Prim::Scan { body, carry, .. } = node.prim else { bug!("{} is no loop", id.0) };
        let Some(inner) = self.l.body.bodies.get(body as usize) else { bug!("a loop has no body {body}") };
        let shared = self.l.shared(&node.operands[..LEADS]).and_then(|leads| self.together_until(node, inner, &leads));
        let (wide, lead) = match shared {
            Some(wide) => (wide, 0),
            None => (self.apart(node, inner), LEADS),
        };
        let value = self.wide_loop(id, node, wide, carry + lead, lead);
        if lead > 0 {
            self.state_loop(id, node, inner);
        }
        value
    }

    /// The derivative of a loop whose values end apart is that of each: what is computed for those that have ended is thrown away, but
    /// where it has no derivative, zero times that would not be zero.
    fn state_loop(&mut self, id: NodeId, node: &Node, inner: &Graph) {
        let Prim::Scan { carry, trips, .. } = node.prim else { bug!("{} is no loop", id.0) };
        let mut one = Graph { bodies: vec![inner.clone()], ..Graph::default() };
        let mut operands = vec![];
        for (n, &o) in node.operands.iter().enumerate() {
            let ty = self.l.body.ty(o).unsharded();
            operands.push(crate::copies::input(&mut one, &format!("x{n}"), ty));
        }
        let prim = Prim::Scan { body: 0, carry, sequences: 0, trips, reversed: false, until: true };
        let mut w = Writer::new(&mut one, node.policy);
        let looped = w.node(prim, operands, node.ty.unsharded(), node.results.clone());
        let Some((_, made)) = self.several.iter().find(|(of, _)| *of == id) else { bug!("{} was not batched", id.0) };
        let (mut outputs, mut kinds) = (vec![], vec![]);
        for (index, (ty, value)) in node.results.iter().zip(made).enumerate().filter(|(_, (ty, _))| smooth(ty.dtype)) {
            let (Value::Each(x) | Value::Plain(x)) = *value;
            outputs.push(NodeId(x.0));
            kinds.push(Kind { ty: ty.unsharded(), each: true });
            let Some(get) = w.get(looped, index) else { bug!("a loop has no result {index}") };
            w.graph.outputs.push(get);
        }
        if outputs.is_empty() {
            return;
        }
        let inputs = self.kinds(&node.operands);
        let many = Many {
            rule: Rule::Whole(Arc::new(one)),
            size: self.l.size,
            axis: self.l.axis.cloned(),
            inputs,
            outputs: kinds,
            saved: vec![],
        };
        let inputs = node.operands.iter().map(|&o| self.id(o)).collect();
        let rule = Rule::Many(Arc::new(many));
        self.l.w.graph.derivatives.add(Part { inputs, outputs, saved: vec![], constants: vec![], rule });
    }

    /// The body with an input for each operand from `first` on, those of the loop's own before.
    fn wide(&mut self, node: &Node, inner: &Graph, leads: &[Id], first: usize) -> Wide {
        let Prim::Scan { carry, .. } = node.prim else { bug!("a loop is expected") };
        let mut wide =
            Wide { body: Graph { name: inner.name.clone(), ..Graph::default() }, operands: vec![], inputs: vec![] };
        for &lead in leads {
            wide.input(&mut self.l.w, node, lead, false);
        }
        for (i, &o) in node.operands.iter().enumerate().skip(first) {
            // The state may differ from the first turn on.
            let each = i < carry || matches!(self.l.value(o), Value::Each(_));
            let value = match (each, self.l.value(o)) {
                (false, Value::Plain(x) | Value::Each(x)) => x,
                (true, _) => self.l.each(o),
            };
            wide.input(&mut self.l.w, node, value, each);
        }
        wide
    }

    /// The loop where all values have as many turns: what says so comes from nothing that differs.
    fn together_until(&mut self, node: &Node, inner: &Graph, leads: &[Id]) -> Option<Wide> {
        let mut wide = self.wide(node, inner, leads, LEADS);
        let Wide { body, inputs, .. } = &mut wide;
        let mut b = run(body, inner, inputs, self.l.size, self.l.axis, self.l.w.span);
        let mut outputs = vec![];
        for (i, &o) in inner.outputs.iter().enumerate() {
            outputs.push(match b.l.value(o) {
                Value::Plain(x) if i < LEADS => NodeId(x.0),
                Value::Each(_) if i < LEADS => return None,
                _ => NodeId(b.l.each(o).0),
            });
        }
        body.outputs = outputs;
        Some(wide)
    }

    /// The loop that goes on while any value does. It carries whether one does and its own turns, then what each value carries.
    fn apart(&mut self, node: &Node, inner: &Graph) -> Wide {
        let Prim::Scan { carry, .. } = node.prim else { bug!("a loop is expected") };
        let flags = self.l.each(node.operands[0]);
        let w = &mut self.l.w;
        let any = expand::reduce(w, flags, Reduction::Any, &[0], false);
        let none = expand::full(w, &[], DType::I64, tessera_ops::prim::Scalar::I(0));
        let mut wide = self.wide(node, inner, &[any, none], 0);
        let Wide { body, inputs, .. } = &mut wide;
        let (own, values) = inputs.split_at(LEADS);
        let inner = guarded(inner);
        let mut b = run(body, &inner, values, self.l.size, self.l.axis, self.l.w.span);
        let next: Vec<Id> = inner.outputs.iter().map(|&o| b.l.each(o)).collect();
        let mut w = Writer { span: self.l.w.span, ..Writer::new(body, node.policy) };
        let goes_on = Id(values[0].0.0);
        let mut kept = vec![];
        for (i, &new) in next.iter().enumerate() {
            let old = values.get(i).filter(|_| i < carry);
            kept.push(old.map_or(new, |(old, _)| {
                let shape = w.shape(new);
                let goes_on = expand::broadcast_dims(&mut w, goes_on, &shape, vec![0]);
                expand::select(&mut w, goes_on, new, Id(old.0))
            }));
        }
        // What has ended says so from then on.
        let any = expand::reduce(&mut w, kept[0], Reduction::Any, &[0], false);
        let turns = expand::binary_const(&mut w, MapOp::add, Id(own[1].0.0), 1.0);
        body.outputs = [any, turns].into_iter().chain(kept).map(|id| NodeId(id.0)).collect();
        wide
    }

    /// Adds the loop, and what it gives in the order of `node`'s results: those behind `lead` others.
    fn wide_loop(&mut self, id: NodeId, node: &Node, wide: Wide, carry: usize, lead: usize) -> Value {
        let Prim::Scan { trips, .. } = node.prim else { bug!("{} is no loop", id.0) };
        let Wide { body, operands, .. } = wide;
        let result = |(i, &o): (usize, &NodeId)| {
            let ty = body.ty(o);
            if i < carry { ty.unsharded() } else { ty.stacked(trips) }
        };
        let results: Vec<NodeType> = body.outputs.iter().enumerate().map(result).collect();
        let Some(first) = results.first().cloned() else { bug!("a loop without results is batched") };
        self.l.w.graph.bodies.push(body);
        let body = self.l.w.graph.bodies.len() as u32 - 1;
        let prim = Prim::Scan { body, carry, sequences: 0, trips, reversed: false, until: true };
        let operands = operands.into_iter().map(|id| NodeId(id.0)).collect();
        let made = self.l.w.node(prim, operands, first, results.clone());
        let mut values = vec![];
        for (i, ty) in results.iter().enumerate().skip(lead) {
            let Some(x) = self.l.w.get(made, i) else { bug!("a loop has no result {i}, of {}", results.len()) };
            let x = Id(x.0);
            values.push(match i {
                // Of the loop as a whole.
                _ if i < LEADS => Value::Plain(x),
                _ if i < carry => Value::Each(x),
                _ => {
                    let perm: Vec<usize> = [1, 0].into_iter().chain(2..ty.shape.len()).collect();
                    Value::Each(expand::transpose(&mut self.l.w, x, &perm))
                }
            });
        }
        let value = values[0];
        self.several.push((id, values));
        value
    }
}

impl Wide {
    /// One more input of the body.
    fn input(&mut self, around: &mut Writer, node: &Node, operand: Id, each: bool) {
        let ty = NodeType::new(around.shape(operand), around.dtype(operand));
        let n = self.operands.len() as u32;
        self.body.inputs.push(tessera_ir::graph::Input { name: format!("x{n}").into(), ty: ty.clone(), scalar: false });
        let mut w = Writer::new(&mut self.body, node.policy);
        self.inputs.push((w.node(Prim::Input(n), vec![], ty, vec![]), each));
        self.operands.push(operand);
    }
}
