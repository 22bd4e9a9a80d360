//! What is said of small mistakes in real programs: one error for one slip of the hand, with the edit that undoes it; and no
//! edit that any message offers leaves a program worse.

use std::collections::BTreeMap;
use std::ops::Range;
use tessera_base::{Diagnostic, Edit, FileId, Severity};
use tessera_grammar::token::{Tok, lex};
use tessera_ide::analysis::Analysis;
use tessera_ide::coloring;
use tessera_infer::check_only;
use tessera_infer::db::Database;
use tessera_tests::documents;
use tessera_tests::laws;
use tessera_tests::opened::{errors, open, programs};
use tessera_tests::random::Random;

/// Slips of the hand, a program.
const SLIPS: u64 = 40;

/// What is said of a text, as the command says it.
fn said(path: &str, text: &str) -> (Database, Vec<Diagnostic>) {
    let (db, id) = open(path, text);
    let found = check_only(&db, id).diagnostics;
    (db, found)
}

/// The text with edits made; `None` where they are to be made in another file.
fn edited(db: &Database, path: &str, text: &str, edits: &[Edit]) -> Option<String> {
    let sources = db.source_map();
    let mut places = vec![];
    for e in edits {
        let (file, range) = sources.locate(e.span)?;
        if &*sources.file(file)?.path != path {
            return None;
        }
        places.push((range, &e.text));
    }
    places.sort_by_key(|(range, _)| std::cmp::Reverse(range.start));
    let mut out = text.to_owned();
    places.into_iter().for_each(|(range, by)| out.replace_range(range, by));
    Some(out)
}

/// Each edit of each message about a program of the golden files, the documents and the pages lowers the number of what is
/// said. One operand may have to be laid out after the other (class 04), which `law_fixes` follows to its end.
#[test]
fn what_a_message_offers_to_write_is_an_improvement() {
    let programs = documents::programs();
    let wrong = laws::on_two_threads(programs.len(), |i| {
        let (path, text) = ("main.tsr", &programs[i].source);
        let (db, before) = said(path, text);
        let mut wrong = vec![];
        for d in &before {
            for fix in d.fixes.iter().filter(|f| !f.edits.is_empty()) {
                let Some(new) = edited(&db, path, text, &fix.edits) else { continue };
                let (_, after) = said(path, &new);
                let count = |of: &[Diagnostic]| match d.severity() {
                    Severity::Error => errors(of).len(),
                    _ => errors(of).len() * 1000 + of.len(),
                };
                let layouts = &d.code.name()[1..3] == "04" && count(&after) <= count(&before);
                if count(&after) >= count(&before) && !layouts {
                    let after = after.iter().map(|d| format!("{} {}", d.code, d.message)).collect::<Vec<_>>();
                    wrong.push(format!(
                        "{}: `{}` of {} {}\ngives {after:#?}\n{new}",
                        programs[i].place, fix.title, d.code, d.message
                    ));
                }
            }
        }
        wrong
    });
    assert!(wrong.is_empty(), "{} edits\n{}", wrong.len(), wrong.join("\n---\n"));
}

/// A name with one slip of the hand: a letter too few, twice, or before the one that it follows.
fn misspelt(name: &str, r: &mut Random) -> String {
    let mut letters: Vec<char> = name.chars().collect();
    // The first letter is seldom wrong, and says what kind of name it is.
    let at = 1 + r.below(letters.len() - 1);
    match r.below(3) {
        0 => drop(letters.remove(at)),
        1 => letters.insert(at, letters[at]),
        _ if at + 1 < letters.len() => letters.swap(at, at + 1),
        _ => drop(letters.remove(at)),
    }
    letters.into_iter().collect()
}

