//! Checking whole programs, and inputs one after the other at a prompt.

use crate::careless::{Imports, ItemText, Written};
use crate::check::consequences::told;
use crate::check::cx::Cx;
use crate::check::fns;
use crate::check::global_mutation::Held;
use crate::check::numerics::Numerics;
use crate::check::reached::{Function, Inst, Main, Numbers, Reached};
use crate::check::{self, CheckedInst};
use crate::db::{self, Before, Database, Db, Entity, File, InstRef, Item, ItemKind, Prompt, Target};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tessera_base::{Code, Diagnostic, ItemId, Label, Span, bug};
use tessera_core::ir::*;
use tessera_core::ty::{GlobalKey, Ty};
use tessera_resolve::names::Reference;
use tessera_resolve::source::{FileId, Loader, SourceMap};

/// What checking gives.
#[derive(Clone, Debug)]
pub struct Checked {
    /// Without errors only.
    pub program: Option<Program>,
    /// In the order of the text.
    pub diagnostics: Vec<Diagnostic>,
    pub sources: SourceMap,
    /// At a prompt: the type of the input's last expression, and the variable that holds it.
    pub last: Option<Last>,
    /// What the program compares when it runs, because only data knows it, in the order of the text: where,
    /// and in words. The standard library is left out.
    pub kept: Vec<(Span, Arc<str>)>,
}

/// The value of the last expression of an input.
#[derive(Clone, Debug)]
pub struct Last {
    pub ty: Ty,
    /// `None` where there is nothing to keep.
    pub global: Option<GlobalId>,
}

/// The stack on which programs are checked: see [`check::cx::HEIGHT_MAX`].
const STACK_BYTES: usize = 1 << 30;

/// Runs `f` with a stack that is deep enough for any program.
pub(crate) fn deep<T: Send>(f: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("check".into()).stack_size(STACK_BYTES);
        match thread.spawn_scoped(scope, f) {
            Ok(handle) => match handle.join() {
                Ok(value) => value,
                Err(panic) => std::panic::resume_unwind(panic),
            },
            // No memory for a stack: nothing can be checked.
            Err(error) => std::panic::resume_unwind(Box::new(error.to_string())),
        }
    })
}

/// Checks a text with everything that it imports. A file of this path that the database
/// holds already gets the text; what did not change in it is not checked again.
pub fn check_text(db: &mut Database, path: &str, text: &str, loader: &dyn Loader) -> Checked {
    let id = db.file_at(path).unwrap_or_else(|| db.add_file(path));
    db.set_text(id, text);
    db.load_imports(id, loader);
    check_program(db, id)
}

/// Checks a file with everything that it imports. Imports are loaded by the caller
/// ([`Database::load_imports`]).
pub fn check_program(db: &Database, root: FileId) -> Checked {
    let snapshot = db.clone();
    deep(move || run(&snapshot, root, &Past::default(), Numbers::default(), true).0)
}

/// The diagnostics alone: the typed program is not put together.
pub fn check_only(db: &Database, root: FileId) -> Checked {
    let snapshot = db.clone();
    deep(move || run(&snapshot, root, &Past::default(), Numbers::default(), false).0)
}

/// [`check_text`] without the typed program.
pub fn check_text_only(db: &mut Database, path: &str, text: &str, loader: &dyn Loader) -> Checked {
    let id = db.file_at(path).unwrap_or_else(|| db.add_file(path));
    db.set_text(id, text);
    db.load_imports(id, loader);
    check_only(db, id)
}

/// Fewer queries are done before a thread has started.
const WORTH: usize = 64;

/// Runs queries that do not depend on each other on all cores; their results wait in the database.
pub(crate) fn warm<T: Sync>(db: &Database, keys: &[T], query: impl Fn(&Database, &T) + Sync) {
    if keys.len() >= 2 * WORTH {
        on_cores(keys, || db.clone(), |db, key| query(db, key));
    }
}

