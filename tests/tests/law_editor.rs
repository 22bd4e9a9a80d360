//! What editors are told holds for every name of real programs: definitions have their uses, what follows a dot is offered
//! there, other names leave programs right, types that are written down check; and no text ends the server.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use tessera::files::Disk;
use tessera_base::FileId;
use tessera_grammar::token::{Tok, lex};
use tessera_ide::analysis::Analysis;
use tessera_ide::symbol::Symbol;
use tessera_ide::{call, coloring, complete, folding, hover, inlays, outline, rename};
use tessera_infer::check_only;
use tessera_infer::db::Database;
use tessera_tests::laws;
use tessera_tests::opened::{self, open, programs};
use tessera_tests::random::Random;

fn errors(db: &Database, id: FileId) -> Vec<String> {
    opened::errors(&check_only(db, id).diagnostics)
}

fn own_files(db: &Database) -> Vec<FileId> {
    (0..db.source_map().files.len() as u32).map(FileId).collect()
}

/// The names of a text, where they stand.
fn names(text: &str) -> Vec<Range<usize>> {
    lex(text).iter().filter(|t| t.kind == Tok::Name).map(|t| t.range()).collect()
}

/// Every place of what a name stands for leads to the same definition, and the name is one of these places.
#[test]
fn uses_and_definitions_belong_together() {
    let mut counted = 0;
    for path in programs() {
        let text = std::fs::read_to_string(&path).expect("a program");
        let (db, id) = open(&path.to_string_lossy(), &text);
        let cx = Analysis::new(&db, id);
        let mut of: BTreeMap<Symbol, Vec<Range<usize>>> = BTreeMap::new();
        for name in names(&text) {
            if let Some((place, symbol)) = cx.symbol_at(id, name.start) {
                assert_eq!((place.file, place.range()), (id, name.clone()), "{}: {}", path.display(), &text[name]);
                // At its end an editor's cursor stands as well.
                let at_end = cx.symbol_at(id, name.end).map(|(_, s)| s);
                assert_eq!(at_end.as_ref(), Some(&symbol), "{}: behind {}", path.display(), &text[name]);
                of.entry(symbol).or_default().push(name);
            }
        }
        for (symbol, places) in of {
            let defined = cx.definition(&symbol);
            let built_in =
                matches!(symbol, Symbol::Module(_) | Symbol::Builtin(_) | Symbol::OfTensor(_) | Symbol::Method(_));
            assert_eq!(defined.is_empty(), built_in, "{}: the definition of {symbol:?}", path.display());
            let found: BTreeSet<usize> = cx.occurrences(&symbol, &[id]).into_iter().map(|o| o.place.start).collect();
            let own: BTreeSet<usize> = places.iter().map(|p| p.start).collect();
            assert!(own.is_subset(&found), "{}: places of {symbol:?}", path.display());
            counted += own.len();
        }
    }
    assert!(counted > 9_000, "{counted} names have a meaning");
}

/// What is written in programs is what is offered there.
#[test]
fn what_follows_is_offered() {
    let mut random = Random::new(20);
    let (mut asked, mut missed) = (0, vec![]);
    for path in programs() {
        let text = std::fs::read_to_string(&path).expect("a program");
        let (mut db, id) = open(&path.to_string_lossy(), &text);
        let tokens = lex(&text);
        for pair in tokens.windows(2).filter(|w| w[0].kind == Tok::Dot && w[1].kind == Tok::Name) {
            if random.below(6) > 0 {
                continue;
            }
            let name = pair[1].range();
            let known = Analysis::new(&db, id).symbol_at(id, name.start).is_some();
            // As if it was being written: nothing behind the dot in its line, or all of it.
            let line_end = text[name.end..].find('\n').map_or(text.len(), |i| name.end + i);
            let rest = if random.below(2) == 0 { name.end } else { line_end };
            let typed = format!("{}{}", &text[..name.start], &text[rest..]);
            db.set_text(id, &typed);
            let found = complete::complete(&mut db, id, name.start);
            let offered = found.is_some_and(|f| f.all.iter().any(|c| c.label == text[name.clone()]));
            assert_eq!(*Analysis::new(&db, id).text(id), *typed, "the text stays as it was");
            db.set_text(id, &text);
            asked += 1;
            if known && !offered {
                let line = text[..name.start].matches('\n').count() + 1;
                missed.push(format!("{}:{line} .{}", path.display(), &text[name]));
            }
        }
    }
    assert!(asked > 300, "{asked}");
    assert!(missed.len() * 50 <= asked, "{} of {asked}:\n{}", missed.len(), missed.join("\n"));
}

