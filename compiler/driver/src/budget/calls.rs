//! The calls of functions with budgets, with the sizes and values that the program says of them.

use super::handed::{behind, name_of, row};
use super::written::{Caller, written_out};
use crate::ask::KnownCall;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tessera_base::{Mesh, Size, SizeVar, Span};
use tessera_core::budget::{Budget, What};
use tessera_core::ir::{Effect, FnInst, InstId, Program, TExpr, TFunction, TKind};
use tessera_core::layouts::tensors;
use tessera_core::sizes::{each_dim, each_size, subst_ty};
use tessera_core::ty::Ty;
use tessera_core::walk::{called, each_expr_in};

/// A function with a budget.
pub struct Function {
    pub name: Arc<str>,
    pub budget: Arc<Budget>,
    pub effect: Effect,
    /// The line that begins it.
    pub head: Span,
    /// Its calls, each at other sizes.
    pub calls: Vec<Call>,
    /// A call of which something is not known.
    pub open: Option<Open>,
    /// The same of a use by a derivative, a loop or `vmap`.
    pub unheld: Option<Open>,
    /// More calls lead to it than are followed.
    pub unfollowed: bool,
}

impl Function {
    /// Leaves bounds of time out.
    pub fn without_times(&mut self) {
        let budget = Arc::make_mut(&mut self.budget);
        budget.bounds.retain(|b| b.what != What::Step);
    }
}

/// A call at sizes that are known.
pub struct Call {
    pub inst: InstId,
    pub known: KnownCall,
    /// What is called in its place, where that is made of it.
    pub made: Option<Made>,
    /// Where it stands; none where the signature itself says all.
    pub span: Span,
    /// It is a use by a derivative, a loop or `vmap`, or behind one.
    pub by_other: bool,
}

/// What is made of a function (its derivative, say), where it is called.
#[derive(Clone, Debug)]
pub struct Made {
    pub f: TFunction,
    /// Of its arguments, with their sizes.
    pub types: Vec<(Arc<str>, Ty)>,
    pub ret: Ty,
    /// `autodiff.grad`.
    pub what: &'static str,
}

impl Made {
    fn is_like(&self, other: &Made) -> bool {
        self.what == other.what && self.types == other.types && self.ret == other.ret
    }
}

/// What is not known of a call.
pub struct Open {
    pub span: Span,
    pub what: Vec<String>,
}

/// The functions of a program that have budgets, in the order of their first instances.
pub fn functions(program: &Program) -> Vec<Function> {
    let mut out: Vec<Function> = vec![];
    let own = |f: &FnInst| f.budget.clone().filter(|_| !f.span.is_none());
    for f in &program.insts {
        if let Some(budget) = own(f)
            && !out.iter().any(|other| other.head == f.span)
        {
            let (name, effect, head) = (f.name.clone(), f.effect.clone(), f.span);
            out.push(Function {
                name,
                budget,
                effect,
                head,
                calls: vec![],
                open: None,
                unheld: None,
                unfollowed: false,
            });
        }
    }
    if out.is_empty() {
        return out;
    }
    let mut walk = Walk {
        program,
        leads: leads(program),
        seen: BTreeSet::new(),
        work: vec![],
        met: vec![],
        unfollowed: BTreeSet::new(),
    };
    if let Some(entry) = program.entry {
        walk.work.push((entry, KnownCall::default(), false));
    }
    walk.run();
    for Met { inst, span, made, known, by_other } in walk.met {
        let head = program.insts[inst.0 as usize].span;
        let Some(f) = out.iter_mut().find(|f| f.head == head) else { continue };
        let is_like = |c: &Call, known: &KnownCall| {
            let alike = match (&c.made, &made) {
                (Some(a), Some(b)) => a.is_like(b) && c.span == span,
                (a, b) => a.is_none() && b.is_none(),
            };
            alike && c.inst == inst && c.known == *known
        };
        match known {
            Ok(known) if f.calls.iter().any(|c| is_like(c, &known)) => {}
            Ok(known) => f.calls.push(Call { inst, known, made, span, by_other }),
            // What a loop or a derivative hands over cannot be written out.
            Err(what) if by_other => {
                f.unheld.get_or_insert(Open { span, what });
            }
            Err(what) => {
                f.open.get_or_insert(Open { span, what });
            }
        }
    }
    let missed = reached(program, &walk.unfollowed);
    for inst in missed {
        let head = program.insts[inst.0 as usize].span;
        out.iter_mut().filter(|f| f.head == head).for_each(|f| f.unfollowed = true);
    }
    for f in out.iter_mut().filter(|f| f.calls.is_empty() && f.open.is_none() && f.unheld.is_none()) {
        f.calls.extend(at_signature(program, f.head));
    }
    out
}

