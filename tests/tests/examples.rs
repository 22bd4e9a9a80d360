//! The examples run and say what they should; the standard library's docstrings hold.

use tessera_tests::program::{fetched, root, run_in};

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

/// Programs of scientists: each asserts what it is to find.
#[test]
fn filters_processes_chains_prices_and_graphs_find_what_was_simulated() {
    let programs = ["black_scholes", "gaussian_process", "graph_network", "heat_and_wave", "hmc", "kalman", "ppo"];
    for name in programs {
        let path = format!("examples/{name}.tsr");
        let one = output(&["run", "--threads", "1", &path]);
        assert_eq!(one, output(&["run", "--threads", "3", &path]), "{name}");
    }
}

/// A folder of a test's own, and its path as text.
fn folder() -> (tempfile::TempDir, String) {
    let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
    let path = dir.path().display().to_string();
    (dir, path)
}

/// The numbers behind a word in a text, as they come.
fn numbers(out: &str, word: &str) -> Vec<f64> {
    let behind = out.split(word).skip(1);
    behind.filter_map(|t| t.split_whitespace().next()?.trim_end_matches('%').parse().ok()).collect()
}

#[test]
fn a_gpt_that_was_interrupted_ends_with_the_same_bits() {
    let (dir, path) = folder();
    let lines = ["to be or not to be", "that is the question", "whether it is nobler"];
    let text: String = (0..300).map(|i| lines[(i * i + i / 7) % 3].to_owned() + "\n").collect();
    std::fs::write(dir.path().join("text.txt"), text).unwrap_or_else(|e| panic!("{e}"));
    let train = |out: &str, more: &[&str]| {
        let (text, out) = (format!("{path}/text.txt"), format!("{path}/{out}"));
        let mut args = vec!["run", "examples/gpt.tsr", "--text", &text, "--out", &out];
        args.extend(
            "--steps 6 --every 2 --batch 4 --context 16 --width 16 --heads 2 --layers 2 --letters 9".split(' '),
        );
        args.extend(more);
        output(&args)
    };
    let whole = train("whole", &[]);
    train("parts", &["--stop", "3"]);
    let rest = train("parts", &["--resume", "--threads", "3"]);
    assert!(rest.contains("resumed at step 3"), "{rest}");
    let bytes = |name: &str| std::fs::read(dir.path().join(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
    assert_eq!(bytes("whole.safetensors"), bytes("parts.safetensors"));
    assert_eq!(bytes("whole.svg"), bytes("parts.svg"));
    // What is drawn from the model is the same, and the model has learned something.
    let last = |out: &str| out.rsplit("ms a step").next().unwrap_or_default().to_owned();
    assert_eq!(last(&whole), last(&rest));
    let held_out = numbers(&whole, "held out ");
    assert!(held_out.len() >= 4 && held_out[3] < held_out[0], "{whole}");
}

#[test]
fn products_of_few_bits_learn_as_well() {
    let (dir, path) = folder();
    let lines = ["to be or not to be", "that is the question", "whether it is nobler"];
    let text: String = (0..300).map(|i| lines[(i * i + i / 7) % 3].to_owned() + "\n").collect();
    std::fs::write(dir.path().join("text.txt"), text).unwrap_or_else(|e| panic!("{e}"));
    let text = format!("{path}/text.txt");
    let mut args = vec!["run", "examples/precision.tsr", "--text", &text];
    args.extend("--steps 40 --batch 4 --context 16 --width 32 --heads 2 --layers 1".split(' '));
    let out = output(&args);
    let held = numbers(&out, "held out ");
    let [f32s, rest @ ..] = &held[..] else { panic!("{out}") };
    assert_eq!(rest.len(), 3, "{out}");
    // It began at 2.8 nats, guessing among 16 characters.
    assert!(*f32s < 2.6, "{out}");
    assert!(rest.iter().all(|h| (h - f32s).abs() < 0.01), "{out}");
}

/// An IDX file: an element type, the sizes, and bytes.
fn idx(path: &std::path::Path, shape: &[u32], bytes: &[u8]) {
    let mut file = vec![0, 0, 8, shape.len() as u8];
    file.extend(shape.iter().flat_map(|n| n.to_be_bytes()));
    file.extend_from_slice(bytes);
    std::fs::write(path, file).unwrap_or_else(|e| panic!("{e}"));
}

/// A folder with files as those of MNIST, in which an image of a class is bright where `lit(class, row, column)` says, on a
/// noisy ground.
fn images(lit: impl Fn(u32, u32, u32) -> bool) -> (tempfile::TempDir, String) {
    let (dir, path) = folder();
    for (name, count) in [("train", 640u32), ("t10k", 100)] {
        let (mut images, mut labels, mut noise) = (vec![], vec![], 12345u32);
        for i in 0..count {
            let class = i * 7 % 10;
            for pixel in 0..784 {
                noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let lit = lit(class, pixel / 28, pixel % 28);
                images.push((noise >> 26) as u8 + if lit { 180 } else { 0 });
            }
            labels.push(class as u8);
        }
        idx(&dir.path().join(format!("{name}-images-idx3-ubyte")), &[count, 28, 28], &images);
        idx(&dir.path().join(format!("{name}-labels-idx1-ubyte")), &[count], &labels);
    }
    (dir, path)
}

/// What a program prints with one thread, which is what it prints with three.
fn on_any_threads(args: &[&str]) -> String {
    let with = |threads: &str| output(&[&["run", "--threads", threads], args].concat());
    let one = with("1");
    assert_eq!(one, with("3"), "{args:?}");
    one
}

/// The same with options in a text.
fn ran(example: &str, options: &str, more: &[&str]) -> String {
    let args: Vec<&str> = [example].into_iter().chain(options.split_whitespace()).chain(more.iter().copied()).collect();
    on_any_threads(&args)
}

#[test]
fn an_autoencoder_a_vision_transformer_and_a_diffusion_learn() {
    // Two columns of five places, further apart than images are moved.
    let (dir, path) = images(|class, y, x| (y / 5, x / 13) == (class % 5, class / 5));
    let picture = |name: &str| dir.path().join(name).display().to_string();
    let drawn = picture("vae.png");
    let out = ran("examples/vae.tsr", "--epochs 2 --batch 32 --width 32", &["--data", &path, "--out", &drawn]);
    let nats = numbers(&out, "test ");
    assert!(nats.len() == 3 && nats[2] < nats[1] && nats[1] < 0.9 * nats[0], "{out}");
    assert!(dir.path().join("vae.png").exists());
    let out = ran("examples/vit.tsr", "--epochs 3 --batch 32 --width 16 --blocks 1", &["--data", &path]);
    let losses = numbers(&out, "loss ");
    assert!(losses.len() == 3 && losses[2] < losses[1] && losses[1] < losses[0], "{out}");
    let drawn = picture("noise.png");
    let options = "--steps 20 --batch 8 --width 4 --noises 10 --rows 2";
    let out = ran("examples/diffusion.tsr", options, &["--data", &path, "--out", &drawn]);
    let errors = numbers(&out, "  test ");
    assert!(errors.len() == 6 && errors[5] < errors[0], "{out}");
    assert!(dir.path().join("noise.png").exists());
}

#[test]
fn a_recurrent_network_learns_to_write() {
    let (dir, path) = folder();
    let lines = ["to be or not to be", "that is the question", "whether it is nobler"];
    let text: String = (0..300).map(|i| lines[(i * i + i / 7) % 3].to_owned() + "\n").collect();
    std::fs::write(dir.path().join("text.txt"), text).unwrap_or_else(|e| panic!("{e}"));
    let options = "--steps 160 --batch 8 --context 16 --width 32 --letters 40 --text";
    let out = ran("examples/lstm.tsr", options, &[&format!("{path}/text.txt")]);
    let held_out = numbers(&out, "held out ");
    assert!(held_out.len() == 5 && held_out[4] < 0.9 * held_out[0], "{out}");
}

#[test]
fn a_residual_network_learns_to_see() {
    let out = ran("examples/resnet.tsr", "--images 320 --tests 100 --epochs 3 --batch 32 --width 4", &[]);
    let losses = numbers(&out, "loss ");
    assert!(losses.len() == 3 && losses[2] < losses[0], "{out}");
}

#[test]
fn adapters_beside_a_published_model_learn() {
    let Some(folder) = fetched("minilm") else { return };
    let folder = folder.display().to_string();
    let out = ran("examples/lora.tsr", "--steps 4 --rank 2 --batch 8 --data", &[&folder]);
    assert!(out.contains("22,565,376 stay as they are") && numbers(&out, "about ")[0] > 60.0, "{out}");
}

#[test]
fn a_conversation_goes_on_from_what_was_said() {
    let Some(folder) = fetched("smollm2") else { return };
    let file = folder.join("model.gguf").display().to_string();
    let said = |threads: &str, input: &str| {
        let args =
            ["run", "--threads", threads, "examples/chat.tsr", "--temperature", "0", "--most", "40", "--file", &file];
        let r = run_in(&root(), &args, input).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(r.code, 0, "{}{}", r.out, r.err);
        r.out
    };
    let two = "What is the capital of France?\nAnd of Italy?\n";
    let out = said("1", two);
    assert!(out.contains("Paris") && out.contains("Rome"), "{out}");
    assert_eq!(out, said("3", two));
}

#[test]
fn a_small_convolutional_network_learns() {
    // Class c is a bright bar at its own height.
    let (_dir, path) = images(|class, y, _| y / 2 == class + 2);
    let out = output(&["run", "examples/convnet.tsr", "--data", &path, "--epochs", "2", "--batch", "32"]);
    let test = numbers(&out, "test ");
    assert!(test.last().is_some_and(|&percent| percent >= 95.0), "{out}");
}

#[test]
fn a_fourier_operator_learns_burgers_equation() {
    let (dir, path) = folder();
    let out = format!("{path}/fno");
    let said =
        output(&["run", "examples/fno.tsr", "--samples", "64", "--points", "32", "--epochs", "20", "--out", &out]);
    let held_out = numbers(&said, "held out ");
    assert!(held_out.len() == 2 && held_out[1] < held_out[0] && held_out[1] < 50.0, "{said}");
    assert!(dir.path().join("fno.svg").exists() && dir.path().join("fno-error.svg").exists(), "{said}");
}

#[test]
fn a_mixture_of_experts_learns() {
    let out = output(&["run", "examples/moe.tsr", "--steps", "60", "--batch", "64"]);
    let errors = numbers(&out, "error ");
    assert!(errors.len() >= 12 && errors[11] < 0.7 * errors[6], "{out}");
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

#[test]
fn published_sentence_vectors_are_as_like_as_their_makers_say() {
    let Some(folder) = fetched("minilm") else { return };
    let folder = folder.display().to_string();
    let out = output(&["run", "examples/minilm.tsr", &folder]);
    let values: Vec<f64> = out.lines().filter_map(|l| l.split("  ").next()?.parse().ok()).collect();
    let wanted = [0.6660, 0.1046, 0.1411];
    assert!(values.len() == 3 && values.iter().zip(wanted).all(|(v, w)| (v - w).abs() < 1e-4), "{out}");
}

#[test]
fn the_images_of_mnist_are_learned() {
    let Some(folder) = fetched("mnist") else { return };
    let folder = folder.display().to_string();
    // The program itself asserts that the network reaches 96.5 %.
    let out = output(&["run", "examples/mnist.tsr", &folder]);
    assert!(out.contains("epoch 5"), "{out}");
}

#[test]
fn a_published_chat_model_gives_the_answer_of_the_reference() {
    let Some(folder) = fetched("smollm2") else { return };
    let folder = folder.display().to_string();
    let out = output(&["run", "examples/smollm2.tsr", "What is the capital of France?", "0", "0", &folder]);
    assert!(out.starts_with("The capital of France is Paris.\n(16 tokens in, 8 out, "), "{out}");
}

#[test]
fn a_gpt_trained_on_meshes_ends_with_the_bits_of_one_device() {
    let text = std::fs::read_to_string(root().join("examples/gpt_mesh.tsr")).unwrap_or_else(|e| panic!("{e}"));
    let losses = |out: &str| numbers(out, "device, ").iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    let mut first: Option<Vec<u64>> = None;
    let sizes = [(2, 2), (2, 1), (1, 2), (3, 1), (4, 1), (1, 4), (8, 1), (2, 4)];
    let by_sequence = sizes.iter().filter(|(_, tensor)| *tensor > 1).map(|s| (s, true));
    for (&(data, tensor), sequence) in sizes.iter().map(|s| (s, false)).chain(by_sequence) {
        let (dir, path) = folder();
        let own = format!("devices=range({}), shape=[{data}, {tensor}]", data * tensor);
        let text = text.replace("devices=range(4), shape=[2, 2]", &own);
        std::fs::write(dir.path().join("gpt.tsr"), text).unwrap_or_else(|e| panic!("{e}"));
        let file = format!("{path}/gpt.tsr");
        let mut args = vec!["run", &file, "--", "--steps", "2"];
        args.extend(sequence.then_some("--sequence"));
        let out = output(&args);
        assert!(out.contains("the same bits"), "{data}×{tensor}: {out}");
        let found = losses(&out);
        assert_eq!(found.len(), 2, "{out}");
        assert_eq!(*first.get_or_insert(found.clone()), found, "{data}×{tensor}");
    }
}

#[test]
fn a_gpt_whose_layers_are_a_scan_ends_with_the_bits_of_one_device() {
    let text = std::fs::read_to_string(root().join("examples/gpt_scan.tsr")).unwrap_or_else(|e| panic!("{e}"));
    for (data, tensor) in [(2, 2), (3, 1), (1, 4), (2, 4)] {
        let (dir, path) = folder();
        let own = format!("devices=range({}), shape=[{data}, {tensor}]", data * tensor);
        let text = text.replace("devices=range(4), shape=[2, 2]", &own);
        std::fs::write(dir.path().join("gpt.tsr"), text).unwrap_or_else(|e| panic!("{e}"));
        let out = output(&["run", &format!("{path}/gpt.tsr"), "--", "--steps", "2"]);
        assert!(out.contains("the same bits"), "{data}×{tensor}: {out}");
    }
}

#[test]
fn a_router_finds_how_often_a_block_has_to_be_applied() {
    let out = output(&["run", "examples/recursive.tsr"]);
    for depth in 1..=4 {
        assert!(out.contains(&format!("{depth} steps: applied {depth}.00 times, 100.0% right")), "{out}");
    }
}
