//! Sums, products and extremes of many elements, with bounds that hold for every order.
//!
//! Of `n` terms each passes at most `n - 1` additions: the error is at most
//! `(n - 1)·u·Σ|x| / (1 - n·u)` with `u` half a unit in the last place of the accumulator
//! (Higham, Accuracy and Stability of Numerical Algorithms, 4.2). A fused chain of `k` products
//! rounds `k` times; what is below the normal numbers adds the least step per rounding.

use super::Array;
use super::movement::each;
use super::value::{TF32, Value, convert, format, limits, wrap};
use tessera_base::DType;
use tessera_ops::prim::{Reduction, Steps};

/// Above `1 / (1 - n·u)` for every length in the tests, and for what f64 itself rounds.
const HIGHER_ORDERS: f64 = 1.001;

/// Elements along some axes, for each index of the others.
fn lines(x: &Array, axes: &[usize]) -> Vec<Vec<usize>> {
    let kept: Vec<usize> = (0..x.shape.len()).filter(|d| !axes.contains(d)).collect();
    let count: usize = kept.iter().map(|&d| x.shape[d]).product();
    let mut out = vec![vec![]; count];
    let mut n = 0;
    each(&x.shape, |index| {
        let line = kept.iter().fold(0, |at, &d| at * x.shape[d] + index[d]);
        out[line].push(n);
        n += 1;
    });
    out
}

/// An accumulator of a type: what `kind` of some values is before it is rounded to the result's.
struct Fold {
    kind: Reduction,
    accum: DType,
    int: i64,
    lo: f64,
    hi: f64,
    /// Terms so far, and the sum of their magnitudes (of a product: of its factors' logarithms).
    count: f64,
    size: f64,
    /// What underflow of the terms may have cost.
    lost: f64,
    nan: bool,
    infinities: [bool; 2],
    unknown: bool,
}

impl Fold {
    fn new(kind: Reduction, accum: DType) -> Fold {
        let start = match kind {
            Reduction::Prod | Reduction::HalfProd => 1.0,
            Reduction::Max => f64::NEG_INFINITY,
            Reduction::Min => f64::INFINITY,
            _ => 0.0,
        };
        let int = match kind {
            Reduction::Prod | Reduction::All => 1,
            Reduction::Max => limits(accum).0,
            Reduction::Min => limits(accum).1,
            _ => 0,
        };
        Fold {
            kind,
            accum,
            int,
            lo: start,
            hi: start,
            count: 0.0,
            size: 0.0,
            lost: 0.0,
            nan: false,
            infinities: [false; 2],
            unknown: false,
        }
    }

    fn add(&mut self, v: Value) {
        self.count += 1.0;
        match v {
            Value::Int(n) => {
                self.int = match self.kind {
                    Reduction::Sum | Reduction::HalfSum => self.int.wrapping_add(n),
                    Reduction::Prod | Reduction::HalfProd => self.int.wrapping_mul(n),
                    Reduction::Max => self.int.max(n),
                    Reduction::Min => self.int.min(n),
                    Reduction::Any => self.int | i64::from(n != 0),
                    Reduction::All => self.int & i64::from(n != 0),
                }
            }
            Value::Any => self.unknown = true,
            Value::Nan => self.nan = true,
            Value::Real(lo, hi) => match self.kind {
                Reduction::Max => (self.lo, self.hi) = (self.lo.max(lo), self.hi.max(hi)),
                Reduction::Min => (self.lo, self.hi) = (self.lo.min(lo), self.hi.min(hi)),
                Reduction::Prod | Reduction::HalfProd => self.multiply(lo, hi),
                _ => self.term(lo, hi),
            },
        }
    }

    fn term(&mut self, lo: f64, hi: f64) {
        if lo.is_infinite() || hi.is_infinite() {
            self.unknown |= lo != hi;
            self.infinities[usize::from(lo < 0.0)] = true;
            return;
        }
        (self.lo, self.hi) = (self.lo + lo, self.hi + hi);
        self.size += lo.abs().max(hi.abs());
    }

    fn multiply(&mut self, lo: f64, hi: f64) {
        // Only single numbers; what their products in any order may reach decides the rest.
        self.unknown |= lo != hi;
        self.lo *= lo;
        if lo != 0.0 && lo.is_finite() {
            self.size += lo.abs().log2().abs();
        }
        self.nan |= self.lo.is_nan();
    }

