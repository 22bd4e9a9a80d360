//! What a graph under construction knows about its derivatives beyond those of the primitives.

use super::{Graph, NodeId, NodeType};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use tessera_base::Mesh;
use tessera_ops::surface::{Derivative, Id, Pull};

/// Parts of a graph whose derivative is known as a whole, and nodes that count as constants.
#[derive(Clone, Default)]
pub struct Derivatives {
    held: BTreeSet<NodeId>,
    parts: Vec<Arc<Part>>,
    /// The part that gives a node, by position.
    by_output: BTreeMap<NodeId, usize>,
}

/// A part of a graph, from its inputs to its outputs.
#[derive(Clone)]
pub struct Part {
    pub inputs: Vec<NodeId>,
    pub outputs: Vec<NodeId>,
    /// Other nodes that the derivative is written with.
    pub saved: Vec<NodeId>,
    /// Nodes that count as constants by the program's own rule: by what they depend on there is no derivative.
    pub constants: Vec<NodeId>,
    pub rule: Rule,
}

/// How cotangents of the inputs follow from those of the outputs.
#[derive(Clone)]
pub enum Rule {
    /// Steps that are added to the graph; of one output.
    Steps(Pull),
    /// A graph whose inputs are the part's inputs, its outputs, their cotangents, and the `saved`
    /// nodes, and whose outputs are the cotangents of the inputs of float type.
    Graph(Arc<Graph>),
    /// The nodes from the first to the one before the second are computed again, and their
    /// derivative is taken step by step. The outputs, which come after them, have the values of
    /// the part's `saved` nodes, which are among them.
    Again(NodeId, NodeId),
    /// A graph from the inputs to the outputs: the derivative is that of its nodes.
    Whole(Arc<Graph>),
    /// A rule for one value, of a part that goes over many at once.
    Many(Arc<Many>),
}

/// A rule for one value, and which nodes of the part have a leading dim that goes over the values; the
/// others all values share.
#[derive(Clone)]
pub struct Many {
    pub rule: Rule,
    pub size: u64,
    /// Where the values are those of the devices along an axis of a mesh.
    pub axis: Option<Arc<Along>>,
    pub inputs: Vec<Kind>,
    pub outputs: Vec<Kind>,
    pub saved: Vec<Kind>,
}

/// An axis of a mesh.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Along {
    pub name: String,
    pub mesh: Arc<Mesh>,
}

/// A node of a part: its type for one value, and whether it has the leading dim.
#[derive(Clone)]
pub struct Kind {
    pub ty: NodeType,
    pub each: bool,
}

impl Derivatives {
    /// Makes a node a constant.
    pub fn hold(&mut self, id: NodeId) {
        self.held.insert(id);
    }

    pub fn is_held(&self, id: NodeId) -> bool {
        self.held.contains(&id)
    }

    /// Adds a part. An output that another part gives already belongs to the later one.
    pub fn add(&mut self, part: Part) {
        for &o in &part.outputs {
            self.by_output.insert(o, self.parts.len());
        }
        self.parts.push(Arc::new(part));
    }

    /// Adds a part of which an operator gives the derivative.
    pub fn add_steps(&mut self, d: Derivative) {
        let all = |ids: Vec<Id>| ids.into_iter().map(|id| NodeId(id.0)).collect();
        let (inputs, saved) = (all(d.inputs), all(d.saved));
        let outputs = vec![NodeId(d.output.0)];
        self.add(Part { inputs, outputs, saved, constants: vec![], rule: Rule::Steps(d.pull) });
    }

    /// The part that gives a node.
    pub fn of(&self, id: NodeId) -> Option<&Arc<Part>> {
        self.by_output.get(&id).and_then(|&i| self.parts.get(i))
    }

    /// Forgets what is said about the nodes from `end` on.
    pub fn truncate(&mut self, end: NodeId) {
        self.held.retain(|&id| id < end);
        self.by_output.retain(|&id, _| id < end);
    }

    /// The same statements about nodes that were copied: `to` gives the copy of a node.
    pub fn copied(&self, nodes: &[NodeId], to: &dyn Fn(NodeId) -> Option<NodeId>) -> Derivatives {
        let mut out = Derivatives::default();
        for &id in nodes {
            if self.is_held(id) {
                to(id).into_iter().for_each(|id| out.hold(id));
            }
            let Some(part) = self.of(id) else { continue };
            // A part of several outputs is added once, at the last of them.
            if part.outputs.iter().max() != Some(&id) {
                continue;
            }
            let all = |ids: &[NodeId]| ids.iter().map(|&id| to(id)).collect::<Option<Vec<_>>>();
            let rule = match part.rule {
                Rule::Again(from, end) => {
                    let last = NodeId(end.0.saturating_sub(1));
                    to(from).zip(to(last)).map(|(from, last)| Rule::Again(from, NodeId(last.0 + 1)))
                }
                _ => Some(part.rule.clone()),
            };
            if let (Some(inputs), Some(outputs), Some(saved), Some(rule)) =
                (all(&part.inputs), all(&part.outputs), all(&part.saved), rule)
            {
                let constants = part.constants.iter().filter_map(|&id| to(id)).collect();
                out.add(Part { inputs, outputs, saved, constants, rule });
            }
        }
        out
    }

    /// Adds the statements of another.
    pub fn extend(&mut self, other: Derivatives) {
        self.held.extend(other.held);
        other.parts.into_iter().for_each(|p| self.add(Arc::unwrap_or_clone(p)));
    }
}

/// Graphs are compared by what they compute.
impl PartialEq for Derivatives {
    fn eq(&self, _: &Derivatives) -> bool {
        true
    }
}

impl fmt::Debug for Derivatives {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "Derivatives({} parts, {} held)", self.parts.len(), self.held.len())
    }
}
