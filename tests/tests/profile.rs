//! `tessera profile`: its parts are the whole, and what it leaves in files.

use serde_json::Value;
use std::collections::BTreeSet;
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

fn run(source: &str, args: &[&str]) -> Ran {
    let dir = temp(source);
    run_in(dir.path(), &[&["run"], args, &["main.tsr"]].concat(), "").unwrap_or_else(|e| panic!("{e}"))
}

/// The names and keys of the rows that a program printed.
fn rows(printed: &str) -> Vec<(String, Vec<String>)> {
    let row = |line: &str| {
        let mut parts = line.split("  ");
        let name = parts.next().unwrap_or_default().to_owned();
        (name, parts.filter_map(|p| p.split_once('=')).map(|(key, _)| key.to_owned()).collect())
    };
    printed.lines().map(row).collect()
}

const FUNCTIONS: &str = "\
def layer(x: Tensor[N, D, f32], w: Tensor[D, H, f32]) -> Tensor[N, H, f32]:
    return op.tanh(x @ w)

def loss(w: Tensor[D, H, f32], x: Tensor[N, D, f32]):
    return op.square(layer(x, w)).sum()

x = op.ones((48, 64))
w = op.ones((64, 32))
";

#[test]
fn a_function_is_profiled_by_what_its_kernels_compute() {
    let source = format!(
        "{FUNCTIONS}measured = graph.profile(layer, x, w, runs=4)\nrow = measured.rows[-1]\n\
         print(measured.name, measured.runs, row.runs, row.name, row.latency > 0.0, row.tiles > 0, row.tile > 0.0)\n\
         print(row.flops > 0.0, row.place, measured.latency >= row.latency, len(measured.text) > 0)\n"
    );
    let ran = run(&source, &[]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let lines: Vec<&str> = ran.out.lines().collect();
    let product = "FusedOp[MatMul[48x32x64]+Tanh]";
    assert_eq!(lines[lines.len() - 2], format!("layer 4 1.0 {product} True True True"), "{}", ran.out);
    assert_eq!(lines[lines.len() - 1], "True main.tsr:2 True True", "{}", ran.out);
    let found = rows(&lines[..lines.len() - 2].join("\n"));
    assert!(found[0].0 == "layer" && found[0].1 == ["latency", "runs", "kernels"], "{}", ran.out);
    let last = &found[found.len() - 1];
    assert!(
        last.0 == product && last.1.starts_with(&["latency".into(), "flops".into(), "bandwidth".into()]),
        "{}",
        ran.out
    );
    assert!(last.1.ends_with(&["occupancy".into(), "tiles".into()]), "{}", ran.out);
}

/// Derivatives, functions of the language, lambdas, erased functions, host functions, functions that profile.
#[test]
fn every_function_can_be_profiled() {
    let profiled = [
        "graph.profile(autodiff.grad(loss), w, x)",
        "graph.profile(autodiff.vmap(lambda a: op.tanh(a)), x)",
        "graph.profile(op.matmul, x, w)",
        "graph.profile(lambda: layer(x, w))",
        "graph.profile(layer, w=w, x=x)",
        "f: (Tensor[48, 64, f32], Tensor[64, 32, f32]) -> Tensor[48, 32, f32] = layer\ngraph.profile(f, x, w)",
        "def g(n: int):\n    for i in range(n):\n        print(layer(x, w)[0, 0], end=\"\")\ngraph.profile(g, 2, warmup=0, runs=1)",
        "def h():\n    graph.profile(layer, x, w, show=False)\ngraph.profile(h)",
        "from tessera.graph import profile\nprofile(layer, *(x, w))",
    ];
    for call in profiled {
        let ran = run(&format!("{FUNCTIONS}{call}\n"), &[]);
        assert!(ran.code == 0 && ran.out.contains("  latency="), "{call}\n{}{}", ran.out, ran.err);
        assert!(ran.out.contains("Tanh") || ran.out.contains("MatMul"), "{call}\n{}", ran.out);
    }
}

#[test]
fn exchanges_of_a_mesh_are_rows() {
    let source = "mesh = dist.Mesh(axes=[\"dp\"], devices=range(2))\n\
                  x = dist.shard(op.ones((512, 64)), dist.ShardSpec(partition=(\"row\",), mesh_axes=(\"dp\",)), mesh)\n\
                  def loss(w, x):\n    return op.square(x @ w).sum()\n\
                  graph.profile(autodiff.grad(loss), op.ones((64, 64)), x)\n";
    let ran = run(source, &[]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let found = rows(&ran.out);
    let exchange = found.iter().find(|(name, _)| name.ends_with("[dp]"));
    assert!(exchange.is_some_and(|(_, keys)| keys.contains(&"bandwidth".into())), "{}", ran.out);
    assert!(found.iter().any(|(name, _)| name.contains("MatMul[256x64x64]")), "{}", ran.out);
}

/// Functions that are measured from the first call on have the same rows, with what they compute and move, as ones that ran before;
/// rows are no more than the calls, and where kernels are all there is hardly less.
#[test]
fn warmup_changes_no_row() {
    let source = "\
def helper(c, k):
    return op.tanh(c @ c * 0.1) + k

def inner(x, k):
    return op.fori(0, 3, lambda i, c: helper(c, k), helper(x, k))

def outer(x):
    return op.scan(lambda c, i: (inner(c, i * 0.01), c.sum()), x, op.arange(20))

def both(x):
    return helper(x, 1.0) + helper(x @ x, 2.0)

x = op.ones((256, 256)) * 0.01
print(helper(x, 0.5)[0, 0] < 2.0)
for first in [0, 3]:
    for p in [graph.profile(outer, x, warmup=first, runs=5, show=False), graph.profile(both, x, warmup=first, runs=5, show=False)]:
        total = sum([row.latency * row.runs for row in p.rows])
        print(p.runs, (first == 0 or 0.5 < p.kernels) and p.kernels <= 1.0, total < p.latency * 2.0)
        for row in p.rows:
            print(\"row\", row.name, row.kernel, row.runs, row.flops > 0.0, row.bandwidth > 0.0)
    print(\"end\")
";
    let ran = run(source, &[]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let printed = ran.out.strip_prefix("True\n").unwrap_or_else(|| panic!("{}", ran.out));
    let [cold, warm, ""] = printed.split("end\n").collect::<Vec<_>>()[..] else { panic!("{printed}") };
    assert_eq!(cold, warm);
    let lines = |text: &str| cold.lines().filter(|l| l.contains(text)).count();
    assert_eq!(lines("5 True True"), 2, "{cold}");
    assert!(lines("MatMul[256x256x256]") >= 3 && cold.lines().any(|l| l.starts_with("row Loop[")), "{cold}");
    let products = cold.lines().filter(|l| l.contains("MatMul[256x256x256]") && !l.contains("Pack"));
    assert!(products.clone().all(|l| l.ends_with(" True True")), "{cold}");
}

/// The interpreter has no kernels, and a profile of the whole run is as it would be.
#[test]
fn a_profile_inside_of_other_runs() {
    let source = format!("{FUNCTIONS}p = graph.profile(layer, x, w, show=False)\nprint(p.runs, len(p.rows))\n");
    let ran = run(&source, &["--interpret"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, "0 0\n"), "{}", ran.err);
    let dir = temp(&source);
    let ran = profile(dir.path(), &["--save", "p.json", "main.tsr"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let value: Value = serde_json::from_str(&read(&dir.path().join("p.json"))).unwrap_or_else(|e| panic!("{e}"));
    let (all, _) = parts(&value);
    assert!((all - 1.0).abs() < 0.001, "{all}\n{value}");
    let product =
        value["profile"].as_array().into_iter().flatten().find(|r| r["name"] == "FusedOp[MatMul[48x32x64]+Tanh]");
    assert!(
        product.is_some_and(|r| r["runs"].as_u64() >= Some(10) && r["tiles"]["count"].as_u64() >= Some(1)),
        "{value}"
    );
}

#[test]
fn numbers_of_runs_that_only_the_run_knows() {
    let source = format!("{FUNCTIONS}n = len(sys.args)\ngraph.profile(layer, x, w, runs=n)\n");
    let ran = run(&source, &[]);
    assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{}", ran.err);
    assert!(ran.err.contains("E0711") && ran.err.contains("`runs`"), "{}", ran.err);
}

const FUSED: &str = "\
def layer(x: Tensor[N, D, f32], w: Tensor[D, H, f32]) -> Tensor[N, H, f32]:
    h = op.relu(x @ w)
    return h / h.sum(axis=1, keepdims=True)

x = random.normal(random.key(0), (1024, 512))
w = random.normal(random.key(1), (512, 512))
for i in range(3):
    x = layer(x, w)
    print(x[0, 0])
";

#[test]
fn what_is_fused_and_who_holds_memory_is_told() {
    let dir = temp(FUSED);
    let args = ["--fusion", "--peak", "--trace", "t.json", "--save", "p.json", "main.tsr"];
    let ran = profile(dir.path(), &args);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let fusion = "what is fused, and what is not\n";
    assert!(ran.err.contains(fusion) && ran.err.contains("  together: dot\n"), "{}", ran.err);
    let why = "  from memory: what MatMul[1024x512x512] gives: what follows a product inside its kernel goes element by element";
    assert!(ran.err.contains(why), "{}", ran.err);
    let peak: Vec<&str> = ran.err.lines().skip_while(|l| !l.starts_with("memory was fullest with ")).collect();
    // The product lies between its kernel and the next one.
    assert!(peak.iter().any(|l| l.contains("2.0 MiB") && l.ends_with("main.tsr:2")), "{}", ran.err);
    let value: Value = serde_json::from_str(&read(&dir.path().join("p.json"))).unwrap_or_else(|e| panic!("{e}"));
    let holders = value["fullest"]["holders"].as_array().cloned().unwrap_or_default();
    assert!(holders.iter().any(|h| h["place"]["line"] == 2 && h["bytes"] == 1024 * 512 * 4), "{holders:?}");
    let is_fused = |r: &Value| r["fusion"]["together"].as_array().is_some_and(|t| t.len() > 1);
    assert!(value["profile"].as_array().is_some_and(|rows| rows.iter().any(is_fused)), "{value}");
    let trace: Value = serde_json::from_str(&read(&dir.path().join("t.json"))).unwrap_or_else(|e| panic!("{e}"));
    let points = trace["traceEvents"].as_array().into_iter().flatten().filter(|e| e["ph"] == "C");
    assert!(points.clone().count() > 5 && points.clone().all(|e| e["args"]["bytes"].as_u64() > Some(0)));
}

/// Machines differ in what they count; that there are no counters is said once, and the profile is there.
#[test]
fn what_is_counted_and_what_is_not() {
    let dir = temp(FUSED);
    let ran = profile(dir.path(), &["--counters", "--save", "p.json", "main.tsr"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let value: Value = serde_json::from_str(&read(&dir.path().join("p.json"))).unwrap_or_else(|e| panic!("{e}"));
    let rows = value["profile"].as_array().cloned().unwrap_or_default();
    assert!(!rows.is_empty());
    for name in ["cycles", "instructions", "cache misses", "page faults"] {
        let key = name.replace(' ', "_");
        let counted = rows.iter().any(|r| r["counted"][&key].is_u64());
        let missing = ran.err.lines().any(|l| l.starts_with("not counted: ") && l.contains(name));
        assert!(counted != missing, "{name}\n{}", ran.err);
    }
    // One line for each reason, and one column for each that is counted.
    let lines: Vec<&str> = ran.err.lines().filter_map(|l| l.strip_prefix("not counted: ")).collect();
    let reasons: BTreeSet<&str> = lines.iter().filter_map(|l| l.split_once(": ")).map(|(_, why)| why).collect();
    assert_eq!(lines.len(), reasons.len(), "{}", ran.err);
    let plain = profile(dir.path(), &["main.tsr"]);
    assert!(!plain.err.contains("not counted") && !plain.err.contains("fullest"), "{}", plain.err);
}
