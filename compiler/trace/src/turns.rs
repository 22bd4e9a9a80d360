//! What a loop runs over, and what its turns hand on.

use std::collections::BTreeSet;
use tessera_core::ir::{LocalId, TStmt};
use tessera_core::live::{Live, Targets, before_each};
use tessera_core::walk::{Var, each_stmt};
use tessera_ir::graph::NodeId;

/// What a loop runs over.
#[derive(Clone, Copy)]
pub struct Over<'a> {
    pub sequences: &'a [NodeId],
    /// Where the first of them is positions: the first one, and the step from turn to turn.
    pub positions: Option<(i64, i64)>,
    /// At most, where it ends by itself.
    pub trips: u64,
    /// Whether it ends by itself: the carry is then a bool that says whether there is another turn, the number of turns, and more.
    pub until: bool,
}

/// The position of a turn, in the graph of a loop's body.
pub struct Turn {
    /// The input that holds it.
    pub position: NodeId,
    start: i64,
    step: i64,
    trips: u64,
    /// Nodes outside whose row at the position is an element of the loop, and the inputs that hold it.
    pub rows: Vec<(NodeId, NodeId)>,
    /// Other nodes outside whose row is read.
    pub wanted: Vec<NodeId>,
}

impl Turn {
    /// Of a body whose inputs for elements are `elements`: those of the sequences, then those of rows.
    pub fn new(over: &Over, rows: &[NodeId], elements: &[NodeId]) -> Option<Turn> {
        let (start, step) = over.positions?;
        let (&position, held) = (elements.first()?, elements.get(over.sequences.len()..)?);
        let rows = rows.iter().copied().zip(held.iter().copied()).collect();
        Some(Turn { position, start, step, trips: over.trips, rows, wanted: vec![] })
    }

    /// Whether every turn's position counts from the start of a dim of so many.
    pub fn fits(&self, size: u64) -> bool {
        let at = |t: u64| i128::from(self.start) + i128::from(t) * i128::from(self.step);
        let last = self.trips.saturating_sub(1);
        [at(0), at(last)].iter().all(|p| (0..i128::from(size)).contains(p))
    }
}

/// The variables that statements set.
pub fn set_in(body: &[TStmt]) -> BTreeSet<Var> {
    let mut set = BTreeSet::new();
    each_stmt(body, &mut |s| {
        set.extend(match s {
            TStmt::Set(l, _) => Some(Var::Local(*l)),
            TStmt::SetGlobal(g, _) => Some(Var::Global(*g)),
            TStmt::Mutate { place, .. } => Some(place.root.into()),
            TStmt::ForRange { var, .. } | TStmt::ForEach { var, .. } => Some(Var::Local(*var)),
            _ => None,
        });
    });
    set
}

/// The variables that a turn sets and that a later turn may read.
pub fn carried_variables(var: LocalId, body: &[TStmt]) -> Vec<Var> {
    let set = set_in(body);
    let live = before_each(body, &Live::new(), &Targets::default());
    let first = live.first().cloned().unwrap_or_default();
    set.into_iter().filter(|v| first.contains(v) && *v != Var::Local(var)).collect()
}
