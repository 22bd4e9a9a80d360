//! Native steps that are faster than the reference kernels, with the same bits: sorting on
//! threads, adding at positions that come from data, numbers in blocks, many tensors as one, factors of matrices.

use std::sync::Arc;
use tessera_abi::plan::{Bounds, Stop};
use tessera_base::{DType, bug};
use tessera_ir::graph::{Graph, NodeId, NodeType};
use tessera_ops::convert::cast;
use tessera_ops::prim::Prim;
use tessera_ops::reference::{ArrayRef, EvalError, linalg};
use tessera_runtime::block_quant;
use tessera_runtime::concat::{Part, concat};
use tessera_runtime::fault::Fault;
use tessera_runtime::math;
use tessera_runtime::native::{NativeFn, copy_on_threads};
use tessera_runtime::pool::Pool;
use tessera_runtime::scatter::{scatter_along, scatter_rows};
use tessera_runtime::sort::{Give, Lines, sort_lines};

/// Where an operand comes from: the n-th of the tensors or of the host scalars.
#[derive(Clone, Copy)]
pub enum Source {
    Memory(usize),
    Word(usize),
}

/// The operands' bytes: memory, or a scalar's word.
pub fn gather<'a>(
    sources: &[Source],
    types: &[NodeType],
    memory: &'a [&'a [u8]],
    words: &'a [[u8; 8]],
) -> Vec<&'a [u8]> {
    let one = |(s, t): (&Source, &NodeType)| match *s {
        Source::Memory(i) => memory[i],
        Source::Word(i) => &words[i][..t.dtype.bytes().min(8)],
    };
    sources.iter().zip(types).map(one).collect()
}

/// A fault as a step reports it.
pub fn refused(fault: Fault) -> Stop {
    Stop { code: fault.code, notes: fault.notes, ..fault.message.into() }
}

/// What a reference kernel refused, as host code would say it.
pub fn fault(e: EvalError) -> Fault {
    match e.refused {
        Some(refused) => math::refused(refused.check, refused.operands),
        None => Fault::new(e.code, e.message),
    }
}

/// The step for node `id`; `None` where only the reference kernel will do.
pub fn native_kernel(
    graph: &Graph,
    id: NodeId,
    types: &[NodeType],
    sources: &[Source],
    pool: &Arc<Pool>,
) -> Option<Arc<NativeFn>> {
    let (prim, result) = (graph.node(id).prim.clone(), graph.ty(id).clone());
    let first = wanted(graph, id);
    let fits = match &prim {
        Prim::Sort { .. } => true,
        Prim::ArgSort { .. } => result.dtype == DType::I64,
        Prim::Scatter { add: true } | Prim::ScatterAddAlong { .. } => true,
        Prim::BlockDot { .. } => true,
        Prim::Concat { .. } => true,
        Prim::Factor(_) | Prim::TriangularSolve(_) => true,
        _ => false,
    };
    let moves = matches!(prim, Prim::Concat { .. });
    if !fits || !moves && (result.dtype == DType::C64 || types.iter().any(|t| t.dtype == DType::C64)) {
        return None;
    }
    let (types, sources, pool) = (types.to_vec(), sources.to_vec(), pool.clone());
    Some(Arc::new(move |inputs: &[&[u8]], outputs: &mut [&mut [u8]], words: &[u64]| {
        let words: Vec<[u8; 8]> = words.iter().map(|w| w.to_le_bytes()).collect();
        let operands = gather(&sources, &types, inputs, &words);
        let Some(out) = outputs.first_mut() else { return Ok(()) };
        match &prim {
            Prim::Sort { axis, descending } | Prim::ArgSort { axis, descending } => {
                let give = if matches!(prim, Prim::Sort { .. }) { Give::Elements } else { Give::Positions };
                let [outer, n, inner] = split(&types[0].shape, *axis);
                let lines = Lines { outer, n, inner };
                sort_lines(&pool, operands[0], types[0].dtype, lines, *descending, first.unwrap_or(n), give, out);
                Ok(())
            }
            Prim::Scatter { .. } => Ok(scatter_add(&pool, &types, &operands, out)?),
            Prim::ScatterAddAlong { axis } => Ok(scatter_add_along(&pool, *axis, &types, &operands, out)?),
            Prim::BlockDot { format } => {
                let (x, w) = (&types[0].shape, &types[1].shape);
                block_quant::product(
                    &pool,
                    *format,
                    [x[0], x[1], w[0]].map(|n| n as usize),
                    operands[0],
                    operands[1],
                    out,
                );
                Ok(())
            }
            Prim::Concat { axis } => {
                let row = |t: &NodeType| t.shape[*axis..].iter().product::<u64>() as usize * t.dtype.bytes();
                let part = |(&bytes, t)| Part { bytes, row: row(t) };
                let parts: Vec<Part> = operands.iter().zip(&types).map(part).collect();
                concat(&pool, &parts, out);
                Ok(())
            }
            Prim::Factor(factor) => {
                linalg::factor_into(&*pool, *factor, arrays(&types, &operands)[0], out).map_err(|e| refused(fault(e)))
            }
            Prim::TriangularSolve(triangle) => {
                let x = arrays(&types, &operands);
                linalg::solve_into(&*pool, *triangle, [x[0], x[1]], out).map_err(|e| refused(fault(e)))
            }
            prim => bug!("{prim:?} has no step of its own"),
        }
    }))
}

