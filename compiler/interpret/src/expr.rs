//! Expressions.

use crate::machine::{Flow, Machine, R};
use crate::value::Value;
use indexmap::IndexMap;
use std::rc::Rc;
use tessera_abi::rt::RtFn;
use tessera_base::Span;
use tessera_core::ir::*;
use tessera_core::ty::Ty;
use tessera_runtime::fault::{reserve, reserve_text};
use tessera_runtime::ffi::Given;
use tessera_runtime::slice::ABSENT;
use tessera_trace::scalar::Known;

impl Machine<'_> {
    pub fn expr(&mut self, e: &TExpr) -> R<Value> {
        let span = e.span;
        Ok(match &e.kind {
            TKind::Int(n) => Value::Int(*n),
            TKind::Float(x) => Value::Float(*x),
            TKind::Bool(b) => Value::Bool(*b),
            TKind::Str(s) => Value::Str(s.clone()),
            TKind::None => Value::None,
            TKind::DType(d) => Value::DType(*d),
            TKind::Local(l) => return self.local(*l, span),
            TKind::Global(g) => return self.global(*g, span),
            TKind::Arith { left, right, .. } => return self.number_form(e, &[left, right]),
            TKind::Neg(a) | TKind::Invert(a) | TKind::IntToFloat(a) | TKind::BoolToInt(a) => {
                return self.number_form(e, &[a]);
            }
            TKind::Not(a) => Value::Bool(!self.truth(a)?),
            TKind::Truth(a) => Value::Bool(self.truth(a)?),
            TKind::Logic { and, left, right } => Value::Bool(match self.truth(left)? == *and {
                true => self.truth(right)?,
                false => !*and,
            }),
            TKind::Compare { op, left, right } => Value::Bool(self.compare(*op, left, right, span)?),
            TKind::Cond { test, then, otherwise } => {
                let taken = if self.truth(test)? { then } else { otherwise };
                return self.expr(taken);
            }
            TKind::Convert { to, value } => return self.convert(*to, value, span),
            TKind::Format(parts) => return self.format(parts),
            TKind::Concat(a, b) => return self.concat(a, b, span),
            TKind::Repeat(a, n) => {
                let func = if matches!(e.ty, Ty::Str) { RtFn::str_repeat } else { RtFn::list_repeat };
                let (a, n) = (self.expr(a)?, self.expr(n)?);
                let args = vec![self.given(&a, &e.ty), self.given(&n, &Ty::int())];
                return self.rt(func, args, &e.ty, span);
            }
            TKind::Tuple(es) | TKind::Struct(es) | TKind::Closure { captures: es } => Value::record(self.exprs(es)?),
            TKind::List(es) => Value::list(self.exprs(es)?),
            TKind::Dict(entries) => {
                let mut out = IndexMap::new();
                for (k, v) in entries {
                    let key = self.key(k)?;
                    let value = self.expr(v)?;
                    out.insert(key, value);
                }
                Value::Dict(Rc::new(out))
            }
            TKind::Field(base, n) => match self.expr(base)? {
                Value::Record(fields) if (*n as usize) < fields.len() => fields[*n as usize].clone(),
                _ => return self.broken(span, "a field"),
            },
            TKind::Index(base, at) => return self.index(base, at, &e.ty, span),
            TKind::Slice { base, low, high, step } => {
                let func = if matches!(base.ty, Ty::Str) { RtFn::str_slice } else { RtFn::list_slice };
                let value = self.expr(base)?;
                let mut args = vec![self.given(&value, &base.ty)];
                for bound in [low, high, step] {
                    args.push(Given::Number(self.bound(bound.as_deref())?));
                }
                return self.rt(func, args, &e.ty, span);
            }
            TKind::Call { inst, callee, args } => {
                let captures = match callee {
                    Some(callee) => self.captures(callee)?,
                    None => vec![],
                };
                let args = self.exprs(args)?;
                return self.call(*inst, captures, args, span);
            }
            TKind::CallValue { callee, args } => match self.expr(callee)? {
                Value::Closure(inst, captures) => {
                    let args = self.exprs(args)?;
                    return self.call(inst, captures.to_vec(), args, span);
                }
                _ => return self.broken(span, "a function"),
            },
            TKind::Erase { value, inst } => Value::Closure(*inst, Rc::new(self.captures(value)?)),
            TKind::Op { def, args, .. } => match &args[..] {
                // A list that exists at run time.
                [OpArg::Value(list), rest @ ..] if def.name == "array" => return self.array(list, rest.first(), span),
                _ => return self.operation(e, false),
            },
            TKind::TensorIndex { .. } => return self.operation(e, false),
            TKind::Scan { .. } | TKind::Fori { .. } | TKind::Flow { .. } | TKind::Derive { .. } => {
                return self.operation(e, true);
            }
            TKind::Collective { .. } => return self.unknown(span, "what devices of a mesh do by themselves"),
            // Where a tensor lies changes nothing about it, and what is derived is not seen from here.
            TKind::Layout(x) | TKind::StopGradient(x) => return self.expr(x),
            TKind::TensorDim(base, n) => {
                let value = self.expr(base)?;
                match &value {
                    Value::Tensor(t) if *n < t.shape.len() => Value::Int(t.shape[*n] as i64),
                    _ => {
                        let args = vec![self.given(&value, &base.ty), Given::Number(*n as i64)];
                        return self.rt(RtFn::tensor_dim, args, &Ty::int(), span);
                    }
                }
            }
            TKind::TensorShape(base) => match self.expr(base)? {
                Value::Tensor(t) => Value::record(t.shape.iter().map(|&n| Value::Int(n as i64)).collect()),
                _ => return self.broken(span, "a tensor"),
            },
            TKind::TensorDType(base) => match self.expr(base)? {
                Value::Tensor(t) => Value::DType(t.dtype),
                _ => return self.broken(span, "a tensor"),
            },
            TKind::Builtin { name, args } => return self.builtin(*name, args, &e.ty, span),
            TKind::Check { value, name, annotation, dims } => {
                let v = self.expr(value)?;
                self.check(&v, &value.ty, (name, *annotation), dims, &e.ty)?;
                v
            }
            TKind::Block { stmts, value } => match self.exec(stmts)? {
                Flow::Next => return self.expr(value),
                _ => return self.broken(span, "a block that is not left"),
            },
            TKind::WithPolicy(policy, value) => return self.with_policy(*policy, |m| m.expr(value)),
        })
    }

    pub fn exprs(&mut self, es: &[TExpr]) -> R<Vec<Value>> {
        es.iter().map(|e| self.expr(e)).collect()
    }

    /// The values in a function value of singleton type.
    fn captures(&mut self, e: &TExpr) -> R<Vec<Value>> {
        match self.expr(e)? {
            Value::Record(captures) => Ok(captures.to_vec()),
            _ => self.broken(e.span, "a function"),
        }
    }

    pub fn int(&mut self, e: &TExpr) -> R<i64> {
        match self.expr(e)?.scalar() {
            Some(Known::Int(n)) => Ok(n),
            Some(Known::Bool(b)) => Ok(i64::from(b)),
            _ => self.broken(e.span, "an int"),
        }
    }

    /// A bound of a slice. An int of the same value as the word for an absent one means what the next one does.
    fn bound(&mut self, e: Option<&TExpr>) -> R<i64> {
        match e {
            None => Ok(ABSENT),
            Some(TExpr { kind: TKind::None, .. }) => Ok(ABSENT),
            Some(e) => Ok(self.int(e)?.max(ABSENT + 1)),
        }
    }

    pub fn key(&mut self, e: &TExpr) -> R<tessera_runtime::host_value::HostKey> {
        match self.expr(e)?.key() {
            Some(key) => Ok(key),
            None => self.broken(e.span, "a key"),
        }
    }

    fn index(&mut self, base: &TExpr, at: &TExpr, ty: &Ty, span: Span) -> R<Value> {
        let (value, at_value) = (self.expr(base)?, self.expr(at)?);
        let func = match (&value, &at_value) {
            (Value::List(items), Value::Int(n)) => {
                let from_end = if *n < 0 { n.checked_add(items.len() as i64) } else { Some(*n) };
                let found = from_end.and_then(|n| usize::try_from(n).ok()).and_then(|n| items.get(n));
                if let Some(found) = found {
                    return Ok(found.clone());
                }
                RtFn::list_get
            }
            (Value::Dict(entries), key) => {
                if let Some(found) = key.key().and_then(|k| entries.get(&k).cloned()) {
                    return Ok(found);
                }
                RtFn::dict_get
            }
            _ => RtFn::str_index,
        };
        // The runtime says what is wrong.
        let args = vec![self.given(&value, &base.ty), self.given(&at_value, &at.ty)];
        self.rt(func, args, ty, span)
    }

    fn concat(&mut self, a: &TExpr, b: &TExpr, span: Span) -> R<Value> {
        let (left, right) = (self.expr(a)?, self.expr(b)?);
        match (left, right) {
            (Value::List(mut items), Value::List(more)) => {
                let all = Rc::make_mut(&mut items);
                reserve(all, more.len()).map_err(|fault| self.fault(fault, span))?;
                all.extend(more.iter().cloned());
                Ok(Value::List(items))
            }
            (Value::Str(left), Value::Str(right)) => {
                let mut text = String::new();
                reserve_text(&mut text, left.len() + right.len()).map_err(|fault| self.fault(fault, span))?;
                text.push_str(&left);
                text.push_str(&right);
                Ok(Value::Str(text.into()))
            }
            _ => self.broken(span, "two lists or two strings"),
        }
    }

    /// `op.array` of a list.
    fn array(&mut self, list: &TExpr, dtype: Option<&OpArg>, span: Span) -> R<Value> {
        let value = self.expr(list)?;
        let dtype = match dtype {
            Some(OpArg::Value(TExpr { kind: TKind::DType(d), .. })) => *d as i64,
            _ => -1,
        };
        let args = vec![self.given(&value, &list.ty), self.given_type(&list.ty), Given::Number(dtype)];
        self.rt(RtFn::tensor_from_list, args, &Ty::AnyTensor, span)
    }

    /// Rank, dtype and the dims that must be something.
    fn check(
        &mut self,
        value: &Value,
        from: &Ty,
        (name, annotation): (&str, Span),
        dims: &[Option<TExpr>],
        ty: &Ty,
    ) -> R<()> {
        let Ty::Tensor(t) = ty else { return Ok(()) };
        let mut sizes = vec![];
        for (i, size) in t.shape.iter().enumerate() {
            sizes.push(match dims.get(i) {
                Some(Some(e)) => self.int(e)?,
                _ => size.as_const().unwrap_or(ABSENT),
            });
        }
        // Content from outside the program has no type before.
        let declared = if *from == Ty::AnyTensor { t.to_string() } else { String::new() };
        let args = vec![
            self.given(value, ty),
            Given::Number(t.dtype.map_or(-1, |d| d as i64)),
            self.ints(sizes),
            self.text(name),
            self.text(&declared),
        ];
        self.rt(RtFn::tensor_check, args, &Ty::None, annotation).map(|_| ())
    }
}
