use crate::prim::block::encode;
use crate::prim::columns::*;

/// Numbers as blocks.
pub struct Quantize {
    pub format: Blocks,
}

impl Primitive for Quantize {
    fn shape(&self, x: &[TypeRef], result: TypeRef) -> rule::Check {
        let format = self.format;
        count(x, 1)?;
        let f32s = x[0].dtype == DType::F32 && result.dtype == DType::U8 && format.writes();
        ensure(f32s, || format!("f32 becomes blocks of u8, not {} of {}", x[0].dtype, format.name()))?;
        let back = numbers(format, result)?;
        ensure(back == x[0].shape, || "the blocks do not hold these numbers".into())
    }

    fn stands(&self, _: Site) -> rule::Check {
        Ok(())
    }

    fn text(&self, _: Site, put: &mut Attrs) -> Word {
        put.str("format", self.format.name());
        "quantize".into()
    }

    fn read(name: &str, op: &Op, _: &mut Around) -> Option<Read> {
        (name == "quantize").then(|| Ok(Prim::Quantize { format: op.blocks("format")? }))
    }

    fn meaning(&self, x: &[ArrayRef], _: TypeRef, _: Summation) -> Meaning {
        Ok(reference::block_quant::quantize(self.format, x[0]))
    }

    /// What is in one block, or of one key, is in one place.
    fn links(&self, at: Site) -> Vec<Vec<Link>> {
        let rank = at.rank(0);
        vec![(0..rank).map(|d| if d + 1 < rank { Link::Pass(d) } else { Link::Whole }).collect()]
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
        Lifted::All(Prim::Quantize { format: self.format })
    }

    fn batch(&self, _: &mut Lift, _: &Node) -> Option<Id> {
        None
    }

    /// Bytes go over the numbers of a block several times.
    fn role(&self, at: Site) -> Role {
        if at.is_empty() { Role::Alone } else { Role::Ordered }
    }

    fn asks(&self, _: Site, _: &part::Part) -> Option<Vec<part::Part>> {
        None
    }

    fn body(&self, b: &mut Body, q: &Asked) -> Result<ValueId, Refusal> {
        encode::byte(b, q, self.format)
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
        Flags { work: true, step: false, selects: false, cheap: false, kept: false }
    }

    fn word(&self) -> Word {
        "quantize".into()
    }
}
