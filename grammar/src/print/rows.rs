//! A file as rows: statements and comment lines, with their levels and the blank lines before
//! them. Lines with several statements become several rows.

use super::{
    pieces::{Note, Piece, pieces},
    spelling::comment,
};
use crate::{
    lines::width,
    token::{Tok, Token},
};
use std::{borrow::Cow, ops::Range};

pub(super) enum Content<'t> {
    Comment(Cow<'t, str>),
    Code { pieces: Vec<Piece<'t>>, trailing: Option<Cow<'t, str>> },
}

pub(super) struct Row<'t> {
    pub level: usize,
    /// Blank lines before it.
    pub blank: usize,
    pub content: Content<'t>,
}

impl Row<'_> {
    /// The first word of code.
    fn first(&self) -> Option<Tok> {
        match &self.content {
            Content::Code { pieces, .. } => pieces.first().map(|p| p.kind),
            Content::Comment(_) => None,
        }
    }

    fn opens_block(&self) -> bool {
        match &self.content {
            Content::Code { pieces, .. } => {
                pieces.last().is_some_and(|p| matches!(p.kind, Tok::BlockColon | Tok::Colon))
            }
            Content::Comment(_) => false,
        }
    }
}

/// The rows of a file whose layout had no errors.
pub(super) fn rows<'t>(text: &'t str, tokens: &[Token]) -> Vec<Row<'t>> {
    let mut maker = Maker { text, rows: vec![], widths: vec![0], end: 0, blank: 0 };
    let mut level = 0;
    let mut i = 1;
    while i < tokens.len() {
        match tokens[i].kind {
            Tok::Dedent => {
                level -= 1;
                i += 1;
                continue;
            }
            Tok::Newline => {
                i += 1;
                continue;
            }
            _ => {}
        }
        let stop =
            (i..tokens.len()).find(|j| matches!(tokens[*j].kind, Tok::Newline | Tok::Indent)).unwrap_or(tokens.len());
        maker.comments(tokens[i].start, level);
        maker.widths.truncate(level + 1);
        maker.line(&tokens[i..stop], level);
        if tokens.get(stop).is_some_and(|t| t.kind == Tok::Indent) {
            level += 1;
            let start = tokens.get(stop + 1).map_or(0, |t| t.start as usize);
            let line = text[..start].rfind(['\n', '\r']).map_or(0, |n| n + 1);
            maker.widths.push(width(&text[line..start]));
        }
        i = stop + 1;
    }
    maker.comments(text.len() as u32, 0);
    let mut rows = maker.rows;
    blank_lines(&mut rows);
    rows
}

/// A comment between two tokens.
struct Between<'t> {
    text: Cow<'t, str>,
    own_line: bool,
    column: usize,
    blank: usize,
}

/// The comments between two places, and the blank lines behind the last.
fn between(text: &str, range: Range<usize>) -> (Vec<Between<'_>>, usize) {
    let mut out = vec![];
    let mut own_line = range.start == 0;
    let mut breaks = usize::from(own_line);
    let mut column = 0;
    let mut rest = &text[range];
    while let Some(c) = rest.chars().next() {
        let length = match c {
            '#' => {
                let length = rest.find(['\n', '\r']).unwrap_or(rest.len());
                out.push(Between { text: comment(&rest[..length]), own_line, column, blank: breaks.saturating_sub(1) });
                breaks = 0;
                length
            }
            '\n' | '\r' => {
                breaks += 1;
                own_line = true;
                column = 0;
                if rest.starts_with("\r\n") { 2 } else { 1 }
            }
            '\t' => {
                column = column / 8 * 8 + 8;
                1
            }
            _ => {
                column += 1;
                c.len_utf8()
            }
        };
        rest = &rest[length..];
    }
    (out, breaks.saturating_sub(1))
}

struct Maker<'t> {
    text: &'t str,
    rows: Vec<Row<'t>>,
    /// The columns of the open levels in the source.
    widths: Vec<usize>,
    /// Where the last token ended.
    end: u32,
    /// Blank lines before the next statement.
    blank: usize,
}

