//! What a training step on a mesh sends stays near what has to be sent: for each way of dividing a GPT, the bytes of the plan beside the ideal.
//!
//! The programs are those of `tests/benches`, on meshes of a few sizes; [`law_plan`] holds the plan to what is sent when they run.

use std::path::Path;
use tessera_tests::program::{root, run_source};

/// Of the ideal.
const MOST: f64 = 1.1;

/// A program of `tests/benches` with lines in place of others.
fn program(name: &str, instead: &[(&str, String)]) -> String {
    let path = root().join(Path::new("tests/benches").join(name));
    let mut text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    for (line, by) in instead {
        assert!(text.contains(line), "{name} lacks `{line}`");
        text = text.replace(line, by);
    }
    text
}

/// The same on another number of devices than it says.
fn program_on(name: &str, (said, devices): (u64, u64), instead: &[(&str, String)]) -> String {
    let range = |n: u64| format!("range({n})");
    let (old, new) = (range(said), range(devices));
    program(name, &[instead, &[(&old, new)]].concat())
}

/// The bytes that devices send in the mean.
fn sent(source: &str, devices: u64) -> f64 {
    let ran = run_source(source, &["plan", "--json"]).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(ran.code, 0, "{}\n{source}", ran.err);
    let plan: serde_json::Value = serde_json::from_str(&ran.out).unwrap_or_else(|e| panic!("{e}\n{}", ran.out));
    let all = |v: &serde_json::Value, key: &str| v[key].as_array().cloned().unwrap_or_default();
    let mut total = 0;
    for region in all(&plan, "regions") {
        let calls = region["calls"].as_u64().unwrap_or(0);
        for class in all(&region, "classes") {
            let each: u64 = all(&class, "exchanges").iter().filter_map(|e| e["sent"].as_u64()).sum();
            total += calls * each * all(&class, "devices").len() as u64;
        }
    }
    total as f64 / devices as f64
}

fn hold(what: &str, devices: u64, sent: f64, ideal: f64) {
    println!("{what} on {devices} devices: {sent:.0} bytes, ideal {ideal:.0}, {:.3} times", sent / ideal);
    assert!(sent <= MOST * ideal, "{what} on {devices} devices sends {sent:.0} bytes, and {ideal:.0} would do");
}

/// Of what all devices have, what each one of `n` sends of it to the others.
fn others(n: u64) -> f64 {
    (n - 1) as f64 / n as f64
}

/// Numbers of a block of a GPT of this width: matrices, biases and norms.
fn block(width: u64) -> (u64, u64) {
    (12 * width * width, 13 * width)
}

#[test]
fn data_parallel() {
    let (width, layers, context, tokens) = (256, 4, 128, 256);
    for n in [2, 4, 8] {
        let text = program_on("data_parallel.tsr", (8, n), &[("DEVICES = 8", format!("DEVICES = {n}"))]);
        let (matrices, vectors) = block(width);
        let numbers = layers * (matrices + vectors) + (tokens + context + 2) * width;
        hold("data parallel", n, sent(&text, n), 2.0 * others(n) * 4.0 * numbers as f64);
    }
}

#[test]
fn tensor_parallel() {
    let (batch, context, layers) = (2, 128, 2);
    for (n, width) in [(2, 512), (4, 1024), (8, 2048)] {
        let text = program_on("tensor_parallel.tsr", (4, n), &[("WIDTH = 1024", format!("WIDTH = {width}"))]);
        let ideal = (8 * layers * batch * context * width * 4) as f64 * others(n);
        hold("tensor parallel", n, sent(&text, n), ideal);
    }
}

#[test]
fn sequence_parallel() {
    let (batch, layers) = (2, 2);
    for (n, width) in [(2, 512), (4, 1024), (8, 2048)] {
        let context = 512 * n;
        let text = program(
            "sequence_parallel.tsr",
            &[
                ("range(4), shape=[1, 4]", format!("range({n}), shape=[1, {n}]")),
                ("WIDTH = 1024", format!("WIDTH = {width}")),
                ("HEADS = 16", format!("HEADS = {}", width / 64)),
                ("\"--context\", 2048", format!("\"--context\", {context}")),
            ],
        );
        let ideal = ((8 * layers + 2) * batch * context * width * 4) as f64 * others(n);
        hold("sequence parallel", n, sent(&text, n), ideal);
    }
}

#[test]
fn data_and_tensor_parallel() {
    let (context, layers, tokens) = (128, 2, 256);
    for (dp, tp, width) in [(2, 2, 512), (4, 2, 512), (2, 4, 1024)] {
        let (n, batch) = (dp * tp, 4 * dp);
        let text = program(
            "mixed_parallel.tsr",
            &[
                ("range(4), shape=[2, 2]", format!("range({n}), shape=[{dp}, {tp}]")),
                ("WIDTH = 512", format!("WIDTH = {width}")),
                ("HEADS = 8", format!("HEADS = {}", width / 64)),
                ("\"--batch\", 8", format!("\"--batch\", {batch}")),
            ],
        );
        let activations = (8 * layers * batch / dp * context * width * 4) as f64 * others(tp);
        let (matrices, _) = block(width);
        // Split are matrices, and the biases behind those of columns.
        let split = layers * (matrices + 7 * width) / tp;
        let whole = layers * 6 * width + (tokens + context + 2) * width;
        let gradients = 2.0 * others(dp) * 4.0 * (split + whole) as f64;
        hold("data and tensor parallel", n, sent(&text, n), activations + gradients);
    }
}

#[test]
fn expert_parallel() {
    let (width, experts, tokens, k) = (256, 16, 512, 2);
    for n in [2, 4, 8] {
        let text = program_on("expert_parallel.tsr", (4, n), &[("GROUPS = 4", format!("GROUPS = {n}"))]);
        let moved = (4 * k * tokens * width * 4) as f64 * others(n);
        let gradients = (2 * width * (experts + width) * 4) as f64 * others(n);
        hold("expert parallel", n, sent(&text, n), moved + gradients);
    }
}

#[test]
fn pipeline_parallel() {
    let (width, context, batch) = (128, 64, 16);
    for n in [2, 4, 8] {
        let between: String = (1..n - 1).map(|i| format!("        lambda x: nn.gpt_block(b[{i}], x),\n")).collect();
        let last = format!("        lambda x: nn.gpt_block(b[{}], x) @ head,\n", n - 1);
        let placed: String = (0..n).map(|i| format!("    place(block({i}), {i}),\n")).collect();
        let text = program(
            "pipeline_parallel.tsr",
            &[
                ("range(4)", format!("range({n})")),
                ("        lambda x: nn.gpt_block(b[1], x),\n        lambda x: nn.gpt_block(b[2], x),\n", between),
                ("        lambda x: nn.gpt_block(b[3], x) @ head,\n", last),
                (
                    "    place(block(0), 0),\n    place(block(1), 1),\n    place(block(2), 2),\n    place(block(3), 3),\n",
                    placed,
                ),
                ("place(table.T, 3)", format!("place(table.T, {})", n - 1)),
            ],
        );
        hold("pipeline", n, sent(&text, n), 2.0 * others(n) * (batch * context * width * 4) as f64);
    }
}
