//! What each primitive asks of its operands and result.

use super::{TypeRef, elems};
use crate::fft;
use crate::map::{Gives, MapOp, kind_of};
use crate::prim::{Collective, CollectiveKind, Fft, FftKind, Prim, Reduction, Scalar, Steps, Transfer};
use tessera_base::{Blocks, DType};

type Check = Result<(), String>;

/// Whether the operands fit the primitive and its result has the type they give.
///
/// `Input`, `Scan` and `Get` are checked by the graph around them; here they pass. Where
/// several element types are possible for the result (reductions, products, conversions) any
/// real one passes.
///
/// # Errors
/// What does not fit, lower case, without a full stop.
pub fn shape_check(prim: &Prim, operands: &[TypeRef], result: TypeRef) -> Result<(), String> {
    let x = operands;
    match prim {
        Prim::Input(_) | Prim::Scan { .. } | Prim::Get { .. } => Ok(()),
        Prim::Full { value } => {
            count(x, 0)?;
            let int = !(result.dtype.is_float() || result.dtype.is_complex());
            ensure(!(int && matches!(value, Scalar::F(_))), || format!("a float fills {}", result.dtype))
        }
        Prim::Iota { axis } => {
            count(x, 0)?;
            axis_in(*axis, result.shape)
        }
        Prim::Literal(bytes) => {
            count(x, 0)?;
            let want = elems(result.shape).and_then(|n| n.checked_mul(result.dtype.bytes()));
            ensure(want == Some(bytes.len()), || format!("{} bytes for {}", bytes.len(), shown(result)))
        }
        Prim::Map(op) => map(*op, x, result),
        Prim::Check(check) => {
            count(x, 2)?;
            same(x[0], result)?;
            same(x[1], result)?;
            let dtype = if check.of_ints() { DType::I64 } else { DType::F64 };
            ensure(result.dtype == dtype, || format!("`{}` is of {}", check.name(), dtype.name()))
        }
        Prim::Cast => {
            count(x, 1)?;
            shape_is(x[0].shape, result)
        }
        Prim::Broadcast { dims } => broadcast(x, dims, result),
        Prim::Reshape => {
            count(x, 1)?;
            dtype_is(x[0], result)?;
            let same = elems(x[0].shape) == elems(result.shape);
            ensure(same, || format!("{} has other elements than {}", shown(x[0]), shown(result)))
        }
        Prim::Transpose { perm } => {
            count(x, 1)?;
            dtype_is(x[0], result)?;
            let mut sorted = perm.clone();
            sorted.sort_unstable();
            ensure(sorted.into_iter().eq(0..x[0].shape.len()), || format!("{perm:?} is no permutation of the dims"))?;
            let shape: Vec<u64> = perm.iter().map(|&p| x[0].shape[p]).collect();
            shape_is(&shape, result)
        }
        Prim::Slice { start, step } => {
            count(x, 1)?;
            dtype_is(x[0], result)?;
            stepped(x[0].shape, start, step, result.shape)
        }
        Prim::Windows { stride, dilation } => windows(x, stride, dilation, result),
        Prim::Pad { low, high } => pad(x, low, high, result),
        Prim::Concat { axis } => concat(x, *axis, result),
        Prim::UpdateSlice { start, step } => {
            count(x, 2)?;
            same(x[0], result)?;
            dtype_is(x[1], result)?;
            stepped(x[0].shape, start, step, x[1].shape)
        }
        Prim::DynamicSlice { sizes } => {
            at_least(x, 1)?;
            dtype_is(x[0], result)?;
            shape_is(sizes, result)?;
            starts(x[0].shape, &x[1..], sizes)
        }
        Prim::DynamicUpdate => {
            at_least(x, 2)?;
            same(x[0], result)?;
            dtype_is(x[1], result)?;
            starts(x[0].shape, &x[2..], x[1].shape)
        }
        Prim::Reduce { kind, axes } => {
            count(x, 1)?;
            monoid(*kind, x[0], result)?;
            for (i, &axis) in axes.iter().enumerate() {
                axis_in(axis, x[0].shape)?;
                ensure(!axes[..i].contains(&axis), || format!("axis {axis} is named twice"))?;
            }
            shape_is(&without(x[0].shape, axes), result)
        }
        Prim::ArgReduce { axis, .. } => {
            count(x, 1)?;
            real(x[0])?;
            integer(result)?;
            axis_in(*axis, x[0].shape)?;
            shape_is(&without(x[0].shape, &[*axis]), result)?;
            let found = x[0].shape[*axis] != 0 || elems(result.shape) == Some(0);
            ensure(found, || format!("axis {axis} is empty, so it has no extreme"))
        }
        Prim::Cumulate { kind, axis } => {
            count(x, 1)?;
            monoid(*kind, x[0], result)?;
            axis_in(*axis, x[0].shape)?;
            shape_is(x[0].shape, result)
        }
        Prim::Dot { accum, steps, pairs } => {
            let even = x.first().and_then(|a| a.shape.last()).is_some_and(|k| k.is_multiple_of(2));
            let bf16 = x.iter().all(|f| f.dtype == DType::Bf16) && *accum == DType::F32;
            ensure(!pairs || even && bf16 && *steps == Steps::All, || "these factors have no product in pairs".into())?;
            let factors = match x {
                [a, b, start] => {
                    let chain = *steps == Steps::All && !pairs && matches!(accum, DType::F32 | DType::F64);
                    ensure(chain && start.dtype == *accum, || format!("no product starts from {}", shown(*start)))?;
                    shape_is(start.shape, result)?;
                    &[*a, *b][..]
                }
                _ => x,
            };
            dot(factors, *accum, result)
        }
        Prim::Quantize { format } => {
            count(x, 1)?;
            let f32s = x[0].dtype == DType::F32 && result.dtype == DType::U8 && format.writes();
            ensure(f32s, || format!("f32 becomes blocks of u8, not {} of {}", x[0].dtype, format.name()))?;
            let back = numbers(*format, result)?;
            ensure(back == x[0].shape, || "the blocks do not hold these numbers".into())
        }
        Prim::Dequantize { format } => {
            count(x, 1)?;
            shape_is(&numbers(*format, x[0])?, result)?;
            ensure(result.dtype == DType::F32, || format!("blocks hold f32, not {}", result.dtype))
        }
        Prim::BlockDot { format } => {
            count(x, 2)?;
            let right = numbers(*format, x[1])?;
            let (&[m, k], &[n, depth]) = (x[0].shape, &right[..]) else {
                return Err("a product with blocks takes matrices".into());
            };
            ensure(k == depth, || format!("the contracted sizes are {k} and {depth}"))?;
            let f32s = x[0].dtype == DType::F32 && result.dtype == DType::F32;
            ensure(f32s, || "a product with blocks takes and gives f32".into())?;
            shape_is(&[m, n], result)
        }
        Prim::Take { axis } => {
            count(x, 2)?;
            dtype_is(x[0], result)?;
            positions(x[1])?;
            axis_in(*axis, x[0].shape)?;
            let (before, after) = x[0].shape.split_at(*axis);
            shape_is(&[before, x[1].shape, &after[1..]].concat(), result)
        }
        Prim::Gather => {
            at_least(x, 1)?;
            dtype_is(x[0], result)?;
            shape_is(&rows(x[0].shape, &x[1..])?, result)
        }
        Prim::Scatter { .. } => {
            at_least(x, 2)?;
            same(x[0], result)?;
            dtype_is(x[1], result)?;
            shape_is(&rows(x[0].shape, &x[2..])?, x[1])
        }
        Prim::TakeAlong { axis } => {
            count(x, 2)?;
            dtype_is(x[0], result)?;
            shape_is(x[1].shape, result)?;
            along(x[0], x[1], *axis)
        }
        Prim::ScatterAddAlong { axis } => {
            count(x, 3)?;
            same(x[0], result)?;
            dtype_is(x[2], result)?;
            shape_is(x[1].shape, x[2])?;
            along(x[0], x[1], *axis)
        }
        Prim::Sort { axis, .. } => {
            count(x, 1)?;
            real(x[0])?;
            same(x[0], result)?;
            axis_in(*axis, x[0].shape)
        }
        Prim::ArgSort { axis, .. } => {
            count(x, 1)?;
            real(x[0])?;
            integer(result)?;
            axis_in(*axis, x[0].shape)?;
            shape_is(x[0].shape, result)
        }
        Prim::Part { .. } => {
            count(x, 1)?;
            shape_is(x[0].shape, result)?;
            let fits = x[0].dtype.is_complex() && result.dtype == DType::F32;
            ensure(fits, || format!("a part of {} is not {}", x[0].dtype, result.dtype))
        }
        Prim::Complex => {
            count(x, 2)?;
            for t in x {
                shape_is(t.shape, result)?;
                ensure(t.dtype == DType::F32, || format!("the parts of a complex number are f32, not {}", t.dtype))?;
            }
            ensure(result.dtype.is_complex(), || format!("two parts give c64, not {}", result.dtype))
        }
        Prim::Fft(f) => transform(f, x, result),
        Prim::Layout => {
            count(x, 1)?;
            same(x[0], result)
        }
        Prim::Rows { axis, from } => {
            count(x, 1)?;
            same(x[0], result)?;
            axis_in(*axis, x[0].shape)?;
            let n = x[0].shape[*axis];
            ensure(from.len() as u64 == n && from.iter().all(|&i| i < n), || {
                format!("{} positions of {n} along axis {axis}", from.len())
            })
        }
        Prim::Collective(c) => collective(c, x, result),
        Prim::Exchange(e) => {
            count(x, 1)?;
            dtype_is(x[0], result)?;
            let inside = |t: &Transfer, shape: &[u64]| {
                t.start.len() == shape.len()
                    && t.size.len() == shape.len()
                    && t.start.iter().zip(&t.size).zip(shape).all(|((a, n), all)| a + n <= *all)
            };
            let fits =
                e.sends.iter().all(|t| inside(t, x[0].shape)) && e.receives.iter().all(|t| inside(t, result.shape));
            ensure(fits, || format!("`{}` takes parts outside {} or {}", e.name, shown(x[0]), shown(result)))
        }
        Prim::RandomBits => {
            count(x, 1)?;
            positions(x[0])?;
            let batch = x[0].shape.split_last().filter(|(words, _)| **words == 2).map(|(_, batch)| batch);
            let fits = batch.is_some_and(|batch| result.shape.starts_with(batch));
            ensure(fits, || format!("keys are i64[batch…, 2] of {}, not {}", shown(result), shown(x[0])))?;
            integer(result)
        }
    }
}

