use crate::prim::columns::*;

/// An operand where an operation of host code has a value for it; elsewhere an error.
pub struct Check {
    pub check: abi::Check,
}

impl Primitive for Check {
    fn links(&self, at: Site) -> Vec<Vec<Link>> {
        (0..at.count()).map(|i| at.pass(i)).collect()
    }

    fn keeps_partial(&self, _: Site, _: Summand) -> bool {
        false
    }

    fn of_box(&self, _: &[Range<u64>], _: &[Vec<Range<u64>>]) -> Option<Prim> {
        None
    }

    /// The value itself, where it is not refused.
    fn pull(&self, at: &mut At) -> Pulled {
        Ok(vec![Some(at.c), None])
    }

    fn lifted(&self, _: usize) -> Lifted {
        Lifted::All(Prim::Check(self.check))
    }

    fn batch(&self, _: &mut Lift, _: &Node) -> Option<Id> {
        None
    }

    fn role(&self, _: Site) -> Role {
        Role::Alone
    }

    fn body(&self, _: &mut Body, q: &Asked) -> Result<ValueId, Refusal> {
        Err(q.refuse("may stop the program, with what stands in it; kernels only tell positions"))
    }
}
