//! Tensor regions at run time: which graph a call needs, and running it.
//!
//! Also called: a tiered just-in-time (JIT) compiler, specialised by shape.
//!
//! A region keeps one entry per shapes of its arguments and per answers to the questions that
//! tracing asked about scalars ([`GuardTree`]). A new entry is traced, optimised, and at first
//! interpreted if it is small or one of ever new shapes; once interpreting has cost as much as
//! compiling would, it is compiled ([`crate::tiers`]). Both give the same bits.

use crate::backend::memory_limit::Shortage;
use crate::backend::{self, Backend, BackendError};
use crate::called;
use crate::check_nan::{self, Watched};
use crate::files::Texts;
use crate::leaves::{Leaf, describe, key};
use crate::mesh_run::{DEVICES_MAX, MeshError, MeshRun};
use crate::render::render;
use crate::tiers::{Estimate, History};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tessera_abi::plan::{Plan, StepOrigin, Stop};
use tessera_base::{Code, Diagnostic, ItemId, Sharding, Span, bug};
use tessera_core::ir::{InstId, Program};
use tessera_core::region::Region;
use tessera_core::type_assertions::{self, Seen};
use tessera_ir::graph::Graph;
use tessera_resolve::source::SourceMap;
use tessera_runtime::context::{RegionExec, RunError, interrupted};
use tessera_runtime::dry_run;
use tessera_runtime::execute::{Argument, PlanError, Workspace, execute};
use tessera_runtime::fault::Fault;
use tessera_runtime::host_value::{HostKey, HostValue};
use tessera_runtime::measure::Measured;
use tessera_runtime::pool::Pool;
use tessera_runtime::profile::{self, stage};
use tessera_runtime::tensor::Tensor;
use tessera_runtime::world;
use tessera_shard::{layout, spmd_partition};
use tessera_trace::guards::GuardTree;
use tessera_trace::scalar::{Kind, Known};
use tessera_trace::value::Key;
use tessera_trace::{InputSource, RegionArg, Template, trace, trace_checked};

/// What stopped a region, in full: the runtime's own error has no room for types and witnesses.
pub type Reports = Rc<RefCell<Vec<Diagnostic>>>;

/// Runs the regions of the programs of a session. Regions and spans have the numbers that the
/// session gives them: those of later programs follow those of earlier ones.
pub struct Executor {
    units: Vec<Unit>,
    /// Unit and position in it, by number.
    regions: Vec<(usize, usize)>,
    /// Instances behind closure objects, by code address.
    closures: BTreeMap<usize, InstId>,
    /// Source places by the numbers that compiled code passes.
    spans: Vec<Span>,
    /// The items of the standard library.
    library: BTreeSet<ItemId>,
    backend: Rc<Backend>,
    pool: Arc<Pool>,
    reports: Reports,
    /// Places that were warned of.
    warned: RefCell<BTreeSet<Span>>,
    entries: Vec<HashMap<Vec<u64>, GuardTree<Rc<Entry>>>>,
    /// By region.
    histories: Vec<Rc<History>>,
    work: Workspace,
    key: Vec<u64>,
    /// Where nothing is computed: what would be.
    dry_run: Option<Vec<DryRegion>>,
    /// Where values of host code are held against their types.
    host_calls: type_assertions::Calls,
    /// Who makes lines of what was measured of a function.
    profiler: Option<Box<Profiler>>,
}

/// E0705: an assertion of tensor code, which has its words in the program.
const ASSERTION: u16 = 705;

/// Lines of what was measured of a function.
pub type Profiler = dyn Fn(&Measured) -> Vec<String>;

/// A region at concrete shapes, and how often it is called.
pub struct DryRegion {
    pub name: String,
    /// As traced.
    pub graph: Graph,
    pub calls: u64,
}

/// What a program brings along.
pub struct Unit {
    pub program: Arc<Program>,
    pub regions: Vec<Region>,
    pub closures: BTreeMap<usize, InstId>,
    pub spans: Vec<Span>,
    /// The items of the standard library that it uses.
    pub library: BTreeSet<ItemId>,
    /// Where its warnings are shown.
    pub sources: SourceMap,
}

/// An executor that the session's owner adds to while the context holds it.
pub struct SharedExecutor(pub Rc<RefCell<Executor>>);

