//! The examples run and say what they should; the standard library's docstrings hold.

use tessera_tests::program::{root, run_in};

fn output(args: &[&str]) -> String {
    match run_in(&root(), args, "") {
        Ok(r) if r.code == 0 => r.out,
        Ok(r) => panic!("exit {}\n{}{}", r.code, r.out, r.err),
        Err(e) => panic!("{e}"),
    }
}

#[test]
fn the_digits_are_learned() {
    // The program itself asserts that the network reaches 96 %.
    let out = output(&["run", "examples/digits.tsr"]);
    assert!(out.contains("1437 images to train on, 360 held out"), "{out}");
    assert!(out.contains("confusion matrix"), "{out}");
}

#[test]
fn threads_do_not_change_what_is_learned() {
    let one = output(&["run", "--threads", "1", "examples/digits.tsr"]);
    assert_eq!(one, output(&["run", "--threads", "3", "examples/digits.tsr"]));
}

#[test]
fn components_of_wine() {
    let out = output(&["run", "examples/pca.tsr"]);
    assert!(out.contains("component 1: 36.2% of the variance"), "{out}");
}

#[test]
fn clusters_of_flowers() {
    let out = output(&["run", "examples/kmeans.tsr"]);
    assert!(out.contains("setosa      [50  0  0]"), "{out}");
}

#[test]
fn docstrings_of_the_standard_library_hold() {
    let out = output(&["test", "std/metrics.tsr", "std/init.tsr", "std/data.tsr"]);
    assert!(out.contains(" 0 failed"), "{out}");
}
