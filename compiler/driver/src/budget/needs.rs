//! What a call needs, planned as it would run: memory of a device, bytes along each axis, time; and what of the program it is
//! needed for.

use super::clock::Clock;
use crate::backend::footprint::{Exchanged, Footprint};
use crate::backend::{Backend, BackendError};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use tessera_base::{Mesh, Span};
use tessera_core::budget::What;
use tessera_graph::place_buffers::lives;
use tessera_graph::recompute::{self, peak};
use tessera_ir::graph::{Graph, NodeId};
use tessera_ir::group::Partition;
use tessera_ir::prim::row;
use tessera_ops::prim::Prim;
use tessera_runtime::fault::human_bytes;
use tessera_shard::exchange::{Flow, flows};
use tessera_shard::spmd_partition::Moved;
use tessera_shard::{device_classes, layout, spmd_partition};

/// A part of what is needed.
#[derive(Clone, PartialEq, Debug)]
pub struct Part {
    /// Where the program asks for it.
    pub span: Span,
    pub argument: bool,
    /// An argument by its name, an operation by its own.
    pub what: String,
    /// Bytes, or nanoseconds.
    pub amount: u64,
    /// Of a value: where it is read last.
    pub until: Span,
    /// So many values, exchanges or kernels.
    pub count: u64,
}

/// So much of something, of the device that needs most.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Need {
    /// Bytes, or nanoseconds.
    pub amount: u64,
    pub device: u64,
    /// The largest first.
    pub parts: Vec<Part>,
    pub notes: Vec<String>,
}

/// All that a call needs.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Needs {
    pub mesh: Option<Arc<Mesh>>,
    pub memory: Need,
    /// Bytes of arguments and results alone.
    pub handed: u64,
    /// In the order of the mesh.
    pub axes: Vec<(String, Need)>,
    /// None without a clock.
    pub step: Option<Need>,
    /// Operations that are computed again to need less memory.
    pub again: usize,
}

impl Needs {
    /// What is needed of something; `None` where there is no such thing.
    pub fn of(&self, what: &What) -> Option<&Need> {
        match what {
            What::Memory => Some(&self.memory),
            What::Step => self.step.as_ref(),
            What::Axis(axis) => self.axes.iter().find(|(name, _)| **name == **axis).map(|(_, need)| need),
        }
    }
}

/// Devices whose plans are alike.
struct Alike {
    devices: Vec<u64>,
    graph: Graph,
    footprint: Footprint,
    moved: Vec<Moved>,
}

/// Plans a traced graph. With a bound on memory values are computed again, as far as it asks for that.
///
/// # Errors
/// Why it cannot be placed.
pub fn needs(
    backend: &Backend,
    clock: Option<&Clock>,
    traced: &Graph,
    bound: Option<u64>,
) -> Result<Needs, BackendError> {
    let mesh = layout::mesh(traced);
    let alike = devices(backend, traced, mesh.as_ref(), bound)?;
    let mut out = Needs { mesh: mesh.clone(), ..Needs::default() };
    let peak = |a: &Alike| a.footprint.arguments + a.footprint.outputs + a.footprint.arena;
    out.again = alike.iter().map(|a| recompute::count(&a.graph)).max().unwrap_or(0);
    if let Some(fullest) = alike.iter().rev().max_by_key(|a| peak(a)) {
        out.memory = memory(backend, fullest, peak(fullest));
        out.handed = fullest.footprint.arguments + fullest.footprint.outputs;
    }
    let mut traffic = Traffic { devices: mesh.as_ref().map_or(1, |m| m.devices()), flows: HashMap::new() };
    if let Some(mesh) = &mesh {
        out.axes = mesh.axes.iter().map(|(axis, _)| (axis.clone(), traffic.along(mesh, axis, &alike))).collect();
    }
    out.step = clock.map(|clock| step(clock, &alike, &mut traffic));
    Ok(out)
}

/// The graphs of the devices as they run, those that are alike once.
fn devices(
    backend: &Backend,
    traced: &Graph,
    mesh: Option<&Arc<Mesh>>,
    bound: Option<u64>,
) -> Result<Vec<Alike>, BackendError> {
    let alike = |devices: Vec<u64>, graph: &Graph, moved: Vec<Moved>| {
        let graph = backend.optimise(graph);
        let graph = if let Some(bound) = bound { backend.fit(graph, bound).graph } else { graph };
        let footprint = backend.footprint(&graph)?;
        Ok(Alike { devices, graph, footprint, moved })
    };
    let Some(mesh) = mesh else { return Ok(vec![alike(vec![0], traced, vec![])?]) };
    let g = spmd_partition::prepared(&tessera_graph::prune(traced), mesh);
    let placed = layout::lay_out(&g, mesh);
    let classes = device_classes::classes(&g, mesh, &placed).into_iter();
    let of_class = |devices: Vec<u64>| {
        let (graph, moved) = spmd_partition::of_device(&g, mesh, &placed, devices[0]);
        alike(devices, &graph, moved)
    };
    classes.map(of_class).collect()
}

