use crate::prim::columns::*;

/// Elements from a start on, in steps.
pub struct Slice<'a> {
    pub start: &'a [i64],
    pub step: &'a [i64],
}

impl Primitive for Slice<'_> {
    fn shape(&self, x: &[TypeRef], result: TypeRef) -> rule::Check {
        count(x, 1)?;
        dtype_is(x[0], result)?;
        stepped(x[0].shape, self.start, self.step, result.shape)
    }

    fn stands(&self, _: Site) -> rule::Check {
        Ok(())
    }

    fn text(&self, _: Site, put: &mut Attrs) -> Word {
        put.ints("start", self.start);
        put.ints("step", self.step);
        "slice".into()
    }

    fn read(name: &str, op: &Op, _: &mut Around) -> Option<Read> {
        (name == "slice").then(|| Ok(Prim::Slice { start: op.ints("start")?, step: op.ints("step")? }))
    }

    fn meaning(&self, x: &[ArrayRef], result: TypeRef, _: Summation) -> Meaning {
        Ok(reference::movement::slice(x[0], self.start, self.step, result.shape))
    }

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

    fn of_box(&self, boxes: &Boxes) -> Option<Prim> {
        let (result, x) = (boxes.result(), boxes.operand(0));
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

    fn asks(&self, _: Site, part: &part::Part) -> Option<Vec<part::Part>> {
        Some(vec![part.of_slice(self.start, self.step)])
    }

    fn body(&self, b: &mut Body, q: &Asked) -> Result<ValueId, Refusal> {
        let x = q.operand(0)?;
        let get = |list: &[i64], i: usize, or: i64| list.get(i).copied().unwrap_or(or);
        let one = |i: usize| q.along(i).times(get(self.step, i, 1)).offset(get(self.start, i, 0));
        let inner: Vec<Index> = (0..b.graph.ty(x).shape.len()).map(one).collect();
        b.value(x, &inner, q.guards, q.part)
    }

    fn comes_from(&self, _: Site) -> Source {
        Source::Moved(1)
    }

    fn cost(&self, at: Site) -> Cost {
        Cost { operations: 0, again: Again::Cheap(0.0), interpreted: at.touched() * 2.0 }
    }

    fn reads_all(&self, _: usize) -> bool {
        false
    }

    fn flags(&self) -> Flags {
        Flags { work: false, step: false, selects: true, cheap: false, kept: false }
    }

    fn word(&self) -> Word {
        "slice".into()
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