impl RegionExec for SharedExecutor {
    fn call(&mut self, region: u32, args: Vec<HostValue>, span: u32) -> Result<Vec<HostValue>, RunError> {
        self.0.borrow_mut().call(region, args, span)
    }

    fn pool(&self) -> Option<Arc<Pool>> {
        self.0.borrow().pool()
    }

    fn measured(&mut self, measured: &Measured) -> Vec<String> {
        self.0.borrow_mut().measured(measured)
    }
}

/// One specialisation.
struct Entry {
    inputs: Vec<InputSource>,
    results: Vec<Template>,
    graph: Rc<Graph>,
    /// What `--check-nan` looks at.
    watched: Option<Watched>,
    plan: RefCell<Option<Rc<Plan>>>,
    /// The graphs of the devices, where tensors lie on a mesh.
    mesh: Option<MeshRun>,
    interpreted: Cell<Duration>,
    /// What interpreting it takes; `None` where it is always compiled.
    estimate: Option<Estimate>,
    /// Of its region.
    history: Rc<History>,
    /// Where nothing is computed: its number, and how its outputs lie.
    dry: Option<(usize, Vec<Sharding>)>,
}

impl Executor {
    pub fn new(backend: Rc<Backend>, pool: Arc<Pool>, reports: Reports) -> Executor {
        Executor {
            units: vec![],
            regions: vec![],
            closures: BTreeMap::new(),
            spans: vec![],
            library: BTreeSet::new(),
            backend,
            pool,
            reports,
            warned: RefCell::default(),
            entries: vec![],
            histories: vec![],
            work: Workspace::default(),
            key: vec![],
            dry_run: None,
            host_calls: type_assertions::Calls::default(),
            profiler: None,
        }
    }

    /// Who makes lines of what was measured of a function.
    pub fn set_profiler(&mut self, profiler: Box<Profiler>) {
        self.profiler = Some(profiler);
    }

    /// Computes nothing from here on: regions are traced and counted.
    pub fn start_dry_run(&mut self) {
        self.dry_run = Some(vec![]);
    }

    /// What would have been computed.
    pub fn dry_regions(&mut self) -> Vec<DryRegion> {
        self.dry_run.take().unwrap_or_default()
    }

    /// Adds a program, in the order in which the session loads them.
    pub fn add(&mut self, mut unit: Unit) {
        let at = self.units.len();
        self.regions.extend((0..unit.regions.len()).map(|i| (at, i)));
        self.entries.resize_with(self.regions.len(), HashMap::new);
        self.histories.resize_with(self.regions.len(), Rc::default);
        self.closures.append(&mut unit.closures);
        self.spans.append(&mut unit.spans);
        self.library.append(&mut unit.library);
        self.units.push(unit);
    }

    /// The program to trace a region of a unit with: its own, completed by the functions of
    /// others where an argument is a closure that came from there.
    fn program(&self, unit: usize, args: &[HostValue]) -> Arc<Program> {
        let own = &self.units[unit].program;
        let real = |p: &Program, i: usize| p.insts.get(i).is_some_and(|f| !f.span.is_none());
        let mut codes = vec![];
        args.iter().for_each(|a| closures_in(a, &mut codes));
        if codes.iter().filter_map(|c| self.closures.get(c)).all(|inst| real(own, inst.0 as usize)) {
            return own.clone();
        }
        let newest = self.units.iter().rev().map(|u| &u.program);
        let count = newest.clone().map(|p| p.insts.len()).max().unwrap_or(0);
        let inst = |i: usize| {
            let mut all = std::iter::once(own).chain(newest.clone());
            all.find(|p| real(p, i)).or(newest.clone().find(|p| i < p.insts.len())).map(|p| p.insts[i].clone())
        };
        Arc::new(Program { insts: (0..count).filter_map(inst).collect(), globals: own.globals.clone(), entry: None })
    }

    /// Where the region is one of the law: what it says of the arguments.
    fn assertions(&mut self, region: u32, args: &[HostValue], span: u32) -> Option<Result<Vec<HostValue>, RunError>> {
        let &(unit, position) = self.regions.get(region as usize)?;
        let body = &self.units[unit].regions[position];
        let step = body.assertions.as_ref()?;
        let seen: Vec<Seen> = args.iter().map(|a| Seen::from(&self.region_arg(a))).collect();
        Some(match self.host_calls.step(step, body.span, &seen) {
            Ok(number) => Ok(vec![HostValue::Int(number)]),
            Err((at, what)) => Err(self.report(vec![type_assertions::broken(at, what)], span)),
        })
    }

