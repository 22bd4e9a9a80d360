//! Graph IR as text, both ways.
//!
//! ```text
//! "tessera.graph"() {name="f", policy="deterministic"} ({
//!   %0 = "tessera.graph.input"() {index=0, name="x"} : Tensor[2, 3, f32]
//!   %1 = "tessera.graph.exp"(%0) : Tensor[2, 3, f32]
//!   "tessera.graph.return"(%1)
//! })
//! ```
//! Elementwise functions go by their own name (`tessera.graph.exp`), reductions too
//! (`tessera.graph.reduce_sum`). Loop bodies are regions.

use crate::graph::{Graph, Node, NodeId, NodeType, Origin, Policy, Reason};
use crate::hints::KernelHints;
use crate::prim::columns::{Around, ReadOwn};
use crate::prim::{self, Site, row};
use crate::text::{self, Attr, Attrs, Op, TextError};
use std::collections::BTreeMap;
use std::fmt;
use tessera_base::{DType, Sharding};
use tessera_ops::prim::Prim;

const PREFIX: &str = "tessera.graph.";

impl fmt::Display for NodeType {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("Tensor[")?;
        for (i, n) in self.shape.iter().enumerate() {
            write!(f, "{n}{}, ", self.sharding.dim_suffix(i))?;
        }
        write!(f, "{}]", self.dtype)
    }
}

impl Policy {
    pub fn name(self) -> &'static str {
        match self {
            Policy::Deterministic => "deterministic",
            Policy::Fast => "fast",
            Policy::KahanSum => "kahan_sum",
        }
    }

    pub fn parse(text: &str) -> Option<Policy> {
        [Policy::Deterministic, Policy::Fast, Policy::KahanSum].into_iter().find(|p| p.name() == text)
    }
}

impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&text::print(&[to_op(self)], 0))
    }
}

/// The line of a node, as the text of its graph has it; without what a loop repeats.
pub fn line(g: &Graph, id: NodeId) -> String {
    let op = Op { regions: vec![], ..node_op(g, id) };
    text::print(&[op], 0).trim_end().to_owned()
}

fn to_op(g: &Graph) -> Op {
    let mut op = Op::new("tessera.graph");
    op.attrs.push(("name".into(), Attr::Str(g.name.clone())));
    if !g.kernels.is_empty() {
        let kernels = g.kernels.iter().map(|h| Attr::Str(h.to_string())).collect();
        op.attrs.push(("kernels".into(), Attr::List(kernels)));
    }
    if let Some(bytes) = g.memory {
        op.attrs.push(("memory".into(), Attr::Int(bytes as i64)));
    }
    let mut body: Vec<Op> = g.ids().map(|id| node_op(g, id)).collect();
    let mut ret = Op::new(format!("{PREFIX}return"));
    ret.operands = g.outputs.iter().map(|id| id.0.to_string()).collect();
    body.push(ret);
    op.regions.push(body);
    op
}

fn node_op(g: &Graph, id: NodeId) -> Op {
    let n = g.node(id);
    let mut attrs = Attrs::default();
    let name = row(&n.prim).text(Site { g, node: n }, &mut attrs);
    let regions = match n.prim {
        Prim::Scan { body, .. } => g.bodies.get(body as usize).map(|b| vec![to_op(b)]).into_iter().collect(),
        _ => vec![],
    };
    if n.policy != Policy::Deterministic {
        attrs.str("policy", n.policy.name());
    }
    if let Some(Reason::Memory(number)) = n.origin.reason {
        attrs.int("again", number);
    }
    if let Some(kernel) = n.origin.kernel {
        attrs.int("kernel", kernel);
    }
    let types =
        if n.results.is_empty() { vec![n.ty.to_string()] } else { n.results.iter().map(NodeType::to_string).collect() };
    Op {
        results: vec![id.0.to_string()],
        name: format!("{PREFIX}{name}"),
        operands: n.operands.iter().map(|o| o.0.to_string()).collect(),
        attrs: attrs.0,
        regions,
        types,
        at: 0,
    }
}

/// Reads a graph. The text may be any bytes; what comes back still needs the verifier.
pub fn parse(source: &str) -> Result<Graph, TextError> {
    parse_with(source, &[])
}

/// Reads a graph with primitives that are not in the list.
pub fn parse_with(source: &str, own: &[ReadOwn]) -> Result<Graph, TextError> {
    let ops = text::parse(source)?;
    match ops.as_slice() {
        [op] => from_op(op, own),
        _ => Err(TextError {
            at: 0,
            message: format!("one `tessera.graph` is expected, {} operations stand here", ops.len()),
        }),
    }
}

/// Reads a graph from its operation. Errors: as [`parse`].
pub fn read(op: &Op) -> Result<Graph, TextError> {
    from_op(op, &[])
}

