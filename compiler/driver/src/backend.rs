//! From an optimised graph to a plan: groups, schedules, kernels, memory.
//!
//! Kernels are kept in the process and on disk by the hash of their Tile IR, this machine and
//! this compiler, so equal kernels of different graphs are compiled once.

mod compile;
pub mod kernel_costs;
pub mod footprint;
mod turn_places;
mod loops;
pub mod exchanges;
mod laboratory;
pub mod tuned;
mod verified;
mod titles;
mod laid;
pub mod memory_limit;

pub use laboratory::energy::counters as energy_of_calls;
pub use laid::Planned;

use crate::cache::DiskCache;
pub use crate::native_kernels::fault;
use crate::native_kernels::{Source, gather, native_kernel, refused};
use crate::render::Style;
use crate::target::{self, Choice, Target};
use crate::tune::records::Records;
use laid::{Laid, zeros};
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tessera_abi::plan::{BufRef, BufType, Kernel, Launch, Output, Plan, ScalarRef, Step, StepOrigin, Stop};
use tessera_base::bug;
use tessera_graph::fuse::{Limits, partition};
use tessera_graph::late_exchanges::starts;
use tessera_graph::place_buffers::{in_place, place_buffers};
use tessera_graph::recompute::GivenUp;
use tessera_ir::graph::{Graph, NodeId, NodeType, Reason};
use tessera_ir::group::{Group, GroupKind, MemoryPlan, Partition};
use tessera_ir::prim::{row, written_base};
use tessera_ir::reference::{self, ArrayRef, Summation};
use tessera_ir::schedule::{Machine, Schedule};
use tessera_ir::tile;
use tessera_ops::prim::Prim;
use tessera_runtime::block_quant;
use tessera_runtime::device::Device;
use tessera_runtime::math;
use tessera_runtime::native::{self, NativeFn, Operand};
use tessera_runtime::pool::Pool;
use tessera_runtime::profile;
use tessera_runtime::tensor::OutOfMemory;
use tessera_schedule::estimate::Rates;
use tessera_schedule::weighed::Weighed;
use tessera_tile::Lowered;
use tuned::{Tuned, Tuning};

/// Why there is no plan.
#[derive(Debug)]
pub enum BackendError {
    /// No compiler on this machine: graphs are interpreted.
    Unavailable(String),
    Memory(OutOfMemory),
    /// Somebody asked the program to end.
    Interrupted,
    Internal(String),
}

/// How the driver wants code to be made.
#[derive(Clone, Debug, Default)]
pub struct Options {
    pub verbose: bool,
    pub quiet: bool,
    /// How warnings are shown that come while the program runs.
    pub style: Style,
    /// Never interpret, for tests.
    pub always_compile: bool,
    /// Run on the emulated device, whose kernels the checked interpreter of Tile IR runs.
    pub checked: bool,
    /// Look at what kernels leave for NaNs and infinities.
    pub check_nan: bool,
    /// Bytes that a graph may take: arguments, results and everything in between.
    pub memory: Option<u64>,
}

pub struct Backend {
    options: Options,
    cache: DiskCache,
    /// What searches for schedules found.
    records: Records,
    tuning: Tuning,
    /// Kernels that are tuned, and what became of them.
    tuned: RefCell<Vec<Tuned>>,
    /// What the machine does in a second, for the cost model, and what measures it.
    rates: OnceCell<Rates>,
    measured_rates: Option<MeasuredRates>,
    target: Arc<dyn Target>,
    /// What the texts of kernels are for: another one, where programs cannot run on it here.
    texts: Arc<dyn Target>,
    /// Where the program's regions run.
    device: Arc<dyn Device>,
    machine: Machine,
    /// What tests change about schedules.
    adjust: Option<Box<dyn Fn(&mut Schedule)>>,
    pool: Arc<Pool>,
    kernels: RefCell<HashMap<String, Kernel>>,
    /// Kernels of outlines.
    known: Known,
    /// What besides the kernel itself decides its object code.
    fingerprint: String,
    warned: Cell<bool>,
    /// What is said about graphs in which values are computed again.
    notes: RefCell<Vec<String>>,
    /// Values that are computed again in graphs that were too large.
    given_up: RefCell<Vec<GivenUp>>,
    /// Graphs before and after optimisation, where someone wants to see them.
    seen: RefCell<Option<Vec<(Graph, Graph)>>>,
    /// Kernels compiled and found, with the time until they were there.
    pub compiled: Cell<(u32, u32, Duration)>,
}

