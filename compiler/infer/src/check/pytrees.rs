//! `tree.map`, `tree.leaves`, `tree.zip`: over structs, tuples, lists and dicts, written out along the
//! type.

use super::args::Value;
use super::cx::{Cx, builtin, error_at, int, string};
use super::iterate::{Seq, int_test, tuple};
use std::sync::Arc;
use tessera_base::{CmpOp, Code, Diagnostic, Span};
use tessera_core::ir::*;
use tessera_core::ty::{StructTy, Ty};

impl Cx<'_> {
    pub fn tree(&mut self, name: &str, values: Vec<Value>, span: Span) -> TExpr {
        if let Some(n) = values.iter().find_map(|v| v.name.clone()) {
            self.error(Code::E0105, n.span, format!("`{name}` has no parameter `{}`", n.text));
            return error_at(span);
        }
        let mut values: Vec<TExpr> = values.into_iter().map(|v| v.value).collect();
        self.scoped(|cx| match name {
            "tree.leaves" => {
                let [tree] = values.as_mut_slice() else {
                    cx.error(Code::E0104, span, "`tree.leaves` takes one value");
                    return error_at(span);
                };
                let tree = cx.save("tree", std::mem::replace(tree, error_at(span)));
                cx.leaves(tree, span)
            }
            "tree.zip" if values.len() >= 2 => {
                let trees: Vec<TExpr> = values.into_iter().map(|v| cx.save("tree", v)).collect();
                cx.map_trees(&mut |_, leaves| tuple(leaves), trees, span)
            }
            "tree.map" if values.len() >= 2 => {
                let f = values.remove(0);
                let trees: Vec<TExpr> = values.into_iter().map(|v| cx.save("tree", v)).collect();
                let Ty::FnRef(r) = f.ty.clone() else {
                    let d = Diagnostic::new(
                        Code::E0210,
                        f.span,
                        format!("`tree.map` takes a function first, and this is `{}`", f.ty),
                    );
                    return cx.fail(d);
                };
                cx.map_trees(
                    &mut |cx, leaves| {
                        let args = leaves.into_iter().map(|value| Value { name: None, value }).collect();
                        cx.call_function(&r, Some(f.clone()), args, span)
                    },
                    trees,
                    span,
                )
            }
            _ => {
                cx.error(
                    Code::E0104,
                    span,
                    format!(
                        "`{name}` takes {}",
                        if name == "tree.map" { "a function and one or more values" } else { "two or more values" }
                    ),
                );
                error_at(span)
            }
        })
    }

    /// `f` at every leaf; the trees have one form.
    fn map_trees(&mut self, f: &mut dyn FnMut(&mut Self, Vec<TExpr>) -> TExpr, trees: Vec<TExpr>, span: Span) -> TExpr {
        let Some(first) = trees.first().map(|t| t.ty.clone()) else { return error_at(span) };
        match &first {
            Ty::Struct(s) => {
                if let Some(other) = trees.iter().find(|t| !matches!(&t.ty, Ty::Struct(o) if o.item == s.item)) {
                    return self.other_form(&first, other, span);
                }
                let mut fields = vec![];
                let mut types = vec![];
                for (i, (name, _)) in s.fields.iter().enumerate() {
                    let parts = trees.iter().map(|t| part(t, i)).collect();
                    let value = self.map_trees(f, parts, span);
                    if value.ty.is_error() {
                        return error_at(span);
                    }
                    types.push((name.clone(), value.ty.clone()));
                    fields.push(value);
                }
                let ty = Ty::Struct(Arc::new(StructTy { fields: types, ..StructTy::clone(s) }));
                TExpr { kind: TKind::Struct(fields), ty, span }
            }
            Ty::Tuple(ts) => {
                let n = ts.len();
                if let Some(other) = trees.iter().find(|t| !matches!(&t.ty, Ty::Tuple(o) if o.len() == n)) {
                    return self.other_form(&first, other, span);
                }
                let items: Vec<TExpr> = (0..n)
                    .map(|i| {
                        let parts = trees.iter().map(|t| part(t, i)).collect();
                        self.map_trees(f, parts, span)
                    })
                    .collect();
                if items.iter().any(|i| i.ty.is_error()) {
                    return error_at(span);
                }
                let ty = Ty::Tuple(items.iter().map(|i| i.ty.clone()).collect());
                TExpr { kind: TKind::Tuple(items), ty, span }
            }
            Ty::List(_) => {
                if let Some(other) = trees.iter().find(|t| !matches!(&t.ty, Ty::List(_))) {
                    return self.other_form(&first, other, span);
                }
                self.map_lists(f, trees, span)
            }
            Ty::Dict(..) => {
                if let Some(other) = trees.iter().find(|t| !matches!(&t.ty, Ty::Dict(..))) {
                    return self.other_form(&first, other, span);
                }
                self.map_dicts(f, trees, span)
            }
            _ => f(self, trees),
        }
    }

    /// The others have the keys of the first, in whatever order.
    fn map_dicts(&mut self, f: &mut dyn FnMut(&mut Self, Vec<TExpr>) -> TExpr, trees: Vec<TExpr>, span: Span) -> TExpr {
        let (first, before) = (trees[0].clone(), self.sizes.next_id());
        let Ty::Dict(key, _) = first.ty.clone() else { return error_at(span) };
        let unknown = Ty::Dict(key.clone(), Box::new(Ty::Unknown));
        let dict = self.temp("dict", unknown.clone(), span);
        self.out.push(TStmt::Set(dict, TExpr { kind: TKind::Dict(vec![]), ty: unknown, span }));
        for other in &trees[1..] {
            let [a, b] = [&first, other].map(|d| builtin(Builtin::len, vec![d.clone()], Ty::int(), span));
            let (test, message) =
                (int_test(CmpOp::Eq, a, b, span), Some(string("the dicts have different keys", span)));
            self.out.push(TStmt::Assert { test, message, span });
        }
        let mut found = Ty::Error;
        self.run(Seq::Value(first), span, &Default::default(), &mut |cx, key| {
            let key = cx.save("key", key);
            let parts = trees.iter().map(|t| cx.value_at(t, &key, span)).collect();
            let value = cx.map_trees(f, parts, span);
            found = value.ty.clone();
            let place = TLvalue { root: TRoot::Local(dict), steps: vec![TStep::Key(key)] };
            cx.out.push(TStmt::Mutate { place, change: TChange::Set(value), span });
        });
        if found.is_error() {
            return error_at(span);
        }
        let found = self.escape(&found, before, "n");
        let found = if let Ty::Int(_) = found { Ty::int() } else { found };
        let ty = Ty::Dict(key, Box::new(found));
        self.refine_slot(super::env::Slot::Local(dict), &ty);
        TExpr { kind: TKind::Local(dict), ty, span }
    }

    fn value_at(&mut self, dict: &TExpr, key: &TExpr, span: Span) -> TExpr {
        let Ty::Dict(_, value) = &dict.ty else { return error_at(span) };
        let ty = self.element(value);
        let value = TExpr { kind: TKind::Index(Box::new(dict.clone()), Box::new(key.clone())), ty, span };
        self.save("leaf", value)
    }

    fn map_lists(&mut self, f: &mut dyn FnMut(&mut Self, Vec<TExpr>) -> TExpr, trees: Vec<TExpr>, span: Span) -> TExpr {
        let first = self.sizes.next_id();
        let list = self.temp("list", Ty::List(Box::new(Ty::Unknown)), span);
        let empty = TExpr { kind: TKind::List(vec![]), ty: Ty::List(Box::new(Ty::Unknown)), span };
        self.out.push(TStmt::Set(list, empty));
        let mut found = Ty::Error;
        let seq = Seq::Zip(trees.into_iter().map(Seq::Value).collect());
        self.run(seq, span, &Default::default(), &mut |cx, item| {
            let parts: Vec<TExpr> = match item.kind {
                TKind::Tuple(items) => items.into_iter().map(|i| cx.save("leaf", i)).collect(),
                _ => vec![item],
            };
            let value = cx.map_trees(f, parts, span);
            found = value.ty.clone();
            cx.append(list, value, span);
        });
        if found.is_error() {
            return error_at(span);
        }
        let found = match self.escape(&found, first, "n") {
            Ty::Int(_) => Ty::int(),
            other => other,
        };
        let ty = Ty::List(Box::new(found));
        self.refine_slot(super::env::Slot::Local(list), &ty);
        TExpr { kind: TKind::Local(list), ty, span }
    }

    fn other_form(&mut self, first: &Ty, other: &TExpr, span: Span) -> TExpr {
        let d = Diagnostic::new(
            Code::E0204,
            span,
            format!("the values have different forms: `{first}` and `{}`", other.ty),
        );
        self.fail(d)
    }

    /// All tensors of a value as one list.
    fn leaves(&mut self, tree: TExpr, span: Span) -> TExpr {
        let list = self.temp("leaves", Ty::List(Box::new(Ty::Unknown)), span);
        let empty = TExpr { kind: TKind::List(vec![]), ty: Ty::List(Box::new(Ty::Unknown)), span };
        self.out.push(TStmt::Set(list, empty));
        let first = self.sizes.next_id();
        let mut element = Ty::Unknown;
        if !self.add_leaves(tree, list, &mut element, span) {
            return error_at(span);
        }
        let element = self.escape(&element, first, "n");
        let ty = Ty::List(Box::new(element));
        self.refine_slot(super::env::Slot::Local(list), &ty);
        TExpr { kind: TKind::Local(list), ty, span }
    }

    fn add_leaves(&mut self, tree: TExpr, list: LocalId, element: &mut Ty, span: Span) -> bool {
        match tree.ty.clone() {
            Ty::Struct(s) => (0..s.fields.len()).all(|i| self.add_leaves(part(&tree, i), list, element, span)),
            Ty::Tuple(ts) => (0..ts.len()).all(|i| self.add_leaves(part(&tree, i), list, element, span)),
            Ty::List(_) => {
                let mut ok = true;
                self.run(Seq::Value(tree), span, &Default::default(), &mut |cx, item| {
                    ok &= cx.add_leaves(item, list, element, span);
                });
                ok
            }
            Ty::Dict(_, value) => {
                let values = builtin(Builtin::dict_values, vec![tree], Ty::List(value), span);
                self.add_leaves(values, list, element, span)
            }
            Ty::None => true,
            ty => {
                let plain = if let Ty::Int(_) = ty { Ty::int() } else { ty.clone() };
                let Some(wider) = self.widen_element(element, &plain) else {
                    let d = Diagnostic::new(
                        Code::E0209,
                        span,
                        format!("the leaves have different types: `{element}` and `{ty}`"),
                    )
                    .note("a list has one element type")
                    .help(
                        "`tree.map(f, t)` goes over leaves of several types; convert them, or list those of one type",
                    );
                    self.report(d);
                    return false;
                };
                *element = wider;
                self.append(list, tree, span);
                true
            }
        }
    }
}

fn part(tree: &TExpr, i: usize) -> TExpr {
    let ty = match &tree.ty {
        Ty::Struct(s) => s.fields.get(i).map(|(_, t)| t.clone()),
        Ty::Tuple(ts) => ts.get(i).cloned(),
        _ => None,
    };
    let Some(ty) = ty else { return int(0, tree.span) };
    TExpr { kind: TKind::Field(Box::new(tree.clone()), i as u32), ty, span: tree.span }
}
