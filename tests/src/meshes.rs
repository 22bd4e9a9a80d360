//! Graphs over the devices of a mesh: placements of their inputs, and a play of all devices in one
//! thread that shares nothing with the runtime but the kernels of single nodes.

use crate::random::Random;
use crate::random_graph::Case;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use tessera_base::{Mesh, Monoid, Sharding};
use tessera_ir::graph::{Graph, Node, NodeId, NodeType, Origin};
use tessera_ir::interpret;
use tessera_ops::prim::{Exchange, Prim, Transfer};
use tessera_ops::reference::{self, ArrayRef};
use tessera_shard::layout::real;
use tessera_shard::local::{Devices, Outcome};

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
    stated(mesh, rank, &[])
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
    let given: Vec<Vec<Vec<u8>>> = (0..count).map(|d| arguments(whole, &devices.mesh, inputs, d)).collect();
    let graphs: Vec<&Graph> = devices.graphs.iter().collect();
    let outputs = together_run(&graphs, &given)?;
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

/// The outputs of each device, from its inputs: all devices go from node to node together.
fn together_run(graphs: &[&Graph], given: &[Vec<Vec<u8>>]) -> Result<Vec<Vec<Vec<u8>>>, String> {
    let nodes = graphs.first().map_or(0, |g| g.nodes.len());
    if graphs.iter().any(|g| g.nodes.len() != nodes) {
        return Err("devices have different numbers of nodes".into());
    }
    // By node and device; the results of loops by node, device and number.
    let mut values: Vec<Vec<Vec<u8>>> = vec![];
    let mut several: BTreeMap<NodeId, Vec<Vec<Vec<u8>>>> = BTreeMap::new();
    for i in 0..nodes {
        let id = NodeId(i as u32);
        let made = match graphs[0].node(id).prim {
            Prim::Exchange(_) => exchanged(graphs, id, &values)?,
            Prim::Scan { .. } => {
                several.insert(id, looped(graphs, id, &values)?);
                vec![vec![]; graphs.len()]
            }
            Prim::Get { index } => {
                let scan = several.get(&graphs[0].node(id).operands[0]).ok_or("a result of no loop")?;
                scan.iter().map(|results| results[index].clone()).collect()
            }
            _ => graphs
                .iter()
                .enumerate()
                .map(|(d, g)| evaluated(g, id, &values, d, &given[d]))
                .collect::<Result<_, _>>()?,
        };
        values.push(made);
    }
    let held = |(d, g): (usize, &&Graph)| g.outputs.iter().map(|o| values[o.0 as usize][d].clone()).collect();
    Ok(graphs.iter().enumerate().map(held).collect())
}

/// The results of a loop on each device: all devices take each turn together.
fn looped(graphs: &[&Graph], id: NodeId, values: &[Vec<Vec<u8>>]) -> Result<Vec<Vec<Vec<u8>>>, String> {
    let Prim::Scan { carry, sequences, trips, .. } = graphs[0].node(id).prim else { return Err("no loop".into()) };
    let mut bodies = vec![];
    for g in graphs {
        let Prim::Scan { body, carry: c, sequences: s, trips: t } = g.node(id).prim else {
            return Err(format!("{id} is a loop on some devices only"));
        };
        if (c, s, t) != (carry, sequences, trips) {
            return Err(format!("{id} is another loop on other devices"));
        }
        bodies.push(g.bodies.get(body as usize).ok_or("a loop without a body")?);
    }
    let operand = |d: usize, i: usize| values[graphs[d].node(id).operands[i].0 as usize][d].as_slice();
    let devices = 0..graphs.len();
    let mut state: Vec<Vec<Vec<u8>>> =
        devices.clone().map(|d| (0..carry).map(|i| operand(d, i).to_vec()).collect()).collect();
    let mut stacked: Vec<Vec<Vec<u8>>> = bodies.iter().map(|b| vec![vec![]; b.outputs.len() - carry]).collect();
    for t in 0..trips as usize {
        let given: Vec<Vec<Vec<u8>>> = devices
            .clone()
            .map(|d| {
                let mut inputs = std::mem::take(&mut state[d]);
                for i in carry..graphs[d].node(id).operands.len() {
                    let one = bodies[d].inputs[i].ty.bytes().unwrap_or(0) as usize;
                    let all = operand(d, i);
                    inputs.push(if i < carry + sequences {
                        all[t * one..(t + 1) * one].to_vec()
                    } else {
                        all.to_vec()
                    });
                }
                inputs
            })
            .collect();
        for (d, mut outputs) in together_run(&bodies, &given)?.into_iter().enumerate() {
            for (all, one) in stacked[d].iter_mut().zip(outputs.drain(carry..)) {
                all.extend(one);
            }
            state[d] = outputs;
        }
    }
    Ok(state.into_iter().zip(stacked).map(|(a, b)| [a, b].concat()).collect())
}

