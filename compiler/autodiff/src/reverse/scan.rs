//! The derivative of a loop is a loop that runs the other way.
//!
//! The forward loop gives the state at the start of every turn as a further result. The reverse
//! loop takes them from the last to the first, computes of the turn once more what is cheap, takes the rest from what the
//! forward loop keeps ([`crate::kept`]), and carries the cotangents of the state and the sums of those of the constants.

use super::{Blocked, Reverse, active, smooth};
use crate::copies::{copy_into, input};
use crate::kept;
use std::collections::{BTreeMap, BTreeSet};
use tessera_base::DType;
use tessera_ir::graph::{Graph, NodeId, NodeType, Policy};
use tessera_ir::writer::{Writer, zeros_like};
use tessera_ops::map::MapOp;
use tessera_ops::prim::Prim;
use tessera_ops::surface::{Build, Id, expand};

/// A loop that ends by itself has a derivative if it has no more turns than this: each may leave a row.
const TURNS_MAX: u64 = 1 << 32;

/// Why it has none otherwise.
pub const ANY_NUMBER: &str = "a loop that may have any number of turns (`max_steps` bounds them)";

/// The loop that is differentiated.
struct Loop {
    id: NodeId,
    body: Graph,
    operands: Vec<NodeId>,
    carry: usize,
    sequences: usize,
    trips: u64,
    reversed: bool,
    /// Whether it ends by itself.
    until: bool,
    /// Which inputs of the body have cotangents.
    active: Vec<bool>,
    /// Cotangents of the results.
    cotangents: Vec<Option<NodeId>>,
}

/// What the reverse loop is made of.
struct Reversed {
    body: Graph,
    /// Of the cotangents of the carries, then of the sums for constants.
    init: Vec<NodeId>,
    sequences: Vec<NodeId>,
    constants: Vec<NodeId>,
    /// The input of the loop's body that each carry is the cotangent of.
    carries: Vec<usize>,
    /// The same for stacked results.
    stacked: Vec<usize>,
    /// Of one that ends by itself: what it carries before all else.
    clock: Option<Clock>,
}

/// What a reverse loop that ends by itself carries first: inputs of its body.
#[derive(Clone, Copy)]
struct Clock {
    /// How many turns there were.
    count: NodeId,
    /// The turn of the forward loop that it is at.
    turn: NodeId,
}

impl Clock {
    /// What a loop carries before all else: whether there is a turn, how many there were, and which one of the forward loop it is.
    const CARRIES: usize = 3;

    /// The carries of a reverse loop, and what it begins with: the last turn that the forward loop had.
    fn start(r: &mut Reverse, l: &Loop, out: &mut Reversed) -> Option<Clock> {
        let mut w = r.writer(l.id);
        let turns = Id(w.get(l.id, 1)?.0);
        let last = expand::binary_const(&mut w, MapOp::sub, turns, 1.0);
        let first = expand::like(&mut w, turns, 0.0);
        let goes_on = expand::map(&mut w, MapOp::ge, &[last, first]);
        out.init.extend([goes_on, first, last].map(|id| NodeId(id.0)));
        let [flag, number] = [DType::Bool, DType::I64].map(|dtype| NodeType::new(vec![], dtype));
        input(&mut out.body, "goes_on", flag);
        let count = input(&mut out.body, "count", number.clone());
        Some(Clock { count, turn: input(&mut out.body, "turn", number) })
    }

    /// What it carries on.
    fn next(self, w: &mut Writer) -> [NodeId; Clock::CARRIES] {
        let (count, turn) = (Id(self.count.0), Id(self.turn.0));
        let count = expand::binary_const(w, MapOp::add, count, 1.0);
        let before = expand::binary_const(w, MapOp::sub, turn, 1.0);
        let zero = expand::like(w, turn, 0.0);
        let goes_on = expand::map(w, MapOp::ge, &[before, zero]);
        [goes_on, count, before].map(|id| NodeId(id.0))
    }

    /// The row of its turn.
    fn row(self, w: &mut Writer, rows: NodeId) -> NodeId {
        let (shape, dtype) = (w.shape(Id(rows.0))[1..].to_vec(), w.dtype(Id(rows.0)));
        NodeId(w.push(Prim::Take { axis: 0 }, &[Id(rows.0), Id(self.turn.0)], shape, dtype).0)
    }
}

