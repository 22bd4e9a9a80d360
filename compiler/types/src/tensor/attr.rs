//! Attributes and methods of tensors, and reading a tensor of one element.

use super::args::any_tensor;
use super::call::op_call;
use super::matching::Given;
use super::{broken, error_expr, rows};
use crate::sizes::SizeCx;
use tessera_base::{Code, DType, Diagnostic, Span, TensorType};
use tessera_core::ir::{Builtin, Convert, TExpr, TKind, TStmt};
use tessera_core::ty::Ty;
use tessera_grammar::ast::Name;
use tessera_ops::surface;

const ATTRIBUTES: &[&str] = &["shape", "dtype", "T", "ndim", "size", "sharding"];
/// Methods besides those of the operator table.
const METHODS: &[&str] = &["item", "tolist", "copy"];

/// `base.name` without a call. E0103 for a name that tensors do not have.
pub fn attr(cx: &mut SizeCx, base: TExpr, name: &Name, span: Span) -> Result<TExpr, Diagnostic> {
    if broken(&base) {
        return Ok(error_expr(span));
    }
    let Ty::Tensor(t) = base.ty.clone() else {
        return match &*name.text {
            "dtype" if base.ty == Ty::AnyTensor => {
                Ok(TExpr { kind: TKind::TensorDType(Box::new(base)), ty: Ty::DType(None), span })
            }
            _ => Err(any_tensor(&base)),
        };
    };
    let (kind, ty) = match &*name.text {
        "shape" => {
            let sizes = t.shape.iter().map(|s| Ty::Int(Some(s.clone()))).collect();
            (TKind::TensorShape(Box::new(base)), Ty::Tuple(sizes))
        }
        "dtype" => (TKind::TensorDType(Box::new(base)), Ty::DType(t.dtype)),
        "ndim" => {
            let ty = Ty::int_of(t.rank() as i64);
            let known = TExpr { kind: TKind::Int(t.rank() as i64), ty: ty.clone(), span };
            (behind(base, known), ty)
        }
        "size" => (TKind::Builtin { name: Builtin::tensor_size, args: vec![base] }, Ty::Int(Some(t.elems()))),
        // Known before the program runs.
        "sharding" => {
            let known = TKind::Str(t.sharding.describe(t.rank()).into());
            (behind(base, TExpr { kind: known, ty: Ty::Str, span }), Ty::Str)
        }
        "T" => return op_call(cx, rows::row("transpose", name.span)?, vec![Given::positional(base)], span, name.span),
        _ => return Err(no_attribute(&t, base.span, name)),
    };
    Ok(TExpr { kind, ty, span })
}

/// What is known of a value without it: it is computed all the same, as it may do more, or fail.
fn behind(base: TExpr, known: TExpr) -> TKind {
    match base.is_certain() {
        false => TKind::Block { stmts: vec![TStmt::Expr(base)], value: Box::new(known) },
        true => known.kind,
    }
}

/// `base.name(given)`.
pub fn method(
    cx: &mut SizeCx,
    base: TExpr,
    name: &Name,
    mut given: Vec<Given>,
    span: Span,
) -> Result<TExpr, Diagnostic> {
    if broken(&base) || given.iter().any(|g| broken(&g.value)) {
        return Ok(error_expr(span));
    }
    let Ty::Tensor(t) = base.ty.clone() else { return Err(any_tensor(&base)) };
    match &*name.text {
        "item" | "tolist" | "copy" => {
            if let Some(extra) = given.first() {
                let text = format!("`{}` takes no arguments", name.text);
                return Err(Diagnostic::new(Code::E0104, name.span, text).with_label(extra.value.span, "one too many"));
            }
            match &*name.text {
                "item" => item(base, name, span),
                // Values do not share: every binding is a copy already.
                "copy" => Ok(TExpr { span, ..base }),
                _ => {
                    let ty = t.shape.iter().fold(host(t.dtype), |ty, _| Ty::List(Box::new(ty)));
                    Ok(TExpr { kind: TKind::Builtin { name: Builtin::tensor_tolist, args: vec![base] }, ty, span })
                }
            }
        }
        _ => match surface::method(&name.text) {
            Some(def) => {
                given.insert(0, Given::positional(base));
                op_call(cx, def, given, span, name.span)
            }
            None => Err(no_attribute(&t, base.span, name)),
        },
    }
}

fn no_attribute(t: &TensorType, base_span: Span, name: &Name) -> Diagnostic {
    let d = Diagnostic::new(Code::E0103, name.span, format!("a tensor has no attribute `{}`", name.text))
        .with_label(base_span, t.to_string());
    if ATTRIBUTES.contains(&&*name.text) {
        let d = match &*name.text {
            "size" => d.help_about("one size is `{x}.shape[0]`, all of them are `{x}.shape`", &[("x", base_span)]),
            _ => d,
        };
        return Diagnostic { message: format!("`{}` of a tensor is no method", name.text), ..d }
            .help_about(&format!("leave the parentheses out: `{{x}}.{}`", name.text), &[("x", base_span)]);
    }
    if METHODS.contains(&&*name.text) || surface::method(&name.text).is_some() {
        return Diagnostic { message: format!("`{}` of a tensor is a method", name.text), ..d }
            .help_about(&format!("call it: `{{x}}.{}(…)`", name.text), &[("x", base_span)]);
    }
    if let Some(help) = elsewhere(&name.text) {
        return d.help(help);
    }
    if let Some(def) = surface::find(&name.text) {
        return d.help_about(&format!("call it as `op.{}({{x}}, …)`", def.name), &[("x", base_span)]);
    }
    if let Some(def) = surface::all().find(|def| def.method && def.known_as.contains(&&*name.text)) {
        return d.fix(format!("it is called `{}` here", def.name), name.span, def.name);
    }
    let all = ATTRIBUTES.iter().chain(METHODS).copied().chain(surface::methods());
    d.did_you_mean(name.span, &name.text, all, |d| d)
}

