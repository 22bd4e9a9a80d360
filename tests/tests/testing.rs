//! `tessera test`: folders, documents, drawn arguments, and its results as JSON and XML.

use tessera_tests::program::{Ran, run_in};

const PROGRAM: &str = "\"\"\"About it.\n\n>>> half(4)\n2\n\"\"\"\n\n\
    def half(x):\n    \"\"\"Half.\n\n    >>> half(4)\n    2\n    >>> half(6)\n    4\n    \"\"\"\n    return x // 2\n\n\
    C = 2\n\n\
    def test_ok():\n    assert half(2) == 1\n\n\
    def test_sizes(x: Tensor[N, D + C, f32], y: Tensor[N, f64], k: int, i: Tensor[N, i32], b: Tensor[N, bool]):\n    \
    assert x.sum(axis=0).shape[0] == x.shape[1]\n    assert x.shape[0] < 5\n\n\
    def test_list(x: list[int]):\n    assert True\n";

const DOCUMENT: &str = "# Title\n\n```tessera\n>>> x = op.arange(6).reshape((2, 3))\n>>> x * 2\nTensor[2, 3, i64]\n[[ 0  2  4]\n \
    [ 6  8 10]]\n>>> _.sum()\nTensor[i64] 30\n```\n\n```python\n>>> import os\n```\n\n```tessera\n>>> x.sum()\n15\n>>> x.shap\n1\n```\n\n\
    ```tessera\n>>> x[0] + 1\n[1 2 4]\n```\n";

/// Tests in a folder with a program, a document, a hidden test and a program that does not check and has no test.
fn tested(args: &[&str]) -> (Ran, tempfile::TempDir) {
    let dir = tempfile::tempdir().expect("a folder");
    let files = [
        ("a.tsr", PROGRAM),
        ("doc.md", DOCUMENT),
        (".hidden/h.tsr", "def test_h(): assert False\n"),
        ("sub/p.tsr", "print(y)\n"),
    ];
    for (name, text) in files {
        let path = dir.path().join("t").join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }
    (run_in(dir.path(), args, "").expect("the program starts"), dir)
}

#[test]
fn a_folder_is_tested_with_its_documents() {
    let (ran, _dir) = tested(&["test", "t"]);
    let lines: Vec<&str> = ran.out.lines().filter(|l| l.starts_with("ok") || l.starts_with("FAILED")).collect();
    assert_eq!(
        lines,
        [
            "ok      example of the file's docstring",
            "FAILED  example of half (t/a.tsr:12)",
            "ok      test_ok",
            "FAILED  test_sizes (t/a.tsr:22)",
            "FAILED  test_list (t/a.tsr:26)",
            "ok      example at line 4 under Title",
            "FAILED  example at line 18 under Title (t/doc.md:20)",
            "FAILED  example at line 25 under Title (t/doc.md:25)",
        ],
        "{}{}",
        ran.out,
        ran.err
    );
    assert!(ran.code == 1 && ran.out.contains("\n3 passed, 5 failed in "), "{}", ran.out);
    // The smallest sizes that fail, and places of the document.
    assert!(ran.out.contains("ended with exit code 1 for N = "), "{}", ran.out);
    for part in ["t/a.tsr:24:5", "t/doc.md:20:3", "did you mean `shape`?"] {
        assert!(ran.err.contains(part), "{part} is not in\n{}", ran.err);
    }
    assert!(!ran.err.contains("p.tsr") && !ran.out.contains("test_h"), "{}", ran.err);
    // The same again, in the same order.
    let again = tested(&["test", "t", "--jobs", "1"]).0;
    assert_eq!(again.err, ran.err);
}

#[test]
fn results_are_objects_or_a_file_of_xml() {
    let (ran, dir) = tested(&["--json", "test", "t", "--junit", "out.xml"]);
    let cases: Vec<serde_json::Value> =
        ran.out.lines().map(|l| serde_json::from_str(l).unwrap_or_else(|e| panic!("{l}: {e}"))).collect();
    assert_eq!(cases.len(), 8, "{}", ran.out);
    let half = &cases[1];
    let fields: Vec<&str> = half.as_object().expect("an object").keys().map(String::as_str).collect();
    assert_eq!(fields, ["name", "file", "line", "ok", "seconds", "expected", "printed", "message"]);
    assert_eq!((&half["line"], &half["expected"], &half["printed"]), (&12.into(), &"4".into(), &"3".into()));
    assert!(cases[3]["message"].as_str().is_some_and(|m| m.contains("E0705")), "{}", cases[3]);
    let xml = std::fs::read_to_string(dir.path().join("out.xml")).expect("the file is written");
    assert!(xml.contains("<testsuite name=\"t/doc.md\" tests=\"3\"") && xml.contains("failures=\"5\""), "{xml}");
    assert!(xml.contains("line=\"12\"") && xml.ends_with("</testsuites>\n"), "{xml}");
    let (ran, _dir) = tested(&["test", "t/a.tsr", "--junit", "nowhere/out.xml"]);
    assert!(ran.code == 1 && ran.err.contains("E0706"), "{}", ran.err);
}

#[test]
fn a_filter_names_something() {
    let (ran, _dir) = tested(&["test", "t", "--filter", "test_ok"]);
    assert_eq!((ran.code, ran.out.starts_with("ok      test_ok\n1 passed, 0 failed in ")), (0, true), "{}", ran.out);
    let (ran, _dir) = tested(&["test", "t", "-k", "test_okay"]);
    assert!(ran.code == 2 && ran.err.contains("did you mean `test_ok`?"), "{}", ran.err);
    // What a block needs of those before it runs.
    let (ran, _dir) = tested(&["test", "t/doc.md", "-k", "line 18"]);
    assert!(
        ran.out.starts_with("FAILED  example at line 18") && ran.out.contains("\n0 passed, 1 failed"),
        "{}",
        ran.out
    );
    assert_eq!(tested(&["test"]).0.code, 2);
    assert_eq!(tested(&["test", "nowhere"]).0.code, 1);
}
