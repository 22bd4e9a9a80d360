//! Indentation: where blocks open and close.

use super::{Pass, Previous};
use crate::{
    lines::{Line, width},
    token::{Tok, Token},
};
use std::ops::Range;
use tessera_base::{Code, Diagnostic};

/// An open block.
#[derive(Clone, Default)]
pub(super) struct Level {
    /// The white space of its lines.
    indent: Range<u32>,
    /// Another spelling of it that was reported once.
    also: Option<Range<u32>>,
    /// Lines that are indented for no reason: no block opens or closes for them.
    unasked: bool,
}

#[derive(PartialEq, Clone, Copy)]
enum Relation {
    Same,
    Deeper,
    Shallower,
    /// Tabs and spaces disagree.
    Mixed,
}

/// `2 tabs`, `4 spaces`, `1 tab and 2 spaces`.
fn described(indent: &str) -> String {
    let count = |c: char, word: &str| match indent.matches(c).count() {
        0 => None,
        1 => Some(format!("1 {word}")),
        n => Some(format!("{n} {word}s")),
    };
    match (count('\t', "tab"), count(' ', "space")) {
        (Some(tabs), Some(spaces)) => format!("{tabs} and {spaces}"),
        (Some(one), None) | (None, Some(one)) => one,
        (None, None) => "nothing".into(),
    }
}

