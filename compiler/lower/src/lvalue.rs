//! Changes of variables and of slots inside them.

use super::body::Body;
use super::outline::Pending;
use std::collections::BTreeSet;
use tessera_abi::rt::RtFn;
use tessera_base::{Span, bug};
use tessera_core::builtins::Takes;
use tessera_core::ir::*;
use tessera_core::ty::Ty;
use tessera_core::walk::{Var, as_var, mentions};
use tessera_ir::host::{Change, HExprKind, HLvalue, HStmt, Root, Step};

impl Body<'_, '_> {
    pub(super) fn mutate(&mut self, place: &TLvalue, change: &TChange, span: Span, out: &mut Vec<HStmt>) {
        let slot = self.slot_ty(place);
        let change = match change {
            TChange::Set(e) => {
                let value = self.expr_as(e, &slot);
                if place.steps.is_empty() {
                    out.push(self.set(place.root.into(), value));
                    return;
                }
                Change::Set(value)
            }
            TChange::TensorSet { of, index, value } => {
                if of.on_a_mesh() || index.iter().any(|p| matches!(p, IndexPart::Tensor(_))) {
                    self.assign_by_region(of, index, value, span)
                } else {
                    let loose = self.int(repeating(&value.ty) as i64, span);
                    let value = self.as_tensor(value);
                    let index = self.index_list(index, span);
                    Change::Apply { func: RtFn::tensor_assign, args: vec![index, value, loose] }
                }
            }
            TChange::Method { name, args } => self.method(*name, args, &slot),
        };
        let place = self.lvalue(place);
        let span = self.cx.span(span);
        out.push(HStmt::Mutate { place, change, span });
    }

    /// `v = v + e` of strings and lists grows the object in place.
    pub(super) fn grow(&mut self, v: Var, e: &TExpr) -> Option<HStmt> {
        let TKind::Concat(left, right) = &e.kind else { return None };
        if as_var(left) != Some(v) || mentions(right, &BTreeSet::from([v])) {
            return None;
        }
        let func = if matches!(e.ty, Ty::Str) { RtFn::str_append } else { RtFn::list_extend };
        let args = vec![self.expr_as(right, &e.ty)];
        let root = self.root(v);
        let place = HLvalue { root, root_ty: self.root_ty(v), steps: vec![] };
        let span = self.cx.span(e.span);
        Some(HStmt::Mutate { place, change: Change::Apply { func, args }, span })
    }

    fn root_ty(&mut self, v: Var) -> tessera_ir::host::TypeId {
        match self.root(v) {
            Root::Local(l) => self.locals[l.0 as usize].ty,
            Root::Global(_) => {
                let ty = self.var_ty(v);
                self.cx.erase(&ty)
            }
        }
    }

    fn lvalue(&mut self, place: &TLvalue) -> HLvalue {
        let v: Var = place.root.into();
        let steps = place
            .steps
            .iter()
            .map(|step| match step {
                TStep::Field(n) => Step::Field(*n),
                TStep::Index(e) => Step::Index(self.expr(e)),
                TStep::Key(e) => Step::Key(self.expr(e)),
            })
            .collect();
        HLvalue { root: self.root(v), root_ty: self.root_ty(v), steps }
    }

    /// The type of the slot that changes.
    fn slot_ty(&self, place: &TLvalue) -> Ty {
        let mut ty = self.var_ty(place.root.into());
        for step in &place.steps {
            ty = match (step, &ty) {
                (TStep::Field(n), Ty::Struct(s)) => s.fields.get(*n as usize).map_or(Ty::Error, |(_, t)| t.clone()),
                (TStep::Field(n), Ty::Tuple(ts)) => ts.get(*n as usize).cloned().unwrap_or(Ty::Error),
                (TStep::Index(_), Ty::List(t)) | (TStep::Key(_), Ty::Dict(_, t)) => (**t).clone(),
                _ => Ty::Error,
            };
        }
        ty
    }

    /// `x[t] = value` with index tensors: the slot goes through a region.
    fn assign_by_region(&mut self, slot: &Ty, index: &[IndexPart], value: &TExpr, span: Span) -> Change {
        let mut p = Pending::new(self.policy, span);
        let param = self.slot_param("base", slot);
        let base = TExpr { kind: TKind::Local(param.local), ty: slot.clone(), span };
        let root = TRoot::Local(param.local);
        p.params.push(param);
        p.go_on(&base, &self.cx.facts.meshes(&base));
        let mut part = |e: &TExpr| self.cx.absorb(e, &mut p);
        let index = index
            .iter()
            .map(|i| match i {
                IndexPart::Int(e) => IndexPart::Int(part(e)),
                IndexPart::Tensor(e) => IndexPart::Tensor(part(e)),
                IndexPart::Slice { low, high, step } => IndexPart::Slice {
                    low: low.as_ref().map(&mut part),
                    high: high.as_ref().map(&mut part),
                    step: step.as_ref().map(&mut part),
                },
                other => other.clone(),
            })
            .collect();
        let value = part(value);
        let change = TChange::TensorSet { of: slot.clone(), index, value };
        let body = vec![TStmt::Mutate { place: TLvalue { root, steps: vec![] }, change, span }];
        let inputs = std::mem::take(&mut p.inputs);
        let args = inputs.iter().map(|input| self.region_arg(input)).collect();
        let call = self.region_call(p.params, body, base, args, span);
        match call.kind {
            HExprKind::Region { region, args } => Change::Region { region, args },
            // `region_call` makes nothing else.
            _ => Change::Set(call),
        }
    }

    /// A mutating method of a list or dict.
    fn method(&mut self, method: Method, args: &[TExpr], slot: &Ty) -> Change {
        let def = method.def();
        let own = |b: &mut Self, (takes, e): (&Takes, &TExpr)| match (takes, slot) {
            (Takes::Element, Ty::List(t)) | (Takes::Key, Ty::Dict(t, _)) => b.expr_as(e, t),
            (Takes::Whole, _) => b.expr_as(e, slot),
            (Takes::Position, _) => b.expr_as(e, &Ty::int()),
            (Takes::Descending, _) => b.expr_as(e, &Ty::Bool),
            (Takes::Element | Takes::Key, _) => bug!("`{}` of {slot}", def.name),
        };
        assert_eq!(def.takes.len(), args.len(), "`{}` has the arguments of its row", def.name);
        let args = def.takes.iter().zip(args).map(|pair| own(self, pair)).collect();
        Change::Apply { func: def.func, args }
    }
}
