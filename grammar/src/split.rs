//! A file cut into its top-level items, on tokens: one broken function cannot swallow its
//! neighbours, and an item is the unit of parsing again.

use crate::{
    lines::{Line, logical_lines},
    parse::too_long,
    token::{Tok, Token, lex},
};
use std::{ops::Range, sync::Arc};
use tessera_base::{Diagnostic, ItemId};

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RawKind {
    Def,
    Struct,
    /// Any other statement, and what cannot be read.
    Stmt,
}

/// One top-level piece of a file.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct RawItem {
    pub kind: RawKind,
    /// The name of a `def` or `struct`, even if the rest of it is broken.
    pub name: Option<Arc<str>>,
    /// Bytes in the file, from the first decorator to the last token. Comments around it do not
    /// belong to it, so that editing them leaves the item alone.
    pub range: Range<u32>,
}

/// A file as items, in order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SplitFile {
    pub items: Vec<RawItem>,
    /// What concerns the file as a whole; spans belong to no item.
    pub diagnostics: Vec<Diagnostic>,
}

/// Splits a file. Reads tokens only; errors are reported when an item is parsed.
pub fn split(text: &str) -> SplitFile {
    if let Some(diagnostic) = too_long(text, ItemId::NONE) {
        return SplitFile { items: vec![], diagnostics: vec![diagnostic] };
    }
    let tokens = lex(text);
    let mut items: Vec<RawItem> = vec![];
    // Decorators wait for their definition.
    let mut decorated = false;
    for line in logical_lines(text, &tokens) {
        let first = tokens[line.first as usize].kind;
        let end = tokens[line.end as usize - 1].end;
        let continues =
            !line.indent.is_empty() || decorated || matches!(first, Tok::Elif | Tok::Else | Tok::Except | Tok::Finally);
        let margin = line.indent.is_empty();
        match items.last_mut() {
            Some(item) if continues => {
                item.range.end = end;
                if decorated && margin {
                    (item.kind, item.name) = kind_and_name(text, &tokens, &line);
                }
            }
            _ => {
                let (kind, name) = kind_and_name(text, &tokens, &line);
                items.push(RawItem { kind, name, range: line.indent.start..end });
            }
        }
        if margin {
            decorated = first == Tok::At;
        }
    }
    SplitFile { items, diagnostics: vec![] }
}

fn kind_and_name(text: &str, tokens: &[Token], line: &Line) -> (RawKind, Option<Arc<str>>) {
    let mut words = tokens[line.first as usize..line.end as usize].iter().filter(|t| !t.kind.is_trivia());
    let kind = match words.next().map(|t| t.kind) {
        Some(Tok::Def) => RawKind::Def,
        Some(Tok::Struct) => RawKind::Struct,
        _ => return (RawKind::Stmt, None),
    };
    let name = words.next().filter(|t| t.kind == Tok::Name).map(|t| Arc::from(t.text(text)));
    (kind, name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(text: &str) -> Vec<(RawKind, &str)> {
        split(text).items.iter().map(|i| (i.kind, &text[i.range.start as usize..i.range.end as usize])).collect()
    }

    #[test]
    fn items_are_found_on_tokens() {
        use RawKind::*;
        let text = "# a\nimport a\n\n@x\n@y(1)\ndef f():\n  return 1 # c\n# d\nstruct S:\n  a: int\nif a:\n  b\nelse:\n  c\nx = [\n1]\n";
        let expected = [
            (Stmt, "import a"),
            (Def, "@x\n@y(1)\ndef f():\n  return 1"),
            (Struct, "struct S:\n  a: int"),
            (Stmt, "if a:\n  b\nelse:\n  c"),
            (Stmt, "x = [\n1]"),
        ];
        assert_eq!(pieces(text), expected);
        assert_eq!(split(text).items[1].name.as_deref(), Some("f"));
    }

    #[test]
    fn a_broken_neighbour_stays_alone() {
        let text = "def f(a:\n    x = (a\n    return x\ndef g(): return 1\n";
        let names: Vec<_> = split(text).items.iter().filter_map(|i| i.name.clone()).collect();
        assert_eq!(names, ["f".into(), Arc::<str>::from("g")]);
        assert_eq!(pieces("x = \"\"\"open\ndef f(): pass").len(), 2);
    }
}
