use crate::prim::columns::*;

/// A block that starts where data says.
pub struct DynamicSlice<'a> {
    pub sizes: &'a [u64],
}

impl Primitive for DynamicSlice<'_> {
    fn links(&self, at: Site) -> Vec<Vec<Link>> {
        let link = |d: usize| if self.sizes[d] == at.shape(0)[d] { Link::Pass(d) } else { Link::Whole };
        at.others_whole((0..at.rank(0)).map(link).collect())
    }

    fn keeps_partial(&self, _: Site, _: Summand) -> bool {
        false
    }

    /// Dims that go along have the size of the part.
    fn of_box(&self, result: &[Range<u64>], _: &[Vec<Range<u64>>]) -> Option<Prim> {
        Some(Prim::DynamicSlice { sizes: result.iter().map(|r| r.end - r.start).collect() })
    }
}
