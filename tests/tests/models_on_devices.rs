//! Whole models on devices: what they print, and the weights that training leaves, are those of the processor. On the stand-in
//! for a GPU, and on OpenCL where there is one.

use std::path::{Path, PathBuf};
use std::process::Command;
use tessera_tests::program::{Ran, binary, fetched, root, run_command};
use tessera_tests::{opencl, standin};

/// Where a model runs besides the processor: `--target`, and settings of the environment.
fn devices() -> Vec<(&'static str, (&'static str, PathBuf))> {
    let gpu = ("cuda", ("TESSERA_CUDA", standin::library()));
    let other = opencl::library().map(|path| ("opencl", ("TESSERA_OPENCL", path)));
    [gpu].into_iter().chain(other).collect()
}

fn run(dir: &Path, settings: &[(&str, &str)], before: &[&str], args: &[&str]) -> Ran {
    let mut command = Command::new(binary());
    command.current_dir(dir).arg("run").args(before).args(args).envs(settings.iter().copied());
    run_command(&mut command, "").unwrap_or_else(|e| panic!("{e}"))
}

/// What a program prints, but for times.
fn told(ran: &Ran) -> String {
    let is_time = |l: &&str| l.contains("ms a step") || l.contains(" a second)");
    ran.out.lines().filter(|l| !is_time(l)).collect::<Vec<_>>().join("\n")
}

/// A file of idx: a magic number, sizes, and bytes.
fn idx(path: &Path, sizes: &[u32], bytes: &[u8]) {
    let head = [0, 0, 8, sizes.len() as u8].into_iter().chain(sizes.iter().flat_map(|s| s.to_be_bytes()));
    std::fs::write(path, head.chain(bytes.iter().copied()).collect::<Vec<u8>>()).unwrap_or_else(|e| panic!("{e}"));
}

/// So many images of ten kinds: noise, and a bar whose place says the kind.
fn images(folder: &Path, name: &str, count: u32) {
    let mut state = 1u64;
    let mut noise = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 58) as u8
    };
    let labels: Vec<u8> = (0..count).map(|n| (n % 10) as u8).collect();
    let pixel =
        |label: u8, at: usize, noise: u8| if at / 28 / 2 == usize::from(label) { 200 + noise / 2 } else { noise };
    let pixels: Vec<u8> =
        labels.iter().flat_map(|l| (0..784).map(|at| pixel(*l, at, noise())).collect::<Vec<_>>()).collect();
    idx(&folder.join(format!("{name}-images-idx3-ubyte")), &[count, 28, 28], &pixels);
    idx(&folder.join(format!("{name}-labels-idx1-ubyte")), &[count], &labels);
}

/// Holds a program on every device against the processor; `files` are what it leaves.
fn same_everywhere(args: &[&str], files: &[&str], prepare: impl Fn(&Path)) {
    let in_folder = |settings: &[(&str, &str)], before: &[&str]| {
        let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
        prepare(dir.path());
        let ran = run(dir.path(), settings, before, args);
        let left: Vec<_> = files.iter().map(|f| std::fs::read(dir.path().join(f)).ok()).collect();
        (ran, left)
    };
    let (here, left) = in_folder(&[], &[]);
    assert!(here.code == 0 && left.iter().all(Option::is_some), "{}\n{}", here.out, here.err);
    for (target, (name, library)) in devices() {
        let library = library.to_string_lossy();
        let settings = [(name, &*library), ("TESSERA_ALWAYS_COMPILE", "1")];
        let (there, left_there) = in_folder(&settings, &["--target", target]);
        assert!(there.code == 0, "{target}: exit {}\n{}\n{}", there.code, there.out, there.err);
        assert_eq!(told(&there), told(&here), "{target}");
        assert!(left == left_there, "{target} leaves other bytes");
    }
}

fn example(name: &str) -> String {
    root().join("examples").join(name).to_string_lossy().into_owned()
}

#[test]
fn a_network_learns_images() {
    let program = example("mnist.tsr");
    same_everywhere(&[&program, "data"], &[], |dir| {
        let folder = dir.join("data");
        std::fs::create_dir(&folder).unwrap_or_else(|e| panic!("{e}"));
        images(&folder, "train", 640);
        images(&folder, "t10k", 60);
    });
}

#[test]
fn a_gpt_learns_text() {
    let program = example("gpt.tsr");
    let sizes = "--steps 2 --every 2 --width 16 --heads 2 --layers 1 --context 16 --batch 2 --letters 4 --text text";
    let args: Vec<&str> = [program.as_str()].into_iter().chain(sizes.split(' ')).collect();
    same_everywhere(&args, &["gpt-run.safetensors"], |dir| {
        let text = std::fs::read(root().join("docs/numerics.md")).unwrap_or_else(|e| panic!("{e}"));
        std::fs::write(dir.join("text"), &text[..4000]).unwrap_or_else(|e| panic!("{e}"));
    });
}

#[test]
fn published_models_answer() {
    for (name, program) in [("minilm", "minilm.tsr"), ("smollm2", "smollm2.tsr")] {
        let Some(folder) = fetched(name) else { continue };
        // The language model takes the interpreter of PTX minutes.
        if name == "minilm" || std::env::var_os("TESSERA_ALL_MODELS").is_some() {
            same_everywhere(&[&example(program), &folder.to_string_lossy()], &[], |_| {});
        }
    }
}
