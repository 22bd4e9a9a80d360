use crate::row::{Row, machine, summary};
use serde_json::json;
use tessera_plan::topology::Topology;

const TABLE: &str = include_str!("../rows/llm-foundry.csv");

fn model(name: &str) -> [u64; 3] {
    match name {
        "125m" => [12, 768, 12],
        "350m" => [24, 1024, 16],
        "760m" => [24, 1536, 12],
        "1b" => [24, 2048, 16],
        "3b" => [32, 2560, 20],
        "7b" => [32, 4096, 32],
        "13b" => [40, 5120, 40],
        "30b" => [48, 7168, 56],
        _ => [80, 8192, 64],
    }
}

fn device(name: &str) -> Topology {
    match name {
        "h100_80gb" => machine("dgx-h100"),
        "a100_80gb" => machine("a100"),
        _ => {
            let mut m = machine("a100");
            m.device.memory_bytes /= 2;
            m.device.memory_gbs = 1555.0;
            m
        }
    }
}

fn rows(gpu: &str) -> Vec<(String, Row)> {
    let mut out = vec![];
    for line in TABLE.lines() {
        let c: Vec<&str> = line.split(',').collect();
        let n = |i: usize| c[i].parse::<u64>().unwrap();
        let dtype = if c[6].contains("fp8") { "fp8" } else { "bf16" };
        if format!("{} {dtype}", c[0]) != gpu {
            continue;
        }
        let [layers, hidden, heads] = model(c[1]);
        let (seq, devices, batch) = (n(2), n(3), n(5));
        let asked = json!({
            "model": { "layers": layers, "hidden": hidden, "heads": heads, "vocab": 50368, "seq": seq },
            "devices": devices, "batch": batch, "dtype": dtype, "tensor": 1, "pipeline": 1, "micro": n(4),
            "recompute": if c[8] == "1" { "needed" } else { "none" }, "states": "all",
            "sends": "megatron", "attention": "flash-1", "fused": false, "overlap": "backward", "libraries": 2023
        });
        let seconds = (batch * seq) as f64 / n(11) as f64;
        out.push((
            c[1].to_owned(),
            Row::new(
                format!("{} {} {} x{}{}", c[1], seq, c[4], devices, if c[8] == "1" { " again" } else { "" }),
                &device(c[0]),
                &asked,
                seconds,
            ),
        ));
    }
    out
}

#[test]
fn all() {
    for gpu in ["h100_80gb bf16", "h100_80gb fp8", "a100_80gb bf16", "a100_40gb bf16"] {
        let rows: Vec<Row> = rows(gpu).into_iter().map(|r| r.1).collect();
        summary(gpu, &rows);
    }
}
