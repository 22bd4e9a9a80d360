//! What `for` and comprehensions run over.

use super::cx::{Cx, LoopFrame, builtin, int, read};
use super::env::Slot;
use super::flow::Path;
use super::loops::Times;
use super::names::Meaning;
use super::symbolic::dim;
use super::types::erase;
use tessera_base::{Code, Diagnostic, SizeVar, Span};
use tessera_core::ir::*;
use tessera_core::ty::Ty;
use tessera_grammar::ast::{Arg, BinOp, CmpOp, Expr, ExprKind};
use tessera_types::tensor::{GivenIndex, with_ways};

/// Something to run over.
pub enum Seq {
    Range {
        start: TExpr,
        stop: TExpr,
        step: TExpr,
    },
    /// A list, tensor, string or dict.
    Value(TExpr),
    /// Values that are known one by one: the body is written once for each.
    Each(Vec<TExpr>),
    Zip(Vec<Seq>),
    Enumerate(Box<Seq>, TExpr),
    /// Reported already.
    Broken,
}

impl Seq {
    /// What it computes before its first element.
    fn computed(&mut self) -> Vec<&mut TExpr> {
        match self {
            Seq::Range { start, stop, step } => vec![start, stop, step],
            Seq::Value(value) => vec![value],
            Seq::Each(items) => items.iter_mut().collect(),
            Seq::Zip(seqs) => seqs.iter_mut().flat_map(Seq::computed).collect(),
            Seq::Enumerate(seq, start) => seq.computed().into_iter().chain([start]).collect(),
            Seq::Broken => vec![],
        }
    }
}

/// More values than this are run over in a loop, if they are of one type.
const UNROLL_MAX: usize = 16;

