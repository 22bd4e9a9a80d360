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

use crate::graph::{Graph, Input, Node, NodeId, NodeType, Origin, Policy, Reason};
use crate::hints::KernelHints;
use crate::text::{self, Attr, Op, TextError};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use tessera_abi::check::Check;
use tessera_base::{Blocks, DType, Sharding};
use tessera_ops::map::MapOp;
use tessera_ops::prim::{Collective, CollectiveKind, Exchange, Fft, FftKind, Prim, Reduction, Scalar, Steps, Transfer};

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

fn list(items: impl IntoIterator<Item = i64>) -> Attr {
    Attr::List(items.into_iter().map(Attr::Int).collect())
}

fn sizes<'a>(items: impl IntoIterator<Item = &'a u64>) -> Attr {
    list(items.into_iter().map(|&n| n as i64))
}

fn places<'a>(items: impl IntoIterator<Item = &'a usize>) -> Attr {
    list(items.into_iter().map(|&n| n as i64))
}

/// `[[peer, start…, size…], …]`.
fn transfers(parts: &[Transfer]) -> Attr {
    Attr::List(parts.iter().map(|t| sizes([t.peer].iter().chain(&t.start).chain(&t.size))).collect())
}

fn read_transfers(op: &Op, key: &str) -> Result<Vec<Transfer>, TextError> {
    let bad = || op.error(format!("`{key}` is a list of `[peer, start…, size…]`"));
    let Some(Attr::List(rows)) = op.attrs.iter().find(|(k, _)| k == key).map(|(_, v)| v) else { return Err(bad()) };
    let mut parts = vec![];
    for row in rows {
        let Attr::List(items) = row else { return Err(bad()) };
        let number = |a: &Attr| if let Attr::Int(n) = a { u64::try_from(*n).ok() } else { None };
        let numbers: Vec<u64> = items.iter().map(number).collect::<Option<_>>().ok_or_else(bad)?;
        let (Some((&peer, rest)), 1) = (numbers.split_first(), numbers.len() % 2) else { return Err(bad()) };
        let (start, size) = rest.split_at(rest.len() / 2);
        parts.push(Transfer { peer, start: start.to_vec(), size: size.to_vec() });
    }
    Ok(parts)
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

/// What a collective is called, and its attributes.
pub fn collective_attrs(c: &Collective) -> (&'static str, Vec<(&'static str, Attr)>) {
    let at = |dim: &usize| Attr::Int(*dim as i64);
    let (name, own) = match &c.kind {
        CollectiveKind::Rank => ("rank", vec![]),
        CollectiveKind::Sum => ("all_reduce", vec![]),
        CollectiveKind::Gather { dim } => ("all_gather", vec![("dim", at(dim))]),
        CollectiveKind::Scatter { dim } => ("reduce_scatter", vec![("dim", at(dim))]),
        CollectiveKind::Turn { from, to } => ("all_to_all", vec![("from_dim", at(from)), ("to_dim", at(to))]),
        CollectiveKind::Rows { from } => ("permute", vec![("from", sizes(from))]),
    };
    let over = [("over", Attr::Str(c.axis.to_string())), ("devices", Attr::Int(c.devices as i64))];
    (name, over.into_iter().chain(own).collect())
}

/// Reads what [`collective_attrs`] gives.
///
/// # Errors
/// The name is that of no collective, or an attribute is missing.
pub fn read_collective(name: &str, op: &Op) -> Result<Collective, TextError> {
    let kind = match name {
        "rank" => CollectiveKind::Rank,
        "all_reduce" => CollectiveKind::Sum,
        "all_gather" => CollectiveKind::Gather { dim: op.index("dim")? },
        "reduce_scatter" => CollectiveKind::Scatter { dim: op.index("dim")? },
        "all_to_all" => CollectiveKind::Turn { from: op.index("from_dim")?, to: op.index("to_dim")? },
        "permute" => CollectiveKind::Rows { from: naturals(op, "from")? },
        other => return Err(op.error(format!("`{other}` is no collective"))),
    };
    Ok(Collective { axis: op.str("over")?.into(), devices: op.index("devices")? as u64, kind })
}

