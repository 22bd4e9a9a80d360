//! Sorting and the positions of extremes.

use super::Array;
use super::value::Value;
use std::cmp::Ordering;

/// Calls `f` with the elements along an axis, and writes what it gives to where they were.
fn along(x: &Array, axis: usize, mut f: impl FnMut(&[Value]) -> Vec<Value>) -> Vec<Value> {
    let (n, inner) = (x.shape[axis], x.shape[axis + 1..].iter().product::<usize>());
    let outer: usize = x.shape[..axis].iter().product();
    let mut out = vec![Value::Any; x.values.len()];
    for (o, i) in (0..outer).flat_map(|o| (0..inner).map(move |i| (o, i))) {
        let at = |p: usize| (o * n + p) * inner + i;
        let line: Vec<Value> = (0..n).map(|p| x.values[at(p)]).collect();
        f(&line).into_iter().enumerate().for_each(|(p, v)| out[at(p)] = v);
    }
    out
}

/// The order of two single numbers, NaN behind all.
fn compare(a: Value, b: Value, descending: bool) -> Ordering {
    let order = match (a, b) {
        (Value::Int(a), Value::Int(b)) => a.cmp(&b),
        (Value::Real(a, _), Value::Real(b, _)) => a.partial_cmp(&b).unwrap_or(Ordering::Equal),
        (Value::Nan, Value::Nan) => return Ordering::Equal,
        (Value::Nan, _) => return Ordering::Greater,
        _ => return Ordering::Less,
    };
    if descending { order.reverse() } else { order }
}

fn single(v: &Value) -> bool {
    match *v {
        Value::Real(lo, hi) => lo == hi,
        Value::Any => false,
        _ => true,
    }
}

/// The positions that sorted elements come from, where every element is one number.
fn positions(line: &[Value], descending: bool) -> Option<Vec<usize>> {
    if !line.iter().all(single) {
        return None;
    }
    let mut order: Vec<usize> = (0..line.len()).collect();
    order.sort_by(|&a, &b| compare(line[a], line[b], descending));
    Some(order)
}

pub fn sort(axis: usize, descending: bool, x: &Array) -> Vec<Value> {
    along(x, axis, |line| match positions(line, descending) {
        Some(order) => order.into_iter().map(|p| line[p]).collect(),
        None => vec![Value::Any; line.len()],
    })
}

pub fn arg_sort(axis: usize, descending: bool, x: &Array) -> Vec<Value> {
    along(x, axis, |line| match positions(line, descending) {
        Some(order) => order.into_iter().map(|p| Value::Int(p as i64)).collect(),
        None => vec![Value::Any; line.len()],
    })
}

/// The first extreme; NaN is more extreme than any number.
pub fn arg_reduce(largest: bool, axis: usize, x: &Array) -> Vec<Value> {
    let (n, inner) = (x.shape[axis], x.shape[axis + 1..].iter().product::<usize>());
    let outer: usize = x.shape[..axis].iter().product();
    let better = |a: Value, b: Value| match (a, b) {
        (_, Value::Nan) => false,
        (Value::Nan, _) => true,
        _ => compare(a, b, largest) == Ordering::Less,
    };
    let mut out = vec![];
    for (o, i) in (0..outer).flat_map(|o| (0..inner).map(move |i| (o, i))) {
        let at = |p: usize| x.values[(o * n + p) * inner + i];
        if !(0..n).all(|p| single(&at(p))) {
            out.push(Value::Any);
            continue;
        }
        let best = (1..n).fold(0, |best, p| if better(at(p), at(best)) { p } else { best });
        out.push(Value::Int(best as i64));
    }
    out
}
