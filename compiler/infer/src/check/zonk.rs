//! Element types of empty lists and dicts, once the whole body is known.

use super::types::{fill, has_unknown};
use std::collections::HashMap;
use std::sync::Arc;
use tessera_core::builtins::Takes;
use tessera_core::ir::*;
use tessera_core::ty::{StructTy, Ty};

/// Replaces every `?` in the types of a body by what its variable turned out to hold; an
/// element type that nothing tells is `int`, since nothing of that list is ever an element.
pub fn zonk(inst: &mut FnInst, globals: &[(GlobalId, Variable)]) {
    for local in &mut inst.locals {
        local.ty = known(&local.ty);
    }
    let mut pass = Zonk { locals: inst.locals.iter().map(|l| l.ty.clone()).collect(), globals, known: HashMap::new() };
    pass.block(&mut inst.body);
    for bind in &mut inst.size_binds {
        pass.expr(&mut bind.from);
    }
}

pub fn known_variable(v: Variable) -> Variable {
    Variable { ty: known(&v.ty), ..v }
}

/// Without `?`.
pub fn known(ty: &Ty) -> Ty {
    if !has_unknown(ty) {
        return ty.clone();
    }
    match ty {
        Ty::Unknown => Ty::int(),
        Ty::List(t) => Ty::List(Box::new(known(t))),
        Ty::Dict(k, v) => Ty::Dict(Box::new(if **k == Ty::Unknown { Ty::Str } else { known(k) }), Box::new(known(v))),
        Ty::Tuple(ts) => Ty::Tuple(ts.iter().map(known).collect()),
        Ty::Struct(s) => {
            let fields = s.fields.iter().map(|(n, t)| (n.clone(), known(t))).collect();
            Ty::Struct(Arc::new(StructTy { fields, ..StructTy::clone(s) }))
        }
        other => other.clone(),
    }
}

struct Zonk<'a> {
    locals: Vec<Ty>,
    globals: &'a [(GlobalId, Variable)],
    /// Types of structs that have no `?`, by where they are: many expressions have the same large one.
    known: HashMap<*const StructTy, Arc<StructTy>>,
}