/// Operations and bytes in a second.
type MeasuredRates = Box<dyn Fn() -> Option<(f64, f64)>>;

/// Kernels by the structure of their groups.
type Known = RefCell<HashMap<blake3::Hash, Rc<Lowered>>>;

impl Backend {
    /// The threads of the program.
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// What kernels are made for.
    pub fn target(&self) -> &Arc<dyn Target> {
        &self.target
    }

    /// What the texts of kernels are for.
    pub fn texts(&self) -> &dyn Target {
        &*self.texts
    }

    /// Texts of kernels are to be for this one.
    pub fn set_texts(&mut self, target: Arc<dyn Target>) {
        self.texts = target;
    }

    /// Where plans run that are on no mesh.
    pub fn device(&self) -> &Arc<dyn Device> {
        &self.device
    }

    /// What it was asked for.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// For the processor, or the emulated device where programs are to be checked.
    pub fn new(options: Options, cache: DiskCache, pool: Arc<Pool>) -> Backend {
        Backend::on(target::of(Choice::Cpu, options.checked), options, cache, pool)
    }

    /// For a target.
    pub fn on(target: Arc<dyn Target>, options: Options, cache: DiskCache, pool: Arc<Pool>) -> Backend {
        math::define(tessera_ops::numbers::apply);
        if options.checked {
            tessera_runtime::tensor::poison::show();
        }
        // The executable itself stands for the compiler's version.
        let build = std::env::current_exe()
            .and_then(std::fs::metadata)
            .map_or(String::new(), |m| format!("{}.{:?}", m.len(), m.modified().ok()));
        let fingerprint = format!("{};{};{build}", env!("CARGO_PKG_VERSION"), target.fingerprint());
        let records = Records::new(".tessera/cache".into(), options.quiet);
        Backend {
            options,
            cache,
            records,
            tuning: Tuning::default(),
            tuned: RefCell::default(),
            rates: OnceCell::new(),
            measured_rates: None,
            machine: target.machine(),
            device: target.device(&pool),
            texts: target.clone(),
            target,
            adjust: None,
            pool,
            kernels: RefCell::new(HashMap::new()),
            known: Known::default(),
            fingerprint,
            warned: Cell::new(false),
            notes: RefCell::new(vec![]),
            given_up: RefCell::new(vec![]),
            seen: RefCell::new(None),
            compiled: Cell::new((0, 0, Duration::ZERO)),
        }
    }

    /// The graph as this machine runs it.
    pub fn optimise(&self, graph: &Graph) -> Graph {
        let graph = match self.options.check_nan {
            true => tessera_graph::optimise_in_full(graph),
            false => tessera_graph::optimise(graph),
        };
        let mut graph = tessera_graph::product_order::run(graph, self.machine.bf16);
        if self.machine.block_products {
            graph = tessera_graph::block_products::run(graph, &block_quant::in_registers);
        }
        tessera_graph::verified(&graph, "the pipeline");
        graph
    }

    /// Compiles as if for another machine.
    pub fn set_machine(&mut self, machine: Machine) {
        self.machine = machine;
    }

    /// Changes the directives of schedules before they are lowered, for tests.
    pub fn adjust_schedules(&mut self, adjust: Option<Box<dyn Fn(&mut Schedule)>>) {
        self.adjust = adjust;
    }

    pub fn always_compile(&self) -> bool {
        self.options.always_compile || self.options.checked || self.measures_all()
    }

    pub fn check_nan(&self) -> bool {
        self.options.check_nan
    }

