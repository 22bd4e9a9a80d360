//! Operators of `com.microsoft` that optimised transformers and quantised files have.

use super::norm::trailing;
use super::quantized::{Rows, narrow, placed_scale, shifted};
use super::windows::{CONVOLVED_AND_ACTIVATED, convolution};
use super::{Row, row};
use crate::node::{No, Node};
use crate::value::{Tensor, Value, literal};
use tessera_base::DType;

pub const ROWS: &[Row] = &[
    row("com.microsoft.Gelu", |n| gelu(n, "none")),
    row("com.microsoft.FastGelu", |n| gelu(n, "tanh")),
    row("com.microsoft.BiasGelu", |n| gelu(n, "none")),
    row("com.microsoft.QuickGelu", |n| {
        let x = n.tensor(0)?;
        let alpha = n.literal("alpha", 1.702, x.dtype);
        n.give(&format!("{0} * op.sigmoid({alpha} * {0})", x.text), x.rank, x.dtype)
    })
    .honours(&["alpha"]),
    row("com.microsoft.BiasAdd", |n| {
        let (x, bias, skip) = (n.tensor(0)?, n.tensor(1)?, n.tensor(2)?);
        n.give(&format!("{} + {} + {}", x.text, bias.text, skip.text), x.rank, x.dtype)
    }),
    row("com.microsoft.FusedMatMul", |n| {
        let (a, b) = (n.tensor(0)?, n.tensor(1)?);
        let turned = |t: &Tensor, yes: i64| match yes != 0 && t.rank > 1 {
            true => format!("op.swapaxes({}, -1, -2)", t.text),
            false => t.text.clone(),
        };
        let product = format!("{} @ {}", turned(&a, n.int("transA", 0)), turned(&b, n.int("transB", 0)));
        let text = match n.float("alpha", 1.0) {
            1.0 => product,
            _ => format!("({product}) * {}", n.literal("alpha", 1.0, a.dtype)),
        };
        n.give(&text, super::product::product_rank(a.rank, b.rank)?, a.dtype)
    })
    .honours(&["alpha", "transA", "transB"])
    .refuses(&["transBatchA", "transBatchB"]),
    row("com.microsoft.FusedConv", fused_conv).honours(CONVOLVED_AND_ACTIVATED),
    row("com.microsoft.SkipLayerNormalization", |n| skip(n, true)).honours(&["epsilon"]),
    row("com.microsoft.SkipSimplifiedLayerNormalization", |n| skip(n, false)).honours(&["epsilon"]),
    row("SimplifiedLayerNormalization", |n| {
        n.only_one_result()?;
        trailing(n, "rms_norm")
    })
    .honours(&["axis", "epsilon"])
    .refuses(&["stash_type"]),
    row("com.microsoft.EmbedLayerNormalization", embed).honours(&["epsilon"]).refuses(&["mask_index_type"]),
    row("com.microsoft.MatMulNBits", |n| {
        let (a, q, scales) = (n.tensor(0)?, n.tensor(1)?, n.tensor(2)?);
        if n.has(4) {
            return Err("its argument 4 orders groups, which is not supported".into());
        }
        let bits = n.int("bits", 4);
        if bits != 4 && bits != 8 {
            return n.refuses("bits", "4 and 8 are supported");
        }
        let zeros = n.optional(3)?.map_or("None".to_owned(), |z| z.text);
        let call = n.library(&format!("unpacked({}, {}, {zeros}, {bits}, {})", q.text, scales.text, n.int("K", 0)));
        let w = n.bound(&call, 2, scales.dtype)?;
        let bias = n.optional(5)?.map_or(String::new(), |b| format!(" + {}", b.text));
        n.give(&format!("{} @ {}.T{bias}", a.text, w.text), a.rank, a.dtype)
    })
    // What blocks are long, weights say too; how precise a product is is not asked to be less.
    .honours(&["K", "bits"])
    .ignores(&["N", "accuracy_level", "block_size"])
    .refuses(&["weight_prepacked"]),
    row("com.microsoft.QLinearAdd", |n| two(n, "+")),
    row("com.microsoft.QLinearMul", |n| two(n, "*")),
    row("com.microsoft.QLinearSigmoid", |n| one(n, |x, _| Ok(format!("op.sigmoid({x})")))),
    row("com.microsoft.QLinearLeakyRelu", |n| {
        one(n, |x, n| Ok(format!("op.leaky_relu({x}, {})", n.literal("alpha", 0.01, DType::F32))))
    })
    .honours(&["alpha"]),
    row("com.microsoft.QLinearGlobalAveragePool", |n| {
        let rank = n.tensor(0)?.rank;
        let axes: Vec<usize> = (2..rank).collect();
        one(n, move |x, _| Ok(format!("op.mean({x}, axis={}, keepdims=True)", crate::node::axes_text(&axes))))
    })
    .refuses(&["channels_last"]),
    row("com.microsoft.QLinearSoftmax", |n| {
        let x = n.tensor(0)?;
        let axis = x.axis(n.int("axis", -1))?;
        if n.int("opset", 13) < 13 && axis + 1 != x.rank {
            return n.refuses("opset", "before version 13 it is the last dim that is supported");
        }
        one(n, move |x, _| Ok(format!("op.softmax({x}, axis={axis})")))
    })
    .honours(&["axis", "opset"]),
    row("com.microsoft.QLinearConcat", joined_bytes).honours(&["axis"]),
    row("com.microsoft.MatMulIntegerToFloat", |n| {
        let (a, b) = (shifted(n, 0, 4, Rows::First)?, shifted(n, 1, 5, Rows::Last)?);
        let scales = format!("({} * {})", placed_scale(n, 2, &a, Rows::First)?, placed_scale(n, 3, &b, Rows::Last)?);
        floats(n, &a, &b, &scales, 6)
    }),
    row("com.microsoft.DynamicQuantizeMatMul", |n| {
        let a = n.tensor(0)?;
        let [q, scale, zero] = super::quantized::bytes_of(n, &a)?;
        let wide = n.bound(&format!("({}.to(i32) - {}.to(i32))", q.text, zero.text), a.rank, DType::I32)?;
        let b = shifted(n, 1, 3, Rows::Last)?;
        let scales = format!("({} * {})", scale.text, placed_scale(n, 2, &b, Rows::Last)?);
        floats(n, &wide, &b, &scales, 4)
    }),
    row("com.microsoft.DequantizeLinear", super::quantized::dequantize).honours(&["axis"]),
    row("com.microsoft.QuantizeLinear", super::quantized::quantize).honours(&["axis"]),
];

