//! What an operator's typing rule sees of an argument.

use super::matching::shown;
use crate::sizes::SizeCx;
use std::sync::Arc;
use tessera_base::near::nearest;
use tessera_base::{Code, DType, Diagnostic, Size};
use tessera_core::ir::{TExpr, TKind};
use tessera_core::ty::Ty;
use tessera_ops::surface::{Default, OpDef, Param, ParamKind, SymArg, Weak};

/// An argument for the typing rule and for the typed program.
pub struct Converted {
    pub sym: SymArg,
    pub value: TExpr,
    /// A list of tensors of which only a run knows the length; `sym` has one of them.
    pub counted: bool,
}

/// Reads `value` as the parameter needs it.
///
/// # Errors
/// E0204 for another type, E0213 for a value that must be known and is not, E0214 for a dtype
/// that does not exist.
pub fn convert(cx: &mut SizeCx, def: &OpDef, param: &Param, value: TExpr) -> Result<Converted, Diagnostic> {
    let at = At { def, param };
    let mut counted = false;
    let mut value = value;
    let takes_sizes = takes_sizes(param.kind);
    if takes_sizes {
        name_ints(cx, &mut value);
    }
    let sym = match (param.kind, &value.ty) {
        (_, Ty::None) if param.default == Default::None => SymArg::None,
        (_, Ty::AnyTensor) if param.kind != ParamKind::DType => return Err(any_tensor(&value)),
        (ParamKind::Tensor | ParamKind::Key, Ty::Tensor(t)) => SymArg::Tensor(t.clone()),
        (ParamKind::Operand | ParamKind::IntOrTensor, Ty::Tensor(t)) => SymArg::Tensor(t.clone()),
        (ParamKind::Operand, Ty::Int(_)) => SymArg::Weak(Weak::Int),
        (ParamKind::Operand, Ty::Float) => SymArg::Weak(Weak::Float),
        (ParamKind::Operand, Ty::Bool) => SymArg::Weak(Weak::Bool),
        (ParamKind::Tensors, Ty::Tensor(t)) => SymArg::Tensor(t.clone()),
        (ParamKind::Tensors, _) => tensors(cx, &at, &value, &mut counted)?,
        (ParamKind::Axis, Ty::Int(n)) => SymArg::Int(constant(&at, n.as_ref(), &value)?),
        (ParamKind::Axes, Ty::Int(n)) => SymArg::Int(constant(&at, n.as_ref(), &value)?),
        (ParamKind::Axes, _) => SymArg::Ints(ints(&at, &value, true)?),
        (_, Ty::Int(Some(n))) if takes_sizes => SymArg::Int(n.clone()),
        (ParamKind::Shape | ParamKind::Ints, _) => SymArg::Ints(ints(&at, &value, false)?),
        (ParamKind::Pairs | ParamKind::Str, Ty::Str) => text(&at, &value)?,
        // A dtype may stand for its name, as a name does for a dtype.
        (ParamKind::Str, Ty::DType(Some(d))) => {
            let name: Arc<str> = d.name().into();
            value = TExpr { kind: TKind::Str(name.clone()), ty: Ty::Str, span: value.span };
            SymArg::Str(name)
        }
        (ParamKind::Pairs, _) => {
            let mut out = vec![];
            pairs(&at, &value, &mut out)?;
            SymArg::Ints(out)
        }
        (ParamKind::Number, Ty::Float) | (ParamKind::Float, Ty::Float | Ty::Int(_)) => {
            SymArg::Float(literal_float(&value))
        }
        (ParamKind::Float, Ty::Tensor(t)) if t.rank() == 0 => SymArg::Tensor(t.clone()),
        (ParamKind::Bool, Ty::Bool) => SymArg::Bool(match value.kind {
            TKind::Bool(b) => Some(b),
            _ => None,
        }),
        (ParamKind::DType, Ty::DType(_) | Ty::Str) => {
            let dtype = dtype_of(param.name, &value)?;
            value = TExpr { kind: TKind::DType(dtype), ty: Ty::DType(Some(dtype)), span: value.span };
            SymArg::DType(dtype)
        }
        (ParamKind::Nested, Ty::Tensor(t)) => SymArg::Tensor(t.clone()),
        (ParamKind::Nested, _) => {
            let nest = nested(cx, &at, &value)?;
            SymArg::Nested { shape: nest.shape, dtype: nest.dtype.unwrap_or(DType::F32) }
        }
        _ => return Err(at.wrong(&value)),
    };
    Ok(Converted { sym, value, counted })
}

