//! What a name in a text stands for.

use crate::analysis::{Analysis, Place};
use crate::path::{Spot, dotted, spot, touches};
use std::sync::Arc;
use tessera_base::{DType, FileId, ItemId, Span};
use tessera_core::builtins;
use tessera_core::ty::{StructTy, Ty};
use tessera_grammar::ast::*;
use tessera_infer::check::modules;
use tessera_infer::check::types::BUILTIN_ITEM;
use tessera_infer::db::{Entity, Item, ItemKind, Target};
use tessera_ops::surface;
use tessera_resolve::names::{BindingId, Kind, Reference};

/// What a name stands for. Two names stand for the same thing if these are equal.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Symbol {
    /// Bound inside of an item.
    Local {
        item: ItemId,
        binding: BindingId,
    },
    /// A function at the top of a file.
    Def(ItemId),
    Struct(ItemId),
    /// A field of the struct that the item defines.
    Field(ItemId, Arc<str>),
    /// A variable of a file.
    Variable(FileId, Arc<str>),
    File(FileId),
    /// A built-in module: `op`, `dist.collective`.
    Module(Arc<str>),
    /// What is built in: `print`, `f32`, `op.softmax`, `math.pi`.
    Builtin(Arc<str>),
    /// An attribute or method of tensors: `shape`, `reshape`.
    OfTensor(Arc<str>),
    /// A method of a host value: `str.split`, `list.append`.
    Method(Arc<str>),
}

/// Attributes and methods of tensors that are no operators.
pub fn attributes() -> impl Iterator<Item = &'static str> {
    builtins::CALLS.iter().filter_map(|c| c.name.strip_prefix("Tensor."))
}

/// Names of types that annotations apply.
pub const TYPES: &[&str] = &["Tensor", "list", "dict", "tuple", "int", "float", "bool", "str"];

