//! What is known of host numbers that a graph computes: between which bounds they lie. Where that shows that an
//! operation has a value for all of them, it needs no check in the graph.

use super::scalar::{Known, ScalarOp};
use tessera_ops::numbers::NumberOp;
use tessera_ops::scalar::Kind;

/// Both bounds included.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Range {
    Int(i64, i64),
    /// Of no NaN.
    Float(f64, f64),
    Unknown,
}

impl Range {
    pub fn of(value: Known) -> Range {
        match value {
            Known::Int(n) => Range::Int(n, n),
            Known::Float(x) if !x.is_nan() => Range::Float(x, x),
            _ => Range::Unknown,
        }
    }

    fn ints(self) -> (i128, i128) {
        match self {
            Range::Int(a, b) => (a.into(), b.into()),
            _ => (i64::MIN.into(), i64::MAX.into()),
        }
    }

    fn floats(self) -> Option<(f64, f64)> {
        if let Range::Float(a, b) = self { Some((a, b)) } else { None }
    }

    pub fn and(self, other: Range) -> Range {
        match (self, other) {
            (Range::Int(a, b), Range::Int(c, d)) => Range::Int(a.min(c), b.max(d)),
            (Range::Float(a, b), Range::Float(c, d)) => Range::Float(a.min(c), b.max(d)),
            _ => Range::Unknown,
        }
    }
}

/// The least and greatest of these, so far as they are ints; and whether they are.
fn of_ints(values: &[i128]) -> (Range, bool) {
    let (low, high) = (values.iter().min().copied().unwrap_or(0), values.iter().max().copied().unwrap_or(0));
    let clamp = |n: i128| n.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
    let (a, b) = (clamp(low), clamp(high));
    (Range::Int(a, b), (i128::from(a), i128::from(b)) == (low, high))
}

fn of_floats(values: &[f64]) -> Range {
    if values.iter().any(|x| x.is_nan()) {
        return Range::Unknown;
    }
    let (low, high) = (f64::INFINITY, f64::NEG_INFINITY);
    Range::Float(values.iter().copied().fold(low, f64::min), values.iter().copied().fold(high, f64::max))
}

/// Where results lie, and whether the operation has a value for all operands within their ranges.
pub fn outcome(op: ScalarOp, x: &[Range]) -> (Range, bool) {
    let at = |i: usize| x.get(i).copied().unwrap_or(Range::Unknown);
    let op = match op {
        ScalarOp::Number(op) => op,
        ScalarOp::Position { size: n, .. } => {
            let ((a, b), n) = (at(0).ints(), i128::from(n));
            return (Range::Int(0, i64::try_from(n - 1).unwrap_or(i64::MAX).max(0)), -n <= a && b < n);
        }
    };
    let def = op.def();
    match (def.takes, def.gives) {
        ([Kind::I64, ..], Kind::I64) => of_ints_op(op, at(0).ints(), at(1).ints()),
        ([Kind::F64, Kind::F64], Kind::F64) => of_floats_op(op, at(0), at(1)),
        ([Kind::I64], Kind::F64) => match at(0) {
            Range::Int(a, b) => (Range::Float(a as f64, b as f64), true),
            _ => (Range::Float(i64::MIN as f64, i64::MAX as f64), true),
        },
        ([Kind::Bool], Kind::I64) => (Range::Int(0, 1), true),
        ([Kind::F64], Kind::I64) => of_rounding(op, at(0)),
        ([Kind::F64], Kind::F64) => of_function(op, at(0)),
        // Comparisons and what is asked of numbers.
        _ => (Range::Unknown, def.check.is_none()),
    }
}