/// Whether an int is read as a size, known or not.
fn takes_sizes(kind: ParamKind) -> bool {
    use ParamKind::*;
    matches!(kind, Shape | Ints | Int | Number | IntOrTensor | Pairs)
}

struct At<'a> {
    def: &'a OpDef,
    param: &'a Param,
}

impl At<'_> {
    fn wrong(&self, value: &TExpr) -> Diagnostic {
        use ParamKind::*;
        let needed = match self.param.kind {
            Tensor => "a tensor",
            Operand => "a tensor or a number",
            Tensors => "a list or tuple of tensors",
            Axis => "one axis, an int",
            Axes => "an axis or a tuple of axes",
            Shape => "a shape: a tuple of sizes",
            Int => "an int",
            Number => "an int or a float",
            IntOrTensor => "an int or a tensor",
            Ints => "an int or a tuple of ints",
            Float => "a float",
            Bool => "a bool",
            DType => "a dtype",
            Str => "a string",
            Nested => "numbers in nested lists",
            Key => "a random key",
            Pairs => "an int, or a tuple of ints or pairs",
        };
        let name = shown(self.def);
        let text = format!("`{}` of `{name}` must be {needed}, and this is `{}`", self.param.name, value.ty);
        let d = Diagnostic::new(Code::E0204, value.span, text);
        match (self.param.kind, &value.ty) {
            (Tensor, Ty::List(_) | Ty::Tuple(_) | Ty::Int(_) | Ty::Float | Ty::Bool)
            | (Operand, Ty::List(_) | Ty::Tuple(_)) => d.help("make a tensor of it: `op.array(…)`"),
            (Key, Ty::Int(_)) => d.help("make a key of the number: `random.key(…)`"),
            (Shape | Int | Ints | Axis | Axes, Ty::Float) => d.help("`/` gives a float; `//` gives an int"),
            (Shape | Int | Ints, Ty::Tensor(t)) if t.rank() == 0 => {
                d.help_about("`int({x})` reads a tensor of one element", &[("x", value.span)])
            }
            (Shape, Ty::List(_)) => d.help("the rank must be known: write the shape as a tuple, `(a, b)`"),
            (Axis, Ty::Tuple(_)) => d.note("the operator works along one axis"),
            (Float | Int, Ty::Tensor(_)) => {
                d.help_about("`float({x})` and `int({x})` read a tensor of one element", &[("x", value.span)])
            }
            (DType, Ty::FnRef(_)) => number_type(d, value),
            (DType, _) => d.help("for example `f32`, `bf16` or `\"bf16\"`"),
            _ => d,
        }
    }

    fn not_known(&self, value: &TExpr, what: &str) -> Diagnostic {
        let text = format!(
            "`{}` of `{}` must be {what} that is known before the program runs",
            self.param.name,
            shown(self.def)
        );
        Diagnostic::new(Code::E0213, value.span, text)
            .here(format!("this `{}` is known only at run time", value.ty))
            .note("the shape and type of the result depend on it")
    }
}

/// A tensor of unknown rank where a known one is needed.
pub fn any_tensor(value: &TExpr) -> Diagnostic {
    Diagnostic::new(Code::E0213, value.span, "the rank and dtype of this tensor are not known")
        .here(format!("this is a {}", value.ty))
        .note("they come from data, or from a list or dict that holds tensors of several ranks or dtypes")
        .help(
            "bind it to an annotated name, which is checked once at run time: `x: Tensor[N, D, f32] = …`; tensors of several \
             ranks keep their types as the fields of a struct or the elements of a tuple",
        )
}

fn constant(at: &At, n: Option<&Size>, value: &TExpr) -> Result<Size, Diagnostic> {
    match n {
        Some(n) if n.as_const().is_some() => Ok(n.clone()),
        _ => Err(at.not_known(value, "an axis")),
    }
}

/// The parts of a tuple or list that is written out, or the types of a tuple's parts.
pub fn parts(value: &TExpr) -> Option<Vec<TExpr>> {
    match (&value.kind, &value.ty) {
        (TKind::Tuple(items) | TKind::List(items), _) => Some(items.clone()),
        // The parts of a tuple value, seen only through their types.
        (_, Ty::Tuple(tys)) => {
            let part = |(i, ty): (usize, &Ty)| TExpr {
                kind: TKind::Field(Box::new(value.clone()), i as u32),
                ty: ty.clone(),
                span: value.span,
            };
            Some(tys.iter().enumerate().map(part).collect())
        }
        _ => None,
    }
}

