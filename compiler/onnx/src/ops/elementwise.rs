//! Element by element.

use super::Row;
use crate::node::{No, Node, Operand};
use crate::value::{Int, Ints, Value, literal};
use tessera_base::DType;
use tessera_runtime::io::onnx;

pub const ROWS: &[Row] = &[
    ("Abs", |n| map(n, "op.abs(x)")),
    ("Neg", |n| map(n, "-x")),
    ("Exp", |n| map(n, "op.exp(x)")),
    ("Log", |n| map(n, "op.log(x)")),
    ("Sqrt", |n| map(n, "op.sqrt(x)")),
    ("Reciprocal", |n| map(n, "op.reciprocal(x)")),
    ("Floor", |n| map(n, "op.floor(x)")),
    ("Ceil", |n| map(n, "op.ceil(x)")),
    ("Round", |n| map(n, "op.round(x)")),
    ("Sin", |n| map(n, "op.sin(x)")),
    ("Cos", |n| map(n, "op.cos(x)")),
    ("Tan", |n| map(n, "op.tan(x)")),
    ("Asin", |n| map(n, "op.asin(x)")),
    ("Acos", |n| map(n, "op.acos(x)")),
    ("Atan", |n| map(n, "op.atan(x)")),
    ("Sinh", |n| map(n, "op.sinh(x)")),
    ("Cosh", |n| map(n, "op.cosh(x)")),
    ("Tanh", |n| map(n, "op.tanh(x)")),
    ("Sigmoid", |n| map(n, "op.sigmoid(x)")),
    ("Relu", |n| map(n, "op.relu(x)")),
    ("Erf", |n| map(n, "op.erf(x)")),
    ("Sign", |n| map(n, "op.sign(x)")),
    ("Softplus", |n| map(n, "op.softplus(x)")),
    ("Softsign", |n| map(n, "x / (1.0 + op.abs(x))")),
    ("Mish", |n| map(n, "x * op.tanh(op.softplus(x))")),
    ("HardSwish", |n| map(n, "x * op.clip(x / 6.0 + 0.5, 0.0, 1.0)")),
    ("BitwiseNot", |n| map(n, "op.bit_not(x)")),
    ("Not", not),
    ("IsNaN", |n| test(n, "op.isnan(x)")),
    ("IsInf", |n| {
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
    }),
    ("Identity", same),
    ("Dropout", dropout),
    ("Gelu", |n| {
        let approximate = if n.text("approximate", "none") == "tanh" { "tanh" } else { "none" };
        map(n, &format!("op.gelu(x, approximate=\"{approximate}\")"))
    }),
    ("Elu", |n| with_number(n, "alpha", 1.0, "op.elu(x, ALPHA)")),
    ("Celu", |n| with_number(n, "alpha", 1.0, "ALPHA * op.elu(x / ALPHA)")),
    ("LeakyRelu", |n| with_number(n, "alpha", 0.01, "op.leaky_relu(x, ALPHA)")),
    ("ThresholdedRelu", |n| with_number(n, "alpha", 1.0, "op.where(x > ALPHA, x, 0.0)")),
    ("Selu", |n| {
        let gamma = literal(n.float("gamma", 1.050_701), DType::F32);
        with_number(n, "alpha", 1.673_263_2, &format!("{gamma} * op.elu(x, ALPHA)"))
    }),
    ("HardSigmoid", |n| {
        let beta = literal(n.float("beta", 0.5), DType::F32);
        with_number(n, "alpha", 0.2, &format!("op.clip(x * ALPHA + {beta}, 0.0, 1.0)"))
    }),
    ("Clip", clip),
    ("Cast", cast),
    ("CastLike", cast_like),
    ("Add", |n| join(n, "x + y", Int::add)),
    ("Sub", |n| join(n, "x - y", Int::sub)),
    ("Mul", |n| join(n, "x * y", Int::mul)),
    ("Div", divide),
    ("Mod", remainder),
    ("Pow", power),
    ("PRelu", |n| {
        let [x, slope] = two(n)?;
        let (rank, d) = (x.rank.max(slope.rank), x.dtype);
        n.give(&format!("op.where({0} < 0.0, {0} * {1}, {0})", x.text, slope.text), rank, d)
    }),
    ("Max", |n| fold(n, "op.maximum(x, y)", Int::max)),
    ("Min", |n| fold(n, "op.minimum(x, y)", Int::min)),
    ("Sum", |n| fold(n, "x + y", Int::add)),
    ("Mean", mean),
    ("And", |n| decide(n, "op.logical_and(x, y)", |a, b| Some(a.known()? != 0 && b.known()? != 0))),
    ("Or", |n| decide(n, "op.logical_or(x, y)", |a, b| Some(a.known()? != 0 || b.known()? != 0))),
    ("Xor", |n| decide(n, "op.logical_xor(x, y)", |a, b| Some((a.known()? != 0) != (b.known()? != 0)))),
    ("Equal", |n| compare(n, "==", Int::equals)),
    ("Less", |n| compare(n, "<", |a, b| Some(a.known()? < b.known()?))),
    ("LessOrEqual", |n| compare(n, "<=", |a, b| Some(a.known()? <= b.known()?))),
    ("Greater", |n| compare(n, ">", |a, b| Some(a.known()? > b.known()?))),
    ("GreaterOrEqual", |n| compare(n, ">=", |a, b| Some(a.known()? >= b.known()?))),
    ("BitwiseAnd", |n| join(n, "op.bit_and(x, y)", |_, _| None)),
    ("BitwiseOr", |n| join(n, "op.bit_or(x, y)", |_, _| None)),
    ("BitwiseXor", |n| join(n, "op.bit_xor(x, y)", |_, _| None)),
    ("Where", choose),
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

fn test(n: &mut Node, template: &str) -> Result<(), No> {
    let x = n.tensor(0)?;
    n.give(&filled(template, &x.text, ""), x.rank, DType::Bool)
}

fn with_number(n: &mut Node, name: &str, otherwise: f32, template: &str) -> Result<(), No> {
    let number = literal(n.float(name, otherwise), DType::F32);
    map(n, &template.replace("ALPHA", &number))
}

/// The first result is the first argument.
pub fn same(n: &mut Node) -> Result<(), No> {
    let value = n.value(0)?;
    n.result(0, value);
    Ok(())
}

/// Nothing is dropped: models that are read are not in training.
fn dropout(n: &mut Node) -> Result<(), No> {
    if n.has(2) && n.known(2)?.first().is_some_and(|training| *training != 0) {
        return Err("it drops elements, as in training".into());
    }
    if n.wants(1) {
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
    let mut bound = |name: &str, i: usize| -> Result<String, No> {
        if let Some(onnx::Attribute::Float(v)) = n.attribute(name) {
            return Ok(literal(f64::from(*v), x.dtype));
        }
        if !n.has(i) {
            return Ok("None".into());
        }
        match n.value(i)?.number() {
            Some((v, ..)) => Ok(literal(v, x.dtype)),
            None => Ok(n.tensor(i)?.text),
        }
    };
    let (low, high) = (bound("min", 1)?, bound("max", 2)?);
    if (&*low, &*high) == ("None", "None") {
        return same(n);
    }
    n.give(&format!("op.clip({}, {low}, {high})", x.text), x.rank, x.dtype)
}

fn cast_to(n: &mut Node, to: DType) -> Result<(), No> {
    if matches!(n.value(0)?, Value::Matrix(..)) && to == DType::I64 {
        return same(n);
    }
    if let Some(ints) = n.value(0)?.ints() {
        let elems = match to {
            DType::I64 => Some(ints.elems.clone()),
            DType::I32 => ints
                .elems
                .iter()
                .all(|e| e.known().is_none_or(|k| i32::try_from(k).is_ok()))
                .then(|| ints.elems.clone()),
            DType::Bool => {
                let known = ints.elems.iter().map(|e| Some(Int::Known(i64::from(e.known()? != 0))));
                known.collect::<Option<Vec<_>>>()
            }
            _ => None,
        };
        if let Some(elems) = elems {
            return n.give_ints(Ints { elems, dtype: to, ..ints });
        }
    }
    let x = n.tensor(0)?;
    if x.dtype == to {
        return same(n);
    }
    n.give(&format!("{}.to({to})", x.text), x.rank, to)
}

fn cast(n: &mut Node) -> Result<(), No> {
    let to = onnx::dtype(n.int("to", 0))?;
    cast_to(n, to)
}

fn cast_like(n: &mut Node) -> Result<(), No> {
    let to = n.tensor(1)?.dtype;
    cast_to(n, to)
}

/// Two operands that broadcast.
fn two(n: &mut Node) -> Result<[Operand; 2], No> {
    n.operands()?.try_into().map_err(|all: Vec<Operand>| format!("it has {} arguments where two are needed", all.len()))
}

/// Both arguments as ints of one length, where they are such.
fn int_pairs(n: &Node) -> Result<Option<(Vec<(Int, Int)>, bool, DType)>, No> {
    let (Some(a), Some(b)) = (n.value(0)?.ints(), n.value(1)?.ints()) else { return Ok(None) };
    let count = match (a.elems.len(), b.elems.len()) {
        (x, y) if x == y => x,
        (1, y) => y,
        (x, 1) => x,
        _ => return Err("the sizes of its arguments differ".into()),
    };
    let pick = |v: &Ints, i: usize| v.elems.get(i).or(v.elems.first()).cloned();
    let pairs = (0..count).filter_map(|i| Some((pick(&a, i)?, pick(&b, i)?))).collect();
    Ok(Some((pairs, a.scalar && b.scalar, a.dtype)))
}

/// Ints joined one by one; `None` where the arguments are tensors or a pair cannot be joined.
fn joined_ints(n: &Node, f: impl Fn(&Int, &Int) -> Option<Int>) -> Result<Option<Ints>, No> {
    let Some((pairs, scalar, dtype)) = int_pairs(n)? else { return Ok(None) };
    let elems = pairs.iter().map(|(a, b)| f(a, b)).collect::<Option<Vec<_>>>();
    Ok(elems.map(|elems| Ints { elems, scalar, dtype }))
}

fn join(n: &mut Node, template: &str, ints: fn(&Int, &Int) -> Option<Int>) -> Result<(), No> {
    if let Some(ints) = joined_ints(n, ints)? {
        return n.give_ints(ints);
    }
    let [x, y] = two(n)?;
    n.give(&filled(template, &x.text, &y.text), x.rank.max(y.rank), x.dtype)
}

/// Comparisons and logic.
fn decide(n: &mut Node, template: &str, ints: fn(&Int, &Int) -> Option<bool>) -> Result<(), No> {
    if let Some(ints) = joined_ints(n, |a, b| ints(a, b).map(|t| Int::Known(i64::from(t))))? {
        return n.give_ints(Ints { dtype: DType::Bool, ..ints });
    }
    let [x, y] = two(n)?;
    n.give(&filled(template, &x.text, &y.text), x.rank.max(y.rank), DType::Bool)
}

/// Comparisons: of sizes they are decided when sizes are.
fn compare(n: &mut Node, sign: &str, ints: fn(&Int, &Int) -> Option<bool>) -> Result<(), No> {
    let decided = |a: &Int, b: &Int| match ints(a, b) {
        Some(yes) => Some(Int::Known(i64::from(yes))),
        None => Some(a.compared(sign, b)),
    };
    if let Some(ints) = joined_ints(n, decided)? {
        return n.give_ints(Ints { dtype: DType::Bool, ..ints });
    }
    decide(n, &format!("x {sign} y"), ints)
}

fn divide(n: &mut Node) -> Result<(), No> {
    if let Some(ints) = joined_ints(n, Int::div)? {
        return n.give_ints(ints);
    }
    let [x, y] = two(n)?;
    let (a, b) = (&x.text, &y.text);
    let text = match x.dtype {
        DType::U8 => format!("op.floor_div({a}, {b})"),
        // Towards zero.
        d if d.is_int() => {
            format!("op.where(({a} < 0) == ({b} < 0), op.abs({a}) // op.abs({b}), -(op.abs({a}) // op.abs({b})))")
        }
        _ => format!("{a} / {b}"),
    };
    n.give(&text, x.rank.max(y.rank), x.dtype)
}

fn remainder(n: &mut Node) -> Result<(), No> {
    if n.int("fmod", 0) == 0
        && let Some(ints) = joined_ints(n, Int::rem)?
    {
        return n.give_ints(ints);
    }
    let fmod = n.int("fmod", 0) != 0;
    let [x, y] = two(n)?;
    let (a, b) = (&x.text, &y.text);
    let text = match fmod && x.dtype.is_float() {
        true => format!("{a} - op.trunc({a} / {b}) * {b}"),
        false if fmod && x.dtype != DType::U8 => return Err("`fmod=1` of ints is not supported".into()),
        false => format!("op.mod({a}, {b})"),
    };
    n.give(&text, x.rank.max(y.rank), x.dtype)
}

fn power(n: &mut Node) -> Result<(), No> {
    let [x, y] = two(n)?;
    let exponent =
        if x.dtype == y.dtype || is_literal(&y.text) { y.text } else { format!("{}.to({})", y.text, x.dtype) };
    n.give(&format!("{} ** {exponent}", x.text), x.rank.max(y.rank), x.dtype)
}

fn is_literal(text: &str) -> bool {
    text.trim_start_matches(['(', '-']).starts_with(|c: char| c.is_ascii_digit())
}

/// Any number of operands, from left to right.
fn fold(n: &mut Node, template: &str, ints: fn(&Int, &Int) -> Option<Int>) -> Result<(), No> {
    match n.node.inputs.len() {
        1 => return same(n),
        2 => return join(n, template, ints),
        _ => {}
    }
    let all = n.operands()?;
    let rank = all.iter().map(|o| o.rank).max().unwrap_or(0);
    let Some((first, rest)) = all.split_first() else { return Err("it has no argument".into()) };
    let mut text = first.text.clone();
    for o in rest {
        text = n.bound(&filled(template, &text, &o.text), rank, first.dtype)?.text;
    }
    n.give(&text, rank, first.dtype)
}

fn mean(n: &mut Node) -> Result<(), No> {
    let all = n.operands()?;
    let rank = all.iter().map(|o| o.rank).max().unwrap_or(0);
    let dtype = all.first().map_or(DType::F32, |o| o.dtype);
    let texts: Vec<String> = all.iter().map(|o| o.text.clone()).collect();
    n.give(&format!("({}) / {}.0", texts.join(" + "), texts.len()), rank, dtype)
}

fn choose(n: &mut Node) -> Result<(), No> {
    let (c, x, y) = (n.value(0)?, n.value(1)?, n.value(2)?);
    if let (Some(c), Some(x), Some(y)) = (c.ints(), x.ints(), y.ints())
        && let Some(known) = c.elems.iter().map(Int::known).collect::<Option<Vec<_>>>()
    {
        let count = known.len().max(x.elems.len()).max(y.elems.len());
        let fits = |n: usize| n == 1 || n == count;
        if fits(known.len()) && fits(x.elems.len()) && fits(y.elems.len()) {
            let pick = |v: &Ints, i: usize| v.elems.get(i).or(v.elems.first()).cloned();
            let chosen = |i: usize| {
                let c = known.get(i).or(known.first())?;
                if *c != 0 { pick(&x, i) } else { pick(&y, i) }
            };
            let elems = (0..count).filter_map(chosen).collect();
            let scalar = c.scalar && x.scalar && y.scalar;
            return n.give_ints(Ints { elems, scalar, dtype: x.dtype });
        }
    }
    let all = n.operands()?;
    let [c, x, y] = all.as_slice() else { return Err("it needs three arguments".into()) };
    let rank = c.rank.max(x.rank).max(y.rank);
    let text = format!("op.where({}, {}, {})", c.text, x.text, y.text);
    // Two literals have a dtype of their own.
    let text = if is_literal(&x.text) && is_literal(&y.text) { format!("{text}.to({})", x.dtype) } else { text };
    n.give(&text, rank, x.dtype)
}
