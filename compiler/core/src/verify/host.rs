//! Whether functions of the host library get and give what their rows say.

use super::{Agrees, count, same, wrong};
use crate::builtins::{Gives, Kind, find};
use crate::ir::{SUM_OF_NONE, TExpr};
use crate::ty::Ty;
use tessera_base::Span;

fn is_text_list(ty: &Ty) -> bool {
    matches!(ty, Ty::List(t) if matches!(**t, Ty::Str | Ty::Unknown | Ty::Never))
}

fn is_int_list(ty: &Ty) -> bool {
    matches!(ty, Ty::List(t) if matches!(**t, Ty::Int(_) | Ty::Unknown | Ty::Never))
}

fn is_text_dict(ty: &Ty, value: impl Fn(&Ty) -> bool) -> bool {
    matches!(ty, Ty::Dict(k, v) if matches!(**k, Ty::Str | Ty::Unknown) && (value(v) || matches!(**v, Ty::Unknown)))
}

fn takes(kind: Kind, ty: &Ty) -> bool {
    match kind {
        Kind::Int => matches!(ty, Ty::Int(_)),
        Kind::Float => matches!(ty, Ty::Float),
        Kind::Bool => matches!(ty, Ty::Bool),
        Kind::Str => matches!(ty, Ty::Str),
        Kind::StrList => is_text_list(ty),
        Kind::IntList => is_int_list(ty),
        Kind::Tensor => ty.is_tensor(),
        Kind::TensorDict => is_text_dict(ty, Ty::is_tensor),
        Kind::DType => matches!(ty, Ty::DType(_)),
    }
}

fn gives(what: Gives, ty: &Ty) -> bool {
    match what {
        Gives::Int => matches!(ty, Ty::Int(_)),
        Gives::Float => matches!(ty, Ty::Float),
        Gives::Bool => matches!(ty, Ty::Bool),
        Gives::Str => matches!(ty, Ty::Str),
        Gives::StrList => is_text_list(ty),
        Gives::IntList => is_int_list(ty),
        Gives::None => matches!(ty, Ty::None),
        Gives::AnyTensor | Gives::Matrix => ty.is_tensor(),
        Gives::StrDict => is_text_dict(ty, |v| matches!(v, Ty::Str)),
        Gives::TensorDict => is_text_dict(ty, Ty::is_tensor),
        Gives::Never => matches!(ty, Ty::Never | Ty::None),
    }
}

/// What a call of a function of the host library agrees with: its row, or its rule.
pub(super) fn verify(name: &str, args: &[TExpr], ty: &Ty, span: Span) -> Agrees {
    let Some(row) = find(name) else {
        let tys: Vec<&Ty> = args.iter().map(|a| &a.ty).collect();
        return if typed(name, &tys, ty) { Ok(()) } else { disagrees(name, &tys, ty, span) };
    };
    count("arguments", args.len(), row.params.len(), span)?;
    for (param, arg) in row.params.iter().zip(args) {
        if !takes(param.kind, &arg.ty) {
            return wrong(&format!("`{}` of `{name}` is `{}`", param.name, arg.ty), arg.span);
        }
    }
    if gives(row.gives, ty) { Ok(()) } else { wrong(&format!("`{name}` gives `{ty}`"), span) }
}

fn disagrees(name: &str, args: &[&Ty], ty: &Ty, span: Span) -> Agrees {
    let args: Vec<String> = args.iter().map(|t| format!("`{t}`")).collect();
    wrong(&format!("`{name}` takes {} and gives `{ty}`", args.join(", ")), span)
}

fn is_number(ty: &Ty) -> bool {
    matches!(ty, Ty::Int(_) | Ty::Float)
}

fn is_ordered(ty: &Ty) -> bool {
    is_number(ty) || matches!(ty, Ty::Str | Ty::Bool)
}

