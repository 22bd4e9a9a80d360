//! The tool's behaviour around programs: exit codes, missing files, caches, interrupts.

use std::io::BufRead;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tessera_tests::program::{binary, root, run_in, run_source};

fn temp() -> tempfile::TempDir {
    tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"))
}

fn run(source: &str, args: &[&str]) -> tessera_tests::program::Ran {
    run_source(source, args).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn exit_codes_say_done_wrong_or_misused() {
    assert_eq!(run("print(1)", &["run"]).code, 0);
    assert_eq!(run("print(x)", &["run"]).code, 1);
    assert_eq!(run("print(1)", &["run", "--threads", "none"]).code, 2);
    assert_eq!(run("print(1)", &["--target", "vulkan", "run"]).code, 2);
    assert_eq!(run("sys.exit(7)", &["run"]).code, 7);
}

#[test]
fn the_command_line_gives_a_mesh_its_sizes() {
    let source = "mesh = dist.Mesh(axes=[\"dp\", \"tp\"], devices=range(4), shape=[2, 2])
x = dist.shard(op.ones((6, 4)), dist.ShardSpec(partition=(0, 1), mesh_axes=(\"dp\", \"tp\")), mesh=mesh)
print(x.sharding)
";
    let ran = run(source, &["run", "--mesh", "dp=3,tp=1"]);
    assert_eq!((ran.code, ran.out.trim()), (0, "dim 0 over dp, dim 1 over tp, on Mesh[dp=3, tp=1]"));
    // Before the file alone, too: its value is no file.
    assert_eq!(run(source, &["--mesh", "dp=1,tp=4", "run"]).code, 0);
    let ran = run(source, &["run", "--mesh", "dp=3"]);
    assert_eq!(ran.code, 1, "{}", ran.err);
    assert!(ran.err.contains("nothing of the program lies on a mesh with the axes dp"), "{}", ran.err);
}

#[test]
fn a_missing_program_is_told_with_its_neighbour() {
    let dir = temp();
    std::fs::write(dir.path().join("train.tsr"), "print(1)").unwrap_or_else(|e| panic!("{e}"));
    let r = run_in(dir.path(), &["run", "trian.tsr"], "").unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(r.code, 1);
    assert!(r.err.contains("E0706") && r.err.contains("did you mean `train.tsr`?"), "{}", r.err);
}

/// What programs are made of.
const ASCII: &[u8] = b" \n()[]{}:=+-*/@.,#'\"abcdefg0123456789\t";

#[test]
fn any_bytes_are_a_program_or_a_diagnostic() {
    let dir = temp();
    let path = dir.path().join("main.tsr");
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    for round in 0..40 {
        let bytes: Vec<u8> = (0..400)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let b = (state >> 33) as u8;
                // Half of the rounds are ASCII, so that they get beyond the decoding.
                if round % 2 == 0 { b } else { ASCII[usize::from(b) % ASCII.len()] }
            })
            .collect();
        std::fs::write(&path, bytes).unwrap_or_else(|e| panic!("{e}"));
        let r = run_in(dir.path(), &["run", "main.tsr"], "").unwrap_or_else(|e| panic!("{e}"));
        assert!(r.code == 0 || r.code == 1, "exit {}: {}", r.code, r.err);
        assert!(!r.err.contains("E0999"), "{}", r.err);
    }
}

#[test]
fn memory_that_cannot_be_had_is_an_error() {
    let r = run("x = op.zeros((1000000, 1000000))\nprint(x.sum())", &["run"]);
    assert_eq!(r.code, 1);
    assert!(r.err.contains("E0710") && r.err.contains("3.6 TiB"), "{}", r.err);
}

#[test]
fn a_damaged_cache_entry_is_built_again() {
    let dir = temp();
    let cache = dir.path().join("cache");
    let program = "a = op.ones((64, 64))\nb = a @ a + 1.0\nprint(b.sum())";
    std::fs::write(dir.path().join("main.tsr"), program).unwrap_or_else(|e| panic!("{e}"));
    let once = || {
        let out = Command::new(binary())
            .args(["run", "main.tsr"])
            .current_dir(dir.path())
            .env("TESSERA_CACHE", &cache)
            .env("TESSERA_ALWAYS_COMPILE", "1")
            .output()
            .unwrap_or_else(|e| panic!("{e}"));
        (
            out.status.code(),
            String::from_utf8_lossy(&out.stdout).into_owned(),
            String::from_utf8_lossy(&out.stderr).into_owned(),
        )
    };
    let first = once();
    assert_eq!(first.0, Some(0), "{}", first.2);
    let mut damaged = 0;
    for entry in std::fs::read_dir(cache.join("kernels")).into_iter().flatten().flatten() {
        std::fs::write(entry.path(), b"TSRKRN02 nonsense").unwrap_or_else(|e| panic!("{e}"));
        damaged += 1;
    }
    assert!(damaged > 0);
    let second = once();
    assert_eq!((second.0, &second.1), (Some(0), &first.1), "{}", second.2);
    assert!(second.2.contains("W0601"), "{}", second.2);
    let third = once();
    assert!(!third.2.contains("W0601"), "{}", third.2);
}

#[test]
fn without_a_cache_directory_programs_run() {
    let out = Command::new(binary())
        .args(["run", "-"])
        .env("TESSERA_CACHE", "/proc/no-such-place")
        .env("TESSERA_ALWAYS_COMPILE", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .and_then(|mut child| {
            if let Some(mut stdin) = child.stdin.take() {
                std::io::Write::write_all(&mut stdin, b"print((op.ones((3,)) + 1.0).sum())\n")?;
            }
            child.wait_with_output()
        })
        .unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(String::from_utf8_lossy(&out.stdout), "6.0\n", "{}", String::from_utf8_lossy(&out.stderr));
}

#[test]
fn an_interrupt_ends_with_130_and_leaves_no_partial_file() {
    let dir = temp();
    let source = "i = 0\nwhile True:\n    i += 1\n    io.write_text(\"out.txt\", str(i))\n    if i > 1000000000:\n        break\n";
    std::fs::write(dir.path().join("main.tsr"), source).unwrap_or_else(|e| panic!("{e}"));
    let mut child = Command::new(binary())
        .args(["run", "main.tsr"])
        .current_dir(dir.path())
        .spawn()
        .unwrap_or_else(|e| panic!("{e}"));
    std::thread::sleep(Duration::from_millis(700));
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(killed.is_ok_and(|s| s.success()));
    let start = Instant::now();
    let code = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status.code(),
            _ if start.elapsed() > Duration::from_secs(20) => panic!("it did not stop"),
            _ => std::thread::sleep(Duration::from_millis(10)),
        }
    };
    assert_eq!(code, Some(130));
    let left: Vec<String> = std::fs::read_dir(dir.path())
        .into_iter()
        .flatten()
        .flatten()
        .map(|e| e.file_name().to_string_lossy().into_owned())
        .filter(|n| n != "main.tsr" && n != "out.txt")
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn an_interrupt_ends_a_loop_of_compiled_code_at_once() {
    let dir = temp();
    let source = "def step(c, i):\n    return op.tanh(c @ c + 0.1), c.sum()\n\ndef loss(x):\n    c, s = op.scan(step, x, \
                  op.arange(100000))\n    return c.sum() + s.sum()\n\nprint(autodiff.jvp(loss, (op.ones((128, 128)) / 128.0,), \
                  (op.ones((128, 128)),)))\n";
    std::fs::write(dir.path().join("main.tsr"), source).unwrap_or_else(|e| panic!("{e}"));
    let mut child = Command::new(binary())
        .args(["run", "main.tsr"])
        .current_dir(dir.path())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|e| panic!("{e}"));
    std::thread::sleep(Duration::from_millis(1500));
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(killed.is_ok_and(|s| s.success()));
    let start = Instant::now();
    let code = child.wait().map(|s| s.code()).unwrap_or_else(|e| panic!("{e}"));
    // What does not end by itself is ended after a second and a half.
    assert!(start.elapsed() < Duration::from_millis(1400), "it took {:?}", start.elapsed());
    let mut said = String::new();
    let read = child.stderr.take().map(|mut e| std::io::Read::read_to_string(&mut e, &mut said));
    assert!(read.is_some_and(|r| r.is_ok()));
    assert_eq!((code, &*said), (Some(130), "interrupted\n"));
}

/// A program whose one region has hundreds of kernels, all different.
const MANY_KERNELS: &str = "def f(x):\n    total = op.zeros(())\n    for i in range(1, 300):\n        total = total + \
                            op.tanh(x[:, :i] @ x[:i]).sum()\n    return total\n\nprint(f(op.ones((400, 400)) / 400.0))\n";

#[test]
fn an_interrupt_ends_compilation() {
    let dir = temp();
    std::fs::write(dir.path().join("main.tsr"), MANY_KERNELS).unwrap_or_else(|e| panic!("{e}"));
    let mut child = Command::new(binary())
        .args(["run", "--no-cache", "-v", "main.tsr"])
        .current_dir(dir.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|e| panic!("{e}"));
    let mut lines = std::io::BufReader::new(child.stderr.take().unwrap_or_else(|| panic!("no stderr"))).lines();
    let traced = lines.by_ref().map_while(Result::ok).any(|l| l.starts_with("traced"));
    assert!(traced);
    std::thread::sleep(Duration::from_millis(300));
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(killed.is_ok_and(|s| s.success()));
    let start = Instant::now();
    let out = child.wait_with_output().unwrap_or_else(|e| panic!("{e}"));
    assert!(start.elapsed() < Duration::from_millis(1400), "it took {:?}", start.elapsed());
    let said: Vec<String> = lines.map_while(Result::ok).collect();
    assert_eq!((out.status.code(), &*out.stdout), (Some(130), &b""[..]), "{said:?}");
    assert_eq!(said.last().map(String::as_str), Some("interrupted"));
}

#[test]
fn a_compiler_that_is_missing_is_told_once() {
    let dir = temp();
    let source = "def f(x):\n    return (x @ x).sum() + op.softmax(x @ x.T).sum()\n\nprint(f(op.ones((96, 96))) > 0.0)\n\
                  print(f(op.ones((97, 97))) > 0.0)\n";
    std::fs::write(dir.path().join("main.tsr"), source).unwrap_or_else(|e| panic!("{e}"));
    let out = Command::new(binary())
        .args(["run", "--no-cache", "--threads", "2", "main.tsr"])
        .current_dir(dir.path())
        .env("TESSERA_LLVM", dir.path().join("libLLVM.so"))
        .env("TESSERA_ALWAYS_COMPILE", "1")
        .output()
        .unwrap_or_else(|e| panic!("{e}"));
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!((out.status.code(), said.matches("E0601").count()), (Some(0), 1), "{said}");
    assert_eq!(String::from_utf8_lossy(&out.stdout), "True\nTrue\n");
}

#[test]
fn the_examples_are_in_canonical_form() {
    let entries = std::fs::read_dir(root().join("examples")).into_iter().flatten().flatten().map(|e| e.path());
    let files: Vec<_> = entries.filter(|p| p.extension().is_some_and(|e| e == "tsr")).collect();
    let out = Command::new(binary()).args(["fmt", "--check"]).args(&files).output().unwrap_or_else(|e| panic!("{e}"));
    assert!(files.len() > 10 && out.status.code() == Some(0), "{}", String::from_utf8_lossy(&out.stdout));
}

#[test]
fn the_policy_of_the_command_line_is_where_programs_begin() {
    let program = "x = random.normal(random.key(0), (5000,)) * 1e6\nprint(f\"{float(x.sum()):.1f}\")\n";
    let under = |policy: &str| run(program, &["--policy", policy, "run"]).out;
    assert_eq!(under("deterministic"), "-72639648.0\n");
    assert_eq!(under("kahan_sum"), "-72639632.0\n");
}

/// Runs the tool in a folder with these files.
fn with_files(files: &[(&str, &str)], args: &[&str]) -> tessera_tests::program::Ran {
    let dir = temp();
    for (name, text) in files {
        std::fs::write(dir.path().join(name), text).unwrap_or_else(|e| panic!("{e}"));
    }
    run_in(dir.path(), args, "").unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn an_example_is_told_at_its_line_of_the_file() {
    let text = "def half(x):\n    \"\"\"Half.\n\n    >>> half(4)\n    2\n    >>> half(\n    ...     2) + \"a\"\n    1\n    \"\"\"\n    \
                return x // 2\n\ndef sum(x):\n    \"\"\"\n    >>> sum(op.ones((3,)))\n    3.0\n    \"\"\"\n    return x[7]\n\n\
                def test_it():\n    assert sum(op.ones((9,))) == 2.0\n";
    let r = with_files(&[("main.tsr", text)], &["test", "main.tsr"]);
    let places: Vec<&str> = r.err.lines().filter_map(|l| l.split_once("main.tsr:").map(|(_, p)| p)).collect();
    assert_eq!(places, ["7:16 ]", "14:9 ]", "20:5 ]"], "{}", r.err);
    for line in ["6 │ ╭─▶     >>> half(", "7 │ ├─▶     ...     2) + \"a\"", "14 │     >>> sum(op.ones((3,)))"]
    {
        assert!(r.err.contains(line), "{line} is not in\n{}", r.err);
    }
    assert!(!r.err.contains("shown_by") && r.out.contains("\n0 passed, 3 failed in "), "{}{}", r.err, r.out);
}

#[test]
fn an_example_shows_each_value_of_a_line() {
    let text = "def f(n: int) -> int:\n    \"\"\"\n    >>> x = [1]; x.append(2); x\n    [1, 2]\n    >>> f(1); \"a;b\"; print(3); None\n    \
                2\n    'a;b'\n    3\n    >>> y = \"a; y\"; f(z)\n    1\n    \"\"\"\n    return n + 1\n";
    let r =
        with_files(&[("main.tsr", &text.replace("f(z)", "f(2)").replace("    1\n", "    3\n"))], &["test", "main.tsr"]);
    assert_eq!((r.code, r.out.contains("\n1 passed, 0 failed in ")), (0, true), "{}{}", r.out, r.err);
    let r = with_files(&[("main.tsr", text)], &["test", "main.tsr"]);
    assert!(r.err.contains("main.tsr:9:23 ]"), "{}", r.err);
}

#[test]
fn a_warning_of_a_tested_file_is_told_once() {
    let text = "def test_a():\n    x = 1\n    x = 2\n\ndef test_b():\n    assert True\n\nif 1 == 1:\n    y = [i for i in range(3)]\n";
    let r = with_files(&[("main.tsr", text)], &["test", "main.tsr"]);
    let check = with_files(&[("main.tsr", text)], &["check", "main.tsr"]);
    assert_eq!((r.code, r.err), (0, check.err));
}

#[test]
fn an_error_while_a_module_runs_is_told_at_its_import() {
    let module = "# About it.\nlow = [1, 2]\n\ndef pick(i):\n    return low[i]\n\nhigh = pick(5)\n";
    let r =
        with_files(&[("main.tsr", "x = 1\nimport mod\nprint(mod.high)\n"), ("mod.tsr", module)], &["run", "main.tsr"]);
    assert_eq!(
        r.err,
        "error[E0703]: index 5 is out of range for a list of length 2
   ╭─[ mod.tsr:5:12 ]
   │
 5 │     return low[i]
   │            ───┬──  
   │               ╰──── here
   │ 
 7 │ high = pick(5)
   │        ───┬───  
   │           ╰───── called here
   │
   ├─[ main.tsr:2:1 ]
   │
 2 │ import mod
   │ ─────┬────  
   │      ╰────── imported here
───╯
"
    );
}

#[test]
fn programs_are_formatted_to_the_output_or_into_their_files() {
    let (dir, messy, tidy) = (temp(), "x=1\nprint( x )\n", "x = 1\nprint(x)\n");
    let path = dir.path().join("main.tsr");
    std::fs::write(&path, messy).unwrap_or_else(|e| panic!("{e}"));
    let fmt = |args: &[&str]| run_in(dir.path(), &[&["fmt"], args].concat(), "").unwrap_or_else(|e| panic!("{e}"));
    let text = || std::fs::read_to_string(&path).unwrap_or_default();
    let printed = fmt(&["main.tsr"]);
    assert_eq!((printed.code, &*printed.out, &*text()), (0, tidy, messy));
    assert_eq!((fmt(&["--check", "main.tsr"]).code, &*text()), (1, messy));
    assert_eq!(fmt(&["--check", "--write", "main.tsr"]).code, 2);
    let printed = fmt(&["--stdout", "main.tsr"]);
    assert_eq!((printed.code, &*printed.out, &*text()), (0, tidy, messy));
    assert_eq!(fmt(&["--stdout", "--write", "main.tsr"]).code, 2);
    let written = fmt(&["--write", "main.tsr"]);
    assert_eq!((written.code, &*written.out, &*text()), (0, "", tidy));
    assert_eq!(fmt(&["--check", "main.tsr"]).code, 0);
}

#[test]
fn many_errors_of_a_long_line_do_not_repeat_it() {
    let names: Vec<String> = (0..50).map(|i| format!("unknown_{i}")).collect();
    let text = format!("x = 1\ny = [{}]\nz = q\n", names.join(", "));
    let r = run(&text, &["check"]);
    assert_eq!(r.err.matches("error[E0101]").count(), 6, "{}", r.err);
    assert!(r.err.lines().all(|l| l.chars().count() < 130), "{}", r.err);
    let said = "error: 45 more errors in line 2 of main.tsr\n  = column 61: [E0101] `unknown_5` is not defined\n";
    assert!(r.err.contains(said) && r.err.contains("  = and 35 more\n"), "{}", r.err);
    assert_eq!(run(&text, &["--json", "check"]).err.lines().count(), 51);
}

#[test]
fn emit_leaves_no_files_and_prints_nothing_of_the_program() {
    let source = "print(\"printed\")\nio.append_text(\"old.txt\", \"more\\n\")\nassert len(io.read_lines(\"old.txt\")) == 2\n\
                  io.write_npy(\"x.npy\", op.arange(3.0))\nx: Tensor[N, f32] = io.read_npy(\"x.npy\")\nio.save(\"s\", x)\n\
                  assert io.exists(\"s\") and not io.exists(\"t\")\nio.write_text(\"/dev/stdout\", \"shown\")\n\
                  io.append_text(\"log\", \"a\")\nio.append_text(\"log\", \"b\")\nassert io.read_text(\"log\") == \"ab\"\n\
                  def f(x):\n    return op.exp(x * 2.0)\n\nprint(f(io.load(\"s\", like=x)))\n";
    let dir = temp();
    for (name, text) in [("main.tsr", source), ("old.txt", "one\n")] {
        std::fs::write(dir.path().join(name), text).unwrap_or_else(|e| panic!("{e}"));
    }
    let r = run_in(dir.path(), &["emit", "main.tsr"], "").unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((r.code, &*r.err), (0, ""));
    assert!(r.out.contains("tessera.graph.exp") && !r.out.contains("printed") && !r.out.contains("shown"), "{}", r.out);
    let mut left: Vec<_> =
        std::fs::read_dir(dir.path()).into_iter().flatten().flatten().map(|e| e.file_name()).collect();
    left.sort();
    assert_eq!(left, ["main.tsr", "old.txt"]);
    assert_eq!(std::fs::read_to_string(dir.path().join("old.txt")).ok().as_deref(), Some("one\n"));
}

#[test]
fn a_profile_counts_the_kernels_of_a_loop_once() {
    let source = "def step(c, i):\n    return op.tanh(c @ c * 0.01), c.sum()\n\ndef loop(x):\n    return op.scan(step, x, op.arange(400))\n\n\
                  c, s = loop(op.ones((128, 128)))\nprint(c.shape)\n";
    let r = run(source, &["profile"]);
    assert_eq!(r.code, 0, "{}", r.err);
    // What the loop takes beside its kernels is little, and all of it is no more than the whole run.
    let own =
        r.err.lines().find(|l| l.contains(" scan ")).and_then(|l| l.trim().split('%').next()?.parse::<f64>().ok());
    assert!(own.is_some_and(|share| share < 40.0), "{}", r.err);
}

#[test]
fn core_is_read_back() {
    let dir = temp();
    let file = |name: &str, text: &str| {
        std::fs::write(dir.path().join(name), text).unwrap_or_else(|e| panic!("{e}"));
        run_in(dir.path(), &["emit", "--ir", "core", name], "").unwrap_or_else(|e| panic!("{e}"))
    };
    let source =
        "def f(x: Tensor[N, f32], n: int) -> Tensor[N, f32]:\n    return op.exp(x) * n\nprint(f(op.ones((3,)), 2))\n";
    let first = file("main.tsr", source);
    assert_eq!(first.code, 0, "{}", first.err);
    let core = first.out;
    assert!(core.contains("\"core.op\"(%0) {value=\"exp\"} : Tensor[%N.1, f32]"), "{core}");
    assert_eq!(file("main.core", &core).out, core);
    // A size that nothing defines, a form that does not exist, a value of another type than its place has, half a text.
    let half = &core[..core.len() / 2];
    let damaged = [core.replace("[%N.1", "[%M.1"), core.replace("core.op", "core.up"), half.to_owned()];
    for text in damaged.iter().chain([&core.replace("} : int(2)", "} : float")]) {
        let r = file("damaged.core", text);
        assert!(r.code == 1 && r.err.contains("E0012") && r.err.matches("error").count() == 1, "{text}\n{}", r.err);
    }
    let run = |args: &[&str]| {
        std::fs::write(dir.path().join("main.core"), &core).unwrap_or_else(|e| panic!("{e}"));
        run_in(dir.path(), &[args, &["main.core"]].concat(), "").unwrap_or_else(|e| panic!("{e}"))
    };
    assert_eq!(run(&["run", "--interpret"]).out, "[5.4365635 5.4365635 5.4365635]\n");
    // A number could be read as an address.
    for args in [&["run"][..], &["emit", "--ir", "graph"]] {
        let r = run(args);
        assert!(r.code == 1 && r.err.contains("is not compiled") && r.err.contains("--interpret"), "{}", r.err);
    }
    let chain: String = (0..100_000).map(|i| format!("  %{} = \"core.neg\"(%{i}) : int\n", i + 1)).collect();
    let deep = format!(
        "%main.0 = \"core.function\"() {{name=\"main\"}} ({{\n  %0 = \"core.int\"() {{value=1}} : int\n{chain}}}) : None\n"
    );
    let r = file("deep.core", &deep);
    assert!(r.code == 1 && r.err.contains("too deeply"), "{}", r.err);
}

#[test]
fn a_new_project_runs_and_is_not_overwritten() {
    let dir = temp();
    let tool = |dir: &std::path::Path, args: &[&str]| run_in(dir, args, "").unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(tool(dir.path(), &["new", "line"]).code, 0);
    let project = dir.path().join("line");
    let r = tool(&project, &["run", "main.tsr"]);
    assert_eq!((r.code, r.out.as_str()), (0, "y = 3.00 x + 0.50\n"), "{}", r.err);
    let r = tool(&project, &["test", "."]);
    assert!(r.code == 0 && r.out.contains("\n3 passed, 0 failed in "), "{}{}", r.out, r.err);
    assert_eq!(tool(&project, &["fmt", "--check", "main.tsr", "model.tsr"]).code, 0);
    std::fs::write(project.join("main.tsr"), "mine").unwrap_or_else(|e| panic!("{e}"));
    for (name, code) in [("line", "E0706"), ("nowhere/line", "E0706"), ("..", "E0602")] {
        let r = tool(dir.path(), &["new", name]);
        assert!(r.code == 1 && r.err.contains(code), "{name}: {}", r.err);
    }
    assert_eq!(std::fs::read_to_string(project.join("main.tsr")).ok().as_deref(), Some("mine"));
}

#[test]
fn help_and_completions_are_printed() {
    let dir = temp();
    let tool = |args: &[&str]| run_in(dir.path(), args, "").unwrap_or_else(|e| panic!("{e}"));
    for (topic, part) in
        [("run", "Usage: tessera run"), ("softmax", "axis=-1"), ("E0201", "# E0201"), ("nn.linear", "def linear(m: ")]
    {
        let r = tool(&["help", topic]);
        assert!(r.code == 0 && r.out.contains(part) && r.err.is_empty(), "{topic}: {}{}", r.out, r.err);
    }
    let r = tool(&["help", "softmx"]);
    assert!(r.code == 2 && r.err.contains("did you mean `softmax`?"), "{}", r.err);
    for shell in ["bash", "zsh", "fish"] {
        let r = tool(&["completions", shell]);
        assert!(r.code == 0 && r.out.contains("tessera") && r.out.contains("junit"), "{shell}");
    }
    assert_eq!(tool(&["completions", "nosh"]).code, 2);
}

#[test]
fn options_of_a_program_are_its_own() {
    let text = "import std.args as args\nsteps = args.number(\"--steps\", 5)\nout = args.text(\"--out\", \"x\")\nagain = args.flag(\"--again\")\n\
                args.end(\"Trains.\")\nprint(steps, out, again, args.rest())\n";
    let ran = |args: &[&str]| with_files(&[("main.tsr", text)], &[&["run", "main.tsr"], args].concat());
    assert_eq!(ran(&[]).out, "5 x False []\n");
    assert_eq!(ran(&["--steps=7", "file", "--out", "q", "--again"]).out, "7 q True ['file']\n");
    let help = ran(&["--help"]);
    assert!(help.code == 0 && help.out.starts_with("Trains.\n  --steps INT"), "{}", help.out);
    for (args, part) in
        [("--stpes", "did you mean `--steps`?"), ("--again=1", "takes no value"), ("--zzzzzzz", "`--help` lists")]
    {
        let r = ran(&[args]);
        assert!(r.code == 1 && r.err.contains("main.tsr:5:1") && r.err.contains(part), "{args}: {}", r.err);
    }
}

/// Twenty thousand lines, made of one for each number.
fn many(line: impl Fn(usize) -> String) -> String {
    (0..20_000).map(|i| line(i) + "\n").collect()
}

#[test]
fn thousands_of_mistakes_are_told_as_fast_as_they_are_made() {
    let programs = [
        ("E0101", many(|i| format!("v{i} = undefined_{i} + 1"))),
        ("E0101", (0..5000).map(|i| format!("def f{i}(x: int) -> int:\n    return x + ff{i}\n\n\n")).collect()),
        ("E0103", format!("struct P:\n    x: int\n\np = P(1)\n{}", many(|i| format!("print(p.field_{i})")))),
        ("E0205", many(|i| format!("v{i} = 1 + \"a\""))),
        ("E0102", many(|i| format!("import module_{i}"))),
        ("E0002", many(|i| format!("v{i} = = {i}"))),
    ];
    for (code, source) in programs {
        for args in [&["check"][..], &["check", "--json"]] {
            let start = Instant::now();
            let r = run(&source, args);
            assert_eq!(r.code, 1);
            assert!((r.err + &r.out).contains(code), "{code}");
            // A tenth of it in a quiet moment; each mistake looked at all others before.
            assert!(start.elapsed() < Duration::from_secs(10), "{code}: {:?}", start.elapsed());
        }
    }
}
