//! Operations that move elements, index by index.

use super::Array;
use super::value::Value;
use tessera_ops::prim::Prim;

/// Row-major strides.
fn strides(shape: &[usize]) -> Vec<usize> {
    let mut out = vec![1; shape.len()];
    for d in (1..shape.len()).rev() {
        out[d - 1] = out[d] * shape[d];
    }
    out
}

/// Calls `f` with every index of a shape, in row-major order.
pub fn each(shape: &[usize], mut f: impl FnMut(&[usize])) {
    let count: usize = shape.iter().product();
    let mut index = vec![0; shape.len()];
    for _ in 0..count {
        f(&index);
        for d in (0..shape.len()).rev() {
            index[d] += 1;
            if index[d] < shape[d] {
                break;
            }
            index[d] = 0;
        }
    }
}

/// The elements of `x` that `source` names for each index of the result; `None` where that is
/// not known.
fn read(x: &Array, shape: &[usize], mut source: impl FnMut(&[usize]) -> Option<Vec<usize>>) -> Vec<Value> {
    let (steps, parts) = (strides(&x.shape), x.parts());
    let mut out = Vec::with_capacity(shape.iter().product::<usize>() * parts);
    each(shape, |index| match source(index) {
        Some(at) => {
            let at: usize = at.iter().zip(&steps).map(|(a, s)| a * s).sum();
            out.extend_from_slice(&x.values[at * parts..(at + 1) * parts]);
        }
        None => out.resize(out.len() + parts, Value::Any),
    });
    out
}

/// The same where the source is at `start` plus a constant per dim of the result.
fn read_strided(x: &Array, shape: &[usize], start: i64, steps: &[i64]) -> Vec<Value> {
    let parts = x.parts();
    let mut out = Vec::with_capacity(shape.iter().product::<usize>() * parts);
    each(shape, |index| {
        let at = start + index.iter().zip(steps).map(|(&i, s)| i as i64 * s).sum::<i64>();
        out.extend_from_slice(&x.values[at as usize * parts..(at as usize + 1) * parts]);
    });
    out
}

/// `base` with the elements of `values` at the indices that `target` names.
fn write(base: &Array, values: &Array, mut target: impl FnMut(&[usize]) -> Option<Vec<usize>>) -> Vec<Value> {
    let (steps, parts) = (strides(&base.shape), base.parts());
    let mut out = base.values.clone();
    let (mut n, mut lost) = (0, false);
    each(&values.shape, |index| {
        match target(index) {
            Some(at) => {
                let at: usize = at.iter().zip(&steps).map(|(a, s)| a * s).sum();
                out[at * parts..(at + 1) * parts].copy_from_slice(&values.values[n * parts..(n + 1) * parts]);
            }
            None => lost = true,
        }
        n += 1;
    });
    if lost { vec![Value::Any; out.len()] } else { out }
}

/// The position that an element of an index tensor means in a dim of `n`.
fn position(index: &Array, at: &[usize], n: usize) -> Option<usize> {
    let flat: usize = at.iter().zip(strides(&index.shape)).map(|(a, s)| a * s).sum();
    match index.values[flat] {
        Value::Int(i) if i < 0 => usize::try_from(i + n as i64).ok().filter(|i| *i < n),
        Value::Int(i) => usize::try_from(i).ok().filter(|i| *i < n),
        _ => None,
    }
}

fn stepped(index: &[usize], start: &[i64], step: &[i64]) -> Vec<usize> {
    index.iter().zip(start).zip(step).map(|((&i, &s), &t)| (s + i as i64 * t) as usize).collect()
}

/// `index` with one dim replaced.
fn replaced(index: &[usize], axis: usize, by: usize) -> Vec<usize> {
    let mut out = index.to_vec();
    out[axis] = by;
    out
}

