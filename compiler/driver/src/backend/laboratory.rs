//! How schedules are measured: a plan of one kernel alone, on random data, in turn with another one.

pub mod energy;

use super::{Backend, buf_type, launch};
use crate::tune::{Bench, RUNS, WARM_UPS, median, records};
use std::rc::Rc;
use std::sync::Barrier;
use std::time::Instant;
use tessera_abi::plan::{BufRef, Output, Plan, ScalarRef, Step, StepOrigin};
use tessera_base::DType;
use tessera_ir::graph::{Graph, NodeId};
use tessera_ir::group::Group;
use tessera_ir::hints::Objective;
use tessera_ir::schedule::Schedule;
use tessera_runtime::execute::{Argument, Workspace, execute};
use tessera_runtime::pool::Pool;
use tessera_runtime::tensor::Tensor;
use tessera_tile::Lowered;

/// A candidate whose warm-ups take so many times what the best one takes is given up.
const HOPELESS: f64 = 1.5;
/// Nanoseconds of a measurement at least: shorter calls are made several times.
const LEAST_NS: f64 = 50_000.0;
/// The same of energy, whose counters move a thousand times a second.
const LEAST_ENERGY_NS: f64 = 30e6;
/// The same of calls of all threads at once.
const LEAST_AT_ONCE_NS: f64 = 2e6;
/// Compilations that a time to compile is the median of.
const COMPILATIONS: usize = 3;
/// Scratch below which schedules are alike.
const SCRATCH: f64 = 4096.0;
/// Samples that stay ready: the start comes again and again, and those of the last round.
const READY: usize = 10;

/// A kernel with everything that measuring it needs.
pub struct Laboratory<'b> {
    backend: &'b Backend,
    graph: &'b Graph,
    group: &'b Group,
    objective: Objective,
    args: Vec<Argument>,
    work: Workspace,
    /// What the first sample gave.
    expected: Option<Vec<Tensor>>,
    /// Of objectives by calls at once: a pool of one thread and operands for each.
    callers: Vec<Caller>,
    ready: Vec<(Vec<String>, Rc<Sample>)>,
}

struct Caller {
    pool: std::sync::Arc<Pool>,
    args: Vec<Argument>,
}

/// A schedule that can be called.
struct Sample {
    plan: Plan,
    lowered: Lowered,
    /// Calls of one measurement.
    calls: usize,
    /// The quickest call to warm up.
    quickest: f64,
}

