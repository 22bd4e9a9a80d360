//! Operators: arguments become what the row's expansion takes, and the expansion adds nodes.

use super::scalar::Known;
use super::sizes::Measured;
use super::value::{Scalar, Tensor, Value};
use super::{R, Tracer};
use tessera_base::{Code, DType, Diagnostic, Size, Span, TensorType};
use tessera_core::ir::{OpArg, TExpr, TKind};
use tessera_core::ty::Ty;
use tessera_ir::graph::{NodeId, Policy};
use tessera_ir::hints::KernelHints;
use tessera_ops::prim::{self, Prim};
use tessera_ops::surface::{Arg, Build, Hints, Id, OpDef, OpError, Param, ParamKind, expand};

impl Tracer<'_> {
    pub(super) fn op(
        &mut self,
        def: &'static OpDef,
        args: &[OpArg],
        hints: &Hints,
        checks: &[(Size, Size)],
        ty: &Ty,
        span: Span,
    ) -> R<Value> {
        let (mut given, mut operands) = (vec![], vec![]);
        for (param, arg) in def.params.iter().zip(args) {
            given.push(match arg {
                OpArg::Default => param.default.arg().unwrap_or(Arg::None),
                OpArg::Value(e) => {
                    let value = self.eval(e)?;
                    match (&e.kind, &value) {
                        // What is written out has types of its own, where a list has what they have in common.
                        (TKind::List(items), Value::List(values)) if items.len() == values.len() => {
                            operands.extend(items.iter().map(|i| &i.ty).zip(values.iter().cloned()))
                        }
                        _ => operands.push((&e.ty, value.clone())),
                    }
                    if param.kind == ParamKind::Shape {
                        self.sizes_are_natural(&e.ty, &value, e.span)?;
                    }
                    self.arg(param, value, ty, e.span)?
                }
            });
        }
        let held = self.hold(checks, &operands, span);
        if let Some(Arg::Ints(sizes)) = def.open_shape.and_then(|at| given.get_mut(at)) {
            self.close(sizes, &operands, ty);
        }
        let first_new = self.level().graph.nodes.len();
        let around = match &hints.tile_shape {
            Some(tile) => {
                let tile = tile.iter().map(|&n| n.max(1) as u64).collect();
                self.enter_directives(&KernelHints { kernel: def.name.into(), tile, span, ..KernelHints::default() })
            }
            None => self.kernel,
        };
        let hints = Hints { reassociate: self.policy == Policy::Fast, ..hints.clone() };
        let mut adder = self.adder(def.name, span);
        let expanded = (def.expand)(&mut adder, &given, &hints);
        self.kernel = around;
        let ids = match (held, expanded) {
            (Ok(()), Ok(ids)) => ids,
            (Ok(()), Err(e)) => return Err(self.op_error(def, e, args, &given, span)),
            // Of sizes that are computed the operator says more than that they differ.
            (Err(_), Err(e)) if checks.iter().any(|(a, b)| is_computed(a) || is_computed(b)) => {
                return Err(self.op_error(def, e, args, &given, span));
            }
            (Err(differ), _) => return Err(differ),
        };
        let ids = match &ids[..] {
            [id] if self.epilogues => vec![self.epilogue(*id, first_new)],
            _ => ids,
        };
        // The results are what the program spells out; the rest is there for them.
        for id in &ids {
            if id.0 as usize >= first_new && !self.is_rounding(*id) {
                self.level().graph.nodes[id.0 as usize].origin.reason = None;
            }
        }
        let mut values: Vec<Value> = ids.into_iter().map(|id| Value::Tensor(self.tensor_id(id))).collect();
        self.budget(span)?;
        Ok(if matches!(ty, Ty::Tuple(_)) { Value::record(values) } else { values.swap_remove(0) })
    }

    /// Fails where a size that only the run knows is negative; -1 stands for an open size where the program says so.
    fn sizes_are_natural(&mut self, ty: &Ty, value: &Value, span: Span) -> R<()> {
        match (ty, value) {
            (Ty::Int(size), Value::Scalar(Scalar::Known(Known::Int(n)) | Scalar::Late(_, Known::Int(n))))
                if *n < 0 && size.as_ref().is_none_or(|s| s.as_const().is_none()) =>
            {
                let d = Diagnostic::new(Code::E0711, span, format!("a size cannot be negative, and this one is {n}"));
                Err(Box::new(self.in_calls(d)))
            }
            (Ty::Tuple(ts), Value::Record(items)) => {
                ts.iter().zip(items.iter()).try_for_each(|(t, v)| self.sizes_are_natural(t, v, span))
            }
            (Ty::List(t), Value::List(items)) => items.iter().try_for_each(|v| self.sizes_are_natural(t, v, span)),
            _ => Ok(()),
        }
    }

    /// The open size of a shape beside a size of 0, which leaves it open: what its type says.
    fn close(&self, sizes: &mut [i64], operands: &[(&Ty, Value)], ty: &Ty) {
        let Ty::Tensor(t) = ty else { return };
        let Some(at) = sizes.iter().position(|&n| n == -1).filter(|_| sizes.contains(&0)) else { return };
        let mut measured = Measured::default();
        operands.iter().for_each(|(ty, value)| self.measure(ty, value, &mut measured));
        if let Some(n) = t.shape.get(at).and_then(|size| measured.of(size)) {
            sizes[at] = n;
        }
    }

    /// An argument of a call of a type as the expansion takes it.
    fn arg(&mut self, param: &Param, value: Value, ty: &Ty, span: Span) -> R<Arg> {
        let what = format!("the argument `{}`", param.name);
        Ok(match (param.kind, value) {
            (_, Value::None) => Arg::None,
            (ParamKind::Tensors, Value::Tensor(t)) => Arg::Tensor(self.id(t)),
            (ParamKind::Tensors, Value::List(items) | Value::Record(items)) => {
                let mut ids = vec![];
                for item in items.iter() {
                    match item {
                        Value::Tensor(t) => ids.push(self.id(*t)),
                        other => return Err(self.broken(span, "a tensor", other)),
                    }
                }
                Arg::Tensors(ids)
            }
            (ParamKind::Nested, Value::List(items) | Value::Record(items)) => {
                self.nested(&Value::List(items), ty, span)?
            }
            (_, Value::Tensor(t)) => Arg::Tensor(self.id(t)),
            (ParamKind::Operand, Value::Scalar(s)) => self.operand(s, span),
            (ParamKind::Nested, number @ Value::Scalar(_)) => self.nested(&number, ty, span)?,
            (ParamKind::Float, Value::Scalar(s)) => Arg::Float(match self.known(&s, &what, span)? {
                Known::Float(x) => x,
                Known::Int(n) => n as f64,
                Known::Bool(b) => f64::from(b),
            }),
            (_, Value::Scalar(s)) => match self.known(&s, &what, span)? {
                Known::Int(n) => Arg::Int(n),
                Known::Float(x) => Arg::Float(x),
                Known::Bool(b) => Arg::Bool(b),
            },
            (_, Value::Record(items) | Value::List(items)) => {
                let mut ints = vec![];
                for item in items.iter() {
                    self.flat_ints(item, &what, span, &mut ints)?;
                }
                Arg::Ints(ints)
            }
            (_, Value::DType(d)) => Arg::DType(d),
            (_, Value::Str(s)) => Arg::Str(s),
            (_, other) => return Err(self.broken(span, &what, &other)),
        })
    }

    /// The node of a tensor as expansions name it.
    pub(super) fn id(&mut self, t: Tensor) -> Id {
        Id(self.node(t).0)
    }

    /// A Python scalar that meets a tensor.
    fn operand(&mut self, s: Scalar, span: Span) -> Arg {
        match s {
            Scalar::Known(Known::Bool(b)) => Arg::Bool(b),
            Scalar::Known(v) => Arg::Scalar(scalar(v)),
            _ => Arg::Dynamic(Id(self.scalar_node(&s, span).0)),
        }
    }

    fn flat_ints(&mut self, value: &Value, what: &str, span: Span, out: &mut Vec<i64>) -> R<()> {
        match value {
            Value::Record(items) | Value::List(items) => {
                items.iter().try_for_each(|item| self.flat_ints(item, what, span, out))
            }
            other => {
                out.push(self.int_value(other, what, span)?);
                Ok(())
            }
        }
    }

    /// Nested lists of numbers: a constant, or a tensor put together when the graph runs.
    fn nested(&mut self, value: &Value, ty: &Ty, span: Span) -> R<Arg> {
        let (mut shape, mut elements) = (vec![], vec![]);
        self.rows(value, 0, &mut shape, &mut elements, span)?;
        let constant: Option<Vec<Known>> = elements
            .iter()
            .map(|s| match s {
                Scalar::Known(v) => Some(*v),
                _ => None,
            })
            .collect();
        let dtype = elements.iter().map(|s| natural_kind(s.kind())).max_by_key(|d| rank(*d)).unwrap_or(DType::F32);
        if let Some(values) = constant {
            return Ok(Arg::Nested { shape, dtype, values: values.into_iter().map(scalar).collect() });
        }
        let mut parts = vec![];
        for s in &elements {
            let id = Id(self.scalar_node(s, span).0);
            let mut b = self.adder("array", span);
            let id = match ty {
                Ty::Tensor(TensorType { dtype: Some(to), .. }) => expand::fitting(&mut b, id, *to),
                _ => id,
            };
            let id = expand::cast(&mut b, id, dtype);
            parts.push(expand::reshape(&mut b, id, &[1]));
        }
        let mut b = self.adder("array", span);
        let flat = expand::concat(&mut b, &parts, 0);
        Ok(Arg::Tensor(expand::reshape(&mut b, flat, &shape)))
    }

    fn rows(&mut self, value: &Value, depth: usize, shape: &mut Vec<u64>, out: &mut Vec<Scalar>, span: Span) -> R<()> {
        let ragged = |t: &Self| t.error(Code::E0708, span, "the rows of nested lists have different lengths");
        match value {
            Value::List(items) | Value::Record(items) => {
                let n = items.len() as u64;
                match shape.get(depth) {
                    None if out.is_empty() => shape.push(n),
                    Some(&known) if known == n => {}
                    _ => return Err(ragged(self)),
                }
                items.iter().try_for_each(|item| self.rows(item, depth + 1, shape, out, span))
            }
            Value::Scalar(s) if shape.len() == depth => {
                out.push(s.clone());
                Ok(())
            }
            Value::Scalar(_) => Err(ragged(self)),
            other => Err(self.broken(span, "a number", other)),
        }
    }

    /// The diagnostic for an operator that does not take these shapes.
    fn op_error(&self, def: &OpDef, e: OpError, args: &[OpArg], given: &[Arg], span: Span) -> Box<Diagnostic> {
        let at = |i: usize| match args.get(i) {
            Some(OpArg::Value(TExpr { span, .. })) => Some(*span),
            _ => None,
        };
        let static_code = e.code;
        // Only the sizes of this run made it fail.
        let code = if is_static(static_code) { Code::E0708 } else { static_code };
        let mut d = Diagnostic::new(code, span, e.message);
        for (i, text) in &e.args {
            match at(*i) {
                Some(span) => d = d.with_label(span, text.clone()),
                None => d.notes.push(text.clone()),
            }
        }
        for (i, arg) in given.iter().enumerate() {
            if let (Arg::Tensor(id), Some(span)) = (arg, at(i))
                && e.args.iter().all(|(j, _)| *j != i)
            {
                d = d.with_label(span, self.shape_text(NodeId(id.0)));
            }
        }
        d.witness = e.witness;
        d.notes.extend(e.notes);
        if code != static_code {
            d.notes.push(format!("the sizes are known only at run time; {static_code} is the same error before it"));
        }
        let named = def.params.iter().enumerate().filter_map(|(i, p)| Some((p.name, at(i)?)));
        let named: Vec<(&str, Span)> = named.collect();
        for help in &e.help {
            d = d.help_about(help, &named);
        }
        Box::new(self.in_calls(d))
    }

    fn shape_text(&self, id: NodeId) -> String {
        let level = &self.levels[self.levels.len() - 1];
        let ty = level.graph.ty(id);
        let parts: Vec<String> = ty.shape.iter().map(u64::to_string).chain([ty.dtype.name().into()]).collect();
        format!("Tensor[{}]", parts.join(", "))
    }

    /// Adds one primitive of the program's own.
    pub(super) fn prim(&mut self, prim: Prim, operands: &[Id], shape: Vec<u64>, dtype: DType, span: Span) -> Id {
        let id = self.adder("", span).push(prim, operands, shape, dtype);
        self.level().graph.nodes[id.0 as usize].origin.reason = None;
        id
    }
}

/// Errors of types and sizes, which the checker reports when it can.
fn is_static(code: Code) -> bool {
    code.name().starts_with("E02")
}

pub(super) fn scalar(v: Known) -> prim::Scalar {
    match v {
        Known::Int(n) => prim::Scalar::I(n),
        Known::Float(x) => prim::Scalar::F(x),
        Known::Bool(b) => prim::Scalar::I(b as i64),
    }
}

/// The element type that a number has in nested lists.
fn natural_kind(kind: super::scalar::Kind) -> DType {
    use super::scalar::Kind;
    match kind {
        Kind::Bool => DType::Bool,
        Kind::Int => DType::I64,
        Kind::Float => DType::F32,
    }
}

fn rank(d: DType) -> u32 {
    match d {
        DType::Bool => 0,
        DType::I64 => 1,
        _ => 2,
    }
}

fn is_computed(size: &Size) -> bool {
    size.as_var().is_none() && size.as_const().is_none()
}
