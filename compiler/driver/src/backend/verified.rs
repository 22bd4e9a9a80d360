//! What one stage gives is verified before the next one takes it, whenever a kernel is new: that costs 1 to 15 µs a region
//! beside the milliseconds of its compiler, and a broken rule is a wrong result behind it.

use tessera_base::bug;
use tessera_ir::schedule::{self, Schedule};
use tessera_ir::tile;
use tessera_tile::Lowered;

/// A schedule and its kernels.
pub fn verified(s: Schedule, lowered: Lowered) -> (Schedule, Lowered) {
    if let Err(why) = schedule::verify::verify(&s) {
        bug!("a schedule breaks a rule: {why}\n{}", schedule::text::print(&s));
    }
    kernels(&lowered);
    (s, lowered)
}

/// Kernels.
pub fn kernels(lowered: &Lowered) {
    for step in &lowered.steps {
        if let Err(why) = tile::verify::verify(&step.kernel) {
            bug!("a kernel breaks a rule of Tile IR: {why}\n{}", tile::text::print(&step.kernel));
        }
    }
}
