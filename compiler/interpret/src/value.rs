//! Values. Containers are shared and copied on change.

use indexmap::IndexMap;
use std::rc::Rc;
use std::sync::Arc;
use tessera_base::DType;
use tessera_core::ir::InstId;
use tessera_runtime::host_value::{HostKey, HostValue};
use tessera_runtime::tensor::Tensor;
use tessera_trace::RegionArg;
use tessera_trace::scalar::Known;
use tessera_trace::value::Key;

#[derive(Clone)]
pub enum Value {
    Int(i64),
    Float(f64),
    Bool(bool),
    Str(Arc<str>),
    None,
    DType(DType),
    Tensor(Tensor),
    List(Rc<Vec<Value>>),
    /// A tuple, a struct, or the captures of a function value of singleton type.
    Record(Rc<Vec<Value>>),
    Dict(Rc<IndexMap<HostKey, Value>>),
    Closure(InstId, Rc<Vec<Value>>),
}

/// Function values that a function of the runtime passes through.
pub type Closures = Vec<(InstId, Rc<Vec<Value>>)>;

/// What regions number: tensors and scalars in depth-first order.
pub enum Leaf {
    Tensor(Tensor),
    Scalar(Known),
}

fn known(key: &HostKey) -> Key {
    match key {
        HostKey::Int(n) => Key::Int(*n),
        HostKey::Bool(b) => Key::Bool(*b),
        HostKey::Str(s) => Key::Str(s.clone()),
    }
}

/// A key of a dict as a value.
pub fn key_value(key: &HostKey) -> Value {
    match key {
        HostKey::Int(n) => Value::Int(*n),
        HostKey::Bool(b) => Value::Bool(*b),
        HostKey::Str(s) => Value::Str(s.clone()),
    }
}

impl Value {
    pub fn list(items: Vec<Value>) -> Value {
        Value::List(Rc::new(items))
    }

    pub fn record(items: Vec<Value>) -> Value {
        Value::Record(Rc::new(items))
    }

    /// The scalar, if it is one.
    pub fn scalar(&self) -> Option<Known> {
        match self {
            Value::Int(n) => Some(Known::Int(*n)),
            Value::Float(x) => Some(Known::Float(*x)),
            Value::Bool(b) => Some(Known::Bool(*b)),
            _ => None,
        }
    }

    /// The value as a key of a dict, if it can be one.
    pub fn key(&self) -> Option<HostKey> {
        match self {
            Value::Int(n) => Some(HostKey::Int(*n)),
            Value::Bool(b) => Some(HostKey::Bool(*b)),
            Value::Str(s) => Some(HostKey::Str(s.clone())),
            _ => None,
        }
    }

    /// For functions of the runtime. Of function values they know a number: the position in `closures`.
    pub fn passed(&self, closures: &mut Closures) -> HostValue {
        let mut all = |items: &[Value]| items.iter().map(|v| v.passed(closures)).collect();
        match self {
            Value::Int(n) => HostValue::Int(*n),
            Value::Float(x) => HostValue::Float(*x),
            Value::Bool(b) => HostValue::Bool(*b),
            Value::Str(s) => HostValue::Str(s.clone()),
            Value::None => HostValue::None,
            Value::DType(d) => HostValue::DType(*d),
            Value::Tensor(t) => HostValue::Tensor(t.clone()),
            Value::List(items) => HostValue::List(all(items)),
            Value::Record(items) => HostValue::Record(all(items)),
            Value::Dict(entries) => {
                HostValue::Dict(entries.iter().map(|(k, v)| (k.clone(), v.passed(closures))).collect())
            }
            Value::Closure(inst, captures) => {
                closures.push((*inst, captures.clone()));
                HostValue::Closure(closures.len() - 1, vec![])
            }
        }
    }

    /// For regions.
    pub fn region_arg(&self) -> RegionArg {
        let all = |items: &[Value]| items.iter().map(Value::region_arg).collect();
        match self {
            Value::Int(n) => RegionArg::Int(*n),
            Value::Float(x) => RegionArg::Float(*x),
            Value::Bool(b) => RegionArg::Bool(*b),
            Value::Str(s) => RegionArg::Str(s.clone()),
            Value::None => RegionArg::None,
            Value::DType(d) => RegionArg::DType(*d),
            Value::Tensor(t) => {
                RegionArg::Tensor { dtype: t.dtype, shape: t.shape.clone(), layout: Default::default() }
            }
            Value::List(items) => RegionArg::List(all(items)),
            Value::Record(items) => RegionArg::Record(all(items)),
            Value::Dict(entries) => RegionArg::Dict(entries.iter().map(|(k, v)| (known(k), v.region_arg())).collect()),
            Value::Closure(inst, captures) => RegionArg::Closure { inst: *inst, captures: all(captures) },
        }
    }

    /// The leaves in the order of [`tessera_trace::leaves`].
    pub fn leaves(&self, out: &mut Vec<Leaf>) {
        match self {
            Value::Tensor(t) => out.push(Leaf::Tensor(t.clone())),
            Value::List(items) | Value::Record(items) | Value::Closure(_, items) => {
                items.iter().for_each(|v| v.leaves(out));
            }
            Value::Dict(entries) => entries.values().for_each(|v| v.leaves(out)),
            Value::Str(_) | Value::None | Value::DType(_) => {}
            Value::Int(_) | Value::Float(_) | Value::Bool(_) => out.extend(self.scalar().map(Leaf::Scalar)),
        }
    }
}

impl From<Known> for Value {
    fn from(known: Known) -> Value {
        match known {
            Known::Int(n) => Value::Int(n),
            Known::Float(x) => Value::Float(x),
            Known::Bool(b) => Value::Bool(b),
        }
    }
}

impl Value {
    /// What a function of the runtime gave.
    pub fn of(passed: HostValue, closures: &Closures) -> Value {
        let all =
            |items: Vec<HostValue>| Rc::new(items.into_iter().map(|v| Value::of(v, closures)).collect::<Vec<_>>());
        match passed {
            HostValue::Int(n) => Value::Int(n),
            HostValue::Float(x) => Value::Float(x),
            HostValue::Bool(b) => Value::Bool(b),
            HostValue::Str(s) => Value::Str(s),
            HostValue::None => Value::None,
            HostValue::DType(d) => Value::DType(d),
            HostValue::Tensor(t) => Value::Tensor(t),
            HostValue::List(items) => Value::List(all(items)),
            HostValue::Record(items) => Value::Record(all(items)),
            HostValue::Dict(entries) => {
                Value::Dict(Rc::new(entries.into_iter().map(|(k, v)| (k, Value::of(v, closures))).collect()))
            }
            HostValue::Closure(at, _) => match closures.get(at) {
                Some((inst, captures)) => Value::Closure(*inst, captures.clone()),
                // The runtime makes none.
                None => Value::None,
            },
        }
    }
}
