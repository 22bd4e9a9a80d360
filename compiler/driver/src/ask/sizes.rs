//! Sizes for a signature: small ones, at which what its body asserts holds.
//!
//! A variable gets the first value of its list at which all that is known by then holds; where that leads nowhere, the next.
//! What an equation leaves no choice is computed from it. The order is fixed, so equal questions get equal sizes.

use std::collections::BTreeMap;
use tessera_base::{CmpOp, Size, SizeVar, Span};
use tessera_core::ir::{FnInst, TExpr, TKind, TStmt};
use tessera_core::ty::Ty;

/// `left op right`.
#[derive(Clone, Debug)]
pub struct Condition {
    pub op: CmpOp,
    pub left: Size,
    pub right: Size,
    /// Where the program says so.
    pub span: Span,
}

pub type Values = BTreeMap<SizeVar, i64>;

impl Condition {
    /// Whether it holds; `None` where a variable has no value, and where there is no number.
    pub fn holds(&self, values: &Values) -> Option<bool> {
        let value = |size: &Size| size.eval(&|v| values.get(v).copied());
        let (left, right) = (value(&self.left)?, value(&self.right)?);
        Some(match self.op {
            CmpOp::Eq => left == right,
            CmpOp::Ne => left != right,
            CmpOp::Lt => left < right,
            CmpOp::Le => left <= right,
            CmpOp::Gt => left > right,
            CmpOp::Ge => left >= right,
            CmpOp::In | CmpOp::NotIn | CmpOp::Is | CmpOp::IsNot => return None,
        })
    }

    fn is_over(&self, known: &dyn Fn(&SizeVar) -> bool) -> bool {
        self.left.vars().iter().chain(&self.right.vars()).all(known)
    }

    /// The one value of a variable at which an equation may hold, where it is linear in it and has no other unknown.
    fn forced(&self, var: &SizeVar, values: &Values) -> Option<i64> {
        let at = |n: i64| {
            let value = |size: &Size| size.eval(&|v| if v == var { Some(n) } else { values.get(v).copied() });
            value(&self.left)?.checked_sub(value(&self.right)?)
        };
        let (zero, one, two) = (at(0)?, at(1)?, at(2)?);
        let step = one.checked_sub(zero)?;
        let linear = self.op == CmpOp::Eq && step != 0 && two.checked_sub(one)? == step;
        (linear && zero % step == 0).then(|| -(zero / step)).filter(|n| at(*n) == Some(0))
    }

    /// The numbers that are written in it.
    fn constants(&self, out: &mut Vec<i64>) {
        for size in [&self.left, &self.right] {
            if let Some(n) = size.as_const() {
                out.extend([Some(n), n.checked_add(1), n.checked_mul(2), n.checked_sub(1)].into_iter().flatten());
            }
        }
    }
}

/// What a function asserts of its sizes, outside of branches and loops.
pub fn asserted(f: &FnInst) -> Vec<Condition> {
    let mut out = vec![];
    for stmt in &f.body {
        if let TStmt::Assert { test, .. } = stmt {
            conditions(test, &mut out);
        }
    }
    out
}

fn conditions(test: &TExpr, out: &mut Vec<Condition>) {
    match &test.kind {
        TKind::Logic { and: true, left, right } => {
            conditions(left, out);
            conditions(right, out);
        }
        TKind::Truth(e) => conditions(e, out),
        TKind::Block { value, .. } => conditions(value, out),
        TKind::Compare { op, left, right } => {
            if let (Some(left), Some(right)) = (size_of(left), size_of(right)) {
                out.push(Condition { op: *op, left, right, span: test.span });
            }
        }
        _ => {}
    }
}

fn size_of(e: &TExpr) -> Option<Size> {
    match (&e.kind, &e.ty) {
        (TKind::Int(n), _) => Some(Size::constant(*n)),
        (_, Ty::Int(Some(size))) => Some(size.clone()),
        _ => None,
    }
}

/// Values that are tried for every size.
const USUAL: [i64; 20] = [8, 16, 4, 2, 32, 1, 12, 24, 6, 3, 64, 48, 128, 5, 7, 256, 96, 512, 1024, 0];
/// Steps of one search.
const STEPS: usize = 200_000;

