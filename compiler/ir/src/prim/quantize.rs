use crate::prim::columns::*;

/// Numbers as blocks.
pub struct Quantize {
    pub format: Blocks,
}

impl Primitive for Quantize {
    /// What is in one block, or of one key, is in one place.
    fn links(&self, at: Site) -> Vec<Vec<Link>> {
        let rank = at.rank(0);
        vec![(0..rank).map(|d| if d + 1 < rank { Link::Pass(d) } else { Link::Whole }).collect()]
    }

    fn keeps_partial(&self, _: Site, _: Summand) -> bool {
        false
    }

    fn of_box(&self, _: &[Range<u64>], _: &[Vec<Range<u64>>]) -> Option<Prim> {
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

    fn role(&self, _: Site) -> Role {
        Role::Alone
    }

    fn body(&self, _: &mut Body, q: &Asked) -> Result<ValueId, Refusal> {
        Err(q.refuse("turns blocks, whose numbers share bytes"))
    }
}
