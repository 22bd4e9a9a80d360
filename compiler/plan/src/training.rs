//! The time of a training step: layers through a pipeline, exchanges between replicas, the optimiser.

use crate::collective::{Collective, Group};
use crate::layer::{ends, layer};
use crate::memory::{Memory, memory};
use crate::model::{Gpt, Job, States};
use crate::pipeline::{Parts, Pipeline, Schedule};
use crate::roofline::Work;
use crate::stack::{Overlap, Sends, slowest};
use crate::topology::Topology;
use serde::Serialize;

/// What one step takes, in seconds and bytes on one device.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Step {
    pub seconds: f64,
    /// Share of the step in which the pipeline waits.
    pub bubble: f64,
    /// Exchanges between parts of matrices and of sequences that no work hides.
    pub exposed_tensor: f64,
    /// Exchanges between stages.
    pub exposed_pipeline: f64,
    /// Exchanges between replicas that no work hides.
    pub exposed_data: f64,
    pub optimizer: f64,
    /// For the slowest node.
    pub waiting: f64,
    /// Bytes that a device's links carry, by what they are for.
    pub tensor_bytes: f64,
    pub pipeline_bytes: f64,
    pub data_bytes: f64,
    /// Bytes of the device that needs most.
    pub memory: f64,
    /// Operations by the usual formula, in TFLOP/s and device.
    pub tflops: f64,
    /// The same as a share of the peak.
    pub mfu: f64,
}

/// Exchanges between stages: seconds of one, its bytes, how many each microbatch waits for.
fn stages(topology: &Topology, model: &Gpt, job: &Job) -> (f64, f64, f64) {
    if job.pipeline < 2 {
        return (0.0, 0.0, 0.0);
    }
    let tokens = (model.seq * job.micro) as f64 / job.context as f64;
    // Devices that divide a matrix send a part each of what all of them have.
    let share = if job.stack.sends == Sends::Megatron { job.tensor as f64 } else { 1.0 };
    let bytes = job.activation_bytes() * tokens * model.hidden as f64 / share;
    let apart = Group::new(job.pipeline, job.devices() / job.pipeline, topology.node());
    let seconds = topology.collective(Collective::Point, apart, bytes);
    // With several chunks other work goes on meanwhile, where exchanges are overlapped at all.
    let waits = if job.stack.overlap == Overlap::All && job.chunks > 1 { 0.0 } else { 1.0 };
    (seconds, bytes, waits)
}

/// Exchanges between replicas in a step: seconds that show, bytes that a device's links carry.
fn replicas(topology: &Topology, model: &Gpt, job: &Job, forward: f64, backward: f64) -> (f64, f64) {
    let n = job.data * job.context;
    if n < 2 {
        return (0.0, 0.0);
    }
    let layers = (model.layers as f64 / job.pipeline as f64).max(1.0);
    let ends = (model.vocab * model.hidden) as f64;
    let numbers = (model.layer_parameters() * layers + ends) / job.tensor as f64;
    let group = Group::new(n, job.tensor, topology.node());
    let cost = |what: Collective, bytes: f64| {
        (layers * topology.collective(what, group, bytes / layers), what.carried(bytes, n))
    };
    // Gradients of a chunk are whole after its last microbatch, and those of all but the first chunk before the last
    // microbatches go through the first; likewise for parameters.
    let (p, v) = (job.pipeline as f64, job.chunks as f64);
    let rounds = if job.chunks > 1 && job.states != States::All { (p * (v - 1.0) + 1.0) / v } else { 1.0 };
    // All of it but one layer's goes along with that work.
    let left = |exchange: f64, work: f64| {
        if job.stack.overlap == Overlap::None {
            return exchange;
        }
        let work = rounds * work;
        let both = exchange.min(work);
        (exchange - work * (1.0 - 1.0 / layers)).max(exchange / layers) + topology.device.busy * both
    };
    let (scatter, gather) =
        (cost(Collective::ReduceScatter, 4.0 * numbers), cost(Collective::AllGather, job.parameter_bytes() * numbers));
    let whole = cost(Collective::AllReduce, 4.0 * numbers);
    match job.states {
        States::Whole => (left(whole.0, backward), whole.1),
        States::Optimizer => (left(scatter.0, backward) + left(gather.0, forward), scatter.1 + gather.1),
        // Parameters come for each pass of each microbatch.
        States::All => {
            let times = job.microbatches() as f64;
            let exposed = left(gather.0, forward) + left(gather.0 + scatter.0, backward);
            (times * exposed, times * (2.0 * gather.1 + scatter.1))
        }
    }
}

fn optimizer(topology: &Topology, model: &Gpt, job: &Job) -> f64 {
    let layers = model.layers as f64 / job.pipeline as f64;
    let numbers = (model.layer_parameters() * layers + (model.vocab * model.hidden) as f64) / job.tensor as f64;
    let share = if job.states == States::Whole { 1.0 } else { (job.data * job.context) as f64 };
    // Gradient, parameter in both forms, two means: read and written; in steps as PyTorch's loops over tensors have them:
    // the decay (8), both means (20 each), the root (8), the sum (8), the quotient (16).
    let bytes = if job.stack.fused { 30.0 } else { 80.0 };
    let step = topology.device.time(&Work::map(numbers / share, 12.0, bytes), "bf16");
    // All gradients in four bytes: set to zero, read for their norm, scaled.
    step + topology.device.time(&Work::map(numbers, 3.0, 16.0), "bf16")
}

fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9).clamp(0.0, 1e15).round() as u64
}

/// The pipeline of a job, in nanoseconds.
fn pipeline(topology: &Topology, model: &Gpt, job: &Job) -> Pipeline {
    let time = layer(topology, model, job);
    let (embedding, head) = ends(topology, model, job);
    let (hop, _, waits) = stages(topology, model, job);
    let (p, v) = (job.pipeline, job.chunks);
    let part = |stage: u64, chunk: u64| {
        // Layers that are left over go to the chunks in the middle, away from both ends.
        let place = chunk * p + stage;
        let (each, more) = (model.layers / (p * v), model.layers % (p * v));
        let before = (p * v - more) / 2;
        let layers = (each + u64::from((before..before + more).contains(&place))) as f64;
        let first = if place == 0 { embedding } else { 0.0 };
        let last = if place + 1 == p * v { head } else { 0.0 };
        Parts {
            forward: nanoseconds(layers * time.forward + first / 3.0 + last / 3.0 + waits * hop),
            backward: nanoseconds(
                layers * time.backward + job.again_of(layers) * time.again + (first + last) * 2.0 / 3.0 + waits * hop,
            ),
            weights: nanoseconds(layers * time.weights),
        }
    };
    Pipeline {
        schedule: if v > 1 { Schedule::Interleaved } else { Schedule::OneEach },
        microbatches: job.microbatches(),
        parts: (0..p).map(|s| (0..v).map(|c| part(s, c)).collect()).collect(),
        hop: if waits > 0.0 { 0 } else { nanoseconds(hop) },
    }
}

/// Pipelines of more parts are not played.
const PARTS_MAX: u64 = 1 << 22;

/// Seconds of the pipeline: as an estimate from sums, or event by event.
fn through(pipeline: &Pipeline, exact: bool) -> f64 {
    let sums = pipeline.parts.iter().map(|c| c.iter().map(|p| p.forward + p.backward).sum::<u64>());
    let chunks = pipeline.parts.first().map_or(1, Vec::len) as u64;
    let slowest = sums.clone().max().unwrap_or(0);
    let others: u64 = sums.sum::<u64>() - slowest;
    let estimate = (pipeline.microbatches as f64 * slowest as f64 + (others / chunks) as f64) / 1e9;
    let parts = pipeline.microbatches.saturating_mul(chunks).saturating_mul(pipeline.parts.len() as u64);
    match exact && parts <= PARTS_MAX {
        true => pipeline.run().map_or(estimate, |r| r.time as f64 / 1e9),
        false => estimate,
    }
}

/// One step of a job. `exact` plays the pipeline's events; otherwise its time is estimated in
/// closed form.
pub fn step(topology: &Topology, model: &Gpt, job: &Job, exact: bool) -> Result<Step, String> {
    job.check(model)?;
    job.stack.check(topology)?;
    let topology = &*job.stack.running(topology);
    let pipeline = pipeline(topology, model, job);
    let m = job.microbatches() as f64;
    let time = through(&pipeline, exact);
    let busiest = pipeline.parts.iter().map(|c| c.iter().map(|p| p.forward + p.backward).sum::<u64>()).max();
    let work = m * busiest.unwrap_or(0) as f64 / 1e9;
    let one = layer(topology, model, job);
    let layers = model.layers as f64 / job.pipeline as f64;
    let backward = one.backward + job.again_share(model) * one.again;
    let (exposed_data, data_bytes) = replicas(topology, model, job, layers * one.forward, layers * backward);
    let optimizer = optimizer(topology, model, job);
    let (hop, hop_bytes, waits) = stages(topology, model, job);
    let hops = 2.0 * m * job.chunks as f64;
    let alone = time + exposed_data + optimizer;
    // Nodes of one replica are in step anyway; those of several meet at the end.
    let nodes = job.devices().div_ceil(topology.node()).min(job.data * job.context);
    let seconds = alone * slowest(nodes as f64, job.stack.spread.unwrap_or(topology.device.spread));
    let Memory { states, ends, activations } = memory(model, job);
    let tflops = model.model_flops(job.batch) / seconds / job.devices() as f64 / 1e12;
    Ok(Step {
        seconds,
        bubble: (time - work).max(0.0) / seconds,
        exposed_tensor: m * layers * one.exposed,
        exposed_pipeline: hops * hop * waits,
        exposed_data,
        optimizer,
        waiting: seconds - alone,
        tensor_bytes: m * layers * one.carried,
        pipeline_bytes: hops * hop_bytes,
        data_bytes,
        memory: states + ends + activations,
        tflops,
        mfu: tflops * 1e12 / topology.device.peak(&job.dtype),
    })
}
