//! Processes on several machines, or on one that pretends to be several (`TESSERA_NODE`): what is told of them, what goes
//! between them, and what they find in files of their own.

use std::path::Path;
use tessera_tests::golden::blocks;
use tessera_tests::program::{Ran, binary, mpirun, root, run_command, run_in};

fn temp() -> tempfile::TempDir {
    tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"))
}

fn write(dir: &Path, name: &str, text: &str) {
    std::fs::write(dir.join(name), text).unwrap_or_else(|e| panic!("{e}"));
}

/// Runs `tessera ARGS` in a process for each of the nodes; `None` where there is no `mpirun`. A node with a folder of that
/// name runs there.
fn run(dir: &Path, nodes: &[&str], args: &[&str]) -> Option<Ran> {
    let mut command = mpirun(dir)?;
    for (i, node) in nodes.iter().enumerate() {
        command.args(if i > 0 { &[":"][..] } else { &[] });
        command.args(["-n", "1"]);
        if dir.join(node).is_dir() {
            command.arg("--wdir").arg(dir.join(node));
        }
        command.args(["env", &format!("TESSERA_NODE={node}")]).arg(binary()).args(args);
    }
    Some(run_command(&mut command, "").unwrap_or_else(|e| panic!("{e}")))
}

fn alone(dir: &Path, args: &[&str]) -> Ran {
    run_in(dir, args, "").unwrap_or_else(|e| panic!("{e}"))
}

/// Parts of four devices that all of them get, and a look at the result.
const GATHER: &str = r#"
mesh = dist.Mesh(axes=["AXES"], devices=range(4), shape=[SHAPE])
rows = dist.ShardSpec(partition=("row",), mesh_axes=("tp",))
x = dist.shard(op.arange(4096.0).reshape(64, 64), rows, mesh=mesh)

def turn(x):
    return op.sin(dist.collective.all_gather(x, axis="tp"))

y = turn(x)
print(bool(op.all(y == op.sin(op.arange(4096.0).reshape(64, 64)))))
"#;

fn gather(axes: &str, shape: &str) -> String {
    GATHER.replace("AXES", axes).replace("SHAPE", shape)
}

#[test]
fn devices_are_dealt_node_by_node_and_verbose_runs_tell() {
    let dir = temp();
    write(dir.path(), "main.tsr", &gather("dp\", \"tp", "2, 2"));
    let Some(r) = run(dir.path(), &["a", "b", "a", "b"], &["-v", "run", "main.tsr"]) else { return };
    assert_eq!((r.code, r.out.as_str()), (0, "True\n"), "{}", r.err);
    let told = |text: &str| assert_eq!(r.err.matches(text).count(), 1, "{text}\n{}", r.err);
    told("nodes: `a` has processes 0, 2; `b` has processes 1, 3\n");
    told("Mesh[dp=2, tp=2]: devices 0 to 1 on `a`, devices 2 to 3 on `b`; across nodes: `dp`; inside: `tp`\n");
    assert!(!r.err.contains("W0402"), "{}", r.err);
}

#[test]
fn an_axis_with_more_to_move_that_lies_across_nodes_is_a_warning() {
    let dir = temp();
    write(dir.path(), "main.tsr", &gather("tp\", \"dp", "2, 2"));
    let Some(r) = run(dir.path(), &["a", "a", "b", "b"], &["run", "main.tsr"]) else { return };
    assert_eq!((r.code, r.out.as_str()), (0, "True\n"), "{}", r.err);
    let text =
        "warning[W0402]: axis `tp` of Mesh[tp=2, dp=2] lies across nodes, and `dp`, along which less moves, inside";
    assert_eq!(r.err.matches(text).count(), 1, "{}", r.err);
    // Each device sends its half to the one other along the axis.
    assert!(r.err.contains("devices sent 32.0 KiB along `tp` and 0 bytes along `dp`"), "{}", r.err);
    assert!(r.err.contains("`dist.Mesh(axes=[\"dp\", \"tp\"], shape=[2, 2], …)`"), "{}", r.err);
    // All on one node: nothing lies across.
    let Some(r) = run(dir.path(), &["a"; 4], &["run", "main.tsr"]) else { return };
    assert!(r.code == 0 && !r.err.contains("W0402"), "{}", r.err);
}

