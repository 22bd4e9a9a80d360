use crate::row::{Row, machine, summary};
use serde_json::json;

#[test]
fn flash() {
    let m = machine("a100");
    let mut rows = vec![];
    for (name, layers, hidden, heads, seq, tf) in [
        ("1.3B 2k", 24, 2048, 16, 2048, [142.0, 189.0, 196.0]),
        ("1.3B 8k", 24, 2048, 16, 8192, [72.0, 170.0, 220.0]),
        ("2.7B 2k", 32, 2560, 20, 2048, [149.0, 189.0, 205.0]),
        ("2.7B 8k", 32, 2560, 20, 8192, [80.0, 175.0, 225.0]),
    ] {
        for (i, attention) in ["unfused", "flash-1", "flash-2"].iter().enumerate() {
            let tokens = 1u64 << 20;
            let asked = json!({ "model": { "layers": layers, "hidden": hidden, "heads": heads, "vocab": 50264, "seq": seq },
                "devices": 8, "batch": tokens / seq, "tensor": 1, "pipeline": 1, "sends": "megatron", "states": "whole", 
                "attention": attention, "fused": i > 0, "overlap": "backward", "libraries": 2023 });
            let params = (layers * 12 * hidden * hidden + 50264 * hidden) as f64;
            let flops = tokens as f64 * (6.0 * params + (12 * layers * hidden * seq) as f64);
            rows.push(Row::new(format!("{name} {attention}"), &m, &asked, flops / 8.0 / tf[i] / 1e12));
        }
    }
    summary("FA2", &rows);
}
