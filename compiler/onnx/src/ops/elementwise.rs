//! Element by element, of one tensor.

use super::{Row, row};
use crate::node::{No, Node};
use crate::value::{Int, Ints, Tensor, Value, literal};
use tessera_base::DType;
use tessera_runtime::io::onnx::{self, Held};

pub const ROWS: &[Row] = &[
    row("Abs", |n| map(n, "op.abs(x)")),
    row("Neg", |n| of_numbers(n, "-x", "-", |x| -x)),
    row("Exp", |n| map(n, "op.exp(x)")),
    row("Log", |n| map(n, "op.log(x)")),
    row("Sqrt", |n| of_numbers(n, "op.sqrt(x)", "math.sqrt", f64::sqrt)),
    row("Reciprocal", |n| of_numbers(n, "op.reciprocal(x)", "1.0 / ", |x| 1.0 / x)),
    row("Floor", |n| of_numbers(n, "op.floor(x)", "math.floor", f64::floor)),
    row("Ceil", |n| of_numbers(n, "op.ceil(x)", "math.ceil", f64::ceil)),
    row("Round", |n| of_numbers(n, "op.round(x)", "round", f64::round_ties_even)),
    row("Sin", |n| map(n, "op.sin(x)")),
    row("Cos", |n| map(n, "op.cos(x)")),
    row("Tan", |n| map(n, "op.tan(x)")),
    row("Asin", |n| map(n, "op.asin(x)")),
    row("Acos", |n| map(n, "op.acos(x)")),
    row("Atan", |n| map(n, "op.atan(x)")),
    row("Sinh", |n| map(n, "op.sinh(x)")),
    row("Cosh", |n| map(n, "op.cosh(x)")),
    row("Asinh", |n| map(n, "op.asinh(x)")),
    row("Acosh", |n| map(n, "op.acosh(x)")),
    row("Atanh", |n| map(n, "op.atanh(x)")),
    row("Tanh", |n| map(n, "op.tanh(x)")),
    row("Sigmoid", |n| map(n, "op.sigmoid(x)")),
    row("Relu", |n| map(n, "op.relu(x)")),
    row("Erf", |n| map(n, "op.erf(x)")),
    row("Sign", |n| map(n, "op.sign(x)")),
    row("Softplus", |n| map(n, "op.softplus(x)")),
    row("Softsign", |n| map(n, "x / (1.0 + op.abs(x))")),
    row("Mish", |n| map(n, "x * op.tanh(op.softplus(x))")),
    row("HardSwish", |n| map(n, "x * op.clip(x / 6.0 + 0.5, 0.0, 1.0)")),
    row("BitwiseNot", |n| map(n, "op.bit_not(x)")),
    row("Not", not),
    row("IsNaN", |n| test(n, "op.isnan(x)")),
    row("IsInf", |n| {
        let (up, down) = (n.int("detect_positive", 1) != 0, n.int("detect_negative", 1) != 0);
        test(
            n,
            match (up, down) {
                (true, true) => "op.isinf(x)",
                (true, false) => "x == math.inf",
                (false, true) => "x == -math.inf",
                (false, false) => "op.zeros_like(x, dtype=bool)",
            },
        )
    })
    .honours(&["detect_positive", "detect_negative"]),
    row("Identity", same),
    // What is not dropped is not scaled, and no random number is drawn.
    row("Dropout", dropout).honours(&["is_test"]).ignores(&["ratio", "seed"]),
    row("Gelu", |n| {
        let approximate = if n.text("approximate", "none") == "tanh" { "tanh" } else { "none" };
        map(n, &format!("op.gelu(x, approximate=\"{approximate}\")"))
    })
    .honours(&["approximate"]),
    row("Elu", |n| with_numbers(n, "op.elu(x, ALPHA)")).honours(&["alpha"]),
    row("Celu", |n| with_numbers(n, "op.maximum(x, 0.0) + op.minimum(ALPHA * op.expm1(x / ALPHA), 0.0)"))
        .honours(&["alpha"]),
    row("LeakyRelu", |n| with_numbers(n, "op.leaky_relu(x, ALPHA)")).honours(&["alpha"]),
    row("ThresholdedRelu", |n| with_numbers(n, "op.where(x > ALPHA, x, 0.0)")).honours(&["alpha"]),
    row("Selu", |n| with_numbers(n, "GAMMA * op.elu(x, ALPHA)")).honours(&["alpha", "gamma"]),
    row("Swish", |n| with_numbers(n, "x * op.sigmoid(ALPHA * x)")).honours(&["alpha"]),
    row("Shrink", shrink).honours(&["bias", "lambd"]),
    row("HardSigmoid", |n| with_numbers(n, "op.clip(x * ALPHA + BETA, 0.0, 1.0)")).honours(&["alpha", "beta"]),
    row("Clip", clip).honours(&["min", "max"]),
    // How scales of eight bits are rounded concerns a type that has no counterpart.
    row("Cast", cast).honours(&["to", "saturate"]).ignores(&["round_mode"]),
    row("CastLike", |n| {
        let like = n.tensor(1)?;
        match like.held {
            Held::Own => cast_to(n, like.dtype),
            held => held_to(n, held),
        }
    })
    .honours(&["saturate"])
    .ignores(&["round_mode"]),
];

