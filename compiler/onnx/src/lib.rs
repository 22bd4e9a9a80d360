//! ONNX files as programs: the graph of a file becomes the text of a module, which is checked,
//! compiled and differentiated like any other.
//!
//! A module has a struct `Weights`, the weights of the file as `weights`, and a function `model` of
//! the inputs of the graph. What shapes are computed with is computed here, as far as it does not
//! depend on sizes of the inputs; those stay expressions of sizes.

mod names;
mod value;
mod node;
mod ops;
mod module;

pub use module::{module, module_of};

use tessera_base::Code;

/// The operators that have a translation, sorted.
pub fn operators() -> Vec<&'static str> {
    let mut names: Vec<&str> = ops::all().map(|(name, _)| *name).chain(["If"]).collect();
    names.sort_unstable();
    names
}

/// Why a file has no translation.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Refused {
    pub code: Code,
    pub message: String,
    pub notes: Vec<String>,
}
