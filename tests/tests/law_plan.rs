//! What `tessera plan` says is what happens: bytes between devices as the runtime counts them, and memory as plans
//! place it.

use std::collections::BTreeMap;
use tessera::backend::{Backend, Options};
use tessera::cache::DiskCache;
use tessera_runtime::pool::Pool;
use tessera_tests::program::run_source;
use tessera_tests::random_graph::{Scale, case};

/// Bytes and runs by exchange and device.
type Counts = BTreeMap<(String, u64), (u64, u64)>;

fn predicted(source: &str) -> Counts {
    let ran = run_source(source, &["plan", "--json"]).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(ran.code, 0, "{}\n{source}", ran.err);
    let plan: serde_json::Value = serde_json::from_str(&ran.out).unwrap_or_else(|e| panic!("{e}\n{}", ran.out));
    let all = |v: &serde_json::Value, key: &str| v[key].as_array().cloned().unwrap_or_default();
    let mut out = Counts::new();
    for region in all(&plan, "regions") {
        let calls = region["calls"].as_u64().unwrap_or(0);
        for class in all(&region, "classes") {
            for e in all(&class, "exchanges") {
                for device in all(&class, "devices") {
                    let key = (e["name"].as_str().unwrap_or("").to_owned(), device.as_u64().unwrap_or(0));
                    let row = out.entry(key).or_default();
                    row.0 += calls * e["sent"].as_u64().unwrap_or(0);
                    row.1 += calls * e["runs"].as_u64().unwrap_or(0);
                }
            }
        }
    }
    out
}

fn counted(source: &str) -> Counts {
    let ran = run_source(source, &["profile"]).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(ran.code, 0, "{}\n{source}", ran.err);
    let rows = ran.err.lines().skip_while(|l| !l.starts_with("exchange ")).skip(1);
    let row = |line: &str| {
        let mut words: Vec<&str> = line.split_whitespace().collect();
        // Three times with their units stand last.
        words.truncate(words.len().saturating_sub(6));
        let mut number = || words.pop().and_then(|w| w.parse::<u64>().ok()).unwrap_or_else(|| panic!("{line}"));
        let (bytes, runs, device) = (number(), number(), number());
        ((words.join(" "), device), (bytes, runs))
    };
    rows.map(row).collect()
}

/// How two layers lie, and how their products are completed.
struct Case {
    x: &'static str,
    up: &'static str,
    down: &'static str,
    first: &'static str,
    second: &'static str,
}

fn program(mesh: (u64, u64), sizes: [u64; 3], case: &Case, calls: u64) -> String {
    let (a, b) = mesh;
    let [n, d, h] = sizes;
    let Case { x, up, down, first, second } = case;
    format!(
        "mesh = dist.Mesh(axes=[\"a\", \"b\"], devices=range({}), shape=[{a}, {b}])
x = dist.shard(random.normal(random.key(0), ({n}, {d})), dist.ShardSpec({x}), mesh=mesh)
up = dist.shard(random.normal(random.key(1), ({d}, {h})), dist.ShardSpec({up}), mesh=mesh)
down = dist.shard(random.normal(random.key(2), ({h}, {d})), dist.ShardSpec({down}), mesh=mesh)

def step(x, up, down):
    y = x @ up
    y = op.relu({first})
    y = y @ down
    y = {second}
    return dist.gather(op.softmax(y, axis=1) + y)

for i in range({calls}):
    print(step(x, up, down))
",
        a * b
    )
}

const ROW_A: &str = "partition=(\"row\",), mesh_axes=(\"a\",)";
const ROW_B: &str = "partition=(\"row\",), mesh_axes=(\"b\",)";
const COL_A: &str = "partition=(\"col\",), mesh_axes=(\"a\",)";
const COL_B: &str = "partition=(\"col\",), mesh_axes=(\"b\",)";
const BOTH: &str = "partition=(\"row\", \"col\"), mesh_axes=(\"a\", \"b\")";
const SUM_A: &str = "dist.collective.all_reduce(y, axis=\"a\")";
const SUM_B: &str = "dist.collective.all_reduce(y, axis=\"b\")";

