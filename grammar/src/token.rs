//! Tokens, and the buffer that keeps the whole text: every byte belongs to exactly one token,
//! comments and white space included.
//!
//! logos finds the ends of ordinary tokens. Strings and f-strings are scanned here, because an
//! f-string holds expressions that hold strings again.

use logos::Logos;
use std::ops::Range;

/// One lexical class.
#[derive(Logos, Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Tok {
    // Trivia: kept in the buffer, never seen by the grammar.
    #[regex(r"[ \t\x0C]+")]
    Space,
    #[regex(r"#[^\r\n]*", allow_greedy = true)]
    Comment,
    #[regex(r"\r\n|\n|\r")]
    Break,
    /// A backslash that joins two lines.
    #[regex(r"\\(\r\n|\n|\r)")]
    Join,
    /// A character that begins no token.
    Bad,

    #[token("def")]
    Def,
    #[token("struct")]
    Struct,
    #[token("import")]
    Import,
    #[token("from")]
    From,
    #[token("as")]
    As,
    #[token("if")]
    If,
    #[token("elif")]
    Elif,
    #[token("else")]
    Else,
    #[token("for")]
    For,
    #[token("in")]
    In,
    #[token("while")]
    While,
    #[token("break")]
    Break_,
    #[token("continue")]
    Continue,
    #[token("pass")]
    Pass,
    #[token("return")]
    Return,
    #[token("assert")]
    Assert,
    #[token("with")]
    With,
    #[token("and")]
    And,
    #[token("or")]
    Or,
    #[token("not")]
    Not,
    #[token("is")]
    Is,
    #[token("lambda")]
    Lambda,
    #[token("True")]
    True,
    #[token("False")]
    False,
    #[token("None")]
    None_,

    // Words of Python that Tessera does not have.
    #[token("async")]
    Async,
    #[token("await")]
    Await,
    #[token("class")]
    Class,
    #[token("try")]
    Try,
    #[token("except")]
    Except,
    #[token("finally")]
    Finally,
    #[token("raise")]
    Raise,
    #[token("yield")]
    Yield,
    #[token("global")]
    Global,
    #[token("nonlocal")]
    Nonlocal,
    #[token("del")]
    Del,

    #[regex(r"[A-Za-z_][A-Za-z0-9_]*")]
    Name,
    /// Digits and whatever clings to them; the `literal` module decides whether they are a number.
    #[regex(r"[0-9][0-9A-Za-z_]*")]
    #[regex(r"[0-9][0-9_]*[eE][+-][0-9][0-9A-Za-z_]*")]
    #[regex(r"[0-9][0-9_]*\.[0-9A-Za-z_]*")]
    #[regex(r"[0-9][0-9_]*\.[0-9_]*[eE][+-][0-9][0-9A-Za-z_]*")]
    #[regex(r"\.[0-9][0-9A-Za-z_]*")]
    #[regex(r"\.[0-9][0-9_]*[eE][+-][0-9][0-9A-Za-z_]*")]
    Number,
    /// The opening of a string as logos sees it; never leaves [`lex`].
    #[regex(r#"([rR][bBfF]?|[uU]|[bBfF][rR]?)?("""|'''|"|')"#)]
    Quote,
    #[regex(r"[^\x00-\x7F]")]
    NonAscii,

    /// A whole string without interpolation, with prefix and quotes.
    Str,
    /// A string whose closing quote is missing.
    OpenStr,
    /// `f"`
    FStart,
    FText,
    /// Text of a raw f-string.
    FRawText,
    /// `{` in an f-string
    FOpen,
    /// `!r`
    FConv,
    /// `:` before a format specification
    FColon,
    FClose,
    /// The closing quote of an f-string.
    FEnd,
    /// Where the closing quote of an f-string is missing.
    FBroken,

    #[token("(")]
    LParen,
    #[token(")")]
    RParen,
    #[token("[")]
    LBracket,
    #[token("]")]
    RBracket,
    #[token("{")]
    LBrace,
    #[token("}")]
    RBrace,
    #[token(",")]
    Comma,
    #[token(":")]
    Colon,
    #[token(";")]
    Semi,
    #[token(".")]
    Dot,
    #[token("...")]
    Ellipsis,
    #[token("->")]
    Arrow,
    #[token("=")]
    Assign,
    #[token("+")]
    Plus,
    #[token("-")]
    Minus,
    #[token("*")]
    Star,
    #[token("/")]
    Slash,
    #[token("//")]
    SlashSlash,
    #[token("%")]
    Percent,
    #[token("**")]
    StarStar,
    #[token("@")]
    At,
    #[token("&")]
    Amp,
    #[token("|")]
    Bar,
    #[token("^")]
    Caret,
    #[token("~")]
    Tilde,
    #[token("<<")]
    Shl,
    #[token(">>")]
    Shr,
    #[token("<")]
    Lt,
    #[token("<=")]
    Le,
    #[token(">")]
    Gt,
    #[token(">=")]
    Ge,
    #[token("==")]
    EqEq,
    #[token("!=")]
    Ne,
    #[token("+=")]
    PlusEq,
    #[token("-=")]
    MinusEq,
    #[token("*=")]
    StarEq,
    #[token("/=")]
    SlashEq,
    #[token("//=")]
    SlashSlashEq,
    #[token("%=")]
    PercentEq,
    #[token("**=")]
    StarStarEq,
    #[token("@=")]
    AtEq,
    #[token("&=")]
    AmpEq,
    #[token("|=")]
    BarEq,
    #[token("^=")]
    CaretEq,
    #[token("<<=")]
    ShlEq,
    #[token(">>=")]
    ShrEq,

    // Operators of other languages, so that they can be named in messages.
    #[token(":=")]
    Walrus,
    #[token("&&")]
    AmpAmp,
    #[token("||")]
    BarBar,
    #[token("!")]
    Bang,
    #[token("<>")]
    LtGt,
    #[token("===")]
    EqEqEq,
    #[token("!==")]
    NeEq,
    #[token("=>")]
    FatArrow,

    // Made by the layout pass.
    /// `not in`, two words
    NotIn,
    /// `is not`, two words
    IsNot,
    /// The end of a logical line.
    Newline,
    /// A `:` that an indented block follows.
    BlockColon,
    /// The line break before a deeper block.
    Indent,
    Dedent,
    /// Stands for a block that is not there.
    Missing,

    // Start markers: one parse table serves several entries.
    StartStmts,
    StartExpr,
}

