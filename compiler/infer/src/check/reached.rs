//! What a program consists of: the instances and module bodies that its module body reaches, with the numbers that the
//! program gives them.
//!
//! Bodies number what they call by themselves; a program numbers its functions and variables in an order that its text alone
//! decides. The inputs of a prompt are one program that grows, so they go on with the numbers of those before.

use super::{Called, CheckedInst, CheckedMain, InstData, Request, Tables, limits};
use crate::db::{self, Db, File, InstRef};
use indexmap::IndexSet;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use tessera_base::{Diagnostic, Span};
use tessera_core::ir::{FnInst, GlobalId, InstId};
use tessera_core::renumber::{self, renumber};
use tessera_core::ty::GlobalKey;
use tessera_resolve::source::FileId;

/// A function of a program.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Function {
    Inst(Arc<InstData>),
    /// The body of a module.
    Module(FileId),
}

/// The numbers of functions and of variables of modules. They are given once.
#[derive(Clone, Default, Debug)]
pub struct Numbers {
    pub functions: IndexSet<Function>,
    pub globals: IndexSet<GlobalKey>,
}

impl Numbers {
    pub fn function(&mut self, f: Function) -> InstId {
        InstId(self.functions.insert_full(f).0 as u32)
    }

    pub fn global(&self, key: &GlobalKey) -> Option<GlobalId> {
        self.globals.get_index_of(key).map(|n| GlobalId(n as u32))
    }
}

/// An instance of a program.
pub struct Inst<'db> {
    pub checked: &'db Arc<CheckedInst>,
    pub data: &'db Arc<InstData>,
    /// The program's numbers of what it calls.
    pub callees: Vec<InstId>,
}

/// A module body of a program.
pub struct Main<'db> {
    pub file: File,
    pub checked: &'db Arc<CheckedMain>,
    pub callees: Vec<InstId>,
}

pub type Insts<'db> = BTreeMap<InstId, Inst<'db>>;

impl<'db> Inst<'db> {
    /// What it calls, by the program's numbers.
    pub fn requests(&self) -> impl Iterator<Item = Request> + use<'_, 'db> {
        of_program(&self.checked.requests, &self.callees)
    }
}

impl<'db> Main<'db> {
    /// See [`Inst::requests`].
    pub fn requests(&self) -> impl Iterator<Item = Request> + use<'_, 'db> {
        of_program(&self.checked.requests, &self.callees)
    }
}

fn of_program<'a>(requests: &'a [Request], callees: &'a [InstId]) -> impl Iterator<Item = Request> + use<'a> {
    requests.iter().map(|r| Request { inst: callees[r.inst.0 as usize], ..r.clone() })
}

/// Everything that a module reaches.
pub struct Reached<'db> {
    db: &'db dyn Db,
    pub numbers: Numbers,
    known: HashMap<InstRef, InstId>,
    pub insts: Insts<'db>,
    /// Module bodies in the order in which they run.
    pub mains: Vec<Main<'db>>,
    pub seen: BTreeSet<FileId>,
    /// The call at which the program became too large.
    pub too_many: Option<Diagnostic>,
    /// A call of what was given up. Whoever gave it up has said so: this is for a program of which nothing else is wrong.
    pub given_up: Option<Diagnostic>,
}