impl Analysis<'_> {
    /// What stands at a byte of a file, or ends there, and where its name lies.
    pub fn symbol_at(&self, file: FileId, byte: usize) -> Option<(Place, Symbol)> {
        let (item, at) = self.item_at(file, byte)?;
        let (span, symbol) = self.in_item(item, at)?;
        Some((self.place(span)?, symbol))
    }

    fn in_item(&self, item: Item, at: u32) -> Option<(Span, Symbol)> {
        let id = item.id(self.db);
        let syntax = item.syntax(self.db);
        let names = item.names(self.db);
        if let Some(spot) = spot(&syntax.stmts, at) {
            let symbol = self.of_spot(item, spot);
            // `as` names of an import are bound: they stand for what is imported.
            let bound = self.bound(item, at);
            let span = bound.as_ref().map_or(spot.name().span, |(span, _)| *span);
            return symbol.map(|s| (span, s)).or(bound);
        }
        let read = names.uses.iter().find(|u| touches(u.span, at));
        let found = self.bound(item, at).or_else(|| {
            let read = read?;
            let symbol = match read.to {
                Reference::Local(binding) => self.local(item, binding)?,
                Reference::Outside => self.top(item.file(self.db), &read.name)?,
            };
            Some((read.span, symbol))
        });
        found.map(|(span, symbol)| (Span { item: id, ..span }, symbol))
    }

    /// What is bound at a position.
    fn bound(&self, item: Item, at: u32) -> Option<(Span, Symbol)> {
        let names = item.names(self.db);
        let (i, span) = names.bindings.iter().enumerate().find_map(|(i, b)| {
            let span = b.places.iter().find(|s| touches(**s, at))?;
            Some((i, *span))
        })?;
        Some((span, self.local(item, BindingId(i as u32))?))
    }

    /// What a binding of an item stands for, seen from the whole program.
    pub fn local(&self, item: Item, binding: BindingId) -> Option<Symbol> {
        let (names, id, file) = (item.names(self.db), item.id(self.db), item.file(self.db));
        let b = names.binding(binding);
        if !names.is_of_file(binding) {
            // A size has the meaning that the file gives its name, if it does.
            let meant = if b.kind == Kind::Size { self.defined(file, &b.name) } else { None };
            return Some(meant.unwrap_or(Symbol::Local { item: id, binding }));
        }
        match b.kind {
            Kind::Function => Some(Symbol::Def(id)),
            Kind::Struct => Some(Symbol::Struct(id)),
            // An annotation at the top of a file names a size for all that follows.
            Kind::Size => Some(Symbol::Variable(file, b.name.clone())),
            _ => self.top(file, &b.name),
        }
    }

    /// What a file says that one of its names is.
    fn defined(&self, file: FileId, name: &str) -> Option<Symbol> {
        match self.entity(file, name) {
            Some(Entity::Def(id)) => Some(Symbol::Def(id)),
            Some(Entity::Struct(id)) => Some(Symbol::Struct(id)),
            Some(Entity::Module(m)) => Some(Symbol::Module(m)),
            Some(Entity::File(id)) => Some(Symbol::File(id)),
            Some(Entity::Member(of, name)) => Some(Symbol::Variable(of, name)),
            Some(Entity::Builtin(name)) => Some(Symbol::Builtin(name)),
            Some(Entity::Broken) => None,
            None if self.scope(file)?.variables.contains(name) => Some(Symbol::Variable(file, name.into())),
            None => None,
        }
    }

    /// What a name is at the top of a file.
    pub fn top(&self, file: FileId, name: &str) -> Option<Symbol> {
        if self.scope(file).is_some_and(|s| s.names.contains_key(name) || s.variables.contains(name)) {
            return self.defined(file, name);
        }
        if builtins::MODULES.contains(&name) {
            return Some(Symbol::Module(name.into()));
        }
        if name.starts_with(char::is_uppercase) && self.bound_in_file(file, name).is_some() {
            return Some(Symbol::Variable(file, name.into()));
        }
        let known = builtins::FUNCTIONS.contains(&name) || TYPES.contains(&name) || DType::parse(name).is_some();
        known.then(|| Symbol::Builtin(name.into()))
    }

    /// What a name is that stands at a position of an item.
    pub fn name_seen(&self, item: Item, at: u32, name: &str) -> Option<Symbol> {
        match item.names(self.db).seen_from(at, name) {
            Reference::Local(binding) => self.local(item, binding),
            Reference::Outside => self.top(item.file(self.db), name),
        }
    }

    /// What `a.b.c` is at a position of an item.
    pub fn path_seen(&self, item: Item, at: u32, path: &[&str]) -> Option<Symbol> {
        let (first, rest) = path.split_first()?;
        let mut symbol = self.name_seen(item, at, first)?;
        for name in rest {
            symbol = self.member(item, &symbol, name, &self.types_of(&symbol))?;
        }
        Some(symbol)
    }

    /// What a member is: of a module by its name, of a value by the types that it may have.
    pub fn member(&self, item: Item, of: &Symbol, name: &str, types: &[Ty]) -> Option<Symbol> {
        match of {
            Symbol::File(id) => self.of_file(item.file(self.db), *id, name),
            Symbol::Module(module) => self.of_module(item.file(self.db), module, name),
            _ => of_value(types, name),
        }
    }

    /// What a file says that a member of another one is.
    pub fn of_file(&self, file: FileId, of: FileId, name: &str) -> Option<Symbol> {
        let own = self.scope(of).is_some_and(|s| s.names.contains_key(name) || s.variables.contains(name));
        let beside = if own { None } else { modules::beside(self.db, self.file(file)?, of, name) };
        match beside {
            Some(Entity::Module(m)) => Some(Symbol::Module(m)),
            Some(Entity::File(id)) => Some(Symbol::File(id)),
            _ => self.top(of, name),
        }
    }

    fn of_module(&self, file: FileId, module: &Arc<str>, name: &str) -> Option<Symbol> {
        let (of, name): (_, Arc<str>) = (self.file(file)?, name.into());
        match modules::submodule(self.db, of, module, &name) {
            Some(Entity::Module(m)) => return Some(Symbol::Module(m)),
            Some(Entity::File(id)) => return Some(Symbol::File(id)),
            _ => {}
        }
        let dotted = format!("{module}.{name}");
        if let Some(from) = builtins::from_std(&dotted)
            && let Some(Target::File(id)) = of.imports(self.db).get(from)
        {
            return self.top(*id, &name);
        }
        tessera_infer::members::members(module).contains(&name.to_string()).then(|| Symbol::Builtin(dotted.into()))
    }

    fn of_spot(&self, item: Item, spot: Spot) -> Option<Symbol> {
        let file = item.file(self.db);
        match spot {
            Spot::Member { base, name } => {
                if let Some(path) = dotted(base)
                    && let Some(of) = self.path_seen(item, base.span.start, &path)
                    && let Some(found) = self.member(item, &of, &name.text, &self.types_here(item, base))
                {
                    return Some(found);
                }
                of_value(&self.types_here(item, base), &name.text)
            }
            Spot::Keyword { func, name } => {
                let path = dotted(func);
                let named = path.and_then(|path| self.path_seen(item, func.span.start, &path));
                let of_name = match named {
                    Some(Symbol::Def(id)) => self.parameter(id, None, &name.text),
                    Some(Symbol::Struct(id)) => self.field(id, &name.text),
                    Some(Symbol::Local { item: id, binding }) => {
                        let names = self.item(id)?.names(self.db);
                        self.parameter(id, names.binding(binding).places.first().map(|p| p.start), &name.text)
                    }
                    _ => None,
                };
                of_name.or_else(|| {
                    let (id, start) = function_of(&self.types_here(item, func))?;
                    self.parameter(id, Some(start), &name.text)
                })
            }
            Spot::Module { path, .. } => self.module(file, path),
            Spot::Imported { path, name } => match self.module(file, path)? {
                Symbol::File(id) => self.of_file(file, id, &name.text),
                Symbol::Module(m) if &*m == "tessera" => self.top(file, &name.text),
                Symbol::Module(m) => self.of_module(file, &m, &name.text),
                _ => None,
            },
            Spot::Field { name } => self.field(item.id(self.db), &name.text),
        }
    }

    /// What the path of an import names.
    fn module(&self, file: FileId, path: &[Name]) -> Option<Symbol> {
        let dotted = tessera_resolve::syntax::dotted_path(path);
        if &*dotted == "std" {
            return Some(Symbol::Module(dotted));
        }
        match self.file(file)?.imports(self.db).get(&dotted) {
            Some(Target::File(id)) => Some(Symbol::File(*id)),
            _ => {
                let of = self.file(file)?;
                let known = !tessera_infer::members::members(&dotted).is_empty()
                    || !modules::in_folder(self.db, of, &dotted).is_empty();
                known.then(|| Symbol::Module(dotted.clone()))
            }
        }
    }

    /// A parameter of a function of an item: of the one that is bound there, or of the outermost.
    fn parameter(&self, id: ItemId, start: Option<u32>, name: &str) -> Option<Symbol> {
        let item = self.item(id)?;
        let names = item.names(self.db);
        let sig = match start {
            None => item.signature(self.db).clone()?,
            Some(start) => item.functions(self.db).get(&start)?.sig.clone(),
        };
        let place = sig.params.iter().find(|p| *p.name.text == *name)?.name.span;
        Some(Symbol::Local { item: id, binding: names.bound_around(place.start)? })
    }

    fn field(&self, id: ItemId, name: &str) -> Option<Symbol> {
        let def = self.item(id)?.struct_def(self.db).clone()?;
        let field = def.fields.iter().find(|f| *f.name.text == *name)?;
        Some(Symbol::Field(id, field.name.text.clone()))
    }

    /// The types of an expression of an item: those that are noted, and of a name without any those of what it stands for.
    pub fn types_here(&self, item: Item, e: &Expr) -> Vec<Ty> {
        let noted = self.types_at(item.id(self.db), e.span);
        if !noted.is_empty() {
            return noted;
        }
        let path = dotted(e);
        let symbol = path.and_then(|path| self.path_seen(item, e.span.start, &path));
        symbol.map_or_else(Vec::new, |s| self.types_of(&s))
    }

    /// The types that a symbol has: those of where it was bound last, or what its annotation says.
    pub fn types_of(&self, symbol: &Symbol) -> Vec<Ty> {
        let (items, name): (Vec<ItemId>, Arc<str>) = match symbol {
            Symbol::Local { item, binding } => {
                let Some(of) = self.item(*item) else { return vec![] };
                (vec![*item], of.names(self.db).binding(*binding).name.clone())
            }
            Symbol::Variable(file, name) => {
                let statements = self.heads(*file).iter().filter(|h| h.kind == ItemKind::Stmt).map(|h| h.id).collect();
                (statements, name.clone())
            }
            Symbol::Field(id, name) => return self.field_types(*id, name),
            _ => return vec![],
        };
        for id in items.into_iter().rev() {
            let Some(item) = self.item(id) else { continue };
            let names = item.names(self.db);
            let bindings = names.bindings.iter().enumerate().filter(|(i, b)| match symbol {
                Symbol::Local { binding, .. } => binding.0 as usize == *i,
                _ => b.name == name && names.is_of_file(BindingId(*i as u32)),
            });
            for (_, b) in bindings {
                let noted =
                    b.places.iter().rev().map(|place| self.types_at(id, *place)).find(|types| !types.is_empty());
                if let Some(types) = noted {
                    return types;
                }
                let said = b.places.first().and_then(|p| of_parameter(self, item, *p));
                if let Some(ty) = said {
                    return vec![ty];
                }
            }
        }
        vec![]
    }

    /// What the values of a struct's field are, as its definition says.
    fn field_types(&self, id: ItemId, name: &str) -> Vec<Ty> {
        let Some(item) = self.item(id) else { return vec![] };
        let Some(def) = item.struct_def(self.db).clone() else { return vec![] };
        let field = def.fields.iter().find(|f| *f.name.text == *name);
        field.and_then(|f| annotated(self, item, &f.ty)).into_iter().collect()
    }

    /// Where a symbol is defined.
    pub fn definition(&self, symbol: &Symbol) -> Vec<Place> {
        let name_of_item = |id: ItemId| {
            let item = self.item(id)?;
            let names = item.names(self.db);
            let bound = names.bindings.iter().find(|b| matches!(b.kind, Kind::Function | Kind::Struct))?;
            self.place(*bound.places.first()?)
        };
        let one = match symbol {
            Symbol::Local { item, binding } => self.item(*item).and_then(|item| {
                let names = item.names(self.db);
                self.place(*names.binding(*binding).places.first()?)
            }),
            Symbol::Def(id) | Symbol::Struct(id) => name_of_item(*id),
            Symbol::Field(id, name) => self.item(*id).and_then(|item| {
                let def = item.struct_def(self.db).clone()?;
                self.place(def.fields.iter().find(|f| f.name.text == *name)?.name.span)
            }),
            Symbol::Variable(file, name) => self.bound_in_file(*file, name),
            Symbol::File(file) => Some(Place { file: *file, start: 0, end: 0 }),
            Symbol::Module(_) | Symbol::Builtin(_) | Symbol::OfTensor(_) | Symbol::Method(_) => None,
        };
        one.into_iter().collect()
    }

    /// Where the statements of a file bind a name first, sizes of annotations included.
    fn bound_in_file(&self, file: FileId, name: &str) -> Option<Place> {
        self.bound_at_top(file).get(name).and_then(|span| self.place(*span))
    }
}

