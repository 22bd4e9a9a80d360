//! Type annotations: `Tensor[B@dp, 4*D, bf16]`, `list[Layer[D]]`, `(A, B) -> C`.
//!
//! Annotations are parsed as expressions; here they become types. What a name stands for is
//! asked of the checker through [`AnnotNames`].

mod size;
mod tensor;

pub use size::resolve_size;

use std::collections::BTreeSet;
use std::sync::Arc;
use tessera_base::{Code, DType, Diagnostic, Mesh, Size, Span};
use tessera_core::ty::Ty;
use tessera_grammar::ast::{Arg, BinOp, Expr, ExprKind};

/// What a name in an annotation stands for.
#[derive(Clone, PartialEq, Debug)]
pub enum NameMeaning {
    /// A size variable in scope, or an `int` with its symbolic value.
    Size(Size),
    /// A type: a struct without parameters, or a struct's type parameter.
    Type(Ty),
    /// A struct with this many parameters, which must be given.
    Struct {
        params: usize,
    },
    /// An element type, or a struct's parameter that stands for one.
    DType(DType),
    /// A signature's name for whatever element type each call has.
    AnyDType,
    /// A value that is neither, in words (`a function`, `a str`).
    Value(String),
    Unbound,
}

/// An argument of a generic struct.
#[derive(Clone, PartialEq, Debug)]
pub enum GenericArg {
    Size(Size),
    Type(Ty),
    DType(DType),
    /// Any element type.
    AnyDType,
}

/// The scope that an annotation is read in. Dotted names (`optim.Adam`) are asked for whole.
/// The names of built-in types and of element types may be answered with `Unbound`.
pub trait AnnotNames {
    fn name(&mut self, name: &str, span: Span) -> NameMeaning;

    /// The size variable that a name that is not bound introduces: a rigid one in a
    /// parameter's type, a module-wide one in a top-level annotation. `None` where the name
    /// cannot be a size variable (it starts with a lower-case letter).
    fn unbound_size(&mut self, name: &str, span: Span) -> Option<Size>;

    /// A generic struct at its arguments.
    fn apply_struct(&mut self, name: &str, args: Vec<(GenericArg, Span)>, span: Span) -> Result<Ty, Diagnostic>;

    /// A size that is neither a name nor arithmetic (`cfg.width`, `x.shape[0]`).
    fn other_size(&mut self, _expr: &Expr) -> Option<Result<Size, Diagnostic>> {
        None
    }

    /// Names of types in scope, for "did you mean".
    fn type_names(&self) -> Vec<Arc<str>> {
        vec![]
    }
}

const BUILT_IN: &[&str] =
    &["int", "float", "bool", "str", "None", "Tensor", "list", "dict", "tuple", "Mesh", "ShardSpec", "dtype"];

/// The type that an annotation spells. E0215 where it is none, E0401 where its sharding is
/// not well formed.
pub fn resolve(expr: &Expr, names: &mut dyn AnnotNames) -> Result<Ty, Diagnostic> {
    match &expr.kind {
        ExprKind::None => Ok(Ty::None),
        ExprKind::Error => Ok(Ty::Error),
        ExprKind::Name(_) | ExprKind::Attr { .. } => match dotted(expr) {
            Some(name) => named(&name, expr.span, names),
            None => Err(not_a_type(expr)),
        },
        ExprKind::Index { base, index } => applied(base, index, expr.span, names),
        ExprKind::FnType { params, ret } => {
            let parts = params.iter().chain([&**ret]).map(|p| resolve(p, names)).collect::<Result<Vec<_>, _>>()?;
            no_axes(&parts, expr.span)?;
            let (ret, params) = parts.split_last().ok_or_else(|| not_a_type(expr))?;
            Ok(Ty::Fn(params.to_vec(), Box::new(ret.clone())))
        }
        ExprKind::Binary { op: BinOp::BitOr, .. } => {
            Err(Diagnostic::new(Code::E0215, expr.span, "there are no union types")
                .note("every value has one type, known before the program runs")
                .help("leave the annotation out: the function is then checked at each call"))
        }
        ExprKind::Str(text) => Err(Diagnostic::new(Code::E0215, expr.span, "a type is not written in quotes").fix(
            "remove the quotes",
            expr.span,
            text.to_string(),
        )),
        _ => Err(not_a_type(expr)),
    }
}

