//! How many elements a slice takes, with Python's clamping, over symbolic sizes.

use tessera_abi::slice::Slice;
use tessera_base::{Facts, Size};
use tessera_ops::surface::rule::least;

/// One of the three parts of a slice.
#[derive(Clone, Copy, Debug)]
pub enum Bound<'a> {
    Omitted,
    /// An int of which nothing is known.
    Unknown,
    At(&'a Size),
}

/// The length of `[low:high:step]` of a dim of size `d`, where it can be told: exact for all
/// values of the variables that the facts admit. `None` where only a run knows it. The step is not 0, and `d` is a dim.
pub fn slice_size(facts: &Facts, d: &Size, low: Bound, high: Bound, step: Bound) -> Option<Size> {
    let step = match step {
        Bound::Omitted => 1,
        Bound::Unknown => return None,
        Bound::At(s) => s.as_const()?,
    };
    if let (Some(n), Some(low), Some(high)) = (d.as_const(), constant(low), constant(high)) {
        return Some(Size::constant(constant_length(n, low, high, step)));
    }
    match (step > 0, low, high) {
        (true, ..) => Some(forward(facts, d, low, high)?.ceil_div(step)),
        (false, Bound::Omitted, Bound::Omitted) => Some(d.ceil_div(step.saturating_neg())),
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

/// Python's rule on numbers; the step is not 0.
fn constant_length(n: i64, low: Option<i64>, high: Option<i64>, step: i64) -> i64 {
    Slice::of(n.max(0) as u64, low, high, Some(step)).map_or(0, |s| s.count as i64)
}

/// The length of `[low:high]`: from the start to the stop where the one lies before the other, else nothing. That neither
/// lies outside of `0..=d` matters only for a stop beyond the end and a start before the first element.
fn forward(facts: &Facts, d: &Size, low: Bound, high: Bound) -> Option<Size> {
    let known = |s: &Size| facts.at_least(s, 0);
    let zero = Size::constant(0);
    let start = match from_start(facts, d, low)? {
        None => zero.clone(),
        Some((start, true)) => start,
        // The last `n` elements: all where there are fewer.
        Some((start, false)) if matches!(high, Bound::Omitted) => return Some(least(facts, &d.sub(&start), d)),
        Some((start, false)) if known(&start) => start,
        Some((start, false)) => start.greatest(&zero),
    };
    let stop = match from_start(facts, d, high)? {
        None => d.clone(),
        Some((stop, true)) => least(facts, &stop, d),
        Some((stop, false)) => stop,
    };
    let length = stop.sub(&start);
    Some(if known(&length) {
        length
    } else if known(&length.neg()) {
        zero
    } else {
        length.greatest(&zero)
    })
}

/// A bound counted from the start of the dim, and whether the program counts it so (else it may lie before the start).
/// `Some(None)` where it is left out, `None` where its sign is not known.
#[allow(clippy::option_option, reason = "left out, and not known")]
fn from_start(facts: &Facts, d: &Size, bound: Bound) -> Option<Option<(Size, bool)>> {
    let b = match bound {
        Bound::Omitted => return Some(None),
        Bound::Unknown => return None,
        Bound::At(b) => b,
    };
    if facts.at_least(b, 0) {
        return Some(Some((b.clone(), true)));
    }
    facts.at_least(&Size::constant(-1).sub(b), 0).then(|| Some((d.add(b), false)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tessera_base::SizeVar;

    fn var(id: u32, name: &str, rigid: bool) -> Size {
        Size::var(SizeVar { id, name: name.into(), rigid, natural: rigid, each: false })
    }

    fn length(facts: &Facts, d: &Size, low: Option<&Size>, high: Option<&Size>, step: Option<i64>) -> String {
        let step = step.map(Size::constant);
        let low = low.map_or(Bound::Omitted, Bound::At);
        let high = high.map_or(Bound::Omitted, Bound::At);
        let step = step.as_ref().map_or(Bound::Omitted, Bound::At);
        slice_size(facts, d, low, high, step).map_or("?".into(), |s| s.to_string())
    }

    #[test]
    fn constants_clamp_as_in_python() {
        let none = Facts::default();
        let d = Size::constant(5);
        let at = |l: i64, h: i64, s: i64| length(&none, &d, Some(&l.into()), Some(&h.into()), Some(s));
        assert_eq!(at(1, 3, 1), "2");
        assert_eq!(at(-2, 9, 1), "2");
        assert_eq!(at(4, 1, 1), "0");
        assert_eq!(at(4, 0, -2), "2");
        assert_eq!(length(&none, &d, None, None, Some(-1)), "5");
        assert_eq!(length(&none, &d, None, None, Some(2)), "3");
    }

    #[test]
    fn symbolic_lengths() {
        let n = var(0, "N", true);
        let (one, two, minus) = (Size::constant(1), Size::constant(2), Size::constant(-1));
        let mut facts = Facts::default();
        let none = facts.clone();
        assert_eq!(length(&none, &n, None, None, None), "N");
        assert_eq!(length(&none, &n, Some(&one), None, None), "max(N - 1, 0)");
        assert_eq!(length(&none, &n, None, Some(&minus), None), "max(N - 1, 0)");
        assert_eq!(length(&none, &n, Some(&one), Some(&minus), None), "max(N - 2, 0)");
        assert_eq!(length(&none, &n, Some(&Size::constant(-3)), None, None), "min(3, N)");
        assert_eq!(length(&none, &n, None, Some(&two), None), "min(2, N)");
        assert_eq!(length(&none, &n, None, None, Some(2)), "(N + 1)//2");
        assert_eq!(length(&none, &n.scale(2), None, Some(&n), None), "N");
        assert_eq!(length(&none, &n.scale(2), Some(&n), None, None), "N");
        let i = var(1, "i", false);
        assert_eq!(length(&none, &n, Some(&i), Some(&i.add(&4.into())), None), "?");
        facts.assume_at_least(&n, &two);
        assert_eq!(length(&facts, &n, Some(&two), None, None), "N - 2");
        assert_eq!(length(&facts, &n, None, Some(&two), None), "2");
        assert_eq!(length(&facts, &n, Some(&Size::constant(-2)), None, None), "2");
        // A block of 4 from position i, which lies in the tensor.
        facts.assume_at_least(&i, &Size::constant(0));
        facts.assume_at_least(&n, &i.add(&4.into()));
        assert_eq!(length(&facts, &n, Some(&i), Some(&i.add(&4.into())), None), "4");
    }

    fn at(b: Option<&Size>) -> Bound<'_> {
        b.map_or(Bound::Omitted, Bound::At)
    }

    /// Every slice whose bounds have a known sign, against Python's rule at small values.
    #[test]
    fn lengths_are_those_of_python() {
        let (n, k) = (var(0, "N", true), var(1, "k", false));
        let one = Size::constant(1);
        let mut facts = Facts::default();
        facts.assume_at_least(&k, &one);
        facts.assume_at_least(&n, &k);
        let half = n.floor_div(&2.into()).unwrap_or_default();
        let mut bounds: Vec<Size> = (-3..4).map(Size::constant).collect();
        bounds.extend([half, n.sub(&one), k.clone(), k.add(&one), k.neg(), n.sub(&k), k.least(&n), n.clone()]);
        let all = || std::iter::once(None).chain(bounds.iter().map(Some));
        for (low, high) in all().flat_map(|low| all().map(move |high| (low, high))) {
            for step in 1..4 {
                let length = slice_size(&facts, &n, at(low), at(high), Bound::At(&Size::constant(step)));
                let Some(length) = length else { panic!("[{low:?}:{high:?}] is not known") };
                for (big, small) in (1..8).flat_map(|big| (1..=big).map(move |small| (big, small))) {
                    let value = |s: &Size| s.eval(&|v| Some(if v.id == 0 { big } else { small }));
                    let want = constant_length(big, low.and_then(&value), high.and_then(&value), step);
                    assert_eq!(value(&length), Some(want), "N={big} k={small} [{low:?}:{high:?}:{step}] {length}");
                }
            }
        }
    }
}
