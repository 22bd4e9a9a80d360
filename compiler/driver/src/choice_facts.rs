//! Choices that were weighed for a graph, as data: what was taken, what came second, and what the two were compared by.

use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tessera_base::Mesh;
use tessera_ir::graph::{Graph, NodeId};
use tessera_ir::prim::row;
use tessera_ops::prim::Prim;
use tessera_runtime::fault::human_bytes;
use tessera_schedule::weighed::{Choice, Weighed};
use tessera_shard::layout::split_dims::{self, By, Way};
use tessera_shard::layout::{self, NodeLayout};

/// What was weighed where there were several ways.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct ChoiceFacts {
    /// What was to be chosen.
    pub what: String,
    /// What the numbers of the ways are.
    pub by: String,
    /// `cost`, `share` or `bytes`.
    pub unit: String,
    pub taken: WayFacts,
    pub second: WayFacts,
}

/// A way, and the number that it was compared by.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct WayFacts {
    pub what: String,
    pub number: f64,
}

impl ChoiceFacts {
    /// What the cost model weighed for a schedule.
    pub fn of_schedule(w: Weighed) -> ChoiceFacts {
        let (what, by, unit) = match w.choice {
            Choice::VectorAxis => ("the axis along the lanes", "what the accesses of an element cost", "cost"),
            Choice::RegisterTile => {
                ("the tile in registers", "the part of the multiply-adds that loads leave time for", "share")
            }
            Choice::WindowTile => ("the tile in registers", "the cycles of a step of a row of windows", "cost"),
        };
        let way = |w: tessera_schedule::weighed::Way| WayFacts { what: w.what, number: w.number };
        ChoiceFacts { what: what.into(), by: by.into(), unit: unit.into(), taken: way(w.taken), second: way(w.second) }
    }

    /// Which dim of a result an axis splits.
    fn of_split(op: &str, w: &split_dims::Weighed) -> ChoiceFacts {
        let by = match w.taken.by {
            By::Stays(_) => "bytes of operands that stay where they are",
            By::Moves { .. } => "bytes of operands that move",
        };
        let way = |w: Way| {
            let uneven = matches!(w.by, By::Moves { uneven: true, .. });
            let (By::Stays(bytes) | By::Moves { bytes, .. }) = w.by;
            let what = format!("dim {}{}", w.dim, if uneven { " in uneven parts" } else { "" });
            WayFacts { what, number: bytes as f64 }
        };
        let what = format!("the dim of {op} that {} splits", w.axis);
        ChoiceFacts { what, by: by.into(), unit: "bytes".into(), taken: way(w.taken), second: way(w.second) }
    }

    /// `the axis along the lanes: "i0" of 64 (2.5) before "i1" of 8 (13), by what the accesses …`.
    pub fn text(&self) -> String {
        let number = |w: &WayFacts| match &*self.unit {
            "bytes" => human_bytes(w.number as u64),
            "share" => format!("{:.0} %", w.number * 100.0),
            _ => format!("{}", (w.number * 100.0).round() / 100.0),
        };
        let way = |w: &WayFacts| format!("{} ({})", w.what, number(w));
        format!("{}: {} before {}, by {}", self.what, way(&self.taken), way(&self.second), self.by)
    }
}

/// What was weighed for the dims that axes split, by operation, in loops too; of a graph on a mesh that is laid out like this.
pub fn splits<'g>(graph: &'g Graph, mesh: &Arc<Mesh>, placed: &[NodeLayout]) -> Vec<(&'g Graph, NodeId, ChoiceFacts)> {
    let weighed = layout::weighed(graph, mesh, placed).into_iter();
    let mut out: Vec<_> =
        weighed.map(|w| (graph, w.node, ChoiceFacts::of_split(&row(&graph.node(w.node).prim).word(), &w))).collect();
    for id in graph.ids() {
        if let (Prim::Scan { body, .. }, Some(turn)) = (&graph.node(id).prim, &placed[id.0 as usize].turn)
            && let Some(body) = graph.bodies.get(*body as usize)
        {
            out.extend(splits(body, mesh, &turn.placed));
        }
    }
    out
}