#[test]
fn what_a_node_needs_goes_there_once() {
    let dir = temp();
    write(dir.path(), "main.tsr", &gather("tp", "4"));
    let crossed = |nodes: &[&str]| {
        let r = run(dir.path(), nodes, &["profile", "main.tsr"])?;
        assert_eq!((r.code, r.out.as_str()), (0, "True\n"), "{}", r.err);
        let line = r.err.lines().find_map(|l| l.strip_prefix("between ")).map(str::to_owned);
        let words = line.iter().flat_map(|l| l.split_whitespace()).filter_map(|w| w.parse::<u64>().ok());
        Some(words.collect::<Vec<_>>())
    };
    let Some(one) = crossed(&["a"; 4]) else { return };
    assert_eq!(one, Vec::<u64>::new());
    // A quarter is 4 KiB. Each goes to each of three other nodes, or to the one; beside it go few bytes of heads.
    let quarter = 4096;
    let each = crossed(&["a", "b", "c", "d"]).unwrap_or_default();
    let two = crossed(&["a", "b", "a", "b"]).unwrap_or_default();
    let within = |bytes: u64, parts: u64| (parts * quarter..parts * quarter + 512).contains(&bytes);
    assert!(matches!(each[..], [4, bytes] if within(bytes, 12)), "{each:?}");
    assert!(matches!(two[..], [2, bytes] if within(bytes, 4)), "{two:?}");
}