    /// The value before the last rounding.
    fn value(&self) -> Value {
        if !self.accum.is_float() {
            return if self.unknown { Value::Any } else { Value::Int(wrap(self.accum, self.int)) };
        }
        let f = format(self.accum);
        match self.kind {
            _ if self.unknown => Value::Any,
            Reduction::Prod | Reduction::HalfProd => self.product(),
            _ if self.nan || self.infinities == [true; 2] => Value::Nan,
            Reduction::Max | Reduction::Min => Value::Real(self.lo, self.hi),
            _ => {
                let own = format(DType::F64).unit();
                let off = (self.count - 1.0).max(0.0) * (f.unit() + own) * self.size * HIGHER_ORDERS + self.lost;
                if self.size + off >= f.largest {
                    return Value::Any;
                }
                match self.infinities {
                    [true, _] => Value::point(f64::INFINITY),
                    [_, true] => Value::point(f64::NEG_INFINITY),
                    _ => Value::Real(self.lo - off, self.hi + off),
                }
            }
        }
    }

    fn product(&self) -> Value {
        let f = format(self.accum);
        // An infinity times zero is NaN in every order; with others only if it is reached.
        if self.nan {
            return Value::Nan;
        }
        let (highest, lowest) = (f.largest.log2() - 1.0, -f.smallest_normal().log2() - 1.0);
        if self.size >= highest.min(lowest) {
            return Value::Any;
        }
        let off = self.count * (f.unit() + format(DType::F64).unit()) * self.lo.abs() * HIGHER_ORDERS;
        if self.lo.is_infinite() { Value::point(self.lo) } else { Value::Real(self.lo - off, self.lo + off) }
    }
}

/// The type in which a reduction of `dtype` to `to` accumulates.
fn accumulator(kind: Reduction, dtype: DType) -> DType {
    match kind {
        Reduction::Any | Reduction::All => DType::Bool,
        Reduction::HalfSum | Reduction::HalfProd => DType::F16,
        _ => dtype.accumulator(),
    }
}

/// For complex elements each part by itself.
fn each_part(x: &Array, line: &[usize], mut f: impl FnMut(&mut dyn Iterator<Item = Value>)) {
    for part in 0..x.parts() {
        f(&mut line.iter().map(|&i| x.values[i * x.parts() + part]));
    }
}

fn part_types(x: &Array, to: DType) -> (DType, DType) {
    if x.dtype() == DType::C64 { (DType::F32, DType::F32) } else { (x.dtype(), to) }
}

pub fn reduce(kind: Reduction, axes: &[usize], x: &Array, to: DType) -> Vec<Value> {
    let (from, to) = part_types(x, to);
    let accum = accumulator(kind, from);
    if x.dtype() == DType::C64 && kind != Reduction::Sum {
        return vec![Value::Any; lines(x, axes).len() * 2];
    }
    let mut out = vec![];
    for line in lines(x, axes) {
        each_part(x, &line, |values| {
            let mut fold = Fold::new(kind, accum);
            values.for_each(|v| fold.add(convert(from, accum, v)));
            let extreme = matches!(kind, Reduction::Max | Reduction::Min) && from == to;
            out.push(match fold.value() {
                // One of the elements, which may be an infinity of e5m2.
                v @ Value::Real(lo, hi) if extreme && lo == hi => v,
                v => stored(accum, to, v),
            });
        });
    }
    out
}

/// Rounded to the result's type, also where the accumulator has the same: a range of reals
/// becomes one of its numbers.
fn stored(accum: DType, to: DType, v: Value) -> Value {
    match v {
        Value::Real(lo, hi) if accum == to && lo == hi => Value::Real(format(to).nearest(lo), format(to).nearest(hi)),
        _ => convert(accum, to, v),
    }
}

pub fn cumulate(kind: Reduction, axis: usize, x: &Array, to: DType) -> Vec<Value> {
    let parts = x.parts();
    let mut out = vec![Value::Any; x.values.len()];
    if x.dtype() == DType::C64 && kind != Reduction::Sum {
        return out;
    }
    let (from, to) = part_types(x, to);
    let accum = accumulator(kind, from);
    for line in lines(x, &[axis]) {
        for part in 0..parts {
            let mut fold = Fold::new(kind, accum);
            for &i in &line {
                fold.add(convert(from, accum, x.values[i * parts + part]));
                out[i * parts + part] = stored(accum, to, fold.value());
            }
        }
    }
    out
}

/// `base` plus the values whose target is known, all in the accumulator, rounded once.
pub fn added(base: &Array, values: &Array, mut target: impl FnMut(&[usize]) -> Option<usize>) -> Vec<Value> {
    let parts = base.parts();
    let (from, to) = part_types(base, base.dtype());
    let accum = accumulator(Reduction::Sum, from);
    let start = |&v: &Value| {
        let mut fold = Fold::new(Reduction::Sum, accum);
        fold.add(convert(from, accum, v));
        fold
    };
    let mut folds: Vec<Fold> = base.values.iter().map(start).collect();
    let (mut n, mut lost) = (0, false);
    let terms = part_types(values, to).0;
    each(&values.shape, |index| {
        match target(index) {
            Some(at) => {
                for p in 0..parts {
                    folds[at * parts + p].add(convert(terms, accum, values.values[n * parts + p]));
                }
            }
            None => lost = true,
        }
        n += 1;
    });
    folds.iter().map(|f| if lost { Value::Any } else { stored(accum, to, f.value()) }).collect()
}

