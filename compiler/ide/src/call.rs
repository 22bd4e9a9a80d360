//! The call around the cursor, and which of its parameters is written there.

use crate::analysis::Analysis;
use crate::symbol::Symbol;
use crate::written::Call;
use tessera_base::FileId;
use tessera_grammar::token::{Tok, Token, lex};

/// A call that is being written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Writing {
    pub call: Call,
    /// The parameter that the cursor stands in.
    pub active: Option<usize>,
}

/// What is written before a byte, without comments and white space, and not inside of a string or comment.
pub(crate) fn before(text: &str, byte: usize) -> Option<Vec<Token>> {
    let tokens = lex(text);
    let inside = |t: &Token| {
        let begun = (t.start as usize) < byte;
        match t.kind {
            Tok::Str => begun && byte < t.end as usize,
            // What has no end of its own goes on at its last byte.
            Tok::Comment | Tok::OpenStr | Tok::FText | Tok::FRawText => begun && byte <= t.end as usize,
            _ => false,
        }
    };
    if tokens.iter().any(inside) {
        return None;
    }
    let kept = |t: &&Token| (t.end as usize) <= byte && (!t.kind.is_trivia() || t.kind == Tok::Break);
    Some(tokens.iter().filter(kept).copied().collect())
}

/// Where `a.b.c` begins that ends with the token before `end`.
pub(crate) fn path_start(tokens: &[Token], end: usize) -> Option<usize> {
    let mut at = end.checked_sub(1).filter(|i| tokens[*i].kind == Tok::Name)?;
    while at >= 2 && tokens[at - 1].kind == Tok::Dot && tokens[at - 2].kind == Tok::Name {
        at -= 2;
    }
    Some(at)
}

/// The bracket that is open at the end of some tokens.
pub(crate) fn open_bracket(tokens: &[Token]) -> Option<usize> {
    let mut depth = 0;
    for (i, t) in tokens.iter().enumerate().rev() {
        if t.kind.is_closer() {
            depth += 1;
        } else if t.kind.closer().is_some() {
            if depth == 0 {
                return Some(i);
            }
            depth -= 1;
        }
    }
    None
}

/// What the path of a call names: by what is visible there, and of values by their types.
pub(crate) fn callee(cx: &Analysis, file: FileId, text: &str, tokens: &[Token], open: usize) -> Option<Symbol> {
    let start = path_start(tokens, open)?;
    let (item, _) = cx.item_at(file, tokens[start].start as usize)?;
    let at = cx.item_at(file, tokens[start].start as usize)?.1;
    // A definition is no call.
    if start > 0 && matches!(tokens[start - 1].kind, Tok::Def | Tok::Struct) {
        return None;
    }
    if start > 0 && tokens[start - 1].kind == Tok::Dot {
        // A method of something that is no name: `f(x).sum(`.
        return cx.symbol_at(file, tokens[open - 1].start as usize).map(|(_, s)| s);
    }
    let path: Vec<&str> = tokens[start..open].iter().filter(|t| t.kind == Tok::Name).map(|t| t.text(text)).collect();
    let found = cx.path_seen(item, at, &path);
    found.or_else(|| cx.symbol_at(file, tokens[open - 1].start as usize).map(|(_, s)| s))
}

/// The innermost call whose arguments a byte of a file stands in.
pub fn writing(cx: &Analysis, file: FileId, byte: usize) -> Option<Writing> {
    let text = cx.text(file);
    let mut tokens = before(&text, byte)?;
    loop {
        let open = open_bracket(&tokens)?;
        if tokens[open].kind == Tok::LParen
            && let Some(symbol) = callee(cx, file, &text, &tokens, open)
            && let Some(call) = cx.call(&symbol)
        {
            let active = active(&call, &text, &tokens[open + 1..]);
            return Some(Writing { call, active });
        }
        tokens.truncate(open);
    }
}

/// The parameter that the last of some arguments belongs to.
fn active(call: &Call, text: &str, args: &[Token]) -> Option<usize> {
    let (mut depth, mut commas, mut start) = (0usize, 0usize, 0usize);
    for (i, t) in args.iter().enumerate() {
        if t.kind.is_closer() {
            depth = depth.saturating_sub(1);
        } else if t.kind.closer().is_some() {
            depth += 1;
        } else if t.kind == Tok::Comma && depth == 0 {
            commas += 1;
            start = i + 1;
        }
    }
    let last: Vec<&Token> = args[start..].iter().filter(|t| t.kind != Tok::Break).collect();
    if let [name, equals, ..] = last[..]
        && name.kind == Tok::Name
        && equals.kind == Tok::Assign
    {
        return call.params.iter().position(|p| p.name == name.text(text));
    }
    if let Some(rest) = call.params.iter().position(|p| p.rest).filter(|rest| *rest <= commas) {
        return Some(rest);
    }
    let plain = call.params.iter().take_while(|p| !p.keyword_only).count();
    (commas < plain).then_some(commas)
}
