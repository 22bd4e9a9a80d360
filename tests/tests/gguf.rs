//! A GGUF file with random weights in every block format, through `examples/llama.tsr`, against a
//! decoder written out plainly in f64.

use tessera_base::Blocks;
use tessera_tests::program::{root, run_in};
use tessera_tests::random::Random;

const LAYERS: usize = 2;
const D: usize = 256;
/// Features of a head, heads of keys, heads of queries.
const C: usize = 64;
const G: usize = 2;
const H: usize = 4;
const V: usize = 48;
const BASE: f64 = 10000.0;
const EPS: f64 = 1e-5;
const IDS: [usize; 6] = [3, 1, 4, 1, 5, 9];
/// Tokens that go in at once; the others follow one by one.
const AT_ONCE: usize = 4;

/// A matrix `[rows, cols]`: its bytes in the file and its numbers.
struct Matrix {
    rows: usize,
    cols: usize,
    bytes: Vec<u8>,
    values: Vec<f64>,
}

fn quantised(random: &mut Random, format: Blocks, rows: usize, cols: usize) -> Matrix {
    let count = rows * cols / format.elems();
    let mut bytes: Vec<u8> = (0..count * format.bytes()).map(|_| random.below(256) as u8).collect();
    for block in bytes.chunks_exact_mut(format.bytes()) {
        // Scales that make numbers of up to about 0.06.
        let (at, scale): (usize, [u8; 2]) = match format {
            Blocks::Q4_0 | Blocks::Q4_1 => (0, [0x00, 0x20]),
            Blocks::Q5_0 | Blocks::Q5_1 => (0, [0x00, 0x1c]),
            Blocks::Q8_0 => (0, [0x00, 0x10]),
            Blocks::Q4K | Blocks::Q5K => (0, [0x00, 0x03]),
            Blocks::Q6K => (208, [0x00, 0x01]),
        };
        block[at..at + 2].copy_from_slice(&scale);
        match format {
            Blocks::Q4_1 | Blocks::Q5_1 => block[2..4].copy_from_slice(&[0x00, 0xac]),
            Blocks::Q4K | Blocks::Q5K => block[2..4].copy_from_slice(&[0x00, 0x0c]),
            _ => {}
        }
    }
    let mut numbers = vec![0f32; rows * cols];
    for (block, to) in bytes.chunks_exact(format.bytes()).zip(numbers.chunks_exact_mut(format.elems())) {
        format.decode(block, to);
    }
    Matrix { rows, cols, bytes, values: numbers.into_iter().map(f64::from).collect() }
}

/// Weights around 1.
fn plain(random: &mut Random) -> Matrix {
    let values: Vec<f32> = (0..D).map(|_| 0.5 + random.below(1000) as f32 / 1000.0).collect();
    let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    Matrix { rows: 1, cols: D, bytes, values: values.into_iter().map(f64::from).collect() }
}

/// Tensors by name, with the number of their type in the file.
type Model = Vec<(String, u32, Matrix)>;

fn model(format: Blocks, kind: u32) -> Model {
    let mut random = Random::new(7 + u64::from(kind));
    let mut out: Model = vec![];
    for i in 0..LAYERS {
        let mut norm = |out: &mut Model, name: &str| {
            let m = plain(&mut random);
            out.push((format!("blk.{i}.{name}.weight"), 0, m));
        };
        norm(&mut out, "attn_norm");
        norm(&mut out, "ffn_norm");
        for (name, rows) in [
            ("attn_q", H * C),
            ("attn_k", G * C),
            ("attn_v", G * C),
            ("attn_output", D),
            ("ffn_gate", D),
            ("ffn_up", D),
            ("ffn_down", D),
        ] {
            let m = quantised(&mut random, format, rows, D);
            out.push((format!("blk.{i}.{name}.weight"), kind, m));
        }
    }
    let embed = quantised(&mut random, format, V, D);
    out.push(("token_embd.weight".into(), kind, embed));
    let norm = plain(&mut random);
    out.push(("output_norm.weight".into(), 0, norm));
    out
}