/// A program with another name for one thing is as right as before.
#[test]
fn other_names_leave_programs_right() {
    let mut random = Random::new(7);
    let mut renamed = 0;
    for path in programs().into_iter().filter(|p| p.to_string_lossy().contains("examples")) {
        let text = std::fs::read_to_string(&path).expect("a program");
        let (mut db, id) = open(&path.to_string_lossy(), &text);
        let before = errors(&db, id);
        let all = names(&text);
        for _ in 0..12 {
            let name = all[random.below(all.len())].clone();
            let files = own_files(&db);
            // A name that begins with a capital may be a size: a variable of that name hides it.
            let to = if text[name.clone()].starts_with(char::is_uppercase) { "Renamed_q" } else { "renamed_q" };
            let places = {
                let cx = Analysis::new(&db, id);
                let Ok(places) = rename::rename(&cx, id, name.start, to, &files) else { continue };
                places
            };
            let mut changed: BTreeMap<FileId, String> = BTreeMap::new();
            for place in places.iter().rev() {
                let whole = || Analysis::new(&db, id).text(place.file).to_string();
                changed.entry(place.file).or_insert_with(whole).replace_range(place.range(), to);
            }
            let old: Vec<_> = changed.keys().map(|f| (*f, Analysis::new(&db, id).text(*f))).collect();
            changed.iter().for_each(|(file, text)| db.set_text(*file, text));
            let after = errors(&db, id);
            assert_eq!(after.len(), before.len(), "{}: `{}` renamed: {after:?}", path.display(), &text[name]);
            old.iter().for_each(|(file, text)| db.set_text(*file, text));
            renamed += 1;
        }
    }
    assert!(renamed > 60, "{renamed}");
}

/// The types that an editor shows and offers to write can be written.
#[test]
fn written_types_check() {
    let mut written = 0;
    for path in programs().into_iter().filter(|p| p.to_string_lossy().contains("examples")) {
        let text = std::fs::read_to_string(&path).expect("a program");
        let (mut db, id) = open(&path.to_string_lossy(), &text);
        let before = errors(&db, id);
        let found = inlays::inlays(&Analysis::new(&db, id), id, 0..text.len(), &[]);
        let mut random = Random::new(3);
        let writable: Vec<_> = found.into_iter().filter(|i| i.writable).collect();
        for inlay in writable.iter().filter(|_| random.below(2) == 0) {
            let mut changed = text.clone();
            changed.insert_str(inlay.at, &inlay.whole);
            db.set_text(id, &changed);
            let after = errors(&db, id);
            let line = text[..inlay.at].matches('\n').count() + 1;
            assert_eq!(after.len(), before.len(), "{}:{line}{}: {after:?}", path.display(), inlay.whole);
            written += 1;
        }
        db.set_text(id, &text);
    }
    assert!(written > 50, "{written}");
}

/// Colours follow each other, folds and outlines lie in the text.
#[test]
fn parts_lie_in_the_text() {
    for path in programs() {
        let text = std::fs::read_to_string(&path).expect("a program");
        let (db, id) = open(&path.to_string_lossy(), &text);
        look_at(&db, id, &text, text.len() / 2);
    }
}