/// The reserved words, sorted.
pub const KEYWORDS: &[&str] = &[
    "False", "None", "True", "and", "as", "assert", "break", "continue", "def", "elif", "else", "for", "from", "if",
    "import", "in", "is", "lambda", "not", "or", "pass", "return", "struct", "while", "with",
];

/// Words that are reserved because Python has them, sorted.
pub const FOREIGN_KEYWORDS: &[&str] =
    &["async", "await", "class", "del", "except", "finally", "global", "nonlocal", "raise", "try", "yield"];

impl Tok {
    /// Whether the grammar never sees it.
    pub fn is_trivia(self) -> bool {
        matches!(self, Tok::Space | Tok::Comment | Tok::Break | Tok::Join)
    }

    /// A reserved word.
    pub fn is_keyword(self) -> bool {
        (Tok::Def as u8..=Tok::Del as u8).contains(&(self as u8))
    }

    /// A word that Python has and Tessera has not.
    pub fn is_foreign_keyword(self) -> bool {
        (Tok::Async as u8..=Tok::Del as u8).contains(&(self as u8))
    }

    /// An opening bracket of source text (parts of f-strings included).
    pub fn closer(self) -> Option<Tok> {
        Some(match self {
            Tok::LParen => Tok::RParen,
            Tok::LBracket => Tok::RBracket,
            Tok::LBrace => Tok::RBrace,
            Tok::FStart => Tok::FEnd,
            Tok::FOpen => Tok::FClose,
            _ => return None,
        })
    }

