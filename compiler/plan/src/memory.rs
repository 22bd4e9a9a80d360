//! Memory of a training step on the device that needs most: the first stage's.

use crate::model::{Gpt, Job, Recompute, States};

/// Bytes on one device.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Memory {
    /// Parameters, gradients and what the optimiser keeps of the layers.
    pub states: f64,
    /// The same of the ends: embedding, head; and the scores where they are on this device.
    pub ends: f64,
    /// What the forward pass keeps for the backward pass.
    pub activations: f64,
}

impl Memory {
    pub fn total(&self) -> f64 {
        self.states + self.ends + self.activations
    }
}

/// Bytes of states for one number: two of the parameter, four of its gradient, twelve of the
/// optimiser.
fn state_bytes(job: &Job) -> f64 {
    let replicas = (job.data * job.context) as f64;
    match job.states {
        States::Whole => 18.0,
        States::Optimizer => 6.0 + 12.0 / replicas,
        States::All => 18.0 / replicas,
    }
}

/// Bytes that one layer keeps of one microbatch.
pub fn layer_activations(model: &Gpt, job: &Job) -> f64 {
    let t = job.tensor as f64;
    let tokens = (model.seq * job.micro) as f64 / job.context as f64;
    let (h, a, s) = (model.hidden as f64, model.heads as f64, model.seq as f64);
    let between = if job.sequence_parallel { t } else { 1.0 };
    if job.is_layer_again() {
        return 2.0 * tokens * h / between;
    }
    let masks = if model.dropout { 2.0 } else { 0.0 };
    // Inputs of norms and of the two parts, and masks; then what the products have between them. Operands of products in
    // eight bits are kept in eight bits.
    let operand = if job.dtype == "fp8" { 1.0 } else { 2.0 };
    let around = 2.0 * (2.0 + operand) + masks;
    let between_ffn = operand + if model.gated { 4.0 } else { 2.0 };
    let inside = 2.0 + model.kv_share() * 2.0 + 2.0 + between_ffn * model.ffn() / h;
    let scores = match job.recompute == Recompute::None && !job.is_attention_fused() {
        true => 5.0 * a * s / h,
        false => 0.0,
    };
    tokens * h * (around / between + inside / t + scores / t)
}

/// The first stage's memory.
pub fn memory(model: &Gpt, job: &Job) -> Memory {
    let (t, p, v) = (job.tensor as f64, job.pipeline as f64, job.chunks as f64);
    let layers = model.layers as f64 / p;
    let states = state_bytes(job) * model.layer_parameters() * layers / t;
    let mut ends = state_bytes(job) * (model.vocab * model.hidden) as f64 / t;
    if job.pipeline == 1 {
        // Both ends, and scores: their narrow gradients lie beside those of four bytes.
        let scores = (model.seq * job.micro * model.vocab) as f64 / job.context as f64 / t;
        ends = 2.0 * ends + scores * if job.stack.fused_loss { 4.0 } else { 6.0 };
    }
    // As many microbatches as there are stages, or all of them where there are fewer.
    let chunked = if job.chunks > 1 { 1.0 + (p - 1.0) / (p * v) } else { 1.0 };
    let in_flight = (p * chunked).min(job.microbatches() as f64);
    let share = job.again_share(model);
    let not_again = Job { recompute: Recompute::Selective, ..job.clone() };
    let each = match job.recompute {
        Recompute::Needed | Recompute::Full => {
            share * layer_activations(model, job) + (1.0 - share) * layer_activations(model, &not_again)
        }
        _ => layer_activations(model, job),
    };
    let kept = each * layers * in_flight;
    let again = match job.recompute {
        // One layer's, while it is computed again.
        Recompute::Needed | Recompute::Full => {
            layer_activations(model, &Job { recompute: Recompute::None, ..job.clone() })
        }
        _ => 0.0,
    };
    Memory { states, ends, activations: kept + again }
}
