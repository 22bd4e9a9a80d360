//! `io.read_onnx`: models that the tests write, and published ones where they have been fetched.

use std::path::Path;
use tessera_tests::onnx::{Attribute, constant, floats, input, ints, model, node, one_int};
use tessera_tests::program::{Ran, fetched, root, run_in};
use tessera_tests::random::Random;

fn numbers(count: usize) -> Vec<f32> {
    let mut random = Random::new(3);
    (0..count).map(|_| random.below(2000) as f32 / 1000.0 - 1.0).collect()
}

/// A convolution, the mean of its channels, a linear layer with softmax; the shape in between is
/// computed as exporters write it.
fn classifier() -> Vec<u8> {
    let values = numbers(200);
    model(
        17,
        &[input("image", 1, &["batch", "3", "8", "width"])],
        &[
            floats("conv.weight", &[4, 3, 3, 3], &values[..108]),
            floats("conv.bias", &[4], &values[108..112]),
            floats("fc.weight", &[5, 4], &values[112..132]),
            floats("fc.bias", &[5], &values[132..137]),
            one_int("zero", 0),
            ints("rest", &[-1]),
            ints("first", &[0]),
        ],
        &[
            node(
                "Conv",
                &["image", "conv.weight", "conv.bias"],
                &["h"],
                &[("strides", Attribute::Ints(vec![2, 2])), ("pads", Attribute::Ints(vec![1, 1, 1, 1]))],
            ),
            node("Relu", &["h"], &["r"], &[]),
            node("GlobalAveragePool", &["r"], &["mean"], &[]),
            node("Shape", &["image"], &["shape"], &[]),
            node("Gather", &["shape", "zero"], &["batch"], &[]),
            node("Unsqueeze", &["batch", "first"], &["batches"], &[]),
            node("Concat", &["batches", "rest"], &["flat"], &[("axis", Attribute::Int(0))]),
            node("Reshape", &["mean", "flat"], &["rows"], &[]),
            node("Gemm", &["rows", "fc.weight", "fc.bias"], &["logits"], &[("transB", Attribute::Int(1))]),
            node("Softmax", &["logits"], &["shares"], &[]),
        ],
        &["shares"],
    )
}

/// Runs a program beside files.
fn run(files: &[(&str, &[u8])], source: &str) -> Ran {
    let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
    for (name, content) in files {
        std::fs::write(dir.path().join(name), content).unwrap_or_else(|e| panic!("{e}"));
    }
    std::fs::write(dir.path().join("main.tsr"), source).unwrap_or_else(|e| panic!("{e}"));
    run_in(dir.path(), &["run", "main.tsr"], "").unwrap_or_else(|e| panic!("{e}"))
}

/// What a program prints that ends well.
fn output(files: &[(&str, &[u8])], source: &str) -> String {
    let r = run(files, source);
    assert_eq!(r.code, 0, "{}{}", r.out, r.err);
    r.out
}

/// The error of a program that does not, with each of these words.
fn refused(files: &[(&str, &[u8])], source: &str, words: &[&str]) {
    let r = run(files, source);
    assert_eq!(r.code, 1, "{}{}", r.out, r.err);
    assert_eq!(r.err.matches("error[").count(), 1, "{}", r.err);
    for word in words {
        assert!(r.err.contains(word), "`{word}` is not in\n{}", r.err);
    }
}

const BESIDE: &str = r#"
net = io.read_onnx("m.onnx")
weights = io.read_onnx_weights(sys.dir + "/m.onnx")

def written_out(x, w):
    h = op.relu(op.conv2d(x, w.conv_weight, bias=w.conv_bias, stride=2, padding=1))
    return op.softmax(h.mean(axis=(2, 3)) @ w.fc_weight.T + w.fc_bias, axis=-1)

def loss(w, x):
    return op.cross_entropy(op.log(net(x, weights=w)), op.array([3, 1]))

def other_loss(w, x):
    return op.cross_entropy(op.log(written_out(x, w)), op.array([3, 1]))

x = random.normal(random.key(0), (2, 3, 8, 6))
print(net(x).shape, op.max(op.abs(net(x) - written_out(x, weights))) < 1e-6)
g, other = autodiff.grad(loss)(weights, x), autodiff.grad(other_loss)(weights, x)
for name, a, b in [("fc", g.fc_weight, other.fc_weight), ("bias", g.fc_bias.reshape(1, -1), other.fc_bias.reshape(1, -1))]:
    print(name, op.max(op.abs(a - b)) < 1e-6, op.max(op.abs(a)) > 1e-3)
"#;

#[test]
fn a_model_computes_what_its_operators_say_and_is_differentiable() {
    let out = output(&[("m.onnx", &classifier())], BESIDE);
    assert_eq!(out, "(2, 5) True\nfc True True\nbias True True\n");
}