    /// Says once that what lies on a mesh is not looked at.
    pub fn warn_of_meshes(&self) {
        if self.options.check_nan && !self.options.quiet && !self.warned.replace(true) {
            eprintln!("warning[W0602]: `--check-nan` does not look at tensors that lie on a mesh");
        }
    }

    /// Keeps every graph from now on.
    pub fn watch(&self) {
        *self.seen.borrow_mut() = Some(vec![]);
    }

    /// The graphs kept so far, as traced and as optimised.
    pub fn watched(&self) -> Vec<(Graph, Graph)> {
        self.seen.borrow_mut().take().unwrap_or_default()
    }

    /// Tells about a traced region when asked to be verbose.
    pub fn trace_note(&self, name: &str, traced: &Graph, graph: &Graph, took: Duration) {
        if let Some(seen) = &mut *self.seen.borrow_mut() {
            seen.push((traced.clone(), graph.clone()));
        }
        if self.options.verbose {
            eprintln!("traced `{name}`: {} operations in {:.2} ms", graph.nodes.len(), took.as_secs_f64() * 1e3);
        }
    }

    pub fn warn_once(&self, why: &str) {
        if !self.warned.replace(true) && !self.options.quiet {
            eprintln!("warning[E0601]: {why}\n  = note: tensor code is interpreted, which is slow");
        }
    }

    /// What the cost model compared for a schedule of this machine.
    pub fn weighed(&self, schedule: &Schedule) -> Option<Weighed> {
        tessera_schedule::weighed::of(schedule, &self.machine)
    }

    /// Groups with their schedules and kernels; what a kernel cannot cover is split, then run
    /// by its reference kernel.
    pub fn groups(&self, graph: &Graph) -> Vec<Planned> {
        self.grouped(graph, None)
    }

    /// The same; with a table, groups of equal structure share their kernels and have no schedule of
    /// their own.
    fn grouped(&self, graph: &Graph, known: Option<&Known>) -> Vec<Planned> {
        let known = known.filter(|_| self.adjust.is_none());
        let mut limits = Limits { far: !self.device.shares_host_memory(), ..Limits::default() };
        loop {
            let Partition { groups } = partition(graph, &limits);
            let mut out = vec![];
            let mut refused = false;
            for group in groups {
                if matches!(group.kind, GroupKind::Native | GroupKind::Copy) {
                    out.push(Planned { group, start: None, schedule: None, lowered: None });
                    continue;
                }
                let name = kernel_name(graph, &group);
                let key = known.and_then(|_| footprint::structure(graph, &group));
                if let Some(found) = known.zip(key).and_then(|(known, key)| known.borrow().get(&key).cloned()) {
                    out.push(Planned { group, start: None, schedule: None, lowered: Some(found) });
                    continue;
                }
                let mut schedule =
                    tessera_schedule::schedule(graph, &group, &name, &self.machine).map_err(|r| r.to_string());
                let tuned = self.asked(graph, &group).is_some();
                let start = schedule.as_ref().ok().filter(|_| tuned).cloned();
                if let Some(found) = start.as_ref().and_then(|s| self.recorded(graph, &group, s)) {
                    schedule = Ok(found);
                }
                if let (Some(adjust), Ok(s)) = (&self.adjust, &mut schedule) {
                    adjust(s);
                }
                let lowered = schedule.and_then(|s| match tessera_tile::lower(&s) {
                    Ok(l) => match l.steps.iter().find(|step| !self.takes_operands(step)) {
                        Some(step) => Err(format!("{} operands are more than a launch takes", step.operands.len())),
                        None => Ok(verified::verified(s, l)),
                    },
                    Err(e) => Err(e.to_string()),
                });
                match lowered {
                    Ok((s, l)) => {
                        let l = Rc::new(l);
                        if let Some((known, key)) = known.zip(key) {
                            known.borrow_mut().insert(key, l.clone());
                        }
                        out.push(Planned { group, start, schedule: Some(s), lowered: Some(l) });
                    }
                    Err(why) => {
                        refused = true;
                        if self.options.verbose {
                            eprintln!("`{name}` ({} operations) is divided: {why}", group.members.len());
                        }
                        if group.kind == GroupKind::Attention {
                            // Its products apart, and what is between them as it comes.
                            let products = group.members.iter().filter(|&&m| is_product(graph, m));
                            limits.split.extend(products.copied());
                            continue;
                        }
                        let single = group.members.len() == 1 || group.members.iter().all(|m| limits.split.contains(m));
                        // What only prepares the operands of the refused operation may have a kernel.
                        match single {
                            true => limits.native.extend(group.roots),
                            false => limits.split.extend(group.members.iter().copied()),
                        }
                    }
                }
            }
            if !refused {
                return out;
            }
        }
    }

