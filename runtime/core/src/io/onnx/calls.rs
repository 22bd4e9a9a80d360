//! Operators that a file defines itself: every node that calls one gets the function with its own attributes.

use super::{Attribute, Function, Node, Reader};

/// Functions that call functions, at most so deep.
const DEEP: u32 = 16;

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
            body.nodes.push(with_attributes(inner, &node.attributes, &function.defaults, reader)?);
        }
        written_out(&mut body.nodes, functions, reader, depth + 1)?;
        node.body = Some(Box::new(body));
    }
    Ok(())
}

/// A node of a function with the attributes of a call, or else those that stand for what a call leaves out.
fn with_attributes<'a>(
    node: &Node<'a>,
    call: &[(&'a str, Attribute<'a>)],
    defaults: &[(&'a str, Attribute<'a>)],
    reader: &mut Reader,
) -> Result<Node<'a>, String> {
    reader.part()?;
    let mut out = node.clone();
    let mut attributes = vec![];
    for (name, attribute) in out.attributes {
        reader.part()?;
        let value = match attribute {
            Attribute::Of(other) => {
                let given = call.iter().chain(defaults).find(|(n, _)| *n == other);
                // What neither says is left out here too.
                let Some((_, value)) = given else { continue };
                value.clone()
            }
            Attribute::Graph(mut graph) => {
                for inner in &mut graph.nodes {
                    *inner = with_attributes(inner, call, defaults, reader)?;
                }
                Attribute::Graph(graph)
            }
            value => value,
        };
        attributes.push((name, value));
    }
    out.attributes = attributes;
    Ok(out)
}
