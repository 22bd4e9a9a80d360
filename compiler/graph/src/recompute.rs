//! Computes values again instead of keeping them, where a graph may not take as much memory as it would.
//!
//! Also called: rematerialisation, activation checkpointing by the compiler.
//!
//! Before, with room for two of the values (`%1` waits while `%2` and `%3` are computed):
//! `%1 = exp(%0)`, `%2 = dot(%0, %0)`, `%3 = dot(%2, %2)`, `%4 = dot(%3, %1)`.
//! After: `%1 = dot(%0, %0)`, `%2 = dot(%1, %1)`, `%3 = exp(%0)`, `%4 = dot(%2, %3)`.
//!
//! Of what waits at the peak ([`choose`]), values are given up that cost the least time for each byte they
//! free; a minimum cut ([`tessera_ir::minimum_cut`]) finds from which values a value is best computed again. That is repeated until the
//! bound holds or nothing helps: with cheap steps first, then with products. Each step has the same operands and so
//! the same bits as before; only where it stands is new ([`apply`]).

mod choose;
mod apply;

pub use apply::count;
pub use choose::peak;

use crate::fuse::{Limits, partition};
use crate::place_buffers::{Life, lives, place_buffers};
use choose::{Choice, Effort, Scene};
use std::collections::BTreeSet;
use tessera_base::Span;
use tessera_ir::graph::{Calls, Graph};
use tessera_ir::group::Partition;
use tessera_ir::prim::row;

/// Divisions into kernels that are looked at: bounds the time of the pass.
const LOOKS_MAX: usize = 192;

/// A graph, divided into kernels.
#[derive(Clone, Debug)]
pub struct Measured {
    pub partition: Partition,
    /// Bytes of the arena.
    pub arena: u64,
}

/// A value that is computed again: what was weighed where it was chosen.
#[derive(Clone, PartialEq, Debug)]
pub struct GivenUp {
    pub span: Span,
    pub calls: Calls,
    pub op: String,
    /// Operations that are computed again for it.
    pub steps: usize,
    /// Bytes that keeping it would have held where memory is fullest, beyond what its recomputation reads.
    pub saved: u64,
    /// Nanoseconds that it takes, roughly.
    pub cost: f64,
}

/// A graph within a bound, or as near to it as it comes.
#[derive(Clone, Debug)]
pub struct Fitted {
    pub graph: Graph,
    /// Bytes of the arena without recomputation, and now.
    pub before: u64,
    pub arena: u64,
    /// What lies in the arena where it is fullest.
    pub peak: Vec<Life>,
    /// What is computed again, in the order in which it was chosen.
    pub again: Vec<GivenUp>,
}

pub fn run(old: &Graph) -> Graph {
    let Some(bound) = old.memory else { return old.clone() };
    within(old, bound, &measure).map_or_else(|| old.clone(), |f| f.graph)
}

/// What a graph needs without the temporaries of its kernels, which only the scheduler knows.
fn measure(g: &Graph) -> Option<Measured> {
    let partition = partition(g, &Limits::default());
    let arena = place_buffers(g, &partition)?.arena_bytes;
    Some(Measured { partition, arena })
}

