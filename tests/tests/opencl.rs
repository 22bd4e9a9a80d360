//! `--target opencl` as a user meets it: what is missing, what goes wrong, and what is kept.

use std::path::Path;
use std::process::Command;
use tessera_tests::opencl;
use tessera_tests::program::{Ran, binary};

const DOUBLED: &str =
    "def f(x: Tensor[N, f32]) -> Tensor[N, f32]:\n    return x * 2.0 + 1.0\n\n\nprint(f(op.arange(4).cast(f32)))\n";

fn run(dir: &Path, settings: &[(&str, &str)]) -> Ran {
    std::fs::write(dir.join("main.tsr"), DOUBLED).unwrap_or_else(|e| panic!("{e}"));
    let mut command = Command::new(binary());
    command.current_dir(dir).args(["run", "--target", "opencl", "main.tsr"]).env("TESSERA_ALWAYS_COMPILE", "1");
    command.envs(settings.iter().copied());
    let out = command.output().unwrap_or_else(|e| panic!("{e}"));
    let [text, err] = [&out.stdout, &out.stderr].map(|b| String::from_utf8_lossy(b).into_owned());
    Ran { code: out.status.code().unwrap_or(-1), out: text, err }
}

#[test]
fn a_library_that_is_none_is_told() {
    let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
    let program = binary().to_string_lossy().into_owned();
    for (name, why) in [("/nowhere", "cannot open shared object file"), (program.as_str(), "TESSERA_OPENCL")] {
        let ran = run(dir.path(), &[("TESSERA_OPENCL", name)]);
        let told = ran.err.starts_with("error[E0605]: `--target opencl` cannot be used: ") && ran.err.contains(why);
        assert!(ran.code == 1 && told && ran.err.contains("help: "), "{}", ran.err);
    }
}

#[test]
fn a_device_is_named_by_a_part_of_its_name() {
    let Some(library) = opencl::library() else { return };
    let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
    let library = library.to_string_lossy();
    let ran = run(dir.path(), &[("TESSERA_OPENCL", &library), ("TESSERA_OPENCL_DEVICE", "no such device")]);
    assert!(ran.code == 1 && ran.err.contains("is not what `TESSERA_OPENCL_DEVICE` names"), "{}", ran.err);
}

#[test]
fn kernels_are_kept_and_built_again_where_they_are_damaged() {
    let Some(library) = opencl::library() else { return };
    let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
    let (library, cache) = (library.to_string_lossy(), dir.path().join("cache").to_string_lossy().into_owned());
    let settings = [("TESSERA_OPENCL", &*library), ("TESSERA_CACHE", cache.as_str())];
    let first = run(dir.path(), &settings);
    assert_eq!((first.code, first.out.as_str(), first.err.as_str()), (0, "[1. 3. 5. 7.]\n", ""));
    let kept = std::fs::read_dir(dir.path().join("cache/kernels")).unwrap_or_else(|e| panic!("{e}"));
    let kept: Vec<_> = kept.flatten().map(|e| e.path()).collect();
    assert!(!kept.is_empty());
    for file in &kept {
        std::fs::write(file, "junk").unwrap_or_else(|e| panic!("{e}"));
    }
    let again = run(dir.path(), &settings);
    assert!(again.code == 0 && again.out == first.out && again.err.contains("W0601"), "{}", again.err);
    let last = run(dir.path(), &settings);
    assert_eq!((last.code, last.err.as_str()), (0, ""));
}

/// A compiler for processors went down where several threads built kernels at once, about once in forty runs of this.
#[test]
fn many_kernels_are_built_by_many_threads() {
    if opencl::library().is_none() {
        return;
    }
    for round in 0..4 {
        let steps =
            (0..40).map(|i| format!("    x = op.cumsum(op.sort(op.tanh(x * {round}.{i:02}))) / 50.0 - x.mean()\n"));
        let body: String = steps.collect();
        let source = format!(
            "def f(x: Tensor[N, f32]) -> Tensor[N, f32]:\n{body}    return x\n\n\nprint(f(random.normal(random.key(1), (50,))).max() < 1000.0)\n"
        );
        let ran = opencl::run(&source, &["--threads", "8"]).unwrap_or_else(|e| panic!("{e}"));
        assert!(ran.code == 0 && ran.out == "True\n", "{}{}", ran.out, ran.err);
    }
}
