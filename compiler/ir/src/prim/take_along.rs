use crate::prim::columns::*;

/// An element along an axis for each position of an index.
pub struct TakeAlong {
    pub axis: usize,
}

impl Primitive for TakeAlong {
    fn links(&self, at: Site) -> Vec<Vec<Link>> {
        // Positions that the values themselves chose.
        let few = at.node.operands.get(1).is_some_and(|&o| first_of_sorted(at.g, at.g.node(o)) == Some(self.axis));
        vec![at.pass_but(0, self.axis, if few { Link::Few } else { Link::Indexed }), at.pass(1)]
    }

    fn keeps_partial(&self, _: Site, _: Summand) -> bool {
        false
    }

    fn of_box(&self, _: &[Range<u64>], _: &[Vec<Range<u64>>]) -> Option<Prim> {
        None
    }

    fn pull(&self, at: &mut At) -> Pulled {
        let zeros = at.zeros(at.x[0]);
        let sums = at.like(at.x[0], Prim::ScatterAddAlong { axis: self.axis }, &[zeros, at.x[1], at.c]);
        Ok(vec![Some(sums), None])
    }

    fn lifted(&self, dims: usize) -> Lifted {
        Lifted::All(Prim::TakeAlong { axis: self.axis + dims })
    }

    fn batch(&self, _: &mut Lift, _: &Node) -> Option<Id> {
        None
    }

    /// What has no elements still has positions that are checked.
    fn role(&self, at: Site) -> Role {
        if at.is_complex() || at.is_empty() { Role::Alone } else { Role::Position }
    }

    fn body(&self, b: &mut Body, q: &Asked) -> Result<ValueId, Refusal> {
        let [a, index] = q.node.operands[..] else { return Err(q.refuse("needs two operands")) };
        let position = b.position(q, (index, q.at), (a, self.axis), None)?;
        let mut place = q.at.to_vec();
        place[self.axis] = Index::default();
        b.read_at(q, a, &place, &[(self.axis, position)])
    }
}
