//! A whole file as the text of a module.

use crate::Refused;
use crate::gate;
use crate::held;
use crate::known;
use crate::names::{Names, comment, quoted};
use crate::node::{Body, No, Node};
use crate::ops;
use crate::order::ordered;
use crate::refusals;
use crate::standard;
use crate::value::{Tensor, Value};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use tessera_base::{Code, DType};
use tessera_runtime::io::onnx::{self, Attribute, Dim, Graph, Held, Model};

/// Complaints that are told, at most.
const TOLD_MAX: usize = 30;

/// The text of the module that a file stands for.
///
/// # Errors
/// What cannot be read, and every node that has no translation, in one.
pub fn module(path: &str) -> Result<String, Refused> {
    let made = onnx::with_file(Path::new(path), |model| Ok(translated(&model, path)));
    made.unwrap_or_else(|fault| {
        let code = if fault.code == 707 { Code::E0707 } else { Code::E0706 };
        Err(Refused { code, message: fault.message, notes: fault.notes })
    })
}

/// The same of a file's bytes; the module reads its weights from `path`.
///
/// # Errors
/// As [`module`].
pub fn module_of(bytes: &[u8], path: &str) -> Result<String, Refused> {
    let bad = |why: String| Refused {
        code: Code::E0707,
        message: format!("`{path}` is not a readable ONNX file: {why}"),
        notes: vec![],
    };
    translated(&onnx::parse(bytes).map_err(bad)?, path)
}

fn translated(model: &Model, path: &str) -> Result<String, Refused> {
    let newest = standard::through();
    if model.opset > newest {
        let message = format!("`{path}` has version {} of the operators; known are 1 to {newest}", model.opset);
        return Err(refused(message, vec![]));
    }
    let mut unknown: BTreeMap<String, Vec<String>> = BTreeMap::new();
    unknown_operators(&model.graph, &mut unknown);
    if !unknown.is_empty() {
        let count = unknown.len();
        let why = |op: &str| refusals::reason(op).map_or(String::new(), |why| format!(" ({why})"));
        let list = unknown.into_iter().map(|(op, nodes)| format!("`{op}`: {}{}", listed(&nodes), why(&op))).collect();
        let message = format!("`{path}` has {} that {} not supported", many(count, "operator"), are(count));
        return Err(refused(message, list));
    }
    // Files older than versions name none.
    let mut pass = Pass { body: Body::new(model.opset.max(1)), problems: vec![] };
    let text = pass.program(&model.graph, path);
    match text {
        Ok(text) if pass.problems.is_empty() => Ok(text),
        outcome => {
            pass.problems.extend(outcome.err().filter(|e| !e.is_empty()));
            let count = pass.problems.len();
            let message = format!("`{path}` has {} that {} not supported", many(count, "node"), are(count));
            Err(refused(message, pass.problems))
        }
    }
}

fn refused(message: String, mut notes: Vec<String>) -> Refused {
    if notes.len() > TOLD_MAX {
        let more = notes.len() - TOLD_MAX;
        notes.truncate(TOLD_MAX);
        notes.push(format!("and {more} more"));
    }
    Refused { code: Code::E0690, message, notes }
}

fn many(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn are(count: usize) -> &'static str {
    if count == 1 { "is" } else { "are" }
}