    pub fn is_closer(self) -> bool {
        matches!(self, Tok::RParen | Tok::RBracket | Tok::RBrace | Tok::FEnd | Tok::FClose)
    }

    /// Whether an operand can end with it.
    pub fn ends_operand(self) -> bool {
        use Tok::*;
        matches!(
            self,
            Name | Number
                | Str
                | OpenStr
                | FEnd
                | FBroken
                | True
                | False
                | None_
                | Ellipsis
                | RParen
                | RBracket
                | RBrace
        )
    }

    /// Whether an operand can begin with it (prefix operators left aside).
    pub fn begins_operand(self) -> bool {
        use Tok::*;
        matches!(
            self,
            Name | Number
                | Str
                | OpenStr
                | FStart
                | True
                | False
                | None_
                | Ellipsis
                | LParen
                | LBracket
                | LBrace
                | Lambda
        )
    }

    /// `+=` and its like.
    pub fn is_aug_assign(self) -> bool {
        (Tok::PlusEq as u8..=Tok::ShrEq as u8).contains(&(self as u8))
    }

    /// An operator that takes an operand on each side.
    pub fn is_infix(self) -> bool {
        use Tok::*;
        (Plus as u8..=Ne as u8).contains(&(self as u8)) && self != Tilde
            || matches!(self, And | Or | In | Is | NotIn | IsNot)
    }

    /// The first word of a statement that holds a block.
    pub fn opens_block(self) -> bool {
        use Tok::*;
        matches!(self, Def | Struct | If | Elif | Else | For | While | With | Async | Class | Try | Except | Finally)
    }
}

/// A token and the bytes it covers. The layout pass makes tokens without bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Token {
    pub kind: Tok,
    pub start: u32,
    pub end: u32,
}

impl Token {
    pub fn text<'t>(&self, text: &'t str) -> &'t str {
        &text[self.range()]
    }

    pub fn range(&self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// Where the scanner is inside f-strings.
#[derive(Clone, Copy)]
enum Mode {
    /// In the text between the quotes.
    Text(Quotes),
    /// In an expression between braces; `depth` counts brackets opened there, `braces` those
    /// of them that are braces.
    Code { quotes: Quotes, depth: u32, braces: u32 },
    /// In a format specification.
    Spec(Quotes),
}

#[derive(Clone, Copy)]
struct Quotes {
    quote: u8,
    triple: bool,
    raw: bool,
}

impl Quotes {
    fn close_at(self, bytes: &[u8], at: usize) -> bool {
        bytes[at] == self.quote
            && (!self.triple || bytes.get(at + 1) == Some(&self.quote) && bytes.get(at + 2) == Some(&self.quote))
    }

    fn len(self) -> usize {
        if self.triple { 3 } else { 1 }
    }
}

/// Cuts `text` into tokens. Together they cover every byte, in order; tokens of length zero
/// ([`Tok::FBroken`]) mark missing quotes. Linear time. Texts of 4 GiB and more are refused by
/// the callers.
pub fn lex(text: &str) -> Vec<Token> {
    let mut scanner =
        Scanner { text, bytes: text.as_bytes(), out: Vec::with_capacity(text.len() / 3 + 4), modes: vec![] };
    scanner.run();
    scanner.out
}

struct Scanner<'t> {
    text: &'t str,
    bytes: &'t [u8],
    out: Vec<Token>,
    modes: Vec<Mode>,
}

