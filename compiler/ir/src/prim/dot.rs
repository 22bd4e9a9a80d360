use crate::prim::columns::*;

/// Products of matrices.
pub struct Dot {
    pub accum: DType,
    pub steps: Steps,
    pub pairs: bool,
}

impl Primitive for Dot {
    /// `[batch…, m, k] @ [batch…, k, n]`, or with several dims in place of `n` (`tessera_shard::apart`). Rows that do not
    /// take all steps know their position.
    fn links(&self, at: Site) -> Vec<Vec<Link>> {
        factors(at.rank(0), at.rank(1), self.steps == Steps::All)
    }

    fn keeps_partial(&self, _: Site, of: Summand) -> bool {
        of.monoid == Monoid::Sum && of.others_same
    }

    fn of_box(&self, _: &[Range<u64>], _: &[Vec<Range<u64>>]) -> Option<Prim> {
        None
    }
}

/// The links of factors of these ranks.
fn factors(rank: usize, right: usize, all: bool) -> Vec<Vec<Link>> {
    let sum = if all { Link::Reduce(Reduction::Sum) } else { Link::Whole };
    let batch = rank.saturating_sub(2);
    let shared = || (0..batch).map(Link::Pass);
    let a = shared().chain([if all { Link::Pass(batch) } else { Link::Whole }, sum]).collect();
    let b = shared().chain([sum]).chain((batch + 1..right).map(Link::Pass)).collect();
    vec![a, b]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causal_products_keep_their_rows() {
        assert_eq!(factors(3, 3, false)[0], [Link::Pass(0), Link::Whole, Link::Whole]);
        assert_eq!(factors(2, 2, true)[1], [Link::Reduce(Reduction::Sum), Link::Pass(1)]);
        assert_eq!(factors(2, 3, true)[1], [Link::Reduce(Reduction::Sum), Link::Pass(1), Link::Pass(2)]);
    }
}
