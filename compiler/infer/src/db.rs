//! The query database: texts are inputs, everything the checker learns is derived from them.
//!
//! A file is cut into items before it enters the database, so the unit of invalidation is the
//! item: an edit inside a function changes one input. What is derived of it is split into
//! small facts ([`facts`], [`scope`], [`reads`]) that mostly come out equal after an edit, so
//! that nothing else is checked again.

use crate::check::typed::Types;
use crate::check::{self, CheckedInst, CheckedMain, InstData};
use crate::circles::on_circles;
use salsa::plumbing::{AsId, FromId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tessera_base::{Diagnostic, ItemId, Limits, Mesh, limits};
use tessera_core::builtins;
use tessera_core::ty::Ty;
use tessera_grammar::ast::StructDef;
use tessera_grammar::{ParsedItem, SplitFile};
use tessera_ir::graph::Policy;
use tessera_resolve::facts::ItemFacts;
use tessera_resolve::functions::{FnLike, FnSig};
use tessera_resolve::names::Names;
use tessera_resolve::source::{FileId, Refused};

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ItemKind {
    Def,
    Struct,
    Stmt,
}

/// An item as its file lists it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ItemHead {
    pub id: ItemId,
    pub kind: ItemKind,
    pub name: Option<Arc<str>>,
}

/// One item, read once when its text comes, and the file or input that it is written in.
///
/// What others know of an item (its facts, its signature) is set only where it differs, which most edits leave as it is, and is
/// of high durability: as long as none of it changes, salsa looks at nothing that depends on it alone. What changes with the
/// text is of low durability.
#[salsa::input]
pub struct Item {
    #[returns(copy)]
    pub id: ItemId,
    #[returns(copy)]
    pub file: FileId,
    pub text: Arc<str>,
    pub syntax: Arc<ParsedItem>,
    /// Its functions and lambdas, by where they start.
    pub functions: Arc<BTreeMap<u32, Arc<FnLike>>>,
    /// What every name in it refers to, and which scopes there are where.
    pub names: Arc<Names>,
    /// The names in it that something outside may have, sizes included: a size may have the name of a constant.
    pub outside: Arc<BTreeSet<Arc<str>>>,
    /// Which names it mentions, assigns and imports.
    pub facts: Arc<ItemFacts>,
    /// Of the function that it defines.
    pub signature: Option<Arc<FnSig>>,
    /// The struct that it defines.
    pub struct_def: Option<Arc<StructDef>>,
    /// What is careless in it by itself, which is said of programs without errors.
    pub careless: Arc<[Diagnostic]>,
}

/// The items of one file.
#[salsa::input]
pub struct File {
    #[returns(copy)]
    pub id: FileId,
    pub path: Arc<str>,
    /// The first input of the prompt, or the file itself: where its variables live.
    #[returns(copy)]
    pub module: FileId,
    /// Of the standard library.
    #[returns(copy)]
    pub library: bool,
    /// What is wrong with how it is cut into items.
    pub diagnostics: Arc<[Diagnostic]>,
    pub heads: Arc<[ItemHead]>,
    /// For an input at a prompt: what the inputs before it left.
    pub before: Option<Arc<Before>>,
    #[returns(copy)]
    pub prompt: Option<Prompt>,
    /// Imported files by dotted name (`foo`, `std.nn`), models by [`model_name`].
    pub imports: Arc<BTreeMap<Arc<str>, Target>>,
}

/// The inputs of a prompt. A function of an earlier input is checked in the scope of the latest
/// one, so that what is defined anew counts everywhere.
#[salsa::input]
pub struct Prompt {
    #[returns(copy)]
    pub latest: File,
}

/// What the inputs of a prompt leave to the next. It does not change with later definitions:
/// what has run is not checked again.
pub struct Before {
    /// Where the variables live.
    pub module: FileId,
    pub scope: Arc<Scope>,
    /// The items of all inputs.
    pub heads: Arc<[ItemHead]>,
    pub imports: Arc<BTreeMap<Arc<str>, Target>>,
    pub main: Arc<CheckedMain>,
}

/// Under which name a file lists a model that it reads.
pub fn model_name(path: &str) -> Arc<str> {
    format!("{MODEL}{path}").into()
}

/// No module's name begins so.
pub(crate) const MODEL: &str = "io.read_onnx ";

/// What an import names.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Target {
    File(FileId),
    /// No such file.
    Missing,
    /// The file imports, over others, the one that imports it: their paths.
    Cycle(Vec<Arc<str>>),
    /// A model that cannot be read or has no translation.
    Refused(Refused),
}

