//! Calls of annotated functions: what the arguments say about the callee's size variables.

use super::assign::{Coerce, assignable};
use super::mismatch::{Mismatch, Role, What, mismatch_diagnostic};
use crate::sizes::SizeCx;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tessera_base::{Code, Diagnostic, Size, SizeVar, Span, Verdict};
use tessera_core::sizes::{subst_ty, vars_of};
use tessera_core::ty::Ty;

/// A call's arguments, accepted.
#[derive(Clone, PartialEq, Debug)]
pub struct Bindings {
    /// The callee's size variables in the caller's terms.
    pub sizes: BTreeMap<SizeVar, Size>,
    /// The parameter types in the caller's terms.
    pub params: Vec<Ty>,
    /// How each argument becomes its parameter.
    pub coerces: Vec<Coerce>,
    callee: BTreeSet<SizeVar>,
}

impl Bindings {
    /// A type of the callee's signature in the caller's terms. Variables that no parameter
    /// fixes are sizes that only data knows.
    pub fn apply(&self, cx: &mut SizeCx, ty: &Ty) -> Ty {
        let mut made: BTreeMap<SizeVar, Size> = BTreeMap::new();
        subst_ty(ty, &mut |v| match self.sizes.get(v) {
            Some(size) => Some(size.clone()),
            None if self.callee.contains(v) => {
                Some(made.entry(v.clone()).or_insert_with(|| cx.fresh_as(v, &v.name.to_lowercase())).clone())
            }
            None => None,
        })
    }
}

/// The first argument that is not accepted.
#[derive(Clone, PartialEq, Debug)]
pub struct ParamMismatch {
    /// Position of the parameter.
    pub index: usize,
    /// The parameter's type as the signature has it.
    pub declared: Ty,
    pub mismatch: Mismatch,
    /// The variables in the declared type with the values that earlier arguments gave them.
    pub because: Vec<(Arc<str>, Size, usize)>,
}

struct Equation {
    declared: Size,
    found: Size,
    arg: usize,
    /// It is one of a function type: values say more.
    late: bool,
}

/// Solves for the callee's size variables (`vars`) and accepts each argument, or says which
/// one is wrong. `spans[i]` is where argument `i` stands.
///
/// A dim that is a single variable fixes it at its first occurrence; variables that occur only
/// in composites (`4*D`) are solved for where they are linear. Everything is then compared in
/// normal form.
pub fn bind_signature(
    cx: &mut SizeCx,
    vars: &BTreeSet<SizeVar>,
    params: &[Ty],
    args: &[Ty],
    spans: &[Span],
) -> Result<Bindings, Box<ParamMismatch>> {
    // The callee's numbers may be the caller's too (recursion, separate numbering).
    let renamed: BTreeMap<SizeVar, SizeVar> =
        vars.iter().zip(0x8000_0000u32..).map(|(v, id)| (v.clone(), SizeVar { id, ..v.clone() })).collect();
    let own: Vec<Ty> =
        params.iter().map(|p| subst_ty(p, &mut |v| renamed.get(v).map(|r| Size::var(r.clone())))).collect();
    let args: Vec<Ty> = own.iter().zip(args).map(|(p, a)| one_number(cx, p, a)).collect();
    let mut solver = Solver { cx, solved: BTreeMap::new(), equations: vec![], unknown: BTreeSet::new(), late: false };
    for (arg, (p, a)) in own.iter().zip(&args).enumerate() {
        solver.collect(p, a, arg);
    }
    solver.solve();
    let Solver { solved, unknown, .. } = solver;
    let mut solved = solved;
    for var in unknown {
        solved.entry(var.clone()).or_insert_with(|| (cx.fresh_as(&var, &var.name.to_lowercase()), usize::MAX));
    }
    let (mut out_params, mut coerces) = (vec![], vec![]);
    for (index, (p, a)) in own.iter().zip(&args).enumerate() {
        let expected = subst_ty(p, &mut |v| solved.get(v).map(|(s, _)| s.clone()));
        let span = spans.get(index).copied().unwrap_or_default();
        let wrong = |mismatch| {
            let because = vars_of(p)
                .iter()
                .filter_map(|v| solved.get(v).map(|(s, from)| (v.name.clone(), s.clone(), *from)))
                .filter(|(_, _, from)| *from != index && *from != usize::MAX)
                .collect();
            Box::new(ParamMismatch { index, declared: params[index].clone(), mismatch, because })
        };
        let open = vars_of(&expected).into_iter().find(|v| v.id >= 0x8000_0000);
        let result = assignable(cx, &expected, a, span).and_then(|how| same_number(cx, &expected, a, span, how));
        // Sizes that are not known differ from none.
        let sized = |m: &Mismatch| matches!(m.what, What::Size { .. });
        match (result, open) {
            (Err(m), Some(_)) if !sized(&m) => return Err(wrong(m)),
            (_, Some(var)) => {
                let text = format!("the size variable `{}` cannot be told from the arguments", var.name);
                return Err(wrong(Mismatch::new(&expected, a, What::Other(text))));
            }
            (Ok(coerce), None) => coerces.push(coerce),
            (Err(m), _) => return Err(wrong(unsolvable(p, a, &m, (&solved, index)).unwrap_or(m))),
        }
        out_params.push(expected);
    }
    let back: BTreeMap<&SizeVar, &SizeVar> = renamed.iter().map(|(v, r)| (r, v)).collect();
    let sizes = solved.into_iter().filter_map(|(r, (s, _))| back.get(&r).map(|v| ((*v).clone(), s))).collect();
    Ok(Bindings { sizes, params: out_params, coerces, callee: vars.clone() })
}