fn listed(names: &[String]) -> String {
    let shown: Vec<&str> = names.iter().take(3).map(|n| &**n).collect();
    match names.len() - shown.len() {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

fn label(node: &onnx::Node) -> String {
    let name = match node.name {
        "" => node.outputs.first().copied().unwrap_or_default(),
        name => name,
    };
    format!("node `{}`", comment(name))
}

/// The name of an operator, behind its domain where that is not the standard's.
fn operator(node: &onnx::Node) -> String {
    let standard = matches!(node.domain, "" | "ai.onnx");
    if standard { comment(node.op) } else { comment(&format!("{}.{}", node.domain, node.op)) }
}

/// Every operator of a graph that has no row, with its nodes.
fn unknown_operators(graph: &Graph, out: &mut BTreeMap<String, Vec<String>>) {
    unknown_of(&graph.nodes, out);
}

fn unknown_of(nodes: &[onnx::Node], out: &mut BTreeMap<String, Vec<String>>) {
    for node in nodes {
        if let Some(body) = &node.body {
            unknown_of(&body.nodes, out);
            continue;
        }
        if ops::find(node.domain, node.op).is_none() {
            out.entry(operator(node)).or_default().push(label(node));
        }
        for (_, attribute) in &node.attributes {
            if let Attribute::Graph(inner) = attribute {
                unknown_operators(inner, out);
            }
        }
    }
}

pub struct Pass<'m> {
    pub body: Body<'m>,
    problems: Vec<String>,
}

impl<'m> Pass<'m> {
    /// The whole text.
    fn program(&mut self, graph: &'m Graph<'m>, path: &str) -> Result<String, No> {
        self.body.scopes.push(constants(graph));
        let mut sizes = Sizes::default();
        let mut params = vec![];
        let mut given = HashSet::new();
        for input in &graph.inputs {
            if !given.insert(input.name) {
                return Err(format!("input `{}`: two inputs have its name", comment(input.name)));
            }
            // Older files list the weights among the inputs.
            if self.body.value(input.name).is_some() {
                continue;
            }
            let param = sizes.names.fresh(input.name, "x");
            if input.kind == 0 {
                let name = comment(input.name);
                return Err(format!("input `{name}`: it is no tensor but a sequence, a map or an optional value"));
            }
            let (dtype, held) =
                onnx::storage(input.kind).map_err(|e| format!("input `{}`: {e}", comment(input.name)))?;
            let Some(shape) = &input.shape else {
                return Err(format!("input `{}`: its rank is not told", comment(input.name)));
            };
            let mut dims: Vec<String> = shape.iter().map(|d| sizes.dim(d)).collect();
            dims.push(dtype.to_string());
            params.push(format!("{param}: Tensor[{}]", dims.join(", ")));
            let known = shape.iter().map(|d| if let Dim::Size(n @ 1..) = d { *n } else { -1 }).collect();
            let t = Tensor { known, held, ..Tensor::new(param, shape.len(), dtype) };
            self.body.set(input.name, Value::Tensor(t));
        }
        self.body.tell(graph);
        self.nodes(&graph.nodes);
        let mut results = vec![];
        for output in &graph.outputs {
            match self.body.value(output.name).cloned() {
                Some(Value::Broken) => {}
                // A sequence is a tuple of its elements.
                Some(Value::List(all)) => {
                    let texts = all.iter().map(|v| Ok(self.body.as_tensor(v)?.text)).collect::<Result<Vec<_>, No>>()?;
                    results.push(format!(
                        " = ({})",
                        texts.iter().map(|t| format!("{t}, ")).collect::<String>().trim_end()
                    ));
                }
                Some(value) => {
                    let t = self.body.as_tensor(&value)?;
                    if let Ok((said, held)) = onnx::storage(output.kind)
                        && output.kind != 0
                        && (said, held) != (t.dtype, t.held)
                    {
                        let name = |dtype: DType, held: Held| match held {
                            Held::Own => dtype.to_string(),
                            held => held.name().to_owned(),
                        };
                        let (output, said, own) = (comment(output.name), name(said, held), name(t.dtype, t.held));
                        return Err(format!("output `{output}`: the file says {said}, and it is {own}"));
                    }
                    // The dtypes are those of the standard, or the module is refused.
                    results.push(format!(": Tensor[..., {}] = {}", t.dtype, t.text));
                }
                None => self.problems.push(format!("nothing computes the output `{}`", comment(output.name))),
            }
        }
        Ok(self.text(graph, path, params, results))
    }

    fn text(&self, graph: &Graph, path: &str, mut params: Vec<String>, results: Vec<String>) -> String {
        let mut out = format!("# {}, version {} of the operators\n", comment(path), self.body.opset);
        for module in &self.body.libraries {
            out.push_str(&format!("import std.{module} as {module}\n"));
        }
        if !self.body.weights.is_empty() {
            let types = self.body.weights.iter().map(|(_, t)| weight_type(t)).collect::<Vec<_>>();
            out.push_str("\n\nstruct Weights:\n");
            for ((field, _), ty) in self.body.weights.iter().zip(&types) {
                out.push_str(&format!("    {field}: {ty}\n"));
            }
            out.push_str("\n\ndef _read() -> Weights:\n");
            out.push_str(&format!("    file = io.read_onnx_tensors({})\n", quoted(path)));
            for (i, ((_, t), ty)) in self.body.weights.iter().zip(&types).enumerate() {
                out.push_str(&format!("    v{i}: {ty} = file[{}]\n", quoted(&t.key)));
            }
            let fields = self.body.weights.iter().enumerate().map(|(i, (field, _))| format!("{field}=v{i}"));
            out.push_str(&format!("    return Weights({})\n", fields.collect::<Vec<_>>().join(", ")));
            out.push_str("\n\nweights = _read()\n");
            params.push("weights=weights".into());
        } else {
            // A parameter without a type: calls are checked one by one, for the sizes that they have.
            params.push("weights=None".into());
        }
        let outputs: Vec<String> = graph.outputs.iter().map(|o| comment(o.name)).collect();
        out.push_str(&format!("\n\n# Gives {}.\ndef model({}):\n", outputs.join(", "), params.join(", ")));
        for line in &self.body.lines {
            out.push_str(&format!("    {line}\n"));
        }
        for (i, result) in results.iter().enumerate() {
            out.push_str(&format!("    result{}{result}\n", i + 1));
        }
        let names: Vec<String> = (1..=results.len()).map(|i| format!("result{i}")).collect();
        out.push_str(&format!("    return {}\n", if names.is_empty() { "None".into() } else { names.join(", ") }));
        out
    }

    pub fn nodes(&mut self, nodes: &'m [onnx::Node<'m>]) {
        let mut made: HashSet<&str> = self.body.scopes.iter().last().into_iter().flatten().map(|(n, _)| *n).collect();
        for name in nodes.iter().flat_map(|n| &n.outputs).filter(|n| !n.is_empty()) {
            if !made.insert(name) {
                self.problems.push(format!("`{}` is computed twice", comment(name)));
            }
        }
        for node in ordered(nodes) {
            self.body.remark = gate::described(node);
            let done = self.node(node);
            self.body.remark.clear();
            if let Err(why) = done {
                // An empty reason: an argument is broken, which has been told.
                if !why.is_empty() {
                    self.problems.push(format!("`{}`, {}: {why}", operator(node), label(node)));
                }
                for name in &node.outputs {
                    self.body.set(name, Value::Broken);
                }
            }
        }
    }

    /// Notes what the elements of the results are, and cuts off what they have more than those.
    fn hold(
        &mut self,
        node: &'m onnx::Node<'m>,
        row: &ops::Row,
        schema: &standard::Schema,
        arguments: &[Held],
    ) -> Result<(), No> {
        if arguments.iter().all(|h| *h == Held::Own) {
            return Ok(());
        }
        for (i, name) in node.outputs.iter().enumerate().filter(|(_, name)| !name.is_empty()) {
            let held = held::of_result(row.name, schema, i, arguments);
            let (true, Some(value)) = (held != Held::Own, self.body.value(name).cloned()) else { continue };
            let value = match value {
                Value::Tensor(t) if held::wraps(row.name) && held != Held::U64 => {
                    let text = self.body.line(&held::cut(&t.text, held))?;
                    Value::Tensor(Tensor { text, ..t })
                }
                value => value,
            };
            self.body.set(name, held::marked(value, held));
        }
        Ok(())
    }

    fn node(&mut self, node: &'m onnx::Node<'m>) -> Result<(), No> {
        if let Some(body) = &node.body {
            return self.call(node, body);
        }
        let row = ops::find(node.domain, node.op).ok_or("its operator is not known")?;
        let schema = gate::checked(node, row, self.body.opset)?;
        let Some(translate) = row.translate else { return self.control(node, schema) };
        let held_of = |name: &&str| self.body.value(name).map(first_held).unwrap_or_default();
        let held: Vec<Held> = node.inputs.iter().map(held_of).collect();
        held::checked(row.name, &held)?;
        translate(&mut Node { body: &mut self.body, node, schema })?;
        self.hold(node, row, schema, &held)?;
        // What the standard says of the results holds.
        let dtype = |name: &&str| self.body.value(name).and_then(Value::dtype);
        let inputs: Vec<Option<DType>> = node.inputs.iter().map(dtype).collect();
        for (i, name) in node.outputs.iter().enumerate() {
            if let (Some(wanted), Some(own)) = (gate::dtype_of(schema, i, &inputs), dtype(name))
                && wanted != own
            {
                return Err(format!("its result `{}` is {wanted} by the standard and {own} here", comment(name)));
            }
        }
        known::tell(&mut self.body, node, schema);
        Ok(())
    }
}

