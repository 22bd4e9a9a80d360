//! Parallel programs and their mutants: with a collective or a layout deleted, inserted or
//! replaced, a program prints the same numbers or does not check.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use tessera::testing::{Outcome, Runner};
use tessera_tests::mesh_mutants::mutants;
use tessera_tests::program::sources;

/// Programs, and mutants of all of them, at least.
const PROGRAMS: usize = 12;
const MUTANTS: usize = 1000;
/// The stack of a thread that checks and runs programs.
const STACK: usize = 256 << 20;

/// How many mutants did not check, and how many ran.
#[derive(Default)]
struct Seen {
    refused: AtomicUsize,
    ran: AtomicUsize,
}

fn held(runner: &Runner, name: &str, source: &str, part: usize, parts: usize, seen: &Seen) -> Vec<String> {
    let original = runner.run(source);
    let Outcome::Printed(expected) = &original else { return vec![format!("{name}: {original:?}")] };
    let mut wrong = vec![];
    for text in mutants(source).into_iter().skip(part).step_by(parts) {
        match runner.run(&text) {
            Outcome::Refused(_) => {
                seen.refused.fetch_add(1, Ordering::Relaxed);
            }
            Outcome::Printed(got) if got == *expected => {
                seen.ran.fetch_add(1, Ordering::Relaxed);
            }
            other => wrong.push(format!("{name}: {other:?} instead of {expected:?}, of\n{text}")),
        }
    }
    wrong
}

#[test]
fn a_mutant_prints_the_same_or_does_not_check() {
    let start = Instant::now();
    let all = sources("tests/data/parallel");
    assert!(all.len() >= PROGRAMS, "only {} programs", all.len());
    let (seen, failures) = (Seen::default(), Mutex::new(vec![]));
    let parts = 2;
    std::thread::scope(|s| {
        for part in 0..parts {
            let (all, seen, failures) = (&all, &seen, &failures);
            let run = move || {
                for (name, source) in all {
                    let wrong = held(&Runner::new(STACK / 2), name, source, part, parts, seen);
                    failures.lock().unwrap_or_else(|e| e.into_inner()).extend(wrong);
                }
            };
            std::thread::Builder::new().stack_size(STACK).spawn_scoped(s, run).expect("a thread starts");
        }
    });
    let (refused, ran) = (seen.refused.into_inner(), seen.ran.into_inner());
    let mut failures = failures.into_inner().unwrap_or_else(|e| e.into_inner());
    println!(
        "{} programs, {} mutants: {refused} do not check, {ran} print the same, in {:.1} s",
        all.len(),
        refused + ran + failures.len(),
        start.elapsed().as_secs_f64()
    );
    let count = failures.len();
    failures.truncate(6);
    assert!(count == 0, "{count} mutants\n{}", failures.join("\n"));
    assert!(refused + ran >= MUTANTS, "only {} mutants", refused + ran);
}
