//! A graph for many values at once, under construction: what a primitive is given to say how it goes over all of them.

use crate::graph::derivatives::Along;
use crate::graph::{Graph, Node, NodeId, NodeType};
use crate::writer::Writer;
use std::sync::Arc;
use tessera_base::Sharding;
use tessera_ops::prim::Prim;
use tessera_ops::surface::{Build, Id, expand};

/// A value of the body in the graph outside.
#[derive(Clone, Copy)]
pub enum Value {
    /// The same for all.
    Plain(Id),
    /// With the leading dim.
    Each(Id),
}

/// The form of a primitive whose operands have more dims in front.
pub enum Lifted {
    /// All operands have them.
    All(Prim),
    /// The first operand has them, the others are as they were.
    First(Prim),
    /// There is none.
    No,
}

/// The nodes of a body for many values.
pub struct Lift<'a, 'g> {
    pub w: Writer<'g>,
    pub body: &'a Graph,
    /// How many values there are.
    pub size: u64,
    /// Where the values are those of devices.
    pub axis: Option<&'a Arc<Along>>,
    /// By node of the body.
    pub values: Vec<Value>,
}

impl Lift<'_, '_> {
    pub fn value(&self, id: NodeId) -> Value {
        self.values[id.0 as usize]
    }

    /// With the leading dim.
    pub fn each(&mut self, id: NodeId) -> Id {
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

    /// The values of these nodes, if all values share them.
    pub fn shared(&self, ids: &[NodeId]) -> Option<Vec<Id>> {
        let plain = |&id: &NodeId| match self.value(id) {
            Value::Plain(x) => Some(x),
            Value::Each(_) => None,
        };
        ids.iter().map(plain).collect()
    }

    /// Adds a primitive with the leading dim in place of a node.
    pub fn push(&mut self, node: &Node, prim: Prim, operands: &[Id]) -> Id {
        let shape = [&[self.size][..], &node.ty.shape].concat();
        self.w.push(prim, operands, shape, node.ty.dtype)
    }

    /// A node in its form with the leading dim; `None` where that has none, or takes operands that all values share.
    pub fn in_form(&mut self, node: &Node, form: Lifted) -> Option<Id> {
        let (prim, operands) = match form {
            Lifted::All(prim) => (prim, node.operands.iter().map(|&o| self.each(o)).collect()),
            Lifted::First(prim) => {
                let (&first, others) = node.operands.split_first()?;
                let others = self.shared(others)?;
                (prim, [&[self.each(first)], &others[..]].concat())
            }
            Lifted::No => return None,
        };
        Some(self.push(node, prim, &operands))
    }

    /// A value in a layout.
    pub fn with_sharding(&mut self, x: Id, sharding: Sharding) -> Id {
        let ty = NodeType { sharding, ..self.w.graph.ty(NodeId(x.0)).clone() };
        Id(self.w.node(Prim::Layout, vec![NodeId(x.0)], ty, vec![]).0)
    }

    /// The number of each value, in the shape `[size, …]` of an index.
    pub fn numbers(&mut self, shape: &[u64]) -> Id {
        expand::iota(&mut self.w, shape, 0)
    }
}
