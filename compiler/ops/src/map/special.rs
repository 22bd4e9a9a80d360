//! Special functions in F64 against correctly rounded values, which `tests/data/special.py` computes with 60 digits.

use super::MapOp;
use super::laws::{float64, ulps};
use crate::scalar::Kind;
use std::collections::BTreeMap;

/// `(function, operands, result)`.
fn table() -> Vec<(MapOp, Vec<f64>, f64)> {
    let line = |line: &str| {
        let mut words = line.split(' ');
        let op = words.next().and_then(MapOp::parse)?;
        let mut numbers: Vec<f64> =
            words.map(|w| u64::from_str_radix(w, 16).ok().map(f64::from_bits)).collect::<Option<_>>()?;
        let result = numbers.pop()?;
        (numbers.len() == op.def().arity).then_some((op, numbers, result))
    };
    let text = include_str!("../../../../tests/data/special.txt");
    text.lines().map(|l| line(l).unwrap_or_else(|| panic!("what is `{l}`?"))).collect()
}

/// What the bound is a multiple of: the last place of the result, or of the largest of what is added up where the
/// documentation says so.
fn size(op: MapOp, x: &[f64], exact: f64) -> f64 {
    match op {
        MapOp::lgamma | MapOp::digamma if x[0] < 0.5 => exact.abs().max(1.0),
        MapOp::logaddexp => exact.abs().max(x[0].abs()).max(x[1].abs()),
        MapOp::betaln => exact.abs().max(1.0),
        // The derivative changes its sign.
        MapOp::gammainc_da | MapOp::betainc_da => exact.abs().max(1e-3),
        _ => exact,
    }
}

#[test]
fn f64_within_the_declared_error() {
    let mut worst: BTreeMap<&str, (f64, String)> = BTreeMap::new();
    for (op, x, want) in table() {
        let args: Vec<&[f64]> = x.iter().map(std::slice::from_ref).collect();
        let got = float64(op, &args)[0];
        let size = size(op, &x, want);
        let error = if size == want { ulps(want, got, 53, -1022) } else { (got - want).abs() / (size * f64::EPSILON) };
        // The expected number is itself rounded.
        let error = if error.is_nan() { f64::INFINITY } else { (error - 0.5).max(0.0) };
        let entry = worst.entry(op.name()).or_insert((-1.0, String::new()));
        if error > entry.0 {
            *entry = (error, format!("{}({x:?}) = {got:e}, not {want:e}", op.name()));
        }
    }
    let mut wrong = vec![];
    for (name, (error, text)) in &worst {
        let bound = MapOp::parse(name).map_or(0.0, |op| op.ulps(Kind::F64));
        if std::env::var_os("TESSERA_SHOW").is_some() {
            println!("{name}: {error:.2} of {bound}: {text}");
        }
        if *error > bound {
            wrong.push(format!("{text}: {error:.1} ulps, and {bound} are allowed"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
