use crate::prim::columns::*;

/// The positions of elements in order along an axis.
pub struct ArgSort {
    pub axis: usize,
    pub descending: bool,
}

impl Primitive for ArgSort {
    fn shape(&self, x: &[TypeRef], result: TypeRef) -> rule::Check {
        count(x, 1)?;
        real(x[0])?;
        integer(result)?;
        axis_in(self.axis, x[0].shape)?;
        shape_is(x[0].shape, result)
    }

    fn stands(&self, _: Site) -> rule::Check {
        Ok(())
    }

    fn text(&self, _: Site, put: &mut Attrs) -> Word {
        put.place("axis", self.axis);
        put.bool("descending", self.descending);
        "argsort".into()
    }

    fn read(name: &str, op: &Op, _: &mut Around) -> Option<Read> {
        (name == "argsort").then(|| Ok(Prim::ArgSort { axis: op.index("axis")?, descending: op.bool("descending")? }))
    }

    fn meaning(&self, x: &[ArrayRef], result: TypeRef, _: Summation) -> Meaning {
        Ok(reference::sort::arg_sort(self.axis, self.descending, x[0], result.dtype))
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
        "argsort".into()
    }
}
