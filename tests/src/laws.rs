//! Laws over tables: every case of a list holds on two threads.

use crate::compare::Bench;
use crate::random_graph::Case;
use crate::shrink::report;
use crate::sweep::checked;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use tessera_ops::prim::Order;

/// Cases after which a thread forgets its kernels.
const CASES_PER_BENCH: usize = 200;
/// Failures that are told in full.
const TOLD_MAX: usize = 3;

/// Checks every case; panics with the failing ones. In debug builds, one case in eight.
pub fn hold(what: &str, cases: Vec<Case>) {
    let start = Instant::now();
    let stride = if cfg!(debug_assertions) { 8 } else { 1 };
    let next = AtomicUsize::new(0);
    let failures = Mutex::new(vec![]);
    let run = || {
        let mut bench = Bench::new();
        for done in 1.. {
            let i = next.fetch_add(1, Ordering::Relaxed) * stride;
            let Some(case) = cases.get(i) else { return };
            if done % CASES_PER_BENCH == 0 {
                bench = Bench::new();
            }
            if let Err(d) = checked(&mut bench, case) {
                failures.lock().unwrap_or_else(|e| e.into_inner()).push((i, d));
            }
        }
    };
    std::thread::scope(|s| {
        s.spawn(run);
        run();
    });
    let mut failures = failures.into_inner().unwrap_or_else(|e| e.into_inner());
    println!("{}: {} cases in {:.1} s", what, cases.len().div_ceil(stride), start.elapsed().as_secs_f64());
    failures.sort_by_key(|f| f.0);
    let mut text = String::new();
    for (n, (i, d)) in failures.iter().enumerate() {
        let graph = &cases[*i].graph;
        text += &format!("case {i}, {}: {}\n", graph.name, d.line());
        if n < TOLD_MAX {
            text += &report(&cases[*i]);
            text += &Bench::new().kernels(&cases[*i]);
        }
    }
    assert!(failures.is_empty(), "{} of {} {what} differ\n{text}", failures.len(), cases.len());
}

/// The orders of bf16 products whose instructions this machine has: that for matrices twice, as it has the most forms.
pub fn orders_of_bf16_here() -> Vec<Order> {
    match tessera_schedule::host().bf16 {
        Order::Units => vec![Order::Pairs, Order::Units, Order::Units],
        // By vectors.
        Order::Pairs => vec![Order::Pairs, Order::Units],
        Order::Chain | Order::Atoms => vec![Order::Chain],
    }
}

/// The seeds of a law over random programs: so many, or those that `TESSERA_SEED` (one) and `TESSERA_PROGRAMS` say.
pub fn seeds(programs: u64) -> Range<u64> {
    let programs = if cfg!(debug_assertions) { programs / 30 } else { programs };
    number("TESSERA_SEED").map_or(0..number("TESSERA_PROGRAMS").unwrap_or(programs), |s| s..s + 1)
}

/// The seeds of a law over whole runs: the first so many, fewer in debug builds; or one from `TESSERA_SEED` on, or as many
/// as `TESSERA_LAW_COUNT` says.
pub fn run_seeds(programs: u64) -> Range<u64> {
    let ordinary = if cfg!(debug_assertions) { programs / 10 } else { programs };
    let from = number("TESSERA_SEED");
    let count = law_count().unwrap_or(if from.is_some() { 1 } else { ordinary });
    let from = from.unwrap_or(0);
    from..from.saturating_add(count)
}

/// How many cases of a law `TESSERA_LAW_COUNT` asks for.
pub fn law_count() -> Option<u64> {
    number("TESSERA_LAW_COUNT")
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Runs jobs on two threads and gives their failures in order.
pub fn on_two_threads(jobs: usize, job: impl Fn(usize) -> Vec<String> + Sync) -> Vec<String> {
    let next = AtomicUsize::new(0);
    let failures = Mutex::new(BTreeMap::new());
    let run = || {
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            if i >= jobs {
                return;
            }
            let wrong = job(i);
            failures.lock().unwrap_or_else(|e| e.into_inner()).insert(i, wrong);
        }
    };
    std::thread::scope(|s| {
        s.spawn(run);
        run();
    });
    failures.into_inner().unwrap_or_else(|e| e.into_inner()).into_values().flatten().collect()
}
