//! What results have to be: a graph evaluated by plain loops in f64, with a bound of the error
//! beside every element.
//!
//! A [`Value`] is the range of all numbers that an implementation may give which keeps to the
//! rules: an elementwise function is off by at most the units in the last place that its row
//! states ([`tessera_ops::map::MapDef::ulps`]), a sum or product of `n` terms by at most `n`
//! roundings of the accumulator times the sum of the absolute terms (which holds for every order
//! of addition), and what is stored is rounded once, to nearest. Ranges go through the following
//! operations, so the bound of a composition is derived from those of its parts.
//!
//! Nothing here is shared with the kernels or their reference but the decoding of elements: the
//! functions come from the standard library or series, loops are as simple as the definitions.

pub mod value;
pub mod function;
mod factors;
mod movement;
mod order;
mod reduce;
mod spectral;

use crate::random_graph::Case;
use tessera_base::DType;
use tessera_ir::graph::{Graph, NodeId};
use tessera_ops::convert;
use tessera_ops::map::MapOp;
use tessera_ops::prim::{Prim, Scalar};
use value::{Value, convert as cast};

/// A tensor of ranges. Complex elements are two values.
#[derive(Clone, Debug, Default)]
pub struct Array {
    pub shape: Vec<usize>,
    pub dtype: Option<DType>,
    pub values: Vec<Value>,
}

impl Array {
    pub fn dtype(&self) -> DType {
        self.dtype.unwrap_or(DType::F32)
    }

    /// Values per element.
    pub fn parts(&self) -> usize {
        parts(self.dtype())
    }
}

fn parts(dtype: DType) -> usize {
    if dtype == DType::C64 { 2 } else { 1 }
}

/// The numbers of the elements in `bytes`.
pub fn numbers(dtype: DType, bytes: &[u8]) -> Vec<Scalar> {
    let part = if dtype == DType::C64 { DType::F32 } else { dtype };
    (0..bytes.len() / part.bytes()).filter_map(|i| convert::load(part, bytes, i)).collect()
}

fn known(dtype: DType, bytes: &[u8]) -> Vec<Value> {
    let value = |s| match s {
        Scalar::F(x) => Value::point(x),
        Scalar::I(n) => Value::Int(n),
    };
    numbers(dtype, bytes).into_iter().map(value).collect()
}

/// The outputs of a case. `Err` names a primitive that has no definition here.
pub fn outputs(case: &Case) -> Result<Vec<Array>, String> {
    let mut done: Vec<Array> = vec![];
    for id in case.graph.ids() {
        let array = node(&case.graph, id, &done, &case.inputs)?;
        done.push(array);
    }
    Ok(case.graph.outputs.iter().map(|o| done[o.0 as usize].clone()).collect())
}

fn constant(value: Scalar, dtype: DType) -> Vec<Value> {
    match (value, dtype) {
        (Scalar::F(x), DType::C64) => vec![cast(DType::F64, DType::F32, Value::point(x)), Value::point(0.0)],
        (Scalar::I(n), DType::C64) => vec![cast(DType::I64, DType::F32, Value::Int(n)), Value::point(0.0)],
        (Scalar::F(x), _) => vec![cast(DType::F64, dtype, Value::point(x))],
        (Scalar::I(n), _) => vec![cast(DType::I64, dtype, Value::Int(n))],
    }
}