fn collective(c: &Collective, x: &[TypeRef], result: TypeRef) -> Check {
    use CollectiveKind::{Gather, Rank, Rows, Scatter, Sum, Turn};
    if c.kind == Rank {
        count(x, 0)?;
        integer(result)?;
        return shape_is(&[], result);
    }
    count(x, 1)?;
    dtype_is(x[0], result)?;
    let mut shape = x[0].shape.to_vec();
    let mut scale = |dim: usize, up: bool| -> Check {
        axis_in(dim, x[0].shape)?;
        ensure(up || shape[dim].is_multiple_of(c.devices.max(1)), || format!("{} parts of {}", c.devices, shape[dim]))?;
        shape[dim] = if up { shape[dim].saturating_mul(c.devices) } else { shape[dim] / c.devices.max(1) };
        Ok(())
    };
    match &c.kind {
        Rank | Sum => {}
        Gather { dim } => scale(*dim, true)?,
        Scatter { dim } => scale(*dim, false)?,
        Turn { from, to } => {
            scale(*to, false)?;
            scale(*from, true)?;
        }
        Rows { from } => {
            let fits = from.len() as u64 == c.devices && from.iter().all(|&d| d < c.devices);
            ensure(fits, || format!("{} devices, and {} senders", c.devices, from.len()))?;
        }
    }
    shape_is(&shape, result)
}

