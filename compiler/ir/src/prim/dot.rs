use crate::prim::columns::*;
use tessera_ops::prim::fold::DOT_LEAF;

/// Nanoseconds that nobody waits.
const NEVER_NS: f64 = 1e15;

/// Products of matrices.
pub struct Dot {
    pub accum: DType,
    pub steps: Steps,
    pub order: Order,
    pub leaf: u64,
}

impl Primitive for Dot {
    fn shape(&self, x: &[TypeRef], result: TypeRef) -> rule::Check {
        let Dot { accum, steps, order, leaf } = *self;
        let even = x.first().and_then(|a| a.shape.last()).is_some_and(|k| k.is_multiple_of(2));
        let all = |dtype| accum == DType::F32 && x.iter().all(|f| f.dtype == dtype);
        let halves = all(DType::Bf16) || order == Order::Atoms && all(DType::F16);
        let short = halves && steps == Steps::All && (even || !order.is_paired());
        ensure(!order.is_of_short_factors() || short, || format!("these factors have no product in {}", order.name()))?;
        let span = if order.is_paired() { 2 } else { 1 };
        ensure(leaf > 0 && leaf.is_multiple_of(span), || format!("leaves of {leaf} steps"))?;
        count(x, 2)?;
        product(x[0], x[1], accum, result)
    }

    fn stands(&self, _: Site) -> rule::Check {
        Ok(())
    }

    fn text(&self, _: Site, put: &mut Attrs) -> Word {
        put.str("accum", self.accum.name());
        match self.steps {
            Steps::All => {}
            Steps::To => put.bool("causal", true),
            Steps::From => put.bool("from_row", true),
        }
        if self.order != Order::Chain {
            put.str("order", self.order.name());
        }
        if self.leaf != DOT_LEAF {
            put.int("leaf", self.leaf as i64);
        }
        "dot".into()
    }

    fn read(name: &str, op: &Op, _: &mut Around) -> Option<Read> {
        (name == "dot").then(|| {
            let accum = DType::parse(op.str("accum")?).ok_or_else(|| op.error("`accum` is no dtype"))?;
            let flag = |name: &str| Ok(op.attr(name).is_some() && op.bool(name)?);
            let steps = match (flag("causal")?, flag("from_row")?) {
                (false, false) => Steps::All,
                (true, false) => Steps::To,
                (false, true) => Steps::From,
                (true, true) => return Err(op.error("a row takes the steps up to its own, or from it on")),
            };
            Ok(Prim::Dot { accum, steps, order: op.order()?, leaf: op.leaf()? })
        })
    }

    fn meaning(&self, x: &[ArrayRef], result: TypeRef, summation: Summation) -> Meaning {
        let Dot { accum, steps, order, leaf } = *self;
        let form = reference::dot::Form { accum, steps, order, leaf, summation };
        Ok(reference::dot::dot(x[0], x[1], form, result.dtype))
    }

    /// `[batch…, m, k] @ [batch…, k, n]`, or with several dims in place of `n` (`tessera_shard::unflatten_columns`).
    /// Rows that do not take all steps know their position.
    fn links(&self, at: Site) -> Vec<Vec<Link>> {
        factors(at.rank(0), at.rank(1), self.steps == Steps::All)
    }

    fn keeps_partial(&self, _: Site, of: Summand) -> bool {
        of.monoid == Monoid::Sum && of.others_same
    }

    fn of_box(&self, _: &Boxes) -> Option<Prim> {
        None
    }