impl<'b> Laboratory<'b> {
    /// `None` where there is no memory for the operands.
    pub fn new(
        backend: &'b Backend,
        graph: &'b Graph,
        group: &'b Group,
        objective: Objective,
    ) -> Option<Laboratory<'b>> {
        let mut callers = vec![];
        // Devices of their own take one call after the other.
        if objective == Objective::Throughput && backend.device.shares_host_memory() {
            for _ in 0..backend.pool.threads() {
                callers
                    .push(Caller { pool: std::sync::Arc::new(backend.pool.another(1)), args: operands(graph, group)? });
            }
        }
        let (args, work) = (operands(graph, group)?, Workspace::default());
        Some(Laboratory { backend, graph, group, objective, args, work, expected: None, callers, ready: vec![] })
    }

    /// A schedule that was warmed up and gives the bits of the first one.
    fn sample(&mut self, s: &Schedule) -> Option<Rc<Sample>> {
        if self.backend.pool.is_interrupted() {
            return None;
        }
        let directives = records::directives(s);
        if let Some((_, sample)) = self.ready.iter().find(|(d, _)| *d == directives) {
            return Some(sample.clone());
        }
        let lowered = tessera_tile::lower(s).ok()?;
        let plan = self.plan(s, &lowered)?;
        let mut quickest = f64::INFINITY;
        for _ in 0..WARM_UPS {
            let begin = Instant::now();
            let outputs = execute(&plan, self.args.clone(), &*self.backend.device, &mut self.work).ok()?;
            quickest = quickest.min(begin.elapsed().as_nanos() as f64);
            match &self.expected {
                None => self.expected = Some(outputs),
                // A schedule that changes results is a fault of the compiler, and is not taken.
                Some(e) if e.iter().zip(&outputs).any(|(a, b)| a.host() != b.host()) => return None,
                Some(_) => {}
            }
        }
        let least = if self.objective == Objective::Energy { LEAST_ENERGY_NS } else { LEAST_NS };
        let calls = (least / quickest.max(1.0)).ceil().clamp(1.0, 1e6) as usize;
        let sample = Rc::new(Sample { plan, lowered, calls, quickest });
        if self.ready.len() == READY {
            // The first one is the start.
            self.ready.remove(1);
        }
        self.ready.push((directives, sample.clone()));
        Some(sample)
    }

    /// A plan of one group alone. Its kernels are compiled for this search only.
    fn plan(&self, s: &Schedule, lowered: &Lowered) -> Option<Plan> {
        let (graph, group, target) = (self.graph, self.group, &self.backend.target);
        let mut plan = Plan { name: s.name.clone(), ..Plan::default() };
        plan.inputs = group.inputs.iter().map(|&i| buf_type(graph.ty(i))).collect();
        plan.outputs = group
            .roots
            .iter()
            .map(|&r| Output { ty: buf_type(graph.ty(r)), same_as_input: None, in_place_of: None, zeros: false })
            .collect();
        let mut temps = vec![];
        for bytes in &lowered.temps {
            temps.push(plan.arena_bytes);
            plan.arena_bytes += bytes.next_multiple_of(64);
        }
        let inputs = group.inputs.len() as u32;
        for step in &lowered.steps {
            let object = target.compile(&step.kernel).ok()?;
            let kernel = target.load(&object, &step.kernel.name).ok()?;
            let place = |o: &tessera_tile::Operand| match *o {
                tessera_tile::Operand::Tensor(i) if i < inputs => BufRef::Input(i),
                tessera_tile::Operand::Tensor(i) => BufRef::Output(i - inputs),
                tessera_tile::Operand::Temp(i) => BufRef::Arena(temps[i as usize]),
            };
            let word = |&i: &u32| match s.scalars[i as usize] {
                DType::F64 => ScalarRef::Word(1.0f64.to_bits()),
                _ => ScalarRef::Word(1),
            };
            plan.steps.push(Step::Kernel {
                kernel,
                bufs: step.operands.iter().map(place).collect(),
                scalars: step.scalars.iter().map(word).collect(),
                launch: launch(&step.kernel),
                origin: StepOrigin::default(),
            });
        }
        Some(plan)
    }

    /// What one measurement of a sample comes to.
    fn measure(&mut self, sample: &Sample) -> Option<f64> {
        match self.objective {
            Objective::Memory => Some(self.scratch(&sample.lowered)),
            Objective::Compile => self.compilation(&sample.lowered),
            Objective::Throughput if !self.callers.is_empty() => self.at_once(sample),
            Objective::Energy => {
                let before = energy::read().ok()?;
                self.calls(sample)?;
                Some(energy::read().ok()?.since(&before) / sample.calls as f64)
            }
            _ => Some(self.calls(sample)? / sample.calls as f64),
        }
    }

    /// Nanoseconds of the calls of a measurement.
    fn calls(&mut self, sample: &Sample) -> Option<f64> {
        let begin = Instant::now();
        for _ in 0..sample.calls {
            execute(&sample.plan, self.args.clone(), &*self.backend.device, &mut self.work).ok()?;
        }
        Some(begin.elapsed().as_nanos() as f64)
    }

    /// Nanoseconds of a call where each thread makes its own. Threads start together, each after a call to warm up, so that
    /// starting them is no part of it.
    fn at_once(&self, sample: &Sample) -> Option<f64> {
        let plan = &sample.plan;
        let calls = ((LEAST_AT_ONCE_NS / sample.quickest.max(1.0)).ceil().clamp(1.0, 1e6)) as usize;
        let together = Barrier::new(self.callers.len());
        let call = |caller: &Caller| {
            let mut work = Workspace::default();
            let mut once = || execute(plan, caller.args.clone(), &*caller.pool, &mut work).is_ok();
            let warm = once();
            together.wait();
            let begin = Instant::now();
            (warm && (0..calls).all(|_| once())).then(|| begin.elapsed().as_nanos() as f64)
        };
        let times: Option<Vec<f64>> = std::thread::scope(|scope| {
            let threads: Vec<_> = self.callers.iter().map(|caller| scope.spawn(|| call(caller))).collect();
            threads.into_iter().map(|t| t.join().ok().flatten()).collect()
        });
        let slowest = times?.into_iter().fold(0.0, f64::max);
        Some(slowest / (calls * self.callers.len()) as f64)
    }

    /// Bytes that a schedule needs beside its operands: between its kernels, and for each thread.
    fn scratch(&self, lowered: &Lowered) -> f64 {
        let between: u64 = lowered.temps.iter().sum();
        let inside = lowered.steps.iter().map(|s| s.kernel.scratch().1).max().unwrap_or(0);
        SCRATCH + between as f64 + (inside * self.backend.pool.threads() as u64) as f64
    }

    /// Nanoseconds to compile the kernels of a schedule.
    fn compilation(&self, lowered: &Lowered) -> Option<f64> {
        let begin = Instant::now();
        for step in &lowered.steps {
            self.backend.target.compile(&step.kernel).ok()?;
        }
        Some(begin.elapsed().as_nanos() as f64)
    }

    /// How many measurements a cost is the median of.
    fn runs(&self) -> usize {
        match self.objective {
            Objective::Memory => 1,
            Objective::Compile => COMPILATIONS,
            _ => RUNS,
        }
    }

    fn is_timed(&self) -> bool {
        !matches!(self.objective, Objective::Memory | Objective::Compile)
    }
}

