//! Whether functions of the host library get and give what their rows say.

use super::{Agrees, count, wrong};
use crate::builtins::rules::{is_int_list, is_text_dict, is_text_list};
use crate::builtins::{Builtin, Gives, Kind, Method, Rule, Takes};
use crate::ir::TExpr;
use crate::ty::{Ty, same_form};
use tessera_base::Span;

fn takes(kind: Kind, ty: &Ty) -> bool {
    match kind {
        Kind::Int => matches!(ty, Ty::Int(_)),
        Kind::Float => matches!(ty, Ty::Float),
        Kind::Bool => matches!(ty, Ty::Bool),
        Kind::Str => matches!(ty, Ty::Str),
        Kind::StrList => is_text_list(ty),
        Kind::IntList => is_int_list(ty),
        Kind::Tensor | Kind::Image | Kind::Sound => ty.is_tensor(),
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
        Gives::AnyTensor | Gives::Matrix | Gives::Image => ty.is_tensor(),
        Gives::Sound => matches!(ty, Ty::Tuple(ts) if matches!(&ts[..], [t, Ty::Int(_)] if t.is_tensor())),
        Gives::StrDict => is_text_dict(ty, |v| matches!(v, Ty::Str)),
        Gives::TensorDict => is_text_dict(ty, Ty::is_tensor),
        Gives::Never => matches!(ty, Ty::Never | Ty::None),
    }
}

/// What a call of a function of the host library agrees with: its rule.
pub(super) fn verify(function: Builtin, args: &[TExpr], ty: &Ty, span: Span) -> Agrees {
    let (name, rule) = (function.name(), function.def().rule);
    let (params, result) = match rule {
        Rule::Params(params, result) => (params, result),
        Rule::By(holds) => {
            let tys: Vec<&Ty> = args.iter().map(|a| &a.ty).collect();
            return if holds(&tys, ty) { Ok(()) } else { disagrees(name, &tys, ty, span) };
        }
    };
    count("arguments", args.len(), params.len(), span)?;
    for (param, arg) in params.iter().zip(args) {
        if !takes(param.kind, &arg.ty) {
            return wrong(&format!("`{}` of `{name}` is `{}`", param.name, arg.ty), arg.span);
        }
    }
    if gives(result, ty) { Ok(()) } else { wrong(&format!("`{name}` gives `{ty}`"), span) }
}

fn disagrees(name: &str, args: &[&Ty], ty: &Ty, span: Span) -> Agrees {
    let args: Vec<String> = args.iter().map(|t| format!("`{t}`")).collect();
    wrong(&format!("`{name}` takes {} and gives `{ty}`", args.join(", ")), span)
}

/// What a method that changes a list or dict takes.
pub(super) fn verify_method(method: Method, args: &[TExpr], slot: &Ty, span: Span) -> Agrees {
    let def = method.def();
    let fits = |takes: &Takes, ty: &Ty| match (takes, slot) {
        (Takes::Element, Ty::List(t)) => same_form(t, ty),
        (Takes::Key, Ty::Dict(k, _)) => same_form(k, ty),
        (Takes::Whole, _) => same_form(slot, ty) && matches!(ty, Ty::List(_) | Ty::Dict(..)),
        (Takes::Position, _) => matches!(ty, Ty::Int(_)),
        (Takes::Descending, _) => matches!(ty, Ty::Bool),
        (Takes::Element | Takes::Key, _) => false,
    };
    let holder = if def.of_dict { matches!(slot, Ty::Dict(..)) } else { matches!(slot, Ty::List(_)) };
    if holder && args.len() == def.takes.len() && def.takes.iter().zip(args).all(|(t, a)| fits(t, &a.ty)) {
        return Ok(());
    }
    disagrees(def.name, &args.iter().map(|a| &a.ty).collect::<Vec<_>>(), slot, span)
}
