//! The names in type annotations, and the types of signatures.

use super::closures::OF_TYPE;
use super::constants::AsSize;
use super::cx::Cx;
use super::names::Meaning;
use crate::db::{self, Entity};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tessera_base::{Diagnostic, ItemId, Size, SizeVar, Span};
use tessera_core::ty::Ty;
use tessera_grammar::ast::{Expr, ExprKind, ParamKind};
use tessera_resolve::functions::FnSig;
use tessera_types::annot::{self, AnnotNames, GenericArg, NameMeaning};
use tessera_types::unify::{is_open, leaves_mesh};

/// What a capitalised name that is not bound becomes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unbound {
    /// A size variable of a signature.
    Rigid,
    /// A size that data decides.
    Data,
    Refuse,
}

/// The scope of one annotation.
pub struct AnnotScope<'a, 'db> {
    pub cx: &'a mut Cx<'db>,
    /// Names of the signature or struct itself.
    pub own: BTreeMap<Arc<str>, NameMeaning>,
    pub unbound: Unbound,
    /// Size variables made here, in order.
    pub made: Vec<(Arc<str>, SizeVar)>,
    /// Whether the variables of the body in `cx` are in scope.
    pub inside: bool,
    /// Whose module-level names are in scope.
    pub home: db::File,
    /// The definition whose signature it belongs to: there only constants of the file are sizes.
    pub definition: Option<ItemId>,
    /// Constants that it names, with where they are bound.
    pub constants: Vec<(Arc<str>, i64, Span)>,
    /// Sizes that have the name of a variable: where they are written, and where that is bound.
    pub namesakes: Vec<(Arc<str>, Span, Span)>,
    /// What it takes from the body around.
    pub outer: Outer,
}

/// What the signature of a nested function takes from the body around: it keeps that, as all that it uses there.
#[derive(Clone, Debug, Default)]
pub struct Outer {
    pub names: BTreeSet<Arc<str>>,
    /// Sizes that are computed (`len(xs)`), by [`AnnotScope::written`].
    pub sizes: BTreeMap<Arc<str>, Size>,
}

impl AnnotScope<'_, '_> {
    fn module_name(&mut self, name: &Arc<str>, span: Span) -> NameMeaning {
        let db = self.cx.db;
        let known = self.cx.in_scope(self.home, name);
        if known.variable {
            if let Some(definition) = self.definition {
                let meaning = self.cx.as_size(self.home, name, definition, span);
                if let Some(meaning) = self.size_meaning(name, meaning, span) {
                    return meaning;
                }
            }
            let module = db::module_of(db, self.home.id(db));
            if let Some(value) = self.cx.module_variable(module, self.home, name, span) {
                return value_meaning(&value.ty);
            }
        }
        match &known.entity {
            Some(entity) => self.entity(name, entity, span),
            None => NameMeaning::Unbound,
        }
    }

    /// What an imported or defined name of the file stands for.
    fn entity(&mut self, own: &Arc<str>, entity: &Entity, span: Span) -> NameMeaning {
        match entity {
            Entity::Struct(id) => self.struct_meaning(*id),
            Entity::Def(_) | Entity::Builtin(_) => NameMeaning::Value("a function".into()),
            Entity::Module(_) | Entity::File(_) => NameMeaning::Value("a module".into()),
            Entity::Broken => NameMeaning::Type(Ty::Error),
            Entity::Member(file, name) => match self.cx.file_member(*file, name, span) {
                Meaning::Struct(id) => self.struct_meaning(id),
                Meaning::Value(value) => {
                    if let Some(definition) = self.definition {
                        let place = (definition, span);
                        let meaning = self.cx.imported_as_size(self.home, own, &value.ty, place);
                        if let Some(meaning) = self.size_meaning(own, meaning, span) {
                            return meaning;
                        }
                    }
                    value_meaning(&value.ty)
                }
                Meaning::Broken => NameMeaning::Type(Ty::Error),
                _ => NameMeaning::Value("a function".into()),
            },
        }
    }

