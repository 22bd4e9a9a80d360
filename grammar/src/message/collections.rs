//! Brackets: lists, dicts, calls and indices.

use super::{Site, Verdict, say};
use crate::token::Tok;
use tessera_base::Code;

/// `{1, 2}`, `{k: v for …}`, `{**d}`
pub(super) fn set_or_dict(site: &Site) -> Option<Verdict> {
    let bracket = site.bracket().filter(|b| site.kind(*b) == Tok::LBrace)?;
    let colon = site.beside().take_while(|i| site.kind(*i) != Tok::Comma).any(|i| site.kind(i) == Tok::Colon);
    let error = |message: &str, help: &str| say(site.error(Code::E0002, site.span(bracket), message).help(help));
    match site.found() {
        Tok::For => error("comprehensions make lists only", "fill a dict in a loop: `d[key] = value`"),
        Tok::StarStar => error("`**` does not spread a dict", "copy the dict and add the entries: `d[key] = value`"),
        Tok::Comma | Tok::RBrace if !colon && site.before_kind().is_some_and(Tok::ends_operand) => {
            error("there are no sets; a dict has a value for each key", "write `[…]` for a list, or `{key: value}`")
        }
        Tok::RBrace | Tok::Comma if site.before_kind() == Some(Tok::Colon) => {
            error("a key of this dict has no value", "write `{key: value}`")
        }
        _ => None,
    }
}

/// `[*a, *b]`, `f(**options)`, `a, *rest = xs`
pub(super) fn spread(site: &Site) -> Option<Verdict> {
    let found = site.found();
    let begins = site.at_start()
        || matches!(
            site.before_kind(),
            Some(Tok::LParen | Tok::LBracket | Tok::Comma | Tok::Assign | Tok::Return | Tok::In)
        );
    if !begins || !site.kind(site.at + 1).begins_operand() {
        return None;
    }
    let span = site.span(site.at);
    match found {
        Tok::StarStar if site.first() == Tok::Def && site.bracket().is_some() => say(site
            .error(Code::E0002, span, "a function cannot take arbitrary keyword arguments")
            .help("name each parameter, with a default where it may be left out")),
        Tok::StarStar => say(site
            .error(Code::E0002, span, "`**` does not spread a dict into arguments")
            .help("pass each argument as `name=value`")),
        Tok::Star => say(site
            .error(Code::E0002, span, "`*` spreads a list only into the arguments of a call")
            .help("join lists with `a + b`; take a list apart by index and slice")),
        _ => None,
    }
}

/// `(x for x in xs)`
pub(super) fn generator(site: &Site) -> Option<Verdict> {
    let bracket = site.bracket()?;
    if site.found() != Tok::For || site.kind(bracket) != Tok::LParen {
        return None;
    }
    say(site
        .error(Code::E0002, site.span(bracket), "there are no generators; a comprehension makes a list")
        .help("write it in square brackets: `[… for x in xs]`"))
}

/// `x[]`
pub(super) fn empty_index(site: &Site) -> Option<Verdict> {
    if site.before_kind() != Some(Tok::LBracket) || site.found() != Tok::RBracket {
        return None;
    }
    let span = site.span(site.at - 1).to(site.span(site.at));
    say(site
        .error(Code::E0002, span, "the index is missing")
        .help("write `x[i]` for an element, `x[:]` for everything"))
}

/// `f(a: 3)`
pub(super) fn keyword_colon(site: &Site) -> Option<Verdict> {
    let bracket = site.bracket()?;
    if site.found() != Tok::Colon || !site.is_call(bracket) || site.first() == Tok::Def {
        return None;
    }
    say(site.error(Code::E0002, site.span(site.at), "a keyword argument is written with `=`").fix(
        "write `=`",
        site.span(site.at),
        "=",
    ))
}
