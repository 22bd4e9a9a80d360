//! `tessera advise` finds the fault of each slow program, at its line, and nothing of the kind after the edit, which changes
//! nothing of what the program prints.

use tessera_tests::advice_bench::{advice, finding, pairs};
use tessera_tests::program::{root, run_in};

#[test]
fn each_fault_is_found_at_its_line_and_mended_by_the_edit() {
    let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
    let pairs = pairs();
    assert!(pairs.len() >= 10, "{} pairs", pairs.len());
    let mut wrong = vec![];
    for pair in &pairs {
        let (slow, fast) = match (advice(dir.path(), &pair.slow), advice(dir.path(), &pair.fast)) {
            (Ok(slow), Ok(fast)) => (slow, fast),
            (Err(e), _) | (_, Err(e)) => {
                wrong.push(e);
                continue;
            }
        };
        if slow.0 != fast.0 {
            wrong.push(format!("{}: it prints {:?}, and after the edit {:?}", pair.rule, slow.0, fast.0));
        }
        match finding(pair, &slow.1) {
            Some(f) => {
                let (cost, gain) = (f["cost"].as_f64().unwrap_or(-1.0), f["gain"].as_f64().unwrap_or(-1.0));
                let whole = slow.1["whole"].as_f64().unwrap_or(-1.0);
                if !(0.0 < gain && gain <= cost && cost <= whole * 1.02) {
                    wrong.push(format!("{}: gain {gain}, cost {cost}, whole {whole}", pair.rule));
                }
            }
            None => wrong.push(format!("{}: not found at line {} in {}", pair.rule, pair.line, slow.1)),
        }
        let after = fast.1["findings"].as_array().cloned().unwrap_or_default();
        if after.iter().any(|f| f["rule"] == *pair.rule) {
            wrong.push(format!("{}: still there after the edit: {after:?}", pair.rule));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_an_edit_brought_is_told() {
    let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
    let [slow, fast] = ["slow", "fast"].map(|w| root().join(format!("tests/advise/same-arguments.{w}.tsr")));
    let run = |args: &[&str]| run_in(dir.path(), &[&["advise"], args].concat(), "").unwrap_or_else(|e| panic!("{e}"));
    let before = run(&["--save", "a.json", &slow.to_string_lossy()]);
    assert!(before.code == 0 && before.err.contains("compute it once, before the loop"), "{}", before.err);
    let after = run(&["--against", "a.json", &fast.to_string_lossy()]);
    assert!(after.err.contains("mended: same-arguments same-arguments.slow.tsr:"), "{}", after.err);
    assert!(after.err.contains(" less measured, "), "{}", after.err);
}

#[test]
fn tensors_that_differ_in_one_element_are_not_the_same() {
    let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
    let source = "def f(x: Tensor[512, 512, f32], w: Tensor[512, 512, f32]) -> Tensor[512, 512, f32]:
    return op.relu(x @ w)

def one_hot(i: int) -> Tensor[512, 512, f32]:
    return op.where(op.arange(512 * 512).reshape(512, 512) == i, 1.0, 0.0)

xs = [one_hot(i * 512 + 100) for i in range(20)]
w = op.ones((512, 512))
total = 0.0
for x in xs:
    total = total + f(x, w)[3, 0].item()
print(total)
";
    std::fs::write(dir.path().join("p.tsr"), source).unwrap_or_else(|e| panic!("{e}"));
    let ran = run_in(dir.path(), &["advise", "p.tsr"], "").unwrap_or_else(|e| panic!("{e}"));
    assert!(ran.code == 0 && !ran.err.contains("the same each time"), "{}", ran.err);
}

#[test]
fn wrong_files_are_told_before_the_program_runs() {
    let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap_or_else(|e| panic!("{e}"));
    write("p.tsr", "print(\"it ran\")\n");
    write("no.json", "{\"schema\": 1}\n");
    write("long.json", "{\"schema\": 1, \"findings\": [], \"whole\": 1e300}\n");
    write("wrong.tsr", "print(op.ones((2,)) + op.ones((3,)))\n");
    write("stops.tsr", "x = op.ones((300, 300))\nfor i in range(100):\n    x = op.tanh(x @ x)\nprint([1][5])\n");
    for (args, code, says) in [
        (&["--against", "none.json", "p.tsr"][..], 1, "error[E0706]"),
        (&["--against", "no.json", "p.tsr"], 1, "error[E0707]"),
        (&["--against", "long.json", "p.tsr"], 1, "error[E0707]"),
        (&["--save", "no/such.json", "p.tsr"], 1, "error[E0706]"),
        (&["--save", "p.tsr", "p.tsr"], 1, "error[E0602]"),
        (&["none.tsr"], 1, "error[E0706]"),
        (&["wrong.tsr"], 1, "error[E0203]"),
        (&["--samples", "3", "p.tsr"], 2, "--samples"),
    ] {
        let ran = run_in(dir.path(), &[&["advise"], args].concat(), "").unwrap_or_else(|e| panic!("{e}"));
        assert!(ran.code == code && ran.err.contains(says), "{args:?}: {} {}", ran.code, ran.err);
        assert!(!ran.out.contains("it ran") && !ran.err.contains("panicked"), "{args:?}: {}{}", ran.out, ran.err);
    }
    // What was measured of a program that stops is told.
    let ran = run_in(dir.path(), &["advise", "stops.tsr"], "").unwrap_or_else(|e| panic!("{e}"));
    assert!(ran.code == 1 && ran.err.contains("error[E07") && ran.err.contains("measured"), "{}", ran.err);
}
