//! What a name refers to, told by renaming: where a variable is written otherwise at all places that resolution gives, and nowhere else, the
//! program is the same one.

use std::collections::BTreeSet;
use tessera::program::check;
use tessera_base::ItemId;
use tessera_core::text::print;
use tessera_resolve::names::{BindingId, Kind, Names, names};
use tessera_resolve::source::Loaded;
use tessera_tests::documents::programs;
use tessera_tests::laws::on_two_threads;
use tessera_tests::random::Random;

const MARK: &str = "_zq";

/// What of a program does not depend on the order of its names: the lines of its Core without numbers of values, and the
/// codes of what is said of it.
fn meaning(source: &str) -> (Vec<String>, Vec<&'static str>) {
    let checked = check(&Loaded { path: "law.tsr".into(), text: source.into() });
    let text = checked.program.map(|p| print(&p, false)).unwrap_or_default();
    let plain = |line: &str| -> String {
        let numbered = line.replace(MARK, "");
        let mut out = String::new();
        let mut rest = numbered.as_str();
        while let Some(at) = rest.find(['%', '$', '#', '@']) {
            out += &rest[..=at];
            rest = rest[at + 1..].trim_start_matches(|c: char| c.is_ascii_digit());
        }
        out + rest
    };
    let mut lines: Vec<String> = text.lines().map(plain).collect();
    lines.sort();
    (lines, checked.diagnostics.iter().map(|d| d.code.name()).collect())
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
            let mut text = p.source.clone();
            let places: BTreeSet<usize> = places.iter().map(|s| from + s.end as usize).collect();
            places.iter().rev().for_each(|at| text.insert_str(*at, MARK));
            tried.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let before = before.get_or_insert_with(|| meaning(&p.source));
            if meaning(&text) != *before {
                told.push(format!("{}: `{name}` is another program once renamed\n{text}", p.place));
            }
        }
        told
    });
    let tried = tried.into_inner();
    assert!(tried > 200, "{tried} names only");
    assert!(failures.is_empty(), "{} of {tried}\n\n{}", failures.len(), failures.join("\n\n"));
}
