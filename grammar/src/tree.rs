//! What the grammar's actions build: nodes, spans, interned names, and operator chains put in
//! order by the one table of precedence.

mod chain;
mod nodes;
mod target;

pub use chain::{Infix, Link};
pub use nodes::{DefHead, ParamPart, Paren, Run, StructPart, Text};

use crate::{
    ast::*,
    layout::Layout,
    literal::{self, Flaw},
    token::Tok,
};
use lalrpop_util::{ErrorRecovery, ParseError};
use std::{cell::RefCell, collections::BTreeSet, sync::Arc};
use tessera_base::{Code, Diagnostic, ItemId, Span};

/// What a parse yields.
pub enum Root {
    Stmts(Vec<Stmt>),
    Expr(Expr),
}

/// The grammar's own error values.
pub type Failure = ErrorRecovery<u32, Tok, ()>;
pub type Fatal = ParseError<u32, Tok, ()>;

/// Something to report, in the order found.
pub enum Found {
    /// The grammar could not go on at a token.
    Syntax(Fatal),
    /// Already put into words; with the token it concerns.
    Said(u32, Diagnostic),
}

/// Names that were seen lately share their text. A power of two.
const NAMES: usize = 64;

/// The state behind the grammar's actions. All of it is append-only.
pub struct Tree<'t> {
    pub text: &'t str,
    pub layout: &'t Layout,
    pub item: ItemId,
    found: RefCell<Vec<Found>>,
    /// Logical lines whose trees cannot be trusted.
    garbled: RefCell<BTreeSet<usize>>,
    names: RefCell<Vec<Option<Arc<str>>>>,
}

