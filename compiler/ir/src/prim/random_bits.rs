use crate::prim::columns::*;

/// Random bits of keys.
pub struct RandomBits;

impl Primitive for RandomBits {
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
        Role::Alone
    }

    fn body(&self, _: &mut Body, q: &Asked) -> Result<ValueId, Refusal> {
        Err(q.refuse("gives four words at a time"))
    }
}
