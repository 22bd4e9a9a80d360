//! The graph of one device of a mesh.

mod coalesce;

use crate::adder::SUMMANDS;
use crate::blockwise_topk::blockwise_topk;
use crate::exchange::{self, Holders};
use crate::layout::loop_carries::LoopLayout;
use crate::layout::{Materialization, NodeLayout, lay_out, real};
use crate::partial_products::Weighed;
use crate::parts_first::parts_first;
use crate::placement::{Parts, Placement};
use crate::unflatten_columns::unflatten_columns;
use coalesce::Batches;
use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use tessera_base::{Mesh, Sharding};
use tessera_ir::graph::{Graph, Input, Node, NodeId, NodeType, Reason};
use tessera_ir::hints::KernelHints;
use tessera_ir::prim::columns::Boxes;
use tessera_ir::prim::{Site, counted, row};
use tessera_ops::prim::{Exchange, Prim, Scalar};

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
    /// By device, of those that were asked for; inputs and outputs are those of the whole graph, in this device's part.
    pub graphs: Vec<Graph>,
    pub outcomes: Vec<Outcome>,
}

/// The graph in the form in which it is laid out.
pub fn prepared(g: &Graph, mesh: &Arc<Mesh>) -> Graph {
    weighed(g, mesh).0
}

/// The same with what was weighed of products on the way.
pub fn weighed(g: &Graph, mesh: &Arc<Mesh>) -> (Graph, Vec<Weighed>) {
    parts_first(&blockwise_topk(&unflatten_columns(g), mesh), mesh)
}

/// Divides a graph over the devices of its mesh. Outputs whose type names no mesh go to the first
/// device.
pub fn divide(g: &Graph, mesh: &Arc<Mesh>) -> Devices {
    divide_some(g, mesh, 0..mesh.devices())
}

/// The same with the graphs of some devices alone.
pub fn divide_some(g: &Graph, mesh: &Arc<Mesh>, devices: Range<u64>) -> Devices {
    let g = &prepared(g, mesh);
    let placed = lay_out(g, mesh);
    let shared = Shared::default();
    Devices {
        mesh: mesh.clone(),
        graphs: devices.map(|d| of_device_in(g, mesh, &placed, d, shared.clone()).0).collect(),
        outcomes: outcomes_of(g, &placed),
    }
}

/// What an exchange turns into what.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Moved {
    pub from: Placement,
    pub to: Placement,
    /// Of the whole tensor.
    pub shape: Vec<u64>,
}

/// The graph of one device, and its exchanges in the order of their tags, which count from 1; those
/// of a loop are made in every turn. The exchanges are the same on all devices.
pub fn of_device(g: &Graph, mesh: &Arc<Mesh>, placed: &[NodeLayout], device: u64) -> (Graph, Vec<Moved>) {
    of_device_in(g, mesh, placed, device, Shared::default())
}

/// The same, where `shared` is known already.
fn of_device_in(
    g: &Graph,
    mesh: &Arc<Mesh>,
    placed: &[NodeLayout],
    device: u64,
    shared: Shared,
) -> (Graph, Vec<Moved>) {
    let inputs: Vec<Sharding> = g.inputs.iter().map(|i| real(&i.ty.sharding, mesh, i.ty.shape.len())).collect();
    let outputs: Vec<Placement> = g.outputs.iter().map(|&o| held_after(g, placed, o)).collect();
    let moves = Moves { shared, ..Moves::default() };
    let (mut graph, moves) = Partitioner::new(g, mesh, placed, device, moves).build(&inputs, &outputs);
    graph.name = format!("{} on device {device} of {mesh}", g.name);
    (graph, moves.exchanges)
}

/// Who holds an output after the call. A value of rank 0 cannot be cut.
fn held_after(g: &Graph, placed: &[NodeLayout], o: NodeId) -> Placement {
    let alone = is_plain(g, o) && !g.ty(o).shape.is_empty();
    if alone { Placement::First } else { placed[o.0 as usize].result.clone().into() }
}

/// Where the outputs of a graph lie after a call.
pub fn outcomes(g: &Graph, mesh: &Arc<Mesh>) -> Vec<Outcome> {
    let g = &prepared(g, mesh);
    outcomes_of(g, &lay_out(g, mesh))
}

