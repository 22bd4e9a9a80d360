//! The body of a loop that ends by itself, where it may be computed for values whose loop has ended.
//!
//! What they carry then is what ended their loop: a position may lie behind the last element, a number may be one that an operation
//! has no value for, a matrix may have no factors, and a loop inside may never end. Where carry 0 is false positions are 0, checks
//! see numbers that they hold for, matrices are identities, and loops inside have no turn. What is computed then is thrown away.

use std::collections::BTreeMap;
use tessera_abi::check::Check;
use tessera_ir::graph::{Graph, Input, Node, NodeId, NodeType};
use tessera_ir::writer::Writer;
use tessera_ops::map::MapOp;
use tessera_ops::prim::{Prim, Scalar};
use tessera_ops::surface::{Build, Id, expand};

/// The same body; where carry 0 holds it computes the same.
pub fn guarded(body: &Graph) -> Graph {
    if !body.nodes.iter().any(|n| has_to_be(&n.prim)) {
        return body.clone();
    }
    let flag = body.ids().find(|id| body.node(*id).prim == Prim::Input(0));
    Guard { old: body, now: BTreeMap::new(), flag: None }.run(flag, None)
}

fn has_to_be(prim: &Prim) -> bool {
    matches!(prim, Prim::Check(_) | Prim::Scan { .. } | Prim::Factor(_) | Prim::TriangularSolve(_))
        || !positions(prim, 3).is_empty()
}

/// Which operands are positions.
fn positions(prim: &Prim, operands: usize) -> std::ops::Range<usize> {
    match prim {
        Prim::Take { .. } | Prim::TakeAlong { .. } | Prim::ScatterAddAlong { .. } => 1..2,
        Prim::Gather | Prim::DynamicSlice { .. } => 1..operands,
        Prim::Scatter { .. } | Prim::DynamicUpdate => 2..operands,
        _ => 0..0,
    }
}

struct Guard<'g> {
    old: &'g Graph,
    now: BTreeMap<NodeId, NodeId>,
    /// What says whether a value still takes part.
    flag: Option<Id>,
}

impl Guard<'_> {
    /// `of_carry`: the node that says so, or else the type of a further input that does.
    fn run(mut self, of_carry: Option<NodeId>, given: Option<NodeType>) -> Graph {
        let mut out = Graph { nodes: vec![], outputs: vec![], ..self.old.clone() };
        if let Some(ty) = given {
            let n = out.inputs.len() as u32;
            out.inputs.push(Input { name: "takes_part".into(), ty: ty.clone(), scalar: false });
            let mut w = Writer::new(&mut out, Default::default());
            self.flag = Some(Id(w.node(Prim::Input(n), vec![], ty, vec![]).0));
        }
        for id in self.old.ids() {
            let node = self.old.node(id).clone();
            let node = Node { operands: node.operands.iter().map(|o| self.now[o]).collect(), ..node };
            let node = match self.flag {
                Some(flag) => guard(&mut out, node, flag),
                None => node,
            };
            let new = out.push(node);
            if of_carry == Some(id) {
                self.flag = Some(Id(new.0));
            }
            self.now.insert(id, new);
        }
        let all: Vec<NodeId> = self.old.ids().collect();
        out.derivatives = self.old.derivatives.copied(&all, &|id| self.now.get(&id).copied());
        out.outputs = self.old.outputs.iter().map(|o| self.now[o]).collect();
        out
    }
}

/// The node as it is where `flag` does not hold.
fn guard(g: &mut Graph, mut node: Node, flag: Id) -> Node {
    match node.prim.clone() {
        Prim::Check(check) => {
            let [a, b] = [node.operands[0], node.operands[1]];
            let (first, second) = match check {
                Check::Holds => (1.0, 1.0),
                _ if check.of_ints() => (0.0, 1.0),
                _ => (1.0, 1.0),
            };
            node.operands[0] = chosen(g, &node, flag, a, first);
            // What these hold against says itself what it is.
            if !matches!(check, Check::Value | Check::Steps) {
                node.operands[1] = chosen(g, &node, flag, b, second);
            }
        }
        Prim::Scan { until: true, .. } => {
            let goes_on = Id(node.operands[0].0);
            let mut w = Writer::of(g, &node.origin, node.policy);
            node.operands[0] = NodeId(expand::map(&mut w, MapOp::logical_and, &[goes_on, flag]).0);
        }
        Prim::Scan { body, .. } => {
            let Some(inner) = g.bodies.get(body as usize).cloned() else { return node };
            if inner.nodes.iter().any(|n| has_to_be(&n.prim)) {
                let ty = g.ty(NodeId(flag.0)).unsharded();
                g.bodies[body as usize] = Guard { old: &inner, now: BTreeMap::new(), flag: None }.run(None, Some(ty));
                node.operands.push(NodeId(flag.0));
            }
        }
        Prim::Factor(_) | Prim::TriangularSolve(_) => node.operands[0] = identity(g, &node, flag),
        prim => {
            for i in positions(&prim, node.operands.len()) {
                node.operands[i] = chosen(g, &node, flag, node.operands[i], 0.0);
            }
        }
    }
    node
}

/// The matrices of operand 0 where the flag holds, else identities.
fn identity(g: &mut Graph, like: &Node, flag: Id) -> NodeId {
    let x = Id(like.operands[0].0);
    let mut w = Writer::of(g, &like.origin, like.policy);
    let (shape, dtype) = (w.shape(x), w.dtype(x));
    let (row, column) = (expand::iota(&mut w, &shape, shape.len() - 2), expand::iota(&mut w, &shape, shape.len() - 1));
    let diagonal = expand::map(&mut w, MapOp::eq, &[row, column]);
    let other = expand::cast(&mut w, diagonal, dtype);
    let flag = expand::broadcast_to(&mut w, flag, &shape);
    NodeId(expand::select(&mut w, flag, x, other).0)
}

/// `x` where the flag holds, else a number.
fn chosen(g: &mut Graph, like: &Node, flag: Id, x: NodeId, other: f64) -> NodeId {
    let mut w = Writer::of(g, &like.origin, like.policy);
    let (x, shape, dtype) = (Id(x.0), w.shape(Id(x.0)), w.dtype(Id(x.0)));
    let other = if dtype.is_float() { Scalar::F(other) } else { Scalar::I(other as i64) };
    let other = expand::full(&mut w, &shape, dtype, other);
    let flag = expand::broadcast_to(&mut w, flag, &shape);
    NodeId(expand::select(&mut w, flag, x, other).0)
}