    /// What a variable of a file is in a signature; `None` where it is no int.
    fn size_meaning(&mut self, name: &Arc<str>, meaning: AsSize, span: Span) -> Option<NameMeaning> {
        match meaning {
            AsSize::Constant(n, at) => {
                if self.constants.iter().all(|c| c.0 != *name) {
                    self.constants.push((name.clone(), n, at));
                }
                Some(NameMeaning::Size(Size::constant(n)))
            }
            AsSize::Variable(at) if name.starts_with(char::is_uppercase) => {
                if self.namesakes.iter().all(|c| c.0 != *name) {
                    self.namesakes.push((name.clone(), span, at));
                }
                Some(NameMeaning::Unbound)
            }
            AsSize::Variable(_) => Some(NameMeaning::Value("a variable that is no constant of the file".into())),
            AsSize::Other => None,
        }
    }

    fn struct_meaning(&mut self, id: ItemId) -> NameMeaning {
        let Some(def) = self.cx.struct_def(id) else { return NameMeaning::Type(Ty::Error) };
        if !def.generics.is_empty() {
            return NameMeaning::Struct { params: def.generics.len() };
        }
        match self.cx.struct_type(id, &BTreeMap::new()) {
            Ok(ty) => NameMeaning::Type(ty),
            Err(d) => {
                // What is wrong in another struct is reported there.
                if self.cx.struct_stack.first() == Some(&id) {
                    self.cx.report(d);
                }
                NameMeaning::Type(Ty::Error)
            }
        }
    }

    /// The name under which a nested function keeps a size that its signature computes: no name of a program has a space.
    fn written(&self, expr: &Expr) -> Option<Arc<str>> {
        let item = db::item_of(self.cx.db, expr.span.item)?;
        let text = item.text(self.cx.db).get(expr.span.start as usize..expr.span.end as usize)?;
        Some(format!("{text}{OF_TYPE}").into())
    }

    /// The struct that a name or dotted name stands for.
    pub fn find_struct(&mut self, name: &str, span: Span) -> Option<ItemId> {
        let mut parts = name.split('.');
        let first: Arc<str> = parts.next()?.into();
        let own = &*first == "std" || tessera_core::builtins::from_std(name).is_some();
        let mut entity = self
            .cx
            .in_scope(self.home, &first)
            .entity
            .clone()
            .or_else(|| own.then(|| Entity::Module(first.clone())))?;
        for part in parts {
            let part = tessera_grammar::ast::Name { text: part.into(), span };
            let meaning = match entity {
                Entity::File(id) => self.cx.file_member(id, &part.text, span),
                Entity::Module(m) => self.cx.module_member(&m, &part),
                _ => return None,
            };
            entity = match meaning {
                Meaning::Struct(id) => Entity::Struct(id),
                Meaning::File(id) => Entity::File(id),
                Meaning::Module(m) => Entity::Module(m),
                _ => return None,
            };
        }
        match entity {
            Entity::Struct(id) => Some(id),
            Entity::Member(file, name) => match self.cx.file_member(file, &name, span) {
                Meaning::Struct(id) => Some(id),
                _ => None,
            },
            _ => None,
        }
    }
}

fn value_meaning(ty: &Ty) -> NameMeaning {
    match ty {
        Ty::Int(Some(n)) => NameMeaning::Size(n.clone()),
        Ty::DType(Some(d)) => NameMeaning::DType(*d),
        Ty::Error => NameMeaning::Type(Ty::Error),
        Ty::Int(None) => NameMeaning::Value("an int whose value is not known before the program runs".into()),
        other => NameMeaning::Value(format!("a value of type `{other}`")),
    }
}

