//! Functions and statements.

use super::Lowering;
use super::outline::Pending;
use super::types::is_regional;
use std::collections::BTreeMap;
use std::sync::Arc;
use tessera_base::{Code, Size, SizeVar, Span};
use tessera_core::ir::*;
use tessera_core::live::{Live, Targets, before_each, loop_targets};
use tessera_core::region::RegionParam;
use tessera_core::sizes::of_any_size;
use tessera_core::ty::Ty;
use tessera_core::type_assertions::{compares, comparing};
use tessera_core::walk::Var;
use tessera_ir::graph::Policy;
use tessera_ir::hints::KernelHints;
use tessera_ir::host::{self, HExpr, HExprKind, HStmt, HostFn, HostType, Root, SpanId, TypeId};

/// State of lowering one function.
pub(crate) struct Body<'a, 'p> {
    pub cx: &'a mut Lowering<'p>,
    pub inst: &'p FnInst,
    pub name: Arc<str>,
    pub policy: Policy,
    /// What directives ask of the regions here.
    pub hints: Option<Arc<KernelHints>>,
    pub locals: Vec<host::Local>,
    /// Module variables that only this function (the module body) uses.
    private: BTreeMap<GlobalId, host::LocalId>,
    /// Types of variables that lowering made, by position after those of the instance.
    made: BTreeMap<LocalId, Ty>,
    /// Where values are held against their types: the number of the call.
    pub call: Option<host::LocalId>,
    /// Loops around the current statement.
    pub loops: usize,
}

/// The host function of an instance.
pub(crate) fn function(cx: &mut Lowering, id: InstId) -> HostFn {
    let inst = cx.inst(id);
    let mut b = Body::new(cx, id);
    let params = inst.captures.iter().chain(&inst.params).map(|&l| local_id(l)).collect();
    let mut body = b.size_binds();
    b.assert_enter(&mut body);
    body.extend(b.function_body());
    b.finish(params, vec![], body)
}

/// The function that a closure object of the instance points to.
pub(crate) fn thunk(cx: &mut Lowering, id: InstId) -> HostFn {
    let inst = cx.inst(id);
    let mut b = Body::new(cx, id);
    // What passes through here is held to its types by the instance, behind its comparisons.
    let mut dims = 0;
    let mut any = |each| {
        dims += 1;
        // No size of the function has such a number.
        Size::var(SizeVar { id: u32::MAX - dims, name: "n".into(), rigid: false, natural: true, each })
    };
    let mut var = |&l: &LocalId| {
        let ty = of_any_size(&inst.locals[l.0 as usize].ty, &mut any);
        TExpr { kind: TKind::Local(l), ty, span: inst.span }
    };
    let held: Vec<TExpr> = inst.captures.iter().map(&mut var).collect();
    let ty = Ty::Tuple(held.iter().map(|e| e.ty.clone()).collect());
    let captures = TExpr { kind: TKind::Closure { captures: held }, ty, span: inst.span };
    let call = TExpr {
        kind: TKind::Call {
            inst: id,
            callee: (!inst.captures.is_empty()).then(|| Box::new(captures)),
            args: inst.params.iter().map(var).collect(),
        },
        ty: inst.ret.clone(),
        span: inst.span,
    };
    let body = b.block(&[TStmt::Return(Some(call))], &Live::new(), &Targets::default());
    let ids = |ls: &[LocalId]| ls.iter().map(|&l| local_id(l)).collect::<Vec<_>>();
    b.finish(ids(&inst.params), ids(&inst.captures), body)
}

fn local_id(l: LocalId) -> host::LocalId {
    host::LocalId(l.0)
}

impl<'a, 'p> Body<'a, 'p> {
    fn new(cx: &'a mut Lowering<'p>, id: InstId) -> Body<'a, 'p> {
        let inst = cx.inst(id);
        let mut locals = vec![];
        for v in &inst.locals {
            let ty = cx.erase(&v.ty);
            locals.push(host::Local { name: v.name.clone(), ty });
        }
        let mut private = BTreeMap::new();
        if cx.program.entry == Some(id) {
            for g in cx.facts.private.clone() {
                let var = &cx.program.globals[g.0 as usize];
                private.insert(g, host::LocalId(locals.len() as u32));
                let ty = cx.erase(&var.ty);
                locals.push(host::Local { name: var.name.clone(), ty });
            }
        }
        let (name, hints) = (inst.name.clone(), inst.hints.clone());
        Body {
            cx,
            inst,
            name,
            policy: inst.policy,
            hints,
            locals,
            private,
            made: BTreeMap::new(),
            call: None,
            loops: 0,
        }
    }

