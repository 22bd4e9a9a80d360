//! Graphs over the devices of a mesh: placements of their inputs, and a play of all devices in one
//! thread that shares nothing with the runtime but the kernels of single nodes.

use crate::random::Random;
use crate::random_graph::Case;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use tessera::backend::exchanges::tags;
use tessera_base::{Mesh, Monoid, Sharding};
use tessera_ir::graph::{Graph, Node, NodeId, NodeType, Origin};
use tessera_ir::interpret;
use tessera_ir::reference::{self, ArrayRef};
use tessera_ops::prim::{Exchange, Prim, Transfer};
use tessera_shard::layout::real;
use tessera_shard::spmd_partition::{Devices, Outcome};

/// The mesh of the laws: two axes whose sizes divide differently.
pub fn mesh() -> Arc<Mesh> {
    of(&[2, 3])
}

/// A mesh of these sizes.
pub fn of(sizes: &[u64]) -> Arc<Mesh> {
    let axes = ["a", "b", "c"].iter().zip(sizes).map(|(name, size)| ((*name).into(), *size)).collect();
    Arc::new(Mesh { axes })
}

/// Every way to split the dims of a tensor over the axes of the mesh: each axis over no dim or
/// any, both over one in either order.
pub fn layouts(mesh: &Arc<Mesh>, rank: usize) -> Vec<Sharding> {
    let last = mesh.axes.iter().map(|a| a.1).max().unwrap_or(1) - 1;
    let exists = |(m, axis): &(Monoid, String)| m.position().is_none_or(|i| mesh.size(axis).is_some_and(|n| i < n));
    let mut all = stated(mesh, rank, &[Monoid::At(0), Monoid::At(last)]);
    all.retain(|layout| layout.partial.iter().all(exists));
    all
}

/// The same with values that are partial over axes under one of these.
pub fn stated(mesh: &Arc<Mesh>, rank: usize, monoids: &[Monoid]) -> Vec<Sharding> {
    let mut all = vec![Sharding { mesh: Some(mesh.clone()), dims: vec![vec![]; rank], partial: vec![] }];
    for (axis, _) in &mesh.axes {
        let one = |layout: &Sharding| {
            let mut out = vec![layout.clone()];
            for d in 0..rank {
                for at in 0..=layout.dims[d].len() {
                    let mut more = layout.clone();
                    more.dims[d].insert(at, axis.clone());
                    out.push(more);
                }
            }
            // Of several monoids none would be the outer one.
            for &m in monoids.iter().filter(|m| layout.partial.iter().all(|p| p.0 == **m)) {
                let mut more = layout.clone();
                more.partial.push((m, axis.clone()));
                out.push(more);
            }
            out
        };
        all = all.iter().flat_map(one).collect();
    }
    all.into_iter().map(|layout| layout.normal(rank)).collect()
}

/// One of several choices each: all combinations where there are at most `most`, else so many
/// random ones.
pub fn combinations<T: Clone>(choices: &[Vec<T>], most: usize, random: &mut Random) -> Vec<Vec<T>> {
    let count = choices.iter().fold(1usize, |n, c| n.saturating_mul(c.len()));
    if count <= most {
        return choices.iter().fold(vec![vec![]], |all, c| {
            all.iter().flat_map(|first| c.iter().map(|x| [&first[..], std::slice::from_ref(x)].concat())).collect()
        });
    }
    (0..most).map(|_| choices.iter().map(|c| c[random.below(c.len())].clone()).collect()).collect()
}

/// The graph with its tensor inputs in these layouts; scalars have none.
pub fn with_inputs(g: &Graph, layouts: &[Sharding]) -> Graph {
    let mut g = g.clone();
    let tensors = g.inputs.iter_mut().filter(|i| !i.scalar);
    tensors.zip(layouts).for_each(|(input, layout)| input.ty.sharding = layout.clone());
    g
}

/// The graph with its outputs in these layouts; `None`: on one device.
pub fn with_outputs(g: &Graph, layouts: &[Option<Sharding>]) -> Graph {
    let mut g = g.clone();
    for (i, layout) in layouts.iter().enumerate() {
        let x = g.outputs[i];
        let rank = g.ty(x).shape.len();
        g.outputs[i] = converted(&mut g, x, layout.clone().unwrap_or_default().normal(rank));
    }
    g
}

