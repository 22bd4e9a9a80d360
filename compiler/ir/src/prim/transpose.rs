use crate::prim::columns::*;

/// Dims in another order.
pub struct Transpose<'a> {
    pub perm: &'a [usize],
}

impl Primitive for Transpose<'_> {
    fn links(&self, at: Site) -> Vec<Vec<Link>> {
        let to = |d: usize| self.perm.iter().position(|&p| p == d).map_or(Link::Whole, Link::Pass);
        vec![(0..at.rank(0)).map(to).collect()]
    }

    fn keeps_partial(&self, _: Site, _: Summand) -> bool {
        true
    }

    fn of_box(&self, _: &[Range<u64>], _: &[Vec<Range<u64>>]) -> Option<Prim> {
        None
    }

    fn pull(&self, at: &mut At) -> Pulled {
        let mut back = vec![0; self.perm.len()];
        for (i, &p) in self.perm.iter().enumerate() {
            back[p] = i;
        }
        Ok(vec![Some(expand::transpose(at.w, at.c, &back))])
    }

    fn lifted(&self, dims: usize) -> Lifted {
        Lifted::All(Prim::Transpose { perm: (0..dims).chain(self.perm.iter().map(|d| d + dims)).collect() })
    }

    fn batch(&self, _: &mut Lift, _: &Node) -> Option<Id> {
        None
    }

    fn role(&self, _: Site) -> Role {
        Role::View
    }

    fn body(&self, b: &mut Body, q: &Asked) -> Result<ValueId, Refusal> {
        let x = q.operand(0)?;
        let mut inner = vec![Index::default(); b.graph.ty(x).shape.len()];
        for (i, p) in self.perm.iter().enumerate() {
            if let Some(slot) = inner.get_mut(*p) {
                *slot = q.along(i);
            }
        }
        b.value(x, &inner, q.guards, q.part)
    }
}