impl Scanner<'_> {
    fn push(&mut self, kind: Tok, start: usize, end: usize) {
        self.out.push(Token { kind, start: start as u32, end: end as u32 });
    }

    fn run(&mut self) {
        let mut lexer = Tok::lexer(self.text);
        let mut at = 0;
        loop {
            if let Some(Mode::Text(quotes) | Mode::Spec(quotes)) = self.modes.last().copied() {
                let end = self.f_text(at, quotes);
                lexer.bump(end - at);
                at = end;
                continue;
            }
            let Some(found) = lexer.next() else { break };
            let span = lexer.span();
            let kind = found.unwrap_or(Tok::Bad);
            at = match kind {
                Tok::Quote => self.string(span.start, span.end),
                Tok::NonAscii => self.non_ascii(span.start, span.end),
                _ if kind == Tok::Name || kind.is_keyword() => self.word(kind, span.start, span.end),
                _ if self.modes.is_empty() => {
                    self.push(kind, span.start, span.end);
                    span.end
                }
                _ => self.in_code(kind, span.start, span.end),
            };
            lexer.bump(at - span.end);
        }
        while let Some(mode) = self.modes.pop() {
            if let Mode::Text(_) = mode {
                self.push(Tok::FBroken, self.text.len(), self.text.len());
            }
        }
    }

    /// A name may go on with letters beyond ASCII.
    fn word(&mut self, kind: Tok, start: usize, end: usize) -> usize {
        if self.bytes.get(end).is_none_or(|b| b.is_ascii()) {
            self.push(kind, start, end);
            return end;
        }
        let more = self.continue_name(end);
        self.push(if more > end { Tok::Name } else { kind }, start, more);
        more
    }

    fn continue_name(&self, from: usize) -> usize {
        let rest = &self.text[from..];
        from + rest.find(|c| !unicode_ident::is_xid_continue(c)).unwrap_or(rest.len())
    }

    fn non_ascii(&mut self, start: usize, end: usize) -> usize {
        let first = self.text[start..].chars().next().unwrap_or(' ');
        if unicode_ident::is_xid_start(first) {
            let end = self.continue_name(end);
            self.push(Tok::Name, start, end);
            return end;
        }
        let byte_order_mark = first == '\u{FEFF}' && start == 0;
        self.push(if byte_order_mark { Tok::Space } else { Tok::Bad }, start, end);
        end
    }

    /// A token inside the braces of an f-string.
    fn in_code(&mut self, kind: Tok, start: usize, end: usize) -> usize {
        let Some(Mode::Code { quotes, depth, braces }) = self.modes.last_mut() else { return end };
        let quotes = *quotes;
        let outermost = *depth == 0;
        match kind {
            Tok::LParen | Tok::LBracket => *depth += 1,
            Tok::LBrace => {
                *depth += 1;
                *braces += 1;
            }
            Tok::RParen | Tok::RBracket => *depth = depth.saturating_sub(1),
            Tok::RBrace if *braces > 0 => {
                *braces -= 1;
                *depth = depth.saturating_sub(1);
            }
            Tok::RBrace => {
                self.push(Tok::FClose, start, end);
                self.modes.pop();
                return end;
            }
            Tok::Colon if outermost => {
                self.push(Tok::FColon, start, end);
                self.modes.push(Mode::Spec(quotes));
                return end;
            }
            // `f"{x:=+8}"`: the specification begins with the sign of an alignment.
            Tok::Walrus if outermost => {
                self.push(Tok::FColon, start, start + 1);
                self.modes.push(Mode::Spec(quotes));
                return self.f_text(start + 1, quotes);
            }
            Tok::Bang if outermost && self.bytes.get(end).is_some_and(u8::is_ascii_alphabetic) => {
                self.push(Tok::FConv, start, end + 1);
                return end + 1;
            }
            Tok::Break if !quotes.triple => self.break_off(start),
            _ => {}
        }
        self.push(kind, start, end);
        end
    }

    /// A line ends inside an f-string that may not span lines: it ends here, and so do those
    /// around it, up to one that may.
    fn break_off(&mut self, at: usize) {
        while let Some(mode) = self.modes.last() {
            let (quotes, text) = match mode {
                Mode::Text(q) => (q, true),
                Mode::Spec(q) | Mode::Code { quotes: q, .. } => (q, false),
            };
            if quotes.triple {
                break;
            }
            if text {
                self.push(Tok::FBroken, at, at);
            }
            self.modes.pop();
        }
    }

    /// Scans text of an f-string from `at`; returns where logos may go on.
    fn f_text(&mut self, at: usize, quotes: Quotes) -> usize {
        let spec = matches!(self.modes.last(), Some(Mode::Spec(_)));
        let kind = if quotes.raw { Tok::FRawText } else { Tok::FText };
        let mut i = at;
        while i < self.bytes.len() {
            let byte = self.bytes[i];
            if quotes.close_at(self.bytes, i) {
                self.text_piece(kind, at, i);
                if spec {
                    self.modes.truncate(self.modes.len().saturating_sub(2));
                }
                self.push(Tok::FEnd, i, i + quotes.len());
                self.modes.pop();
                return i + quotes.len();
            }
            match byte {
                b'\n' | b'\r' if !quotes.triple => {
                    self.text_piece(kind, at, i);
                    self.break_off(i);
                    return i;
                }
                b'{' | b'}' if !spec && self.bytes.get(i + 1) == Some(&byte) => i += 2,
                b'{' => {
                    self.text_piece(kind, at, i);
                    self.push(Tok::FOpen, i, i + 1);
                    self.modes.push(Mode::Code { quotes, depth: 0, braces: 0 });
                    return i + 1;
                }
                b'}' if spec => {
                    self.text_piece(kind, at, i);
                    self.push(Tok::FClose, i, i + 1);
                    self.modes.truncate(self.modes.len().saturating_sub(2));
                    return i + 1;
                }
                b'\\' => i = escaped(self.bytes, i, true),
                _ => i += 1,
            }
        }
        let end = self.bytes.len();
        self.text_piece(kind, at, end);
        while let Some(mode) = self.modes.pop() {
            if let Mode::Text(_) = mode {
                self.push(Tok::FBroken, end, end);
            }
        }
        end
    }

    fn text_piece(&mut self, kind: Tok, start: usize, end: usize) {
        if end > start {
            self.push(kind, start, end);
        }
    }

    /// A string whose prefix and opening quote end at `open`.
    fn string(&mut self, start: usize, open: usize) -> usize {
        let head = &self.bytes[start..open];
        let quote = head[head.len() - 1];
        let triple = head.ends_with(&[quote; 3]);
        let has = |c: u8| head.iter().any(|b| b.to_ascii_lowercase() == c);
        let quotes = Quotes { quote, triple, raw: has(b'r') };
        if has(b'f') {
            self.push(Tok::FStart, start, open);
            self.modes.push(Mode::Text(quotes));
            return open;
        }
        let mut i = open;
        while i < self.bytes.len() {
            if quotes.close_at(self.bytes, i) {
                self.push(Tok::Str, start, i + quotes.len());
                return i + quotes.len();
            }
            match self.bytes[i] {
                b'\n' | b'\r' if !triple => break,
                b'\\' => i = escaped(self.bytes, i, false),
                _ => i += 1,
            }
        }
        let end = if triple { self.give_up(open) } else { i };
        self.push(Tok::OpenStr, start, end);
        end
    }

    /// Where a `"""` string that nothing closes is taken to end: before the next definition at
    /// the left margin, so that it does not swallow the neighbours.
    fn give_up(&self, from: usize) -> usize {
        let mut at = from;
        while let Some(line) = self.text[at..].find('\n').map(|n| at + n + 1) {
            let rest = &self.text[line..];
            if ["def ", "struct ", "@", "import ", "from "].iter().any(|word| rest.starts_with(word)) {
                return line - 1;
            }
            at = line;
        }
        self.text.len()
    }
}

