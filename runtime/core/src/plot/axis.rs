//! Axes: which values they span, and where their ticks are.

/// The range of an axis and its ticks, ascending.
#[derive(Clone, PartialEq, Debug)]
pub struct Axis {
    pub low: f64,
    pub high: f64,
    pub ticks: Vec<(f64, String)>,
}

impl Axis {
    /// An axis over the finite ones of the values with about `wanted` ticks; `margin` is the share of the range that
    /// is left free at both ends.
    pub fn over(values: impl Iterator<Item = f64>, wanted: usize, margin: f64) -> Axis {
        let (low, high) = range(values);
        let free = (high - low) * margin;
        let (low, high) = (low - free, high + free);
        Axis { low, high, ticks: ticks(low, high, wanted) }
    }

    /// An axis over logarithms to base 10.
    pub fn over_logs(values: impl Iterator<Item = f64>, margin: f64) -> Axis {
        let (low, high) = range(values);
        let free = (high - low) * margin;
        let (low, high) = (low - free, high + free);
        Axis { low, high, ticks: log_ticks(low, high) }
    }

    /// Where a value lies, 0 at the low end and 1 at the high one.
    pub fn share(&self, value: f64) -> f64 {
        (value - self.low) / (self.high - self.low)
    }
}

/// Least and greatest of the finite values, apart even where all are equal.
fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let finite = values.filter(|v| v.is_finite());
    let (low, high) = finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
    if low > high {
        return (0.0, 1.0);
    }
    // What is farther apart than a number holds, or closer than it tells apart, is drawn as one place.
    let apart = high - low;
    if apart.is_finite() && apart > low.abs().max(high.abs()) * 1e-12 {
        return (low, high);
    }
    let middle = (low / 2.0 + high / 2.0).clamp(-1e300, 1e300);
    let around = (middle.abs() * 0.1).max(0.5);
    (middle - around, middle + around)
}

/// The step of 1, 2 or 5 times a power of ten that gives about `wanted` ticks.
fn step(low: f64, high: f64, wanted: usize) -> f64 {
    let raw = (high - low) / wanted.max(1) as f64;
    let mut unit = 1.0;
    while unit * 10.0 <= raw {
        unit *= 10.0;
    }
    while unit > raw {
        unit /= 10.0;
    }
    [1.0, 2.0, 5.0].map(|k| k * unit).into_iter().find(|s| *s >= raw * 0.999).unwrap_or(unit * 10.0)
}

fn ticks(low: f64, high: f64, wanted: usize) -> Vec<(f64, String)> {
    let step = step(low, high, wanted);
    let (first, last) = ((low / step - 1e-9).ceil(), (high / step + 1e-9).floor());
    let mut out = vec![];
    let mut k = first;
    while k <= last && out.len() < 100 {
        // Away from 0 the sum of steps is rounded as the label is.
        out.push((k * step, number(k * step, step)));
        k += 1.0;
    }
    out
}

/// A tick's label with the digits that its step needs.
fn number(value: f64, step: f64) -> String {
    let value = if value == 0.0 { 0.0 } else { value };
    if value != 0.0 && !(1e-4..1e6).contains(&value.abs()) || !(1e-4..1e6).contains(&step) {
        let text = format!("{value:.2e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let digits = digits.trim_end_matches('0').trim_end_matches('.');
        return if value == 0.0 { "0".into() } else { format!("{digits}e{exponent}") };
    }
    let mut decimals = 0;
    let mut scaled = step;
    while decimals < 8 && (scaled - scaled.round()).abs() > scaled * 1e-6 {
        scaled *= 10.0;
        decimals += 1;
    }
    format!("{value:.decimals$}")
}

/// Ticks at powers of ten, and at 2 and 5 times them where there are few.
fn log_ticks(low: f64, high: f64) -> Vec<(f64, String)> {
    let powers = (low.floor() as i32..=high.ceil() as i32).collect::<Vec<_>>();
    let stride = (powers.len() / 8).max(1);
    let kept: &[f64] = if powers.len() > 4 { &[1.0] } else { &[1.0, 2.0, 5.0] };
    let mut out = vec![];
    for &p in powers.iter().step_by(stride) {
        for &k in kept {
            let at = f64::from(p) + k.log10();
            if (low..=high).contains(&at) {
                out.push((at, power(k, p)));
            }
        }
    }
    out
}

fn power(k: f64, p: i32) -> String {
    match p {
        0..=5 => format!("{}", k * 10f64.powi(p)),
        -4..=-1 => format!("{:.*}", p.unsigned_abs() as usize, k * 10f64.powi(p)),
        _ => format!("{k}e{p}"),
    }
}
