//! Where values lie that a loop carries: from its head on each lies in one way, and what comes to the head is cut for that.

use super::cx::{Cx, read};
use super::env::{Binding, Slot};
use super::flow::Path;
use std::collections::BTreeSet;
use std::sync::Arc;
use tessera_base::{Span, TensorType};
use tessera_core::ir::*;
use tessera_core::layouts::{settled, sliced_like, tensors};
use tessera_core::ty::Ty;
use tessera_types::unify::{Mismatch, Role, What, mismatch_diagnostic};

impl Cx<'_> {
    /// What names are bound to here.
    pub fn bindings(&self, names: &BTreeSet<Arc<str>>) -> Vec<(Arc<str>, Binding)> {
        names.iter().filter_map(|name| Some((name.clone(), self.env.get(name)?.clone()))).collect()
    }

    /// The end of a turn: the variables lie as the head of the loop has them.
    pub fn reshard_as_at_head(&mut self) {
        let Some(heads) = self.loops.last().map(|f| f.heads.clone()) else { return };
        let names = heads.iter().map(|(name, _)| name.clone()).collect();
        self.reshard_as(&self.bindings(&names), &heads);
    }

    /// Paths to the head of a loop: what they carry lies as all of it can, by cutting what is everywhere in full.
    pub fn join_shardings_at_head(&self, paths: &mut [Path]) {
        let carried: BTreeSet<usize> =
            paths.iter().filter(|p| p.alive).flat_map(|p| p.changes.keys().copied()).collect();
        for var in carried {
            let ends = paths.iter().filter(|p| p.alive);
            let mut ends = ends.map(|p| p.changes.get(&var).cloned().unwrap_or_else(|| self.env.at(var).cloned()));
            let Some(Some(first)) = ends.next() else { continue };
            let both = ends.try_fold(first.ty, |ty, end| settled(&ty, &end?.ty).ok());
            let Some(both) = both.filter(Ty::on_a_mesh) else { continue };
            for path in paths.iter_mut().filter(|p| p.alive) {
                let end = path.changes.entry(var).or_insert_with(|| self.env.at(var).cloned());
                if let Some(end) = end
                    && let Some(ty) = sliced_like(&end.ty, &both)
                {
                    end.ty = ty;
                }
            }
        }
    }

    /// Lays variables out: what is everywhere in full becomes what `to` has.
    pub fn reshard_as(&mut self, from: &[(Arc<str>, Binding)], to: &[(Arc<str>, Binding)]) {
        // In per-device code a layout says what differs between devices, and nothing is cut.
        if self.local.is_some() {
            return;
        }
        for (name, from) in from {
            let Some((_, to)) = to.iter().find(|(n, to)| n == name && to.slot == from.slot) else { continue };
            if from.bad.is_some() || to.bad.is_some() || !to.ty.on_a_mesh() {
                continue;
            }
            let known = tensors(&to.ty).iter().all(|t| t.sharding.mesh.as_ref().is_none_or(|m| !m.is_unknown()));
            let Some(ty) = sliced_like(&from.ty, &to.ty).filter(|_| known) else { continue };
            let value = read(from.slot, from.ty.clone(), to.span);
            let value = TExpr { kind: TKind::Layout(Box::new(value)), ty, span: to.span };
            self.out.push(match from.slot {
                Slot::Local(l) => TStmt::Set(l, value),
                Slot::Global(g) => TStmt::SetGlobal(g, value),
            });
        }
    }

    /// A value cut as the place has it that takes it, where that is all that has to happen.
    pub fn sliced_for(&self, value: TExpr, place: &Ty) -> TExpr {
        match sliced_like(&value.ty, place).filter(|_| self.local.is_none()) {
            Some(ty) => TExpr { span: value.span, kind: TKind::Layout(Box::new(value)), ty },
            None => value,
        }
    }

    /// A value for a place of which others read how it lies. E0204 where it lies in another way.
    pub fn expect_sharding(&mut self, value: TExpr, place: &Ty, role: &Role, declared: Span) -> TExpr {
        let (to, found) = (tensors(place), tensors(&value.ty));
        let same = |to: &TensorType, found: &TensorType| {
            let (to, found) = (to.sharding.clone().normal(to.rank()), found.sharding.clone().normal(found.rank()));
            // An annotation names axes of any mesh; what is the same on all devices is so in per-device code, too.
            let any =
                to.mesh.is_none() && !to.is_replicated() && (&to.dims, &to.partial) == (&found.dims, &found.partial);
            to == found || any || self.local.is_some() && (found.is_replicated() || to.takes_own(&found))
        };
        if to.len() != found.len() || to.iter().zip(&found).all(|(to, found)| same(to, found)) {
            return value;
        }
        let m = Mismatch::new(place, &value.ty, What::Sharding);
        let at = (!declared.is_none()).then_some(declared);
        let d = mismatch_diagnostic(&m, role, value.span, at);
        self.fail(
            d.note("a type that names no axes is that of tensors on one device here")
                .help("`dist.gather(x)` brings it to one device"),
        )
    }

    /// A value that was computed before the statements from `before` on.
    pub fn computed_at(&mut self, before: usize, name: &str, value: TExpr) -> TExpr {
        if self.out.len() <= before {
            return value;
        }
        let after = self.out.split_off(before);
        let value = self.save(name, value);
        self.out.extend(after);
        value
    }
}
