//! `io.save` and `io.load`: values of any type that holds data; `io.read_onnx`: a model as a function.

use super::args::{Slot, Value};
use super::cx::{Cx, boolean, builtin, error_at, string};
use super::names::Meaning;
use crate::db::{self, Target};
use std::sync::Arc;
use tessera_base::{Code, Diagnostic, Span};
use tessera_core::ir::*;
use tessera_core::ty::{StructTy, Ty};
use tessera_grammar::ast::Arg;
use tessera_resolve::facts::constant_path;
use tessera_types::unify::Role;

impl Cx<'_> {
    /// `io.save(path, value)`.
    pub fn save_value(&mut self, values: Vec<Value>, span: Span) -> TExpr {
        let slots = Slot::built_in("io.save");
        let Some(given) = self.match_params("io.save", &slots, values, span, None) else { return error_at(span) };
        let mut given = given.into_iter().flatten();
        let (Some(path), Some(value)) = (given.next(), given.next()) else { return error_at(span) };
        let path = self.stored_arg("io.save", "path", path, &Ty::Str);
        if path.ty.is_error() || !self.storable("io.save", &value) {
            return error_at(span);
        }
        self.host("calls `io.save`", span);
        builtin(Builtin::io_save, vec![path, value], Ty::None, span)
    }

    /// `io.draw(figure, path, width, height)`, `io.show(figure, width, height)`.
    pub fn draw(&mut self, name: &str, function: Builtin, values: Vec<Value>, span: Span) -> TExpr {
        let slots = Slot::built_in(name);
        let Some(given) = self.match_params(name, &slots, values, span, None) else { return error_at(span) };
        let mut args: Vec<TExpr> = given.into_iter().flatten().collect();
        if args.len() != slots.len() || !self.storable(name, &args[0]) {
            return error_at(span);
        }
        if !matches!(&args[0].ty, Ty::Struct(s) if &*s.name == "Figure") {
            let message = format!("`{name}` draws a figure of `std.plot`, and this is `{}`", args[0].ty);
            return self.fail(Diagnostic::new(Code::E0204, args[0].span, message));
        }
        for (slot, at) in slots.iter().zip(0..).skip(1) {
            let param = slot.name.to_string();
            let wanted = if param == "path" { Ty::Str } else { Ty::Int(None) };
            args[at] = self.stored_arg(name, &param, args[at].clone(), &wanted);
        }
        if args.iter().any(|a| a.ty.is_error()) {
            return error_at(span);
        }
        self.host(format!("calls `{name}`"), span);
        let ty = if function == Builtin::io_draw { Ty::Str } else { Ty::None };
        builtin(function, args, ty, span)
    }

    /// `io.load(path, like, prefix="", extra=False)`: what the file holds, in the form of `like`.
    pub fn load_value(&mut self, values: Vec<Value>, span: Span) -> TExpr {
        let slots = Slot::built_in("io.load");
        let Some(given) = self.match_params("io.load", &slots, values, span, None) else { return error_at(span) };
        let mut given = given.into_iter();
        let mut next = || given.next().flatten();
        let (Some(path), Some(like), prefix, extra) = (next(), next(), next(), next()) else { return error_at(span) };
        let path = self.stored_arg("io.load", "path", path, &Ty::Str);
        let prefix = prefix.unwrap_or_else(|| string("", span));
        let prefix = self.stored_arg("io.load", "prefix", prefix, &Ty::Str);
        let extra = extra.unwrap_or_else(|| boolean(false, span));
        let extra = self.stored_arg("io.load", "extra", extra, &Ty::Bool);
        if [&path, &prefix, &extra].iter().any(|a| a.ty.is_error()) || !self.storable("io.load", &like) {
            return error_at(span);
        }
        self.host("calls `io.load`", span);
        let ty = of_unknown_value(&like.ty);
        builtin(Builtin::io_load, vec![path, like, prefix, extra], ty, span)
    }

    /// `io.read_onnx(path)`: the function that the model computes; `io.read_onnx_weights(path)`: its weights.
    /// The file is read while the program is checked, so that its path has to be known then.
    pub fn read_onnx(&mut self, function: &str, args: &[Arg], span: Span) -> TExpr {
        let [path] = args else {
            let d = Diagnostic::new(Code::E0104, span, format!("`{function}` takes a path and nothing else"));
            return self.fail(d);
        };
        let member = if function == "io.read_onnx" { "model" } else { "weights" };
        let target = constant_path(&path.value).map(|key| db::model_name(&key));
        let target = target.and_then(|name| self.names_of().imports(self.db).get(&name).cloned());
        match target {
            Some(Target::File(id)) => match self.file_member(id, &member.into(), span) {
                Meaning::Broken => error_at(span),
                meaning => self.as_value(meaning, span),
            },
            Some(Target::Refused(why)) => {
                let d = Diagnostic::new(why.code, path.value.span, why.message);
                let d = why.notes.into_iter().fold(d, Diagnostic::note);
                self.fail(d)
            }
            _ => {
                let message = "the path of a model has to be known before the program runs";
                let d = Diagnostic::new(Code::E0213, path.value.span, message)
                    .note("the inputs, sizes and operators of the model are checked with the program")
                    .help(format!("write `{function}(\"file.onnx\")`; `sys.dir + \"…\"` and `fetched(\"name\") + \"…\"` are known too"));
                self.fail(d)
            }
        }
    }

    fn stored_arg(&mut self, function: &str, param: &str, value: TExpr, expected: &Ty) -> TExpr {
        let role = Role::Argument { function: function.to_owned(), param: param.to_owned() };
        self.expect(value, expected, param, Span::NONE, role)
    }

    /// Whether a value can be stored; reports the part that cannot.
    fn storable(&mut self, function: &str, value: &TExpr) -> bool {
        let d = if let Some((path, ty)) = leaf(&value.ty, &|ty| !is_data(ty)) {
            let what = part_of(path);
            Diagnostic::new(Code::E0204, value.span, format!("`{function}` takes data, and {what} is `{ty}`"))
                .note("tensors, numbers and strings, in structs, tuples, lists and dicts")
        } else if let Some((path, ty)) = leaf(&value.ty, &is_unfinished) {
            let text = format!("`{function}` takes whole values, and {} is `{ty}`", part_of(path));
            Diagnostic::new(Code::E0405, value.span, text)
                .note("each device has a part of it only, which is still to be put together with the others")
                .help("complete it first: `dist.complete(x)`")
        } else {
            return !value.ty.is_error();
        };
        self.report(d);
        false
    }
}

