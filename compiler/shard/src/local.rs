//! The graph of one device of a mesh.

use crate::exchange::{self, Parts};
use crate::layout::{Placed, lay_out, real};
use std::collections::HashMap;
use std::sync::Arc;
use tessera_base::{Mesh, Sharding};
use tessera_ir::graph::{Graph, Input, Node, NodeId, NodeType, Origin, Reason};
use tessera_ops::prim::Prim;

/// Where an output of a graph lies after the call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// On one device: the caller's.
    Plain,
    /// On the devices of a mesh, in this layout.
    Parts(Sharding),
}

/// A graph for each device, and where its outputs lie.
#[derive(Clone, PartialEq, Debug)]
pub struct Devices {
    pub mesh: Arc<Mesh>,
    /// By device; inputs and outputs are those of the whole graph, in this device's part.
    pub graphs: Vec<Graph>,
    pub outcomes: Vec<Outcome>,
}

/// Divides a graph over the devices of its mesh. Outputs whose type names no mesh go to the first
/// device.
pub fn divide(g: &Graph, mesh: &Arc<Mesh>) -> Devices {
    let placed = lay_out(g, mesh);
    Devices {
        mesh: mesh.clone(),
        graphs: (0..mesh.devices()).map(|d| of_device(g, mesh, &placed, d)).collect(),
        outcomes: outcomes_of(g, &placed),
    }
}

/// The graph of one device.
pub fn of_device(g: &Graph, mesh: &Arc<Mesh>, placed: &[Placed], device: u64) -> Graph {
    Local::build(g, mesh, placed, device)
}

/// Where the outputs of a graph lie after a call.
pub fn outcomes(g: &Graph, mesh: &Arc<Mesh>) -> Vec<Outcome> {
    outcomes_of(g, &lay_out(g, mesh))
}

fn outcomes_of(g: &Graph, placed: &[Placed]) -> Vec<Outcome> {
    let outcome = |o: &NodeId| match is_plain(g, *o) {
        true => Outcome::Plain,
        false => Outcome::Parts(placed[o.0 as usize].result.clone()),
    };
    g.outputs.iter().map(outcome).collect()
}

/// Whether a value is one that a single device has: only conversions and inputs say otherwise.
pub fn is_plain(g: &Graph, id: NodeId) -> bool {
    let node = g.node(id);
    match node.prim {
        Prim::Layout => node.ty.sharding.mesh.is_none(),
        Prim::Input(n) => g.inputs.get(n as usize).is_none_or(|i| i.ty.sharding.mesh.is_none()),
        _ => true,
    }
}

struct Local<'a> {
    from: &'a Graph,
    mesh: &'a Arc<Mesh>,
    placed: &'a [Placed],
    device: u64,
    graph: Graph,
    /// The local node of a node in a layout.
    made: HashMap<(NodeId, Sharding), NodeId>,
    tags: u32,
}

impl Local<'_> {
    fn build<'a>(from: &'a Graph, mesh: &'a Arc<Mesh>, placed: &'a [Placed], device: u64) -> Graph {
        let name = format!("{} on device {device} of {mesh}", from.name);
        let graph = Graph { name, bodies: from.bodies.clone(), ..Graph::default() };
        let mut local = Local { from, mesh, placed, device, graph, made: HashMap::new(), tags: 0 };
        local.graph.inputs = from.inputs.iter().map(|i| local.input(i)).collect();
        from.ids().for_each(|id| local.node(id));
        let outputs = from.outputs.iter().map(|&o| local.output(o)).collect();
        local.graph.outputs = outputs;
        local.graph
    }

    fn input(&self, input: &Input) -> Input {
        let layout = real(&input.ty.sharding, self.mesh, input.ty.shape.len());
        Input { ty: self.part_type(&input.ty, &layout), ..input.clone() }
    }

    fn part_type(&self, ty: &NodeType, layout: &Sharding) -> NodeType {
        let part = layout.block(&ty.shape, self.device);
        NodeType::new(part.iter().map(|r| r.end - r.start).collect(), ty.dtype)
    }

    fn node(&mut self, id: NodeId) {
        let (node, placed) = (self.from.node(id), &self.placed[id.0 as usize]);
        let operands: Vec<NodeId> =
            node.operands.iter().zip(&placed.operands).map(|(&o, layout)| self.operand(o, layout)).collect();
        let ty = self.part_type(&node.ty, &placed.result);
        let made = match (&node.prim, &operands[..]) {
            (Prim::Layout, [x]) => *x,
            _ => {
                let prim = match &node.prim {
                    Prim::DynamicSlice { sizes } => {
                        // Dims that go along have the size of the part.
                        let sizes = sizes.iter().zip(&ty.shape).map(|(_, n)| *n).collect();
                        Prim::DynamicSlice { sizes }
                    }
                    prim => prim.clone(),
                };
                let results = node.results.clone();
                self.graph.push(Node {
                    prim,
                    operands,
                    ty,
                    results,
                    origin: Origin { kernel: None, ..node.origin.clone() },
                    policy: node.policy,
                })
            }
        };
        self.made.insert((id, placed.result.clone()), made);
    }

    /// A node of the whole graph in a layout.
    fn operand(&mut self, id: NodeId, layout: &Sharding) -> NodeId {
        let key = (id, layout.clone());
        if let Some(&made) = self.made.get(&key) {
            return made;
        }
        let held = &self.placed[id.0 as usize].result;
        let shape = &self.from.ty(id).shape;
        let devices = self.mesh.devices();
        let (from, to) = (exchange::parts(held, shape, devices), exchange::parts(layout, shape, devices));
        let name = exchange::name(held, layout, self.mesh);
        let made = self.moved(id, &from, &to, &name);
        self.made.insert(key, made);
        made
    }

    fn moved(&mut self, id: NodeId, from: &Parts, to: &Parts, name: &str) -> NodeId {
        let held = self.placed[id.0 as usize].result.clone();
        let Some(&x) = self.made.get(&(id, held)) else { return NodeId(0) };
        if from == to {
            return x;
        }
        let node = self.from.node(id);
        let (own, wanted) = (&from[self.device as usize], &to[self.device as usize]);
        let shape: Vec<u64> = wanted.iter().map(|r| r.end - r.start).collect();
        let prim = if exchange::is_local(from, to) {
            let start = own.iter().zip(wanted).map(|(o, w)| w.start.saturating_sub(o.start) as i64).collect();
            Prim::Slice { start, step: vec![1; shape.len()] }
        } else {
            self.tags += 1;
            Prim::Exchange(Arc::new(exchange::exchange(from, to, self.device, name, self.tags)))
        };
        self.graph.push(Node {
            prim,
            operands: vec![x],
            ty: NodeType::new(shape, node.ty.dtype),
            results: vec![],
            origin: Origin { span: node.origin.span, reason: Some(Reason::Pass("shard")), kernel: None },
            policy: node.policy,
        })
    }

    fn output(&mut self, id: NodeId) -> NodeId {
        let held = &self.placed[id.0 as usize].result;
        let ty = self.from.ty(id);
        if !is_plain(self.from, id) {
            return self.operand(id, &held.clone());
        }
        let devices = self.mesh.devices();
        let (from, to) = (exchange::parts(held, &ty.shape, devices), exchange::on_first(&ty.shape, devices));
        // A value of rank 0 cannot be cut.
        if ty.shape.is_empty() {
            return self.operand(id, &held.clone());
        }
        self.moved(id, &from, &to, "gather")
    }
}
