//! Outputs of kernels: what a call writes back, and what may not overlap.
//!
//! A kernel that writes parameters gives their new values as results; the call assigns them.

use super::cx::{Cx, none, read};
use super::env::Slot;
use super::inst::Callee;
use std::collections::BTreeSet;
use tessera_base::{Code, Diagnostic, Span};
use tessera_core::ir::*;
use tessera_core::ty::Ty;
use tessera_core::walk::{Var, as_var, each_child};
use tessera_resolve::functions::{FnBody, FnLike, FnSig};

/// Where an output goes.
pub struct Output {
    param: usize,
    place: TLvalue,
    ty: Ty,
    span: Span,
}

impl Cx<'_> {
    /// The places of the arguments that a kernel writes; `None` after a report.
    pub fn output_lvalues(&mut self, sig: &FnSig, values: &[TExpr], span: Span) -> Option<Vec<Output>> {
        let mut out = vec![];
        for &param in &sig.outputs {
            let value = values.get(param as usize)?;
            let reports = self.diagnostics.len();
            let Some(place) = self.lvalue_of(value) else {
                // Why a variable cannot be changed here is said already.
                if !value.ty.is_error() && self.diagnostics.len() == reports {
                    let name = &sig.params[param as usize].name;
                    let at = if value.span.is_none() { span } else { value.span };
                    let d = Diagnostic::new(
                        Code::E0505,
                        at,
                        format!("`{}` writes `{}`, and nothing would see it", sig.name, name.text),
                    )
                    .with_label(name.span, "this parameter is an output")
                    .note(match value.kind {
                        TKind::Global(_) => "it is a variable of the module, which only the module's body can give",
                        _ => "an output needs a variable, a field or an element of a list that takes the result",
                    })
                    .help("give it a name before the call: `out = op.zeros(…)`");
                    self.report(d);
                }
                return None;
            };
            out.push(Output { param: param as usize, place, ty: value.ty.clone(), span: value.span });
        }
        Some(out)
    }

    /// The place that an expression reads, if a change of it would be seen.
    fn lvalue_of(&mut self, e: &TExpr) -> Option<TLvalue> {
        match &e.kind {
            TKind::Local(_) | TKind::Global(_) => {
                let slot = match e.kind {
                    TKind::Local(l) => Slot::Local(l),
                    TKind::Global(g) => Slot::Global(g),
                    _ => return None,
                };
                let name = self.env.bound().find(|(_, b)| b.slot == slot).map(|(n, _)| n.clone())?;
                let (root, _) = self.changeable(&name, e.span)?;
                Some(TLvalue { root, steps: vec![] })
            }
            TKind::Field(base, n) if matches!(base.ty, Ty::Struct(_)) => {
                let mut place = self.lvalue_of(base)?;
                place.steps.push(TStep::Field(*n));
                Some(place)
            }
            TKind::Index(base, key) if matches!(key.kind, TKind::Int(_) | TKind::Local(_) | TKind::Str(_)) => {
                let step = match base.ty {
                    Ty::List(_) => TStep::Index((**key).clone()),
                    Ty::Dict(..) => TStep::Key((**key).clone()),
                    _ => return None,
                };
                let mut place = self.lvalue_of(base)?;
                place.steps.push(step);
                Some(place)
            }
            _ => None,
        }
    }

    /// E0505 where an output is also another argument, unless the kernel only goes element by
    /// element through both.
    pub fn outputs_apart(
        &mut self,
        sig: &FnSig,
        callee: &Callee,
        args: Option<&[Ty]>,
        values: &[TExpr],
        outputs: &[Output],
        span: Span,
    ) -> bool {
        for o in outputs {
            let root = match o.place.root {
                TRoot::Local(l) => Var::Local(l),
                TRoot::Global(g) => Var::Global(g),
            };
            for (i, value) in values.iter().enumerate() {
                let same = i != o.param && root_of(value) == Some(root) && overlap(value, &values[o.param]);
                if !same {
                    continue;
                }
                let other_output = sig.outputs.contains(&(i as u32));
                if !other_output && self.elementwise(sig, callee, args, span) {
                    continue;
                }
                let names = (&sig.params[o.param].name.text, &sig.params[i].name.text);
                let why = match other_output {
                    true => "both parameters are outputs, and only one result can stay",
                    false => {
                        "only a kernel that goes element by element through all of its operands may write over one"
                    }
                };
                let d = Diagnostic::new(
                    Code::E0505,
                    span,
                    format!("the output `{}` of `{}` is also its argument `{}`", names.0, sig.name, names.1),
                )
                .with_label(o.span, "written")
                .with_label(value.span, if other_output { "written too" } else { "read" })
                .note(why)
                .help("write into a tensor of its own");
                self.report(d);
                return false;
            }
        }
        true
    }

    /// Whether every operator of a kernel works element by element, and nothing is read after
    /// an output was written.
    fn elementwise(&mut self, sig: &FnSig, callee: &Callee, args: Option<&[Ty]>, span: Span) -> bool {
        let (data, _) = self.instance(callee, args);
        let Some(checked) = self.check_callee(&data, &sig.name, span) else { return false };
        let inst = &checked.inst;
        let outputs: BTreeSet<LocalId> =
            sig.outputs.iter().filter_map(|&i| inst.params.get(i as usize).copied()).collect();
        let mut written = BTreeSet::new();
        let mut fine = true;
        for stmt in &inst.body {
            match stmt {
                TStmt::Set(_, e) | TStmt::Expr(e) => fine &= pointwise(e),
                TStmt::Mutate { place, change: TChange::TensorSet { index, value, .. }, .. } => {
                    let whole = index.iter().all(is_whole);
                    let TRoot::Local(target) = place.root else { return false };
                    fine &=
                        whole && pointwise(value) && (written.is_empty() || !reads_any(value, &inst.params, target));
                    if outputs.contains(&target) {
                        written.insert(target);
                    }
                }
                TStmt::Return(e) => fine &= e.as_ref().is_none_or(pointwise),
                _ => fine = false,
            }
        }
        fine
    }

    /// The call's own value, after its outputs have gone where they belong.
    pub fn write_outputs(&mut self, call: TExpr, outputs: Vec<Output>, span: Span) -> TExpr {
        if call.ty.is_error() {
            return call;
        }
        self.scoped(|cx| {
            let ty = call.ty.clone();
            let (parts, gives) = match &ty {
                Ty::Tuple(types) => (types.clone(), types.len() > outputs.len()),
                other => (vec![other.clone()], false),
            };
            let local = cx.temp("outputs", ty.clone(), span);
            cx.out.push(TStmt::Set(local, call));
            let all = read(Slot::Local(local), ty.clone(), span);
            let part = |i: usize, ty: Ty| match parts.len() {
                1 => TExpr { ty, ..all.clone() },
                _ => TExpr { kind: TKind::Field(Box::new(all.clone()), i as u32), ty, span },
            };
            for (i, o) in outputs.into_iter().enumerate() {
                let value = part(i + usize::from(gives), o.ty.clone());
                match (&o.place.steps[..], o.place.root) {
                    ([], TRoot::Local(l)) => cx.set_slot(Slot::Local(l), value),
                    ([], TRoot::Global(g)) => cx.set_slot(Slot::Global(g), value),
                    _ => cx.out.push(TStmt::Mutate { place: o.place, change: TChange::Set(value), span: o.span }),
                }
            }
            if gives { part(0, parts[0].clone()) } else { none(span) }
        })
    }

    /// Makes the outputs of the kernel that is being checked part of its result; gives the
    /// type of the whole.
    pub fn return_outputs(&mut self, f: &FnLike, params: &[LocalId], ret: Ty, falls_through: bool) -> Ty {
        if f.sig.outputs.is_empty() || ret.is_error() || ret == Ty::Never {
            return ret;
        }
        let mut outs = vec![];
        for &i in &f.sig.outputs {
            let (name, Some(&local)) = (&f.sig.params[i as usize].name, params.get(i as usize)) else { return ret };
            let ty = self.locals.get(local.0 as usize).map_or(Ty::Error, |v| v.ty.clone());
            let again = match &f.body {
                FnBody::Def(def) => tessera_resolve::kernel_signature::rebound(def, &name.text),
                FnBody::Lambda(_) => None,
            };
            let problem = match (&ty, again) {
                (Ty::Error, _) => return Ty::Error,
                (_, Some(at)) => Some(
                    Diagnostic::new(
                        Code::E0505,
                        at,
                        format!("the output `{}` gets another value as a whole", name.text),
                    )
                    .note("the caller's tensor would not change")
                    .help(format!("write into it: `{}[:] = …`", name.text)),
                ),
                (ty, _) if !ty.is_tensor() => {
                    let d = Diagnostic::new(Code::E0505, name.span, format!("the output `{}` is no tensor", name.text));
                    Some(d.note(format!("it is `{ty}`")).help("return the new value"))
                }
                _ => None,
            };
            if let Some(d) = problem {
                self.report(d);
                return Ty::Error;
            }
            outs.push((local, ty));
        }
        let gives = ret != Ty::None;
        let mut types: Vec<Ty> = if gives { vec![ret] } else { vec![] };
        types.extend(outs.iter().map(|(_, t)| t.clone()));
        let ty = if types.len() == 1 { types.swap_remove(0) } else { Ty::Tuple(types) };
        let pack = Pack { outs, gives, ty: ty.clone() };
        pack.returns(&mut self.out);
        if falls_through {
            self.out.push(TStmt::Return(Some(pack.value(None, f.sig.head))));
        }
        ty
    }
}

