//! Attention and the embeddings of positions in it: their functions are in `std.onnx`.

use super::{Row, row};
use crate::node::{No, Node};
use crate::value::{Tensor, Value, literal};
use tessera_base::DType;

pub const ROWS: &[Row] = &[
    // Scores are computed in f32 at least, which is as precise as any that can be asked for.
    row("Attention", attention)
        .honours(&[
            "is_causal",
            "kv_num_heads",
            "left_window_size",
            "q_num_heads",
            "qk_matmul_output_mode",
            "right_window_size",
            "scale",
            "softcap",
        ])
        .ignores(&["softmax_precision"]),
    row("RotaryEmbedding", |n| {
        let x = n.tensor(0)?;
        let y = heads(n, &x, "num_heads")?;
        let (cos, sin) = (n.tensor(1)?, n.tensor(2)?);
        let positions = n.optional(3)?.map_or(String::new(), |p| format!(", positions={}", p.text));
        let size = n.int("rotary_embedding_dim", 0);
        let pairs = if n.int("interleaved", 0) != 0 { ", interleaved=True" } else { "" };
        let call = n.library(&format!("rotary({}, {}, {}{positions}, size={size}{pairs})", y.text, cos.text, sin.text));
        let y = n.bound(&call, 4, x.dtype)?;
        let text = if x.rank == 4 { y.text } else { joined(&y.text) };
        n.give(&text, x.rank, x.dtype)
    })
    .honours(&["interleaved", "num_heads", "rotary_embedding_dim"]),
    row("LinearAttention", linear)
        .honours(&["kv_num_heads", "q_num_heads", "scale", "update_rule"])
        // How many places are computed at once.
        .ignores(&["chunk_size"]),
    row("CausalConvWithState", causal_conv).honours(&["activation"]),
];

/// Attention by a state that is carried from place to place.
fn linear(n: &mut Node) -> Result<(), No> {
    let rule = n.text("update_rule", "gated_delta");
    let (gated, delta) = (rule.starts_with("gated"), rule.ends_with("delta"));
    for (i, name, needed) in [(4, "decay", gated), (5, "beta", delta)] {
        if n.has(i) != needed {
            return n.refuses("update_rule", &format!("its `{name}` is {}", if needed { "missing" } else { "there" }));
        }
    }
    let mut args = vec![];
    let mut dtypes = vec![];
    for (i, name) in [(0, "q_num_heads"), (1, "kv_num_heads"), (2, "kv_num_heads")] {
        let t = n.tensor(i)?;
        if t.rank != 3 {
            return Err(format!("its argument {i} has {} dims and not 3", t.rank));
        }
        dtypes.push(t.dtype);
        args.push(heads(n, &t, name)?.text);
    }
    let mut state = dtypes[0];
    if let Some(past) = n.optional(3)? {
        state = past.dtype;
        args.push(format!("past={}", past.text));
    }
    if let Some(t) = n.optional(4)? {
        args.push(format!("decay={}", heads(n, &t, "kv_num_heads")?.text));
    }
    if let Some(t) = n.optional(5)? {
        args.push(format!("beta=op.expand_dims(op.swapaxes({}, 1, 2), -1)", t.text));
    }
    if delta {
        args.push("delta=True".into());
    }
    if n.float("scale", 0.0) != 0.0 {
        args.push(format!("scale={}", n.literal("scale", 0.0, DType::F64)));
    }
    let call = n.library(&format!("linear_attention({})", args.join(", ")));
    let all = n.bound(&call, 0, dtypes[0])?.text;
    if n.wants(1) {
        let last = n.bound(&format!("{all}[1]"), 4, state)?;
        n.result(1, Value::Tensor(last));
    }
    let y = n.bound(&format!("{all}[0]"), 4, dtypes[0])?;
    n.give(&joined(&y.text), 3, dtypes[0])
}

