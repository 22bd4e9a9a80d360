use crate::prim::columns::*;

/// An operand with values added along an axis at positions of an index.
pub struct ScatterAddAlong {
    pub axis: usize,
}

impl Primitive for ScatterAddAlong {
    fn shape(&self, x: &[TypeRef], result: TypeRef) -> rule::Check {
        count(x, 3)?;
        same(x[0], result)?;
        dtype_is(x[2], result)?;
        shape_is(x[1].shape, x[2])?;
        along(x[0], x[1], self.axis)
    }

    fn stands(&self, _: Site) -> rule::Check {
        Ok(())
    }

    fn text(&self, _: Site, put: &mut Attrs) -> Word {
        put.place("axis", self.axis);
        "scatter_add_along".into()
    }

    fn read(name: &str, op: &Op, _: &mut Around) -> Option<Read> {
        (name == "scatter_add_along").then(|| Ok(Prim::ScatterAddAlong { axis: op.index("axis")? }))
    }

    fn meaning(&self, x: &[ArrayRef], _: TypeRef, _: Summation) -> Meaning {
        reference::index::scatter_add_along(x[0], x[1], x[2], self.axis)
    }

    fn links(&self, at: Site) -> Vec<Vec<Link>> {
        (0..3).map(|i| at.pass_but(i, self.axis, Link::Whole)).collect()
    }

    fn keeps_partial(&self, _: Site, _: Summand) -> bool {
        false
    }

    fn of_box(&self, _: &Boxes) -> Option<Prim> {
        None
    }

    /// Operands: base, index, source.
    fn pull(&self, at: &mut At) -> Pulled {
        let source = at.needed[2].then(|| {
            let (shape, dtype) = (at.shape(at.x[2]), at.dtype(at.c));
            at.w.push(Prim::TakeAlong { axis: self.axis }, &[at.c, at.x[1]], shape, dtype)
        });
        Ok(vec![Some(at.c), None, source])
    }

    fn lifted(&self, dims: usize) -> Lifted {
        Lifted::All(Prim::ScatterAddAlong { axis: self.axis + dims })
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
        Err(q.refuse("writes where data says, in order"))
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
        "scatteraddalong".into()
    }
}
