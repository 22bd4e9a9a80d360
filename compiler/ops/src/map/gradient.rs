//! What the derivatives of elementwise functions are written with.

use super::MapOp;

/// The cotangents of a function's operands: of operands, result and the result's cotangent, all
/// of one shape and dtype (the condition of `where` is bool). `None` for an operand whose
/// derivative is zero everywhere.
pub type Gradient = fn(&mut dyn Steps, &[Step], Step, Step) -> Vec<Option<Step>>;

/// A value, by its number where the steps are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step(pub u32);

/// Short ways to write elementwise steps.
pub trait Steps {
    fn map(&mut self, op: MapOp, x: &[Step]) -> Step;

    /// A value like `x` whose elements are all `value`.
    fn like(&mut self, x: Step, value: f64) -> Step;

    fn add(&mut self, x: Step, y: Step) -> Step {
        self.map(MapOp::add, &[x, y])
    }

    fn sub(&mut self, x: Step, y: Step) -> Step {
        self.map(MapOp::sub, &[x, y])
    }

    fn mul(&mut self, x: Step, y: Step) -> Step {
        self.map(MapOp::mul, &[x, y])
    }

    fn div(&mut self, x: Step, y: Step) -> Step {
        self.map(MapOp::div, &[x, y])
    }

    fn neg(&mut self, x: Step) -> Step {
        self.map(MapOp::neg, &[x])
    }

    fn scale(&mut self, x: Step, by: f64) -> Step {
        let by = self.like(x, by);
        self.mul(x, by)
    }

    fn plus(&mut self, x: Step, value: f64) -> Step {
        let value = self.like(x, value);
        self.add(x, value)
    }

    fn one_minus(&mut self, x: Step) -> Step {
        let one = self.like(x, 1.0);
        self.sub(one, x)
    }

    /// `1 − x²`, as `(1 − x)(1 + x)`, which is exact near ±1.
    fn one_minus_square(&mut self, x: Step) -> Step {
        let (below, above) = (self.one_minus(x), self.plus(x, 1.0));
        self.mul(below, above)
    }

    fn select(&mut self, condition: Step, x: Step, y: Step) -> Step {
        self.map(MapOp::r#where, &[condition, x, y])
    }

    /// The cotangent for the first operand where the condition holds, else for the second.
    fn either(&mut self, first: Step, c: Step) -> Vec<Option<Step>> {
        let zero = self.like(c, 0.0);
        vec![Some(self.select(first, c, zero)), Some(self.select(first, zero, c))]
    }
}