/// Real programs without errors, each with what `slip` makes of it: a text, what was changed, and of which kind it is.
fn slips(slip: impl Fn(&Database, FileId, &str, &mut Random) -> Option<(String, String, String)> + Sync) -> Vec<Slip> {
    let programs = programs();
    let lines = laws::on_two_threads(programs.len(), |i| {
        let path = programs[i].to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&programs[i]).expect("a program");
        let (mut db, id) = open(&path, &text);
        // Some need data that is fetched.
        if !errors(&check_only(&db, id).diagnostics).is_empty() {
            return vec![];
        }
        let mut r = Random::new(i as u64 + 1);
        let mut out = vec![];
        for _ in 0..SLIPS {
            db.set_text(id, &text);
            let Some((new, what, kind)) = slip(&db, id, &text, &mut r) else { continue };
            db.set_text(id, &new);
            let said = check_only(&db, id).diagnostics;
            let errors = errors(&said);
            let back = said.iter().flat_map(|d| &d.fixes).filter_map(|f| edited(&db, &path, &new, &f.edits));
            let back = back.into_iter().any(|t| t == text);
            let place = format!("{}: {what}", path.rsplit('/').next().unwrap_or(""));
            if !errors.is_empty() {
                out.push(format!("{kind}\t{}\t{back}\t{place}: {}", errors.len(), errors.join("; ")));
            }
        }
        out
    });
    lines.iter().map(|line| Slip::read(line)).collect()
}

/// What became of one slip.
struct Slip {
    kind: String,
    /// One error, and no other.
    one: bool,
    /// An edit is offered that gives the text back.
    back: bool,
    line: String,
}

impl Slip {
    fn read(line: &str) -> Slip {
        let parts: Vec<&str> = line.split('\t').collect();
        Slip { kind: parts[0].into(), one: parts[1] == "1", back: parts[2] == "true", line: line.into() }
    }
}

/// The share of slips, in percent, and a line for each kind.
fn share(slips: &[Slip], of: impl Fn(&Slip) -> bool) -> f64 {
    let mut kinds: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for slip in slips {
        let count = kinds.entry(&slip.kind).or_default();
        *count = (count.0 + 1, count.1 + usize::from(of(slip)));
        if !of(slip) {
            println!("{}", slip.line);
        }
    }
    println!("{kinds:?}");
    100.0 * slips.iter().filter(|s| of(s)).count() as f64 / slips.len() as f64
}

#[test]
fn a_misspelt_name_is_one_error_with_the_name_that_was_meant() {
    let slips = slips(|db, id, text, r| {
        // A name that is wrong where it is bound is wrong wherever it is read, which says nothing of this place.
        let colors = coloring::coloring(&Analysis::new(db, id), id, 0..text.len());
        let kinds: BTreeMap<usize, String> =
            colors.into_iter().filter(|t| !t.declares).map(|t| (t.range.start, format!("{:?}", t.class))).collect();
        let names: Vec<_> = lex(text).iter().filter(|t| t.kind == Tok::Name).map(|t| t.range()).collect();
        // `import a as name` binds it, too.
        let bound = |n: &Range<usize>| text[..n.start].trim_end().ends_with(" as");
        let usable = |n: &Range<usize>| n.len() > 3 && text[n.clone()].is_ascii() && !bound(n);
        let names: Vec<_> = names.into_iter().filter(usable).collect();
        let name = names[r.below(names.len())].clone();
        let kind = kinds.get(&name.start)?.clone();
        let wrong = misspelt(&text[name.clone()], r);
        let what = format!("`{}` as `{wrong}`", &text[name.clone()]);
        (wrong != text[name.clone()])
            .then(|| (format!("{}{wrong}{}", &text[..name.start], &text[name.end..]), what, kind))
    });
    assert!(slips.len() > 500, "{} names only", slips.len());
    let (one, back) = (share(&slips, |s| s.one), share(&slips, |s| s.back));
    assert!(one >= 97.0 && back >= 97.0, "{one:.1} % are one error, {back:.1} % come with the edit that undoes them");
}

#[test]
fn a_token_too_few_is_one_error() {
    let slips = slips(|_, _, text, r| {
        let tokens: Vec<_> =
            lex(text).iter().map(|t| (t.kind, t.range())).filter(|(_, t)| !text[t.clone()].trim().is_empty()).collect();
        let (kind, at) = tokens[r.below(tokens.len())].clone();
        let what = format!("without `{}` in line {}", &text[at.clone()], 1 + text[..at.start].matches('\n').count());
        Some((format!("{}{}", &text[..at.start], &text[at.end..]), what, format!("{kind:?}")))
    });
    let one = share(&slips, |s| s.one);
    assert!(one >= 92.0, "{one:.1} % are one error");
}