impl Zonk<'_> {
    fn is_open(&mut self, ty: &Ty) -> bool {
        let Ty::Struct(s) = ty else { return has_unknown(ty) };
        if self.known.contains_key(&Arc::as_ptr(s)) {
            return false;
        }
        let open = has_unknown(ty);
        if !open {
            self.known.insert(Arc::as_ptr(s), s.clone());
        }
        open
    }

    fn local(&self, id: LocalId) -> Ty {
        self.locals.get(id.0 as usize).cloned().unwrap_or(Ty::Unknown)
    }

    fn global(&self, id: GlobalId) -> Ty {
        self.globals.iter().find(|(g, _)| *g == id).map_or(Ty::Unknown, |(_, v)| v.ty.clone())
    }

    fn block(&mut self, stmts: &mut [TStmt]) {
        for stmt in stmts {
            self.stmt(stmt);
        }
    }

    fn stmt(&mut self, stmt: &mut TStmt) {
        match stmt {
            TStmt::Expr(e) => self.expr(e),
            TStmt::Set(id, e) => {
                let ty = self.local(*id);
                self.expr_as(e, &ty);
            }
            TStmt::SetGlobal(id, e) => {
                let ty = self.global(*id);
                self.expr_as(e, &ty);
            }
            TStmt::Mutate { place, change, .. } => {
                for step in &mut place.steps {
                    match step {
                        TStep::Index(e) | TStep::Key(e) => self.expr(e),
                        TStep::Field(_) => {}
                    }
                }
                let slot = match place.root {
                    TRoot::Local(id) => self.local(id),
                    TRoot::Global(id) => self.global(id),
                };
                let slot = slot_type(&slot, &place.steps);
                self.change(change, &slot);
            }
            TStmt::If { test, then, otherwise } => {
                self.expr(test);
                self.block(then);
                self.block(otherwise);
            }
            TStmt::While { test, body, .. } => {
                self.expr(test);
                self.block(body);
            }
            TStmt::ForRange { start, stop, step, body, .. } => {
                [start, stop, step].into_iter().for_each(|e| self.expr(e));
                self.block(body);
            }
            TStmt::ForEach { iter, body, .. } => {
                self.expr(iter);
                self.block(body);
            }
            TStmt::Break | TStmt::Continue => {}
            TStmt::Return(value) => value.iter_mut().for_each(|e| self.expr(e)),
            TStmt::Assert { test, message, .. } => {
                self.expr(test);
                message.iter_mut().for_each(|e| self.expr(e));
            }
            TStmt::WithPolicy { body, .. } | TStmt::WithHints { body, .. } => self.block(body),
        }
    }

    fn change(&mut self, change: &mut TChange, slot: &Ty) {
        match change {
            TChange::Set(e) => self.expr_as(e, slot),
            TChange::TensorSet { index, value, .. } => {
                index.iter_mut().for_each(|p| self.index_part(p));
                self.expr(value);
            }
            TChange::Method { name, args } => {
                let element = match slot {
                    Ty::List(t) => (**t).clone(),
                    _ => Ty::Unknown,
                };
                for (takes, arg) in name.def().takes.iter().zip(args) {
                    match takes {
                        Takes::Element => self.expr_as(arg, &element),
                        Takes::Whole => self.expr_as(arg, slot),
                        Takes::Key | Takes::Position | Takes::Descending => self.expr(arg),
                    }
                }
            }
        }
    }

    fn index_part(&mut self, part: &mut IndexPart) {
        match part {
            IndexPart::Int(e) | IndexPart::Tensor(e) => self.expr(e),
            IndexPart::Slice { low, high, step } => [low, high, step].into_iter().flatten().for_each(|e| self.expr(e)),
            IndexPart::Whole(_) | IndexPart::NewAxis => {}
        }
    }

    fn expr(&mut self, e: &mut TExpr) {
        self.expr_as(e, &Ty::Unknown);
    }

    /// `want`: the type of what holds the value.
    fn expr_as(&mut self, e: &mut TExpr, want: &Ty) {
        if self.is_open(&e.ty) {
            let of_slot = match &e.kind {
                TKind::Local(id) => self.local(*id),
                TKind::Global(id) => self.global(*id),
                _ => Ty::Unknown,
            };
            e.ty = known(&fill(&fill(&e.ty, want), &of_slot));
        }
        let ty = e.ty.clone();
        match &mut e.kind {
            TKind::List(items) => {
                let element = match &ty {
                    Ty::List(t) => (**t).clone(),
                    _ => Ty::Unknown,
                };
                items.iter_mut().for_each(|i| self.expr_as(i, &element));
            }
            TKind::Tuple(items) => match &ty {
                Ty::Tuple(ts) if ts.len() == items.len() => {
                    items.iter_mut().zip(ts).for_each(|(i, t)| self.expr_as(i, t))
                }
                _ => items.iter_mut().for_each(|i| self.expr(i)),
            },
            TKind::Struct(items) => match &ty {
                Ty::Struct(s) => items.iter_mut().zip(&s.fields).for_each(|(i, (_, t))| self.expr_as(i, t)),
                _ => items.iter_mut().for_each(|i| self.expr(i)),
            },
            TKind::Dict(pairs) => {
                let (kt, vt) = match &ty {
                    Ty::Dict(k, v) => ((**k).clone(), (**v).clone()),
                    _ => (Ty::Unknown, Ty::Unknown),
                };
                for (k, v) in pairs {
                    self.expr_as(k, &kt);
                    self.expr_as(v, &vt);
                }
            }
            TKind::Cond { test, then, otherwise } => {
                self.expr(test);
                self.expr_as(then, &ty);
                self.expr_as(otherwise, &ty);
            }
            TKind::Concat(a, b) => {
                self.expr_as(a, &ty);
                self.expr_as(b, &ty);
            }
            TKind::Repeat(a, n) => {
                self.expr_as(a, &ty);
                self.expr(n);
            }
            TKind::Block { stmts, value } => {
                self.block(stmts);
                self.expr_as(value, &ty);
            }
            TKind::WithPolicy(_, value) => self.expr_as(value, &ty),
            TKind::Compare { left, right, .. } => {
                // Two lists of which one is empty.
                if has_unknown(&left.ty) {
                    let other = right.ty.clone();
                    self.expr_as(left, &other);
                }
                let other = left.ty.clone();
                self.expr_as(right, &other);
                self.expr(left);
            }
            kind => self.parts(kind),
        }
    }

    fn parts(&mut self, kind: &mut TKind) {
        match kind {
            TKind::Arith { left, right, .. } | TKind::Logic { left, right, .. } | TKind::Index(left, right) => {
                self.expr(left);
                self.expr(right);
            }
            TKind::Neg(x)
            | TKind::Invert(x)
            | TKind::Not(x)
            | TKind::IntToFloat(x)
            | TKind::BoolToInt(x)
            | TKind::Truth(x)
            | TKind::Convert { value: x, .. }
            | TKind::Field(x, _)
            | TKind::Erase { value: x, .. }
            | TKind::TensorDim(x, _)
            | TKind::TensorShape(x)
            | TKind::TensorDType(x) => self.expr(x),
            TKind::Slice { base, low, high, step } => {
                self.expr(base);
                [low, high, step].into_iter().flatten().for_each(|e| self.expr(e));
            }
            TKind::Call { callee, args, .. } => {
                callee.iter_mut().for_each(|e| self.expr(e));
                args.iter_mut().for_each(|e| self.expr(e));
            }
            TKind::CallValue { callee, args } => {
                self.expr(callee);
                args.iter_mut().for_each(|e| self.expr(e));
            }
            TKind::Closure { captures } => captures.iter_mut().for_each(|e| self.expr(e)),
            TKind::Op { args, .. } => args.iter_mut().for_each(|a| match a {
                OpArg::Value(e) => self.expr(e),
                OpArg::Default => {}
            }),
            TKind::TensorIndex { base, index, .. } => {
                self.expr(base);
                index.iter_mut().for_each(|p| self.index_part(p));
            }
            TKind::Scan { callee, init, xs, .. } => {
                callee.iter_mut().for_each(|e| self.expr(e));
                self.expr(init);
                self.expr(xs);
            }
            TKind::Fori { callee, low, high, init, .. } => {
                callee.iter_mut().for_each(|e| self.expr(e));
                [low, high, init].into_iter().for_each(|e| self.expr(e));
            }
            TKind::Flow { functions, args, .. } => {
                functions.iter_mut().flat_map(|f| &mut f.callee).for_each(|e| self.expr(e));
                args.iter_mut().for_each(|e| self.expr(e));
            }
            TKind::Derive { f, args } => f.values_mut().into_iter().chain(args).for_each(|e| self.expr(e)),
            TKind::Collective { x, .. } => x.iter_mut().for_each(|x| self.expr(x)),
            TKind::StopGradient(x) | TKind::Layout(x) => self.expr(x),
            TKind::Builtin { args, .. } => args.iter_mut().for_each(|e| self.expr(e)),
            TKind::Check { value, dims, .. } => {
                self.expr(value);
                dims.iter_mut().flatten().for_each(|e| self.expr(e));
            }
            TKind::Format(parts) => {
                for part in parts {
                    if let FormatPart::Value { value, spec, .. } = part {
                        self.expr(value);
                        spec.iter_mut().for_each(|e| self.expr(e));
                    }
                }
            }
            _ => {}
        }
    }
}

/// The type of the slot at the end of a path.
fn slot_type(root: &Ty, steps: &[TStep]) -> Ty {
    steps.iter().fold(root.clone(), |ty, step| match (step, ty) {
        (TStep::Field(i), Ty::Struct(s)) => s.fields.get(*i as usize).map_or(Ty::Unknown, |(_, t)| t.clone()),
        (TStep::Field(i), Ty::Tuple(ts)) => ts.get(*i as usize).cloned().unwrap_or(Ty::Unknown),
        (TStep::Index(_), Ty::List(t)) | (TStep::Key(_), Ty::Dict(_, t)) => *t,
        _ => Ty::Unknown,
    })
}
