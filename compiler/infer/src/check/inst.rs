//! Instances: functions at argument types, and their results in the caller's terms.

use super::cx::{Cx, INSTANCES_MAX, Level};
use super::env::Slot;
use super::local::PerDevice;
use super::types::{self, each_fn_ref};
use super::{CheckedInst, GlobalRead, InstData, NoHash, Request};
use crate::db;
use tessera_resolve::source::FileId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tessera_base::{Code, Diagnostic, Facts, ItemId, Size, SizeVar, Span};
use tessera_core::ir::{GlobalId, InstId};
use tessera_core::sizes::subst_ty;
use tessera_core::ty::{FnRefTy, Ty};

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
        let local = local
            .map(|l| PerDevice { sizes: l.sizes.into_iter().map(|(axis, n)| (axis, canon.size(&n))).collect(), ..l });
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
            kinds: canon.back.iter().map(|v| (v.rigid, v.natural, v.each)).collect(),
        };
        (Arc::new(data), canon)
    }

    /// The module variables that running an item may read, as they are now.
    fn globals_read(&mut self, item: ItemId, more: Vec<ItemId>) -> Vec<GlobalRead> {
        let mut out: BTreeMap<(FileId, Arc<str>), GlobalRead> = BTreeMap::new();
        let mut seen = BTreeSet::new();
        let mut work = vec![item];
        work.extend(more);
        while let Some(item) = work.pop() {
            if item.0 == types::BUILTIN_ITEM || !seen.insert(item) {
                continue;
            }
            let Some(file) = db::home(self.db, item) else { continue };
            let module = db::module_of(self.db, file.id(self.db));
            for name in db::reads(self.db, item).iter() {
                if out.contains_key(&(module, name.clone())) {
                    continue;
                }
                if let Some((id, ty, span)) = self.global_now(module, file, name) {
                    each_fn_ref(&ty, &mut |r| work.push(ItemId(r.item)));
                    let read = GlobalRead { module, name: name.clone(), id, ty, span: NoHash(span) };
                    out.insert((module, name.clone()), read);
                }
            }
        }
        out.into_values().collect()
    }

    fn global_now(&mut self, module: FileId, file: db::File, name: &Arc<str>) -> Option<(GlobalId, Ty, Span)> {
        if self.is_module() && module == self.module {
            let binding = self.env.get(name)?;
            return match (&binding.bad, binding.slot) {
                (None, Slot::Global(id)) => {
                    let ty = self.as_functions_leave(self.file, name, binding.ty.clone());
                    Some((id, ty, binding.span))
                }
                _ => None,
            };
        }
        if let Some(data) = &self.data
            && let Some(read) = data.globals.iter().find(|g| g.module == module && g.name == *name)
        {
            return Some((read.id, read.ty.clone(), read.span.0));
        }
        if module == self.module || !db::has_run_before(self.db, module, self.file) {
            return None;
        }
        let var = db::checked_main(self.db, file).vars.get(name)?.clone();
        let ty = self.foreign(&var.ty);
        let ty = self.as_functions_leave(file, name, ty);
        (!var.bad).then_some((var.id, ty, var.span))
    }

    /// Makes a call's need of an instance known, and its number.
    pub fn need(&mut self, data: &Arc<InstData>, span: Span) -> InstId {
        let inst = db::inst_id(self.db, data.clone());
        self.requests.push(Request { inst, span, graph: false });
        inst
    }

    /// The checked callee, where the caller must know its result type. `None` where the limits
    /// are reached, which is reported.
    pub fn check_callee(&mut self, data: &Arc<InstData>, name: &str, span: Span) -> Option<&'db Arc<CheckedInst>> {
        let too_deep = data
            .args
            .iter()
            .flatten()
            .chain(data.captures.iter().map(|(_, t)| t))
            .any(|t| types::depth(t) > TYPE_DEPTH_MAX);
        let level = Level::instance();
        if too_deep || level.is_none() || db::inst_count(self.db) > INSTANCES_MAX {
            self.report(
                Diagnostic::new(Code::E0901, span, format!("calling `{name}` leads to too many versions of functions"))
                    .note("an unannotated function is checked once for each list of argument types")
                    .help("annotate the parameters and the result"),
            );
            return None;
        }
        Some(db::inst(self.db, data))
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