/// The range of a product; nothing is known where one factor may be an infinity and is not one number.
fn times(a: Value, b: Value) -> Value {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => Value::Int(a.wrapping_mul(b)),
        (Value::Nan, _) | (_, Value::Nan) => Value::Nan,
        // A fused step adds before it rounds: the product alone may be too large and the sum not.
        (Value::Real(a, b), Value::Real(c, d)) if a == b && c == d => match a * c {
            p if p.is_infinite() && a.is_finite() && c.is_finite() => Value::Any,
            p => Value::point(p),
        },
        (Value::Real(a, b), Value::Real(c, d)) => {
            let all = [a * c, a * d, b * c, b * d];
            if all.iter().any(|p| !p.is_finite()) {
                return Value::Any;
            }
            Value::Real(
                all.iter().copied().fold(f64::INFINITY, f64::min),
                all.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            )
        }
        _ => Value::Any,
    }
}

fn negated(v: Value) -> Value {
    if let Value::Real(lo, hi) = v { Value::Real(-hi, -lo) } else { v }
}

/// `[batch…, m, k] @ [batch…, k, n]`.
pub fn dot(x: &Array, y: &Array, accum: DType, steps: Steps, to: DType) -> Vec<Value> {
    let rank = x.shape.len();
    let [m, k, n] = [x.shape[rank - 2], x.shape[rank - 1], y.shape[rank - 1]];
    let batch: usize = x.shape[..rank - 2].iter().product();
    let mut out = vec![];
    for (b, i, j) in (0..batch).flat_map(|b| (0..m).flat_map(move |i| (0..n).map(move |j| (b, i, j)))) {
        let pairs = steps.of(i, k).map(|l| ((b * m + i) * k + l, (b * k + l) * n + j));
        if x.dtype() == DType::C64 {
            let part = |at: usize, p: usize, of: &Array| of.values[2 * at + p];
            let (mut re, mut im) = (Fold::new(Reduction::Sum, DType::F32), Fold::new(Reduction::Sum, DType::F32));
            for (p, q) in pairs {
                let [a, b, c, d] = [part(p, 0, x), part(p, 1, x), part(q, 0, y), part(q, 1, y)];
                [times(a, c), negated(times(b, d))].into_iter().for_each(|t| product(&mut re, DType::F32, t, 1.0));
                [times(a, d), times(b, c)].into_iter().for_each(|t| product(&mut im, DType::F32, t, 1.0));
            }
            out.extend([re, im].map(|f| stored(DType::F32, DType::F32, f.value())));
            continue;
        }
        let mut fold = Fold::new(Reduction::Sum, accum);
        for (p, q) in pairs {
            let [a, b] = [factor(x.dtype(), accum, x.values[p]), factor(y.dtype(), accum, y.values[q])];
            // The instruction that takes bf16 in pairs reads numbers below the normal ones as zero
            // and gives zero for them.
            let (flushed, least) = match x.dtype() {
                DType::Bf16 => (flushed(a, b, accum), 2.0),
                _ => (0.0, 1.0),
            };
            product(&mut fold, accum, times(a, b), least);
            fold.lost += flushed;
        }
        out.push(stored(accum, to, fold.value()));
    }
    out
}

/// An operand of a product as it is multiplied: tf32 numbers lose all but 10 fraction bits.
fn factor(dtype: DType, accum: DType, v: Value) -> Value {
    match v {
        Value::Real(lo, hi) if dtype == DType::Tf32 => convert(DType::F32, accum, TF32.store(lo, hi)),
        _ => convert(dtype, accum, v),
    }
}

/// Adds a product: one rounding of it more than the additions count, and `least` for underflow.
fn product(fold: &mut Fold, accum: DType, term: Value, least: f64) {
    let f = format(accum);
    if let (Some(size), true) = (term.magnitude(), accum.is_float()) {
        let step = if least > 1.0 { f.smallest_normal() } else { f.least() };
        fold.lost += size * (f.unit() + 2.0 * format(DType::F64).unit()) * HIGHER_ORDERS + least * step;
    }
    fold.add(term);
}

fn flushed(a: Value, b: Value, accum: DType) -> f64 {
    let normal = format(accum).smallest_normal();
    match (a.magnitude(), b.magnitude()) {
        (Some(x), Some(y)) if x < normal || y < normal => x * y,
        _ => 0.0,
    }
}
