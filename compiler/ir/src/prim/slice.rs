use crate::prim::columns::*;

/// Elements from a start on, in steps.
pub struct Slice<'a> {
    pub start: &'a [i64],
    pub step: &'a [i64],
}

impl Primitive for Slice<'_> {
    fn links(&self, at: Site) -> Vec<Vec<Link>> {
        let few = first_of_sorted(at.g, at.node);
        let link = |d: usize| match (self.start[d], self.step[d], at.shape(0)[d] == at.result()[d]) {
            _ if few == Some(d) => Link::Few,
            (0, 1, true) => Link::Pass(d),
            (start, step, _) => Link::Reach(d, Reach::Steps { start, step, count: 1 }),
        };
        vec![(0..at.rank(0)).map(link).collect()]
    }

    fn keeps_partial(&self, _: Site, _: Summand) -> bool {
        true
    }

    fn of_box(&self, result: &[Range<u64>], operands: &[Vec<Range<u64>>]) -> Option<Prim> {
        let x = operands.first()?;
        let local = |d: usize| match result[d].is_empty() {
            true => 0,
            false => self.start[d] + result[d].start as i64 * self.step[d] - x[d].start as i64,
        };
        Some(Prim::Slice { start: (0..self.start.len()).map(local).collect(), step: self.step.to_vec() })
    }
}
