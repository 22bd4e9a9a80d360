//! The tool on a GPU, as a user meets it: the stand-in for the driver is what is found.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tessera_tests::program::{Ran, run_command};
use tessera_tests::standin;

const NOWHERE: (&str, &str) = ("TESSERA_CUDA", "/nowhere/libcuda.so");

fn temp() -> tempfile::TempDir {
    tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"))
}

fn run(source: &str, args: &[&str], settings: &[(&str, &str)]) -> Ran {
    standin::run(source, args, settings).unwrap_or_else(|e| panic!("{e}"))
}

fn in_folder(dir: &Path, args: &[&str], settings: &[(&str, &str)]) -> Ran {
    run_command(&mut standin::command(dir, args, settings), "").unwrap_or_else(|e| panic!("{e}"))
}

/// What a program does on the GPU, which is what it does on the processor.
fn on_both(source: &str, args: &[&str]) -> Ran {
    let cpu = run(source, &[&["run"], args].concat(), &[]);
    let gpu = run(source, &[&["run", "--target", "cuda"], args].concat(), &[]);
    assert_eq!(gpu, cpu, "{source}\n{}{}", gpu.err, cpu.err);
    gpu
}

/// Tests of what only the stand-in can be.
fn is_real() -> bool {
    let real = standin::is_real();
    if real {
        eprintln!("not run: a GPU is what it is");
    }
    real
}

const SMALL: &str = "print(op.exp(op.arange(5.0)) * 2)\n";

#[test]
fn what_is_missing_is_told_once() {
    if is_real() {
        return;
    }
    let dir = temp();
    fs::write(dir.path().join("main.tsr"), SMALL).unwrap_or_else(|e| panic!("{e}"));
    let cases: &[((&str, &str), &str)] = &[
        (NOWHERE, "`TESSERA_CUDA` names /nowhere/libcuda.so: cannot open shared object file"),
        (("TESSERA_STANDIN_ARCH", "7.5"), "has compute capability 7.5, and 8.0 is the oldest that will do"),
        (("TESSERA_STANDIN_DEVICES", "0"), "the driver finds no GPU"),
    ];
    for (setting, why) in cases {
        for args in [&["run", "main.tsr"][..], &["profile", "main.tsr"], &["test", "main.tsr"], &["repl"], &[]] {
            let all = [&["--target", "cuda"][..], args].concat();
            let r = in_folder(dir.path(), &all, &[*setting]);
            assert_eq!((r.code, r.out.as_str()), (1, ""), "{all:?}: {}", r.err);
            assert!(
                r.err.starts_with("error[E0605]: `--target cuda` cannot be used: ") && r.err.contains(why),
                "{all:?}: {}",
                r.err
            );
            assert_eq!(r.err.lines().count(), 2, "{}", r.err);
            assert!(r.err.contains("\n  = help: "), "{}", r.err);
        }
        let r = in_folder(dir.path(), &["run", "--json", "--target", "cuda", "main.tsr"], &[*setting]);
        let told: serde_json::Value = serde_json::from_str(&r.err).unwrap_or_else(|e| panic!("{e}: {}", r.err));
        assert_eq!((r.code, told["code"].as_str()), (1, Some("E0605")));
        assert!(told["message"].as_str().is_some_and(|m| m.contains(why)), "{told}");
    }
}

#[test]
fn auto_takes_what_there_is() {
    if is_real() {
        return;
    }
    let cpu = run(SMALL, &["run"], &[]);
    let auto = run(SMALL, &["run", "--target", "auto"], &[NOWHERE]);
    assert_eq!((auto.code, auto.out, auto.err.as_str()), (0, cpu.out.clone(), ""));
    let auto = run(SMALL, &["run", "-v", "--target", "auto"], &[NOWHERE]);
    assert!(auto.err.starts_with("target: cpu (`TESSERA_CUDA` names /nowhere/"), "{}", auto.err);
    let auto = run(SMALL, &["run", "-v", "--target", "auto"], &[("TESSERA_STANDIN_ARCH", "7.0")]);
    assert!(auto.err.starts_with("target: cpu (") && auto.err.contains("compute capability 7.0"), "{}", auto.err);
    let auto = run(SMALL, &["run", "-v", "--target", "auto"], &[]);
    assert_eq!(auto.out, cpu.out);
    assert!(auto.err.starts_with("target: cuda, Tessera PTX interpreter (no GPU)\n"), "{}", auto.err);
}

