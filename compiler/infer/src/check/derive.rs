//! `autodiff`: functions made of other functions.
//!
//! `autodiff.grad(f)` is a value that holds `f`. What its call computes is decided here, with the
//! arguments at hand; the derivative itself is formed when the call is traced.

use super::args::{Slot, Value};
use super::cx::{Cx, error_at};
use super::fns;
use super::mapped_rows::crossed;
use super::names::Meaning;
use super::scans::{part_of, stacked_at};
use super::types::{BUILTIN_ITEM, erase};
use crate::db::Target;
use indexmap::IndexMap;
use std::collections::BTreeSet;
use std::sync::Arc;
use tessera_base::near::nearest;
use tessera_base::{Code, DType, Diagnostic, ItemId, Span};
use tessera_core::ir::*;
use tessera_core::ty::{Derived, FnRefTy, GlobalKey, Grad, OutAxes, Ty};
use tessera_grammar::ast::{Expr, ExprKind};
use tessera_resolve::facts::CALLS;
use tessera_resolve::functions::FnSig;
use tessera_types::unify::{Role, assignable, mismatch_diagnostic};

/// A function at arguments, with what it gives.
struct Applied {
    f: TFunction,
    args: Vec<TExpr>,
    ret: Ty,
}

impl Cx<'_> {
    /// A call of a function of the module.
    pub fn autodiff(&mut self, name: &str, values: Vec<Value>, span: Span) -> TExpr {
        if self.local.is_some() && !matches!(name, "autodiff.checkpoint" | "autodiff.stop_gradient" | "autodiff.vmap") {
            let d = Diagnostic::new(Code::E0490, span, format!("`{name}` in per-device code is not supported yet"))
                .note("whose derivative it would be, that of one device or of all together, is not settled")
                .help("take the derivative outside, of the function that calls the per-device code");
            return self.fail(d);
        }
        match name {
            "autodiff.grad" | "autodiff.value_and_grad" => self.grad(name, values, span),
            "autodiff.checkpoint" => match self.function_and(name, &Slot::built_in(name), values, span) {
                Some((f, _)) => self.derived(f, vec![], Derived::Checkpoint, name, span),
                None => error_at(span),
            },
            "autodiff.stop_gradient" => {
                let given = self.match_params(name, &Slot::built_in(name), values, span, None);
                let Some(x) = given.and_then(|g| g.into_iter().flatten().next()) else { return error_at(span) };
                let ty = x.ty.clone();
                TExpr { kind: TKind::StopGradient(Box::new(x)), ty, span }
            }
            "autodiff.vmap" => self.vmap(values, span),
            "autodiff.jvp" => self.scoped(|cx| cx.jvp(values, span)),
            _ => self.scoped(|cx| cx.vjp(values, span)),
        }
    }

    /// The arguments of a function of the module, of which the first must be a function.
    fn function_and(
        &mut self,
        name: &str,
        slots: &[Slot],
        values: Vec<Value>,
        span: Span,
    ) -> Option<(TExpr, Vec<Option<TExpr>>)> {
        let mut given = self.match_params(name, slots, values, span, None)?.into_iter();
        let f = given.next().flatten()?;
        match &f.ty {
            Ty::FnRef(_) => return Some((f, given.collect())),
            ty if ty.is_error() => return None,
            _ => {}
        }
        let d = Diagnostic::new(Code::E0210, f.span, format!("`{name}` takes a function, and this is `{}`", f.ty));
        self.report(match f.ty {
            Ty::Fn(..) => d
                .note("which function it is must be known before the program runs")
                .help("pass the function itself or a lambda to an unannotated parameter"),
            _ => d.help(format!("write `{name}(f)(x)`: the derivative is a function too")),
        });
        None
    }

    /// A function value that holds the values given.
    pub fn derived(&mut self, f: TExpr, more: Vec<TExpr>, derived: Derived, name: &str, span: Span) -> TExpr {
        let mut captures = vec![("f".into(), f.ty.clone())];
        captures.extend(more.iter().enumerate().map(|(i, e)| (format!("x{i}").into(), e.ty.clone())));
        let of = match &f.ty {
            Ty::FnRef(r) => r.name.clone(),
            _ => "f".into(),
        };
        let ty = FnRefTy {
            name: format!("{name}({of})").into(),
            item: BUILTIN_ITEM,
            start: 0,
            captures,
            derived: Some(derived),
        };
        let captures = [f].into_iter().chain(more).collect();
        TExpr { kind: TKind::Closure { captures }, ty: Ty::FnRef(Arc::new(ty)), span }
    }

    fn grad(&mut self, name: &str, values: Vec<Value>, span: Span) -> TExpr {
        let Some((f, rest)) = self.function_and(name, &Slot::built_in(name), values, span) else {
            return error_at(span);
        };
        let mut rest = rest.into_iter();
        let (wrt, aux) = (rest.next().flatten(), rest.next().flatten());
        let aux = match aux.as_ref().map(|e| (&e.kind, e.span)) {
            None => false,
            Some((TKind::Bool(aux), _)) => *aux,
            Some((_, at)) => {
                let d = Diagnostic::new(Code::E0213, at, "`has_aux` must be `True` or `False` itself");
                return self.fail(d.note("it decides what the derivative gives"));
            }
        };
        let params = self.parameters(&f.ty);
        let (single, wrt) = match wrt {
            None => (true, Some(vec![0])),
            Some(TExpr { kind: TKind::Tuple(es) | TKind::List(es), .. }) => {
                (false, es.iter().map(|e| self.argument(e, params.as_deref())).collect())
            }
            Some(e) => (true, self.argument(&e, params.as_deref()).map(|i| vec![i])),
        };
        let Some(wrt) = wrt else { return error_at(span) };
        let value = name == "autodiff.value_and_grad";
        self.derived(f, vec![], Derived::Grad(Grad { wrt, single, value, aux }), name, span)
    }

    /// `vmap(f)`: `f` for every row of its arguments; `in_axes` names the dim or `None` for each, `out_axes` where it
    /// lies in the results.
    fn vmap(&mut self, values: Vec<Value>, span: Span) -> TExpr {
        let slots = Slot::built_in("autodiff.vmap");
        let Some((f, rest)) = self.function_and("autodiff.vmap", &slots, values, span) else { return error_at(span) };
        let mut rest = rest.into_iter();
        let (ins, outs) = (rest.next().flatten(), rest.next().flatten());
        let ins = match ins.map(|e| (self.axes(&e), e)) {
            None => None,
            Some((Some((false, all)), _)) if all == [Some(0)] => None,
            Some((Some((true, all)), _)) => Some(all),
            Some((Some((false, all)), _)) if all[0].is_some() => {
                // One for all arguments, of which there are as many as there are parameters.
                let count = self.parameters(&f.ty).map_or(1, |p| p.len());
                Some(vec![all[0]; count])
            }
            Some((_, e)) => {
                let d = Diagnostic::new(
                    Code::E0204,
                    e.span,
                    "`in_axes` is a dim, or a tuple of dims and `None`, one for each argument",
                );
                return self
                    .fail(d.note("`None` is for an argument that all share; dims are known before the program runs"));
            }
        };
        let outs = match outs.map(|e| (self.axes(&e), e)) {
            None => OutAxes::All(0),
            Some((Some((single, all)), _)) if all.iter().all(Option::is_some) => {
                let all: Vec<i64> = all.into_iter().flatten().collect();
                if single { OutAxes::Each(all) } else { OutAxes::All(all[0]) }
            }
            Some((_, e)) => {
                let message = "`out_axes` is a dim, or a tuple of dims, one for each result";
                return self.fail(Diagnostic::new(Code::E0204, e.span, message));
            }
        };
        self.derived(f, vec![], Derived::Vmap(ins, outs), "autodiff.vmap", span)
    }

    /// Dims or `None`, and whether they stand in a tuple; not empty.
    fn axes(&mut self, e: &TExpr) -> Option<(bool, Vec<Option<i64>>)> {
        let (tuple, list) = match &e.kind {
            TKind::Tuple(es) | TKind::List(es) => (true, es.clone()),
            _ => (false, vec![e.clone()]),
        };
        let all: Option<Vec<Option<i64>>> = list
            .iter()
            .map(|e| match (&e.kind, self.symbolic(e).and_then(|n| n.as_const())) {
                (TKind::None, _) => Some(None),
                (_, Some(axis)) => Some(Some(axis)),
                _ => None,
            })
            .collect();
        all.filter(|all| !all.is_empty()).map(|all| (tuple, all))
    }

    /// What `vmap` makes of a function at arguments.
    fn mapped(
        &mut self,
        axes: Option<&[Option<i64>]>,
        outs: &OutAxes,
        f: TExpr,
        args: Vec<Value>,
        span: Span,
    ) -> Option<Applied> {
        if let Some(named) = args.iter().find_map(|a| a.name.clone()) {
            self.error(
                Code::E0105,
                named.span,
                "the function that `autodiff.vmap` gives takes its arguments by position",
            );
            return None;
        }
        if let Some(axes) = axes.filter(|a| a.len() != args.len()) {
            let message = format!("`in_axes` speaks of {} arguments, and {} are given", axes.len(), args.len());
            self.error(Code::E0104, span, message);
            return None;
        }
        let on = |i: usize| axes.map_or(Some(0), |a| a[i]);
        let mut size = None;
        let mut rows = vec![];
        let front = self.fronts(&args, &on)?;
        for (i, arg) in args.iter().enumerate() {
            let (ty, mut own) = (arg.value.ty.clone(), None);
            let row = match on(i) {
                Some(axis) => part_of(&self.without_rows(&ty, &front), axis, &mut own),
                None => Some(ty.clone()),
            };
            let Some(row) = row.filter(|_| on(i).is_none() || own.is_some()) else {
                if !ty.is_error() {
                    let d = Diagnostic::new(
                        Code::E0204,
                        arg.value.span,
                        match on(i) {
                            None | Some(0) => {
                                format!("`autodiff.vmap` goes over the rows of tensors, and this is `{ty}`")
                            }
                            Some(axis) => {
                                format!("`autodiff.vmap` goes over dim {axis} of tensors, and this is `{ty}`")
                            }
                        },
                    );
                    self.report(d.help("name the arguments that all share with `None` in `in_axes`"));
                }
                return None;
            };
            if let (Some(have), Some(want)) = (&own, &size)
                && !self.same_size(want, have)
            {
                let message = match axes {
                    None => format!("the leading sizes differ: {want} and {have}"),
                    Some(_) => format!("the sizes that `autodiff.vmap` goes over differ: {want} and {have}"),
                };
                self.report(Diagnostic::new(Code::E0202, arg.value.span, message));
                return None;
            }
            size = size.or(own);
            rows.push(Value { name: None, value: self::row(row, arg.value.span) });
        }
        let Some(size) = size else {
            self.error(Code::E0204, span, "`autodiff.vmap` needs an argument with a leading dim to go over");
            return None;
        };
        let of = self.applied(f, rows, span)?;
        if of.args.len() != args.len() {
            self.error(Code::E0690, span, "`autodiff.vmap` of a function with arguments left out is not supported yet");
            return None;
        }
        if let Some(d) = crossed(&of.ret, &front, span) {
            self.report(d);
            return None;
        }
        let ret = match (outs, &of.ret) {
            (OutAxes::All(axis), ret) => stacked_at(ret, *axis, &size, &front),
            (OutAxes::Each(axes), Ty::Tuple(ts)) if ts.len() == axes.len() => {
                let all =
                    ts.iter().zip(axes).map(|(t, axis)| stacked_at(t, *axis, &size, &front)).collect::<Option<_>>();
                all.map(Ty::Tuple)
            }
            (OutAxes::Each(axes), ret) => {
                let message = format!("`out_axes` speaks of {} results, and the function gives `{ret}`", axes.len());
                self.error(Code::E0204, span, message);
                return None;
            }
        };
        let Some(ret) = ret.map(|ret| self.with_rows(ret)) else {
            let d = Diagnostic::new(
                Code::E0204,
                span,
                format!("the results of `autodiff.vmap` are tensors, and these are `{}`", of.ret),
            );
            let d = if *outs == OutAxes::All(0) { d } else { d.note("or `out_axes` names a dim that they do not get") };
            self.report(d);
            return None;
        };
        let step = Step::Vmap((0..args.len()).map(on).collect(), outs.clone());
        let f = TFunction::Derived { step, of: Box::new(of.f), bound: vec![] };
        Some(Applied { f, args: args.into_iter().map(|a| a.value).collect(), ret })
    }

    fn same_size(&mut self, a: &tessera_base::Size, b: &tessera_base::Size) -> bool {
        a == b || !matches!((a.as_const(), b.as_const()), (Some(_), Some(_)))
    }

    /// The names of a function's parameters.
    fn parameters(&mut self, ty: &Ty) -> Option<Vec<Arc<str>>> {
        let Ty::FnRef(r) = ty else { return None };
        match &r.derived {
            Some(Derived::Pullback(_)) => Some(vec!["cotangent".into()]),
            Some(Derived::Pipeline(_)) => Some(vec!["x".into()]),
            Some(_) => r.captures.first().map(|(_, t)| t.clone()).and_then(|t| self.parameters(&t)),
            None => {
                let sig = fns::find_sig(self.db, ItemId(r.item), r.start)?;
                Some(sig.params.iter().map(|p| p.name.text.clone()).collect())
            }
        }
    }

    /// The position of an argument that `wrt` names.
    fn argument(&mut self, e: &TExpr, params: Option<&[Arc<str>]>) -> Option<u32> {
        let d = match (&e.kind, params) {
            (TKind::Str(name), Some(params)) => match params.iter().position(|p| p == name) {
                Some(i) => return Some(i as u32),
                None => {
                    let d = Diagnostic::new(Code::E0105, e.span, format!("the function has no parameter `{name}`"));
                    match nearest(name, params.iter().map(|p| &**p)) {
                        Some(near) => d.fix(format!("did you mean `{near}`?"), e.span, format!("\"{near}\"")),
                        None => d.note(format!("it has {}", params.join(", "))),
                    }
                }
            },
            _ => match (self.symbolic(e).and_then(|n| n.as_const()), params.map(<[_]>::len)) {
                (Some(n), Some(count)) if n >= count as i64 || n < -(count as i64) => Diagnostic::new(
                    Code::E0104,
                    e.span,
                    format!("there is no argument {n}: the function takes {count}"),
                ),
                (Some(n), Some(count)) if n < 0 => return Some((n + count as i64) as u32),
                (Some(n), _) if (0..i64::from(u32::MAX)).contains(&n) => return Some(n as u32),
                _ => Diagnostic::new(Code::E0213, e.span, "`wrt` names arguments by position or name")
                    .note("which ones must be known before the program runs"),
            },
        };
        self.report(d);
        None
    }

    /// `jvp(f, primals, tangents)` gives the value and its directional derivative.
    fn jvp(&mut self, values: Vec<Value>, span: Span) -> TExpr {
        let slots = Slot::built_in("autodiff.jvp");
        let Some((f, rest)) = self.function_and("autodiff.jvp", &slots, values, span) else { return error_at(span) };
        let mut rest = rest.into_iter().flatten();
        let (Some(primals), Some(tangents)) = (rest.next(), rest.next()) else { return error_at(span) };
        let (Some(primals), Some(tangents)) = (self.parts(primals, "primals"), self.parts(tangents, "tangents")) else {
            return error_at(span);
        };
        if primals.len() != tangents.len() {
            let message = format!("there are {} primals and {} tangents", primals.len(), tangents.len());
            return self.fail(Diagnostic::new(Code::E0104, span, message));
        }
        let args = primals.into_iter().map(|value| Value { name: None, value }).collect();
        let Some(of) = self.applied(f, args, span) else { return error_at(span) };
        let primals: Vec<TExpr> = of.args.into_iter().map(|arg| self.save("primal", arg)).collect();
        let mut all = primals.clone();
        for (primal, tangent) in primals.iter().zip(tangents) {
            if !self.differentiable(&primal.ty, primal.span, "argument") {
                return error_at(span);
            }
            let role = Role::Other("the tangent".into());
            let beside = vec![("the primal".to_string(), primal.clone())];
            all.push(self.expect_beside(tangent, &primal.ty, "tangents", primal.span, role, beside));
        }
        if all.iter().any(|e| e.ty.is_error()) || !self.differentiable(&of.ret, span, "result") {
            return error_at(span);
        }
        let ty = Ty::Tuple(vec![of.ret.clone(), of.ret]);
        let f = TFunction::Derived { step: Step::Jvp, of: Box::new(of.f), bound: vec![] };
        TExpr { kind: TKind::Derive { f: Box::new(f), args: all }, ty, span }
    }

    /// The elements of a tuple.
    pub fn parts(&mut self, e: TExpr, what: &str) -> Option<Vec<TExpr>> {
        match (e.kind, &e.ty) {
            (TKind::Tuple(es), _) => Some(es),
            (kind, Ty::Tuple(types)) => {
                let types = types.clone();
                let whole = self.save("args", TExpr { kind, ty: e.ty.clone(), span: e.span });
                let part = |(i, ty)| TExpr { kind: TKind::Field(Box::new(whole.clone()), i as u32), ty, span: e.span };
                Some(types.into_iter().enumerate().map(part).collect())
            }
            (_, ty) if ty.is_error() => None,
            (_, ty) => {
                let d = Diagnostic::new(Code::E0204, e.span, format!("`{what}` is a tuple, and this is `{ty}`"));
                self.report(d.help("a tuple of one is written `(x,)`"));
                None
            }
        }
    }

    /// `vjp(f, *primals)` gives the value and the function from its cotangent to those of the primals.
    fn vjp(&mut self, mut values: Vec<Value>, span: Span) -> TExpr {
        if values.is_empty() || values[0].name.is_some() {
            return self.fail(Diagnostic::new(Code::E0104, span, "`autodiff.vjp` takes a function and its arguments"));
        }
        let slots = [Slot::plain("f", false)];
        let first = vec![values.remove(0)];
        let Some((f, _)) = self.function_and("autodiff.vjp", &slots, first, span) else { return error_at(span) };
        let f = self.save("f", f);
        let Some(of) = self.applied(f.clone(), values, span) else { return error_at(span) };
        if !self.differentiable(&of.ret, span, "result") {
            return error_at(span);
        }
        let mut args = vec![];
        for arg in of.args {
            if !self.differentiable(&arg.ty, arg.span, "argument") {
                return error_at(span);
            }
            args.push(self.save("primal", arg));
        }
        // The pullback belongs to this value: what the function reads of the module is bound like its arguments.
        let read = self.read_by(&of.f, span);
        let globals = read.keys().cloned().collect();
        let mut bound = args.clone();
        for (key, ty) in read {
            bound.push(TExpr { kind: TKind::Global(self.global_id(key)), ty, span });
        }
        let pullback = self.derived(f, bound, Derived::Pullback(globals), "autodiff.vjp", span);
        let value = match of.f {
            TFunction::Direct { inst, callee } => TKind::Call { inst, callee: callee.map(Box::new), args },
            f => TKind::Derive { f: Box::new(f), args },
        };
        let value = TExpr { kind: value, ty: of.ret, span };
        let ty = Ty::Tuple(vec![value.ty.clone(), pullback.ty.clone()]);
        TExpr { kind: TKind::Tuple(vec![value, pullback]), ty, span }
    }

    /// The module variables that a function reads, directly or in functions that it calls.
    fn read_by(&mut self, f: &TFunction, span: Span) -> IndexMap<GlobalKey, Ty> {
        let (mut todo, mut seen, mut out) = (vec![self.called(f.inst())], BTreeSet::new(), IndexMap::new());
        while let Some(inst) = todo.pop() {
            // What is being checked reads its variables itself.
            if self.own == Some(inst) || !seen.insert(inst) {
                continue;
            }
            match self.checked_inst(inst) {
                Some(checked) => {
                    out.extend(checked.reads.iter().cloned());
                    todo.extend(checked.requests.iter().map(|r| checked.tables.callees[r.inst.0 as usize].inst));
                }
                None => self.too_many("this", span),
            }
        }
        out
    }

    /// A call of a function made of another.
    pub fn call_derived(&mut self, callee: TExpr, args: Vec<Value>, span: Span) -> TExpr {
        if let Ty::FnRef(r) = &callee.ty
            && let Some(Derived::Pipeline(line)) = &r.derived
        {
            let stages: Vec<TExpr> = (0..r.captures.len()).map(|i| held(&callee, r, i)).collect();
            return self.scoped(|cx| cx.pipelined(line, &stages, args, span).unwrap_or_else(|| error_at(span)));
        }
        self.scoped(|cx| match cx.applied(callee, args, span) {
            Some(of) => TExpr { kind: TKind::Derive { f: Box::new(of.f), args: of.args }, ty: of.ret, span },
            None => error_at(span),
        })
    }

    /// A function value at arguments.
    fn applied(&mut self, callee: TExpr, args: Vec<Value>, span: Span) -> Option<Applied> {
        let Ty::FnRef(r) = callee.ty.clone() else { return None };
        match &r.derived {
            None => self.applied_directly(&r, callee, args, span),
            Some(Derived::Checkpoint) => {
                let of = self.applied(held(&callee, &r, 0), args, span)?;
                let f = TFunction::Derived { step: Step::Checkpoint, of: Box::new(of.f), bound: vec![] };
                Some(Applied { f, ..of })
            }
            Some(Derived::Vmap(axes, outs)) => self.mapped(axes.as_deref(), outs, held(&callee, &r, 0), args, span),
            Some(Derived::Grad(grad)) => {
                let of = self.applied(held(&callee, &r, 0), args, span)?;
                self.gradient(grad, of, span)
            }
            Some(Derived::Pipeline(line)) => {
                let home = crate::db::file_of(self.db, line.home)?;
                let wrapped = self.in_module(home, |cx| cx.in_a_lambda(&callee, args.len(), span))?;
                let Ty::FnRef(r) = wrapped.ty.clone() else { return None };
                self.applied_directly(&r, wrapped, args, span)
            }
            Some(Derived::Pullback(globals)) => {
                let last = r.captures.len() - globals.len();
                let primals = (1..last).map(|i| Value { name: None, value: held(&callee, &r, i) }).collect();
                let kept: Vec<TExpr> = (last..r.captures.len()).map(|i| held(&callee, &r, i)).collect();
                let of = self.applied(held(&callee, &r, 0), primals, span)?;
                let slots = [Slot::plain("cotangent", false)];
                let cotangent =
                    self.match_params("the pullback", &slots, args, span, None)?.into_iter().flatten().next()?;
                let role = Role::Other("the cotangent of the result".into());
                // The primals tell the sizes of the result as far as its type does.
                let beside = of.args.iter().map(|p| ("the primal".to_string(), p.clone())).collect();
                let cotangent = match is_row(&cotangent) {
                    false => self.expect_beside(cotangent, &of.ret, "cotangent", span, role, beside),
                    // It is there only in tensor code, which compares it too.
                    true => {
                        let (_, fits) = self.block(|cx| cx.expect(cotangent, &of.ret, "cotangent", span, role));
                        row(fits.ty, fits.span)
                    }
                };
                let ret = Ty::Tuple(of.args.iter().map(|a| a.ty.clone()).collect());
                let bound = [of.args, kept].concat();
                let globals = globals.iter().map(|key| self.global_id(key.clone())).collect();
                let f = TFunction::Derived { step: Step::Pullback(globals), of: Box::new(of.f), bound };
                (!cotangent.ty.is_error()).then(|| Applied { f, args: vec![cotangent], ret })
            }
        }
    }

    /// A function of the program at arguments.
    fn applied_directly(&mut self, r: &FnRefTy, callee: TExpr, args: Vec<Value>, span: Span) -> Option<Applied> {
        let name = r.name.clone();
        if r.item == BUILTIN_ITEM
            && args.iter().all(|a| a.name.is_none())
            && let Some(wrapped) = self.in_a_lambda(&callee, args.len(), span)
            && let Ty::FnRef(r) = wrapped.ty.clone()
        {
            return self.applied_directly(&r, wrapped, args, span);
        }
        let mut call = self.call_function(r, Some(callee), args, span);
        while let TKind::Block { stmts, value } = call.kind {
            self.out.extend(stmts);
            call = *value;
        }
        if call.ty.is_error() {
            return None;
        }
        if let TKind::Derive { f, args } = call.kind {
            return Some(Applied { f: *f, args, ret: call.ty });
        }
        let TKind::Call { inst, callee, args } = call.kind else {
            let d =
                Diagnostic::new(Code::E0690, span, format!("the derivative of `{name}` itself is not supported yet"));
            self.report(d.help(format!("wrap it: `lambda x: {name}(x)`")));
            return None;
        };
        if let Some(request) = self.requests.iter_mut().rev().find(|r| r.inst == inst) {
            request.graph = true;
        }
        Some(Applied { f: TFunction::Direct { inst, callee: callee.map(|c| *c) }, args, ret: call.ty })
    }

    /// `lambda a, …: f(a, …)` of an operator or a function made of another: a function of the program.
    pub fn in_a_lambda(&mut self, f: &TExpr, count: usize, span: Span) -> Option<TExpr> {
        let name = ["of_one", "of_two", "of_three", "of_four"].get(count.checked_sub(1)?)?;
        let Some(Target::File(id)) = self.names_of().imports(self.db).get(CALLS).cloned() else { return None };
        let Meaning::Def(item) = self.file_member(id, &Arc::from(*name), span) else { return None };
        let maker = self.def_value(item, span);
        let Ty::FnRef(r) = maker.ty.clone() else { return None };
        let made = self.call_function(&r, Some(maker), vec![Value { name: None, value: f.clone() }], span);
        matches!(made.ty, Ty::FnRef(_)).then_some(made)
    }

    /// What `grad` makes of a function at arguments.
    fn gradient(&mut self, grad: &Grad, of: Applied, span: Span) -> Option<Applied> {
        let (value, aux) = match (&of.ret, grad.aux) {
            (Ty::Tuple(ts), true) if ts.len() == 2 => (ts[0].clone(), Some(ts[1].clone())),
            (ret, true) => {
                let message = format!("with `has_aux` the function gives `(value, aux)`, and this one gives `{ret}`");
                self.report(Diagnostic::new(Code::E0204, span, message));
                return None;
            }
            (ret, false) => (ret.clone(), None),
        };
        if !self.one_number(&value, span) {
            return None;
        }
        let mut types = vec![];
        for &i in &grad.wrt {
            let Some(arg) = of.args.get(i as usize) else {
                let message = format!("there is no argument {i}: the function takes {}", of.args.len());
                self.report(Diagnostic::new(Code::E0104, span, message));
                return None;
            };
            if !self.differentiable(&arg.ty.clone(), arg.span, "argument") {
                return None;
            }
            types.push(arg.ty.clone());
        }
        let gradient = match (grad.single, types.len()) {
            (true, 1) => types.swap_remove(0),
            _ => Ty::Tuple(types),
        };
        let ret = match (grad.value, aux) {
            (true, Some(aux)) => Ty::Tuple(vec![Ty::Tuple(vec![value, aux]), gradient]),
            (true, None) => Ty::Tuple(vec![value, gradient]),
            (false, Some(aux)) => Ty::Tuple(vec![gradient, aux]),
            (false, None) => gradient,
        };
        let f = TFunction::Derived { step: Step::Grad(grad.clone()), of: Box::new(of.f), bound: vec![] };
        Some(Applied { f, args: of.args, ret })
    }

    /// Whether a result is one float number; reports it where it is not.
    fn one_number(&mut self, ty: &Ty, span: Span) -> bool {
        let d = match ty {
            Ty::Float => return true,
            Ty::Tensor(t) if t.rank() == 0 && t.dtype.is_none_or(DType::is_float) => return true,
            Ty::Tensor(t) if t.rank() > 0 => {
                Diagnostic::new(Code::E0217, span, format!("the result is not one number but `{ty}`"))
                    .help("make it one: `.sum()` or `.mean()`")
                    .help("or `autodiff.vjp(f, x)` for a cotangent of this shape")
            }
            _ => Diagnostic::new(Code::E0217, span, format!("the result has no derivative: it is `{ty}`"))
                .note("a derivative is that of one float number")
                .help(match ty {
                    Ty::Tuple(_) => "`has_aux=True` takes `(value, aux)`",
                    Ty::Tensor(_) => "compute in floats: `.to(f32)`",
                    Ty::Int(_) => "ints have no derivative: give the function floats (`f(3.0)`), or return a float",
                    _ => "return the number",
                }),
        };
        self.report(d);
        false
    }

    /// Whether a value holds floats; reports it where it does not.
    fn differentiable(&mut self, ty: &Ty, span: Span, what: &str) -> bool {
        if has_float(ty) {
            return true;
        }
        let d = Diagnostic::new(Code::E0217, span, format!("this {what} has no derivative: it is `{ty}`"));
        self.report(match what {
            "argument" => d
                .note("derivatives are taken with respect to floats: tensors, and structs, lists and tuples of them")
                .help("choose the arguments with `wrt=`"),
            _ => d,
        });
        false
    }
}

