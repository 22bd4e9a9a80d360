//! Sizes in typing rules: equality with its error, products, extents of slices.

use crate::surface::{InferCx, OpError, OpTypes};
use tessera_abi::slice::{self, Slice};
use tessera_base::size::Witness;
use tessera_base::{Code, Facts, Reach, Size, TensorType, Verdict};

/// An error about two sizes, with the smallest counterexample and, for sizes that a signature
/// leaves open, why that is an error and what would prove it.
pub fn mismatch(
    facts: &Facts,
    code: Code,
    message: impl Into<String>,
    verdict: &Verdict,
    a: &Size,
    b: &Size,
) -> OpError {
    let error = OpError::new(code, message);
    match verdict {
        Verdict::Equal => error,
        // Two constants are their own witness.
        Verdict::Differ(_) if a.as_const().is_some() && b.as_const().is_some() => error,
        Verdict::Differ(w) => shown(error, w),
        Verdict::Depends(w) => {
            let error = shown(error, w)
                .note(format!("the sizes of a signature stand for all values, and nothing says that {a} equals {b}"));
            match (a.as_var(), b.as_var()) {
                (Some(a), Some(b)) => error.help(format!(
                    "use one name for both sizes where `{a}` and `{b}` are meant to be equal",
                    a = a.name,
                    b = b.name
                )),
                _ => match facts.advice_equal(a, b) {
                    Some(help) => error.help(help),
                    None => error,
                },
            }
        }
    }
}

fn shown(error: OpError, w: &Witness) -> OpError {
    if w.is_known() { error.witness(w) } else { error }
}

/// Requires two sizes to be equal; `blame` completes the error.
///
/// # Errors
/// `code` where they always differ, E0212 where they may differ for a rigid variable.
pub fn require(
    cx: &mut InferCx,
    a: &Size,
    b: &Size,
    code: Code,
    message: impl FnOnce() -> String,
    blame: impl FnOnce(OpError) -> OpError,
) -> Result<(), OpError> {
    let facts = cx.facts;
    cx.require_equal(a, b).map_err(|verdict| {
        let code = if matches!(verdict, Verdict::Depends(_)) && code == Code::E0202 { Code::E0212 } else { code };
        blame(mismatch(facts, code, message(), &verdict, a, b))
    })
}

/// Requires a size that is given to be at least 0; where an int decides, the operator compares when it runs. `blame`
/// completes the error.
///
/// # Errors
/// E0711 where it never is, E0212 where it may not be for a size of a signature.
pub fn require_natural(
    cx: &mut InferCx,
    size: &Size,
    message: impl FnOnce() -> String,
    blame: impl FnOnce(OpError) -> OpError,
) -> Result<(), OpError> {
    let zero = Size::constant(0);
    let of_int = size.vars().iter().any(|v| !v.rigid || !v.natural);
    if of_int && matches!(size.reach_stated(&zero, cx.facts), Reach::Depends(_)) {
        cx.reaches.push((size.clone(), zero));
        return Ok(());
    }
    require_reach(cx, size, &zero, Code::E0711, message, blame)
}

/// Requires `whole` to be at least `part`; `blame` completes the error.
///
/// # Errors
/// `code` where it never is, E0212 where it may not be for a rigid variable.
pub fn require_reach(
    cx: &mut InferCx,
    whole: &Size,
    part: &Size,
    code: Code,
    message: impl FnOnce() -> String,
    blame: impl FnOnce(OpError) -> OpError,
) -> Result<(), OpError> {
    let facts = cx.facts;
    cx.require_reach(whole, part).map_err(|reach| {
        let plain = whole.as_const().is_some() && part.as_const().is_some();
        blame(match &reach {
            Reach::Never(_) if plain => OpError::new(code, message()),
            Reach::Always => OpError::new(code, message()),
            Reach::Never(w) => shown(OpError::new(code, message()), w),
            Reach::Depends(w) => {
                let text = format!(
                    "the sizes of a signature stand for all values, and nothing says that {whole} is at least {part}"
                );
                let error = shown(OpError::new(Code::E0212, message()), w).note(text);
                match facts.advice_reach(whole, part) {
                    Some(help) => error.help(help),
                    None => error,
                }
            }
        })
    })
}

