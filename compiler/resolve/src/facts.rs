//! What the syntax of an item says about names, without looking anything up.

use crate::source::{FETCHED, PROGRAM_FOLDER};
use crate::syntax::{Free, assigned, dotted_path, each_expr};
use std::collections::BTreeSet;
use std::sync::Arc;
use tessera_core::builtins::{MODULES, from_std};
use tessera_grammar::ast::*;

/// Names that an item mentions, binds and imports. Holds no positions, so that it comes out
/// equal after most edits.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct ItemFacts {
    /// Names that are not bound inside the item.
    pub mentions: BTreeSet<Arc<str>>,
    /// Variables that the item's statements assign (empty for definitions).
    pub assigned: BTreeSet<Arc<str>>,
    pub imports: Vec<Import>,
    /// `std.nn` where it is written out, and where a member of a built-in module comes from.
    pub std_modules: BTreeSet<Arc<str>>,
    /// The paths of models that it reads, where they are known.
    pub models: BTreeSet<Arc<str>>,
}

/// One name that an import binds.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Import {
    pub binds: Arc<str>,
    /// Dotted; without a leading `tessera.`.
    pub module: Arc<str>,
    /// `from module import member`.
    pub member: Option<Arc<str>>,
    /// `import a.b` without `as`: what is bound is the first name of the path.
    pub path: bool,
}

impl Import {
    /// The files that the import may need, by dotted name.
    pub fn files(&self) -> Vec<Arc<str>> {
        let root = self.module.split('.').next().unwrap_or("");
        match (&self.member, root) {
            (Some(member), "std") if &*self.module == "std" => vec![format!("std.{member}").into()],
            (None, "std") if &*self.module == "std" => vec![],
            (member, root) if root != "std" && is_builtin_module(root) => {
                let dotted = member.as_ref().map(|m| format!("{}.{m}", self.module));
                dotted.and_then(|d| from_std(&d)).map(Arc::from).into_iter().collect()
            }
            // `from a.b import c` where `a.b` is a folder.
            (Some(member), root) if root != "std" => {
                vec![self.module.clone(), format!("{}.{member}", self.module).into()]
            }
            _ => vec![self.module.clone()],
        }
    }
}

pub fn item_facts(stmts: &[Stmt]) -> ItemFacts {
    let mut out = ItemFacts::default();
    let definition = matches!(stmts, [Stmt { kind: StmtKind::Def(_) | StmtKind::Struct(_), .. }]);
    if !definition {
        assigned(stmts, &mut out.assigned);
        for stmt in stmts {
            imports(stmt, &mut out.imports);
        }
        // Imports bind names, but those are no variables.
        for import in &out.imports {
            out.assigned.remove(&import.binds);
        }
    }
    let mut free = Free::default();
    free.stmts(stmts);
    out.mentions = free.out;
    if definition && let [Stmt { kind: StmtKind::Def(def), .. }] = stmts {
        out.mentions.remove(&def.name.text);
        if free.recursive {
            out.mentions.insert(def.name.text.clone());
        }
    }
    let imported = |i: &&Import| takes_functions(&i.module, i.member.as_deref().unwrap_or(""));
    out.std_modules.extend(out.imports.iter().find(imported).map(|_| Arc::from(CALLS)));
    let pipeline = |i: &&Import| is_pipeline(&i.module, i.member.as_deref().unwrap_or(""));
    out.std_modules.extend(out.imports.iter().find(pipeline).map(|_| Arc::from(STAGES)));
    let profile = |i: &&Import| is_profile(&i.module, i.member.as_deref().unwrap_or(""));
    out.std_modules.extend(out.imports.iter().find(profile).map(|_| Arc::from(PROFILES)));
    each_expr(stmts, &mut |e| {
        if let ExprKind::Call { func, args } = &e.kind
            && matches!(last_name(func), Some("read_onnx" | "read_onnx_weights"))
            && let [path] = args.as_slice()
            && let Some(path) = constant_path(&path.value)
        {
            out.models.insert(path.into());
        }
        let ExprKind::Attr { base, name } = &e.kind else { return };
        let ExprKind::Name(module) = &base.kind else { return };
        if &**module == "std" {
            out.std_modules.insert(format!("std.{}", name.text).into());
        }
        out.std_modules.extend(from_std(&format!("{module}.{}", name.text)).map(Arc::from));
        if takes_functions(module, &name.text) {
            out.std_modules.insert(CALLS.into());
        }
        if is_pipeline(module, &name.text) {
            out.std_modules.insert(STAGES.into());
        }
        if is_profile(module, &name.text) {
            out.std_modules.insert(PROFILES.into());
        }
    });
    out
}