/// Parts of one name and place together, the largest first.
fn ranked(parts: Vec<Part>) -> Vec<Part> {
    let mut out: Vec<Part> = vec![];
    for part in parts.into_iter().filter(|p| p.amount > 0) {
        match out.iter_mut().find(|p| p.span == part.span && p.what == part.what && p.until == part.until) {
            Some(same) => (same.amount, same.count) = (same.amount + part.amount, same.count + part.count),
            None => out.push(part),
        }
    }
    out.sort_by_key(|p| Reverse(p.amount));
    out
}

/// The memory of a device, with what lies there where most does.
fn memory(backend: &Backend, a: &Alike, amount: u64) -> Need {
    let (g, needs) = (&a.graph, &a.footprint);
    let part = |id: NodeId, what: String, amount: u64, until: Span| Part {
        span: g.node(id).origin.span,
        argument: false,
        what,
        amount,
        until,
        count: 1,
    };
    let size = |id: NodeId| g.ty(id).bytes().unwrap_or(u64::MAX);
    let mut parts: Vec<Part> = vec![];
    for input in g.inputs.iter().filter(|i| !i.scalar) {
        let (what, amount) = (format!("`{}`", input.name), input.ty.bytes().unwrap_or(u64::MAX));
        parts.push(Part { span: Span::NONE, argument: true, what, amount, until: Span::NONE, count: 1 });
    }
    // A result that is an argument takes nothing.
    for &id in g.outputs.iter().filter(|id| !matches!(g.node(**id).prim, Prim::Input(_))) {
        parts.push(part(id, word(g, id), size(id), Span::NONE));
    }
    let planned = backend.groups(g);
    let partition = Partition { groups: planned.iter().map(|p| p.group.clone()).collect() };
    let held = lives(g, &partition).map_or_else(Vec::new, |all| peak(&all, partition.groups.len()).1);
    let mut values = 0;
    for life in held {
        let last = partition.groups.get(life.to).and_then(|group| group.roots.first());
        values += life.bytes;
        parts.push(part(life.id, word(g, life.id), life.bytes, last.map_or(Span::NONE, |&r| g.node(r).origin.span)));
    }
    let mut notes = vec![format!(
        "arguments {}, results {}, in between {}",
        human_bytes(needs.arguments),
        human_bytes(needs.outputs),
        human_bytes(needs.arena)
    )];
    if let Some(rest) = needs.arena.checked_sub(values).filter(|n| *n > 0) {
        notes.push(format!("{} in between are what kernels and turns of loops work in", human_bytes(rest)));
    }
    Need { amount, device: a.devices[0], parts: ranked(parts), notes }
}

fn word(g: &Graph, id: NodeId) -> String {
    match &g.node(id).prim {
        Prim::Exchange(e) => match g.node(id).operands.first().and_then(|&o| argument(g, o)) {
            Some(of) => format!("{} of `{of}`", e.name),
            None => e.name.to_string(),
        },
        prim => row(prim).word().into_owned(),
    }
}

/// The argument that a value is, or is made of by itself.
fn argument(g: &Graph, id: NodeId) -> Option<&str> {
    match (&g.node(id).prim, &g.node(id).operands[..]) {
        (Prim::Input(n), _) => g.inputs.get(*n as usize).map(|i| &*i.name),
        (_, [one]) => argument(g, *one),
        _ => None,
    }
}

/// Places of the exchanges of a graph, in loops too, and what they are, by their tags.
fn places(g: &Graph, out: &mut BTreeMap<u32, (Span, String)>) {
    for id in g.ids() {
        if let Prim::Exchange(e) = &g.node(id).prim {
            out.insert(e.tag, (g.node(id).origin.span, word(g, id)));
        }
    }
    g.bodies.iter().for_each(|body| places(body, out));
}

/// What goes between devices. Equal exchanges are looked at once.
struct Traffic {
    devices: u64,
    flows: HashMap<Moved, Arc<Vec<Flow>>>,
}

impl Traffic {
    fn flows(&mut self, moved: &Moved) -> Arc<Vec<Flow>> {
        let devices = self.devices;
        let all = || {
            let [from, to] = [&moved.from, &moved.to].map(|h| h.parts(&moved.shape, devices));
            Arc::new(flows(&from, &to))
        };
        self.flows.entry(moved.clone()).or_insert_with(all).clone()
    }

    /// Calls `f` with every flow that begins or ends at one of some devices: its exchange, its tag and its bytes in a call.
    fn each(&mut self, a: &Alike, f: &mut dyn FnMut(&Exchanged, u32, Flow, u64)) {
        for e in &a.footprint.exchanges {
            for &(tag, element) in &e.tensors {
                let Some(moved) = a.moved.get((tag as usize).wrapping_sub(1)) else { continue };
                for flow in self.flows(moved).iter() {
                    f(e, tag, *flow, flow.elems * element * e.times);
                }
            }
        }
    }