#[test]
fn a_target_that_there_is_not_is_misuse() {
    let r = run(SMALL, &["run", "--target", "vulkan"], &[]);
    assert_eq!((r.code, r.out.as_str()), (2, ""));
    assert!(["vulkan", "cpu", "cuda", "auto"].iter().all(|w| r.err.contains(w)), "{}", r.err);
}

#[test]
fn the_doctor_names_the_gpu_or_what_is_missing() {
    let dir = temp();
    let line = |settings: &[(&str, &str)]| {
        let r = in_folder(dir.path(), &["doctor"], settings);
        assert_eq!(r.code, 0, "{}{}", r.out, r.err);
        r.out.lines().find(|l| l.contains("cuda target")).unwrap_or_default().to_owned()
    };
    assert!(
        line(&[NOWHERE]).starts_with("missing cuda target  `TESSERA_CUDA` names /nowhere/"),
        "{}",
        line(&[NOWHERE])
    );
    assert!(line(&[]).starts_with("ok      cuda target  "), "{}", line(&[]));
    if !is_real() {
        let facts = "Tessera PTX interpreter (no GPU) (compute capability 8.9, 4 multiprocessors, 2.0 GiB of memory), driver of CUDA 12.8";
        let l = line(&[("TESSERA_STANDIN_ARCH", "8.9"), ("TESSERA_STANDIN_MEMORY", "2147483648")]);
        assert!(l.ends_with(facts), "{l}");
    }
}

#[test]
fn memory_that_the_gpu_does_not_have_is_told_at_the_line() {
    if is_real() {
        return;
    }
    let source = "def more(x: Tensor[N, M, f32]) -> Tensor[N, M, f32]:\n    return op.exp(x) + 1\n\n\
                  x = op.ones((512, 512))\nprint(x.shape)\ny = more(x)\nz = op.sort(more(y), axis=0)\nprint(op.sum(z * y))\n";
    let args = ["run", "--target", "cuda"];
    let r = run(source, &args, &[("TESSERA_STANDIN_MEMORY", "2000000")]);
    assert_eq!((r.code, r.out.as_str()), (1, "(512, 512)\n"), "{}", r.err);
    for part in [
        "error[E0710]: 1.0 MiB (1048576 bytes) of memory of the GPU cannot be had",
        "main.tsr:6:5",
        "this program holds 1.0 MiB there; it has 1.9 MiB, of which 929.1 KiB are free",
    ] {
        assert!(r.err.contains(part), "{part}\n{}", r.err);
    }
    assert_eq!(r.err.matches("error[").count(), 1, "{}", r.err);
    // With room for a few of them, a thousand one after the other: what is not needed any more is given back.
    let many = "y = op.ones((64, 64))\nfor k in range(1000):\n    y = op.exp(y * 0.0)\nprint(op.sum(y))\n";
    let r = run(many, &args, &[("TESSERA_STANDIN_MEMORY", "100000")]);
    assert_eq!((r.code, r.out.as_str()), (0, "4096.0\n"), "{}", r.err);
}

