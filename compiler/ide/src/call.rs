//! The call around the cursor, and which of its parameters is written there.

use crate::analysis::Analysis;
use crate::symbol::Symbol;
use crate::written::Call;
use tessera_base::{FileId, Span};
use tessera_grammar::token::{Tok, Token, lex};

/// A call that is being written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Writing {
    pub call: Call,
    /// The parameter that the cursor stands in.
    pub active: Option<usize>,
}

/// What is written before a byte, without comments and white space, and not inside of a string or comment.
pub(crate) fn before(cx: &Analysis, file: FileId, byte: usize) -> Option<Vec<Token>> {
    let text = cx.text(file);
    // What stands before its item has no bearing on it, and may be long.
    let start = cx.item_at(file, byte).map_or(0, |(_, at)| byte - at as usize);
    let rest = cx.heads(file).iter().filter_map(|h| Some(cx.place(Span::new(h.id, 0, 0))?.start)).find(|s| *s > byte);
    let tokens = lex(text.get(start..rest.unwrap_or(text.len()))?);
    let moved = |t: Token| Token { start: t.start + start as u32, end: t.end + start as u32, ..t };
    let tokens: Vec<Token> = tokens.into_iter().map(moved).collect();
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
    let mut tokens = before(cx, file, byte)?;
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

/// What is still to be written of a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rest {
    /// The parameters that have no argument yet, as they are declared.
    pub left: Vec<String>,
    /// The last argument is begun.
    pub begun: bool,
}

/// What is still to be written of the call whose bracket is the innermost one that is open at a byte of a file.
pub fn rest(cx: &Analysis, file: FileId, byte: usize) -> Option<Rest> {
    let text = cx.text(file);
    let tokens = before(cx, file, byte)?;
    let open = open_bracket(&tokens).filter(|i| tokens[*i].kind == Tok::LParen)?;
    let call = cx.call(&callee(cx, file, &text, &tokens, open)?)?;
    let args = arguments(&tokens[open + 1..]);
    let given: Vec<&str> = args.iter().filter_map(|arg| name_of(arg, &text)).collect();
    let positional = args.iter().filter(|arg| !arg.is_empty() && name_of(arg, &text).is_none()).count();
    let left = call.params.iter().enumerate().filter(|(i, p)| {
        let taken = !p.keyword_only && *i < positional || given.contains(&p.name.as_str());
        !taken
    });
    let left = left.map(|(_, p)| p.text.clone()).collect();
    Some(Rest { left, begun: args.last().is_some_and(|arg| !arg.is_empty()) })
}

/// The parameter that an argument names.
fn name_of<'t>(arg: &[Token], text: &'t str) -> Option<&'t str> {
    match arg {
        [name, equals, ..] if name.kind == Tok::Name && equals.kind == Tok::Assign => Some(name.text(text)),
        _ => None,
    }
}

/// The parameter that the last of some arguments belongs to.
fn active(call: &Call, text: &str, args: &[Token]) -> Option<usize> {
    let args = arguments(args);
    let name = |arg: &[Token]| name_of(arg, text);
    let place = |name: &str| call.params.iter().position(|p| p.name == name);
    let (last, before) = args.split_last()?;
    if let Some(name) = name(last) {
        return place(name);
    }
    let named: Vec<usize> = before.iter().filter_map(|a| place(name(a)?)).collect();
    let positional = before.iter().filter(|a| name(a).is_none()).count();
    if let Some(rest) = call.params.iter().position(|p| p.rest).filter(|rest| *rest <= positional) {
        return Some(rest);
    }
    // What follows a name has to be given by name, too: the next that is left.
    let left = |i: &usize| !named.contains(i) && (!named.is_empty() || !call.params[*i].keyword_only);
    (positional..call.params.len()).find(left)
}

/// What stands between the commas of a call, without breaks of lines. The commas between parameters of a lambda are none of these.
fn arguments(args: &[Token]) -> Vec<Vec<Token>> {
    let mut out = vec![vec![]];
    let (mut depth, mut lambdas) = (0usize, vec![]);
    for t in args {
        if t.kind.is_closer() {
            depth = depth.saturating_sub(1);
        } else if t.kind.closer().is_some() {
            depth += 1;
        }
        match t.kind {
            Tok::Break => continue,
            Tok::Lambda => lambdas.push(depth),
            Tok::Colon if lambdas.last() == Some(&depth) => _ = lambdas.pop(),
            Tok::Comma if depth == 0 && lambdas.last() != Some(&0) => {
                out.push(vec![]);
                continue;
            }
            _ => {}
        }
        out.last_mut().expect("there is a first argument").push(*t);
    }
    out
}
