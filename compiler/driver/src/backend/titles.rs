//! What kernels are called in profiles: what they compute, with its sizes. Equal work has equal titles.

use std::collections::BTreeMap;
use std::sync::Arc;
use tessera_abi::plan::{About, Cost, Counts, Held, Plan, Step, StepOrigin};
use tessera_graph::fuse::unfused;
use tessera_graph::place_buffers::lives;
use tessera_ir::graph::{Graph, NodeId, Reason};
use tessera_ir::group::{Group, GroupKind, Partition};
use tessera_ir::prim::row;
use tessera_ops::prim::Prim;

/// Operations of a fused kernel that are named; of more the number.
const NAMED: usize = 4;

/// The title of a group: `MatMul[128x128x64]`, `FusedOp[FlashAttn]`, `AllReduce[dp]`, `Exp[1024]`.
pub fn of(graph: &Graph, group: &Group) -> String {
    let root = group.roots[0];
    match (&group.kind, &graph.node(root).prim) {
        (GroupKind::Attention, _) => "FusedOp[FlashAttn]".into(),
        (_, Prim::Exchange(e)) => exchanged(&e.name),
        (_, Prim::Scan { until: true, trips: 1, .. }) => "Cond".into(),
        (_, Prim::Scan { until: true, .. }) => "While".into(),
        (_, Prim::Scan { trips, .. }) => format!("Loop[{trips}]"),
        _ => computed(graph, group),
    }
}

/// `all_gather tp dp` as `AllGather[tp,dp]`.
fn exchanged(name: &str) -> String {
    let mut words = name.split(' ');
    let kind = camel(words.next().unwrap_or_default());
    let axes: Vec<&str> = words.collect();
    if axes.is_empty() { kind } else { format!("{kind}[{}]", axes.join(",")) }
}

fn computed(graph: &Graph, group: &Group) -> String {
    let mut work: Vec<NodeId> = group.members.iter().copied().filter(|&id| !is_view(graph, id)).collect();
    // Views and constants that are computed alone are what their kernel does.
    if work.is_empty() {
        work.push(group.roots[0]);
    }
    let windows = group.members.iter().any(|&m| matches!(graph.node(m).prim, Prim::Windows { .. }));
    let title = |&id: &NodeId| match (&graph.node(id).prim, &graph.node(id).origin.reason) {
        (Prim::Dot { .. }, _) => product(graph, id, if windows { "Conv" } else { "MatMul" }),
        // Several operations of one operator have its name.
        (_, Some(Reason::Expansion(of))) => camel(of),
        (prim, _) => camel(&row(prim).word()),
    };
    // What the program does not call is named where there is nothing else.
    let is_added = |id: &NodeId| {
        let reason = &graph.node(*id).origin.reason;
        let is_aside = matches!(reason, Some(Reason::Pass(_) | Reason::Widen | Reason::WeakScalar | Reason::Broadcast));
        is_aside && !matches!(graph.node(*id).prim, Prim::Dot { .. })
    };
    if !work.iter().all(is_added) {
        work.retain(|id| !is_added(id));
    }
    // Each once, those of products first: what a product is fused with says less than the product.
    let is_product = |id: &&NodeId| matches!(graph.node(**id).prim, Prim::Dot { .. });
    let mut names: Vec<String> = vec![];
    let (products, others): (Vec<&NodeId>, Vec<&NodeId>) = work.iter().partition(is_product);
    for name in products.iter().chain(&others).map(|id| title(id)) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    match &names[..] {
        [one] if !products.is_empty() => one.clone(),
        [one] if graph.ty(group.roots[0]).shape.is_empty() => one.clone(),
        [one] => format!("{one}[{}]", sizes(&graph.ty(group.roots[0]).shape)),
        _ => {
            let more = names.len().saturating_sub(NAMED);
            names.truncate(NAMED);
            names.extend((more > 0).then(|| more.to_string()));
            format!("FusedOp[{}]", names.join("+"))
        }
    }
}

/// Whether a node is no work.
fn is_view(graph: &Graph, id: NodeId) -> bool {
    !row(&graph.node(id).prim).flags().work
}

/// Rows, columns and steps of a product; before them how many products there are.
fn product(graph: &Graph, id: NodeId, name: &str) -> String {
    let factors = graph.node(id).operands.iter().map(|&o| &graph.ty(o).shape[..]);
    let [Some([batch @ .., m, k]), Some(right)] = [0, 1].map(|i| factors.clone().nth(i)) else {
        return name.into();
    };
    let n: u64 = right.get(batch.len() + 1..).unwrap_or_default().iter().product();
    match batch.iter().product() {
        1u64 => format!("{name}[{m}x{n}x{k}]"),
        batch => format!("{name}[{batch}*{m}x{n}x{k}]"),
    }
}

fn sizes(shape: &[u64]) -> String {
    shape.iter().map(u64::to_string).collect::<Vec<_>>().join("x")
}

