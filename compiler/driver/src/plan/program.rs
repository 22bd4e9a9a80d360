//! The plan of a program: its regions, device by device.

use super::report::{ClassRow, ExchangeRow, RegionRow, Report};
use crate::ask;
use crate::backend::footprint::{Exchanged, Footprint};
use crate::backend::{Backend, BackendError};
use crate::budget::clock::{collective, seconds};
use crate::budget::{self, On};
use crate::cli::OfFunction;
use crate::program::{Setup, finish, out, prepare, unit};
use crate::regions::{DryRegion, Executor, Reports, SharedExecutor};
use std::cell::RefCell;
use std::collections::HashMap;
use std::path::Path;
use std::rc::Rc;
use tessera_base::{Code, Diagnostic, Span};
use tessera_ir::graph::Graph;
use tessera_plan::topology::Topology;
use tessera_resolve::source::SourceMap;
use tessera_runtime::fault::human_bytes;
use tessera_shard::split_leaves::{SplitLeaf, split_leaves};
use tessera_shard::spmd_partition::Moved;
use tessera_shard::{device_classes, exchange, layout, spmd_partition};

/// Beyond so many devices the exchanges between all of them take too long to follow.
const DEVICES_MAX: u64 = 4096;

/// Follows a program and shows what it needs; returns the exit code.
pub fn plan(setup: &Setup, path: &Path, topology: &Topology, args: Vec<String>) -> u8 {
    let fail = |d: Diagnostic, sources: &SourceMap| {
        setup.show(&[d], sources);
        1
    };
    let loaded = match crate::files::read_source(path) {
        Ok(l) => l,
        Err(d) => return fail(d, &SourceMap::default()),
    };
    let Some(ready) = prepare(setup, &loaded) else { return 1 };
    let wrong = budget::check(setup, &ready.program, &ready.sources, On::Planned(topology));
    setup.show(&wrong, &ready.sources);
    if wrong.iter().any(Diagnostic::is_error) {
        return 1;
    }
    let mut session = tessera_host::Session::new(Box::new(std::io::sink()), false, args, setup.stack_bytes);
    session.set_dir(&path.parent().unwrap_or(Path::new("")).to_string_lossy());
    crate::interrupt::on_interrupt(session.interrupt_flag());
    tessera_runtime::dry_run::start();
    let program = match session.load(&ready.lowered.host) {
        Ok(p) => p,
        Err(e) => return fail(Diagnostic::new(Code::E0603, Span::NONE, e.to_string()), &ready.sources),
    };
    let (reports, pool) = (Reports::default(), setup.pool());
    let backend = Rc::new(setup.backend(pool.clone()));
    let mut executor = Executor::new(backend.clone(), pool, reports.clone());
    executor.start_dry_run();
    executor.add(unit(&session, &program, &ready));
    let executor = Rc::new(RefCell::new(executor));
    session.set_regions(Box::new(SharedExecutor(executor.clone())));
    let stop = session.run(&program);
    let code = finish(setup, stop, &ready, &reports);
    if code != 0 {
        return code;
    }
    let dry = executor.borrow_mut().dry_regions();
    let rows = dry.iter().filter(|o| o.calls > 0 && !o.graph.outputs.is_empty());
    if let Some(mesh) = &setup.global.mesh
        && !dry.iter().any(|o| layout::mesh(&o.graph).is_some_and(|m| *m == *mesh))
    {
        eprintln!("error[E0602]: nothing of the program lies on a mesh with the axes {}", mesh.names().join(", "));
        return 1;
    }
    shown(setup, &backend, topology, rows, &ready.sources, vec![])
}

/// Shows what one call of a function needs; returns the exit code.
pub fn function(setup: &Setup, path: &Path, topology: &Topology, name: &str, of: &OfFunction) -> u8 {
    let loaded = match crate::files::read_source(path) {
        Ok(l) => l,
        Err(d) => {
            setup.show(&[d], &SourceMap::default());
            return 1;
        }
    };
    let Some(asked) = ask::find(setup, &loaded, name) else { return 1 };
    match asked.call(setup, of) {
        Ok(called) => {
            let backend = setup.backend(setup.pool());
            let one = DryRegion { name: asked.function.name.to_string(), graph: called.graph, calls: 1 };
            shown(setup, &backend, topology, std::iter::once(&one), &asked.sources, called.notes)
        }
        Err(found) => asked.refused(setup, &found),
    }
}

