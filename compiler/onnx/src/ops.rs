//! The operators: one row each.

mod elementwise;
mod index;
mod norm;
mod product;
mod quantized;
mod recurrent;
mod reduce;
mod shape;
mod sizes;
mod windows;

use crate::node::{No, Node};

/// A standard operator and its translation.
pub type Row = (&'static str, fn(&mut Node) -> Result<(), No>);

/// The row of an operator.
pub fn find(op: &str) -> Option<&'static Row> {
    all().find(|(name, _)| *name == op)
}

/// Every row.
pub fn all() -> impl Iterator<Item = &'static Row> {
    let tables = [
        elementwise::ROWS,
        index::ROWS,
        norm::ROWS,
        product::ROWS,
        quantized::ROWS,
        recurrent::ROWS,
        reduce::ROWS,
        shape::ROWS,
        sizes::ROWS,
        windows::ROWS,
    ];
    tables.into_iter().flatten()
}
