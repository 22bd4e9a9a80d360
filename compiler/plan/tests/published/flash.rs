//! GPT3-1.3B and GPT3-2.7B on eight A100: FlashAttention-2's paper (arXiv 2307.08691), table 1. A step has a million
//! tokens, as flash-attention's training/README.md says of both; sequences of a microbatch are not published.

use crate::row::{Row, machine};
use serde_json::json;

pub fn rows() -> Vec<Row> {
    let m = machine("a100");
    let mut rows = vec![];
    for (name, [layers, hidden, heads, seq], rates) in [
        ("1.3B 2k", [24u64, 2048, 16, 2048], [142.0, 189.0, 196.0]),
        ("1.3B 8k", [24u64, 2048, 16, 8192], [72.0, 170.0, 220.0]),
        ("2.7B 2k", [32u64, 2560, 20, 2048], [149.0, 189.0, 205.0]),
        ("2.7B 8k", [32u64, 2560, 20, 8192], [80.0, 175.0, 225.0]),
    ] {
        for (attention, rate) in ["unfused", "flash-1", "flash-2"].iter().zip(rates) {
            let asked = json!({
                "model": { "layers": layers, "hidden": hidden, "heads": heads, "vocab": 50264, "seq": seq },
                "devices": 8, "batch": (1 << 20) / seq, "tensor": 1, "pipeline": 1, "states": "whole", "sends": "megatron",
                "attention": attention, "fused": *attention != "unfused", "overlap": "backward", "libraries": 2023
            });
            // Six times the tokens and parameters, and attention without its mask, as the paper says.
            rows.push(Row::of_rate(format!("{name} {attention}"), &m, &asked, rate, |t| {
                let parameters = t.model.layers as f64 * t.model.layer_parameters() + 50264.0 * hidden as f64;
                (1 << 20) as f64 * (6.0 * parameters + (12 * layers * hidden * seq) as f64)
            }));
        }
    }
    rows
}
