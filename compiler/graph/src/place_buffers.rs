//! The memory plan: which value lives where, and when its bytes may be used again.
//!
//! Also called: buffer assignment by liveness, with aliasing of buffers in place.

use crate::fuse::reads_in_step;
use std::collections::{BTreeMap, BTreeSet};
use tessera_abi::plan::BufRef;
use tessera_ir::graph::{Graph, NodeId};
use tessera_ir::group::{Group, GroupKind, MemoryPlan, Partition};
use tessera_ir::prim::written_base;
use tessera_ops::prim::Prim;

/// Every buffer of the arena starts at a multiple of this many bytes.
const ALIGN: u64 = 64;

/// An output that takes the memory of an input which the caller gives up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InPlace {
    pub output: u32,
    pub input: u32,
}

/// Places every stored value. Constants are numbered in node order. `None` if the sizes are
/// beyond 64 bits.
///
/// Cost: one pass over the groups; free ranges are kept sorted and the smallest that fits is
/// taken (best fit), which stays within a few percent of the lower bound for chains.
pub fn place_buffers(g: &Graph, partition: &Partition) -> Option<MemoryPlan> {
    let mut plan = MemoryPlan { place: vec![None; g.nodes.len()], arena_bytes: 0 };
    let mut constants = 0;
    for id in g.ids() {
        match g.node(id).prim {
            Prim::Input(i) => plan.place[id.0 as usize] = Some(BufRef::Input(i)),
            Prim::Literal(_) => {
                plan.place[id.0 as usize] = Some(BufRef::Const(constants));
                constants += 1;
            }
            _ => {}
        }
    }
    for (i, id) in g.outputs.iter().enumerate() {
        // An input or a value returned twice keeps its first place; the plan copies it.
        plan.place[id.0 as usize].get_or_insert(BufRef::Output(i as u32));
    }
    // What is written over has the place of the result, from the last result on.
    let written = written_over(g, partition);
    for (root, base) in written.iter().rev() {
        plan.place[base.0 as usize] = plan.place[root.0 as usize];
    }
    let mut arena = Arena::default();
    let mut lives = lives(g, partition)?.into_iter().peekable();
    let mut live: Vec<(usize, u64, u64)> = vec![];
    for at in 0..partition.groups.len() {
        while let Some(life) = lives.next_if(|l| l.from <= at) {
            let offset = arena.take(life.bytes)?;
            plan.place[life.id.0 as usize] = Some(BufRef::Arena(offset));
            live.push((life.to, offset, life.bytes));
        }
        live.retain(|&(end, offset, bytes)| {
            if end <= at {
                arena.give(offset, bytes);
            }
            end > at
        });
    }
    for (root, base) in &written {
        plan.place[root.0 as usize] = plan.place[base.0 as usize];
    }
    plan.arena_bytes = arena.end;
    Some(plan)
}

/// Results that take the memory of the tensor that they write over, with that tensor: it is no argument and no result,
/// and nothing else reads it then or later.
pub fn written_over(g: &Graph, partition: &Partition) -> BTreeMap<NodeId, NodeId> {
    let last = last_readers(partition);
    let base = |(at, group): (usize, &Group)| {
        let base = over(g, group)?;
        let own = !matches!(g.node(base).prim, Prim::Input(_) | Prim::Literal(_)) && !g.outputs.contains(&base);
        (own && last.get(&base) == Some(&at)).then_some((group.roots[0], base))
    };
    partition.groups.iter().enumerate().filter_map(base).collect()
}

/// What the root of a group writes over, where the group reads it in no other way.
fn over(g: &Graph, group: &Group) -> Option<NodeId> {
    let root = group.roots[0];
    let base = written_base(g, root).filter(|_| group.kind != GroupKind::Native)?;
    let others = group.members.iter().filter(|m| **m != root).flat_map(|m| &g.node(*m).operands);
    let alone = !others.chain(&g.node(root).operands[1..]).any(|o| *o == base);
    alone.then_some(base)
}