    /// The bytes along an axis: those between devices at different positions of it.
    fn along(&mut self, mesh: &Mesh, axis: &str, alike: &[Alike]) -> Need {
        let crosses = |f: &Flow| mesh.coordinate(f.from, axis) != mesh.coordinate(f.to, axis);
        let mut carried = vec![[0u64; 2]; self.devices as usize];
        let own = |a: &Alike, device: u64| a.devices.binary_search(&device).is_ok();
        for a in alike {
            self.each(a, &mut |_, _, flow, bytes| {
                if crosses(&flow) {
                    carried[flow.from as usize][0] += if own(a, flow.from) { bytes } else { 0 };
                    carried[flow.to as usize][1] += if own(a, flow.to) { bytes } else { 0 };
                }
            });
        }
        let most = |device: &usize| carried[*device][0].max(carried[*device][1]);
        let Some(device) = (0..carried.len()).rev().max_by_key(most) else { return Need::default() };
        let ([sent, received], mut parts) = (carried[device], vec![]);
        for a in alike.iter().filter(|a| own(a, device as u64)) {
            let mut at = BTreeMap::new();
            places(&a.graph, &mut at);
            self.each(a, &mut |e, tag, flow, amount| {
                let here = if sent >= received { flow.from } else { flow.to };
                if crosses(&flow) && here == device as u64 {
                    let (span, what) = at.get(&tag).cloned().unwrap_or((Span::NONE, e.name.clone()));
                    parts.push(Part { span, argument: false, what, amount, until: Span::NONE, count: e.times });
                }
            });
        }
        let notes = vec![format!("device {device} sends {} and receives {}", human_bytes(sent), human_bytes(received))];
        Need { amount: sent.max(received), device: device as u64, parts: ranked(parts), notes }
    }
}

/// The time of a call: of the slowest device, or of all of them where they share a machine.
fn step(clock: &Clock, alike: &[Alike], traffic: &mut Traffic) -> Need {
    let mut by_device: Vec<(f64, Vec<Part>)> = vec![];
    for a in alike {
        let mut kernels = vec![];
        let mut seconds = 0.0;
        for w in &a.footprint.work {
            let time = w.times as f64 * clock.kernel(w);
            seconds += time;
            let (span, what, count) = (w.span, w.name.clone(), w.times);
            kernels.push(Part { span, argument: false, what, amount: nanos(time), until: Span::NONE, count });
        }
        let exchanges = exchanged(clock, a, traffic);
        for i in 0..a.devices.len() {
            let parts = exchanges.iter().map(|(span, what, count, times)| Part {
                span: *span,
                argument: false,
                what: what.clone(),
                amount: nanos(times[i]),
                until: Span::NONE,
                count: *count,
            });
            let waited: f64 = exchanges.iter().map(|(_, _, _, times)| times[i]).sum();
            by_device.push((seconds + waited, kernels.iter().cloned().chain(parts).collect()));
        }
    }
    let notes = vec![format!("predicted for {}", clock.of())];
    if clock.is_shared() {
        let amount = nanos(by_device.iter().map(|(s, _)| s).sum());
        return Need { amount, device: 0, parts: ranked(by_device.into_iter().flat_map(|(_, p)| p).collect()), notes };
    }
    // The first of those that take longest.
    let slowest = by_device.into_iter().rev().max_by(|a, b| a.0.total_cmp(&b.0));
    slowest.map_or_else(Need::default, |(s, parts)| Need { amount: nanos(s), device: 0, parts: ranked(parts), notes })
}

/// The place, the name and the runs of an exchange, and its seconds on each of some devices.
type Waited = (Span, String, u64, Vec<f64>);

fn exchanged(clock: &Clock, a: &Alike, traffic: &mut Traffic) -> Vec<Waited> {
    let (node, mut at, mut out) = (clock.node(), BTreeMap::new(), vec![]);
    places(&a.graph, &mut at);
    for e in &a.footprint.exchanges {
        let mut carried = vec![[[0u64; 2]; 2]; a.devices.len()];
        for &(tag, element) in &e.tensors {
            let Some(moved) = a.moved.get((tag as usize).wrapping_sub(1)) else { continue };
            for flow in traffic.flows(moved).iter() {
                let far = usize::from(flow.from / node != flow.to / node);
                for (way, device) in [flow.from, flow.to].into_iter().enumerate() {
                    if let Ok(i) = a.devices.binary_search(&device) {
                        carried[i][far][way] += flow.elems * element;
                    }
                }
            }
        }
        let links = |of: &[u64; 2]| of[0].max(of[1]);
        let time = |c: &[[u64; 2]; 2]| e.times as f64 * clock.exchange(&e.name, links(&c[0]), links(&c[1]));
        let first = e.tensors.first().and_then(|(tag, _)| at.get(tag)).cloned();
        let (span, what) = first.unwrap_or((Span::NONE, e.name.clone()));
        out.push((span, what, e.times, carried.iter().map(time).collect()));
    }
    out
}

fn nanos(seconds: f64) -> u64 {
    (seconds * 1e9).ceil() as u64
}
