//! How many elements a slice takes, with Python's clamping, over symbolic sizes.

use std::collections::BTreeSet;
use tessera_base::{Facts, Size, SizeVar, Verdict};

/// One of the three parts of a slice.
#[derive(Clone, Copy, Debug)]
pub enum Bound<'a> {
    Omitted,
    /// An int of which nothing is known.
    Unknown,
    At(&'a Size),
}

/// The length of `[low:high:step]` of a dim of size `d`, where it can be told: exact for all
/// values of the variables. `None` where only a run knows it. The step is not 0.
pub fn slice_size(d: &Size, low: Bound, high: Bound, step: Bound) -> Option<Size> {
    let step = match step {
        Bound::Omitted => 1,
        Bound::Unknown => return None,
        Bound::At(s) => s.as_const()?,
    };
    if let (Some(n), Some(low), Some(high)) = (d.as_const(), constant(low), constant(high)) {
        return Some(Size::constant(constant_length(n, low, high, step)));
    }
    match (step > 0, low, high) {
        (true, ..) => strided(&forward(d, low, high)?, step),
        (false, Bound::Omitted, Bound::Omitted) => strided(d, step.checked_neg()?),
        (false, ..) => None,
    }
}

/// `Some(None)` where the bound is left out.
fn constant(bound: Bound) -> Option<Option<i64>> {
    match bound {
        Bound::Omitted => Some(None),
        Bound::Unknown => None,
        Bound::At(s) => s.as_const().map(Some),
    }
}

/// Python's rule on numbers.
fn constant_length(n: i64, low: Option<i64>, high: Option<i64>, step: i64) -> i64 {
    let (least, most) = if step > 0 { (0, n) } else { (-1, n - 1) };
    let place = |bound: Option<i64>, default: i64| match bound {
        None => default,
        Some(b) if b < 0 => b.saturating_add(n).clamp(least, most),
        Some(b) => b.clamp(least, most),
    };
    let (low, high) = if step > 0 { (place(low, 0), place(high, n)) } else { (place(low, n - 1), place(high, -1)) };
    let (length, stride) = if step > 0 { (high - low, step) } else { (low - high, step.saturating_neg()) };
    if length <= 0 { 0 } else { (length - 1) / stride + 1 }
}

/// The number of steps in `length`.
fn strided(length: &Size, step: i64) -> Option<Size> {
    if step == 1 {
        return Some(length.clone());
    }
    length.add(&Size::constant(step - 1)).floor_div(&Size::constant(step))
}

/// The length of `[low:high]`.
fn forward(d: &Size, low: Bound, high: Bound) -> Option<Size> {
    let known = |s: &Size| not_negative(s, d);
    let zero = Size::constant(0);
    let start = place(d, low, &zero)?;
    let stop = place(d, high, d)?;
    // `x[2:]` of N: max(N - 2, 0) reads better than N - min(2, N).
    if matches!(high, Bound::Omitted)
        && let Bound::At(b) = low
        && known(b)
        && !known(&d.sub(b))
    {
        return Some(d.sub(b).greatest(&zero));
    }
    if start.is_zero() {
        return Some(stop);
    }
    let length = stop.sub(&start);
    Some(if known(&length) || stop == *d {
        length
    } else if known(&length.neg()) {
        zero
    } else {
        length.greatest(&zero)
    })
}

/// Where a bound lies after counting from the end and clamping to `0..=d`.
fn place(d: &Size, bound: Bound, default: &Size) -> Option<Size> {
    let b = match bound {
        Bound::Omitted => return Some(default.clone()),
        Bound::Unknown => return None,
        Bound::At(b) => b,
    };
    let known = |s: &Size| not_negative(s, d);
    let zero = Size::constant(0);
    if known(b) {
        return Some(if known(&d.sub(b)) {
            b.clone()
        } else if known(&b.sub(d)) {
            d.clone()
        } else {
            b.least(d)
        });
    }
    // Below zero for all values: at most -1.
    if known(&b.neg().sub(&Size::constant(1))) {
        let from_end = d.add(b);
        return Some(if known(&from_end) {
            from_end
        } else if known(&from_end.neg()) {
            zero
        } else {
            from_end.greatest(&zero)
        });
    }
    None
}

/// Whether the size is at least 0 for all sizes of at least 1. Only variables of signatures
/// and those of the dim `d` are known to be sizes; an int from data may be negative.
fn not_negative(s: &Size, d: &Size) -> bool {
    if let Some(n) = s.as_const() {
        return n >= 0;
    }
    let dim: BTreeSet<SizeVar> = d.vars();
    if s.vars().iter().any(|v| !v.rigid && !dim.contains(v)) {
        return false;
    }
    // Written in v - 1 for each variable v, all coefficients must be at least 0.
    let shifted = s.substitute(&mut |v| Some(Size::var(v.clone()).add(&Size::constant(1))));
    let Some(least) = shifted.eval(&|_| Some(0)).filter(|&n| n >= 0) else { return false };
    let rest = shifted.sub(&Size::constant(least));
    match rest.compare(&Size::constant(0), &Facts::default()) {
        Verdict::Equal => true,
        Verdict::Differ(w) => w.left > 0,
        Verdict::Depends(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn var(id: u32, name: &str, rigid: bool) -> Size {
        Size::var(SizeVar { id, name: name.into(), rigid, each: false })
    }

    fn length(d: &Size, low: Option<&Size>, high: Option<&Size>, step: Option<i64>) -> String {
        let step = step.map(Size::constant);
        let low = low.map_or(Bound::Omitted, Bound::At);
        let high = high.map_or(Bound::Omitted, Bound::At);
        let step = step.as_ref().map_or(Bound::Omitted, Bound::At);
        slice_size(d, low, high, step).map_or("?".into(), |s| s.to_string())
    }

    #[test]
    fn constants_clamp_as_in_python() {
        let d = Size::constant(5);
        let at = |l: i64, h: i64, s: i64| length(&d, Some(&l.into()), Some(&h.into()), Some(s));
        assert_eq!(at(1, 3, 1), "2");
        assert_eq!(at(-2, 9, 1), "2");
        assert_eq!(at(4, 1, 1), "0");
        assert_eq!(at(4, 0, -2), "2");
        assert_eq!(length(&d, None, None, Some(-1)), "5");
        assert_eq!(length(&d, None, None, Some(2)), "3");
    }

    #[test]
    fn symbolic_lengths() {
        let n = var(0, "N", true);
        let one = Size::constant(1);
        let minus = Size::constant(-1);
        assert_eq!(length(&n, None, None, None), "N");
        assert_eq!(length(&n, Some(&one), None, None), "N - 1");
        assert_eq!(length(&n, None, Some(&minus), None), "N - 1");
        assert_eq!(length(&n, Some(&2.into()), None, None), "max(N - 2, 0)".replace("N - 2, 0", &max_order(&n)));
        assert_eq!(length(&n, None, None, Some(2)), "(N + 1)//2");
        assert_eq!(length(&n.scale(2), None, Some(&n), None), "N");
        assert_eq!(length(&n.scale(2), Some(&n), None, None), "N");
        let i = var(1, "i", false);
        assert_eq!(length(&n, Some(&i), Some(&i.add(&4.into())), None), "?");
    }

    /// The operands of `max` print in the order of their normal forms.
    fn max_order(n: &Size) -> String {
        let (a, b) = (n.sub(&2.into()), Size::constant(0));
        if a <= b { format!("{a}, {b}") } else { format!("{b}, {a}") }
    }
}
