//! Transformers and the ways to train them over devices.

use crate::attention::Attention;
use crate::stack::{Sends, Stack};
use serde::{Deserialize, Serialize};

/// A decoder of equal layers.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gpt {
    #[serde(default)]
    pub name: String,
    pub layers: u64,
    pub hidden: u64,
    pub heads: u64,
    /// Heads of keys and values; as many as heads unless given.
    #[serde(default)]
    pub kv_heads: Option<u64>,
    /// Width between the two halves of a layer's second part; four times `hidden` unless given.
    #[serde(default)]
    pub ffn: Option<u64>,
    /// Whether that part has a gate: three matrices.
    #[serde(default)]
    pub gated: bool,
    pub vocab: u64,
    pub seq: u64,
    /// Whether dropout is on: masks are kept.
    #[serde(default)]
    pub dropout: bool,
}

impl Gpt {
    pub fn ffn(&self) -> f64 {
        self.ffn.unwrap_or(4 * self.hidden) as f64
    }

    /// Width of keys and values together, as a share of `hidden`.
    pub fn kv_share(&self) -> f64 {
        2.0 * self.kv_heads.unwrap_or(self.heads) as f64 / self.heads.max(1) as f64
    }

    /// Numbers in the matrices of one layer.
    pub fn layer_parameters(&self) -> f64 {
        let h = self.hidden as f64;
        let matrices = if self.gated { 3.0 } else { 2.0 };
        h * h * (2.0 + self.kv_share()) + matrices * h * self.ffn()
    }

    /// Numbers of all layers and of both ends.
    pub fn parameters(&self) -> f64 {
        self.layers as f64 * self.layer_parameters() + 2.0 * (self.vocab * self.hidden) as f64
    }

    /// Operations of a training step as papers count them: three times the forward pass, with whole
    /// attention; `72·B·s·l·h²(1 + s/6h + V/12lh)` where a layer has the usual widths.
    pub fn model_flops(&self, batch: u64) -> f64 {
        let (s, h) = (self.seq as f64, self.hidden as f64);
        let tokens = batch as f64 * s;
        let layer = 2.0 * self.layer_parameters() + 4.0 * s * h;
        3.0 * tokens * (self.layers as f64 * layer + 2.0 * h * self.vocab as f64)
    }
}

/// What of the forward pass is computed again for the backward pass.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Recompute {
    None,
    /// Attention between its products.
    Selective,
    /// Of whole layers what the backward part reads: all but the last product and its sum.
    Needed,
    /// Layers as a whole.
    Full,
}

/// What of a model's state is divided over the replicas.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum States {
    /// Nothing: each replica has all.
    Whole,
    /// What the optimiser keeps.
    Optimizer,
    /// Parameters and gradients too.
    All,
}

/// How a model is trained over devices.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Job {
    /// Devices that divide each matrix.
    pub tensor: u64,
    /// Stages of layers.
    pub pipeline: u64,
    /// Devices that divide a sequence.
    pub context: u64,
    /// Replicas.
    pub data: u64,
    /// Chunks of layers on each stage.
    pub chunks: u64,
    /// Sequences of a microbatch.
    pub micro: u64,
    /// Sequences of a step.
    pub batch: u64,
    pub recompute: Recompute,
    /// Of layers that are computed again as a whole: how many of each chunk; all unless given.
    pub again: Option<u64>,
    pub states: States,
    /// Whether what is between the products is divided along the sequence.
    pub sequence_parallel: bool,
    /// Element type of products.
    pub dtype: String,
    #[serde(flatten)]
    pub stack: Stack,
}

impl Job {
    pub fn devices(&self) -> u64 {
        self.tensor * self.pipeline * self.context * self.data
    }

    /// Whether attention is one kernel that keeps no scores.
    pub fn is_attention_fused(&self) -> bool {
        self.stack.attention != Some(Attention::Unfused)
    }

    /// Bytes of a number between products.
    pub fn activation_bytes(&self) -> f64 {
        if matches!(self.dtype.as_str(), "f32" | "tf32") { 4.0 } else { 2.0 }
    }

