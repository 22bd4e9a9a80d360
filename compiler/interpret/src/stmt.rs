//! Statements.

use crate::machine::{Flow, Machine, R};
use crate::value::{Value, key_value};
use tessera_abi::rt::RtFn;
use tessera_base::{Code, Span};
use tessera_core::ir::*;
use tessera_core::ty::Ty;
use tessera_runtime::ffi::Given;

impl Machine<'_> {
    pub fn exec(&mut self, stmts: &[TStmt]) -> R<Flow> {
        for s in stmts {
            match self.stmt(s)? {
                Flow::Next => {}
                other => return Ok(other),
            }
        }
        Ok(Flow::Next)
    }

    fn stmt(&mut self, s: &TStmt) -> R<Flow> {
        match s {
            TStmt::Expr(e) => {
                self.expr(e)?;
            }
            TStmt::Set(l, e) => {
                let value = self.expr(e)?;
                self.set_local(*l, value);
            }
            TStmt::SetGlobal(g, e) => {
                let value = self.expr(e)?;
                self.set_global(*g, value);
            }
            TStmt::Mutate { place, change, span } => self.mutate(place, change, *span)?,
            TStmt::If { test, then, otherwise } => {
                let taken = if self.truth(test)? { then } else { otherwise };
                return self.exec(taken);
            }
            TStmt::While { test, body, span } => {
                while self.truth(test)? {
                    if let Some(flow) = self.turn(body, *span)? {
                        return Ok(flow);
                    }
                }
            }
            TStmt::ForRange { var, start, stop, step, body, span } => {
                return self.for_range(*var, [start, stop, step], body, *span);
            }
            TStmt::ForEach { var, iter, body, span } => {
                let of = self.expr(iter)?;
                for i in 0..self.count(&of, iter.span)? {
                    let item = self.item(&of, i, iter)?;
                    self.set_local(*var, item);
                    if let Some(flow) = self.turn(body, *span)? {
                        return Ok(flow);
                    }
                }
            }
            TStmt::Break => return Ok(Flow::Break),
            TStmt::Continue => return Ok(Flow::Continue),
            TStmt::Return(e) => {
                return Ok(Flow::Return(match e {
                    Some(e) => self.expr(e)?,
                    None => Value::None,
                }));
            }
            TStmt::Assert { test, message, span } => self.assert(test, message.as_ref(), *span)?,
            TStmt::WithPolicy { policy, body } => return self.with_policy(*policy, |m| m.exec(body)),
            // They change how something is computed, not what.
            TStmt::WithHints { body, .. } => return self.exec(body),
        }
        Ok(Flow::Next)
    }

    /// One turn of a loop; gives where control goes where the loop is left.
    fn turn(&mut self, body: &[TStmt], span: Span) -> R<Option<Flow>> {
        self.go_on(span)?;
        Ok(match self.exec(body)? {
            Flow::Next | Flow::Continue => None,
            Flow::Break => Some(Flow::Next),
            flow => Some(flow),
        })
    }

    fn for_range(&mut self, var: LocalId, [start, stop, step]: [&TExpr; 3], body: &[TStmt], span: Span) -> R<Flow> {
        let (mut at, stop, by) = (self.int(start)?, self.int(stop)?, self.int(step)?);
        let Some(count) = tessera_abi::slice::count(at, stop, by) else {
            return self.error(Code::E0711, step.span, "the step of `range` is 0");
        };
        for turn in 0..count {
            if turn > 0 {
                at = at.wrapping_add(by);
            }
            self.set_local(var, Value::Int(at));
            if let Some(flow) = self.turn(body, span)? {
                return Ok(flow);
            }
        }
        Ok(Flow::Next)
    }

    /// How many turns a loop over a value has.
    fn count(&mut self, of: &Value, span: Span) -> R<usize> {
        Ok(match of {
            Value::List(items) | Value::Record(items) => items.len(),
            Value::Dict(entries) => entries.len(),
            Value::Str(text) => text.chars().count(),
            Value::Tensor(t) if !t.shape.is_empty() => t.shape[0] as usize,
            Value::Tensor(_) => {
                let args = vec![self.given(of, &Ty::AnyTensor), Given::Number(0)];
                match self.rt(RtFn::tensor_dim, args, &Ty::int(), span)? {
                    Value::Int(n) => n as usize,
                    _ => 0,
                }
            }
            _ => return self.broken(span, "a list or a tensor"),
        })
    }

    fn item(&mut self, of: &Value, i: usize, iter: &TExpr) -> R<Value> {
        let item = match of {
            Value::List(items) | Value::Record(items) => items.get(i).cloned(),
            Value::Dict(entries) => entries.get_index(i).map(|(k, _)| key_value(k)),
            Value::Str(text) => text.chars().nth(i).map(|c| Value::Str(c.to_string().into())),
            _ => {
                let args = vec![self.given(of, &iter.ty), Given::Number(i as i64)];
                return self.rt(RtFn::tensor_row, args, &Ty::AnyTensor, iter.span);
            }
        };
        item.map_or_else(|| self.broken(iter.span, "an item"), Ok)
    }

    fn assert(&mut self, test: &TExpr, message: Option<&TExpr>, span: Span) -> R<()> {
        if self.truth(test)? {
            return Ok(());
        }
        let text = match message {
            Some(m) => {
                let value = self.expr(m)?;
                self.shown(&value, &m.ty, false, m.span)?
            }
            None => Value::Str("assertion failed".into()),
        };
        match text {
            Value::Str(text) => self.error(Code::E0705, span, &*text),
            _ => self.broken(span, "a message"),
        }
    }
}
