use crate::prim::block;
use crate::prim::columns::*;

/// Blocks as numbers.
pub struct Dequantize {
    pub format: Blocks,
}

impl Primitive for Dequantize {
    fn shape(&self, x: &[TypeRef], result: TypeRef) -> rule::Check {
        count(x, 1)?;
        shape_is(&numbers(self.format, x[0])?, result)?;
        ensure(result.dtype == DType::F32, || format!("blocks hold f32, not {}", result.dtype))
    }

    fn stands(&self, _: Site) -> rule::Check {
        Ok(())
    }

    fn text(&self, _: Site, put: &mut Attrs) -> Word {
        put.str("format", self.format.name());
        "dequantize".into()
    }

    fn read(name: &str, op: &Op, _: &mut Around) -> Option<Read> {
        (name == "dequantize").then(|| Ok(Prim::Dequantize { format: op.blocks("format")? }))
    }

    fn meaning(&self, x: &[ArrayRef], _: TypeRef, _: Summation) -> Meaning {
        Ok(reference::block_quant::dequantize(self.format, x[0]))
    }

    fn links(&self, at: Site) -> Vec<Vec<Link>> {
        let rank = at.rank(0);
        vec![(0..rank).map(|d| if d + 2 < rank { Link::Pass(d) } else { Link::Whole }).collect()]
    }

    fn keeps_partial(&self, _: Site, _: Summand) -> bool {
        false
    }

    fn of_box(&self, _: &Boxes) -> Option<Prim> {
        None
    }

    /// One side is bytes; operators on blocks state their derivatives as a whole.
    fn pull(&self, at: &mut At) -> Pulled {
        Ok(vec![None; at.x.len()])
    }

    fn lifted(&self, _: usize) -> Lifted {
        Lifted::All(Prim::Dequantize { format: self.format })
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
        block::number(b, q, self.format)
    }

    fn comes_from(&self, _: Site) -> Source {
        Source::Any
    }

    fn cost(&self, at: Site) -> Cost {
        Cost { operations: 0, again: Again::Cheap(at.elems() as f64 * 2.0), interpreted: at.touched() * 2.0 }
    }

    fn reads_all(&self, _: usize) -> bool {
        true
    }

    fn flags(&self) -> Flags {
        Flags { work: true, step: false, selects: false, cheap: true, kept: false }
    }

    fn word(&self) -> Word {
        "dequantize".into()
    }
}
