//! What the types of values promise about sizes and nothing proves: statements that check it when
//! the program gets there.
//!
//! A type that is printed is true. Where values meet declared types (arguments and parameters, results,
//! annotated names, fields, elements of containers) each dim is compared with the value of its declared
//! size: one comparison of ints, before anything reads the value. Of a function's parameters this happens
//! at its entry, from the parameters alone, so that it does not matter who calls.

use super::cx::{Cx, SizeSources, int, string};
use super::element_sizes::is_search;
use super::iterate::int_test;
use super::late_sizes::{is_missing, linear_in};
use super::symbolic::dim;
use std::collections::BTreeMap;
use tessera_base::{Size, SizeVar, Span, TensorType};
use tessera_core::ir::*;
use tessera_core::sizes::vars_of;
use tessera_core::ty::Ty;
use tessera_grammar::ast::{BinOp, CmpOp};

/// A value with the type that it must have.
pub struct SizeClaim {
    /// In words: "the argument `x` of `f`", "the value of `x`".
    pub what: String,
    pub declared: Ty,
    /// Its type as far as it is known: tensors in containers may be of any rank and element type.
    pub found: Ty,
    /// Can be read again without effects.
    pub value: TExpr,
    /// Where the type is declared.
    pub at: Span,
    /// Whether ints are compared too, and not only used.
    pub ints: bool,
    /// It has its sizes before the others come to it: what its elements tell, they are compared with.
    pub before: bool,
}

/// An int that a type says the value of.
#[derive(Clone)]
struct Leaf {
    size: Size,
    read: TExpr,
    /// "dim 0 of the argument `x` of `f`"
    what: String,
    /// The tensor that it belongs to.
    tensor: Option<(TExpr, TensorType)>,
    at: Span,
}

/// Elements of a container.
#[derive(Clone)]
struct Elements {
    what: String,
    element: Ty,
    found: Ty,
    value: TExpr,
    at: Span,
    ints: bool,
}

/// The sizes of which the value is known only from the values that are checked.
#[derive(Clone, Default)]
struct Known {
    /// In which int each is kept; with `true`, -1 stands for "none seen yet".
    values: BTreeMap<Size, (TExpr, bool)>,
    /// Each occurs this often.
    count: BTreeMap<Size, usize>,
}

