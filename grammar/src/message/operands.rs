//! Missing operands, and operands side by side.

use super::{Site, Verdict, say, words::begins_statement};
use crate::token::Tok;
use tessera_base::{Code, Diagnostic};

/// `a if b` without `else`
pub(super) fn conditional(site: &Site) -> Option<Verdict> {
    let found = site.found();
    if found.begins_operand() || !site.before_kind().is_some_and(Tok::ends_operand) {
        return None;
    }
    let word = site
        .beside()
        .take_while(|i| !matches!(site.kind(*i), Tok::Comma | Tok::For))
        .find(|i| matches!(site.kind(*i), Tok::If | Tok::Else))?;
    if site.kind(word) != Tok::If || word == site.line.start || found == Tok::Colon {
        return None;
    }
    // `[a for a in xs if test else b]`: what chooses between two elements stands before the `for`.
    if found == Tok::Else && site.beside().any(|i| i < word && site.kind(i) == Tok::For) {
        return say(site
            .error(Code::E0002, site.here(), "the condition of a comprehension has no `else`: it leaves elements out")
            .help("to choose between two elements, write `[a if test else b for x in xs]`"));
    }
    let place = site.before().map_or(site.here(), |i| site.behind(i));
    say(site
        .error(Code::E0002, place, "this conditional expression has no `else`")
        .with_label(site.span(word), "the condition begins here")
        .help("write `a if test else b`"))
}

/// Nothing where an operand must stand
pub(super) fn missing(site: &Site) -> Option<Verdict> {
    let found = site.found();
    if found.begins_operand() || begins_statement(found) {
        return None;
    }
    let here = site.here();
    let Some(before) = site.before() else {
        if !found.is_infix()
            && !matches!(found, Tok::Comma | Tok::Assign | Tok::Dot | Tok::Arrow | Tok::Semi)
            && !found.is_aug_assign()
        {
            return None;
        }
        let sign = site.text(site.at);
        return say(site
            .error(Code::E0002, here, format!("there is nothing before this `{sign}`"))
            .here("a line cannot begin with it"));
    };
    let kind = site.kind(before);
    let sign = site.text(before);
    let after =
        |what: &str| say(site.error(Code::E0002, site.span(before), format!("{what} is missing after `{sign}`")));
    match kind {
        Tok::FOpen => say(site
            .error(Code::E0002, site.span(before).to(here), "the braces of this f-string are empty")
            .help("put an expression between them; for braces in the text write `{{` and `}}`")),
        Tok::Dot => after("a name"),
        Tok::Assign => after("a value"),
        Tok::Arrow => after("a type"),
        Tok::If | Tok::Elif | Tok::While => after("a condition"),
        Tok::As => after("a name"),
        Tok::Else if before == site.line.start => None,
        Tok::Def | Tok::Struct => None,
        Tok::Return | Tok::Assert | Tok::In | Tok::With | Tok::For | Tok::Else | Tok::Lambda => after("an expression"),
        Tok::At if before == site.line.start => after("the name of a decorator"),
        Tok::Colon if site.bracket().is_none() => after("a type or value"),
        _ if kind.is_aug_assign() => after("a value"),
        _ if kind.is_infix() || matches!(kind, Tok::Not | Tok::Tilde) => say(operator(site, before)),
        Tok::Comma if found == Tok::Comma => {
            say(site.error(Code::E0002, here, "there is nothing between two commas").fix("remove one", here, ""))
        }
        Tok::LParen | Tok::LBracket | Tok::LBrace | Tok::Comma if found == Tok::Comma || found.is_infix() => {
            let (sign, found) = (site.shown(before), site.shown(site.at));
            say(site.error(Code::E0002, here, format!("there is nothing between {sign} and {found}")))
        }
        _ => None,
    }
}

fn operator(site: &Site, before: u32) -> Diagnostic {
    let sign = site.text(before);
    let found = site.found();
    let diagnostic = site.error(Code::E0002, site.span(before), format!("`{sign}` has no operand on its right"));
    match found {
        Tok::Newline => diagnostic.here("the line ends behind it"),
        _ if found.is_infix() => diagnostic.with_label(site.span(site.at), "another operator follows"),
        _ => diagnostic.with_label(site.span(site.at), format!("{} follows", site.shown(site.at))),
    }
}

/// Two operands with nothing between them
pub(super) fn adjacent(site: &Site) -> Option<Verdict> {
    let before = site.before()?;
    let found = site.found();
    let operand = found.begins_operand() || matches!(found, Tok::Not | Tok::Tilde);
    if !site.kind(before).ends_operand() || !operand {
        return None;
    }
    let (left, right) = (site.shown(before), site.shown(site.at));
    let place = site.behind(before);
    // `x.0`
    if found == Tok::Number && site.text(site.at).starts_with('.') && site.touch(before, site.at) {
        let index = &site.text(site.at)[1..];
        let span = site.span(site.at);
        return say(site.error(Code::E0002, span, "an element is taken by `[…]`, not by `.`").fix(
            format!("write `[{index}]`"),
            span,
            format!("[{index}]"),
        ));
    }
    let whole = site.span(before).to(site.span(site.at));
    let diagnostic = site.error(Code::E0002, whole, format!("nothing stands between {left} and {right}"));
    Some(Verdict::Say(match site.bracket() {
        Some(bracket) if site.kind(bracket) != Tok::FOpen => {
            diagnostic.here("`,` or an operator is missing").fix("insert `,`", place, ",")
        }
        _ => diagnostic.here("an operator is missing, or the end of the line"),
    }))
}

/// When no rule knows better.
pub(super) fn unexpected(site: &Site) -> Diagnostic {
    let found = site.shown(site.at);
    match site.before() {
        None => site.error(Code::E0002, site.here(), format!("a statement cannot begin with {found}")),
        Some(before) if site.found() == Tok::Newline => {
            let diagnostic = site.error(Code::E0002, site.here(), "the line ends too early");
            diagnostic.here(format!("something is missing after {}", site.shown(before)))
        }
        Some(before) => site.error(Code::E0002, site.here(), format!("{found} cannot follow {}", site.shown(before))),
    }
}
