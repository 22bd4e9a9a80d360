//! The nodes of a graph in an order in which they can be computed: the standard asks for it, and not every file keeps it.

use std::collections::{HashMap, HashSet};
use tessera_runtime::io::onnx::{Attribute, Node};

/// The nodes as they stand, each behind those that compute its arguments. Nodes in a circle stay where they are.
pub fn ordered<'g, 'a>(nodes: &'g [Node<'a>]) -> Vec<&'g Node<'a>> {
    let mut producer = HashMap::new();
    for (i, node) in nodes.iter().enumerate() {
        for name in node.outputs.iter().filter(|n| !n.is_empty()) {
            producer.entry(*name).or_insert(i);
        }
    }
    let needs = |i: usize| {
        let mut names = vec![];
        read_by(&nodes[i], &mut names);
        names.iter().filter_map(|n| producer.get(n)).copied().filter(|j| *j != i).collect::<Vec<_>>()
    };
    let (mut seen, mut out) = (vec![false; nodes.len()], vec![]);
    for start in 0..nodes.len() {
        if seen[start] {
            continue;
        }
        seen[start] = true;
        // A stack of its own: a chain may have as many nodes as the file.
        let mut stack = vec![(start, needs(start).into_iter())];
        while let Some((i, rest)) = stack.last_mut() {
            match rest.next() {
                Some(j) if seen[j] => {}
                Some(j) => {
                    seen[j] = true;
                    stack.push((j, needs(j).into_iter()));
                }
                None => {
                    out.push(&nodes[*i]);
                    stack.pop();
                }
            }
        }
    }
    out
}

/// The names that a node reads: its arguments, and what the graphs in it take from around them.
fn read_by<'a>(node: &Node<'a>, out: &mut Vec<&'a str>) {
    out.extend(node.inputs.iter().filter(|n| !n.is_empty()));
    for (_, attribute) in &node.attributes {
        if let Attribute::Graph(graph) = attribute {
            let mut read = vec![];
            graph.nodes.iter().for_each(|n| read_by(n, &mut read));
            read.extend(graph.outputs.iter().map(|o| o.name));
            // What it has under a name of its own is not what has that name around it.
            let own: HashSet<&str> = graph
                .nodes
                .iter()
                .flat_map(|n| &n.outputs)
                .copied()
                .chain(graph.inputs.iter().map(|i| i.name))
                .chain(graph.tensors.iter().map(|t| t.name))
                .collect();
            out.extend(read.into_iter().filter(|name| !own.contains(name)));
        }
    }
}
