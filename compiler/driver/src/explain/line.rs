//! What one line of a function became: its operations, the kernels that compute them, and what was weighed for them.

use crate::graph_facts::{AgainFacts, Apart, GraphFacts, NodeFacts, Place, ProductFacts, SplitFacts};
use crate::kernel_table::Kernel;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use tessera_runtime::fault::human_bytes;

/// Numbers of equal kernels that are listed.
const NUMBERS_MAX: usize = 8;

/// A line of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Line {
    pub file: String,
    pub number: usize,
    pub text: String,
}

/// What a line is in one graph: the function's, or the body of one of its loops.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Part {
    pub graph: String,
    /// Operations of the line, by number.
    pub nodes: Vec<u32>,
    /// Kernels that compute them, by position in the graph.
    pub groups: Vec<usize>,
}

/// What a line became.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LineFacts {
    pub line: usize,
    pub text: String,
    pub parts: Vec<Part>,
    pub products: Vec<ProductFacts>,
    pub splits: Vec<SplitFacts>,
    pub again: Vec<AgainFacts>,
}

impl Line {
    fn has(&self, place: &Place) -> bool {
        place.line == self.number && place.file == self.file
    }

    /// Whether something comes from the line itself, or from a call that stands there.
    fn leads_to(&self, place: &Option<Place>, calls: &[Place]) -> bool {
        place.iter().chain(calls).any(|p| self.has(p))
    }

    fn nodes<'g>(&self, graph: &'g GraphFacts) -> Vec<&'g NodeFacts> {
        graph.nodes.iter().filter(|n| self.leads_to(&n.place, &n.calls)).collect()
    }

    /// What is known of the line, from what is known of its function.
    pub fn facts(
        &self,
        graph: &GraphFacts,
        products: &[ProductFacts],
        splits: &[SplitFacts],
        again: &[AgainFacts],
    ) -> LineFacts {
        let mut parts = vec![];
        self.add_parts(graph, &mut parts);
        LineFacts {
            line: self.number,
            text: self.text.clone(),
            parts,
            products: products.iter().filter(|p| self.leads_to(&p.place, &p.calls)).cloned().collect(),
            splits: splits.iter().filter(|s| self.leads_to(&s.place, &s.calls)).cloned().collect(),
            again: again.iter().filter(|v| self.leads_to(&v.place, &v.calls)).cloned().collect(),
        }
    }

    fn add_parts(&self, graph: &GraphFacts, out: &mut Vec<Part>) {
        let nodes = ids(&self.nodes(graph));
        if !nodes.is_empty() {
            let groups = groups_of(graph, &nodes);
            out.push(Part { graph: graph.name.clone(), nodes: nodes.into_iter().collect(), groups });
        }
        graph.bodies.iter().for_each(|body| self.add_parts(body, out));
    }

    /// For people.
    pub fn text(&self, graph: &GraphFacts, facts: &LineFacts) -> String {
        self.head() + &self.body(graph, facts)
    }

    /// [`Line::text`] without the line itself.
    pub fn body(&self, graph: &GraphFacts, facts: &LineFacts) -> String {
        let mut out = String::new();
        if facts.parts.is_empty() {
            out.push_str("  no operation of the graph comes from here: what nothing reads is left out, what is known is computed before, and what is equal is computed once, where it comes first\n");
            return out;
        }
        out.push_str("  tensor code: a call of the function is one graph\n");
        self.graph_text(graph, &mut out);
        let weighed = facts.products.iter().map(product);
        let weighed = weighed.chain(facts.splits.iter().map(|s| s.choice.text()));
        let weighed = weighed.chain(facts.again.iter().map(again));
        for (text, times) in merged(weighed.map(|text| (text, ()))) {
            let _ = writeln!(out, "  {text}{}", repeated(times.len()));
        }
        out
    }

    /// `line 3: y = x @ w`.
    pub fn head(&self) -> String {
        format!("\nline {}: {}\n", self.number, self.text)
    }

    fn graph_text(&self, graph: &GraphFacts, out: &mut String) {
        let nodes = self.nodes(graph);
        if !nodes.is_empty() {
            let _ = writeln!(out, "  operations in {}", graph.name);
            let operations = nodes.iter().map(|n| ((operation(n) + &self.elsewhere(n), &n.sum), ()));
            for ((line, sum), times) in merged(operations) {
                let _ = writeln!(out, "    {line}{}", repeated(times.len()));
                if let Some(sum) = sum {
                    let _ = writeln!(out, "      {sum}");
                }
            }
            self.kernels_text(graph, &ids(&nodes), out);
        }
        let named: BTreeMap<u32, &str> = nodes.iter().map(|n| (n.id, &*n.op)).collect();
        for (place, value) in graph.in_place.iter().filter_map(|p| Some((p, named.get(&p.value)?))) {
            let of = match &place.argument {
                Some(name) => format!("`{name}`, where the caller gives that up"),
                None => "what it writes over".into(),
            };
            let _ = writeln!(out, "  in place: {value} is computed in the memory of {of}");
        }
        graph.bodies.iter().for_each(|body| self.graph_text(body, out));
    }

    /// Of what a call computes: where the operation itself stands.
    fn elsewhere(&self, n: &NodeFacts) -> String {
        match &n.place {
            Some(place) if !self.has(place) && place.file == self.file => format!(", in line {}", place.line),
            Some(place) if !self.has(place) => format!(", in {}:{}", place.file, place.line),
            _ => String::new(),
        }
    }

    fn kernels_text(&self, graph: &GraphFacts, nodes: &BTreeSet<u32>, out: &mut String) {
        let groups = groups_of(graph, nodes);
        out.push_str("  computed by\n");
        let kernel = |&i: &usize| (self.kernel_text(graph, i), i);
        for (text, numbers) in merged(groups.iter().map(kernel)) {
            let shown: Vec<String> = numbers.iter().take(NUMBERS_MAX).map(|i| (i + 1).to_string()).collect();
            let rest = numbers.len() - shown.len();
            let rest = if rest > 0 { format!(" and {}", counted(rest, "other")) } else { String::new() };
            let _ = write!(out, "    {}{rest} {text}", shown.join(", "));
        }
        if groups.is_empty() {
            out.push_str("    no kernel: it only says which elements of a value are meant\n");
        }
        // What comes from this line and goes through memory, and what its kernels take from memory.
        let is_near = |a: &&Apart| nodes.contains(&a.value) || groups.binary_search(&a.to).is_ok();
        let name = |i: usize| graph.groups.get(i).map_or_else(String::new, |g| format!("{} {}", i + 1, g.name));
        let apart: Vec<&Apart> = graph.apart.iter().filter(is_near).collect();
        if !apart.is_empty() {
            out.push_str("  what keeps them from others, by rule\n");
        }
        let kind = |i: usize| graph.groups.get(i).map_or("", |g| &g.name);
        for ((_, _, why), all) in merged(apart.iter().map(|a| ((kind(a.from), kind(a.to), &a.why), *a))) {
            let _ = writeln!(out, "    {} and {}: {why}{}", name(all[0].from), name(all[0].to), repeated(all.len()));
        }
    }

    /// A kernel without its number: its name, what it costs, and its schedule on a line of its own.
    fn kernel_text(&self, graph: &GraphFacts, at: usize) -> String {
        let group = &graph.groups[at];
        let cost = graph.table.kernels.iter().find(|k| k.group == Some(at)).map_or_else(String::new, cost);
        let mut text = format!("{}{cost}\n", group.name);
        if !group.schedule.is_empty() {
            let _ = writeln!(text, "      schedule: {}", group.schedule.join("; "));
        }
        if let Some(weighed) = &group.weighed {
            let _ = writeln!(text, "      {}", weighed.text());
        }
        text
    }
}

