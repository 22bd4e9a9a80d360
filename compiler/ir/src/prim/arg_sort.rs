use crate::prim::columns::*;

/// The positions of elements in order along an axis.
pub struct ArgSort {
    pub axis: usize,
    pub descending: bool,
}

impl Primitive for ArgSort {
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
