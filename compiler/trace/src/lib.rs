//! From a region and concrete arguments to Graph IR.
//!
//! The tracer is a partial evaluator of typed code. Tensors are nodes; everything else
//! (control flow, containers, calls, ints) happens while tracing. What it had to know about a
//! scalar argument to go on is recorded as a guard: the graph is valid for every call of the
//! same shapes in which all guards hold.

pub mod scalar;
pub mod value;
mod turns;
mod ranges;
mod graph;
mod args;
mod result;
mod eval;
mod compare;
mod stmt;
mod lvalue;
mod op;
mod epilogue;
mod turn_rows;
mod index;
mod gather;
mod assign;
mod sizes;
mod assert_types;
mod rowwise;
mod scan;
mod control;
mod branch;
mod derive;
mod per_device;
mod roll;
mod bounds;
mod tile_grid;
mod tile_program;
pub mod known;
mod builtin;
pub mod guards;
#[cfg(test)]
mod tests;

use scalar::{Known, ScalarExpr};
use std::collections::BTreeMap;
use std::sync::Arc;
use tessera_base::stack::deep;
use tessera_base::{Code, DType, Diagnostic, Sharding, Span};
use tessera_core::ir::{GlobalId, InstId, LocalId, Program, Variable};
use tessera_core::region::Region;
use tessera_ir::graph::{Calls, Graph, NodeType, Policy};
use tessera_ir::hints::KernelHints;
use value::{Key, Scalar, Value};

pub use args::leaves;

/// A concrete argument of a region.
#[derive(Clone, PartialEq, Debug)]
pub enum RegionArg {
    Int(i64),
    Float(f64),
    Bool(bool),
    Str(Arc<str>),
    None,
    DType(DType),
    Tensor {
        dtype: DType,
        shape: Vec<u64>,
        /// How it lies over a mesh.
        layout: Sharding,
    },
    List(Vec<RegionArg>),
    /// A tuple, a struct, or the captures of a function value of singleton type.
    Record(Vec<RegionArg>),
    Dict(Vec<(Key, RegionArg)>),
    /// The instance behind a closure object (see `Lowered::closures`) and what it captured.
    Closure {
        inst: InstId,
        captures: Vec<RegionArg>,
    },
}

/// A graph for a region at concrete shapes.
#[derive(Clone, PartialEq, Debug)]
pub struct Traced {
    pub graph: Graph,
    /// What to pass for each input of the graph.
    pub inputs: Vec<InputSource>,
    /// How to make the region's results, one each.
    pub results: Vec<Template>,
    /// Facts about scalar arguments that the graph relies on, in the order in which they came
    /// up: tracing with arguments that agree on the first `n` asks the same next question.
    pub guards: Vec<Guard>,
    /// What its writer should know.
    pub warnings: Vec<Diagnostic>,
}

/// Argument leaves are the tensors, ints, floats and bools of all arguments in depth-first
/// order (see [`leaves`]).
#[derive(Clone, PartialEq, Debug)]
pub enum InputSource {
    /// The tensor at this leaf.
    Tensor(u32),
    Scalar(Arc<ScalarExpr>),
}

/// How a result is made from outputs and arguments.
#[derive(Clone, PartialEq, Debug)]
pub enum Template {
    /// An output of the graph.
    Output(u32),
    /// The one element of an output.
    Element(u32, scalar::Kind),
    /// A tensor argument, unchanged.
    Argument(u32),
    Scalar(Arc<ScalarExpr>),
    Str(Arc<str>),
    None,
    DType(DType),
    Record(Vec<Template>),
    List(Vec<Template>),
    Dict(Vec<(Key, Template)>),
    Closure {
        inst: InstId,
        captures: Vec<Template>,
    },
}

#[derive(Clone, PartialEq, Debug)]
pub struct Guard {
    pub expr: Arc<ScalarExpr>,
    pub value: Known,
}

/// Traces a region at concrete arguments.
///
/// # Errors
/// What is wrong with these arguments: sizes that differ (E0708), a failing assertion, an
/// index out of range; or a region that cannot become a graph.
pub fn trace(program: &Program, region: &Region, args: &[RegionArg]) -> Result<Traced, Vec<Diagnostic>> {
    // Calls are inlined by recursion, which may need more stack than the caller has left.
    deep(STACK_BYTES, || trace_here(program, region, args, None))
}

/// As [`trace`], and holds every value against its static type.
///
/// # Errors
/// E0999 where a type that was checked is not that of the value.
pub fn trace_checked(program: &Program, region: &Region, args: &[RegionArg]) -> Result<Traced, Vec<Diagnostic>> {
    deep(STACK_BYTES, || trace_here(program, region, args, Some(assert_types::TypeAssertions::new())))
}