/// Of the first argument, with the second one added.
fn gelu(n: &mut Node, approximate: &str) -> Result<(), No> {
    let x = n.tensor(0)?;
    let own = match n.optional(1)? {
        Some(bias) => format!("{} + {}", x.text, bias.text),
        None => x.text.clone(),
    };
    n.give(&format!("op.gelu({own}, approximate=\"{approximate}\")"), x.rank, x.dtype)
}

fn fused_conv(n: &mut Node) -> Result<(), No> {
    let (x, w) = (n.tensor(0)?, n.tensor(1)?);
    let bias = n.optional(2)?.map_or(String::new(), |b| format!(", bias={}", b.text));
    let mut text = convolution(n, &x, &w, &bias)?;
    if let Some(z) = n.optional(3)? {
        text = format!("{text} + {}", z.text);
    }
    let y = n.bound(&text, x.rank, x.dtype)?.text;
    let numbers: Vec<String> = n.floats("activation_params").iter().map(|p| literal(f64::from(*p), x.dtype)).collect();
    let text = match (&*n.text("activation", ""), numbers.as_slice()) {
        ("", _) => y,
        ("Relu", _) => format!("op.relu({y})"),
        ("Tanh", _) => format!("op.tanh({y})"),
        ("Sigmoid", _) => format!("op.sigmoid({y})"),
        ("LeakyRelu", [alpha]) => format!("op.leaky_relu({y}, {alpha})"),
        ("Clip", [low, high]) => format!("op.clip({y}, {low}, {high})"),
        ("HardSigmoid", [alpha, beta]) => format!("op.clip({y} * {alpha} + {beta}, 0.0, 1.0)"),
        _ => return n.refuses("activation", "it is not known, or has not as many parameters"),
    };
    n.give(&text, x.rank, x.dtype)
}

