use crate::prim::columns::*;

/// An operand with another written over it, in steps.
pub struct UpdateSlice<'a> {
    pub start: &'a [i64],
    pub step: &'a [i64],
}

impl Primitive for UpdateSlice<'_> {
    fn shape(&self, x: &[TypeRef], result: TypeRef) -> rule::Check {
        count(x, 2)?;
        same(x[0], result)?;
        dtype_is(x[1], result)?;
        stepped(x[0].shape, self.start, self.step, x[1].shape)
    }

    fn stands(&self, _: Site) -> rule::Check {
        Ok(())
    }

    fn text(&self, _: Site, put: &mut Attrs) -> Word {
        put.ints("start", self.start);
        put.ints("step", self.step);
        "update_slice".into()
    }

    fn read(name: &str, op: &Op, _: &mut Around) -> Option<Read> {
        (name == "update_slice").then(|| Ok(Prim::UpdateSlice { start: op.ints("start")?, step: op.ints("step")? }))
    }

    fn meaning(&self, x: &[ArrayRef], _: TypeRef, _: Summation) -> Meaning {
        Ok(reference::movement::update(x[0], x[1], self.start, self.step))
    }

    fn links(&self, at: Site) -> Vec<Vec<Link>> {
        let link = |d: usize| match (self.start[d], self.step[d], at.shape(0)[d] == at.shape(1)[d]) {
            (0, 1, true) => Link::Pass(d),
            (start, step, _) => Link::Reach(d, Reach::Written { start, step }),
        };
        vec![at.pass(0), (0..at.rank(1)).map(link).collect()]
    }

    fn keeps_partial(&self, _: Site, _: Summand) -> bool {
        false
    }

    fn of_box(&self, boxes: &Boxes) -> Option<Prim> {
        let (result, x) = (boxes.result(), boxes.operand(1));
        let local = |d: usize| match x[d].is_empty() {
            true => 0,
            false => self.start[d] + x[d].start as i64 * self.step[d] - result[d].start as i64,
        };
        Some(Prim::UpdateSlice { start: (0..self.start.len()).map(local).collect(), step: self.step.to_vec() })
    }

    /// What was overwritten has no influence; what was written has that of its place.
    fn pull(&self, at: &mut At) -> Pulled {
        let (start, step) = (self.start.to_vec(), self.step.to_vec());
        let base = at.needed[0].then(|| {
            let zeros = at.zeros(at.x[1]);
            at.like(at.x[0], Prim::UpdateSlice { start: start.clone(), step: step.clone() }, &[at.c, zeros])
        });
        let part = at.needed[1].then(|| at.like(at.x[1], Prim::Slice { start, step }, &[at.c]));
        Ok(vec![base, part])
    }

    fn lifted(&self, dims: usize) -> Lifted {
        let (start, step) = ([&vec![0; dims], self.start].concat(), [&vec![1; dims], self.step].concat());
        Lifted::All(Prim::UpdateSlice { start, step })
    }

    fn batch(&self, _: &mut Lift, _: &Node) -> Option<Id> {
        None
    }

    fn role(&self, at: Site) -> Role {
        match self.step.iter().all(|&s| s == 1) {
            true => Role::Element,
            false if at.elems_of(1) == 0 => Role::Alone,
            false => Role::Update,
        }
    }

    fn asks(&self, _: Site, _: &part::Part) -> Option<Vec<part::Part>> {
        None
    }

    fn body(&self, b: &mut Body, q: &Asked) -> Result<ValueId, Refusal> {
        if self.step.iter().any(|s| *s != 1) {
            let at = q.at.iter().zip(self.start.iter().zip(self.step));
            let place: Vec<Index> = at.map(|(e, (start, step))| e.times(*step).offset(*start)).collect();
            b.write_at(q, &place, &[]);
            return b.value(q.operand(1)?, q.at, q.guards, q.part);
        }
        let inner = (q.operand(1)?, q.part);
        b.window(inner, self.start, q.at, q.guards, |b, g| b.value(q.operand(0)?, q.at, g, q.part))
    }

    fn comes_from(&self, _: Site) -> Source {
        Source::Moved(2)
    }

    fn cost(&self, at: Site) -> Cost {
        Cost { operations: 0, again: Again::Cheap(at.elems() as f64 * 0.1), interpreted: at.touched() * 2.0 }
    }

    fn reads_all(&self, _: usize) -> bool {
        false
    }

    fn flags(&self) -> Flags {
        Flags { work: true, step: false, selects: true, cheap: false, kept: false }
    }

    fn word(&self) -> Word {
        "updateslice".into()
    }
}
