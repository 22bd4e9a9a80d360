//! Operators that Tessera spells differently or does not have.

use super::{Site, Verdict, say};
use crate::token::Tok;
use tessera_base::Code;

pub(super) fn walrus(site: &Site) -> Option<Verdict> {
    if site.found() != Tok::Walrus {
        return None;
    }
    let diagnostic =
        site.error(Code::E0002, site.span(site.at), "`:=` is not part of Tessera: an expression binds no names");
    // As a statement of its own it can only mean `=`.
    if site.at == site.line.start + 1 {
        return say(diagnostic.fix("write `=`", site.span(site.at), "="));
    }
    say(diagnostic.help("assign on the line before, with `=`"))
}

pub(super) fn fat_arrow(site: &Site) -> Option<Verdict> {
    if site.found() != Tok::FatArrow {
        return None;
    }
    let diagnostic = site.error(Code::E0002, site.span(site.at), "`=>` is not an operator of Tessera");
    if site.first() == Tok::Def {
        return say(diagnostic.fix("a result type follows `->`", site.span(site.at), "->"));
    }
    say(diagnostic.help("a comparison is `>=`, a function value is `lambda x: …`"))
}

/// Operators written with a space inside, or with their signs swapped.
pub(super) fn torn_operator(site: &Site) -> Option<Verdict> {
    use Tok::*;
    let pair = |left: u32| {
        let meant = match (site.kind(left), site.kind(left + 1)) {
            (Lt, Assign) => "<=",
            (Gt, Assign) => ">=",
            (Assign, Lt) if site.touch(left, left + 1) => "<=",
            (EqEq, Assign) | (Assign, EqEq | Assign) => "==",
            (Minus, Gt) if site.first() == Def => "->",
            (Star, Star) => "**",
            (Slash, Slash) => "//",
            _ => return None,
        };
        Some((left, meant))
    };
    let before = site.before()?;
    if matches!(site.kind(before), Plus | Minus | Star | Slash | SlashSlash | Percent | At | StarStar)
        && site.found() == Assign
    {
        return say(with_equals(site, before));
    }
    let (left, meant) = pair(before).or_else(|| pair(site.at))?;
    let written =
        format!("{}{}{}", site.text(left), if site.touch(left, left + 1) { "" } else { " " }, site.text(left + 1));
    let span = site.span(left).to(site.span(left + 1));
    say(site.error(Code::E0002, span, format!("`{written}` is not an operator of Tessera")).fix(
        format!("write `{meant}`"),
        span,
        meant,
    ))
}

fn with_equals(site: &Site, before: u32) -> tessera_base::Diagnostic {
    let meant = format!("{}=", site.text(before));
    let span = site.span(before).to(site.span(site.at));
    site.error(Code::E0002, span, format!("`{meant}` is written without a space")).fix(
        format!("write `{meant}`"),
        span,
        meant,
    )
}

/// `x++`
pub(super) fn increment(site: &Site) -> Option<Verdict> {
    let second = site.before()?;
    let first = second.checked_sub(1).filter(|i| *i >= site.line.start)?;
    let kind = site.kind(second);
    let double = matches!(kind, Tok::Plus | Tok::Minus) && site.kind(first) == kind && site.touch(first, second);
    if !double || site.found().begins_operand() {
        return None;
    }
    let sign = site.text(second);
    let span = site.span(first).to(site.span(second));
    say(site.error(Code::E0002, span, format!("`{sign}{sign}` is not an operator of Tessera")).fix(
        format!("write `{sign}= 1`"),
        span,
        format!(" {sign}= 1"),
    ))
}

/// `=` where a value is compared, or where nothing can be bound.
pub(super) fn equals(site: &Site) -> Option<Verdict> {
    if site.found() != Tok::Assign {
        return None;
    }
    let span = site.span(site.at);
    let compare = |message: String| {
        say(site.error(Code::E0002, span, message).here("this assigns").fix("to compare, write `==`", span, "=="))
    };
    match site.bracket() {
        Some(bracket) if site.is_call(bracket) => {
            let argument = site.before().map_or(span, |i| site.span(i));
            let message = "a keyword argument begins with its name alone";
            say(site
                .error(Code::E0002, span, message)
                .with_label(argument, "not a single name")
                .help("write `name=value`, or `==` to compare"))
        }
        Some(_) => compare("`=` cannot stand inside brackets".into()),
        None => match site.first() {
            Tok::If | Tok::Elif | Tok::While | Tok::Assert | Tok::Return => compare(format!(
                "`=` assigns and cannot stand in the expression after `{}`",
                site.text(site.line.start)
            )),
            _ => None,
        },
    }
}
