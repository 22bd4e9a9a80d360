//! Layouts of results from layouts of operands, as the type checker needs them.
//!
//! One mesh axis after the other; along an axis an operand is split over one of its dims,
//! partial under a monoid, or the same everywhere. Nothing is chosen: where a program would have
//! to move data for its next step, that is a [`Problem`], and the program says what to move.
//! Inside an operator (the maximum of a softmax over a split dim) partial values are completed.

use crate::links::links;
use crate::own_states::own_after;
use crate::unflatten_columns::unflatten_columns;
use std::sync::Arc;
use tessera_base::{Mesh, Monoid, Own, Sharding};
use tessera_ir::graph::{Graph, Node, NodeId};
use tessera_ir::links::{Link, first_of_sorted};
use tessera_ir::prim::{Site, Summand, row};
use tessera_ops::prim::{Prim, Reduction};

/// Why an operator does not take these layouts. Operands are inputs of the graph by number,
/// where the value comes from one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Problem {
    /// Two operands, or two dims, want the axis for different things.
    Conflict { axis: String },
    /// Operands split one dim over several axes, in different orders or each over its own: their
    /// blocks are not the same.
    Order { axis: String },
    /// One operand lies at one position of the axis alone, and another lies elsewhere.
    Apart { axis: String, at: u64 },
    /// The value is partial, and the operation needs the sum.
    Partial { axis: String, monoid: Monoid, input: Option<u32> },
    /// The operation needs a dim in full that is split.
    Whole { axis: String, dim: usize, input: Option<u32> },
    /// The devices of the axis do not divide both sizes.
    Divide { axis: String, parts: u64, from: u64, to: u64, input: Option<u32> },
    /// Operands lie on different meshes.
    Meshes(Arc<Mesh>, Arc<Mesh>),
}

/// What a value is along one axis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Same,
    Split(usize),
    Partial(Monoid),
}

fn state(s: &Sharding, axis: &str) -> State {
    match (s.dim_of(axis), s.partial_over(axis)) {
        (Some(d), _) => State::Split(d),
        (None, Some(m)) => State::Partial(m),
        (None, None) => State::Same,
    }
}

/// The mesh of the operands; None where all lie on one device. One that is known goes before the
/// names in a signature.
pub fn mesh_of<'a>(operands: impl IntoIterator<Item = &'a Sharding>) -> Result<Option<Arc<Mesh>>, Problem> {
    let mut found: Option<Arc<Mesh>> = None;
    for mesh in operands.into_iter().filter_map(|s| s.mesh.as_ref()) {
        found = Some(match found {
            None => mesh.clone(),
            Some(first) if first == *mesh => first,
            Some(first) if first.is_unknown() && mesh.is_unknown() => {
                let more = mesh.axes.iter().filter(|a| first.size(&a.0).is_none());
                Arc::new(Mesh { axes: first.axes.iter().chain(more).cloned().collect() })
            }
            Some(first) if first.is_unknown() => mesh.clone(),
            Some(first) if mesh.is_unknown() => first,
            Some(first) => return Err(Problem::Meshes(first, mesh.clone())),
        });
    }
    Ok(found)
}

/// The layouts of a graph's outputs, from those that its inputs state.
pub fn derive(g: &Graph) -> Result<Vec<Sharding>, Problem> {
    let g = &unflatten_columns(g);
    let known = nodes(g)?;
    Ok(g.outputs.iter().map(|o| known[o.0 as usize].clone().normal(g.ty(*o).shape.len())).collect())
}

/// The layouts of all nodes.
pub fn nodes(g: &Graph) -> Result<Vec<Sharding>, Problem> {
    let Some(mesh) = mesh_of(g.inputs.iter().map(|i| &i.ty.sharding))? else {
        return Ok(vec![Sharding::default(); g.nodes.len()]);
    };
    let mut known: Vec<Known> = Vec::with_capacity(g.nodes.len());
    for id in g.ids() {
        let node = g.node(id);
        let whole = |k: &&Known| k.layout.unfinished().is_none();
        if let (true, Some(keys)) = (only_few(g, id), node.operands.first().map(|o| &known[o.0 as usize]).filter(whole))
        {
            // What takes the first few sees to what it needs.
            known.push(Known { layout: keys.layout.clone(), stated: vec![] });
            continue;
        }
        known.push(match &node.prim {
            Prim::Input(n) => {
                let stated = g.inputs.get(*n as usize).map(|i| i.ty.sharding.clone()).unwrap_or_default();
                let partial = stated.partial.iter().map(|(_, axis)| (axis.clone(), *n)).collect();
                Known { layout: Sharding { mesh: Some(mesh.clone()), ..stated }, stated: partial }
            }
            _ => step(g, node, &mesh, &known)?,
        });
    }
    Ok(known.into_iter().map(|k| k.layout).collect())
}