/// A key of [`checked_inst`]. Salsa collects those that no query makes any more.
#[salsa::interned]
pub struct InstKey<'db> {
    pub data: Arc<InstData>,
}

/// A key in the result of a query, which makes the key whenever it runs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct InstRef(salsa::Id);

impl InstRef {
    pub(crate) fn of(key: InstKey) -> InstRef {
        InstRef(key.as_id())
    }

    fn key<'db>(self) -> InstKey<'db> {
        InstKey::from_id(self.0)
    }
}

/// What no query reads: where items lie in their files, and the texts that diagnostics show.
#[derive(Clone, Default)]
pub(crate) struct Texts {
    pub(crate) items: Vec<ItemText>,
    pub(crate) files: Vec<Arc<str>>,
    /// The texts that files were cut from, with their pieces: what the next edit starts from.
    pub(crate) cut: Vec<Arc<Option<(Arc<str>, SplitFile)>>>,
    /// Items that edits removed. What is written next takes their numbers, so that a file that is edited all day takes
    /// no more memory than it has items.
    pub(crate) free: Vec<ItemId>,
    /// A prompt keeps what its inputs made of a module: there no number gets another meaning.
    pub(crate) prompt: bool,
}

#[derive(Clone)]
pub(crate) struct ItemText {
    /// Nowhere: `u32::MAX`.
    pub(crate) start: u32,
    /// The files that it imports; `None` until it is read again.
    pub(crate) imports: Option<Arc<[Arc<str>]>>,
}

/// What queries see of the database besides inputs and other queries never changes: which input a number stands for, and
/// what it was made with.
#[salsa::db]
pub trait Db: salsa::Database {
    fn item(&self, id: ItemId) -> Option<Item>;
    fn file(&self, id: FileId) -> Option<File>;
    /// The policy that modules begin with.
    fn policy(&self) -> Policy;
    /// What the target allows.
    fn limits(&self) -> &'static Limits;
    /// Sizes that meshes with its axes have instead of their own.
    fn mesh(&self) -> Option<&Mesh>;
}

#[salsa::db]
#[derive(Clone, Default)]
pub struct Database {
    storage: salsa::Storage<Self>,
    /// By number.
    pub(crate) items: Arc<Vec<Item>>,
    pub(crate) files: Arc<Vec<File>>,
    pub(crate) texts: Arc<Texts>,
    policy: Policy,
    /// The processor's where none are said.
    limits: Option<&'static Limits>,
    mesh: Option<Mesh>,
    /// A program was checked: what edits leave to do is little.
    pub(crate) checked: Arc<AtomicBool>,
}

impl Database {
    /// For programs on a target that begin with a policy of sums, and a mesh that stands for every one with its axes.
    pub fn with(limits: &'static Limits, policy: Policy, mesh: Option<Mesh>) -> Database {
        Database { policy, limits: Some(limits), mesh, ..Database::default() }
    }

    /// A database that tells what salsa does.
    pub fn watched(told: impl Fn(&salsa::Event) + Send + Sync + 'static) -> Database {
        Database { storage: salsa::Storage::new(Some(Box::new(move |e| told(&e)))), ..Database::default() }
    }
}

#[salsa::db]
impl salsa::Database for Database {}

#[salsa::db]
impl Db for Database {
    fn item(&self, id: ItemId) -> Option<Item> {
        self.items.get(id.0 as usize).copied()
    }

    fn file(&self, id: FileId) -> Option<File> {
        self.files.get(id.0 as usize).copied()
    }

    fn policy(&self) -> Policy {
        self.policy
    }

    fn limits(&self) -> &'static Limits {
        self.limits.unwrap_or(&limits::CPU)
    }

    fn mesh(&self) -> Option<&Mesh> {
        self.mesh.as_ref()
    }
}

pub(crate) fn item_of(db: &dyn Db, id: ItemId) -> Option<Item> {
    db.item(id)
}

pub(crate) fn file_of(db: &dyn Db, id: FileId) -> Option<File> {
    db.file(id)
}

/// Whether an item belongs to the standard library: its errors are told at the calls from outside.
pub(crate) fn in_library(db: &dyn Db, id: ItemId) -> bool {
    written_in(db, id).is_some_and(|file| file.library(db))
}

/// The file or input that an item is written in.
pub(crate) fn written_in(db: &dyn Db, id: ItemId) -> Option<File> {
    db.file(db.item(id)?.file(db))
}

