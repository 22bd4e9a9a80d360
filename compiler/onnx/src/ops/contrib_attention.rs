//! Attention of `com.microsoft`, as optimised transformers have it: their functions are in `std.onnx_attention`.

use super::attention::{heads, joined, split};
use super::{Row, row};
use crate::node::{No, Node};
use crate::value::{Tensor, Value, literal};
use tessera_base::DType;

pub const ROWS: &[Row] = &[
    row("com.microsoft.Attention", attention)
        .honours(&["mask_filter_value", "num_heads", "qkv_hidden_sizes", "scale", "unidirectional"])
        .refuses(&["do_rotary", "past_present_share_buffer", "rotary_embedding_dim"]),
    row("com.microsoft.MultiHeadAttention", multi_head).honours(&[
        "mask_filter_value",
        "num_heads",
        "scale",
        "unidirectional",
    ]),
    row("com.microsoft.RotaryEmbedding", rotary)
        .honours(&["interleaved", "num_heads", "rotary_embedding_dim"])
        .refuses(&["is_packed_batching", "scale"]),
    row("com.microsoft.GroupQueryAttention", grouped)
        .honours(&[
            "do_rotary",
            "kv_num_heads",
            "local_window_size",
            "num_heads",
            "rotary_interleaved",
            "scale",
            "smooth_softmax",
            "softcap",
        ])
        .refuses(&["k_quant_type", "kv_cache_bit_width", "qk_output", "v_quant_type"]),
];

/// What is added to scores: a bias, and a large negative number where a mask [B, T] is 0.
fn bias_of(n: &mut Node, mask: usize, bias: usize, dtype: DType) -> Result<String, No> {
    let bias = n.optional(bias)?.map(|b| b.text);
    let mask = match n.optional(mask)? {
        Some(t) if t.rank == 2 => {
            let far = n.literal("mask_filter_value", -10000.0, dtype);
            Some(format!("op.where({}[:, None, None, :] > 0, 0.0, {far}).to({dtype})", t.text))
        }
        Some(t) => return Err(format!("its mask has {} dims; one of [batch, keys] is supported", t.rank)),
        None => None,
    };
    Ok(match (mask, bias) {
        (Some(a), Some(b)) => format!(", mask={a} + {b}"),
        (Some(a), None) | (None, Some(a)) => format!(", mask={a}"),
        (None, None) => String::new(),
    })
}

/// The options that both kinds of attention have.
fn options(n: &Node) -> String {
    let mut out = String::new();
    if n.int("unidirectional", 0) != 0 {
        out.push_str(", causal=True");
    }
    if n.float("scale", 0.0) != 0.0 {
        out.push_str(&format!(", scale={}", n.literal("scale", 0.0, DType::F64)));
    }
    out
}

/// Attention with the product that makes queries, keys and values.
fn attention(n: &mut Node) -> Result<(), No> {
    if n.has(6) {
        return Err("a length of the past in a buffer is not supported".into());
    }
    let (x, w) = (n.tensor(0)?, n.tensor(1)?);
    let bias = n.optional(2)?.map_or(String::new(), |b| format!(" + {}", b.text));
    let all = n.bound(&format!("{} @ {}{bias}", x.text, w.text), 3, x.dtype)?;
    let sections = match n.list("qkv_hidden_sizes") {
        None => "3".to_owned(),
        Some(sizes) => match sizes.as_slice() {
            [q, k, _] if *q > 0 && *k > 0 => format!("[{q}, {}]", q.saturating_add(*k)),
            _ => return n.refuses("qkv_hidden_sizes", "they are three sizes"),
        },
    };
    let parts = n.bound(&format!("op.split({}, {sections}, axis=2)", all.text), 0, x.dtype)?.text;
    let mut args = vec![];
    for i in 0..3 {
        let part = n.bound(&format!("{parts}[{i}]"), 3, x.dtype)?;
        args.push(heads(n, &part, "num_heads")?.text);
    }
    let mut more = bias_of(n, 3, 5, x.dtype)?;
    if let Some(past) = n.optional(4)? {
        more.push_str(&format!(", past_key={0}[0], past_value={0}[1]", past.text));
    }
    more.push_str(&options(n));
    let call = n.library(&format!("attention({}{more})", args.join(", ")));
    let all = n.bound(&call, 0, x.dtype)?.text;
    if n.wants(1) {
        let present = n.bound(&format!("op.stack([{all}[1], {all}[2]])"), 5, x.dtype)?;
        n.result(1, Value::Tensor(present));
    }
    let y = n.bound(&format!("{all}[0]"), 4, x.dtype)?;
    n.give(&joined(&y.text), 3, x.dtype)
}

