//! The body of a tile program for all programs at once: every value gets the grid as leading
//! dims. What the programs do is then ordinary tensor code, which is fused, divided among
//! threads and vectorised like any other.

use super::Tracer;
use std::collections::BTreeMap;
use tessera_base::{DType, Span};
use tessera_ir::graph::{Graph, Node, NodeId, NodeType};
use tessera_ir::lift::Lifted;
use tessera_ir::prim::row;
use tessera_ops::map::MapOp;
use tessera_ops::prim::{Prim, Scalar};
use tessera_ops::surface::{Id, expand};

/// A value of the body outside of it.
#[derive(Clone, Copy)]
enum Outside {
    /// The same in every program.
    Plain(Id),
    /// With the grid's dims in front.
    Grid(Id),
}

/// The value of an integer node where some inputs are known; `None` where it depends on data.
pub fn evaluate(graph: &Graph, id: NodeId, known: &BTreeMap<NodeId, i64>) -> Option<i64> {
    let node = graph.node(id);
    let arg = |i: usize| node.operands.get(i).and_then(|&o| evaluate(graph, o, known));
    if !node.ty.shape.is_empty() {
        return None;
    }
    match &node.prim {
        Prim::Input(_) => known.get(&id).copied(),
        Prim::Full { value: Scalar::I(n) } => Some(*n),
        Prim::Cast | Prim::Reshape if node.ty.dtype == DType::I64 => arg(0),
        Prim::Check(check) => arg(0).filter(|&a| arg(1).is_some_and(|b| check.holds(a as u64, b as u64))),
        Prim::Map(op) => match *op {
            MapOp::add => arg(0)?.checked_add(arg(1)?),
            MapOp::sub => arg(0)?.checked_sub(arg(1)?),
            MapOp::mul => arg(0)?.checked_mul(arg(1)?),
            MapOp::neg => arg(0)?.checked_neg(),
            MapOp::floor_div => {
                let (a, b) = (arg(0)?, arg(1)?);
                let q = a.checked_div(b)?;
                Some(if a % b != 0 && (a < 0) != (b < 0) { q - 1 } else { q })
            }
            MapOp::r#mod => {
                let (a, b) = (arg(0)?, arg(1)?);
                let r = a.checked_rem(b)?;
                Some(if r != 0 && (r < 0) != (b < 0) { r + b } else { r })
            }
            MapOp::minimum => Some(arg(0)?.min(arg(1)?)),
            MapOp::maximum => Some(arg(0)?.max(arg(1)?)),
            MapOp::abs => arg(0)?.checked_abs(),
            _ => None,
        },
        _ => None,
    }
}

/// Adds the nodes `wanted` of a program's graph, for all programs, to the innermost graph of the
/// tracer: `[programs, …]` each. `imports`: inputs of the body and what they are outside. `None`
/// where an operation has no such form; what was added until then is of no use.
pub fn batch(
    t: &mut Tracer,
    graph: &Graph,
    number: NodeId,
    grid: &[u64],
    imports: &BTreeMap<NodeId, NodeId>,
    wanted: &[NodeId],
    span: Span,
) -> Option<Vec<Id>> {
    let mut b = Batch { t, graph, number, grid, outside: vec![None; graph.nodes.len()] };
    let mut needed = vec![false; graph.nodes.len()];
    wanted.iter().for_each(|w| needed[w.0 as usize] = true);
    for id in graph.ids().collect::<Vec<_>>().into_iter().rev() {
        if needed[id.0 as usize] {
            // Where a tile lies is computed for every program here.
            let from = match graph.node(id).prim {
                Prim::DynamicSlice { .. } => &graph.node(id).operands[..1],
                _ => &graph.node(id).operands[..],
            };
            from.iter().for_each(|o| needed[o.0 as usize] = true);
        }
    }
    for id in graph.ids().filter(|id| needed[id.0 as usize]) {
        let value = match (&graph.node(id).prim, imports.get(&id)) {
            (_, Some(outer)) => Outside::Plain(Id(outer.0)),
            _ if id == number => {
                let numbers = expand::iota(&mut b.t.adder("program", span), &[grid.iter().product()], 0);
                Outside::Grid(expand::reshape(&mut b.t.adder("program", span), numbers, grid))
            }
            _ => b.node(id)?,
        };
        b.outside[id.0 as usize] = Some(value);
    }
    let total: u64 = grid.iter().product();
    let mut out = vec![];
    for &w in wanted {
        let id = b.grid_of(w)?;
        let shape = [&[total][..], &graph.ty(w).shape].concat();
        out.push(expand::reshape(&mut b.t.adder("programs", span), id, &shape));
    }
    Some(out)
}