impl<'t> Tree<'t> {
    pub fn new(text: &'t str, layout: &'t Layout, item: ItemId) -> Tree<'t> {
        Tree { text, layout, item, found: RefCell::default(), garbled: RefCell::default(), names: RefCell::default() }
    }

    /// Everything reported so far.
    pub fn take_found(&self) -> Vec<Found> {
        self.found.take()
    }

    /// The lines on which reading went on at another bracket than the one it failed in.
    pub fn take_garbled(&self) -> BTreeSet<usize> {
        self.garbled.take()
    }

    pub fn failed(&self, failure: Failure) {
        let depth = |kind: Tok| i32::from(kind.closer().is_some()) - i32::from(kind.is_closer());
        if let Some((at, _, _)) = failure.dropped_tokens.first()
            && failure.dropped_tokens.iter().map(|(_, kind, _)| depth(*kind)).sum::<i32>() != 0
        {
            self.garbled.borrow_mut().insert(self.layout.line_of(*at));
        }
        self.found.borrow_mut().push(Found::Syntax(failure.error));
    }

    pub fn say(&self, token: u32, diagnostic: Diagnostic) {
        self.found.borrow_mut().push(Found::Said(token, diagnostic));
    }

    fn token_text(&self, at: u32) -> &'t str {
        self.layout.tokens[at as usize].text(self.text)
    }

    /// The span of tokens `first..end`, without the marks of the layout at its end.
    pub fn span(&self, first: u32, end: u32) -> Span {
        let tokens = &self.layout.tokens;
        let mut last = (end.max(first + 1) - 1) as usize;
        while last > first as usize
            && matches!(tokens[last].kind, Tok::Newline | Tok::Indent | Tok::Dedent | Tok::Missing | Tok::BlockColon)
        {
            last -= 1;
        }
        let start = tokens.get(first as usize).map_or(0, |t| t.start);
        let stop = tokens.get(last).map_or(start, |t| t.end);
        Span { item: self.item, start, end: stop.max(start) }
    }

    pub fn token_span(&self, at: u32) -> Span {
        self.span(at, at + 1)
    }

    /// From the start of `from` to the end of the token before `end`.
    fn through(&self, from: Span, end: u32) -> Span {
        let stop = self.layout.tokens.get((end.max(1) - 1) as usize).map_or(from.end, |t| t.end);
        Span { end: stop.max(from.start), ..from }
    }

    fn intern(&self, text: &str) -> Arc<str> {
        let mut names = self.names.borrow_mut();
        if names.is_empty() {
            names.resize(NAMES, None);
        }
        // FNV-1a; only the slot depends on it, never the result.
        let hash = text.bytes().fold(0x811c_9dc5_u32, |h, b| (h ^ u32::from(b)).wrapping_mul(0x0100_0193));
        let slot = &mut names[(hash as usize ^ (hash >> 16) as usize) % NAMES];
        match slot {
            Some(name) if &**name == text => name.clone(),
            _ => slot.insert(Arc::from(text)).clone(),
        }
    }

    pub fn name(&self, at: u32) -> Name {
        Name { text: self.intern(self.token_text(at)), span: self.token_span(at) }
    }

    pub fn name_expr(&self, at: u32) -> Expr {
        Expr { kind: ExprKind::Name(self.intern(self.token_text(at))), span: self.token_span(at) }
    }

    pub fn expr(&self, first: u32, end: u32, kind: ExprKind) -> Expr {
        Expr { kind, span: self.span(first, end) }
    }

    pub fn stmt(&self, first: u32, end: u32, kind: StmtKind) -> Box<Stmt> {
        Box::new(Stmt { kind, span: self.span(first, end) })
    }

    pub fn error_stmt(&self, first: u32, end: u32) -> Stmt {
        Stmt { kind: StmtKind::Error, span: self.span(first, end) }
    }

    // ---- Literals ----------------------------------------------------------------------------

    pub fn number(&self, at: u32) -> Expr {
        let span = self.token_span(at);
        let kind = match literal::number(self.token_text(at)) {
            Ok(literal::Number::Int(digits)) => ExprKind::Int(digits.into()),
            Ok(literal::Number::Float(value)) => ExprKind::Float(FloatBits(value.to_bits())),
            Err(flaw) => {
                self.flaw(at, 0, flaw);
                ExprKind::Error
            }
        };
        Expr { kind, span }
    }

    /// `offset`: where the flaw's ranges begin in the token.
    fn flaw(&self, at: u32, offset: usize, flaw: Flaw) {
        let start = self.layout.tokens[at as usize].start as usize + offset;
        let span = Span::new(self.item, start + flaw.range.start, start + flaw.range.end);
        let diagnostic = Diagnostic::new(flaw.code, span, flaw.message);
        let diagnostic = match flaw.fix {
            Some(text) => diagnostic.fix(flaw.help, span, text),
            None => diagnostic.help(flaw.help),
        };
        self.say(at, diagnostic);
    }

    pub fn string(&self, at: u32, closed: bool) -> Text {
        let token = self.token_text(at);
        let parts = literal::quoted(token, closed);
        if parts.prefix.contains(['b', 'B']) {
            let span = self.token_span(at);
            let diagnostic = Diagnostic::new(Code::E0002, span, "byte strings are not part of Tessera")
                .help("use a `str`, or an `op.array` of dtype `u8`");
            self.say(at, diagnostic);
        }
        let mut flaws = vec![];
        let value = literal::unescape(parts.body, parts.prefix.contains(['r', 'R']), false, &mut flaws);
        // A string that does not end is reported already.
        for flaw in flaws.into_iter().take(usize::from(closed)) {
            self.flaw(at, parts.offset, flaw);
        }
        Text::Plain(value.into())
    }

    pub fn f_text(&self, at: u32, raw: bool) -> FPart {
        let mut flaws = vec![];
        let value = literal::unescape(self.token_text(at), raw, true, &mut flaws);
        for flaw in flaws.into_iter().take(1) {
            self.flaw(at, 0, flaw);
        }
        FPart::Text(value.into())
    }

    pub fn strings(&self, first: u32, end: u32, text: Text) -> Expr {
        let kind = match text {
            Text::Plain(text) => ExprKind::Str(text),
            Text::Parts(parts) => ExprKind::FStr(parts),
        };
        self.expr(first, end, kind)
    }
}
