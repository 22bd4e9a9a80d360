//! Calls.

use super::annots::SigTypes;
use super::args::{Slot, Value};
use super::container_literals::{Wanted, of_params};
use super::cx::{Cx, error_at};
use super::fns;
use super::inst::Callee;
use super::names::Meaning;
use super::scalars::floats_of;
use super::size_checks::SizeClaim;
use super::types::{BUILTIN_ITEM, erase};
use crate::db;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tessera_base::{Code, DType, Diagnostic, ItemId, Size, SizeVar, Span, TensorType};
use tessera_core::ir::*;
use tessera_core::sizes::{of_any_size, vars_of};
use tessera_core::ty::{FnRefTy, Ty};
use tessera_grammar::ast::{Arg, Expr, ExprKind, ParamKind};
use tessera_resolve::functions::FnSig;
use tessera_types::unify::{Coerce, bind_signature, param_mismatch_diagnostic, refine};

impl Cx<'_> {
    pub fn call(&mut self, func: &Expr, args: &[Arg], span: Span) -> TExpr {
        // A method, unless the name before the dot is a module.
        if let ExprKind::Attr { base, name } = &func.kind
            && self.meaning_is_value(func)
        {
            let receiver = self.receiver(base);
            let before = self.diagnostics.len();
            let value = self.method(base, receiver, name, args, span);
            self.hides(base, before, [name.span, span]);
            if let Some(d) = crate::mistaken::exchanges_nothing(name, args, &value) {
                self.report(d);
            }
            return value;
        }
        match self.callee(func) {
            Meaning::Value(value) => {
                let before = self.diagnostics.len();
                let value = self.call_value(value, args, span);
                self.hides(func, before, [func.span, span]);
                value
            }
            Meaning::Def(item) => {
                let value = self.def_value(item, func.span);
                self.call_value(value, args, span)
            }
            Meaning::Struct(id) => self.construct(id, args, span),
            Meaning::Builtin(name) => self.call_builtin(&name, args, span, func.span),
            Meaning::DType(tessera_base::DType::Bool) => self.call_builtin(&"bool".into(), args, span, func.span),
            Meaning::DType(d) => {
                let d = Diagnostic::new(Code::E0210, func.span, format!("the element type `{d}` is not callable"))
                    .help_about(&format!("convert a tensor with `{{x}}.to({d})`"), &first_of(args));
                self.args(args);
                self.fail(d)
            }
            Meaning::Module(name) => {
                let d = Diagnostic::new(Code::E0210, func.span, format!("the module `{name}` is not callable"));
                self.fail(d)
            }
            Meaning::File(_) => {
                let d = Diagnostic::new(Code::E0210, func.span, "a module is not callable");
                self.fail(d)
            }
            Meaning::Type(name) => {
                let d = Diagnostic::new(Code::E0210, func.span, format!("the type `{name}` is not callable"));
                self.fail(match name {
                    "Tensor" => d.help("make a tensor with `op.array`, `op.zeros` or `op.full`"),
                    _ => d.help(format!("write `dist.{name}(…)`")),
                })
            }
            Meaning::Broken => {
                // The arguments may have errors of their own.
                self.args(args);
                error_at(span)
            }
        }
    }

    /// Says of what was reported of a variable at a call, that it has no such method, does not take this, or is not callable, that
    /// the name is one of the language, too.
    fn hides(&mut self, e: &Expr, before: usize, at: [Span; 2]) {
        let reported = self.diagnostics.get_mut(before..).unwrap_or_default();
        let of_it =
            |d: &&mut Diagnostic| matches!(d.code, Code::E0103 | Code::E0104 | Code::E0210) && at.contains(&d.span);
        if let (ExprKind::Name(name), Some(d)) = (&e.kind, reported.iter_mut().find(of_it))
            && let Some(what) = crate::members::built_in(name)
        {
            d.notes
                .push(format!("`{name}` is a variable here, and hides the {what} that is built in: use another name"));
        }
    }

    /// Whether `a.b` is an attribute of a value (and not a member of a module).
    fn meaning_is_value(&mut self, func: &Expr) -> bool {
        let ExprKind::Attr { base, .. } = &func.kind else { return false };
        !super::names::is_dotted(base) || !self.is_module_path(base)
    }

    /// A call of a checked value.
    pub fn call_value(&mut self, mut callee: TExpr, args: &[Arg], span: Span) -> TExpr {
        match callee.ty.clone() {
            Ty::Error | Ty::Never => {
                self.args(args);
                error_at(span)
            }
            Ty::FnRef(r) if r.derived.is_some() => {
                let values = self.right_of([&mut callee], |cx| cx.args(args));
                self.call_derived(callee, values, span)
            }
            Ty::FnRef(r) if r.item == BUILTIN_ITEM => self.call_builtin(&r.name, args, span, callee.span),
            Ty::FnRef(r) => {
                let sig = fns::find_sig(self.db, ItemId(r.item), r.start);
                let wanted = || sig.map_or(vec![], |sig| of_params(&sig.params));
                let values = self.right_of([&mut callee], |cx| cx.args_for(args, wanted));
                self.call_function(&r, Some(callee), values, span)
            }
            Ty::Fn(params, ret) => self.call_erased(callee, &params, &ret, args, span),
            ty => {
                self.args(args);
                let d = Diagnostic::new(Code::E0210, span, format!("`{ty}` is not callable"));
                let d = match &callee.kind {
                    _ if ty.is_tensor() || matches!(ty, Ty::List(_)) => {
                        d.help_about("index with square brackets: `{x}[i]`", &[("x", callee.span)])
                    }
                    _ => match &ty {
                        Ty::Struct(s) => self.called_struct(d, s, callee.span),
                        _ => d,
                    },
                };
                self.fail(d.with_label(callee.span, format!("this is `{ty}`")))
            }
        }
    }

    fn call_erased(&mut self, callee: TExpr, params: &[Ty], ret: &Ty, args: &[Arg], span: Span) -> TExpr {
        let told = self.size_sources.clone();
        let mut callee = self.told_by_holder(callee);
        let wanted = || params.iter().map(|ty| Wanted::plain("", ty.clone())).collect();
        let values = self.right_of([&mut callee], |cx| cx.args_for(args, wanted));
        let result = self.call_erased_with(callee, params, ret, values, span);
        self.size_sources = told;
        result
    }

    /// The same with checked arguments.
    pub fn call_erased_with(
        &mut self,
        callee: TExpr,
        params: &[Ty],
        ret: &Ty,
        values: Vec<Value>,
        span: Span,
    ) -> TExpr {
        let slots: Vec<Slot> = (0..params.len()).map(|i| Slot::plain(&format!("{i}"), false)).collect();
        let told = self.size_sources.clone();
        let whole = self.of_this_call(&Ty::Fn(params.to_vec(), Box::new(ret.clone())));
        let Ty::Fn(params, ret) = &whole else { return error_at(span) };
        let Some(matched) = self.match_params("this function", &slots, values, span, None) else {
            return error_at(span);
        };
        let (mut out, mut telling) = (vec![], vec![]);
        // A size of the function type that nothing else tells is what the first argument says.
        for (mut value, ty) in matched.into_iter().flatten().zip(params) {
            let role = tessera_types::unify::Role::Other("the argument".into());
            let mut open =
                tessera_core::sizes::vars_of(ty).into_iter().filter(|v| !self.size_sources.contains_key(v)).collect();
            self.sizes.told_by(ty, &value.ty, &mut open);
            self.tell_by(ty, &value.ty);
            // Which function it is only the run knows: it was checked for tensors that lie as its type says.
            value = self.expect_sharding(value, ty, &role, Span::NONE);
            let found = value.ty.clone();
            if self.has_late_size(ty) && !found.is_error() {
                value = self.save("argument", value);
                let part = SizeClaim {
                    what: "the argument".into(),
                    declared: ty.clone(),
                    found: found.clone(),
                    value: value.clone(),
                    at: value.span,
                    ints: false,
                    before: false,
                };
                let stmts = self.check_sizes(vec![part]);
                self.out.extend(stmts);
                self.mark_assigned(ty);
            }
            let mut value = self.expect(value, ty, "argument", Span::NONE, role);
            // What is not known here the function compares: until then the argument is what it is.
            if erase(&found) == erase(&value.ty) && !super::coerce::holds_any(&found) {
                value.ty = found;
            }
            if super::size_checks::has_sizes(ty) {
                value = self.save("argument", value);
                self.size_sources_of(ty, &value, false);
                telling.push((ty.clone(), value.clone()));
            }
            out.push(value);
        }
        if telling.iter().any(|(ty, _)| super::size_checks::has_composed(ty)) {
            self.size_sources_of_all(&telling, false);
        }
        if out.iter().any(|a| a.ty.is_error()) {
            return error_at(span);
        }
        self.host("calls a function that only the run knows", span);
        // Which function it is only the run knows, and so what sizes it gives.
        let sizes = &mut self.sizes;
        let gives = of_any_size(ret, &mut |each| {
            let var = sizes.fresh_var("n");
            Size::var(if each { var.in_each() } else { var })
        });
        let kind = TKind::CallValue { callee: Box::new(callee), args: out };
        let call = TExpr { kind, ty: gives.clone(), span };
        let what = "the result of this function";
        let result = match super::size_checks::has_sizes(ret) {
            true => {
                self.sizes.note_type(ret, what, span);
                self.compared(call, (ret, &gives), "result", what.into(), span, vec![])
            }
            false => call,
        };
        self.mark_assigned(ret);
        self.size_sources = told;
        result
    }

    /// A function that is a part of a struct: the struct tells the sizes of its parts.
    fn told_by_holder(&mut self, callee: TExpr) -> TExpr {
        let TExpr { kind, ty, span } = callee;
        let kind = match kind {
            TKind::Field(base, i) => TKind::Field(Box::new(self.told_by_holder(*base)), i),
            TKind::Index(base, key) if matches!(base.ty, Ty::List(_) | Ty::Dict(..)) => {
                TKind::Index(Box::new(self.told_by_holder(*base)), key)
            }
            kind => {
                let whole = TExpr { kind, ty, span };
                if !matches!(whole.ty, Ty::Struct(_)) {
                    return whole;
                }
                let whole = if whole.is_certain() { whole } else { self.save("struct", whole) };
                self.size_sources_of(&whole.ty.clone(), &whole, false);
                return whole;
            }
        };
        TExpr { kind, ty, span }
    }

    /// A call of a particular function with checked arguments.
    pub fn call_function(&mut self, r: &FnRefTy, callee: Option<TExpr>, args: Vec<Value>, span: Span) -> TExpr {
        self.call_function_as(r, callee, args, None, span)
    }

    /// The same, where the function is to be a value of a function type with the result `erased`.
    pub fn call_function_as(
        &mut self,
        r: &FnRefTy,
        callee: Option<TExpr>,
        args: Vec<Value>,
        erased: Option<&Ty>,
        span: Span,
    ) -> TExpr {
        if r.derived.is_some() {
            let Some(callee) = callee else { return error_at(span) };
            return self.call_derived(callee, args, span);
        }
        if let Some(name) = (r.item == BUILTIN_ITEM).then(|| r.name.clone()) {
            return self.call_builtin_values(&name, args, span, span);
        }
        let r = &self.with_known_ints(r);
        let Some(sig) = fns::find_sig(self.db, ItemId(r.item), r.start) else { return error_at(span) };
        let name: &str = if sig.lambda { "the lambda" } else { &sig.name };
        let slots: Vec<Slot> = sig.params.iter().map(Slot::of).collect();
        let Some(matched) = self.match_params(name, &slots, args, span, Some(sig.head)) else { return error_at(span) };
        let mut values = vec![];
        for (p, value) in sig.params.iter().zip(matched) {
            values.push(match (value, &p.default) {
                (Some(v), _) => v,
                (None, Some(default)) => {
                    let value = self.default_value(default, p.ty.as_ref(), ItemId(r.item));
                    TExpr { span, ..value }
                }
                (None, None) => error_at(span),
            });
        }
        if values.iter().any(|v| v.ty.is_error()) {
            return error_at(span);
        }
        let types: Vec<Ty> = values.iter().map(|v| v.ty.clone()).collect();
        for (value, ty) in values.iter_mut().zip(self.functions_apart(&types)) {
            value.ty = ty;
        }
        if sig.outputs.is_empty() {
            return self.call_sig(r, &sig, callee, values, erased, span);
        }
        let Some(outputs) = self.output_lvalues(&sig, &values, span) else { return error_at(span) };
        let args = values.clone();
        let call = self.call_sig(r, &sig, callee, values, None, span);
        let types: Vec<Ty> = args.iter().map(|v| v.ty.clone()).collect();
        let closed = sig.params.iter().all(|p| p.ty.is_some()) && sig.ret.is_some();
        if !self.outputs_apart(&sig, &Callee::of(r), (!closed).then_some(&types[..]), &args, &outputs, span) {
            return error_at(span);
        }
        self.write_outputs(call, outputs, span)
    }

    /// The function with a symbol for each int that it has captured and of which nothing is known, one of several
    /// functions perhaps: its signature may name it.
    fn with_known_ints(&mut self, r: &FnRefTy) -> FnRefTy {
        let captures = r.captures.iter().map(|(name, ty)| {
            let ty = match ty {
                Ty::Int(None) => Ty::Int(Some(Size::var(SizeVar { natural: false, ..self.sizes.elsewhere(name) }))),
                ty => ty.clone(),
            };
            (name.clone(), ty)
        });
        FnRefTy { captures: captures.collect(), ..r.clone() }
    }

    fn call_sig(
        &mut self,
        r: &FnRefTy,
        sig: &Arc<FnSig>,
        callee: Option<TExpr>,
        values: Vec<TExpr>,
        erased: Option<&Ty>,
        span: Span,
    ) -> TExpr {
        let item = ItemId(r.item);
        let types = self.call_signature(sig, item, r);
        if !types.diagnostics.is_empty() {
            // Reported at the definition.
            return error_at(span);
        }
        let per_device = super::per_device::is_local(sig);
        if per_device && self.local.is_none() {
            return self.call_local(r, sig, types, callee, values, span);
        }
        let types = if per_device { super::per_device::of_blocks(types) } else { types };
        // How tensors lie over a mesh belongs to their type, and the body is checked for it.
        let closed = types.closed(sig) && !per_device && erased.is_none() && !values.iter().any(|v| v.ty.on_a_mesh());
        let vars: BTreeSet<SizeVar> = types.vars.iter().cloned().collect();
        // Arguments of unannotated parameters say nothing about sizes.
        let annotated: Vec<usize> =
            (0..values.len()).filter(|&i| types.params[i].is_some() && sig.params[i].kind != ParamKind::Rest).collect();
        let declared: Vec<Ty> = annotated.iter().filter_map(|&i| types.params[i].clone()).collect();
        let found: Vec<Ty> = annotated.iter().map(|&i| values[i].ty.clone()).collect();
        let spans: Vec<Span> = annotated.iter().map(|&i| values[i].span).collect();
        let bindings = match self.bind_call(&vars, &declared, &found, &spans) {
            Ok(b) => b,
            Err(p) => {
                let params: Vec<(Arc<str>, Span)> = annotated
                    .iter()
                    .map(|&i| {
                        let p = &sig.params[i];
                        (p.name.text.clone(), p.ty.as_ref().map_or(p.name.span, |t| t.span))
                    })
                    .collect();
                let d = param_mismatch_diagnostic(&p, &sig.name, &params, &spans);
                let d = self.with_namesakes(d, &p.mismatch);
                return self.fail(super::constants::with_constants(d, &types.constants));
            }
        };
        let compares = bindings.coerces.iter().any(Coerce::compares);
        let mut values = values;
        let mut failed = false;
        for (k, &i) in annotated.iter().enumerate() {
            let value = std::mem::replace(&mut values[i], error_at(span));
            let role = tessera_types::unify::Role::Argument {
                function: sig.name.to_string(),
                param: sig.params[i].name.text.to_string(),
            };
            let at = sig.params[i].ty.as_ref().map_or(Span::NONE, |t| t.span);
            let expected = (&bindings.params[k], compares);
            let value = self.expect_argument(value, expected, &sig.params[i].name.text, at, role);
            failed |= value.ty.is_error();
            values[i] = value;
        }
        if failed {
            return error_at(span);
        }
        // An empty list whose elements nothing tells stays one: see `zonk`.
        for value in values.iter_mut().filter(|v| super::types::has_unknown(&v.ty)) {
            value.ty = super::zonk::known(&value.ty);
        }
        let f = Callee::of(r);
        let mut arg_types: Vec<Ty> = values.iter().map(|v| v.ty.clone()).collect();
        // The function compares the sizes of its parameters: inside they are what it declares.
        for (k, &i) in annotated.iter().enumerate().filter(|_| compares) {
            arg_types[i] = refine(&bindings.params[k], &arg_types[i]);
        }
        let local = self.local.clone();
        let (data, canon) = self.instance_of(&f, (!closed).then_some(&arg_types[..]), local, erased);
        let ret = match (&types.ret, closed && sig.outputs.is_empty()) {
            (Some(ret), true) => {
                arg_types.iter().for_each(|ty| self.sizes.assume_dims_of(ty));
                let ret = bindings.apply(&mut self.sizes, ret).clone();
                // A size that is solved for is one, too: of `Tensor[N + 3]` against 2 there is none.
                let solved = bindings.sizes.iter().filter(|(v, _)| v.natural);
                let solved = Ty::Tensor(TensorType::new(solved.map(|(_, n)| n.clone()).collect(), DType::F32));
                if !self.dims_hold(&sig.name, bindings.params.iter().chain([&ret, &solved]), span) {
                    return error_at(span);
                }
                ret
            }
            _ => {
                let Some(checked) = self.check_callee(&data, &sig.name, span) else { return error_at(span) };
                if checked.open {
                    self.guessing = true;
                    self.need(&data, span);
                    return error_at(span);
                }
                let sig_sizes: BTreeMap<SizeVar, Size> = checked
                    .sig_vars
                    .iter()
                    .zip(&types.vars)
                    .filter_map(|(theirs, ours)| Some((theirs.clone(), bindings.sizes.get(ours)?.clone())))
                    .collect();
                self.from_callee(&checked.ret.clone(), &canon, &sig_sizes)
            }
        };
        let inst = self.need(&data, span);
        // Data sizes of the declared result are new ones for each call.
        let ret = match (&types.ret, closed && sig.outputs.is_empty()) {
            (Some(_), true) => self.renew(&ret, &types, r),
            _ => ret,
        };
        let callee = (!r.captures.is_empty()).then(|| callee.map(Box::new)).flatten();
        TExpr { kind: TKind::Call { inst, callee, args: values }, ty: ret, span }
    }

    /// Sizes that only the declared result names are new for each call; what the function has captured is not.
    fn renew(&mut self, ret: &Ty, types: &SigTypes, r: &FnRefTy) -> Ty {
        let Some(declared) = &types.ret else { return ret.clone() };
        let captured: BTreeSet<SizeVar> = r.captures.iter().flat_map(|(_, t)| vars_of(t)).collect();
        let new = |v: &SizeVar| !v.rigid && !types.vars.contains(v) && !captured.contains(v);
        let made: BTreeSet<SizeVar> = vars_of(declared).into_iter().filter(new).collect();
        let fresh: BTreeMap<SizeVar, Size> = made.into_iter().map(|v| (v.clone(), self.sizes.fresh_like(&v))).collect();
        tessera_core::sizes::subst_ty(ret, &mut |v| fresh.get(v).cloned())
    }

    /// The sizes of a call. Function values against function types are left to coercion.
    fn bind_call(
        &mut self,
        vars: &BTreeSet<SizeVar>,
        declared: &[Ty],
        found: &[Ty],
        spans: &[Span],
    ) -> Result<tessera_types::unify::Bindings, Box<tessera_types::unify::ParamMismatch>> {
        // Literals convert element by element, which the plain types do not show.
        let found: Vec<Ty> = declared.iter().zip(found).map(|(d, f)| literal_fit(d, f)).collect();
        bind_signature(&mut self.sizes, vars, declared, &found, spans)
    }

    /// The signature of a callee in this body's terms. Captured names are in scope of its
    /// annotations.
    fn call_signature(&mut self, sig: &FnSig, item: ItemId, r: &FnRefTy) -> SigTypes {
        if sig.params.iter().all(|p| p.ty.is_none()) && sig.ret.is_none() {
            return SigTypes { params: vec![None; sig.params.len()], ..SigTypes::default() };
        }
        self.signature(sig, item, &r.captures)
    }

    /// The default of a parameter, in the scope of its module.
    pub fn default_value(&mut self, e: &Expr, declared: Option<&Expr>, item: ItemId) -> TExpr {
        let declared = declared.map_or(Ty::Unknown, super::container_literals::outline);
        let home = db::home(self.db, item).unwrap_or(self.file);
        self.in_module(home, |cx| cx.expr_for(e, &declared))
    }
}

/// The type that a literal may take on where `declared` is wanted.
pub fn literal_fit(declared: &Ty, found: &Ty) -> Ty {
    match found {
        Ty::List(_) | Ty::Dict(..) => floats_of(found, declared),
        // Of a plain tuple the elements convert one by one.
        Ty::Tuple(fs) => match declared {
            Ty::Tuple(ds) if ds.len() == fs.len() => {
                Ty::Tuple(ds.iter().zip(fs).map(|(d, f)| literal_fit(d, f)).collect())
            }
            _ => found.clone(),
        },
        _ => found.clone(),
    }
}

/// The first argument, as `x`.
fn first_of(args: &[Arg]) -> Vec<(&'static str, Span)> {
    args.first().map(|a| ("x", a.value.span)).into_iter().collect()
}
