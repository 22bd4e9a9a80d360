//! The comparison with other libraries: the same rows, one after the other, in one run.
//!
//! The libraries are run by a command that is given: `COMMAND --peer NAME --workload ROW --threads N
//! --json` prints, as its last line, an object with `median_s`. A library that has no such row
//! prints none.

use crate::program::{binary, root};
use std::process::Command;

/// Rows and the program of `tests/benches/peers` that measures them.
const ROWS: &[(&str, &[&str])] = &[
    (
        "products",
        &[
            "gemm_f32_256",
            "gemm_f32_512",
            "gemm_f32_1024",
            "gemm_f32_2048",
            "gemm_f32_4096",
            "gemm_f32_skinny1",
            "gemm_f32_skinny8",
            "gemm_f32_skinny64",
            "bmm_f32_64x128",
            "gemm_bf16_256",
            "gemm_bf16_512",
            "gemm_bf16_1024",
            "gemm_bf16_2048",
            "gemm_bf16_4096",
            "gemm_bf16_skinny1",
            "gemm_bf16_skinny8",
            "gemm_bf16_skinny64",
            "bmm_bf16_64x128",
        ],
    ),
    ("elementwise", &["saxpy_64m", "vec_add_64m", "gelu_chain_16m", "sum_64m", "sum_exact_64m"]),
    ("rows", &["softmax_4096", "layernorm_4096", "rmsnorm_4096"]),
    (
        "attention",
        &[
            "attn_s2048",
            "attn_s2048_causal",
            "attn_s8192",
            "attn_s8192_causal",
            "attn_s2048_bf16",
            "attn_s2048_causal_bf16",
        ],
    ),
    ("images", &["conv3x3_56", "conv7x7s2_56", "conv7x7s2_stem"]),
    ("spectra", &["fft_1m", "rfft2_16x1024", "spectral_conv"]),
    ("training", &["attn_grad_s1024_causal", "mlp_train", "gpt_train_f32", "gpt2_fwd_f32"]),
];

/// What is to be compared.
pub struct Wanted {
    /// Program and arguments that come before the peer's.
    pub command: Vec<String>,
    pub peers: Vec<String>,
    /// Rows whose names begin so; empty: all.
    pub rows: Vec<String>,
}

impl Wanted {
    /// `"python run.py" numpy,torch [ROW…]`. `None` if something is missing.
    pub fn parse(args: &[String]) -> Option<Wanted> {
        let [command, peers, rows @ ..] = args else { return None };
        let words = |s: &str, by: fn(char) -> bool| s.split(by).filter(|w| !w.is_empty()).map(str::to_owned).collect();
        let (command, peers) = (words(command, char::is_whitespace), words(peers, |c| c == ','));
        Some(Wanted { command, peers, rows: rows.to_vec() })
    }
}

/// Seconds of a row here, by the program's own clock.
fn ours(program: &str, row: &str, threads: usize, policy: &str) -> Option<f64> {
    let file = root().join("tests/benches/peers").join(program).with_extension("tsr");
    let out = Command::new(binary())
        .args(["run", "--threads", &threads.to_string(), "--policy", policy])
        .arg(file)
        .arg(row)
        .output()
        .ok()?;
    if !out.status.success() {
        eprint!("{}", String::from_utf8_lossy(&out.stderr));
    }
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    text.lines().find_map(|l| l.strip_prefix(row)?.trim().parse().ok())
}

/// Seconds of a row there.
fn theirs(command: &[String], peer: &str, row: &str, threads: usize) -> Option<f64> {
    let (program, first) = command.split_first()?;
    let out = Command::new(program)
        .args(first)
        .args(["--peer", peer, "--workload", row, "--threads", &threads.to_string(), "--json"])
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let last: serde_json::Value = serde_json::from_str(text.lines().last()?).ok()?;
    last.get("median_s")?.as_f64()
}

/// Prints what keeping the order of sums costs: the rows (all, or those whose names begin so) under the
/// default policy and under `fast`.
pub fn policies(wanted: &[String]) -> bool {
    println!("| row | threads | deterministic ms | fast ms | deterministic / fast |");
    println!("|---|---|---|---|---|");
    let mut ok = true;
    for (program, row) in ROWS.iter().flat_map(|(program, rows)| rows.iter().map(move |row| (program, row))) {
        if !wanted.is_empty() && !wanted.iter().any(|w| row.starts_with(w.as_str())) {
            continue;
        }
        for threads in [1, 2] {
            let timed = |policy| ours(program, row, threads, policy);
            let (Some(kept), Some(fast)) = (timed("deterministic"), timed("fast")) else {
                println!("| {row} | {threads} | – | | |");
                ok = false;
                continue;
            };
            println!("| {row} | {threads} | {:.3} | {:.3} | {:.2} |", kept * 1e3, fast * 1e3, kept / fast);
        }
    }
    ok
}

/// Prints the table and the geometric mean of the ratios to the best library of each row.
pub fn run(wanted: &Wanted) -> bool {
    println!("| row | threads | Tessera ms | best peer ms | peer | times faster |");
    println!("|---|---|---|---|---|---|");
    let (mut logs, mut count, mut ok) = (0.0, 0u32, true);
    for (program, rows) in ROWS {
        for row in *rows {
            if !wanted.rows.is_empty() && !wanted.rows.iter().any(|w| row.starts_with(w.as_str())) {
                continue;
            }
            for threads in [1, 2] {
                let Some(mine) = ours(program, row, threads, "deterministic") else {
                    println!("| {row} | {threads} | – | | | |");
                    ok = false;
                    continue;
                };
                let timed = |peer| Some((theirs(&wanted.command, peer, row, threads)?, peer));
                let peers = wanted.peers.iter().map(String::as_str);
                let best = peers.filter_map(timed).min_by(|a, b| a.0.total_cmp(&b.0));
                let Some((best, peer)) = best else {
                    println!("| {row} | {threads} | {:.3} | – | | |", mine * 1e3);
                    continue;
                };
                (logs, count) = (logs + (best / mine).ln(), count + 1);
                println!("| {row} | {threads} | {:.3} | {:.3} | {peer} | {:.2} |", mine * 1e3, best * 1e3, best / mine);
            }
        }
    }
    println!("\ngeometric mean over {count} rows: {:.2} times faster", (logs / f64::from(count.max(1))).exp());
    ok
}
