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