/// What `f` gives for each key, in their order, on all cores where there are enough keys; `state` is made for each thread.
pub(crate) fn on_cores<T: Sync, S: Send, R: Send>(
    keys: &[T],
    state: impl Fn() -> S,
    f: impl Fn(&S, &T) -> R + Sync,
) -> Vec<R> {
    const STEP: usize = 16;
    let cores = tessera_abi::cores().min(keys.len() / WORTH);
    let next = AtomicUsize::new(0);
    let work = |state: S| {
        let mut out = vec![];
        loop {
            let at = next.fetch_add(STEP, Ordering::Relaxed);
            let Some(rest) = keys.get(at..).filter(|rest| !rest.is_empty()) else { return out };
            out.push((at, rest.iter().take(STEP).map(|key| f(&state, key)).collect::<Vec<R>>()));
        }
    };
    if cores < 2 {
        return work(state()).into_iter().flat_map(|(_, done)| done).collect();
    }
    let mut parts: Vec<(usize, Vec<R>)> = std::thread::scope(|scope| {
        let start = |_| {
            let (state, work) = (state(), &work);
            let thread = std::thread::Builder::new().name("check".into()).stack_size(STACK_BYTES);
            thread.spawn_scoped(scope, move || work(state)).ok()
        };
        // Where a thread cannot be had, the others do its part, and this one where there are none.
        let threads: Vec<_> = (0..cores).filter_map(start).collect();
        let joined = threads.into_iter().map(|t| t.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        joined.flatten().collect()
    });
    parts.extend(work(state()));
    parts.sort_by_key(|(at, _)| *at);
    parts.into_iter().flat_map(|(_, done)| done).collect()
}

fn run<'db>(db: &'db Database, root: FileId, past: &Past, numbers: Numbers, whole: bool) -> (Checked, Reached<'db>) {
    if let Some(file) = db::file_of(db, root) {
        warm_insts(db, file);
    }
    let mut reached = Reached::new(db, numbers, past.ran.clone());
    if let Some(file) = db::file_of(db, root) {
        reached.module(file);
    }
    let mut pass = Assembly { db, reached, asked: None, diagnostics: vec![] };
    let checked = pass.finish(root, &past.held, whole);
    (checked, pass.reached)
}

/// Checks on all cores the functions that a module has checked for themselves, the first time.
///
/// What is said of functions that call each other may depend on which of them is met first, so one thread keeps that order:
/// there is nothing to do for a program where such functions leave a type open, and for functions that read variables, which
/// may hold functions.
fn warm_insts(db: &Database, file: File) {
    if db.checked.swap(true, Ordering::Relaxed) {
        return;
    }
    let main = db::checked_main(db, file);
    let own = main.requests.iter().map(|r| main.tables.callees[r.inst.0 as usize]).filter(|called| !called.first);
    let keys: Vec<InstRef> =
        own.map(|called| called.inst).filter(|inst| db::inst_data(db, *inst).globals.is_empty()).collect();
    let open = |id: &ItemId| {
        let all =
            |sig: &tessera_resolve::functions::FnSig| sig.ret.is_some() && sig.params.iter().all(|p| p.ty.is_some());
        !fns::find_sig_of_item(db, *id).is_some_and(|sig| all(&sig))
    };
    if keys.len() < 2 * WORTH || db.files.iter().any(|file| db::recursive_items(db, *file).iter().any(open)) {
        return;
    }
    warm(db, &keys, |db, inst| check::limits::ahead(db, *inst));
}

/// Checks a file with everything that it imports, and with an instance that someone asks for at `span`; gives its number.
pub(crate) fn run_asking(db: &Database, root: FileId, data: &Arc<check::InstData>, span: Span) -> (Checked, InstId) {
    let past = Past::default();
    let mut reached = Reached::new(db, Numbers::default(), past.ran.clone());
    if let Some(file) = db::file_of(db, root) {
        reached.module(file);
    }
    let inst = reached.ask(data, span);
    let asked = Some(check::Request { inst, span, graph: false });
    let mut pass = Assembly { db, reached, asked, diagnostics: vec![] };
    (pass.finish(root, &past.held, true), inst)
}

/// What there is to say of a program, and the program.
struct Assembly<'db> {
    db: &'db Database,
    reached: Reached<'db>,
    /// An instance that is asked for without a call.
    asked: Option<check::Request>,
    diagnostics: Vec<Diagnostic>,
}

