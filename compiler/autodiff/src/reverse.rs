//! The walk from the outputs back.

mod products;
mod rows;
mod scan;

pub use scan::{ANY_NUMBER, active_inputs};

use crate::batch::{as_graph, of_whole};
use crate::copies::copy_into;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tessera_ir::graph::derivatives::{Part, Rule};
use tessera_ir::graph::{Graph, Node, NodeId};
use tessera_ir::prim::row;
use tessera_ir::writer::{At, Writer, smooth, zeros_like};
use tessera_ops::map::MapOp;
use tessera_ops::prim::Prim;
use tessera_ops::surface::{Id, Pulled, expand};

/// Why there is no derivative: the node, and the reason.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Blocked {
    pub node: NodeId,
    pub why: &'static str,
}

/// Why what a function with a derivative of its own does not take as an argument has none.
const CAPTURED: &str = "a function with `autodiff.custom_vjp` has one by its arguments alone, and this one takes a value that depends on \
    what is differentiated by from around it (pass it as an argument, or `autodiff.stop_gradient` of it)";

/// Cotangents of the nodes `wrt` for the cotangents given: pairs of a node and its cotangent, of
/// one type. `None` where nothing depends on the node. New nodes are added to the end of the
/// graph; loops on the way give their states as further results.
///
/// # Errors
/// A node on the way that has no derivative.
pub fn pullback(g: &mut Graph, seeds: &[(NodeId, NodeId)], wrt: &[NodeId]) -> Result<Vec<Option<NodeId>>, Blocked> {
    let first = wrt.iter().min().copied().unwrap_or(NodeId(0));
    let end = NodeId(g.nodes.len() as u32);
    Reverse::new(g, wrt, first, end).run(seeds)
}

/// State of one walk over the nodes from `first` to the one before `end`.
pub struct Reverse<'g> {
    pub g: &'g mut Graph,
    wrt: Vec<NodeId>,
    first: NodeId,
    end: NodeId,
    /// Nodes from here on are those of the derivative.
    made: NodeId,
    /// Nodes that depend on `wrt` smoothly.
    active: BTreeSet<NodeId>,
    /// Terms so far, in the type of the node, of what has not been summed yet.
    cotangents: BTreeMap<NodeId, Vec<NodeId>>,
    sums: BTreeMap<NodeId, NodeId>,
    /// Cotangents of the results of nodes with several.
    several: BTreeMap<NodeId, Vec<Option<NodeId>>>,
}

impl<'g> Reverse<'g> {
    pub fn new(g: &'g mut Graph, wrt: &[NodeId], first: NodeId, end: NodeId) -> Reverse<'g> {
        let active = active(g, wrt, first, end);
        let (cotangents, sums, several) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Reverse { g, wrt: wrt.to_vec(), first, end, made: end, active, cotangents, sums, several }
    }

    pub fn run(mut self, seeds: &[(NodeId, NodeId)]) -> Result<Vec<Option<NodeId>>, Blocked> {
        self.walk(seeds)?;
        let wrt = self.wrt.clone();
        Ok(wrt.into_iter().map(|id| self.cotangent(id)).collect())
    }

    fn walk(&mut self, seeds: &[(NodeId, NodeId)]) -> Result<(), Blocked> {
        for &(of, cotangent) in seeds {
            self.add(of, cotangent);
        }
        for n in (self.first.0..self.end.0).rev() {
            self.step(NodeId(n))?;
        }
        Ok(())
    }

    pub fn is_active(&self, id: NodeId) -> bool {
        self.active.contains(&id)
    }

    /// A way to add nodes that belong to the node.
    pub fn writer(&mut self, like: NodeId) -> Writer<'_> {
        let node = self.g.node(like);
        let (origin, policy) = (node.origin.clone(), node.policy);
        Writer::of(self.g, &origin, policy)
    }

    /// The cotangent of a node in its type. What several readers of a narrow float give is summed in f32 and rounded once.
    fn cotangent(&mut self, id: NodeId) -> Option<NodeId> {
        let Some(terms) = self.cotangents.remove(&id) else { return self.sums.get(&id).copied() };
        let own = if products::are_several(self.g, &terms) { self.own(&terms) } else { BTreeSet::new() };
        let dtype = self.g.ty(id).dtype;
        let mut w = self.writer(id);
        let terms = products::joined(&mut w, &terms, &own);
        let mut terms = terms.into_iter().map(|t| Id(t.0));
        let first = terms.next()?;
        let sum = terms.fold(first, |sum, term| {
            let both = [sum, term].map(|t| expand::cast(&mut w, t, dtype.compute()));
            expand::map(&mut w, MapOp::add, &both)
        });
        let rounded = NodeId(expand::cast(&mut w, sum, dtype).0);
        self.sums.insert(id, rounded);
        Some(rounded)
    }