/// The template with names in place of `x` and `y` where they stand alone.
pub fn filled(template: &str, x: &str, y: &str) -> String {
    let mut out = String::new();
    let chars: Vec<char> = template.chars().collect();
    let part = |c: Option<&char>| c.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '.'));
    for (i, c) in chars.iter().enumerate() {
        let alone = !part(i.checked_sub(1).and_then(|i| chars.get(i))) && !part(chars.get(i + 1));
        match c {
            'x' if alone => out.push_str(x),
            'y' if alone => out.push_str(y),
            c => out.push(*c),
        }
    }
    out
}

fn map(n: &mut Node, template: &str) -> Result<(), No> {
    let x = n.tensor(0)?;
    n.give(&filled(template, &x.text, ""), x.rank, x.dtype)
}

/// The same of floats that are computed while the file is translated, by a function of the host.
fn of_numbers(n: &mut Node, template: &str, name: &str, f: fn(f64) -> f64) -> Result<(), No> {
    match n.value(0)?.numbers() {
        Some(numbers) if numbers.dtype.is_float() => {
            let dtype = numbers.dtype;
            let elems = numbers.elems.iter().map(|e| match e.mapped(name, f) {
                Int::Float(text) => Int::Float(format!("({text})")),
                known => known.as_float(dtype),
            });
            let elems = elems.collect();
            n.give_ints(Ints { elems, ..numbers })
        }
        _ => map(n, template),
    }
}

fn test(n: &mut Node, template: &str) -> Result<(), No> {
    let x = n.tensor(0)?;
    n.give(&filled(template, &x.text, ""), x.rank, DType::Bool)
}

/// `ALPHA`, `BETA` and `GAMMA` are the attributes of these names.
fn with_numbers(n: &mut Node, template: &str) -> Result<(), No> {
    let dtype = n.tensor(0)?.dtype;
    let mut text = template.to_owned();
    for (mark, name) in [("ALPHA", "alpha"), ("BETA", "beta"), ("GAMMA", "gamma")] {
        if text.contains(mark) {
            text = text.replace(mark, &n.literal(name, 0.0, dtype));
        }
    }
    map(n, &text)
}

/// Nearer to 0 by `bias`, and 0 where it lies nearer than `lambd`. Ints are shifted by what is left of a bias without its
/// fraction.
fn shrink(n: &mut Node) -> Result<(), No> {
    let x = n.tensor(0)?;
    let own = if x.dtype.is_int() { format!("{}.to(f32)", x.text) } else { x.text.clone() };
    let inside = if x.dtype.is_int() { DType::F32 } else { x.dtype };
    let own = n.bound(&own, x.rank, inside)?.text;
    let (bias, bound) = (n.literal("bias", 0.0, inside), n.literal("lambd", 0.5, inside));
    let text = format!("op.where({own} < -{bound}, {own} + {bias}, op.where({own} > {bound}, {own} - {bias}, 0.0))");
    n.give(&if x.dtype.is_int() { format!("{text}.to({})", x.dtype) } else { text }, x.rank, x.dtype)
}

/// The first result is the first argument.
pub fn same(n: &mut Node) -> Result<(), No> {
    let value = n.value(0)?;
    n.result(0, value);
    Ok(())
}

/// Nothing is dropped: models that are read are not in training.
fn dropout(n: &mut Node) -> Result<(), No> {
    // The first versions train unless they are told not to.
    if n.schema.attribute("is_test").is_some() && n.int("is_test", 0) == 0 {
        return n.refuses("is_test", "elements are dropped, as in training");
    }
    if n.has(2) && n.known(2)?.first().is_some_and(|training| *training != 0) {
        return Err("it drops elements, as in training".into());
    }
    if n.wants(1) {
        if n.schema.since < 12 {
            return Err("before version 12 the mask of what is not dropped is not defined".into());
        }
        let x = n.tensor(0)?;
        let mask = n.bound(&format!("op.ones_like({}, dtype=bool)", x.text), x.rank, DType::Bool)?;
        n.result(1, Value::Tensor(mask));
    }
    same(n)
}

fn not(n: &mut Node) -> Result<(), No> {
    if let Some(mut ints) = n.value(0)?.ints()
        && let Some(known) = ints.elems.iter().map(Int::known).collect::<Option<Vec<_>>>()
    {
        ints.elems = known.into_iter().map(|b| Int::Known(i64::from(b == 0))).collect();
        return n.give_ints(ints);
    }
    test(n, "op.logical_not(x)")
}

