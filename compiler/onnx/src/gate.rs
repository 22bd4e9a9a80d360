//! What a node may say, looked up in the standard before it is translated: an attribute that the operator
//! does not have in the version of the file, or that its translation does not follow, is refused by name.

use crate::names::comment;
use crate::node::No;
use crate::ops::Row;
use crate::standard::{self, Fact, Schema};
use crate::value::{shown, texts};
use tessera_base::DType;
use tessera_runtime::io::onnx::{Attribute, Node};

/// An attribute of the first versions: which arguments may be overwritten.
const MOOT: &str = "consumed_inputs";

/// The operator as the file has it.
///
/// # Errors
/// What the standard does not allow, or the translation does not follow.
pub fn checked(node: &Node, row: &Row, version: i64) -> Result<&'static Schema, No> {
    // Other domains have versions of their own, of which there is one here.
    let version = if row.name.contains('.') { 1 } else { version };
    let Some(schema) = standard::schema(row.name, version) else {
        return Err(format!("version {version} of the operators does not have it"));
    };
    // Arguments that are missing are missed by the translation, where it needs them.
    let arguments = node.inputs.len();
    if Schema::at(&schema.inputs, arguments.saturating_sub(1)).is_none() && arguments > 0 {
        return Err(format!("it has {arguments} arguments and the standard {}", schema.inputs.len()));
    }
    let results = node.outputs.len();
    if Schema::at(&schema.outputs, results.saturating_sub(1)).is_none() && results > 0 {
        return Err(format!("it has {results} results and the standard {}", schema.outputs.len()));
    }
    for (i, (name, value)) in node.attributes.iter().enumerate() {
        if node.attributes.iter().take(i).any(|(other, _)| other == name) {
            return Err(format!("it has the attribute `{}` twice", comment(name)));
        }
        let Some(fact) = schema.attribute(name) else {
            let known: Vec<String> = schema.attributes.iter().map(|a| format!("`{}`", a.name)).collect();
            let known = if known.is_empty() { "none".into() } else { known.join(", ") };
            let (name, since) = (comment(name), schema.since);
            return Err(format!("it has the attribute `{name}`; in version {since} the operator has {known}"));
        };
        follow(fact, value, row)?;
    }
    let missing = schema.attributes.iter().find(|a| a.required && !node.attributes.iter().any(|(n, _)| *n == a.name));
    match missing.filter(|a| a.name != MOOT) {
        Some(fact) => Err(format!("it lacks the attribute `{}`", fact.name)),
        None => Ok(schema),
    }
}

fn follow(fact: &Fact, value: &Attribute, row: &Row) -> Result<(), No> {
    let (name, kind) = (fact.name, kind(value));
    // Types are told by the values themselves.
    let is_type = fact.kind == "type_proto" && matches!(value, Attribute::Other);
    if kind != fact.kind && !is_type {
        return Err(format!("its attribute `{name}` is {kind} where the standard has {}", fact.kind));
    }
    for text in texts(value) {
        // Names of activations are written in any case.
        let right = |v: &&str| if fact.kind == "texts" { v.eq_ignore_ascii_case(&text) } else { **v == text };
        if !fact.values.is_empty() && !fact.values.iter().any(right) {
            let known: Vec<String> = fact.values.iter().map(|v| format!("`{v}`")).collect();
            return Err(format!("its attribute `{name}` is `{}`; known are {}", comment(&text), known.join(", ")));
        }
    }
    if name == MOOT || row.honoured.contains(&name) || row.moot.contains(&name) || is_default(fact, value) {
        return Ok(());
    }
    let other = fact.default.map_or("without it".into(), |d| format!("with `{d}`"));
    Err(format!("its attribute `{name}` is {}; only nodes {other} are supported", shown(value)))
}

fn is_default(fact: &Fact, value: &Attribute) -> bool {
    match (value, fact.default) {
        (Attribute::Int(n), Some(d)) => d.parse() == Ok(*n),
        (Attribute::Float(x), Some(d)) => d.parse() == Ok(*x),
        (Attribute::Text(_) | Attribute::Texts(_), Some(d)) => texts(value).join(",") == d,
        // Windows without gaps.
        (Attribute::Ints(v), None) => fact.name == "dilations" && v.iter().all(|d| *d == 1),
        _ => false,
    }
}

fn kind(value: &Attribute) -> &'static str {
    match value {
        Attribute::Int(_) => "int",
        Attribute::Float(_) => "float",
        Attribute::Text(_) => "text",
        Attribute::Tensor(_) => "tensor",
        Attribute::Graph(_) => "graph",
        Attribute::Ints(_) => "ints",
        Attribute::Floats(_) => "floats",
        Attribute::Texts(_) => "texts",
        Attribute::Of(_) => "an attribute of a function",
        Attribute::Other => "of another kind",
    }
}

/// What a translated node is, in the words of the file: for the remark on its lines.
pub fn described(node: &Node) -> String {
    let short = |(name, value): &(&str, Attribute)| match value {
        Attribute::Tensor(_) | Attribute::Graph(_) | Attribute::Of(_) | Attribute::Other => None,
        value => Some(format!("{}={}", comment(name), shown(value).replace('`', "\""))),
    };
    let attributes: Vec<String> = node.attributes.iter().filter_map(short).collect();
    let name = if node.name.is_empty() { node.outputs.first().copied().unwrap_or_default() } else { node.name };
    let attributes = if attributes.is_empty() { String::new() } else { format!("({})", attributes.join(", ")) };
    format!("{}{attributes}, node {}", comment(node.op), comment(name))
}

/// The dtype that the standard gives a result, where it follows from the arguments.
pub fn dtype_of(schema: &Schema, i: usize, inputs: &[Option<DType>]) -> Option<DType> {
    let ty = Schema::at(&schema.outputs, i)?.ty;
    let same =
        |(at, dtype): (usize, &Option<DType>)| (Schema::at(&schema.inputs, at)?.ty == ty).then_some(*dtype).flatten();
    // That of an argument of the same type, else the one dtype that the type may be.
    let only = schema.dtypes(ty);
    let only = if only.len() == 1 { only.first().copied() } else { None };
    inputs.iter().enumerate().find_map(same).or(only)
}
