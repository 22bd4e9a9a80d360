use crate::prim::columns::*;

/// Every element is one value.
pub struct Full {
    pub value: Scalar,
}

impl Primitive for Full {
    fn shape(&self, x: &[TypeRef], result: TypeRef) -> rule::Check {
        count(x, 0)?;
        let int = !(result.dtype.is_float() || result.dtype.is_complex());
        ensure(!(int && matches!(self.value, Scalar::F(_))), || format!("a float fills {}", result.dtype))
    }

    fn stands(&self, _: Site) -> rule::Check {
        Ok(())
    }

    fn text(&self, _: Site, put: &mut Attrs) -> Word {
        match self.value {
            Scalar::F(x) => put.float("value", x),
            Scalar::I(i) => put.int("value", i),
        }
        "full".into()
    }

    fn read(name: &str, op: &Op, around: &mut Around) -> Option<Read> {
        (name == "full").then(|| match op.attr("value") {
            Some(Attr::Int(n)) if !around.ty.dtype.is_float() => Ok(Prim::Full { value: Scalar::I(*n) }),
            Some(Attr::Int(n)) => Ok(Prim::Full { value: Scalar::F(*n as f64) }),
            Some(Attr::Float(x)) => Ok(Prim::Full { value: Scalar::F(*x) }),
            _ => Err(op.error("the attribute `value` must be a number")),
        })
    }

    fn meaning(&self, _: &[ArrayRef], result: TypeRef, _: Summation) -> Meaning {
        Ok(reference::elementwise::full(self.value, result))
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
        Some(vec![])
    }

    fn body(&self, b: &mut Body, q: &Asked) -> Result<ValueId, Refusal> {
        // It has no imaginary part of its own.
        let value = if q.part == body::Part::Imag { Scalar::I(0) } else { self.value };
        Ok(b.constant(value, q.dtype()))
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
        "full".into()
    }
}
