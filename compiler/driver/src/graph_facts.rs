//! What is known of a graph, as data: its operations with their places, its kernels, what lives when, where blocks lie.

use crate::backend::{Backend, Planned, kernel_name};
use crate::choice_facts::{self, ChoiceFacts};
use crate::kernel_table::{self, KernelTable};
use crate::sum_order;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use tessera_base::{Mesh, Span};
use tessera_graph::fuse::unfused;
use tessera_graph::place_buffers::{in_place, lives, written_over};
use tessera_graph::recompute::GivenUp;
use tessera_ir::graph::{Graph, Node, NodeId, Reason};
use tessera_ir::graph_text;
use tessera_ir::group::Partition;
use tessera_ir::prim::{Site, row};
use tessera_ir::schedule::{self, Schedule};
use tessera_ops::prim::Prim;
use tessera_resolve::source::SourceMap;
use tessera_shard::layout::{self, NodeLayout};
use tessera_shard::partial_products::Weighed;
use tessera_shard::spmd_partition;

/// Of a graph on a mesh, so many values are shown with their blocks.
const VALUES_MAX: usize = 200;
/// On so many devices at most.
const DEVICES_MAX: u64 = 64;

/// A line of a source file.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Place {
    pub file: String,
    pub line: usize,
    pub column: usize,
}

impl Place {
    /// Where a span begins; `None` for what stands in no text.
    pub fn of(span: Span, sources: &SourceMap) -> Option<Place> {
        let (file, line, column) = sources.line_col(span)?;
        Some(Place { file: sources.file(file)?.path.to_string(), line, column })
    }

    /// Where calls stand, in their order.
    fn of_calls(calls: &[Span], sources: &SourceMap) -> Vec<Place> {
        calls.iter().filter_map(|call| Place::of(*call, sources)).collect()
    }
}

/// An operation.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct NodeFacts {
    pub id: u32,
    pub op: String,
    /// As the text of the graph has it.
    pub text: String,
    pub shape: Vec<u64>,
    pub dtype: String,
    /// Of a value on a mesh.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub layout: String,
    pub bytes: u64,
    /// Operations on numbers.
    #[serde(default)]
    pub flops: u64,
    /// In which order it adds up, in words; of what rounds sums.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sum: Option<String>,
    /// Of an exchange: bytes that the first device sends to others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<u64>,
    pub operands: Vec<u32>,
    /// `input`, `constant`, `exchange`, `loop`, `view` or `work`.
    pub kind: String,
    pub is_output: bool,
    /// Why it is there, where the program does not spell it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub place: Option<Place>,
    /// Where the calls stand that led to the place, outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<Place>,
    /// Of a loop, its body among the bodies of the graph.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<u32>,
}

/// Operations that are one kernel, or that run alone.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct GroupFacts {
    pub name: String,
    pub members: Vec<u32>,
    pub inputs: Vec<u32>,
    pub roots: Vec<u32>,
    /// What the scheduler chose, as the text of the schedule has it; empty of what has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub schedule: Vec<String>,
    /// What the scheduler compared for that, where it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weighed: Option<ChoiceFacts>,
    pub place: Option<Place>,
}

/// A product over a split dim: what devices send of it, and what they would send the other way.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct ProductFacts {
    pub place: Option<Place>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<Place>,
    /// The axes that split the contracted dim.
    pub axes: Vec<String>,
    /// `sums` or `operands`: what moves.
    pub moves: String,
    /// Numbers that all devices together send of the one, and would send of the other.
    pub sums: f64,
    pub operands: f64,
}

/// Which dim of a value an axis of the mesh splits, where there were several.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct SplitFacts {
    pub place: Option<Place>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<Place>,
    pub choice: ChoiceFacts,
}

/// A value that is computed again, so that less memory is needed, and what was weighed for it.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct AgainFacts {
    pub place: Option<Place>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<Place>,
    pub op: String,
    /// Operations that are computed again for it.
    pub steps: usize,
    /// Bytes that keeping it would have held where memory is fullest.
    pub saved: u64,
    /// Seconds that computing it again takes, as the compiler estimates them.
    pub seconds: f64,
}

/// A value that goes through memory from one kernel to another.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Apart {
    pub from: usize,
    pub to: usize,
    pub value: u32,
    pub why: String,
}

/// A value between kernels: the groups that make it and read it last.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct LifeFacts {
    pub value: u32,
    pub from: usize,
    pub to: usize,
    pub bytes: u64,
}

