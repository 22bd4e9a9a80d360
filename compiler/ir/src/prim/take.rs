use crate::prim::columns::*;

/// Rows along an axis at positions from data.
pub struct Take {
    pub axis: usize,
}

impl Primitive for Take {
    fn shape(&self, x: &[TypeRef], result: TypeRef) -> rule::Check {
        count(x, 2)?;
        dtype_is(x[0], result)?;
        positions(x[1])?;
        axis_in(self.axis, x[0].shape)?;
        let (before, after) = x[0].shape.split_at(self.axis);
        shape_is(&[before, x[1].shape, &after[1..]].concat(), result)
    }

    fn stands(&self, _: Site) -> rule::Check {
        Ok(())
    }

    fn text(&self, _: Site, put: &mut Attrs) -> Word {
        put.place("axis", self.axis);
        "take".into()
    }

    fn read(name: &str, op: &Op, _: &mut Around) -> Option<Read> {
        (name == "take").then(|| Ok(Prim::Take { axis: op.index("axis")? }))
    }

    fn meaning(&self, x: &[ArrayRef], result: TypeRef, _: Summation) -> Meaning {
        reference::index::take(x[0], x[1], self.axis, result.shape)
    }

    fn links(&self, at: Site) -> Vec<Vec<Link>> {
        let more = at.rank(1);
        let link = |d: usize| match d.cmp(&self.axis) {
            Ordering::Less => Link::Pass(d),
            Ordering::Equal => Link::Indexed,
            Ordering::Greater => Link::Pass(d + more - 1),
        };
        vec![(0..at.rank(0)).map(link).collect(), (0..more).map(|d| Link::Pass(self.axis + d)).collect()]
    }

    fn keeps_partial(&self, _: Site, _: Summand) -> bool {
        false
    }

    fn of_box(&self, _: &Boxes) -> Option<Prim> {
        None
    }

    /// Rows are added back in the order of their positions in the index.
    fn pull(&self, at: &mut At) -> Pulled {
        let axis = self.axis;
        let (shape, index) = (at.shape(at.x[0]), at.x[1]);
        let (rank, taken) = (shape.len(), at.shape(index).len());
        // The dims of the index first, the axis before the others.
        let perm: Vec<usize> = (axis..axis + taken).chain(0..axis).chain(axis + taken..rank - 1 + taken).collect();
        let values = expand::transpose(at.w, at.c, &perm);
        let order: Vec<usize> = [axis].into_iter().chain((0..rank).filter(|&d| d != axis)).collect();
        let front: Vec<u64> = order.iter().map(|&d| shape[d]).collect();
        let dtype = at.dtype(at.c);
        let zeros = at.zeros_of(&front, dtype);
        let sums = at.w.push(Prim::Scatter { add: true }, &[zeros, values, index], front, dtype);
        let mut back = vec![0; rank];
        for (i, &d) in order.iter().enumerate() {
            back[d] = i;
        }
        Ok(vec![Some(expand::transpose(at.w, sums, &back)), None])
    }

    fn lifted(&self, dims: usize) -> Lifted {
        Lifted::First(Prim::Take { axis: self.axis + dims })
    }

    /// Rows of a table at positions of which each value has its own.
    fn batch(&self, lift: &mut Lift, node: &Node) -> Option<Id> {
        let axis = self.axis;
        let (table, index) = (node.operands[0], node.operands[1]);
        if lift.shared(&[index]).is_some() {
            return None;
        }
        let (rank, taken) = (lift.body.ty(table).shape.len(), lift.body.ty(index).shape.len());
        let index = lift.each(index);
        let dtype = node.ty.dtype;
        if let Value::Plain(table) = lift.value(table) {
            // [before…, size, taken…, after…]
            let mut shape = node.ty.shape.clone();
            shape.insert(axis, lift.size);
            let rows = lift.w.push(Prim::Take { axis }, &[table, index], shape, dtype);
            let perm: Vec<usize> = [axis].into_iter().chain((0..rank + taken).filter(|d| *d != axis)).collect();
            return Some(expand::transpose(&mut lift.w, rows, &perm));
        }
        let table = lift.each(table);
        let order: Vec<usize> = [0, axis + 1].into_iter().chain((1..=rank).filter(|d| *d != axis + 1)).collect();
        let table = expand::transpose(&mut lift.w, table, &order);
        let positions = lift.w.shape(index);
        let numbers = lift.numbers(&positions);
        let shape = [&positions[..], &lift.w.shape(table)[2..]].concat();
        let rows = lift.w.push(Prim::Gather, &[table, numbers, index], shape, dtype);
        // [size, taken…, before…, after…]
        let before = 1 + taken..1 + taken + axis;
        let perm: Vec<usize> =
            [0].into_iter().chain(before).chain(1..1 + taken).chain(1 + taken + axis..rank + taken).collect();
        Some(expand::transpose(&mut lift.w, rows, &perm))
    }

    /// What has no elements still has positions that are checked.
    fn role(&self, at: Site) -> Role {
        if at.is_empty() { Role::Alone } else { Role::Position }
    }

    fn asks(&self, _: Site, _: &part::Part) -> Option<Vec<part::Part>> {
        None
    }

    fn body(&self, b: &mut Body, q: &Asked) -> Result<ValueId, Refusal> {
        let [a, index] = q.node.operands[..] else { return Err(q.refuse("needs two operands")) };
        let depth = b.graph.ty(index).shape.len();
        let (before, rest) = q.at.split_at(self.axis.min(q.at.len()));
        let (index_at, after) = rest.split_at(depth.min(rest.len()));
        let position = b.position(q, (index, index_at), (a, self.axis), None)?;
        let place = [before, &[Index::default()], after].concat();
        b.read_at(q, a, &place, &[(self.axis, position)])
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
        "take".into()
    }
}
