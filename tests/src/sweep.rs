//! Many random cases over two threads, with a reduced report of what fails.

use crate::bits::Difference;
use crate::compare::{Bench, Work};
use crate::random::Random;
use crate::random_graph::{Case, Scale, case};
use crate::shrink::{report, shrink};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tessera_ir::schedule::Machine;

/// Threads that compile.
const THREADS: usize = 2;
/// Cases after which a thread forgets its kernels.
const CASES_PER_BENCH: u64 = 200;
/// Failures that are reduced and told; the sweep ends with the last of them.
const FAILURES_MAX: usize = 3;

/// Lines of kernels that a report shows.
const LINES_MAX: usize = 60;

/// What a sweep did.
#[derive(Default)]
pub struct Sweep {
    pub programs: u64,
    pub work: Work,
    /// Programs that stop with a run-time error, in every way.
    pub stopped: u64,
    pub took: Duration,
    pub failures: Vec<String>,
}

impl Sweep {
    /// One line for people.
    pub fn summary(&self) -> String {
        format!(
            "{} random programs ({} nodes, {} kernels, {} reference kernels, {} stopped alike) in {:.1} s",
            self.programs,
            self.work.nodes,
            self.work.kernels,
            self.work.native,
            self.stopped,
            self.took.as_secs_f64()
        )
    }
}

/// The host, or a machine whose caches are so small that every kind of blocking happens to
/// small tensors.
pub fn machine(random: &mut Random) -> Machine {
    let host = tessera_schedule::host();
    if random.once_in(2) {
        return host;
    }
    Machine {
        class: tessera_ir::schedule::Class::Cpu,
        vector_bytes: random.pick(&[16, 32, 64]),
        vector_registers: random.pick(&[16, 32]),
        lanes_max: 64,
        bf16: tessera_ops::prim::Order::Chain,
        block_products: false,
        l1_bytes: random.pick(&[256, 1 << 10, 32 << 10]),
        l2_bytes: random.pick(&[2 << 10, 16 << 10, 1 << 20]),
        l3_bytes: random.pick(&[4 << 10, 64 << 10, 16 << 20]),
    }
}

/// Checks a case; a panic is a difference too.
pub fn checked(bench: &mut Bench, case: &Case) -> Result<Work, Difference> {
    catch_unwind(AssertUnwindSafe(|| bench.check(case))).unwrap_or_else(|panic| {
        let text =
            panic.downcast_ref::<String>().cloned().or_else(|| panic.downcast_ref::<&str>().map(|s| s.to_string()));
        Err(Difference { way: "panic".into(), what: text.unwrap_or_default() })
    })
}

/// The reduced case and its difference, for a report.
fn told(seed: u64, bench: &mut Bench, first: &Difference, failing: Case) -> String {
    let nodes = failing.graph.nodes.len();
    let directives = if bench.random_directives { ", random directives" } else { "" };
    let small = shrink(failing, &mut |c| checked(bench, c).is_err_and(|d| d.way == first.way));
    let now = checked(bench, &small).err().map_or("(no longer)".to_owned(), |d| d.line());
    let kernels = catch_unwind(AssertUnwindSafe(|| bench.kernels(&small))).unwrap_or_default();
    let kernels = if kernels.lines().count() > LINES_MAX { "" } else { &kernels };
    let machine = &bench.machine;
    format!(
        "seed {seed} ({nodes} nodes): {}\nreduced: {now}\n{machine:?}{directives}\n{}{kernels}",
        first.line(),
        report(&small)
    )
}

/// Runs the cases of `seeds` for at most `limit`.
pub fn random_graphs(seeds: Range<u64>, scale: Scale, limit: Duration) -> Sweep {
    let start = Instant::now();
    let next = AtomicU64::new(seeds.start);
    let total = Mutex::new(Sweep::default());
    let run = |thread: usize| {
        let mut bench = Bench::new();
        let mut left = 0;
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            let lock = || total.lock().unwrap_or_else(|e| e.into_inner());
            if seed >= seeds.end || start.elapsed() > limit || lock().failures.len() >= FAILURES_MAX {
                return;
            }
            if left == 0 {
                bench = Bench::new();
                left = CASES_PER_BENCH;
            }
            left -= 1;
            let mut random = Random::new(!seed);
            bench.set_machine(machine(&mut random));
            bench.set_directives(random.once_in(3).then_some(seed));
            note(thread, seed);
            let case = case(seed, scale);
            if seeds.end - seeds.start == 1 {
                // Told first: the process may not survive it.
                eprintln!("{:?}\n{}{}", bench.machine, report(&case), bench.kernels(&case));
            }
            let result = checked(&mut bench, &case);
            let failure = result.as_ref().err().map(|d| told(seed, &mut bench, d, case));
            let mut total = lock();
            total.programs += 1;
            if let Ok(work) = result {
                total.work.nodes += work.nodes;
                total.work.kernels += work.kernels;
                total.work.native += work.native;
                total.stopped += u64::from(work.stopped);
            }
            total.failures.extend(failure);
        }
    };
    let run = &run;
    std::thread::scope(|s| (0..THREADS).for_each(|t| drop(s.spawn(move || run(t)))));
    let mut out = total.into_inner().unwrap_or_else(|e| e.into_inner());
    out.took = start.elapsed();
    out
}

/// Leaves the seed behind for the case that the process does not survive it.
fn note(thread: usize, seed: u64) {
    let file = std::env::temp_dir().join(format!("tessera-random-graph-{thread}"));
    let _ = std::fs::write(file, format!("{seed}\n"));
}