/// Requires two tensors, at parameters `i` and `j`, to have one shape.
pub fn same_shape(cx: &mut InferCx, a: (usize, &TensorType), b: (usize, &TensorType)) -> Result<(), OpError> {
    let ((i, x), (j, y)) = (a, b);
    let blame = |e: OpError| e.arg(i, x.to_string()).arg(j, y.to_string());
    if x.rank() != y.rank() {
        let text = format!("tensors of one shape are needed, and the ranks are {} and {}", x.rank(), y.rank());
        return Err(blame(OpError::new(Code::E0207, text)));
    }
    for (d, (m, n)) in x.shape.iter().zip(&y.shape).enumerate() {
        let text = || format!("tensors of one shape are needed, and the sizes of axis {d} are {m} and {n}");
        require(cx, m, n, Code::E0202, text, blame)?;
    }
    Ok(())
}

/// The size, where its arithmetic stayed in 64 bits: parameters make sizes of any magnitude. `what` has this size.
///
/// # Errors
/// E0711, which `blame` completes with the parameters.
pub fn counted(
    size: Size,
    what: impl FnOnce() -> String,
    blame: impl FnOnce(OpError) -> OpError,
) -> Result<Size, OpError> {
    if !size.overflowed() {
        return Ok(size);
    }
    let text = format!("{} more elements than 64 bits count (2^63 - 1)", what());
    Err(blame(OpError::new(Code::E0711, text)))
}

/// The numbers in `start, start + step, …` before `stop`; the step is not 0.
pub fn steps(facts: &Facts, start: &Size, stop: &Size, step: i64) -> Size {
    if let (Some(start), Some(stop)) = (start.as_const(), stop.as_const()) {
        return Size::wide(slice::count(start, stop, step).unwrap_or(0).into());
    }
    let span = if step > 0 { stop.sub(start) } else { start.sub(stop) };
    greatest(facts, &span.ceil_div(step.saturating_abs()), &Size::constant(0))
}

/// Checks what a rule gave: every size fits 64 bits, and so does the number of bytes of what is known. `ints` are the
/// parameters with the ints that were given for them.
///
/// # Errors
/// E0710.
pub fn room<'a>(
    name: &str,
    types: &OpTypes,
    ints: impl FnOnce() -> Vec<(usize, &'a str, String)>,
) -> Result<(), OpError> {
    let all = match types {
        OpTypes::One(t) => std::slice::from_ref(t),
        OpTypes::Many(ts) => ts,
    };
    let bytes = |t: &TensorType| {
        let sizes: Option<Vec<i64>> = t.shape.iter().map(Size::as_const).collect();
        let each = t.dtype.map_or(1, |d| d.bytes() as i64);
        match sizes {
            Some(sizes) if !sizes.contains(&0) => {
                sizes.iter().try_fold(each, |n, s| n.checked_mul((*s).max(1))).is_some()
            }
            _ => true,
        }
    };
    if all.iter().all(|t| t.shape.iter().all(|s| !s.overflowed()) && bytes(t)) {
        return Ok(());
    }
    let ints = ints();
    let given: Vec<String> = ints.iter().map(|(_, name, text)| format!("{name}={text}")).collect();
    let with = if given.is_empty() { String::new() } else { format!(" with {}", given.join(", ")) };
    let text = format!("`{name}`{with} would make a tensor of more than 2^63 - 1 bytes");
    Err(ints.iter().fold(OpError::new(Code::E0710, text), |e, (i, _, text)| e.arg(*i, text.clone())))
}

pub fn product(sizes: &[Size]) -> Size {
    sizes.iter().fold(Size::constant(1), |n, s| n.mul(s))
}

