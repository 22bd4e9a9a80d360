use crate::prim::columns::*;

/// Elements at positions of the first dims from data.
pub struct Gather;

impl Primitive for Gather {
    fn links(&self, at: Site) -> Vec<Vec<Link>> {
        let (depth, more) = (at.count() - 1, at.rank(1));
        let link = |d: usize| if d < depth { Link::Indexed } else { Link::Pass(d - depth + more) };
        let base = (0..at.rank(0)).map(link).collect();
        [base].into_iter().chain((1..at.count()).map(|i| at.pass(i))).collect()
    }

    fn keeps_partial(&self, _: Site, _: Summand) -> bool {
        false
    }

    fn of_box(&self, _: &[Range<u64>], _: &[Vec<Range<u64>>]) -> Option<Prim> {
        None
    }
}