/// The type of an argument, where an int that only the run knows is one number wherever the signature has it.
fn one_number(cx: &mut SizeCx, param: &Ty, arg: &Ty) -> Ty {
    match (param, arg) {
        (Ty::Int(Some(n)), Ty::Int(None)) => Ty::Int(Some(cx.fresh_int(&n.to_string().to_lowercase()))),
        _ => arg.clone(),
    }
}

/// An int that is a size of the signature has the value that the sizes of the other arguments say.
fn same_number(cx: &mut SizeCx, expected: &Ty, found: &Ty, span: Span, how: Coerce) -> Result<Coerce, Mismatch> {
    let (Ty::Int(Some(e)), Ty::Int(value)) = (expected, found) else { return Ok(how) };
    let f = value.clone().unwrap_or_else(|| cx.fresh_int("n"));
    let before = cx.checks.len();
    match cx.require_equal(e, &f, span) {
        Ok(()) => Ok(if cx.checks.len() > before { Coerce::Sizes } else { how }),
        Err(verdict) => {
            let text = format!("the number is {f} where the sizes of the other arguments say {e}");
            let witness = match verdict {
                Verdict::Differ(w) | Verdict::Depends(w) => Some(w),
                Verdict::Equal => None,
            };
            Err(Mismatch { witness, ..Mismatch::new(expected, found, What::Other(text)) })
        }
    }
}

/// `4*D` against 10: no D does it, and rounding would blame the wrong number.
fn unsolvable(
    declared: &Ty,
    found: &Ty,
    m: &Mismatch,
    (solved, index): (&BTreeMap<SizeVar, (Size, usize)>, usize),
) -> Option<Mismatch> {
    let (What::Size { dim, found: size, .. }, Ty::Tensor(p)) = (&m.what, declared) else { return None };
    let expr = p.shape.get(*dim)?;
    let vars: Vec<SizeVar> = expr.vars().into_iter().collect();
    let [var] = vars.as_slice() else { return None };
    let (value, _) = solved.get(var).filter(|(_, from)| *from == index)?;
    let plain = expr.as_var().is_none() && size.as_const().is_some() && value.as_const().is_some();
    let only_here = p.shape.iter().filter(|s| s.vars().contains(var)).count() == 1;
    (plain && only_here).then(|| {
        let what = What::Other(format!("no `{}` makes {expr} equal {size}", var.name));
        Mismatch::new(&m.expected, found, what)
    })
}

struct Solver<'a> {
    cx: &'a mut SizeCx,
    solved: BTreeMap<SizeVar, (Size, usize)>,
    equations: Vec<Equation>,
    /// Variables of which the argument says nothing before run time.
    unknown: BTreeSet<SizeVar>,
    /// In a function type.
    late: bool,
}