/// What careless code of a file is told: inputs of a prompt and the library are left alone. This is asked after each edit, so
/// items bring what they say by themselves, and a file that imports and draws nothing is not read.
fn careless(db: &dyn Db, file: File, root: bool) -> Vec<Diagnostic> {
    if file.library(db) || file.prompt(db).is_some() || file.before(db).is_some() {
        return vec![];
    }
    let items: Vec<Item> = file.heads(db).iter().filter_map(|h| db::item_of(db, h.id)).collect();
    let mut out: Vec<Diagnostic> = items.iter().flat_map(|i| i.careless(db).iter().cloned()).collect();
    let draws = items.iter().any(|i| i.facts(db).mentions.contains("random"));
    let imports = root && items.iter().any(|i| !i.facts(db).imports.is_empty());
    if !draws && !imports {
        return out;
    }
    let imports = imports.then(|| Imports {
        read: items.iter().map(|i| &i.facts(db).mentions).collect(),
        twice: db::import_variables(db, file).clone(),
        only_names: |module| module == "std" || module.starts_with("std.") || db::is_builtin_module(module),
    });
    let random = draws && {
        let known = db::in_scope(db, file, "random");
        !known.variable && known.entity.is_none_or(|e| matches!(e, Entity::Module(m) if &*m == "random"))
    };
    let text = |i: Item| ItemText { text: i.text(db), stmts: &i.syntax(db).stmts, names: i.names(db) };
    out.extend(crate::careless::of_file(&Written { items: items.into_iter().map(text).collect(), imports, random }));
    out
}