fn node_op(g: &Graph, id: NodeId) -> Op {
    let n = g.node(id);
    let mut a: Vec<(String, Attr)> = vec![];
    let mut put = |k: &str, v: Attr| a.push((k.to_owned(), v));
    let mut regions = vec![];
    let name = match &n.prim {
        Prim::Input(i) => {
            put("index", Attr::Int(i64::from(*i)));
            if let Some(input) = g.inputs.get(*i as usize) {
                put("name", Attr::Str(input.name.to_string()));
                if input.scalar {
                    put("scalar", Attr::Bool(true));
                }
            }
            "input".into()
        }
        Prim::Full { value } => {
            put(
                "value",
                match value {
                    Scalar::F(x) => Attr::Float(*x),
                    Scalar::I(i) => Attr::Int(*i),
                },
            );
            "full".into()
        }
        Prim::Iota { axis } => {
            put("axis", Attr::Int(*axis as i64));
            "iota".into()
        }
        Prim::Literal(bytes) => {
            put("bytes", Attr::Str(bytes.iter().map(|b| format!("{b:02x}")).collect()));
            "literal".into()
        }
        Prim::Map(m) => m.name().to_owned(),
        Prim::Cast => "cast".into(),
        Prim::Broadcast { dims } => {
            put("dims", places(dims));
            "broadcast".into()
        }
        Prim::Reshape => "reshape".into(),
        Prim::Transpose { perm } => {
            put("perm", places(perm));
            "transpose".into()
        }
        Prim::Slice { start, step } => {
            put("start", list(start.iter().copied()));
            put("step", list(step.iter().copied()));
            "slice".into()
        }
        Prim::Windows { stride, dilation } => {
            put("stride", sizes(stride));
            put("dilation", sizes(dilation));
            "windows".into()
        }
        Prim::Pad { low, high } => {
            put("low", sizes(low));
            put("high", sizes(high));
            "pad".into()
        }
        Prim::Concat { axis } => {
            put("axis", Attr::Int(*axis as i64));
            "concat".into()
        }
        Prim::Reduce { kind, axes } => {
            put("axes", places(axes));
            format!("reduce_{}", kind.name())
        }
        Prim::ArgReduce { largest, axis } => {
            put("axis", Attr::Int(*axis as i64));
            (if *largest { "argmax" } else { "argmin" }).into()
        }
        Prim::Cumulate { kind, axis } => {
            put("axis", Attr::Int(*axis as i64));
            format!("cumulate_{}", kind.name())
        }
        Prim::Dot { accum, steps, pairs } => {
            put("accum", Attr::Str(accum.name().into()));
            match steps {
                Steps::All => {}
                Steps::To => put("causal", Attr::Bool(true)),
                Steps::From => put("from_row", Attr::Bool(true)),
            }
            if *pairs {
                put("pairs", Attr::Bool(true));
            }
            "dot".into()
        }
        Prim::DynamicSlice { sizes: s } => {
            put("sizes", sizes(s));
            "dynamic_slice".into()
        }
        Prim::DynamicUpdate => "dynamic_update".into(),
        Prim::UpdateSlice { start, step } => {
            put("start", list(start.iter().copied()));
            put("step", list(step.iter().copied()));
            "update_slice".into()
        }
        Prim::Take { axis } => {
            put("axis", Attr::Int(*axis as i64));
            "take".into()
        }
        Prim::Gather => "gather".into(),
        Prim::Scatter { add } => {
            put("add", Attr::Bool(*add));
            "scatter".into()
        }
        Prim::TakeAlong { axis } => {
            put("axis", Attr::Int(*axis as i64));
            "take_along".into()
        }
        Prim::ScatterAddAlong { axis } => {
            put("axis", Attr::Int(*axis as i64));
            "scatter_add_along".into()
        }
        Prim::Sort { axis, descending } | Prim::ArgSort { axis, descending } => {
            put("axis", Attr::Int(*axis as i64));
            put("descending", Attr::Bool(*descending));
            (if matches!(n.prim, Prim::Sort { .. }) { "sort" } else { "argsort" }).into()
        }
        Prim::Part { imag } => (if *imag { "imag" } else { "real" }).into(),
        Prim::Complex => "complex".into(),
        Prim::Fft(f) => {
            put("axis", Attr::Int(f.axis as i64));
            put("to", Attr::Int(f.to as i64));
            put("points", Attr::Int(f.points as i64));
            put("scale", Attr::Float(f.scale));
            f.kind.name().into()
        }
        Prim::Check(check) => {
            put("of", Attr::Str(check.name().into()));
            "check".into()
        }
        Prim::RandomBits => "random_bits".into(),
        Prim::Layout => "layout".into(),
        Prim::Rows { axis, from } => {
            put("axis", Attr::Int(*axis as i64));
            put("from", sizes(from));
            "rows".into()
        }
        Prim::Collective(c) => {
            let (name, attrs) = collective_attrs(c);
            attrs.into_iter().for_each(|(key, value)| put(key, value));
            name.into()
        }
        Prim::Exchange(e) => {
            put("what", Attr::Str(e.name.to_string()));
            put("tag", Attr::Int(i64::from(e.tag)));
            if e.batch != e.tag {
                put("batch", Attr::Int(i64::from(e.batch)));
            }
            put("to", transfers(&e.sends));
            put("from", transfers(&e.receives));
            "exchange".into()
        }
        Prim::Quantize { format } | Prim::Dequantize { format } | Prim::BlockDot { format } => {
            put("format", Attr::Str(format.name().into()));
            let name = match n.prim {
                Prim::Quantize { .. } => "quantize",
                Prim::Dequantize { .. } => "dequantize",
                _ => "block_dot",
            };
            name.into()
        }
        Prim::Scan { body, carry, sequences, trips } => {
            put("carry", Attr::Int(*carry as i64));
            put("sequences", Attr::Int(*sequences as i64));
            put("trips", Attr::Int(*trips as i64));
            regions.extend(g.bodies.get(*body as usize).map(|b| vec![to_op(b)]));
            "scan".into()
        }
        Prim::Get { index } => {
            put("index", Attr::Int(*index as i64));
            "get".into()
        }
    };
    if n.policy != Policy::Deterministic {
        put("policy", Attr::Str(n.policy.name().into()));
    }
    if let Some(Reason::Memory(number)) = n.origin.reason {
        put("again", Attr::Int(i64::from(number)));
    }
    if let Some(kernel) = n.origin.kernel {
        put("kernel", Attr::Int(i64::from(kernel)));
    }
    let types =
        if n.results.is_empty() { vec![n.ty.to_string()] } else { n.results.iter().map(NodeType::to_string).collect() };
    Op {
        results: vec![id.0.to_string()],
        name: format!("{PREFIX}{name}"),
        operands: n.operands.iter().map(|o| o.0.to_string()).collect(),
        attrs: a,
        regions,
        types,
        at: 0,
    }
}

