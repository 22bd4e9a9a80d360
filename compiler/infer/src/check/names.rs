//! What a name stands for.

use super::cx::{Cx, read};
use super::env::{Bad, Slot};
use super::types::BUILTIN_ITEM;
use crate::db::{self, Entity, File};
use crate::known_elsewhere;
use std::sync::Arc;
use tessera_base::{Code, DType, Diagnostic, ItemId, SizeVar, Span};
use tessera_core::builtins;
use tessera_core::ir::*;
use tessera_core::ty::{FnRefTy, GlobalKey, Ty};
use tessera_grammar::ast::{Expr, ExprKind};
use tessera_resolve::names::{Kind, Reference};
use tessera_resolve::source::FileId;

/// What a name or a dotted name stands for.
#[derive(Clone, Debug)]
pub enum Meaning {
    Value(TExpr),
    Def(ItemId),
    Struct(ItemId),
    Module(Arc<str>),
    File(FileId),
    /// A function or directive of a built-in module, dotted, or a function in scope everywhere.
    Builtin(Arc<str>),
    DType(DType),
    /// `Tensor`, `list`, `int`, …: names of types that are values only in `isinstance`.
    Type(&'static str),
    /// Reported already.
    Broken,
}

const TYPES: &[&str] = &["Tensor", "Mesh", "ShardSpec"];

/// Names that a misspelt one is compared with: in a file of thousands, each mistake would look at all of them.
const SEARCHED: usize = 2000;

impl Cx<'_> {
    /// The meaning of a name or dotted name; `None` for any other expression.
    pub fn meaning(&mut self, e: &Expr) -> Option<Meaning> {
        match &e.kind {
            ExprKind::Name(name) => Some(self.name(name, e.span)),
            ExprKind::Attr { base, name } => {
                // Only a base that is a name can be a module.
                if !is_dotted(base) {
                    return None;
                }
                match self.module_at(base)? {
                    Meaning::Module(module) => Some(self.module_member(&module, name)),
                    Meaning::File(id) => Some(self.file_member(id, &name.text, name.span)),
                    Meaning::Broken => Some(Meaning::Broken),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// The module that a dotted name stands for; `None` where it is a value.
    fn module_at(&mut self, e: &Expr) -> Option<Meaning> {
        match self.module_path(e)? {
            entity @ (Entity::Module(_) | Entity::File(_)) => Some(self.entity(&entity, e.span)),
            Entity::Broken => Some(Meaning::Broken),
            _ => None,
        }
    }

    /// Whether a dotted name is that of a module (or of one that could not be imported).
    pub fn is_module_path(&self, e: &Expr) -> bool {
        self.module_path(e).is_some()
    }

    fn module_path(&self, e: &Expr) -> Option<Entity> {
        let found = match &e.kind {
            ExprKind::Name(name) => {
                if self.foreign.is_none() && self.is_variable(name, e.span) {
                    return None;
                }
                self.static_name(name)?
            }
            ExprKind::Attr { base, name } => match self.module_path(base)? {
                Entity::Module(module) => super::modules::submodule(self.db, self.names_of(), &module, &name.text)?,
                Entity::File(id) => {
                    let file = db::file_of(self.db, id)?;
                    let known = self.in_scope(file, &name.text);
                    match known.is_known() {
                        true => known.entity.clone()?,
                        false => super::modules::beside(self.db, self.names_of(), id, &name.text)?,
                    }
                }
                _ => return None,
            },
            _ => return None,
        };
        matches!(found, Entity::Module(_) | Entity::File(_) | Entity::Broken).then_some(found)
    }

    /// Whose module-level names are in scope.
    pub fn names_of(&self) -> File {
        self.foreign.unwrap_or(self.file)
    }

    /// Runs `f` with only the module-level names of a file in scope.
    pub fn in_module<T>(&mut self, home: File, f: impl FnOnce(&mut Self) -> T) -> T {
        let saved = self.foreign.replace(home);
        let value = f(self);
        self.foreign = saved;
        value
    }

    /// A name that is not a variable.
    fn static_name(&self, name: &str) -> Option<Entity> {
        let known = self.in_scope(self.names_of(), name);
        if let Some(entity) = &known.entity {
            return Some(entity.clone());
        }
        if known.variable {
            return None;
        }
        (builtins::MODULES.contains(&name) || name == "tessera").then(|| Entity::Module(name.into()))
    }

    /// What binds a name in the item around it, inside of functions; `None` for what belongs to the file.
    fn own_binding(&self, name: &str, span: Span) -> Option<Kind> {
        let names = db::item_of(self.db, span.item)?.names(self.db);
        let to =
            names.use_at(span).filter(|u| *u.name == *name).map_or_else(|| names.seen_from(span.start, name), |u| u.to);
        match to {
            Reference::Local(id) => Some(names.binding(id).kind),
            Reference::Outside => None,
        }
    }

    /// Whether a name that stands there is a variable: of this body or of functions around it.
    fn is_variable(&self, name: &str, span: Span) -> bool {
        match self.own_binding(name, span) {
            Some(Kind::Size) => self.env.get(name).is_some(),
            Some(_) => true,
            None => self.is_module() && self.env.get(name).is_some(),
        }
    }

    fn module_variable_known(&self, name: &str) -> bool {
        self.in_scope(self.names_of(), name).variable
    }

    /// A name in the scope of another module, or of this one as seen from outside.
    fn module_level_name(&mut self, home: File, name: &Arc<str>, span: Span) -> Meaning {
        if self.module_variable_known(name)
            && let Some(value) = self.module_variable(home.id(self.db), home, name, span)
        {
            return Meaning::Value(value);
        }
        if let Some(entity) = &self.in_scope(home, name).entity {
            return self.entity(entity, span);
        }
        self.builtin_name(name, span)
    }

    pub fn name(&mut self, name: &Arc<str>, span: Span) -> Meaning {
        let meaning = match self.meaning_of(name, span) {
            Meaning::Value(value) => Meaning::Value(self.seen_by_rows(value)),
            other => other,
        };
        if let Meaning::Value(value) = &meaning
            && let Some(d) = self.whole_inside(&value.ty, name, span)
        {
            self.report(d);
            return Meaning::Broken;
        }
        meaning
    }

    fn meaning_of(&mut self, name: &Arc<str>, span: Span) -> Meaning {
        if let Some(home) = self.foreign {
            return self.module_level_name(home, name, span);
        }
        let own = self.own_binding(name, span);
        if (own.is_some() || self.is_module())
            && let Some(binding) = self.env.get(name).cloned()
        {
            return self.variable(name, &binding, span);
        }
        if let Some((own, ty)) = self.itself.clone()
            && own == *name
        {
            return Meaning::Value(TExpr { kind: self.own_closure(), ty, span });
        }
        if own.is_some_and(|kind| kind != Kind::Size) {
            return self.unassigned(name, span);
        }
        if let Some(value) = self.size_name(name, span) {
            return Meaning::Value(value);
        }
        if !self.is_module()
            && self.module_variable_known(name)
            && let Some(value) = self.module_variable(self.module, self.file, name, span)
        {
            return Meaning::Value(value);
        }
        if let Some(entity) = &self.in_scope(self.file, name).entity {
            return self.entity(entity, span);
        }
        if self.module_variable_known(name) {
            return self.unassigned(name, span);
        }
        self.builtin_name(name, span)
    }

    fn builtin_name(&mut self, name: &Arc<str>, span: Span) -> Meaning {
        if builtins::MODULES.contains(&&**name) || &**name == "tessera" {
            return Meaning::Module(name.clone());
        }
        if builtins::FUNCTIONS.contains(&&**name) {
            return Meaning::Builtin(name.clone());
        }
        if let Some(dtype) = DType::parse(name) {
            return Meaning::DType(dtype);
        }
        if let Some(ty) = TYPES.iter().find(|t| **t == &**name) {
            return Meaning::Type(ty);
        }
        let d = self.late_size_error(name, span).unwrap_or_else(|| self.undefined(name, span));
        self.report(d);
        Meaning::Broken
    }

    fn variable(&mut self, name: &Arc<str>, binding: &super::env::Binding, span: Span) -> Meaning {
        let d = match &binding.bad {
            None => {
                let ty = match self.is_module() {
                    true => self.as_functions_leave(self.file, name, binding.ty.clone()),
                    false => binding.ty.clone(),
                };
                return Meaning::Value(read(binding.slot, ty, span));
            }
            Some(Bad::Maybe) => Diagnostic::new(Code::E0107, span, format!("`{name}` may have no value here"))
                .with_label(binding.span, "assigned only on this path")
                .help(format!("assign `{name}` before the branch or loop")),
            Some(Bad::Conflict(other, at)) => tessera_types::unify::join_diagnostic(
                &format!("`{name}`"),
                span,
                (&binding.ty, binding.span),
                (other, *at),
            ),
        };
        let key = (name.clone(), binding.span, matches!(binding.bad, Some(Bad::Maybe)));
        if self.said.insert(key) {
            self.report(d);
        }
        // Said once: from here on it is as if it were fine.
        let var = self.env.var(name);
        self.env.set(var, Some(super::env::Binding { ty: Ty::Error, bad: None, ..binding.clone() }));
        Meaning::Broken
    }

    fn unassigned(&mut self, name: &Arc<str>, span: Span) -> Meaning {
        let d = Diagnostic::new(Code::E0107, span, format!("`{name}` is used before it has a value"));
        let d = match self.is_module() || self.own_binding(name, span).is_none() {
            true if !self.is_module() => d.note(format!("the module assigns `{name}` only after this call")),
            true => d.note("it is assigned only further down".to_string()),
            false => {
                let d = d.note("a name that a function assigns is local to it everywhere");
                match self.module_variable_known(name) {
                    true => d.help(format!("take the module's `{name}` as a parameter, or use another name")),
                    false => d,
                }
            }
        };
        // `tottal += 1` where `total` has a value.
        let bound: Vec<Arc<str>> = self.env.bound().map(|(n, _)| n.clone()).collect();
        let long = bound.iter().map(|n| &**n).filter(|_| name.chars().count() > 3).take(SEARCHED);
        let d = d.did_you_mean(span, name, long, |d| d);
        self.report(d);
        Meaning::Broken
    }

    /// E0101, with what may be meant.
    pub fn undefined(&self, name: &str, span: Span) -> Diagnostic {
        let d = Diagnostic::new(Code::E0101, span, format!("`{name}` is not defined"));
        if let Some(right) = known_elsewhere::word(name) {
            return d.fix(format!("it is spelled `{right}`"), span, right);
        }
        if let Some(help) = known_elsewhere::name(name) {
            return d.help(help);
        }
        let scope = db::scope(self.db, self.file);
        let item = db::item_of(self.db, span.item);
        let around = item.map_or_else(Vec::new, |i| i.names(self.db).visible(span.start));
        let own = around.iter().map(|b| &b.name).chain(self.env.bound().map(|(n, _)| n)).chain(self.size_names.keys());
        let of_file = scope.names.keys().chain(&scope.variables);
        let searched = own.chain(of_file).map(|n| &**n).filter(|n| *n != "_").take(SEARCHED);
        let fixed = builtins::FUNCTIONS.iter().chain(builtins::MODULES).chain(TYPES).copied();
        // One letter is as near to any other.
        let all = searched.chain(fixed).filter(|_| name.chars().count() > 1);
        // A name that a module has is nearer than any other.
        if tessera_ops::surface::find(name).is_some() && !name.contains('.') {
            return d.fix(format!("operators are in `op`: `op.{name}`"), span, format!("op.{name}"));
        }
        if let Some(m) = builtins::MODULES.iter().find(|m| crate::members::members(m).iter().any(|n| n == name)) {
            return d.fix(format!("it is in `{m}`"), span, format!("{m}.{name}"));
        }
        d.did_you_mean(span, name, all, |d| match tessera_ops::surface::suggest(name) {
            Some(op) if !op.contains('.') => {
                d.fix(format!("operators are in `op`: `op.{op}`"), span, format!("op.{op}"))
            }
            _ => d,
        })
    }

    /// A module-level variable as a function sees it.
    pub fn module_variable(&mut self, module: FileId, file: File, name: &Arc<str>, span: Span) -> Option<TExpr> {
        let module = db::module_of(self.db, module);
        if self.is_module() && module == self.module {
            let binding = self.env.get(name).cloned()?;
            let ty = self.as_functions_leave(self.file, name, binding.ty);
            return Some(read(binding.slot, ty, span));
        }
        if let Some(data) = &self.data
            && let Some(read) = data.globals.iter().find(|g| g.module == module && g.name == *name)
        {
            let (key, ty) = (read.key(), read.ty.clone());
            return Some(super::cx::read(Slot::Global(self.global_id(key)), ty, span));
        }
        // Of a file that imports this one, what a function may read came with the call.
        if module == self.module || !db::has_run_before(self.db, module, self.file) {
            return None;
        }
        let main = db::checked_main(self.db, file);
        let var = main.vars.get(name)?.clone();
        let ty = self.foreign(&var.ty);
        let ty = self.as_functions_leave(file, name, ty);
        let slot = Slot::Global(self.global_id(GlobalKey { module, name: name.clone(), ty: var.slot }));
        Some(super::cx::read(slot, if var.bad { Ty::Error } else { ty }, span))
    }

    /// A type of another body: its size variables become fresh ones here.
    pub fn foreign(&mut self, ty: &Ty) -> Ty {
        let vars: Vec<SizeVar> = tessera_core::sizes::vars_of(ty).into_iter().collect();
        let fresh: Vec<_> = vars.iter().map(|v| self.sizes.fresh_like(v)).collect();
        tessera_core::sizes::subst_ty(ty, &mut |v| vars.iter().position(|w| w == v).map(|i| fresh[i].clone()))
    }

    pub fn entity(&mut self, entity: &Entity, span: Span) -> Meaning {
        match entity {
            Entity::Def(id) => Meaning::Def(*id),
            Entity::Struct(id) => Meaning::Struct(*id),
            Entity::Module(m) => Meaning::Module(m.clone()),
            Entity::File(id) => {
                self.files.insert(*id);
                Meaning::File(*id)
            }
            Entity::Member(file, name) => self.file_member(*file, name, span),
            Entity::Builtin(name) => match builtins::CONSTANTS.iter().find(|(n, _)| *n == &**name) {
                Some((_, value)) => Meaning::Value(TExpr { kind: TKind::Float(*value), ty: Ty::Float, span }),
                None if &**name == "sys.args" => {
                    self.host("reads the program's arguments", span);
                    let ty = Ty::List(Box::new(Ty::Str));
                    Meaning::Value(super::cx::builtin(Builtin::sys_args, vec![], ty, span))
                }
                None if &**name == "sys.dir" => {
                    self.host("asks where the program is", span);
                    Meaning::Value(super::cx::builtin(Builtin::sys_dir, vec![], Ty::Str, span))
                }
                None => Meaning::Builtin(name.clone()),
            },
            Entity::Broken => Meaning::Broken,
        }
    }

    /// A meaning as a value.
    pub fn as_value(&mut self, meaning: Meaning, span: Span) -> TExpr {
        let no_value = |what: String| Diagnostic::new(Code::E0204, span, what);
        let d = match meaning {
            Meaning::Value(value) => return TExpr { span, ..value },
            Meaning::Broken => return super::cx::error_at(span),
            Meaning::DType(d) => return TExpr { kind: TKind::DType(d), ty: Ty::DType(Some(d)), span },
            Meaning::Def(item) => return self.def_value(item, span),
            // As a value it is the element type (`x.dtype == bool`, `dtype=bool`).
            Meaning::Builtin(name) if &*name == "bool" => {
                return TExpr { kind: TKind::DType(DType::Bool), ty: Ty::DType(Some(DType::Bool)), span };
            }
            Meaning::Builtin(name) => {
                if crate::members::operator(&name).is_some()
                    || builtins::find(&name).is_some()
                    || builtins::FUNCTIONS.contains(&&*name)
                {
                    let ty = FnRefTy { name, item: BUILTIN_ITEM, start: 0, captures: vec![], derived: None };
                    return TExpr { kind: TKind::Closure { captures: vec![] }, ty: Ty::FnRef(Arc::new(ty)), span };
                }
                if let Some(d) = self.unsupported(&name, span) {
                    return self.fail(d);
                }
                no_value(format!("`{name}` is not a value")).help("call it")
            }
            Meaning::Struct(id) => {
                let name = self.struct_name(id);
                no_value(format!("the struct `{name}` is a type, not a value"))
                    .help(format!("make a value with `{name}(…)`"))
            }
            Meaning::Module(name) => {
                no_value(format!("the module `{name}` is not a value")).help(format!("name a member: `{name}.…`"))
            }
            Meaning::File(id) => no_value(format!("the module `{}` is not a value", db::path_of(self.db, id))),
            Meaning::Type(name) => no_value(format!("the type `{name}` is not a value")),
        };
        self.fail(d)
    }

    /// A function as a value of its own type.
    pub fn def_value(&mut self, item: ItemId, span: Span) -> TExpr {
        let Some(sig) = db::item_of(self.db, item).and_then(|i| i.signature(self.db).clone()) else {
            return super::cx::error_at(span);
        };
        let ty = FnRefTy { name: sig.name.clone(), item: item.0, start: sig.start, captures: vec![], derived: None };
        TExpr { kind: TKind::Closure { captures: vec![] }, ty: Ty::FnRef(Arc::new(ty)), span }
    }

    /// The value of the function that is being checked, inside itself.
    fn own_closure(&self) -> TKind {
        let captures = self.data.as_ref().map_or(vec![], |d| {
            d.captures
                .iter()
                .enumerate()
                .map(|(i, (_, ty))| TExpr { kind: TKind::Local(LocalId(i as u32)), ty: ty.clone(), span: Span::NONE })
                .collect()
        });
        TKind::Closure { captures }
    }

    /// W0101 once for a name that hides a built-in module.
    pub fn warn_hidden(&mut self, name: &Arc<str>, span: Span) {
        if self.is_module() && builtins::MODULES.contains(&&**name) && self.hidden.insert(name.clone()) {
            let d = Diagnostic::new(Code::W0101, span, format!("`{name}` hides the built-in module of that name"))
                .help("use another name");
            self.report(d);
        }
    }

    /// Whether it is a variable of this module.
    fn is_own(&self, id: GlobalId) -> bool {
        self.global_key(id).module == self.module
    }

    /// The slot that a name is bound to, if it is a variable that can be changed here.
    pub fn changeable(&mut self, name: &Arc<str>, span: Span) -> Option<(TRoot, Ty)> {
        if let Some(binding) = self.env.get(name).cloned() {
            if self.func.as_ref().is_some_and(|f| f.captured.contains(name)) {
                let d = Diagnostic::new(Code::E0302, span, format!("`{name}` is captured and cannot be changed here"))
                    .note("a function keeps the value that a captured name had; a change inside would be lost")
                    .help("return the new value");
                self.report(d);
                return None;
            }
            return match self.variable(name, &binding, span) {
                Meaning::Value(_) => Some((root(binding.slot), binding.ty)),
                _ => None,
            };
        }
        match self.name(name, span) {
            Meaning::Value(TExpr { kind: TKind::Global(id), .. }) if !self.is_own(id) => {
                let text = format!("`{name}` is a variable of another module, and cannot be changed from here");
                self.error(Code::E0302, span, text);
                None
            }
            Meaning::Value(TExpr { kind: TKind::Global(id), ty, .. }) => {
                self.host(format!("changes the module's `{name}`"), span);
                Some((TRoot::Global(id), ty))
            }
            Meaning::Broken => None,
            _ => {
                self.error(Code::E0302, span, format!("`{name}` cannot be changed"));
                None
            }
        }
    }
}

pub fn root(slot: Slot) -> TRoot {
    match slot {
        Slot::Local(id) => TRoot::Local(id),
        Slot::Global(id) => TRoot::Global(id),
    }
}

/// `a.b.c`
pub fn is_dotted(e: &Expr) -> bool {
    match &e.kind {
        ExprKind::Name(_) => true,
        ExprKind::Attr { base, .. } => is_dotted(base),
        _ => false,
    }
}