/// Results with outputs behind them.
struct Pack {
    outs: Vec<(LocalId, Ty)>,
    gives: bool,
    ty: Ty,
}

impl Pack {
    fn value(&self, own: Option<TExpr>, span: Span) -> TExpr {
        let mut items: Vec<TExpr> = own.filter(|_| self.gives).into_iter().collect();
        items.extend(self.outs.iter().map(|(l, ty)| read(Slot::Local(*l), ty.clone(), span)));
        match items.len() {
            1 => items.swap_remove(0),
            _ => TExpr { kind: TKind::Tuple(items), ty: self.ty.clone(), span },
        }
    }

    fn returns(&self, stmts: &mut [TStmt]) {
        for s in stmts {
            match s {
                TStmt::Return(e) => {
                    let span = e.as_ref().map_or(Span::NONE, |e| e.span);
                    *e = Some(self.value(e.take(), span));
                }
                TStmt::If { then, otherwise, .. } => {
                    self.returns(then);
                    self.returns(otherwise);
                }
                TStmt::While { body, .. }
                | TStmt::ForRange { body, .. }
                | TStmt::ForEach { body, .. }
                | TStmt::WithPolicy { body, .. }
                | TStmt::WithHints { body, .. } => self.returns(body),
                _ => {}
            }
        }
    }
}

