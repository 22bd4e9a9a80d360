use crate::prim::columns::*;

/// Copies of a number before and after the elements.
pub struct Pad<'a> {
    pub low: &'a [u64],
    pub high: &'a [u64],
}

impl Primitive for Pad<'_> {
    fn links(&self, at: Site) -> Vec<Vec<Link>> {
        let link = |d: usize| match (self.low[d], self.high[d]) {
            (0, 0) => Link::Pass(d),
            (low, _) => Link::Reach(d, Reach::Steps { start: -(low as i64), step: 1, count: 1 }),
        };
        at.others_whole((0..at.rank(0)).map(link).collect())
    }

    fn keeps_partial(&self, _: Site, _: Summand) -> bool {
        false
    }

    fn of_box(&self, result: &[Range<u64>], operands: &[Vec<Range<u64>>]) -> Option<Prim> {
        let x = operands.first()?;
        let length = |r: &Range<u64>| r.end - r.start;
        let before = |d: usize| length(&(result[d].start.min(self.low[d])..result[d].end.min(self.low[d])));
        let low: Vec<u64> = (0..self.low.len()).map(before).collect();
        let high = (0..low.len()).map(|d| length(&result[d]) - low[d] - length(&x[d])).collect();
        Some(Prim::Pad { low, high })
    }
}
