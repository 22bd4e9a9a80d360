//! Per-device bodies whose types are accepted give what they give on any number of devices.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Instant;
use tessera::testing::{Outcome, Runner};
use tessera_tests::device_bodies::programs;
use tessera_tests::random::Random;

/// The stack of a thread that checks and runs programs.
const STACK: usize = 256 << 20;
const BODIES: u64 = 1500;
/// Bodies that differ and are shown, at most.
const SHOWN: usize = 25;
/// Bodies that are accepted, at least.
const ACCEPTED: usize = 150;

/// The numbers of what a program prints.
fn numbers(text: &str) -> Vec<f64> {
    let parts = text.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+')));
    parts.filter_map(|part| part.parse().ok()).collect()
}

/// Whether two runs print the same but for the order in which sums are rounded.
fn alike(a: &str, b: &str) -> bool {
    let (a, b) = (numbers(a), numbers(b));
    let close = |(a, b): (&f64, &f64)| (a - b).abs() <= 2e-3 * (1.0 + a.abs().max(b.abs())) || a.is_nan() && b.is_nan();
    a.len() == b.len() && a.iter().zip(&b).all(close)
}

/// What became of a body.
enum Held {
    Refused(String),
    Same,
    Differs(String),
}

fn held(runner: &Runner, seed: u64) -> Held {
    let mut r = Random::new(seed);
    let steps = 1 + r.below(4);
    let texts = programs(&mut r, steps);
    let found: Vec<Outcome> = texts.iter().map(|t| runner.run(t)).collect();
    match &found[..] {
        [Outcome::Refused(a), Outcome::Refused(_)] => Held::Refused(a.first().map_or(String::new(), |c| c.to_string())),
        [Outcome::Printed(a), Outcome::Printed(b)] if alike(a, b) => Held::Same,
        _ => Held::Differs(format!("seed {seed}\n{}{found:?}", texts[0])),
    }
}

#[test]
fn what_is_accepted_is_the_same_on_any_number_of_devices() {
    let start = Instant::now();
    let (bodies, first) = (
        std::env::var("TESSERA_BODIES").ok().and_then(|n| n.parse().ok()).unwrap_or(BODIES),
        std::env::var("TESSERA_SEED").ok().and_then(|n| n.parse().ok()).unwrap_or(0),
    );
    let seen = Mutex::new((0, BTreeMap::<String, usize>::new(), vec![]));
    std::thread::scope(|s| {
        for part in 0..2 {
            let seen = &seen;
            let run = move || {
                let runner = Runner::new(STACK / 2);
                for seed in (first..first + bodies).skip(part).step_by(2) {
                    let one = held(&runner, seed);
                    let mut seen = seen.lock().unwrap_or_else(|e| e.into_inner());
                    match one {
                        Held::Refused(code) => *seen.1.entry(code).or_default() += 1,
                        Held::Same => seen.0 += 1,
                        Held::Differs(text) => seen.2.push(text),
                    }
                }
            };
            std::thread::Builder::new().stack_size(STACK).spawn_scoped(s, run).expect("a thread starts");
        }
    });
    let (same, refused, mut differ) = seen.into_inner().unwrap_or_else(|e| e.into_inner());
    let count = differ.len();
    println!(
        "{bodies} bodies: {same} the same, {count} differ, refused {refused:?}, in {:.1} s",
        start.elapsed().as_secs_f64()
    );
    differ.sort_by_key(String::len);
    differ.truncate(SHOWN);
    assert!(count == 0, "{count} bodies\n{}", differ.join("\n\n"));
    assert!(bodies < BODIES || same >= ACCEPTED, "only {same} bodies are accepted");
}
