//! The arguments of a call of tensor code, as what must agree for kernels to serve it, and its scalars and tensors.

use crate::called;
use tessera_runtime::host_value::{HostKey, HostValue};
use tessera_runtime::tensor::Tensor;
use tessera_trace::scalar::Known;
use tessera_trace::value::Key;

/// A scalar or a tensor of the arguments.
pub enum Leaf {
    Scalar(Known),
    Tensor(Tensor),
    /// Moved into the call.
    Gone,
}

impl Leaf {
    /// Equal for equal values, as far as `tessera advise` needs it.
    pub fn fingerprint(&self) -> u64 {
        match self {
            Leaf::Scalar(k) => k.bits(),
            Leaf::Tensor(t) => called::fingerprint(t),
            Leaf::Gone => 0,
        }
    }
}

/// Appends what must agree for an entry to serve: structure, shapes, dtypes, strings; and the
/// leaves in depth-first order.
pub fn describe(arg: &HostValue, key: &mut Vec<u64>, leaves: &mut Vec<Leaf>) {
    match arg {
        HostValue::Int(n) => leaves.push(Leaf::Scalar(Known::Int(*n))),
        HostValue::Float(x) => leaves.push(Leaf::Scalar(Known::Float(*x))),
        HostValue::Bool(b) => leaves.push(Leaf::Scalar(Known::Bool(*b))),
        HostValue::None => key.push(0),
        HostValue::DType(d) => key.push(*d as u64),
        HostValue::Str(s) => describe_text(s, key),
        HostValue::Tensor(t) => {
            key.push((t.dtype as u64) << 32 | t.shape.len() as u64);
            key.extend(&t.shape);
            if let Some(parts) = &t.parts {
                describe_text(&parts.layout.describe(t.shape.len()), key);
            }
            leaves.push(Leaf::Tensor(t.clone()));
        }
        HostValue::List(items) | HostValue::Record(items) => {
            key.push(items.len() as u64);
            items.iter().for_each(|i| describe(i, key, leaves));
        }
        HostValue::Dict(entries) => {
            key.push(entries.len() as u64);
            for (k, v) in entries {
                match k {
                    HostKey::Int(i) => key.push(*i as u64),
                    HostKey::Bool(b) => key.push(u64::from(*b)),
                    HostKey::Str(s) => describe_text(s, key),
                }
                describe(v, key, leaves);
            }
        }
        HostValue::Closure(code, captures) => {
            key.push(*code as u64);
            captures.iter().for_each(|c| describe(c, key, leaves));
        }
    }
}

fn describe_text(s: &str, key: &mut Vec<u64>) {
    key.push(s.len() as u64);
    key.extend(s.as_bytes().chunks(8).map(|c| c.iter().fold(0u64, |n, &b| n << 8 | u64::from(b))));
}

pub fn key(k: &HostKey) -> Key {
    match k {
        HostKey::Int(i) => Key::Int(*i),
        HostKey::Bool(b) => Key::Bool(*b),
        HostKey::Str(s) => Key::Str(s.clone()),
    }
}
