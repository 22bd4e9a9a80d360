//! Random programs give the bits of the interpreter: after every pass, compiled, on one thread
//! and on three.
//!
//! `TESSERA_SEED=N` runs one program, `TESSERA_PROGRAMS=N` so many.

use std::time::Duration;
use tessera_tests::sweep::random_graphs;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn compiled_programs_give_the_bits_of_the_interpreter() {
    let programs = number("TESSERA_PROGRAMS").unwrap_or(if cfg!(debug_assertions) { 300 } else { 10_000 });
    let seeds = number("TESSERA_SEED").map_or(0..programs, |s| s..s + 1);
    let sweep = random_graphs(seeds, Duration::MAX);
    println!("{}", sweep.summary());
    assert!(sweep.failures.is_empty(), "{}", sweep.failures.join("\n"));
}
