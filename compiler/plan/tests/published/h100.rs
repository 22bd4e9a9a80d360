use crate::row::{Row, machine, summary};
use serde_json::{Value, json};

#[test]
fn megatron() {
    let m = machine("dgx-h100");
    let mut rows = vec![];
    for (name, heads, hidden, layers, t, p, batch, tf) in [
        ("1.7B", 16, 2048, 24, 1, 1, 192, 408.8),
        ("7.1B", 32, 4096, 30, 2, 1, 192, 465.9),
        ("16B", 48, 6144, 32, 4, 1, 192, 489.1),
        ("32B", 56, 7168, 48, 8, 1, 192, 459.6),
        ("70B", 64, 8192, 84, 8, 2, 384, 419.7),
        ("119B", 80, 10240, 92, 8, 4, 768, 420.5),
        ("177B", 96, 12288, 96, 8, 6, 1152, 432.8),
        ("314B", 128, 16384, 96, 8, 8, 1536, 474.4),
        ("462B", 144, 18432, 112, 8, 16, 3072, 459.9),
    ] {
        let n = t * p * 48;
        let asked = json!({ "model": { "layers": layers, "hidden": hidden, "heads": heads, "vocab": 131072, "seq": 4096 },
            "devices": n, "batch": batch, "tensor": t, "pipeline": p, "states": "optimizer", "fused_loss": false,
            "sends": "megatron", "libraries": 2024 });
        let mut row = Row::new(name, &m, &asked, 1.0);
        row.seconds = row.training.model.model_flops(batch) / n as f64 / tf / 1e12;
        rows.push(row);
    }
    summary("V1", &rows);
    let mut rows = vec![];
    for (n, mfu) in [(96, 0.47), (4608, 0.42)] {
        let asked = json!({ "model": { "layers": 96, "hidden": 12288, "heads": 96, "vocab": 131072, "seq": 4096 },
            "devices": n, "batch": 1152, "tensor": 8, "pipeline": 6, "states": "optimizer", "fused_loss": false,
            "sends": "megatron", "libraries": 2024 });
        let mut row = Row::new(format!("177B x{n}"), &m, &asked, 1.0);
        row.seconds = row.training.model.model_flops(1152) / n as f64 / mfu / 989.4e12;
        rows.push(row);
    }
    summary("V1s", &rows);
}

fn llama(name: &str) -> Value {
    let (layers, hidden, heads, ffn) = match name {
        "8B" => (32, 4096, 32, 14336),
        "70B" => (80, 8192, 64, 28672),
        _ => (126, 16384, 128, 53248),
    };
    json!({ "layers": layers, "hidden": hidden, "heads": heads, "kv_heads": 8, "ffn": ffn, "gated": true, "vocab": 128256, "seq": 8192 })
}

#[test]
fn llama3() {
    let m = machine("dgx-h100");
    let mut rows = vec![];
    for (devices, context, seq, per_replica, data, tf) in
        [(8192, 1, 8192, 32, 64, 430.0), (16384, 1, 8192, 16, 128, 400.0), (16384, 16, 131072, 16, 8, 380.0)]
    {
        let mut model = llama("405B");
        model["seq"] = json!(seq);
        let batch = per_replica * data;
        let asked = json!({ "model": model, "devices": devices, "batch": batch, "tensor": 8, "pipeline": 16, "context": context,
            "data": data, "micro": 1, "recompute": "selective", "states": "optimizer", "sends": "megatron", "libraries": 2024 });
        let mut row = Row::new(format!("405B x{devices} context {context}"), &m, &asked, 1.0);
        let m = &row.training.model;
        let masked = 6.0 * (batch * seq * seq) as f64 * (m.layers * m.hidden) as f64;
        row.seconds = (m.model_flops(batch) - masked) / devices as f64 / tf / 1e12;
        rows.push(row);
    }
    summary("V3", &rows);
}

#[test]
fn bridge() {
    for (set, rates) in [("V4 25.11", [14451.0, 1602.0, 292.0]), ("V4 25.09", [14079.0, 1619.0, 302.0])] {
        let m = machine("dgx-h100");
        let mut rows = vec![];
        for (size, n, batch, t, p, c, chunks, states, rate) in [
            ("8B", 8, 128, 1, 1, 1, 1, "all", rates[0]),
            ("70B", 64, 128, 4, 8, 1, 5, "optimizer", rates[1]),
            ("405B", 1024, 512, 8, 8, 2, 8, "optimizer", rates[2]),
        ] {
            let asked = json!({ "model": llama(size), "devices": n, "batch": batch, "tensor": t, "pipeline": p, "context": c,
                "data": n / t / p / c, "chunks": chunks, "micro": 1, "states": states, "sends": "megatron", "dtype": "fp8" });
            rows.push(Row::new(size, &m, &asked, (batch * 8192) as f64 / rate / n as f64));
        }
        summary(set, &rows);
    }
    let m = machine("nvl72");
    let mut rows = vec![];
    for (size, n, batch, t, p, chunks, micro, states, rate) in [
        ("8B", 8, 128, 1, 1, 1, 2, "optimizer", 31508.0),
        ("70B", 64, 256, 1, 1, 1, 2, "all", 4312.0),
        ("405B", 256, 1536, 4, 16, 4, 1, "optimizer", 813.0),
    ] {
        let asked = json!({ "model": llama(size), "devices": n, "batch": batch, "tensor": t, "pipeline": p,
                "chunks": chunks, "micro": micro, "states": states, "sends": "megatron", "dtype": "fp8" });
        rows.push(Row::new(size, &m, &asked, (batch * 8192) as f64 / rate / n as f64));
    }
    summary("V4 GB200", &rows);
}
