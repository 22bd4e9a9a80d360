use crate::prim::columns::*;

/// An operand with a block written where data says.
pub struct DynamicUpdate;

impl Primitive for DynamicUpdate {
    fn links(&self, at: Site) -> Vec<Vec<Link>> {
        let link = |d: usize| if at.shape(0)[d] == at.shape(1)[d] { Link::Pass(d) } else { Link::Whole };
        let both: Vec<Link> = (0..at.rank(0)).map(link).collect();
        [both.clone(), both].into_iter().chain((2..at.count()).map(|i| at.whole(i))).collect()
    }

    fn keeps_partial(&self, _: Site, _: Summand) -> bool {
        false
    }

    fn of_box(&self, _: &[Range<u64>], _: &[Vec<Range<u64>>]) -> Option<Prim> {
        None
    }
}