fn look_at(db: &Database, id: FileId, text: &str, byte: usize) {
    let cx = Analysis::new(db, id);
    let mut end = 0;
    for c in coloring::coloring(&cx, id, 0..text.len()) {
        assert!(end <= c.range.start && c.range.start < c.range.end && c.range.end <= text.len(), "{c:?}");
        end = c.range.end;
    }
    for f in folding::folds(&cx, id) {
        assert!(text.get(f.range.clone()).is_some_and(|t| t.contains('\n')), "{f:?}");
    }
    let around = folding::selections(&cx, id, byte);
    assert!(around.windows(2).all(|w| w[1].start <= w[0].start && w[0].end <= w[1].end), "{around:?}");
    for e in outline::outline(&cx, id) {
        assert!(e.place.start <= e.at.start && e.at.end <= e.place.end && e.place.end <= text.len(), "{e:?}");
    }
    for i in inlays::inlays(&cx, id, 0..text.len(), &[]) {
        assert!(text.is_char_boundary(i.at), "{i:?}");
    }
    let _ = hover::hover(&cx, id, byte);
    let _ = call::writing(&cx, id, byte);
}

/// What is told of the names that functions bind which need nothing of their file and are annotated throughout: by the text of
/// the function, and where the name stands in it.
fn told_of_functions(db: &Database, id: FileId) -> BTreeMap<(String, u32), String> {
    let cx = Analysis::new(db, id);
    let mut out = BTreeMap::new();
    let Some(scope) = cx.scope(id) else { return out };
    for item in cx.heads(id).iter().filter_map(|head| cx.item(head.id)) {
        let Some(sig) = item.signature(db).clone() else { continue };
        let annotated = sig.ret.is_some() && sig.params.iter().all(|p| p.ty.is_some());
        let own = item.names(db).bindings.first().map(|b| b.name.clone());
        let of_file = |name: &std::sync::Arc<str>| scope.names.contains_key(name) || scope.variables.contains(name);
        if !annotated || item.outside(db).iter().any(|n| Some(n) != own.as_ref() && of_file(n)) {
            continue;
        }
        // Its head tells its calls, which stand elsewhere.
        for binding in item.names(db).bindings.iter().skip(1) {
            let Some(place) = binding.places.first() else { continue };
            let at = cx.place(tessera_base::Span { item: item.id(db), ..*place }).map(|p| p.start);
            let told = at.and_then(|at| hover::hover(&cx, id, at)).map_or_else(String::new, |h| h.markdown);
            out.insert((item.text(db).to_string(), place.start), told);
        }
    }
    out
}

/// What an editor asks of a text that is being typed: nothing goes down, and the text stays as it was.
fn ask_of(db: &mut Database, id: FileId, typed: &str, at: usize) {
    db.set_text(id, typed);
    db.load_imports(id, &Disk);
    let _ = check_only(db, id);
    look_at(db, id, typed, at);
    let _ = complete::complete(db, id, at);
    assert_eq!(*Analysis::new(db, id).text(id), *typed, "the text stays as it was");
}

/// Programs that are so small that all of their beginnings are asked about, and how many of them letter by letter.
const SMALL: usize = 20;
const LETTERS: usize = 3;
/// Asks about every beginning of all programs, letter by letter: hours.
const ALL: &str = "TESSERA_EVERY_BEGINNING";
/// Parts that are taken out of each program.
const DELETIONS: u64 = 4;

