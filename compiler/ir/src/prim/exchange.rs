use crate::prim::columns::*;

/// A part of a tensor from parts of several devices.
pub struct Exchange<'a> {
    pub what: &'a prim::Exchange,
}

impl Primitive for Exchange<'_> {
    fn links(&self, at: Site) -> Vec<Vec<Link>> {
        (0..at.count()).map(|i| at.whole(i)).collect()
    }

    fn keeps_partial(&self, _: Site, _: Summand) -> bool {
        false
    }

    fn of_box(&self, _: &[Range<u64>], _: &[Vec<Range<u64>>]) -> Option<Prim> {
        None
    }

    fn pull(&self, _: &mut At) -> Pulled {
        Err("a graph of one device of a mesh")
    }

    /// Only in graphs of one device.
    fn lifted(&self, _: usize) -> Lifted {
        Lifted::No
    }

    fn batch(&self, _: &mut Lift, _: &Node) -> Option<Id> {
        None
    }

    fn role(&self, _: Site) -> Role {
        Role::Alone
    }

    fn body(&self, _: &mut Body, q: &Asked) -> Result<ValueId, Refusal> {
        Err(q.refuse("is what devices do together"))
    }
}
