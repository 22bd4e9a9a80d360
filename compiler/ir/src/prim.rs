//! The primitives of Graph IR: one row each, in a file of its own, with all its columns.
//!
//! [`columns::Primitive`] says what a row has to state. A pass asks the row of a node ([`row`]) instead of a list of primitives.

pub mod columns;

pub use columns::{Primitive, Site, Summand};

use std::ops::Deref;
use tessera_ops::prim::Prim;

/// The table: the file of each primitive, its row, and its attributes (in braces those that the row copies, in brackets
/// those that it borrows; in parentheses that of a variant without names).
macro_rules! primitives {
    ($($file:ident: $name:ident $(<$life:lifetime>)? $(($copied:ident))? $((&$lent:ident))? $({ $($copy:ident),* })? $([ $($lend:ident),* ])?;)*) => {
        $(pub mod $file;)*

        /// The row of a primitive.
        pub enum Row<'a> {
            $($name($file::$name $(<$life>)?),)*
            #[doc(hidden)]
            Lifetime(&'a std::convert::Infallible),
        }

        /// The row of a primitive.
        pub fn row(prim: &Prim) -> Row<'_> {
            match prim {
                $(Prim::$name { $(0: $copied)? $(0: $lent)? $($($copy,)*)? $($($lend,)*)? } => Row::$name($file::$name {
                    $($copied: *$copied)? $($lent)? $($($copy: *$copy,)*)? $($($lend,)*)?
                }),)*
            }
        }

        impl<'a> Deref for Row<'a> {
            type Target = dyn Primitive + 'a;

            fn deref(&self) -> &Self::Target {
                match self {
                    $(Row::$name(row) => row,)*
                    Row::Lifetime(never) => match **never {},
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
    dot: Dot { accum, steps, pairs };
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
    scan: Scan { body, carry, sequences, trips };
    get: Get { index };
    layout: Layout;
    rows: Rows<'a> { axis } [from];
    collective: Collective<'a> (&what);
    exchange: Exchange<'a> (&what);
}