fn transform(f: &Fft, x: &[TypeRef], result: TypeRef) -> Check {
    ensure(matches!(x.len(), 2 | 4), || format!("{} operands instead of 2 or 4", x.len()))?;
    axis_in(f.axis, x[0].shape)?;
    axis_in(f.to, x[0].shape)?;
    let (from, to) = (x[0].shape[f.axis], result.shape.get(f.to).copied().unwrap_or(0));
    let half = f.points / 2 + 1;
    let (types, sizes) = match f.kind {
        FftKind::Forward | FftKind::Inverse => ((DType::C64, DType::C64), from == f.points && to == f.points),
        FftKind::RealForward => ((DType::F32, DType::C64), from == f.points && (1..=half).contains(&to)),
        FftKind::RealInverse => ((DType::C64, DType::F32), (1..=half).contains(&from) && to == f.points),
    };
    ensure((x[0].dtype, result.dtype) == types, || format!("`{}` of {}", f.kind.name(), x[0].dtype))?;
    ensure(sizes, || format!("`{}` of {} points takes {from} to {to}", f.kind.name(), f.points))?;
    let mut shape = without(x[0].shape, &[f.axis]);
    shape.insert(f.to, to);
    shape_is(&shape, result)?;
    let Some(plan) = fft::plan(f.kind, f.points) else { return Err(format!("{} points have no plan", f.points)) };
    let table = |t: TypeRef, want: u64| {
        ensure(t.dtype == DType::F32 && t.shape == [want], || format!("a table is f32[{want}], not {}", shown(t)))
    };
    table(x[1], plan.table_len() as u64)?;
    if let [.., a, b] = x[2..] {
        let plain = !f.kind.real() && f.axis + 2 == x[0].shape.len() && f.to == f.axis;
        ensure(plain, || "a twist turns the results of complex transforms of the last dim but one".into())?;
        let lengths = fft::twist_lens(f.points, x[0].shape[f.axis + 1]);
        table(a, lengths[0])?;
        table(b, lengths[1])?;
    }
    Ok(())
}

