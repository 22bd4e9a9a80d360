//! Running a graph on the devices of a mesh: one plan and one thread for each.

use crate::backend::exchanges::{exchanges_match, in_order};
use crate::backend::memory_limit::Shortage;
use crate::backend::{Backend, BackendError};
use std::cell::RefCell;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tessera_abi::plan::{Plan, StepOrigin, Stop};
use tessera_base::Mesh;
use tessera_ir::graph::{Graph, NodeType};
use tessera_ops::prim::Prim;
use tessera_runtime::device::Device;
use tessera_runtime::execute::{Argument, PlanError, Workspace, execute};
use tessera_runtime::fault::Fault;
use tessera_runtime::memory;
use tessera_runtime::mesh::message_passing::Between;
use tessera_runtime::mesh::shared_memory::Hub;
use tessera_runtime::mesh::{Engine, STOPPED, as_device};
use tessera_runtime::pool::Pool;
use tessera_runtime::profile::stage;
use tessera_runtime::tensor::{Parts, Tensor};
use tessera_runtime::world::step::What;
use tessera_runtime::world::{self, World};
use tessera_shard::layout;
use tessera_shard::spmd_partition::{Outcome, divide_some};

/// Devices of a mesh that runs in one process: each is a thread.
pub const DEVICES_MAX: u64 = 1024;

/// From so many on, the devices of a process are there to try a program, and not to be fast.
const DEVICES_MANY: usize = 128;

/// Why a call on a mesh stopped.
pub enum MeshError {
    /// The mesh has so many devices.
    Devices(u64),
    Plan(PlanError),
    Backend(BackendError),
    /// The processes of the run do not go on; where in a region that was, if it was in one.
    World(Fault, Option<StepOrigin>),
}

/// One specialisation of a region on a mesh.
pub struct MeshRun {
    /// Of the devices of this process; none where there are too many.
    graphs: Vec<Graph>,
    mine: Range<usize>,
    outcomes: Vec<Outcome>,
    /// The outputs as the program sees them.
    types: Vec<NodeType>,
    /// Devices of the mesh.
    count: u64,
    /// Of what the devices do together, for processes to compare.
    hash: u64,
    devices: RefCell<Option<Vec<Mutex<MeshDevice>>>>,
    /// The first device whose graph needs more memory than a device may take.
    shortage: Option<(usize, Shortage)>,
    /// The mesh, and the bytes that the devices here send along its axes in a call; where the processes are on several nodes.
    along: Option<(Arc<Mesh>, Vec<u64>)>,
}

/// What a device of the mesh keeps from call to call.
struct MeshDevice {
    plan: Plan,
    work: Workspace,
    device: Arc<dyn Device>,
}

/// A device with its number and arguments.
type Job<'a> = (usize, (&'a Mutex<MeshDevice>, Vec<Argument>));

/// What a device gives.
type Outputs = Result<Vec<Tensor>, PlanError>;

fn taken<'a>(job: &Mutex<Option<Job<'a>>>) -> Option<Job<'a>> {
    job.lock().unwrap_or_else(PoisonError::into_inner).take()
}

impl MeshRun {
    /// The graphs of the devices; `None` where no tensor lies on a mesh.
    pub fn of(g: &Graph, backend: &Backend) -> Option<MeshRun> {
        let mesh = layout::mesh(g)?;
        let count = mesh.devices();
        let mine = world::mine(count as usize);
        let graph = if too_many(&mine, count) { Graph::default() } else { tessera_graph::prune(g) };
        let devices = divide_some(&graph, &mesh, mine.start as u64..mine.end as u64);
        let hash = world::world().map(|_| world::hash(&[graph.to_string().as_bytes()]));
        let (mut graphs, mut shortage) = (vec![], None);
        for g in &devices.graphs {
            let mut graph = backend.optimise(g);
            if let Some(bound) = backend.memory() {
                let fit = backend.fit(graph, bound);
                graph = fit.graph;
                shortage = shortage.or(fit.shortage.map(|s| (graphs.len(), s)));
            }
            graphs.push(graph);
        }
        let along = world::world().filter(|w| w.nodes().count() > 1).map(|w| {
            if w.note_mesh(&mesh) && backend.options().verbose {
                eprintln!("{}", w.describe(&mesh));
            }
            let mut sums = vec![0; mesh.axes.len()];
            (mine.start as u64..).zip(&graphs).for_each(|(me, g)| add_moved(g, &mesh, me, 1, &mut sums));
            (mesh, sums)
        });
        Some(MeshRun {
            graphs,
            mine,
            along,
            shortage,
            outcomes: devices.outcomes,
            types: g.outputs.iter().map(|&o| g.ty(o).clone()).collect(),
            count,
            hash: hash.unwrap_or_default(),
            devices: RefCell::new(None),
        })
    }

