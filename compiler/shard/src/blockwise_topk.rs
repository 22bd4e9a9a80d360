//! The largest few of a split dim: each device finds its own, and then those of all are compared.
//!
//! `argmax` and `topk` look at every element of a dim and keep few of them. Where the dim is split
//! they become, before anything is laid out: the dim as [parts, block]; the few of each block, with
//! their positions; the few of those. Only these move. Among equals the first one counts: blocks
//! come in order, and so do the positions in one.

use crate::adder::Adder;
use crate::layout::{NodeLayout, lay_out_with, real};
use std::collections::HashMap;
use std::sync::Arc;
use tessera_base::{DType, Mesh, Sharding};
use tessera_ir::graph::{Graph, Node, NodeId};
use tessera_ir::links::first_of_sorted;
use tessera_ops::map::MapOp;
use tessera_ops::prim::{Prim, Scalar};
use tessera_ops::surface::{Build, Id, expand};

/// The graph with the few of each block found first, where that moves less.
pub fn blockwise_topk(g: &Graph, mesh: &Arc<Mesh>) -> Graph {
    let any = g.nodes.iter().any(|n| matches!(n.prim, Prim::ArgReduce { .. }) || first_of_sorted(g, n).is_some());
    if !any {
        return g.clone();
    }
    let stated: Vec<Sharding> = g.inputs.iter().map(|i| real(&i.ty.sharding, mesh, i.ty.shape.len())).collect();
    let placed = lay_out_with(g, mesh, &stated, &[]);
    let mut out = Graph { nodes: vec![], outputs: vec![], ..g.clone() };
    let mut now: Vec<NodeId> = vec![];
    // Of the orders that were found by blocks: their keys, and the elements that they now choose from.
    let mut found: HashMap<NodeId, (NodeId, Id, Id)> = HashMap::new();
    for id in g.ids() {
        let node = g.node(id);
        let renamed = Node { operands: node.operands.iter().map(|o| now[o.0 as usize]).collect(), ..node.clone() };
        let mut b = Adder { graph: &mut out, like: node };
        let made = match (&node.prim, &node.operands[..]) {
            (Prim::ArgReduce { largest, axis }, [x]) if node.ty.dtype == DType::I64 => {
                Blocks::of(g, *x, &placed, *axis, 1)
                    .and_then(|blocks| blocks.extreme(&mut b, Id(now[x.0 as usize].0), *largest))
            }
            (Prim::Slice { .. }, [order]) if node.ty.dtype == DType::I64 && first_of_sorted(g, node).is_some() => {
                let few = first_few(&mut b, g, node, *order, &placed, &now);
                few.map(|(keys, few)| {
                    found.insert(id, (keys, few.values, few.among));
                    few.positions
                })
            }
            (Prim::TakeAlong { axis }, [x, at]) => found.get(at).filter(|f| f.0 == *x).map(|&(_, values, among)| {
                b.push(Prim::TakeAlong { axis: *axis }, &[values, among], node.ty.shape.clone(), node.ty.dtype)
            }),
            _ => None,
        };
        now.push(made.map_or_else(|| out.push(renamed), |made| NodeId(made.0)));
    }
    out.outputs = g.outputs.iter().map(|o| now[o.0 as usize]).collect();
    out
}

/// The first few positions in the order of a node, whose keys are given too.
fn first_few(
    b: &mut Adder,
    g: &Graph,
    node: &Node,
    order: NodeId,
    placed: &[NodeLayout],
    now: &[NodeId],
) -> Option<(NodeId, TopK)> {
    let sort = g.node(order);
    let (Prim::ArgSort { axis, descending }, [keys]) = (&sort.prim, &sort.operands[..]) else { return None };
    let count = node.ty.shape[*axis];
    let few = Blocks::of(g, *keys, placed, *axis, count)?.first(b, Id(now[keys.0 as usize].0), count, *descending)?;
    Some((*keys, few))
}

/// The blocks of a split dim.
struct Blocks {
    axis: usize,
    /// Devices that split it, and positions of each; the last blocks may go beyond the end.
    parts: u64,
    each: u64,
}

/// The first few positions of a dim in order.
struct TopK {
    positions: Id,
    /// The few of each block, and where the first ones are among them.
    values: Id,
    among: Id,
}

impl Blocks {
    /// None where the dim is not split, or `count` of each block are not fewer bytes.
    fn of(g: &Graph, x: NodeId, placed: &[NodeLayout], axis: usize, count: u64) -> Option<Blocks> {
        let (ty, layout) = (g.ty(x), &placed[x.0 as usize].result);
        let (size, parts) = (ty.shape[axis], layout.parts(axis));
        let each = size.div_ceil(parts.max(1));
        let element = ty.dtype.bytes() as u64;
        let moved = parts * count.min(each) * (element + DType::I64.bytes() as u64);
        (parts > 1 && size > 0 && moved < size * element).then_some(Blocks { axis, parts, each })
    }

