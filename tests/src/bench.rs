//! The speed figures: whole processes and programs that time themselves. Release builds only;
//! medians of several runs. Nothing here fails by time.

use crate::program::{binary, root};
use crate::size_problems::{Problem, problems};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// One figure with its mark.
struct Figure {
    name: String,
    value: f64,
    unit: &'static str,
    /// What the project promises, as text.
    mark: &'static str,
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Milliseconds of a whole process, median of `runs`.
fn process_ms(args: &[&str], cache: &Path, cold: bool, runs: usize) -> f64 {
    let once = |_| {
        if cold {
            let _ = std::fs::remove_dir_all(cache);
        }
        let start = Instant::now();
        let status = Command::new(binary()).args(args).env("TESSERA_CACHE", cache).output();
        let ms = start.elapsed().as_secs_f64() * 1e3;
        if status.is_ok_and(|s| s.status.success()) { ms } else { f64::NAN }
    };
    median((0..runs).map(once).collect())
}

/// `name value` lines that a program prints.
fn program_figures(file: &Path, threads: usize) -> Vec<(String, f64)> {
    let out = Command::new(binary()).args(["run", "--threads", &threads.to_string()]).arg(file).output();
    let Ok(out) = out else { return vec![] };
    if !out.status.success() {
        eprintln!("{}", String::from_utf8_lossy(&out.stderr));
    }
    String::from_utf8_lossy(&out.stdout)
        .lines()
        .filter_map(|l| {
            let (name, value) = l.split_once(' ')?;
            Some((name.to_owned(), value.trim().parse().ok()?))
        })
        .collect()
}

/// What compiling a program's kernels takes, each in milliseconds, in rising order.
fn kernel_ms(file: &Path) -> Vec<f64> {
    let out = Command::new(binary()).args(["run", "-v", "--no-cache"]).arg(file).output();
    let text = out.map_or(String::new(), |out| String::from_utf8_lossy(&out.stderr).into_owned());
    let of = |line: &str| line.strip_prefix("compiled ")?.strip_suffix(" ms")?.rsplit_once(' ')?.1.parse().ok();
    let mut times: Vec<f64> = text.lines().filter_map(of).collect();
    times.sort_by(f64::total_cmp);
    times
}

/// What the first call of a GPT block takes and what the compiler takes of it.
fn gpt_block(file: &Path, add: &mut dyn FnMut(&str, f64, &'static str, &'static str)) {
    let out = Command::new(binary()).args(["run", "--no-cache"]).arg(file).output();
    let text = out.map_or(String::new(), |out| String::from_utf8_lossy(&out.stdout).into_owned());
    for (name, value) in text.lines().filter_map(|l| l.split_once(' ')) {
        let mark = if name == "gpt_block_first_ms" { "<= 1500" } else { "" };
        add(name, value.parse().unwrap_or(f64::NAN), "ms", mark);
    }
    let times = kernel_ms(file);
    let at = |i: usize| times.get(i).copied().unwrap_or(f64::NAN);
    add("a kernel of it to machine code, median", at(times.len() / 2), "ms", "<= 60");
    add("a kernel of it to machine code, slowest", at(times.len().saturating_sub(1)), "ms", "");
}

/// A program of about so many lines: functions like those that people write.
pub fn long_program(lines: usize) -> String {
    let mut out = String::new();
    for i in 0..lines / 8 {
        out.push_str(&format!(
            "def layer{i}(x: Tensor[N, D, f32], w: Tensor[D, H, f32], b: Tensor[H, f32]) -> Tensor[N, H, f32]:\n    \
             h = x @ w + b\n    \
             scale = 1.0 / {}.0\n    \
             if D > {i}:\n        \
             h = op.relu(h) * scale\n    \
             y = op.softmax(h, axis=-1)\n    \
             return y - y.mean(axis=0)\n\n",
            i + 1
        ));
    }
    out
}

/// Milliseconds that checking a text again takes after one line of it has changed, in process.
fn recheck_ms(text: &str, runs: usize) -> f64 {
    let mut db = tessera_infer::db::Database::default();
    let loader = tessera_resolve::source::NoFiles;
    let mut check = |text: &str| {
        let start = Instant::now();
        let checked = tessera_infer::check_program_only(&mut db, "long.tsr", text, &loader);
        (start.elapsed().as_secs_f64() * 1e3, checked.diagnostics.len())
    };
    check(text);
    let line = "    scale = 1.0 / 1250.0\n";
    let edited = |i: usize| text.replacen(line, &format!("    scale = {}.5 / 1250.0\n", i + 2), 1);
    median((0..runs).map(|i| check(&edited(i)).0).collect())
}

/// Milliseconds that checking each problem about sizes takes, in process, in rising order. A problem asks several
/// questions; what a program without any takes is in each.
fn size_problems_ms() -> Vec<(f64, String)> {
    let loader = tessera_resolve::source::NoFiles;
    let once = |text: &str| {
        let mut db = tessera_infer::db::Database::default();
        let start = Instant::now();
        tessera_infer::check_program_only(&mut db, "problem.tsr", text, &loader);
        start.elapsed().as_secs_f64() * 1e3
    };
    let all = problems();
    let timed = |p: &Problem| (median((0..5).map(|_| once(&p.program)).collect()), p.heading.clone());
    let mut times: Vec<(f64, String)> = all.iter().map(timed).collect();
    times.sort_by(|a, b| a.0.total_cmp(&b.0));
    times
}

/// Runs everything and prints the table.
pub fn run() -> bool {
    let benches = root().join("tests/benches");
    let file = |name: &str| benches.join(name).display().to_string();
    let cache = std::env::temp_dir().join("tessera-bench-cache");
    let mut figures = vec![];
    let mut add =
        |name: &str, value: f64, unit, mark| figures.push(Figure { name: name.to_owned(), value, unit, mark });
    add("run hello.tsr, whole process", process_ms(&["run", &file("hello.tsr")], &cache, false, 21), "ms", "<= 15");
    add(
        "first 128x128 product, cold cache",
        process_ms(&["run", &file("first_product.tsr")], &cache, true, 9),
        "ms",
        "<= 150",
    );
    add(
        "first 128x128 product, warm cache",
        process_ms(&["run", &file("first_product.tsr")], &cache, false, 15),
        "ms",
        "<= 40",
    );
    let long = std::env::temp_dir().join("tessera-bench-long.tsr");
    let text = long_program(20_000);
    add("re-check after a one-line edit, in process", recheck_ms(&text, 21), "ms", "<= 20");
    if std::fs::write(&long, &text).is_ok() {
        let path = long.display().to_string();
        add("check 20,000 lines, whole process", process_ms(&["check", &path], &cache, false, 9), "ms", "<= 400");
    }
    let problem_ms = size_problems_ms();
    if let (Some((middle, _)), Some((most, which))) = (problem_ms.get(problem_ms.len() / 2), problem_ms.last()) {
        add("a problem about sizes, in process, median", *middle, "ms", "");
        add(&format!("slowest: {which}"), *most, "ms", "");
    }
    gpt_block(&benches.join("gpt_block.tsr"), &mut add);
    for threads in [1, 2] {
        for (name, value) in program_figures(&benches.join("matmul.tsr"), threads) {
            add(&format!("{name}, {threads} threads"), value, "GFLOP/s", "");
        }
        for (name, value) in program_figures(&benches.join("attention.tsr"), threads) {
            let (unit, mark) = if name.ends_with("over_products") { ("x", "<= 1.15 at 8192") } else { ("GFLOP/s", "") };
            add(&format!("{name}, {threads} threads"), value, unit, mark);
        }
        for (name, value) in program_figures(&benches.join("rows.tsr"), threads) {
            add(&format!("{name}, {threads} threads"), value, "GB/s", ">= 0.9 of the copy");
        }
        for (name, value) in program_figures(&benches.join("elementwise.tsr"), threads) {
            add(&format!("{name}, {threads} threads"), value, "GB/s", "");
        }
    }
    for (name, value) in program_figures(&benches.join("call.tsr"), 1) {
        add(&name, value, "µs", "<= 5");
    }
    for f in &figures {
        println!("{:<44} {:>10.2} {:<8} {}", f.name, f.value, f.unit, f.mark);
    }
    figures.iter().all(|f| f.value.is_finite())
}
