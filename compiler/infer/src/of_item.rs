//! What a program makes of one item, for whoever shows it: the types of what stands in it, and the functions that its calls
//! make of it. The program may have errors.

use crate::check::reached::{Insts, Numbers, Reached};
use crate::check::typed::Types;
use crate::db::{self, Database};
use crate::session::{deep, effects};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tessera_base::{ItemId, Span};
use tessera_core::ir::Effect;
use tessera_core::ty::Ty;
use tessera_resolve::source::FileId;

/// What is known of an item in a program.
#[derive(Clone, Debug, Default)]
pub struct OfItem {
    /// By where they stand in the item: expressions and bound names, with a type for each way in which the program calls
    /// what they stand in.
    pub types: BTreeMap<(u32, u32), Vec<Ty>>,
    /// Of the functions of the item, in the order of their text.
    pub instances: Vec<Instance>,
}

/// A function at one set of argument types.
#[derive(Clone, PartialEq, Debug)]
pub struct Instance {
    /// Where the function starts in the item ([`tessera_resolve::functions::def_start`]).
    pub start: u32,
    pub name: Arc<str>,
    pub params: Vec<(Arc<str>, Ty)>,
    pub ret: Ty,
    pub effect: Effect,
    /// What it compares when it runs: where, and in words.
    pub kept: Vec<(Span, Arc<str>)>,
}

impl OfItem {
    fn note(&mut self, types: &Types) {
        for (place, ty) in types.all() {
            let here = self.types.entry(place).or_default();
            if !here.contains(ty) {
                here.push(ty.clone());
            }
        }
    }

    /// The smallest expression or bound name around a position.
    pub fn around(&self, at: u32) -> Option<(Span, &[Ty])> {
        let around = self.types.iter().filter(|((start, end), _)| *start <= at && at < *end);
        let ((start, end), types) = around.min_by_key(|((start, end), _)| end - start)?;
        Some((Span::new(ItemId::NONE, *start as usize, *end as usize), types))
    }

    /// The types of what stands exactly there.
    pub fn at(&self, span: Span) -> &[Ty] {
        self.types.get(&(span.start, span.end)).map_or(&[], |types| types)
    }

    /// The instances of the function that starts at a position of the item.
    pub fn of_function(&self, start: u32) -> impl Iterator<Item = &Instance> {
        self.instances.iter().filter(move |i| i.start == start)
    }
}

/// What the program with the root makes of some items. Queries remember nearly all of it; what a program consists of is gone
/// through once.
pub fn of_items(db: &Database, root: FileId, items: &[ItemId]) -> BTreeMap<ItemId, OfItem> {
    let (snapshot, wanted) = (db.clone(), items.iter().copied().collect::<BTreeSet<ItemId>>());
    deep(move || {
        let db = &snapshot;
        let Some(file) = db::file_of(db, root) else { return BTreeMap::new() };
        let mut reached = Reached::new(db, Numbers::default(), BTreeSet::new());
        reached.module(file);
        let mut out: BTreeMap<ItemId, OfItem> = wanted.iter().map(|id| (*id, OfItem::default())).collect();
        for inst in reached.insts.values() {
            if let Some(of) = out.get_mut(&inst.data.item) {
                of.note(db::types_in_inst(db, db::inst_ref(db, inst.data)));
            }
        }
        for (item, of) in &mut out {
            if let Some(types) = db::home(db, *item).and_then(|home| db::types_in_module(db, home).get(item)) {
                of.note(types);
            }
        }
        instances(&reached.insts, &mut out);
        out
    })
}

/// See [`of_items`].
pub fn of_item(db: &Database, root: FileId, item: ItemId) -> OfItem {
    of_items(db, root, &[item]).remove(&item).unwrap_or_default()
}

/// The types in a function that is annotated throughout, as its module checks it: for whoever asks what a value is, and not in
/// which ways a program comes there, so that nobody goes through the program. `None` for other items.
pub fn at_annotations(db: &Database, item: ItemId) -> Option<OfItem> {
    let snapshot = db.clone();
    deep(move || {
        let db = &snapshot;
        let head = db::item_of(db, item)?.signature(db).as_ref()?.head;
        let main = db::checked_main(db, db::home(db, item)?);
        let request = main.requests.iter().find(|r| r.span == head)?;
        let inst = main.tables.callees[request.inst.0 as usize].inst;
        let data = db::inst_data(db, inst);
        if data.item != item || data.args.is_some() {
            return None;
        }
        let mut out = OfItem::default();
        out.note(db::types_in_inst(db, inst));
        Some(out)
    })
}

fn instances(insts: &Insts, out: &mut BTreeMap<ItemId, OfItem>) {
    if !insts.values().any(|i| out.contains_key(&i.data.item)) {
        return;
    }
    let effects = effects(insts);
    for (id, i) in insts {
        let Some(of) = out.get_mut(&i.data.item) else { continue };
        let inst = &i.checked.inst;
        let param = |l: &tessera_core::ir::LocalId| {
            let v = &inst.locals[l.0 as usize];
            (v.name.clone(), v.ty.clone())
        };
        let one = Instance {
            start: i.data.start,
            name: inst.name.clone(),
            params: inst.params.iter().map(param).collect(),
            ret: i.checked.ret.clone(),
            effect: effects.get(id).cloned().unwrap_or_else(|| inst.effect.clone()),
            kept: inst.kept.clone(),
        };
        if !of.instances.contains(&one) {
            of.instances.push(one);
        }
    }
    out.values_mut().for_each(|of| of.instances.sort_by_key(|i| i.start));
}