impl Assembly<'_> {
    fn finish(&mut self, root: FileId, held: &[Held], whole: bool) -> Checked {
        let db: &dyn Db = self.db;
        let called: BTreeSet<ItemId> = self.reached.insts.values().map(|i| i.data.item).collect();
        if !whole {
            let uncalled = |main: &Main| -> Vec<(Item, File)> {
                let heads = main.file.heads(db);
                let defs = heads.iter().filter(|h| h.kind == ItemKind::Def && !called.contains(&h.id));
                defs.filter_map(|h| Some((db::item_of(db, h.id)?, main.file))).collect()
            };
            let keys: Vec<(Item, File)> = self.reached.mains.iter().flat_map(uncalled).collect();
            warm(self.db, &keys, |db, (item, file)| {
                db::uncalled(db, *item, *file);
            });
        }
        for main in &self.reached.mains {
            self.diagnostics.extend(main.file.diagnostics(db).iter().cloned());
            for head in main.file.heads(db).iter() {
                let Some(item) = db::item_of(db, head.id) else { continue };
                self.diagnostics.extend(item.syntax(db).diagnostics.iter().cloned());
                if head.kind == ItemKind::Def && !called.contains(&head.id) {
                    self.diagnostics.extend(db::uncalled(db, item, main.file).iter().cloned());
                }
            }
            self.diagnostics.extend(main.checked.diagnostics.iter().cloned());
        }
        self.diagnostics.extend(self.reached.too_many.take());
        self.instance_diagnostics();
        self.host_in_graph();
        self.host_in_kernels();
        let later = check::global_mutation::disagreements(db, &self.reached.insts, &self.reached.mains, held);
        self.diagnostics.extend(later);
        if !self.diagnostics.iter().any(Diagnostic::is_error) {
            self.diagnostics.extend(self.reached.given_up.take());
            let careless = self.reached.mains.iter().flat_map(|m| careless(db, m.file, m.file.id(db) == root));
            self.diagnostics.extend(careless);
        }
        let sources = self.db.source_map();
        let text = |item| db::item_of(db, item).map_or("", |i| &**i.text(db));
        let mut diagnostics = told(std::mem::take(&mut self.diagnostics), text, &sources);
        let errors = diagnostics.iter().any(Diagnostic::is_error);
        let mains = &self.reached.mains;
        let of_insts = self.reached.insts.values().map(|i| i.checked.untyped);
        let untyped = mains.iter().map(|m| m.checked.untyped).chain(of_insts).flatten().next();
        if let (false, Some(span)) = (errors, untyped) {
            // Never go on with a program of which a part was given up without a word.
            diagnostics.push(
                Diagnostic::new(Code::E0999, span, "this expression could not be typed, and no rule says why")
                    .note("this is a fault of the compiler"),
            );
        }
        let errors = diagnostics.iter().any(Diagnostic::is_error);
        let last = mains.iter().find(|m| m.file.id(db) == root).and_then(|main| {
            let m = main.checked;
            let slot = m.vars.get("_").map(|var| &var.slot);
            let kept = match m.inst.body.last() {
                Some(TStmt::SetGlobal(id, _)) => Some(&m.tables.globals[id.0 as usize])
                    .filter(|key| &*key.name == "_" && Some(&key.ty) == slot)
                    .and_then(|key| self.reached.numbers.global(key)),
                _ => None,
            };
            m.last.clone().map(|ty| Last { ty, global: kept })
        });
        let insts = mains.iter().map(|m| &m.checked.inst).chain(self.reached.insts.values().map(|c| &c.checked.inst));
        let mut kept: Vec<(Span, Arc<str>)> = insts.flat_map(|f| f.kept.iter().cloned()).collect();
        kept.retain(|(span, _)| !span.is_none() && !db::in_library(db, span.item));
        // Numbers of items say when a text came, not where it stands.
        kept.sort_by_key(|(span, what)| (sources.locate(*span).map(|(f, r)| (f, r.start, r.end)), what.clone()));
        kept.dedup();
        let program = (whole && !errors).then(|| self.program(root));
        Checked { program, diagnostics, sources, last, kept }
    }

    /// Errors in an annotated function stand where they are; those in a template at the call
    /// that leads to it, with the line inside as a label. Each mistake is said once.
    fn instance_diagnostics(&mut self) {
        let db: &dyn Db = self.db;
        let mut said: BTreeSet<(tessera_base::Code, Span, Option<Span>)> = BTreeSet::new();
        // Breadth first from code that is checked for itself, so that the nearest call is named.
        let mut queue: std::collections::VecDeque<(InstId, Call)> = Default::default();
        for main in &self.reached.mains {
            queue.extend(main.requests().map(|r| (r.inst, Call::at(&r))));
        }
        queue.extend(self.asked.iter().map(|r| (r.inst, Call::at(r))));
        let mut seen: BTreeSet<InstId> = BTreeSet::new();
        // Calls of the standard library that something was said about: the first error counts there.
        let mut answered: BTreeSet<Span> = BTreeSet::new();
        let mut found: Vec<Diagnostic> = vec![];
        while let Some((id, call)) = queue.pop_front() {
            if !seen.insert(id) {
                continue;
            }
            let Some(reached) = self.reached.insts.get(&id) else { continue };
            let (inst, data) = (reached.checked, reached.data);
            let library = db::in_library(db, data.item);
            let endless = if inst.open { CheckedInst::no_end(db, data) } else { None };
            for d in inst.diagnostics.iter().chain(&endless) {
                // Advice is for the numbers of a call.
                let advised = (d.code == tessera_base::Code::W0102).then_some(call.span);
                // Sizes that differ for the sizes of a call differ for some of all.
                let said_of_all = tessera_base::Code::E0212;
                let code = if d.code == said_of_all { tessera_base::Code::E0202 } else { d.code };
                if !said.insert((code, d.span, advised)) {
                    continue;
                }
                if library && d.is_error() && !answered.insert(call.span) {
                    continue;
                }
                let template = inst.template && !is_lambda(db, data);
                let lambda = inst.template && !template;
                // What is said of a directive does not depend on the call, nor whether a statement has an effect, nor what two names
                // or axes are.
                let class = &d.code.name()[1..3];
                let directive = class == "05" && d.code != tessera_base::Code::E0505;
                let for_itself = directive
                    || [tessera_base::Code::W0106, tessera_base::Code::W0111, tessera_base::Code::W0112]
                        .contains(&d.code);
                found.push(match (template || lambda) && !for_itself {
                    true if call.span.item != d.span.item || template => self.at_call(d, &call),
                    _ => d.clone(),
                });
            }
            for r in reached.requests() {
                // Inside a template the place that counts is the call from outside.
                let kept = inst.template || library;
                let shown = !db::in_library(db, r.span.item);
                queue.push_back((r.inst, if kept { call.through(&r, shown) } else { Call::at(&r) }));
            }
        }
        self.diagnostics.extend(found);
    }

    /// An error inside a template, seen from its call, with the calls on the way.
    fn at_call(&self, d: &Diagnostic, call: &Call) -> Diagnostic {
        let mut out = d.clone();
        let text = |callee: InstId| format!("in this call of `{}`", self.name_of(callee));
        (out.span, out.label) = (call.span, text(call.callee));
        let on_the_way = call.inner.iter().filter(|(span, _)| *span != call.span && *span != d.span);
        let mut labels: Vec<Label> = on_the_way.map(|&(span, callee)| Label { span, text: text(callee) }).collect();
        let here = if d.label.is_empty() { "here".to_owned() } else { d.label.clone() };
        labels.push(Label { span: d.span, text: here });
        labels.append(&mut out.labels);
        out.labels = labels;
        match self.circle(call) {
            Some(name) => out
                .note(format!(
                    "`{name}` calls itself, and is checked anew for each list of argument types: here they grow with each call"
                ))
                .help(format!("annotate the parameters and the result of `{name}`")),
            None => out,
        }
    }

    /// The template that has called itself all the way.
    fn circle(&self, call: &Call) -> Option<Arc<str>> {
        let item = |id: InstId| self.reached.insts.get(&id).map(|i| i.data.item);
        let own = item(call.callee)?;
        let all = call.inner.iter().all(|(_, callee)| item(*callee) == Some(own));
        (call.inner.len() == CALLS_TOLD && all).then(|| self.name_of(call.callee))
    }

    fn name_of(&self, id: InstId) -> Arc<str> {
        self.reached.insts.get(&id).map_or_else(|| "?".into(), |c| c.checked.inst.name.clone())
    }

    /// E0301 for every host function that a loop of the graph would have to run.
    fn host_in_graph(&mut self) {
        let mains = self.reached.mains.iter().flat_map(|m| m.requests());
        let insts = self.reached.insts.values().flat_map(|i| i.requests());
        let needs: Vec<check::Request> = mains.chain(insts).filter(|r| r.graph).collect();
        if needs.is_empty() {
            return;
        }
        let effects = effects(&self.reached.insts);
        for need in needs {
            if let (Some(Effect::Host { why, span, by_data: false }), Some(callee)) =
                (effects.get(&need.inst), self.reached.insts.get(&need.inst))
            {
                let message = format!("`{}` is not a graph function: {why}", callee.checked.inst.name);
                let d = Diagnostic::new(Code::E0301, need.span, message).with_label(*span, "because of this");
                let help =
                    "what is called here only computes tensors: do the rest before or behind it, or in a `for` loop";
                self.diagnostics.push(d.help(help));
            }
        }
    }

    /// E0503 for every kernel that does more than compute tensors.
    fn host_in_kernels(&mut self) {
        if !self.reached.insts.values().any(|c| c.checked.inst.kernel) {
            return;
        }
        let effects = effects(&self.reached.insts);
        for (id, Inst { checked, .. }) in &self.reached.insts {
            if let (true, Some(Effect::Host { why, span, .. })) = (checked.inst.kernel, effects.get(id)) {
                let name = &checked.inst.name;
                let message = format!("the kernel `{name}` does more than compute tensors: it {why}");
                let d = Diagnostic::new(tessera_base::Code::E0503, *span, message)
                    .with_label(checked.inst.span, "this is a kernel")
                    .help("move it to the caller");
                self.diagnostics.push(d);
            }
        }
    }

    fn program(&mut self, root: FileId) -> Program {
        let db: &dyn Db = self.db;
        let effects = effects(&self.reached.insts);
        // Module bodies have numbers of their own, so that no number means two functions.
        let files: Vec<FileId> = self.reached.mains.iter().map(|m| m.file.id(db)).collect();
        let mains: Vec<InstId> = files.iter().map(|id| self.reached.numbers.function(Function::Module(*id))).collect();
        let reached = &self.reached;
        // What inputs before this one called has its number still.
        let unused = || check::bodies::empty_inst("unused".into(), Span::NONE);
        let mut insts: Vec<FnInst> = reached.numbers.functions.iter().map(|_| unused()).collect();
        for (id, inst) in &reached.insts {
            let f = reached.renumbered(&inst.checked.inst, &inst.checked.tables, &inst.callees);
            let Some(effect) = effects.get(id) else { bug!("`{}` has no effect", f.name) };
            insts[id.0 as usize] = FnInst { effect: effect.clone(), ..f };
        }
        let mut entry = check::bodies::empty_inst("main".into(), Span::NONE);
        entry.policy = self.db.policy();
        let mut entry_id = None;
        for (main, id) in reached.mains.iter().zip(mains) {
            let f = reached.renumbered(&main.checked.inst, &main.checked.tables, &main.callees);
            if main.file.id(db) == root {
                let mut body = std::mem::take(&mut entry.body);
                entry = f;
                body.append(&mut entry.body);
                entry.body = body;
                entry_id = Some(id);
                continue;
            }
            let span = self.import_of(main.file.id(db)).unwrap_or(f.span);
            insts[id.0 as usize] = FnInst { name: db::path_of(db, main.file.id(db)), ..f };
            let kind = TKind::Call { inst: id, callee: None, args: vec![] };
            entry.body.push(TStmt::Expr(TExpr { kind, ty: Ty::None, span }));
        }
        // Of a file that ran at an input before only what it changed since runs.
        let entry_id = match entry_id {
            Some(id) => {
                insts[id.0 as usize] = entry;
                id
            }
            None => {
                insts.push(entry);
                InstId(insts.len() as u32 - 1)
            }
        };
        Program { insts, globals: self.globals(), entry: Some(entry_id) }
    }

    /// The statement that imports a file: that of the program itself, if it has one.
    fn import_of(&self, wanted: FileId) -> Option<Span> {
        let db: &dyn Db = self.db;
        self.reached.mains.iter().rev().find_map(|Main { file, .. }| {
            let names = |name: &Arc<str>| file.imports(db).get(name) == Some(&Target::File(wanted));
            file.heads(db).iter().find_map(|head| {
                let item = db::item_of(db, head.id)?;
                let facts = item.facts(db);
                let found = facts.imports.iter().any(|i| i.files().iter().any(names));
                let stmt = item.syntax(db).stmts.first().filter(|_| found)?;
                Some(stmt.span)
            })
        })
    }

    fn globals(&self) -> Vec<Variable> {
        let reached = &self.reached;
        let of_key = |k: &GlobalKey| {
            let (name, ty) = (k.name.clone(), k.ty.clone());
            check::zonk::known_variable(Variable { name, ty, span: Span::NONE, compares: false })
        };
        let mut out: Vec<Variable> = reached.numbers.globals.iter().map(of_key).collect();
        for main in &reached.mains {
            let numbers = reached.globals(&main.checked.tables);
            for (id, variable) in &main.checked.globals {
                out[numbers[id.0 as usize].0 as usize] = variable.clone();
            }
        }
        out
    }
}

