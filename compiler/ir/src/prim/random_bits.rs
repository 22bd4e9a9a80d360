use crate::prim::columns::*;

/// Random bits of keys.
pub struct RandomBits;

impl Primitive for RandomBits {
    fn shape(&self, x: &[TypeRef], result: TypeRef) -> rule::Check {
        count(x, 1)?;
        positions(x[0])?;
        let batch = x[0].shape.split_last().filter(|(words, _)| **words == 2).map(|(_, batch)| batch);
        let fits = batch.is_some_and(|batch| result.shape.starts_with(batch));
        ensure(fits, || format!("keys are i64[batch…, 2] of {}, not {}", shown(result), shown(x[0])))?;
        integer(result)
    }

    fn stands(&self, _: Site) -> rule::Check {
        Ok(())
    }

    fn text(&self, _: Site, _: &mut Attrs) -> Word {
        "random_bits".into()
    }

    fn read(name: &str, _: &Op, _: &mut Around) -> Option<Read> {
        (name == "random_bits").then_some(Ok(Prim::RandomBits))
    }

    fn meaning(&self, x: &[ArrayRef], result: TypeRef, _: Summation) -> Meaning {
        Ok(reference::random::random_bits(x[0], result))
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

    /// The result is an integer.
    fn pull(&self, at: &mut At) -> Pulled {
        Ok(vec![None; at.x.len()])
    }

    fn lifted(&self, _: usize) -> Lifted {
        Lifted::All(Prim::RandomBits)
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
        let keys = q.operand(0)?;
        let lead = b.graph.ty(keys).shape.len().saturating_sub(1).min(q.at.len());
        let (batch, rest) = q.at.split_at(lead);
        let mut word = |i| b.value(keys, &[batch, &[Index::constant(i)]].concat(), q.guards, body::Part::Real);
        let key = [word(0)?, word(1)?];
        let at = linear(rest, &row_major(&q.node.ty.shape[lead..]));
        let words = b.push(ValueOp::Random { key, at }, DType::I64);
        Ok(b.cast(words, q.dtype()))
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
        "randombits".into()
    }
}
