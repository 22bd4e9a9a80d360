//! Words of other languages, and words in the wrong place.

use super::{Site, Verdict, say};
use crate::token::Tok;
use tessera_base::Code;

/// Reserved words of Python without a meaning here: why, and what to write.
pub(super) fn foreign_keyword(site: &Site) -> Option<Verdict> {
    let at = [site.at, site.line.start].into_iter().find(|i| site.kind(*i).is_foreign_keyword())?;
    let (reason, instead) = match site.kind(at) {
        Tok::Class => {
            ("there are no classes", "write `struct` for a record with typed fields, and functions that take it")
        }
        Tok::Try | Tok::Raise => (
            "a failed check ends the program, so there is nothing to catch",
            "test with `if` before, or state what must hold with `assert condition, message`",
        ),
        Tok::Except | Tok::Finally => {
            if earlier_try(site) {
                return Some(Verdict::Silent);
            }
            ("a failed check ends the program, so there is nothing to catch", "test with `if` before")
        }
        Tok::Async | Tok::Await => {
            ("functions run to their end", "leave the word out; work on devices overlaps by itself")
        }
        Tok::Yield => ("there are no generators", "return a list, for example from a comprehension `[… for x in xs]`"),
        Tok::Global | Tok::Nonlocal => (
            "a function cannot rebind names outside it",
            "return the new value and assign it where the function is called",
        ),
        _ => (
            "a value is freed when nothing uses it any more",
            "leave the statement out, or bind the name to something else",
        ),
    };
    let word = site.text(at);
    say(site.error(Code::E0002, site.span(at), format!("`{word}` is not part of Tessera: {reason}")).help(instead))
}

/// Whether a `try` was reported above, which explains what belongs to it.
pub(super) fn earlier_try(site: &Site) -> bool {
    site.tree
        .layout
        .lines
        .iter()
        .take_while(|first| **first < site.line.start)
        .any(|first| site.kind(*first) == Tok::Try)
}

/// First words of statements in other languages, and what to write.
const STATEMENTS: &[(&str, &str)] = &[
    ("let", "leave the word out: `name = value` binds a name"),
    ("var", "leave the word out: `name = value` binds a name"),
    ("val", "leave the word out: `name = value` binds a name"),
    ("const", "leave the word out: `name = value` binds a name"),
    ("mut", "leave the word out: every name can be bound again"),
    ("auto", "leave the word out: types are inferred"),
    ("fn", "functions begin with `def`"),
    ("func", "functions begin with `def`"),
    ("function", "functions begin with `def`"),
    ("fun", "functions begin with `def`"),
    ("proc", "functions begin with `def`"),
    ("elseif", "the word is `elif`"),
    ("elsif", "the word is `elif`"),
    ("elif", "the word is `elif`"),
    ("match", "compare with `if` and `elif`"),
    ("switch", "compare with `if` and `elif`"),
    ("case", "compare with `if` and `elif`"),
    ("unless", "write `if not …:`"),
    ("until", "write `while not …:`"),
    ("loop", "write `while True:`"),
    ("repeat", "write `for i in range(n):`"),
    ("do", "write `while True:` and leave the loop with `break`"),
    ("foreach", "write `for x in xs:`"),
    ("end", "a block ends where its indentation ends"),
    ("then", "a block begins behind `:`"),
    ("record", "records begin with `struct`"),
    ("interface", "records begin with `struct`"),
    ("enum", "there are no enumerations; use strings or ints"),
    ("type", "a type is an expression: `Name = Tensor[N, f32]`, or a `struct`"),
    ("use", "write `import module` or `from module import name`"),
    ("using", "write `import module` or `from module import name`"),
    ("include", "write `import module` or `from module import name`"),
    ("require", "write `import module` or `from module import name`"),
    ("throw", "state what must hold with `assert condition, message`"),
    ("new", "a struct is made by calling its name"),
    ("exec", "there is no code at run time but what was compiled"),
];

