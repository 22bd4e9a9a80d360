//! `graph.profile(f, *args)`: a function runs several times while it is measured.
//!
//! It becomes a loop over calls with marks between them, and `std.profile` makes a value of what was measured.

use super::args::{Slot, Value};
use super::cx::{Cx, boolean, builtin, error_at, int, string};
use super::iterate::{self, Seq};
use super::names::Meaning;
use super::serialization;
use crate::db::Target;
use std::sync::Arc;
use tessera_base::{Code, Diagnostic, Span};
use tessera_core::ir::*;
use tessera_core::ty::Ty;
use tessera_grammar::ast::BinOp;
use tessera_resolve::facts::PROFILES;
use tessera_types::unify::Role;

const NAME: &str = "graph.profile";

/// Parameters of the profile itself; all others are those of the function.
const OWN: [&str; 3] = ["runs", "warmup", "show"];

impl Cx<'_> {
    /// `graph.profile(f, *args, runs=10, warmup=3, show=True)`.
    pub fn profiled(&mut self, values: Vec<Value>, span: Span) -> TExpr {
        if values.iter().any(|v| v.value.ty.is_error()) {
            return error_at(span);
        }
        let is_own = |v: &Value| v.name.as_ref().is_some_and(|n| OWN.contains(&&*n.text));
        let (own, mut values): (Vec<Value>, Vec<Value>) = values.into_iter().partition(is_own);
        if values.is_empty() || values[0].name.is_some() {
            let d = Diagnostic::new(Code::E0104, span, format!("`{NAME}` takes a function and its arguments"));
            return self.fail(d.help(format!("write `{NAME}(f, x)`, not `{NAME}(f(x))`")));
        }
        let f = values.remove(0).value;
        if !matches!(f.ty, Ty::FnRef(_) | Ty::Fn(..)) {
            let text = format!("`{NAME}` takes a function and its arguments, and this is `{}`", f.ty);
            let d = Diagnostic::new(Code::E0210, f.span, text);
            return self.fail(d.help(format!("write `{NAME}(f, x)`, not `{NAME}(f(x))`")));
        }
        let Some([runs, warmup, show]) = self.own_of_profile(own, span) else { return error_at(span) };
        self.host("measures", span);
        let f = self.save("f", f);
        for v in &mut values {
            v.value = self.save("argument", v.value.clone());
        }
        let begin = vec![warmup.clone(), runs.clone()];
        self.emit_effect(builtin(Builtin::measure_begin, begin, Ty::None, span));
        let all = self.binary(BinOp::Add, span, warmup, runs, span);
        let turns = Seq::Range { start: int(0, span), stop: all, step: int(1, span) };
        let mut right = true;
        self.run(turns, span, &Default::default(), &mut |cx, _| {
            let call = cx.call_checked(&f, values.clone(), span);
            right &= !call.ty.is_error();
            let value = cx.kept_alive(call);
            cx.emit_effect(builtin(Builtin::measure_turn, vec![value], Ty::None, span));
        });
        if !right {
            return error_at(span);
        }
        let lines = builtin(Builtin::measure_end, vec![], Ty::List(Box::new(Ty::Str)), span);
        let name = match &f.ty {
            Ty::FnRef(r) => r.name.clone(),
            _ => "function".into(),
        };
        self.profile_of(vec![string(name, span), lines, show], span)
    }

    /// A call of a function value with checked arguments.
    fn call_checked(&mut self, f: &TExpr, values: Vec<Value>, span: Span) -> TExpr {
        match f.ty.clone() {
            Ty::FnRef(r) => self.call_function(&r, Some(f.clone()), values, span),
            Ty::Fn(params, ret) => self.call_erased_with(f.clone(), &params, &ret, values, span),
            _ => error_at(span),
        }
    }

    /// The parameters of the profile, complete.
    fn own_of_profile(&mut self, own: Vec<Value>, span: Span) -> Option<[TExpr; 3]> {
        let slots = OWN.map(|name| Slot::plain(name, true));
        let given = self.match_params(NAME, &slots, own, span, None)?;
        let mut given = given.into_iter();
        let mut next = |other: TExpr| given.next().flatten().unwrap_or(other);
        let all = [next(int(10, span)), next(int(3, span)), next(boolean(true, span))];
        let types = [Ty::Int(None), Ty::Int(None), Ty::Bool];
        let mut out = vec![];
        for ((value, ty), (name, least)) in all.into_iter().zip(types).zip(OWN.iter().zip([1, 0, 0])) {
            let known = value.ty.const_int().filter(|n| *n < least);
            if let (Some(n), Ty::Int(_)) = (known, &ty) {
                let text = format!("`{name}` of `{NAME}` is at least {least}, and here it is {n}");
                self.error(Code::E0711, value.span, text);
                return None;
            }
            let (exact, role) = (value.ty.clone(), Role::Argument { function: NAME.into(), param: name.to_string() });
            let value = self.expect(value, &ty, name, Span::NONE, role);
            if value.ty.is_error() {
                return None;
            }
            let value = self.save(name, value);
            out.push(if exact.const_int().is_some() { TExpr { ty: exact, ..value } } else { value });
        }
        out.try_into().ok()
    }

    /// What there is of a result when the program runs: who takes it makes sure that it is computed.
    fn kept_alive(&mut self, value: TExpr) -> TExpr {
        let span = value.span;
        match value.ty.clone() {
            ty if serialization::is_stored(&ty) => value,
            Ty::Tuple(types) => self.kept_parts(value, types),
            Ty::Struct(s) => self.kept_parts(value, s.fields.iter().map(|(_, ty)| ty.clone()).collect()),
            _ => {
                self.emit_effect(value);
                int(0, span)
            }
        }
    }

    /// The parts that are data.
    fn kept_parts(&mut self, value: TExpr, types: Vec<Ty>) -> TExpr {
        let span = value.span;
        let whole = self.save("result", value);
        let part = |(i, ty): (usize, Ty)| {
            let kind = TKind::Field(Box::new(whole.clone()), i as u32);
            serialization::is_stored(&ty).then_some(TExpr { kind, ty, span })
        };
        iterate::tuple(types.into_iter().enumerate().filter_map(part).chain([int(0, span)]).collect())
    }

    /// The value of `std.profile`.
    fn profile_of(&mut self, args: Vec<TExpr>, span: Span) -> TExpr {
        let Some(Target::File(id)) = self.names_of().imports(self.db).get(PROFILES).cloned() else {
            return error_at(span);
        };
        let Meaning::Def(item) = self.file_member(id, &Arc::from("made"), span) else { return error_at(span) };
        let made = self.def_value(item, span);
        let Ty::FnRef(r) = made.ty.clone() else { return error_at(span) };
        let args = args.into_iter().map(|value| Value { name: None, value }).collect();
        self.call_function(&r, Some(made), args, span)
    }
}