    /// The nodes of this derivative that these terms alone are made of: nothing else reads them, or may come to.
    fn own(&self, terms: &[NodeId]) -> BTreeSet<NodeId> {
        let made = self.made.0..self.g.nodes.len() as u32;
        let readers = made.clone().map(NodeId).filter(|id| !terms.contains(id));
        let read = readers.flat_map(|id| &self.g.node(id).operands).copied();
        let waiting = self.cotangents.values().flatten().chain(self.several.values().flatten().flatten()).copied();
        let mut out: BTreeSet<NodeId> = made.map(NodeId).collect();
        read.chain(waiting).for_each(|id| {
            out.remove(&id);
        });
        out
    }

    /// Adds to the cotangent of a node.
    pub fn add(&mut self, id: NodeId, cotangent: NodeId) {
        if !self.is_active(id) {
            return;
        }
        let dtype = self.g.ty(id).dtype;
        let term = NodeId(expand::cast(&mut self.writer(id), Id(cotangent.0), dtype).0);
        self.cotangents.entry(id).or_default().push(term);
    }

    fn step(&mut self, id: NodeId) -> Result<(), Blocked> {
        if self.wrt.contains(&id) || self.g.derivatives.is_held(id) {
            return Ok(());
        }
        if let Some(part) = self.g.derivatives.of(id).cloned() {
            // All cotangents are known at the last of several outputs.
            return match part.outputs.iter().max() == Some(&id) {
                true => self.part(&part),
                false => Ok(()),
            };
        }
        if rows::pull(self, id)? {
            return Ok(());
        }
        if let Some(cotangents) = self.several.remove(&id) {
            return scan::pull(self, id, cotangents);
        }
        let Some(c) = self.cotangent(id) else { return Ok(()) };
        let node = self.g.node(id).clone();
        if let Prim::Get { index } = node.prim {
            self.result_of(&node, index, c);
            return Ok(());
        }
        let needed: Vec<bool> = node.operands.iter().map(|&o| self.is_active(o)).collect();
        if !needed.contains(&true) {
            return Ok(());
        }
        let mut w = self.writer(id);
        let x = node.operands.iter().map(|o| Id(o.0)).collect();
        let mut at = At { w: &mut w, x, y: Id(id.0), c: Id(c.0), needed: &needed };
        let operands = row(&node.prim).pull(&mut at).map_err(|why| Blocked { node: id, why })?;
        for (&o, c) in node.operands.iter().zip(operands) {
            if let Some(c) = c {
                self.add(o, NodeId(c.0));
            }
        }
        Ok(())
    }

    /// Notes the cotangent of one of several results.
    fn result_of(&mut self, get: &Node, index: usize, cotangent: NodeId) {
        let Some(&of) = get.operands.first() else { return };
        let count = self.g.node(of).results.len();
        let slots = self.several.entry(of).or_insert_with(|| vec![None; count]);
        let Some(known) = slots.get(index).copied() else { return };
        let sum = match known {
            None => cotangent,
            Some(known) => {
                let mut w = self.writer(of);
                NodeId(expand::map(&mut w, MapOp::add, &[Id(known.0), Id(cotangent.0)]).0)
            }
        };
        if let Some(slot) = self.several.get_mut(&of).and_then(|s| s.get_mut(index)) {
            *slot = Some(sum);
        }
    }

    /// A part whose derivative is known as a whole.
    fn part(&mut self, part: &Arc<Part>) -> Result<(), Blocked> {
        let cotangents: Vec<Option<NodeId>> = part.outputs.iter().map(|o| self.cotangent(*o)).collect();
        if cotangents.iter().all(Option::is_none) {
            return Ok(());
        }
        if part.constants.iter().any(|c| self.is_active(*c)) {
            let node = part.outputs.first().copied().unwrap_or(NodeId(0));
            return Err(Blocked { node, why: CAPTURED });
        }
        match &part.rule {
            Rule::Steps(pull) => {
                let (Some(&output), Some(Some(cotangent))) = (part.outputs.first(), cotangents.first()) else {
                    return Ok(());
                };
                let ids = |ids: &[NodeId]| ids.iter().map(|id| Id(id.0)).collect::<Vec<_>>();
                let pulled = Pulled {
                    inputs: ids(&part.inputs),
                    output: Id(output.0),
                    saved: ids(&part.saved),
                    cotangent: Id(cotangent.0),
                };
                let mut w = self.writer(output);
                let made = pull(&mut w, &pulled);
                for (&input, c) in part.inputs.iter().zip(made) {
                    if let Some(c) = c {
                        self.add(input, NodeId(c.0));
                    }
                }
                Ok(())
            }
            Rule::Graph(graph) => {
                self.inlined(part, graph, &cotangents);
                Ok(())
            }
            Rule::Whole(graph) => self.inlined_if(part, of_whole(graph), &cotangents),
            Rule::Many(many) => self.inlined_if(part, as_graph(many), &cotangents),
            Rule::Again(from, end) => self.again(part, *from, *end, &cotangents),
        }
    }