/// The operands with their types.
fn arrays<'a>(types: &'a [NodeType], operands: &[&'a [u8]]) -> Vec<ArrayRef<'a>> {
    let array = |(t, &bytes): (&'a NodeType, &&'a [u8])| ArrayRef { dtype: t.dtype, shape: &t.shape, bytes };
    types.iter().zip(operands).map(array).collect()
}

/// How many elements of each line of a sorted array are read, where every reader takes the
/// first ones.
fn wanted(graph: &Graph, id: NodeId) -> Option<usize> {
    let (Prim::Sort { axis, .. } | Prim::ArgSort { axis, .. }) = graph.node(id).prim else { return None };
    if graph.outputs.contains(&id) {
        return None;
    }
    let mut most = 0;
    for reader in graph.ids().filter(|&r| graph.node(r).operands.contains(&id)) {
        match &graph.node(reader).prim {
            Prim::Slice { start, step } if start.get(axis) == Some(&0) && step.get(axis) == Some(&1) => {
                most = most.max(*graph.ty(reader).shape.get(axis)?);
            }
            _ => return None,
        }
    }
    usize::try_from(most).ok()
}

/// Elements before, along and after an axis.
fn split(shape: &[u64], axis: usize) -> [usize; 3] {
    let product = |dims: &[u64]| dims.iter().product::<u64>() as usize;
    [product(&shape[..axis]), shape[axis] as usize, product(&shape[axis + 1..])]
}

/// Positions along an axis of `size`, counted from the start.
fn resolve(index: &[u8], axis: usize, size: u64) -> impl Iterator<Item = Result<usize, String>> {
    let bounds = Bounds { axis: axis as u32, size, block: None };
    index.as_chunks::<8>().0.iter().map(move |b| {
        let position = i64::from_le_bytes(*b);
        bounds.resolve(position).map(|at| at as usize).ok_or_else(|| bounds.message(position))
    })
}

fn scatter_add(pool: &Pool, types: &[NodeType], operands: &[&[u8]], out: &mut [u8]) -> Result<(), String> {
    let shape = &types[0].shape;
    let depth = operands.len() - 2;
    let mut places: Vec<usize> = vec![];
    for (axis, index) in operands[2..].iter().enumerate() {
        let found = resolve(index, axis, shape[axis]);
        if axis == 0 {
            places = found.collect::<Result<_, _>>()?;
        } else {
            for (place, at) in places.iter_mut().zip(found) {
                *place = *place * shape[axis] as usize + at?;
            }
        }
    }
    let row = shape[depth..].iter().product::<u64>() as usize;
    let to = Places::Rows { places: &places, row };
    add_into(pool, types[0].dtype, operands[0], operands[1], out, &to)
}

fn scatter_add_along(
    pool: &Pool,
    axis: usize,
    types: &[NodeType],
    operands: &[&[u8]],
    out: &mut [u8],
) -> Result<(), String> {
    let bounds = Bounds { axis: axis as u32, size: types[0].shape[axis], block: None };
    let [outer, count, inner] = split(&types[1].shape, axis);
    let sizes = [outer, count, types[0].shape[axis] as usize, inner];
    let to = Places::Along { positions: operands[1].as_chunks::<8>().0, bounds, sizes };
    add_into(pool, types[0].dtype, operands[0], operands[2], out, &to)
}

/// Where values go.
enum Places<'a> {
    Rows { places: &'a [usize], row: usize },
    Along { positions: &'a [[u8; 8]], bounds: Bounds, sizes: [usize; 4] },
}

impl Places<'_> {
    fn add<const N: usize>(
        &self,
        pool: &Pool,
        out: &mut [u8],
        values: &[u8],
        f: impl Fn([u8; N], [u8; N]) -> [u8; N] + Copy + Sync,
    ) -> Result<(), String> {
        let (out, values) = (out.as_chunks_mut::<N>().0, values.as_chunks::<N>().0);
        match *self {
            Places::Rows { places, row } => scatter_rows(pool, out, values, places, row, f),
            Places::Along { positions, bounds, sizes } => {
                scatter_along(pool, out, values, positions, sizes, |p| bounds.resolve(p), f)
                    .map_err(|p| bounds.message(p))?
            }
        }
        Ok(())
    }
}

/// `out` becomes `base` with the values added, in the accumulator of `dtype` and rounded once.
fn add_into(
    pool: &Pool,
    dtype: DType,
    base: &[u8],
    values: &[u8],
    out: &mut [u8],
    places: &Places,
) -> Result<(), String> {
    match dtype {
        DType::F32 => {
            copy_on_threads(pool, base, out);
            places.add(pool, out, values, |a, b| (f32::from_le_bytes(a) + f32::from_le_bytes(b)).to_le_bytes())
        }
        DType::F64 => {
            copy_on_threads(pool, base, out);
            places.add(pool, out, values, |a, b| (f64::from_le_bytes(a) + f64::from_le_bytes(b)).to_le_bytes())
        }
        DType::I64 => {
            copy_on_threads(pool, base, out);
            let add = |a, b| i64::from_le_bytes(a).wrapping_add(i64::from_le_bytes(b)).to_le_bytes();
            places.add(pool, out, values, add)
        }
        _ => {
            let accum = dtype.accumulator();
            let mut sums = cast(dtype, accum, base);
            let terms = cast(dtype, accum, values);
            let mut wide = vec![0; sums.len()];
            if accum != dtype {
                add_into(pool, accum, &sums, &terms, &mut wide, places)?;
                sums = cast(accum, dtype, &wide);
            }
            if sums.len() == out.len() {
                out.copy_from_slice(&sums);
            }
            Ok(())
        }
    }
}
