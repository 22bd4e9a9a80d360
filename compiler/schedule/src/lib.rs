//! Groups of graph nodes to Schedule IR.
//!
//! [`body`] states what a group computes as values over axes, [`axes`] splits and merges the
//! axes so that indices become affine and loops long, and [`choose`] adds the directives of a
//! simple cost model, over which [`hinted`] puts those of kernels. [`estimate`] says what a
//! schedule costs, and [`grid`] ranks all schedules around one by it. Nothing here can change a
//! result.

mod body;
mod axes;
mod machine;
mod choose;
mod hinted;
pub mod estimate;
pub mod grid;

pub use choose::weighed;
pub use hinted::of as hints;
pub use machine::{gpu, host, reference};
pub use tessera_ir::body::Refusal;

use tessera_ir::graph::Graph;
use tessera_ir::group::Group;
use tessera_ir::schedule::{Machine, Schedule};

/// The schedule of `group`, named `name` (also the symbol of its kernels).
///
/// Operands: the group's inputs, then its roots. Cost: linear in members for usual groups.
/// Errors: a node or a combination that kernels do not cover.
pub fn schedule(graph: &Graph, group: &Group, name: &str, machine: &Machine) -> Result<Schedule, Refusal> {
    let mut s = body::build(graph, group, name)?;
    axes::simplify(&mut s);
    choose::directives(&mut s, machine);
    if let Some(hints) = hinted::of(graph, group) {
        hinted::apply(&mut s, hints, machine);
    }
    Ok(s)
}
