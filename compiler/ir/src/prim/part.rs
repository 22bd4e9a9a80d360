use crate::prim::columns::*;

/// The real or the imaginary part.
pub struct Part {
    pub imag: bool,
}

impl Primitive for Part {
    fn links(&self, at: Site) -> Vec<Vec<Link>> {
        (0..at.count()).map(|i| at.pass(i)).collect()
    }

    fn keeps_partial(&self, _: Site, _: Summand) -> bool {
        true
    }

    fn of_box(&self, _: &[Range<u64>], _: &[Vec<Range<u64>>]) -> Option<Prim> {
        None
    }

    /// The cotangent of a complex number holds those of its parts.
    fn pull(&self, at: &mut At) -> Pulled {
        let shape = at.shape(at.c);
        let zero = at.zeros_of(&shape, DType::F32);
        let (re, im) = if self.imag { (zero, at.c) } else { (at.c, zero) };
        Ok(vec![Some(expand::complex(at.w, re, im))])
    }

    fn lifted(&self, _: usize) -> Lifted {
        Lifted::All(Prim::Part { imag: self.imag })
    }

    fn batch(&self, _: &mut Lift, _: &Node) -> Option<Id> {
        None
    }

    fn role(&self, _: Site) -> Role {
        Role::Element
    }

    fn body(&self, b: &mut Body, q: &Asked) -> Result<ValueId, Refusal> {
        b.value(q.operand(0)?, q.at, q.guards, if self.imag { body::Part::Imag } else { body::Part::Real })
    }
}