/// E0490 where the type of a function names axes of a mesh.
fn no_axes(parts: &[Ty], span: Span) -> Result<(), Diagnostic> {
    let mut axes = BTreeSet::new();
    parts.iter().for_each(|t| t.stated_axes(&mut axes));
    let Some(axis) = axes.first() else { return Ok(()) };
    let text = format!("a function type that names an axis of a mesh (`@{axis}`) is not supported yet");
    Err(Diagnostic::new(Code::E0490, span, text)
        .note("a function value is checked where it is made, and only its calls know the mesh")
        .help("leave the type out: the function is then checked for what each call passes"))
}

fn not_a_type(expr: &Expr) -> Diagnostic {
    let what = match &expr.kind {
        ExprKind::Int(_) | ExprKind::Float(_) => "a number",
        ExprKind::Tuple(_) => "a tuple of types",
        ExprKind::List(_) => "a list",
        ExprKind::Dict(_) => "a dict",
        ExprKind::Call { .. } => "a call",
        ExprKind::Ellipsis => "`...`",
        _ => "this expression",
    };
    let d = Diagnostic::new(Code::E0215, expr.span, format!("{what} is not a type"));
    match &expr.kind {
        ExprKind::Tuple(_) => d.help("write `tuple[A, B]`"),
        ExprKind::List(_) => d.help("write `list[T]`"),
        ExprKind::Dict(_) => d.help("write `dict[str, T]`"),
        _ => d.help("types are `int`, `float`, `bool`, `str`, `Tensor[B, D, f32]`, `list[T]`, structs and such"),
    }
}

/// `a.b.c` as one name.
fn dotted(expr: &Expr) -> Option<String> {
    match &expr.kind {
        ExprKind::Name(n) => Some(n.to_string()),
        ExprKind::Attr { base, name } => Some(format!("{}.{}", dotted(base)?, name.text)),
        _ => None,
    }
}

fn named(name: &str, span: Span, names: &mut dyn AnnotNames) -> Result<Ty, Diagnostic> {
    let meaning = names.name(name, span);
    match &meaning {
        NameMeaning::Type(ty) => return Ok(ty.clone()),
        NameMeaning::Struct { params } => {
            let s = if *params == 1 { "" } else { "s" };
            return Err(Diagnostic::new(Code::E0215, span, format!("`{name}` needs its {params} argument{s}"))
                .help(format!("write `{name}[…]`, for example with a size or a type")));
        }
        _ => {}
    }
    if let Some(ty) = built_in(name) {
        return Ok(ty);
    }
    let wrong = |message: String| Err(Diagnostic::new(Code::E0215, span, message));
    match meaning {
        NameMeaning::DType(_) | NameMeaning::AnyDType => {
            wrong(format!("`{name}` is an element type, not a type")).map_err(|d| element(d, name))
        }
        NameMeaning::Size(_) => wrong(format!("`{name}` is a size, not a type"))
            .map_err(|d| d.help(format!("write `Tensor[{name}, f32]` for a tensor of that size, or `int`"))),
        NameMeaning::Value(what) => wrong(format!("`{name}` is {what}, not a type")),
        _ if DType::parse(name).is_some() => {
            wrong(format!("`{name}` is an element type, not a type")).map_err(|d| element(d, name))
        }
        _ => Err(unknown_type(name, span, names)),
    }
}

fn element(d: Diagnostic, name: &str) -> Diagnostic {
    let span = d.span;
    d.fix(format!("`Tensor[{name}]` is a tensor of rank 0"), span, format!("Tensor[{name}]"))
        .help("a host scalar is `int`, `float` or `bool`")
}