/// Shows what regions need; returns the exit code.
fn shown<'a>(
    setup: &Setup,
    backend: &Backend,
    topology: &Topology,
    regions: impl Iterator<Item = &'a DryRegion>,
    sources: &SourceMap,
    notes: Vec<String>,
) -> u8 {
    let regions: Vec<&DryRegion> = regions.collect();
    let devices = |o: &DryRegion| layout::mesh(&o.graph).map_or(1, |m| m.devices());
    if regions.iter().any(|o| devices(o) > DEVICES_MAX) {
        eprintln!("error[E0602]: a plan follows programs on up to {DEVICES_MAX} devices");
        return 2;
    }
    match regions
        .into_iter()
        .map(|o| region(backend, topology, o, sources))
        .collect::<Result<Vec<RegionRow>, BackendError>>()
    {
        Ok(regions) => {
            let report = Report { notes, ..Report::new(topology, regions) };
            out(&if setup.global.json { report.json() } else { report.text() });
            0
        }
        Err(e) => {
            setup.show(&[unplaced(e)], sources);
            1
        }
    }
}

fn unplaced(e: BackendError) -> Diagnostic {
    match e {
        BackendError::Memory(_) => Diagnostic::new(Code::E0710, Span::NONE, "a region needs more than 2^64 bytes"),
        BackendError::Unavailable(why) => Diagnostic::new(Code::E0601, Span::NONE, why),
        BackendError::Interrupted => Diagnostic::new(Code::E0713, Span::NONE, "interrupted"),
        BackendError::Internal(why) => Diagnostic::new(Code::E0603, Span::NONE, why),
    }
}

/// One region on all devices: what is alike is placed once.
fn region(
    backend: &Backend,
    topology: &Topology,
    dry: &DryRegion,
    sources: &SourceMap,
) -> Result<RegionRow, BackendError> {
    let g = &dry.graph;
    let mut row = RegionRow { name: dry.name.clone(), calls: dry.calls, ..RegionRow::default() };
    let Some(mesh) = layout::mesh(g) else {
        let footprint = backend.footprint(&bounded(backend, backend.optimise(g)))?;
        row.classes.push(class(topology, vec![0], &footprint, vec![]));
        return Ok(row);
    };
    row.mesh = mesh.to_string();
    let g = spmd_partition::prepared(&tessera_graph::prune(g), &mesh);
    let placed = layout::lay_out(&g, &mesh);
    row.notes = split_leaves(&g, &mesh, &placed).iter().map(|s| inside_a_leaf(s, sources)).collect();
    let mut traffic = Traffic { topology, devices: mesh.devices(), flows: HashMap::new() };
    for alike in device_classes::classes(&g, &mesh, &placed) {
        let (graph, moved) = spmd_partition::of_device(&g, &mesh, &placed, alike[0]);
        let graph = bounded(backend, backend.optimise(&graph));
        let footprint = backend.footprint(&graph)?;
        // Devices that need the same memory may still send different bytes.
        let mut by_exchanges: Vec<(Vec<ExchangeRow>, Vec<u64>)> = vec![];
        for (device, rows) in traffic.rows(&footprint.exchanges, &moved, &alike) {
            match by_exchanges.iter_mut().find(|(r, _)| *r == rows) {
                Some((_, devices)) => devices.push(device),
                None => by_exchanges.push((rows, vec![device])),
            }
        }
        row.classes.extend(by_exchanges.into_iter().map(|(rows, devices)| class(topology, devices, &footprint, rows)));
    }
    row.classes.sort_by(|a, b| a.devices.cmp(&b.devices));
    Ok(row)
}

/// What a product over a split dim sends more than it has to, and why.
fn inside_a_leaf(s: &SplitLeaf, sources: &SourceMap) -> String {
    let place = sources.line_col(s.span).map_or(String::new(), |(file, line, _)| {
        let path = sources.file(file).map_or("", |f| &f.path);
        format!("{}:{line}: ", path.rsplit('/').next().unwrap_or(path))
    });
    let unit = s.parts * s.leaf;
    let (moved, ideal) = (human_bytes(s.moved), human_bytes(s.ideal));
    format!(
        "{place}operands of a product move, {moved} from each device: {} positions in {} parts end inside a leaf of {} \
         (of a multiple of {unit} positions only sums would move, {ideal})",
        s.depth, s.parts, s.leaf
    )
}

