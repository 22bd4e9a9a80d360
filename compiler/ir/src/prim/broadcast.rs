use crate::prim::columns::*;

/// Dims of size 1 are repeated, and there are more of them.
pub struct Broadcast<'a> {
    pub dims: &'a [usize],
}

impl Primitive for Broadcast<'_> {
    fn links(&self, at: Site) -> Vec<Vec<Link>> {
        let link = |(d, &to): (usize, &usize)| match at.shape(0).get(d) == at.result().get(to) {
            true => Link::Pass(to),
            false => Link::Whole,
        };
        vec![self.dims.iter().enumerate().map(link).collect()]
    }

    fn keeps_partial(&self, _: Site, _: Summand) -> bool {
        true
    }

    fn of_box(&self, _: &[Range<u64>], _: &[Vec<Range<u64>>]) -> Option<Prim> {
        None
    }
}
