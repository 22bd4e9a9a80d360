//! Products under the policy `kahan_sum` as compensated sums.
//!
//! Before: `%2 = dot(%0, %1)`. After, in the accumulator's type: the products of the factors, what their rounding loses
//! (`fma(x, y, -x·y)`, which is exact), the compensated sum of each of the two over the contracted dim, and the sum
//! of both. So a product is written with what kernels have for sums; products in f16 stay as they are.

use crate::rebuild::Rebuild;
use tessera_base::DType;
use tessera_ir::graph::{Graph, Node, NodeId, NodeType, Origin, Policy, Reason};
use tessera_ops::map::MapOp;
use tessera_ops::prim::{Prim, Reduction, Scalar, Steps};
use tessera_ops::surface::{Build, Id, expand};

pub fn run(old: &Graph) -> Graph {
    let mut new = Rebuild::new(old);
    new.graph.bodies = old.bodies.iter().map(run).collect();
    for id in old.ids() {
        let node = new.renamed(old.node(id));
        let target = match node.prim {
            Prim::Dot { accum: accum @ (DType::F32 | DType::F64), steps, .. }
                if node.policy == Policy::KahanSum
                    && node.operands.iter().all(|&o| new.graph.ty(o).dtype != DType::Tf32) =>
            {
                product(&mut new.graph, &node, accum, steps)
            }
            _ => new.graph.push(node),
        };
        new.set(id, target);
    }
    new.finish(old)
}

/// The sums in place of a product.
fn product(graph: &mut Graph, node: &Node, accum: DType, steps: Steps) -> NodeId {
    let mut w = Adder { graph, like: node };
    let ids: Vec<Id> = node.operands.iter().map(|o| Id(o.0)).collect();
    let rank = node.ty.shape.len();
    let depth = w.shape(ids[0])[rank - 1];
    // [batch…, m, n, k].
    let all = [&node.ty.shape[..], &[depth]].concat();
    let batch = || 0..rank - 2;
    let x = expand::cast(&mut w, ids[0], accum);
    let y = expand::cast(&mut w, ids[1], accum);
    let y = expand::axis_last(&mut w, y, rank - 2);
    let x = expand::broadcast_dims(&mut w, x, &all, batch().chain([rank - 2, rank]).collect());
    let y = expand::broadcast_dims(&mut w, y, &all, batch().chain([rank - 1, rank]).collect());
    let zero = expand::full(&mut w, &all, accum, Scalar::F(0.0));
    let high = expand::map(&mut w, MapOp::mul, &[x, y]);
    let minus = expand::map(&mut w, MapOp::neg, &[high]);
    let low = expand::map(&mut w, MapOp::fma, &[x, y, minus]);
    let finite = expand::map(&mut w, MapOp::isfinite, &[low]);
    let low = expand::select(&mut w, finite, low, zero);
    let taken = match steps {
        Steps::All => None,
        Steps::To => Some(MapOp::ge),
        Steps::From => Some(MapOp::le),
    };
    let parts = taken.map_or([high, low], |compare| {
        let (row, step) = (expand::iota(&mut w, &all, rank - 2), expand::iota(&mut w, &all, rank));
        let keep = expand::map(&mut w, compare, &[row, step]);
        [high, low].map(|part| expand::select(&mut w, keep, part, zero))
    });
    let sums = parts.map(|part| expand::reduce(&mut w, part, Reduction::Sum, &[rank], false));
    let sum = expand::map(&mut w, MapOp::add, &sums);
    NodeId(expand::cast(&mut w, sum, node.ty.dtype).0)
}

/// Adds nodes in place of another.
struct Adder<'a> {
    graph: &'a mut Graph,
    like: &'a Node,
}

impl Build for Adder<'_> {
    fn shape(&self, id: Id) -> Vec<u64> {
        self.graph.ty(NodeId(id.0)).shape.clone()
    }

    fn dtype(&self, id: Id) -> DType {
        self.graph.ty(NodeId(id.0)).dtype
    }

    fn push(&mut self, prim: Prim, operands: &[Id], shape: Vec<u64>, dtype: DType) -> Id {
        let operands = operands.iter().map(|id| NodeId(id.0)).collect();
        let of = &self.like.origin;
        let origin = Origin { reason: Some(Reason::Pass("compensate")), ..of.clone() };
        let (ty, policy) = (NodeType::new(shape, dtype), self.like.policy);
        Id(self.graph.push(Node { prim, operands, ty, results: vec![], origin, policy }).0)
    }
}
