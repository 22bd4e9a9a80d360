//! The state of checking one body.

use super::env::{Binding, Changes, Env, Slot};
use super::limits::Met;
use super::numerics::Numerics;
use super::types::{erase, fill, same_slot};
use super::{Called, InstData, Request, Tables};
use crate::db::{self, Db, File, InScope, InstRef};
use indexmap::{IndexMap, IndexSet};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use tessera_base::{Code, Diagnostic, ItemId, Size, SizeVar, Span, bug};
use tessera_core::ir::*;
use tessera_core::ty::{GlobalKey, Ty};
use tessera_grammar::ast::Expr;
use tessera_ir::graph::Policy;
use tessera_ir::hints::KernelHints;
use tessera_resolve::functions::FnLike;
use tessera_resolve::source::FileId;
use tessera_types::sizes::SizeCx;

/// Diagnostics of one body.
pub const DIAGNOSTICS_MAX: usize = 1000;

/// What is kept of a loop while its body is checked.
pub struct LoopFrame {
    /// The trail of the environment at the start of the body.
    pub mark: usize,
    pub breaks: Vec<Changes>,
    pub continues: Vec<Changes>,
    /// The variables that the body changes, as its head has them.
    pub heads: Vec<(Arc<str>, Binding)>,
}

/// What only a function body has.
pub struct FnState {
    pub f: Arc<FnLike>,
    pub item: ItemId,
    /// The declared result.
    pub ret: Option<Ty>,
    pub ret_span: Span,
    pub returns: Vec<(Ty, Span)>,
    pub size_binds: Vec<SizeBind>,
    /// Captured variables: they cannot be changed from inside.
    pub captured: BTreeSet<Arc<str>>,
}

/// Where the value of each size is read; `true`: from a parameter at the entry.
pub type SizeSources = BTreeMap<SizeVar, (TExpr, bool)>;

pub struct Cx<'db> {
    pub db: &'db dyn Db,
    /// Whose names are in scope.
    pub file: File,
    /// Where its variables live.
    pub module: FileId,
    /// What the names of the item are, when this is the body of a function.
    pub item_scope: Option<&'db BTreeMap<Arc<str>, InScope>>,
    /// Set while an expression of another module's signature is checked: only the names of
    /// that module are in scope.
    pub foreign: Option<File>,
    pub sizes: SizeCx,
    pub env: Env,
    pub locals: Vec<Variable>,
    slots: HashMap<Arc<str>, Vec<(Ty, Slot)>>,
    /// The module's variables, when this is a module body.
    pub globals: Vec<(GlobalId, Variable)>,
    /// `None`: a module body.
    pub func: Option<FnState>,
    pub data: Option<Arc<InstData>>,
    /// The instance that is being checked.
    pub own: Option<InstRef>,
    /// How deep and how large it is.
    pub met: Met,
    /// The functions that it calls, and whether it had to know what they give: see [`Tables`].
    pub callees: IndexMap<InstRef, bool>,
    /// The variables of modules that it has.
    pub global_keys: IndexSet<GlobalKey>,
    /// Set in per-device code.
    pub local: Option<super::per_device::PerDevice>,
    /// The devices along axes of meshes that only signatures name.
    pub axis_sizes: Vec<(String, Size)>,
    /// The block that is being written.
    pub out: Vec<TStmt>,
    pub alive: bool,
    /// The result type of a recursive call is not known yet: what is computed from it has the
    /// type `Error` without a report, and the body is checked again.
    pub guessing: bool,
    /// An expression without a type on a path that is reached.
    pub untyped: Option<Span>,
    /// The end of the path was decided by types (`if x is None: return`).
    pub decided_end: bool,
    pub loops: Vec<LoopFrame>,
    pub loop_depth: u32,
    pub policy: Policy,
    /// What the decorators of a kernel and its directives so far say.
    pub kernel: Option<super::directives::KernelState>,
    /// What statements of open blocks set for the rest of them.
    pub rest: Vec<super::block_directives::Rest>,
    /// What the directives of open blocks ask for.
    pub asked: KernelHints,
    /// Blocks inside each other.
    pub nested: u32,
    pub host: Option<(Arc<str>, Span)>,
    pub requests: Vec<Request>,
    pub diagnostics: Vec<Diagnostic>,
    pub files: BTreeSet<FileId>,
    /// Names that annotations made sizes of, with their sizes.
    pub size_names: BTreeMap<Arc<str>, Size>,
    /// What sizes of a template's signature are in its caller.
    pub outside: BTreeMap<SizeVar, Size>,
    /// How to compute a size variable here; with `true`, from the parameters at entry.
    pub size_sources: SizeSources,
    /// Sizes of the signature that the first value with them tells.
    pub late_sizes: BTreeMap<SizeVar, super::late_sizes::LateSize>,
    /// Parameters' dims whose size is no variable (`min(5, n)`): where to read them at entry.
    pub dim_sources: BTreeMap<Size, TExpr>,
    /// Constants of the file that the function's signature names, with where they are bound.
    pub constants: Vec<(Arc<str>, i64, Span)>,
    /// Variables of which an annotation says the type.
    pub declared: BTreeSet<Arc<str>>,
    /// Names whose own definition is being checked (a nested function that calls itself).
    pub itself: Option<(Arc<str>, Ty)>,
    /// Variables without a usable value that are reported.
    pub said: BTreeSet<(Arc<str>, Span, bool)>,
    /// Warnings about names that hide modules, once each.
    pub hidden: BTreeSet<Arc<str>>,
    /// Structs without parameters, once their types are known.
    pub structs: BTreeMap<ItemId, Ty>,
    pub struct_stack: Vec<ItemId>,
    /// Type of the latest expression statement.
    pub last: Option<Ty>,
    /// What stands in the brackets of a place that a statement changes: it is computed once, however often the place is
    /// looked at.
    keys: BTreeMap<Span, TExpr>,
    /// Whether the place of a change is being looked at.
    changing: bool,
}

