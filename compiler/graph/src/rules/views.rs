//! Rules of views: what changes no element.

use super::{Class, NEW, Rewrite, Rule};
use tessera_base::DType;
use tessera_ir::graph::{Graph, Node, NodeId, NodeType};
use tessera_ops::prim::{Prim, Scalar};

pub const RULES: &[Rule] = &[
    Rule {
        name: "reshape_same",
        doc: "a reshape to the shape it has already is nothing",
        class: Class::Exact,
        apply: reshape_same,
    },
    Rule { name: "reshape_reshape", doc: "two reshapes are one", class: Class::Exact, apply: reshape_reshape },
    Rule {
        name: "transpose_same",
        doc: "the identity permutation is nothing",
        class: Class::Exact,
        apply: transpose_same,
    },
    Rule {
        name: "transpose_transpose",
        doc: "two transposes are one",
        class: Class::Exact,
        apply: transpose_transpose,
    },
    Rule {
        name: "broadcast_same",
        doc: "a broadcast to the same shape is nothing",
        class: Class::Exact,
        apply: broadcast_same,
    },
    Rule {
        name: "broadcast_broadcast",
        doc: "two broadcasts are one",
        class: Class::Exact,
        apply: broadcast_broadcast,
    },
    Rule { name: "view_full", doc: "a view of a constant is the constant", class: Class::Exact, apply: view_full },
    Rule { name: "slice_all", doc: "a slice of everything is nothing", class: Class::Exact, apply: slice_all },
    Rule {
        name: "concat_one",
        doc: "a concatenation of one tensor is the tensor",
        class: Class::Exact,
        apply: concat_one,
    },
    Rule {
        name: "slice_concat",
        doc: "a slice that lies in one of the tensors put together is one of that tensor",
        class: Class::Exact,
        apply: slice_concat,
    },
    Rule {
        name: "argreduce_equal",
        doc: "of equal elements the first is the largest",
        class: Class::Exact,
        apply: argreduce_equal,
    },
    Rule {
        name: "argreduce_broadcast",
        doc: "repeated rows have the largest element in one place",
        class: Class::Exact,
        apply: argreduce_broadcast,
    },
    Rule {
        name: "dynamic_all",
        doc: "the part of a tensor that is all of it is the tensor",
        class: Class::Exact,
        apply: dynamic_all,
    },
    Rule {
        name: "rows_slices",
        doc: "rows in another order are slices one after the other, in their own nothing",
        class: Class::Exact,
        apply: rows_slices,
    },
    Rule { name: "pad_none", doc: "padding by nothing is nothing", class: Class::Exact, apply: pad_none },
    Rule {
        name: "part_complex",
        doc: "the part of a number put together is that part",
        class: Class::Exact,
        apply: part_complex,
    },
];

fn part_complex(g: &Graph, n: &Node) -> Option<Rewrite> {
    let Prim::Part { imag } = n.prim else { return None };
    let whole = g.node(*n.operands.first()?);
    let part = whole.operands.get(usize::from(imag))?;
    (whole.prim == Prim::Complex).then_some(Rewrite::Value(*part))
}

/// Slices that one tensor is put together from; rows in more pieces are taken by their positions.
const RUNS_MAX: usize = 16;