/// Start and length of Python's slice `start:stop:step` over a dim of `size` elements: negative
/// positions count from the end, bounds are clamped. `None` for a step of 0, and for a position whose sign is not known.
///
/// The start is a position (not negative) and the elements are `start + i * step`.
pub fn extent(
    facts: &Facts,
    size: &Size,
    start: Option<&Size>,
    stop: Option<&Size>,
    step: i64,
) -> Option<(Size, Size)> {
    let numbers = [size, start.unwrap_or(size), stop.unwrap_or(size)].map(Size::as_const);
    if let [Some(n), low, high] = numbers
        && low.is_some()
        && high.is_some()
    {
        let slice = Slice::of(n.max(0) as u64, start.and(low), stop.and(high), Some(step))?;
        return Some((Size::constant(slice.start), Size::constant(slice.count as i64)));
    }
    let (zero, minus) = (Size::constant(0), Size::constant(-1));
    let last = size.sub(&Size::constant(1));
    // Positions are clamped to 0..=size going up and to -1..=size-1 going down.
    let (low, high) = if step > 0 { (&zero, size) } else { (&minus, &last) };
    let counted = |at: &Size| {
        if facts.at_least(at, 0) { Some(at.clone()) } else { facts.at_least(&minus.sub(at), 0).then(|| size.add(at)) }
    };
    let (first, end) = if step > 0 { (&zero, size) } else { (&last, &minus) };
    let from = start.map_or_else(|| Some(first.clone()), counted)?;
    let to = stop.map_or_else(|| Some(end.clone()), counted)?;
    // A start beyond the end and a stop before the start leave nothing, clamped or not.
    let (far, near) = if step > 0 {
        (least(facts, &to, high), greatest(facts, &from, low))
    } else {
        (least(facts, &from, high), greatest(facts, &to, low))
    };
    let span = far.sub(&near);
    let length = greatest(facts, &span, &zero).ceil_div(step.saturating_abs());
    Some((least(facts, &greatest(facts, &from, low), high), length))
}

/// The smaller one; one of the two where the facts say which.
pub fn least(facts: &Facts, a: &Size, b: &Size) -> Size {
    if a.as_const().is_some() && b.as_const().is_some() {
        a.least(b)
    } else if facts.at_least(&b.sub(a), 0) {
        a.clone()
    } else if facts.at_least(&a.sub(b), 0) {
        b.clone()
    } else {
        a.least(b)
    }
}

/// The larger one; one of the two where the facts say which.
pub fn greatest(facts: &Facts, a: &Size, b: &Size) -> Size {
    if a.as_const().is_some() && b.as_const().is_some() {
        a.greatest(b)
    } else if facts.at_least(&a.sub(b), 0) {
        a.clone()
    } else if facts.at_least(&b.sub(a), 0) {
        b.clone()
    } else {
        a.greatest(b)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tessera_base::SizeVar;

    #[test]
    fn slices_follow_python() {
        let n = |v: i64| Size::constant(v);
        for (size, start, stop, step) in (0..6)
            .flat_map(|s| (-7..7).flat_map(move |a| (-7..7).flat_map(move |b| [-2, -1, 1, 2, 3].map(|c| (s, a, b, c)))))
        {
            let (first, length) =
                extent(&Facts::default(), &n(size), Some(&n(start)), Some(&n(stop)), step).unwrap_or_default();
            let got: Vec<i64> =
                (0..length.as_const().unwrap_or(-1)).map(|i| first.as_const().unwrap_or(-9) + i * step).collect();
            // Python's definition.
            let fix = |v: i64| {
                let v = if v < 0 { v + size } else { v };
                if step > 0 { v.clamp(0, size) } else { v.clamp(-1, size - 1) }
            };
            let (mut at, end, mut want) = (fix(start), fix(stop), vec![]);
            while if step > 0 { at < end } else { at > end } {
                want.push(at);
                at += step;
            }
            assert_eq!(got, want, "size {size} [{start}:{stop}:{step}]");
        }
    }

    #[test]
    fn all_but_the_last_of_n_is_n_minus_1() {
        let size = Size::var(SizeVar { id: 0, name: "N".into(), rigid: true, natural: true, each: false });
        let length = |facts: &Facts, start: Option<i64>, stop: Option<i64>| {
            extent(facts, &size, start.map(Size::constant).as_ref(), stop.map(Size::constant).as_ref(), 1)
                .map(|(_, l)| l.to_string())
        };
        let mut facts = Facts::default();
        assert_eq!(length(&facts, None, Some(-1)).as_deref(), Some("max(N - 1, 0)"));
        assert_eq!(length(&facts, Some(1), None).as_deref(), Some("max(N - 1, 0)"));
        assert_eq!(length(&facts, None, None).as_deref(), Some("N"));
        facts.assume_at_least(&size, &Size::constant(2));
        assert_eq!(length(&facts, None, Some(-1)).as_deref(), Some("N - 1"));
        assert_eq!(length(&facts, Some(2), None).as_deref(), Some("N - 2"));
    }
}
