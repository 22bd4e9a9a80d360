//! What every name in an item refers to, and which scopes there are at which place.
//!
//! A function's variables are its parameters and all that it assigns anywhere; nested functions, lambdas and comprehensions see what is around
//! them. A capitalised name that a signature writes where nothing around binds it is a size of the function, unless the file
//! has a constant or a type of that name: an item alone does not know that, so whoever asks looks there first ([`Kind::Size`]).
//! What is not bound in the item belongs to the file ([`Reference::Outside`]).

use crate::syntax::parts_of;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tessera_base::Span;
use tessera_grammar::ast::*;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ScopeId(pub u32);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct BindingId(pub u32);

/// What makes a name known.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    Parameter,
    /// Assigned, a target of a loop or of `with`.
    Variable,
    /// A `def`.
    Function,
    Struct,
    Import,
    /// A target of a comprehension.
    Target,
    /// A parameter of a struct: `D` of `struct S[D]:`.
    Generic,
    /// A capitalised name of a signature or an annotation that nothing around binds.
    Size,
}

/// A name with a meaning of its own.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Binding {
    pub name: Arc<str>,
    pub kind: Kind,
    pub scope: ScopeId,
    /// Where it is bound, in the order of the text.
    pub places: Vec<Span>,
}

/// A part of the text with names of its own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Scope {
    pub parent: Option<ScopeId>,
    pub span: Span,
    pub names: BTreeMap<Arc<str>, BindingId>,
    /// Sizes that its annotations make: a variable of the same name hides them in the body.
    pub sizes: BTreeMap<Arc<str>, BindingId>,
}

/// What a name refers to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Reference {
    Local(BindingId),
    /// Of the file, or built in.
    Outside,
}

/// A name that is read.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Use {
    pub span: Span,
    pub name: Arc<str>,
    pub to: Reference,
}

/// A member that is named behind names alone: `linear` of `std.nn.linear`. Of a module, or of a value.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Member {
    pub span: Span,
    /// From the first name to this one; the first one is a [`Use`].
    pub path: Vec<Arc<str>>,
}

/// The names of one item.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Names {
    /// The first is that of the item: what stands in it belongs to the file.
    pub scopes: Vec<Scope>,
    pub bindings: Vec<Binding>,
    /// By where they stand.
    pub uses: Vec<Use>,
    /// By where they stand.
    pub members: Vec<Member>,
}

const ITEM: ScopeId = ScopeId(0);

/// Resolves the statements of one item.
pub fn names(stmts: &[Stmt]) -> Names {
    let span = stmts.iter().map(|s| s.span).reduce(|a, b| a.to(b)).unwrap_or(Span::NONE);
    let mut cx = Resolver { out: Names { scopes: vec![], bindings: vec![], uses: vec![], members: vec![] } };
    cx.scope(None, span);
    cx.bind_assigned(stmts, ITEM);
    cx.stmts(stmts, ITEM);
    cx.out.uses.sort_by_key(|u| (u.span.start, u.span.end));
    cx.out.members.sort_by_key(|m| (m.span.start, m.span.end));
    cx.out
}

impl Names {
    pub fn binding(&self, id: BindingId) -> &Binding {
        &self.bindings[id.0 as usize]
    }

    /// The name that is read exactly there.
    pub fn use_at(&self, span: Span) -> Option<&Use> {
        let at = self.uses.binary_search_by_key(&(span.start, span.end), |u| (u.span.start, u.span.end)).ok()?;
        self.uses.get(at)
    }

    /// What a name refers to that stands at a position of the item.
    pub fn seen_from(&self, at: u32, name: &str) -> Reference {
        let within = |s: &&Scope| s.parent.is_some() && s.span.start <= at && at < s.span.end;
        let bound = |s: &Scope| s.names.get(name).or_else(|| s.sizes.get(name)).copied();
        // What is inside stands behind what is around it.
        self.scopes.iter().filter(within).filter_map(bound).next_back().map_or(Reference::Outside, Reference::Local)
    }

    /// The name that is read around a position of the item.
    pub fn use_around(&self, at: u32) -> Option<&Use> {
        self.uses.iter().find(|u| u.span.start <= at && at < u.span.end)
    }

    /// The member that is named around a position of the item.
    pub fn member_around(&self, at: u32) -> Option<&Member> {
        self.members.iter().find(|m| m.span.start <= at && at < m.span.end)
    }

    /// The name that is bound around a position of the item.
    pub fn bound_around(&self, at: u32) -> Option<BindingId> {
        let around = |b: &Binding| b.places.iter().any(|s| s.start <= at && at < s.end);
        self.bindings.iter().position(around).map(|i| BindingId(i as u32))
    }