/// What a graph takes.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct MemoryFacts {
    pub arguments: u64,
    pub outputs: u64,
    /// In between, with what kernels need for themselves.
    pub arena: u64,
    pub lives: Vec<LifeFacts>,
    /// Bytes that live while each group runs, of the values between kernels.
    pub live: Vec<u64>,
}

/// A value that is computed in memory that held another.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct InPlaceFacts {
    pub value: u32,
    /// What the memory held.
    pub of: u32,
    /// The argument that it held; only where the caller gives that up. None of a value in between.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub argument: Option<String>,
}

/// An axis of a mesh.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Axis {
    pub name: String,
    pub size: u64,
}

/// A value on a mesh.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Blocks {
    pub name: String,
    pub shape: Vec<u64>,
    pub layout: String,
    pub place: Option<Place>,
    /// By device, and dim: from where to where.
    pub blocks: Vec<Vec<(u64, u64)>>,
}

/// The mesh of a graph, and where its values lie.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct MeshFacts {
    pub axes: Vec<Axis>,
    pub values: Vec<Blocks>,
    /// Values, and devices, beyond those.
    pub left_out: usize,
}

/// A graph.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct GraphFacts {
    pub name: String,
    pub nodes: Vec<NodeFacts>,
    /// In the order in which they run.
    pub groups: Vec<GroupFacts>,
    pub apart: Vec<Apart>,
    #[serde(default)]
    pub in_place: Vec<InPlaceFacts>,
    pub table: KernelTable,
    /// `None` where the sizes are beyond 64 bits.
    pub memory: Option<MemoryFacts>,
    /// Bodies of loops.
    pub bodies: Vec<GraphFacts>,
}

impl GraphFacts {
    /// The graph, and all bodies of loops in it.
    pub fn with_bodies(&self) -> Vec<&GraphFacts> {
        std::iter::once(self).chain(self.bodies.iter().flat_map(GraphFacts::with_bodies)).collect()
    }
}

/// A graph as it is run: its operations, its kernels and its memory.
pub fn of(backend: &Backend, graph: &Graph, sources: &SourceMap) -> GraphFacts {
    let planned = backend.groups(graph);
    let partition = Partition { groups: planned.iter().map(|p| p.group.clone()).collect() };
    let apart = unfused(graph, &partition);
    let body = |g: &Graph| of(backend, &tessera_graph::optimise(g), sources);
    GraphFacts {
        groups: planned.iter().map(|p| group(backend, graph, p, sources)).collect(),
        apart: apart.into_iter().map(|a| Apart { from: a.from, to: a.to, value: a.value.0, why: a.why }).collect(),
        table: kernel_table::table(graph, &planned),
        in_place: written(graph, &partition),
        memory: memory(backend, graph, &partition),
        bodies: graph.bodies.iter().map(body).collect(),
        ..nodes(graph, None, sources)
    }
}

/// A graph as it is traced: its operations alone. On a mesh with how each value lies there.
pub fn as_traced(graph: &Graph, sources: &SourceMap) -> GraphFacts {
    let bodies = graph.bodies.iter().map(|b| as_traced(b, sources)).collect();
    let Some((graph, placed)) = placed(graph) else {
        return GraphFacts { bodies, ..nodes(graph, None, sources) };
    };
    GraphFacts { bodies, ..nodes(&graph, Some(&placed), sources) }
}

/// A graph on a mesh with the layouts of its nodes.
fn placed(graph: &Graph) -> Option<(Graph, Vec<NodeLayout>)> {
    let mesh = layout::mesh(graph)?;
    let graph = spmd_partition::prepared(&tessera_graph::prune(graph), &mesh);
    let placed = layout::lay_out(&graph, &mesh);
    Some((graph, placed))
}

fn nodes(graph: &Graph, placed: Option<&[NodeLayout]>, sources: &SourceMap) -> GraphFacts {
    let outputs: BTreeSet<NodeId> = graph.outputs.iter().copied().collect();
    let node = |id: NodeId| {
        let n = graph.node(id);
        let layout = placed.and_then(|p| p.get(id.0 as usize)).map_or_else(String::new, |l| l.result.to_string());
        let op = match &n.prim {
            Prim::Input(i) => graph.inputs.get(*i as usize).map_or_else(String::new, |i| i.name.to_string()),
            Prim::Exchange(e) => e.name.to_string(),
            prim => row(prim).word().into_owned(),
        };
        let body = if let Prim::Scan { body, .. } = n.prim { Some(body) } else { None };
        NodeFacts {
            id: id.0,
            op,
            text: graph_text::line(graph, id),
            shape: n.ty.shape.clone(),
            dtype: n.ty.dtype.to_string(),
            layout,
            bytes: n.ty.bytes().unwrap_or(u64::MAX),
            flops: row(&n.prim).cost(Site { g: graph, node: n }).operations,
            sum: sum_order::of(graph, n),
            sent: sent(n),
            operands: n.operands.iter().map(|o| o.0).collect(),
            kind: kind(&n.prim).into(),
            is_output: outputs.contains(&id),
            reason: n.origin.reason.as_ref().map(reason),
            place: Place::of(n.origin.span, sources),
            calls: Place::of_calls(&n.origin.calls, sources),
            body,
        }
    };
    GraphFacts { name: graph.name.clone(), nodes: graph.ids().map(node).collect(), ..GraphFacts::default() }
}

