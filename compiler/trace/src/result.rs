//! Results of a region: what comes from outputs of the graph and what from arguments.

use super::value::{Key, Scalar, Tensor, Value};
use super::{Template, Tracer};
use std::sync::Arc;
use tessera_base::Span;
use tessera_core::ty::Ty;
use tessera_ir::graph::{Node, NodeId, NodeType, Origin};
use tessera_ops::prim::Prim;
use tessera_ops::surface::Id;

impl Tracer<'_> {
    /// A result with its tensors in the layouts that its type states.
    pub(super) fn in_place(&mut self, value: Value, ty: &Ty, span: Span) -> Value {
        let each = |t: &mut Self, values: &[Value], ty: &mut dyn FnMut(usize) -> Option<Ty>| {
            let settled = values.iter().enumerate().map(|(i, v)| match ty(i) {
                Some(ty) => t.in_place(v.clone(), &ty, span),
                None => v.clone(),
            });
            Arc::new(settled.collect::<Vec<_>>())
        };
        if !ty.on_a_mesh() {
            return value;
        }
        match (value, ty) {
            // An argument that is handed back lies as its type says.
            (Value::Tensor(Tensor::Leaf(n)), Ty::Tensor(_)) => Value::Tensor(Tensor::Leaf(n)),
            (value @ Value::Tensor(_), Ty::Tensor(_)) => self.laid_out(value, ty, span),
            (Value::Record(items), Ty::Tuple(tys)) => Value::Record(each(self, &items, &mut |i| tys.get(i).cloned())),
            (Value::Record(items), Ty::Struct(s)) => {
                Value::Record(each(self, &items, &mut |i| s.fields.get(i).map(|f| f.1.clone())))
            }
            (Value::Dict(entries), Ty::Dict(_, elem)) => {
                let each = |(k, v): (&Key, &Value)| (k.clone(), self.in_place(v.clone(), elem, span));
                Value::Dict(Arc::new(entries.iter().map(each).collect()))
            }
            (Value::List(items), Ty::List(elem)) => Value::List(each(self, &items, &mut |_| Some((**elem).clone()))),
            (value, _) => value,
        }
    }

    /// A value of the type `from` with its tensors in the layouts of the type `to`.
    pub(super) fn moved(&mut self, value: Value, from: &Ty, to: &Ty, span: Span) -> Value {
        let mut parts = |items: &[Value], tys: &mut dyn FnMut(usize) -> Option<(Ty, Ty)>| {
            let part = |(i, v): (usize, &Value)| match tys(i) {
                Some((from, to)) => self.moved(v.clone(), &from, &to, span),
                None => v.clone(),
            };
            Arc::new(items.iter().enumerate().map(part).collect::<Vec<_>>())
        };
        match (&value, from, to) {
            (Value::Tensor(_), Ty::Tensor(from_ty), Ty::Tensor(_)) => {
                // Where it comes from is said too: its cotangent goes back there.
                let said = !from_ty.sharding.positions().is_empty();
                let value = if said { self.laid_out(value, from, span) } else { value };
                self.laid_out(value, to, span)
            }
            (Value::Record(items), Ty::Tuple(a), Ty::Tuple(b)) => {
                Value::Record(parts(items, &mut |i| Some((a.get(i)?.clone(), b.get(i)?.clone()))))
            }
            (Value::Record(items), Ty::Struct(a), Ty::Struct(b)) => {
                Value::Record(parts(items, &mut |i| Some((a.fields.get(i)?.1.clone(), b.fields.get(i)?.1.clone()))))
            }
            (Value::List(items), Ty::List(a), Ty::List(b)) => {
                Value::List(parts(items, &mut |_| Some(((**a).clone(), (**b).clone()))))
            }
            (Value::Dict(entries), Ty::Dict(_, a), Ty::Dict(_, b)) => {
                let part = |(k, v): (&Key, &Value)| (k.clone(), self.moved(v.clone(), a, b, span));
                Value::Dict(Arc::new(entries.iter().map(part).collect()))
            }
            _ => value,
        }
    }

    /// A tensor in the layout of a type.
    pub(super) fn laid_out(&mut self, value: Value, ty: &Ty, span: Span) -> Value {
        let (Value::Tensor(t), Ty::Tensor(ty)) = (&value, ty) else { return value };
        let x = self.node(*t);
        let from = self.level().graph.ty(x).clone();
        let sharding = ty.sharding.clone().normal(from.shape.len());
        let (policy, origin) = (self.policy, Origin { kernel: None, ..self.origin(span) });
        let node = Node {
            prim: Prim::Layout,
            operands: vec![x],
            ty: NodeType { sharding, ..from },
            results: vec![],
            origin,
            policy,
        };
        let id = self.level().graph.push(node);
        Value::Tensor(self.tensor_id(Id(id.0)))
    }

    pub(super) fn template(&mut self, value: &Value) -> Template {
        let all = |t: &mut Self, values: &[Value]| values.iter().map(|v| t.template(v)).collect::<Vec<_>>();
        match value {
            Value::Tensor(Tensor::Leaf(n)) => Template::Argument(*n),
            Value::Tensor(t) => {
                let id = self.node(*t);
                Template::Output(self.output(id))
            }
            Value::Scalar(Scalar::Node(kind, t)) => {
                let id = self.node(*t);
                Template::Element(self.output(id), *kind)
            }
            Value::Scalar(s) => match s.expr() {
                Some(e) => Template::Scalar(e),
                None => Template::None,
            },
            Value::Str(s) => Template::Str(s.clone()),
            Value::None => Template::None,
            Value::DType(d) => Template::DType(*d),
            Value::Record(vs) => Template::Record(all(self, vs)),
            Value::List(vs) => Template::List(all(self, vs)),
            Value::Closure { inst, captures } => Template::Closure { inst: *inst, captures: all(self, captures) },
            Value::Dict(entries) => {
                let mut out = vec![];
                for (k, v) in entries.iter() {
                    out.push((k.clone(), self.template(v)));
                }
                Template::Dict(out)
            }
        }
    }

    /// The position of a node among the outputs.
    fn output(&mut self, id: NodeId) -> u32 {
        let known = self.outputs.iter().position(|&o| o == id);
        let at = known.unwrap_or_else(|| {
            self.outputs.push(id);
            self.outputs.len() - 1
        });
        at as u32
    }
}
