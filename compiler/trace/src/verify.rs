//! Every value that is traced, held against its static type (`--checked`).

use super::scalar::Known;
use super::value::{Scalar, Tensor, Value};
use super::{R, Tracer};
use tessera_base::{Diagnostic, Span};
use tessera_core::ir::FnInst;
use tessera_core::law::{Seen, Told, broken};
use tessera_core::ty::Ty;
use tessera_ops::prim::Prim;

/// What is told in the calls and loops that are being traced.
#[derive(Default)]
pub(super) struct Law {
    calls: Vec<Told>,
    loops: Vec<Told>,
    /// The first law that the statement under way breaks; it may compare sizes only afterwards.
    late: Option<Box<Diagnostic>>,
}

impl Law {
    pub(super) fn new() -> Law {
        Law { calls: vec![Told::default()], loops: vec![], late: None }
    }

    fn now(&mut self) -> Option<&mut Told> {
        self.calls.last_mut()
    }
}

impl Tracer<'_> {
    /// Begins a call.
    pub(super) fn law_call(&mut self) {
        if let Some(law) = &mut self.law {
            law.calls.push(Told::default());
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

    /// Fails unless the captured variables and the parameters of a function have their types.
    pub(super) fn hold_parameters(&mut self, f: &FnInst) -> R<()> {
        if self.law.is_none() {
            return Ok(());
        }
        for l in f.captures.iter().chain(&f.params) {
            if let (Some(variable), Some(value)) = (f.locals.get(l.0 as usize), self.frame().get(l).cloned()) {
                self.hold_type(&variable.ty, &value, variable.span)?;
            }
        }
        Ok(())
    }

    /// Fails unless the value is of the type.
    pub(super) fn hold_type(&mut self, ty: &Ty, value: &Value, span: Span) -> R<()> {
        if self.law.is_none() {
            return Ok(());
        }
        let seen = self.seen(value);
        let Some(told) = self.law.as_mut().and_then(Law::now) else { return Ok(()) };
        if let Err(what) = told.hold(ty, &seen) {
            let broken = Box::new(self.in_calls(broken(span, what)));
            if let Some(law) = &mut self.law {
                law.late.get_or_insert(broken);
            }
        }
        Ok(())
    }

    /// A statement is over.
    pub(super) fn law_settle(&mut self) -> R<()> {
        self.law.as_mut().and_then(|law| law.late.take()).map_or(Ok(()), Err)
    }

    /// Whether it is said how a tensor lies: it is an argument, or a conversion says so. What else is computed lies
    /// where that moves least (`tessera_shard::layout`) until it is a result, which a conversion lays out as its type says.
    fn settled(&self, x: Tensor) -> bool {
        match x {
            Tensor::Leaf(_) => true,
            Tensor::Node { level, id } => self.levels[level as usize].graph.node(id).prim == Prim::Layout,
        }
    }

    fn seen(&self, value: &Value) -> Seen {
        let all = |items: &[Value]| items.iter().map(|v| self.seen(v)).collect();
        match value {
            Value::Scalar(Scalar::Known(Known::Int(n)) | Scalar::Late(_, Known::Int(n))) => Seen::Int(*n),
            Value::Tensor(x) => {
                let ty = self.ty(*x);
                let layout = self.settled(*x).then(|| ty.sharding.clone());
                Seen::Tensor { dtype: ty.dtype, shape: ty.shape, layout }
            }
            Value::Record(items) => Seen::Fields(all(items)),
            Value::List(items) => Seen::Items(all(items)),
            Value::Dict(items) => Seen::Items(items.values().map(|v| self.seen(v)).collect()),
            _ => Seen::Other,
        }
    }
}
