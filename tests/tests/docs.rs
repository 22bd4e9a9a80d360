//! The documentation is what the tables and the program say.

use tessera_tests::documents::PAGES;
use tessera_tests::reference::builtins;
use tessera_tests::{figures, golden, program, reference};

fn page(name: &str) -> String {
    std::fs::read_to_string(program::root().join("docs").join(name)).unwrap_or_default()
}

#[test]
fn the_reference_is_generated() {
    let wanted = reference::pages().unwrap_or_else(|e| panic!("{e}"));
    let differ =
        |(name, text): &&(String, String)| reference::without_outputs(&page(name)) != reference::without_outputs(text);
    let old: Vec<&String> = wanted.iter().filter(differ).map(|(name, _)| name).collect();
    assert!(old.is_empty(), "write {old:?} with `cargo dev docs`");
    let pages = std::fs::read_dir(program::root().join("docs/errors")).into_iter().flatten().flatten();
    for path in pages.map(|entry| entry.path()) {
        assert!(wanted.iter().any(|(name, _)| path.ends_with(name)), "{}: no class has this page", path.display());
    }
}

#[test]
fn every_section_of_what_is_built_in_has_examples_of_all_of_it() {
    let mut examples = builtins::examples().unwrap_or_else(|e| panic!("{e}"));
    let mut complaints = vec![];
    for group in builtins::GROUPS {
        let text = match (examples.remove(group.prefix_or_title()), group.guide) {
            (Some(program), None) => program,
            (None, Some(guide)) => page(guide),
            (program, _) => {
                let wanted = builtins::entries(group).iter().any(|e| !e.is_refused());
                assert!(wanted == program.is_some(), "{}: examples or a guide, not both", group.prefix_or_title());
                continue;
            }
        };
        for entry in builtins::entries(group).iter().filter(|e| !e.is_refused()) {
            let last = entry.name.rsplit('.').next().unwrap_or(&entry.name);
            let is_used = text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == last);
            if !is_used {
                complaints.push(format!("{}: its example does not use it", entry.name));
            }
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    assert!(examples.is_empty(), "examples of nothing: {:?}", examples.keys());
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
fn the_figures_are_what_the_programs_draw() {
    for page in figures::PAGES {
        let drawn = figures::of_page(page).unwrap_or_else(|e| panic!("{e}"));
        let old = |(path, text): &&(String, String)| self::page(path) != *text;
        let old: Vec<&String> = drawn.iter().filter(old).map(|(path, _)| path).collect();
        assert!(old.is_empty(), "look at {old:?}, and write them with `cargo dev docs`");
    }
}

#[test]
fn the_ways_that_a_page_compares_agree() {
    let run = |file: &str, args: &[&str]| {
        let file = format!("tests/benches/{file}.tsr");
        let args: Vec<&str> = ["run", &file].iter().chain(args).copied().collect();
        let ran = program::run_in(&program::root(), &args, "").unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(ran.code, 0, "{file}: {}", ran.err);
        ran.out
    };
    // A turn says that both ways give the same, and not which is faster.
    let text = page("performance.md");
    for line in run("advice", &["--", "--turns", "1", "--large", "8000"]).lines().skip(1) {
        let name = line.get(..28).unwrap_or(line).trim();
        assert!(text.contains(&format!("| {name} |")), "no row of docs/performance.md tells of {name:?}");
    }
    assert_eq!(run("loop_unrolled", &[]), run("loop_scanned", &[]));
}

#[test]
fn the_programs_of_the_documentation_run() {
    let mut complaints = vec![];
    let generated = reference::pages().unwrap_or_else(|e| panic!("{e}"));
    let written = generated.iter().map(|(name, _)| name.as_str()).chain(PAGES.iter().copied());
    for name in written {
        let path = program::root().join("docs").join(name);
        complaints.extend(golden::check_file(&path, false).unwrap_or_else(|e| vec![format!("{name}: {e}")]));
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n\n"));
}