pub(super) fn foreign_statement(site: &Site) -> Option<Verdict> {
    let first = site.line.start;
    if site.first() != Tok::Name || site.at == first {
        return None;
    }
    let word = site.text(first);
    let (_, instead) = STATEMENTS.iter().find(|(w, _)| *w == word)?;
    // `match = 3` is an ordinary line; here the word must begin something that is not.
    let leads = site.at == first + 1 && site.found().begins_operand()
        || site.found() == Tok::BlockColon
        || site.found() == Tok::Colon;
    if !leads {
        return None;
    }
    // The word that the block begins with is reported, which explains what belongs to it.
    if word == "case" && site.block_head().is_some_and(|head| matches!(site.text(head), "match" | "switch")) {
        return Some(Verdict::Silent);
    }
    let mut diagnostic =
        site.error(Code::E0002, site.span(first), format!("`{word}` does not begin a statement in Tessera"));
    let next = site.span(first + 1);
    diagnostic = match word {
        "let" | "var" | "val" | "const" | "mut" | "auto" => {
            let span = site.span(first);
            diagnostic.fix(*instead, tessera_base::Span { end: next.start, ..span }, "")
        }
        "fn" | "func" | "function" | "fun" | "proc" => diagnostic.fix(*instead, site.span(first), "def"),
        "elseif" | "elsif" => diagnostic.fix(*instead, site.span(first), "elif"),
        _ => diagnostic.help(*instead),
    };
    say(diagnostic)
}

/// `print x`
pub(super) fn print_statement(site: &Site) -> Option<Verdict> {
    let before = site.before()?;
    if site.kind(before) != Tok::Name || site.text(before) != "print" || !site.found().begins_operand() {
        return None;
    }
    let last = site.line.end - 1;
    let span = site.span(before).to(site.span(last));
    let start = site.span(site.at).start as usize;
    let rest = &site.tree.text[start..site.span(last).end as usize];
    let rest = rest.trim_end_matches(';');
    say(site.error(Code::E0002, span, "`print` is a function; its arguments stand in parentheses").fix(
        format!("write `print({rest})`"),
        span,
        format!("print({rest})"),
    ))
}

/// A reserved word where a name must stand.
pub(super) fn reserved_name(site: &Site) -> Option<Verdict> {
    let found = site.found();
    let next = site.kind(site.at + 1);
    let reserved = |kind: Tok| kind.is_keyword() && !kind.is_foreign_keyword();
    let at = match site.before_kind() {
        Some(Tok::For) if found == Tok::In => return None,
        Some(Tok::Def | Tok::Struct | Tok::Dot | Tok::As | Tok::Import | Tok::For) if reserved(found) => site.at,
        Some(before) if reserved(before) && found == Tok::Assign => site.at - 1,
        _ if reserved(found) && next == Tok::Assign => site.at,
        Some(Tok::LParen | Tok::Comma) if reserved(found) && site.first() == Tok::Def => site.at,
        _ => return None,
    };
    let word = site.text(at);
    if matches!(site.kind(at), Tok::Else | Tok::If) && at > site.line.start && site.kind(at - 1) != Tok::Def {
        return None;
    }
    say(site.error(Code::E0002, site.span(at), format!("`{word}` is a reserved word and cannot be a name")).fix(
        format!("call it `{word}_`"),
        site.span(at),
        format!("{word}_"),
    ))
}

/// Words that begin a statement and nothing else.
pub(super) fn begins_statement(kind: Tok) -> bool {
    use Tok::*;
    matches!(kind, Return | Break_ | Continue | Pass | Import | From | Assert | While | Def | Struct | With | Elif)
}

/// `x = return y`
pub(super) fn statement_inside(site: &Site) -> Option<Verdict> {
    use Tok::*;
    let found = site.found();
    if site.at_start() || !(begins_statement(found) || matches!(found, If | For)) {
        return None;
    }
    let word = site.text(site.at);
    let inside = if site.beside().any(|i| site.kind(i) == Lambda) {
        "the value of a `lambda` is an expression"
    } else {
        "it begins a line of its own"
    };
    say(site
        .error(Code::E0002, site.span(site.at), format!("`{word}` begins a statement and cannot stand inside one"))
        .help(inside))
}
