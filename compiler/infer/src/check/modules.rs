//! Imports, and the members of modules.

use super::cx::Cx;
use super::names::Meaning;
use crate::db::{self, Db, Entity, File, Target, is_builtin_module};
use crate::known_elsewhere;
use crate::members::{is_builtin_member, members};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tessera_base::{Code, DType, Diagnostic, Span};
use tessera_core::builtins;
use tessera_grammar::ast::{Name, Stmt, StmtKind};
use tessera_ops::surface;
use tessera_resolve::facts::Import;
use tessera_resolve::source::FileId;

/// What an import binds its name to. Errors are reported where the statement is checked.
pub fn import_entity(db: &dyn Db, file: File, import: &Import) -> Entity {
    let module = &import.module;
    match &import.member {
        None => match module_entity(db, file, module) {
            // `import a.b` binds `a`: the file, if that is imported too, or else a folder of which only `b` is known.
            Some(_) if import.path && module.contains('.') => {
                module_entity(db, file, &import.binds).unwrap_or_else(|| Entity::Module(import.binds.clone()))
            }
            Some(entity) => entity,
            None => Entity::Broken,
        },
        Some(member) => member_entity(db, file, module, member).unwrap_or(Entity::Broken),
    }
}

/// The names that a file imports and binds to something else, too, by an assignment or by another import.
pub fn import_variables(db: &dyn Db, file: File) -> BTreeSet<Arc<str>> {
    let mut imported: BTreeMap<Arc<str>, Import> = BTreeMap::new();
    let mut bound: BTreeSet<Arc<str>> = BTreeSet::new();
    let mut assigned: BTreeSet<Arc<str>> = BTreeSet::new();
    for head in file.heads(db).iter() {
        let Some(item) = db::item_of(db, head.id) else { continue };
        let facts = item.facts(db);
        assigned.extend(facts.assigned.iter().cloned());
        // `import a.b` beside `import a.c` binds `a` once.
        for import in &facts.imports {
            let other = imported.get(&import.binds).is_some_and(|i| i != import && !(i.path && import.path));
            if other {
                bound.insert(import.binds.clone());
            }
            imported.insert(import.binds.clone(), import.clone());
        }
    }
    bound.extend(assigned.into_iter().filter(|name| imported.contains_key(name)));
    bound
}

fn module_entity(db: &dyn Db, file: File, module: &Arc<str>) -> Option<Entity> {
    if is_builtin_module(module) {
        return Some(Entity::Module(module.clone()));
    }
    match file.imports(db).get(module) {
        Some(Target::File(id)) => Some(Entity::File(*id)),
        _ => None,
    }
}

fn member_entity(db: &dyn Db, file: File, module: &Arc<str>, member: &Arc<str>) -> Option<Entity> {
    let dotted: Arc<str> = format!("{module}.{member}").into();
    match module_entity(db, file, module) {
        Some(Entity::File(id)) if has_member(db, id, member) => Some(Entity::Member(id, member.clone())),
        // A file in a folder, which may have the name of a file.
        Some(Entity::File(_)) | None => match file.imports(db).get(&dotted) {
            Some(Target::File(id)) => Some(Entity::File(*id)),
            _ => None,
        },
        Some(_) if is_builtin_module(&dotted) => Some(Entity::Module(dotted)),
        Some(_) if &**module == "tessera" => module_entity(db, file, member),
        Some(_) if &**module == "std" => module_entity(db, file, &dotted),
        Some(_) => match builtins::from_std(&dotted).and_then(|f| file.imports(db).get(f)) {
            Some(Target::File(id)) if has_member(db, *id, member) => Some(Entity::Member(*id, member.clone())),
            _ => is_builtin_member(module, member).then_some(Entity::Builtin(dotted)),
        },
    }
}

/// The module that a member of a module is, if it is one: of a folder a file, or a folder inside.
pub fn submodule(db: &dyn Db, file: File, module: &Arc<str>, member: &Arc<str>) -> Option<Entity> {
    match member_entity(db, file, module, member) {
        Some(entity @ (Entity::Module(_) | Entity::File(_))) => Some(entity),
        Some(_) => None,
        None => of_folder(db, file, module, member),
    }
}