    fn finish(self, params: Vec<host::LocalId>, captures: Vec<host::LocalId>, body: Vec<HStmt>) -> HostFn {
        let ret = self.cx.erase(&self.inst.ret);
        let span = self.cx.span(self.inst.span);
        HostFn { name: self.name, params, captures, locals: self.locals, ret, body, span }
    }

    fn size_binds(&mut self) -> Vec<HStmt> {
        let inst = self.inst;
        inst.size_binds
            .iter()
            .map(|bind| {
                let value = self.expr(&bind.from);
                HStmt::SetLocal(local_id(bind.local), value)
            })
            .collect()
    }

    /// The statements of the function. Parameters are held to their types when the function has compared them.
    fn function_body(&mut self) -> Vec<HStmt> {
        let (body, targets) = (&self.inst.body, Targets::default());
        let (compare, rest) = body.split_at(comparing(self.inst));
        let live = before_each(rest, &Live::new(), &targets);
        let mut out = self.block(compare, &live[0], &targets);
        out.extend(self.assert_parameters());
        out.extend(self.block(rest, &Live::new(), &targets));
        out
    }

    /// A new local.
    pub fn temp(&mut self, name: &str, ty: TypeId) -> host::LocalId {
        self.locals.push(host::Local { name: name.into(), ty });
        host::LocalId(self.locals.len() as u32 - 1)
    }

    /// A new variable that typed code may mention.
    fn variable(&mut self, name: &str, ty: &Ty) -> LocalId {
        let host = self.cx.erase(ty);
        let id = LocalId(self.temp(name, host).0);
        self.made.insert(id, ty.clone());
        id
    }

    /// Where a variable lives.
    pub fn root(&self, v: Var) -> Root {
        match v {
            Var::Local(l) => Root::Local(local_id(l)),
            Var::Global(g) => match self.private.get(&g) {
                Some(&l) => Root::Local(l),
                // Every variable that is not private has been declared.
                None => Root::Global(self.cx.global(g).unwrap_or(host::GlobalId(u32::MAX))),
            },
        }
    }

    pub fn var_ty(&self, v: Var) -> Ty {
        match v {
            Var::Local(l) => match self.made.get(&l) {
                Some(ty) => ty.clone(),
                None => self.inst.locals.get(l.0 as usize).map_or(Ty::Error, |v| v.ty.clone()),
            },
            Var::Global(g) => self.cx.program.globals[g.0 as usize].ty.clone(),
        }
    }

    pub fn var_expr(&self, v: Var, span: Span) -> TExpr {
        let kind = match v {
            Var::Local(l) => TKind::Local(l),
            Var::Global(g) => TKind::Global(g),
        };
        TExpr { kind, ty: self.var_ty(v), span }
    }

    pub fn set(&self, v: Var, value: HExpr) -> HStmt {
        match self.root(v) {
            Root::Local(l) => HStmt::SetLocal(l, value),
            Root::Global(g) => HStmt::SetGlobal(g, value),
        }
    }

    /// The value for a variable: an empty list takes the variable's type.
    pub fn assigned(&mut self, v: Var, e: &TExpr) -> HExpr {
        let ty = self.var_ty(v);
        self.expr_as(e, &ty)
    }

    pub fn local(&self, l: host::LocalId, span: SpanId) -> HExpr {
        HExpr { kind: HExprKind::Local(l), ty: self.locals[l.0 as usize].ty, span }
    }

    /// Lowers statements; `after` are the variables live after them.
    pub fn block(&mut self, stmts: &[TStmt], after: &Live, targets: &Targets) -> Vec<HStmt> {
        let live = before_each(stmts, after, targets);
        let (mut out, mut pending) = (vec![], None);
        for (i, s) in stmts.iter().enumerate() {
            let taken = match s {
                TStmt::Set(l, e) => self.collect(Var::Local(*l), e, &mut pending),
                TStmt::SetGlobal(g, e) => self.collect(Var::Global(*g), e, &mut pending),
                TStmt::Return(Some(e)) => self.collect_return(e, &mut pending, &mut out),
                _ => false,
            };
            if taken {
                continue;
            }
            self.flush(&mut pending, &live[i], &mut out);
            // An assignment may begin the next region.
            let begins = match s {
                TStmt::Set(l, e) => self.collect(Var::Local(*l), e, &mut pending),
                TStmt::SetGlobal(g, e) => self.collect(Var::Global(*g), e, &mut pending),
                _ => false,
            };
            if !begins {
                self.stmt(s, &live[i + 1], targets, &mut out);
            }
        }
        self.flush(&mut pending, after, &mut out);
        out
    }

