//! The documentation is what the tables and the program say.

use tessera_tests::{golden, program};

#[test]
fn the_operator_reference_is_generated() {
    let file = std::fs::read_to_string(program::root().join("docs/operators.md")).unwrap_or_default();
    assert!(file == tessera_ops::surface::docs_markdown(), "write it with `cargo dev docs`");
}

#[test]
fn the_programs_of_the_documentation_run() {
    let mut complaints = vec![];
    for name in ["language.md", "autodiff.md", "kernels.md", "meshes.md", "numerics.md", "tutorial.md"] {
        let path = program::root().join("docs").join(name);
        complaints.extend(golden::check_file(&path, false).unwrap_or_else(|e| vec![format!("{name}: {e}")]));
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n\n"));
}