/// Queries, keys or values: an argument, or a part of one that holds several, [B, S, H, 3, D], or of keys and values
/// [B, S, H, 2, D].
fn part(n: &mut Node, given: &Tensor, i: usize) -> Result<Tensor, No> {
    let (from, at) = match (given.rank, i) {
        (5, _) => (given.clone(), i),
        (_, 1 | 2) if !n.has(2) => (n.tensor(1)?, i - 1),
        _ => return n.tensor(i),
    };
    if from.rank != 5 {
        return Err("it has no values".into());
    }
    n.bound(&format!("{}[:, :, :, {at}].transpose(0, 2, 1, 3)", from.text), 4, from.dtype)
}

/// Attention of queries, keys and values that are there.
fn multi_head(n: &mut Node) -> Result<(), No> {
    if n.has(8) || n.has(9) || n.wants(3) {
        return Err("a buffer of the past and scores as a result are not supported".into());
    }
    let given = n.tensor(0)?;
    let bias = n.optional(3)?;
    if bias.is_some() && given.rank == 5 {
        return Err("a bias of queries, keys and values in one argument is not supported".into());
    }
    let mut args = vec![];
    for i in 0..3 {
        let mut t = part(n, &given, i)?;
        if let (Some(bias), 3) = (&bias, t.rank) {
            // Its parts have the sizes of the three arguments, of which the first two are equal.
            let size = given.dim(2).text();
            let part =
                ["{b}[:{s}]", "{b}[{s}:2 * {s}]", "{b}[2 * {s}:]"][i].replace("{b}", &bias.text).replace("{s}", &size);
            t = n.bound(&format!("{} + {part}", t.text), 3, t.dtype)?;
        }
        args.push(heads(n, &t, "num_heads")?.text);
    }
    let mut more = bias_of(n, 4, 5, given.dtype)?;
    for (i, name) in [(6, "past_key"), (7, "past_value")] {
        if let Some(t) = n.optional(i)? {
            more.push_str(&format!(", {name}={}", t.text));
        }
    }
    more.push_str(&options(n));
    let call = n.library(&format!("attention({}{more})", args.join(", ")));
    let all = n.bound(&call, 0, given.dtype)?.text;
    let y = n.bound(&format!("{all}[0]"), 4, given.dtype)?;
    for i in [1, 2] {
        if n.wants(i) {
            let part = n.bound(&format!("{all}[{i}]"), 4, given.dtype)?;
            n.result(i, Value::Tensor(part));
        }
    }
    n.give(&joined(&y.text), 3, given.dtype)
}

fn rotary(n: &mut Node) -> Result<(), No> {
    let (x, mut at, cos, sin) = (n.tensor(0)?, n.tensor(1)?, n.tensor(2)?, n.tensor(3)?);
    let y = match (x.rank, n.int("num_heads", 0)) {
        // The tables say how wide a head is.
        (3, 0) => {
            let (b, s) = (x.dim(0).text(), x.dim(1).text());
            let text = format!("{}.reshape({b}, {s}, -1, 2 * {}).transpose(0, 2, 1, 3)", x.text, cos.dim(1).text());
            n.bound(&text, 4, x.dtype)?
        }
        (3, count) => split(n, &x, count)?,
        _ => x.clone(),
    };
    if at.rank == 1 {
        // One place, at which all sequences begin.
        let text = format!("(op.arange({0}.shape[2]) + {1}[0]).reshape(1, -1)", y.text, at.text);
        at = n.bound(&text, 2, DType::I64)?;
    }
    let size = n.int("rotary_embedding_dim", 0);
    let pairs = if n.int("interleaved", 0) != 0 { ", interleaved=True" } else { "" };
    let args = format!("{}, {}, {}, positions={}, size={size}{pairs}", y.text, cos.text, sin.text, at.text);
    let call = n.library(&format!("rotary({args})"));
    let y = n.bound(&call, 4, x.dtype)?;
    n.give(&if x.rank == 4 { y.text } else { joined(&y.text) }, x.rank, x.dtype)
}