    /// Keeps the diagnostics for the end of the run and stops the program.
    fn report(&self, diagnostics: Vec<Diagnostic>, span: u32) -> RunError {
        let first = diagnostics.first().map_or(999, |d| code_number(d.code));
        self.reports.borrow_mut().extend(diagnostics);
        RunError::new(first, "", span)
    }

    fn span_of(&self, span: u32) -> Span {
        self.spans.get(span as usize).copied().unwrap_or_default()
    }

    /// The entry for these arguments, traced if it is new.
    fn entry(&mut self, region: u32, args: &[HostValue], leaves: &[Leaf], span: u32) -> Result<Rc<Entry>, RunError> {
        let known = |leaf: u32| match leaves.get(leaf as usize) {
            Some(Leaf::Scalar(k)) => *k,
            _ => Known::Int(0),
        };
        let Some(shapes) = self.entries.get(region as usize) else {
            return Err(RunError::new(999, "a tensor region does not exist", span));
        };
        if let Some(entry) = shapes.get(&self.key).and_then(|tree| tree.find(&known)) {
            return Ok(entry.clone());
        }
        let start = Instant::now();
        let tracing = stage("tracing");
        let concrete: Vec<RegionArg> = args.iter().map(|a| self.region_arg(a)).collect();
        let (unit, position) = self.regions[region as usize];
        let body = &self.units[unit].regions[position];
        let traced = if self.backend.options().checked { trace_checked } else { trace };
        let traced = traced(&self.program(unit, args), body, &concrete).map_err(|d| self.report(d, span))?;
        self.warn(unit, &traced.warnings);
        tessera_graph::verified(&traced.graph, "tracing");
        drop(tracing);
        let _optimising = stage("optimising graphs");
        let dry = self.dry_run.as_mut().map(|all| {
            all.push(DryRegion { name: body.name.to_string(), graph: traced.graph.clone(), calls: 0 });
            (all.len() - 1, output_layouts(&traced.graph))
        });
        if let Some(d) = several_meshes(&traced.graph, self.span_of(span)) {
            return Err(self.report(vec![d], span));
        }
        let mesh = if dry.is_some() { None } else { MeshRun::of(&traced.graph, &self.backend) };
        // On a mesh the devices' graphs are optimised, and this one tells what they compute.
        let mut graph = match mesh.is_some() || dry.is_some() {
            true => traced.graph.clone(),
            false => self.backend.optimise(&traced.graph),
        };
        let mut traced = traced;
        if mesh.is_none() && dry.is_none() {
            let fit = self.backend.bounded(graph);
            if let Some(shortage) = fit.shortage {
                return Err(self.report(vec![shortage.diagnostic(&fit.graph, &body.name, self.span_of(span))], span));
            }
            graph = fit.graph;
            traced.graph.memory = graph.memory;
        }
        if let Some((graph, shortage)) = mesh.as_ref().and_then(MeshRun::short) {
            return Err(self.report(vec![shortage.diagnostic(graph, &body.name, self.span_of(span))], span));
        }
        let shown = mesh.as_ref().and_then(MeshRun::first).unwrap_or(&graph);
        self.backend.trace_note(&body.name, &traced.graph, shown, start.elapsed());
        if mesh.is_some() {
            self.backend.warn_of_meshes();
        }
        let watched = (mesh.is_none() && self.backend.check_nan()).then(|| check_nan::watch(&mut graph));
        // A search measures compiled code.
        let tuned = graph.kernels.iter().any(|h| h.autotune.is_some());
        let compiled = tuned || self.backend.always_compile() || self.backend.memory().is_some();
        let history = self.histories[region as usize].clone();
        history.met();
        let entry = Rc::new(Entry {
            inputs: traced.inputs,
            results: traced.results,
            estimate: (!compiled).then(|| Estimate::of(&graph)),
            graph: Rc::new(graph),
            watched,
            plan: RefCell::new(None),
            mesh,
            interpreted: Cell::new(Duration::ZERO),
            history,
            dry,
        });
        self.entries[region as usize].entry(self.key.clone()).or_default().insert(&traced.guards, entry.clone());
        called::made(start.elapsed(), Duration::ZERO);
        Ok(entry)
    }

