use crate::prim::columns::*;

/// A conversion to the type of the result.
pub struct Cast;

impl Primitive for Cast {
    fn shape(&self, x: &[TypeRef], result: TypeRef) -> rule::Check {
        count(x, 1)?;
        shape_is(x[0].shape, result)
    }

    fn stands(&self, _: Site) -> rule::Check {
        Ok(())
    }

    fn text(&self, _: Site, _: &mut Attrs) -> Word {
        "cast".into()
    }

    fn read(name: &str, _: &Op, _: &mut Around) -> Option<Read> {
        (name == "cast").then_some(Ok(Prim::Cast))
    }

    fn meaning(&self, x: &[ArrayRef], result: TypeRef, _: Summation) -> Meaning {
        Ok(reference::elementwise::cast(x[0], result.dtype))
    }

    fn links(&self, at: Site) -> Vec<Vec<Link>> {
        (0..at.count()).map(|i| at.pass(i)).collect()
    }

    fn keeps_partial(&self, at: Site, of: Summand) -> bool {
        let (from, to) = (at.dtype(0), at.node.ty.dtype);
        match of.monoid {
            // Between integers a conversion may wrap around.
            Monoid::Max | Monoid::Min => {
                let ordered = from.is_float() || to.is_float() || from.widens_to(to);
                ordered && to != DType::Bool && !from.is_complex() && !to.is_complex()
            }
            _ => from.widens_to(to) && to.is_float(),
        }
    }

    fn of_box(&self, _: &Boxes) -> Option<Prim> {
        None
    }

    /// A conversion is linear; its cotangent is converted back.
    fn pull(&self, at: &mut At) -> Pulled {
        let to = at.dtype(at.x[0]);
        let c = if at.dtype(at.c).is_complex() && !to.is_complex() { expand::real(at.w, at.c) } else { at.c };
        Ok(vec![Some(expand::cast(at.w, c, to))])
    }

    fn lifted(&self, _: usize) -> Lifted {
        Lifted::All(Prim::Cast)
    }

    fn batch(&self, _: &mut Lift, _: &Node) -> Option<Id> {
        None
    }

    fn role(&self, _: Site) -> Role {
        Role::Element
    }

    fn asks(&self, at: Site, part: &part::Part) -> Option<Vec<part::Part>> {
        Some(vec![part.clone(); at.count()])
    }

    /// A real number has no imaginary part, a complex one gives its real part, and counts as true where either part is not 0.
    fn body(&self, b: &mut Body, q: &Asked) -> Result<ValueId, Refusal> {
        use body::Part::{Imag, Real};
        let (x, to) = (q.operand(0)?, q.node.ty.dtype);
        match (b.graph.ty(x).dtype.is_complex(), to.is_complex()) {
            (false, true) if q.part == Imag => Ok(b.constant(Scalar::I(0), DType::F32)),
            (true, true) => b.value(x, q.at, q.guards, q.part),
            (true, false) if to == DType::Bool => {
                let parts = [Real, Imag].map(|p| b.value(x, q.at, q.guards, p));
                let mut args = vec![];
                for v in parts {
                    args.push(b.cast(v?, DType::Bool));
                }
                Ok(b.push(ValueOp::Map { op: MapOp::logical_or, args }, DType::Bool))
            }
            _ => {
                let v = b.value(x, q.at, q.guards, Real)?;
                Ok(b.cast(v, q.dtype()))
            }
        }
    }

    fn comes_from(&self, _: Site) -> Source {
        Source::Same
    }

    fn cost(&self, at: Site) -> Cost {
        Cost { operations: 0, again: Again::Cheap(at.elems() as f64 * 0.1), interpreted: at.touched() * 2.0 }
    }

    fn reads_all(&self, _: usize) -> bool {
        false
    }

    fn flags(&self) -> Flags {
        Flags { work: true, step: true, selects: false, cheap: true, kept: false }
    }

    fn word(&self) -> Word {
        "cast".into()
    }
}