/// A call of what the signature says, where that leaves nothing open.
fn at_signature(program: &Program, head: Span) -> Option<Call> {
    let closed = |f: &&FnInst| f.span == head && f.budget.is_some() && open_dims(f).is_empty();
    let at = program.insts.iter().position(|f| closed(&f))?;
    let mut known = KnownCall::default();
    let f = &program.insts[at];
    let stated =
        f.params.iter().flat_map(|l| tensors(&f.locals[l.0 as usize].ty)).find_map(|t| t.sharding.mesh.clone());
    if let Some(axes) = stated.filter(|m| m.is_unknown()) {
        // The mesh of the file that has these axes.
        let fits = |m: &Arc<Mesh>| axes.axes.iter().all(|a| m.size(&a.0).is_some_and(|n| n > 0));
        known.mesh = program.globals.iter().find_map(|v| match &v.ty {
            Ty::Mesh(Some(mesh)) if fits(mesh) => Some(mesh.clone()),
            _ => None,
        });
        known.mesh.as_ref()?;
    }
    Some(Call { inst: InstId(at as u32), known, made: None, span: Span::NONE, by_other: false })
}

/// Size variables in dims of parameters.
fn open_dims(f: &FnInst) -> BTreeSet<SizeVar> {
    let mut out = BTreeSet::new();
    for local in &f.params {
        each_dim(&f.locals[local.0 as usize].ty, &mut |dim| out.extend(dim.vars()));
    }
    out
}

/// Functions that have a budget, or call one that has.
fn leads(program: &Program) -> BTreeSet<InstId> {
    let mut callers: BTreeMap<InstId, Vec<InstId>> = BTreeMap::new();
    for (i, f) in program.insts.iter().enumerate() {
        each_expr_in(&f.body, &mut |e| {
            for inst in called(e) {
                callers.entry(inst).or_default().push(InstId(i as u32));
            }
        });
    }
    let with = |(_, f): &(usize, &FnInst)| f.budget.is_some();
    let mut work: Vec<InstId> = program.insts.iter().enumerate().filter(with).map(|(i, _)| InstId(i as u32)).collect();
    let mut out = BTreeSet::new();
    while let Some(inst) = work.pop() {
        if out.insert(inst) {
            work.extend(callers.get(&inst).into_iter().flatten());
        }
    }
    out
}

/// Functions that some functions may come to.
fn reached(program: &Program, from: &BTreeSet<InstId>) -> BTreeSet<InstId> {
    let mut work: Vec<InstId> = from.iter().copied().collect();
    let mut out = BTreeSet::new();
    while let Some(inst) = work.pop() {
        if out.insert(inst) {
            each_expr_in(&program.insts[inst.0 as usize].body, &mut |e| work.extend(called(e)));
        }
    }
    out
}

/// A call of a function with a budget.
struct Met {
    inst: InstId,
    span: Span,
    made: Option<Made>,
    /// What the call says, or what it leaves open.
    known: Result<KnownCall, Vec<String>>,
    by_other: bool,
}

/// The way from the program's first line through all calls that lead to a budget.
struct Walk<'p> {
    program: &'p Program,
    leads: BTreeSet<InstId>,
    seen: BTreeSet<(InstId, KnownCall)>,
    /// With whether the way there leads through a derivative, a loop or `vmap`.
    work: Vec<(InstId, KnownCall, bool)>,
    /// Calls of functions with budgets.
    met: Vec<Met>,
    /// Functions with calls that are too many.
    unfollowed: BTreeSet<InstId>,
}

/// Calls at different sizes and values that are followed.
pub const CALLS_MAX: usize = 4096;