impl Cx<'_> {
    /// The function that `@autodiff.custom_vjp(backward)` names, at the types of an instance: its
    /// arguments are those of the function, the result, and the cotangent of the result.
    pub fn backward(&mut self, sig: &FnSig, params: &[LocalId], ret: &Ty) -> Option<InstId> {
        let e = sig.decorators.iter().find(|e| is_custom_vjp(e))?;
        let ExprKind::Call { args, .. } = &e.kind else {
            self.report(
                Diagnostic::new(
                    Code::E0104,
                    e.span,
                    "`@autodiff.custom_vjp` takes the function that gives the cotangents",
                )
                .help("write `@autodiff.custom_vjp(backward)`, with `def backward(x, …, result, cotangent)` above it"),
            );
            return None;
        };
        let values = self.args(args);
        let slots = Slot::built_in("autodiff.custom_vjp");
        let (f, _) = self.function_and("autodiff.custom_vjp", &slots, values, e.span)?;
        if ret.is_error() {
            return None;
        }
        let none = |ty: &Ty| TExpr { kind: TKind::None, ty: ty.clone(), span: e.span };
        let types: Vec<Ty> = params.iter().map(|p| self.locals[p.0 as usize].ty.clone()).collect();
        let all = types.iter().chain([ret, ret]).map(none).collect();
        let (inst, callee, gives) = self.perhaps(|cx| cx.instantiate(&f, all, e.span))?;
        if callee.is_some() {
            let d = Diagnostic::new(Code::E0690, f.span, "a function that captures values gives no cotangents yet");
            self.report(d.help("define it at the top of the file"));
            return None;
        }
        if gives.holds_error() {
            return None;
        }
        let whole = Ty::Tuple(types.clone());
        let fits = match (&gives, types.as_slice()) {
            (Ty::Tuple(parts), _) if parts.len() == types.len() => {
                parts.iter().zip(&types).all(|(p, t)| !has_float(t) || erase(p) == erase(t))
            }
            (one, [only]) => erase(one) == erase(only),
            _ => false,
        };
        if !fits {
            let d = Diagnostic::new(Code::E0204, f.span, format!("`{}` gives `{gives}`, not cotangents", sig.name))
                .note(format!("it must give a tuple of the types of the parameters: `{whole}`"));
            self.report(d.with_label(sig.head, "whose derivative it is to be"));
            return None;
        }
        let parts = match (gives, types.as_slice()) {
            (Ty::Tuple(parts), _) if parts.len() == types.len() => parts,
            (one, _) => vec![one],
        };
        for ((param, ty), part) in sig.params.iter().zip(&types).zip(&parts).filter(|((_, ty), _)| has_float(ty)) {
            // What only a run can tell is compared where the derivative is taken.
            if let Err(m) = assignable(&mut self.sizes, ty, part, f.span) {
                let by = match &f.ty {
                    Ty::FnRef(r) => r.name.clone(),
                    _ => sig.name.clone(),
                };
                let role = Role::Other(format!("the cotangent of `{}` that `{by}` gives", param.name.text));
                let d = mismatch_diagnostic(&m, &role, f.span, None);
                self.report(d.with_label(sig.head, "whose derivative it is to be"));
                return None;
            }
        }
        Some(inst)
    }
}