/// `all_gather` as `AllGather`.
fn camel(word: &str) -> String {
    let part = |part: &str| {
        let mut letters = part.chars();
        letters.next().map(|first| first.to_ascii_uppercase().to_string() + letters.as_str()).unwrap_or_default()
    };
    word.split(['_', '.']).map(part).collect()
}

/// What the steps of a group are; `counts` are what its kernels cost, where it has some.
pub fn of_group(graph: &Graph, group: &Group, counts: Option<Counts>, steps: &[Step]) -> Vec<Arc<About>> {
    let moved = matches!(graph.node(group.roots[0]).prim, Prim::Exchange(_));
    // The bytes of the values, however they travel.
    let bytes = group.roots.iter().map(|&r| graph.ty(r).bytes().unwrap_or(u64::MAX));
    let values = Counts { bytes_written: bytes.fold(0, u64::saturating_add), ..Counts::default() };
    about(steps, &of(graph, group), counts.or(moved.then_some(values)), moved)
}

/// Adds to the kernels of a plan what only a profile wants: which operations each has, why values go through memory, and
/// which are there when. `first` is the first step of each group.
pub fn add_facts(graph: &Graph, partition: &Partition, first: &[usize], plan: &mut Plan) {
    let groups = &partition.groups;
    let mut apart: BTreeMap<usize, Vec<Arc<str>>> = BTreeMap::new();
    for a in unfused(graph, partition) {
        let from = groups.get(a.from).map_or_else(String::new, |group| of(graph, group));
        apart.entry(a.to).or_default().push(format!("what {from} gives: {}", a.why).into());
    }
    let end = |group: usize| first.get(group + 1).copied().unwrap_or(plan.steps.len());
    for (at, (group, &begin)) in groups.iter().zip(first).enumerate() {
        let Some(last) = end(at).checked_sub(1).filter(|last| *last >= begin) else { continue };
        let Some(about) = plan.about.get_mut(last).map(Arc::make_mut) else { continue };
        about.fused = group.members.iter().filter(|&&m| !is_view(graph, m)).map(|&m| operation(graph, m)).collect();
        about.apart = apart.remove(&at).unwrap_or_default();
    }
    let step = |group: usize| first.get(group).map_or(0, |&s| s as u32);
    for life in lives(graph, partition).unwrap_or_default() {
        let (from, to) = (step(life.from), end(life.to).saturating_sub(1) as u32);
        let span = graph.node(life.id).origin.span;
        let origin = StepOrigin { item: span.item.0, start: span.start, end: span.end };
        plan.held.push(Held { from, to, bytes: life.bytes, origin });
    }
}

/// An operation, with why it is there where the program does not spell it out.
fn operation(graph: &Graph, id: NodeId) -> Arc<str> {
    let node = graph.node(id);
    let word = row(&node.prim).word();
    match &node.origin.reason {
        Some(Reason::Expansion(of)) if **of != *word => format!("{word} of {of}").into(),
        Some(Reason::Derivative) => format!("{word} of a derivative").into(),
        Some(Reason::Pass(pass)) => format!("{word} by the pass {pass}").into(),
        _ => word.as_ref().into(),
    }
}

/// What the steps of a group are; the last one has what they cost.
pub fn about(steps: &[Step], title: &str, counts: Option<Counts>, between_devices: bool) -> Vec<Arc<About>> {
    let names: Vec<Arc<str>> = steps.iter().filter_map(kernel).cloned().collect();
    let last = steps.iter().rposition(|s| kernel(s).is_some() || between_devices);
    let one = |(at, step): (usize, &Step)| {
        let cost = counts.filter(|_| Some(at) == last);
        let title: Arc<str> = match step {
            Step::Copy { bytes, .. } => format!("Copy[{bytes}]").into(),
            // Kernels that prepare a product's factors, or put the parts of a sum together.
            _ if Some(at) != last && last.is_some() => {
                match kernel(step).and_then(|n| n.trim_end_matches(" again").rsplit_once('_')) {
                    Some((_, part)) => format!("{}[{title}]", camel(part)).into(),
                    None => title.into(),
                }
            }
            _ => title.into(),
        };
        let cost = cost.map(|counts| Cost { names: names.clone(), counts, between_devices });
        Arc::new(About { title, cost, ..About::default() })
    };
    steps.iter().enumerate().map(one).collect()
}

fn kernel(step: &Step) -> Option<&Arc<str>> {
    match step {
        Step::Kernel { kernel, .. } => Some(&kernel.name),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exchanges_have_their_axes() {
        assert_eq!(exchanged("all_reduce dp"), "AllReduce[dp]");
        assert_eq!(exchanged("all_to_all tp pp"), "AllToAll[tp,pp]");
        assert_eq!(exchanged("gather"), "Gather");
    }
}