/// What each function does; one that calls a host function is one, and the reason is that of the callee nearest.
pub(crate) fn effects(insts: &BTreeMap<InstId, Inst>) -> BTreeMap<InstId, Effect> {
    let mut out: BTreeMap<InstId, Effect> = insts.iter().map(|(id, c)| (*id, c.checked.inst.effect.clone())).collect();
    let mut callers: BTreeMap<InstId, Vec<(InstId, Span)>> = BTreeMap::new();
    for (id, inst) in insts {
        for r in inst.requests() {
            callers.entry(r.inst).or_default().push((*id, r.span));
        }
    }
    let mut work: std::collections::VecDeque<InstId> =
        out.iter().filter(|(_, e)| **e != Effect::Graph).map(|(id, _)| *id).collect();
    while let Some(id) = work.pop_front() {
        let name = insts.get(&id).map_or_else(|| "?".into(), |c| c.checked.inst.name.clone());
        let Some(Effect::Host { by_data, .. }) = out.get(&id).cloned() else { continue };
        for (caller, span) in callers.get(&id).into_iter().flatten() {
            let is_more = match out.get(caller) {
                Some(Effect::Graph) => true,
                Some(Effect::Host { by_data: so_far, .. }) => *so_far && !by_data,
                None => false,
            };
            if is_more {
                let why = format!("calls `{name}`, which is a host function").into();
                out.insert(*caller, Effect::Host { why, span: *span, by_data });
                work.push_back(*caller);
            }
        }
    }
    out
}

