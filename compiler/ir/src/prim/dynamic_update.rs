use crate::prim::columns::*;
use crate::prim::dynamic_slice::{one_start, positions_of};

/// An operand with a block written where data says.
pub struct DynamicUpdate;

impl Primitive for DynamicUpdate {
    fn shape(&self, x: &[TypeRef], result: TypeRef) -> rule::Check {
        at_least(x, 2)?;
        same(x[0], result)?;
        dtype_is(x[1], result)?;
        starts(x[0].shape, &x[2..], x[1].shape)
    }

    fn stands(&self, _: Site) -> rule::Check {
        Ok(())
    }

    fn text(&self, _: Site, _: &mut Attrs) -> Word {
        "dynamic_update".into()
    }

    fn read(name: &str, _: &Op, _: &mut Around) -> Option<Read> {
        (name == "dynamic_update").then_some(Ok(Prim::DynamicUpdate))
    }

    fn meaning(&self, x: &[ArrayRef], _: TypeRef, _: Summation) -> Meaning {
        reference::movement::dynamic_update(x[0], x[1], &x[2..])
    }

    fn links(&self, at: Site) -> Vec<Vec<Link>> {
        let link = |d: usize| if at.shape(0)[d] == at.shape(1)[d] { Link::Pass(d) } else { Link::Whole };
        let both: Vec<Link> = (0..at.rank(0)).map(link).collect();
        [both.clone(), both].into_iter().chain((2..at.count()).map(|i| at.whole(i))).collect()
    }

    fn keeps_partial(&self, _: Site, _: Summand) -> bool {
        false
    }

    fn of_box(&self, _: &Boxes) -> Option<Prim> {
        None
    }

    fn pull(&self, at: &mut At) -> Pulled {
        let mut out = vec![None; at.x.len()];
        if at.needed[0] {
            let zeros = at.zeros(at.x[1]);
            let operands = [&[at.c, zeros], &at.x[2..]].concat();
            out[0] = Some(at.like(at.x[0], Prim::DynamicUpdate, &operands));
        }
        if at.needed[1] {
            let sizes = at.shape(at.x[1]);
            let operands = [&[at.c], &at.x[2..]].concat();
            out[1] = Some(at.like(at.x[1], Prim::DynamicSlice { sizes }, &operands));
        }
        Ok(out)
    }

    /// Positions are those of the first dims.
    fn lifted(&self, _: usize) -> Lifted {
        Lifted::No
    }

    /// As a slice that starts where data says.
    fn batch(&self, lift: &mut Lift, node: &Node) -> Option<Id> {
        let (base, block) = (node.operands[0], node.operands[1]);
        if let Some(starts) = one_start(lift, &node.operands[2..]) {
            let operands = [&[lift.each(base), lift.each(block)], &starts[..]].concat();
            return Some(lift.push(node, Prim::DynamicUpdate, &operands));
        }
        let (whole, part) = (lift.body.ty(base).shape.clone(), lift.body.ty(block).shape.clone());
        let index = positions_of(lift, &whole, &part, &node.operands[2..])?;
        let operands = [&[lift.each(base), lift.each(block)], &index[..]].concat();
        Some(lift.push(node, Prim::Scatter { add: false }, &operands))
    }

    /// What has no elements still has positions that are checked.
    fn role(&self, at: Site) -> Role {
        if at.is_empty() || at.elems_of(1) == 0 { Role::Alone } else { Role::Update }
    }

    fn asks(&self, _: Site, _: &part::Part) -> Option<Vec<part::Part>> {
        None
    }

    fn body(&self, b: &mut Body, q: &Asked) -> Result<ValueId, Refusal> {
        let (base, block) = (q.operand(0)?, q.operand(1)?);
        let mut by = vec![];
        for (axis, (&start, &size)) in q.node.operands[2..].iter().zip(&b.graph.ty(block).shape).enumerate() {
            by.push((axis, b.position(q, (start, &[]), (base, axis), Some(size))?));
        }
        b.write_at(q, q.at, &by);
        b.value(block, q.at, q.guards, q.part)
    }

    fn comes_from(&self, _: Site) -> Source {
        Source::Moved(2)
    }

    fn cost(&self, at: Site) -> Cost {
        Cost { operations: 0, again: Again::Never, interpreted: at.touched() * 2.0 }
    }

    fn reads_all(&self, _: usize) -> bool {
        true
    }

    fn flags(&self) -> Flags {
        Flags { work: true, step: false, selects: false, cheap: false, kept: false }
    }

    fn word(&self) -> Word {
        "dynamicupdate".into()
    }
}