/// The file in whose scope an item is checked: its own, or at a prompt the latest input.
pub(crate) fn home(db: &dyn Db, id: ItemId) -> Option<File> {
    let file = written_in(db, id)?;
    Some(file.prompt(db).map_or(file, |p| p.latest(db)))
}

/// The items of a file and, at a prompt, of the inputs before it.
pub(crate) fn all_heads(db: &dyn Db, file: File) -> impl Iterator<Item = &ItemHead> {
    file.before(db).iter().flat_map(|b| b.heads.iter()).chain(file.heads(db).iter())
}

/// Where the variables of a file live.
pub(crate) fn module_of(db: &dyn Db, file: FileId) -> FileId {
    db.file(file).map_or(file, |f| f.module(db))
}

/// Whether the body of a module has run before a file's: the file imports it, or what it imports does.
pub(crate) fn has_run_before(db: &dyn Db, module: FileId, file: File) -> bool {
    let mut seen = BTreeSet::new();
    let mut work = vec![file];
    while let Some(file) = work.pop() {
        let before = file.before(db).iter().flat_map(|b| b.imports.values());
        for target in file.imports(db).values().chain(before) {
            let Target::File(id) = target else { continue };
            if module_of(db, *id) == module {
                return true;
            }
            if seen.insert(*id) {
                work.extend(file_of(db, *id));
            }
        }
    }
    false
}

pub(crate) fn path_of(db: &dyn Db, file: FileId) -> Arc<str> {
    db.file(file).map_or_else(|| "".into(), |f| f.path(db).clone())
}

pub(crate) fn inst_ref(db: &dyn Db, data: &Arc<InstData>) -> InstRef {
    InstRef::of(InstKey::new(db, data.clone()))
}

pub(crate) fn inst_data(db: &dyn Db, inst: InstRef) -> &Arc<InstData> {
    inst.key().data(db)
}

/// A checked instance.
pub(crate) fn inst(db: &dyn Db, inst: InstRef) -> &Arc<CheckedInst> {
    checked_inst(db, inst.key())
}

// ---- Queries ---------------------------------------------------------------------------------

/// What the names of a module mean that are not variables, and which names are variables.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Scope {
    pub names: BTreeMap<Arc<str>, Entity>,
    pub variables: BTreeSet<Arc<str>>,
    /// Definitions of a name that has one already: (the later, the earlier).
    pub twice: Vec<(ItemId, ItemId)>,
}

/// A module-level name that is not a variable.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Entity {
    Def(ItemId),
    Struct(ItemId),
    /// A built-in module (`op`, `dist.collective`) or `tessera` itself.
    Module(Arc<str>),
    /// A user's or the standard library's file.
    File(FileId),
    /// A member of a file.
    Member(FileId, Arc<str>),
    /// A member of a built-in module, dotted (`op.softmax`).
    Builtin(Arc<str>),
    /// Reported where it is imported.
    Broken,
}

/// The scope of a file, with that of the inputs before it.
#[salsa::tracked]
pub fn scope(db: &dyn Db, file: File) -> Arc<Scope> {
    let mut out = file.before(db).as_ref().map_or_else(Scope::default, |b| Scope::clone(&b.scope));
    out.twice.clear();
    let mut here: BTreeMap<Arc<str>, ItemId> = BTreeMap::new();
    let variables = import_variables(db, file);
    for head in file.heads(db).iter() {
        let Some(item) = item_of(db, head.id) else { continue };
        if let (Some(name), ItemKind::Def | ItemKind::Struct) = (&head.name, head.kind) {
            if let Some(first) = here.insert(name.clone(), head.id) {
                out.twice.push((head.id, first));
            }
            let entity = if head.kind == ItemKind::Def { Entity::Def(head.id) } else { Entity::Struct(head.id) };
            out.variables.remove(name);
            out.names.insert(name.clone(), entity);
            continue;
        }
        let facts = item.facts(db);
        out.variables.extend(facts.assigned.iter().cloned());
        for import in &facts.imports {
            if variables.contains(&import.binds) {
                out.names.remove(&import.binds);
                out.variables.insert(import.binds.clone());
                continue;
            }
            let entity = check::modules::import_entity(db, file, import);
            out.variables.remove(&import.binds);
            out.names.insert(import.binds.clone(), entity);
        }
    }
    Arc::new(out)
}

/// What a name is at the top of a file. A name may be both: a variable until it is defined, or from then on.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct InScope {
    pub entity: Option<Entity>,
    /// A variable, somewhere in the file.
    pub variable: bool,
}