fn is_lambda(db: &dyn Db, data: &check::InstData) -> bool {
    check::fns::find_sig(db, data.item, data.start).is_some_and(|s| s.lambda)
}

/// Calls inside templates that an error names, the innermost ones.
const CALLS_TOLD: usize = 6;

/// A call in code that is checked for itself, and the calls of templates by templates that follow.
#[derive(Clone)]
struct Call {
    span: Span,
    callee: InstId,
    /// From the outside in.
    inner: Vec<(Span, InstId)>,
}

impl Call {
    fn at(r: &check::Request) -> Call {
        Call { span: r.span, callee: r.inst, inner: vec![] }
    }

    /// One call further; those inside the standard library are not shown.
    fn through(&self, r: &check::Request, shown: bool) -> Call {
        let mut call = self.clone();
        if shown {
            if call.inner.len() == CALLS_TOLD {
                call.inner.remove(0);
            }
            call.inner.push((r.span, r.inst));
        }
        call
    }
}

/// Inputs one after the other, each of which sees what those before defined.
#[derive(Default)]
pub struct Session {
    db: Database,
    prompt: Option<Prompt>,
    now: Past,
    /// What was there before the last input that was accepted.
    back: Past,
    /// What has a number keeps it, as values that the program holds go by it.
    numbers: Numbers,
    count: usize,
}

