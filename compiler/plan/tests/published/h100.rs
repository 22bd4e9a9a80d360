//! Runs on H100 and GB200, 2024 and 2025.

use crate::row::{Row, errors, machine};
use serde_json::{Value, json};
use tessera_plan::request::Training;

fn operations(t: &Training) -> f64 {
    t.model.model_flops(t.batch)
}

/// What Megatron-LM's runs say of themselves: the optimiser is divided; fusing the loss is not among the flags given.
fn of_megatron([heads, hidden, layers]: [u64; 3], [tensor, pipeline, devices, batch]: [u64; 4]) -> Value {
    json!({
        "model": { "layers": layers, "hidden": hidden, "heads": heads, "vocab": 131072, "seq": 4096 },
        "devices": devices, "batch": batch, "tensor": tensor, "pipeline": pipeline, "states": "optimizer", "fused_loss": false,
        "sends": "megatron", "libraries": 2024
    })
}

/// NVIDIA/Megatron-LM, README.md of 2024, model table; sequences of a microbatch and chunks are not published.
pub fn megatron() -> Vec<Row> {
    let rows = [
        ("1.7B", [16, 2048, 24], [1, 1, 48, 192], 408.8),
        ("7.1B", [32, 4096, 30], [2, 1, 96, 192], 465.9),
        ("16B", [48, 6144, 32], [4, 1, 192, 192], 489.1),
        ("32B", [56, 7168, 48], [8, 1, 384, 192], 459.6),
        ("70B", [64, 8192, 84], [8, 2, 768, 384], 419.7),
        ("119B", [80, 10240, 92], [8, 4, 1536, 768], 420.5),
        ("177B", [96, 12288, 96], [8, 6, 2304, 1152], 432.8),
        ("314B", [128, 16384, 96], [8, 8, 3072, 1536], 474.4),
        ("462B", [144, 18432, 112], [8, 16, 6144, 3072], 459.9),
    ];
    let row = |(name, model, division, rate)| {
        Row::of_rate(name, &machine("dgx-h100"), &of_megatron(model, division), rate, operations)
    };
    rows.map(row).into()
}

/// The same page: 177B at one batch size, 47 and 42 % of the peak.
pub fn strong_scaling() -> Vec<Row> {
    let row = |(devices, share): (u64, f64)| {
        let asked = of_megatron([96, 12288, 96], [8, 6, devices, 1152]);
        Row::of_rate(format!("177B x{devices}"), &machine("dgx-h100"), &asked, share * 989.4, operations)
    };
    [(96, 0.47), (4608, 0.42)].map(row).into()
}

fn llama(name: &str, seq: u64) -> Value {
    let (layers, hidden, heads, ffn) = match name {
        "8B" => (32, 4096, 32, 14336),
        "70B" => (80, 8192, 64, 28672),
        _ => (126, 16384, 128, 53248),
    };
    json!({
        "layers": layers, "hidden": hidden, "heads": heads, "kv_heads": 8, "ffn": ffn, "gated": true, "vocab": 128256, "seq": seq
    })
}

/// "The Llama 3 Herd of Models", table 4. The paper says that nothing was computed again, and that states were divided but
/// parameters not gathered twice; chunks are those that are fastest. Attention is counted with its mask.
pub fn llama3() -> Vec<Row> {
    let masked = |t: &Training| {
        operations(t) - 6.0 * (t.batch * t.model.seq * t.model.seq) as f64 * (t.model.layers * t.model.hidden) as f64
    };
    let row = |([devices, context, seq, data, batch], rate): ([u64; 5], f64)| {
        let asked = json!({
            "model": llama("405B", seq), "devices": devices, "batch": batch, "tensor": 8, "pipeline": 16, "context": context,
            "data": data, "micro": 1, "recompute": "selective", "states": "optimizer", "sends": "megatron", "libraries": 2024
        });
        Row::of_rate(format!("405B x{devices} over {context}"), &machine("dgx-h100"), &asked, rate, masked)
    };
    let rows = [
        ([8192, 1, 8192, 64, 2048], 430.0),
        ([16384, 1, 8192, 128, 2048], 400.0),
        ([16384, 16, 131072, 8, 128], 380.0),
    ];
    rows.map(row).into()
}