/// The shape of the numbers that blocks hold.
fn numbers(format: Blocks, x: TypeRef) -> Result<Vec<u64>, String> {
    ensure(x.dtype == DType::U8, || format!("blocks are u8, not {}", x.dtype))?;
    let [lead @ .., blocks, bytes] = x.shape else { return Err("blocks have two dims or more".into()) };
    ensure(*bytes == format.bytes() as u64, || format!("a block of {} has {} bytes", format.name(), format.bytes()))?;
    let last = blocks.checked_mul(format.elems() as u64).ok_or("a size does not fit 64 bits")?;
    Ok([lead, &[last]].concat())
}

fn ensure(ok: bool, why: impl FnOnce() -> String) -> Check {
    if ok { Ok(()) } else { Err(why()) }
}

fn shown(t: TypeRef) -> String {
    let dims: Vec<String> = t.shape.iter().map(u64::to_string).collect();
    format!("{}[{}]", t.dtype, dims.join(", "))
}

fn count(x: &[TypeRef], n: usize) -> Check {
    ensure(x.len() == n, || format!("{} operands instead of {n}", x.len()))
}

fn at_least(x: &[TypeRef], n: usize) -> Check {
    ensure(x.len() >= n, || format!("{} operands instead of {n} or more", x.len()))
}

fn axis_in(axis: usize, shape: &[u64]) -> Check {
    ensure(axis < shape.len(), || format!("axis {axis} of a rank {} array", shape.len()))
}

fn shape_is(shape: &[u64], t: TypeRef) -> Check {
    ensure(shape == t.shape, || format!("the shape is {shape:?}, not {:?}", t.shape))
}

fn dtype_is(x: TypeRef, result: TypeRef) -> Check {
    ensure(x.dtype == result.dtype, || format!("the element type is {}, not {}", x.dtype, result.dtype))
}

fn same(x: TypeRef, result: TypeRef) -> Check {
    dtype_is(x, result)?;
    shape_is(x.shape, result)
}

fn real(x: TypeRef) -> Check {
    ensure(!x.dtype.is_complex(), || "complex numbers have no order".into())
}

