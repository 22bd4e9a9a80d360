//! Takes what other devices give only where it is read: until then there is something else to compute.
//!
//! Also called: latency hiding, overlap of communication with computation, asynchronous collectives.
//!
//! Before: `%1 = exchange(%0)`, `%2 = exp(%0)`, `%3 = add(%1, %2)`.
//! After: `%1 = exp(%0)`, `%2 = exchange(%0)`, `%3 = add(%2, %1)`.
//!
//! An exchange stands where its device waits for others. What it gives away leaves before, right behind what computes it
//! ([`starts`]). Those of one batch stand together, behind the last of what they give; what reads one of them before comes
//! behind them. Batches keep their order.
//!
//! No device waits for ever: a start waits for nobody, so of all batches that devices wait in, look at the first.
//! Whoever it waits for is not in an earlier one, is in no later one, and so computes, until it comes to its start or its end.

use crate::rebuild::Rebuild;
use std::collections::BTreeMap;
use tessera_ir::graph::{Graph, NodeId};
use tessera_ir::group::Partition;
use tessera_ops::prim::{Exchange, Prim, Transfer};

/// Bytes that a device has on their way at once, unless one batch alone has more.
const WINDOW: u64 = 64 << 20;

pub fn run(old: &Graph) -> Graph {
    let mut late = Late::new(old);
    old.ids().for_each(|id| late.visit(id));
    late.put_held(None);
    old.ids().for_each(|id| late.put(id));
    late.new.finish(old)
}

/// Whether there are exchanges in a graph or in its loops.
fn exchanges(g: &Graph) -> bool {
    g.nodes.iter().any(|n| matches!(n.prim, Prim::Exchange(_))) || g.bodies.iter().any(exchanges)
}

struct Late<'a> {
    old: &'a Graph,
    new: Rebuild,
    /// By batch, how many of its exchanges have not come yet.
    missing: BTreeMap<u32, usize>,
    /// The exchanges of batches that nobody has read so far.
    held: BTreeMap<u32, Vec<NodeId>>,
    /// What they move.
    bytes: u64,
    /// By node, the last batch that it needs which nobody has read so far.
    needs: Vec<u32>,
    /// What needs a batch that has not come whole.
    waiting: Vec<NodeId>,
}

impl Late<'_> {
    fn new(old: &Graph) -> Late<'_> {
        let mut missing = BTreeMap::new();
        for n in &old.nodes {
            if let Prim::Exchange(e) = &n.prim {
                *missing.entry(e.batch).or_insert(0) += 1;
            }
        }
        let (new, held, needs) = (Rebuild::new(old), BTreeMap::new(), vec![0; old.nodes.len()]);
        Late { old, new, missing, held, bytes: 0, needs, waiting: vec![] }
    }

    /// Whether a batch and all before it have come whole.
    fn is_whole(&self, batch: u32) -> bool {
        self.missing.keys().next().is_none_or(|first| batch < *first)
    }

    fn visit(&mut self, id: NodeId) {
        let node = self.old.node(id);
        let unread = node.operands.iter().filter(|o| self.new.map[o.0 as usize].is_none());
        let needs = unread.map(|o| self.needs[o.0 as usize]).max();
        self.needs[id.0 as usize] = needs.unwrap_or(0);
        match &node.prim {
            Prim::Exchange(e) => self.hold(id, e),
            _ if needs.is_some_and(|batch| !self.is_whole(batch)) => self.waiting.push(id),
            // Views are read through, so they go along.
            Prim::Reshape | Prim::Transpose { .. } | Prim::Slice { .. } | Prim::Broadcast { .. } if needs.is_some() => {
            }
            Prim::Scan { body, .. } if self.old.bodies.get(*body as usize).is_none_or(exchanges) => {
                self.put_held(None);
                self.put(id);
            }
            _ => self.put(id),
        }
    }

    fn moved(&self, id: NodeId) -> u64 {
        if let Prim::Exchange(e) = &self.old.node(id).prim { moved(self.old, id, e) } else { 0 }
    }

    fn hold(&mut self, id: NodeId, e: &Exchange) {
        self.needs[id.0 as usize] = e.batch;
        self.held.entry(e.batch).or_default().push(id);
        self.bytes = self.bytes.saturating_add(moved(self.old, id, e));
        if let Some(missing) = self.missing.get_mut(&e.batch) {
            *missing -= 1;
        }
        if self.missing.get(&e.batch).is_some_and(|missing| *missing > 0) {
            return;
        }
        self.missing.remove(&e.batch);
        while self.bytes > WINDOW && self.held.len() > 1 && self.held.keys().next().is_some_and(|b| self.is_whole(*b)) {
            self.put_first();
        }
        std::mem::take(&mut self.waiting).into_iter().for_each(|id| self.visit(id));
    }

    fn put_first(&mut self) -> Option<u32> {
        let (batch, together) = self.held.pop_first()?;
        for &id in &together {
            self.bytes = self.bytes.saturating_sub(self.moved(id));
            self.put_operands(id);
        }
        together.into_iter().for_each(|id| self.write(id));
        Some(batch)
    }

    /// Writes down what is held, up to a batch that is read.
    fn put_held(&mut self, until: Option<u32>) {
        while let Some(first) = self.put_first() {
            if until == Some(first) {
                break;
            }
        }
    }

    /// Writes a node down if it is not there yet, and before it what it reads.
    fn put(&mut self, id: NodeId) {
        if self.new.map[id.0 as usize].is_some() {
            return;
        }
        if let Prim::Exchange(e) = &self.old.node(id).prim {
            return self.put_held(Some(e.batch));
        }
        self.put_operands(id);
        self.write(id);
    }

    fn put_operands(&mut self, id: NodeId) {
        let old = self.old;
        old.node(id).operands.iter().for_each(|&o| self.put(o));
    }

    fn write(&mut self, id: NodeId) {
        let node = self.new.renamed(self.old.node(id));
        let target = self.new.graph.push(node);
        self.new.set(id, target);
    }
}

