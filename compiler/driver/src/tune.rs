//! `@op.autotune`: a search over the schedules of one kernel.
//!
//! The cost model's schedule is the start. Each step tries the neighbours of the best schedule
//! so far ([`moves`]), measures them, and goes on from the first that is faster. A new best
//! must win clearly over the start, else the start stays. What was found is kept by
//! [`records`]. Schedules never change results, which every sample is checked for.

pub mod records;
mod moves;

use std::collections::BTreeSet;
use tessera_ir::schedule::{self, Schedule};

/// Schedules that one search measures, at most.
pub const SAMPLES_MAX: u32 = 50;
/// Runs before the measurement of a sample.
pub const WARM_UPS: u32 = 3;
/// Measured runs of a sample; their median counts.
pub const RUNS: u32 = 10;
/// The time of a new best over that of the start, at most.
const WIN: f64 = 0.93;
/// Nanoseconds of a kernel that is not worth a search: launching it takes as long.
const SMALL_NS: f64 = 10_000.0;
/// How much faster a neighbour must be to become the next centre of the search.
const STEP: f64 = 0.98;

/// What a search found.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    /// The start, unless another one won.
    pub best: Schedule,
    pub start_ns: f64,
    pub best_ns: f64,
    pub samples: u32,
}

/// Searches from `start`. `measure` gives the median nanoseconds of a schedule, or `None` for
/// one that does not compile or is far slower than the limit.
pub fn search(start: &Schedule, measure: &mut dyn FnMut(&Schedule, Option<f64>) -> Option<f64>) -> Option<Outcome> {
    let start_ns = measure(start, None)?;
    let mut out = Outcome { best: start.clone(), start_ns, best_ns: start_ns, samples: 1 };
    if start_ns < SMALL_NS {
        return Some(out);
    }
    let mut tried = BTreeSet::from([records::directives(start).join("\n")]);
    let mut centre = (start.clone(), start_ns);
    'search: loop {
        for directives in moves::neighbours(&centre.0) {
            let candidate = Schedule { directives, ..centre.0.clone() };
            if schedule::verify::verify(&candidate).is_err()
                || !tried.insert(records::directives(&candidate).join("\n"))
            {
                continue;
            }
            // Two are left for the end.
            if out.samples + 2 >= SAMPLES_MAX {
                break 'search;
            }
            out.samples += 1;
            let Some(ns) = measure(&candidate, Some(centre.1)) else { continue };
            if ns < centre.1 * STEP {
                centre = (candidate, ns);
                continue 'search;
            }
        }
        break;
    }
    if centre.1 < start_ns * WIN {
        // Both once more: the machine may have been busy with something else.
        out.samples += 2;
        if let (Some(start_again), Some(again)) = (measure(start, None), measure(&centre.0, None)) {
            out.start_ns = start_ns.min(start_again);
            out.best_ns = out.start_ns;
            if centre.1.min(again) < out.start_ns * WIN && again < start_again * WIN {
                (out.best, out.best_ns) = (centre.0, centre.1.min(again));
            }
        }
    }
    Some(out)
}

/// The middle one of some times.
pub fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(f64::INFINITY)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tessera_ir::schedule::Directive;

    fn start() -> Result<Schedule, String> {
        let text = r#"
"tessera.schedule.kernel"() {name="k", scalars=[]} ({
  %in0 = "tessera.schedule.operand"() {elems=100000, output=false} : f32
  %out0 = "tessera.schedule.operand"() {elems=100000, output=true} : f32
  %i0 = "tessera.schedule.axis"() {extent=100000, reduced=false}
  %0 = "tessera.schedule.load"(%in0) {at="i0"} : f32
  "tessera.schedule.store"(%out0, %0) {at="i0"}
}, {
  "tessera.schedule.vectorize"() {axis="i0", lanes=16}
  "tessera.schedule.tile"() {axis="i0", size=1024}
})"#;
        schedule::text::parse(text).map_err(|e| e.message)
    }

    fn lanes(s: &Schedule) -> u32 {
        s.directives
            .iter()
            .find_map(|d| if let Directive::Vectorize { lanes, .. } = d { Some(*lanes) } else { None })
            .unwrap_or(0)
    }

    #[test]
    fn the_search_follows_what_is_faster() -> Result<(), String> {
        let start = start()?;
        let mut measure = |s: &Schedule, _: Option<f64>| Some(1e6 / f64::from(lanes(s)));
        let out = search(&start, &mut measure).ok_or("no outcome")?;
        assert_eq!(lanes(&out.best), 64);
        assert!(out.samples <= SAMPLES_MAX);
        Ok(())
    }

    #[test]
    fn a_small_win_is_none() -> Result<(), String> {
        let start = start()?;
        let mut measure = |s: &Schedule, _: Option<f64>| Some(if *s == start { 1e6 } else { 0.95e6 });
        let out = search(&start, &mut measure).ok_or("no outcome")?;
        assert_eq!((out.best, out.best_ns), (start, 1e6));
        Ok(())
    }

    #[test]
    fn the_budget_holds() -> Result<(), String> {
        let start = start()?;
        let mut count = 0;
        let mut measure = |s: &Schedule, _: Option<f64>| {
            count += 1;
            Some(if *s == start { 1e6 } else { 1e6 / f64::from(count) })
        };
        let out = search(&start, &mut measure).ok_or("no outcome")?;
        assert!(out.samples <= SAMPLES_MAX && count as u32 == out.samples);
        Ok(())
    }
}
