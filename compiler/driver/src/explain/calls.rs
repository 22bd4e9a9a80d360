//! The sizes at which a program calls a function, where its calls say them.

use crate::ask::Asked;
use crate::cli::{OfFunction, Sizes, Values};
use std::collections::BTreeMap;
use tessera_base::{SizeVar, Span};
use tessera_core::ir::{FnInst, InstId, Program, Step, TExpr, TFunction, TKind};
use tessera_core::sizes::{each_size, vars_of};
use tessera_core::ty::Ty;
use tessera_core::walk::each_expr_in;
use tessera_infer::asked::Literal;

/// What a call of the program says of the sizes of a function.
pub struct OfCall {
    pub of: OfFunction,
    /// The call; none where the signature itself has numbers for all sizes.
    pub call: Option<Span>,
}

/// Numbers of the sizes of a signature.
type Numbers = BTreeMap<SizeVar, i64>;

/// The sizes of the first call that says all of them; `None` where none does. What a call hands on of its caller's sizes, the
/// calls of that say.
pub fn sizes_of_calls(asked: &Asked) -> Option<OfCall> {
    let open = open_sizes(asked);
    if open.is_empty() {
        return Some(OfCall { of: OfFunction { function: None, sizes: None, values: None }, call: None });
    }
    let declared: Vec<&Ty> = asked.params().map(|(_, ty)| ty).collect();
    let mut calls = Calls::of(&asked.program);
    let (numbers, call) = calls.numbers(asked.function.inst, &declared, &open)?;
    let numbers = numbers.into_iter().map(|(v, n)| (v.name.to_string(), n));
    let is_param = |(name, _): &(String, i64)| asked.params().any(|(p, _)| *p.name == **name);
    let (values, sizes): (Vec<_>, Vec<_>) = numbers.partition(is_param);
    let values = values.into_iter().map(|(name, n)| (name, n.to_string())).collect();
    let of = OfFunction { function: None, sizes: Some(Sizes(sizes)), values: Some(Values(values)) };
    Some(OfCall { of, call: Some(call) })
}

/// Sizes of the signature that have no number there. Ints with a default have that.
fn open_sizes(asked: &Asked) -> Vec<SizeVar> {
    let has_default = |p: &tessera_infer::asked::Parameter, ty: &Ty| {
        matches!((ty, &p.default), (Ty::Int(Some(_)), Some(Literal::Int(_))))
    };
    let open = asked.params().filter(|(p, ty)| !has_default(p, ty));
    let mut out: Vec<SizeVar> = open.flat_map(|(_, ty)| vars_of(ty)).collect();
    out.sort();
    out.dedup();
    out
}

/// A call, or a derivative that is taken at arguments.
struct Call<'p> {
    caller: InstId,
    inst: InstId,
    args: &'p [TExpr],
    span: Span,
}

/// The calls of a program.
struct Calls<'p> {
    program: &'p Program,
    all: Vec<Call<'p>>,
    /// Callers that were looked at, with what is known of their sizes; nothing of those that are being looked at.
    known: BTreeMap<InstId, Numbers>,
}

impl<'p> Calls<'p> {
    fn of(program: &'p Program) -> Calls<'p> {
        let mut all = vec![];
        for (i, f) in program.insts.iter().enumerate() {
            let caller = InstId(i as u32);
            each_expr_in(&f.body, &mut |e| {
                let called = match &e.kind {
                    TKind::Call { inst, args, .. } => Some((*inst, &args[..])),
                    TKind::Derive { f, args } => at_arguments(f, args),
                    _ => None,
                };
                all.extend(called.map(|(inst, args)| Call { caller, inst, args, span: e.span }));
            });
        }
        Calls { program, all, known: BTreeMap::new() }
    }

    fn inst(&self, id: InstId) -> &'p FnInst {
        &self.program.insts[id.0 as usize]
    }

    /// What the first call of a function that says all of the sizes `open` of its parameters makes of them.
    fn numbers(&mut self, id: InstId, declared: &[&Ty], open: &[SizeVar]) -> Option<(Numbers, Span)> {
        let place = self.inst(id).span;
        for at in 0..self.all.len() {
            let (caller, inst, args, span) = {
                let call = &self.all[at];
                (call.caller, call.inst, call.args, call.span)
            };
            // Another instance of the same function will do.
            if inst != id && self.inst(inst).span != place || caller == id {
                continue;
            }
            let outer = self.of_caller(caller);
            let numbers = matched(declared, args, &outer);
            if open.iter().all(|v| numbers.contains_key(v)) {
                return Some((numbers, span));
            }
        }
        None
    }

    /// The sizes of a function, as a call of it has them; none where no call says all.
    fn of_caller(&mut self, id: InstId) -> Numbers {
        if let Some(known) = self.known.get(&id) {
            return known.clone();
        }
        self.known.insert(id, Numbers::new());
        let f = self.inst(id);
        let declared: Vec<&Ty> = f.params.iter().map(|l| &f.locals[l.0 as usize].ty).collect();
        let open: Vec<SizeVar> = declared.iter().flat_map(|ty| vars_of(ty)).collect();
        if open.is_empty() {
            return Numbers::new();
        }
        let found = self.numbers(id, &declared, &open).map_or_else(Numbers::new, |(numbers, _)| numbers);
        self.known.insert(id, found.clone());
        found
    }
}

/// The function that is applied to arguments, where what is made of it takes those of the function.
fn at_arguments<'p>(f: &'p TFunction, args: &'p [TExpr]) -> Option<(InstId, &'p [TExpr])> {
    match f {
        TFunction::Direct { inst, .. } => Some((*inst, args)),
        // Tangents stand behind the arguments.
        TFunction::Derived { step: Step::Grad(_) | Step::Checkpoint | Step::Jvp, of, .. } => at_arguments(of, args),
        TFunction::Derived { step: Step::Pullback(_), of, bound } => at_arguments(of, bound),
        TFunction::Derived { step: Step::Vmap(..) | Step::Local(_), .. } => None,
    }
}

/// What the types of arguments make of the sizes that stand alone in a parameter.
fn matched(declared: &[&Ty], args: &[TExpr], outer: &Numbers) -> Numbers {
    let mut out = Numbers::new();
    for (declared, arg) in declared.iter().zip(args) {
        let (mut vars, mut found) = (vec![], vec![]);
        each_size(declared, &mut |size| vars.push(size.as_var().cloned()));
        each_size(&arg.ty, &mut |size| found.push(size.eval(&|v| outer.get(v).copied())));
        if vars.len() == found.len() {
            out.extend(vars.into_iter().zip(found).filter_map(|(v, n)| Some((v?, n?))));
        }
    }
    out
}
