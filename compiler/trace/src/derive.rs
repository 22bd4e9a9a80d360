//! Functions made of other functions: the inner one is traced into the graph, and its derivative
//! is added behind it.

use super::graph::Level;
use super::scalar::Kind;
use super::scan::Leaf;
use super::value::{Key, Scalar, Tensor, Value};
use super::{R, Tracer};
use std::collections::BTreeSet;
use std::sync::Arc;
use tessera_autodiff::{Blocked, batched, pullback, pushforward};
use tessera_base::{Code, DType, Diagnostic, Span};
use tessera_core::ir::{FnInst, GlobalId, InstId, Step, TExpr, TFunction};
use tessera_core::ty::{Grad, OutAxes};
use tessera_ir::graph::derivatives::{Part, Rule};
use tessera_ir::graph::{Graph, NodeId, NodeType};
use tessera_ops::prim::{self, Prim};
use tessera_ops::surface::{Build, Id, expand};

/// What belongs to a value and has its form; both in words.
type What = (&'static str, &'static str);

const TANGENT: What = ("the tangent", "the primal");
const COTANGENT: What = ("the cotangent", "the result");

/// A function with the values that it holds.
pub(super) enum Function {
    Direct { inst: InstId, captures: Arc<Vec<Value>> },
    Derived { step: Step, of: Box<Function>, bound: Vec<Value> },
}

