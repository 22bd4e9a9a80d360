//! A program over several processes under `mpirun`: what it prints is what it prints alone, and where
//! one process cannot go on, all end with a message, soon.

use std::path::Path;
use std::time::{Duration, Instant};
use tessera_tests::golden::blocks;
use tessera_tests::program::{Ran, binary, mpirun, processes_in, root, run_alone, run_command, run_processes};

/// Where nothing else is said, after this long a run that is to end early counts as hanging.
const SOON: Duration = Duration::from_secs(20);

fn temp() -> tempfile::TempDir {
    tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"))
}

fn write(dir: &Path, name: &str, text: &str) {
    std::fs::write(dir.join(name), text).unwrap_or_else(|e| panic!("{e}"));
}

/// Adds what differs between a program alone and in several processes.
fn compare(complaints: &mut Vec<String>, name: &str, source: &str, counts: &[usize]) {
    let dir = temp();
    write(dir.path(), "main.tsr", source);
    let one = run_alone(dir.path(), &["run", "main.tsr"]);
    for &n in counts {
        let Some(several) = run_processes(dir.path(), n, &["run", "main.tsr"]) else { return };
        // `mpirun` has something to say, too.
        let told = one.err.is_empty() || several.err.matches(&one.err).count() == 1;
        if (several.code, &several.out) != (one.code, &one.out) || !told {
            let (alone, together) = (one.out.clone() + &one.err, several.out + &several.err);
            complaints.push(format!("{name} in {n} processes:\n{together}\nalone:\n{alone}"));
        }
    }
}

