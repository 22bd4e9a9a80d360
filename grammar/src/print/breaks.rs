//! One row as one line, or over several where it does not fit.

use super::{
    INDENT, WIDTH,
    pieces::{Piece, Role},
};
use crate::token::Tok;
use std::ops::Range;

/// Writes a row whose first column is `indent`.
pub(super) fn write(pieces: &[Piece], indent: usize, out: &mut String) {
    let mut writer = Writer { pieces, close: closers(pieces), out, column: indent };
    writer.sequence(0..pieces.len(), indent, 0, false);
}

/// For each opening bracket, its closing one.
fn closers(pieces: &[Piece]) -> Vec<usize> {
    let mut close = vec![0; pieces.len()];
    let mut open = vec![];
    for (i, piece) in pieces.iter().enumerate() {
        if piece.kind.closer().is_some() {
            open.push(i);
        } else if piece.kind.is_closer()
            && let Some(opener) = open.pop()
        {
            close[opener] = i;
        }
    }
    close
}

/// Brackets of one line that are broken to make it fit; a longer line stays too long.
const BROKEN_MAX: usize = 32;

/// Columns of a word; of its first line if it has several.
fn columns(text: &str) -> usize {
    text.split('\n').next().unwrap_or("").chars().count()
}

struct Writer<'p, 't> {
    pieces: &'p [Piece<'t>],
    close: Vec<usize>,
    out: &'p mut String,
    column: usize,
}

impl Writer<'_, '_> {
    fn newline(&mut self, indent: usize) {
        self.out.push('\n');
        self.out.extend(std::iter::repeat_n(' ', indent));
        self.column = indent;
    }

    fn text(&mut self, text: &str) {
        self.out.push_str(text);
        match text.rsplit_once('\n') {
            Some((_, last)) => self.column = last.chars().count(),
            None => self.column += text.chars().count(),
        }
    }

    fn word(&mut self, i: usize, space: bool) {
        if space && self.pieces[i].space {
            self.text(" ");
        }
        let text = self.pieces[i].text.clone();
        self.text(&text);
    }

    /// The end of what begins at `i`: behind its closing bracket, or the word.
    fn after(&self, i: usize) -> usize {
        if self.close[i] > i { self.close[i] + 1 } else { i + 1 }
    }

    // ---- Measures ----------------------------------------------------------------------------

    /// Columns of a range on one line; none if something in it must be broken.
    fn flat(&self, range: Range<usize>) -> Option<usize> {
        let mut width = 0;
        for i in range.clone() {
            let piece = &self.pieces[i];
            if i > range.start && !piece.notes.is_empty() || self.close[i] > i && self.stays_broken(i) {
                return None;
            }
            width += columns(&piece.text) + usize::from(i > range.start && piece.space);
        }
        Some(width)
    }

    /// Columns of a range as if nothing in it had to be broken, without the commas that breaking
    /// adds: the same before and after formatting.
    fn plain(&self, range: Range<usize>) -> usize {
        let comma =
            |i: usize| self.pieces[i].kind == Tok::Comma && self.pieces.get(i + 1).is_some_and(|p| p.kind.is_closer());
        let width = |i: usize| columns(&self.pieces[i].text) + usize::from(i > range.start && self.pieces[i].space);
        range.clone().filter(|i| !comma(*i)).map(width).sum()
    }

    /// A comma before the closing bracket keeps a bracket broken, unless it makes a tuple.
    fn stays_broken(&self, open: usize) -> bool {
        let close = self.close[open];
        if close < open + 2 || self.pieces[close - 1].kind != Tok::Comma {
            return false;
        }
        let tuple = matches!(self.pieces[open].role, Role::Group | Role::Index | Role::Type);
        !(tuple && self.items(open).len() == 1)
    }

    /// The parts between the commas of a bracket.
    fn items(&self, open: usize) -> Vec<Range<usize>> {
        let close = self.close[open];
        let mut out = vec![];
        let mut start = open + 1;
        let mut i = start;
        // Commas of `lambda a, b:` and `for a, b in` separate nothing.
        let mut lambdas = 0;
        let mut targets = false;
        while i < close {
            match self.pieces[i].kind {
                Tok::Lambda => lambdas += 1,
                Tok::Colon if lambdas > 0 => lambdas -= 1,
                Tok::For => targets = true,
                Tok::In => targets = false,
                Tok::Comma if lambdas == 0 && !targets => {
                    out.push(start..i);
                    start = i + 1;
                }
                _ => {}
            }
            i = self.after(i);
        }
        if start < close {
            out.push(start..close);
        }
        out
    }

    // ---- Sequences ---------------------------------------------------------------------------

