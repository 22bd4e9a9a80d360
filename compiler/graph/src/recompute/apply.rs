//! A graph in which some values are computed again behind its peak.
//!
//! Nodes are written down in the order in which their groups run, since a kernel runs where its root stands. A
//! value that is computed again stands right before the first group behind the peak that reads it.

use super::choose::Choice;
use crate::rebuild::Rebuild;
use std::collections::{BTreeMap, BTreeSet};
use tessera_ir::graph::{Graph, NodeId, Reason};
use tessera_ir::group::{Group, Partition};

struct Apply<'a> {
    g: &'a Graph,
    new: Rebuild,
    choices: BTreeMap<NodeId, &'a Choice>,
    /// Values that were computed again, where they are now.
    again: BTreeMap<NodeId, NodeId>,
    /// Tells one computation from the others.
    number: u32,
}

/// The graph with the choices carried out behind group `at`.
pub fn apply(g: &Graph, partition: &Partition, at: usize, choices: &[Choice]) -> Graph {
    let number = g.nodes.iter().filter_map(|n| n.again()).max().map_or(0, |n| n + 1);
    let choices = choices.iter().map(|c| (c.value, c)).collect();
    let mut a = Apply { g, new: Rebuild::new(g), choices, again: BTreeMap::new(), number };
    // The inputs are the graph's signature.
    for (i, _) in g.inputs.iter().enumerate() {
        let is_it = |n: &NodeId| g.node(*n).prim == tessera_ops::prim::Prim::Input(i as u32);
        if let Some(id) = g.ids().find(is_it) {
            a.put(id);
        }
    }
    for (i, group) in partition.groups.iter().enumerate() {
        match i <= at {
            true => group.members.iter().for_each(|&m| a.put(m)),
            false => a.behind(group),
        }
    }
    g.outputs.iter().for_each(|&o| a.put(o));
    crate::remove_unused::run(&a.new.finish(g))
}

impl Apply<'_> {
    /// Writes a node down if it is not there yet, and before it what it reads and no group has.
    fn put(&mut self, id: NodeId) {
        if self.new.map[id.0 as usize].is_some() {
            return;
        }
        let g = self.g;
        g.node(id).operands.iter().for_each(|&o| self.put(o));
        let node = self.new.renamed(g.node(id));
        let target = self.new.graph.push(node);
        self.new.set(id, target);
    }

    /// Writes down a group behind the peak: what reads a value that is computed again reads it there.
    fn behind(&mut self, group: &Group) {
        for v in &group.inputs {
            if let Some(choice) = self.choices.get(v).copied().filter(|_| !self.again.contains_key(v)) {
                self.compute_again(choice);
            }
        }
        let g = self.g;
        let mut here: BTreeMap<NodeId, NodeId> = BTreeMap::new();
        for &m in &group.members {
            let moved = |o: &NodeId| here.get(o).or_else(|| self.again.get(o)).copied();
            if g.node(m).operands.iter().all(|o| moved(o).is_none()) {
                self.put(m);
                continue;
            }
            // Its other operands first.
            let others: Vec<NodeId> = g.node(m).operands.iter().copied().filter(|o| moved(o).is_none()).collect();
            others.into_iter().for_each(|o| self.put(o));
            let mut node = g.node(m).clone();
            for o in &mut node.operands {
                let moved = here.get(o).or_else(|| self.again.get(o)).copied();
                *o = moved.or(self.new.map[o.0 as usize]).unwrap_or(*o);
            }
            let target = self.new.graph.push(node);
            here.insert(m, target);
            // A node that a group before has too keeps its place for those that read it there.
            if self.new.map[m.0 as usize].is_none() || group.roots.contains(&m) {
                self.new.set(m, target);
            }
        }
    }

    fn compute_again(&mut self, choice: &Choice) {
        let mut here: BTreeMap<NodeId, NodeId> = BTreeMap::new();
        for &step in &choice.steps {
            let g = self.g;
            let mut node = g.node(step).clone();
            for o in &mut node.operands {
                if let Some(&inner) = here.get(o) {
                    *o = inner;
                } else {
                    self.put(*o);
                    *o = self.new.map[o.0 as usize].unwrap_or(*o);
                }
            }
            node.origin.reason = Some(Reason::Memory(self.number));
            // Directives are for the values of the program.
            node.origin.kernel = None;
            here.insert(step, self.new.graph.push(node));
        }
        self.number += 1;
        self.again.extend(here.get(&choice.value).map(|&now| (choice.value, now)));
    }
}

/// How many computations of a graph are there for its memory.
pub fn count(g: &Graph) -> usize {
    let numbers = g.nodes.iter().filter_map(|n| match n.origin.reason {
        Some(Reason::Memory(number)) => Some(number),
        _ => None,
    });
    numbers.collect::<BTreeSet<u32>>().len()
}
