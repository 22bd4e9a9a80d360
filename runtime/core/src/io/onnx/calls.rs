//! Operators that a file defines itself: every node that calls one gets the function with its own attributes.

use super::{Attribute, Function, Graph, Input, Node, Reader};

/// Functions that call functions, at most so deep.
const DEEP: u32 = 16;
/// Numbers that take about the memory of one part.
const NUMBERS: usize = 16;

/// Gives the nodes that call a function its body, and so on in the bodies and in the graphs of attributes.
///
/// # Errors
/// Functions that call one another without end, and bodies that are too large together.
pub fn written_out<'a>(
    nodes: &mut [Node<'a>],
    functions: &[Function<'a>],
    reader: &mut Reader,
    depth: u32,
) -> Result<(), String> {
    for node in nodes {
        for (_, attribute) in &mut node.attributes {
            if let Attribute::Graph(graph) = attribute {
                written_out(&mut graph.nodes, functions, reader, depth)?;
            }
        }
        let called = |f: &&Function| (f.domain, f.name, f.overload) == (node.domain, node.op, node.overload);
        let Some(function) = functions.iter().find(called) else { continue };
        if depth >= DEEP {
            return Err(format!("its function `{}` is called more than {DEEP} functions deep", node.op));
        }
        // What a call leaves out its nodes leave out too.
        let left_out = |i: usize| node.inputs.get(i).is_none_or(|n| n.is_empty());
        let absent: Vec<&str> =
            function.inputs.iter().enumerate().filter(|(i, _)| left_out(*i)).map(|(_, n)| *n).collect();
        let call = Call { attributes: &node.attributes, defaults: &function.defaults, absent: &absent };
        reader.charge(function.inputs.len() + function.outputs.len())?;
        let mut body = Function {
            domain: function.domain,
            name: function.name,
            overload: function.overload,
            opset: function.opset,
            inputs: function.inputs.clone(),
            outputs: function.outputs.clone(),
            defaults: vec![],
            nodes: vec![],
        };
        for inner in &function.nodes {
            body.nodes.push(call.of(inner, reader)?);
        }
        written_out(&mut body.nodes, functions, reader, depth + 1)?;
        node.body = Some(Box::new(body));
    }
    Ok(())
}

/// What a call gives the nodes of a function.
struct Call<'c, 'a> {
    attributes: &'c [(&'a str, Attribute<'a>)],
    /// Those that stand for what it leaves out.
    defaults: &'c [(&'a str, Attribute<'a>)],
    /// Arguments of the function that it leaves out.
    absent: &'c [&'a str],
}

impl<'a> Call<'_, 'a> {
    /// A node of the function as this call has it.
    fn of(&self, node: &Node<'a>, reader: &mut Reader) -> Result<Node<'a>, String> {
        reader.charge(1 + node.inputs.len() + node.outputs.len())?;
        let mut attributes = vec![];
        for (name, attribute) in &node.attributes {
            let value = match attribute {
                Attribute::Of(other) => {
                    let given = self.attributes.iter().chain(self.defaults).find(|(n, _)| n == other);
                    // What neither says is left out here too.
                    let Some((_, value)) = given else { continue };
                    reader.charge(parts_of(value))?;
                    value.clone()
                }
                Attribute::Graph(graph) => {
                    reader.charge(parts_around(graph))?;
                    let nodes = graph.nodes.iter().map(|n| self.of(n, reader)).collect::<Result<_, _>>()?;
                    Attribute::Graph(Graph {
                        name: graph.name,
                        nodes,
                        tensors: graph.tensors.clone(),
                        inputs: graph.inputs.clone(),
                        outputs: graph.outputs.clone(),
                        values: graph.values.clone(),
                    })
                }
                value => {
                    reader.charge(parts_of(value))?;
                    value.clone()
                }
            };
            attributes.push((*name, value));
        }
        let given = |name: &&'a str| if self.absent.contains(name) { "" } else { *name };
        Ok(Node {
            name: node.name,
            op: node.op,
            domain: node.domain,
            inputs: node.inputs.iter().map(given).collect(),
            outputs: node.outputs.clone(),
            attributes,
            overload: node.overload,
            body: None,
        })
    }
}

/// How many parts a copy of an attribute is.
fn parts_of(attribute: &Attribute) -> usize {
    1 + match attribute {
        Attribute::Ints(all) => all.len() / NUMBERS,
        Attribute::Floats(all) => all.len() / NUMBERS,
        Attribute::Texts(all) => all.len() / NUMBERS,
        Attribute::Tensor(t) => numbers_of(t) / NUMBERS,
        Attribute::Graph(graph) => parts_around(graph) + nodes_parts(&graph.nodes),
        Attribute::Int(_) | Attribute::Float(_) | Attribute::Text(_) | Attribute::Of(_) | Attribute::Other => 0,
    }
}

fn nodes_parts(nodes: &[Node]) -> usize {
    let own = |n: &Node| {
        let body = n.body.as_ref().map_or(0, |b| b.inputs.len() + b.outputs.len() + nodes_parts(&b.nodes));
        1 + n.inputs.len() + n.outputs.len() + body + n.attributes.iter().map(|(_, a)| parts_of(a)).sum::<usize>()
    };
    nodes.iter().map(own).sum()
}

/// The same of a graph without its nodes.
fn parts_around(graph: &Graph) -> usize {
    let sizes = |v: &Input| 1 + v.shape.as_ref().map_or(0, |s| s.len() / NUMBERS);
    let values: usize = graph.inputs.iter().chain(&graph.outputs).chain(&graph.values).map(sizes).sum();
    values + graph.tensors.iter().map(|t| 1 + numbers_of(t) / NUMBERS).sum::<usize>()
}

fn numbers_of(t: &super::Tensor) -> usize {
    t.dims.len() + t.ints.len() + t.floats.len() + t.doubles.len()
}