const CASES: &[Case] = &[
    Case { x: ROW_A, up: COL_B, down: ROW_B, first: "y", second: SUM_B },
    Case { x: COL_B, up: ROW_B, down: COL_A, first: SUM_B, second: "y" },
    Case { x: BOTH, up: ROW_B, down: COL_B, first: SUM_B, second: "y" },
    Case { x: COL_A, up: ROW_A, down: COL_B, first: SUM_A, second: "y" },
    Case { x: ROW_B, up: COL_A, down: ROW_A, first: "y", second: SUM_A },
];

#[test]
fn bytes_between_devices_are_those_predicted() {
    let mut exchanges = 0;
    for (mesh, sizes) in [((2, 2), [8, 8, 16]), ((2, 3), [12, 6, 18]), ((3, 2), [7, 5, 13]), ((1, 4), [9, 16, 4])] {
        for case in CASES {
            let source = program(mesh, sizes, case, 2);
            let (predicted, counted) = (predicted(&source), counted(&source));
            assert_eq!(predicted, counted, "{source}");
            exchanges += counted.len();
        }
    }
    assert!(exchanges > 100, "only {exchanges} rows were compared");
}

#[test]
fn derivatives_move_what_is_predicted() {
    let source = "mesh = dist.Mesh(axes=[\"dp\", \"tp\"], devices=range(4), shape=[2, 2])
col = dist.ShardSpec(partition=(\"col\",), mesh_axes=(\"tp\",))
row = dist.ShardSpec(partition=(\"row\",), mesh_axes=(\"tp\",))
batch = dist.ShardSpec(partition=(\"row\",), mesh_axes=(\"dp\",))

def loss(ups, downs, x):
    for i in range(2):
        x = x + dist.collective.all_reduce(op.gelu(x @ ups[i]) @ downs[i], axis=\"tp\")
    return (x * x).mean()

ups = [dist.shard(op.ones((6, 10)), col, mesh=mesh) for i in range(2)]
downs = [dist.shard(op.ones((10, 6)), row, mesh=mesh) for i in range(2)]
x = dist.shard(op.ones((5, 6)), batch, mesh=mesh)
g = autodiff.grad(loss)(ups, downs, x)
print(g[0])
";
    assert_eq!(predicted(source), counted(source));
}

#[test]
fn loops_move_in_every_turn_what_is_predicted() {
    let source = "mesh = dist.Mesh(axes=[\"dp\", \"tp\"], devices=range(4), shape=[2, 2])
ups = dist.shard(op.ones((7, 6, 10)), dist.ShardSpec(partition=(2,), mesh_axes=(\"tp\",)), mesh=mesh)
downs = dist.shard(op.ones((7, 10, 6)), dist.ShardSpec(partition=(1,), mesh_axes=(\"tp\",)), mesh=mesh)
x = dist.shard(op.ones((5, 6)), dist.ShardSpec(partition=(0,), mesh_axes=(\"dp\",)), mesh=mesh)

def layer(x, weights):
    up, down = weights
    x = x + dist.collective.all_reduce(op.gelu(x @ up) @ down, axis=\"tp\")
    return x, op.sum(x)

def loss(ups, downs, x):
    x, sums = op.scan(layer, x, (ups, downs))
    return (x * x).mean() + sums.mean()

g = autodiff.grad(loss)(ups, downs, x)
print(g)
";
    let predicted = predicted(source);
    assert!(predicted.values().any(|(sent, runs)| *sent > 0 && *runs >= 7), "{predicted:?}");
    assert_eq!(predicted, counted(source));
}

/// Operators along split dims, each with what it is called on.
const ALONG: &[&str] = &[
    "x[1:, 2:] - x[:-1, :-2]",
    "x[::2, ::-3]",
    "op.roll(x, 3, axis=0)",
    "op.flip(x)",
    "op.concat([x, x[2:5]], axis=0)",
    "op.pad(x, ((1, 2), (0, 3)))",
    "dist.complete(x[-1])",
    "op.cumsum(x, axis=1)",
    "op.rfft(x[:, :columns // 2 * 2])",
    "op.argmax(op.concat((x, x, x), axis=1), axis=1)",
    "op.topk(op.concat((x, x, x, x), axis=0), 2, axis=0)[0]",
    "op.max_pool(x, 2, stride=1, padding=1)",
    "op.conv2d(op.expand_dims(x, 0), op.ones((2, 1, 2, 2)), padding=1)",
    "autodiff.grad(lambda w: dist.complete((op.conv2d(op.expand_dims(x, 0), w, padding=1) ** 2).sum()))(op.ones((2, 1, 2, 2)))",
    "autodiff.grad(lambda x: dist.complete((op.roll(x, 2, axis=1) * op.pad(x[::2], ((n, 0), (0, 0)))).sum()))(x)",
];

#[test]
fn what_operators_fetch_is_predicted() {
    for (rows, columns) in [(11, 7), (12, 6), (5, 2)] {
        let mut bytes = 0;
        for call in ALONG {
            let source = format!(
                "mesh = dist.Mesh(axes=[\"a\", \"b\"], devices=range(6), shape=[2, 3])
n = {rows} // 2
columns = {columns}
x = dist.shard(op.ones(({rows}, {columns})), dist.ShardSpec(partition=(0, 1), mesh_axes=(\"a\", \"b\")), mesh=mesh)
print(dist.gather({call}))
"
            );
            let predicted = predicted(&source);
            bytes += predicted.iter().filter(|(e, _)| e.0.starts_with("pieces")).map(|(_, row)| row.0).sum::<u64>();
            assert_eq!(predicted, counted(&source), "{source}");
        }
        assert!(bytes > 0);
    }
}

#[test]
fn memory_is_placed_as_predicted() {
    let pool = std::sync::Arc::new(Pool::new(1));
    let backend =
        Backend::new(Options { checked: true, quiet: true, ..Options::default() }, DiskCache::new(None), pool);
    for seed in 0..if cfg!(debug_assertions) { 20 } else { 400 } {
        let graph = backend.optimise(&case(seed, Scale::Small).graph);
        let (Ok(plan), Ok(footprint)) = (backend.plan(&graph), backend.footprint(&graph)) else {
            panic!("seed {seed} has no plan");
        };
        assert_eq!(plan.arena_bytes, footprint.arena, "seed {seed}");
        let fresh = plan.outputs.iter().filter(|o| o.same_as_input.is_none()).map(|o| o.ty.bytes).sum::<u64>();
        assert_eq!(fresh, footprint.outputs, "seed {seed}");
    }
}

/// The bytes in between of the largest region of a step over eight stages on two devices.
fn arena_of_stages(one_forward_one_backward: bool, microbatches: u64) -> u64 {
    let step = match one_forward_one_backward {
        true => format!("parallel.pipeline_value_and_grad(nn.mlp, loss, params, head, x, y, {microbatches})"),
        false => "autodiff.value_and_grad(whole, wrt=(0, 1, 2))(params, head, x, y)".into(),
    };
    let source = format!(
        "import std.nn as nn
import std.parallel as parallel
def loss(head, out, y):
    return op.mse(out @ head, y)
def whole(params, head, x, y):
    return dist.complete(loss(head, parallel.pipeline(autodiff.checkpoint(nn.mlp), params, x, {microbatches}), y))
def step(params, head, x, y):
    return {step}
mesh = dist.Mesh(axes=[\"pp\"], devices=range(2))
params = parallel.stages(autodiff.vmap(lambda k: nn.mlp_init(k, 64, 64))(random.split(random.key(0), 8)), mesh)
value, (p, h, d) = step(params, op.ones((64, 1)), op.ones(({rows}, 64)), op.ones(({rows}, 1)))
print(p.up.weight, h, d)
",
        rows = 2 * microbatches
    );
    let ran = run_source(&source, &["plan", "--json"]).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(ran.code, 0, "{}\n{source}", ran.err);
    let plan: serde_json::Value = serde_json::from_str(&ran.out).unwrap_or_else(|e| panic!("{e}\n{}", ran.out));
    let classes = plan["regions"].as_array().into_iter().flatten().filter_map(|r| r["classes"].as_array()).flatten();
    classes.filter_map(|c| c["arena"].as_u64()).max().unwrap_or(0)
}

#[test]
fn stages_that_go_back_at_once_keep_no_more_with_more_microbatches() {
    let part = 2 * 64 * 4;
    let growth = |now| (arena_of_stages(now, 64) - arena_of_stages(now, 16)).div_ceil(48 * part);
    // What goes in and comes out, and copies of it.
    assert!(growth(true) <= 4, "{}", growth(true));
    // Besides that what each of four stages of a device takes for each microbatch, once: it lies where the turn before left it.
    assert!((6..=8).contains(&growth(false)), "{}", growth(false));
}

#[test]
fn a_plan_writes_nothing_and_reads_no_values() {
    let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
    let run = |source: &str| {
        std::fs::write(dir.path().join("main.tsr"), source).unwrap_or_else(|e| panic!("{e}"));
        tessera_tests::program::run_in(dir.path(), &["plan", "main.tsr"], "").unwrap_or_else(|e| panic!("{e}"))
    };
    let all = "x = op.ones((3, 4))\ny = x @ x.T\nprint(y, y[0], f\"{y[1]}\")\ny[0] = 2.0\nz = y + 1.0\n\
               io.write_npy(\"y.npy\", z)\nio.save(\"y.safetensors\", (z, 1))\nio.append_text(\"log\", \"x\")\n";
    let ran = run(all);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.contains("predicted for `nvl72`") && !ran.out.contains("Tensor["), "{}", ran.out);
    let files = std::fs::read_dir(dir.path()).map(|d| d.count());
    assert_eq!(files.ok(), Some(1));
    for reads in
        ["float(x.sum())", "x.tolist()", "bool(x[0, 0] > 1)", "[r for r in [x] if int(r[0, 0]) == 1]", "x[0, 0].item()"]
    {
        let ran = run(&format!("x = op.ones((3, 4))\nprint({reads})\n"));
        assert!(ran.code == 1 && ran.err.contains("E0718"), "{reads}: {}", ran.err);
    }
    // What is not from tensors may be looked at.
    assert_eq!(run("n = 3\nx = op.ones((n, n))\nwhile len(x) > n:\n    n += 1\nprint(x.shape, n)").code, 0);
}

#[test]
fn what_fits_nowhere_here_is_planned() {
    let path = tessera_tests::program::root().join("tests/data/gpt3.tsr");
    let path = path.to_string_lossy().into_owned();
    let dir = std::env::temp_dir();
    let ran = tessera_tests::program::run_in(&dir, &["plan", &path, "--json", "--", "2"], "");
    let ran = ran.unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(ran.code, 0, "{}", ran.err);
    let plan: serde_json::Value = serde_json::from_str(&ran.out).unwrap_or_else(|e| panic!("{e}"));
    // Two layers of 12 · 12288² numbers of two bytes over 8 devices; the batch is made inside.
    let parameters = 2 * 12 * 12288u64 * 12288 * 2 / 8;
    let arguments = plan["regions"].as_array().and_then(|r| r.last()).map(|r| r["classes"][0]["arguments"].clone());
    assert_eq!(arguments.and_then(|a| a.as_u64()), Some(parameters));
    // As if it had other sizes, or axes that it does not have.
    let other = |mesh: &str| tessera_tests::program::run_in(&dir, &["plan", &path, "--mesh", mesh, "--", "1"], "");
    assert!(other("dp=2,tp=4").is_ok_and(|r| r.code == 0 && r.out.contains("Mesh[dp=2, tp=4]")));
    assert!(other("ep=2,tp=4").is_ok_and(|r| r.code == 1 && r.err.contains("E0602")));
    assert!(other("dp=2").is_ok_and(|r| r.code == 1));
}

#[test]
fn divisions_of_a_transformer_are_searched() {
    let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
    let plan = |text: &str, more: &[&str]| {
        std::fs::write(dir.path().join("gpt.json"), text).unwrap_or_else(|e| panic!("{e}"));
        let args: Vec<&str> = ["plan", "gpt.json"].iter().chain(more).copied().collect();
        tessera_tests::program::run_in(dir.path(), &args, "").unwrap_or_else(|e| panic!("{e}"))
    };
    let model = "{\"layers\": 96, \"hidden\": 12288, \"heads\": 96, \"vocab\": 51200, \"seq\": 2048}";
    let whole = format!("{{\"model\": {model}, \"devices\": 72, \"batch\": 1536}}");
    let ran = plan(&whole, &["--best", "3"]);
    assert!(
        ran.code == 0 && ran.out.lines().count() == 7 && ran.out.contains("what Tessera sends"),
        "{}{}",
        ran.out,
        ran.err
    );
    let json = plan(&whole, &["--json"]);
    let ways = json.out.lines().map(serde_json::from_str::<serde_json::Value>);
    let ways: Vec<_> = ways.collect::<Result<_, _>>().unwrap_or_else(|e| panic!("{e}\n{}", json.out));
    assert!(ways.len() == 5 && ways.iter().all(|w| w["schema"] == 1 && w["step"]["seconds"].is_f64()), "{}", json.out);
    for (wrong, says) in [
        (whole.replace("72", "73000"), "at most 65536 devices"),
        (whole.replace("96,", "0,"), "from 1 to 2^32"),
        (whole.replace("batch", "batches"), "unknown field"),
        (whole.replace("72", "1"), "no way to divide"),
        (whole.replace("}", ""), "describes no training"),
    ] {
        let ran = plan(&wrong, &[]);
        assert!(ran.code == 1 && ran.err.contains(says), "{wrong}: {}", ran.err);
    }
    assert_eq!(plan(&whole, &["--topology", "nvl27"]).code, 2);
}

/// Each is one diagnostic, with what was found, what there could be, and how to go on.
#[test]
fn what_cannot_be_planned_is_said_once() {
    let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
    let training = |more: &str| {
        format!(
            "{{ \"model\": {{ \"layers\": 5, \"hidden\": 64, \"heads\": 4, \"vocab\": 100, \"seq\": 32 }}, {more} }}"
        )
    };
    let files = [
        ("main.tsr", "x = op.ones((3,))\nprint(x)\n".to_owned()),
        ("empty.json", "{ \"name\": \"x\" }".to_owned()),
        ("good.json", training("\"devices\": 8, \"batch\": 8")),
        ("few.json", training("\"devices\": 77, \"batch\": 7")),
        ("field.json", training("\"devices\": 8, \"batch\": 8, \"tensors\": 2")),
        ("many.json", training("\"devices\": 100000, \"batch\": 8")),
        ("kernel.json", training("\"devices\": 8, \"batch\": 8, \"attention\": \"flash-9\"")),
        ("spread.json", training("\"devices\": 8, \"batch\": 8, \"spread\": 3")),
        ("chunks.json", training("\"devices\": 8, \"batch\": 8, \"chunks\": 2")),
    ];
    for (name, text) in files {
        std::fs::write(dir.path().join(name), text).unwrap_or_else(|e| panic!("{e}"));
    }
    let cases: [(&[&str], u8, &str, &str); 11] = [
        (&["good.json"], 0, "", ""),
        (&["main.tsr", "--topology", "nvl73"], 2, "E0602", "did you mean `nvl72`?"),
        (&["main.tsr", "--topology", "none.json"], 1, "E0706", "`none.json` cannot be read"),
        (&["main.tsr", "--topology", "empty.json"], 1, "E0707", "missing field `sources`"),
        (&["main.tsr", "--mesh", "q=5"], 1, "E0602", "mesh with the axes q"),
        (&["few.json"], 1, "E0707", "77 devices are no product"),
        (&["field.json"], 1, "E0707", "unknown field `tensors`"),
        (&["many.json"], 1, "E0707", "at most 65536 devices"),
        (&["kernel.json"], 1, "E0707", "unknown variant `flash-9`"),
        (&["spread.json"], 1, "E0707", "spread is 3; it must be from 0 to 0.5"),
        (&["chunks.json"], 1, "E0707", "stages have several chunks with"),
    ];
    for (args, code, name, says) in cases {
        let all: Vec<&str> = ["plan"].iter().chain(args).copied().collect();
        let ran = tessera_tests::program::run_in(dir.path(), &all, "").unwrap_or_else(|e| panic!("{e}"));
        assert!(ran.code == i32::from(code) && ran.err.contains(says), "{args:?}: {} {}", ran.code, ran.err);
        assert_eq!(ran.err.matches("error[").count(), usize::from(code > 0), "{args:?}: {}", ran.err);
        assert!(code == 0 || ran.err.contains(&format!("error[{name}]")), "{args:?}: {}", ran.err);
    }
}

#[test]
fn a_mesh_that_does_not_divide_is_said_once() {
    let source = "mesh = dist.Mesh(axes=[\"dp\"], devices=range(4), shape=[4])
x = dist.shard(op.ones((8, 16)), dist.ShardSpec(partition=(\"row\",), mesh_axes=(\"dp\",)), mesh=mesh)
print(dist.gather(x.reshape(2, 4, 16)))
";
    let ran = run_source(source, &["plan", "--mesh", "dp=3"]).unwrap_or_else(|e| panic!("{e}"));
    assert!(ran.code == 1 && ran.err.matches("error[").count() == 1, "{} {}", ran.code, ran.err);
}
