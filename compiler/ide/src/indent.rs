//! How deep a line is to stand that has just been begun.

use crate::call::open_bracket;
use std::ops::Range;
use tessera_grammar::token::{Tok, Token, lex};

/// What a block is deeper than its head, and what stands in brackets than the line that opens them.
const STEP: usize = 4;

/// A line that is begun.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Begun {
    /// The white space before its text.
    pub white: Range<usize>,
    /// So many spaces are to stand there.
    pub spaces: usize,
}

/// How deep the line is to stand that begins at a byte, by the lines above it. None where that is nobody's business: in a text
/// of several lines, below an empty line or a comment, where whoever writes has chosen already, and among tabs.
pub fn begun(text: &str, line_start: usize) -> Option<Begun> {
    let above = text.get(..line_start).filter(|above| above.ends_with(['\n', '\r']))?;
    let last = above.lines().next_back().unwrap_or("").trim();
    if last.is_empty() || last.starts_with('#') {
        return None;
    }
    let all = lex(above);
    // A text that has no end yet.
    if all.iter().any(|t| matches!(t.kind, Tok::OpenStr | Tok::FBroken)) {
        return None;
    }
    let tokens: Vec<Token> = all.into_iter().filter(|t| !t.kind.is_trivia() || t.kind == Tok::Break).collect();
    let rest = text[line_start..].trim_start_matches([' ', '\t']);
    let white = line_start..text.len() - rest.len();
    let spaces = match open_bracket(&tokens) {
        Some(open) => {
            let outside = deep(above, tokens[open].start as usize);
            let closes = rest.starts_with([')', ']', '}']);
            outside + if closes { 0 } else { STEP }
        }
        None => behind(above, &tokens)?,
    };
    // Who writes tabs goes on with them.
    let tabs =
        |line: &str| line.starts_with([' ', '\t']) && line[..line.len() - line.trim_start().len()].contains('\t');
    (!above.lines().rev().take(50).any(tabs) && !text[white.clone()].contains('\t')).then_some(Begun { white, spaces })
}

/// How deep the statement stands that follows the last one of some tokens.
fn behind(text: &str, tokens: &[Token]) -> Option<usize> {
    let tokens = statement(tokens);
    let (first, last) = (tokens.first()?, tokens.last()?);
    let here = deep(text, first.start as usize);
    Some(match (first.kind, last.kind) {
        (_, Tok::Colon) => here + STEP,
        (Tok::Return | Tok::Break_ | Tok::Continue | Tok::Pass, _) => here.saturating_sub(STEP),
        _ => here,
    })
}

/// The tokens of the last statement: breaks inside of brackets do not end it.
fn statement(tokens: &[Token]) -> Vec<Token> {
    let mut out: Vec<Token> = vec![];
    let mut depth = 0usize;
    for t in tokens.iter().rev() {
        if t.kind == Tok::Break {
            if depth == 0 && !out.is_empty() {
                break;
            }
            continue;
        }
        if t.kind.is_closer() {
            depth += 1;
        } else if t.kind.closer().is_some() {
            depth = depth.saturating_sub(1);
        }
        out.push(*t);
    }
    out.reverse();
    out
}

/// How deep the line stands that a byte is in.
fn deep(text: &str, byte: usize) -> usize {
    let start = text[..byte].rfind(['\n', '\r']).map_or(0, |i| i + 1);
    text[start..].bytes().take_while(|b| *b == b' ').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The depth of the line that `|` begins.
    fn of(text: &str) -> Option<usize> {
        let at = text.find('|').expect("a place");
        begun(&text.replace('|', ""), at).map(|b| b.spaces)
    }

    #[test]
    fn lines_stand_as_deep_as_those_above_say() {
        assert_eq!(of("def f(x: int) -> int:\n|"), Some(4));
        assert_eq!(of("def f():\n    if x:  # why\n|"), Some(8));
        assert_eq!(of("def f():\n    y = 1\n|    z = 2\n"), Some(4));
        assert_eq!(of("def f():\n    for i in x:\n        continue\n|"), Some(4));
        assert_eq!(of("def f():\n    return g(\n        1,\n    )\n|"), Some(0));
        assert_eq!(of("pass\n|"), Some(0));
        assert_eq!(of("def f():\r\n    x = 1\r\n|"), Some(4));
        assert_eq!(of("x = f(\n|"), Some(4));
        assert_eq!(of("    x = f(a, [\n|])"), Some(4));
        assert_eq!(of("x = f(\n    [\n|"), Some(8));
        assert_eq!(of("x = {\n    1: 2,\n|"), Some(4));
        assert_eq!(of("x = f(a,\n      b)\n|"), Some(0));
        assert_eq!(of("f = lambda x: x\n|"), Some(0));
    }

    #[test]
    fn what_is_nobodys_business_stays() {
        for text in ["|", "x = 1\n\n|", "x = 1|", "s = \"\"\"a\n|b\n\"\"\"\n", "f\"\"\"{x}\n|\"\"\"", "# only\n|"] {
            assert_eq!(of(text), None, "{text:?}");
        }
    }
}