impl AnnotNames for AnnotScope<'_, '_> {
    fn name(&mut self, name: &str, span: Span) -> NameMeaning {
        if let Some(meaning) = self.own.get(name) {
            return meaning.clone();
        }
        if name.contains('.') {
            return match self.find_struct(name, span) {
                Some(id) => self.struct_meaning(id),
                None => NameMeaning::Unbound,
            };
        }
        let name: Arc<str> = name.into();
        if self.inside {
            if let Some(binding) = self.cx.env.get(&name) {
                return if binding.bad.is_some() {
                    NameMeaning::Type(Ty::Error)
                } else {
                    self.outer.names.insert(name);
                    value_meaning(&binding.ty.clone())
                };
            }
            if let Some(size) = self.cx.size_names.get(&name) {
                self.outer.names.insert(name);
                return NameMeaning::Size(size.clone());
            }
        }
        self.module_name(&name, span)
    }

    fn unbound_size(&mut self, name: &str, _: Span) -> Option<Size> {
        if !name.starts_with(char::is_uppercase) || self.unbound == Unbound::Refuse {
            return None;
        }
        let var = match self.unbound {
            Unbound::Rigid => self.cx.sizes.rigid_var(name),
            _ => {
                let saved = self.cx.sizes.binding.take();
                let var = self.cx.sizes.fresh_var(name);
                self.cx.sizes.binding = saved;
                var
            }
        };
        let name: Arc<str> = name.into();
        self.made.push((name.clone(), var.clone()));
        self.own.insert(name, NameMeaning::Size(Size::var(var.clone())));
        Some(Size::var(var))
    }

    fn apply_struct(&mut self, name: &str, args: Vec<(GenericArg, Span)>, span: Span) -> Result<Ty, Diagnostic> {
        let Some(id) = self.find_struct(name, span) else { return Ok(Ty::Error) };
        self.cx.apply_struct(id, args, span)
    }

    fn other_size(&mut self, expr: &Expr) -> Option<Result<Size, Diagnostic>> {
        let written = self.written(expr);
        if let Some(NameMeaning::Size(size)) = written.as_ref().and_then(|name| self.own.get(name)) {
            return Some(Ok(size.clone()));
        }
        if !self.inside || !matches!(expr.kind, ExprKind::Attr { .. } | ExprKind::Index { .. } | ExprKind::Call { .. })
        {
            return None;
        }
        // The expression itself is not run where its symbolic value says all.
        let (stmts, value) = self.cx.block(|cx| cx.expr(expr));
        let size = match value.ty.clone() {
            Ty::Int(Some(n)) if self.cx.nameless(&n) => self.cx.kept_size(stmts, value, n),
            Ty::Int(Some(n)) => n,
            Ty::Int(None) => {
                let n = self.cx.sizes.fresh_int("n");
                self.cx.kept_size(stmts, value, n)
            }
            Ty::Error => return Some(Ok(self.cx.sizes.fresh("n"))),
            _ => return None,
        };
        self.outer.sizes.extend(written.map(|name| (name, size.clone())));
        Some(Ok(size))
    }

    fn type_names(&self) -> Vec<Arc<str>> {
        let scope = db::scope(self.cx.db, self.home);
        scope.names.iter().filter(|(_, e)| matches!(e, Entity::Struct(_))).map(|(n, _)| n.clone()).collect()
    }
}

/// The types of a signature.
#[derive(Clone, Debug, Default)]
pub struct SigTypes {
    pub params: Vec<Option<Ty>>,
    pub ret: Option<Ty>,
    /// Its size variables in the order in which they are made, first those of int parameters.
    pub vars: Vec<SizeVar>,
    pub names: BTreeMap<Arc<str>, Size>,
    /// Constants of the file that it names, with where they are bound.
    pub constants: Vec<(Arc<str>, i64, Span)>,
    /// Its sizes that have the name of a variable of the file.
    pub namesakes: Vec<(Arc<str>, Span, Span)>,
    /// What it takes from the body around.
    pub outer: Outer,
    pub diagnostics: Vec<Diagnostic>,
}

