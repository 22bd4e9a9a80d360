//! The body of a kernel: every member as a value at the index where a root needs it, by the rows of primitives.
//!
//! Views (broadcast, transpose, slice, windows, reshape) disappear into index expressions; padding,
//! concatenation and slice assignment become selections whose loads are guarded.

use tessera_ir::body::{Body, Part, Refusal, Row, part_at};
use tessera_ir::graph::{Graph, NodeId};
use tessera_ir::group::{Group, GroupKind};
use tessera_ir::index::{Index, Var, delinear, linear, row_major};
use tessera_ir::prim::{row, written_shape};
use tessera_ir::schedule::{Schedule, Store, Value, ValueOp};
use tessera_ops::prim::Prim;

/// Lead dims and whole shape of what the reductions reduce, where it is the same for all.
fn row_shape(graph: &Graph, group: &Group) -> Option<(usize, Vec<u64>)> {
    let mut found: Option<(usize, Vec<u64>)> = None;
    for &m in &group.members {
        let Prim::Reduce { axes, .. } = &graph.node(m).prim else { continue };
        let shape = &graph.ty(*graph.node(m).operands.first()?).shape;
        let lead = shape.len().checked_sub(axes.len())?;
        let here = (lead, shape.clone());
        if axes.iter().any(|a| *a < lead) || found.as_ref().is_some_and(|f| *f != here) {
            return None;
        }
        found = Some(here);
    }
    found
}

pub fn build(graph: &Graph, group: &Group, name: &str) -> Result<Schedule, Refusal> {
    let mut b = Body::new(graph, group, name, |b, q| row(&q.node.prim).body(b, q));
    if group.kind == GroupKind::Attention {
        b.outer = group.members.iter().copied().rfind(|m| matches!(graph.node(*m).prim, Prim::Dot { .. }));
    }
    for (i, &n) in group.inputs.iter().enumerate() {
        b.operand(n, format!("in{i}"), false)?;
    }
    for (i, &n) in group.roots.iter().enumerate() {
        b.operand(n, format!("out{i}"), true)?;
    }
    b.s.scalars = group.scalars.iter().map(|n| graph.ty(*n).dtype).collect();
    let first = group.roots.first().ok_or(Refusal { node: NodeId(0), reason: "a group without a root".into() })?;
    let shape = written_shape(graph, *first);
    let at = root_axes(&mut b, shape, row_shape(graph, group));
    for (i, &root) in group.roots.iter().enumerate() {
        let here = written_shape(graph, root);
        // Of a row of a strip there is one element, with or without a dim for it.
        let one = |rows: &[u64]| here == rows || here.split_last().is_some_and(|(n, lead)| (*n, lead) == (1, rows));
        let per_row = group.kind == GroupKind::Attention && shape.split_last().is_some_and(|(_, rows)| one(rows));
        if here != shape && !per_row {
            return Err(Refusal { node: root, reason: "has another shape than the kernel's other results".into() });
        }
        let mut at = at.clone();
        at.truncate(here.len());
        if let (true, Some(last)) = (per_row && here.len() == shape.len(), at.last_mut()) {
            *last = Index::default();
        }
        let dtype = graph.ty(root).dtype;
        for &part in if dtype.is_complex() { &[Part::Real, Part::Imag][..] } else { &[Part::Real] } {
            let value = b.value(root, &at, &[], part)?;
            let parts = if dtype.is_complex() { 2 } else { 1 };
            let (place, by) = match b.written.take() {
                Some(w) => (w.at, w.by.into_iter().map(|(v, stride)| (v, stride * parts)).collect()),
                None => (linear(&at, &row_major(here)), vec![]),
            };
            let at = part_at(dtype, place, part);
            b.s.stores.push(Store { operand: (group.inputs.len() + i) as u32, at, by, value });
        }
    }
    free_row(&mut b);
    Ok(b.s)
}

/// An axis for each dim of the roots; one for the row if they are rows.
fn root_axes(b: &mut Body, shape: &[u64], row: Option<(usize, Vec<u64>)>) -> Vec<Index> {
    let walked = b.outer.is_none() && row.as_ref().is_some_and(|(_, s)| s == shape);
    let lead = row.as_ref().filter(|_| walked).map_or(shape.len(), |r| r.0);
    // The one position of a dim of size 1 is 0, as broadcasts say it.
    let place = |axis: Var, size: u64| if size == 1 { Index::default() } else { Index::var(axis) };
    let mut at: Vec<Index> = (0..lead).map(|i| place(b.axis(format!("i{i}"), shape[i], false), shape[i])).collect();
    if let Some((lead, shape)) = row {
        let axis = b.axis(format!("r{}", b.s.axes.len()), shape[lead..].iter().product(), true);
        if walked {
            at.extend(delinear(&Index::var(axis), &shape[lead..], &|v| b.s.range(v)));
        }
        b.row = Some(Row { lead, shape, axis });
    }
    at
}

/// What was taken for a row may turn out not to be reduced: a slice hides the reduction.
fn free_row(b: &mut Body) {
    let Some(row) = &b.row else { return };
    let reduces = |v: &Value| match v.op {
        ValueOp::Reduce { axis, .. } | ValueOp::Dot { axis, .. } => axis == row.axis,
        _ => false,
    };
    if !b.s.values.iter().any(reduces) && b.s.walks(row.axis) {
        b.s.axes[row.axis.0 as usize].reduced = false;
    }
}
