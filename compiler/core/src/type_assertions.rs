//! The law that a type which is printed is true, held against values while a program runs (`--checked`): those of
//! host code and those that are traced.
//!
//! Types name sizes by variables. The first value that shows a variable tells what it is in this call of the
//! function; from then on every type that names it is compared with its value. What a turn of a loop tells is
//! forgotten at its end: there the checker gives sizes another meaning in each turn.
//!
//! How a tensor lies over a mesh is held where something says it: of values of host code, of arguments and results of
//! tensor code and of conversions (`dist.shard`, collectives, carries that are cut). The layouts that the checker derives
//! for what is between them say what would be there if the program looked; what is really there is chosen so that least
//! moves, and no value is partial.

use crate::ir::{Builtin, FnInst, LocalId, TExpr, TKind, TStmt, Variable};
use crate::sizes::vars_of;
use crate::ty::Ty;
use std::collections::{BTreeMap, BTreeSet};
use tessera_base::size::Atom;
use tessera_base::{Code, DType, Diagnostic, Sharding, Size, SizeVar, Span, TensorType};

/// A value, as far as types speak of it.
#[derive(Clone, PartialEq, Debug)]
pub enum Seen {
    Int(i64),
    Tensor {
        dtype: DType,
        shape: Vec<u64>,
        /// How it lies; `None` where that is not settled yet.
        layout: Option<Sharding>,
    },
    /// The elements of a list, the values of a dict.
    Items(Vec<Seen>),
    /// Of a tuple, a struct, or the captures of a function value of singleton type.
    Fields(Vec<Seen>),
    Other,
}

/// Whether the law holds values of a type to something.
pub fn speaks(ty: &Ty) -> bool {
    match ty {
        Ty::Int(size) => size.is_some(),
        Ty::Tensor(_) => true,
        Ty::List(t) | Ty::Dict(_, t) => speaks(t),
        Ty::Tuple(ts) => ts.iter().any(speaks),
        Ty::Struct(s) => s.fields.iter().any(|(_, t)| speaks(t)),
        Ty::FnRef(r) => r.captures.iter().any(|(_, t)| speaks(t)),
        _ => false,
    }
}

/// The size variables of a type outside of lists and dicts.
fn outside(ty: &Ty) -> BTreeSet<SizeVar> {
    match ty {
        Ty::Int(Some(_)) | Ty::Tensor(_) => vars_of(ty),
        Ty::Tuple(ts) => ts.iter().flat_map(outside).collect(),
        Ty::Struct(s) => s.fields.iter().flat_map(|(_, t)| outside(t)).collect(),
        Ty::FnRef(r) => r.captures.iter().flat_map(|(_, t)| outside(t)).collect(),
        _ => BTreeSet::new(),
    }
}

/// What the size variables of one call are.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Told(BTreeMap<SizeVar, i64>);

impl Told {
    /// Compares a size with what is told of it; a variable that is not told becomes `n`. `Err` is what it should be.
    fn size(&mut self, size: &Size, n: i64) -> Result<(), i64> {
        if let Some(v) = size.as_var() {
            return match self.0.get(v) {
                Some(&known) if known != n => Err(known),
                Some(_) => Ok(()),
                None => {
                    self.0.insert(v.clone(), n);
                    Ok(())
                }
            };
        }
        match size.eval(&|v| self.0.get(v).copied()) {
            Some(known) if known != n => Err(known),
            Some(_) => Ok(()),
            None => self.solve(size, n),
        }
    }

    /// `2*K` is 6: that tells K. `Err` is the nearest that it can be.
    fn solve(&mut self, size: &Size, n: i64) -> Result<(), i64> {
        let open: Vec<SizeVar> = size.vars().into_iter().filter(|v| !self.0.contains_key(v)).collect();
        let [var] = open.as_slice() else { return Ok(()) };
        let at = |k: i64| size.eval(&|v| if v == var { Some(k) } else { self.0.get(v).copied() });
        let (Some(zero), Some(one), Some(two)) = (at(0), at(1), at(2)) else { return Ok(()) };
        let (Some(by), Some(next)) = (one.checked_sub(zero), two.checked_sub(one)) else { return Ok(()) };
        if by != next
            || by == 0
            || size.terms().is_none_or(|mut t| t.any(|(m, _)| !matches!(m, [] | [(Atom::Var(_), 1)])))
        {
            return Ok(());
        }
        let k = n.saturating_sub(zero).div_euclid(by);
        let k = if var.natural { k.max(0) } else { k };
        match at(k) {
            Some(value) if value == n => {
                self.0.insert(var.clone(), k);
                Ok(())
            }
            Some(value) => Err(value),
            None => Ok(()),
        }
    }