impl<'db> Cx<'db> {
    pub fn new(db: &'db dyn Db, file: File, module: FileId, first_size: u32, numerics: Numerics) -> Cx<'db> {
        let mut sizes = SizeCx::new(first_size);
        sizes.precision = numerics.precision;
        Cx {
            db,
            file,
            module,
            item_scope: None,
            foreign: None,
            sizes,
            env: Env::default(),
            locals: vec![],
            slots: HashMap::new(),
            globals: vec![],
            func: None,
            data: None,
            own: None,
            met: Met::default(),
            callees: IndexMap::new(),
            global_keys: IndexSet::new(),
            local: None,
            axis_sizes: vec![],
            out: vec![],
            alive: true,
            guessing: false,
            untyped: None,
            decided_end: false,
            loops: vec![],
            loop_depth: 0,
            policy: numerics.policy,
            kernel: None,
            rest: vec![],
            asked: KernelHints::default(),
            nested: 0,
            host: None,
            requests: vec![],
            diagnostics: vec![],
            files: BTreeSet::new(),
            size_names: BTreeMap::new(),
            size_sources: BTreeMap::new(),
            late_sizes: BTreeMap::new(),
            dim_sources: BTreeMap::new(),
            outside: BTreeMap::new(),
            constants: vec![],
            declared: BTreeSet::new(),
            itself: None,
            said: BTreeSet::new(),
            hidden: BTreeSet::new(),
            structs: BTreeMap::new(),
            struct_stack: vec![],
            last: None,
            keys: BTreeMap::new(),
            changing: false,
        }
    }

    /// What a name is at the top of a file.
    pub fn in_scope(&self, file: File, name: &str) -> InScope {
        let own = if file == self.file { self.item_scope } else { None };
        match own {
            Some(names) => names.get(name).cloned().unwrap_or_else(|| db::in_scope(self.db, file, name)),
            // The body of a module depends on all of its names anyway.
            None if self.is_module() && file == self.file => db::scope(self.db, file).get(name),
            None => db::in_scope(self.db, file, name),
        }
    }

    // ---- Places of changes --------------------------------------------------------------------

    /// Looks at the place of a change.
    pub fn changing<T>(&mut self, f: impl FnOnce(&mut Self) -> T) -> T {
        let outer = std::mem::replace(&mut self.changing, true);
        let value = f(self);
        self.changing = outer;
        value
    }

    /// What stands in brackets; that of a place which is changed is computed at its first look.
    pub fn key(&mut self, e: &Expr) -> TExpr {
        if let Some(known) = self.keys.get(&e.span) {
            return known.clone();
        }
        let changing = std::mem::replace(&mut self.changing, false);
        let before = self.out.len();
        let key = self.expr(e);
        self.changing = changing;
        if !changing || (key.is_certain() && self.out.len() == before) {
            return key;
        }
        let key = self.save("index", key);
        self.keys.insert(e.span, key.clone());
        key
    }

    /// Statements of their own: of another block, or of another turn of a loop. What is around them goes on with its places.
    pub fn own_keys<T>(&mut self, f: impl FnOnce(&mut Self) -> T) -> T {
        let outer = std::mem::take(&mut self.keys);
        let value = f(self);
        self.keys = outer;
        value
    }

    // ---- Functions and variables of modules --------------------------------------------------

    /// The number of a module variable in this body.
    pub fn global_id(&mut self, key: GlobalKey) -> GlobalId {
        GlobalId(self.global_keys.insert_full(key).0 as u32)
    }

    /// The variable that has a number in this body.
    pub fn global_key(&self, id: GlobalId) -> &GlobalKey {
        match self.global_keys.get_index(id.0 as usize) {
            Some(key) => key,
            None => bug!("a body has the module variable {}, of {}", id.0, self.global_keys.len()),
        }
    }

    /// The function that has a number in this body.
    pub fn called(&self, id: InstId) -> InstRef {
        match self.callees.get_index(id.0 as usize) {
            Some((inst, _)) => *inst,
            None => bug!("a body calls its function {}, of {}", id.0, self.callees.len()),
        }
    }

    /// The numbers of the finished body.
    pub fn tables(&mut self) -> Tables {
        let callees = self.callees.drain(..).map(|(inst, first)| Called { inst, first });
        Tables { callees: callees.collect(), globals: self.global_keys.drain(..).collect() }
    }

    // ---- Diagnostics and effects ------------------------------------------------------------

    pub fn report(&mut self, d: Diagnostic) {
        let d = self.with_plain_size_names(self.with_mode(d));
        if self.diagnostics.len() < DIAGNOSTICS_MAX && !self.diagnostics.contains(&d) {
            self.diagnostics.push(d);
        }
    }

    pub fn error(&mut self, code: Code, span: Span, message: impl Into<String>) {
        self.report(Diagnostic::new(code, span, message));
    }

    /// Reports and gives an expression of type `Error`.
    pub fn fail(&mut self, d: Diagnostic) -> TExpr {
        let span = d.span;
        self.report(d);
        error_at(span)
    }

    /// The value, or its report.
    pub fn take(&mut self, result: Result<TExpr, Diagnostic>) -> TExpr {
        result.unwrap_or_else(|d| self.fail(d))
    }

    /// This body does something that a graph function cannot. The first reason is kept; that it decides on data, which tensor code
    /// can do as well, gives way to any other.
    pub fn host(&mut self, why: impl Into<Arc<str>>, span: Span) {
        let why = why.into();
        let gives_way =
            |known: &(Arc<str>, Span)| super::scalars::is_by_data(&known.0) && !super::scalars::is_by_data(&why);
        if self.host.as_ref().is_none_or(gives_way) {
            self.host = Some((why, span));
        }
    }

    // ---- Variables ---------------------------------------------------------------------------

    pub fn is_module(&self) -> bool {
        self.func.is_none()
    }

    /// A new local that no name refers to.
    pub fn temp(&mut self, name: &str, ty: Ty, span: Span) -> LocalId {
        let id = LocalId(self.locals.len() as u32);
        self.locals.push(Variable { name: name.into(), ty, span, compares: false });
        id
    }

    /// Puts a value into a new local and gives the expression that reads it. Constants and
    /// variables that nothing changes in between need none.
    pub fn save(&mut self, name: &str, value: TExpr) -> TExpr {
        if matches!(
            value.kind,
            TKind::Int(_) | TKind::Float(_) | TKind::Bool(_) | TKind::Str(_) | TKind::None | TKind::DType(_)
        ) || value.ty.is_error()
        {
            return value;
        }
        // An empty one reads nothing, and what it will hold is told by the name that it gets.
        let empty = match &value.kind {
            TKind::List(items) => items.is_empty(),
            TKind::Dict(entries) => entries.is_empty(),
            _ => false,
        };
        if empty {
            return value;
        }
        let (ty, span) = (value.ty.clone(), value.span);
        let local = self.temp(name, ty.clone(), span);
        self.out.push(TStmt::Set(local, value));
        TExpr { kind: TKind::Local(local), ty, span }
    }

    /// The slot of a name for values of a type: one per erased type.
    pub fn slot(&mut self, name: &Arc<str>, ty: &Ty, span: Span) -> Slot {
        let erased = erase(ty);
        if let Some(known) = self.slots.get_mut(name) {
            // The slot in use last wins where an empty list fits several.
            for (have, slot) in known.iter_mut().rev() {
                if same_slot(have, &erased) {
                    *have = fill(have, &erased);
                    let slot = *slot;
                    self.refine_slot(slot, ty);
                    return slot;
                }
            }
        }
        let slot = if self.is_module() {
            let id = self.global_id(GlobalKey { module: self.module, name: name.clone(), ty: erased.clone() });
            self.globals.push((id, Variable { name: name.clone(), ty: ty.clone(), span, compares: false }));
            Slot::Global(id)
        } else {
            Slot::Local(self.temp(name, ty.clone(), span))
        };
        self.slots.entry(name.clone()).or_default().push((erased, slot));
        slot
    }

    /// Makes an existing slot known (variables of inputs before this one).
    pub fn adopt_slot(&mut self, name: &Arc<str>, ty: &Ty, slot: Slot) {
        self.slots.entry(name.clone()).or_default().push((erase(ty), slot));
    }

    /// Fills in what an empty list's or dict's slot did not know.
    pub fn refine_slot(&mut self, slot: Slot, ty: &Ty) {
        let variable = match slot {
            Slot::Local(id) => self.locals.get_mut(id.0 as usize),
            Slot::Global(id) => self.globals.iter_mut().find(|(g, _)| *g == id).map(|(_, v)| v),
        };
        if let Some(variable) = variable
            && super::types::has_unknown(&variable.ty)
        {
            variable.ty = fill(&variable.ty, ty);
        }
    }

    /// Binds a name to a value: emits the assignment.
    ///
    /// An int of which nothing is known gets a symbol for its value, as long as the name keeps it.
    pub fn bind(&mut self, name: &Arc<str>, value: TExpr, span: Span) {
        let nameless = match &value.ty {
            Ty::Int(Some(size)) if self.nameless(size) => Some(size.clone()),
            _ => None,
        };
        let ty = match (&value.ty, &nameless) {
            (Ty::Never, _) => Ty::Error,
            (Ty::Int(None), _) => Ty::Int(Some(self.sizes.fresh_int(name))),
            // `len(xs)`: from here on it has this name.
            (_, Some(size)) if size.as_var().is_some() => {
                let named = self.sizes.fresh_var(name);
                Ty::Int(size.as_var().map(|v| Size::var(SizeVar { name: named.name, ..v.clone() })))
            }
            // `len(xs) + 1`
            (_, Some(size)) => {
                let symbol = if size.is_at_least(0) { self.sizes.fresh(name) } else { self.sizes.fresh_int(name) };
                self.sizes.facts.assume_equal(&symbol, size);
                Ty::Int(Some(symbol))
            }
            (ty, _) => ty.clone(),
        };
        let slot = self.slot(name, &ty, span);
        self.set_slot(slot, TExpr { ty: ty.clone(), ..value });
        if let Ty::Int(Some(size)) = &ty
            && self.nameless(size)
        {
            self.size_sources_of(&ty, &read(slot, ty.clone(), span), false);
        }
        let ty = match ty {
            // `n = n * n`: its old value is gone, and this does not tell it.
            Ty::Int(Some(size)) if self.nameless(&size) => {
                let symbol =
                    if size.is_at_least(0) { self.sizes.fresh_var(name) } else { self.sizes.fresh_int_var(name) };
                self.sizes.facts.assume_equal(&Size::var(symbol.clone()), &size);
                let ty = Ty::Int(Some(Size::var(symbol.clone())));
                self.size_sources.insert(symbol, (read(slot, ty.clone(), span), false));
                ty
            }
            ty => ty,
        };
        self.declared.remove(name);
        self.env.bind(name, Binding { slot, ty, span, bad: None });
    }

    /// The variable gets another value: sizes whose value is read from it are read from a copy of the old one where
    /// something else still has them.
    pub fn keep_sizes(&mut self, slot: Slot) {
        self.copy_sizes(slot);
        self.size_sources.retain(|_, (e, entry)| *entry || !reads(e, slot));
    }

    /// As [`Cx::keep_sizes`], before branches of which one changes the variable: the others still read it.
    pub fn copy_sizes(&mut self, slot: Slot) {
        let read = |(_, (e, entry)): &(&SizeVar, &(TExpr, bool))| !entry && reads(e, slot);
        let sources: Vec<(SizeVar, TExpr)> =
            self.size_sources.iter().filter(read).map(|(v, (e, _))| (v.clone(), e.clone())).collect();
        for (var, source) in sources {
            let has = |b: &Binding| b.slot != slot && tessera_core::sizes::vars_of(&b.ty).contains(&var);
            if self.env.bound().any(|(_, b)| has(b)) {
                let kept = self.save(&var.name.clone(), source);
                self.size_sources.insert(var, (kept, false));
            }
        }
    }

    pub fn set_slot(&mut self, slot: Slot, value: TExpr) {
        if value.ty == Ty::Error {
            return;
        }
        self.keep_sizes(slot);
        self.out.push(match slot {
            Slot::Local(id) => TStmt::Set(id, value),
            Slot::Global(id) => TStmt::SetGlobal(id, value),
        });
    }

    /// Changes what is known of a variable's type without an assignment.
    pub fn retype(&mut self, name: &Arc<str>, ty: Ty) {
        if let Some(binding) = self.env.get(name).cloned() {
            self.refine_slot(binding.slot, &ty);
            if let Some(known) = self.slots.get_mut(name) {
                for (have, slot) in known.iter_mut() {
                    if *slot == binding.slot {
                        *have = fill(have, &erase(&ty));
                    }
                }
            }
            self.env.rebind(name, Binding { ty, ..binding });
        }
    }

    // ---- Blocks --------------------------------------------------------------------------------

    /// Runs `f` with an empty block and gives what it wrote.
    pub fn block<T>(&mut self, f: impl FnOnce(&mut Self) -> T) -> (Vec<TStmt>, T) {
        let saved = std::mem::take(&mut self.out);
        let told = self.assigned_here();
        let value = f(self);
        self.restrict_assigned(&told);
        (std::mem::replace(&mut self.out, saved), value)
    }

    /// An expression that may write statements first: they become a block around it.
    pub fn scoped(&mut self, f: impl FnOnce(&mut Self) -> TExpr) -> TExpr {
        let (stmts, value) = self.block(f);
        wrap(stmts, value)
    }
}

/// Whether an expression reads the variable.
pub fn reads(e: &TExpr, slot: Slot) -> bool {
    let mut found = false;
    tessera_core::walk::each_expr(e, &mut |e| {
        found |= match (&e.kind, slot) {
            (TKind::Local(a), Slot::Local(b)) => *a == b,
            (TKind::Global(a), Slot::Global(b)) => *a == b,
            _ => false,
        }
    });
    found
}

/// Statements before a value.
pub fn wrap(stmts: Vec<TStmt>, value: TExpr) -> TExpr {
    if stmts.is_empty() {
        return value;
    }
    let (ty, span) = (value.ty.clone(), value.span);
    TExpr { kind: TKind::Block { stmts, value: Box::new(value) }, ty, span }
}

/// A value that is known, behind what it is known of: that is computed all the same, as it may do more or fail.
pub fn behind(of: Vec<TExpr>, known: TExpr) -> TExpr {
    wrap(of.into_iter().filter(|e| !e.is_certain()).map(TStmt::Expr).collect(), known)
}

pub fn read(slot: Slot, ty: Ty, span: Span) -> TExpr {
    let kind = match slot {
        // All there is to know of them is their type.
        _ if matches!(ty, Ty::Mesh(_) | Ty::ShardSpec(_)) => TKind::None,
        Slot::Local(id) => TKind::Local(id),
        Slot::Global(id) => TKind::Global(id),
    };
    TExpr { kind, ty, span }
}

pub fn error_at(span: Span) -> TExpr {
    TExpr { kind: TKind::None, ty: Ty::Error, span }
}

pub fn int(n: i64, span: Span) -> TExpr {
    TExpr { kind: TKind::Int(n), ty: Ty::int_of(n), span }
}

pub fn boolean(b: bool, span: Span) -> TExpr {
    TExpr { kind: TKind::Bool(b), ty: Ty::Bool, span }
}

pub fn string(s: impl Into<Arc<str>>, span: Span) -> TExpr {
    TExpr { kind: TKind::Str(s.into()), ty: Ty::Str, span }
}

pub fn none(span: Span) -> TExpr {
    TExpr { kind: TKind::None, ty: Ty::None, span }
}

pub fn builtin(name: Builtin, args: Vec<TExpr>, ty: Ty, span: Span) -> TExpr {
    TExpr { kind: TKind::Builtin { name, args }, ty, span }
}
