use crate::row::{Row, machine, summary};
use serde_json::json;

fn gpt(layers: u64, hidden: u64, heads: u64) -> serde_json::Value {
    json!({ "layers": layers, "hidden": hidden, "heads": heads, "vocab": 51200, "seq": 2048, "dropout": true })
}

#[test]
fn sequence_paper() {
    let m = machine("a100");
    let mut rows = vec![];
    for (name, heads, hidden, layers, pipeline, chunks, batch, micro, seconds) in [
        ("22B", 64, 6144, 48, 1, 1, 4, 4, [1.42, 1.10]),
        ("175B", 96, 12288, 96, 8, 3, 64, 1, [18.13, 13.75]),
        ("530B", 128, 20480, 105, 35, 3, 280, 1, [49.05, 37.83]),
        ("1T", 160, 25600, 128, 64, 1, 512, 1, [94.42, 71.49]),
    ] {
        for (i, recompute) in ["full", "selective"].iter().enumerate() {
            let asked = json!({ "model": gpt(layers, hidden, heads), "devices": 8 * pipeline, "batch": batch,
                "tensor": 8, "pipeline": pipeline, "chunks": chunks, "micro": micro, "recompute": recompute,
                "states": "whole", "sequence_parallel": i == 1, "sends": "megatron", "attention": "unfused",
                "fused_loss": false, "overlap": "none", "libraries": 2022 });
            rows.push(Row::new(format!("{name} {recompute}"), &m, &asked, seconds[i]));
        }
    }
    summary("V2", &rows);
}

#[test]
fn sc21() {
    let m = machine("a100");
    let mut rows = vec![];
    for (name, heads, hidden, layers, t, p, n, batch, tf) in [
        ("1.7B", 24, 2304, 24, 1, 1, 32, 512, 137.0),
        ("3.6B", 32, 3072, 30, 2, 1, 64, 512, 138.0),
        ("7.5B", 32, 4096, 36, 4, 1, 128, 512, 142.0),
        ("18.4B", 48, 6144, 40, 8, 1, 256, 1024, 135.0),
        ("39.1B", 64, 8192, 48, 8, 2, 512, 1536, 138.0),
        ("76.1B", 80, 10240, 60, 8, 4, 1024, 1792, 140.0),
        ("145.6B", 96, 12288, 80, 8, 8, 1536, 2304, 148.0),
        ("310.1B", 128, 16384, 96, 8, 16, 1920, 2160, 155.0),
        ("529.6B", 128, 20480, 105, 8, 35, 2520, 2520, 163.0),
        ("1008B", 160, 25600, 128, 8, 64, 3072, 3072, 163.0),
    ] {
        let asked = json!({ "model": gpt(layers, hidden, heads), "devices": n, "batch": batch,
                "tensor": t, "pipeline": p, "recompute": "full",
                "states": "whole", "sequence_parallel": false, "sends": "megatron", "attention": "unfused",
                "fused_loss": false, "overlap": "none", "libraries": 2022 });
        let mut row = Row::new(name, &m, &asked, 1.0);
        row.seconds = again_flops(&row) / n as f64 / tf / 1e12;
        rows.push(row);
    }
    summary("T1", &rows);
    let mut rows = vec![];
    for (heads, hidden, layers, p, n, batch, micro, tf) in [
        (96, 12288, 96, 12, 384, 1536, 1, 153.0),
        (96, 12288, 96, 12, 768, 1536, 1, 149.0),
        (96, 12288, 96, 12, 1536, 1536, 1, 141.0),
        (128, 20480, 105, 35, 560, 2240, 1, 171.0),
        (128, 20480, 105, 35, 1120, 2240, 1, 167.0),
        (128, 20480, 105, 35, 2240, 2240, 1, 159.0),
        (96, 12288, 96, 1, 384, 1536, 4, 144.0),
        (96, 12288, 96, 1, 768, 1536, 2, 88.0),
        (96, 12288, 96, 1, 1536, 1536, 1, 44.0),
        (128, 20480, 105, 1, 640, 2560, 4, 138.0),
        (128, 20480, 105, 1, 1120, 2240, 2, 98.0),
        (128, 20480, 105, 1, 2240, 2240, 1, 48.0),
    ] {
        let zero = p == 1;
        let asked = json!({ "model": gpt(layers, hidden, heads), "devices": n, "batch": batch,
                "tensor": if zero {1} else {8}, "pipeline": p, "recompute": "full", "micro": micro,
                "states": if zero {"all"} else {"whole"}, "sequence_parallel": false, "sends": "megatron", "attention": "unfused",
                "fused_loss": false, "overlap": if zero {"backward"} else {"none"}, "libraries": 2022 });
        let mut row = Row::new(format!("{hidden} x{n} {}", if zero { "zero" } else { "" }), &m, &asked, 1.0);
        row.seconds = again_flops(&row) / n as f64 / tf / 1e12;
        rows.push(row);
    }
    summary("T2", &rows);
}

fn again_flops(row: &Row) -> f64 {
    let m = &row.training.model;
    let (b, s, l, h, v) = (row.training.batch as f64, m.seq as f64, m.layers as f64, m.hidden as f64, m.vocab as f64);
    96.0 * b * s * l * h * h * (1.0 + s / (6.0 * h) + v / (16.0 * l * h))
}

#[test]
fn megascale() {
    let m = machine("a100");
    let mut rows = vec![];
    for (batch, n, seconds) in [
        (768, 256, 40.0),
        (768, 512, 21.2),
        (768, 768, 15.2),
        (768, 1024, 11.9),
        (6144, 3072, 29.02),
        (6144, 6144, 14.78),
        (6144, 8192, 12.24),
        (6144, 12288, 8.57),
    ] {
        let asked = json!({ "model": { "layers": 96, "hidden": 12288, "heads": 128, "vocab": 51200, "seq": 2048, "dropout": false },
                "devices": n, "batch": batch, "micro": 1,
                "tensor": 8, "pipeline": 8, "recompute": "selective", 
                "states": "optimizer", "sends": "megatron", "attention": "unfused",
                "fused_loss": false, "overlap": "none", "libraries": 2023 });
        rows.push(Row::new(format!("175B x{n} batch {batch}"), &m, &asked, seconds));
    }
    summary("MegaScale", &rows);
}
