//! A search over the schedules of one kernel.
//!
//! All schedules around that of the cost model are a grid that the model ranks ([`tessera_schedule::grid`]). A Gaussian process
//! with the model as its mean ([`surrogate`]) says which one is worth measuring next, and each is measured in turn with the
//! start. The greater part of the samples is chosen before the first measurement, so that every search of a kernel has
//! them. At the end the best few are measured together: of those that are about as fast as the fastest one the start wins, then
//! what was planned, so that a search that is done again ends with the same schedule. What was found is kept by [`records`].
//! Schedules never change results, which every sample is checked for.

pub mod records;
mod surrogate;

use surrogate::Surrogate;
use tessera_ir::schedule::{self, Schedule};
use tessera_schedule::grid::Grid;

/// Runs before the measurement of a sample.
pub const WARM_UPS: u32 = 3;
/// Measurements of a sample; their median counts.
pub const RUNS: usize = 10;
/// What a winner costs at most, over the start.
const WIN: f64 = 0.88;
/// What the fastest one costs at most, over another one that it wins against.
const FASTER: f64 = 0.92;
/// How near to these a schedule may be before it is measured again; rounds of measurements, and how many there are at most.
const NEAR: f64 = 0.03;
const ROUNDS: usize = 3;
const ROUNDS_MAX: usize = 7;
/// Nanoseconds of a kernel that is not worth a search: starting it on all threads takes a good part of that.
pub const SMALL_NS: f64 = 15_000.0;
/// The part of the samples that is chosen before anything is measured.
const PLANNED: f64 = 0.6;
const PLANNED_MAX: usize = 100;
/// Schedules that are measured together at the end, besides the best one.
const FINALISTS: usize = 8;
/// Over the best sample, what a schedule costs that may still be in the last round.
const HOPE: f64 = 1.15;

/// What says how good schedules are.
pub trait Bench {
    /// What a candidate costs, and what the start does that is measured in turn with it. `None` for a candidate that does not
    /// compile or changes results.
    fn beside(&mut self, candidate: &Schedule, start: &Schedule) -> Option<(f64, f64)>;

    /// What each of some schedules costs, all measured in turn on operands that lie elsewhere than before.
    fn all(&mut self, finalists: &[Schedule]) -> Option<Vec<f64>>;
}

/// How far a search goes.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Schedules that are measured, at most.
    pub samples: u32,
    /// A start that costs less stays.
    pub small: f64,
}

/// What a search found.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    /// The start, unless another one won.
    pub best: Schedule,
    pub start_cost: f64,
    pub best_cost: f64,
    pub samples: u32,
}

/// Searches among the points of a grid around `start`; those of `first` are measured before others. `None` where not even the
/// start can be measured.
pub fn search(
    start: &Schedule,
    grid: &Grid,
    first: &[usize],
    effort: Effort,
    bench: &mut dyn Bench,
) -> Option<Outcome> {
    let (start_cost, _) = bench.beside(start, start)?;
    let mut out = Outcome { best: start.clone(), start_cost, best_cost: start_cost, samples: 1 };
    if start_cost < effort.small || grid.is_empty() {
        return Some(out);
    }
    let at = |point: usize| match point {
        0 => start.clone(),
        _ => Schedule { directives: grid.directives(point), ..start.clone() },
    };
    let fits = |point: usize| {
        let candidate = at(point);
        schedule::verify::verify(&candidate).is_ok() && tessera_tile::lower(&candidate).is_ok()
    };
    let mut model = Surrogate::over(grid);
    model.observe(0, 0.0);
    let planned = ((f64::from(effort.samples) * PLANNED) as usize).min(PLANNED_MAX);
    let planned: Vec<usize> = first.iter().copied().filter(|p| *p != 0).chain(model.plan(planned, &fits)).collect();
    // By point: the logarithm of what it costs over what the start does. In the order in which they are preferred.
    let mut measured: Vec<(usize, f64)> = vec![(0, 0.0)];
    let mut best: (usize, f64) = (0, 0.0);
    let mut waiting = planned.iter().copied();
    while out.samples < effort.samples {
        let Some(point) = waiting.next().or_else(|| model.next(best.1)) else { break };
        if measured.iter().any(|m| m.0 == point) {
            continue;
        }
        if !fits(point) {
            model.exclude(point);
            continue;
        }
        out.samples += 1;
        let candidate = at(point);
        let costs = bench.beside(&candidate, start).filter(|(a, b)| (a / b).is_normal() && *a > 0.0);
        let Some((cost, beside)) = costs else {
            model.exclude(point);
            continue;
        };
        let score = (cost / beside).ln();
        model.observe(point, score);
        measured.push((point, score));
        if score < best.1 {
            best = (point, score);
        }
    }
    // What was planned comes before what was not, since every search measures it; the rest in the order of the ranks.
    let rank = |point: usize| planned.iter().position(|p| *p == point).unwrap_or(planned.len() + point);
    measured[1..].sort_by_key(|m| rank(m.0));
    // Whoever wins has to do so twice: the machine may have been busy with something else.
    let finalists = finalists(&measured, best);
    if best.1 < WIN.ln() && finalists.len() > 1 {
        let schedules: Vec<Schedule> = finalists.iter().map(|&p| at(p)).collect();
        let (winner, costs) = decided(&schedules, bench)?;
        (out.best, out.start_cost, out.best_cost) = (schedules[winner].clone(), costs[0], costs[winner]);
    }
    Some(out)
}

