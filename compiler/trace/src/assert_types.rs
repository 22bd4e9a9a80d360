//! Every value that is traced, held against its static type (`--checked`).

use super::scalar::Known;
use super::value::{Scalar, Tensor, Value};
use super::{R, Tracer};
use tessera_base::{Diagnostic, Span};
use tessera_core::ir::FnInst;
use tessera_core::ty::Ty;
use tessera_core::type_assertions::{Seen, Told, broken};
use tessera_ops::prim::Prim;

/// What is told in the calls and loops that are being traced.
#[derive(Default)]
pub(super) struct TypeAssertions {
    calls: Vec<Told>,
    loops: Vec<Told>,
    /// The first law that the statement under way breaks; it may compare sizes only afterwards.
    late: Option<Box<Diagnostic>>,
}

impl TypeAssertions {
    pub(super) fn new() -> TypeAssertions {
        TypeAssertions { calls: vec![Told::default()], loops: vec![], late: None }
    }

    fn now(&mut self) -> Option<&mut Told> {
        self.calls.last_mut()
    }
}

impl Tracer<'_> {
    /// Begins a call.
    pub(super) fn assert_call(&mut self) {
        if let Some(assertions) = &mut self.assertions {
            assertions.calls.push(Told::default());
        }
    }

    pub(super) fn assert_return(&mut self) {
        if let Some(assertions) = &mut self.assertions {
            assertions.calls.pop();
        }
    }

    /// Begins a loop.
    pub(super) fn assert_loop(&mut self) {
        if let Some(assertions) = &mut self.assertions {
            let now = assertions.now().cloned().unwrap_or_default();
            assertions.loops.push(now);
        }
    }

    /// Begins a turn of the innermost loop.
    pub(super) fn assert_turn(&mut self) {
        if let Some(assertions) = &mut self.assertions
            && let (Some(told), Some(before)) = (assertions.calls.last_mut(), assertions.loops.last())
        {
            *told = before.clone();
        }
    }

    pub(super) fn assert_loop_end(&mut self) {
        self.assert_turn();
        if let Some(assertions) = &mut self.assertions {
            assertions.loops.pop();
        }
    }

    /// Fails unless the captured variables and the parameters of a function have their types.
    pub(super) fn assert_parameters(&mut self, f: &FnInst) -> R<()> {
        if self.assertions.is_none() {
            return Ok(());
        }
        for l in f.captures.iter().chain(&f.params) {
            if let (Some(variable), Some(value)) = (f.locals.get(l.0 as usize), self.frame().get(l).cloned()) {
                self.assert_type(&variable.ty, &value, variable.span)?;
            }
        }
        Ok(())
    }

    /// Fails unless the value is of the type.
    pub(super) fn assert_type(&mut self, ty: &Ty, value: &Value, span: Span) -> R<()> {
        if self.assertions.is_none() {
            return Ok(());
        }
        let seen = self.seen(value);
        let Some(told) = self.assertions.as_mut().and_then(TypeAssertions::now) else { return Ok(()) };
        if let Err(what) = told.hold(ty, &seen) {
            let broken = Box::new(self.in_calls(broken(span, what)));
            if let Some(assertions) = &mut self.assertions {
                assertions.late.get_or_insert(broken);
            }
        }
        Ok(())
    }

    /// A statement is over.
    pub(super) fn assert_settle(&mut self) -> R<()> {
        self.assertions.as_mut().and_then(|assertions| assertions.late.take()).map_or(Ok(()), Err)
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
