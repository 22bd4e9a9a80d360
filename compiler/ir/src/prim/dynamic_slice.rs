use crate::prim::columns::*;

/// A block that starts where data says.
pub struct DynamicSlice<'a> {
    pub sizes: &'a [u64],
}

impl Primitive for DynamicSlice<'_> {
    fn shape(&self, x: &[TypeRef], result: TypeRef) -> rule::Check {
        at_least(x, 1)?;
        dtype_is(x[0], result)?;
        shape_is(self.sizes, result)?;
        starts(x[0].shape, &x[1..], self.sizes)
    }

    fn stands(&self, _: Site) -> rule::Check {
        Ok(())
    }

    fn text(&self, _: Site, put: &mut Attrs) -> Word {
        put.sizes("sizes", self.sizes);
        "dynamic_slice".into()
    }

    fn read(name: &str, op: &Op, _: &mut Around) -> Option<Read> {
        (name == "dynamic_slice").then(|| Ok(Prim::DynamicSlice { sizes: op.sizes("sizes")? }))
    }

    fn meaning(&self, x: &[ArrayRef], _: TypeRef, _: Summation) -> Meaning {
        reference::movement::dynamic_slice(x[0], &x[1..], self.sizes)
    }

    fn links(&self, at: Site) -> Vec<Vec<Link>> {
        let link = |d: usize| if self.sizes[d] == at.shape(0)[d] { Link::Pass(d) } else { Link::Whole };
        at.others_whole((0..at.rank(0)).map(link).collect())
    }

    fn keeps_partial(&self, _: Site, _: Summand) -> bool {
        false
    }

    /// Dims that go along have the size of the part.
    fn of_box(&self, boxes: &Boxes) -> Option<Prim> {
        Some(Prim::DynamicSlice { sizes: boxes.result().iter().map(|r| r.end - r.start).collect() })
    }

    fn pull(&self, at: &mut At) -> Pulled {
        let zeros = at.zeros(at.x[0]);
        let operands = [&[zeros, at.c], &at.x[1..]].concat();
        let mut out = vec![None; at.x.len()];
        out[0] = Some(at.like(at.x[0], Prim::DynamicUpdate, &operands));
        Ok(out)
    }

    /// Positions are those of the first dims.
    fn lifted(&self, _: usize) -> Lifted {
        Lifted::No
    }

    /// Where each value has its own positions, they name every element; devices each know their own, and read that.
    fn batch(&self, lift: &mut Lift, node: &Node) -> Option<Id> {
        if let Some(starts) = one_start(lift, &node.operands[1..]) {
            let operands = [&[lift.each(node.operands[0])], &starts[..]].concat();
            let sizes = [&[lift.size], self.sizes].concat();
            return Some(lift.push(node, Prim::DynamicSlice { sizes }, &operands));
        }
        let base = lift.body.ty(node.operands[0]).shape.clone();
        let index = positions_of(lift, &base, self.sizes, &node.operands[1..])?;
        let operands = [&[lift.each(node.operands[0])], &index[..]].concat();
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
        let Some((&a, starts)) = q.node.operands.split_first() else { return Err(q.refuse("lacks an operand")) };
        let mut by = vec![];
        for (axis, (&start, &size)) in starts.iter().zip(self.sizes).enumerate() {
            by.push((axis, b.position(q, (start, &[]), (a, axis), Some(size))?));
        }
        b.read_at(q, a, q.at, &by)
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
        "dynamicslice".into()
    }
}

/// The start of a block that all values share, with the dim of the values before it.
pub fn one_start(lift: &mut Lift, starts: &[NodeId]) -> Option<Vec<Id>> {
    let shared = lift.shared(starts)?;
    let zero = expand::full(&mut lift.w, &[], DType::I64, Scalar::I(0));
    Some([&[zero], &shared[..]].concat())
}

/// The positions of the elements of blocks that start where each value says. `None` for devices.
pub fn positions_of(lift: &mut Lift, base: &[u64], block: &[u64], starts: &[NodeId]) -> Option<Vec<Id>> {
    if lift.axis.is_some() {
        return None;
    }
    // Dims at the end that are taken whole need no positions.
    let zero = |id: NodeId| lift.body.node(id).prim == Prim::Full { value: Scalar::I(0) };
    let whole = |d: usize| block[d] == base[d] && zero(starts[d]);
    let depth = (0..block.len()).rev().find(|&d| !whole(d)).map_or(1, |d| d + 1).min(block.len());
    let shape = [&[lift.size][..], &block[..depth]].concat();
    let mut index = vec![lift.numbers(&shape)];
    for d in 0..depth {
        let start = lift.each(starts[d]);
        index.push(positions(&mut lift.w, start, base[d], d + 1, &shape));
    }
    Some(index)
}

/// The positions from each value's start on, along dim `dim` of an index. A start before the first position, which a
/// gather would count from the end, lies outside.
fn positions(w: &mut Writer, start: Id, count: u64, dim: usize, shape: &[u64]) -> Id {
    let size = w.shape(start);
    let zero = expand::full(w, &size, DType::I64, Scalar::I(0));
    let all = expand::full(w, &size, DType::I64, Scalar::I(count as i64));
    let before = expand::map(w, MapOp::lt, &[start, zero]);
    let outside = expand::map(w, MapOp::sub, &[start, all]);
    let start = expand::select(w, before, outside, start);
    let start = expand::broadcast_dims(w, start, shape, vec![0]);
    let steps = expand::iota(w, shape, dim);
    expand::map(w, MapOp::add, &[start, steps])
}