/// What the accepted inputs left.
#[derive(Clone, Default)]
struct Past {
    before: Option<Arc<Before>>,
    /// Module bodies that have run.
    ran: BTreeSet<FileId>,
    /// What functions read that were made values of function types.
    held: Vec<Held>,
}

/// A variable that the next input can read.
#[derive(Clone, Debug)]
pub struct Visible {
    pub name: Arc<str>,
    pub id: GlobalId,
    pub ty: Ty,
}

impl Session {
    pub fn new() -> Session {
        Session::default()
    }

    pub fn database(&self) -> &Database {
        &self.db
    }

    /// Checks one more input. Its entry runs only what is new: imported modules that no input
    /// before imported, then the input itself. Ids of globals and instances stay the same; an
    /// input with errors leaves no trace.
    pub fn check_more(&mut self, text: &str, loader: &dyn Loader) -> Checked {
        self.count += 1;
        let path = format!("<input {}>", self.count);
        self.check_part(&path, text, 0..text.len(), loader)
    }

    /// Checks whole lines of a text as an input of its own; diagnostics show the whole text.
    pub fn check_part(&mut self, path: &str, text: &str, part: Range<usize>, loader: &dyn Loader) -> Checked {
        let id = self.add(path, text, part, loader);
        let (db, now, numbers) = (self.db.clone(), self.now.clone(), self.numbers.clone());
        let (mut checked, past) = deep(move || {
            let (checked, reached) = run(&db, id, &now, numbers, true);
            let past = checked.program.is_some().then(|| past(&db, id, now, reached)).flatten();
            (checked, past)
        });
        match past {
            Some((past, numbers)) => {
                self.back = std::mem::replace(&mut self.now, past);
                self.numbers = numbers;
            }
            None => checked.last = None,
        }
        checked
    }

    fn add(&mut self, path: &str, text: &str, part: Range<usize>, loader: &dyn Loader) -> FileId {
        let id = self.db.add_input(path, &mut self.prompt, self.now.before.clone());
        let blank = |c: char, n: usize| if c == '\n' { "\n".to_owned() } else { " ".repeat(n) };
        let masked: String = text
            .char_indices()
            .map(|(i, c)| if part.contains(&i) { c.to_string() } else { blank(c, c.len_utf8()) })
            .collect();
        self.db.set_text(id, &masked);
        self.db.show_text(id, text);
        // A module that was edited since runs again, whatever becomes of this input.
        let edited = self.db.load_imports(id, loader);
        self.now.ran.retain(|file| !edited.contains(file));
        self.back.ran.retain(|file| !edited.contains(file));
        id
    }

