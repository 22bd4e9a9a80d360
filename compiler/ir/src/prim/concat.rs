use crate::prim::columns::*;

/// Operands one after the other along an axis.
pub struct Concat {
    pub axis: usize,
}

impl Primitive for Concat {
    fn shape(&self, x: &[TypeRef], result: TypeRef) -> rule::Check {
        let axis = self.axis;
        at_least(x, 1)?;
        axis_in(axis, result.shape)?;
        let mut total = 0u64;
        for (i, t) in x.iter().enumerate() {
            dtype_is(*t, result)?;
            ensure(t.shape.len() == result.shape.len(), || format!("operand {i} has rank {}", t.shape.len()))?;
            let mut shape = result.shape.to_vec();
            shape[axis] = t.shape[axis];
            shape_is(&shape, *t)?;
            total = total.saturating_add(t.shape[axis]);
        }
        ensure(total == result.shape[axis], || format!("the sizes along axis {axis} add up to {total}"))
    }

    fn stands(&self, _: Site) -> rule::Check {
        Ok(())
    }

    fn text(&self, _: Site, put: &mut Attrs) -> Word {
        put.place("axis", self.axis);
        "concat".into()
    }

    fn read(name: &str, op: &Op, _: &mut Around) -> Option<Read> {
        (name == "concat").then(|| Ok(Prim::Concat { axis: op.index("axis")? }))
    }

    fn meaning(&self, x: &[ArrayRef], result: TypeRef, _: Summation) -> Meaning {
        Ok(reference::movement::concat(x, self.axis, result.shape))
    }

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

    fn of_box(&self, _: &Boxes) -> Option<Prim> {
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

    fn role(&self, _: Site) -> Role {
        Role::Element
    }

    fn asks(&self, _: Site, _: &part::Part) -> Option<Vec<part::Part>> {
        None
    }

    fn body(&self, b: &mut Body, q: &Asked) -> Result<ValueId, Refusal> {
        let graph = b.graph;
        let along = q.along(self.axis);
        let mut parts = vec![];
        let mut offset = 0i64;
        for &o in &q.node.operands {
            let size = graph.ty(o).shape.get(self.axis).copied().unwrap_or(0) as i64;
            let shifted = along.offset(-offset);
            let (lo, hi) = shifted.range(&|v| b.s.range(v));
            offset += size;
            if size == 0 || hi < 0 || lo >= size {
                continue;
            }
            let mut place = q.at.to_vec();
            place[self.axis] = shifted.clone();
            let mut all = q.guards.to_vec();
            let guard = (lo < 0 || hi >= size).then_some(Guard { index: shifted, lo: 0, hi: size });
            all.extend(guard.clone());
            parts.push((guard, b.value(o, &place, &all, q.part)?));
        }
        let Some((_, mut out)) = parts.pop() else {
            return Ok(b.constant(Scalar::I(0), q.dtype()));
        };
        for (guard, v) in parts.into_iter().rev() {
            out = b.select(guard.into_iter().collect(), v, out);
        }
        Ok(out)
    }

    fn comes_from(&self, at: Site) -> Source {
        Source::Moved(at.count())
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
        "concat".into()
    }
}
