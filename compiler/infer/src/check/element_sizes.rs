//! The sizes of elements of lists. One element has sizes of its own; what they tell of other sizes: a list may be empty,
//! and then another one tells them, or nothing does.

use super::cx::{Cx, SizeSources, int};
use super::env::Slot;
use super::iterate::int_test;
use super::size_checks::fault;
use std::collections::BTreeMap;
use std::sync::Arc;
use tessera_base::{ItemId, Size, SizeVar, Span};
use tessera_core::ir::*;
use tessera_core::ty::{FnRefTy, StructTy, Ty};
use tessera_grammar::ast::{Arg, CmpOp, Expr, ExprKind, FieldDef};

/// What a search gives that has found nothing: no size is that number.
const NOTHING: i64 = i64::MIN;

/// Whether the value of a size is looked for in lists: there may be none.
pub fn is_search(source: &TExpr) -> bool {
    matches!(source.kind, TKind::Block { .. })
}

impl Cx<'_> {
    /// The type of one element of a list, as [`SizeCx::element`](tessera_types::sizes::SizeCx::element) has it. A size of
    /// a struct is one for all of it, in its lists too.
    pub fn element(&mut self, ty: &Ty) -> Ty {
        self.opened_in(ty, &mut BTreeMap::new())
    }

    fn opened_in(&mut self, ty: &Ty, made: &mut BTreeMap<SizeVar, Size>) -> Ty {
        match ty {
            Ty::List(_) | Ty::Dict(..) => ty.clone(),
            Ty::Tuple(ts) => Ty::Tuple(ts.iter().map(|t| self.opened_in(t, made)).collect()),
            Ty::Struct(s) => {
                let Some(def) = self.struct_def(ItemId(s.item)) else { return ty.clone() };
                let of = |(f, (name, t)): (&FieldDef, &(Arc<str>, Ty))| (name.clone(), self.open_field(&f.ty, t, made));
                let fields = def.fields.iter().zip(&s.fields).map(of).collect();
                Ty::Struct(Arc::new(StructTy { fields, ..StructTy::clone(s) }))
            }
            Ty::FnRef(r) => {
                let captures = r.captures.iter().map(|(name, t)| (name.clone(), self.opened_in(t, made))).collect();
                Ty::FnRef(Arc::new(FnRefTy { captures, ..FnRefTy::clone(r) }))
            }
            other => self.sizes.opened(other, made),
        }
    }

    /// A field of one element: dims that the struct's definition writes, in lists too, are sizes of the struct.
    fn open_field(&mut self, declared: &Expr, ty: &Ty, made: &mut BTreeMap<SizeVar, Size>) -> Ty {
        let parts: &[Arg] = match &declared.kind {
            ExprKind::Index { index, .. } => index,
            _ => &[],
        };
        match (parts, ty) {
            ([e], Ty::List(t)) => Ty::List(Box::new(self.open_in_list(&e.value, t, made))),
            ([_, e], Ty::Dict(k, t)) => Ty::Dict(k.clone(), Box::new(self.open_in_list(&e.value, t, made))),
            _ => self.opened_in(ty, made),
        }
    }

    fn open_in_list(&mut self, declared: &Expr, ty: &Ty, made: &mut BTreeMap<SizeVar, Size>) -> Ty {
        match (&declared.kind, ty) {
            (ExprKind::Index { index, .. }, Ty::Tuple(ts)) if index.len() == ts.len() => {
                Ty::Tuple(index.iter().zip(ts).map(|(e, t)| self.open_in_list(&e.value, t, made)).collect())
            }
            (ExprKind::Index { .. }, Ty::Tensor(_) | Ty::Struct(_)) => self.opened_in(ty, made),
            (ExprKind::Index { .. }, Ty::List(_) | Ty::Dict(..)) => self.open_field(declared, ty, made),
            // A type parameter may stand for elements of several sizes.
            _ => ty.clone(),
        }
    }

    /// Learns sizes from the elements of a list or the values of a dict, where nothing better tells them.
    pub fn sources_in(&mut self, list: &TExpr, element: &Ty, entry: bool) {
        let span = list.span;
        let var = self.temp("element", element.clone(), span);
        let outer = (std::mem::take(&mut self.size_sources), std::mem::take(&mut self.dim_sources));
        let read = TExpr { kind: TKind::Local(var), ty: element.clone(), span };
        self.size_sources_of(element, &read, entry);
        let mut told = self.size_sources.clone();
        if super::size_checks::has_composed(element) {
            // N of `N + K` follows from an element where something else tells K.
            let sure = |(v, (e, _)): &(&SizeVar, &(TExpr, bool))| !told.contains_key(*v) && !is_search(e);
            let known: SizeSources = outer.0.iter().filter(sure).map(|(v, s)| (v.clone(), s.clone())).collect();
            self.size_sources.extend(known.clone());
            self.size_sources_of(element, &read, entry);
            let mut all = std::mem::take(&mut self.size_sources);
            all.retain(|v, _| !told.contains_key(v) && !known.contains_key(v));
            told.extend(all);
        }
        self.size_sources = outer.0;
        let dims = std::mem::replace(&mut self.dim_sources, outer.1);
        for (size, (value, _)) in told.into_iter().filter(|(size, _)| !size.each) {
            let source = match self.size_sources.get(&size).cloned() {
                None => self.search(list, var, value),
                Some(_) if self.late_sizes.contains_key(&size) => continue,
                Some((first, _)) if is_search(&first) => {
                    let search = self.search(list, var, value);
                    self.first_or(first, search)
                }
                Some(_) => continue,
            };
            self.size_sources.insert(size, (source, entry));
        }
        let each = |size: &Size| size.vars().iter().any(|v: &SizeVar| v.each);
        for (size, value) in dims.into_iter().filter(|(size, _)| !each(size)) {
            if !self.dim_sources.contains_key(&size) {
                let source = self.search(list, var, value);
                self.dim_sources.insert(size, source);
            }
        }
    }

    /// The value that the first element gives of which there is one.
    fn search(&mut self, list: &TExpr, var: LocalId, value: TExpr) -> TExpr {
        let span = list.span;
        let (found, local) = self.found(span);
        let mut body =
            vec![TStmt::If { test: missing(&found), then: vec![TStmt::Set(local, value)], otherwise: vec![] }];
        let each = match &list.ty {
            Ty::Dict(key, element) => {
                let key = self.temp("key", (**key).clone(), span);
                let at = TExpr { kind: TKind::Local(key), ty: self.locals[key.0 as usize].ty.clone(), span };
                let kind = TKind::Index(Box::new(list.clone()), Box::new(at));
                body.insert(0, TStmt::Set(var, TExpr { kind, ty: (**element).clone(), span }));
                TStmt::ForEach { var: key, iter: list.clone(), body, span }
            }
            _ => TStmt::ForEach { var, iter: list.clone(), body, span },
        };
        let stmts = vec![TStmt::Set(local, int(NOTHING, span)), each];
        TExpr { ty: found.ty.clone(), span, kind: TKind::Block { stmts, value: Box::new(found) } }
    }

    /// What one search finds, else another one.
    fn first_or(&mut self, first: TExpr, second: TExpr) -> TExpr {
        let then = |local| vec![TStmt::Set(local, second)];
        self.unless_found(first, then)
    }

    /// In words why a search for the value of a size finds none.
    pub fn not_found(&self, search: &TExpr, size: &str) -> String {
        let mut looks = false;
        let mut lists: Vec<String> = vec![];
        tessera_core::walk::each_expr(search, &mut |e| {
            if let TKind::Block { stmts, .. } = &e.kind {
                looks |= stmts.iter().any(|s| matches!(s, TStmt::ForEach { .. }));
            }
            if let Some(name) = self.holder_of_lists(e)
                && !lists.contains(&name)
            {
                lists.push(name);
            }
        });
        match looks {
            true => format!("no elements are in {}", lists.join(" and ")),
            false => format!("what {size} is multiplied with is 0"),
        }
    }

    /// What a search finds; where it finds nothing the program stops.
    pub fn found_or_stop(&mut self, size: &str, search: TExpr) -> TExpr {
        let span = search.span;
        let of = self.func.as_ref().map_or(String::new(), |f| format!(" of `{}`", f.f.sig.name));
        let why = self.not_found(&search, size);
        let text = format!("nothing tells the size {size}{of}: {why}\nthe first value that has it tells it");
        let stop = fault(text, vec![], span);
        self.unless_found(search, |_| vec![TStmt::Expr(stop)])
    }

    /// A value that there is where something is not 0.
    pub fn where_not_zero(&mut self, something: TExpr, value: TExpr) -> TExpr {
        let span = value.span;
        let (found, local) = self.found(span);
        let test = int_test(CmpOp::Ne, something, int(0, span), span);
        let then = vec![TStmt::Set(local, value)];
        let stmts = vec![TStmt::Set(local, int(NOTHING, span)), TStmt::If { test, then, otherwise: vec![] }];
        TExpr { ty: found.ty.clone(), span, kind: TKind::Block { stmts, value: Box::new(found) } }
    }

    fn unless_found(&mut self, search: TExpr, otherwise: impl FnOnce(LocalId) -> Vec<TStmt>) -> TExpr {
        let span = search.span;
        let (found, local) = self.found(span);
        let then = otherwise(local);
        let stmts = vec![TStmt::Set(local, search), TStmt::If { test: missing(&found), then, otherwise: vec![] }];
        TExpr { ty: found.ty.clone(), span, kind: TKind::Block { stmts, value: Box::new(found) } }
    }

    fn found(&mut self, span: Span) -> (TExpr, LocalId) {
        let local = self.temp("size", Ty::int(), span);
        (TExpr { kind: TKind::Local(local), ty: Ty::int(), span }, local)
    }

    /// Where the lists are that an expression reads, if it is a variable of the program.
    fn holder_of_lists(&self, e: &TExpr) -> Option<String> {
        let slot = match e.kind {
            TKind::Local(id) => Slot::Local(id),
            TKind::Global(id) => Slot::Global(id),
            _ => return None,
        };
        let (name, _) = self.env.bound().find(|(_, b)| b.slot == slot)?;
        Some(if matches!(e.ty, Ty::List(_) | Ty::Dict(..)) {
            format!("`{name}`")
        } else {
            format!("the lists of `{name}`")
        })
    }
}

fn missing(found: &TExpr) -> TExpr {
    int_test(CmpOp::Eq, found.clone(), int(NOTHING, found.span), found.span)
}
