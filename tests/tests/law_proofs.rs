//! The assertion that an editor adds proves what it is added for: after the edit the error is gone, or the comparison when the
//! program runs, and nothing else is wrong. Of all programs of the documents, the examples and the standard library.

use std::collections::BTreeMap;
use tessera_base::{FileId, Span};
use tessera_ide::analysis::Analysis;
use tessera_ide::proofs::{Goal, Proof, advised, proof, proves};
use tessera_infer::db::Database;
use tessera_infer::{Checked, check_only};
use tessera_tests::documents;
use tessera_tests::opened::{errors, open, programs};

/// Edits for errors, and for comparisons, at least.
const FOR_ERRORS: usize = 10;
const FOR_COMPARISONS: usize = 10;

/// The edits of a program with what each is for.
fn proofs(db: &Database, id: FileId, checked: &Checked) -> Vec<(Proof, Goal)> {
    let cx = Analysis::new(db, id);
    let at = |span: Span, assertion: &str| {
        let place = cx.place(span).filter(|p| p.file == id)?;
        proof(&cx, &place, assertion)
    };
    let mut out = vec![];
    for d in checked.diagnostics.iter().filter(|d| d.is_error()) {
        let goal = || Goal::Error(d.code, d.message.clone());
        out.extend(advised(d).iter().filter_map(|assertion| Some((at(d.span, assertion)?, goal()))));
    }
    for (span, what) in &checked.kept {
        let found = at(*span, &format!("assert {what}"));
        out.extend(found.map(|proof| (proof, Goal::Comparison(what.clone()))));
    }
    out
}

#[test]
fn an_added_assertion_proves_what_it_is_added_for() {
    let mut texts: BTreeMap<String, String> = BTreeMap::new();
    for path in programs() {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        texts.insert(path.display().to_string(), text);
    }
    texts.extend(documents::programs().into_iter().map(|p| (p.place, p.source)));
    let (mut for_errors, mut for_comparisons, mut refused, mut wrong) = (0, 0, 0, vec![]);
    for (path, text) in &texts {
        let (mut db, id) = open(path, text);
        let before = check_only(&db, id);
        for (proof, goal) in proofs(&db, id, &before) {
            if !proves(&mut db, id, &proof, &goal, (&before.diagnostics, &before.kept)) {
                refused += 1;
                continue;
            }
            // As a program of its own, which nothing was tried in.
            let edited = format!("{}{}{}", &text[..proof.at], proof.text, &text[proof.at..]);
            let (db, id) = open(path, &edited);
            let after = check_only(&db, id);
            let gone = match &goal {
                Goal::Error(code, message) => {
                    for_errors += 1;
                    let same =
                        |c: &Checked| c.diagnostics.iter().filter(|d| d.code == *code && d.message == *message).count();
                    same(&after) < same(&before)
                }
                Goal::Comparison(what) => {
                    for_comparisons += 1;
                    let same = |c: &Checked| c.kept.iter().filter(|(_, w)| w == what).count();
                    same(&after) < same(&before)
                }
            };
            let (old, new) = (errors(&before.diagnostics), errors(&after.diagnostics));
            let worse: Vec<&String> = new.iter().filter(|e| !old.contains(e)).collect();
            if !gone || !worse.is_empty() {
                wrong.push(format!("{path}: {} for {goal:?}: {worse:?}", proof.assertion));
            }
        }
    }
    println!("{for_errors} edits for errors, {for_comparisons} for comparisons, {refused} that prove nothing");
    assert!(wrong.is_empty(), "{} edits\n{}", wrong.len(), wrong.join("\n"));
    assert!(for_errors >= FOR_ERRORS && for_comparisons >= FOR_COMPARISONS, "{for_errors} and {for_comparisons} only");
}