    /// Whether a launch of the target takes the operands of a step.
    fn takes_operands(&self, step: &tessera_tile::Step) -> bool {
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        self.target.launch_takes(count(step.operands.len()), count(step.scalars.len()))
    }

    /// The plan of a graph.
    pub fn plan(&self, graph: &Graph) -> Result<Plan, BackendError> {
        self.plan_on(graph, &self.pool)
    }

    /// The same; steps that are no kernels take the threads of `pool`.
    pub fn plan_on(&self, graph: &Graph, pool: &Arc<Pool>) -> Result<Plan, BackendError> {
        self.plan_with(graph, pool, &zeros(graph))
    }

    /// The same; of some outputs that are zero nothing is written.
    fn plan_with(&self, graph: &Graph, pool: &Arc<Pool>, zeros: &BTreeSet<NodeId>) -> Result<Plan, BackendError> {
        let laid = self.laid(graph)?;
        let mut code = self.machine_code(&laid.kernels().collect::<Vec<_>>())?.into_iter();
        self.plan_of(graph, pool, zeros, laid, &mut code)
    }

    /// Plans of graphs, each with the threads of its pool. Their kernels are compiled together.
    pub fn plan_each(&self, graphs: &[(&Graph, Arc<Pool>)]) -> Result<Vec<Plan>, BackendError> {
        let laid: Vec<Laid> = graphs.iter().map(|(g, _)| self.laid(g)).collect::<Result<_, _>>()?;
        let mut code = self.machine_code(&laid.iter().flat_map(Laid::kernels).collect::<Vec<_>>())?.into_iter();
        let both = graphs.iter().zip(laid);
        both.map(|((g, pool), laid)| self.plan_of(g, pool, &zeros(g), laid, &mut code)).collect()
    }

    /// A graph in groups, with its places in memory.
    fn laid(&self, graph: &Graph) -> Result<Laid, BackendError> {
        let mut planned = self.grouped(graph, Some(&Known::default()));
        self.tune(graph, &mut planned);
        let partition = Partition { groups: planned.iter().map(|p| p.group.clone()).collect() };
        let too_large = || BackendError::Memory(OutOfMemory { bytes: u64::MAX });
        let memory = place_buffers(graph, &partition).ok_or_else(too_large)?;
        Ok(Laid { planned, partition, memory })
    }

