use super::matrices::{lower, negative, solve, times, turned, upper};
use crate::prim::columns::*;
use tessera_ops::prim::Triangle;

/// Triangular systems of equations.
pub struct TriangularSolve {
    pub triangle: Triangle,
}

impl Primitive for TriangularSolve {
    fn shape(&self, x: &[TypeRef], result: TypeRef) -> rule::Check {
        count(x, 2)?;
        same(x[1], result)?;
        dtype_is(x[0], result)?;
        ensure(matches!(result.dtype, DType::F32 | DType::F64), || format!("a system of {}", result.dtype))?;
        let fits = match (x[0].shape, x[1].shape) {
            ([a @ .., n, m], [b @ .., k, _]) => a == b && n == m && n == k,
            _ => false,
        };
        ensure(fits, || format!("a system of {} and {}", shown(x[0]), shown(x[1])))
    }

    fn stands(&self, _: Site) -> rule::Check {
        Ok(())
    }

    fn text(&self, _: Site, put: &mut Attrs) -> Word {
        put.bool("lower", self.triangle.lower);
        put.bool("transposed", self.triangle.transposed);
        put.bool("unit", self.triangle.unit);
        "triangular_solve".into()
    }

    fn read(name: &str, op: &Op, _: &mut Around) -> Option<Read> {
        let triangle = || {
            let (lower, transposed) = (op.bool("lower")?, op.bool("transposed")?);
            Ok(Prim::TriangularSolve(Triangle { lower, transposed, unit: op.bool("unit")? }))
        };
        (name == "triangular_solve").then(triangle)
    }

    fn meaning(&self, x: &[ArrayRef], _: TypeRef, _: Summation) -> Meaning {
        reference::linalg::solve(self.triangle, x[0], x[1])
    }

    /// Right sides are solved apart from each other.
    fn links(&self, at: Site) -> Vec<Vec<Link>> {
        let rank = at.rank(0);
        let matrix = (0..rank).map(|d| if d + 2 < rank { Link::Pass(d) } else { Link::Whole }).collect();
        vec![matrix, at.pass_but(1, rank.saturating_sub(2), Link::Along(rank.saturating_sub(2)))]
    }

    fn keeps_partial(&self, _: Site, _: Summand) -> bool {
        false
    }

    fn of_box(&self, _: &Boxes) -> Option<Prim> {
        None
    }

    /// `b̄ = op(a)⁻ᵀ x̄`, and of the triangle `ā = -b̄ xᵀ`, or of the transposed matrix that turned.
    fn pull(&self, at: &mut At) -> Pulled {
        let Triangle { transposed, unit, .. } = self.triangle;
        let (a, x, c) = (at.x[0], at.y, at.c);
        let right = solve(at.w, a, c, Triangle { transposed: !transposed, ..self.triangle });
        let left = at.needed[0].then(|| {
            let b = &mut *at.w;
            let (from, to) = if transposed { (x, right) } else { (right, x) };
            let to = turned(b, to);
            let whole = times(b, from, to);
            let part = if self.triangle.lower { lower(b, whole, unit) } else { upper(b, whole, unit) };
            negative(b, part)
        });
        Ok(vec![left, Some(right)])
    }

    fn lifted(&self, _: usize) -> Lifted {
        Lifted::All(Prim::TriangularSolve(self.triangle))
    }

    /// Where all share the matrix, the values' right sides are those of one system.
    fn batch(&self, lift: &mut Lift, node: &Node) -> Option<Id> {
        let [a, b] = node.operands[..] else { return None };
        let (Value::Plain(a), Value::Each(b), &[n, k]) = (lift.value(a), lift.value(b), &node.ty.shape[..]) else {
            return None;
        };
        let (size, dtype) = (lift.size, node.ty.dtype);
        let w = &mut lift.w;
        let b = expand::transpose(w, b, &[1, 0, 2]);
        let b = expand::reshape(w, b, &[n, size * k]);
        let x = w.push(Prim::TriangularSolve(self.triangle), &[a, b], vec![n, size * k], dtype);
        let x = expand::reshape(w, x, &[n, size, k]);
        Some(expand::transpose(w, x, &[1, 0, 2]))
    }

    fn role(&self, _: Site) -> Role {
        Role::Alone
    }

    fn asks(&self, _: Site, _: &part::Part) -> Option<Vec<part::Part>> {
        None
    }

    fn body(&self, _: &mut Body, q: &Asked) -> Result<ValueId, Refusal> {
        Err(q.refuse("solves: each unknown needs those before it"))
    }

    fn comes_from(&self, _: Site) -> Source {
        Source::Any
    }

    fn cost(&self, at: Site) -> Cost {
        let rows = at.shape(1).iter().rev().nth(1).copied().unwrap_or(0);
        let operations = at.elems().saturating_mul(rows);
        let time = operations as f64 * 0.2 + at.touched() * 2.0;
        Cost { operations, again: Again::Dear(time), interpreted: time }
    }

    fn reads_all(&self, _: usize) -> bool {
        true
    }

    fn flags(&self) -> Flags {
        Flags { work: true, step: false, selects: false, cheap: false, kept: false }
    }

    fn word(&self) -> Word {
        "triangular_solve".into()
    }
}
