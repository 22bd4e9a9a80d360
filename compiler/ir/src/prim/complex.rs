use crate::prim::columns::*;

/// A complex number of its parts.
pub struct Complex;

impl Primitive for Complex {
    fn links(&self, at: Site) -> Vec<Vec<Link>> {
        (0..at.count()).map(|i| at.pass(i)).collect()
    }

    fn keeps_partial(&self, _: Site, of: Summand) -> bool {
        of.monoid == Monoid::Sum && of.others_alike
    }

    fn of_box(&self, _: &[Range<u64>], _: &[Vec<Range<u64>>]) -> Option<Prim> {
        None
    }

    fn pull(&self, at: &mut At) -> Pulled {
        Ok(vec![Some(expand::real(at.w, at.c)), Some(expand::imag(at.w, at.c))])
    }

    fn lifted(&self, _: usize) -> Lifted {
        Lifted::All(Prim::Complex)
    }

    fn batch(&self, _: &mut Lift, _: &Node) -> Option<Id> {
        None
    }

    fn role(&self, _: Site) -> Role {
        Role::Element
    }

    fn body(&self, b: &mut Body, q: &Asked) -> Result<ValueId, Refusal> {
        b.value(q.operand((q.part == body::Part::Imag) as usize)?, q.at, q.guards, body::Part::Real)
    }
}
