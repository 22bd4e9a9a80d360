//! What would need less: changes of a call, each planned as the call itself was.

use super::calls::Function;
use super::changed::{checkpointed, loops, may_be_split};
use super::needs::{Needs, needs};
use super::{Checker, Planned};
use tessera_base::{Size, SizeVar};
use tessera_core::budget::{Bound, What};
use tessera_core::ty::Ty;
use tessera_ir::graph::{Graph, NodeId};
use tessera_ops::prim::Prim;
use tessera_runtime::fault::human_bytes;

/// Operations of a graph, times devices, beyond which few changes are planned.
const LARGE: u64 = 50_000;
/// Changes that are planned, and of large graphs.
const PLANS: usize = 24;
const PLANS_OF_LARGE: usize = 3;
/// Inputs that are split, the largest first.
const INPUTS: usize = 4;
/// How often a size is halved.
const HALVED: u32 = 10;
/// Changes that are told.
const TOLD: usize = 3;

/// A change, and what the call needs with it.
pub struct Fix {
    pub title: String,
    pub needs: Needs,
}

/// What was tried.
#[derive(Default)]
pub struct Tried {
    /// With which all bounds of the budget hold, those first that change least.
    pub fit: Vec<Fix>,
    /// The one that needs least of what is bounded, where none fits.
    pub least: Option<Fix>,
}

/// Plans changes of a call that does not keep a bound.
pub fn tried(checker: &Checker, f: &Function, bound: &Bound, p: &Planned) -> Tried {
    let devices = p.needs.mesh.as_ref().map_or(1, |m| m.devices());
    let large = p.graph.nodes.len() as u64 * devices > LARGE;
    let now = p.needs.of(&bound.what).map_or(u64::MAX, |n| n.amount);
    let mut tries = Tries { f, bound, now, left: if large { PLANS_OF_LARGE } else { PLANS }, out: Tried::default() };
    if bound.what == What::Memory && checker.backend.memory().is_none() {
        tries.again(checker, p);
    }
    // What is made of a function has the arguments of that.
    if p.call.made.is_none() {
        if bound.what == What::Memory {
            tries.checkpoint(checker, p);
        }
        tries.split(checker, p);
        if tries.out.fit.len() < TOLD {
            tries.smaller(checker, p);
        }
    }
    tries.out.fit.truncate(TOLD);
    tries.out
}

struct Tries<'a> {
    f: &'a Function,
    bound: &'a Bound,
    /// What the call needs of that.
    now: u64,
    left: usize,
    out: Tried,
}

impl Tries<'_> {
    /// Whether another change may be planned.
    fn next(&mut self) -> bool {
        let more = self.left > 0;
        self.left = self.left.saturating_sub(1);
        more
    }

    /// Takes what a change needs; whether it fits.
    fn take(&mut self, title: String, needs: Needs) -> bool {
        let amount = |needs: &Needs| needs.of(&self.bound.what).map_or(u64::MAX, |n| n.amount);
        let holds = |b: &Bound| needs.of(&b.what).is_none_or(|n| n.amount <= b.most);
        let fits = self.f.budget.bounds.iter().all(holds);
        let fix = Fix { title, needs };
        // What makes it no less is no news.
        if !fits && amount(&fix.needs) >= self.now {
            return false;
        }
        if fits {
            self.out.fit.push(fix);
        } else if self.out.least.as_ref().is_none_or(|least| amount(&fix.needs) < amount(&least.needs)) {
            self.out.least = Some(fix);
        }
        fits
    }

    fn plan(&mut self, checker: &Checker, graph: &Graph, title: String) -> bool {
        match checker.needs(graph) {
            Ok(needs) => self.take(title, needs),
            Err(_) => false,
        }
    }

    /// Values are computed again, as `--memory` does.
    fn again(&mut self, checker: &Checker, p: &Planned) {
        if !self.next() {
            return;
        }
        let Ok(found) = needs(&checker.backend, checker.clock.as_ref(), &p.graph, Some(self.bound.most)) else {
            return;
        };
        if found.again > 0 {
            let (most, again) = (written(&What::Memory, self.bound.most), found.again);
            let what = if again == 1 { "one operation".into() } else { format!("{again} operations") };
            let title = format!("`--memory {most}`, which computes {what} again");
            self.take(title, found);
        }
    }

    /// The body of a loop computes its values again for its derivative.
    fn checkpoint(&mut self, checker: &Checker, p: &Planned) {
        for body in loops(checker, self.f) {
            if !self.next() {
                return;
            }
            if let Some(graph) = checkpointed(checker, self.f, &p.call.known, &body) {
                let title = format!("`op.scan(autodiff.checkpoint({}), …)`", body.1);
                self.plan(checker, &graph, title);
            }
        }
    }

    /// An argument lies divided over an axis along which it is whole.
    fn split(&mut self, checker: &Checker, p: &Planned) {
        let Some(mesh) = p.needs.mesh.clone() else { return };
        let mut inputs: Vec<usize> = (0..p.graph.inputs.len()).filter(|&i| !p.graph.inputs[i].scalar).collect();
        inputs.sort_by_key(|&i| std::cmp::Reverse(p.graph.inputs[i].ty.bytes().unwrap_or(u64::MAX)));
        for i in inputs.into_iter().take(INPUTS) {
            let input = &p.graph.inputs[i];
            let own = &input.ty.sharding;
            let whole = |a: &&(String, u64)| a.1 > 1 && own.dim_of(&a.0).is_none() && own.partial.is_empty();
            for (axis, parts) in mesh.axes.iter().filter(whole) {
                // A dim that no axis splits yet, and that has a block for each device.
                let free = |d: &usize| own.axes(*d).is_empty() && input.ty.shape[*d] >= *parts;
                for dim in (0..input.ty.shape.len()).filter(free) {
                    if self.out.fit.len() >= TOLD || self.left == 0 {
                        return;
                    }
                    let split = (&*input.name, dim, &**axis);
                    if !may_be_split(checker, self.f, &p.asked, &p.call.known, split) {
                        continue;
                    }
                    self.next();
                    let graph = divided(&p.graph, i, dim, axis, &mesh);
                    let title = format!("split dim {dim} of `{}` over `{axis}`", input.name);
                    self.plan(checker, &graph, title);
                }
            }
        }
    }

    /// Half of a batch, and half of that, until it fits.
    fn smaller(&mut self, checker: &Checker, p: &Planned) {
        for var in batches(p) {
            let Some(&whole) = p.call.known.sizes.get(&var) else { continue };
            let mut n = whole;
            for _ in 0..HALVED {
                if n % 2 != 0 || n < 2 || !self.next() {
                    break;
                }
                n /= 2;
                let mut known = p.call.known.clone();
                known.sizes.insert(var.clone(), n);
                let Ok((graph, _)) = p.asked.call_known(checker.setup, &known) else { break };
                if self.plan(checker, &graph, format!("{}={n} in place of {whole}", var.name)) {
                    break;
                }
            }
        }
    }
}