    /// `[…, n, …]` as `[…, parts, each, …]`, with what is in no order before the others behind its end.
    fn divided(&self, b: &mut dyn Build, x: Id, last: Scalar) -> Id {
        let (mut shape, dtype) = (b.shape(x), b.dtype(x));
        let all = self.parts * self.each;
        let mut x = x;
        if all > shape[self.axis] {
            let (low, mut high) = (vec![0; shape.len()], vec![0; shape.len()]);
            high[self.axis] = all - shape[self.axis];
            shape[self.axis] = all;
            let value = expand::full(b, &[], dtype, last);
            x = b.push(Prim::Pad { low, high }, &[x, value], shape.clone(), dtype);
        }
        shape[self.axis] = self.parts;
        shape.insert(self.axis + 1, self.each);
        expand::reshape(b, x, &shape)
    }

    /// Positions in blocks as positions of the dim.
    fn global(&self, b: &mut dyn Build, local: Id) -> Id {
        let shape = b.shape(local);
        let block = expand::iota(b, &shape, self.axis);
        let start = expand::binary_const(b, MapOp::mul, block, self.each as f64);
        expand::map(b, MapOp::add, &[local, start])
    }

    fn extreme(&self, b: &mut Adder, x: Id, largest: bool) -> Option<Id> {
        let last = last_of(b.dtype(x), largest, false)?;
        let x = self.divided(b, x, last);
        let inner = self.axis + 1;
        let mut shape = b.shape(x);
        shape.remove(inner);
        let local = b.push(Prim::ArgReduce { largest, axis: inner }, &[x], shape.clone(), DType::I64);
        let at = expand::unsqueeze(b, local, &[inner]);
        let values = along(b, x, at, inner);
        let values = expand::reshape(b, values, &shape);
        shape.remove(self.axis);
        let block = b.push(Prim::ArgReduce { largest, axis: self.axis }, &[values], shape.clone(), DType::I64);
        let block = expand::unsqueeze(b, block, &[self.axis]);
        let positions = self.global(b, local);
        let position = along(b, positions, block, self.axis);
        Some(expand::reshape(b, position, &shape))
    }

    fn first(&self, b: &mut Adder, keys: Id, count: u64, descending: bool) -> Option<TopK> {
        let last = last_of(b.dtype(keys), descending, true)?;
        let x = self.divided(b, keys, last);
        let inner = self.axis + 1;
        let shape = b.shape(x);
        let order = b.push(Prim::ArgSort { axis: inner, descending }, &[x], shape, DType::I64);
        let local = expand::slice(b, order, inner, 0, count.min(self.each));
        let values = along(b, x, local, inner);
        let positions = self.global(b, local);
        let mut shape = b.shape(values);
        shape[self.axis] *= shape.remove(inner);
        let (values, positions) = (expand::reshape(b, values, &shape), expand::reshape(b, positions, &shape));
        let order = b.push(Prim::ArgSort { axis: self.axis, descending }, &[values], shape, DType::I64);
        let among = expand::slice(b, order, self.axis, 0, count);
        Some(TopK { positions: along(b, positions, among, self.axis), values, among })
    }
}

fn along(b: &mut dyn Build, x: Id, at: Id, axis: usize) -> Id {
    let (shape, dtype) = (b.shape(at), b.dtype(x));
    b.push(Prim::TakeAlong { axis }, &[x, at], shape, dtype)
}

/// A value that never comes before an earlier one: of the largest the smallest, and the other way round; in
/// a sort NaN comes last of all.
fn last_of(dtype: DType, largest: bool, sorted: bool) -> Option<Scalar> {
    let (low, high) = match dtype {
        DType::F64 | DType::F32 | DType::F16 | DType::Bf16 => {
            let extreme = if largest { f64::NEG_INFINITY } else { f64::INFINITY };
            return Some(Scalar::F(if sorted { f64::NAN } else { extreme }));
        }
        DType::I64 => (i64::MIN, i64::MAX),
        DType::I32 => (i64::from(i32::MIN), i64::from(i32::MAX)),
        DType::I16 => (i64::from(i16::MIN), i64::from(i16::MAX)),
        DType::I8 => (i64::from(i8::MIN), i64::from(i8::MAX)),
        DType::U8 => (0, i64::from(u8::MAX)),
        _ => return None,
    };
    Some(Scalar::I(if largest { low } else { high }))
}