/// The file whose functions make a function of the program of an operator.
pub const CALLS: &str = "std.calls";

/// The file that pipelines are made of.
pub const STAGES: &str = "std.parallel";

/// Whether a member of a module makes pipelines; one that is imported whole may have another name.
fn is_pipeline(module: &str, member: &str) -> bool {
    module == "dist" && matches!(member, "pipeline" | "")
}

/// The file that has the profiles of functions.
pub const PROFILES: &str = "std.profile";

/// Whether a member of a module profiles functions; one that is imported whole may have another name.
fn is_profile(module: &str, member: &str) -> bool {
    module == "graph" && matches!(member, "profile" | "")
}

/// Whether a member of a module may be given an operator as a function.
fn takes_functions(module: &str, member: &str) -> bool {
    module == "autodiff"
        || (module == "op" && matches!(member, "scan" | "fori" | "cond" | "while_loop" | "map" | "associative_scan"))
}

/// `c` of `a.b.c`.
fn last_name(e: &Expr) -> Option<&str> {
    match &e.kind {
        ExprKind::Name(name) => Some(name),
        ExprKind::Attr { name, .. } => Some(&name.text),
        _ => None,
    }
}

/// A path that is known before the program runs: texts, `sys.dir`, `fetched("name")`, and sums of
/// these, as [`crate::source::Loader::model`] takes it.
pub fn constant_path(e: &Expr) -> Option<String> {
    match &e.kind {
        ExprKind::Str(text) => Some(text.replace([PROGRAM_FOLDER, FETCHED], "")),
        ExprKind::Attr { base, name } if &*name.text == "dir" && last_name(base) == Some("sys") => {
            Some(PROGRAM_FOLDER.to_string())
        }
        ExprKind::Call { func, args } if last_name(func) == Some("fetched") => match args.as_slice() {
            [Arg { value: Expr { kind: ExprKind::Str(name), .. }, .. }] => {
                Some(format!("{FETCHED}{}{FETCHED}", name.replace([PROGRAM_FOLDER, FETCHED], "")))
            }
            _ => None,
        },
        ExprKind::Binary { op: BinOp::Add, left, right, .. } => Some(constant_path(left)? + &constant_path(right)?),
        _ => None,
    }
}

fn imports(stmt: &Stmt, out: &mut Vec<Import>) {
    match &stmt.kind {
        StmtKind::Import { path, alias } => {
            let Some(first) = path.first() else { return };
            let module = dotted_path(path);
            match alias {
                Some(alias) => out.push(Import { binds: alias.text.clone(), module, member: None, path: false }),
                None => {
                    let root: Arc<str> = if &*first.text == "tessera" && path.len() > 1 {
                        path[1].text.clone()
                    } else {
                        first.text.clone()
                    };
                    // `import a.b` binds `a`; the path is kept so that the file is loaded.
                    out.push(Import { binds: root, module, member: None, path: true });
                }
            }
        }
        StmtKind::FromImport { path, names } => {
            let module = dotted_path(path);
            for (name, alias) in names {
                let binds = alias.as_ref().unwrap_or(name).text.clone();
                // `from tessera import op` names a module itself.
                let import = match &*module {
                    "tessera" => Import { binds, module: name.text.clone(), member: None, path: false },
                    _ => Import { binds, module: module.clone(), member: Some(name.text.clone()), path: false },
                };
                out.push(import);
            }
        }
        _ => {}
    }
}

/// Whether a dotted name is a built-in module.
pub fn is_builtin_module(name: &str) -> bool {
    MODULES.contains(&name) || name == "dist.collective" || name == "tessera"
}
