use crate::prim::columns::*;

/// One of several results.
pub struct Get {
    pub index: usize,
}

impl Primitive for Get {
    /// The graph around it is looked at ([`Primitive::stands`]).
    fn shape(&self, _: &[TypeRef], _: TypeRef) -> rule::Check {
        Ok(())
    }

    fn stands(&self, at: Site) -> rule::Check {
        let (index, ty) = (self.index, &at.node.ty);
        let source = at.node.operands.first().map(|&o| at.g.node(o)).ok_or("the operand is missing")?;
        match source.results.get(index) {
            Some(found) if found == ty => Ok(()),
            Some(found) => Err(format!("result {index} is {found}, not {ty}")),
            None => Err(format!("there is no result {index}")),
        }
    }

    fn text(&self, _: Site, put: &mut Attrs) -> Word {
        put.place("index", self.index);
        "get".into()
    }

    fn read(name: &str, op: &Op, _: &mut Around) -> Option<Read> {
        (name == "get").then(|| Ok(Prim::Get { index: op.index("index")? }))
    }

    /// It belongs to the graph around it (`tessera_ir::interpret`).
    fn meaning(&self, _: &[ArrayRef], _: TypeRef, _: Summation) -> Meaning {
        Err("this node has no kernel of its own".to_string().into())
    }

    fn links(&self, at: Site) -> Vec<Vec<Link>> {
        (0..at.count()).map(|i| at.whole(i)).collect()
    }

    fn keeps_partial(&self, _: Site, _: Summand) -> bool {
        false
    }

    fn of_box(&self, _: &Boxes) -> Option<Prim> {
        None
    }

    /// The walk goes through loops and their results itself (`tessera_autodiff`).
    fn pull(&self, at: &mut At) -> Pulled {
        Ok(vec![None; at.x.len()])
    }

    /// Its body is another one.
    fn lifted(&self, _: usize) -> Lifted {
        Lifted::No
    }

    fn batch(&self, _: &mut Lift, _: &Node) -> Option<Id> {
        None
    }

    fn role(&self, _: Site) -> Role {
        Role::Part
    }

    fn asks(&self, _: Site, _: &part::Part) -> Option<Vec<part::Part>> {
        None
    }

    fn body(&self, _: &mut Body, q: &Asked) -> Result<ValueId, Refusal> {
        Err(q.refuse("is a loop over kernels"))
    }

    /// A turn of its loop.
    fn comes_from(&self, _: Site) -> Source {
        Source::Turn
    }

    fn cost(&self, _: Site) -> Cost {
        Cost { operations: 0, again: Again::Never, interpreted: 0.0 }
    }

    fn reads_all(&self, _: usize) -> bool {
        true
    }

    fn flags(&self) -> Flags {
        Flags { work: true, step: false, selects: false, cheap: false, kept: false }
    }

    fn word(&self) -> Word {
        "get".into()
    }
}
