//! Functions as values: lambdas, nested functions, and values of function types.

use super::annots::Outer;
use super::args::Value;
use super::cx::{Cx, error_at};
use super::fns;
use super::inst::Callee;
use super::names::Meaning;
use super::types::{BUILTIN_ITEM, erase, plain_ints};
use std::sync::Arc;
use tessera_base::{Code, Diagnostic, ItemId, Size, SizeVar, Span};
use tessera_core::ir::*;
use tessera_core::sizes::vars_of;
use tessera_core::ty::{FnRefTy, Ty};
use tessera_grammar::ast::{Expr, FnDef};
use tessera_resolve::functions::{FnSig, def_start};
use tessera_types::unify::assignable;

/// Ends the names of sizes that function values capture with their types: no name of a program has a space.
pub const OF_TYPE: char = ' ';

impl Cx<'_> {
    pub fn lambda(&mut self, e: &Expr) -> TExpr {
        self.closure(e.span.item, e.span.start, &Outer::default(), e.span)
    }

    /// A nested `def`: binds its name to the closure.
    pub fn nested_def(&mut self, def: &Arc<FnDef>, item: ItemId) {
        let mut outer = Outer::default();
        if let Some(f) = fns::find(self.db, item, def_start(def)) {
            let types = match f.nested {
                true => self.inner_signature(&f.sig, item),
                // In a block of a file: its variables are not captured, and so are no sizes.
                false => self.signature(&f.sig, item, &[]),
            };
            outer = types.outer;
            for d in types.diagnostics {
                self.report(d);
            }
        }
        let value = self.closure(item, def_start(def), &outer, def.name.span);
        self.bind(&def.name.text, value, def.name.span);
    }

    /// A function value with the present values of the names that it takes from this body, its signature those of `outer`.
    fn closure(&mut self, item: ItemId, start: u32, outer: &Outer, span: Span) -> TExpr {
        let Some(f) = fns::find(self.db, item, start) else { return error_at(span) };
        let mut captures = vec![];
        let mut values = vec![];
        // In a module body variables are not captured: they live on.
        if !self.is_module() || self.foreign.is_some() {
            for name in f.free.union(&outer.names) {
                if *name == f.sig.name && !f.sig.lambda {
                    continue;
                }
                let local = self.env.get(name).is_some();
                let own = self.itself.as_ref().is_some_and(|(n, _)| n == name);
                if !local && !own && !self.size_names.contains_key(name) {
                    continue;
                }
                match self.name(name, span) {
                    Meaning::Value(value) => {
                        captures.push((name.clone(), value.ty.clone()));
                        values.push(value);
                    }
                    Meaning::Broken => return error_at(span),
                    _ => {}
                }
            }
            for (name, size) in &outer.sizes {
                let Some(value) = self.size_value(size, span) else { continue };
                captures.push((name.clone(), Ty::Int(Some(size.clone()))));
                values.push(value);
            }
        } else if let Some(captured) = self.comprehension_captures(&f.free, span) {
            (captures, values) = captured;
        }
        let ty = FnRefTy { name: f.sig.name.clone(), item: item.0, start, captures, derived: None };
        TExpr { kind: TKind::Closure { captures: values }, ty: Ty::FnRef(Arc::new(ty)), span }
    }

    /// Locals that a module body has (targets of comprehensions) are captured too.
    fn comprehension_captures(
        &mut self,
        free: &std::collections::BTreeSet<Arc<str>>,
        span: Span,
    ) -> Option<(Vec<(Arc<str>, Ty)>, Vec<TExpr>)> {
        let mut captures = vec![];
        let mut values = vec![];
        for name in free {
            let Some(binding) = self.env.get(name).cloned() else { continue };
            if let super::env::Slot::Local(_) = binding.slot
                && let Meaning::Value(value) = self.name(name, span)
            {
                captures.push((name.clone(), value.ty.clone()));
                values.push(value);
            }
        }
        (!captures.is_empty()).then_some((captures, values))
    }

    /// A particular function as a value of a function type.
    pub fn erase_function(&mut self, value: TExpr, params: &[Ty], ret: &Ty) -> TExpr {
        let span = value.span;
        let Ty::FnRef(r) = value.ty.clone() else { return value };
        let to = Ty::Fn(params.to_vec(), Box::new(ret.clone()));
        if r.item == BUILTIN_ITEM || r.derived.is_some() {
            let d = Diagnostic::new(
                Code::E0690,
                span,
                format!("`{}` as a value of type `{to}` is not supported yet", r.name),
            )
            .help(format!("wrap it: `lambda x: {}(x)`", r.name));
            return self.fail(d);
        }
        let Some(sig) = fns::find_sig(self.db, ItemId(r.item), r.start) else { return error_at(span) };
        if sig.params.len() != params.len() {
            let d = Diagnostic::new(
                Code::E0204,
                span,
                format!("`{}` takes {} and `{to}` is needed", sig.name, crate::members::arguments(sig.params.len())),
            )
            .with_label(sig.head, "declared here");
            return self.fail(d);
        }
        let (r, value) = self.with_sizes_of(&r, value, &to);
        // Called with values of the parameter types, it must give the result type.
        let args: Vec<Value> = params
            .iter()
            .map(|t| Value { name: None, value: TExpr { kind: TKind::None, ty: t.clone(), span } })
            .collect();
        // Nothing is called here.
        let (call, fits) = self.perhaps(|cx| {
            let (_, call) = cx.block(|cx| cx.call_function_as(&r, Some(value.clone()), args, Some(ret), span));
            let fits = if call.ty.is_error() { None } else { Some(assignable(&mut cx.sizes, ret, &call.ty, span)) };
            (call, fits)
        });
        let Some(fits) = fits else { return error_at(span) };
        if let Err(m) = fits {
            let role = tessera_types::unify::Role::Returned { function: r.name.to_string() };
            let d = tessera_types::unify::mismatch_diagnostic(&m, &role, span, None);
            return self.fail(d);
        }
        // Whoever calls it knows its type and no mesh.
        let role = tessera_types::unify::Role::Returned { function: r.name.to_string() };
        let given = TExpr { kind: TKind::None, ty: call.ty.clone(), span };
        if self.expect_sharding(given, ret, &role, Span::NONE).ty.is_error() {
            return error_at(span);
        }
        let inst = call_inst(&call);
        match inst {
            Some(inst) if erase(&call.ty) == erase(ret) => {
                self.host("makes a function value that only the run knows", span);
                TExpr { kind: TKind::Erase { value: Box::new(value), inst }, ty: to, span }
            }
            _ => {
                let d = Diagnostic::new(
                    Code::E0204,
                    span,
                    format!("`{}` gives `{}` where `{ret}` is needed", r.name, call.ty),
                );
                self.fail(d)
            }
        }
    }

    /// The function type that all values fit, if their annotations say so.
    pub fn common_function_type(&mut self, values: &[TExpr]) -> Option<Ty> {
        let mut out: Option<Ty> = None;
        for value in values {
            let ty = match &value.ty {
                Ty::Fn(..) => value.ty.clone(),
                Ty::FnRef(r) => {
                    let sig = fns::find_sig(self.db, ItemId(r.item), r.start)?;
                    let types = self.signature(&sig, ItemId(r.item), &r.captures);
                    let params: Option<Vec<Ty>> = types.params.into_iter().collect();
                    Ty::Fn(params?, Box::new(types.ret?))
                }
                _ => return None,
            };
            match &out {
                None => out = Some(plain_ints(&ty)),
                Some(have) if *have == plain_ints(&ty) => {}
                Some(_) => return None,
            }
        }
        out
    }

    pub fn to_function_type(&mut self, value: TExpr, ty: &Ty) -> TExpr {
        match ty {
            Ty::Fn(params, ret) if matches!(value.ty, Ty::FnRef(_)) => self.erase_function(value, params, ret),
            _ => value,
        }
    }

    /// A function that captures the sizes of a function type, too, where the present values of other captures do not
    /// tell them: it compares what it gets and gives with that type.
    fn with_sizes_of(&mut self, r: &Arc<FnRefTy>, value: TExpr, ty: &Ty) -> (Arc<FnRefTy>, TExpr) {
        let told = |v: &SizeVar| r.captures.iter().any(|(_, t)| tells(t, v));
        let open: Vec<SizeVar> = vars_of(ty).into_iter().filter(|v| !told(v)).collect();
        let span = value.span;
        let own = |v: SizeVar| {
            // What nothing has told yet there is no value of.
            if self.late_sizes.get(&v).is_some_and(|u| !u.is_assigned()) {
                return None;
            }
            let size = Size::var(v.clone());
            let name: Arc<str> = format!("{}{OF_TYPE}", v.name).into();
            let value = self.size_value(&size, span)?;
            Some(((name, Ty::Int(Some(size))), value))
        };
        let (types, sizes): (Vec<_>, Vec<TExpr>) = open.into_iter().filter_map(own).unzip();
        if types.is_empty() {
            return (r.clone(), value);
        }
        let value = match value.kind {
            TKind::Closure { .. } => value,
            _ => self.save(&r.name, value),
        };
        let held = (0..r.captures.len()).map(|i| super::derive::held(&value, r, i));
        let captures = held.chain(sizes).collect();
        let captured = r.captures.iter().cloned().chain(types).collect();
        let r = Arc::new(FnRefTy { captures: captured, ..FnRefTy::clone(r) });
        let ty = Ty::FnRef(r.clone());
        (r, TExpr { kind: TKind::Closure { captures }, ty, span })
    }

    /// What may run or not: nothing that it compares is known of sizes from here on.
    pub fn perhaps<T>(&mut self, f: impl FnOnce(&mut Self) -> T) -> T {
        let facts = self.sizes.facts.clone();
        let value = f(self);
        self.sizes.facts = facts;
        value
    }

    /// A block that runs only where a condition holds, or does not.
    pub fn block_where<T>(
        &mut self,
        condition: &TExpr,
        holds: bool,
        f: impl FnOnce(&mut Self) -> T,
    ) -> (Vec<TStmt>, T) {
        let (stmts, value, _) = self.side_where(condition, holds, f);
        (stmts, value)
    }

    /// The same, and whether nothing is computed behind it: it calls what never gives anything. Where it does not run, the rest
    /// goes on.
    pub fn side_where<T>(
        &mut self,
        condition: &TExpr,
        holds: bool,
        f: impl FnOnce(&mut Self) -> T,
    ) -> (Vec<TStmt>, T, bool) {
        let was_alive = self.alive;
        let (stmts, value) = self.perhaps(|cx| {
            cx.assume_condition(condition, holds);
            cx.block(f)
        });
        let ends = was_alive && !self.alive;
        self.alive = was_alive;
        (stmts, value, ends)
    }

    /// Checks a function value against argument types, for `op.scan` and the like: the
    /// instance, its result type, and the callee to pass. Whoever does not call it once at least goes on as
    /// after [`Cx::perhaps`].
    pub fn instantiate(
        &mut self,
        value: &TExpr,
        args: Vec<TExpr>,
        span: Span,
    ) -> Option<(InstId, Option<Box<TExpr>>, Ty)> {
        let Ty::FnRef(r) = value.ty.clone() else {
            if !value.ty.is_error() {
                let text = format!("a function is needed here, and this is `{}`", value.ty);
                let d = Diagnostic::new(Code::E0210, value.span, text);
                self.report(match value.ty {
                    Ty::Fn(..) => d
                        .note("which function the value is only the run knows; here its body is needed")
                        .help("leave the declared type out, or name the function itself"),
                    _ => d,
                });
            }
            return None;
        };
        if (r.derived.is_some() || r.item == super::types::BUILTIN_ITEM)
            && let Some(wrapped) = self.in_a_lambda(value, args.len(), span)
        {
            return self.instantiate(&wrapped, args, span);
        }
        let args = args.into_iter().map(|value| Value { name: None, value }).collect();
        let (_, call) = self.block(|cx| cx.call_function(&r, Some(value.clone()), args, span));
        if !call.ty.is_error() && call_inst(&call).is_none() {
            let message = format!("`{}` is not supported here yet", r.name);
            let help = format!("wrap it in a lambda that calls `{}`", r.name);
            self.report(Diagnostic::new(Code::E0690, value.span, message).help(help));
        }
        match call_parts(call) {
            Some((inst, ty)) => {
                if let Some(request) = self.requests.iter_mut().rev().find(|r| r.inst == inst) {
                    request.graph = true;
                }
                let callee = (!r.captures.is_empty()).then(|| Box::new(value.clone()));
                Some((inst, callee, ty))
            }
            None => None,
        }
    }

    /// The callee of an instance by its signature, for messages.
    pub fn sig_of(&self, r: &FnRefTy) -> Option<Arc<FnSig>> {
        let callee = Callee::of(r);
        fns::find_sig(self.db, callee.item, callee.start)
    }
}

/// Whether a value of the type shows what a size is.
fn tells(ty: &Ty, v: &SizeVar) -> bool {
    match ty {
        Ty::Int(Some(n)) => n.as_var() == Some(v),
        Ty::Tensor(t) => t.shape.iter().any(|n| n.as_var() == Some(v)),
        Ty::Tuple(ts) => ts.iter().any(|t| tells(t, v)),
        Ty::Struct(s) => s.fields.iter().any(|(_, t)| tells(t, v)),
        _ => false,
    }
}

fn call_inst(call: &TExpr) -> Option<InstId> {
    match &call.kind {
        TKind::Call { inst, .. } => Some(*inst),
        TKind::Block { value, .. } => call_inst(value),
        _ => None,
    }
}

fn call_parts(call: TExpr) -> Option<(InstId, Ty)> {
    if call.ty == Ty::Error {
        return None;
    }
    call_inst(&call).map(|inst| (inst, call.ty))
}
