//! Instances: functions at argument types, and their results in the caller's terms.
//!
//! Also called: monomorphisation.

use super::cx::Cx;
use super::env::Slot;
use super::limits;
use super::per_device::PerDevice;
use super::types::{self, each_fn_ref};
use super::{CheckedInst, GlobalRead, InstData, NoHash, Request};
use crate::db::{self, InstRef};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tessera_base::{Facts, ItemId, Size, SizeVar, Span};
use tessera_core::ir::InstId;
use tessera_core::sizes::subst_ty;
use tessera_core::ty::{FnRefTy, Ty};
use tessera_resolve::source::FileId;

/// Types nested more deeply than this are those of a recursion without end.
const TYPE_DEPTH_MAX: usize = 40;

/// Size variables numbered in order of appearance.
#[derive(Default)]
pub struct Canon {
    map: BTreeMap<SizeVar, u32>,
    back: Vec<SizeVar>,
}

impl Canon {
    pub fn ty(&mut self, ty: &Ty) -> Ty {
        subst_ty(ty, &mut |v| Some(self.var(v)))
    }

    fn var(&mut self, v: &SizeVar) -> Size {
        let id = match self.map.get(v) {
            Some(id) => *id,
            None => {
                let id = self.back.len() as u32;
                self.map.insert(v.clone(), id);
                self.back.push(v.clone());
                id
            }
        };
        Size::var(SizeVar { id, ..v.clone() })
    }

    fn size(&mut self, size: &Size) -> Size {
        size.substitute(&mut |v| Some(self.var(v)))
    }

    /// The facts that speak only of variables in the key.
    fn facts(&mut self, facts: &Facts) -> Facts {
        let id = |v: &SizeVar| self.map.get(v).copied();
        facts.translate(&mut |v| Some(Size::var(SizeVar { id: id(v)?, ..v.clone() })))
    }
}

/// A function value to be instantiated.
pub struct Callee<'a> {
    pub item: ItemId,
    pub start: u32,
    pub captures: &'a [(Arc<str>, Ty)],
}

impl<'a> Callee<'a> {
    pub fn of(r: &'a FnRefTy) -> Callee<'a> {
        Callee { item: ItemId(r.item), start: r.start, captures: &r.captures }
    }
}

impl<'db> Cx<'db> {
    /// The instance of a function at argument types (`None`: at its annotations).
    pub fn instance(&mut self, callee: &Callee, args: Option<&[Ty]>) -> (Arc<InstData>, Canon) {
        // What per-device code calls is run by a device too.
        let local = self.local.clone();
        self.instance_on(callee, args, local)
    }

    /// The same, as one device runs it.
    pub fn instance_on(
        &mut self,
        callee: &Callee,
        args: Option<&[Ty]>,
        local: Option<PerDevice>,
    ) -> (Arc<InstData>, Canon) {
        self.instance_of(callee, args, local, None)
    }

    /// The same, as a value of a function type with this result.
    pub fn instance_of(
        &mut self,
        callee: &Callee,
        args: Option<&[Ty]>,
        local: Option<PerDevice>,
        erased: Option<&Ty>,
    ) -> (Arc<InstData>, Canon) {
        let mut canon = Canon::default();
        let widen = args.is_some() && db::is_recursive(self.db, callee.item);
        let captures: Vec<(Arc<str>, Ty)> = callee.captures.iter().map(|(n, t)| (n.clone(), canon.ty(t))).collect();
        let args: Option<Vec<Ty>> = args.map(|args| {
            args.iter()
                .map(|t| match t {
                    // Else each step of a recursion over an int would be an instance of its own.
                    Ty::Int(_) if widen => Ty::int(),
                    Ty::Never => Ty::Error,
                    t => canon.ty(t),
                })
                .collect()
        });
        let mut more = vec![];
        let mut note = |t: &Ty| each_fn_ref(t, &mut |r| more.push(ItemId(r.item)));
        captures.iter().for_each(|(_, t)| note(t));
        args.iter().flatten().for_each(&mut note);
        let mut globals = self.globals_read(callee.item, more);
        if erased.is_some() {
            globals = globals.into_iter().map(|g| self.read_later(g)).collect();
        }
        let globals = globals.into_iter().map(|g| GlobalRead { ty: canon.ty(&g.ty), ..g }).collect();
        let local = local.map(|l| {
            let mut of_callee =
                |sizes: Vec<(String, Size)>| sizes.into_iter().map(|(a, n)| (a, canon.size(&n))).collect();
            PerDevice { sizes: of_callee(l.sizes), blocks: of_callee(l.blocks), mesh: l.mesh }
        });
        let erased = erased.map(|ret| canon.ty(ret));
        let facts = canon.facts(&self.sizes.facts);
        let data = InstData {
            item: callee.item,
            start: callee.start,
            captures,
            args,
            globals,
            facts,
            numerics: self.numerics(),
            local,
            erased,
            kinds: canon.back.iter().map(|v| (v.name.clone(), v.rigid, v.natural, v.each)).collect(),
        };
        (Arc::new(data), canon)
    }