impl SigTypes {
    /// Whether the function is checked once at its annotations.
    pub fn closed(&self, sig: &FnSig) -> bool {
        !sig.lambda
            && self.params.iter().all(|p| p.as_ref().is_some_and(|t| !is_open(t)))
            && sig.params.iter().all(|p| p.kind != ParamKind::Rest)
            && !self.ret.as_ref().is_some_and(leaves_mesh)
    }
}

impl<'db> Cx<'db> {
    /// The types of a signature, with fresh rigid size variables. `captures`: what the function has of the body around.
    pub fn signature(&mut self, sig: &FnSig, item: ItemId, captures: &[(Arc<str>, Ty)]) -> SigTypes {
        let captured = captures.iter().map(|(name, ty)| (name.clone(), value_meaning(ty))).collect();
        self.signature_in(sig, item, captured, false)
    }

    /// The types of the signature of a function or lambda of this body, whose names it may use.
    pub fn inner_signature(&mut self, sig: &FnSig, item: ItemId) -> SigTypes {
        self.signature_in(sig, item, BTreeMap::new(), true)
    }

    fn signature_in(
        &mut self,
        sig: &FnSig,
        item: ItemId,
        mut own: BTreeMap<Arc<str>, NameMeaning>,
        inside: bool,
    ) -> SigTypes {
        let home = db::home(self.db, item).unwrap_or(self.file);
        let mut out = SigTypes::default();
        let mut ints = vec![];
        // Int parameters can be sizes in the other annotations.
        for p in &sig.params {
            if p.ty.as_ref().is_some_and(|t| matches!(&t.kind, ExprKind::Name(n) if &**n == "int")) {
                let var = self.sizes.rigid_int(&p.name.text);
                own.insert(p.name.text.clone(), NameMeaning::Size(Size::var(var.clone())));
                ints.push(var.clone());
                out.vars.push(var);
            }
        }
        let mut scope = AnnotScope {
            cx: self,
            own,
            unbound: Unbound::Rigid,
            made: vec![],
            inside,
            home,
            definition: Some(item),
            constants: vec![],
            namesakes: vec![],
            outer: Outer::default(),
        };
        let mut ints = ints.into_iter();
        sig.params.iter().filter_map(|p| p.ty.as_ref()).for_each(|t| scope.open_parameters(t));
        for p in &sig.params {
            let ty = p.ty.as_ref().map(|t| match annot::resolve(t, &mut scope) {
                Ok(Ty::Int(_)) if matches!(&t.kind, ExprKind::Name(n) if &**n == "int") => {
                    Ty::Int(ints.next().map(Size::var))
                }
                Ok(ty) => ty,
                Err(d) => {
                    out.diagnostics.push(d);
                    Ty::Error
                }
            });
            out.params.push(ty);
        }
        let made = std::mem::take(&mut scope.made);
        scope.unbound = Unbound::Data;
        out.ret = sig.ret.as_ref().map(|t| {
            annot::resolve(t, &mut scope).unwrap_or_else(|d| {
                out.diagnostics.push(d);
                Ty::Error
            })
        });
        out.constants = std::mem::take(&mut scope.constants);
        out.namesakes = std::mem::take(&mut scope.namesakes);
        out.outer = std::mem::take(&mut scope.outer);
        for (name, var) in made {
            out.names.insert(name, Size::var(var.clone()));
            out.vars.push(var);
        }
        out
    }

    /// The type of an annotation in this body, and the sizes that it makes.
    pub fn annotation(&mut self, e: &Expr) -> (Ty, Vec<(Arc<str>, SizeVar)>) {
        let home = self.file;
        let mut scope = AnnotScope {
            cx: self,
            own: BTreeMap::new(),
            unbound: Unbound::Data,
            made: vec![],
            inside: true,
            home,
            definition: None,
            constants: vec![],
            namesakes: vec![],
            outer: Outer::default(),
        };
        let result = annot::resolve(e, &mut scope);
        let made = scope.made;
        match result {
            Ok(ty) => (ty, made),
            Err(d) => {
                self.report(d);
                (Ty::Error, made)
            }
        }
    }
}
