//! `op.cond` and `op.while_loop`: loops that end by themselves.
//!
//! A choice is two loops of one turn at most: one of them has it. So what differentiates, batches and divides loops does the same
//! for choices.

use super::roll::same_structure;
use super::scan::{Callee, Leaf};
use super::turns::Over;
use super::value::{Scalar, Value};
use super::{R, Tracer};
use tessera_abi::check::Check;
use tessera_base::{Code, DType, Span};
use tessera_core::ir::{Called, Flow, TExpr};
use tessera_ir::graph::NodeId;
use tessera_ops::map::MapOp;
use tessera_ops::prim::{self, Prim};
use tessera_ops::surface::{Build, Id, expand};

/// The turns of a loop without a bound.
pub(super) const UNBOUNDED: u64 = i64::MAX as u64;

impl Tracer<'_> {
    pub(super) fn flow(&mut self, flow: Flow, functions: &[Called], args: &[TExpr], span: Span) -> R<Value> {
        let mut callees = vec![];
        for f in functions {
            callees.push(self.callee(f.inst, f.callee.as_deref())?);
        }
        match (flow, callees.as_slice(), args) {
            (Flow::Cond, [f, g], [pred, operands @ ..]) => self.cond(pred, [f, g], operands, span),
            (Flow::While, [f, g], [init, bound @ ..]) => self.while_loop([f, g], init, bound.first(), span),
            (Flow::Map, [f], [xs]) => self.map_rows(f, xs, span),
            (Flow::Associative, [f], [xs, axis, reverse]) => self.associative_scan(f, xs, [axis, reverse], span),
            _ => Err(self.error(Code::E0999, span, "control flow without its functions")),
        }
    }

    /// `op.cond(pred, then, otherwise, *operands)`.
    fn cond(&mut self, pred: &TExpr, [then, otherwise]: [&Callee; 2], operands: &[TExpr], span: Span) -> R<Value> {
        let test = self.eval(pred)?;
        let mut args = vec![];
        for x in operands {
            args.push(self.eval(x)?);
        }
        // What host code knows is decided here.
        if let Value::Scalar(s @ (Scalar::Known(_) | Scalar::Late(..))) = &test {
            let taken = if self.known_bool(s, pred.span)? { then } else { otherwise };
            let value = self.turn_of(taken, args, span)?;
            return Ok(self.as_tensors(&value, span));
        }
        let test = self.one_bool(&test, pred.span)?;
        self.joined(test, span, &mut |t, side| {
            let value = t.turn_of([then, otherwise][side], args.clone(), span)?;
            Ok(t.as_tensors(&value, span))
        })
    }

    /// What one of two computations gives, of which one is done: number 0 where `test` holds. Both give one structure.
    pub(super) fn joined(
        &mut self,
        test: Id,
        span: Span,
        side: &mut dyn FnMut(&mut Self, usize) -> R<Value>,
    ) -> R<Value> {
        let other = expand::map(&mut self.adder("cond", span), MapOp::logical_not, &[test]);
        let mut side = |t: &mut Self, at: usize| t.left_out_perhaps(&mut |t| side(t, at));
        // The first one gives a row, which there is if it was taken; that is what the second one begins with.
        let begin = self.starting(test, Value::None, span);
        let over = Over { sequences: &[], positions: None, trips: 1, until: true };
        let mut form = Value::None;
        let first = self.looped(begin, over, span, &mut |t, _, _| {
            form = side(t, 0)?;
            Ok((t.ended(Value::None, span), form.clone()))
        })?;
        let mut rows = self.leaves_of(&first.stacked, span)?.into_iter();
        let value = self.rebuilt(&form, &mut |t, leaf| {
            let Some(row) = rows.next() else { return Value::None };
            let row = Id(t.leaf_id(&row, span).0);
            let mut b = t.adder("cond", span);
            let shape = b.shape(row)[1..].to_vec();
            let one = expand::reshape(&mut b, row, &shape);
            let one = t.tensor_id(one);
            match leaf {
                Leaf::Tensor(_) => Value::Tensor(one),
                Leaf::Scalar(s) => Value::Scalar(Scalar::Node(s.kind(), one)),
            }
        });
        let begin = self.starting(other, value.clone(), span);
        let looped = self.looped(begin, over, span, &mut |t, _, _| {
            let other = side(t, 1)?;
            if !same_structure(&form, &other) {
                return Err(t.error(Code::E0708, span, "the two sides of a choice give values of different forms"));
            }
            Ok((t.ended(other, span), Value::record(vec![])))
        })?;
        self.carried(looped.carry, span)
    }

    /// `op.while_loop(cond, body, init, max_steps)`.
    fn while_loop(&mut self, [cond, body]: [&Callee; 2], init: &TExpr, bound: Option<&TExpr>, span: Span) -> R<Value> {
        let max_steps = match bound {
            Some(e) => Some((self.int(e, "`max_steps`")?, e.span)),
            None => None,
        };
        if let Some((n, at)) = max_steps.filter(|(n, _)| *n < 0) {
            return Err(self.error(
                Code::E0711,
                at,
                format!("`max_steps` of `op.while_loop` is {n}, and steps are counted from 0"),
            ));
        }
        let init = self.eval(init)?;
        let goes_on = self.turn_of(cond, [init.clone()], span)?;
        let goes_on = self.one_bool(&goes_on, span)?;
        let trips = max_steps.map_or(UNBOUNDED, |(n, _)| n as u64);
        let looped = self.looped_until(goes_on, init, trips, span, &mut |t, _, state| {
            let next = t.turn_of(body, [state], span)?;
            let goes_on = t.turn_of(cond, [next.clone()], span)?;
            Ok((t.one_bool(&goes_on, span)?, next))
        })?;
        if let Some((n, _)) = max_steps {
            let goes_on = self.part(&looped, 0, span)?;
            let goes_on = Id(self.leaf_of(&goes_on, span)?.0);
            let mut b = self.adder("while_loop", span);
            let more = expand::cast(&mut b, goes_on, DType::I64);
            let most = expand::full(&mut b, &[], DType::I64, prim::Scalar::I(n));
            let check = b.push(Prim::Check(Check::Steps), &[more, most], vec![], DType::I64);
            self.level().checks.push(NodeId(check.0));
        }
        self.carried(looped, span)
    }

    /// A loop that ends by itself: a turn is told how many there were before it, and gives whether there is another one, and the next
    /// state. Gives all that it carries: that, the number of turns, the state.
    pub(super) fn looped_until(
        &mut self,
        goes_on: Id,
        init: Value,
        trips: u64,
        span: Span,
        turn: &mut dyn FnMut(&mut Self, NodeId, Value) -> R<(Id, Value)>,
    ) -> R<Value> {
        let begin = self.starting(goes_on, init, span);
        let over = Over { sequences: &[], positions: None, trips, until: true };
        let looped = self.looped(begin, over, span, &mut |t, _, carry| {
            let count = t.part(&carry, 1, span)?;
            let count = t.leaf_of(&count, span)?;
            let state = t.carried(carry, span)?;
            let (goes_on, next) = t.left_out_perhaps(&mut |t| turn(t, count, state.clone()))?;
            let count = Id(count.0);
            let count = expand::binary_const(&mut t.adder("while_loop", span), MapOp::add, count, 1.0);
            let [flag, count] = [goes_on, count].map(|id| Value::Tensor(t.tensor_id(id)));
            Ok((Value::record(vec![flag, count, next]), Value::record(vec![])))
        })?;
        Ok(looped.carry)
    }

    /// Traces what elements of tensors may leave out.
    fn left_out_perhaps<T>(&mut self, of: &mut dyn FnMut(&mut Self) -> R<T>) -> R<T> {
        self.perhaps += 1;
        let made = of(self);
        self.perhaps -= 1;
        made
    }

    /// What a loop that ends by itself begins with.
    fn starting(&mut self, goes_on: Id, value: Value, span: Span) -> Value {
        let none = expand::full(&mut self.adder("", span), &[], DType::I64, prim::Scalar::I(0));
        let [flag, count] = [goes_on, none].map(|id| Value::Tensor(self.tensor_id(id)));
        Value::record(vec![flag, count, value])
    }

    /// What is carried on where there is no further turn, after one.
    fn ended(&mut self, value: Value, span: Span) -> Value {
        let mut b = self.adder("", span);
        let no = expand::full(&mut b, &[], DType::Bool, prim::Scalar::I(0));
        let one = expand::full(&mut b, &[], DType::I64, prim::Scalar::I(1));
        let [no, one] = [no, one].map(|id| Value::Tensor(self.tensor_id(id)));
        Value::record(vec![no, one, value])
    }

    /// A part of what such a loop carries.
    fn part(&self, carry: &Value, at: usize, span: Span) -> R<Value> {
        match carry {
            Value::Record(parts) if at < parts.len() => Ok(parts[at].clone()),
            other => Err(self.broken(span, "what a loop carries", other)),
        }
    }

    /// What it carries for the program.
    pub(super) fn carried(&self, carry: Value, span: Span) -> R<Value> {
        self.part(&carry, 2, span)
    }

    pub(super) fn leaf_of(&mut self, value: &Value, span: Span) -> R<NodeId> {
        match value {
            Value::Tensor(t) => Ok(self.leaf_id(&Leaf::Tensor(*t), span)),
            Value::Scalar(s) => Ok(self.leaf_id(&Leaf::Scalar(s.clone()), span)),
            other => Err(self.broken(span, "a tensor or a number", other)),
        }
    }

    /// A condition, as a bool of the graph.
    pub(super) fn one_bool(&mut self, value: &Value, span: Span) -> R<Id> {
        let id = self.leaf_of(value, span)?;
        let ty = self.level().graph.ty(id).unsharded();
        match ty.dtype == DType::Bool && ty.shape.is_empty() {
            true => Ok(Id(id.0)),
            false => Err(self.error(Code::E0708, span, format!("a condition is one bool, and this is {ty}"))),
        }
    }

    /// The same structure with numbers as tensors.
    pub(super) fn as_tensors(&mut self, value: &Value, span: Span) -> Value {
        self.rebuilt(value, &mut |t, leaf| {
            let id = Id(t.leaf_id(&leaf, span).0);
            let mut b = t.adder("", span);
            let id = match leaf {
                Leaf::Scalar(s) if s.kind().dtype() == DType::F64 => expand::cast(&mut b, id, DType::F32),
                _ => id,
            };
            Value::Tensor(t.tensor_id(id))
        })
    }
}
