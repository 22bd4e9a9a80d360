//! Problems about sizes, written from the language's contract: each is accepted because it holds for all sizes,
//! refused because it fails for some, or left to a comparison at run time because only data decides.

use std::path::Path;
use tessera_tests::program::{root, run_in};
use tessera_tests::size_problems::problems;

/// What the checker says of a program, in the words of a verdict.
fn verdict(dir: &Path) -> String {
    let ran = run_in(dir, &["check", "-v", "main.tsr"], "").expect("the program under test starts");
    if let Some(at) = ran.err.find("error[") {
        return format!("refused {}", &ran.err[at + 6..at + 11]);
    }
    assert_eq!(ran.code, 0, "{}", ran.err);
    // That a file holds what its annotation says is no question about sizes.
    let sizes =
        ran.out.lines().any(|l| l.ends_with(" is compared when the program runs") && !l.contains(": the type "));
    if sizes { "checked".into() } else { "accepted".into() }
}

#[test]
fn every_problem_gets_its_verdict() {
    let all = problems();
    assert!(all.len() >= 300, "there are {} problems", all.len());
    let mut wrong = vec![];
    for p in &all {
        let dir = tempfile::tempdir().expect("a temporary folder");
        std::fs::write(dir.path().join("main.tsr"), &p.program).expect("a program can be written");
        let got = verdict(dir.path());
        if !got.starts_with(&p.verdict) {
            wrong.push(format!("{}\n  {} is expected and it is {got}\n{}", p.place, p.verdict, p.program));
        }
        if p.verdict.starts_with("refused") {
            continue;
        }
        // What is accepted is true of every value when it runs; some programs want arguments or files.
        let ran = run_in(dir.path(), &["run", "--checked", "main.tsr"], "").expect("the program under test starts");
        if ran.err.contains("E0999") || !(0..=1).contains(&ran.code) {
            wrong.push(format!("{}\n  under --checked:\n{}\n{}", p.place, ran.err, p.program));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), all.len(), wrong.join("\n"));
}

/// The list is read by people: what is new in it is a size that only data knows, or a proof that is missing.
#[test]
fn examples_compare_what_only_data_knows() {
    let mut examples: Vec<String> = std::fs::read_dir(root().join("examples"))
        .expect("the examples are there")
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        // Its model is read when it is checked, and has to be fetched before.
        .filter(|name| name.ends_with(".tsr") && name != "filetype.tsr")
        .collect();
    examples.sort();
    let mut found: Vec<String> = vec![];
    for name in examples {
        let ran =
            run_in(&root(), &["check", "-v", &format!("examples/{name}")], "").expect("the program under test starts");
        for line in ran.out.lines().filter_map(|l| l.strip_suffix(" is compared when the program runs")) {
            if !found.iter().any(|l| l == line) {
                found.push(line.to_owned());
            }
        }
    }
    let wanted = std::fs::read_to_string(root().join("tests/sizes/examples.txt")).expect("the list can be read");
    let added: Vec<&String> = found.iter().filter(|l| !wanted.lines().any(|w| w == *l)).collect();
    let gone: Vec<&str> = wanted.lines().filter(|w| !found.iter().any(|l| l == w)).collect();
    assert!(added.is_empty() && gone.is_empty(), "new: {added:#?}\ngone: {gone:#?}");
}