/// A file of a folder, or a folder inside.
fn of_folder(db: &dyn Db, file: File, folder: &str, member: &str) -> Option<Entity> {
    let dotted: Arc<str> = format!("{folder}.{member}").into();
    match file.imports(db).get(&dotted) {
        Some(Target::File(id)) => Some(Entity::File(*id)),
        _ if !in_folder(db, file, &dotted).is_empty() => Some(Entity::Module(dotted)),
        Some(_) => Some(Entity::Broken),
        None => None,
    }
}

/// A member that a file does not have by itself: what lies in the folder of its name, as `v` of the files `w.tsr` and `w/v.tsr`.
pub fn beside(db: &dyn Db, file: File, id: FileId, member: &str) -> Option<Entity> {
    paths_of(db, file, id).iter().find_map(|path| of_folder(db, file, path, member))
}

/// What a file imports from the folder that has the name of a file it imports.
pub fn all_beside(db: &dyn Db, file: File, id: FileId) -> BTreeSet<String> {
    paths_of(db, file, id).iter().flat_map(|path| in_folder(db, file, path)).collect()
}

/// The paths under which a file imports another one.
fn paths_of(db: &dyn Db, file: File, id: FileId) -> Vec<Arc<str>> {
    let found = file.imports(db).iter().filter(|(_, target)| **target == Target::File(id));
    found.map(|(path, _)| path.clone()).collect()
}

/// What a file imports from a folder: the files and the folders that lie there.
pub fn in_folder(db: &dyn Db, file: File, folder: &str) -> BTreeSet<String> {
    let before = file.before(db).as_ref().map(|b| b.imports.clone());
    let own = file.imports(db).clone();
    let all = own.iter().chain(before.iter().flat_map(|b| b.iter()));
    let inside = |(name, target): (&Arc<str>, &Target)| {
        let rest = name.strip_prefix(folder)?.strip_prefix('.')?;
        matches!(target, Target::File(_)).then(|| rest.split('.').next().unwrap_or(rest).to_owned())
    };
    all.filter_map(inside).collect()
}

/// Whether a file defines, assigns or imports a name.
fn has_member(db: &dyn Db, id: FileId, member: &str) -> bool {
    db::file_of(db, id).is_some_and(|f| db::in_scope(db, f, member).is_known())
}

