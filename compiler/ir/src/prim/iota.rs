use crate::prim::columns::*;

/// Elements 0, 1, 2, … along an axis.
pub struct Iota {
    pub axis: usize,
}

impl Primitive for Iota {
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
        if q.part == body::Part::Imag {
            return Ok(b.constant(Scalar::I(0), q.dtype()));
        }
        let index = q.at.get(self.axis).cloned().unwrap_or_default();
        let v = b.push(ValueOp::Index(index), DType::I64);
        Ok(b.cast(v, q.dtype()))
    }
}
