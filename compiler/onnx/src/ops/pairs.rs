//! Element by element, of two tensors and more.

use super::elementwise::{filled, same};
use super::{Row, row};
use crate::node::{No, Node, Operand, axes_text, axis_in};
use crate::value::{Int, Ints};
use tessera_base::DType;

/// How operands of the first versions broadcast.
const OLD: &[&str] = &["axis", "broadcast"];

pub const ROWS: &[Row] = &[
    row("Add", |n| join(n, "x + y", Int::add)).honours(OLD),
    row("Sub", |n| join(n, "x - y", Int::sub)).honours(OLD),
    row("Mul", |n| join(n, "x * y", Int::mul)).honours(OLD),
    row("Div", divide).honours(OLD),
    row("Mod", remainder).honours(&["fmod"]),
    row("Pow", power).honours(OLD),
    row("PRelu", slope),
    row("Max", |n| fold(n, "op.maximum(x, y)", Int::max)),
    row("Min", |n| fold(n, "op.minimum(x, y)", Int::min)),
    row("Sum", |n| fold(n, "x + y", Int::add)),
    row("Mean", mean),
    row("And", |n| decide(n, "op.logical_and(x, y)", |a, b| Some(a.known()? != 0 && b.known()? != 0))).honours(OLD),
    row("Or", |n| decide(n, "op.logical_or(x, y)", |a, b| Some(a.known()? != 0 || b.known()? != 0))).honours(OLD),
    row("Xor", |n| decide(n, "op.logical_xor(x, y)", |a, b| Some((a.known()? != 0) != (b.known()? != 0)))).honours(OLD),
    row("Equal", |n| compare(n, "==", Int::equals)).honours(OLD),
    row("Less", |n| compare(n, "<", |a, b| Some(a.known()? < b.known()?))).honours(OLD),
    row("LessOrEqual", |n| compare(n, "<=", |a, b| Some(a.known()? <= b.known()?))),
    row("Greater", |n| compare(n, ">", |a, b| Some(a.known()? > b.known()?))).honours(OLD),
    row("GreaterOrEqual", |n| compare(n, ">=", |a, b| Some(a.known()? >= b.known()?))),
    row("BitwiseAnd", |n| join(n, "op.bit_and(x, y)", |_, _| None)),
    row("BitwiseOr", |n| join(n, "op.bit_or(x, y)", |_, _| None)),
    row("BitwiseXor", |n| join(n, "op.bit_xor(x, y)", |_, _| None)),
    row("BitShift", |n| {
        let name = if n.text("direction", "") == "LEFT" { "shl" } else { "shr" };
        join(n, &format!("op.{name}(x, y)"), |_, _| None)
    })
    .honours(&["direction"]),
    row("SwiGLU", |n| {
        let (a, b) = (n.tensor(0)?, n.tensor(1)?);
        let alpha = n.literal("alpha", 1.0, a.dtype);
        n.give(&format!("{0} * op.sigmoid({alpha} * {0}) * {1}", a.text, b.text), a.rank, a.dtype)
    })
    .honours(&["alpha"]),
    row("Where", choose),
];

/// Two operands that broadcast.
fn two(n: &mut Node) -> Result<[Operand; 2], No> {
    let all = n.operands()?;
    let [x, mut y]: [Operand; 2] =
        all.try_into().map_err(|all: Vec<Operand>| format!("it has {} arguments where two are needed", all.len()))?;
    if n.schema.attribute("broadcast").is_none() || y.weak {
        return Ok([x, y]);
    }
    // Before version 7 the second one stands anywhere in the dims of the first, and only if that is said.
    if n.int("broadcast", 0) == 0 {
        if x.rank != y.rank {
            return n.refuses("broadcast", &format!("its arguments have {} and {} dims", x.rank, y.rank));
        }
        if n.attribute("axis").is_some() {
            return n.refuses("axis", "without `broadcast` it says nothing");
        }
        return Ok([x, y]);
    }
    if n.attribute("axis").is_some() {
        let axis = axis_in(n.int("axis", 0), x.rank)?;
        let Some(behind) = x.rank.checked_sub(axis + y.rank) else {
            return n.refuses("axis", &format!("its arguments have {} and {} dims", x.rank, y.rank));
        };
        if behind > 0 && y.rank > 0 {
            let axes: Vec<usize> = (y.rank..y.rank + behind).collect();
            let text = format!("op.expand_dims({}, {})", y.text, axes_text(&axes));
            y = Operand { text: n.bound(&text, y.rank + behind, y.dtype)?.text, rank: y.rank + behind, ..y };
        }
    }
    Ok([x, y])
}

