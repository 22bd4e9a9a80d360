//! Per-device code and its mutants: with a collective or a division by the number of devices deleted, inserted or replaced, a
//! program prints the same numbers or does not check, or it stands in a list with the reason why nobody can tell.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Instant;
use tessera::testing::{Outcome, Runner};
use tessera_tests::device_mutants::{Mutant, mutants};
use tessera_tests::program::sources;

/// Programs, and mutants of all of them, at least.
const PROGRAMS: usize = 6;
const MUTANTS: usize = 350;
/// The stack of a thread that checks and runs programs.
const STACK: usize = 256 << 20;

/// Why nobody can tell that a mutant is wrong.
const ARITHMETIC: &str =
    "a division of a sum, or of what is complete, is arithmetic: that of a mean's parts alone is needed";
const SAID: &str = "`dist.each` says that each device goes on with its own";
const BLOCK: &str = "a collective of blocks is what it is in MPI, and a block is a tensor like any other";
const ANOTHERS: &str = "what differs by rank, or came from another device, is no part of anything that is known";

/// Mutants that may print other numbers: program, kind, what the line that is new has, and why.
const MAY_DIFFER: &[(&str, &str, &str, &str)] = &[
    ("*", "divided", "", ARITHMETIC),
    ("*", "each", "", SAID),
    ("batch_norm", "*", ".permute(", ANOTHERS),
    ("batch_norm", "mean", "squares = ", ARITHMETIC),
    ("data_parallel", "mean", "(part, ", ARITHMETIC),
    ("data_parallel", "*", "(h, ", BLOCK),
    ("column_row", "*", "(h, ", BLOCK),
    ("column_row", "*", "(part, axis=\"dp\"", BLOCK),
    ("column_row", "*", "(y, axis=\"dp\"", BLOCK),
    ("halo", "*", "before = ", ANOTHERS),
    ("halo", "*", "first = ", ANOTHERS),
    ("halo", "*", "moved = ", ANOTHERS),
    ("sequence_norm", "*", "(n, ", BLOCK),
    ("sequence_norm", "*", "(h, ", BLOCK),
    ("sequence_norm", "*", "(y, ", BLOCK),
    ("vocabulary", "*", "(logits, axis=\"dp\"", BLOCK),
    ("vocabulary", "*", "(logits, axis=\"tp\"", BLOCK),
    ("vocabulary", "*", "(total, axis=\"dp\"", BLOCK),
    ("vocabulary", "*", "(target, axis=\"dp\"", BLOCK),
    ("vocabulary", "*", "(losses, ", BLOCK),
    ("vocabulary", "*", "(own, ", ANOTHERS),
    ("vocabulary", "*", "(inside, ", ANOTHERS),
    ("vocabulary", "*", "(picked, ", ANOTHERS),
];

/// The row that excuses a mutant.
fn may_differ(program: &str, m: &Mutant) -> Option<usize> {
    let is = |said: &str, found: &str| said == "*" || said == found;
    MAY_DIFFER.iter().position(|(p, kind, line, _)| is(p, program) && is(kind, m.kind) && m.line.contains(line))
}

/// How many mutants did not check, how many printed the same, and how many may differ.
#[derive(Clone, Default)]
struct Seen {
    refused: usize,
    same: usize,
    listed: usize,
    /// The rows of the list that excused one.
    rows: BTreeSet<usize>,
}

fn held(runner: &Runner, name: &str, source: &str, (part, parts): (usize, usize), seen: &mut Seen) -> Vec<String> {
    let original = runner.run(source);
    let Outcome::Printed(expected) = &original else { return vec![format!("{name}: {original:?}")] };
    let mut wrong = vec![];
    for mutant in mutants(source).into_iter().skip(part).step_by(parts) {
        match runner.run(&mutant.text) {
            // A run that stops prints nothing wrong.
            Outcome::Refused(_) | Outcome::Stopped(_) => seen.refused += 1,
            Outcome::Printed(got) if got == *expected => seen.same += 1,
            Outcome::Printed(_) if may_differ(name, &mutant).is_some() => {
                seen.listed += 1;
                seen.rows.extend(may_differ(name, &mutant));
            }
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
    let all = sources("tests/data/per_device");
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
                    found.0.rows.extend(seen.rows);
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
    failures.truncate(8);
    assert!(count == 0, "{count} mutants\n{}", failures.join("\n"));
    let unused: Vec<_> = (0..MAY_DIFFER.len()).filter(|i| !seen.rows.contains(i)).map(|i| MAY_DIFFER[i]).collect();
    assert!(unused.is_empty(), "rows that excuse nothing: {unused:?}");
    assert!(seen.refused + seen.same >= MUTANTS, "only {} mutants", seen.refused + seen.same);
}
