//! Results of commands as JSON: the keys that `docs/json.md` lists, in their order, an object a line.

use serde_json::Value;
use tessera_tests::program::{Ran, run_in};

const PROGRAM: &str = "\
def layer(x: Tensor[N, D, f32], w: Tensor[D, H, f32]) -> Tensor[N, H, f32]:
    z = x @ w
    return op.softmax(op.relu(z), -1)
";

fn run(args: &[&str]) -> (Ran, Vec<Value>) {
    let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
    std::fs::write(dir.path().join("model.tsr"), PROGRAM).unwrap_or_else(|e| panic!("{e}"));
    let ran = run_in(dir.path(), args, "").unwrap_or_else(|e| panic!("{e}"));
    let lines: Result<Vec<Value>, _> = ran.out.lines().map(serde_json::from_str).collect();
    let lines = lines.unwrap_or_else(|e| panic!("{args:?}: {e}\n{}", ran.out));
    (ran, lines)
}

/// The keys that the page lists for a command.
fn listed(page: &str, command: &str) -> Vec<String> {
    let row = page.lines().find(|l| l.starts_with(&format!("| {command} |")));
    let cell = row.and_then(|l| l.trim_end_matches('|').rsplit('|').next()).unwrap_or_else(|| panic!("no {command}"));
    cell.split_whitespace().map(|key| key.trim_matches('`').to_owned()).collect()
}

fn keys(value: &Value) -> Vec<String> {
    value.as_object().map_or_else(Vec::new, |o| o.keys().cloned().collect())
}

fn page() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/json.md");
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{path}: {e}"))
}

#[test]
fn every_command_has_the_keys_of_the_page() {
    let page = page();
    let layer = ["--function", "layer", "--json"];
    for (command, args) in [
        ("`check`", vec!["check", "model.tsr", "--json"]),
        ("`fmt`", vec!["fmt", "--check", "model.tsr", "--json"]),
        ("`fmt`", vec!["fmt", "model.tsr", "--json"]),
        ("`fmt`", vec!["fmt", "--write", "model.tsr", "--json"]),
        ("`emit`", [&["emit", "model.tsr"], &layer[..]].concat()),
        ("`emit`", vec!["emit", "model.tsr", "--ir", "core", "--json"]),
        ("`emit --emit list`", vec!["emit", "model.tsr", "--emit", "list", "--json"]),
        ("`explain FILE --function`", [&["explain", "model.tsr"], &layer[..]].concat()),
        ("`explain FILE --function`", vec!["explain", "model.tsr:2", "--json"]),
        ("`explain`, `help`", vec!["explain", "E0201", "--json"]),
        ("`explain`, `help`", vec!["help", "run", "--json"]),
        ("`plan`", [&["plan", "model.tsr"], &layer[..]].concat()),
        ("`tune`", vec!["tune", "model.tsr", "--json"]),
        ("`doctor`", vec!["doctor", "--json"]),
        ("`cache`", vec!["cache", "--json"]),
        ("`cache`", vec!["cache", "list", "--json"]),
    ] {
        let (ran, lines) = run(&args);
        assert!(!lines.is_empty(), "{args:?}\n{}", ran.err);
        for line in lines {
            assert_eq!((keys(&line), &line["schema"]), (listed(&page, command), &Value::from(1)), "{args:?}");
        }
    }
    let example = page.lines().find(|l| l.starts_with("{\"schema\"")).unwrap_or_default();
    assert_eq!(run(&["check", "model.tsr", "--json"]).0.out.trim_end(), example);
}

#[test]
fn a_line_is_a_part_of_its_graph() {
    let (ran, lines) = run(&["explain", "model.tsr:2:10", "--json"]);
    assert_eq!((ran.code, &*ran.err, lines.len()), (0, "", 2));
    assert_eq!(keys(&lines[0]), listed(&page(), "`explain FILE:LINE:COLUMN`"));
    assert_eq!(lines[0]["type"], "Tensor[N, H, f32]");
    let part = &lines[1]["line"]["parts"][0];
    let of_line = |n: &&Value| n["place"]["line"] == 2;
    let nodes = lines[1]["graph"]["nodes"].as_array().into_iter().flatten().filter(of_line);
    assert_eq!(part["nodes"], nodes.map(|n| n["id"].clone()).collect::<Value>());
    let group = part["groups"][0].as_u64().unwrap_or(99) as usize;
    let schedule = &lines[1]["graph"]["groups"][group]["schedule"];
    assert!(
        schedule.as_array().is_some_and(|s| s.iter().any(|d| d.as_str().is_some_and(|d| d.starts_with("vectorize"))))
    );
}

#[test]
fn what_is_wrong_stays_on_stderr() {
    let (ran, lines) = run(&["explain", "model.tsr", "--function", "none", "--json"]);
    assert_eq!((ran.code, lines.len()), (1, 0));
    assert!(ran.err.lines().all(|l| serde_json::from_str::<Value>(l).is_ok()), "{}", ran.err);
    for args in [["help", "nosuch", "--json"], ["explain", "NOSUCH", "--json"]] {
        let (ran, lines) = run(&args);
        assert_eq!((ran.code, lines.len()), (2, 0));
        let said: Value = serde_json::from_str(ran.err.trim_end()).unwrap_or_default();
        assert_eq!(said["code"], "E0602", "{}", ran.err);
    }
    let (ran, lines) = run(&["check", "missing.tsr", "--json"]);
    assert_eq!((ran.code, &lines[0]["ok"]), (1, &Value::from(false)));
}
