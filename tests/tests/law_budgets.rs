//! What a budget says is what happens: a call keeps a budget of what it is said to need, and not one of a byte less; bytes along an axis
//! are those that the runtime counts, and memory is that of the plan and what the allocator counts.

use std::collections::BTreeMap;
use tessera_tests::program::run_source;

/// Programs whose one call of `f` is all that moves; `BUDGET` stands for the decorator's bounds.
const ONE_DEVICE: &[&str] = &[
    "@dist.budget(BUDGET)
def f(x: Tensor[N, D, f32], w: Tensor[D, H, f32]) -> Tensor[N, H, f32]:
    h = op.relu(x @ w)
    return op.softmax(h, axis=0) * h

print(f(op.ones((37, 19)), op.ones((19, 11))).shape)
",
    "@dist.budget(BUDGET)
def f(x: Tensor[N, f32], scale: float, steps: int) -> Tensor[N, f32]:
    y = op.cumsum(x, axis=0)
    z = op.sort(y * scale)
    return z + op.cumsum(z - y, axis=0) * steps

for i in range(3):
    print(f(op.ones((1001,)), 0.5, i).shape)
",
    "def layer(x, w):
    return op.tanh(x @ w), op.sum(x)

@dist.budget(BUDGET)
def f(x: Tensor[N, D, f32], ws: Tensor[L, D, D, f32]) -> Tensor[L, D, D, f32]:
    def loss(ws):
        y, sums = op.scan(layer, x, ws)
        return (y * y).mean() + sums.mean()
    return autodiff.grad(loss)(ws)

print(f(op.ones((5, 8)), op.ones((7, 8, 8))).shape)
",
];