    /// `code` gives the kernels, and perhaps those of other graphs after them.
    fn plan_of(
        &self,
        graph: &Graph,
        pool: &Arc<Pool>,
        zeros: &BTreeSet<NodeId>,
        Laid { planned, partition, memory }: Laid,
        code: &mut impl Iterator<Item = Kernel>,
    ) -> Result<Plan, BackendError> {
        let mut plan = Plan { name: graph.name.clone(), arena_bytes: memory.arena_bytes, ..Plan::default() };
        plan.inputs = graph.inputs.iter().map(|i| buf_type(&i.ty)).collect();
        plan.consts = graph
            .nodes
            .iter()
            .filter_map(|n| if let Prim::Literal(b) = &n.prim { Some(b.clone()) } else { None })
            .collect();
        plan.outputs = outputs(graph, &partition, &memory);
        for (output, id) in plan.outputs.iter_mut().zip(&graph.outputs) {
            output.zeros = zeros.contains(id);
        }
        // What is on its way is read where it lies, which the host does.
        let ahead = self.device.shares_host_memory();
        let mut begins = vec![];
        for (p, begin) in planned.iter().zip(starts(graph, &partition)) {
            let begin = begin.iter().filter(|_| ahead).filter_map(|&i| planned.get(i));
            for e in begin {
                let first = plan.steps.len();
                plan.steps.extend(exchanges::started(graph, &e.group, &memory));
                let title = format!("Start[{}]", titles::of(graph, &e.group));
                plan.about.extend(titles::about(&plan.steps[first..], &title, None, false));
            }
            begins.push(plan.steps.len());
            if matches!(p.group.roots[..], [root] if zeros.contains(&root)) {
                (0..p.lowered.iter().map(|l| l.steps.len()).sum()).for_each(|_| drop(code.next()));
                continue;
            }
            let first = plan.steps.len();
            self.group(graph, p, &memory, pool, code, &mut plan)?;
            let counts = p.lowered.as_ref().map(|_| kernel_costs::of(graph, p));
            plan.about.extend(titles::of_group(graph, &p.group, counts, &plan.steps[first..]));
        }
        if profile::is_on() {
            titles::add_facts(graph, &partition, &begins, &mut plan);
        }
        for (i, &id) in graph.outputs.iter().enumerate() {
            let (dst, src) = (BufRef::Output(i as u32), buffer_of(&memory, id));
            let alias = plan.outputs[i].same_as_input.is_some();
            if is_scalar(graph, id) {
                let output = Operand { place: dst, bytes: bytes(graph.ty(id)) as usize };
                plan.steps.push(native::step(
                    "scalar",
                    &[],
                    &[output],
                    vec![scalar_ref(graph, id)],
                    origin(graph, id),
                    Arc::new(word_as_tensor),
                ));
            } else if src != dst && !alias {
                plan.steps.push(Step::Copy { dst, src, bytes: bytes(graph.ty(id)) });
            }
        }
        verified::plan(&plan);
        Ok(plan)
    }

    /// Adds the steps of a group. `code` gives the kernels of all groups, one after the other.
    fn group(
        &self,
        graph: &Graph,
        p: &Planned,
        memory: &MemoryPlan,
        pool: &Arc<Pool>,
        code: &mut impl Iterator<Item = Kernel>,
        plan: &mut Plan,
    ) -> Result<(), BackendError> {
        let root = p.group.roots[0];
        match (&p.lowered, p.group.kind) {
            (Some(lowered), _) => {
                kernel_costs::add(&mut plan.counts, &kernel_costs::of(graph, p));
                // What is written over is there first; where it lies in the same memory nothing is copied.
                // A host scalar is written over as a whole.
                if let Some(base) = written_base(graph, root).filter(|b| !is_scalar(graph, *b)) {
                    let (dst, src) = (buffer_of(memory, root), buffer_of(memory, base));
                    if dst != src {
                        plan.steps.push(Step::Copy { dst, src, bytes: bytes(graph.ty(root)) });
                    }
                }
                self.kernels_of(graph, &p.group, lowered, memory, code, plan)
            }
            (None, GroupKind::Copy) => {
                let source = graph.node(root).operands[0];
                let (dst, src) = (buffer_of(memory, root), buffer_of(memory, source));
                plan.steps.push(Step::Copy { dst, src, bytes: bytes(graph.ty(root)) });
                Ok(())
            }
            (None, _) if matches!(graph.node(root).prim, Prim::Exchange(_)) => {
                plan.steps.push(exchanges::exchanged(graph, &p.group, memory));
                Ok(())
            }
            (None, _) if matches!(graph.node(root).prim, Prim::Scan { .. }) => {
                self.looped(graph, &p.group, memory, pool, plan)
            }
            (None, _) => {
                self.native(graph, root, memory, pool, plan);
                Ok(())
            }
        }
    }