    /// Whether it belongs to the file: to be looked for in other items, too.
    pub fn is_of_file(&self, id: BindingId) -> bool {
        self.binding(id).scope == ITEM
    }

    /// What belongs to the file.
    pub fn of_file(&self) -> impl Iterator<Item = &Binding> {
        self.bindings.iter().filter(|b| b.scope == ITEM)
    }

    /// Where a binding is bound and read in the item, in the order of the text.
    pub fn places_of(&self, id: BindingId) -> Vec<Span> {
        let binding = self.binding(id);
        let of_file = self.is_of_file(id);
        let read = self.uses.iter().filter(|u| match u.to {
            Reference::Local(to) => to == id,
            Reference::Outside => of_file && u.name == binding.name,
        });
        let places: BTreeSet<Span> = binding.places.iter().copied().chain(read.map(|u| u.span)).collect();
        places.into_iter().collect()
    }

    /// What is bound around a position: the innermost first, of one name only that one.
    pub fn visible(&self, at: u32) -> Vec<&Binding> {
        let within = |s: &&Scope| s.span.start <= at && at <= s.span.end;
        let mut scopes: Vec<&Scope> = self.scopes.iter().filter(within).collect();
        // What is inside stands behind what is around it.
        scopes.reverse();
        scopes.sort_by_key(|s| s.span.end - s.span.start);
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        let ids = scopes.iter().flat_map(|s| s.names.values().chain(s.sizes.values()));
        ids.map(|id| self.binding(*id)).filter(|b| seen.insert(&b.name)).collect()
    }

    /// Variables, functions and targets inside of functions that nothing reads; names that begin with `_` mean to be so.
    pub fn unused(&self) -> Vec<BindingId> {
        let mut read = vec![false; self.bindings.len()];
        for u in &self.uses {
            if let Reference::Local(id) = u.to {
                read[id.0 as usize] = true;
            }
        }
        let unused = |(i, b): (usize, &Binding)| {
            let local = b.scope != ITEM && matches!(b.kind, Kind::Variable | Kind::Function | Kind::Target);
            (local && !b.name.starts_with('_') && !read[i]).then_some(BindingId(i as u32))
        };
        self.bindings.iter().enumerate().filter_map(unused).collect()
    }
}

struct Resolver {
    out: Names,
}

impl Resolver {
    fn scope(&mut self, parent: Option<ScopeId>, span: Span) -> ScopeId {
        self.out.scopes.push(Scope { parent, span, names: BTreeMap::new(), sizes: BTreeMap::new() });
        ScopeId(self.out.scopes.len() as u32 - 1)
    }

    fn scope_mut(&mut self, id: ScopeId) -> &mut Scope {
        &mut self.out.scopes[id.0 as usize]
    }

    /// One more place where a scope binds a name; what it is, its first place says.
    fn bind(&mut self, scope: ScopeId, name: &Arc<str>, kind: Kind, place: Span) {
        if let Some(id) = self.out.scopes[scope.0 as usize].names.get(name) {
            self.out.bindings[id.0 as usize].places.push(place);
            return;
        }
        let id = self.new_binding(scope, name, kind, place);
        self.scope_mut(scope).names.insert(name.clone(), id);
    }

    fn new_binding(&mut self, scope: ScopeId, name: &Arc<str>, kind: Kind, place: Span) -> BindingId {
        self.out.bindings.push(Binding { name: name.clone(), kind, scope, places: vec![place] });
        BindingId(self.out.bindings.len() as u32 - 1)
    }

    /// All that statements bind at their own level.
    fn bind_assigned(&mut self, stmts: &[Stmt], scope: ScopeId) {
        for stmt in stmts {
            match &stmt.kind {
                StmtKind::Assign { targets, .. } => {
                    targets.iter().for_each(|t| self.bind_targets(t, scope, Kind::Variable))
                }
                StmtKind::AnnAssign { target, value: Some(_), .. } | StmtKind::AugAssign { target, .. } => {
                    self.bind_targets(target, scope, Kind::Variable)
                }
                StmtKind::Def(def) => self.bind(scope, &def.name.text, Kind::Function, def.name.span),
                StmtKind::Struct(def) => self.bind(scope, &def.name.text, Kind::Struct, def.name.span),
                StmtKind::Import { path, alias } => {
                    if let Some(name) = alias.as_ref().or(path.first()) {
                        self.bind(scope, &name.text, Kind::Import, name.span);
                    }
                }
                StmtKind::FromImport { names, .. } => names.iter().for_each(|(name, alias)| {
                    let name = alias.as_ref().unwrap_or(name);
                    self.bind(scope, &name.text, Kind::Import, name.span);
                }),
                StmtKind::If { then, otherwise, .. } => {
                    self.bind_assigned(then, scope);
                    self.bind_assigned(otherwise, scope);
                }
                StmtKind::For { target, body, .. } => {
                    self.bind_targets(target, scope, Kind::Variable);
                    self.bind_assigned(body, scope);
                }
                StmtKind::While { body, .. } => self.bind_assigned(body, scope),
                StmtKind::With { items, body } => {
                    items
                        .iter()
                        .filter_map(|(_, t)| t.as_ref())
                        .for_each(|t| self.bind_targets(t, scope, Kind::Variable));
                    self.bind_assigned(body, scope);
                }
                _ => {}
            }
        }
    }

