use crate::prim::columns::*;

/// One of several results.
pub struct Get {
    pub index: usize,
}

impl Primitive for Get {
    fn links(&self, at: Site) -> Vec<Vec<Link>> {
        (0..at.count()).map(|i| at.whole(i)).collect()
    }

    fn keeps_partial(&self, _: Site, _: Summand) -> bool {
        false
    }

    fn of_box(&self, _: &[Range<u64>], _: &[Vec<Range<u64>>]) -> Option<Prim> {
        None
    }

    /// The walk goes through loops and their results itself (`tessera_autodiff`).
    fn pull(&self, at: &mut At) -> Pulled {
        Ok(vec![None; at.x.len()])
    }

    /// Its body is another one.
    fn lifted(&self, _: usize) -> Lifted {
        Lifted::No
    }

    fn batch(&self, _: &mut Lift, _: &Node) -> Option<Id> {
        None
    }

    fn role(&self, _: Site) -> Role {
        Role::Part
    }

    fn body(&self, _: &mut Body, q: &Asked) -> Result<ValueId, Refusal> {
        Err(q.refuse("is a loop over kernels"))
    }
}
