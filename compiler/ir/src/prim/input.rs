use crate::graph;
use crate::prim::columns::*;

/// An argument of the graph.
pub struct Input {
    pub number: u32,
}

impl Primitive for Input {
    /// The graph around it is looked at ([`Primitive::stands`]).
    fn shape(&self, _: &[TypeRef], _: TypeRef) -> rule::Check {
        Ok(())
    }

    fn stands(&self, at: Site) -> rule::Check {
        let (i, ty) = (self.number, &at.node.ty);
        let input = at.g.inputs.get(i as usize).ok_or_else(|| format!("input {i} is not declared"))?;
        // How it lies is the caller's.
        let fits = input.ty.unsharded() == ty.unsharded();
        ensure(fits, || format!("input {i} is declared as {}, used as {ty}", input.ty))
    }

    fn text(&self, at: Site, put: &mut Attrs) -> Word {
        put.int("index", self.number);
        if let Some(input) = at.g.inputs.get(self.number as usize) {
            put.str("name", &input.name);
            if input.scalar {
                put.bool("scalar", true);
            }
        }
        "input".into()
    }

    fn read(name: &str, op: &Op, around: &mut Around) -> Option<Read> {
        let g = &mut around.g;
        (name == "input").then(|| {
            let index = op.index("index")?;
            if index != g.inputs.len() {
                return Err(op.error(format!("inputs are numbered in order; {} is expected", g.inputs.len())));
            }
            let (name, scalar) = (op.str("name").unwrap_or("").into(), op.bool("scalar").unwrap_or(false));
            g.inputs.push(graph::Input { name, ty: around.ty.clone(), scalar });
            Ok(Prim::Input(index as u32))
        })
    }

    /// It belongs to the graph around it (`tessera_ir::interpret`).
    fn meaning(&self, _: &[ArrayRef], _: TypeRef, _: Summation) -> Meaning {
        Err("this node has no kernel of its own".to_string().into())
    }

    fn links(&self, _: Site) -> Vec<Vec<Link>> {
        vec![]
    }

    fn keeps_partial(&self, _: Site, _: Summand) -> bool {
        false
    }

    fn of_box(&self, _: &Boxes) -> Option<Prim> {
        None
    }

    /// It has no operands.
    fn pull(&self, _: &mut At) -> Pulled {
        Ok(vec![])
    }

    /// It has no operands.
    fn lifted(&self, _: usize) -> Lifted {
        Lifted::No
    }

    fn batch(&self, _: &mut Lift, _: &Node) -> Option<Id> {
        None
    }

    fn role(&self, _: Site) -> Role {
        Role::Source
    }

    fn asks(&self, _: Site, _: &part::Part) -> Option<Vec<part::Part>> {
        None
    }

    fn body(&self, _: &mut Body, q: &Asked) -> Result<ValueId, Refusal> {
        Err(q.refuse("lies in memory: groups read it"))
    }

    fn comes_from(&self, _: Site) -> Source {
        Source::Any
    }

    /// It is there.
    fn cost(&self, _: Site) -> Cost {
        Cost { operations: 0, again: Again::Never, interpreted: 0.0 }
    }

    fn reads_all(&self, _: usize) -> bool {
        true
    }

    fn flags(&self) -> Flags {
        Flags { work: false, step: false, selects: false, cheap: false, kept: false }
    }

    fn word(&self) -> Word {
        "input".into()
    }
}
