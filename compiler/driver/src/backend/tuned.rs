//! Schedules that were found by measuring: which record belongs to a kernel, and how a
//! schedule is measured.

use super::{Backend, Planned, buf_type, kernel_name, launch};
use crate::tune::{self, RUNS, WARM_UPS, median, records};
use std::rc::Rc;
use std::time::Instant;
use tessera_abi::plan::{BufRef, Output, Plan, ScalarRef, Step, StepOrigin};
use tessera_base::DType;
use tessera_ir::graph::{Graph, NodeId};
use tessera_ir::group::Group;
use tessera_ir::schedule::{self, Schedule};
use tessera_runtime::execute::{Argument, Workspace, execute};
use tessera_runtime::tensor::Tensor;

/// Bytes of operands above which a search would take too much memory.
const BYTES_MAX: u64 = 2 << 30;
/// A sample whose warm-ups take so many times the best so far is given up.
const HOPELESS: f64 = 1.5;

/// How a kernel is found again.
struct Key {
    cache: String,
    hash: String,
}

impl Backend {
    /// The record of a kernel that is tuned: everything that decides which schedule is best.
    fn key(&self, graph: &Graph, group: &Group, s: &Schedule) -> Option<Key> {
        let cache = tessera_schedule::hints(graph, group)?.autotune.as_ref()?.to_string();
        let policy = policy_name(graph, group);
        let body = schedule::text::print(s);
        let hints = tessera_schedule::hints(graph, group).map(|h| h.to_string()).unwrap_or_default();
        let architecture = self.target.fingerprint();
        let machine = format!("{:?};{architecture};{}", self.machine, self.pool.threads());
        let text = format!("{body}\n{hints}\n{policy}\n{machine}\n{}", env!("CARGO_PKG_VERSION"));
        Some(Key { cache, hash: blake3::hash(text.as_bytes()).to_hex().to_string() })
    }

    /// The schedule that an earlier search found, where there is one.
    pub(super) fn recorded(&self, graph: &Graph, group: &Group, s: &Schedule) -> Option<Schedule> {
        let key = self.key(graph, group, s)?;
        let record = self.records.find(&key.cache, &key.hash)?;
        records::with_directives(s, &record.directives)
    }

    /// Searches a schedule for every kernel that is to be tuned and has no record yet.
    pub(super) fn tune(&self, graph: &Graph, planned: &mut [Planned]) {
        if !self.target.is_timed() {
            return;
        }
        for p in planned {
            let Some(start) = &p.start else { continue };
            let Some(key) = self.key(graph, &p.group, start) else { continue };
            if self.records.find(&key.cache, &key.hash).is_some() {
                continue;
            }
            let Some(outcome) = self.search(graph, &p.group, start) else { continue };
            if self.options.verbose {
                eprintln!(
                    "tuned `{}`: {} samples, {:.1} µs instead of {:.1} µs",
                    start.name,
                    outcome.samples,
                    outcome.best_ns / 1e3,
                    outcome.start_ns / 1e3
                );
            }
            let operand = |o: &schedule::Operand| format!("{} {} {}", o.name, o.elems, o.dtype);
            let record = records::Record {
                operator: kernel_name(graph, &p.group),
                operands: start.operands.iter().map(operand).collect(),
                policy: policy_name(graph, &p.group),
                architecture: self.target.fingerprint(),
                threads: self.pool.threads(),
                compiler: env!("CARGO_PKG_VERSION").into(),
                directives: records::directives(&outcome.best),
                samples: outcome.samples,
                start_ns: outcome.start_ns as u64,
                best_ns: outcome.best_ns as u64,
            };
            self.records.add(&key.cache, &key.hash, record);
            if let Ok(lowered) = tessera_tile::lower(&outcome.best) {
                (p.schedule, p.lowered) = (Some(outcome.best), Some(Rc::new(lowered)));
            }
        }
    }

    fn search(&self, graph: &Graph, group: &Group, start: &Schedule) -> Option<tune::Outcome> {
        let operands: Vec<NodeId> = group.inputs.iter().chain(&group.roots).copied().collect();
        let total = operands.iter().try_fold(0u64, |n, &o| n.checked_add(graph.ty(o).bytes()?))?;
        if total > BYTES_MAX {
            return None;
        }
        let mut args = vec![];
        for &input in &group.inputs {
            let ty = graph.ty(input);
            let bytes = sample_data(ty.dtype, ty.elems()?);
            args.push(Argument::Tensor(Tensor::from_bytes(ty.dtype, &ty.shape, &bytes).ok()?));
        }
        let mut work = Workspace::default();
        let mut expected: Option<Vec<Tensor>> = None;
        tune::search(start, &mut |s, limit| {
            let plan = self.sample(graph, group, s)?;
            let mut time = || -> Option<(f64, Vec<Tensor>)> {
                let begin = Instant::now();
                let outputs = execute(&plan, args.clone(), &*self.device, &mut work).ok()?;
                Some((begin.elapsed().as_nanos() as f64, outputs))
            };
            let mut quickest = f64::INFINITY;
            for _ in 0..WARM_UPS {
                let (ns, outputs) = time()?;
                quickest = quickest.min(ns);
                match &expected {
                    None => expected = Some(outputs),
                    // A schedule that changes results is a fault of the compiler, and is not taken.
                    Some(e) if e.iter().zip(&outputs).any(|(a, b)| a.host() != b.host()) => return None,
                    Some(_) => {}
                }
            }
            if limit.is_some_and(|best| quickest > best * HOPELESS) {
                return None;
            }
            let times: Option<Vec<f64>> = (0..RUNS).map(|_| time().map(|(ns, _)| ns)).collect();
            times.map(median)
        })
    }

    /// A plan of one group alone. Its kernels are compiled for this search only.
    fn sample(&self, graph: &Graph, group: &Group, s: &Schedule) -> Option<Plan> {
        let lowered = tessera_tile::lower(s).ok()?;
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
            let object = self.target.compile(&step.kernel).ok()?;
            let kernel = self.target.load(&object, &step.kernel.name).ok()?;
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
}

fn policy_name(graph: &Graph, group: &Group) -> String {
    group.roots.first().map_or("", |&r| graph.node(r).policy.name()).into()
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