/// Whether a node puts positions in order of which only the first few are read.
fn only_few(g: &Graph, id: NodeId) -> bool {
    let mut readers = g.nodes.iter().filter(|n| n.operands.contains(&id)).peekable();
    matches!(g.node(id).prim, Prim::ArgSort { .. })
        && readers.peek().is_some()
        && readers.all(|n| first_of_sorted(g, n).is_some())
        && !g.outputs.contains(&id)
}

/// A value's layout, and by axis the input whose partial value it still is: a view of it, say.
struct Known {
    layout: Sharding,
    stated: Vec<(String, u32)>,
}

/// The layout of one node.
fn step(g: &Graph, node: &Node, mesh: &Arc<Mesh>, known: &[Known]) -> Result<Known, Problem> {
    let links = links(g, node);
    let mut out = Sharding { mesh: Some(mesh.clone()), dims: vec![vec![]; node.ty.shape.len()], partial: vec![] };
    let mut stated = vec![];
    for (axis, size) in &mesh.axes {
        let (state, of) = along(g, node, axis, *size, &links, known)?;
        stated.extend(of.map(|n| (axis.clone(), n)));
        match state {
            State::Same => {}
            State::Split(d) => out.dims[d].push(axis.clone()),
            State::Partial(m) => out.partial.push((m, axis.clone())),
        }
    }
    let orders = |dim: &dyn Fn(&Link) -> bool| {
        let of = |(o, ls): (&NodeId, &Vec<Link>)| {
            let split = |d: usize| known[o.0 as usize].layout.axes(d).to_vec();
            (0..ls.len()).filter(|d| dim(&ls[*d])).map(split).filter(|a| !a.is_empty()).collect::<Vec<_>>()
        };
        node.operands.iter().zip(&links).flat_map(of).collect::<Vec<_>>()
    };
    for to in 0..out.dims.len() {
        let orders = orders(
            &|link| matches!(link, Link::Pass(d) | Link::Blocks(d) | Link::Reach(d, _) | Link::Along(d) if *d == to),
        );
        out.dims[to] = in_order(&orders)?;
        // Blocks of a few axes are made of those of all only where all are equal.
        let uneven = !node.ty.shape[to].is_multiple_of(out.parts(to).max(1));
        if let Some(fewer) = orders.iter().find(|o| uneven && o.len() < out.dims[to].len()) {
            return Err(Problem::Order { axis: fewer[0].clone() });
        }
    }
    if matches!(node.prim, Prim::Dot { .. })
        && let [a, b] = &orders(&|link| matches!(link, Link::Reduce(_)))[..]
        && a.iter().any(|axis| b.contains(axis))
    {
        in_order(&[a.clone(), b.clone()])?;
    }
    Ok(Known { layout: out, stated })
}

/// A dim that several axes split keeps their order, and each operand has the first few of them:
/// in any other order its blocks would be other ones.
fn in_order(orders: &[Vec<String>]) -> Result<Vec<String>, Problem> {
    let longest = orders.iter().fold(&[][..], |most, o| if o.len() > most.len() { o } else { most });
    match orders.iter().find(|o| !longest.starts_with(o)).and_then(|o| o.last()) {
        Some(axis) => Err(Problem::Order { axis: axis.clone() }),
        None => Ok(longest.to_vec()),
    }
}