impl Cx<'_> {
    /// Statements that stop the program unless the sizes in the types of values are those of the values.
    /// Empty where there is nothing to compare.
    pub fn check_sizes(&mut self, parts: Vec<SizeClaim>) -> Vec<TStmt> {
        if parts.is_empty() {
            return vec![];
        }
        let (told, locals) = (self.size_sources.clone(), self.locals.len());
        let (stmts, ()) = self.block(|cx| {
            let (mut known, mut searched) = (Known::default(), SizeSources::new());
            parts.iter().for_each(|p| known.count_in(&p.declared));
            // What tells a size may stand behind what is made of it.
            let rounds = if parts.iter().any(|p| has_composed(&p.declared)) { 2 } else { 1 };
            for _ in 0..rounds {
                for p in &parts {
                    let mut found = std::mem::take(&mut searched);
                    cx.size_sources_of(&p.declared, &p.value, false);
                    if p.before {
                        // What a new size is, the values say: `Tensor[2*L]` of 6 elements that L is 3.
                        let elements = cx.size_sources.iter().filter(|(_, (e, _))| is_search(e));
                        found.extend(elements.map(|(v, source)| (v.clone(), source.clone())));
                    } else {
                        cx.size_sources.extend(found.clone());
                    }
                    // What was told before is what a value is compared with, not what it tells.
                    cx.size_sources.extend(told.iter().map(|(v, source)| (v.clone(), source.clone())));
                    searched = found;
                }
            }
            known.of_untold(cx);
            cx.solved_at_least_zero(&told, &parts);
            let mut late = Found::default();
            for p in parts {
                let mut found = Found::default();
                found.collect((&p.declared, &p.found), &p.value, (&p.what, p.at, p.ints));
                // What is made of several sizes that are kept comes when they are told.
                let several = |size: &Size| cx.kept_in(size).len() > 1;
                late.leaves.extend(found.leaves.extract_if(.., |leaf| several(&leaf.size)));
                late.lists.extend(found.lists.extract_if(.., |list| sizes_of(&list.element).iter().any(several)));
                cx.compare_all(found, &mut known);
            }
            // A list may tell what a dim needs, and the other way round.
            let lists = if late.leaves.is_empty() { vec![] } else { late.lists.clone() };
            cx.compare_all(Found { lists, ..Found::default() }, &mut known);
            cx.compare_all(late, &mut known);
        });
        self.size_sources = told;
        self.locals[locals..].iter_mut().for_each(|v| v.compares = true);
        stmts
    }

    /// Of a new size that is solved for, such as L of `Tensor[L + 3]`, there may be none.
    fn solved_at_least_zero(&mut self, told: &SizeSources, parts: &[SizeClaim]) {
        let Some(at) = parts.first().map(|p| p.at) else { return };
        let solved = |(v, (e, _)): &(&SizeVar, &(TExpr, bool))| {
            v.natural && !told.contains_key(*v) && matches!(e.kind, TKind::Arith { .. })
        };
        let new: Vec<SizeVar> = self.size_sources.iter().filter(solved).map(|(v, _)| v.clone()).collect();
        let of = parts.iter().map(|p| p.what.clone()).collect::<Vec<_>>().join(" and ");
        for var in new {
            self.at_least_zero(&Size::var(var), &of, at);
        }
    }

    fn compare_all(&mut self, found: Found, known: &mut Known) {
        let Found { leaves, lists, untyped } = found;
        self.out.extend(untyped.into_iter().map(TStmt::Expr));
        // What tells a size comes before what it is compared with.
        let (tell, compare): (Vec<Leaf>, Vec<Leaf>) = leaves.into_iter().partition(|l| self.tells(l));
        // So does a size that stands alone before one that is made of it.
        let (plain, composed): (Vec<Leaf>, Vec<Leaf>) = compare.into_iter().partition(|l| l.size.as_var().is_some());
        for leaf in tell.into_iter().chain(plain).chain(composed) {
            self.compare_leaf(leaf, known);
        }
        for list in lists {
            self.compare_elements(list, known);
        }
    }

    /// Whether the value of the size is read from here.
    fn tells(&self, leaf: &Leaf) -> bool {
        let source = leaf.size.as_var().and_then(|v| self.size_sources.get(v));
        source.is_some_and(|(e, _)| same_read(e, &leaf.read))
    }

    fn compare_leaf(&mut self, leaf: Leaf, known: &mut Known) {
        if self.tells(&leaf) {
            return;
        }
        let span = leaf.at;
        if let Some(solved) = self.late_size_in(&leaf.size)
            && self.tell_solved(&leaf, solved)
        {
            return;
        }
        if let Some(expected) = self.sure_value(&leaf.size, span).or_else(|| self.known_value(&leaf.size, known, span))
        {
            return self.write_comparison(leaf, expected);
        }
        self.compare_solved(&leaf);
        if known.count.get(&leaf.size).is_none_or(|n| *n < 2) {
            return;
        }
        match known.values.get(&leaf.size).cloned() {
            None => {
                let local = self.temp(&leaf.size.to_string(), Ty::int(), span);
                let kept = TExpr { kind: TKind::Local(local), ty: Ty::int(), span };
                self.out.push(TStmt::Set(local, leaf.read));
                known.values.insert(leaf.size, (kept, false));
            }
            Some((kept, false)) => self.write_comparison(leaf, kept),
            Some((kept, true)) => {
                let TKind::Local(local) = kept.kind else { return };
                let none = int_test(CmpOp::Lt, kept.clone(), int(0, span), span);
                let read = leaf.read.clone();
                let (otherwise, ()) = self.block(|cx| cx.write_comparison(leaf, kept));
                self.out.push(TStmt::If { test: none, then: vec![TStmt::Set(local, read)], otherwise });
            }
        }
    }

    /// `2*N` in an element of a list, where nothing else tells N: that there is one.
    fn compare_solved(&mut self, leaf: &Leaf) {
        if leaf.size.as_var().is_some() || leaf.size.as_const().is_some() {
            return;
        }
        let outer = self.size_sources.clone();
        self.size_sources.retain(|v, (e, _)| !v.each && !is_search(e));
        let before: Vec<SizeVar> = self.size_sources.keys().cloned().collect();
        self.size_sources_of(&Ty::Int(Some(leaf.size.clone())), &leaf.read, false);
        if let Some(expected) = self.size_value(&leaf.size, leaf.at) {
            self.write_comparison(leaf.clone(), expected);
        }
        let new: Vec<SizeVar> =
            self.size_sources.keys().filter(|v| v.natural && !before.contains(v)).cloned().collect();
        for var in new {
            self.at_least_zero(&Size::var(var), &leaf.what, leaf.at);
        }
        self.size_sources = outer;
    }

    fn kept_in(&self, size: &Size) -> Vec<SizeVar> {
        size.vars().into_iter().filter(|v| self.late_sizes.contains_key(v)).collect()
    }

    /// The size of which the first value with it tells the number, in a size that is made of it: which, and
    /// `a * size + b`.
    fn late_size_in(&self, size: &Size) -> Option<(SizeVar, Size, Size)> {
        if size.as_var().is_some() || self.late_sizes.is_empty() {
            return None;
        }
        let kept = self.kept_in(size);
        let follows = |v: &&SizeVar| self.late_sizes.get(*v).is_some_and(|u| u.follows);
        let var = kept.iter().find(follows).or(kept.first())?;
        let (a, b) = linear_in(size, var)?;
        Some((var.clone(), a, b))
    }

    /// `2*N` where nothing else tells N for sure: it tells N where nothing did, and is compared with it else. Of `N*K` only
    /// where K is told. Says whether that can be done.
    fn tell_solved(&mut self, leaf: &Leaf, solved: (SizeVar, Size, Size)) -> bool {
        let vars = self.kept_in(&leaf.size);
        let outer = (self.size_sources.clone(), self.late_sizes.clone());
        let (local, mut test) = (self.late_sizes.get(&solved.0).map(|u| u.local), None);
        for var in &vars {
            let Some(late) = self.late_sizes.remove(var) else { continue };
            let kept = TExpr { kind: TKind::Local(late.local), ty: Ty::int(), span: leaf.at };
            if *var != solved.0 {
                let there = int_test(CmpOp::Ge, kept.clone(), int(0, leaf.at), leaf.at);
                test = Some(test.map_or(there.clone(), |test| both(test, there)));
            }
            self.size_sources.insert(var.clone(), (kept, false));
        }
        let (stmts, told) = self.block(|cx| local.is_some_and(|local| cx.write_solved(leaf, local, solved)));
        match test {
            Some(test) if told => self.out.push(TStmt::If { test, then: stmts, otherwise: vec![] }),
            _ => self.out.extend(stmts),
        }
        (self.size_sources, self.late_sizes) = outer;
        told
    }

    /// Compares a dim `a * var + b` with the value's, whose `var` is kept: set from that where nothing told it before and it
    /// fits. `false` where `a`, `b` or the dim has no value here.
    fn write_solved(&mut self, leaf: &Leaf, local: LocalId, (var, a, b): (SizeVar, Size, Size)) -> bool {
        let (at, span) = (leaf.at, leaf.at);
        let kept = TExpr { kind: TKind::Local(local), ty: Ty::int(), span };
        let values = (self.size_value(&leaf.size, span), self.size_value(&a, span), self.size_value(&b, span));
        let (Some(whole), Some(by), Some(rest)) = values else { return false };
        let mut missing = is_missing(local, span);
        let mut unfit = int_test(CmpOp::Lt, kept, int(0, span), span);
        if a.as_const().is_none() {
            let nonzero = int_test(CmpOp::Ne, by.clone(), int(0, span), span);
            missing = both(missing, nonzero.clone());
            unfit = both(unfit, nonzero);
        }
        let arith = |op, x: TExpr, y: TExpr| TExpr {
            kind: TKind::Arith { op, left: Box::new(x), right: Box::new(y), int_operands: true },
            ty: Ty::int(),
            span,
        };
        let value = arith(BinOp::FloorDiv, arith(BinOp::Sub, leaf.read.clone(), rest), by);
        let (otherwise, ()) = self.block(|cx| cx.write_comparison(leaf.clone(), whole.clone()));
        self.out.push(TStmt::If { test: missing, then: vec![TStmt::Set(local, value)], otherwise });
        let mut lines = vec![format!("{} is {{}}, and no {} makes {} that", leaf.what, var.name, leaf.size)];
        let mut values = vec![leaf.read.clone()];
        both_types(&leaf.tensor, &mut lines, &mut values);
        for test in [int_test(CmpOp::Ne, leaf.read.clone(), whole, at), unfit] {
            let then = vec![TStmt::Expr(fault(lines.join("\n"), values.clone(), at))];
            self.out.push(TStmt::If { test, then, otherwise: vec![] });
        }
        true
    }

    /// The value of a size that is made of such as the values that are checked have told already: `J + 1` beside `J`.
    fn known_value(&mut self, size: &Size, known: &Known, span: Span) -> Option<TExpr> {
        if size.as_var().is_some() {
            return None;
        }
        let outer = self.size_sources.clone();
        let mut told = true;
        for var in size.vars() {
            let own = Size::var(var.clone());
            match known.values.get(&own) {
                Some((kept, _)) => drop(self.size_sources.insert(var, (kept.clone(), false))),
                None => told &= self.sure_value(&own, span).is_some(),
            }
        }
        let value = told.then(|| self.size_value(size, span)).flatten();
        self.size_sources = outer;
        value
    }

    fn write_comparison(&mut self, leaf: Leaf, expected: TExpr) {
        let Leaf { size, read, what, tensor, at } = leaf;
        let mut lines = vec![format!("{what} is {{}} where {{}} is declared")];
        let mut values = vec![read.clone(), expected.clone()];
        both_types(&tensor, &mut lines, &mut values);
        if size.as_const().is_none() {
            for var in size.vars() {
                if let Some(first) = self.told_first(&var, at) {
                    lines.push(format!("{} is {{}}: so the first value has it", var.name));
                    values.push(first);
                    continue;
                }
                let Some(value) = self.sure_value(&Size::var(var.clone()), at) else { continue };
                lines.push(format!("{} is {{}}{}", var.name, self.told_by(&var)));
                values.push(value);
            }
        }
        if self.local.is_some() {
            lines.push("in per-device code sizes are those of blocks".into());
        }
        let test = int_test(CmpOp::Ne, read, expected, at);
        let then = vec![TStmt::Expr(fault(lines.join("\n"), values, at))];
        self.out.push(TStmt::If { test, then, otherwise: vec![] });
    }

    /// ", from `x`"
    fn told_by(&self, var: &SizeVar) -> String {
        let mut name = None;
        if let Some((e, _)) = self.size_sources.get(var) {
            tessera_core::walk::each_expr(e, &mut |e| {
                if let TKind::Local(l) = e.kind {
                    name = self.locals.get(l.0 as usize).map(|v| v.name.clone());
                }
            });
        }
        match name {
            Some(name) if name != var.name => format!(", from `{name}`"),
            _ => String::new(),
        }
    }

    fn compare_elements(&mut self, list: Elements, known: &mut Known) {
        let Elements { what, element, found, value, at, ints } = list;
        // Sizes that are others in each element are told by each element anew.
        let outer = known.clone();
        known.of_one_element(&element);
        if known.matters(self, &element, &found) {
            self.keep_uniform(&element, at, known);
            let is_dict = matches!(value.ty, Ty::Dict(..));
            let var_ty = match &value.ty {
                Ty::Dict(key, _) => (**key).clone(),
                _ => found.clone(),
            };
            let var = self.temp(if is_dict { "key" } else { "element" }, var_ty.clone(), at);
            let read = TExpr { kind: TKind::Local(var), ty: var_ty, span: at };
            let (body, ()) = self.block(|cx| {
                let read = match is_dict {
                    false => read,
                    true => {
                        let kind = TKind::Index(Box::new(value.clone()), Box::new(read));
                        cx.save("element", TExpr { kind, ty: found.clone(), span: at })
                    }
                };
                let mut inside = Found::default();
                inside.collect((&element, &found), &read, (&format!("an element of {what}"), at, ints));
                cx.compare_all(inside, known);
            });
            self.out.push(TStmt::ForEach { var, iter: value, body, span: at });
        }
        known.values.retain(|s, _| !s.vars().iter().any(|v| v.each));
        known.values.extend(outer.values);
        known.count = outer.count;
    }

    /// A size of a whole list is kept from the first element on that there is.
    fn keep_uniform(&mut self, element: &Ty, at: Span, known: &mut Known) {
        for size in sizes_of(element) {
            let own = size.vars().iter().any(|v| v.each);
            let compared = known.count.get(&size).is_some_and(|n| *n > 1);
            if own || !compared || known.values.contains_key(&size) || self.sure_value(&size, at).is_some() {
                continue;
            }
            let local = self.temp(&size.to_string(), Ty::int(), at);
            self.out.push(TStmt::Set(local, int(-1, at)));
            known.values.insert(size, (TExpr { kind: TKind::Local(local), ty: Ty::int(), span: at }, true));
        }
    }

    /// Statements that stop the program unless sizes that a signature writes are sizes: `Tensor[N - 2]` says
    /// that N is at least 2. `of`: what has the size, in words.
    pub fn at_least_zero(&mut self, size: &Size, of: &str, at: Span) {
        let Some(value) = self.sure_value(size, at) else { return };
        let mut lines = vec![format!("{of} has the size {size}, which is {{}}")];
        let mut values = vec![value.clone()];
        for var in size.vars() {
            let Some(value) = self.sure_value(&Size::var(var.clone()), at) else { continue };
            lines.push(format!("{} is {{}}{}", var.name, self.told_by(&var)));
            values.push(value);
        }
        let test = int_test(CmpOp::Lt, value, int(0, at), at);
        let then = vec![TStmt::Expr(fault(lines.join("\n"), values, at))];
        self.out.push(TStmt::If { test, then, otherwise: vec![] });
    }
}