fn rows_slices(g: &Graph, n: &Node) -> Option<Rewrite> {
    let Prim::Rows { axis, from } = &n.prim else { return None };
    let source = *n.operands.first()?;
    if from.iter().copied().eq(0..from.len() as u64) {
        return Some(Rewrite::Value(source));
    }
    // Runs of rows that follow each other.
    let mut runs: Vec<(u64, u64)> = vec![];
    for &row in from {
        match runs.last_mut() {
            Some((start, count)) if *start + *count == row => *count += 1,
            _ => runs.push((row, 1)),
        }
    }
    if runs.len() > RUNS_MAX {
        let bytes: Vec<u8> = from.iter().flat_map(|row| (*row as i64).to_le_bytes()).collect();
        let ty = NodeType::new(vec![from.len() as u64], DType::I64);
        let positions = Node { prim: Prim::Literal(bytes.into()), operands: vec![], ty, ..n.clone() };
        let taken = Node { prim: Prim::Take { axis: *axis }, operands: vec![source, NodeId(NEW)], ..n.clone() };
        return Some(Rewrite::Nodes(vec![positions, taken]));
    }
    let whole = &g.ty(source).shape;
    let slice = |&(start, count): &(u64, u64)| {
        let at = |d: usize, on: u64, off: u64| if d == *axis { on } else { off };
        let shape = whole.iter().enumerate().map(|(d, &n)| at(d, count, n)).collect();
        let start = (0..whole.len()).map(|d| at(d, start, 0) as i64).collect();
        let ty = NodeType { shape, ..n.ty.clone() };
        Node { prim: Prim::Slice { start, step: vec![1; whole.len()] }, operands: vec![source], ty, ..n.clone() }
    };
    let mut nodes: Vec<Node> = runs.iter().map(slice).collect();
    let operands = (0..nodes.len() as u32).map(|i| NodeId(NEW + i)).collect();
    nodes.push(Node { prim: Prim::Concat { axis: *axis }, operands, ..n.clone() });
    Some(Rewrite::Nodes(nodes))
}

fn argreduce_equal(g: &Graph, n: &Node) -> Option<Rewrite> {
    let Prim::ArgReduce { axis, .. } = n.prim else { return None };
    let equal = equal_along(g, *n.operands.first()?, axis, DEPTH_MAX);
    let first = Node { prim: Prim::Full { value: Scalar::I(0) }, operands: vec![], ..n.clone() };
    equal.then_some(Rewrite::Node(first))
}

fn argreduce_broadcast(g: &Graph, n: &Node) -> Option<Rewrite> {
    let Prim::ArgReduce { largest, axis } = n.prim else { return None };
    let x = g.node(*n.operands.first()?);
    let Prim::Broadcast { dims } = &x.prim else { return None };
    let source = *x.operands.first()?;
    let inner = dims.iter().position(|&d| d == axis)?;
    let mut shape = g.ty(source).shape.clone();
    if shape.remove(inner) != x.ty.shape[axis] {
        return None;
    }
    let ty = NodeType { shape, ..n.ty.clone() };
    let found = Node { prim: Prim::ArgReduce { largest, axis: inner }, operands: vec![source], ty, ..n.clone() };
    let others = dims.iter().enumerate().filter(|(i, _)| *i != inner);
    let dims = others.map(|(_, &d)| if d > axis { d - 1 } else { d }).collect();
    let spread = Node { prim: Prim::Broadcast { dims }, operands: vec![NodeId(NEW)], ..n.clone() };
    Some(Rewrite::Nodes(vec![found, spread]))
}

/// How far back a value is followed.
const DEPTH_MAX: u32 = 8;

/// Whether the elements along an axis are known to be equal.
fn equal_along(g: &Graph, id: NodeId, axis: usize, depth: u32) -> bool {
    let x = g.node(id);
    match &x.prim {
        Prim::Full { .. } => true,
        Prim::Broadcast { dims } => {
            let from = x.operands.first().map_or(&[][..], |&o| &g.ty(o).shape);
            dims.iter().position(|&d| d == axis).is_none_or(|i| from.get(i) == Some(&1))
        }
        Prim::Map(_) | Prim::Cast if depth > 0 => x.operands.iter().all(|&o| equal_along(g, o, axis, depth - 1)),
        _ => x.ty.shape.get(axis) == Some(&1),
    }
}

/// Of a tensor of rank 0: it has one position, which cannot be out of range.
fn dynamic_all(g: &Graph, n: &Node) -> Option<Rewrite> {
    let Prim::DynamicSlice { sizes } = &n.prim else { return None };
    if sizes.is_empty() { same_type(g, n) } else { None }
}

fn same_type(g: &Graph, n: &Node) -> Option<Rewrite> {
    let x = *n.operands.first()?;
    (g.ty(x) == &n.ty).then_some(Rewrite::Value(x))
}

fn reshape_same(g: &Graph, n: &Node) -> Option<Rewrite> {
    if n.prim == Prim::Reshape { same_type(g, n) } else { None }
}