    /// A derivative in a graph, where there is one: what has none is a loop in it.
    fn inlined_if(&mut self, part: &Part, graph: Option<Graph>, cotangents: &[Option<NodeId>]) -> Result<(), Blocked> {
        let node = part.outputs.first().copied().unwrap_or(NodeId(0));
        let graph = graph.ok_or(Blocked { node, why: ANY_NUMBER })?;
        self.inlined(part, &graph, cotangents);
        Ok(())
    }

    /// A derivative that the program gives.
    fn inlined(&mut self, part: &Part, graph: &Graph, cotangents: &[Option<NodeId>]) {
        let mut values: Vec<NodeId> = [&part.inputs[..], &part.outputs[..]].concat();
        for (&output, c) in part.outputs.iter().zip(cotangents) {
            values.push(match c {
                Some(c) => *c,
                None => zeros_like(&mut self.writer(output), output),
            });
        }
        values.extend(&part.saved);
        let nodes = graph.ids().map(|id| (id, graph.node(id).clone())).collect();
        let copied = copy_into(self.g, nodes, Some(&graph.bodies), &values, None);
        let all: Vec<NodeId> = graph.ids().collect();
        let statements = graph.derivatives.copied(&all, &|id| copied.get(&id).copied());
        self.g.derivatives.extend(statements);
        let smooth_inputs: Vec<NodeId> = part.inputs.iter().copied().filter(|&i| smooth(self.g.ty(i).dtype)).collect();
        for (input, output) in smooth_inputs.into_iter().zip(&graph.outputs) {
            if let Some(&c) = copied.get(output) {
                self.add(input, c);
            }
        }
    }

    /// A part that is computed again: its nodes once more, and their derivative.
    fn again(&mut self, part: &Part, from: NodeId, end: NodeId, cotangents: &[Option<NodeId>]) -> Result<(), Blocked> {
        let nodes: Vec<NodeId> = (from.0..end.0).map(NodeId).collect();
        let inside = |id: NodeId, g: &Graph| id >= from && !matches!(g.node(id).prim, Prim::Input(_));
        let outside: BTreeSet<NodeId> = nodes
            .iter()
            .flat_map(|&id| self.g.node(id).operands.clone())
            .filter(|&o| !inside(o, self.g) && self.is_active(o))
            .collect();
        let start = NodeId(self.g.nodes.len() as u32);
        let source = nodes.iter().map(|&id| (id, self.g.node(id).clone())).collect();
        let copied = copy_into(self.g, source, None, &[], Some(start.0));
        let to = |id: NodeId| copied.get(&id).copied().unwrap_or(id);
        let statements = self.g.derivatives.copied(&nodes, &|id| Some(to(id)));
        self.g.derivatives.extend(statements);
        let stop = NodeId(self.g.nodes.len() as u32);
        let seeds: Vec<(NodeId, NodeId)> =
            part.saved.iter().zip(cotangents).filter_map(|(&o, c)| Some((to(o), (*c)?))).collect();
        let wrt: Vec<NodeId> = outside.into_iter().collect();
        // The sums go on where they are, so that their order is that of the nodes themselves.
        let known = wrt.iter().filter_map(|id| Some((*id, self.cotangents.get(id)?.clone()))).collect();
        let mut inner = Reverse::new(self.g, &wrt, start, stop);
        (inner.cotangents, inner.made) = (known, self.made);
        inner.walk(&seeds)?;
        let mut made = inner.cotangents;
        self.cotangents.extend(wrt.iter().filter_map(|id| Some((*id, made.remove(id)?))));
        Ok(())
    }
}

/// The nodes from `first` to the one before `end` that depend on `wrt` smoothly, and `wrt`.
pub fn active(g: &Graph, wrt: &[NodeId], first: NodeId, end: NodeId) -> BTreeSet<NodeId> {
    let mut out: BTreeSet<NodeId> = wrt.iter().copied().collect();
    for n in first.0..end.0 {
        let id = NodeId(n);
        let node = g.node(id);
        // A part whose steps pass through ints (quantised numbers) is one by its statement.
        let stated = |part: &Part| part.inputs.iter().any(|i| out.contains(i));
        let reached =
            node.operands.iter().any(|o| out.contains(o)) || g.derivatives.of(id).is_some_and(|part| stated(part));
        let reached = reached && !g.derivatives.is_held(id);
        // A node with several results may have smooth ones among them.
        if reached && (smooth(node.ty.dtype) || node.results.iter().any(|r| smooth(r.dtype))) {
            out.insert(id);
        }
    }
    out
}