fn outcomes_of(g: &Graph, placed: &[NodeLayout]) -> Vec<Outcome> {
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

struct Partitioner<'a> {
    from: &'a Graph,
    mesh: &'a Arc<Mesh>,
    placed: &'a [NodeLayout],
    device: u64,
    graph: Graph,
    /// By local node: the last batch of exchanges that it needs, or that it would need if this device had a part in all.
    after: Vec<u32>,
    /// The local node of a node at a place.
    made: HashMap<(NodeId, Placement), NodeId>,
    moves: Moves,
}

/// What is moved, over a graph and the bodies of its loops.
#[derive(Default)]
struct Moves {
    exchanges: Vec<Moved>,
    batches: Batches,
    ways: HashMap<Moved, (Vec<u64>, Way)>,
    shared: Shared,
}

/// What is the same for all devices: to work it out takes as long as there are devices, and for each of them again it
/// would take the square of that.
type Shared = Rc<RefCell<HashMap<Moved, Rc<Course>>>>;

/// How a value gets from one place to another.
struct Course {
    held: Parts,
    wanted: Parts,
    holders: Holders,
    kind: Kind,
}

enum Kind {
    Same,
    Slice,
    /// With its name.
    Exchange(String),
}

impl Course {
    fn of(Moved { from, to, shape }: &Moved, mesh: &Arc<Mesh>) -> Course {
        let (held, wanted) = [from, to].map(|place| place.parts(shape, mesh.devices())).into();
        let kind = if held == wanted {
            Kind::Same
        } else if exchange::is_local(&held, &wanted) {
            Kind::Slice
        } else {
            Kind::Exchange(exchange::name(from, to, (&held, &wanted), mesh))
        };
        Course { holders: exchange::holders(&held), held, wanted, kind }
    }
}

/// How a device gets its part of a value.
#[derive(Clone)]
enum Way {
    /// It has it.
    Same,
    /// It has more: where its part begins.
    Slice(Vec<i64>),
    Exchange(Exchange),
}

