//! Expressions.

use super::cx::{Cx, boolean, error_at, none, string, wrap};
use super::names::Meaning;
use super::scalars::with_floats;
use super::types::{BUILTIN_ITEM, erase, has_unknown};
use std::sync::Arc;
use tessera_base::{Code, Diagnostic, Size, SizeVar, Span};
use tessera_core::ir::*;
use tessera_core::sizes::subst_ty;
use tessera_core::ty::{FnRefTy, Ty};
use tessera_grammar::ast::{BinOp, Expr, ExprKind, Name, UnOp};
use tessera_types::unify::{JoinKind, join, join_diagnostic};

impl Cx<'_> {
    pub fn expr(&mut self, e: &Expr) -> TExpr {
        let value = match self.met.enter() {
            true => self.expr_inner(e),
            false => self.fail(
                Diagnostic::new(Code::E0901, e.span, "the program is nested too deeply")
                    .help("split the expression, or annotate the functions that call each other"),
            ),
        };
        self.met.leave();
        self.env.note(e.span, &value);
        if value.ty == Ty::Never {
            // Whatever wants the value never gets it; the call is made all the same.
            let span = value.span;
            self.out.push(TStmt::Expr(value));
            self.alive = false;
            return error_at(span);
        }
        if value.ty == Ty::Error && self.alive && !self.guessing && self.untyped.is_none() {
            self.untyped = Some(e.span);
        }
        value
    }

    /// An expression that stands for itself.
    pub fn expr_alone(&mut self, e: &Expr) -> TExpr {
        self.expr_inner(e)
    }

    fn expr_inner(&mut self, e: &Expr) -> TExpr {
        let span = e.span;
        match &e.kind {
            ExprKind::Name(name) => {
                let meaning = self.name(name, span);
                self.as_value(meaning, span)
            }
            ExprKind::Int(digits) => self.int_literal(digits, false, span),
            ExprKind::Float(v) => TExpr { kind: TKind::Float(v.value()), ty: Ty::Float, span },
            ExprKind::Str(text) => string(text.clone(), span),
            ExprKind::FStr(parts) => self.format(parts, span),
            ExprKind::Bool(b) => boolean(*b, span),
            ExprKind::None => none(span),
            ExprKind::Ellipsis => {
                self.error(Code::E0204, span, "`...` has a meaning only in an index or a type");
                error_at(span)
            }
            ExprKind::Tuple(items) => {
                let items = self.operands(items);
                if self.guessing && items.iter().any(|i| i.ty.is_error()) {
                    return error_at(span);
                }
                let ty = Ty::Tuple(items.iter().map(|i| never_to_error(&i.ty)).collect());
                TExpr { kind: TKind::Tuple(items), ty, span }
            }
            ExprKind::List(items) => {
                let items = self.operands(items);
                self.list_of(items, span)
            }
            ExprKind::Dict(pairs) => self.dict(pairs, span),
            ExprKind::Unary { op: UnOp::Neg, operand } if matches!(operand.kind, ExprKind::Int(_)) => {
                match &operand.kind {
                    ExprKind::Int(digits) => self.int_literal(digits, true, span),
                    _ => error_at(span),
                }
            }
            ExprKind::Unary { op, operand } => {
                let x = self.expr(operand);
                self.unary(*op, x, span)
            }
            ExprKind::Binary { op, op_span, left, right } => self.binary_chain(e, *op, *op_span, left, right),
            ExprKind::Logic { and, left, right } => self.logic(*and, left, right, span),
            ExprKind::Compare { first, rest } => self.comparison(first, rest, span),
            ExprKind::Cond { test, then, otherwise } => self.conditional(test, then, otherwise, span),
            ExprKind::Lambda { .. } => self.lambda(e),
            ExprKind::Call { func, args } => self.call(func, args, span),
            ExprKind::Index { base, index } => self.index(base, index, span),
            ExprKind::Slice { .. } => {
                self.error(Code::E0211, span, "a slice has a meaning only in an index");
                error_at(span)
            }
            ExprKind::Attr { base, name } => self.attribute(e, base, name, span),
            ExprKind::ListComp { element, clauses } => self.comprehension(element, clauses, span),
            ExprKind::FnType { .. } => {
                self.error(Code::E0204, span, "a function type is not a value");
                error_at(span)
            }
            ExprKind::Error => error_at(span),
        }
    }

    /// Operators in a row are a deep tree to the left; it is walked without recursion.
    fn binary_chain(&mut self, e: &Expr, op: BinOp, op_span: Span, left: &Expr, right: &Expr) -> TExpr {
        let mut links = vec![(op, op_span, right, e.span)];
        let mut first = left;
        while let ExprKind::Binary { op, op_span, left, right } = &first.kind {
            links.push((*op, *op_span, right, first.span));
            first = left;
        }
        let mut value = self.expr(first);
        for (op, op_span, right, span) in links.into_iter().rev() {
            let right = self.right_of([&mut value], |cx| cx.expr(right));
            value = self.binary(op, op_span, value, right, span);
            value.span = span;
            self.env.note(span, &value);
        }
        value
    }

    fn int_literal(&mut self, digits: &str, negative: bool, span: Span) -> TExpr {
        let text = if negative { format!("-{digits}") } else { digits.to_owned() };
        match text.parse::<i64>() {
            Ok(n) => super::cx::int(n, span),
            Err(_) => {
                let d = Diagnostic::new(Code::E0007, span, format!("{text} does not fit an `int`"))
                    .note("an `int` is a number from -9223372036854775808 to 9223372036854775807")
                    .fix("make it a float", span, format!("{text}.0"));
                self.fail(d)
            }
        }
    }

    /// A list of values: they agree on one type.
    pub fn list_of(&mut self, mut items: Vec<TExpr>, span: Span) -> TExpr {
        let mut ty = Ty::Unknown;
        let mut from = span;
        for item in &items {
            match join_elements(self, &ty, &item.ty) {
                Some(joined) => {
                    if ty == Ty::Unknown {
                        from = item.span;
                    }
                    ty = joined;
                }
                None => {
                    let fns = matches!((&ty, &item.ty), (Ty::FnRef(_) | Ty::Fn(..), Ty::FnRef(_) | Ty::Fn(..)));
                    if fns && let Some(common) = self.common_function_type(&items) {
                        let items = items.into_iter().map(|i| self.to_function_type(i, &common)).collect();
                        return TExpr { kind: TKind::List(items), ty: Ty::List(Box::new(common)), span };
                    }
                    let d = join_diagnostic("the elements of the list", item.span, (&ty, from), (&item.ty, item.span));
                    self.report(if fns { d } else { d.help("values of different types go into a tuple or a struct") });
                    ty = Ty::Error;
                    break;
                }
            }
        }
        match self.fitted("the elements of the list", items, &ty) {
            Some(fitted) => items = fitted,
            None => return error_at(span),
        }
        let error = ty.is_error() && !items.is_empty();
        let ty = if error { Ty::Error } else { Ty::List(Box::new(ty)) };
        TExpr { kind: TKind::List(items), ty, span }
    }

    /// Values that agree on a type, with ints as floats where the others have floats. Reports where an int stands in a
    /// value that is not written out here, and so has the form of its own type.
    fn fitted(&mut self, what: &str, values: Vec<TExpr>, ty: &Ty) -> Option<Vec<TExpr>> {
        let fitted: Option<Vec<TExpr>> = values.iter().map(|v| with_floats(v.clone(), ty)).collect();
        if fitted.is_none() {
            let other = values.iter().find(|v| with_floats(TExpr::clone(v), ty).is_none())?;
            let first = values.iter().find(|v| erase(&v.ty) == erase(ty)).unwrap_or(other);
            let d = join_diagnostic(what, other.span, (&first.ty, first.span), (&other.ty, other.span));
            self.report(d.note("ints inside a value become floats only where it is written out"));
        }
        fitted
    }

    fn dict(&mut self, pairs: &[(Expr, Expr)], span: Span) -> TExpr {
        let mut out: Vec<(TExpr, TExpr)> = vec![];
        let (mut key, mut value) = (Ty::Unknown, Ty::Unknown);
        let mut first: Option<(Span, Span)> = None;
        for (k, v) in pairs {
            let left = out.iter_mut().flat_map(|(k, v)| [k, v]);
            let mut k = self.right_of(left, |cx| cx.expr(k));
            let left = out.iter_mut().flat_map(|(k, v)| [k, v]).chain([&mut k]);
            let v = self.right_of(left, |cx| cx.expr(v));
            if !matches!(k.ty, Ty::Str | Ty::Int(_) | Ty::Bool | Ty::Error | Ty::Never) {
                let d = Diagnostic::new(Code::E0204, k.span, format!("`{}` cannot be a key of a dict", k.ty))
                    .note("keys are `str`, `int` or `bool`");
                self.report(d);
                return error_at(span);
            }
            let at = *first.get_or_insert((k.span, v.span));
            for (ty, new, from, what) in
                [(&mut key, &k, at.0, "the keys of the dict"), (&mut value, &v, at.1, "the values of the dict")]
            {
                match join_elements(self, ty, &new.ty) {
                    Some(joined) => *ty = joined,
                    // Named tensors, such as the weights of a model: of any type.
                    None if ty.is_tensor() && new.ty.is_tensor() => *ty = Ty::AnyTensor,
                    None => {
                        let d = join_diagnostic(what, new.span, (ty, from), (&new.ty, new.span));
                        self.report(d);
                        return error_at(span);
                    }
                }
            }
            out.push((k, v));
        }
        let (keys, values): (Vec<_>, Vec<_>) = out.into_iter().unzip();
        let Some(values) = self.fitted("the values of the dict", values, &value) else { return error_at(span) };
        let out = keys.into_iter().zip(values).collect();
        if let Ty::Int(_) = key {
            key = Ty::int();
        }
        TExpr { kind: TKind::Dict(out), ty: Ty::Dict(Box::new(key), Box::new(value)), span }
    }

    fn logic(&mut self, and: bool, left: &Expr, right: &Expr, span: Span) -> TExpr {
        let l = self.expr(left);
        if l.ty.is_tensor() && matches!(&l.ty, Ty::Tensor(t) if t.rank() > 0) {
            let (word, op) = if and { ("and", "&") } else { ("or", "|") };
            let d = Diagnostic::new(Code::E0204, l.span, format!("`{word}` takes conditions, and this is {}", l.ty))
                .help(format!("element by element it is `{op}`, with parentheses around comparisons"));
            self.report(d);
            return error_at(span);
        }
        let l = self.truth(l);
        // Where the types decide, the other side is not looked at.
        if let Some(b) = self.decided_here(left, &l) {
            if b != and {
                return TExpr { span, ..l };
            }
            return self.scoped(|cx| {
                cx.emit_decided(l);
                let r = cx.expr(right);
                cx.truth(r)
            });
        }
        let mark = self.env.mark();
        // The right side is computed where the left one does not decide.
        let (stmts, r, ends) = self.side_where(&l, and, |cx| {
            let r = cx.expr(right);
            cx.truth(r)
        });
        let changes = self.env.rollback(mark);
        self.env.apply(changes);
        if ends && !l.ty.is_error() {
            // What is left is that the right side was not needed.
            let (then, otherwise) = if and { (stmts, vec![]) } else { (vec![], stmts) };
            let known = TExpr { kind: TKind::Bool(!and), ty: Ty::Bool, span };
            return wrap(vec![TStmt::If { test: l, then, otherwise }], known);
        }
        let r = wrap(stmts, r);
        if l.ty.is_error() || r.ty.is_error() {
            return error_at(span);
        }
        if let TKind::Bool(b) = r.kind
            && !matches!(right.kind, ExprKind::Bool(_))
            && b == and
        {
            return l;
        }
        TExpr { kind: TKind::Logic { and, left: Box::new(l), right: Box::new(r) }, ty: Ty::Bool, span }
    }

    fn conditional(&mut self, test: &Expr, then: &Expr, otherwise: &Expr, span: Span) -> TExpr {
        let condition = self.expr(test);
        let condition = self.truth(condition);
        if let Some(b) = self.decided_here(test, &condition) {
            return self.scoped(|cx| {
                cx.emit_decided(condition);
                cx.expr(if b { then } else { otherwise })
            });
        }
        let (then, a, a_ends) = self.side_where(&condition, true, |cx| cx.expr(then));
        let (otherwise, b, b_ends) = self.side_where(&condition, false, |cx| cx.expr(otherwise));
        if (a_ends || b_ends) && !condition.ty.is_error() {
            return self.one_side(condition, [(then, a, a_ends), (otherwise, b, b_ends)], span);
        }
        let (a, b) = (wrap(then, a), wrap(otherwise, b));
        match (&a.ty, &b.ty) {
            (Ty::Error, Ty::Error) => error_at(span),
            // The other side of a recursion tells the type.
            (Ty::Error, _) if self.guessing => b,
            (_, Ty::Error) if self.guessing => a,
            (Ty::Error, _) | (_, Ty::Error) => error_at(span),
            _ if condition.ty.is_error() => error_at(span),
            _ => self.either(condition, a, b, span),
        }
    }

    /// A conditional expression of which one side or both never give anything.
    fn one_side(&mut self, test: TExpr, [a, b]: [(Vec<TStmt>, TExpr, bool); 2], span: Span) -> TExpr {
        let ((then, a, a_ends), (otherwise, b, b_ends)) = (a, b);
        match (a_ends, b_ends) {
            (true, true) => {
                self.out.push(TStmt::If { test, then, otherwise });
                self.alive = false;
                error_at(span)
            }
            (true, false) => {
                let ended = TStmt::If { test, then, otherwise: vec![] };
                wrap([vec![ended], otherwise].concat(), b)
            }
            (false, _) => {
                let ended = TStmt::If { test, then: vec![], otherwise };
                wrap([vec![ended], then].concat(), a)
            }
        }
    }

    /// `a if condition else b` of checked parts.
    pub fn either(&mut self, condition: TExpr, a: TExpr, b: TExpr, span: Span) -> TExpr {
        let (mut a, mut b) = (a, b);
        let ty = match join(&mut self.sizes, &a.ty, &b.ty, JoinKind::Elements, "n") {
            Some(ty) => ty,
            None => match self.common_function_type(&[a.clone(), b.clone()]) {
                Some(common) => {
                    a = self.to_function_type(a, &common);
                    b = self.to_function_type(b, &common);
                    common
                }
                None => {
                    let d = join_diagnostic("the conditional expression", span, (&a.ty, a.span), (&b.ty, b.span));
                    return self.fail(d);
                }
            },
        };
        let parts = self.fitted("the conditional expression", vec![a, b], &ty);
        let mut parts = parts.into_iter().flatten();
        let (Some(mut a), Some(mut b)) = (parts.next(), parts.next()) else { return error_at(span) };
        if has_unknown(&a.ty) {
            a.ty = ty.clone();
        }
        if has_unknown(&b.ty) {
            b.ty = ty.clone();
        }
        let kind = TKind::Cond { test: Box::new(condition), then: Box::new(a), otherwise: Box::new(b) };
        TExpr { kind, ty, span }
    }

    // ---- Parts ---------------------------------------------------------------------------------

    fn attribute(&mut self, e: &Expr, base: &Expr, name: &Name, span: Span) -> TExpr {
        if let Some(meaning) = self.meaning(e) {
            return self.as_value(meaning, span);
        }
        let value = self.expr(base);
        self.field(value, name, span)
    }

    /// `value.name`
    pub fn field(&mut self, value: TExpr, name: &Name, span: Span) -> TExpr {
        match value.ty.clone() {
            Ty::Error | Ty::Never => error_at(span),
            Ty::Tensor(_) | Ty::AnyTensor => {
                let result = tessera_types::tensor::attr(&mut self.sizes, value, name, span);
                match self.take(result) {
                    // What is known of it stays known.
                    TExpr { kind: TKind::Block { stmts, value }, .. } if !stmts.iter().any(has_effect) => {
                        self.out.extend(stmts);
                        *value
                    }
                    found => found,
                }
            }
            Ty::Struct(s) => match s.fields.iter().position(|(n, _)| *n == name.text) {
                Some(i) => {
                    let ty = s.fields[i].1.clone();
                    TExpr { kind: TKind::Field(Box::new(value), i as u32), ty, span }
                }
                None => {
                    let d = self.no_field(&s, name);
                    self.fail(d)
                }
            },
            ty => {
                let d = Diagnostic::new(Code::E0103, name.span, format!("`{ty}` has no field `{}`", name.text));
                let methods = crate::members::methods(&ty);
                let d = match methods.iter().any(|m| *m == *name.text) {
                    true => d.help(format!("call it: `.{}(…)`", name.text)),
                    false => d.did_you_mean(name.span, &name.text, methods.iter().map(String::as_str), |d| match &ty {
                        Ty::Tuple(ts) if !ts.is_empty() => d.help("elements of a tuple are taken by number: `t[0]`"),
                        Ty::Dict(..) => d.help(format!("entries are taken by key: `d[\"{}\"]`", name.text)),
                        _ => d,
                    }),
                };
                self.fail(d)
            }
        }
    }

    fn no_field(&self, s: &tessera_core::ty::StructTy, name: &Name) -> Diagnostic {
        let d =
            Diagnostic::new(Code::E0103, name.span, format!("the struct `{}` has no field `{}`", s.name, name.text));
        d.did_you_mean(name.span, &name.text, s.fields.iter().map(|(n, _)| &**n), |d| {
            let list: Vec<String> = s.fields.iter().map(|(n, t)| format!("{n}: {t}")).collect();
            d.note(format!("it has {}", list.join(", ")))
        })
    }

    /// The symbolic value of a value, if it is an int.
    pub fn symbolic(&self, value: &TExpr) -> Option<Size> {
        match &value.ty {
            Ty::Int(n) => n.clone(),
            _ => None,
        }
    }

    /// The name of a built-in function that a value is.
    pub fn builtin_of(&self, ty: &Ty) -> Option<Arc<str>> {
        match ty {
            Ty::FnRef(r) if r.item == BUILTIN_ITEM && r.derived.is_none() => Some(FnRefTy::clone(r).name),
            _ => None,
        }
    }

    /// A callee in an expression, without turning names of functions into values.
    pub fn callee(&mut self, func: &Expr) -> Meaning {
        match self.meaning(func) {
            Some(meaning) => meaning,
            None => Meaning::Value(self.expr(func)),
        }
    }
}

