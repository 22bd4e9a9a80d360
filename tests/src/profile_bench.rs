//! What the profiler costs: a program of many small kernels and one of large ones, with and without it. Without it, what is left of
//! it are its hooks, each a look at a flag: their time is measured here and multiplied by how many there are.

use crate::program::run_in;
use serde_json::Value;
use std::hint::black_box;
use std::path::Path;
use std::time::Instant;
use tessera_runtime::{counters, profile};

/// Pairs of runs, one after the other, so that what else the machine does meets both.
const ROUNDS: usize = 9;
const HOOKS: u32 = 200_000;

/// Loops of kernels, which print the seconds of the last turns.
const PROGRAMS: [(&str, &str); 3] = [
    (
        "small kernels, some microseconds each",
        "def turn(c, i):\n    s = op.softmax(c @ c)\n    return op.tanh(s.T * 0.5 + c), s[0, 0]\n\n\
         def steps(x):\n    return op.scan(turn, x, op.arange(3000))\n\n\
         x = op.ones((64, 64)) * 0.01\nsteps(x)\nt = time.perf_counter()\nprint(steps(x)[0].sum())\n\
         print(time.perf_counter() - t)\n",
    ),
    (
        "the smallest kernels, less than a microsecond each",
        "def turn(c, i):\n    s = op.sort(c)\n    return op.tanh(s * 0.5 + c), s[0]\n\n\
         def steps(x):\n    return op.scan(turn, x, op.arange(20000))\n\n\
         x = op.arange(64) * 0.01\nsteps(x)\nt = time.perf_counter()\nprint(steps(x)[0].sum())\n\
         print(time.perf_counter() - t)\n",
    ),
    (
        "large kernels",
        "def step(x, w):\n    return op.tanh(x @ w)\n\n\
         x = random.normal(random.key(0), (768, 768))\nw = random.normal(random.key(1), (768, 768))\nstep(x, w)\n\
         print(x[0, 0])\nt = time.perf_counter()\nfor i in range(40):\n    x = step(x, w)\nprint(x[0, 0])\n\
         print(time.perf_counter() - t)\n",
    ),
];

/// Seconds of a program's loop.
fn seconds(dir: &Path, args: &[&str]) -> Option<f64> {
    let ran = run_in(dir, args, "").ok()?;
    let last = ran.out.lines().last().and_then(|l| l.parse().ok());
    last.filter(|_| ran.code == 0).or_else(|| {
        eprintln!("{args:?}: {}", ran.err);
        None
    })
}

/// How often a step or a stage begins in a run.
fn hooks(dir: &Path) -> Option<u64> {
    run_in(dir, &["profile", "--save", "p.json", "main.tsr"], "").ok()?;
    let value: Value = serde_json::from_str(&std::fs::read_to_string(dir.join("p.json")).ok()?).ok()?;
    let runs =
        |what: &str| value[what].as_array().into_iter().flatten().filter_map(|r| r["runs"].as_u64()).sum::<u64>();
    Some(runs("profile") + runs("stages"))
}

/// Seconds of a hook of a step that is not timed.
fn hook() -> f64 {
    let once = |_| {
        let start = Instant::now();
        for _ in 0..HOOKS {
            let counted = counters::read();
            profile::after(profile::before(), "a step", Default::default(), None, || None);
            profile::holds(Vec::new);
            black_box(counted.is_some());
        }
        start.elapsed().as_secs_f64() / f64::from(HOOKS)
    };
    median((0..51).map(once).collect())
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or(f64::NAN)
}

fn measured(name: &str, source: &str) -> Option<()> {
    let dir = tempfile::tempdir().ok()?;
    std::fs::write(dir.path().join("main.tsr"), source).ok()?;
    let hooks = hooks(dir.path())?;
    let kinds: [(&str, &[&str]); 3] = [
        ("profile", &["profile", "main.tsr"]),
        ("profile --trace", &["profile", "--trace", "t.json", "main.tsr"]),
        ("profile --peak --fusion", &["profile", "--peak", "--fusion", "main.tsr"]),
    ];
    let mut off = vec![];
    let mut ratios = kinds.map(|_| vec![]);
    for _ in 0..ROUNDS {
        for ((_, args), ratios) in kinds.iter().zip(&mut ratios) {
            let (without, with) = (seconds(dir.path(), &["run", "main.tsr"])?, seconds(dir.path(), args)?);
            off.push(without);
            ratios.push(with / without);
        }
    }
    let (hook, seconds) = (hook(), median(off));
    // More than those of the loop that is timed, for the program runs it twice.
    let share = 100.0 * hook * hooks as f64 / seconds;
    println!("{name}: {:.1} ms a run", seconds * 1e3);
    println!("  off: {hooks} hooks of {:.1} ns, at most {share:.3} % of the time", hook * 1e9);
    for ((kind, _), ratios) in kinds.iter().zip(ratios) {
        println!("  {kind}: {:+.1} %", 100.0 * (median(ratios) - 1.0));
    }
    Some(())
}

/// Prints the figures; `false` where a program did not run.
pub fn run() -> bool {
    PROGRAMS.iter().all(|(name, source)| measured(name, source).is_some())
}
