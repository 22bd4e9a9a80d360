//! What can be asked for in a file: a model, its training, and what is known of how it runs.

use crate::attention::Attention;
use crate::model::{Gpt, Recompute, States};
use crate::search::{Fixed, Wanted};
use crate::stack::{Overlap, Sends, Stack};
use crate::topology::Topology;
use serde::Deserialize;

/// The file: a model, and what is known of its training. What is not given is searched, or as it is today.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Training {
    pub model: Gpt,
    pub devices: u64,
    /// Sequences of a step.
    pub batch: u64,
    /// Element type of products; `bf16` unless given.
    pub dtype: Option<String>,
    /// Devices that divide a sequence at most; one unless given.
    pub context: Option<u64>,
    pub tensor: Option<u64>,
    pub pipeline: Option<u64>,
    /// Replicas.
    pub data: Option<u64>,
    pub chunks: Option<u64>,
    pub micro: Option<u64>,
    pub recompute: Option<Recompute>,
    pub states: Option<States>,
    pub sequence_parallel: Option<bool>,
    /// `tessera` unless given.
    pub sends: Option<Sends>,
    pub attention: Option<Attention>,
    pub fused: Option<bool>,
    pub fused_loss: Option<bool>,
    pub overlap: Option<Overlap>,
    pub libraries: Option<u64>,
    pub spread: Option<f64>,
}

impl Training {
    /// What a file says, if it can be planned on a machine.
    pub fn parse(text: &str, topology: &Topology) -> Result<Training, String> {
        let training: Training = serde_json::from_str(text).map_err(|e| e.to_string())?;
        training.check(topology)?;
        Ok(training)
    }

    /// What no search should begin with.
    fn check(&self, topology: &Topology) -> Result<(), String> {
        let m = &self.model;
        let optional =
            [self.context, self.tensor, self.pipeline, self.data, self.chunks, self.micro, m.kv_heads, m.ffn];
        let numbers = [self.devices, self.batch, m.layers, m.hidden, m.heads, m.vocab, m.seq];
        let all = numbers.into_iter().chain(optional.into_iter().flatten());
        if !all.into_iter().all(|n| (1..=1 << 32).contains(&n)) {
            return Err("numbers must be from 1 to 2^32".into());
        }
        if self.devices > topology.devices() {
            return Err(format!(
                "`{}` has at most {} devices, not {}",
                topology.name,
                topology.devices(),
                self.devices
            ));
        }
        let dtype = self.dtype();
        if !topology.device.tflops.contains_key(dtype) {
            let known: Vec<&str> = topology.device.tflops.keys().map(String::as_str).collect();
            return Err(format!("`{}` has no products of `{dtype}`; it has {}", topology.name, known.join(", ")));
        }
        let stack = self.stack();
        if stack.sends == Sends::Tessera {
            let megatron = "with `\"sends\": \"megatron\"` only";
            if self.chunks.is_some_and(|c| c > 1) {
                return Err(format!("stages have several chunks {megatron}"));
            }
            if self.sequence_parallel == Some(true) {
                return Err(format!("what is between products is divided {megatron}"));
            }
            if self.states == Some(States::All) {
                return Err(format!("parameters are divided over replicas {megatron}"));
            }
            if self.overlap == Some(Overlap::All) {
                return Err(format!("exchanges go along with the products that need them {megatron}"));
            }
        }
        stack.check(topology)
    }

    fn dtype(&self) -> &str {
        self.dtype.as_deref().unwrap_or("bf16")
    }

    /// What it runs with.
    pub fn stack(&self) -> Stack {
        let usual = Stack::of(self.sends.unwrap_or(Sends::Tessera));
        Stack {
            attention: self.attention,
            fused: self.fused.unwrap_or(usual.fused),
            fused_loss: self.fused_loss.unwrap_or(usual.fused_loss),
            overlap: self.overlap.unwrap_or(usual.overlap),
            libraries: self.libraries,
            spread: self.spread,
            ..usual
        }
    }

    /// What to search for.
    pub fn wanted(&self) -> Wanted {
        let fixed = Fixed {
            tensor: self.tensor,
            pipeline: self.pipeline,
            data: self.data,
            chunks: self.chunks,
            micro: self.micro,
            recompute: self.recompute,
            states: self.states,
            sequence_parallel: self.sequence_parallel,
        };
        Wanted {
            devices: self.devices,
            batch: self.batch,
            dtype: self.dtype().into(),
            context_max: self.context.unwrap_or(1),
            stack: self.stack(),
            fixed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A request with more fields at its end.
    fn parse(more: &str) -> Result<Training, String> {
        let Some(machine) = Topology::named("dgx-h100") else { panic!("dgx-h100") };
        let model = r#"{ "layers": 8, "hidden": 1024, "heads": 8, "vocab": 32000, "seq": 2048 }"#;
        Training::parse(&format!(r#"{{ "model": {model}, "devices": 8, "batch": 64{more} }}"#), &machine)
    }

    #[test]
    fn what_is_not_given_is_as_it_is_today() {
        let plain = parse("").map(|t| t.stack());
        assert_eq!(plain, Ok(Stack::of(Sends::Tessera)));
        let megatron = parse(r#", "sends": "megatron", "attention": "flash-2", "spread": 0"#).map(|t| t.stack());
        let wanted = Stack { attention: Some(Attention::Flash2), spread: Some(0.0), ..Stack::of(Sends::Megatron) };
        assert_eq!(megatron, Ok(wanted));
    }

    #[test]
    fn what_cannot_be_is_one_error() {
        for (more, says) in [
            (r#", "attention": "flash-9""#, "unknown variant `flash-9`, expected one of `unfused`"),
            (r#", "overlap": "some""#, "expected one of `none`, `backward`, `all`"),
            (r#", "sends": "nccl""#, "expected `tessera` or `megatron`"),
            (r#", "fused_attention": true"#, "unknown field `fused_attention`"),
            (r#", "libraries": 1999"#, "libraries is 1999; it must be a year from 2017 to 2100"),
            (r#", "spread": -0.1"#, "spread is -0.1; it must be from 0 to 0.5"),
            (r#", "overlap": "all""#, r#"with `"sends": "megatron"` only"#),
            (r#", "chunks": 2"#, "several chunks"),
            (r#", "sequence_parallel": true"#, "between products is divided"),
            (r#", "states": "all""#, "parameters are divided"),
            (r#", "dtype": "int8""#, "has no products of `int8`"),
            (r#", "tensor": 0"#, "numbers must be from 1"),
        ] {
            let found = parse(more);
            assert!(found.as_ref().is_err_and(|e| e.contains(says)), "{more}: {found:?}");
        }
        let Some(old) = Topology::named("a100") else { panic!("a100") };
        let kernel = Stack { attention: Some(Attention::Cudnn), ..Stack::of(Sends::Megatron) };
        assert_eq!(kernel.check(&old), Err("`a100` has no attention `cudnn`; it has unfused, flash-1, flash-2".into()));
    }
}
