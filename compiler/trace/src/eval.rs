//! Expressions: host operations happen now, tensor operations become nodes.

use super::ranges::{Range, outcome};
use super::scalar::{Kind, Known, ScalarExpr, ScalarOp};
use super::value::{Key, Scalar, Tensor, Value};
use super::{DEPTH_MAX, R, Tracer};
use indexmap::IndexMap;
use std::collections::BTreeMap;
use std::sync::Arc;
use tessera_base::{CmpOp, Code, DType, Span, bug};
use tessera_core::ir::*;
use tessera_core::type_assertions::{comparing, settles};
use tessera_ir::graph::NodeId;
use tessera_ops::map::MapOp;
use tessera_ops::numbers::{Meaning, NumberOp};
use tessera_ops::prim::{self, Prim};
use tessera_ops::surface::{Id, expand};

impl Tracer<'_> {
    pub(super) fn eval(&mut self, e: &TExpr) -> R<Value> {
        let value = self.eval_here(e)?;
        if settles(e) {
            self.assert_type(&e.ty, &value, e.span)?;
        }
        Ok(value)
    }

    fn eval_here(&mut self, e: &TExpr) -> R<Value> {
        let span = e.span;
        Ok(match &e.kind {
            TKind::Int(n) => Value::int(*n),
            TKind::Float(x) => Value::float(*x),
            TKind::Bool(b) => Value::bool(*b),
            TKind::Str(s) => Value::Str(s.clone()),
            TKind::None => Value::None,
            TKind::DType(d) => Value::DType(*d),
            TKind::Local(l) => match self.frame().get(l) {
                Some(v) => v.clone(),
                None => return Err(self.unset(span)),
            },
            TKind::Global(g) => match self.globals.get(g) {
                Some(v) => v.clone(),
                None => return Err(self.unset(span)),
            },
            TKind::Arith { left, right, .. } => {
                let operands = [self.scalar(left)?, self.scalar(right)?];
                Value::Scalar(self.apply(number_op(e).into(), &operands, span)?)
            }
            TKind::Concat(a, b) => {
                let (a, b) = (self.eval(a)?, self.eval(b)?);
                self.concat(a, b, span)?
            }
            TKind::Repeat(a, n) => {
                let (a, n) = (self.eval(a)?, self.int(n, "the number of copies")?);
                self.repeat(a, n, span)?
            }
            TKind::Neg(a) | TKind::Invert(a) | TKind::IntToFloat(a) | TKind::BoolToInt(a) => {
                let operand = self.scalar(a)?;
                Value::Scalar(self.apply(number_op(e).into(), &[operand], span)?)
            }
            TKind::Not(a) => {
                let operand = self.truth(a)?;
                Value::Scalar(self.apply(NumberOp::bool_not.into(), &[operand], span)?)
            }
            TKind::Logic { and, left, right } => {
                let test = left;
                let left = self.truth(test)?;
                if let Some(test) = self.by_tensors(&left, test) {
                    return self.logic_on_data(test, *and, right, span);
                }
                if self.known_bool(&left, span)? == *and {
                    Value::Scalar(self.truth(right)?)
                } else {
                    Value::bool(!*and)
                }
            }
            TKind::Compare { op, left, right } => {
                let (l, r) = (self.eval(left)?, self.eval(right)?);
                Value::Scalar(self.compare(*op, &l, &r, span)?)
            }
            TKind::Cond { test, then, otherwise } => {
                let condition = test;
                let test = self.truth(condition)?;
                if let Some(test) = self.by_tensors(&test, condition) {
                    return self.choice_on_data(test, [then, otherwise], span);
                }
                let taken = if self.known_bool(&test, span)? { then } else { otherwise };
                self.eval(taken)?
            }
            TKind::Truth(a) => Value::Scalar(self.truth(a)?),
            TKind::Convert { to, value } => {
                let v = self.eval(value)?;
                self.convert(*to, v, &value.ty, span)?
            }
            TKind::Tuple(es) | TKind::Struct(es) => Value::record(self.evals(es)?),
            TKind::Closure { captures } => Value::record(self.evals(captures)?),
            TKind::List(es) => Value::list(self.evals(es)?),
            TKind::Dict(entries) => {
                let mut out = IndexMap::new();
                for (k, v) in entries {
                    let key = self.eval(k)?;
                    let key = self.key(&key, k.span)?;
                    out.insert(key, self.eval(v)?);
                }
                Value::Dict(Arc::new(out))
            }
            TKind::Field(base, n) => match self.eval(base)? {
                Value::Record(fields) if (*n as usize) < fields.len() => fields[*n as usize].clone(),
                other => return Err(self.broken(span, "a field", &other)),
            },
            TKind::Index(base, at) => {
                let (base, at) = (self.eval(base)?, self.eval(at)?);
                self.element(base, at, span)?
            }
            TKind::Slice { base, low, high, step } => {
                let base = self.eval(base)?;
                let bounds = [low, high, step];
                let mut known = [None; 3];
                for (k, b) in known.iter_mut().zip(bounds) {
                    *k = self.bound(b.as_deref())?;
                }
                self.slice(base, known, span)?
            }
            TKind::Call { inst, callee, args } => {
                let mut values = match callee {
                    Some(callee) => match self.eval(callee)? {
                        Value::Record(captures) => captures.to_vec(),
                        other => return Err(self.broken(span, "a function", &other)),
                    },
                    None => vec![],
                };
                values.extend(self.evals(args)?);
                self.call(*inst, values, span)?
            }
            TKind::CallValue { callee, args } => match self.eval(callee)? {
                Value::Closure { inst, captures } => {
                    let mut values = captures.to_vec();
                    values.extend(self.evals(args)?);
                    self.call(inst, values, span)?
                }
                other => return Err(self.broken(span, "a function", &other)),
            },
            TKind::Erase { value, inst } => match self.eval(value)? {
                Value::Record(captures) => Value::Closure { inst: *inst, captures },
                other => return Err(self.broken(span, "a function", &other)),
            },
            TKind::Op { def, args, hints, checks } => self.op(def, args, hints, checks, &e.ty, span)?,
            TKind::TensorIndex { base, index, checks } => {
                self.hold_index(index, checks, span)?;
                let base = self.tensor_of(base)?;
                Value::Tensor(self.index(base, index, span)?)
            }
            TKind::TensorDim(base, n) => {
                let base = self.tensor_of(base)?;
                let ty = self.ty(base);
                match ty.shape.get(*n) {
                    Some(&size) => Value::int(size as i64),
                    None => return Err(self.error(Code::E0999, span, "a dim that the tensor does not have")),
                }
            }
            TKind::TensorShape(base) => {
                let base = self.tensor_of(base)?;
                Value::record(self.ty(base).shape.iter().map(|&n| Value::int(n as i64)).collect())
            }
            TKind::TensorDType(base) => {
                let base = self.tensor_of(base)?;
                Value::DType(self.ty(base).dtype)
            }
            TKind::Scan { inst, callee, init, xs } => self.scan(*inst, callee.as_deref(), init, xs, span)?,
            TKind::Fori { inst, callee, low, high, init } => {
                self.fori(*inst, callee.as_deref(), low, high, init, span)?
            }
            TKind::Flow { flow, functions, args } => self.flow(*flow, functions, args, span)?,
            TKind::Derive { f, args } => self.derive(f, args, span)?,
            TKind::Layout(x) => {
                let value = self.eval(x)?;
                self.moved(value, &x.ty, &e.ty, e.span)
            }
            TKind::Collective { what, x } => self.collective(what, x.as_deref(), span)?,
            TKind::StopGradient(x) => {
                let x = self.eval(x)?;
                self.stopped(&x)
            }
            TKind::Builtin { name, args } => self.builtin(*name, args, &e.ty, span)?,
            TKind::Check { value, name, annotation, dims } => self.check(value, name, *annotation, dims, &e.ty)?,
            TKind::Format(parts) => self.format(parts)?,
            TKind::Block { stmts, value } => {
                self.exec(stmts)?;
                self.eval(value)?
            }
            TKind::WithPolicy(policy, value) => {
                let outer = std::mem::replace(&mut self.policy, *policy);
                let value = self.eval(value);
                self.policy = outer;
                value?
            }
        })
    }

    pub(super) fn evals(&mut self, es: &[TExpr]) -> R<Vec<Value>> {
        es.iter().map(|e| self.eval(e)).collect()
    }

    pub(super) fn frame(&mut self) -> &mut BTreeMap<LocalId, Value> {
        // The region's own frame is there from the start to the end.
        let last = self.frames.len() - 1;
        &mut self.frames[last]
    }

    fn unset(&self, span: Span) -> Box<tessera_base::Diagnostic> {
        self.error(Code::E0107, span, "this variable has no value yet")
    }

    /// A value of a kind that the checker does not let through.
    pub(super) fn broken(&self, span: Span, wanted: &str, got: &Value) -> Box<tessera_base::Diagnostic> {
        self.error(Code::E0999, span, format!("{wanted} is needed here, and this is {}", got.describe()))
    }

    pub(super) fn scalar(&mut self, e: &TExpr) -> R<Scalar> {
        match self.eval(e)? {
            Value::Scalar(s) => Ok(s),
            other => Err(self.broken(e.span, "a number", &other)),
        }
    }

    pub(super) fn tensor_of(&mut self, e: &TExpr) -> R<Tensor> {
        match self.eval(e)? {
            Value::Tensor(t) => Ok(t),
            other => Err(self.broken(e.span, "a tensor", &other)),
        }
    }

    /// An int that must be known now.
    pub(super) fn int(&mut self, e: &TExpr, what: &str) -> R<i64> {
        let value = self.eval(e)?;
        self.int_value(&value, what, e.span)
    }

    pub(super) fn int_value(&mut self, value: &Value, what: &str, span: Span) -> R<i64> {
        match value {
            Value::Scalar(s) => match self.known(s, what, span)? {
                Known::Int(n) => Ok(n),
                Known::Bool(b) => Ok(b as i64),
                Known::Float(_) => Err(self.broken(span, "an int", value)),
            },
            other => Err(self.broken(span, "an int", other)),
        }
    }

    pub(super) fn known_bool(&mut self, s: &Scalar, span: Span) -> R<bool> {
        Ok(self.known(s, "this condition", span)?.truth())
    }

    /// A scalar operation: now, later by the caller, or in the graph.
    pub(super) fn apply(&mut self, op: ScalarOp, operands: &[Scalar], span: Span) -> R<Scalar> {
        if operands.iter().any(|s| matches!(s, Scalar::Node(..))) {
            return self.apply_in_graph(op, operands, span);
        }
        let mut values = vec![];
        let mut exprs = vec![];
        let mut late = false;
        for s in operands {
            match s {
                Scalar::Known(v) => {
                    values.push(*v);
                    exprs.push(Arc::new(ScalarExpr::Const(*v)));
                }
                Scalar::Late(e, v) => {
                    late = true;
                    values.push(*v);
                    exprs.push(e.clone());
                }
                Scalar::Node(..) => {}
            }
        }
        let value = match op.apply(&values) {
            Ok(value) => value,
            Err(_) if self.perhaps > 0 && op.check().is_some() => return self.apply_in_graph(op, operands, span),
            Err(fault) => return Err(Box::new(self.in_calls(*super::scalar::diagnostic(fault, span)))),
        };
        if !late {
            return Ok(Scalar::Known(value));
        }
        let kind = value.kind();
        Ok(Scalar::Late(Arc::new(ScalarExpr::Apply { op, operands: exprs, kind, span }), value))
    }

    /// Arithmetic on scalars that the graph computes, checked as in host code: where the operation may lack a value, a
    /// node of the graph looks at its operands.
    fn apply_in_graph(&mut self, op: ScalarOp, operands: &[Scalar], span: Span) -> R<Scalar> {
        let kind = op.kind();
        let bounded = kind == Kind::Int || op.check().is_some() || op == NumberOp::int_to_float.into();
        let (range, safe) = match bounded {
            true => {
                let ranges = operands.iter().map(|s| self.bounds(s, span)).collect::<R<Vec<_>>>()?;
                outcome(op, &ranges)
            }
            false => (Range::Unknown, true),
        };
        if let (ScalarOp::Position { .. }, true, [position]) = (op, safe, operands) {
            // Counted from the start already.
            if matches!(self.bounds(position, span)?, Range::Int(low, _) if low >= 0) {
                return Ok(position.clone());
            }
        }
        let mut ids: Vec<Id> = operands.iter().map(|s| Id(self.scalar_node(s, span).0)).collect();
        if let Some(check) = op.check().filter(|_| !safe) {
            let second = match op {
                ScalarOp::Position { size, .. } => {
                    Id(self.scalar_node(&Scalar::Known(Known::Int(size as i64)), span).0)
                }
                _ => *ids.get(1).unwrap_or(&ids[0]),
            };
            let of = operands[0].kind().dtype();
            ids[0] = self.prim(Prim::Check(check), &[ids[0], second], vec![], of, span);
            let id = NodeId(ids[0].0);
            self.level().checks.push(id);
        }
        let id = self.operation(op, kind, &ids, span);
        self.level().set_range(NodeId(id.0), range);
        Ok(Scalar::Node(kind, self.tensor_id(id)))
    }

    /// The nodes of an operation on scalars, for operands of which its check holds.
    fn operation(&mut self, op: ScalarOp, kind: Kind, ids: &[Id], span: Span) -> Id {
        let op = match op {
            ScalarOp::Number(op) => op,
            // Counted from the start; that it is in range has been seen.
            ScalarOp::Position { size, .. } => {
                let mut b = self.adder("position", span);
                let len = expand::full(&mut b, &[], DType::I64, prim::Scalar::I(size as i64));
                let zero = expand::full(&mut b, &[], DType::I64, prim::Scalar::I(0));
                let negative = expand::map(&mut b, MapOp::lt, &[ids[0], zero]);
                let wrapped = expand::map(&mut b, MapOp::add, &[ids[0], len]);
                return expand::map(&mut b, MapOp::r#where, &[negative, wrapped, ids[0]]);
            }
        };
        let mut b = self.adder(op.def().name, span);
        match op.def().meaning {
            Meaning::Map(map) => expand::map(&mut b, map, ids),
            Meaning::Cast => expand::cast(&mut b, ids[0], kind.dtype()),
            Meaning::Whole(map) => {
                let whole = expand::map(&mut b, map, ids);
                expand::cast(&mut b, whole, kind.dtype())
            }
            Meaning::Pick(map) => {
                let better = expand::map(&mut b, map, &[ids[1], ids[0]]);
                expand::map(&mut b, MapOp::r#where, &[better, ids[1], ids[0]])
            }
        }
    }

    /// The truth of a value.
    pub(super) fn truth(&mut self, e: &TExpr) -> R<Scalar> {
        let value = self.eval(e)?;
        self.truth_of(&value, e.span)
    }

    pub(super) fn truth_of(&mut self, value: &Value, span: Span) -> R<Scalar> {
        let fixed = match value {
            Value::Scalar(s) if s.kind() == Kind::Bool => return Ok(s.clone()),
            Value::Scalar(s) => {
                let zero = if s.kind() == Kind::Float { Known::Float(0.0) } else { Known::Int(0) };
                let op = NumberOp::compare(CmpOp::Ne, s.kind().in_programs());
                return self.apply(op.into(), &[s.clone(), Scalar::Known(zero)], span);
            }
            Value::Tensor(t) => return self.element_as(*t, Kind::Bool, span),
            Value::Str(s) => !s.is_empty(),
            Value::None => false,
            Value::List(items) => !items.is_empty(),
            Value::Dict(entries) => !entries.is_empty(),
            Value::Record(items) => !items.is_empty(),
            Value::DType(_) | Value::Closure { .. } => true,
        };
        Ok(Scalar::Known(Known::Bool(fixed)))
    }

    /// The one element of a tensor as a scalar that the graph computes.
    pub(super) fn element_as(&mut self, t: Tensor, kind: Kind, span: Span) -> R<Scalar> {
        let ty = self.ty(t);
        if ty.elems() != Some(1) {
            return Err(self.error(Code::E0708, span, format!("a tensor of shape {:?} is not one number", ty.shape)));
        }
        let id = Id(self.node(t).0);
        let mut b = self.adder("item", span);
        let id = expand::reshape(&mut b, id, &[]);
        let id = expand::cast(&mut b, id, kind.dtype());
        Ok(Scalar::Node(kind, self.tensor_id(id)))
    }

    pub(super) fn key(&mut self, value: &Value, span: Span) -> R<Key> {
        match value {
            Value::Str(s) => Ok(Key::Str(s.clone())),
            Value::Scalar(s) if s.kind() == Kind::Bool => Ok(Key::Bool(self.known(s, "a key", span)?.truth())),
            other => Ok(Key::Int(self.int_value(other, "a key", span)?)),
        }
    }

    pub(super) fn bound(&mut self, e: Option<&TExpr>) -> R<Option<i64>> {
        match e {
            None => Ok(None),
            Some(e) => match self.eval(e)? {
                Value::None => Ok(None),
                value => Ok(Some(self.int_value(&value, "the bound of a slice", e.span)?)),
            },
        }
    }

    /// A call, inlined.
    pub(super) fn call(&mut self, inst: InstId, values: Vec<Value>, span: Span) -> R<Value> {
        let program = self.program;
        let Some(f) = program.insts.get(inst.0 as usize) else {
            return Err(self.error(Code::E0999, span, "a function that does not exist"));
        };
        if let Effect::Host { why, span: at, by_data: false } = &f.effect {
            let message = format!("`{}` is not a graph function: {why}", f.name);
            let d = self.error(Code::E0301, span, message);
            return Err(Box::new(d.with_label(*at, "because of this")));
        }
        if self.calls.len() >= DEPTH_MAX {
            let message = format!("calls of graph functions are nested more than {DEPTH_MAX} deep");
            let d = self.error(Code::E0901, span, message);
            return Err(Box::new(d.note("calls of graph functions are inlined, recursive ones too")));
        }
        let given = f.backward.filter(|_| self.derivatives > 0).map(|b| (b, values[f.captures.len()..].to_vec()));
        let variables = f.captures.iter().chain(&f.params).copied();
        self.assert_call();
        self.frames.push(variables.zip(values).collect());
        let start = NodeId(self.level().graph.nodes.len() as u32);
        let inside = self.calls.iter().copied().chain([span]).collect();
        let calls = std::mem::replace(&mut self.calls, inside);
        let outer = std::mem::replace(&mut self.policy, f.policy);
        let around = match &f.hints {
            Some(hints) if f.kernel => self.enter_kernel(hints),
            Some(hints) => self.enter_directives(hints),
            None => self.kernel,
        };
        let epilogues = self.epilogues;
        self.epilogues |= f.kernel;
        let locals = std::mem::replace(&mut self.locals, &f.locals);
        let result = self.body(f);
        self.locals = locals;
        (self.policy, self.kernel, self.epilogues) = (outer, around, epilogues);
        let result = match (result, given) {
            (Ok(result), Some((backward, args))) => self.with_backward(f, (backward, start), args, result, span),
            (result, _) => result,
        };
        self.calls = calls;
        self.frames.pop();
        self.assert_return();
        result
    }

    fn body(&mut self, f: &FnInst) -> R<Value> {
        let (compare, rest) = f.body.split_at(comparing(f));
        // Parameters are held to their types when the function has compared them.
        let assertions = self.assertions.take();
        for bind in &f.size_binds {
            let value = self.eval(&bind.from)?;
            self.frame().insert(bind.local, value);
        }
        self.exec(compare)?;
        self.assertions = assertions;
        self.assert_parameters(f)?;
        if let Some(program) = &f.program {
            return self.programs(f, program);
        }
        match self.exec_in(rest, Some(&super::branch::Rest::Function))? {
            super::stmt::Flow::Return(value) => Ok(value),
            _ => Ok(Value::None),
        }
    }
}

/// The operation on numbers that a form is.
fn number_op(e: &TExpr) -> NumberOp {
    match e.number_op() {
        Some(op) => op,
        None => bug!("no row of numbers is {:?}", e.kind),
    }
}