fn built_in(name: &str) -> Option<Ty> {
    Some(match name {
        "int" => Ty::int(),
        "float" => Ty::Float,
        "bool" => Ty::Bool,
        "str" => Ty::Str,
        "None" => Ty::None,
        "Tensor" => Ty::AnyTensor,
        "list" => Ty::List(Box::new(Ty::Unknown)),
        "dict" => Ty::Dict(Box::new(Ty::Unknown), Box::new(Ty::Unknown)),
        "Mesh" | "dist.Mesh" => Ty::Mesh(None),
        "ShardSpec" | "dist.ShardSpec" => Ty::ShardSpec(None),
        "dtype" => Ty::DType(None),
        _ => return None,
    })
}

fn unknown_type(name: &str, span: Span, names: &dyn AnnotNames) -> Diagnostic {
    let d = Diagnostic::new(Code::E0215, span, format!("`{name}` is not a type"));
    match name {
        "Optional" | "Union" | "Any" => {
            return d
                .note("every value has one type, known before the program runs")
                .help("leave the annotation out: the function is then checked at each call");
        }
        "Callable" => return d.help("write the type of a function as `(A, B) -> C`"),
        "string" | "String" => return d.fix("did you mean `str`?", span, "str"),
        "double" => return d.fix("did you mean `float`?", span, "float"),
        "tuple" => return d.help("write the types of the elements: `tuple[int, float]`"),
        "ndarray" | "array" | "np.ndarray" | "torch.Tensor" | "jax.Array" => {
            return d.fix("did you mean `Tensor`?", span, "Tensor");
        }
        _ => {}
    }
    let mine = names.type_names();
    let all = mine.iter().map(|n| &**n).chain(BUILT_IN.iter().copied());
    d.did_you_mean(span, name, all, |d| d.note("no struct of this name is defined or imported here"))
}

fn applied(base: &Expr, index: &[Arg], span: Span, names: &mut dyn AnnotNames) -> Result<Ty, Diagnostic> {
    let Some(name) = dotted(base) else { return Err(not_a_type(base)) };
    match names.name(&name, base.span) {
        NameMeaning::Struct { .. } => {
            let mut args = vec![];
            for arg in index {
                args.push((generic_arg(arg, names)?, arg.value.span));
            }
            return names.apply_struct(&name, args, span);
        }
        NameMeaning::Type(ty) => {
            return Err(Diagnostic::new(Code::E0215, span, format!("`{ty}` takes no arguments in brackets")).fix(
                "remove them",
                span,
                name,
            ));
        }
        _ => {}
    }
    let wrong = |message: String| Diagnostic::new(Code::E0215, span, message);
    if !matches!(name.as_str(), "Mesh" | "dist.Mesh") {
        plain(index)?;
    }
    match (name.as_str(), index) {
        ("Tensor", _) => tensor::tensor(index, names),
        ("Mesh" | "dist.Mesh", _) => mesh(index),
        ("list", [t]) => Ok(Ty::List(Box::new(resolve(&t.value, names)?))),
        ("list", _) => Err(wrong(format!("a list has one element type, not {}", index.len()))
            .help("elements of several types are a `tuple[A, B]` or a struct")),
        ("dict", [k, v]) => {
            let key = resolve(&k.value, names)?;
            if !matches!(key, Ty::Str | Ty::Int(_) | Ty::Bool | Ty::Error) {
                return Err(Diagnostic::new(Code::E0215, k.value.span, format!("`{key}` cannot be a key of a dict"))
                    .note("keys are `str`, `int` or `bool`"));
            }
            Ok(Ty::Dict(Box::new(key), Box::new(resolve(&v.value, names)?)))
        }
        ("dict", _) => Err(wrong("a dict has a key type and a value type".into()).help("write `dict[str, T]`")),
        ("tuple", ts) => {
            if let Some(dots) = ts.iter().find(|t| t.value.kind == ExprKind::Ellipsis) {
                return Err(Diagnostic::new(Code::E0215, dots.value.span, "the length of a tuple is part of its type")
                    .help("any number of elements of one type is a `list[T]`"));
            }
            Ok(Ty::Tuple(ts.iter().map(|t| resolve(&t.value, names)).collect::<Result<_, _>>()?))
        }
        _ if built_in(&name).is_some() => {
            Err(wrong(format!("`{name}` takes no arguments in brackets")).fix("remove them", span, name))
        }
        _ => Err(unknown_type(&name, base.span, names)),
    }
}