impl Solver<'_> {
    fn collect(&mut self, p: &Ty, a: &Ty, arg: usize) {
        match (p, a) {
            (Ty::Int(Some(n)), Ty::Int(value)) => {
                let found = value.clone().unwrap_or_else(|| self.cx.fresh_int(&n.to_string().to_lowercase()));
                self.equations.push(Equation { declared: n.clone(), found, arg, late: self.late });
            }
            (Ty::Tensor(p), Ty::Tensor(a)) if p.rank() == a.rank() => self.dims(&p.shape, &a.shape, arg),
            (Ty::TensorPattern(p), Ty::Tensor(a)) if a.rank() >= p.tail.len() => {
                self.dims(&p.tail, &a.shape[a.rank() - p.tail.len()..], arg)
            }
            // Where elements differ in a size, it is that of one of them: the run compares all.
            (Ty::List(p), Ty::List(a)) => {
                let element = self.cx.element(a);
                self.collect(p, &element, arg);
            }
            (Ty::Dict(pk, pv), Ty::Dict(ak, av)) => {
                let element = self.cx.element(av);
                self.collect(pk, ak, arg);
                self.collect(pv, &element, arg);
            }
            (Ty::Tuple(ps), Ty::Tuple(aa)) => ps.iter().zip(aa).for_each(|(p, a)| self.collect(p, a, arg)),
            (Ty::Struct(p), Ty::Struct(a)) if p.item == a.item => {
                p.fields.iter().zip(&a.fields).for_each(|((_, p), (_, a))| self.collect(p, a, arg))
            }
            (Ty::Fn(ps, pr), Ty::Fn(aa, ar)) => {
                let outer = std::mem::replace(&mut self.late, true);
                ps.iter().zip(aa).for_each(|(p, a)| self.collect(p, a, arg));
                self.collect(pr, ar, arg);
                self.late = outer;
            }
            (p, Ty::AnyTensor | Ty::Unknown | Ty::Error | Ty::FnRef(_)) | (p @ Ty::Int(_), Ty::Bool) => {
                self.unknown.extend(renamed_vars(p))
            }
            _ => {}
        }
    }

    fn dims(&mut self, declared: &[Size], found: &[Size], arg: usize) {
        let pairs = declared.iter().zip(found);
        let late = self.late;
        self.equations.extend(pairs.map(|(d, f)| Equation { declared: d.clone(), found: f.clone(), arg, late }));
    }

    fn solve(&mut self) {
        self.equations.sort_by_key(|e| e.late);
        let first = self.equations.iter().position(|e| e.late).unwrap_or(self.equations.len());
        self.solve_first(first);
        self.solve_first(self.equations.len());
    }

    /// Solves the first equations.
    fn solve_first(&mut self, count: usize) {
        for e in &self.equations[..count] {
            if let Some(var) = e.declared.as_var()
                && is_callee(var)
            {
                self.solved.entry(var.clone()).or_insert_with(|| (e.found.clone(), e.arg));
            }
        }
        loop {
            let next = self.equations[..count].iter().find_map(|e| {
                let declared = e.declared.substitute(&mut |v| self.solved.get(v).map(|(s, _)| s.clone()));
                let open: Vec<SizeVar> = declared.vars().into_iter().filter(is_callee).collect();
                let [var] = open.as_slice() else { return None };
                linear(&declared, var, &e.found).map(|value| (var.clone(), value, e.arg))
            });
            let Some((var, value, arg)) = next else { break };
            self.solved.insert(var, (value, arg));
        }
    }
}

fn is_callee(v: &SizeVar) -> bool {
    v.id >= 0x8000_0000
}

fn renamed_vars(ty: &Ty) -> impl Iterator<Item = SizeVar> {
    vars_of(ty).into_iter().filter(is_callee)
}

/// The value of `var` at which `declared` is `found`, where `declared` is `a * var + b`; the
/// floor where the division is not exact.
fn linear(declared: &Size, var: &SizeVar, found: &Size) -> Option<Size> {
    let at = |n: i64| declared.substitute(&mut |v| (v == var).then(|| Size::constant(n)));
    let b = at(0);
    let a = at(1).sub(&b);
    if a.is_zero() || a.mul(&Size::var(var.clone())).add(&b) != *declared {
        return None;
    }
    found.sub(&b).floor_div(&a)
}

/// The diagnostic for an argument: as for any mismatch, and which arguments fixed the sizes.
pub fn param_mismatch_diagnostic(
    p: &ParamMismatch,
    function: &str,
    params: &[(Arc<str>, Span)],
    spans: &[Span],
) -> Diagnostic {
    let (param, declared) = params.get(p.index).cloned().unwrap_or(("?".into(), Span::NONE));
    let role = Role::Argument { function: function.to_owned(), param: param.to_string() };
    let value = spans.get(p.index).copied().unwrap_or_default();
    let mut d = mismatch_diagnostic(&p.mismatch, &role, value, None);
    d.notes.retain(|n| !n.starts_with("needed: "));
    if matches!(&p.mismatch.what, What::Other(text) if text.ends_with("from the arguments")) {
        d.code = Code::E0216;
    }
    let text = format!("declared {}", p.declared);
    match declared.is_none() {
        true => d = d.note(format!("`{param}` is {text}")),
        false => d = d.with_label(declared, text),
    }
    if p.mismatch.expected.to_string() != p.declared.to_string() {
        d = d.note(format!("here that is {}", p.mismatch.expected));
    }
    for (name, size, from) in &p.because {
        let by = params.get(*from).map_or("?", |(n, _)| n);
        d = d.with_label(spans.get(*from).copied().unwrap_or_default(), format!("{name} is {size}, from `{by}`"));
    }
    d
}