    /// Forgets the last input that was accepted: it did not run to its end. Cannot be done twice
    /// in a row.
    pub fn undo(&mut self) {
        self.now = self.back.clone();
    }

    /// The type of an expression as the next input would see it.
    pub fn type_of(&mut self, text: &str, loader: &dyn Loader) -> Result<Ty, Vec<Diagnostic>> {
        let id = self.add("<type>", text, 0..text.len(), loader);
        let (db, now, numbers) = (self.db.clone(), self.now.clone(), self.numbers.clone());
        let checked = deep(move || run(&db, id, &now, numbers, false).0);
        match checked.last {
            Some(last) if !checked.diagnostics.iter().any(Diagnostic::is_error) => Ok(last.ty),
            _ => Err(checked.diagnostics),
        }
    }

    /// The variables that the next input can read, by name.
    pub fn variables(&self) -> Vec<Visible> {
        let of_input = |b: &Before| -> Vec<Visible> {
            let visible = |(name, v): (&Arc<str>, &check::ModuleVar)| {
                let key = GlobalKey { module: b.module, name: name.clone(), ty: v.slot.clone() };
                let id = self.numbers.global(&key).filter(|_| !v.bad)?;
                Some(Visible { name: name.clone(), id, ty: v.ty.clone() })
            };
            b.main.vars.iter().filter_map(visible).collect()
        };
        self.now.before.as_deref().map(of_input).unwrap_or_default()
    }

    /// The first line of a function or struct, without its colon.
    pub fn head(&self, id: ItemId) -> Option<String> {
        let item = db::item_of(&self.db, id)?;
        let span = match item.signature(&self.db) {
            Some(sig) => sig.head,
            None => item.struct_def(&self.db).as_ref()?.name.span,
        };
        let text = item.text(&self.db).get(span.start as usize..span.end as usize)?;
        Some(text.split_whitespace().collect::<Vec<_>>().join(" ").trim_end_matches(':').to_owned())
    }

    /// The functions, structs, modules and other names that the next input can use, sorted.
    pub fn names(&self) -> Vec<(Arc<str>, Entity)> {
        let scope = self.now.before.iter().flat_map(|b| &b.scope.names);
        scope.map(|(name, entity)| (name.clone(), entity.clone())).collect()
    }
}

/// What there is after an input, for the next.
fn past(db: &Database, root: FileId, now: Past, reached: Reached) -> Option<(Past, Numbers)> {
    let file = db::file_of(db, root)?;
    let heads = now.before.iter().flat_map(|b| b.heads.iter()).chain(file.heads(db).iter()).cloned().collect();
    let main = db::checked_main(db, file);
    let before = Before {
        module: db::module_of(db, root),
        scope: db::scope(db, file).clone(),
        heads,
        imports: file.imports(db).clone(),
        main: Arc::new(main.without_calls()),
    };
    let mut held = now.held;
    held.extend(check::global_mutation::held(db, &reached.insts));
    Some((Past { before: Some(Arc::new(before)), ran: reached.seen, held }, reached.numbers))
}

/// The names that a function which nothing calls gets wrong; its types depend on calls.
pub(crate) fn uncalled(db: &dyn Db, item: db::Item, file: File) -> Vec<Diagnostic> {
    let mut cx = Cx::new(db, file, db::module_of(db, file.id(db)), 0, Numerics::default());
    cx.item_scope = Some(db::item_scope(db, item));
    let Some(sig) = check::fns::find_sig_of_item(db, item.id(db)) else { return vec![] };
    // What is wrong with types of its signature is said with them.
    let types: Vec<Span> = sig.params.iter().filter_map(|p| p.ty.as_ref()).chain(&sig.ret).map(|t| t.span).collect();
    let typed = |at: Span| types.iter().any(|t| t.start <= at.start && at.end <= t.end);
    for used in &item.names(db).uses {
        if used.to == Reference::Outside && !typed(used.span) && !cx.in_scope(file, &used.name).is_known() {
            cx.in_module(file, |cx| drop(cx.name(&used.name, used.span)));
        }
    }
    cx.diagnostics
}
