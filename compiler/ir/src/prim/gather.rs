use crate::prim::columns::*;

/// Elements at positions of the first dims from data.
pub struct Gather;

impl Primitive for Gather {
    fn shape(&self, x: &[TypeRef], result: TypeRef) -> rule::Check {
        at_least(x, 1)?;
        dtype_is(x[0], result)?;
        shape_is(&indexed(x[0].shape, &x[1..])?, result)
    }

    fn stands(&self, _: Site) -> rule::Check {
        Ok(())
    }

    fn text(&self, _: Site, _: &mut Attrs) -> Word {
        "gather".into()
    }

    fn read(name: &str, _: &Op, _: &mut Around) -> Option<Read> {
        (name == "gather").then_some(Ok(Prim::Gather))
    }

    fn meaning(&self, x: &[ArrayRef], _: TypeRef, _: Summation) -> Meaning {
        reference::index::gather(x[0], &x[1..])
    }

    fn links(&self, at: Site) -> Vec<Vec<Link>> {
        let (depth, more) = (at.count() - 1, at.rank(1));
        let link = |d: usize| match counted(at, 1, d) {
            Some(along) => Link::Pass(along),
            None if d < depth => Link::Indexed,
            None => Link::Pass(d - depth + more),
        };
        let base = (0..at.rank(0)).map(link).collect();
        [base].into_iter().chain((1..at.count()).map(|i| at.pass(i))).collect()
    }

    fn keeps_partial(&self, _: Site, _: Summand) -> bool {
        false
    }

    fn of_box(&self, _: &Boxes) -> Option<Prim> {
        None
    }

    fn pull(&self, at: &mut At) -> Pulled {
        let zeros = at.zeros(at.x[0]);
        let operands = [&[zeros, at.c], &at.x[1..]].concat();
        let mut out = vec![None; at.x.len()];
        out[0] = Some(at.like(at.x[0], Prim::Scatter { add: true }, &operands));
        Ok(out)
    }

    /// Positions are those of the first dims.
    fn lifted(&self, _: usize) -> Lifted {
        Lifted::No
    }

    /// The number of the value is one more position.
    fn batch(&self, lift: &mut Lift, node: &Node) -> Option<Id> {
        let mut operands = vec![lift.each(node.operands[0])];
        operands.extend(numbered(lift, &node.operands[1..]));
        Some(lift.push(node, Prim::Gather, &operands))
    }

    /// What has no elements still has positions that are checked.
    fn role(&self, at: Site) -> Role {
        if at.is_empty() { Role::Alone } else { Role::Position }
    }

    fn asks(&self, _: Site, _: &part::Part) -> Option<Vec<part::Part>> {
        None
    }

    fn body(&self, b: &mut Body, q: &Asked) -> Result<ValueId, Refusal> {
        let Some((&a, indices)) = q.node.operands.split_first() else { return Err(q.refuse("lacks an operand")) };
        let depth = indices.first().map_or(0, |&i| b.graph.ty(i).shape.len());
        let (index_at, rest) = q.at.split_at(depth.min(q.at.len()));
        let mut by = vec![];
        for (axis, &index) in indices.iter().enumerate() {
            by.push((axis, b.position(q, (index, index_at), (a, axis), None)?));
        }
        let place = [vec![Index::default(); indices.len()].as_slice(), rest].concat();
        b.read_at(q, a, &place, &by)
    }

    fn comes_from(&self, _: Site) -> Source {
        Source::Moved(1)
    }

    fn cost(&self, at: Site) -> Cost {
        Cost { operations: 0, again: Again::Cheap(at.elems() as f64 * 0.5), interpreted: at.touched() * 2.0 }
    }

    fn reads_all(&self, operand: usize) -> bool {
        operand > 0
    }

    fn flags(&self) -> Flags {
        Flags { work: true, step: false, selects: false, cheap: false, kept: false }
    }

    fn word(&self) -> Word {
        "gather".into()
    }
}

/// The dim of the positions along which those in dim `d` of the base are 0, 1, 2, … up to its end: a batch has its own elements
/// there. Positions begin at operand `first`.
pub fn counted(at: Site, first: usize, d: usize) -> Option<usize> {
    let along = |d: usize| match at.g.node(*at.node.operands.get(first + d)?).prim {
        Prim::Iota { axis } if at.shape(first + d).get(axis) == at.shape(0).get(d) => Some(axis),
        _ => None,
    };
    along(d).filter(|a| (0..d).all(|before| along(before) != Some(*a)))
}

/// The number of the value before positions, all with the leading dim.
pub fn numbered(lift: &mut Lift, index: &[NodeId]) -> Vec<Id> {
    let index: Vec<Id> = index.iter().map(|&o| lift.each(o)).collect();
    let shape = lift.w.shape(index[0]);
    [&[lift.numbers(&shape)], &index[..]].concat()
}
