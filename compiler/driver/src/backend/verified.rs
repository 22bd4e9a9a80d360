//! What one stage gives is verified before the next one takes it, whenever a kernel is new: that costs 1 to 15 µs a region
//! beside the milliseconds of its compiler, and a broken rule is a wrong result behind it.

use tessera_abi::plan::{BufRef, Plan, Step};
use tessera_base::bug;
use tessera_ir::schedule::{self, Schedule};
use tessera_ir::tile;
use tessera_tile::Lowered;

/// A schedule and its kernels.
pub fn verified(s: Schedule, lowered: Lowered) -> (Schedule, Lowered) {
    if let Err(why) = schedule::verify::verify(&s) {
        bug!("a schedule breaks a rule: {why}\n{}", schedule::text::print(&s));
    }
    for step in &lowered.steps {
        if let Err(why) = tile::verify::verify(&step.kernel) {
            bug!("a kernel breaks a rule of Tile IR: {why}\n{}", tile::text::print(&step.kernel));
        }
    }
    (s, lowered)
}

/// A plan: what its steps take is there, and every output is written or is an input.
pub fn plan(plan: &Plan) {
    let name = &plan.name;
    let bufs = plan.steps.iter().flat_map(|step| match step {
        Step::Kernel { bufs, .. } => bufs.clone(),
        Step::Host { operands, .. } => operands.iter().map(|o| o.buf).collect(),
        Step::Loop(l) => l.bufs(),
        Step::Copy { dst, src, .. } => vec![*dst, *src],
    });
    let mut taken = vec![false; plan.outputs.len()];
    for buf in bufs {
        let there = match buf {
            BufRef::Input(i) => (i as usize) < plan.inputs.len(),
            BufRef::Output(i) => taken.get_mut(i as usize).map(|t| *t = true).is_some(),
            BufRef::Arena(at) => at <= plan.arena_bytes,
            BufRef::Const(i) => (i as usize) < plan.consts.len(),
        };
        if !there {
            bug!("the plan of `{name}` takes {buf:?}, which it does not have");
        }
    }
    for (i, output) in plan.outputs.iter().enumerate() {
        if !taken[i] && !output.zeros && output.same_as_input.is_none() && output.ty.bytes > 0 {
            bug!("the plan of `{name}` leaves its output {i} unwritten");
        }
    }
}