fn node(graph: &Graph, id: NodeId, done: &[Array], inputs: &[Vec<u8>]) -> Result<Array, String> {
    let n = graph.node(id);
    let dtype = n.ty.dtype;
    let shape: Vec<usize> = n.ty.shape.iter().map(|&d| d as usize).collect();
    let count: usize = shape.iter().product();
    let x: Vec<&Array> = n.operands.iter().map(|o| &done[o.0 as usize]).collect();
    let values = match &n.prim {
        Prim::Input(i) => known(dtype, &inputs[*i as usize]),
        Prim::Literal(bytes) => known(dtype, bytes),
        Prim::Full { value } => constant(*value, dtype).repeat(count),
        Prim::Iota { axis } => {
            let inner: usize = shape[axis + 1..].iter().product();
            let at = |i: usize| constant(Scalar::I((i / inner % shape[*axis]) as i64), dtype);
            (0..count).flat_map(at).collect()
        }
        Prim::Map(op) => map(*op, &x, dtype, count),
        Prim::Cast => converted(x[0], dtype),
        Prim::Part { imag } => x[0].values.iter().skip(usize::from(*imag)).step_by(2).copied().collect(),
        Prim::Complex => x[0].values.iter().zip(&x[1].values).flat_map(|(&re, &im)| [re, im]).collect(),
        Prim::Reduce { kind, axes } => reduce::reduce(*kind, axes, x[0], dtype),
        Prim::Cumulate { kind, axis } => reduce::cumulate(*kind, *axis, x[0], dtype),
        Prim::Dot { accum, steps, .. } => reduce::dot(x[0], x[1], *accum, *steps, dtype),
        Prim::ArgReduce { largest, axis } => order::arg_reduce(*largest, *axis, x[0]),
        Prim::Sort { axis, descending } => order::sort(*axis, *descending, x[0]),
        Prim::ArgSort { axis, descending } => order::arg_sort(*axis, *descending, x[0]),
        Prim::Fft(f) => spectral::fft(f, x[0], &shape, x.len() > 1 + 1),
        Prim::Factor(kind) => factors::factor(*kind, x[0], dtype),
        Prim::TriangularSolve(triangle) => factors::solve(*triangle, x[0], x[1], dtype),
        Prim::RandomBits => random_bits(x[0], count, dtype)?,
        prim => movement::of(prim, &x, &shape).ok_or_else(|| format!("{prim:?} has no definition"))?,
    };
    if values.len() != count * parts(dtype) {
        return Err(format!("{:?} gives {} values for {}", n.prim, values.len(), n.ty));
    }
    Ok(Array { shape, dtype: Some(dtype), values })
}

fn map(op: MapOp, x: &[&Array], result: DType, count: usize) -> Vec<Value> {
    let operand = x.last().map_or(result, |a| a.dtype());
    let mut args = vec![Value::Any; x.len()];
    (0..count)
        .map(|i| {
            args.iter_mut().zip(x).for_each(|(a, x)| *a = x.values[i]);
            function::value(op, operand, &args)
        })
        .collect()
}

fn converted(x: &Array, to: DType) -> Vec<Value> {
    let from = if x.dtype() == DType::C64 { DType::F32 } else { x.dtype() };
    match (x.dtype(), to) {
        (DType::C64, DType::C64) => x.values.clone(),
        (DType::C64, DType::Bool) => {
            let truth = |z: &[Value]| match [cast(from, to, z[0]), cast(from, to, z[1])] {
                [Value::Int(1), _] | [_, Value::Int(1)] => Value::Int(1),
                [Value::Int(0), Value::Int(0)] => Value::Int(0),
                _ => Value::Any,
            };
            x.values.chunks(2).map(truth).collect()
        }
        (DType::C64, _) => x.values.iter().step_by(2).map(|&v| cast(from, to, v)).collect(),
        (_, DType::C64) => x.values.iter().flat_map(|&v| [cast(from, DType::F32, v), Value::point(0.0)]).collect(),
        _ => x.values.iter().map(|&v| cast(from, to, v)).collect(),
    }
}

/// Philox 4x32-10 as its paper states it.
fn random_bits(key: &Array, count: usize, to: DType) -> Result<Vec<Value>, String> {
    let mut out = vec![];
    let keys = key.values.chunks(2);
    let each = count / keys.len().max(1);
    for words in keys {
        let &[Value::Int(k0), Value::Int(k1)] = words else { return Err("a key that is not known".into()) };
        out.extend(stream(k0 as u32, k1 as u32, each, to));
    }
    Ok(out)
}

/// What one key gives.
fn stream(k0: u32, k1: u32, count: usize, to: DType) -> Vec<Value> {
    let mut out = vec![];
    for block in 0..count.div_ceil(4) as u64 {
        let (mut c, mut k) = ([block as u32, (block >> 32) as u32, 0, 0], [k0, k1]);
        for _ in 0..10 {
            let p = 0xd251_1f53u64 * u64::from(c[0]);
            let q = 0xcd9e_8d57u64 * u64::from(c[2]);
            c = [(q >> 32) as u32 ^ c[1] ^ k[0], q as u32, (p >> 32) as u32 ^ c[3] ^ k[1], p as u32];
            k = [k[0].wrapping_add(0x9e37_79b9), k[1].wrapping_add(0xbb67_ae85)];
        }
        out.extend(c.map(|w| cast(DType::I64, to, Value::Int(w.into()))));
    }
    out.truncate(count);
    out
}
