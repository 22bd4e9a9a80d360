//! How deep a tree will be, bounded on its tokens before any tree is built.
//!
//! The parser keeps its stack on the heap, but whoever walks or drops a tree recurses. So no
//! tree is higher than the sum of the two bounds below, whatever the text.

use crate::{
    layout::Layout,
    token::{Tok, Token},
};
use tessera_base::{Code, Diagnostic, ItemId, Span};

/// Brackets, blocks and prefix operators inside each other.
pub const NESTING_MAX: usize = 200;
/// Levels of one expression: operators in a row count, since `a + b + c` is `(a + b) + c`.
pub const HEIGHT_MAX: usize = 500;

/// One open bracket, or the statement itself.
#[derive(Default, Clone, Copy)]
struct Frame {
    /// Operators since the last comma.
    operators: usize,
    /// Height of the highest bracket since the last comma.
    inner: usize,
    /// Height of the highest part between commas.
    height: usize,
}

impl Frame {
    fn here(self) -> usize {
        self.height.max(self.operators + self.inner + 1)
    }

    fn next_part(&mut self) {
        *self = Frame { operators: 0, inner: 0, height: self.here() };
    }
}

/// The error for text that is nested too deeply, if it is. Linear time.
pub fn too_deep(layout: &Layout, item: ItemId) -> Option<Diagnostic> {
    let mut frames = vec![Frame::default()];
    // Per open block: how many `elif` parts its latest `if` has.
    let mut blocks = vec![0usize];
    let mut prefixes = 0;
    let mut before = Tok::Newline;
    for token in &layout.tokens {
        let kind = token.kind;
        let starts_line = matches!(before, Tok::Newline | Tok::Indent | Tok::Dedent | Tok::StartStmts);
        let called = before.ends_operand() && kind != Tok::FStart;
        before = kind;
        match kind {
            Tok::If if starts_line => set(&mut blocks, |_| 0),
            Tok::Elif => set(&mut blocks, |n| n + 1),
            Tok::Indent => blocks.push(0),
            Tok::Dedent => drop(blocks.pop()),
            _ => {}
        }
        prefixes = match kind {
            Tok::Colon => prefixes,
            _ if kind.ends_operand() || kind.closer().is_some() => 0,
            _ => prefixes + 1,
        };
        match kind {
            Tok::Newline | Tok::Indent | Tok::BlockColon | Tok::Semi => {
                frames.truncate(1);
                frames[0] = Frame::default();
                prefixes = 0;
            }
            Tok::Comma => {
                frames.last_mut()?.next_part();
                prefixes = 0;
            }
            _ if kind.closer().is_some() => {
                // A call or an index is one more level, a bracket by itself none.
                frames.last_mut()?.operators += usize::from(called);
                frames.push(Frame::default());
            }
            _ if kind.is_closer() => {
                let closed = frames.pop()?.here();
                let outer = frames.last_mut()?;
                outer.inner = outer.inner.max(closed);
            }
            _ if kind.ends_operand() => {}
            _ => frames.last_mut()?.operators += 1,
        }
        let height = frames.last().map_or(0, |f| f.here());
        let what = if frames.len() > NESTING_MAX {
            format!("brackets are nested more than {NESTING_MAX} deep")
        } else if blocks.len() > NESTING_MAX || blocks.iter().sum::<usize>() + blocks.len() > HEIGHT_MAX {
            format!("blocks are nested more than {NESTING_MAX} deep")
        } else if prefixes > NESTING_MAX {
            format!("more than {NESTING_MAX} operators stand before one operand")
        } else if height > HEIGHT_MAX {
            format!("this expression is more than {HEIGHT_MAX} operators deep")
        } else {
            continue;
        };
        return Some(report(token, item, what));
    }
    None
}

fn set(blocks: &mut [usize], to: impl Fn(usize) -> usize) {
    if let Some(last) = blocks.last_mut() {
        *last = to(*last);
    }
}

fn report(token: &Token, item: ItemId, what: String) -> Diagnostic {
    let span = Span { item, start: token.start, end: token.end };
    Diagnostic::new(Code::E0011, span, what)
        .here("too deep from here on")
        .help("give parts of it names of their own, or keep the values in a list and loop over it")
}