/// A convolution of each channel with what came before, of which the last places are kept for the next call.
fn causal_conv(n: &mut Node) -> Result<(), No> {
    let (x, w) = (n.tensor(0)?, n.tensor(1)?);
    if [x.rank, w.rank] != [3, 3] {
        return Err(format!("its arguments have {} and {} dims and not 3", x.rank, w.rank));
    }
    let (channels, more) = (x.dim(1).text(), format!("{} - 1", w.dim(2).text()));
    let past = match n.optional(3)? {
        Some(t) => t.text,
        None => format!("op.zeros(({}, {channels}, {more}), dtype={})", x.dim(0).text(), x.dtype),
    };
    let all = n.bound(&format!("op.concat([{past}, {}], axis=2)", x.text), 3, x.dtype)?.text;
    if n.wants(1) {
        let last = n.bound(&format!("{all}[:, :, {}:]", x.dim(2).text()), 3, x.dtype)?;
        n.result(1, Value::Tensor(last));
    }
    let bias = n.optional(2)?.map_or(String::new(), |b| format!(", bias={}", b.text));
    let text = format!("op.conv1d({all}, {}{bias}, groups={channels})", w.text);
    let y = n.bound(&text, 3, x.dtype)?.text;
    let text = if n.text("activation", "none") == "none" { y } else { format!("op.silu({y})") };
    n.give(&text, 3, x.dtype)
}

/// [B, S, H * D] as [B, H, S, D]; what has four dims stays as it is.
pub fn heads(n: &mut Node, x: &Tensor, name: &str) -> Result<Tensor, No> {
    match x.rank {
        4 => return Ok(x.clone()),
        3 => {}
        rank => return Err(format!("its argument has {rank} dims and not 3 or 4")),
    }
    let count = n.int(name, 0);
    if count < 1 {
        return n.refuses(name, "its arguments have three dims, of which the last is one of heads");
    }
    split(n, x, count)
}

/// The last of three dims as so many heads, which stand before the positions.
pub fn split(n: &mut Node, x: &Tensor, count: i64) -> Result<Tensor, No> {
    let (b, s) = (x.dim(0).text(), x.dim(1).text());
    n.bound(&format!("{}.reshape({b}, {s}, {count}, -1).transpose(0, 2, 1, 3)", x.text), 4, x.dtype)
}

/// The heads [B, H, S, D] of a tensor beside one another: [B, S, H * D].
pub fn joined(text: &str) -> String {
    format!("{text}.transpose(0, 2, 1, 3).reshape({text}.shape[0], {text}.shape[2], -1)")
}

fn attention(n: &mut Node) -> Result<(), No> {
    let given = n.tensor(0)?;
    let q = heads(n, &given, "q_num_heads")?;
    let mut args = q.text;
    for i in [1, 2] {
        let t = n.tensor(i)?;
        args.push_str(&format!(", {}", heads(n, &t, "kv_num_heads")?.text));
    }
    for (i, name) in [(3, "mask"), (4, "past_key"), (5, "past_value"), (6, "lengths")] {
        if let Some(t) = n.optional(i)? {
            args.push_str(&format!(", {name}={}", t.text));
        }
    }
    if n.int("is_causal", 0) != 0 {
        args.push_str(", causal=True");
    }
    // A factor of 0 is one that is left out.
    if n.float("scale", 0.0) != 0.0 {
        args.push_str(&format!(", scale={}", n.literal("scale", 0.0, DType::F64)));
    }
    if n.float("softcap", 0.0) > 0.0 {
        args.push_str(&format!(", softcap={}", literal(n.float("softcap", 0.0), DType::F32)));
    }
    for (name, word) in [("left_window_size", "left"), ("right_window_size", "right")] {
        if n.int(name, -1) >= 0 {
            args.push_str(&format!(", {word}={}", n.int(name, -1)));
        }
    }
    let shown = n.int("qk_matmul_output_mode", 0);
    if shown != 0 {
        args.push_str(&format!(", shown={shown}"));
    }
    let call = n.library(&format!("attention({args})"));
    let all = n.bound(&call, 0, given.dtype)?;
    let dtypes = [given.dtype, n.tensor(1)?.dtype, n.tensor(2)?.dtype, given.dtype];
    for (i, dtype) in dtypes.into_iter().enumerate().filter(|(i, _)| n.wants(*i)).collect::<Vec<_>>() {
        let part = n.bound(&format!("{}[{i}]", all.text), 4, dtype)?;
        let part = match i == 0 && given.rank == 3 {
            true => n.bound(&joined(&part.text), 3, given.dtype)?,
            false => part,
        };
        n.result(i, Value::Tensor(part));
    }
    Ok(())
}
