//! A graph builder that only records types, and refuses nodes that are not well formed.

use super::super::*;
use crate::map::{Gives, Takes};
use crate::prim::{Prim, Reduction};

#[derive(Default)]
pub struct Recorder {
    pub nodes: Vec<(Vec<u64>, DType)>,
    /// The first node that is not well formed.
    pub wrong: Option<String>,
}

impl Recorder {
    pub fn input(&mut self, shape: Vec<u64>, dtype: DType) -> Id {
        self.nodes.push((shape, dtype));
        Id(self.nodes.len() as u32 - 1)
    }
}

impl Build for Recorder {
    fn shape(&self, id: Id) -> Vec<u64> {
        self.nodes[id.0 as usize].0.clone()
    }

    fn dtype(&self, id: Id) -> DType {
        self.nodes[id.0 as usize].1
    }

    fn push(&mut self, prim: Prim, operands: &[Id], shape: Vec<u64>, dtype: DType) -> Id {
        let types: Vec<(Vec<u64>, DType)> = operands.iter().map(|o| self.nodes[o.0 as usize].clone()).collect();
        if let Err(why) = check(&prim, &types, &shape, dtype) {
            self.wrong.get_or_insert(format!("{prim:?} of {types:?} as {shape:?} {dtype}: {why}"));
        }
        self.input(shape, dtype)
    }
}

type Types<'a> = &'a [(Vec<u64>, DType)];

fn ensure(holds: bool, why: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(why.into()) }
}

fn count(shape: &[u64]) -> u64 {
    shape.iter().product()
}

fn without(shape: &[u64], axis: usize) -> Vec<u64> {
    let mut out = shape.to_vec();
    out.remove(axis);
    out
}

