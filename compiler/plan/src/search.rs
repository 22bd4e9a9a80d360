//! The best ways to divide a model over devices: every factorisation in closed form, the best ones
//! event by event.

use crate::memory::memory;
use crate::model::{Gpt, Job, Recompute, States};
use crate::stack::{Sends, Stack};
use crate::topology::Topology;
use crate::training::{Step, step};

/// What is looked for.
#[derive(Clone, PartialEq, Debug)]
pub struct Wanted {
    pub devices: u64,
    pub batch: u64,
    pub dtype: String,
    /// Devices that a sequence may be divided over at most.
    pub context_max: u64,
    pub stack: Stack,
    /// Choices that are fixed.
    pub fixed: Fixed,
}

/// Numbers of a job that are given; the others are searched.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Fixed {
    pub tensor: Option<u64>,
    pub pipeline: Option<u64>,
    pub data: Option<u64>,
    pub chunks: Option<u64>,
    pub micro: Option<u64>,
    pub recompute: Option<Recompute>,
    pub states: Option<States>,
    /// Wherever matrices are divided unless given, as far as the program can.
    pub sequence_parallel: Option<bool>,
}

/// A way with what it takes.
#[derive(Clone, PartialEq, Debug)]
pub struct Way {
    pub job: Job,
    pub step: Step,
}

/// Share of the memory that may be planned with.
pub const MEMORY_SHARE: f64 = 0.95;

/// How many ways are played event by event.
const PLAYED: usize = 100;

fn divisors(n: u64) -> Vec<u64> {
    (1..=n).filter(|d| n.is_multiple_of(*d)).collect()
}

fn choice(fixed: Option<u64>, all: Vec<u64>) -> Vec<u64> {
    match fixed {
        Some(n) => vec![n],
        None => all,
    }
}

/// The ways that fit, the fastest first: one for each factorisation, with its best choice of the
/// rest. Equal times keep the order of the factors.
pub fn search(topology: &Topology, model: &Gpt, wanted: &Wanted) -> Vec<Way> {
    let (n, wanted) = (wanted.devices, &Wanted { stack: wanted.stack.on(topology), ..wanted.clone() });
    let mut out: Vec<Way> = vec![];
    for tensor in choice(wanted.fixed.tensor, divisors(n)) {
        for context in divisors(n).into_iter().filter(|c| *c <= wanted.context_max) {
            for pipeline in
                choice(wanted.fixed.pipeline, divisors(n).into_iter().filter(|p| *p <= model.layers).collect())
            {
                let inner = tensor.saturating_mul(context).saturating_mul(pipeline);
                if inner == 0 || !n.is_multiple_of(inner) || wanted.fixed.data.is_some_and(|d| d != n / inner) {
                    continue;
                }
                let ways = rest(model, wanted, [tensor, pipeline, context, n / inner]);
                let fits = |job: &Job| memory(model, job).total() <= MEMORY_SHARE * topology.device.memory_bytes as f64;
                let timed =
                    ways.into_iter().filter_map(|job| least_again(model, job, &wanted.fixed, fits)).filter_map(|job| {
                        let step = step(topology, model, &job, false).ok()?;
                        Some(Way { job, step })
                    });
                out.extend(timed.min_by(|a, b| a.step.seconds.total_cmp(&b.step.seconds)));
            }
        }
    }
    out.sort_by(|a, b| a.step.seconds.total_cmp(&b.step.seconds));
    for way in out.iter_mut().take(PLAYED) {
        if let Ok(played) = step(topology, model, &way.job, true) {
            way.step = played;
        }
    }
    out.sort_by(|a, b| a.step.seconds.total_cmp(&b.step.seconds));
    out
}

/// A way that fits, with as few layers computed again as a whole as that takes.
fn least_again(model: &Gpt, job: Job, fixed: &Fixed, fits: impl Fn(&Job) -> bool) -> Option<Job> {
    if !job.is_layer_again() || fixed.recompute.is_some() {
        return fits(&job).then_some(job);
    }
    let few = (1..job.chunk_layers(model)).map(|again| Job { again: Some(again), ..job.clone() }).find(|j| fits(j));
    few.or_else(|| fits(&job).then_some(job))
}

/// The choices that are left once the factors are.
fn rest(model: &Gpt, wanted: &Wanted, [tensor, pipeline, context, data]: [u64; 4]) -> Vec<Job> {
    let mut out = vec![];
    let per_stage = model.layers.div_ceil(pipeline);
    let is_tessera = wanted.stack.sends == Sends::Tessera;
    let chunks = if pipeline > 1 && !is_tessera { (1..=per_stage.min(16)).collect() } else { vec![1] };
    let recomputes = match wanted.fixed.recompute {
        Some(r) => vec![r],
        None => vec![Recompute::Selective, Recompute::Full],
    };
    let states = match wanted.fixed.states {
        Some(s) => vec![s],
        None if is_tessera => vec![States::Optimizer],
        None => vec![States::Optimizer, States::All],
    };
    for chunks in choice(wanted.fixed.chunks, chunks) {
        for micro in choice(wanted.fixed.micro, vec![1, 2, 4, 8]) {
            for &recompute in &recomputes {
                for &states in &states {
                    out.push(Job {
                        tensor,
                        pipeline,
                        context,
                        data,
                        chunks,
                        micro,
                        batch: wanted.batch,
                        recompute,
                        again: None,
                        states,
                        sequence_parallel: tensor > 1 && wanted.fixed.sequence_parallel.unwrap_or(!is_tessera),
                        dtype: wanted.dtype.clone(),
                        stack: wanted.stack,
                    });
                }
            }
        }
    }
    out.retain(|job| job.check(model).is_ok());
    out
}