/// The smaller programs as they are typed; with `TESSERA_EVERY_BEGINNING` all of them.
#[test]
fn every_beginning_of_small_programs_is_answered() {
    let mut small: Vec<(usize, std::path::PathBuf)> =
        programs().into_iter().filter_map(|p| Some((std::fs::metadata(&p).ok()?.len() as usize, p))).collect();
    small.sort();
    let all = std::env::var_os(ALL).is_some();
    if !all {
        small.truncate(SMALL);
    }
    let tried = AtomicUsize::new(0);
    laws::on_two_threads(small.len(), |i| {
        let path = &small[i].1;
        let text = std::fs::read_to_string(path).expect("a program");
        let (mut db, id) = open(&path.to_string_lossy(), &text);
        // Letter by letter in the smallest ones, word by word in the others.
        let words: BTreeSet<usize> = lex(&text).iter().map(|t| t.range().end).collect();
        let wanted = |end: &usize| text.is_char_boundary(*end) && (all || i < LETTERS || words.contains(end));
        for end in (0..=text.len()).filter(wanted) {
            ask_of(&mut db, id, &text[..end], end);
            tried.fetch_add(1, Ordering::Relaxed);
        }
        if all {
            println!("{} of {}: {}", i + 1, small.len(), path.display());
        }
        vec![]
    });
    println!("{} beginnings", tried.into_inner());
}

/// Every program without some part of it, from a letter to some lines.
#[test]
fn programs_with_a_part_taken_away_are_answered() {
    let programs = programs();
    let turns = laws::law_count().unwrap_or(DELETIONS);
    laws::on_two_threads(programs.len(), |i| {
        let text = std::fs::read_to_string(&programs[i]).expect("a program");
        let (mut db, id) = open(&programs[i].to_string_lossy(), &text);
        let mut random = Random::new(i as u64 + 31);
        for _ in 0..turns {
            let boundary = |at: usize| (0..=at.min(text.len())).rev().find(|i| text.is_char_boundary(*i)).unwrap_or(0);
            let from = boundary(random.below(text.len() + 1));
            let length = [2, 40, 400][random.below(3)];
            let to = boundary(from + 1 + random.below(length)).max(from);
            ask_of(&mut db, id, &format!("{}{}", &text[..from], &text[to..]), from);
        }
        vec![]
    });
}

/// Beginnings of programs, and programs with parts taken away: nothing goes down, and what is told of functions that are
/// whole stays as it was.
#[test]
fn half_typed_programs_are_answered() {
    let mut compared = 0;
    let mut random = Random::new(11);
    let turns = laws::law_count().unwrap_or(4);
    for path in programs() {
        let text = std::fs::read_to_string(&path).expect("a program");
        let (mut db, id) = open(&path.to_string_lossy(), &text);
        let whole = told_of_functions(&db, id);
        for turn in 0..turns {
            let cut = |random: &mut Random| {
                let at = random.below(text.len() + 1);
                (0..=at).rev().find(|i| text.is_char_boundary(*i)).unwrap_or(0)
            };
            let (from, to) = (cut(&mut random), cut(&mut random));
            let (typed, at) = if turn % 2 == 0 {
                (text[..from].to_owned(), from)
            } else {
                let (from, to) = (from.min(to), from.max(to).min(from.min(to) + 40));
                let to = (0..=to).rev().find(|i| text.is_char_boundary(*i)).unwrap_or(0).max(from);
                (format!("{}{}", &text[..from], &text[to..]), from)
            };
            db.set_text(id, &typed);
            db.load_imports(id, &Disk);
            let _ = check_only(&db, id);
            look_at(&db, id, &typed, at);
            for (place, told) in told_of_functions(&db, id) {
                let Some(before) = whole.get(&place) else { continue };
                assert_eq!(told, *before, "{}: at {} of\n{}\nin\n{typed}", path.display(), place.1, place.0);
                compared += 1;
            }
            let _ = complete::complete(&mut db, id, at);
            assert_eq!(*Analysis::new(&db, id).text(id), *typed, "the text stays as it was");
        }
        // After all of them the program is what it was.
        db.set_text(id, &text);
        db.load_imports(id, &Disk);
        let (fresh, fresh_id) = open(&path.to_string_lossy(), &text);
        assert_eq!(errors(&db, id), errors(&fresh, fresh_id), "{}", path.display());
    }
    assert!(compared > 100, "{compared} names of functions that are whole");
}