    fn region_arg(&self, p: &HostValue) -> RegionArg {
        let all = |items: &[HostValue]| items.iter().map(|i| self.region_arg(i)).collect();
        match p {
            HostValue::Int(n) => RegionArg::Int(*n),
            HostValue::Float(x) => RegionArg::Float(*x),
            HostValue::Bool(b) => RegionArg::Bool(*b),
            HostValue::Str(s) => RegionArg::Str(s.clone()),
            HostValue::None => RegionArg::None,
            HostValue::DType(d) => RegionArg::DType(*d),
            HostValue::Tensor(t) => RegionArg::Tensor {
                dtype: t.dtype,
                shape: t.shape.clone(),
                layout: t.parts.as_ref().map(|p| p.layout.clone()).unwrap_or_default(),
            },
            HostValue::List(items) => RegionArg::List(all(items)),
            HostValue::Record(items) => RegionArg::Record(all(items)),
            HostValue::Dict(entries) => {
                RegionArg::Dict(entries.iter().map(|(k, v)| (key(k), self.region_arg(v))).collect())
            }
            HostValue::Closure(code, captures) => match self.closures.get(code) {
                Some(&inst) => RegionArg::Closure { inst, captures: all(captures) },
                None => RegionArg::None,
            },
        }
    }

    /// Values for the inputs of the graph. The leaves are given up.
    fn arguments(&self, entry: &Entry, leaves: &mut [Leaf], span: u32) -> Result<Vec<Argument>, RunError> {
        let known: Vec<Known> =
            leaves.iter().map(|l| if let Leaf::Scalar(k) = l { *k } else { Known::Int(0) }).collect();
        let read = |leaf: u32| known.get(leaf as usize).copied().unwrap_or(Known::Int(0));
        let kept: Vec<u32> = entry.results.iter().flat_map(kept_arguments).collect();
        let mut out = Vec::with_capacity(entry.inputs.len());
        for source in &entry.inputs {
            out.push(match source {
                InputSource::Tensor(leaf) => {
                    let slot = leaves.get_mut(*leaf as usize);
                    match slot {
                        Some(Leaf::Tensor(t)) if kept.contains(leaf) => Argument::Tensor(t.clone()),
                        Some(slot @ Leaf::Tensor(_)) => match std::mem::replace(slot, Leaf::Gone) {
                            Leaf::Tensor(t) => Argument::Tensor(t),
                            _ => Argument::Scalar(0),
                        },
                        _ => return Err(RunError::new(999, "a tensor argument is missing", span)),
                    }
                }
                InputSource::Scalar(expr) => {
                    let value = expr.eval(&read).map_err(|d| self.report(vec![*d], span))?;
                    Argument::Scalar(value.bits())
                }
            });
        }
        Ok(out)
    }

    fn fault(&self, mut fault: Fault, at: Span, span: u32) -> RunError {
        if fault.code == ASSERTION
            && let Some(said) = self.units.iter().rev().find_map(|u| u.program.said_by_assertion(at))
        {
            fault.message = said;
        }
        let code = Code::parse(&format!("E{:04}", fault.code)).unwrap_or(Code::E0999);
        let call = self.span_of(span);
        let mut d = Diagnostic::new(code, if at.is_none() { call } else { at }, fault.message);
        d.notes = fault.notes;
        self.reported(d, span)
    }

    /// Shows warnings of a region, once for a place; what the library does is no concern of who uses it.
    fn warn(&self, unit: usize, warnings: &[Diagnostic]) {
        let mut warned = self.warned.borrow_mut();
        let new = |d: &&Diagnostic| !self.library.contains(&d.span.item) && warned.insert(d.span);
        let new: Vec<Diagnostic> = warnings.iter().filter(new).cloned().collect();
        if !new.is_empty() {
            let style = self.backend.options().style;
            render(&mut std::io::stderr().lock(), &new, &Texts(&self.units[unit].sources), style);
        }
    }

    /// Reports what is wrong in a region; in the standard library with the call that led there.
    fn reported(&self, mut d: Diagnostic, span: u32) -> RunError {
        let call = self.span_of(span);
        let library = |span: Span| self.library.contains(&span.item);
        if library(d.span) && !library(call) {
            d = d.with_label(call, "called here");
        }
        self.report(vec![d], span)
    }