impl Reversed {
    /// What a turn takes of `rows`: an element of a sequence; where the loop ends by itself, the row of its turn.
    fn element(&mut self, r: &mut Reverse, l: &Loop, (name, ty): (&str, NodeType), rows: NodeId) -> NodeId {
        let Some(clock) = self.clock else {
            self.sequences.push(rows);
            return input(&mut self.body, name, ty);
        };
        let all = input(&mut self.body, name, r.g.ty(rows).unsharded());
        self.constants.push(rows);
        let policy = r.g.node(l.id).policy;
        clock.row(&mut Writer::new(&mut self.body, policy), all)
    }
}

/// Adds the cotangents of the operands of a loop.
pub fn pull(r: &mut Reverse, id: NodeId, cotangents: Vec<Option<NodeId>>) -> Result<(), Blocked> {
    let node = r.g.node(id).clone();
    let Prim::Scan { body, carry, sequences, trips, reversed, until } = node.prim else { return Ok(()) };
    let Some(inner) = r.g.bodies.get(body as usize).cloned() else { return Ok(()) };
    let start: Vec<bool> = node.operands.iter().map(|&o| r.is_active(o)).collect();
    let active = active_inputs(&inner, start, carry);
    // What the turns carry beside it may have a cotangent, and nothing that depends on what is asked for.
    if !cotangents.iter().enumerate().any(|(k, c)| c.is_some() && (k >= carry || active[k])) {
        return Ok(());
    }
    if until && trips > TURNS_MAX {
        return Err(Blocked { node: id, why: ANY_NUMBER });
    }
    let operands = node.operands;
    let l = Loop { id, body: inner, operands, carry, sequences, trips, reversed, until, active, cotangents };
    if trips == 0 {
        for i in 0..carry {
            if let Some(Some(c)) = l.cotangents.get(i) {
                r.add(l.operands[i], *c);
            }
        }
        return Ok(());
    }
    let states = states(r, &l, body as usize);
    let (mut back, once_more) = reverse_loop(r, &l, &states).map_err(|b| Blocked { node: id, why: b.why })?;
    if !until {
        keep(r, &l, body as usize, &mut back, &once_more);
    }
    finish(r, &l, back);
    Ok(())
}

/// The inputs of the body that depend on active operands, also through earlier turns.
pub fn active_inputs(body: &Graph, mut inputs: Vec<bool>, carry: usize) -> Vec<bool> {
    let nodes = input_nodes(body, inputs.len());
    for (on, node) in inputs.iter_mut().zip(&nodes) {
        *on &= node.is_some_and(|n| smooth(body.ty(n).dtype));
    }
    loop {
        let wrt: Vec<NodeId> = nodes.iter().zip(&inputs).filter(|(_, on)| **on).filter_map(|(n, _)| *n).collect();
        let reached = active(body, &wrt, NodeId(0), NodeId(body.nodes.len() as u32));
        let mut grown = false;
        for (input, output) in inputs.iter_mut().zip(&body.outputs).take(carry) {
            let on = reached.contains(output);
            grown |= on && !*input;
            *input |= on;
        }
        if !grown {
            return inputs;
        }
    }
}

/// The node of each input.
fn input_nodes(g: &Graph, count: usize) -> Vec<Option<NodeId>> {
    let mut out = vec![None; count];
    for id in g.ids() {
        if let Prim::Input(n) = g.node(id).prim
            && let Some(slot) = out.get_mut(n as usize)
        {
            *slot = Some(id);
        }
    }
    out
}

/// The state at the start of every turn, stacked, for each carry that the body reads.
fn states(r: &mut Reverse, l: &Loop, body: usize) -> Vec<Option<NodeId>> {
    let mut read: BTreeSet<NodeId> = l.body.nodes.iter().flat_map(|n| n.operands.clone()).collect();
    read.extend(&l.body.outputs);
    let nodes = input_nodes(&l.body, l.carry);
    let mut out = vec![];
    for node in nodes {
        let Some(node) = node.filter(|n| read.contains(n)) else {
            out.push(None);
            continue;
        };
        out.push(stacked(r, l, body, node));
    }
    out
}

