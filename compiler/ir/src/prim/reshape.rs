use crate::prim::columns::*;

/// The same elements in another shape.
pub struct Reshape;

impl Primitive for Reshape {
    fn links(&self, at: Site) -> Vec<Vec<Link>> {
        vec![reshaped(at.shape(0), at.result())]
    }

    fn keeps_partial(&self, _: Site, _: Summand) -> bool {
        true
    }

    fn of_box(&self, _: &[Range<u64>], _: &[Vec<Range<u64>>]) -> Option<Prim> {
        None
    }

    fn pull(&self, at: &mut At) -> Pulled {
        let from = at.shape(at.x[0]);
        Ok(vec![Some(expand::reshape(at.w, at.c, &from))])
    }

    fn lifted(&self, _: usize) -> Lifted {
        Lifted::All(Prim::Reshape)
    }

    fn batch(&self, _: &mut Lift, _: &Node) -> Option<Id> {
        None
    }

    fn role(&self, _: Site) -> Role {
        Role::View
    }

    fn body(&self, b: &mut Body, q: &Asked) -> Result<ValueId, Refusal> {
        let x = q.operand(0)?;
        let flat = linear(q.at, &row_major(&q.node.ty.shape));
        let inner = delinear(&flat, &b.graph.ty(x).shape, &|v| b.s.range(v));
        b.value(x, &inner, q.guards, q.part)
    }
}
