//! What Tessera sends by its plan, beside what `tessera plan` and `tessera profile` count for the programs of
//! `tests/benches` (docs/perf-log.md, 2026-11-27). They compute with four bytes.

use tessera_plan::model::{Gpt, Job, Recompute, States};
use tessera_plan::stack::{Sends, Stack};
use tessera_plan::topology::Topology;
use tessera_plan::training::{Step, step};

fn plan(layers: u64, hidden: u64, seq: u64, vocab: u64, [tensor, pipeline, data]: [u64; 3], batch: u64) -> Step {
    let Some(machine) = Topology::named("dgx-h100") else { panic!("dgx-h100") };
    // Heads carry nothing: as many as every division has parts.
    let heads = 64;
    let name = String::new();
    let model =
        Gpt { name, layers, hidden, heads, kv_heads: None, ffn: None, gated: false, vocab, seq, dropout: false };
    let job = Job {
        tensor,
        pipeline,
        context: 1,
        data,
        chunks: 1,
        micro: batch / data / if pipeline > 1 { 4 } else { 1 },
        batch,
        recompute: Recompute::None,
        again: None,
        states: States::Whole,
        sequence_parallel: false,
        dtype: "f32".into(),
        stack: Stack::of(Sends::Tessera),
    };
    step(&machine, &model, &job, false).unwrap_or_else(|e| panic!("{e}"))
}

/// How far bytes are from what was counted, in MB.
fn compare(what: &str, n: u64, counted: f64, bytes: f64) -> f64 {
    let error = bytes / 1e6 / counted - 1.0;
    println!(
        "{what:<8} {n:>2} devices: counted {counted:>6.2} MB, planned {:>6.2}  {:>+5.1} %",
        bytes / 1e6,
        error * 100.0
    );
    error.abs()
}

/// `tensor_parallel.tsr`: 256 features to a device, 2 layers, 2 sequences of 128.
#[test]
fn sums_of_divided_matrices() {
    for (n, counted) in [(2, 4.19), (4, 12.6), (8, 29.4), (16, 62.9), (32, 130.0), (64, 264.0)] {
        let found = plan(2, 256 * n, 128, 256, [n, 1, 1], 2);
        assert!(compare("tensor", n, counted, found.tensor_bytes) < 0.005);
    }
}

/// `data_parallel.tsr`: 4 layers of 256, whole states. Biases, norms and positions are not counted in the plan.
#[test]
fn gradients_of_replicas() {
    for (n, counted) in [(2, 13.9), (4, 20.8), (8, 24.4), (16, 26.2), (32, 27.2), (64, 27.8)] {
        let found = plan(4, 256, 128, 256, [1, 1, n], 8 * n);
        assert!(compare("data", n, counted, found.data_bytes) < 0.10);
    }
}

/// `pipeline_parallel.tsr`: 16 sequences of 64 in 4 parts, layers of 128. The plan is that of a stage between two others;
/// the two at the ends send half of it.
#[test]
fn borders_of_stages() {
    for (n, counted) in [(2, 0.52), (4, 0.79), (8, 0.92), (16, 0.98), (32, 1.02), (64, 1.03)] {
        let found = plan(n, 128, 64, 256, [1, n, 1], 16);
        let mean = found.pipeline_bytes * (n - 1) as f64 / n as f64;
        assert!(compare("pipeline", n, counted, mean) < 0.01);
    }
}
