//! Whole bodies: function instances and modules.

use super::annots::SigTypes;
use super::budgets;
use super::cx::{Cx, FnState, read};
use super::env::{Binding, Slot};
use super::fns;
use super::inst::Callee;
use super::limits::Active;
use super::numerics::Numerics;
use super::per_device::{is_local, of_blocks};
use super::size_checks::{self, SizeClaim};
use super::typed::{Note, Types};
use super::types::has_unknown;
use super::unsupported::Decorator;
use super::zonk::zonk;
use super::{CheckedInst, CheckedMain, InstData, ModuleVar};
use crate::db::{self, Db, File, InstRef, ItemKind};
use indexmap::IndexMap;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tessera_base::{Code, Diagnostic, ItemId, Mesh, Size, SizeVar, Span};
use tessera_core::ir::*;
use tessera_core::sizes::each_dim;
use tessera_core::ty::{FnRefTy, GlobalKey, Ty};
use tessera_core::walk::{each_expr, each_expr_in};
use tessera_grammar::ast::{Expr, ParamKind, Stmt, StmtKind};
use tessera_ir::graph::Policy;
use tessera_resolve::functions::{FnBody, FnLike};
use tessera_resolve::syntax::each_stmt;
use tessera_types::unify::{JoinKind, bind_signature, join, join_diagnostic, leaves_mesh, refine};

pub fn empty_inst(name: Arc<str>, span: Span) -> FnInst {
    FnInst {
        name,
        captures: vec![],
        params: vec![],
        locals: vec![],
        size_binds: vec![],
        ret: Ty::None,
        body: vec![],
        effect: Effect::Graph,
        policy: Policy::Deterministic,
        hints: None,
        budget: None,
        kernel: false,
        program: None,
        backward: None,
        kept: vec![],
        span,
    }
}

/// Checks a function at the types of its key.
pub fn check_inst(db: &dyn Db, own: InstRef) -> CheckedInst {
    checked_inst(db, own, &mut None)
}

/// What the expressions of an instance are.
pub fn types_of_inst(db: &dyn Db, own: InstRef) -> Types {
    let mut notes = Some(vec![]);
    checked_inst(db, own, &mut notes);
    Types::of(notes).remove(&db::inst_data(db, own).item).unwrap_or_default()
}

