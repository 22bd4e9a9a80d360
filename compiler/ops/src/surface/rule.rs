//! Pieces that typing rules share: reading arguments, axes and sizes, with their errors.
//!
//! `i` is always the position of the parameter, which is what an error blames.

mod broadcast;
mod dtypes;
mod sizes;

pub use broadcast::{Part, broadcast, broadcast_all, broadcast_to};
pub use dtypes::{as_float, join, join_tensors, operand_dtype, weak_dtype};
pub use sizes::{
    counted, extent, greatest, least, mismatch, product, require, require_natural, require_reach, room, same_shape,
    steps,
};

use super::{OpError, OpTypes, SymArg, Weak};
use tessera_base::{Code, DType, Size, TensorType};

pub type Inferred = Result<OpTypes, OpError>;

/// A single result. The dtype is open where an operand's is.
pub fn one(shape: Vec<Size>, dtype: Option<DType>) -> Inferred {
    Ok(OpTypes::One(typed(shape, dtype)))
}

pub fn typed(shape: Vec<Size>, dtype: Option<DType>) -> TensorType {
    TensorType { shape, dtype, sharding: std::default::Default::default() }
}

/// An argument in words.
pub fn describe(arg: Option<&SymArg>) -> String {
    match arg {
        None => "missing".into(),
        Some(SymArg::None) => "None".into(),
        Some(SymArg::Tensor(t)) => t.to_string(),
        Some(SymArg::Tensors(ts)) => format!("a list of {} tensors", ts.len()),
        Some(SymArg::Weak(Weak::Bool) | SymArg::Bool(_)) => "a bool".into(),
        Some(SymArg::Weak(Weak::Int)) => "an int".into(),
        Some(SymArg::Int(n)) => format!("the int {n}"),
        Some(SymArg::Weak(Weak::Float) | SymArg::Float(_)) => "a float".into(),
        Some(SymArg::Ints(ns)) => format!("the tuple {}", tuple(ns)),
        Some(SymArg::DType(d)) => format!("the dtype {d}"),
        Some(SymArg::Str(s)) => format!("the string \"{s}\""),
        Some(SymArg::Nested { .. }) => "a nested list".into(),
    }
}

/// `(2, N)` or `(2,)`.
pub fn tuple<T: ToString>(items: &[T]) -> String {
    let texts: Vec<String> = items.iter().map(T::to_string).collect();
    if texts.len() == 1 { format!("({},)", texts[0]) } else { format!("({})", texts.join(", ")) }
}

fn wanted(args: &[SymArg], i: usize, what: &str) -> OpError {
    let got = describe(args.get(i));
    OpError::new(Code::E0204, format!("{what} is needed here, and this is {got}")).arg(i, got)
}

fn not_static(i: usize, what: &str) -> OpError {
    OpError::new(Code::E0213, format!("{what} must be known when the program is compiled"))
        .arg(i, "only known at run time")
}

pub fn absent(args: &[SymArg], i: usize) -> bool {
    matches!(args.get(i), None | Some(SymArg::None))
}

pub fn tensor(args: &[SymArg], i: usize) -> Result<&TensorType, OpError> {
    match args.get(i) {
        Some(SymArg::Tensor(t)) => Ok(t),
        Some(SymArg::Weak(_) | SymArg::Int(_) | SymArg::Float(_) | SymArg::Nested { .. }) => {
            Err(wanted(args, i, "a tensor").help("make a tensor of it: `op.array(…)`"))
        }
        _ => Err(wanted(args, i, "a tensor")),
    }
}

pub fn optional_tensor(args: &[SymArg], i: usize) -> Result<Option<&TensorType>, OpError> {
    if absent(args, i) { Ok(None) } else { tensor(args, i).map(Some) }
}

/// A list of at least one tensor.
pub fn tensors(args: &[SymArg], i: usize) -> Result<&[TensorType], OpError> {
    match args.get(i) {
        Some(SymArg::Tensors(ts)) if !ts.is_empty() => Ok(ts),
        Some(SymArg::Tensors(_)) => {
            Err(OpError::new(Code::E0204, "a list of at least one tensor is needed here").arg(i, "an empty list"))
        }
        Some(SymArg::Tensor(t)) => Err(wanted(args, i, "a list of tensors")
            .help(format!("put the tensors in a list: `[x, y]`; a list of this one alone is `[x]` ({t})"))),
        _ => Err(wanted(args, i, "a list of tensors")),
    }
}

/// A tensor, or a Python scalar that takes the other operands' element type.
#[derive(Clone, Copy, Debug)]
pub enum Operand<'a> {
    Tensor(&'a TensorType),
    Weak(Weak),
}

