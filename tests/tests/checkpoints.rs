//! Checkpoints of values on a mesh that several processes write: whoever reads one gets the value or is told what is
//! wrong with it, and a run that is killed at any moment ends with the bits of one that was not.

use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};
use tessera_tests::program::{binary, mpirun, processes_in, root, run_alone, run_processes};

const SAVE: &str = r#"
mesh = dist.Mesh(axes=["tp"], devices=range(4))
row = dist.ShardSpec(partition=("row",), mesh_axes=("tp",))
x = dist.shard(random.normal(random.key(int(sys.args[0])), (64, 32)), row, mesh=mesh)
io.save("x.ckpt", (x, x + 1.0, op.arange(3)))
"#;

const LOAD: &str = r#"
mesh = dist.Mesh(axes=["tp"], devices=range(3))
z = dist.tensor((64, 32), layout=dist.ShardSpec(partition=("col",), mesh_axes=("tp",)), mesh=mesh)
y = io.load("x.ckpt", like=(z, z), extra=True)
print(float(y[0].sum()), float(y[1].max()))
"#;

fn temp() -> tempfile::TempDir {
    tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"))
}

fn write(path: &Path, bytes: &[u8]) {
    std::fs::write(path, bytes).unwrap_or_else(|e| panic!("{e}"));
}

fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The files of parts, in order.
fn parts(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir.join("x.ckpt.parts")).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|e| e.path()).collect();
    paths.sort();
    paths
}