/// The last group that reads or makes each value.
fn last_readers(partition: &Partition) -> BTreeMap<NodeId, usize> {
    let mut last = BTreeMap::new();
    for (at, group) in partition.groups.iter().enumerate() {
        for &value in group.inputs.iter().chain(&group.roots) {
            last.insert(value, at);
        }
    }
    last
}

/// A value in the arena: the groups, by position, that make it and read it last, and its bytes there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Life {
    pub id: NodeId,
    pub from: usize,
    pub to: usize,
    pub bytes: u64,
}

/// Every value that needs room in the arena, in the order in which they are made. `None` if the sizes are
/// beyond 64 bits.
pub fn lives(g: &Graph, partition: &Partition) -> Option<Vec<Life>> {
    let mut last = last_readers(partition);
    let mut out: Vec<Life> = vec![];
    let mut seen: BTreeSet<NodeId> = g.outputs.iter().copied().collect();
    // Memory that is written over lives on.
    for (root, base) in written_over(g, partition).iter().rev() {
        let end = last.get(root).copied().max(last.get(base).copied());
        last.extend(end.map(|end| (*base, end)));
        // What ends in a result has its memory.
        match seen.contains(root) {
            true => seen.insert(*base),
            false => seen.insert(*root),
        };
    }
    for (from, group) in partition.groups.iter().enumerate() {
        for &root in &group.roots {
            let values = if g.node(root).results.is_empty() { vec![root] } else { parts(g, root) };
            for id in values.into_iter().filter(|id| seen.insert(*id)) {
                let bytes = g.ty(id).bytes()?.max(1).checked_next_multiple_of(ALIGN)?;
                let to = [id, root].iter().filter_map(|v| last.get(v)).copied().max().unwrap_or(from);
                out.push(Life { id, from, to, bytes });
            }
        }
    }
    Some(out)
}

/// The `Get` nodes of a node with several results.
fn parts(g: &Graph, id: NodeId) -> Vec<NodeId> {
    g.ids().filter(|&p| matches!(g.node(p).prim, Prim::Get { .. }) && g.node(p).operands == [id]).collect()
}

/// Outputs that may be computed in the memory of an input: the input has the same size, only
/// the group that computes the output reads it, and reads element `i` to write element `i` or writes over a part of it
/// (or over what was so written before).
pub fn in_place(g: &Graph, partition: &Partition) -> Vec<InPlace> {
    let mut out: Vec<InPlace> = vec![];
    let written = written_over(g, partition);
    for (o, &id) in g.outputs.iter().enumerate() {
        let mut id = id;
        while let Some(base) = written.get(&id) {
            id = *base;
        }
        let may = |kind| matches!(kind, GroupKind::Loop | GroupKind::Dot);
        let Some(group) = partition.groups.iter().find(|p| p.roots.contains(&id) && may(p.kind)) else { continue };
        // The first argument that will do: updates name what they update first.
        let mut inputs = group.inputs.clone();
        inputs.sort();
        let candidate = inputs.into_iter().find(|&input| {
            let Prim::Input(i) = g.node(input).prim else { return false };
            let free = !out.iter().any(|p| p.input == i) && !g.outputs.contains(&input);
            let only_reader = partition.groups.iter().filter(|p| p.inputs.contains(&input)).count() == 1;
            free && only_reader
                && g.ty(input).bytes() == g.ty(id).bytes()
                && match written_base(g, id) {
                    Some(_) => over(g, group) == Some(input),
                    None => reads_in_step(g, group.members.as_slice(), input, id),
                }
        });
        if let Some(Prim::Input(i)) = candidate.map(|c| g.node(c).prim.clone()) {
            out.push(InPlace { output: o as u32, input: i });
        }
    }
    out
}

/// Free ranges of the arena, sorted by offset.
#[derive(Default)]
struct Arena {
    free: Vec<(u64, u64)>,
    end: u64,
}

