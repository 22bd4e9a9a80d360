use crate::prim::columns::*;

/// A conversion to the type of the result.
pub struct Cast;

impl Primitive for Cast {
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

    fn of_box(&self, _: &[Range<u64>], _: &[Vec<Range<u64>>]) -> Option<Prim> {
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
}
