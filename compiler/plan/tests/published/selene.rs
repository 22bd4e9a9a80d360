//! Megatron-LM on A100, 2021 to 2023: attention in several kernels, nothing along with products. What a table does not say
//! (chunks, sequences of a microbatch) is the planner's best choice.

use crate::row::{Row, machine};
use serde_json::{Value, json};
use tessera_plan::memory::{layer_activations, memory};
use tessera_plan::model::{Job, Recompute};
use tessera_plan::request::Training;

fn gpt(layers: u64, hidden: u64, heads: u64) -> Value {
    json!({ "layers": layers, "hidden": hidden, "heads": heads, "vocab": 51200, "seq": 2048, "dropout": true })
}

/// What all runs of this file have, and more.
fn asked(more: Value) -> Value {
    let mut all = json!({ "sends": "megatron", "attention": "unfused", "fused_loss": false, "overlap": "none", "libraries": 2022 });
    if let (Value::Object(all), Value::Object(more)) = (&mut all, more) {
        all.extend(more);
    }
    all
}

/// A model of the paper on sequence parallelism: name, heads, width, layers, stages, chunks, batch, sequences of a
/// microbatch; seconds with everything computed again and with sequences divided and attention computed again; GiB of
/// states and of activations of neither and of both.
type SequenceRow = (&'static str, [u64; 7], [f64; 2], [f64; 3]);

const SEQUENCE_ROWS: [SequenceRow; 4] = [
    ("22B", [64, 6144, 48, 1, 1, 4, 4], [1.42, 1.10], [45.56, 59.25, 9.56]),
    ("175B", [96, 12288, 96, 8, 3, 64, 1], [18.13, 13.75], [45.56, 66.84, 12.35]),
    ("530B", [128, 20480, 105, 35, 3, 280, 1], [49.05, 37.83], [31.64, 114.02, 23.08]),
    ("1T", [160, 25600, 128, 64, 1, 512, 1], [94.42, 71.49], [32.96, 131.25, 26.56]),
];

/// "Reducing Activation Recomputation in Large Transformer Models" (arXiv 2205.05198), tables 3 and 5.
pub fn sequence_paper() -> Vec<Row> {
    let mut rows = vec![];
    for (name, [heads, hidden, layers, pipeline, chunks, batch, micro], seconds, _) in SEQUENCE_ROWS {
        for (recompute, seconds) in ["full", "selective"].iter().zip(seconds) {
            let asked = asked(json!({
                "model": gpt(layers, hidden, heads), "devices": 8 * pipeline, "batch": batch, "tensor": 8, "pipeline": pipeline,
                "chunks": chunks, "micro": micro, "recompute": recompute, "states": "whole",
                "sequence_parallel": *recompute == "selective"
            }));
            rows.push(Row::new(format!("{name} {recompute}"), &machine("a100"), &asked, seconds));
        }
    }
    rows
}

#[test]
fn memory_of_the_sequence_paper_is_exact() {
    let gib = (1u64 << 30) as f64;
    for (row, (.., published)) in sequence_paper().iter().skip(1).step_by(2).zip(SEQUENCE_ROWS) {
        let (model, job) = (&row.training.model, row.planned().job);
        let plain = Job { recompute: Recompute::None, sequence_parallel: false, ..job.clone() };
        let found = [memory(model, &job).states, memory(model, &plain).activations, memory(model, &job).activations];
        for (found, published) in found.iter().zip(published) {
            assert!((found / gib - published).abs() < 0.0051, "{} GiB, published {published}", found / gib);
        }
        assert!(layer_activations(model, &job) > 0.0);
    }
}

/// Operations with all layers computed again, as the paper of 2021 counts them.
fn twice(t: &Training) -> f64 {
    let m = &t.model;
    let [b, s, l, h, v] = [t.batch, m.seq, m.layers, m.hidden, m.vocab].map(|n| n as f64);
    96.0 * b * s * l * h * h * (1.0 + s / (6.0 * h) + v / (16.0 * l * h))
}

/// "Efficient Large-Scale Language Model Training on GPU Clusters" (arXiv 2104.04473, SC21), table 1.
pub fn weak_scaling() -> Vec<Row> {
    let rows = [
        ("1.7B", [24, 2304, 24, 1, 1, 32, 512], 137.0),
        ("3.6B", [32, 3072, 30, 2, 1, 64, 512], 138.0),
        ("7.5B", [32, 4096, 36, 4, 1, 128, 512], 142.0),
        ("18.4B", [48, 6144, 40, 8, 1, 256, 1024], 135.0),
        ("39.1B", [64, 8192, 48, 8, 2, 512, 1536], 138.0),
        ("76.1B", [80, 10240, 60, 8, 4, 1024, 1792], 140.0),
        ("145.6B", [96, 12288, 80, 8, 8, 1536, 2304], 148.0),
        ("310.1B", [128, 16384, 96, 8, 16, 1920, 2160], 155.0),
        ("529.6B", [128, 20480, 105, 8, 35, 2520, 2520], 163.0),
        ("1008B", [160, 25600, 128, 8, 64, 3072, 3072], 163.0),
    ];
    let row = |(name, [heads, hidden, layers, tensor, pipeline, devices, batch], rate): (&str, [u64; 7], f64)| {
        let asked = asked(json!({
            "model": gpt(layers, hidden, heads), "devices": devices, "batch": batch, "tensor": tensor, "pipeline": pipeline,
            "recompute": "full", "states": "whole", "sequence_parallel": false
        }));
        Row::of_rate(name, &machine("a100"), &asked, rate, twice)
    };
    rows.map(row).into()
}

/// 175 and 530 billion parameters: heads, width, layers.
const LARGE: [[u64; 3]; 2] = [[96, 12288, 96], [128, 20480, 105]];

/// The same, table 2, with parts of matrices, stages and replicas.
pub fn beside_zero() -> Vec<Row> {
    let rows = [
        (0, [12, 384, 1536], 153.0),
        (0, [12, 768, 1536], 149.0),
        (0, [12, 1536, 1536], 141.0),
        (1, [35, 560, 2240], 171.0),
        (1, [35, 1120, 2240], 167.0),
        (1, [35, 2240, 2240], 159.0),
    ];
    let row = |(model, [pipeline, devices, batch], rate): (usize, [u64; 3], f64)| {
        let [heads, hidden, layers] = LARGE[model];
        let asked = asked(json!({
            "model": gpt(layers, hidden, heads), "devices": devices, "batch": batch, "tensor": 8, "pipeline": pipeline,
            "micro": 1, "recompute": "full", "states": "whole", "sequence_parallel": false
        }));
        Row::of_rate(format!("{hidden} x{devices}"), &machine("a100"), &asked, rate, twice)
    };
    rows.map(row).into()
}

/// The same, table 2, with DeepSpeed's ZeRO-3 on the same devices.
pub fn zero() -> Vec<Row> {
    let rows = [
        (0, [384, 1536, 4], 144.0),
        (0, [768, 1536, 2], 88.0),
        (0, [1536, 1536, 1], 44.0),
        (1, [640, 2560, 4], 138.0),
        (1, [1120, 2240, 2], 98.0),
        (1, [2240, 2240, 1], 48.0),
    ];
    let row = |(model, [devices, batch, micro], rate): (usize, [u64; 3], f64)| {
        let [heads, hidden, layers] = LARGE[model];
        let asked = asked(json!({
            "model": gpt(layers, hidden, heads), "devices": devices, "batch": batch, "tensor": 1, "pipeline": 1,
            "micro": micro, "recompute": "full", "states": "all", "overlap": "backward"
        }));
        Row::of_rate(format!("{hidden} x{devices}"), &machine("a100"), &asked, rate, twice)
    };
    rows.map(row).into()
}

/// Megatron-LM's rows of MegaScale's table 2 (arXiv 2402.15627): 175B, eight parts, eight stages. Its own rows have
/// parallel blocks and windows of attention, which a file does not describe.
pub fn megascale() -> Vec<Row> {
    let rows = [
        (768, 256, 40.0),
        (768, 512, 21.2),
        (768, 768, 15.2),
        (768, 1024, 11.9),
        (6144, 3072, 29.02),
        (6144, 6144, 14.78),
        (6144, 8192, 12.24),
        (6144, 12288, 8.57),
    ];
    let row = |(batch, devices, seconds)| {
        let asked = asked(json!({
            "model": { "layers": 96, "hidden": 12288, "heads": 128, "vocab": 51200, "seq": 2048 },
            "devices": devices, "batch": batch, "tensor": 8, "pipeline": 8, "micro": 1, "recompute": "selective",
            "states": "optimizer", "libraries": 2023
        }));
        Row::new(format!("175B x{devices}"), &machine("a100"), &asked, seconds)
    };
    rows.map(row).into()
}
