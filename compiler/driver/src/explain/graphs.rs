//! What a function becomes, as `tessera explain` and the language server tell it: one source of facts for both.

use super::line::{Line, LineFacts, cost, counted};
use crate::ask::Asked;
use crate::backend::Backend;
use crate::cli::OfFunction;
use crate::graph_facts::{self, AgainFacts, GraphFacts, ProductFacts, SplitFacts};
use crate::program::Setup;
use crate::regions::as_run;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use tessera_base::Diagnostic;
use tessera_ir::graph::Graph;
use tessera_resolve::source::SourceMap;
use tessera_runtime::fault::human_bytes;

/// The graphs of a call of a function, and what made them.
pub struct Graphs {
    /// What was chosen and given, a line each.
    pub notes: Vec<String>,
    /// The sizes that nobody gave: `N=8 D=16`.
    pub chosen: String,
    pub backend: Backend,
    pub traced: Graph,
    pub run: Graph,
}

/// What is known of them.
pub struct Facts {
    pub notes: Vec<String>,
    pub graph: GraphFacts,
    pub products: Vec<ProductFacts>,
    pub splits: Vec<SplitFacts>,
    pub again: Vec<AgainFacts>,
}

impl Graphs {
    /// # Errors
    /// Why the function has no graph at these sizes.
    pub fn of(setup: &Setup, asked: &Asked, of: &OfFunction) -> Result<Graphs, Vec<Diagnostic>> {
        let called = asked.call(setup, of)?;
        let backend = setup.texts();
        let run = as_run(&backend, &called.graph, asked.function.head).map_err(|d| vec![*d])?;
        Ok(Graphs { notes: called.notes, chosen: called.chosen, backend, traced: called.graph, run })
    }

    pub fn facts(&self, sources: &SourceMap) -> Facts {
        Facts {
            notes: self.notes.clone(),
            graph: graph_facts::of(&self.backend, &self.run, sources),
            products: graph_facts::products(&self.traced, sources),
            splits: graph_facts::splits(&self.traced, sources),
            again: graph_facts::again(&self.backend, sources),
        }
    }
}

impl Facts {
    /// What is known of a line.
    pub fn of_line(&self, line: &Line) -> LineFacts {
        line.facts(&self.graph, &self.products, &self.splits, &self.again)
    }
}

/// What is shown at the end of a line.
pub struct Hint {
    pub short: String,
    pub whole: String,
    /// Whether it has a number that other sizes change.
    pub sized: bool,
}

impl Facts {
    /// The function as a whole: its kernels, what keeps them apart, its exchanges and its memory.
    pub fn text(&self) -> String {
        let graph = &self.graph;
        let (total, mut out) = (&graph.table.total, String::new());
        let [read, written] = [total.read, total.written].map(human_bytes);
        let kernels = counted(graph.groups.len(), "kernel");
        let _ = writeln!(out, "{kernels}: reads {read}, writes {written}, {} flops", total.flops);
        for kernel in &graph.table.kernels {
            let _ = writeln!(out, "  {}{}", kernel.name, cost(kernel));
        }
        if let Some(m) = &graph.memory {
            let [arguments, outputs, between] = [m.arguments, m.outputs, m.arena].map(human_bytes);
            let _ = writeln!(out, "memory: arguments {arguments}, results {outputs}, in between {between}");
        }
        let mut sent: BTreeMap<&str, u64> = BTreeMap::new();
        for n in graph.with_bodies().iter().flat_map(|g| &g.nodes) {
            if let Some(bytes) = n.sent {
                *sent.entry(&n.op).or_default() += bytes;
            }
        }
        for (name, bytes) in sent {
            let _ = writeln!(out, "exchange {name}: device 0 sends {}", human_bytes(bytes));
        }
        let name = |i: usize| graph.groups.get(i).map_or("", |g| &g.name);
        for a in &graph.apart {
            let _ = writeln!(out, "{} and {} are apart: {}", name(a.from), name(a.to), a.why);
        }
        out
    }

    /// What is worth a word at the end of a line: exchanges, and what is computed in place, there or in a call that stands there.
    /// By file and line.
    pub fn hints(&self) -> Vec<(String, usize, Hint)> {
        let mut sent: BTreeMap<(&str, usize, &str), u64> = BTreeMap::new();
        let mut places: BTreeMap<(&str, usize), BTreeSet<String>> = BTreeMap::new();
        for graph in self.graph.with_bodies() {
            for n in &graph.nodes {
                let lines: BTreeSet<(&str, usize)> =
                    n.place.iter().chain(&n.calls).map(|p| (&*p.file, p.line)).collect();
                if let Some(bytes) = n.sent {
                    for (file, line) in &lines {
                        *sent.entry((file, *line, &n.op)).or_default() += bytes;
                    }
                }
                for of in graph.in_place.iter().filter(|p| p.value == n.id) {
                    let whole = match &of.argument {
                        Some(name) => format!("in the memory of `{name}`, where the caller gives that up"),
                        None => "in the memory of what it writes over".into(),
                    };
                    for at in &lines {
                        places.entry(*at).or_default().insert(format!("{} is computed {whole}", n.op));
                    }
                }
            }
        }
        let exchange = |((file, line, op), bytes): ((&str, usize, &str), u64)| {
            let bytes = human_bytes(bytes);
            let whole = format!("{op}: device 0 sends {bytes}");
            (file.to_owned(), line, Hint { short: format!("{op} {bytes}"), whole, sized: true })
        };
        let place = |((file, line), all): ((&str, usize), BTreeSet<String>)| {
            let whole = all.into_iter().collect::<Vec<_>>().join("; ");
            (file.to_owned(), line, Hint { short: "in place".into(), whole, sized: false })
        };
        sent.into_iter().map(exchange).chain(places.into_iter().map(place)).collect()
    }
}
