//! The calls of functions with budgets, with the sizes and values that the program says of them.

use crate::ask::KnownCall;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tessera_base::{Mesh, Size, SizeVar, Span};
use tessera_core::budget::{Budget, What};
use tessera_core::ir::{Effect, FnInst, InstId, Program, TExpr, TKind};
use tessera_core::layouts::tensors;
use tessera_core::sizes::{each_dim, each_size, subst_ty};
use tessera_core::ty::Ty;
use tessera_core::walk::each_expr_in;

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
    /// Where it stands; none where the signature itself says all.
    pub span: Span,
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
            out.push(Function { name, budget, effect, head, calls: vec![], open: None });
        }
    }
    if out.is_empty() {
        return out;
    }
    let mut walk = Walk { program, leads: leads(program), seen: BTreeSet::new(), work: vec![], met: vec![] };
    if let Some(entry) = program.entry {
        walk.work.push((entry, KnownCall::default()));
    }
    walk.run();
    for (inst, span, known) in walk.met {
        let head = program.insts[inst.0 as usize].span;
        let Some(f) = out.iter_mut().find(|f| f.head == head) else { continue };
        match known {
            Ok(known) if f.calls.iter().any(|c| c.inst == inst && c.known == known) => {}
            Ok(known) => f.calls.push(Call { inst, known, span }),
            Err(what) => {
                f.open.get_or_insert(Open { span, what });
            }
        }
    }
    for f in out.iter_mut().filter(|f| f.calls.is_empty() && f.open.is_none()) {
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
    Some(Call { inst: InstId(at as u32), known, span: Span::NONE })
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
            if let TKind::Call { inst, .. } = e.kind {
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

/// What a call says, or what it leaves open.
type Met = Result<KnownCall, Vec<String>>;

/// The way from the program's first line through all calls that lead to a budget.
struct Walk<'p> {
    program: &'p Program,
    leads: BTreeSet<InstId>,
    seen: BTreeSet<(InstId, KnownCall)>,
    work: Vec<(InstId, KnownCall)>,
    /// Calls of functions with budgets.
    met: Vec<(InstId, Span, Met)>,
}

/// Calls at different sizes that are followed.
const CALLS_MAX: usize = 4096;

impl Walk<'_> {
    fn run(&mut self) {
        while let Some((inst, known)) = self.work.pop() {
            if self.seen.len() >= CALLS_MAX || !self.seen.insert((inst, known.clone())) {
                continue;
            }
            let mut next = vec![];
            each_expr_in(&self.program.insts[inst.0 as usize].body, &mut |e| {
                if let TKind::Call { inst, args, .. } = &e.kind
                    && self.leads.contains(inst)
                {
                    next.push((*inst, e.span, bind(self.callee(*inst), args, &known)));
                }
            });
            for (callee, span, bound) in next {
                let f = self.callee(callee);
                let lacks = open_dims(f).into_iter().filter(|v| !bound.sizes.contains_key(v));
                let mut lacks: Vec<String> = lacks.map(|v| format!("the size {}", v.name)).collect();
                lacks
                    .extend(f.captures.iter().map(|l| format!("`{}`, which it captures", f.locals[l.0 as usize].name)));
                if f.budget.is_some() {
                    self.met.push((callee, span, if lacks.is_empty() { Ok(bound.clone()) } else { Err(lacks) }));
                }
                self.work.push((callee, bound));
            }
        }
        // In the order of the text, whatever way led there.
        self.met.sort_by_key(|(_, span, _)| (span.item, span.start, span.end));
    }

    fn callee(&self, inst: InstId) -> &FnInst {
        &self.program.insts[inst.0 as usize]
    }
}

/// What a call says of the sizes and values of its callee, where `at` is what is known of the caller.
fn bind(callee: &FnInst, args: &[TExpr], at: &KnownCall) -> KnownCall {
    let mut out = KnownCall::default();
    for (local, arg) in callee.params.iter().zip(args) {
        let var = &callee.locals[local.0 as usize];
        let found = subst_ty(&arg.ty, &mut |v| at.sizes.get(v).map(|n| Size::constant(*n)));
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
        out.with.extend(written_out(arg).map(|text| (var.name.to_string(), text)));
    }
    out
}

/// What is written out at a call, as `--with` takes it.
fn written_out(arg: &TExpr) -> Option<String> {
    Some(match &arg.kind {
        TKind::Bool(b) => if *b { "True" } else { "False" }.into(),
        TKind::Str(text) => text.to_string(),
        TKind::List(items) => items.len().to_string(),
        _ => return None,
    })
}