/// Brings a graph's arena within `bound` bytes if that can be; `None` if its sizes are beyond 64 bits.
///
/// Cost: nothing more than `measure` where the bound holds; else up to some hundred of them.
pub fn within(old: &Graph, bound: u64, measure: &dyn Fn(&Graph) -> Option<Measured>) -> Option<Fitted> {
    let mut graph = old.clone();
    let mut now = measure(&graph)?;
    let before = now.arena;
    let mut again = vec![];
    let mut looks = 0;
    for effort in [Effort::Cheap, Effort::Dear] {
        let mut vain = BTreeSet::new();
        while now.arena > bound && looks < LOOKS_MAX {
            let all = lives(&graph, &now.partition)?;
            let (at, _) = peak(&all, now.partition.groups.len());
            let scene = Scene::new(&graph, &now.partition, &all, at, effort);
            let mut choices = scene.choices(now.arena - bound, &vain);
            let Some(first) = choices.first().map(|c| c.value) else { break };
            // What one choice gains another may lose: fewer, where all of them gain nothing.
            let better = loop {
                looks += 1;
                let next = apply::apply(&graph, &now.partition, at, &choices);
                let measured = measure(&next)?;
                if measured.arena < now.arena {
                    break Some((next, measured));
                }
                if choices.len() == 1 || looks >= LOOKS_MAX {
                    break None;
                }
                choices.truncate(choices.len() / 2);
            };
            match better {
                Some((next, measured)) => {
                    again.extend(choices.iter().map(|c| given_up(&graph, c)));
                    (graph, now) = (next, measured);
                    vain.clear();
                }
                None => {
                    vain.insert(first);
                }
            }
        }
    }
    let all = lives(&graph, &now.partition)?;
    let (_, peak) = peak(&all, now.partition.groups.len());
    Some(Fitted { graph, before, arena: now.arena, peak, again })
}

fn given_up(g: &Graph, choice: &Choice) -> GivenUp {
    let node = g.node(choice.value);
    let op = row(&node.prim).word().into_owned();
    GivenUp {
        span: node.origin.span,
        calls: node.origin.calls.clone(),
        op,
        steps: choice.steps.len(),
        saved: choice.saved,
        cost: choice.cost,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tessera_ir::graph_text::parse;

    fn graph(body: &str) -> Graph {
        parse(&format!("\"tessera.graph\"() ({{\n{body}\n}})")).unwrap_or_else(|e| panic!("{e:?}"))
    }

    fn arena(g: &Graph) -> u64 {
        measure(g).map_or(0, |m| m.arena)
    }

    /// `%1` waits while the products are computed.
    const WAITING: &str = r#"%0 = "tessera.graph.input"() {index=0} : Tensor[16, 16, f32]
        %1 = "tessera.graph.exp"(%0) : Tensor[16, 16, f32]
        %2 = "tessera.graph.dot"(%1, %0) {accum="f32"} : Tensor[16, 16, f32]
        %3 = "tessera.graph.dot"(%2, %2) {accum="f32"} : Tensor[16, 16, f32]
        %4 = "tessera.graph.dot"(%3, %3) {accum="f32"} : Tensor[16, 16, f32]
        %5 = "tessera.graph.dot"(%4, %1) {accum="f32"} : Tensor[16, 16, f32]
        "tessera.graph.return"(%5)"#;

    #[test]
    fn a_cheap_value_is_computed_again() {
        let g = graph(WAITING);
        assert_eq!(arena(&g), 3072);
        let fitted = within(&g, 2048, &measure).unwrap_or_else(|| panic!("no sizes"));
        assert_eq!((fitted.before, fitted.arena, count(&fitted.graph)), (3072, 2048, 1));
        assert_eq!(arena(&fitted.graph), 2048);
        assert!(tessera_ir::verify::verify(&fitted.graph).is_empty());
    }

    #[test]
    fn without_need_nothing_changes() {
        let mut g = graph(WAITING);
        assert_eq!(run(&g), g);
        g.memory = Some(3072);
        assert_eq!(run(&g), g);
    }

    #[test]
    fn products_are_computed_again_where_nothing_else_helps() {
        let g = graph(&WAITING.replace(r#""tessera.graph.exp"(%0)"#, r#""tessera.graph.dot"(%0, %0) {accum="f32"}"#));
        let fitted = within(&g, 2048, &measure).unwrap_or_else(|| panic!("no sizes"));
        assert_eq!((fitted.before, fitted.arena, count(&fitted.graph)), (3072, 2048, 1));
        let least = within(&g, 0, &measure).unwrap_or_else(|| panic!("no sizes"));
        assert_eq!(least.arena, 2048);
    }
}
