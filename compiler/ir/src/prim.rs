//! The primitives of Graph IR: one row each, in a file of its own, with all its columns.
//!
//! [`columns::Primitive`] says what a row has to state. A pass asks the row of a node ([`row`]) instead of a list of primitives.

pub mod columns;
mod block;
mod matrices;

pub use columns::{Primitive, Site, Summand};
pub use gather::counted;

use crate::graph::{Graph, NodeId};
use crate::group::Role;
use crate::text::{Op, TextError};
use columns::Around;
use std::any::Any;
use std::fmt;
use std::ops::Deref;
use tessera_base::bug;
use tessera_ops::prim::{Own, OwnRow, Prim};

/// The table: the file of each primitive, its row, and its attributes (in braces those that the row copies, in brackets
/// those that it borrows; in parentheses that of a variant without names).
macro_rules! primitives {
    ($($file:ident: $name:ident $(<$life:lifetime>)? $(($copied:ident))? $((&$lent:ident))? $({ $($copy:ident),* })? $([ $($lend:ident),* ])?;)*) => {
        $(pub mod $file;)*

        /// The row of a primitive.
        pub enum Row<'a> {
            $($name($file::$name $(<$life>)?),)*
            /// That of a primitive which is not in the list.
            Own(&'a dyn Primitive),
        }

        /// The row of a primitive.
        pub fn row(prim: &Prim) -> Row<'_> {
            match prim {
                $(Prim::$name { $(0: $copied)? $(0: $lent)? $($($copy,)*)? $($($lend,)*)? } => Row::$name($file::$name {
                    $($copied: *$copied)? $($lent)? $($($copy: *$copy,)*)? $($($lend,)*)?
                }),)*
                Prim::Own(own) => Row::Own(own_row(own)),
            }
        }

        /// The primitive of a name; `None` where it is the name of none.
        ///
        /// # Errors
        /// Its attributes are not those of the primitive.
        pub fn read(name: &str, op: &Op, around: &mut Around) -> Result<Option<Prim>, TextError> {
            $(if let Some(prim) = <$file::$name as Primitive>::read(name, op, around) {
                return prim.map(Some);
            })*
            let own = around.own;
            own.iter().find_map(|read| read(name, op, around)).transpose()
        }

        impl<'a> Deref for Row<'a> {
            type Target = dyn Primitive + 'a;

            fn deref(&self) -> &Self::Target {
                match self {
                    $(Row::$name(row) => row,)*
                    Row::Own(row) => *row,
                }
            }
        }
    };
}

primitives! {
    input: Input (number);
    full: Full { value };
    iota: Iota { axis };
    literal: Literal<'a> (&bytes);
    map: Map (op);
    check: Check (check);
    cast: Cast;
    broadcast: Broadcast<'a> [dims];
    reshape: Reshape;
    transpose: Transpose<'a> [perm];
    slice: Slice<'a> [start, step];
    windows: Windows<'a> [stride, dilation];
    pad: Pad<'a> [low, high];
    concat: Concat { axis };
    reduce: Reduce<'a> { kind } [axes];
    arg_reduce: ArgReduce { largest, axis };
    cumulate: Cumulate { kind, axis };
    dot: Dot { accum, steps, order, leaf };
    quantize: Quantize { format };
    dequantize: Dequantize { format };
    block_dot: BlockDot { format };
    dynamic_slice: DynamicSlice<'a> [sizes];
    dynamic_update: DynamicUpdate;
    update_slice: UpdateSlice<'a> [start, step];
    take: Take { axis };
    gather: Gather;
    scatter: Scatter { add };
    take_along: TakeAlong { axis };
    scatter_add_along: ScatterAddAlong { axis };
    sort: Sort { axis, descending };
    arg_sort: ArgSort { axis, descending };
    random_bits: RandomBits;
    part: Part { imag };
    complex: Complex;
    fft: Fft (fft);
    factor: Factor (factor);
    triangular_solve: TriangularSolve (triangle);
    scan: Scan { body, carry, sequences, trips, reversed, until };
    get: Get { index };
    layout: Layout;
    rows: Rows<'a> { axis } [from];
    collective: Collective<'a> (&what);
    exchange: Exchange<'a> (&what);
}

/// A primitive that is not in the list, by its row. Passes treat it as any other: they ask the row.
pub fn own(row: impl Primitive + PartialEq + fmt::Debug + Send + Sync + 'static) -> Prim {
    Prim::Own(Own::new(Entry(Box::new(row))))
}

/// The tensor that a node writes over a part of: see [`Role::Update`].
pub fn written_base(g: &Graph, id: NodeId) -> Option<NodeId> {
    let node = g.node(id);
    let writes = row(&node.prim).role(Site { g, node }) == Role::Update;
    node.operands.first().copied().filter(|_| writes)
}

/// The shape of what a node writes as the root of a kernel: its own, or that of the part that it writes over another tensor.
pub fn written_shape(g: &Graph, id: NodeId) -> &[u64] {
    match (written_base(g, id), &g.node(id).operands[..]) {
        (Some(_), [_, part, ..]) => &g.ty(*part).shape,
        _ => &g.ty(id).shape,
    }
}

/// A row that can be compared and printed.
trait Comparable: Primitive + fmt::Debug + Any + Send + Sync {
    fn is(&self, other: &dyn Any) -> bool;
}

impl<T: Primitive + PartialEq + fmt::Debug + Send + Sync + 'static> Comparable for T {
    fn is(&self, other: &dyn Any) -> bool {
        other.downcast_ref::<T>() == Some(self)
    }
}

struct Entry(Box<dyn Comparable>);

impl OwnRow for Entry {
    fn is_same(&self, other: &dyn OwnRow) -> bool {
        (other as &dyn Any).downcast_ref::<Entry>().is_some_and(|other| self.0.is(&*other.0))
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The row of a primitive that [`own`] made.
fn own_row(own: &Own) -> &dyn Primitive {
    match (own.row() as &dyn Any).downcast_ref::<Entry>() {
        Some(entry) => &*entry.0,
        None => bug!("{own:?} is no row that `prim::own` made"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::NodeType;
    use tessera_base::DType;
    use tessera_ops::map::MapOp;

    #[test]
    fn a_name_is_that_of_one_primitive() {
        for &map in MapOp::ALL {
            let (mut g, ty, op) = (Graph::default(), NodeType::new(vec![], DType::F32), Op::default());
            let mut around = Around { g: &mut g, ty: &ty, own: &[], graph: |op, _| Err(op.error("no graph")) };
            assert_eq!(read(map.name(), &op, &mut around), Ok(Some(Prim::Map(map))));
        }
    }
}
