//! Symbolic values of ints: sizes as values, and values of sizes.

use super::cx::{Cx, int};
use super::element_sizes::is_search;
use super::late_sizes::linear_in;
use std::collections::BTreeSet;
use std::sync::Arc;
use tessera_base::size::Atom;
use tessera_base::{Size, SizeVar, Span};
use tessera_core::ir::*;
use tessera_core::ty::Ty;
use tessera_grammar::ast::{BinOp, CmpOp};
use tessera_ops::numbers::NumberOp;
use tessera_ops::scalar::Kind;

/// The symbolic value of an arithmetic operation on ints.
pub fn arith(op: BinOp, a: &Size, b: &Size) -> Option<Size> {
    if let (Some(a), Some(b)) = (a.as_const(), b.as_const()) {
        // What stops the program has no value.
        let value = NumberOp::arith(op, Kind::I64, false)?.apply(a as u64, b as u64).ok()?;
        return Some(Size::constant(value as i64));
    }
    let out = match op {
        BinOp::Add => a.add(b),
        BinOp::Sub => a.sub(b),
        BinOp::Mul => a.mul(b),
        BinOp::FloorDiv => a.floor_div(b)?,
        BinOp::Mod => a.floor_mod(b)?,
        BinOp::Pow => match b.as_const()? {
            n @ 0..=16 => (0..n).fold(Size::constant(1), |p, _| p.mul(a)),
            _ => return None,
        },
        BinOp::Shl | BinOp::Shr | BinOp::BitAnd | BinOp::BitOr | BinOp::BitXor => return None,
        BinOp::Div | BinOp::MatMul => return None,
    };
    known(out)
}

/// Nothing is known of a value whose form overflowed or grew large, in terms or inside of them.
pub fn known(size: Size) -> Option<Size> {
    let terms = size.terms()?.count();
    (terms <= 24 && size.weight(WEIGHT_MAX) < WEIGHT_MAX).then_some(size)
}

/// Variables and constants that a known size is written with.
const WEIGHT_MAX: usize = 400;

/// What the value of a size may be read from.
#[derive(Clone, Copy, PartialEq)]
enum Sources {
    /// What is there whatever the values are: no element of a list.
    Sure,
    /// Variables that elements tell, too.
    All,
    /// Dims of elements, too, which are looked for.
    Searched,
}

