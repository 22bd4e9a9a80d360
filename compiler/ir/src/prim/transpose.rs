use crate::prim::columns::*;

/// Dims in another order.
pub struct Transpose<'a> {
    pub perm: &'a [usize],
}

impl Primitive for Transpose<'_> {
    fn links(&self, at: Site) -> Vec<Vec<Link>> {
        let to = |d: usize| self.perm.iter().position(|&p| p == d).map_or(Link::Whole, Link::Pass);
        vec![(0..at.rank(0)).map(to).collect()]
    }

    fn keeps_partial(&self, _: Site, _: Summand) -> bool {
        true
    }

    fn of_box(&self, _: &[Range<u64>], _: &[Vec<Range<u64>>]) -> Option<Prim> {
        None
    }
}
