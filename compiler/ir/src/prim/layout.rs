use crate::graph::derivatives::Along;
use crate::prim::columns::*;

/// The same value in another layout.
pub struct Layout;

impl Primitive for Layout {
    fn shape(&self, x: &[TypeRef], result: TypeRef) -> rule::Check {
        count(x, 1)?;
        same(x[0], result)
    }

    fn stands(&self, _: Site) -> rule::Check {
        Ok(())
    }

    fn text(&self, _: Site, _: &mut Attrs) -> Word {
        "layout".into()
    }

    fn read(name: &str, _: &Op, _: &mut Around) -> Option<Read> {
        (name == "layout").then_some(Ok(Prim::Layout))
    }

    fn meaning(&self, x: &[ArrayRef], _: TypeRef, _: Summation) -> Meaning {
        Ok(x[0].bytes.to_vec())
    }

    fn links(&self, at: Site) -> Vec<Vec<Link>> {
        (0..at.count()).map(|i| at.pass(i)).collect()
    }

    fn keeps_partial(&self, _: Site, _: Summand) -> bool {
        true
    }

    fn of_box(&self, _: &Boxes) -> Option<Prim> {
        None
    }

    /// The value is the same wherever it lies, and so is its cotangent. Where the value came from one position of an axis,
    /// the cotangent goes back there: it meets there what the position has kept.
    fn pull(&self, at: &mut At) -> Pulled {
        let (from, c) = (NodeId(at.x[0].0), NodeId(at.c.0));
        let node = at.w.graph.node(from);
        if node.prim != Prim::Layout || node.ty.sharding.positions().is_empty() {
            return Ok(vec![Some(at.c)]);
        }
        let ty = NodeType { sharding: node.ty.sharding.clone(), ..at.w.graph.ty(c).clone() };
        Ok(vec![Some(Id(at.w.node(Prim::Layout, vec![c], ty, vec![]).0))])
    }

    /// Where the values lie is part of the result's type.
    fn lifted(&self, _: usize) -> Lifted {
        Lifted::No
    }

    fn batch(&self, lift: &mut Lift, node: &Node) -> Option<Id> {
        let x = lift.each(node.operands[0]);
        let rank = node.ty.shape.len();
        let on = |axis: &Arc<Along>| node.ty.sharding.with(0, std::slice::from_ref(&axis.name), rank);
        Some(lift.axis.map_or(x, |axis| lift.with_sharding(x, on(axis))))
    }

    fn role(&self, _: Site) -> Role {
        Role::Alone
    }

    fn asks(&self, _: Site, _: &part::Part) -> Option<Vec<part::Part>> {
        None
    }

    fn body(&self, _: &mut Body, q: &Asked) -> Result<ValueId, Refusal> {
        Err(q.refuse("is gone where graphs are divided among devices"))
    }

    fn comes_from(&self, _: Site) -> Source {
        Source::Any
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
        "layout".into()
    }
}
