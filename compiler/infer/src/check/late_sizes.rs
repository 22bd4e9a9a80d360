//! Sizes of a signature that nothing tells for sure when the function starts: those of elements of lists that may be
//! empty, those that only the type of a function names, and M of `N*M`, which N = 0 hides.
//!
//! Each is one number all the same. It is kept in a variable, the first value that has it sets that, and later ones are
//! compared with it. What reads the size before anything told it stops the program.

use super::cx::{Cx, int};
use super::element_sizes::is_search;
use super::iterate::int_test;
use super::size_checks::{fault, sizes_of};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tessera_base::{Code, Diagnostic, Size, SizeVar, Span, Verdict};
use tessera_core::ir::*;
use tessera_core::sizes::vars_of;
use tessera_core::ty::{StructTy, Ty};
use tessera_grammar::ast::CmpOp;

/// Where the number is kept that the first value with the size tells.
#[derive(Clone, Debug)]
pub struct LateSize {
    pub local: LocalId,
    /// Where the parameters are that should tell it.
    at: Span,
    /// Why there may be none, in words.
    why: Vec<String>,
    /// Only calls of these parameters tell it.
    calls: Vec<Arc<str>>,
    /// Whether something has told it on every path to here.
    told: bool,
    /// Whether something before, in the text, may have told it.
    perhaps: bool,
    /// It follows from a dim that is made of it and of others of these: N of `N*K` where elements of a list tell K.
    pub follows: bool,
}

impl LateSize {
    /// Whether something has told it on every path to here.
    pub fn is_assigned(&self) -> bool {
        self.told
    }
}

