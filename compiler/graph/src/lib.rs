//! Graph to graph: rewriting, then the division into kernels and the memory they work in.
//!
//! A pass reads a graph and writes a new one. [`PIPELINE`] is their order; each can be run
//! alone on a text (`tessera emit --emit=after:PASS`).

pub mod loop_rows;
pub mod fuse;
pub mod rebuild;
pub mod compensate;
pub mod late_exchanges;
pub mod merge_equal;
pub mod narrow;
pub mod product_order;
pub mod block_products;
pub mod place_buffers;
pub mod remove_unused;
pub mod recompute;
pub mod rules;
pub mod simplify;

use tessera_base::bug;
use tessera_ir::graph::Graph;
use tessera_ir::verify::verify;

/// A pass with the name that traces and files use.
pub struct Pass {
    pub name: &'static str,
    /// One line for people.
    pub doc: &'static str,
    pub run: fn(&Graph) -> Graph,
}

/// The passes in order.
pub const PIPELINE: &[Pass] = &[
    Pass { name: "compensate", doc: "writes products under kahan_sum as compensated sums", run: compensate::run },
    Pass { name: "simplify", doc: "applies the exact rewrite rules", run: simplify::run },
    Pass { name: "merge_equal", doc: "computes equal expressions once", run: merge_equal::run },
    Pass { name: "remove_unused", doc: "drops what no output needs", run: remove_unused::run },
    Pass { name: "narrow", doc: "computes only the part of a value that is read", run: narrow::run },
    Pass { name: "late_exchanges", doc: "takes what devices give where it is read", run: late_exchanges::run },
    Pass { name: "recompute", doc: "computes again what there is no memory to keep", run: recompute::run },
];

impl Pass {
    /// Runs the pass; where debug assertions are on, what it gives is verified.
    fn apply(&self, graph: &Graph) -> Graph {
        let after = (self.run)(graph);
        if cfg!(debug_assertions) {
            verified(&after, self.name);
        }
        after
    }
}

/// Stops where a graph breaks a rule, which says who made it. Values that no memory holds are refused where it is asked for.
pub fn verified(graph: &Graph, by: &str) {
    if graph.nodes.iter().any(|n| n.ty.bytes().is_none()) {
        return;
    }
    let wrong = verify(graph);
    if !wrong.is_empty() {
        bug!("the graph that `{by}` gives breaks a rule\n{}\n{graph}", wrong.join("\n"));
    }
}

/// Runs the whole pipeline.
pub fn optimise(graph: &Graph) -> Graph {
    PIPELINE.iter().fold(graph.clone(), |g, pass| pass.apply(&g))
}

/// The same without [`narrow`], for who looks at all that the program computes.
pub fn optimise_in_full(graph: &Graph) -> Graph {
    PIPELINE.iter().filter(|pass| pass.name != "narrow").fold(graph.clone(), |g, pass| pass.apply(&g))
}

/// Drops what is computed twice and what no output needs, without rewriting.
pub fn prune(graph: &Graph) -> Graph {
    remove_unused::run(&merge_equal::run(graph))
}

/// Runs the pipeline up to and including a pass; `None` if there is no such pass.
pub fn run_until(graph: &Graph, name: &str) -> Option<Graph> {
    let end = PIPELINE.iter().position(|p| p.name == name)?;
    Some(PIPELINE[..=end].iter().fold(graph.clone(), |g, pass| pass.apply(&g)))
}