/// Both arguments as ints of one length, where they are such.
fn int_pairs(n: &Node) -> Result<Option<(Vec<(Int, Int)>, bool, DType)>, No> {
    let (Some(a), Some(b)) = (n.value(0)?.numbers(), n.value(1)?.numbers()) else { return Ok(None) };
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
    // What wraps around is left to tensors, which do.
    let fits = |e: &Int| dtype != DType::I32 || e.known().is_none_or(|k| i32::try_from(k).is_ok());
    let held = |e: Int| if e.is_float() { e.as_float(dtype) } else { e };
    let elems = elems.filter(|all| all.iter().all(fits)).map(|all| all.into_iter().map(held).collect());
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

/// The operand as a tensor: a number is one of its dtype.
fn as_tensor(o: &Operand) -> String {
    if o.weak { format!("op.full((), {}, dtype={})", o.text, o.dtype) } else { o.text.clone() }
}

fn divide(n: &mut Node) -> Result<(), No> {
    if let Some(ints) = joined_ints(n, Int::div)? {
        return n.give_ints(ints);
    }
    let [x, y] = two(n)?;
    let text = match x.dtype {
        // Towards zero.
        d if d.is_int() => n.library(&format!("divide({}, {})", as_tensor(&x), as_tensor(&y))),
        _ => format!("{} / {}", x.text, y.text),
    };
    n.give(&text, x.rank.max(y.rank), x.dtype)
}

fn remainder(n: &mut Node) -> Result<(), No> {
    let truncates = match n.int("fmod", 0) {
        0 => false,
        1 => true,
        _ => return n.refuses("fmod", "it is 0 or 1"),
    };
    if !truncates && let Some(ints) = joined_ints(n, Int::rem)? {
        return n.give_ints(ints);
    }
    let [x, y] = two(n)?;
    let (a, b) = (as_tensor(&x), as_tensor(&y));
    let text = if truncates {
        n.library(&format!("{}({a}, {b})", if x.dtype.is_float() { "fmod" } else { "remainder" }))
    } else {
        format!("op.mod({a}, {b})")
    };
    n.give(&text, x.rank.max(y.rank), x.dtype)
}

/// The result has the dtype of the base.
fn power(n: &mut Node) -> Result<(), No> {
    let known = |a: &Int, b: &Int| match a {
        Int::Real(a) => b.real().map(|b| Int::Real(a.powf(b))),
        _ => None,
    };
    if let Some(numbers) = joined_ints(n, known)? {
        return n.give_ints(numbers);
    }
    let [x, y] = two(n)?;
    let (base, exponent, d) = (as_tensor(&x), as_tensor(&y), x.dtype);
    if d.is_int() && y.dtype.is_int() && !matches!(y.dtype, DType::U8 | DType::Bool) && !natural(&y) {
        return signed_power(n, &x, &y);
    }
    let text = match (d.is_float(), y.dtype.is_float()) {
        _ if d == y.dtype => format!("{} ** {}", x.text, y.text),
        // In the wider one, and without its fraction where the base is an int.
        (false, true) => format!("({base}.to(f64) ** {exponent}.to(f64)).to({d})"),
        (true, true) if y.dtype.bytes() > d.bytes() => format!("({base}.to({}) ** {exponent}).to({d})", y.dtype),
        (false, false) if y.dtype.bytes() > d.bytes() => format!("({base}.to({}) ** {exponent}).to({d})", y.dtype),
        (true, false) if y.weak => format!("{} ** {}", x.text, y.text),
        _ => format!("{base} ** {exponent}.to({d})"),
    };
    n.give(&text, x.rank.max(y.rank), d)
}

/// A number that is written down and not negative.
fn natural(o: &Operand) -> bool {
    o.weak && o.text.parse::<i64>().is_ok_and(|k| k >= 0)
}

/// Ints to powers that may be negative: then only 1 and -1 have an int, the power by the parity of the exponent.
fn signed_power(n: &mut Node, x: &Operand, y: &Operand) -> Result<(), No> {
    let rank = x.rank.max(y.rank);
    let wide = if y.dtype.bytes() > x.dtype.bytes() { y.dtype } else { x.dtype };
    let to = |o: &Operand| {
        if o.dtype == wide { as_tensor(o) } else { format!("{}.to({wide})", as_tensor(o)) }
    };
    let (base, exponent) = (n.bound(&to(x), x.rank, wide)?.text, n.bound(&to(y), y.rank, wide)?.text);
    let parity = n.bound(&format!("op.where({exponent} < 0, op.mod({exponent}, 2), {exponent})"), y.rank, wide)?.text;
    let one = format!("op.logical_or({base} == 1, {base} == -1)");
    let power = format!("op.where(op.logical_or({exponent} >= 0, {one}), {base} ** {parity}, 0)");
    n.give(&if x.dtype == wide { power } else { format!("({power}).to({})", x.dtype) }, rank, x.dtype)
}

fn slope(n: &mut Node) -> Result<(), No> {
    let [x, mut slope] = two(n)?;
    // Before version 7 one for each channel, which are dim 1.
    if n.body.opset < 7 && slope.rank == 1 && x.rank > 2 && !slope.weak {
        let text = format!("{}.reshape(-1{})", slope.text, ", 1".repeat(x.rank - 2));
        slope = Operand { text: n.bound(&text, x.rank - 1, slope.dtype)?.text, rank: x.rank - 1, ..slope };
    }
    let text = format!("op.where({0} < 0, {0} * {1}, {0})", as_tensor(&x), slope.text);
    n.give(&text, x.rank.max(slope.rank), x.dtype)
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
    let text = if x.weak && y.weak { format!("{text}.to({})", x.dtype) } else { text };
    n.give(&text, rank, x.dtype)
}
