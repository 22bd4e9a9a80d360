//! Methods of strings, lists and dicts. Those that change a list or dict are statements on
//! the place where it is kept.

use super::args::{Slot, Value};
use super::container_literals::Wanted;
use super::cx::{Cx, builtin, error_at, int, none, read};
use super::env;
use super::scalars::as_int;
use super::types::{erase, fill, same_slot};
use crate::members::no_method;
use tessera_base::{Code, Diagnostic, Span};
use tessera_core::builtins::{self, call_text};
use tessera_core::ir::*;
use tessera_core::ty::Ty;
use tessera_grammar::ast::{Arg, Expr, Name};
use tessera_types::unify::{JoinKind, Role, join};

impl Cx<'_> {
    /// The value before the dot of a method call.
    pub fn receiver(&mut self, base: &Expr) -> TExpr {
        match super::lvalues::is_lvalue(base) {
            true => self.changing(|cx| cx.expr(base)),
            false => self.expr(base),
        }
    }

    pub fn method(&mut self, base: &Expr, mut receiver: TExpr, name: &Name, args: &[Arg], span: Span) -> TExpr {
        match receiver.ty.clone() {
            Ty::Error | Ty::Never => {
                self.args(args);
                error_at(span)
            }
            Ty::Tensor(_) | Ty::AnyTensor => {
                let values = self.right_of([&mut receiver], |cx| cx.args(args));
                self.tensor_method(receiver, name, values, span)
            }
            Ty::Str => self.str_method(receiver, name, args, span),
            Ty::List(t) => self.list_method(base, receiver, &t, name, args, span),
            Ty::Dict(k, v) => self.dict_method(base, receiver, (&k, &v), name, args, span),
            Ty::Struct(s) if s.fields.iter().any(|(n, _)| *n == name.text) => {
                let field = self.field(receiver, name, base.span.to(name.span));
                self.call_value(field, args, span)
            }
            ty => {
                self.args(args);
                let d = no_method(&ty, name);
                self.fail(d)
            }
        }
    }

    fn str_method(&mut self, mut receiver: TExpr, name: &Name, args: &[Arg], span: Span) -> TExpr {
        let mut values = self.right_of([&mut receiver], |cx| cx.args(args));
        if &*name.text == "format" {
            let TKind::Str(template) = &receiver.kind else {
                let d = Diagnostic::new(
                    Code::E0690,
                    span,
                    "`format` of a string that only the run knows is not supported yet",
                )
                .help("use an f-string");
                return self.fail(d);
            };
            let template = template.clone();
            self.keep_written(values.iter_mut().map(|v| &mut v.value));
            return self.format_method(&template, values, span);
        }
        let Some(row) = builtins::find(&format!("str.{}", name.text)) else {
            let d = no_method(&Ty::Str, name);
            return self.fail(d);
        };
        let mut all = vec![Value { name: None, value: receiver }];
        all.extend(values);
        self.row_call(row, all, span)
    }

    fn list_method(&mut self, base: &Expr, mut list: TExpr, t: &Ty, name: &Name, args: &[Arg], span: Span) -> TExpr {
        let word = &*name.text;
        if call_text(&format!("list.{word}")).is_none() {
            self.args(args);
            let d = no_method(&list.ty, name);
            return self.fail(d);
        }
        let slots = Slot::built_in(&format!("list.{word}"));
        let wanted = || {
            let ty = |s: &Slot| match &*s.name {
                "element" => t.clone(),
                "list" => Ty::List(Box::new(t.clone())),
                _ => Ty::Unknown,
            };
            slots.iter().map(|s| Wanted::plain(&s.name, ty(s))).collect()
        };
        // What changes a list looks at it when all else is computed.
        let left = [&mut list].into_iter().filter(|_| matches!(word, "index" | "count"));
        let values = self.right_of(left, |cx| cx.args_for(args, wanted));
        let Some(given) = self.match_params(&format!("list.{word}"), &slots, values, span, None) else {
            return error_at(span);
        };
        if given.iter().flatten().any(|v| v.ty.is_error()) {
            return error_at(span);
        }
        let mut given = given.into_iter();
        let first = given.next().flatten();
        let second = given.next().flatten();
        match (word, first) {
            ("copy", _) => TExpr { span, ..list },
            ("index" | "count", Some(x)) => {
                let Some(x) = self.element_value(x, t, word) else { return error_at(span) };
                let name = if word == "index" { Builtin::list_index } else { Builtin::list_count };
                builtin(name, vec![list, x], Ty::int(), span)
            }
            ("append", Some(x)) => self.grow(base, t, x, span, |x| (Method::list_append, vec![x])),
            ("insert", Some(i)) => {
                let Some(i) = self.int_arg(i, "the index") else { return error_at(span) };
                let Some(x) = second else { return error_at(span) };
                self.grow(base, t, x, span, move |x| (Method::list_insert, vec![i.clone(), x]))
            }
            ("extend", Some(more)) => {
                let seq = self.seq_of(more);
                let more = self.seq_list(seq, span);
                let Ty::List(e) = more.ty.clone() else { return error_at(span) };
                if super::size_checks::has_sizes(t) && self.is_promised(base) {
                    let Some((place, _)) = self.lvalue(base) else { return error_at(span) };
                    let (beside, role) = (self.beside(base, &place), Role::Other("the list".into()));
                    let list = beside.last().map_or(list.ty, |(_, l)| l.ty.clone());
                    let more = self.expect_beside(more, &list, "list", Span::NONE, role, beside);
                    return if more.ty.is_error() {
                        more
                    } else {
                        self.change(base, Method::list_extend, vec![more], span)
                    };
                }
                let more = match more.kind {
                    TKind::List(items) => {
                        let items: Vec<TExpr> = items.into_iter().map(|i| self.as_element(i, t)).collect();
                        if items.iter().any(|i| i.ty.is_error()) {
                            return error_at(span);
                        }
                        TExpr { kind: TKind::List(items), ..more }
                    }
                    _ if element_form(&e, t) != *e => return self.not_as_elements(base, t, &more),
                    _ => more,
                };
                let kind = more.kind.clone();
                let ty = element_form(&e, t);
                // Its elements have the form of those of the list already.
                self.grow(base, t, TExpr { ty, kind: TKind::None, span: more.span }, span, move |x| {
                    let ty = Ty::List(Box::new(x.ty.clone()));
                    (Method::list_extend, vec![TExpr { kind: kind.clone(), ty, span: x.span }])
                })
            }
            ("remove", Some(x)) => {
                let Some(x) = self.element_value(x, t, word) else { return error_at(span) };
                self.change(base, Method::list_remove, vec![x], span)
            }
            ("pop", index) => {
                let index = match index {
                    Some(i) => i,
                    None => int(-1, span),
                };
                let Some(index) = self.int_arg(index, "the index") else { return error_at(span) };
                self.pop(base, list, index, Method::list_pop, span)
            }
            ("sort", key) => {
                let reverse = second.unwrap_or_else(|| super::cx::boolean(false, span));
                if let Some(key) = key.filter(|k| k.ty != Ty::None) {
                    let sorted = self.sorted_by(list, key, reverse, span);
                    return self.replace(base, sorted, span);
                }
                if !self.sortable(t, span) {
                    return error_at(span);
                }
                self.change(base, Method::list_sort, vec![reverse], span)
            }
            ("reverse", _) => self.change(base, Method::list_reverse, vec![], span),
            ("clear", _) => self.change(base, Method::list_clear, vec![], span),
            _ => error_at(span),
        }
    }

    fn dict_method(
        &mut self,
        base: &Expr,
        mut dict: TExpr,
        (k, v): (&Ty, &Ty),
        name: &Name,
        args: &[Arg],
        span: Span,
    ) -> TExpr {
        let word = &*name.text;
        if call_text(&format!("dict.{word}")).is_none() {
            self.args(args);
            let d = no_method(&dict.ty, name);
            return self.fail(d);
        }
        let mut slots = Slot::built_in(&format!("dict.{word}"));
        // What lacks a default is told why one is needed.
        slots.iter_mut().filter(|s| &*s.name == "default").for_each(|s| s.optional = true);
        let whole = dict.ty.clone();
        let wanted = || {
            let ty = |s: &Slot| match &*s.name {
                "default" => v.clone(),
                "dict" => whole.clone(),
                _ => Ty::Unknown,
            };
            slots.iter().map(|s| Wanted::plain(&s.name, ty(s))).collect()
        };
        let left = [&mut dict].into_iter().filter(|_| word == "get");
        let values = self.right_of(left, |cx| cx.args_for(args, wanted));
        let Some(given) = self.match_params(&format!("dict.{word}"), &slots, values, span, None) else {
            return error_at(span);
        };
        if given.iter().flatten().any(|v| v.ty.is_error()) {
            return error_at(span);
        }
        let mut given = given.into_iter();
        let (first, second) = (given.next().flatten(), given.next().flatten());
        let list = |t: Ty| Ty::List(Box::new(t));
        match (word, first) {
            ("copy", _) => TExpr { span, ..dict },
            ("keys", _) => builtin(Builtin::dict_keys, vec![dict], list(k.clone()), span),
            ("values", _) => builtin(Builtin::dict_values, vec![dict], list(v.clone()), span),
            ("items", _) => builtin(Builtin::dict_items, vec![dict], list(Ty::Tuple(vec![k.clone(), v.clone()])), span),
            ("clear", _) => self.change(base, Method::dict_clear, vec![], span),
            ("get", Some(key)) => {
                let Some(default) = second.filter(|d| d.ty != Ty::None) else {
                    let d = Diagnostic::new(Code::E0104, span, "`get` needs a value for a missing key")
                        .note("a value is not sometimes None: every expression has one type")
                        .help("give a default: `d.get(key, 0)`, or ask first: `if key in d:`");
                    return self.fail(d);
                };
                let Some(key) = self.element_value(key, k, "the key") else { return error_at(span) };
                let Some(default) = self.element_value(default, v, "the default") else { return error_at(span) };
                let found = self.element(v);
                let Some(ty) = join(&mut self.sizes, &found, &default.ty, JoinKind::Elements, "n") else {
                    let role = Role::Other("the default".into());
                    let default = self.expect(default, &found, "default", Span::NONE, role);
                    return if default.ty.is_error() { default } else { error_at(span) };
                };
                builtin(Builtin::dict_get, vec![dict, key, default], ty, span)
            }
            ("pop", Some(key)) => {
                if let Some(default) = second {
                    let d = Diagnostic::new(Code::E0690, default.span, "`pop` with a default is not supported yet")
                        .help("ask first: `if key in d:`");
                    return self.fail(d);
                }
                let Some(key) = self.element_value(key, k, "the key") else { return error_at(span) };
                self.pop(base, dict, key, Method::dict_pop, span)
            }
            ("update", Some(other)) => {
                let role = Role::Other("the other dict".into());
                let beside = match super::size_checks::has_sizes(v) {
                    true => self.lvalue(base).map_or(vec![], |(place, _)| self.beside(base, &place)),
                    false => vec![],
                };
                let own = || Ty::Dict(Box::new(k.clone()), Box::new(v.clone()));
                let expected = beside.last().map_or_else(own, |(_, d)| d.ty.clone());
                let other = self.expect_beside(other, &expected, "dict", Span::NONE, role, beside);
                if other.ty.is_error() {
                    return error_at(span);
                }
                if let Some((_, ty)) = self.lvalue_ty(base)
                    && super::types::has_unknown(&ty)
                {
                    self.retype_lvalue(base, fill(&ty, &other.ty));
                }
                self.change(base, Method::dict_update, vec![other], span)
            }
            _ => error_at(span),
        }
    }

    fn int_arg(&mut self, value: TExpr, what: &str) -> Option<TExpr> {
        let value = as_int(value);
        match &value.ty {
            Ty::Int(_) => Some(value),
            Ty::Error | Ty::Never => None,
            ty => {
                self.error(Code::E0204, value.span, format!("{what} is an `int`, and this is `{ty}`"));
                None
            }
        }
    }

    /// A value to be looked up among elements of a type.
    fn element_value(&mut self, value: TExpr, t: &Ty, what: &str) -> Option<TExpr> {
        if same_slot(&erase(t), &erase(&value.ty)) {
            return Some(value);
        }
        let expected = super::types::erase(t);
        if expected == Ty::AnyTensor {
            self.error(Code::E0205, value.span, "tensors are not looked up in lists");
            return None;
        }
        let value = self.expect(value, &expected, what, Span::NONE, Role::Other("the value".into()));
        (!value.ty.is_error()).then_some(value)
    }

    /// Elements that would each have to be converted, in a list that is not written out.
    fn not_as_elements(&mut self, base: &Expr, t: &Ty, more: &TExpr) -> TExpr {
        let text = format!("the elements of this list are `{t}`, and this is `{}`", more.ty);
        let container = Ty::List(Box::new(t.clone()));
        let d = Diagnostic::new(Code::E0204, more.span, text).with_label(base.span, container.to_string());
        self.fail(match t {
            Ty::Float => d.help_about("convert the elements: `[float(v) for v in {x}]`", &[("x", more.span)]),
            Ty::Int(_) => d.help_about("convert the elements: `[int(v) for v in {x}]`", &[("x", more.span)]),
            _ => d.help("add them one by one with `append`"),
        })
    }

    /// A change that adds an element: the list's element type may become wider.
    fn grow(
        &mut self,
        base: &Expr,
        t: &Ty,
        x: TExpr,
        span: Span,
        make: impl Fn(TExpr) -> (Method, Vec<TExpr>),
    ) -> TExpr {
        let container = Ty::List(Box::new(t.clone()));
        let Some((place, _)) = self.lvalue(base) else { return error_at(span) };
        let Some(x) = self.stored(base, &place, (&container, t), x) else { return error_at(span) };
        let (name, args) = make(x);
        self.change(base, name, args, span)
    }

    /// Emits a change of the place `base`; its value is None.
    fn change(&mut self, base: &Expr, name: Method, args: Vec<TExpr>, span: Span) -> TExpr {
        let Some((place, _)) = self.lvalue(base) else { return error_at(span) };
        self.out.push(TStmt::Mutate { place, change: TChange::Method { name, args }, span });
        none(span)
    }

    /// Reads an entry, then removes it.
    fn pop(&mut self, base: &Expr, container: TExpr, key: TExpr, name: Method, span: Span) -> TExpr {
        if self.lvalue_ty(base).is_none() {
            let Some(_) = self.lvalue(base) else { return error_at(span) };
        }
        let key = self.save("key", key);
        let value = self.element_at(container, key.clone(), span);
        if value.ty.is_error() {
            return error_at(span);
        }
        let local = self.temp("popped", value.ty.clone(), span);
        let ty = value.ty.clone();
        self.out.push(TStmt::Set(local, value));
        let done = self.change(base, name, vec![key], span);
        if done.ty.is_error() {
            return done;
        }
        read(env::Slot::Local(local), ty, span)
    }

    fn replace(&mut self, base: &Expr, value: TExpr, span: Span) -> TExpr {
        if value.ty.is_error() {
            return error_at(span);
        }
        let Some((place, _)) = self.lvalue(base) else { return error_at(span) };
        self.set_lvalue(place, value, span);
        none(span)
    }
}

/// The type that an element has as one of a list of `t`.
fn element_form(e: &Ty, t: &Ty) -> Ty {
    match (e, t) {
        (Ty::Bool, Ty::Int(_)) => Ty::int(),
        (Ty::FnRef(_) | Ty::Unknown, Ty::Fn(..)) => t.clone(),
        _ => super::scalars::floats_of(e, t),
    }
}