/// The start, and the points that may still win, in their order: the best one, and the most preferred of those that are about
/// as good.
fn finalists(measured: &[(usize, f64)], best: (usize, f64)) -> Vec<usize> {
    let hopeful = measured[1..].iter().filter(|m| m.1 < best.1 + HOPE.ln()).map(|m| m.0);
    let mut out: Vec<usize> = std::iter::once(0).chain(hopeful).take(FINALISTS).collect();
    if !out.contains(&best.0) {
        out.push(best.0);
    }
    out
}

/// Which of some schedules wins, and what each costs: the first, or the next one that is about as fast as the fastest one. They
/// are measured until it is clear which one that is, or as often as is bearable.
fn decided(schedules: &[Schedule], bench: &mut dyn Bench) -> Option<(usize, Vec<f64>)> {
    let mut rounds: Vec<Vec<f64>> = vec![];
    loop {
        rounds.push(bench.all(schedules)?);
        let costs: Vec<f64> = (0..schedules.len()).map(|i| median(rounds.iter().map(|r| r[i]).collect())).collect();
        let fastest = costs.iter().copied().fold(f64::INFINITY, f64::min);
        // Over 1 for one that the fastest one does not win against.
        let holds = |i: usize| fastest / costs[i] / if i == 0 { WIN } else { FASTER };
        let winner = (0..costs.len()).find(|&i| holds(i) >= 1.0).unwrap_or(0);
        let unclear = (0..=winner).any(|i| (holds(i) - 1.0).abs() < NEAR);
        if rounds.len() >= ROUNDS && !unclear || rounds.len() == ROUNDS_MAX {
            return Some((winner, costs));
        }
    }
}

/// The middle one of some numbers.
pub fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or(f64::INFINITY)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tessera_ir::schedule::Directive;
    use tessera_schedule::estimate::Rates;

    const EFFORT: Effort = Effort { samples: 50, small: 0.0 };

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

    /// A bench that knows what everything costs, give or take noise.
    struct Known<F: Fn(&Schedule) -> f64> {
        cost: F,
        count: u32,
        noise: f64,
        state: u64,
    }

    impl<F: Fn(&Schedule) -> f64> Known<F> {
        fn of(cost: F, noise: f64, state: u64) -> Known<F> {
            Known { cost, count: 0, noise, state }
        }

        fn cost(&mut self, s: &Schedule) -> f64 {
            self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let random = (self.state >> 33) as f64 / (1u64 << 31) as f64 - 0.5;
            (self.cost)(s) * (1.0 + self.noise * random)
        }
    }

    impl<F: Fn(&Schedule) -> f64> Bench for Known<F> {
        fn beside(&mut self, candidate: &Schedule, best: &Schedule) -> Option<(f64, f64)> {
            self.count += 1;
            Some((self.cost(candidate), self.cost(best)))
        }

        fn all(&mut self, finalists: &[Schedule]) -> Option<Vec<f64>> {
            Some(finalists.iter().map(|s| self.cost(s)).collect())
        }
    }

    fn grid(start: &Schedule) -> Grid {
        Grid::around(start, &tessera_schedule::reference(), &Rates::usual(2))
    }

    fn of(s: &Schedule) -> (f64, f64) {
        let number = |d: &Directive| match d {
            Directive::Vectorize { lanes, .. } => (f64::from(*lanes), 1.0),
            Directive::Tile { size, .. } => (1.0, *size as f64),
            _ => (1.0, 1.0),
        };
        s.directives.iter().map(number).fold((1.0, 1.0), |a, b| (a.0 * b.0, a.1 * b.1))
    }

    #[test]
    fn the_best_schedule_is_found_and_the_budget_holds() -> Result<(), String> {
        let start = start()?;
        let mut bench = Known::of(|s| 1e8 / of(s).0 * (1.0 + (of(s).1.log2() - 11.0).abs()), 0.0, 1);
        let out = search(&start, &grid(&start), &[], EFFORT, &mut bench).ok_or("no outcome")?;
        assert_eq!(of(&out.best), (64.0, 2048.0));
        assert!(out.samples <= EFFORT.samples && bench.count == out.samples, "{out:?}");
        let few = Effort { samples: 3, ..EFFORT };
        let out = search(&start, &grid(&start), &[], few, &mut bench).ok_or("no outcome")?;
        assert_eq!(out.samples, 3);
        Ok(())
    }

    #[test]
    fn a_small_win_is_none() -> Result<(), String> {
        let start = start()?;
        let mut bench = Known::of(|s| if *s == start { 1e6 } else { 0.95e6 }, 0.0, 1);
        let out = search(&start, &grid(&start), &[], EFFORT, &mut bench).ok_or("no outcome")?;
        assert_eq!((out.best, out.best_cost), (start, 1e6));
        Ok(())
    }

    #[test]
    fn searches_that_are_done_again_end_the_same() -> Result<(), String> {
        let start = start()?;
        let winner = |seed: u64| {
            let cost = |s: &Schedule| 1e8 / of(s).0.sqrt() * (1.0 + 0.3 * (of(s).1.log2() - 11.0).abs());
            search(&start, &grid(&start), &[], EFFORT, &mut Known::of(cost, 0.04, seed)).map(|o| o.best)
        };
        let all: Vec<_> = (1..=20).map(winner).collect();
        let same = all.iter().filter(|w| **w == all[0]).count();
        assert!(same >= 19, "{same} of 20 are the same");
        Ok(())
    }
}
