use crate::prim::columns::*;

/// Rows along an axis at positions from data.
pub struct Take {
    pub axis: usize,
}

impl Primitive for Take {
    fn links(&self, at: Site) -> Vec<Vec<Link>> {
        let more = at.rank(1);
        let link = |d: usize| match d.cmp(&self.axis) {
            Ordering::Less => Link::Pass(d),
            Ordering::Equal => Link::Indexed,
            Ordering::Greater => Link::Pass(d + more - 1),
        };
        vec![(0..at.rank(0)).map(link).collect(), (0..more).map(|d| Link::Pass(self.axis + d)).collect()]
    }

    fn keeps_partial(&self, _: Site, _: Summand) -> bool {
        false
    }

    fn of_box(&self, _: &[Range<u64>], _: &[Vec<Range<u64>>]) -> Option<Prim> {
        None
    }
}
