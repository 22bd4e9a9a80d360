//! Reads statements.

use super::{Read, Reader, flag, hints, number, policy, span, ty};
use crate::ir::*;
use crate::ty::GlobalId;
use tessera_ir::text::{Attr, Op};

impl Reader<'_> {
    pub(super) fn stmt(&mut self, op: &Op) -> Read<TStmt> {
        let at = span(op, "at")?;
        Ok(match op.name.as_str() {
            "core.drop" => TStmt::Expr(self.only(op)?),
            "core.set" => {
                let (var, [value]) = self.with_var(op)?;
                TStmt::Set(LocalId(var), value)
            }
            "core.set_global" => {
                let (var, [value]) = self.with_var(op)?;
                TStmt::SetGlobal(GlobalId(var), value)
            }
            "core.if" => TStmt::If {
                test: self.only(op)?,
                then: self.block(op, op.regions.first())?,
                otherwise: self.block(op, op.regions.get(1))?,
            },
            "core.while" => TStmt::While {
                test: self.value(op, op.regions.first())?,
                body: self.block(op, op.regions.get(1))?,
                span: at,
            },
            "core.for_range" => {
                let (var, [start, stop, step]) = self.with_var(op)?;
                let body = self.block(op, op.regions.first())?;
                TStmt::ForRange { var: LocalId(var), start, stop, step, body, span: at }
            }
            "core.for_each" => {
                let (var, [iter]) = self.with_var(op)?;
                TStmt::ForEach { var: LocalId(var), iter, body: self.block(op, op.regions.first())?, span: at }
            }
            "core.break" => TStmt::Break,
            "core.continue" => TStmt::Continue,
            "core.return" => {
                let mut values = self.take_all(op, &op.operands)?;
                let value = values.pop();
                if values.is_empty() { TStmt::Return(value) } else { return Err(op.error("one value is returned")) }
            }
            "core.assert" => {
                let test = self.only(op)?;
                let message = if op.regions.is_empty() { None } else { Some(self.value(op, op.regions.first())?) };
                TStmt::Assert { test, message, span: at }
            }
            "core.with_policy" => TStmt::WithPolicy { policy: policy(op)?, body: self.block(op, op.regions.first())? },
            "core.with_hints" => TStmt::WithHints { hints: hints(op)?, body: self.block(op, op.regions.first())? },
            "core.change" | "core.change_elements" | "core.change_by" => self.mutate(op)?,
            _ => return Err(op.error("there is no such statement")),
        })
    }

    /// The one operand.
    pub(super) fn only(&mut self, op: &Op) -> Read<TExpr> {
        let [one] = self.exactly(op, &op.operands)?;
        Ok(one)
    }

    /// That many operands.
    pub(super) fn exactly<const N: usize>(&mut self, op: &Op, names: &[String]) -> Read<[TExpr; N]> {
        let values = self.take_all(op, names)?;
        let count = values.len();
        values.try_into().map_err(|_| op.error(format!("it takes {N} values, and there are {count}")))
    }

    /// The number of a variable and the values behind it.
    fn with_var<const N: usize>(&mut self, op: &Op) -> Read<(u32, [TExpr; N])> {
        let Some((var, values)) = op.operands.split_first() else { return Err(op.error("a variable is missing")) };
        Ok((number(op, var)?, self.exactly(op, values)?))
    }

    fn mutate(&mut self, op: &Op) -> Read<TStmt> {
        let Some((root, values)) = op.operands.split_first() else { return Err(op.error("a variable is missing")) };
        let root = match flag(op, "global") {
            true => TRoot::Global(GlobalId(number(op, root)?)),
            false => TRoot::Local(LocalId(number(op, root)?)),
        };
        let mut values = self.take_all(op, values)?.into_iter();
        let bad = || op.error("`steps` are numbers of fields, \"index\" and \"key\", those with a value each");
        let Some(Attr::List(items)) = op.attr("steps") else { return Err(bad()) };
        let mut steps = vec![];
        for item in items {
            steps.push(match item {
                Attr::Int(i) => TStep::Field(u32::try_from(*i).map_err(|_| bad())?),
                Attr::Str(s) if s == "index" => TStep::Index(values.next().ok_or_else(bad)?),
                Attr::Str(s) if s == "key" => TStep::Key(values.next().ok_or_else(bad)?),
                _ => return Err(bad()),
            });
        }
        let missing = || op.error("a value is missing");
        let change = match op.name.as_str() {
            "core.change" => TChange::Set(values.next().ok_or_else(missing)?),
            "core.change_elements" => {
                let index = super::exprs::index(op, &mut values)?;
                TChange::TensorSet { of: ty(self.defined, op)?, index, value: values.next().ok_or_else(missing)? }
            }
            _ => TChange::Method { name: method(op)?, args: values.by_ref().collect() },
        };
        if values.next().is_some() {
            return Err(op.error("there are more values than it takes"));
        }
        Ok(TStmt::Mutate { place: TLvalue { root, steps }, change, span: span(op, "at")? })
    }
}

/// The method that a change names.
fn method(op: &Op) -> Read<Method> {
    let name = op.str("method")?;
    Method::parse(name).ok_or_else(|| op.error(format!("no method `{name}` changes a list or dict")))
}
