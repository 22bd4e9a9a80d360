//! MPT from 125 million to 70 billion parameters on A100 and H100, one node and many: mosaicml/llm-foundry,
//! scripts/train/benchmarking/README.md, all its tables (torch 2.1, FSDP, `attn_impl: triton`).

use crate::row::{Row, machine};
use serde_json::json;
use tessera_plan::topology::Topology;

const TABLE: &str = include_str!("llm-foundry.csv");

/// A line of the table.
pub struct Line<'a> {
    device: &'a str,
    model: &'a str,
    seq: u64,
    devices: u64,
    micro: u64,
    batch: u64,
    dtype: &'a str,
    /// Whether activations were computed again.
    again: bool,
    /// Tokens a second of all devices.
    rate: u64,
}

impl Line<'_> {
    fn of(text: &str) -> Option<Line<'_>> {
        let mut cells = text.split(',');
        let mut next = || cells.next();
        let number = |cell: Option<&str>| cell?.parse().ok();
        let (device, model) = (next()?, next()?);
        let [seq, devices, micro, batch] = [number(next())?, number(next())?, number(next())?, number(next())?];
        let (dtype, again) = (next()?, next()? == "again");
        Some(Line { device, model, seq, devices, micro, batch, dtype, again, rate: number(next())? })
    }

    /// Whether numbers were fitted to it.
    pub fn is_fitted(&self) -> bool {
        matches!(self.model, "1b" | "7b") && !self.is_narrow()
    }

    pub fn is_narrow(&self) -> bool {
        self.dtype == "fp8"
    }

    fn machine(&self) -> Topology {
        match self.device {
            "h100" => machine("dgx-h100"),
            "a100" => machine("a100"),
            // The A100 of 40 GB has slower memory (its data sheet) and is the same otherwise.
            _ => {
                let mut m = machine("a100");
                m.device.memory_bytes = 40 << 30;
                m.device.memory_gbs = 1555.0;
                m
            }
        }
    }

    fn row(&self) -> Row {
        // Layers, width, heads: scripts/train/yamls/pretrain.
        let (layers, hidden, heads) = match self.model {
            "125m" => (12, 768, 12),
            "350m" => (24, 1024, 16),
            "760m" => (24, 1536, 12),
            "1b" => (24, 2048, 16),
            "3b" => (32, 2560, 20),
            "7b" => (32, 4096, 32),
            "13b" => (40, 5120, 40),
            "30b" => (48, 7168, 56),
            _ => (80, 8192, 64),
        };
        let asked = json!({
            "model": { "layers": layers, "hidden": hidden, "heads": heads, "vocab": 50368, "seq": self.seq },
            "devices": self.devices, "batch": self.batch, "dtype": self.dtype, "tensor": 1, "pipeline": 1, "micro": self.micro,
            "recompute": if self.again { "needed" } else { "none" }, "states": "all",
            "sends": "megatron", "attention": "flash-1", "fused": false, "overlap": "backward", "libraries": 2023
        });
        let name =
            format!("{} {} {} x{} {} {}", self.model, self.seq, self.micro, self.devices, self.device, self.dtype);
        Row::new(name, &self.machine(), &asked, (self.batch * self.seq) as f64 / self.rate as f64)
    }
}

pub fn rows(wanted: impl Fn(&Line) -> bool) -> Vec<Row> {
    let lines = TABLE.lines().filter(|l| !l.starts_with('#'));
    let line = |l| Line::of(l).unwrap_or_else(|| panic!("{l}"));
    lines.map(line).filter(|l| wanted(l)).map(|l| l.row()).collect()
}