    /// Writes a range from the current column on; `tail` columns will follow on its last line.
    /// `free`: inside a bracket, where lines may end anywhere.
    fn sequence(&mut self, range: Range<usize>, indent: usize, tail: usize, free: bool) {
        if range.is_empty() {
            return;
        }
        if self.flat(range.clone()).is_some_and(|width| self.column + width + tail <= WIDTH) {
            return self.write_flat(range);
        }
        if free && self.has_notes(&range) {
            return self.write_noted(range, indent);
        }
        let cuts = if free { self.cuts(&range) } else { vec![] };
        if cuts.is_empty() {
            return self.write_groups(range, indent, tail);
        }
        let mut start = range.start;
        for cut in cuts {
            self.sequence(start..cut, indent, 0, free);
            self.newline(indent);
            start = cut;
        }
        self.sequence(start..range.end, indent, tail, free);
    }

    fn write_flat(&mut self, range: Range<usize>) {
        for i in range.clone() {
            self.word(i, i > range.start);
        }
    }

    /// Comments between the words themselves, not inside a deeper bracket.
    fn has_notes(&self, range: &Range<usize>) -> bool {
        let mut i = self.after(range.start);
        while i < range.end {
            if !self.pieces[i].notes.is_empty() {
                return true;
            }
            i = self.after(i);
        }
        false
    }

    /// A line ends at each comment.
    fn write_noted(&mut self, range: Range<usize>, indent: usize) {
        let mut i = range.start;
        while i < range.end {
            let noted = i > range.start && !self.pieces[i].notes.is_empty();
            if noted {
                self.notes(i, indent, true);
                self.newline(indent);
            } else if i > range.start && self.pieces[i].space {
                self.text(" ");
            }
            let end = self.after(i);
            if end == i + 1 {
                self.word(i, false);
            } else if self.flat(i..end).is_some_and(|width| self.column + width <= WIDTH) {
                self.write_flat(i..end);
            } else {
                self.group(i, indent);
            }
            i = end;
        }
    }

    /// Writes the comments before a word: those on lines of their own, or with `all` also the
    /// first, which may stand behind the word before it.
    fn notes(&mut self, i: usize, indent: usize, all: bool) {
        let notes: Vec<(String, bool)> =
            self.pieces[i].notes.iter().map(|n| (n.text.to_string(), n.own_line)).collect();
        for (text, own_line) in notes {
            if own_line {
                self.newline(indent);
            } else if all {
                self.text("  ");
            } else {
                continue;
            }
            self.text(&text);
        }
    }

    /// Writes the comments that stand behind the word before `i`, on its line.
    fn trailing_notes(&mut self, i: usize) {
        let notes: Vec<String> =
            self.pieces[i].notes.iter().filter(|n| !n.own_line).map(|n| n.text.to_string()).collect();
        for text in notes {
            self.text("  ");
            self.text(&text);
        }
    }

    /// Where a range is cut: before its loosest operators.
    fn cuts(&self, range: &Range<usize>) -> Vec<usize> {
        let mut found: Vec<(u8, usize)> = vec![];
        let mut i = self.after(range.start);
        let first = self.pieces[range.start].kind;
        let (mut clause, mut targets) = (first == Tok::For, first == Tok::For);
        if first == Tok::Lambda {
            return vec![];
        }
        while i < range.end {
            let kind = self.pieces[i].kind;
            if kind == Tok::Lambda {
                break;
            }
            let level = match kind {
                Tok::For => {
                    clause = true;
                    targets = true;
                    20
                }
                Tok::In if targets => {
                    targets = false;
                    0
                }
                Tok::If if clause => 20,
                Tok::If | Tok::Else => 16,
                Tok::Or => 15,
                Tok::And => 14,
                Tok::Str if self.pieces[i - 1].kind == Tok::Str => 12,
                Tok::Lt
                | Tok::Le
                | Tok::Gt
                | Tok::Ge
                | Tok::EqEq
                | Tok::Ne
                | Tok::In
                | Tok::NotIn
                | Tok::Is
                | Tok::IsNot => 10,
                _ if !self.pieces[i - 1].kind.ends_operand() || !self.pieces[i].space => 0,
                Tok::Bar => 9,
                Tok::Caret => 8,
                Tok::Amp => 7,
                Tok::Shl | Tok::Shr => 6,
                Tok::Plus | Tok::Minus => 5,
                Tok::Star | Tok::Slash | Tok::SlashSlash | Tok::Percent | Tok::At => 4,
                _ => 0,
            };
            if level > 0 {
                found.push((level, i));
            }
            i = self.after(i);
        }
        let loosest = found.iter().map(|(level, _)| *level).max();
        found.into_iter().filter(|(level, _)| Some(*level) == loosest).map(|(_, i)| i).collect()
    }

    // ---- Brackets ----------------------------------------------------------------------------

    /// The outermost brackets of a range that can be broken.
    fn groups(&self, range: &Range<usize>) -> Vec<usize> {
        let mut out = vec![];
        let mut i = range.start;
        while i < range.end {
            let close = self.close[i];
            if close > i + 1 || close == i + 1 && !self.pieces[close].notes.is_empty() {
                out.push(i);
            }
            i = self.after(i);
        }
        out
    }