/// The common type of elements: ints lose their values, ints among floats become floats.
pub fn join_elements(cx: &mut Cx, a: &Ty, b: &Ty) -> Option<Ty> {
    if *a == Ty::Unknown {
        return Some(match b {
            Ty::Int(_) => Ty::int(),
            Ty::Never => Ty::Unknown,
            other => other.clone(),
        });
    }
    if matches!(b, Ty::Unknown | Ty::Never) {
        return Some(a.clone());
    }
    let first = cx.sizes.next_id();
    let joined = join(&mut cx.sizes, a, b, JoinKind::Elements, "n")?;
    if joined == *a {
        return Some(joined);
    }
    // Sizes that differ between elements are another one in each.
    let each = |v: &SizeVar| (v.id >= first).then(|| Size::var(v.in_each()));
    cx.widen_element(a, b).or_else(|| Some(subst_ty(&joined, &mut |v| each(v))))
}

fn has_effect(s: &TStmt) -> bool {
    !matches!(s, TStmt::Expr(e) if !e.has_effect())
}

fn never_to_error(ty: &Ty) -> Ty {
    if *ty == Ty::Never { Ty::Error } else { ty.clone() }
}

/// A condition that the types decide: not a literal, which is only a short way to write a loop.
pub fn decided(test: &Expr, condition: &TExpr) -> Option<bool> {
    condition.known_bool().filter(|_| !matches!(test.kind, ExprKind::Bool(_)))
}
