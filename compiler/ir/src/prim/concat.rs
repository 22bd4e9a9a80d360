use crate::prim::columns::*;

/// Operands one after the other along an axis.
pub struct Concat {
    pub axis: usize,
}

impl Primitive for Concat {
    fn links(&self, at: Site) -> Vec<Vec<Link>> {
        let mut before = 0;
        let one = |i: usize| {
            let start = -(before as i64);
            before += at.shape(i)[self.axis];
            at.pass_but(i, self.axis, Link::Reach(self.axis, Reach::Steps { start, step: 1, count: 1 }))
        };
        (0..at.count()).map(one).collect()
    }

    fn keeps_partial(&self, _: Site, of: Summand) -> bool {
        of.others_alike
    }

    fn of_box(&self, _: &[Range<u64>], _: &[Vec<Range<u64>>]) -> Option<Prim> {
        None
    }

    fn pull(&self, at: &mut At) -> Pulled {
        let (mut start, mut out) = (0, vec![]);
        for i in 0..at.x.len() {
            let length = at.shape(at.x[i])[self.axis];
            out.push(at.needed[i].then(|| expand::slice(at.w, at.c, self.axis, start, length)));
            start += length;
        }
        Ok(out)
    }

    fn lifted(&self, dims: usize) -> Lifted {
        Lifted::All(Prim::Concat { axis: self.axis + dims })
    }

    fn batch(&self, _: &mut Lift, _: &Node) -> Option<Id> {
        None
    }
}