/// The step to the elements of a list or a dict.
const ELEMENT: &str = "…";

/// A part of a value in words, by the steps that lead there.
pub fn part_of(path: Vec<String>) -> String {
    match &path[..] {
        [] => "this".to_owned(),
        [.., last] if last == ELEMENT => "an element".to_owned(),
        path => format!("`{}`", path.join(".")),
    }
}

/// The first leaf of a type of which something holds, with the steps to it.
pub fn leaf<'t>(ty: &'t Ty, holds: &dyn Fn(&Ty) -> bool) -> Option<(Vec<String>, &'t Ty)> {
    let step = |name: String, ty| {
        leaf(ty, holds).map(|(mut path, ty)| {
            path.insert(0, name);
            (path, ty)
        })
    };
    match ty {
        Ty::List(t) | Ty::Dict(_, t) => step(ELEMENT.into(), t),
        Ty::Tuple(ts) => ts.iter().enumerate().find_map(|(i, t)| step(i.to_string(), t)),
        Ty::Struct(s) => s.fields.iter().find_map(|(name, t)| step(name.to_string(), t)),
        ty => holds(ty).then(|| (vec![], ty)),
    }
}

fn is_data(ty: &Ty) -> bool {
    match ty {
        Ty::Int(_) | Ty::Float | Ty::Bool | Ty::Str | Ty::None | Ty::Unknown | Ty::Error | Ty::Never => true,
        Ty::Tensor(_) | Ty::TensorPattern(_) | Ty::AnyTensor => true,
        Ty::List(_) | Ty::Dict(..) | Ty::Tuple(_) | Ty::Struct(_) => true,
        Ty::Fn(..) | Ty::FnRef(_) | Ty::DType(_) | Ty::Mesh(_) | Ty::ShardSpec(_) => false,
    }
}

/// Whether values of a type are data as a whole.
pub fn is_stored(ty: &Ty) -> bool {
    !matches!(ty, Ty::None | Ty::Never | Ty::Error) && leaf(ty, &|ty| !is_data(ty)).is_none()
}

/// Whether its parts are still to be put together.
fn is_unfinished(ty: &Ty) -> bool {
    matches!(ty, Ty::Tensor(t) if t.sharding.unfinished().is_some())
}

/// The type of another value of the same form: ints are no longer known.
fn of_unknown_value(ty: &Ty) -> Ty {
    match ty {
        Ty::Int(_) => Ty::int(),
        Ty::List(t) => Ty::List(Box::new(of_unknown_value(t))),
        Ty::Dict(k, t) => Ty::Dict(k.clone(), Box::new(of_unknown_value(t))),
        Ty::Tuple(ts) => Ty::Tuple(ts.iter().map(of_unknown_value).collect()),
        Ty::Struct(s) => {
            let fields = s.fields.iter().map(|(name, t)| (name.clone(), of_unknown_value(t))).collect();
            Ty::Struct(Arc::new(StructTy { fields, ..StructTy::clone(s) }))
        }
        other => other.clone(),
    }
}
