//! What rules of shapes are written with.

use super::TypeRef;
use crate::prim::Reduction;
use tessera_base::{Blocks, DType};

/// What does not fit, lower case, without a full stop.
pub type Check = Result<(), String>;

/// Or why it is not so.
pub fn ensure(ok: bool, why: impl FnOnce() -> String) -> Check {
    if ok { Ok(()) } else { Err(why()) }
}

/// A type, as messages show it.
pub fn shown(t: TypeRef) -> String {
    let dims: Vec<String> = t.shape.iter().map(u64::to_string).collect();
    format!("{}[{}]", t.dtype, dims.join(", "))
}

/// There are so many operands.
pub fn count(x: &[TypeRef], n: usize) -> Check {
    ensure(x.len() == n, || format!("{} operands instead of {n}", x.len()))
}

/// There are so many operands or more.
pub fn at_least(x: &[TypeRef], n: usize) -> Check {
    ensure(x.len() >= n, || format!("{} operands instead of {n} or more", x.len()))
}

/// The axis is one of the shape.
pub fn axis_in(axis: usize, shape: &[u64]) -> Check {
    ensure(axis < shape.len(), || format!("axis {axis} of a rank {} array", shape.len()))
}

/// The type has that shape.
pub fn shape_is(shape: &[u64], t: TypeRef) -> Check {
    ensure(shape == t.shape, || format!("the shape is {shape:?}, not {:?}", t.shape))
}

/// Both have one element type.
pub fn dtype_is(x: TypeRef, result: TypeRef) -> Check {
    ensure(x.dtype == result.dtype, || format!("the element type is {}, not {}", x.dtype, result.dtype))
}

/// Both are of one type.
pub fn same(x: TypeRef, result: TypeRef) -> Check {
    dtype_is(x, result)?;
    shape_is(x.shape, result)
}

/// The elements have an order.
pub fn real(x: TypeRef) -> Check {
    ensure(!x.dtype.is_complex(), || "complex numbers have no order".into())
}

/// The elements are integers.
pub fn integer(x: TypeRef) -> Check {
    ensure(x.dtype.is_int(), || format!("positions and bits are integers, not {}", x.dtype))
}

/// The elements are positions.
pub fn positions(x: TypeRef) -> Check {
    ensure(x.dtype == DType::I64, || format!("positions are i64, not {}", x.dtype))
}

/// The shape without some axes.
pub fn without(shape: &[u64], axes: &[usize]) -> Vec<u64> {
    shape.iter().enumerate().filter(|(i, _)| !axes.contains(i)).map(|(_, &n)| n).collect()
}

/// `start + i · step` for `i` below each size lies inside `shape`.
pub fn stepped(shape: &[u64], start: &[i64], step: &[i64], sizes: &[u64]) -> Check {
    let rank = shape.len();
    let ranks = start.len() == rank && step.len() == rank && sizes.len() == rank;
    ensure(ranks, || format!("starts, steps and sizes are not {rank} each"))?;
    for dim in 0..rank {
        let (n, count) = (i128::from(shape[dim]), i128::from(sizes[dim]));
        let first = i128::from(start[dim]);
        let last = first + (count - 1) * i128::from(step[dim]);
        let inside = count == 0 || ((0..n).contains(&first) && (0..n).contains(&last));
        ensure(inside, || format!("positions {first} to {last} leave dim {dim} of size {n}"))?;
    }
    Ok(())
}

/// Starts of a block, one for each dim.
pub fn starts(shape: &[u64], x: &[TypeRef], sizes: &[u64]) -> Check {
    let rank = shape.len();
    ensure(x.len() == rank && sizes.len() == rank, || format!("starts and sizes are not {rank} each"))?;
    for t in x {
        positions(*t)?;
        shape_is(&[], *t)?;
    }
    for (dim, (&n, &size)) in shape.iter().zip(sizes).enumerate() {
        ensure(size <= n, || format!("a block of {size} does not fit dim {dim} of size {n}"))?;
    }
    Ok(())
}

/// The reduction takes such elements to such.
pub fn monoid(kind: Reduction, x: TypeRef, result: TypeRef) -> Check {
    let text = || format!("`{}` of {} to {}", kind.name(), x.dtype, result.dtype);
    match kind {
        Reduction::Any | Reduction::All => ensure(x.dtype == DType::Bool && result.dtype == DType::Bool, text),
        Reduction::HalfSum | Reduction::HalfProd => ensure(x.dtype == DType::F16, text),
        Reduction::Sum | Reduction::Prod => ensure(!x.dtype.is_complex() || result.dtype.is_complex(), text),
        Reduction::Max | Reduction::Min => ensure(!x.dtype.is_complex() && !result.dtype.is_complex(), text),
    }
}

/// The shape of what indices of one shape name: theirs, then the dims that are not indexed.
pub fn indexed(shape: &[u64], indices: &[TypeRef]) -> Result<Vec<u64>, String> {
    let Some(first) = indices.first() else { return Err("no index".into()) };
    ensure(indices.len() <= shape.len(), || format!("{} indices of a rank {} array", indices.len(), shape.len()))?;
    for t in indices {
        positions(*t)?;
        shape_is(first.shape, *t)?;
    }
    Ok([first.shape, &shape[indices.len()..]].concat())
}

/// An index along an axis.
pub fn along(x: TypeRef, index: TypeRef, axis: usize) -> Check {
    positions(index)?;
    axis_in(axis, x.shape)?;
    let mut shape = index.shape.to_vec();
    ensure(shape.len() == x.shape.len(), || format!("the index has rank {}", shape.len()))?;
    shape[axis] = x.shape[axis];
    shape_is(&shape, x)
}

/// The shape of the numbers that blocks hold.
pub fn numbers(format: Blocks, x: TypeRef) -> Result<Vec<u64>, String> {
    ensure(x.dtype == DType::U8, || format!("blocks are u8, not {}", x.dtype))?;
    let [lead @ .., blocks, bytes] = x.shape else { return Err("blocks have two dims or more".into()) };
    ensure(*bytes == format.bytes() as u64, || format!("a block of {} has {} bytes", format.name(), format.bytes()))?;
    let last = blocks.checked_mul(format.elems() as u64).ok_or("a size does not fit 64 bits")?;
    Ok([lead, &[last]].concat())
}
