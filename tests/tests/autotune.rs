//! `@op.autotune`: one search, kept; results stay what they are.

use std::path::Path;
use tessera_tests::program::{Ran, run_in};

const PROGRAM: &str = r#"
@op.autotune(cache="found")
def product(a, b):
    return op.tanh(a @ b)

@op.kernel
@op.autotune(cache="found")
def rows(x):
    schedule.vectorize(8)
    return op.softmax(x, -1)

x = random.normal(random.key(0), (200, 150))
print(op.all(product(x, x.T) == op.tanh(x @ x.T)), op.all(rows(x) == op.softmax(x, -1)))
print(f"{product(x, x.T).sum():.4f}")
"#;

fn run(dir: &Path, args: &[&str]) -> Ran {
    // Other runs in the same folder may be reading it.
    if !dir.join("main.tsr").exists() {
        assert!(std::fs::write(dir.join("main.tsr"), PROGRAM).is_ok());
    }
    match run_in(dir, args, "") {
        Ok(r) => r,
        Err(e) => panic!("{e}"),
    }
}

fn file(dir: &Path) -> String {
    std::fs::read_to_string(dir.join(".tessera/cache/found.json")).unwrap_or_default()
}

#[test]
fn a_later_run_searches_nothing() -> std::io::Result<()> {
    let dir = tempfile::tempdir()?;
    let first = run(dir.path(), &["-v", "run", "main.tsr"]);
    assert!(first.out.starts_with("True True\n"), "{}{}", first.out, first.err);
    assert!(first.err.contains("tuned `"), "{}", first.err);
    let kept = file(dir.path());
    let second = run(dir.path(), &["-v", "run", "main.tsr"]);
    assert_eq!(second.out, first.out);
    assert!(!second.err.contains("tuned `"), "{}", second.err);
    assert_eq!(file(dir.path()), kept);
    let shown = run(dir.path(), &["emit", "--ir", "schedule", "main.tsr"]);
    assert!(shown.out.contains("tessera.schedule.dot"), "{}", shown.out);
    Ok(())
}

#[test]
fn a_damaged_file_is_a_miss_with_a_warning() -> std::io::Result<()> {
    let dir = tempfile::tempdir()?;
    std::fs::create_dir_all(dir.path().join(".tessera/cache"))?;
    std::fs::write(dir.path().join(".tessera/cache/found.json"), "{\"version\": 1, \"rec")?;
    let r = run(dir.path(), &["run", "main.tsr"]);
    assert!(r.code == 0 && r.out.starts_with("True True\n"), "{}{}", r.out, r.err);
    assert!(r.err.contains("W0601") && r.err.contains("is damaged"), "{}", r.err);
    assert!(file(dir.path()).ends_with("}\n"), "{}", file(dir.path()));
    Ok(())
}

#[test]
fn processes_keep_each_others_records() -> std::io::Result<()> {
    let dir = tempfile::tempdir()?;
    std::fs::write(dir.path().join("main.tsr"), PROGRAM)?;
    let outs: Vec<String> = std::thread::scope(|scope| {
        let runs: Vec<_> = (0..3).map(|_| scope.spawn(|| run(dir.path(), &["run", "main.tsr"]))).collect();
        runs.into_iter().filter_map(|r| r.join().ok()).map(|r| format!("{}{}", r.out, r.err)).collect()
    });
    assert!(outs.len() == 3 && outs.iter().all(|o| *o == outs[0]), "{outs:?}");
    let last = run(dir.path(), &["-v", "run", "main.tsr"]);
    assert!(!last.err.contains("tuned `"), "{}", last.err);
    Ok(())
}

#[test]
fn a_folder_that_cannot_be_written_is_told() -> std::io::Result<()> {
    let dir = tempfile::tempdir()?;
    std::fs::write(dir.path().join(".tessera"), "a file")?;
    let r = run(dir.path(), &["run", "main.tsr"]);
    assert!(r.code == 0 && r.out.starts_with("True True\n"), "{}{}", r.out, r.err);
    assert!(r.err.contains("W0601"), "{}", r.err);
    Ok(())
}
