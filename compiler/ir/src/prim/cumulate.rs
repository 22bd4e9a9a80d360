use crate::prim::columns::*;
use crate::prim::reduce::reversed;
use tessera_ops::reference::identity;

/// A running sum or product along an axis.
pub struct Cumulate {
    pub kind: Reduction,
    pub axis: usize,
}

impl Primitive for Cumulate {
    fn shape(&self, x: &[TypeRef], result: TypeRef) -> rule::Check {
        count(x, 1)?;
        monoid(self.kind, x[0], result)?;
        axis_in(self.axis, x[0].shape)?;
        shape_is(x[0].shape, result)
    }

    fn stands(&self, _: Site) -> rule::Check {
        Ok(())
    }

    fn text(&self, _: Site, put: &mut Attrs) -> Word {
        put.place("axis", self.axis);
        format!("cumulate_{}", self.kind.name()).into()
    }

    fn read(name: &str, op: &Op, _: &mut Around) -> Option<Read> {
        let kind = Reduction::parse(name.strip_prefix("cumulate_")?)?;
        Some(op.index("axis").map(|axis| Prim::Cumulate { kind, axis }))
    }

    fn meaning(&self, x: &[ArrayRef], result: TypeRef, _: Summation) -> Meaning {
        Ok(reference::reduce::cumulate(self.kind, self.axis, x[0], result.dtype))
    }

    fn links(&self, at: Site) -> Vec<Vec<Link>> {
        vec![at.pass_but(0, self.axis, Link::Along(self.axis))]
    }

    fn keeps_partial(&self, _: Site, _: Summand) -> bool {
        false
    }

    fn of_box(&self, _: &Boxes) -> Option<Prim> {
        None
    }

    fn pull(&self, at: &mut At) -> Pulled {
        let dtype = at.dtype(at.x[0]);
        let c = expand::cast(at.w, at.c, dtype);
        match self.kind {
            Reduction::Sum | Reduction::HalfSum => Ok(vec![Some(sums_from_end(at, c, self.axis))]),
            Reduction::Prod | Reduction::HalfProd => Ok(vec![Some(running_product(at, c, self.axis))]),
            _ => Err("a running maximum"),
        }
    }

    fn lifted(&self, dims: usize) -> Lifted {
        Lifted::All(Prim::Cumulate { kind: self.kind, axis: self.axis + dims })
    }

    fn batch(&self, _: &mut Lift, _: &Node) -> Option<Id> {
        None
    }

    fn role(&self, at: Site) -> Role {
        let alone = self.kind.is_half() || at.is_complex() || at.is_empty();
        if alone { Role::Alone } else { Role::Ordered }
    }

    fn asks(&self, _: Site, _: &part::Part) -> Option<Vec<part::Part>> {
        None
    }

    fn body(&self, b: &mut Body, q: &Asked) -> Result<ValueId, Refusal> {
        let &[a] = &q.node.operands[..] else { return Err(q.refuse("needs one operand")) };
        let free = q.guards.is_empty();
        let single = b.graph.ty(a).shape.get(self.axis) == Some(&1);
        let along = match q.at.get(self.axis).map(|e| (&e.terms[..], e.constant)) {
            Some(([(Term::Var(v), 1)], 0)) if free => *v,
            // A dim of one position needs no axis.
            Some(([], 0)) if free && single => b.axis(format!("c{}", b.s.axes.len()), 1, false),
            _ => return Err(q.refuse("runs along what is no axis of the kernel")),
        };
        let dtype = b.graph.ty(a).dtype;
        let accum = dtype.accumulator();
        let arg = b.value(a, q.at, &[], body::Part::Real)?;
        let arg = b.cast(arg, accum);
        let start = identity(self.kind, dtype);
        let v = b.push(ValueOp::Cumulate { kind: self.kind, start, arg, axis: along }, accum);
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
        "cumulate".into()
    }
}

/// A running sum from the end.
fn sums_from_end(at: &mut At, x: Id, axis: usize) -> Id {
    let turned = reversed(at, x, axis);
    let sums = at.like(x, Prim::Cumulate { kind: Reduction::Sum, axis }, &[turned]);
    reversed(at, sums, axis)
}

/// `x̄[t] = Σ_{u≥t} c[u]·Π_{v≤u, v≠t} x[v]`, every pair of positions by itself: the cost is quadratic
/// in the length of a row, and zeros among the elements are right, which the usual quotient by
/// `x[t]` is not.
fn running_product(at: &mut At, c: Id, axis: usize) -> Id {
    let x = expand::axis_last(at.w, at.x[0], axis);
    let c = expand::axis_last(at.w, c, axis);
    let (shape, dtype) = (at.shape(x), at.dtype(x));
    let (rank, n) = (shape.len(), shape[shape.len() - 1]);
    // Row `t` of the square has 1 in place of `x[t]`.
    let square = [&shape[..], &[n]].concat();
    let dims: Vec<usize> = (0..rank - 1).chain([rank]).collect();
    let rows = expand::broadcast_dims(at.w, x, &square, dims.clone());
    let (t, v) = (expand::iota(at.w, &square, rank - 1), expand::iota(at.w, &square, rank));
    let same = expand::map(at.w, MapOp::eq, &[t, v]);
    let one = expand::full(at.w, &square, dtype, Scalar::F(1.0));
    let others = expand::select(at.w, same, one, rows);
    let products = at.w.push(Prim::Cumulate { kind: Reduction::Prod, axis: rank }, &[others], square.clone(), dtype);
    let later = expand::map(at.w, MapOp::le, &[t, v]);
    let c = expand::broadcast_dims(at.w, c, &square, dims);
    let terms = expand::map(at.w, MapOp::mul, &[c, products]);
    let zero = at.zeros_of(&square, dtype);
    let terms = expand::select(at.w, later, terms, zero);
    let sum = expand::reduce(at.w, terms, Reduction::Sum, &[rank], false);
    // The axis goes back to its place.
    let perm: Vec<usize> = (0..axis).chain([rank - 1]).chain(axis..rank - 1).collect();
    expand::transpose(at.w, sum, &perm)
}
