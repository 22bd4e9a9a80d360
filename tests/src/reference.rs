//! The pages of the reference that are written from tables and programs: operators, what else is built in, the standard
//! library, diagnostics.

pub mod diagnostics;
pub mod builtins;

use crate::golden::blocks;
use crate::program::root;
use std::collections::BTreeMap;
use std::fmt::Write;
use tessera_base::ItemId;
use tessera_grammar::ast::{ExprKind, StmtKind, StructDef};
use tessera_grammar::literal::clean_doc;
use tessera_ide::hover::examples_as_code;

/// The program of each operator, by its name: the headings of `compiler/ops/examples.md` and the blocks under them.
pub fn examples() -> std::io::Result<BTreeMap<String, String>> {
    let text = std::fs::read_to_string(root().join("compiler/ops/examples.md"))?;
    let programs = blocks(&text).into_iter().filter(|b| b.info == "tessera");
    Ok(programs.map(|b| (b.heading, b.text)).collect())
}

/// The reference of the operators: the table, with the complete program of each operator in place of the short example
/// that its text has. What the programs print is left open.
pub fn operators() -> std::io::Result<String> {
    let examples = examples()?;
    let page = tessera_ops::surface::docs_markdown();
    let mut sections = page.split("\n## ");
    let mut out = sections.next().unwrap_or("").trim_end().to_owned();
    out.push_str("\nThe tests run every example.\n");
    for section in sections {
        let name = section.lines().next().unwrap_or("");
        let Some(program) = examples.get(name) else {
            let _ = write!(out, "\n## {}\n", section.trim_end());
            continue;
        };
        let text = replaced(section, "tessera", "");
        // Writing to a string does not fail.
        let _ = write!(out, "\n## {}\n\n```tessera\n{program}```\n\n```output\n```\n", text.trim_end());
    }
    Ok(out)
}

/// Every page with its path under `docs`. What programs print and say is left open.
pub fn pages() -> std::io::Result<Vec<(String, String)>> {
    let mut out = vec![
        ("operators.md".to_owned(), operators()?),
        ("builtins.md".to_owned(), builtins::page()?),
        ("std.md".to_owned(), library()),
    ];
    out.extend(diagnostics::pages());
    Ok(out)
}

/// A page with nothing in its blocks of what programs print and say.
pub fn without_outputs(page: &str) -> String {
    let kinds = ["output", "error", "error check-nan"];
    kinds.iter().fold(page.to_owned(), |page, kind| replaced(&page, kind, &format!("```{kind}\n```\n")))
}

/// A text with other lines in place of each block of a kind.
fn replaced(text: &str, kind: &str, by: &str) -> String {
    let (open, mut inside, mut out) = (format!("```{kind}"), false, String::new());
    for line in text.lines() {
        if inside {
            inside = line != "```";
        } else if line == open {
            inside = true;
            out.push_str(by);
        } else {
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}

/// The reference of the standard library: what its files say of themselves. Names that begin with `_` are left out.
pub fn library() -> String {
    let mut out = String::from(
        "# The standard library\n\nA module is imported by its name: `import std.nn as nn`. An example is written as in the file of its \
         module; elsewhere\nthe module's name stands before the name: `nn.linear`. The tests run every example.\n\n",
    );
    // What the compiler puts between a function and what is made of it is for the compiler alone.
    let files = tessera_ide::library::FILES.iter().filter(|(name, ..)| *name != "calls");
    let pages: Vec<(&str, String, String)> = files.map(|(name, _, text)| module(name, text)).collect();
    for (name, about, _) in &pages {
        let _ = writeln!(out, "- [{name}](#{name}): {}", about.lines().next().unwrap_or(""));
    }
    for (name, about, functions) in &pages {
        let _ = write!(out, "\n## {name}\n\n{about}{functions}");
    }
    out
}

/// Name, text and definitions of a module.
fn module<'a>(name: &'a str, text: &str) -> (&'a str, String, String) {
    let (mut about, mut functions) = (String::new(), String::new());
    for item in tessera_grammar::split(text).items {
        let own = &text[item.range.start as usize..item.range.end as usize];
        for (i, stmt) in tessera_grammar::parse_item(own, ItemId(0)).stmts.iter().enumerate() {
            let (name, head, doc) = match &stmt.kind {
                StmtKind::Def(f) => (&f.name.text, own[..f.head.end as usize].trim_end_matches(':').to_owned(), &f.doc),
                StmtKind::Struct(s) => (&s.name.text, fields(own, s), &s.doc),
                StmtKind::Expr(e) if about.is_empty() && i == 0 => {
                    if let ExprKind::Str(text) = &e.kind {
                        about = markdown(text);
                    }
                    continue;
                }
                _ => continue,
            };
            if !name.starts_with('_') {
                let doc = doc.as_deref().map(markdown).unwrap_or_default();
                let _ = write!(functions, "\n### {name}\n\n```python\n{head}\n```\n");
                if !doc.is_empty() {
                    let _ = write!(functions, "\n{doc}");
                }
            }
        }
    }
    (name, about, functions)
}

/// A struct with its fields, without its text.
fn fields(own: &str, s: &StructDef) -> String {
    let mut out = format!("{}:", own[..s.head.end as usize].trim_end_matches(':'));
    for field in &s.fields {
        let end = field.default.as_ref().map_or(field.ty.span.end, |d| d.span.end);
        let _ = write!(out, "\n    {}", &own[field.name.span.start as usize..end as usize]);
    }
    out
}

/// A docstring as Markdown: its examples, which end at an empty line, are blocks.
fn markdown(doc: &str) -> String {
    examples_as_code(&clean_doc(doc), "python")
}