/// What a device holds of the inputs.
pub fn arguments(whole: &Graph, mesh: &Arc<Mesh>, inputs: &[Vec<u8>], device: u64) -> Vec<Vec<u8>> {
    let one = |(input, bytes): (&tessera_ir::graph::Input, &Vec<u8>)| {
        let layout = real(&input.ty.sharding, mesh, input.ty.shape.len());
        cut(bytes, &input.ty.shape, &layout.block(&input.ty.shape, device), input.ty.dtype.bytes())
    };
    whole.inputs.iter().zip(inputs).map(one).collect()
}

fn evaluated(g: &Graph, id: NodeId, values: &[Vec<Vec<u8>>], d: usize, inputs: &[Vec<u8>]) -> Result<Vec<u8>, String> {
    let node = g.node(id);
    let held = |o: NodeId| values[o.0 as usize][d].as_slice();
    match &node.prim {
        Prim::Input(n) => Ok(inputs[*n as usize].clone()),
        prim => {
            let operands: Vec<ArrayRef> = node
                .operands
                .iter()
                .map(|&o| ArrayRef { dtype: g.ty(o).dtype, shape: &g.ty(o).shape, bytes: held(o) })
                .collect();
            let sums = interpret::summation(node.policy);
            reference::eval_summing(prim, &operands, node.ty.dtype, &node.ty.shape, sums).map_err(|e| e.message)
        }
    }
}

fn exchanged(graphs: &[&Graph], id: NodeId, values: &[Vec<Vec<u8>>]) -> Result<Vec<Vec<u8>>, String> {
    let plans: Option<Vec<&Arc<Exchange>>> =
        graphs.iter().map(|g| if let Prim::Exchange(e) = &g.node(id).prim { Some(e) } else { None }).collect();
    let plans = plans.ok_or_else(|| format!("{id} is an exchange on some devices only"))?;
    if plans.iter().any(|p| (p.tag, &p.name) != (plans[0].tag, &plans[0].name)) {
        return Err(format!("{id} is another exchange on other devices"));
    }
    let mut out = vec![];
    for (me, plan) in plans.iter().enumerate() {
        let ty = graphs[me].ty(id);
        let size = ty.dtype.bytes();
        let elems = ty.elems().unwrap_or(0) as usize;
        let (mut to, mut seen) = (vec![0xa5; elems * size], vec![0u32; elems]);
        for peer in 0..graphs.len() as u64 {
            let from = graphs[peer as usize].node(id).operands[0];
            let shape = &graphs[peer as usize].ty(from).shape;
            let sent: Vec<&Transfer> = plans[peer as usize].sends.iter().filter(|s| s.peer == me as u64).collect();
            let received: Vec<&Transfer> = plan.receives.iter().filter(|r| r.peer == peer).collect();
            if !sent.iter().map(|s| &s.size).eq(received.iter().map(|r| &r.size)) {
                return Err(format!("{id}: device {me} does not expect what {peer} sends"));
            }
            for (s, r) in sent.iter().zip(received) {
                let bytes = cut(&values[from.0 as usize][peer as usize], shape, &ranges(s), size);
                paste(&mut to, &ty.shape, &ranges(r), size, &bytes, |i| seen[i] += 1);
            }
        }
        if seen.iter().any(|n| *n != 1) {
            return Err(format!("{id}: elements of device {me} arrive not at all or twice"));
        }
        out.push(to);
    }
    Ok(out)
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

/// A case whose graph is placed.
pub fn on_mesh(case: &Case, inputs: &[Sharding], outputs: &[Option<Sharding>]) -> Case {
    Case { graph: with_outputs(&with_inputs(&case.graph, inputs), outputs), inputs: case.inputs.clone() }
}
