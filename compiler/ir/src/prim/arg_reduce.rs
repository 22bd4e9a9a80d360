use crate::prim::columns::*;

/// The position of the first extreme along an axis.
pub struct ArgReduce {
    pub largest: bool,
    pub axis: usize,
}

impl Primitive for ArgReduce {
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

    fn of_box(&self, _: &[Range<u64>], _: &[Vec<Range<u64>>]) -> Option<Prim> {
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
}
