use crate::prim::columns::*;

/// Elements that are known when a program is compiled.
pub struct Literal<'a> {
    pub bytes: &'a [u8],
}

impl Primitive for Literal<'_> {
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
        Role::Source
    }

    fn body(&self, _: &mut Body, q: &Asked) -> Result<ValueId, Refusal> {
        Err(q.refuse("lies in memory: groups read it"))
    }
}