struct Batch<'a, 'p> {
    t: &'a mut Tracer<'p>,
    graph: &'a Graph,
    number: NodeId,
    grid: &'a [u64],
    outside: Vec<Option<Outside>>,
}

impl Batch<'_, '_> {
    fn push(&mut self, like: &Node, prim: Prim, operands: Vec<Id>, shape: Vec<u64>) -> Id {
        let node = Node {
            prim,
            operands: operands.into_iter().map(|i| NodeId(i.0)).collect(),
            ty: NodeType::new(shape, like.ty.dtype),
            ..like.clone()
        };
        Id(self.t.level().graph.push(node).0)
    }

    /// The value with the grid's dims.
    fn grid_of(&mut self, id: NodeId) -> Option<Id> {
        match self.outside[id.0 as usize]? {
            Outside::Grid(x) => Some(x),
            Outside::Plain(x) => {
                let node = self.graph.node(id);
                let (shape, g) = ([self.grid, &node.ty.shape].concat(), self.grid.len());
                let dims = (g..g + node.ty.shape.len()).collect();
                Some(self.push(node, Prim::Broadcast { dims }, vec![x], shape))
            }
        }
    }

    fn node(&mut self, id: NodeId) -> Option<Outside> {
        let node = self.graph.node(id).clone();
        if let Prim::DynamicSlice { sizes } = &node.prim {
            return self.tiles(&node, sizes);
        }
        let mut plain = vec![];
        for o in &node.operands {
            match self.outside[o.0 as usize]? {
                Outside::Plain(x) => plain.push(x),
                Outside::Grid(_) => {}
            }
        }
        if !node.results.is_empty() {
            return None;
        }
        if plain.len() == node.operands.len() {
            return match node.prim {
                Prim::Input(_) | Prim::Scan { .. } | Prim::Get { .. } => None,
                _ => Some(Outside::Plain(self.push(&node, node.prim.clone(), plain, node.ty.shape.clone()))),
            };
        }
        let (prim, first_only) = match row(&node.prim).lifted(self.grid.len()) {
            Lifted::All(prim) => (prim, false),
            Lifted::First(prim) => (prim, true),
            Lifted::No => return None,
        };
        let mut operands = vec![];
        for (i, &o) in node.operands.iter().enumerate() {
            operands.push(match (first_only && i > 0, self.outside[o.0 as usize]?) {
                (true, Outside::Plain(x)) => x,
                (true, Outside::Grid(_)) => return None,
                _ => self.grid_of(o)?,
            });
        }
        Some(Outside::Grid(self.push(&node, prim, operands, [self.grid, &node.ty.shape].concat())))
    }

