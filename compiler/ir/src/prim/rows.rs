use crate::prim::columns::*;

/// Positions of an axis in another order.
pub struct Rows<'a> {
    pub axis: usize,
    pub from: &'a [u64],
}

impl Primitive for Rows<'_> {
    /// Devices that have one position each send them to each other (`tessera_shard::layout`).
    fn links(&self, at: Site) -> Vec<Vec<Link>> {
        vec![at.pass(0)]
    }

    fn keeps_partial(&self, _: Site, _: Summand) -> bool {
        false
    }

    fn of_box(&self, _: &[Range<u64>], _: &[Vec<Range<u64>>]) -> Option<Prim> {
        None
    }
}