impl Bench for Laboratory<'_> {
    fn beside(&mut self, candidate: &Schedule, best: &Schedule) -> Option<(f64, f64)> {
        let best = self.sample(best)?;
        let candidate = self.sample(candidate)?;
        // Of other objectives the time of a call on all threads says little.
        if self.objective == Objective::Latency && candidate.quickest > best.quickest * HOPELESS {
            return Some((candidate.quickest, best.quickest));
        }
        let (mut costs, mut beside) = (vec![], vec![]);
        for _ in 0..self.runs() {
            beside.push(self.measure(&best)?);
            costs.push(self.measure(&candidate)?);
        }
        Some((median(costs), median(beside)))
    }

    fn all(&mut self, finalists: &[Schedule]) -> Option<Vec<f64>> {
        let samples: Vec<Rc<Sample>> = finalists.iter().map(|s| self.sample(s)).collect::<Option<_>>()?;
        // Which sets of the caches operands share is chance: what wins has to do so for several places.
        if self.is_timed() {
            (self.args, self.work) = (operands(self.graph, self.group)?, Workspace::default());
        }
        let mut costs = vec![vec![]; samples.len()];
        for _ in 0..self.runs() {
            for (cost, sample) in costs.iter_mut().zip(&samples) {
                cost.push(self.measure(sample)?);
            }
        }
        Some(costs.into_iter().map(median).collect())
    }
}

/// Random operands of a group; `None` where there is no memory for them.
fn operands(graph: &Graph, group: &Group) -> Option<Vec<Argument>> {
    let one = |&input: &NodeId| {
        let ty = graph.ty(input);
        let bytes = sample_data(ty.dtype, ty.elems()?);
        Some(Argument::Tensor(Tensor::from_bytes(ty.dtype, &ty.shape, &bytes).ok()?))
    };
    group.inputs.iter().map(one).collect()
}

/// Numbers for a measurement: floats from 1 to 2, ints 1 to 3, so that nothing overflows,
/// divides by zero or is denormal.
fn sample_data(dtype: DType, elems: u64) -> Vec<u8> {
    let mut out = Vec::with_capacity(elems as usize * dtype.bytes());
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    for _ in 0..elems {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let r = state >> 40;
        let f32_bits = 0x3f80_0000 | (r as u32 & 0x7f_ffff);
        let word = match dtype {
            DType::F64 => 0x3ff0_0000_0000_0000 | (r << 28),
            DType::C64 => u64::from(f32_bits) << 32 | u64::from(f32_bits),
            DType::Bf16 => 0x3f80 | (r & 0x7f),
            DType::F16 => 0x3c00 | (r & 0x3ff),
            DType::F8E4M3 => 0x38 | (r & 7),
            DType::F8E5M2 => 0x3c | (r & 3),
            DType::Bool => r & 1,
            d if d.is_float() => u64::from(f32_bits),
            _ => 1 + r % 3,
        };
        out.extend_from_slice(&word.to_le_bytes()[..dtype.bytes()]);
    }
    out
}