#[test]
fn calls_are_checked_before_the_program_runs() {
    let files: &[(&str, &[u8])] = &[("m.onnx", &classifier())];
    let call = |x: &str| format!("net = io.read_onnx(\"m.onnx\")\nprint(1)\nprint(net({x}))\n");
    refused(
        files,
        &call("op.ones((2, 4, 8, 8))"),
        &["E0202", "declared Tensor[BATCH, 3, 8, WIDTH, f32]", "main.tsr:3"],
    );
    refused(files, &call("op.ones((2, 3, 8, 8), dtype=f64)"), &["E0206", "f64 where f32 is declared"]);
    refused(files, &call(""), &["E0104", "lacks the argument `image`"]);
    assert!(!run(files, &call("")).out.contains('1'), "nothing runs before it is checked");
}

#[test]
fn what_has_no_translation_is_told_all_at_once() {
    let file = model(
        17,
        &[input("x", 1, &["n"])],
        &[],
        &[
            node("Frobnicate", &["x"], &["a"], &[]),
            node("Relu", &["a"], &["b"], &[]),
            node("BitCast", &["b"], &["c"], &[("to", Attribute::Int(6))]),
            node("Frobnicate", &["c"], &["d"], &[]),
        ],
        &["d"],
    );
    let source = "net = io.read_onnx(\"m.onnx\")\nprint(net(op.ones((3,))))\n";
    let words =
        ["E0690", "2 operators", "`Frobnicate`: node `the a`, node `the d`", "`BitCast`: node `the c` (no operator"];
    refused(&[("m.onnx", &file)], source, &words);
    let depends = model(
        17,
        &[input("x", 1, &["n"]), input("to", 7, &["k"])],
        &[],
        &[node("Reshape", &["x", "to"], &["y"], &[]), node("Relu", &["y"], &["z"], &[])],
        &["z"],
    );
    refused(&[("m.onnx", &depends)], source, &["E0690", "1 node", "`Reshape`, node `the y`", "depends on data"]);
}

#[test]
fn an_error_in_a_model_names_its_node() {
    let file = model(
        17,
        &[input("x", 1, &["n", "3"])],
        &[floats("w", &[4], &[1.0; 4])],
        &[
            node("Relu", &["x"], &["r"], &[]),
            node("Softmax", &["r"], &["s"], &[("axis", Attribute::Int(1))]),
            node("Add", &["s", "w"], &["y"], &[]),
        ],
        &["y"],
    );
    let source = "net = io.read_onnx(\"m.onnx\")\nprint(net(op.ones((2, 3))))\n";
    refused(&[("m.onnx", &file)], source, &["E0203", "the line stands for Add, node the y, in the file `m.onnx`"]);
    let text = tessera_onnx::module_of(&file, "m.onnx").unwrap_or_else(|e| panic!("{e:?}"));
    assert!(text.contains("# Softmax(axis=1), node the s"), "{text}");
}

#[test]
fn names_of_a_file_may_be_anything() {
    let names = [
        "yield",
        "class",
        "def",
        "async",
        "print",
        "None",
        "1",
        "a b",
        "a.b",
        "a/b",
        "\u{3bb}",
        "_",
        "v1",
        "result1",
        "op",
        "weights",
        "Tensor",
        "f32",
        "N",
        "n",
        "x\"y",
        "line\nbreak",
        "self",
        "match",
        "range",
    ];
    let dims = ["yield", "class", "N", "f32", "a b", "a.b", "2*n", "\u{3a3}", "None", "Tensor", "op"];
    let inputs: Vec<Vec<u8>> = names.iter().map(|n| input(n, 1, &["N"])).collect();
    let weights: Vec<Vec<u8>> = names.iter().map(|n| floats(&format!("{n}w"), &[1], &[1.0])).collect();
    let own: Vec<Vec<u8>> = names.iter().map(|n| floats(n, &[1], &[1.0])).collect();
    let all: Vec<String> = names.iter().map(|n| format!("{n}w")).collect();
    let arguments: Vec<&str> = names.iter().copied().chain(all.iter().map(|n| &**n)).collect();
    let first = model(17, &inputs, &weights, &[node("Sum", &arguments, &["lambda"], &[])], &["lambda"]);
    let second = model(17, &[input("x", 1, &["3"])], &own, &[node("Sum", &names, &["y"], &[])], &["y"]);
    let third = model(17, &[input("x", 1, &dims)], &[], &[node("Relu", &["x"], &["y"], &[])], &["y"]);
    let ones = vec!["x"; names.len()].join(", ");
    let source = format!(
        "a, b = io.read_onnx(\"a.onnx\"), io.read_onnx(\"b.onnx\")\nx = op.ones((2,))\nprint(a({ones}), b(op.ones((3,))))\n\
         print(io.read_onnx(\"c.onnx\")(op.ones({:?})).shape)\n",
        (1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1)
    );
    let files: &[(&str, &[u8])] = &[("a.onnx", &first), ("b.onnx", &second), ("c.onnx", &third)];
    assert_eq!(output(files, &source), "[50. 50.] [25.]\n(1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1)\n");
}

