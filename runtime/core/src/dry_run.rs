//! Programs that are only outlined: tensors have shapes and no elements, nothing is computed or
//! written, and what needs an element stops the program.

use crate::fault::Fault;
use crate::tensor::{OutOfMemory, Parts, Tensor};
use std::sync::atomic::{AtomicBool, Ordering};
use tessera_base::{DType, Sharding};

static ON: AtomicBool = AtomicBool::new(false);

/// From here on files are not written.
pub fn start() {
    ON.store(true, Ordering::Relaxed);
}

/// Whether programs are only outlined.
pub fn is_on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// A tensor without elements.
pub fn tensor(dtype: DType, shape: &[u64], layout: Sharding) -> Result<Tensor, OutOfMemory> {
    Tensor::in_parts(dtype, shape.to_vec(), Parts { layout, parts: vec![] })
}

/// What is said where an element is needed.
pub fn fault() -> Fault {
    Fault::new(718, "this needs the value of a tensor, and a plan computes none")
        .note("a plan follows the program with the shapes of its tensors alone")
}

impl Tensor {
    /// Whether it has a shape and no elements.
    pub fn has_no_elements(&self) -> bool {
        is_on() && self.parts.as_ref().is_some_and(|p| p.parts.is_empty())
    }

    /// The type in words.
    pub fn type_text(&self) -> String {
        let dims = self.shape.iter().map(u64::to_string).chain([self.dtype.to_string()]);
        format!("Tensor[{}]", dims.collect::<Vec<_>>().join(", "))
    }
}
