//! The plan of a program: its regions, device by device.

use super::report::{ClassRow, ExchangeRow, RegionRow, Report};
use crate::backend::footprint::{Exchanged, Footprint, Work};
use crate::backend::{Backend, BackendError};
use crate::program::{Setup, finish, out, prepare, unit};
use crate::regions::{Executor, Outlined, Reports, SharedExecutor};
use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use tessera_base::{Code, DType, Diagnostic, Span};
use tessera_hir::source::SourceMap;
use tessera_ir::graph::Graph;
use tessera_plan::collective::Collective;
use tessera_plan::roofline;
use tessera_plan::topology::Topology;
use tessera_shard::{classes, layout, local};

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
    let mut session = tessera_host::Session::new(Box::new(std::io::sink()), false, args, setup.stack_bytes);
    session.set_dir(&path.parent().unwrap_or(Path::new("")).to_string_lossy());
    crate::interrupt::on_interrupt(session.interrupt_flag());
    tessera_runtime::outline::start();
    let program = match session.load(&ready.lowered.host) {
        Ok(p) => p,
        Err(e) => return fail(Diagnostic::new(Code::E0603, Span::NONE, e.to_string()), &ready.sources),
    };
    let (reports, pool) = (Reports::default(), setup.pool());
    let backend = Rc::new(setup.backend(pool.clone()));
    let mut executor = Executor::new(backend.clone(), pool, reports.clone());
    executor.outline();
    executor.add(unit(&session, &program, &ready));
    let executor = Rc::new(RefCell::new(executor));
    session.set_regions(Box::new(SharedExecutor(executor.clone())));
    let stop = session.run(&program);
    let code = finish(setup, stop, &ready, &reports);
    if code != 0 {
        return code;
    }
    let outlined = executor.borrow_mut().outlined();
    let rows = outlined.iter().filter(|o| o.calls > 0 && !o.graph.outputs.is_empty());
    match rows.map(|o| region(&backend, topology, o)).collect::<Result<Vec<RegionRow>, BackendError>>() {
        Ok(regions) => {
            let report = Report::new(topology, regions);
            out(&if setup.global.json { report.json() } else { report.text() });
            0
        }
        Err(e) => fail(unplaced(e), &ready.sources),
    }
}

fn unplaced(e: BackendError) -> Diagnostic {
    match e {
        BackendError::Memory(_) => Diagnostic::new(Code::E0710, Span::NONE, "a region needs more than 2^64 bytes"),
        BackendError::Unavailable(why) => Diagnostic::new(Code::E0601, Span::NONE, why),
        BackendError::Internal(why) => Diagnostic::new(Code::E0603, Span::NONE, why),
    }
}

/// One region on all devices: those that are alike once.
fn region(backend: &Backend, topology: &Topology, outlined: &Outlined) -> Result<RegionRow, BackendError> {
    let g = &outlined.graph;
    let mut row = RegionRow { name: outlined.name.clone(), calls: outlined.calls, ..RegionRow::default() };
    let Some(mesh) = layout::mesh(g) else {
        row.classes = vec![class(backend, topology, vec![0], &backend.optimise(g))?];
        return Ok(row);
    };
    row.mesh = mesh.to_string();
    let g = tessera_graph::prune(g);
    let placed = layout::lay_out(&g, &mesh);
    for alike in classes::classes(&g, &mesh, &placed) {
        let graph = backend.optimise(&local::of_device(&g, &mesh, &placed, alike[0]));
        row.classes.push(class(backend, topology, alike, &graph)?);
    }
    Ok(row)
}

fn class(backend: &Backend, topology: &Topology, devices: Vec<u64>, graph: &Graph) -> Result<ClassRow, BackendError> {
    let device = devices[0];
    let Footprint { arguments, outputs, arena, counts, work, exchanges } = backend.footprint(graph, device)?;
    let compute: f64 = work.iter().map(|w| seconds(topology, w)).sum();
    let mut rows: Vec<ExchangeRow> = vec![];
    for e in &exchanges {
        let one = exchange(topology, device, e);
        match rows.iter_mut().find(|r| r.name == one.name) {
            Some(row) => row.add(&one),
            None => rows.push(one),
        }
    }
    Ok(ClassRow {
        devices,
        arguments,
        outputs,
        arena,
        peak: arguments + outputs + arena,
        kernels: counts.kernels,
        flops: counts.flops,
        moved: counts.bytes_read + counts.bytes_written,
        compute,
        exchanged: rows.iter().map(|r| r.seconds).sum(),
        exchanges: rows,
    })
}

/// The time of a group by the roofline of the machine.
fn seconds(topology: &Topology, work: &Work) -> f64 {
    let (flops, bytes) = (work.flops as f64, work.bytes as f64);
    let (product_flops, vector_flops) = if work.product.is_some() { (flops, 0.0) } else { (0.0, flops) };
    let dtype = match work.product {
        Some(DType::F8E4M3 | DType::F8E5M2) => "fp8".into(),
        Some(d) => d.to_string(),
        None => "f32".into(),
    };
    topology.device.time(&roofline::Work { product_flops, vector_flops, bytes }, &dtype)
}

/// One exchange: its bytes, and its time by the links to near and far devices.
fn exchange(topology: &Topology, device: u64, e: &Exchanged) -> ExchangeRow {
    let node = topology.node().max(1);
    let sum = |boxes: &[(u64, u64)], near: bool| -> u64 {
        boxes.iter().filter(|(peer, _)| (peer / node == device / node) == near).map(|b| b.1).sum()
    };
    let carried = |near| sum(&e.sent, near).max(sum(&e.received, near)) as f64;
    let what = if e.name.starts_with("all_gather") { Collective::AllGather } else { Collective::AllToAll };
    ExchangeRow {
        name: e.name.clone(),
        runs: 1,
        sent: e.sent.iter().map(|b| b.1).sum(),
        received: e.received.iter().map(|b| b.1).sum(),
        seconds: topology.direct(what, carried(true), carried(false)),
    }
}