impl Cx<'_> {
    pub fn seq(&mut self, e: &Expr) -> Seq {
        if let ExprKind::Call { func, args } = &e.kind
            && let ExprKind::Name(name) = &func.kind
            && matches!(&**name, "range" | "zip" | "enumerate" | "reversed")
            && matches!(self.name(name, func.span), Meaning::Builtin(_))
        {
            return match &**name {
                "range" => self.range(args, e.span),
                "zip" => self.zip(args, e.span),
                "enumerate" => self.enumerate(args, e.span),
                _ => self.reversed(args, e.span),
            };
        }
        if let ExprKind::Call { func, args } = &e.kind
            && self.in_kernel()
            && matches!(&func.kind, ExprKind::Attr { base, name } if &*name.text == "range" && self.is_module_path(base))
            && matches!(self.callee(func), Meaning::Builtin(n) if &*n == "tile.range")
        {
            return self.range(args, e.span);
        }
        let value = self.expr(e);
        self.seq_of(value)
    }

    pub fn seq_of(&mut self, value: TExpr) -> Seq {
        let span = value.span;
        match value.ty.clone() {
            Ty::Error | Ty::Never => Seq::Broken,
            Ty::List(_) | Ty::Str | Ty::Dict(..) => Seq::Value(value),
            Ty::Tensor(t) if !t.sharding.axes(0).is_empty() => {
                let axis = &t.sharding.axes(0)[0];
                let text = format!("this goes over the rows of a tensor, which `{axis}` splits");
                let d = Diagnostic::new(Code::E0406, span, text).here(t.to_string());
                self.report(with_ways(d, &t, 0, span, &|_| true));
                Seq::Broken
            }
            Ty::Tensor(t) if t.rank() > 0 => Seq::Value(value),
            Ty::Tuple(types) => {
                if let TKind::Tuple(items) = value.kind {
                    let items = items.into_iter().map(|i| self.save("item", i)).collect();
                    return Seq::Each(items);
                }
                let value = self.save("tuple", value);
                let field = |(i, ty)| TExpr { kind: TKind::Field(Box::new(value.clone()), i as u32), ty, span };
                Seq::Each(types.into_iter().enumerate().map(field).collect())
            }
            ty => {
                let d = Diagnostic::new(Code::E0204, span, format!("`{ty}` is not something to run over"));
                let d = match &ty {
                    Ty::Int(_) => d.help("write `range(n)`"),
                    Ty::Tensor(_) => d.note("a tensor of rank 0 has no rows"),
                    Ty::AnyTensor => d.help("annotate it first: `x: Tensor[N, D, f32] = …`"),
                    Ty::Struct(_) => d.help_about("`tree.leaves({x})` lists the tensors of a struct", &[("x", span)]),
                    _ => d.note("lists, tuples, strings, dicts, tensors and ranges are"),
                };
                self.report(d);
                Seq::Broken
            }
        }
    }

    fn plain(&mut self, args: &[Arg]) -> Option<Vec<TExpr>> {
        if let Some(arg) = args.iter().find(|a| a.name.is_some()) {
            let span = arg.name.as_ref().map_or(arg.value.span, |n| n.span);
            self.error(Code::E0105, span, "this function takes no keyword arguments");
            return None;
        }
        Some(self.args(args).into_iter().map(|a| a.value).collect())
    }

    /// Start, stop and step of `range(…)`.
    pub fn range_args(&mut self, args: &[Arg], span: Span) -> Option<[TExpr; 3]> {
        let values = self.plain(args)?;
        let mut ints = vec![];
        for v in values {
            let v = super::scalars::as_int(v);
            match &v.ty {
                Ty::Int(_) => ints.push(v),
                Ty::Error | Ty::Never => return None,
                ty => {
                    let d = Diagnostic::new(
                        Code::E0204,
                        v.span,
                        format!("the bounds of `range` are `int`, and this is `{ty}`"),
                    );
                    self.report(if *ty == Ty::Float {
                        d.help_about("`int({x})` drops the fraction, `//` divides whole numbers", &[("x", v.span)])
                    } else {
                        d
                    });
                    return None;
                }
            }
        }
        if let Some(step) = ints.get(2)
            && step.ty.const_int() == Some(0)
        {
            self.error(Code::E0204, step.span, "the step of `range` is zero");
            return None;
        }
        let mut ints = ints.into_iter();
        match (ints.next(), ints.next(), ints.next(), ints.next()) {
            (Some(stop), None, ..) => Some([int(0, span), stop, int(1, span)]),
            (Some(start), Some(stop), step, None) => Some([start, stop, step.unwrap_or_else(|| int(1, span))]),
            _ => {
                self.error(Code::E0104, span, "`range` takes a stop, or a start, a stop and a step");
                None
            }
        }
    }

    fn range(&mut self, args: &[Arg], span: Span) -> Seq {
        match self.range_args(args, span) {
            Some([start, stop, step]) => Seq::Range { start, stop, step },
            None => Seq::Broken,
        }
    }

    fn zip(&mut self, args: &[Arg], span: Span) -> Seq {
        if args.iter().any(|a| a.star || a.name.is_some()) || args.is_empty() {
            self.error(Code::E0104, span, "`zip` takes one or more sequences");
            return Seq::Broken;
        }
        let mut seqs: Vec<Seq> = vec![];
        for arg in args {
            let left = seqs.iter_mut().flat_map(Seq::computed);
            let seq = self.right_of(left, |cx| cx.seq(&arg.value));
            seqs.push(seq);
        }
        self.zip_of(seqs)
    }

    fn zip_of(&mut self, seqs: Vec<Seq>) -> Seq {
        if seqs.iter().any(|s| matches!(s, Seq::Broken)) {
            return Seq::Broken;
        }
        if seqs.iter().all(|s| matches!(s, Seq::Each(_))) {
            let lists: Vec<Vec<TExpr>> =
                seqs.into_iter().map(|s| if let Seq::Each(v) = s { v } else { vec![] }).collect();
            let n = lists.iter().map(Vec::len).min().unwrap_or(0);
            let rows = (0..n).map(|i| tuple(lists.iter().map(|l| l[i].clone()).collect())).collect();
            return Seq::Each(rows);
        }
        Seq::Zip(seqs)
    }

    fn enumerate(&mut self, args: &[Arg], span: Span) -> Seq {
        let (first, start) = match args {
            [first] => (first, None),
            [first, start] if start.name.as_ref().is_none_or(|n| &*n.text == "start") => (first, Some(start)),
            _ => {
                self.error(Code::E0104, span, "`enumerate` takes a sequence and a start");
                return Seq::Broken;
            }
        };
        let mut seq = self.seq(&first.value);
        let start = match start {
            Some(s) => self.right_of(seq.computed(), |cx| {
                let value = cx.expr(&s.value);
                cx.save("start", value)
            }),
            None => int(0, span),
        };
        if !matches!(start.ty, Ty::Int(_)) {
            if !start.ty.is_error() {
                self.error(
                    Code::E0204,
                    start.span,
                    format!("the start of `enumerate` is an `int`, and this is `{}`", start.ty),
                );
            }
            return Seq::Broken;
        }
        match seq {
            Seq::Broken => Seq::Broken,
            Seq::Each(items) if start.ty.const_int().is_some() => {
                let first = start.ty.const_int().unwrap_or(0);
                Seq::Each(
                    items.into_iter().zip(first..).map(|(item, i)| tuple(vec![int(i, item.span), item])).collect(),
                )
            }
            seq => Seq::Enumerate(Box::new(seq), start),
        }
    }

    fn reversed(&mut self, args: &[Arg], span: Span) -> Seq {
        let [arg] = args else {
            self.error(Code::E0104, span, "`reversed` takes one sequence");
            return Seq::Broken;
        };
        match self.seq(&arg.value) {
            Seq::Range { mut start, mut stop, step } if step.ty.const_int() == Some(1) => {
                self.keep_written([&mut start, &mut stop]);
                let less = |e: TExpr| TExpr {
                    ty: Ty::Int(match &e.ty {
                        Ty::Int(Some(n)) => Some(n.sub(&1.into())),
                        _ => None,
                    }),
                    span: e.span,
                    kind: TKind::Arith {
                        op: BinOp::Sub,
                        left: Box::new(e),
                        right: Box::new(int(1, span)),
                        int_operands: true,
                    },
                };
                Seq::Range { start: less(stop), stop: less(start), step: int(-1, span) }
            }
            Seq::Each(items) => Seq::Each(items.into_iter().rev().collect()),
            Seq::Broken => Seq::Broken,
            other => {
                let list = self.seq_list(other, span);
                if list.ty.is_error() {
                    return Seq::Broken;
                }
                let ty = list.ty.clone();
                Seq::Value(builtin(Builtin::list_reversed, vec![list], ty, span))
            }
        }
    }

    /// A sequence as a list.
    pub fn seq_list(&mut self, seq: Seq, span: Span) -> TExpr {
        match seq {
            Seq::Range { start, stop, step } => {
                builtin(Builtin::range, vec![start, stop, step], Ty::List(Box::new(Ty::int())), span)
            }
            Seq::Value(value) => match value.ty.clone() {
                Ty::List(_) => value,
                Ty::Str => builtin(Builtin::str_list, vec![value], Ty::List(Box::new(Ty::Str)), span),
                Ty::Dict(k, _) => builtin(Builtin::dict_keys, vec![value], Ty::List(k), span),
                _ => self.collect(Seq::Value(value), span),
            },
            Seq::Each(items) => self.list_of(items, span),
            Seq::Broken => super::cx::error_at(span),
            seq => self.collect(seq, span),
        }
    }

    /// Runs over `seq` and collects its elements in a list.
    fn collect(&mut self, seq: Seq, span: Span) -> TExpr {
        self.scoped(|cx| cx.collected(span, |cx, yield_| cx.run(seq, span, &Default::default(), yield_)))
    }

    /// `list.append(item)` on a local.
    pub fn append(&mut self, list: LocalId, item: TExpr, span: Span) {
        let place = TLvalue { root: TRoot::Local(list), steps: vec![] };
        self.out.push(TStmt::Mutate {
            place,
            change: TChange::Method { name: Method::list_append, args: vec![item] },
            span,
        });
    }

    /// Writes a loop over `seq`; `body` gets each element.
    pub fn run(
        &mut self,
        seq: Seq,
        span: Span,
        changed: &std::collections::BTreeSet<std::sync::Arc<str>>,
        body: &mut dyn FnMut(&mut Self, TExpr),
    ) {
        match seq {
            Seq::Broken => {
                // The body is still checked, with an element of which nothing is known.
                let times = Times { once: true, endless: false };
                let (_, _) = self.block(|cx| cx.looped(changed, times, &mut |cx| body(cx, super::cx::error_at(span))));
            }
            Seq::Each(items) => self.unroll(items, span, changed, body),
            Seq::Range { start, stop, step } => self.run_range(start, stop, step, span, changed, body),
            // Rows of a tensor on a mesh are found where they lie.
            Seq::Value(value) if !value.ty.on_a_mesh() || !value.ty.is_tensor() => {
                self.run_value(value, span, changed, body)
            }
            seq => self.run_counted(seq, span, changed, body),
        }
    }

    fn unroll(
        &mut self,
        items: Vec<TExpr>,
        span: Span,
        changed: &std::collections::BTreeSet<std::sync::Arc<str>>,
        body: &mut dyn FnMut(&mut Self, TExpr),
    ) {
        let one_type = items.windows(2).all(|w| erase(&w[0].ty) == erase(&w[1].ty));
        let same = one_type && items.windows(2).all(|w| w[0].ty == w[1].ty || matches!(w[0].ty, Ty::Int(_)));
        if (same && items.len() > 1) || (one_type && items.len() > UNROLL_MAX) {
            let list = self.list_of(items, span);
            return self.run_value(list, span, changed, body);
        }
        let last = items.len().saturating_sub(1);
        for (i, item) in items.into_iter().enumerate() {
            let (mark, facts) = (self.env.mark(), self.sizes.facts.clone());
            self.loops.push(LoopFrame { mark, breaks: vec![], continues: vec![], heads: vec![] });
            let (stmts, ()) = self.block(|cx| cx.own_keys(|cx| body(cx, item)));
            let Some(frame) = self.loops.pop() else { continue };
            if frame.breaks.is_empty() && frame.continues.is_empty() {
                self.out.extend(stmts);
                continue;
            }
            if !frame.breaks.is_empty() && i != last {
                let text = "`break` is not supported yet in a loop over a tuple of different types";
                let d = Diagnostic::new(Code::E0690, span, text);
                self.report(d.note("such a loop is written out, once for each element, and this would leave one only"));
            }
            // A loop of one turn, which its `break` and `continue` leave: not all of it has run behind it.
            self.sizes.facts = facts;
            let (var, at) = (self.temp("turn", Ty::int(), span), |n| int(n, span));
            self.out.push(TStmt::ForRange { var, start: at(0), stop: at(1), step: at(1), body: stmts, span });
            let end = Path { alive: self.alive, changes: self.env.rollback(mark) };
            let left = frame.breaks.into_iter().chain(frame.continues).map(|changes| Path { changes, alive: true });
            self.meet([end].into_iter().chain(left).collect());
        }
    }

    fn run_range(
        &mut self,
        start: TExpr,
        stop: TExpr,
        step: TExpr,
        span: Span,
        changed: &std::collections::BTreeSet<std::sync::Arc<str>>,
        body: &mut dyn FnMut(&mut Self, TExpr),
    ) {
        let once = match (start.ty.const_int(), stop.ty.const_int(), step.ty.const_int()) {
            (Some(a), Some(b), Some(s)) => (s > 0 && a < b) || (s < 0 && a > b),
            _ => false,
        };
        let var = self.temp("i", Ty::int(), span);
        let before = self.out.len();
        let body = self.looped(changed, Times { once, endless: false }, &mut |cx| {
            let size = SizeVar { natural: false, ..cx.sizes.fresh_var("i") };
            cx.assume_in_range(&size, &start, &stop, &step);
            cx.size_sources.insert(size.clone(), (read(Slot::Local(var), Ty::int(), span), false));
            let item = read(Slot::Local(var), Ty::Int(Some(tessera_base::Size::var(size.clone()))), span);
            body(cx, item);
            cx.size_sources.remove(&size);
        });
        let [start, stop, step] = [start, stop, step].map(|bound| self.computed_at(before, "bound", bound));
        self.out.push(TStmt::ForRange { var, start, stop, step, body, span });
    }

    fn run_value(
        &mut self,
        value: TExpr,
        span: Span,
        changed: &std::collections::BTreeSet<std::sync::Arc<str>>,
        body: &mut dyn FnMut(&mut Self, TExpr),
    ) {
        let element = match &value.ty {
            Ty::List(t) => (**t).clone(),
            Ty::Dict(k, _) => (**k).clone(),
            Ty::Str => Ty::Str,
            Ty::Tensor(t) => {
                let shape = t.shape[1..].to_vec();
                Ty::Tensor(tessera_base::TensorType { shape, dtype: t.dtype, sharding: Default::default() })
            }
            _ => Ty::Error,
        };
        let once = match (&value.kind, &value.ty) {
            (TKind::List(items), _) => !items.is_empty(),
            (_, Ty::Tensor(t)) => t.shape[0].as_const().is_some_and(|n| n > 0),
            _ => false,
        };
        let var = self.temp("item", element.clone(), span);
        let before = self.out.len();
        let body = self.looped(changed, Times { once, endless: false }, &mut |cx| {
            // Each pass over the body opens the element anew; the last one says what a turn has.
            let ty = cx.element(&element);
            cx.locals[var.0 as usize].ty = ty.clone();
            body(cx, read(Slot::Local(var), ty, span));
        });
        let iter = self.computed_at(before, "items", value);
        self.out.push(TStmt::ForEach { var, iter, body, span });
    }

    /// Over several sequences at once, by position.
    fn run_counted(
        &mut self,
        seq: Seq,
        span: Span,
        changed: &std::collections::BTreeSet<std::sync::Arc<str>>,
        body: &mut dyn FnMut(&mut Self, TExpr),
    ) {
        let Some(seq) = self.saved(seq, span) else {
            return self.run(Seq::Broken, span, changed, body);
        };
        let Some(stop) = self.seq_len(&seq, span) else {
            return self.run(Seq::Broken, span, changed, body);
        };
        self.run_range(int(0, span), stop, int(1, span), span, changed, &mut |cx, i| {
            let item = cx.seq_item(&seq, &i, span);
            body(cx, item);
        });
    }

    /// With every value in a local.
    fn saved(&mut self, seq: Seq, span: Span) -> Option<Seq> {
        Some(match seq {
            Seq::Zip(seqs) => Seq::Zip(seqs.into_iter().map(|s| self.saved(s, span)).collect::<Option<_>>()?),
            Seq::Enumerate(seq, start) => Seq::Enumerate(Box::new(self.saved(*seq, span)?), start),
            Seq::Broken => return None,
            Seq::Value(value) if value.ty.is_tensor() => Seq::Value(self.save("rows", value)),
            other => {
                let list = self.seq_list(other, span);
                if list.ty.is_error() {
                    return None;
                }
                Seq::Value(self.save("list", list))
            }
        })
    }

    fn seq_len(&mut self, seq: &Seq, span: Span) -> Option<TExpr> {
        match seq {
            Seq::Value(value) => Some(match &value.ty {
                Ty::Tensor(t) => dim(value, 0, &t.shape[0]),
                _ => builtin(Builtin::len, vec![value.clone()], Ty::int(), span),
            }),
            Seq::Enumerate(seq, _) => self.seq_len(seq, span),
            Seq::Zip(seqs) => {
                let mut lens = seqs.iter().map(|s| self.seq_len(s, span)).collect::<Option<Vec<_>>>()?;
                if lens.len() == 1 {
                    return lens.pop();
                }
                Some(builtin(Builtin::min, lens, Ty::int(), span))
            }
            _ => None,
        }
    }

    fn seq_item(&mut self, seq: &Seq, i: &TExpr, span: Span) -> TExpr {
        match seq {
            Seq::Value(value) if value.ty.is_tensor() => {
                let result = tessera_types::tensor::index(
                    &mut self.sizes,
                    value.clone(),
                    vec![GivenIndex::Value(i.clone())],
                    span,
                );
                self.take(result)
            }
            Seq::Value(value) => {
                let Ty::List(t) = &value.ty else { return super::cx::error_at(span) };
                let ty = self.element(&t.clone());
                TExpr { kind: TKind::Index(Box::new(value.clone()), Box::new(i.clone())), ty, span }
            }
            Seq::Enumerate(seq, start) => {
                let item = self.seq_item(seq, i, span);
                let count = match start.ty.const_int() {
                    Some(0) => i.clone(),
                    _ => self.binary(BinOp::Add, span, i.clone(), start.clone(), span),
                };
                tuple(vec![count, item])
            }
            Seq::Zip(seqs) => {
                let items = seqs.iter().map(|s| self.seq_item(s, i, span)).collect();
                tuple(items)
            }
            _ => super::cx::error_at(span),
        }
    }
}

pub fn tuple(items: Vec<TExpr>) -> TExpr {
    let span = items.iter().map(|i| i.span).reduce(|a, b| a.to(b)).unwrap_or_default();
    let ty = Ty::Tuple(items.iter().map(|i| i.ty.clone()).collect());
    TExpr { kind: TKind::Tuple(items), ty, span }
}

/// `a op b` of two ints as a condition.
pub fn int_test(op: CmpOp, a: TExpr, b: TExpr, span: Span) -> TExpr {
    TExpr { kind: TKind::Compare { op, left: Box::new(a), right: Box::new(b) }, ty: Ty::Bool, span }
}