    fn bind_targets(&mut self, target: &Expr, scope: ScopeId, kind: Kind) {
        match &target.kind {
            ExprKind::Name(name) => self.bind(scope, name, kind, target.span),
            ExprKind::Tuple(ts) | ExprKind::List(ts) => ts.iter().for_each(|t| self.bind_targets(t, scope, kind)),
            _ => {}
        }
    }

    /// What a name refers to, seen from a scope outwards.
    fn reference(&self, name: &str, from: ScopeId) -> Reference {
        let mut at = Some(from);
        while let Some(id) = at.filter(|id| *id != ITEM) {
            let scope = &self.out.scopes[id.0 as usize];
            if let Some(binding) = scope.names.get(name).or_else(|| scope.sizes.get(name)) {
                return Reference::Local(*binding);
            }
            at = scope.parent;
        }
        Reference::Outside
    }

    fn read(&mut self, name: &Arc<str>, span: Span, to: Reference) {
        self.out.uses.push(Use { span, name: name.clone(), to });
    }

    fn stmts(&mut self, stmts: &[Stmt], scope: ScopeId) {
        stmts.iter().for_each(|s| self.stmt(s, scope));
    }

    fn stmt(&mut self, stmt: &Stmt, scope: ScopeId) {
        match &stmt.kind {
            StmtKind::Def(def) => self.def(def, stmt.span, scope),
            StmtKind::Struct(def) => self.struct_(def, stmt.span, scope),
            StmtKind::Expr(e) => self.expr(e, scope),
            StmtKind::Assign { targets, value } => {
                self.expr(value, scope);
                targets.iter().for_each(|t| self.target(t, scope));
            }
            StmtKind::AnnAssign { target, ty, value } => {
                self.annotation(ty, scope, scope);
                value.iter().for_each(|v| self.expr(v, scope));
                self.target(target, scope);
            }
            StmtKind::AugAssign { target, value, .. } => {
                self.expr(target, scope);
                self.expr(value, scope);
            }
            StmtKind::If { test, then, otherwise } => {
                self.expr(test, scope);
                self.stmts(then, scope);
                self.stmts(otherwise, scope);
            }
            StmtKind::For { target, iter, body } => {
                self.expr(iter, scope);
                self.target(target, scope);
                self.stmts(body, scope);
            }
            StmtKind::While { test, body } => {
                self.expr(test, scope);
                self.stmts(body, scope);
            }
            StmtKind::Return(value) => value.iter().for_each(|v| self.expr(v, scope)),
            StmtKind::Assert { test, message } => {
                self.expr(test, scope);
                message.iter().for_each(|m| self.expr(m, scope));
            }
            StmtKind::With { items, body } => {
                for (value, target) in items {
                    self.expr(value, scope);
                    target.iter().for_each(|t| self.target(t, scope));
                }
                self.stmts(body, scope);
            }
            StmtKind::Import { .. }
            | StmtKind::FromImport { .. }
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Pass
            | StmtKind::Error => {}
        }
    }

    /// What stands in a target and is read: `x` and `i` of `x[i] = 1`.
    fn target(&mut self, target: &Expr, scope: ScopeId) {
        match &target.kind {
            ExprKind::Name(_) => {}
            ExprKind::Tuple(ts) | ExprKind::List(ts) => ts.iter().for_each(|t| self.target(t, scope)),
            _ => self.expr(target, scope),
        }
    }

    fn def(&mut self, def: &FnDef, span: Span, around: ScopeId) {
        def.decorators.iter().for_each(|d| self.expr(d, around));
        let scope = self.scope(Some(around), span);
        self.signature(&def.params, def.ret.as_ref(), scope, around);
        self.bind_assigned(&def.body, scope);
        self.stmts(&def.body, scope);
    }

