//! What an interactive prompt asks of the syntax: is the input complete, and how is it coloured.

use crate::{
    lines::logical_lines,
    literal::quoted,
    token::{Tok, Token, lex},
};
use std::ops::Range;

/// Whether input typed so far is incomplete: an open bracket, block or triple-quoted string, a
/// decorator without its definition, or a backslash at the end. `text` comes without the line
/// break of the line just typed; a block is complete when that line is blank.
pub fn needs_more(text: &str) -> bool {
    let tokens = lex(text);
    let open_string = |t: &Token| match t.kind {
        Tok::OpenStr => quoted(t.text(text), false).quotes.len() == 3,
        // A missing quote at the end of a line is an error, at the end of the text it may follow.
        Tok::FBroken => opened_triple(text, &tokens),
        _ => false,
    };
    if text.ends_with('\\') || tokens.last().is_some_and(|t| t.kind == Tok::Join || open_string(t)) {
        return true;
    }
    let lines = logical_lines(text, &tokens);
    let Some(last) = lines.last() else { return false };
    if last.unclosed {
        return true;
    }
    let first = tokens[last.first as usize].kind;
    let ends_with_colon = tokens[last.end as usize - 1].kind == Tok::Colon;
    if first == Tok::At || first.opens_block() && ends_with_colon {
        return true;
    }
    let blank = text.rsplit_once('\n').is_some_and(|(_, line)| line.trim().is_empty());
    (first.opens_block() || !last.indent.is_empty()) && !blank
}

/// Whether the f-string that is open at the end of the text may span lines.
fn opened_triple(text: &str, tokens: &[Token]) -> bool {
    let mut open: Vec<&Token> = vec![];
    for token in tokens {
        match token.kind {
            Tok::FStart => open.push(token),
            Tok::FEnd => drop(open.pop()),
            Tok::FBroken if (token.end as usize) < text.len() => drop(open.pop()),
            _ => {}
        }
    }
    open.first().is_some_and(|t| quoted(t.text(text), false).quotes.len() == 3)
}

/// What a piece of source text is, for colouring.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TokenClass {
    Keyword,
    /// `True`, `False`, `None`, `...`
    Constant,
    Number,
    String,
    Comment,
    /// A name that is being defined by `def` or `struct`.
    Definition,
    /// A name that is called.
    Call,
    /// A name after a dot.
    Attribute,
    /// A name that begins with a capital: by habit a type or a size.
    Capital,
    Name,
    Decorator,
    Operator,
    Bracket,
    Error,
}

/// The classes of all tokens but white space, in order, without overlaps.
pub fn highlight(text: &str) -> Vec<(Range<usize>, TokenClass)> {
    let tokens = lex(text);
    let mut out = Vec::with_capacity(tokens.len());
    let mut before = Tok::Newline;
    let mut decorator = false;
    for (i, token) in tokens.iter().enumerate() {
        if token.kind == Tok::Break {
            decorator = false;
            before = Tok::Newline;
        }
        if matches!(token.kind, Tok::Space | Tok::Break | Tok::Join) || token.start == token.end {
            continue;
        }
        decorator |= token.kind == Tok::At && before == Tok::Newline;
        out.push((token.range(), class(text, &tokens, i, before, decorator)));
        decorator &= matches!(token.kind, Tok::At | Tok::Name | Tok::Dot);
        if token.kind != Tok::Comment {
            before = token.kind;
        }
    }
    out
}

fn class(text: &str, tokens: &[Token], at: usize, before: Tok, decorator: bool) -> TokenClass {
    use TokenClass as C;
    let token = tokens[at];
    match token.kind {
        Tok::Comment => C::Comment,
        Tok::Bad | Tok::OpenStr => C::Error,
        Tok::True | Tok::False | Tok::None_ | Tok::Ellipsis => C::Constant,
        kind if kind.is_foreign_keyword() => C::Error,
        kind if kind.is_keyword() => C::Keyword,
        Tok::Number => C::Number,
        Tok::Str | Tok::FStart | Tok::FText | Tok::FRawText | Tok::FEnd => C::String,
        _ if decorator && matches!(token.kind, Tok::At | Tok::Name | Tok::Dot) => C::Decorator,
        Tok::Name => {
            let next = tokens[at + 1..].iter().find(|t| t.kind != Tok::Space).map(|t| t.kind);
            match before {
                Tok::Def | Tok::Struct => C::Definition,
                _ if next == Some(Tok::LParen) => C::Call,
                Tok::Dot => C::Attribute,
                _ if token.text(text).starts_with(char::is_uppercase) => C::Capital,
                _ => C::Name,
            }
        }
        kind if kind.closer().is_some() || kind.is_closer() => C::Bracket,
        _ => C::Operator,
    }
}

#[cfg(test)]
mod tests {
    use super::{TokenClass::*, *};

    #[test]
    fn incomplete_input() {
        for text in [
            "def f(x):",
            "def f(x):\n",
            "def f(x):\n    return x",
            "if a: b",
            "f(1,",
            "x = [\n1,\n",
            "x = \"\"\"a\nb",
            "x = f\"\"\"a\n{b}",
            "x = f\"\"\"a\n{b",
            "@op.kernel",
            "x = 1 + \\",
            "x = 1 + \\\n",
            "if a:\n    b\nelse:",
            "if a:\n\n",
        ] {
            assert!(needs_more(text), "{text:?}");
        }
        for text in [
            "",
            "# c",
            "x = 1",
            "f(1)",
            "def f(x):\n    return x\n",
            "if a: b\n",
            "x = 'abc",
            "x = f'{a",
            "f(a]",
            "x = 1)",
            "  \n",
            "return +",
        ] {
            assert!(!needs_more(text), "{text:?}");
        }
    }

    #[test]
    fn colours() {
        let text = "@op.kernel\ndef f(x: Tensor[D]): # c\n  return g(x.T) + 1e3 * None";
        let words: Vec<_> = highlight(text).into_iter().map(|(r, c)| (&text[r], c)).collect();
        assert_eq!(
            words[..6],
            [
                ("@", Decorator),
                ("op", Decorator),
                (".", Decorator),
                ("kernel", Decorator),
                ("def", Keyword),
                ("f", Definition)
            ]
        );
        for word in [
            ("x", Name),
            ("Tensor", Capital),
            ("# c", Comment),
            ("g", Call),
            ("T", Attribute),
            ("1e3", Number),
            ("None", Constant),
            ("[", Bracket),
        ] {
            assert!(words.contains(&word), "{word:?} in {words:?}");
        }
        assert_eq!(highlight("a @ b")[1].1, Operator);
        assert_eq!(highlight("f'a{x}'").len(), 6);
    }
}