/// A variable that has no value yet, with what it is to be if nothing speaks against it.
#[derive(Clone, Debug)]
pub struct Open {
    pub var: SizeVar,
    pub first: Option<i64>,
}

/// Up to `most` ways to give all variables values at which the conditions hold.
pub fn choose(open: &[Open], given: &Values, conditions: &[Condition], most: usize) -> Vec<Values> {
    let mut constants = vec![];
    conditions.iter().for_each(|c| c.constants(&mut constants));
    let natural = open.iter().map(|o| &o.var).filter(|v| v.natural);
    let natural = natural.map(|v| Condition {
        op: CmpOp::Ge,
        left: Size::var(v.clone()),
        right: Size::constant(0),
        span: Span::NONE,
    });
    let conditions: Vec<Condition> = conditions.iter().cloned().chain(natural).collect();
    let lists = open.iter().enumerate().map(|(i, o)| {
        let mut list: Vec<i64> = o.first.into_iter().chain([8 * (i as i64 + 1)]).chain(USUAL).collect();
        list.extend(constants.iter().copied().filter(|n| *n >= 0));
        let mut seen = std::collections::BTreeSet::new();
        list.retain(|n| seen.insert(*n));
        list
    });
    let lists: Vec<Vec<i64>> = lists.collect();
    let mut search = Search { open, lists: &lists, conditions: &conditions, most, steps: STEPS, found: vec![] };
    search.go(0, &mut given.clone());
    search.found
}

struct Search<'a> {
    open: &'a [Open],
    lists: &'a [Vec<i64>],
    conditions: &'a [Condition],
    most: usize,
    steps: usize,
    found: Vec<Values>,
}

impl Search<'_> {
    fn go(&mut self, at: usize, values: &mut Values) {
        if self.found.len() == self.most || self.steps == 0 {
            return;
        }
        self.steps -= 1;
        let Some(Open { var, .. }) = self.open.get(at) else {
            if self.conditions.iter().all(|c| c.holds(values) == Some(true)) {
                self.found.push(values.clone());
            }
            return;
        };
        let now = |v: &SizeVar| v == var || values.contains_key(v);
        let due: Vec<&Condition> =
            self.conditions.iter().filter(|c| c.is_over(&now) && !c.is_over(&|v| values.contains_key(v))).collect();
        let forced = due.iter().find_map(|c| c.forced(var, values));
        let list = &self.lists[at];
        for n in forced.map_or_else(|| list.clone(), |n| vec![n]) {
            values.insert(var.clone(), n);
            if due.iter().all(|c| c.holds(values) == Some(true)) {
                self.go(at + 1, values);
            }
            values.remove(var);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn var(id: u32, name: &str) -> SizeVar {
        SizeVar { id, name: name.into(), rigid: true, natural: true, each: false }
    }

    fn first(conditions: &[Condition], given: &Values) -> Option<Vec<i64>> {
        let open = [var(0, "D"), var(1, "H")].map(|var| Open { var, first: None });
        let open: Vec<Open> = open.into_iter().filter(|o| !given.contains_key(&o.var)).collect();
        Some(choose(&open, given, conditions, 1).first()?.values().copied().collect())
    }

    #[test]
    fn sizes_keep_to_what_is_asserted() {
        let (d, h) = (Size::var(var(0, "D")), Size::var(var(1, "H")));
        let none = Values::new();
        assert_eq!(first(&[], &none), Some(vec![8, 16]));
        let divides = Condition {
            op: CmpOp::Eq,
            left: d.floor_mod(&h).unwrap_or(d.clone()),
            right: Size::constant(0),
            span: Span::NONE,
        };
        assert_eq!(first(std::slice::from_ref(&divides), &none), Some(vec![8, 8]));
        let heads = Condition { op: CmpOp::Eq, left: d.clone(), right: h.scale(64), span: Span::NONE };
        assert_eq!(first(std::slice::from_ref(&heads), &none), Some(vec![64, 1]));
        assert_eq!(first(std::slice::from_ref(&heads), &Values::from([(var(1, "H"), 12)])), Some(vec![768, 12]));
        let large = Condition { op: CmpOp::Ge, left: h, right: Size::constant(5000), span: Span::NONE };
        assert_eq!(first(&[large], &none), Some(vec![8, 5000]));
        assert_eq!(first(&[heads], &Values::from([(var(0, "D"), 100)])), None);
    }
}