/// The function that a value is: where it is written, its item and its start in it.
pub fn function_of(types: &[Ty]) -> Option<(ItemId, u32)> {
    types.iter().find_map(|ty| match ty {
        Ty::FnRef(r) if r.derived.is_some() => function_of(&[r.captures.first()?.1.clone()]),
        Ty::FnRef(r) => (r.item != BUILTIN_ITEM).then_some((ItemId(r.item), r.start)),
        _ => None,
    })
}

/// A member of a value of one of these types.
fn of_value(types: &[Ty], name: &str) -> Option<Symbol> {
    types.iter().find_map(|ty| match ty {
        Ty::Struct(s) => {
            let (name, _) = s.fields.iter().find(|(n, _)| **n == *name)?;
            Some(Symbol::Field(ItemId(s.item), name.clone()))
        }
        Ty::Tensor(_) | Ty::TensorPattern(_) | Ty::AnyTensor => {
            let known = attributes().any(|n| n == name) || surface::method(name).is_some();
            known.then(|| Symbol::OfTensor(name.into()))
        }
        Ty::Str => Some(Symbol::Method(format!("str.{name}").into())),
        Ty::List(_) => Some(Symbol::Method(format!("list.{name}").into())),
        Ty::Dict(..) => Some(Symbol::Method(format!("dict.{name}").into())),
        _ => None,
    })
}