impl Pass<'_> {
    fn indent_text(&self, range: &Range<u32>) -> &str {
        &self.text[range.start as usize..range.end as usize]
    }

    fn relation(&self, indent: &Range<u32>, level: &Level) -> Relation {
        let (new, old) = (self.indent_text(indent), self.indent_text(&level.indent));
        if new == old || level.also.as_ref().is_some_and(|also| self.indent_text(also) == new) {
            Relation::Same
        } else if new.starts_with(old) {
            Relation::Deeper
        } else if old.starts_with(new) {
            Relation::Shallower
        } else {
            Relation::Mixed
        }
    }

    /// Opens and closes blocks for the line that comes next.
    pub(super) fn indent_line(&mut self, line: &Line) {
        let level = self.level(self.levels.len() - 1);
        match self.relation(&line.indent, &level) {
            Relation::Same => self.no_block(),
            Relation::Deeper => self.deeper(line),
            Relation::Shallower => {
                self.no_block();
                self.shallower(line);
            }
            Relation::Mixed => self.mixed(line),
        }
    }

    fn level(&self, index: usize) -> Level {
        self.levels.get(index).cloned().unwrap_or_default()
    }

    fn close_level(&mut self) -> Option<Level> {
        if self.levels.len() < 2 {
            return None;
        }
        let level = self.levels.pop()?;
        if !level.unasked {
            self.push_made(Tok::Dedent);
        }
        Some(level)
    }

    /// Whether the previous line wants a block: it ends with `:`, or is a header without one.
    fn wants_block(&self, previous: Previous) -> bool {
        let first = self.out[previous.first].kind;
        self.out[previous.last].kind == Tok::Colon || first.opens_block() && !previous.colon
    }

    fn deeper(&mut self, line: &Line) {
        match self.previous {
            Some(previous) if self.wants_block(previous) => self.open_block(previous, line.indent.clone()),
            _ => {
                let place = self.span(line.indent.start, line.indent.end);
                let diagnostic = Diagnostic::new(
                    Code::E0004,
                    place,
                    "this line is indented more than the one above, which opens no block",
                )
                .here(format!("{} here", described(self.indent_text(&line.indent))))
                .help("give it the indentation of the line above, or end that line with `:` if it is to open a block");
                self.report(self.out.len(), diagnostic);
                self.levels.push(Level { indent: line.indent.clone(), also: None, unasked: true });
            }
        }
    }

    fn open_block(&mut self, previous: Previous, indent: Range<u32>) {
        // The mark at the end of the header becomes the indent.
        let newline = self.out.pop();
        if self.out[previous.last].kind == Tok::Colon {
            self.out[previous.last].kind = Tok::BlockColon;
        } else {
            if !previous.flagged {
                self.missing_colon(previous);
            }
            self.push_made(Tok::BlockColon);
        }
        self.out.push(Token { kind: Tok::Indent, ..newline.unwrap_or(self.made(Tok::Indent)) });
        self.levels.push(Level { indent, also: None, unasked: false });
    }

    fn missing_colon(&mut self, previous: Previous) {
        let end = self.out[previous.last].end;
        let word = self.out[previous.first].text(self.text);
        let diagnostic = Diagnostic::new(
            Code::E0008,
            self.span(end, end),
            format!("the `{word}` line opens a block, but has no `:`"),
        )
        .here("`:` is missing here")
        .fix("insert `:`", self.span(end, end), ":");
        self.report(previous.last, diagnostic);
    }

    /// A line that is not deeper follows: a header before it has no block.
    fn no_block(&mut self) {
        let Some(previous) = self.previous else { return };
        let first = self.out[previous.first];
        if self.out[previous.last].kind != Tok::Colon || !first.kind.opens_block() {
            return;
        }
        self.previous = None;
        let word = first.text(self.text);
        let colon = self.out[previous.last];
        let diagnostic = Diagnostic::new(
            Code::E0004,
            self.span(first.start, colon.end),
            format!("the block of this `{word}` is missing"),
        )
        .here("no line below is indented more")
        .help("indent the lines that belong to it, or write `pass` for an empty block");
        if !previous.flagged {
            self.report(previous.last, diagnostic);
        }
        self.out[previous.last].kind = Tok::BlockColon;
        if let Some(newline) = self.out.last_mut() {
            newline.kind = Tok::Indent;
        }
        for kind in [Tok::Missing, Tok::Newline, Tok::Dedent] {
            self.push_made(kind);
        }
    }

    fn shallower(&mut self, line: &Line) {
        while self.levels.len() > 1
            && self.relation(&line.indent, &self.level(self.levels.len() - 1)) == Relation::Shallower
        {
            let inner = self.level(self.levels.len() - 1);
            if self.relation(&line.indent, &self.level(self.levels.len() - 2)) == Relation::Deeper {
                self.between(line, &inner);
                self.levels.pop();
                self.levels.push(Level { indent: line.indent.clone(), ..inner });
                return;
            }
            self.close_level();
        }
        if self.relation(&line.indent, &self.level(self.levels.len() - 1)) == Relation::Mixed {
            self.mixed(line);
        }
    }

    /// The line stands between two open levels; it is taken to belong to the inner one.
    fn between(&mut self, line: &Line, inner: &Level) {
        if inner.unasked {
            return;
        }
        let outer = self.level(self.levels.len() - 2);
        let place = self.span(line.indent.start, line.indent.end);
        let diagnostic = Diagnostic::new(Code::E0004, place, "the indentation of this line matches no open block")
            .here(format!("{} here", described(self.indent_text(&line.indent))))
            .with_label(
                self.span(inner.indent.start, inner.indent.end),
                format!("{} in the block above", described(self.indent_text(&inner.indent))),
            )
            .help(format!(
                "indent it by {} to stay in the block, or by {} to leave it",
                described(self.indent_text(&inner.indent)),
                described(self.indent_text(&outer.indent))
            ));
        self.report(self.out.len(), diagnostic);
    }

    /// Tabs and spaces that cannot be compared. Reported once per block; widths decide.
    fn mixed(&mut self, line: &Line) {
        let top = self.level(self.levels.len() - 1);
        let (new, old) = (described(self.indent_text(&line.indent)), described(self.indent_text(&top.indent)));
        let place = self.span(line.indent.start, line.indent.end);
        let diagnostic =
            Diagnostic::new(Code::E0005, place, "tabs and spaces are mixed in the indentation of one block")
                .here(format!("{new} here"))
                .with_label(self.span(top.indent.start, top.indent.end), format!("{old} here"))
                .help(format!("indent both lines alike; {new} and {old} cannot be compared"));
        self.report(self.out.len(), diagnostic);
        let wants = self.previous.filter(|p| self.out[p.last].kind == Tok::Colon);
        let columns = |text: &str, tab: usize| text.bytes().map(|b| if b == b'\t' { tab } else { 1 }).sum::<usize>();
        let text = self.indent_text(&line.indent);
        let same = |level: &Level| {
            let old = self.indent_text(&level.indent);
            width(text) == width(old) || [2, 4, 8].iter().any(|tab| columns(text, *tab) == columns(old, *tab))
        };
        if let Some(previous) = wants
            && !self.levels.iter().any(same)
        {
            return self.open_block(previous, line.indent.clone());
        }
        let target = self.levels.iter().rposition(same).unwrap_or(self.levels.len() - 1);
        self.no_block();
        while self.levels.len() > target + 1 {
            self.close_level();
        }
        if let Some(level) = self.levels.last_mut() {
            level.also = Some(line.indent.clone());
        }
    }

    /// The end of the text closes everything.
    pub(super) fn finish(&mut self) {
        self.no_block();
        while self.close_level().is_some() {}
    }
}