impl InScope {
    /// The file has the name.
    pub fn is_known(&self) -> bool {
        self.entity.is_some() || self.variable
    }
}

impl Scope {
    /// What a name is.
    pub fn get(&self, name: &str) -> InScope {
        InScope { entity: self.names.get(name).cloned(), variable: self.variables.contains(name) }
    }
}

/// What the names that stand in an item are at the top of a file. Comes out equal when others change, so that the item is
/// not checked again because of them.
#[salsa::tracked]
pub fn item_scope(db: &dyn Db, item: Item) -> Arc<BTreeMap<Arc<str>, InScope>> {
    let mut out = BTreeMap::new();
    let Some(file) = home(db, item.id(db)) else { return Arc::new(out) };
    let scope = scope(db, file);
    out.extend(item.outside(db).iter().map(|name| (name.clone(), scope.get(name))));
    Arc::new(out)
}

/// A name, as a key of [`name_in_scope`].
#[salsa::interned]
struct NameKey<'db> {
    text: Arc<str>,
}

/// What one name is at the top of a file: for names that do not stand in the item which is checked.
#[salsa::tracked]
fn name_in_scope<'db>(db: &'db dyn Db, file: File, name: NameKey<'db>) -> InScope {
    scope(db, file).get(name.text(db))
}

/// What one name is at the top of a file.
pub(crate) fn in_scope(db: &dyn Db, file: File, name: &str) -> InScope {
    name_in_scope(db, file, NameKey::new(db, name)).clone()
}

/// The names that a file binds once at its top level (see [`check::constants`]).
#[salsa::tracked]
pub fn constants(db: &dyn Db, file: File) -> Arc<BTreeMap<Arc<str>, check::constants::Constant>> {
    Arc::new(check::constants::constants(db, file))
}

/// What is known of the variables of a file for good (see [`check::global_mutation`]).
#[salsa::tracked]
pub fn global_invariants(db: &dyn Db, file: File) -> Arc<check::global_mutation::GlobalInvariants> {
    Arc::new(check::global_mutation::global_invariants(db, file))
}

/// What an item changes in place (see [`check::global_mutation::changes`]).
#[salsa::tracked(returns(ref))]
pub fn changes(db: &dyn Db, item: Item) -> [BTreeSet<Arc<str>>; 2] {
    check::global_mutation::changes(db, item)
}

/// The names that a file imports and binds to something else, too: they are variables.
#[salsa::tracked]
pub fn import_variables(db: &dyn Db, file: File) -> Arc<BTreeSet<Arc<str>>> {
    Arc::new(check::modules::import_variables(db, file))
}

/// For each item of a file, the module-level names that running it may read: its own and those
/// of the functions that it mentions, transitively.
#[salsa::tracked]
pub fn all_reads(db: &dyn Db, file: File) -> Arc<BTreeMap<ItemId, Arc<BTreeSet<Arc<str>>>>> {
    let scope = scope(db, file);
    let mut out: BTreeMap<ItemId, BTreeSet<Arc<str>>> = BTreeMap::new();
    let mut outside: BTreeMap<ItemId, Arc<BTreeSet<Arc<str>>>> = BTreeMap::new();
    let mut calls: BTreeMap<ItemId, Vec<ItemId>> = BTreeMap::new();
    for head in all_heads(db, file) {
        let Some(item) = item_of(db, head.id) else { continue };
        let mut own = BTreeSet::new();
        for name in &item.facts(db).mentions {
            if let Some(Entity::Def(id) | Entity::Struct(id)) = scope.names.get(name) {
                calls.entry(head.id).or_default().push(*id);
                if home(db, *id) != Some(file) {
                    outside.insert(*id, reads(db, *id));
                }
            }
            if scope.variables.contains(name) {
                own.insert(name.clone());
            }
        }
        out.insert(head.id, own);
    }
    // To the fixed point. Few functions read variables, so the sets are small.
    loop {
        let mut changed = false;
        for (id, callees) in &calls {
            let mut more: BTreeSet<Arc<str>> = BTreeSet::new();
            for callee in callees {
                if let Some(set) = out.get(callee) {
                    more.extend(set.iter().cloned());
                } else if let Some(set) = outside.get(callee) {
                    more.extend(set.iter().cloned());
                }
            }
            if let Some(own) = out.get_mut(id) {
                let before = own.len();
                own.extend(more);
                changed |= own.len() != before;
            }
        }
        if !changed {
            break;
        }
    }
    Arc::new(out.into_iter().map(|(id, set)| (id, Arc::new(set))).collect())
}

