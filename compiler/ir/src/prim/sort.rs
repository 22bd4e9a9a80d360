use crate::prim::columns::*;

/// Elements in order along an axis.
pub struct Sort {
    pub axis: usize,
    pub descending: bool,
}

impl Primitive for Sort {
    fn shape(&self, x: &[TypeRef], result: TypeRef) -> rule::Check {
        count(x, 1)?;
        real(x[0])?;
        same(x[0], result)?;
        axis_in(self.axis, x[0].shape)
    }

    fn stands(&self, _: Site) -> rule::Check {
        Ok(())
    }

    fn text(&self, _: Site, put: &mut Attrs) -> Word {
        put.place("axis", self.axis);
        put.bool("descending", self.descending);
        "sort".into()
    }

    fn read(name: &str, op: &Op, _: &mut Around) -> Option<Read> {
        (name == "sort").then(|| Ok(Prim::Sort { axis: op.index("axis")?, descending: op.bool("descending")? }))
    }

    fn meaning(&self, x: &[ArrayRef], _: TypeRef, _: Summation) -> Meaning {
        Ok(reference::sort::sort(self.axis, self.descending, x[0]))
    }

    fn links(&self, at: Site) -> Vec<Vec<Link>> {
        vec![at.pass_but(0, self.axis, Link::Along(self.axis))]
    }

    fn keeps_partial(&self, _: Site, _: Summand) -> bool {
        false
    }

    fn of_box(&self, _: &Boxes) -> Option<Prim> {
        None
    }

    /// Each element goes back to where it was.
    fn pull(&self, at: &mut At) -> Pulled {
        let shape = at.shape(at.x[0]);
        let order =
            at.w.push(Prim::ArgSort { axis: self.axis, descending: self.descending }, &[at.x[0]], shape, DType::I64);
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

    fn asks(&self, _: Site, _: &part::Part) -> Option<Vec<part::Part>> {
        None
    }

    fn body(&self, _: &mut Body, q: &Asked) -> Result<ValueId, Refusal> {
        Err(q.refuse("sorts: no loop with fixed bounds does"))
    }

    fn comes_from(&self, _: Site) -> Source {
        Source::Any
    }

    fn cost(&self, at: Site) -> Cost {
        Cost { operations: 0, again: Again::Never, interpreted: at.touched() * 2.0 }
    }

    fn reads_all(&self, _: usize) -> bool {
        true
    }

    fn flags(&self) -> Flags {
        Flags { work: true, step: false, selects: false, cheap: false, kept: false }
    }

    fn word(&self) -> Word {
        "sort".into()
    }
}
