//! Loops: a plan of one turn, and where each turn finds and leaves what.
//!
//! A turn reads rows of sequences and what stays the same where they lie, through views that move nothing
//! (`tessera_graph::loop_rows`); where it leaves what it makes says `turn_places`.

use super::turn_places::{TurnPlaces, Turns};
use super::{Backend, BackendError, Known, Planned, buffer_of, exchanges, is_scalar, kernel_costs, kernel_name_of};
use super::{operand, origin, outputs, scalar_ref, temps};
use std::collections::BTreeSet;
use std::sync::Arc;
use tessera_abi::plan::{BufRef, Given, Loop, Output, Plan, Rows, Step, TurnInput};
use tessera_base::bug;
use tessera_graph::loop_rows::{bytes_of_turn, rows, through};
use tessera_graph::place_buffers::place_buffers;
use tessera_ir::graph::{Graph, NodeId};
use tessera_ir::group::{Group, MemoryPlan, Partition};
use tessera_ops::prim::Prim;
use tessera_runtime::native::Operand;
use tessera_runtime::pool::Pool;

impl Backend {
    /// Adds the step of a loop.
    pub(super) fn looped(
        &self,
        graph: &Graph,
        group: &Group,
        memory: &MemoryPlan,
        pool: &Arc<Pool>,
        plan: &mut Plan,
    ) -> Result<(), BackendError> {
        let id = group.roots[0];
        let lacks = || BackendError::Internal("a loop without a body".into());
        let Prim::Scan { body, trips, until, .. } = graph.node(id).prim else { return Err(lacks()) };
        let body = tessera_graph::optimise(graph.bodies.get(body as usize).ok_or_else(lacks)?);
        let mut of_turn = self.plan_with(&body, pool, &BTreeSet::new())?;
        if !exchanges::in_order(&body, &of_turn) {
            return Err(BackendError::Internal("the exchanges of a loop lost their order".into()));
        }
        kernel_costs::add_times(&mut plan.counts, &of_turn.counts, graph.node(id).prim.turns().unwrap_or(0));
        let (results, again) = results(graph, id, memory);
        let TurnPlaces { outputs, first, last, copies, same, end } =
            places(graph, id, memory, &body, of_turn.outputs.clone(), results);
        of_turn.steps.extend(copies);
        of_turn.outputs.iter_mut().zip(same).for_each(|(output, same)| output.same_as_input = same);
        plan.arena_bytes = plan.arena_bytes.max(end.saturating_add(of_turn.arena_bytes));
        plan.steps.push(Step::Loop(Arc::new(Loop {
            name: kernel_name_of(graph, id).into(),
            inputs: inputs(graph, group, memory),
            body: of_turn,
            trips,
            until,
            outputs,
            first,
            last,
            arena: end,
            origin: origin(graph, id),
        })));
        plan.steps.extend(again);
        Ok(())
    }

    /// Bytes of the arena of a plan: places, then the temporaries of kernels and what turns of loops work in. `None` if the sizes
    /// are beyond 64 bits.
    pub(super) fn arena(&self, graph: &Graph, groups: &[Planned], memory: &MemoryPlan, known: &Known) -> Option<u64> {
        groups.iter().try_fold(memory.arena_bytes, |end, planned| {
            let root = planned.group.roots[0];
            let here = match (&planned.lowered, &graph.node(root).prim) {
                (Some(lowered), _) => temps(memory, lowered).1,
                (None, Prim::Scan { body, .. }) => {
                    self.turn_end(graph, root, memory, graph.bodies.get(*body as usize)?, known)?
                }
                (None, _) => 0,
            };
            Some(end.max(here))
        })
    }

    /// Where the room of a loop ends in the arena.
    fn turn_end(&self, graph: &Graph, id: NodeId, memory: &MemoryPlan, body: &Graph, known: &Known) -> Option<u64> {
        let body = tessera_graph::optimise(body);
        let groups = self.grouped(&body, Some(known));
        let partition = Partition { groups: groups.iter().map(|p| p.group.clone()).collect() };
        let inside = place_buffers(&body, &partition)?;
        let given = outputs(&body, &partition, &inside);
        let places = places(graph, id, memory, &body, given, results(graph, id, memory).0);
        places.end.checked_add(self.arena(&body, &groups, &inside, known)?)
    }
}

/// Where results of a loop are wanted, by number; and copies of those that are wanted twice.
fn results(graph: &Graph, id: NodeId, memory: &MemoryPlan) -> (Vec<Option<BufRef>>, Vec<Step>) {
    let (mut places, mut again) = (vec![None; graph.node(id).results.len()], vec![]);
    for part in graph.ids().filter(|&p| graph.node(p).operands.first() == Some(&id)) {
        let Prim::Get { index } = graph.node(part).prim else { continue };
        if memory.place[part.0 as usize].is_none() {
            continue;
        }
        let Operand { place: dst, bytes } = operand(graph, memory, part);
        match places.get_mut(index) {
            Some(Some(src)) => again.push(Step::Copy { dst, src: *src, bytes: bytes as u64 }),
            Some(place) => *place = Some(dst),
            None => bug!("a loop has no result {index}"),
        }
    }
    (places, again)
}

/// Where the turns of loop `id` leave what they make. `given`: the outputs of the body's plan.
fn places(
    graph: &Graph,
    id: NodeId,
    memory: &MemoryPlan,
    body: &Graph,
    given: Vec<Output>,
    results: Vec<Option<BufRef>>,
) -> TurnPlaces {
    let Prim::Scan { carry, trips, reversed, until, .. } = graph.node(id).prim else { bug!("{} is no loop", id.0) };
    let room = memory.arena_bytes.next_multiple_of(64);
    Turns { body, given, carry, trips, reversed, until, results, room, copies: vec![] }.places()
}

/// Where turns find what they read.
fn inputs(graph: &Graph, group: &Group, memory: &MemoryPlan) -> Vec<TurnInput> {
    let id = group.roots[0];
    let Prim::Scan { carry, .. } = graph.node(id).prim else { bug!("{} is no loop", id.0) };
    let given = |at: usize| {
        let value = graph.node(id).operands[at];
        if is_scalar(graph, value) {
            return Given::Word(scalar_ref(graph, value));
        }
        let (Some(mut lie), Some(bytes)) = (rows(graph, id, at), bytes_of_turn(graph, id, at)) else {
            bug!("operand {at} of a loop has no size");
        };
        while group.members.contains(&lie.value) {
            lie = match through(graph, lie, bytes) {
                Some(lie) => lie,
                None => bug!("a loop reads through {} and cannot", lie.value.0),
            };
        }
        Given::Memory(Rows { of: buffer_of(memory, lie.value), first: lie.first, step: lie.step })
    };
    let input = |at: usize| match at < carry {
        true => TurnInput::Carry { first: given(at), output: at as u32 },
        false => TurnInput::Given(given(at)),
    };
    (0..graph.node(id).operands.len()).map(input).collect()
}
