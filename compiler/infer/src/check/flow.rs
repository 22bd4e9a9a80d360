//! Where paths meet: the state after a branch, and the state at the head of a loop.

use super::cx::{Cx, SizeSources, reads};
use super::env::{Bad, Binding, Changes, Slot};
use super::types::{erase, same_slot};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tessera_base::{Size, SizeVar};
use tessera_core::layouts::sliced_like;
use tessera_core::sizes::{subst_ty, vars_of};
use tessera_core::ty::{FnRefTy, StructTy, Ty};
use tessera_grammar::ast::Stmt;
use tessera_types::unify::{JoinKind, join};

/// The end of one path.
pub struct Path {
    pub changes: Changes,
    pub alive: bool,
}

/// The variables that stand for any size where types become wider.
#[derive(Clone, Default)]
pub struct Wide {
    pub vars: BTreeSet<SizeVar>,
    /// What they are on the other side, from the first dim that is one of them alone.
    met: BTreeMap<SizeVar, Size>,
    /// In the elements of a container: what has been made for a size of one side and one of the other.
    pairs: Option<BTreeMap<(Size, Size), SizeVar>>,
}

impl Wide {
    /// For the type of another variable.
    pub fn next(&mut self) {
        self.met.clear();
    }
}

impl Cx<'_> {
    /// Goes on after paths that all began at the present state. Dead paths say nothing.
    pub fn meet(&mut self, paths: Vec<Path>) {
        let live: Vec<Changes> = paths.into_iter().filter(|p| p.alive).map(|p| p.changes).collect();
        self.alive = !live.is_empty();
        self.decided_end &= !self.alive;
        if let [one] = live.as_slice() {
            self.env.apply(one.clone());
            return;
        }
        let vars: BTreeSet<usize> = live.iter().flat_map(|c| c.keys().copied()).collect();
        for var in vars {
            let before = self.env.at(var).cloned();
            let ends = live.iter().map(|c| c.get(&var).cloned().unwrap_or_else(|| before.clone()));
            let name = self.env.name(var).clone();
            let joined = ends.collect::<Vec<_>>().into_iter().reduce(|a, b| self.meet_two(&name, a, b)).flatten();
            self.env.set(var, joined);
            self.name_int(&name);
        }
    }

    /// The variables that branches bind anew. Sizes that are read from them are copied where something else has them.
    pub fn before_branches(&mut self, branches: [&[Stmt]; 2]) -> Vec<Slot> {
        let mut names = BTreeSet::new();
        branches.iter().for_each(|b| tessera_resolve::syntax::assigned(b, &mut names));
        let slots: Vec<Slot> = names.iter().filter_map(|name| Some(self.env.get(name)?.slot)).collect();
        slots.iter().for_each(|slot| self.copy_sizes(*slot));
        slots
    }

    /// Where sizes are read after two branches that go on: what one of them has bound anew tells no size of before.
    pub fn sources_after(before: SizeSources, branches: [SizeSources; 2], changed: &[Slot]) -> SizeSources {
        let mut out: SizeSources = branches.into_iter().flatten().collect();
        for (var, (source, entry)) in before {
            if !entry && changed.iter().any(|slot| reads(&source, *slot)) {
                out.remove(&var);
            } else {
                out.insert(var, (source, entry));
            }
        }
        out
    }

    fn meet_two(&mut self, name: &Arc<str>, a: Option<Binding>, b: Option<Binding>) -> Option<Binding> {
        let (a, b) = match (a, b) {
            (Some(a), Some(b)) => (a, b),
            (Some(x), None) | (None, Some(x)) => return Some(Binding { bad: x.bad.or(Some(Bad::Maybe)), ..x }),
            (None, None) => return None,
        };
        if a == b {
            return Some(a);
        }
        if a.bad.is_some() || b.bad.is_some() {
            let (bad, other) = if a.bad.is_some() { (a, b) } else { (b, a) };
            return Some(Binding {
                span: if bad.bad == Some(Bad::Maybe) { other.span.min(bad.span) } else { bad.span },
                ..bad
            });
        }
        if self.guessing && (a.ty == Ty::Error || b.ty == Ty::Error) {
            // The other path of a recursion tells the type.
            return Some(if a.ty == Ty::Error { b } else { a });
        }
        let joined = join(&mut self.sizes, &a.ty, &b.ty, JoinKind::Control, name);
        match joined {
            Some(ty) if a.slot == b.slot || ty == Ty::Error => Some(Binding { ty, ..a }),
            // Two empty lists that became lists of different elements have different slots.
            _ => Some(Binding { bad: Some(Bad::Conflict(b.ty, b.span)), ..a }),
        }
    }

    /// The type of a variable at the head of a loop, from what it is before the loop and at the
    /// end of the body.
    pub fn widen_head(&mut self, head: &Ty, back: &Ty, name: &str, wide: &mut Wide) -> Option<Ty> {
        Some(match (head, back) {
            (Ty::Error | Ty::Never, _) | (_, Ty::Error | Ty::Never) => head.clone(),
            (Ty::Unknown, t) => t.clone(),
            (t, Ty::Unknown) => t.clone(),
            (Ty::Int(a), Ty::Int(b)) => Ty::Int(if a == b { a.clone() } else { None }),
            (Ty::DType(a), Ty::DType(b)) => Ty::DType(if a == b { *a } else { None }),
            (Ty::Tensor(a), Ty::Tensor(b))
                if a.rank() == b.rank() && a.dtype == b.dtype && a.sharding.settled(&b.sharding).is_some() =>
            {
                let sharding = a.sharding.settled(&b.sharding).unwrap_or_default();
                let shape = a.shape.iter().zip(&b.shape).map(|(x, y)| self.widen_dim(x, y, name, wide)).collect();
                Ty::Tensor(tessera_base::TensorType { shape, dtype: a.dtype, sharding })
            }
            (Ty::List(a), Ty::List(b)) => Ty::List(Box::new(self.widen_inside(a, b, name, wide)?)),
            (Ty::Dict(ak, av), Ty::Dict(bk, bv)) => Ty::Dict(
                Box::new(self.widen_head(ak, bk, name, wide)?),
                Box::new(self.widen_inside(av, bv, name, wide)?),
            ),
            (Ty::Tuple(a), Ty::Tuple(b)) if a.len() == b.len() => {
                Ty::Tuple(a.iter().zip(b).map(|(x, y)| self.widen_head(x, y, name, wide)).collect::<Option<_>>()?)
            }
            (Ty::Struct(a), Ty::Struct(b)) if a.item == b.item => {
                let mut fields = vec![];
                for ((n, x), (_, y)) in a.fields.iter().zip(&b.fields) {
                    fields.push((n.clone(), self.widen_head(x, y, n, wide)?));
                }
                Ty::Struct(Arc::new(StructTy { fields, ..StructTy::clone(a) }))
            }
            (Ty::FnRef(a), Ty::FnRef(b)) if a.same_function(b) && a.captures.len() == b.captures.len() => {
                let mut captures = vec![];
                for ((n, x), (_, y)) in a.captures.iter().zip(&b.captures) {
                    captures.push((n.clone(), self.widen_head(x, y, n, wide)?));
                }
                Ty::FnRef(Arc::new(FnRefTy { captures, ..FnRefTy::clone(a) }))
            }
            _ if head == back => head.clone(),
            _ => return None,
        })
    }

    /// As [`Cx::widen_head`], of one dim. Dims with one variable stay equal where what they meet is equal.
    fn widen_dim(&mut self, head: &Size, back: &Size, name: &str, wide: &mut Wide) -> Size {
        if let Some(v) = head.as_var()
            && wide.vars.contains(v)
            && !wide.met.contains_key(v)
        {
            wide.met.insert(v.clone(), back.clone());
            return head.clone();
        }
        let there = head.substitute(&mut |v| wide.met.get(v).cloned());
        if self.sizes.equal(&there, back) {
            for v in head.vars().into_iter().filter(|v| wide.vars.contains(v)) {
                wide.met.entry(v.clone()).or_insert(Size::var(v));
            }
            return head.clone();
        }
        let pair = (head.clone(), back.clone());
        if let Some(var) = wide.pairs.as_ref().and_then(|pairs| pairs.get(&pair)) {
            return Size::var(var.clone());
        }
        let var = self.sizes.fresh_var(name);
        wide.vars.insert(var.clone());
        if let Some(pairs) = &mut wide.pairs {
            pairs.insert(pair, var.clone());
        }
        Size::var(var)
    }

    /// As [`Cx::widen_head`], of the elements of a container: a size that varies is another one in
    /// each element.
    fn widen_inside(&mut self, head: &Ty, back: &Ty, name: &str, wide: &mut Wide) -> Option<Ty> {
        let before = wide.vars.clone();
        let outer = wide.pairs.replace(BTreeMap::new());
        let out = self.widen_head(head, back, name, wide);
        wide.pairs = outer;
        let (out, made) = (out?, wide.vars.difference(&before).cloned().collect::<BTreeSet<SizeVar>>());
        Some(subst_ty(&out, &mut |v| made.contains(v).then(|| Size::var(v.in_each()))))
    }

    /// The type of a value that outlives the loop or comprehension that made it: sizes made
    /// since `first` may be another number each time, so they become "some size".
    pub fn escape(&mut self, ty: &Ty, first: u32, hint: &str) -> Ty {
        let mut made: BTreeMap<Size, Size> = BTreeMap::new();
        self.escape_ty(ty, first, hint, &mut made)
    }

    fn escape_ty(&mut self, ty: &Ty, first: u32, hint: &str, made: &mut BTreeMap<Size, Size>) -> Ty {
        let local = |s: &Size| s.vars().iter().any(|v| v.id >= first && !v.rigid);
        match ty {
            Ty::Int(Some(n)) if local(n) => Ty::Int(None),
            Ty::Tensor(t) => {
                let shape =
                    t.shape.iter().map(|s| if local(s) { self.some_size(s, hint, made) } else { s.clone() }).collect();
                Ty::Tensor(tessera_base::TensorType { shape, ..t.clone() })
            }
            Ty::List(t) => Ty::List(Box::new(self.escape_ty(t, first, hint, made))),
            Ty::Dict(k, v) => Ty::Dict(k.clone(), Box::new(self.escape_ty(v, first, hint, made))),
            Ty::Tuple(ts) => Ty::Tuple(ts.iter().map(|t| self.escape_ty(t, first, hint, made)).collect()),
            Ty::Struct(s) => {
                let fields = s.fields.iter().map(|(n, t)| (n.clone(), self.escape_ty(t, first, n, made))).collect();
                Ty::Struct(Arc::new(StructTy { fields, ..StructTy::clone(s) }))
            }
            Ty::FnRef(r) => {
                let captures = r.captures.iter().map(|(n, t)| (n.clone(), self.escape_ty(t, first, n, made))).collect();
                Ty::FnRef(Arc::new(FnRefTy { captures, ..FnRefTy::clone(r) }))
            }
            Ty::Fn(params, ret) => {
                let params = params.iter().map(|t| self.escape_ty(t, first, hint, made)).collect();
                Ty::Fn(params, Box::new(self.escape_ty(ret, first, hint, made)))
            }
            other => other.clone(),
        }
    }

    fn some_size(&mut self, size: &Size, hint: &str, made: &mut BTreeMap<Size, Size>) -> Size {
        if let Some(known) = made.get(size) {
            return known.clone();
        }
        let var = self.sizes.fresh_var(hint).in_each();
        made.insert(size.clone(), Size::var(var.clone()));
        Size::var(var)
    }

    /// The element type of a list to which a value is added: sizes that differ become another
    /// one in each element. `None` where the types disagree.
    pub fn widen_element(&mut self, have: &Ty, add: &Ty) -> Option<Ty> {
        let mut wide = Wide { vars: vars_of(have).into_iter().filter(|v| v.each).collect(), ..Wide::default() };
        let out = self.widen_inside(have, add, "n", &mut wide)?;
        // The elements that are there do not move.
        if sliced_like(have, &out).is_some() {
            return None;
        }
        same_slot(&erase(&out), &erase(add)).then_some(out)
    }
}