#[test]
fn programs_print_the_same_on_several_nodes() {
    let mut complaints = vec![];
    let golden = ["mesh", "mesh-along", "mesh-stages", "per-device"].map(|name| format!("tests/golden/run/{name}.md"));
    let arrangements: [&[&str]; 3] = [&["a", "b", "a", "b"], &["a", "a", "b"], &["a", "b", "b", "c", "a"]];
    for file in golden {
        let text = std::fs::read_to_string(root().join(&file)).unwrap_or_default();
        let programs: Vec<_> = blocks(&text).into_iter().filter(|b| b.info.starts_with("tessera")).collect();
        assert!(!programs.is_empty(), "{file}");
        for (i, b) in programs.iter().enumerate() {
            let dir = temp();
            write(dir.path(), "main.tsr", &b.text);
            let one = alone(dir.path(), &["run", "main.tsr"]);
            let nodes = arrangements[i % arrangements.len()];
            let Some(several) = run(dir.path(), nodes, &["run", "main.tsr"]) else { return };
            if (several.code, &several.out) != (one.code, &one.out) {
                let (alone, together) = (one.out + &one.err, several.out + &several.err);
                complaints.push(format!("{file}: {} on {nodes:?}:\n{together}\nalone:\n{alone}", b.heading));
            }
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n\n"));
}

#[test]
fn a_gpt_trains_to_the_same_bits_on_several_nodes() {
    let text = std::fs::read_to_string(root().join("examples/gpt_mesh.tsr")).unwrap_or_else(|e| panic!("{e}"));
    let dir = temp();
    for (data, tensor) in [(2, 2), (1, 4)] {
        let own = format!("devices=range({}), shape=[{data}, {tensor}]", data * tensor);
        write(dir.path(), "gpt.tsr", &text.replace("devices=range(4), shape=[2, 2]", &own));
        let args = ["run", "gpt.tsr", "--", "--steps", "2", "--sequence"];
        let one = alone(dir.path(), &args);
        assert!(one.out.contains("the same bits"), "{}{}", one.out, one.err);
        for nodes in [&["a", "b"][..], &["a", "a", "b"], &["a", "a", "b", "b"], &["a", "b", "c", "a"]] {
            let Some(several) = run(dir.path(), nodes, &args) else { return };
            assert_eq!((several.code, several.out), (0, one.out.clone()), "{nodes:?}: {}", several.err);
        }
    }
}

/// Folders `a` and `b`, as disks of two machines.
fn disks(files: &[(&str, [&str; 2])]) -> tempfile::TempDir {
    let dir = temp();
    for (i, node) in ["a", "b"].iter().enumerate() {
        let own = dir.path().join(node);
        std::fs::create_dir(&own).unwrap_or_else(|e| panic!("{e}"));
        files.iter().for_each(|(name, texts)| write(&own, name, texts[i]));
    }
    dir
}

const MODULE: &str = "import helpers\nx: Tensor[1, 3, f32] = io.read_csv(\"x.csv\")\nprint(helpers.twice(x))\n";
const TWICE: &str = "def twice(x):\n    return x * 2.0\n";

#[test]
fn machines_need_no_file_system_together() {
    let dir = disks(&[("main.tsr", [MODULE; 2]), ("helpers.tsr", [TWICE; 2]), ("x.csv", ["1,2,3\n"; 2])]);
    let Some(r) = run(dir.path(), &["a", "b", "b"], &["run", "main.tsr"]) else { return };
    assert_eq!((r.code, r.out.as_str()), (0, "[[2. 4. 6.]]\n"), "{}", r.err);
}

#[test]
fn a_module_that_another_machine_has_otherwise_is_named() {
    let thrice = TWICE.replace("2.0", "3.0");
    let dir = disks(&[("main.tsr", [MODULE; 2]), ("helpers.tsr", [TWICE, &thrice]), ("x.csv", ["1,2,3\n"; 2])]);
    let Some(r) = run(dir.path(), &["a", "b", "b"], &["run", "main.tsr"]) else { return };
    assert_eq!((r.code, r.out.as_str()), (1, ""), "{}", r.err);
    assert_eq!(r.err.matches("error[E0720]: the processes of this run were not started alike").count(), 1, "{}", r.err);
    for process in [1, 2] {
        let note = format!("process {process} of 3 on `b` has another `helpers.tsr`");
        assert_eq!(r.err.matches(&note).count(), 1, "{}", r.err);
    }
}

#[test]
fn data_that_another_machine_has_otherwise_is_named() {
    let dir = disks(&[("main.tsr", [MODULE; 2]), ("helpers.tsr", [TWICE; 2]), ("x.csv", ["1,2,3\n", "1,2,4\n"])]);
    let Some(r) = run(dir.path(), &["a", "a", "b"], &["run", "main.tsr"]) else { return };
    assert_eq!((r.code, r.out.as_str()), (1, ""), "{}", r.err);
    let text = "error[E0720]: `x.csv` does not hold the same in all processes of this run";
    assert_eq!(r.err.matches(text).count(), 1, "{}", r.err);
    assert!(r.err.contains("read at main.tsr:2"), "{}", r.err);
    assert!(r.err.contains("process 2 of 3 on `b` has read other contents than process 0"), "{}", r.err);
}

#[test]
fn a_file_that_another_machine_lacks_is_told_with_its_name() {
    let dir = disks(&[("main.tsr", [MODULE; 2]), ("helpers.tsr", [TWICE; 2]), ("x.csv", ["1,2,3\n"; 2])]);
    std::fs::remove_file(dir.path().join("b/x.csv")).unwrap_or_else(|e| panic!("{e}"));
    let Some(r) = run(dir.path(), &["a", "b"], &["run", "main.tsr"]) else { return };
    assert_eq!((r.code, r.out.as_str()), (1, ""), "{}", r.err);
    assert_eq!(r.err.matches("error[E0706]: `x.csv` cannot be read").count(), 1, "{}", r.err);
    assert!(r.err.contains("process 1 of 2 on `b` says so"), "{}", r.err);
}
