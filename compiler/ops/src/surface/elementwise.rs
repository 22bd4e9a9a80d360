//! One row for each elementwise function of [`crate::map`], written once for all of them.

use super::expand;
use super::row::{self, Call, Lowered, Row, meet, req};
use super::rule::{self, Inferred};
use super::*;
use crate::map::{Gives, MapDef, MapOp, Takes};

const UNARY: &[Param] = &[req("x", ParamKind::Operand)];
const BINARY: &[Param] = &[req("x", ParamKind::Operand), req("y", ParamKind::Operand)];
const TERNARY: &[Param] = &[req("x", ParamKind::Operand), req("y", ParamKind::Operand), req("z", ParamKind::Operand)];

/// The rows of the first `ROOM` functions in the order of [`MapOp::ALL`].
///
/// A row's functions capture nothing, so each function of the map table needs its own
/// instance of the generic ones below.
pub fn rows() -> Vec<OpDef> {
    let mut out = vec![];
    macro_rules! sixteen {
        ($high:literal: $($low:literal)*) => { $(push::<{ $high * 16 + $low }>(&mut out);)* };
    }
    macro_rules! blocks {
        ($($high:literal)*) => { $(sixteen!($high: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);)* };
    }
    blocks!(0 1 2 3 4 5 6 7);
    out
}

/// How many functions the map table may hold before [`rows`] needs another block.
#[cfg(test)]
const ROOM: usize = 128;

fn push<const N: usize>(out: &mut Vec<OpDef>) {
    let Some(op) = MapOp::ALL.get(N) else { return };
    let mut def = map_row::<N>(*op).def(
        |cx, args, hints| row::infer(&map_row::<N>(at::<N>()?), cx, args, hints),
        |b, args, hints| row::expand(&map_row::<N>(at::<N>()?), b, args, hints),
    );
    // Written once per process and kept for its whole life, like the rest of the table.
    def.doc = Box::leak(document(op.def()).into_boxed_str());
    out.push(def);
}

fn at<const N: usize>() -> Result<MapOp, OpError> {
    MapOp::ALL.get(N).copied().ok_or_else(|| OpError::new(Code::E0999, "a row without its function"))
}

fn map_row<const N: usize>(op: MapOp) -> Row {
    let params = match op.def().arity {
        1 => UNARY,
        2 => BINARY,
        _ => TERNARY,
    };
    Row::new(op.name(), params, |cx, args, hints| infer(at::<N>()?, cx, args, hints), |call| lower(at::<N>()?, call))
        .method()
        .elementwise()
        .known_as(other_names(op.name()))
}

fn other_names(name: &str) -> &'static [&'static str] {
    match name {
        "sub" => &["subtract"],
        "mul" => &["multiply"],
        "div" => &["divide", "true_divide"],
        "floor_div" => &["floor_divide"],
        "mod" => &["remainder", "fmod"],
        "pow" => &["power"],
        "neg" => &["negative"],
        "abs" => &["absolute", "fabs"],
        "asin" => &["arcsin"],
        "asinh" => &["arcsinh"],
        "acosh" => &["arccosh"],
        "atanh" => &["arctanh"],
        "cbrt" => &["cube_root"],
        "erfinv" => &["erf_inv"],
        "ndtr" => &["norm_cdf", "normal_cdf"],
        "log_ndtr" => &["norm_logcdf"],
        "ndtri" => &["norm_ppf", "probit"],
        "gamma" => &["tgamma"],
        "lgamma" => &["gammaln", "loggamma", "log_gamma"],
        "digamma" => &["psi"],
        "polygamma" => &["trigamma"],
        "betaln" => &["lbeta", "log_beta"],
        "gammainc" => &["igamma"],
        "gammaincc" => &["igammac"],
        "gammainc_da" => &["igamma_grad_a"],
        "i0" => &["bessel_i0"],
        "i0e" => &["bessel_i0e"],
        "i1" => &["bessel_i1"],
        "i1e" => &["bessel_i1e"],
        "logaddexp" => &["log_add_exp"],
        "log_sigmoid" => &["logsigmoid", "log_expit"],
        "acos" => &["arccos"],
        "atan" => &["arctan"],
        "atan2" => &["arctan2"],
        "log" => &["ln"],
        "silu" => &["swish"],
        "sigmoid" => &["logistic", "expit"],
        "round" => &["rint"],
        "trunc" => &["fix"],
        "maximum" => &["fmax"],
        "minimum" => &["fmin"],
        "eq" => &["equal"],
        "ne" => &["not_equal"],
        "lt" => &["less"],
        "le" => &["less_equal"],
        "gt" => &["greater"],
        "ge" => &["greater_equal"],
        "bit_and" => &["bitwise_and"],
        "bit_or" => &["bitwise_or"],
        "bit_xor" => &["bitwise_xor"],
        "bit_not" => &["bitwise_not", "invert"],
        "shl" => &["left_shift", "bitwise_left_shift"],
        "shr" => &["right_shift", "bitwise_right_shift"],
        _ => &[],
    }
}