    /// `Y = AB`: `Ā = Ȳ Bᵀ`, `B̄ = Aᵀ Ȳ`, accumulated as the product itself and rounded to the
    /// operands' types. A product whose rows take some steps only does not see the other elements of `A`.
    fn pull(&self, at: &mut At) -> Pulled {
        let (a, b, accum) = (at.x[0], at.x[1], self.accum);
        // Where the result is wider than the operands its cotangent is not narrowed.
        let meet = at.dtype(at.c);
        let accum = if accum == DType::F16 && meet != DType::F16 { DType::F32 } else { accum };
        // The cotangent of a result that is wider than its factors is summed in its own type.
        let accum = if meet == DType::F64 { DType::F64 } else { accum };
        let left = at.needed[0].then(|| {
            let wide = expand::cast(at.w, b, meet);
            let turned = turned(at, wide);
            let dtype = at.dtype(a);
            let product = dot_of(at, (at.c, turned), 1, accum, Steps::All, dtype);
            triangle(at, product, self.steps)
        });
        let right = at.needed[1].then(|| {
            let wide = expand::cast(at.w, a, meet);
            let turned = turned(at, wide);
            let dtype = at.dtype(b);
            // Step `k` of row `i` is step `i` of row `k`.
            let steps = match self.steps {
                Steps::All => Steps::All,
                Steps::To => Steps::From,
                Steps::From => Steps::To,
            };
            let run = run_of_rows(at, a);
            dot_of(at, (turned, at.c), run, accum, steps, dtype)
        });
        Ok(vec![left, right])
    }

    fn lifted(&self, _: usize) -> Lifted {
        let Dot { accum, steps, order, leaf } = *self;
        Lifted::All(Prim::Dot { accum, steps, order, leaf })
    }

    /// Where all share the right factor, the values' rows are rows of one product.
    fn batch(&self, lift: &mut Lift, node: &Node) -> Option<Id> {
        let [a, b] = node.operands[..] else { return None };
        let (Value::Each(x), Value::Plain(y), &[m, n], Steps::All) =
            (lift.value(a), lift.value(b), &node.ty.shape[..], self.steps)
        else {
            return None;
        };
        let k = lift.w.shape(y)[0];
        let rows = expand::reshape(&mut lift.w, x, &[lift.size * m, k]);
        let product = lift.w.push(node.prim.clone(), &[rows, y], vec![lift.size * m, n], node.ty.dtype);
        Some(expand::reshape(&mut lift.w, product, &[lift.size, m, n]))
    }

    fn role(&self, at: Site) -> Role {
        // What kernels have for compensated sums knows no rounding of factors (`tessera_graph::compensate`).
        let tf32 = (0..at.count()).any(|i| at.dtype(i) == DType::Tf32);
        if at.is_complex() || tf32 && at.node.policy == Policy::KahanSum { Role::Alone } else { Role::Dot }
    }

    fn asks(&self, at: Site, part: &part::Part) -> Option<Vec<part::Part>> {
        if self.steps != Steps::All {
            return None;
        }
        let (m, n) = (at.result().len().checked_sub(2)?, at.result().len() - 1);
        let (k, batch) = ((0, 1, at.shape(0)[n]), || (0..m).map(|d| part.dim(d)));
        Some(vec![batch().chain([part.dim(m), k]).collect(), batch().chain([k, part.dim(n)]).collect()])
    }

