//! What `tessera advise` predicts for programs with one fault each, beside what the edit brings. The programs are pairs in
//! `tests/advise`: `RULE.slow.tsr`, whose faulty line ends in `# fault`, and `RULE.fast.tsr`.

use crate::program::{root, run_in};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Runs of each program; their medians count.
const RUNS: usize = 5;

/// A program with a fault, and the same after the edit.
pub struct Pair {
    pub rule: String,
    pub slow: PathBuf,
    pub fast: PathBuf,
    /// Where the fault is.
    pub line: u64,
}

/// All pairs, by name.
///
/// # Panics
/// Where the folder cannot be read.
pub fn pairs() -> Vec<Pair> {
    let dir = root().join("tests/advise");
    let read = std::fs::read_dir(&dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
    let mut names: Vec<PathBuf> = read.filter_map(|e| Some(e.ok()?.path())).collect();
    names.sort();
    let pair = |slow: &PathBuf| {
        let rule = slow.file_name()?.to_str()?.strip_suffix(".slow.tsr")?.to_owned();
        let text = std::fs::read_to_string(slow).ok()?;
        let line = text.lines().position(|l| l.ends_with("# fault"))? as u64 + 1;
        Some(Pair { fast: dir.join(format!("{rule}.fast.tsr")), slow: slow.clone(), rule, line })
    };
    names.iter().filter_map(pair).collect()
}

/// What a program prints, and the advice.
///
/// # Errors
/// What went wrong.
pub fn advice(dir: &Path, program: &Path) -> Result<(String, Value), String> {
    let ran = run_in(dir, &["advise", "--json", &program.to_string_lossy()], "").map_err(|e| e.to_string())?;
    let value =
        ran.err.lines().filter_map(|l| serde_json::from_str::<Value>(l).ok()).find(|v| v["findings"].is_array());
    match value {
        Some(value) if ran.code == 0 => Ok((ran.out, value)),
        _ => Err(format!("{}: exit {}\n{}", program.display(), ran.code, ran.err)),
    }
}

/// The finding about the fault of a pair.
pub fn finding<'v>(pair: &Pair, advice: &'v Value) -> Option<&'v Value> {
    let all = advice["findings"].as_array()?;
    all.iter().find(|f| f["rule"] == *pair.rule && f["place"]["line"] == pair.line)
}

/// Prints a line for each rule; `only` names some.
pub fn run(only: &[String]) -> bool {
    let here = std::env::temp_dir();
    let mut ok = true;
    println!("{:<16} {:>10} {:>10} {:>8} {:>12}", "rule", "predicted", "measured", "ratio", "whole before");
    for pair in pairs().iter().filter(|p| only.is_empty() || only.contains(&p.rule)) {
        match gains(&here, pair) {
            Ok([predicted, measured, whole]) => {
                let [p, m, w] = [predicted, measured, whole].map(|s| format!("{:.1} ms", s * 1e3));
                println!("{:<16} {p:>10} {m:>10} {:>8.2} {w:>12}", pair.rule, predicted / measured);
            }
            Err(e) => {
                eprintln!("{e}");
                ok = false;
            }
        }
    }
    ok
}

/// Seconds that the edit should bring, that it brings, and that the program takes before: medians of runs in turn.
fn gains(here: &Path, pair: &Pair) -> Result<[f64; 3], String> {
    let (mut gains, mut slow, mut fast): (Vec<f64>, Vec<f64>, Vec<f64>) = Default::default();
    // The first runs compile what the others find in the cache.
    for i in 0..=RUNS {
        let before = advice(here, &pair.slow)?.1;
        let after = advice(here, &pair.fast)?.1;
        if i > 0 {
            finding(pair, &before).ok_or_else(|| format!("{}: nothing found", pair.slow.display()))?;
            let all = before["findings"].as_array().into_iter().flatten().filter(|f| f["rule"] == *pair.rule);
            gains.push(all.filter_map(|f| f["gain"].as_f64()).sum());
            slow.push(before["whole"].as_f64().unwrap_or_default());
            fast.push(after["whole"].as_f64().unwrap_or_default());
        }
    }
    let median = |all: &mut Vec<f64>| {
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    let (slow, fast) = (median(&mut slow), median(&mut fast));
    Ok([median(&mut gains), slow - fast, slow])
}