/// Bytes that a device gives and gets, its own among them.
fn moved(g: &Graph, id: NodeId, e: &Exchange) -> u64 {
    let elems = |t: &Transfer| t.size.iter().fold(1u64, |n, size| n.saturating_mul(*size));
    let elems = e.sends.iter().chain(&e.receives).map(elems).fold(0u64, u64::saturating_add);
    elems.saturating_mul(g.ty(id).dtype.bytes() as u64)
}

/// The batches that start right before each group, by position: as soon as what they give away is computed, as
/// long as there is room in the [`WINDOW`]. Those that start where they end are not among them.
///
/// What is given away stays as it is to the end of the batch, which reads it: nothing takes its memory before, and
/// no output is computed in an input that two groups read.
pub fn starts(g: &Graph, partition: &Partition) -> Vec<Vec<usize>> {
    let groups = &partition.groups;
    let mut made: BTreeMap<NodeId, usize> = BTreeMap::new();
    for (at, group) in groups.iter().enumerate() {
        made.extend(group.roots.iter().map(|root| (*root, at)));
    }
    let source = |id: NodeId| match g.node(id).prim {
        Prim::Get { .. } => g.node(id).operands[0],
        _ => id,
    };
    let mut starts = vec![vec![]; groups.len()];
    // What is on its way while each group runs.
    let mut flies = vec![0u64; groups.len()];
    for (end, group) in groups.iter().enumerate() {
        let bytes = |id: NodeId| if let Prim::Exchange(e) = &g.node(id).prim { moved(g, id, e) } else { 0 };
        let bytes = group.roots.iter().fold(0, |sum: u64, &root| sum.saturating_add(bytes(root)));
        if bytes == 0 {
            continue;
        }
        let given = group.roots.iter().flat_map(|&root| &g.node(root).operands);
        let first = given.map(|o| made.get(&source(*o)).map_or(0, |at| at + 1)).max().unwrap_or(0);
        let has_room = |at: usize| flies[at] == 0 || flies[at].saturating_add(bytes) <= WINDOW;
        let start = (first..end).rev().take_while(|&at| has_room(at)).last().unwrap_or(end);
        flies[start..=end].iter_mut().for_each(|f| *f = f.saturating_add(bytes));
        if start < end {
            starts[start].push(end);
        }
    }
    starts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuse::{Limits, partition};
    use tessera_ir::graph_text::parse;

    const BOXES: &str = "to=[[1, 0, 64]], from=[[1, 0, 64]]";

    /// The graph after the pass, and before which groups exchanges start.
    fn after(body: &str) -> (Graph, Vec<Vec<usize>>) {
        let body = body.replace("BOXES", BOXES);
        let g = parse(&format!("\"tessera.graph\"() ({{\n{body}\n}})")).unwrap_or_else(|e| panic!("{e:?}"));
        let g = run(&g);
        assert!(tessera_ir::verify::verify(&g).is_empty());
        let starts = starts(&g, &partition(&g, &Limits::default()));
        (g, starts)
    }

    #[test]
    fn what_is_computed_meanwhile_comes_first() {
        let (g, starts) = after(
            r#"%0 = "tessera.graph.input"() {index=0} : Tensor[64, f32]
               %1 = "tessera.graph.exp"(%0) : Tensor[64, f32]
               %2 = "tessera.graph.exchange"(%1) {what="permute", tag=1, BOXES} : Tensor[64, f32]
               %3 = "tessera.graph.reshape"(%2) : Tensor[8, 8, f32]
               %4 = "tessera.graph.exchange"(%1) {what="permute", tag=2, BOXES} : Tensor[64, f32]
               %5 = "tessera.graph.input"() {index=1} : Tensor[8, 8, f32]
               %6 = "tessera.graph.dot"(%5, %5) {accum="f32"} : Tensor[8, 8, f32]
               %7 = "tessera.graph.exp"(%3) : Tensor[8, 8, f32]
               "tessera.graph.return"(%4, %6, %7)"#,
        );
        let order: Vec<String> = g.nodes.iter().map(|n| format!("{:?}", n.prim)).collect();
        let at = |what: &str| order.iter().position(|n| n.contains(what)).unwrap_or(99);
        assert!(at("Dot") < at("tag: 1") && at("tag: 1") < at("Reshape") && at("Reshape") < at("tag: 2"), "{order:?}");
        // exp, the product, the first exchange, exp, the second exchange.
        assert_eq!(starts, [vec![], vec![2, 4], vec![], vec![], vec![]]);
    }

    #[test]
    fn what_reads_a_part_of_a_batch_comes_behind_all_of_it() {
        let (g, starts) = after(
            r#"%0 = "tessera.graph.input"() {index=0} : Tensor[64, f32]
               %1 = "tessera.graph.exchange"(%0) {what="permute", tag=1, BOXES} : Tensor[64, f32]
               %2 = "tessera.graph.exp"(%1) : Tensor[64, f32]
               %3 = "tessera.graph.exchange"(%2) {what="pass", tag=2, BOXES} : Tensor[64, f32]
               %4 = "tessera.graph.input"() {index=1} : Tensor[8, 8, f32]
               %5 = "tessera.graph.dot"(%4, %4) {accum="f32"} : Tensor[8, 8, f32]
               %6 = "tessera.graph.reshape"(%5) : Tensor[64, f32]
               %7 = "tessera.graph.exchange"(%6) {what="permute", tag=3, batch=1, BOXES} : Tensor[64, f32]
               %8 = "tessera.graph.exp"(%7) : Tensor[64, f32]
               "tessera.graph.return"(%3, %8)"#,
        );
        let tags = g.nodes.iter().filter_map(|n| if let Prim::Exchange(e) = &n.prim { Some(e.tag) } else { None });
        assert_eq!(tags.collect::<Vec<_>>(), [1, 3, 2]);
        let groups = partition(&g, &Limits::default()).groups;
        let sizes: Vec<usize> = groups.iter().map(|p| p.roots.len()).collect();
        // The product, both exchanges, exp, which leaves while the other exp is computed, its exchange.
        assert_eq!((sizes, starts), (vec![1, 2, 1, 1, 1], vec![vec![], vec![], vec![], vec![4], vec![]]));
    }

    #[test]
    fn where_nothing_lies_between_an_exchange_starts_where_it_ends() {
        let (_, starts) = after(
            r#"%0 = "tessera.graph.input"() {index=0} : Tensor[64, f32]
               %1 = "tessera.graph.exp"(%0) : Tensor[64, f32]
               %2 = "tessera.graph.exchange"(%1) {what="permute", tag=1, BOXES} : Tensor[64, f32]
               %3 = "tessera.graph.exp"(%2) : Tensor[64, f32]
               "tessera.graph.return"(%3)"#,
        );
        assert!(starts.iter().all(Vec::is_empty), "{starts:?}");
    }

    #[test]
    fn large_exchanges_are_not_all_under_way_at_once() {
        let large = r#"%0 = "tessera.graph.input"() {index=0} : Tensor[8388608, f32]
               %1 = "tessera.graph.exchange"(%0) {what="permute", tag=1, BOXES} : Tensor[8388608, f32]
               %2 = "tessera.graph.exchange"(%0) {what="permute", tag=2, BOXES} : Tensor[8388608, f32]
               %3 = "tessera.graph.exp"(%0) : Tensor[8388608, f32]
               "tessera.graph.return"(%1, %2, %3)"#;
        let (_, starts) = after(&large.replace("BOXES", "to=[[1, 0, 8388608]], from=[[1, 0, 8388608]]"));
        // The first one, exp, the second one, which starts where the first one ended.
        assert_eq!(starts, [vec![], vec![2], vec![]]);
    }
}