/// The graph with some of its values in other layouts on the way, in its loops too.
pub fn with_conversions(g: &Graph, mesh: &Arc<Mesh>, random: &mut Random) -> Graph {
    let bodies = g.bodies.iter().map(|b| with_conversions(b, mesh, random)).collect();
    let mut out = Graph { nodes: vec![], outputs: vec![], bodies, ..g.clone() };
    let mut now: Vec<NodeId> = vec![];
    for id in g.ids() {
        let node = g.node(id);
        let operands = node.operands.iter().map(|o| now[o.0 as usize]).collect();
        let mut made = out.push(Node { operands, ..node.clone() });
        if node.results.is_empty() && random.once_in(4) {
            let all = layouts(mesh, node.ty.shape.len());
            let sharding = if random.once_in(6) { Sharding::default() } else { all[random.below(all.len())].clone() };
            made = converted(&mut out, made, sharding);
        }
        now.push(made);
    }
    out.outputs = g.outputs.iter().map(|o| now[o.0 as usize]).collect();
    out
}

fn converted(g: &mut Graph, x: NodeId, sharding: Sharding) -> NodeId {
    let ty = NodeType { sharding, ..g.ty(x).clone() };
    let (origin, policy) = (Origin::default(), Default::default());
    g.push(Node { prim: Prim::Layout, operands: vec![x], ty, results: vec![], origin, policy })
}

/// In words, for messages.
pub fn described(g: &Graph) -> String {
    let one = |ty: &NodeType| format!("{:?} {}", ty.shape, ty.sharding.describe(ty.shape.len()));
    let inputs: Vec<String> = g.inputs.iter().map(|i| one(&i.ty)).collect();
    let outputs: Vec<String> = g.outputs.iter().map(|o| one(g.ty(*o))).collect();
    format!("{} -> {}", inputs.join("; "), outputs.join("; "))
}

// ---- Boxes of elements ----------------------------------------------------------------------

/// Where the elements of a box are in an array, in row-major order.
fn positions(shape: &[u64], part: &[Range<u64>]) -> Vec<usize> {
    if part.iter().any(Range::is_empty) {
        return vec![];
    }
    let mut out = vec![0usize];
    for (&n, range) in shape.iter().zip(part) {
        out = out.iter().flat_map(|at| range.clone().map(move |i| at * n as usize + i as usize)).collect();
    }
    out
}

/// The bytes of a box.
pub fn cut(bytes: &[u8], shape: &[u64], part: &[Range<u64>], element: usize) -> Vec<u8> {
    positions(shape, part).into_iter().flat_map(|i| bytes[i * element..(i + 1) * element].to_vec()).collect()
}

/// Writes a box; calls back with the position of every element.
pub fn paste(
    to: &mut [u8],
    shape: &[u64],
    part: &[Range<u64>],
    element: usize,
    from: &[u8],
    mut at: impl FnMut(usize),
) {
    for (n, i) in positions(shape, part).into_iter().enumerate() {
        to[i * element..(i + 1) * element].copy_from_slice(&from[n * element..(n + 1) * element]);
        at(i);
    }
}

fn ranges(t: &Transfer) -> Vec<Range<u64>> {
    t.start.iter().zip(&t.size).map(|(&start, size)| start..start + size).collect()
}

// ---- The play -------------------------------------------------------------------------------

/// The bytes of every output of the whole graph, or what stopped a device.
///
/// # Errors
/// Also where devices do not go together: another number of nodes, boxes that nobody sends,
/// elements that do not arrive, copies that differ.
pub fn play(whole: &Graph, devices: &Devices, inputs: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, String> {
    let count = devices.graphs.len() as u64;
    let given = (0..count).map(|d| arguments(whole, &devices.mesh, inputs, d));
    let runners = devices.graphs.iter().zip(given).map(|(graph, given)| Some(Runner::new(graph, given)));
    let outputs: Vec<_> = together_run(runners.collect())?.into_iter().flatten().collect();
    let mut out = vec![];
    for (i, outcome) in devices.outcomes.iter().enumerate() {
        let held: Vec<&Vec<u8>> = outputs.iter().map(|o| &o[i]).collect();
        let ty = whole.ty(whole.outputs[i]);
        out.push(match outcome {
            Outcome::Plain => held[0].clone(),
            Outcome::Parts(layout) => together(layout, ty, &held)?,
        });
    }
    Ok(out)
}

/// A device in the middle of its graph.
struct Runner<'g> {
    graph: &'g Graph,
    given: Vec<Vec<u8>>,
    /// By node that has run; the results of loops apart.
    values: Vec<Vec<u8>>,
    several: BTreeMap<NodeId, Vec<Vec<u8>>>,
}