impl Cx<'_> {
    /// The int that a size name of an annotation (`N`) holds in this body.
    pub fn size_name(&mut self, name: &Arc<str>, span: Span) -> Option<TExpr> {
        let size = self.size_names.get(name)?.clone();
        // What elements of a list have is looked for where it is needed.
        let value = self.size_value(&size, span).or_else(|| self.value_of(&size, span, Sources::Searched))?;
        Some(TExpr { span, ty: Ty::Int(Some(size)), ..value })
    }

    /// An expression for the value of a size here: from variables that have a source, or from dims of parameters that are
    /// made of others. `None` where these do not tell it.
    pub fn size_value(&mut self, size: &Size, span: Span) -> Option<TExpr> {
        self.value_of(size, span, Sources::All)
    }

    /// The same from what is there whatever the values are: not from an element of a list.
    pub fn sure_value(&mut self, size: &Size, span: Span) -> Option<TExpr> {
        self.value_of(size, span, Sources::Sure)
    }

    /// From variables where these tell all of it, otherwise with dims of parameters, each read when the function starts.
    fn value_of(&mut self, size: &Size, span: Span, from: Sources) -> Option<TExpr> {
        if size.vars().iter().all(|v| self.is_told(v, from)) {
            return self.told_value(size, span);
        }
        let fit = |read: &TExpr| from == Sources::Searched || !is_search(read);
        let dims: Vec<(Size, TExpr)> =
            self.dim_sources.iter().filter(|(_, read)| fit(read)).map(|(s, read)| (s.clone(), read.clone())).collect();
        let vars: Vec<SizeVar> = dims.iter().map(|_| self.sizes.fresh_int_var("dim")).collect();
        let sizes: Vec<(&Size, SizeVar)> = dims.iter().map(|(s, _)| s).zip(vars.iter().cloned()).collect();
        let (form, by) = size.in_terms_of(&sizes, &|v| self.is_told(v, from))?;
        let needed = form.vars();
        for ((dim, read), var) in dims.iter().zip(vars).filter(|(_, var)| needed.contains(var)) {
            self.bind_dim(dim, read.clone(), var)?;
        }
        let value = self.told_value(&form, span)?;
        let value = if by == 1 { value } else { int_op(BinOp::FloorDiv, value, int(by, span), span) };
        Some(TExpr { ty: Ty::Int(Some(size.clone())), ..value })
    }

    fn is_told(&self, var: &SizeVar, from: Sources) -> bool {
        let source = self.size_sources.get(var);
        if from == Sources::Sure {
            return !var.each && source.is_some_and(|(e, _)| !is_search(e));
        }
        self.is_bound(var) || source.is_some() || self.late_sizes.contains_key(var)
    }

    /// Whether it is read at the entry of the function.
    fn is_bound(&self, var: &SizeVar) -> bool {
        self.func.as_ref().is_some_and(|f| f.size_binds.iter().any(|b| b.var == *var))
    }

    /// Reads a dim of a parameter at entry: the body may assign the parameter.
    fn bind_dim(&mut self, dim: &Size, from: TExpr, var: SizeVar) -> Option<()> {
        let name: Arc<str> = dim.to_string().into();
        let from = if is_search(&from) { self.found_or_stop(&name, from) } else { from };
        let local = self.temp(&name, Ty::Int(Some(dim.clone())), from.span);
        self.func.as_mut()?.size_binds.push(SizeBind { local, var, from });
        Some(())
    }

    /// The value of a size whose variables all have a source, term by term.
    fn told_value(&mut self, size: &Size, span: Span) -> Option<TExpr> {
        let terms: Vec<(Vec<(Atom, u32)>, i64)> = size.terms()?.map(|(m, c)| (m.to_vec(), c)).collect();
        let mut sum: Option<TExpr> = None;
        for (monomial, c) in terms {
            let mut product = (c != 1 || monomial.is_empty()).then(|| int(c, span));
            for (atom, power) in &monomial {
                for _ in 0..*power {
                    let factor = self.atom_value(atom, span)?;
                    product = Some(match product {
                        None => factor,
                        Some(p) => int_op(BinOp::Mul, p, factor, span),
                    });
                }
            }
            let product = product?;
            sum = Some(match sum {
                None => product,
                Some(s) => int_op(BinOp::Add, s, product, span),
            });
        }
        Some(TExpr { ty: Ty::Int(Some(size.clone())), ..sum.unwrap_or_else(|| int(0, span)) })
    }

    fn atom_value(&mut self, atom: &Atom, span: Span) -> Option<TExpr> {
        let both = |cx: &mut Self, a: &Size, b: &Size| Some((cx.size_value(a, span)?, cx.size_value(b, span)?));
        Some(match atom {
            Atom::Var(v) => self.var_value(v, span)?,
            Atom::Div(a, b) => {
                let (a, b) = both(self, a, b)?;
                int_op(BinOp::FloorDiv, a, b, span)
            }
            Atom::Mod(a, b) => {
                let (a, b) = both(self, a, b)?;
                int_op(BinOp::Mod, a, b, span)
            }
            Atom::Min(a, b) | Atom::Max(a, b) => {
                let (a, b) = both(self, a, b)?;
                let op = if matches!(atom, Atom::Min(..)) { CmpOp::Le } else { CmpOp::Ge };
                let test = TExpr {
                    kind: TKind::Compare { op, left: Box::new(a.clone()), right: Box::new(b.clone()) },
                    ty: Ty::Bool,
                    span,
                };
                TExpr {
                    kind: TKind::Cond { test: Box::new(test), then: Box::new(a), otherwise: Box::new(b) },
                    ty: Ty::int(),
                    span,
                }
            }
        })
    }

    fn var_value(&mut self, var: &SizeVar, span: Span) -> Option<TExpr> {
        if let Some(bind) = self.func.as_ref().and_then(|f| f.size_binds.iter().find(|b| b.var == *var)) {
            return Some(TExpr { kind: TKind::Local(bind.local), ty: Ty::Int(Some(Size::var(var.clone()))), span });
        }
        if self.late_sizes.contains_key(var) {
            return self.late_size_value(var, span);
        }
        let (source, entry) = self.size_sources.get(var)?.clone();
        let source = if is_search(&source) { self.found_or_stop(&var.name, source) } else { source };
        let ty = Ty::Int(Some(Size::var(var.clone())));
        if entry {
            // Read once at entry: the body may assign the parameter.
            let local = self.temp(&var.name, ty.clone(), source.span);
            if let Some(f) = &mut self.func {
                f.size_binds.push(SizeBind { local, var: var.clone(), from: source });
            }
            return Some(TExpr { kind: TKind::Local(local), ty, span });
        }
        Some(TExpr { span, ty, ..source })
    }

    /// Learns from a value of a declared type how to compute the size variables in the type.
    /// `value` must be readable again without effects. `entry`: it is a parameter.
    pub fn size_sources_of(&mut self, declared: &Ty, value: &TExpr, entry: bool) {
        let mut known = self.size_sources.len();
        self.sources_of_part(declared, value, entry);
        // What tells a size may stand behind what is made of it.
        while self.size_sources.len() > known && super::size_checks::has_composed(declared) {
            known = self.size_sources.len();
            self.sources_of_part(declared, value, entry);
        }
    }

    /// What parameters, or values together, tell: each may tell what another is made of.
    pub fn size_sources_of_all(&mut self, values: &[(Ty, TExpr)], entry: bool) {
        let mut known = usize::MAX;
        while known != self.size_sources.len() {
            known = self.size_sources.len();
            values.iter().for_each(|(ty, value)| self.size_sources_of(ty, value, entry));
        }
    }

    /// Sizes that several dims tell together: N + K and N + 2*K that N and K.
    pub fn solved_together(&mut self, values: &[(Ty, TExpr)]) {
        let vars: BTreeSet<SizeVar> = values.iter().flat_map(|(ty, _)| tessera_core::sizes::vars_of(ty)).collect();
        for var in vars.into_iter().filter(|v| !v.each) {
            let searched = self.size_sources.get(&var).is_none_or(|(e, _)| is_search(e));
            if searched && let Some(value) = self.sure_value(&Size::var(var.clone()), Span::NONE) {
                self.size_sources.insert(var, (value, false));
            }
        }
    }

    fn sources_of_part(&mut self, declared: &Ty, value: &TExpr, entry: bool) {
        match declared {
            Ty::Int(Some(size)) => {
                self.solve_source(size, entry, || value.clone());
                self.dim_source(size, entry, || value.clone());
            }
            Ty::Tensor(t) => {
                for (i, size) in t.shape.iter().enumerate() {
                    self.solve_source(size, entry, || dim(value, i, size));
                    self.dim_source(size, entry, || dim(value, i, size));
                }
            }
            Ty::Tuple(ts) => {
                for (i, t) in ts.iter().enumerate() {
                    self.sources_of_part(t, &field(value, i, t), entry);
                }
            }
            Ty::Struct(s) => {
                for (i, (_, t)) in s.fields.iter().enumerate() {
                    self.sources_of_part(t, &field(value, i, t), entry);
                }
            }
            Ty::List(t) | Ty::Dict(_, t) if !tessera_core::sizes::vars_of(t).is_empty() => {
                self.sources_in(value, t, entry)
            }
            _ => {}
        }
    }

    /// A parameter has a size that is made of others, which nothing may tell.
    fn dim_source(&mut self, size: &Size, entry: bool, value: impl FnOnce() -> TExpr) {
        let told = self.dim_sources.get(size).is_some_and(|e| !is_search(e));
        if entry && size.as_var().is_none() && size.as_const().is_none() && !told {
            self.dim_sources.insert(size.clone(), value());
        }
    }

    /// The size that an expression has the value of, where nothing else tells that: it is computed now, and kept.
    pub fn kept_size(&mut self, stmts: Vec<TStmt>, value: TExpr, size: Size) -> Size {
        let span = value.span;
        let size = match size.as_var() {
            Some(_) => size,
            None => {
                let symbol = if size.is_at_least(0) { self.sizes.fresh("n") } else { self.sizes.fresh_int("n") };
                self.sizes.facts.assume_equal(&symbol, &size);
                symbol
            }
        };
        let ty = Ty::Int(Some(size.clone()));
        let local = self.temp(&size.to_string(), ty.clone(), span);
        self.out.extend(stmts);
        self.out.push(TStmt::Set(local, TExpr { ty: ty.clone(), ..value }));
        self.size_sources_of(&ty, &TExpr { kind: TKind::Local(local), ty: ty.clone(), span }, false);
        size
    }

    /// Whether a number that only data knows, and that no name has here, is in the size.
    pub fn nameless(&self, size: &Size) -> bool {
        size.vars().iter().any(|v| !v.rigid && !self.size_sources.contains_key(v))
    }

    /// `size` (a variable, or linear in one that has no source yet) has the value `from`.
    fn solve_source(&mut self, size: &Size, entry: bool, from: impl Fn() -> TExpr) {
        if let Some(var) = size.as_var() {
            if self.late_sizes.contains_key(var) {
                return;
            }
            // A plain dim is a better source than an element of a list, unless something was computed from that.
            let bound = self.is_bound(var);
            let better =
                |(old, _): &(TExpr, bool)| !bound && (matches!(old.kind, TKind::Arith { .. }) || is_search(old));
            if self.size_sources.get(var).is_none_or(better) {
                self.size_sources.insert(var.clone(), (from(), entry));
            }
            return;
        }
        let known = |v: &SizeVar| self.size_sources.get(v).is_some_and(|(e, _)| !is_search(e));
        let open: Vec<SizeVar> = size.vars().into_iter().filter(|v| !known(v)).collect();
        let [var] = open.as_slice() else { return };
        if self.late_sizes.contains_key(var) {
            return;
        }
        let Some((a, b)) = linear_in(size, var) else { return };
        if let Some(value) = self.solved(from(), (&a, &b)) {
            self.size_sources.insert(var.clone(), (value, entry));
        }
    }

    /// `(value - b) // a`; a search where only a run tells whether `a` is 0. `None` where the value of `a` or `b` is not
    /// known.
    pub fn solved(&mut self, value: TExpr, (a, b): (&Size, &Size)) -> Option<TExpr> {
        let (mut value, span) = (value.clone(), value.span);
        if !b.is_zero() {
            let b = self.size_value(b, span)?;
            value = int_op(BinOp::Sub, value, b, span);
        }
        match a.as_const() {
            Some(1) => Some(value),
            Some(a) => Some(int_op(BinOp::FloorDiv, value, int(a, span), span)),
            None => {
                let by = self.size_value(a, span)?;
                let quotient = int_op(BinOp::FloorDiv, value, by.clone(), span);
                Some(self.where_not_zero(by, quotient))
            }
        }
    }
}

pub fn dim(value: &TExpr, i: usize, size: &Size) -> TExpr {
    TExpr { kind: TKind::TensorDim(Box::new(value.clone()), i), ty: Ty::Int(Some(size.clone())), span: value.span }
}

fn field(value: &TExpr, i: usize, ty: &Ty) -> TExpr {
    TExpr { kind: TKind::Field(Box::new(value.clone()), i as u32), ty: ty.clone(), span: value.span }
}

fn int_op(op: BinOp, left: TExpr, right: TExpr, span: Span) -> TExpr {
    TExpr {
        kind: TKind::Arith { op, left: Box::new(left), right: Box::new(right), int_operands: true },
        ty: Ty::int(),
        span,
    }
}
