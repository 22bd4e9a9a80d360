use crate::prim::columns::*;

/// The position of the first extreme along an axis.
pub struct ArgReduce {
    pub largest: bool,
    pub axis: usize,
}

impl Primitive for ArgReduce {
    fn shape(&self, x: &[TypeRef], result: TypeRef) -> rule::Check {
        let axis = self.axis;
        count(x, 1)?;
        real(x[0])?;
        integer(result)?;
        axis_in(axis, x[0].shape)?;
        shape_is(&without(x[0].shape, &[axis]), result)?;
        let found = x[0].shape[axis] != 0 || elems(result.shape) == Some(0);
        ensure(found, || format!("axis {axis} is empty, so it has no extreme"))
    }

    fn stands(&self, _: Site) -> rule::Check {
        Ok(())
    }

    fn text(&self, _: Site, put: &mut Attrs) -> Word {
        put.place("axis", self.axis);
        (if self.largest { "argmax" } else { "argmin" }).into()
    }

    fn read(name: &str, op: &Op, _: &mut Around) -> Option<Read> {
        let read = || Ok(Prim::ArgReduce { largest: name == "argmax", axis: op.index("axis")? });
        matches!(name, "argmax" | "argmin").then(read)
    }

    fn meaning(&self, x: &[ArrayRef], result: TypeRef, _: Summation) -> Meaning {
        Ok(reference::sort::arg_reduce(self.largest, self.axis, x[0], result.dtype))
    }

    fn links(&self, at: Site) -> Vec<Vec<Link>> {
        let link = |d: usize| match d.cmp(&self.axis) {
            Ordering::Less => Link::Pass(d),
            Ordering::Equal => Link::Few,
            Ordering::Greater => Link::Pass(d - 1),
        };
        vec![(0..at.rank(0)).map(link).collect()]
    }

    fn keeps_partial(&self, _: Site, _: Summand) -> bool {
        false
    }

    fn of_box(&self, _: &Boxes) -> Option<Prim> {
        None
    }

    /// The result is an integer.
    fn pull(&self, at: &mut At) -> Pulled {
        Ok(vec![None; at.x.len()])
    }

    fn lifted(&self, dims: usize) -> Lifted {
        Lifted::All(Prim::ArgReduce { largest: self.largest, axis: self.axis + dims })
    }

    fn batch(&self, _: &mut Lift, _: &Node) -> Option<Id> {
        None
    }

    fn role(&self, at: Site) -> Role {
        if at.is_complex() || at.is_empty() { Role::Alone } else { Role::Ordered }
    }

    fn asks(&self, _: Site, _: &part::Part) -> Option<Vec<part::Part>> {
        None
    }

    fn body(&self, b: &mut Body, q: &Asked) -> Result<ValueId, Refusal> {
        let &[a] = &q.node.operands[..] else { return Err(q.refuse("needs one operand")) };
        q.without_guards("searches")?;
        let shape = &b.graph.ty(a).shape;
        let extent = shape.get(self.axis).copied().ok_or_else(|| q.refuse("lacks a dim"))?;
        let r = b.reduced_axis(extent);
        let mut place = q.at.to_vec();
        place.insert(self.axis.min(place.len()), Index::var(r));
        let arg = b.value(a, &place, &[], body::Part::Real)?;
        // The order of bool is that of 0 and 1.
        let arg = if b.s.value(arg).dtype == DType::Bool { b.cast(arg, DType::U8) } else { arg };
        let v = b.push(ValueOp::ArgReduce { largest: self.largest, arg, axis: r }, DType::I64);
        Ok(b.cast(v, q.node.ty.dtype))
    }

    fn comes_from(&self, _: Site) -> Source {
        Source::Any
    }

    fn cost(&self, at: Site) -> Cost {
        let parts = if at.node.ty.dtype.is_complex() { 2 } else { 1 };
        let read = at.elems_of(0);
        let again = Again::Cheap(read as f64 * 0.2);
        Cost { operations: read.saturating_mul(parts), again, interpreted: at.touched() * 2.0 }
    }

    fn reads_all(&self, _: usize) -> bool {
        true
    }

    fn flags(&self) -> Flags {
        Flags { work: true, step: false, selects: false, cheap: false, kept: false }
    }

    fn word(&self) -> Word {
        "argreduce".into()
    }
}
