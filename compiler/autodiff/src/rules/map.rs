//! Elementwise functions and conversions.

use super::At;
use tessera_base::DType;
use tessera_ops::map::MapOp;
use tessera_ops::map::gradient::Steps;
use tessera_ops::surface::{Id, expand};

/// By the row of the function.
pub fn map(at: &mut At, op: MapOp) -> Vec<Option<Id>> {
    match op.def().gradient {
        Some(gradient) => gradient(&mut Steps { b: at.w }, &at.x, at.y, at.c),
        None => vec![None; at.x.len()],
    }
}

/// A conversion is linear; its cotangent is converted back.
pub fn cast(at: &mut At) -> Vec<Option<Id>> {
    let to = at.dtype(at.x[0]);
    let c = if at.dtype(at.c).is_complex() && !to.is_complex() { expand::real(at.w, at.c) } else { at.c };
    vec![Some(expand::cast(at.w, c, to))]
}

/// The cotangent of a complex number holds those of its parts.
pub fn part(at: &mut At, imag: bool) -> Vec<Option<Id>> {
    let shape = at.shape(at.c);
    let zero = at.zeros_of(&shape, DType::F32);
    let (re, im) = if imag { (zero, at.c) } else { (at.c, zero) };
    vec![Some(expand::complex(at.w, re, im))]
}

pub fn complex(at: &mut At) -> Vec<Option<Id>> {
    vec![Some(expand::real(at.w, at.c)), Some(expand::imag(at.w, at.c))]
}