/// Reads a graph. The text may be any bytes; what comes back still needs the verifier.
pub fn parse(source: &str) -> Result<Graph, TextError> {
    let ops = text::parse(source)?;
    match ops.as_slice() {
        [op] => from_op(op),
        _ => Err(TextError {
            at: 0,
            message: format!("one `tessera.graph` is expected, {} operations stand here", ops.len()),
        }),
    }
}

fn from_op(op: &Op) -> Result<Graph, TextError> {
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
        let node = read_node(&mut g, inner, operands)?;
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

/// A list of numbers that are not negative.
fn naturals(op: &Op, key: &str) -> Result<Vec<u64>, TextError> {
    let natural = |n| u64::try_from(n).map_err(|_| op.error(format!("`{key}` holds a negative number")));
    op.ints(key)?.into_iter().map(natural).collect()
}

fn read_node(g: &mut Graph, op: &Op, operands: Vec<NodeId>) -> Result<Node, TextError> {
    let types = op.types.iter().map(|t| read_type(op, t)).collect::<Result<Vec<_>, _>>()?;
    let ty = types.first().cloned().ok_or_else(|| op.error("the type of the result is missing"))?;
    let name =
        op.name.strip_prefix(PREFIX).ok_or_else(|| op.error(format!("operations of a graph begin with `{PREFIX}`")))?;
    let axis = || op.index("axis");
    let list = |key: &str| -> Result<Vec<usize>, TextError> {
        Ok(naturals(op, key)?.into_iter().map(|n| n as usize).collect())
    };
    let sizes = |key: &str| naturals(op, key);
    let prim = match name {
        "input" => {
            let index = op.index("index")?;
            if index != g.inputs.len() {
                return Err(op.error(format!("inputs are numbered in order; {} is expected", g.inputs.len())));
            }
            let scalar = op.bool("scalar").unwrap_or(false);
            g.inputs.push(Input { name: op.str("name").unwrap_or("").into(), ty: ty.clone(), scalar });
            Prim::Input(index as u32)
        }
        "full" => match op.attr("value") {
            Some(Attr::Int(n)) if !ty.dtype.is_float() => Prim::Full { value: Scalar::I(*n) },
            Some(Attr::Int(n)) => Prim::Full { value: Scalar::F(*n as f64) },
            Some(Attr::Float(x)) => Prim::Full { value: Scalar::F(*x) },
            _ => return Err(op.error("the attribute `value` must be a number")),
        },
        "iota" => Prim::Iota { axis: axis()? },
        "literal" => {
            let text = op.str("bytes")?;
            let byte = |i: usize| text.get(i..i + 2).and_then(|h| u8::from_str_radix(h, 16).ok());
            let bytes: Option<Vec<u8>> = (0..text.len()).step_by(2).map(byte).collect();
            Prim::Literal(Arc::from(bytes.ok_or_else(|| op.error("`bytes` must be pairs of hexadecimal digits"))?))
        }
        "cast" => Prim::Cast,
        "broadcast" => Prim::Broadcast { dims: list("dims")? },
        "reshape" => Prim::Reshape,
        "transpose" => Prim::Transpose { perm: list("perm")? },
        "slice" => Prim::Slice { start: op.ints("start")?, step: op.ints("step")? },
        "update_slice" => Prim::UpdateSlice { start: op.ints("start")?, step: op.ints("step")? },
        "windows" => Prim::Windows { stride: sizes("stride")?, dilation: sizes("dilation")? },
        "pad" => Prim::Pad { low: sizes("low")?, high: sizes("high")? },
        "concat" => Prim::Concat { axis: axis()? },
        "argmax" | "argmin" => Prim::ArgReduce { largest: name == "argmax", axis: axis()? },
        "dot" => {
            let accum = DType::parse(op.str("accum")?).ok_or_else(|| op.error("`accum` is no dtype"))?;
            let flag = |name: &str| Ok(op.attr(name).is_some() && op.bool(name)?);
            let steps = match (flag("causal")?, flag("from_row")?) {
                (false, false) => Steps::All,
                (true, false) => Steps::To,
                (false, true) => Steps::From,
                (true, true) => return Err(op.error("a row takes the steps up to its own, or from it on")),
            };
            Prim::Dot { accum, steps, pairs: flag("pairs")? }
        }
        "dynamic_slice" => Prim::DynamicSlice { sizes: sizes("sizes")? },
        "dynamic_update" => Prim::DynamicUpdate,
        "take" => Prim::Take { axis: axis()? },
        "gather" => Prim::Gather,
        "scatter" => Prim::Scatter { add: op.bool("add")? },
        "take_along" => Prim::TakeAlong { axis: axis()? },
        "scatter_add_along" => Prim::ScatterAddAlong { axis: axis()? },
        "sort" => Prim::Sort { axis: axis()?, descending: op.bool("descending")? },
        "argsort" => Prim::ArgSort { axis: axis()?, descending: op.bool("descending")? },
        "real" | "imag" => Prim::Part { imag: name == "imag" },
        "complex" => Prim::Complex,
        "fft" | "ifft" | "rfft" | "irfft" => Prim::Fft(Fft {
            kind: FftKind::parse(name).unwrap_or(FftKind::Forward),
            axis: axis()?,
            to: op.index("to")?,
            points: op.index("points")? as u64,
            scale: match op.attr("scale") {
                Some(Attr::Float(x)) => *x,
                Some(Attr::Int(n)) => *n as f64,
                _ => return Err(op.error("the attribute `scale` must be a number")),
            },
        }),
        "check" => Prim::Check(Check::parse(op.str("of")?).ok_or_else(|| op.error("`of` names no check"))?),
        "random_bits" => Prim::RandomBits,
        "layout" => Prim::Layout,
        "rows" => Prim::Rows { axis: axis()?, from: sizes("from")? },
        "rank" | "all_reduce" | "all_gather" | "reduce_scatter" | "all_to_all" | "permute" => {
            Prim::Collective(Arc::new(read_collective(name, op)?))
        }
        "exchange" => {
            let number = |of: &str| u32::try_from(op.index(of)?).map_err(|_| op.error(format!("`{of}` is too large")));
            let tag = number("tag")?;
            Prim::Exchange(Arc::new(Exchange {
                name: op.str("what")?.into(),
                tag,
                batch: if op.attr("batch").is_some() { number("batch")? } else { tag },
                sends: read_transfers(op, "to")?,
                receives: read_transfers(op, "from")?,
            }))
        }
        "quantize" | "dequantize" | "block_dot" => {
            let found = Blocks::parse(op.str("format")?);
            let format = found.ok_or_else(|| op.error("`format` is no block format"))?;
            match name {
                "quantize" => Prim::Quantize { format },
                "dequantize" => Prim::Dequantize { format },
                _ => Prim::BlockDot { format },
            }
        }
        "scan" => {
            let [body] = op.regions.as_slice() else { return Err(op.error("a scan has one region")) };
            let [body] = body.as_slice() else { return Err(op.error("the region of a scan holds one graph")) };
            g.bodies.push(from_op(body)?);
            Prim::Scan {
                body: g.bodies.len() as u32 - 1,
                carry: op.index("carry")?,
                sequences: op.index("sequences")?,
                trips: op.index("trips")? as u64,
            }
        }
        "get" => Prim::Get { index: op.index("index")? },
        _ => match (name.strip_prefix("reduce_"), name.strip_prefix("cumulate_")) {
            (Some(kind), _) if Reduction::parse(kind).is_some() => {
                Prim::Reduce { kind: Reduction::parse(kind).unwrap_or(Reduction::Sum), axes: list("axes")? }
            }
            (_, Some(kind)) if Reduction::parse(kind).is_some() => {
                Prim::Cumulate { kind: Reduction::parse(kind).unwrap_or(Reduction::Sum), axis: axis()? }
            }
            _ => Prim::Map(MapOp::parse(name).ok_or_else(|| op.error("no operation of this name exists"))?),
        },
    };
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
