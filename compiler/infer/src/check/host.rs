//! Functions that are in scope everywhere, and those of the built-in modules.

use super::args::{Slot, Value};
use super::cx::{Cx, behind, boolean, builtin, error_at, int, string};
use super::iterate::Seq;
use super::names::Meaning;
use super::scalars::{as_float, as_int};
use super::types::erase;
use crate::members::operator;
use std::sync::Arc;
use tessera_base::{Code, DType, Diagnostic, Size, Span};
use tessera_core::builtins;
use tessera_core::ir::*;
use tessera_core::ty::Ty;
use tessera_grammar::ast::{Arg, BinOp, CmpOp, Expr, ExprKind};

impl Cx<'_> {
    pub fn call_builtin(&mut self, name: &Arc<str>, args: &[Arg], span: Span, name_span: Span) -> TExpr {
        // These look at the syntax of their arguments.
        match &**name {
            "isinstance" => return self.isinstance(args, span),
            "io.read_table" => return self.read_table(args, span),
            "io.read_json" => return self.read_json(args, span),
            "io.read_onnx" | "io.read_onnx_weights" => return self.read_onnx(name, args, span),
            "range" => {
                return match self.range_args(args, span) {
                    Some(bounds) => builtin(Builtin::range, bounds.into(), Ty::List(Box::new(Ty::int())), span),
                    None => error_at(span),
                };
            }
            "zip" | "enumerate" | "reversed" => {
                let call = Expr {
                    kind: ExprKind::Call {
                        func: Box::new(Expr { kind: ExprKind::Name(name.clone()), span: name_span }),
                        args: args.to_vec(),
                    },
                    span,
                };
                return match self.seq(&call) {
                    Seq::Broken => error_at(span),
                    seq => self.seq_list(seq, span),
                };
            }
            "list" | "sorted" | "min" | "max" | "sum" | "any" | "all" if args.len() == 1 || &**name == "sorted" => {
                if let Some(first) = args.first()
                    && first.name.is_none()
                    && !first.star
                    && is_sequence_call(&first.value)
                {
                    // `list(range(n))`, `sum(zip(…))`: the sequence as a list.
                    let list = match self.seq(&first.value) {
                        Seq::Broken => error_at(span),
                        seq => self.seq_list(seq, first.value.span),
                    };
                    let mut list = list;
                    let more = self.right_of([&mut list], |cx| cx.args(&args[1..]));
                    let mut values = vec![Value { name: None, value: list }];
                    values.extend(more);
                    self.keep_written(values.iter_mut().map(|v| &mut v.value));
                    return self.call_builtin_values(name, values, span, name_span);
                }
            }
            // It is looked at before the program runs, and nothing of it runs then.
            "sys.advise" => {
                let advised = |cx: &mut Self| {
                    let values = cx.args(args);
                    cx.call_builtin_values(name, values, span, name_span)
                };
                return self.perhaps(|cx| cx.block(advised).1);
            }
            "tile.range" if self.in_kernel() => {
                return match self.range_args(args, span) {
                    Some(bounds) => builtin(Builtin::range, bounds.into(), Ty::List(Box::new(Ty::int())), span),
                    None => error_at(span),
                };
            }
            _ if name.starts_with("dist.") && builtins::is_layout(name) => {
                return self.dist(name, args, span, name_span);
            }
            _ if name.starts_with("tile.") && self.in_kernel() => return self.tile_call(name, args, span),
            _ => {}
        }
        let values = self.args(args);
        self.call_builtin_values(name, values, span, name_span)
    }

    pub fn call_builtin_values(&mut self, name: &Arc<str>, values: Vec<Value>, span: Span, name_span: Span) -> TExpr {
        if values.iter().any(|v| v.value.ty.is_error()) && self.unsupported(name, name_span).is_none() {
            return error_at(span);
        }
        match &**name {
            "op.scan" => return self.scan(values, span),
            "op.fori" => return self.fori(values, span),
            "op.cond" => return self.cond(values, span),
            "op.while_loop" => return self.while_loop(values, span),
            "op.map" => return self.map_rows(values, span),
            "op.associative_scan" => return self.associative_scan(values, span),
            "graph.profile" => return self.profiled(values, span),
            "autodiff.grad"
            | "autodiff.value_and_grad"
            | "autodiff.vjp"
            | "autodiff.jvp"
            | "autodiff.checkpoint"
            | "autodiff.stop_gradient"
            | "autodiff.vmap" => return self.autodiff(name, values, span),
            "tree.map" | "tree.leaves" | "tree.zip" => return self.tree(name, values, span),
            "sys.advise" => return self.advise(values, span),
            "io.save" => return self.save_value(values, span),
            "io.draw" => return self.draw(name, Builtin::io_draw, values, span),
            "io.show" => return self.draw(name, Builtin::io_show, values, span),
            "io.load" => return self.load_value(values, span),
            "io.write_json" => return self.write_json(values, span),
            "io.write_table" => return self.write_table(values, span),
            _ => {}
        }
        if let Some(def) = operator(name) {
            return self.op_call(def, values, span, name_span);
        }
        if let Some(row) = builtins::find(name) {
            return self.row_call(row, values, span);
        }
        if let Some(d) = self.unsupported(name, name_span) {
            return self.fail(d);
        }
        match &**name {
            "print" => self.print(values, span),
            "len" | "abs" | "sum" | "any" | "all" | "int" | "float" | "bool" | "str" | "repr" | "list" | "tuple"
            | "dict" => {
                if let Some(v) = values.iter().find_map(|v| v.name.clone()).filter(|n| &*n.text != "start") {
                    let d = Diagnostic::new(Code::E0105, v.span, format!("`{name}` has no parameter `{}`", v.text));
                    return self.fail(match &**name {
                        "dict" => d.help(format!("write the entries out: `{{\"{}\": …}}`", v.text)),
                        _ => d,
                    });
                }
                self.simple(name, values, span)
            }
            "round" => self.round(values, span),
            "min" | "max" => self.least(name, values, span),
            "sorted" => self.sorted(values, span),
            "pow" | "divmod" => self.two_numbers(name, values, span),
            _ => {
                let d = Diagnostic::new(Code::E0690, name_span, format!("`{name}` is not supported yet"));
                let d = match &**name {
                    "map" | "filter" => d.help("write a comprehension: `[f(x) for x in xs if …]`"),
                    _ => d,
                };
                self.fail(d)
            }
        }
    }

    fn print(&mut self, values: Vec<Value>, span: Span) -> TExpr {
        self.host("prints", span);
        let (mut sep, mut end) = (string(" ", span), string("\n", span));
        let mut shown = vec![];
        for v in values {
            let Some(name) = v.name else {
                shown.push(self.in_words(v.value));
                continue;
            };
            let slot = match &*name.text {
                "sep" => &mut sep,
                "end" => &mut end,
                "flush" => continue,
                _ => {
                    let d =
                        Diagnostic::new(Code::E0105, name.span, format!("`print` has no parameter `{}`", name.text));
                    let names = ["sep", "end", "flush"];
                    let d = d.did_you_mean(name.span, &name.text, names, |d| d.note("it takes sep and end"));
                    return self.fail(d);
                }
            };
            if v.value.ty != Ty::Str {
                self.error(
                    Code::E0204,
                    v.value.span,
                    format!("`{}` is a `str`, and this is `{}`", name.text, v.value.ty),
                );
                return error_at(span);
            }
            *slot = v.value;
        }
        let mut args = vec![sep, end];
        args.extend(shown);
        builtin(Builtin::print, args, Ty::None, span)
    }

    /// A value that is to be printed; of a function the words for it, since at run time it is what it captures.
    pub fn in_words(&mut self, value: TExpr) -> TExpr {
        let Ty::FnRef(function) = &value.ty else { return value };
        let words = string(function.printed(), value.span);
        self.emit_effect(value);
        words
    }

    fn one(&mut self, name: &str, values: Vec<Value>, span: Span) -> Option<TExpr> {
        let slots = [Slot::plain("x", false)];
        let values = values.into_iter().map(|v| Value { name: None, ..v }).collect();
        self.match_params(name, &slots, values, span, None)?.into_iter().flatten().next()
    }

    fn simple(&mut self, name: &str, mut values: Vec<Value>, span: Span) -> TExpr {
        match (name, values.len()) {
            ("str", 0) => return string("", span),
            ("int", 0) => return int(0, span),
            ("float", 0) => return TExpr { kind: TKind::Float(0.0), ty: Ty::Float, span },
            ("bool", 0) => return boolean(false, span),
            ("list", 0) => return self.list_of(vec![], span),
            ("tuple", 0) => return TExpr { kind: TKind::Tuple(vec![]), ty: Ty::Tuple(vec![]), span },
            ("dict", 0) => {
                let ty = Ty::Dict(Box::new(Ty::Unknown), Box::new(Ty::Unknown));
                return TExpr { kind: TKind::Dict(vec![]), ty, span };
            }
            ("sum", 2) => {
                let start = values.pop().map(|v| v.value);
                let Some(x) = values.pop().map(|v| v.value) else { return error_at(span) };
                return self.sum(x, start, span);
            }
            _ => {}
        }
        let Some(x) = self.one(name, values, span) else { return error_at(span) };
        match name {
            "len" => self.len(x, span),
            "abs" => self.abs(x, span),
            "sum" => self.sum(x, None, span),
            "any" | "all" => self.any_all(name, x, span),
            "int" => self.int_of(x, span),
            "float" => self.float_of(x, span),
            "bool" => {
                let value = self.truth(x);
                TExpr { span, ..value }
            }
            "str" | "repr" if matches!(x.ty, Ty::FnRef(_)) => self.in_words(x),
            "str" | "repr" => {
                self.reads_data(&x);
                if x.ty == Ty::Str && name == "str" {
                    return TExpr { span, ..x };
                }
                let to = if name == "str" { Convert::Str } else { Convert::Repr };
                TExpr { kind: TKind::Convert { to, value: Box::new(x) }, ty: Ty::Str, span }
            }
            "list" => match x.ty {
                Ty::Tensor(_) | Ty::AnyTensor => {
                    let d = Diagnostic::new(Code::E0204, span, "a tensor is not made a list of its rows").help_about(
                        "run over the rows with `for row in {x}`, or take the numbers with `{x}.tolist()`",
                        &[("x", x.span)],
                    );
                    self.fail(d)
                }
                _ => match self.seq_of(x) {
                    Seq::Broken => error_at(span),
                    seq => self.seq_list(seq, span),
                },
            },
            "tuple" => match &x.ty {
                Ty::Tuple(_) => x,
                ty => {
                    let d = Diagnostic::new(
                        Code::E0204,
                        span,
                        format!(
                            "how many elements a `{ty}` has is not known before the program runs, so it is no tuple"
                        ),
                    )
                    .help("keep it a list");
                    self.fail(d)
                }
            },
            _ => match &x.ty {
                Ty::Dict(..) => x,
                ty => {
                    let d = Diagnostic::new(Code::E0690, span, format!("`dict` of `{ty}` is not supported yet"))
                        .help("write `{key: value, …}`");
                    self.fail(d)
                }
            },
        }
    }

    fn len(&mut self, x: TExpr, span: Span) -> TExpr {
        match &x.ty {
            Ty::Tensor(_) | Ty::AnyTensor => {
                let result = tessera_types::tensor::length(x, span);
                self.take(result)
            }
            Ty::Tuple(ts) => {
                let count = int(ts.len() as i64, span);
                behind(vec![x], count)
            }
            // A number of things: at least 0.
            Ty::Str | Ty::List(_) | Ty::Dict(..) => {
                let binding = self.sizes.binding.take();
                let ty = Ty::Int(Some(self.sizes.fresh("length")));
                self.sizes.binding = binding;
                builtin(Builtin::len, vec![x], ty, span)
            }
            ty => {
                let d = Diagnostic::new(Code::E0204, span, format!("`{ty}` has no length"));
                self.fail(d)
            }
        }
    }

    fn abs(&mut self, x: TExpr, span: Span) -> TExpr {
        if x.ty.is_tensor() {
            return self.op_named("abs", vec![x], span);
        }
        let x = as_int(x);
        match &x.ty {
            Ty::Int(n) => {
                let value = n.as_ref().and_then(Size::as_const).and_then(i64::checked_abs).map(Size::constant);
                builtin(Builtin::int_abs, vec![x], Ty::Int(value), span)
            }
            Ty::Float => builtin(Builtin::float_abs, vec![x], Ty::Float, span),
            ty => {
                let d = Diagnostic::new(Code::E0204, span, format!("`abs` takes a number, and this is `{ty}`"));
                self.fail(d)
            }
        }
    }

    fn sum(&mut self, x: TExpr, start: Option<TExpr>, span: Span) -> TExpr {
        if x.ty.is_tensor() {
            return self.op_named("sum", vec![x], span);
        }
        let items = match &x.ty {
            Ty::Tuple(_) => match self.seq_of(x) {
                Seq::Each(items) => {
                    let mut items = items.into_iter();
                    let first = start.or_else(|| items.next()).unwrap_or_else(|| int(0, span));
                    return items.fold(first, |a, b| self.binary(BinOp::Add, span, a, b, span));
                }
                _ => return error_at(span),
            },
            Ty::List(t) => (**t).clone(),
            ty => {
                let d = Diagnostic::new(
                    Code::E0204,
                    span,
                    format!("`sum` takes a list of numbers or a tensor, and this is `{ty}`"),
                );
                return self.fail(d);
            }
        };
        let value = match items {
            Ty::Int(_) | Ty::Unknown => builtin(Builtin::list_sum, vec![x], Ty::int(), span),
            Ty::Bool => {
                // Counts what is true.
                return self.fold(x, start.unwrap_or_else(|| int(0, span)), span);
            }
            Ty::Float => builtin(Builtin::list_sum, vec![x], Ty::Float, span),
            Ty::Tensor(_) => return self.sum_tensors(x, start, span),
            ty => {
                let d = Diagnostic::new(Code::E0204, span, format!("`sum` does not add `{ty}`"));
                let d = if ty == Ty::Str { d.help("`\"\".join(parts)` joins strings") } else { d };
                return self.fail(d);
            }
        };
        match start {
            None => value,
            Some(start) => self.binary(BinOp::Add, span, start, value, span),
        }
    }

    /// Adds the elements one after the other to `start`.
    fn fold(&mut self, list: TExpr, start: TExpr, span: Span) -> TExpr {
        self.scoped(|cx| {
            let ty = match &start.ty {
                Ty::Int(_) => Ty::int(),
                other => other.clone(),
            };
            let sum = cx.temp("sum", ty.clone(), span);
            cx.out.push(TStmt::Set(sum, start));
            let total = TExpr { kind: TKind::Local(sum), ty, span };
            let read = total.clone();
            cx.run(Seq::Value(list), span, &Default::default(), &mut |cx, item| {
                let next = cx.binary(BinOp::Add, span, read.clone(), item, span);
                cx.out.push(TStmt::Set(sum, next));
            });
            total
        })
    }

    fn sum_tensors(&mut self, list: TExpr, start: Option<TExpr>, span: Span) -> TExpr {
        if let Some(start) = start.filter(|s| s.ty.is_tensor()) {
            return self.fold(list, start, span);
        }
        // The first element starts the sum: 0 would change the type of an empty list's sum.
        self.scoped(|cx| {
            let list = cx.save("list", list);
            let count = builtin(Builtin::len, vec![list.clone()], Ty::int(), span);
            let stop = TStmt::Expr(builtin(Builtin::list_sum_of_none, vec![], Ty::None, span));
            let test = super::iterate::int_test(CmpOp::Eq, count, int(0, span), span);
            cx.out.push(TStmt::If { test, then: vec![stop], otherwise: vec![] });
            let first = cx.element_at(list.clone(), int(0, span), span);
            let rest = TExpr {
                kind: TKind::Slice {
                    base: Box::new(list.clone()),
                    low: Some(Box::new(int(1, span))),
                    high: None,
                    step: None,
                },
                ty: list.ty.clone(),
                span,
            };
            cx.fold(rest, first, span)
        })
    }

    fn any_all(&mut self, name: &str, x: TExpr, span: Span) -> TExpr {
        if x.ty.is_tensor() {
            return self.op_named(if name == "any" { "any" } else { "all" }, vec![x], span);
        }
        let x = match &x.ty {
            Ty::Tuple(_) => match self.seq_of(x) {
                Seq::Broken => return error_at(span),
                seq => self.seq_list(seq, span),
            },
            _ => x,
        };
        match &x.ty {
            Ty::List(t) if matches!(**t, Ty::Bool | Ty::Unknown) => {
                builtin(if name == "any" { Builtin::list_any } else { Builtin::list_all }, vec![x], Ty::Bool, span)
            }
            ty if ty.is_error() => error_at(span),
            ty => {
                let d =
                    Diagnostic::new(Code::E0204, span, format!("`{name}` takes a list of bools, and this is `{ty}`"))
                        .help(format!("`{name}([x > 0 for x in xs])`"));
                self.fail(d)
            }
        }
    }

    pub fn int_of(&mut self, x: TExpr, span: Span) -> TExpr {
        match &x.ty {
            Ty::Int(_) => TExpr { span, ..x },
            Ty::Bool => as_int(x),
            Ty::Tensor(_) | Ty::AnyTensor => {
                self.host(super::scalars::NUMBER, span);
                let result = tessera_types::tensor::to_int(x, span);
                self.take(result)
            }
            Ty::Float | Ty::Str => {
                TExpr { kind: TKind::Convert { to: Convert::Int, value: Box::new(x) }, ty: Ty::int(), span }
            }
            ty => {
                let d = Diagnostic::new(Code::E0204, span, format!("`{ty}` does not convert to `int`"));
                self.fail(d)
            }
        }
    }

    fn float_of(&mut self, x: TExpr, span: Span) -> TExpr {
        match &x.ty {
            Ty::Int(_) | Ty::Bool | Ty::Float => {
                self.block_number(&x);
                TExpr { span, ..as_float(x) }
            }
            Ty::Tensor(_) | Ty::AnyTensor => {
                self.host(super::scalars::NUMBER, span);
                let result = tessera_types::tensor::to_float(x, span);
                self.take(result)
            }
            Ty::Str => TExpr { kind: TKind::Convert { to: Convert::Float, value: Box::new(x) }, ty: Ty::Float, span },
            ty => {
                let d = Diagnostic::new(Code::E0204, span, format!("`{ty}` does not convert to `float`"));
                self.fail(d)
            }
        }
    }

    fn round(&mut self, values: Vec<Value>, span: Span) -> TExpr {
        let slots = Slot::built_in("round");
        let Some(given) = self.match_params("round", &slots, values, span, None) else { return error_at(span) };
        let mut given = given.into_iter();
        let (Some(x), digits) = (given.next().flatten(), given.next().flatten()) else { return error_at(span) };
        if x.ty.is_tensor() {
            let args = [x].into_iter().chain(digits).collect();
            return self.op_named("round", args, span);
        }
        let x = as_int(x);
        let digits = digits.filter(|d| d.ty != Ty::None).map(as_int);
        match (&x.ty, digits) {
            (Ty::Int(_), None) => TExpr { span, ..x },
            (Ty::Float, None) => builtin(Builtin::float_round, vec![x], Ty::int(), span),
            (Ty::Float, Some(d)) if matches!(d.ty, Ty::Int(_)) => {
                builtin(Builtin::float_round_digits, vec![x, d], Ty::Float, span)
            }
            (Ty::Int(_), Some(_)) => {
                let d = Diagnostic::new(Code::E0690, span, "rounding an int to digits is not supported yet")
                    .help("use `n // 10 * 10`");
                self.fail(d)
            }
            (ty, _) => {
                let d = Diagnostic::new(Code::E0204, span, format!("`round` takes a number, and this is `{ty}`"));
                self.fail(d)
            }
        }
    }

    fn least(&mut self, name: &str, values: Vec<Value>, span: Span) -> TExpr {
        if let Some(v) = values.iter().find_map(|v| v.name.clone()) {
            let d = Diagnostic::new(Code::E0105, v.span, format!("`{name}` has no parameter `{}`", v.text))
                .help("sort with a key and take the first: `sorted(xs, key=f)[0]`");
            return self.fail(d);
        }
        let mut items: Vec<TExpr> = values.into_iter().map(|v| v.value).collect();
        if items.len() == 1 {
            let Some(x) = items.pop() else { return error_at(span) };
            match &x.ty {
                Ty::Tensor(_) | Ty::AnyTensor => {
                    return self.op_named(if name == "min" { "min" } else { "max" }, vec![x], span);
                }
                Ty::List(t) => {
                    let ty = (**t).clone();
                    if !self.sortable(&ty, span) {
                        return error_at(span);
                    }
                    let ty = if ty == Ty::Unknown { Ty::int() } else { ty };
                    return builtin(
                        if name == "min" { Builtin::list_min } else { Builtin::list_max },
                        vec![x],
                        ty,
                        span,
                    );
                }
                Ty::Tuple(ts) if !ts.is_empty() => match self.seq_of(x) {
                    Seq::Each(each) => items = each,
                    _ => return error_at(span),
                },
                Ty::Str => {
                    let list = builtin(Builtin::str_list, vec![x], Ty::List(Box::new(Ty::Str)), span);
                    return builtin(
                        if name == "min" { Builtin::list_min } else { Builtin::list_max },
                        vec![list],
                        Ty::Str,
                        span,
                    );
                }
                ty => {
                    let d = Diagnostic::new(
                        Code::E0204,
                        span,
                        format!("`{name}` takes a list or several values, and this is `{ty}`"),
                    );
                    return self.fail(d);
                }
            }
        }
        if items.is_empty() {
            self.error(Code::E0104, span, format!("`{name}` needs at least one value"));
            return error_at(span);
        }
        if items.iter().any(|i| i.ty.is_tensor()) {
            let op = if name == "min" { "minimum" } else { "maximum" };
            let mut items = items.into_iter();
            let Some(first) = items.next() else { return error_at(span) };
            return items.fold(first, |a, b| self.op_named(op, vec![a, b], span));
        }
        let items = if items.iter().all(|i| i.ty.is_scalar()) {
            let floats = items.iter().any(|i| i.ty == Ty::Float);
            items.into_iter().map(|i| if floats { as_float(i) } else { as_int(i) }).collect::<Vec<_>>()
        } else {
            items
        };
        let ty = erase(&items[0].ty);
        if !items.iter().all(|i| erase(&i.ty) == ty) || !matches!(ty, Ty::Int(_) | Ty::Float | Ty::Str) {
            let list: Vec<String> = items.iter().map(|i| format!("`{}`", i.ty)).collect();
            let d = Diagnostic::new(Code::E0205, span, format!("`{name}` does not apply to {}", list.join(" and ")));
            return self.fail(d);
        }
        let symbolic = items.iter().map(|i| self.symbolic(i)).reduce(|a, b| match (a, b) {
            (Some(a), Some(b)) => super::symbolic::known(if name == "min" { a.least(&b) } else { a.greatest(&b) }),
            _ => None,
        });
        let ty = match ty {
            Ty::Int(_) => Ty::Int(symbolic.flatten()),
            other => other,
        };
        if items.len() == 1 {
            return items.into_iter().next().unwrap_or_else(|| error_at(span));
        }
        builtin(if name == "min" { Builtin::min } else { Builtin::max }, items, ty, span)
    }

    /// Whether elements of a type have an order; reports where not.
    pub fn sortable(&mut self, t: &Ty, span: Span) -> bool {
        let ok = match t {
            Ty::Int(_) | Ty::Float | Ty::Str | Ty::Bool | Ty::Unknown => true,
            Ty::Tuple(ts) => ts.iter().all(|t| matches!(t, Ty::Int(_) | Ty::Float | Ty::Str | Ty::Bool)),
            Ty::List(t) => matches!(**t, Ty::Int(_) | Ty::Float | Ty::Str),
            _ => false,
        };
        if !ok {
            self.error(Code::E0205, span, format!("elements of type `{t}` have no order"));
        }
        ok
    }

    fn sorted(&mut self, values: Vec<Value>, span: Span) -> TExpr {
        let slots = Slot::built_in("sorted");
        let Some(given) = self.match_params("sorted", &slots, values, span, None) else { return error_at(span) };
        let mut given = given.into_iter();
        let (Some(x), key, reverse) = (given.next().flatten(), given.next().flatten(), given.next().flatten()) else {
            return error_at(span);
        };
        if x.ty.is_tensor() {
            let d = Diagnostic::new(Code::E0204, span, "`sorted` gives a list; a tensor is sorted with `op.sort(x)`");
            return self.fail(d);
        }
        let list = match self.seq_of(x) {
            Seq::Broken => return error_at(span),
            seq => self.seq_list(seq, span),
        };
        let reverse = reverse.unwrap_or_else(|| boolean(false, span));
        if reverse.ty != Ty::Bool {
            self.error(Code::E0204, reverse.span, format!("`reverse` is a `bool`, and this is `{}`", reverse.ty));
            return error_at(span);
        }
        if let Some(key) = key.filter(|k| k.ty != Ty::None) {
            return self.sorted_by(list, key, reverse, span);
        }
        let Ty::List(t) = list.ty.clone() else { return error_at(span) };
        if !self.sortable(&t, span) {
            return error_at(span);
        }
        let ty = list.ty.clone();
        builtin(Builtin::list_sorted, vec![list, reverse], ty, span)
    }

    /// Sorted by the values that a function gives for the elements.
    pub fn sorted_by(&mut self, list: TExpr, key: TExpr, reverse: TExpr, span: Span) -> TExpr {
        self.scoped(|cx| {
            let list = cx.save("list", list);
            let keys = cx.temp("keys", Ty::List(Box::new(Ty::Unknown)), span);
            let empty = TExpr { kind: TKind::List(vec![]), ty: Ty::List(Box::new(Ty::Unknown)), span };
            cx.out.push(TStmt::Set(keys, empty));
            let mut found = Ty::Error;
            cx.run(Seq::Value(list.clone()), span, &Default::default(), &mut |cx, item| {
                let value = match key.ty.clone() {
                    Ty::FnRef(r) => {
                        cx.call_function(&r, Some(key.clone()), vec![Value { name: None, value: item }], span)
                    }
                    _ => error_at(span),
                };
                found = value.ty.clone();
                cx.append(keys, value, span);
            });
            if !matches!(key.ty, Ty::FnRef(_)) {
                let d = Diagnostic::new(
                    Code::E0204,
                    key.span,
                    format!("the key is a function of one element, and this is `{}`", key.ty),
                );
                return cx.fail(d);
            }
            if found.is_error() || !cx.sortable(&found, span) {
                return error_at(span);
            }
            let found = if let Ty::Int(_) = found { Ty::int() } else { found };
            let ty = Ty::List(Box::new(found));
            cx.refine_slot(super::env::Slot::Local(keys), &ty);
            let keys = TExpr { kind: TKind::Local(keys), ty, span };
            let ty = list.ty.clone();
            builtin(Builtin::list_sorted_by, vec![list, keys, reverse], ty, span)
        })
    }

    fn two_numbers(&mut self, name: &str, values: Vec<Value>, span: Span) -> TExpr {
        let slots = Slot::built_in(name);
        let Some(given) = self.match_params(name, &slots, values, span, None) else { return error_at(span) };
        let mut given = given.into_iter().flatten();
        let (Some(a), Some(b)) = (given.next(), given.next()) else { return error_at(span) };
        if name == "pow" {
            return self.binary(BinOp::Pow, span, a, b, span);
        }
        self.scoped(|cx| {
            let (a, b) = (cx.save("a", a), cx.save("b", b));
            let div = cx.binary(BinOp::FloorDiv, span, a.clone(), b.clone(), span);
            let rem = cx.binary(BinOp::Mod, span, a, b, span);
            super::iterate::tuple(vec![div, rem])
        })
    }

    /// `isinstance(x, T)`: decided by the type of `x`.
    fn isinstance(&mut self, args: &[Arg], span: Span) -> TExpr {
        let [x, classes] = args else {
            self.error(Code::E0104, span, "`isinstance` takes a value and a type");
            return error_at(span);
        };
        let x = self.expr(&x.value);
        if x.ty.is_error() {
            return error_at(span);
        }
        let list: Vec<&Expr> = match &classes.value.kind {
            ExprKind::Tuple(items) => items.iter().collect(),
            _ => vec![&classes.value],
        };
        let mut found = false;
        for class in list {
            let Some(fits) = self.is_instance_of(&x.ty, class) else { return error_at(span) };
            found |= fits;
        }
        behind(vec![x], boolean(found, span))
    }

    fn is_instance_of(&mut self, ty: &Ty, class: &Expr) -> Option<bool> {
        let meaning = match &class.kind {
            ExprKind::None => return Some(*ty == Ty::None),
            _ => self.meaning(class),
        };
        Some(match meaning {
            Some(Meaning::Builtin(name)) => match &*name {
                "int" => matches!(ty, Ty::Int(_) | Ty::Bool),
                "float" => *ty == Ty::Float,
                "str" => *ty == Ty::Str,
                "bool" => *ty == Ty::Bool,
                "list" => matches!(ty, Ty::List(_)),
                "tuple" => matches!(ty, Ty::Tuple(_)),
                "dict" => matches!(ty, Ty::Dict(..)),
                _ => return self.not_a_class(class),
            },
            Some(Meaning::DType(DType::Bool)) => *ty == Ty::Bool,
            Some(Meaning::Type(name)) => match name {
                "Tensor" => ty.is_tensor(),
                "Mesh" => matches!(ty, Ty::Mesh(_)),
                _ => matches!(ty, Ty::ShardSpec(_)),
            },
            Some(Meaning::Struct(id)) => matches!(ty, Ty::Struct(s) if s.item == id.0),
            Some(Meaning::Broken) => return None,
            _ => return self.not_a_class(class),
        })
    }

    fn not_a_class(&mut self, class: &Expr) -> Option<bool> {
        let d = Diagnostic::new(Code::E0204, class.span, "`isinstance` asks for a type")
            .note("`int`, `float`, `str`, `bool`, `list`, `tuple`, `dict`, `Tensor`, or a struct");
        self.report(d);
        None
    }
}

/// `range(…)`, `zip(…)` and such, where a list is wanted.
fn is_sequence_call(e: &Expr) -> bool {
    matches!(&e.kind, ExprKind::Call { func, .. } if matches!(&func.kind, ExprKind::Name(n) if matches!(&**n, "range" | "zip" | "enumerate" | "reversed")))
}
