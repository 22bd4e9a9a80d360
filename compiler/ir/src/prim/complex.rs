use crate::prim::columns::*;

/// A complex number of its parts.
pub struct Complex;

impl Primitive for Complex {
    fn shape(&self, x: &[TypeRef], result: TypeRef) -> rule::Check {
        count(x, 2)?;
        for t in x {
            shape_is(t.shape, result)?;
            ensure(t.dtype == DType::F32, || format!("the parts of a complex number are f32, not {}", t.dtype))?;
        }
        ensure(result.dtype.is_complex(), || format!("two parts give c64, not {}", result.dtype))
    }

    fn stands(&self, _: Site) -> rule::Check {
        Ok(())
    }

    fn text(&self, _: Site, _: &mut Attrs) -> Word {
        "complex".into()
    }

    fn read(name: &str, _: &Op, _: &mut Around) -> Option<Read> {
        (name == "complex").then_some(Ok(Prim::Complex))
    }

    fn meaning(&self, x: &[ArrayRef], _: TypeRef, _: Summation) -> Meaning {
        Ok(reference::complex::complex(x[0], x[1]))
    }

    fn links(&self, at: Site) -> Vec<Vec<Link>> {
        (0..at.count()).map(|i| at.pass(i)).collect()
    }

    fn keeps_partial(&self, _: Site, of: Summand) -> bool {
        of.monoid == Monoid::Sum && of.others_alike
    }

    fn of_box(&self, _: &Boxes) -> Option<Prim> {
        None
    }

    fn pull(&self, at: &mut At) -> Pulled {
        Ok(vec![Some(expand::real(at.w, at.c)), Some(expand::imag(at.w, at.c))])
    }

    fn lifted(&self, _: usize) -> Lifted {
        Lifted::All(Prim::Complex)
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
        b.value(q.operand((q.part == body::Part::Imag) as usize)?, q.at, q.guards, body::Part::Real)
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
        Flags { work: true, step: false, selects: false, cheap: false, kept: false }
    }

    fn word(&self) -> Word {
        "complex".into()
    }
}