fn of_ints_op(op: NumberOp, (a, b): (i128, i128), (c, d): (i128, i128)) -> (Range, bool) {
    let whole = Range::Int(i64::MIN, i64::MAX);
    match op {
        NumberOp::int_neg => of_ints(&[-a, -b]),
        NumberOp::int_abs => {
            let least = if a <= 0 && b >= 0 { 0 } else { a.abs().min(b.abs()) };
            of_ints(&[least, a.abs(), b.abs()])
        }
        NumberOp::int_invert => of_ints(&[-1 - a, -1 - b]),
        NumberOp::int_min => of_ints(&[a.min(c), b.min(d)]),
        NumberOp::int_max => of_ints(&[a.max(c), b.max(d)]),
        NumberOp::int_add => of_ints(&[a + c, b + d]),
        NumberOp::int_sub => of_ints(&[a - d, b - c]),
        NumberOp::int_mul => of_ints(&[a * c, a * d, b * c, b * d]),
        NumberOp::int_floor_div => {
            if c <= 0 && d >= 0 {
                return (whole, false);
            }
            // The quotient rounds down, whatever the signs.
            let floor = |x: i128, y: i128| x.div_euclid(y) - i128::from(y < 0 && x.rem_euclid(y) != 0);
            of_ints(&[floor(a, c), floor(a, d), floor(b, c), floor(b, d)])
        }
        NumberOp::int_mod if c > 0 && a >= 0 && b < c => of_ints(&[a, b]),
        NumberOp::int_mod if c > 0 => of_ints(&[0, d - 1]),
        NumberOp::int_mod if d < 0 => of_ints(&[c + 1, 0]),
        NumberOp::int_mod => (whole, false),
        NumberOp::int_pow => {
            let most = a.abs().max(b.abs());
            let power = u32::try_from(d).ok().filter(|_| c >= 0).and_then(|d| most.max(1).checked_pow(d));
            match power {
                Some(p) if p <= i128::from(i64::MAX) => of_ints(&[if a >= 0 { 0 } else { -p }, p]),
                _ => (whole, false),
            }
        }
        NumberOp::int_and if a >= 0 => of_ints(&[0, b]),
        NumberOp::int_and if c >= 0 => of_ints(&[0, d]),
        NumberOp::int_shl if c < 0 || d > 62 => (whole, false),
        NumberOp::int_shl => of_ints(&[a << c, a << d, b << c, b << d]),
        NumberOp::int_shr => (of_ints(&[a.min(0), b.max(0)]).0, c >= 0),
        _ => (whole, op.def().check.is_none()),
    }
}

fn of_floats_op(op: NumberOp, x: Range, y: Range) -> (Range, bool) {
    let zero = y.floats().is_none_or(|(c, d)| c <= 0.0 && d >= 0.0);
    let corners = |f: fn(f64, f64) -> f64| match (x.floats(), y.floats()) {
        (Some((a, b)), Some((c, d))) => of_floats(&[f(a, c), f(a, d), f(b, c), f(b, d)]),
        _ => Range::Unknown,
    };
    match op {
        NumberOp::float_add => (corners(|a, b| a + b), true),
        NumberOp::float_sub => (corners(|a, b| a - b), true),
        NumberOp::float_mul => (corners(|a, b| a * b), true),
        NumberOp::float_div if zero => (Range::Unknown, true),
        NumberOp::int_div if zero => (Range::Unknown, false),
        NumberOp::float_div | NumberOp::int_div => (corners(|a, b| a / b), true),
        NumberOp::float_floor_div | NumberOp::float_mod => (Range::Unknown, !zero),
        _ => (Range::Unknown, op.def().check.is_none()),
    }
}

/// Whole numbers of floats. They grow with what is rounded, so the ends decide.
fn of_rounding(op: NumberOp, x: Range) -> (Range, bool) {
    let Some((a, b)) = x.floats() else { return (Range::Unknown, op.def().check.is_none()) };
    match (op.apply(a.to_bits(), 0), op.apply(b.to_bits(), 0)) {
        (Ok(low), Ok(high)) => (Range::Int(low as i64, high as i64), true),
        _ => (Range::Unknown, false),
    }
}

/// A function of one float. The domains are intervals, so their ends decide.
fn of_function(op: NumberOp, x: Range) -> (Range, bool) {
    let check = op.def().check;
    let Some((a, b)) = x.floats() else { return (Range::Unknown, check.is_none()) };
    let holds = |v: f64| check.is_none_or(|c| c.holds(v.to_bits(), v.to_bits()));
    let range = if op == NumberOp::float_neg { Range::Float(-b, -a) } else { Range::Unknown };
    (range, holds(a) && holds(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every result of operands within ranges lies within the range that is told, and where the operation is said to
    /// have a value it has one.
    #[test]
    fn ranges_hold() {
        let ends = [i64::MIN, -(1 << 40), -7, -2, -1, 0, 1, 2, 3, 62, 63, 64, 1 << 40, i64::MAX];
        for op in NumberOp::ALL.iter().filter(|op| op.def().takes == [Kind::I64; 2] && op.def().gives == Kind::I64) {
            let op = ScalarOp::from(*op);
            for (i, &a) in ends.iter().enumerate() {
                for &b in &ends[i..] {
                    for (j, &c) in ends.iter().enumerate() {
                        for &d in &ends[j..] {
                            let (range, safe) = outcome(op, &[Range::Int(a, b), Range::Int(c, d)]);
                            let Range::Int(low, high) = range else { panic!("{op:?} of ints") };
                            let inside =
                                |low: i64, high: i64| ends.into_iter().filter(move |n| (low..=high).contains(n));
                            for x in inside(a, b) {
                                for y in inside(c, d) {
                                    match op.apply(&[Known::Int(x), Known::Int(y)]) {
                                        Ok(Known::Int(z)) => assert!(low <= z && z <= high, "{op:?} {x} {y} {range:?}"),
                                        _ => assert!(!safe, "{op:?} {x} {y}"),
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}
