use crate::prim::columns::*;

/// Blocks as numbers.
pub struct Dequantize {
    pub format: Blocks,
}

impl Primitive for Dequantize {
    fn links(&self, at: Site) -> Vec<Vec<Link>> {
        let rank = at.rank(0);
        vec![(0..rank).map(|d| if d + 2 < rank { Link::Pass(d) } else { Link::Whole }).collect()]
    }

    fn keeps_partial(&self, _: Site, _: Summand) -> bool {
        false
    }

    fn of_box(&self, _: &[Range<u64>], _: &[Vec<Range<u64>>]) -> Option<Prim> {
        None
    }
}
