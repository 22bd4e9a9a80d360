use crate::prim::columns::*;

/// An element along an axis for each position of an index.
pub struct TakeAlong {
    pub axis: usize,
}

impl Primitive for TakeAlong {
    fn shape(&self, x: &[TypeRef], result: TypeRef) -> rule::Check {
        count(x, 2)?;
        dtype_is(x[0], result)?;
        shape_is(x[1].shape, result)?;
        along(x[0], x[1], self.axis)
    }

    fn stands(&self, _: Site) -> rule::Check {
        Ok(())
    }

    fn text(&self, _: Site, put: &mut Attrs) -> Word {
        put.place("axis", self.axis);
        "take_along".into()
    }

    fn read(name: &str, op: &Op, _: &mut Around) -> Option<Read> {
        (name == "take_along").then(|| Ok(Prim::TakeAlong { axis: op.index("axis")? }))
    }

    fn meaning(&self, x: &[ArrayRef], _: TypeRef, _: Summation) -> Meaning {
        reference::index::take_along(x[0], x[1], self.axis)
    }

    fn links(&self, at: Site) -> Vec<Vec<Link>> {
        // Positions that the values themselves chose.
        let few = at.node.operands.get(1).is_some_and(|&o| first_of_sorted(at.g, at.g.node(o)) == Some(self.axis));
        vec![at.pass_but(0, self.axis, if few { Link::Few } else { Link::Indexed }), at.pass(1)]
    }

    fn keeps_partial(&self, _: Site, _: Summand) -> bool {
        false
    }

    fn of_box(&self, _: &Boxes) -> Option<Prim> {
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
        if at.is_empty() { Role::Alone } else { Role::Position }
    }

    fn asks(&self, _: Site, _: &part::Part) -> Option<Vec<part::Part>> {
        None
    }

    fn body(&self, b: &mut Body, q: &Asked) -> Result<ValueId, Refusal> {
        let [a, index] = q.node.operands[..] else { return Err(q.refuse("needs two operands")) };
        let position = b.position(q, (index, q.at), (a, self.axis), None)?;
        let mut place = q.at.to_vec();
        place[self.axis] = Index::default();
        b.read_at(q, a, &place, &[(self.axis, position)])
    }

    fn comes_from(&self, _: Site) -> Source {
        Source::Moved(1)
    }

    fn cost(&self, at: Site) -> Cost {
        Cost { operations: 0, again: Again::Cheap(at.elems() as f64 * 0.5), interpreted: at.touched() * 2.0 }
    }

    fn reads_all(&self, operand: usize) -> bool {
        operand > 0
    }

    fn flags(&self) -> Flags {
        Flags { work: true, step: false, selects: false, cheap: false, kept: false }
    }

    fn word(&self) -> Word {
        "takealong".into()
    }
}
