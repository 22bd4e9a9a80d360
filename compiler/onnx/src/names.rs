//! Names of a file as names of the language.

use std::collections::HashMap;
use tessera_grammar::token::{Tok, lex};

/// Names that the text of a module uses with a meaning of their own, or that lead to modules of the language.
const RESERVED: &[&str] = &[
    "op",
    "io",
    "math",
    "onnx",
    "onnx_attention",
    "onnx_images",
    "onnx_recurrent",
    "max",
    "min",
    "weights",
    "model",
    "file",
    "Weights",
    "Tensor",
    "std",
    "dist",
    "schedule",
    "tile",
    "numerics",
    "graph",
    "autodiff",
    "random",
    "tree",
    "time",
    "sys",
    "int",
    "float",
    "bool",
    "str",
    "range",
    "round",
    "abs",
    "sum",
    "len",
    "list",
    "tuple",
    "dict",
    "set",
    "any",
    "all",
    "zip",
    "enumerate",
    "print",
    "sorted",
    "reversed",
    "map",
    "filter",
    "pow",
    "divmod",
];

/// Gives each name once.
#[derive(Default)]
pub struct Names {
    /// With the number that is tried next behind it.
    taken: HashMap<String, usize>,
}

impl Names {
    /// The name with what no name may hold as `_`; another if it is taken.
    pub fn fresh(&mut self, wanted: &str, otherwise: &str) -> String {
        let mut name: String =
            wanted.chars().take(80).map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        name = name.trim_matches('_').to_owned();
        if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
            name = if name.is_empty() { otherwise.to_owned() } else { format!("{otherwise}_{name}") };
        }
        // `v12` is what intermediate values are called, and `result1` what results are.
        let number = |n: &str| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit());
        let numbered = ["v", "result"].iter().any(|start| name.strip_prefix(start).is_some_and(number));
        let word = lex(&name).first().is_none_or(|token| token.kind != Tok::Name);
        if numbered || word || RESERVED.contains(&&*name) || tessera_base::DType::parse(&name).is_some() {
            name.push('_');
        }
        let mut unique = name.clone();
        while self.taken.contains_key(&unique) {
            let next = self.taken.entry(name.clone()).or_insert(2);
            unique = format!("{name}_{next}");
            *next += 1;
        }
        self.taken.insert(unique.clone(), 2);
        unique
    }
}

/// A text as a literal.
pub fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// A text on one line of a comment.
pub fn comment(text: &str) -> String {
    text.chars().take(100).map(|c| if c.is_control() { ' ' } else { c }).collect()
}
