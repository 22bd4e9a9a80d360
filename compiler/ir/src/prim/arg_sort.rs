use crate::prim::columns::*;

/// The positions of elements in order along an axis.
pub struct ArgSort {
    pub axis: usize,
    pub descending: bool,
}

impl Primitive for ArgSort {
    fn links(&self, at: Site) -> Vec<Vec<Link>> {
        vec![at.pass_but(0, self.axis, Link::Along(self.axis))]
    }

    fn keeps_partial(&self, _: Site, _: Summand) -> bool {
        false
    }

    fn of_box(&self, _: &[Range<u64>], _: &[Vec<Range<u64>>]) -> Option<Prim> {
        None
    }

    /// The result is an integer.
    fn pull(&self, at: &mut At) -> Pulled {
        Ok(vec![None; at.x.len()])
    }

    fn lifted(&self, dims: usize) -> Lifted {
        Lifted::All(Prim::ArgSort { axis: self.axis + dims, descending: self.descending })
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
