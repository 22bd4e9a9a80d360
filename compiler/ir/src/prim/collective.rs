use crate::prim::columns::*;

/// What devices do together.
pub struct Collective<'a> {
    pub what: &'a prim::Collective,
}

impl Primitive for Collective<'_> {
    fn links(&self, at: Site) -> Vec<Vec<Link>> {
        (0..at.count()).map(|i| at.whole(i)).collect()
    }

    fn keeps_partial(&self, _: Site, _: Summand) -> bool {
        false
    }

    fn of_box(&self, _: &[Range<u64>], _: &[Vec<Range<u64>>]) -> Option<Prim> {
        None
    }

    fn pull(&self, _: &mut At) -> Pulled {
        Err("a collective, from inside per-device code")
    }

    /// The same of blocks with more dims in front.
    fn lifted(&self, dims: usize) -> Lifted {
        use prim::CollectiveKind::{Gather, Scatter, Turn};
        let kind = match &self.what.kind {
            Gather { dim } => Gather { dim: dim + dims },
            Scatter { dim } => Scatter { dim: dim + dims },
            Turn { from, to } => Turn { from: from + dims, to: to + dims },
            other => other.clone(),
        };
        Lifted::All(Prim::Collective(Arc::new(prim::Collective { kind, ..self.what.clone() })))
    }

    fn batch(&self, _: &mut Lift, _: &Node) -> Option<Id> {
        None
    }

    fn role(&self, _: Site) -> Role {
        Role::Alone
    }

    fn body(&self, _: &mut Body, q: &Asked) -> Result<ValueId, Refusal> {
        Err(q.refuse("is what devices do together"))
    }
}