/// What people who come from NumPy or PyTorch are looking for.
fn elsewhere(name: &str) -> Option<&'static str> {
    Some(match name {
        "astype" | "type" => "convert with `x.to(f32)`",
        "float" => "convert with `x.to(f32)`; a number is read with `float(x)`",
        "half" => "convert with `x.to(f16)`",
        "bfloat16" => "convert with `x.to(bf16)`",
        "double" => "convert with `x.to(f64)`",
        "long" | "int" => "convert with `x.to(i64)`; a number is read with `int(x)`",
        "unsqueeze" => "add a dim with an index: `x[None]`, `x[:, None]`",
        "clone" => "values do not share, so `y = x` is a copy; `x.copy()` says it",
        "detach" => "`autodiff.stop_gradient(x)`",
        "backward" | "grad" | "requires_grad" => "gradients are functions: `autodiff.grad(f)(x)`",
        "numpy" => "`x.tolist()` gives lists, and `io.write_npy(path, x)` a file that NumPy reads",
        "cpu" | "cuda" | "contiguous" | "device" => "not needed: the compiler places values (`tessera run --target …`)",
        name if name.len() > 1 && name.ends_with('_') => {
            "operators change nothing: they give new tensors, to be bound (`x = x + 1.0`); elements are assigned (`x[0] = 1.0`)"
        }
        "at" => "elements are assigned: `x[0] = 1.0` changes `x`, and no other name that holds its value",
        "append" | "extend" | "insert" | "push" => {
            "a tensor keeps its size: collect rows in a list and make one of them with `op.stack`, or join tensors with `op.concat`"
        }
        "dim" => "the rank is `x.ndim`",
        "numel" => "the number of elements is `x.size`",
        _ => return None,
    })
}

/// The host type of an element.
fn host(dtype: Option<DType>) -> Ty {
    match dtype {
        Some(DType::Bool) => Ty::Bool,
        Some(d) if d.is_int() => Ty::int(),
        _ => Ty::Float,
    }
}

fn item(base: TExpr, name: &Name, span: Span) -> Result<TExpr, Diagnostic> {
    let Ty::Tensor(t) = &base.ty else { return Err(any_tensor(&base)) };
    match t.dtype {
        Some(DType::C64) => Err(Diagnostic::new(Code::E0690, name.span, "host complex numbers are not supported yet")),
        Some(DType::Bool) => truth(base).map(|e| TExpr { span, ..e }),
        Some(d) if d.is_int() => to_int(base, span),
        _ => to_float(base, span),
    }
}

/// `float(x)` of a tensor of one element.
pub fn to_float(x: TExpr, span: Span) -> Result<TExpr, Diagnostic> {
    one_element(&x, "`float`")?;
    Ok(TExpr { kind: TKind::Convert { to: Convert::Float, value: Box::new(x) }, ty: Ty::Float, span })
}

/// `int(x)` of a tensor of one element; the fraction is dropped.
pub fn to_int(x: TExpr, span: Span) -> Result<TExpr, Diagnostic> {
    one_element(&x, "`int`")?;
    Ok(TExpr { kind: TKind::Convert { to: Convert::Int, value: Box::new(x) }, ty: Ty::int(), span })
}

/// A tensor as a condition: it must have one element. E0204 where it has, or may have, more.
pub fn truth(x: TExpr) -> Result<TExpr, Diagnostic> {
    let help = "`op.any({x})` and `op.all({x})` say whether some or all elements are true";
    one_element(&x, "a condition").map_err(|d| d.help_about(help, &[("x", x.span)]))?;
    let span = x.span;
    Ok(TExpr { kind: TKind::Truth(Box::new(x)), ty: Ty::Bool, span })
}

fn one_element(x: &TExpr, what: &str) -> Result<(), Diagnostic> {
    let Ty::Tensor(t) = &x.ty else {
        return if broken(x) { Ok(()) } else { Err(any_tensor(x)) };
    };
    if t.shape.iter().all(|s| s.as_const() == Some(1)) {
        return Ok(());
    }
    Err(Diagnostic::new(Code::E0204, x.span, format!("{what} takes a tensor of one element"))
        .here(format!("this is {t}"))
        .help_about("take one element, as in `{x}[0]`, or reduce it, as in `{x}.sum()`", &[("x", x.span)]))
}

/// `len(x)`: the first size.
pub fn length(x: TExpr, span: Span) -> Result<TExpr, Diagnostic> {
    if broken(&x) {
        return Ok(error_expr(span));
    }
    let Ty::Tensor(t) = &x.ty else { return Err(any_tensor(&x)) };
    let Some(first) = t.shape.first().cloned() else {
        return Err(
            Diagnostic::new(Code::E0207, x.span, "a tensor of rank 0 has no length").here(format!("this is {t}"))
        );
    };
    Ok(TExpr { kind: TKind::TensorDim(Box::new(x), 0), ty: Ty::Int(Some(first)), span })
}