/// Takes notes, if there are any to take.
fn checked_inst(db: &dyn Db, own: InstRef, notes: &mut Option<Vec<Note>>) -> CheckedInst {
    let data = db::inst_data(db, own);
    let _active = Active::begin(own);
    let (Some(f), Some(file)) = (fns::find(db, data.item, data.start), db::home(db, data.item)) else {
        return CheckedInst {
            diagnostics: vec![Diagnostic::new(
                Code::E0999,
                Span::new(data.item, 0, 0),
                "a function is not where its call says",
            )],
            ret: Ty::Error,
            ..CheckedInst::unknown(data)
        };
    };
    let module = db::module_of(db, file.id(db));
    let mut cx = Cx::new(db, file, module, data.kinds.len() as u32, data.numerics);
    cx.sizes.facts = data.facts.clone();
    cx.data = Some(data.clone());
    cx.own = Some(own);
    cx.item_scope = db::item_of(db, data.item).map(|item| &**db::item_scope(db, item));
    cx.local = data.local.clone();
    let numerics = cx.decorated_numerics(&f.sig.decorators);
    cx.set_numerics(numerics);
    let budget = cx.budget_of(&f.sig.decorators);
    cx.kernel = cx.kernel_state(&f.sig.decorators, &f.sig.name, f.sig.head);
    cx.diagnostics.clear();
    let policy = cx.policy;
    cx.func = Some(FnState {
        f: f.clone(),
        item: data.item,
        ret: None,
        ret_span: f.sig.ret.as_ref().map_or(Span::NONE, |r| r.span),
        returns: vec![],
        size_binds: vec![],
        captured: data.captures.iter().map(|(n, _)| n.clone()).collect(),
    });
    let captures = captured(&mut cx, data, &f);
    let types = cx.signature(&f.sig, data.item, &data.captures);
    cx.constants = types.constants.clone();
    let blocks = data.local.clone().filter(|_| is_local(&f.sig));
    let stated = types.ret.clone();
    let types = match &blocks {
        Some(devices) => {
            let own = data.args.is_none().then(|| cx.own_blocks(&types, &devices.mesh));
            let types = of_blocks(types);
            match own {
                Some(own) => SigTypes { params: own.into_iter().map(Some).collect(), ..types },
                None => types,
            }
        }
        None => types,
    };
    // Reported at the definition.
    let broken = !types.diagnostics.is_empty();
    cx.env.notes = notes.take();
    let params = parameters(&mut cx, data, &f, &types);
    let known = cx.sizes.facts.clone();
    body(&mut cx, &f);
    // Results meet under what all paths know.
    cx.sizes.facts = known;
    let falls_through = cx.alive;
    if blocks.is_some() {
        cx.results_lie(&f, stated.as_ref());
    }
    let mut ret = result(&mut cx, &f, types.ret.as_ref());
    let program = {
        let written = std::mem::take(&mut cx.out);
        let program = cx.close_tiles(&params, &ret, &written);
        cx.out = written;
        program
    };
    ret = cx.return_outputs(&f, &params, ret, falls_through);
    let open = cx.guessing && ret == Ty::Never;
    if broken {
        ret = Ty::Error;
    }
    let outside = std::mem::take(&mut cx.outside);
    ret = tessera_core::sizes::subst_ty(&ret, &mut |v| outside.get(v).cloned());
    let backward = cx.backward(&f.sig, &params, &ret);
    let mut inst = FnInst {
        kept: cx.kept(),
        name: f.sig.name.clone(),
        captures,
        params,
        locals: std::mem::take(&mut cx.locals),
        size_binds: cx.func.as_mut().map_or(vec![], |s| std::mem::take(&mut s.size_binds)),
        ret: ret.clone(),
        body: std::mem::take(&mut cx.out),
        effect: effect(&cx),
        policy,
        hints: None,
        budget,
        kernel: false,
        program: None,
        backward,
        span: f.sig.head,
    };
    inst.program = program;
    cx.close_kernel(&inst.body);
    if let Some(state) = cx.kernel.take() {
        inst.kernel = state.kernel;
        inst.hints = Some(Arc::new(state.hints));
    }
    zonk(&mut inst, &[]);
    let mut reads = IndexMap::new();
    each_expr_in(&inst.body, &mut |e| {
        if let TKind::Global(id) = e.kind {
            reads.insert(id, e.ty.clone());
        }
    });
    *notes = cx.env.notes.take();
    notes.iter_mut().flatten().for_each(|n| n.close(&inst.locals, &[]));
    CheckedInst {
        inst,
        ret,
        reads: reads.into_iter().map(|(id, ty)| (cx.global_key(id).clone(), ty)).collect(),
        sig_vars: types.vars,
        size: cx.met.extent(),
        tables: cx.tables(),
        requests: cx.requests,
        diagnostics: cx.diagnostics,
        template: data.args.is_some() && blocks.is_none(),
        open,
        files: cx.files.into_iter().collect(),
        untyped: cx.untyped,
    }
}

fn effect(cx: &Cx) -> Effect {
    match &cx.host {
        Some((why, span)) => Effect::Host { why: why.clone(), span: *span, by_data: super::scalars::is_by_data(why) },
        None => Effect::Graph,
    }
}