    /// Breaks brackets, the widest of each line that is too long, until all lines fit. Which ones
    /// does not depend on those that must be broken anyway: breaking adds commas that ask for
    /// breaking next time, and that must change nothing.
    fn write_groups(&mut self, range: Range<usize>, indent: usize, tail: usize) {
        let groups = self.groups(&range);
        let mut broken: Vec<usize> = vec![];
        while broken.len() < BROKEN_MAX
            && let Some(next) = self.next_to_break(&range, &groups, &broken, indent, tail)
        {
            broken.push(next);
        }
        broken.extend(groups.iter().filter(|g| self.flat(**g..self.close[**g] + 1).is_none()));
        let mut i = range.start;
        while i < range.end {
            let end = self.after(i);
            if broken.contains(&i) {
                if i > range.start && self.pieces[i].space {
                    self.text(" ");
                }
                self.group(i, indent);
            } else {
                for k in i..end {
                    self.word(k, k > range.start);
                }
            }
            i = end;
        }
    }

    fn next_to_break(
        &self,
        range: &Range<usize>,
        groups: &[usize],
        broken: &[usize],
        indent: usize,
        tail: usize,
    ) -> Option<usize> {
        let mut column = self.column;
        let mut candidates: Vec<usize> = vec![];
        let mut i = range.start;
        while i < range.end {
            let space = usize::from(i > range.start && self.pieces[i].space);
            let end = self.after(i);
            if broken.contains(&i) {
                column += space + columns(&self.pieces[i].text);
                if column > WIDTH && !candidates.is_empty() {
                    break;
                }
                candidates.clear();
                column = indent + columns(&self.pieces[end - 1].text);
            } else {
                column += space + self.plain(i..end);
                if groups.contains(&i) {
                    candidates.push(i);
                }
            }
            i = end;
        }
        if i >= range.end && column + tail <= WIDTH {
            return None;
        }
        // The parameters of a `def` go before its result type.
        let def = self.pieces[0].kind == Tok::Def;
        candidates
            .into_iter()
            .max_by_key(|g| if def && *g == 2 { usize::MAX } else { self.plain(*g..self.close[*g] + 1) })
    }

    /// Writes a bracket over several lines, one part on each.
    fn group(&mut self, open: usize, indent: usize) {
        let close = self.close[open];
        let items = self.items(open);
        let inner = indent + INDENT;
        self.word(open, false);
        self.trailing_notes(open + 1);
        if self.is_table(open, &items) {
            self.table(&items, inner);
        } else {
            let comma = self.ends_with_comma(open, &items);
            for (n, item) in items.iter().enumerate() {
                self.notes(item.start, inner, false);
                self.newline(inner);
                let last = n + 1 == items.len();
                let with_comma = !last || comma;
                self.sequence(item.clone(), inner, usize::from(with_comma), true);
                if with_comma {
                    self.text(",");
                }
                if self.pieces[item.end].kind == Tok::Comma {
                    self.notes(item.end, inner, true);
                    self.trailing_notes(item.end + 1);
                } else {
                    self.trailing_notes(item.end);
                }
            }
        }
        self.notes(close, inner, false);
        self.newline(indent);
        self.word(close, false);
    }

    /// Whether the last part gets a comma. Not where a comma would make a tuple.
    fn ends_with_comma(&self, open: usize, items: &[Range<usize>]) -> bool {
        let written = self.pieces[self.close[open] - 1].kind == Tok::Comma;
        let comprehension = items.len() == 1 && {
            let mut i = items[0].start;
            let mut found = false;
            while i < items[0].end {
                found |= self.pieces[i].kind == Tok::For;
                i = self.after(i);
            }
            found
        };
        match self.pieces[open].role {
            _ if written => true,
            _ if comprehension => false,
            Role::Group | Role::Index | Role::Type => items.len() > 1,
            _ => !items.is_empty(),
        }
    }

    /// A long list of plain numbers is written as lines of numbers.
    fn is_table(&self, open: usize, items: &[Range<usize>]) -> bool {
        let number = |item: &Range<usize>| match &self.pieces[item.clone()] {
            [one] => one.kind == Tok::Number && one.notes.is_empty(),
            [sign, one] => {
                sign.kind == Tok::Minus && one.kind == Tok::Number && sign.notes.is_empty() && one.notes.is_empty()
            }
            _ => false,
        };
        let noted = items.iter().any(|item| !self.pieces[item.end].notes.is_empty());
        self.pieces[open].role == Role::List && items.len() > 6 && !noted && items.iter().all(number)
    }

    fn table(&mut self, items: &[Range<usize>], indent: usize) {
        self.newline(indent);
        for (n, item) in items.iter().enumerate() {
            let width = self.flat(item.clone()).unwrap_or(0) + 1;
            if n > 0 {
                if self.column + 1 + width > WIDTH {
                    self.newline(indent);
                } else {
                    self.text(" ");
                }
            }
            self.write_flat(item.clone());
            self.text(",");
        }
    }
}