    /// `return e` where `e` is part of the pending region, or a region of its own.
    fn collect_return(&mut self, e: &TExpr, pending: &mut Option<Pending>, out: &mut Vec<HStmt>) -> bool {
        if !is_regional(&e.ty) {
            return false;
        }
        let tmp = self.variable("result", &e.ty);
        if !self.collect(Var::Local(tmp), e, pending) {
            return false;
        }
        self.flush(pending, &Live::from([Var::Local(tmp)]), out);
        let span = self.cx.span(e.span);
        let value = HExpr { kind: HExprKind::Take(local_id(tmp)), ..self.local(local_id(tmp), span) };
        let value = self.assert_type(value, &self.inst.ret, e.span);
        out.push(HStmt::Return(Some(value)));
        true
    }

    fn assign(&mut self, v: Var, e: &TExpr, out: &mut Vec<HStmt>) {
        let stmt = match self.grow(v, e) {
            Some(stmt) => stmt,
            None => {
                let value = self.assigned(v, e);
                self.set(v, value)
            }
        };
        out.push(stmt);
    }

    fn stmt(&mut self, s: &TStmt, after: &Live, targets: &Targets, out: &mut Vec<HStmt>) {
        // What compares the sizes of values with their types reads values that may not be of their types.
        let call = if compares(s, &self.inst.locals) { self.call.take() } else { None };
        self.stmt_here(s, after, targets, out);
        if !matches!(s, TStmt::Return(_) | TStmt::Break | TStmt::Continue) {
            self.assert_settle(self.inst.span, out);
        }
        self.call = self.call.or(call);
    }

    fn stmt_here(&mut self, s: &TStmt, after: &Live, targets: &Targets, out: &mut Vec<HStmt>) {
        match s {
            TStmt::Expr(e) => {
                let e = self.expr(e);
                out.push(HStmt::Expr(e));
            }
            TStmt::Set(l, e) => self.assign(Var::Local(*l), e, out),
            TStmt::SetGlobal(g, e) => self.assign(Var::Global(*g), e, out),
            TStmt::Mutate { place, change, span } => self.mutate(place, change, *span, out),
            TStmt::If { test, then, otherwise } => {
                let test = self.truth(test);
                let then = self.block(then, after, targets);
                let otherwise = self.block(otherwise, after, targets);
                out.push(HStmt::If { test, then, otherwise });
            }
            TStmt::While { test, body, span } => {
                let inner = loop_targets(s, after);
                let turn = self.assert_loop(*span, out);
                let test = self.truth(test);
                let test = match &turn {
                    Some(turn) => {
                        let (ty, span) = (test.ty, test.span);
                        HExpr { kind: HExprKind::Block { stmts: vec![turn.clone()], value: Box::new(test) }, ty, span }
                    }
                    None => test,
                };
                let body = self.block(body, &inner.at_continue, &inner);
                let span = self.cx.span(*span);
                out.push(HStmt::While { test, body, span });
                self.assert_loop_end(turn, out);
            }
            TStmt::ForRange { var, start, stop, step, body, span } => {
                let inner = loop_targets(s, after);
                let (start, stop, step) = (self.expr(start), self.expr(stop), self.expr(step));
                let turn = self.assert_loop(*span, out);
                let body = self.turn(*var, &turn, body, *span, &inner);
                let span = self.cx.span(*span);
                out.push(HStmt::ForRange { var: local_id(*var), start, stop, step, body, span });
                self.assert_loop_end(turn, out);
            }
            TStmt::ForEach { var, iter, body, span } => {
                let inner = loop_targets(s, after);
                let source = self.expr(iter);
                let turn = self.assert_loop(*span, out);
                let body = self.turn(*var, &turn, body, *span, &inner);
                self.for_each(*var, (iter, source), body, *span, out);
                self.assert_loop_end(turn, out);
            }
            TStmt::Break => out.push(HStmt::Break),
            TStmt::Continue => out.push(HStmt::Continue),
            TStmt::Return(e) => {
                let ret = self.inst.ret.clone();
                let value = e.as_ref().map(|e| {
                    let value = self.expr_as(e, &ret);
                    self.assert_type(value, &ret, e.span)
                });
                out.push(HStmt::Return(value));
            }
            TStmt::Assert { test, message, span } => {
                let test = self.truth(test);
                let message = match message {
                    Some(m) => self.text(m),
                    None => self.str("assertion failed", *span),
                };
                let span = self.cx.span(*span);
                let fail = HStmt::Fail { code: Code::E0705, message, span };
                out.push(HStmt::If { test, then: vec![], otherwise: vec![fail] });
            }
            TStmt::WithHints { hints, body } => {
                let all = self.hints.as_ref().map_or_else(|| hints.clone(), |outer| Arc::new(hints.within(outer)));
                let outer = self.hints.replace(all);
                let body = self.block(body, after, targets);
                self.hints = outer;
                out.extend(body);
            }
            TStmt::WithPolicy { policy, body } => {
                let outer = std::mem::replace(&mut self.policy, *policy);
                let body = self.block(body, after, targets);
                self.policy = outer;
                out.extend(body);
            }
        }
    }