fn reshape_reshape(g: &Graph, n: &Node) -> Option<Rewrite> {
    let inner = g.node(*n.operands.first()?);
    if n.prim != Prim::Reshape || inner.prim != Prim::Reshape {
        return None;
    }
    let mut node = n.clone();
    node.operands = inner.operands.clone();
    Some(Rewrite::Node(node))
}

fn transpose_same(_: &Graph, n: &Node) -> Option<Rewrite> {
    match &n.prim {
        Prim::Transpose { perm } if perm.iter().enumerate().all(|(i, &p)| i == p) => {
            Some(Rewrite::Value(n.operands[0]))
        }
        _ => None,
    }
}

fn transpose_transpose(g: &Graph, n: &Node) -> Option<Rewrite> {
    let Prim::Transpose { perm: outer } = &n.prim else { return None };
    let inner_node = g.node(n.operands[0]);
    let Prim::Transpose { perm: inner } = &inner_node.prim else { return None };
    let mut node = n.clone();
    node.prim = Prim::Transpose { perm: outer.iter().map(|&i| inner[i]).collect() };
    node.operands = inner_node.operands.clone();
    Some(Rewrite::Node(node))
}

fn broadcast_same(g: &Graph, n: &Node) -> Option<Rewrite> {
    match &n.prim {
        Prim::Broadcast { dims } if dims.iter().enumerate().all(|(i, &d)| i == d) => same_type(g, n),
        _ => None,
    }
}

fn broadcast_broadcast(g: &Graph, n: &Node) -> Option<Rewrite> {
    let Prim::Broadcast { dims: outer } = &n.prim else { return None };
    let inner_node = g.node(n.operands[0]);
    let Prim::Broadcast { dims: inner } = &inner_node.prim else { return None };
    let mut node = n.clone();
    node.prim = Prim::Broadcast { dims: inner.iter().map(|&i| outer[i]).collect() };
    node.operands = inner_node.operands.clone();
    Some(Rewrite::Node(node))
}

fn view_full(g: &Graph, n: &Node) -> Option<Rewrite> {
    if !matches!(
        n.prim,
        Prim::Broadcast { .. } | Prim::Reshape | Prim::Transpose { .. } | Prim::Slice { .. } | Prim::Windows { .. }
    ) {
        return None;
    }
    let Prim::Full { value } = g.node(n.operands[0]).prim else { return None };
    let mut node = n.clone();
    node.prim = Prim::Full { value };
    node.operands.clear();
    Some(Rewrite::Node(node))
}

fn slice_all(g: &Graph, n: &Node) -> Option<Rewrite> {
    match &n.prim {
        Prim::Slice { start, step } if start.iter().all(|&s| s == 0) && step.iter().all(|&s| s == 1) => same_type(g, n),
        _ => None,
    }
}

fn concat_one(_: &Graph, n: &Node) -> Option<Rewrite> {
    match (&n.prim, n.operands.as_slice()) {
        (Prim::Concat { .. }, [x]) => Some(Rewrite::Value(*x)),
        _ => None,
    }
}

fn slice_concat(g: &Graph, n: &Node) -> Option<Rewrite> {
    let Prim::Slice { start, step } = &n.prim else { return None };
    let whole = g.node(*n.operands.first()?);
    let Prim::Concat { axis } = whole.prim else { return None };
    let count = i64::try_from(*n.ty.shape.get(axis)?).ok().filter(|&count| count > 0)?;
    let first = *start.get(axis)?;
    let last = first.checked_add(step.get(axis)?.checked_mul(count - 1)?)?;
    let mut begin = 0;
    for &part in &whole.operands {
        let end = begin + i64::try_from(*g.ty(part).shape.get(axis)?).ok()?;
        if (begin..end).contains(&first) && (begin..end).contains(&last) {
            let mut start = start.clone();
            start[axis] = first - begin;
            let prim = Prim::Slice { start, step: step.clone() };
            return Some(Rewrite::Node(Node { prim, operands: vec![part], ..n.clone() }));
        }
        begin = end;
    }
    None
}

fn pad_none(_: &Graph, n: &Node) -> Option<Rewrite> {
    match &n.prim {
        Prim::Pad { low, high } if low.iter().chain(high).all(|&p| p == 0) => Some(Rewrite::Value(n.operands[0])),
        _ => None,
    }
}
