use crate::prim::columns::*;

/// Axes vanish in a sum, a product, an extreme.
pub struct Reduce<'a> {
    pub kind: Reduction,
    pub axes: &'a [usize],
}

impl Primitive for Reduce<'_> {
    fn links(&self, at: Site) -> Vec<Vec<Link>> {
        let link = |d: usize| match self.axes.contains(&d) {
            true => Link::Reduce(self.kind),
            false => Link::Pass(d - self.axes.iter().filter(|&&a| a < d).count()),
        };
        vec![(0..at.rank(0)).map(link).collect()]
    }

    fn keeps_partial(&self, _: Site, of: Summand) -> bool {
        matches!(
            (self.kind, of.monoid),
            (Reduction::Sum, Monoid::Sum) | (Reduction::Max, Monoid::Max) | (Reduction::Min, Monoid::Min)
        )
    }

    fn of_box(&self, _: &[Range<u64>], _: &[Vec<Range<u64>>]) -> Option<Prim> {
        None
    }
}
