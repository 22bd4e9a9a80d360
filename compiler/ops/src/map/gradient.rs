//! What the derivatives of elementwise functions are written with.

use super::MapOp;
use crate::surface::{Build, Id, expand};

/// The cotangents of a function's operands: of operands, result and the result's cotangent, all
/// of one shape and dtype (the condition of `where` is bool). `None` for an operand whose
/// derivative is zero everywhere.
pub type Gradient = fn(&mut Steps, &[Id], Id, Id) -> Vec<Option<Id>>;

/// Short ways to add elementwise nodes.
pub struct Steps<'a> {
    pub b: &'a mut dyn Build,
}

impl Steps<'_> {
    pub fn map(&mut self, op: MapOp, x: &[Id]) -> Id {
        expand::map(self.b, op, x)
    }

    pub fn add(&mut self, x: Id, y: Id) -> Id {
        self.map(MapOp::add, &[x, y])
    }

    pub fn sub(&mut self, x: Id, y: Id) -> Id {
        self.map(MapOp::sub, &[x, y])
    }

    pub fn mul(&mut self, x: Id, y: Id) -> Id {
        self.map(MapOp::mul, &[x, y])
    }

    pub fn div(&mut self, x: Id, y: Id) -> Id {
        self.map(MapOp::div, &[x, y])
    }

    pub fn neg(&mut self, x: Id) -> Id {
        self.map(MapOp::neg, &[x])
    }

    /// A tensor like `x` whose elements are all `value`.
    pub fn like(&mut self, x: Id, value: f64) -> Id {
        expand::like(self.b, x, value)
    }

    pub fn scale(&mut self, x: Id, by: f64) -> Id {
        expand::binary_const(self.b, MapOp::mul, x, by)
    }

    pub fn plus(&mut self, x: Id, value: f64) -> Id {
        expand::binary_const(self.b, MapOp::add, x, value)
    }

    pub fn one_minus(&mut self, x: Id) -> Id {
        let one = self.like(x, 1.0);
        self.sub(one, x)
    }

    /// `1 − x²`, as `(1 − x)(1 + x)`, which is exact near ±1.
    pub fn one_minus_square(&mut self, x: Id) -> Id {
        let (below, above) = (self.one_minus(x), self.plus(x, 1.0));
        self.mul(below, above)
    }

    pub fn select(&mut self, condition: Id, x: Id, y: Id) -> Id {
        expand::select(self.b, condition, x, y)
    }

    /// The cotangent for the first operand where the condition holds, else for the second.
    pub fn either(&mut self, first: Id, c: Id) -> Vec<Option<Id>> {
        let zero = self.like(c, 0.0);
        vec![Some(self.select(first, c, zero)), Some(self.select(first, zero, c))]
    }
}