// ---- What annotations say ---------------------------------------------------------------------

/// Of a parameter whose name stands there.
fn of_parameter(cx: &Analysis, item: Item, place: Span) -> Option<Ty> {
    let functions = item.functions(cx.db);
    let params = functions.values().flat_map(|f| &f.sig.params);
    let said = params.into_iter().find(|p| p.name.span == place)?.ty.clone()?;
    annotated(cx, item, &said)
}

/// The kind of value that an annotation names; sizes and element types stay open.
fn annotated(cx: &Analysis, item: Item, e: &Expr) -> Option<Ty> {
    match &e.kind {
        ExprKind::Name(name) => match &**name {
            "Tensor" => Some(Ty::AnyTensor),
            "str" => Some(Ty::Str),
            "int" => Some(Ty::Int(None)),
            "float" => Some(Ty::Float),
            "bool" => Some(Ty::Bool),
            _ => of_struct(cx, item, e),
        },
        ExprKind::Index { base, index } => match &base.kind {
            ExprKind::Name(name) => match (&**name, &index[..]) {
                ("Tensor", _) => Some(Ty::AnyTensor),
                ("list", [of]) => Some(Ty::List(Box::new(annotated(cx, item, &of.value).unwrap_or(Ty::Unknown)))),
                ("dict", [key, value]) => {
                    let of = |a: &Arg| Box::new(annotated(cx, item, &a.value).unwrap_or(Ty::Unknown));
                    Some(Ty::Dict(of(key), of(value)))
                }
                ("tuple", all) => {
                    Some(Ty::Tuple(all.iter().map(|a| annotated(cx, item, &a.value).unwrap_or(Ty::Unknown)).collect()))
                }
                _ => of_struct(cx, item, base),
            },
            _ => of_struct(cx, item, base),
        },
        ExprKind::Attr { .. } => of_struct(cx, item, e),
        _ => None,
    }
}

/// A struct by its definition; what its fields hold is asked of them one by one.
fn of_struct(cx: &Analysis, item: Item, e: &Expr) -> Option<Ty> {
    let path = dotted(e)?;
    let Symbol::Struct(id) = cx.path_seen(item, e.span.start, &path)? else { return None };
    let def = cx.item(id)?.struct_def(cx.db).clone()?;
    let fields = def.fields.iter().map(|f| (f.name.text.clone(), Ty::Unknown)).collect();
    Some(Ty::Struct(Arc::new(StructTy { name: def.name.text.clone(), item: id.0, fields })))
}