/// The variable that a path begins with.
fn root_of(e: &TExpr) -> Option<Var> {
    match &e.kind {
        TKind::Field(base, _) | TKind::Index(base, _) | TKind::TensorIndex { base, .. } => root_of(base),
        TKind::Check { value, .. } => root_of(value),
        _ => as_var(e),
    }
}

/// Whether two paths from one variable may lead to the same tensor.
fn overlap(a: &TExpr, b: &TExpr) -> bool {
    match (&a.kind, &b.kind) {
        (TKind::Field(x, i), TKind::Field(y, j)) if as_var(x).is_some() && as_var(y).is_some() => i == j,
        (TKind::Index(x, i), TKind::Index(y, j)) if as_var(x).is_some() && as_var(y).is_some() => {
            !matches!((&i.kind, &j.kind), (TKind::Int(i), TKind::Int(j)) if i != j)
        }
        _ => true,
    }
}

fn is_whole(part: &IndexPart) -> bool {
    match part {
        IndexPart::Whole(_) => true,
        IndexPart::Slice { low, high, step } => low.is_none() && high.is_none() && step.is_none(),
        _ => false,
    }
}

/// Whether an expression works element by element on its tensors.
fn pointwise(e: &TExpr) -> bool {
    let own = match &e.kind {
        TKind::Op { def, .. } => def.elementwise,
        TKind::Call { .. } | TKind::CallValue { .. } | TKind::Scan { .. } | TKind::Fori { .. } => false,
        TKind::Flow { .. } | TKind::Derive { .. } => false,
        TKind::TensorIndex { .. } | TKind::Block { .. } => false,
        TKind::Builtin { name, .. } => !name.is_tile(),
        _ => true,
    };
    let mut all = own;
    each_child(e, &mut |c| all = all && pointwise(c));
    all
}

/// Whether a value reads a parameter other than the one that is written.
fn reads_any(e: &TExpr, params: &[LocalId], target: LocalId) -> bool {
    let mut found = matches!(e.kind, TKind::Local(l) if l != target && params.contains(&l));
    each_child(e, &mut |c| found = found || reads_any(c, params, target));
    found
}