    /// The graph of the first device that needs more memory than it may take.
    pub fn short(&self) -> Option<(&Graph, &Shortage)> {
        let (device, shortage) = self.shortage.as_ref()?;
        Some((self.graphs.get(*device)?, shortage))
    }

    /// What the first device runs.
    pub fn first(&self) -> Option<&Graph> {
        self.graphs.first()
    }

    fn plan(&self, backend: &Backend, threads: usize) -> Result<(), BackendError> {
        *self.devices.borrow_mut() = Some(self.plans(backend, threads)?);
        Ok(())
    }

    fn plans(&self, backend: &Backend, threads: usize) -> Result<Vec<Mutex<MeshDevice>>, BackendError> {
        let each = (threads / self.graphs.len().max(1)).max(1);
        if self.graphs.len() >= DEVICES_MANY {
            memory::expect_many_threads();
        }
        let mut out = vec![];
        let agree = exchanges_match(&self.graphs, self.mine.start);
        let with_pools = self.graphs.iter().map(|g| (g, Arc::new(backend.pool().another(each))));
        let with_pools: Vec<(&Graph, Arc<Pool>)> = with_pools.collect();
        let plans = backend.plan_each(&with_pools)?;
        for ((g, pool), plan) in with_pools.into_iter().zip(plans) {
            if !agree || !in_order(g, &plan) {
                return Err(BackendError::Internal("the exchanges of a mesh lost their order".into()));
            }
            let device = backend.target().device(&pool);
            out.push(Mutex::new(MeshDevice { plan, work: Workspace::default(), device }));
        }
        Ok(out)
    }

    /// Runs all devices, each on a thread of its own; of several processes each runs some.
    pub fn run(&self, backend: &Backend, threads: usize, args: Vec<Argument>) -> Result<Vec<Tensor>, MeshError> {
        if too_many(&self.mine, self.count) {
            return Err(MeshError::Devices(self.count));
        }
        let planned = self.devices.borrow().is_some();
        let ready = match planned {
            true => Ok(()),
            false => {
                let _planning = stage("planning kernels");
                self.plan(backend, threads)
            }
        };
        let Some(world) = world::world() else {
            ready.map_err(MeshError::Backend)?;
            let results = self.run_mine(backend.pool(), Hub::new(self.mine.clone()), args);
            return self.together(results).map_err(MeshError::Plan);
        };
        let called = world.agree(What::Call, self.hash ^ hash_of(&args), ready.is_err(), 0);
        ready.map_err(MeshError::Backend)?;
        called.map_err(|f| MeshError::World(f, None))?;
        if let Some((mesh, bytes)) = &self.along {
            world.moved(mesh, bytes);
        }
        let engine = Between::new(world, self.mine.clone(), self.count as usize);
        let outcome = self.together(self.run_mine(backend.pool(), engine, args));
        self.agreed(world, outcome)
    }

    /// What this process has of the outputs, once all processes have come to the end of the call, with
    /// what only the first device has.
    fn agreed(&self, world: &World, outcome: Result<Vec<Tensor>, PlanError>) -> Result<Vec<Tensor>, MeshError> {
        let failed = outcome.as_ref().is_err_and(|e| !waited(e));
        let text = outcome.as_ref().err().map(|e| format!("{e:?}")).unwrap_or_default();
        let called = world.agree(What::Called, world::hash(&[text.as_bytes()]), failed, 0);
        let mut outputs = match (outcome, called) {
            (Err(PlanError::Step(stop)), Err(fault)) if !failed || fault.code != world::ELSEWHERE => {
                return Err(MeshError::World(fault, stop.origin));
            }
            (Ok(_), Err(fault)) => return Err(MeshError::World(fault, None)),
            (outcome, _) => outcome.map_err(MeshError::Plan)?,
        };
        let plain = || self.outcomes.iter().zip(&self.types).filter(|(o, _)| **o == Outcome::Plain).map(|(_, t)| t);
        let bytes: u64 = plain().filter_map(NodeType::bytes).sum();
        let lost = |f| MeshError::World(f, None);
        if world.rank() == 0 {
            let mut all = Vec::with_capacity(bytes as usize);
            let of_first = outputs.iter().filter(|t| t.parts.is_none());
            for t in of_first {
                all.extend_from_slice(t.host().map_err(lost)?);
            }
            world.from_first(all).map_err(lost)?;
            return Ok(outputs);
        }
        let all = world.from_first(vec![0; bytes as usize]).map_err(lost)?;
        let mut rest = &all[..];
        for (out, ty) in outputs.iter_mut().zip(&self.types).filter(|(out, _)| out.parts.is_none()) {
            let (own, after) = rest.split_at_checked(ty.bytes().unwrap_or(0) as usize).unwrap_or((rest, &[]));
            rest = after;
            *out = Tensor::from_bytes(ty.dtype, &ty.shape, own).map_err(|e| MeshError::Plan(e.into()))?;
        }
        Ok(outputs)
    }