impl Walk<'_> {
    fn run(&mut self) {
        while let Some((inst, known, by_other)) = self.work.pop() {
            if self.seen.contains(&(inst, known.clone())) {
                continue;
            }
            if self.seen.len() >= CALLS_MAX {
                self.unfollowed.insert(inst);
                continue;
            }
            self.seen.insert((inst, known.clone()));
            let mut next = vec![];
            each_expr_in(&self.program.insts[inst.0 as usize].body, &mut |e| {
                for callee in called(e).into_iter().filter(|callee| self.leads.contains(callee)) {
                    let by_other = by_other || !matches!(e.kind, TKind::Call { .. });
                    next.extend(self.call(inst, &known, e, callee).map(|call| (call, by_other)));
                }
            });
            for ((made, callee, span, bound), by_other) in next {
                let f = self.callee(callee);
                let mut lacks = lacking(f, &bound);
                lacks.extend(made.iter().flat_map(|m| m.types.iter()).flat_map(|(_, ty)| open_sizes(ty)));
                lacks.dedup();
                if f.budget.is_some() {
                    let known = if lacks.is_empty() { Ok(bound.clone()) } else { Err(lacks) };
                    self.met.push(Met { inst: callee, span, made, known, by_other });
                }
                self.work.push((callee, bound, by_other));
            }
        }
        // In the order of the text, whatever way led there.
        self.met.sort_by_key(|m| (m.span.item, m.span.start, m.span.end));
    }

    fn callee(&self, inst: InstId) -> &FnInst {
        &self.program.insts[inst.0 as usize]
    }

    /// What is known of a call, with the values that are written out where it stands. Of what is made of a function the first
    /// arguments are those of the function.
    fn handed(&self, caller: InstId, f: &FnInst, at: &KnownCall, mut known: KnownCall, args: &[TExpr]) -> KnownCall {
        let from = Caller { program: self.program, f: self.callee(caller), at };
        for (local, arg) in f.params.iter().zip(args) {
            let name = &f.locals[local.0 as usize].name;
            known.with.extend(written_out(arg, &from).map(|text| (name.to_string(), text)));
        }
        known
    }

    /// What a form calls, with what it is made of that, and what is known of the call.
    fn call(
        &self,
        caller: InstId,
        at: &KnownCall,
        e: &TExpr,
        callee: InstId,
    ) -> Option<(Option<Made>, InstId, Span, KnownCall)> {
        let f = self.callee(callee);
        let plain = |types: Vec<Ty>| Some((None, callee, e.span, bind(f, &types, at)));
        match &e.kind {
            TKind::Call { args, .. } => {
                let known = bind(f, &args.iter().map(|a| a.ty.clone()).collect::<Vec<_>>(), at);
                Some((None, callee, e.span, self.handed(caller, f, at, known, args)))
            }
            TKind::Scan { init, xs, .. } => plain(vec![init.ty.clone(), row(&xs.ty)]),
            TKind::Fori { init, .. } => plain(vec![Ty::Int(None), init.ty.clone()]),
            TKind::Derive { f: of, args } => {
                let types: Vec<Ty> = args.iter().map(|a| a.ty.clone()).collect();
                let known = bind(f, &behind(of, types.clone())?, at);
                let known = self.handed(caller, f, at, known, args);
                let TFunction::Derived { step, .. } = &**of else { return plain(types) };
                // What holds values is planned as the function behind it.
                let made = of.values().is_empty().then(|| {
                    let count = f.params.len().max(1);
                    let name =
                        |i: usize| f.params.get(i % count).map_or("x".into(), |l| f.locals[l.0 as usize].name.clone());
                    let types = types.iter().enumerate().map(|(i, ty)| (name(i), at_sizes(ty, at))).collect();
                    Made { f: TFunction::clone(of), types, ret: at_sizes(&e.ty, at), what: name_of(step) }
                });
                Some((made, callee, e.span, known))
            }
            _ => None,
        }
    }
}

/// What a call leaves open of its callee.
fn lacking(f: &FnInst, known: &KnownCall) -> Vec<String> {
    let lacks = open_dims(f).into_iter().filter(|v| !known.sizes.contains_key(v));
    let captured = f.captures.iter().map(|l| format!("`{}`, which it captures", f.locals[l.0 as usize].name));
    lacks.map(|v| format!("the size {}", v.name)).chain(captured).collect()
}

/// Sizes of an argument that are no numbers.
fn open_sizes(ty: &Ty) -> Vec<String> {
    let mut vars = BTreeSet::new();
    each_dim(ty, &mut |dim| vars.extend(dim.vars()));
    vars.into_iter().map(|v| format!("the size {}", v.name)).collect()
}

/// A type of a caller, with the sizes that are known of it.
fn at_sizes(ty: &Ty, at: &KnownCall) -> Ty {
    subst_ty(ty, &mut |v| at.sizes.get(v).map(|n| Size::constant(*n)))
}

/// What the types of arguments say of the sizes of their callee, where `at` is what is known of the caller.
fn bind(callee: &FnInst, args: &[Ty], at: &KnownCall) -> KnownCall {
    let mut out = KnownCall::default();
    for (local, ty) in callee.params.iter().zip(args) {
        let var = &callee.locals[local.0 as usize];
        let found = at_sizes(ty, at);
        let (mut names, mut numbers) = (vec![], vec![]);
        each_size(&var.ty, &mut |size| names.push(size.as_var().cloned()));
        each_size(&found, &mut |size| numbers.push(size.as_const()));
        if names.len() == numbers.len() {
            out.sizes.extend(names.into_iter().zip(numbers).filter_map(|(name, n)| Some((name?, n?))));
        }
        for mesh in tensors(&found).iter().filter_map(|t| t.sharding.mesh.clone()) {
            let mesh = if mesh.is_unknown() { at.mesh.clone() } else { Some(mesh) };
            out.mesh = out.mesh.or(mesh);
        }
    }
    out
}
