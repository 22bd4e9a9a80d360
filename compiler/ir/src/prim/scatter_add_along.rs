use crate::prim::columns::*;

/// An operand with values added along an axis at positions of an index.
pub struct ScatterAddAlong {
    pub axis: usize,
}

impl Primitive for ScatterAddAlong {
    fn links(&self, at: Site) -> Vec<Vec<Link>> {
        (0..3).map(|i| at.pass_but(i, self.axis, Link::Whole)).collect()
    }

    fn keeps_partial(&self, _: Site, _: Summand) -> bool {
        false
    }

    fn of_box(&self, _: &[Range<u64>], _: &[Vec<Range<u64>>]) -> Option<Prim> {
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

    fn body(&self, _: &mut Body, q: &Asked) -> Result<ValueId, Refusal> {
        Err(q.refuse("writes where data says, in order"))
    }
}
