//! `:save`: the inputs of a session as a program.

use std::collections::BTreeMap;
use tessera_base::ItemId;
use tessera_grammar::ast::ExprKind;
use tessera_grammar::token::{Tok, lex};
use tessera_grammar::{RawKind, parse_expr, split};

/// A statement or definition.
struct Entry {
    text: String,
    /// Of a definition.
    name: Option<String>,
    /// Whether it is an expression, and whether that may do more than have a value.
    expr: Option<bool>,
}

/// The program that some inputs are, one after the other. A definition that came again stands for the first one; expressions
/// stay where they are calls, or where `_` names them later.
pub fn program(inputs: &[String]) -> String {
    let mut entries: Vec<Entry> = vec![];
    let mut defined: BTreeMap<String, usize> = BTreeMap::new();
    for input in inputs {
        for item in &split(input).items {
            let text =
                input.get(item.range.start as usize..item.range.end as usize).unwrap_or("").trim_end().to_owned();
            let name = (item.kind != RawKind::Stmt).then(|| item.name.as_ref().map(ToString::to_string)).flatten();
            if let Some(at) = name.as_ref().and_then(|n| defined.get(n).copied()) {
                entries[at].text = text;
                continue;
            }
            name.iter().for_each(|n| _ = defined.insert(n.clone(), entries.len()));
            let (expr, wrong) = parse_expr(text.trim_end_matches(';'), ItemId(0));
            let is_expr = name.is_none() && wrong.is_empty();
            let expr = is_expr.then_some(matches!(expr.kind, ExprKind::Call { .. }));
            entries.push(Entry { text, name, expr });
        }
    }
    let mut out = String::new();
    // The variable that stands for `_`.
    let mut last: Option<String> = None;
    for (i, entry) in entries.iter().enumerate() {
        let text = with_last(&entry.text, last.as_deref());
        let until = entries[i + 1..].iter().position(|e| e.expr.is_some()).map_or(entries.len(), |n| i + n + 2);
        let named = || entries[i + 1..until].iter().any(|e| mentions_last(&e.text));
        match entry.expr {
            Some(_) if named() => {
                let name = format!("last_{}", i + 1);
                out.push_str(&format!("{name} = {}\n", text.trim_end_matches(';')));
                last = Some(name);
            }
            Some(false) => {}
            _ if entry.name.is_some() => out.push_str(&format!("\n{text}\n\n")),
            _ => out.push_str(&format!("{text}\n")),
        }
    }
    out.trim_start().to_owned()
}

fn mentions_last(text: &str) -> bool {
    lex(text).iter().any(|t| t.kind == Tok::Name && t.text(text) == "_")
}

/// The text with a variable for `_`.
fn with_last(text: &str, last: Option<&str>) -> String {
    let Some(last) = last.filter(|_| mentions_last(text)) else { return text.to_owned() };
    let tokens = lex(text);
    tokens.iter().map(|t| if t.kind == Tok::Name && t.text(text) == "_" { last } else { t.text(text) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_become_a_program() {
        let inputs = [
            "x = 1",
            "x + 1",
            "y = _ * 2",
            "def f(n):\n    return n\n",
            "y",
            "print(y)",
            "def f(n):\n    return n + 1",
            "f(2)",
        ];
        let inputs = inputs.map(str::to_owned);
        assert_eq!(
            program(&inputs),
            "x = 1\nlast_2 = x + 1\ny = last_2 * 2\n\ndef f(n):\n    return n + 1\n\nprint(y)\nf(2)\n"
        );
        assert_eq!(program(&[]), "");
    }
}