/// The values of a node of the body in all turns, stacked, as a result of the loop.
fn stacked(r: &mut Reverse, l: &Loop, body: usize, node: NodeId) -> Option<NodeId> {
    let inner = &mut r.g.bodies[body];
    // A derivative taken before may have asked for it.
    let known = inner.outputs.iter().skip(l.carry).position(|&o| o == node).map(|i| i + l.carry);
    let index = known.unwrap_or_else(|| {
        inner.outputs.push(node);
        inner.outputs.len() - 1
    });
    if known.is_none() {
        let stacked = l.body.ty(node).stacked(l.trips);
        r.g.nodes[l.id.0 as usize].results.push(stacked);
    }
    r.writer(l.id).get(l.id, index)
}

/// Lets the forward loop keep what the reverse loop would take long to compute once more.
fn keep(r: &mut Reverse, l: &Loop, body: usize, back: &mut Reversed, once_more: &OnceMore) {
    let chosen = kept::choose(&back.body, once_more.end);
    if chosen.is_empty() {
        return;
    }
    let originals: BTreeMap<NodeId, NodeId> = once_more.copied.iter().map(|(from, to)| (*to, *from)).collect();
    let mut elements = vec![];
    for copy in chosen {
        let Some(value) = originals.get(&copy).and_then(|&node| stacked(r, l, body, node)) else { continue };
        back.sequences.push(value);
        elements.push(copy);
    }
    back.body = kept::taking(&back.body, &elements, back.constants.len());
}

/// The turn in the body of the reverse loop.
struct OnceMore {
    /// Where each node of the loop's body is there.
    copied: BTreeMap<NodeId, NodeId>,
    /// Behind it begins its derivative.
    end: NodeId,
}

fn reverse_loop(r: &mut Reverse, l: &Loop, states: &[Option<NodeId>]) -> Result<(Reversed, OnceMore), Blocked> {
    let policy = r.g.node(l.id).policy;
    let mut out = Reversed {
        body: Graph { name: "reverse".into(), ..Graph::default() },
        init: vec![],
        sequences: vec![],
        constants: vec![],
        carries: vec![],
        stacked: vec![],
        clock: None,
    };
    if l.until {
        out.clock = Clock::start(r, l, &mut out);
    }
    let inputs = input_nodes(&l.body, l.operands.len());
    // Inputs: carries first, in the order of `init`.
    let mut carried = vec![];
    for (i, &operand) in l.operands.iter().enumerate() {
        let is_sequence = (l.carry..l.carry + l.sequences).contains(&i);
        if !l.active[i] || is_sequence {
            continue;
        }
        let Some(mut ty) = inputs[i].map(|n| l.body.ty(n).clone()) else { continue };
        let known = l.cotangents.get(i).copied().flatten().filter(|_| i < l.carry);
        let start = known.unwrap_or_else(|| zeros_like(&mut r.writer(l.id), operand));
        if i < l.carry {
            out.init.push(start);
        } else {
            // What the turns give a constant is summed in f32 where it is narrower.
            ty.dtype = ty.dtype.compute();
            out.init.push(NodeId(expand::cast(&mut r.writer(l.id), Id(start.0), ty.dtype).0));
        }
        carried.push(input(&mut out.body, "cotangent", ty));
        out.carries.push(i);
    }
    // Then sequences: states, elements, and cotangents of stacked results.
    let mut values: Vec<Option<NodeId>> = vec![None; l.operands.len()];
    for i in 0..l.carry + l.sequences {
        let Some(source) = (if i < l.carry { states[i] } else { Some(l.operands[i]) }) else { continue };
        let Some(ty) = inputs[i].map(|n| l.body.ty(n).clone()) else { continue };
        values[i] = Some(out.element(r, l, ("element", ty), source));
    }
    let mut seeds = vec![];
    for (k, c) in l.cotangents.iter().enumerate().skip(l.carry) {
        let (Some(c), Some(&output)) = (c, l.body.outputs.get(k)) else { continue };
        seeds.push((output, out.element(r, l, ("cotangent", l.body.ty(output).unsharded()), *c)));
    }
    // Then constants.
    for i in l.carry + l.sequences..l.operands.len() {
        let Some(ty) = inputs[i].map(|n| l.body.ty(n).clone()) else { continue };
        values[i] = Some(input(&mut out.body, "constant", ty));
        out.constants.push(l.operands[i]);
    }
    for (&i, &c) in out.carries.iter().zip(&carried) {
        if i < l.carry {
            seeds.push((l.body.outputs[i], c));
        }
    }
    let once_more = turn(l, &mut out, &values, &carried, seeds, policy)?;
    Ok((out, once_more))
}

