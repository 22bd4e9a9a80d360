use crate::prim::columns::*;

/// The same elements in another shape.
pub struct Reshape;

impl Primitive for Reshape {
    fn shape(&self, x: &[TypeRef], result: TypeRef) -> rule::Check {
        count(x, 1)?;
        dtype_is(x[0], result)?;
        let same = elems(x[0].shape) == elems(result.shape);
        ensure(same, || format!("{} has other elements than {}", shown(x[0]), shown(result)))
    }

    fn stands(&self, _: Site) -> rule::Check {
        Ok(())
    }

    fn text(&self, _: Site, _: &mut Attrs) -> Word {
        "reshape".into()
    }

    fn read(name: &str, _: &Op, _: &mut Around) -> Option<Read> {
        (name == "reshape").then_some(Ok(Prim::Reshape))
    }

    fn meaning(&self, x: &[ArrayRef], _: TypeRef, _: Summation) -> Meaning {
        Ok(x[0].bytes.to_vec())
    }

    fn links(&self, at: Site) -> Vec<Vec<Link>> {
        vec![reshaped(at.shape(0), at.result())]
    }

    fn keeps_partial(&self, _: Site, _: Summand) -> bool {
        true
    }

    fn of_box(&self, _: &Boxes) -> Option<Prim> {
        None
    }

    fn pull(&self, at: &mut At) -> Pulled {
        let from = at.shape(at.x[0]);
        Ok(vec![Some(expand::reshape(at.w, at.c, &from))])
    }

    fn lifted(&self, _: usize) -> Lifted {
        Lifted::All(Prim::Reshape)
    }

    fn batch(&self, _: &mut Lift, _: &Node) -> Option<Id> {
        None
    }

    fn role(&self, _: Site) -> Role {
        Role::View
    }

    fn asks(&self, at: Site, part: &part::Part) -> Option<Vec<part::Part>> {
        Some(vec![part.reshaped(at.result(), at.shape(0))?])
    }

    fn body(&self, b: &mut Body, q: &Asked) -> Result<ValueId, Refusal> {
        let x = q.operand(0)?;
        let inner = regrouped(q.at, &q.node.ty.shape, &b.graph.ty(x).shape, &|v| b.s.range(v));
        b.value(x, &inner, q.guards, q.part)
    }

    fn comes_from(&self, _: Site) -> Source {
        Source::Same
    }

    fn cost(&self, at: Site) -> Cost {
        Cost { operations: 0, again: Again::Cheap(0.0), interpreted: at.touched() * 2.0 }
    }

    fn reads_all(&self, _: usize) -> bool {
        false
    }

    fn flags(&self) -> Flags {
        Flags { work: false, step: false, selects: false, cheap: false, kept: false }
    }

    fn word(&self) -> Word {
        "reshape".into()
    }
}