    /// Holds a value to a type.
    ///
    /// # Errors
    /// In words, where the type is not true of the value.
    pub fn hold(&mut self, ty: &Ty, value: &Seen) -> Result<(), String> {
        // What elements have each for themselves is no size of anything else.
        match outside(ty).into_iter().find(|v| v.each) {
            Some(v) => Err(format!("a value of type {ty} is no list, and {} is another size in each element", v.name)),
            None => self.part(ty, value),
        }
    }

    /// A value or a part of one.
    fn part(&mut self, ty: &Ty, value: &Seen) -> Result<(), String> {
        match (ty, value) {
            (Ty::Int(Some(size)), Seen::Int(n)) => self
                .size(size, *n)
                .map_err(|known| format!("an int is {n} where its type says {size}, which is {known}")),
            (Ty::Tensor(t), Seen::Tensor { dtype, shape, layout }) => {
                self.tensor(t, *dtype, shape)?;
                layout.as_ref().map_or(Ok(()), |lies| layout_held(t, lies))
            }
            (Ty::Tuple(ts), Seen::Fields(items)) => ts.iter().zip(items).try_for_each(|(t, v)| self.part(t, v)),
            (Ty::Struct(s), Seen::Fields(items)) => {
                s.fields.iter().zip(items).try_for_each(|((_, t), v)| self.part(t, v))
            }
            (Ty::FnRef(r), Seen::Fields(items)) => {
                r.captures.iter().zip(items).try_for_each(|((_, t), v)| self.part(t, v))
            }
            (Ty::List(t) | Ty::Dict(_, t), Seen::Items(items)) => items.iter().try_for_each(|v| {
                // Sizes that are others in each element are told anew.
                self.forget_each();
                let held = self.part(t, v);
                self.forget_each();
                held
            }),
            _ => Ok(()),
        }
    }

    fn forget_each(&mut self) {
        self.0.retain(|v, _| !v.each);
    }

    fn tensor(&mut self, t: &TensorType, dtype: DType, shape: &[u64]) -> Result<(), String> {
        let found = || {
            let parts: Vec<String> = shape.iter().map(u64::to_string).chain([dtype.to_string()]).collect();
            format!("a value of type {t} is Tensor[{}]", parts.join(", "))
        };
        if t.rank() != shape.len() || t.dtype.is_some_and(|d| d != dtype) {
            return Err(found());
        }
        // What is one variable tells what it is before composed sizes are compared.
        let (plain, composed): (Vec<_>, Vec<_>) = t.shape.iter().zip(shape).partition(|(s, _)| s.as_var().is_some());
        for (size, &n) in plain.into_iter().chain(composed) {
            self.size(size, n as i64).map_err(|known| format!("{}, and {size} is {known}", found()))?;
        }
        Ok(())
    }
}

/// Compares how a tensor lies with its type. What one device has counts as what each has in full. Of parts that are
/// still to be summed types know alone.
fn layout_held(t: &TensorType, lies: &Sharding) -> Result<(), String> {
    let stated = t.sharding.clone().normal(t.rank());
    let open = stated.unfinished().is_some();
    let finished = Sharding { partial: stated.positions(), ..stated.clone() };
    let same = match open {
        true => stated.mesh == lies.mesh && stated.positions() == lies.positions(),
        false => lies.clone().normal(t.rank()) == finished || (lies.mesh.is_none() && finished.is_replicated()),
    };
    let said = || format!("a value of type {t} lies as {}", lies.describe(t.rank()));
    if same { Ok(()) } else { Err(said()) }
}