impl Cx<'_> {
    /// Keeps the sizes in the declared types of parameters of which nothing that is there for sure tells the value.
    pub fn declare_late_sizes(&mut self, params: &[(Arc<str>, Ty)], span: Span) {
        let mut of_functions: BTreeMap<SizeVar, Vec<Arc<str>>> = BTreeMap::new();
        let mut all: BTreeSet<SizeVar> = BTreeSet::new();
        for (name, ty) in params {
            all.extend(vars_of(ty));
            let mut own = BTreeSet::new();
            vars_of_functions(ty, &mut own);
            own.into_iter().for_each(|v| of_functions.entry(v).or_default().push(name.clone()));
        }
        // A dim is at least 0, whatever it is computed from.
        let dims: BTreeSet<Size> = params.iter().flat_map(|(_, ty)| sizes_of(ty)).collect();
        let natural = |v: &SizeVar| v.natural || dims.contains(&Size::var(v.clone()));
        for var in all.into_iter().filter(|v| natural(v) && !v.each) {
            let source = self.size_sources.get(&var).map(|(e, _)| e.clone());
            let calls = of_functions.remove(&var).unwrap_or_default();
            let search = match source {
                None if calls.is_empty() => continue,
                None => None,
                Some(e) if is_search(&e) => Some(e),
                Some(_) => continue,
            };
            let local = self.keep_size(&var, span);
            let mut why: Vec<String> = search.iter().map(|e| self.not_found(e, &var.name)).collect();
            if !calls.is_empty() {
                let names: Vec<String> = calls.iter().map(|n| format!("`{n}`")).collect();
                why.push(format!("no call of {} has told it", names.join(" or ")));
            }
            let at = search.as_ref().map_or(span, |e| e.span);
            let perhaps = search.is_some();
            self.late_sizes.insert(var, LateSize { local, at, why, calls, told: false, perhaps, follows: false });
        }
        self.keep_what_follows(&dims, span);
    }

    /// The sizes that follow from dims that are made of them and of sizes that are kept.
    fn keep_what_follows(&mut self, dims: &BTreeSet<Size>, span: Span) {
        let mut new = BTreeMap::new();
        for dim in dims.iter().filter(|d| d.as_var().is_none()) {
            let (kept, open): (Vec<SizeVar>, Vec<SizeVar>) = dim
                .vars()
                .into_iter()
                .filter(|v| !v.each && (self.late_sizes.contains_key(v) || !self.size_sources.contains_key(v)))
                .partition(|v| self.late_sizes.contains_key(v));
            if let ([var], Some(first)) = (&open[..], kept.first().and_then(|v| self.late_sizes.get(v)))
                && linear_in(dim, var).is_some()
            {
                new.insert(var.clone(), LateSize { told: false, perhaps: true, follows: true, ..first.clone() });
            }
        }
        for (var, late) in new {
            let local = self.keep_size(&var, span);
            self.late_sizes.insert(var, LateSize { local, ..late });
        }
    }

    /// A variable for the number of a size, -1 until something tells it, and from here on what the size is read from.
    fn keep_size(&mut self, var: &SizeVar, span: Span) -> LocalId {
        let local = self.temp(&var.name, Ty::int(), span);
        self.locals[local.0 as usize].compares = true;
        self.out.push(TStmt::Set(local, int(-1, span)));
        let kept = TExpr { kind: TKind::Local(local), ty: Ty::int(), span };
        let block = TKind::Block { stmts: vec![], value: Box::new(kept) };
        self.size_sources.insert(var.clone(), (TExpr { kind: block, ty: Ty::int(), span }, false));
        local
    }

    /// The number of such a size here; the program stops where nothing has told it. `None` where nothing can have.
    pub fn late_size_value(&mut self, var: &SizeVar, span: Span) -> Option<TExpr> {
        let late = self.late_sizes.get(var)?.clone();
        if !late.perhaps && self.loop_depth == 0 {
            return None;
        }
        let ty = Ty::Int(Some(Size::var(var.clone())));
        let kept = TExpr { kind: TKind::Local(late.local), ty: ty.clone(), span };
        if late.told {
            return Some(kept);
        }
        let of = self.func.as_ref().map_or(String::new(), |f| format!(" of `{}`", f.f.sig.name));
        let (name, why) = (&var.name, late.why.join(", and "));
        let text = format!("nothing tells the size {name}{of}: {why}\nthe first value that has it tells it");
        let then = vec![TStmt::Expr(fault(text, vec![], late.at))];
        let test = is_missing(late.local, span);
        let stmts = vec![TStmt::If { test, then, otherwise: vec![] }];
        Some(TExpr { kind: TKind::Block { stmts, value: Box::new(kept) }, ty, span })
    }

    /// E0216: a name that a signature has for a size, where nothing tells which.
    pub fn late_size_error(&self, name: &Arc<str>, span: Span) -> Option<Diagnostic> {
        let size = self.size_names.get(name)?;
        let late = size.as_var().and_then(|v| self.late_sizes.get(v));
        let d = Diagnostic::new(Code::E0216, span, format!("the size `{name}` is not known here"));
        Some(match late {
            Some(u) if !u.perhaps => {
                let names: Vec<String> = u.calls.iter().map(|n| format!("`{n}`")).collect();
                let names = names.join(" or ");
                d.note(format!("only calls of {names} tell it, and there is none before"))
                    .help(format!("take it as a parameter: `{name}: int`"))
            }
            _ => d
                .note("no argument has it as a dim, alone or as the only unknown of a sum or product")
                .help(format!("take it as a parameter: `{name}: int`")),
        })
    }

    /// The value of a size that calls tell, where something has told it, for a message.
    pub fn told_first(&self, var: &SizeVar, span: Span) -> Option<TExpr> {
        let late = self.late_sizes.get(var).filter(|u| !u.calls.is_empty())?;
        Some(TExpr { kind: TKind::Local(late.local), ty: Ty::int(), span })
    }

    /// Whether something told the size on every path to here, so that it is known what it equals.
    fn open(&self, var: &SizeVar) -> bool {
        self.late_sizes.get(var).is_some_and(|u| !u.told)
    }

    /// Whether a size of the type is kept like that.
    pub fn has_late_size(&self, ty: &Ty) -> bool {
        !self.late_sizes.is_empty() && vars_of(ty).iter().any(|v| self.late_sizes.contains_key(v))
    }

    /// From here on all sizes of the type are told.
    pub fn mark_assigned(&mut self, ty: &Ty) {
        if self.late_sizes.is_empty() {
            return;
        }
        for var in vars_of(ty) {
            if let Some(u) = self.late_sizes.get_mut(&var) {
                (u.told, u.perhaps) = (true, true);
            }
        }
    }

    /// These are told here, too.
    pub fn mark_assigned_too<'a>(&mut self, told: impl IntoIterator<Item = &'a SizeVar>) {
        for var in told {
            if let Some(u) = self.late_sizes.get_mut(var) {
                (u.told, u.perhaps) = (true, true);
            }
        }
    }

    /// What is told after code that perhaps does not run is what was before it.
    pub fn restrict_assigned(&mut self, before: &BTreeSet<SizeVar>) {
        for (var, u) in self.late_sizes.iter_mut() {
            u.told &= before.contains(var);
        }
    }

    /// The sizes that are told here.
    pub fn assigned_here(&self) -> BTreeSet<SizeVar> {
        self.late_sizes.iter().filter(|(_, u)| u.told).map(|(v, _)| v.clone()).collect()
    }

    /// An argument of a function value tells the sizes that nothing told before.
    pub fn tell_by(&mut self, declared: &Ty, found: &Ty) {
        match (declared, found) {
            (Ty::Tensor(d), Ty::Tensor(f)) if d.rank() == f.rank() => {
                for (d, f) in d.shape.iter().zip(&f.shape) {
                    self.tell_dim(d, f);
                }
            }
            (Ty::Tuple(ds), Ty::Tuple(fs)) => ds.iter().zip(fs).for_each(|(d, f)| self.tell_by(d, f)),
            (Ty::Struct(d), Ty::Struct(f)) if d.item == f.item => {
                d.fields.iter().zip(&f.fields).for_each(|((_, d), (_, f))| self.tell_by(d, f))
            }
            _ => {}
        }
    }

    fn tell_dim(&mut self, declared: &Size, found: &Size) {
        let open: Vec<SizeVar> = declared.vars().into_iter().filter(|v| self.open(v)).collect();
        let [var] = open.as_slice() else { return };
        let facts = &mut self.sizes.facts;
        if !matches!(declared.compare_stated(found, facts), Verdict::Depends(_)) {
            return;
        }
        if let Some((a, b)) = linear_in(declared, var)
            && let Some(value) = found.sub(&b).floor_div(&a)
        {
            facts.assume_equal(&Size::var(var.clone()), &value);
        }
    }

    /// The types of a call's arguments with functions that only the run knows: what sizes they take and give in this
    /// call is not what they took and gave in others.
    pub fn functions_apart(&mut self, types: &[Ty]) -> Vec<Ty> {
        let mut made = BTreeMap::new();
        types.iter().map(|ty| self.apart(ty, &mut made)).collect()
    }

    fn apart(&mut self, ty: &Ty, made: &mut BTreeMap<SizeVar, Size>) -> Ty {
        match ty {
            Ty::Fn(..) => self.of_one_call(ty, made),
            Ty::List(t) => Ty::List(Box::new(self.apart(t, made))),
            Ty::Dict(k, t) => Ty::Dict(k.clone(), Box::new(self.apart(t, made))),
            Ty::Tuple(ts) => Ty::Tuple(ts.iter().map(|t| self.apart(t, made)).collect()),
            Ty::Struct(s) if has_function(ty) => {
                let fields = s.fields.iter().map(|(n, t)| (n.clone(), self.apart(t, made))).collect();
                Ty::Struct(Arc::new(StructTy { fields, ..StructTy::clone(s) }))
            }
            other => other.clone(),
        }
    }

    /// A function type for one call: sizes that nothing tells are others in the next.
    fn of_one_call(&mut self, ty: &Ty, made: &mut BTreeMap<SizeVar, Size>) -> Ty {
        for v in vars_of(ty) {
            let known = self.size_sources.contains_key(&v) && !self.late_sizes.contains_key(&v);
            if !known && !made.contains_key(&v) {
                let size = self.sizes.fresh_like(&v);
                made.insert(v, size);
            }
        }
        tessera_core::sizes::subst_ty(ty, &mut |v| made.get(v).cloned())
    }

    /// The type of a function value that is called here: sizes that nothing tells are others in each call.
    pub fn of_this_call(&mut self, ty: &Ty) -> Ty {
        let open: BTreeMap<SizeVar, Size> = vars_of(ty)
            .into_iter()
            .filter(|v| !self.size_sources.contains_key(v))
            .map(|v| (v.clone(), self.sizes.fresh_like(&v)))
            .collect();
        tessera_core::sizes::subst_ty(ty, &mut |v| open.get(v).cloned())
    }
}