/// The graph with another layout of an input.
fn divided(graph: &Graph, input: usize, dim: usize, axis: &str, mesh: &std::sync::Arc<tessera_base::Mesh>) -> Graph {
    let mut graph = graph.clone();
    let rank = graph.inputs[input].ty.shape.len();
    let own = graph.inputs[input].ty.sharding.clone().normal(rank);
    let mut dims = if own.dims.is_empty() { vec![vec![]; rank] } else { own.dims.clone() };
    dims[dim].push(axis.to_owned());
    let sharding = tessera_base::Sharding { dims, mesh: Some(mesh.clone()), ..own };
    graph.inputs[input].ty.sharding = sharding.clone();
    for id in graph.ids().collect::<Vec<NodeId>>() {
        if matches!(graph.node(id).prim, Prim::Input(n) if n as usize == input) {
            graph.nodes[id.0 as usize].ty.sharding = sharding.clone();
        }
    }
    graph
}

/// Sizes of the signature that are first dims of tensors and nothing else: how many rows there are.
fn batches(p: &Planned) -> Vec<SizeVar> {
    let (mut first, mut other): (Vec<SizeVar>, Vec<SizeVar>) = (vec![], vec![]);
    let mut dims = |shape: &[Size]| {
        for (i, size) in shape.iter().enumerate() {
            match size.as_var() {
                Some(v) if i == 0 && shape.len() > 1 => first.push(v.clone()),
                _ => other.extend(size.vars()),
            }
        }
    };
    for (_, ty) in p.asked.params() {
        match ty {
            Ty::Int(Some(size)) => dims(std::slice::from_ref(size)),
            ty => tessera_core::layouts::tensors(ty).iter().for_each(|t| dims(&t.shape)),
        }
    }
    let mut out: Vec<SizeVar> = first.into_iter().filter(|v| !other.contains(v)).collect();
    out.dedup();
    out
}

/// What a call needs of everything that a budget bounds: `memory 1.5 MiB, tp 64 B`.
pub fn amounts(bounds: &[Bound], needs: &Needs) -> String {
    let amount = |b: &Bound| {
        let over = if b.what.hidden_axis().is_some() { "over " } else { "" };
        Some(format!("{over}{} {}", b.what.name(), amount(&b.what, needs.of(&b.what)?.amount)))
    };
    bounds.iter().filter_map(amount).collect::<Vec<_>>().join(", ")
}

/// Bytes or a time, for people.
pub fn amount(what: &What, n: u64) -> String {
    match what {
        What::Step => time(n),
        _ => human_bytes(n),
    }
}

fn time(nanos: u64) -> String {
    match nanos {
        0..1_000 => format!("{nanos} ns"),
        1_000..1_000_000 => format!("{:.1} us", nanos as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.2} ms", nanos as f64 / 1e6),
        _ => format!("{:.2} s", nanos as f64 / 1e9),
    }
}

/// A bound as a program writes it, not less than `n`.
pub fn written(what: &What, n: u64) -> String {
    let units: &[(u64, &str)] = match what {
        What::Step => &[(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")],
        _ => &[(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")],
    };
    let least = if *what == What::Step { "ns" } else { "B" };
    // A round number as it is; else three digits and more of a unit.
    if let Some((size, unit)) = units.iter().find(|(size, _)| n > 0 && n.is_multiple_of(*size)) {
        return format!("{}{unit}", n / size);
    }
    match units.iter().find(|(size, _)| n >= 100 * size) {
        Some((size, unit)) => format!("{}{unit}", n.div_ceil(*size)),
        None => format!("{n}{least}"),
    }
}
