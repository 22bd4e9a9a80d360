//! Runs every golden file.

use tessera_tests::{golden, program};

#[test]
fn golden_files_hold() {
    let files = golden::files(&program::root().join("tests/golden"));
    assert!(!files.is_empty(), "no golden files");
    let complaints: Vec<String> = std::thread::scope(|s| {
        let half = files.len().div_ceil(2);
        let threads: Vec<_> = files
            .chunks(half.max(1))
            .map(|part| {
                s.spawn(move || {
                    part.iter()
                        .flat_map(|f| {
                            golden::check_file(f, false).unwrap_or_else(|e| vec![format!("{}: {e}", f.display())])
                        })
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        threads.into_iter().flat_map(|t| t.join().unwrap_or_else(|_| vec!["a golden test panicked".into()])).collect()
    });
    assert!(
        complaints.is_empty(),
        "{} differences (bless with `cargo dev bless`)\n{}",
        complaints.len(),
        complaints.join("\n\n")
    );
}

#[test]
fn a_page_that_leaves_open_what_becomes_of_a_program_is_refused() {
    let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
    let page = dir.path().join("page.md");
    let complaints = |text: &str| {
        std::fs::write(&page, text).and_then(|()| golden::check_file(&page, false)).unwrap_or_else(|e| panic!("{e}"))
    };
    let fails = "# Claim\n\n```tessera\nassert False, \"so it is\"\n```\n\n```output\n```\n";
    let told = complaints(fails);
    assert!(told.len() == 1 && told[0].contains("page.md:7: Claim: the program fails"), "{told:?}");
    assert!(told[0].contains("so it is"), "{told:?}");
    assert_eq!(complaints(&format!("{fails}\n```error\nE0705:1\n```\n")), [""; 0]);
    let told =
        complaints("# One\n\n```tessera\nprint(1)\n```\n\n# Two\n\n```tessera\nprint(2)\n```\n\n```output\n2\n```\n");
    assert!(told.len() == 1 && told[0].contains("page.md:3: One: no block behind the program"), "{told:?}");
    assert_eq!(complaints("```tessera\nsys.exit(3)\n```\n\n```output\n```\n"), [""; 0]);
}
