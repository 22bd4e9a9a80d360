//! Schedule IR to Tile IR, and the checked interpreter of Tile IR.
//!
//! [`lower`] applies a schedule's directives: [`nest`] writes loops and places values at the
//! loop they belong to, [`loops`] covers elementwise kernels and reductions, [`matmul`] matrix
//! products. [`interpret`] runs a kernel and checks every access.

mod nest;
mod loops;
mod matmul;
mod memory;
mod interpret;

pub use interpret::{Fault, interpret};

use std::fmt;
use tessera_ir::schedule::attention::Attention;
use tessera_ir::schedule::{Directive, Schedule, ValueOp};
use tessera_ir::tile::Kernel;

/// An operand of a kernel, by what it is for the group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operand {
    /// Operand of the schedule: the group's inputs, then its roots.
    Tensor(u32),
    /// Temporary memory of the group.
    Temp(u32),
}

/// A kernel and the memory it is called with.
#[derive(Clone, PartialEq, Debug)]
pub struct Step {
    pub kernel: Kernel,
    /// One per buffer of the kernel that is not scratch.
    pub operands: Vec<Operand>,
    /// Host scalars, by position among the group's.
    pub scalars: Vec<u32>,
}

/// The kernels of a schedule, in running order.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Lowered {
    pub steps: Vec<Step>,
    /// Bytes of each temporary.
    pub temps: Vec<u64>,
}

/// A schedule that has no lowering.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LowerError(pub String);

impl fmt::Display for LowerError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Applies the directives of `s`. Errors: a combination of reductions that one kernel does not
/// cover, see [`tessera_ir::group::GroupKind::Loop`].
pub fn lower(s: &Schedule) -> Result<Lowered, LowerError> {
    // What is hoisted out of loops would read tensors that may have no elements.
    if s.stores_nothing() {
        return Ok(Lowered::default());
    }
    let has = |wanted: fn(&ValueOp) -> bool| s.values.iter().any(|v| wanted(&v.op));
    let mut out = if Attention::is(s) {
        matmul::lower_attention(s)
    } else if has(|v| matches!(v, ValueOp::Dot { .. })) {
        matmul::lower(s)
    } else if has(|v| matches!(v, ValueOp::ArgReduce { .. })) {
        loops::lower_extreme(s)
    } else if has(|v| matches!(v, ValueOp::Cumulate { .. })) {
        loops::lower_running(s)
    } else if has(|v| matches!(v, ValueOp::Transform { .. })) {
        loops::lower_transform(s)
    } else {
        loops::lower(s)
    }?;
    let unroll = s.directives.iter().rev().find_map(|d| if let Directive::Unroll(n) = d { Some(*n) } else { None });
    out.steps.iter_mut().for_each(|step| step.kernel.unroll = unroll.unwrap_or(0));
    Ok(out)
}