/// A norm of a sum, which is a result too.
fn skip(n: &mut Node, centred: bool) -> Result<(), No> {
    if n.wants(1) || n.wants(2) {
        return Err("its mean and its spread are not supported".into());
    }
    let (x, skip, scale) = (n.tensor(0)?, n.tensor(1)?, n.tensor(2)?);
    let mut sum = format!("{} + {}", x.text, skip.text);
    let (beta, bias) = if centred { (n.optional(3)?, n.optional(4)?) } else { (None, n.optional(3)?) };
    if let Some(bias) = bias {
        sum.push_str(&format!(" + {}", bias.text));
    }
    let sum = n.bound(&sum, x.rank, x.dtype)?;
    n.result(3, Value::Tensor(sum.clone()));
    let eps = n.literal("epsilon", 1e-12, DType::F32);
    let size = x.dim(x.rank.saturating_sub(1)).text();
    let beta = beta.map_or(String::new(), |b| format!(", bias={}", b.text));
    let name = if centred { "layer_norm" } else { "rms_norm" };
    n.give(&format!("op.{name}({}, ({size},), weight={}{beta}, eps={eps})", sum.text, scale.text), x.rank, x.dtype)
}

/// The sum of the embeddings of words, places and segments, and its norm.
fn embed(n: &mut Node) -> Result<(), No> {
    let (ids, words, places) = (n.tensor(0)?, n.tensor(2)?, n.tensor(3)?);
    let mut sum = format!("op.take({}, {}, axis=0)", words.text, ids.text);
    match n.optional(8)? {
        Some(own) => sum.push_str(&format!(" + op.take({}, {}, axis=0)", places.text, own.text)),
        None => sum.push_str(&format!(" + {}[:{}]", places.text, ids.dim(1).text())),
    }
    if let (Some(at), Some(segments)) = (n.optional(1)?, n.optional(4)?) {
        sum.push_str(&format!(" + op.take({}, {}, axis=0)", segments.text, at.text));
    }
    let sum = n.bound(&sum, 3, words.dtype)?;
    let (gamma, beta) = (n.tensor(5)?, n.tensor(6)?);
    let eps = n.literal("epsilon", 1e-12, DType::F32);
    let norm = format!(
        "op.layer_norm({}, ({},), weight={}, bias={}, eps={eps})",
        sum.text,
        words.dim(1).text(),
        gamma.text,
        beta.text
    );
    if n.wants(1) {
        let count = match n.optional(7)? {
            Some(mask) => format!("op.sum({}, axis=1).to(i32)", mask.text),
            None => format!("op.zeros(({},), dtype=i32)", ids.dim(0).text()),
        };
        let count = n.bound(&count, 1, DType::I32)?;
        n.result(1, Value::Tensor(count));
    }
    n.result(2, Value::Tensor(sum));
    n.give(&norm, 3, words.dtype)
}

/// Narrow ints as floats.
fn wide(n: &mut Node, i: usize) -> Result<Tensor, No> {
    let x = shifted(n, i, i + 2, Rows::First)?;
    let scale = n.tensor(i + 1)?;
    n.bound(&format!("{}.to(f32) * {}", x.text, scale.text), x.rank, DType::F32)
}

/// Floats as narrow ints, by the scale and the zero point from this argument on.
fn back(n: &mut Node, text: &str, rank: usize, at: usize) -> Result<(), No> {
    let scale = n.tensor(at)?;
    let late = n.node.op == "QLinearAdd";
    narrow(n, &format!("({text}) / {}", scale.text), rank, at + 1, late)
}

fn two(n: &mut Node, sign: &str) -> Result<(), No> {
    let (a, b) = (wide(n, 0)?, wide(n, 3)?);
    back(n, &format!("{} {sign} {}", a.text, b.text), a.rank.max(b.rank), 6)
}

fn one(n: &mut Node, f: impl Fn(&str, &Node) -> Result<String, No>) -> Result<(), No> {
    let x = wide(n, 0)?;
    let text = f(&x.text, n)?;
    back(n, &text, x.rank, 3)
}

fn joined_bytes(n: &mut Node) -> Result<(), No> {
    let mut parts = vec![];
    let mut rank = 0;
    for i in (2..n.node.inputs.len()).step_by(3) {
        let x = wide(n, i)?;
        rank = x.rank;
        parts.push(x.text);
    }
    let axis = crate::node::axis_in(n.int("axis", 0), rank)?;
    back(n, &format!("op.concat([{}], axis={axis})", parts.join(", ")), rank, 0)
}

/// A product of ints as floats, with what is added to it.
fn floats(n: &mut Node, a: &Tensor, b: &Tensor, scales: &str, bias: usize) -> Result<(), No> {
    let rank = super::product::product_rank(a.rank, b.rank)?;
    let bias = n.optional(bias)?.map_or(String::new(), |b| format!(" + {}", b.text));
    n.give(&format!("({} @ {}).to(f32) * {scales}{bias}", a.text, b.text), rank, DType::F32)
}
