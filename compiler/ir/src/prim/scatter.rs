use crate::prim::columns::*;

/// An operand with values written or added at positions from data.
pub struct Scatter {
    pub add: bool,
}

impl Primitive for Scatter {
    /// What is not indexed goes along.
    fn links(&self, at: Site) -> Vec<Vec<Link>> {
        let (depth, more) = (at.count() - 2, at.rank(2));
        let base = (0..at.rank(0)).map(|d| if d < depth { Link::Whole } else { Link::Pass(d) }).collect();
        let value = |d: usize| if d < more { Link::Whole } else { Link::Pass(d - more + depth) };
        let values = (0..at.rank(1)).map(value).collect();
        [base, values].into_iter().chain((2..at.count()).map(|i| at.whole(i))).collect()
    }

    fn keeps_partial(&self, _: Site, _: Summand) -> bool {
        false
    }

    fn of_box(&self, _: &[Range<u64>], _: &[Vec<Range<u64>>]) -> Option<Prim> {
        None
    }
}
