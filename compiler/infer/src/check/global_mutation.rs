//! Function values that are called later: a value of a function type is compiled once, and reads the variables of the
//! file as they are whenever it is called.

use super::cx::Cx;
use super::reached::{Insts, Main};
use super::types::plain_ints;
use super::{GlobalRead, fns};
use crate::db::{self, Db, File, Item};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tessera_base::{Code, Diagnostic, Size, SizeVar, Span, TensorType};
use tessera_core::ir::*;
use tessera_core::sizes::{of_any_size, subst_ty};
use tessera_core::ty::{FnRefTy, GlobalKey, StructTy, Ty};
use tessera_core::walk::{called, each_expr, each_part};
use tessera_grammar::ast::{Expr, ExprKind, Stmt, StmtKind};
use tessera_resolve::syntax::{assigned, each_stmt, exprs_of, parts_of, root_name};

/// What is known of the variables of a file for good.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct GlobalInvariants {
    /// Bound once, outside of loops and branches.
    once: BTreeSet<Arc<str>>,
    /// Changed in place by statements of the file itself.
    changed: BTreeSet<Arc<str>>,
    /// Changed in place by functions.
    by_functions: BTreeSet<Arc<str>>,
}

/// See [`GlobalInvariants`].
pub fn global_invariants(db: &dyn Db, file: File) -> GlobalInvariants {
    let mut out =
        GlobalInvariants { once: db::constants(db, file).keys().cloned().collect(), ..GlobalInvariants::default() };
    for head in db::all_heads(db, file) {
        let Some(item) = db::item_of(db, head.id) else { continue };
        let [changed, by_functions] = db::changes(db, item);
        out.changed.extend(changed.iter().cloned());
        out.by_functions.extend(by_functions.iter().cloned());
    }
    out
}

/// The variables that an item changes in place itself, and those that functions in it change.
pub fn changes(db: &dyn Db, item: Item) -> [BTreeSet<Arc<str>>; 2] {
    let stmts = &item.syntax(db).stmts;
    let mut out = [BTreeSet::new(), BTreeSet::new()];
    changed_in_place(stmts, &mut out[0]);
    by_functions(stmts, &mut out[1]);
    out
}

/// The roots of places that statements change, those in functions left out.
fn changed_in_place(stmts: &[Stmt], out: &mut BTreeSet<Arc<str>>) {
    each_stmt(stmts, &mut |stmt| {
        match &stmt.kind {
            StmtKind::Assign { targets, .. } => targets.iter().for_each(|t| in_place(t, out)),
            StmtKind::AugAssign { target, .. } | StmtKind::AnnAssign { target, .. } => in_place(target, out),
            StmtKind::For { target, .. } => in_place(target, out),
            _ => {}
        }
        if !matches!(stmt.kind, StmtKind::Def(_)) {
            exprs_of(stmt).into_iter().for_each(|e| changed_by_calls(e, out));
        }
    });
}

fn in_place(target: &Expr, out: &mut BTreeSet<Arc<str>>) {
    match &target.kind {
        ExprKind::Attr { base, .. } | ExprKind::Index { base, .. } => out.extend(root_name(base)),
        ExprKind::Tuple(ts) | ExprKind::List(ts) => ts.iter().for_each(|t| in_place(t, out)),
        _ => {}
    }
}

/// The roots of lists and dicts that methods change.
fn changed_by_calls(e: &Expr, out: &mut BTreeSet<Arc<str>>) {
    if let ExprKind::Call { func, .. } = &e.kind
        && let ExprKind::Attr { base, name } = &func.kind
        && crate::members::CHANGE.contains(&&*name.text)
    {
        out.extend(root_name(base));
    }
    parts_of(e).into_iter().for_each(|e| changed_by_calls(e, out));
}

/// The variables of the file that functions in the statements change.
fn by_functions(stmts: &[Stmt], out: &mut BTreeSet<Arc<str>>) {
    each_stmt(stmts, &mut |stmt| {
        let StmtKind::Def(def) = &stmt.kind else {
            exprs_of(stmt).into_iter().for_each(|e| by_lambdas(e, out));
            return;
        };
        let (mut found, mut own) = (BTreeSet::new(), BTreeSet::new());
        changed_in_place(&def.body, &mut found);
        by_functions(&def.body, &mut found);
        assigned(&def.body, &mut own);
        own.extend(def.params.iter().map(|p| p.name.text.clone()));
        out.extend(found.into_iter().filter(|name| !own.contains(name)));
    });
}

fn by_lambdas(e: &Expr, out: &mut BTreeSet<Arc<str>>) {
    if let ExprKind::Lambda { body, .. } = &e.kind {
        changed_by_calls(body, out);
    }
    parts_of(e).into_iter().for_each(|e| by_lambdas(e, out));
}