    /// Runs an entry and, where that is asked for, looks for what is not finite.
    fn run(&mut self, entry: &Entry, args: Vec<Argument>, span: u32) -> Result<Vec<Tensor>, RunError> {
        let Some(watched) = &entry.watched else { return self.outputs(entry, args, span) };
        let mut outputs = self.outputs(entry, args.clone(), span)?;
        let words = scalar_bytes(&entry.graph, &args);
        let elsewhere = |fault| self.fault(fault, Span::NONE, span);
        let inputs = input_bytes(&args, &words).map_err(elsewhere)?;
        if let Some(d) = watched.first(&entry.graph, &inputs, &outputs).map_err(elsewhere)? {
            return Err(self.reported(d, span));
        }
        outputs.truncate(watched.outputs);
        Ok(outputs)
    }

    fn outputs(&mut self, entry: &Entry, args: Vec<Argument>, span: u32) -> Result<Vec<Tensor>, RunError> {
        if entry.graph.outputs.is_empty() {
            return Ok(vec![]);
        }
        if let Some((number, layouts)) = &entry.dry {
            if let Some(all) = &mut self.dry_run {
                all[*number].calls += 1;
            }
            let made = entry.graph.outputs.iter().zip(layouts).map(|(&id, layout)| {
                let ty = entry.graph.ty(id);
                dry_run::tensor(ty.dtype, &ty.shape, layout.clone())
            });
            return made.collect::<Result<_, _>>().map_err(|e| self.fault(e.into(), Span::NONE, span));
        }
        if let Some(mesh) = &entry.mesh {
            let _devices = stage(profile::DEVICES);
            return mesh.run(&self.backend, self.pool.threads(), args).map_err(|e| match e {
                MeshError::Plan(PlanError::Interrupted) => self.fault(interrupted(), Span::NONE, span),
                MeshError::Plan(PlanError::Step(stop)) => self.stopped(stop, span),
                MeshError::Backend(e) => self.unplanned(e, span),
                MeshError::World(fault, _) if fault.code == world::ELSEWHERE => {
                    RunError::new(world::ELSEWHERE, "", span)
                }
                MeshError::World(fault, origin) => self.fault(fault, origin.map_or(Span::NONE, span_of_origin), span),
                MeshError::Devices(n) => self.report(vec![too_many_devices(n, self.span_of(span))], span),
            });
        }
        // A profile is of kernels.
        let waits = entry.estimate.filter(|_| !profile::of_kernels());
        let patience = waits.map_or(Duration::ZERO, |e| entry.history.patience(&e));
        if entry.plan.borrow().is_none() && entry.interpreted.get() < patience {
            let start = Instant::now();
            let outputs = self.interpret(&entry.graph, &args, span)?;
            entry.interpreted.set(entry.interpreted.get() + start.elapsed());
            return Ok(outputs);
        }
        let ready = entry.plan.borrow().clone();
        let start = Instant::now();
        let (known, _, before) = self.backend.compiled.get();
        let plan = match ready {
            Some(plan) => plan,
            None => match planned(&self.backend, &entry.graph) {
                Ok(plan) => {
                    entry.history.compiled(start.elapsed());
                    let (compiled, _, now) = self.backend.compiled.get();
                    let kernels = if compiled > known { now.saturating_sub(before) } else { Duration::ZERO };
                    called::made(start.elapsed(), kernels);
                    entry.plan.borrow_mut().insert(Rc::new(plan)).clone()
                }
                // Without a compiler every graph can still be interpreted.
                Err(BackendError::Unavailable(why)) => {
                    self.backend.warn_once(&why);
                    return self.interpret(&entry.graph, &args, span);
                }
                Err(e) => return Err(self.unplanned(e, span)),
            },
        };
        let _between = stage("between kernels");
        execute(&plan, args, &**self.backend.device(), &mut self.work).map_err(|e| match e {
            PlanError::Interrupted => self.fault(interrupted(), Span::NONE, span),
            PlanError::Step(stop) => self.stopped(stop, span),
        })
    }

    /// A step of a plan stopped.
    fn stopped(&self, stop: Stop, span: u32) -> RunError {
        let fault = Fault { code: stop.code, message: stop.message, notes: stop.notes, span: None };
        self.fault(fault, stop.origin.map_or(Span::NONE, span_of_origin), span)
    }

