//! The rules of Schedule IR. A pass that breaks one has a bug.

use super::{Directive, Schedule, Store, ValueId, ValueOp};
use crate::index::{Index, Var};
use std::collections::BTreeSet;
use tessera_base::DType;
use tessera_ops::fft;
use tessera_ops::map::{Gives, MapOp};
use tessera_ops::prim::{FftKind, Order};

/// Checks order, types, bounds that are certain to be broken, one-to-one stores, and that
/// directives name axes.
pub fn verify(s: &Schedule) -> Result<(), String> {
    let mut names = BTreeSet::new();
    for name in s.axes.iter().map(|a| &a.name).chain(s.operands.iter().map(|o| &o.name)) {
        if !names.insert(name) {
            return Err(format!("`{name}` names two things"));
        }
    }
    for i in 0..s.values.len() {
        value(s, i).map_err(|e| format!("%{i}: {e}"))?;
    }
    for st in &s.stores {
        store(s, st)?;
    }
    s.directives.iter().try_for_each(|d| directive(s, d))
}

fn value(s: &Schedule, i: usize) -> Result<(), String> {
    let v = &s.values[i];
    let args = s.args(ValueId(i as u32));
    if args.iter().any(|a| a.0 as usize >= i) {
        return Err("reads a later value".into());
    }
    let dtype = |a: ValueId| s.value(a).dtype;
    let same = |what: DType, other: DType| {
        if what == other { Ok(()) } else { Err(format!("has type {other} where {what} is due")) }
    };
    match &v.op {
        ValueOp::Load { operand, at, guards } => {
            let o = s.operands.get(*operand as usize).ok_or("no such operand")?;
            same(o.dtype, v.dtype)?;
            axes(s, at)?;
            guards.iter().try_for_each(|g| axes(s, &g.index))?;
            if guards.is_empty() { bounds(s, at, o.elems) } else { Ok(()) }
        }
        ValueOp::Gather { operand, at, by, guards } => {
            let o = s.operands.get(*operand as usize).ok_or("no such operand")?;
            same(o.dtype, v.dtype)?;
            axes(s, at)?;
            guards.iter().try_for_each(|g| axes(s, &g.index))?;
            by.iter().try_for_each(|(p, _)| same(DType::I64, dtype(*p)))
        }
        ValueOp::Position { arg, .. } => same(DType::I64, dtype(*arg)).and_then(|()| same(DType::I64, v.dtype)),
        ValueOp::ArgReduce { axis, .. } => same(DType::I64, v.dtype).and_then(|()| vanishes(s, *axis)),
        ValueOp::Cumulate { arg, axis, .. } => {
            same(v.dtype, dtype(*arg))?;
            match s.axes.get(axis.0 as usize) {
                Some(a) if !a.reduced => Ok(()),
                _ => Err("runs along no parallel axis".into()),
            }
        }
        ValueOp::Transform { .. } => transform(s, &v.op).and_then(|()| same(DType::F32, v.dtype)),
        ValueOp::Scalar(n) => same(*s.scalars.get(*n as usize).ok_or("no such scalar")?, v.dtype),
        ValueOp::Const(_) => Ok(()),
        ValueOp::Index(e) => same(DType::I64, v.dtype).and_then(|()| axes(s, e)),
        ValueOp::Within(guards) => {
            same(DType::Bool, v.dtype).and_then(|()| guards.iter().try_for_each(|g| axes(s, &g.index)))
        }
        ValueOp::HalfBits(a) => same(DType::F16, dtype(*a)).and_then(|()| same(DType::I16, v.dtype)),
        ValueOp::Half { low, high } => {
            [low, high].into_iter().try_for_each(|b| same(DType::U8, dtype(*b)))?;
            same(DType::F16, v.dtype)
        }
        ValueOp::Random { key, at } => {
            key.iter().try_for_each(|k| same(DType::I64, dtype(*k)))?;
            same(DType::I64, v.dtype).and_then(|()| axes(s, at))
        }
        ValueOp::Map { op, args } => {
            if args.len() != op.def().arity {
                return Err(format!("`{}` takes {} operands", op.name(), op.def().arity));
            }
            let last = dtype(args[args.len() - 1]);
            for (k, a) in args.iter().enumerate() {
                same(if k == 0 && *op == MapOp::r#where { DType::Bool } else { last }, dtype(*a))?;
            }
            same(if op.def().gives == Gives::Bool { DType::Bool } else { last }, v.dtype)
        }
        ValueOp::Cast(_) => Ok(()),
        ValueOp::RoundTf32(a) => same(DType::Tf32, dtype(*a)).and_then(|()| same(DType::F32, v.dtype)),
        ValueOp::Reduce { arg, axis, .. } => same(v.dtype, dtype(*arg)).and_then(|()| vanishes(s, *axis)),
        ValueOp::Dot { a, b, axis, within, beyond, order, leaf } => {
            let paired = order.is_paired();
            let bounds = || within.iter().chain(beyond);
            let short = order.is_of_short_factors();
            if short && (bounds().count() > 0 || paired && !s.extent(*axis).is_multiple_of(2)) {
                return Err(format!("factors in {} have an even number of steps, and rows take all", order.name()));
            }
            let factor = match (order, v.dtype) {
                (Order::Chain, sum) => sum,
                (Order::Pairs, DType::I32) => DType::I16,
                (Order::Atoms, DType::F32) if dtype(*a) == DType::F16 => DType::F16,
                (_, DType::F32) => DType::Bf16,
                (order, sum) => return Err(format!("no sums in {sum} are made in {}", order.name())),
            };
            same(factor, dtype(*a))?;
            same(dtype(*a), dtype(*b))?;
            if *leaf == 0 || paired && !leaf.is_multiple_of(2) {
                return Err(format!("leaves of {leaf} steps"));
            }
            bounds().try_for_each(|e| axes(s, e))?;
            if bounds().any(|e| e.uses(*axis)) {
                return Err("the bound of its steps depends on them".into());
            }
            vanishes(s, *axis)
        }
    }
}

fn transform(s: &Schedule, op: &ValueOp) -> Result<(), String> {
    let ValueOp::Transform { kind, points, args, axis, to, table, imag } = op else { return Ok(()) };
    let plan = fft::plan(*kind, *points).ok_or_else(|| format!("{points} points have no plan"))?;
    let o = s.operands.get(*table as usize).ok_or("no such operand")?;
    if (o.dtype, o.elems) != (DType::F32, plan.table_len() as u64) {
        return Err(format!("its table has {} numbers", plan.table_len()));
    }
    let half = points / 2 + 1;
    let (count, parts, from, given) = match kind {
        FftKind::Inverse => return Err("an inverse transform is a forward one whose parts trade places".into()),
        FftKind::Forward => (2, 2, *points..=*points, *points..=*points),
        FftKind::RealForward => (1, 2, *points..=*points, 1..=half),
        FftKind::RealInverse => (2, 1, 1..=half, *points..=*points),
    };
    if args.len() != count || args.iter().any(|a| s.value(*a).dtype != DType::F32) || parts == 1 && *imag {
        return Err(format!("`{}` takes {count} values of f32 and gives {parts}", kind.name()));
    }
    vanishes(s, *axis)?;
    if s.axes.get(to.0 as usize).is_none_or(|a| a.reduced) {
        return Err("its results lie along no parallel axis".into());
    }
    if !from.contains(&s.extent(*axis)) || !given.contains(&s.extent(*to)) {
        return Err(format!("`{}` of {points} points", kind.name()));
    }
    // What is taken along one line cannot depend on where in it a result lies.
    let domains = s.domains();
    if args.iter().any(|a| domains[a.0 as usize].contains(to)) {
        return Err("its values depend on the position of the result".into());
    }
    Ok(())
}

fn axes(s: &Schedule, e: &Index) -> Result<(), String> {
    let mut bad = None;
    e.each_var(&mut |v| bad = bad.or((v.0 as usize >= s.axes.len()).then_some(v.0)));
    bad.map_or(Ok(()), |v| Err(format!("axis {v} does not exist")))
}

fn vanishes(s: &Schedule, axis: Var) -> Result<(), String> {
    if s.axes.get(axis.0 as usize).is_some_and(|a| a.reduced) {
        Ok(())
    } else {
        Err("its axis is not a reduced one".into())
    }
}

fn bounds(s: &Schedule, at: &Index, elems: u64) -> Result<(), String> {
    if s.axes.iter().any(|a| a.extent == 0) {
        return Ok(());
    }
    let (lo, hi) = at.range(&|v| s.range(v));
    if lo < 0 || hi >= elems as i64 { Err(format!("positions {lo} to {hi} of {elems} elements")) } else { Ok(()) }
}

/// In range, of the right type, and one to one: sorted by stride, each axis steps over all that
/// the smaller ones reach.
fn store(s: &Schedule, st: &Store) -> Result<(), String> {
    let Store { operand, at, by, value: v } = st;
    let o = s.operands.get(*operand as usize).ok_or("a store to no operand")?;
    let value = s.values.get(v.0 as usize).ok_or("a store of no value")?;
    if !o.output || o.dtype != value.dtype {
        return Err(format!("a store of {} to `{}`", value.dtype, o.name));
    }
    axes(s, at)?;
    bounds(s, at, o.elems)?;
    for (p, _) in by {
        let dtype = s.values.get(p.0 as usize).ok_or("a store at no position")?.dtype;
        if dtype != DType::I64 {
            return Err(format!("a store at a position of {dtype}"));
        }
    }
    let mut strides = vec![];
    for i in 0..s.axes.len() as u32 {
        let stride = at.stride(Var(i)).ok_or("a store at an uneven index")?;
        if stride != 0 && s.extent(Var(i)) > 1 {
            strides.push((stride.unsigned_abs(), s.extent(Var(i))));
        }
    }
    strides.sort();
    let mut reach = 0u64;
    for (stride, extent) in strides {
        if stride <= reach {
            return Err(format!("two positions of a store to `{}` coincide", o.name));
        }
        reach += stride * (extent - 1);
    }
    Ok(())
}

fn directive(s: &Schedule, d: &Directive) -> Result<(), String> {
    let axis = |v: &Var| {
        if (v.0 as usize) < s.axes.len() {
            Ok(())
        } else {
            Err("a directive for an axis that does not exist".to_string())
        }
    };
    let positive = |n: u64| if n > 0 { Ok(()) } else { Err("a directive with a size of 0".to_string()) };
    match d {
        Directive::Order(axes) => axes.iter().try_for_each(axis),
        Directive::Tile { axis: a, size } | Directive::Block { axis: a, size } => {
            axis(a).and_then(|()| positive(*size))
        }
        Directive::Vectorize { axis: a, lanes } => axis(a).and_then(|()| match lanes {
            2..=128 if lanes.is_power_of_two() => Ok(()),
            _ => Err(format!("vectors of {lanes} lanes")),
        }),
        Directive::Registers { rows, vectors } if *rows > 64 || *vectors > 64 => {
            Err(format!("a register tile of {rows} rows and {vectors} vectors"))
        }
        Directive::Registers { rows, vectors } => positive(*rows as u64).and_then(|()| positive(*vectors as u64)),
        Directive::Steps { unroll, distance } if *unroll > 64 || *distance > 4096 => {
            Err(format!("{unroll} steps in a row and lines asked for {distance} steps ahead"))
        }
        Directive::Steps { unroll, .. } => positive(*unroll as u64),
        Directive::Pack { operand } if *operand > 1 => Err("a product has operands 0 and 1".into()),
        Directive::Grain(n) => positive(*n),
        Directive::Warps { rows, cols } if !matches!(rows.saturating_mul(*cols), 1 | 2 | 4 | 8 | 16 | 32) => {
            Err(format!("{rows} by {cols} warps"))
        }
        Directive::Stages(n) if !(2..=8).contains(n) => Err(format!("{n} stages")),
        Directive::Warps { .. } | Directive::Stages(_) => Ok(()),
        Directive::Unroll(n) if *n > 64 => Err(format!("{n} copies of a loop's body")),
        Directive::Unroll(n) => positive(*n as u64),
        Directive::Pack { .. }
        | Directive::SplitReduction
        | Directive::Prefetch
        | Directive::MatrixUnit
        | Directive::Stream
        | Directive::Overlap
        | Directive::Swap
        | Directive::Windows => Ok(()),
    }
}
