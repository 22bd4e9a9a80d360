//! `--check-nan`: the operator that made the first NaN or infinity.
//!
//! Everything that a kernel leaves in memory becomes an output of the graph and is looked at. The
//! kernel that left something not finite is then gone through node by node: its values are made
//! again by the reference kernels, which give the same bits.

use std::collections::{BTreeMap, BTreeSet};
use tessera_base::{Code, DType, Diagnostic};
use tessera_graph::fuse::{Limits, partition};
use tessera_ir::graph::{Graph, Node, NodeId, NodeType, Reason};
use tessera_ir::nonfinite::{self, Found, Origin};
use tessera_ir::prim::row;
use tessera_ops::convert;
use tessera_ops::prim::{Prim, Scalar};
use tessera_runtime::fault::Fault;
use tessera_runtime::tensor::Tensor;

/// A graph that gives away what its kernels leave.
pub struct Watched {
    /// How many outputs the program asked for; the others come behind them.
    pub outputs: usize,
}

/// Adds what the kernels of a graph leave in memory to its outputs.
pub fn watch(graph: &mut Graph) -> Watched {
    let watched = Watched { outputs: graph.outputs.len() };
    let mut left: BTreeSet<NodeId> =
        partition(graph, &Limits::default()).groups.iter().flat_map(|g| g.roots.clone()).collect();
    left.extend(graph.ids().filter(|&id| matches!(graph.node(id).prim, Prim::Get { .. })));
    left.retain(|&id| {
        let n = graph.node(id);
        n.results.is_empty() && nonfinite::may_be(n.ty.dtype) && !graph.outputs.contains(&id)
    });
    graph.outputs.extend(left);
    watched
}

impl Watched {
    /// The diagnostic for the first kernel that made something not finite.
    ///
    /// # Errors
    /// What the device says that has the outputs.
    pub fn first(&self, graph: &Graph, inputs: &[&[u8]], outputs: &[Tensor]) -> Result<Option<Diagnostic>, Fault> {
        let mut values: BTreeMap<NodeId, &[u8]> = BTreeMap::new();
        for (&id, t) in graph.outputs.iter().zip(outputs) {
            values.insert(id, t.host()?);
        }
        let bad = |(&id, &bytes): (&NodeId, &&[u8])| nonfinite::look(graph.ty(id).dtype, bytes).map(|_| id);
        let origin = values.iter().filter_map(bad).find_map(|id| nonfinite::origin(graph, inputs, &values, id));
        Ok(origin.map(|o| told(&o)))
    }
}

fn told(o: &Origin) -> Diagnostic {
    let name = name(&o.node);
    let made = match (o.found.nans > 0, o.found.infinities > 0) {
        (true, false) => "NaN",
        (false, _) => "infinity",
        (true, true) => "NaN and infinity",
    };
    let (message, label) = match &o.node.origin.reason {
        Some(Reason::Derivative | Reason::Again(_)) => {
            (format!("the derivative gives {made}"), format!("`{name}` in the derivative of this, "))
        }
        Some(Reason::Expansion(of)) => (format!("`{name}` in `{of}` gives {made}"), String::new()),
        _ => (format!("`{name}` gives {made}"), String::new()),
    };
    let label = format!("{label}{}", counted(&o.node.ty, &o.found));
    let mut d = Diagnostic::new(Code::E0716, o.node.origin.span, message).here(label);
    for (i, (ty, bytes)) in o.operands.iter().enumerate() {
        // `x * x` reads one tensor twice.
        if !o.node.operands[..i].contains(&o.node.operands[i]) {
            d = d.note(operand(o, i, ty, bytes));
        }
    }
    if !o.passes.is_empty() {
        let passes: Vec<String> = o.passes.iter().map(u64::to_string).collect();
        d = d.note(format!("in pass {} of the loop, counted from 0", passes.join(", ")));
    }
    match help(o) {
        Some(help) => d.help(help),
        None => d,
    }
}

/// The type of a result and what of it is not finite.
fn counted(ty: &NodeType, found: &Found) -> String {
    let total = ty.elems().unwrap_or(0);
    let parts = [(found.nans, "NaN"), (found.infinities, "infinite")].into_iter().filter(|p| p.0 > 0);
    let counts: Vec<String> = parts.map(|(n, what)| format!("{n} {what}")).collect();
    match ty.shape.is_empty() {
        true => shape(ty),
        false => format!(
            "{}: {} of {total}, the first at {}",
            shape(ty),
            counts.join(", "),
            element_index(ty, found.first())
        ),
    }
}

fn shape(ty: &NodeType) -> String {
    let dims = ty.shape.iter().map(u64::to_string);
    format!("Tensor[{}]", dims.chain([ty.dtype.name().into()]).collect::<Vec<_>>().join(", "))
}