/// The rules of the primitives for one node.
fn check(prim: &Prim, operands: Types, shape: &[u64], dtype: DType) -> Result<(), String> {
    let arity = |n: usize| ensure(operands.len() == n, "number of operands");
    let same_dtype = || ensure(operands.first().is_some_and(|o| o.1 == dtype), "dtype changes");
    let first = || operands.first().map(|o| o.0.clone()).ok_or("no operand".to_string());
    match prim {
        Prim::Full { value } => {
            arity(0)?;
            ensure(matches!(value, Scalar::F(_)) == (dtype.is_float() || dtype.is_complex()), "kind of the value")
        }
        Prim::Iota { axis } => arity(0).and(ensure(*axis < shape.len() && dtype == DType::I64, "axis or dtype")),
        Prim::Literal(bytes) => {
            arity(0).and(ensure(bytes.len() as u64 == count(shape) * dtype.bytes() as u64, "number of bytes"))
        }
        Prim::Map(op) => map(*op, operands, shape, dtype),
        Prim::Cast => arity(1).and(ensure(first()? == shape, "shape")),
        Prim::Broadcast { dims } => {
            arity(1).and(same_dtype())?;
            let from = first()?;
            ensure(dims.len() == from.len() && dims.is_sorted() && dims.windows(2).all(|w| w[0] != w[1]), "dims")?;
            ensure(dims.iter().zip(&from).all(|(&d, &n)| d < shape.len() && (n == 1 || n == shape[d])), "sizes")
        }
        Prim::Reshape => arity(1).and(same_dtype()).and(ensure(count(&first()?) == count(shape), "number of elements")),
        Prim::Transpose { perm } => {
            arity(1).and(same_dtype())?;
            let from = first()?;
            let mut sorted = perm.clone();
            sorted.sort_unstable();
            ensure(sorted == (0..from.len()).collect::<Vec<_>>(), "not a permutation")?;
            ensure(perm.iter().map(|&p| from[p]).eq(shape.iter().copied()), "shape")
        }
        Prim::Slice { start, step } => {
            arity(1).and(same_dtype())?;
            let from = first()?;
            ensure(start.len() == from.len() && step.len() == from.len() && shape.len() == from.len(), "rank")?;
            let inside = |at: i64, n: u64| at >= 0 && (at as u64) < n;
            ensure(
                (0..from.len()).all(|d| {
                    shape[d] == 0
                        || inside(start[d], from[d]) && inside(start[d] + (shape[d] as i64 - 1) * step[d], from[d])
                }),
                "out of range",
            )
        }
        Prim::Pad { low, high } => {
            arity(2).and(same_dtype())?;
            ensure(operands[1] == (vec![], dtype), "value")?;
            let from = first()?;
            ensure(low.len() == from.len() && high.len() == from.len(), "rank")?;
            ensure((0..from.len()).all(|d| shape[d] == from[d] + low[d] + high[d]), "shape")
        }
        Prim::Concat { axis } => {
            ensure(operands.iter().all(|o| o.1 == dtype && o.0.len() == shape.len()), "dtype or rank")?;
            ensure(operands.iter().all(|o| without(&o.0, *axis) == without(shape, *axis)), "other sizes")?;
            ensure(operands.iter().map(|o| o.0[*axis]).sum::<u64>() == shape[*axis], "size of the axis")
        }
        Prim::Reduce { kind, axes } => {
            arity(1).and(same_dtype())?;
            let from = first()?;
            let bools = matches!(kind, Reduction::Any | Reduction::All);
            ensure(bools == (dtype == DType::Bool), "dtype of the monoid")?;
            ensure(
                axes.is_sorted() && axes.windows(2).all(|w| w[0] != w[1]) && axes.iter().all(|a| *a < from.len()),
                "axes",
            )?;
            let rest: Vec<u64> = (0..from.len()).filter(|d| !axes.contains(d)).map(|d| from[d]).collect();
            ensure(rest == shape, "shape")
        }
        Prim::ArgReduce { axis, .. } => {
            let from = first()?;
            arity(1).and(ensure(dtype == DType::I64 && *axis < from.len(), "dtype or axis"))?;
            ensure(without(&from, *axis) == shape && from[*axis] > 0, "shape")
        }
        Prim::Cumulate { axis, .. } => {
            arity(1).and(same_dtype()).and(ensure(first()? == shape && *axis < shape.len(), "shape"))
        }
        Prim::Sort { axis, .. } => {
            arity(1).and(same_dtype()).and(ensure(first()? == shape && *axis < shape.len(), "shape"))
        }
        Prim::ArgSort { axis, .. } => {
            arity(1).and(ensure(first()? == shape && *axis < shape.len() && dtype == DType::I64, "shape or dtype"))
        }
        Prim::Dot { .. } => {
            arity(2)?;
            let (x, y) = (&operands[0], &operands[1]);
            let (r, s) = (x.0.len(), y.0.len());
            ensure(r >= 2 && r == s && x.1 == y.1, "rank or dtypes")?;
            ensure(x.0[..r - 2] == y.0[..r - 2] && x.0[r - 1] == y.0[r - 2], "sizes")?;
            ensure(shape == [&x.0[..r - 1], &y.0[r - 1..]].concat(), "shape")
        }
        Prim::UpdateSlice { start, step } => {
            arity(2).and(same_dtype())?;
            ensure(
                first()? == shape && operands[1].1 == dtype && start.len() == shape.len() && step.len() == shape.len(),
                "operands",
            )
        }
        Prim::Take { axis } => {
            arity(2).and(same_dtype())?;
            let from = first()?;
            ensure(operands[1].1 == DType::I64, "positions")?;
            ensure(shape == [&from[..*axis], &operands[1].0, &from[axis + 1..]].concat(), "shape")
        }
        Prim::TakeAlong { axis } => {
            arity(2).and(same_dtype())?;
            ensure(operands[1] == (shape.to_vec(), DType::I64), "positions")?;
            ensure(without(&first()?, *axis) == without(shape, *axis), "shape")
        }
        Prim::ScatterAddAlong { axis } => {
            arity(3).and(same_dtype())?;
            ensure(
                first()? == shape && operands[1].1 == DType::I64 && operands[2] == (operands[1].0.clone(), dtype),
                "operands",
            )?;
            ensure(without(&operands[1].0, *axis) == without(shape, *axis), "sizes")
        }
        Prim::RandomBits => arity(1).and(ensure(operands[0] == (vec![2], DType::I64) && dtype == DType::I64, "key")),
        other => Err(format!("unexpected {other:?}")),
    }
}

fn map(op: crate::map::MapOp, operands: Types, shape: &[u64], dtype: DType) -> Result<(), String> {
    let def = op.def();
    ensure(operands.len() == def.arity, "number of operands")?;
    ensure(operands.iter().all(|o| o.0 == shape), "shapes")?;
    let values = if def.name == "where" { &operands[1..] } else { operands };
    ensure(def.name != "where" || operands[0].1 == DType::Bool, "condition")?;
    let of = values.first().map_or(dtype, |v| v.1);
    ensure(values.iter().all(|v| v.1 == of), "dtypes of the operands")?;
    let takes = match def.takes {
        Takes::Float => of.is_float(),
        Takes::Number => of.is_float() || of.is_int(),
        Takes::Int => of.is_int(),
        Takes::IntOrBool => of.is_int() || of == DType::Bool,
        Takes::Bool => of == DType::Bool,
        Takes::Any => true,
    };
    ensure(takes, "dtype that the function does not take")?;
    ensure(dtype == if def.gives == Gives::Bool { DType::Bool } else { of }, "dtype of the result")
}