/// Ints that may become sizes have names: the run compares what they make, and the value tells them.
fn name_ints(cx: &mut SizeCx, value: &mut TExpr) {
    fn name(cx: &mut SizeCx, ty: &mut Ty) {
        match ty {
            Ty::Int(n @ None) => *n = Some(cx.fresh_int("n")),
            Ty::Tuple(parts) => parts.iter_mut().for_each(|part| name(cx, part)),
            _ => {}
        }
    }
    match &mut value.kind {
        TKind::Tuple(items) => {
            items.iter_mut().for_each(|item| name_ints(cx, item));
            value.ty = Ty::Tuple(items.iter().map(|item| item.ty.clone()).collect());
        }
        _ => name(cx, &mut value.ty),
    }
}

fn ints(at: &At, value: &TExpr, axes: bool) -> Result<Vec<Size>, Diagnostic> {
    let Some(items) = parts(value) else { return Err(at.wrong(value)) };
    items
        .iter()
        .map(|item| match &item.ty {
            Ty::Int(n) if axes => constant(at, n.as_ref(), item),
            Ty::Int(Some(n)) => Ok(n.clone()),
            _ => Err(at.wrong(item)),
        })
        .collect()
}

fn pairs(at: &At, value: &TExpr, out: &mut Vec<Size>) -> Result<(), Diagnostic> {
    match (&value.ty, parts(value)) {
        (Ty::Int(Some(n)), _) => out.push(n.clone()),
        (_, Some(items)) => items.iter().try_for_each(|item| pairs(at, item, out))?,
        _ => return Err(at.wrong(value)),
    }
    Ok(())
}

fn text(at: &At, value: &TExpr) -> Result<SymArg, Diagnostic> {
    match &value.kind {
        TKind::Str(text) => Ok(SymArg::Str(text.clone())),
        _ => Err(at.not_known(value, "a string")),
    }
}

fn literal_float(value: &TExpr) -> Option<f64> {
    match &value.kind {
        TKind::Float(v) => Some(*v),
        TKind::Int(n) => Some(*n as f64),
        TKind::Neg(inner) | TKind::IntToFloat(inner) => {
            let v = literal_float(inner)?;
            Some(if matches!(value.kind, TKind::Neg(_)) { -v } else { v })
        }
        _ => None,
    }
}

/// A dtype or its name in quotes.
pub fn dtype_of(param: &str, value: &TExpr) -> Result<DType, Diagnostic> {
    match (&value.kind, &value.ty) {
        (_, Ty::DType(Some(d))) => Ok(*d),
        (TKind::Str(text), _) => DType::parse(text).ok_or_else(|| {
            let d = Diagnostic::new(Code::E0214, value.span, format!("`{text}` is not a dtype"));
            let names = DType::ALL.map(DType::name);
            match nearest(text, names) {
                _ if text.starts_with("cuda") || matches!(&**text, "cpu" | "gpu" | "mps") => {
                    d.help("values are placed by the compiler: `tessera run --target cuda`")
                }
                Some(near) => d.fix(format!("did you mean `{near}`?"), value.span, format!("\"{near}\"")),
                None => d.note(format!("dtypes are {}", names.join(", "))),
            }
        }),
        (_, Ty::DType(None) | Ty::Str) => Err(Diagnostic::new(
            Code::E0213,
            value.span,
            format!("`{param}` must be a dtype that is known before the program runs"),
        )
        .note("the type of the result depends on it")),
        (_, ty) => {
            let d = Diagnostic::new(Code::E0204, value.span, format!("`{param}` must be a dtype, and this is `{ty}`"));
            Err(number_type(d, value))
        }
    }
}

/// Python's `int` and `float` in the place of a dtype.
fn number_type(d: Diagnostic, value: &TExpr) -> Diagnostic {
    let dtype = match &*value.ty.to_string() {
        "function int" => "i64",
        "function float" => "f32",
        _ => return d.help("for example `f32`, `bf16` or `\"bf16\"`"),
    };
    d.fix(format!("write `{dtype}`"), value.span, dtype)
}