impl<'t> Maker<'t> {
    /// The comments up to `start`, where a statement of `level` (or the end of the file) follows.
    fn comments(&mut self, start: u32, level: usize) {
        let (comments, blank) = between(self.text, self.end as usize..start as usize);
        let deepest = self.widths.len() - 1;
        for found in comments {
            if !found.own_line
                && let Some(Row { content: Content::Code { trailing, .. }, .. }) = self.rows.last_mut()
            {
                *trailing = Some(found.text);
                continue;
            }
            // Between a deeper block and what follows, the column tells where a comment belongs.
            let level = (level..=deepest).rev().find(|l| self.widths[*l] <= found.column).unwrap_or(level);
            self.rows.push(Row { level, blank: found.blank, content: Content::Comment(found.text) });
        }
        self.blank = blank;
        self.end = start;
    }

    /// The statements of one logical line.
    fn line(&mut self, tokens: &[Token], level: usize) {
        let suite = suite(tokens);
        let (head, rest) = tokens.split_at(suite.unwrap_or(0));
        if !head.is_empty() {
            self.statement(head, level);
        }
        let level = level + usize::from(!head.is_empty());
        let mut depth = 0;
        for part in rest.split(|t| {
            depth += i32::from(t.kind.closer().is_some()) - i32::from(t.kind.is_closer());
            depth == 0 && t.kind == Tok::Semi
        }) {
            self.statement(part, level);
        }
        self.end = tokens.last().map_or(self.end, |t| t.end);
    }

    fn statement(&mut self, tokens: &[Token], level: usize) {
        if tokens.is_empty() {
            return;
        }
        let notes = |from: u32, to: u32| -> Vec<Note<'t>> {
            let (found, _) = between(self.text, from as usize..to.max(from) as usize);
            found.into_iter().map(|c| Note { text: c.text, own_line: c.own_line }).collect()
        };
        let pieces = pieces(self.text, tokens, notes);
        let blank = std::mem::take(&mut self.blank);
        self.rows.push(Row { level, blank, content: Content::Code { pieces, trailing: None } });
    }
}

/// Where the statements of a one-line block begin: behind the `:` of its head.
fn suite(tokens: &[Token]) -> Option<usize> {
    if !tokens.first()?.kind.opens_block() {
        return None;
    }
    let mut depth = 0;
    let mut lambdas = 0;
    for (i, token) in tokens.iter().enumerate() {
        match token.kind {
            Tok::Lambda if depth == 0 => lambdas += 1,
            Tok::Colon if depth == 0 && lambdas > 0 => lambdas -= 1,
            Tok::Colon if depth == 0 => return Some(i + 1),
            kind => depth += i32::from(kind.closer().is_some()) - i32::from(kind.is_closer()),
        }
    }
    None
}

/// Puts the blank lines in canonical form; until here `blank` is what the source has.
fn blank_lines(rows: &mut [Row]) {
    let leads = leads_definition(rows);
    let around = |level: usize| if level == 0 { 2 } else { 1 };
    // Levels of the definitions that are open.
    let mut open: Vec<usize> = vec![];
    for i in 0..rows.len() {
        let level = rows[i].level;
        let mut ended: Option<usize> = None;
        while let Some(definition) = open.pop_if(|d| level <= *d) {
            ended = Some(definition);
        }
        let first = rows[i].first();
        if matches!(first, Some(Tok::Def | Tok::Struct)) {
            open.push(level);
        }
        let Some((above, [row, ..])) = rows.split_at_mut_checked(i) else { continue };
        let Some(above) = above.last() else {
            row.blank = 0;
            continue;
        };
        let in_head = above.opens_block() && above.level < level || above.first() == Some(Tok::At);
        let belongs = leads[i - 1] && above.first().is_none() && above.level == level && row.blank == 0;
        row.blank = if in_head || belongs || matches!(first, Some(Tok::Elif | Tok::Else)) {
            0
        } else if leads[i] {
            around(level)
        } else if let Some(definition) = ended {
            around(definition)
        } else {
            row.blank.min(around(level))
        };
    }
}

/// For each row: whether it begins a definition, or is a comment right above one.
fn leads_definition(rows: &[Row]) -> Vec<bool> {
    let mut leads = vec![false; rows.len()];
    for i in (0..rows.len()).rev() {
        leads[i] = match rows[i].first() {
            Some(first) => matches!(first, Tok::Def | Tok::Struct | Tok::At),
            None => rows.get(i + 1).is_some_and(|next| leads[i + 1] && next.level == rows[i].level && next.blank == 0),
        };
    }
    leads
}