fn clip(n: &mut Node) -> Result<(), No> {
    let x = n.tensor(0)?;
    // Without a bound the largest finite number is one, and what is infinite is clipped to it: so says the
    // standard since version 6. To ints, and to what is too narrow for the bounds of version 6, that is nothing.
    let largest = match x.dtype {
        DType::F32 => Some(f64::from(f32::MAX)),
        DType::F64 => Some(f64::MAX),
        DType::F16 => Some(65504.0),
        DType::Bf16 => Some(f64::from_bits(0x47ef_e000_0000_0000)),
        _ => None,
    };
    let mut bound = |name: &str, i: usize, sign: f64| -> Result<String, No> {
        if n.attribute(name).is_some() {
            return Ok(n.literal(name, 0.0, x.dtype));
        }
        if !n.has(i) {
            let finite = largest.filter(|_| n.schema.since >= 6);
            return Ok(finite.map_or("None".into(), |x_max| literal(sign * x_max, x.dtype)));
        }
        match n.value(i)?.number() {
            Some((v, ..)) => Ok(literal(v, x.dtype)),
            None => Ok(n.tensor(i)?.text),
        }
    };
    let (low, high) = (bound("min", 1, -1.0)?, bound("max", 2, 1.0)?);
    if (&*low, &*high) == ("None", "None") {
        return same(n);
    }
    n.give(&format!("op.clip({}, {low}, {high})", x.text), x.rank, x.dtype)
}

fn cast_to(n: &mut Node, to: DType) -> Result<(), No> {
    if matches!(n.value(0)?, Value::Matrix(..)) && to == DType::I64 {
        return same(n);
    }
    if let Some(ints) = n.value(0)?.numbers() {
        let whole = || ints.elems.iter().map(Int::truncated).collect::<Vec<_>>();
        let elems = match to {
            DType::I64 => Some(whole()),
            DType::I32 => {
                Some(whole()).filter(|all| all.iter().all(|e| e.known().is_none_or(|k| i32::try_from(k).is_ok())))
            }
            DType::Bool => {
                let known = ints.elems.iter().map(|e| Some(Int::Known(i64::from(e.real()? != 0.0))));
                known.collect::<Option<Vec<_>>>()
            }
            // Sizes go through floats where something is scaled; an expression that is a bool is none.
            DType::F64 | DType::F32 | DType::F16 | DType::Bf16
                if ints.dtype != DType::Bool || ints.elems.iter().all(|e| e.known().is_some()) =>
            {
                Some(ints.elems.iter().map(|e| e.as_float(to)).collect())
            }
            _ => None,
        };
        if let Some(elems) = elems {
            return n.give_ints(Ints { elems, dtype: to, ..ints });
        }
    }
    let x = n.tensor(0)?;
    if x.held == Held::U64 && to.is_float() {
        return Err("its elements are uint64, which stand here as i64: how large they are is not told".into());
    }
    if x.dtype == to && x.held == Held::Own {
        return same(n);
    }
    let text = narrowed(n, &x.text, x.dtype, to)?;
    n.give(&text, x.rank, to)
}

/// An expression with another dtype. What is too large for eight bits is their largest number, or with `saturate=0`
/// none.
pub fn narrowed(n: &Node, text: &str, from: DType, to: DType) -> Result<String, No> {
    let eight = |d| matches!(d, DType::F8E4M3 | DType::F8E5M2);
    if n.int("saturate", 1) != 0 || !eight(to) || (eight(from) && from == to) {
        return Ok(format!("{text}.to({to})"));
    }
    match (to, from.is_float() && !eight(from)) {
        // From here on the next number would be nearer than 448, the largest.
        (DType::F8E4M3, true) => Ok(format!("op.where(op.abs({text}) > 464.0, math.nan, {text}).to({to})")),
        _ => n.refuses("saturate", &format!("{to} of what may be too large for it is supported with 1 only")),
    }
}

/// Converts to elements that stand in a wider dtype: of what is too large the low bits, as with the standard's ints.
fn held_to(n: &mut Node, held: Held) -> Result<(), No> {
    let x = n.tensor(0)?;
    let dtype = held.dtype().unwrap_or(DType::I64);
    if x.held == Held::U64 && held == Held::U64 {
        return same(n);
    }
    let whole = format!("{}.to(i64)", x.text);
    let t = n.bound(&format!("{}.to({dtype})", crate::held::cut(&whole, held)), x.rank, dtype)?;
    n.result(0, Value::Tensor(Tensor { held, known: x.known, ..t }));
    Ok(())
}

fn cast(n: &mut Node) -> Result<(), No> {
    let held = Held::of(n.int("to", 0));
    if held != Held::Own {
        return held_to(n, held);
    }
    let to = match n.attribute("to") {
        // In version 1 by its name.
        Some(onnx::Attribute::Text(_)) => onnx::dtype_named(&n.text("to", "")),
        _ => onnx::dtype(n.int("to", 0)),
    };
    cast_to(n, to.map_err(|why| format!("its attribute `to`: {why}"))?)
}