impl Cx<'_> {
    /// A variable of a module as a function value reads it that is called later.
    pub fn read_later(&mut self, read: GlobalRead) -> GlobalRead {
        match self.stays(&read) {
            true => read,
            // A change between two reads in one call is seen, too.
            false => {
                let ty = self.of_later(&read.name, &read.ty);
                let home =
                    db::file_of(self.db, read.module).map(|f| f.prompt(self.db).map_or(f, |p| p.latest(self.db)));
                let ty = home.map_or(ty.clone(), |home| self.as_functions_leave(home, &read.name, ty));
                GlobalRead { ty, ..read }
            }
        }
    }

    /// Whether the variable has the type that it has now for good.
    fn stays(&self, read: &GlobalRead) -> bool {
        let Some(home) = db::file_of(self.db, read.module) else { return false };
        // At a prompt everything may be bound again, and a file that was edited is read again.
        if home.prompt(self.db).is_some() || self.file.prompt(self.db).is_some() {
            return false;
        }
        let lasting = db::global_invariants(self.db, home);
        let has_parts = !matches!(read.ty, Ty::Int(_) | Ty::Tensor(_));
        let changed = lasting.changed.contains(&read.name) || lasting.by_functions.contains(&read.name);
        lasting.once.contains(&read.name) && !(has_parts && changed)
    }

    /// The type of a variable of a file whenever it is read: where functions of the file change the value in place,
    /// nothing is known of the ints in it.
    pub fn as_functions_leave(&self, home: File, name: &Arc<str>, ty: Ty) -> Ty {
        match ty {
            Ty::List(_) | Ty::Dict(..) | Ty::Tuple(_) | Ty::Struct(_)
                if db::global_invariants(self.db, home).by_functions.contains(name) =>
            {
                plain_ints(&ty)
            }
            ty => ty,
        }
    }

    /// The type without what another value of it may have differently: numbers and sizes.
    fn of_later(&mut self, name: &Arc<str>, ty: &Ty) -> Ty {
        match ty {
            Ty::Int(_) => Ty::Int(Some(Size::var(SizeVar { natural: false, ..self.sizes.elsewhere(name) }))),
            Ty::Tensor(t) => {
                let one = t.shape.len() == 1;
                let named = |(i, dim): (usize, &Size)| {
                    let hint = match dim.as_var() {
                        Some(v) => v.name.clone(),
                        None if one => name.clone(),
                        None => format!("{name}_{i}").into(),
                    };
                    Size::var(self.sizes.elsewhere(&hint))
                };
                Ty::Tensor(TensorType { shape: t.shape.iter().enumerate().map(named).collect(), ..t.clone() })
            }
            Ty::List(_) | Ty::Dict(..) => {
                let sizes = &mut self.sizes;
                of_any_size(ty, &mut |each| {
                    let var = sizes.elsewhere(name);
                    Size::var(if each { var.in_each() } else { var })
                })
            }
            Ty::Tuple(ts) => Ty::Tuple(ts.iter().map(|t| self.of_later(name, t)).collect()),
            Ty::Struct(s) => {
                let fields = s.fields.iter().map(|(n, t)| (n.clone(), self.of_later(n, t))).collect();
                Ty::Struct(Arc::new(StructTy { fields, ..StructTy::clone(s) }))
            }
            Ty::FnRef(r) => {
                let captures = r.captures.iter().map(|(n, t)| (n.clone(), self.of_later(n, t))).collect();
                Ty::FnRef(Arc::new(FnRefTy { captures, ..FnRefTy::clone(r) }))
            }
            other => other.clone(),
        }
    }
}

/// What all values that a variable may get have in common for functions that read it later.
fn kind_of(ty: &Ty) -> Ty {
    let none = Size::constant(0);
    subst_ty(&of_any_size(ty, &mut |_| none.clone()), &mut |_| Some(none.clone()))
}

/// A function value that was made, and a variable that it reads whenever it is called.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Held {
    /// With the type that the function was checked with.
    pub read: GlobalKey,
    /// As messages call the function.
    pub what: Arc<str>,
    pub head: Span,
}

/// What the instances among these read that are values of function types.
pub fn held(db: &dyn Db, insts: &Insts) -> Vec<Held> {
    let mut bound = Bound::new(db, insts, BTreeMap::new(), &[]);
    made(insts).into_iter().for_each(|id| bound.hold(id));
    bound.now
}

/// Those that are values of function types.
fn made(insts: &Insts) -> BTreeSet<InstId> {
    insts.iter().filter(|(_, r)| r.data.erased.is_some()).map(|(id, _)| *id).collect()
}

/// E0204 for every variable that gets a value of another type than a function reads that was made before. `before`:
/// what functions read that inputs before this program have made.
pub fn disagreements(db: &dyn Db, insts: &Insts, mains: &[Main], before: &[Held]) -> Vec<Diagnostic> {
    let made = made(insts);
    if made.is_empty() && before.is_empty() {
        return vec![];
    }
    let mut bound = Bound::new(db, insts, makers(insts, &made), before);
    for main in mains {
        bound.main = Some(main);
        bound.stmts(&main.checked.inst.body);
    }
    bound.out
}