impl Operand<'_> {
    pub fn shape(&self) -> &[Size] {
        match self {
            Operand::Tensor(t) => &t.shape,
            Operand::Weak(_) => &[],
        }
    }

    pub fn label(&self) -> String {
        match self {
            Operand::Tensor(t) => t.to_string(),
            Operand::Weak(Weak::Bool) => "bool".into(),
            Operand::Weak(Weak::Int) => "int".into(),
            Operand::Weak(Weak::Float) => "float".into(),
        }
    }
}

pub fn operand(args: &[SymArg], i: usize) -> Result<Operand<'_>, OpError> {
    Ok(match args.get(i) {
        Some(SymArg::Tensor(t)) => Operand::Tensor(t),
        Some(SymArg::Weak(w)) => Operand::Weak(*w),
        Some(SymArg::Int(_)) => Operand::Weak(Weak::Int),
        Some(SymArg::Float(_)) => Operand::Weak(Weak::Float),
        Some(SymArg::Bool(_)) => Operand::Weak(Weak::Bool),
        _ => return Err(wanted(args, i, "a tensor or a number")),
    })
}

/// A Python number or a tensor of rank 0.
pub fn number(args: &[SymArg], i: usize) -> Result<Operand<'_>, OpError> {
    let x = operand(args, i)?;
    if !x.shape().is_empty() {
        return Err(wanted(args, i, "a number"));
    }
    Ok(x)
}

/// Whether a float parameter got a number; its value is needed only at expansion.
pub fn float(args: &[SymArg], i: usize) -> Result<(), OpError> {
    match number(args, i)? {
        Operand::Weak(Weak::Bool) => Err(wanted(args, i, "a float")),
        _ => Ok(()),
    }
}

/// The constant of a size that the rule needs to know.
pub fn constant(size: &Size, i: usize, what: &str) -> Result<i64, OpError> {
    size.as_const().ok_or_else(|| not_static(i, what).note(format!("its value is `{size}`")))
}

pub fn int(args: &[SymArg], i: usize) -> Result<&Size, OpError> {
    match args.get(i) {
        Some(SymArg::Int(n)) => Ok(n),
        Some(SymArg::Weak(Weak::Int)) => Err(not_static(i, "this int")),
        _ => Err(wanted(args, i, "an int")),
    }
}

pub fn int_const(args: &[SymArg], i: usize, what: &str) -> Result<i64, OpError> {
    constant(int(args, i)?, i, what)
}

/// Ints; a single int counts as a tuple of one.
pub fn ints(args: &[SymArg], i: usize) -> Result<Vec<Size>, OpError> {
    match args.get(i) {
        Some(SymArg::Int(n)) => Ok(vec![n.clone()]),
        Some(SymArg::Ints(ns)) => Ok(ns.clone()),
        Some(SymArg::Weak(Weak::Int)) => Err(not_static(i, "this int")),
        _ => Err(wanted(args, i, "an int or a tuple of ints")),
    }
}

pub fn ints_const(args: &[SymArg], i: usize, what: &str) -> Result<Vec<i64>, OpError> {
    ints(args, i)?.iter().map(|n| constant(n, i, what)).collect()
}

/// A shape whose sizes are not negative.
pub fn shape(args: &[SymArg], i: usize) -> Result<Vec<Size>, OpError> {
    let sizes = ints(args, i)?;
    match sizes.iter().find(|s| s.as_const().is_some_and(|n| n < 0)) {
        Some(s) => Err(negative(s, i)),
        None => Ok(sizes),
    }
}

pub fn negative(size: &Size, i: usize) -> OpError {
    OpError::new(Code::E0711, format!("a size cannot be negative, and this one is {size}")).arg(i, format!("{size}"))
}

pub fn flag(args: &[SymArg], i: usize) -> Result<bool, OpError> {
    match args.get(i) {
        None | Some(SymArg::None) => Ok(false),
        Some(SymArg::Bool(Some(b))) => Ok(*b),
        Some(SymArg::Bool(None) | SymArg::Weak(Weak::Bool)) => Err(not_static(i, "this bool")),
        _ => Err(wanted(args, i, "a bool")),
    }
}

/// Whether a flag that does not change the type got a bool; its value is needed only at expansion.
pub fn late_flag(args: &[SymArg], i: usize) -> Result<(), OpError> {
    match args.get(i) {
        None | Some(SymArg::None | SymArg::Bool(_) | SymArg::Weak(Weak::Bool)) => Ok(()),
        _ => Err(wanted(args, i, "a bool")),
    }
}

