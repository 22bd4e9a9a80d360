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

    /// Zeros around, or between where there are steps.
    fn pull(&self, at: &mut At) -> Pulled {
        Ok(vec![Some(place(at, at.x[0], at.c, self.start, self.step))])
    }

    fn lifted(&self, dims: usize) -> Lifted {
        let (start, step) = ([&vec![0; dims], self.start].concat(), [&vec![1; dims], self.step].concat());
        Lifted::All(Prim::Slice { start, step })
    }

    fn batch(&self, _: &mut Lift, _: &Node) -> Option<Id> {
        None
    }

    fn role(&self, _: Site) -> Role {
        Role::View
    }

    fn body(&self, b: &mut Body, q: &Asked) -> Result<ValueId, Refusal> {
        let x = q.operand(0)?;
        let get = |list: &[i64], i: usize, or: i64| list.get(i).copied().unwrap_or(or);
        let one = |i: usize| q.along(i).times(get(self.step, i, 1)).offset(get(self.start, i, 0));
        let inner: Vec<Index> = (0..b.graph.ty(x).shape.len()).map(one).collect();
        b.value(x, &inner, q.guards, q.part)
    }
}

/// Zeros of the type of `like`, with `part` from `start` on in steps.
pub fn place(at: &mut At, like: Id, part: Id, start: &[i64], step: &[i64]) -> Id {
    let (whole, size) = (at.shape(like), at.shape(part));
    if step.iter().all(|&s| s == 1) {
        let dtype = at.dtype(part);
        let zero = at.zeros_of(&[], dtype);
        let low: Vec<u64> = start.iter().map(|&s| s as u64).collect();
        let high: Vec<u64> = whole.iter().zip(&size).zip(&low).map(|((w, s), l)| w - s - l).collect();
        if low.iter().chain(&high).all(|&n| n == 0) {
            return part;
        }
        return at.like(like, Prim::Pad { low, high }, &[part, zero]);
    }
    let zeros = at.zeros(like);
    at.like(like, Prim::UpdateSlice { start: start.to_vec(), step: step.to_vec() }, &[zeros, part])
}