/// Division is of real numbers: ints divide as f32.
fn takes(def: &MapDef) -> Takes {
    if def.name == "div" { Takes::Float } else { def.takes }
}

/// The type that all operands are converted to. A wider `out_dtype` widens before the
/// arithmetic, so that the result is rounded once.
fn working(op: MapOp, dtype: DType, operands: &[(usize, rule::Operand)], hints: &Hints) -> Result<DType, OpError> {
    let def = op.def();
    if dtype.is_complex() && complex::result(op).is_some() {
        return Ok(dtype);
    }
    let dtype = rule::operand_dtype(def.name, takes(def), dtype, operands)?;
    Ok(match hints.out_dtype {
        Some(out) if out.is_float() && dtype.is_float() && dtype.widens_to(out) && def.gives == Gives::Same => out,
        _ => dtype,
    })
}

fn infer(op: MapOp, cx: &mut InferCx, args: &[SymArg], hints: &Hints) -> Inferred {
    let def = op.def();
    let at: Vec<usize> = (0..def.arity).collect();
    let (operands, joined) = meet(args, &at)?;
    let shape = rule::broadcast_all(cx, &operands)?;
    let dtype = joined.map(|d| working(op, d, &operands, hints)).transpose()?;
    let complex = dtype.filter(|d| d.is_complex()).and_then(|_| complex::result(op));
    rule::one(shape, complex.or(if def.gives == Gives::Bool { Some(DType::Bool) } else { dtype }))
}

fn lower(op: MapOp, call: &mut Call) -> Lowered {
    let def = op.def();
    let at: Vec<usize> = (0..def.arity).collect();
    let (shape, _) = call.result();
    let (operands, joined) = meet(&call.sym, &at)?;
    let dtype = working(op, joined.unwrap_or(DType::F32), &operands, call.hints)?;
    let ids = at.iter().map(|&i| call.operand(i, &shape, dtype)).collect::<Result<Vec<_>, _>>()?;
    Ok(vec![expand::map(call.b, op, &ids)])
}

fn document(def: &MapDef) -> String {
    let on_complex = MapOp::parse(def.name).and_then(complex::result).is_some();
    let takes = match takes(def) {
        Takes::Float => "floats; ints and bool become f32",
        Takes::Number => "floats and ints",
        Takes::Int => "ints",
        Takes::IntOrBool => "ints and bool",
        Takes::Bool => "bool; numbers count as true where they are not 0",
        Takes::Any if on_complex => "every dtype",
        Takes::Any => "every dtype but c64",
    };
    let also = if on_complex && def.takes != Takes::Any { "c64, " } else { "" };
    let gives = match def.gives {
        Gives::Same => "the operands' dtype",
        Gives::Bool => "bool",
    };
    let error = match MapOp::parse(def.name) {
        Some(op) if op.is_once_from_f64() => {
            format!(" Error at most {} ulp in f64; f32 and narrower are rounded once from there.", def.ulps)
        }
        _ if def.takes == Takes::Float => format!(" Error at most {} ulp in f32.", def.ulps),
        _ => String::new(),
    };
    let broadcast = if def.arity > 1 { " Operands broadcast." } else { "" };
    format!("{}\n\nElementwise.{broadcast} Takes {also}{takes}; gives {gives}.{error}", def.doc)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_has_a_row() {
        assert!(MapOp::ALL.len() <= ROOM);
        assert_eq!(rows().len(), MapOp::ALL.len());
    }
}
