//! Every way to run a graph, compared bit for bit with its interpretation.

use crate::bits::{Difference, difference, differs};
use crate::random::Random;
use crate::random_graph::Case;
use crate::random_schedule::redirect;
use crate::tiles;
use std::sync::Arc;
use tessera::backend::{Backend, BackendError, Options};
use tessera::cache::DiskCache;
use tessera_abi::plan::{Loop, Plan, Step};
use tessera_base::DType;
use tessera_graph::PIPELINE;
use tessera_ir::graph::Graph;
use tessera_ir::schedule::{Machine, Schedule};
use tessera_ir::{graph_text, interpret, schedule, tile, verify};
use tessera_runtime::execute::{Argument, PlanError, Workspace, execute};
use tessera_runtime::pool::Pool;
use tessera_runtime::tensor::{OutOfMemory, Tensor};

/// What one check went through.
#[derive(Clone, Copy, Default, Debug)]
pub struct Work {
    pub nodes: u64,
    pub kernels: u64,
    /// Steps that run reference kernels.
    pub native: u64,
    /// The graph stopped with a run-time error, in every way.
    pub stopped: bool,
}

/// Compiles and runs graphs on one thread and on three.
pub struct Bench {
    pub backend: Backend,
    pub machine: Machine,
    pub random_directives: bool,
    one: Pool,
    three: Arc<Pool>,
    work: Workspace,
}

/// The bytes of every output, or the error that stopped the graph.
pub type Bits = Result<Vec<Vec<u8>>, String>;

impl Bench {
    pub fn new() -> Bench {
        Bench::with(None)
    }

    /// As if for another machine: results may not depend on it. Vectors wider than this
    /// host's are taken apart by the code generator.
    pub fn with(machine: Option<Machine>) -> Bench {
        let three = Arc::new(Pool::new(3));
        let options = Options { quiet: true, always_compile: true, ..Options::default() };
        let mut backend = Backend::new(options, DiskCache::new(None), three.clone());
        let machine = machine.unwrap_or_else(tessera_schedule::host);
        backend.set_machine(machine.clone());
        Bench { backend, machine, random_directives: false, one: Pool::new(1), three, work: Workspace::default() }
    }

    /// From now on schedules are chosen for this machine.
    pub fn set_machine(&mut self, machine: Machine) {
        self.backend.set_machine(machine.clone());
        self.machine = machine;
    }

    /// From now on schedules get random directives of this seed; `None`: those of the cost model.
    pub fn set_directives(&mut self, seed: Option<u64>) {
        self.random_directives = seed.is_some();
        self.backend.adjust_schedules(seed.map(|seed| {
            let adjust = move |s: &mut Schedule| {
                // A schedule is made more than once and has to come out the same.
                let body = blake3::hash(schedule::text::print(s).as_bytes());
                let word = body.as_bytes().iter().take(8).fold(0, |w, &b| w << 8 | u64::from(b));
                redirect(s, &mut Random::new(seed ^ word));
            };
            Box::new(adjust) as Box<dyn Fn(&mut Schedule)>
        }));
    }

    /// Runs a case in every way.
    pub fn check(&mut self, case: &Case) -> Result<Work, Difference> {
        let graph = self.check_passes(case)?;
        self.check_compiled(case, &graph)
    }

    /// The kernels of a case as text, for reports.
    pub fn kernels(&self, case: &Case) -> String {
        let graph = tessera_graph::optimise(&case.graph);
        let groups = self.backend.groups(&graph);
        let steps = groups.iter().filter_map(|p| p.lowered.as_ref()).flat_map(|l| &l.steps);
        steps.map(|s| tile::text::print(&s.kernel)).collect()
    }

