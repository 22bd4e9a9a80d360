//! The page of what is built in and is no operator: functions, methods, members of modules.

use crate::golden::blocks;
use crate::program::root;
use std::collections::BTreeMap;
use std::fmt::Write;
use tessera_core::builtins::{CALLS, CONSTANTS, Rule, rows};
use tessera_ide::written::host;

/// A section: how its names begin, its title, and the guide that has its examples where `compiler/core/examples.md` has none.
pub struct Group {
    pub prefix: &'static str,
    title: &'static str,
    pub guide: Option<&'static str>,
}

const fn group(prefix: &'static str, title: &'static str) -> Group {
    Group { prefix, title, guide: None }
}

const fn guided(prefix: &'static str, title: &'static str, guide: &'static str) -> Group {
    Group { prefix, title, guide: Some(guide) }
}

/// All sections, in the order of the page.
pub const GROUPS: &[Group] = &[
    group("", "Functions"),
    group("str", "Strings"),
    group("list", "Lists"),
    group("dict", "Dicts"),
    group("Tensor", "Tensors"),
    group("math", "math"),
    group("io", "io"),
    group("sys", "sys"),
    group("time", "time"),
    group("tree", "tree"),
    group("autodiff", "autodiff"),
    group("op", "op"),
    group("numerics", "numerics"),
    guided("dist", "dist", "meshes.md"),
    guided("dist.collective", "dist.collective", "meshes.md"),
    guided("schedule", "schedule", "kernels.md"),
    guided("tile", "tile", "kernels.md"),
    group("graph", "graph"),
];

/// What only the standard library calls: how the names begin, and the module that programs use.
const OF_LIBRARY: &[(&str, &str)] = &[
    ("io.draw", "std.plot"),
    ("io.show", "std.plot"),
    ("io.read_onnx_tensors", "io.read_onnx_weights"),
    ("io.read_tokenizer", "std.tokens"),
    ("io.encode", "std.tokens"),
    ("io.decode", "std.tokens"),
    ("io.token_", "std.tokens"),
];

/// One row of the page.
pub struct Entry {
    pub name: String,
    /// With parameters, as it is called.
    call: String,
    gives: String,
    doc: &'static str,
}

impl Entry {
    /// What stands before the last dot.
    fn prefix(&self) -> &str {
        self.name.rsplit_once('.').map_or("", |(prefix, _)| prefix)
    }

    /// Whether the row only says what to write instead.
    pub fn is_refused(&self) -> bool {
        self.doc.starts_with("Not supported")
    }
}

/// The rows of a section, in the order of the tables.
pub fn entries(group: &Group) -> Vec<Entry> {
    let calls = CALLS.iter().map(|c| {
        let params = c.params().map(|params| {
            let mut texts: Vec<&str> = vec![];
            for (i, p) in params.iter().enumerate() {
                let first = p.keyword_only && !params[..i].iter().any(|q| q.keyword_only || q.rest);
                texts.extend(first.then_some("*"));
                texts.push(p.text);
            }
            texts.join(", ")
        });
        let call = params.map_or(c.name.to_owned(), |params| format!("{}({params})", c.name));
        Entry { name: c.name.to_owned(), call, gives: c.gives.to_owned(), doc: c.doc }
    });
    let rows = rows().filter_map(|b| {
        let def = b.def();
        let Rule::Params(..) = def.rule else { return None };
        let written = host(b);
        let texts: Vec<&str> = written.params.iter().map(|p| p.text.as_str()).collect();
        let call = format!("{}({})", written.name, texts.join(", "));
        Some(Entry { name: def.name.to_owned(), call, gives: written.result.unwrap_or_default(), doc: def.doc })
    });
    let constants = CONSTANTS.iter().map(|(name, _)| Entry {
        name: name.to_string(),
        call: name.to_string(),
        gives: "float".to_owned(),
        doc: "A constant.",
    });
    let mut all: Vec<Entry> = calls.chain(rows).chain(constants).filter(|e| e.prefix() == group.prefix).collect();
    all.retain(|e| !OF_LIBRARY.iter().any(|(start, _)| e.name.starts_with(start)));
    all
}

/// The programs of the sections, by the beginning of their names.
pub fn examples() -> std::io::Result<BTreeMap<String, String>> {
    let text = std::fs::read_to_string(root().join("compiler/core/examples.md"))?;
    let programs = blocks(&text).into_iter().filter(|b| b.info == "tessera");
    Ok(programs.map(|b| (b.heading, b.text)).collect())
}

/// The page. What the programs print is left open.
pub fn page() -> std::io::Result<String> {
    let examples = examples()?;
    let mut out = String::from(
        "# Built in\n\nWhat programs may call without an import and is no [operator](operators.md): functions, methods and members of modules.\n\
         The rows are the compiler's own: what it checks, and what an editor shows. The tests run every example.\n",
    );
    for group in GROUPS {
        let entries = entries(group);
        let _ = write!(out, "\n## {}\n\n", group.title);
        // A search of the book finds whole words, and a name behind a dot is none.
        let last = |e: &Entry| e.name.rsplit('.').next().map(|name| format!("`{name}`"));
        if entries.iter().any(|e| e.name.contains('.')) {
            let _ = write!(out, "{}\n\n", entries.iter().filter_map(last).collect::<Vec<_>>().join(" "));
        }
        out.push_str("| | gives | |\n|---|---|---|\n");
        for e in entries {
            let gives = if e.gives.is_empty() { String::new() } else { format!("`{}`", e.gives) };
            let _ = writeln!(out, "| `{}` | {} | {} |", cell(&e.call), cell(&gives), cell(e.doc));
        }
        if let Some(program) = examples.get(group.prefix_or_title()) {
            let _ = write!(out, "\n```tessera\n{program}```\n\n```output\n```\n");
        }
        if let Some(guide) = group.guide {
            let _ = write!(out, "\nExamples are in [the guide]({guide}).\n");
        }
    }
    Ok(out)
}

impl Group {
    /// The heading of its program in `compiler/core/examples.md`.
    pub fn prefix_or_title(&self) -> &'static str {
        if self.prefix.is_empty() { self.title } else { self.prefix }
    }
}

/// A text inside a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}
