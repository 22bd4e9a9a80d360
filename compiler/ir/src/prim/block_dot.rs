use crate::prim::columns::*;

/// A product with a matrix in blocks.
pub struct BlockDot {
    pub format: Blocks,
}

impl Primitive for BlockDot {
    fn links(&self, _: Site) -> Vec<Vec<Link>> {
        vec![vec![Link::Pass(0), Link::Whole], vec![Link::Pass(1), Link::Whole, Link::Whole]]
    }

    fn keeps_partial(&self, _: Site, _: Summand) -> bool {
        false
    }

    fn of_box(&self, _: &[Range<u64>], _: &[Vec<Range<u64>>]) -> Option<Prim> {
        None
    }

    /// The cotangent times the numbers of the blocks, which have none themselves.
    fn pull(&self, at: &mut At) -> Pulled {
        let (rows, depth) = (at.shape(at.x[1])[0], at.shape(at.x[0])[1]);
        let numbers = at.w.push(Prim::Dequantize { format: self.format }, &[at.x[1]], vec![rows, depth], DType::F32);
        Ok(vec![Some(expand::dot(at.w, at.c, numbers, DType::F32, DType::F32)), None])
    }

    /// It takes matrices.
    fn lifted(&self, _: usize) -> Lifted {
        Lifted::No
    }

    fn batch(&self, _: &mut Lift, _: &Node) -> Option<Id> {
        None
    }

    fn role(&self, _: Site) -> Role {
        Role::Alone
    }

    fn body(&self, _: &mut Body, q: &Asked) -> Result<ValueId, Refusal> {
        Err(q.refuse("has a kernel of the runtime, which turns blocks in registers"))
    }
}