/// Functions with a rule of their own: see [`crate::builtins::TYPED`].
fn typed(name: &str, args: &[&Ty], ty: &Ty) -> bool {
    match (name, args) {
        ("print", [sep, end, ..]) => [sep, end].iter().all(|t| matches!(t, Ty::Str | Ty::None)),
        ("len", [x]) => {
            let counted = matches!(x, Ty::Str | Ty::List(_) | Ty::Dict(..) | Ty::Tuple(_)) || x.is_tensor();
            counted && matches!(ty, Ty::Int(_))
        }
        ("range", [a, b, c]) => [a, b, c].iter().all(|t| matches!(t, Ty::Int(_))) && is_int_list(ty),
        ("int.abs" | "float.abs" | "abs", [x]) => is_number(x) && same(x, ty),
        ("float.round", [Ty::Float]) => matches!(ty, Ty::Int(_)),
        ("float.round_digits", [Ty::Float, Ty::Int(_)]) => matches!(ty, Ty::Float),
        ("min" | "max", [first, rest @ ..]) => {
            is_ordered(first) && rest.iter().all(|t| same(first, t) && is_ordered(t)) && same(first, ty)
        }
        ("list.min" | "list.max", [Ty::List(t)]) => same(t, ty),
        ("list.sum", [Ty::List(t)]) => is_number(ty) && same(t, ty),
        // The element of `[]` may be an int.
        ("list.any" | "list.all", [Ty::List(t)]) => {
            (same(t, &Ty::Bool) || matches!(**t, Ty::Int(_))) && matches!(ty, Ty::Bool)
        }
        ("list.sorted", [list @ Ty::List(_), Ty::Bool]) | ("list.reversed", [list @ Ty::List(_)]) => same(list, ty),
        ("list.sorted_by", [list @ Ty::List(_), Ty::List(_), Ty::Bool]) => same(list, ty),
        ("list.index" | "list.count", [Ty::List(t), x]) => same(t, x) && matches!(ty, Ty::Int(_)),
        ("dict.keys", [Ty::Dict(k, _)]) => matches!(ty, Ty::List(t) if same(t, k)),
        ("dict.values", [Ty::Dict(_, v)]) => matches!(ty, Ty::List(t) if same(t, v)),
        ("dict.items", [Ty::Dict(k, v)]) => match ty {
            Ty::List(t) => matches!(&**t, Ty::Tuple(ts) if ts.len() == 2 && same(&ts[0], k) && same(&ts[1], v)),
            _ => false,
        },
        ("dict.get", [Ty::Dict(k, v), key, default]) => same(k, key) && same(v, default) && same(v, ty),
        ("str.list", [Ty::Str]) => is_text_list(ty),
        ("io.save", [Ty::Str, _]) => matches!(ty, Ty::None),
        ("io.load", [Ty::Str, like, Ty::Str, Ty::Bool]) => same(like, ty),
        ("sys.args", []) => is_text_list(ty),
        ("sys.dir", []) => matches!(ty, Ty::Str),
        ("sizes.differ", [Ty::Str, sizes]) => is_int_list(sizes),
        ("tensor.size", [x]) => x.is_tensor() && matches!(ty, Ty::Int(_)),
        ("tensor.tolist", [x]) => x.is_tensor(),
        // Tile programs are traced, which looks at values.
        ("tile.program_id", [_]) | ("tile.load", [_, _, _, _]) | ("tile.store", [_, _, _]) => true,
        _ => name == SUM_OF_NONE && args.is_empty(),
    }
}

/// What a method that changes a list or dict takes.
pub(super) fn verify_method(name: &str, args: &[TExpr], slot: &Ty, span: Span) -> Agrees {
    let tys: Vec<&Ty> = args.iter().map(|a| &a.ty).collect();
    let short = name.rsplit('.').next().unwrap_or(name);
    let fits = match (slot, short, &tys[..]) {
        (Ty::List(t), "append" | "remove", [x]) => same(t, x),
        (Ty::List(_), "extend", [x]) => same(slot, x) && matches!(x, Ty::List(_)),
        (Ty::List(t), "insert", [Ty::Int(_), x]) => same(t, x),
        (Ty::List(_), "pop", [] | [Ty::Int(_)]) => true,
        (Ty::List(_), "sort", [] | [Ty::Bool]) => true,
        (Ty::List(_), "reverse" | "clear", []) | (Ty::Dict(..), "clear", []) => true,
        (Ty::Dict(k, _), "pop", [x]) => same(k, x),
        (Ty::Dict(..), "update", [x]) => same(slot, x) && matches!(x, Ty::Dict(..)),
        _ => false,
    };
    if fits { Ok(()) } else { disagrees(name, &tys, slot, span) }
}
