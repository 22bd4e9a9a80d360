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

    fn role(&self, _: Site) -> Role {
        Role::Element
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
}
