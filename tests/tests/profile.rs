//! `tessera profile`: its parts are the whole, and what it leaves in files.

use serde_json::Value;
use std::path::Path;
use tessera_tests::program::{Ran, root, run_in};

fn profile(dir: &Path, args: &[&str]) -> Ran {
    run_in(dir, &[&["profile"], args].concat(), "").unwrap_or_else(|e| panic!("{e}"))
}

fn temp(source: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
    std::fs::write(dir.path().join("main.tsr"), source).unwrap_or_else(|e| panic!("{e}"));
    dir
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

const NESTED: &str = "\
def inner(x, k):
    return op.fori(0, 3, lambda i, c: op.tanh(c @ c * 0.1) + k, x)

def outer(x):
    return op.scan(lambda c, i: (inner(c, i * 0.01), c.sum()), x, op.arange(20))

for i in range(5):
    c, s = outer(op.ones((64, 64)) * i)
print(c.shape, s.shape)
";

const HOST: &str = "\
n = 0
for i in range(300000):
    n += i % 7
x = op.ones((100,))
for i in range(200):
    x = x * 0.99 + n * 0.0
print(n, x.shape)
";

const FILES: &str = "\
x = random.normal(random.key(0), (500, 500))
for i in range(20):
    io.write_npy(\"x.npy\", x)
    y: Tensor[500, 500, f32] = io.read_npy(\"x.npy\")
    x = y * 0.5
print(x.shape)
";

/// Programs of several kinds: kernels, loops in loops, host code, files, interpreted graphs.
fn programs() -> Vec<(String, String)> {
    let examples = ["digits", "gpt_scan", "gpt_mesh", "kmeans", "moe", "pca", "recursive"];
    let of = |name: &str| (name.to_owned(), root().join(format!("examples/{name}.tsr")).to_string_lossy().into_owned());
    examples.map(of).into()
}

/// What is in a profile: kernels, stages and the rest over the time that all threads spent, and how much of it nothing
/// accounts for.
fn parts(value: &Value) -> (f64, f64) {
    let sum = |what: &str| {
        let rows = value[what].as_array().unwrap_or_else(|| panic!("no `{what}`: {value}"));
        let counted = rows.iter().filter(|r| !r["share"].is_null());
        counted.map(|r| r["seconds"].as_f64().unwrap_or(f64::NAN)).sum::<f64>()
    };
    let of = |what: &str| value[what].as_f64().unwrap_or(f64::NAN);
    ((sum("profile") + sum("stages") + of("unknown")) / of("spent"), of("unknown") / of("spent"))
}

#[test]
fn parts_are_the_whole() {
    let own =
        [("nested loops", NESTED), ("host code", HOST), ("files", FILES)].map(|(name, source)| (name, temp(source)));
    let mut all = programs();
    all.extend(
        own.iter().map(|(name, dir)| ((*name).to_owned(), dir.path().join("main.tsr").to_string_lossy().into_owned())),
    );
    for (name, path) in &all {
        let dir = temp("");
        let measured = || {
            let ran = profile(dir.path(), &["--save", "p.json", path]);
            assert_eq!(ran.code, 0, "{name}: {}", ran.err);
            let value = serde_json::from_str(&read(&dir.path().join("p.json"))).unwrap_or_else(|e| panic!("{e}"));
            let (all, unknown) = parts(&value);
            assert!((all - 1.0).abs() < 0.001, "{name}: {all}\n{}", ran.err);
            unknown
        };
        // Another process may have had the core where nothing is measured.
        let unknown = (0..3).map(|_| measured()).find(|u| *u < 0.03);
        assert!(unknown.is_some(), "{name}: more than 3 % of the run are in no row");
    }
}

#[test]
fn a_program_that_fails_leaves_what_was_measured() {
    let dir = temp("x = op.ones((300, 300))\nprint((x @ x).sum())\nprint(1 // int(x[0, 0] - 1.0))\n");
    let ran = profile(dir.path(), &["--save", "p.json", "--trace", "t.json", "--flame", "f.svg", "main.tsr"]);
    assert_eq!((ran.code, ran.out.as_str()), (1, "27000000.0\n"), "{}", ran.err);
    assert!(ran.err.contains("error[E0702]") && ran.err.contains("  dot"), "{}", ran.err);
    for (file, has) in [("p.json", "\"kernel\": \"dot"), ("t.json", "\"traceEvents\""), ("f.svg", "</svg>")] {
        assert!(read(&dir.path().join(file)).contains(has), "{file}");
    }
}

/// Slices of a track either follow one another or lie in one another, and an arrow leads from a line to a kernel.
#[test]
fn a_trace_is_well_formed() {
    let dir = temp(NESTED);
    let ran = profile(dir.path(), &["--trace", "t.json", "main.tsr"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let value: Value = serde_json::from_str(&read(&dir.path().join("t.json"))).unwrap_or_else(|e| panic!("{e}"));
    let events = value["traceEvents"].as_array().cloned().unwrap_or_default();
    let number = |e: &Value, what: &str| e[what].as_f64().unwrap_or_else(|| panic!("{e}"));
    let slices: Vec<&Value> = events.iter().filter(|e| e["ph"] == "X").collect();
    for track in [0, 1] {
        let mut open: Vec<f64> = vec![];
        let mut last = 0.0;
        for e in slices.iter().filter(|e| e["tid"] == track) {
            let (start, end) = (number(e, "ts"), number(e, "ts") + number(e, "dur"));
            assert!(start >= last, "{e}");
            last = start;
            open.retain(|until| *until > start + 0.002);
            assert!(open.iter().all(|until| end <= until + 0.002), "{e} lies across another");
            open.push(end);
        }
    }
    let kernels: Vec<f64> = slices.iter().filter(|e| e["cat"] == "kernel").map(|e| number(e, "ts")).collect();
    let arrows: Vec<&Value> = events.iter().filter(|e| e["ph"] == "f").collect();
    assert!(!arrows.is_empty() && events.iter().filter(|e| e["ph"] == "s").count() == arrows.len());
    assert!(arrows.iter().all(|a| kernels.contains(&number(a, "ts"))), "an arrow leads to no kernel");
}

#[test]
fn profiles_are_compared() {
    let dir = temp("x = op.ones((200, 200))\nfor i in range(50):\n    x = op.tanh(x @ x)\nprint(x.shape)\n");
    assert_eq!(profile(dir.path(), &["--save", "old.json", "main.tsr"]).code, 0);
    let more = "x = op.ones((200, 200))\n\n\nfor i in range(500):\n    x = op.tanh(x @ x)\nprint(x.shape)\n";
    std::fs::write(dir.path().join("main.tsr"), more).unwrap_or_else(|e| panic!("{e}"));
    let ran = profile(dir.path(), &["--against", "old.json", "main.tsr"]);
    let changed: Vec<&str> = ran.err.lines().skip_while(|l| !l.trim_start().starts_with("before")).collect();
    assert!(changed.iter().any(|l| l.contains("dot") && l.ends_with("50 runs before and 500 after")), "{}", ran.err);
    assert!(changed.last().is_some_and(|l| l.ends_with("from start to end")), "{}", ran.err);
}

/// Before the program runs, not after an hour.
#[test]
fn files_that_will_not_do_are_refused_at_once() {
    let dir = temp("print(1)\n");
    let wrong = [
        (["--against", "none.json"], "E0706"),
        (["--against", "main.tsr"], "E0707"),
        (["--save", "nowhere/p.json"], "E0706"),
        (["--trace", "."], "E0706"),
        (["--flame", "nowhere/f.svg"], "E0706"),
    ];
    for (args, code) in wrong {
        let ran = profile(dir.path(), &[&args[..], &["main.tsr"]].concat());
        assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{args:?}");
        assert_eq!(ran.err.matches("error[").count(), 1, "{}", ran.err);
        assert!(ran.err.contains(code), "{}", ran.err);
    }
}