/// For each function which function values calling it makes.
fn makers(insts: &Insts, made: &BTreeSet<InstId>) -> BTreeMap<InstId, BTreeSet<InstId>> {
    let mut callers: BTreeMap<InstId, Vec<InstId>> = BTreeMap::new();
    for (id, inst) in insts {
        inst.requests().for_each(|r| callers.entry(r.inst).or_default().push(*id));
    }
    let mut out: BTreeMap<InstId, BTreeSet<InstId>> = BTreeMap::new();
    for one in made {
        let mut work = vec![*one];
        while let Some(id) = work.pop() {
            if out.entry(id).or_default().insert(*one) {
                work.extend(callers.get(&id).into_iter().flatten());
            }
        }
    }
    out
}

/// The statements of module bodies in the order in which they run.
struct Bound<'a> {
    db: &'a dyn Db,
    insts: &'a Insts<'a>,
    makers: BTreeMap<InstId, BTreeSet<InstId>>,
    main: Option<&'a Main<'a>>,
    /// What the functions that have been made read.
    now: Vec<Held>,
    seen: BTreeSet<InstId>,
    out: Vec<Diagnostic>,
}

impl<'a> Bound<'a> {
    fn new(
        db: &'a dyn Db,
        insts: &'a Insts<'a>,
        makers: BTreeMap<InstId, BTreeSet<InstId>>,
        before: &[Held],
    ) -> Bound<'a> {
        Bound { db, insts, makers, main: None, now: before.to_vec(), seen: BTreeSet::new(), out: vec![] }
    }

    fn stmts(&mut self, stmts: &[TStmt]) {
        for stmt in stmts {
            let (mut exprs, mut blocks) = (vec![], vec![]);
            each_part(stmt, &mut |e| exprs.push(e), &mut |b| blocks.push(b));
            exprs.into_iter().for_each(|e| self.made_by(e));
            if matches!(stmt, TStmt::While { .. } | TStmt::ForRange { .. } | TStmt::ForEach { .. }) {
                // What a turn makes the next one has.
                blocks.iter().for_each(|b| tessera_core::walk::each_expr_in(b, &mut |e| self.made_at(e)));
            }
            if let TStmt::SetGlobal(id, value) = stmt {
                self.set(*id, value);
            }
            blocks.into_iter().for_each(|b| self.stmts(b));
        }
    }

    fn made_by(&mut self, e: &TExpr) {
        each_expr(e, &mut |e| self.made_at(e));
    }

    fn made_at(&mut self, e: &TExpr) {
        let Some(main) = self.main else { return };
        for id in called(e) {
            let made: Vec<InstId> =
                self.makers.get(&main.callees[id.0 as usize]).into_iter().flatten().copied().collect();
            made.into_iter().for_each(|id| self.hold(id));
        }
    }

    /// From here on there may be this function.
    fn hold(&mut self, id: InstId) {
        let Some(function) = self.insts.get(&id).filter(|_| self.seen.insert(id)) else { return };
        let Some(sig) = fns::find_sig(self.db, function.data.item, function.data.start) else { return };
        let what: Arc<str> = if sig.lambda { "the lambda".into() } else { format!("`{}`", sig.name).into() };
        let (mut known, mut work) = (BTreeSet::new(), vec![id]);
        while let Some(id) = work.pop() {
            let (true, Some(inst)) = (known.insert(id), self.insts.get(&id)) else { continue };
            work.extend(inst.requests().map(|r| r.inst));
            let mut reads: Vec<GlobalKey> =
                inst.checked.reads.iter().map(|(key, ty)| GlobalKey { ty: ty.clone(), ..key.clone() }).collect();
            // What a variable is that is no more than its type is not read.
            if let Some(f) = fns::find(self.db, inst.data.item, inst.data.start) {
                let of_type = |t: &Ty| matches!(t, Ty::FnRef(_) | Ty::DType(_) | Ty::Mesh(_) | Ty::ShardSpec(_));
                let globals = inst.data.globals.iter().filter(|g| f.free.contains(&g.name) && of_type(&g.ty));
                reads.extend(globals.map(|g| GlobalKey { ty: g.ty.clone(), ..g.key() }));
            }
            self.now.extend(reads.into_iter().map(|read| Held { read, what: what.clone(), head: sig.head }));
        }
    }

    fn set(&mut self, id: GlobalId, value: &TExpr) {
        let Some(main) = self.main else { return };
        let key = &main.checked.tables.globals[id.0 as usize];
        let other = |held: &&Held| {
            let read = &held.read;
            read.module == key.module
                && read.name == key.name
                && kind_of(&read.ty) != kind_of(&value.ty)
                && !(super::types::has_unknown(&read.ty) || super::types::has_unknown(&value.ty))
        };
        let Some(Held { read, what, head }) = self.now.iter().find(other) else { return };
        let name = &read.name;
        let (was, is) = (read.ty.to_string(), value.ty.to_string());
        let is = if was == is { "another one".to_owned() } else { format!("`{is}`") };
        let text =
            format!("{what} was made a function value while `{name}` was `{was}`, and here `{name}` becomes {is}");
        let d = Diagnostic::new(Code::E0204, value.span, text)
            .with_label(*head, format!("this reads `{name}` whenever it is called"))
            .note("a value of a function type is checked once, where it is made; from then on what it reads may have other numbers and sizes, and no other type")
            .help("give the new value another name");
        self.out.push(d);
    }
}
