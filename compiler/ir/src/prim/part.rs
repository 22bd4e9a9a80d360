use crate::prim::columns::*;

/// The real or the imaginary part.
pub struct Part {
    pub imag: bool,
}

impl Primitive for Part {
    fn shape(&self, x: &[TypeRef], result: TypeRef) -> rule::Check {
        count(x, 1)?;
        shape_is(x[0].shape, result)?;
        let fits = x[0].dtype.is_complex() && result.dtype == DType::F32;
        ensure(fits, || format!("a part of {} is not {}", x[0].dtype, result.dtype))
    }

    fn stands(&self, _: Site) -> rule::Check {
        Ok(())
    }

    fn text(&self, _: Site, _: &mut Attrs) -> Word {
        (if self.imag { "imag" } else { "real" }).into()
    }

    fn read(name: &str, _: &Op, _: &mut Around) -> Option<Read> {
        matches!(name, "real" | "imag").then(|| Ok(Prim::Part { imag: name == "imag" }))
    }

    fn meaning(&self, x: &[ArrayRef], _: TypeRef, _: Summation) -> Meaning {
        Ok(reference::complex::part(x[0], self.imag))
    }

    fn links(&self, at: Site) -> Vec<Vec<Link>> {
        (0..at.count()).map(|i| at.pass(i)).collect()
    }

    fn keeps_partial(&self, _: Site, _: Summand) -> bool {
        true
    }

    fn of_box(&self, _: &Boxes) -> Option<Prim> {
        None
    }

    /// The cotangent of a complex number holds those of its parts.
    fn pull(&self, at: &mut At) -> Pulled {
        let shape = at.shape(at.c);
        let zero = at.zeros_of(&shape, DType::F32);
        let (re, im) = if self.imag { (zero, at.c) } else { (at.c, zero) };
        Ok(vec![Some(expand::complex(at.w, re, im))])
    }

    fn lifted(&self, _: usize) -> Lifted {
        Lifted::All(Prim::Part { imag: self.imag })
    }

    fn batch(&self, _: &mut Lift, _: &Node) -> Option<Id> {
        None
    }

    fn role(&self, _: Site) -> Role {
        Role::Element
    }

    fn asks(&self, _: Site, _: &part::Part) -> Option<Vec<part::Part>> {
        None
    }

    fn body(&self, b: &mut Body, q: &Asked) -> Result<ValueId, Refusal> {
        b.value(q.operand(0)?, q.at, q.guards, if self.imag { body::Part::Imag } else { body::Part::Real })
    }

    fn comes_from(&self, _: Site) -> Source {
        Source::Any
    }

    fn cost(&self, at: Site) -> Cost {
        Cost { operations: 0, again: Again::Cheap(at.elems() as f64 * 0.1), interpreted: at.touched() * 2.0 }
    }

    fn reads_all(&self, _: usize) -> bool {
        false
    }

    fn flags(&self) -> Flags {
        Flags { work: true, step: false, selects: false, cheap: true, kept: false }
    }

    fn word(&self) -> Word {
        "part".into()
    }
}