    /// The module variables that running an item may read, as they are now.
    fn globals_read(&mut self, item: ItemId, more: Vec<ItemId>) -> Vec<GlobalRead> {
        // In the order of paths: numbers of files tell which was read first.
        let mut out: BTreeMap<(Arc<str>, Arc<str>), GlobalRead> = BTreeMap::new();
        let mut seen = BTreeSet::new();
        let mut work = vec![item];
        work.extend(more);
        while let Some(item) = work.pop() {
            if item.0 == types::BUILTIN_ITEM || !seen.insert(item) {
                continue;
            }
            let Some(file) = db::home(self.db, item) else { continue };
            let module = db::module_of(self.db, file.id(self.db));
            let path = db::path_of(self.db, module);
            for name in db::reads(self.db, item).iter() {
                let place = (path.clone(), name.clone());
                if out.contains_key(&place) {
                    continue;
                }
                if let Some((slot, ty, span)) = self.global_now(module, file, name) {
                    each_fn_ref(&ty, &mut |r| work.push(ItemId(r.item)));
                    out.insert(place, GlobalRead { module, name: name.clone(), slot, ty, span: NoHash(span) });
                }
            }
        }
        out.into_values().collect()
    }

    fn global_now(&mut self, module: FileId, file: db::File, name: &Arc<str>) -> Option<(Ty, Ty, Span)> {
        if self.is_module() && module == self.module {
            let binding = self.env.get(name)?;
            return match (&binding.bad, binding.slot) {
                (None, Slot::Global(id)) => {
                    let ty = self.as_functions_leave(self.file, name, binding.ty.clone());
                    Some((self.global_key(id).ty.clone(), ty, binding.span))
                }
                _ => None,
            };
        }
        if let Some(data) = &self.data
            && let Some(read) = data.globals.iter().find(|g| g.module == module && g.name == *name)
        {
            return Some((read.slot.clone(), read.ty.clone(), read.span.0));
        }
        if module == self.module || !db::has_run_before(self.db, module, self.file) {
            return None;
        }
        let var = db::checked_main(self.db, file).vars.get(name)?.clone();
        let ty = self.foreign(&var.ty);
        let ty = self.as_functions_leave(file, name, ty);
        (!var.bad).then_some((var.slot, ty, var.span))
    }

    /// Makes a call's need of an instance known, and its number in this body.
    pub fn need(&mut self, data: &Arc<InstData>, span: Span) -> InstId {
        let entry = self.callees.entry(db::inst_ref(self.db, data));
        let inst = InstId(entry.index() as u32);
        entry.or_insert(false);
        self.requests.push(Request { inst, span, graph: false });
        inst
    }

    /// The checked callee, where the caller must know its result type. `None` where the limits
    /// are reached, which is reported.
    pub fn check_callee(&mut self, data: &Arc<InstData>, name: &str, span: Span) -> Option<&'db Arc<CheckedInst>> {
        let mut types = data.args.iter().flatten().chain(data.captures.iter().map(|(_, t)| t));
        let checked = match types.any(|t| types::depth(t) > TYPE_DEPTH_MAX) {
            true => None,
            false => self.checked_inst(db::inst_ref(self.db, data)),
        };
        if checked.is_none() {
            self.too_many(&format!("`{name}`"), span);
        }
        checked
    }

    /// E0901 for a call that has too many instances behind it.
    pub fn too_many(&mut self, what: &str, span: Span) {
        self.report(limits::too_many(what, span));
    }

    /// A checked instance, on which this body depends. `None` where there is too much behind it.
    pub fn checked_inst(&mut self, inst: InstRef) -> Option<&'db Arc<CheckedInst>> {
        let db = self.db;
        let checked = limits::inside(self.met.level, inst, || db::inst(db, inst));
        if checked.is_none() {
            // What it stopped at is no part of what this body has read.
            db.report_untracked_read();
        }
        let extent = checked.map(|c| c.size);
        let first = std::mem::replace(self.callees.entry(inst).or_insert(false), true);
        if let (false, Some(extent)) = (first, extent) {
            self.met.first(extent);
        }
        checked.filter(|_| self.met.fits(db, inst, extent))
    }

    /// A type of the callee in the caller's terms.
    pub fn from_callee(&mut self, ty: &Ty, canon: &Canon, sig: &BTreeMap<SizeVar, Size>) -> Ty {
        let mut made: BTreeMap<SizeVar, Size> = BTreeMap::new();
        let sizes = &mut self.sizes;
        subst_ty(ty, &mut |v| {
            if let Some(own) = canon.back.get(v.id as usize) {
                return Some(Size::var(own.clone()));
            }
            if let Some(size) = sig.get(v) {
                return Some(size.clone());
            }
            Some(made.entry(v.clone()).or_insert_with(|| sizes.fresh_like(v)).clone())
        })
    }
}
