//! What one line of a function became: its operations, the kernels that compute them, and what was weighed for them.

use crate::graph_facts::{AgainFacts, Apart, GraphFacts, NodeFacts, Place, ProductFacts};
use crate::kernel_table::Kernel;
use serde::Serialize;
use std::fmt::Write;
use tessera_runtime::fault::human_bytes;

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
    pub again: Vec<AgainFacts>,
}

impl Line {
    fn is_at(&self, place: &Option<Place>) -> bool {
        place.as_ref().is_some_and(|p| p.line == self.number && p.file == self.file)
    }

    /// What is known of the line, from what is known of its function.
    pub fn facts(&self, graph: &GraphFacts, products: &[ProductFacts], again: &[AgainFacts]) -> LineFacts {
        let mut parts = vec![];
        self.add_parts(graph, &mut parts);
        LineFacts {
            line: self.number,
            text: self.text.clone(),
            parts,
            products: products.iter().filter(|p| self.is_at(&p.place)).cloned().collect(),
            again: again.iter().filter(|v| self.is_at(&v.place)).cloned().collect(),
        }
    }

    fn add_parts(&self, graph: &GraphFacts, out: &mut Vec<Part>) {
        let nodes: Vec<u32> = graph.nodes.iter().filter(|n| self.is_at(&n.place)).map(|n| n.id).collect();
        let has = |members: &[u32]| members.iter().any(|m| nodes.contains(m));
        let groups = graph.groups.iter().enumerate().filter(|(_, g)| has(&g.members)).map(|(i, _)| i).collect();
        if !nodes.is_empty() {
            out.push(Part { graph: graph.name.clone(), nodes, groups });
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
            out.push_str("  no operation of the graph comes from here: what nothing reads is left out, what is known is computed before, and a call is what the called function's lines are\n");
            return out;
        }
        out.push_str("  tensor code: a call of the function is one graph\n");
        self.graph_text(graph, &mut out);
        for p in &facts.products {
            let axes = p.axes.join(", ");
            let (taken, other) = if p.moves == "sums" { ("sums", "operands") } else { ("operands", "sums") };
            let (less, more) = if p.moves == "sums" { (p.sums, p.operands) } else { (p.operands, p.sums) };
            let _ = writeln!(
                out,
                "  the product over what {axes} splits: {taken} move, {less:.0} numbers between all devices; {other} would be {more:.0}"
            );
        }
        for v in &facts.again {
            let (saved, us) = (human_bytes(v.saved), v.seconds * 1e6);
            let _ = writeln!(
                out,
                "  {} is computed again, {} in about {us:.1} µs, as keeping it would hold {saved} where memory is fullest",
                v.op,
                counted(v.steps, "operation")
            );
        }
        out
    }

    /// `line 3: y = x @ w`.
    pub fn head(&self) -> String {
        format!("\nline {}: {}\n", self.number, self.text)
    }

    fn graph_text(&self, graph: &GraphFacts, out: &mut String) {
        let nodes: Vec<&NodeFacts> = graph.nodes.iter().filter(|n| self.is_at(&n.place)).collect();
        if !nodes.is_empty() {
            let _ = writeln!(out, "  operations in {}", graph.name);
            let mut lines: Vec<(String, usize)> = vec![];
            for line in nodes.iter().map(|n| operation(n)) {
                match lines.iter_mut().find(|(same, _)| *same == line) {
                    Some((_, times)) => *times += 1,
                    None => lines.push((line, 1)),
                }
            }
            for (line, times) in lines {
                let times = if times > 1 { format!(", {times} times") } else { String::new() };
                let _ = writeln!(out, "    {line}{times}");
            }
            self.kernels_text(graph, &nodes, out);
        }
        for place in graph.in_place.iter().filter(|p| nodes.iter().any(|n| n.id == p.value)) {
            let value = nodes.iter().find(|n| n.id == place.value).map_or("", |n| &n.op);
            let of = match &place.argument {
                Some(name) => format!("`{name}`, where the caller gives that up"),
                None => "what it writes over".into(),
            };
            let _ = writeln!(out, "  in place: {value} is computed in the memory of {of}");
        }
        graph.bodies.iter().for_each(|body| self.graph_text(body, out));
    }

    fn kernels_text(&self, graph: &GraphFacts, nodes: &[&NodeFacts], out: &mut String) {
        let is_here = |id: &u32| nodes.iter().any(|n| n.id == *id);
        let mut groups = vec![];
        out.push_str("  computed by\n");
        for (i, group) in graph.groups.iter().enumerate().filter(|(_, g)| g.members.iter().any(is_here)) {
            groups.push(i);
            let cost = graph.table.kernels.iter().find(|k| k.group == Some(i)).map_or_else(String::new, cost);
            let _ = writeln!(out, "    {} {}{cost}", i + 1, group.name);
            if !group.schedule.is_empty() {
                let _ = writeln!(out, "      schedule: {}", group.schedule.join("; "));
            }
        }
        if groups.is_empty() {
            out.push_str("    no kernel: it only says which elements of a value are meant\n");
        }
        // What comes from this line and goes through memory, and what its kernels take from memory.
        let is_near = |a: &&Apart| is_here(&a.value) || groups.contains(&a.to);
        let name = |i: usize| graph.groups.get(i).map_or_else(String::new, |g| format!("{} {}", i + 1, g.name));
        let apart: Vec<&Apart> = graph.apart.iter().filter(is_near).collect();
        if !apart.is_empty() {
            out.push_str("  what keeps them from others, by rule\n");
        }
        for a in apart {
            let _ = writeln!(out, "    {} and {}: {}", name(a.from), name(a.to), a.why);
        }
    }
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