fn integer(x: TypeRef) -> Check {
    ensure(x.dtype.is_int(), || format!("positions and bits are integers, not {}", x.dtype))
}

fn positions(x: TypeRef) -> Check {
    ensure(x.dtype == DType::I64, || format!("positions are i64, not {}", x.dtype))
}

fn without(shape: &[u64], axes: &[usize]) -> Vec<u64> {
    shape.iter().enumerate().filter(|(i, _)| !axes.contains(i)).map(|(_, &n)| n).collect()
}

fn map(op: MapOp, x: &[TypeRef], result: TypeRef) -> Check {
    let def = op.def();
    count(x, def.arity)?;
    let Some(&last) = x.last() else { return Err("no operands".into()) };
    let Some(kind) = kind_of(last.dtype) else { return Err(format!("`{}` of {}", def.name, last.dtype)) };
    ensure(def.takes.accepts(kind), || format!("`{}` does not take {}", def.name, last.dtype))?;
    for (i, t) in x.iter().enumerate() {
        let want = if op == MapOp::r#where && i == 0 { DType::Bool } else { last.dtype };
        ensure(t.dtype == want, || format!("operand {i} of `{}` is {}, not {want}", def.name, t.dtype))?;
        shape_is(t.shape, result)?;
    }
    match def.gives {
        Gives::Same => dtype_is(last, result),
        Gives::Bool => {
            ensure(result.dtype == DType::Bool, || format!("`{}` gives bool, not {}", def.name, result.dtype))
        }
    }
}

fn broadcast(x: &[TypeRef], dims: &[usize], result: TypeRef) -> Check {
    count(x, 1)?;
    dtype_is(x[0], result)?;
    ensure(dims.len() == x[0].shape.len(), || format!("{} places for {} dims", dims.len(), x[0].shape.len()))?;
    for (i, (&dim, &n)) in dims.iter().zip(x[0].shape).enumerate() {
        axis_in(dim, result.shape)?;
        ensure(!dims[..i].contains(&dim), || format!("dim {dim} is named twice"))?;
        let to = result.shape[dim];
        ensure(n == to || n == 1, || format!("size {n} does not broadcast to {to}"))?;
    }
    Ok(())
}

