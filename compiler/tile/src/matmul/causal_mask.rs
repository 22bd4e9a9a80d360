//! What lies above the diagonal: values that a causal mask makes constant.

use super::Product;
use tessera_ir::index::{Index, Var};
use tessera_ir::schedule::{Schedule, ValueId, ValueOp};
use tessera_ops::map::MapOp;
use tessera_ops::prim::Scalar;

/// The positions of a row from `within` on.
pub(super) struct Above<'a> {
    pub s: &'a Schedule,
    pub within: &'a Index,
    pub keys: Var,
}

impl Product<'_> {
    /// The results above the diagonal, where they are constant, so that the product does not count.
    pub(super) fn masks_above(&self) -> Option<Vec<ValueId>> {
        let (Some(m), Some(n), None, None) = (self.m, self.n, &self.image, self.row) else { return None };
        let within = Index::var(m).offset(1);
        let above = Above { s: self.s, within: &within, keys: n };
        self.s.stores.iter().map(|st| above.value(st.value).map(|_| above.other(st.value))).collect()
    }
}

impl Above<'_> {
    /// The constant that `v` is there.
    pub fn value(&self, v: ValueId) -> Option<f64> {
        let s = self.s;
        match &s.value(v).op {
            ValueOp::Const(Scalar::F(x)) => Some(*x),
            ValueOp::Cast(a) => self.value(*a).filter(|x| *x == 0.0 || x.is_infinite()),
            ValueOp::Map { op: MapOp::r#where, args } => {
                let [c, a, b] = args[..] else { return None };
                let other = self.value(b);
                let either = || self.value(a).filter(|x| other == Some(*x));
                if self.is_mask(c) { other } else { either() }
            }
            ValueOp::Map { op: MapOp::sub, args } => {
                let lowest = self.value(args[0]).filter(|x| *x == f64::NEG_INFINITY);
                lowest.filter(|_| self.is_finite(args[1]))
            }
            ValueOp::Map { op: MapOp::exp, args } => {
                self.value(args[0]).filter(|x| *x == f64::NEG_INFINITY).map(|_| 0.0)
            }
            _ => None,
        }
    }

    /// What a choice by the mask takes there, itself otherwise.
    fn other(&self, v: ValueId) -> ValueId {
        match &self.s.value(v).op {
            ValueOp::Map { op: MapOp::r#where, args } if self.is_mask(args[0]) => args[2],
            _ => v,
        }
    }

    /// `row >= key`.
    fn is_mask(&self, c: ValueId) -> bool {
        let ValueOp::Map { op: MapOp::ge, args } = &self.s.value(c).op else { return false };
        let index = |v: ValueId| match &self.s.value(v).op {
            ValueOp::Index(e) => Some(e),
            _ => None,
        };
        match (index(args[0]), index(args[1])) {
            (Some(row), Some(key)) => row.offset(1) == *self.within && *key == Index::var(self.keys),
            _ => false,
        }
    }

    /// A value that is neither infinite nor NaN: a choice of what is finite, and a constant.
    fn is_finite(&self, v: ValueId) -> bool {
        let s = self.s;
        let ValueOp::Map { op: MapOp::r#where, args } = &s.value(v).op else { return false };
        let [c, a, b] = args[..] else { return false };
        let constant = matches!(s.value(b).op, ValueOp::Const(Scalar::F(x)) if x.is_finite());
        let same = |x: ValueId| x == a || s.value(x) == s.value(a);
        constant && matches!(&s.value(c).op, ValueOp::Map { op: MapOp::isfinite, args } if same(args[0]))
    }
}