fn captured(cx: &mut Cx, data: &InstData, f: &FnLike) -> Vec<LocalId> {
    let mut out = vec![];
    for (name, ty) in &data.captures {
        let of_type = name.strip_suffix(super::closures::OF_TYPE);
        let local = cx.temp(of_type.unwrap_or(name), ty.clone(), f.sig.head);
        out.push(local);
        cx.env.bind(name, Binding { slot: Slot::Local(local), ty: ty.clone(), span: f.sig.head, bad: None });
        let value = read(Slot::Local(local), ty.clone(), f.sig.head);
        cx.size_sources_of(ty, &value, true);
    }
    if f.nested && !f.sig.lambda {
        let own = FnRefTy {
            name: f.sig.name.clone(),
            item: data.item.0,
            start: data.start,
            captures: data.captures.clone(),
            derived: None,
        };
        cx.itself = Some((f.sig.name.clone(), Ty::FnRef(Arc::new(own))));
    }
    out
}

/// Binds the parameters and the sizes of the signature.
fn parameters(cx: &mut Cx, data: &InstData, f: &FnLike, types: &SigTypes) -> Vec<LocalId> {
    let mut tys: Vec<Ty> = vec![];
    match &data.args {
        None => {
            tys.extend(types.params.iter().map(|t| t.clone().unwrap_or(Ty::Error)));
            let mut axes = BTreeSet::new();
            tys.iter().for_each(|t| t.stated_axes(&mut axes));
            let mesh = Arc::new(Mesh::unknown(axes));
            tys = tys.iter().map(|t| t.stated_on(&mesh)).collect();
            cx.size_names.extend(types.names.clone());
            if let Some(state) = &mut cx.func {
                state.ret = types.ret.clone();
            }
        }
        Some(args) => template_types(cx, (args, data.erased.is_some()), types, &mut tys),
    }
    cx.name_blocks(&tys);
    signature_facts(cx, data, types, &tys);
    let mut out = vec![];
    let mut parts = vec![];
    let (mut written_types, mut telling) = (vec![], vec![]);
    for (p, ty) in f.sig.params.iter().zip(tys) {
        let span = p.name.span;
        // Every int parameter has a symbolic value, so that it can be a size.
        let ty = match ty {
            Ty::Int(None) => Ty::Int(Some(cx.sizes.fresh_int(&p.name.text))),
            other => other,
        };
        let Slot::Local(local) = cx.slot(&p.name.text, &ty, span) else { continue };
        out.push(local);
        cx.env.bind(&p.name.text, Binding { slot: Slot::Local(local), ty: ty.clone(), span, bad: None });
        let value = read(Slot::Local(local), ty.clone(), span);
        cx.size_sources_of(&ty, &value, true);
        if size_checks::has_sizes(&ty) {
            telling.push((ty.clone(), value.clone()));
        }
        if p.ty.is_some() {
            cx.declared.insert(p.name.text.clone());
            written_types.push((p.name.text.clone(), ty.clone()));
        }
        // An argument without a declared type is what it is, unless the type of a function value says so.
        let declared = p.ty.as_ref().filter(|_| p.kind != ParamKind::Rest).map(|t| t.span);
        if let Some(at) = declared.or(data.erased.is_some().then_some(span)) {
            let of = if f.sig.lambda { "the lambda".into() } else { format!("`{}`", f.sig.name) };
            let what = format!("the argument `{}` of {of}", p.name.text);
            parts.push(SizeClaim { what, declared: ty.clone(), found: ty, value, at, ints: true, before: false });
        }
    }
    if telling.iter().any(|(ty, _)| size_checks::has_composed(ty)) {
        cx.size_sources_of_all(&telling, true);
        cx.solved_together(&telling);
    }
    cx.declare_late_sizes(&written_types, f.sig.head);
    let compared = cx.check_sizes(parts);
    cx.out.extend(compared);
    // Of a size that is solved for, such as N of `Tensor[N + 3]`, there may be none.
    let own: Vec<SizeVar> = types.vars.iter().chain(cx.outside.keys()).filter(|v| v.natural).cloned().collect();
    for var in own {
        if cx.size_sources.get(&var).is_some_and(|(e, _)| matches!(e.kind, TKind::Arith { .. })) {
            cx.at_least_zero(&Size::var(var.clone()), &format!("the signature of `{}`", f.sig.name), f.sig.head);
        }
    }
    let written = cx.func.as_ref().and_then(|s| s.ret.clone());
    let (of, at) = (format!("the result of `{}`", f.sig.name), f.sig.ret.as_ref().map_or(f.sig.head, |r| r.span));
    for size in written.iter().flat_map(size_checks::sizes_of) {
        if size.as_var().is_none() && size.as_const().is_none() {
            cx.at_least_zero(&size, &of, at);
        }
    }
    out
}

