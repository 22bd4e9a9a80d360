//! What an annotation says of a value where no call of its function has told more: enough to know its members.

use crate::analysis::Analysis;
use crate::symbol::Symbol;
use std::sync::Arc;
use tessera_base::Span;
use tessera_core::ty::{StructTy, Ty};
use tessera_grammar::ast::*;
use tessera_infer::db::Item;

/// Of a parameter whose name stands there.
pub fn of_parameter(cx: &Analysis, item: Item, place: Span) -> Option<Ty> {
    let functions = item.functions(cx.db);
    let params = functions.values().flat_map(|f| &f.sig.params);
    let annotated = params.into_iter().find(|p| p.name.span == place)?.ty.clone()?;
    ty(cx, item, &annotated)
}

/// The kind of value that an annotation names; sizes and element types stay open.
pub fn ty(cx: &Analysis, item: Item, e: &Expr) -> Option<Ty> {
    match &e.kind {
        ExprKind::Name(name) => match &**name {
            "Tensor" => Some(Ty::AnyTensor),
            "str" => Some(Ty::Str),
            "int" => Some(Ty::Int(None)),
            "float" => Some(Ty::Float),
            "bool" => Some(Ty::Bool),
            _ => of_struct(cx, item, e),
        },
        ExprKind::Index { base, index } => match &base.kind {
            ExprKind::Name(name) => match (&**name, &index[..]) {
                ("Tensor", _) => Some(Ty::AnyTensor),
                ("list", [of]) => Some(Ty::List(Box::new(ty(cx, item, &of.value).unwrap_or(Ty::Unknown)))),
                ("dict", [key, value]) => {
                    let of = |a: &Arg| Box::new(ty(cx, item, &a.value).unwrap_or(Ty::Unknown));
                    Some(Ty::Dict(of(key), of(value)))
                }
                ("tuple", all) => {
                    Some(Ty::Tuple(all.iter().map(|a| ty(cx, item, &a.value).unwrap_or(Ty::Unknown)).collect()))
                }
                _ => of_struct(cx, item, base),
            },
            _ => of_struct(cx, item, base),
        },
        ExprKind::Attr { .. } => of_struct(cx, item, e),
        _ => None,
    }
}

/// A struct by its definition; what its fields hold is asked of them one by one.
fn of_struct(cx: &Analysis, item: Item, e: &Expr) -> Option<Ty> {
    let path = crate::path::dotted(e)?;
    let Symbol::Struct(id) = cx.path_seen(item, e.span.start, &path)? else { return None };
    let def = cx.item(id)?.struct_def(cx.db).clone()?;
    let fields = def.fields.iter().map(|f| (f.name.text.clone(), Ty::Unknown)).collect();
    Some(Ty::Struct(Arc::new(StructTy { name: def.name.text.clone(), item: id.0, fields })))
}
