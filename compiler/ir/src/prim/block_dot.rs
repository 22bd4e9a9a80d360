use crate::prim::columns::*;

/// A product with a matrix in blocks.
pub struct BlockDot {
    pub format: Blocks,
}

impl Primitive for BlockDot {
    fn links(&self, _: Site) -> Vec<Vec<Link>> {
        vec![vec![Link::Pass(0), Link::Whole], vec![Link::Pass(1), Link::Whole, Link::Whole]]
    }

    fn keeps_partial(&self, _: Site, _: Summand) -> bool {
        false
    }

    fn of_box(&self, _: &[Range<u64>], _: &[Vec<Range<u64>>]) -> Option<Prim> {
        None
    }
}