fn tensors(cx: &mut SizeCx, at: &At, value: &TExpr, counted: &mut bool) -> Result<SymArg, Diagnostic> {
    if let Some(items) = parts(value) {
        let types = items.iter().map(|item| match &item.ty {
            Ty::Tensor(t) => Ok(t.clone()),
            Ty::AnyTensor => Err(any_tensor(item)),
            _ => Err(at.wrong(item)),
        });
        return types.collect::<Result<Vec<_>, _>>().map(SymArg::Tensors);
    }
    match &value.ty {
        // The rule sees one element.
        Ty::List(element) => match cx.element(element) {
            Ty::Tensor(t) => {
                *counted = true;
                Ok(SymArg::Tensors(vec![t]))
            }
            Ty::AnyTensor => Err(any_tensor(value)),
            _ => Err(at.wrong(value)),
        },
        _ => Err(at.wrong(value)),
    }
}

/// Shape and element type of nested lists; no element type where there is no element.
struct Nest {
    shape: Vec<Size>,
    dtype: Option<DType>,
}

fn nested(cx: &mut SizeCx, at: &At, value: &TExpr) -> Result<Nest, Diagnostic> {
    let scalar = |dtype| Ok(Nest { shape: vec![], dtype: Some(dtype) });
    match &value.ty {
        Ty::Bool => return scalar(DType::Bool),
        Ty::Int(_) => return scalar(DType::I64),
        Ty::Float => return scalar(DType::F32),
        Ty::Tensor(_) => {
            return Err(Diagnostic::new(Code::E0204, value.span, "`op.array` takes numbers, and this is a tensor")
                .here(format!("this is {}", value.ty))
                .help_about(
                    "put tensors together with `op.stack([…])`, or read one element with `float({x})`",
                    &[("x", value.span)],
                ));
        }
        _ => {}
    }
    let Some(items) = parts(value) else { return nested_list(cx, at, value) };
    let mut row: Option<(Nest, &TExpr)> = None;
    for item in &items {
        let next = nested(cx, at, item)?;
        row = Some(match row {
            None => (next, item),
            Some((first, at_first)) => (same_row(first, next, at_first, item)?, at_first),
        });
    }
    let mut shape = vec![Size::constant(items.len() as i64)];
    let dtype = row.and_then(|(r, _)| {
        shape.extend(r.shape);
        r.dtype
    });
    Ok(Nest { shape, dtype })
}

/// A list value: its length is known only at run time.
fn nested_list(cx: &mut SizeCx, at: &At, value: &TExpr) -> Result<Nest, Diagnostic> {
    let Ty::List(element) = &value.ty else { return Err(at.wrong(value)) };
    if **element == Ty::Unknown {
        return Ok(Nest { shape: vec![Size::constant(0)], dtype: None });
    }
    let mut shape = vec![cx.fresh("n")];
    let inner = TExpr { kind: TKind::None, ty: (**element).clone(), span: value.span };
    let inner = nested(cx, at, &inner)?;
    shape.extend(inner.shape);
    Ok(Nest { shape, dtype: inner.dtype })
}

/// Two rows of one nested list.
fn same_row(a: Nest, b: Nest, at_a: &TExpr, at_b: &TExpr) -> Result<Nest, Diagnostic> {
    let ragged = |text: String| {
        Diagnostic::new(Code::E0204, at_b.span, text)
            .with_label(at_a.span, "the first row")
            .note("the rows of a tensor have one shape")
    };
    if a.shape.len() != b.shape.len() {
        return Err(ragged(format!(
            "this row is nested {} deep, and the first one {} deep",
            b.shape.len(),
            a.shape.len()
        )));
    }
    let mut shape = vec![];
    for (x, y) in a.shape.into_iter().zip(b.shape) {
        match (x.as_const(), y.as_const()) {
            (Some(m), Some(n)) if m != n => {
                let s = if n == 1 { "" } else { "s" };
                return Err(ragged(format!("this row has {n} element{s}, and the first one has {m}")));
            }
            (None, Some(_)) => shape.push(y),
            _ => shape.push(x),
        }
    }
    let rank = |d: DType| [DType::Bool, DType::I64].iter().position(|&e| e == d).unwrap_or(2);
    let dtype = match (a.dtype, b.dtype) {
        (Some(x), Some(y)) => Some(if rank(x) >= rank(y) { x } else { y }),
        (x, y) => x.or(y),
    };
    Ok(Nest { shape, dtype })
}
