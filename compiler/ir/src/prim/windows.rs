use crate::prim::columns::*;

/// Sliding windows over the last dims.
pub struct Windows<'a> {
    pub stride: &'a [u64],
    pub dilation: &'a [u64],
}

impl Primitive for Windows<'_> {
    fn links(&self, at: Site) -> Vec<Vec<Link>> {
        let rank = at.rank(0);
        let before = rank.saturating_sub(self.stride.len());
        let link = |d: usize| {
            let Some(i) = d.checked_sub(before) else { return Link::Pass(d) };
            let count = at.result()[rank + i].saturating_sub(1) * self.dilation[i] + 1;
            Link::Reach(d, Reach::Steps { start: 0, step: self.stride[i] as i64, count })
        };
        vec![(0..rank).map(link).collect()]
    }

    fn keeps_partial(&self, _: Site, _: Summand) -> bool {
        true
    }

    fn of_box(&self, _: &[Range<u64>], _: &[Vec<Range<u64>>]) -> Option<Prim> {
        None
    }
}