fn from_op(op: &Op, own: &[ReadOwn]) -> Result<Graph, TextError> {
    if op.name != "tessera.graph" {
        return Err(op.error("a `tessera.graph` is expected"));
    }
    let [body] = op.regions.as_slice() else { return Err(op.error("a graph has one region")) };
    let mut g = Graph { name: op.str("name").unwrap_or("main").to_owned(), ..Graph::default() };
    if op.attr("memory").is_some() {
        g.memory = Some(op.index("memory")? as u64);
    }
    if let Some(Attr::List(kernels)) = op.attr("kernels") {
        for kernel in kernels {
            let hints = if let Attr::Str(text) = kernel { KernelHints::parse(text) } else { None };
            g.kernels.push(hints.ok_or_else(|| op.error("`kernels` must be a list of a kernel's name and hints"))?);
        }
    }
    let mut names: BTreeMap<&str, NodeId> = BTreeMap::new();
    for inner in body {
        let operands = inner
            .operands
            .iter()
            .map(|o| {
                names
                    .get(o.as_str())
                    .copied()
                    .ok_or_else(|| inner.error(format!("`%{o}` is not defined before it is used")))
            })
            .collect::<Result<Vec<_>, _>>()?;
        if inner.name == format!("{PREFIX}return") {
            g.outputs = operands;
            continue;
        }
        let node = read_node(&mut g, inner, operands, own)?;
        let id = g.push(node);
        let [result] = inner.results.as_slice() else {
            return Err(inner.error("an operation of a graph has one result name"));
        };
        names.insert(result, id);
    }
    Ok(g)
}

/// `Tensor[2, 3, f32]`.
fn read_type(op: &Op, text: &str) -> Result<NodeType, TextError> {
    let bad = || op.error(format!("`{text}` is no type of the form `Tensor[2, 3, f32]`"));
    let inner = text.strip_prefix("Tensor[").and_then(|t| t.strip_suffix(']')).ok_or_else(bad)?;
    let mut parts: Vec<&str> = inner.split(',').map(str::trim).collect();
    let dtype = parts.pop().and_then(DType::parse).ok_or_else(bad)?;
    let mut sharding = Sharding::default();
    let mut shape = vec![];
    for part in parts {
        let (size, axis) = part.split_once('@').map_or((part, None), |(s, a)| (s, Some(a)));
        shape.push(size.parse().map_err(|_| bad())?);
        sharding.dims.push(axis.map(|a| a.to_owned()).into_iter().collect());
    }
    if sharding.is_replicated() {
        sharding.dims.clear();
    }
    Ok(NodeType { shape, dtype, sharding })
}

fn read_node(g: &mut Graph, op: &Op, operands: Vec<NodeId>, own: &[ReadOwn]) -> Result<Node, TextError> {
    let types = op.types.iter().map(|t| read_type(op, t)).collect::<Result<Vec<_>, _>>()?;
    let ty = types.first().cloned().ok_or_else(|| op.error("the type of the result is missing"))?;
    let name =
        op.name.strip_prefix(PREFIX).ok_or_else(|| op.error(format!("operations of a graph begin with `{PREFIX}`")))?;
    let mut around = Around { g, ty: &ty, own, graph: from_op };
    let prim = prim::read(name, op, &mut around)?.ok_or_else(|| op.error("no operation of this name exists"))?;
    let policy = op.str("policy").ok().and_then(Policy::parse).unwrap_or_default();
    let results = if matches!(prim, Prim::Scan { .. }) { types } else { vec![] };
    let kernel = op.attr("kernel").map(|_| op.index("kernel")).transpose()?;
    if kernel.is_some_and(|k| k >= g.kernels.len()) {
        return Err(op.error("`kernel` is the position of a kernel of the graph"));
    }
    let again = if op.attr("again").is_some() { Some(op.index("again")?) } else { None };
    let reason = again.map(|n| Reason::Memory(n as u32));
    let origin = Origin { kernel: kernel.map(|k| k as u32), reason, ..Origin::default() };
    Ok(Node { prim, operands, ty, results, origin, policy })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#""tessera.graph"() {name="f"} ({
  %0 = "tessera.graph.input"() {index=0, name="x"} : Tensor[2, 3, f32]
  %1 = "tessera.graph.exp"(%0) : Tensor[2, 3, f32]
  %2 = "tessera.graph.reduce_sum"(%1) {axes=[1]} : Tensor[2, f32]
  %3 = "tessera.graph.full"() {value=0.5} : Tensor[2, f32]
  %4 = "tessera.graph.add"(%2, %3) {policy="fast"} : Tensor[2, f32]
  "tessera.graph.return"(%4)
})
"#;

    #[test]
    fn graphs_read_back() {
        let g = parse(TEXT).unwrap_or_else(|e| panic!("{e:?}"));
        assert_eq!(g.to_string(), TEXT);
        assert_eq!(g.node(NodeId(4)).policy, Policy::Fast);
    }

    #[test]
    fn wrong_texts_are_told() {
        let e = parse(&TEXT.replace("%1)", "%9)")).err().map(|e| e.message);
        assert_eq!(e.as_deref(), Some("`tessera.graph.reduce_sum`: `%9` is not defined before it is used"));
        assert!(parse("").is_err());
    }
}