#[test]
fn versions_that_are_not_known_yet_are_refused() {
    let file = model(99, &[input("x", 1, &["n"])], &[], &[node("Relu", &["x"], &["y"], &[])], &["y"]);
    let source = "net = io.read_onnx(\"m.onnx\")\nprint(net(op.ones((3,))))\n";
    refused(&[("m.onnx", &file)], source, &["E0690", "has version 99 of the operators; known are 1 to"]);
    let early = model(6, &[input("x", 1, &["n"])], &[], &[node("Gelu", &["x"], &["y"], &[])], &["y"]);
    refused(&[("m.onnx", &early)], source, &["E0690", "version 6 of the operators does not have it"]);
}

#[test]
fn floats_of_eight_bits_saturate_or_do_not() {
    let to = |kind: i64, saturate: i64| {
        let attributes = [("to", Attribute::Int(kind)), ("saturate", Attribute::Int(saturate))];
        model(21, &[input("x", 1, &["n"])], &[], &[node("Cast", &["x"], &["y"], &attributes)], &["y"])
    };
    let source = "net = io.read_onnx(\"m.onnx\")\nx = op.array([1.06, 448.0, 464.0, 465.0, -1e9, math.inf, math.nan])\n\
                  print(net(x).to(f32).tolist())\n";
    assert_eq!(output(&[("m.onnx", &to(17, 1))], source), "[1.0, 448.0, 448.0, 448.0, -448.0, 448.0, nan]\n");
    assert_eq!(output(&[("m.onnx", &to(17, 0))], source), "[1.0, 448.0, 448.0, nan, nan, nan, nan]\n");
    refused(
        &[("m.onnx", &to(19, 0))],
        source,
        &["E0690", "its attribute `saturate` is 0: fp8_e5m2 of what may be too large"],
    );
    // A zero point says which of them, and is 0.
    let scale = floats("scale", &[], &[0.5]);
    let zero = constant("zero", 17, &[], vec![0]);
    let there = node("QuantizeLinear", &["x", "scale", "zero"], &["q"], &[]);
    let back = node("DequantizeLinear", &["q", "scale", "zero"], &["y"], &[]);
    let file = model(19, &[input("x", 1, &["n"])], &[scale, zero], &[there, back], &["q", "y"]);
    let source =
        "net = io.read_onnx(\"m.onnx\")\nq, y = net(op.array([1.06, -3.0, 1000.0]))\nprint(q.dtype, q.to(f32), y)\n";
    assert_eq!(output(&[("m.onnx", &file)], source), "fp8_e4m3 [  2.  -6. 448.] [  1.  -3. 224.]\n");
}

#[test]
fn files_that_are_no_models_are_refused() {
    let source = "net = io.read_onnx(\"m.onnx\")\n";
    refused(&[], source, &["E0706", "no such file"]);
    let whole = classifier();
    refused(&[("m.onnx", &whole[..whole.len() / 2])], source, &["E0707", "not a readable ONNX file"]);
    refused(&[("m.onnx", b"")], source, &["E0707", "it is empty"]);
    let path = "path = \"m.onnx\"\nnet = io.read_onnx(path)\n";
    refused(&[("m.onnx", &whole)], path, &["E0213", "known before the program runs"]);
    let none = "from std.data import fetched\nnet = io.read_onnx(fetched(\"nothing\") + \"/m.onnx\")\n";
    refused(&[], none, &["E0706", "./x fetch nothing"]);
}

#[test]
fn branches_by_sizes_are_decided_for_every_call() {
    let then = Attribute::Graph(vec![node("Neg", &["x"], &["t"], &[])], "t");
    let otherwise = Attribute::Graph(vec![node("Exp", &["x"], &["e"], &[])], "e");
    let file = model(
        17,
        &[input("x", 1, &["n"])],
        &[ints("one", &[1])],
        &[
            node("Shape", &["x"], &["shape"], &[]),
            node("Equal", &["shape", "one"], &["alone"], &[]),
            node("If", &["alone"], &["y"], &[("then_branch", then), ("else_branch", otherwise)]),
        ],
        &["y"],
    );
    let source = "net = io.read_onnx(\"m.onnx\")\nprint(net(op.ones((1,))), net(op.zeros((2,))))\n";
    assert_eq!(output(&[("m.onnx", &file)], source), "[-1.] [1. 1.]\n");
}