/// A folder with a checkpoint of two processes, and what a program reads in it.
fn saved() -> Option<(tempfile::TempDir, String)> {
    let dir = temp();
    write(&dir.path().join("save.tsr"), SAVE.as_bytes());
    write(&dir.path().join("load.tsr"), LOAD.as_bytes());
    let ran = run_processes(dir.path(), 2, &["run", "save.tsr", "--", "1"])?;
    assert_eq!((ran.code, parts(dir.path()).len()), (0, 2), "{}", ran.err);
    let ran = run_alone(dir.path(), &["run", "load.tsr"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    Some((dir, ran.out))
}

#[test]
fn a_damaged_checkpoint_is_refused_and_says_what_is_wrong() {
    let Some((dir, _)) = saved() else { return };
    let main = dir.path().join("x.ckpt");
    let [first, second] = &parts(dir.path())[..] else { panic!("two parts") };
    let (whole, one, two) = (read(&main), read(first), read(second));
    let refused = |what: &str, words: &str| {
        for ran in
            [Some(run_alone(dir.path(), &["run", "load.tsr"])), run_processes(dir.path(), 3, &["run", "load.tsr"])]
        {
            let Some(ran) = ran else { continue };
            let told = ran.code == 1 && ran.err.matches("error[E0707]").count() == 1 && ran.err.contains(words);
            assert!(told && ran.out.is_empty(), "{what}: {}{}", ran.out, ran.err);
        }
    };
    let _ = std::fs::remove_file(second);
    refused("a part is missing", "is not there");
    write(second, &two[..two.len() / 2]);
    refused("a part is cut off", "the file has");
    write(second, &one);
    refused("a part is another one", "was changed, or is of another run");
    let mut changed = two.clone();
    let at = changed.len() - 100;
    changed[at] ^= 1;
    write(second, &changed);
    refused("a bit of a part is another", "is not as it was written");
    write(second, &two);
    let mut changed = whole.clone();
    let at = changed.windows(6).position(|w| w == b"[32,0]").unwrap_or_else(|| panic!("no block starts at row 32"));
    changed[at + 1] = b'1';
    write(&main, &changed);
    refused("the list of parts is another", "its header is not as it was written");
    let mut changed = whole.clone();
    let last = changed.len() - 1;
    changed[last] ^= 1;
    write(&main, &changed);
    // What is wrong with a tensor that nobody asks for is nobody's business.
    assert_eq!(run_alone(dir.path(), &["run", "load.tsr"]).code, 0);
}

/// Whatever a byte of a checkpoint becomes: the value or a message, and no other value.
#[test]
fn any_changed_byte_gives_the_value_or_a_message() {
    let Some((dir, wanted)) = saved() else { return };
    let all: Vec<PathBuf> = std::iter::once(dir.path().join("x.ckpt")).chain(parts(dir.path())).collect();
    for path in all {
        let bytes = read(&path);
        // Headers are short and matter most.
        let places = (0..bytes.len().min(900)).step_by(61).chain((900..bytes.len()).step_by(1501));
        for at in places {
            let mut changed = bytes.clone();
            changed[at] ^= 0x15;
            write(&path, &changed);
            let ran = run_alone(dir.path(), &["run", "load.tsr"]);
            let fine = match ran.code {
                0 => ran.out == wanted,
                code => code == 1 && ran.err.contains("error[E07"),
            };
            assert!(fine, "byte {at} of {}: {}{}", path.display(), ran.out, ran.err);
        }
        write(&path, &bytes);
    }
}

#[test]
fn a_new_checkpoint_takes_the_place_of_the_old_one_with_all_its_parts() {
    let Some((dir, first)) = saved() else { return };
    let saves = |processes: usize, seed: &str| run_processes(dir.path(), processes, &["run", "save.tsr", "--", seed]);
    let loads = || run_alone(dir.path(), &["run", "load.tsr"]).out;
    let Some(ran) = saves(3, "2") else { return };
    assert_eq!((ran.code, parts(dir.path()).len()), (0, 3), "{}", ran.err);
    let second = loads();
    assert_ne!(first, second);
    // What cannot be written leaves what was there.
    let folder = dir.path().join("x.ckpt.parts");
    let aside = dir.path().join("aside");
    std::fs::rename(&folder, &aside).and_then(|()| std::fs::write(&folder, "")).unwrap_or_else(|e| panic!("{e}"));
    let ran = saves(2, "1");
    let told = "`x.ckpt.parts` cannot be written: a file is where a directory has to be";
    assert!(ran.is_some_and(|r| r.code == 1 && r.err.matches(told).count() == 1));
    std::fs::remove_file(&folder).and_then(|()| std::fs::rename(&aside, &folder)).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(loads(), second);
    // One process writes one file, and files of others stay.
    write(&folder.join("notes.txt"), b"mine");
    let ran = run_alone(dir.path(), &["run", "save.tsr", "--", "1"]);
    assert_eq!((ran.code, loads()), (0, first));
    assert_eq!(parts(dir.path()), [folder.join("notes.txt")]);
}

/// A file of several processes with another list of parts, and without checksums.
fn with_list(file: &[u8], change: impl Fn(&mut Value)) -> Vec<u8> {
    let (length, rest) = file.split_at(8);
    let length = length.try_into().map_or(0, u64::from_le_bytes);
    let (header, data) = rest.split_at(length as usize);
    let mut header: Value = serde_json::from_slice(header).unwrap_or_else(|e| panic!("{e}"));
    let texts = &mut header["__metadata__"];
    let mut list: Value =
        serde_json::from_str(texts["tessera.parts"].as_str().unwrap_or("")).unwrap_or_else(|e| panic!("{e}"));
    change(&mut list);
    *texts = json!({"tessera.parts": list.to_string()});
    let header = header.to_string();
    [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), data].concat()
}

/// Who makes a list of parts on purpose gets no other value either.
#[test]
fn a_list_of_parts_that_cannot_be_is_refused() {
    let Some((dir, wanted)) = saved() else { return };
    let main = dir.path().join("x.ckpt");
    let whole = read(&main);
    let loads = |change: &dyn Fn(&mut Value)| {
        write(&main, &with_list(&whole, change));
        run_alone(dir.path(), &["run", "load.tsr"])
    };
    assert_eq!(loads(&|_| ()).out, wanted);
    let not_as_written = "`x.ckpt` is damaged: `0` is not as it was written";
    let cases: [(&str, Value, &str); 6] = [
        ("/tensors/0/blocks/1", json!({"file": 0, "start": [0, 0], "size": [16, 32]}), not_as_written),
        ("/tensors/0/blocks/1", json!({"file": 0, "start": [0], "size": [16, 32]}), not_as_written),
        ("/tensors/0/blocks/1/file", json!(7), "`x.ckpt` is damaged: `0@16,0` is not as it was written"),
        ("/tensors/0/blocks", json!([]), not_as_written),
        ("/tensors/0/dtype", json!("q\n"), "`x.ckpt` is damaged: its list of parts has no element type of `0`"),
        ("/files/0", json!("../x\n"), "`../x\\n` is no part of a checkpoint"),
    ];
    for (place, other, told) in cases {
        let ran = loads(&|list| *list.pointer_mut(place).unwrap_or_else(|| panic!("{place}")) = other.clone());
        assert!(ran.code == 1 && ran.err.contains(told), "{place}: {}{}", ran.out, ran.err);
    }
}

#[test]
fn a_folder_that_is_not_there_is_told_by_several_processes_as_by_one() {
    let dir = temp();
    write(&dir.path().join("save.tsr"), SAVE.replace("x.ckpt", "no/x.ckpt").as_bytes());
    let args = ["run", "save.tsr", "--", "1"];
    let one = run_alone(dir.path(), &args);
    let Some(several) = run_processes(dir.path(), 3, &args) else { return };
    let told = "error[E0706]: `no/x.ckpt` cannot be written: there is no such file or directory";
    assert!(one.code == 1 && one.err.contains(told), "{}", one.err);
    assert!(several.code == 1 && several.err.matches(&one.err).count() == 1, "{}", several.err);
    assert!(!dir.path().join("no").exists());
}

#[test]
fn programs_that_save_the_same_file_at_once_do_not_harm_it() {
    let Some((dir, first)) = saved() else { return };
    let folder = dir.path().join("x.ckpt.parts");
    let there = parts(dir.path());
    // As another program that writes its parts.
    let held = std::fs::File::open(&folder).unwrap_or_else(|e| panic!("{e}"));
    held.lock().unwrap_or_else(|e| panic!("{e}"));
    let Some(ran) = run_processes(dir.path(), 2, &["run", "save.tsr", "--", "2"]) else { return };
    let told = "`x.ckpt` cannot be written: another program is saving it";
    assert!(ran.code == 1 && ran.err.matches(told).count() == 1, "{}", ran.err);
    assert_eq!(run_alone(dir.path(), &["run", "load.tsr"]).out, first);
    let ran = run_alone(dir.path(), &["run", "save.tsr", "--", "2"]);
    assert_eq!((ran.code, parts(dir.path())), (0, there), "{}", ran.err);
    drop(held);
    let ran = run_alone(dir.path(), &["run", "save.tsr", "--", "2"]);
    assert_eq!((ran.code, folder.exists()), (0, false), "{}", ran.err);
}

/// Who reads while another program saves gets one of its checkpoints.
#[test]
fn a_checkpoint_is_read_while_others_take_its_place() {
    let dir = temp();
    let row = "mesh = dist.Mesh(axes=[\"tp\"], devices=range(4))\n\
               row = dist.ShardSpec(partition=(\"row\",), mesh_axes=(\"tp\",))\n\
               x = dist.shard(op.ones((64, 64)), row, mesh=mesh)\nio.save(\"x.ckpt\", x)\n";
    let saves = format!("{row}while not io.exists(\"end\"):\n    x = x + 1.0\n    io.save(\"x.ckpt\", x)\n");
    let reads = "z = op.zeros((64, 64))\nlast = 1.0\nnew = 0\nwhile new < 150:\n    y = io.load(\"x.ckpt\", like=z)\n    \
                 assert bool(op.all(y == y[0, 0]))\n    if float(y[0, 0]) > last:\n        new += 1\n    \
                 last = float(y[0, 0])\nprint(new)\n";
    for (name, text) in [("first.tsr", row), ("save.tsr", &saves), ("load.tsr", reads)] {
        write(&dir.path().join(name), text.as_bytes());
    }
    let Some(ran) = run_processes(dir.path(), 2, &["run", "first.tsr"]) else { return };
    assert_eq!(ran.code, 0, "{}", ran.err);
    let folder = dir.path().to_owned();
    let saving = std::thread::spawn(move || run_processes(&folder, 2, &["run", "save.tsr"]));
    let ran = run_alone(dir.path(), &["run", "load.tsr"]);
    write(&dir.path().join("end"), b"");
    let saved = saving.join().ok().flatten();
    assert_eq!((ran.code, &*ran.out), (0, "150\n"), "{}", ran.err);
    assert!(saved.is_some_and(|s| s.code == 0));
}

#[test]
fn parts_lie_beside_the_file_that_a_link_leads_to() {
    let Some((dir, first)) = saved() else { return };
    let at = |name: &str| dir.path().join(name);
    let moved = std::fs::create_dir(at("real"))
        .and_then(|()| std::fs::rename(at("x.ckpt"), at("real/y.ckpt")))
        .and_then(|()| std::fs::rename(at("x.ckpt.parts"), at("real/y.ckpt.parts")))
        .and_then(|()| std::os::unix::fs::symlink("real/y.ckpt", at("x.ckpt")));
    moved.unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(run_alone(dir.path(), &["run", "load.tsr"]).out, first);
    let Some(ran) = run_processes(dir.path(), 3, &["run", "save.tsr", "--", "2"]) else { return };
    assert_eq!((ran.code, at("x.ckpt.parts").exists()), (0, false), "{}", ran.err);
    let by_link = run_alone(dir.path(), &["run", "load.tsr"]);
    write(&at("load.tsr"), LOAD.replace("x.ckpt", "real/y.ckpt").as_bytes());
    let by_name = run_alone(dir.path(), &["run", "load.tsr"]);
    assert_eq!((by_link.code, by_name.code), (0, 0), "{}{}", by_link.err, by_name.err);
    assert!(by_link.out == by_name.out && by_link.out != first, "{}", by_link.out);
}

/// The bytes of a checkpoint of `examples/gpt_resume.tsr` as one process writes it.
fn as_one_file(dir: &Path, processes: usize) -> Vec<u8> {
    let all = "io.write_safetensors(\"all.safetensors\", io.read_safetensors(\"run.ckpt\"))\n";
    write(&dir.join("all.tsr"), all.as_bytes());
    let ran = run_alone(dir, &["run", "all.tsr"]);
    assert_eq!(ran.code, 0, "{processes}: {}", ran.err);
    read(&dir.join("all.safetensors"))
}

#[test]
fn a_run_that_is_killed_goes_on_and_ends_with_the_bits_of_one_that_was_not() {
    const KILLS: u32 = 6;
    let example = root().join("examples/gpt_resume.tsr").to_string_lossy().into_owned();
    let args = ["run", &example, "--", "--steps", "12", "--every", "1", "--width", "64", "--out", "run.ckpt"];
    let dir = temp();
    let start = Instant::now();
    let ran = run_alone(dir.path(), &args);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let took = start.elapsed();
    let wanted = as_one_file(dir.path(), 1);
    let dir = temp();
    for kill in 0..KILLS {
        // Alone, in two and in three processes; moments all over the run.
        let processes = 1 + kill as usize % 3;
        let mut command = match processes {
            1 => std::process::Command::new(binary()),
            n => {
                let Some(mut command) = mpirun(dir.path()) else { continue };
                command.args(["-n", &n.to_string()]).arg(binary());
                command
            }
        };
        command.args(args).current_dir(dir.path()).env("TESSERA_MACHINE", "reference");
        command.env("TESSERA_CACHE", std::env::temp_dir().join("tessera-test-cache"));
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let mut child = child.unwrap_or_else(|e| panic!("{e}"));
        std::thread::sleep(took.mul_f64(0.25 + 0.15 * f64::from(kill)) + Duration::from_millis(u64::from(kill) * 7));
        // `mpirun` ends the others when one is gone; without it there is one.
        let _ = child.kill();
        let _ = child.wait();
        end_all(dir.path());
    }
    for processes in [2, 1] {
        let Some(ran) = run_processes(dir.path(), processes, &args) else { continue };
        assert_eq!(ran.code, 0, "{}", ran.err);
        assert!(as_one_file(dir.path(), processes) == wanted, "{processes}: other bits");
    }
}

/// Kills what still runs the program in a folder.
fn end_all(dir: &Path) {
    let start = Instant::now();
    loop {
        let left = processes_in(dir);
        if left.is_empty() || start.elapsed() > Duration::from_secs(10) {
            return;
        }
        for number in left {
            let _ = std::process::Command::new("kill").args(["-KILL", &number.to_string()]).status();
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