    /// A turn of a loop, in which a variable is set.
    fn turn(&mut self, var: LocalId, begin: &Option<HStmt>, body: &[TStmt], span: Span, inner: &Targets) -> Vec<HStmt> {
        let ty = self.var_ty(Var::Local(var));
        let mut out: Vec<HStmt> = begin.iter().cloned().collect();
        out.extend(self.assert_var(Var::Local(var), &ty, span));
        out.extend(self.block(body, &inner.at_continue, inner));
        out
    }

    /// Loops over a list directly, over other containers by position.
    fn for_each(
        &mut self,
        var: LocalId,
        (iter, source): (&TExpr, HExpr),
        mut body: Vec<HStmt>,
        span: Span,
        out: &mut Vec<HStmt>,
    ) {
        let sid = self.cx.span(span);
        let var = local_id(var);
        let list = match &iter.ty {
            Ty::Dict(k, _) => {
                let key = self.cx.erase(k);
                let ty = self.cx.types.intern(HostType::List(key));
                self.rt(tessera_abi::rt::RtFn::dict_keys, vec![source], ty, span)
            }
            Ty::Tensor(_) | Ty::AnyTensor | Ty::Str => {
                let holder = self.temp("items", source.ty);
                out.push(HStmt::SetLocal(holder, source));
                let int = self.int_ty();
                let at = self.temp("position", int);
                let (count, element) = self.element_of(&iter.ty, holder, at, span);
                body.insert(0, HStmt::SetLocal(var, element));
                let (start, step) = (self.int(0, span), self.int(1, span));
                out.push(HStmt::ForRange { var: at, start, stop: count, step, body, span: sid });
                return;
            }
            _ => source,
        };
        out.push(HStmt::ForList { var, list, body, span: sid });
    }

    /// Number of elements of a tensor's leading dim or a string, and the element at a position.
    fn element_of(&mut self, ty: &Ty, holder: host::LocalId, at: host::LocalId, span: Span) -> (HExpr, HExpr) {
        use tessera_abi::rt::RtFn;
        let sid = self.cx.span(span);
        let (int, owner) = (self.int_ty(), self.locals[holder.0 as usize].ty);
        let (holder, at) = (self.local(holder, sid), self.local(at, sid));
        if matches!(ty, Ty::Str) {
            let count = self.rt(RtFn::str_len, vec![holder.clone()], int, span);
            return (count, self.rt(RtFn::str_index, vec![holder, at], owner, span));
        }
        let zero = self.int(0, span);
        let count = self.rt(RtFn::tensor_dim, vec![holder.clone(), zero], int, span);
        (count, self.rt(RtFn::tensor_row, vec![holder, at], owner, span))
    }

    /// A region's parameter for the value of a slot.
    pub fn slot_param(&mut self, name: &str, ty: &Ty) -> RegionParam {
        RegionParam { local: self.cx.region_local(), name: name.into(), ty: ty.clone(), global: None }
    }
}