/// Bytes that the first device, which graphs on a mesh are shown of, sends to others in an exchange.
fn sent(n: &Node) -> Option<u64> {
    let Prim::Exchange(e) = &n.prim else { return None };
    let others = e.sends.iter().filter(|t| t.peer != 0);
    Some(others.map(|t| t.size.iter().product::<u64>()).sum::<u64>().saturating_mul(n.ty.dtype.bytes() as u64))
}

/// What was weighed of the products of a traced graph; nothing on one device.
pub fn products(graph: &Graph, sources: &SourceMap) -> Vec<ProductFacts> {
    let Some(mesh) = layout::mesh(graph) else { return vec![] };
    let (_, weighed) = spmd_partition::weighed(&tessera_graph::prune(graph), &mesh);
    let product = |w: Weighed| ProductFacts {
        place: Place::of(w.span, sources),
        calls: Place::of_calls(&w.calls, sources),
        moves: if w.moves_sums() { "sums" } else { "operands" }.into(),
        axes: w.axes,
        sums: w.sums,
        operands: w.operands,
    };
    weighed.into_iter().map(product).collect()
}

/// What was weighed for the dims that axes split in a traced graph; nothing on one device.
pub fn splits(graph: &Graph, sources: &SourceMap) -> Vec<SplitFacts> {
    let (Some(mesh), Some((graph, placed))) = (layout::mesh(graph), placed(graph)) else { return vec![] };
    let split = |(g, id, choice): (&Graph, NodeId, ChoiceFacts)| {
        let origin = &g.node(id).origin;
        let (place, calls) = (Place::of(origin.span, sources), Place::of_calls(&origin.calls, sources));
        SplitFacts { place, calls, choice }
    };
    choice_facts::splits(&graph, &mesh, &placed).into_iter().map(split).collect()
}

/// What a backend computes again in the graphs that it was given.
pub fn again(backend: &Backend, sources: &SourceMap) -> Vec<AgainFacts> {
    let value = |v: GivenUp| AgainFacts {
        place: Place::of(v.span, sources),
        calls: Place::of_calls(&v.calls, sources),
        op: v.op,
        steps: v.steps,
        saved: v.saved,
        seconds: v.cost * 1e-9,
    };
    backend.given_up().into_iter().map(value).collect()
}

fn kind(prim: &Prim) -> &'static str {
    match prim {
        Prim::Input(_) => "input",
        Prim::Literal(_) | Prim::Full { .. } => "constant",
        Prim::Exchange(_) => "exchange",
        Prim::Scan { .. } => "loop",
        prim if row(prim).flags().work => "work",
        _ => "view",
    }
}

fn reason(reason: &Reason) -> String {
    match reason {
        Reason::Broadcast => "an operand of another shape".into(),
        Reason::Widen => "an operand of another element type".into(),
        Reason::WeakScalar => "a number took the element type of the tensor".into(),
        Reason::Expansion(of) => format!("part of {of}"),
        Reason::Pass(name) => format!("made by the pass {name}"),
        Reason::Derivative => "part of a derivative".into(),
        Reason::Again(_) => "computed again for a derivative".into(),
        Reason::Memory(_) => "computed again, so that less memory is needed".into(),
    }
}

fn ids(all: &[NodeId]) -> Vec<u32> {
    all.iter().map(|id| id.0).collect()
}

fn group(backend: &Backend, graph: &Graph, planned: &Planned, sources: &SourceMap) -> GroupFacts {
    let group = &planned.group;
    let name = match &graph.node(group.roots[0]).prim {
        Prim::Exchange(e) => e.name.to_string(),
        _ => kernel_name(graph, group),
    };
    let [members, inputs, roots] = [&group.members, &group.inputs, &group.roots].map(|v| ids(v));
    let schedule = planned.schedule.as_ref().map(directives).unwrap_or_default();
    let weighed = planned.schedule.as_ref().and_then(|s| backend.weighed(s)).map(ChoiceFacts::of_schedule);
    GroupFacts {
        name,
        members,
        inputs,
        roots,
        schedule,
        weighed,
        place: Place::of(graph.node(group.roots[0]).origin.span, sources),
    }
}