impl<'a> Partitioner<'a> {
    fn new(
        from: &'a Graph,
        mesh: &'a Arc<Mesh>,
        placed: &'a [NodeLayout],
        device: u64,
        moves: Moves,
    ) -> Partitioner<'a> {
        // What is measured on one machine says nothing of the parts of another.
        let kernels = from.kernels.iter().map(|k| KernelHints { autotune: None, ..k.clone() }).collect();
        let (graph, after, made) = (Graph { kernels, ..Graph::default() }, vec![], HashMap::new());
        Partitioner { from, mesh, placed, device, graph, after, made, moves }
    }

    fn push(&mut self, node: Node) -> NodeId {
        let operands = node.operands.clone();
        self.push_for(node, &operands)
    }

    /// Adds a node that stands for one with these operands.
    fn push_for(&mut self, node: Node, operands: &[NodeId]) -> NodeId {
        let after = operands.iter().map(|o| self.after.get(o.0 as usize).copied().unwrap_or(0)).max().unwrap_or(0);
        self.after.push(match &node.prim {
            Prim::Exchange(e) => e.batch,
            _ => after,
        });
        self.graph.push(node)
    }

    /// The graph with its inputs and outputs in these layouts.
    fn build(mut self, inputs: &[Sharding], outputs: &[Placement]) -> (Graph, Moves) {
        self.graph.name = self.from.name.clone();
        for (input, layout) in self.from.inputs.iter().zip(inputs) {
            let ty = self.part_type(&input.ty, &layout.clone().into());
            self.graph.inputs.push(Input { ty, ..input.clone() });
        }
        self.from.ids().for_each(|id| self.node(id));
        for (&o, place) in self.from.outputs.iter().zip(outputs) {
            let made = self.operand(o, place);
            self.graph.outputs.push(made);
        }
        (self.graph, self.moves)
    }

    fn part_type(&self, ty: &NodeType, place: &Placement) -> NodeType {
        let part = place.part(&ty.shape, self.device);
        NodeType::new(part.iter().map(|r| r.end - r.start).collect(), ty.dtype)
    }

    fn node(&mut self, id: NodeId) {
        let placed = &self.placed[id.0 as usize];
        if !matches!(self.from.node(id).prim, Prim::Input(_) | Prim::Literal(_) | Prim::Layout) {
            let bytes = self.from.ty(id).bytes().unwrap_or(u64::MAX);
            self.moves.batches.computed(bytes / self.mesh.devices().max(1));
        }
        placed.made.iter().for_each(|made| self.node_at(id, made));
    }

    fn node_at(&mut self, id: NodeId, at: &Materialization) {
        let (node, placed) = (self.from.node(id), &self.placed[id.0 as usize]);
        let mut operands: Vec<NodeId> =
            node.operands.iter().zip(&at.operands).map(|(&o, place)| self.operand(o, place)).collect();
        self.count_from_here(node, at, &mut operands);
        let ty = self.part_type(&node.ty, &at.at);
        let made = match (&node.prim, &operands[..]) {
            (Prim::Layout, [x]) => *x,
            (prim, _) if !matches!(prim, Prim::Input(_)) && at.at.is_absent(self.device) => {
                // Its exchanges are counted all the same, so that they have their tags on all devices.
                let bodies = self.graph.bodies.len();
                if let Prim::Scan { body, .. } = node.prim {
                    self.body(body, placed.turn.as_deref());
                }
                self.graph.bodies.truncate(bodies);
                self.nothing(node, ty.shape, &operands)
            }
            // Each device has got its row.
            (Prim::Dot { .. }, &[a, b]) if self.graph.ty(b).shape.len() > self.graph.ty(a).shape.len() => {
                self.product_in_parts(node, [a, b], ty)
            }
            (Prim::Rows { .. }, [x]) if at.operands.iter().any(|o| o.layout().is_none()) => *x,
            _ => {
                let prim = self.prim_of_part(node, placed, at);
                let results: Vec<NodeType> = match &placed.turn {
                    Some(turn) => {
                        let part = |(ty, l): (&NodeType, &Sharding)| self.part_type(ty, &l.clone().into());
                        node.results.iter().zip(&turn.results).map(part).collect()
                    }
                    None => node.results.clone(),
                };
                self.push(Node {
                    prim,
                    operands,
                    ty: results.first().cloned().unwrap_or(ty),
                    results,
                    origin: node.origin.clone(),
                    policy: node.policy,
                })
            }
        };
        self.made.insert((id, at.at.clone()), made);
    }

    /// Positions that count a dim of what they are in, of which this device has a part: it counts that.
    fn count_from_here(&mut self, node: &Node, at: &Materialization, operands: &mut [NodeId]) {
        let first = match node.prim {
            Prim::Gather => 1,
            Prim::Scatter { .. } => 2,
            _ => return,
        };
        let base = at.operands[0].part(&self.from.ty(node.operands[0]).shape, self.device);
        for (d, range) in base.iter().enumerate().filter(|(_, range)| range.start > 0) {
            if let Some(axis) = counted(Site { g: self.from, node }, first, d)
                && let Some(index) = operands.get_mut(first + d)
                && self.graph.ty(*index).shape.get(axis) == Some(&(range.end - range.start))
            {
                let like = self.graph.node(*index).clone();
                *index = self.push(Node { prim: Prim::Iota { axis }, operands: vec![], ..like });
            }
        }
    }

    /// The primitive that makes this device's part of a node.
    fn prim_of_part(&mut self, node: &Node, placed: &NodeLayout, at: &Materialization) -> Prim {
        match &node.prim {
            &Prim::Scan { body, carry, sequences, trips, reversed, until } => {
                let body = self.body(body, placed.turn.as_deref());
                Prim::Scan { body, carry, sequences, trips, reversed, until }
            }
            prim => {
                let result = || at.at.part(&node.ty.shape, self.device);
                let operand = |i: usize| at.operands[i].part(&self.from.ty(node.operands[i]).shape, self.device);
                let made = row(prim).of_box(&Boxes { result: &result, operand: &operand });
                made.unwrap_or_else(|| prim.clone())
            }
        }
    }

    /// What a device has of a value that lies elsewhere.
    fn nothing(&mut self, like: &Node, shape: Vec<u64>, operands: &[NodeId]) -> NodeId {
        let origin = like.origin.of_pass("shard");
        let (ty, value) = (NodeType::new(shape, like.ty.dtype), Scalar::zero(like.ty.dtype));
        let prim = Prim::Full { value };
        self.push_for(Node { prim, operands: vec![], ty, results: vec![], origin, policy: like.policy }, operands)
    }

    /// A product with its columns in several dims, which are joined for it; see [`crate::unflatten_columns`].
    fn product_in_parts(&mut self, node: &Node, [a, b]: [NodeId; 2], ty: NodeType) -> NodeId {
        let kept = self.graph.ty(a).shape.len() - 1;
        let join = |shape: &[u64]| [&shape[..kept], &[shape[kept..].iter().product()]].concat();
        let [right, narrow] = [&self.graph.ty(b).shape, &ty.shape].map(|shape| join(shape));
        let right = NodeType::new(right, self.graph.ty(b).dtype);
        let mut push = |prim: Prim, operands: Vec<NodeId>, ty: NodeType| {
            let origin = node.origin.clone();
            self.push(Node { prim, operands, ty, results: vec![], origin, policy: node.policy })
        };
        let b = push(Prim::Reshape, vec![b], right);
        let product = push(node.prim.clone(), vec![a, b], NodeType::new(narrow, ty.dtype));
        push(Prim::Reshape, vec![product], ty)
    }

    /// The body of a loop on this device.
    fn body(&mut self, body: u32, turn: Option<&LoopLayout>) -> u32 {
        if let (Some(from), Some(turn)) = (self.from.bodies.get(body as usize), turn) {
            let &mut Partitioner { mesh, device, .. } = self;
            let mut moves = std::mem::take(&mut self.moves);
            moves.batches.close();
            let inner = Partitioner::new(from, mesh, &turn.placed, device, moves);
            let outputs: Vec<Placement> = turn.outputs.iter().cloned().map(Placement::Layout).collect();
            let (graph, mut moves) = inner.build(&turn.inputs, &outputs);
            moves.batches.close();
            self.moves = moves;
            self.graph.bodies.push(graph);
        }
        (self.graph.bodies.len() as u32).saturating_sub(1)
    }

    /// A node of the whole graph at a place.
    fn operand(&mut self, id: NodeId, place: &Placement) -> NodeId {
        let key = (id, place.clone());
        if let Some(&made) = self.made.get(&key) {
            return made;
        }
        let made = self.moved(id, place);
        self.made.insert(key, made);
        made
    }

    /// How this device gets its part; worked out once for equal layouts and shapes.
    fn way(&mut self, moved: &Moved) -> (Vec<u64>, Way) {
        if let Some(known) = self.moves.ways.get(moved) {
            return known.clone();
        }
        let found = self.moves.shared.borrow().get(moved).cloned();
        let course = found.unwrap_or_else(|| {
            let made = Rc::new(Course::of(moved, self.mesh));
            self.moves.shared.borrow_mut().insert(moved.clone(), made.clone());
            made
        });
        let Course { held, wanted, holders, kind } = &*course;
        let (own, mine) = (&held[self.device as usize], &wanted[self.device as usize]);
        let way = match kind {
            Kind::Same => Way::Same,
            Kind::Slice => {
                Way::Slice(own.iter().zip(mine).map(|(o, w)| w.start.saturating_sub(o.start) as i64).collect())
            }
            Kind::Exchange(name) => Way::Exchange(exchange::exchange(held, holders, wanted, self.device, name)),
        };
        let known = (mine.iter().map(|r| r.end - r.start).collect(), way);
        self.moves.ways.insert(moved.clone(), known.clone());
        known
    }

    fn moved(&mut self, id: NodeId, to: &Placement) -> NodeId {
        let from = self.placed[id.0 as usize].held();
        let Some(&x) = self.made.get(&(id, from.clone())) else { return NodeId(0) };
        let node = self.from.node(id);
        self.brought(x, node, Moved { from, to: to.clone(), shape: node.ty.shape.clone() })
    }

    /// The local value `x` of a node, brought to who is to hold it.
    fn brought(&mut self, x: NodeId, node: &Node, moved: Moved) -> NodeId {
        let (shape, way) = self.way(&moved);
        let prim = match way {
            Way::Same => return x,
            Way::Slice(_) if moved.to.is_absent(self.device) => return self.nothing(node, shape, &[x]),
            Way::Slice(start) => Prim::Slice { start, step: vec![1; shape.len()] },
            Way::Exchange(mut e) => {
                if node.origin.reason == Some(Reason::Pass(SUMMANDS)) {
                    e.name = format!("{}, {SUMMANDS}", e.name).into();
                }
                let bytes = NodeType::new(moved.shape.clone(), node.ty.dtype).bytes().unwrap_or(u64::MAX);
                self.moves.exchanges.push(moved);
                let (tag, after) =
                    (self.moves.exchanges.len() as u32, self.after.get(x.0 as usize).copied().unwrap_or(0));
                let batch = self.moves.batches.of(tag, &e.name, bytes, after);
                Prim::Exchange(Arc::new(Exchange { tag, batch, ..e }))
            }
        };
        self.push(Node {
            prim,
            operands: vec![x],
            ty: NodeType::new(shape, node.ty.dtype),
            results: vec![],
            origin: node.origin.of_pass("shard"),
            policy: node.policy,
        })
    }
}