    /// `tile.load` for all programs. Dims whose tile is the same in all programs are cut out;
    /// those that follow one number of the program become that dim of the grid; anything else
    /// takes tiles by their number.
    fn tiles(&mut self, node: &Node, tile: &[u64]) -> Option<Outside> {
        let source = *node.operands.first()?;
        let Some(Outside::Plain(x)) = self.outside[source.0 as usize] else { return None };
        let shape = self.graph.ty(source).shape.clone();
        let total: u64 = self.grid.iter().product();
        let mut at: Vec<Vec<i64>> = vec![vec![]; tile.len()];
        for n in 0..total as i64 {
            let known = BTreeMap::from([(self.number, n)]);
            for (d, &start) in node.operands[1..].iter().enumerate() {
                let start = evaluate(self.graph, start, &known)?;
                let size = tile[d].max(1) as i64;
                if start % size != 0 {
                    return None;
                }
                at[d].push(start / size);
            }
        }
        let counts: Vec<u64> = shape.iter().zip(tile).map(|(n, t)| n / (*t).max(1)).collect();
        let in_range = at.iter().zip(&counts).all(|(a, &n)| a.iter().all(|&k| k >= 0 && (k as u64) < n));
        if !in_range {
            return None;
        }
        let ways: Vec<Way> = at.iter().map(|a| self.way(a)).collect();
        let mut used: Vec<usize> =
            ways.iter().filter_map(|w| if let Way::Axis { axis, .. } = w { Some(*axis) } else { None }).collect();
        let axes = used.len();
        used.sort();
        used.dedup();
        if used.len() == axes && ways.iter().all(|w| !matches!(w, Way::Other)) {
            return Some(self.regular(node, x, &counts, tile, &ways));
        }
        let span = node.origin.span;
        let tiles = self.t.as_tiles(x, &counts, tile, span);
        let numbers: Vec<i64> =
            (0..total as usize).map(|n| at.iter().zip(&counts).fold(0, |k, (a, &c)| k * c as i64 + a[n])).collect();
        let index = self.t.literal(&numbers, span);
        let taken = self.push(node, Prim::Take { axis: 0 }, vec![tiles, index], [&[total][..], tile].concat());
        let shape = [self.grid, tile].concat();
        Some(Outside::Grid(self.push(node, Prim::Reshape, vec![taken], shape)))
    }

    /// How positions along one dim follow from the program.
    fn way(&self, at: &[i64]) -> Way {
        if at.iter().all(|k| *k == at[0]) {
            return Way::Fixed(at[0]);
        }
        for (axis, &count) in self.grid.iter().enumerate() {
            let stride: u64 = self.grid[axis + 1..].iter().product();
            let id = |n: usize| (n as u64 / stride % count) as i64;
            let offset = at[0] - id(0);
            if at.iter().enumerate().all(|(n, &k)| k == id(n) + offset) {
                return Way::Axis { axis, offset };
            }
        }
        Way::Other
    }

    fn regular(&mut self, node: &Node, x: Id, counts: &[u64], tile: &[u64], ways: &[Way]) -> Outside {
        let (rank, g) = (tile.len(), self.grid.len());
        let mut b = self.t.adder("tile", node.origin.span);
        // Cut to the tiles in use, then [n0, t0, n1, t1, …].
        let mut x = x;
        let mut kept = counts.to_vec();
        for (d, way) in ways.iter().enumerate() {
            let (start, count) = match way {
                Way::Fixed(k) => (*k as u64, 1),
                Way::Axis { axis, offset } => (*offset as u64, self.grid[*axis]),
                Way::Other => (0, counts[d]),
            };
            if (start, count) != (0, counts[d]) {
                x = expand::slice(&mut b, x, d, start * tile[d], count * tile[d]);
            }
            kept[d] = count;
        }
        let split: Vec<u64> = kept.iter().zip(tile).flat_map(|(n, t)| [*n, *t]).collect();
        let x = expand::reshape(&mut b, x, &split);
        // Grid dims in the grid's order, then the tile.
        let mut order: Vec<(usize, usize)> = ways
            .iter()
            .enumerate()
            .filter_map(|(d, w)| if let Way::Axis { axis, .. } = w { Some((*axis, d)) } else { None })
            .collect();
        order.sort();
        let fixed = (0..rank).filter(|d| matches!(ways[*d], Way::Fixed(_))).map(|d| 2 * d);
        let perm: Vec<usize> =
            fixed.chain(order.iter().map(|(_, d)| 2 * d)).chain((0..rank).map(|d| 2 * d + 1)).collect();
        let x = expand::transpose(&mut b, x, &perm);
        let along: Vec<u64> = order.iter().map(|(_, d)| kept[*d]).collect();
        let x = expand::reshape(&mut b, x, &[&along[..], tile].concat());
        if order.is_empty() {
            return Outside::Plain(x);
        }
        let dims: Vec<usize> = order.iter().map(|(a, _)| *a).chain(g..g + rank).collect();
        Outside::Grid(expand::broadcast_dims(&mut b, x, &[self.grid, tile].concat(), dims))
    }
}

/// See [`Batch::way`].
enum Way {
    Fixed(i64),
    Axis { axis: usize, offset: i64 },
    Other,
}