/// Every dim that a signature writes is at least 0, those of the declared result too; of a template, those of its arguments.
fn signature_facts(cx: &mut Cx, data: &InstData, types: &SigTypes, params: &[Ty]) {
    if data.args.is_some() {
        return params.iter().for_each(|ty| cx.sizes.assume_dims_of(ty));
    }
    let facts = &mut cx.sizes.facts;
    let zero = Size::constant(0);
    for ty in params.iter().chain(&types.ret) {
        each_dim(ty, &mut |d| facts.assume_at_least(d, &zero));
    }
}

/// The parameter types of a template at given argument types.
fn template_types(cx: &mut Cx, (args, erased): (&[Ty], bool), types: &SigTypes, out: &mut Vec<Ty>) {
    let annotated: Vec<usize> = (0..args.len()).filter(|&i| types.params.get(i).is_some_and(Option::is_some)).collect();
    let declared: Vec<Ty> = annotated.iter().filter_map(|&i| types.params[i].clone()).collect();
    let found: Vec<Ty> = annotated.iter().map(|&i| args[i].clone()).collect();
    let vars: BTreeSet<SizeVar> = types.vars.iter().cloned().collect();
    out.extend(args.iter().cloned());
    // That they fit was checked at the call.
    let Ok(bindings) = bind_signature(&mut cx.sizes, &vars, &declared, &found, &[]) else { return };
    // A function that stands for a type has the sizes of that type.
    let sizes = if erased { bindings.sizes.clone() } else { own_sizes(cx, &bindings.sizes) };
    for (k, &i) in annotated.iter().enumerate() {
        let own = tessera_core::sizes::vars_of(&declared[k]).iter().any(|v| bindings.sizes.get(v) != sizes.get(v));
        let declared = match own {
            true => tessera_core::sizes::subst_ty(&declared[k], &mut |v| sizes.get(v).cloned()),
            false => bindings.params[k].clone(),
        };
        out[i] = match (&declared, &args[i]) {
            // The number where the call has it, else the one that the annotation names.
            (Ty::Int(n), Ty::Int(None)) => Ty::Int(n.clone()),
            (Ty::Int(Some(n)), Ty::Int(_)) if own => Ty::Int(Some(n.clone())),
            (declared, found) => refine(declared, found),
        };
    }
    for (name, size) in &types.names {
        if let Some(value) = size.as_var().and_then(|v| sizes.get(v)) {
            cx.size_names.insert(name.clone(), value.clone());
        }
    }
    let ret = types.ret.as_ref().map(|t| tessera_core::sizes::subst_ty(t, &mut |v| sizes.get(v).cloned()));
    if let Some(state) = &mut cx.func {
        state.ret = ret;
    }
}

