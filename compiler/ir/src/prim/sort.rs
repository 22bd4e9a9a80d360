use crate::prim::columns::*;

/// Elements in order along an axis.
pub struct Sort {
    pub axis: usize,
    pub descending: bool,
}

impl Primitive for Sort {
    fn links(&self, at: Site) -> Vec<Vec<Link>> {
        vec![at.pass_but(0, self.axis, Link::Along(self.axis))]
    }

    fn keeps_partial(&self, _: Site, _: Summand) -> bool {
        false
    }

    fn of_box(&self, _: &[Range<u64>], _: &[Vec<Range<u64>>]) -> Option<Prim> {
        None
    }

    /// Each element goes back to where it was.
    fn pull(&self, at: &mut At) -> Pulled {
        let shape = at.shape(at.x[0]);
        let order = at.w.push(Prim::ArgSort { axis: self.axis, descending: self.descending }, &[at.x[0]], shape, DType::I64);
        let zeros = at.zeros(at.x[0]);
        Ok(vec![Some(at.like(at.x[0], Prim::ScatterAddAlong { axis: self.axis }, &[zeros, order, at.c]))])
    }

    fn lifted(&self, dims: usize) -> Lifted {
        Lifted::All(Prim::Sort { axis: self.axis + dims, descending: self.descending })
    }

    fn batch(&self, _: &mut Lift, _: &Node) -> Option<Id> {
        None
    }

    fn role(&self, _: Site) -> Role {
        Role::Alone
    }

    fn body(&self, _: &mut Body, q: &Asked) -> Result<ValueId, Refusal> {
        Err(q.refuse("sorts: no loop with fixed bounds does"))
    }
}
