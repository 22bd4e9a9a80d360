//! Operators of the surface in graphs that tests build.

use crate::random_graph::Builder;
use tessera_base::DType;
use tessera_ir::graph::NodeId;
use tessera_ops::prim::Prim;
use tessera_ops::surface::{Arg, Build, Derivative, Hints, Id, OpDef, OpError, find};

/// Lets operators expand into a graph under construction.
struct Nodes<'b>(&'b mut Builder);

impl Build for Nodes<'_> {
    fn shape(&self, id: Id) -> Vec<u64> {
        self.0.ty(NodeId(id.0)).shape
    }

    fn dtype(&self, id: Id) -> DType {
        self.0.ty(NodeId(id.0)).dtype
    }

    fn push(&mut self, prim: Prim, operands: &[Id], shape: Vec<u64>, dtype: DType) -> Id {
        let operands: Vec<NodeId> = operands.iter().map(|o| NodeId(o.0)).collect();
        Id(self.0.push(prim, &operands, &shape, dtype).0)
    }

    fn derive(&mut self, d: Derivative) {
        self.0.graph.derivatives.add_steps(d);
    }
}

/// The first result of operator `name`. Panics where the call is none.
pub fn call(b: &mut Builder, name: &str, args: &[Arg]) -> Id {
    let def = find(name).unwrap_or_else(|| panic!("no operator {name}"));
    (def.expand)(&mut Nodes(b), args, &Hints::default()).unwrap_or_else(|e| panic!("{name}: {e:?}"))[0]
}

/// The results of a row. Errors: a call that its rule refuses.
pub fn expand(b: &mut Builder, def: &OpDef, args: &[Arg], hints: &Hints) -> Result<Vec<NodeId>, OpError> {
    let ids = (def.expand)(&mut Nodes(b), args, hints)?;
    Ok(ids.into_iter().map(|id| NodeId(id.0)).collect())
}

/// Numbers of names are below it; a prime.
pub const NAMES: u64 = 65521;

/// A number for a name, so that the calls of an operator do not change with the operators that there are.
pub fn number_of(name: &str) -> u64 {
    name.bytes().fold(7, |n, b| (n * 31 + u64::from(b)) % NAMES)
}
