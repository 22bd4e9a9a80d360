//! Results of a region: what comes from outputs of the graph and what from arguments.

use super::value::{Scalar, Tensor, Value};
use super::{Template, Tracer};
use tessera_ir::graph::NodeId;

impl Tracer<'_> {
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