/// The place behind the escape that begins at `i`. In f-strings a backslash does not escape a
/// brace.
fn escaped(bytes: &[u8], i: usize, f_string: bool) -> usize {
    match bytes.get(i + 1) {
        Some(b'\r') if bytes.get(i + 2) == Some(&b'\n') => i + 3,
        Some(b'{' | b'}') if f_string => i + 1,
        // The byte may begin a longer character; its rest is ordinary text.
        Some(_) => i + 2,
        None => i + 1,
    }
}

#[cfg(test)]
mod tests {
    use super::{Tok::*, *};

    fn kinds(text: &str) -> Vec<Tok> {
        lex(text).iter().map(|t| t.kind).filter(|k| *k != Space).collect()
    }

    #[test]
    fn every_byte_is_in_one_token() {
        for text in [
            "def f(x): # note\n\treturn x\\\n + 1\r\n",
            "f\"a{x!r:>{w}}b{{\" 'it' \"open",
            "f'{v:= #_d}' f'{v:=",
            "naïve = größe×2 $ \u{FEFF}",
            "f'{a[\"k\"]}' rf'\\d{x}' f'''{\n1}''' \"\"\"never closed\n",
        ] {
            let mut at = 0;
            for token in lex(text) {
                assert_eq!(token.start as usize, at, "{text:?}");
                at = token.end as usize;
            }
            assert_eq!(at, text.len());
        }
    }