/// What the sizes of a template's signature are in its body. One that is computed in the caller is a size of its own, which
/// parameters tell: what it is computed of they need not.
fn own_sizes(cx: &mut Cx, bound: &BTreeMap<SizeVar, Size>) -> BTreeMap<SizeVar, Size> {
    let own = |size: &Size| match size.as_var() {
        Some(v) => !v.natural && !v.each,
        None => size.as_const().is_none() && size.vars().iter().all(|v| !v.each),
    };
    let mut out = BTreeMap::new();
    for (var, size) in bound {
        // There is none: the entry stops the program.
        let none = var.natural && size.as_const().is_some_and(|n| n < 0);
        let inside = match none || own(size) {
            false => size.clone(),
            true => {
                let fresh = cx.sizes.fresh_var(&var.name);
                let inside = SizeVar { name: var.name.clone(), natural: var.natural, ..fresh };
                cx.outside.insert(inside.clone(), size.clone());
                if !none {
                    cx.sizes.facts.assume_equal(&Size::var(inside.clone()), size);
                }
                Size::var(inside)
            }
        };
        out.insert(var.clone(), inside);
    }
    out
}

fn body(cx: &mut Cx, f: &FnLike) {
    match &f.body {
        FnBody::Def(def) => cx.stmts(&def.body),
        FnBody::Lambda(value) => {
            let value = cx.expr(value);
            if !cx.alive {
                // Nothing is given.
                return;
            }
            let value = cx.given_as_erased(value);
            let (ty, at) = (value.ty.clone(), value.span);
            if let Some(state) = &mut cx.func {
                state.returns.push((ty.clone(), at));
            }
            if !ty.is_error() {
                cx.out.push(TStmt::Return(Some(value)));
            }
            cx.alive = false;
        }
    }
}

fn could_not_be_read(body: &[Stmt]) -> bool {
    let mut found = false;
    each_stmt(body, &mut |stmt| found |= matches!(stmt.kind, StmtKind::Error));
    found
}

/// The type of the result: as declared, or what all returns agree on.
fn result(cx: &mut Cx, f: &FnLike, declared: Option<&Ty>) -> Ty {
    let (returns, ret) = match &mut cx.func {
        Some(state) => (std::mem::take(&mut state.returns), state.ret.clone()),
        None => (vec![], None),
    };
    // How many dims it has the values that are returned say, and what a type that the signature leaves open is.
    let pattern = ret.clone().filter(|ret| matches!(ret, Ty::TensorPattern(_)) || has_unknown(ret));
    if let (Some(_), Some(ret)) = (declared, &ret)
        && cx.alive
        && !matches!(ret, Ty::None | Ty::Error)
    {
        let written = f.sig.ret.as_ref();
        let at = written.map_or(f.sig.head, |r| r.span);
        let d = Diagnostic::new(Code::E0204, at, format!("`{}` can end without returning a value", f.sig.name));
        let d = match *ret == Ty::Unknown {
            true => d,
            false => d.note(format!("it must give {ret} on every path")),
        };
        cx.report(d);
        if pattern.is_some() {
            return Ty::Error;
        }
    }
    if let (Some(_), Some(ret), None) = (declared, ret, &pattern) {
        // A declared result says nothing of a mesh: the values that are returned do.
        let says_more = |r: &&(Ty, Span)| r.0.on_a_mesh() || leaves_mesh(&ret) && !r.0.is_error();
        let Some((first, at)) = returns.iter().find(says_more) else { return ret };
        if let Some((other, there)) = returns.iter().find(|r| r.0 != *first && !r.0.is_error()) {
            let d =
                Diagnostic::new(Code::E0404, *there, format!("the results of `{}` lie in different ways", f.sig.name))
                    .here(other.to_string())
                    .with_label(*at, first.to_string())
                    .help("lay one out like the other: `dist.shard(x, spec)`");
            cx.report(d);
        }
        return refine(&ret, first);
    }
    // What could not be read may return anything.
    if matches!(&f.body, FnBody::Def(def) if could_not_be_read(&def.body)) {
        return Ty::Error;
    }
    let guessing = cx.guessing;
    let mut joined: Option<(Ty, Span)> = None;
    let returns: Vec<(Ty, Span)> = returns.into_iter().filter(|(t, _)| !guessing || *t != Ty::Error).collect();
    let end = cx.alive.then_some((Ty::None, f.sig.head));
    for (ty, at) in returns.into_iter().chain(end) {
        joined = Some(match joined {
            None => (ty, at),
            Some((have, first)) => match join(&mut cx.sizes, &have, &ty, JoinKind::Control, "n") {
                Some(t) => (t, first),
                None => {
                    let what = format!("the result of `{}`", f.sig.name);
                    let at = if at == f.sig.head { first } else { at };
                    let d = join_diagnostic(&what, at, (&have, first), (&ty, at));
                    let d = if ty == Ty::None { d.note("a path that ends without `return` gives None") } else { d };
                    cx.report(d);
                    (Ty::Error, first)
                }
            },
        });
    }
    let (ty, at) = joined.unwrap_or((Ty::Never, f.sig.head));
    if has_unknown(&ty) && guessing {
        return Ty::Never;
    }
    if has_unknown(&ty) {
        let d = Diagnostic::new(Code::E0216, at, format!("the element type of the result `{ty}` is not known"))
            .help("annotate the empty list, or the result of the function");
        cx.report(d);
        return Ty::Error;
    }
    pattern.map_or(ty.clone(), |pattern| if ty.is_error() { ty } else { refine(&pattern, &ty) })
}