fn file(model: &Model) -> Vec<u8> {
    let mut out = b"GGUF\x03\0\0\0".to_vec();
    let text = |out: &mut Vec<u8>, t: &str| {
        out.extend((t.len() as u64).to_le_bytes());
        out.extend(t.as_bytes());
    };
    out.extend((model.len() as u64).to_le_bytes());
    out.extend(1u64.to_le_bytes());
    text(&mut out, "llama.attention.head_count_kv");
    out.extend(4u32.to_le_bytes());
    out.extend((G as u32).to_le_bytes());
    let mut offset = 0u64;
    for (name, kind, m) in model {
        text(&mut out, name);
        let dims: &[usize] = if *kind == 0 { &[m.cols] } else { &[m.cols, m.rows] };
        out.extend((dims.len() as u32).to_le_bytes());
        dims.iter().for_each(|d| out.extend((*d as u64).to_le_bytes()));
        out.extend(kind.to_le_bytes());
        out.extend(offset.to_le_bytes());
        offset = (offset + m.bytes.len() as u64).next_multiple_of(32);
    }
    for (_, _, m) in model {
        out.resize(out.len().next_multiple_of(32), 0);
        out.extend(&m.bytes);
    }
    out
}

fn find<'m>(model: &'m Model, name: &str) -> &'m Matrix {
    model.iter().find(|t| t.0 == name).map(|t| &t.2).unwrap_or_else(|| panic!("{name}"))
}

fn times(w: &Matrix, x: &[f64]) -> Vec<f64> {
    w.values.chunks_exact(w.cols).map(|row| row.iter().zip(x).map(|(a, b)| a * b).sum()).collect()
}

fn normed(x: &[f64], w: &Matrix) -> Vec<f64> {
    let mean = x.iter().map(|v| v * v).sum::<f64>() / x.len() as f64;
    x.iter().zip(&w.values).map(|(v, w)| v / (mean + EPS).sqrt() * w).collect()
}

/// Neighbouring pairs of every head turned by the position.
fn turned(x: &mut [f64], at: usize) {
    for head in x.chunks_exact_mut(C) {
        for i in 0..C / 2 {
            let (sin, cos) = (at as f64 * BASE.powf(-2.0 * i as f64 / C as f64)).sin_cos();
            let (a, b) = (head[2 * i], head[2 * i + 1]);
            (head[2 * i], head[2 * i + 1]) = (a * cos - b * sin, b * cos + a * sin);
        }
    }
}

/// The logits behind every token.
fn logits(model: &Model) -> Vec<Vec<f64>> {
    let embed = find(model, "token_embd.weight");
    let mut past: Vec<Vec<(Vec<f64>, Vec<f64>)>> = vec![vec![]; LAYERS];
    let mut out = vec![];
    for (at, id) in IDS.into_iter().enumerate() {
        let mut x = embed.values[id * D..(id + 1) * D].to_vec();
        for (i, past) in past.iter_mut().enumerate() {
            let w = |name: &str| find(model, &format!("blk.{i}.{name}.weight"));
            let y = normed(&x, w("attn_norm"));
            let (mut q, mut k, v) = (times(w("attn_q"), &y), times(w("attn_k"), &y), times(w("attn_v"), &y));
            turned(&mut q, at);
            turned(&mut k, at);
            past.push((k, v));
            let mut mixed = vec![];
            for h in 0..H {
                let part = h / (H / G) * C..h / (H / G) * C + C;
                let query = &q[h * C..(h + 1) * C];
                let score = |k: &[f64]| k.iter().zip(query).map(|(a, b)| a * b).sum::<f64>() / (C as f64).sqrt();
                let weights: Vec<f64> = past.iter().map(|(k, _)| score(&k[part.clone()]).exp()).collect();
                let sum: f64 = weights.iter().sum();
                let one =
                    |c: usize| past.iter().zip(&weights).map(|((_, v), w)| v[part.start + c] * w / sum).sum::<f64>();
                mixed.extend((0..C).map(one));
            }
            x.iter_mut().zip(times(w("attn_output"), &mixed)).for_each(|(x, y)| *x += y);
            let y = normed(&x, w("ffn_norm"));
            let gate = times(w("ffn_gate"), &y).into_iter().zip(times(w("ffn_up"), &y));
            let y: Vec<f64> = gate.map(|(g, u)| g / (1.0 + (-g).exp()) * u).collect();
            x.iter_mut().zip(times(w("ffn_down"), &y)).for_each(|(x, y)| *x += y);
        }
        out.push(times(embed, &normed(&x, find(model, "output_norm.weight"))));
    }
    out
}

