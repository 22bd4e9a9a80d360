//! The documentation is what the tables and the program say.

use tessera_tests::{golden, program, reference};

fn page(name: &str) -> String {
    std::fs::read_to_string(program::root().join("docs").join(name)).unwrap_or_default()
}

#[test]
fn the_operator_reference_is_generated() {
    let wanted = reference::operators().unwrap_or_else(|e| panic!("{e}"));
    assert!(reference::without_outputs(&page("operators.md")) == wanted, "write it with `cargo dev docs`");
}

#[test]
fn the_reference_of_the_standard_library_is_generated() {
    assert!(page("std.md") == reference::library(), "write it with `cargo dev docs`");
}

#[test]
fn every_operator_has_an_example_that_calls_it() {
    let mut examples = reference::examples().unwrap_or_else(|e| panic!("{e}"));
    for def in tessera_ops::surface::all().filter(|def| def.unsupported.is_none()) {
        let program = examples
            .remove(def.name)
            .unwrap_or_else(|| panic!("{}: compiler/ops/examples.md has no example", def.name));
        let last = def.name.rsplit('.').next().unwrap_or(def.name);
        assert!(program.contains(&format!(".{last}(")), "{}: its example does not call it", def.name);
    }
    assert!(examples.is_empty(), "examples of no operator: {:?}", examples.keys());
}

#[test]
fn the_programs_of_the_documentation_run() {
    let mut complaints = vec![];
    for name in [
        "language.md",
        "autodiff.md",
        "kernels.md",
        "meshes.md",
        "numerics.md",
        "operators.md",
        "plots.md",
        "tutorial.md",
    ] {
        let path = program::root().join("docs").join(name);
        complaints.extend(golden::check_file(&path, false).unwrap_or_else(|e| vec![format!("{name}: {e}")]));
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n\n"));
}
