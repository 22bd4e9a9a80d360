//! What a budget says is what happens: a call keeps a budget of what it is said to need, and not one of a byte less; bytes along an axis
//! are those that the runtime counts, and memory is that of the plan.

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
