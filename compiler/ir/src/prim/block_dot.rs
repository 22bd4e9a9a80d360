use crate::prim::columns::*;

/// A product with a matrix in blocks.
pub struct BlockDot {
    pub format: Blocks,
}

impl Primitive for BlockDot {
    fn shape(&self, x: &[TypeRef], result: TypeRef) -> rule::Check {
        count(x, 2)?;
        let right = numbers(self.format, x[1])?;
        let (&[m, k], &[n, depth]) = (x[0].shape, &right[..]) else {
            return Err("a product with blocks takes matrices".into());
        };
        ensure(k == depth, || format!("the contracted sizes are {k} and {depth}"))?;
        let f32s = x[0].dtype == DType::F32 && result.dtype == DType::F32;
        ensure(f32s, || "a product with blocks takes and gives f32".into())?;
        shape_is(&[m, n], result)
    }

    fn stands(&self, _: Site) -> rule::Check {
        Ok(())
    }

    fn text(&self, _: Site, put: &mut Attrs) -> Word {
        put.str("format", self.format.name());
        "block_dot".into()
    }

    fn read(name: &str, op: &Op, _: &mut Around) -> Option<Read> {
        (name == "block_dot").then(|| Ok(Prim::BlockDot { format: op.blocks("format")? }))
    }

    fn meaning(&self, x: &[ArrayRef], _: TypeRef, _: Summation) -> Meaning {
        Ok(reference::block_quant::dot(self.format, x[0], x[1]))
    }

    fn links(&self, _: Site) -> Vec<Vec<Link>> {
        vec![vec![Link::Pass(0), Link::Whole], vec![Link::Pass(1), Link::Whole, Link::Whole]]
    }

    fn keeps_partial(&self, _: Site, _: Summand) -> bool {
        false
    }

    fn of_box(&self, _: &Boxes) -> Option<Prim> {
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

    fn asks(&self, _: Site, _: &part::Part) -> Option<Vec<part::Part>> {
        None
    }

    fn body(&self, _: &mut Body, q: &Asked) -> Result<ValueId, Refusal> {
        Err(q.refuse("has a kernel of the runtime, which turns blocks in registers"))
    }

    fn comes_from(&self, _: Site) -> Source {
        Source::Any
    }

    fn cost(&self, at: Site) -> Cost {
        let again = Again::Dear(at.elems() as f64 * at.depth() * 0.02);
        Cost { operations: 0, again, interpreted: at.touched() * 2.0 }
    }

    fn reads_all(&self, _: usize) -> bool {
        true
    }

    fn flags(&self) -> Flags {
        Flags { work: true, step: false, selects: false, cheap: false, kept: false }
    }

    fn word(&self) -> Word {
        "blockdot".into()
    }
}
