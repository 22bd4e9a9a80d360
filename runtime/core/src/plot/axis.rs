//! Axes: which values they span, and where their ticks are.

/// The range of an axis and its ticks, ascending. Of a logarithmic axis, ends and ticks are logarithms to base 10.
#[derive(Clone, PartialEq, Debug)]
pub struct Axis {
    pub low: f64,
    pub high: f64,
    pub ticks: Vec<(f64, String)>,
    pub log: bool,
    /// Whether the low end is at the right or at the top.
    pub flipped: bool,
}

/// Which ends are given, in the units of the data.
pub type Ends = (Option<f64>, Option<f64>);

impl Axis {
    /// An axis over the finite ones of the values with about `wanted` ticks; `margin` is the share of the range that
    /// is left free at ends that are not given.
    pub fn over(values: impl Iterator<Item = f64>, ends: Ends, log: bool, wanted: usize, margin: f64) -> Axis {
        let scaled = |v: f64| if log { logarithm(v) } else { v };
        let found = range(values.map(scaled));
        let free = (found.1 / 2.0 - found.0 / 2.0) * 2.0 * margin;
        let free = if free.is_finite() { free } else { f64::MAX * margin };
        let automatic = ((found.0 - free).max(-f64::MAX), (found.1 + free).min(f64::MAX));
        let (low, high) = match (ends.0.map(scaled), ends.1.map(scaled)) {
            (Some(low), Some(high)) => (low, high),
            (Some(low), None) => (low, if automatic.1 > low { automatic.1 } else { low + 1.0f64.max(low.abs() * 0.1) }),
            (None, Some(high)) => {
                (if automatic.0 < high { automatic.0 } else { high - 1.0f64.max(high.abs() * 0.1) }, high)
            }
            (None, None) => automatic,
        };
        // Ends that are closer than their numbers tell apart are one place.
        let (low, high) = range([low, high].into_iter());
        let (low, high) = if log && high - low < 1e-9 { (low - 0.5, high + 0.5) } else { (low, high) };
        let ticks = if log { log_ticks(low, high, wanted) } else { ticks(low, high, wanted) };
        Axis { low, high, ticks, log, flipped: false }
    }

    /// Where a value lies, 0 at the left or at the bottom and 1 at the other end; `None` where it has no place.
    pub fn place(&self, value: f64) -> Option<f64> {
        let v = if self.log { logarithm(value) } else { value };
        v.is_finite().then(|| self.share(v))
    }

    /// Where a tick lies.
    pub fn share(&self, at: f64) -> f64 {
        // Halves: what is between two numbers may be more than a number holds.
        let share = (at / 2.0 - self.low / 2.0) / (self.high / 2.0 - self.low / 2.0);
        if self.flipped { 1.0 - share } else { share }
    }
}

/// NaN where there is none.
fn logarithm(v: f64) -> f64 {
    if v > 0.0 { v.log10() } else { f64::NAN }
}

/// Least and greatest of the finite values, apart even where all are equal.
pub fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let finite = values.filter(|v| v.is_finite());
    let (low, high) = finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
    if low > high {
        return (0.0, 1.0);
    }
    // What is closer than a number tells apart, or than steps can be counted, is drawn as one place.
    let apart = high / 2.0 - low / 2.0;
    if apart > (low.abs().max(high.abs()) * 1e-12).max(1e-290) {
        return (low, high);
    }
    let middle = (low / 2.0 + high / 2.0).clamp(-1e300, 1e300);
    let around = (middle.abs() * 0.1).max(0.5);
    (middle - around, middle + around)
}

/// The step of 1, 2 or 5 times a power of ten that gives about `wanted` ticks.
fn step(low: f64, high: f64, wanted: usize) -> f64 {
    let raw = (high / 2.0 - low / 2.0) / (wanted.max(2) as f64 / 2.0);
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
pub fn number(value: f64, step: f64) -> String {
    if value == 0.0 && !(1e-4..1e6).contains(&step) {
        return "0".into();
    }
    let value = if value == 0.0 { 0.0 } else { value };
    if value != 0.0 && !(1e-4..1e6).contains(&value.abs()) && (step >= 1e5 || value.abs() >= 1e6) || step < 1e-4 {
        // As many digits as tell neighbours apart.
        let digits = (value.abs() / step).log10().ceil().clamp(0.0, 15.0) as usize;
        let text = format!("{value:.digits$e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let digits = if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits };
        return format!("{digits}e{exponent}");
    }
    let mut decimals = 0;
    let mut scaled = step;
    while decimals < 8 && (scaled - scaled.round()).abs() > scaled * 1e-6 {
        scaled *= 10.0;
        decimals += 1;
    }
    format!("{value:.decimals$}")
}

/// Ticks at powers of ten, and at 2 and 5 times them where there are few; where not even that gives two, as on a straight axis.
fn log_ticks(low: f64, high: f64, wanted: usize) -> Vec<(f64, String)> {
    let powers = (low.floor() as i32..=high.ceil() as i32).collect::<Vec<_>>();
    let stride = powers.len().div_ceil(wanted.max(2) * 2).max(1);
    let kept: &[f64] = if powers.len() > 4 { &[1.0] } else { &[1.0, 2.0, 5.0] };
    let mut out = vec![];
    for &p in powers.iter().step_by(stride) {
        for &k in kept {
            let at = f64::from(p) + k.log10();
            if (low - 1e-9..=high + 1e-9).contains(&at) {
                out.push((at, power(k, p)));
            }
        }
    }
    if out.len() >= 2 {
        return out;
    }
    let ends = (10f64.powf(low), 10f64.powf(high));
    let straight = if ends.1.is_finite() { ticks(ends.0, ends.1, wanted) } else { vec![] };
    straight.into_iter().filter(|(v, _)| *v > 0.0).map(|(v, text)| (v.log10(), text)).collect()
}

fn power(k: f64, p: i32) -> String {
    match p {
        0..=5 => format!("{}", k * 10f64.powi(p)),
        -4..=-1 => format!("{:.*}", p.unsigned_abs() as usize, k * 10f64.powi(p)),
        _ => format!("{k}e{p}"),
    }
}