impl Known {
    /// Sizes that the first value with them tells: what has them is compared, however often.
    fn of_untold(&mut self, cx: &Cx) {
        for (var, late) in &cx.late_sizes {
            let size = Size::var(var.clone());
            let kept = TExpr { kind: TKind::Local(late.local), ty: Ty::int(), span: Span::NONE };
            self.values.insert(size.clone(), (kept, true));
            self.count.insert(size, 2);
        }
    }

    fn count_in(&mut self, ty: &Ty) {
        for size in sizes_of(ty) {
            self.count_size(size);
        }
        // Elements of a container are several.
        each_container(ty, &mut |element| {
            for size in sizes_of(element) {
                self.count_size(size);
            }
        });
    }

    /// A size is needed for those that are made of it, too.
    fn count_size(&mut self, size: Size) {
        if size.as_var().is_none() {
            for var in size.vars() {
                *self.count.entry(Size::var(var)).or_insert(0) += 1;
            }
        }
        *self.count.entry(size).or_insert(0) += 1;
    }

    /// Counts sizes that are others in each element as one element has them.
    fn of_one_element(&mut self, element: &Ty) {
        self.count.retain(|s, _| !s.vars().iter().any(|v| v.each));
        for size in sizes_of(element).into_iter().filter(|s| s.vars().iter().any(|v| v.each)) {
            self.count_size(size);
        }
    }

