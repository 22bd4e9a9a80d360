//! The law that a type which is printed is true, held against every value that is traced (`--checked`).
//!
//! Types name sizes by variables. The first value that shows a variable tells what it is in this call of the
//! function; from then on every type that names it is compared with its value. What a turn of a loop tells is
//! forgotten at its end: there the checker gives sizes another meaning in each turn.

use super::scalar::Known;
use super::value::{Scalar, Value};
use super::{R, Tracer};
use crate::thir::{FnInst, TKind, TStmt};
use crate::ty::Ty;
use std::collections::BTreeMap;
use tessera_base::{Code, Size, SizeVar, Span, TensorType};

/// What the size variables of one call are.
pub(super) type Told = BTreeMap<SizeVar, i64>;

/// What is told in the calls and loops that are being traced.
#[derive(Default)]
pub(super) struct Law {
    calls: Vec<Told>,
    loops: Vec<Told>,
}

impl Law {
    pub(super) fn new() -> Law {
        Law { calls: vec![Told::new()], loops: vec![] }
    }

    fn now(&mut self) -> Option<&mut Told> {
        self.calls.last_mut()
    }

    /// The value of a size as far as it is told; a variable that is not told becomes `n`.
    fn holds(&mut self, size: &Size, n: i64) -> Result<(), i64> {
        let Some(told) = self.now() else { return Ok(()) };
        if let Some(v) = size.as_var() {
            return match told.get(v) {
                Some(&known) if known != n => Err(known),
                Some(_) => Ok(()),
                None => {
                    told.insert(v.clone(), n);
                    Ok(())
                }
            };
        }
        match size.eval(&|v| told.get(v).copied()) {
            Some(known) if known != n => Err(known),
            _ => Ok(()),
        }
    }
}

/// Whether a statement does nothing but compare sizes with what types say, and stop the program where they differ.
pub(super) fn compares(s: &TStmt) -> bool {
    let only = |stmts: &[TStmt]| stmts.iter().all(compares);
    match s {
        TStmt::Expr(e) => matches!(e.kind, TKind::Builtin { name: "sizes.differ", .. }),
        TStmt::If { then, otherwise, .. } => match &then[..] {
            [TStmt::Set(..)] => !otherwise.is_empty() && only(otherwise),
            _ => !then.is_empty() && only(then) && only(otherwise),
        },
        TStmt::ForEach { body, .. } => match &body[..] {
            [TStmt::Set(..), rest @ ..] => !rest.is_empty() && only(rest),
            _ => !body.is_empty() && only(body),
        },
        _ => false,
    }
}

