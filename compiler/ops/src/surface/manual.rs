//! The operator reference as Markdown, written from the table.

use super::*;
use std::fmt::Write;

/// One section for each operator, sorted by name.
pub fn docs_markdown() -> String {
    let mut out = String::from(
        "# Operators\n\nEvery operator also takes the keyword arguments `tile_shape=`, `accum_dtype=` and `out_dtype=`.\n\
         `dim=` is accepted for `axis=`. `x` in a signature is the tensor on which a method is called.\n",
    );
    for def in all() {
        // Writing to a string does not fail.
        let _ = write!(out, "\n## {}\n\n`{}`", def.name, call(def));
        if def.method {
            let _ = write!(out, " · method");
        }
        if !def.signature.is_empty() {
            let _ = write!(out, " · `{}`", def.signature);
        }
        let _ = write!(out, "\n\n{}\n", def.doc);
        if let Some(reason) = def.unsupported {
            let _ = write!(out, "\nNot supported yet: {reason}.\n");
        }
    }
    out
}

/// The call with its parameters, as people write it.
pub fn call(def: &OpDef) -> String {
    let mut parts: Vec<String> = vec![];
    for (i, p) in def.params.iter().enumerate() {
        if p.keyword_only && !def.params[..i].iter().any(|q| q.keyword_only) {
            parts.push("*".into());
        }
        parts.push(match p.default {
            Default::Required => p.name.into(),
            default => format!("{}={default}", p.name),
        });
    }
    let module = if def.name.contains('.') { "" } else { "op." };
    format!("{module}{}({})", def.name, parts.join(", "))
}