    fn body(&self, b: &mut Body, q: &Asked) -> Result<ValueId, Refusal> {
        use body::Part::Real;
        q.without_guards("contracts")?;
        let (graph, node, accum) = (b.graph, q.node, self.accum);
        let [left, right] = node.operands[..] else { return Err(q.refuse("needs two operands")) };
        let [batch @ .., m, c] = q.at else { return Err(q.refuse("has a rank below 2")) };
        if [left, right].iter().any(|o| graph.ty(*o).dtype.is_complex()) {
            return Err(q.refuse("contracts complex numbers"));
        }
        let products = b.s.values.iter().filter(|v| matches!(v.op, ValueOp::Dot { .. })).count();
        if products > (b.outer == Some(q.n)) as usize {
            return Err(q.refuse("is a second product in one kernel"));
        }
        let depth = *graph.ty(left).shape.last().ok_or_else(|| q.refuse("has a rank below 2"))?;
        let k = match &b.row {
            Some(row) if b.outer == Some(q.n) && graph.ty(left).shape == row.shape => row.axis,
            _ if b.outer == Some(q.n) => return Err(q.refuse("contracts no row")),
            _ => b.axis("k".into(), depth, true),
        };
        // Row `i` takes its first `i + 1` steps, or all but the first `i`.
        let rows = node.ty.shape.iter().rev().nth(1).copied().unwrap_or(1);
        let within = (self.steps == Steps::To).then(|| m.offset(1));
        let beyond = (self.steps == Steps::From && rows > 1).then(|| m.clone());
        let place = |x: &Index, y: &Index| -> Vec<Index> { batch.iter().chain([x, y]).cloned().collect() };
        let (accum, order) = self.of_ints(graph, node, depth).unwrap_or((accum, self.order));
        let factor = match (order.is_paired(), accum) {
            (true, DType::I32) => DType::I16,
            (true, _) => DType::Bf16,
            (false, _) if order == Order::Atoms => graph.ty(left).dtype,
            (false, _) => accum,
        };
        let x = b.value(left, &place(m, &Index::var(k)), &[], Real)?;
        let x = factor_of(b, x, factor);
        let y = b.value(right, &place(&Index::var(k), c), &[], Real)?;
        let y = factor_of(b, y, factor);
        // Ints are the same in any order.
        let leaf = if accum.is_float() { self.leaf } else { DOT_LEAF };
        let v = b.push(ValueOp::Dot { a: x, b: y, axis: k, within, beyond, order, leaf }, accum);
        Ok(b.cast(v, node.ty.dtype))
    }

    fn comes_from(&self, _: Site) -> Source {
        Source::Any
    }

    /// A step of a product is two operations, of complex numbers eight.
    fn cost(&self, at: Site) -> Cost {
        let parts = if at.node.ty.dtype.is_complex() { 2 } else { 1 };
        let shape = at.shape(0);
        let [rows, depth] = [2, 1].map(|d| shape.len().checked_sub(d).map_or(0, |at| shape[at]));
        let steps = self.steps.total(rows, depth);
        let per_row = at.elems().checked_div(rows).unwrap_or(0);
        let all = at.elems() as f64 * at.depth();
        // Chains of these the interpreter takes in vectors.
        let vectors = matches!(self.accum, DType::F32 | DType::F64) && self.order == Order::Chain;
        Cost {
            operations: per_row.saturating_mul(steps).saturating_mul(2 * parts * parts),
            again: Again::Dear(all * 0.02),
            interpreted: match self.order {
                // What units for matrices round is known to them alone: never here instead of there.
                Order::Atoms => NEVER_NS,
                _ => all * if vectors { 0.1 } else { 2.0 },
            },
        }
    }

    fn reads_all(&self, _: usize) -> bool {
        true
    }

    fn flags(&self) -> Flags {
        Flags { work: true, step: false, selects: false, cheap: false, kept: false }
    }

    fn word(&self) -> Word {
        "dot".into()
    }
}

fn product(a: TypeRef, b: TypeRef, accum: DType, result: TypeRef) -> rule::Check {
    ensure(a.dtype == b.dtype, || format!("the factors are {} and {}", a.dtype, b.dtype))?;
    let of = a.dtype;
    let fits = match accum {
        DType::F16 => of == DType::F16,
        DType::F32 => of.is_float() && of != DType::F64,
        DType::F64 => of.is_float(),
        DType::I64 | DType::I32 => of.is_int() || of == DType::Bool,
        DType::C64 => of == DType::C64 && result.dtype == DType::C64,
        _ => false,
    };
    ensure(fits, || format!("a product of {of} does not accumulate in {accum}"))?;
    let rank = a.shape.len();
    ensure(rank >= 2 && b.shape.len() == rank, || "the factors are not matrices of one rank".into())?;
    let (batch, left) = a.shape.split_at(rank - 2);
    let (other, right) = b.shape.split_at(rank - 2);
    ensure(batch == other, || format!("the batches are {batch:?} and {other:?}"))?;
    ensure(left[1] == right[0], || format!("the contracted sizes are {} and {}", left[1], right[0]))?;
    shape_is(&[batch, &[left[0], right[1]]].concat(), result)
}