/// The names that running an item may read.
#[salsa::tracked]
fn item_reads(db: &dyn Db, item: Item) -> Arc<BTreeSet<Arc<str>>> {
    let id = item.id(db);
    home(db, id).and_then(|file| all_reads(db, file).get(&id).cloned()).unwrap_or_default()
}

/// The names that running an item may read.
pub(crate) fn reads(db: &dyn Db, id: ItemId) -> Arc<BTreeSet<Arc<str>>> {
    item_of(db, id).map_or_else(Arc::default, |item| item_reads(db, item).clone())
}

/// The definitions of a file that can call themselves, directly or through others.
#[salsa::tracked]
pub(crate) fn recursive_items(db: &dyn Db, file: File) -> Arc<BTreeSet<ItemId>> {
    let scope = scope(db, file);
    let mut calls: BTreeMap<ItemId, Vec<ItemId>> = BTreeMap::new();
    for head in all_heads(db, file) {
        let Some(item) = item_of(db, head.id) else { continue };
        let defs = item.facts(db).mentions.iter().filter_map(|name| match scope.names.get(name) {
            Some(Entity::Def(id)) => Some(*id),
            _ => None,
        });
        calls.insert(head.id, defs.collect());
    }
    Arc::new(on_circles(&calls))
}

#[salsa::tracked]
fn item_recursive(db: &dyn Db, item: Item) -> bool {
    let id = item.id(db);
    home(db, id).is_some_and(|file| recursive_items(db, file).contains(&id))
}

/// Whether a definition can call itself, directly or through others.
pub(crate) fn is_recursive(db: &dyn Db, id: ItemId) -> bool {
    item_of(db, id).is_some_and(|item| *item_recursive(db, item))
}

/// The checked form of a function at its argument types. A cycle (a function whose result type
/// is inferred calls itself) starts from "never returns" and is repeated until it is stable.
#[salsa::tracked(cycle_fn = inst_again, cycle_initial = inst_unknown)]
pub fn checked_inst<'db>(db: &'db dyn Db, key: InstKey<'db>) -> Arc<CheckedInst> {
    Arc::new(check::check_inst(db, InstRef::of(key)))
}

fn inst_unknown<'db>(db: &'db dyn Db, _: salsa::Id, key: InstKey<'db>) -> Arc<CheckedInst> {
    Arc::new(CheckedInst::unknown(key.data(db)))
}

fn inst_again<'db>(
    db: &'db dyn Db,
    cycle: &salsa::Cycle,
    last: &Arc<CheckedInst>,
    value: Arc<CheckedInst>,
    key: InstKey<'db>,
) -> Arc<CheckedInst> {
    if value.ret == Ty::Error && value.diagnostics.is_empty() && !last.diagnostics.is_empty() {
        // What was wrong is not wrong again once the result counts as reported.
        let diagnostics = last.diagnostics.clone();
        return Arc::new(CheckedInst { diagnostics, ..CheckedInst::clone(&value) });
    }
    if cycle.iteration() < 8 { value } else { Arc::new(CheckedInst::endless(db, key.data(db))) }
}

/// What is wrong with a function that nothing calls.
#[salsa::tracked]
pub fn uncalled(db: &dyn Db, item: Item, file: File) -> Arc<Vec<Diagnostic>> {
    Arc::new(crate::session::uncalled(db, item, file))
}

/// The checked module body of a file.
#[salsa::tracked]
pub fn checked_main(db: &dyn Db, file: File) -> Arc<CheckedMain> {
    Arc::new(check::check_main(db, file))
}

/// What the expressions of an instance are.
#[salsa::tracked]
fn inst_types<'db>(db: &'db dyn Db, key: InstKey<'db>) -> Arc<Types> {
    Arc::new(check::types_of_inst(db, InstRef::of(key)))
}

/// See [`inst_types`].
pub(crate) fn types_in_inst(db: &dyn Db, inst: InstRef) -> &Arc<Types> {
    inst_types(db, inst.key())
}

/// What the expressions of the statements of a module are, by their items.
#[salsa::tracked]
pub(crate) fn types_in_module(db: &dyn Db, file: File) -> Arc<BTreeMap<ItemId, Types>> {
    Arc::new(check::types_of_main(db, file))
}

/// Whether a dotted name is a built-in module.
pub(crate) fn is_builtin_module(name: &str) -> bool {
    builtins::MODULES.contains(&name) || name == "dist.collective" || name == "tessera"
}