#[test]
fn a_model_stands_as_text() {
    let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
    std::fs::write(dir.path().join("m.onnx"), classifier()).unwrap_or_else(|e| panic!("{e}"));
    let text = run_in(dir.path(), &["emit", "m.onnx"], "").unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(text.code, 0, "{}", text.err);
    assert!(text.out.contains("def model(image: Tensor[BATCH, 3, 8, WIDTH, f32], weights=weights):"), "{}", text.out);
    // It is a module like any other.
    std::fs::write(dir.path().join("net.tsr"), text.out).unwrap_or_else(|e| panic!("{e}"));
    let main = "import net\nprint(net.model(op.ones((1, 3, 8, 8))).shape)\n";
    std::fs::write(dir.path().join("main.tsr"), main).unwrap_or_else(|e| panic!("{e}"));
    let r = run_in(dir.path(), &["run", "main.tsr"], "").unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((r.code, &*r.out), (0, "(1, 5)\n"), "{}", r.err);
}

#[test]
fn any_bytes_are_translated_or_refused() {
    let whole = classifier();
    let mut random = Random::new(11);
    for round in 0..20_000 {
        let mut broken = whole.clone();
        for _ in 0..=round % 4 {
            let at = random.below(broken.len());
            broken[at] = random.below(256) as u8;
        }
        broken.truncate(if round % 5 == 0 { random.below(broken.len()) } else { broken.len() });
        if let Ok(text) = tessera_onnx::module_of(&broken, "m.onnx") {
            assert!(text.len() < 100 * whole.len() + 10_000, "{} bytes of text", text.len());
        }
    }
}

/// Makes what was fetched visible to programs under test, whose cache is their own.
fn shown(folder: &Path, name: &str) {
    let data = std::env::temp_dir().join("tessera-test-cache/data");
    std::fs::create_dir_all(&data).unwrap_or_else(|e| panic!("{e}"));
    if !data.join(name).exists() {
        let _ = std::os::unix::fs::symlink(folder, data.join(name));
    }
}

#[test]
fn a_published_model_names_the_kinds_of_files() {
    let Some(folder) = fetched("filetype") else { return };
    shown(&folder, "filetype");
    // What onnxruntime 1.31 gives for the same features.
    let wanted = [
        ("LICENSE", "0.9992  txt"),
        ("docs/gpt-curve.csv", "1.0000  csv"),
        ("examples/data/digits.csv.gz", "1.0000  gzip"),
    ];
    let mut args = vec!["run", "examples/filetype.tsr"];
    args.extend(wanted.iter().map(|(path, _)| *path));
    let r = run_in(&root(), &args, "").unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(r.code, 0, "{}{}", r.out, r.err);
    for (line, (path, start)) in r.out.lines().zip(wanted) {
        assert!(line.starts_with(start) && line.ends_with(path), "{}", r.out);
    }
}

#[test]
fn published_sentence_vectors_from_an_onnx_file() {
    let Some(folder) = fetched("minilm-l3") else { return };
    shown(&folder, "minilm-l3");
    // Two sentences of different lengths; what onnxruntime 1.31 gives for the same tokens.
    let source = r#"
from std.data import fetched
net = io.read_onnx(fetched("minilm-l3") + "/model.onnx")
ids = op.array([[101, 2023, 2003, 1037, 3231, 6254, 1012, 102], [101, 7592, 2088, 102, 0, 0, 0, 0]])
vectors = net(ids, (ids > 0).to(i64))[3]
print(vectors.shape, vectors[0, :6].tolist(), vectors[1, :6].tolist())
"#;
    let out = output(&[], source);
    let found: Vec<f64> =
        out.split(['[', ']', ',', ' ', '\n', '(', ')']).filter_map(|t| t.parse().ok()).skip(2).collect();
    let wanted = [
        -0.2410849, 0.3485469, -0.3426276, 0.2485899, 0.0166534, -0.3541889, -0.0939942, 0.1522975, 0.3184937,
        0.0654083, 0.1380678, 0.0732178,
    ];
    assert!(found.len() == 12 && found.iter().zip(wanted).all(|(f, w): (&f64, f64)| (f - w).abs() < 2e-6), "{out}");
}

#[test]
fn the_page_names_every_operator() {
    let page = std::fs::read_to_string(root().join("docs/onnx.md")).unwrap_or_default();
    let listed = page.split("the standard operators").nth(1).unwrap_or_default();
    let named: Vec<&str> = listed.split('`').skip(1).step_by(2).collect();
    for op in tessera_onnx::operators() {
        assert!(named.contains(&op.name), "docs/onnx.md lacks `{}`", op.name);
    }
}