/// Attention with fewer heads of keys and values, which a buffer of the past grows by.
fn grouped(n: &mut Node) -> Result<(), No> {
    if n.wants(3) {
        return Err("scores as a result are not supported".into());
    }
    let given = n.tensor(0)?;
    let (count, own) = (n.int("num_heads", 0), n.int("kv_num_heads", 0));
    if count < 1 || own < 1 || count % own != 0 {
        return n.refuses("kv_num_heads", &format!("{count} heads of queries are groups of those of keys"));
    }
    let dtype = given.dtype;
    if given.rank != 3 {
        return Err(format!("its queries have {} dims and not 3", given.rank));
    }
    let mut args = vec![];
    if n.has(1) != n.has(2) {
        return Err("it has keys or values alone".into());
    }
    if n.has(1) {
        for (i, count) in [count, own, own].into_iter().enumerate() {
            let t = n.tensor(i)?;
            if t.rank != 3 {
                return Err(format!("its argument {i} has {} dims and not 3", t.rank));
            }
            args.push(split(n, &t, count)?.text);
        }
    } else {
        // Queries, keys and values beside one another, as heads.
        let all = split(n, &given, count + 2 * own)?.text;
        let places = [(0, count), (count, count + own), (count + own, count + 2 * own)];
        for (start, end) in places {
            args.push(n.bound(&format!("{all}[:, {start}:{end}]"), 4, dtype)?.text);
        }
    }
    for i in [3, 4] {
        let past = match n.optional(i)? {
            Some(t) => t.text,
            None => {
                let text = format!("op.zeros(({b}.shape[0], {own}, 0, {b}.shape[3]), dtype={dtype})", b = args[1]);
                n.bound(&text, 4, dtype)?.text
            }
        };
        args.push(past);
    }
    args.push(n.tensor(5)?.text);
    args.push(n.size(6)?.text());
    let mut args = args.join(", ");
    if n.int("do_rotary", 0) != 0 {
        let (cos, sin) = (n.tensor(7)?, n.tensor(8)?);
        args.push_str(&format!(", cos={}, sin={}", cos.text, sin.text));
        if let Some(at) = n.optional(9)? {
            args.push_str(&format!(", positions={}", at.text));
        }
    }
    if let Some(bias) = n.optional(10)? {
        args.push_str(&format!(", bias={}", bias.text));
    }
    match (n.optional(11)?, n.int("smooth_softmax", -1)) {
        (Some(sink), _) => args.push_str(&format!(", sink={}", sink.text)),
        (None, 1) => args.push_str(&format!(", sink=op.zeros(({count},))")),
        _ => {}
    }
    if n.float("scale", 0.0) != 0.0 {
        args.push_str(&format!(", scale={}", n.literal("scale", 0.0, DType::F64)));
    }
    if n.float("softcap", 0.0) > 0.0 {
        args.push_str(&format!(", softcap={}", literal(n.float("softcap", 0.0), DType::F32)));
    }
    let window = n.int("local_window_size", -1);
    if window > 0 {
        args.push_str(&format!(", window={window}"));
    }
    if n.int("rotary_interleaved", 0) != 0 {
        args.push_str(", interleaved=True");
    }
    let call = n.library(&format!("grouped_attention({args})"));
    let all = n.bound(&call, 0, dtype)?.text;
    for i in [1, 2] {
        if n.wants(i) {
            let part = n.bound(&format!("{all}[{i}]"), 4, dtype)?;
            n.result(i, Value::Tensor(part));
        }
    }
    let y = n.bound(&format!("{all}[0]"), 4, dtype)?;
    n.give(&joined(&y.text), 3, dtype)
}