    /// Whether something in the elements has to be compared.
    fn matters(&self, cx: &mut Cx, element: &Ty, found: &Ty) -> bool {
        let compared =
            |s: &Size, cx: &mut Cx| self.count.get(s).is_some_and(|n| *n > 1) || cx.sure_value(s, Span::NONE).is_some();
        let untyped = super::coerce::holds_any(found) && !super::coerce::holds_any(element);
        let composed = |s: &Size| s.as_var().is_none() && s.as_const().is_none();
        untyped || sizes_of(element).iter().any(composed) || sizes_of(element).iter().any(|s| compared(s, cx))
    }
}

/// Whether a dim in a type is made of others.
pub fn has_composed(ty: &Ty) -> bool {
    sizes_of(ty).iter().any(|s| s.as_var().is_none() && s.as_const().is_none())
}

/// Every dim in a type.
pub fn sizes_of(ty: &Ty) -> Vec<Size> {
    let mut out = vec![];
    match ty {
        Ty::Tensor(t) => out.extend(t.shape.iter().cloned()),
        Ty::List(t) | Ty::Dict(_, t) => out.extend(sizes_of(t)),
        Ty::Tuple(ts) => ts.iter().for_each(|t| out.extend(sizes_of(t))),
        Ty::Struct(s) => s.fields.iter().for_each(|(_, t)| out.extend(sizes_of(t))),
        Ty::FnRef(r) => r.captures.iter().for_each(|(_, t)| out.extend(sizes_of(t))),
        _ => {}
    }
    out
}

