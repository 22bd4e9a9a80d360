//! The assertion that an editor adds proves what it is added for: after the edit the error is gone, or the comparison when the
//! program runs, and nothing else is wrong. Of all programs of the documents, the examples and the standard library.

use std::collections::BTreeMap;
use tessera_base::Span;
use tessera_ide::analysis::Analysis;
use tessera_ide::proofs::{Proof, advised, proof};
use tessera_infer::{Checked, check_only};
use tessera_tests::documents;
use tessera_tests::opened::{errors, open, programs};

/// Edits for errors, and for comparisons, at least.
const FOR_ERRORS: usize = 10;
const FOR_COMPARISONS: usize = 10;

/// What is to be gone: an error in words, or a comparison.
#[derive(Debug)]
enum Goal {
    Error(String),
    Comparison(String),
}

fn count(checked: &Checked, goal: &Goal) -> usize {
    match goal {
        Goal::Error(text) => errors(&checked.diagnostics).iter().filter(|e| *e == text).count(),
        Goal::Comparison(text) => checked.kept.iter().filter(|(_, what)| **what == **text).count(),
    }
}

/// The edits of a program with what each is for.
fn proofs(path: &str, text: &str) -> (Checked, Vec<(Proof, Goal)>) {
    let (db, id) = open(path, text);
    let checked = check_only(&db, id);
    let cx = Analysis::new(&db, id);
    let at = |span: Span, assertion: &str| {
        let place = cx.place(span).filter(|p| p.file == id)?;
        proof(&cx, &place, assertion)
    };
    let mut out = vec![];
    for d in checked.diagnostics.iter().filter(|d| d.is_error()) {
        let goal = || Goal::Error(format!("{} {}", d.code, d.message));
        out.extend(advised(d).iter().filter_map(|assertion| Some((at(d.span, assertion)?, goal()))));
    }
    for (span, what) in &checked.kept {
        let found = at(*span, &format!("assert {what}"));
        out.extend(found.map(|proof| (proof, Goal::Comparison(what.to_string()))));
    }
    (checked, out)
}

#[test]
fn an_added_assertion_proves_what_it_is_added_for() {
    let mut texts: BTreeMap<String, String> = BTreeMap::new();
    for path in programs() {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        texts.insert(path.display().to_string(), text);
    }
    texts.extend(documents::programs().into_iter().map(|p| (p.place, p.source)));
    let (mut for_errors, mut for_comparisons, mut wrong) = (0, 0, vec![]);
    for (path, text) in &texts {
        let (before, all) = proofs(path, text);
        for (proof, goal) in all {
            match goal {
                Goal::Error(_) => for_errors += 1,
                Goal::Comparison(_) => for_comparisons += 1,
            }
            let edited = format!("{}{}{}", &text[..proof.at], proof.text, &text[proof.at..]);
            let (db, id) = open(path, &edited);
            let after = check_only(&db, id);
            let (old, new) = (errors(&before.diagnostics), errors(&after.diagnostics));
            let worse: Vec<&String> = new.iter().filter(|e| !old.contains(e)).collect();
            if count(&after, &goal) >= count(&before, &goal) || !worse.is_empty() {
                wrong.push(format!("{path}: {} for {goal:?}: {worse:?}", proof.assertion));
            }
        }
    }
    println!("{for_errors} edits for errors, {for_comparisons} for comparisons");
    assert!(wrong.is_empty(), "{} edits\n{}", wrong.len(), wrong.join("\n"));
    assert!(for_errors >= FOR_ERRORS && for_comparisons >= FOR_COMPARISONS, "{for_errors} and {for_comparisons} only");
}