    /// Runs the devices of this process, on threads of `pool` where it has as many.
    fn run_mine(&self, pool: &Pool, engine: Arc<dyn Engine>, args: Vec<Argument>) -> Vec<Outputs> {
        let held = self.devices.borrow();
        let devices = held.as_deref().unwrap_or(&[]);
        let (args, start) = (by_device(args, devices.len()), self.mine.start);
        let run = |(i, (device, args)): Job| -> Outputs {
            let ends = Ends(&*engine);
            let MeshDevice { plan, work, device } = &mut *device.lock().unwrap_or_else(PoisonError::into_inner);
            let result = as_device(&engine, start + i, || execute(plan, args, &**device, work));
            if result.is_ok() {
                std::mem::forget(ends);
            }
            result
        };
        let run = &run;
        let jobs: Vec<Mutex<Option<Job>>> = devices.iter().zip(args).enumerate().map(|j| Mutex::new(Some(j))).collect();
        let results: Vec<OnceLock<Outputs>> = jobs.iter().map(|_| OnceLock::new()).collect();
        let at_once = pool.at_once(jobs.len(), &|i| {
            if let Some(job) = taken(&jobs[i]) {
                let result = catch_unwind(AssertUnwindSafe(|| run(job)));
                results[i].get_or_init(|| result.unwrap_or_else(|_| Err(stopped("a device stopped"))));
            }
        });
        if at_once {
            return results.into_iter().filter_map(OnceLock::into_inner).collect();
        }
        std::thread::scope(|scope| {
            let mut jobs = jobs.iter().filter_map(taken);
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
        })
    }

    /// Results of the devices as tensors of the program.
    fn together(&self, results: Vec<Outputs>) -> Outputs {
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
            let mut mine = parts.iter().filter_map(|p| p.get(i).cloned());
            let ty = &self.types[i];
            out.push(match outcome {
                // Where there is no device here, the first process gives it.
                Outcome::Plain => mine.next().map_or_else(|| Tensor::new(ty.dtype, &[0], false), Ok)?,
                Outcome::Parts(layout) => {
                    let held = Parts { layout: layout.clone(), parts: mine.collect() };
                    Tensor::in_parts(ty.dtype, ty.shape.clone(), held)?
                }
            });
        }
        Ok(out)
    }
}

/// Adds the bytes that device `me` sends in a call along each axis of its mesh. What goes along several at once counts for
/// each.
fn add_moved(g: &Graph, mesh: &Mesh, me: u64, times: u64, sums: &mut [u64]) {
    for n in &g.nodes {
        match &n.prim {
            Prim::Exchange(e) => {
                let element = n.ty.dtype.bytes() as u64;
                for send in e.sends.iter().filter(|s| s.peer != me) {
                    let bytes = send.size.iter().product::<u64>().saturating_mul(element).saturating_mul(times);
                    for (sum, (axis, _)) in sums.iter_mut().zip(&mesh.axes) {
                        if mesh.coordinate(send.peer, axis) != mesh.coordinate(me, axis) {
                            *sum = sum.saturating_add(bytes);
                        }
                    }
                }
            }
            prim @ Prim::Scan { body, .. } => {
                if let Some(body) = g.bodies.get(*body as usize) {
                    add_moved(body, mesh, me, times.saturating_mul(prim.turns().unwrap_or(0)), sums);
                }
            }
            _ => {}
        }
    }
}

/// Whether there are more devices here than run in one process, or than can be told apart.
fn too_many(mine: &Range<usize>, count: u64) -> bool {
    mine.len() as u64 > DEVICES_MAX || world::world().is_some_and(|w| !w.has_tags(count as usize))
}

/// Whether a device only waited for one that stopped.
fn waited(e: &PlanError) -> bool {
    matches!(e, PlanError::Step(stop) if stop.message == STOPPED)
}

/// Of the arguments that are the same in all processes: numbers, and tensors on no mesh.
fn hash_of(args: &[Argument]) -> u64 {
    let words: Vec<u8> =
        args.iter().flat_map(|a| if let Argument::Scalar(w) = a { *w } else { 0 }.to_le_bytes()).collect();
    let tensors = args.iter().map(|a| if let Argument::Tensor(t) = a { t.bytes() } else { &[] });
    world::hash(&tensors.chain([&words[..]]).collect::<Vec<_>>())
}

fn stopped(message: &str) -> PlanError {
    PlanError::Step(Stop { origin: Some(StepOrigin::default()), ..message.to_owned().into() })
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
