//! Per-device code and its mutants: with a collective or a division by the number of devices deleted, inserted or replaced, a
//! program prints the same numbers or does not check, or it stands in a list with the reason why nobody can tell.

use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Instant;
use tessera::testing::{Outcome, Runner};
use tessera_tests::device_mutants::{Mutant, mutants};
use tessera_tests::program::root;

/// Programs, and mutants of all of them, at least.
const PROGRAMS: usize = 6;
const MUTANTS: usize = 400;
/// The stack of a thread that checks and runs programs.
const STACK: usize = 256 << 20;

fn programs() -> Vec<(String, String)> {
    let files = std::fs::read_dir(root().join("tests/data/per_device")).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = files.map(|f| f.path()).collect();
    paths.sort();
    let read = |p: &PathBuf| {
        (p.file_stem().unwrap_or_default().to_string_lossy().into(), std::fs::read_to_string(p).unwrap_or_default())
    };
    paths.iter().map(read).collect()
}

/// Why a mutant may print other numbers: its program, its kind, what its line has, and the reason.
const MAY_DIFFER: &[(&str, &str, &str, &str)] = &[];

fn may_differ(program: &str, m: &Mutant) -> bool {
    let is = |said: &str, found: &str| said == "*" || said == found;
    MAY_DIFFER.iter().any(|(p, kind, line, _)| is(p, program) && is(kind, m.kind) && m.line.contains(line))
}

/// How many mutants did not check, how many printed the same, and how many may differ.
#[derive(Clone, Copy, Default)]
struct Seen {
    refused: usize,
    same: usize,
    listed: usize,
}

fn held(runner: &Runner, name: &str, source: &str, (part, parts): (usize, usize), seen: &mut Seen) -> Vec<String> {
    let original = runner.run(source);
    let Outcome::Printed(expected) = &original else { return vec![format!("{name}: {original:?}")] };
    let mut wrong = vec![];
    for mutant in mutants(source).into_iter().skip(part).step_by(parts) {
        match runner.run(&mutant.text) {
            Outcome::Refused(_) => seen.refused += 1,
            Outcome::Printed(got) if got == *expected => seen.same += 1,
            Outcome::Printed(_) if may_differ(name, &mutant) => seen.listed += 1,
            other => {
                wrong.push(format!("{name}: {}: {}\n  {other:?} instead of {expected:?}", mutant.kind, mutant.line))
            }
        }
    }
    wrong
}

#[test]
fn a_mutant_prints_the_same_or_does_not_check() {
    let start = Instant::now();
    let all = programs();
    assert!(all.len() >= PROGRAMS, "only {} programs", all.len());
    let found = Mutex::new((Seen::default(), vec![]));
    let parts = 2;
    std::thread::scope(|s| {
        for part in 0..parts {
            let (all, found) = (&all, &found);
            let run = move || {
                let runner = Runner::new(STACK / 2);
                for (name, source) in all {
                    let mut seen = Seen::default();
                    let wrong = held(&runner, name, source, (part, parts), &mut seen);
                    let mut found = found.lock().unwrap_or_else(|e| e.into_inner());
                    found.0.refused += seen.refused;
                    found.0.same += seen.same;
                    found.0.listed += seen.listed;
                    found.1.extend(wrong);
                }
            };
            std::thread::Builder::new().stack_size(STACK).spawn_scoped(s, run).expect("a thread starts");
        }
    });
    let (seen, mut failures) = found.into_inner().unwrap_or_else(|e| e.into_inner());
    let count = failures.len();
    println!(
        "{} programs, {} mutants: {} do not check, {} print the same, {} may differ, in {:.1} s",
        all.len(),
        seen.refused + seen.same + seen.listed + count,
        seen.refused,
        seen.same,
        seen.listed,
        start.elapsed().as_secs_f64()
    );
    if std::env::var("TESSERA_ALL_MUTANTS").is_err() {
        failures.truncate(8);
    }
    assert!(count == 0, "{count} mutants\n{}", failures.join("\n"));
    assert!(seen.refused + seen.same >= MUTANTS, "only {} mutants", seen.refused + seen.same);
}
