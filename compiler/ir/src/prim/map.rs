use crate::prim::columns::*;
use tessera_ops::map::gradient::{Step, Steps};
use tessera_ops::map::{Gives, kind_of};

/// An elementwise function; its own row is in `tessera_ops::map`.
pub struct Map {
    pub op: MapOp,
}

impl Primitive for Map {
    fn shape(&self, x: &[TypeRef], result: TypeRef) -> rule::Check {
        let def = self.op.def();
        count(x, def.arity)?;
        let Some(&last) = x.last() else { return Err("no operands".into()) };
        let Some(kind) = kind_of(last.dtype) else { return Err(format!("`{}` of {}", def.name, last.dtype)) };
        ensure(def.takes.accepts(kind), || format!("`{}` does not take {}", def.name, last.dtype))?;
        for (i, t) in x.iter().enumerate() {
            let want = if self.op == MapOp::r#where && i == 0 { DType::Bool } else { last.dtype };
            ensure(t.dtype == want, || format!("operand {i} of `{}` is {}, not {want}", def.name, t.dtype))?;
            shape_is(t.shape, result)?;
        }
        match def.gives {
            Gives::Same => dtype_is(last, result),
            Gives::Bool => {
                ensure(result.dtype == DType::Bool, || format!("`{}` gives bool, not {}", def.name, result.dtype))
            }
        }
    }

    fn stands(&self, _: Site) -> rule::Check {
        Ok(())
    }

    fn text(&self, _: Site, _: &mut Attrs) -> Word {
        self.op.name().into()
    }

    fn read(name: &str, _: &Op, _: &mut Around) -> Option<Read> {
        MapOp::parse(name).map(|op| Ok(Prim::Map(op)))
    }

    fn meaning(&self, x: &[ArrayRef], result: TypeRef, _: Summation) -> Meaning {
        Ok(reference::elementwise::map(self.op, x, result.dtype))
    }

    fn links(&self, at: Site) -> Vec<Vec<Link>> {
        (0..at.count()).map(|i| at.pass(i)).collect()
    }

    fn keeps_partial(&self, at: Site, of: Summand) -> bool {
        let op = self.op;
        match of.monoid {
            Monoid::Sum => {
                op == MapOp::neg && at.count() == 1
                    || (op == MapOp::add || op == MapOp::sub) && of.others_alike
                    || op == MapOp::mul && of.others_same
                    || op == MapOp::div && of.operand == 0 && of.others_same
            }
            // What all have changes the largest of all as it changes each.
            Monoid::Max => {
                op == MapOp::maximum && (of.others_alike || of.others_same) || op == MapOp::add && of.others_same
            }
            Monoid::Min => {
                op == MapOp::minimum && (of.others_alike || of.others_same) || op == MapOp::add && of.others_same
            }
            _ => false,
        }
    }

    fn of_box(&self, _: &Boxes) -> Option<Prim> {
        None
    }

    /// By the row of the function.
    fn pull(&self, at: &mut At) -> Pulled {
        let Some(gradient) = self.op.def().gradient else { return Ok(vec![None; at.x.len()]) };
        let x: Vec<Step> = at.x.iter().map(|x| Step(x.0)).collect();
        let made = gradient(&mut Nodes(at.w), &x, Step(at.y.0), Step(at.c.0));
        Ok(made.into_iter().map(|c| c.map(|c| Id(c.0))).collect())
    }

    fn lifted(&self, _: usize) -> Lifted {
        Lifted::All(Prim::Map(self.op))
    }

    fn batch(&self, _: &mut Lift, _: &Node) -> Option<Id> {
        None
    }

    /// There are none of complex numbers.
    fn role(&self, _: Site) -> Role {
        Role::Element
    }

    fn asks(&self, at: Site, part: &part::Part) -> Option<Vec<part::Part>> {
        Some(vec![part.clone(); at.count()])
    }

    fn body(&self, b: &mut Body, q: &Asked) -> Result<ValueId, Refusal> {
        let args = b.operands(q)?;
        Ok(b.push(ValueOp::Map { op: self.op, args }, q.dtype()))
    }

    fn comes_from(&self, _: Site) -> Source {
        if self.op == MapOp::r#where { Source::Chosen } else { Source::Same }
    }

    fn cost(&self, at: Site) -> Cost {
        let (elems, each) = (at.elems() as f64, f64::from(self.op.def().cost));
        let again = Again::Cheap(elems * 0.1 * each);
        Cost { operations: at.elems(), again, interpreted: elems * each * 2.0 }
    }

    fn reads_all(&self, _: usize) -> bool {
        false
    }

    fn flags(&self) -> Flags {
        Flags { work: true, step: true, selects: false, cheap: self.op.def().cost <= 1, kept: false }
    }

    fn word(&self) -> Word {
        self.op.name().into()
    }
}

/// Steps as nodes of a graph.
struct Nodes<'a, 'g>(&'a mut Writer<'g>);

impl Steps for Nodes<'_, '_> {
    fn map(&mut self, op: MapOp, x: &[Step]) -> Step {
        let x: Vec<Id> = x.iter().map(|x| Id(x.0)).collect();
        Step(expand::map(self.0, op, &x).0)
    }

    fn like(&mut self, x: Step, value: f64) -> Step {
        Step(expand::like(self.0, Id(x.0), value).0)
    }
}
