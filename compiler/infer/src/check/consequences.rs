//! Which diagnostics are told: not those that follow from others, and tell nothing where these stand.

use std::collections::BTreeSet;
use std::sync::Arc;
use tessera_base::{Code, Diagnostic, ItemId, Span};
use tessera_resolve::source::SourceMap;

/// The diagnostics that are told, in the order of the texts: none twice, and none that may follow from another. `text` is
/// that of an item.
pub fn told<'a>(all: Vec<Diagnostic>, text: impl Fn(ItemId) -> &'a str, sources: &SourceMap) -> Vec<Diagnostic> {
    sorted(without_consequences(all, text), sources)
}

/// In the order of the text; equal ones once.
fn sorted(diagnostics: Vec<Diagnostic>, sources: &SourceMap) -> Vec<Diagnostic> {
    let mut keyed: Vec<_> =
        diagnostics.into_iter().map(|d| (sources.locate(d.span).map(|(f, r)| (f, r.start, r.end)), d)).collect();
    keyed.sort_by_key(|a| a.0);
    let mut out: Vec<Diagnostic> = vec![];
    for (_, d) in keyed {
        if !out.iter().rev().take(50).any(|o| o.span == d.span && o.code == d.code && o.message == d.message) {
            out.push(d);
        }
    }
    out
}

/// The diagnostics without what may follow from another of them.
fn without_consequences<'a>(all: Vec<Diagnostic>, text: impl Fn(ItemId) -> &'a str) -> Vec<Diagnostic> {
    let cause = all.iter().any(|d| d.is_error() && !of_unknown_type(d));
    let types: BTreeSet<Span> = all.iter().filter(|d| d.code == Code::E0215).map(|d| d.span).collect();
    let imports: BTreeSet<Arc<str>> = all.iter().filter(|d| d.code == Code::E0102).flat_map(meant).collect();
    let undefined = |d: &Diagnostic| {
        let name = d.message.strip_prefix('`').and_then(|m| m.strip_suffix("` is not defined"));
        d.code == Code::E0101 && (types.contains(&d.span) || name.is_some_and(|n| imports.contains(n)))
    };
    let broken: BTreeSet<ItemId> = all.iter().filter(|d| of_syntax(d)).map(|d| d.span.item).collect();
    let words: BTreeSet<&str> = broken.iter().flat_map(|i| words(text(*i))).collect();
    let unread = |d: &Diagnostic| {
        !of_syntax(d) && (broken.contains(&d.span.item) || subject(&d.message).is_some_and(|s| words.contains(s)))
    };
    all.into_iter().filter(|d| !(undefined(d) || unread(d) || cause && of_unknown_type(d))).collect()
}

/// Whether it is about the form of the text. What stands around it was read only in part: nothing is said of it, nor of
/// what it may define.
fn of_syntax(d: &Diagnostic) -> bool {
    d.is_error() && d.code.name().starts_with("E00")
}

/// The words of a text.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|w| !w.is_empty())
}

/// The name that a message is about: what stands first between backquotes, without what follows a dot.
fn subject(message: &str) -> Option<&str> {
    let name = message.split('`').nth(1)?;
    words(name).next()
}

/// Whether it speaks of a value whose type is not known, as what an error left is.
fn of_unknown_type(d: &Diagnostic) -> bool {
    let shown = |unknown: &str| d.message.contains(unknown);
    // A misspelt member of a list whose elements are not known is a mistake of its own.
    let inside = shown("?") && d.code != Code::E0103;
    let lacking = d.code == Code::E0216 || d.code == Code::E0213 && shown("not known");
    d.is_error() && (lacking || shown("<error>") || shown("`?`") || inside)
}

/// The names that an import which fails may mean: what reads them is right.
fn meant(d: &Diagnostic) -> Vec<Arc<str>> {
    d.fixes.iter().flat_map(|f| &f.edits).filter_map(|e| Some(e.text.rsplit('.').next()?.into())).collect()
}
