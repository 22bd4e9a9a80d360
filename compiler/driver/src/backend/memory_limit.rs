//! Graphs within the memory that they may take: those of a program with `--memory`, and where there is none
//! those that are larger than the machine.

use super::{Backend, Known, bytes};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use tessera_base::{Code, Diagnostic, Span};
use tessera_graph::place_buffers::place_buffers;
use tessera_graph::recompute::{self, GivenUp, Measured};
use tessera_ir::graph::{Graph, NodeId};
use tessera_ir::group::Partition;
use tessera_runtime::fault::human_bytes;
use tessera_runtime::tensor::memory_limit;

/// A graph that needs more than it may.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shortage {
    /// Bytes that it may take, and needs with all that was computed again.
    pub bound: u64,
    pub needs: u64,
    /// Parts of what it needs: tensors that are handed in, and results.
    pub arguments: u64,
    pub results: u64,
    /// Everything in between, and the same if nothing was computed again.
    pub between: u64,
    pub before: u64,
    /// What lies there where most does, the largest first.
    pub held: Vec<(NodeId, u64)>,
}

/// Places that are shown with what lies there.
const PLACES: usize = 3;

impl Shortage {
    /// What is said at the call of region `name`.
    pub fn diagnostic(&self, graph: &Graph, name: &str, call: Span) -> Diagnostic {
        let Shortage { bound, needs, arguments, results, between, before, .. } = *self;
        let (needs, bound) = (shown(needs), shown(bound));
        let mut d =
            Diagnostic::new(Code::E0717, call, format!("`{name}` needs {needs}, and `--memory` allows {bound}"));
        // By place in the program, the largest first.
        let mut places: BTreeMap<(u32, u32, u32), (Span, u64, u32)> = BTreeMap::new();
        for (id, bytes) in &self.held {
            let span = graph.node(*id).origin.span;
            let place = places.entry((span.item.0, span.start, span.end)).or_insert((span, 0, 0));
            (place.1, place.2) = (place.1 + bytes, place.2 + 1);
        }
        let mut places: Vec<(Span, u64, u32)> = places.into_values().filter(|p| !p.0.is_none()).collect();
        places.sort_by_key(|(_, bytes, _)| Reverse(*bytes));
        for (span, bytes, values) in places.into_iter().take(PLACES) {
            let what = if values == 1 { "one value waits".to_owned() } else { format!("{values} values wait") };
            d = d.with_label(span, format!("{what} here where most is needed: {}", shown(bytes)));
        }
        let again = recompute::count(graph);
        let without = match again {
            0 => String::new(),
            n => format!("; {n} computed again, without that {}", shown(before)),
        };
        d.note(format!("arguments {}, results {}", shown(arguments), shown(results)))
            .note(format!("in between {}{without}, and no recomputation makes it less", shown(between)))
            .help(format!("a smaller batch, a narrower dtype, or `--memory` of at least {needs}"))
    }
}

/// `1.5 GiB (1610612736 bytes)`: in the unit and exactly.
fn shown(bytes: u64) -> String {
    match bytes {
        u64::MAX => "more than 2^64 bytes".into(),
        bytes if bytes < 1024 => format!("{bytes} bytes"),
        bytes => format!("{} ({bytes} bytes)", human_bytes(bytes)),
    }
}

/// A graph with what it lacks.
pub struct Fit {
    pub graph: Graph,
    pub shortage: Option<Shortage>,
}

impl Backend {
    /// The graph within what the command line allows. Without that, one that is larger than the machine becomes
    /// as small as it can.
    pub fn bounded(&self, graph: Graph) -> Fit {
        if let Some(bound) = self.memory() {
            return self.fit(graph, bound);
        }
        // All values at once with room to spare: most graphs need no other look.
        let all = graph.nodes.iter().fold(0u64, |n, node| n.saturating_add(bytes(&node.ty)));
        if all <= memory_limit() / 4 {
            return Fit { graph, shortage: None };
        }
        let fit = self.fit(graph, memory_limit());
        Fit { graph: Graph { memory: None, ..fit.graph }, shortage: None }
    }

    /// The graph, in which values are computed again where it would take more than `bound` bytes: its arguments, its
    /// results and everything in between. Cost: a division into kernels, many where something is computed again.
    pub fn fit(&self, mut graph: Graph, bound: u64) -> Fit {
        let sum = |ids: &mut dyn Iterator<Item = u64>| ids.fold(0u64, u64::saturating_add);
        let arguments = sum(&mut graph.inputs.iter().filter(|i| !i.scalar).map(|i| bytes(&i.ty)));
        let results = sum(&mut graph.outputs.iter().map(|&o| bytes(graph.ty(o))));
        let known = Known::default();
        let measure = |g: &Graph| {
            let groups = self.grouped(g, Some(&known));
            let partition = Partition { groups: groups.iter().map(|p| p.group.clone()).collect() };
            let memory = place_buffers(g, &partition)?;
            Some(Measured { arena: self.arena(g, &groups, &memory, &known)?, partition })
        };
        let room = bound.saturating_sub(arguments).saturating_sub(results);
        let Some(fitted) = recompute::within(&graph, room, &measure) else {
            let shortage = Shortage {
                bound,
                needs: u64::MAX,
                arguments,
                results,
                between: u64::MAX,
                before: u64::MAX,
                held: vec![],
            };
            return Fit { graph, shortage: Some(shortage) };
        };
        let needs = arguments.saturating_add(results).saturating_add(fitted.arena);
        let again = recompute::count(&fitted.graph);
        if again > 0 {
            graph = fitted.graph;
            // Devices of a mesh give up the same values.
            let mut given_up = self.given_up.borrow_mut();
            let new: Vec<GivenUp> = fitted.again.into_iter().filter(|v| !given_up.contains(v)).collect();
            given_up.extend(new);
            drop(given_up);
            self.note_again(&graph.name, again, fitted.before, fitted.arena);
        }
        graph.memory = Some(room);
        let mut held: Vec<(NodeId, u64)> = fitted.peak.iter().map(|l| (l.id, l.bytes)).collect();
        held.sort_by_key(|(id, bytes)| (Reverse(*bytes), *id));
        let (between, before) = (fitted.arena, fitted.before);
        let shortage = Shortage { bound, needs, arguments, results, between, before, held };
        Fit { graph, shortage: (needs > bound).then_some(shortage) }
    }

    /// Keeps what is said about a graph in which values are computed again.
    fn note_again(&self, name: &str, values: usize, before: u64, after: u64) {
        let note = format!(
            "`{name}`: {values} computed again, {after} instead of {before} bytes between arguments and results"
        );
        if self.options.verbose {
            eprintln!("{note}");
        }
        self.notes.borrow_mut().push(note);
    }

    /// What is computed again in the graphs that were too large.
    pub fn given_up(&self) -> Vec<GivenUp> {
        self.given_up.borrow().clone()
    }

    /// What was said about graphs in which values are computed again.
    pub fn notes(&self) -> Vec<String> {
        self.notes.borrow().clone()
    }

    /// Bytes that a graph may take by the command line.
    pub fn memory(&self) -> Option<u64> {
        self.options.memory
    }
}