/// The graph within what `--memory` allows, or as near to it as it comes.
fn bounded(backend: &Backend, graph: Graph) -> Graph {
    match backend.memory() {
        Some(bound) => backend.fit(graph, bound).graph,
        None => graph,
    }
}

fn class(topology: &Topology, devices: Vec<u64>, footprint: &Footprint, exchanges: Vec<ExchangeRow>) -> ClassRow {
    let &Footprint { arguments, outputs, arena, counts, .. } = footprint;
    ClassRow {
        devices,
        arguments,
        outputs,
        arena,
        peak: arguments + outputs + arena,
        kernels: counts.kernels,
        flops: counts.flops,
        moved: counts.bytes_read + counts.bytes_written,
        compute: footprint.work.iter().map(|w| w.times as f64 * seconds(topology, w)).sum(),
        exchanged: exchanges.iter().map(|r| r.seconds).sum(),
        exchanges,
    }
}

/// Elements, or bytes, that a device sends to and receives from devices of its node, and others.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Carried {
    sent: [u64; 2],
    received: [u64; 2],
}

impl Carried {
    /// Adds elements of so many bytes.
    fn add(&mut self, other: &Carried, element: u64) {
        let add = |sum: &mut [u64; 2], more: [u64; 2]| (0..2).for_each(|i| sum[i] += more[i] * element);
        add(&mut self.sent, other.sent);
        add(&mut self.received, other.received);
    }
}

/// What the exchanges of a mesh carry. Equal ones, of which a model of many layers has many, are looked at once.
struct Traffic<'a> {
    topology: &'a Topology,
    devices: u64,
    flows: HashMap<Moved, Vec<Carried>>,
}

impl Traffic<'_> {
    fn carried(&mut self, moved: &Moved) -> &[Carried] {
        let (devices, node) = (self.devices, self.topology.node().max(1));
        self.flows.entry(moved.clone()).or_insert_with(|| {
            let [from, to] = [&moved.from, &moved.to].map(|h| h.parts(&moved.shape, devices));
            let mut out = vec![Carried::default(); devices as usize];
            for flow in exchange::flows(&from, &to) {
                let far = usize::from(flow.from / node != flow.to / node);
                out[flow.from as usize].sent[far] += flow.elems;
                out[flow.to as usize].received[far] += flow.elems;
            }
            out
        })
    }

    /// The exchanges of each device by name, in the order of the first of each.
    fn rows(&mut self, exchanges: &[Exchanged], moved: &[Moved], devices: &[u64]) -> Vec<(u64, Vec<ExchangeRow>)> {
        let mut equal: Vec<(&str, Vec<(&Moved, u64)>, u64)> = vec![];
        let mut at = HashMap::new();
        for e in exchanges {
            let of = |(tag, element): &(u32, u64)| Some((moved.get((*tag as usize).wrapping_sub(1))?, *element));
            let tensors: Vec<(&Moved, u64)> = e.tensors.iter().filter_map(of).collect();
            let place = *at.entry((&e.name, tensors.clone())).or_insert(equal.len());
            match equal.get_mut(place) {
                Some(found) => found.2 += e.times,
                None => equal.push((&e.name, tensors, e.times)),
            }
        }
        let mut out: Vec<(u64, Vec<ExchangeRow>)> = devices.iter().map(|&d| (d, vec![])).collect();
        for (name, tensors, runs) in equal {
            let mut bytes = vec![Carried::default(); devices.len()];
            for (m, element) in tensors {
                let carried = self.carried(m);
                bytes.iter_mut().zip(devices).for_each(|(sum, &d)| sum.add(&carried[d as usize], element));
            }
            for ((_, rows), bytes) in out.iter_mut().zip(&bytes) {
                let row = row(self.topology, name, bytes, runs);
                match rows.iter_mut().find(|r| r.name == row.name) {
                    Some(found) => found.add(&row),
                    None => rows.push(row),
                }
            }
        }
        out
    }
}

/// Equal exchanges of one device, of so many bytes each: what they move, and the time by the links to near and far
/// devices.
fn row(topology: &Topology, name: &str, bytes: &Carried, runs: u64) -> ExchangeRow {
    let links = |far: usize| bytes.sent[far].max(bytes.received[far]) as f64;
    ExchangeRow {
        name: name.into(),
        runs,
        sent: runs * (bytes.sent[0] + bytes.sent[1]),
        received: runs * (bytes.received[0] + bytes.received[1]),
        seconds: runs as f64 * topology.direct(collective(name), links(0), links(1)),
    }
}
