use crate::prim::columns::*;

/// Dims of size 1 are repeated, and there are more of them.
pub struct Broadcast<'a> {
    pub dims: &'a [usize],
}

impl Primitive for Broadcast<'_> {
    fn shape(&self, x: &[TypeRef], result: TypeRef) -> rule::Check {
        let dims = self.dims;
        count(x, 1)?;
        dtype_is(x[0], result)?;
        ensure(dims.len() == x[0].shape.len(), || format!("{} places for {} dims", dims.len(), x[0].shape.len()))?;
        for (i, (&dim, &n)) in dims.iter().zip(x[0].shape).enumerate() {
            axis_in(dim, result.shape)?;
            ensure(!dims[..i].contains(&dim), || format!("dim {dim} is named twice"))?;
            let to = result.shape[dim];
            ensure(n == to || n == 1, || format!("size {n} does not broadcast to {to}"))?;
        }
        Ok(())
    }

    fn stands(&self, _: Site) -> rule::Check {
        Ok(())
    }

    fn text(&self, _: Site, put: &mut Attrs) -> Word {
        put.places("dims", self.dims);
        "broadcast".into()
    }

    fn read(name: &str, op: &Op, _: &mut Around) -> Option<Read> {
        (name == "broadcast").then(|| Ok(Prim::Broadcast { dims: op.places("dims")? }))
    }

    fn meaning(&self, x: &[ArrayRef], result: TypeRef, _: Summation) -> Meaning {
        Ok(reference::movement::broadcast(x[0], self.dims, result.shape))
    }

    fn links(&self, at: Site) -> Vec<Vec<Link>> {
        let link = |(d, &to): (usize, &usize)| match at.shape(0).get(d) == at.result().get(to) {
            true => Link::Pass(to),
            false => Link::Whole,
        };
        vec![self.dims.iter().enumerate().map(link).collect()]
    }

    fn keeps_partial(&self, _: Site, _: Summand) -> bool {
        true
    }

    fn of_box(&self, _: &Boxes) -> Option<Prim> {
        None
    }

    /// The sum over the dims along which elements were repeated.
    fn pull(&self, at: &mut At) -> Pulled {
        let (from, to) = (at.shape(at.x[0]), at.shape(at.c));
        let kept = |d: usize| self.dims.iter().position(|&k| k == d).is_some_and(|i| from[i] == to[d]);
        let axes: Vec<usize> = (0..to.len()).filter(|&d| !kept(d)).collect();
        let sum = over_batch(at, &axes);
        let sum = sum.unwrap_or_else(|| expand::reduce(at.w, at.c, Reduction::Sum, &axes, false));
        // What is left lies in the order of the result's dims.
        let left: Vec<usize> = self.dims.iter().copied().filter(|&d| kept(d)).collect();
        let perm: Vec<usize> = left.iter().map(|d| left.iter().filter(|&k| k < d).count()).collect();
        let turned = expand::transpose(at.w, sum, &perm);
        Ok(vec![Some(expand::reshape(at.w, turned, &from))])
    }

    fn lifted(&self, dims: usize) -> Lifted {
        Lifted::All(Prim::Broadcast { dims: (0..dims).chain(self.dims.iter().map(|d| d + dims)).collect() })
    }

    fn batch(&self, _: &mut Lift, _: &Node) -> Option<Id> {
        None
    }

    fn role(&self, _: Site) -> Role {
        Role::View
    }

    fn asks(&self, at: Site, part: &part::Part) -> Option<Vec<part::Part>> {
        let dim = |(i, d): (usize, &usize)| if at.shape(0)[i] == 1 { (0, 1, 1) } else { part.dim(*d) };
        Some(vec![self.dims.iter().enumerate().map(dim).collect()])
    }

    fn body(&self, b: &mut Body, q: &Asked) -> Result<ValueId, Refusal> {
        let x = q.operand(0)?;
        let from = |(d, &to): (&u64, &usize)| if *d == 1 { Index::default() } else { q.along(to) };
        let inner: Vec<Index> = b.graph.ty(x).shape.iter().zip(self.dims).map(from).collect();
        b.value(x, &inner, q.guards, q.part)
    }

    fn comes_from(&self, _: Site) -> Source {
        Source::Moved(1)
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
        "broadcast".into()
    }
}

/// Items of a batch whose products are one chain: few, so that devices that share a batch have whole ones.
const ITEMS: u64 = 4;

/// Of products, one for each item of a batch: the sum over the batch, in chains and a tree like the products themselves.
fn over_batch(at: &mut At, axes: &[usize]) -> Option<Id> {
    let node = at.w.graph.node(NodeId(at.c.0));
    let Prim::Dot { accum, .. } = node.prim else { return None };
    let shape = node.ty.shape.clone();
    let (batch, kept) = shape.split_at_checked(axes.len())?;
    let leads = axes.iter().copied().eq(0..axes.len()) && kept.len() >= 2;
    let (items, elems) = (batch.iter().product::<u64>(), kept.iter().product::<u64>());
    if !leads || items < 2 || at.w.policy == Policy::KahanSum || accum == DType::F16 {
        return None;
    }
    let dtype = at.dtype(at.c);
    let rows = expand::reshape(at.w, at.c, &[items, elems]);
    let ones = expand::full(at.w, &[1, items], dtype, Scalar::F(1.0));
    let prim = Prim::Dot { accum, steps: Steps::All, order: Order::Chain, leaf: ITEMS };
    let sum = at.w.push(prim, &[ones, rows], vec![1, elems], dtype);
    Some(expand::reshape(at.w, sum, kept))
}
