use crate::prim::columns::*;

/// The position of the first extreme along an axis.
pub struct ArgReduce {
    pub largest: bool,
    pub axis: usize,
}

impl Primitive for ArgReduce {
    fn links(&self, at: Site) -> Vec<Vec<Link>> {
        let link = |d: usize| match d.cmp(&self.axis) {
            Ordering::Less => Link::Pass(d),
            Ordering::Equal => Link::Few,
            Ordering::Greater => Link::Pass(d - 1),
        };
        vec![(0..at.rank(0)).map(link).collect()]
    }

    fn keeps_partial(&self, _: Site, _: Summand) -> bool {
        false
    }

    fn of_box(&self, _: &[Range<u64>], _: &[Vec<Range<u64>>]) -> Option<Prim> {
        None
    }

    /// The result is an integer.
    fn pull(&self, at: &mut At) -> Pulled {
        Ok(vec![None; at.x.len()])
    }

    fn lifted(&self, dims: usize) -> Lifted {
        Lifted::All(Prim::ArgReduce { largest: self.largest, axis: self.axis + dims })
    }

    fn batch(&self, _: &mut Lift, _: &Node) -> Option<Id> {
        None
    }
}