impl Cx<'_> {
    /// Reports what is wrong with an import; its names are in the module's scope already.
    pub fn import(&mut self, stmt: &Stmt) {
        match &stmt.kind {
            StmtKind::Import { path, alias } => {
                let module = tessera_resolve::syntax::dotted_path(path);
                let span = path.iter().map(|n| n.span).reduce(|a, b| a.to(b)).unwrap_or(stmt.span);
                if self.known_module(&module, path, span)
                    && let Some(name) = alias.as_ref().or(path.first())
                {
                    self.no_variable(name);
                    self.defined_once(name);
                    if alias.is_none() {
                        self.one_meaning(path, span);
                    }
                }
            }
            StmtKind::FromImport { path, names } => {
                let module = tessera_resolve::syntax::dotted_path(path);
                let span = path.iter().map(|n| n.span).reduce(|a, b| a.to(b)).unwrap_or(stmt.span);
                let imports = self.names_of().imports(self.db);
                let folder = !matches!(imports.get(&module), Some(Target::File(_)))
                    && names
                        .iter()
                        .any(|(n, _)| matches!(imports.get(&*format!("{module}.{}", n.text)), Some(Target::File(_))));
                let submodules = &*module == "std" || &*module == "tessera" || folder;
                if !submodules && !self.known_module(&module, path, span) {
                    return;
                }
                for (name, alias) in names {
                    self.known_member(&module, name);
                    let binds = alias.as_ref().unwrap_or(name);
                    self.defined_once(binds);
                    if db::import_variables(self.db, self.file).contains(&binds.text) {
                        self.bind_member(&module, name, binds);
                    }
                }
            }
            _ => {}
        }
    }

    /// E0106 where a name that is imported is a function or struct of the file, too.
    fn defined_once(&mut self, name: &Name) {
        let heads = self.file.heads(self.db);
        if heads.iter().any(|h| h.name.as_ref() == Some(&name.text)) {
            let d = Diagnostic::new(Code::E0106, name.span, format!("the file defines `{}`, too", name.text))
                .help("import it under another name: `import … as …`");
            self.report(d);
        }
    }

    /// E0106 where a step of the path that an import binds is a name of the file before it, too.
    fn one_meaning(&mut self, path: &[Name], span: Span) {
        for (i, name) in path.iter().enumerate().skip(1) {
            let before = tessera_resolve::syntax::dotted_path(&path[..i]);
            let Some(Target::File(id)) = self.names_of().imports(self.db).get(&before).cloned() else { continue };
            if has_member(self.db, id, &name.text) {
                let member = format!("{before}.{}", name.text);
                let (file, folder) = (db::path_of(self.db, id), member.replace('.', "/"));
                let message = format!("`{member}` is a name of `{file}` and a file or folder `{folder}`, too");
                let help = format!(
                    "import it under another name: `import {} as …`",
                    tessera_resolve::syntax::dotted_path(path)
                );
                self.report(Diagnostic::new(Code::E0106, span, message).help(help));
                return;
            }
        }
    }

    /// E0106 where the name of a module is a variable of the file, too.
    fn no_variable(&mut self, name: &Name) {
        if db::import_variables(self.db, self.file).contains(&name.text) {
            let message =
                format!("`{}` is bound to something else in this file, and a module is not a value", name.text);
            let d =
                Diagnostic::new(Code::E0106, name.span, message).help("import it under another name: `import … as …`");
            self.report(d);
        }
    }

    /// An import of a name that the file binds to something else, too: from here on it is this member.
    fn bind_member(&mut self, module: &Arc<str>, member: &Name, binds: &Name) {
        let import = match &**module {
            "tessera" => Import { binds: binds.text.clone(), module: member.text.clone(), member: None, path: false },
            _ => {
                let member = Some(member.text.clone());
                Import { binds: binds.text.clone(), module: module.clone(), member, path: false }
            }
        };
        match import_entity(self.db, self.file, &import) {
            Entity::Broken => {}
            Entity::Module(_) | Entity::File(_) => self.no_variable(binds),
            entity => {
                let meaning = self.entity(&entity, member.span);
                let value = self.as_value(meaning, member.span);
                self.bind(&binds.text, value, binds.span);
            }
        }
    }

    fn known_module(&mut self, module: &Arc<str>, path: &[Name], span: Span) -> bool {
        if is_builtin_module(module) {
            return true;
        }
        let target = self.names_of().imports(self.db).get(module).cloned();
        let d = match target {
            Some(Target::File(id)) => {
                self.files.insert(id);
                return true;
            }
            Some(Target::Cycle(files)) => {
                let list: Vec<String> = files.iter().map(|f| format!("`{f}`")).collect();
                Diagnostic::new(Code::E0102, span, format!("importing `{module}` goes round in a circle"))
                    .note(format!("through {}", list.join(", ")))
                    .help("move what both files need into a third one")
            }
            _ => {
                let d = Diagnostic::new(Code::E0102, span, format!("there is no module `{module}`"));
                if let Some(help) = known_elsewhere::module(module) {
                    self.report(d.note("a program imports modules of Tessera, not of Python").help(help));
                    return false;
                }
                let alone = if path.len() == 1 { builtins::MODULES } else { &[] };
                let library: Vec<String> = builtins::LIBRARY.iter().map(|m| format!("std.{m}")).collect();
                let all = alone.iter().copied().chain(library.iter().map(String::as_str));
                d.did_you_mean(span, module, all, |d| match module.strip_prefix("std.") {
                    Some(name) => d.note(format!("the standard library has no file `{name}.tsr`")),
                    None => d.note(format!(
                        "neither a built-in module nor a file `{}.tsr` beside this one",
                        module.replace('.', "/")
                    )),
                })
            }
        };
        self.report(d);
        false
    }

    fn known_member(&mut self, module: &Arc<str>, name: &Name) {
        match member_entity(self.db, self.names_of(), module, &name.text) {
            Some(Entity::File(id)) => drop(self.files.insert(id)),
            Some(_) => {}
            None => {
                let d = self.no_member(module, &name.text, name.span);
                self.report(d);
            }
        }
    }

    /// E0102 for a member that a module does not have.
    pub fn no_member(&self, module: &str, name: &str, span: Span) -> Diagnostic {
        let word = match module {
            "tessera" | "std" => "module",
            _ => "member",
        };
        if module == "schedule" {
            return crate::members::unknown_directive(name, span);
        }
        let d = Diagnostic::new(Code::E0102, span, format!("`{module}` has no {word} `{name}`"));
        if let Some(help) = known_elsewhere::member(module, name) {
            return d.help(help);
        }
        if let Some(def) = surface::all().find(|d| module == "op" && d.known_as.contains(&name)) {
            return d.fix(format!("the operator is called `{}`", def.name), span, def.name);
        }
        let own = match self.names_of().imports(self.db).get(module) {
            Some(Target::File(id)) => self.file_names(*id),
            _ => members(module).into_iter().chain(in_folder(self.db, self.names_of(), module)).collect(),
        };
        // The same name in another module.
        let elsewhere = builtins::MODULES.iter().find(|m| **m != module && is_builtin_member(m, name));
        if let Some(m) = elsewhere.filter(|_| module != "tessera") {
            return d.help(format!("there is `{m}.{name}`"));
        }
        d.did_you_mean(span, name, own.iter().map(String::as_str), |d| match module {
            "std" | "tessera" | "op" => d,
            _ if own.is_empty() => d,
            _ if own.len() <= 24 => d.note(format!("it has {}", own.join(", "))),
            _ => d,
        })
    }

    pub fn file_names(&self, id: FileId) -> Vec<String> {
        let Some(file) = db::file_of(self.db, id) else { return vec![] };
        let scope = db::scope(self.db, file);
        scope.names.keys().chain(&scope.variables).map(|n| n.to_string()).collect()
    }

    /// A member of a module.
    pub fn module_member(&mut self, module: &Arc<str>, name: &Name) -> Meaning {
        let found = member_entity(self.db, self.names_of(), module, &name.text);
        // `foo.bar` where only `import foo.bar` was written.
        if let Some(entity) = found.or_else(|| submodule(self.db, self.names_of(), module, &name.text)) {
            return self.entity(&entity, name.span);
        }
        if &**module == "op"
            && let Some(d) = DType::parse(&name.text)
        {
            return Meaning::DType(d);
        }
        let d = self.no_member(module, &name.text, name.span);
        self.report(d);
        Meaning::Broken
    }

    /// A member of a file.
    pub fn file_member(&mut self, id: FileId, name: &Arc<str>, span: Span) -> Meaning {
        let Some(file) = db::file_of(self.db, id) else { return Meaning::Broken };
        self.files.insert(id);
        let known = self.in_scope(file, name);
        if known.variable
            && let Some(value) = self.module_variable(id, file, name, span)
        {
            return Meaning::Value(value);
        }
        if let Some(entity) = &known.entity {
            return self.entity(entity, span);
        }
        if let Some(entity) = beside(self.db, self.names_of(), id, name) {
            return self.entity(&entity, span);
        }
        let path = db::path_of(self.db, id);
        let own = self.file_names(id);
        let d = Diagnostic::new(Code::E0102, span, format!("`{path}` has no member `{name}`"));
        self.report(d.did_you_mean(span, name, own.iter().map(String::as_str), |d| d));
        Meaning::Broken
    }
}
