//! Neighbouring statements that only compute tensors become one region.

use super::body::Body;
use super::outline::{Pending, RegionInput, input_vars};
use super::types::{has_closure, is_plain};
use tessera_base::Span;
use tessera_core::ir::*;
use tessera_core::live::Live;
use tessera_core::region::RegionParam;
use tessera_core::ty::Ty;
use tessera_core::walk::{Var, as_var, mentions};
use tessera_ir::host::{HExpr, HExprKind, HStmt};

impl Body<'_, '_> {
    /// Takes an assignment into the pending region, or leaves it to host code (`false`).
    pub fn collect(&mut self, v: Var, e: &TExpr, pending: &mut Option<Pending>) -> bool {
        let none = Default::default();
        let defined = pending.as_ref().map_or(&none, |p| &p.defined_set);
        let tensorial = self.cx.facts.computes(e) || mentions(e, defined);
        if !tensorial {
            return self.hoist(v, e, pending);
        }
        // Host code makes closure objects, and what holds them.
        if has_closure(&e.ty) || !self.cx.fits(e, defined) {
            return false;
        }
        // Effects of host code in the operands stay in order with what came before.
        if pending.is_some() && !self.cx.inputs_are_pure(e, defined) {
            return false;
        }
        let meshes = self.cx.facts.meshes(e);
        let other = |p: &Pending| meshes.iter().any(|m| Some(m) != p.mesh.as_ref());
        if meshes.len() > 1 && pending.is_some() || pending.as_ref().is_some_and(|p| p.mesh.is_some() && other(p)) {
            return false;
        }
        let policy = self.policy;
        let p = pending.get_or_insert_with(|| Pending::new(policy, e.span));
        p.go_on(e, &meshes);
        let value = self.cx.absorb(e, p);
        p.span = p.span.to(e.span);
        p.body.push(match v {
            Var::Local(l) => TStmt::Set(l, value),
            Var::Global(g) => TStmt::SetGlobal(g, value),
        });
        p.define(v);
        true
    }

    /// A host assignment between tensor statements moves before the region when nothing in the
    /// region can tell.
    fn hoist(&mut self, v: Var, e: &TExpr, pending: &mut Option<Pending>) -> bool {
        // What is held to its type may owe it to what the region compares.
        let Some(p) = pending.as_mut().filter(|_| self.call.is_none()) else { return false };
        let facts = &self.cx.facts;
        let read_by_calls = matches!(v, Var::Global(g) if p.globals.contains(&g));
        if p.defined_set.contains(&v) || read_by_calls || !facts.is_pure(e) {
            return false;
        }
        // What is called for the region may change variables of the file that this reads.
        let shared = |g: &GlobalId| !facts.private.contains(g);
        if p.inputs.iter().filter_map(RegionInput::source).any(|input| !facts.is_pure(input))
            && (facts.globals_mentioned(e).iter().any(shared) || matches!(v, Var::Global(g) if shared(&g)))
        {
            return false;
        }
        // Parameters that depend on the variable take their values now.
        let reads = |input: &RegionInput| input.source().is_some_and(|source| facts.may_read(source, v));
        let depend: Vec<usize> = (0..p.inputs.len()).filter(|&i| reads(&p.inputs[i])).collect();
        if depend.iter().any(|&i| p.inputs[i].source().is_some_and(|source| !facts.is_pure(source))) {
            return false;
        }
        for i in depend {
            if let RegionInput::Source(source) = p.inputs[i].clone() {
                let value = self.expr(&source);
                let (ty, span) = (value.ty, value.span);
                let tmp = self.temp("arg", ty);
                p.prelude.push(HStmt::SetLocal(tmp, value));
                p.inputs[i] = RegionInput::Done(HExpr { kind: HExprKind::Local(tmp), ty, span });
            }
        }
        p.forget(v);
        let value = self.assigned(v, e);
        p.prelude.push(self.set(v, value));
        true
    }

