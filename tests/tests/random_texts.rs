//! No text makes a reader panic or hang, what is printed reads back, and a graph that the
//! verifier accepts can be optimised and run.

use std::time::Duration;
use tessera_tests::fuzz;

fn count(release: u64) -> u64 {
    if cfg!(debug_assertions) { release / 20 } else { release }
}

fn hold(what: &str, result: fuzz::Fuzzed) {
    println!("{} {what}", result.texts);
    assert!(result.failures.is_empty(), "{}", result.failures.join("\n\n"));
}

#[test]
fn damaged_texts_of_graphs_schedules_and_kernels() {
    hold("texts of IRs", fuzz::ir(1, count(100_000), Duration::MAX));
}

#[test]
fn damaged_programs() {
    hold("texts of programs", fuzz::programs_text(1, count(50_000), Duration::MAX));
}
