//! Random input for a given time: `cargo dev fuzz SECONDS`.

use crate::random::Random;
use crate::random_graph::Scale;
use crate::random_text::{damaged, damaged_program, ir_texts, noise, programs, read_ir, read_program};
use crate::sweep::random_graphs;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// What one target went through.
#[derive(Default)]
pub struct Fuzzed {
    pub texts: u64,
    /// Inputs that fail, with what they do.
    pub failures: Vec<String>,
}

/// Failures after which a target ends.
const FAILURES_MAX: usize = 5;

/// Runs `one` on growing seeds on two threads, for `count` seeds or until `limit` is over.
pub fn sweep(start: u64, count: u64, limit: Duration, one: &(dyn Fn(u64) -> Result<(), String> + Sync)) -> Fuzzed {
    let (begin, next) = (Instant::now(), AtomicU64::new(0));
    let found = Mutex::new(Fuzzed::default());
    let run = || {
        loop {
            let n = next.fetch_add(1, Ordering::Relaxed);
            if n >= count || begin.elapsed() > limit {
                return;
            }
            let result = one(start.wrapping_add(n));
            let mut found = found.lock().unwrap_or_else(|e| e.into_inner());
            found.texts += 1;
            found.failures.extend(result.err());
            if found.failures.len() >= FAILURES_MAX {
                return;
            }
        }
    };
    std::thread::scope(|s| {
        s.spawn(run);
        run();
    });
    found.into_inner().unwrap_or_else(|e| e.into_inner())
}

/// Damaged IR texts and noise. The texts of one graph serve many damages.
pub fn ir(start: u64, count: u64, limit: Duration) -> Fuzzed {
    const DAMAGES: u64 = 20;
    let result = sweep(start, count / DAMAGES, limit, &|seed| {
        let mut random = Random::new(seed);
        let texts = ir_texts(seed);
        for _ in 0..DAMAGES {
            let whole = &texts[random.below(texts.len())];
            let text = if random.once_in(20) { noise(&mut random) } else { damaged(&mut random, whole) };
            read_ir(&text).map_err(|e| format!("{e}\n--- text\n{text}"))?;
        }
        Ok(())
    });
    Fuzzed { texts: result.texts * DAMAGES, ..result }
}

/// Damaged programs and token soup.
pub fn programs_text(start: u64, count: u64, limit: Duration) -> Fuzzed {
    let programs = programs();
    sweep(start, count, limit, &|seed| {
        let mut random = Random::new(seed);
        let text = if random.once_in(10) { noise(&mut random) } else { damaged_program(&mut random, &programs) };
        read_program(&text).map_err(|e| format!("{e}\n--- text\n{text}"))
    })
}

/// Every target (or only the one named: `graphs`, `texts`, `programs`) for so many seconds, from seeds that nobody has tried.
/// True if nothing failed.
pub fn run(seconds: u64, target: Option<&str>) -> bool {
    let limit = Duration::from_secs(seconds);
    let start = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs() << 20);
    let mut ok = true;
    let mut tell = |name: &str, count: u64, failures: &[String]| {
        println!("{name}: {count} inputs, {} failures", failures.len());
        failures.iter().for_each(|f| println!("{f}\n"));
        ok &= failures.is_empty();
    };
    let wanted = |name: &str| target.is_none_or(|t| t == name);
    if wanted("graphs") {
        let found = random_graphs(start..u64::MAX, Scale::Small, limit);
        tell("random graphs", found.programs, &found.failures);
    }
    if wanted("texts") {
        let found = ir(start, u64::MAX, limit);
        tell("texts of graphs, schedules, kernels", found.texts, &found.failures);
    }
    if wanted("programs") {
        let found = programs_text(start, u64::MAX, limit);
        tell("texts of programs", found.texts, &found.failures);
    }
    ok
}
