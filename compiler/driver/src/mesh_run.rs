//! Running a graph on the devices of a mesh: one plan and one thread for each.

use crate::backend::meetings::{in_order, tags};
use crate::backend::{Backend, BackendError};
use std::cell::RefCell;
use std::sync::{Arc, Mutex, PoisonError};
use tessera_abi::plan::Plan;
use tessera_ir::graph::Graph;
use tessera_runtime::execute::{Argument, PlanError, Workspace, execute};
use tessera_runtime::mesh::here::Hub;
use tessera_runtime::mesh::{Engine, STOPPED, as_device};
use tessera_runtime::pool::Pool;
use tessera_runtime::tensor::{Parts, Tensor};
use tessera_shard::layout;
use tessera_shard::local::{Outcome, divide};

/// Devices of a mesh that runs in one process: each is a thread.
pub const DEVICES_MAX: u64 = 1024;

/// Why a call on a mesh stopped.
pub enum MeshError {
    /// The mesh has so many devices.
    Devices(u64),
    Plan(PlanError),
    Backend(BackendError),
}

/// One specialisation of a region on a mesh.
pub struct MeshRun {
    graphs: Vec<Graph>,
    outcomes: Vec<Outcome>,
    /// The shapes of the outputs as the program sees them.
    shapes: Vec<Vec<u64>>,
    /// Devices of the mesh, of which no graphs are made where there are too many.
    count: u64,
    devices: RefCell<Option<Vec<Mutex<Device>>>>,
}

/// What a device keeps from call to call.
struct Device {
    plan: Plan,
    work: Workspace,
    pool: Pool,
}

/// A device with its number and arguments.
type Job<'a> = (usize, (&'a Mutex<Device>, Vec<Argument>));

impl MeshRun {
    /// The graphs of the devices; `None` where no tensor lies on a mesh.
    pub fn of(g: &Graph, backend: &Backend) -> Option<MeshRun> {
        let mesh = layout::mesh(g)?;
        let count = mesh.devices();
        let graph = if count > DEVICES_MAX { Graph::default() } else { tessera_graph::prune(g) };
        let devices = divide(&graph, &mesh);
        Some(MeshRun {
            graphs: devices.graphs.iter().map(|g| backend.optimise(g)).collect(),
            outcomes: devices.outcomes,
            shapes: g.outputs.iter().map(|&o| g.ty(o).shape.clone()).collect(),
            count,
            devices: RefCell::new(None),
        })
    }

    /// What the first device runs.
    pub fn first(&self) -> Option<&Graph> {
        self.graphs.first()
    }

    fn plans(&self, backend: &Backend, threads: usize) -> Result<Vec<Mutex<Device>>, BackendError> {
        let each = (threads / self.graphs.len().max(1)).max(1);
        let mut out = vec![];
        let first = self.graphs.first().map(tags).unwrap_or_default();
        for g in &self.graphs {
            let plan = backend.plan(g)?;
            if tags(g) != first || !in_order(g, &plan) {
                return Err(BackendError::Internal("the exchanges of a mesh lost their order".into()));
            }
            out.push(Mutex::new(Device { plan, work: Workspace::default(), pool: backend.pool().another(each) }));
        }
        Ok(out)
    }

    /// Runs all devices, each on a thread of its own.
    pub fn run(&self, backend: &Backend, threads: usize, args: Vec<Argument>) -> Result<Vec<Tensor>, MeshError> {
        if self.count > DEVICES_MAX {
            return Err(MeshError::Devices(self.count));
        }
        if self.devices.borrow().is_none() {
            *self.devices.borrow_mut() = Some(self.plans(backend, threads).map_err(MeshError::Backend)?);
        }
        let held = self.devices.borrow();
        let devices = held.as_deref().unwrap_or(&[]);
        let engine: Arc<dyn Engine> = Hub::new(0..devices.len());
        let args = by_device(args, devices.len());
        let run = |(i, (device, args)): Job| {
            let ends = Ends(&*engine);
            let Device { plan, work, pool } = &mut *device.lock().unwrap_or_else(PoisonError::into_inner);
            let result = as_device(&engine, i, || execute(plan, args, pool, work));
            if result.is_ok() {
                std::mem::forget(ends);
            }
            result
        };
        let run = &run;
        let results = std::thread::scope(|scope| {
            let mut jobs = devices.iter().zip(args).enumerate();
            let first = jobs.next();
            let start = |job| {
                let started = std::thread::Builder::new().spawn_scoped(scope, move || run(job));
                // The devices that have started must not wait for this one.
                started.inspect_err(|_| engine.fail())
            };
            let others: Vec<_> = jobs.map(start).collect();
            let mut all: Vec<_> = first.map(run).into_iter().collect();
            all.extend(others.into_iter().map(|started| match started {
                Ok(thread) => thread.join().unwrap_or_else(|_| Err(stopped("a device stopped"))),
                Err(e) => Err(stopped(&format!("the system gives no thread for a device: {e}"))),
            }));
            all
        });
        self.together(results).map_err(MeshError::Plan)
    }

    /// Results of the devices as tensors of the program.
    fn together(&self, results: Vec<Result<Vec<Tensor>, PlanError>>) -> Result<Vec<Tensor>, PlanError> {
        let waited = |e: &PlanError| matches!(e, PlanError::Step { message, .. } if message == STOPPED);
        let mut parts: Vec<Vec<Tensor>> = vec![];
        let mut stopped = None;
        for r in results {
            match r {
                Ok(tensors) => parts.push(tensors),
                Err(e) if stopped.is_none() || stopped.as_ref().is_some_and(waited) => stopped = Some(e),
                Err(_) => {}
            }
        }
        if let Some(e) = stopped {
            return Err(e);
        }
        let mut out = vec![];
        for (i, outcome) in self.outcomes.iter().enumerate() {
            let mine = || parts.iter().filter_map(|p| p.get(i).cloned());
            let Some(first) = mine().next() else { continue };
            out.push(match outcome {
                Outcome::Plain => first,
                Outcome::Parts(layout) => {
                    let held = Parts { layout: layout.clone(), parts: mine().collect() };
                    Tensor::in_parts(&first, self.shapes[i].clone(), held)?
                }
            });
        }
        Ok(out)
    }
}

fn stopped(message: &str) -> PlanError {
    PlanError::Step { message: message.into(), origin: Default::default() }
}

/// Ends the waiting of the other devices where one does not come to its end, be it by a panic.
struct Ends<'a>(&'a dyn Engine);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.fail();
    }
}

/// The arguments of each device: its parts, and what is whole. What only the caller held, each
/// device may write over.
fn by_device(args: Vec<Argument>, devices: usize) -> Vec<Vec<Argument>> {
    let mut out: Vec<Vec<Argument>> = vec![vec![]; devices];
    for arg in args {
        match arg {
            Argument::Tensor(Tensor { parts: Some(parts), .. }) => {
                let parts = Arc::try_unwrap(parts).unwrap_or_else(|shared| Parts::clone(&shared));
                out.iter_mut().zip(parts.parts).for_each(|(args, part)| args.push(Argument::Tensor(part)));
            }
            whole => out.iter_mut().for_each(|args| args.push(whole.clone())),
        }
    }
    out
}
