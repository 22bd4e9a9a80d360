//! ONNX files as programs: the graph of a file becomes the text of a module, which is checked,
//! compiled and differentiated like any other.
//!
//! A module has a struct `Weights`, the weights of the file as `weights`, and a function `model` of
//! the inputs of the graph. What shapes are computed with is computed here, as far as it does not
//! depend on sizes of the inputs; those stay expressions of sizes.

mod standard;
mod names;
mod value;
mod node;
mod held;
mod ops;
mod gate;
mod refusals;
mod known;
mod order;
mod module;
mod control;

pub use module::{module, module_of};
pub use refusals::REFUSED;

use tessera_base::Code;

pub use ops::Row;
pub use standard::{Fact, FormalParameter, Schema, schemas, through};

/// The operators that have a translation, sorted.
pub fn operators() -> Vec<&'static Row> {
    let mut rows: Vec<&Row> = ops::all().collect();
    rows.sort_unstable_by_key(|r| r.name);
    rows
}

/// Why a file has no translation.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Refused {
    pub code: Code,
    pub message: String,
    pub notes: Vec<String>,
}
