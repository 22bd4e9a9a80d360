//! Products of matrices.

use super::{Row, row};
use crate::node::{No, Node};
use crate::value::{Value, literal};
use tessera_base::DType;

pub const ROWS: &[Row] = &[
    row("MatMul", |n| {
        let (a, b) = (n.tensor(0)?, n.tensor(1)?);
        let text = format!("{} @ {}", a.text, b.text);
        n.give(&like(&text, a.dtype), product_rank(a.rank, b.rank)?, a.dtype)
    }),
    // An added matrix of the first versions broadcasts as later ones do.
    row("Gemm", gemm).honours(&["alpha", "beta", "transA", "transB"]).ignores(&["broadcast"]),
    row("Einsum", einsum).honours(&["equation"]),
    row("Det", |n| {
        let x = n.tensor(0)?;
        let rank = x.rank.checked_sub(2).ok_or("its argument is no matrix")?;
        let call = n.library(&format!("det({})", x.text));
        n.give(&call, rank, x.dtype)
    }),
    row("MatMulInteger", |n| {
        let (a, b) = (n.tensor(0)?, n.tensor(1)?);
        let mut wide = |i: usize, text: String, rank: usize, zero: usize| -> Result<String, No> {
            let text = format!("{text}.to(i32)");
            let Some(zero) = n.optional(zero)? else { return Ok(text) };
            // A zero point for each row of the first matrix, or for each column of the second.
            let zero_text = match (zero.rank, i) {
                (1, 0) if rank > 1 => format!("op.expand_dims({}, -1)", zero.text),
                _ => zero.text,
            };
            Ok(format!("({text} - {zero_text}.to(i32))"))
        };
        let left = wide(0, a.text, a.rank, 2)?;
        let right = wide(1, b.text, b.rank, 3)?;
        n.give(&format!("({left} @ {right}).to(i32)"), product_rank(a.rank, b.rank)?, DType::I32)
    }),
];

/// A sum of products with the dtype of its factors: those of narrow ints are wide.
pub fn like(text: &str, dtype: DType) -> String {
    if dtype.is_int() && dtype != DType::I64 { format!("({text}).to({dtype})") } else { text.to_owned() }
}

pub fn product_rank(a: usize, b: usize) -> Result<usize, No> {
    match (a, b) {
        (0, _) | (_, 0) => Err("it multiplies a number".into()),
        (1, 1) => Ok(0),
        (1, r) | (r, 1) => Ok(r - 1),
        (a, b) => Ok(a.max(b)),
    }
}

fn gemm(n: &mut Node) -> Result<(), No> {
    let (a, b) = (n.tensor(0)?, n.tensor(1)?);
    let turned = |text: &str, yes: i64| if yes != 0 { format!("{text}.T") } else { text.to_owned() };
    let product = format!("{} @ {}", turned(&a.text, n.int("transA", 0)), turned(&b.text, n.int("transB", 0)));
    let mut text = if a.dtype == DType::I32 { format!("({product}).to(i32)") } else { product };
    for name in ["alpha", "beta"] {
        if a.dtype.is_int() && n.float(name, 1.0).fract() != 0.0 {
            return n.refuses(name, &format!("it multiplies numbers of {}", a.dtype));
        }
    }
    // A factor of ints is one.
    let factor = |n: &Node, name: &str| match a.dtype.is_int() {
        true => format!("({})", n.float(name, 1.0)),
        false => n.literal(name, 1.0, a.dtype),
    };
    if n.float("alpha", 1.0) != 1.0 {
        text = format!("({text}) * {}", factor(n, "alpha"));
    }
    let beta = n.float("beta", 1.0);
    if n.has(2) && beta != 0.0 {
        let c = match n.value(2)?.number() {
            Some((x, ..)) => literal(x * beta, a.dtype),
            None if beta == 1.0 => n.tensor(2)?.text,
            None => format!("{} * {}", n.tensor(2)?.text, factor(n, "beta")),
        };
        text = format!("{text} + {c}");
    }
    n.give(&like(&text, a.dtype), 2, a.dtype)
}

fn einsum(n: &mut Node) -> Result<(), No> {
    let equation: String = n.text("equation", "").chars().filter(|c| !c.is_whitespace()).collect();
    if !equation.chars().all(|c| c.is_ascii_alphabetic() || ",.->".contains(c)) {
        return Err("its equation cannot be read".into());
    }
    let all = (0..n.node.inputs.len()).map(|i| n.tensor(i)).collect::<Result<Vec<_>, No>>()?;
    let Some(first) = all.first() else { return Err("it has no argument".into()) };
    let (ins, out) = match equation.split_once("->") {
        Some((ins, out)) => (ins, Some(out)),
        None => (&*equation, None),
    };
    let letters = |t: &str| t.bytes().filter(u8::is_ascii_alphabetic).count();
    // The dots stand for what the letters of an operand leave.
    let dots = ins.split(',').zip(&all).map(|(t, x)| x.rank.saturating_sub(letters(t))).max().unwrap_or(0);
    let rank = match out {
        Some(out) => letters(out) + if out.contains("...") { dots } else { 0 },
        None => {
            let once = |c: &u8| c.is_ascii_alphabetic() && ins.bytes().filter(|d| d == c).count() == 1;
            ins.bytes().filter(once).count() + if ins.contains("...") { dots } else { 0 }
        }
    };
    let texts: Vec<&str> = all.iter().map(|t| &*t.text).collect();
    // Products of narrow ints are wide.
    let same = if first.dtype.is_int() { format!(", out_dtype={}", first.dtype) } else { String::new() };
    let text = like(&format!("op.einsum(\"{equation}\", {}{same})", texts.join(", ")), first.dtype);
    let t = n.bound(&text, rank, first.dtype)?;
    n.result(0, Value::Tensor(t));
    Ok(())
}