/// What stands at the top level of a file, behind a module body that has run.
pub(crate) fn behind<'db>(db: &'db dyn Db, file: File, before: Option<&CheckedMain>) -> Cx<'db> {
    let module = db::module_of(db, file.id(db));
    let start = Numerics { policy: db.policy(), ..Numerics::default() };
    let (first, numerics) = before.map_or((0, start), |m| (m.next_size, m.numerics));
    let mut cx = Cx::new(db, file, module, first, numerics);
    let Some(before) = before else { return cx };
    // Its variables keep their numbers.
    cx.global_keys.extend(before.tables.globals.iter().cloned());
    cx.sizes.facts = before.facts.clone();
    cx.sizes.after(&before.size_names);
    for (name, var) in &before.vars {
        // Defined anew as something else.
        if let crate::db::InScope { entity: Some(_), variable: false } = cx.in_scope(file, name) {
            continue;
        }
        let id = cx.global_id(GlobalKey { module, name: name.clone(), ty: var.slot.clone() });
        let slot = Slot::Global(id);
        cx.adopt_slot(name, &var.ty, slot);
        cx.globals.push((id, Variable { name: name.clone(), ty: var.ty.clone(), span: var.span, compares: false }));
        let ty = if var.bad && var.why.is_none() { Ty::Error } else { var.ty.clone() };
        cx.env.bind(name, Binding { slot, ty, span: var.span, bad: var.why.clone() });
    }
    sizes_before(&mut cx, before);
    cx
}

/// Checks the body of a module.
pub fn check_main(db: &dyn Db, file: File) -> CheckedMain {
    checked_main(db, file, &mut None)
}

/// What the expressions are that the body of a module runs, by their items.
pub fn types_of_main(db: &dyn Db, file: File) -> BTreeMap<ItemId, Types> {
    let mut notes = Some(vec![]);
    checked_main(db, file, &mut notes);
    Types::of(notes)
}

fn checked_main(db: &dyn Db, file: File, notes: &mut Option<Vec<Note>>) -> CheckedMain {
    let mut cx = behind(db, file, file.before(db).as_ref().map(|b| &*b.main));
    cx.env.notes = notes.take();
    for (later, earlier) in &db::scope(db, file).twice {
        twice(&mut cx, *later, *earlier);
    }
    let mut defs = vec![];
    for head in file.heads(db).iter() {
        let Some(item) = db::item_of(db, head.id) else { continue };
        match head.kind {
            ItemKind::Def if item.signature(db).is_some() => {
                let names = cx.sizes.replace_names(BTreeMap::new());
                definition(&mut cx, head.id);
                cx.sizes.replace_names(names);
                defs.push(head.id);
            }
            ItemKind::Struct if item.struct_def(db).is_some() => {
                let names = cx.sizes.replace_names(BTreeMap::new());
                cx.check_struct(head.id);
                cx.sizes.replace_names(names);
            }
            _ => {
                for stmt in &item.syntax(db).stmts {
                    cx.stmt(stmt);
                }
            }
        }
    }
    if file.prompt(db).is_some() {
        keep_last(&mut cx);
    }
    cx.close_rest(0);
    for id in defs {
        at_annotations(&mut cx, id);
    }
    *notes = cx.env.notes.take();
    let main = finish_main(cx, file);
    notes.iter_mut().flatten().for_each(|n| n.close(&main.inst.locals, &main.globals));
    main
}

