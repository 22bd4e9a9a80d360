//! Heads of blocks, definitions and imports.

use super::{Site, Verdict, say, words::earlier_try};
use crate::token::Tok;
use tessera_base::{Code, Diagnostic, Span};

/// `else if`
pub(super) fn else_if(site: &Site) -> Option<Verdict> {
    if site.before_kind() != Some(Tok::Else) || site.found() != Tok::If || site.before() != Some(site.line.start) {
        return None;
    }
    let span = site.span(site.at - 1).to(site.span(site.at));
    say(site.error(Code::E0002, span, "`else if` is one word in Tessera").fix("write `elif`", span, "elif"))
}

/// `else` or `elif` without its `if`
pub(super) fn orphan(site: &Site) -> Option<Verdict> {
    if !site.at_start() || !matches!(site.found(), Tok::Else | Tok::Elif) {
        return None;
    }
    if earlier_try(site) {
        return Some(Verdict::Silent);
    }
    let word = site.text(site.at);
    say(site
        .error(Code::E0002, site.span(site.at), format!("this `{word}` belongs to no `if`"))
        .help(format!("`{word}` follows the block of an `if` and has its indentation; loops have no `else`")))
}

/// `@x` before something that cannot be decorated
pub(super) fn decorator(site: &Site) -> Option<Verdict> {
    let lines = &site.tree.layout.lines;
    let line = site.tree.layout.line_of(site.at);
    let above = line.checked_sub(1).and_then(|l| lines.get(l)).copied()?;
    let end = site.line.start == site.line.end;
    if !(site.at_start() || end)
        || site.kind(above) != Tok::At
        || matches!(site.found(), Tok::Def | Tok::Struct | Tok::At)
    {
        return None;
    }
    say(site
        .error(Code::E0002, site.span(above), "a decorator belongs to the `def` or `struct` below it")
        .with_label(site.here(), "this is neither"))
}

/// Lines of a `struct` that are no fields
pub(super) fn field(site: &Site) -> Option<Verdict> {
    if site.block_head().map(|head| site.kind(head)) != Some(Tok::Struct) {
        return None;
    }
    let span = site.span(site.line.start);
    match site.first() {
        Tok::Def => say(site
            .error(Code::E0002, span, "a struct holds fields only")
            .help("write the function beside the struct and let it take a value of the struct: `def area(s: Shape):`")),
        Tok::Name if site.at == site.line.start + 1 && matches!(site.found(), Tok::Assign | Tok::Newline) => {
            let name = site.text(site.line.start);
            say(site
                .error(Code::E0002, span, format!("the field `{name}` needs a type"))
                .help(format!("write `{name}: float` or another type, then `= value` for a default")))
        }
        _ if site.at_start() => say(site
            .error(Code::E0002, site.here(), "this is not a field")
            .help("a field is written `name: type`, or `name: type = default`")),
        _ => None,
    }
}

/// A head without `:`
pub(super) fn missing_colon(site: &Site) -> Option<Verdict> {
    let before = site.before()?;
    let first = site.first();
    if !first.opens_block() || site.bracket().is_some() || site.beside().any(|i| site.kind(i) == Tok::Colon) {
        return None;
    }
    let complete = site.kind(before).ends_operand() || first == Tok::Else && before == site.line.start;
    let found = site.found();
    let goes_on = found.begins_operand() || found.is_keyword() || found == Tok::Newline;
    if !complete || !goes_on || site.line.start + 1 == site.at && first != Tok::Else {
        return None;
    }
    let word = site.text(site.line.start);
    let place = site.behind(before);
    say(site
        .error(Code::E0008, place, format!("the `{word}` line opens a block, but has no `:`"))
        .here("`:` is missing here")
        .fix("insert `:`", place, ":"))
}

