//! Smaller graphs that fail alike.

use crate::random_graph::{Case, elems};
use std::sync::Arc;
use tessera_ir::graph::{Graph, Input, NodeId};
use tessera_ir::interpret;
use tessera_ops::prim::Prim;

/// Tries, at most: each compiles and runs a graph.
const TRIES_MAX: usize = 400;

/// Drops outputs, replaces values by inputs that hold them and nodes by their operands, for as
/// long as `fails` holds.
pub fn shrink(mut case: Case, fails: &mut dyn FnMut(&Case) -> bool) -> Case {
    let mut tries = 0;
    'again: loop {
        for smaller in candidates(&case) {
            tries += 1;
            if tries > TRIES_MAX {
                return case;
            }
            if fails(&smaller) {
                case = smaller;
                continue 'again;
            }
        }
        return case;
    }
}

/// What a case has to lose: computing nodes, outputs, nodes.
fn size(case: &Case) -> (usize, usize, usize) {
    let computing = case.graph.nodes.iter().filter(|n| !matches!(n.prim, Prim::Input(_))).count();
    (computing, case.graph.outputs.len(), case.graph.nodes.len())
}

/// Smaller cases, those that lose most first.
fn candidates(case: &Case) -> Vec<Case> {
    let g = &case.graph;
    let ids: Vec<NodeId> = g.ids().collect();
    let whole = |id: NodeId| g.node(id).results.is_empty();
    let mut all = vec![];
    for (i, &o) in g.outputs.iter().enumerate() {
        all.push(with_outputs(case, vec![o]));
        let mut rest = g.outputs.clone();
        rest.remove(i);
        if !rest.is_empty() {
            all.push(with_outputs(case, rest));
        }
        for &p in g.node(o).operands.iter().filter(|&&p| whole(p)) {
            let mut moved = g.outputs.clone();
            moved[i] = p;
            all.push(with_outputs(case, moved));
        }
    }
    all.extend(ids.iter().rev().filter_map(|&id| cut(case, id)));
    for &id in ids.iter().rev() {
        let like = g.node(id).operands.iter().filter(|&&o| g.ty(o) == g.ty(id) && whole(o));
        all.extend(like.map(|&o| bypass(case, id, o)));
    }
    let now = size(case);
    all.retain(|c| size(c) < now);
    all.sort_by_key(size);
    all
}

fn with_outputs(case: &Case, outputs: Vec<NodeId>) -> Case {
    let mut new = case.clone();
    new.graph.outputs = outputs;
    clean(&new)
}

fn bypass(case: &Case, id: NodeId, by: NodeId) -> Case {
    let mut new = case.clone();
    let rename = |o: &mut NodeId| {
        if *o == id {
            *o = by;
        }
    };
    new.graph.nodes.iter_mut().for_each(|n| n.operands.iter_mut().for_each(rename));
    new.graph.outputs.iter_mut().for_each(rename);
    clean(&new)
}

/// The node becomes an input that holds its value.
fn cut(case: &Case, id: NodeId) -> Option<Case> {
    let node = case.graph.node(id);
    if matches!(node.prim, Prim::Input(_)) || !node.results.is_empty() {
        return None;
    }
    let mut alone = case.graph.clone();
    alone.outputs = vec![id];
    let inputs: Vec<&[u8]> = case.inputs.iter().map(Vec::as_slice).collect();
    let value = interpret::run(&alone, &inputs).ok()?.pop()?;
    let mut new = case.clone();
    let input = Input { name: Arc::from(""), ty: node.ty.clone(), scalar: false };
    new.graph.inputs.push(input);
    new.inputs.push(value);
    let at = &mut new.graph.nodes[id.0 as usize];
    (at.prim, at.operands) = (Prim::Input(new.graph.inputs.len() as u32 - 1), vec![]);
    Some(clean(&new))
}

/// Drops what no output needs, inputs too.
fn clean(case: &Case) -> Case {
    let old = &case.graph;
    let mut used = vec![false; old.nodes.len()];
    old.outputs.iter().for_each(|o| used[o.0 as usize] = true);
    for id in old.ids().collect::<Vec<_>>().into_iter().rev() {
        if used[id.0 as usize] {
            old.node(id).operands.iter().for_each(|o| used[o.0 as usize] = true);
        }
    }
    let mut new = Case {
        graph: Graph { name: old.name.clone(), kernels: old.kernels.clone(), ..Graph::default() },
        inputs: vec![],
    };
    let mut names = vec![NodeId(0); old.nodes.len()];
    for id in old.ids().filter(|id| used[id.0 as usize]) {
        let mut node = old.node(id).clone();
        node.operands.iter_mut().for_each(|o| *o = names[o.0 as usize]);
        match &mut node.prim {
            Prim::Input(i) => {
                let n = new.graph.inputs.len() as u32;
                let input = &old.inputs[*i as usize];
                new.graph.inputs.push(Input { name: Arc::from(format!("x{n}")), ..input.clone() });
                new.inputs.push(case.inputs[*i as usize].clone());
                *i = n;
            }
            Prim::Scan { body, .. } => {
                new.graph.bodies.push(old.bodies[*body as usize].clone());
                *body = new.graph.bodies.len() as u32 - 1;
            }
            _ => {}
        }
        names[id.0 as usize] = new.graph.push(node);
    }
    new.graph.outputs = old.outputs.iter().map(|o| names[o.0 as usize]).collect();
    new
}

/// The graph as text, and its data where it is short.
pub fn report(case: &Case) -> String {
    let mut out = case.graph.to_string();
    for (input, bytes) in case.graph.inputs.iter().zip(&case.inputs) {
        if elems(&input.ty.shape) <= 32 {
            let hex: Vec<String> = bytes
                .chunks(input.ty.dtype.bytes())
                .map(|e| e.iter().rev().map(|b| format!("{b:02x}")).collect())
                .collect();
            out += &format!("// {} = {}\n", input.name, hex.join(" "));
        }
    }
    out
}