impl Arena {
    fn take(&mut self, bytes: u64) -> Option<u64> {
        let best = self.free.iter().enumerate().filter(|(_, (_, len))| *len >= bytes).min_by_key(|(_, (_, len))| *len);
        if let Some((i, &(offset, len))) = best {
            if len == bytes {
                self.free.remove(i);
            } else {
                self.free[i] = (offset + bytes, len - bytes);
            }
            return Some(offset);
        }
        // Grow from a free tail where there is one.
        let offset = match self.free.last() {
            Some(&(offset, len)) if offset + len == self.end => {
                self.free.pop();
                offset
            }
            _ => self.end,
        };
        self.end = offset.checked_add(bytes)?;
        Some(offset)
    }

    fn give(&mut self, offset: u64, bytes: u64) {
        let i = self.free.partition_point(|&(o, _)| o < offset);
        self.free.insert(i, (offset, bytes));
        let mut merged: Vec<(u64, u64)> = Vec::with_capacity(self.free.len());
        for &(o, len) in &self.free {
            match merged.last_mut() {
                Some((mo, ml)) if *mo + *ml == o => *ml += len,
                _ => merged.push((o, len)),
            }
        }
        self.free = merged;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuse::partition;
    use tessera_ir::graph_text::parse;

    fn graph(body: &str) -> Graph {
        parse(&format!("\"tessera.graph\"() ({{\n{body}\n}})")).unwrap_or_else(|e| panic!("{e:?}"))
    }

    #[test]
    fn a_chain_of_products_reuses_its_buffers() {
        let g = graph(
            r#"%0 = "tessera.graph.input"() {index=0} : Tensor[16, 16, f32]
               %1 = "tessera.graph.dot"(%0, %0) {accum="f32"} : Tensor[16, 16, f32]
               %2 = "tessera.graph.dot"(%1, %0) {accum="f32"} : Tensor[16, 16, f32]
               %3 = "tessera.graph.dot"(%2, %0) {accum="f32"} : Tensor[16, 16, f32]
               %4 = "tessera.graph.dot"(%3, %0) {accum="f32"} : Tensor[16, 16, f32]
               "tessera.graph.return"(%4)"#,
        );
        let p = partition(&g, &Default::default());
        assert_eq!(p.groups.len(), 4);
        let plan = place_buffers(&g, &p).unwrap_or_default();
        assert_eq!(plan.arena_bytes, 2 * 1024);
    }

    #[test]
    fn an_update_is_done_in_place() {
        let g = graph(
            r#"%0 = "tessera.graph.input"() {index=0} : Tensor[8, f32]
               %1 = "tessera.graph.input"() {index=1} : Tensor[8, f32]
               %2 = "tessera.graph.exp"(%1) : Tensor[8, f32]
               %3 = "tessera.graph.sub"(%0, %2) : Tensor[8, f32]
               "tessera.graph.return"(%3)"#,
        );
        let p = partition(&g, &Default::default());
        assert_eq!(p.groups.len(), 1);
        assert_eq!(in_place(&g, &p), [InPlace { output: 0, input: 0 }]);
    }

    #[test]
    fn softmax_is_one_group() {
        let g = graph(
            r#"%0 = "tessera.graph.input"() {index=0} : Tensor[4, 8, f32]
               %1 = "tessera.graph.reduce_max"(%0) {axes=[1]} : Tensor[4, f32]
               %2 = "tessera.graph.reshape"(%1) : Tensor[4, 1, f32]
               %3 = "tessera.graph.broadcast"(%2) {dims=[0, 1]} : Tensor[4, 8, f32]
               %4 = "tessera.graph.sub"(%0, %3) : Tensor[4, 8, f32]
               %5 = "tessera.graph.exp"(%4) : Tensor[4, 8, f32]
               %6 = "tessera.graph.reduce_sum"(%5) {axes=[1]} : Tensor[4, f32]
               %7 = "tessera.graph.reshape"(%6) : Tensor[4, 1, f32]
               %8 = "tessera.graph.broadcast"(%7) {dims=[0, 1]} : Tensor[4, 8, f32]
               %9 = "tessera.graph.mul"(%5, %8) : Tensor[4, 8, f32]
               "tessera.graph.return"(%9)"#,
        );
        let p = partition(&g, &Default::default());
        assert_eq!(p.groups.len(), 1, "{p:?}");
        assert_eq!(p.groups[0].inputs, [NodeId(0)]);
    }
}