/// Programs that meet an index that is out of range, and what they print before.
const OUT_OF_RANGE: &[(&str, &str)] = &[
    // In one of several kernels, which is not the last.
    (
        "def take(x: Tensor[N, f32], i: Tensor[M, i64]) -> Tensor[M, f32]:
    return x[i]

x = op.arange(40.0)
i = op.arange(30) * 2
print(op.sum(take(x * 2, op.arange(40))))
b = take(x + 1, i)
c = take(x - 1, i + 1)
print(op.sum(b), op.sum(c))
",
        "1560.0\n",
    ),
    // Nothing reads the result.
    (
        "x = op.arange(10.0)\ni = op.arange(30)\ny = op.exp(x)[i]\nprint(\"hello\")\nio.write_text(\"o\", \"hello\")\nsys.exit(3)\n",
        "",
    ),
    // Of thousands of positions in many points, the first.
    (
        "@op.kernel
def pick(A: Tensor[N, f32], I: Tensor[M, i64]) -> Tensor[M, f32]:
    return op.exp(A)[I] + 1

x = op.arange(10.0)
print(pick(x, op.arange(10))[:3])
print(pick(x, op.where(op.arange(70000) < 30000, op.full((70000,), 3), op.arange(70000)))[:3])
print(\"after\")
",
        "[2.        3.7182817 8.389055 ]\n",
    ),
    // Two tensors of positions in one kernel, the second of which goes wrong earlier.
    (
        "def two(x: Tensor[N, f32], y: Tensor[K, f32], i: Tensor[M, i64], j: Tensor[M, i64]) -> Tensor[M, f32]:
    a = x[i]
    b = y[j]
    return a * b + 1

at = op.arange(3000)
i = op.where(at == 1300, op.full((3000,), 777), at % 100)
j = op.where(at >= 1250, op.full((3000,), 555), at % 50)
print(two(op.arange(100.0), op.arange(50.0), i, j % 50 + (i == 777).to(i64) * 0)[2990:])
",
        "",
    ),
    (
        "def two(x: Tensor[N, f32], y: Tensor[K, f32], i: Tensor[M, i64], j: Tensor[M, i64]) -> Tensor[M, f32]:
    a = x[i]
    b = y[j]
    return a * b + 1

at = op.arange(3000)
j = op.where(at >= 1250, op.full((3000,), 555), at % 50)
print(two(op.arange(100.0), op.arange(50.0), at % 100, j)[2990:])
",
        "",
    ),
    // A loop of the program.
    (
        "x = op.arange(10.0)
for k in range(5):
    y = op.exp(x * 0.1)[op.arange(4) + k * 3]
    print(k, op.sum(y))
",
        "0 4.6764326\n1 6.3125234\n2 8.521016\n",
    ),
    // Loops of tensor code.
    (
        "def f(x: Tensor[N, f32], n: int) -> Tensor[f32]:
    return op.fori(0, n, lambda k, acc: acc + op.sum(x[op.arange(3) + k]), op.sum(x) * 0)

print(f(op.arange(10.0), 5))
print(f(op.arange(10.0), 50))
print(\"after\")
",
        "45.0\n",
    ),
    (
        "x = op.arange(10.0)
at = op.array([[1, 2], [3, 9], [4, 11], [12, 1]])

def step(c: Tensor[f32], i: Tensor[2, i64]):
    y = op.exp(x * 0.1)[i]
    return c + op.sum(y), y

last, all = op.scan(step, op.array(0.0), at[:2])
print(last)
last, all = op.scan(step, op.array(0.0), at)
print(last)
",
        "6.136036\n",
    ),
    // What follows on the host would stop too, or go another way.
    (
        "def f(x: Tensor[N, f32], i: Tensor[M, i64]) -> Tensor[M, f32]:
    y = op.exp(x)[i]
    z = op.sort(y)
    return z[(y * 1000).to(i64)]

print(f(op.arange(10.0), op.arange(30)))
",
        "",
    ),
    ("n = int(\"0\")\nx = op.arange(10.0)\ny = op.exp(x)[op.arange(30)]\nprint(5 // n)\n", ""),
    // Writes at positions.
    (
        "def put(x: Tensor[N, f32], i: Tensor[M, i64]) -> Tensor[N, f32]:
    y = x
    y[i] = op.ones((i.shape[0],))
    return y

x = op.zeros((10,))
print(put(x, op.arange(3)))
print(put(x, op.arange(30)))
",
        "[1. 1. 1. 0. 0. 0. 0. 0. 0. 0.]\n",
    ),
    // A small launch before a large one, both with positions.
    (
        "def f(x: Tensor[N, f32], i: Tensor[M, i64], j: Tensor[K, i64]) -> Tensor[K, f32]:
    y = op.exp(x)[i]
    s = op.sum(y)
    z = op.sin(x)[j]
    return z + s

x = op.arange(10.0)
print(f(x, op.arange(4) + 7, op.arange(400000) % 10)[:3])
",
        "",
    ),
    // Devices of a mesh.
    (
        "mesh = dist.Mesh(axes=[\"dp\"], devices=range(4), shape=[4])
i = dist.shard(op.arange(16) * 3, dist.ShardSpec(partition=(0,), mesh_axes=(\"dp\",)), mesh=mesh)
x = op.arange(40.0)
print(op.sum(i))
print(op.sum(op.exp(x * 0.0)[i]))
",
        "360\n",
    ),
];

#[test]
fn an_index_out_of_range_stops_as_on_the_processor() {
    for (source, before) in OUT_OF_RANGE {
        let r = on_both(source, &[]);
        assert_eq!((r.code, r.out.as_str()), (1, *before), "{source}\n{}", r.err);
        assert!(r.err.starts_with("error[E0703]: index "), "{source}\n{}", r.err);
        assert_eq!(r.err.matches("error[").count(), 1, "{}", r.err);
    }
}

#[test]
fn texts_need_no_gpu() {
    let source = "def f(x: Tensor[N, f32], i: Tensor[M, i64]) -> Tensor[M, f32]:\n    return op.softmax(x[i], axis=0)\n\n\
                  y = f(op.arange(6.0), op.arange(3))\nprint(y)\n";
    let r = run(source, &["check", "--target", "cuda"], &[NOWHERE]);
    assert_eq!((r.code, r.out.as_str(), r.err.as_str()), (0, "", ""));
    for (ir, part) in
        [("tile", "\"tessera.tile.kernel\"()"), ("llvm", "define ptx_kernel void @"), ("asm", ".target sm_90")]
    {
        for of in [&[][..], &["--function", "f"]] {
            let r = run(source, &[&["emit", "--target", "cuda", "--ir", ir], of].concat(), &[NOWHERE]);
            assert_eq!((r.code, r.err.as_str()), (0, ""), "{ir} {of:?}");
            assert!(r.out.contains(part), "{ir} {of:?}\n{}", r.out);
        }
    }
    // Where there is a GPU, texts are for it.
    if !is_real() {
        let r = run(source, &["emit", "--target", "cuda", "--ir", "asm"], &[("TESSERA_STANDIN_ARCH", "8.6")]);
        assert!(r.out.contains(".target sm_86") && !r.out.contains("sm_90"), "{}", r.out);
    }
}

#[test]
fn kernels_are_kept_and_made_again_where_they_are_damaged() {
    let dir = temp();
    let cache = dir.path().join("cache");
    let source = "x = random.normal(random.key(0), (32, 32))\nprint(op.sum(op.softmax(x @ x, axis=1) * x))\n";
    fs::write(dir.path().join("main.tsr"), source).unwrap_or_else(|e| panic!("{e}"));
    let once = |settings: &[(&str, &str)]| {
        let mut command = standin::command(dir.path(), &["run", "-v", "--target", "cuda", "main.tsr"], settings);
        let out = command.env("TESSERA_CACHE", &cache).output().unwrap_or_else(|e| panic!("{e}"));
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(out.status.success(), "{}", text(&out.stderr));
        (text(&out.stdout), text(&out.stderr))
    };
    let (first, told) = once(&[]);
    assert!(told.contains("compiled `") && told.contains(", 0 from the cache"), "{told}");
    let (second, told) = once(&[]);
    assert_eq!(second, first);
    assert!(told.contains("kernels: 0 compiled in ") && !told.contains("compiled `"), "{told}");
    let mut entries = 0;
    for entry in fs::read_dir(cache.join("kernels")).into_iter().flatten().flatten() {
        let bytes = fs::read(entry.path()).unwrap_or_else(|e| panic!("{e}"));
        fs::write(entry.path(), &bytes[..bytes.len() - 40]).unwrap_or_else(|e| panic!("{e}"));
        entries += 1;
    }
    let (third, told) = once(&[]);
    assert_eq!(third, first);
    assert_eq!(told.matches("warning[W0601]: a cached kernel is built again: ").count(), entries, "{told}");
    assert!(entries > 0 && told.contains(", 0 from the cache"), "{told}");
    assert!(!once(&[]).1.contains("W0601"));
    // Another GPU, and the processor, have kernels of their own.
    if !is_real() {
        let (other, told) = once(&[("TESSERA_STANDIN_ARCH", "8.0")]);
        assert_eq!(other, first);
        assert!(told.contains(", 0 from the cache"), "{told}");
    }
}

/// Starts a program, interrupts it when it runs on the GPU, and returns how long it took to end and what it said.
fn interrupted(source: &str) -> (Duration, Option<i32>, String) {
    let dir = temp();
    fs::write(dir.path().join("main.tsr"), source).unwrap_or_else(|e| panic!("{e}"));
    let mut command = standin::command(dir.path(), &["run", "--target", "cuda", "main.tsr"], &[]);
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap_or_else(|e| panic!("{e}"));
    let start = Instant::now();
    while !dir.path().join("started").exists() {
        assert!(start.elapsed() < Duration::from_secs(60), "it did not start");
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(Duration::from_millis(500));
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(killed.is_ok_and(|s| s.success()));
    let start = Instant::now();
    let code = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status.code(),
            _ if start.elapsed() > Duration::from_secs(20) => {
                let _ = child.kill();
                panic!("it did not stop");
            }
            _ => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    let took = start.elapsed();
    let mut said = String::new();
    let read = child.stderr.take().map(|mut e| e.read_to_string(&mut said));
    assert!(read.is_some_and(|r| r.is_ok()));
    (took, code, said)
}

#[test]
fn an_interrupt_ends_a_run() {
    let host = "x = op.ones((16, 16))\nio.write_text(\"started\", \"\")\nwhile True:\n    x = op.tanh(x @ x)\n    if x[0, 0] < 0.0:\n        break\n";
    let loops = "x = op.ones((16, 16))\nio.write_text(\"started\", \"\")\ny = op.fori(0, 300000, lambda k, x: op.tanh(x @ x), x)\nprint(op.sum(y))\n";
    for source in [host, loops] {
        let (took, code, said) = interrupted(source);
        assert_eq!((code, said.as_str()), (Some(130), "interrupted\n"));
        assert!(took < Duration::from_millis(1400), "it took {took:?}");
    }
    // One kernel that takes longer than that: the process does not wait for it.
    let one = "x = op.ones((2000, 2000))\nio.write_text(\"started\", \"\")\nprint(op.sum(x @ x))\n";
    let (took, code, said) = interrupted(one);
    if !is_real() {
        assert_eq!((code, said.as_str()), (Some(130), "interrupted\n"));
        assert!(took < Duration::from_secs(6), "it took {took:?}");
    }
}

const MIXED: &str = "def f(x: Tensor[N, D, f32], w: Tensor[D, H, f32]) -> Tensor[N, H, f32]:
    return op.softmax(op.gelu(x @ w), axis=1)

x = random.normal(random.key(0), (40, 24))
w = random.normal(random.key(1), (24, 48))
y = f(x, w)
print(y[3, :5], op.sum(y * y), op.argmax(y, axis=1)[:7])
print(op.cumsum(y, axis=0)[39, :4], op.sort(y[0])[:3])
print(autodiff.grad(lambda w: op.sum(f(x, w) ** 2))(w)[:2, :3])
print((x.to(bf16) @ w.to(bf16))[0, :4], (x * 100).to(i8)[0, :6])
";

#[test]
fn threads_and_the_order_of_warps_change_nothing() {
    let first = on_both(MIXED, &[]);
    assert_eq!((first.code, first.err.as_str()), (0, ""));
    for (threads, seed) in [("1", "1"), ("2", "2"), ("1", "77"), ("2", "12345")] {
        let r = run(MIXED, &["run", "--target", "cuda", "--threads", threads], &[("TESSERA_STANDIN_SEED", seed)]);
        assert_eq!(r, first, "{threads} threads, seed {seed}");
    }
}

const MESHES: &[&str] = &[
    "mesh = dist.Mesh(axes=[\"dp\"], devices=range(4), shape=[4])
x = dist.shard(random.normal(random.key(1), (16, 8)), dist.ShardSpec(partition=(0,), mesh_axes=(\"dp\",)), mesh=mesh)
w = random.normal(random.key(2), (8, 4))
y = op.softmax(x @ w, axis=1)
print(y.sharding)
print(op.sum(y, axis=0), op.sum(y * y), y[3])
",
    "mesh = dist.Mesh(axes=[\"dp\", \"tp\"], devices=range(4), shape=[2, 2])
x = dist.shard(random.normal(random.key(1), (8, 6)), dist.ShardSpec(partition=(0,), mesh_axes=(\"dp\",)), mesh=mesh)
w = dist.shard(random.normal(random.key(2), (6, 10)), dist.ShardSpec(partition=(1,), mesh_axes=(\"tp\",)), mesh=mesh)

def loss(x, w):
    return op.sum(op.tanh(x @ w) ** 2)

print(loss(x, w))
print(autodiff.grad(lambda w: loss(x, w))(w)[:2, :3])
print(op.sort(x, axis=0)[0], op.cumsum(x, axis=1)[7])
",
];

#[test]
fn meshes_of_one_gpu_have_the_bits_of_the_processor() {
    for source in MESHES {
        for threads in ["1", "2"] {
            let r = on_both(source, &["--devices", "4", "--threads", threads]);
            assert_eq!((r.code, r.err.as_str()), (0, ""), "{source}");
        }
    }
}

#[test]
fn files_take_tensors_from_the_gpu_and_bring_them_there() {
    let source = "x = op.exp(op.arange(5.0)) + 1
io.write_safetensors(\"t.safetensors\", {\"x\": x, \"y\": (x * 3).to(bf16)})
t = io.read_safetensors(\"t.safetensors\")
z: Tensor[N, f32] = t[\"x\"]
print(op.sum(z + 1))
io.save(\"v\", {\"a\": x, \"b\": x * 2})
v = io.load(\"v\", like={\"a\": x, \"b\": x})
print(v[\"a\"] - x, v[\"b\"] / x)
";
    let dir = [temp(), temp()];
    let ran = [&["run", "main.tsr"][..], &["run", "--target", "cuda", "main.tsr"]];
    let bytes: Vec<_> = dir
        .iter()
        .zip(ran)
        .map(|(dir, args)| {
            fs::write(dir.path().join("main.tsr"), source).unwrap_or_else(|e| panic!("{e}"));
            let r = in_folder(dir.path(), args, &[]);
            assert_eq!((r.code, r.err.as_str()), (0, ""), "{args:?}");
            let file = |name: &str| fs::read(dir.path().join(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
            (r.out, file("t.safetensors"), file("v"))
        })
        .collect();
    assert!(bytes[0] == bytes[1], "{}{}", bytes[0].0, bytes[1].0);
}

#[test]
fn a_profile_has_a_row_for_each_kernel() {
    let source = "def f(x: Tensor[N, N, f32]) -> Tensor[N, N, f32]:\n    return op.softmax(x @ x, axis=1)\n\n\
                  x = random.normal(random.key(0), (32, 32))\nfor k in range(3):\n    x = f(x)\nprint(op.sum(x))\n";
    let r = run(source, &["profile", "--target", "cuda"], &[]);
    assert_eq!((r.code, r.out.as_str()), (0, "32.0\n"), "{}", r.err);
    assert!(
        r.err.contains("share     runs      median   GFLOP/s    GB/s  roof   tiles    a tile  kernel"),
        "{}",
        r.err
    );
    let row = |name: &str| r.err.lines().any(|l| l.contains(name) && l.contains("main.tsr:2") && l.contains(" 3 "));
    assert!(row("dot") && row("mul_fused"), "{}", r.err);
    // What each takes of a multiprocessor.
    let cells = |name: &str| {
        let lines = r.err.lines().skip_while(|l| !l.contains("registers")).skip(1);
        lines.map(|l| l.split_whitespace().collect::<Vec<_>>()).find(|c| c.first() == Some(&name))
    };
    let taken = cells("dot").unwrap_or_default();
    assert!(taken.ends_with(&["of", "64"]) && taken.len() >= 8, "{taken:?}\n{}", r.err);
}

#[test]
fn a_clock_waits_for_the_gpu() {
    let tiny = std::env::var_os("TESSERA_GPU_SIZE").is_some_and(|s| s == "small");
    if !standin::is_real() || tiny {
        eprintln!("not run: the stand-in has done its work when a call returns");
        return;
    }
    // The last time everything has been compiled; a product takes longer than what reads one element of it.
    let source = "def f(x: Tensor[N, N, f32]) -> Tensor[N, N, f32]:
    return op.tanh(x @ x)

x = random.normal(random.key(0), (4096, 4096))
longer = False
for k in range(3):
    start = time.perf_counter()
    y = f(x)
    a = time.perf_counter()
    z = y[0, 0] > 2
    print(z)
    longer = a - start > time.perf_counter() - a
print(longer)
";
    let r = run(source, &["run", "--target", "cuda"], &[]);
    assert_eq!((r.code, r.out.lines().last()), (0, Some("True")), "{}{}", r.out, r.err);
}

#[test]
fn tests_and_sessions_run_on_the_gpu() {
    let source = "def double(x: Tensor[N, f32]) -> Tensor[N, f32]:\n    \"\"\"Twice.\n\n    >>> double(op.arange(3.0))\n    \
                  Tensor[3, f32] [0. 2. 4.]\n    \"\"\"\n    return x * 2\n\ndef test_double():\n    assert op.all(double(op.ones((5,))) == 2)\n\n\
                  def test_wrong():\n    print(op.exp(op.arange(4.0))[op.arange(6)])\n";
    let cpu = run(source, &["test"], &[]);
    let gpu = run(source, &["test", "--target", "cuda"], &[]);
    // The summary says how long it took.
    let results = |out: &str| out.lines().filter(|l| !l.contains(" passed, ")).collect::<Vec<_>>().join("\n");
    assert_eq!((gpu.code, results(&gpu.out), &gpu.err), (cpu.code, results(&cpu.out), &cpu.err));
    assert!(
        gpu.code == 1 && gpu.out.contains("ok      test_double") && gpu.err.contains("E0703"),
        "{}{}",
        gpu.out,
        gpu.err
    );
    let input = "x = op.arange(5.0)\nx * 2\nop.exp(x)[op.arange(7)]\nx + 1\n";
    let session = |args: &[&str]| {
        let dir = temp();
        run_command(&mut standin::command(dir.path(), args, &[]), input).unwrap_or_else(|e| panic!("{e}"))
    };
    let (cpu, gpu) = (session(&["repl"]), session(&["repl", "--target", "cuda"]));
    assert_eq!(gpu, cpu);
    assert!(gpu.out.contains("[1. 2. 3. 4. 5.]") && gpu.err.contains("E0703"), "{}{}", gpu.out, gpu.err);
    assert_eq!(session(&["--target", "cuda"]), cpu);
}

#[test]
fn sums_over_rows_keep_a_gpu_busy() {
    let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
    let source = "def f(x: Tensor[N, D, f32]) -> Tensor[D, f32]:\n    return x.sum(axis=0)\n";
    std::fs::write(dir.path().join("main.tsr"), source).unwrap_or_else(|e| panic!("{e}"));
    let args = ["emit", "--target", "cuda", "--ir", "tile", "--function", "f", "--sizes", "N=8192,D=1024", "main.tsr"];
    let ran = run_command(&mut standin::command(dir.path(), &args, &[]), "").unwrap_or_else(|e| panic!("{e}"));
    let grids = ran.out.split("grid=").skip(1).filter_map(|t| t.split(',').next()?.parse::<u64>().ok());
    // A point for 16 columns of some leaves; then one for 16 columns of all.
    assert_eq!(grids.collect::<Vec<_>>(), [1024, 64], "{}{}", ran.out, ran.err);
}