impl Tracer<'_> {
    /// Begins a call.
    pub(super) fn law_call(&mut self) {
        if let Some(law) = &mut self.law {
            law.calls.push(Told::new());
        }
    }

    pub(super) fn law_return(&mut self) {
        if let Some(law) = &mut self.law {
            law.calls.pop();
        }
    }

    /// Begins a loop.
    pub(super) fn law_loop(&mut self) {
        if let Some(law) = &mut self.law {
            let now = law.now().cloned().unwrap_or_default();
            law.loops.push(now);
        }
    }

    /// Begins a turn of the innermost loop.
    pub(super) fn law_turn(&mut self) {
        if let Some(law) = &mut self.law
            && let (Some(told), Some(before)) = (law.calls.last_mut(), law.loops.last())
        {
            *told = before.clone();
        }
    }

    pub(super) fn law_loop_end(&mut self) {
        self.law_turn();
        if let Some(law) = &mut self.law {
            law.loops.pop();
        }
    }

    /// Fails unless the parameters of a function have their types. Sizes that the function compares itself at its
    /// entry are not told yet.
    pub(super) fn hold_parameters(&mut self, f: &FnInst) -> R<()> {
        if self.law.is_none() {
            return Ok(());
        }
        for l in f.captures.iter().chain(&f.params) {
            if let (Some(variable), Some(value)) = (f.locals.get(l.0 as usize), self.frame().get(l).cloned()) {
                let span = variable.span;
                self.told_by(&variable.ty, &value, span)?;
            }
        }
        Ok(())
    }

    /// What a parameter tells of sizes; its rank and element type must be those of its type.
    fn told_by(&mut self, ty: &Ty, value: &Value, span: Span) -> R<()> {
        let before = self.law.as_mut().and_then(Law::now).cloned();
        match self.hold_type(ty, value, span) {
            // The comparison at the entry says it better.
            Err(_) => {
                if let (Some(now), Some(before)) = (self.law.as_mut().and_then(Law::now), before) {
                    *now = before;
                }
                Ok(())
            }
            ok => ok,
        }
    }

    /// Fails unless the value is of the type.
    pub(super) fn hold_type(&mut self, ty: &Ty, value: &Value, span: Span) -> R<()> {
        if self.law.is_none() {
            return Ok(());
        }
        match (ty, value) {
            (Ty::Int(Some(size)), Value::Scalar(Scalar::Known(Known::Int(n)) | Scalar::Late(_, Known::Int(n)))) => {
                match self.told(size, *n) {
                    Ok(()) => Ok(()),
                    Err(known) => {
                        Err(self.untrue(span, format!("an int is {n} where its type says {size}, which is {known}")))
                    }
                }
            }
            (Ty::Tensor(t), Value::Tensor(x)) => {
                let have = self.ty(*x);
                self.hold_tensor(t, &have.shape, have.dtype, span)
            }
            (Ty::Tuple(ts), Value::Record(items)) => {
                ts.iter().zip(items.iter()).try_for_each(|(t, v)| self.hold_type(t, v, span))
            }
            (Ty::Struct(s), Value::Record(items)) => {
                s.fields.iter().zip(items.iter()).try_for_each(|((_, t), v)| self.hold_type(t, v, span))
            }
            (Ty::List(t), Value::List(items)) => items.iter().try_for_each(|v| self.hold_element(t, v, span)),
            (Ty::Dict(_, t), Value::Dict(items)) => items.values().try_for_each(|v| self.hold_element(t, v, span)),
            _ => Ok(()),
        }
    }

    /// As [`Tracer::hold_type`], of an element: sizes that are others in each element are told anew.
    fn hold_element(&mut self, ty: &Ty, value: &Value, span: Span) -> R<()> {
        let forget = |law: &mut Option<Law>| {
            if let Some(told) = law.as_mut().and_then(Law::now) {
                told.retain(|v, _| !v.each);
            }
        };
        forget(&mut self.law);
        let held = self.hold_type(ty, value, span);
        forget(&mut self.law);
        held
    }

    fn told(&mut self, size: &Size, n: i64) -> Result<(), i64> {
        self.law.as_mut().map_or(Ok(()), |law| law.holds(size, n))
    }

    fn hold_tensor(&mut self, t: &TensorType, shape: &[u64], dtype: tessera_base::DType, span: Span) -> R<()> {
        let found = || {
            let parts: Vec<String> = shape.iter().map(u64::to_string).chain([dtype.to_string()]).collect();
            format!("a value of type {t} is Tensor[{}]", parts.join(", "))
        };
        if t.rank() != shape.len() || t.dtype.is_some_and(|d| d != dtype) {
            return Err(self.untrue(span, found()));
        }
        // What is one variable tells what it is before composed sizes are compared.
        let (plain, composed): (Vec<_>, Vec<_>) = t.shape.iter().zip(shape).partition(|(s, _)| s.as_var().is_some());
        for (size, &n) in plain.into_iter().chain(composed) {
            if let Err(known) = self.told(size, n as i64) {
                return Err(self.untrue(span, format!("{}, and {size} is {known}", found())));
            }
        }
        Ok(())
    }

    fn untrue(&self, span: Span, what: String) -> Box<tessera_base::Diagnostic> {
        let mut d = self.error(Code::E0999, span, what);
        d.notes.push("a type that the checker prints is not true: this is a fault of the compiler".into());
        d
    }
}