/// Calls `f` on the element type of every container in a type.
fn each_container(ty: &Ty, f: &mut dyn FnMut(&Ty)) {
    match ty {
        Ty::List(t) | Ty::Dict(_, t) => {
            f(t);
            each_container(t, f);
        }
        Ty::Tuple(ts) => ts.iter().for_each(|t| each_container(t, f)),
        Ty::Struct(s) => s.fields.iter().for_each(|(_, t)| each_container(t, f)),
        Ty::FnRef(r) => r.captures.iter().for_each(|(_, t)| each_container(t, f)),
        _ => {}
    }
}

/// Whether a type says anything about sizes.
pub fn has_sizes(ty: &Ty) -> bool {
    !sizes_of(ty).is_empty() || !vars_of(ty).is_empty()
}

/// What there is to compare in a value.
#[derive(Default)]
struct Found {
    leaves: Vec<Leaf>,
    lists: Vec<Elements>,
    /// Tensors of which neither rank nor element type is known, as what they must be.
    untyped: Vec<TExpr>,
}

impl Found {
    /// The dims and ints of a value, and the containers in it.
    fn collect(&mut self, (ty, found): (&Ty, &Ty), value: &TExpr, (what, at, ints): (&str, Span, bool)) {
        let value = TExpr { ty: found.clone(), ..value.clone() };
        let part =
            |i: usize, t: &Ty| TExpr { kind: TKind::Field(Box::new(value.clone()), i as u32), ty: t.clone(), span: at };
        match (ty, found) {
            (Ty::Int(Some(size)), _) if ints && size.as_const().is_none() => {
                let what = what.to_owned();
                self.leaves.push(Leaf { size: size.clone(), read: value, what, tensor: None, at });
            }
            (Ty::Tensor(t), _) => {
                if *found == Ty::AnyTensor {
                    let kind = TKind::Check {
                        value: Box::new(value.clone()),
                        name: what.into(),
                        annotation: at,
                        dims: vec![],
                    };
                    self.untyped.push(TExpr { kind, ty: ty.clone(), span: at });
                }
                for (i, size) in t.shape.iter().enumerate() {
                    self.leaves.push(Leaf {
                        size: size.clone(),
                        read: dim(&value, i, size),
                        what: format!("dim {i} of {what}"),
                        tensor: Some((value.clone(), t.clone())),
                        at,
                    });
                }
            }
            (Ty::Tuple(ts), Ty::Tuple(fs)) => {
                for (i, (t, f)) in ts.iter().zip(fs).enumerate() {
                    self.collect((t, f), &part(i, f), (&format!("element {i} of {what}"), at, ints));
                }
            }
            (Ty::Struct(s), Ty::Struct(g)) => {
                for (i, ((name, t), (_, f))) in s.fields.iter().zip(&g.fields).enumerate() {
                    self.collect((t, f), &part(i, f), (&format!("`{name}` of {what}"), at, ints));
                }
            }
            (Ty::FnRef(r), Ty::FnRef(g)) => {
                for (i, ((name, t), (_, f))) in r.captures.iter().zip(&g.captures).enumerate() {
                    self.collect((t, f), &part(i, f), (&format!("`{name}`, which {what} captured"), at, ints));
                }
            }
            (Ty::List(t), Ty::List(f)) | (Ty::Dict(_, t), Ty::Dict(_, f)) if !sizes_of(t).is_empty() => {
                let (element, found) = ((**t).clone(), (**f).clone());
                self.lists.push(Elements { what: what.to_owned(), element, found, value, at, ints });
            }
            _ => {}
        }
    }
}