/// What inputs before say about sizes and types: the names that annotations declare, and where the value of each size
/// is read. A local of an input is gone with it; what has the size is the source then.
fn sizes_before(cx: &mut Cx, before: &CheckedMain) {
    let usable: Vec<(Arc<str>, Binding)> =
        cx.env.bound().filter(|(_, b)| b.bad.is_none()).map(|(name, b)| (name.clone(), b.clone())).collect();
    cx.declared = usable.iter().map(|(name, _)| name.clone()).filter(|name| before.declared.contains(name)).collect();
    let here: BTreeSet<Slot> = usable.iter().map(|(_, b)| b.slot).collect();
    for (var, source) in &before.size_sources {
        let mut lasts = true;
        each_expr(source, &mut |e| {
            lasts &= match e.kind {
                TKind::Local(_) => false,
                TKind::Global(id) => here.contains(&Slot::Global(id)),
                _ => true,
            }
        });
        if lasts {
            cx.size_sources.insert(var.clone(), (source.clone(), false));
        }
    }
    for (_, b) in usable {
        cx.size_sources_of(&b.ty, &read(b.slot, b.ty.clone(), b.span), false);
    }
}

/// At a prompt the value of an expression goes into the variable `_`.
fn keep_last(cx: &mut Cx) {
    if matches!(cx.last, None | Some(Ty::None | Ty::Error | Ty::Never)) {
        return;
    }
    match cx.out.pop() {
        Some(TStmt::Expr(value)) => {
            let span = value.span;
            cx.bind(&"_".into(), value, span);
        }
        other => cx.out.extend(other),
    }
}

fn finish_main(mut cx: Cx, file: File) -> CheckedMain {
    let vars: BTreeMap<Arc<str>, ModuleVar> = cx
        .env
        .bound()
        .filter_map(|(name, b)| match b.slot {
            Slot::Global(id) => {
                let bad = b.bad.is_some() || b.ty.is_error();
                let slot = cx.global_key(id).ty.clone();
                Some((name.clone(), ModuleVar { slot, ty: b.ty.clone(), span: b.span, bad, why: b.bad.clone() }))
            }
            Slot::Local(_) => None,
        })
        .collect();
    let span = file.heads(cx.db).first().map_or(Span::NONE, |h| Span::new(h.id, 0, 0));
    let mut inst = FnInst {
        locals: std::mem::take(&mut cx.locals),
        body: std::mem::take(&mut cx.out),
        effect: Effect::Host { why: "the module body".into(), span, by_data: false },
        policy: cx.db.policy(),
        kept: cx.kept(),
        ..empty_inst("main".into(), span)
    };
    let globals: Vec<(GlobalId, Variable)> =
        cx.globals.drain(..).map(|(id, v)| (id, super::zonk::known_variable(v))).collect();
    zonk(&mut inst, &globals);
    CheckedMain {
        inst,
        globals,
        vars,
        facts: cx.sizes.facts.clone(),
        size_sources: cx.size_sources.iter().map(|(var, (source, _))| (var.clone(), source.clone())).collect(),
        declared: std::mem::take(&mut cx.declared),
        next_size: cx.sizes.next_id(),
        size_names: cx.sizes.names().clone(),
        numerics: cx.numerics(),
        tables: cx.tables(),
        requests: cx.requests,
        diagnostics: cx.diagnostics,
        files: cx.files.into_iter().collect(),
        untyped: cx.untyped,
        last: cx.last,
    }
}

