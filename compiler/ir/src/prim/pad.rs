use crate::prim::columns::*;

/// Copies of a number before and after the elements.
pub struct Pad<'a> {
    pub low: &'a [u64],
    pub high: &'a [u64],
}

impl Primitive for Pad<'_> {
    fn shape(&self, x: &[TypeRef], result: TypeRef) -> rule::Check {
        let (low, high) = (self.low, self.high);
        count(x, 2)?;
        dtype_is(x[0], result)?;
        dtype_is(x[1], result)?;
        shape_is(&[], x[1])?;
        let rank = x[0].shape.len();
        ensure(low.len() == rank && high.len() == rank, || format!("the pads are not {rank} each"))?;
        let sizes = x[0].shape.iter().zip(low.iter().zip(high)).map(|(&n, (&l, &h))| n.checked_add(l)?.checked_add(h));
        match sizes.collect::<Option<Vec<u64>>>() {
            Some(shape) => shape_is(&shape, result),
            None => Err("a padded size does not fit 64 bits".into()),
        }
    }

    fn stands(&self, _: Site) -> rule::Check {
        Ok(())
    }

    fn text(&self, _: Site, put: &mut Attrs) -> Word {
        put.sizes("low", self.low);
        put.sizes("high", self.high);
        "pad".into()
    }

    fn read(name: &str, op: &Op, _: &mut Around) -> Option<Read> {
        (name == "pad").then(|| Ok(Prim::Pad { low: op.sizes("low")?, high: op.sizes("high")? }))
    }

    fn meaning(&self, x: &[ArrayRef], result: TypeRef, _: Summation) -> Meaning {
        Ok(reference::movement::pad(x[0], x[1], self.low, result.shape))
    }

    fn links(&self, at: Site) -> Vec<Vec<Link>> {
        let link = |d: usize| match (self.low[d], self.high[d]) {
            (0, 0) => Link::Pass(d),
            (low, _) => Link::Reach(d, Reach::Steps { start: -(low as i64), step: 1, count: 1 }),
        };
        at.others_whole((0..at.rank(0)).map(link).collect())
    }

    fn keeps_partial(&self, _: Site, _: Summand) -> bool {
        false
    }

    fn of_box(&self, boxes: &Boxes) -> Option<Prim> {
        let (result, x) = (boxes.result(), boxes.operand(0));
        let length = |r: &Range<u64>| r.end - r.start;
        let before = |d: usize| length(&(result[d].start.min(self.low[d])..result[d].end.min(self.low[d])));
        let low: Vec<u64> = (0..self.low.len()).map(before).collect();
        let high = (0..low.len()).map(|d| length(&result[d]) - low[d] - length(&x[d])).collect();
        Some(Prim::Pad { low, high })
    }

    fn pull(&self, at: &mut At) -> Pulled {
        let (shape, dtype) = (at.shape(at.x[0]), at.dtype(at.c));
        let start = self.low.iter().map(|&l| l as i64).collect();
        let inner = at.w.push(Prim::Slice { start, step: vec![1; shape.len()] }, &[at.c], shape.clone(), dtype);
        let edge = at.needed[1].then(|| {
            let all: Vec<usize> = (0..shape.len()).collect();
            let whole = expand::reduce(at.w, at.c, Reduction::Sum, &all, false);
            let inside = expand::reduce(at.w, inner, Reduction::Sum, &all, false);
            expand::map(at.w, MapOp::sub, &[whole, inside])
        });
        Ok(vec![Some(inner), edge])
    }

    fn lifted(&self, dims: usize) -> Lifted {
        let (low, high) = ([&vec![0; dims], self.low].concat(), [&vec![0; dims], self.high].concat());
        Lifted::First(Prim::Pad { low, high })
    }

    fn batch(&self, _: &mut Lift, _: &Node) -> Option<Id> {
        None
    }

    fn role(&self, _: Site) -> Role {
        Role::Element
    }

    fn asks(&self, _: Site, _: &part::Part) -> Option<Vec<part::Part>> {
        None
    }

    fn body(&self, b: &mut Body, q: &Asked) -> Result<ValueId, Refusal> {
        let low: Vec<i64> = self.low.iter().map(|l| *l as i64).collect();
        let inner = (q.operand(0)?, q.part);
        b.window(inner, &low, q.at, q.guards, |b, g| b.value(q.operand(1)?, &[], g, q.part))
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
        "pad".into()
    }
}
