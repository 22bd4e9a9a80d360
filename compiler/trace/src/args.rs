//! Arguments of a region as values.

use super::scalar::{Kind, Known, ScalarExpr};
use super::value::{Scalar, Tensor, Value};
use super::{RegionArg, Tracer};
use std::sync::Arc;
use tessera_core::region::Region;
use tessera_core::type_assertions::Seen;
use tessera_ir::graph::NodeType;

/// The leaves of arguments: tensors, ints, floats and bools in depth-first order.
pub fn leaves(args: &[RegionArg]) -> Vec<&RegionArg> {
    let mut out = vec![];
    args.iter().for_each(|a| collect(a, &mut out));
    out
}

fn collect<'a>(arg: &'a RegionArg, out: &mut Vec<&'a RegionArg>) {
    match arg {
        RegionArg::Int(_) | RegionArg::Float(_) | RegionArg::Bool(_) | RegionArg::Tensor { .. } => out.push(arg),
        RegionArg::Str(_) | RegionArg::None | RegionArg::DType(_) => {}
        RegionArg::List(items) | RegionArg::Record(items) => items.iter().for_each(|a| collect(a, out)),
        RegionArg::Dict(entries) => entries.iter().for_each(|(_, a)| collect(a, out)),
        RegionArg::Closure { captures, .. } => captures.iter().for_each(|a| collect(a, out)),
    }
}

impl RegionArg {
    /// The scalar, if it is one.
    pub fn scalar(&self) -> Option<Known> {
        match self {
            RegionArg::Int(n) => Some(Known::Int(*n)),
            RegionArg::Float(x) => Some(Known::Float(*x)),
            RegionArg::Bool(b) => Some(Known::Bool(*b)),
            _ => None,
        }
    }
}

impl From<&RegionArg> for Seen {
    fn from(arg: &RegionArg) -> Seen {
        match arg {
            RegionArg::Int(n) => Seen::Int(*n),
            RegionArg::Tensor { dtype, shape, layout } => {
                Seen::Tensor { dtype: *dtype, shape: shape.clone(), layout: Some(layout.clone()) }
            }
            RegionArg::List(items) => Seen::Items(items.iter().map(Seen::from).collect()),
            RegionArg::Dict(entries) => Seen::Items(entries.iter().map(|(_, v)| Seen::from(v)).collect()),
            RegionArg::Record(items) => Seen::Fields(items.iter().map(Seen::from).collect()),
            _ => Seen::Other,
        }
    }
}

/// Type and name of each leaf; a scalar has the type of the tensor that holds it.
pub(super) fn leaf_types(region: &Region, args: &[RegionArg]) -> (Vec<NodeType>, Vec<Arc<str>>) {
    let (mut types, mut names) = (vec![], vec![]);
    for (param, arg) in region.params.iter().zip(args) {
        let leaves = leaves(std::slice::from_ref(arg));
        let several = leaves.len() > 1;
        for (i, leaf) in leaves.into_iter().enumerate() {
            types.push(match leaf {
                RegionArg::Tensor { dtype, shape, layout } => {
                    NodeType { shape: shape.clone(), dtype: *dtype, sharding: layout.clone() }
                }
                other => NodeType::new(vec![], other.scalar().map_or(Kind::Int, Known::kind).dtype()),
            });
            names.push(if several { format!("{}.{i}", param.name).into() } else { param.name.clone() });
        }
    }
    (types, names)
}

impl Tracer<'_> {
    pub(super) fn bind(&mut self, region: &Region, args: &[RegionArg]) {
        let mut next = 0;
        for (param, arg) in region.params.iter().zip(args) {
            let value = argument(arg, &mut next);
            if let Some(g) = param.global {
                self.globals.insert(g, value.clone());
            }
            self.frames[0].insert(param.local, value);
        }
    }
}

fn argument(arg: &RegionArg, next: &mut u32) -> Value {
    let mut items = |args: &[RegionArg]| Arc::new(args.iter().map(|a| argument(a, next)).collect::<Vec<_>>());
    match arg {
        RegionArg::Str(s) => Value::Str(s.clone()),
        RegionArg::None => Value::None,
        RegionArg::DType(d) => Value::DType(*d),
        RegionArg::List(args) => Value::List(items(args)),
        RegionArg::Record(args) => Value::Record(items(args)),
        RegionArg::Closure { inst, captures } => Value::Closure { inst: *inst, captures: items(captures) },
        RegionArg::Dict(entries) => {
            Value::Dict(Arc::new(entries.iter().map(|(k, a)| (k.clone(), argument(a, next))).collect()))
        }
        RegionArg::Int(_) | RegionArg::Float(_) | RegionArg::Bool(_) | RegionArg::Tensor { .. } => {
            let leaf = *next;
            *next += 1;
            match arg.scalar() {
                Some(v) => Value::Scalar(Scalar::Late(Arc::new(ScalarExpr::Leaf(leaf, v.kind())), v)),
                None => Value::Tensor(Tensor::Leaf(leaf)),
            }
        }
    }
}