/// The body of the reverse loop: the turn once more, and its derivative.
fn turn(
    l: &Loop,
    out: &mut Reversed,
    values: &[Option<NodeId>],
    carried: &[NodeId],
    seeds: Vec<(NodeId, NodeId)>,
    policy: Policy,
) -> Result<OnceMore, Blocked> {
    // A carry that the body does not read has no value here.
    let filled: Vec<NodeId> = values.iter().map(|v| v.unwrap_or(NodeId(0))).collect();
    let nodes = l.body.ids().map(|id| (id, l.body.node(id).clone())).collect();
    let copied = copy_into(&mut out.body, nodes, Some(&l.body.bodies), &filled, None);
    let all: Vec<NodeId> = l.body.ids().collect();
    let statements = l.body.derivatives.copied(&all, &|id| copied.get(&id).copied());
    out.body.derivatives.extend(statements);
    let wrt: Vec<(usize, NodeId)> =
        values.iter().enumerate().filter(|(i, _)| l.active[*i]).filter_map(|(i, v)| Some((i, (*v)?))).collect();
    let end = NodeId(out.body.nodes.len() as u32);
    let seeds: Vec<(NodeId, NodeId)> = seeds.into_iter().filter_map(|(o, c)| Some((*copied.get(&o)?, c))).collect();
    let ids: Vec<NodeId> = wrt.iter().map(|w| w.1).collect();
    let made = Reverse::new(&mut out.body, &ids, NodeId(0), end).run(&seeds)?;
    let cotangent = |i: usize| wrt.iter().position(|w| w.0 == i).and_then(|k| made[k]);
    let mut w = Writer::new(&mut out.body, policy);
    let mut outputs = vec![];
    outputs.extend(out.clock.into_iter().flat_map(|clock| clock.next(&mut w)));
    for (&i, &before) in out.carries.iter().zip(carried) {
        let c = cotangent(i);
        outputs.push(match (i < l.carry, c) {
            (true, Some(c)) => c,
            (true, None) => zeros_like(&mut w, before),
            (false, Some(c)) => {
                let dtype = w.dtype(Id(before.0));
                let c = expand::cast(&mut w, Id(c.0), dtype);
                NodeId(expand::map(&mut w, MapOp::add, &[Id(before.0), c]).0)
            }
            (false, None) => before,
        });
    }
    for (i, value) in values.iter().enumerate().skip(l.carry).take(l.sequences) {
        let Some(value) = value.filter(|_| l.active[i]) else { continue };
        outputs.push(cotangent(i).unwrap_or_else(|| zeros_like(&mut w, value)));
        out.stacked.push(i);
    }
    out.body.outputs = outputs;
    Ok(OnceMore { copied, end })
}

/// Adds the reverse loop, and its results to the cotangents of the loop's operands.
fn finish(r: &mut Reverse, l: &Loop, reversed_loop: Reversed) {
    let Reversed { body, init, sequences, constants, carries, stacked, clock } = reversed_loop;
    let lead = clock.map_or(0, |_| Clock::CARRIES);
    let carry = init.len();
    let results: Vec<NodeType> = body
        .outputs
        .iter()
        .enumerate()
        .map(|(i, &o)| {
            let ty = body.ty(o);
            if i < carry { ty.unsharded() } else { ty.stacked(l.trips) }
        })
        .collect();
    let Some(first) = results.first().cloned() else { return };
    r.g.bodies.push(body);
    let prim = Prim::Scan {
        body: r.g.bodies.len() as u32 - 1,
        carry,
        sequences: sequences.len(),
        trips: l.trips,
        reversed: !l.reversed && !l.until,
        until: l.until,
    };
    let operands = [init, sequences, constants].concat();
    let mut w = r.writer(l.id);
    let node = w.node(prim, operands, first, results);
    let mut parts = vec![];
    for (k, &i) in carries.iter().chain(&stacked).enumerate() {
        let Some(got) = w.get(node, lead + k) else { continue };
        parts.push((i, got));
    }
    for (i, c) in parts {
        r.add(l.operands[i], c);
    }
}