impl Tracer<'_> {
    pub(super) fn derive(&mut self, f: &TFunction, args: &[TExpr], span: Span) -> R<Value> {
        let f = self.function(f)?;
        let args = self.evals(args)?;
        self.derivatives += 1;
        let value = self.apply_function(&f, args, span);
        self.derivatives -= 1;
        value
    }

    fn function(&mut self, f: &TFunction) -> R<Function> {
        Ok(match f {
            TFunction::Direct { inst, callee } => {
                let captures = match callee {
                    None => Arc::default(),
                    Some(e) => match self.eval(e)? {
                        Value::Record(captures) => captures,
                        other => return Err(self.broken(e.span, "a function", &other)),
                    },
                };
                Function::Direct { inst: *inst, captures }
            }
            TFunction::Derived { step, of, bound } => {
                Function::Derived { step: step.clone(), of: Box::new(self.function(of)?), bound: self.evals(bound)? }
            }
        })
    }

    pub(super) fn apply_function(&mut self, f: &Function, args: Vec<Value>, span: Span) -> R<Value> {
        match f {
            Function::Direct { inst, captures } => {
                let values = captures.iter().cloned().chain(args).collect();
                self.call(*inst, values, span)
            }
            Function::Derived { step, of, bound } => match step {
                Step::Grad(grad) => self.gradient(grad, of, args, span),
                Step::Jvp => self.directional(of, args, span),
                Step::Pullback(globals) => self.pulled_back(of, bound, globals, args, span),
                Step::Checkpoint => self.checkpoint(of, args, span),
                Step::Vmap(axes, outs) => self.mapped(axes, outs, of, args, span),
                Step::Local(call) => self.on_devices(call, of, args, span),
            },
        }
    }

    fn gradient(&mut self, grad: &Grad, of: &Function, mut args: Vec<Value>, span: Span) -> R<Value> {
        let mut variables = vec![];
        for &i in &grad.wrt {
            let Some(arg) = args.get(i as usize).cloned() else {
                return Err(self.error(Code::E0999, span, "an argument that is not there"));
            };
            args[i as usize] = self.variables(&arg, span, &mut variables);
        }
        let wrt: Vec<Value> = grad.wrt.iter().filter_map(|&i| args.get(i as usize).cloned()).collect();
        let result = self.apply_function(of, args, span)?;
        let (value, aux) = match (&result, grad.aux) {
            (Value::Record(both), true) if both.len() == 2 => (both[0].clone(), Some(both[1].clone())),
            _ => (result, None),
        };
        let mut seeds = vec![];
        for leaf in self.leaves_of(&value, span)? {
            let id = self.leaf_id(&leaf, span);
            let ty = self.level().graph.ty(id).clone();
            let mut b = self.adder("grad", span);
            let one = expand::full(&mut b, &ty.shape, ty.dtype, prim::Scalar::F(1.0));
            seeds.push((id, NodeId(one.0)));
        }
        let cotangents = pullback(&mut self.level().graph, &seeds, &variables);
        let cotangents = cotangents.map_err(|b| self.blocked(&b, span))?;
        let mut cotangents = cotangents.into_iter();
        let mut gradients: Vec<Value> = wrt.iter().map(|arg| self.cotangents_of(arg, &mut cotangents, span)).collect();
        let gradient = match (grad.single, gradients.len()) {
            (true, 1) => gradients.swap_remove(0),
            _ => Value::record(gradients),
        };
        Ok(match (grad.value, aux) {
            (true, Some(aux)) => Value::record(vec![Value::record(vec![value, aux]), gradient]),
            (true, None) => Value::record(vec![value, gradient]),
            (false, Some(aux)) => Value::record(vec![gradient, aux]),
            (false, None) => gradient,
        })
    }

    /// Primals and as many tangents: the value and its tangent.
    fn directional(&mut self, of: &Function, args: Vec<Value>, span: Span) -> R<Value> {
        let (primals, tangents) = args.split_at(args.len() / 2);
        let mut variables = vec![];
        let inner: Vec<Value> = primals.iter().map(|p| self.variables(p, span, &mut variables)).collect();
        let mut pairs = vec![];
        let tangents =
            self.beside(&Value::record(tangents.to_vec()), &Value::record(primals.to_vec()), TANGENT, span)?;
        let directions = self.smooth_leaves(&tangents, span)?;
        for (&variable, &tangent) in variables.iter().zip(&directions) {
            pairs.push((variable, tangent));
        }
        let value = self.apply_function(of, inner, span)?;
        let outputs = self.smooth_leaves(&value, span)?;
        let made = pushforward(&mut self.level().graph, &outputs, &pairs);
        let made = made.map_err(|b| self.blocked(&b, span))?;
        let tangent = self.cotangents_of(&value, &mut made.into_iter(), span);
        Ok(Value::record(vec![value, tangent]))
    }

    fn pulled_back(
        &mut self,
        of: &Function,
        bound: &[Value],
        globals: &[GlobalId],
        args: Vec<Value>,
        span: Span,
    ) -> R<Value> {
        let (primals, kept) = bound.split_at(bound.len() - globals.len());
        let mut variables = vec![];
        let inner: Vec<Value> = primals.iter().map(|p| self.variables(p, span, &mut variables)).collect();
        // The function is computed once more, from what it read then.
        let now = self.globals.clone();
        self.globals.extend(globals.iter().copied().zip(kept.iter().cloned()));
        let value = self.apply_function(of, inner.clone(), span);
        self.globals = now;
        let value = value?;
        let outputs = self.smooth_leaves(&value, span)?;
        let given = self.beside(&Value::record(args), &Value::record(vec![value]), COTANGENT, span)?;
        let given = self.smooth_leaves(&given, span)?;
        let seeds: Vec<(NodeId, NodeId)> = outputs.into_iter().zip(given).collect();
        let made = pullback(&mut self.level().graph, &seeds, &variables);
        let mut made = made.map_err(|b| self.blocked(&b, span))?.into_iter();
        Ok(Value::record(inner.iter().map(|p| self.cotangents_of(p, &mut made, span)).collect()))
    }

    /// The function for every part of the arguments along the dims that are named.
    pub(super) fn mapped(
        &mut self,
        axes: &[Option<i64>],
        outs: &OutAxes,
        of: &Function,
        args: Vec<Value>,
        span: Span,
    ) -> R<Value> {
        let (mut outside, mut size) = (vec![], None);
        for (arg, axis) in args.iter().zip(axes) {
            let Some(axis) = *axis else { continue };
            for leaf in self.leaves_of(arg, span)? {
                let Leaf::Tensor(t) = leaf else { return Err(self.broken(span, "a tensor", arg)) };
                let t = self.with_dim_first(t, axis, span);
                let shape = self.ty(t).shape;
                match (shape.first(), size) {
                    (Some(&n), None) => size = Some(n),
                    (Some(&n), Some(m)) if n == m => {}
                    (Some(n), Some(m)) => {
                        let message =
                            format!("`autodiff.vmap` goes over {m} values of one argument and over {n} of another");
                        return Err(self.error(Code::E0708, span, message));
                    }
                    (None, _) => return Err(self.broken(span, "a tensor with a dim to go over", arg)),
                }
                outside.push(self.node(t));
            }
        }
        let Some(size) = size else {
            return Err(self.error(Code::E0204, span, "`autodiff.vmap` needs a tensor to go over"));
        };
        let types: Vec<NodeType> = outside.iter().map(|&id| self.level().graph.ty(id).clone()).collect();
        self.levels.push(Level::default());
        let mut types = types.into_iter();
        let mut inner = vec![];
        for (arg, axis) in args.iter().zip(axes) {
            inner.push(match axis {
                None => arg.clone(),
                Some(_) => self.rebuilt(arg, &mut |t, leaf| match types.next() {
                    Some(ty) => {
                        let ty = NodeType { shape: ty.shape.get(1..).unwrap_or(&[]).to_vec(), ..ty };
                        let id = t.level().input("row", ty, false, span);
                        Value::Tensor(t.tensor(id))
                    }
                    None => leaf.value(),
                }),
            });
        }
        let made = self.apply_function(of, inner, span).and_then(|value| {
            let leaves = self.leaves_of(&value, span)?;
            let outputs: Vec<NodeId> = leaves.iter().map(|l| self.leaf_id(l, span)).collect();
            Ok((value, outputs))
        });
        let level = self.levels.pop();
        let (value, outputs) = made?;
        let Some(mut level) = level else { return Err(self.error(Code::E0999, span, "a function without a graph")) };
        let results = outputs.len();
        level.graph.outputs = outputs;
        level.graph.outputs.append(&mut level.checks);
        let mut inputs: Vec<(NodeId, bool)> = outside.into_iter().map(|id| (id, true)).collect();
        inputs.extend(level.outer.iter().map(|(outer, _)| (*outer, false)));
        let mut made = batched(&mut self.level().graph, &level.graph, &inputs, size, span);
        self.level().checks.extend(made.drain(results..));
        self.budget(span)?;
        let mut made = made.into_iter();
        let mut put = |t: &mut Self, value: &Value, axis: i64| {
            t.rebuilt(value, &mut |t, leaf| match made.next() {
                Some(id) => Value::Tensor(t.with_first_dim_at(id, axis, span)),
                None => leaf.value(),
            })
        };
        Ok(match (outs, &value) {
            (OutAxes::Each(axes), Value::Record(parts)) if parts.len() == axes.len() => {
                Value::record(parts.iter().zip(axes).map(|(part, axis)| put(self, part, *axis)).collect())
            }
            (OutAxes::All(axis), value) => put(self, value, *axis),
            (OutAxes::Each(_), value) => put(self, value, 0),
        })
    }

    /// The tensor with a dim in front of the others.
    pub(super) fn with_dim_first(&mut self, x: Tensor, axis: i64, span: Span) -> Tensor {
        let rank = self.ty(x).shape.len();
        let axis = if axis < 0 { axis + rank as i64 } else { axis } as usize;
        let perm: Vec<usize> = [axis].into_iter().chain((0..rank).filter(|d| *d != axis)).collect();
        if axis == 0 || axis >= rank {
            return x;
        }
        let id = Id(self.node(x).0);
        let turned = expand::transpose(&mut self.adder("vmap", span), id, &perm);
        self.tensor_id(turned)
    }

    /// The tensor with its first dim at another place.
    pub(super) fn with_first_dim_at(&mut self, x: NodeId, axis: i64, span: Span) -> Tensor {
        let rank = self.level().graph.ty(x).shape.len();
        let axis = if axis < 0 { axis + rank as i64 } else { axis } as usize;
        if axis == 0 || axis >= rank {
            return self.tensor(x);
        }
        let perm: Vec<usize> = (1..=axis).chain([0]).chain(axis + 1..rank).collect();
        let turned = expand::transpose(&mut self.adder("vmap", span), Id(x.0), &perm);
        self.tensor_id(turned)
    }

    /// What the function computes is computed again for its derivative.
    fn checkpoint(&mut self, of: &Function, args: Vec<Value>, span: Span) -> R<Value> {
        let from = NodeId(self.level().graph.nodes.len() as u32);
        let value = self.apply_function(of, args, span)?;
        let end = NodeId(self.level().graph.nodes.len() as u32);
        let graph = &self.level().graph;
        let Some(from) = (from.0..end.0).map(NodeId).find(|&n| !matches!(graph.node(n).prim, Prim::Input(_))) else {
            return Ok(value);
        };
        let (mut inner, mut outputs) = (vec![], vec![]);
        let out = self.rebuilt(&value, &mut |t, leaf| {
            let id = t.leaf_id(&leaf, span);
            let node = t.level().graph.node(id);
            let made_here = id >= from && !matches!(node.prim, Prim::Input(_));
            if !made_here || !is_smooth(&leaf, node.ty.dtype) {
                return leaf.value();
            }
            let copy = t.identity(id, span);
            inner.push(id);
            outputs.push(copy);
            t.like_leaf(&leaf, copy)
        });
        let part = Part { inputs: vec![], outputs, saved: inner, constants: vec![], rule: Rule::Again(from, end) };
        self.level().graph.derivatives.add(part);
        Ok(out)
    }

    /// The result of a function whose derivative the program gives: `backward` is traced into a
    /// graph of its own, from which it is copied where the derivative is taken. The nodes of the function begin with `start`.
    pub(super) fn with_backward(
        &mut self,
        f: &FnInst,
        (backward, start): (InstId, NodeId),
        args: Vec<Value>,
        result: Value,
        span: Span,
    ) -> R<Value> {
        let end = self.level().graph.nodes.len();
        let args = Value::record(args);
        let (mut inputs, mut outputs, mut others) = (vec![], vec![], vec![]);
        let copied = self.rebuilt(&result, &mut |t, leaf| {
            let id = t.leaf_id(&leaf, span);
            if !is_smooth(&leaf, t.level().graph.ty(id).dtype) {
                others.push(id);
                return leaf.value();
            }
            let copy = t.identity(id, span);
            outputs.push(copy);
            t.like_leaf(&leaf, copy)
        });
        for leaf in self.leaves_of(&args, span)? {
            inputs.push(self.leaf_id(&leaf, span));
        }
        let constants = taken_from_around(&self.level().graph, start, NodeId(end as u32), &inputs);
        let types = |t: &mut Self, ids: &[NodeId]| -> Vec<NodeType> {
            ids.iter().map(|&id| t.level().graph.ty(id).clone()).collect()
        };
        let kinds = [&inputs[..], &others, &outputs, &outputs].map(|ids| types(self, ids));
        self.levels.push(Level::default());
        let [x, other, y, c] = kinds.map(|types| {
            let add = |t| Tensor::Node { level: 0, id: self.level().input("value", t, false, span) };
            types.into_iter().map(add).collect::<Vec<_>>()
        });
        let made = self.cotangents_by((f, backward), &args, &result, [x, other, y, c], span);
        let level = self.levels.pop();
        let (Some(mut level), cotangents) = (level, made?) else { return Ok(copied) };
        level.graph.outputs = cotangents;
        let saved = level.outer.iter().map(|(outer, _)| *outer).collect();
        inputs.extend(others);
        let part = Part { inputs, outputs, saved, constants, rule: Rule::Graph(Arc::new(level.graph)) };
        self.level().graph.derivatives.add(part);
        Ok(copied)
    }

    /// Traces the call of `backward` into the innermost graph, whose inputs are the arguments'
    /// leaves, those of the result that are no floats, those that are, and their cotangents.
    fn cotangents_by(
        &mut self,
        (f, backward): (&FnInst, InstId),
        args: &Value,
        result: &Value,
        [x, other, y, c]: [Vec<Tensor>; 4],
        span: Span,
    ) -> R<Vec<NodeId>> {
        let here = self.levels.len() as u32 - 1;
        let put = |tensor: Option<Tensor>, leaf: &Leaf| match (tensor, leaf) {
            // An int or a bool has no cotangent, and what is known of it may decide which way is taken.
            (_, Leaf::Scalar(s)) if !s.kind().dtype().is_float() && !matches!(s, Scalar::Node(..)) => leaf.value(),
            (Some(Tensor::Node { id, .. }), Leaf::Tensor(_)) => Value::Tensor(Tensor::Node { level: here, id }),
            (Some(Tensor::Node { id, .. }), Leaf::Scalar(s)) => {
                Value::Scalar(Scalar::Node(s.kind(), Tensor::Node { level: here, id }))
            }
            _ => leaf.value(),
        };
        let mut x = x.into_iter();
        let mut values = match self.rebuilt(args, &mut |_, leaf| put(x.next(), &leaf)) {
            Value::Record(values) => values.to_vec(),
            _ => vec![],
        };
        let count = values.len();
        for floats in [y, c] {
            let (mut floats, mut rest) = (floats.into_iter(), other.clone().into_iter());
            values.push(self.rebuilt(result, &mut |t, leaf| {
                let dtype = match &leaf {
                    Leaf::Tensor(x) => t.ty(*x).dtype,
                    Leaf::Scalar(s) => s.kind().dtype(),
                };
                put(if is_smooth(&leaf, dtype) { floats.next() } else { rest.next() }, &leaf)
            }));
        }
        let made = self.call(backward, values, span)?;
        let parts = match (&made, count) {
            (Value::Record(parts), n) if parts.len() == n => parts.to_vec(),
            _ => vec![made],
        };
        let Value::Record(args) = args else { return Ok(vec![]) };
        let mut out = vec![];
        for (i, (arg, part)) in args.iter().zip(&parts).enumerate() {
            let wanted: Vec<Leaf> = self.leaves_of(arg, span)?.into_iter().filter(|l| self.is_float_leaf(l)).collect();
            if wanted.is_empty() {
                continue;
            }
            let given = self.smooth_leaves(part, span)?;
            let param = f.params.get(i).and_then(|l| f.locals.get(l.0 as usize)).map_or("?".into(), |v| v.name.clone());
            let shapes: Vec<Vec<u64>> = given.iter().map(|&id| self.level().graph.ty(id).shape.clone()).collect();
            let declared = wanted.iter().map(|leaf| match leaf {
                Leaf::Tensor(x) => self.ty(*x).shape,
                Leaf::Scalar(_) => vec![],
            });
            let declared: Vec<Vec<u64>> = declared.collect();
            if shapes != declared {
                return Err(self.other_cotangent((f, backward), &param, (&shapes, &declared), span));
            }
            out.extend(given);
        }
        Ok(out)
    }

    /// E0708 for a cotangent that is not one of its argument.
    fn other_cotangent(
        &self,
        (f, backward): (&FnInst, InstId),
        param: &str,
        (given, wanted): (&[Vec<u64>], &[Vec<u64>]),
        span: Span,
    ) -> Box<Diagnostic> {
        let by = self.program.insts.get(backward.0 as usize);
        let what = format!("the cotangent of `{param}` that `{}` gives", by.map_or("?", |b| &b.name));
        let text = match given.iter().zip(wanted).find(|(a, b)| a != b) {
            Some((a, b)) if given.len() == wanted.len() => {
                format!("{what} has the shape {a:?}, and `{param}` of `{}` has {b:?}", f.name)
            }
            _ => format!("{what} has {} tensors, and `{param}` of `{}` has {}", given.len(), f.name, wanted.len()),
        };
        let d = self.error(Code::E0708, span, text);
        let d = d.note("a cotangent has the shape of the argument that it belongs to");
        Box::new(match by {
            Some(by) => d.with_label(by.span, "this gives it"),
            None => d,
        })
    }

    /// The value in the order of another one that it belongs to. E0708 where it has another form.
    fn beside(&self, value: &Value, of: &Value, what: What, span: Span) -> R<Value> {
        let (it, its) = what;
        let note = format!("{it} has the form of {its}");
        let other = |text: String| Err(self.error(Code::E0708, span, text).note(note).into());
        let lists = |a: &Arc<Vec<Value>>, b: &[Value]| -> R<Arc<Vec<Value>>> {
            Ok(Arc::new(a.iter().zip(b).map(|(a, b)| self.beside(a, b, what, span)).collect::<R<_>>()?))
        };
        Ok(match (value, of) {
            (Value::List(a), Value::List(b)) if a.len() != b.len() => {
                return other(format!("{it} has a list of {} where {its} has one of {}", a.len(), b.len()));
            }
            (Value::List(a), Value::List(b)) => Value::List(lists(a, b)?),
            (Value::Record(a), Value::Record(b)) => Value::Record(lists(a, b)?),
            (Value::Dict(a), Value::Dict(b)) => {
                if let Some(key) = a.keys().find(|k| !b.contains_key(*k)).or(b.keys().find(|k| !a.contains_key(*k))) {
                    let (has, lacks) = if a.contains_key(key) { (it, its) } else { (its, it) };
                    return other(format!("{has} has an entry {key}, and {lacks} has none"));
                }
                let entry = |(key, of): (&Key, &Value)| {
                    Ok((key.clone(), a.get(key).map_or(Ok(Value::None), |v| self.beside(v, of, what, span))?))
                };
                Value::Dict(Arc::new(b.iter().map(entry).collect::<R<_>>()?))
            }
            (Value::Tensor(a), Value::Tensor(b)) if self.ty(*a).shape != self.ty(*b).shape => {
                let (a, b) = (self.ty(*a), self.ty(*b));
                let of = |t: NodeType| {
                    tessera_base::TensorType::new(
                        t.shape.iter().map(|&n| tessera_base::Size::constant(n as i64)).collect(),
                        t.dtype,
                    )
                };
                return other(format!("{it} is {}, and {its} is {}", of(a), of(b)));
            }
            _ => value.clone(),
        })
    }

    fn is_float_leaf(&self, leaf: &Leaf) -> bool {
        match leaf {
            Leaf::Tensor(t) => is_smooth(leaf, self.ty(*t).dtype),
            Leaf::Scalar(s) => is_smooth(leaf, s.kind().dtype()),
        }
    }

    /// The value as it is, with a derivative of zero.
    pub(super) fn stopped(&mut self, value: &Value) -> Value {
        if self.derivatives == 0 {
            return value.clone();
        }
        self.rebuilt(value, &mut |t, leaf| {
            let id = t.leaf_id(&leaf, Span::NONE);
            if !is_smooth(&leaf, t.level().graph.ty(id).dtype) {
                return leaf.value();
            }
            let copy = t.identity(id, Span::NONE);
            t.level().graph.derivatives.hold(copy);
            t.like_leaf(&leaf, copy)
        })
    }

    /// The value with its float tensors as nodes of their own, which are added to the list.
    fn variables(&mut self, value: &Value, span: Span, out: &mut Vec<NodeId>) -> Value {
        self.rebuilt(value, &mut |t, leaf| {
            let dtype = match &leaf {
                Leaf::Tensor(x) => t.ty(*x).dtype,
                Leaf::Scalar(s) => s.kind().dtype(),
            };
            if !is_smooth(&leaf, dtype) {
                return leaf.value();
            }
            let id = t.leaf_id(&leaf, span);
            let variable = t.identity(id, span);
            out.push(variable);
            t.like_leaf(&leaf, variable)
        })
    }

    /// A node with the value of another.
    fn identity(&mut self, id: NodeId, span: Span) -> NodeId {
        let ty = self.level().graph.ty(id).clone();
        NodeId(self.adder("grad", span).push(Prim::Cast, &[Id(id.0)], ty.shape, ty.dtype).0)
    }

    /// A node as a leaf of the kind of another.
    fn like_leaf(&self, leaf: &Leaf, id: NodeId) -> Value {
        let tensor = self.tensor(id);
        match leaf {
            Leaf::Tensor(_) => Value::Tensor(tensor),
            Leaf::Scalar(s) => Value::Scalar(Scalar::Node(s.kind(), tensor)),
        }
    }

    /// The nodes of the float tensors and numbers in a value.
    fn smooth_leaves(&mut self, value: &Value, span: Span) -> R<Vec<NodeId>> {
        let mut out = vec![];
        for leaf in self.leaves_of(value, span)? {
            let id = self.leaf_id(&leaf, span);
            if is_smooth(&leaf, self.level().graph.ty(id).dtype) {
                out.push(id);
            }
        }
        Ok(out)
    }

    /// A value of the form of `like` with cotangents in place of its floats. Tensors of other types
    /// become zeros; numbers and strings, which say how a model is built, stay.
    fn cotangents_of(
        &mut self,
        like: &Value,
        cotangents: &mut impl Iterator<Item = Option<NodeId>>,
        span: Span,
    ) -> Value {
        self.rebuilt(like, &mut |t, leaf| {
            let (ty, kind) = match &leaf {
                Leaf::Tensor(x) => (t.ty(*x), None),
                Leaf::Scalar(s) if s.kind() == Kind::Float => (NodeType::new(vec![], DType::F64), Some(Kind::Float)),
                Leaf::Scalar(s) => return Value::Scalar(s.clone()),
            };
            let known = if is_smooth(&leaf, ty.dtype) { cotangents.next().flatten() } else { None };
            let id = known.unwrap_or_else(|| {
                let zero = if ty.dtype.is_float() { prim::Scalar::F(0.0) } else { prim::Scalar::I(0) };
                let mut b = t.adder("grad", span);
                NodeId(expand::full(&mut b, &ty.shape, ty.dtype, zero).0)
            });
            match kind {
                Some(kind) => Value::Scalar(Scalar::Node(kind, t.tensor(id))),
                None => Value::Tensor(t.tensor(id)),
            }
        })
    }

    /// The error for an operation without a derivative.
    fn blocked(&mut self, b: &Blocked, span: Span) -> Box<tessera_base::Diagnostic> {
        let at = self.level().graph.node(b.node).origin.span;
        let message = format!("this has no derivative: {}", b.why);
        let d = self.error(Code::E0217, if at == Span::NONE { span } else { at }, message);
        Box::new(d.with_label(span, "the derivative is taken here"))
    }
}

/// What the nodes from `start` to the one before `end` read that lies outside of them and is no argument.
fn taken_from_around(g: &Graph, start: NodeId, end: NodeId, args: &[NodeId]) -> Vec<NodeId> {
    let outside = |o: &NodeId| *o < start || matches!(g.node(*o).prim, Prim::Input(_));
    let own = (start.0..end.0).map(NodeId).filter(|id| !g.derivatives.is_held(*id));
    let read = own.flat_map(|id| g.node(id).operands.iter().copied());
    read.filter(|o| outside(o) && !args.contains(o)).collect::<BTreeSet<_>>().into_iter().collect()
}

impl Leaf {
    pub(super) fn value(&self) -> Value {
        match self {
            Leaf::Tensor(t) => Value::Tensor(*t),
            Leaf::Scalar(s) => Value::Scalar(s.clone()),
        }
    }
}

fn is_smooth(leaf: &Leaf, dtype: DType) -> bool {
    match leaf {
        Leaf::Tensor(_) => dtype.is_float() || dtype.is_complex(),
        Leaf::Scalar(s) => s.kind() == Kind::Float,
    }
}
