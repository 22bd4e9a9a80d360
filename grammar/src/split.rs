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
    /// Every string and bracket is closed, and the text ends between items: no item depends on what stands around it.
    pub closed: bool,
}

/// Splits a file. Reads tokens only; errors are reported when an item is parsed.
pub fn split(text: &str) -> SplitFile {
    if let Some(diagnostic) = too_long(text, ItemId::NONE) {
        return SplitFile { items: vec![], diagnostics: vec![diagnostic], closed: false };
    }
    let tokens = lex(text);
    let mut items: Vec<RawItem> = vec![];
    // Decorators wait for their definition.
    let mut decorated = false;
    let mut closed = !tokens.iter().any(|t| matches!(t.kind, Tok::OpenStr | Tok::FBroken));
    // What follows begins a line: the last line has ended, and no backslash joins the next to it.
    let ends = tokens.iter().rev().find(|t| !matches!(t.kind, Tok::Space | Tok::Comment));
    closed &= ends.is_none_or(|t| t.kind == Tok::Break);
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
        closed &= !line.unclosed;
    }
    SplitFile { items, diagnostics: vec![], closed: closed && !decorated }
}

/// [`split`] of a text that an edit has made of `old`, whose pieces are `pieces`. Only what stands around the edit is read,
/// from an item that it left alone to the next such item, where both are closed.
pub fn split_again(old: &str, pieces: &SplitFile, text: &str) -> SplitFile {
    around(old, pieces, text).unwrap_or_else(|| split(text))
}

fn around(old: &str, pieces: &SplitFile, text: &str) -> Option<SplitFile> {
    if !pieces.closed || too_long(text, ItemId::NONE).is_some() {
        return None;
    }
    let (a, b) = (old.as_bytes(), text.as_bytes());
    let head = a.iter().zip(b).take_while(|(x, y)| x == y).count();
    let most = a.len().min(b.len()) - head;
    let tail = a.iter().rev().zip(b.iter().rev()).take(most).take_while(|(x, y)| x == y).count();
    // The item before the last one that begins in front of the edit: all of it is as it was.
    let kept = pieces.items.partition_point(|i| (i.range.start as usize) < head).saturating_sub(2);
    let start = if kept == 0 { 0 } else { pieces.items[kept].range.start as usize };
    // The first item behind the edit, with the line break before it.
    let next = pieces.items.partition_point(|i| (i.range.start as usize) <= a.len() - tail).max(1);
    let (old_end, end) = match pieces.items.get(next) {
        Some(item) => (item.range.start as usize, (item.range.start as usize + b.len()).checked_sub(a.len())?),
        None => (a.len(), b.len()),
    };
    let between = split(text.get(start..end)?);
    if !between.closed {
        return None;
    }
    let moved = |item: &RawItem, from: usize, to: usize| {
        let place = |at: u32| (at as usize - from + to) as u32;
        RawItem { range: place(item.range.start)..place(item.range.end), ..item.clone() }
    };
    let mut items = pieces.items[..kept].to_vec();
    items.extend(between.items.iter().map(|i| moved(i, 0, start)));
    items.extend(pieces.items.get(next..)?.iter().map(|i| moved(i, old_end, end)));
    Some(SplitFile { items, diagnostics: vec![], closed: true })
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

    /// Texts that random edits make of each other, one character or one piece at a time, are split as from nothing.
    #[test]
    fn an_edit_is_split_like_the_whole() {
        const PIECES: [&str; 24] = [
            "def f(x):\n    return x\n",
            "x = 1\n",
            "\n",
            "\r\n",
            "@op.kernel\n",
            "(",
            ")",
            "\"\"\"",
            "f\"{",
            "}\"",
            "'",
            "\\\n",
            "  ",
            "else:\n",
            "elif",
            "# c",
            "struct S:\n    a: int\n",
            "if a:\n    b\n",
            "é",
            "[1,\n2]\n",
            ":",
            "d",
            "=",
            "\t",
        ];
        let mut state = 7u64;
        let mut random = |n: usize| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as usize % n
        };
        let mut around_the_edit = 0;
        for _ in 0..400 {
            let mut text: String = (0..random(20)).map(|_| PIECES[[0, 1, 2, 16, 17, 19][random(6)]]).collect();
            let mut pieces = split(&text);
            for _ in 0..12 {
                let places: Vec<usize> = (0..=text.len()).filter(|i| text.is_char_boundary(*i)).collect();
                let (from, to) = (random(places.len()), random(4));
                let to = (from + to).min(places.len() - 1);
                let by = if random(3) == 0 { "" } else { PIECES[random(PIECES.len())] };
                let mut edited = text.clone();
                edited.replace_range(places[from]..places[to], by);
                around_the_edit += usize::from(around(&text, &pieces, &edited).is_some());
                let again = split_again(&text, &pieces, &edited);
                assert_eq!(again, split(&edited), "{text:?} to {edited:?}");
                (text, pieces) = (edited, again);
            }
        }
        assert!(around_the_edit > 800, "{around_the_edit}");
    }

    #[test]
    fn a_broken_neighbour_stays_alone() {
        let text = "def f(a:\n    x = (a\n    return x\ndef g(): return 1\n";
        let names: Vec<_> = split(text).items.iter().filter_map(|i| i.name.clone()).collect();
        assert_eq!(names, ["f".into(), Arc::<str>::from("g")]);
        assert_eq!(pieces("x = \"\"\"open\ndef f(): pass").len(), 2);
    }
}