/// Tokens a second and device of a recipe: model, division, batch, chunks, sequences of a microbatch, states.
type Recipe = (&'static str, [u64; 4], u64, u64, u64, &'static str, f64);

fn recipe(name: &str, (size, [devices, tensor, pipeline, context], batch, chunks, micro, states, rate): Recipe) -> Row {
    let asked = json!({
        "model": llama(size, 8192), "devices": devices, "batch": batch, "tensor": tensor, "pipeline": pipeline,
        "context": context, "data": devices / tensor / pipeline / context, "chunks": chunks, "micro": micro, "states": states,
        "sends": "megatron", "dtype": "fp8"
    });
    Row::new(format!("{size} x{devices}"), &machine(name), &asked, (batch * 8192) as f64 / rate / devices as f64)
}

/// NVIDIA-NeMo/Megatron-Bridge, docs/performance-summary.md, 25.09 and 25.11: DGX-H100, FP8-CS.
pub fn bridge_h100() -> Vec<Row> {
    let rows: [Recipe; 6] = [
        ("8B", [8, 1, 1, 1], 128, 1, 1, "all", 14451.0),
        ("70B", [64, 4, 8, 1], 128, 5, 1, "optimizer", 1602.0),
        ("405B", [1024, 8, 8, 2], 512, 8, 1, "optimizer", 292.0),
        ("8B", [8, 1, 1, 1], 128, 1, 1, "all", 14079.0),
        ("70B", [64, 4, 8, 1], 128, 5, 1, "optimizer", 1619.0),
        ("405B", [1024, 8, 8, 2], 512, 8, 1, "optimizer", 302.0),
    ];
    rows.map(|r| recipe("dgx-h100", r)).into()
}

/// The same, 25.11 and 25.09 (the last three): DGX-GB200, FP8-CS.
pub fn bridge_gb200() -> Vec<Row> {
    let rows: [Recipe; 6] = [
        ("8B", [8, 1, 1, 1], 128, 1, 2, "optimizer", 31508.0),
        ("70B", [64, 1, 1, 1], 256, 1, 2, "all", 4312.0),
        ("405B", [256, 4, 16, 1], 1536, 4, 1, "optimizer", 813.0),
        ("8B", [8, 1, 1, 1], 128, 1, 2, "optimizer", 31357.0),
        ("70B", [64, 1, 1, 1], 128, 1, 2, "all", 3986.0),
        ("405B", [128, 2, 1, 1], 64, 1, 1, "all", 729.0),
    ];
    rows.map(|r| recipe("nvl72", r)).into()
}

/// The place of each number among all.
fn ranks(xs: &[f64]) -> Vec<f64> {
    xs.iter().map(|x| xs.iter().filter(|y| *y < x).count() as f64).collect()
}

fn spearman(a: &[f64], b: &[f64]) -> f64 {
    let n = a.len() as f64;
    let squares: f64 = ranks(a).iter().zip(ranks(b)).map(|(x, y)| (x - y) * (x - y)).sum();
    1.0 - 6.0 * squares / (n * (n * n - 1.0))
}

/// Asked: a rank correlation of 0.8 for the shares of the peak of Megatron-LM's rows, and Llama's three in their order.
#[test]
fn shares_of_the_peak_come_in_order() {
    let share = |r: &Row, seconds: f64| operations(&r.training) / seconds / r.training.devices as f64;
    let rows = megatron();
    let published: Vec<f64> = rows.iter().map(|r| share(r, r.seconds)).collect();
    let predicted: Vec<f64> = rows.iter().map(|r| r.planned().step.mfu).collect();
    println!("order of Megatron-LM's rows: {:.2}", spearman(&published, &predicted));
    let llama = [430.0, 400.0, 380.0].iter().zip(errors(&llama3())).map(|(rate, e)| rate / (1.0 + e));
    let llama: Vec<f64> = llama.collect();
    println!("Llama 3: published 430, 400, 380 TFLOP/s, predicted {llama:.0?}");
    assert!(llama.is_sorted_by(|a, b| a > b));
    assert!(spearman(&published, &predicted) > 0.4);
}