    /// Ends the pending region: emits its prelude and its call. `live` are the variables that
    /// are read afterwards.
    pub fn flush(&mut self, pending: &mut Option<Pending>, live: &Live, out: &mut Vec<HStmt>) {
        let Some(mut p) = pending.take() else { return };
        out.append(&mut p.prelude);
        let kept = |v: &&Var| live.contains(v) || matches!(v, Var::Global(g) if self.cx.global(*g).is_some());
        let mut results: Vec<Var> = p.defined.iter().filter(kept).copied().collect();
        if results.is_empty() {
            // Nothing is read later, but a size that only data knows may still be wrong.
            results.extend(p.defined.last());
        }
        let args = self.region_args(&p, live, out);
        let span = p.span;
        let exprs: Vec<TExpr> = results.iter().map(|&v| self.last_value(v, &p)).collect();
        let single = exprs.len() == 1;
        let types: Vec<Ty> = exprs.iter().map(|e| e.ty.clone()).collect();
        let name = self.name.clone();
        let sid = self.cx.span(span);
        let region = self.cx.add_region(name, p.params, p.body, exprs, p.policy, span);
        self.cx.hint(region, &self.hints);
        if single {
            let ty = self.cx.sigs[region.0 as usize].results[0];
            let call = HExpr { kind: HExprKind::Region { region, args }, ty, span: sid };
            out.push(self.set(results[0], call));
        } else {
            let targets = results.iter().map(|&v| self.root(v)).collect();
            out.push(HStmt::Region { region, args, targets, span: sid });
        }
        for (v, ty) in results.into_iter().zip(types) {
            out.extend(self.assert_var(v, &ty, span));
        }
        self.assert_settle(span, out);
    }

    /// A variable at the end of a region, of the type of the value that it had last: another one that it had before
    /// may have been of other sizes, or laid out otherwise.
    fn last_value(&self, v: Var, p: &Pending) -> TExpr {
        let variable = self.var_expr(v, p.span);
        let last = p.body.iter().rev().find_map(|s| match (s, v) {
            (TStmt::Set(l, e), Var::Local(to)) if *l == to => Some(&e.ty),
            (TStmt::SetGlobal(g, e), Var::Global(to)) if *g == to => Some(&e.ty),
            _ => None,
        });
        match last {
            Some(ty) => TExpr { ty: ty.clone(), ..variable },
            None => variable,
        }
    }

    /// Arguments of a region that is a statement of its own: a variable that nothing reads
    /// afterwards gives its value away.
    fn region_args(&mut self, p: &Pending, live: &Live, out: &mut Vec<HStmt>) -> Vec<HExpr> {
        let mut args = vec![];
        for (i, input) in p.inputs.iter().enumerate() {
            let arg = match input {
                RegionInput::Source(e) if as_var(e).is_some() => self.variable_arg(p, i, e, live, out),
                input => self.region_arg(input),
            };
            args.push(arg);
        }
        args
    }

    /// A variable that nothing reads afterwards gives its value away.
    fn variable_arg(&mut self, p: &Pending, i: usize, e: &TExpr, live: &Live, out: &mut Vec<HStmt>) -> HExpr {
        let mut value = self.bare(e);
        let Some(v) = as_var(e) else { return value };
        // A function that reads a module variable says of what type it is there.
        if p.params[i].global.is_none() {
            out.extend(self.assert_var(v, &e.ty, e.span));
        }
        if let HExprKind::Local(l) = &value.kind {
            let overwritten = p.defined_set.contains(&v);
            let elsewhere = p.inputs.iter().enumerate().any(|(k, o)| k != i && input_vars(o).contains(&v));
            if !is_plain(&e.ty) && !elsewhere && (overwritten || !live.contains(&v)) {
                value.kind = HExprKind::Take(*l);
            }
        }
        value
    }

    /// What is passed for a parameter of a region.
    pub fn region_arg(&mut self, input: &RegionInput) -> HExpr {
        match input {
            RegionInput::Done(value) => value.clone(),
            RegionInput::Source(e) => self.expr(e),
        }
    }

    /// A region for one expression.
    pub fn region_of(&mut self, e: &TExpr) -> HExpr {
        let mut p = Pending::new(self.policy, e.span);
        p.go_on(e, &self.cx.facts.meshes(e));
        let value = self.cx.absorb(e, &mut p);
        let args = p
            .inputs
            .iter()
            .zip(&p.params)
            .map(|(input, param)| match input {
                RegionInput::Source(e) if param.global.is_some() => self.bare(e),
                input => self.region_arg(input),
            })
            .collect();
        self.region_call(p.params, vec![], value, args, e.span)
    }

    /// The call of a new region with one result.
    pub fn region_call(
        &mut self,
        params: Vec<RegionParam>,
        body: Vec<TStmt>,
        result: TExpr,
        args: Vec<HExpr>,
        span: Span,
    ) -> HExpr {
        let ty = self.cx.erase(&result.ty);
        let (name, sid) = (self.name.clone(), self.cx.span(span));
        let region = self.cx.add_region(name, params, body, vec![result], self.policy, span);
        self.cx.hint(region, &self.hints);
        HExpr { kind: HExprKind::Region { region, args }, ty, span: sid }
    }
}