/// A `:` behind something that opens no block
pub(super) fn unwanted_colon(site: &Site) -> Option<Verdict> {
    let found = site.found();
    if !matches!(found, Tok::Colon | Tok::BlockColon) {
        return None;
    }
    let span = site.span(site.at);
    if found == Tok::Colon && site.bracket().is_some() {
        return say(site
            .error(Code::E0002, span, "a `:` has no meaning here")
            .help("it stands in slices, dicts, annotations and behind the head of a block"));
    }
    let diagnostic = site.error(Code::E0002, span, "this line opens no block, so it has no `:`");
    say(if found == Tok::BlockColon {
        diagnostic.help("a block follows `if`, `elif`, `else`, `for`, `while`, `with`, `def` or `struct`")
    } else {
        diagnostic.fix("remove it", span, "")
    })
}

/// `for` without `in`, or in the manner of C
pub(super) fn for_header(site: &Site) -> Option<Verdict> {
    if site.first() != Tok::For || (site.line.start..site.at).any(|i| site.kind(i) == Tok::In) {
        return None;
    }
    let found = site.found();
    let all: Vec<Tok> = site.line.clone().map(|i| site.kind(i)).collect();
    if all.contains(&Tok::Semi) || found == Tok::Assign {
        let diagnostic = site.error(Code::E0002, site.here(), "a `for` loop takes its values from a list or a range");
        return say(diagnostic.help("write `for i in range(n):`"));
    }
    if site.before() == Some(site.line.start) {
        let found_in = found == Tok::In || found == Tok::Newline || found == Tok::BlockColon;
        let message = if found_in {
            "the name of the loop variable is missing"
        } else {
            "a `for` loop needs a name for its values"
        };
        return say(site.error(Code::E0002, site.here(), message).help("write `for x in xs:`"));
    }
    let place = site.here();
    let diagnostic = site.error(Code::E0002, place, "`in` is missing in this `for` loop");
    if found == Tok::Name && matches!(site.text(site.at), "of" | "into" | "from") {
        return say(diagnostic.fix("write `in`", place, "in"));
    }
    say(diagnostic.help("write `for x in xs:`"))
}

/// `def` and `struct` lines
pub(super) fn signature(site: &Site) -> Option<Verdict> {
    let (first, before) = (site.first(), site.before()?);
    if !matches!(first, Tok::Def | Tok::Struct) {
        return None;
    }
    let found = site.found();
    let word = site.text(site.line.start);
    let header = site.line.start;
    if before == header {
        return say(site.error(Code::E0002, site.here(), format!("the name is missing after `{word}`")));
    }
    if first == Tok::Def && before == header + 1 && found != Tok::LParen {
        let place = site.behind(before);
        let name = site.text(before);
        if found == Tok::LBracket {
            let help = "leave the brackets out: a capitalised name in a parameter's type is a size of this function";
            return say(site.error(Code::E0002, site.span(site.at), "a function lists no sizes").help(help));
        }
        return say(site.error(Code::E0002, place, format!("the function `{name}` has no parameter list")).fix(
            "insert `()`",
            place,
            "()",
        ));
    }
    if first == Tok::Struct && before == header + 1 && found == Tok::LParen {
        return say(site
            .error(Code::E0002, site.span(site.at), "a struct has no base and no parameter list")
            .help("sizes and types that it is generic over stand in `[…]`; fields stand in its block"));
    }
    site.bracket().filter(|b| *b == header + 2 && site.kind(*b) == Tok::LParen && first == Tok::Def)?;
    parameter(site, before)
}