fn is_custom_vjp(e: &Expr) -> bool {
    let name = match &e.kind {
        ExprKind::Call { func, .. } => func,
        _ => e,
    };
    match &name.kind {
        ExprKind::Name(n) => &**n == "custom_vjp",
        ExprKind::Attr { name, .. } => &*name.text == "custom_vjp",
        _ => false,
    }
}

/// A value that a function value holds.
pub fn held(callee: &TExpr, r: &FnRefTy, i: usize) -> TExpr {
    if let TKind::Closure { captures } = &callee.kind
        && let Some(value) = captures.get(i)
    {
        return value.clone();
    }
    let ty = r.captures.get(i).map_or(Ty::Error, |(_, t)| t.clone());
    TExpr { kind: TKind::Field(Box::new(callee.clone()), i as u32), ty, span: callee.span }
}

fn has_float(ty: &Ty) -> bool {
    match ty {
        Ty::Float | Ty::AnyTensor => true,
        Ty::Tensor(t) => t.dtype.is_none_or(|d| d.is_float() || d.is_complex()),
        Ty::List(t) | Ty::Dict(_, t) => has_float(t),
        Ty::Tuple(ts) => ts.iter().any(has_float),
        Ty::Struct(s) => s.fields.iter().any(|(_, t)| has_float(t)),
        _ => false,
    }
}

/// One of the values that `vmap` goes over: only its type is there.
fn row(ty: Ty, span: Span) -> TExpr {
    TExpr { kind: TKind::None, ty, span }
}

/// Whether it is one of [`row`].
fn is_row(e: &TExpr) -> bool {
    matches!(e.kind, TKind::None) && e.ty != Ty::None
}
