use crate::prim::columns::*;

/// A running sum or product along an axis.
pub struct Cumulate {
    pub kind: Reduction,
    pub axis: usize,
}

impl Primitive for Cumulate {
    fn links(&self, at: Site) -> Vec<Vec<Link>> {
        vec![at.pass_but(0, self.axis, Link::Along(self.axis))]
    }

    fn keeps_partial(&self, _: Site, _: Summand) -> bool {
        false
    }

    fn of_box(&self, _: &[Range<u64>], _: &[Vec<Range<u64>>]) -> Option<Prim> {
        None
    }
}