impl<'db> Reached<'db> {
    /// `seen`: modules that have run already.
    pub fn new(db: &'db dyn Db, numbers: Numbers, seen: BTreeSet<FileId>) -> Reached<'db> {
        let (insts, known) = (Insts::new(), HashMap::new());
        Reached { db, numbers, known, insts, mains: vec![], seen, too_many: None, given_up: None }
    }

    /// A module after the modules that it uses.
    pub fn module(&mut self, file: File) {
        let db = self.db;
        if !self.seen.insert(file.id(db)) {
            return;
        }
        let checked = db::checked_main(db, file);
        let callees = self.number(&checked.tables);
        let mut files: BTreeSet<FileId> = checked.files.iter().copied().collect();
        let called = |r: &Request| (checked.tables.callees[r.inst.0 as usize].inst, r.span);
        files.extend(self.reach(checked.requests.iter().map(called).collect()));
        self.modules(files);
        self.mains.push(Main { file, checked, callees });
    }

    /// An instance that is asked for without a call, with all that it calls.
    pub fn ask(&mut self, data: &Arc<InstData>, span: Span) -> InstId {
        let inst = db::inst_ref(self.db, data);
        let number = match self.known.get(&inst) {
            Some(number) => *number,
            None => {
                let number = self.numbers.function(Function::Inst(data.clone()));
                self.known.insert(inst, number);
                number
            }
        };
        let files = self.reach(vec![(inst, span)]);
        self.modules(files);
        number
    }

    /// Instances that have numbers, with all that they call; gives the files whose bodies these need.
    fn reach(&mut self, mut work: Vec<(InstRef, Span)>) -> BTreeSet<FileId> {
        let (db, mut files) = (self.db, BTreeSet::new());
        while let Some((inst, span)) = work.pop() {
            let Some(number) = self.known.get(&inst).copied().filter(|n| !self.insts.contains_key(n)) else { continue };
            let Some(checked) = limits::known(db, inst) else {
                self.given_up.get_or_insert_with(|| limits::too_many("this", span));
                continue;
            };
            let data = db::inst_data(db, inst);
            if self.insts.len() >= limits::INSTANCES_MAX {
                self.too_many.get_or_insert_with(|| limits::too_many(&format!("`{}`", checked.inst.name), span));
                break;
            }
            let callees = self.number(&checked.tables);
            self.insts.insert(number, Inst { checked, data, callees });
            files.extend(checked.files.iter().copied());
            work.extend(checked.requests.iter().map(|r| (checked.tables.callees[r.inst.0 as usize].inst, r.span)));
        }
        files
    }

    fn modules(&mut self, files: BTreeSet<FileId>) {
        let db = self.db;
        // Numbers of files tell which was read first.
        let mut files: Vec<File> = files.into_iter().filter_map(|id| db::file_of(db, id)).collect();
        files.sort_by_key(|f| f.path(db).clone());
        for used in files {
            self.module(used);
        }
    }

    /// Numbers what a body calls: a function that was checked before the body behind those that it calls itself.
    fn number(&mut self, tables: &Tables) -> Vec<InstId> {
        self.numbers.globals.extend(tables.globals.iter().cloned());
        let mut work: Vec<(Called, bool)> = tables.callees.iter().rev().map(|c| (*c, false)).collect();
        let mut met = BTreeSet::new();
        while let Some((callee, below)) = work.pop() {
            if self.known.contains_key(&callee.inst) {
                continue;
            }
            if callee.first && !below && met.insert(callee.inst) {
                work.push((callee, true));
                let behind = limits::known(self.db, callee.inst).map(|checked| &checked.tables.callees);
                work.extend(behind.into_iter().flatten().rev().map(|c| (*c, false)));
                continue;
            }
            if below || !met.contains(&callee.inst) {
                let data = db::inst_data(self.db, callee.inst).clone();
                let number = self.numbers.function(Function::Inst(data));
                self.known.insert(callee.inst, number);
            }
        }
        tables.callees.iter().map(|c| self.known[&c.inst]).collect()
    }

    /// A function with the numbers of the program.
    pub fn renumbered(&self, f: &FnInst, tables: &Tables, callees: &[InstId]) -> FnInst {
        let mut f = f.clone();
        let globals: Vec<GlobalId> = self.globals(tables);
        renumber(&mut f, renumber::Numbers { insts: callees, globals: &globals });
        f
    }

    /// The program's numbers of a body's variables.
    pub fn globals(&self, tables: &Tables) -> Vec<GlobalId> {
        let number = |key: &GlobalKey| match self.numbers.global(key) {
            Some(id) => id,
            None => tessera_base::bug!("`{}` is a variable of a body, and not of its program", key.name),
        };
        tables.globals.iter().map(number).collect()
    }
}