/// The elements of the result; `None` for other primitives.
pub fn of(prim: &Prim, x: &[&Array], shape: &[usize]) -> Option<Vec<Value>> {
    Some(match prim {
        Prim::Reshape => x[0].values.clone(),
        Prim::Broadcast { dims } => {
            let mut steps = vec![0; shape.len()];
            for ((&d, &n), s) in dims.iter().zip(&x[0].shape).zip(strides(&x[0].shape)) {
                steps[d] = if n == 1 { 0 } else { s as i64 };
            }
            read_strided(x[0], shape, 0, &steps)
        }
        Prim::Transpose { perm } => {
            let dense = strides(&x[0].shape);
            let steps: Vec<i64> = perm.iter().map(|&p| dense[p] as i64).collect();
            read_strided(x[0], shape, 0, &steps)
        }
        Prim::Rows { axis, from } => {
            let row = |index: &[usize]| from.get(index[*axis]).map(|&i| replaced(index, *axis, i as usize));
            read(x[0], shape, row)
        }
        Prim::Slice { start, step } => {
            let dense = strides(&x[0].shape);
            let first = start.iter().zip(&dense).map(|(&s, &d)| s * d as i64).sum();
            let steps: Vec<i64> = step.iter().zip(&dense).map(|(&s, &d)| s * d as i64).collect();
            read_strided(x[0], shape, first, &steps)
        }
        Prim::Windows { stride, dilation } => {
            let (lead, n) = (x[0].shape.len() - stride.len(), stride.len());
            let at = |index: &[usize]| {
                let window =
                    |d: usize| index[lead + d] * stride[d] as usize + index[lead + n + d] * dilation[d] as usize;
                Some(index[..lead].iter().copied().chain((0..n).map(window)).collect())
            };
            read(x[0], shape, at)
        }
        Prim::Pad { low, .. } => padded(x[0], x[1], low, shape),
        Prim::Concat { axis } => joined(x, *axis, shape),
        Prim::UpdateSlice { start, step } => write(x[0], x[1], |index| Some(stepped(index, start, step))),
        Prim::DynamicSlice { .. } => {
            let starts = starts(&x[1..])?;
            read(x[0], shape, |index| Some(stepped(index, &starts, &vec![1; index.len()])))
        }
        Prim::DynamicUpdate => {
            let starts = starts(&x[2..])?;
            write(x[0], x[1], |index| Some(stepped(index, &starts, &vec![1; index.len()])))
        }
        Prim::Take { axis } => read(x[0], shape, |index| {
            let end = axis + x[1].shape.len();
            let at = position(x[1], &index[*axis..end], x[0].shape[*axis])?;
            Some([&index[..*axis], &[at], &index[end..]].concat())
        }),
        Prim::TakeAlong { axis } => {
            read(x[0], shape, |index| Some(replaced(index, *axis, position(x[1], index, x[0].shape[*axis])?)))
        }
        Prim::Gather => read(x[0], shape, |index| rows(&x[1..], index, &x[0].shape)),
        Prim::Scatter { add: false } => write(x[0], x[1], |index| rows(&x[2..], index, &x[0].shape)),
        Prim::Scatter { add: true } => {
            super::reduce::added(x[0], x[1], |index| flat(&rows(&x[2..], index, &x[0].shape)?, &x[0].shape))
        }
        Prim::ScatterAddAlong { axis } => super::reduce::added(x[0], x[2], |index| {
            flat(&replaced(index, *axis, position(x[1], index, x[0].shape[*axis])?), &x[0].shape)
        }),
        _ => return None,
    })
}

fn flat(index: &[usize], shape: &[usize]) -> Option<usize> {
    Some(index.iter().zip(strides(shape)).map(|(i, s)| i * s).sum())
}

/// The index that several index tensors name, followed by the rest of `index`.
fn rows(indices: &[&Array], index: &[usize], shape: &[usize]) -> Option<Vec<usize>> {
    let rank = indices.first().map_or(0, |i| i.shape.len());
    let named: Option<Vec<usize>> = indices.iter().zip(shape).map(|(i, &n)| position(i, &index[..rank], n)).collect();
    Some([&named?[..], &index[rank..]].concat())
}

fn starts(scalars: &[&Array]) -> Option<Vec<i64>> {
    scalars.iter().map(|s| if let Value::Int(n) = s.values[0] { Some(n) } else { None }).collect()
}

fn padded(x: &Array, fill: &Array, low: &[u64], shape: &[usize]) -> Vec<Value> {
    let count: usize = shape.iter().product();
    let base = Array { shape: shape.to_vec(), dtype: x.dtype, values: fill.values.repeat(count) };
    write(&base, x, |index| Some(index.iter().zip(low).map(|(i, &l)| i + l as usize).collect()))
}

fn joined(x: &[&Array], axis: usize, shape: &[usize]) -> Vec<Value> {
    let mut out = vec![];
    each(shape, |index| {
        let mut at = index[axis];
        for part in x {
            if at < part.shape[axis] {
                let from = flat(&replaced(index, axis, at), &part.shape).unwrap_or(0) * part.parts();
                out.extend_from_slice(&part.values[from..from + part.parts()]);
                return;
            }
            at -= part.shape[axis];
        }
    });
    out
}