/// Adds the line with the declared type of a tensor and its own.
fn both_types(tensor: &Option<(TExpr, TensorType)>, lines: &mut Vec<String>, values: &mut Vec<TExpr>) {
    let Some((value, declared)) = tensor else { return };
    let mut shown: Vec<String> = vec!["{}".into(); declared.rank()];
    values.extend((0..declared.rank()).map(|i| dim(value, i, &declared.shape[i])));
    shown.extend(declared.dtype.map(|d| d.to_string()));
    // Which devices have blocks of their own is not what differs.
    let declared = TensorType { sharding: Default::default(), ..declared.clone() };
    lines.push(format!("declared {declared}, and this is Tensor[{}]", shown.join(", ")));
}

fn both(a: TExpr, b: TExpr) -> TExpr {
    let span = a.span;
    TExpr { kind: TKind::Logic { and: true, left: Box::new(a), right: Box::new(b) }, ty: Ty::Bool, span }
}

/// Whether two expressions read the same place.
fn same_read(a: &TExpr, b: &TExpr) -> bool {
    match (&a.kind, &b.kind) {
        (TKind::Local(a), TKind::Local(b)) => a == b,
        (TKind::Global(a), TKind::Global(b)) => a == b,
        (TKind::TensorDim(a, i), TKind::TensorDim(b, j)) => i == j && same_read(a, b),
        (TKind::Field(a, i), TKind::Field(b, j)) => i == j && same_read(a, b),
        _ => false,
    }
}

/// Stops the program with E0708. `text`: the message, then a note on each further line; each `{}` is one of
/// `values`.
pub fn fault(text: String, values: Vec<TExpr>, span: Span) -> TExpr {
    let list = TExpr { kind: TKind::List(values), ty: Ty::List(Box::new(Ty::int())), span };
    super::cx::builtin(Builtin::sizes_differ, vec![string(text, span), list], Ty::None, span)
}