/// Refuses keywords and stars.
fn plain(index: &[Arg]) -> Result<(), Diagnostic> {
    for arg in index {
        if let Some(name) = &arg.name {
            return Err(Diagnostic::new(Code::E0215, name.span, "only `Mesh[…]` takes names in brackets"));
        }
        if arg.star {
            return Err(Diagnostic::new(Code::E0215, arg.value.span, "`*` has no meaning in a type"));
        }
    }
    Ok(())
}

/// A size, an element type or a type, as its form says.
fn generic_arg(arg: &Arg, names: &mut dyn AnnotNames) -> Result<GenericArg, Diagnostic> {
    plain(std::slice::from_ref(arg))?;
    let expr = &arg.value;
    let Some(name) = dotted(expr) else {
        return match &expr.kind {
            ExprKind::Int(_) | ExprKind::Unary { .. } | ExprKind::Call { .. } => {
                resolve_size(expr, names).map(GenericArg::Size)
            }
            ExprKind::Binary { op, .. } if *op != BinOp::BitOr => resolve_size(expr, names).map(GenericArg::Size),
            ExprKind::Str(text) if DType::parse(text).is_some() => {
                tensor::dtype_text(text, expr.span).map(GenericArg::DType)
            }
            _ => resolve(expr, names).map(GenericArg::Type),
        };
    };
    match names.name(&name, expr.span) {
        NameMeaning::Size(n) => Ok(GenericArg::Size(n)),
        NameMeaning::Type(t) => Ok(GenericArg::Type(t)),
        NameMeaning::DType(d) => Ok(GenericArg::DType(d)),
        NameMeaning::AnyDType => Ok(GenericArg::AnyDType),
        NameMeaning::Unbound if built_in(&name).is_none() => match DType::parse(&name) {
            Some(d) => Ok(GenericArg::DType(d)),
            None => match names.unbound_size(&name, expr.span) {
                Some(n) => Ok(GenericArg::Size(n)),
                None => Err(unknown_type(&name, expr.span, names)),
            },
        },
        _ => named(&name, expr.span, names).map(GenericArg::Type),
    }
}

/// `Mesh[dp=4, tp=2]`: the axes must differ and have sizes.
fn mesh(index: &[Arg]) -> Result<Ty, Diagnostic> {
    let mut seen: Vec<&str> = vec![];
    let mut axes = vec![];
    for arg in index {
        let Some(name) = &arg.name else {
            return Err(Diagnostic::new(Code::E0401, arg.value.span, "a mesh axis needs a name and a size")
                .help("write `Mesh[dp=4, tp=2]`"));
        };
        if seen.contains(&&*name.text) {
            return Err(Diagnostic::new(
                Code::E0401,
                name.span,
                format!("the mesh axis `{}` is named twice", name.text),
            ));
        }
        seen.push(&name.text);
        let size = match &arg.value.kind {
            ExprKind::Int(digits) => digits.parse::<i64>().ok(),
            _ => None,
        };
        let Some(size) = size.and_then(|n| u64::try_from(n).ok()).filter(|n| *n > 0) else {
            return Err(Diagnostic::new(
                Code::E0401,
                arg.value.span,
                format!("the size of the mesh axis `{}` must be a whole number of at least 1", name.text),
            ));
        };
        axes.push((name.text.to_string(), size));
    }
    Ok(Ty::Mesh(Some(Arc::new(Mesh { axes }))))
}

#[cfg(test)]
mod tests;