    /// Parameters and types, before the body binds anything: its variables mean nothing in them.
    fn signature(&mut self, params: &[Param], ret: Option<&Expr>, scope: ScopeId, around: ScopeId) {
        params.iter().filter_map(|p| p.default.as_ref()).for_each(|e| self.expr(e, around));
        params.iter().for_each(|p| self.bind(scope, &p.name.text, Kind::Parameter, p.name.span));
        params.iter().filter_map(|p| p.ty.as_ref()).chain(ret).for_each(|ty| self.annotation(ty, scope, scope));
    }

    fn struct_(&mut self, def: &StructDef, span: Span, around: ScopeId) {
        def.decorators.iter().for_each(|d| self.expr(d, around));
        let scope = self.scope(Some(around), span);
        def.generics.iter().for_each(|g| self.bind(scope, &g.text, Kind::Generic, g.span));
        for field in &def.fields {
            self.annotation(&field.ty, scope, scope);
            field.default.iter().for_each(|e| self.expr(e, scope));
        }
    }

    /// The names in a type; those that nothing binds and that are written like sizes are sizes of `owner`.
    fn annotation(&mut self, ty: &Expr, scope: ScopeId, owner: ScopeId) {
        match &ty.kind {
            ExprKind::Name(name) => {
                let to = match self.reference(name, scope) {
                    Reference::Outside if name.starts_with(char::is_uppercase) => self.size(name, ty.span, owner),
                    to => to,
                };
                self.read(name, ty.span, to);
            }
            // An axis of a mesh is no name of the program: `B@dp`, `B@(dp, tp)`, `sum@tp`.
            ExprKind::Binary { op: BinOp::MatMul, left, .. } => self.annotation(left, scope, owner),
            // What is applied is a type: `Tensor[…]`, `list[…]`, a struct.
            ExprKind::Index { base, index } => {
                self.applied(base, scope);
                index.iter().for_each(|a| self.annotation(&a.value, scope, owner));
            }
            ExprKind::Attr { .. } => self.expr(ty, scope),
            _ => parts_of(ty).into_iter().for_each(|p| self.annotation(p, scope, owner)),
        }
    }

    fn applied(&mut self, base: &Expr, scope: ScopeId) {
        match &base.kind {
            ExprKind::Name(name) => self.read(name, base.span, self.reference(name, scope)),
            _ => self.expr(base, scope),
        }
    }

    fn size(&mut self, name: &Arc<str>, span: Span, owner: ScopeId) -> Reference {
        let known = self.out.scopes[owner.0 as usize].sizes.get(name).copied();
        let id = known.unwrap_or_else(|| {
            let id = self.new_binding(owner, name, Kind::Size, span);
            self.scope_mut(owner).sizes.insert(name.clone(), id);
            id
        });
        Reference::Local(id)
    }

    fn expr(&mut self, e: &Expr, scope: ScopeId) {
        match &e.kind {
            ExprKind::Name(name) => self.read(name, e.span, self.reference(name, scope)),
            ExprKind::Attr { base, name } => {
                if let Some(mut path) = path(base) {
                    path.push(name.text.clone());
                    self.out.members.push(Member { span: name.span, path });
                }
                self.expr(base, scope);
            }
            ExprKind::Lambda { params, body } => {
                let inner = self.scope(Some(scope), e.span);
                self.signature(params, None, inner, scope);
                self.expr(body, inner);
            }
            ExprKind::ListComp { element, clauses } => self.comprehension(element, clauses, e.span, scope),
            _ => parts_of(e).into_iter().for_each(|p| self.expr(p, scope)),
        }
    }

    /// The first list is computed outside, the others see the targets before them.
    fn comprehension(&mut self, element: &Expr, clauses: &[CompClause], span: Span, around: ScopeId) {
        if let Some(first) = clauses.first() {
            self.expr(&first.iter, around);
        }
        let scope = self.scope(Some(around), span);
        clauses.iter().for_each(|c| self.bind_targets(&c.target, scope, Kind::Target));
        for (i, clause) in clauses.iter().enumerate() {
            if i > 0 {
                self.expr(&clause.iter, scope);
            }
            self.target(&clause.target, scope);
            clause.tests.iter().for_each(|t| self.expr(t, scope));
        }
        self.expr(element, scope);
    }
}

/// `a.b` of names alone.
fn path(e: &Expr) -> Option<Vec<Arc<str>>> {
    match &e.kind {
        ExprKind::Name(name) => Some(vec![name.clone()]),
        ExprKind::Attr { base, name } => {
            let mut path = path(base)?;
            path.push(name.text.clone());
            Some(path)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