/// Whether nothing has told the size that is kept here.
pub fn is_missing(local: LocalId, span: Span) -> TExpr {
    let kept = TExpr { kind: TKind::Local(local), ty: Ty::int(), span };
    int_test(CmpOp::Lt, kept, int(0, span), span)
}

/// `a` and `b` where the size is `a * var + b`.
pub fn linear_in(size: &Size, var: &SizeVar) -> Option<(Size, Size)> {
    let at = |n: i64| size.substitute(&mut |v| (v == var).then(|| Size::constant(n)));
    let b = at(0);
    let a = at(1).sub(&b);
    let own = a.mul(&Size::var(var.clone())).add(&b);
    (!a.is_zero() && own == *size && !own.overflowed()).then_some((a, b))
}

/// The size variables in the function types in a type.
fn vars_of_functions(ty: &Ty, out: &mut BTreeSet<SizeVar>) {
    match ty {
        Ty::Fn(..) => out.extend(vars_of(ty)),
        Ty::List(t) | Ty::Dict(_, t) => vars_of_functions(t, out),
        Ty::Tuple(ts) => ts.iter().for_each(|t| vars_of_functions(t, out)),
        Ty::Struct(s) => s.fields.iter().for_each(|(_, t)| vars_of_functions(t, out)),
        _ => {}
    }
}

fn has_function(ty: &Ty) -> bool {
    match ty {
        Ty::Fn(..) => true,
        Ty::List(t) | Ty::Dict(_, t) => has_function(t),
        Ty::Tuple(ts) => ts.iter().any(has_function),
        Ty::Struct(s) => s.fields.iter().any(|(_, t)| has_function(t)),
        _ => false,
    }
}