/// A row-major position as indices.
fn element_index(ty: &NodeType, mut at: usize) -> String {
    let mut indices: Vec<String> = vec![];
    for &d in ty.shape.iter().rev() {
        let d = usize::try_from(d).unwrap_or(1).max(1);
        indices.push((at % d).to_string());
        at /= d;
    }
    indices.reverse();
    format!("[{}]", indices.join(", "))
}

/// What operand `i` was: there, or from where to where.
fn operand(o: &Origin, i: usize, ty: &NodeType, bytes: &[u8]) -> String {
    let one = o.node.operands.iter().all(|id| *id == o.node.operands[0]);
    let which = if one { "its operand".to_owned() } else { format!("its operand {}", i + 1) };
    let (which, ty_text) = (which, shape(ty));
    if let Prim::Map(_) | Prim::Cast = o.node.prim {
        let value = convert::load(ty.dtype, bytes, o.at).map_or(String::new(), |x| number(ty.dtype, x));
        return match ty.shape.is_empty() {
            true => format!("{which} is {value}"),
            false => format!("{which}, {ty_text}, is {value} at {}", element_index(ty, o.at)),
        };
    }
    let wide = if nonfinite::may_be(ty.dtype) && !ty.dtype.is_complex() { DType::F64 } else { ty.dtype };
    if wide != DType::F64 {
        return format!("{which} is a {ty_text}");
    }
    let numbers = convert::cast(ty.dtype, DType::F64, bytes);
    let numbers = numbers.as_chunks::<8>().0.iter().map(|b| f64::from_le_bytes(*b)).filter(|x| x.is_finite());
    let (low, high) = numbers.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), x| (l.min(x), h.max(x)));
    let other = nonfinite::look(ty.dtype, bytes).map_or(String::new(), |f| format!(" ({})", counted_others(&f)));
    match low <= high {
        true => format!(
            "{which}, {ty_text}, lies between {} and {}{other}",
            number(ty.dtype, Scalar::F(low)),
            number(ty.dtype, Scalar::F(high))
        ),
        false => format!("{which}, {ty_text}, has no finite element{other}"),
    }
}

fn counted_others(f: &Found) -> String {
    let parts = [(f.nans, "NaN"), (f.infinities, "infinite")].into_iter().filter(|p| p.0 > 0);
    parts.map(|(n, what)| format!("{n} {what}")).collect::<Vec<_>>().join(", ")
}

/// The fewest digits that tell a value from its neighbours.
fn number(dtype: DType, value: Scalar) -> String {
    match value {
        Scalar::F(x) if dtype == DType::F64 => format!("{x:?}"),
        Scalar::F(x) => format!("{:?}", x as f32),
        Scalar::I(n) => n.to_string(),
    }
}

fn name(n: &Node) -> String {
    match &n.prim {
        Prim::Cumulate { kind, .. } => kind.name().into(),
        Prim::Dot { .. } | Prim::BlockDot { .. } => "matmul".into(),
        Prim::Cast => format!("to({})", n.ty.dtype.name()),
        Prim::Scatter { .. } | Prim::ScatterAddAlong { .. } => "scatter_add".into(),
        other => row(other).word().into_owned(),
    }
}

/// What usually helps.
fn help(o: &Origin) -> Option<String> {
    let narrow = matches!(o.node.ty.dtype, DType::F16 | DType::F8E4M3 | DType::F8E5M2);
    let nan = o.found.nans > 0;
    if let Some(Reason::Derivative) = o.node.origin.reason
        && matches!(&o.node.prim, Prim::Map(op) if ["div", "reciprocal", "rsqrt", "log"].contains(&op.name()))
    {
        return Some("there is no finite derivative at this point: keep what goes in away from it".into());
    }
    Some(match &o.node.prim {
        Prim::Map(op) => match op.name() {
            "log" | "log2" | "log10" => "keep the operand above 0: `op.log(op.maximum(x, 1e-30))`".into(),
            "div" | "reciprocal" => "keep the divisor away from 0: `x / (y + eps)`".into(),
            "rsqrt" => "keep the operand above 0: `op.rsqrt(x + eps)`".into(),
            "sqrt" | "pow" if nan => "keep the operand from 0 on: `op.maximum(x, 0)`".into(),
            "exp" | "exp2" => {
                "subtract the largest element first, as `op.softmax`, `op.log_softmax` and `op.logsumexp` do".into()
            }
            _ => return overflow(narrow, o),
        },
        _ => return overflow(narrow, o),
    })
}

fn overflow(narrow: bool, o: &Origin) -> Option<String> {
    let infinite = o.found.first_infinity.is_some() && o.found.nans == 0;
    (narrow && infinite).then(|| {
        let largest = if o.node.ty.dtype == DType::F8E5M2 { "57344" } else { "65504" };
        format!("{} ends at {largest}: scale the values down, or use bf16 or f32", o.node.ty.dtype.name())
    })
}