#[test]
fn programs_on_meshes_print_the_same_in_any_number_of_processes() {
    let mut complaints = vec![];
    let golden = ["mesh", "mesh-checkpoints", "mesh-programs", "mesh-along", "mesh-stages", "per-device"]
        .map(|name| format!("tests/golden/run/{name}.md"));
    for file in golden.into_iter().chain(["docs/meshes.md".to_owned()]) {
        let text = std::fs::read_to_string(root().join(&file)).unwrap_or_default();
        let programs: Vec<_> = blocks(&text).into_iter().filter(|b| b.info.starts_with("tessera")).collect();
        assert!(!programs.is_empty(), "{file}");
        for (i, b) in programs.iter().enumerate() {
            // Each count for some of them: more processes than devices among them.
            let counts = [[2, 4], [2, 3], [4, 5]][i % 3];
            compare(&mut complaints, &format!("{file}: {}", b.heading), &b.text, &counts);
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n\n"));
}

#[test]
fn a_gpt_trains_to_the_same_bits_in_several_processes() {
    let text = std::fs::read_to_string(root().join("examples/gpt_mesh.tsr")).unwrap_or_else(|e| panic!("{e}"));
    let dir = temp();
    for (data, tensor, sequence) in [(2, 2, false), (2, 2, true), (3, 1, false), (1, 4, true)] {
        let own = format!("devices=range({}), shape=[{data}, {tensor}]", data * tensor);
        write(dir.path(), "gpt.tsr", &text.replace("devices=range(4), shape=[2, 2]", &own));
        let mut args = vec!["run", "gpt.tsr", "--", "--steps", "2"];
        args.extend(sequence.then_some("--sequence"));
        let one = run_alone(dir.path(), &args);
        assert!(one.out.contains("the same bits"), "{}{}", one.out, one.err);
        for n in [1, 2, 3, 4] {
            let Some(several) = run_processes(dir.path(), n, &args) else { return };
            assert_eq!((several.code, several.out), (0, one.out.clone()), "{n}: {}", several.err);
        }
    }
}

/// Host code that could differ: time, environment, files, what is there.
const HOST: &str = r#"
mesh = dist.Mesh(axes=["tp"], devices=range(4))
rows = dist.ShardSpec(partition=("row",), mesh_axes=("tp",))
x = dist.shard(op.arange(24.0).reshape(6, 4), rows, mesh=mesh)
began = time.perf_counter()
for i in range(3):
    x = x * 0.5 if time.now() > 0.0 else x
number = sys.env("OMPI_COMM_WORLD_RANK", "0") + sys.env("NO_SUCH_VARIABLE", "1")
y = x + float(number)
waited = time.perf_counter() - began
z = y * waited
print(y, bool(op.all(dist.gather(z) == dist.gather(y) * waited)))
if not io.exists("out.st"):
    io.save("out.st", y)
print(io.load("out.st", op.zeros((6, 4))))
io.append_text("log.txt", "once\n")
print(io.read_text("log.txt"))
dist.show(y)
sys.exit(3)
"#;

#[test]
fn what_could_differ_is_that_of_the_first_process_and_files_are_written_once() {
    for n in [2, 4] {
        let (dir, own) = (temp(), temp());
        write(dir.path(), "main.tsr", HOST);
        write(own.path(), "main.tsr", HOST);
        let Some(several) = run_processes(dir.path(), n, &["run", "main.tsr"]) else { return };
        let one = run_alone(own.path(), &["run", "main.tsr"]);
        assert_eq!((several.code, &several.out), (3, &one.out), "{}", several.err);
        // Each process writes its blocks, and what was printed is what all of them hold.
        assert!(dir.path().join("out.st").exists());
        assert_eq!(std::fs::read_dir(dir.path().join("out.st.parts")).map(Iterator::count).ok(), Some(n));
        assert_eq!(std::fs::read_to_string(dir.path().join("log.txt")).ok().as_deref(), Some("once\n"));
    }
}

#[test]
fn a_program_from_standard_input_reaches_all() {
    let dir = temp();
    let Some(mut command) = mpirun(dir.path()) else { return };
    command.args(["-n", "2"]).arg(binary()).args(["run", "-"]);
    let source = "mesh = dist.Mesh(axes=[\"tp\"], devices=range(2))\nprint(dist.tensor((4,), \
                  layout=dist.ShardSpec(partition=(\"row\",), mesh_axes=(\"tp\",)), mesh=mesh, init=2.0))\n";
    let r = run_command(&mut command, source).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((r.code, r.out.as_str()), (0, "[2. 2. 2. 2.]\n"), "{}", r.err);
}

#[test]
fn bytes_between_devices_are_counted_over_all_processes() {
    let path = root().join("examples/gpt_mesh.tsr").to_string_lossy().into_owned();
    let (dir, args) = (temp(), ["profile", path.as_str(), "--", "--steps", "2"]);
    // Without the three times and their units.
    let counts = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words[..words.len().saturating_sub(6)].join(" ")
    };
    let table = |r: &Ran| {
        let rows = r.err.split_once("\nexchange ")?.1.lines().skip(1);
        Some(rows.map(counts).collect::<Vec<_>>())
    };
    let one = table(&run_alone(dir.path(), &args));
    assert!(one.is_some());
    for n in [2, 3, 4] {
        let Some(several) = run_processes(dir.path(), n, &args) else { return };
        assert_eq!(table(&several), one, "{}", several.err);
        assert!(several.err.contains(&format!("kernels of process 0 of {n}:\n")), "{}", several.err);
    }
}

const INDEX: &str = r#"
mesh = dist.Mesh(axes=["tp"], devices=range(4))
rows = dist.ShardSpec(partition=("row",), mesh_axes=("tp",))

def pick(x, at):
    y = op.gather(x, 1, at)
    return y + op.sum(y, axis=0)

x = dist.shard(op.arange(24.0).reshape(4, 6), rows, mesh=mesh)
print("before")
y = pick(x, dist.shard(op.array([[0], [1], [2], [9]]), rows, mesh=mesh))
print("after", y)
"#;

/// The same while the parts of another tensor travel.
const MEANWHILE: &str = r#"
mesh = dist.Mesh(axes=["tp"], devices=range(4))
rows = dist.ShardSpec(partition=("row",), mesh_axes=("tp",))

def pick(x, v, at):
    whole = dist.collective.all_gather(v, axis="tp")
    return op.gather(x, 1, at) + op.sum(op.sin(whole))

x = dist.shard(op.arange(24.0).reshape(4, 6), rows, mesh=mesh)
v = dist.shard(op.ones((200000,)), rows, mesh=mesh)
print("before")
y = pick(x, v, dist.shard(op.array([[0], [1], [2], [9]]), rows, mesh=mesh))
print("after", y)
"#;

#[test]
fn what_one_device_refuses_ends_all_and_is_told_once() {
    let mut complaints = vec![];
    compare(&mut complaints, "while values travel", MEANWHILE, &[2, 3]);
    compare(&mut complaints, "an index of the last device", INDEX, &[2, 4, 5]);
    compare(&mut complaints, "of the first", &INDEX.replace("[[0], [1], [2], [9]]", "[[9], [1], [2], [0]]"), &[2, 4]);
    compare(&mut complaints, "host code", "x = [1, 2]\nprint(x[0])\nprint(x[len(x)])", &[2, 4]);
    compare(&mut complaints, "the checker", "print(1)\nprint(x)", &[2]);
    compare(&mut complaints, "a file", "print(1)\nio.write_text(\"no/such/folder\", \"x\")\nprint(2)", &[2]);
    assert!(complaints.is_empty(), "{}", complaints.join("\n\n"));
}

/// A loop without an end.
const LONG: &str = r#"
mesh = dist.Mesh(axes=["tp"], devices=range(4))
cols = dist.ShardSpec(partition=("col",), mesh_axes=("tp",))

def turn(x, w):
    return op.tanh(dist.collective.all_gather(x, axis="tp") @ w)

x = dist.shard(op.ones((32, 32)), cols, mesh=mesh)
w = dist.shard(op.ones((32, 32)), cols, mesh=mesh)
io.write_text("started", "")
while True:
    x = turn(x, w)
"#;

/// Starts the endless program in four processes, sends a signal to one of them, and returns what was
/// said with how long it took. All processes must be gone.
fn struck(signal: &str, patience: &str) -> Option<(Ran, Duration)> {
    let dir = temp();
    write(dir.path(), "long.tsr", LONG);
    let mut command = mpirun(dir.path())?;
    // Who is told to end has time to say so on a busy machine.
    command.args(["--mca", "odls_base_sigkill_timeout", "5"]);
    command.args(["-n", "4"]).arg(binary()).args(["run", "long.tsr"]);
    command.env("TESSERA_MPI_TIMEOUT", patience);
    let folder = dir.path().to_owned();
    let killer = std::thread::spawn(move || {
        let start = Instant::now();
        while !folder.join("started").exists() && start.elapsed() < SOON {
            std::thread::sleep(Duration::from_millis(20));
        }
        // A few turns later.
        std::thread::sleep(Duration::from_millis(500));
        let all = processes_in(&folder);
        (all.len(), all.iter().nth(2).copied(), folder, Instant::now())
    });
    let signal = signal.to_owned();
    let struck = std::thread::spawn(move || {
        let (count, one, folder, at) = killer.join().unwrap_or_else(|_| panic!("the search failed"));
        assert_eq!(count, 4);
        let number = one.map(|n| n.to_string()).unwrap_or_default();
        let sent = std::process::Command::new("kill").args([&signal, &number]).status();
        assert!(sent.is_ok_and(|s| s.success()), "{number} was not struck");
        (folder, at)
    });
    let ran = run_command(&mut command, "").unwrap_or_else(|e| panic!("{e}"));
    let (folder, at) = struck.join().unwrap_or_else(|_| panic!("no process was struck: {}", ran.err));
    let took = at.elapsed();
    assert!(processes_in(&folder).is_empty(), "processes are left");
    Some((ran, took))
}

#[test]
fn all_end_when_one_is_killed_and_say_where_they_were() {
    let Some((ran, took)) = struck("-KILL", "300") else { return };
    assert!(ran.code != 0 && took < SOON, "{} after {took:?}\n{}", ran.code, ran.err);
    let told = ran.err.matches("error[E0721]: process").count();
    assert_eq!(told, 3, "{}", ran.err);
    assert_eq!(ran.err.matches("of 4, at long.tsr:12, was told to end").count(), 3, "{}", ran.err);
}

#[test]
fn one_that_hangs_ends_all_when_patience_is_at_its_end() {
    let Some((ran, took)) = struck("-STOP", "2") else { return };
    assert!(ran.code == 1 && took < SOON, "{} after {took:?}\n{}", ran.code, ran.err);
    assert!(ran.err.matches("of 4, at long.tsr:12, had no answer from the others for 2 s").count() >= 1, "{}", ran.err);
    assert!(ran.err.matches("error[E0721]: process").count() >= 3, "{}", ran.err);
}

const READS: &str = r#"
mesh = dist.Mesh(axes=["tp"], devices=range(2))
rows = dist.ShardSpec(partition=("row",), mesh_axes=("tp",))
x = dist.shard(op.arange(24.0).reshape(4, 6), rows, mesh=mesh)
own = io.load("own.st", {"turns": op.zeros((1,)), "factor": op.zeros((1,)), "elements": op.zeros((1, 6))})
turns: Tensor[1, f32] = own["turns"]
factor: Tensor[1, f32] = own["factor"]
elements: Tensor[1, 6, f32] = own["elements"]
for i in range(int(turns[0])):
    x = x + 1.0
    print(i)
x = x * elements * float(factor[0])
print("end")
"#;

/// A safetensors file without sums: its header does not tell what it holds.
fn own_file(turns: f32, factor: f32, element: f32) -> Vec<u8> {
    let part = |name: &str, shape: &str, from: usize, to: usize| {
        format!("\"{name}\":{{\"dtype\":\"F32\",\"shape\":{shape},\"data_offsets\":[{from},{to}]}}")
    };
    let parts = [part("turns", "[1]", 0, 4), part("factor", "[1]", 4, 8), part("elements", "[1,6]", 8, 32)];
    let header = format!("{{{}}}", parts.join(","));
    let numbers = [turns, factor].into_iter().chain([element; 6]).flat_map(f32::to_le_bytes);
    (header.len() as u64).to_le_bytes().into_iter().chain(header.into_bytes()).chain(numbers).collect()
}

#[test]
fn processes_that_come_apart_end_with_an_error() {
    let dir = temp();
    write(dir.path(), "main.tsr", READS);
    let path = dir.path().join("main.tsr").to_string_lossy().into_owned();
    // Turns of a loop, then a number, then elements of a tensor that lies on no mesh.
    for (turns, factors, elements, note) in [
        ([2.0, 3.0], [1.0, 1.0], [1.0, 1.0], "process 1 calls a function on a mesh, at"),
        ([2.0, 2.0], [1.0, 2.0], [1.0, 1.0], "with other numbers, elements"),
        ([2.0, 2.0], [1.0, 1.0], [1.0, 2.0], "with other numbers, elements"),
    ] {
        let Some(mut command) = mpirun(dir.path()) else { return };
        for i in 0..2 {
            let own = dir.path().join(i.to_string());
            let _ = std::fs::create_dir(&own);
            let written = std::fs::write(own.join("own.st"), own_file(turns[i], factors[i], elements[i]));
            written.unwrap_or_else(|e| panic!("{e}"));
            command.args(if i > 0 { &[":"][..] } else { &[] });
            command.args(["-n", "1", "--wdir"]).arg(&own).arg(binary()).args(["run", &path]);
        }
        let start = Instant::now();
        let r = run_command(&mut command, "").unwrap_or_else(|e| panic!("{e}"));
        assert!(r.code == 1 && start.elapsed() < SOON, "{} {}", r.code, r.err);
        assert_eq!(r.err.matches("error[E0720]").count(), 1, "{}", r.err);
        assert!(r.err.contains(note), "{}", r.err);
    }
}

#[test]
fn processes_that_are_not_started_alike_do_not_begin() {
    let dir = temp();
    write(dir.path(), "a.tsr", "print(1)");
    write(dir.path(), "b.tsr", "print(2)");
    let Some(mut command) = mpirun(dir.path()) else { return };
    command.args(["-n", "1"]).arg(binary()).args(["run", "a.tsr", ":", "-n", "1"]).arg(binary()).args(["run", "b.tsr"]);
    let r = run_command(&mut command, "").unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((r.code, r.out.as_str()), (1, ""), "{}", r.err);
    assert!(r.err.contains("E0720") && r.err.contains("not started alike"), "{}", r.err);
}

#[test]
fn without_a_library_the_message_names_it() {
    let dir = temp();
    write(dir.path(), "main.tsr", "print(1)");
    let Some(mut command) = mpirun(dir.path()) else { return };
    command.args(["-n", "2", "-x", "TESSERA_MPI=/no/such/libmpi.so"]).arg(binary()).args(["run", "main.tsr"]);
    let r = run_command(&mut command, "").unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(r.code, 1, "{}", r.err);
    assert_eq!(r.err.matches("error[E0604]").count(), 1, "{}", r.err);
    assert!(r.err.contains("/no/such/libmpi.so") && r.err.contains("openmpi-bin"), "{}", r.err);
}

/// MPICH's launcher and library, whose binary interface is that of Intel MPI and others too.
#[test]
fn under_mpich_a_program_prints_the_same_and_all_end_together() {
    let run = |dir: &Path, n: &str, args: &[&str]| {
        let mut command = std::process::Command::new("mpirun.mpich");
        command.args(["-n", n]).arg(binary()).args(args).current_dir(dir);
        run_command(&mut command, "").ok()
    };
    let dir = temp();
    let text = std::fs::read_to_string(root().join("examples/gpt_mesh.tsr")).unwrap_or_else(|e| panic!("{e}"));
    write(dir.path(), "gpt.tsr", &text);
    let args = ["run", "gpt.tsr", "--", "--steps", "2"];
    let one = run_alone(dir.path(), &args);
    for n in ["1", "2", "3"] {
        let Some(several) = run(dir.path(), n, &args) else {
            eprintln!("not run: there is no `mpirun.mpich` here");
            return;
        };
        assert_eq!((several.code, &several.out), (0, &one.out), "{n}: {}", several.err);
    }
    let wrong = "mesh = dist.Mesh(axes=[\"tp\"], devices=range(4))\n\
                 x = dist.tensor((8, 4), layout=dist.ShardSpec(partition=(0,), mesh_axes=(\"tp\",)), mesh=mesh)\n\
                 assert float(x.sum()) > 0.0, \"nothing there\"\n";
    write(dir.path(), "wrong.tsr", wrong);
    let Some(r) = run(dir.path(), "3", &["run", "wrong.tsr"]) else { return };
    assert!(r.code != 0 && r.err.matches("error[E0705]").count() == 1, "{} {}", r.code, r.err);
}

#[test]
fn a_launcher_without_its_library_is_refused_and_other_commands_too() {
    let dir = temp();
    write(dir.path(), "main.tsr", "def test_one():\n    assert True\n");
    let with = |variable: &str, args: &[&str]| {
        let mut command = std::process::Command::new(binary());
        command.args(args).current_dir(dir.path()).env(variable, "2");
        run_command(&mut command, "").unwrap_or_else(|e| panic!("{e}"))
    };
    // Whether its library is there or not: nobody else is.
    let r = with("PMI_SIZE", &["run", "main.tsr"]);
    assert!(r.code == 1 && r.err.contains("E0604"), "{} {}", r.code, r.err);
    let r = with("OMPI_COMM_WORLD_SIZE", &["test", "main.tsr"]);
    assert!(r.code == 2 && r.err.contains("E0602"), "{} {}", r.code, r.err);
}