fn parameter(site: &Site, before: u32) -> Option<Verdict> {
    let span = site.span(site.at);
    let error = |message: &str| site.error(Code::E0002, span, message);
    let starts = matches!(site.kind(before), Tok::LParen | Tok::Comma);
    match site.found() {
        Tok::Slash if starts => {
            // With the comma that parts it from others.
            let (first, last) = match (site.kind(before), site.kind(site.at + 1)) {
                (Tok::Comma, _) => (site.span(before), span),
                (_, Tok::Comma) => (span, site.span(site.at + 1)),
                _ => (span, span),
            };
            let all = Span { end: last.end, ..first };
            say(error("parameters cannot be made positional only").fix("remove it", all, ""))
        }
        Tok::LParen if starts => {
            say(error("a parameter is a single name").help("take the tuple as one parameter and take it apart inside"))
        }
        Tok::Number | Tok::Str | Tok::True | Tok::False | Tok::None_ if starts => {
            say(error("a parameter is a name, not a value").help("write `name=value` for a default"))
        }
        Tok::Name if site.kind(before) == Tok::Name && site.text(before) == "self" => None,
        Tok::Name if site.kind(before) == Tok::Name && matches!(site.kind(before - 1), Tok::LParen | Tok::Comma) => {
            let whole = site.span(before).to(span);
            let (ty, name) = (site.text(before), site.text(site.at));
            say(site
                .error(Code::E0002, whole, "two names side by side in a parameter list")
                .here("`,` or `:` is missing")
                .fix(format!("two parameters: `{ty}, {name}`"), site.behind(before), ",")
                .fix(format!("a type follows its name: `{name}: {ty}`"), whole, format!("{name}: {ty}")))
        }
        _ => None,
    }
}

/// `lambda` without its `:`, with parentheses or types
pub(super) fn lambda(site: &Site) -> Option<Verdict> {
    let at = site.beside().take_while(|i| site.kind(*i) != Tok::Colon).find(|i| site.kind(*i) == Tok::Lambda);
    let span = site.here();
    if let Some(at) = at {
        if site.found() == Tok::LParen && site.before() == Some(at) {
            return say(site
                .error(Code::E0002, span, "the parameters of a `lambda` have no parentheses")
                .help("write `lambda x, y: x + y`"));
        }
        let place = site.before().map_or(span, |i| site.behind(i));
        return say(site
            .error(Code::E0002, place, "`:` is missing in this `lambda`")
            .with_label(site.span(at), "begins here")
            .help("write `lambda x: x + 1`"));
    }
    let typed = site.found() == Tok::Colon && site.beside().filter(|i| site.kind(*i) == Tok::Lambda).count() == 1;
    if typed && site.bracket().is_none_or(|b| site.kind(b) == Tok::LParen) && !site.first().opens_block() {
        return say(site
            .error(Code::E0002, span, "the parameters of a `lambda` have no types")
            .help("leave the types out, or write a `def`"));
    }
    None
}

/// `import` lines
pub(super) fn import(site: &Site) -> Option<Verdict> {
    let (first, found) = (site.first(), site.found());
    if !matches!(first, Tok::Import | Tok::From) || site.at_start() {
        return None;
    }
    let span = site.here();
    let error = |message: &str| -> Diagnostic { site.error(Code::E0002, span, message) };
    say(match (first, found, site.before_kind()) {
        (_, Tok::Str | Tok::OpenStr, _) => {
            error("a module is named without quotes").help("write `import folder.file` for `folder/file.tsr`")
        }
        (Tok::From, Tok::Dot | Tok::Ellipsis, Some(Tok::From)) => {
            error("a module is named from the program's folder on, not relative to this file")
                .help("leave the dots out")
        }
        (Tok::From, Tok::Star, _) => error("names are imported one by one")
            .help("write `from module import a, b`, or `import module` and `module.a`"),
        (Tok::Import, Tok::From, _) => error("`from` comes first").help("write `from module import name`"),
        (Tok::From, Tok::Newline, _) if !(site.line.start..site.at).any(|i| site.kind(i) == Tok::Import) => {
            error("`import` is missing").help("write `from module import name`")
        }
        (_, Tok::Newline, _) => error("the name of what to import is missing"),
        (_, Tok::Name, Some(Tok::Name)) => site.error(Code::E0002, span, "`,` or `as` is missing between two names"),
        (_, Tok::Slash, _) => error("the parts of a module's name are joined by `.`").fix("write `.`", span, "."),
        _ => error("this is not the name of a module").help("write `import a.b`, `import a as b` or `from a import b`"),
    })
}