impl<'g> Runner<'g> {
    fn new(graph: &'g Graph, given: Vec<Vec<u8>>) -> Runner<'g> {
        Runner { graph, given, values: vec![], several: BTreeMap::new() }
    }

    /// The node that comes next.
    fn next(&self) -> NodeId {
        NodeId(self.values.len() as u32)
    }

    fn held(&self, o: NodeId) -> &[u8] {
        &self.values[o.0 as usize]
    }

    /// Goes on to where the device meets others: the first tag there, 0 for a loop that it runs alone; `None` at the end.
    fn advance(&mut self) -> Result<Option<u32>, String> {
        while let Some(node) = self.graph.nodes.get(self.values.len()) {
            match &node.prim {
                Prim::Exchange(e) => return Ok(Some(e.tag)),
                Prim::Scan { body, .. } => {
                    let inside = self.graph.bodies.get(*body as usize).map(tags).unwrap_or_default();
                    return Ok(Some(inside.first().copied().unwrap_or(0)));
                }
                Prim::Get { index } => {
                    let results = self.several.get(&node.operands[0]).ok_or("a result of no loop")?;
                    self.values.push(results.get(*index).cloned().ok_or("a result that the loop has not")?);
                }
                Prim::Input(n) => self.values.push(self.given[*n as usize].clone()),
                prim => {
                    let operand = |&o: &NodeId| {
                        let ty = self.graph.ty(o);
                        ArrayRef { dtype: ty.dtype, shape: &ty.shape, bytes: self.held(o) }
                    };
                    let operands: Vec<ArrayRef> = node.operands.iter().map(operand).collect();
                    let sums = interpret::summation(node.policy);
                    let made = reference::eval_summing(prim, &operands, node.ty.dtype, &node.ty.shape, sums);
                    self.values.push(made.map_err(|e| e.message)?);
                }
            }
        }
        Ok(None)
    }
}

/// The outputs of each device, from its inputs: every device goes on to where it meets others, and those that have come
/// to the first of these places go on together. A device that is `None` takes no part.
fn together_run(mut devices: Vec<Option<Runner>>) -> Result<Vec<Option<Vec<Vec<u8>>>>, String> {
    loop {
        let mut keys = vec![];
        for (d, device) in devices.iter_mut().enumerate() {
            keys.extend(device.as_mut().map(Runner::advance).transpose()?.flatten().map(|tag| (tag, d)));
        }
        let Some(&(first, alone)) = keys.iter().min() else { break };
        let mut who: Vec<usize> = keys.iter().filter(|k| k.0 == first).map(|k| k.1).collect();
        if first == 0 {
            who = vec![alone];
        }
        let scan = |d: &usize| devices[*d].as_ref().map(|r| matches!(r.graph.node(r.next()).prim, Prim::Scan { .. }));
        let loops = who.iter().filter(|d| scan(d) == Some(true)).count();
        match loops {
            0 => exchanged(&mut devices, &who)?,
            n if n == who.len() => looped(&mut devices, &who)?,
            _ => return Err(format!("exchange {first} is in a loop on some devices only")),
        }
    }
    let outputs = |r: Runner| r.graph.outputs.iter().map(|o| r.held(*o).to_vec()).collect();
    Ok(devices.into_iter().map(|device| device.map(outputs)).collect())
}

/// Runs a loop on some devices: they take each turn together.
fn looped(devices: &mut [Option<Runner>], who: &[usize]) -> Result<(), String> {
    let runner = |d: usize| devices[d].as_ref().ok_or("no device");
    let (mut all, mut state, mut stacked) = (vec![], vec![], vec![]);
    for &d in who {
        let r = runner(d)?;
        let Prim::Scan { body, carry, sequences, trips, reversed, until } = r.graph.node(r.next()).prim else {
            return Err("no loop".into());
        };
        let body = r.graph.bodies.get(body as usize).ok_or("a loop without a body")?;
        let operands: Vec<Vec<u8>> = r.graph.node(r.next()).operands.iter().map(|o| r.held(*o).to_vec()).collect();
        state.push(operands[..carry].to_vec());
        stacked.push(vec![vec![]; body.outputs.len() - carry]);
        all.push((body, operands, (carry, sequences, trips, reversed, until)));
    }
    let (carry, sequences, trips, reversed, until) = all[0].2;
    if all.iter().any(|a| a.2 != all[0].2) {
        return Err("another loop on other devices".into());
    }
    let trips = trips as usize;
    for t in (0..trips).map(|t| if reversed { trips - 1 - t } else { t }) {
        // What says whether there is a turn is the same on all devices.
        if until && state.iter().any(|s| s[0] != state[0][0]) {
            return Err("a loop ends on some devices only".into());
        }
        if until && state.first().is_some_and(|s| s[0] == [0]) {
            break;
        }
        let mut turn: Vec<Option<Runner>> = devices.iter().map(|_| None).collect();
        for (i, &d) in who.iter().enumerate() {
            let (body, operands, _) = &all[i];
            let mut inputs: Vec<Vec<u8>> = std::mem::take(&mut state[i]);
            for (n, operand) in operands.iter().enumerate().skip(carry) {
                let one = body.inputs[n].ty.bytes().unwrap_or(0) as usize;
                let row = if n < carry + sequences { t * one..(t + 1) * one } else { 0..operand.len() };
                inputs.push(operand[row].to_vec());
            }
            turn[d] = Some(Runner::new(body, inputs));
        }
        for (i, mut outputs) in together_run(turn)?.into_iter().flatten().enumerate() {
            for (all, one) in stacked[i].iter_mut().zip(outputs.drain(carry..)) {
                // From the last row on, each one comes before those that are there.
                let at = if reversed { 0 } else { all.len() };
                all.splice(at..at, one);
            }
            state[i] = outputs;
        }
    }
    for (i, &d) in who.iter().enumerate() {
        let Some(r) = &mut devices[d] else { continue };
        let at = r.next();
        r.several.insert(at, [std::mem::take(&mut state[i]), std::mem::take(&mut stacked[i])].concat());
        r.values.push(vec![]);
    }
    Ok(())
}

/// What a device holds of the inputs.
pub fn arguments(whole: &Graph, mesh: &Arc<Mesh>, inputs: &[Vec<u8>], device: u64) -> Vec<Vec<u8>> {
    let one = |(input, bytes): (&tessera_ir::graph::Input, &Vec<u8>)| {
        let layout = real(&input.ty.sharding, mesh, input.ty.shape.len());
        cut(bytes, &input.ty.shape, &layout.block(&input.ty.shape, device), input.ty.dtype.bytes())
    };
    whole.inputs.iter().zip(inputs).map(one).collect()
}

/// Runs an exchange on some devices, which are all that take part in it.
fn exchanged(devices: &mut [Option<Runner>], who: &[usize]) -> Result<(), String> {
    let mut plans: BTreeMap<usize, (&Arc<Exchange>, &Runner, NodeId)> = BTreeMap::new();
    for &d in who {
        let Some(r) = &devices[d] else { continue };
        let Prim::Exchange(e) = &r.graph.node(r.next()).prim else { return Err("no exchange".into()) };
        plans.insert(d, (e, r, r.next()));
    }
    let mut out = vec![];
    for (&me, (plan, r, id)) in &plans {
        let ty = r.graph.ty(*id);
        let size = ty.dtype.bytes();
        let elems = ty.elems().unwrap_or(0) as usize;
        let (mut to, mut seen) = (vec![0xa5; elems * size], vec![0u32; elems]);
        for peer in 0..devices.len() {
            let received: Vec<&Transfer> = plan.receives.iter().filter(|r| r.peer == peer as u64).collect();
            let given = plans.get(&peer);
            let sends = given.map(|(theirs, ..)| theirs.sends.as_slice()).unwrap_or_default();
            let sent: Vec<&Transfer> = sends.iter().filter(|s| s.peer == me as u64).collect();
            let alike = given.is_none_or(|(theirs, ..)| (theirs.tag, &theirs.name) == (plan.tag, &plan.name));
            if !alike || !sent.iter().map(|s| &s.size).eq(received.iter().map(|r| &r.size)) {
                return Err(format!("{id}: device {me} does not expect what {peer} sends"));
            }
            let Some((_, theirs, at)) = given else { continue };
            let from = theirs.graph.node(*at).operands[0];
            for (s, r) in sent.iter().zip(received) {
                let bytes = cut(theirs.held(from), &theirs.graph.ty(from).shape, &ranges(s), size);
                paste(&mut to, &ty.shape, &ranges(r), size, &bytes, |i| seen[i] += 1);
            }
        }
        if seen.iter().any(|n| *n != 1) {
            return Err(format!("{id}: elements of device {me} arrive not at all or twice"));
        }
        out.push((me, to));
    }
    for (d, to) in out {
        devices[d].iter_mut().for_each(|r| r.values.push(to.clone()));
    }
    Ok(())
}

/// A tensor from its parts, of which copies must agree.
pub fn together(layout: &Sharding, ty: &NodeType, held: &[&Vec<u8>]) -> Result<Vec<u8>, String> {
    let size = ty.dtype.bytes();
    let mut out = vec![0xa5; ty.bytes().unwrap_or(0) as usize];
    let mut first: Vec<Option<usize>> = vec![None; ty.elems().unwrap_or(0) as usize];
    for (d, bytes) in held.iter().enumerate() {
        let part = layout.block(&ty.shape, d as u64);
        let elems: u64 = part.iter().map(|r| r.end - r.start).product();
        if bytes.len() as u64 != elems * size as u64 {
            return Err(format!("device {d} holds {} bytes of an output, not {elems} elements", bytes.len()));
        }
        for (n, i) in positions(&ty.shape, &part).into_iter().enumerate() {
            let (to, from) = (&mut out[i * size..(i + 1) * size], &bytes[n * size..(n + 1) * size]);
            match first[i] {
                Some(other) if to != from => return Err(format!("devices {other} and {d} differ in element {i}")),
                _ => to.copy_from_slice(from),
            }
            first[i].get_or_insert(d);
        }
    }
    match first.iter().all(Option::is_some) {
        true => Ok(out),
        false => Err("an element lies nowhere".into()),
    }
}

/// Whether exchanges that go together do so on all devices, are of one kind and need nothing of each other; how many go
/// with another one.
pub fn go_together(devices: &Devices) -> Result<usize, String> {
    let mut known: BTreeMap<u32, (u32, String)> = BTreeMap::new();
    devices.graphs.iter().map(|g| joined(g, &mut known)).sum()
}

fn joined(g: &Graph, known: &mut BTreeMap<u32, (u32, String)>) -> Result<usize, String> {
    // By node, the last batch that it needs.
    let mut needs = vec![0; g.nodes.len()];
    let mut count = 0;
    for id in g.ids() {
        let node = g.node(id);
        let mut last = node.operands.iter().map(|o| needs[o.0 as usize]).max().unwrap_or(0);
        if let Prim::Exchange(e) = &node.prim {
            let batch = known.entry(e.tag).or_insert((e.batch, e.name.to_string())).clone();
            let kind = known.get(&e.batch).map(|first| first.1.as_str());
            if batch.0 != e.batch || kind != Some(&e.name) || last >= e.batch {
                return Err(format!("exchange {} goes with {}, which is {kind:?}, and needs {last}", e.tag, e.batch));
            }
            count += usize::from(e.batch != e.tag);
            last = e.batch;
        }
        needs[id.0 as usize] = last;
    }
    g.bodies.iter().map(|body| joined(body, known)).sum::<Result<usize, _>>().map(|inside| count + inside)
}

/// A case whose graph is placed.
pub fn on_mesh(case: &Case, inputs: &[Sharding], outputs: &[Option<Sharding>]) -> Case {
    Case { graph: with_outputs(&with_inputs(&case.graph, inputs), outputs), inputs: case.inputs.clone() }
}
