use crate::prim::columns::*;

/// Axes vanish in a sum, a product, an extreme.
pub struct Reduce<'a> {
    pub kind: Reduction,
    pub axes: &'a [usize],
}

impl Primitive for Reduce<'_> {
    fn shape(&self, x: &[TypeRef], result: TypeRef) -> rule::Check {
        count(x, 1)?;
        monoid(self.kind, x[0], result)?;
        for (i, &axis) in self.axes.iter().enumerate() {
            axis_in(axis, x[0].shape)?;
            ensure(!self.axes[..i].contains(&axis), || format!("axis {axis} is named twice"))?;
        }
        shape_is(&without(x[0].shape, self.axes), result)
    }

    fn stands(&self, _: Site) -> rule::Check {
        Ok(())
    }

    fn text(&self, _: Site, put: &mut Attrs) -> Word {
        put.places("axes", self.axes);
        format!("reduce_{}", self.kind.name()).into()
    }

    fn read(name: &str, op: &Op, _: &mut Around) -> Option<Read> {
        let kind = Reduction::parse(name.strip_prefix("reduce_")?)?;
        Some(op.places("axes").map(|axes| Prim::Reduce { kind, axes }))
    }

    fn meaning(&self, x: &[ArrayRef], result: TypeRef, sums: Summation) -> Meaning {
        Ok(reference::reduce::reduce(self.kind, self.axes, x[0], result.dtype, sums))
    }

    fn links(&self, at: Site) -> Vec<Vec<Link>> {
        let link = |d: usize| match self.axes.contains(&d) {
            true => Link::Reduce(self.kind),
            false => Link::Pass(d - self.axes.iter().filter(|&&a| a < d).count()),
        };
        vec![(0..at.rank(0)).map(link).collect()]
    }

    fn keeps_partial(&self, _: Site, of: Summand) -> bool {
        matches!(
            (self.kind, of.monoid),
            (Reduction::Sum, Monoid::Sum) | (Reduction::Max, Monoid::Max) | (Reduction::Min, Monoid::Min)
        )
    }

    fn of_box(&self, _: &Boxes) -> Option<Prim> {
        None
    }

    fn pull(&self, at: &mut At) -> Pulled {
        let (shape, dtype) = (at.shape(at.x[0]), at.dtype(at.x[0]));
        let c = expand::cast(at.w, at.c, dtype);
        let kept: Vec<usize> = (0..shape.len()).filter(|d| !self.axes.contains(d)).collect();
        match self.kind {
            Reduction::Sum | Reduction::HalfSum => Ok(vec![Some(expand::broadcast_dims(at.w, c, &shape, kept))]),
            Reduction::Max | Reduction::Min | Reduction::Prod | Reduction::HalfProd => {
                // The reduced dims as one at the end.
                let perm: Vec<usize> = kept.iter().chain(self.axes).copied().collect();
                let rows: Vec<u64> = kept.iter().map(|&d| shape[d]).collect();
                let length = self.axes.iter().map(|&d| shape[d]).product();
                // No elements: none is the largest.
                if length == 0 {
                    return Ok(vec![None]);
                }
                let flat = [&rows[..], &[length]].concat();
                let turned = expand::transpose(at.w, at.x[0], &perm);
                let turned_shape = at.shape(turned);
                let x = expand::reshape(at.w, turned, &flat);
                let c = expand::broadcast_dims(at.w, c, &flat, (0..rows.len()).collect());
                let out = match self.kind {
                    Reduction::Prod | Reduction::HalfProd => product_of_others(at, x, c),
                    _ => at_first(at, x, c, self.kind == Reduction::Max),
                };
                let out = expand::reshape(at.w, out, &turned_shape);
                let mut back = vec![0; perm.len()];
                for (i, &p) in perm.iter().enumerate() {
                    back[p] = i;
                }
                Ok(vec![Some(expand::transpose(at.w, out, &back))])
            }
            Reduction::Any | Reduction::All => Ok(vec![None]),
        }
    }

    fn lifted(&self, dims: usize) -> Lifted {
        Lifted::All(Prim::Reduce { kind: self.kind, axes: self.axes.iter().map(|a| a + dims).collect() })
    }

    fn batch(&self, _: &mut Lift, _: &Node) -> Option<Id> {
        None
    }

    /// Kernels form sums of complex numbers part by part, and no other reduction.
    fn role(&self, at: Site) -> Role {
        let alone = self.kind.is_half() || at.is_complex() && self.kind != Reduction::Sum;
        if alone { Role::Alone } else { Role::Reduce }
    }

    fn asks(&self, at: Site, part: &part::Part) -> Option<Vec<part::Part>> {
        let mut kept = (0..at.result().len()).map(|d| part.dim(d));
        let dims = (0..at.rank(0)).map(|d| match self.axes.contains(&d) {
            true => Some((0, 1, at.shape(0)[d])),
            false => kept.next(),
        });
        Some(vec![dims.collect::<Option<part::Part>>()?])
    }

    fn body(&self, b: &mut Body, q: &Asked) -> Result<ValueId, Refusal> {
        q.without_guards("reduces")?;
        let (kind, node) = (self.kind, q.node);
        let operand = q.operand(0)?;
        let graph = b.graph;
        let ty = graph.ty(operand);
        b.s.compensated |= node.policy == Policy::KahanSum && kind == Reduction::Sum && ty.dtype.is_float();
        let plain = kind == Reduction::Sum && node.ty.dtype.is_complex() && node.policy != Policy::KahanSum;
        if ty.dtype.is_complex() && !plain {
            return Err(q.refuse("is no plain sum of complex numbers"));
        }
        let (r, place) = row_of(b, q, self.axes, &ty.shape)?;
        let accum = match kind {
            Reduction::Any | Reduction::All => DType::Bool,
            // Integers need no room to compare, and the identity is that of their own type.
            Reduction::Max | Reduction::Min if !ty.dtype.is_float() => ty.dtype,
            _ => part_type(ty.dtype).accumulator(),
        };
        let v = b.value(operand, &place, &[], q.part)?;
        let v = b.cast(v, accum);
        let sum = b.push(ValueOp::Reduce { kind, arg: v, axis: r }, accum);
        let mut result = b.cast(sum, q.dtype());
        // An extreme is one of the elements: an infinity is not rounded.
        let e5m2 = ty.dtype == DType::F8E5M2 && node.ty.dtype == DType::F8E5M2;
        if e5m2 && matches!(kind, Reduction::Max | Reduction::Min) {
            for infinity in [f64::INFINITY, f64::NEG_INFINITY] {
                let wide = b.push(ValueOp::Const(Scalar::F(infinity)), accum);
                let kept = b.push(ValueOp::Const(Scalar::F(infinity)), DType::F8E5M2);
                let here = b.push(ValueOp::Map { op: MapOp::eq, args: vec![sum, wide] }, DType::Bool);
                result = b.push(ValueOp::Map { op: MapOp::r#where, args: vec![here, kept, result] }, DType::F8E5M2);
            }
        }
        Ok(result)
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
        self.kind.name().into()
    }
}

/// `c` at the first largest (or smallest) element of each row, zeros elsewhere.
fn at_first(at: &mut At, x: Id, c: Id, largest: bool) -> Id {
    let shape = at.shape(x);
    let axis = shape.len() - 1;
    let found = at.w.push(Prim::ArgReduce { largest, axis }, &[x], shape[..axis].to_vec(), DType::I64);
    let found = expand::broadcast_dims(at.w, found, &shape, (0..axis).collect());
    let here = expand::iota(at.w, &shape, axis);
    let hit = expand::map(at.w, MapOp::eq, &[here, found]);
    let zero = at.zeros(c);
    expand::select(at.w, hit, c, zero)
}

/// `c` times the product of the other elements of the row, which is right with zeros among them.
fn product_of_others(at: &mut At, x: Id, c: Id) -> Id {
    let axis = at.shape(x).len() - 1;
    let before = products_before(at, x);
    let turned = reversed(at, x, axis);
    let after = products_before(at, turned);
    let after = reversed(at, after, axis);
    let others = expand::map(at.w, MapOp::mul, &[before, after]);
    expand::map(at.w, MapOp::mul, &[c, others])
}

/// For each element of a row the product of those before it.
fn products_before(at: &mut At, x: Id) -> Id {
    let (shape, dtype) = (at.shape(x), at.dtype(x));
    let axis = shape.len() - 1;
    if shape[axis] == 0 {
        return x;
    }
    let products = at.like(x, Prim::Cumulate { kind: Reduction::Prod, axis }, &[x]);
    let start = expand::slice(at.w, products, axis, 0, shape[axis] - 1);
    let one = expand::full(at.w, &[], dtype, Scalar::F(1.0));
    let (mut low, high) = (vec![0; shape.len()], vec![0; shape.len()]);
    low[axis] = 1;
    at.w.push(Prim::Pad { low, high }, &[start, one], shape, dtype)
}

/// The elements along an axis from the last to the first.
pub fn reversed(at: &mut At, x: Id, axis: usize) -> Id {
    let shape = at.shape(x);
    let (mut start, mut step) = (vec![0; shape.len()], vec![1; shape.len()]);
    (start[axis], step[axis]) = (shape[axis] as i64 - 1, -1);
    if shape[axis] == 0 {
        return x;
    }
    at.like(x, Prim::Slice { start, step }, &[x])
}

/// The axis of the positions that are reduced, and the index of the operand there.
fn row_of(b: &mut Body, q: &Asked, axes: &[usize], shape: &[u64]) -> Result<(Var, Vec<Index>), Refusal> {
    let mut axes = axes.to_vec();
    axes.sort();
    let sizes: Vec<u64> = axes.iter().map(|a| shape.get(*a).copied().unwrap_or(1)).collect();
    let extent = sizes.iter().try_fold(1u64, |p, d| p.checked_mul(*d)).ok_or_else(|| q.refuse("is too large"))?;
    let row = b.row.as_ref().filter(|row| {
        let trailing = axes.iter().all(|a| *a >= row.lead) && shape == row.shape;
        trailing && axes.len() + row.lead == shape.len() && !q.at.iter().any(|e| e.uses(row.axis))
    });
    let r = match row {
        Some(row) => row.axis,
        None => b.reduced_axis(extent),
    };
    let along = delinear(&Index::var(r), &sizes, &|v| b.s.range(v));
    let mut kept = q.at.iter();
    let place = (0..shape.len())
        .map(|i| match axes.iter().position(|a| *a == i) {
            Some(j) => along[j].clone(),
            None => kept.next().cloned().unwrap_or_default(),
        })
        .collect();
    Ok((r, place))
}
