//! What is expected of schedules that nobody measured: a Gaussian process over the logarithm of what they cost, whose mean
//! without measurements is what the cost model says.
//!
//! Nothing in it is random. Every candidate keeps its row of the Cholesky factor of the covariance, so that a measurement costs
//! time in proportion to candidates and measurements, and not more.

use tessera_schedule::grid::Grid;

/// How far costs are from the model where nothing is known, as a logarithm.
const SPREAD: f64 = 0.25;
/// Noise of a measurement.
const NOISE: f64 = 0.02;
/// How far apart two schedules are that have little to say about each other.
const REACH: f64 = 1.5;
/// How much of the model's differences are believed, and between which bounds.
const BELIEF: f64 = 0.6;
const BELIEVED: (f64, f64) = (-0.5, 1.5);
/// An expected gain that is not worth a measurement.
const LEAST: f64 = 0.002;

#[derive(Clone)]
pub struct Surrogate {
    candidates: Vec<Candidate>,
}

#[derive(Clone)]
struct Candidate {
    place: Vec<f64>,
    /// What is expected of it, and how sure that is.
    mean: f64,
    variance: f64,
    /// Of the factor, a number for each measurement.
    row: Vec<f64>,
    /// Measured, or not to be.
    over: bool,
}

impl Surrogate {
    /// Nothing is measured yet. The first point of the grid costs 0.
    pub fn over(grid: &Grid) -> Surrogate {
        let candidate = |point: usize| {
            let mean = BELIEF * (grid.ns(point) / grid.ns(0)).ln();
            Candidate {
                place: grid.place(point),
                mean: mean.clamp(BELIEVED.0, BELIEVED.1),
                variance: SPREAD * SPREAD,
                row: vec![],
                over: false,
            }
        };
        Surrogate { candidates: (0..grid.len()).map(candidate).collect() }
    }

    /// A point was measured; it is not offered again.
    pub fn observe(&mut self, point: usize, cost: f64) {
        let at = &self.candidates[point];
        let (place, row) = (at.place.clone(), at.row.clone());
        let diagonal = (at.variance + NOISE * NOISE).sqrt();
        let news = (cost - at.mean) / diagonal;
        for c in &mut self.candidates {
            let apart: f64 = c.place.iter().zip(&place).map(|(a, b)| (a - b) * (a - b)).sum();
            let together = SPREAD * SPREAD * (-apart / (2.0 * REACH * REACH)).exp();
            let known: f64 = c.row.iter().zip(&row).map(|(a, b)| a * b).sum();
            let share = (together - known) / diagonal;
            c.row.push(share);
            c.mean += share * news;
            c.variance = (c.variance - share * share).max(0.0);
        }
        self.candidates[point].over = true;
    }

    /// A point that cannot be measured.
    pub fn exclude(&mut self, point: usize) {
        self.candidates[point].over = true;
    }

    /// So many points that fit, the most promising one after the other as if each cost what is expected of it: what is worth
    /// measuring before anything is.
    pub fn plan(&self, count: usize, fits: &dyn Fn(usize) -> bool) -> Vec<usize> {
        let (mut model, mut best, mut out) = (self.clone(), 0.0f64, vec![]);
        while out.len() < count {
            let Some(point) = model.next(best) else { break };
            if !fits(point) {
                model.exclude(point);
                continue;
            }
            let expected = model.candidates[point].mean;
            model.observe(point, expected);
            best = best.min(expected);
            out.push(point);
        }
        out
    }

    /// The point whose measurement promises most below `best`; of equal ones the first. `None` where nothing promises anything.
    pub fn next(&self, best: f64) -> Option<usize> {
        let open = self.candidates.iter().enumerate().filter(|(_, c)| !c.over);
        let gains = open.map(|(i, c)| (i, gain(best - c.mean, c.variance.sqrt())));
        let most = gains.fold(None, |most: Option<(usize, f64)>, g| match most {
            Some(m) if m.1 >= g.1 => Some(m),
            _ => Some(g),
        });
        most.filter(|m| m.1 >= LEAST).map(|m| m.0)
    }
}

/// The expected value of a normal number with this mean and deviation, where it is above 0, and 0 where it is below.
fn gain(mean: f64, deviation: f64) -> f64 {
    if deviation <= 0.0 {
        return mean.max(0.0);
    }
    let z = mean / deviation;
    let density = (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    mean * below(z, density) + deviation * density
}

/// The share of a normal distribution below `z`, to seven digits (Abramowitz and Stegun, 26.2.17).
fn below(z: f64, density: f64) -> f64 {
    const FACTORS: [f64; 5] = [0.319_381_530, -0.356_563_782, 1.781_477_937, -1.821_255_978, 1.330_274_429];
    let t = 1.0 / (1.0 + 0.231_641_9 * z.abs());
    let tail = density * FACTORS.iter().rev().fold(0.0, |sum, f| (sum + f) * t);
    if z < 0.0 { tail } else { 1.0 - tail }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(places: &[f64]) -> Surrogate {
        let candidate =
            |p: &f64| Candidate { place: vec![*p], mean: 0.0, variance: SPREAD * SPREAD, row: vec![], over: false };
        Surrogate { candidates: places.iter().map(candidate).collect() }
    }

    #[test]
    fn a_measurement_tells_about_its_neighbours() {
        let mut model = line(&[0.0, 0.5, 4.0, 20.0]);
        model.observe(0, -0.2);
        let mean = |i: usize| model.candidates[i].mean;
        assert!((mean(0) + 0.2).abs() < 0.01 && mean(1) < -0.15 && mean(2) > -0.02 && mean(3).abs() < 1e-9);
        // The neighbour is known too well to promise more than what nobody knows anything about.
        assert_eq!(model.next(-0.2), Some(2));
    }

    #[test]
    fn what_was_measured_is_met_and_nothing_is_asked_twice() {
        let places: Vec<f64> = (0..40).map(|i| f64::from(i) * 0.4).collect();
        let mut model = line(&places);
        let cost = |p: f64| 0.02 * (p - 9.0).powi(2) - 0.5;
        let (mut best, mut count) = (f64::INFINITY, 0);
        model.observe(0, cost(0.0));
        while let Some(next) = model.next(best.min(cost(0.0))) {
            let y = cost(places[next]);
            model.observe(next, y);
            assert!((model.candidates[next].mean - y).abs() < 0.05);
            (best, count) = (best.min(y), count + 1);
        }
        assert!(best < -0.498 && count < 25, "{best} after {count}");
    }

    #[test]
    fn gains_of_a_normal_number() {
        assert!((gain(0.0, 1.0) - 0.398_942).abs() < 1e-6);
        assert!((gain(1.0, 1.0) - 1.083_315).abs() < 1e-6);
        assert!((gain(-1.0, 1.0) - 0.083_315).abs() < 1e-6);
        assert_eq!((gain(-1.0, 0.0), gain(2.0, 0.0)), (0.0, 2.0));
    }
}
