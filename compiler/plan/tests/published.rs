//! Published training runs beside what is predicted for them. Every row is printed; what holds is asserted.

use tessera_plan::memory::{layer_activations, memory};
use tessera_plan::model::{Gpt, Job, Recompute, States};
use tessera_plan::topology::Topology;

const GIB: f64 = (1u64 << 30) as f64;

fn gpt(layers: u64, hidden: u64, heads: u64, vocab: u64, seq: u64, dropout: bool) -> Gpt {
    Gpt { name: String::new(), layers, hidden, heads, kv_heads: None, ffn: None, gated: false, vocab, seq, dropout }
}

fn machine(name: &str) -> Topology {
    Topology::named(name).unwrap_or_else(|| panic!("{name}"))
}

/// A row of the second set: the paper on sequence parallelism, A100.
struct A100Row {
    model: Gpt,
    job: Job,
    /// Seconds: everything computed again; sequence parallel and selective.
    seconds: [f64; 2],
    /// GiB: states; activations of neither; of both.
    gib: [f64; 3],
}

fn a100_rows() -> Vec<A100Row> {
    let row = |heads, hidden, layers, tensor, pipeline, chunks, batch, micro, seconds, gib| A100Row {
        model: gpt(layers, hidden, heads, 51200, 2048, true),
        job: Job {
            tensor,
            pipeline,
            context: 1,
            data: 1,
            chunks,
            micro,
            batch,
            recompute: Recompute::Selective,
            states: States::Whole,
            sequence_parallel: true,
            fused_attention: false,
            overlap: false,
            dtype: "bf16".into(),
        },
        seconds,
        gib,
    };
    vec![
        row(64, 6144, 48, 8, 1, 1, 4, 4, [1.42, 1.10], [45.56, 59.25, 9.56]),
        row(96, 12288, 96, 8, 8, 3, 64, 1, [18.13, 13.75], [45.56, 66.84, 12.35]),
        row(128, 20480, 105, 8, 35, 3, 280, 1, [49.05, 37.83], [31.64, 114.02, 23.08]),
        row(160, 25600, 128, 8, 64, 1, 512, 1, [94.42, 71.49], [32.96, 131.25, 26.56]),
    ]
}

#[test]
fn memory_of_the_a100_runs_is_exact() {
    for row in a100_rows() {
        let plain = Job { recompute: Recompute::None, sequence_parallel: false, ..row.job.clone() };
        let found = [
            memory(&row.model, &row.job).states,
            memory(&row.model, &plain).activations,
            memory(&row.model, &row.job).activations,
        ];
        for (found, published) in found.iter().zip(row.gib) {
            assert!((found / GIB - published).abs() < 0.0051, "{} GiB, published {published}", found / GIB);
        }
        assert!(layer_activations(&row.model, &row.job) > 0.0);
    }
    machine("a100");
}