/// Whether an expression has its type as soon as it has a value: sizes of what comes from a file may be compared
/// behind it.
pub fn settles(e: &TExpr) -> bool {
    match (&e.kind, &e.ty) {
        (TKind::Check { dims, .. }, Ty::Tensor(t)) => {
            let known = |(i, size): (usize, &Size)| size.as_const().is_some() || matches!(dims.get(i), Some(Some(_)));
            t.shape.iter().enumerate().all(known)
        }
        _ => true,
    }
}

/// What a region of the law does instead of computing. Its first argument is the number of the call that it
/// belongs to, except of `Enter`, which gives that number.
#[derive(Clone, Debug)]
pub enum Step {
    /// A function is called.
    Enter,
    /// The second argument is of this type.
    Hold(Ty),
    /// A loop begins, inside so many others.
    Loop(usize),
    /// A turn of that loop begins, or the loop is over.
    Turn(usize),
    /// A statement is over. What its values were held to may owe something to what it compares only afterwards: a
    /// broken law counts from here on.
    Settle,
}

/// The calls of host code that are under way, outermost first.
#[derive(Default)]
pub struct Calls {
    calls: Vec<Call>,
    entered: i64,
    /// The first law that the statement under way breaks: where, and how.
    late: Option<(Span, String)>,
}

struct Call {
    number: i64,
    told: Told,
    /// What was told before each loop that is under way.
    before: Vec<Told>,
}

impl Calls {
    /// Does a step that stands at a place; gives the number of the call.
    ///
    /// # Errors
    /// As [`Told::hold`], with the place, at the end of the statement.
    pub fn step(&mut self, step: &Step, at: Span, args: &[Seen]) -> Result<i64, (Span, String)> {
        let Some(Seen::Int(number)) = args.first() else {
            self.entered += 1;
            self.calls.push(Call { number: self.entered, told: Told::default(), before: vec![] });
            return Ok(self.entered);
        };
        // Calls inside of this one are over, however they ended.
        while self.calls.last().is_some_and(|c| c.number > *number) {
            self.calls.pop();
        }
        let Some(call) = self.calls.last_mut().filter(|c| c.number == *number) else { return Ok(*number) };
        match step {
            Step::Enter => {}
            Step::Settle => {
                if let Some(late) = self.late.take() {
                    return Err(late);
                }
            }
            Step::Hold(ty) => {
                if let Some(Err(what)) = args.get(1).map(|value| call.told.hold(ty, value)) {
                    self.late.get_or_insert((at, what));
                }
            }
            Step::Loop(depth) => {
                call.before.truncate(*depth);
                call.before.push(call.told.clone());
            }
            Step::Turn(depth) => {
                if let Some(before) = call.before.get(*depth) {
                    call.told.clone_from(before);
                }
            }
        }
        Ok(*number)
    }
}

/// A broken law, as a diagnostic.
pub fn broken(span: Span, what: String) -> Diagnostic {
    Diagnostic::new(Code::E0999, span, what)
        .note("a type that the checker prints is not true: this is a fault of the compiler")
}

/// Whether a statement does nothing but compare sizes with what types say, and stop the program where they differ.
pub fn compares(s: &TStmt, locals: &[Variable]) -> bool {
    let all = |stmts: &[TStmt]| stmts.iter().all(|s| compares(s, locals));
    let own = |l: &LocalId| locals.get(l.0 as usize).is_some_and(|v| v.compares);
    match s {
        TStmt::Expr(e) => matches!(e.kind, TKind::Builtin { name: Builtin::sizes_differ, .. }),
        TStmt::Set(l, _) => own(l),
        TStmt::If { then, otherwise, .. } => !then.is_empty() && all(then) && all(otherwise),
        TStmt::ForEach { var, body, .. } => own(var) && all(body),
        _ => false,
    }
}

/// How many statements at the beginning of a function compare its parameters with their types.
pub fn comparing(f: &FnInst) -> usize {
    let compares = |s: &TStmt| compares(s, &f.locals);
    let part = |s: &&TStmt| {
        compares(s)
            || match s {
                TStmt::Set(_, e) => matches!(e.kind, TKind::TensorDim(..) | TKind::Int(_) | TKind::Local(_)),
                TStmt::Expr(e) => matches!(e.kind, TKind::Check { .. }),
                _ => false,
            }
    };
    let first = f.body.iter().take_while(part).count();
    f.body[..first].iter().rposition(compares).map_or(0, |last| last + 1)
}