    /// There is no plan.
    fn unplanned(&self, e: BackendError, span: u32) -> RunError {
        match e {
            BackendError::Memory(e) => self.fault(e.into(), Span::NONE, span),
            BackendError::Interrupted => self.fault(interrupted(), Span::NONE, span),
            BackendError::Unavailable(why) => {
                let d = Diagnostic::new(Code::E0601, self.span_of(span), why);
                self.report(vec![d.note("what runs on a mesh is compiled")], span)
            }
            BackendError::Internal(why) => {
                let d = Diagnostic::new(Code::E0603, self.span_of(span), why);
                self.report(vec![d], span)
            }
        }
    }

    fn interpret(&self, graph: &Graph, args: &[Argument], span: u32) -> Result<Vec<Tensor>, RunError> {
        let _interpreting = stage("interpreting small graphs");
        let words = scalar_bytes(graph, args);
        let inputs = input_bytes(args, &words).map_err(|fault| self.fault(fault, Span::NONE, span))?;
        let needed: u64 = graph.nodes.iter().map(|n| n.ty.bytes().unwrap_or(u64::MAX)).max().unwrap_or(0);
        if needed > tessera_runtime::tensor::memory_limit() {
            return Err(self.fault(tessera_runtime::tensor::OutOfMemory { bytes: needed }.into(), Span::NONE, span));
        }
        let outputs = tessera_ir::interpret::run(graph, &inputs)
            .map_err(|s| self.fault(backend::fault(s.error), s.span, span))?;
        let tensor = |(bytes, &id): (&Vec<u8>, _)| {
            let ty = graph.ty(id);
            Tensor::from_bytes(ty.dtype, &ty.shape, bytes).map_err(|e| self.fault(e.into(), Span::NONE, span))
        };
        outputs.iter().zip(&graph.outputs).map(tensor).collect()
    }
}

impl RegionExec for Executor {
    /// Machine code waits for this: a bug of ours, which has been told, ends the run like an error, with its place in the
    /// program.
    fn call(&mut self, region: u32, args: Vec<HostValue>, span: u32) -> Result<Vec<HostValue>, RunError> {
        let result = catch_unwind(AssertUnwindSafe(|| self.call_here(region, args, span)));
        result.unwrap_or_else(|_| Err(RunError::new(999, "the bug above was met here, while this ran", span)))
    }

    fn pool(&self) -> Option<Arc<Pool>> {
        Some(self.pool.clone())
    }

    fn measured(&mut self, measured: &Measured) -> Vec<String> {
        self.profiler.as_ref().map(|lines| lines(measured)).unwrap_or_default()
    }
}

impl Executor {
    fn call_here(&mut self, region: u32, args: Vec<HostValue>, span: u32) -> Result<Vec<HostValue>, RunError> {
        if let Some(result) = self.assertions(region, &args, span) {
            return result;
        }
        let _calling = stage("calling tensor code");
        self.key.clear();
        let mut leaves = vec![];
        for arg in &args {
            describe(arg, &mut self.key, &mut leaves);
        }
        let begun = called::begin(|| leaves.iter().map(Leaf::fingerprint).collect());
        let entry = self.entry(region, &args, &leaves, span)?;
        // The leaves hold what the arguments held; tensors that no one else has may be reused.
        drop(args);
        let inputs = self.arguments(&entry, &mut leaves, span)?;
        let outputs = self.run(&entry, inputs, span)?;
        let known: Vec<Known> =
            leaves.iter().map(|l| if let Leaf::Scalar(k) = l { *k } else { Known::Int(0) }).collect();
        let addresses = &self.closures;
        let mut build = Build { outputs: &outputs, leaves: &leaves, known: &known, addresses, failed: None };
        let results = entry.results.iter().map(|t| build.value(t)).collect();
        if let Some(begun) = begun {
            let (unit, position) = self.regions[region as usize];
            let body = &self.units[unit].regions[position];
            let (site, on_mesh) = (self.span_of(span), entry.mesh.is_some());
            let (name, graph) = (&body.name, &entry.graph);
            let inputs = entry.inputs.iter().map(leaf_of);
            let at = called::Region { number: region, name, span: body.span, site, graph, on_mesh };
            called::end_of(begun, &at, inputs);
        }
        match build.failed.take() {
            None => Ok(results),
            Some(d) => Err(self.report(vec![*d], span)),
        }
    }
}