/// `vectorize axis="i1", lanes=8`: the directives of a schedule, without the words around them.
fn directives(schedule: &Schedule) -> Vec<String> {
    let text = schedule::text::print(schedule);
    let own = text.split_once("\n}, {\n").map_or("", |(_, directives)| directives);
    let line = |l: &str| {
        let (name, rest) = l.trim().strip_prefix("\"tessera.schedule.")?.split_once("\"()")?;
        Some(format!("{name} {}", rest.trim().trim_matches(['{', '}'])).trim().to_owned())
    };
    own.lines().filter_map(line).collect()
}

fn memory(backend: &Backend, graph: &Graph, partition: &Partition) -> Option<MemoryFacts> {
    let needs = backend.footprint(graph).ok()?;
    let lives = lives(graph, partition)?;
    let live = |at: usize| {
        let here = lives.iter().filter(|l| l.from <= at && at <= l.to);
        here.fold(0u64, |sum, l| sum.saturating_add(l.bytes))
    };
    Some(MemoryFacts {
        arguments: needs.arguments,
        outputs: needs.outputs,
        arena: needs.arena,
        live: (0..partition.groups.len()).map(live).collect(),
        lives: lives.iter().map(|l| LifeFacts { value: l.id.0, from: l.from, to: l.to, bytes: l.bytes }).collect(),
    })
}

/// What is computed in the memory of something else.
fn written(graph: &Graph, partition: &Partition) -> Vec<InPlaceFacts> {
    let input = |i: u32| graph.ids().find(|id| matches!(graph.node(*id).prim, Prim::Input(at) if at == i));
    let result = |r: tessera_graph::place_buffers::InPlace| {
        let (value, of) = (*graph.outputs.get(r.output as usize)?, input(r.input)?);
        let argument = graph.inputs.get(r.input as usize)?.name.to_string();
        Some(InPlaceFacts { value: value.0, of: of.0, argument: Some(argument) })
    };
    let between = written_over(graph, partition).into_iter();
    let between = between.map(|(value, of)| InPlaceFacts { value: value.0, of: of.0, argument: None });
    in_place(graph, partition).into_iter().filter_map(result).chain(between).collect()
}

/// The mesh of a traced graph with the blocks of its inputs, results, products and conversions; `None` on one device.
pub fn mesh(graph: &Graph, sources: &SourceMap) -> Option<MeshFacts> {
    let mesh: std::sync::Arc<Mesh> = layout::mesh(graph)?;
    let axes = mesh.axes.iter().map(|(name, size)| Axis { name: name.clone(), size: *size }).collect();
    if mesh.devices() > DEVICES_MAX {
        return Some(MeshFacts { axes, values: vec![], left_out: graph.nodes.len() });
    }
    let (graph, placed) = placed(graph)?;
    let outputs: BTreeSet<NodeId> = graph.outputs.iter().copied().collect();
    let is_shown = |id: &NodeId| {
        let prim = &graph.node(*id).prim;
        let is_tensor = |i: u32| graph.inputs.get(i as usize).is_some_and(|i| !i.scalar);
        match prim {
            Prim::Input(i) => is_tensor(*i),
            prim => outputs.contains(id) || matches!(prim, Prim::Layout | Prim::Dot { .. }),
        }
    };
    let all: Vec<NodeId> = graph.ids().filter(is_shown).collect();
    let value = |&id: &NodeId| {
        let n = graph.node(id);
        let held = placed[id.0 as usize].held();
        let name = match &n.prim {
            Prim::Input(i) => graph.inputs[*i as usize].name.to_string(),
            prim => format!("{id} {}", row(prim).word()),
        };
        let parts = held.parts(&n.ty.shape, mesh.devices());
        let blocks = parts.into_iter().map(|b| b.into_iter().map(|r| (r.start, r.end)).collect()).collect();
        let layout = placed[id.0 as usize].result.to_string();
        Blocks { name, shape: n.ty.shape.clone(), layout, place: Place::of(n.origin.span, sources), blocks }
    };
    let values: Vec<Blocks> = all.iter().take(VALUES_MAX).map(value).collect();
    Some(MeshFacts { axes, left_out: all.len() - values.len(), values })
}