/// What the result of a node is along an axis of `size` devices; the input whose partial value it
/// still is.
fn along(
    g: &Graph,
    node: &Node,
    axis: &str,
    size: u64,
    links: &[Vec<Link>],
    known: &[Known],
) -> Result<(State, Option<u32>), Problem> {
    let input = |o: NodeId| if let Prim::Input(n) = g.node(o).prim { Some(n) } else { None };
    let layout = |o: NodeId| &known[o.0 as usize].layout;
    let mut states: Vec<State> = node.operands.iter().map(|o| state(layout(*o), axis)).collect();
    if states.iter().any(|s| matches!(s, State::Partial(Monoid::Each(_)))) {
        return own_along(g, node, axis, links, known);
    }
    let mut found: Vec<State> = vec![];
    let mut of = None;
    for i in 0..states.len() {
        let State::Partial(monoid) = states[i] else { continue };
        let stated = known[node.operands[i].0 as usize].stated.iter().find(|s| s.0 == axis).map(|s| s.1);
        if keeps_partial(g, node, monoid, i, &states) {
            found.push(State::Partial(monoid));
            of = of.or(stated);
            continue;
        }
        if let Monoid::At(at) = monoid {
            return Err(Problem::Apart { axis: axis.into(), at });
        }
        if stated.is_some() {
            return Err(Problem::Partial { axis: axis.into(), monoid, input: stated });
        }
        // Made inside this operator: completed here.
        states[i] = State::Same;
    }
    for (i, s) in states.iter().enumerate() {
        let State::Split(dim) = *s else { continue };
        let o = node.operands[i];
        let whole = Problem::Whole { axis: axis.into(), dim, input: input(o) };
        found.push(match links.get(i).and_then(|l| l.get(dim)) {
            Some(Link::Pass(to) | Link::Reach(to, _)) => State::Split(*to),
            Some(Link::Blocks(to)) => {
                let (from, into) = (g.ty(o).shape[dim], node.ty.shape[*to]);
                let parts: u64 = layout(o).parts(dim).max(size).max(1);
                if !from.is_multiple_of(parts) || !into.is_multiple_of(parts) {
                    return Err(Problem::Divide { axis: axis.into(), parts, from, to: into, input: input(o) });
                }
                State::Split(*to)
            }
            // Another dim has to be there that can be split meanwhile.
            Some(Link::Along(to))
                if (0..links[i].len()).any(|d| d != dim && passes(&links[i][d]) && g.ty(o).shape[d] > 1) =>
            {
                State::Split(*to)
            }
            Some(Link::Reduce(kind)) => match kind {
                Reduction::Sum => State::Partial(Monoid::Sum),
                Reduction::Max => State::Partial(Monoid::Max),
                Reduction::Min => State::Partial(Monoid::Min),
                Reduction::HalfSum | Reduction::HalfProd => State::Same,
                Reduction::Prod | Reduction::Any | Reduction::All => State::Same,
            },
            Some(Link::Indexed) => State::Partial(Monoid::Sum),
            Some(Link::Few) => State::Same,
            Some(Link::Whole | Link::Along(_)) | None => return Err(whole),
        });
    }
    let Some(first) = found.first().copied() else { return Ok((State::Same, None)) };
    if found.iter().any(|s| *s != first) {
        return Err(Problem::Conflict { axis: axis.into() });
    }
    Ok((first, of))
}

/// The same in per-device code, and the input that it comes from.
fn own_along(
    g: &Graph,
    node: &Node,
    axis: &str,
    links: &[Vec<Link>],
    known: &[Known],
) -> Result<(State, Option<u32>), Problem> {
    let of = |o: &NodeId| &known[o.0 as usize];
    let owns: Vec<Option<Own>> = node.operands.iter().map(|o| of(o).layout.own(axis)).collect();
    let comes_from = |o: &NodeId| of(o).stated.iter().find(|s| s.0 == axis).map(|s| s.1);
    match own_after(g, node, links, &owns) {
        Ok(None) => Ok((State::Same, None)),
        Ok(Some(own)) => Ok((State::Partial(Monoid::Each(own)), node.operands.iter().find_map(comes_from))),
        Err(i) => {
            let monoid = owns[i].map_or(Monoid::Sum, Monoid::Each);
            Err(Problem::Partial { axis: axis.into(), monoid, input: comes_from(&node.operands[i]) })
        }
    }
}

fn passes(link: &Link) -> bool {
    matches!(link, Link::Pass(_))
}

/// Whether an operation on the summands (or on what is compared) is that of the whole.
fn keeps_partial(g: &Graph, node: &Node, monoid: Monoid, i: usize, states: &[State]) -> bool {
    let others = |ok: fn(State, State) -> bool| states.iter().enumerate().all(|(j, s)| j == i || ok(*s, states[i]));
    let alike = others(|s, own| s == own);
    let same = others(|s, _| s == State::Same);
    match monoid {
        // What is computed from what a few devices have is theirs.
        Monoid::At(_) => others(|s, own| s == own || s == State::Same),
        _ => {
            let of = Summand { monoid, operand: i, others_alike: alike, others_same: same };
            row(&node.prim).keeps_partial(Site { g, node }, of)
        }
    }
}