fn ids(nodes: &[&NodeFacts]) -> BTreeSet<u32> {
    nodes.iter().map(|n| n.id).collect()
}

/// The kernels that compute some of these operations, by position.
fn groups_of(graph: &GraphFacts, nodes: &BTreeSet<u32>) -> Vec<usize> {
    let here = graph.groups.iter().enumerate().filter(|(_, g)| g.members.iter().any(|m| nodes.contains(m)));
    here.map(|(i, _)| i).collect()
}

fn product(p: &ProductFacts) -> String {
    let axes = p.axes.join(", ");
    let (taken, other) = if p.moves == "sums" { ("sums", "operands") } else { ("operands", "sums") };
    let (less, more) = if p.moves == "sums" { (p.sums, p.operands) } else { (p.operands, p.sums) };
    format!(
        "the product over what {axes} splits: {taken} move, {less:.0} numbers between all devices; {other} would be {more:.0}"
    )
}

fn again(v: &AgainFacts) -> String {
    let (saved, us) = (human_bytes(v.saved), v.seconds * 1e6);
    let steps = counted(v.steps, "operation");
    let op = &v.op;
    format!(
        "{op} is computed again, {steps} in about {us:.1} µs, as keeping it would hold {saved} where memory is fullest"
    )
}

/// What is equal, in the order in which it comes first, with what belongs to each.
fn merged<T: Ord + Clone, V>(all: impl Iterator<Item = (T, V)>) -> Vec<(T, Vec<V>)> {
    let (mut out, mut at): (Vec<(T, Vec<V>)>, BTreeMap<T, usize>) = (vec![], BTreeMap::new());
    for (what, of) in all {
        let at = *at.entry(what.clone()).or_insert_with(|| {
            out.push((what, vec![]));
            out.len() - 1
        });
        out[at].1.push(of);
    }
    out
}

/// `, 3 times`; nothing of what is there once.
fn repeated(times: usize) -> String {
    if times > 1 { format!(", {times} times") } else { String::new() }
}

/// `3 kernels`.
pub fn counted(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// `dot: f32[32, 16], 2.0 KiB, 8192 flops`.
fn operation(n: &NodeFacts) -> String {
    let sizes: Vec<String> = n.shape.iter().map(u64::to_string).chain([n.dtype.clone()]).collect();
    let mut out = format!("{}: Tensor[{}], {}", n.op, sizes.join(", "), human_bytes(n.bytes));
    if n.flops > 0 {
        let _ = write!(out, ", {} flops", n.flops);
    }
    if let Some(sent) = n.sent {
        let _ = write!(out, ", an exchange: device 0 sends {}", human_bytes(sent));
    }
    if let Some(reason) = &n.reason {
        let _ = write!(out, " ({reason})");
    }
    out
}

/// What a kernel costs.
pub fn cost(k: &Kernel) -> String {
    let several = k.fused.filter(|n| *n > 1);
    let fused = several.map_or_else(String::new, |n| format!(", {n} operations together"));
    let bytes = [k.read, k.written].map(human_bytes);
    let [read, written] = bytes;
    let flops = if k.flops > 0 { format!(", {} flops", k.flops) } else { String::new() };
    format!(" ({}){fused}: reads {read}, writes {written}{flops}", k.kind)
}