    fn kernels_of(
        &self,
        graph: &Graph,
        group: &Group,
        lowered: &Lowered,
        memory: &MemoryPlan,
        code: &mut impl Iterator<Item = Kernel>,
        plan: &mut Plan,
    ) -> Result<(), BackendError> {
        // Temporaries lie behind the arena; groups run one after the other and share the room.
        let (temps, end) = temps(memory, lowered);
        plan.arena_bytes = plan.arena_bytes.max(end);
        let tensors: Vec<NodeId> = group.inputs.iter().chain(&group.roots).copied().collect();
        for step in &lowered.steps {
            let bufs: Vec<BufRef> = step
                .operands
                .iter()
                .map(|o| match o {
                    tessera_tile::Operand::Tensor(i) => buffer_of(memory, tensors[*i as usize]),
                    tessera_tile::Operand::Temp(i) => BufRef::Arena(temps[*i as usize]),
                })
                .collect();
            let scalars = step.scalars.iter().map(|&i| scalar_ref(graph, group.scalars[i as usize])).collect();
            let kernel = code.next().ok_or_else(|| BackendError::Internal("a kernel was not compiled".into()))?;
            // Profiles show what is computed again in rows of its own.
            let name = match graph.node(group.roots[0]).origin.reason {
                Some(Reason::Memory(_)) => format!("{} again", kernel.name).into(),
                _ => kernel.name,
            };
            plan.steps.push(Step::Kernel {
                kernel: Kernel { name, ..kernel },
                bufs,
                scalars,
                launch: launch(&step.kernel),
                origin: origin(graph, group.roots[0]),
            });
        }
        Ok(())
    }

    /// A node that runs its reference kernel.
    fn native(&self, graph: &Graph, id: NodeId, memory: &MemoryPlan, pool: &Arc<Pool>, plan: &mut Plan) {
        let node = graph.node(id);
        let Given { inputs, scalars, sources, types } = given(graph, memory, &node.operands);
        let (name, origin) = (kernel_name_of(graph, id), origin(graph, id));
        let sums = tessera_ir::interpret::summation(node.policy);
        let run = native_kernel(graph, id, &types, &sources, pool)
            .unwrap_or_else(|| reference_kernel(node.prim.clone(), sums, types, node.ty.clone(), sources));
        let output = operand(graph, memory, id);
        plan.steps.push(native::step(&name, &inputs, &[output], scalars, origin, run));
    }
}

/// How the outputs of a plan come about.
fn outputs(graph: &Graph, partition: &Partition, memory: &MemoryPlan) -> Vec<Output> {
    let reuse = in_place(graph, partition);
    let output = |(i, &id): (usize, &NodeId)| {
        let same_as_input = match memory.place[id.0 as usize] {
            Some(BufRef::Input(n)) if !graph.inputs[n as usize].scalar => Some(n),
            _ => None,
        };
        let in_place_of = reuse.iter().find(|r| r.output == i as u32).map(|r| r.input);
        Output { ty: buf_type(graph.ty(id)), same_as_input, in_place_of, zeros: false }
    };
    graph.outputs.iter().enumerate().map(output).collect()
}

/// Where the temporaries of a group lie, and the end of the last one.
pub fn temps(memory: &MemoryPlan, lowered: &Lowered) -> (Vec<u64>, u64) {
    let mut end = memory.arena_bytes.next_multiple_of(64);
    let starts = lowered.temps.iter().map(|t| {
        let start = end;
        end += t.next_multiple_of(64);
        start
    });
    (starts.collect(), end)
}

/// A host scalar that is returned as a tensor.
fn word_as_tensor(_: &[&[u8]], outputs: &mut [&mut [u8]], words: &[u64]) -> Result<(), Stop> {
    for (out, word) in outputs.iter_mut().zip(words) {
        let n = out.len().min(8);
        out[..n].copy_from_slice(&word.to_le_bytes()[..n]);
    }
    Ok(())
}

fn reference_kernel(
    prim: Prim,
    sums: Summation,
    types: Vec<NodeType>,
    result: NodeType,
    sources: Vec<Source>,
) -> Arc<NativeFn> {
    Arc::new(move |inputs: &[&[u8]], outputs: &mut [&mut [u8]], words: &[u64]| {
        let words: Vec<[u8; 8]> = words.iter().map(|w| w.to_le_bytes()).collect();
        let operands: Vec<ArrayRef> = gather(&sources, &types, inputs, &words)
            .into_iter()
            .zip(&types)
            .map(|(bytes, t)| ArrayRef { dtype: t.dtype, shape: &t.shape, bytes })
            .collect();
        let value = reference::eval_summing(&prim, &operands, result.dtype, &result.shape, sums)
            .map_err(|e| refused(fault(e)))?;
        match outputs.first_mut() {
            Some(out) if out.len() == value.len() => out.copy_from_slice(&value),
            out => bug!("{prim:?} gives {} bytes for an output of {:?}", value.len(), out.map(|o| o.len())),
        }
        Ok(())
    })
}