    /// The texts and every pass: what is printed reads back, what a pass makes verifies and
    /// means the same. Returns the optimised graph.
    pub fn check_passes(&self, case: &Case) -> Result<Graph, Difference> {
        valid("the generator", &case.graph)?;
        let expected = interpreted(&case.graph, &case.inputs);
        let mut graph = case.graph.clone();
        reads_back(&graph)?;
        for pass in PIPELINE {
            graph = (pass.run)(&graph);
            valid(pass.name, &graph)?;
            reads_back(&graph)?;
            // A pass may drop a node that would have stopped the graph, never add one.
            if expected.is_ok() {
                same(&format!("after {}", pass.name), &graph, &expected, &interpreted(&graph, &case.inputs))?;
            }
        }
        Ok(graph)
    }

    /// The compiled form of an optimised graph: its schedules and kernels verify and read back,
    /// and it gives the bits of the interpreter on one thread and on three, with memory of its
    /// own and in place.
    pub fn check_compiled(&mut self, case: &Case, graph: &Graph) -> Result<Work, Difference> {
        let groups = self.backend.groups(graph);
        for planned in &groups {
            let nodes = planned.group.members.iter().map(|m| m.to_string()).collect::<Vec<_>>().join(" ");
            if let Some(s) = &planned.schedule {
                check_schedule(s).or_else(|e| differs("schedules", format!("of {nodes}: {e}")))?;
            }
            for step in planned.lowered.iter().flat_map(|l| &l.steps) {
                check_kernel(&step.kernel).or_else(|e| differs("kernels", format!("of {nodes}: {e}")))?;
            }
        }
        tiles::check(case, graph, &groups)?;
        let plan = match self.backend.plan(graph) {
            Ok(plan) => plan,
            Err(BackendError::Internal(why) | BackendError::Unavailable(why)) => return differs("compiling", why),
            Err(BackendError::Interrupted) => return differs("compiling", "interrupted"),
            Err(BackendError::Memory(e)) => return differs("compiling", format!("no memory: {} bytes", e.bytes)),
        };
        let expected = interpreted(graph, &case.inputs);
        let held = arguments(graph, &case.inputs, 0)?;
        let got = outputs(execute(&plan, held.clone(), &self.one, &mut self.work));
        same("compiled, 1 thread", graph, &expected, &got)?;
        for (i, (arg, bytes)) in held.iter().zip(&case.inputs).enumerate() {
            if let Argument::Tensor(t) = arg
                && t.bytes() != bytes.as_slice()
            {
                return differs("compiled, 1 thread", format!("input {i} was overwritten though the caller holds it"));
            }
        }
        drop(held);
        let plan = finely(plan);
        let given = arguments(graph, &case.inputs, 1)?;
        let got = outputs(execute(&plan, given, &*self.three, &mut self.work));
        same("compiled, 3 threads, in place, off alignment", graph, &expected, &got)?;
        let native = plan.steps.iter().filter(|s| matches!(s, Step::Host { .. } | Step::Loop(_))).count() as u64;
        Ok(Work { nodes: graph.nodes.len() as u64, kernels: plan.counts.kernels, native, stopped: expected.is_err() })
    }
}

impl Default for Bench {
    fn default() -> Bench {
        Bench::new()
    }
}

/// The plan with every grid point worth a thread.
pub fn finely(mut plan: Plan) -> Plan {
    for step in &mut plan.steps {
        match step {
            Step::Kernel { launch, .. } => launch.grain = 1,
            Step::Loop(l) => {
                let body = finely(l.body.clone());
                *l = Arc::new(Loop { body, ..Loop::clone(l) });
            }
            Step::Host { .. } | Step::Copy { .. } => {}
        }
    }
    plan
}

fn valid(way: &str, graph: &Graph) -> Result<(), Difference> {
    let found = verify::verify(graph);
    if found.is_empty() { Ok(()) } else { differs(way, format!("the verifier refuses: {}", found.join("; "))) }
}

fn reads_back(graph: &Graph) -> Result<(), Difference> {
    let text = graph.to_string();
    match graph_text::parse(&text) {
        Ok(again) if again.to_string() == text => Ok(()),
        Ok(again) => differs("text of the graph", format!("reads back as\n{again}")),
        Err(e) => differs("text of the graph", format!("does not read back: {} at {}", e.message, e.at)),
    }
}

