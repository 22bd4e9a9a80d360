//! `@op.autotune` and `tessera tune`: one search, kept; results stay what they are.

use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tessera_tests::program::{Ran, binary, run_in};

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

/// Kernels of the program that have a decorator.
const KERNELS: usize = 6;

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

/// A record of each line of the file.
fn records(dir: &Path) -> Vec<serde_json::Value> {
    let text = file(dir);
    let whole: serde_json::Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"));
    let mut all = whole["records"].as_array().cloned().unwrap_or_default();
    assert_eq!(all.pop(), Some(serde_json::json!({})), "{text}");
    assert_eq!(text.lines().count(), all.len() + 2, "{text}");
    all
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
    std::fs::write(dir.path().join(".tessera/cache/found.json"), "{\"version\": 2, \"rec")?;
    let r = run(dir.path(), &["run", "main.tsr"]);
    assert!(r.code == 0 && r.out.starts_with("True True\n"), "{}{}", r.out, r.err);
    assert_eq!(r.err.matches("W0603").count(), 1, "{}", r.err);
    assert_eq!(records(dir.path()).len(), KERNELS);
    // Of a file that lost its end, the lines that are whole still count.
    let text = file(dir.path());
    std::fs::write(dir.path().join(".tessera/cache/found.json"), &text[..text.len() - 40])?;
    let r = run(dir.path(), &["-v", "run", "main.tsr"]);
    assert!(r.err.contains("is damaged; the 5 records that are whole are used"), "{}", r.err);
    assert_eq!((r.err.matches("tuned `").count(), r.err.matches("W0603").count()), (1, 1), "{}", r.err);
    Ok(())
}

/// Two branches that each tuned something.
#[test]
fn lines_of_two_branches_merge() -> std::io::Result<()> {
    let dir = tempfile::tempdir()?;
    run(dir.path(), &["run", "main.tsr"]);
    let both = file(dir.path());
    let lines: Vec<&str> = both.lines().collect();
    assert!(lines.len() == KERNELS + 2 && lines[1..=KERNELS].is_sorted(), "{both}");
    // As `merge=union` leaves it where both branches added one, in the wrong order and one of them twice.
    let merged = [&[lines[0], lines[2]], &lines[1..]].concat().join("\n");
    std::fs::write(dir.path().join(".tessera/cache/found.json"), merged)?;
    let r = run(dir.path(), &["-v", "run", "main.tsr"]);
    assert!(r.code == 0 && !r.err.contains("tuned `") && !r.err.contains("W0603"), "{}", r.err);
    Ok(())
}

#[test]
fn records_of_other_numbers_of_threads_are_kept_and_told() -> std::io::Result<()> {
    let dir = tempfile::tempdir()?;
    run(dir.path(), &["run", "--threads", "1", "main.tsr"]);
    let r = run(dir.path(), &["run", "--threads", "2", "main.tsr"]);
    assert!(r.code == 0 && r.err.contains("has records of other machines or numbers of threads only"), "{}", r.err);
    assert_eq!(r.err.matches("W0603").count(), 1, "{}", r.err);
    assert_eq!(records(dir.path()).len(), 2 * KERNELS);
    Ok(())
}