fn trace_here(
    program: &Program,
    region: &Region,
    args: &[RegionArg],
    assertions: Option<assert_types::TypeAssertions>,
) -> Result<Traced, Vec<Diagnostic>> {
    let mut tracer = Tracer { assertions, ..Tracer::new(program, region, args) };
    tracer.run(region, args).map_err(|d| vec![*d])?;
    Ok(tracer.finish())
}

/// Result of a step of tracing.
type R<T> = Result<T, Box<Diagnostic>>;

/// Stack for the deepest calls; memory is taken only as it is used.
const STACK_BYTES: usize = 256 << 20;
/// Calls inside calls.
const DEPTH_MAX: usize = 200;
/// Nodes of one graph: more than that is a loop that should be `op.scan` or host code.
const NODES_MAX: usize = 200_000;

/// A loop that adds more nodes than this to a graph is worth a word (W0115). A thousand that are fused into few kernels take LLVM
/// some ten seconds.
const WRITTEN_OUT_MAX: usize = 1_000;

/// Hints of kernels, where nodes of a graph or of its loops belong to one.
fn give_kernels(graph: &mut Graph, kernels: &[KernelHints]) {
    if graph.nodes.iter().any(|n| n.origin.kernel.is_some()) {
        graph.kernels = kernels.to_vec();
    }
    graph.bodies.iter_mut().for_each(|b| give_kernels(b, kernels));
}

/// State of tracing one region.
pub(crate) struct Tracer<'p> {
    program: &'p Program,
    leaf_types: Vec<NodeType>,
    leaf_names: Vec<Arc<str>>,
    levels: Vec<graph::Level>,
    /// Variables of the functions being traced, innermost last.
    frames: Vec<BTreeMap<LocalId, Value>>,
    /// What the innermost function declares of them; nothing of those of a region.
    locals: &'p [Variable],
    globals: BTreeMap<GlobalId, Value>,
    /// Where the calls being traced stand, outermost first.
    calls: Calls,
    policy: Policy,
    /// The kernel being traced, by position in `kernels`.
    kernel: Option<u32>,
    kernels: Vec<KernelHints>,
    /// By position in `kernels`: the first of the function with `@op.kernel` that it is in, if it is in one.
    functions: Vec<Option<u32>>,
    /// Inside a kernel: what follows a product is computed in its accumulator's type.
    epilogues: bool,
    /// The tile program being traced.
    tiles: Option<tile_program::Running>,
    guards: Vec<Guard>,
    results: Vec<Template>,
    outputs: Vec<tessera_ir::graph::NodeId>,
    /// Steps of loops taken so far.
    steps: usize,
    /// How many derivatives are being formed around what is traced.
    derivatives: usize,
    /// Where every value is held against its type: what sizes are.
    assertions: Option<assert_types::TypeAssertions>,
    warnings: Vec<Diagnostic>,
    /// Whether tracing stopped where elements of tensors decide whether a loop that is written out goes on.
    left_on_data: bool,
    /// How many loops around this are tried as loops of the graph.
    rolling: usize,
    /// How many sides and turns around this there are that elements of tensors may leave out: what fails there fails when it is run.
    perhaps: usize,
}

