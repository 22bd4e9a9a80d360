//! What a name refers to, told by renaming: where a variable is written otherwise at all places that resolution gives, and nowhere else, the
//! program is the same one.

use std::collections::BTreeSet;
use tessera::program::check;
use tessera_base::ItemId;
use tessera_resolve::names::{BindingId, Kind, Names, names};
use tessera_resolve::source::Loaded;
use tessera_tests::documents::programs;
use tessera_tests::laws::on_two_threads;
use tessera_tests::program::run_source;
use tessera_tests::random::Random;

/// The words of a text: names, numbers and all that stands between them.
fn words(text: &str) -> Vec<&str> {
    let mut out = vec![];
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let part = |c: char| c.is_alphanumeric() || c == '_';
        let end = match part(first) {
            true => rest.find(|c| !part(c)).unwrap_or(rest.len()),
            false => first.len_utf8(),
        };
        out.push(&rest[..end]);
        rest = &rest[end..];
    }
    out
}

/// Warnings that go by what the author called something: a second value named `i` is taken for a position.
const OF_NAMES: &[&str] = &["W0111"];

/// What of a program does not depend on its names: the codes of what is said of it, how it ends and what it prints.
fn meaning(source: &str) -> (Vec<&'static str>, Option<(i32, String)>) {
    let checked = check(&Loaded { path: "law.tsr".into(), text: source.into() });
    let ran = checked.program.and_then(|_| run_source(source, &["run"]).ok());
    let codes = checked.diagnostics.iter().map(|d| d.code.name());
    (codes.filter(|code| !OF_NAMES.contains(code)).collect(), ran.map(|r| (r.code, r.out)))
}

/// A name of as many bytes that the program does not have: places of functions stay where they are.
fn other_name(old: &str, source: &str) -> Option<String> {
    if !old.is_ascii() {
        return None;
    }
    let known: BTreeSet<&str> = words(source).into_iter().collect();
    let letters = "abcdefghijklmnopqrstuvwxyz";
    let mut ends = letters.chars().map(|c| format!("{}{c}", &old[..old.len() - 1]));
    ends.rfind(|name| name.len() == old.len() && !known.contains(name.as_str()))
}

/// What may be renamed without a look at other items: names of parameters are part of calls.
fn renamed(names: &Names) -> Vec<BindingId> {
    let local = |id: &BindingId| {
        let b = names.binding(*id);
        !names.is_of_file(*id) && matches!(b.kind, Kind::Variable | Kind::Target | Kind::Function)
    };
    (0..names.bindings.len() as u32).map(BindingId).filter(local).collect()
}

#[test]
fn a_program_with_another_name_is_the_same() {
    const EACH: usize = if cfg!(debug_assertions) { 1 } else { 3 };
    let programs = programs();
    let tried = std::sync::atomic::AtomicUsize::new(0);
    let failures = on_two_threads(programs.len(), |i| {
        let p = &programs[i];
        let mut random = Random::new(i as u64);
        let mut choices = vec![];
        for item in tessera_grammar::split(&p.source).items {
            let (from, to) = (item.range.start as usize, item.range.end as usize);
            let names = names(&tessera_grammar::parse_item(&p.source[from..to], ItemId(0)).stmts);
            choices.extend(
                renamed(&names).into_iter().map(|id| (from, names.binding(id).name.clone(), names.places_of(id))),
            );
        }
        let mut told = vec![];
        let mut before = None;
        for _ in 0..EACH.min(choices.len()) {
            let (from, name, places) = choices.swap_remove(random.below(choices.len()));
            let Some(new) = other_name(&name, &p.source) else { continue };
            let mut text = p.source.clone();
            for at in places.iter().map(|s| from + s.start as usize..from + s.end as usize) {
                assert_eq!(text[at.clone()], *name, "{}", p.place);
                text.replace_range(at, &new);
            }
            tried.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let before = before.get_or_insert_with(|| meaning(&p.source));
            let after = meaning(&text);
            if after != *before {
                told.push(format!(
                    "{}: `{name}` is another program as `{new}`: {after:?} and not {before:?}\n{text}",
                    p.place
                ));
            }
        }
        told
    });
    let tried = tried.into_inner();
    assert!(tried > 200, "{tried} names only");
    assert!(failures.is_empty(), "{} of {tried}\n\n{}", failures.len(), failures.join("\n\n"));
}
