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
    let folder = root().join("std");
    let mut files: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|e| format!("std/{}", e.unwrap().file_name().to_string_lossy()))
        .filter(|name| name.ends_with(".tsr"))
        .collect();
    files.sort();
    let mut args = vec!["test"];
    args.extend(files.iter().map(String::as_str));
    let out = output(&args);
    assert!(out.contains(" 0 failed"), "{out}");
}

/// A BERT of two layers with random weights in the published format, against vectors that
/// PyTorch computed in f64.
const TINY_BERT: &str = r#"
import bert
import std.tokens as tokens

folder = sys.args[0]
t = tokens.read(folder + "/vocab.txt")
m = io.load(folder + "/model.safetensors", like=bert.model(16, 8, 8, 16, 2), extra=True)
texts = ["The sun is shining.", "Rain falls", "the rain on us"]
print(tokens.encode_batch(t, texts)[0])
v = bert.embed_texts(m, t, texts, 2)
wanted = op.array([
    [-0.24970, -0.49443, 0.04094, -0.00533, -0.01192, 0.80609, 0.09991, -0.17772],
    [-0.24506, -0.41350, 0.06324, 0.06029, -0.17051, 0.82675, 0.10137, -0.19610],
    [-0.25419, -0.45930, 0.02960, 0.02647, -0.08215, 0.82170, 0.10636, -0.17206]])
error = float(op.abs(v - wanted).max())
assert error < 2e-5, f"off by {error}"
"#;

#[test]
fn a_small_bert_gives_the_vectors_of_the_reference() {
    let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
    std::fs::copy(root().join("examples/bert.tsr"), dir.path().join("bert.tsr")).unwrap_or_else(|e| panic!("{e}"));
    std::fs::write(dir.path().join("main.tsr"), TINY_BERT).unwrap_or_else(|e| panic!("{e}"));
    let data = root().join("tests/data/tiny-bert").display().to_string();
    let r = run_in(dir.path(), &["run", "main.tsr", &data], "").unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(r.code, 0, "{}{}", r.out, r.err);
    assert!(r.out.contains("[ 2 10 11 12  3  0  0  0]"), "{}", r.out);
}

/// Where `./x fetch` keeps what it obtained, if it obtained this.
fn fetched(name: &str) -> Option<String> {
    let from = |v: &str| std::env::var_os(v).filter(|v| !v.is_empty()).map(std::path::PathBuf::from);
    let cache = from("TESSERA_CACHE")
        .or_else(|| from("XDG_CACHE_HOME").map(|d| d.join("tessera")))
        .or_else(|| from("HOME").map(|d| d.join(".cache/tessera")))?;
    let folder = cache.join("data").join(name);
    if !folder.exists() {
        eprintln!("not run: `./x fetch {name}` has not been done");
        return None;
    }
    Some(folder.display().to_string())
}

#[test]
fn published_sentence_vectors_are_as_like_as_their_makers_say() {
    let Some(folder) = fetched("minilm") else { return };
    let out = output(&["run", "examples/minilm.tsr", &folder]);
    let values: Vec<f64> = out.lines().filter_map(|l| l.split("  ").next()?.parse().ok()).collect();
    let wanted = [0.6660, 0.1046, 0.1411];
    assert!(values.len() == 3 && values.iter().zip(wanted).all(|(v, w)| (v - w).abs() < 1e-4), "{out}");
}

#[test]
fn the_images_of_mnist_are_learned() {
    let Some(folder) = fetched("mnist") else { return };
    // The program itself asserts that the network reaches 96.5 %.
    let out = output(&["run", "examples/mnist.tsr", &folder]);
    assert!(out.contains("epoch 5"), "{out}");
}