pub fn text(args: &[SymArg], i: usize) -> Result<&str, OpError> {
    match args.get(i) {
        Some(SymArg::Str(s)) => Ok(s),
        _ => Err(wanted(args, i, "a string")),
    }
}

/// One of the words that a string parameter takes.
pub fn choice<'a>(args: &'a [SymArg], i: usize, words: &[&str]) -> Result<&'a str, OpError> {
    let word = text(args, i)?;
    if words.contains(&word) {
        return Ok(word);
    }
    let all = words.iter().map(|w| format!("\"{w}\"")).collect::<Vec<_>>().join(", ");
    let error = OpError::new(Code::E0204, format!("\"{word}\" is not one of {all}")).arg(i, "not known");
    Err(match tessera_base::near::nearest(word, words.iter().copied()) {
        Some(near) => error.help(format!("did you mean \"{near}\"?")),
        None => error,
    })
}

pub fn dtype(args: &[SymArg], i: usize) -> Result<Option<DType>, OpError> {
    match args.get(i) {
        None | Some(SymArg::None) => Ok(None),
        Some(SymArg::DType(d)) => Ok(Some(*d)),
        Some(SymArg::Str(s)) => DType::parse(s).map(Some).ok_or_else(|| {
            let names = DType::ALL.map(DType::name);
            let error = OpError::new(Code::E0214, format!("`{s}` is not a dtype")).arg(i, "not a dtype");
            match tessera_base::near::nearest(s, names) {
                Some(near) => error.help(format!("did you mean `{near}`?")),
                None => error.note(format!("dtypes are {}", names.join(", "))),
            }
        }),
        _ => Err(wanted(args, i, "a dtype")),
    }
}

/// Counts a negative axis from the end. `t` is the tensor at parameter 0 that the error shows.
pub fn normal_axis(axis: i64, rank: usize, i: usize, t: &TensorType) -> Result<usize, OpError> {
    let n = rank as i64;
    if (-n..n).contains(&axis) {
        return Ok(if axis < 0 { axis + n } else { axis } as usize);
    }
    let error = OpError::new(Code::E0207, format!("axis {axis} is out of range for a tensor of rank {}", t.rank()))
        .arg(0, t.to_string());
    Err(match rank {
        0 => error.arg(i, "a tensor of rank 0 has no axes"),
        1 => error.arg(i, "the axes are 0 and -1"),
        _ => error.arg(i, format!("the axes are {} to {}", -n, n - 1)),
    })
}

/// One axis of the tensor `t` at parameter 0.
pub fn axis(args: &[SymArg], i: usize, t: &TensorType) -> Result<usize, OpError> {
    normal_axis(int_const(args, i, "an axis")?, t.rank(), i, t)
}

/// The axes of a reduction, sorted; `None` means all.
pub fn axes(args: &[SymArg], i: usize, t: &TensorType) -> Result<Vec<usize>, OpError> {
    if absent(args, i) {
        return Ok((0..t.rank()).collect());
    }
    let mut out = vec![];
    for axis in ints_const(args, i, "an axis")? {
        let a = normal_axis(axis, t.rank(), i, t)?;
        if out.contains(&a) {
            return Err(OpError::new(Code::E0207, format!("axis {a} is named twice"))
                .arg(0, t.to_string())
                .arg(i, "here"));
        }
        out.push(a);
    }
    out.sort_unstable();
    Ok(out)
}

/// `shape` after a reduction over `axes`.
pub fn reduced(shape: &[Size], axes: &[usize], keep: bool) -> Vec<Size> {
    let mut out = vec![];
    for (i, s) in shape.iter().enumerate() {
        match (axes.contains(&i), keep) {
            (true, true) => out.push(Size::constant(1)),
            (true, false) => {}
            (false, _) => out.push(s.clone()),
        }
    }
    out
}

/// A tensor of at least this rank.
pub fn at_least_rank(t: &TensorType, rank: usize, i: usize, name: &str) -> Result<(), OpError> {
    if t.rank() >= rank {
        return Ok(());
    }
    Err(OpError::new(
        Code::E0207,
        format!("`{name}` needs a tensor of rank {rank} or more, and this one has rank {}", t.rank()),
    )
    .arg(i, t.to_string()))
}

/// Integer positions: ints of any width.
pub fn indices(t: &TensorType, i: usize) -> Result<(), OpError> {
    match t.dtype {
        Some(d) if !d.is_int() => {
            let error =
                OpError::new(Code::E0205, format!("positions must be ints, and these are {d}")).arg(i, t.to_string());
            Err(if d == DType::Bool {
                error.help("choose by a mask with `op.where(mask, x, 0)`")
            } else {
                error.help("convert them: `.to(i64)`")
            })
        }
        _ => Ok(()),
    }
}