/// How a kernel is launched.
fn launch(kernel: &tile::Kernel) -> Launch {
    Launch {
        grid: kernel.grid,
        grain: kernel.grain,
        scratch_bytes: kernel.scratch().1,
        checks: kernel.checks.as_slice().into(),
    }
}

fn buffer_of(memory: &MemoryPlan, id: NodeId) -> BufRef {
    match memory.place.get(id.0 as usize).copied().flatten() {
        Some(place) => place,
        None => bug!("the value {} has no place", id.0),
    }
}

fn bytes(ty: &NodeType) -> u64 {
    ty.bytes().unwrap_or(u64::MAX)
}

fn buf_type(ty: &NodeType) -> BufType {
    let Some(dtype) = tessera_base::DType::ALL.iter().position(|d| *d == ty.dtype) else {
        bug!("{:?} is no dtype of the table", ty.dtype);
    };
    let dtype = dtype as u8;
    BufType { dtype, shape: ty.shape.clone(), bytes: bytes(ty) }
}

fn is_scalar(graph: &Graph, id: NodeId) -> bool {
    matches!(graph.node(id).prim, Prim::Input(i) if graph.inputs.get(i as usize).is_some_and(|i| i.scalar))
}

fn scalar_ref(graph: &Graph, id: NodeId) -> ScalarRef {
    match graph.node(id).prim {
        Prim::Input(i) => ScalarRef::Input(i),
        _ => ScalarRef::Word(0),
    }
}

fn origin(graph: &Graph, id: NodeId) -> StepOrigin {
    let span = graph.node(id).origin.span;
    StepOrigin { item: span.item.0, start: span.start, end: span.end }
}

/// Operands as a step gets them.
struct Given {
    /// Those in memory.
    inputs: Vec<Operand>,
    /// Those that are host scalars.
    scalars: Vec<ScalarRef>,
    /// Which of both each one is.
    sources: Vec<Source>,
    types: Vec<NodeType>,
}

fn given(graph: &Graph, memory: &MemoryPlan, operands: &[NodeId]) -> Given {
    let types = operands.iter().map(|&o| graph.ty(o).clone()).collect();
    let mut given = Given { inputs: vec![], scalars: vec![], sources: vec![], types };
    for &o in operands {
        given.sources.push(if is_scalar(graph, o) {
            given.scalars.push(scalar_ref(graph, o));
            Source::Word(given.scalars.len() - 1)
        } else {
            given.inputs.push(operand(graph, memory, o));
            Source::Memory(given.inputs.len() - 1)
        });
    }
    given
}

fn operand(graph: &Graph, memory: &MemoryPlan, id: NodeId) -> Operand {
    Operand { place: buffer_of(memory, id), bytes: bytes(graph.ty(id)) as usize }
}

/// A name for people and profiles; equal kernels should get equal names.
pub fn kernel_name(graph: &Graph, group: &Group) -> String {
    let product = group.members.iter().find(|&&m| is_product(graph, m));
    let name = kernel_name_of(graph, product.copied().unwrap_or(group.roots[0]));
    if group.kind == GroupKind::Attention {
        return format!("{name}_{name}");
    }
    if group.members.len() > 1 && group.kind != GroupKind::Native { format!("{name}_fused") } else { name }
}

fn is_product(graph: &Graph, id: NodeId) -> bool {
    matches!(graph.node(id).prim, Prim::Dot { .. })
}

fn kernel_name_of(graph: &Graph, id: NodeId) -> String {
    row(&graph.node(id).prim).word().into_owned()
}
