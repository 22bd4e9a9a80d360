//! Which values that wait at the peak of a graph's memory are cheaper to compute again than to keep.

use crate::place_buffers::Life;
use std::collections::{BTreeMap, BTreeSet};
use tessera_ir::graph::{Graph, NodeId};
use tessera_ir::group::{Partition, Role};
use tessera_ir::minimum_cut::Network;
use tessera_ir::prim::columns::Again;
use tessera_ir::prim::{Site, row};

/// Nodes that one value is computed again with, at most.
const STEPS_MAX: usize = 96;

/// How far recomputation goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effort {
    /// Elementwise steps, reductions, what only moves elements.
    Cheap,
    /// Products and transforms too.
    Dear,
}

/// A value that is given up before the peak and computed again behind it.
#[derive(Clone, PartialEq, Debug)]
pub struct Choice {
    pub value: NodeId,
    /// The nodes that are computed again, ascending; the value is the last.
    pub steps: Vec<NodeId>,
    /// The values outside that they read.
    pub sources: BTreeSet<NodeId>,
    /// Bytes that it saves at the peak.
    pub saved: u64,
    /// Nanoseconds that it takes, roughly.
    pub cost: f64,
}

/// The group at which most bytes of the arena are in use (the first of several), and what lies there.
pub fn peak(lives: &[Life], groups: usize) -> (usize, Vec<Life>) {
    let (mut starts, mut ends) = (vec![0u64; groups], vec![0u64; groups]);
    for life in lives {
        starts[life.from] += life.bytes;
        ends[life.to] += life.bytes;
    }
    let (mut best, mut now) = ((0, 0), 0u64);
    for at in 0..groups {
        now += starts[at];
        if now > best.1 {
            best = (at, now);
        }
        now -= ends[at];
    }
    let held = lives.iter().filter(|l| l.from <= best.0 && best.0 <= l.to);
    (best.0, held.copied().collect())
}

/// A graph at its peak.
pub struct Scene<'a> {
    g: &'a Graph,
    partition: &'a Partition,
    lives: BTreeMap<NodeId, Life>,
    outputs: BTreeSet<NodeId>,
    at: usize,
    effort: Effort,
}

impl Scene<'_> {
    pub fn new<'a>(g: &'a Graph, partition: &'a Partition, lives: &[Life], at: usize, effort: Effort) -> Scene<'a> {
        let outputs = g.outputs.iter().copied().collect();
        Scene { g, partition, lives: lives.iter().map(|l| (l.id, *l)).collect(), outputs, at, effort }
    }

    /// Values to give up that together save `excess` bytes at the peak, or as many as there are: those
    /// first that cost the least time for a byte. None reads what another one gives up.
    pub fn choices(&self, excess: u64, without: &BTreeSet<NodeId>) -> Vec<Choice> {
        let waits = |l: &&Life| l.from < self.at && self.at < l.to && !without.contains(&l.id);
        let mut all: Vec<Choice> = self.lives.values().filter(waits).filter_map(|l| self.choice(l)).collect();
        let price = |c: &Choice| c.cost / c.saved as f64;
        all.sort_by(|a, b| price(a).total_cmp(&price(b)).then(a.value.cmp(&b.value)));
        let (mut given_up, mut held, mut saved) = (BTreeSet::new(), BTreeSet::<NodeId>::new(), 0u64);
        all.retain(|c| {
            let free = saved < excess && !held.contains(&c.value) && c.sources.is_disjoint(&given_up);
            if free {
                given_up.insert(c.value);
                held.extend(&c.sources);
                saved = saved.saturating_add(c.saved);
            }
            free
        });
        all
    }

    /// How a value is best computed again; `None` where that saves nothing.
    fn choice(&self, life: &Life) -> Option<Choice> {
        // The peak itself needs it.
        if self.partition.groups[self.at].inputs.contains(&life.id) {
            return None;
        }
        let behind = self.partition.groups[self.at + 1..].iter().position(|g| g.inputs.contains(&life.id))?;
        let until = self.at + 1 + behind;
        let cost = |id| cost(self.g, id, self.effort);
        cost(life.id)?;
        // What it is made of, up to what is there.
        let mut number = BTreeMap::from([(life.id, 0)]);
        let mut nodes = vec![life.id];
        let (mut reads, mut sources) = (vec![], vec![]);
        let mut next = 0;
        while let Some(&id) = nodes.get(next) {
            let ends = next > 0 && (self.is_there(id, until) || cost(id).is_none() || next >= STEPS_MAX);
            if ends {
                sources.push(next);
            } else {
                for &o in &self.g.node(id).operands {
                    let operand = *number.entry(o).or_insert_with(|| {
                        nodes.push(o);
                        nodes.len() - 1
                    });
                    reads.push((next, operand));
                }
            }
            next += 1;
        }
        let bytes = |id: NodeId| if self.is_there(id, until) { 0 } else { self.g.ty(id).bytes().unwrap_or(u64::MAX) };
        let room: Vec<u64> = nodes.iter().map(|&id| bytes(id)).collect();
        let mut network = Network::new(&room);
        reads.iter().for_each(|&(reader, operand)| network.reads(reader, operand));
        sources.iter().for_each(|&s| network.source(s));
        let kept: BTreeSet<usize> = network.cut(0).into_iter().collect();
        let price = kept.iter().fold(0u64, |n, &k| n.saturating_add(room[k]));
        let saved = life.bytes.checked_sub(price).filter(|s| *s > 0)?;
        let mut steps = BTreeSet::from([life.id]);
        let mut todo = vec![life.id];
        let mut read = BTreeSet::new();
        while let Some(id) = todo.pop() {
            for o in &self.g.node(id).operands {
                if kept.contains(number.get(o)?) {
                    read.insert(*o);
                } else if steps.insert(*o) {
                    todo.push(*o);
                }
            }
        }
        let time = steps.iter().filter_map(|&s| cost(s)).sum();
        Some(Choice { value: life.id, steps: steps.into_iter().collect(), sources: read, saved, cost: time })
    }

    /// Whether a value is in memory anyway until a group runs.
    fn is_there(&self, id: NodeId, until: usize) -> bool {
        let given = row(&self.g.node(id).prim).role(Site { g: self.g, node: self.g.node(id) }) == Role::Source;
        given || self.outputs.contains(&id) || self.lives.get(&id).is_some_and(|l| l.to >= until)
    }
}

/// Nanoseconds that computing a node takes, roughly; `None` for what is never repeated: what devices exchange,
/// loops, results of several, and what sorts or writes at positions.
fn cost(g: &Graph, id: NodeId, effort: Effort) -> Option<f64> {
    match row(&g.node(id).prim).cost(Site { g, node: g.node(id) }).again {
        Again::Cheap(ns) => Some(ns),
        Again::Dear(ns) => (effort == Effort::Dear).then_some(ns),
        Again::Never => None,
    }
}