fn program(format: Blocks) -> String {
    let (b, z) = (D / format.elems(), format.bytes());
    let k = G * C;
    let matrix = |name: &str, rows: usize| {
        format!("    {name}: Tensor[{rows}, {b}, {z}, u8] = file[f\"blk.{{i}}.{name}.weight\"]\n")
    };
    let mut text = String::from("import llama\nfile = io.read_gguf(\"model.gguf\")\nlayers = []\n");
    text += &format!("for i in range({LAYERS}):\n");
    for name in ["attn_norm", "ffn_norm"] {
        text += &format!("    {name}: Tensor[{D}, f32] = file[f\"blk.{{i}}.{name}.weight\"]\n");
    }
    for (name, rows) in [
        ("attn_q", H * C),
        ("attn_k", k),
        ("attn_v", k),
        ("attn_output", D),
        ("ffn_gate", D),
        ("ffn_up", D),
        ("ffn_down", D),
    ] {
        text += &matrix(name, rows);
    }
    text += "    layers.append(llama.Layer(attn_norm, attn_q, attn_k, attn_v, attn_output, ffn_norm, ffn_gate, ffn_up, ffn_down))\n";
    text += &format!("embed: Tensor[{V}, {b}, {z}, u8] = file[\"token_embd.weight\"]\n");
    text += &format!("norm: Tensor[{D}, f32] = file[\"output_norm.weight\"]\n");
    text += "groups = int(io.read_gguf_meta(\"model.gguf\")[\"llama.attention.head_count_kv\"])\n";
    text += &format!("m = llama.Llama(layers, embed, norm, groups, {BASE:?}, {EPS:?})\ncaches = llama.empty(m, 5)\n");
    text += &format!("ids = {IDS:?}\nlogits, caches = llama.step(m, caches, op.array(ids[:{AT_ONCE}]), 0)\n");
    text += "for x in logits:\n    print(x)\n";
    text +=
        &format!("for pos in range({AT_ONCE}, len(ids)):\n    if pos == 5:\n        caches = llama.grown(caches)\n");
    text += "    logits, caches = llama.step(m, caches, op.array([ids[pos]]), pos)\n    for x in logits:\n        print(x)\n";
    text
}

#[test]
fn a_small_decoder_in_every_format_gives_the_logits_of_the_reference() {
    let kinds = [2, 3, 6, 7, 8, 12, 13, 14];
    for (format, kind) in Blocks::ALL.into_iter().zip(kinds) {
        let model = model(format, kind);
        let dir = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
        let put =
            |name: &str, bytes: &[u8]| std::fs::write(dir.path().join(name), bytes).unwrap_or_else(|e| panic!("{e}"));
        let llama = std::fs::read(root().join("examples/llama.tsr")).unwrap_or_else(|e| panic!("{e}"));
        put("llama.tsr", &llama);
        put("model.gguf", &file(&model));
        put("main.tsr", program(format).as_bytes());
        let r = run_in(dir.path(), &["run", "main.tsr"], "").unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(r.code, 0, "{}{}", r.out, r.err);
        let got: Vec<f64> = r.out.lines().filter_map(|l| l.parse().ok()).collect();
        let want: Vec<f64> = logits(&model)[AT_ONCE - 1..].concat();
        let scale = want.iter().fold(0.0f64, |m, v| m.max(v.abs()));
        assert!(got.len() == want.len() && scale > 0.1, "{} {}: {}", got.len(), want.len(), r.out);
        let worst = got.iter().zip(&want).map(|(g, w)| (g - w).abs() / scale).fold(0.0, f64::max);
        assert!(worst < 2e-5, "{format:?}: off by {worst}");
    }
}
