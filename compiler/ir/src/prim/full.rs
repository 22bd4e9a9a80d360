use crate::prim::columns::*;

/// Every element is one value.
pub struct Full {
    pub value: Scalar,
}

impl Primitive for Full {
    fn links(&self, _: Site) -> Vec<Vec<Link>> {
        vec![]
    }

    fn keeps_partial(&self, _: Site, _: Summand) -> bool {
        false
    }

    fn of_box(&self, _: &[Range<u64>], _: &[Vec<Range<u64>>]) -> Option<Prim> {
        None
    }

    /// It has no operands.
    fn pull(&self, _: &mut At) -> Pulled {
        Ok(vec![])
    }

    /// It has no operands.
    fn lifted(&self, _: usize) -> Lifted {
        Lifted::No
    }

    fn batch(&self, _: &mut Lift, _: &Node) -> Option<Id> {
        None
    }

    fn role(&self, _: Site) -> Role {
        Role::View
    }

    fn body(&self, b: &mut Body, q: &Asked) -> Result<ValueId, Refusal> {
        // It has no imaginary part of its own.
        let value = if q.part == body::Part::Imag { Scalar::I(0) } else { self.value };
        Ok(b.constant(value, q.dtype()))
    }
}