/// A schedule verifies and its text reads back.
pub fn check_schedule(s: &Schedule) -> Result<(), String> {
    schedule::verify::verify(s)?;
    let text = schedule::text::print(s);
    match schedule::text::parse(&text) {
        Ok(again) if schedule::text::print(&again) == text => Ok(()),
        Ok(again) => Err(format!("{text}reads back as\n{}", schedule::text::print(&again))),
        Err(e) => Err(format!("{text}does not read back: {} at {}", e.message, e.at)),
    }
}

/// A kernel verifies and its text reads back.
pub fn check_kernel(k: &tile::Kernel) -> Result<(), String> {
    let text = tile::text::print(k);
    tile::verify::verify(k).map_err(|e| format!("the verifier refuses: {e}\n{text}"))?;
    match tile::text::parse(&text) {
        Ok(again) if tile::text::print(&again) == text => Ok(()),
        Ok(again) => Err(format!("{text}reads back as\n{}", tile::text::print(&again))),
        Err(e) => Err(format!("{text}does not read back: {} at {}", e.message, e.at)),
    }
}

/// What the interpreter gives.
pub fn interpreted(graph: &Graph, inputs: &[Vec<u8>]) -> Bits {
    let inputs: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
    interpret::run(graph, &inputs).map_err(|e| e.error.message)
}

/// The inputs as arguments; tensors begin `offset` elements into their buffer, as rows of a
/// larger tensor do.
pub fn arguments(graph: &Graph, inputs: &[Vec<u8>], offset: usize) -> Result<Vec<Argument>, Difference> {
    let argument = |(input, bytes): (&tessera_ir::graph::Input, &Vec<u8>)| {
        if input.scalar {
            let mut word = [0; 8];
            word[..bytes.len().min(8)].copy_from_slice(&bytes[..bytes.len().min(8)]);
            return Ok(Argument::Scalar(u64::from_le_bytes(word)));
        }
        let offset = offset * input.ty.dtype.bytes();
        let all = [&vec![0xa5; offset][..], bytes].concat();
        let buffer = Tensor::from_bytes(DType::U8, &[all.len() as u64], &all)?;
        Ok(Argument::Tensor(Tensor { dtype: input.ty.dtype, shape: input.ty.shape.clone(), offset, ..buffer }))
    };
    let all: Result<Vec<Argument>, OutOfMemory> = graph.inputs.iter().zip(inputs).map(argument).collect();
    all.or_else(|_| differs("arguments", "no memory"))
}

/// What a run gave.
pub fn outputs(result: Result<Vec<Tensor>, PlanError>) -> Bits {
    match result {
        Ok(tensors) => Ok(tensors.iter().map(|t| t.bytes().to_vec()).collect()),
        Err(PlanError::Step(stop)) => Err(stop.message),
        Err(PlanError::Interrupted) => Err("interrupted".into()),
    }
}

/// Both runs gave the same; NaNs are alike.
pub fn same(way: &str, graph: &Graph, expected: &Bits, got: &Bits) -> Result<(), Difference> {
    let (expected, got) = match (expected, got) {
        (Ok(expected), Ok(got)) => (expected, got),
        (Err(a), Err(b)) if a == b => return Ok(()),
        (Err(a), Err(b)) => return differs(way, format!("stops with `{b}` instead of `{a}`")),
        (Ok(_), Err(b)) => return differs(way, format!("stops with `{b}`")),
        (Err(a), Ok(_)) => return differs(way, format!("does not stop with `{a}`")),
    };
    if expected.len() != got.len() {
        return differs(way, format!("{} outputs instead of {}", got.len(), expected.len()));
    }
    for (i, ((e, g), &id)) in expected.iter().zip(got).zip(&graph.outputs).enumerate() {
        if let Some(what) = difference(graph.ty(id).dtype, e, g) {
            return differs(way, format!("output {i} ({id}, {}): {what}", graph.ty(id)));
        }
    }
    Ok(())
}