/// What the elements of a value, or of the first one of a sequence, are in the file.
fn first_held(value: &Value) -> Held {
    match value {
        Value::List(all) => all.first().map(first_held).unwrap_or_default(),
        value => value.held(),
    }
}

pub fn constants<'m>(graph: &'m Graph<'m>) -> HashMap<&'m str, Value<'m>> {
    graph.tensors.iter().map(|t| (t.name, Value::Constant(t))).collect()
}

fn weight_type(t: &onnx::Tensor) -> String {
    let mut parts: Vec<String> = t.dims.iter().map(i64::to_string).collect();
    parts.push(t.dtype().unwrap_or(DType::F32).to_string());
    format!("Tensor[{}]", parts.join(", "))
}

/// Size variables for the sizes that a file leaves open; parameters share their names.
#[derive(Default)]
struct Sizes {
    names: Names,
    known: HashMap<String, String>,
}

impl Sizes {
    fn dim(&mut self, dim: &Dim) -> String {
        match dim {
            Dim::Size(n) if *n > 0 => n.to_string(),
            Dim::Name(name) if name.chars().any(|c| c.is_ascii_alphanumeric()) => {
                let upper = name.to_uppercase();
                let names = &mut self.names;
                self.known.entry((*name).to_owned()).or_insert_with(|| names.fresh(&upper, "N")).clone()
            }
            _ => self.names.fresh("N", "N"),
        }
    }
}