    /// Bytes of a parameter that replicas gather.
    pub fn parameter_bytes(&self) -> f64 {
        match self.stack.sends {
            Sends::Tessera => 4.0,
            Sends::Megatron => self.activation_bytes(),
        }
    }

    /// Microbatches that go through each pipeline in a step.
    pub fn microbatches(&self) -> u64 {
        self.batch.div_ceil(self.data.saturating_mul(self.micro).max(1))
    }

    /// Layers of the largest chunk.
    pub fn chunk_layers(&self, model: &Gpt) -> u64 {
        model.layers.div_ceil((self.pipeline * self.chunks).max(1))
    }

    /// Whether layers are computed again as a whole, or nearly so.
    pub fn is_layer_again(&self) -> bool {
        matches!(self.recompute, Recompute::Needed | Recompute::Full)
    }

    /// Layers of a chunk of so many that are computed again as a whole.
    pub fn again_of(&self, layers: f64) -> f64 {
        match (self.recompute, self.again) {
            (Recompute::Needed | Recompute::Full, Some(again)) => layers.min(again as f64),
            (Recompute::Needed | Recompute::Full, None) => layers,
            _ => 0.0,
        }
    }

    /// The share of a stage's layers that are computed again as a whole.
    pub fn again_share(&self, model: &Gpt) -> f64 {
        let layers = model.layers as f64 / (self.pipeline * self.chunks).max(1) as f64;
        self.again_of(layers) / layers
    }

    /// What cannot be.
    pub fn check(&self, model: &Gpt) -> Result<(), String> {
        let factors = [self.tensor, self.pipeline, self.context, self.data, self.chunks, self.micro, self.batch];
        if factors.contains(&0) || model.layers == 0 || model.hidden == 0 || model.heads == 0 || model.seq == 0 {
            return Err("every number must be above 0".into());
        }
        let limit = 1u64 << 40;
        let numbers = [model.layers, model.hidden, model.heads, model.seq, model.vocab, model.ffn.unwrap_or(1)];
        if factors.iter().chain(&numbers).any(|n| *n > limit) {
            return Err(format!("a number is above {limit}"));
        }
        if !model.heads.is_multiple_of(self.tensor) {
            return Err(format!("{} heads cannot be divided over tensor={}", model.heads, self.tensor));
        }
        // The embedding and the head may have places of their own.
        if self.pipeline.saturating_mul(self.chunks) > model.layers + 2 {
            let chunks = self.pipeline.saturating_mul(self.chunks);
            return Err(format!("{} layers cannot be divided into {chunks} chunks", model.layers));
        }
        if self.batch < self.data.saturating_mul(self.micro) {
            return Err(format!(
                "{} sequences are fewer than data·micro = {}",
                self.batch,
                self.data.saturating_mul(self.micro)
            ));
        }
        if self.stack.sends == Sends::Tessera && (self.chunks > 1 || self.sequence_parallel) {
            return Err("Tessera's stages have one chunk each, and what is between products is not divided".into());
        }
        if self.stack.sends == Sends::Tessera && self.states == States::All {
            return Err("Tessera's replicas have whole parameters".into());
        }
        if self.chunks > 1 && !self.microbatches().is_multiple_of(self.pipeline) {
            return Err("several chunks need a number of microbatches that the stages divide".into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_those_of_the_formula() {
        let model = Gpt {
            name: String::new(),
            layers: 96,
            hidden: 12288,
            heads: 96,
            kv_heads: None,
            ffn: None,
            gated: false,
            vocab: 51200,
            seq: 2048,
            dropout: true,
        };
        let (l, h, s, v, b) = (96.0, 12288.0, 2048.0, 51200.0, 64.0);
        let formula = 72.0 * b * s * l * h * h * (1.0 + s / (6.0 * h) + v / (12.0 * l * h));
        assert!((model.model_flops(64) / formula - 1.0).abs() < 1e-12);
    }
}
