//! What a database has checked before changes nothing: a program in a database that has checked all others of the documents
//! has the diagnostics and the Core that it has in a fresh one.

use tessera::files::{Disk, Texts};
use tessera::render::to_json;
use tessera_infer::check_program;
use tessera_infer::db::Database;
use tessera_tests::documents::programs;
use tessera_tests::laws::on_two_threads;

/// The text without the numbers that tell sizes of one name apart (`m_2`): calls that differ in the names of their sizes alone share
/// one instance, which calls them as the first of these did.
fn uncounted(text: &str) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some(at) = rest.find('_') {
        let digits = rest[at + 1..].bytes().take_while(u8::is_ascii_digit).count();
        out += &rest[..at + usize::from(digits == 0)];
        rest = &rest[at + 1 + digits..];
    }
    out + rest
}

/// Diagnostics and Core of a program, where numbers of items and files are counted as they come: those of a database go on with
/// every text that it gets.
fn told(db: &mut Database, path: &str, source: &str) -> String {
    let checked = check_program(db, path, source, &Disk);
    let mut out = String::new();
    for d in &checked.diagnostics {
        out += &format!("{}\n", to_json(d, &Texts(&checked.sources)));
    }
    for (span, what) in &checked.kept {
        out += &format!("compares {what} at {:?}\n", checked.sources.line_col(*span).map(|(_, line, col)| (line, col)));
    }
    if let Some(program) = &checked.program {
        out += &counted(&tessera_core::text::print(program, false));
    }
    uncounted(&out)
}

/// The text with its numbers of items and files replaced by how many came before.
fn counted(text: &str) -> String {
    const BEFORE: &[&str] = &["item=", "home=", "modules=[", " at=\""];
    let (mut out, mut rest) = (String::new(), text);
    let (mut items, mut files): (Vec<String>, Vec<String>) = (vec![], vec![]);
    while let Some((at, word)) = BEFORE.iter().filter_map(|w| Some((rest.find(w)?, *w))).min() {
        let (head, tail) = rest.split_at(at + word.len());
        out += head;
        let seen = if word.starts_with(['h', 'm']) { &mut files } else { &mut items };
        let mut tail = tail;
        loop {
            let end = tail.find(|c: char| !c.is_ascii_digit()).unwrap_or(tail.len());
            let number = &tail[..end];
            let place = seen.iter().position(|n| n == number).unwrap_or_else(|| {
                seen.push(number.to_owned());
                seen.len() - 1
            });
            out += &place.to_string();
            tail = &tail[end..];
            match tail.strip_prefix(", ").filter(|_| word == "modules=[") {
                Some(more) => {
                    out += ", ";
                    tail = more;
                }
                None => break,
            }
        }
        rest = tail;
    }
    out + rest
}

/// Every second program takes the place of the one before it in the same file.
fn path(i: usize) -> String {
    if i.is_multiple_of(2) { "law.tsr".to_owned() } else { format!("law{i}.tsr") }
}

#[test]
fn what_was_checked_before_changes_nothing() {
    let programs = programs();
    let step = if cfg!(debug_assertions) { 8 } else { 1 };
    let chosen: Vec<usize> = (0..programs.len()).step_by(step).collect();
    let fresh = on_two_threads(chosen.len(), |n| {
        vec![told(&mut Database::default(), &path(chosen[n]), &programs[chosen[n]].source)]
    });
    // Two orders at the same time.
    let failures = on_two_threads(2, |way| {
        let mut db = Database::default();
        let mut wrong = vec![];
        let order: Vec<usize> = if way == 0 { (0..fresh.len()).collect() } else { (0..fresh.len()).rev().collect() };
        for n in order {
            let (i, wanted) = (chosen[n], &fresh[n]);
            let got = told(&mut db, &path(i), &programs[i].source);
            if got != *wanted {
                let differs = wanted.lines().zip(got.lines()).find(|(a, b)| a != b);
                let (a, b) = differs.unwrap_or(("as many lines", "another number of lines"));
                wrong.push(format!("{}\nfresh: {a}\nlater: {b}", programs[i].place));
            }
        }
        wrong
    });
    assert!(failures.is_empty(), "{} of {}\n\n{}", failures.len(), fresh.len(), failures.join("\n\n"));
}
