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

/// What is quoted in a message is quoted once: nothing in it has quotes of its own, and no word is joined to it.
#[test]
fn quotes_in_messages_are_not_inside_of_others() {
    let mut complaints = vec![];
    let mut quoted = 0;
    let folders = ["tests/golden", "docs", "compiler/base/pages"];
    for path in folders.iter().flat_map(|f| golden::files(&program::root().join(f))) {
        let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        for (i, line) in text.lines().enumerate() {
            let begins = ["error[", "warning[", "note["].iter().any(|w| line.starts_with(w));
            if begins || ["= note: ", "= help: ", "╰─"].iter().any(|w| line.contains(w)) {
                let pieces: Vec<&str> = line.split('`').collect();
                quoted += pieces.len() / 2;
                if let Some(why) = unsound(&pieces) {
                    complaints.push(format!("{}:{}: {why}: {line}", path.display(), i + 1));
                }
            }
        }
    }
    assert!(quoted > 800, "{quoted} quotes were looked at");
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

/// What is wrong with the pieces of a line between its quotes.
fn unsound(pieces: &[&str]) -> Option<&'static str> {
    if pieces.len().is_multiple_of(2) {
        return Some("a quote is open");
    }
    let joined = |c: char| c.is_alphanumeric() || c == '_' || c == '"';
    for (i, piece) in pieces.iter().enumerate() {
        let inside = i % 2 == 1;
        if inside && (piece.is_empty() || piece.trim() != *piece) {
            return Some("what is quoted begins or ends with a space");
        }
        if !inside && ((i > 0 && piece.starts_with(joined)) || (i + 1 < pieces.len() && piece.ends_with(joined))) {
            return Some("a word is joined to a quote");
        }
    }
    None
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