    #[test]
    fn the_lists_of_words_are_whole() {
        for (words, first, last) in [(KEYWORDS, Def, None_), (FOREIGN_KEYWORDS, Async, Del)] {
            let mut found: Vec<u8> = words.iter().flat_map(|word| kinds(word)).map(|kind| kind as u8).collect();
            found.sort();
            assert_eq!(found, (first as u8..=last as u8).collect::<Vec<_>>());
            assert!(words.is_sorted());
        }
    }

    #[test]
    fn numbers_names_and_operators() {
        assert_eq!(kinds(".5 3. 1e-5 0xFF 1_000 ..."), [Number, Number, Number, Number, Number, Ellipsis]);
        assert_eq!(kinds("größe x1 defx def"), [Name, Name, Name, Def]);
        assert_eq!(kinds("a**=b//c->d:=e"), [Name, StarStarEq, Name, SlashSlash, Name, Arrow, Name, Walrus, Name]);
        assert_eq!(kinds("x.T 1.5.T"), [Name, Dot, Name, Number, Dot, Name]);
    }

    #[test]
    fn f_strings_hold_tokens() {
        assert_eq!(
            kinds("f'a{x:>{w}.2f}'"),
            [FStart, FText, FOpen, Name, FColon, FText, FOpen, Name, FClose, FText, FClose, FEnd]
        );
        assert_eq!(kinds("f'{d[\":\"]!r}'"), [FStart, FOpen, Name, LBracket, Str, RBracket, FConv, FClose, FEnd]);
        assert_eq!(kinds("f'{x\ny"), [FStart, FOpen, Name, FBroken, Break, Name]);
        assert_eq!(kinds("f'{{}}'"), [FStart, FText, FEnd]);
        assert_eq!(kinds("f'{v:=+8.2f}'"), [FStart, FOpen, Name, FColon, FText, FClose, FEnd]);
        assert_eq!(kinds("f'{v!r:= #_d}|'"), [FStart, FOpen, Name, FConv, FColon, FText, FClose, FText, FEnd]);
        assert_eq!(kinds("f'{v:={w}}'"), [FStart, FOpen, Name, FColon, FText, FOpen, Name, FClose, FClose, FEnd]);
        assert_eq!(kinds("f'{v:="), [FStart, FOpen, Name, FColon, FText, FBroken]);
        assert_eq!(kinds("f'{(v:=1)}'"), [FStart, FOpen, LParen, Name, Walrus, Number, RParen, FClose, FEnd]);
    }

    #[test]
    fn an_open_triple_quote_stops_at_the_next_definition() {
        assert_eq!(kinds("x = \"\"\"oops\n  y\ndef f(): pass")[..4], [Name, Assign, OpenStr, Break]);
    }
}
