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
}