/// The leaf that an input is; `None` where it is computed of several.
fn leaf_of(source: &InputSource) -> Option<usize> {
    match source {
        InputSource::Tensor(leaf) => Some(*leaf as usize),
        InputSource::Scalar(_) => None,
    }
}

/// The plan of a graph, as a stage of its own.
fn planned(backend: &Backend, graph: &Graph) -> Result<Plan, BackendError> {
    let _planning = stage("planning kernels");
    backend.plan(graph)
}

fn span_of_origin(origin: StepOrigin) -> Span {
    Span { item: ItemId(origin.item), start: origin.start, end: origin.end }
}

/// The bytes of the scalars among the arguments of a graph.
fn scalar_bytes(graph: &Graph, args: &[Argument]) -> Vec<Vec<u8>> {
    args.iter()
        .zip(&graph.inputs)
        .map(|(a, input)| match a {
            Argument::Tensor(_) => vec![],
            Argument::Scalar(w) => w.to_le_bytes()[..input.ty.dtype.bytes()].to_vec(),
        })
        .collect()
}

/// The bytes of all arguments, `words` being those of the scalars.
fn input_bytes<'a>(args: &'a [Argument], words: &'a [Vec<u8>]) -> Result<Vec<&'a [u8]>, Fault> {
    args.iter()
        .zip(words)
        .map(|(a, w)| match a {
            Argument::Tensor(t) => t.host(),
            Argument::Scalar(_) => Ok(w.as_slice()),
        })
        .collect()
}

/// A traced graph as it is run: optimised and within its memory; where it lies on a mesh, that of the first device.
///
/// # Errors
/// E0404, E0717 and E0901, as the call at `at` would report them.
pub fn as_run(backend: &Backend, traced: &Graph, at: Span) -> Result<Graph, Box<Diagnostic>> {
    if let Some(d) = several_meshes(traced, at) {
        return Err(Box::new(d));
    }
    let short = |graph: &Graph, shortage: &Shortage| Err(Box::new(shortage.diagnostic(graph, &traced.name, at)));
    match MeshRun::of(traced, backend) {
        Some(mesh) => match (mesh.short(), mesh.first()) {
            (Some((graph, shortage)), _) => short(graph, shortage),
            (None, Some(graph)) => Ok(graph.clone()),
            (None, None) => Err(Box::new(too_many_devices(layout::mesh(traced).map_or(0, |m| m.devices()), at))),
        },
        None => {
            let fit = backend.bounded(backend.optimise(traced));
            match &fit.shortage {
                Some(shortage) => short(&fit.graph, shortage),
                None => Ok(fit.graph),
            }
        }
    }
}

/// E0901 for a mesh that is larger than a machine.
fn too_many_devices(n: u64, at: Span) -> Diagnostic {
    Diagnostic::new(Code::E0901, at, format!("a mesh of {n} devices does not run on one machine"))
        .note(format!("at most {DEVICES_MAX} run here, each on a thread of its own"))
        .help("`tessera check` checks the program at any size; run it with fewer devices")
}

/// E0404 for a `call` of a function with values on two meshes: its devices are those of one.
fn several_meshes(g: &Graph, call: Span) -> Option<Diagnostic> {
    let meshes = layout::meshes(g);
    let (first, second) = (meshes.first()?, meshes.iter().nth(1)?);
    // Where only arguments name a mesh, the call has it.
    let named = |mesh| Some(layout::named_at(g, mesh)).filter(|at| *at != Span::NONE).unwrap_or(call);
    let d = Diagnostic::new(Code::E0404, named(second), "a function computes on two meshes")
        .here(format!("{second}"))
        .with_label(named(first), format!("{first}"));
    Some(d.help(
        "have a statement of its own for each mesh, and take what goes from one to the other off: `dist.gather(x)`",
    ))
}

/// How the outputs of a graph lie.
fn output_layouts(g: &Graph) -> Vec<Sharding> {
    let Some(mesh) = layout::mesh(g) else { return vec![Sharding::default(); g.outputs.len()] };
    let lies = |o: spmd_partition::Outcome| match o {
        spmd_partition::Outcome::Plain => Sharding::default(),
        spmd_partition::Outcome::Parts(layout) => layout,
    };
    spmd_partition::outcomes(g, &mesh).into_iter().map(lies).collect()
}