impl<'p> Tracer<'p> {
    fn new(program: &'p Program, region: &Region, args: &[RegionArg]) -> Tracer<'p> {
        let mut outermost = graph::Level::default();
        outermost.graph.name = region.name.to_string();
        let (leaf_types, leaf_names) = args::leaf_types(region, args);
        Tracer {
            program,
            leaf_types,
            leaf_names,
            levels: vec![outermost],
            frames: vec![BTreeMap::new()],
            locals: &[],
            globals: BTreeMap::new(),
            calls: Calls::default(),
            policy: region.policy,
            kernel: region.hints.as_ref().map(|_| 0),
            kernels: region.hints.iter().map(|h| KernelHints::clone(h)).collect(),
            functions: region.hints.iter().map(|_| None).collect(),
            epilogues: false,
            tiles: None,
            guards: vec![],
            results: vec![],
            outputs: vec![],
            steps: 0,
            derivatives: 0,
            assertions: None,
            warnings: vec![],
            left_on_data: false,
            rolling: 0,
            perhaps: 0,
        }
    }

    fn run(&mut self, region: &Region, args: &[RegionArg]) -> R<()> {
        self.bind(region, args);
        // A region's own statements neither return nor leave a loop.
        self.exec(&region.body)?;
        for result in &region.results {
            let value = self.eval(result)?;
            let value = self.in_place(value, &result.ty, result.span);
            let template = self.template(&value);
            self.results.push(template);
        }
        self.assert_settle()
    }

    fn finish(mut self) -> Traced {
        // The outermost level is there from the start to the end.
        let top = self.levels.swap_remove(0);
        // What may fail is computed even where no result needs it.
        let mut outputs = self.outputs;
        let unread: Vec<_> = top.checks.into_iter().filter(|c| !outputs.contains(c)).collect();
        outputs.extend(unread);
        let mut graph = Graph { outputs, ..top.graph };
        give_kernels(&mut graph, &self.kernels);
        Traced { graph, inputs: top.sources, results: self.results, guards: self.guards, warnings: self.warnings }
    }

    /// From here on nodes belong to a kernel of these hints; gives the one before.
    pub(crate) fn enter_kernel(&mut self, hints: &KernelHints) -> Option<u32> {
        self.enter(hints, true)
    }

    /// From here on nodes follow these directives too, and stay in the kernel that they are in; gives what was
    /// before.
    pub(crate) fn enter_directives(&mut self, hints: &KernelHints) -> Option<u32> {
        self.enter(hints, false)
    }

    fn enter(&mut self, hints: &KernelHints, kernel: bool) -> Option<u32> {
        let outer = self.kernel;
        let hints = outer.map_or_else(|| hints.clone(), |k| hints.within(&self.kernels[k as usize]));
        let function = |at: usize| if kernel { Some(at as u32) } else { self.kernel_function(outer) };
        let known = (0..self.kernels.len()).find(|&i| self.kernels[i] == hints && self.functions[i] == function(i));
        let at = known.unwrap_or(self.kernels.len());
        if known.is_none() {
            self.functions.push(function(at));
            self.kernels.push(hints);
        }
        self.kernel.replace(at as u32)
    }

    /// The function with `@op.kernel` that nodes of a kernel are in.
    pub(crate) fn kernel_function(&self, kernel: Option<u32>) -> Option<u32> {
        self.functions.get(kernel? as usize).copied().flatten()
    }

    /// An error at a place, with the calls that led there.
    pub(crate) fn error(&self, code: Code, span: Span, message: impl Into<String>) -> Box<Diagnostic> {
        Box::new(self.in_calls(Diagnostic::new(code, span, message)))
    }

    pub(crate) fn in_calls(&self, mut d: Diagnostic) -> Diagnostic {
        for &call in self.calls.iter().rev() {
            if d.labels.iter().all(|l| l.span != call) {
                d = d.with_label(call, "called here");
            }
        }
        d
    }

    /// The value of a scalar, which from now on is a condition for using the graph.
    ///
    /// # Errors
    /// E0301 for a scalar that the graph itself computes.
    pub(crate) fn known(&mut self, s: &Scalar, what: &str, span: Span) -> R<Known> {
        match s {
            Scalar::Known(v) => Ok(*v),
            Scalar::Late(expr, value) => {
                if !self.guards.iter().any(|g| g.expr == *expr) {
                    self.guards.push(Guard { expr: expr.clone(), value: *value });
                }
                Ok(*value)
            }
            Scalar::Node(..) => {
                let message = format!("{what} depends on the elements of a tensor");
                let mut d = self.error(Code::E0301, span, message);
                d.notes.push("a graph function is compiled before its tensors are computed".into());
                let help = match what {
                    "the argument `size`" => {
                        "say with `size=n` how many there are at most, as in `op.nonzero(x, size=n)`; or keep the shape: `op.where(mask, x, 0)`"
                    }
                    _ => "choose element by element with `op.where`, or loop with `op.scan` or `op.fori`",
                };
                Err(Box::new(d.help(help)))
            }
        }
    }

    fn node_count(&self) -> usize {
        self.levels.iter().map(|l| l.graph.nodes.len()).sum()
    }

    /// W0115 for a loop that added so many nodes: the innermost that adds too many is named.
    fn written_out(&mut self, span: Span, nodes: usize, warned: usize) {
        if nodes <= WRITTEN_OUT_MAX || self.warnings.len() > warned {
            return;
        }
        let message = format!("this loop is written out: its {nodes} operations take long to compile");
        let d = Diagnostic::new(Code::W0115, span, message)
            .note("each turn does something else: it fills a list, or asks for the number of the turn")
            .help("compute with all turns at once, by broadcasting or with `autodiff.vmap`")
            .help("where a turn needs the one before, `op.scan` keeps all results and `op.fori` the last");
        self.warnings.push(d);
    }

    /// Fails when the graph has grown beyond what can be compiled.
    pub(crate) fn budget(&mut self, span: Span) -> R<()> {
        self.steps += 1;
        let nodes = self.node_count();
        if nodes <= NODES_MAX && self.steps <= 10 * NODES_MAX {
            return Ok(());
        }
        let message = format!("the graph of this function has more than {NODES_MAX} operations");
        let d = self.error(Code::E0901, span, message);
        Err(Box::new(d.note("loops of a graph function are unrolled").help("write the loop as `op.scan` or `op.fori`")))
    }
}