fn start(dir: &Path) -> std::io::Result<Child> {
    Command::new(binary())
        .args(["-v", "run", "--threads", "1", "main.tsr"])
        .current_dir(dir)
        .env("NO_COLOR", "1")
        .env("TESSERA_CACHE", std::env::temp_dir().join("tessera-test-cache"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
}

fn text(stream: Option<impl Read>) -> String {
    let mut text = String::new();
    stream.and_then(|mut s| s.read_to_string(&mut text).ok()).map_or(String::new(), |_| text)
}

#[test]
fn of_sixty_four_processes_one_searches_and_killed_ones_damage_nothing() -> std::io::Result<()> {
    let dir = tempfile::tempdir()?;
    let short = PROGRAM.replace("(cache=\"found\")", "(cache=\"found\", samples=4)");
    std::fs::write(dir.path().join("main.tsr"), short)?;
    let mut all: Vec<Child> = (0..64).map(|_| start(dir.path())).collect::<Result<_, _>>()?;
    // Early on, when one of them searches; it may be any of them.
    for killed in all.iter_mut().take(16) {
        killed.kill()?;
        std::thread::sleep(Duration::from_millis(60));
    }
    let (mut outs, mut tuned) = (vec![], vec![]);
    for (i, child) in all.iter_mut().enumerate() {
        let (out, err) = (text(child.stdout.take()), text(child.stderr.take()));
        let code = child.wait()?.code();
        assert!(!err.contains("W0603"), "{err}");
        tuned.extend(err.lines().filter_map(|l| l.strip_prefix("tuned `")?.split("):").next().map(str::to_owned)));
        if i >= 16 {
            assert_eq!(code, Some(0), "{out}{err}");
            outs.push(out);
        }
    }
    assert!(outs.iter().all(|o| *o == outs[0] && o.starts_with("True True\n")), "{outs:?}");
    // A process that was killed just after its search has told nobody.
    let told = tuned.len();
    tuned.sort();
    tuned.dedup();
    assert!(told <= KERNELS && tuned.len() == told, "{tuned:?}");
    assert_eq!(records(dir.path()).len(), KERNELS);
    let left: Vec<_> = std::fs::read_dir(dir.path().join(".tessera/cache"))?.flatten().map(|e| e.file_name()).collect();
    assert_eq!(left.len(), 2, "{left:?}");
    Ok(())
}

/// What keeps records from being written: one warning, and the program goes on.
#[test]
fn records_that_cannot_be_kept_are_told_once() -> std::io::Result<()> {
    type Hinder = fn(&Path) -> std::io::Result<()>;
    let hindrances: [(&str, Hinder); 3] = [
        ("a file in place of the folder", |dir| std::fs::write(dir.join(".tessera"), "a file")),
        ("a folder in place of the lock", |dir| std::fs::create_dir_all(dir.join(".tessera/cache/found.lock"))),
        ("a full disk", |dir| {
            std::fs::create_dir_all(dir.join(".tessera/cache"))?;
            std::os::unix::fs::symlink("/dev/full", dir.join(".tessera/cache/found.json"))
        }),
    ];
    for (what, hinder) in hindrances {
        let dir = tempfile::tempdir()?;
        hinder(dir.path())?;
        let r = run(dir.path(), &["run", "main.tsr"]);
        assert!(r.code == 0 && r.out.starts_with("True True\n"), "{what}: {}{}", r.out, r.err);
        assert_eq!(r.err.matches("W0603").count(), 1, "{what}: {}", r.err);
    }
    Ok(())
}

/// No decorators: the whole program is tuned from outside.
const PLAIN: &str = r#"
def layer(x, w):
    return op.tanh(x @ w)

x = random.normal(random.key(0), (96, 96))
w = random.normal(random.key(1), (96, 96))

def step(c, _):
    return layer(c, w) * 0.5, c.sum()

last, sums = op.scan(step, x, op.zeros((3,)))
print(f"{last.sum():.4f} {sums.sum():.4f} {op.softmax(x, -1).sum():.4f}")
"#;

#[test]
fn a_whole_program_is_tuned_and_later_runs_take_its_records() -> std::io::Result<()> {
    let dir = tempfile::tempdir()?;
    std::fs::write(dir.path().join("main.tsr"), PLAIN)?;
    let plain = run(dir.path(), &["run", "main.tsr"]);
    let check = ["tune", "main.tsr", "--check"];
    let before = run(dir.path(), &check);
    assert!(before.code == 1 && before.out.contains("missing  dot"), "{}{}", before.out, before.err);
    assert!(!dir.path().join(".tessera").exists());
    let frozen = run(dir.path(), &["tune", "main.tsr", "--frozen"]);
    assert!(frozen.code == 1 && frozen.err.contains("error[E0606]"), "{}{}", frozen.out, frozen.err);
    let tuned = run(dir.path(), &["tune", "main.tsr", "--samples", "4"]);
    assert_eq!((tuned.code, &*tuned.err), (0, ""), "{}", tuned.out);
    assert!(tuned.out.contains(" 0 found, 0 missing, 0 left, 0 records stale\n"), "{}", tuned.out);
    let kept = dir.path().join(".tessera/cache/main.json");
    let text = std::fs::read_to_string(&kept)?;
    let after = run(dir.path(), &check);
    assert_eq!((after.code, std::fs::read_to_string(&kept)?), (0, text.clone()), "{}", after.out);
    let ran = run(dir.path(), &["-v", "run", "main.tsr"]);
    assert!(ran.out == plain.out && !ran.err.contains("tuned `"), "{}{}", ran.out, ran.err);
    // Another size: other kernels.
    std::fs::write(dir.path().join("main.tsr"), PLAIN.replace("96", "80"))?;
    let other = run(dir.path(), &["tune", "main.tsr", "--check", "--explain"]);
    assert!(other.code == 1 && other.out.contains("the nearest record has another size or dtype"), "{}", other.out);
    assert!(other.out.contains("stale    ") && other.out.contains("another size or dtype\n"), "{}", other.out);
    // Tuned again, and rid of what is of no use.
    let again = run(dir.path(), &["tune", "main.tsr", "--samples", "2", "--prune"]);
    assert!(again.code == 0 && again.out.contains("removed  "), "{}{}", again.out, again.err);
    assert_eq!(run(dir.path(), &check).code, 0);
    let emulated = run(dir.path(), &["tune", "--checked", "main.tsr"]);
    assert!(emulated.code == 1 && emulated.err.contains("error[E0606]"), "{}{}", emulated.out, emulated.err);
    // A file of a later version is nobody's to write.
    let later = text.replace("\"version\": 2", "\"version\": 3");
    std::fs::write(&kept, &later)?;
    let left = run(dir.path(), &["tune", "main.tsr", "--samples", "2"]);
    assert!(left.err.contains("is of another version, and is left as it is"), "{}{}", left.out, left.err);
    assert_eq!(std::fs::read_to_string(&kept)?, later);
    Ok(())
}

#[test]
fn every_objective_keeps_results() -> std::io::Result<()> {
    for objective in ["throughput", "memory", "compile"] {
        let dir = tempfile::tempdir()?;
        let program = PROGRAM.replace("\"found\")", &format!("\"found\", objective=\"{objective}\", samples=5)"));
        std::fs::write(dir.path().join("main.tsr"), program)?;
        let r = run(dir.path(), &["run", "main.tsr"]);
        assert!(r.code == 0 && r.out.starts_with("True True\n") && r.err.is_empty(), "{objective}: {}{}", r.out, r.err);
        assert!(records(dir.path()).iter().all(|r| r["objective"] == objective), "{}", file(dir.path()));
    }
    Ok(())
}

#[test]
fn energy_is_measured_or_its_absence_is_told() -> std::io::Result<()> {
    let dir = tempfile::tempdir()?;
    std::fs::write(dir.path().join("main.tsr"), PLAIN)?;
    let tuned = run(dir.path(), &["tune", "main.tsr", "--objective", "energy", "--samples", "2"]);
    let (program, ran) =
        (PROGRAM.replace("\"found\")", "\"found\", objective=\"energy\", samples=2)"), tempfile::tempdir()?);
    std::fs::write(ran.path().join("main.tsr"), program)?;
    let r = run(ran.path(), &["run", "main.tsr"]);
    assert!(r.code == 0 && r.out.starts_with("True True\n"), "{}{}", r.out, r.err);
    match tuned.code {
        0 => assert!(r.err.is_empty(), "{}", r.err),
        _ => {
            assert!(tuned.err.contains("error[E0606]: the energy of a call cannot be measured here"), "{}", tuned.err);
            assert_eq!(r.err.matches("warning[W0603]: nothing is tuned by energy").count(), 1, "{}", r.err);
        }
    }
    let wrong = run(dir.path(), &["tune", "main.tsr", "--objective", "speed"]);
    assert!(wrong.code == 2 && wrong.err.contains("latency, throughput, memory, compile, energy"), "{}", wrong.err);
    Ok(())
}

#[test]
fn processes_keep_each_others_records() -> std::io::Result<()> {
    let dir = tempfile::tempdir()?;
    std::fs::write(dir.path().join("main.tsr"), PROGRAM)?;
    let all: Vec<Ran> = std::thread::scope(|scope| {
        let runs: Vec<_> = (0..3).map(|_| scope.spawn(|| run(dir.path(), &["-v", "run", "main.tsr"]))).collect();
        runs.into_iter().filter_map(|r| r.join().ok()).collect()
    });
    assert!(all.len() == 3 && all.iter().all(|r| r.code == 0 && r.out == all[0].out), "{}", all[0].err);
    assert_eq!(all.iter().map(|r| r.err.matches("tuned `").count()).sum::<usize>(), KERNELS);
    let last = run(dir.path(), &["-v", "run", "main.tsr"]);
    assert!(!last.err.contains("tuned `"), "{}", last.err);
    Ok(())
}