/// The code addresses of the closures in an argument.
fn closures_in(arg: &HostValue, out: &mut Vec<usize>) {
    match arg {
        HostValue::List(items) | HostValue::Record(items) => items.iter().for_each(|i| closures_in(i, out)),
        HostValue::Dict(entries) => entries.iter().for_each(|(_, v)| closures_in(v, out)),
        HostValue::Closure(code, captures) => {
            out.push(*code);
            captures.iter().for_each(|c| closures_in(c, out));
        }
        _ => {}
    }
}

/// Arguments that a result hands back.
fn kept_arguments(t: &Template) -> Vec<u32> {
    match t {
        Template::Argument(n) => vec![*n],
        Template::Record(items) | Template::List(items) => items.iter().flat_map(kept_arguments).collect(),
        Template::Dict(entries) => entries.iter().flat_map(|(_, t)| kept_arguments(t)).collect(),
        Template::Closure { captures, .. } => captures.iter().flat_map(kept_arguments).collect(),
        _ => vec![],
    }
}

/// Makes results from outputs and arguments.
struct Build<'a> {
    outputs: &'a [Tensor],
    leaves: &'a [Leaf],
    known: &'a [Known],
    addresses: &'a BTreeMap<usize, InstId>,
    failed: Option<Box<Diagnostic>>,
}

impl Build<'_> {
    fn value(&mut self, t: &Template) -> HostValue {
        match t {
            Template::Output(i) => {
                self.outputs.get(*i as usize).map_or(HostValue::None, |t| HostValue::Tensor(t.clone()))
            }
            Template::Element(i, kind) => match self.outputs.get(*i as usize) {
                Some(t) if t.has_no_elements() => {
                    let fault = dry_run::fault();
                    let d = Diagnostic::new(Code::E0718, Span::NONE, fault.message);
                    self.failed.get_or_insert(Box::new(fault.notes.into_iter().fold(d, Diagnostic::note)));
                    HostValue::None
                }
                Some(t) => element(t, *kind),
                None => HostValue::None,
            },
            Template::Argument(n) => match self.leaves.get(*n as usize) {
                Some(Leaf::Tensor(t)) => HostValue::Tensor(t.clone()),
                _ => HostValue::None,
            },
            Template::Scalar(e) => {
                match e.eval(&|leaf| self.known.get(leaf as usize).copied().unwrap_or(Known::Int(0))) {
                    Ok(k) => scalar(k),
                    Err(failed) => {
                        self.failed.get_or_insert(failed);
                        HostValue::None
                    }
                }
            }
            Template::Str(s) => HostValue::Str(s.clone()),
            Template::None => HostValue::None,
            Template::DType(d) => HostValue::DType(*d),
            Template::Record(items) => HostValue::Record(items.iter().map(|t| self.value(t)).collect()),
            Template::List(items) => HostValue::List(items.iter().map(|t| self.value(t)).collect()),
            Template::Dict(entries) => {
                let pairs = entries.iter().map(|(k, t)| {
                    let key = match k {
                        Key::Int(i) => HostKey::Int(*i),
                        Key::Bool(b) => HostKey::Bool(*b),
                        Key::Str(s) => HostKey::Str(s.clone()),
                    };
                    (key, self.value(t))
                });
                HostValue::Dict(pairs.collect())
            }
            Template::Closure { inst, captures } => {
                let Some((code, _)) = self.addresses.iter().find(|(_, i)| *i == inst) else {
                    bug!("a region gives a function value of instance {}, which has no machine code", inst.0);
                };
                let code = *code;
                HostValue::Closure(code, captures.iter().map(|t| self.value(t)).collect())
            }
        }
    }
}

fn scalar(k: Known) -> HostValue {
    match k {
        Known::Int(n) => HostValue::Int(n),
        Known::Float(x) => HostValue::Float(x),
        Known::Bool(b) => HostValue::Bool(b),
    }
}

/// The one element of a rank-0 f64, i64 or bool tensor.
fn element(t: &Tensor, kind: Kind) -> HostValue {
    let mut bytes = [0u8; 8];
    let n = t.dtype.bytes().min(8);
    match t.bytes().get(..n) {
        Some(source) => bytes[..n].copy_from_slice(source),
        None => bug!("a number of {n} bytes was given as a tensor of {:?}", t.shape),
    }
    scalar(kind.read(u64::from_le_bytes(bytes)))
}

fn code_number(code: Code) -> u16 {
    code.name()[1..].parse().unwrap_or(999)
}
