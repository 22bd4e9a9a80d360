use crate::prim::columns::*;

/// Dims in another order.
pub struct Transpose<'a> {
    pub perm: &'a [usize],
}

impl Primitive for Transpose<'_> {
    fn shape(&self, x: &[TypeRef], result: TypeRef) -> rule::Check {
        count(x, 1)?;
        dtype_is(x[0], result)?;
        let (perm, mut sorted) = (self.perm, self.perm.to_vec());
        sorted.sort_unstable();
        ensure(sorted.into_iter().eq(0..x[0].shape.len()), || format!("{perm:?} is no permutation of the dims"))?;
        let shape: Vec<u64> = perm.iter().map(|&p| x[0].shape[p]).collect();
        shape_is(&shape, result)
    }

    fn stands(&self, _: Site) -> rule::Check {
        Ok(())
    }

    fn text(&self, _: Site, put: &mut Attrs) -> Word {
        put.places("perm", self.perm);
        "transpose".into()
    }

    fn read(name: &str, op: &Op, _: &mut Around) -> Option<Read> {
        (name == "transpose").then(|| Ok(Prim::Transpose { perm: op.places("perm")? }))
    }

    fn meaning(&self, x: &[ArrayRef], _: TypeRef, _: Summation) -> Meaning {
        Ok(reference::movement::transpose(x[0], self.perm))
    }

    fn links(&self, at: Site) -> Vec<Vec<Link>> {
        let to = |d: usize| self.perm.iter().position(|&p| p == d).map_or(Link::Whole, Link::Pass);
        vec![(0..at.rank(0)).map(to).collect()]
    }

    fn keeps_partial(&self, _: Site, _: Summand) -> bool {
        true
    }

    fn of_box(&self, _: &Boxes) -> Option<Prim> {
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

    fn asks(&self, _: Site, part: &part::Part) -> Option<Vec<part::Part>> {
        let mut dims = vec![(0, 1, 1); self.perm.len()];
        self.perm.iter().enumerate().for_each(|(i, p)| dims[*p] = part.dim(i));
        Some(vec![dims.into_iter().collect()])
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
        Flags { work: false, step: false, selects: false, cheap: false, kept: false }
    }

    fn word(&self) -> Word {
        "transpose".into()
    }
}