fn twice(cx: &mut Cx, later: ItemId, earlier: ItemId) {
    let name = |cx: &Cx, id: ItemId| {
        let item = db::item_of(cx.db, id)?;
        match item.signature(cx.db) {
            Some(sig) => Some((sig.name.clone(), sig.head)),
            None => item.struct_def(cx.db).as_ref().map(|d| (d.name.text.clone(), d.name.span)),
        }
    };
    if let (Some((text, at)), Some((_, first))) = (name(cx, later), name(cx, earlier)) {
        let d = Diagnostic::new(Code::E0106, at, format!("`{text}` is defined twice"))
            .with_label(first, "first here")
            .help("give one of them another name");
        cx.report(d);
    }
}

/// What can be said of a function without its body.
fn definition(cx: &mut Cx, id: ItemId) {
    let Some(sig) = fns::find_sig_of_item(cx.db, id) else { return };
    let mut seen: BTreeMap<Arc<str>, Span> = BTreeMap::new();
    for p in &sig.params {
        if let Some(first) = seen.insert(p.name.text.clone(), p.name.span) {
            let d =
                Diagnostic::new(Code::E0106, p.name.span, format!("the parameter `{}` is named twice", p.name.text))
                    .with_label(first, "first here");
            cx.report(d);
        }
    }
    cx.warn_hidden(&sig.name, sig.head);
    let mut budget: Option<&Expr> = None;
    for e in &sig.decorators {
        let Decorator::Budget = cx.decorator(e) else { continue };
        match budget.replace(e) {
            Some(first) => cx.report(budgets::twice(&sig.name, first, e)),
            None if is_local(&sig) => cx.report(budgets::per_device(&sig.name, e)),
            None => {}
        }
    }
    let types = cx.signature(&sig, id, &[]);
    for (name, at, variable) in &types.namesakes {
        cx.report(namesake(&sig.name, name, *at, *variable));
    }
    for d in types.diagnostics {
        cx.report(d);
    }
}

/// W0104: a size of a signature that has the name of a variable.
fn namesake(function: &str, name: &str, at: Span, variable: Span) -> Diagnostic {
    let d = Diagnostic::new(
        Code::W0104,
        at,
        format!("`{name}` is a size of `{function}` here, and not the variable `{name}` of the file"),
    );
    let d = if variable.is_none() { d } else { d.with_label(variable, "the variable") };
    d.note("a name of the file stands for its value in a signature only if the file binds it once, above, outside of loops and branches, to an int that is known before the run")
        .help("give one of them another name")
}

/// An annotated function is checked at its annotations even if nothing calls it.
fn at_annotations(cx: &mut Cx, id: ItemId) {
    let Some(sig) = fns::find_sig_of_item(cx.db, id) else { return };
    let types = cx.signature(&sig, id, &[]);
    if !types.diagnostics.is_empty() {
        for d in types.diagnostics {
            cx.report(d);
        }
        return;
    }
    if types.closed(&sig) {
        let numerics = cx.numerics();
        cx.set_numerics(Numerics { policy: cx.db.policy(), ..Numerics::default() });
        let callee = Callee { item: id, start: sig.start, captures: &[] };
        if is_local(&sig) && !cx.whole_params(&sig, &types) {
            return;
        }
        let devices = is_local(&sig).then(|| cx.unknown_devices(&types));
        if devices.as_ref().is_some_and(|d| d.sizes.is_empty()) {
            // No axis is named: what there is of devices, a call tells.
            cx.set_numerics(numerics);
            return;
        }
        let (data, _) = cx.instance_on(&callee, None, devices);
        cx.set_numerics(numerics);
        cx.need(&data, sig.head);
    }
}