/// `start + i · step` for `i` below each size lies inside `shape`.
fn stepped(shape: &[u64], start: &[i64], step: &[i64], sizes: &[u64]) -> Check {
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

/// Every window lies inside the operand.
fn windows(x: &[TypeRef], stride: &[u64], dilation: &[u64], result: TypeRef) -> Check {
    count(x, 1)?;
    dtype_is(x[0], result)?;
    let (n, rank) = (stride.len(), x[0].shape.len());
    ensure(dilation.len() == n && n <= rank, || format!("{n} strides for a rank {rank} array"))?;
    ensure(result.shape.len() == rank + n, || format!("{} dims instead of {}", result.shape.len(), rank + n))?;
    let lead = rank - n;
    ensure(result.shape[..lead] == x[0].shape[..lead], || "the leading dims differ".into())?;
    for i in 0..n {
        let (d, o, k) = (x[0].shape[lead + i], result.shape[lead + i], result.shape[rank + i]);
        ensure(stride[i] > 0 && dilation[i] > 0, || format!("stride or dilation {i} is 0"))?;
        let last = |count: u64, step: u64| u128::from(count.saturating_sub(1)) * u128::from(step);
        let inside = o == 0 || k == 0 || last(o, stride[i]) + last(k, dilation[i]) < u128::from(d);
        ensure(inside, || format!("{o} windows of {k} leave dim {} of size {d}", lead + i))?;
    }
    Ok(())
}

fn pad(x: &[TypeRef], low: &[u64], high: &[u64], result: TypeRef) -> Check {
    count(x, 2)?;
    dtype_is(x[0], result)?;
    dtype_is(x[1], result)?;
    shape_is(&[], x[1])?;
    let rank = x[0].shape.len();
    ensure(low.len() == rank && high.len() == rank, || format!("the pads are not {rank} each"))?;
    let sizes = x[0].shape.iter().zip(low.iter().zip(high)).map(|(&n, (&l, &h))| n.checked_add(l)?.checked_add(h));
    match sizes.collect::<Option<Vec<u64>>>() {
        Some(shape) => shape_is(&shape, result),
        None => Err("a padded size does not fit 64 bits".into()),
    }
}

fn concat(x: &[TypeRef], axis: usize, result: TypeRef) -> Check {
    at_least(x, 1)?;
    axis_in(axis, result.shape)?;
    let mut total = 0u64;
    for (i, t) in x.iter().enumerate() {
        dtype_is(*t, result)?;
        ensure(t.shape.len() == result.shape.len(), || format!("operand {i} has rank {}", t.shape.len()))?;
        let mut shape = result.shape.to_vec();
        shape[axis] = t.shape[axis];
        shape_is(&shape, *t)?;
        total = total.saturating_add(t.shape[axis]);
    }
    ensure(total == result.shape[axis], || format!("the sizes along axis {axis} add up to {total}"))
}

fn starts(shape: &[u64], x: &[TypeRef], sizes: &[u64]) -> Check {
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

fn monoid(kind: Reduction, x: TypeRef, result: TypeRef) -> Check {
    let text = || format!("`{}` of {} to {}", kind.name(), x.dtype, result.dtype);
    match kind {
        Reduction::Any | Reduction::All => ensure(x.dtype == DType::Bool && result.dtype == DType::Bool, text),
        Reduction::HalfSum | Reduction::HalfProd => ensure(x.dtype == DType::F16, text),
        Reduction::Sum | Reduction::Prod => ensure(!x.dtype.is_complex() || result.dtype.is_complex(), text),
        Reduction::Max | Reduction::Min => ensure(!x.dtype.is_complex() && !result.dtype.is_complex(), text),
    }
}

fn dot(x: &[TypeRef], accum: DType, result: TypeRef) -> Check {
    count(x, 2)?;
    ensure(x[0].dtype == x[1].dtype, || format!("the factors are {} and {}", x[0].dtype, x[1].dtype))?;
    let of = x[0].dtype;
    let fits = match accum {
        DType::F16 => of == DType::F16,
        DType::F32 => of.is_float() && of != DType::F64,
        DType::F64 => of.is_float(),
        DType::I64 | DType::I32 => of.is_int() || of == DType::Bool,
        DType::C64 => of == DType::C64 && result.dtype == DType::C64,
        _ => false,
    };
    ensure(fits, || format!("a product of {of} does not accumulate in {accum}"))?;
    let rank = x[0].shape.len();
    ensure(rank >= 2 && x[1].shape.len() == rank, || "the factors are not matrices of one rank".into())?;
    let (batch, left) = x[0].shape.split_at(rank - 2);
    let (other, right) = x[1].shape.split_at(rank - 2);
    ensure(batch == other, || format!("the batches are {batch:?} and {other:?}"))?;
    ensure(left[1] == right[0], || format!("the contracted sizes are {} and {}", left[1], right[0]))?;
    shape_is(&[batch, &[left[0], right[1]]].concat(), result)
}

/// The shape of what indices of one shape name: theirs, then the dims that are not indexed.
fn rows(shape: &[u64], indices: &[TypeRef]) -> Result<Vec<u64>, String> {
    let Some(first) = indices.first() else { return Err("no index".into()) };
    ensure(indices.len() <= shape.len(), || format!("{} indices of a rank {} array", indices.len(), shape.len()))?;
    for t in indices {
        positions(*t)?;
        shape_is(first.shape, *t)?;
    }
    Ok([first.shape, &shape[indices.len()..]].concat())
}

fn along(x: TypeRef, index: TypeRef, axis: usize) -> Check {
    positions(index)?;
    axis_in(axis, x.shape)?;
    let mut shape = index.shape.to_vec();
    ensure(shape.len() == x.shape.len(), || format!("the index has rank {}", shape.len()))?;
    shape[axis] = x.shape[axis];
    shape_is(&shape, x)
}
