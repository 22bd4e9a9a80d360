use crate::prim::columns::*;

/// A part of a tensor from parts of several devices.
pub struct Exchange<'a> {
    pub what: &'a prim::Exchange,
}

impl Primitive for Exchange<'_> {
    fn links(&self, at: Site) -> Vec<Vec<Link>> {
        (0..at.count()).map(|i| at.whole(i)).collect()
    }

    fn keeps_partial(&self, _: Site, _: Summand) -> bool {
        false
    }

    fn of_box(&self, _: &[Range<u64>], _: &[Vec<Range<u64>>]) -> Option<Prim> {
        None
    }
}