/// A value as the product multiplies it: of tf32 the number of 10 fraction bits.
impl Dot {
    /// The accumulators and the order of a product of ints, where they are not what the graph says: sums wrap as their result
    /// does, and factors of at most 16 bits come in pairs.
    fn of_ints(&self, graph: &Graph, node: &Node, depth: u64) -> Option<(DType, Order)> {
        let sums = matches!(self.accum, DType::I64 | DType::I32);
        if !sums || !matches!(node.ty.dtype, DType::I8 | DType::U8 | DType::I16 | DType::I32) {
            return None;
        }
        let short = |o: &NodeId| matches!(graph.ty(*o).dtype, DType::I8 | DType::U8 | DType::I16);
        let pairs = self.steps == Steps::All && depth.is_multiple_of(2) && node.operands.iter().all(short);
        Some((DType::I32, if pairs { Order::Pairs } else { Order::Chain }))
    }
}

fn factor_of(b: &mut Body, v: ValueId, factor: DType) -> ValueId {
    let v = if b.s.value(v).dtype == DType::Tf32 { b.push(ValueOp::RoundTf32(v), DType::F32) } else { v };
    b.cast(v, factor)
}

/// The links of factors of these ranks.
fn factors(rank: usize, right: usize, all: bool) -> Vec<Vec<Link>> {
    let sum = if all { Link::Reduce(Reduction::Sum) } else { Link::Whole };
    let batch = rank.saturating_sub(2);
    let shared = || (0..batch).map(Link::Pass);
    let a = shared().chain([if all { Link::Pass(batch) } else { Link::Whole }, sum]).collect();
    let b = shared().chain([sum]).chain((batch + 1..right).map(Link::Pass)).collect();
    vec![a, b]
}

/// The last two dims exchanged.
fn turned(at: &mut At, x: Id) -> Id {
    let rank = at.shape(x).len();
    let perm: Vec<usize> = (0..rank - 2).chain([rank - 1, rank - 2]).collect();
    expand::transpose(at.w, x, &perm)
}

/// Rows of a matrix that make one position of the outermost dim that they come from.
fn run_of_rows(at: &At, x: Id) -> u64 {
    let of = |id: NodeId| at.w.graph.node(id);
    let mut node = of(NodeId(x.0));
    if let (Prim::Cast, &[from]) = (&node.prim, &node.operands[..]) {
        node = of(from);
    }
    let (Prim::Reshape, &[from]) = (&node.prim, &node.operands[..]) else { return 1 };
    match (&of(from).ty.shape[..], &node.ty.shape[..]) {
        ([_, inner @ .., k], [_, last]) if k == last => inner.iter().product(),
        _ => 1,
    }
}

fn dot_of(at: &mut At, (x, y): (Id, Id), run: u64, accum: DType, steps: Steps, dtype: DType) -> Id {
    let (mut shape, other) = (at.shape(x), at.shape(y));
    if let (Some(last), Some(n)) = (shape.last_mut(), other.last()) {
        *last = *n;
    }
    at.w.push(Prim::dot_over(accum, steps, run), &[x, y], shape, dtype)
}

/// Zeros where a row does not take the step.
fn triangle(at: &mut At, x: Id, steps: Steps) -> Id {
    let kept = match steps {
        Steps::All => return x,
        Steps::To => MapOp::ge,
        Steps::From => MapOp::le,
    };
    let shape = at.shape(x);
    let rank = shape.len();
    let (row, column) = (expand::iota(at.w, &shape, rank - 2), expand::iota(at.w, &shape, rank - 1));
    let keep = expand::map(at.w, kept, &[row, column]);
    let zero = at.zeros(x);
    expand::select(at.w, keep, x, zero)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causal_products_keep_their_rows() {
        assert_eq!(factors(3, 3, false)[0], [Link::Pass(0), Link::Whole, Link::Whole]);
        assert_eq!(factors(2, 2, true)[1], [Link::Reduce(Reduction::Sum), Link::Pass(1)]);
        assert_eq!(factors(2, 3, true)[1], [Link::Reduce(Reduction::Sum), Link::Pass(1), Link::Pass(2)]);
    }
}
