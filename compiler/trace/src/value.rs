//! Values during tracing.

use super::scalar::{Known, ScalarExpr};
use crate::scalar::Kind;
use indexmap::IndexMap;
use std::sync::Arc;
use tessera_base::DType;
use tessera_core::ir::InstId;
use tessera_ir::graph::NodeId;

/// A value with tensors as places in graphs. Containers are shared and copied on change.
#[derive(Clone, Debug)]
pub enum Value {
    Scalar(Scalar),
    Str(Arc<str>),
    None,
    DType(DType),
    Tensor(Tensor),
    /// A tuple, a struct, or the captures of a function value of singleton type.
    Record(Arc<Vec<Value>>),
    List(Arc<Vec<Value>>),
    Dict(Arc<IndexMap<Key, Value>>),
    Closure {
        inst: InstId,
        captures: Arc<Vec<Value>>,
    },
}

#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Key {
    Int(i64),
    Bool(bool),
    Str(Arc<str>),
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self {
            Key::Int(n) => n.fmt(f),
            Key::Bool(b) => f.write_str(if *b { "True" } else { "False" }),
            Key::Str(text) => write!(f, "{text:?}"),
        }
    }
}

/// A tensor: an argument that the graph does not use yet, or a node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Tensor {
    /// The argument leaf of this number.
    Leaf(u32),
    /// A node of the graph at this nesting depth of loop bodies.
    Node { level: u32, id: NodeId },
}

/// A host scalar.
#[derive(Clone, Debug)]
pub enum Scalar {
    Known(Known),
    /// Follows from scalar arguments; with its value in this call.
    Late(Arc<ScalarExpr>, Known),
    /// Computed by the graph: a rank-0 tensor of f64, i64 or bool.
    Node(Kind, Tensor),
}

impl Scalar {
    pub fn kind(&self) -> Kind {
        match self {
            Scalar::Known(v) | Scalar::Late(_, v) => v.kind(),
            Scalar::Node(kind, _) => *kind,
        }
    }

    /// The scalar in terms of arguments, unless the graph computes it.
    pub fn expr(&self) -> Option<Arc<ScalarExpr>> {
        match self {
            Scalar::Known(v) => Some(Arc::new(ScalarExpr::Const(*v))),
            Scalar::Late(e, _) => Some(e.clone()),
            Scalar::Node(..) => None,
        }
    }
}

impl Value {
    pub fn int(n: i64) -> Value {
        Value::Scalar(Scalar::Known(Known::Int(n)))
    }

    pub fn float(x: f64) -> Value {
        Value::Scalar(Scalar::Known(Known::Float(x)))
    }

    pub fn bool(b: bool) -> Value {
        Value::Scalar(Scalar::Known(Known::Bool(b)))
    }

    pub fn str(text: impl Into<Arc<str>>) -> Value {
        Value::Str(text.into())
    }

    pub fn record(values: Vec<Value>) -> Value {
        Value::Record(Arc::new(values))
    }

    pub fn list(values: Vec<Value>) -> Value {
        Value::List(Arc::new(values))
    }

    /// What it is, for messages.
    pub fn describe(&self) -> &'static str {
        match self {
            Value::Scalar(s) => match s.kind() {
                Kind::Int => "an int",
                Kind::Float => "a float",
                Kind::Bool => "a bool",
            },
            Value::Str(_) => "a str",
            Value::None => "None",
            Value::DType(_) => "a dtype",
            Value::Tensor(_) => "a tensor",
            Value::Record(_) => "a record",
            Value::List(_) => "a list",
            Value::Dict(_) => "a dict",
            Value::Closure { .. } => "a function",
        }
    }
}
