use crate::prim::columns::*;

/// Elements 0, 1, 2, … along an axis.
pub struct Iota {
    pub axis: usize,
}

impl Primitive for Iota {
    fn shape(&self, x: &[TypeRef], result: TypeRef) -> rule::Check {
        count(x, 0)?;
        axis_in(self.axis, result.shape)
    }

    fn stands(&self, _: Site) -> rule::Check {
        Ok(())
    }

    fn text(&self, _: Site, put: &mut Attrs) -> Word {
        put.place("axis", self.axis);
        "iota".into()
    }

    fn read(name: &str, op: &Op, _: &mut Around) -> Option<Read> {
        (name == "iota").then(|| Ok(Prim::Iota { axis: op.index("axis")? }))
    }

    fn meaning(&self, _: &[ArrayRef], result: TypeRef, _: Summation) -> Meaning {
        Ok(reference::elementwise::iota(self.axis, result))
    }

    fn links(&self, _: Site) -> Vec<Vec<Link>> {
        vec![]
    }

    fn keeps_partial(&self, _: Site, _: Summand) -> bool {
        false
    }

    fn of_box(&self, _: &Boxes) -> Option<Prim> {
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
        Role::View
    }

    fn asks(&self, _: Site, _: &part::Part) -> Option<Vec<part::Part>> {
        None
    }

    fn body(&self, b: &mut Body, q: &Asked) -> Result<ValueId, Refusal> {
        if q.part == body::Part::Imag {
            return Ok(b.constant(Scalar::I(0), q.dtype()));
        }
        let index = q.at.get(self.axis).cloned().unwrap_or_default();
        let v = b.push(ValueOp::Index(index), DType::I64);
        Ok(b.cast(v, q.dtype()))
    }

    fn comes_from(&self, _: Site) -> Source {
        Source::Any
    }

    fn cost(&self, at: Site) -> Cost {
        Cost { operations: 0, again: Again::Cheap(0.0), interpreted: at.touched() * 2.0 }
    }

    fn reads_all(&self, _: usize) -> bool {
        true
    }

    fn flags(&self) -> Flags {
        Flags { work: false, step: false, selects: false, cheap: false, kept: false }
    }

    fn word(&self) -> Word {
        "iota".into()
    }
}
