//! Elementwise functions and conversions.

use super::At;
use crate::writer::Writer;
use tessera_base::DType;
use tessera_ops::map::MapOp;
use tessera_ops::map::gradient::{Step, Steps};
use tessera_ops::surface::{Id, expand};

/// By the row of the function.
pub fn map(at: &mut At, op: MapOp) -> Vec<Option<Id>> {
    let Some(gradient) = op.def().gradient else { return vec![None; at.x.len()] };
    let x: Vec<Step> = at.x.iter().map(|x| Step(x.0)).collect();
    let made = gradient(&mut Nodes(at.w), &x, Step(at.y.0), Step(at.c.0));
    made.into_iter().map(|c| c.map(|c| Id(c.0))).collect()
}

/// Steps as nodes of a graph.
struct Nodes<'a, 'g>(&'a mut Writer<'g>);

impl Steps for Nodes<'_, '_> {
    fn map(&mut self, op: MapOp, x: &[Step]) -> Step {
        let x: Vec<Id> = x.iter().map(|x| Id(x.0)).collect();
        Step(expand::map(self.0, op, &x).0)
    }

    fn like(&mut self, x: Step, value: f64) -> Step {
        Step(expand::like(self.0, Id(x.0), value).0)
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