/// The same on meshes of one axis, `tp`, so that all that moves moves along it.
const MESHES: &[&str] = &[
    "@dist.budget(BUDGET)
def f(x: Tensor[B, D, f32], up: Tensor[D, H, f32], down: Tensor[H, D, f32]):
    return dist.collective.all_reduce(op.relu(x @ up) @ down, axis=\"tp\")

mesh = dist.Mesh(axes=[\"tp\"], devices=range(DEVICES))
x = op.ones((16, 6))
up = dist.shard(op.ones((6, 24)), dist.ShardSpec(partition=(\"col\",), mesh_axes=(\"tp\",)), mesh=mesh)
down = dist.shard(op.ones((24, 6)), dist.ShardSpec(partition=(\"row\",), mesh_axes=(\"tp\",)), mesh=mesh)
f(x, up, down)
",
    "@dist.budget(BUDGET)
def f(x: Tensor[N, D, f32]):
    return op.roll(x, 3, axis=0) + op.cumsum(x, axis=0)

mesh = dist.Mesh(axes=[\"tp\"], devices=range(DEVICES))
x = dist.shard(op.ones((13, 8)), dist.ShardSpec(partition=(\"row\",), mesh_axes=(\"tp\",)), mesh=mesh)
f(x)
",
    "def layer(x, w):
    up, down = w
    x = x + dist.collective.all_reduce(op.gelu(x @ up) @ down, axis=\"tp\")
    return x, op.sum(x)

@dist.budget(BUDGET)
def f(ups: Tensor[L, D, H, f32], downs: Tensor[L, H, D, f32], x: Tensor[N, D, f32]):
    def loss(ups, downs):
        y, sums = op.scan(layer, x, (ups, downs))
        return (y * y).mean() + sums.mean()
    return autodiff.grad(loss, wrt=(0, 1))(ups, downs)

mesh = dist.Mesh(axes=[\"tp\"], devices=range(DEVICES))
ups = dist.shard(op.ones((3, 6, 8)), dist.ShardSpec(partition=(2,), mesh_axes=(\"tp\",)), mesh=mesh)
downs = dist.shard(op.ones((3, 8, 6)), dist.ShardSpec(partition=(1,), mesh_axes=(\"tp\",)), mesh=mesh)
f(ups, downs, op.ones((5, 6)))
",
];

fn said(source: &str, budget: &str, command: &[&str]) -> (i32, String) {
    let ran = run_source(&source.replace("BUDGET", budget), command).unwrap_or_else(|e| panic!("{e}"));
    (ran.code, ran.err)
}

/// The bytes that a program is refused for.
fn needed(source: &str, bound: &str) -> u64 {
    let (code, err) = said(source, &format!("{bound}=\"1B\""), &["check"]);
    assert!(code == 1 && err.matches("error[").count() == 1 && err.contains("[E0801]"), "{err}\n{source}");
    let needs = err.split(" and its budget allows").next().unwrap_or_default();
    let digits = |text: &str| text.chars().filter(char::is_ascii_digit).collect::<String>().parse::<u64>();
    let number = match needs.rsplit_once('(') {
        Some((_, exact)) if exact.contains(" bytes)") => digits(exact),
        _ => digits(needs.rsplit_once(" needs ").map_or("", |(_, n)| n.split(" bytes").next().unwrap_or(""))),
    };
    number.unwrap_or_else(|e| panic!("{e}: {err}"))
}

/// A budget of just that is kept, and none of less.
fn is_exact(source: &str, bound: &str, bytes: u64) {
    let enough = said(source, &format!("{bound}=\"{bytes}B\""), &["check"]);
    assert_eq!(enough.0, 0, "{}\n{source}", enough.1);
    let less = said(source, &format!("{bound}=\"{}B\"", bytes - 1), &["run"]);
    assert!(less.0 == 1 && less.1.contains("[E0801]"), "{}\n{source}", less.1);
}

/// The bytes of the device that needs most, by the plan of the function alone.
fn planned(source: &str, sizes: &str) -> u64 {
    let source = source.replace("@dist.budget(BUDGET)\n", "");
    let ran = run_source(&source, &["plan", "--json", "--function", "f", "--sizes", sizes]);
    let ran = ran.unwrap_or_else(|e| panic!("{e}"));
    let plan: serde_json::Value = serde_json::from_str(&ran.out).unwrap_or_else(|e| panic!("{e}\n{}", ran.err));
    plan["peak"].as_u64().unwrap_or(0)
}

#[test]
fn memory_is_that_of_the_plan_to_the_byte() {
    for (source, sizes) in ONE_DEVICE.iter().zip(["N=37,D=19,H=11", "N=1001", "N=5,D=8,L=7"]) {
        let bytes = needed(source, "memory");
        assert_eq!(bytes, planned(source, sizes), "{source}");
        is_exact(source, "memory", bytes);
    }
    for source in MESHES {
        let source = source.replace("DEVICES", "2");
        is_exact(&source, "memory", needed(&source, "memory"));
    }
}

/// Bytes that the runtime counts, by device: what each sends.
fn counted(source: &str) -> BTreeMap<u64, u64> {
    let source = source.replace("@dist.budget(BUDGET)\n", "");
    let ran = run_source(&source, &["profile"]).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(ran.code, 0, "{}\n{source}", ran.err);
    let mut out = BTreeMap::new();
    for line in ran.err.lines().skip_while(|l| !l.starts_with("exchange ")).skip(1) {
        // Three times with their units stand last; before them the device, the runs and the bytes.
        let words: Vec<&str> = line.split_whitespace().collect();
        let at = |back: usize| words.get(words.len().wrapping_sub(back)).and_then(|w| w.parse::<u64>().ok());
        let (Some(device), Some(bytes)) = (at(9), at(7)) else { panic!("{line}") };
        *out.entry(device).or_default() += bytes;
    }
    out
}

#[test]
fn bytes_along_an_axis_are_those_that_the_runtime_counts() {
    for (devices, source) in [2, 3, 4].into_iter().flat_map(|n| MESHES.iter().map(move |s| (n, s))) {
        let source = source.replace("DEVICES", &devices.to_string());
        let bytes = needed(&source, "tp");
        is_exact(&source, "tp", bytes);
        let counted = counted(&source);
        let most = counted.values().copied().max().unwrap_or(0);
        // What one device sends others receive: the most that one receives may be more, and not more than all send.
        assert!(
            most <= bytes && bytes <= counted.values().sum(),
            "{bytes} are predicted, {counted:?} counted\n{source}"
        );
        if devices == 2 {
            assert_eq!(bytes, most, "{source}");
        }
    }
}

/// Programs that make arguments, look at them, and call `f` once: the bytes in use rise by what the call takes besides them.
const LARGE: &[&str] = &[
    "@dist.budget(BUDGET)
def f(x: Tensor[N, D, f32]) -> Tensor[N, D, f32]:
    return op.sort(op.cumsum(x, axis=1), axis=1) + x

x = random.normal(random.key(0), (4096, 1024))
print(x[0, 0] < 100.0)
y = f(x)
print(y.shape)
",
    "@dist.budget(BUDGET)
def f(x: Tensor[N, D, f32], w: Tensor[D, H, f32]) -> Tensor[N, H, f32]:
    h = op.relu(x @ w)
    return op.softmax(h, axis=0) * h

x = random.normal(random.key(0), (4096, 512))
w = random.normal(random.key(1), (512, 2048))
print(x[0, 0] < 100.0, w[0, 0] < 100.0)
y = f(x, w)
print(y.shape)
",
    "def layer(x, w):
    return op.tanh(x @ w), op.sum(x)

@dist.budget(BUDGET)
def f(x: Tensor[N, D, f32], ws: Tensor[L, D, D, f32]) -> Tensor[L, D, D, f32]:
    def loss(ws):
        y, sums = op.scan(layer, x, ws)
        return (y * y).mean() + sums.mean()
    return autodiff.grad(loss)(ws)

x = random.normal(random.key(0), (2048, 512))
ws = random.normal(random.key(1), (8, 512, 512)) * 0.01
print(x[0, 0] < 100.0, ws[0, 0, 0] < 100.0)
y = f(x, ws)
print(y.shape)
",
];

/// The most bytes in use of a run, and the arguments, results and values that are named there.
fn fullest(source: &str) -> (u64, BTreeMap<String, u64>) {
    let source = source.replace("@dist.budget(BUDGET)\n", "");
    let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
    let file = dir.path().join("p.json").to_string_lossy().into_owned();
    let ran = run_source(&source, &["profile", "--peak", "--save", &file]).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(ran.code, 0, "{}\n{source}", ran.err);
    let text = std::fs::read_to_string(&file).unwrap_or_else(|e| panic!("{e}"));
    let profile: serde_json::Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}"));
    let held = &profile["fullest"];
    let holder = |h: &serde_json::Value| {
        (h["what"].as_str().unwrap_or_default().to_owned(), h["bytes"].as_u64().unwrap_or_default())
    };
    let holders = held["holders"].as_array().into_iter().flatten().map(holder).collect();
    (held["in_use"].as_u64().unwrap_or_default(), holders)
}

/// The allocator counts what is predicted, and the tool itself: texts, plans and kernels, a few MiB.
#[test]
fn memory_is_what_the_allocator_counts() {
    for source in LARGE {
        let bytes = needed(source, "memory");
        let (in_use, holders) = fullest(source);
        let tool = in_use.checked_sub(bytes);
        assert!(
            tool.is_some_and(|tool| tool < 6 << 20),
            "{bytes} are predicted, {in_use} are in use, of them {holders:?}\n{source}"
        );
    }
}

/// A change that is offered is one after which the program runs within its budget.
#[test]
fn what_is_offered_holds() {
    let source = "def layer(x, w):
    h = op.relu(x @ w)
    h = op.sort(h, axis=1)
    h = op.tanh(h)
    return x + h, None

@dist.budget(memory=\"BOUND\")
def f(x: Tensor[N, D, f32], ws: Tensor[L, D, D, f32]) -> Tensor[L, D, D, f32]:
    def loss(ws):
        y, _ = op.scan(layer, x, ws)
        return (y * y).mean()
    return autodiff.grad(loss)(ws)

print(f(op.ones((512, 32)), op.ones((16, 32, 32))).shape)
";
    let better = source.replace("op.scan(layer,", "op.scan(autodiff.checkpoint(layer),");
    let [before, after] = [source, &*better].map(|s| needed(&s.replace("memory=\"BOUND\"", "BUDGET"), "memory"));
    assert!(after < before * 3 / 4, "{before} without, {after} with a checkpoint");
    // A bound between the two: refused with the change that fits first, and kept with it.
    let bound = format!("{after}B");
    let (code, err) = said(&source.replace("BOUND", &bound), "", &["run"]);
    assert_eq!(code, 1, "{err}");
    let helps: Vec<&str> = err.lines().filter(|l| l.contains("= help: ")).collect();
    assert!(helps[0].contains("autodiff.checkpoint(layer)"), "{err}");
    let ran = run_source(&better.replace("BOUND", &bound), &["run"]).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((ran.code, ran.out.as_str()), (0, "(16, 32, 32)\n"), "{}", ran.err);
}

/// Each function calls the next one with both values of a bool: every call is another one.
#[test]
fn calls_that_are_not_followed_are_told() {
    let levels = 13;
    let params: Vec<String> = (0..levels).map(|i| format!("b{i}: bool")).collect();
    let names: Vec<String> = (0..levels).map(|i| format!("b{i}")).collect();
    let mut source = "@dist.budget(memory=\"1MiB\")\ndef f(x: Tensor[N, f32]):\n    return x + x\n".to_owned();
    source += &format!("def g{levels}(x, {}):\n    return f(x)\n", params.join(", "));
    for level in (0..levels).rev() {
        let call = |value: &str| {
            let args: Vec<&str> = names.iter().enumerate().map(|(i, n)| if i == level { value } else { n }).collect();
            format!("g{}(x, {})", level + 1, args.join(", "))
        };
        source +=
            &format!("def g{level}(x, {}):\n    return {} + {}\n", params.join(", "), call("True"), call("False"));
    }
    source += &format!("y = g0(op.ones((4,)), {})\n", vec!["False"; levels].join(", "));
    let (code, err) = said(&source, "", &["check"]);
    assert_eq!(code, 0, "{err}");
    assert!(err.contains("warning[W0801]: the budget of `f` is not held against all calls"), "{err}");
    assert!(err.contains("more than 4096 different calls lead to it"), "{err}");
}
