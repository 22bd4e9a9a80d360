//! When a specialisation of a region is interpreted, and when it is compiled.
//!
//! Also called: tiers of a just-in-time compiler.
//!
//! Interpreting costs some time in every call, compiling much time once. A small graph is interpreted until that has taken as
//! long as compiling small graphs does. Where a region comes with ever new shapes (a sequence that grows), what compiling
//! one of them took is known, and no shape may ever come again: the next ones are interpreted up to half of that time, so
//! that a shape that stays costs half of a compilation more, and one that does not costs none.

use std::cell::Cell;
use std::time::Duration;
use tessera_ir::graph::{Graph, Node};
use tessera_ir::prim::{Site, row};
use tessera_ops::prim::Prim;

/// Interpreting a small graph goes on until this much time was spent on it.
const INTERPRET_TIME_MAX: Duration = Duration::from_millis(8);
/// Specialisations of a region from which on another one is expected.
const SHAPES_MIN: u32 = 3;

/// What is known of a region from its specialisations so far.
#[derive(Default)]
pub struct History {
    shapes: Cell<u32>,
    /// The longest that it took to compile one.
    compiling: Cell<Duration>,
}

impl History {
    /// There is a new specialisation.
    pub fn met(&self) {
        self.shapes.set(self.shapes.get().saturating_add(1));
    }

    /// One was compiled.
    pub fn compiled(&self, took: Duration) {
        self.compiling.set(self.compiling.get().max(took));
    }

    /// The time that may be spent on interpreting one of them, in all calls.
    pub fn patience(&self, estimate: &Estimate) -> Duration {
        let own = if estimate.small { INTERPRET_TIME_MAX } else { Duration::ZERO };
        let learned = self.compiling.get() / 2;
        match self.shapes.get() >= SHAPES_MIN && estimate.call <= learned {
            true => own.max(learned),
            false => own,
        }
    }
}

/// What interpreting a graph takes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Estimate {
    /// One call, roughly.
    pub call: Duration,
    /// Small enough to be interpreted the first time, whatever the region is: compiled code would gain little.
    pub small: bool,
}

impl Estimate {
    pub fn of(g: &Graph) -> Estimate {
        let few = INTERPRET_TIME_MAX.as_nanos() as f64 / 4.0;
        let call = sum(g, &|g, node| row(&node.prim).cost(Site { g, node }).interpreted);
        Estimate { call: Duration::from_nanos(call as u64), small: sum(g, &gain) < few }
    }
}

/// What a node adds to the size of a graph: how long it is interpreted; where it has more operations than that (a product), compiled
/// code does them so much sooner that they count.
fn gain(g: &Graph, node: &Node) -> f64 {
    let cost = row(&node.prim).cost(Site { g, node });
    cost.interpreted.max(cost.operations as f64)
}

/// The sum over all nodes, those of loops once for each turn.
fn sum(g: &Graph, of: &dyn Fn(&Graph, &Node) -> f64) -> f64 {
    let turns = |node: &Node| match node.prim {
        // The interpreter does not look whether the program was interrupted, and nobody knows how long it would take.
        Prim::Scan { until: true, trips: 2.., .. } => f64::INFINITY,
        Prim::Scan { body, trips, .. } => g.bodies.get(body as usize).map_or(0.0, |b| sum(b, of)) * trips as f64,
        _ => 0.0,
    };
    g.nodes.iter().map(|node| of(g, node) + turns(node)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_shapes_wait_for_half_of_what_compiling_took() {
        let ms = Duration::from_millis;
        let (small, large) = (Estimate { call: ms(1), small: true }, Estimate { call: ms(10), small: false });
        let history = History::default();
        let patience = |e| history.patience(e);
        history.met();
        assert_eq!([patience(&small), patience(&large)], [ms(8), ms(0)]);
        history.compiled(ms(60));
        history.compiled(ms(40));
        history.met();
        assert_eq!([patience(&small), patience(&large)], [ms(8), ms(0)]);
        history.met();
        assert_eq!([patience(&small), patience(&large)], [ms(30), ms(30)]);
        assert_eq!(patience(&Estimate { call: ms(31), small: false }), ms(0));
    }
}
