//! Statements: control flow on what is known, loops unrolled.

use super::branch::Rest;
use super::roll::Turns;
use super::scalar::Known;
use super::value::{Scalar, Value};
use super::{R, Tracer};
use tessera_abi::check::Check;
use tessera_base::{Code, DType, Span};
use tessera_core::ir::*;
use tessera_ir::graph::NodeId;
use tessera_ops::prim::Prim;
use tessera_ops::surface::{Build, Id, expand};

/// Where control goes after a statement.
pub enum Flow {
    Next,
    Break,
    Continue,
    Return(Value),
    /// A turn of a loop ended, and whether another one follows tensors tell.
    Ended(Scalar),
}

impl Tracer<'_> {
    pub(super) fn exec(&mut self, stmts: &[TStmt]) -> R<Flow> {
        self.exec_in(stmts, None)
    }

    /// The same where it is known what stands behind them.
    pub(super) fn exec_in(&mut self, stmts: &[TStmt], rest: Option<&Rest>) -> R<Flow> {
        for (i, s) in stmts.iter().enumerate() {
            let behind = rest.map(|rest| Rest::After(&stmts[i + 1..], rest));
            match self.stmt(s, behind.as_ref())? {
                Flow::Next => {}
                other => return Ok(other),
            }
        }
        Ok(Flow::Next)
    }

    fn stmt(&mut self, s: &TStmt, rest: Option<&Rest>) -> R<Flow> {
        let is_loop = matches!(s, TStmt::While { .. } | TStmt::ForRange { .. } | TStmt::ForEach { .. });
        if is_loop {
            self.assert_loop();
        }
        // What compares the sizes of values with their types reads values that may not be of their types.
        let assertions =
            if tessera_core::type_assertions::compares(s, self.locals) { self.assertions.take() } else { None };
        let (nodes, warned) = (self.node_count(), self.warnings.len());
        let flow = self.stmt_here(s, rest);
        if assertions.is_some() {
            self.assertions = assertions;
        }
        let flow = flow.and_then(|flow| self.assert_settle().map(|()| flow));
        if let TStmt::While { span, .. } | TStmt::ForRange { span, .. } | TStmt::ForEach { span, .. } = s {
            self.assert_loop_end();
            self.written_out(*span, self.node_count().saturating_sub(nodes), warned);
        }
        flow
    }

    fn stmt_here(&mut self, s: &TStmt, rest: Option<&Rest>) -> R<Flow> {
        match s {
            TStmt::Expr(e) => {
                self.eval(e)?;
            }
            TStmt::Set(l, e) => {
                let value = self.eval(e)?;
                self.frame().insert(*l, value);
            }
            TStmt::SetGlobal(g, e) => {
                let value = self.eval(e)?;
                self.globals.insert(*g, value);
            }
            TStmt::Mutate { place, change, span } => self.mutate(place, change, *span)?,
            TStmt::If { test, then, otherwise } => {
                let truth = self.truth(test)?;
                if let Some(t) = self.by_tensors(&truth, test) {
                    return self.branch(t, [then, otherwise], rest, test.span);
                }
                let taken = if self.known_bool(&truth, test.span)? { then } else { otherwise };
                return self.exec_in(taken, rest);
            }
            TStmt::While { test, body, span } => {
                let on_data = |t: &mut Self| {
                    let truth = t.truth(test)?;
                    t.while_on_data(truth, (s, test, body), rest, *span)
                };
                return self.or_on_data(|t| t.while_known((s, test, body), rest, *span), on_data);
            }
            TStmt::ForRange { var, start, stop, step, body, span } => {
                let turns = self.turns_of([start, stop, step])?;
                let known = |t: &mut Self| t.for_range(*var, &turns, body, *span);
                return self.or_on_data(known, |t| t.for_on_data((s, *var, body), &turns, rest, *span));
            }
            TStmt::ForEach { var, iter, body, span } => {
                let value = self.eval(iter)?;
                if let Value::Tensor(of) = value {
                    let count = self.ty(of).shape.first().copied().unwrap_or(0);
                    let turns = Turns::Rows { of, count };
                    let known = |t: &mut Self| {
                        t.rolled_or(*var, &turns, body, *span, &mut |t, rolled| {
                            let items = t.items(Value::Tensor(of), if rolled { count - 1 } else { 0 }, iter.span)?;
                            t.each(*var, items, body, *span)
                        })
                    };
                    return self.or_on_data(known, |t| t.for_on_data((s, *var, body), &turns, rest, *span));
                }
                let items = self.items(value, 0, iter.span)?;
                return self.each(*var, items, body, *span);
            }
            TStmt::Break => return Ok(Flow::Break),
            TStmt::Continue => return Ok(Flow::Continue),
            TStmt::Return(e) => {
                let value = match e {
                    Some(e) => self.eval(e)?,
                    None => Value::None,
                };
                return Ok(Flow::Return(value));
            }
            TStmt::Assert { test, message, span } => self.assert(test, message.as_ref(), *span)?,
            TStmt::WithPolicy { policy, body } => {
                let outer = std::mem::replace(&mut self.policy, *policy);
                let behind = rest.map(|rest| Rest::Around(outer, self.kernel, rest));
                let flow = self.exec_in(body, behind.as_ref());
                self.policy = outer;
                return flow;
            }
            TStmt::WithHints { hints, body } => {
                let outer = self.enter_directives(hints);
                let behind = rest.map(|rest| Rest::Around(self.policy, outer, rest));
                let flow = self.exec_in(body, behind.as_ref());
                self.kernel = outer;
                return flow;
            }
        }
        Ok(Flow::Next)
    }

    /// One turn of a loop. `None` goes on; otherwise the loop is left, by `return` with a flow.
    fn turn(&mut self, body: &[TStmt], span: Span) -> R<Option<Option<Flow>>> {
        self.budget(span)?;
        self.assert_turn();
        Ok(match self.exec(body)? {
            Flow::Next | Flow::Continue => None,
            Flow::Break => Some(None),
            flow => Some(Some(flow)),
        })
    }

    /// The turns of a loop whose condition tensors have no say in.
    fn while_known(
        &mut self,
        (whole, test, body): (&TStmt, &TExpr, &[TStmt]),
        rest: Option<&Rest>,
        span: Span,
    ) -> R<Flow> {
        loop {
            let truth = self.truth(test)?;
            if self.by_tensors(&truth, test).is_some() {
                return self.while_on_data(truth, (whole, test, body), rest, span);
            }
            if !self.known_bool(&truth, test.span)? {
                return Ok(Flow::Next);
            }
            if let Some(flow) = self.turn(body, span)? {
                return Ok(flow.unwrap_or(Flow::Next));
            }
        }
    }

    /// The turns of a loop over a range.
    fn turns_of(&mut self, [start, stop, step]: [&TExpr; 3]) -> R<Turns> {
        let (start, stop) = (self.int(start, "the start of a loop")?, self.int(stop, "the end of a loop")?);
        let by = self.int(step, "the step of a loop")?;
        match tessera_abi::slice::count(start, stop, by) {
            Some(count) => Ok(Turns::Range { start, step: by, count }),
            None => Err(self.error(Code::E0711, step.span, "the step of `range` is 0")),
        }
    }

    fn for_range(&mut self, var: LocalId, turns: &Turns, body: &[TStmt], span: Span) -> R<Flow> {
        self.rolled_or(var, turns, body, span, &mut |t, rolled| {
            // Where it stays a loop, only the last turn is left.
            let first = if rolled { turns.count() - 1 } else { 0 };
            for turn in first..turns.count() {
                t.frame().insert(var, Value::int(turns.position(turn)));
                if let Some(flow) = t.turn(body, span)? {
                    return Ok(flow.unwrap_or(Flow::Next));
                }
            }
            Ok(Flow::Next)
        })
    }

    /// A turn for each item.
    fn each(&mut self, var: LocalId, items: Vec<Value>, body: &[TStmt], span: Span) -> R<Flow> {
        for item in items {
            self.frame().insert(var, item);
            if let Some(flow) = self.turn(body, span)? {
                return Ok(flow.unwrap_or(Flow::Next));
            }
        }
        Ok(Flow::Next)
    }

    /// What a loop over a value runs over; of a tensor the rows from `skip` on.
    fn items(&mut self, value: Value, skip: u64, span: Span) -> R<Vec<Value>> {
        Ok(match value {
            Value::List(items) | Value::Record(items) => items.to_vec(),
            Value::Str(text) => text.chars().map(|c| Value::str(c.to_string())).collect(),
            Value::Dict(entries) => entries.keys().map(super::builtin::key_value).collect(),
            Value::Tensor(t) => {
                let rows = self.ty(t).shape.first().copied().unwrap_or(0);
                let mut out = vec![];
                for i in skip..rows {
                    self.budget(span)?;
                    out.push(Value::Tensor(self.row(t, i, span)));
                }
                out
            }
            other => return Err(self.broken(span, "a list or a tensor", &other)),
        })
    }

    fn assert(&mut self, test: &TExpr, message: Option<&TExpr>, span: Span) -> R<()> {
        let truth = self.truth(test)?;
        let holds = match &truth {
            Scalar::Node(..) => None,
            known => Some(self.known(known, "this assertion", test.span)? == Known::Bool(true)),
        };
        if holds == Some(true) {
            return Ok(());
        }
        if holds.is_none() || self.perhaps > 0 {
            // What it says is found by its place, if it fails.
            let holds = Id(self.scalar_node(&truth, span).0);
            let mut b = self.adder("assert", span);
            let holds = expand::cast(&mut b, holds, DType::I64);
            let check = b.push(Prim::Check(Check::Holds), &[holds, holds], vec![], DType::I64);
            self.level().checks.push(NodeId(check.0));
            return Ok(());
        }
        let text = match message {
            Some(m) => {
                let value = self.eval(m)?;
                match self.text(&value, &m.ty, false, m.span)? {
                    Value::Str(text) => text.to_string(),
                    other => return Err(self.broken(m.span, "a text", &other)),
                }
            }
            None => "assertion failed".into(),
        };
        Err(self.error(Code::E0705, span, text))
    }
}
