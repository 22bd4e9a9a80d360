//! Texts that change: what clients send, formatting, renaming.

use super::server::Refused;
use super::world::{Ruler, World};
use lsp_types::{TextDocumentContentChangeEvent, TextEdit, Uri, WorkspaceEdit};
use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use tessera_base::FileId;
use tessera_ide::analysis::Place;
use tessera_ide::{imports, indent, rename};

impl World {
    /// A text with the changes of a client, one after the other.
    pub fn changed(&self, text: &str, changes: Vec<TextDocumentContentChangeEvent>) -> String {
        let mut text = text.to_owned();
        for change in changes {
            match change {
                TextDocumentContentChangeEvent::TextDocumentContentChangePartial(part) => {
                    let range = self.bytes(&text, part.range);
                    text.replace_range(range, &part.text);
                }
                TextDocumentContentChangeEvent::TextDocumentContentChangeWholeDocument(whole) => text = whole.text,
            }
        }
        text
    }

    /// The edits that give a file its canonical form; of a part, those that touch it. None where it cannot be read.
    pub fn formatting(&self, id: FileId, part: Option<lsp_types::Range>) -> Option<Vec<TextEdit>> {
        let cx = self.analysis(id);
        let text = cx.text(id);
        let formatted = tessera_grammar::format(&text).ok()?;
        let part = part.map(|range| self.bytes(&text, range));
        let ruler = Ruler::of(self.units, &text);
        let touches = |r: &Range<usize>| part.as_ref().is_none_or(|p| r.start <= p.end && p.start <= r.end);
        let edits = line_edits(&text, &formatted).into_iter().filter(|(range, _)| touches(range));
        Some(edits.map(|(range, new_text)| TextEdit { range: ruler.range(range), new_text }).collect())
    }

    /// The white space before the line that has just been begun there; no other line is touched.
    pub fn begun_line(&self, id: FileId, at: lsp_types::Position) -> Vec<TextEdit> {
        let text = self.analysis(id).text(id);
        let start = self.byte(&text, lsp_types::Position { line: at.line, character: 0 });
        let Some(begun) = indent::begun(&text, start) else { return vec![] };
        let new_text = " ".repeat(begun.spaces);
        match text[begun.white.clone()] == new_text {
            true => vec![],
            false => vec![TextEdit { range: self.range(&text, begun.white), new_text }],
        }
    }

    /// The imports of all files as they are to be when files or folders have moved, from where to where.
    pub fn imports_after_moving(&mut self, files: &[(PathBuf, PathBuf)]) -> WorkspaceEdit {
        let moved = |path: &Path| {
            let found = files.iter().find_map(|(from, to)| Some((to, path.strip_prefix(from).ok()?)));
            // What joins nothing to the path of a file makes a folder of it.
            let there = |(to, rest): (&PathBuf, &Path)| match rest == Path::new("") {
                true => to.clone(),
                false => to.join(rest),
            };
            found.map_or_else(|| path.to_owned(), there)
        };
        let mut changes: HashMap<Uri, Vec<TextEdit>> = HashMap::new();
        for id in self.all_files() {
            let cx = self.analysis(id);
            for (place, new_text) in imports::after_moving(&cx, id, &moved) {
                let Some(location) = self.location(&cx, &place) else { continue };
                changes.entry(location.uri).or_default().push(TextEdit { range: location.range, new_text });
            }
        }
        WorkspaceEdit { changes: Some(changes), ..WorkspaceEdit::default() }
    }

    /// See [`rename::rename`].
    pub fn rename(&mut self, id: FileId, at: lsp_types::Position, to: &str) -> Result<WorkspaceEdit, Refused> {
        let files = self.all_files();
        let cx = self.analysis(id);
        let byte = self.byte(&cx.text(id), at);
        let places = rename::rename(&cx, id, byte, to, &files).map_err(Refused::because)?;
        Ok(self.replacing(&places, to, id))
    }

    /// The edits that write a text in some places.
    fn replacing(&self, places: &[Place], new_text: &str, id: FileId) -> WorkspaceEdit {
        let cx = self.analysis(id);
        let mut changes: HashMap<Uri, Vec<TextEdit>> = HashMap::new();
        for location in places.iter().filter_map(|p| self.location(&cx, p)) {
            let edit = TextEdit { range: location.range, new_text: new_text.to_owned() };
            changes.entry(location.uri).or_default().push(edit);
        }
        WorkspaceEdit { changes: Some(changes), ..WorkspaceEdit::default() }
    }
}

/// What makes `new` of `old`, by whole lines: the parts between lines that stay.
pub fn line_edits(old: &str, new: &str) -> Vec<(Range<usize>, String)> {
    let diff = similar::TextDiff::from_lines(old, new);
    let starts = |text: &str| -> Vec<usize> {
        let mut at = 0;
        let ends = text.split_inclusive('\n').map(|l| {
            at += l.len();
            at
        });
        std::iter::once(0).chain(ends).collect()
    };
    let (before, after) = (starts(old), starts(new));
    let at = |starts: &[usize], line: usize| starts[line.min(starts.len() - 1)];
    let changed = diff.ops().iter().filter(|op| op.tag() != similar::DiffTag::Equal);
    let edit = |op: &similar::DiffOp| {
        let (o, n) = (op.old_range(), op.new_range());
        let range = at(&before, o.start)..at(&before, o.end);
        (range, new[at(&after, n.start)..at(&after, n.end)].to_owned())
    };
    changed.map(edit).collect()
}

#[cfg(test)]
mod tests {
    use super::line_edits;

    #[test]
    fn edits_make_the_new_text_of_the_old_one() {
        let texts = ["", "a\n", "a\nb\nc\n", "a\nc\n", "x\na\nb\nc", "a\n\n\nb\nc\n", "é\na\n"];
        for old in texts {
            for new in texts {
                let mut text = old.to_owned();
                for (range, part) in line_edits(old, new).into_iter().rev() {
                    text.replace_range(range, &part);
                }
                assert_eq!(text, new, "of {old:?}");
            }
        }
    }
}
